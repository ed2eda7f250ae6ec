"""What rewritten statements and expressions do; see the package's docstring.

On plain values each does what Python does. On traced ones the parts are traced as regions of a
``cond`` or ``while`` node, from copies of what they change, and names are bound to its results.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType
from typing import Any

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.graph import Builder
from ...ir.ops.region import ENDLESS
from ...ir.ops.table import OPS
from ...ir.types import BOOL
from .. import tree
from ..tracing.arrays.buffer import TracedBuffer
from ..tracing.arrays.variable import Variable
from ..tracing.recorder import TraceContext, context_for, current
from ..tracing.source import user_loc
from ..tracing.trace import Region, trace_region
from ..tracing.tracer import SymbolicDim, Tracer
from ..transforms import regions
from .calls import BUILTINS, Range, converted
from .exits import RESULT
from .state import (
    UNBOUND,
    Fresh,
    alike,
    fresh,
    is_array,
    is_traced,
    leaves,
    rebuilt,
    values,
    written,
)

__all__ = ["UNBOUND", "both", "called", "chained", "check", "choose", "either", "for_",
           "given", "if_", "negated", "raised", "result", "truth", "values", "while_"]

Part = Callable[[], Any]
Get = Callable[[], tuple[Any, ...]]
Put = Callable[[Sequence[Any]], None]


def called(function: Any) -> Any:
    """What rewritten code calls instead of a function: its rewritten copy, or what a builtin means
    on traced values."""
    return BUILTINS.get(function, function) if isinstance(
        function, (BuiltinFunctionType, type)) else given(function)


def given(x: Any) -> Any:
    """An argument: a function of the user's as its rewritten copy."""
    return converted(x, sys.modules[__name__]) if isinstance(
        x, (FunctionType, MethodType, functools.partial)) else x


def truth(x: Any) -> Any:
    """``bool(x)``, or a traced bool."""
    if not is_traced(x):
        return bool(x)
    if isinstance(x, TracedBuffer):
        x = x.traced()
    if isinstance(x, Variable):
        x = x[...]
    if x.ndim:
        if x.size != 1:
            raise error("W102", f"the truth of {x.name} is ambiguous: it has more than one element",
                        locs=user_loc(), types=[x.type], hint="reduce it with np.any or np.all")
        x = x.reshape(())
    return x if x.type.dtype == BOOL else x != 0


# -- branches -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _End:
    """What one way leaves behind, name by name."""

    copies: tuple[Fresh, ...]
    after: tuple[Any, ...]

    def kept(self, at: int) -> bool:
        """Whether a name is bound to the region's copy still."""
        return self.after[at] is self.copies[at].value

    def untouched(self, at: int) -> bool:
        return self.kept(at) and not self.copies[at].changed


def if_(test: Any, then: Part, other: Part, get: Get, put: Put, names: Sequence[str]) -> None:
    """``if test: then() else: other()``; ``get`` and ``put`` read and bind the names it changes."""
    flag = truth(test)
    if not is_traced(flag):
        (then if flag else other)()
        return
    ctx = _context(flag)
    before = get()
    ends: list[_End] = []

    def way(run: Part) -> Callable[[], Any]:
        def traced() -> Any:
            copies = tuple(map(fresh, before))
            put([copy.value for copy in copies])
            run()
            ends.append(_End(copies, get()))
            return [[leaf for leaf in leaves(value)[0] if is_array(leaf)]
                    for value in ends[-1].after if value is not UNBOUND]
        return traced

    try:
        ways = [trace_region(way(run), (), tree.structure(()), name)
                for run, name in ((then, "then"), (other, "other"))]
    finally:
        put(before)
    merge = _Merge(ctx, ways, ends, names)
    put(merge.bound(regions.branched(ctx, flag, merge.regions()), before))


