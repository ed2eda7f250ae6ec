"""A contraction kernel in LLVM IR: its statements as operands and epilogue of the matrix product.

Statements behind the left operand are evaluated while it is packed, those behind the right one
likewise, and everything that depends on the sums where a finished tile is written.
"""

from __future__ import annotations

from contextlib import ExitStack

from ....ir.indices.runs import run_and_at
from ....ir.kernels.kernel import Axis, Contract, Kernel, Stmt
from ....ir.record import replace
from ...kernel.nest import behind_effects
from ...schedule.access import access_along
from ...schedule.gemm_plan import Access
from ...schedule.runs import common_run, in_runs
from ..dims import emit_dim
from ..products.gemm import Size, emit_block
from ..products.sizes import integer
from ..text import FunctionText
from ..types import LLVM_TYPES, vector_type
from .scope import Scope
from .statements import StmtEmitter
from .values import LlvmValue


class _Operand:
    """One side of a contraction: statements evaluated at (free, k)."""

    def __init__(
        self, emitter: StmtEmitter, scope: Scope, name: str, free: str, k: str, access: Access
    ) -> None:
        self.emitter, self.scope, self.name = emitter, scope, name
        self.free, self.k, self.access = free, k, access
        self.along, self.other = (free, k) if access.lanes == "free" else (k, free)
        kernel = emitter.kernel
        if access.run:
            kernel = in_runs(kernel, self.along, access.run)
        self.stmts = _behind(kernel, name, scope)

    def pointer(self, f: FunctionText) -> str:
        scope = self.scope.child()
        scope.axes[self.free] = scope.axes[self.k] = "0"
        load = self.stmts[-1]
        return self.emitter.address_of(scope, load)

    def vector(self, f: FunctionText, row: str, start: str, width: int, mask: str | None) -> str:
        scope = self.scope.child()
        scope.axes[self.other] = row
        along = self.along
        if self.access.run:  # which no vector leaves
            number, along = run_and_at(along)
            scope.axes[number] = f(f"udiv i64 {start}, {self.access.run}")
            start = f(f"urem i64 {start}, {self.access.run}")
        inner = scope.step(along, start, width, mask)
        return self.emitter.s.splat(self._evaluate(inner), width).ref

    def scalar(self, f: FunctionText, free: str, k: str) -> str:
        scope = self.scope.child()
        scope.axes[self.free], scope.axes[self.k] = free, k
        return self._evaluate(scope).ref

    def _evaluate(self, scope: Scope) -> LlvmValue:
        for stmt in self.stmts:
            self.emitter.emit(scope, stmt)
        return scope.values[self.name]


def _behind(kernel: Kernel, name: str, scope: Scope) -> list[Stmt]:
    """The statements that ``name`` needs beyond what the scope has, in order."""
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    needed: set[str] = set()
    pending = [name]
    while pending:
        current = pending.pop()
        if current not in needed and current not in scope.values:
            needed.add(current)
            pending += by_name[current].operands
    return [stmt for stmt in kernel.body if stmt.name in needed]


def _access(
    kernel: Kernel, name: str, free: str, k: str, side: tuple[str, str]
) -> Access:
    """How the text wants an operand to be read: vectors of a panel do not end where a run does."""
    way, along = side
    access = access_along(kernel, name, free, k, "free" if along == free else
                          "k" if along == k else None)
    return replace(access, run=0) if way in ("panels", "block") and along == free else access


def emit_contract(
    f: FunctionText, kernel: Kernel, emitter: StmtEmitter, scope: Scope, scratch: str
) -> None:
    """Emit a stage that is a contraction: the block of it that the axes of ``scope`` begin. Along
    what a task has of its other axes it is one product of rows and columns for each index."""
    stmt = next(stmt for stmt in kernel.body if isinstance(stmt, Contract))
    plan = stmt.tiling
    assert plan is not None
    others = kernel.value_axes[stmt.name] - {plan.rows, plan.columns}
    scope = scope.child()
    with ExitStack() as loops:
        for axis in kernel.axes:
            if axis.name in others and (axis.kind != "par" or axis.block != 1):
                start, stop = _part(f, axis, scope)
                scope.axes[axis.name] = loops.enter_context(f.loop(str(start), str(stop)))
        _product(f, emitter, scope, stmt, scratch)


