"""Gradients of strided and dilated convolutions are contractions of what is there: of the zeros
between the places of windows there is no product, and no array."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft

R = np.random.default_rng(0)
Pair = tuple[int, int]

# Strides, dilations, size of the kernel, padding, size of the image.
CASES: tuple[tuple[Pair, Pair, int, Pair, int], ...] = (
    ((2, 2), (1, 1), 3, (1, 1), 9), ((2, 2), (1, 1), 3, (1, 1), 10),
    ((2, 2), (2, 2), 3, (2, 2), 11), ((3, 2), (1, 1), 2, (0, 0), 10),
    ((1, 1), (2, 2), 3, (2, 2), 9), ((2, 1), (1, 1), 3, (1, 1), 9),
    ((1, 2), (1, 3), 3, (1, 1), 9), ((2, 2), (1, 1), 1, (0, 0), 9),
    ((3, 3), (2, 3), 3, (2, 1), 14), ((4, 2), (2, 4), 3, (1, 1), 15),
    ((2, 3), (3, 2), 2, (1, 1), 12), ((4, 4), (1, 1), 4, (0, 0), 16),
)


def wanted(
    x: Any, w: Any, ct: Any, stride: Pair, rate: Pair, pad: Pair
) -> tuple[Any, Any]:
    """The gradients for the image and the kernel, one element of the kernel after the other."""
    wide = np.pad(x, ((0, 0), (0, 0), pad, pad))
    dx, dw = np.zeros_like(wide), np.zeros_like(w)
    rows, columns = ct.shape[2:]
    for i, j in np.ndindex(w.shape[2:]):
        here = (..., slice(i * rate[0], i * rate[0] + (rows - 1) * stride[0] + 1, stride[0]),
                slice(j * rate[1], j * rate[1] + (columns - 1) * stride[1] + 1, stride[1]))
        dx[here] += np.einsum("nohw,oc->nchw", ct, w[:, :, i, j])
        dw[:, :, i, j] = np.einsum("nohw,nchw->oc", ct, wide[here])
    size = x.shape[2]
    return dx[..., pad[0]:pad[0] + size, pad[0]:pad[0] + size], dw


@pytest.mark.parametrize(("stride", "rate", "kernel", "pad", "size"), CASES)
def test_gradients(stride: Pair, rate: Pair, kernel: int, pad: Pair, size: int) -> None:
    x, w = R.normal(size=(2, 3, size, size)), R.normal(size=(4, 3, kernel, kernel))
    whole = [(size + sum(pad) - (kernel - 1) * d - 1) // s + 1
             for s, d in zip(stride, rate, strict=True)]
    ct = R.normal(size=(2, 4, *whole))

    def loss(x: Any, w: Any) -> Any:
        y = weft.nn.conv2d(x, w, stride=stride, dilation=rate, padding=(pad, pad))
        return np.sum(y * ct)

    slopes = weft.compile(weft.grad(loss, argnums=(0, 1)))
    for given, value in zip(slopes(x, w), wanted(x, w, ct, stride, rate, pad), strict=True):
        np.testing.assert_allclose(given, value, rtol=1e-10, atol=1e-12)
    text = slopes.lower(x, w).as_text("opt")
    assert not re.search(r"interior = \([^)]*[1-9]", text)


@pytest.mark.long
def test_one_and_three_axes_and_the_gradient_of_a_gradient() -> None:
    for rank, name in ((1, weft.nn.conv1d), (3, weft.nn.conv3d)):
        x, w = R.normal(size=(1, 2, *(7,) * rank)), R.normal(size=(2, 2, *(3,) * rank))

        def loss(x: Any, w: Any, name: Any = name) -> Any:
            return np.sum(np.tanh(name(x, w, stride=2, padding="VALID")))

        direction = R.normal(size=x.shape)
        slope = weft.compile(weft.grad(loss))
        steps = [loss(x + h * direction, w) for h in (1e-5, -1e-5)]
        np.testing.assert_allclose(np.sum(slope(x, w) * direction), (steps[0] - steps[1]) / 2e-5,
                                   rtol=1e-7)
        twice = weft.compile(weft.grad(
            lambda x, w, f=loss, d=direction: np.sum(weft.grad(f)(x, w) * d)))(x, w)
        ends = [slope(x + h * direction, w) for h in (1e-5, -1e-5)]
        np.testing.assert_allclose(twice, (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-8)
