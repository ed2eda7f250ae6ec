"""A list that a branch or a loop of the program makes longer or shorter.

    if x[i] > x[i - 1]:          rows   the items, as arrays with room for as many as there may be
        peaks.append(i)          count  how many there are
    v = queue.pop(0)             start  of a list that loses items at its front: in which row its
                                        first item is. The row after the last one is the first
Beside the traced count it is known how many items there are at least and at most. Where both are
equal it is a list of known length. To NumPy's functions it is the elements of ``rows`` under a
mask. Whoever else had the list would have the one before: only lists of one name become such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.indices.index import Dim
from ....ir.record import replace
from ....ir.types import I64, TensorType
from ...face import tree
from ...face.source import user_loc
from ..context.active import current
from ..context.distance import tell_bound
from ..operand import cast, shape_of, to_tracer
from ..spec import Spec
from ..values.tracer import SymbolicDim, Tracer
from . import views
from .filtered import FilteredList, changing
from .items import Item, array_of, leaves_of, zeros
from .selection import Selection

NONE = -1 << 60  # the least number of items where there may be none, whatever there was before
FULL = "a list has become longer than there is room for"


class GrowingList(FilteredList):
    """See the module docstring. Each leaf of an item has an array of ``rows``."""

    __slots__ = ("_rows", "count", "item", "least", "most", "relative", "start")
    count: Any  # how many items there are, not a method

    def __init__(self, item: Item, rows: Sequence[Any], count: Any, least: int, most: Dim,
                 relative: bool = False) -> None:
        self.item, self.rows, self.count = item, list(rows), count
        self.least, self.most, self.taken, self.locs = least, most, None, user_loc()
        self.relative = relative  # in a round, the least is what it is where the round began so

    @staticmethod
    def made(items: Sequence[Any], item: Item, room: Dim) -> GrowingList:
        """The list of these items, with room for more."""
        parts = [leaves_of(item, each) for each in items]
        rows = []
        for at, type_ in enumerate(item.types):
            spare = zeros(type_, room - len(parts))
            rows.append(np.concatenate([np.stack([part[at] for part in parts]), spare])
                        if parts else spare)
            _remember(rows[-1], [], *[part[at] for part in parts])
        count: Any = current().apply(to_tracer, (np.int64(len(parts)),))
        return GrowingList(item, rows, count, len(parts), len(parts))

    @staticmethod
    def chosen(x: Selection) -> GrowingList | list[Any]:
        """The list of chosen elements."""
        mask: Any = np.ravel(x.mask)
        size = mask.type.shape[0]
        if size == 0:
            return []
        array = x.array.reshape(size, *x.array.type.shape[x.mask.ndim:])
        weak = isinstance(x, FilteredList) and x.weak
        number: Any = current().emit("iota", axis=0, dtype=I64, shape=(size,))
        places = np.searchsorted(np.cumsum(mask), number + 1)
        row = array[np.minimum(places, size - 1)]
        item = Item(tree.LEAF, (TensorType(row.type.dtype, row.type.shape[1:]),), (weak,))
        return GrowingList(item, [row], np.sum(mask), 0, size)

    @property
    def room(self) -> Dim:
        return shape_of(self._rows[0])[0]

    @property
    def rows(self) -> list[Any]:
        """The rows from the first item on."""
        if not self.item.ring:
            return self._rows
        place = self._at(current().emit("iota", axis=0, dtype=I64, shape=(self.room,)))
        return [row[place] for row in self._rows]

    @rows.setter
    def rows(self, rows: list[Any]) -> None:
        for row, before in zip(rows, getattr(self, "_rows", ()), strict=False):
            _remember(row, [before])
        self._rows = rows
        self.start: Any = current().apply(to_tracer, (np.int64(0),)) if self.item.ring else 0

    def _at(self, place: Any) -> Any:
        """In which row the item at a place is."""
        if not self.item.ring:
            return place
        place = place + self.start
        return np.where(place < self.room, place, place - self.room)

    def widened(self, item: Item, room: Dim) -> GrowingList:
        """The same items, of types that hold more, with more room. What is a ring stays one."""
        item = replace(item, ring=item.ring or self.item.ring)
        more = room != self.room
        rows: list[Any] = [cast(row, type_.dtype.numpy) for row, type_ in zip(
            self.rows if more else self._rows, item.types, strict=True)]
        if more:
            rows = [np.concatenate([row, zeros(type_, room - self.room)])
                    for row, type_ in zip(rows, item.types, strict=True)]
        made = GrowingList(item, rows, self.count, self.least, self.most, self.relative)
        for row, before in zip(rows, self._rows, strict=True):
            _remember(row, [before])
        if self.item.ring and not more:
            made.start = self.start
        return made

    # -- as elements under a mask

    @property
    def array(self) -> Any:
        return array_of(self.item.structure, iter(self.rows))

    @property
    def mask(self) -> Any:
        places: Any = current().emit("iota", axis=0, dtype=I64, shape=(self.room,))
        return places < self.count

    @property
    def known(self) -> Any:  # type: ignore[override]
        if self.least != self.most or not isinstance(self.room, int):
            return None
        return np.arange(self.room) < self.least

    @property
    def weak(self) -> bool:  # type: ignore[override]
        return all(self.item.weak)

    @property
    def shape(self) -> tuple[Any, ...]:
        count = self.least if self.known is not None else self.length
        alike = len({row.type.shape for row in self.rows}) == 1
        return (count, *(self.array.shape[1:] if alike else ()))

    @property
    def length(self) -> Any:
        """The traced number of items."""
        found = Tracer(self.count.ctx, self.count.value, weak=True)
        tell_bound(current(), found, self.room)
        return found

    def leaves(self) -> tuple[Any, ...]:
        return (*self._rows, self.count, *([self.start] if self.item.ring else []))

    def again(self, *leaves: Any) -> GrowingList:
        rows, (count, *start) = leaves[:len(self._rows)], leaves[len(self._rows):]
        made = type(self)(self.item, rows, count, self.least, self.most, self.relative)
        made.start = start[0] if start else 0
        return made

    def of(self, array: Any, *masks: Any) -> FilteredList:
        mask, = masks or (self.mask,)
        return FilteredList(array, mask, self.locs, self.weak)

    @property
    def given(self) -> Any:
        """The list for who may give it another name: of known length a list of Python's, else what
        nobody can change."""
        if self.known is not None:
            return list(self)
        if self.item.structure != tree.LEAF:
            return GivenList(self.item, self.rows, self.count, self.least, self.most)
        return self.of(self.array)

    # -- as a list

    def append(self, value: Any) -> None:
        checked = self.item.open and self.known is None
        leaves = self._admitted(value, int(self.most == self.room and not checked))
        place: Any = self.count if self.known is None else self.least
        if checked:
            place = current().emit("ensure", place, self.room - 1 - place, message=FULL)
            self.count, self.most = place, self.most - int(self.most == self.room)
        self._put(place, leaves)
        self._moved(1)

    def insert(self, at: Any, value: Any) -> None:
        """Items from a place on are one further on, as in Python: of no place beyond the ends."""
        count = self.count if self.known is None else self.least
        self.append(value)
        at = np.where(at < 0, np.maximum(at + count, 0), np.minimum(at, count))
        place: Any = current().emit("iota", axis=0, dtype=I64, shape=(self.room,))
        source = np.where(place > at, place - 1, place)
        source = np.where(place == at, count, np.where(place > count, place, source))
        self.rows = [row[source] for row in self.rows]

    def _put(self, place: Any, leaves: Sequence[Any]) -> None:
        at = self._at(place)
        rows = [row.at[at].set(leaf) for row, leaf in zip(self._rows, leaves, strict=True)]
        for new, old, leaf in zip(rows, self._rows, leaves, strict=True):
            _remember(new, [old], leaf)
        self._rows = rows

    def _admitted(self, value: Any, more: int = 0) -> list[Any]:
        """The leaves of an item that the list gets, as all of its items are from then on; room for
        so many more."""
        item = Item.of(value, self.item.structure.kind is list)
        item = None if item is None else self.item.joined(item)
        if item is None:
            raise self._unlike(value)
        if more or item != self.item:
            wide = self.widened(item, self.room + more)
            self.item, self._rows, self.start = wide.item, wide._rows, wide.start
        return leaves_of(item, value)

    def extend(self, values: Any) -> None:
        if isinstance(values, Selection) and values.known is None:
            self._join(values)
            return
        for value in values:
            self.append(value)

    def _join(self, values: Selection) -> None:
        """Extend by as many items as values say."""
        other = values if isinstance(values, GrowingList) else GrowingList.chosen(values)
        if not isinstance(other, GrowingList):
            return
        item = self.item.joined(other.item)
        spare = self.room - self.most - other.most
        if item is None or not isinstance(spare, int):
            raise self._refused("extended by a list of which that is so as well")
        room = self.room if self.item.open or spare >= 0 else self.room - spare
        here, there = self.widened(item, room), other.widened(item, other.room)
        count: Any = self.count
        if self.item.open:
            count = current().emit("ensure", count, room - count - other.count, message=FULL)
            spare = max(spare, 0)
        place: Any = current().emit("iota", axis=0, dtype=I64, shape=(room,))
        last: Any = other.room - 1
        source = np.clip(place - count, 0, last)
        self.rows = [np.where(np.expand_dims(place < count, tuple(range(1, row.ndim))), row,
                              more[source])
                     for row, more in zip(here.rows, there.rows, strict=True)]
        for row, more in zip(self._rows, there.rows, strict=True):
            _remember(row, [more])
        self.item, self.count = item, count + other.count
        self.least = self.least + other.least
        self.most = room - spare

    def __iadd__(self, values: Any) -> GrowingList:
        self.extend(values)
        return self

    def pop(self, at: Any = -1) -> Any:
        if type(at) is not int or at not in (0, -1):
            raise self._refused("asked for an item in the middle")
        if self.known is not None:
            found = self[at]
            self._moved(-1)
        else:  # the length depends on the check, if nothing else does
            left = self.count - 1
            left = current().emit("ensure", left, left, message="pop from empty list")
            found = self.row(left if at == -1 else 0)
            self.count, self.least, self.most = left, self.least - 1, self.most - 1
        if at == 0:
            if not self.item.ring:
                self.item = replace(self.item, ring=True)
                self.rows = self._rows
            self.start = self._at(1)
        return found

    def take(self, place: Any) -> Any:
        """Take out the item at a place, where the last one is afterwards."""
        found, last = self.row(place), self.count - 1
        self.rows = [row.at[place].set(row[last]) for row in self.rows]
        self._moved(-1)
        return found

    def clear(self) -> None:
        self.count, self.least, self.most = self.count * 0, NONE if self.relative else 0, 0

    def copy(self, order: str = "C") -> GrowingList:
        return self.again(*self.leaves())

    def _moved(self, by: int) -> None:
        self.count = self.count + by
        self.least, self.most = self.least + by, self.most + by

    def _place(self, at: Any) -> Any:
        """Where an item is, which the step fails without."""
        if self.known is not None and not isinstance(at, Tracer):
            if not -self.least <= at < self.least:
                raise IndexError("list index out of range")
            return at % self.least
        place: Any = at if isinstance(at, Tracer) else to_tracer(np.int64(at))
        place = cast(place, np.dtype(np.int64))
        if not isinstance(at, Tracer) and at >= 0:
            back = place
        elif isinstance(at, Tracer):
            back = np.where(place < 0, place + self.count, place)
        else:
            back = place + self.count
        spare = np.minimum(back, self.count - 1 - back)
        return current().emit("ensure", back, spare, message="list index out of range")

    def __getitem__(self, at: Any) -> Any:
        if not _is_number(at):
            if self.item.structure != tree.LEAF:
                return self._part(at)
            return self.of(self.array)[at]
        return self.row(current().apply(self._place, (at,)))

    def _part(self, at: Any) -> Any:
        """A slice of tuples: another list."""
        if self.known is not None:
            return list(self)[at]
        ends = [at.start, at.stop] if isinstance(at, slice) else []
        forwards = bool(ends) and at.step in (None, 1) and all(
            end is None or _is_number(end) for end in ends)
        if not forwards and (ends != [None, None] or at.step != -1):
            raise self._refused("asked for a part of it")
        place: Any = current().emit("iota", axis=0, dtype=I64, shape=(self.room,))
        last: Any = self.room - 1
        if not forwards:
            count, source = self.count, self.count - 1 - place
        else:
            start, stop = (self.count * 0 + default if end is None else np.minimum(np.where(
                end < 0, np.maximum(end + self.count, 0), end), self.count)
                for end, default in zip(ends, (0, self.count), strict=True))
            count, source = np.maximum(stop - start, 0), place + start
        rows = [row[np.clip(source, 0, last)] for row in self.rows]
        return GrowingList(self.item, rows, count, NONE if self.relative else 0, self.most,
                           self.relative)

    def row(self, place: Any) -> Any:
        """What is at a place, be there an item or not."""
        place = self._at(place)
        found = [row[place] for row in self._rows]
        # Who writes to an array of a list changes it for all who have the array.
        return tree.unflatten(self.item.structure, [
            Tracer(x.ctx, x.value, weak=weak, argument=bool(x.ndim))
            for x, weak in zip(found, self.item.weak, strict=True)])

    def __setitem__(self, at: Any, value: Any) -> None:
        if not _is_number(at):
            raise self._refused("changed in a part of it")
        leaves = self._admitted(value)
        self._put(current().apply(self._place, (at,)), leaves)

    def __len__(self) -> int:
        if self.known is None:
            raise error("W201", "the length of this list is decided when the function runs, and "
                                "Python asks for it", locs=user_loc(), types=[self.array.type],
                        hint="take len(items) in a function that is compiled, where it is traced")
        return self.least

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def _refused(self, what: str) -> Error:
        return error("W123", f"a list whose length is decided when the function runs is {what}",
                     locs=user_loc(), types=[self.array.type],
                     hint="make an array of all items before it, out = np.zeros(n), set out[i] "
                          "where there is one, and count them")

    def _unlike(self, value: Any) -> Error:
        shown = ", ".join(map(str, self.item.types))
        return error("W102", f"an item that is not like the others, {shown}, of a list whose "
                             "length is decided when the function runs", locs=user_loc(),
                     types=[x.type for x in tree.leaves(value) if isinstance(x, Tracer)],
                     hint="give all items one shape")

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        if key is not None or self.item.structure != tree.LEAF or self.rows[0].ndim != 1:
            raise self._refused("sorted in place by a key")
        order = np.lexsort((self.rows[0], np.logical_not(self.mask)))
        found = self.rows[0][order]
        if reverse:
            places: Any = current().emit("iota", axis=0, dtype=I64, shape=(self.room,))
            found = found[np.where(places < self.count, self.count - 1 - places, places)]
        self.rows = [found]

    def remove(self, value: Any) -> None:
        raise self._refused("asked to remove an item")

    def index(self, value: Any) -> None:
        raise self._refused("asked where an item is")

    def reverse(self) -> None:
        raise self._refused("turned round in place")


def _remember(row: Any, before: Sequence[Any], *items: Any) -> None:
    """Items are the very arrays, of which the row has copies: who writes to one of them may not
    read the list; as for the row ``before``."""
    for each in before:
        for array in views.rivals(views.owner(each)):
            views.may_share(row, array)
    for item in items:
        if item.ndim:
            views.may_share(row, item)


class GivenList(GrowingList):
    """A list of tuples that has been given away: nobody can change it."""

    __slots__ = ()

    def again(self, *leaves: Any) -> GivenList:
        *rows, count = leaves
        return GivenList(self.item, rows, count, self.least, self.most, self.relative)

    @property
    def given(self) -> GivenList:
        return self

    def row(self, place: Any) -> Any:
        if self.item.structure.kind is list:
            raise self.unchangeable("__getitem__")  # who changes a row changes it for all
        return super().row(place)

    def unchangeable(self, method: str) -> Error:
        items = "lists" if self.item.structure.kind is list else "tuples"
        return error("W123", f"a list of {items} whose length is decided when the function runs, "
                             f"and which a function has returned, is asked to .{method}()",
                     locs=user_loc(), types=[row.type for row in self.rows],
                     hint="make another list of it in a loop")

    def __setitem__(self, at: Any, value: Any) -> None:
        raise self.unchangeable("__setitem__")

    append, extend, pop, clear, sort, __iadd__ = map(changing, (
        "append", "extend", "pop", "clear", "sort", "__iadd__"))


class ReturnedList:
    """A list of tuples as a result of the program: a nest of its rows and of how many items there
    are."""

    by_values = True

    def __init__(self, found: GrowingList) -> None:
        self.item, self.parts = found.item, (*found.rows, found.count)

    @staticmethod
    def items(item: Item, parts: Sequence[Any]) -> Any:
        """What the program gave as what the function returns; of types, those of an item."""
        *rows, count = parts
        if isinstance(count, Spec):
            return [tree.unflatten(item.structure, [
                Spec(row.dtype, row.shape[1:]) for row in rows])]
        columns = [row[:count].tolist() if weak else row[:count]
                   for row, weak in zip(rows, item.weak, strict=True)]
        return [tree.unflatten(item.structure, list(each))
                for each in zip(*columns, strict=True)]


tree.register(ReturnedList, lambda found: (found.parts, found.item), ReturnedList.items)


def _is_number(at: Any) -> bool:
    if isinstance(at, Tracer):
        return at.ndim == 0 and not isinstance(at, SymbolicDim) and at.dtype.kind in "iu"
    return isinstance(at, (int, np.integer)) and not isinstance(at, bool)
