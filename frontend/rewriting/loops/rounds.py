"""What the rounds of a loop carry from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.indices.index import Dim
from ....ir.types import TensorType
from ...face import tree
from ...face.source import user_loc
from ...tracing.arrays import views
from ...tracing.arrays.array import TracedArray
from ...tracing.arrays.growing import GrowingList
from ...tracing.context.active import current
from ...tracing.operand import to_tracer
from ...tracing.values.tracer import Tracer
from ...transforms import loops as loop_nodes
from ...transforms import regions
from ..lists.growing import Form, Growth, Own, converted, formed
from ..regions.adopting import Adopted
from ..regions.aliases import parted, returned, shared_alike
from ..regions.branches import differ, may_be_lost, shown
from ..regions.nests import Path
from ..regions.optional import Kind, common, counts_rows, has_kind, kind_of, may_be_unbound
from ..regions.raising import PYTHONS, is_pythons
from ..regions.sharing import Key, Sharing
from ..regions.state import (
    LOST,
    UNBOUND,
    Entry,
    alike,
    is_array,
    is_traced,
    leaves,
    lost,
    overwrite,
    rebuilt,
    truth,
)
from ..source.exits import RESULT, told
from ..source.lasting import Awaited, Lasting
from .ranges import raise_unless

_MEMORY = "memory of an array "  # the key of what a loop carries without a name


class OtherCarryError(Exception):
    """A body shows that a loop has to carry something else."""


class EndedRoundError(BaseException):
    """Each round ends in an exception of Python's, and so the first one does."""

    def __init__(self, problem: Exception) -> None:
        super().__init__()
        self.problem = problem