class _Merge:
    """The ends of two ways as one: which results the node of both has, and what names are bound
    to."""

    def __init__(self, ctx: TraceContext, regions: Sequence[Region], ends: Sequence[_End],
                 names: Sequence[str]) -> None:
        self.ctx, self.traced, self.ends, self.names = ctx, regions, ends, names
        self.results: list[tuple[list[Any], list[Any]]] = []  # of both, the values that differ
        self.weak: list[tuple[bool, bool]] = []
        self.paths: list[str] = []
        self.slots: list[Any] = []  # name by name: (structure, leaves), a place in a result or not
        self._at = [0, 0]
        for at, name in enumerate(names):
            self.slots.append(self._slot(at, name))

    def _taken(self, side: int, count: int) -> list[tuple[Any, bool]]:
        """The next results of one way, in the order in which its leaves were returned."""
        start = self._at[side]
        self._at[side] += count
        region = self.traced[side]
        return list(zip(region.graph.results[start:start + count],
                        region.weak[start:start + count], strict=True))

    def _slot(self, at: int, name: str) -> Any:
        found = []
        for side, end in enumerate(self.ends):
            value = end.after[at]
            if value is UNBOUND:
                found.append(None)
                continue
            parts, structure = leaves(value)
            made = iter(self._taken(side, sum(map(is_array, parts))))
            found.append((structure, [(part, next(made) if is_array(part) else None)
                                      for part in parts]))
        if all(end.untouched(at) for end in self.ends):
            return "before"
        if None in found:
            if not name.startswith(RESULT) or found == [None, None]:
                return UNBOUND
            found = self._placeholders(found)
        (one, first), (two, second) = found
        if one != two:
            second = self._in_order(name, one, two, second, at)
        return one, [self._leaf(name, path, *pair) for path, *pair in zip(
            tree.paths(one), first, second, strict=True)]

    def _in_order(self, name: str, one: tree.TreeDef, two: tree.TreeDef, parts: list[Any],
                  at: int) -> list[Any]:
        """The leaves of the other way in the order of the first: dicts may come in another one."""
        try:
            order = tree.matched(one, rebuilt(two, range(len(parts))))
        except Error:
            raise _differ(name, *(end.after[at] for end in self.ends)) from None
        return [parts[place] for place in order]

    def _placeholders(self, found: list[Any]) -> list[Any]:
        """Zeros for a result that one way has not and nobody asks for there."""
        lacking = found.index(None)
        structure, parts = found[1 - lacking]
        graph = self.traced[lacking].graph
        builder = Builder(graph, OPS, share=False, fold=False)
        made = []
        for part, result in parts:
            if result is None:
                made.append((part, None))
                continue
            value, weak = result
            made.append((_Zero(), (builder.full(0, value.type), weak)))
        found[lacking] = structure, made
        return found

    def _leaf(self, name: str, path: str, one: Any, two: Any) -> Any:
        (a, first), (b, second) = one, two
        if alike(a, b):
            return a, None
        if first is None or second is None:
            raise _differ(name, a, b)
        self.results.append(([first[0]], [second[0]]))
        self.weak.append((first[1], second[1]))
        self.paths.append(name + path)
        return None, len(self.results) - 1

    def regions(self) -> list[Region]:
        """The regions with these results only."""
        out = tree.structure(dict.fromkeys(self.paths, 0))
        made = []
        for side, region in enumerate(self.traced):
            region.graph.results = [pair[side][0] for pair in self.results]
            made.append(replace(region, out_tree=out, weak=tuple(w[side] for w in self.weak)))
        return made

    def bound(self, made: Sequence[Any], before: Sequence[Any]) -> list[Any]:
        """What each name is bound to after the node."""
        found = []
        for at, slot in enumerate(self.slots):
            if slot == "before" or slot is UNBOUND:
                found.append(before[at] if slot == "before" else UNBOUND)
                continue
            structure, parts = slot
            value = rebuilt(structure, [part if place is None else made[place]
                                        for part, place in parts])
            if all(end.kept(at) for end in self.ends) and not _is_number(before[at]):
                value = written(self.ends[0].copies[at], value)
            found.append(value)
        return found


class _Zero:
    """A leaf that nobody asks for."""


def _is_number(x: Any) -> bool:
    return not isinstance(x, (list, dict)) and not getattr(x, "ndim", 0)


