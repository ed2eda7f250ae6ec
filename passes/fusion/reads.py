"""What nodes read, seen through the views in between: at which index, and whether always."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations

from ...ir.graph import Graph, Node, Value
from ...ir.indices.affine import coefficient
from ...ir.indices.index import Dim, bounds, product, row_major, symbol, symbols_of
from ...ir.indices.space import (
    Index,
    is_transparent,
    natural,
    operand_index,
    operand_place,
    own_dims,
    searched_axis,
)
from ...ir.ops.op import Kind
from ...ir.record import record

SEARCHED = "@search"  # the axis along which a gather looks for its element
DEPTH = 128  # views that a reader repeats
MOST_DIMS = 4   # whose orders are tried
EDGED = 1024  # elements from which on what has edges is stored for windows


@record(frozen=True)
class Use:
    """A value that an operand reaches through views, and the index at which it is read."""

    value: Value
    index: Index
    exact: bool  # False: under a condition (pad, concatenate) or at a computed index


def sources(value: Value, index: Index, opaque: set[int]) -> Iterator[Use]:
    """The values that ``value`` at ``index`` reads, seen through views that are not opaque;
    constants have none."""
    pending = [Use(value, index, True)]
    while pending:
        use = pending.pop()
        node = use.value.node
        if node is None or id(use.value) in opaque or not is_transparent(node):
            yield use
        else:
            pending += pieces(node, use)


def pieces(view: Node, use: Use) -> list[Use]:
    """What a view, used at an index, reads of its operands; nothing if it is a constant."""
    if view.op.view is None:
        return []
    types = tuple(operand.type for operand in view.inputs)
    found = view.op.view(use.index, types, use.value.type, **view.attrs)
    return [Use(view.inputs[piece.operand], piece.indices,
                use.exact and len(found) == 1 and not piece.conditions) for piece in found]


def operand_uses(node: Node, opaque: set[int]) -> list[Use]:
    """What a node reads, at the natural index of its own space."""
    if node.op.kind in (Kind.MAP, Kind.REDUCE, Kind.CONTRACT, Kind.SCAN):
        own = natural(own_dims(node))
        return [use for at, operand in enumerate(node.inputs)
                for use in sources(operand, operand_index(node, at, own), opaque)]
    if node.op.kind is Kind.SEARCH:  # everywhere in what is in order, for values in place
        x, values = node.inputs
        return [*(Use(use.value, use.index, False)
                  for use in sources(x, natural(x.shape), opaque)),
                *sources(values, natural(values.shape), opaque)]
    if node.op.kind is Kind.GATHER:
        return _gather_uses(node, opaque)
    return [Use(use.value, use.index, False) for operand in node.inputs
            for use in sources(operand, natural(operand.shape), opaque)]


def _gather_uses(node: Node, opaque: set[int]) -> list[Use]:
    """Indices in place, and the array anywhere; in place, if the region has the axis on which an
    element is searched."""
    x, own = node.inputs[0], natural(node.results[0].shape)
    place = None if searched_axis(node) is None else operand_place(node, (*own, symbol(SEARCHED)))
    found = [*sources(x, place, opaque)] if place is not None else [
        Use(use.value, use.index, False) for use in sources(x, natural(x.shape), opaque)]
    return found + [use for at, operand in enumerate(node.inputs) if at
                    for use in sources(operand, operand_index(node, at, own), opaque)]


def reads_whole(use: Use, extents: Mapping[str, Dim]) -> bool:
    """True if a use surely reads every element of its value, where its symbols run over
    ``extents``: each dim from end to end along an axis of its own, or all as a reshape does.

    Where something may fail, to read less than was computed would be to check less.
    """
    shape, names = use.value.shape, set[str]()
    for dim, size in zip(use.index, shape, strict=True):
        found = symbols_of(dim)
        if len(found) > 1 or not names.isdisjoint(found) or not _is_range(dim, size, extents):
            break
        names |= found
    else:
        return True
    return len(shape) <= MOST_DIMS and any(
        _is_walk(row_major((use.index[at] for at in order), (shape[at] for at in order)),
                 product(shape), extents) for order in permutations(range(len(shape))))


def _is_range(dim: Dim, size: Dim, extents: Mapping[str, Dim]) -> bool:
    """True if an index of one symbol takes all values below ``size``, with a slope of 1 or -1."""
    if dim == 0:
        return size == 1
    if extents.get(str(dim)) == size:
        return True
    slope = coefficient(dim, min(symbols_of(dim), default=""))
    low, high = bounds(dim)
    return (slope is not None and slope[0] in (1, -1) and isinstance(size, int)
            and low is not None and low <= 0 and high is not None and high >= size - 1)


def _is_walk(offset: Dim, size: Dim, extents: Mapping[str, Dim]) -> bool:
    """True if an offset runs over ``size`` elements in the order of its axes."""
    slopes = {name: coefficient(offset, name) for name in symbols_of(offset)}
    step: Dim = 1
    while slopes:
        name = next((name for name, slope in slopes.items()
                     if slope is not None and slope[0] == step), None)
        if name is None or name not in extents:
            return False
        del slopes[name]
        step = step * extents[name]
    return step == size


def opaque_values(graph: Graph) -> set[int]:
    """Views that must be memory: the bases that scatters add to, and views that to repeat in every
    reader would be more work than to store them once: of so many pieces and so deep, or with edges
    of which windows read each element many times."""
    opaque = {id(node.inputs[0]) for node in graph.nodes if node.op.kind is Kind.SCATTER}
    opaque |= _below_windows(graph)
    depth: dict[int, int] = {}
    for node in graph.nodes:
        if node.op.kind is Kind.VIEW:
            value = node.results[0]
            depth[id(value)] = 1 + sum(depth.get(id(operand), 0) for operand in node.inputs)
            if id(value) in opaque or depth[id(value)] > DEPTH:
                opaque.add(id(value))
                depth[id(value)] = 0
    return opaque


def _below_windows(graph: Graph) -> set[int]:
    """What has edges (a pad, a concatenation) and is read by windows; but by products of matrices,
    which pack what they read."""
    windows = {id(node) for node in graph.nodes if node.op.alias == "repeated" and any(
        len(symbols_of(index)) > 1 for use in _natural_uses(node) for index in use.index)}
    if not windows:
        return set()
    edged: dict[int, int] = {}   # the last view with edges, below each view
    within: dict[int, int] = {}  # that below each view of windows
    found: set[int] = set()
    for node in graph.nodes:
        if node.op.kind is not Kind.VIEW:
            found.update(within[id(value)] for value in node.inputs if id(value) in within)
        elif node.op.view is not None:
            value, uses = node.results[0], _natural_uses(node)
            if any(not use.exact for use in uses):
                if not isinstance(value.type.size, int) or value.type.size >= EDGED:
                    edged[id(value)] = id(value)
            elif len(uses) == 1:
                below = id(uses[0].value)
                if below in within or (id(node) in windows and below in edged):
                    within[id(value)] = within[below] if below in within else edged[below]
                elif below in edged:
                    edged[id(value)] = edged[below]
    return found


def _natural_uses(view: Node) -> list[Use]:
    value = view.results[0]
    return pieces(view, Use(value, natural(value.shape), True))
