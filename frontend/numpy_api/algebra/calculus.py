"""NumPy's differences, slopes and sums of areas."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.proof import differ
from ....ir.types import keeps_kind, number_kind
from ...tracing.operand import (
    as_int,
    axes_of,
    axis_of,
    broadcast,
    cast,
    contains_tracer,
    matched,
    required,
    reshape,
    strong,
    to_tracer,
)
from ...tracing.values.tracer import Tracer
from ..arrange.shape import moveaxis, ravel
from ..elements.elementwise import fresh
from ..registry import numpy

_BOOL, _F64 = np.dtype(bool), np.dtype(np.float64)


@numpy(np.diff, samples=(
    "z[3,4]", "x[5]", "x[3,5], 2, axis=0", "x[3], prepend=0, append=x[2]", "m[4]",
                         "x[2,3], axis=0, append=x[1,3]"))
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    x: Any = strong(a)
    count = as_int(n, "order of differences")
    if count < 0:
        raise error("W112", f"np.diff with n={count}: the order must not be negative")
    if not count:
        return x  # whatever the axis
    axis = axis_of(axis, x.ndim)
    before = (slice(None),) * axis
    if prepend is not None or append is not None:
        x = np.concatenate([_end(end, x, axis) for end in (prepend, x, append)
                            if end is not None], axis)
    for _ in range(count):
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = later != earlier if x.dtype == _BOOL else later - earlier
    return x


def _end(end: Any, x: Tracer, axis: int) -> Tracer:
    part = strong(end)
    shape = (*x.type.shape[:axis], 1, *x.type.shape[axis + 1:])
    return broadcast(part, shape) if part.ndim == 0 else part


@numpy(np.ediff1d, samples=("x[2,3]", "x[4], 2, [0, 2]", "i[3], x[()].astype(int)"))
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x: Any = ravel(ary)
    parts = [x[1:] - x[:-1]]
    for at, end in ((0, to_begin), (2, to_end)):
        if end is not None:
            part = ravel(end)
            if not keeps_kind(part.dtype, x.dtype):
                raise error("W111", "the ends of np.ediff1d do not fit the array",
                            types=[part.type, x.type], hint="convert them with .astype")
            parts.insert(at, cast(part, x.dtype))
    return np.concatenate(parts)


@numpy(np.trapezoid, samples=("x[5]", "x[3,4], dx=0.5, axis=0", "x[2,4], p[4]",
                              "x[3,2], x[3,2], axis=0", "x[3,2], [0, 1, 3], axis=0"))
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    values: Any = strong(y)
    axis = axis_of(axis, values.ndim)
    steps: Any = dx
    if x is not None:
        steps = strong(x)
        steps = diff(steps, axis=0 if steps.ndim == 1 else axis)
        if strong(x).ndim == 1:
            steps = reshape(steps, tuple(steps.type.size if at == axis else 1
                                         for at in range(values.ndim)))
    before = (slice(None),) * axis
    sums = values[(*before, slice(1, None))] + values[(*before, slice(None, -1))]
    return np.sum(steps * sums / 2.0, axis)


@numpy(np.gradient, samples=("z[5]",
    "x[5]", "x[4,3]", "x[5], 0.5", "x[4,3], 2, [0, 1, 3], edge_order=2", "x[5], p[5]",
    "x[4,3], axis=1, edge_order=2", "x[4,3], x[()], axis=0", "i[4]", "x[5], [0, 1, 4, 5, 7]"))
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x: Any = strong(f)
    result = x.dtype if x.dtype.kind in "fc" else _F64  # of bfloat16 too, which has kind V
    x = cast(x, _F64) if number_kind(x.dtype) in "iub" else x
    axes = axes_of(axis, x.ndim)
    varargs = tuple([strong(each) if contains_tracer(each) and isinstance(each, (list, tuple))
                     else each for each in varargs])
    if edge_order not in (1, 2):
        raise error("W113", f"np.gradient with edge_order={edge_order!r}: it is 1 or 2")
    if len(varargs) not in (0, 1, len(axes)) or (
            len(varargs) == 1 != len(axes) and np.ndim(varargs[0])):
        raise error("W102", "np.gradient takes one distance for all axes, or one for each")
    given = varargs or (1.0,)
    given = given * len(axes) if len(given) < len(axes) else given
    slopes = []
    for at, distances in zip(axes, given, strict=True):
        size, message = x.type.shape[at], f"np.gradient needs at least {edge_order + 1} elements"
        if isinstance(size, int) and size < edge_order + 1:
            raise error("W102", message, types=[x.type])
        if not isinstance(size, int):
            x = required(x, x.type.shape, least=(size - edge_order - 1,), code="W102",
                         message=message)
        steps = _steps(distances, x, at)
        if np.ndim(distances):
            points = strong(distances).type.size
            x = matched(x, (*x.type.shape[:at], points, *x.type.shape[at + 1:]))
        slopes.append(_slope(np.moveaxis(x, at, -1), steps, edge_order, at, result))
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _steps(distances: Any, x: Tracer, axis: int) -> Any:
    """What lies between the points of an axis: a number, or a row of them."""
    if np.ndim(distances) == 0:
        return distances
    known = not isinstance(distances, Tracer)
    row: Any = np.asarray(distances) if known else distances
    if row.ndim != 1 or differ(strong(row).type.size, x.type.shape[axis]):
        raise error("W102", "np.gradient takes numbers, or vectors as long as the axis")
    steps: Any = np.diff(row.astype(np.float64) if row.dtype.kind in "iu" else row)
    return steps[0] if known and (steps == steps[0]).all() else steps


def _slope(f: Any, steps: Any, order: int, axis: int, dtype: np.dtype[Any]) -> Any:
    """The slope along the last axis, which goes back to its place."""
    if np.ndim(steps) == 0:
        inside = (f[..., 2:] - f[..., :-2]) / (2.0 * steps)
        ends = [(steps, steps)] * 2
    else:
        d1, d2 = steps[:-1], steps[1:]
        inside = (-d2 / (d1 * (d1 + d2)) * f[..., :-2] + (d2 - d1) / (d1 * d2) * f[..., 1:-1]
                  + d1 / (d2 * (d1 + d2)) * f[..., 2:])
        ends = [(steps[0], steps[1]), (steps[-2], steps[-1])] if order == 2 else [
            (steps[0], steps[0]), (steps[-1], steps[-1])]
    if order == 1:
        first = (f[..., 1] - f[..., 0]) / ends[0][0]
        last = (f[..., -1] - f[..., -2]) / ends[1][1]
    else:
        first, last = _ends(f, ends, np.ndim(steps) == 0)
    parts = [cast(to_tracer(part), dtype) for part in (first[..., None], inside,
                                                         last[..., None])]
    whole: Any = np.concatenate(parts, -1)
    return fresh(moveaxis(whole, -1, axis))


def _ends(f: Any, ends: Any, even: bool) -> tuple[Any, Any]:
    """The slopes at both ends by a parabola through three points."""
    (d1, d2), (e1, e2) = ends
    if even:
        a, b, c = -1.5 / d1, 2.0 / d1, -0.5 / d1
    else:
        a, b, c = (-(2.0 * d1 + d2) / (d1 * (d1 + d2)), (d1 + d2) / (d1 * d2),
                   -d1 / (d2 * (d1 + d2)))
    first = a * f[..., 0] + b * f[..., 1] + c * f[..., 2]
    if even:
        a, b, c = 0.5 / e1, -2.0 / e1, 1.5 / e1
    else:
        a, b, c = (e2 / (e1 * (e1 + e2)), -(e2 + e1) / (e1 * e2),
                   (2.0 * e2 + e1) / (e2 * (e1 + e2)))
    return first, a * f[..., -3] + b * f[..., -2] + c * f[..., -1]


@numpy(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    x: Any = strong(p)
    axis = axis_of(axis, x.ndim)
    steps = diff(x, axis=axis)
    least = period / 2 if discont is None else discont
    kind = np.result_type(steps.dtype, period)
    if kind.kind in "iu":
        high, odd = divmod(period, 2)
    else:
        high, odd = period / 2, 0
    inside: Any = np.mod(steps - -high, period) + -high
    if odd == 0:
        inside = np.where((inside == -high) & (steps > 0), high, inside)
    correction: Any = np.where(abs(steps) < least, 0, inside - steps)
    before = (slice(None),) * axis
    rest = x[(*before, slice(1, None))] + np.cumsum(correction, axis)
    return np.concatenate([cast(part, kind) for part in (x[(*before, slice(0, 1))], rest)],
                          axis)
