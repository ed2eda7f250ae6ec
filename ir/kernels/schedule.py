"""How the loops of a kernel are run: what its text says of the schedule besides blocks and tilings.

    kernel @softmax(x: f32[64,1024], y: mut f32[64,1024]) {
      par i in 64 by 1, lane j in 1024 {
        vectorize j by 32 keep %3                       Vectors: of the stage that begins here
        split j at 3, 515                               Split: of a map
        ...
        %4: f32 = reduce add %3 over j {lanes 32}
      }
    }
    kernel @columns(...) {
        %1: f32 = reduce add %0 over i {lanes 32, chunk 1024, by lanes 2}           Way
    }
    kernel @for_a_gpu(...) warps 8 pipeline 3 {         Program

None of it changes a bit of a result. The interpreter reads past it, Triton's emitter past all but
``warps``, the CPU's past ``warps``.
"""

from __future__ import annotations

from typing import Literal, get_args

from ..indices.index import Dim
from ..record import record

MOST_VECTOR = 256       # lanes of a vector step: 16 registers of 16
KEPT_BYTES = 32 << 10   # of a row that is kept: it has to stay in the first-level cache
TURNED_BYTES = 32 << 10  # of what a task turns of one load
MOST_LINES = 16         # of a tile that is turned: more would not fit in registers
MOST_UNROLLED = 128     # rounds of a loop that are all written out
MOST_AT_ONCE = 8        # lanes that meet in registers, or indices of one
# Lanes of a masked step: the mask of more does not stay in registers, which takes LLVM as long as
# all else in a sum down columns, and such a sum twice the time.
REST = 64


@record(frozen=True)
class Vectors:
    """The loops of a stage take ``lanes`` indices of ``axis`` at a time, and a masked rest: of a
    par axis, in steps of at most ``REST``.

    Values that they compute along it are vectors then. A stage without is run index by index.
    ``keep`` are values of a row, of which a later loop over the row finds what an earlier one has
    computed in memory; all others that it needs it computes again. ``turn`` are loads of a stage
    without loops whose lines lie across the vectors: a task turns its part of them first.
    """

    stage: int
    axis: str
    lanes: int
    keep: tuple[str, ...] = ()
    turn: tuple[str, ...] = ()

    def __str__(self) -> str:
        values = "".join(f" {word} {', '.join(names)}"
                         for word, names in (("keep", self.keep), ("turn", self.turn)) if names)
        return f"vectorize {self.axis} by {self.lanes}{values}"


@record(frozen=True)
class Split:
    """A map is written out for each piece of a par axis, of which each begins at a point or at 0,
    without what does not happen there."""

    axis: str
    points: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"split {self.axis} at {', '.join(map(str, self.points))}"


WayKind = Literal["in turn", "unrolled", "by lanes", "in strips", "across"]
WAY_KINDS: tuple[WayKind, ...] = get_args(WayKind)


@record(frozen=True)
class Way:
    """How the lanes of a sum over other indices than those of the vectors are taken:

        in turn      index after index, with the sums of all lanes in memory; nothing is written
        unrolled     all indices written out, without a loop
        by lanes 2   the indices of so many lanes, whose sums meet in registers, then of others
        in strips 8  so many indices of each lane, whose sum is in memory between, then more of them
        across 8     the same with the vectors innermost: the sums of all vectors of the task are in
                     memory, whose rows are read from end to end; also of what has no lanes
        ..., few 4   the same, but where there are no more indices than lanes: so many lanes at once

    Where that is known, "by lanes 4" means it, too. Lanes at once are a tree in registers, whether
    all of them are there or not.
    Sums that end in one loop but do not agree on lanes and way are taken in turn.
    """

    kind: WayKind = "in turn"
    count: int = 0
    few: int = 0

    def __str__(self) -> str:
        few = f", few {self.few}" if self.few else ""
        return f"{self.kind} {self.count}{few}" if self.count else self.kind


IN_TURN, UNROLLED = Way(), Way("unrolled")


@record(frozen=True)
class Program:
    """A Triton program: warps of threads, how many rounds of its loops are under way at once, and
    how many chunks of ordered sums it takes side by side, each in the lanes of the order:

        chunks 2, of {lanes 4, chunk 16}     a tile has 0 1 2 3 16 17 18 19, then 4 5 6 7 20 ...

    A kernel that does not say it has programs as they are by default.
    """

    warps: int = 4
    pipeline: int = 1
    chunks: int = 1

    def __str__(self) -> str:
        chunks = f" chunks {self.chunks}" if self.chunks > 1 else ""
        return f"warps {self.warps} pipeline {self.pipeline}{chunks}"
