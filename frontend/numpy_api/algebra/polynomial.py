"""NumPy's convolutions, and polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ....ir.indices.proof import larger, nonnegative, smaller
from ....ir.types import C128, I64, as_dtype
from ...tracing.context.active import context_for, current
from ...tracing.operand import (
    array_dtype,
    as_int,
    as_number,
    broadcast,
    cast,
    contains_tracer,
    required,
    strong,
    to_tracer,
)
from ...tracing.values.tracer import Tracer
from ..arrange.join import concatenate
from ..arrange.shape import atleast, flip, ravel, sliding_window_view
from ..elements.elementwise import fresh
from ..registry import meant, numpy
from ..select.index import Span, getitem, take_spans

_F64 = np.dtype(np.float64)
_FEW = 16  # factors of a polynomial that are multiplied one by one


@numpy(np.convolve, samples=("x[5], x[3]", "x[2], x[4], 'same'", "x[5], x[2], mode='valid'",
                             "i[4], [1, 2]", "x[3], 2.0"))
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    x, y = (ravel(part) if strong(part).ndim == 0 else strong(part) for part in (a, v))
    if _longer(y, x) or (isinstance(x.type.size, int) and not isinstance(y.type.size, int)):
        x, y = y, x
    return _windows(x, flip(y) if y.ndim == 1 else y, mode, "np.convolve")


@numpy(np.correlate, samples=(
    "z[5], z[3]", "x[5], x[3]", "x[2], x[4], 'same'", "x[3], x[5], mode='full'",
                              "i[4], [1, 2]", "x[4], x[2], 'same'"))
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    x = strong(a)
    y: Any = strong(v)
    y = np.conjugate(y) if y.dtype.kind == "c" else y  # which makes int8 of bool
    if _longer(y, x):
        return flip(_windows(y, x, mode, "np.correlate"))
    return _windows(x, y, mode, "np.correlate")


def _longer(x: Tracer, y: Tracer) -> bool:
    sizes = (x.type.size, y.type.size)
    return isinstance(sizes[0], int) and isinstance(sizes[1], int) and sizes[0] > sizes[1]


def _windows(x: Tracer, y: Tracer, mode: Any, name: str) -> Any:
    """The sums of products of y with each part of x, as long as y, and beyond its ends."""
    kind = array_dtype(x, y)
    x, y = cast(x, kind), cast(y, kind)
    count = y.type.size
    if x.ndim != 1 or y.ndim != 1 or 0 in (x.type.size, count):
        raise error("W102", f"{name} takes vectors of one element or more", types=[x.type, y.type])
    mode = mode if not isinstance(mode, int) else ("valid", "same", "full")[mode]
    if mode not in ("full", "same", "valid"):
        raise error("W113", f"{name} with mode={mode!r}: modes are full, same and valid")
    x, y = (_some(part, f"{name} takes vectors of one element or more") for part in (x, y))
    if mode != "full" and not nonnegative(x.type.size - count):
        return _inner(_windows(x, y, "full", name), x.type.size, count, mode, name)
    low = {"full": count - 1, "same": count // 2, "valid": 0}[mode]
    high = {"full": count - 1, "same": count - count // 2 - 1, "valid": 0}[mode]
    x = current().emit("pad", x, low=(low,), high=(high,), interior=(0,),
                       value=kind.type(0).item())
    windows: Any = sliding_window_view(x, count)
    number, size = windows.type.shape[0], x.type.size - low - high
    if (low, high) == (0, 0):
        return cast(windows @ y, kind)  # of bfloat16, too
    if not nonnegative(size - count):
        return cast(_within(windows, y, low, size), kind)
    parts = [_within(_part(windows, 0, low), y, low, size)] if low != 0 else []
    parts.append(_part(windows, low, number - high) @ y)
    if high != 0:
        last = _part(windows, number - high, number)
        parts.append(_within(last, y, low - number + high, size))
    return cast(concatenate(parts), kind)


def _part(rows: Any, start: Dim, stop: Dim) -> Any:
    return take_spans(rows, [Span(start, 1, stop - start), Span(0, 1, rows.type.shape[1])])


def _within(windows: Any, y: Any, first: Dim, size: Dim) -> Any:
    """Sums over windows, of which the element ``first`` of the first one is the first of ``size``:
    what is not there is not multiplied, as the factor may be infinite."""
    row, column = (current().emit("iota", axis=axis, dtype=I64, shape=windows.type.shape)
                   for axis in (0, 1))
    place: Any = row + column
    inside = (place >= as_number(first)) & (place < as_number(first + size))
    return np.sum(np.where(inside, windows * y, 0), axis=1, dtype=windows.dtype)


def _some(x: Tracer, message: str) -> Tracer:
    """A vector that has an element, which each step checks where its size is unknown."""
    return x if nonnegative(x.type.size - 1) else required(
        x, x.type.shape, least=(x.type.size - 1,), code="W102", message=message)


def _inner(full: Tracer, first: Dim, second: Dim, mode: str, name: str) -> Any:
    """The part of all sums that a mode has, where either vector may be the longer one."""
    least, most = smaller(first, second), larger(first, second)
    if mode == "valid":
        return take_spans(full, [Span(least - 1, 1, most - least + 1)])
    start: Any = (as_number(least) - 1) // 2
    if name == "np.correlate":  # which turns the result where it swaps the vectors
        start = np.where(as_number(first) < as_number(second), as_number(least) // 2, start)
    return getitem(full, start + np.arange(as_number(most), like=full))


@numpy(np.polyval, samples=("x[4], x[3]", "[1, 2, 0.5], x[2,3]", "x[3], 2.0", "i[3], i[4]"))
def polyval(p: Any, x: Any) -> Any:
    at: Any = strong(x)
    if isinstance(p, Tracer) and not isinstance(p.type.shape[0], int):
        return meant("np.polyval")(p, at)
    result: Any = np.zeros_like(at)
    traced = context_for(p if isinstance(p, list | tuple) else (p,)) is not None
    for coefficient in (strong(p) if traced else np.asarray(p)):
        result = result * at + coefficient
    return result


@numpy(np.polyadd, samples=("x[4], x[2]", "x[2], [1, 2, 3]"))
def polyadd(a1: Any, a2: Any) -> Any:
    return np.add(*_aligned(a1, a2))


@numpy(np.polysub, samples=("x[4], x[2]", "x[2], [1, 2, 3]"))
def polysub(a1: Any, a2: Any) -> Any:
    return np.subtract(*_aligned(a1, a2))


def _aligned(a1: Any, a2: Any) -> tuple[Any, Any]:
    """Two polynomials with equally many coefficients."""
    x, y = atleast(1)(a1), atleast(1)(a2)
    more = y.type.size - x.type.size
    return _longer_by(x, larger(more, 0)), _longer_by(y, larger(-more, 0))


def _longer_by(x: Tracer, count: Dim) -> Tracer:
    """The same polynomial with more coefficients."""
    return current().emit("pad", x, low=(count,), high=(0,), interior=(0,),
                          value=x.dtype.type(0).item())


@numpy(np.polymul, samples=("x[3], x[2]", "x[3], [1, 2]", "2.0, x[3]"))
def polymul(a1: Any, a2: Any) -> Any:
    return convolve(*(_leading(a, "np.polymul") for a in (a1, a2)))


def _leading(a: Any, name: str) -> Any:
    """Coefficients from the first that is not 0 on, of which NumPy's result has as many."""
    if not contains_tracer(a):
        known = np.atleast_1d(a)
        return np.trim_zeros(known, "f") if np.any(known) else known[:1] * 0
    x: Any = atleast(1)(a)
    x = _longer_by(x, larger(1 - x.type.size, 0))
    first: Any = np.not_equal(x[:1], 0) | (x.shape[0] == 1)
    spare: Any = np.broadcast_to(cast(first, np.dtype(np.int64)) - 1, x.shape)
    return current().emit("ensure", x, spare, message=(
        f"the first coefficient of {name} is 0: how many its result has is not known"))


