"""The losses of examples/models once more: float64 NumPy loops that share nothing with Weft."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .references import log_softmax, pool, sigmoid


def normal(x: Any, axes: Any, eps: float = 1e-5) -> Any:
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(axes, keepdims=True) + eps)


def picked(scores: Any, ids: Any) -> Any:
    """The mean of minus the log-probabilities of ids."""
    logs = log_softmax(scores).reshape(-1, scores.shape[-1])
    return -np.mean([row[at] for row, at in zip(logs, ids.ravel(), strict=True)])


def conv(x: Any, w: Any, stride: int = 1, low: int = 1, high: int = 1) -> Any:
    """The sum over the places of the kernel."""
    x = np.pad(x, ((0, 0), (0, 0), (low, high), (low, high)))
    size = (x.shape[2] - w.shape[2]) // stride + 1
    return sum(np.einsum("nchw,oc->nohw", x[:, :, i:i + size * stride:stride,
                                            j:j + size * stride:stride], w[:, :, i, j])
               for i in range(w.shape[2]) for j in range(w.shape[3]))


def convnet(p: Any, x: Any, y: Any) -> Any:
    h = conv(x, p["conv1"])
    h = normal(h, (0, 2, 3)) * p["scale1"][:, None, None] + p["shift1"][:, None, None]
    h = conv(np.maximum(h, 0), p["conv2"]) + p["bias2"][:, None, None]
    h = pool(np.maximum(h, 0), (2, 2), (2, 2), ((0, 0), (0, 0)), np.max, 0)
    return picked(h.reshape(len(x), -1) @ p["w"] + p["b"], y)


def gpt(p: Any, ids: Any, heads: int) -> Any:
    x = p["tokens"][ids[:, :-1]] + p["places"][:ids.shape[1] - 1]
    length, width = x.shape[1:]
    size = width // heads
    for block in p["blocks"]:
        h = normal(x, -1) * block["norm1"]
        mixed = np.zeros_like(x)
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            q, k, v = (h @ block[name][:, part] for name in "qkv")
            for t in range(length):
                e = np.exp(np.einsum("bd,bsd->bs", q[:, t], k[:, :t + 1]) / np.sqrt(size))
                weights = e / e.sum(-1, keepdims=True)
                mixed[:, t, part] = np.einsum("bs,bsd->bd", weights, v[:, :t + 1])
        x = x + mixed @ block["o"]
        u = normal(x, -1) * block["norm2"] @ block["up"]
        x = x + u * (1 + erf(u / np.sqrt(2))) / 2 @ block["down"]
    return picked(normal(x, -1) * p["norm"] @ p["tokens"].T, ids[:, 1:])


def erf(x: Any) -> Any:
    """By Simpson's rule over 200 parts."""
    t = np.linspace(0, 1, 201)
    weights = np.where(np.arange(201) % 2, 4, 2) - np.isin(np.arange(201), (0, 200))
    return 2 / np.sqrt(np.pi) * x * np.sum(
        weights * np.exp(-(x[..., None] * t) ** 2), axis=-1) / 600


