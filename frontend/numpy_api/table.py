"""What NumPy's functions mean on traced values: the tables put together, and the way into them.

A function that is in no table is refused by name (W113) with a way round it, never run on
something else by chance.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ..tracing import views
from ..tracing.operand import (
    as_int,
    axis_of,
    broadcast,
    cast,
    common_shape,
    fits_int64,
    is_weak,
    kind_of,
    result_dtype,
    shape_of,
    spread,
    spread_all,
    strong,
    to_tracer,
)
from ..tracing.recorder import TraceContext, current
from ..tracing.tracer import Operation, Tracer
from ..tracing.variable import broadcasts
from . import contract, create
from . import elementwise as ufuncs
from . import reduce as reducing
from . import shape as shaping
from .index import getitem
from .update import update

_BOOL = np.dtype(bool)


_MISSING: Any = object()


def where(condition: Any, x: Any = _MISSING, y: Any = _MISSING) -> Tracer:
    if x is _MISSING or y is _MISSING:
        raise error("W113", "np.where with a condition alone is not supported: the size of its "
                            "result is not known before the function runs",
                    hint="use np.where(condition, a, b)")
    shape = common_shape((condition, x, y))
    dtype = result_dtype(x, y)
    mask = spread(to_tracer(condition, _BOOL), _BOOL, shape)
    # Here NumPy converts Python integers as it does arrays, of int64 or uint64: they wrap round.
    arrays = [strong(x) if kind_of(x) is int and dtype.kind in "iu" and (
        not isinstance(x, int) or fits_int64(x) or 0 < x < 1 << 64) else x for x in (x, y)]
    return current().emit("select", mask, *(spread(x, dtype, shape) for x in arrays))


def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if isinstance(kind_of(a), np.dtype) and kind_of(a).kind in "iu":  # type: ignore[union-attr]
        # A bound that no element can pass bounds nothing, even where the dtype does not hold it.
        limits = np.iinfo(kind_of(a))
        low = None if isinstance(low, int) and low <= limits.min else low
        high = None if isinstance(high, int) and high >= limits.max else high
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
    # What one replaces is not looked at again: nan= may be infinite.
    finite = np.where(a == np.inf, float(limits.max) if posinf is None else posinf, a)
    finite = np.where(a == -np.inf, float(limits.min) if neginf is None else neginf, finite)
    return np.where(np.isnan(a), nan, finite)


def _in_place_unless_copied(function: Callable[..., Any]) -> Callable[..., Any]:
    """``copy=False`` asks for the result in the argument's own memory."""
    @functools.wraps(function)
    def call(x: Any, copy: Any = True, **options: Any) -> Any:
        result = function(x, **options)
        return result if copy else ufuncs.store(f"np.{function.__name__}", x, result)

    return call


def round_(a: Any, decimals: int = 0) -> Any:
    x: Any = strong(a)
    if x.dtype == _BOOL:
        return np.rint(x)
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
    before = (slice(None),) * axis_of(axis, x.ndim)
    count = as_int(n, "order of differences")
    if count < 0:
        raise error("W112", f"np.diff with n={count}: the order must not be negative")
    for _ in range(count):
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = later != earlier if x.dtype == _BOOL else later - earlier
    return x


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    dtype = result_dtype(*choicelist, default)
    result = spread(default, dtype, common_shape((*condlist, *choicelist, default)))
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = where(condition, spread(choice, dtype, shape_of(choice)), result)
    return result


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    return result_dtype(*(current().full(0, np.dtype(x)) if isinstance(x, (type, np.dtype, str))
                          else x for x in arrays_and_dtypes))


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if casting != "same_kind":
        raise error("W113", f"np.copyto with casting={casting!r} is not supported",
                    hint="convert the values with .astype first")
    ufuncs.store("np.copyto", dst, src, where)


_ELEMENTWISE: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType({
    np.where: where, np.clip: clip, np.isclose: isclose, np.allclose: allclose,
    np.nan_to_num: _in_place_unless_copied(nan_to_num), np.round: round_, np.around: round_,
    np.diff: diff,
    np.select: select, np.result_type: result_type, np.copyto: copyto,
    **({np.fix: np.trunc} if hasattr(np, "fix") else {}),  # NumPy is about to drop it
    np.real: lambda val: strong(val),
    np.iscomplexobj: lambda x: False, np.isrealobj: lambda x: True,
})

FUNCTIONS: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType({
    **_ELEMENTWISE, **create.TABLE, **shaping.TABLE, **reducing.TABLE, **contract.TABLE})

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
    "diag": "x[np.arange(n), np.arange(n)], or np.eye(n) * x",
    "linspace": "np.arange(n) * step + start", "median": "call it outside of the function",
})