def _differ(name: str, a: Any, b: Any) -> Error:
    name = "the result" if name.startswith(RESULT) else name
    return error("W102", f"{name} is {_shown(a)} on one way and {_shown(b)} on the other, which is "
                         "chosen when the function runs", locs=user_loc(),
                 hint="give it arrays of one shape on both ways, or make the condition static")


def _shown(x: Any) -> str:
    if is_array(x) or is_traced(x):
        return str(x.type) if isinstance(x, Tracer) else repr(x)[:40]
    return repr(x)[:40] if x is None or isinstance(x, (str, bool)) else f"a {type(x).__name__}"


def choose(test: Any, one: Part, two: Part) -> Any:
    """``one() if test else two()``."""
    flag = truth(test)
    if not is_traced(flag):
        return (one if flag else two)()
    box: list[Any] = [UNBOUND]

    def put(found: Sequence[Any]) -> None:
        box[0] = found[0]

    if_(flag, lambda: put([one()]), lambda: put([two()]), lambda: (box[0],), put, ("the value",))
    return box[0]


def both(*parts: Part) -> Any:
    """``a and b and ...``."""
    found = parts[0]()
    for part in parts[1:]:
        if is_traced(found):
            left = found
            found = choose(truth(left), part, lambda left=left: left)  # type: ignore[misc]
        elif not found:
            return found
        else:
            found = part()
    return found


def either(*parts: Part) -> Any:
    """``a or b or ...``."""
    found = parts[0]()
    for part in parts[1:]:
        if is_traced(found):
            left = found
            found = choose(truth(left), lambda left=left: left, part)  # type: ignore[misc]
        elif found:
            return found
        else:
            found = part()
    return found


def negated(x: Any) -> Any:
    """``not x``."""
    flag = truth(x)
    return np.logical_not(flag) if is_traced(flag) else not flag


def chained(left: Any, *links: tuple[str, Part]) -> Any:
    """``a < b < c``: each operand is computed once, and no more than are needed."""
    (name, part), *rest = links
    right = part()
    found = _COMPARE[name](left, right)
    if not rest:
        return found
    return both(lambda: found, lambda: chained(right, *rest))


def _contains(item: Any, items: Any) -> Any:
    if is_traced(items):
        return np.any(items == item)
    if not is_traced(item) or not isinstance(items, (list, tuple, range, set, frozenset)):
        return item in items
    return either(*(lambda each=each: item == each for each in items)) if len(items) else False


_COMPARE: MappingProxyType[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne, "is": operator.is_, "is not": operator.is_not, "in": _contains,
    "not in": lambda item, items: negated(_contains(item, items))})


# -- loops --------------------------------------------------------------------------------------


class _OtherCarryError(Exception):
    """A body shows that a loop has to carry something else."""


def while_(test: Part, body: Part, get: Get, put: Put, names: Sequence[str]) -> None:
    """``while test(): body()``."""
    while True:
        before = get()
        flag = truth(test())
        if is_traced(flag):
            put(before)  # the loop itself starts with the test
            break
        if not flag:
            return
        body()
    _rounds(_context(flag), "while", lambda _: truth(test()), lambda _: body(), get, put, names)


def for_(
    items: Any, asks: bool, body: Callable[[Any], Any], go_on: Part, get: Get, put: Put,
    names: Sequence[str],
) -> None:
    """``for item in items: body(item)`` as long as ``go_on()``, which is asked if ``asks``."""
    if isinstance(items, TracedBuffer):
        items = items.traced()
    if isinstance(items, Tracer) and items.ndim and isinstance(items.shape[0], SymbolicDim):
        _counted(items.__getitem__, items.shape[0], asks, body, go_on, get, put, names)
        return
    if isinstance(items, Range):
        count = _count_of(items)
        start, step = items.start, items.step
        _counted(lambda at: start + at * step, count, asks, body, go_on, get, put, names)
        return
    for at, item in enumerate(items):
        if asks:
            flag = truth(go_on())
            if is_traced(flag):
                _rest(items, at, item, flag, body, go_on, get, put, names)
                return
            if not flag:
                return
        body(item)


