"""The memory that the tasks of a kernel need besides that of its parameters.

    scratch     locals | what contractions pack | workspace, if it is more than its share of a stack
    workspace   kept rows | turned tiles | sums that wait in memory          of one stage at a time

All of it follows from the text, so that a plan has room for it before code is emitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..cost.statements import is_heavy
from ..indices.index import Dim, bounds, ceil_div
from ..plans.plan import ALIGNMENT
from ..plans.stack import WORKSPACE_BYTES
from ..record import replace
from .access import turning_axis
from .kernel import Axis, Contract, Kernel, Reduce, Stmt, stages_of
from .schedule import MOST_LINES, UNROLLED, Vectors
from .tiling import round_up

MAX_LEVELS = 40  # of a pairwise sum of unknown extent: 2**40 chunks take years


def local_bytes(kernel: Kernel) -> int:
    """Bytes of scratch that the locals of a kernel take."""
    ends = [local.offset + local.type.nbytes for local in kernel.locals]
    return round_up(max((end for end in ends if isinstance(end, int)), default=0), ALIGNMENT)


def workspace_at(kernel: Kernel) -> int:
    """Where in the scratch the workspace is, if it is there: after all else."""
    packed = max((stmt.tiling.scratch_bytes for stmt in kernel.body
                  if isinstance(stmt, Contract) and stmt.tiling is not None), default=0)
    return local_bytes(kernel) + round_up(packed, ALIGNMENT)


def scratch_bytes(kernel: Kernel) -> int:
    """Bytes that each thread brings to a kernel."""
    workspace = workspace_bytes(kernel)
    return workspace_at(kernel) + (workspace if workspace > WORKSPACE_BYTES else 0)


def workspace_bytes(kernel: Kernel) -> int:
    """Bytes that the stage with most of them needs for what does not stay in registers."""
    vectors = {one.stage: one for one in kernel.vectors}
    return max((sum(round_up(size, ALIGNMENT) for size in _sizes(kernel, stage, vectors.get(at)))
                for at, stage in enumerate(stages_of(kernel))), default=0)


def levels_of(count: Dim) -> int:
    """How many partial sums of ``count`` values wait at once in a pairwise sum, at most."""
    most = bounds(count)[1]
    return MAX_LEVELS if most is None else max(1, most.bit_length())


def pitch_of(axis: Axis, lanes: int) -> int:
    """Elements from the sums of one lane, of all vectors of a task along ``axis``, to the next: not
    a power of two, of which short rows would all lie in the same sets of the first-level cache."""
    extent = axis.extent if isinstance(axis.extent, int) else axis.block
    return round_up(min(extent, axis.block), lanes) + lanes


def turned_room(size: int, across: int, along: int, lines: int) -> int:
    """Bytes for a block that is turned by tiles of so many lines, with elements of ``size`` bytes:
    one that lies further back begins up to a tile before it."""
    return (along + lines) * (across + lines) * size


def _sizes(kernel: Kernel, stage: Sequence[Stmt], vectors: Vectors | None) -> Iterator[int]:
    yield from _of_sums(kernel, stage, vectors)
    if vectors is None:
        return
    found = {stmt.name: stmt for stmt in stage if stmt.name}
    axis = kernel.axis(vectors.axis)
    for name in vectors.keep:
        if name in found and isinstance(axis.extent, int):
            yield round_up(axis.extent, vectors.lanes) * found[name].dtype.itemsize
    along = turning_axis(replace(kernel, body=tuple(stage)), vectors.axis)
    for name in vectors.turn:
        if name in found and along is not None:
            size = found[name].dtype.itemsize
            yield turned_room(size, axis.block, along.block, MOST_LINES)


def _of_sums(kernel: Kernel, stage: Sequence[Stmt], vectors: Vectors | None) -> Iterator[int]:
    """Of each sum: the chunks that wait for others, then the lanes. All lanes are in memory where
    sums of one loop do not agree on a way, and then they are of one stage."""
    sums = [stmt for stmt in stage if isinstance(stmt, Reduce) and stmt.order is not None]
    agree = len({(stmt.way, stmt.order) for stmt in sums}) == 1
    lanes = 1 if vectors is None else vectors.lanes
    wide = lanes  # elements of one lane of a sum
    if vectors is not None and any(
            isinstance(stmt, Reduce) and stmt.way.kind == "across" for stmt in stage):
        wide, agree = pitch_of(kernel.axis(vectors.axis), lanes), False
        yield from (wide * stmt.dtype.itemsize for stmt in stage
                    if isinstance(stmt, Reduce) or is_heavy(stmt))
    for stmt in stage:
        if isinstance(stmt, Contract) and stmt.chunk and stmt.tiling is None:
            yield lanes * stmt.dtype.itemsize * levels_of(
                ceil_div(kernel.axis(stmt.axis).extent, stmt.chunk))
    for stmt in sums:
        assert stmt.order is not None
        along = vectors is not None and vectors.axis == stmt.axis
        if agree and not along and stmt.way == UNROLLED:
            continue
        size = (1 if along else wide) * stmt.dtype.itemsize
        if stmt.order.chunk:
            yield size * levels_of(ceil_div(kernel.axis(stmt.axis).extent, stmt.order.chunk))
        if not along:
            yield size * (levels_of(stmt.order.lanes) if agree and stmt.way.kind == "by lanes"
                          else stmt.order.lanes)