@numpy(np.polyder, samples=("x[4]", "x[5], 2", "i[4], 0", "x[1]"))
def polyder(p: Any, m: Any = 1) -> Any:
    x: Any = strong(p)
    order = as_int(m, "order of the derivative")
    if order < 0:
        raise error("W112", "the order of a derivative must not be negative")
    for _ in range(order):
        x = x[:-1]
        x = x * (x.shape[0] - np.arange(x.shape[0], like=x))
    return fresh(x)


@numpy(np.polyint, samples=("x[4]", "x[3], 2, [1, 2]", "x[2], 2, 3.0", "i[3]", "x[3], k=x[1]"))
def polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    x: Any = strong(p)
    order = as_int(m, "order of the integral")
    if order < 0:
        raise error("W112", "the order of an integral must not be negative")
    constants: Any = np.zeros(order)
    if k is not None:
        constants = to_tracer(k) if contains_tracer(k) else np.atleast_1d(k)
    if np.size(constants) == 1 and order > 1:
        constants = atleast(1)(constants)[0] * np.ones(order)
    for at in range(order):
        powers: Any = x.shape[0] - np.arange(x.shape[0], like=x)
        x = concatenate([x / powers, to_tracer(constants[at:at + 1])])
    return fresh(x)


@numpy(np.poly, samples=("x[3]", "i[2]", "x[3,3]"))
def poly(seq_of_zeros: Any) -> Any:
    """The coefficients of the polynomial with these zeros, or the eigenvalues of a matrix: complex
    where zeros are, which NumPy makes real for pairs of conjugates."""
    zeros: Any = atleast(1)(seq_of_zeros)
    real = zeros.dtype.kind != "c"
    if zeros.ndim == 2 and zeros.type.shape[0] == zeros.type.shape[1] != 0:
        zeros = np.linalg.eigvals(zeros)
    elif zeros.ndim != 1:
        raise error("W102", "np.poly takes a vector of zeros or a square matrix",
                    types=[zeros.type])
    if zeros.type.shape[0] == 0:
        return 1.0  # a number, as in NumPy
    narrow = (np.float32, np.complex64)
    kind = zeros.dtype if zeros.dtype.kind == "c" or zeros.dtype in narrow else _F64
    zeros, size = cast(zeros, kind), zeros.type.shape[0]
    result: Any = to_tracer(1.0, kind)[None]
    if not isinstance(size, int) or size > _FEW:
        result = meant("np.poly")(zeros)
    else:
        for zero in zeros:
            result = convolve(result, concatenate([to_tracer(1.0, kind)[None], -zero[None]]))
    return np.real(result) if real and kind.kind == "c" else result


