"""NumPy's functions that work element by element and are no ufuncs: choose, compare, round."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.types import BF16, float_info, number_kind
from ...tracing.arrays import views
from ...tracing.context.active import current
from ...tracing.operand import (
    cast,
    common_shape,
    fits_int64,
    is_number,
    kind_of,
    masked,
    reshape,
    result_dtype,
    shape_of,
    spread,
    spread_all,
    stored,
    strong,
    to_tracer,
)
from ...tracing.values.tracer import Tracer
from ..registry import numpy
from .elementwise import answer, fresh, store

_BOOL = np.dtype(bool)
_MISSING: Any = object()


@numpy(np.where, samples=("m[3], z[3], 1j", "m[3,4], x[3,4], x[4]", "m[3], x[3], 0"))
def where(condition: Any, x: Any = _MISSING, y: Any = _MISSING) -> Any:
    if x is _MISSING and y is _MISSING:
        return np.nonzero(strong(condition))
    if x is _MISSING or y is _MISSING:
        raise error("W112", "np.where takes a condition alone, or two values to choose from",
                    hint="use np.where(condition, a, b)")
    shape = common_shape((condition, x, y))
    dtype = result_dtype(x, y)
    mask = spread(to_tracer(condition, _BOOL), _BOOL, shape)
    # Here NumPy converts Python integers as it does arrays, of int64 or uint64: they wrap round.
    arrays = [strong(x) if kind_of(x) is int and dtype.kind in "iu" and (
        not isinstance(x, int) or fits_int64(x) or 0 < x < 1 << 64) else x for x in (x, y)]
    made = current().emit("select", mask, *(spread(x, dtype, shape) for x in arrays))
    made.made = True  # an array, also one without dims
    return made


@numpy(np.clip, samples=("x[3,4], -1, 1", "x[3,4], None, x[4]", "i[4], 1, 2"))
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if isinstance(kind_of(a), np.dtype) and kind_of(a).kind in "iu":  # type: ignore[union-attr]
        # A bound that no element can pass bounds nothing, even where the dtype does not hold it.
        limits = np.iinfo(kind_of(a))
        low = None if isinstance(low, int) and low <= limits.min else low
        high = None if isinstance(high, int) and high >= limits.max else high
    bounds = [bound for bound in (low, high) if bound is not None]
    x, *spreaded = spread_all(a, *bounds)
    if x.type.dtype == BF16 and len(bounds) == 2:  # as NumPy has it, whose own clip lacks bfloat16
        x, *spreaded = (cast(part, np.dtype(np.float32)) for part in (x, *spreaded))
    # Of equal numbers the first one stays. Complex ones may differ in the sign of a zero: between
    # two bounds NumPy's clip takes the bound, as one of them alone, which is a maximum, does not.
    to_bounds = x.dtype.kind == "c" and len(bounds) == 2
    for op, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            pair = (x, spreaded.pop(0))
            x = current().emit(op, *(pair[::-1] if to_bounds else pair))
    return x if bounds else fresh(x)


@numpy(np.isclose, samples=("x[4], x[4]", "x[4], 0.5, rtol=1"))
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    # Numbers of Python stay what they are: of the dtype of what stands beside them.
    x, y = ((z if type(z) in (int, float, complex) else strong(z)) for z in (a, b))
    if type(y) is int:
        y = float(y)
    elif isinstance(y, Tracer) and y.dtype.kind in "iub":
        y = cast(y, np.result_type(y.dtype, np.dtype(np.float64)))
    close = ((abs(x - y) <= atol + rtol * abs(y)) & np.isfinite(y)) | (x == y)
    return close | (np.isnan(x) & np.isnan(y)) if equal_nan else close


@numpy(np.allclose, samples=("x[4], x[4]",))
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return answer(isclose(a, b, rtol, atol, equal_nan))


def _in_place_unless_copied(function: Callable[..., Any]) -> Callable[..., Any]:
    """``copy=False`` asks for the result in the argument's own memory."""
    @functools.wraps(function)
    def call(x: Any, copy: Any = True, **options: Any) -> Any:
        result = function(x, **options)
        return result if copy else store(f"np.{function.__name__}", x, result)

    return call


@numpy(np.nan_to_num, scalar=True, samples=("z[3]", "x[4]",))
@_in_place_unless_copied
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    a: Any = strong(x)
    if a.dtype.kind == "c":
        parts = (nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf)
                 for part in (np.real(a), np.imag(a)))
        return current().emit("complex", *parts)
    if number_kind(a.dtype) != "f":
        return fresh(a)
    limits = float_info(a.dtype)
    high, low, other = (to_tracer(x, a.dtype) for x in (
        float(limits.max) if posinf is None else posinf,
        float(limits.min) if neginf is None else neginf, nan))
    # What one replaces is not looked at again: nan= may be infinite.
    finite = masked(np.isneginf(a), low, masked(np.isposinf(a), high, a))
    return masked(np.isnan(a), other, finite)


@numpy(np.round, np.around, method=True, samples=("z[3], 1", "x[4]", "x[4], 2", "i[4] * 7, -1"))
def round_(a: Any, decimals: int = 0) -> Any:
    x: Any = strong(a)
    if x.dtype == _BOOL:
        if decimals != 0:
            raise error("W111", "truth values are not rounded to decimals", types=[x.type],
                        hint="convert them: x.astype(np.float64)")
        return np.rint(x)
    if x.dtype.kind == "c":
        parts = round_(np.real(x), decimals), round_(np.imag(x), decimals)
        return current().emit("complex", *parts)
    if number_kind(x.dtype) != "f":
        if decimals >= 0:
            return fresh(x)
        tens = np.rint(cast(x, np.dtype(np.float64)) / 10.0**-decimals) * 10.0**-decimals
        return cast(strong(tens), x.dtype)
    if decimals == 0:
        return np.rint(x)
    scale = x.dtype.type(10.0 ** abs(decimals))  # of its dtype: NumPy rounds halves at each step
    return np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale


