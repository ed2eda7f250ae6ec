"""What a kernel reads and writes, and what follows for the memory of its parameters."""

from __future__ import annotations

from collections.abc import Sequence

from ..indices.affine import coefficient
from ..indices.index import Dim, bounds, plain_symbol, row_major, symbols_of
from ..record import replace
from .kernel import (
    Apply,
    Axis,
    Contract,
    Index,
    Kernel,
    Load,
    Reduce,
    Stmt,
    Store,
    stages_of,
)
from .rows import row_stmt


def reads_and_stores(kernel: Kernel) -> tuple[frozenset[str], frozenset[str]]:
    """The parameters whose contents a kernel needs, and those that it changes."""
    stored: set[str] = set()
    needed: set[str] = set()
    for stmt in kernel.body:
        if isinstance(stmt, Load) or (isinstance(stmt, Store) and stmt.accumulate):
            needed |= {stmt.param} - stored
        stored.update(stmt.stores)
    return frozenset(needed), frozenset(stored)


def may_share(kernel: Kernel, source: str, target: str) -> bool:
    """True if parameters ``source`` and ``target`` can be the same memory.

    Each element must be read for the last time before it is written. So both are accessed at one
    index that holds all par axes (else another task may read later), ``target`` is only stored
    to, and no loop after that of the stores needs ``source`` (a loop computes again what it needs
    of the values of earlier loops). What is stored as it was may be read at any index.
    """
    one, two = kernel.param(source).type, kernel.param(target).type
    if kernel.param(source).mutable or one != two or row_stmt(kernel) is not None:
        return False
    accesses = [*kernel.accesses.get(source, ()), *kernel.accesses.get(target, ())]
    loads = [at for at, stmt in accesses if isinstance(stmt, Load) and stmt.param == source]
    stores = [at for at, stmt in accesses if isinstance(stmt, Store) and stmt.param == target]
    if any(isinstance(stmt, Load) and stmt.param == target for _, stmt in accesses):
        return False
    if not loads or not stores:
        return True
    if max(loads) > min(stores):
        return False
    written = [stmt for _, stmt in accesses if isinstance(stmt, Store)]
    where = {stmt.indices for _, stmt in accesses if isinstance(stmt, Store) or not (
        len(written) == 1 and _stays(kernel, stmt, written[0]))}
    plain = not any(isinstance(stmt, Store) and stmt.accumulate for _, stmt in accesses)
    names = frozenset[str]().union(*(symbols_of(dim) for at in where for dim in at))
    computed = any(name.startswith("%") for name in names)
    par = {axis.name for axis in kernel.axes if axis.kind == "par" and axis.extent != 1}
    return (len(where) == 1 and plain and not computed and par <= names
            and _stored_last(kernel, source, target))


def _stays(kernel: Kernel, load: Load, store: Store) -> bool:
    """Whether what a load reads is no element that a store changes: one that is stored where it has
    been read, as it lies before or behind those that a mask chooses.

        A[k + 1:, k + 1:] -= ... * A[k, k + 1:]      rows from k + 1 on are changed, row k is read
    """
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    chosen = by_name[store.value]
    if not isinstance(chosen, Apply) or chosen.prim != "select" or load.guard:
        return False
    old = by_name[chosen.args[2]]
    if not isinstance(old, Load) or old.guard or (old.param, old.indices) != (
            load.param, store.indices):
        return False
    pending = [chosen.args[0]]
    while pending:
        test = by_name[pending.pop()]
        if isinstance(test, Apply) and test.prim == "and_":
            pending += test.args
        elif isinstance(test, Apply) and test.prim in ("ge", "lt"):
            place, end = (by_name[name] for name in test.args)
            if isinstance(place, Index) and isinstance(end, Index):
                for stored, read in zip(store.indices, load.indices, strict=True):
                    gap = end.expr - 1 - read if test.prim == "ge" else read - end.expr
                    least = bounds(gap)[0]
                    if stored == place.expr and plain_symbol(stored) is not None and (
                            least is not None and least >= 0):
                        return True
    return False


