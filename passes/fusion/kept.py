"""What a kernel keeps for later ones: as little as what they read can be computed from.

A gradient reads what was computed on the way forward, and each of its parts would be stored:

    h = z/2;  u = tanh(c z + d z^3);  y = h (1 + u)        gelu, in the kernel of a product
    dz reads  h, 1 + u, 1 - u^2, d z^2                     four arrays, each stored and loaded

From z and u the others follow by an addition or two, which cost less than a load. So readers get
nodes of their own for what is cheap, down to what is kept (``fewest``). What is read elsewhere
than in place, as by a product that packs it, or is a result, is kept anyway. A node that no reader
has in place any more is computed for its own kernel alone. Copies and readers are groups, or they
would be joined with what they were copied from.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ir.cost.limits import NEAR, STORED
from ...ir.graph import Graph, Node, Value
from ...ir.indices.index import plain_symbol
from ...ir.indices.space import is_transparent
from ...ir.ops.op import Kind
from ...ir.record import field, record
from .copies import copied
from .partition import Groups, Partition
from .region import Region

MOST = 4 * STORED  # additions that all costs which is computed again for one value
UNKNOWN = 1 << 40  # taken for the size of what has a named one


def with_fewer_kept(graph: Graph, partition: Partition) -> tuple[Graph, Groups] | None:
    """The graph in which readers compute again what is cheap, and the nodes that are apart, by
    their groups; None if all is kept as it is."""
    reads = _Reads(graph, partition)
    again: dict[int, set[int]] = {}
    gone: set[Value] = set()
    for region in list(partition.regions.values()):
        crossing = [value for node in region.nodes for value in node.results
                    if reads.of.get(value)]
        found = _Values(partition, region, gone, reads.fixed)
        kept = found.fewest(crossing)
        for value in crossing:
            if value not in kept:
                gone.add(value)
                behind = found.behind(value, kept)
                for reader in reads.of[value]:
                    again.setdefault(1 + reader, set()).update(map(id, behind))
    if not again:
        return None
    first = 1 + max(partition.apart.values(), default=0)
    groups = {id(node): first + at for at in again for node in partition.regions[at - 1].nodes}
    return copied(graph, groups, {first + at: nodes for at, nodes in again.items()},
                  partition.apart)


@record
class _Reads:
    """Which regions read what others compute, and what must be kept."""

    graph: Graph
    partition: Partition
    of: dict[Value, set[int]] = field(default_factory=dict)  # by the numbers of the regions
    fixed: set[Value] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.fixed.update(self.graph.results)
        for region in self.partition.regions.values():
            for node in region.nodes:
                for use in self.partition.uses[id(node)]:
                    home = self.partition.home.get(id(use.value.node))
                    if home is None or home is region:
                        continue
                    self.of.setdefault(use.value, set()).add(region.id)
                    places = [plain_symbol(dim) for dim in use.index if dim != 0]
                    if node.op.kind not in (Kind.MAP, Kind.REDUCE) or not use.exact or (
                            None in places or node in self.partition.apart
                            or id(use.value) in self.partition.opaque):
                        self.fixed.add(use.value)


@record
class _Values:
    """The values of a region, as what is kept of them and what follows from that."""

    partition: Partition
    region: Region
    gone: set[Value]   # of other regions: they are not there for new readers
    fixed: set[Value]

    def fewest(self, crossing: list[Value]) -> set[Value]:
        """Values from which all that cross the border of the region follow, as small as one step
        after the other makes them: what follows from others is left, and another value is taken in
        the place of several that follow from it."""
        kept = self._needed(crossing)
        if not any(map(_is_large, crossing)):
            return set(crossing)
        shapes = {value.shape for value in crossing}  # of which there are arrays
        others = [value for node in self.region.nodes for value in node.results
                  if value not in kept and value.shape in shapes]
        for value in others:
            fewer = self._needed([*kept, value])
            if _weight(fewer) < _weight(kept):
                kept = fewer
        return kept

    def _needed(self, values: Iterable[Value]) -> set[Value]:
        order = {id(node): at for at, node in enumerate(self.region.nodes)}
        kept = set(values)
        for value in sorted(kept, key=lambda value: -order[id(value.node)]):
            if value not in self.fixed and _is_large(value):
                cost = self._cost(value, kept - {value}, {})
                if cost is not None and cost <= MOST:
                    kept.remove(value)
        return kept

    def _cost(self, value: Value, kept: set[Value], known: dict[Value, int | None]) -> int | None:
        """What it costs to compute a value from what is kept; None if that cannot be."""
        if value not in known:
            known[value] = None  # of what lies on a way to itself
            node = value.node
            assert node is not None
            parts = [self._of_operand(operand, kept, known) for operand in node.inputs]
            if _is_cheap(node) and None not in parts:
                known[value] = node.op.cost + sum(part or 0 for part in parts)
        return known[value]

    def _of_operand(
        self, value: Value, kept: set[Value], known: dict[Value, int | None]
    ) -> int | None:
        node = value.node
        if value in kept or node is None:
            return 0
        if is_transparent(node):
            parts = [self._of_operand(operand, kept, known) for operand in node.inputs]
            return None if None in parts else sum(part or 0 for part in parts)
        if self.partition.home[id(node)] is not self.region:
            return None if value in self.gone else 0
        return self._cost(value, kept, known)

    def behind(self, value: Value, kept: set[Value]) -> list[Node]:
        """The nodes that compute a value from what is kept."""
        found: dict[int, Node] = {}
        pending = [value]
        while pending:
            current = pending.pop()
            node = current.node
            if node is None or id(node) in found or current in kept:
                continue
            if not is_transparent(node):
                if self.partition.home[id(node)] is not self.region:
                    continue
                found[id(node)] = node
            pending += node.inputs
        return list(found.values())


def _is_cheap(node: Node) -> bool:
    return node.op.kind is Kind.MAP and node.op.cost <= STORED and node.op.check is None and (
        not node.op.can_fail and not node.after and not node.op.awaits)


def _is_large(value: Value) -> bool:
    size = value.type.nbytes
    return not isinstance(size, int) or size >= NEAR


def _weight(values: Iterable[Value]) -> int:
    sizes = [value.type.nbytes for value in values]
    return sum(size if isinstance(size, int) else UNKNOWN for size in sizes)
