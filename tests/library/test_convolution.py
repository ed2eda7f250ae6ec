"""Convolutions and pooling against loops over their definitions, in float64; what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.references import check, conv, pool

import weft
from weft import nn
from weft.ir.diagnose import ShapeError, UnsupportedError

RNG = np.random.default_rng(5)
SPACE = (7, 5, 4)
CONVS = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
TRANSPOSED = {1: nn.conv_transpose1d, 2: nn.conv_transpose2d, 3: nn.conv_transpose3d}
LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def inputs(rank: int, groups: int = 1) -> tuple[Any, Any, Any]:
    return (RNG.normal(size=(2, 4, *SPACE[:rank])),
            RNG.normal(size=(6, 4 // groups, *(3, 2, 2)[:rank])),
            RNG.normal(size=6))


@pytest.mark.parametrize(("rank", "stride", "padding", "dilation", "groups"), [
    (1, 1, "VALID", 1, 1), (1, 2, 1, 2, 2), (2, 1, 1, 1, 1), (2, 2, ((1, 0), (0, 2)), 1, 1),
    (2, (1, 2), (2, 1), (2, 1), 2), (2, 3, 0, 1, 4), (3, 1, 1, 1, 1), (3, 2, (1, 0, 1), 1, 2),
])
def test_convolutions(rank: int, stride: Any, padding: Any, dilation: Any, groups: int) -> None:
    if groups == 4:  # each channel by itself
        x, w, b = RNG.normal(size=(2, 4, 7, 5)), RNG.normal(size=(8, 1, 3, 3)), RNG.normal(size=8)
    else:
        x, w, b = inputs(rank, groups)
    pads = {"VALID": ((0, 0),) * rank}.get(padding) if isinstance(padding, str) else tuple(
        (p, p) if np.ndim(p) == 0 else p
        for p in ((padding,) * rank if np.ndim(padding) == 0 else padding))
    steps, rates = (np.broadcast_to(one, rank) for one in (stride, dilation))
    wanted = conv(x, w, steps, pads, rates, groups) + b.reshape(-1, *(1,) * rank)
    check(lambda x, w, b: CONVS[rank](x, w, stride, padding, dilation, groups, bias=b), (x, w, b),
          wanted)
    turned = CONVS[rank](np.moveaxis(x, 1, -1), w, stride, padding, dilation, groups, LAST[rank], b)
    np.testing.assert_allclose(np.moveaxis(turned, -1, 1), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("rank", "stride", "padding", "dilation", "groups", "more"), [
    (1, 2, 1, 1, 1, 1), (2, 1, "VALID", 1, 1, 0), (2, 2, ((1, 0), (0, 1)), 1, 2, (1, 0)),
    (2, (3, 2), 2, 2, 1, 0), (3, 2, 1, 1, 2, 0), (2, 2, "SAME", 1, 1, 0), (1, 4, "SAME", 1, 1, 0),
])
def test_transposes(rank: int, stride: Any, padding: Any, dilation: Any, groups: int,
                    more: Any) -> None:
    """<conv(x), y> is <x, transposed(y)>, for every x: so each fixes the other."""
    _, w, _ = inputs(rank, groups)
    y, b = RNG.normal(size=(2, 6, *(4, 3, 5)[:rank])), RNG.normal(size=4)

    def transposed(y: Any, w: Any, b: Any) -> Any:
        return TRANSPOSED[rank](y, w, stride, padding, dilation, groups, bias=b,
                                output_padding=more)

    made = transposed(y, w, b)
    bare = transposed(y, w, 0 * b)
    np.testing.assert_allclose(made - bare, np.broadcast_to(
        b.reshape(-1, *(1,) * rank), made.shape), rtol=1e-9, atol=1e-12)
    if padding == "SAME":
        assert made.shape[2:] == tuple(size * stride for size in y.shape[2:])
    x = np.eye(bare[0].size).reshape(-1, *bare.shape[1:])  # every x there is
    wanted = np.tensordot(CONVS[rank](x, w, stride, padding, dilation, groups), y,
                          axes=(range(1, y.ndim), range(1, y.ndim)))
    check(transposed, (y, w, b), wanted.T.reshape(bare.shape) + b.reshape(-1, *(1,) * rank))


@pytest.mark.parametrize(("size", "kernel", "stride", "pads"), [
    (7, 3, 1, (1, 1)), (7, 2, 1, (0, 1)), (7, 3, 2, (1, 1)), (8, 3, 2, (0, 1)), (9, 5, 4, (2, 2)),
    (4, 1, 3, (0, 0)), (5, 2, 5, (0, 0)),
])
def test_same_has_a_window_for_every_stride(size: int, kernel: int, stride: int, pads: Any) -> None:
    x, w = RNG.normal(size=(1, 2, size)), RNG.normal(size=(3, 2, kernel))
    found = nn.conv1d(x, w, stride, "SAME")
    assert found.shape[2] == -(-size // stride)
    np.testing.assert_allclose(found, conv(x, w, (stride,), (pads,), (1,)), rtol=1e-10)


@pytest.mark.long
def test_dims_of_any_size_compile_once() -> None:
    w, b = RNG.normal(size=(6, 2, 3, 3)), RNG.normal(size=6)

    def layer(x: Any, w: Any, b: Any) -> Any:
        y = nn.max_pool2d(nn.relu(nn.conv2d(x, w, padding=1, groups=2, bias=b)), 3, 2, 1)
        return np.sum(nn.conv_transpose2d(nn.avg_pool2d(y, 2, 1), w, 2) ** 2)

    gradient = weft.compile(dynamic={"x": {0: "b", 2: "h", 3: "w"}}, on_recompile="error")(
        weft.value_and_grad(layer, argnums=(0, 1)))
    for batch, height, width in ((2, 9, 7), (0, 5, 5), (3, 6, 12)):
        x = RNG.normal(size=(batch, 4, height, width))
        value, (of_x, of_w) = gradient(x, w, b)
        np.testing.assert_allclose(value, layer(x, w, b), rtol=1e-10)
        way, turn, step = RNG.normal(size=x.shape), RNG.normal(size=w.shape), 1e-6
        slope = (layer(x + step * way, w + step * turn, b)
                 - layer(x - step * way, w - step * turn, b)) / (2 * step)
        np.testing.assert_allclose(np.sum(of_x * way) + np.sum(of_w * turn), slope, rtol=1e-6,
                                   atol=1e-8)


MAX = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}
MEAN = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}


@pytest.mark.parametrize(("rank", "window", "stride", "padding"), [
    (1, 3, None, 0), (2, 2, None, 0), (2, 3, 2, 1), (2, (3, 2), (1, 2), (1, 0)), (3, 2, 1, 1),
])
def test_pooling(rank: int, window: Any, stride: Any, padding: Any) -> None:
    x = RNG.normal(size=(2, 3, *SPACE[:rank]))
    sizes = np.broadcast_to(window, rank)
    steps = sizes if stride is None else np.broadcast_to(stride, rank)
    pads = [(p, p) for p in np.broadcast_to(padding, rank)]
    check(lambda x: MAX[rank](x, window, stride, padding), (x,),
          pool(x, sizes, steps, pads, np.max, -np.inf))
    check(lambda x: MEAN[rank](x, window, stride, padding), (x,),
          pool(x, sizes, steps, pads, np.mean, 0))
    check(lambda x: MEAN[rank](x, window, stride, padding, count_include_pad=False), (x,),
          pool(x, sizes, steps, pads, np.nanmean, np.nan))
    turned = np.moveaxis(x, 1, -1)
    for pooling in (MAX, MEAN):
        np.testing.assert_array_equal(
            np.moveaxis(pooling[rank](turned, window, stride, padding, layout=LAST[rank]), -1, 1),
            pooling[rank](x, window, stride, padding))


def test_maxima_of_integers_dilation_and_nan() -> None:
    x = np.array([[[-5, -7, -3, -9]]])
    np.testing.assert_array_equal(nn.max_pool1d(x, 3, 1, 1), [[[-5, -3, -3, -3]]])
    np.testing.assert_array_equal(nn.max_pool1d(x, 2, 1, dilation=2), [[[-3, -7]]])
    np.testing.assert_array_equal(weft.compile(lambda x: nn.max_pool1d(x, 2))(
        np.array([[[1, np.nan, 2, 3]]])), [[[np.nan, 3]]])
    np.testing.assert_array_equal(
        weft.grad(lambda x: np.sum(nn.max_pool1d(x, 2)))(np.array([[[1.0, 1.0, 0.0, 2.0]]])),
        [[[0.5, 0.5, 0, 1]]])  # what is equal shares


def test_global_and_adaptive_pooling() -> None:
    x = RNG.normal(size=(2, 3, 7, 5))
    check(nn.global_avg_pool, (x,), x.mean((2, 3)))
    check(nn.global_max_pool, (x,), x.max((2, 3)))
    np.testing.assert_allclose(nn.global_avg_pool(x, "NHWC"), x.mean((1, 2)))
    parts = {7: [(0, 3), (2, 5), (4, 7)], 5: [(0, 3), (2, 5)]}
    for pooling, reduce in ((nn.adaptive_avg_pool, np.mean), (nn.adaptive_max_pool, np.max)):
        check(lambda x, pooling=pooling: pooling(x, (3, 2)), (x,), np.stack([np.stack([
            reduce(x[:, :, a:b, c:d], axis=(2, 3)) for c, d in parts[5]], -1)
            for a, b in parts[7]], -2))
    check(lambda x: nn.adaptive_avg_pool(x, 1, "NHWC"), (x,), x.mean((1, 2))[:, None, None])


X, W = np.zeros((1, 4, 5, 5)), np.zeros((6, 4, 3, 3))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: nn.conv2d(x, W[:, :3]), ShapeError, "conv2d of 4 channels .* take 3"),
    (lambda x: nn.conv2d(x, W[:, :2], groups=2, layout="NHWC"), ShapeError, "of 5 channels"),
    (lambda x: nn.conv2d(x, np.zeros((5, 2, 3, 3)), groups=2), ShapeError, "2 groups"),
    (lambda x: nn.conv2d(x[0], W), ShapeError, "4 dims, not 3 and 4"),
    (lambda x: nn.conv2d(x, W, stride=0), UnsupportedError, "stride=0"),
    (lambda x: nn.conv2d(x, W, padding="FULL"), UnsupportedError, "padding='FULL'"),
    (lambda x: nn.conv2d(x, W, padding=((1, 1),)), UnsupportedError, "give 2 pairs"),
    (lambda x: nn.conv2d(x, W, layout="CHWN"), UnsupportedError, "layout='CHWN'"),
    (lambda x: nn.conv1d(x, W), ShapeError, "conv1d takes x and w of 3 dims"),
    (lambda x: nn.max_pool2d(x, 6), ShapeError, "a window of 6 in an axis of 5"),
    (lambda x: nn.avg_pool1d(x, 2), ShapeError, "takes x of 3 dims, not 4"),
    (lambda x: nn.global_avg_pool(x[0, 0]), ShapeError, "3 to 5 dims"),
])
def test_refusals(call: Any, error: type[Exception], text: str) -> None:
    for run in (call, weft.compile(call)):
        with pytest.raises(error, match=text):
            run(X)


def test_same_needs_to_know_the_size_where_it_strides() -> None:
    run = weft.compile(dynamic={"x": {2: "h"}})(lambda x: nn.conv2d(x, W, 2, "SAME"))
    with pytest.raises(UnsupportedError, match="a size that each call tells"):
        run(X)
