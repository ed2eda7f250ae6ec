"""What builtins and ``math`` do in rewritten code, where they take traced numbers."""

from __future__ import annotations

import bisect
import functools
import math
from collections import deque
from collections.abc import Callable, Set, ValuesView
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.types import as_dtype
from ...face.source import user_loc
from ...numpy_api.elements.python_errors import grown, unless
from ...tracing.arrays.filtered import FilteredList
from ...tracing.arrays.grid import Grid
from ...tracing.arrays.growing import GrowingList
from ...tracing.arrays.selection import Selection
from ...tracing.arrays.variable import Variable
from ...tracing.classes import class_of, is_instance
from ...tracing.context.active import context_for
from ...tracing.context.distance import tell_bound
from ...tracing.operand import cast, contains_tracer, to_tracer
from ...tracing.values.pythons import as_python
from ...tracing.values.shown import check_rounds
from ...tracing.values.tracer import SymbolicDim, Tracer
from ..lists.filtered import Filtered, filtered, same
from ..loops.iterables import MultiIndex, Zipped, enumerated, placed, places, zipped
from ..loops.ranges import Range, python_int, raise_unless
from ..regions.comparisons import as_bool
from ..regions.state import context_of, is_traced, truth
from .maths import REAL
from .ordering import extreme, of_filtered, ordered
from .protocols import binary, iterated
from .texts import meaning


def _int(x: Any, *base: Any) -> Any:
    x = x[...] if isinstance(x, Variable) else x
    if base or not isinstance(x, Tracer):
        return int(x, *base) if base else int(x)
    return _number(x, int)


def _float(x: Any) -> Any:
    return _number(x, float)


def _complex(re: Any, im: Any = 0) -> Any:
    def made() -> Any:
        whole, turned = (cast(to_tracer(x), as_dtype(np.complex128)) for x in (re, im))
        return whole + 1j * turned

    ctx = context_for([re, im])
    assert ctx is not None
    found = ctx.apply(made, ())
    return Tracer(found.ctx, found.value, weak=True)


def _number(x: Any, kind: type) -> Any:
    """A traced number as an ``int`` or a ``float``."""
    if np.ndim(x) and x.size != 1:
        raise TypeError(f"only arrays of one element can be converted to {kind.__name__}")
    if np.ndim(x):
        kind(np.ones((1,) * np.ndim(x)))  # which some versions of NumPy refuse
        x = x.reshape(())
    ctx = context_for([x])
    assert ctx is not None
    one = ctx.apply(to_tracer, (x,))
    if one.dtype.kind == "c":
        one = ctx.apply(cast, (one, np.dtype(np.float64)))  # an error, or a warning
    return as_python(one, kind)


def converting(kind: Any) -> Callable[..., Any]:
    """A class of NumPy's scalars as a conversion: of an array to that dtype, of a number to a
    scalar."""
    def call(*args: Any) -> Any:
        ctx = context_for(args) if len(args) == 1 and _asks(args[0]) else None
        if ctx is None:
            return kind(*args)
        made = ctx.apply(lambda x: cast(to_tracer(x), np.dtype(kind)), args)
        return Tracer(made.ctx, made.value)

    return call


def _each_of(x: Any, *args: Any, **options: Any) -> Any:
    """The elements of one array that are read in turn, with their places if they are wanted."""
    if not isinstance(x, (list, tuple)) and (args or options):
        flags = args[0] if args else options.get("flags", ())
        known = isinstance(x, Tracer) and all(isinstance(dim, int) for dim in x.shape)
        if len(args) < 2 and options.keys() <= {"flags", "op_flags"} and known and (
                list(flags) == ["multi_index"]):
            return MultiIndex(x)
    if isinstance(x, (list, tuple)) or args or options:
        raise error("W113", "np.nditer of several arrays or with options is not supported in "
                            "traced code", locs=user_loc(), hint="loop over zip(a.flat, b.flat)")
    return x.flat


def _len(x: Any) -> Any:
    if isinstance(x, Range):
        return python_int(x.rounds)
    if isinstance(x, Grid) or (isinstance(x, Selection) and x.known is None):
        found = _int(x.shape[0])
        if isinstance(x, Selection) and x.mask.ndim == 1:
            tell_bound(found.ctx, found, x.mask.type.shape[0])
        return found
    size = x.shape[0] if getattr(x, "ndim", 0) else None
    return size if isinstance(size, SymbolicDim) else len(x)


def _round(x: Any, digits: Any = None) -> Any:
    check_rounds(class_of(x))
    return _int(np.rint(x)) if digits is None else np.round(x, digits)


