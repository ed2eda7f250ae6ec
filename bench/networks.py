"""Models as people write them: their forward passes, and the steps that train them.

The limit of a model counts the operations of its products and convolutions, those of a convolution
as they are defined; Winograd's form of 3 x 3 ones can go below.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .compare import Bench, Workload
from .peers import Framework, Function
from .report import Table
from .training import training

BLOCK = ("q", "k", "v", "o", "up", "down", "scale1", "shift1", "scale2", "shift2")


def normal(*shape: int, scale: float | None = None, seed: int = 0) -> Any:
    """Numbers for a weight of this shape, which keep the size of what they are multiplied with."""
    rng = np.random.default_rng((seed, *shape))
    fan_in = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
    wide = 1 / np.sqrt(fan_in) if scale is None else scale
    return (rng.standard_normal(shape) * wide).astype(np.float32)


def ones(count: int) -> Any:
    return np.ones(count, np.float32)


def zeros(count: int) -> Any:
    return np.zeros(count, np.float32)


# -- forward passes -----------------------------------------------------------------------------

def perceptron(framework: Framework) -> Function:
    def run(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
        h = framework.relu(x @ w1 + b1)
        return framework.relu(h @ w2 + b2) @ w3 + b3

    return run


def heads_of(x: Any, heads: int) -> Any:
    """(batch, time, width) to (batch, heads, time, width of a head)."""
    batch, time, width = x.shape
    return x.reshape(batch, time, heads, width // heads).swapaxes(1, 2)


def transformer_block(framework: Framework, x: Any, params: Sequence[Any], heads: int,
                      causal: bool = False) -> Any:
    """Norms first (Xiong et al., 2020); ``params`` as ``BLOCK`` names them."""
    q, k, v, o, up, down, scale1, shift1, scale2, shift2 = params
    h = framework.layer_norm(x, scale1, shift1)
    met = framework.attention(*(heads_of(h @ w, heads) for w in (q, k, v)), causal)
    x = x + met.swapaxes(1, 2).reshape(x.shape) @ o
    h = framework.layer_norm(x, scale2, shift2)
    return x + framework.gelu(h @ up) @ down


def block_weights(width: int, seed: int = 0) -> list[Any]:
    square = [normal(width, width, seed=seed + at) for at in range(4)]
    return [*square, normal(width, 4 * width, seed=seed), normal(4 * width, width, seed=seed),
            ones(width), zeros(width), ones(width), zeros(width)]


def transformer(batch: int, time: int, width: int, heads: int) -> Workload:
    def make(framework: Framework) -> Function:
        return lambda x, *params: transformer_block(framework, x, params, heads)

    rows = batch * time
    flop = 2 * rows * width * width * 12 + 4 * batch * time * time * width
    return Workload(f"transformer block, {batch} x {time} x {width}", make,
                    (normal(batch, time, width, scale=1), *block_weights(width)), flop=flop)


def residual_block(framework: Framework) -> Function:
    """Two convolutions with the norms of inference, and what goes around them (He et al., 2016)."""
    def run(x: Any, w1: Any, scale1: Any, shift1: Any, w2: Any, scale2: Any, shift2: Any) -> Any:
        h = framework.conv2d(x, w1, padding=1) * scale1[:, None, None] + shift1[:, None, None]
        h = framework.conv2d(framework.relu(h), w2, padding=1)
        return framework.relu(h * scale2[:, None, None] + shift2[:, None, None] + x)

    return run


def residual(batch: int, channels: int, size: int) -> Workload:
    args = [normal(batch, channels, size, size, scale=1)]
    for seed in range(2):
        args += [normal(channels, channels, 3, 3, seed=seed), ones(channels), zeros(channels)]
    flop = 2 * 2 * 9 * batch * channels * channels * size * size
    return Workload(f"ResNet block, {batch} x {channels} x {size} x {size}", residual_block,
                    tuple(args), flop=flop)


def recurrent(framework: Framework) -> Function:
    def run(xs: Any, h: Any, c: Any, w_x: Any, w_h: Any, bias: Any) -> Any:
        return framework.lstm(xs, h, c, w_x, w_h, bias)

    return run


def lstm(time: int, batch: int, width: int) -> Workload:
    state = np.zeros((batch, width), np.float32)
    args = (normal(time, batch, width, scale=1), state, state,
            normal(width, 4 * width), normal(width, 4 * width, seed=1), zeros(4 * width))
    return Workload(f"LSTM layer, {time} x {batch} x {width}", recurrent, args,
                    flop=2 * 2 * time * batch * width * 4 * width)


# -- training steps -----------------------------------------------------------------------------

def held(params: Sequence[Any], times: int = 1) -> tuple[int, int]:
    """Bytes read and written by an update: of the parameters and ``times - 1`` of their size."""
    size = times * sum(array.nbytes for array in params)
    return size, size


def images_loss(framework: Framework, params: Any, images: Any, labels: Any) -> Any:
    w1, b1, w2, b2, w3, b3, w4, b4 = params
    h = framework.relu(framework.conv2d(images, w1, padding=1) + b1[:, None, None])
    h = framework.max_pool2d(h, 2)
    h = framework.relu(framework.conv2d(h, w2, padding=1) + b2[:, None, None])
    h = framework.max_pool2d(h, 2)
    h = framework.relu(h.reshape(len(labels), -1) @ w3 + b3)
    return framework.cross_entropy(h @ w4 + b4, labels)


def convolutional(batch: int) -> Workload:
    rng = np.random.default_rng(0)
    params = [normal(32, 1, 3, 3), zeros(32), normal(64, 32, 3, 3), zeros(64),
              normal(64 * 49, 128), zeros(128), normal(128, 10), zeros(10)]
    args = (normal(batch, 1, 28, 28, scale=1), rng.integers(0, 10, batch))
    products = [9 * 32 * 784, 9 * 32 * 64 * 196, 64 * 49 * 128, 128 * 10]
    return training(f"CNN, 28 x 28, batch {batch}", images_loss, params, args, "sgd",
                    flop=2 * batch * (3 * sum(products) - products[0]), moved=held(params))


def gpt(batch: int, time: int, width: int, blocks: int, heads: int, vocabulary: int) -> Workload:
    params = [normal(vocabulary, width, scale=0.1), normal(time, width, scale=0.1)]
    for seed in range(blocks):
        params += block_weights(width, 10 * seed)
    params += [ones(width), zeros(width)]

    def loss(framework: Framework, params: Any, ids: Any, wanted: Any) -> Any:
        x = params[0][ids] + params[1]
        for at in range(blocks):
            own = params[2 + at * len(BLOCK):2 + (at + 1) * len(BLOCK)]
            x = transformer_block(framework, x, own, heads, causal=True)
        x = framework.layer_norm(x, *params[-2:])
        logits = x.reshape(-1, width) @ params[0].T
        return framework.cross_entropy(logits, wanted.reshape(-1))

    ids = np.random.default_rng(0).integers(0, vocabulary, (batch, time + 1))
    rows = batch * time
    flop = 3 * (blocks * (24 * rows * width * width + 4 * rows * time * width)
                + 2 * rows * width * vocabulary)
    return training(f"GPT, {blocks} blocks of {width}, {batch} x {time}, Adam", loss, params,
                    (ids[:, :-1].copy(), ids[:, 1:].copy()), "adam", flop=flop,
                    moved=held(params, 3), tolerance=1e-3)


def language(time: int, batch: int, width: int, vocabulary: int) -> Workload:
    params = [normal(vocabulary, width, scale=0.1), normal(width, 4 * width),
              normal(width, 4 * width, seed=1), zeros(4 * width), normal(width, vocabulary),
              zeros(vocabulary)]

    def loss(framework: Framework, params: Any, ids: Any, wanted: Any, h: Any, c: Any) -> Any:
        embed, w_x, w_h, bias, out, shift = params
        hs = framework.lstm(embed[ids], h, c, w_x, w_h, bias)
        logits = hs.reshape(-1, width) @ out + shift
        return framework.cross_entropy(logits, wanted.reshape(-1))

    ids = np.random.default_rng(0).integers(0, vocabulary, (time + 1, batch))
    state = np.zeros((batch, width), np.float32)
    flop = 3 * 2 * time * batch * width * (8 * width + vocabulary)
    return training(f"LSTM language model, {time} x {batch} x {width}", loss, params,
                    (ids[:-1].copy(), ids[1:].copy(), state, state), "sgd", flop=flop,
                    moved=held(params), tolerance=1e-3)


def sparse(rows: int, width: int, batch: int) -> Workload:
    """A few rows of a large table take part in each step."""
    params = [normal(rows, width, scale=0.1), normal(width, 1)]

    def loss(framework: Framework, params: Any, ids: Any, wanted: Any) -> Any:
        table, out = params
        off = (framework.looked_up(ids, table) @ out)[:, 0] - wanted
        return framework.np.mean(off * off)

    args = (np.random.default_rng(0).integers(0, rows, batch), normal(batch, 1)[:, 0].copy())
    touched = 4 * batch * width
    return training(f"embedding of {rows} x {width}, batch {batch}", loss, params, args, "sgd",
                    flop=6 * batch * width, moved=(touched, touched))


def run(bench: Bench) -> list[Table]:
    widths = (64, 64, 64, 10)
    small = [normal(32, widths[0], scale=1)]
    for one, other in pairwise(widths):
        small += [normal(one, other), zeros(other)]
    forward = [transformer(4, 128, 256, 4), residual(4, 64, 56)]
    steps = [convolutional(64), gpt(8, 128, 128, 2, 4, 96)]
    if not bench.quick:
        forward = [Workload("MLP 64-64-64-10, batch 32", perceptron, tuple(small),
                            flop=2 * 32 * sum(a * b for a, b in pairwise(widths))),
                   *forward, lstm(64, 32, 256)]
        steps += [language(32, 32, 256, 96), sparse(100_000, 32, 256)]
    return [bench.compare("models", forward), bench.compare("models trained", steps)]
