"""Two ways of which one runs: ``if`` statements and ternaries on traced conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.graph import Builder
from ....ir.ops.table import OPS
from ....ir.record import replace
from ...face import tree
from ...face.source import user_loc
from ...tracing.arrays import views
from ...tracing.arrays.closed_over import memory_of
from ...tracing.arrays.selection import Selection
from ...tracing.context.active import current
from ...tracing.context.recorder import TraceContext
from ...tracing.late import LateText
from ...tracing.trace import Region, trace_region
from ...tracing.values.tracer import Tracer
from ...transforms import regions
from ..lists.chosen_lists import watch
from ..lists.growing import Form, Own, formed, forms, joined
from ..source.exits import RESULT, RETURNED, told
from .adopting import Adopted
from .nests import items_of, lists_of
from .raising import raised_by
from .rows import Masked, Rows
from .state import (
    UNBOUND,
    Entry,
    Get,
    Part,
    Put,
    Ways,
    alike,
    context_of,
    is_around,
    is_array,
    is_traced,
    leaves,
    lost,
    overwrite,
    rebuilt,
    restored,
    truth,
    was_lost,
)

Places = set[tuple[int, int]]  # of leaves: the numbers of names, and places in what these have


def if_(test: Any, then: Part, other: Part, get: Get, put: Put, names: Sequence[str]) -> None:
    """``if test: then() else: other()``; ``get`` and ``put`` read and bind the names it changes."""
    flag = truth(test)
    if not is_traced(flag):
        (then if flag else other)()
        return
    ctx = context_of(flag)
    region = Adopted(ctx, get, put, names)
    wanted: dict[int, Form] = {}
    for tries in count():
        try:
            ways = _traced(then, other, region, wanted)
        except Error as problem:
            region.take(problem)
            continue
        ended = [way.ended for way in ways]
        if ended != [None, None]:
            _check(ctx, flag, ways)
            (then if ended[0] is None else other)()  # which may raise, in its turn
            return
        longer = forms(region.names, region.before, [way.after for way in ways], tries)
        if not longer:
            break
        wanted |= longer
        # Rows are counted where ways end: each may have more than there were before.
        region.before = ctx.apply(formed, (region.before, {
            at: form for at, form in wanted.items() if not isinstance(form[0], (Rows, Masked))}))
        region.put(region.before)
    merge = _Merge(ways, region)
    region.put(merge.bound(regions.branched(ctx, flag, merge.regions())))


def _traced(
    then: Part, other: Part, names: Adopted, wanted: Mapping[int, Form]
) -> list[_Way]:
    """Both ways, with lists of the forms that are ``wanted``. What only the other one binds anew
    shows when both are traced."""
    anew: Places = set()
    while True:
        ways = [_Way(run, name, names, anew, wanted)
                for run, name in ((then, "then"), (other, "other"))]
        if ways[0].kept.isdisjoint(anew):
            return ways


class _Way:
    """One way, traced: what it starts from (``entry``), what names are bound to at its end, the
    leaves of that, None for a name without a value, and with which exception it has ended. Leaves
    that no way binds anew (``kept``; of a table of numbers, most) are no results of its region.
    Arrays that were made there and written to are traced no more afterwards."""

    def __init__(self, run: Part, name: str, names: Adopted, anew: Places,
                 wanted: Mapping[int, Form]) -> None:
        self._run, self._names, self._anew, self._wanted = run, names, anew, wanted
        with names.part(run):
            self.region = trace_region(self._trace, (), tree.structure(()), name)

    def _trace(self) -> Any:
        names = self._names
        self.entry = Entry(names.before, adopted=names.arrays)
        names.put(self.entry.values)
        self.ended = raised_by(self._run)
        self.kept: Places = set()
        if self.ended is not None:
            return [] if self.ended.holds is None else [self.ended.holds]
        self.after = formed(names.get(), self._wanted)
        self.parts = [None if value is UNBOUND else leaves(value) for value in self.after]
        places = [((at, place), leaf) for at, found in enumerate(self.parts) if found is not None
                  for place, leaf in enumerate(found[0])]
        kept = _kept(names.before, self.parts)
        self._anew.update(key for key, _ in places if key not in kept)
        self.kept = kept - self._anew
        memory = (copy if copy.changed is None else copy.changed
                  for _, copy, _ in self.entry.roots.values())
        return [*(leaf for key, leaf in places if key not in self.kept and is_array(leaf)),
                *(leaf for copy in memory for leaf in leaves(copy)[0] if is_array(leaf))]


def _kept(before: Sequence[Any], after: Sequence[tuple[list[Any], Any] | None]) -> Places:
    """The numbers that names have as they had them before, of nests that are as they were."""
    found: Places = set()
    for at, (value, now) in enumerate(zip(before, after, strict=True)):
        if value is UNBOUND or now is None:
            continue
        parts, structure = leaves(value)
        if structure == now[1]:
            found.update((at, place) for place, (old, new) in enumerate(
                zip(parts, now[0], strict=True)) if old is new and not getattr(new, "ndim", 0))
    return found


def _check(ctx: TraceContext, flag: Tracer, ways: Sequence[_Way]) -> None:
    """Of two ways one raises: the step fails where that is taken."""
    at = 0 if ways[0].ended is not None else 1
    end = ways[at].ended
    assert end is not None
    if end.holds is None:
        holds = flag if at else np.logical_not(flag)
    else:
        holds = failing(ctx, flag, ways[at].region, at)
    ctx.apply(ctx.failing, (holds, end.failure))


def failing(ctx: TraceContext, flag: Tracer, way: Region, at: int) -> Tracer:
    """True, unless the flag chooses a way (the first or the second) that gives false."""
    fine = trace_region(lambda: [current().full(True, np.dtype(bool))], (), tree.structure(()),
                        "fine")
    holds: Tracer
    holds, = regions.branched(ctx, flag, (fine, way) if at else (way, fine))
    return holds


class _Merge:
    """The ends of two ways as one: which results the node of both has, and what names are bound
    to."""

    def __init__(self, ways: Sequence[_Way], region: Adopted) -> None:
        self.ways, self.names, self.before = ways, region.names, region.before
        self.traced = [way.region for way in ways]
        self.entries = [way.entry for way in ways]
        self.after = [way.after for way in ways]
        self.results: list[tuple[Any, Any]] = []  # of both, the values that differ
        self.weak: list[tuple[bool, bool]] = []
        self.paths: list[str] = []
        self.memory: list[tuple[Any, Any]] = []  # its owner on both ways
        self._made = [iter(zip(region.graph.results, region.weak, strict=True))
                      for region in self.traced]
        # Name by name what it is bound to: (structure, leaves), each known or a result's number.
        self.slots = [self._slot(at, name) for at, name in enumerate(self.names)]
        self.used_up: list[Tracer] = []  # arguments that some way has changed: they have copies
        self.roots = self._changed_roots()

    def _changed_roots(self) -> list[tuple[Any, int]]:
        """Arrays that were changed in place on some way, and the numbers of their results."""
        found = []
        for ours, theirs in zip(*(entry.roots.values() for entry in self.entries), strict=True):
            pair = [next(made) for made in self._made]
            if any(copy.changed is not None for _, copy, _ in (ours, theirs)):
                self.used_up.append(ours[0])
            elif any(copy._value is not value for _, copy, value in (ours, theirs)):
                found.append((ours[0], self._result(ours[0].name, *pair)))
        return found

    def _result(self, path: str, one: tuple[Any, bool], two: tuple[Any, bool],
                memory: tuple[Any, Any] = (None, None)) -> int:
        self.results.append((one[0], two[0]))
        self.memory.append(memory)
        self.weak.append((one[1], two[1]))
        self.paths.append(path)
        return len(self.results) - 1

    def _slot(self, at: int, name: str) -> Any:
        found: list[Any] = []
        for way, made in zip(self.ways, self._made, strict=True):
            own = way.parts[at]
            found.append(None if own is None else (own[1], [
                (part, way.entry,
                 next(made) if (at, place) not in way.kept and is_array(part) else None)
                for place, part in enumerate(own[0])]))
        if None in found:
            if found == [None, None]:
                return UNBOUND
            if not (name.startswith(RESULT) or self._has_returned(found.index(None))):
                lost(name, "on one way only of an if that is decided when the function runs",
                     again=not was_lost(name))
                return UNBOUND
            found = self._placeholders(found)
        (one, first), (two, second) = found
        count = len(self.results)
        try:
            if one != two:
                second = self._in_order(name, one, two, second, at)
            return one, [self._leaf(name, path, *pair) for path, *pair in zip(
                tree.paths(one), first, second, strict=True)]
        except Error as problem:  # which is one for who reads the name
            if not may_be_lost(name) or (not isinstance(name, Own) and any(
                    way.entry.has_changed(way.after[at]) for way in self.ways)):
                raise  # who else has the list would have another one
            lost(name, problem)
            for each in (self.results, self.weak, self.paths, self.memory):
                del each[count:]
            return UNBOUND

    def _has_returned(self, way: int) -> bool:
        """Whether a way has left the function: what follows asks for that before any name."""
        return RETURNED in self.names and self.after[way][self.names.index(RETURNED)] is True

    def _in_order(self, name: str, one: tree.TreeDef, two: tree.TreeDef, parts: list[Any],
                  at: int) -> list[Any]:
        """The leaves of the other way in the order of the first: dicts may come in another one."""
        try:
            return tree.fitted(one, parts, two)
        except Error:
            raise differ(name, *(after[at] for after in self.after)) from None

    def _placeholders(self, found: list[Any]) -> list[Any]:
        """Zeros for a value that one way has not and nobody asks for there."""
        lacking = found.index(None)
        structure, parts = found[1 - lacking]
        builder = Builder(self.traced[lacking].graph, OPS, share=False, fold=False)
        made: list[Any] = []
        for part, entry, result in parts:
            zero = None if result is None else (builder.full(0, result[0].type), result[1])
            made.append((part if zero is None else _Zero(), entry, zero))
        found[lacking] = structure, made
        return found

    def _leaf(self, name: str, path: str, one: Any, two: Any) -> Any:
        (a, ours, first), (b, theirs, second) = one, two
        if a is b and first is second is None:
            return a, None
        origins = ours.origin(a), theirs.origin(b)
        if origins[0] is not None and origins[0] is origins[1]:
            return origins[0], None
        if alike(a, b):
            return a, None
        if first is None or second is None:
            raise differ(name, a, b)
        if not regions.agree(first, second):
            raise regions.disagreement(told(name) + path, first[0], second[0])
        return None, self._result(name + path, first, second,
                                  (memory_of(a), memory_of(b)))

    def regions(self) -> list[Region]:
        """The regions with these results only."""
        out = tree.structure(dict.fromkeys(self.paths, 0))
        made = []
        for side, region in enumerate(self.traced):
            region.graph.results = [pair[side] for pair in self.results]
            made.append(replace(region, out_tree=out, weak=tuple(w[side] for w in self.weak)))
        return made

    def bound(self, made: Sequence[Any]) -> list[Any]:
        """What each name is bound to after the node; memory that was written to has changed."""
        for root, place in self.roots:
            overwrite(root, made[place])
        for root in self.used_up:
            root.changed = root
            root.ctx.writes.count += 1
        self._share(made)
        found: list[Any] = []
        had = [each for _, each in lists_of(self.before)]
        lists: dict[tuple[int, ...], tuple[Ways, Any]] = {}
        for at, slot in enumerate(self.slots):
            if slot is UNBOUND:
                found.append(UNBOUND)
                continue
            twin = next((other for other in range(at) if all(
                after[other] is after[at] and after[at] is not UNBOUND
                for after in self.after)), None)
            if twin is not None:  # two names of one thing on both ways, and so afterwards
                found.append(found[twin])
                continue
            structure, parts = slot
            if self.names[at].startswith(RESULT):
                for _, place in parts:
                    if place is not None:
                        made[place].waiting = True
            value = rebuilt(structure, [part if place is None else made[place]
                                        for part, place in parts])
            ways = [(entry, after[at]) for entry, after in zip(
                self.entries, self.after, strict=True)]
            joined(value, [after for _, after in ways])
            found.append(restored(ways, value, lists))
        watch(lists.values(), had, found)
        return found

    def _share(self, made: Sequence[Any]) -> None:
        """Results that have the memory of an array or of each other on one way."""
        for way, entry in enumerate(self.entries):
            for at, memory in enumerate(self.memory):
                for origin in entry.origins_of(memory[way]):
                    for array in (origin, *views.rivals(origin)):
                        if is_around(array, made[at]):
                            views.may_share(made[at], array)
                for other in range(at):
                    if views.are_related(memory[way], self.memory[other][way]):
                        views.may_share(made[at], made[other])


class _Zero:
    """A leaf that nobody asks for."""


def may_be_lost(name: str) -> bool:
    """Whether code can do without a name: not without the result, or what is part of an object."""
    return name.isidentifier() and not name.startswith(RESULT)


def differ(name: str, a: Any, b: Any) -> Error:
    """The error for a name of two values of which neither can be the result of a branch: for the
    first item that differs, of nests that are alike besides."""
    name = told(name)
    while type(a) is type(b):
        ours, theirs = dict(items_of(a)), dict(items_of(b))
        other = next((at for at in ours if at in theirs and leaves(ours[at])[1] != leaves(
            theirs[at])[1]), None)
        if other is None or ours.keys() != theirs.keys():
            break
        name, a, b = f"{name}[{other!r}]", ours[other], theirs[other]
    return error("W102", f"{name} is {shown(a)} on one way and {shown(b)} on the other, which is "
                         "chosen when the function runs", locs=user_loc(), hint=_fix(a, b))


def _fix(a: Any, b: Any) -> str:
    if a is None or b is None:
        return _in_place_of_none(b if a is None else a)
    if isinstance(a, LateText) or isinstance(b, LateText):
        return "write an if statement, and print, log or raise each text on its own way"
    if isinstance(a, str) and isinstance(b, str):
        names = [text.upper().replace(" ", "_").replace("-", "_") for text in (a, b)]
        names = names if all(map(str.isidentifier, names)) else ["ONE", "OTHER"]
        return f"let numbers stand for them: {', '.join(names)} = 0, 1"
    if callable(a) and callable(b):
        return "call each of them on its own way"
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() != b.keys():
        return "give it all keys on both ways, with np.nan or -1 for what is not there"
    if isinstance(a, (list, dict)) and isinstance(b, (list, dict)):
        return ("make an array of all items before it, out = np.zeros(n), set out[i] where there "
                "is one, and count them")
    if isinstance(a, Selection) or isinstance(b, Selection):
        return "choose the mask on both ways, and the elements, x[mask], after them"
    return "give it arrays of one shape on both ways, or make the condition static"


def _in_place_of_none(other: Any) -> str:
    if isinstance(other, str):
        return "let numbers stand for the text and for none, such as 1 and 0"
    if isinstance(other, Selection):
        return "let no elements stand for none: x[np.zeros(len(x), bool)]"
    if tree.is_nest(other):
        return (f"let a {type(other).__name__} of the same form stand for none, with np.nan or -1 "
                "in it")
    return ("let an array stand for none, such as np.full(shape, np.nan)" if getattr(
        other, "ndim", 0) else "let a number stand for none, such as -1 or np.nan")


def shown(x: Any) -> str:
    """A value as errors name it."""
    if is_array(x) or is_traced(x):
        return str(x.type) if isinstance(x, Tracer) else repr(x)[:40]
    if isinstance(x, (list, dict)):
        return f"a {type(x).__name__} of {len(x)}"
    if isinstance(x, Selection):
        return "elements under a mask"
    if isinstance(x, LateText):
        return f"the text {x.described()!r}"
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


