"""From a tiled kernel to ``void @kernel(ptr context, i64 begin, i64 end, ptr scratch)``, in LLVM.

The function runs the tasks [begin, end): par blocks, numbered row-major. The context is an array
of 8-byte slots: a pointer for each parameter, the symbolic dims, and a pointer to the status. The
scratch is 64-byte aligned memory that only the thread which runs the tasks uses.

    for task in begin..end                      par axes from the task number
      uniform statements                        neither on the vector nor on a loop axis
      for v in block step W, then masked for the rest   the vector axis, if it is a par axis
        statements and loops                    as ``nest`` gives them

The vector axis may be a loop axis: then a loop over it takes vector steps. Which axis, how many
lanes and what is kept of a row is in the text of the kernel; what a sum adds to what is its own
order, whatever the width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext

from ....ir.indices.index import Dim, ceil_div, product
from ....ir.kernels.kernel import (
    Apply,
    Axis,
    Carry,
    Check,
    Contract,
    Kernel,
    Reduce,
    Stmt,
    stages_of,
)
from ....ir.kernels.rows import row_stmt
from ....ir.kernels.schedule import REST, Vectors
from ....ir.kernels.tiling import power_of_two, round_up
from ....ir.kernels.workspace import local_bytes
from ....ir.machine import Machine
from ....ir.plans.plan import tasks_of
from ....ir.record import replace
from ....ir.types import BOOL, DType
from ...kernel.axes.across import FEWEST_ROWS
from ...kernel.domain.pieces import all_ranges, piece
from ...kernel.domain.windows import needed
from ...kernel.nest import Ends, Loop, inside, nest
from ..dims import emit_dim
from ..intrinsics import ROWS
from ..text import SERIAL, FunctionText
from ..types import LLVM_TYPES, vector_type
from .across import AcrossLoops, goes_across
from .columns import ColumnLoops, Take, by_order, of_sums
from .contract import emit_contract
from .scope import Scope
from .statements import StmtEmitter
from .sums import Values, in_chunks, renamed, span_of
from .turned import turn
from .values import LlvmValue


def emit_kernel(
    kernel: Kernel, target: Machine, pool: str = "weft", inline: str = "", on: bool = False,
    usual: bool = False,
) -> FunctionText:
    """The LLVM function of a kernel tiled for ``target``; ``pool`` is the prefix of what gives a
    long row to several threads, and of what tells whether the run is over. ``inline`` is its name
    where it becomes a part of the function that calls it, and tells it whether the run has ended,
    if it is one of single values.
    One that goes ``on`` where a check fails tells that one did, as it does where operands were not
    as ``usual``, if it has no way of its own for these."""
    # Inlined into the plan, all kernels would make one huge function, slow to compile.
    tells = bool(inline) and kernel.is_single
    serial = f" {SERIAL}" if any(isinstance(stmt, Carry) for stmt in kernel.body) else ""
    f = FunctionText("i1" if tells else "void", inline or kernel.name, [
        ("ptr", "context"), ("i64", "begin"), ("i64", "end"), ("ptr noalias align 64", "scratch"),
    ], linkage="internal",
        attributes=f"{'alwaysinline' if inline else 'noinline'} nounwind{serial}")
    f.ended = "i1 true" if tells else "void"
    stmts = StmtEmitter(f, kernel, target)
    if on:
        stmts.s.unusual, stmts.s.usual = f.alloca("i8", align=1), usual
        f.do(f"store i8 0, ptr {stmts.s.unusual}, align 1")
    f.asks(f"@{pool}_poll(ptr {stmts.status})")
    stmts.use_scratch("%scratch")
    ends = _window_ends(kernel, stmts)
    # The one task of a kernel is what it is called for, if it is called.
    with nullcontext("0") if tasks_of(kernel) == 1 else f.loop(
            *_tasks_inside(kernel, stmts, ends)) as task:
        scope = stmts.task_scope(task)
        scope.values.update(ends)
        last = row_stmt(kernel)
        if last is not None:
            ROWS[type(last)](stmts, scope, last, pool)
        elif on:  # a round, which may read what it has stored
            for stmt in kernel.body:
                stmts.emit(scope, stmt)
        else:
            _stages(f, kernel, stmts, scope)
    if on:
        unusual = f(f"load i8, ptr {stmts.s.unusual}, align 1")
        f.ret(f"i1 {f(f'icmp ne i8 {unusual}, 0')}")
    else:
        f.ret("i1 false" if tells else "void")
    return f


def _window_ends(kernel: Kernel, stmts: StmtEmitter) -> dict[str, LlvmValue]:
    """Where windows of par axes begin and end, and what that is made of: one for all tasks."""
    names = {end for axis in kernel.axes if axis.kind == "par"
             for end in (axis.low, axis.high) if end}
    scope = Scope(dict(stmts.dims))
    for stmt in needed(kernel, names):
        stmts.emit(scope, stmt)
    return scope.values


def _tasks_inside(
    kernel: Kernel, stmts: StmtEmitter, ends: Mapping[str, LlvmValue]
) -> tuple[str, str]:
    """Of the tasks that are to be run, those in the window of the first axis of tasks."""
    f, begin, end = stmts.f, "%begin", "%end"
    axis, *others = (axis for axis in kernel.axes if axis.kind == "par")
    if (axis.low or axis.high) and axis.block == power_of_two(axis.block):
        inner = product(ceil_div(other.extent, other.block) for other in others)
        count = emit_dim(f, inner, stmts.dims)
        first, last = span_of(stmts, Scope(dict(stmts.dims), dict(ends)), axis, axis.block)
        at = f(f"udiv i64 {first}, {axis.block}")
        begin = stmts.most(begin, stmts.least(f(f"mul i64 {at}, {count}"), end))
        at = f(f"udiv i64 {f(f'add i64 {last}, {axis.block - 1}')}, {axis.block}")
        end = stmts.most(begin, stmts.least(f(f"mul i64 {at}, {count}"), end))
    return begin, end


def _stages(f: FunctionText, kernel: Kernel, stmts: StmtEmitter, scope: Scope) -> None:
    for at, body in enumerate(stages_of(kernel)):
        stage = stmts.of(replace(kernel, body=body))
        if any(isinstance(stmt, Contract) and stmt.tiling for stmt in body):
            place = f(f"getelementptr i8, ptr %scratch, i64 {local_bytes(kernel)}")
            emit_contract(f, stage.kernel, stage, scope.child(), place)
        else:
            vectors = next((one for one in kernel.vectors if one.stage == at), None)
            _rows(f, stage.kernel, vectors, stage, scope)


def _rows(
    f: FunctionText, stage: Kernel, vectors: Vectors | None, stmts: StmtEmitter, scope: Scope
) -> None:
    """A stage of loops; once for each index of the loops around it."""
    part, around = inside(stage, vectors.axis if vectors else None)
    inner = scope.child()
    with ExitStack() as loops:
        loops.enter_context(stmts.workspace.part())
        if vectors and vectors.turn:
            stmts.turned = turn(
                f, stage, vectors, scope, stmts.pointers, stmts.target, stmts.workspace)
        for axis in around:
            start, stop, most = "0", emit_dim(f, axis.extent, scope.axes), None
            if axis.kind == "par":
                start, most = scope.axes[axis.name], axis.block
                stop = f.call("i64", "llvm.smin.i64", ("i64", f(
                    f"add i64 {start}, {axis.block}")), ("i64", stop))
            inner.axes[axis.name] = loops.enter_context(f.loop(start, stop, most=most))
        if vectors:
            inner.axes.setdefault(vectors.axis, "0")
        _pieces(f, replace(part, splits=stage.splits), vectors, stmts, inner)


def _pieces(
    f: FunctionText, part: Kernel, vectors: Vectors | None, stmts: StmtEmitter, scope: Scope
) -> None:
    """All that a task does, or what it does of each piece: that of an axis of which it has one
    index under a condition."""
    for ranges in all_ranges(part, part.splits):
        kernel = piece(part, ranges) if ranges else part
        span = ranges.get(vectors.axis) if vectors else None
        with ExitStack() as inside:
            for axis, bound in ranges.items():
                if vectors is None or axis != vectors.axis:
                    for sign, limit in zip(("sge", "slt"), bound, strict=True):
                        if limit not in (0, part.axis(axis).extent):
                            at = emit_dim(f, limit, scope.axes)
                            inside.enter_context(f.when(f(
                                f"icmp {sign} i64 {scope.axes[axis]}, {at}")))
            _KernelEmitter(kernel, vectors, stmts.of(kernel)).task(scope.child(), span)


class _KernelEmitter:
    """Writes one task of a stage of loops; methods go from the outside in."""

    def __init__(self, kernel: Kernel, vectors: Vectors | None, stmts: StmtEmitter) -> None:
        self.kernel, self.f, self.stmts = kernel, stmts.f, stmts
        self.loops = [axis.name for axis in kernel.loop_axes]
        self.vector, self.width, self.keep = None, 1, tuple[str, ...]()
        if vectors:
            self.vector, self.width, self.keep = vectors.axis, vectors.lanes, vectors.keep
        self.values = kernel.value_axes
        self.columns = ColumnLoops(self.stmts, self._run)
        self.done: set[int] = set()       # statements of the task itself
        self.kept: dict[str, str] = {}    # rows of values that later loops load back

    def task(self, scope: Scope, span: tuple[Dim, Dim] | None = None) -> None:
        """Emit all that the task does of the stage, or within ``span`` of its vector axis."""
        with self.stmts.workspace.part():
            self._task(scope, span)

    def _task(self, scope: Scope, span: tuple[Dim, Dim] | None) -> None:
        uniform = self._uniform({name for name in (self.vector, *self.loops) if name})
        for stmt in uniform:
            if stmt.name not in scope.values:  # it is one of all tasks
                self.stmts.emit(scope, stmt)
        self.done = set(map(id, uniform))
        self.kept = self._rows_kept()
        items = nest(self.kernel, self.loops, frozenset(self.kept))
        if self.vector is None or self.vector in self.loops:
            self._run(scope, items)
            return
        axis = self.kernel.axis(self.vector)
        start = scope.axes[self.vector]
        extent = emit_dim(self.f, axis.extent, scope.axes)
        stop = self.stmts.least(self.f(f"add i64 {start}, {axis.block}"), extent)
        if span is not None:
            start = self.stmts.most(start, emit_dim(self.f, span[0], scope.axes))
            stop = self.stmts.least(stop, emit_dim(self.f, span[1], scope.axes))
            stop = self.stmts.most(start, stop)
        if axis.low or axis.high:
            first, last = span_of(self.stmts, scope, axis, self.width)
            start = self.stmts.most(start, first)
            stop = self.stmts.most(start, self.stmts.least(stop, last))

        def steps(scope: Scope) -> Iterator[Scope]:
            assert self.vector is not None
            for at, width, mask in self._steps(axis, start, stop, span):
                yield scope.step(self.vector, at, width, mask)

        if not any(map(goes_across, items)):
            for step in steps(scope):
                self._run(step, items)
            return
        with self._many_rows(scope, items) as few:
            AcrossLoops(self.columns, steps, self.vector, start, self.width).emit(
                scope.child(), items)
        if few:
            with self.f.when(few):
                for step in steps(scope):
                    self._run(step, items)

    @contextmanager
    def _many_rows(self, scope: Scope, items: Iterable[Stmt | Loop]) -> Iterator[str]:
        """What is done if loops have enough rows to be read from end to end; gives the opposite,
        where that may be."""
        rows = next((self.kernel.axis(item.axis).extent for item in items if goes_across(item)
                     and any(isinstance(stmt, Reduce) and stmt.way.few for stmt in item.ends)), 0)
        if not rows:
            yield ""
            return
        few = self.f(f"icmp slt i64 {emit_dim(self.f, rows, scope.axes)}, {FEWEST_ROWS}")
        with self.f.when(self.f(f"xor i1 {few}, true")):
            yield few

    def _uniform(self, moving: set[str]) -> list[Stmt]:
        """Statements that depend on nothing that moves inside a task, in order."""
        known: set[str] = set()
        found = []
        for stmt in self.kernel.body:
            ends = isinstance(stmt, (Reduce, Contract))
            still = stmt.name and not (self.values[stmt.name] & moving) and not ends
            if (still or isinstance(stmt, Check)) and known.issuperset(stmt.operands):
                known.add(stmt.name)
                found.append(stmt)
        return found

    @contextmanager
    def _tail(self, at: str, stop: str) -> Iterator[str]:
        """The masked step that begins at ``at`` if anything is left before ``stop``."""
        left = self.f(f"sub i64 {stop}, {at}")
        with self.f.when(self.f(f"icmp sgt i64 {left}, 0")):
            yield self.stmts.prefix_mask(left, self.width)

    def _steps(
        self, axis: Axis, start: str, stop: str, span: tuple[Dim, Dim] | None
    ) -> Iterator[tuple[str, int, str | None]]:
        """Yield (index, width, mask) of the full steps, as a loop, and of what is left."""
        width = self.width
        alone, whole = None, False
        if isinstance(axis.extent, int) and not (axis.low or axis.high):
            alone = axis.extent if axis.extent <= axis.block else None
            whole = not (axis.extent % width or axis.block % width)
        if span is not None:
            first, last = span
            whole = False
            if alone is not None and isinstance(first, int) and isinstance(last, int):
                alone = last - first
                whole = alone % width == 0
        count = self.f(f"sub i64 {stop}, {start}")
        full = self.f(f"add i64 {start}, {self.f(f'and i64 {count}, {-self.width}')}")
        if alone is None or alone >= 2 * width:
            with self.f.loop(start, full, width, max(1, axis.block // width)) as at:
                yield at, width, None
        elif alone >= width:
            yield start, width, None
        if not whole:
            if width <= REST:
                with self._tail(full, stop) as mask:
                    yield full, width, mask
                return
            with self.f.loop(full, stop, REST, most=width // REST) as at:
                left = self.f(f"sub i64 {stop}, {at}")
                yield at, REST, self.stmts.prefix_mask(left, REST)

    def _run(self, scope: Scope, items: Iterable[Stmt | Loop], take: Take | None = None) -> None:
        """Emit statements and loops; ``take`` gets the reductions that the loop around ends."""
        for item in items:
            if isinstance(item, Loop):
                walk = self._row_loop if item.axis == self.vector else self.columns.emit
                walk(scope, item)
            elif take is not None and isinstance(item, Ends):
                take(scope, item)
            elif id(item) not in self.done:
                self.stmts.emit(scope, item)
                self._keep(scope, item)

    def _keep(self, scope: Scope, stmt: Stmt) -> None:
        """Store a value that is kept in its row."""
        if stmt.name in self.kept:
            wide = self.stmts.s.splat(scope.values[stmt.name], self.width)
            place = self.f(f"getelementptr {wide.element}, ptr {self.kept[stmt.name]}, "
                           f"i64 {scope.axes[self.loops[0]]}")
            self.f.do(f"store {wide.type} {wide.ref}, ptr {place}, align 4")

    # -- loops that walk the vector axis itself

    def _row_loop(self, scope: Scope, loop: Loop) -> None:
        """Vector steps over the loop axis; then trees over the lanes, for each chunk."""
        ordered, free = by_order(loop)
        axis = self.kernel.axis(loop.axis)
        lanes = [stmt.order.lanes for stmt in ordered if stmt.order is not None]

        def chunk(first: str, end: str, carry: Values) -> tuple[Values, Values]:
            start = [self.stmts.initial(stmt, self._lanes_in_step(stmt)) for stmt in ordered]
            found = self._row(scope, loop, first, end, [*ordered, *free], [*start, *carry])
            sums = [self.stmts.sums(stmt).of_lanes(stmt, value)
                    for stmt, value in zip(ordered, found, strict=False)]
            return sums, found[len(ordered):]

        carry = [self.stmts.held_in_loop(self.stmts.initial(
            stmt, 1 if self._counted(stmt) else self.width)) for stmt in of_sums(free)]
        with self.stmts.workspace.part():
            span = span_of(self.stmts, scope, axis, max((self.width, *lanes)))
            sums, carry = in_chunks(self.stmts, [(stmt, 1) for stmt in ordered], axis.extent, span,
                                    [*zip(free, carry, strict=True)], chunk)
        for stmt, value in zip(ordered, sums, strict=True):
            scope.values[stmt.name] = value
        for other, value in zip(free, carry, strict=True):
            assert isinstance(other, Reduce)
            scope.values[other.name] = self.stmts.sums(other).of_lanes(other, value)

    def _counted(self, stmt: Ends) -> str:
        """The bools that a sum of integers counts, if it does: a step has a bit of each."""
        if not isinstance(stmt, Reduce) or stmt.combine != "add" or not stmt.dtype.is_int:
            return ""
        cast = next(each for each in self.kernel.body if each.name == stmt.value)
        if not isinstance(cast, Apply) or cast.prim != "cast":
            return ""
        (bools,) = cast.args
        along = stmt.axis in self.values[bools]
        return bools if along and self._dtype(bools) == BOOL and self.width in (
            8, 16, 32, 64) else ""

    def _lanes_in_step(self, stmt: Reduce) -> int:
        """The lanes of a sum: those of the step where each has one term at most."""
        extent = self.kernel.axis(stmt.axis).extent
        assert stmt.order is not None
        single = isinstance(extent, int) and extent <= min(stmt.order.lanes, self.width)
        return self.width if single else stmt.order.lanes

    def _row(
        self, scope: Scope, loop: Loop, first: str, end: str, sums: Sequence[Ends],
        carry: Values,
    ) -> list[LlvmValue]:
        """The full steps from ``first`` to ``end`` and a masked one, with accumulators."""
        extent = self.kernel.axis(loop.axis).extent
        whole = self.f(f"and i64 {self.f(f'sub i64 {end}, {first}')}, {-self.width}")
        full = self.f(f"add i64 {first}, {whole}")
        carry = self._row_steps(scope, loop, (first, full), sums, carry, masked=False)
        if not (isinstance(extent, int) and extent % self.width == 0):
            carry = self._row_steps(scope, loop, (full, end), sums, carry, masked=True)
        return list(carry)

    def _row_steps(
        self, scope: Scope, loop: Loop, steps: tuple[str, str], sums: Sequence[Ends],
        carry: Values, *, masked: bool,
    ) -> list[LlvmValue]:
        names = [stmt.name for stmt in sums]
        own = {stmt.name for stmt in loop.stmts}
        pairs = [(held.type, held.ref) for held in carry]
        orders = [stmt.order for stmt in sums if isinstance(stmt, Reduce) and stmt.order]
        most = 1 if masked else max(1, orders[0].chunk // self.width) if (
            orders and orders[0].chunk) else None
        with self.f.carried_loop(*steps, self.width, pairs, most) as walk:
            mask = None
            if masked:
                left = self.f(f"sub i64 {steps[1]}, {walk.index}")
                mask = self.stmts.prefix_mask(left, self.width)
            held = dict(zip(names, renamed(carry, walk.values), strict=True))

            def take(inner: Scope, stmt: Ends) -> None:
                assert isinstance(stmt, Reduce), "terms of a product are not taken in lanes"
                bools = self._counted(stmt)
                if bools and held[stmt.name].width == 1:
                    on = self.stmts.s.splat(inner.values[bools], self.width)
                    count = self.stmts.count(on, mask, stmt.dtype)
                    held[stmt.name] = self.stmts.combine(stmt, held[stmt.name], count)
                    return
                term = self.stmts.s.splat(inner.values[stmt.value], self.width)
                if mask is not None:
                    on = LlvmValue(mask, "bool", self.width)
                    term = self.stmts.s.select(on, term, self.stmts.sums(stmt).neutral(stmt))
                held[stmt.name] = self.stmts.sums(stmt).taken(
                    stmt, held[stmt.name], term, walk.index)

            inner = scope.step(loop.axis, walk.index, self.width, mask)
            for name, row in self.kept.items():
                if name not in own:
                    self._load_kept(inner, name, row, walk.index)
            self._run(inner, loop.body, take)
            walk.next = [held[name].ref for name in names]
        return renamed(carry, walk.results)

    def _load_kept(self, scope: Scope, name: str, row: str, at: str) -> None:
        dtype = self._dtype(name)
        element = LLVM_TYPES[dtype.name]
        place = self.f(f"getelementptr {element}, ptr {row}, i64 {at}")
        type_ = vector_type(element, self.width)
        ref = self.f(f"load {type_}, ptr {place}, align 4")
        scope.values[name] = LlvmValue(ref, dtype.name, self.width)

    def _dtype(self, name: str) -> DType:
        return next(stmt.dtype for stmt in self.kernel.body if stmt.name == name)

    def _rows_kept(self) -> dict[str, str]:
        """Memory for the rows that are kept."""
        found = {}
        for name in self.keep:
            extent = self.kernel.axis(self.loops[0]).extent
            assert isinstance(extent, int)
            room = round_up(extent, self.width)
            found[name] = self.stmts.workspace.take(room * self._dtype(name).itemsize)
        return found
