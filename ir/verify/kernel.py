"""What a sound kernel is: definitions, dtypes, axes, and stores that cannot race. See ``verify``.

A check yields (statement, message) for each broken rule; the statement is None where the kernel's
first lines are meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ..indices.affine import coefficient
from ..indices.index import Dim, symbols_of
from ..kernels.access import local_uses, may_overwrite
from ..kernels.combine import is_ordered
from ..kernels.intrinsics import Intrinsic, intrinsic_of
from ..kernels.kernel import (
    Apply,
    Carry,
    Check,
    Const,
    Contract,
    Index,
    Kernel,
    Last,
    Load,
    Reduce,
    Stmt,
    Store,
    stages_of,
)
from ..kernels.rows import COLUMNS, Ranked, RowStmt, Sort, columns_for, room_of, row_stmt
from ..scalar.primitives import PRIMITIVES, result_dtype
from ..types import BOOL, F32, I64, DType
from .graph import RESERVED
from .schedule import check_schedule
from .tiling import check_tilings

PRECISIONS = ("ieee",)  # of a unit for products
MAX_LANES = 64  # of a sum: a chunk is made of whole vectors, and of rounds of all lanes

Problems = Iterator[tuple[Stmt | None, str]]


def check_axes(kernel: Kernel) -> Problems:
    """Axes have plain, unique names that no dim has, and blocks that fit their kind."""
    seen: set[str] = set()
    dims = frozenset[str]().union(*(symbols_of(dim) for param in kernel.params
                                    for dim in param.type.shape),
                                  *(symbols_of(axis.extent) for axis in kernel.axes))
    dtypes = {stmt.name: stmt.dtype for stmt in kernel.body if stmt.name}
    for axis in kernel.axes:
        if axis.name in seen | dims | RESERVED or not axis.name.isidentifier():
            yield None, f"'{axis.name}' is not a free name for an axis"
        if axis.kind not in ("par", "seq", "lane") or (axis.block == 0) != (axis.kind == "lane") \
                or axis.block < 0:
            yield None, f"axis '{axis}' has no valid kind and block"
        for end in filter(None, (axis.low, axis.high)):
            if dtypes.get(end) != I64 or kernel.value_axes[end]:
                yield None, f"axis '{axis}' has no window of values that are one for all"
        seen.add(axis.name)
    if any(name.startswith("%") for name in dims):
        yield None, "a shape or extent depends on a value"


def check_params(kernel: Kernel) -> Problems:
    """Accesses name a parameter, with an index for each of its dims; stores a mutable one."""
    params = {param.name: param for param in (*kernel.params, *kernel.locals)}
    if len(params) != len(kernel.params) + len(kernel.locals):
        yield None, "two parameters have one name"
    for stmt in kernel.body:
        if isinstance(stmt, (Load, Store, RowStmt)):
            param = params.get(stmt.param)
            if param is None:
                yield stmt, f"no parameter '{stmt.param}'"
            elif len(stmt.indices) != param.type.rank:
                yield stmt, f"{len(stmt.indices)} indices for {param.type}"
            elif isinstance(stmt, (Store, RowStmt)) and not param.mutable:
                yield stmt, f"a store to '{stmt.param}', which is not mutable"


def check_definitions(kernel: Kernel) -> Problems:
    """Values are defined once, above their uses."""
    known: set[str] = set()
    for stmt in kernel.body:
        for operand in stmt.operands:
            if operand not in known:
                yield stmt, f"{operand} is not defined above"
        if isinstance(stmt, (Store, RowStmt, Check)) != (stmt.name == ""):
            yield stmt, "stores, sorts and checks define no value, all others do"
        if stmt.name and (stmt.name in known or not re.fullmatch(r"%\w+", stmt.name)):
            yield stmt, f"'{stmt.name}' is not a free name for a value"
        known.add(stmt.name)


def check_dtypes(kernel: Kernel) -> Problems:
    """Element types follow from the operands by the rules of the scalar primitives."""
    dtypes: dict[str, DType] = {}
    for stmt in kernel.body:
        message = _dtype_problem(kernel, stmt, dtypes)
        if message:
            yield stmt, message
        if getattr(stmt, "guard", "") and dtypes[stmt.guard] != BOOL:  # type: ignore[attr-defined]
            yield stmt, "a guard must be bool"
        dtypes[stmt.name] = stmt.dtype


def _dtype_problem(kernel: Kernel, stmt: Stmt, dtypes: dict[str, DType]) -> str:
    row = intrinsic_of(stmt)
    if row is not None:
        return _made_problem(kernel, stmt, row, dtypes)
    expected: DType | None = None
    match stmt:
        case Const(value=value):
            python = {"b": bool, "i": int, "u": int}.get(stmt.dtype.kind, float)
            if type(value) is not python:
                return f"{value!r} is no constant of {stmt.dtype}"
        case Index():
            if not stmt.dtype.is_int:
                return f"an index of dtype {stmt.dtype}"
        case Load():
            expected = kernel.param(stmt.param).type.dtype
        case Apply():
            if stmt.prim not in PRIMITIVES:
                return f"no primitive '{stmt.prim}'"
            try:
                expected = result_dtype(stmt.prim, tuple(dtypes[a] for a in stmt.args), stmt.dtype)
            except TypeError as problem:
                return str(problem)
        case Carry():
            expected = dtypes[stmt.init]
        case Last():
            expected = dtypes[stmt.value]
        case Store():
            expected = kernel.param(stmt.param).type.dtype
            if dtypes[stmt.value] != expected or (
                    stmt.accumulate and (expected == BOOL or expected.is_half)):
                return f"a value of {dtypes[stmt.value]} stored to '{stmt.param}' of {expected}"
        case Check():
            expected = BOOL
            if dtypes[stmt.value] != BOOL or stmt.site < 1:
                return "a check needs a bool and a site from 1 on"
    if expected in (None, stmt.dtype):
        return ""
    return f"the dtype is {stmt.dtype}, should be {expected}"


def _made_problem(
    kernel: Kernel, stmt: Stmt, row: Intrinsic, dtypes: Mapping[str, DType]
) -> str:
    """What is wrong with the types of an instruction's operands, or of what it makes of them."""
    made = row.dtype(stmt, *(dtypes[name] for name in row.operands(stmt)))
    if isinstance(made, str):
        return made
    if not isinstance(stmt, RowStmt):
        return "" if stmt.dtype == made else f"the dtype is {stmt.dtype}, should be {made}"
    own = kernel.param(stmt.param).type
    if stmt.dtype != dtypes[stmt.value]:
        return f"the dtype is {stmt.dtype}, should be {dtypes[stmt.value]}"
    return "" if own.dtype == made else f"{row.word} gives {made}, '{stmt.param}' is of {own}"


