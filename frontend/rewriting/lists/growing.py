"""Lists that branches and loops make longer or shorter become lists of traced length.

    if x[i] > 0:                   one way leaves a list of 1, the other one of 0: both ways are
        peaks.append(i)            traced again, from a GrowingList with room for 1
    for i in range(n):             a round leaves one of up to 1 more: rounds are traced again, from
        if ...: peaks.append(i)    a GrowingList with room for n

Only lists of names that are ``Own`` do: nobody else has those.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ....ir.ops.control.region import ENDLESS
from ....ir.record import replace
from ...face.source import user_loc
from ...tracing.arrays.filtered import FilteredList
from ...tracing.arrays.growing import NONE, GrowingList
from ...tracing.arrays.items import Item, is_item
from ...tracing.arrays.selection import Selection
from ...tracing.values.tracer import Tracer
from ..regions.optional import as_maybe, common, has_kind, may_be_unbound
from ..regions.state import UNBOUND
from .room import ask_room

# To find out how long a list may become, more than a few items. One that grows by what it has in
# it, as in ``for u in items: more.append(u)`` and then ``items = more``, has no end that is known.
TRIES, FEW = 3, 1 << 16

_KEEP_NOTHING = frozenset({"builtins", "bisect", "_bisect"})  # of their functions


class Own(str):
    """A name whose lists nobody else has."""

    __slots__ = ()
    rows = False  # whether items that are lists are nobody else's, either


class OwnRows(Own):
    """A name of lists of lists of which nobody else has any."""

    __slots__ = ()
    rows = True


def own_name(name: str, trusted: Callable[[], tuple[Any, ...]], rows: bool = False) -> str:
    """A name whose lists nobody else has, nor the ``rows`` in them, if what its code calls by the
    names of modules and builtins is that: others may keep what they are given."""
    try:
        found = trusted()
    except NameError:
        return name
    known = all(isinstance(each, ModuleType) or getattr(each, "__module__", "") in _KEEP_NOTHING
                for each in found)
    return (OwnRows if rows else Own)(name) if known else name


def let_go(value: Any) -> Any:
    """A list that a function returns, for who may give it other names."""
    return value.given if isinstance(value, GrowingList) else value


def growing(value: Any) -> Any:
    """A new list that may be made longer or shorter."""
    chosen = isinstance(value, FilteredList) and not isinstance(value, GrowingList)
    return GrowingList.chosen(value) if chosen and value.known is None else value


def extended(items: Any, more: Any) -> Any:
    """``items += more``"""
    if type(items) is list and isinstance(more, Selection) and more.known is None:
        other = GrowingList.chosen(more)
        item = _item([items, other])
        if item is not None:
            items = GrowingList.made(items, item, len(items))
    items += more
    return items


def inserted(items: Any, at: Any, value: Any) -> Any:
    """``items.insert(at, value)``"""
    if type(items) is list and isinstance(at, Tracer):
        item = _item([items, [value]])
        if item is not None:
            items = GrowingList.made(items, item, len(items))
    items.insert(at, value)
    return items


def queue(kind: Any, *items: Any) -> Any:
    """A new deque, as a list; what else may have that name makes what it makes."""
    if kind is not deque:
        return kind(*items)
    first = items[0] if items else []
    return first if isinstance(first, FilteredList) else list(first)


def popleft(items: Any) -> Any:
    """``items.popleft()``"""
    return items.pop(0) if is_list(items) else items.popleft()


def is_list(value: Any) -> bool:
    return type(value) is list or isinstance(value, GrowingList)


def may_grow(name: str, value: Any) -> bool:
    """Whether a loop may carry a list though rounds may make it longer."""
    return isinstance(name, Own) and (
        isinstance(value, GrowingList) or (type(value) is list and all(
            is_item(item, name.rows) for item in value)))


def _most(value: Any) -> Dim:
    found: Dim = value.most if isinstance(value, GrowingList) else len(value)
    return found


def _least(value: Any) -> int:
    return value.least if isinstance(value, GrowingList) else len(value)


def _room(value: Any) -> Dim:
    return value.room if isinstance(value, GrowingList) else len(value)


def _larger(one: Dim, other: Dim) -> Dim:
    """Of two sizes that are a number apart."""
    gap = one - other
    if not isinstance(gap, int):
        raise error("W201", "how long a list may become is not known before the function runs",
                    locs=user_loc(), hint="give the dims of its arguments numbers")
    return one if gap >= 0 else other


def _item(values: Sequence[Any], rows: bool = False) -> Item | None:
    """What the items of lists, ``rows`` perhaps, are like; None if they have not one shape, or
    there are none."""
    found: Item | None = None
    for value in values:
        for item in [value.item] if isinstance(value, GrowingList) else (
                Item.of(each, rows) for each in value):
            found = item if found is None or item is None else found.joined(item)
            if found is None:
                return None
    return found


def converted(value: Any, item: Any, room: Dim | None) -> Any:
    """A list as one of that form; without room, what may be None."""
    if room is None:
        return as_maybe(value, item)
    if not isinstance(value, GrowingList):
        return GrowingList.made(value, item, room)
    return value if (value.item, value.room) == (item, room) else value.widened(item, room)


Form = tuple[Any, Dim | None]  # of items with room for so many, or a Kind


def forms(
    names: Sequence[str], before: Sequence[Any], ways: Sequence[Sequence[Any]], tries: int = 0,
) -> dict[int, Form]:
    """By the numbers of names, the form that lists need that two ways leave with different lengths:
    of which items, with how much room. None for those that have it. What is None on one way needs
    one as well. After so many ``tries`` nobody knows how long they become."""
    found: dict[int, Form] = {}
    for at, name in enumerate(names):
        values = [way[at] for way in ways]
        kind = common(values, may_be_unbound(name))
        if kind is not None:
            if not all(has_kind(value, kind) for value in values):
                found[at] = kind, None
            continue
        if not isinstance(name, Own) or not all(map(is_list, values)):
            continue
        growing = [isinstance(value, GrowingList) for value in values]
        rooms = [_room(value) for value in values]
        if growing[0] == growing[1] and rooms[0] == rooms[1] and (
                not growing[0] or values[0].item == values[1].item):
            continue
        known = [before[at]] if is_list(before[at]) else []
        item = _item([*known, *values], name.rows)
        if item is not None:
            room = _larger(*rooms)
            for value in known:
                room = _larger(room, _room(value))
            found[at] = replace(item, open=item.open or tries > TRIES), room
    return found


def formed(values: Sequence[Any], wanted: Mapping[int, Form]) -> tuple[Any, ...]:
    """The values, of which lists have the forms that are wanted, if these hold them."""
    def fits(value: Any, room: Dim) -> bool:
        spare = room - _room(value)
        return not isinstance(spare, int) or spare >= 0

    def made(value: Any, item: Any, room: Dim | None) -> Any:
        if room is None:
            missing = value is UNBOUND and not (isinstance(item, Item) and item.unbound)
            return value if missing else as_maybe(value, item)
        return converted(value, item, room) if is_list(value) and fits(value, room) else value

    return tuple(made(value, *wanted[at]) if at in wanted else value
                 for at, value in enumerate(values))


def joined(value: Any, ways: Sequence[Any]) -> Any:
    """A list that two ways have left: as many items as either may have."""
    if isinstance(value, GrowingList) and all(map(is_list, ways)):
        value.relative = any(way.relative for way in ways)
        # A list that one way has made tells nothing of how long the one before has become.
        value.least = NONE if value.relative != all(way.relative for way in ways) else min(
            map(_least, ways))
        value.most = _larger(*map(_most, ways))
    return value


class Growth:
    """How a round changes the length of a list that a loop carries: by how many items at most, and
    at least; and how many more than at its beginning there are during a round (``peak``)."""

    def __init__(self) -> None:
        self.most = self.least = self.peak = self.tries = 0
        self.base: Dim | None = None  # how many items there may be before the loop
        self.started: GrowingList | None = None

    def begin(self, value: GrowingList) -> None:
        """Before any round of the loop."""
        value.most = value.room if value.item.open else value.room - self.peak
        value.relative = True
        if self.least < 0:
            value.least = 0
        self.started = value.copy()

    def after(
        self, first: Any, value: Any, limit: Dim, behind: frozenset[str] = frozenset(),
        rows: bool = False,
    ) -> Form | None:
        """What the list is to be before the loop, after a round that began with ``first``, or with
        what ``begin`` was told: of which items, with how much room. None if it is that already.
        Raises TracerError (W201) where it may grow without an end that is known; the arguments
        ``behind`` say it."""
        started = self.started if isinstance(first, GrowingList) else first
        if not is_list(value) or not is_list(started):
            return None
        most, least = _most(value) - _most(started), _least(value) - _least(started)
        if isinstance(value, GrowingList) and isinstance(first, GrowingList) and (
                not value.relative):
            least = NONE  # it is another list
        same = isinstance(first, GrowingList) == isinstance(value, GrowingList) and (
            not isinstance(value, GrowingList) or first.item == value.item)
        if same and _room(value) == _room(started) and (
                (most, least) == (0, 0) if type(value) is list else
                isinstance(most, int) and most <= self.most and least >= self.least):
            return None
        item = _item([first, value], rows)
        if item is None or not isinstance(most, int):
            return None
        self.tries += 1
        if item.open or (most > 0 and (limit is ENDLESS or self.tries > TRIES)):
            self.least = min(self.least, least)
            room = _larger(_room(first), _room(value))
            return replace(item, open=True), room if item.open else room + ask_room(behind)
        if self.base is None:
            self.base, self.most, self.least = _most(first), most, least
        self.most, self.least = max(self.most, most), min(self.least, least)
        higher = _room(value) - _most(started)
        if _room(value) != _room(started) and isinstance(higher, int):
            self.peak = max(self.peak, higher)
        self.peak = max(self.peak, self.most)
        rounds = self.most * limit - self.most if self.most > 0 else 0
        gap = self.base + rounds + self.peak - _room(first)
        if not isinstance(gap, int):  # more than enough
            return item, _room(first) + rounds + self.peak
        room = _room(first) + max(gap, 0)
        asked = _larger(_room(first), _room(value))
        if self.tries > 1 and isinstance(room, int) and isinstance(asked, int) and (
                room > FEW and room > 2 * asked):
            return replace(item, open=True), asked + ask_room(behind)
        return item, room

    def end(self, value: GrowingList, first: GrowingList, limit: Dim, exact: bool) -> GrowingList:
        """After the loop; ``exact``: it has as many rounds as the limit says."""
        value.relative = first.relative
        known = not value.item.open
        if exact and known and self.most == self.least and isinstance(limit, int):
            value.least = first.least + self.least * limit
            value.most = first.most + self.most * limit
            return value
        value.most = value.room if self.most > 0 or not known else first.most
        value.least = first.least if self.least >= 0 else NONE if first.relative else 0
        return value