def lines_across(kernel: Kernel, load: Load, axis: str, along: str) -> tuple[Dim, Dim] | None:
    """How many elements a load goes on with each index of ``axis``, and its offset, if it jumps
    from line to line there and lines lie ``along`` another one; None for any other load."""
    param = kernel.param(load.param)
    offset = row_major(load.indices, param.type.shape)
    if load.guard or param.mutable or any(name.startswith("%") for name in symbols_of(offset)):
        return None
    jump, line = coefficient(offset, axis), coefficient(offset, along)
    if jump is None or line is None or line[0] != 1 or jump[0] in (-1, 0, 1) or (
            along in symbols_of(jump[0])):
        return None
    return jump[0], offset


def turning_axis(kernel: Kernel, vector: str) -> Axis | None:
    """The axis along which lie the lines of what a task of a map may turn: the only one, besides
    that of the vectors, of which the task has several indices."""
    axes = [axis for axis in kernel.axes if axis.name != vector and axis.block != 1]
    plain = all(axis.kind == "par" for axis in kernel.axes) and not kernel.locals
    return axes[0] if plain and len(axes) == 1 else None


def turned_bytes(kernel: Kernel, load: Load, vector: str, along: Axis) -> int:
    """Memory for what a task turns of a load, but for the margins of an emitter."""
    return kernel.axis(vector).block * along.block * load.dtype.itemsize


def local_uses(kernel: Kernel) -> dict[str, list[int]]:
    """The stages in which each local is stored to and read, in order."""
    uses: dict[str, list[int]] = {local.name: [] for local in kernel.locals}
    for at, stage in enumerate(stages_of(kernel)):
        for stmt in stage:
            if isinstance(stmt, (Load, Store)) and stmt.param in uses:
                uses[stmt.param].append(at)
    return uses


def may_overwrite(kernel: Kernel, stage: Sequence[Stmt], source: str, target: str) -> bool:
    """True if a stage may store local ``target`` where it reads local ``source`` for the last
    time: each element is read before it is written, at the one index of both, and none of them is
    packed for a contraction, which reads ahead of what it stores."""
    accesses = [stmt for stmt in stage if isinstance(stmt, (Load, Store))
                and stmt.param in (source, target)]
    behind: set[str] = set()
    for stmt in stage:
        if stmt in accesses or not behind.isdisjoint(stmt.operands):
            if isinstance(stmt, Contract):
                return False
            behind.add(stmt.name)
    part = replace(kernel, body=tuple(stage))
    used = frozenset[str]().union(*part.value_axes.values(), *part.effect_axes.values(),
                                  *(stmt.summed for stmt in stage))
    return (kernel.param(source).type == kernel.param(target).type
            and len({stmt.indices for stmt in accesses}) == 1
            and not any(isinstance(stmt, Store) and stmt.accumulate for stmt in accesses)
            and _stored_last(replace(part, axes=tuple(
                axis for axis in kernel.axes if axis.name in used)), source, target))


def _stored_last(kernel: Kernel, source: str, target: str) -> bool:
    """True if the loop that stores ``target`` is the last one that needs ``source``."""
    if not kernel.loop_axes:
        return True
    orders = [stmt.order for stmt in kernel.body if isinstance(stmt, Reduce) and stmt.order]
    if len({order.chunk for order in orders}) > 1:
        return False  # these are loops of their own, one after the other
    loop: dict[str, int] = {}
    needs: set[str] = set()
    last_need, first_store = 0, len(kernel.body)
    for stmt in kernel.body:
        level = max((loop[name] for name in stmt.operands), default=0)
        ends = isinstance(stmt, (Reduce, Contract))
        if stmt.name:
            loop[stmt.name] = level + ends
        if not needs.isdisjoint(stmt.operands) or (
                isinstance(stmt, Load) and stmt.param == source):
            last_need = max(last_need, level)
            # In a loop around a loop, what that sums is computed again from the start.
            if not ends or len(kernel.loop_axes) > 1:
                needs.add(stmt.name)
        if isinstance(stmt, Store) and stmt.param == target:
            first_store = min(first_store, level)
    return last_need <= first_store