@numpy(np.roots, samples=("x[4]", "z[3]"))
def roots(p: Any) -> Any:
    """Always complex; NumPy makes them real where all of them are. A step in which the first
    coefficient is 0 fails: how many roots there are would not be known."""
    found: Any = strong(p)
    if found.ndim > 1:
        raise error("W102", "np.roots takes a vector", types=[found.type])
    found = _leading(found, "np.roots")
    found = cast(found, found.dtype if found.dtype.kind in "fc" else _F64)
    size = found.shape[0]
    if size < 2:
        return current().full(0.0, C128, (0,))
    first = np.expand_dims(-found[1:] / found[0], 0)
    below = np.eye(size - 2, size - 1, dtype=found.dtype)
    zeros: Any = np.linalg.eigvals(concatenate([first, below]))
    return zeros[np.argsort(np.equal(zeros, 0), stable=True)]  # those of trailing zeros are last


@numpy(np.polydiv, samples=(
    "x[5], np.append(1, x[2])", "x[2], x[4]", "z[4], np.append(1, x[2])", "x[4], 2.0"))
def polydiv(u: Any, v: Any) -> Any:
    """Quotient and remainder. A step in which the remainder is used, and has fewer coefficients
    than a remainder may have, fails."""
    x, y = (np.add(atleast(1)(part), 0.0) for part in (u, v))
    kind = np.result_type(x.dtype, y.dtype)
    rest: Any = cast(x, kind)
    long, short = x.type.size, y.type.size
    if x.ndim != 1 or y.ndim != 1 or not isinstance(long, int) or not isinstance(short, int):
        raise error("W102", "np.polydiv takes vectors of known sizes", types=[x.type, y.type],
                    hint="give the dims no symbols")
    scale = 1.0 / y[0]
    quotient = []
    for at in range(long - short + 1):
        quotient.append(cast(scale * rest[at], kind))
        rest = current().api.update(rest, slice(at, at + short), rest[at:at + short] - quotient[
            -1] * y, "set")
    parts = quotient or [current().full(0.0, as_dtype(kind), ())]
    first = min(len(quotient), long - 1)
    tiny: Any = np.abs(rest[:first + 1]) <= 1e-8  # as np.allclose(rest[0], 0) has it
    spare = np.all(tiny[:first]) & (~tiny[first] | (first == long - 1))
    kept = rest[first:]
    return np.stack(parts), current().emit(
        "ensure", kept, broadcast(cast(spare, np.dtype(np.int64)) - 1, kept.type.shape),
        message="the remainder of np.polydiv begins with 0: how many coefficients it has is not "
                "known")


@numpy(np.polyfit, samples=("x[7], x[7], 2", "x[5], x[5,2], 1", "x[6], x[6], 2, w=p[6]"))
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None,
            cov: Any = False) -> Any:
    """The polynomial of a degree that comes nearest to points, by the least squares."""
    order = as_int(deg, "degree") + 1
    places, values = (np.add(part, 0.0) for part in (strong(x), strong(y)))
    if order < 1 or places.ndim != 1 or values.ndim not in (1, 2):
        raise error("W102", "np.polyfit takes a degree of 0 or more and vectors of places and "
                            "values", types=[strong(x).type, strong(y).type])
    if full or cov:
        raise error("W113", "np.polyfit with full= or cov= is not supported",
                    hint="call np.linalg.lstsq(np.vander(x, deg + 1), y)")
    places = _some(strong(places), "np.polyfit of no points")
    size = places.shape[0]
    if rcond is None and isinstance(size, int):  # else that of lstsq, which is the same
        rcond = size * np.finfo(places.dtype).eps
    powers: Any = np.vander(places, order)
    if w is not None:
        weights = np.add(strong(w), 0.0)
        powers = powers * weights[:, None]
        values = values * (weights if values.ndim == 1 else weights[:, None])
    scale: Any = np.sqrt(np.sum(powers * powers, axis=0))
    found = np.linalg.lstsq(powers / scale, values, rcond)[0]
    return found / (scale if values.ndim == 1 else scale[:, None])
