"""The instructions of the kernel language that take whole axes: what each is, in one row.

A row has what is to be said of an instruction once, for all that handle kernels: its text, its
operands and the axes they lie along, the axis of what it gives, element types, its meaning in NumPy
and what it costs. Printer, parser, verifier, interpreter and costs read it; how it is emitted is in
a table of each back end, by the class of the statement: ``codegen/*/intrinsics``.

    contract   %a: [.., k]  %b: [.., k]  ->  [..]        the axis is summed over
    sort       %x: [.., j]               ->  y[.., j]    a row of memory for each row
    ranked     %x: [.., j]  %r: [.., k]  ->  y[.., k]

``form`` is the text behind the word, and so all that the text has to say: fields of the statement
in braces, each ``{field:kind}``, or ``{kind}`` where it is called as its kind. The kinds are those
of ``text/intrinsics``. What only a part of the instructions has in its text (the order of a sum,
the blocking of a product) is a kind that may be empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from ..record import record
from ..scalar.primitives import PRIMITIVES
from ..types import BOOL, I32, I64, DType
from .combine import COMBINERS
from .kernel import Contract, Reduce, Search, Stmt
from .ordering import (
    compressed,
    parted_places,
    parted_values,
    sorted_places,
    sorted_ranks,
    sorted_values,
)
from .rows import Compress, Ranked, Sort
from .sums import contracted, reduced, searched

Array = NDArray[Any]
Said = tuple[tuple[str, Any], ...]

SORTING = 32  # scalar operations for each element of a row that is sorted


@record(frozen=True)
class Intrinsic:
    """One instruction; fields of its statement are named."""

    word: str                                  # that it begins with in the text
    stmt: type[Stmt]
    form: str
    takes: tuple[tuple[str, str], ...]         # an operand, and its axis or axes
    gives: str                                 # the axis of rows of the result; "": it has no rows
    # Of the statement and the types of its operands: that of the result, or what is wrong.
    dtype: Callable[..., DType | str]
    # Of the statement, the length of ``gives``, and operands with their axes as the last ones.
    meaning: Callable[..., Array]
    cost: int                                  # scalar operations for each element
    says: Said = ()                            # fields that follow from the word
    no_gpu: str = ""                           # why there is none, if there is none

    def operands(self, stmt: Stmt) -> tuple[str, ...]:
        """The values that a statement takes."""
        return tuple(getattr(stmt, field) for field, _ in self.takes)

    def axes(self, stmt: Stmt) -> tuple[tuple[str, ...], ...]:
        """The axes of each of these."""
        found = (getattr(stmt, axis) for _, axis in self.takes)
        return tuple((names,) if isinstance(names, str) else names for names in found)


def _reduced_dtype(stmt: Reduce, value: DType) -> DType | str:
    if stmt.combine not in COMBINERS:
        return f"no combiner '{stmt.combine}'"
    if value.kind not in PRIMITIVES[stmt.combine].kinds or value.is_half:
        return f"combiner '{stmt.combine}' does not take {value}"
    return value


def _searched_dtype(stmt: Search, value: DType) -> DType | str:
    if stmt.combine not in ("max", "min") or stmt.dtype not in (I32, I64) or (
            value == BOOL or value.is_half):
        return f"no search for the {stmt.combine} of {value} gives {stmt.dtype}"
    return stmt.dtype


def _contracted_dtype(stmt: Contract, lhs: DType, rhs: DType) -> DType | str:
    if lhs != rhs or lhs == BOOL or lhs.is_half:
        return "contract needs two numeric operands of one dtype"
    return lhs


def _sorted_dtype(stmt: Sort, value: DType) -> DType | str:
    return "bools are not sorted" if value == BOOL else I64 if stmt.places else value


def _ranked_dtype(stmt: Ranked, value: DType, rank: DType) -> DType | str:
    if rank != I64:
        return f"a rank of dtype {rank}"
    return "bools are not sorted" if value == BOOL else I64 if stmt.places else value


def _chosen_dtype(stmt: Compress, value: DType, mask: DType) -> DType | str:
    if mask != BOOL:
        return f"a mask of dtype {mask}"
    return "bools are not compressed" if value == BOOL else value


def _rows(meaning: Callable[..., Array]) -> Callable[..., Array]:
    """A meaning that asks for its operands only."""
    return lambda stmt, length, *operands: meaning(*operands)


def _sum(meaning: Callable[..., Array]) -> Callable[..., Array]:
    return lambda stmt, length, *operands: meaning(stmt, *operands)


_SORT = "{target} = {value} over {axis} in {room:param}{algorithm}"
_RANK = "{target} = {value} over {axis} at {rank:value} over {ranks:axis} in {room:param}"
_CHOICE = "{target} = {value} over {axis} where {mask:value} over {chosen:axis}"
_ONE, _TWO = (("value", "axis"),), (("value", "axis"), ("rank", "ranks"))

_ROWS = (
    Intrinsic("reduce", Reduce, "{combine:name} {value} over {axis}{order}", _ONE, "",
              _reduced_dtype, _sum(reduced), 1),
    Intrinsic("search", Search, "{combine:name} {value} over {axis}", _ONE, "",
              _searched_dtype, _sum(searched), 1,
              no_gpu="schedules for a GPU leave the two reductions that a search stands for"),
    Intrinsic("contract", Contract, "{lhs:value}, {rhs:value} over {axes}{blocking}",
              (("lhs", "axes"), ("rhs", "axes")), "", _contracted_dtype, _sum(contracted), 1),
    Intrinsic("sort", Sort, _SORT, _ONE, "axis", _sorted_dtype, _rows(sorted_values), SORTING,
              (("places", False),)),
    Intrinsic("argsort", Sort, _SORT, _ONE, "axis", _sorted_dtype, _rows(sorted_places), SORTING,
              (("places", True),)),
    Intrinsic("ranked", Ranked, _RANK + "{algorithm}", _TWO, "ranks", _ranked_dtype,
              _rows(sorted_ranks), SORTING, (("whole", False), ("places", False))),
    Intrinsic("partition", Ranked, _RANK, _TWO, "axis", _ranked_dtype, _rows(parted_values),
              SORTING, (("whole", True), ("places", False))),
    Intrinsic("argpartition", Ranked, _RANK, _TWO, "axis", _ranked_dtype, _rows(parted_places),
              SORTING, (("whole", True), ("places", True))),
    Intrinsic("compress", Compress, _CHOICE, (("value", "axis"), ("mask", "axis")), "chosen",
              _chosen_dtype, lambda stmt, length, x, mask: compressed(x, mask, size=length),
              SORTING),
)
INTRINSICS: Mapping[str, Intrinsic] = MappingProxyType({row.word: row for row in _ROWS})
_BY_KIND: Mapping[type[Stmt], tuple[Intrinsic, ...]] = MappingProxyType({
    row.stmt: tuple(other for other in _ROWS if other.stmt is row.stmt) for row in _ROWS})


def intrinsic_of(stmt: Stmt) -> Intrinsic | None:
    """The row of a statement; None for those that are about one element at a time."""
    for row in _BY_KIND.get(type(stmt), ()):
        if all(getattr(stmt, field) == value for field, value in row.says):
            return row
    return None
