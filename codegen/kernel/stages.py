"""From a list of statements to stages of a task, with locals for what one stage keeps for others.

A contraction is computed for a whole block at once, so what is summed along its rows has to wait
until it is done. Each contraction is a stage, with what is elementwise behind it; loops over rows
are stages between them. What a later stage needs is kept in a local: sums, whatever follows a
contraction, and what is too expensive to be computed twice. All else is computed again.

    s = contract q, k over d     stage 0: contract; keeps  c = s * scale
    c = mul s, scale             stage 1: loops over j: m, then e and z; keeps e, z
    m = reduce max c over j      stage 2: contract e / z, packed row by row; stores y
    e = exp (c - m)
    z = reduce add e over j
    y = contract (e / z), v over j

So is a row of sums that two loops along it would compute, each for itself: the distances of which
the smallest is found, then where it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ...ir.cost.statements import is_composite
from ...ir.indices.index import Dim, symbol
from ...ir.kernels.access import local_uses, may_overwrite
from ...ir.kernels.kernel import (
    Carry,
    Contract,
    Kernel,
    Load,
    Local,
    Reduce,
    Stmt,
    Store,
    rename_values,
    stages_of,
)
from ...ir.plans.plan import ALIGNMENT
from ...ir.record import field, record, replace
from ...ir.types import TensorType
from .nest import Loop, nest


def needs_stages(kernel: Kernel) -> bool:
    """True unless a kernel has no contraction, or just one and no other sum; what is carried past
    a sum goes on in one loop with it."""
    if any(isinstance(stmt, Carry) for stmt in kernel.body):
        return False
    sums = [stmt for stmt in kernel.body if isinstance(stmt, (Reduce, Contract))]
    return len(sums) > 1 and any(isinstance(stmt, Contract) for stmt in sums)


def sums_again(kernel: Kernel) -> frozenset[str]:
    """The sums that more than one loop would compute, by name: each has the axis of these loops."""
    found: Counter[str] = Counter()
    pending: list[Stmt | Loop] = list(nest(kernel, [axis.name for axis in kernel.loop_axes]))
    while pending:
        item = pending.pop()
        if isinstance(item, Loop):
            pending += item.body
        elif isinstance(item, Reduce):
            found[item.name] += 1
    return frozenset(name for name, times in found.items() if times > 1)


def with_stages(kernel: Kernel, rows: frozenset[str] = frozenset()) -> Kernel:
    """The kernel cut into stages. Axes have their blocks: they give the locals their shapes. The
    sums ``rows`` are kept for later stages, as contractions are.

    Raises ValueError for a local whose size is not known.
    """
    plan = _Plan(kernel, rows)
    plan.assign()
    plan.choose()
    return plan.rewritten()


@record
class _Plan:
    kernel: Kernel
    rows: frozenset[str]
    sums: list[bool] = field(default_factory=list)          # of each stage: is it a contraction
    home: dict[int, int] = field(default_factory=dict)      # position of a sum or effect -> stage
    after: dict[str, int] = field(default_factory=dict)     # the last stage behind a value, or -1
    first: set[int] = field(default_factory=set)            # stages of sums that others wait for
    kept: list[dict[str, None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.by_name = {stmt.name: at for at, stmt in enumerate(self.kernel.body) if stmt.name}

    def assign(self) -> None:
        """The stage of each sum, store and check."""
        product: dict[int, frozenset[str]] = {}  # axes of the result of a contraction's stage
        for at, stmt in enumerate(self.kernel.body):
            last = max((self.after[name] for name in stmt.operands), default=-1)
            if isinstance(stmt, Contract):
                self.sums.append(True)
                last = self.home[at] = len(self.sums) - 1
                product[last] = self.kernel.value_axes[stmt.name]
            elif isinstance(stmt, Reduce):
                last = self.home[at] = self._loops(last, stmt.name in self.rows)
            elif not stmt.name:
                axes = self.kernel.effect_axes[at]
                fused = last >= 0 and self.sums[last] and axes == product[last]
                self.home[at] = last if fused else self._loops(last)
            if stmt.name:
                self.after[stmt.name] = last

    def _loops(self, after: int, first: bool = False) -> int:
        """The first stage of loops that sees what stage ``after`` has computed; or one of sums for
        which all that reads them waits."""
        for stage in range(max(after, 0), len(self.sums)):
            if not self.sums[stage] and (stage in self.first) == first and not (
                    first and stage == after):
                return stage
        self.sums.append(False)
        if first:
            self.first.add(len(self.sums) - 1)
        return len(self.sums) - 1

    def choose(self) -> None:
        """What each stage keeps, from the last one to the first: later ones say what they need."""
        self.kept = [{} for _ in self.sums]
        for stage in reversed(range(len(self.sums))):
            self._needed(stage)

    def _needed(self, stage: int) -> list[int]:
        """Positions of the statements that a stage computes, in order; notes what it asks for."""
        found: set[int] = set()
        pending = [at for at, home in self.home.items() if home == stage]
        pending += [self.by_name[name] for name in self.kept[stage]]
        while pending:
            at = pending.pop()
            if at in found:
                continue
            found.add(at)
            for name in self.kernel.body[at].operands:
                if self._is_kept(name, stage):
                    self.kept[self.after[name]][name] = None
                else:
                    pending.append(self.by_name[name])
        return sorted(found)

    def _is_kept(self, name: str, stage: int) -> bool:
        """Whether a stage finds a value in a local instead of computing it."""
        stmt, last = self.kernel.body[self.by_name[name]], self.after[name]
        if last < 0 or last >= stage:
            return False
        return isinstance(stmt, (Reduce, Contract)) or self.sums[last] or is_composite(stmt)

    def rewritten(self) -> Kernel:
        locals_ = self._locals()
        body: list[Stmt] = []
        made = 0
        for stage in range(len(self.sums)):
            names: dict[str, str] = {}
            values: list[Stmt] = []
            effects: list[Stmt] = []

            def fresh(names: dict[str, str], old: str) -> str:
                nonlocal made
                names[old] = f"%{made}"
                made += 1
                return names[old]

            for at in self._needed(stage):
                stmt = self.kernel.body[at]
                for name in stmt.operands:
                    if name not in names:
                        old = self.kernel.body[self.by_name[name]]
                        local, index = locals_[name]
                        values.append(Load(fresh(names, name), old.dtype, local.name, index))
                moved = rename_values(stmt, names)
                if stmt.name:
                    moved = replace(moved, name=fresh(names, stmt.name))
                (values if stmt.name else effects).append(moved)
            for name in self.kept[stage]:
                local, index = locals_[name]
                effects.append(Store("", local.type.dtype, local.name, index, names[name]))
            body += values + effects
        return _placed(replace(self.kernel, body=tuple(body),
                               locals=tuple(local for local, _ in locals_.values())))

    def _locals(self) -> Mapping[str, tuple[Local, tuple[Dim, ...]]]:
        """The local of each kept value, and the index at which it is there."""
        taken = {param.name for param in self.kernel.params}
        found: dict[str, tuple[Local, tuple[Dim, ...]]] = {}
        for names in self.kept:
            for name in names:
                shape, index = self._tile(name)
                type_ = TensorType(self.kernel.body[self.by_name[name]].dtype, shape)
                if not isinstance(type_.nbytes, int):
                    raise ValueError(f"{self.kernel.name}: a local of {type_}")
                word = f"t{len(found)}"
                while word in taken:
                    word += "_"
                found[name] = Local(word, type_), index
        return found

    def _tile(self, name: str) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
        """The shape of a kept value in one task, and its index there."""
        shape: list[Dim] = []
        index: list[Dim] = []
        for axis in self.kernel.axes:
            if axis.name not in self.kernel.value_axes[name]:
                continue
            place = symbol(axis.name, axis.extent)
            if axis.kind != "par":
                shape.append(axis.extent)
                index.append(place)
            elif axis.block != 1:
                shape.append(axis.block)
                index.append(place % axis.block)
        return tuple(shape), tuple(index)


def _placed(kernel: Kernel) -> Kernel:
    """The kernel with its locals beside those that are in use at the same time, or over one that
    is read for the last time where they are stored."""
    uses, stages = local_uses(kernel), stages_of(kernel)
    placed: list[tuple[int, int, int, Local]] = []  # offset, end, the last stage
    for local in kernel.locals:
        size = local.type.nbytes
        assert isinstance(size, int)
        first, last = uses[local.name][0], uses[local.name][-1]
        lives = sorted(((begin, end, until, other) for begin, end, until, other in placed
                        if until >= first), key=lambda life: life[:2])
        over = next((begin for begin, _, until, other in lives if until == first
                     and may_overwrite(kernel, stages[first], other.name, local.name)
                     and sum(begin < end and start < begin + size
                             for start, end, _, _ in lives) == 1), None)
        offset = over or 0
        for begin, end, _, _ in lives if over is None else ():
            if begin < offset + size and offset < end:
                offset = end
        placed.append((offset, -(-(offset + size) // ALIGNMENT) * ALIGNMENT, last,
                       replace(local, offset=offset)))
    return replace(kernel, locals=tuple(local for *_, local in placed))
