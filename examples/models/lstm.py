"""A long short-term memory that writes Python: characters of the standard library's textwrap and
heapq, one loop over time in the compiled program, and its gradient another.

Beside its likelihood: that of counted pairs of characters, with Laplace's smoothing.
"""

import heapq
import textwrap
import time
from pathlib import Path

import numpy as np

import weft
from weft import nn, optim

SIZES = {"small": (12, 6, 10), "normal": (160, 50, 600)}  # width, characters of a row, steps
BATCH = 32


def data():
    """Ids of the characters of the text, its last tenth held out, and the characters."""
    text = "".join(Path(m.__file__).read_text(encoding="utf-8") for m in (heapq, textwrap))
    characters = sorted(set(text))
    ids = np.array([characters.index(c) for c in text])
    return ids[:-len(ids) // 10], ids[-len(ids) // 10:], characters


def init(rng, many, width):
    bias = nn.init.zeros(4 * width)
    bias[width:2 * width] = 1  # at first, forget little (Gers et al., 2000)
    return {"embed": nn.init.normal(rng, (many, 32), 0.3), "b": bias,
            "w_x": nn.init.glorot_uniform(rng, (32, 4 * width)),
            "w_h": nn.init.orthogonal(rng, (width, 4 * width)),
            "out": nn.init.glorot_uniform(rng, (width, many)), "bias": nn.init.zeros(many)}


def scores(params, ids, state):
    """Of the next character, at each time: ids (T, B), state (h, c) of (B, H)."""
    hs, state = nn.lstm(nn.embedding(ids, params["embed"]), state, params["w_x"], params["w_h"],
                        params["b"])
    return nn.linear(hs, params["out"], params["bias"]), state


def loss(params, ids, state):
    """Nats per character, of each character after the first."""
    return nn.cross_entropy(scores(params, ids[:-1], state)[0], ids[1:])


def nothing(batch, width):
    return np.zeros((batch, width), np.float32), np.zeros((batch, width), np.float32)


def pairs(train, test, many):
    """Nats per character of counted pairs."""
    counts = np.ones((many, many))
    np.add.at(counts, (train[:-1], train[1:]), 1)
    return -np.mean(np.log(counts / counts.sum(1, keepdims=True))[test[:-1], test[1:]])


def main(size="normal"):
    train, test, characters = data()
    width, length, steps = SIZES[size]
    rng = np.random.default_rng(0)
    params = init(rng, len(characters), width)
    adam = optim.Adam(optim.CosineDecay(1e-2, steps, warmup=steps // 10), clip_norm=1.0)

    @weft.compile
    def step(params, state, ids, memory):
        value, grads = weft.value_and_grad(loss)(params, ids, memory)
        return (value, *adam.update(grads, state, params))

    state, losses, start = adam.init(params), [], time.perf_counter()
    for _ in range(steps):
        at = rng.integers(0, len(train) - length - 1, BATCH)
        ids = train[at + np.arange(length + 1)[:, None]]
        value, params, state = step(params, state, ids, nothing(BATCH, width))
        losses.append(float(value))
    seconds = time.perf_counter() - start
    found = weft.compile(loss)(params, test[:, None], nothing(1, width))
    counted = pairs(train, test, len(characters))
    print(f"loss {losses[0]:.3f} -> {np.mean(losses[-20:]):.3f} nats in {steps} steps, "
          f"{seconds:.1f} s with compiling")
    print(f"held-out text: {found:.3f} nats per character, pairs of characters {counted:.3f}")
    following, written, memory = weft.compile(scores), [int(train[0])], nothing(1, width)
    for _ in range(200 if size == "normal" else 5):
        row, memory = following(params, np.array([[written[-1]]]), memory)
        chances = np.exp(row[0, 0] / 0.7)
        written.append(rng.choice(len(characters), p=chances / chances.sum()))
    print("".join(characters[c] for c in written))
    return {"losses": losses, "held_out": float(found), "pairs": counted}


if __name__ == "__main__":
    main()
