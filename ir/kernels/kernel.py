"""The tile-level loop language shared by both back ends.

A kernel is a header of axes and ONE flat list of SSA statements over tiles. A value's shape is the
set of blocked axes it depends on; loops are not written down but follow from it: a statement that
depends on a ``seq`` axis runs inside that axis's loop, a reduction ends the loop, and what depends
on the reduction comes after. So fused producers and consumers are just more lines in the list.

    kernel @softmax(x: f32[64,1024], y: mut f32[64,1024]) {
      par i in 64 by 1, lane j in 1024 {
        vectorize j by 32 keep %3
        %0: f32 = x[i, j]
        %1: f32 = reduce max %0 over j
        %2: f32 = sub %0, %1
        %3: f32 = exp %2
        %4: f32 = reduce add %3 over j {lanes 32}
        %5: f32 = div %3, %4
        y[i, j] = %5
      }
    }

Axis kinds: ``par`` blocks are independent tasks (a task of the CPU pool, a Triton program),
``seq`` blocks run in order inside a task, ``lane`` is one block that covers the axis. Loop axes
are nested in header order: what is reduced over one may depend on those outside of it. Accesses are
dense row-major; indices are expressions over axes, dims and integer values (``x[%3, j]``).
Masks follow from extents and blocks and are never written. What else there is to choose
is in the text, too: ``tiling`` has the blocks of contractions, ``schedule`` how loops are run.

A task may keep values of one *stage* for the next in its locals. In a kernel with locals a stage
ends with its stores, and what it computes is known to later ones through locals only:

    kernel @norm(x: f32[64,32], w: f32[32,80], y: mut f32[64,80])
        local (s: f32[16,80] at 0) {
      par i in 64 by 16, lane j in 80, seq k in 32 by 32 {
        %0: f32 = x[i, k]
        %1: f32 = w[k, j]
        %2: f32 = contract %0, %1 over k {...}
        s[i mod 16, j] = %2
        vectorize j by 32
        %3: f32 = s[i mod 16, j]
        %4: f32 = reduce max %3 over j
        %5: f32 = sub %3, %4
        y[i, j] = %5
      }
    }
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal

from ..indices.index import Dim, Expr, symbol, symbols_of
from ..indices.walk import substitute
from ..loc import Loc
from ..record import fields, record, replace
from ..types import DType, TensorType
from .combine import Order
from .schedule import IN_TURN, Program, Split, Vectors, Way
from .tiling import Tiling

AxisKind = Literal["par", "seq", "lane"]


@record(frozen=True)
class Param:
    """A buffer: dense row-major memory of ``type``; ``mutable`` ones are stored to."""

    name: str
    type: TensorType
    mutable: bool = False


@record(frozen=True)
class Local(Param):
    """A tile that each task has for itself, ``offset`` bytes into the scratch of its worker.

    A task writes and reads it wherever its axes lead; nothing is left of it for the next task.
    """

    mutable: bool = True
    offset: int = 0


@record(frozen=True)
class Axis:
    """``kind name in extent by block``; a lane axis has block 0: the block is the extent.

    An axis may have a window, ``from low to high``: values that are one for all of the kernel.
    Outside of it all that is reduced along the axis is an identity, and elements that are stored
    are there already.
    """

    name: str
    extent: Dim
    kind: AxisKind
    block: int = 1
    low: str = ""
    high: str = ""

    def __str__(self) -> str:
        by = "" if self.kind == "lane" else f" by {self.block}"
        low, high = (f" {word} {end}" if end else "" for word, end in (
            ("from", self.low), ("to", self.high)))
        return f"{self.kind} {self.name} in {self.extent}{by}{low}{high}"


@record(frozen=True, eq=False)
class Stmt:
    """Base of the statements; ``dtype`` is the element type of the value they define."""

    name: str    # "%3"; "" for statements without a value
    dtype: DType

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the values read, guards and index values included."""
        return ()

    @property
    def exprs(self) -> tuple[Dim, ...]:
        """The index expressions that it holds."""
        return ()

    @property
    def summed(self) -> tuple[str, ...]:
        """The axes that it sums over, or takes the end of; the last one fastest."""
        return ()

    @property
    def stores(self) -> tuple[str, ...]:
        """The parameters whose contents it changes."""
        return ()


@record(frozen=True, eq=False)
class Const(Stmt):
    """A scalar constant."""

    value: bool | int | float


@record(frozen=True, eq=False)
class Index(Stmt):
    """An index expression as a value."""

    expr: Dim

    @cached_property
    def operands(self) -> tuple[str, ...]:
        return values_in(self.expr)

    @property
    def exprs(self) -> tuple[Dim, ...]:
        return (self.expr,)


