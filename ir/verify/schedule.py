"""What a schedule may say: vectors of loops that may be taken several indices at a time, values of
rows that are kept, ways in which lanes are taken.

The parser asks too, and shows the line: it is what people change by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..indices.index import bounds, symbols_of
from ..kernels.access import lines_across, turned_bytes, turning_axis
from ..kernels.kernel import (
    Carry,
    Contract,
    Kernel,
    Load,
    Reduce,
    Search,
    Stmt,
    Store,
    stages_of,
)
from ..kernels.rows import row_stmt
from ..kernels.schedule import (
    IN_TURN,
    KEPT_BYTES,
    MOST_AT_ONCE,
    MOST_UNROLLED,
    MOST_VECTOR,
    REST,
    TURNED_BYTES,
    UNROLLED,
    WAY_KINDS,
    Program,
    Split,
    Vectors,
)
from ..types import BOOL

Stage = Sequence[Stmt]


def check_schedule(kernel: Kernel) -> Iterator[tuple[Stmt | None, str]]:
    """Vectors, ways and programs are ones that an emitter can obey."""
    for item, message in schedule_problems(kernel):
        yield (item if isinstance(item, Stmt) else None), message


def schedule_problems(kernel: Kernel) -> Iterator[tuple[Vectors | Split | Stmt | Program, str]]:
    """What is wrong with a schedule, each with the part of it that is meant."""
    program = kernel.program
    if program and (program.warps.bit_count() != 1 or program.warps > 32 or program.pipeline < 1
                    or program.chunks.bit_count() != 1):
        yield program, (f"'{program}': warps are a power of two up to 32, chunks a power of two, "
                        "at least 1 round is begun")
    for at, split in enumerate(kernel.splits):
        for message in _of_split(kernel, split, {each.axis for each in kernel.splits[:at]}):
            yield split, f"'{split}': {message}"
    stages = stages_of(kernel)
    seen: set[int] = set()
    for vectors in kernel.vectors:
        if vectors.stage >= len(stages) or not stages[vectors.stage] or vectors.stage in seen:
            yield vectors, f"'{vectors}': no stage begins here, or it has vectors already"
            continue
        seen.add(vectors.stage)
        for message in _of_vectors(kernel, vectors, stages[vectors.stage]):
            yield vectors, f"'{vectors}': {message}"
    for at, stage in enumerate(stages):
        along = {vectors.axis for vectors in kernel.vectors if vectors.stage == at}
        for stmt in stage:
            if isinstance(stmt, Reduce) and stmt.way != IN_TURN:
                for message in _of_way(kernel, stmt, stage, along):
                    yield stmt, message


def _of_split(kernel: Kernel, split: Split, others: set[str]) -> Iterator[str]:
    axis = next((axis for axis in kernel.axes if axis.name == split.axis), None)
    if axis is None or axis.kind != "par" or split.axis in others:
        yield "it names a par axis, once"
        return
    if any(axis.kind != "par" for axis in kernel.axes) or kernel.locals or any(
            isinstance(stmt, (Contract, Reduce)) or (isinstance(stmt, Store) and stmt.meets)
            for stmt in kernel.body) or any(vectors.turn for vectors in kernel.vectors) or (
            row_stmt(kernel) is not None):
        yield "only a map without loops, turned loads and stores that meet is cut"
    axes = {axis.name for axis in kernel.axes}
    if any(name in axes or name.startswith("%") for point in split.points
           for name in symbols_of(point)):
        yield "points are numbers and dims"
        return
    steps = [point - other for other, point in zip((0, *split.points), split.points, strict=False)]
    if not split.points or any((bounds(step)[0] or 0) < 0 or bounds(step)[0] is None
                               for step in steps):
        yield "points are in ascending order, from 0 on"


def _one_by_one(stage: Stage) -> bool:
    """True where terms are added in order, or one index needs what another one has left."""
    return any(isinstance(stmt, (Contract, Carry)) or (isinstance(stmt, Store) and stmt.accumulate)
               for stmt in stage)


def _of_vectors(kernel: Kernel, vectors: Vectors, stage: Stage) -> Iterator[str]:
    axis = next((axis for axis in kernel.axes if axis.name == vectors.axis), None)
    if axis is None:
        yield f"there is no axis '{vectors.axis}'"
        return
    lanes = vectors.lanes
    if lanes.bit_count() != 1 or not 2 <= lanes <= MOST_VECTOR:
        yield f"lanes are a power of two from 2 to {MOST_VECTOR}"
    if any(isinstance(stmt, Contract) and stmt.tiling for stmt in stage):
        yield "the vectors of a tiled contraction are those of its tiling"
    elif axis.kind != "par" and _one_by_one(stage):
        yield (f"'{axis.name}' is walked index by index: for a product, an accumulating store or "
               "what is carried")
    for stmt in stage:
        order = stmt.order if isinstance(stmt, Reduce) and stmt.axis == axis.name else None
        if order is None or order.lanes < 1 or (isinstance(axis.extent, int)
                                                and axis.extent <= min(order.lanes, lanes)):
            continue  # a wrong order is said elsewhere
        if lanes % order.lanes or (order.chunk and order.chunk % lanes):
            yield (f"{stmt.name} is a sum {order}: it wants a multiple of its lanes that divides "
                   "its chunk")
    if vectors.keep:
        yield from _of_keep(kernel, vectors, stage)
    if vectors.turn:
        yield from _of_turn(kernel, vectors, stage)


def _of_turn(kernel: Kernel, vectors: Vectors, stage: Stage) -> Iterator[str]:
    along = turning_axis(kernel, vectors.axis)
    if along is None:
        yield (f"loads are turned in tasks of a map that have several indices of '{vectors.axis}' "
               "and of one other axis")
        return
    ranks = {param.name: param.type.rank for param in kernel.params}
    loads = {stmt.name: stmt for stmt in stage
             if isinstance(stmt, Load) and ranks.get(stmt.param) == len(stmt.indices)}
    for name in vectors.turn:
        if name not in loads or not lines_across(kernel, loads[name], vectors.axis, along.name):
            yield (f"{name} is no load, without a guard and of what is not stored to, of lines "
                   f"along '{along.name}' that '{vectors.axis}' crosses")
        elif turned_bytes(kernel, loads[name], vectors.axis, along) > TURNED_BYTES:
            yield f"what a task reads by {name} has more than {TURNED_BYTES} bytes"


def _of_keep(kernel: Kernel, vectors: Vectors, stage: Stage) -> Iterator[str]:
    axis = kernel.axis(vectors.axis)
    loops = {name for stmt in stage for name in stmt.summed}
    if not kernel.locals:
        loops |= {axis.name for axis in kernel.axes if axis.kind == "seq"}
    if loops != {axis.name}:
        yield f"a row is kept where the stage sums over '{axis.name}' and nothing else"
    if not _is_defined(kernel):
        return  # which is worse, and said elsewhere
    found = {stmt.name: stmt for stmt in stage if stmt.name}
    for name in vectors.keep:
        if name not in found or axis.name not in kernel.value_axes[name]:
            yield f"{name} is no value of a row along '{axis.name}' in this stage"
        elif found[name].dtype == BOOL:
            yield f"{name} is bool: only numbers are kept"
        elif not isinstance(axis.extent, int) or (
                axis.extent * found[name].dtype.itemsize > KEPT_BYTES):
            yield f"a row of {name} has more than {KEPT_BYTES} bytes, or nobody knows how many"


def _is_defined(kernel: Kernel) -> bool:
    """True if every value that is read stands above."""
    known: set[str] = set()
    for stmt in kernel.body:
        if not known.issuperset(stmt.operands):
            return False
        known.add(stmt.name)
    return True


def _of_way(kernel: Kernel, stmt: Reduce, stage: Stage, along: set[str]) -> Iterator[str]:
    extent = next((axis.extent for axis in kernel.axes if axis.name == stmt.axis), 0)
    lanes_of_par = not kernel.locals and any(
        vectors.lanes <= REST and axis.name == vectors.axis and axis.kind == "par"
        for vectors in kernel.vectors for axis in kernel.axes)
    lanes = stmt.order.lanes if stmt.order else 0
    if stmt.way.kind not in WAY_KINDS or not (lanes or stmt.way.kind == "across"):
        yield f"'{stmt.way}' is no way to take lanes, or there are none"
    elif stmt.axis in along:
        yield f"'{stmt.way}': the sum is along the vectors, which are its lanes"
    elif _one_by_one(stage):
        yield (f"'{stmt.way}': beside a product, an accumulating store or what is carried, sums "
               "are taken in turn")
    elif stmt.way.kind in ("by lanes", "in strips", "across") and not all(
            count.bit_count() == 1 and count <= most for count, most in (
                (stmt.way.count, min(lanes, MOST_AT_ONCE) if stmt.way.kind == "by lanes"
                 else MOST_AT_ONCE), (stmt.way.few or 1, min(lanes or 1, MOST_AT_ONCE)))):
        yield (f"'{stmt.way}': a power of two, up to {MOST_AT_ONCE}, and of lanes as many as the "
               "sum has")
    elif stmt.way.kind == "across" and any(isinstance(each, Search) for each in stage):
        yield f"'{stmt.way}': a search beside it keeps a pair in registers, which rows have not"
    elif stmt.way.kind == "across" and not lanes_of_par:
        yield f"'{stmt.way}': vectors of at most {REST} lanes, of an axis of tasks, go across rows"
    elif stmt.way == UNROLLED and not (isinstance(extent, int) and extent <= MOST_UNROLLED):
        yield f"only loops of at most {MOST_UNROLLED} rounds are unrolled"
    elif stmt.way == UNROLLED and isinstance(extent, int) and stmt.order and (
            0 < stmt.order.chunk < extent):
        yield "a sum of several chunks is not unrolled"
