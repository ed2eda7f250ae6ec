"""What can be proved of sizes before the arguments are known: that one is never negative, and what
follows from it.

A symbol is a size, so it is never negative; an expression may be, as ``b - 3`` is for short arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

from .affine import coefficient
from .index import (
    Atom,
    Dim,
    Expr,
    Maximum,
    Quotient,
    Remainder,
    bounds,
    maximum,
    minimum,
    parts_of,
    symbol,
    symbols_of,
    terms_of,
)
from .walk import rebuild, substitute

_ATOMS = 3000   # that one proof looks at; what takes longer is asked at run time
_COMBINED = 3   # facts that are added up
_VALUES = 8     # of a symbol that are tried one by one
_INVOLVED = 60  # atoms of a size, above which nothing about it can be told in time


@lru_cache(maxsize=4096)
def nonnegative(dim: Dim, facts: tuple[Dim, ...] = ()) -> bool:
    """True if ``dim >= 0`` follows from ``facts``, each of which is not negative.

    A quotient is multiplied out, a maximum split into its two cases; then facts are taken off the
    expression until what is left has no negative term, or the few values that they leave a symbol
    are tried. False means that no proof was found.
    """
    if isinstance(dim, int):
        return dim >= 0
    return dim in facts or _Proof().holds(dim, facts)


class _Proof:
    def __init__(self) -> None:
        self.left = _ATOMS

    def holds(self, dim: Dim, facts: tuple[Dim, ...]) -> bool:
        low = bounds(dim)[0]
        if low is not None and low >= 0:
            return True
        self.left -= sum(1 for _ in islice(_atoms((dim, *facts)), max(self.left, 0) + 1))
        if self.left <= 0:
            return False
        if any(isinstance(fact, int) and fact < 0 for fact in facts):
            return True  # a case that never is
        whole = _multiplied_out(dim)
        if whole is not None and self.holds(whole, facts):
            return True
        split = next(maxima((dim, *facts)), None)
        if split is None:
            return self._linear(dim, [*facts, *_divisions((dim, *facts))]) or self._each(dim, facts)
        inner = split.value
        return self._case(split, inner, inner, dim, facts) and self._case(
            split, 0, -1 - inner, dim, facts)

    def _case(
        self, split: Maximum, value: Dim, fact: Dim, dim: Dim, facts: tuple[Dim, ...]
    ) -> bool:
        def chosen(atom: Atom) -> Dim | None:
            return value if atom == split else None

        return self.holds(rebuild(dim, chosen), (fact, *(rebuild(f, chosen) for f in facts)))

    def _each(self, dim: Dim, facts: tuple[Dim, ...]) -> bool:
        """A proof for every value of a symbol of which the facts leave few, or none. There is none
        where something is divided by a size that may be 0."""
        for name, values in _ranges(facts).items():
            if len(values) <= _VALUES:
                try:
                    return all(self.holds(substitute(dim, {name: value}),
                                          tuple(substitute(fact, {name: value}) for fact in facts))
                               for value in values)
                except ZeroDivisionError:
                    return False
        return False

    def _linear(self, dim: Dim, facts: Sequence[Dim]) -> bool:
        """A proof without maxima; a quotient of what is not negative counts as a symbol."""
        table: dict[Atom, Dim] = {
            atom: symbol(f"({atom})") for atom in dict.fromkeys(_atoms((dim,)))
            if isinstance(atom, Quotient) and self._combined(atom.numerator, facts, _COMBINED)}
        if table:
            dim, facts = rebuild(dim, table.get), [rebuild(fact, table.get) for fact in facts]
        return self._combined(dim, facts, _COMBINED)

    def _combined(self, dim: Dim, facts: Sequence[Dim], depth: int) -> bool:
        self.left -= len(terms_of(dim))
        low = bounds(dim)[0]
        if low is not None and low >= 0:
            return True
        if depth == 0 or self.left < 0:
            return False
        missing = {monomial: scale for monomial, scale in terms_of(dim) if scale < 0}
        for fact in facts:
            for monomial, scale in terms_of(fact):
                if scale < 0 and monomial in missing:
                    times = -(missing[monomial] // -scale)
                    if self._combined(dim - fact * times, facts, depth - 1):
                        return True
                    break
        return False


def _multiplied_out(dim: Dim) -> Dim | None:
    """What is not negative just where ``dim`` is, without the quotient that is a term of it.

    ``n//k <= r`` is ``n <= k*r + k - 1``, and ``n//k >= -r`` is ``n >= -k*r``.
    """
    for monomial, scale in terms_of(dim):
        atom = monomial[0] if len(monomial) == 1 else None
        if isinstance(atom, Quotient) and isinstance(by := atom.denominator, int) and by > 0 and (
                abs(scale) == 1):
            rest = dim - Expr(((monomial, scale),))
            return rest * by + (atom.numerator if scale > 0 else by - 1 - atom.numerator)
    return None


def _ranges(facts: Sequence[Dim]) -> dict[str, range]:
    """The values that facts about one symbol leave it, of those with a largest one."""
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for fact in facts:
        names = symbols_of(fact)
        split = coefficient(fact, name) if len(names) == 1 and (name := min(names)) else None
        if split is None:
            continue
        scale, rest = split
        low = bounds(symbol(name))[0]
        if low is None or not isinstance(scale, int) or not isinstance(rest, int):
            continue
        if scale > 0:
            least[name] = max(least.get(name, low), -(rest // scale))
        else:
            most[name] = min(most.get(name, rest // -scale), rest // -scale)
    return {name: range(least.get(name, 0), end + 1) for name, end in most.items()}


def maxima(dims: Sequence[Dim]) -> Iterator[Maximum]:
    """Maxima in expressions, those without another one inside."""
    for atom in _atoms(dims):
        if isinstance(atom, Maximum) and not any(
                isinstance(inner, Maximum) for inner in _atoms((atom.value,))):
            yield atom


def _atoms(dims: Sequence[Dim]) -> Iterator[Atom]:
    pending = list(dims)
    while pending:
        for monomial, _ in terms_of(pending.pop(0)):
            for atom in monomial:
                yield atom
                pending += parts_of(atom)


def _divisions(dims: Sequence[Dim]) -> Iterator[Dim]:
    """What quotients and remainders are by definition; denominators are positive."""
    for atom in dict.fromkeys(_atoms(dims)):
        whole = Expr((((atom,), 1),))
        if isinstance(atom, Quotient):
            rest = atom.numerator - whole * atom.denominator
            yield from (rest, atom.denominator - 1 - rest)
        elif isinstance(atom, Remainder):
            yield atom.denominator - 1 - whole


def larger(a: Dim, b: Dim, *, facts: tuple[Dim, ...] = ()) -> Dim:
    """The maximum of two dims, without a ``max`` where it is known."""
    if nonnegative(a - b, facts):
        return a
    return b if nonnegative(b - a, facts) else maximum(a, b)


def smaller(a: Dim, b: Dim, *, facts: tuple[Dim, ...] = ()) -> Dim:
    """The minimum of two dims, without a ``max`` where it is known."""
    if nonnegative(a - b, facts):
        return b
    return a if nonnegative(b - a, facts) else minimum(a, b)


def involved(dim: Dim) -> bool:
    """True for an expression that is too long to compute with."""
    return any(True for _ in islice(_atoms((dim,)), _INVOLVED, None))


def differ(a: Dim, b: Dim) -> bool:
    """True if two dims are not equal, whatever the sizes of arguments."""
    if isinstance(a, int) and isinstance(b, int):
        return a != b
    gap = a - b
    return gap != 0 and (nonnegative(gap - 1) or nonnegative(-gap - 1))
