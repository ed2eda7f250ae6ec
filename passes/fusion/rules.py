"""What may be computed in a region beside what is there: one rule for each kind of node.

A join must leave axes that are separate tasks, and keep what a task holds of its rows small.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ...ir.cost.limits import FAR, MIDDLE, NEAR, PASS, SPREAD
from ...ir.graph import Node, Value, constant_of
from ...ir.indices.index import Dim, product
from ...ir.indices.space import Index, is_chain, own_dims
from ...ir.ops.axes.reduce import contract_letters, contract_places
from ...ir.ops.op import Kind
from ...ir.plans.stack import SCRATCH_BYTES
from .nesting import SHORT, loops_nest, sums_of
from .region import Region, axes_of, in_order, runs_of

MANY = 128   # rows that make several tasks
# Rows of a product that a task keeps with others of its block. A block of long ones lies beyond the
# caches and reads the operands from there: it takes many rows to be faster than a product that is
# stored, or a product that is too large to store.
ROW_BYTES = NEAR
LONG_ROW_BYTES, LONG_ROWS = MIDDLE, 1024
HUGE_ROW_BYTES, HUGE = 4 << 20, 1 << 30
GPU_ROW_BYTES = 1 << 10  # of a row beside a product on a GPU, of which a program holds a block
KEPT_BYTES = SCRATCH_BYTES * 3 // 4  # of all values that there are of one row


def admits(region: Region, node: Node, own: Sequence[Dim | None]) -> bool:
    """Whether a node that reads a region in place may be computed there: the rule of its kind."""
    rule = _RULES.get(node.op.kind)
    return rule is not None and rule(region, node, own)


def goes_one_by_one(region: Region) -> bool:
    """Whether a region carries something along its rows, one element after the other."""
    reduced = {axis for run in region.reduced for axis in run}
    return Kind.SCAN in region.kinds and not reduced.isdisjoint(list(region.axes)[-1:])


def is_wide(region: Region) -> bool:
    """Whether something of a region is worth being computed in vectors, apart from such rows."""
    return any(node.op.kind is Kind.MAP and node.op.cost >= PASS for node in region.nodes)


def _map_fits(region: Region, node: Node, own: Sequence[Dim | None]) -> bool:
    """Wherever a value of the region is: in full, or where axes have been reduced."""
    index = _closed(own)
    if node.op.cost >= PASS and goes_one_by_one(region):
        return False
    if index is None or not in_order([str(dim) for dim in index if dim != 0], region):
        return False
    axes = axes_of(index)
    return axes >= region.par and axes in region.spaces


def _reduce_fits(region: Region, node: Node, own: Sequence[Dim | None]) -> bool:
    """Over what the region reduces already, or the first; after another one if that is short, so
    that it will be unrolled, or if a row of its sums can be kept; after a contraction if a block of
    its rows can be. Always in loops that are inside of each other for all sums."""
    index = _closed(own)
    if index is None or axes_of(index) not in region.spaces or not in_order(
            [str(dim) for dim in index if dim != 0], region):
        return False
    runs = runs_of(node, index)
    if Kind.SCAN in region.kinds and runs != region.reduced:
        return False  # a loop in another one would begin anew what that carries
    if not loops_nest(region.axes, [*sums_of(region), (runs, axes_of(index))]):
        return False
    if runs == region.reduced:
        return bool(runs) or Kind.CONTRACT not in region.kinds
    if not runs:
        return Kind.CONTRACT not in region.kinds
    axes = {axis for run in runs for axis in run}
    if Kind.CONTRACT in region.kinds:
        return not region.reduced and _is_of_products(region, node) and (
            _rows_can_be_kept(region, node, axes))
    done = {axis for run in region.reduced if run not in runs for axis in run}
    if not done:
        return True
    short = product(region.axes[axis] for axis in done)
    rest = product(region.axes[axis] for axis in region.par - axes)
    return (done.isdisjoint(axes) and _tasks_suffice(region, node, rest)
            and ((isinstance(short, int) and short <= SHORT) or _sums_can_be_kept(
                region, node, axes)))


def _is_of_products(region: Region, node: Node) -> bool:
    """Whether a node reads what a contraction of the region gives: rows of that are kept."""
    inside = {id(each) for each in region.nodes}
    todo, seen = list(node.inputs), set[int]()
    while todo:
        source = todo.pop().node
        if source is None or id(source) not in inside or id(source) in seen:
            continue
        if source.op.kind is Kind.CONTRACT:
            return True
        seen.add(id(source))
        todo += source.inputs
    return False


def _sums_can_be_kept(region: Region, node: Node, axes: set[str]) -> bool:
    """Whether a task can hold a row of sums that something is reduced along, as of the distances
    to all centres: one of several rows, and of known length."""
    length = product(region.axes[axis] for axis in axes)
    return bool(region.par - axes) and isinstance(length, int) and (
        length * node.inputs[0].dtype.itemsize <= ROW_BYTES)


def _scan_fits(region: Region, node: Node, own: Sequence[Dim | None]) -> bool:
    """Along the axis that the region reduces or carries along, or the first; where it has all of
    its axes."""
    index = _closed(own)
    if index is None or ((str(index[-1]),) in runs_of(node, index) and is_wide(region)):
        return False
    return (axes_of(index) == region.axes.keys()
            and axes_of(index) in region.spaces and Kind.CONTRACT not in region.kinds
            and in_order([str(dim) for dim in index if dim != 0], region)
            and region.reduced in ((), runs_of(node, index)))


def _tasks_suffice(region: Region, node: Node, rows: Dim) -> bool:
    """Whether rows make several tasks, or all that is to be done is little."""
    steps = [product(own_dims(inner)) for inner in (*region.nodes, node)]
    return not isinstance(rows, int) or rows >= MANY or all(
        isinstance(size, int) and size <= SPREAD for size in steps)


def _rows_can_be_kept(region: Region, node: Node, axes: set[str]) -> bool:
    """Whether a task can hold rows of a product that something is reduced along: the last axes,
    short enough, of a product with rows enough for several tasks."""
    return (_are_kept(region, node, axes)
            and list(region.axes)[-len(axes):] == [a for a in region.axes if a in axes]
            and len(region.axes) > len(axes) and axes <= region.columns
            and all(map(_has_sides, (each for each in region.nodes
                                     if each.op.kind is Kind.CONTRACT))))


def _has_sides(node: Node) -> bool:
    """Whether the rows of a product differ, and its columns: those of a repeated operand are no
    tasks of their own."""
    left, right, _ = contract_letters(node.attrs["dims"])
    one, two = ({letters[at] for at in _varying(value)}
                for letters, value in zip((left, right), node.inputs, strict=True))
    return (not one <= set(right) and not two <= set(left)
            and not {*left, *right}.difference(one, two))


def _varying(value: Value, steps: int = 8) -> set[int]:
    """The axes along which a value may change, seen through what repeats one of fewer axes."""
    node, everything = value.node, set(range(value.type.rank))
    if constant_of(value) is not None:
        return set()
    if node is None or not steps:
        return everything
    if node.op.kind is Kind.MAP:
        return set[int]().union(*(_varying(each, steps - 1) for each in node.inputs))
    if node.op.kind is Kind.VIEW and isinstance(axes := node.attrs.get("axes"), tuple) and (
            "shape" in node.attrs):
        return {axes[at] for at in _varying(node.inputs[0], steps - 1)}
    return everything


def _are_kept(region: Region, node: Node, axes: Collection[str]) -> bool:
    """Whether there are enough rows for their length: of unknown many, short ones are kept."""
    length = product(region.axes[axis] for axis in axes)
    rows = product(extent for axis, extent in region.axes.items()
                   if axis in region.product and axis not in axes)
    if not isinstance(length, int) or len(region.nodes) >= room(region, axes):
        return False
    size = length * node.inputs[0].dtype.itemsize
    if node.device is not None and node.device.kind == "gpu" and size > GPU_ROW_BYTES:
        return False
    if size <= ROW_BYTES:
        return _tasks_suffice(region, node, rows)
    return isinstance(rows, int) and (
        (size <= LONG_ROW_BYTES and rows >= LONG_ROWS)
        or (size <= HUGE_ROW_BYTES and rows * size >= HUGE))


def _contract_fits(region: Region, node: Node, own: Sequence[Dim | None]) -> bool:
    """Of rows that are kept, over the axis along which they were reduced, with new columns; or of
    a product so large that all else is little beside it."""
    if Kind.CONTRACT not in region.kinds or not is_chain(node) or not _has_sides(node):
        return False
    kept = contract_places(node.attrs["dims"])[2]
    summed = [str(dim) for at, dim in enumerate(own) if at not in kept and dim != 0]
    columns = [at for at in kept if own[at] is None]
    rows = {str(own[at]) for at in kept if own[at] not in (None, 0)}
    if len(columns) != 1 or not isinstance(own_dims(node)[columns[0]], int):
        return False
    if region.reduced:
        return summed == [axis for run in region.reduced for axis in run] and rows == region.par
    return (len(summed) == 1 and rows == region.product - set(summed)
            and is_large(region, node) and _are_kept(region, node, summed))


def room(region: Region, axes: Collection[str] | None = None) -> int:
    """Nodes that a region may have with rows along some axes, by default those that it reduces: of
    long rows a task can keep the values of but a few."""
    axes = [axis for run in region.reduced for axis in run] if axes is None else axes
    size = product(region.axes[axis] for axis in axes)
    if Kind.CONTRACT not in region.kinds or not axes or not isinstance(size, int):
        return KEPT_BYTES
    widest = max(value.dtype.itemsize for node in region.nodes for value in node.results)
    return KEPT_BYTES // max(1, size * widest)


def is_large(region: Region, node: Node) -> bool:
    """Whether each product of a region is more than caches hold, and all of them are several times
    what it reads from outside and what ``node`` makes of them: memory would be the limit."""
    whole = product(region.axes[axis] for axis in region.product)
    others = [*region.outside, *node.inputs, *node.results]
    small = {id(value): value.type.size for value in others if value.type.size != whole}
    total = sum(size for size in small.values() if isinstance(size, int))
    return (isinstance(whole, int) and len(small) == sum(isinstance(n, int) for n in small.values())
            and exceeds_caches(region, node.inputs[0].dtype.itemsize) and whole >= 2 * total)


def exceeds_caches(region: Region, itemsize: int) -> bool:
    """Whether one product of a region, of perhaps many, is more than caches hold."""
    elements = product(region.axes[axis] for axis in region.product - region.batch)
    return isinstance(elements, int) and elements * itemsize >= FAR


def _closed(own: Sequence[Dim | None]) -> Index | None:
    return None if any(dim is None for dim in own) else tuple(dim or 0 for dim in own)


def _gather_fits(region: Region, node: Node, own: Sequence[Dim | None]) -> bool:
    """From an array around the region, wherever its indices are; from a value of the region, along
    the axis that it reduces: a maximum over the one hit."""
    if len(own) == node.results[0].type.rank:
        return _map_fits(region, node, own)
    index = _closed(own)
    return (index is not None and (str(index[-1]),) in region.reduced
            and axes_of(index[:-1]) in region.spaces and axes_of(index[:-1]) >= region.par
            and str(index[-1]) not in axes_of(index[:-1]))


_RULES: Mapping[Kind, Callable[[Region, Node, Sequence[Dim | None]], bool]] = {
    Kind.MAP: _map_fits, Kind.REDUCE: _reduce_fits, Kind.CONTRACT: _contract_fits,
    Kind.GATHER: _gather_fits, Kind.SCAN: _scan_fits, Kind.SEARCH: _map_fits,
}


def fits(wide: Region, narrow: Region, names: Mapping[str, str]) -> bool:
    """Whether a region may be computed in the space of another: elementwise ones wherever the
    other has values, reductions over the same axes."""
    if wide.alone or narrow.alone or any(
            goes_one_by_one(one) and is_wide(other) for one, other in ((wide, narrow),
                                                                       (narrow, wide))):
        return False
    axes = frozenset(names.values())
    if Kind.CONTRACT in narrow.kinds:
        return _products_fit(wide, narrow, names)
    if narrow.plain:
        return axes >= wide.par and (wide.plain or any(
            axes == axes_of(at) for at in (*wide.own.values(), *wide.index.values())))
    reduced = tuple(tuple(names[axis] for axis in run) for run in narrow.reduced)
    return reduced == wide.reduced and axes == wide.axes.keys() and (
        Kind.CONTRACT not in wide.kinds) and loops_nest(
            wide.axes, [*sums_of(wide), *sums_of(narrow, names)])


def _products_fit(wide: Region, narrow: Region, names: Mapping[str, str]) -> bool:
    """Products of one shape, of which rows are kept anyway or which are too large to store."""
    axes = frozenset(names[axis] for axis in narrow.product)
    if not axes or axes != wide.product or frozenset(names.values()) != axes:
        return False
    reduced = tuple(tuple(names[axis] for axis in run) for run in narrow.reduced)
    if reduced not in ((), wide.reduced) or not all(
            _has_sides(node) for node in narrow.nodes if node.op.kind is Kind.CONTRACT):
        return False
    return bool(wide.reduced) or is_large(wide, wide.nodes[0])