class Loop:
    """One loop that runs when the function does: what its rounds carry.

    Carried are the leaves of the names that are bound anew, and the arrays that own the memory of
    those that are changed in place. Which these are shows when the body is traced.
    """

    def __init__(
        self, region: Adopted, what: str, test: Callable[[Any], Any] | None,
        body: Callable[[Any], Any], limit: Dim, flag: Any, most: Dim,
        behind: frozenset[str], has_first: Callable[[], Any] | None,
    ) -> None:
        self.ctx, self.what, self.test, self.body, self.limit = region.ctx, what, test, body, limit
        self.has_first = has_first  # whether there is a round, if that can be told
        self.lost = frozenset(LOST.get() or ())  # names that only some ways have bound
        self.most, self.behind = most, behind  # rounds, for which lists need room; who says them
        self.flag = flag  # what the test gave before the first round, if it was asked
        self.region, self.names, self.first = region, region.names, list(region.before)
        self.fixed: set[tuple[int, int]] = set()  # leaves that every round leaves as they are
        self.rebound: set[tuple[int, int]] = set()  # arrays that are bound anew
        self.unchanged: set[int] = set()  # roots that no round writes to
        self.dropped: dict[int, str | Error] = {}  # names without a value when a round begins
        self.wanted: dict[int, Any] = {}  # names that start from zeros: their nests and types
        self.late: set[int] = set()  # of these, names that have no value when a round begins
        self.entry: Entry | None = None
        self.after: tuple[Any, ...] = ()
        self.growths: dict[int, Growth] = {}  # of lists that rounds make longer or shorter
        self.rows: dict[int, Kind | None] = {}  # what arrays are like whose rows are counted
        self.longer: dict[int, Form] = {}  # what such lists, or what may be None, is to begin as
        self.sharing = Sharing()
        self.apart: set[Path] = set()  # lists that are one before the loop, and not after a round
        self.used_up: dict[int, Tracer] = {}  # arrays around the loop that rounds may write to
        self.results: Any = None

    def trace(self) -> None:
        """Trace the loop. Raises OtherCarryError where it has to carry something else."""
        for at, (structure, parts) in self.wanted.items():
            self.first[at] = rebuilt(structure, [self._zeros(part) if isinstance(part, TensorType)
                                                 else part for part in parts])
        self.wanted.clear()
        for at, grown in self.longer.items():
            self.first[at] = self.ctx.apply(converted, (self.first[at], *grown))
        self.longer.clear()
        for name, value in zip(self.names, self.first, strict=True):
            if value is UNBOUND:
                lost(name, "in a later round only", again=False)
        self.parts = [None if value is UNBOUND else leaves(value) for value in self.first]
        init, self.keys, arrays = {}, [], []
        for at, (name, value, found) in enumerate(zip(
                self.names, self.first, self.parts, strict=True)):
            for place, (leaf, path) in enumerate(zip(found[0], tree.paths(found[1]), strict=True)
                                                 if found is not None else ()):
                if _in_memory(leaf) and isinstance(value, GrowingList):
                    self.rebound.add((at, place))  # nobody else has what holds its items
                if _in_memory(leaf) and (at, place) not in self.rebound:
                    arrays.append(leaf)
                elif is_array(leaf) and (at, place) not in self.fixed:
                    init[told(name) + path] = leaf
                    self.keys.append((at, place))
        arrays += self.region.arrays
        roots = {id(root): root for root in (views.owner(leaf) for leaf in arrays)}
        self.roots = [root for key, root in roots.items() if key not in self.unchanged]
        self._share_from_the_start()
        init |= {f"{_MEMORY}{number}": root for number, root in enumerate(self.roots)}
        if self.test is None:  # as many rounds as the limit says
            self.results, _ = loop_nodes.scanned(
                self.what, lambda state, _, index: (self._round(state, index), None), self.body,
                init, None, self.limit, False, self.ctx)
            return
        self.results = loop_nodes.rounds(self.what, self._tested, self._round, self.body, init,
                                         self.limit, self.ctx, self.flag, self.behind)

    def _zeros(self, type_: TensorType) -> Any:
        if all(isinstance(dim, int) for dim in type_.shape):
            return np.zeros(type_.shape, type_.dtype.numpy)
        return self.ctx.apply(self.ctx.full, (0, type_.dtype, type_.shape))

    def drop(self, found: regions.ChangedError) -> None:
        """Do without the value that a name had before the loop, of another type than after a round.
        Who reads it all the same gets the error."""
        if found.at >= len(self.keys):
            raise found.problem
        self._drop(self.keys[found.at][0], found.problem)

    def _drop(self, at: int, problem: Error) -> None:
        name = self.names[at]
        if not may_be_lost(name) or (self.entry is not None and not isinstance(name, Own)
                                     and self.entry.has_changed(self.after[at])):
            raise problem  # who else has the list would have another one
        self.first[at], self.dropped[at] = UNBOUND, lost(name, problem, again=False)

    def _enter(self, state: Any) -> Entry:
        """Bind the names to what a round begins with."""
        values = list(state.values())
        given = dict(zip(self.keys, values, strict=False))
        memory = {id(root): value for root, value in zip(
            self.roots, values[len(self.keys):], strict=True)}
        found: list[Any] = []
        begun: dict[Key, Tracer] = {}
        lists: dict[int, Any] = {}
        for at, part in enumerate(self.parts):
            if part is None or at in self.late:
                found.append(UNBOUND)
                continue
            old, structure = part
            carried = {place: _owned(leaf, given[at, place])
                       for place, leaf in enumerate(old) if (at, place) in given}
            for state in carried.values():
                state.waiting = self.names[at].startswith(RESULT)
            begun.update(((at, place), state) for place, state in carried.items())
            value = rebuilt(structure, [carried.get(place, leaf) for place, leaf in enumerate(old)])
            found.append(shared_alike(value, self.first[at], (at,), self.apart, lists))
            if isinstance(found[-1], GrowingList):
                self.growths.setdefault(at, Growth()).begin(found[-1])
        entry = Entry(found, memory, self.region.arrays)
        entry.leaves.update((id(state), key) for key, state in begun.items())
        self._remember(entry, begun)
        self.region.put(entry.values)
        return entry

    def _tested(self, state: Any, index: Any) -> Any:
        assert self.test is not None
        with self.region.part(self.test), self._in_round():
            self._enter(state)
            return truth(self.test(index))

    def _round(self, state: Any, index: Any) -> Any:
        known = len(self.used_up)
        with self.region.part(self.body), self._in_round():
            self.entry = entry = self._enter(state)
            try:
                self.body(index)
            except PYTHONS as problem:
                if is_pythons(problem):
                    raise EndedRoundError(problem) from None
                raise
            self.after = formed(self.region.get(), {
                at: (value.item, value.room) if isinstance(value, GrowingList) else
                (kind_of(value), None) for at, value in enumerate(self.first)
                if isinstance(value, GrowingList) or kind_of(value) is not None})
        made, bound = {}, len(self.rebound)
        for at, name in enumerate(self.names):
            try:
                made.update(self._after(at, name, entry))
            except OtherCarryError:
                self._rebind(range(at + 1, len(self.names)), entry)
                raise
        if len(self.rebound) > bound:
            raise OtherCarryError
        if parted(self.names, self.first, entry, self.after, self.apart):
            raise OtherCarryError
        made |= self._memory(entry)
        self._settle(entry, known)
        return made

    def _after(self, at: int, name: str, entry: Entry) -> dict[str, Any]:
        """What a round carries on of a name."""
        value, found = self.after[at], self.parts[at]
        if found is None:
            self._placeholder(at, name, value)
            return {}
        if value is UNBOUND:
            self._drop(at, error("W201", f"{name} has a value before the loop and none after a "
                                 "round", locs=user_loc(), hint="do not delete it in the loop"))
            raise OtherCarryError
        self._grow(at, name, value)
        new, structure = leaves(value)
        if structure != found[1]:
            self._drop(at, _grown(name, self.first[at], value))
            raise OtherCarryError
        paths, made = tree.paths(structure), dict[str, Any]()
        for place, (leaf, old) in enumerate(zip(new, found[0], strict=True)):
            made.update(self._carried(name, at, place, old, leaf, paths[place]))
        return made

    def _rebind(self, names: Iterable[int], entry: Entry) -> None:
        """Have the arrays be carried that names are bound to anew; all at once, as masks of several
        names may be one, which shows only where the loop carries all of them."""
        for at in names:
            value, found = self.after[at], self.parts[at]
            if value is UNBOUND or found is None:
                continue
            new, structure = leaves(value)
            if structure == found[1]:
                self.rebound.update(
                    (at, place) for place, (leaf, old) in enumerate(zip(new, found[0], strict=True))
                    if _in_memory(old) and entry.origin(leaf) is not old)

    def _grow(self, at: int, name: str, value: Any) -> None:
        """Raises OtherCarryError where a round has changed the length of a list, and the loop has
        to begin with room for all that rounds may add."""
        kind = common([self.first[at], value], may_be_unbound(name))
        if counts_rows(kind) and self.rows.setdefault(at, kind) != kind:
            return  # each round has more of them than the one before
        if kind is not None and not (has_kind(self.first[at], kind) and has_kind(value, kind)):
            self.longer[at] = kind, None
            raise OtherCarryError
        if kind is None and isinstance(name, Own):
            growth = self.growths.setdefault(at, Growth())
            longer = growth.after(self.first[at], value, self.most, self.behind, name.rows)
            if longer is not None:
                self.longer[at] = longer
                raise OtherCarryError

    def _memory(self, entry: Entry) -> dict[str, Any]:
        """What a round has left in the arrays that own memory."""
        made = {}
        for root, copy, value in entry.roots.values():
            if any(root is other for other in self.roots):
                number = next(n for n, other in enumerate(self.roots) if other is root)
                if copy.changed is not None or copy._value is value:
                    self.unchanged.add(id(root))
                    raise OtherCarryError
                made[f"{_MEMORY}{number}"] = copy
        return made

    def _carried(self, name: str, at: int, place: int, old: Any, new: Any, path: str) -> Any:
        assert self.entry is not None
        key = at, place
        if _in_memory(old) and key not in self.rebound:
            if self.entry.origin(new) is old:
                return {}
            self.rebound.add(key)
            return {}
        same = alike(old, new)
        if not is_array(old) or key in self.fixed:
            if not same:
                self._drop(at, differ(name, old, new))
                raise OtherCarryError
            return {}
        if same and not is_traced(new):  # the same number in every round
            self.fixed.add(key)
            raise OtherCarryError
        return {told(name) + path: new}

    def _placeholder(self, at: int, name: str, value: Any) -> None:
        """What only a round gives starts from zeros, for which nobody asks: a result, or the value
        of a name if there surely is a round, which the next one does not know."""
        if value is UNBOUND:
            return
        kind = common([UNBOUND, value], may_be_unbound(name))
        if kind is not None:
            self.longer[at] = kind, None
            raise OtherCarryError
        parts, structure = leaves(value)
        if not name.startswith(RESULT):
            if not (self._may_last(name) and at not in self.dropped
                    and all(map(_is_number, parts))):
                lost(name, self.dropped.get(at, "in a loop only, which may run for no round"))
                return
            self.late.add(at)
        self.wanted[at] = structure, [_first(leaf) if isinstance(leaf, Tracer) else leaf
                                      for leaf in parts]
        raise OtherCarryError

    def _may_last(self, name: str) -> bool:
        """Whether the value of a name that only rounds bind may be read after the loop: there is a
        round, or who reads it fails."""
        return isinstance(name, Lasting) and self.has_first is not None and (
            self.has_first() is True or (isinstance(name, Awaited)
                                         and name not in self.lost))

    def bound(self, before: Sequence[Any]) -> list[Any]:
        """What each name is bound to after the loop; memory that was written to has changed."""
        if self.late:
            assert self.has_first is not None
            raise_unless(self.has_first(), UnboundLocalError(
                f"cannot access local variable '{self.names[min(self.late)]}' where it is not "
                "associated with a value"))
        made = dict(zip(self.keys, self.results.values(), strict=False))
        for (at, _), result in made.items():
            result.waiting = self.names[at].startswith(RESULT)
        for root, result in zip(self.roots, list(self.results.values())[len(self.keys):],
                                strict=True):
            overwrite(root, result)
        assert self.entry is not None
        self._share(made)
        found, lists = [], dict[int, Any]()
        for at, part in enumerate(self.parts):
            if part is None:
                found.append(UNBOUND if at in self.dropped else before[at])
                continue
            old, structure = part
            value = rebuilt(structure, [made.get((at, place), leaf)
                                        for place, leaf in enumerate(old)])
            if isinstance(value, GrowingList):
                found.append(self.growths[at].end(value, self.first[at], self.most,
                                                  exact=self.test is None
                                                  and self.most == self.limit))
                continue
            origin, start = self.entry.origin(self.after[at]), self.entry.start[at]
            if origin is not None and origin is start and type(value) not in (list, tuple, dict):
                carried = any((at, place) in made for place in range(len(old)))
                found.append(value if carried else before[at])
                continue
            found.append(returned(value, self.after[at], self.entry, start, before[at], lists))
        return found

    def _share_from_the_start(self) -> None:
        """Which leaves may have one memory when the first round begins."""
        memory = {(at, place): views.memory_of(self.parts[at][0][place])  # type: ignore[index]
                  for at, place in self.keys}
        around = {key: {} if first is None else self._kin(first) for key, first in memory.items()}
        pairs = {frozenset((a, b)) for a, b in combinations(self.keys, 2)
                 if views.are_related(memory[a], memory[b])}
        self.sharing = self.sharing.grown(pairs, around, {})

    def _shared(self, entry: Entry) -> Sharing:
        """Which may when a round begins, after this one as it was traced."""
        around: dict[Key, dict[int, Any]] = {}
        moved: dict[Key, list[Key]] = {}
        owners: dict[Key, Any] = {}
        for at, place in self.keys:
            key = at, place
            around[key], moved[key] = {}, []
            owners[key] = views.memory_of(leaves(self.after[at])[0][place])
            for memory in entry.origins_of(owners[key]):
                if id(memory) in entry.leaves:
                    moved[key].append(entry.leaves[id(memory)])
                elif self.ctx.descends_from(memory.ctx):
                    around[key] |= self._kin(memory)
        pairs = {frozenset((a, b)) for a, b in combinations(self.keys, 2)
                 if views.are_related(owners[a], owners[b])}
        return self.sharing.grown(pairs, around, moved)

    def _kin(self, array: TracedArray) -> dict[int, Any]:
        """An array around the loop and those that may have its memory."""
        return {id(each): each for each in (array, *views.rivals(array))
                if self.ctx.descends_from(each.ctx)}

    def _remember(self, entry: Entry, begun: Mapping[Key, Tracer]) -> None:
        """What may share memory when a round begins."""
        copies = {id(array): copy for array, copy, _ in entry.roots.values()}
        mine = {key: copies.get(id(state), state) for key, state in begun.items()}
        for pair in self.sharing.pairs:
            if pair <= mine.keys():
                views.may_share(*(mine[key] for key in pair))
        for key, arrays in self.sharing.around.items():
            for array in arrays.values() if key in mine else ():
                views.may_share(mine[key], copies.get(id(array), array))
        for root in self.used_up.values():
            mine_or_it = copies.get(id(root), root)
            mine_or_it.changed = mine_or_it

    @contextmanager
    def _in_round(self) -> Iterator[None]:
        """Around what is traced of a round: what it does to arrays around the loop, which leaves
        may be, counts in all rounds, but not for what the first one begins with."""
        arrays = {id(array): array for found in self.sharing.around.values()
                  for array in found.values()} | self.used_up
        before = {key: array.changed for key, array in arrays.items()}
        try:
            yield
        finally:
            for key, array in arrays.items():
                if array.changed is not before[key]:
                    self.used_up[key] = array
                    array.changed = before[key]

    def _settle(self, entry: Entry, known: int) -> None:
        """Raises OtherCarryError where rounds share memory in ways that this one did not know, or
        more than the ``known`` number of arrays are used up."""
        found = self._shared(entry)
        used_up = {id(root): root for root, copy, _ in entry.roots.values()
                   if id(root) not in entry.leaves and copy.changed is not None}
        self.used_up |= used_up
        if not found.is_like(self.sharing) or len(self.used_up) > known:
            self.sharing = found
            raise OtherCarryError

    def _share(self, made: Mapping[Key, Any]) -> None:
        """What may share memory after the loop, and what has changed with it."""
        for root in self.used_up.values():
            root.changed = root
            root.ctx.writes.count += 1
        for pair in self.sharing.pairs:
            if pair <= made.keys():
                views.may_share(*(made[key] for key in pair))
        for key, arrays in self.sharing.around.items():
            for array in arrays.values() if key in made else ():
                views.may_share(made[key], array)


