"""Programs that fusion makes one kernel of, or as few as they can have, with arguments for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import weft

Array = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.asarray(np.random.default_rng((seed, *shape)).normal(size=shape)).astype("f4")


def softmax(x: Any) -> Any:
    return weft.nn.softmax(x)


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    return weft.nn.layer_norm(x, gain, bias)


def layer_norm_gradient(x: Any, gain: Any, bias: Any, g: Any) -> Any:
    return weft.grad(lambda x: np.sum(layer_norm(x, gain, bias) * g))(x)


def dense_gelu(x: Any, w: Any, b: Any) -> Any:
    return weft.nn.gelu(x @ w + b)


def dense_reshaped(x: Any, w: Any, b: Any) -> Any:
    """A bias for each of the rows of a head, which repeat in those of the product."""
    return np.maximum((x @ w).reshape(4, 10, 48) + b, 0)


def attention(q: Any, k: Any, v: Any) -> Any:
    return weft.nn.scaled_dot_product_attention(q, k, v, is_causal=True)


def attention_gradient(q: Any, k: Any, v: Any, g: Any) -> Any:
    def loss(q: Any, k: Any, v: Any) -> Any:
        return np.sum(attention(q, k, v) * g)

    return weft.grad(loss, argnums=(0, 1, 2))(q, k, v)


def convolution(x: Any, w: Any, b: Any) -> Any:
    """3 x 3, bias and relu: x is NCHW, w is OIHW."""
    windows = sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.maximum(np.einsum("nchwij,ocij->nohw", windows, w) + b[:, None, None], 0)


def convolution_stride_2(x: Any, w: Any, b: Any) -> Any:
    windows = sliding_window_view(x, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    return np.maximum(np.einsum("nchwij,ocij->nohw", windows, w) + b[:, None, None], 0)


def convolution_groups(x: Any, w: Any, b: Any) -> Any:
    """Each of two groups of output channels sees one of input channels; w is GOIHW."""
    n, c, height, width = x.shape
    windows = sliding_window_view(x.reshape(n, 2, c // 2, height, width), (3, 3), axis=(3, 4))
    return np.maximum(np.einsum("ngchwij,gocij->ngohw", windows, w) + b[:, :, None, None], 0)


def convolution_weight_gradient(x: Any, w: Any, g: Any) -> Any:
    def loss(w: Any) -> Any:
        windows = sliding_window_view(x, (3, 3), axis=(2, 3))
        return np.sum(np.einsum("nchwij,ocij->nohw", windows, w) * g)

    return weft.grad(loss)(w)


def convolution_input_gradient(x: Any, w: Any, g: Any) -> Any:
    """A product of shifted parts of g: windows of nothing are in memory."""
    return weft.grad(lambda x: np.sum(weft.nn.conv2d(x, w, padding=1) * g))(x)


def nearest_centre(x: Any, centres: Any, norms: Any) -> Any:
    """The assignment of k-means; ``norms`` are the squared lengths of the centres."""
    return np.argmin(norms - 2 * (x @ centres.T), axis=1)


def nearest_point(x: Any, points: Any) -> Any:
    """The same by differences: a row of sums that is read twice."""
    return np.argmin(np.sum((x[:, None] - points) ** 2, axis=-1), axis=1)


def nearest_column(x: Any, points: Any) -> Any:
    """Of points that are columns: sums down them."""
    return np.argmin(np.sum((x[:, :, None] - points) ** 2, axis=1), axis=1)


def cross_entropy(x: Any, w: Any, labels: Any) -> Any:
    return weft.nn.cross_entropy(x @ w.T, labels, reduction="none")


def forces(x: Any, mass: Any) -> Any:
    """Pairwise attraction of bodies in three dimensions."""
    away = x[None, :, :] - x[:, None, :]
    square = np.sum(away * away, axis=2) + np.float32(0.01)
    return np.sum(away * (mass[None, :] / (square * np.sqrt(square)))[:, :, None], axis=1)


def transpose(x: Any) -> Any:
    return x.T * 2


def total(x: Any) -> Any:
    return np.sum(x)


def column_means(x: Any) -> Any:
    return np.mean(np.tanh(x), axis=0)


def column_moments(x: Any) -> Any:
    """Both sums of a part are one loop."""
    mean = np.mean(x, axis=0)
    return np.mean(x * x, axis=0) - mean * mean


def square_deviation(x: Any) -> Any:
    away = x - np.mean(x)
    return np.sum(away * away)


def heads_to_model(x: Any, w: Any) -> Any:
    """What attention does last: x is (batch, head, position, dimension)."""
    return np.einsum("bhsd,hde->bse", x, w)


def model_to_heads(x: Any, w: Any, b: Any) -> Any:
    """What attention does first: three heads of 32."""
    return (x @ w + b).reshape(*x.shape[:2], 3, 32).transpose(0, 2, 1, 3)


_CONV = (numbers(2, 6, 13, 15), numbers(8, 6, 3, 3, seed=1), numbers(8))
# name -> function, arguments, how many launches it has
def rounds_of_numbers(u: Any, x: Any, y: Any) -> Any:
    """A Python loop that hands on a few numbers, one of which is another one before."""
    rows = np.zeros((70, 2), "f4")
    for t in range(70):
        x, y = y * 0.5 + u[t], x
        rows[t] = np.stack([x, y])
    return rows


def rounds_of_elements(u: Any, x: Any) -> Any:
    """A Python loop in which each element goes its own way."""
    for t in range(70):
        x = x * 0.5 + u[t] * np.maximum(x, 0)
    return x


def rounds_apart(u: Any) -> Any:
    """A Python loop whose rounds have nothing to do with each other: vectors of them."""
    rows = np.zeros(70, "f4")
    for t in range(70):
        rows[t] = np.abs(u[t]) * 2 + u[t + 1]
    return rows


def rounds_turned(u: Any, x: Any) -> Any:
    """A scan of rows from the last one to the first."""
    return weft.scan(lambda c, u: (c * 0.5 + u, c[0]), x, u, reverse=True)[1]


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Array, ...], int]] = {
    "softmax": (softmax, (numbers(20, 100),), 1),
    "rounds_of_numbers": (rounds_of_numbers, (numbers(70), numbers(), numbers(seed=1)), 1),
    "rounds_of_elements": (rounds_of_elements, (numbers(70, 50), numbers(50)), 1),
    "rounds_apart": (rounds_apart, (numbers(71),), 1),
    "rounds_turned": (rounds_turned, (numbers(9, 3), numbers(3)), 1),
    "layer_norm": (layer_norm, (numbers(20, 100), numbers(100), numbers(100, seed=1)), 1),
    "layer_norm_gradient": (layer_norm_gradient, (
        numbers(20, 100), numbers(100), numbers(100, seed=1), numbers(20, 100, seed=1)), 1),
    "dense_gelu": (dense_gelu, (numbers(40, 30), numbers(30, 50), numbers(50)), 1),
    "dense_reshaped": (dense_reshaped, (
        numbers(40, 30), numbers(30, 48), numbers(10, 48)), 1),
    "attention": (attention, tuple(numbers(2, 150, 16, seed=at) for at in range(3)), 1),
    "convolution": (convolution, _CONV, 1),
    "convolution_stride_2": (convolution_stride_2, _CONV, 1),
    "convolution_groups": (convolution_groups, (
        numbers(2, 6, 13, 15), numbers(2, 4, 3, 3, 3), numbers(2, 4)), 1),
    "convolution_weight_gradient": (convolution_weight_gradient, (
        *_CONV[:2], numbers(2, 8, 11, 13)), 1),
    "convolution_input_gradient": (convolution_input_gradient, (
        *_CONV[:2], numbers(2, 8, 13, 15)), 2),
    "convolution_small_images": (convolution, (
        numbers(5, 8, 9, 9), numbers(24, 8, 3, 3), numbers(24)), 1),
    "heads_to_model": (heads_to_model, (numbers(6, 3, 10, 8), numbers(3, 8, 40)), 1),
    "model_to_heads": (model_to_heads, (
        numbers(6, 10, 24), numbers(24, 96), numbers(96)), 1),
    "nearest_centre": (nearest_centre, (numbers(300, 8), numbers(20, 8), numbers(20) ** 2), 1),
    "nearest_point": (nearest_point, (numbers(300, 20), numbers(30, 20)), 1),
    "nearest_column": (nearest_column, (numbers(300, 20), numbers(20, 30)), 1),
    "cross_entropy": (cross_entropy, (
        numbers(150, 24), numbers(33, 24), np.arange(150) % 33), 1),
    "forces": (forces, (numbers(150, 3), numbers(150) ** 2), 1),
    "transpose": (transpose, (numbers(100, 130),), 1),
    "total": (total, (numbers(30, 70),), 1),
    "total_in_parts": (total, (numbers(600, 601),), 2),
    "columns_in_parts": (column_means, (numbers(20_000, 16),), 2),
    "moments_in_parts": (column_moments, (numbers(20_000, 16),), 2),
    "squares_in_parts": (square_deviation, (numbers(300_000),), 4),
}
# Too large to be interpreted: two kernels, and nothing of 2048 x 2048 between them.
LARGE = (attention_gradient, ("f32[2048,32]",) * 4)
