"""Runs: the parts of an axis along which an index walks contiguous memory.

An axis that stands for several (the pixels of an image, what a window sums over) is contiguous as
far as the innermost of them goes, or further where the array has them side by side:

    x[i_k//14, j, i_k mod 14]      runs of 14: with i_k = 14*run + at, x[run, j, at]
"""

from __future__ import annotations

from ..record import record
from .affine import coefficient
from .index import Dim, Expr, Quotient, Remainder, parts_of, symbol, symbols_of, terms_of
from .walk import substitute

SHORTEST, LONGEST = 4, 1 << 31  # elements that are worth a vector, and whose number is an i32
WHOLE = 1 << 40  # a run that holds any extent
PAIR = 2         # arrays of which one lies between the elements of the other


def run_and_at(axis: str) -> tuple[str, str]:
    """The symbols that number the runs of an axis, and the places in a run."""
    return f"{axis}:run", f"{axis}:at"


def walked(axis: str, run: int) -> Dim:
    """The index of an axis in runs of so many."""
    number, at = run_and_at(axis)
    return symbol(number) * run + symbol(at, run)


def longest_run(offset: Dim, axis: str, most_step: int = 1) -> int:
    """Elements of the longest runs of an access along an axis, ``WHOLE`` of one that does not jump;
    0 if it has none."""
    if 1 <= step_along(offset, axis) <= most_step:
        return WHOLE
    for run in sorted(_divisors(offset, axis), reverse=True):
        parts = substitute(offset, {axis: walked(axis, run)})
        step = step_along(parts, run_and_at(axis)[1])
        if SHORTEST <= run < LONGEST and 1 <= step <= most_step:
            return run
    return 0


def step_along(offset: Dim, axis: str) -> int:
    """Elements between neighbours on an axis; 0 where that is no number."""
    slope = coefficient(offset, axis)
    return slope[0] if slope is not None and isinstance(slope[0], int) else 0


def _divisors(offset: Dim, axis: str) -> set[int]:
    """The numbers by which an offset divides an axis."""
    found: set[int] = set()
    pending: list[Dim] = [offset]
    while pending:
        for monomial, _ in terms_of(pending.pop()):
            for atom in monomial:
                if isinstance(atom, (Quotient, Remainder)) and axis in symbols_of(atom.numerator):
                    inner = _divisors(atom.numerator, axis) or {1}
                    if isinstance(atom.denominator, int):
                        found |= {divisor * atom.denominator for divisor in inner}
                pending += parts_of(atom)
    return found


@record(frozen=True)
class Run:
    """An offset that goes along in runs of a ``length`` with the ``number`` that is divided by it:
    in one run by one element, or not at all."""

    offset: Dim
    number: Dim
    length: Dim
    moves: bool


def run_along(offset: Dim, axis: str) -> Run | None:
    """The runs of an offset along an axis: what is ``i//n`` and ``i mod n`` of it for one n, and
    one sum i of the axis and what it does not move."""
    found: tuple[Dim, Dim] | None = None
    moves = 0
    for monomial, scale in terms_of(offset):
        atoms = [atom for atom in monomial if axis in symbols_of(Expr((((atom,), 1),)))]
        if not atoms:
            continue
        atom = atoms[0]
        if len(atoms) > 1 or not isinstance(atom, (Quotient, Remainder)) or (
                found not in (None, (atom.numerator, atom.denominator))):
            return None
        found = atom.numerator, atom.denominator
        if isinstance(atom, Remainder):
            if scale != 1 or len(monomial) > 1:
                return None
            moves += 1
    if found is None or axis in symbols_of(found[1]):
        return None
    slope = coefficient(found[0], axis)
    return Run(offset, *found, moves > 0) if slope is not None and slope[0] == 1 else None
