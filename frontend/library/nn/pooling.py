"""Pooling over windows of one to three axes of space.

A maximum, or a sum, over a window is one along each axis after the other, of slices of the array:

    max_pool2d(x, 2):   rows = maximum(x[..., 0::2, :], x[..., 1::2, :])
                        maximum(rows[..., 0::2], rows[..., 1::2])
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracing.context.active import composite
from .windows import channels_last, each, padded, pairs, reach, refused


@composite
def max_pool1d(x: Any, window: Any, stride: Any = None, padding: Any = "VALID", dilation: Any = 1,
               layout: str = "NCW") -> Any:
    """The maximum of each window along one axis of x (N, C, W); see ``max_pool2d``."""
    return _max_pool("max_pool1d", 1, x, window, stride, padding, dilation, layout)


@composite
def max_pool2d(x: Any, window: Any, stride: Any = None, padding: Any = "VALID", dilation: Any = 1,
               layout: str = "NCHW") -> Any:
    """The maximum of each window of x (N, C, H, W), in each channel; NaN counts as the maximum.

    ``stride`` is that of the windows' size if it is not given; what ``padding`` adds is less than
    every number (its forms are those of ``conv2d``). Where several elements are the maximum, they
    share the gradient. Raises ShapeError (W102), UnsupportedError (W113).

    >>> max_pool2d(np.arange(16.0).reshape(1, 1, 4, 4), 2)[0, 0]
    array([[ 5.,  7.],
           [13., 15.]])
    """
    return _max_pool("max_pool2d", 2, x, window, stride, padding, dilation, layout)


@composite
def max_pool3d(x: Any, window: Any, stride: Any = None, padding: Any = "VALID", dilation: Any = 1,
               layout: str = "NCDHW") -> Any:
    """The maximum of each window of x (N, C, D, H, W); see ``max_pool2d``."""
    return _max_pool("max_pool3d", 3, x, window, stride, padding, dilation, layout)


@composite
def avg_pool1d(x: Any, window: Any, stride: Any = None, padding: Any = "VALID",
               count_include_pad: bool = True, layout: str = "NCW") -> Any:
    """The mean of each window along one axis of x (N, C, W); see ``avg_pool2d``."""
    return _avg_pool("avg_pool1d", 1, x, window, stride, padding, count_include_pad, layout)


@composite
def avg_pool2d(x: Any, window: Any, stride: Any = None, padding: Any = "VALID",
               count_include_pad: bool = True, layout: str = "NCHW") -> Any:
    """The mean of each window of x (N, C, H, W), in each channel.

    What ``padding`` adds counts as zeros, or with ``count_include_pad=False`` not at all; see
    ``max_pool2d`` for the rest.
    """
    return _avg_pool("avg_pool2d", 2, x, window, stride, padding, count_include_pad, layout)


@composite
def avg_pool3d(x: Any, window: Any, stride: Any = None, padding: Any = "VALID",
               count_include_pad: bool = True, layout: str = "NCDHW") -> Any:
    """The mean of each window of x (N, C, D, H, W); see ``avg_pool2d``."""
    return _avg_pool("avg_pool3d", 3, x, window, stride, padding, count_include_pad, layout)


@composite
def global_avg_pool(x: Any, layout: str | None = None) -> Any:
    """The mean of each channel: x (N, C, ...) or, with a layout such as "NHWC", (N, ..., C) to
    (N, C)."""
    return np.mean(x, axis=_space("global_avg_pool", x, layout))


@composite
def global_max_pool(x: Any, layout: str | None = None) -> Any:
    """The maximum of each channel; see ``global_avg_pool``."""
    return np.max(x, axis=_space("global_max_pool", x, layout))


@composite
def adaptive_avg_pool(x: Any, size: Any, layout: str | None = None) -> Any:
    """Means over windows that are such that ``size`` of them cover each axis of space: window i of
    n runs from floor(i * size / n) to ceil((i + 1) * size / n). Sizes have to be known while
    compiling. x (N, C, H, W) to (N, C, size, size).

    >>> adaptive_avg_pool(np.arange(5.0).reshape(1, 1, 5), 2)
    array([[[1., 3.]]])
    """
    for axis, (starts, stops) in _adaptive("adaptive_avg_pool", x, size, layout).items():
        places = np.arange(x.shape[axis])
        inside = (places >= starts[:, None]) & (places < stops[:, None])
        weights = (inside / (stops - starts)[:, None]).astype(np.result_type(x))
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ weights.T, -1, axis)
    return x


@composite
def adaptive_max_pool(x: Any, size: Any, layout: str | None = None) -> Any:
    """Maxima over the windows of ``adaptive_avg_pool``."""
    for axis, (starts, stops) in _adaptive("adaptive_max_pool", x, size, layout).items():
        longest = int((stops - starts).max())
        x = functools.reduce(np.maximum, [
            np.take(x, np.minimum(starts + at, stops - 1), axis=axis) for at in range(longest)])
    return x


def _max_pool(
    name: str, rank: int, x: Any, window: Any, stride: Any, padding: Any, dilation: Any,
    layout: str,
) -> Any:
    kind = np.result_type(x)
    least = np.iinfo(kind).min if kind.kind in "iu" else -np.inf
    return _pool(name, rank, x, window, stride, padding, dilation, layout, least, np.maximum)


def _avg_pool(
    name: str, rank: int, x: Any, window: Any, stride: Any, padding: Any,
    count_include_pad: bool, layout: str,
) -> Any:
    def total(x: Any) -> Any:
        return _pool(name, rank, x, window, stride, padding, 1, layout, 0, np.add)

    if count_include_pad or padding == "VALID":
        return total(x) * (1 / math.prod(each(window, rank, "window")))
    last = channels_last(layout, rank)
    shape = [1 if axis in (0, x.ndim - 1 if last else 1) else x.shape[axis]
             for axis in range(x.ndim)]
    return total(x) / total(np.ones(shape, np.result_type(x), like=x))


def _pool(
    name: str, rank: int, x: Any, window: Any, stride: Any, padding: Any, dilation: Any,
    layout: str, value: Any, combine: Callable[[Any, Any], Any],
) -> Any:
    first = 1 if channels_last(layout, rank) else 2
    if np.ndim(x) != rank + 2:
        raise refused("W102", f"{name} takes x of {rank + 2} dims, not {np.ndim(x)}",
                      "x has a batch and a channel axis")
    axes = range(first, first + rank)
    sizes, rates = each(window, rank, "window"), each(dilation, rank, "dilation")
    steps = sizes if stride is None else each(stride, rank, "stride")
    spans = reach(sizes, rates)
    amounts = pairs(padding, [x.shape[axis] for axis in axes], spans, steps)
    x = padded(x, axes, amounts, value)
    for axis, step, rate, span in zip(axes, steps, rates, spans, strict=True):
        if isinstance(x.shape[axis], int) and x.shape[axis] < span:
            raise refused("W102", f"{name}: a window of {span} in an axis of {x.shape[axis]}",
                          "make windows smaller, or pad")
        x = functools.reduce(combine, [
            x[_along(axis, slice(start, start - span + 1 or None, step))]
            for start in range(0, span, rate)])
    return x


def _along(axis: int, part: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, part)


def _space(name: str, x: Any, layout: str | None) -> tuple[int, ...]:
    rank = np.ndim(x) - 2
    if rank not in (1, 2, 3):
        raise refused("W102", f"{name} takes x of 3 to 5 dims, not {np.ndim(x)}",
                      "x has a batch and a channel axis")
    last = layout is not None and channels_last(layout, rank)
    return tuple(range(1, rank + 1)) if last else tuple(range(2, rank + 2))


def _adaptive(
    name: str, x: Any, size: Any, layout: str | None
) -> dict[int, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Where the windows along each axis begin and end."""
    axes = _space(name, x, layout)
    found = {}
    for axis, count in zip(axes, each(size, len(axes), "size"), strict=True):
        own = x.shape[axis]
        if not isinstance(own, int):
            raise refused("W113", f"{name} of a size known at the call only",
                          "use global_avg_pool, or avg_pool2d")
        at = np.arange(count)
        found[axis] = at * own // count, -(-(at + 1) * own // count)
    return found