def _bool(x: Any) -> Any:
    return as_bool(truth(x))


def _all(items: Any) -> Any:
    if isinstance(items, Selection):
        return as_bool(np.all(items))
    found: Any = True
    for flag in map(truth, items):
        if not is_traced(flag) and not flag:
            return False
        found = flag if found is True else found & flag
    return as_bool(found)


def _any(items: Any) -> Any:
    if isinstance(items, Selection):
        return as_bool(np.any(items))
    found: Any = False
    for flag in map(truth, items):
        if not is_traced(flag) and flag:
            return True
        found = flag if found is False else found | flag
    return as_bool(found)


def _sum(items: Any, start: Any = 0) -> Any:
    if isinstance(items, Range):
        return items.total(start)
    if isinstance(items, FilteredList):
        found = np.sum(items, axis=0)
        return start + (Tracer(found.ctx, found.value, weak=True) if items.weak else found)
    total = start
    for item in iterated(items):
        total = binary("+", total, item)
    return total


def _bisected(before: np.ufunc) -> Callable[..., Any]:
    """Where a number would be in a list in order: behind those that are before it."""
    def call(items: Any, x: Any, *bounds: Any, **options: Any) -> Any:
        if bounds or options:
            raise error("W113", "bisection of traced numbers with bounds or a key is not supported",
                        locs=user_loc(), hint="bisect a slice, and add where it begins")
        if isinstance(items, (list, tuple)) and not items:
            return 0
        if not isinstance(items, Selection):
            items = context_for([items, x]).apply(to_tracer, (items,))  # type: ignore[union-attr]
        return _int(np.sum(before(items, x)))

    return call


def _dist(p: Any, q: Any) -> Any:
    ctx = context_for([*p, *q])
    assert ctx is not None
    a, b = (ctx.apply(to_tracer, (x if is_traced(x) else list(x),)) for x in (p, q))
    gaps: Any = np.subtract(a, b)
    return _float(np.where(np.any(np.isinf(gaps)), np.inf, np.sqrt(np.sum(gaps * gaps))))


def _folded(function: Callable[[Any, Any], Any], start: int) -> Callable[..., Any]:
    """A function of any number of integers."""
    return lambda *args: functools.reduce(function, map(_int, args), start)