@record(frozen=True, eq=False)
class Load(Stmt):
    """``param[indices]``, or zero where ``guard`` is false (nothing is read there)."""

    param: str
    indices: tuple[Dim, ...]
    guard: str = ""

    @cached_property
    def operands(self) -> tuple[str, ...]:
        return values_in(*self.indices) + ((self.guard,) if self.guard else ())

    @property
    def exprs(self) -> tuple[Dim, ...]:
        return self.indices


@record(frozen=True, eq=False)
class Apply(Stmt):
    """A scalar primitive on tiles."""

    prim: str
    args: tuple[str, ...]

    @property
    def operands(self) -> tuple[str, ...]:
        return self.args


@record(frozen=True, eq=False)
class Reduce(Stmt):
    """Combine a value over one axis; ``order`` is None where any order gives the same bits."""

    combine: str
    value: str
    axis: str
    order: Order | None = None
    way: Way = IN_TURN

    @property
    def operands(self) -> tuple[str, ...]:
        return (self.value,)

    @property
    def summed(self) -> tuple[str, ...]:
        return (self.axis,)


@record(frozen=True, eq=False)
class Search(Reduce):
    """``search max %0 over j``: the first index at which a value is the largest, or the smallest,
    or at which it is not a number. What goes round a loop is a pair: the extreme and its index."""


@record(frozen=True, eq=False)
class Contract(Stmt):
    """Sum over ``axes`` of lhs * rhs, in row-major order: a chain of fused multiply-adds from 0.0
    for each ``chunk`` of terms (0: for all), and the chunks pairwise, as an ``Order`` has them.

    With ``dot``, a precision, a GPU's unit for products of tiles adds the terms of a chunk, in an
    order of its own: ``{chunk 512, dot ieee}``, which is products and sums of float32."""

    lhs: str
    rhs: str
    axes: tuple[str, ...]
    chunk: int = 0
    tiling: Tiling | None = None
    dot: str = ""
    combine: ClassVar[str] = "add"

    @property
    def operands(self) -> tuple[str, ...]:
        return (self.lhs, self.rhs)

    @property
    def summed(self) -> tuple[str, ...]:
        return self.axes

    @property
    def axis(self) -> str:
        """Its only axis: a tiled kernel sums over one."""
        (axis,) = self.axes
        return axis


@record(frozen=True, eq=False)
class Carry(Stmt):
    """A value that goes from one index of a ``seq`` axis to the next: ``init`` at the first, then
    what ``next``, a value below, was at the index before."""

    init: str
    next: str
    axis: str

    @property
    def operands(self) -> tuple[str, ...]:
        return (self.init,)


@record(frozen=True, eq=False)
class Last(Stmt):
    """What a carry along ``axis`` would be at the next index: what ``next`` was at the last one,
    or the carry's ``init`` where the axis has none."""

    value: str
    axis: str

    @property
    def operands(self) -> tuple[str, ...]:
        return (self.value,)

    @property
    def summed(self) -> tuple[str, ...]:
        return (self.axis,)


@record(frozen=True, eq=False)
class Written(Stmt):
    """Base of what puts ``value`` to ``param[indices]``."""

    param: str
    indices: tuple[Dim, ...]
    value: str

    @property
    def exprs(self) -> tuple[Dim, ...]:
        return self.indices

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.param,)


@record(frozen=True, eq=False)
class Store(Written):
    """``param[indices] = value`` (or ``+=``) where ``guard`` holds.

    ``atomic``: indices of a GPU's programs or tiles may meet in an element, which takes their terms
    in any turn.
    """

    accumulate: bool = False
    guard: str = ""
    atomic: bool = False

    @cached_property
    def operands(self) -> tuple[str, ...]:
        guard = (self.guard,) if self.guard else ()
        return (self.value, *values_in(*self.indices), *guard)

    @property
    def meets(self) -> bool:
        """True if it may come to an element again, so that the order of its rounds counts."""
        return self.accumulate or bool(values_in(*self.indices))


@record(frozen=True, eq=False)
class Check(Stmt):
    """The step fails if ``value`` is false anywhere; a kernel numbers its checks from 1."""

    value: str
    site: int

    @property
    def operands(self) -> tuple[str, ...]:
        return (self.value,)


def values_in(*dims: Dim) -> tuple[str, ...]:
    """The values that index expressions read."""
    return tuple(sorted(n for dim in dims for n in symbols_of(dim) if n.startswith("%")))


