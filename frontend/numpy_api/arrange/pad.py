"""``np.pad`` in all of its modes: one axis after the other, as NumPy does, so that corners agree.

    x                1 2 3        wrap       3 | 1 2 3 | 1 2
    edge         1 | 1 2 3 | 3 3  reflect    2 | 1 2 3 | 2 1
    symmetric    1 | 1 2 3 | 3 2  reflect, odd    0 | 1 2 3 | 4 5

What is added to an axis are views of it, or one row repeated, so a pad costs one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ...tracing.context.active import current
from ...tracing.operand import (
    as_number,
    axis_of,
    broadcast,
    cast,
    contains_tracer,
    is_number,
    required,
    spread,
    stored,
    strong,
    to_tracer,
)
from ...tracing.values.tracer import Tracer
from ..registry import numpy
from ..select.index import Span, take_spans

Pair = Sequence[Any]  # what is before an axis, and what is behind it
_STATISTICS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median})
_OPTIONS: Mapping[str, str] = MappingProxyType({
    "constant": "constant_values", "linear_ramp": "end_values", "reflect": "reflect_type",
    "symmetric": "reflect_type", **dict.fromkeys(_STATISTICS, "stat_length")})


@numpy(np.pad, samples=(
    "x[2,3], 1", "x[2,3], ((1, 0), (0, 2)), constant_values=3", "x[3,2], {0: (2, 1)}",
    "x[2,3], 1, constant_values=((1, 2), (3, 4))", "x[3], 2, constant_values=x[2]",
    "x[2,3], (1, 2), 'edge'", "x[3], 7, 'reflect'", "x[4], 2, 'reflect', reflect_type='odd'",
    "x[3,2], 3, 'symmetric'", "x[3], (5, 2), 'symmetric', reflect_type='odd'",
    "x[3,2], (4, 2), 'wrap'", "x[2,3], 2, 'linear_ramp', end_values=5", "x[3,2], 1, 'maximum'",
    "x[3,4], (1, 2), 'mean', stat_length=2", "x[5], 2, 'minimum', stat_length=((2, 3),)"))
def pad(
    array: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = None,
    end_values: Any = None, stat_length: Any = None, reflect_type: Any = None,
) -> Tracer:
    x = strong(array)
    given = {"constant_values": constant_values, "end_values": end_values,
             "stat_length": stat_length, "reflect_type": reflect_type}
    unknown = [name for name, value in given.items() if value is not None
               and name != _OPTIONS.get(mode)]
    if unknown:
        raise error("W113", f"np.pad with mode={mode!r} takes no {unknown[0]}=")
    if mode not in _OPTIONS and mode not in ("edge", "wrap", "empty"):
        raise error("W113", f"np.pad with mode={mode!r} is not supported",
                    hint="use one of NumPy's modes by name")
    widths = _widths(pad_width, x.ndim)
    value = given.get(_OPTIONS.get(mode, ""))
    if mode in ("constant", "empty") and (value is None or is_number(value)):
        low, high = zip(*widths, strict=True) if widths else ((), ())
        number = stored(0 if value is None else value, x.dtype).item()
        return current().emit("pad", x, low=low, high=high, interior=(0,) * x.ndim, value=number)
    options = [None] * x.ndim if mode in ("reflect", "symmetric") else _pairs(value, x.ndim)
    for axis, (width, option) in enumerate(zip(widths, options, strict=True)):
        if width != (0, 0):
            x = _padded(x, axis, width, mode, value if option is None else option)
    return x


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        found = [(0, 0)] * rank
        for axis, width in pad_width.items():
            found[axis_of(axis, rank)] = width if isinstance(width, tuple) else (width, width)
        pad_width = found
    widths = np.asarray(pad_width)
    if widths.size and (widths.dtype.kind not in "iu" or widths.min() < 0):
        raise error("W112", f"pad_width={pad_width!r} are not integers of at least 0")
    pairs = _pairs(widths, rank)
    return [(int(before), int(behind)) for before, behind in pairs]


def _pairs(value: Any, rank: int) -> list[Any]:
    """A pair for each axis of what is given as one, as a pair for all, or as pairs."""
    if value is None:
        return [None] * rank
    if isinstance(value, Tracer) or contains_tracer(value):
        rows: Any = broadcast(to_tracer(value), (rank, 2))
        return [(rows[axis, 0], rows[axis, 1]) for axis in range(rank)]
    array = np.asarray(value)
    if array.size == 2 and array.shape != (2, 1):
        array = array.ravel()
    return [tuple(row) for row in np.broadcast_to(array, (rank, 2)).tolist()]


def _padded(x: Tracer, axis: int, width: tuple[int, int], mode: str, option: Any) -> Tracer:
    """x with one axis padded."""
    if mode == "constant":
        return _joined(x, axis, tuple(_row(x, axis, count, value)
                                      for count, value in zip(width, option, strict=True)))
    size = x.type.shape[axis]
    if size == 0:
        raise error("W102", f"np.pad with mode={mode!r} of an axis without elements",
                    types=[x.type], hint="pad with a constant")
    if not isinstance(size, int):
        x = required(x, x.type.shape, least=(size - 1,), code="W102",
                     message=f"np.pad with mode={mode!r} of an axis without elements")
    if mode in _STATISTICS:
        return _with_statistic(x, axis, width, mode, option)
    if mode in ("reflect", "symmetric", "wrap") and size != 1:
        return _periodic(x, axis, width, mode, option)
    edges = _part(x, axis, 0, 1), _part(x, axis, size - 1, 1)
    if mode == "linear_ramp":
        return _joined(x, axis, _ramps(x, axis, width, edges, option or (0, 0)))
    return _joined(x, axis, tuple(_row(x, axis, count, edge)
                                  for count, edge in zip(width, edges, strict=True)))


def _part(x: Tracer, axis: int, start: Any, count: Any, step: int = 1) -> Any:
    """``count`` rows of an axis from one on, forwards or backwards."""
    spans = [Span(0, 1, dim) for dim in x.type.shape]
    spans[axis] = Span(start, step, count)
    return take_spans(x, spans)


def _row(x: Tracer, axis: int, count: int, value: Any) -> Tracer:
    """``count`` times a row, or a number."""
    shape = (*x.type.shape[:axis], count, *x.type.shape[axis + 1:])
    if is_number(value):
        return spread(stored(value, x.dtype).item(), x.dtype, shape)
    return broadcast(cast(value, x.dtype), shape)


def _joined(x: Tracer, axis: int, sides: Pair) -> Tracer:
    parts = [part for part in (sides[0], x, sides[1]) if part.type.shape[axis] != 0]
    return np.concatenate(parts, axis)  # type: ignore[return-value]


def _ramps(x: Tracer, axis: int, width: tuple[int, int], edges: Pair, ends: Pair) -> Pair:
    def ramp(count: int, edge: Any, end: Any) -> Any:
        return np.linspace(end, np.squeeze(edge, axis), count, endpoint=False, dtype=x.dtype,
                           axis=axis)

    before, behind = (ramp(*given) for given in zip(width, edges, ends, strict=True))
    return before, np.flip(behind, axis)


def _with_statistic(
    x: Tracer, axis: int, width: tuple[int, int], mode: str, lengths: Any
) -> Tracer:
    size = x.type.shape[axis]
    rows = []
    for side, count in enumerate(width):
        length = size if lengths is None else lengths[side]
        if length == 0 and mode in ("maximum", "minimum"):
            raise error("W102", f"np.pad with mode={mode!r} and stat_length=0: no value")
        if not isinstance(length, int) or not isinstance(size, int) or length < size:
            part = x if length is size else x[(slice(None),) * axis + (
                slice(None, length) if side == 0 else
                slice(as_number(size) - length if isinstance(size, int) else -length, None),)]
        else:
            part = x
        row: Any = _STATISTICS[mode](part, axis=axis, keepdims=True)
        rows.append(_row(x, axis, count, np.round(row) if x.dtype.kind in "iu" else row))
    return _joined(x, axis, (rows[0], rows[1]))


def _periodic(x: Tracer, axis: int, width: tuple[int, int], mode: str, kind: Any) -> Tracer:
    """Rows of the axis itself, backwards or from its other end; again where they do not suffice."""
    first = x.type.shape[axis]
    inside = mode == "reflect"  # the edge is not repeated
    before, behind = width
    if not isinstance(first, int):
        return _of_unknown_size(x, axis, width, mode, kind)
    while before or behind:
        size = x.type.shape[axis]
        period: Any = (size - inside) // (first - inside) * (first - inside)
        more, rest = min(before, period), min(behind, period)
        if mode == "wrap":
            sides = _part(x, axis, period - more, more), _part(x, axis, size - period, rest)
        else:
            sides = (_part(x, axis, more - 1 + inside, more, -1),
                     _part(x, axis, size - 1 - inside, rest, -1))
        if kind == "odd":
            edges = _part(x, axis, 0, 1), _part(x, axis, size - 1, 1)
            sides = (cast(2 * edges[0] - sides[0], x.dtype),
                     cast(2 * edges[1] - sides[1], x.dtype))
        x = _joined(x, axis, sides)
        before, behind = before - more, behind - rest
    return x


def _of_unknown_size(
    x: Tracer, axis: int, width: tuple[int, int], mode: str, kind: Any
) -> Tracer:
    """An axis of unknown size: each place is found by the period in which the rows come again.

    Where they are turned about the edges (``odd``), each period adds twice what lies between them:

        x    1 2 4    reflect, odd    -2 0 | 1 2 4 | 6 7 8 10
    """
    size: Any = as_number(x.type.shape[axis])
    place: Any = np.arange(size + sum(width), like=x) - width[0]
    before = (slice(None),) * axis
    if mode == "wrap":
        return x[(*before, place % size)]
    last = size - 1 if mode == "reflect" else size
    period = np.maximum(2 * last, 1)
    inside = place % period
    back = 2 * last - inside - (0 if mode == "reflect" else 1)
    turned = inside >= last
    rows: Any = x[(*before, np.where(turned, back, inside))]
    if kind != "odd":
        return rows  # type: ignore[no-any-return]
    column = (slice(None), *(None,) * (x.ndim - axis - 1))
    low, high = (_part(x, axis, at, 1) for at in (0, x.type.shape[axis] - 1))
    rounds: Any = (place // period)[column]
    turned = turned[column]
    once = np.where(turned, 2 * high - rows, rows)
    further = once + rounds.astype(x.dtype) * (2 * (high - low))
    found: Tracer = np.where(turned & (rounds == -1), 2 * low - rows,
                             np.where(rounds == 0, once, further))
    return found
