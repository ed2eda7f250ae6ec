"""Regions and the partition of a graph into them: the data that fusion works on.

A region has an iteration space, and every value in it an index in that space. What a node reads it
reads through views, at an index: ``Use``. Two regions may become one if there is a space that holds
both, all their nodes read each other where the values are computed, and no third region lies
between. Each region has the regions it depends on as one bit set, so that is an ``and``; a region
keeps the bits of those it has taken, so that nobody else's set has to change when regions join.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...ir.graph import Graph, Node, Value
from ...ir.index import Dim, substitute, symbol
from ...ir.ops.op import Kind

Index = tuple[Dim, ...]

DEPTH = 128  # views that a reader repeats


@dataclass(frozen=True)
class Use:
    """A value that an operand reaches through views, and the index at which it is read."""

    value: Value
    index: Index
    exact: bool  # False: under a condition (pad, concatenate) or at a computed index


@dataclass(eq=False)
class Region:
    """Nodes that will be one kernel; ``index`` says where each value lives in its space."""

    id: int
    anchor: str
    shape: Index
    axes: tuple[int, ...] = ()
    nodes: list[Node] = field(default_factory=list)
    index: dict[int, Index] = field(default_factory=dict)
    bits: int = 0       # of itself and of those it has taken
    ancestors: int = 0  # bits of all that it depends on
    readers: int = 0    # a bit of each region that reads it directly

    def __post_init__(self) -> None:
        self.bits = 1 << self.id

    def place(self, shape: Index) -> Index | None:
        """The index of a value of ``shape`` in this region's space, or None if it has none."""
        if shape == self.shape:
            return natural(shape)
        if self.anchor != "reduce":
            return None
        kept = [(symbol(f"@{at}", dim), dim) for at, dim in enumerate(self.shape)
                if at not in self.axes and dim != 1]
        if [dim for dim in shape if dim != 1] != [dim for _, dim in kept]:
            return None
        wide = iter(kept)
        return tuple(0 if dim == 1 else next(wide)[0] for dim in shape)


def natural(shape: Index) -> Index:
    """The index of a value in its own space: one symbol for each dim."""
    return tuple(symbol(f"@{at}", dim) for at, dim in enumerate(shape))


def is_transparent(node: Node) -> bool:
    """Views and constants: repeated in every region that reads them."""
    return node.op.kind is Kind.VIEW or (node.op.kind is Kind.MAP and not node.inputs)


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
    """What a node reads, at its own natural index."""
    if node.op.kind is Kind.MAP:
        index = natural(node.results[0].shape)
        return [use for operand in node.inputs for use in sources(operand, index, opaque)]
    uses = [use for operand in node.inputs
            for use in sources(operand, natural(operand.shape), opaque)]
    if node.op.kind is Kind.REDUCE:
        return uses
    return [Use(use.value, use.index, False) for use in uses]


def opaque_values(graph: Graph) -> set[int]:
    """Views that must be memory: the bases that scatters add to, and views of so many pieces and
    so deep that to repeat them in every reader would be more work than to store them once."""
    opaque = {id(node.inputs[0]) for node in graph.nodes if node.op.kind is Kind.SCATTER}
    depth: dict[int, int] = {}
    for node in graph.nodes:
        if node.op.kind is Kind.VIEW:
            value = node.results[0]
            depth[id(value)] = 1 + sum(depth.get(id(operand), 0) for operand in node.inputs)
            if id(value) in opaque or depth[id(value)] > DEPTH:
                opaque.add(id(value))
                depth[id(value)] = 0
    return opaque


