"""Index expressions as ``a*x + rest``: what one symbol of them does."""

from __future__ import annotations

from .index import Atom, Dim, Expr, Maximum, Symbol, canonical, sum_of, symbols_of, terms_of
from .walk import rebuild


def coefficient(dim: Dim, name: str) -> tuple[Dim, Dim] | None:
    """Split ``dim`` as ``a*name + rest`` and return (a, rest); None if it is not affine in name."""
    if name not in symbols_of(dim):
        return 0, dim
    slope: list[Dim] = []
    rest: list[Dim] = []
    for monomial, scale in terms_of(dim):
        plain = [a for a in monomial if isinstance(a, Symbol) and a.name == name]
        others = tuple(a for a in monomial if not (isinstance(a, Symbol) and a.name == name))
        if any(name in symbols_of(Expr((((a,), 1),))) for a in others) or len(plain) > 1:
            return None
        (slope if plain else rest).append(canonical({others: scale}))
    return sum_of(slope), sum_of(rest)


def unclamped(dim: Dim, name: str) -> tuple[int, Dim] | None:
    """Split a size that clamps as ``a*name + rest``, which is one value of ``name`` for each size.

    ``max(b - 3, 0)`` is s where b is s + 3, and ``b - max(b - 3, 0)``, the smaller of b and 3,
    where b is s. Other values may do as well; None if none is found. No ``max`` may hold another.
    """
    for inside in (True, False):
        def opened(atom: Atom, inside: bool = inside) -> Dim | None:
            return (atom.value if inside else 0) if isinstance(atom, Maximum) else None

        split = coefficient(rebuild(dim, opened), name)
        if split is not None and isinstance(split[0], int) and split[0] > 0:
            return split[0], split[1]
    return None