def check_indices(kernel: Kernel) -> Problems:
    """Values in index expressions are integers; the other names are axes or plain dims."""
    dtypes = {stmt.name: stmt.dtype for stmt in kernel.body}
    for stmt in kernel.body:
        for name in sorted(frozenset[str]().union(*map(symbols_of, stmt.exprs))):
            if name.startswith("%"):
                if not dtypes[name].is_int:
                    yield stmt, f"{name} is an index but no integer"
            elif name in RESERVED or not re.fullmatch(r"[^\W\d][\w.]*", name):
                yield stmt, f"'{name}' is neither an axis nor a dim"


def check_locals(kernel: Kernel) -> Problems:
    """Locals have sizes, lie apart while both are in use, and are stored to before they are read,
    or one takes the place of another element by element; each stage computes what it needs."""
    if not kernel.locals:
        return
    uses, stages = local_uses(kernel), stages_of(kernel)
    for at, stage in enumerate(stages):
        known: set[str] = set()
        for stmt in stage:
            if any(operand not in known for operand in stmt.operands):
                yield stmt, "a value of an earlier stage is used: only locals are kept"
            known.add(stmt.name)
            if isinstance(stmt, Load) and stmt.param in uses and at == uses[stmt.param][0]:
                yield stmt, f"local '{stmt.param}' is read before a stage has stored it"
    ends: dict[str, int] = {}
    for local in kernel.locals:
        size = local.type.nbytes
        if not isinstance(size, int) or local.offset < 0 or local.offset % 64:
            yield None, f"local '{local.name}' has no size or does not begin at a multiple of 64"
        else:
            ends[local.name] = local.offset + size
    sized = [local for local in kernel.locals if local.name in ends]
    for at, one in enumerate(sized):
        for other in sized[at + 1:]:
            apart = ends[one.name] <= other.offset or ends[other.name] <= one.offset
            first, second = uses[one.name] or [-1], uses[other.name] or [-2]
            if min(first) > min(second):
                one, other, first, second = other, one, second, first
            if not apart and min(second) <= max(first) and not (
                    one.offset == other.offset and max(first) == min(second)
                    and may_overwrite(kernel, stages[max(first)], one.name, other.name)):
                yield None, f"locals '{one.name}' and '{other.name}' overlap while both are in use"


