"""How a contraction is blocked: which axes are its rows and columns, and in what tiles.

Of a side with several axes the largest is tiled and the others are walked one index at a time, or
the last of them are one:

    y[b, o, i, k] of images of 7 x 7:   7 columns k, packed anew for each b and i
                                        49 columns i_k, or 49 * b columns b_i_k

It is what is estimated to take the least time. What a task packs again, vectors that tiles do not
fill and results that are stored in pieces speak for one choice or another.
"""

from __future__ import annotations

from math import prod

from ...ir.indices.index import Dim, symbols_of
from ...ir.indices.runs import WHOLE
from ...ir.indices.walk import evaluate
from ...ir.kernels.kernel import Contract, Kernel
from ...ir.machine import Machine
from ...ir.record import replace
from ..kernel.axes.sides import Grouping, extent_of, groupings
from .access import operand_access
from .gemm_plan import plan_gemm
from .runs import stored_run

NOMINAL = 8    # stands in for an extent that is known at run time only, such as a batch
MANY = 16      # rows that fill register tiles
STREAM = 0.03  # cycles for a byte of an operand that each task reads from beyond its caches
TURN = 0.6     # cycles for an element that is turned in registers of 256 bits, not 512
PIECE = 12.0   # cycles for the part of a vector of results that lies in one run


def tile_contract(kernel: Kernel, target: Machine) -> Kernel:
    """The kernel of one contraction and what follows it, in tasks of blocks of its result."""
    grouping = min(groupings(kernel), key=lambda grouping: _cost(grouping, target))
    kernel = grouping.kernel
    first = _first_product(kernel)
    stmt = _tiled(grouping, target)
    plan = stmt.tiling
    assert plan is not None
    mb, nb = plan.block
    order = {plan.columns: 1, plan.rows: 2} if plan.swap else {plan.rows: 1, plan.columns: 2}
    blocks = {plan.rows: mb, plan.columns: nb, stmt.axis: plan.kb}
    axes = sorted((replace(axis, block=blocks.get(axis.name, 1)) for axis in kernel.axes),
                  key=lambda axis: (axis.name == stmt.axis, order.get(axis.name, 0)))
    body = tuple(stmt if old is first else old for old in kernel.body)
    return replace(kernel, axes=tuple(axes), body=body)


def tiled(
    kernel: Kernel, stmt: Contract, sides: tuple[str, str], target: Machine,
    extents: tuple[int | None, int | None], whole: bool = False,
) -> Contract:
    """A contraction with its blocking; ``extents`` are those of its rows and columns, as far as
    they are known. ``whole``: a task has all of them."""
    m, n = sides
    depth = kernel.axis(stmt.axis).extent
    accesses = (operand_access(kernel, stmt.lhs, m, stmt.axis),
                operand_access(kernel, stmt.rhs, n, stmt.axis))
    plan = plan_gemm(*extents, depth if isinstance(depth, int) else None, stmt.dtype,
                     target,
                     *accesses, whole, (isinstance(kernel.axis(m).extent, int),
                                        isinstance(kernel.axis(n).extent, int)), stmt.chunk,
                     _products(kernel, {m, n, stmt.axis}))
    lhs, rhs = ({"free": free, "k": stmt.axis}.get(access.lanes or "", "")
                for free, access in zip(sides, accesses, strict=True))
    if plan.swap:
        lhs, rhs = rhs, lhs
    return replace(stmt, tiling=replace(plan, rows=m, columns=n, lhs_along=lhs, rhs_along=rhs))


def _products(kernel: Kernel, own: set[str]) -> int:
    """How many products a kernel has that are tasks beside each other."""
    return prod(_estimate(axis.extent, NOMINAL) for axis in kernel.axes
                if axis.kind == "par" and axis.name not in own) or 1


def _tiled(grouping: Grouping, target: Machine) -> Contract:
    """The contraction with its operands in the order that lets vectors of the result be stored."""
    kernel, (m, n) = grouping.kernel, grouping.sides
    stmt = _first_product(kernel)
    if stored_run(kernel, m) > stored_run(kernel, n):
        m, n, stmt = n, m, replace(stmt, lhs=stmt.rhs, rhs=stmt.lhs)

    def extent(name: str) -> int | None:
        size = kernel.axis(name).extent
        if isinstance(size, int) or _estimate(size, 1) < MANY:
            return size if isinstance(size, int) else None
        return _estimate(size, NOMINAL)  # pixels: many, of however few images

    return tiled(kernel, stmt, (m, n), target, (extent(m), extent(n)))


def _first_product(kernel: Kernel) -> Contract:
    return next(stmt for stmt in kernel.body if isinstance(stmt, Contract))


def _estimate(extent: Dim, size: int) -> int:
    """An extent where each unknown size is ``size``."""
    return evaluate(extent, dict.fromkeys(symbols_of(extent), size))


def _cost(grouping: Grouping, target: Machine) -> float:
    """Estimated cycles of a kernel whose unknown extents are taken to be ``NOMINAL``."""
    kernel = replace(grouping.kernel, axes=tuple(
        replace(axis, extent=_estimate(axis.extent, NOMINAL)) for axis in grouping.kernel.axes))
    stmt = _tiled(replace(grouping, kernel=kernel), target)
    plan = stmt.tiling
    assert plan is not None
    size = {axis.name: extent_of(kernel, axis.name) for axis in kernel.axes}
    rounds = prod(extent for name, extent in size.items()
                  if name not in (plan.rows, plan.columns, stmt.axis))
    ways = (plan.rhs, plan.lhs) if plan.swap else (plan.lhs, plan.rhs)
    again = sum(size[side] for side, way in zip((plan.rows, plan.columns), ways, strict=True)
                if way in ("in_place", "turned")) * size[stmt.axis] * stmt.dtype.itemsize
    turned = (size[plan.rows if plan.swap else plan.columns] * size[stmt.axis]
              * (512 // target.vector_bits - 1) if plan.rhs == "turned" else 0)
    run = stored_run(kernel, plan.columns)
    pieces = 0.0 if run == WHOLE else 1 + plan.lanes / run if run else plan.lanes
    vectors = size[plan.rows] * size[plan.columns] / plan.lanes
    return rounds * (plan.cost + STREAM * again + TURN * turned + PIECE * vectors * pieces)
