"""How a contraction is cut into tasks, blocks and register tiles: a pure function of its shape.

    the output, in tasks of mb x nb       a register tile: mr x nv vectors of sums
    +------+------+------+                         b[k]  |########|########|
    |  nb  |      |      |                a[0, k] #      |        |        |
    |mb    |      |      |                a[1, k] #      |  += a[i, k] * b[k, j...]
    +------+------+------+                a[2, k] #      |        |        |
    |      |      |      |
    +------+------+------+                kb steps of k, then on to the next block of k

For kb steps nr columns of b stay in L1 and mb rows of a in L2. The choice never asks for the number
of threads: it is the best one for one to eight of them, as many as the work is worth. Cycles are
those of one core with two vector fma and a load a cycle; only their ratios matter.
"""

from __future__ import annotations

import itertools
import math
from typing import Literal

from ...ir.kernels.tiling import Tiling, room_of_line, round_up
from ...ir.kernels.workspace import MAX_LEVELS, levels_of
from ...ir.machine import Machine
from ...ir.record import record, replace
from ...ir.types import DType

_NOMINAL = 240  # stands in for an extent that is known at run time only
_MOST_TASKS = 8
_THREADS = (1, 2, 4, 8)  # for the geometric mean of whose times tasks are cut
_ELEMENT, _RUN = 3.0, 4.0  # cycles to pack one element by itself, and to begin a run
_UNEVEN = 8.0  # cycles for a row of a tile that may not have all columns
_TASK_COST = 200.0  # cycles to start a task
_SAME_SET = 4096  # rows this many bytes apart, or a multiple, compete for the same cache lines
_ROWS_IN_SET = 4  # that a tile may read there side by side: panels of rhs need the others' places
_ROWS_IN_L2 = 64  # of a block, at such distances
_CROWDED = 1.3  # times the cycles of a product that reads such rows from L2
_STREAM = 0.06  # cycles for a byte of an operand that a task reads from beyond its caches
_LINE = 64      # bytes that come with a piece of a row
_FAR = 0.05  # cycles for a byte of lhs or of waiting sums, which come from L2
_LOAD = 0.9  # cycles for a load from L1
# Those of 256 bits, of which two come at once, are read ahead in time.
_FAR_256, _LOAD_256 = 0.02, 0.55
_FEW, _FEWEST = 8, 2  # tiles that read an element in place wherever it lies, if crowded
_TURNED_ROWS = 8
_LONGEST_LINE = 1 << 16  # elements; rows that lie further apart are not copied as they lie


AVX512 = Machine("cpu", "avx512", vector_bits=512, registers=32, l1=48 << 10)
AVX2 = Machine("cpu", "avx2", vector_bits=256, registers=16)
NEON = Machine("cpu", "neon", vector_bits=128, registers=32, l1=64 << 10)


@record(frozen=True)
class Access:
    """How one operand lies in memory, seen along its free axis (m of lhs, n of rhs) and k."""

    lanes: Literal["free", "k"] | None = None  # the axis that is cheap to read as a vector
    stride: int | None = None  # a plain array: elements between neighbours on the other axis
    run: int = 0  # elements of that axis that are read as vectors before a jump; 0: all


def plan_gemm(
    M: int | None,
    N: int | None,
    K: int | None,
    dtype: DType,
    target: Machine,
    lhs: Access,
    rhs: Access,
    whole: bool = False,
    sure: tuple[bool, bool] | None = None,
    chunk: int = 0,
    times: int = 1,
) -> Tiling:
    """Choose tiles and blocks for extents (None: known at run time only) and access patterns;
    ``chunk``: of the sums, if they may have a second one; ``whole``: one task for all of it, in
    one block or as few as sums that wait for k allow; ``times``: so many such products are tasks
    beside each other. An extent that is not ``sure`` may turn
    out to be less; by default those that are known are."""
    m, n = (M is not None, N is not None) if sure is None else sure
    plans = [_plan(M, N, K, dtype, target, lhs, rhs, False, whole, m, n, chunk, times)]
    if N is not None:  # a narrow output wastes lanes unless its transpose is computed
        plans.append(_plan(N, M, K, dtype, target, rhs, lhs, True, whole, n, m, chunk,
                           times))
    return min(plans, key=lambda plan: plan.cost * (1.05 if plan.swap else 1.0))


