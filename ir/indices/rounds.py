"""Dims that go by the numbers of rounds: how small and how large they get, and what is known of
them.

    loop t0 in n {           counts: t0 to n
      loop t1 in t0 + 1 {            t1 to t0 + 1
        f64[t1 + 2]          at least 2 elements, at most n + 1

``0 <= t < count`` for each of them; a count may go by the numbers of rounds around.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from .index import (
    Atom,
    Dim,
    Maximum,
    Quotient,
    Remainder,
    Symbol,
    divide,
    maximum,
    minimum,
    positive,
    sum_of,
    symbol,
    symbols_of,
    terms_of,
)
from .proof import nonnegative
from .walk import fold, rebuild, substitute

_TRIED = 1 << 16  # rounds, a millisecond
_EXACT = 1 << 53
_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "+": np.add, "*": np.multiply, "//": np.floor_divide, "%": np.remainder, "max": np.maximum})

Counts = Mapping[str, Dim]  # of rounds, by the name of their number
Range = tuple[Dim, Dim]     # the least and the most


def counts_inside(counts: Counts, index: str, count: Dim | None) -> Counts:
    """The counts inside of a loop, which may have no end (None)."""
    return counts if count is None else {**counts, index: count}


def rounds_behind(dim: Dim, counts: Counts) -> dict[str, Dim]:
    """The counts that a dim goes by, those that they go by among them."""
    found: dict[str, Dim] = {}
    pending = [dim]
    while pending:
        for name in sorted(symbols_of(pending.pop()) & counts.keys() - found.keys()):
            found[name] = counts[name]
            pending.append(counts[name])
    return found


def rounds_that_follow(counts: Counts) -> tuple[Dim, ...]:
    """Facts: how many rounds follow one is never negative."""
    return tuple(count - 1 - symbol(name) for name, count in counts.items())


def range_of(dim: Dim, counts: Counts) -> Range:
    """The least and the most that a dim may be in any round: dims that go by none. Where it grows
    with the number of a round, or gets less, they are what it is in the first round and the last;
    else bounds, which no round may reach."""
    behind = rounds_behind(dim, counts)
    for name in behind:
        # Rounds inside of others first: how many there are goes by those around.
        if any(name in symbols_of(count) for count in behind.values()):
            continue
        rest = {each: count for each, count in behind.items() if each != name}
        facts = rounds_that_follow(behind)
        last = behind[name] - 1
        last = last if nonnegative(last, rounds_that_follow(rest)) else positive(last)
        ends = substitute(dim, {name: 0}), substitute(dim, {name: last})
        step = substitute(dim, {name: symbol(name) + 1}) - dim
        if nonnegative(step, facts):
            least, most = ends
        elif nonnegative(step * -1, facts):
            most, least = ends
        else:
            least, most = _bounds(dim, name, last)
        return range_of(least, rest)[0], range_of(most, rest)[1]
    return dim, dim


def is_natural_when_tried(dim: Dim, counts: Counts) -> bool:
    """Whether a dim is known never to be negative as it is not in any round, all of which are
    tried; False where sizes are not known, or there are too many rounds."""
    behind = rounds_behind(dim, counts)
    if not symbols_of(dim) <= behind.keys() or any(
            not symbols_of(count) <= behind.keys() for count in behind.values()):
        return False
    inside = np.ones((), bool)
    numbers: dict[str, np.ndarray[Any, Any]] = {}
    while len(numbers) < len(behind):  # rounds around others first
        name = next(name for name, count in behind.items() if name not in numbers and (
            symbols_of(count) <= numbers.keys()))
        count = _values(behind[name], numbers)
        most = np.max(count, initial=0, where=inside)
        if not most * inside.size <= _TRIED:
            return False
        number = np.arange(float(most))
        inside = inside[..., None] & (number < count[..., None])
        numbers = {other: values[..., None] for other, values in numbers.items()} | {name: number}
    return bool(np.all(_values(dim, numbers) >= 0, where=inside))


def _values(dim: Dim, numbers: Mapping[str, Any]) -> Any:
    """A dim where the numbers of rounds are arrays of them; NaN where it is too large to tell."""
    def exact(sign: str, a: Any, b: Any) -> Any:
        found = _SIGNS[sign](a, b)
        return np.where(np.abs(found) < _EXACT, found, np.nan)

    found = fold(dim, float, lambda symbol: numbers[symbol.name], exact)
    return np.broadcast_to(np.asarray(found), np.broadcast_shapes(
        *[np.shape(each) for each in numbers.values()]))


def simplified(dim: Dim, counts: Counts) -> Dim:
    """The dim with ``e``, or 0, for each ``max(e, 0)`` that is this in all rounds."""
    def chosen(atom: Atom) -> Dim | None:
        if not isinstance(atom, Maximum):
            return None
        value = simplified(atom.value, counts)
        facts = rounds_that_follow(rounds_behind(value, counts))
        if nonnegative(value, facts):
            return value
        return 0 if nonnegative(value * -1, facts) else positive(value)

    return dim if symbols_of(dim).isdisjoint(counts) else rebuild(dim, chosen)


def _bounds(dim: Dim, name: str, last: Dim) -> Range:
    """Bounds of a dim where a number is between 0 and its last one: of each term by itself."""
    if name not in symbols_of(dim):
        return dim, dim
    least: list[Dim] = []
    most: list[Dim] = []
    for monomial, scale in terms_of(dim):
        found: Range = (1, 1)
        for atom in monomial:
            found = _product(found, _bounds_of_atom(atom, name, last))
        low, high = found if scale > 0 else found[::-1]
        least.append(low * scale)
        most.append(high * scale)
    return sum_of(least), sum_of(most)


def _product(a: Range, b: Range) -> Range:
    if nonnegative(a[0]) and nonnegative(b[0]):
        return a[0] * b[0], a[1] * b[1]
    far = _far(a) * _far(b)
    return far * -1, far


def _far(a: Range) -> Dim:
    """The largest magnitude in a range."""
    return maximum(positive(a[1]), positive(a[0] * -1))


def _bounds_of_atom(atom: Atom, name: str, last: Dim) -> Range:
    match atom:
        case Symbol():
            own = symbol(atom.name, atom.size)
            return (0, last) if atom.name == name else (own, own)
        case Maximum():
            low, high = _bounds(atom.value, name, last)
            return positive(low), positive(high)
        case Quotient():
            low, high = _bounds(atom.numerator, name, last)
            if name not in symbols_of(atom.denominator):
                return divide(low, atom.denominator)[0], divide(high, atom.denominator)[0]
            return minimum(low, 0), positive(high)
        case Remainder():
            return 0, positive(_bounds(atom.denominator, name, last)[1] - 1)