@numpy(np.select, samples=("[m[4], m[4]], [x[4], 2 * x[4]], -1",))
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise error("W102", f"np.select has {len(condlist)} conditions and {len(choicelist)} "
                            "choices",
                    hint="give a choice for each condition; default= is for the rest")
    dtype = result_dtype(*choicelist, default)
    shape = common_shape((*condlist, *choicelist, default))
    result = spread(stored(default, dtype) if is_number(default) else default, dtype, shape)
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = where(condition, spread(choice, dtype, shape_of(choice)), result)
    return result


@numpy(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    return result_dtype(*(current().full(0, np.dtype(x)) if isinstance(x, (type, np.dtype, str))
                          else x for x in arrays_and_dtypes))


@numpy(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(np.dtype(kind_of(from_)), to, casting)


@numpy(np.common_type)
def common_type(*arrays: Any) -> Any:
    return np.common_type(*(np.empty(0, kind_of(x)) for x in arrays))


@numpy(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    src = strong(src) if isinstance(src, Tracer) else src  # whatever is lost of a Python number
    extra = len(shape_of(src)) - len(shape_of(dst))
    if extra > 0 and set(shape_of(src)[:extra]) == {1}:  # as in an assignment
        src = reshape(strong(src), shape_of(src)[extra:])
    store("np.copyto", dst, src, where, casting)


def _part(x: Tracer, name: str) -> Tracer:
    """One part of complex numbers; what is written to it is written to them."""
    def put(base: Any, new: Any) -> Any:
        parts = {part: current().emit(part, base) for part in ("real", "imag")} | {name: new}
        return current().emit("complex", *parts.values())

    made = current().emit(name, x)
    views.link(made, views.Indexed(x, lambda base: current().emit(name, base), put))
    return made


def _of_number(x: Tracer, name: str) -> Tracer:
    """One part of a number, which is one of Python's where that is."""
    if x.dtype.kind == "c":
        part = current().emit(name, x)
    else:
        part = x if name == "real" else current().full(0, x.dtype)
    made = Tracer(current(), current().value_of(part))
    made.weak = x.weak
    return made


@numpy(np.real, samples=("z[3]", "x[4]", "1j * x[3]"))
def real(val: Any) -> Any:
    if isinstance(val, Tracer) and val.is_scalar:
        return _of_number(val, "real")
    x = strong(val)
    return _part(x, "real") if x.dtype.kind == "c" else x


@numpy(np.imag, samples=("z[3]", "x[4]", "i[2]", "1j * x[3]"))
def imag(val: Any) -> Any:
    if isinstance(val, Tracer) and val.is_scalar:
        return _of_number(val, "imag")
    x: Any = strong(val)
    return _part(x, "imag") if x.dtype.kind == "c" else np.zeros_like(x)


@numpy(np.isreal, samples=("z[3]", "x[4]",))
def isreal(x: Any) -> Any:
    return np.equal(imag(x), 0)


@numpy(np.iscomplex, samples=("z[3]", "x[4]",))
def iscomplex(x: Any) -> Any:
    return np.not_equal(imag(x), 0)


@numpy(np.real_if_close, samples=("x[4]",))
def real_if_close(a: Any, tol: Any = 100) -> Any:
    x = strong(a)
    if x.dtype.kind == "c":
        raise error("W113", "np.real_if_close of complex numbers is not supported: its dtype "
                            "depends on values", types=[x.type], hint="take x.real")
    return x


@numpy(np.angle, samples=("z[3]", "x[4]", "x[4], deg=True", "x[4] * 1j + 1"))
def angle(z: Any, deg: Any = False) -> Any:
    x: Any = strong(z)
    turned: Any = np.arctan2(imag(x), real(x)) if x.dtype.kind == "c" else np.arctan2(0, x)
    return cast(turned * (180 / np.pi), turned.dtype) if deg else turned


@numpy(np.isposinf, samples=("x[4]", "1 / np.floor(p[4] - 1)"))
def isposinf(x: Any) -> Any:
    return np.equal(strong(x), np.inf)


@numpy(np.isneginf, samples=("x[4]", "-1 / np.floor(p[4] - 1)"))
def isneginf(x: Any) -> Any:
    return np.equal(strong(x), -np.inf)


@numpy(np.sinc, scalar=True, samples=("x[4]", "i[3]"))
def sinc(x: Any) -> Any:
    # Near 0 the series, whose derivatives are those of the function: of the quotient, all of their
    # digits cancel.
    turned: Any = np.pi * strong(x)
    near = np.abs(turned) < 0.25
    small = np.where(near, turned, 0)  # others would overflow, in gradients too
    square = small * small
    series: Any = 1 - square / 110
    for factor in (72, 42, 20, 6):
        series = 1 - square / factor * series
    away = np.where(near, 1, turned)
    return np.where(near, series, np.sin(away) / away)


@numpy(np.iscomplexobj, samples=("x[4]",))
def iscomplexobj(x: Any) -> bool:
    return strong(x).dtype.kind == "c"


@numpy(np.isrealobj, samples=("x[4]",))
def isrealobj(x: Any) -> bool:
    return strong(x).dtype.kind != "c"


if hasattr(np, "fix"):  # NumPy is about to drop it
    numpy(np.fix, samples=("x[4]",))(lambda x, out=None: np.trunc(strong(x), out=out))
