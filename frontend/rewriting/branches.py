"""Two ways of which one runs: ``if`` statements and ternaries on traced conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...ir.diagnose import Error, error
from ...ir.graph import Builder
from ...ir.ops.table import OPS
from .. import tree
from ..tracing.source import user_loc
from ..tracing.trace import Region, trace_region
from ..tracing.tracer import Tracer
from ..transforms import regions
from .exits import RESULT
from .state import (
    UNBOUND,
    End,
    Get,
    Part,
    Put,
    alike,
    context_of,
    fresh,
    is_array,
    is_number,
    is_traced,
    leaves,
    lost,
    rebuilt,
    truth,
    written,
)


def if_(test: Any, then: Part, other: Part, get: Get, put: Put, names: Sequence[str]) -> None:
    """``if test: then() else: other()``; ``get`` and ``put`` read and bind the names it changes."""
    flag = truth(test)
    if not is_traced(flag):
        (then if flag else other)()
        return
    ctx = context_of(flag)
    before = get()
    ends: list[End] = []

    def way(run: Part) -> Callable[[], Any]:
        def traced() -> Any:
            copies = tuple(map(fresh, before))
            put([copy.value for copy in copies])
            run()
            ends.append(End(copies, get()))
            return [[leaf for leaf in leaves(value)[0] if is_array(leaf)]
                    for value in ends[-1].after if value is not UNBOUND]
        return traced

    try:
        ways = [trace_region(way(run), (), tree.structure(()), name)
                for run, name in ((then, "then"), (other, "other"))]
    finally:
        put(before)
    merge = _Merge(ways, ends, names)
    put(merge.bound(regions.branched(ctx, flag, merge.regions(), names=True), before))


class _Merge:
    """The ends of two ways as one: which results the node of both has, and what names are bound
    to."""

    def __init__(self, traced: Sequence[Region], ends: Sequence[End],
                 names: Sequence[str]) -> None:
        self.traced, self.ends, self.names = traced, ends, names
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
        found: list[Any] = []
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
                lost(name, "on one way only of an if that is decided when the function runs")
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
            raise differ(name, *(end.after[at] for end in self.ends)) from None
        return [parts[place] for place in order]

    def _placeholders(self, found: list[Any]) -> list[Any]:
        """Zeros for a result that one way has not and nobody asks for there."""
        lacking = found.index(None)
        structure, parts = found[1 - lacking]
        graph = self.traced[lacking].graph
        builder = Builder(graph, OPS, share=False, fold=False)
        made: list[Any] = []
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
            raise differ(name, a, b)
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
            if all(end.kept(at) for end in self.ends) and not is_number(before[at]):
                value = written(self.ends[0].copies[at], value)
            found.append(value)
        return found


class _Zero:
    """A leaf that nobody asks for."""


def differ(name: str, a: Any, b: Any) -> Error:
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