def _lcm(a: Any, b: Any) -> Any:
    """As a product of Python's numbers, which may not leave 64 bits."""
    return abs(a // _int(np.maximum(np.gcd(a, b), 1)) * b)


def _isqrt(x: Any) -> Any:
    """The whole part of a square root; that of a float may be one too many, or too few."""
    x = context_of(x).apply(unless, (x < 0, x, "W132", "isqrt() argument must be nonnegative"))
    root = np.minimum(np.sqrt(_float(x)).astype(np.int64), 3037000499)  # whose square is an int64
    root = np.where(root * root > x, root - 1, root)
    above = np.minimum(root + 1, 3037000499)
    return _int(np.where(above * above <= x, above, root))


def _real(name: str) -> Callable[..., Any]:
    """A function of ``math``: of Python's floats, whatever they were, and with such a result."""
    function = REAL[name]

    def call(*args: Any) -> Any:
        ctx = context_for(args)
        assert ctx is not None
        return _float(ctx.apply(function, tuple(_float(x) if is_traced(x) else x for x in args)))

    return call


def _log(x: Any, *base: Any) -> Any:
    one, *other = (_LOG(each) if is_traced(each) else math.log(each) for each in (x, *base))
    return one / other[0] if other else one


_LOG = _real("log")


def _ldexp(x: Any, i: Any) -> Any:
    x = _float(x) if is_traced(x) else x
    found = _float(np.ldexp(x, i))
    return context_of(found).apply(grown, (found, x), {"message": "math.ldexp: math range error"})


def _whole(function: np.ufunc) -> Callable[[Any], Any]:
    return lambda x: _int(function(x))


def _type(*args: Any) -> Any:
    """The class of what a value stands for."""
    return class_of(*args) if len(args) == 1 else type(*args)


def _asks(x: Any) -> bool:
    return is_traced(x) or isinstance(x, (Selection, Grid, Zipped, Range)) or (
        isinstance(x, (list, tuple)) and any(map(is_traced, x)))


def _on_traced(function: Callable[..., Any], traced: Callable[..., Any]) -> Callable[..., Any]:
    """``traced`` where an argument is, else the function itself."""
    def call(*args: Any, **options: Any) -> Any:
        return (traced if any(map(_asks, args)) else function)(*args, **options)

    return call


def _listing(function: Callable[..., Any], partly: bool = False) -> Callable[..., Any]:
    """A function of items, which may be a generator expression with traced conditions, or in
    anything that has as many however often it is asked."""
    def call(*args: Any, **options: Any) -> Any:
        return function(*(x.listed(partly) if isinstance(x, Filtered) else
                          [*x] if isinstance(x, _COLLECTIONS) else x for x in args), **options)

    return call


_COLLECTIONS = (ValuesView, Set, deque)


def _list(*items: Any) -> Any:
    if items and isinstance(items[0], Range):
        return filtered(items[0], None, same, True)
    items = tuple(map(iterated, items))
    if items and isinstance(items[0], FilteredList):
        return items[0].given if isinstance(items[0], GrowingList) else items[0]
    if items and isinstance(items[0], Selection) and items[0].known is None:
        return FilteredList(items[0].array, items[0].mask, items[0].locs, weak=False)
    return list(*items)


def _reversed(items: Any) -> Any:
    if type(items) is range:  # an iterator that a loop may take as the range that it is
        return Filtered(items[::-1], None, same, True)
    sized = isinstance(items, Tracer) and items.ndim and isinstance(items.shape[0], SymbolicDim)
    return items[::-1] if sized or isinstance(items, (Selection, Range)) else reversed(items)


def _map(function: Any, *items: Any) -> Any:
    """Functions have come as what they mean; classes may be dtypes, but not here."""
    if isinstance(function, type):
        function = meaning(function) or BUILTINS.get(function, function)
    return map(function, *items)


def _filter(function: Any, items: Any) -> Any:
    """As a generator expression with a condition, which may be a traced one."""
    test = BUILTINS.get(function, function) if function is not None else truth
    return Filtered(items, test, same, True)


def _next(items: Any, *default: Any) -> Any:
    """The first item that a condition chooses."""
    if isinstance(items, Filtered) and items.begins():
        return next(items, *default)
    items = items.listed(partly=True) if isinstance(items, Filtered) else items
    if not isinstance(items, (list, FilteredList)):
        return next(items, *default)
    if isinstance(items, list):
        return next(iter(items), *default)
    if not default:
        raise_unless(items.shape[0] > 0, StopIteration())
    return of_filtered(items, lambda chosen: chosen[0], *default)


def of_lists(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """A ufunc, or a method of one, that takes lists of traced values for arrays: NumPy does not
    look into them for who is to answer."""
    def call(*args: Any, **options: Any) -> Any:
        ctx = context_for([*args])
        if ctx is None:
            return ufunc(*args, **options)
        places = 1 if ufunc.__name__ == "at" else None  # of indices, which are no array
        return ufunc(*(ctx.apply(to_tracer, (x,)) if isinstance(x, (list, tuple)) and
                       at != places and contains_tracer(x) else x
                       for at, x in enumerate(args)), **options)

    return call


_MEANINGS: dict[Any, Callable[..., Any]] = {
    range: Range.of, max: extreme("max", _asks), min: extreme("min", _asks), int: _int,
    float: _float, bool: _bool, len: _len, round: _round, all: _all, any: _any,
    sum: _sum, sorted: ordered(_asks), complex: _complex, zip: zipped, enumerate: enumerated,
    math.floor: _whole(np.floor), math.ceil: _whole(np.ceil), math.trunc: _int,
    math.dist: _dist,
    math.isnan: np.isnan, math.isinf: np.isinf, math.isfinite: np.isfinite,
    np.nditer: _each_of, np.ndindex: places, np.ndenumerate: placed,
    bisect.bisect_left: _bisected(np.less), bisect.bisect_right: _bisected(np.less_equal),
    math.gcd: _folded(lambda a, b: _int(np.gcd(a, b)), 0), math.lcm: _folded(_lcm, 1),
    math.isqrt: _isqrt, **{getattr(math, name): _real(name) for name in REAL}, math.log: _log,
    math.ldexp: _ldexp,
}
BUILTINS: MappingProxyType[Any, Callable[..., Any]] = MappingProxyType({
    function: _listing(traced, function in (any, all)) if (
        function in (any, all, sum, max, min, sorted)) else (
        traced if function is np.ndindex else _on_traced(function, traced))
    for function, traced in _MEANINGS.items()} | {
        type: _type, isinstance: is_instance, list: _listing(_list), reversed: _reversed,
        next: _next, map: _map, filter: _filter})
