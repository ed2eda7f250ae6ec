"""What NumPy's functions, ufuncs and indices mean on traced values: the way into the rows.

A function that has no row is refused by name (W113) with a way round it, never run on something
else by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.diagnose import Error, OutOfRangeError, UnsupportedError, error
from ...ir.indices.proof import differ
from ...ir.types import keeps_kind
from ..tracing.arrays import views
from ..tracing.arrays.grid import Grid
from ..tracing.arrays.recorded import original
from ..tracing.arrays.selection import Selection
from ..tracing.arrays.variable import broadcasts, takes
from ..tracing.context.active import current
from ..tracing.context.recorder import TraceContext
from ..tracing.operand import (
    broadcast,
    cast,
    convertible,
    is_weak,
    kind_of,
    masked,
    matched,
    reshape,
    shape_of,
    strong,
    to_tracer,
)
from ..tracing.values.drawn import refused_draw
from ..tracing.values.operation import Operation
from ..tracing.values.tracer import Tracer
from . import missing  # noqa: F401  it and the rooms below add their rows
from .algebra import calculus, contract, fourier, lapack, linalg, polynomial  # noqa: F401
from .arrange import create, diagonal, join, pad, ranges, shape  # noqa: F401
from .binding import bound, parameters
from .elements import apply, bits, packed, pointwise, special  # noqa: F401
from .elements import elementwise as ufuncs
from .host import Warned, on_host
from .order import scan, search, slices, sort  # noqa: F401
from .order.at import extreme_at
from .reductions import histogram, nan, quantile, reduce, statistics  # noqa: F401
from .registry import ROWS, full_name, meant
from .select import counted, grids, masks, runs, sets, take  # noqa: F401
from .select.chosen import ANYWHERE, ON_SELECTIONS
from .select.index import getitem
from .select.parts import Part, measured
from .select.update import update

# Functions whose results are repeated where out= is larger, as those of ufuncs are.
_OF_UFUNCS = frozenset((np.clip, np.fix, np.isposinf, np.isneginf, np.percentile,
                         np.quantile, np.nanpercentile, np.nanquantile))
_FOLDS = frozenset(("reduce", "accumulate", "reduceat"))
_SUMS = frozenset((np.add, np.multiply))  # which widen integers, and take dtype= themselves
_FOR_ALL = frozenset((np.equal, np.not_equal))  # which have an answer for any object


def _without_none(ufunc: np.ufunc, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands; what is None is found out here, before dtypes are asked for."""
    if ufunc in _FOR_ALL or all(x is not None for x in operands):
        return operands
    return tuple([to_tracer(x) if x is None else x for x in operands])