class NumpyApi:
    """The meaning of a tracer's operations; see ``scope.Api``."""

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
        """A function that NumPy dispatches. Raises UnsupportedError (W113)."""
        found = FUNCTIONS.get(function)
        name = _full_name(function)
        if found is None:
            instead = _INSTEAD.get(function.__name__)
            raise error("W113", f"{name} is not supported yet in traced code",
                        hint=f"use {instead}" if instead else "write it with other functions, or "
                             "call it outside of the traced function")
        positional, named = _bound(name, function, found, args, options)
        out = named.pop("out", None)
        if out is None:
            return found(*positional, **named)
        if "dtype" in _parameters(found) and isinstance(out, Tracer):
            named.setdefault("dtype", out.dtype)
        return ufuncs.store(name, out, found(*positional, **named))

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
        elif not views.is_view_of(result, x):
            views.link(result, views.Indexed(
                x, lambda base: getitem(base, index),
                lambda base, new: update(base, index, new, "set")))
        result.taken = (x, index)
        return result

    def update(self, x: Any, index: Any, value: Any, mode: str) -> Tracer:
        return update(x, index, value, mode)

    def astype(self, x: Any, dtype: Any) -> Tracer:
        return ufuncs.fresh(cast(strong(x), np.dtype(dtype)))

    def assign(self, variable: Any, value: Any, op: str, change: np.ufunc) -> Operation:
        """Assign to a variable in the current trace; what updates it broadcasts, and ``change``
        (np.negative for a subtraction) comes first. Raises FeedError (W304)."""
        ctx: TraceContext = current()
        numbers = is_weak(value)
        if isinstance(value, (list, tuple)):
            numbers = np.can_cast(strong(value).dtype, variable.dtype, "same_kind")
        new = strong(to_tracer(value, variable.dtype if numbers else None))
        if change is not np.positive:
            new = ufuncs.apply(change, (new,))
        if op == "update_var" and broadcasts(new.type.shape, variable.shape):
            new = broadcast(new, variable.shape)
        return ctx.write(op, variable, new)


def _is_basic(item: Any) -> bool:
    """True for what makes a view when an array is indexed with it."""
    if isinstance(item, Tracer):
        return item.ndim == 0
    return item is None or item is Ellipsis or isinstance(item, (slice, int, np.integer))


@functools.cache
def _full_name(function: Callable[..., Any]) -> str:
    module = (getattr(function, "__module__", "") or "numpy").replace("numpy", "np", 1)
    return f"{module}.{function.__name__}"


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """The parameters of a function; None for a built-in one that does not tell."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    signature = _signature(function)
    return signature.parameters if signature is not None else {}


class _Binding:
    """How the arguments of NumPy's ``function`` reach ``found``; looked up once for a function."""

    def __init__(self, function: Callable[..., Any], found: Callable[..., Any]) -> None:
        signature = _signature(function) or _signature(found)
        assert signature is not None
        self.signature = signature
        self.known = _parameters(found) if not isinstance(found, np.ufunc) else {}
        parameters = signature.parameters.values()
        self.plain = bool(self.known) and not any(
            p.kind is p.VAR_POSITIONAL for p in parameters)
        named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self.defaults = {p.name: p.default for p in named}
        self.positional = [p.name for p in named if p.kind is not p.KEYWORD_ONLY]
        self.required = {p.name for p in named if p.default is p.empty}
        self.keywords = {p.name for p in named if p.kind is not p.POSITIONAL_ONLY}

    def by_name(self, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any] | None:
        """The arguments by name, if that is all there is to tell: ``Signature.bind`` is slow."""
        named = dict(zip(self.positional, args, strict=False))
        fits = (self.plain and len(args) <= len(self.positional)
                and self.keywords >= options.keys() and not (named.keys() & options.keys()))
        named.update(options)
        return named if fits and named.keys() >= self.required else None

    def left_out(self, key: str, value: Any) -> bool:
        """True for a value that says what holds without it."""
        default = self.defaults[key]
        return value is np._NoValue or value is default or (
            key not in self.known and _is_default(key, value, default))


@functools.cache
def _binding(function: Callable[..., Any], found: Callable[..., Any]) -> _Binding | None:
    """None for functions that do not tell their parameters."""
    return _Binding(function, found) if _signature(function) or _signature(found) else None


def _bound(
    name: str, function: Callable[..., Any], found: Callable[..., Any], args: tuple[Any, ...],
    options: dict[str, Any],
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call of NumPy's ``function``, by the names it gives them, for ``found``.

    Options that say what holds anyhow are dropped. Raises UnsupportedError (W113) for those that
    ``found`` does not have."""
    binding = _binding(function, found)
    if binding is None:
        return list(args), options
    known = binding.known
    positional: list[Any] = []
    named: dict[str, Any] = {}
    given = binding.by_name(args, options)
    if given is None:
        signature = binding.signature
        try:
            bound = signature.bind(*args, **options)
        except TypeError as problem:
            raise error("W113", f"{name}: {problem}",
                        hint=f"its arguments are {signature}") from None
        given = {}
        for key, value in bound.arguments.items():
            parameter = signature.parameters[key]
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += value
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(value)
            elif not known:  # a ufunc
                positional.append(value)
            else:
                given[key] = value
    named.update({key: value for key, value in given.items() if not binding.left_out(key, value)})
    unknown = [key for key in named if known and key not in known and key != "out"]
    if unknown:
        raise error("W113", f"option {unknown[0]}= of {name} is not supported",
                    hint="leave it out, and write what it does with other NumPy functions"
                         if unknown[0] != "where" else "choose with np.where first")
    return positional, named


def _is_default(key: str, value: Any, default: Any) -> bool:
    """True for an option that says what NumPy does without it."""
    return (key == "where" and value is True) or (
        isinstance(value, (str, int)) and type(value) is type(default) and value == default)