def _part(f: FunctionText, axis: Axis, scope: Scope) -> tuple[Size, Size]:
    """Where a task's part of an axis begins and ends."""
    extent = axis.extent
    size = extent if isinstance(extent, int) else emit_dim(f, extent, scope.axes)
    if axis.kind != "par" or (isinstance(size, int) and size <= axis.block):
        return 0, size
    start = scope.axes[axis.name]
    return start, integer(f, "smin", integer(f, "add", start, axis.block), size)


def _product(
    f: FunctionText, emitter: StmtEmitter, scope: Scope, stmt: Contract, scratch: str
) -> None:
    """Emit one product of a stage, of the rows and columns that the axes of ``scope`` begin."""
    kernel, plan = emitter.kernel, stmt.tiling
    assert plan is not None
    sides = (plan.lhs, plan.lhs_along), (plan.rhs, plan.rhs_along)
    lhs, rhs = (_Operand(emitter, scope, name, free, stmt.axis,
                         _access(kernel, name, free, stmt.axis, side))
                for name, free, side in zip(
                    (stmt.lhs, stmt.rhs), (plan.rows, plan.columns),
                    sides[::-1] if plan.swap else sides, strict=True))
    epilogue = _Epilogue(emitter, scope, stmt, plan.rows, plan.columns)

    def extent(name: str) -> Size:
        size = kernel.axis(name).extent
        return size if isinstance(size, int) else emit_dim(f, size, scope.axes)

    extents = (extent(plan.rows), extent(plan.columns), extent(stmt.axis))
    with ExitStack() as loops:
        spans: list[tuple[Size, Size]] = []
        cuts: list[list[int]] = []
        for name, block in zip((plan.rows, plan.columns), plan.block, strict=True):
            axis = kernel.axis(name)
            start, stop = _part(f, axis, scope)
            most = axis.block if axis.kind == "par" else axis.extent
            if not (isinstance(most, int) and most <= block) and (
                    isinstance(stop, str) or stop > block):
                start = loops.enter_context(f.loop(str(start), str(stop), block))
                stop = integer(f, "smin", integer(f, "add", start, block), stop)
            spans.append((start, stop))
            cuts.append([axis.block, block] if axis.kind == "par" else [block])
        (m_start, m_stop), (n_start, n_stop) = spans
        emit_block(f, plan, (m_start, n_start), (m_stop, n_stop), extents, lhs, rhs, epilogue,
                   scratch, (cuts[0], cuts[1]), stmt.chunk)