def check_bounds(kernel: Kernel) -> Problems:
    """No access leaves its array, as far as that is plain: the index follows from axes of known
    extents, and no guard stands before it."""
    extents = {axis.name: axis.extent for axis in kernel.axes}
    if 0 in extents.values():
        return
    for stmt in kernel.body:
        if not isinstance(stmt, (Load, Store)) or stmt.guard:
            continue
        param = kernel.param(stmt.param)
        for dim, size in zip(stmt.indices, param.type.shape, strict=True):
            ends = _range_of(dim, extents)
            if ends is not None and isinstance(size, int) and not 0 <= ends[0] <= ends[1] < size:
                place = str(ends[0]) if len(set(ends)) == 1 else f"from {ends[0]} to {ends[1]}"
                yield stmt, f"an index of '{param.name}', {param.type}, is {place}"


def _range_of(dim: Dim, extents: Mapping[str, Dim]) -> tuple[int, int] | None:
    """The least and the largest value of an index that is linear in axes of known extents."""
    low: Dim = 0
    high: Dim = 0
    rest = dim
    for name in symbols_of(dim):
        slope, extent = coefficient(rest, name), extents.get(name)
        if slope is None or not isinstance(slope[0], int) or not isinstance(extent, int):
            return None
        first, last = sorted((0, slope[0] * (extent - 1)))
        low, high, rest = low + first, high + last, slope[1]
    low, high = low + rest, high + rest
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def _has_no_tasks(kernel: Kernel) -> bool:
    """True for kernels over no elements: their indices need not depend on anything."""
    return any(axis.extent == 0 and axis.kind == "par" for axis in kernel.axes)


def check_reductions(kernel: Kernel) -> Problems:
    """Reductions and products run over an axis that one task runs through."""
    kinds = {axis.name: axis.kind for axis in kernel.axes}
    for stmt in kernel.body:
        if len(set(stmt.summed)) != len(stmt.summed):
            yield stmt, "an axis is summed over twice"
        for axis in stmt.summed:
            if axis not in kinds:
                yield stmt, f"there is no axis '{axis}'"
            elif kinds[axis] == "par":
                yield stmt, f"'{axis}' is a par axis: its blocks are separate tasks"


def check_carries(kernel: Kernel) -> Problems:
    """A carry runs over a seq axis, one index at a time; its next value is of its dtype and stands
    below. Only what is carried has a last value."""
    axes = {axis.name: axis for axis in kernel.axes}
    carries: dict[str, str] = {}
    for at, stmt in enumerate(kernel.body):
        if isinstance(stmt, Last) and carries.get(stmt.value) != stmt.axis:
            yield stmt, f"{stmt.value} is not carried along '{stmt.axis}'"
        if not isinstance(stmt, Carry):
            continue
        carries[stmt.name] = stmt.axis
        following = next((other for other in kernel.body[at + 1:] if other.name == stmt.next), None)
        if following is None:
            yield stmt, f"{stmt.next}, the next value, is not defined below"
        elif following.dtype != stmt.dtype:
            yield stmt, f"the next value is {following.dtype}, the carry {stmt.dtype}"
        if stmt.axis not in axes:
            yield stmt, f"there is no axis '{stmt.axis}'"
        elif axes[stmt.axis].kind != "seq" or axes[stmt.axis].block != 1:
            yield stmt, f"'{stmt.axis}' is no seq axis by 1: nothing is carried along it"
        elif stmt.axis in kernel.value_axes[stmt.init]:
            yield stmt, f"the first value depends on '{stmt.axis}'"