def _rest(
    items: Any, at: int, item: Any, flag: Any, body: Callable[[Any], Any], go_on: Part, get: Get,
    put: Put, names: Sequence[str],
) -> None:
    """What is left of a loop from its item number ``at``, since when it may end at any item."""
    if isinstance(items, range):
        start, step = items[at], items.step
        _counted(lambda k: start + k * step, len(items) - at, True, body, go_on, get, put, names,
                 _context(flag))
        return
    if isinstance(items, Tracer):
        _counted(lambda k: items[k + at], len(items) - at, True, body, go_on, get, put, names,
                 _context(flag))
        return
    rest = list(items)[at:] if isinstance(items, (list, tuple, np.ndarray)) else None
    if rest is None:
        raise error("W201", "whether this loop goes on is not known before the function runs",
                    locs=user_loc(), hint="loop over a list, an array or a range")
    for each in rest:
        if_(go_on(), lambda each=each: body(each), lambda: None,  # type: ignore[misc]
            get, put, names)


def _count_of(items: Range) -> Any:
    size = items.stop - items.start
    step = items.step
    if step != 1:
        size = (size + (step - 1 if step > 0 else step + 1)) // step
    return np.maximum(size, 0)


def _counted(
    item: Callable[[Any], Any], count: Any, asks: bool, body: Callable[[Any], Any], go_on: Part,
    get: Get, put: Put, names: Sequence[str], ctx: TraceContext | None = None,
) -> None:
    """A loop of ``count`` rounds over ``item(0)``, ``item(1)`` and so on."""
    def test(index: Any) -> Any:
        inside = index < count
        return both(lambda: inside, go_on) if asks else inside

    _rounds(ctx or _context(count), "for", test, lambda index: body(item(index)), get, put, names)


def _rounds(
    ctx: TraceContext, what: str, test: Callable[[Any], Any], body: Callable[[Any], Any], get: Get,
    put: Put, names: Sequence[str],
) -> None:
    before = get()
    loop = _Loop(ctx, what, test, body, get, put, names, list(before))
    try:
        while True:
            try:
                loop.trace()
                break
            except _OtherCarryError:
                continue
    finally:
        put(before)
    put(loop.bound(before))