def _grown(name: str, first: Any, value: Any) -> Error:
    """The error for a nest that a round makes another one."""
    sized = isinstance(first, (list, dict)) and isinstance(value, (list, dict))
    return error(
        "W102", f"{told(name)} is {shown(first)} before the loop and {shown(value)} after a round",
        locs=user_loc(), hint=(
            "make an array of as many rows as there may be before the loop, out = np.zeros((most, "
            "*row.shape)), and set out[i] = row") if sized else "give it one structure")


def _is_number(leaf: Any) -> bool:
    return leaf.is_scalar if isinstance(leaf, Tracer) else is_array(leaf) and not np.ndim(leaf)


def _first(x: Tracer) -> Any:
    """0 as the kind of number that it is, or the type of an array."""
    if not x.is_scalar:
        return x.type
    return x.dtype.type(0).item() if x.weak else x.dtype.type(0)


def _in_memory(leaf: Any) -> bool:
    """Whether an array may be changed in place, or share memory with others."""
    return isinstance(leaf, Tracer) and not leaf.is_scalar


def _owned(first: Any, value: Any) -> Tracer:
    """A parameter of a region as an array that may be written to, unless it was an argument of the
    function: those are their caller's. At the end of a round it may be a plain number."""
    if not isinstance(value, Tracer):
        value = current().apply(to_tracer, (value,))
    argument = isinstance(first, Tracer) and views.owner(first).argument
    made = Tracer(value.ctx, value.value, weak=value.weak, argument=argument)
    made.ordered = made.dense = True
    made.made = isinstance(first, Tracer) and not first.is_scalar
    return made
