"""What NumPy's functions mean on traced values: the tables put together, and the way into them.

A function that is in no table is refused by name (W113) with a way round it, never run on
something else by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..ir.diagnose import error
from . import contract, reducing, shaping, ufuncs, views
from .context import TraceContext
from .indexing import getitem
from .operand import (
    cast,
    common_shape,
    is_number,
    is_weak,
    result_dtype,
    shape_of,
    spread,
    spread_all,
    strong,
    to_tracer,
)
from .scope import current
from .tracer import Operation, Tracer
from .updates import update

_BOOL = np.dtype(bool)


def where(condition: Any, *branches: Any) -> Tracer:
    if len(branches) != 2:
        raise error("W113", "np.where with a condition alone is not supported: the size of its "
                            "result is not known before the function runs",
                    hint="use np.where(condition, a, b)")
    shape = common_shape((condition, *branches))
    dtype = result_dtype(*branches)
    mask = spread(to_tracer(condition, _BOOL), _BOOL, shape)
    return current().emit("select", mask, *(spread(x, dtype, shape) for x in branches))


def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    bounds = [bound for bound in (low, high) if bound is not None]
    x, *spreaded = spread_all(a, *bounds)
    if low is not None:
        x = current().emit("maximum", x, spreaded.pop(0))
    return ufuncs.fresh(x) if high is None else current().emit("minimum", x, spreaded[0])


def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    x: Any = strong(a)
    y: Any = strong(b)
    if y.dtype.kind in "iub":
        y = cast(y, np.result_type(y.dtype, np.dtype(np.float64)))
    close = ((abs(x - y) <= atol + rtol * abs(y)) & np.isfinite(y)) | (x == y)
    return close | (np.isnan(x) & np.isnan(y)) if equal_nan else close


def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return np.all(isclose(a, b, rtol, atol, equal_nan))


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    a: Any = strong(x)
    if a.dtype.kind != "f":
        return ufuncs.fresh(a)
    limits = np.finfo(a.dtype)
    a = np.where(np.isnan(a), nan, a)
    a = np.where(a == np.inf, float(limits.max) if posinf is None else posinf, a)
    return np.where(a == -np.inf, float(limits.min) if neginf is None else neginf, a)


def round_(a: Any, decimals: int = 0) -> Any:
    x: Any = strong(a)
    if x.dtype.kind != "f":
        if decimals < 0:
            raise error("W113", "rounding integers to tens is not supported", types=[x.type])
        return ufuncs.fresh(x)
    if decimals == 0:
        return np.rint(x)
    scale = 10.0 ** abs(decimals)
    return np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale


def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    x: Any = strong(a)
    axis = axis % x.ndim
    before = (slice(None),) * axis
    for _ in range(n):
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = later != earlier if x.dtype == _BOOL else later - earlier
    return x


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    dtype = result_dtype(*choicelist, default)
    result = spread(default, dtype, common_shape((*condlist, *choicelist, default)))
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = where(condition, spread(choice, dtype, shape_of(choice)), result)
    return result


def result_type(*operands: Any) -> np.dtype[Any]:
    return result_dtype(*(current().full(0, np.dtype(x)) if isinstance(x, (type, np.dtype, str))
                          else x for x in operands))


_ELEMENTWISE: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType({
    np.where: where, np.clip: clip, np.isclose: isclose, np.allclose: allclose,
    np.nan_to_num: nan_to_num, np.round: round_, np.around: round_, np.diff: diff,
    np.select: select, np.result_type: result_type,
    **({np.fix: np.trunc} if hasattr(np, "fix") else {}),  # NumPy is about to drop it
    np.real: lambda val: strong(val),
    np.iscomplexobj: lambda x: False, np.isrealobj: lambda x: True,
})

FUNCTIONS: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType({
    **_ELEMENTWISE, **shaping.TABLE, **reducing.TABLE, **contract.TABLE})

# What to write instead, where a short way exists.
_INSTEAD: Mapping[str, str] = MappingProxyType({
    "cumsum": "np.tril(np.ones((n, n))) @ x for short arrays",
    "prod": "np.exp(np.sum(np.log(x))) for positive x, or multiply the parts",
    "nonzero": "np.where(condition, a, b) with both values",
    "argwhere": "np.where(condition, a, b) with both values",
    "unique": "call it outside of the traced function",
    "column_stack": "np.stack(arrays, axis=1)", "dstack": "np.stack(arrays, axis=2)",
    "nanmean": "np.where(np.isnan(x), 0, x) and a count",
    "nansum": "np.sum(np.where(np.isnan(x), 0, x))", "diagonal": "x[np.arange(n), np.arange(n)]",
    "diag": "x[np.arange(n), np.arange(n)], or np.eye(n) * x", "copyto": "np.where(mask, a, b)",
    "linspace": "np.arange(n) * step + start", "median": "call it outside of the function",
})


class NumpyApi:
    """The meaning of a tracer's operations; see ``context.Api``."""

    def stem(self, ufunc: np.ufunc) -> str:
        """The name of a result that is not simply one op's."""
        return "" if ufunc in ufuncs.ROWS else ufunc.__name__

    def operator(self, ufunc: np.ufunc, operands: tuple[Any, ...]) -> Any:
        return ufuncs.operator(ufunc, operands)

    def ufunc(
        self, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        return ufuncs.call(ufunc, method, inputs, options)

    def function(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """A function that NumPy dispatches. Raises DTypeError (W113) if it is not supported."""
        found = FUNCTIONS.get(function)
        name = _full_name(function)
        if found is None:
            instead = _INSTEAD.get(function.__name__)
            raise error("W113", f"{name} is not supported in traced code",
                        hint=f"use {instead}" if instead else "write it with other functions, or "
                             "call it outside of the traced function")
        options = {key: value for key, value in options.items()
                   if value is not np._NoValue and not (key == "out" and value is None)
                   and not (key == "where" and value is True)}
        _check_options(name, found, args, options)
        return found(*args, **options)

    def getitem(self, x: Any, index: Any) -> Tracer:
        result = getitem(x, index)
        if not isinstance(x, Tracer):
            return result
        items = index if isinstance(index, tuple) else (index,)
        if not all(map(_is_basic, items)) or (
                result.ndim == 0 and not any(item is Ellipsis for item in items)):
            return ufuncs.fresh(result)  # a copy; a number, not an array without dims
        if result is x:  # all of it
            result = Tracer(current(), current().value_of(x))
            views.link_whole(result, x)
        elif views.owner(result) is not views.owner(x):
            views.link(result, views.Link(x, lambda base: getitem(base, index),
                                          lambda base, new: update(base, index, new, "set")))
        result.taken = (x, index)
        return result

    def update(self, x: Any, index: Any, value: Any, mode: str) -> Tracer:
        return update(x, index, value, mode)

    def astype(self, x: Any, dtype: Any) -> Tracer:
        return ufuncs.fresh(cast(strong(x), np.dtype(dtype)))

    def assign(self, variable: Any, value: Any, op: str) -> Operation:
        """Assign to a variable in the current trace. Raises FeedError (W304)."""
        ctx: TraceContext = current()
        dtype = variable.dtype if is_weak(value) or (
            is_number(value) and not isinstance(value, np.generic)) else None
        return ctx.write(op, variable, strong(to_tracer(value, dtype)))


def _is_basic(item: Any) -> bool:
    """True for what makes a view when an array is indexed with it."""
    if isinstance(item, Tracer):
        return item.ndim == 0
    return item is None or item is Ellipsis or isinstance(item, (slice, int, np.integer))


def _full_name(function: Callable[..., Any]) -> str:
    module = (getattr(function, "__module__", "") or "numpy").replace("numpy", "np", 1)
    return f"{module}.{function.__name__}"


def _check_options(
    name: str, found: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> None:
    """Refuse options by name before Python does with a TypeError from inside."""
    code = getattr(found, "__code__", None)
    if code is None or code.co_flags & 0x08:  # a ufunc, or takes any keyword
        return
    known = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    unknown = [key for key in options if key not in known]
    if unknown:
        raise error("W113", f"option {unknown[0]}= of {name} is not supported",
                    hint="leave it out" if unknown[0] != "where" else "choose with np.where first")
    if len(args) > code.co_argcount and not code.co_flags & 0x04:
        raise error("W113", f"{name} with {len(args)} positional arguments is not supported",
                    hint="name the options")