def check_rows(kernel: Kernel) -> Problems:
    """Rows are made of rows, by a kernel that does nothing else; there is room for each."""
    rows = [stmt for stmt in kernel.body if isinstance(stmt, RowStmt)]
    if rows and (row_stmt(kernel) is not rows[0] or any(
            isinstance(stmt, (Store, Carry)) or stmt.summed for stmt in kernel.body)):
        yield rows[0], "a kernel that sorts does nothing else and ends with it"
    for stmt in rows:
        row = intrinsic_of(stmt)
        assert row is not None
        yield from _check_row(kernel, stmt, row)


def _check_row(kernel: Kernel, stmt: RowStmt, row: Intrinsic) -> Problems:
    axes, own = {axis.name: axis for axis in kernel.axes}, kernel.param(stmt.param).type
    last = getattr(stmt, row.gives)
    fields = {*(axis for _, axis in row.takes), row.gives}
    of = {getattr(stmt, field) for field in fields}
    others = [axis for axis in kernel.axes if axis.name not in of]
    places = [str(dim) for dim in stmt.indices]
    if any(name not in axes or axes[name].kind == "par" for name in of) or any(
            axis.kind != "par" for axis in others):
        yield stmt, (f"{' or '.join(map(repr, sorted(of)))} is par, or another axis is not: "
                     "tasks are rows")
        return
    for name, along in zip(row.operands(stmt), row.axes(stmt), strict=True):
        wrong = kernel.value_axes[name] & (of - set(along))
        if wrong:
            yield stmt, f"{name} lies along '{along[0]}', it cannot depend on '{min(wrong)}'"
    if len(of) < len(fields):
        yield stmt, f"'{last}' is two of its axes"
    elif [place for place in places if place != "0"] != [
            *(axis.name for axis in others), last] or own.shape != tuple(
            1 if place == "0" else axes[place].extent for place in places):
        yield stmt, f"'{stmt.param}' is not one row of '{last}' for each task"
    elif isinstance(stmt, (Sort, Ranked)):
        ranks = axes[stmt.ranks].extent if isinstance(stmt, Ranked) else None
        room = next((param for param in kernel.params if param.name == stmt.room), None)
        if room is None or not room.mutable or room.type != room_of(
                stmt.dtype, (*own.shape[:-1], axes[stmt.axis].extent), places=stmt.places,
                ranks=ranks, whole=isinstance(stmt, Ranked) and stmt.whole):
            yield stmt, f"'{stmt.room}' is no room for the rows of '{stmt.param}'"
        yield from _check_algorithm(kernel, stmt)


def _check_algorithm(kernel: Kernel, stmt: Sort | Ranked) -> Problems:
    by, length = stmt.algorithm, kernel.axis(stmt.axis).extent
    if by is None:
        return
    if isinstance(stmt, Ranked) and (by.columns or by.runs):
        yield stmt, f"'{by}': rows whose ranks are wanted are sorted whole, by quick or radix"
    elif isinstance(stmt, Sort) and by.columns and (
            by.columns not in COLUMNS[stmt.records[1] - 1] or by.runs
            or not 0 < columns_for(stmt.records, length) <= by.columns):
        yield stmt, f"'{by}': no columns of so many vectors hold rows of {length}"
    elif by.runs and (by.runs.bit_count() != 1 or any(
            axis.kind == "par" and axis.extent != 1 for axis in kernel.axes)):
        yield stmt, f"'{by}': runs are a power of two long, and of the one row of a kernel"