class NumpyApi:
    """The meaning of a tracer's operations; see ``scope.Api``. With ``host``, which knows what was
    warned of, NumPy itself runs what is refused."""

    def __init__(self, host: Warned | None = None) -> None:
        self.host = host

    def stem(self, ufunc: np.ufunc) -> str:
        """The name of a result that is not simply one op's."""
        return "" if ufunc in ufuncs.ROWS else ufunc.__name__

    def operator(self, ufunc: np.ufunc, operands: tuple[Any, ...]) -> Any:
        operands = _without_none(ufunc, operands)
        if grids.first_grid(operands) is not None:
            return self._gridded(ufunc, operands, {})
        chosen = masks.first_chosen(operands)
        if chosen is not None:
            return chosen.__array_ufunc__(ufunc, "__call__", *operands)
        try:
            return ufuncs.operator(ufunc, operands)
        except UnsupportedError as problem:
            return self._refused(ufuncs.name_of(ufunc), ufunc, operands, {}, problem)

    def ufunc(
        self, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        if method == "__call__":
            inputs = _without_none(ufunc, inputs)
        grid = grids.first_grid(inputs)
        if grid is not None:
            return grid.__array_ufunc__(ufunc, method, *inputs, **options)
        chosen = masks.first_chosen(inputs)
        if chosen is not None and method == "__call__":
            return chosen.__array_ufunc__(ufunc, method, *inputs, **options)
        try:
            if method in _FOLDS and ufunc not in _SUMS and options.get("dtype") is not None:
                inputs = ufuncs.converted(ufunc, inputs[0], options.pop("dtype")), *inputs[1:]
            if method == "accumulate":
                (out,) = options.pop("out", None) or (None,)
                found = scan.accumulate(ufunc, *inputs, **options)
                return found if out is None else ufuncs.store(f"np.{ufunc.__name__}", out, found)
            if method == "at" and _is_mask_list(inputs[1]):
                inputs = inputs[0], np.asarray(inputs[1]), *inputs[2:]
            if method == "at" and len(inputs) == 3 and extreme_at(ufunc, *inputs):
                return None
            if method == "reduce" and options.keys() <= {"axis", "keepdims"} and (
                    scan.reduces(ufunc, *inputs, **options)):
                return scan.last_of(ufunc, *inputs, **options)
            return ufuncs.call(ufunc, method, inputs, options)
        except OutOfRangeError as problem:
            return counted.instead(getattr(ufunc, method), problem, *inputs, **options)
        except UnsupportedError as problem:
            name = ufuncs.name_of(ufunc) + (f".{method}" if method != "__call__" else "")
            return self._refused(name, getattr(ufunc, method), inputs, options, problem)

    def method(self, x: Any, name: str, problem: Error) -> Any:
        """A method of NumPy's arrays that traced ones do not have."""
        function: Any = getattr(np.ndarray, name)
        row = ROWS.get(getattr(np, name, function))
        if row is not None and row.instead and not problem.hint.startswith(row.instead):
            problem = error(problem.code, problem.message, locs=problem.locs, types=problem.types,
                            hint=f"use {row.instead}")
        if self.host is None or not callable(function):
            raise problem

        def call(*args: Any, **options: Any) -> Any:
            return x.context().apply(self._refused, (
                f"x.{name}", function, (x, *args), options, problem))

        return call

    def _refused(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...],
        options: dict[str, Any], problem: Error,
    ) -> Any:
        """What to do with something that cannot be traced: an error, or a call of the host."""
        if self.host is not None and options.get("out") is None:
            return on_host(name, function, args, options, problem, self.host)
        raise problem

    def has_row(self, function: Callable[..., Any]) -> bool:
        """Whether there is a meaning of a function of NumPy's."""
        row = ROWS.get(function)
        return row is not None and row.body is not None

    def function(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """A function that NumPy dispatches. Raises UnsupportedError (W113)."""
        function = original(function)
        if grids.first_grid(args) is not None:
            return self._gridded(function, args, options)
        chosen = masks.first_chosen(args)
        if chosen is not None and (function in ANYWHERE or (
                args[0] is chosen and function in ON_SELECTIONS)):
            return self.selected(function, chosen, args, options)
        try:
            return self._traced(function, args, options)
        except OutOfRangeError as problem:
            return counted.instead(function, problem, *args, **options)
        except UnsupportedError as problem:
            return self._refused(full_name(function), function, args, options, problem)

    def _traced(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        row, name = ROWS.get(function), full_name(function)
        if row is None or row.body is None:
            raise refused_draw(made_here=True) or error(
                "W113", f"{name} is not supported yet in traced code",
                hint=f"use {row.instead}" if row else
                     "write it with other functions, or call it outside of the traced function")
        body = row.body
        positional, named = bound(name, function, body, args, options)
        # What hands its options on to a function of the user's has no out= of its own.
        handed = any(each.kind is each.VAR_KEYWORD for each in parameters(body).values())
        out = None if handed else named.pop("out", None)
        if out is None:
            found = body(*positional, **named)
            if not row.scalar:
                return found
            return tuple(map(_as_scalar, found)) if type(found) is tuple else _as_scalar(found)
        # Of complex numbers a real result is one of their squares, not of their real parts.
        first = next(iter((*positional, *named.values())), None)
        if "dtype" in parameters(body) and isinstance(out, Tracer) and (
                out.dtype.kind == "c" or getattr(first, "dtype", out.dtype).kind != "c"):
            named.setdefault("dtype", out.dtype)
        return ufuncs.store(name, out, body(*positional, **named),
                            whole=function not in _OF_UFUNCS)

    def special(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """A Python function of scipy.special, or a method of a class of NumPy."""
        return (special.FUNCTIONS.get(name) or meant(name))(*args, **options)

    def selected(
        self, function: Callable[..., Any], x: Selection, args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        try:
            return self._selected(function, x, args, options)
        except OutOfRangeError as problem:
            return counted.instead(function, problem, *args, **options)

    def _selected(
        self, function: Callable[..., Any], x: Selection, args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        if grids.first_grid(args) is not None or grids.takes(function, x, args, options):
            return grids.call(function, args, options)
        found = ANYWHERE.get(function) if x.known is None else None
        if x.known is None and args and args[0] is x:
            found = ON_SELECTIONS.get(function, found)
        return masks.reduced(function, x, args, options) if found is None else found(
            *args, **options)

    def gridded(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        return self._gridded(original(function), args, options)

    def _gridded(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        try:
            return grids.call(function, args, options)
        except OutOfRangeError as problem:
            return counted.instead(function, problem, *args, **options)

    def getitem(self, x: Any, index: Any) -> Any:
        index = masks.as_mask(x, index)
        if masks.is_mask(index):
            return masks.select(x, index)
        given, index = index, measured(shape_of(x), index)
        chosen = masks.among(x, index)
        chosen = grids.grid_of(x, index) if chosen is None else chosen
        chosen = runs.run_of(x, index) if chosen is None else chosen
        if chosen is not None:
            return chosen
        if isinstance(index, tuple) and any(
                masks.is_mask(item) and isinstance(item, Tracer) and item.ndim for item in index):
            return self.getitem(x, masks.as_places(index))
        try:
            result = getitem(x, index)
        except OutOfRangeError as problem:
            return counted.taken(x, index, problem)
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
        result.taken = (x, given)
        return result

    def realised(self, x: Selection | Grid) -> Tracer:
        return counted.realised(x)

    def masked(self, mask: Any, x: Any, y: Any) -> Tracer:
        return masked(mask, x, y)

    def aligned(self, x: Any, mask: Any) -> Any:
        return runs.aligned(x, mask)

    def update(self, x: Any, index: Any, value: Any, mode: str) -> Tracer:
        try:
            return update(x, index, value, mode)
        except OutOfRangeError as problem:
            return counted.updated(x, index, value, mode, problem)

    def astype(self, x: Any, dtype: Any, casting: str = "unsafe") -> Tracer:
        wanted = np.dtype(dtype)
        if casting != "unsafe":
            convertible(x, wanted, casting, "astype")
        if wanted.kind in "SUOM":
            raise error("W111", f"traced numbers cannot be converted to {wanted}",
                        types=[x.type], hint="convert the result outside of the traced function")
        return ufuncs.fresh(cast(strong(x), wanted))

    def view(self, x: Any, dtype: Any) -> Tracer:
        return bits.view(x, dtype)

    def flat(self, x: Any) -> Tracer:
        made = Tracer(current(), current().value_of(shape.ravel(x)))
        views.link(made, views.Indexed(x, shape.ravel, lambda base, new: reshape(
            new, base.type.shape)))
        return made

    def assign(self, variable: Any, value: Any, op: str, change: np.ufunc) -> Operation:
        """Assign to a variable in the current trace; what updates it broadcasts, and ``change``
        (np.negative for a subtraction) comes first. Raises FeedError (W304)."""
        ctx: TraceContext = current()
        numbers = is_weak(value) and takes(variable.dtype, np.dtype(kind_of(value)))
        if isinstance(value, (list, tuple)):
            numbers = keeps_kind(strong(value).dtype, variable.dtype)
        new = strong(to_tracer(value, variable.dtype if numbers else None))
        if change is not np.positive:
            new = ufuncs.apply(change, (new,))
        if op == "update_var" and broadcasts(new.type.shape, variable.shape):
            new = broadcast(new, variable.shape)
        if len(new.type.shape) == len(variable.shape) and not any(
                map(differ, new.type.shape, variable.shape)):
            new = matched(new, variable.shape)  # which each step checks
        return ctx.write(op, variable, new)


def _as_scalar(x: Any) -> Any:
    """A result as a scalar of NumPy's, if it has no dims."""
    whole = isinstance(x, Tracer) and not x.ndim and not x.is_scalar
    return Tracer(current(), current().value_of(x)) if whole else x


def _is_mask_list(index: Any) -> bool:
    """True for a mask that is written as a list of Python's truths."""
    return isinstance(index, list) and bool(index) and all(isinstance(x, bool) for x in index)


def _is_basic(item: Any) -> bool:
    """True for what makes a view when an array is indexed with it."""
    if isinstance(item, Tracer):
        return item.ndim == 0
    return item is None or item is Ellipsis or isinstance(item, (slice, Part, int, np.integer))