class _Epilogue:
    """What happens to finished sums: the statements after the contraction, ending in stores."""

    def __init__(
        self, emitter: StmtEmitter, scope: Scope, stmt: Contract, m: str, n: str
    ) -> None:
        self.emitter, self.scope, self.stmt, self.m, self.n = emitter, scope, stmt, m, n
        kernel = emitter.kernel
        self.after = behind_effects(kernel, stmt, scope.values)
        self.run = common_run(kernel, self.after, n)
        if self.run:
            self.after = behind_effects(in_runs(kernel, n, self.run), stmt, scope.values)

    def __call__(
        self, f: FunctionText, row: str, column: str, sums: str, width: int, mask: str | None
    ) -> None:
        if self.stmt.tiling is None or not self.stmt.tiling.outlined:
            self._emit(self.emitter, self.scope, (row, column, sums, width, mask))
            return
        vector = vector_type(LLVM_TYPES[self.stmt.dtype.name], width)
        fixed = [axis.name for axis in self.emitter.kernel.axes if axis.name in self.scope.axes]
        args = [("ptr", "%context"), ("ptr", self.emitter.scratch),
                *(("i64", self.scope.axes[name]) for name in fixed), ("i64", row),
                ("i64", column), (vector, sums)]
        if mask is not None:
            args.append((vector_type("i1", width), mask))
        name = self._helper(f, fixed, [type_ for type_, _ in args], width, mask is not None)
        f.do(f"call void @{name}({', '.join(f'{type_} {value}' for type_, value in args)})")

    def _emit(
        self, emitter: StmtEmitter, scope: Scope, at: tuple[str, str, str, int, str | None]
    ) -> None:
        row, column, sums, width, mask = at
        f, outer = emitter.f, scope.child()
        outer.axes[self.m] = row
        outer.values[self.stmt.name] = LlvmValue(sums, self.stmt.dtype.name, width)
        if not self.run:
            self._finish(emitter, outer.step(self.n, column, width, mask))
            return
        number, place = run_and_at(self.n)
        index = f(f"udiv i64 {column}, {self.run}")
        first = f(f"sub i64 {column}, {f(f'mul i64 {index}, {self.run}')}")
        if mask is None:
            last = f(f"add i64 {first}, {width}")
            within = f(f"icmp sle i64 {last}, {self.run}")
            with f.when(within):
                outer.axes[number] = index
                self._finish(emitter, outer.step(place, first, width, None))
            with f.when(f(f"xor i1 {within}, true")):
                self._by_runs(emitter, outer, index, (column, width, mask))
        else:
            self._by_runs(emitter, outer, index, (column, width, mask))

    def _by_runs(
        self, emitter: StmtEmitter, outer: Scope, begin: str, at: tuple[str, int, str | None]
    ) -> None:
        """Each run that has lanes of the vector gets those by a mask."""
        (column, width, mask), f = at, emitter.f
        number, place = run_and_at(self.n)
        last = f(f"add i64 {column}, {width - 1}")
        stop = f(f"add i64 {f(f'udiv i64 {last}, {self.run}')}, 1")
        with f.loop(begin, stop) as index:
            first = f(f"sub i64 {column}, {f(f'mul i64 {index}, {self.run}')}")
            own = self._lanes_of_run(f, first, width)
            if mask is not None:
                own = f(f"and {vector_type('i1', width)} {own}, {mask}")
            outer.axes[number] = index
            self._finish(emitter, outer.step(place, first, width, own))

    def _lanes_of_run(self, f: FunctionText, first: str, width: int) -> str:
        """The lanes of a run, where lane 0 is at ``first`` of it, perhaps before it."""
        vector = f"<{width} x i32>"
        short = f(f"trunc i64 {first} to i32")
        one = f(f"insertelement {vector} poison, i32 {short}, i64 0")
        many = f(f"shufflevector {vector} {one}, {vector} poison, {vector} zeroinitializer")
        lanes = ", ".join(f"i32 {lane}" for lane in range(width))
        return f(f"icmp ult {vector} {f(f'add {vector} {many}, <{lanes}>')}, "
                 f"splat (i32 {self.run})")

    def _finish(self, emitter: StmtEmitter, inner: Scope) -> None:
        for stmt in self.after:
            emitter.emit(inner, stmt)

    def _helper(
        self, f: FunctionText, fixed: list[str], types: list[str], width: int, masked: bool
    ) -> str:
        """Emit the epilogue as a function; ``fixed`` axes are arguments."""
        name = f"{f.name}_epilogue{len(f.helpers)}"
        words = ["context", "scratch", *(f"axis_{at}" for at in range(len(fixed))), "row",
                 "column", "sums"]
        words += ["mask"] if masked else []
        helper = FunctionText("void", name, list(zip(types, words, strict=True)),
                              linkage="internal", attributes="noinline nounwind")
        emitter = StmtEmitter(helper, self.emitter.kernel, self.emitter.target)
        emitter.use_scratch("%scratch")
        axes = emitter.dims | {axis: f"%axis_{at}" for at, axis in enumerate(fixed)}
        self._emit(emitter, Scope(axes), ("%row", "%column", "%sums", width,
                                          "%mask" if masked else None))
        helper.ret()
        f.helpers.append(helper)
        return name
