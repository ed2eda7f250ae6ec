"""Sliding windows over the axes of space, which convolutions and pooling share.

    x (n, c, 6, 6), windows of 3 at every second place   ->   (n, c, 2, 2, 3, 3)

The windows are a view: in compiled code no array of them is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ....ir.diagnose import Error, error
from ...face.source import user_loc

Pairs = tuple[tuple[int, int], ...]
_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def refused(code: str, message: str, hint: str) -> Error:
    """An error at the line of the user."""
    return error(code, message, locs=user_loc(), hint=hint)


def channels_last(layout: str | None, rank: int) -> bool:
    """Whether ``layout``, of which the first is the default, has the channels last."""
    known = _LAYOUTS[rank]
    if layout is not None and layout not in known:
        raise refused("W113", f"layout={layout!r}", f'use "{known[0]}" or "{known[1]}"')
    return layout == known[1]


def each(value: Any, rank: int, what: str, least: int = 1) -> tuple[int, ...]:
    """One integer for every axis of space, from one for all of them or from one for each."""
    found = (value,) * rank if np.ndim(value) == 0 else tuple(value)
    if len(found) != rank or not all(
            isinstance(one, (int, np.integer)) and one >= least for one in found):
        raise refused("W113", f"{what}={value!r}",
                      f"give one integer of at least {least}, or {rank} of them")
    return tuple(map(int, found))


def reach(window: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """The places from the first to the last element of a window, both counted."""
    return tuple((size - 1) * step + 1 for size, step in zip(window, dilation, strict=True))


def pairs(padding: Any, sizes: Sequence[Any], spans: Sequence[int], stride: Sequence[int]) -> Pairs:
    """How much to pad before and after each axis: for "VALID" nothing, for "SAME" so much that
    there are ceil(size / stride) windows, the odd one after; or one integer, or one for each axis,
    or a pair for each axis."""
    rank = len(spans)
    if isinstance(padding, str):
        if padding == "VALID":
            return ((0, 0),) * rank
        if padding != "SAME":
            raise refused("W113", f"padding={padding!r}", 'use "SAME", "VALID", or pairs')
        return tuple(map(_same, sizes, spans, stride))
    if np.ndim(padding) == 2:
        found = tuple(each(pair, 2, "padding", 0) for pair in padding)
        if len(found) != rank:
            raise refused("W113", f"padding={padding!r}", f"give {rank} pairs")
        return tuple((low, high) for low, high in found)
    return tuple((one, one) for one in each(padding, rank, "padding", 0))


def _same(size: Any, span: int, step: int) -> tuple[int, int]:
    if step == 1:
        total = span - 1
    elif isinstance(size, int):
        total = max((-(-size // step) - 1) * step + span - size, 0)
    else:
        raise refused("W113", f'padding="SAME" with stride {step} and a size that each call tells',
                      "give pairs")
    return total // 2, total - total // 2


def padded(x: Any, axes: Sequence[int], amounts: Pairs, value: Any) -> Any:
    """x with ``value`` around it; what is padded with a negative amount is cut off."""
    if any(min(pair) < 0 for pair in amounts):
        parts = [slice(None)] * x.ndim
        for axis, (low, high) in zip(axes, amounts, strict=True):
            parts[axis] = slice(max(-low, 0), min(high, 0) or None)
        x, amounts = x[tuple(parts)], tuple((max(low, 0), max(high, 0)) for low, high in amounts)
    if not any(map(any, amounts)):
        return x
    around = dict(zip(axes, amounts, strict=True))
    return np.pad(x, [around.get(axis, (0, 0)) for axis in range(x.ndim)], constant_values=value)


def windows(
    x: Any, axes: Sequence[int], window: Sequence[int], stride: Sequence[int],
    dilation: Sequence[int],
) -> Any:
    """The windows along ``axes``, whose elements are new axes at the end."""
    for axis, size in zip(axes, reach(window, dilation), strict=True):
        own = np.shape(x)[axis]
        if isinstance(own, int) and size > own:
            raise refused("W102", f"a window of {size} in an axis of {own}",
                          'make windows smaller, or pad: padding="SAME"')
    view = sliding_window_view(x, reach(window, dilation), axis=tuple(axes))
    places = dict(zip(axes, stride, strict=True))
    steps = [places.get(axis, 1) for axis in range(x.ndim)] + [*dilation]
    return view[tuple(slice(None, None, step) for step in steps)]
