"""Statements that make a row of memory of a row of values: sorts, ranks, what a mask chooses.

    sort y[i, j] = %0 over j in y1                                values of a row in order
    ranked y[i, k] = %0 over j at %1 over k in y1                 those at some places of them
    compress y[k] = %0 over j where %1 over k                     those where a mask holds

One element of the result may come from any of the row, so a task has whole rows, and a kernel that
has such a statement ends with it and stores nothing else. What each means is in ``intrinsics``.
"""

from __future__ import annotations

from typing import Literal

from ..indices.index import Dim
from ..record import record
from ..types import I64, DType, TensorType, as_dtype
from .kernel import Kernel, Written, values_in

AlgorithmKind = Literal["columns", "quick", "radix"]
VECTOR = 512                        # bits of those that records are sorted in
COLUMNS = ((2, 4, 8, 16), (2, 4, 8))  # vectors of a matrix: of one word for a record, of two


@record(frozen=True)
class Algorithm:
    """How the rows of a sort are sorted on a CPU, which changes nothing of what they become.

    ``columns 8``: in registers, as the columns of a matrix of so many vectors, which hold a row.
    ``quick``: by parts below and above pivots, down to such columns; both move the lanes of a mask
    together, which takes an instruction set with registers for masks. ``radix``: short rows by a
    network, longer ones by their bytes. The one row of a kernel may be cut into ``runs`` of at
    least so many elements: if there are threads for them, these sort and merge them.
    """

    kind: AlgorithmKind
    columns: int = 0
    runs: int = 0

    def __str__(self) -> str:
        columns = f" {self.columns}" if self.columns else ""
        runs = f", runs {self.runs}" if self.runs else ""
        return f"{{{self.kind}{columns}{runs}}}"


@record(frozen=True, eq=False)
class RowStmt(Written):
    """Base of these statements: ``param[indices]`` becomes something of ``value`` along ``axis``.

    Their ``dtype`` is that of the value; the indices are axes.
    """

    axis: str

    @property
    def operands(self) -> tuple[str, ...]:
        return (self.value, *values_in(*self.indices))


@record(frozen=True, eq=False)
class Sort(RowStmt):
    """Rows of values in ascending order, as ``ordering`` has it; or, with ``places``, where in
    their rows they are. ``room`` names a parameter with memory for each row: see ``room_of``.
    """

    places: bool
    room: str
    algorithm: Algorithm | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.param, self.room)

    @property
    def records(self) -> tuple[int, int]:
        """Bits of a word and words of what is sorted: a key, with its place beside or in it."""
        return (64, 1 + (self.dtype.bits == 64)) if self.places else (self.dtype.bits, 1)


@record(frozen=True, eq=False)
class Ranked(RowStmt):
    """The elements that a sort would put to the places ``rank`` has along the axis ``ranks``. Or
    the ``whole`` row: all elements, those below the first of these ones, equal to it, between it
    and the second one, and so on, in turn; or, with ``places``, where in their rows they are.
    ``algorithm`` is for rows of which so many are wanted that they are sorted.
    """

    rank: str
    ranks: str
    whole: bool
    places: bool
    room: str
    algorithm: Algorithm | None = None

    @property
    def operands(self) -> tuple[str, ...]:
        return (self.value, self.rank, *values_in(*self.indices))

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.param, self.room)


@record(frozen=True, eq=False)
class Compress(RowStmt):
    """The first values where ``mask`` holds, in turn, and 0 where there are not as many as the axis
    ``chosen`` is long."""

    mask: str
    chosen: str

    @property
    def operands(self) -> tuple[str, ...]:
        return (self.value, self.mask, *values_in(*self.indices))


def row_stmt(kernel: Kernel) -> RowStmt | None:
    """The statement of a kernel that handles rows: the last one."""
    last = kernel.body[-1] if kernel.body else None
    return last if isinstance(last, RowStmt) else None


def columns_for(records: tuple[int, int], length: Dim) -> int:
    """The vectors of the smallest matrix that holds a row of records; 0 if none may."""
    bits, words = records
    if not isinstance(length, int):
        return 0
    return next((count for count in COLUMNS[words - 1] if length <= count * VECTOR // bits), 0)


def room_of(
    dtype: DType, shape: tuple[Dim, ...], *, places: bool, ranks: Dim | None = None,
    whole: bool = False,
) -> TensorType:
    """The memory that rows of ``shape`` need to be sorted: for as many keys, or words of a key and
    a place; and for the keys twice where they and the places do not fit into one word. To find
    ``ranks`` of them: for the keys twice; for the ``whole`` row words, and three for each of these.
    """
    *rows, length = shape
    if ranks is not None:
        return TensorType(I64, (*rows, length + ranks * 3 + 1)) if whole else TensorType(
            as_dtype(f"i{dtype.bits}"), (*rows, length * 2))
    if not places:
        return TensorType(as_dtype(f"i{dtype.bits}"), shape)
    return TensorType(I64, (*rows, length if dtype.bits == 32 else length * 3))
