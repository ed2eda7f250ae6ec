"""Ranges of integers: what a value is at least and at most, as expressions of other values.

    for t0 in range(max(n - 1, 0)):            t0: 0 .. n - 2           n: what the caller gives
        i = t0 + 1                             i = t0 + 1               0 <= i - 1, i <= n - 1
        for t1 in range(max(i, 0)):            t1: 0 .. i - 1
            A[i, t1]                           t1 < i <= n - 1
            if t1 >= 1: A[i, t1 - 1]           t1: 1 .. i - 1

Every integer of a graph is an expression that is linear in *symbols*: numbers of rounds, sizes, and
values of which no more is known. Each symbol has bounds below and above, which are linear in older
symbols, so that the largest value of an expression follows by putting bounds in the place of
symbols, the newest first. A comparison that leads into a branch, or into the next round, bounds the
newest symbol that it has.

Of arrays, the expression is that of any element: symbols of arrays stand for elements at one place.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, MutableMapping, Sequence
from functools import cached_property

from ...ir.graph import Value, constant_of
from ...ir.indices.index import Dim, Expr, Maximum, Symbol, bounds, symbol, symbols_of, terms_of
from ...ir.record import field, record, replace
from ...ir.types import BOOL, I64, DType

_TRIES = 60  # bounds that are put in the place of symbols, for one question
_MOST_BOUNDS = 4  # of a symbol, on a side


@record(frozen=True)
class Limits:
    """What bounds a symbol: ``low <= symbol <= high`` for each of both. ``least`` are values of
    which it is the larger one; ``age`` is larger for what came later."""

    age: int
    low: tuple[Dim, ...]
    high: tuple[Dim, ...]
    least: tuple[Dim, ...] = ()
    scalar: bool = True

    @cached_property
    def numbers(self) -> tuple[int, int] | None:
        """The bounds, if they are numbers."""
        low = [bound for bound in self.low if isinstance(bound, int)]
        high = [bound for bound in self.high if isinstance(bound, int)]
        whole = low and high and len(low) + len(high) == len(self.low) + len(self.high)
        return (max(low), min(high)) if whole else None


Known = tuple[Dim, ...]
"""Expressions that are not negative."""


@record
class Ranges:
    """What is known at a place of a program; ``inside`` gives that of a body."""

    limits: MutableMapping[str, Limits] = field(default_factory=dict)
    exprs: MutableMapping[Value, Dim] = field(default_factory=dict)
    # What holds if a truth value is true, and if it is false.
    truths: MutableMapping[Value, tuple[Known, Known]] = field(default_factory=dict)
    _serial: list[int] = field(default_factory=lambda: [0])

    def inside(self, index: str = "") -> Ranges:
        """The same, to learn more that is not known outside; what is known of a symbol ``index``
        is of another one."""
        if index not in self.limits:
            return Ranges(ChainMap({}, self.limits), ChainMap({}, self.exprs),
                          ChainMap({}, self.truths), self._serial)
        limits = {name: replace(each, low=_without(each.low, index), high=_without(
            each.high, index), least=()) for name, each in self.limits.items() if name != index}
        exprs = {value: expr for value, expr in self.exprs.items()
                 if index not in symbols_of(expr)}
        return Ranges(limits, exprs, {}, self._serial)

    # -- symbols --------------------------------------------------------------------------------

    def bound(self, name: str, low: Sequence[Dim], high: Sequence[Dim], *,
              least: Sequence[Dim] = (), scalar: bool = True) -> Expr:
        """A new symbol with bounds."""
        self._serial[0] += 1
        self.limits[name] = Limits(self._serial[0], tuple(low), tuple(high), tuple(least), scalar)
        return symbol(name)

    def some(self, dtype: DType, low: Sequence[Dim] = (), high: Sequence[Dim] = (), *,
             least: Sequence[Dim] = (), scalar: bool = True) -> Expr:
        """A symbol for a value of which no more is known."""
        first, last = limits_of(dtype)
        return self.bound(f"%{self._serial[0]}", (first, *low), (last, *high), least=least,
                          scalar=scalar)

    def expr(self, value: Value) -> Dim:
        """The expression of an integer."""
        found = self.exprs.get(value)
        if found is None:
            number = constant_of(value)
            found = self.exprs[value] = int(number) if isinstance(number, int) else self.some(
                value.dtype, scalar=not value.shape)
        return found

    def is_uniform(self, expr: Dim) -> bool:
        """Whether an expression has one value, whatever element it is taken for."""
        return all(name not in self.limits or self.limits[name].scalar
                   for name in symbols_of(expr))

    # -- questions ------------------------------------------------------------------------------

    def least(self, expr: Dim) -> int | None:
        """What an expression is at least; None where nothing is known."""
        found = self._most(-1 * expr, [_TRIES])
        return None if found is None else -found

    def most(self, expr: Dim) -> int | None:
        """What an expression is at most."""
        return self._most(expr, [_TRIES])

    def holds(self, expr: Dim) -> bool | None:
        """Whether ``expr >= 0``: always, never, or None."""
        least = self.least(expr)
        if least is not None and least >= 0:
            return True
        most = self.most(expr)
        return False if most is not None and most < 0 else None

    def fits(self, expr: Dim, dtype: DType) -> bool:
        """Whether an expression surely is a number of a dtype."""
        low, high = limits_of(dtype)
        least, most = self.least(expr), self.most(expr)
        return least is not None and most is not None and low <= least and most <= high

    def _most(self, expr: Dim, tries: list[int]) -> int | None:
        if isinstance(expr, int):
            return expr
        found = self._of_numbers(expr)
        if found is not None:
            return found
        tries[0] -= 1
        newest, scale = self._newest(expr)
        if not newest:  # there are sizes alone
            return _most_of_sizes(expr)
        if tries[0] < 0:
            return None
        limits = self.limits[newest]
        rest, best = expr - scale * symbol(newest), None
        for bound in limits.high if scale > 0 else limits.low:
            found = self._most(rest + scale * bound, tries)
            if found is not None and (best is None or found < best):
                best = found
        return best

    def _of_numbers(self, expr: Expr) -> int | None:
        """What an expression is at most, if all of its symbols have numbers as bounds."""
        total = 0
        for atoms, scale in terms_of(expr):
            if not atoms:
                total += scale
                continue
            atom = atoms[0]
            limits = self.limits.get(atom.name) if len(atoms) == 1 and isinstance(
                atom, Symbol) else None
            if limits is None or limits.numbers is None:
                return None
            total += scale * limits.numbers[scale > 0]
        return total

    def _newest(self, expr: Dim) -> tuple[str, int]:
        """The newest symbol of the terms that are linear, with its factor; empty if there is
        none."""
        found = [(atoms[0].name, scale) for atoms, scale in terms_of(expr)
                 if len(atoms) == 1 and isinstance(atoms[0], Symbol)
                 and atoms[0].name in self.limits]
        return max(found, key=lambda pair: self.limits[pair[0]].age, default=("", 0))

    # -- what is learned ------------------------------------------------------------------------

    def learn(self, known: Iterable[Dim]) -> None:
        """Take it that expressions are not negative."""
        for expr in known:
            newest, scale = self._newest(expr)
            unknown = any(name[0] == "%" and name not in self.limits for name in symbols_of(expr))
            if abs(scale) != 1 or unknown:  # of another body
                continue
            limits = self.limits[newest]
            rest = expr - scale * symbol(newest)
            if scale > 0:
                self.limits[newest] = replace(limits, low=_more(limits.low, -1 * rest))
            else:
                high = _more(limits.high, rest)
                for each in self._parts(rest, newest):
                    high = _more(high, each)
                self.limits[newest] = replace(limits, high=high)
            self._learn_numbers(expr, newest)

    def _learn_numbers(self, expr: Dim, newest: str) -> None:
        """What follows for the older symbols of an expression that is not negative, by numbers:
        their bounds know nothing of newer ones."""
        for atoms, scale in terms_of(expr):
            atom = atoms[0] if len(atoms) == 1 and abs(scale) == 1 else None
            if not isinstance(atom, Symbol) or atom.name == newest or (
                    limits := self.limits.get(atom.name)) is None:
                continue
            most = self.most(expr - scale * symbol(atom.name))
            if most is None:
                continue
            if scale > 0 and all(not isinstance(low, int) or low < -most for low in limits.low):
                self.limits[atom.name] = replace(limits, low=_more(limits.low, -most))
            if scale < 0 and all(not isinstance(high, int) or high > most
                                 for high in limits.high):
                self.limits[atom.name] = replace(limits, high=_more(limits.high, most))

    def _parts(self, bound: Dim, name: str) -> list[Dim]:
        """Of ``t <= max(a, b) - 1`` where b <= 0 <= t: ``a - 1``."""
        found: list[Dim] = []
        for inner in symbols_of(bound):
            limits = self.limits.get(inner)
            if limits is None or len(limits.least) != 2 or not self.holds(symbol(name)):
                continue
            rest = bound - symbol(inner)
            if inner in symbols_of(rest):
                continue
            for one, other in (limits.least, limits.least[::-1]):
                below = self.most(rest + other)
                if below is not None and below < 0:
                    found.append(rest + one)
        return found


def _most_of_sizes(expr: Dim) -> int | None:
    """What an expression is at most, where each size is a number of 64 bits."""
    total = 0
    for atoms, scale in terms_of(expr):
        match atoms:
            case ():
                most: int | None = scale
            case (Symbol(size=None),) if scale > 0:
                most = scale * limits_of(I64)[1]
            case (Maximum(value),) if scale > 0:
                most = _most_of_sizes(value)
                most = None if most is None else scale * max(most, 0)
            case _:
                most = bounds(Expr(((atoms, scale),)))[1]
        if most is None:
            return None
        total += most
    return total


def _without(found: tuple[Dim, ...], name: str) -> tuple[Dim, ...]:
    return tuple([bound for bound in found if name not in symbols_of(bound)])


def _more(known: tuple[Dim, ...], bound: Dim) -> tuple[Dim, ...]:
    """Bounds with one more, the latest first."""
    others = [each for each in known if each != bound]
    numbers = [each for each in others if isinstance(each, int)]
    return (bound, *[each for each in others if not isinstance(each, int)][:_MOST_BOUNDS], *numbers)


def limits_of(dtype: DType) -> tuple[int, int]:
    """The least and the largest number of a dtype of integers or truth values."""
    if dtype == BOOL:
        return 0, 1
    bits = dtype.itemsize * 8
    return (-2**(bits - 1), 2**(bits - 1) - 1) if dtype.kind == "i" else (0, 2**bits - 1)
