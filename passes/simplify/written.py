"""What an update of a buffer is, and which update of it was the last one of an element.

An update is a select of a padded patch, by a mask padded alike:

    y = select(pad(true), pad(v), x)        x with the elements of a region replaced by v

To walk from the end of a thousand updates to the one that a slice asks for, slice by slice, takes
time that grows with the square of their number. So behind a few updates elements are numbered: a
table of the shape of the buffer has the last update of each element, and grows with the chain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...ir.graph import Value, constant_of
from ...ir.indices.index import Dim, product
from ...ir.record import field, record
from .rewrite import Rule, matched

NEAR = 8                 # updates that are walked past before a table is made
MOST_ELEMENTS = 1 << 22  # of a buffer with a table


@record(frozen=True)
class Region:
    """An array with a region replaced, the bounds of which may go by sizes."""

    base: Value
    patch: Value | None     # or
    fill: Value | None      # a constant, which every element is
    low: tuple[Dim, ...]
    step: tuple[Dim, ...]
    count: tuple[Dim, ...]

    @property
    def number(self) -> bool | int | float:
        """The constant of an update without a patch."""
        found = None if self.fill is None else constant_of(self.fill)
        assert found is not None
        return found


@record(frozen=True)
class Update(Region):
    """An array with a region of known bounds replaced."""

    low: tuple[int, ...]
    step: tuple[int, ...]
    count: tuple[int, ...]

    def part(self, at: int) -> range:
        """The indices of one axis that are replaced."""
        stop = self.low[at] + self.count[at] * self.step[at]
        return range(self.low[at], stop, self.step[at])


_KEYS = ("low", "high", "interior")
_PATCHED = Rule("update", "select(pad(k), pad(y), x)", "x", when=lambda match: all(
    match.attrs[1][key] == match.attrs[2][key] for key in _KEYS))
_FILLED = Rule("filled", "select(pad(k), m, x)", "x")


def update_of(value: Value) -> Update | None:
    """What a value is, if it is an update whose region is known."""
    found = region_of(value)
    if found is None:
        return None
    low, step, count = (tuple([dim for dim in dims if isinstance(dim, int)])
                        for dims in (found.low, found.step, found.count))
    whole = len(low) == len(step) == len(count) == len(found.low)
    return Update(found.base, found.patch, found.fill, low, step, count) if whole else None


def region_of(value: Value) -> Region | None:
    """What a value is, if it is an update, whose region may go by sizes."""
    match = matched(_PATCHED, value) or matched(_FILLED, value)
    if match is None or match.constant("k") is not True or match.attrs[1]["value"]:
        return None
    low, gap = match.attrs[1]["low"], match.attrs[1]["interior"]
    return Region(match["x"], match.values.get("y"), match.values.get("m"), tuple(low),
                  tuple(between + 1 for between in gap), match["k"].shape)


def within(part: range, whole: range) -> bool:
    return not part or (part[0] in whole and part[-1] in whole and (
        len(part) == 1 or part.step % whole.step == 0))


def apart(one: range, other: range) -> bool:
    """True if two ranges surely have nothing in common."""
    if not one or not other or max(one[0], one[-1]) < other[0] or other[-1] < min(
            one[0], one[-1]):
        return True
    return one.step % other.step == 0 and (one[0] - other[0]) % other.step != 0


@record(eq=False)
class _Chain:
    """Values of a buffer, each an update of the one before; ``last`` has the number of the value
    whose update wrote an element last, -1 for those of ``root``."""

    root: Value
    last: NDArray[np.int32]
    values: list[Value] = field(default_factory=list)
    numbers: dict[Value, int] = field(default_factory=dict)


class Written:
    """The updates among the values of a graph that is being made."""

    def __init__(self) -> None:
        self._updates: dict[Value, Update | None] = {}
        self._chains: dict[Value, _Chain] = {}

    def update(self, value: Value) -> Update | None:
        """The update that a value is, or None."""
        if value not in self._updates:
            self._updates[value] = update_of(value)
        return self._updates[value]

    def behind(self, value: Value, parts: Sequence[range]) -> Value:
        """The first of a value, what that is an update of, and so on, that surely is no update of
        other elements than these."""
        steps = 0
        while (update := self.update(value)) is not None:
            if not any(apart(part, update.part(at)) for at, part in enumerate(parts)):
                break
            if steps == NEAR and (found := self._by_table(value, parts)) is not None:
                return found
            value, steps = update.base, steps + 1
        return value

    def _by_table(self, value: Value, parts: Sequence[range]) -> Value | None:
        """``behind`` without a walk; None where the table knows of later values only."""
        chain = self._chain(value)
        if chain is None:
            return None
        numbers = chain.last[tuple(map(_elements, parts))]
        newest = int(numbers.max(initial=-1))
        if newest > chain.numbers[value]:
            return None
        return chain.values[newest] if newest >= 0 else chain.root

    def _chain(self, value: Value) -> _Chain | None:
        """The chain that a value is in; None if the buffer is huge, or another chain goes on from
        where this one begins."""
        if value in self._chains:
            return self._chains[value]
        new, base = [value], value
        while (update := self.update(base)) is not None and update.base not in self._chains:
            base = update.base
            new.append(base)
        chain = self._chains.get(update.base) if update is not None else None
        if update is None:
            size = product(base.shape)
            if not isinstance(size, int) or size > MOST_ELEMENTS:
                return None
            new.pop()
            shape = [n for n in base.shape if isinstance(n, int)]
            chain = _Chain(base, np.full(shape, -1, np.int32))
        elif chain is None or chain.values[-1] is not update.base:
            return None
        for each in reversed(new):
            update = self.update(each)
            assert update is not None
            region = tuple([_elements(update.part(at)) for at in range(len(each.shape))])
            chain.last[region] = len(chain.values)
            chain.numbers[each] = len(chain.values)
            chain.values.append(each)
            self._chains[each] = chain
        return chain


def _elements(part: range) -> slice:
    """The indices of a range, in rising order."""
    if not part:
        return slice(0)
    return slice(min(part[0], part[-1]), max(part[0], part[-1]) + 1, abs(part.step))
