"""Integer index expressions: sizes of symbolic dims and addresses of kernel loads.

An ``Expr`` is a polynomial with int coefficients over atoms, kept in one canonical order, so that
equal expressions compare equal and print the same. An atom is a symbol (a dim ``b``, a loop axis
``i``, a kernel value ``%3``), a floor quotient, a floor remainder or a maximum with 0. A constant
is always a plain int, never an ``Expr``.

A symbol may know its size (``0 <= i < size``), which is what lets views cancel:

    reshape (4, 8) -> (32,) -> (4, 8):   (8*i + j)//8 = i      (8*i + j)%8 = j

Every maximum and minimum is a sum with ``max(e, 0)``, of which one sign of ``e`` is enough, as
``max(-e, 0) = max(e, 0) - e``. So sizes that clamp add up again:

    x[:3] and x[3:] of b elements:       b - max(b - 3, 0)  +  max(b - 3, 0)  =  b
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import gcd
from typing import Any, Union

from ..record import field, record

Dim = Union[int, "Expr"]
_NO_SYMBOLS = frozenset[str]()


@record(frozen=True)
class Symbol:
    """A named integer; ``size`` (exclusive upper bound, if known) takes no part in equality."""

    name: str
    size: Dim | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.name


@record(frozen=True)
class Quotient:
    """``numerator // denominator``, rounded towards minus infinity as in Python."""

    numerator: Dim
    denominator: Dim

    def __str__(self) -> str:
        return f"{_grouped(self.numerator)}//{_grouped(self.denominator)}"


@record(frozen=True)
class Remainder:
    """``numerator % denominator`` with the sign of the denominator, as in Python."""

    numerator: Dim
    denominator: Dim

    def __str__(self) -> str:
        return f"{_grouped(self.numerator)} mod {_grouped(self.denominator)}"


@record(frozen=True)
class Maximum:
    """``max(value, 0)``; made by ``positive``, which brings ``value`` to its normal form."""

    value: Dim

    def __str__(self) -> str:
        return f"max({self.value}, 0)"


Atom = Symbol | Quotient | Remainder | Maximum
Monomial = tuple[Atom, ...]


def parts_of(atom: Atom) -> tuple[Dim, ...]:
    """The expressions inside an atom; a symbol has none."""
    if isinstance(atom, Symbol):
        return ()
    return (atom.value,) if isinstance(atom, Maximum) else (atom.numerator, atom.denominator)


def _grouped(dim: Dim) -> str:
    text = str(dim)
    return text if re.fullmatch(r"%?\w+", text) else f"({text})"


def _order(monomial: Monomial) -> tuple[int, tuple[str, ...]]:
    # The constant comes last, products before their factors: 8*i + j + 1.
    return (-len(monomial), tuple([str(atom) for atom in monomial]))


