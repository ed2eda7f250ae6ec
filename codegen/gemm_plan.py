"""How a contraction is cut into tasks, blocks and register tiles: pure functions of its shape.

    task (mb x nb of the output)      one step of k in registers (mr x nr)
    +------+------+------+            a[0] |b b b b b b b b|   nv vectors of b,
    |      |  nb  |      |            a[1] |...............|   mr broadcasts of a,
    |      |mb    |      |            a[2] |...............|   mr * nv fma
    +------+------+------+
    |      |      |      |            kb steps of k, then the next block of k goes on
    +------+------+------+

The choice knows shapes, element, target and access patterns, never the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

ELEMENT_BITS = {"float": 32, "double": 64, "i32": 32, "i64": 64}


@dataclass(frozen=True)
class GemmTarget:
    """What the choice of tiles needs to know of a CPU; cache sizes in bytes, of one core."""

    vector_bits: int
    registers: int
    l1: int = 32 << 10
    l2: int = 1 << 20


AVX512 = GemmTarget(512, 32, 48 << 10, 1 << 20)
AVX2 = GemmTarget(256, 16)
NEON = GemmTarget(128, 32, 64 << 10, 512 << 10)


@dataclass(frozen=True)
class Access:
    """How one operand lies in memory, seen along its free axis (m of lhs, n of rhs) and k."""

    lanes: Literal["free", "k"] | None = None  # the axis that is cheap to read as a vector
    stride: int | None = None  # a plain array: elements between neighbours on the other axis


@dataclass(frozen=True)
class GemmPlan:
    """The blocking of one contraction: a pure function of shape, element, target and access."""

    element: str
    lanes: int  # elements in a vector register
    mr: int  # rows of a register tile
    nv: int  # vectors in a row of it
    mb: int  # rows, columns and depth of a block: multiples of mr, nr and lanes
    nb: int
    kb: int
    cut: bool  # K may exceed kb
    lhs: Literal["in place", "rows", "panels"]
    rhs: Literal["in place", "panels"]
    swap: bool = False  # computes the transposed product: lhs and rhs change places
    cost: float = 0.0  # estimated cycles of one core for the whole product

    @property
    def nr(self) -> int:
        return self.nv * self.lanes

    @property
    def pr(self) -> int:
        """Width of an lhs panel: mr rounded up to whole vectors."""
        return _round_up(self.mr, self.lanes)

    @property
    def lhs_panel(self) -> int:
        """Elements of a packed lhs row block; one vector more than needed, so that panels do not
        all start in the same cache set."""
        if self.lhs == "rows":
            return self.mr * (self.kb + self.lanes)
        return self.pr * self.kb + self.lanes

    @property
    def rhs_panel(self) -> int:
        return self.nr * self.kb + self.lanes

    def areas(self) -> tuple[int, int, int, int]:
        """Elements of scratch for lhs, rhs, the sums, and rows on their way to be transposed."""
        m_tiles, n_tiles = self.mb // self.mr, self.nb // self.nr
        lhs = 0 if self.lhs == "in place" else m_tiles * self.lhs_panel
        rhs = 0 if self.rhs == "in place" else n_tiles * self.rhs_panel
        sums = ((m_tiles * n_tiles if self.cut else 1) + self.swap) * self.mr * self.nr + self.lanes
        line = 64 * 8 // ELEMENT_BITS[self.element]
        spare = self.lanes * (max(self.kb, self.nr) + 2 * self.lanes)
        return (_round_up(lhs, line), _round_up(rhs, line), _round_up(sums, line), spare)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch, 64-byte aligned, that each thread brings to ``emit_task``."""
        return sum(self.areas()) * ELEMENT_BITS[self.element] // 8

    def grid(self, M: int, N: int) -> tuple[int, int]:
        """Blocks along m and n for known extents; their product is the number of tasks."""
        if self.swap:
            M, N = N, M
        return -(-M // self.mb), -(-N // self.nb)


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


_NOMINAL = 240  # stands in for an extent that is not known
_TASK_CYCLES = 20_000  # work below which a task is not worth a thread
_MOST_TASKS = 8
_DEPTH = {32: 384, 64: 256}  # most k in a block, by element bits: a panel of nr columns fits L1


def plan_gemm(
    M: int | None,
    N: int | None,
    K: int | None,
    element: str,
    target: GemmTarget,
    lhs: Access,
    rhs: Access,
) -> GemmPlan:
    """Choose tiles and blocks for extents (None: known at run time only) and access patterns."""
    plans = [_plan(M, N, K, element, target, lhs, rhs, False)]
    if N is not None:  # a narrow output wastes lanes unless it is computed as its transpose
        plans.append(_plan(N, M, K, element, target, rhs, lhs, True))
    return min(plans, key=lambda plan: plan.cost)


def _plan(
    M: int | None, N: int | None, K: int | None, element: str, target: GemmTarget,
    lhs: Access, rhs: Access, swap: bool,
) -> GemmPlan:
    bits = ELEMENT_BITS[element]
    lanes = target.vector_bits // bits
    depth = max(1, _NOMINAL if K is None else K)
    m, n = max(1, M or _NOMINAL), max(1, N or _NOMINAL)
    most_rows = lanes if swap else 8 if M is None else m
    mr, nv, compute = _register_tile(m, n, depth, lanes, target.registers, most_rows)
    blocks = -(-depth // _DEPTH[bits])
    kb = _DEPTH[bits] if K is None else _round_up(-(-depth // blocks), lanes)
    plan = GemmPlan(element, lanes, mr, nv, mr, nv * lanes, kb, K is None or kb < K,
                    "panels" if lhs.lanes == "free" else "rows", "panels", swap)
    if lhs.stride is not None and M is not None and _lhs_in_place(m, n, depth, plan, lhs.stride):
        plan = replace(plan, lhs="in place")
    if (rhs.stride is not None and rhs.lanes == "free" and N is not None
            and _rhs_in_place(m, n, depth, plan, rhs.stride)):
        plan = replace(plan, rhs="in place")
    return _blocks(plan, m, n, depth, compute, target, lhs, rhs)


def _register_tile(
    m: int, n: int, depth: int, lanes: int, registers: int, most_rows: int
) -> tuple[int, int, float]:
    """The tile (mr, nv) of least estimated cycles: two fma and two loads a cycle, latency four."""
    best = (float("inf"), 0, 0)
    for nv in range(1, min(8, -(-n // lanes)) + 1):
        for mr in range(1, min(registers, most_rows) + 1):
            if mr * nv + nv + (nv > 1 or registers < 32) > registers:
                break
            step = max(mr * nv / 2, (mr + nv) / 2, 4.0) + 0.1 * (nv + mr / lanes)
            tiles = -(-m // mr) * -(-n // (nv * lanes))
            best = min(best, (tiles * (depth * step + 4 * mr * nv + 20), -mr * nv, mr))
    cycles, area, mr = best
    return mr, -area // mr, cycles


def _lhs_in_place(m: int, n: int, depth: int, plan: GemmPlan, stride: int) -> bool:
    return n <= 4 * plan.nr or m * depth * ELEMENT_BITS[plan.element] <= 8 * (32 << 10)


def _rhs_in_place(m: int, n: int, depth: int, plan: GemmPlan, stride: int) -> bool:
    return m <= 4 * plan.mr or n * depth * ELEMENT_BITS[plan.element] <= 8 * (32 << 10)


def _blocks(
    plan: GemmPlan, m: int, n: int, depth: int, compute: float, target: GemmTarget,
    lhs: Access, rhs: Access,
) -> GemmPlan:
    """Cut the output into tasks so that packing twice and uneven shares cost least."""
    size = ELEMENT_BITS[plan.element] // 8
    price = {"free": 1.5 / plan.lanes, "k": 1.5 / plan.lanes, None: 3.0}
    lhs_cost = 0.0 if plan.lhs == "in place" else price[lhs.lanes] * m * depth
    rhs_cost = 0.0 if plan.rhs == "in place" else price[rhs.lanes] * n * depth
    if rhs.lanes == "k":
        rhs_cost += 0.3 * n * depth
    wanted = max(1, min(_MOST_TASKS, int((compute + rhs_cost) / _TASK_CYCLES)))
    m_tiles, n_tiles = -(-m // plan.mr), -(-n // plan.nr)
    most_m = max(1, target.l2 // 2 // (size * plan.kb * plan.mr))
    most_n = max(1, target.l2 // (size * plan.kb * plan.nr))
    choices = []
    for m_blocks in _cuts(m_tiles, most_m):
        for n_blocks in _cuts(n_tiles, most_n):
            tasks = m_blocks * n_blocks
            mt, nt = -(-m_tiles // m_blocks), -(-n_tiles // n_blocks)
            share = compute * mt * nt / (m_tiles * n_tiles)
            cycles = tasks * (share + lhs_cost / m_blocks + rhs_cost / n_blocks + 200.0)
            choices.append((max(0, wanted - tasks), cycles, mt, nt))
    _, cycles, mt, nt = min(choices)
    return replace(plan, mb=mt * plan.mr, nb=nt * plan.nr, cost=cycles)


def _cuts(tiles: int, most: int) -> list[int]:
    """Numbers of blocks worth trying, each of at most ``most`` tiles."""
    fewest = -(-tiles // most)
    return list(range(fewest, min(tiles, fewest + _MOST_TASKS) + 1))
