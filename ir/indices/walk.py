"""Walks over index expressions: with other values for symbols or atoms, as numbers, or as whatever
an emitter makes of them.

    substitute   8*i + j with i = 2               16 + j
    evaluate     8*i + j with i = 2, j = 1        17
    fold         8*i + j by handlers              mul i64 %i, 8 ... add
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .index import (
    Atom,
    Dim,
    Expr,
    Maximum,
    Quotient,
    Remainder,
    Symbol,
    divide,
    parts_of,
    plain_symbol,
    positive,
    sum_of,
    symbols_of,
    terms_of,
)


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """Replace symbols by name and simplify again."""
    name = plain_symbol(dim)
    if name is not None:  # what most dims are, and fusion asks for nothing more often
        return values.get(name, dim)
    if not isinstance(dim, Expr) or symbols_of(dim).isdisjoint(values):
        return dim
    return rebuild(dim, lambda atom: values.get(atom.name) if isinstance(atom, Symbol) else None)


def rebuild(dim: Dim, change: Callable[[Atom], Dim | None]) -> Dim:
    """The expression with another value for each atom that ``change`` gives one, simplified."""
    if not isinstance(dim, Expr):
        return dim

    def atom_value(atom: Atom) -> Dim:
        value = change(atom)
        if value is not None:
            return value
        if isinstance(atom, Symbol):
            return Expr((((atom,), 1),))
        parts = [rebuild(part, change) for part in parts_of(atom)]
        if isinstance(atom, Maximum):
            return positive(parts[0])
        return divide(parts[0], parts[1])[isinstance(atom, Remainder)]

    total: list[Dim] = []
    for monomial, coefficient in dim.terms:
        product: Dim = coefficient
        for atom in monomial:
            product = product * atom_value(atom)
        total.append(product)
    return sum_of(total)


def with_sizes(dim: Dim, sizes: Mapping[str, Dim]) -> Dim:
    """The same expression, whose symbols know the given sizes; nothing is simplified."""
    if not isinstance(dim, Expr) or not sizes:
        return dim

    def sized(atom: Atom) -> Atom:
        if isinstance(atom, Symbol):
            return Symbol(atom.name, sizes.get(atom.name, atom.size))
        return type(atom)(*(with_sizes(part, sizes) for part in parts_of(atom)))

    return Expr(tuple((tuple(map(sized, monomial)), scale) for monomial, scale in dim.terms))


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """The int value of an expression; raises KeyError naming a symbol without a value."""
    if isinstance(dim, int):
        return dim
    name = plain_symbol(dim)
    if name is not None:
        return int(values[name])
    result = substitute(dim, values)
    if isinstance(result, int):
        return result
    raise KeyError(min(symbols_of(result)))


def fold(
    dim: Dim,
    constant: Callable[[int], object],
    leaf: Callable[[Symbol], object],
    binary: Callable[[str, object, object], object],
) -> object:
    """Interpret an expression with handlers: emitters print it, interpreters compute it.

    ``binary`` is asked for the signs ``+ * // %`` and for ``max``.
    """

    def atom_value(atom: Atom) -> object:
        if isinstance(atom, Symbol):
            return leaf(atom)
        if isinstance(atom, Maximum):
            return binary("max", fold(atom.value, constant, leaf, binary), constant(0))
        sign = "//" if isinstance(atom, Quotient) else "%"
        return binary(sign, fold(atom.numerator, constant, leaf, binary),
                      fold(atom.denominator, constant, leaf, binary))

    total: object = None
    for monomial, scale in terms_of(dim):
        product: object = None if scale == 1 and monomial else constant(scale)
        for atom in monomial:
            value = atom_value(atom)
            product = value if product is None else binary("*", product, value)
        total = product if total is None else binary("+", total, product)
    return constant(0) if total is None else total