@record(frozen=True)
class Expr:
    """A polynomial: ((monomial, coefficient), ...) in canonical order, never a constant."""

    terms: tuple[tuple[Monomial, int], ...]

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        """What is worked out stays in its process: another one hashes names differently."""
        return Expr, (self.terms,)

    def __add__(self, other: Dim) -> Dim:
        return sum_of((self, other)) if other else self

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return sum_of((self, other * -1)) if other else self

    def __rsub__(self, other: Dim) -> Dim:
        return sum_of((other, self * -1))

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, int):
            if other == 1:
                return self
            return Expr(tuple([(m, c * other) for m, c in self.terms])) if other else 0
        table: dict[Monomial, int] = {}
        for left, p in self.terms:
            for right, q in terms_of(other):
                product = tuple(sorted(left + right, key=str))
                table[product] = table.get(product, 0) + p * q
        return canonical(table)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return divide(self, other)[0]

    def __mod__(self, other: Dim) -> Dim:
        return divide(self, other)[1]

    def __rfloordiv__(self, other: int) -> Dim:
        return divide(other, self)[0]

    def __rmod__(self, other: int) -> Dim:
        return divide(other, self)[1]

    # What is asked of an expression again and again is worked out once.

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    @cached_property
    def plain(self) -> str | None:
        """The name of the symbol that the expression is; None if it is not just that."""
        if len(self.terms) == 1:
            monomial, scale = self.terms[0]
            if scale == 1 and len(monomial) == 1 and isinstance(monomial[0], Symbol):
                return monomial[0].name
        return None

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols in it."""
        names: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, Symbol):
                    names.add(atom.name)
                else:
                    names.update(*map(symbols_of, parts_of(atom)))
        return frozenset(names)

    @cached_property
    def text(self) -> str:
        parts = []
        for monomial, coefficient in self.terms:
            factors = [str(atom) if isinstance(atom, (Symbol, Maximum)) or (len(monomial) == 1
                       and coefficient == 1) else f"({atom})" for atom in monomial]
            if coefficient != 1 or not factors:
                factors.insert(0, str(coefficient))
            parts.append("*".join(factors))
        return " + ".join(parts).replace("+ -", "- ")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Expr({self.text})"


def symbol(name: str, size: Dim | None = None) -> Expr:
    """The expression that is just the symbol ``name``."""
    made = Expr((((Symbol(name, size),), 1),))
    made.__dict__.update(plain=name, text=name)  # most are asked for these, and often
    return made


def terms_of(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    """The terms of a dim; an int has one term with the empty monomial (none when zero)."""
    if isinstance(dim, Expr):
        return dim.terms
    return (((), int(dim)),) if dim else ()


def canonical(table: Mapping[Monomial, int]) -> Dim:
    """The expression with a coefficient for each monomial."""
    terms = tuple([term for term in table.items() if term[1]])
    if not terms:
        return 0
    if len(terms) > 1:
        terms = tuple(sorted(terms, key=lambda term: _order(term[0])))
    if terms[0][0] == ():
        return terms[0][1]
    return Expr(terms)


def sum_of(dims: Iterable[Dim]) -> Dim:
    """The sum of expressions, in canonical form."""
    table: dict[Monomial, int] = {}
    for dim in dims:
        for monomial, coefficient in terms_of(dim):
            table[monomial] = table.get(monomial, 0) + coefficient
    # q*(a//q) + a%q = a: the two halves of a reshape meet again.
    for monomial in list(table):
        for atom in monomial:
            if isinstance(atom, Remainder) and (scale := table.get(monomial, 0)):
                rest = tuple(a for a in monomial if a is not atom)
                whole = (divide(atom.numerator, atom.denominator)[0]
                         * atom.denominator * (Expr(((rest, 1),)) if rest else 1))
                parts = dict(terms_of(whole))
                if all(table.get(m) == scale * c for m, c in parts.items()):
                    table[monomial] = 0
                    for m in parts:
                        table[m] = 0
                    joined = atom.numerator * (Expr(((rest, 1),)) if rest else 1) * scale
                    return sum_of([canonical(table), joined])
    return canonical(table)


def _divide_monomial(monomial: Monomial, coefficient: int, divisor: Dim) -> Dim | None:
    """The exact quotient of one term by ``divisor``, or None."""
    terms = terms_of(divisor)
    if len(terms) != 1 or coefficient % terms[0][1]:
        return None
    rest = list(monomial)
    for atom in terms[0][0]:
        if atom not in rest:
            return None
        rest.remove(atom)
    return canonical({tuple(rest): coefficient // terms[0][1]})


def divide(numerator: Dim, denominator: Dim) -> tuple[Dim, Dim]:
    """``divmod`` over expressions, with the denominator taken to be positive."""
    if denominator == 1:
        return numerator, 0
    if isinstance(numerator, int) and isinstance(denominator, int):
        return divmod(numerator, denominator)
    whole: list[Dim] = []
    left: list[Dim] = []
    for monomial, coefficient in terms_of(numerator):
        exact = _divide_monomial(monomial, coefficient, denominator)
        if exact is not None:
            whole.append(exact)
        elif not monomial and isinstance(denominator, int):
            high, low = divmod(coefficient, denominator)
            whole.append(high)
            left.append(low)
        else:
            left.append(canonical({monomial: coefficient}))
    rest = sum_of(left)
    if _within(rest, denominator):
        return sum_of(whole), rest
    common = _divide_common(rest, denominator)
    if common is not None:
        return sum_of([*whole, common[0]]), common[1]
    quotient, remainder = Quotient(rest, denominator), Remainder(rest, denominator)
    nested = rest.terms[0][0] if isinstance(rest, Expr) and len(rest.terms) == 1 else ()
    if len(nested) == 1 and isinstance(rest, Expr) and rest.terms[0][1] == 1:
        inner = nested[0]
        if isinstance(inner, Quotient):  # (a//p)//q = a//(p*q)
            quotient = Quotient(inner.numerator, inner.denominator * denominator)
    return (sum_of([*whole, Expr((((quotient,), 1),))]), Expr((((remainder,), 1),)))


def _divide_common(dim: Dim, denominator: Dim) -> tuple[Dim, Dim] | None:
    """``divmod`` by what has a factor in common: (f*a + r)//(f*d) = a//d where 0 <= r < f."""
    if not isinstance(denominator, int):
        return None
    factors = {gcd(scale, denominator) for _, scale in terms_of(dim)} - {1, denominator}
    for factor in sorted(factors, reverse=True):
        table = dict(terms_of(dim))
        rest = canonical({m: scale for m, scale in table.items() if scale % factor})
        if rest != dim and _within(rest, factor):
            most = canonical({m: scale // factor for m, scale in table.items()
                               if scale % factor == 0})
            quotient, remainder = divide(most, denominator // factor)
            return quotient, remainder * factor + rest
    return None


def positive(dim: Dim) -> Dim:
    """``max(dim, 0)`` in its normal form: no common factor, and the first coefficient positive."""
    if isinstance(dim, int):
        return max(dim, 0)
    low, high = bounds(dim)
    if low is not None and low >= 0:
        return dim
    if high is not None and high <= 0:
        return 0
    for monomial, scale in dim.terms:
        if len(monomial) == 1 and isinstance(inner := monomial[0], Maximum) and scale > 0:
            rest, value = dim - canonical({monomial: scale}), inner.value * scale
            most = bounds(rest)[1]
            if most is not None and most <= 0:  # max(max(e, 0) - 1, 0) = max(e - 1, 0)
                return positive(value + rest)
            most = bounds(rest + value)[1]
            if most is not None and most <= 0:  # max(max(-e, 0) - 1, 0), as of max(e, 0) - e
                return positive(rest)
    if dim.terms[0][1] < 0:
        return positive(-dim) + dim
    factor = gcd(*(scale for _, scale in dim.terms))
    if factor > 1:
        return positive(canonical({m: scale // factor for m, scale in dim.terms})) * factor
    return Expr((((Maximum(dim),), 1),))


def maximum(a: Dim, b: Dim) -> Dim:
    """The larger of two dims."""
    return b + positive(a - b)


def minimum(a: Dim, b: Dim) -> Dim:
    """The smaller of two dims."""
    return a - positive(a - b)


def _within(dim: Dim, limit: Dim) -> bool:
    """True if surely ``0 <= dim < limit``."""
    if isinstance(dim, int):
        return (isinstance(limit, int) and 0 <= dim < limit) or dim == 0
    low, high = bounds(dim)
    if isinstance(limit, int):
        return low is not None and high is not None and low >= 0 and high < limit
    if len(dim.terms) == 1 and dim.terms[0][1] == 1 and len(dim.terms[0][0]) == 1:
        atom = dim.terms[0][0][0]
        size = atom.size if isinstance(atom, Symbol) else (
            atom.denominator if isinstance(atom, Remainder) else None)
        return size == limit
    return False


def bounds(dim: Dim) -> tuple[int | None, int | None]:
    """Inclusive (low, high) of an expression; None where nothing is known."""
    low: int | None = 0
    high: int | None = 0
    for monomial, coefficient in terms_of(dim):
        first: int | None = 1
        last: int | None = 1
        for atom in monomial:
            a, z = _atom_bounds(atom)
            # Factors are sizes and indices: never negative, or nothing is known.
            first = None if first is None or a is None or a < 0 else first * a
            last = None if last is None or z is None or first is None else last * z
        if coefficient < 0:
            first, last = last, first
        low = None if low is None or first is None else low + first * coefficient
        high = None if high is None or last is None else high + last * coefficient
    return low, high


def is_natural(dim: Dim) -> bool:
    """Whether an expression is never negative, whatever the sizes in it."""
    least = bounds(dim)[0]
    return least is not None and least >= 0


def _atom_bounds(atom: Atom) -> tuple[int | None, int | None]:
    if isinstance(atom, Symbol):
        if atom.name.startswith("%"):
            return None, None
        if isinstance(atom.size, int) and atom.size > 0:
            return 0, atom.size - 1
        # Of no elements all is true, but an index that it makes constant leaves its empty loop.
        return 0, None
    if isinstance(atom, Remainder):
        limit = atom.denominator
        return 0, (limit - 1 if isinstance(limit, int) else None)
    if isinstance(atom, Maximum):
        low, high = bounds(atom.value)
        return max(low or 0, 0), None if high is None else max(high, 0)
    low, high = bounds(atom.numerator)
    if not isinstance(atom.denominator, int):
        return (0 if low is not None and low >= 0 else None), None
    return (None if low is None else low // atom.denominator,
            None if high is None else high // atom.denominator)


def plain_symbol(dim: Dim) -> str | None:
    """The name of a dim that is just a symbol; None for every other one."""
    return dim.plain if isinstance(dim, Expr) else None


def symbols_of(dim: Dim) -> frozenset[str]:
    """The names of all symbols in an expression."""
    return dim.symbols if isinstance(dim, Expr) else _NO_SYMBOLS


def product(dims: Iterable[Dim]) -> Dim:
    """The product of dims: the number of elements of a shape."""
    result: Dim = 1
    for dim in dims:
        result = result * dim
    return result


def row_major(indices: Iterable[Dim], shape: Iterable[Dim]) -> Dim:
    """The linear offset, in elements, of an index into a dense row-major array."""
    offset: Dim = 0
    for index, extent in zip(indices, shape, strict=True):
        offset = offset * extent + index
    return offset


def ceil_div(dim: Dim, block: int) -> Dim:
    """How many blocks cover an extent."""
    return dim if block == 1 else divide(dim + (block - 1), block)[0]