@record(frozen=True, eq=False)
class Kernel:
    """Axes and statements; ``locs`` are the user lines that were fused into it.

    ``vectors`` are those of its stages, in order, ``program`` is for a GPU, and ``splits`` are axes
    of a map that is cut into pieces: see ``schedule``.
    """

    name: str
    params: tuple[Param, ...]
    axes: tuple[Axis, ...]
    body: tuple[Stmt, ...]
    locs: tuple[Loc, ...] = ()
    locals: tuple[Local, ...] = ()
    vectors: tuple[Vectors, ...] = ()
    program: Program | None = None
    splits: tuple[Split, ...] = ()

    def axis(self, name: str) -> Axis:
        return next(axis for axis in self.axes if axis.name == name)

    def param(self, name: str) -> Param:
        """A parameter or local by name."""
        return self._params[name]

    @cached_property
    def _params(self) -> dict[str, Param]:
        return {param.name: param for param in (*self.params, *self.locals)}

    @cached_property
    def accesses(self) -> dict[str, list[tuple[int, Load | Store]]]:
        """The loads and stores of each parameter and local, with their positions in the body."""
        found: dict[str, list[tuple[int, Load | Store]]] = {}
        for at, stmt in enumerate(self.body):
            if isinstance(stmt, (Load, Store)):
                found.setdefault(stmt.param, []).append((at, stmt))
        return found

    @property
    def is_single(self) -> bool:
        """Whether each of its statements is run once."""
        return all(axis.extent == 1 for axis in self.axes)

    def is_local(self, name: str) -> bool:
        return any(local.name == name for local in self.locals)

    @cached_property
    def value_axes(self) -> dict[str, frozenset[str]]:
        """For each value, the axes it depends on: reductions and contractions take theirs away."""
        names = frozenset(axis.name for axis in self.axes)
        tasks = frozenset(axis.name for axis in self.axes if axis.kind == "par")
        result: dict[str, frozenset[str]] = {}
        carries = [stmt for stmt in self.body if isinstance(stmt, Carry)]
        more = True
        while more:  # again where what is carried turned out to depend on more
            before = {stmt.name: result.get(stmt.next, frozenset()) for stmt in carries}
            for stmt in self.body:
                if stmt.name:
                    result[stmt.name] = _depends(stmt, result, names)
                    if isinstance(stmt, Load) and self.is_local(stmt.param):
                        result[stmt.name] |= tasks
                    if isinstance(stmt, Carry):
                        result[stmt.name] |= before[stmt.name] | {stmt.axis}
            more = any(result[stmt.name] != result[stmt.name] | result.get(stmt.next, frozenset())
                       for stmt in carries)
        return result

    @cached_property
    def effect_axes(self) -> dict[int, frozenset[str]]:
        """For each statement without a value (by position), the axes it runs over."""
        names = frozenset(axis.name for axis in self.axes)
        return {at: _depends(stmt, self.value_axes, names)
                for at, stmt in enumerate(self.body) if not stmt.name}

    @cached_property
    def loop_axes(self) -> tuple[Axis, ...]:
        """The axes that reductions, contractions and ``seq`` loops run over, outermost first."""
        names = {name for stmt in self.body for name in stmt.summed}
        return tuple(axis for axis in self.axes if axis.name in names or axis.kind == "seq")

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """Names of the symbolic dims that extents, shapes or indices mention, sorted."""
        names: set[str] = set()
        for axis in self.axes:
            names |= symbols_of(axis.extent)
        for param in (*self.params, *self.locals):
            for dim in param.type.shape:
                names |= symbols_of(dim)
        for stmt in self.body:
            for dim in stmt.exprs:
                names |= symbols_of(dim)
        return tuple(sorted(n for n in names - {a.name for a in self.axes} if n[0] != "%"))


def rename_values(stmt: Stmt, names: Mapping[str, str]) -> Stmt:
    """The statement reading values by other names; those it does not list stay."""
    def moved(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(moved, part))
        if isinstance(part, str):
            return names.get(part, part)
        if not isinstance(part, Expr):
            return part
        # Few of many names are in one expression.
        found = symbols_of(part) & names.keys()
        return substitute(part, {old: symbol(names[old]) for old in found}) if found else part

    return replace(stmt, **{part.name: moved(getattr(stmt, part.name)) for part in fields(stmt)
                            if part.name != "name"})


def stages_of(kernel: Kernel) -> list[tuple[Stmt, ...]]:
    """The stages of a kernel with locals; one without locals is one stage."""
    if not kernel.locals:
        return [kernel.body]
    stages: list[list[Stmt]] = [[]]
    for stmt in kernel.body:
        if stmt.name and stages[-1] and not stages[-1][-1].name:
            stages.append([])
        stages[-1].append(stmt)
    return [tuple(stage) for stage in stages]


_NO_AXES = frozenset[str]()


def _depends(
    stmt: Stmt, values: Mapping[str, frozenset[str]], names: frozenset[str]
) -> frozenset[str]:
    axes = _NO_AXES
    for operand in stmt.operands:
        axes |= values[operand]
    for expr in stmt.exprs:
        if not isinstance(expr, int):
            axes |= symbols_of(expr) & names
    return axes.difference(stmt.summed) if stmt.summed else axes