class _Loop:
    """One loop that runs when the function does: what its rounds carry, name by name."""

    def __init__(
        self, ctx: TraceContext, what: str, test: Callable[[Any], Any],
        body: Callable[[Any], Any], get: Get, put: Put, names: Sequence[str], first: list[Any],
    ) -> None:
        self.ctx, self.what, self.test, self.body = ctx, what, test, body
        self.get, self.put, self.names, self.first = get, put, names, first
        self.constant: set[tuple[int, int]] = set()  # leaves that every round leaves as they are
        self.end: _End | None = None
        self.results: Any = None

    def trace(self) -> None:
        """Trace the loop. Raises _OtherCarryError where it has to carry something else."""
        self.parts = [None if value is UNBOUND else leaves(value) for value in self.first]
        init = {}
        for at, (name, found) in enumerate(zip(self.names, self.parts, strict=True)):
            if found is not None:
                for place, (leaf, path) in enumerate(zip(
                        found[0], tree.paths(found[1]), strict=True)):
                    if is_array(leaf) and (at, place) not in self.constant:
                        init[name + path, at, place] = leaf
        self.keys = list(init)
        self.results = regions.rounds(
            self.what, self._tested, self._round, self.body,
            {name: leaf for (name, _, _), leaf in init.items()}, ENDLESS, self.ctx)

    def _enter(self, state: Any) -> tuple[Fresh, ...]:
        """Bind the names to what a round begins with."""
        given = {(at, place): leaf for (_, at, place), leaf in zip(
            self.keys, state.values(), strict=True)}
        copies = []
        for at, found in enumerate(self.parts):
            if found is None:
                copies.append(Fresh(UNBOUND, UNBOUND, None))
                continue
            old, structure = found
            new = [given.get((at, place), leaf) for place, leaf in enumerate(old)]
            copies.append(fresh(_owned(self.first[at], rebuilt(structure, new))))
        self.put([copy.value for copy in copies])
        return tuple(copies)

    def _tested(self, state: Any, index: Any) -> Any:
        self._enter(state)
        return truth(self.test(index))

    def _round(self, state: Any, index: Any) -> Any:
        copies = self._enter(state)
        self.body(index)
        self.end = end = _End(copies, self.get())
        made = {}
        for at, (name, found) in enumerate(zip(self.names, self.parts, strict=True)):
            value = end.after[at]
            if found is None:
                self._placeholder(at, name, value)
                continue
            if value is UNBOUND:
                raise error("W201", f"{name} has a value before the loop and none after a round",
                            locs=user_loc(), hint="do not delete it in the loop")
            new, structure = leaves(value)
            if structure != found[1]:
                raise _differ(name, self.first[at], value)
            for place, (leaf, old) in enumerate(zip(new, found[0], strict=True)):
                made.update(self._carried(name, at, place, old, leaf, tree.paths(structure)[place]))
        return made

    def _carried(self, name: str, at: int, place: int, old: Any, new: Any, path: str) -> Any:
        same = alike(old, new)
        if not is_array(old) or (at, place) in self.constant:
            if not same:
                raise _differ(name, old, new)
            return {}
        if same and not is_traced(new):  # the same number in every round
            self.constant.add((at, place))
            raise _OtherCarryError
        return {name + path: new}

    def _placeholder(self, at: int, name: str, value: Any) -> None:
        """A result that only a round gives starts from zeros, for which nobody asks."""
        if value is UNBOUND or not name.startswith(RESULT):
            return
        parts, structure = leaves(value)
        zeros = [np.zeros(tuple(map(int, leaf.shape)), leaf.dtype)
                 if isinstance(leaf, Tracer) else leaf for leaf in parts]
        self.first[at] = rebuilt(structure, zeros)
        raise _OtherCarryError

    def bound(self, before: Sequence[Any]) -> list[Any]:
        """What each name is bound to after the loop."""
        made = {(at, place): leaf for (_, at, place), leaf in zip(
            self.keys, self.results.values(), strict=True)}
        assert self.end is not None
        found = []
        for at, part in enumerate(self.parts):
            if part is None or self.end.untouched(at):
                found.append(before[at])
                continue
            old, structure = part
            value = rebuilt(structure, [made.get((at, place), leaf)
                                        for place, leaf in enumerate(old)])
            if self.end.kept(at) and not _is_number(before[at]):
                value = written(Fresh(before[at], None, None), value)
            found.append(value)
        return found


def _owned(first: Any, value: Any) -> Any:
    """A parameter of a region as an array that may be written to, unless it was an argument of the
    function: those are their caller's."""
    if not isinstance(value, Tracer):
        return value
    given = first.traced() if isinstance(first, TracedBuffer) else first
    argument = isinstance(given, Tracer) and given.argument
    made = Tracer(value.ctx, value.value, weak=value.weak, argument=argument)
    made.ordered = made.dense = True
    return made


# -- what cannot be undone ----------------------------------------------------------------------


def check(test: Any, message: Any) -> None:
    """``assert test, message()``."""
    flag = truth(test)
    if is_traced(flag):
        raise error("W201", "whether this assertion holds is not known before the function runs",
                    locs=user_loc(), hint="check it outside of the traced function")
    if not flag:
        raise AssertionError(*([] if message is None else [message()]))


def raised(problem: Any) -> Any:
    """The exception of a ``raise``, which must not depend on traced values."""
    if current().parent is not None:
        raise error("W201", "whether this exception is raised is not known before the function runs",
                    locs=user_loc(), hint="check it outside of the traced function, or mark the "
                                          "result: np.where(bad, np.nan, y)") from None
    return problem


def result(returned: Any, value: Part) -> Any:
    """The result of a function that may end without a ``return``."""
    if is_traced(returned):
        raise error("W201", "the function returns a value on one way and None on another, which is "
                            "chosen when it runs", locs=user_loc(),
                    hint="end it with a return of the same kind of value")
    return value() if returned else None


def _context(x: Any) -> TraceContext:
    found = context_for([x])
    assert found is not None
    return found