def lstm(p: Any, ids: Any, state: Any) -> Any:
    h, c = state
    total = 0.0
    for now, following in pairwise(ids):
        i, f, g, o = np.split(p["embed"][now] @ p["w_x"] + h @ p["w_h"] + p["b"], 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        total += picked(h @ p["out"] + p["bias"], following)
    return total / (len(ids) - 1)


def vae(p: Any, x: Any, noise: Any) -> Any:
    def layer(h: Any, name: str) -> Any:
        return h @ p[name][0] + p[name][1]

    h = layer(x, "in")
    mean, log_variance = np.split(layer(h * sigmoid(h), "code"), 2, axis=1)
    h = layer(mean + np.exp(log_variance / 2) * noise, "out")
    ink = sigmoid(layer(h * sigmoid(h), "pixels"))
    likelihood = np.sum(x * np.log(ink) + (1 - x) * np.log(1 - ink))
    return (0.5 * np.sum(np.exp(log_variance) + mean ** 2 - 1 - log_variance)
            - likelihood) / len(x)


def factorisation(p: Any, x: Any, seen: Any) -> Any:
    total = 0.0
    for i, j in zip(*np.nonzero(seen), strict=True):
        guess = p["images"][i] @ p["pixels"][j] + p["image"][i, 0] + p["pixel"][j]
        total += (guess - x[i, j]) ** 2
    lengths = np.mean(p["images"] ** 2) + np.mean(p["pixels"] ** 2)
    return total / seen.sum() + 0.15 * lengths


def gaussian_process(p: Any, x: Any, y: Any) -> Any:
    apart = (x[:, None] - x) / np.exp(p["lengths"])
    k = np.exp(p["variance"] - 0.5 * np.sum(apart ** 2, -1)) + np.exp(p["noise"]) * np.eye(len(x))
    return 0.5 * (y @ np.linalg.inv(k) @ y + np.linalg.slogdet(k)[1] + len(x) * np.log(2 * np.pi))


def neural_ode(p: Any, x: Any, y: Any) -> Any:
    def slope(x: Any, t: float) -> Any:
        return np.tanh(x @ p["in"] + t * p["time"] + p["bias"]) @ p["out"]

    for t in np.arange(8) / 8:
        a = slope(x, t)
        b = slope(x + a / 16, t + 1 / 16)
        c = slope(x + b / 16, t + 1 / 16)
        x = x + (a + 2 * b + 2 * c + slope(x + c / 8, t + 1 / 8)) / 48
    return picked(x @ p["w"] + p["b"], y)


def q_learning(p: Any, slow: Any, cells: Any, moves: Any, rewards: Any, after: Any,
               ends: Any) -> Any:
    def worth(p: Any, cell: Any) -> Any:
        one_hot = np.eye(len(p["in"]))[cell]
        return np.maximum(one_hot @ p["in"] + p["bias"], 0) @ p["out"]

    total = 0.0
    for cell, move, reward, following, end in zip(cells, moves, rewards, after, ends, strict=True):
        aim = reward + (0 if end else 0.95 * worth(slow, following).max())
        total += (worth(p, cell)[move] - aim) ** 2
    return total / len(cells)


def batch_norm(h: Any, scale: Any, shift: Any) -> Any:
    return normal(h, (0, 2, 3)) * scale[:, None, None] + shift[:, None, None]


def resnet(p: Any, x: Any, y: Any) -> Any:
    h = conv(x, p["first"])
    for block, stride in zip(p["blocks"], (1, 2, 1), strict=True):
        inner = np.maximum(batch_norm(h, *block["norm1"]), 0)
        given = conv(inner, block["short"], stride, 0, 0) if "short" in block else h
        inner = conv(inner, block["conv1"], stride, 0 if stride == 2 else 1)
        inner = np.maximum(batch_norm(inner, *block["norm2"]), 0)
        h = given + conv(inner, block["conv2"])
    return picked(np.maximum(h, 0).mean((2, 3)) @ p["w"] + p["b"], y)


def perceptron(layers: Any, h: Any) -> Any:
    for at, (w, b) in enumerate(layers):
        h = h @ w + b
        h = h if at == len(layers) - 1 else np.maximum(h, 0.2 * h)
    return h


def gan_critic(p: Any, real: Any, noise: Any) -> Any:
    made = sigmoid(perceptron(p["generator"], noise))
    return -np.mean(np.log(sigmoid(perceptron(p["critic"], real)))) - np.mean(
        np.log(1 - sigmoid(perceptron(p["critic"], made))))


def gan_generator(p: Any, noise: Any) -> Any:
    made = sigmoid(perceptron(p["generator"], noise))
    return -np.mean(np.log(sigmoid(perceptron(p["critic"], made))))


def negative_sampling(p: Any, words: Any, near: Any, others: Any) -> Any:
    total = 0.0
    for word, true, false in zip(words, near, others, strict=True):
        total -= np.log(sigmoid(p["words"][word] @ p["near"][true] + p["bias"][true]))
        for other in false:
            total -= np.log(sigmoid(-p["words"][word] @ p["near"][other] - p["bias"][other]))
    return total / len(words)


def sampled_softmax(p: Any, words: Any, near: Any, uniform: Any) -> Any:
    many = len(p["bias"])
    drawn = [min(int(np.exp(u * np.log(many + 1))) - 1, many - 1) for u in uniform]
    total = 0.0
    for word, true in zip(words, near, strict=True):
        def score(other: int, word: int = word) -> Any:
            return p["words"][word] @ p["near"][other] + p["bias"][other]

        others = [score(at) - np.log(len(drawn) * np.log((at + 2) / (at + 1)) / np.log(many + 1))
                  for at in drawn if at != true]
        total += np.log(np.sum(np.exp([score(true), *others]))) - score(true)
    return total / len(words)