def _plan(
    M: int | None, N: int | None, K: int | None, dtype: DType, target: Machine,
    lhs: Access, rhs: Access, swap: bool, whole: bool, sure_m: bool, sure_n: bool, chunk: int,
    times: int,
) -> Tiling:
    size = dtype.itemsize
    lanes = target.vector_bits // 8 // size
    depth = max(1, _NOMINAL if K is None else K)
    # Batches are often small where they are symbolic, and a swapped tile is turned in registers.
    most_rows = lanes if swap else 8 if M is None else max(1, M)
    turned = _turned_tile(M, N, rhs, size, lanes, most_rows)
    if not sure_n and not _copies(rhs, K):
        turned = None
    if turned is not None:
        (mr, nv), compute = turned, 0.3 * (N or _NOMINAL) * depth
    else:
        mr, nv, compute = _register_tile(M, N, depth, lanes, size, target, most_rows)
    if swap:
        compute += 0.3 * lanes / mr * (M or _NOMINAL) * (N or _NOMINAL)
    nr = nv * lanes
    kb = _most_depth(nr, lanes, size, target)
    if K is not None or chunk:  # blocks of equal depth
        longest = min(depth, chunk) if chunk and K is not None else chunk or depth
        kb = round_up(-(-longest // -(-longest // kb)), lanes)
    packed: Literal["rows", "panels", "lines"] = "panels" if lhs.lanes == "free" else "rows"
    if lhs.lanes == "free" and lhs.run:
        packed = "lines"
    plan = Tiling(dtype, lanes, mr, nv, mr, nr, kb, K is None or kb < K,
                    packed, "panels", kb + lanes if packed == "rows" else 0, swap=swap,
                    waits=_waits(K, chunk))
    if _in_place(lhs, size, mr, M or _NOMINAL, N, nr) and (sure_m or _copies(lhs, K)):
        plan = replace(plan, lhs="in_place", lhs_line=0 if sure_m else lhs.stride or 0)
        compute *= _CROWDED if _crowded(lhs, size, mr, M or _NOMINAL) else 1.0
    if rhs.lanes == "free" and sure_n and _in_place(rhs, size, nr, N or _NOMINAL, M, mr):
        plan = replace(plan, rhs="in_place")
    if plan.rhs == "panels" and rhs.lanes == "free" and (
            2 * size * (N or _NOMINAL) * depth > target.l2):
        plan = replace(plan, rhs="block")
    if rhs.lanes == "free" and rhs.run:
        plan = replace(plan, rhs="lines")
    if turned is not None:
        plan = replace(plan, rhs="turned", rhs_line=0 if sure_n else rhs.stride or 0)
    return _blocks(plan, M, N, depth, compute, target, lhs, rhs, whole, times)


def _waits(K: int | None, chunk: int) -> int:
    """The sums of how many chunks may wait for others."""
    if not chunk:
        return 0
    return MAX_LEVELS if K is None else levels_of(-(-K // chunk))


def _in_place(
    access: Access, size: int, width: int, rows: int, uses: int | None, tile: int,
) -> bool:
    """Whether a plain array is read where it lies: where few tiles read each element, else along k
    if it is not crowded. What is read along the other axis pays for packing: each step of k is on a
    page of its own, and vectors that do not begin with a cache line are read from two of them.
    """
    if access.stride is None:
        return False
    crowded = _crowded(access, size, width, rows)
    if uses is not None and uses <= (_FEWEST if crowded else _FEW) * tile:
        return True
    return not crowded and (uses is None or access.lanes == "k")


def _crowded(access: Access, size: int, width: int, rows: int) -> bool:
    """Whether an array that is read where it lies shares its places in L1 with too much else, as
    rows a power of two apart do, or in L2 with other ``rows`` of its block.

    Each step of k reads one element of ``width`` rows along k, or ``width`` of the next row.
    """
    assert access.stride is not None
    shared = math.gcd(access.stride * size, _SAME_SET)
    if access.lanes == "k":
        return width * shared > _ROWS_IN_SET * _SAME_SET or (
            shared == _SAME_SET and rows > _ROWS_IN_L2)
    return shared > 4 * width * size


def _copies(access: Access, K: int | None) -> bool:
    """Whether rows that do not fill a tile can be copied as they lie: apart, and not far apart."""
    stride = access.stride
    return (access.lanes == "k" and stride is not None and K is not None
            and K <= stride <= _LONGEST_LINE)


def _turned_tile(
    M: int | None, N: int | None, rhs: Access, size: int, lanes: int, most_rows: int
) -> tuple[int, int] | None:
    """The tile of a product that uses each vector of rhs too seldom to pay for packing it."""
    if rhs.lanes != "k" or rhs.stride is None or M is None:
        return None
    if not 1 <= M <= min(_TURNED_ROWS, most_rows):
        return None
    if N is not None and lanes > N:
        return None
    few = N is not None and 2 * lanes > N
    return M, 1 if few or rhs.stride * size % _SAME_SET == 0 else 2


def _most_depth(nr: int, lanes: int, size: int, target: Machine) -> int:
    """Steps of k whose panel of rhs stays in L1 beside a tile's rows of lhs."""
    room = target.l1 * 3 // 4 if target.vector_bits > 256 else target.l1 // 2
    return max(lanes, room // (nr * size) // lanes * lanes)


def _register_tile(
    M: int | None, N: int | None, depth: int, lanes: int, size: int, target: Machine,
    most_rows: int,
) -> tuple[int, int, float]:
    """The tile (mr, nv) of least estimated cycles for the whole product, and these cycles.

    What comes from L2 decides between tiles that are alike in registers: each element of lhs that
    is read there is used nr times, and a wide panel, of which L1 holds less of k, has its sums wait
    more often.
    """
    registers, wide = target.registers, target.vector_bits > 256
    load, byte = (_LOAD, _FAR) if wide else (_LOAD_256, _FAR_256)
    far = (_NOMINAL if M is None else M) * depth * size > target.l1 // 4
    best = (float("inf"), 0, 0)
    for nv in range(1, 17):
        waits = -(-depth // _most_depth(nv * lanes, lanes, size, target)) - 1
        # LLVM reads ahead: without room for it, sums move from register to register.
        ahead = 1 if registers < 32 else 0 if nv == 1 else 3
        for mr in range(1, min(registers, most_rows) + 1):
            # Sums stay in registers, and so does what a step of k uses more than once.
            if mr * nv + (nv if mr > 1 else 1) + ahead > registers:
                break
            m_tiles = _NOMINAL / mr if M is None else -(-max(1, M) // mr)
            n_tiles = _NOMINAL / (nv * lanes) if N is None else -(-max(1, N) // (nv * lanes))
            # Two fma a cycle, loads, their latency, and data that comes from beyond L1.
            step = max(mr * nv / 2, load * (mr + nv), 6.0) + 0.1 * (nv + mr / lanes)
            step += byte * size * mr * far
            wait = 2 * _FAR * size * lanes * waits
            ends = 0.0 if N is not None and N % (nv * lanes) == 0 else _UNEVEN * mr
            cycles = m_tiles * n_tiles * (depth * step + (4 + wait) * mr * nv + 20 + ends)
            best = min(best, (cycles, -mr, nv))
    cycles, mr, nv = best
    return -mr, nv, cycles


def _blocks(
    plan: Tiling, M: int | None, N: int | None, depth: int, compute: float, target: Machine,
    lhs: Access, rhs: Access, whole: bool, products: int,
) -> Tiling:
    """Cut the output into tasks so that packing twice and uneven shares cost least."""
    size = plan.dtype.itemsize
    m, n = max(1, _NOMINAL if M is None else M), max(1, _NOMINAL if N is None else N)
    lhs_cost = rhs_cost = 0.0
    if plan.lhs != "in_place":
        vectors = plan.pr / plan.mr if plan.lhs == "panels" else 1.0  # are stored whole
        lhs_cost = m * depth * _element_cost(lhs, 0.065 * size * vectors)
    if plan.rhs in ("panels", "block", "lines"):
        rhs_cost = n * depth * _element_cost(rhs, (0.16 if rhs.lanes == "k" else 0.08) * size)
    # What each task reads is counted where it does not stay in L2.
    lhs_far, rhs_far = (_STREAM * size * side * depth * (2 * size * side * depth > target.l2)
                        for side in (m, n))
    lhs_piece, rhs_piece = (
        _STREAM * _LINE * depth * (access.lanes == "free" and far > 0)
        for access, far in ((lhs, lhs_far), (rhs, rhs_far)))
    m_tiles, n_tiles = -(-m // plan.mr), -(-n // plan.nr)
    room = target.l2 if plan.lhs == "in_place" else target.l2 // 2  # packed, it is to stay there
    most_m = max(1, room // (size * plan.kb * plan.mr))
    most_n = n_tiles
    if plan.cut:  # waiting sums are read and written for each block of k
        if N is None:
            most_m = max(1, min(most_m, target.l2 // (size * n_tiles * plan.mr * plan.nr)))
        most_n = max(1, target.l2 // (size * min(most_m, m_tiles) * plan.mr * plan.nr))
    if plan.rhs in ("block", "lines"):
        part = 4 if plan.rhs == "block" else 2
        most_n = min(most_n, max(1, target.l2 // part // (size * plan.kb * plan.nr)))
    wake = target.speed.cycles(target.speed.wake)  # less work is not worth a thread
    wanted = max(1, min(_MOST_TASKS, int(products * (compute + rhs_cost) / wake)))
    m_cuts = _cuts(m_tiles, most_m) if M is not None or N is not None else range(2, 3)
    n_cuts = _cuts(n_tiles, most_n) if N is not None else range(1, 2)
    if whole:  # one block, but for sums that would wait beyond L2
        known = plan.cut and M is not None and N is not None
        m_cuts, n_cuts = (cuts[:1] if known else range(1, 2) for cuts in (m_cuts, n_cuts))
    choices = []
    for m_blocks, n_blocks in itertools.product(m_cuts, n_cuts):
        tasks = m_blocks * n_blocks
        mt, nt = -(-m_tiles // m_blocks), -(-n_tiles // n_blocks)
        share = compute * mt * nt / (m_tiles * n_tiles)
        lhs_part = (lhs_cost + lhs_far) / m_blocks + lhs_piece
        rhs_part = (rhs_cost + rhs_far) / n_blocks + rhs_piece
        cycles = tasks * (share + lhs_part + rhs_part + _TASK_COST)
        # Of one and of more threads, as many as the work is worth.
        times = [-(-tasks * products // threads) / products
                 for threads in _THREADS if threads <= wanted]
        choices.append((math.prod(times) ** (1 / len(times)) / tasks * cycles, cycles, mt, nt))
    _, cycles, mt, nt = min(choices)
    plan = replace(plan, mb=mt * plan.mr, nb=nt * plan.nr, cost=cycles)
    if plan.rhs == "block" and nt > most_n:
        plan = replace(plan, rhs="panels")
    if plan.lhs == "lines":
        plan = replace(plan, lhs_line=_line(plan.mb, lhs.run, plan.lanes, size))
    if plan.rhs == "lines":
        plan = replace(plan, rhs_line=_line(plan.nb, rhs.run, plan.lanes, size))
    return plan


def _line(width: int, run: int, lanes: int, size: int) -> int:
    """Elements from one packed line to the next, with room for what is stored beyond it: an odd
    number of cache lines, so that a tile's part of all of them lies in different sets."""
    return (-(-(width + room_of_line(run, lanes)) * size // 64) | 1) * 64 // size


def _element_cost(access: Access, vector: float) -> float:
    """Cycles to pack an element, by vectors where it can be."""
    if access.lanes is None:
        return _ELEMENT
    return vector + _RUN / access.run if access.run else vector


def _cuts(tiles: int, most: int) -> range:
    """Numbers of blocks worth trying, each of at most ``most`` tiles."""
    fewest = -(-tiles // most)
    return range(fewest, min(tiles, fewest + _MOST_TASKS) + 1)