def check_nesting(kernel: Kernel) -> Problems:
    """A loop ends inside those that its results depend on: loops are nested in header order."""
    loops = [axis.name for axis in kernel.loop_axes]
    axes = kernel.value_axes
    for stmt in kernel.body:
        if isinstance(stmt, Reduce) and stmt.axis in loops:
            inside = axes[stmt.name].intersection(loops[loops.index(stmt.axis):])
            if inside:
                yield stmt, (f"the sum over '{stmt.axis}' depends on '{min(inside)}', which is "
                             "looped over inside of it")


def check_orders(kernel: Kernel) -> Problems:
    """What rounds has an order of lanes and chunks, powers of two; what does not has none."""
    for stmt in kernel.body:
        if isinstance(stmt, Contract) and stmt.chunk and (not _is_chunk(stmt.chunk) or not (
                is_ordered(stmt.combine, stmt.dtype))):
            yield stmt, f"a product of {stmt.dtype} has no chunks of {stmt.chunk}"
        if isinstance(stmt, Contract) and stmt.dot and (
                stmt.dot not in PRECISIONS or stmt.dtype != F32):
            yield stmt, f"no unit gives products of {stmt.dtype} with the precision '{stmt.dot}'"
        if not isinstance(stmt, Reduce):
            continue
        order = stmt.order
        if order is None:
            if is_ordered(stmt.combine, stmt.dtype):
                yield stmt, f"a {stmt.combine} of {stmt.dtype} needs an order: {{lanes 32}}"
            continue
        if not is_ordered(stmt.combine, stmt.dtype):
            yield stmt, f"a {stmt.combine} of {stmt.dtype} has no order"
        lanes = order.lanes
        if lanes.bit_count() != 1 or lanes > MAX_LANES or (
                order.chunk and not _is_chunk(order.chunk) and (lanes, order.chunk) != (1, 1)):
            yield stmt, (f"{order} is no order: lanes are a power of two up to {MAX_LANES}, a "
                         f"chunk is one from {MAX_LANES} on")


def _is_chunk(count: int) -> bool:
    return count.bit_count() == 1 and count >= MAX_LANES


def check_stores(kernel: Kernel) -> Problems:
    """No element is stored to twice: a store's indices hold the axes its value depends on.

    Where its guard depends on an axis within a task it runs along that axis: the same value each
    time, or on a seq axis the last one. Rounds of a seq axis may store to one computed place, too,
    of which the last one counts: a scatter's.
    An accumulating store may meet an element again, but only within one task: it must hold every
    par axis as it stands, not through a computed index.
    """
    if _has_no_tasks(kernel):
        return
    wide = frozenset(axis.name for axis in kernel.axes if axis.extent != 1)
    par, seq = (frozenset(axis.name for axis in kernel.axes if axis.kind == kind)
                for kind in ("par", "seq"))
    axes = kernel.value_axes
    for stmt in kernel.body:
        if not isinstance(stmt, Store) or kernel.is_local(stmt.param):
            continue
        names = frozenset[str]().union(*map(symbols_of, stmt.indices))
        if stmt.accumulate:
            missing = (par & wide) - names
        else:
            held = names.union(*(axes.get(name, frozenset()) for name in names))
            guarded = axes[stmt.guard] if stmt.guard else frozenset[str]()
            missing = ((axes[stmt.value] | guarded & par) & wide) - held - (guarded & seq)
            missing -= seq if names & axes.keys() else frozenset()
        if missing:
            yield stmt, f"blocks of axis '{min(missing)}' store to one element"


KERNEL_CHECKS: tuple[Callable[[Kernel], Problems], ...] = (
    check_axes, check_params, check_definitions, check_dtypes, check_indices, check_reductions,
    check_carries, check_rows, check_nesting, check_orders, check_schedule, check_stores,
    check_locals, check_tilings, check_bounds,
)