class Partition:
    """The regions while they grow, and which region each node is in."""

    def __init__(self, graph: Graph, limit: int) -> None:
        self.graph, self.limit = graph, limit
        self.opaque = opaque_values(graph)
        self.regions: dict[int, Region] = {}
        self.home: dict[int, Region] = {}
        self.uses: dict[int, list[Use]] = {}
        self._of_bit: list[Region] = []

    def new_region(self, anchor: str, shape: Index, axes: tuple[int, ...] = ()) -> Region:
        region = Region(len(self._of_bit), anchor, shape, axes)
        self._of_bit.append(region)
        self.regions[region.id] = region
        return region

    def producers(self, node: Node) -> list[Region]:
        """Regions that ``node`` reads from, latest first."""
        found = {self.home[id(use.value.node)].id for use in self.uses[id(node)]
                 if use.value.node is not None}
        return [self.regions[at] for at in sorted(found, reverse=True)]

    def reads_in_place(self, node: Node, place: Index, region: Region, moved: Index) -> bool:
        """True if ``node``, computed at ``place``, reads ``region`` where that computes.

        ``moved`` is the region's natural index in the space that ``place`` belongs to.
        """
        own = {f"@{at}": dim for at, dim in enumerate(place)}
        into = {f"@{at}": dim for at, dim in enumerate(moved)}
        for use in self.uses[id(node)]:
            if use.value.node is None or self.home[id(use.value.node)] is not region:
                continue
            here = tuple(substitute(dim, own) for dim in use.index)
            if not use.exact or here != tuple(
                    substitute(dim, into) for dim in region.index[id(use.value)]):
                return False
        return True

    def acyclic(self, region: Region, others: Sequence[Region]) -> bool:
        """True if ``region`` plus a reader of ``others`` does not depend on itself."""
        return not any(other.ancestors & region.bits for other in others)

    def depend(self, region: Region, on: Region) -> None:
        """Record that ``region`` reads ``on``."""
        if region is not on:
            on.readers |= 1 << region.id
            self._push(on.ancestors | on.bits, [region])

    def _push(self, above: int, regions: Sequence[Region]) -> None:
        """Let these regions, and all that read them, depend on what has the bits ``above``."""
        pending = list(regions)
        while pending:
            region = pending.pop()
            if above & ~region.ancestors:
                region.ancestors |= above
                pending += self._readers(region)

    def _readers(self, region: Region) -> list[Region]:
        return [self._of_bit[at] for at in _bits(region.readers)]

    def add(self, node: Node, region: Region, place: Index) -> None:
        """Put ``node`` into ``region``; its results are computed at ``place``."""
        region.nodes.append(node)
        self.home[id(node)] = region
        for value in node.results:
            region.index[id(value)] = place
        for other in self.producers(node):
            self.depend(region, other)

    def merge(self, region: Region, other: Region) -> bool:
        """Join two regions if they share a space, read each other in place and stay acyclic."""
        space = _common_space(region, other)
        if (space is None or len(region.nodes) + len(other.nodes) > self.limit
                or region.readers & other.ancestors or other.readers & region.ancestors):
            return False
        wide, here, there = space
        if not (self._reads_all_in_place(region, here, other, there)
                and self._reads_all_in_place(other, there, region, here)):
            return False
        anchor, shape, axes = wide.anchor, wide.shape, wide.axes
        _rename(region, here)
        _rename(other, there)
        region.anchor, region.shape, region.axes = anchor, shape, axes
        region.index.update(other.index)
        self.take(region, other)
        return True

    def _reads_all_in_place(
        self, region: Region, here: Index, other: Region, there: Index
    ) -> bool:
        """True if every node of ``region`` reads ``other`` where that computes; ``here`` and
        ``there`` are their natural indices in the space they would share."""
        names = {f"@{at}": dim for at, dim in enumerate(here)}
        for node in region.nodes:
            place = natural(region.shape) if node.op.kind is Kind.REDUCE else (
                region.index[id(node.results[0])])
            moved = tuple(substitute(dim, names) for dim in place)
            if not self.reads_in_place(node, moved, other, there):
                return False
        return True

    def take(self, region: Region, gone: Region) -> None:
        """Move the nodes of ``gone`` into ``region``, which depends on all that it did."""
        self.swallow(region, gone)
        region.bits |= gone.bits
        region.readers = (region.readers | gone.readers) & ~region.bits
        region.ancestors = (region.ancestors | gone.ancestors) & ~region.bits
        for at in _bits(gone.bits):
            self._of_bit[at] = region
        self._push(region.ancestors | region.bits, self._readers(region))

    def swallow(self, region: Region, gone: Region) -> None:
        """Move the nodes of ``gone``, which nobody else reads, when no more regions will merge."""
        for node in gone.nodes:
            self.home[id(node)] = region
        region.nodes += gone.nodes
        del self.regions[gone.id]


def _common_space(a: Region, b: Region) -> tuple[Region, Index, Index] | None:
    """The region whose space can hold both, and the natural index of each in that space."""
    if "scatter" in (a.anchor, b.anchor):
        return None
    if b.anchor == "map" and (place := a.place(b.shape)) is not None:
        return a, natural(a.shape), place
    if a.anchor == "map" and (place := b.place(a.shape)) is not None:
        return b, place, natural(b.shape)
    if a.anchor == b.anchor == "reduce" and (a.shape, a.axes) == (b.shape, b.axes):
        return a, natural(a.shape), natural(b.shape)
    return None


def _rename(region: Region, place: Index) -> None:
    """Express the indices of a region's values in a space where its natural index is ``place``."""
    if place != natural(region.shape):
        names = {f"@{at}": dim for at, dim in enumerate(place)}
        region.index = {key: tuple(substitute(dim, names) for dim in index)
                        for key, index in region.index.items()}


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
