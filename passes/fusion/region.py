"""A region: nodes that will be one kernel, in a space of named axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.graph import Node, Value
from ...ir.indices.index import Dim, Expr, Symbol, plain_symbol, symbol
from ...ir.indices.space import Index, own_dims, result_index, summed_runs
from ...ir.indices.walk import substitute
from ...ir.ops.op import Kind
from ...ir.record import field, record

# What a kernel is built around, the first of them that it has; and what has one alone.
ANCHORS = (Kind.SORT, Kind.COMPRESS, Kind.SCATTER, Kind.CONTRACT, Kind.SCAN, Kind.REDUCE)
ALONE = frozenset((Kind.SCATTER, Kind.SORT, Kind.COMPRESS))

Runs = tuple[tuple[str, ...], ...]


@record(eq=False)
class Region:
    """Nodes that will be one kernel, and where each is computed."""

    id: int
    axes: dict[str, Dim] = field(default_factory=dict)      # their extents by name, in order
    own: dict[int, Index] = field(default_factory=dict)     # of each node, by identity
    index: dict[int, Index] = field(default_factory=dict)   # of each value, by identity
    par: frozenset[str] = frozenset()                       # axes that every value has
    reduced: Runs = ()                        # what REDUCE and SCAN nodes run over, in order
    product: frozenset[str] = frozenset()                   # axes of its first contraction
    columns: frozenset[str] = frozenset()                   # those of its right side alone
    batch: frozenset[str] = frozenset()                     # those of both sides
    kinds: set[Kind] = field(default_factory=set)
    nodes: list[Node] = field(default_factory=list)
    outside: list[Value] = field(default_factory=list)      # what it reads that it does not make
    reads: dict[int, Index] = field(default_factory=dict)   # where it reads what, if in place
    spaces: set[frozenset[str]] = field(default_factory=set)  # axes that some node or value has
    bits: int = 0       # of itself and of those it has taken
    ancestors: int = 0  # bits of all that it depends on
    readers: int = 0    # a bit of each region that reads it directly

    def __post_init__(self) -> None:
        self.bits = 1 << self.id

    @property
    def extents(self) -> tuple[Dim, ...]:
        return tuple(self.axes.values())

    @property
    def plain(self) -> bool:
        """True if nothing but elementwise nodes, gathers and searches is in it."""
        return self.kinds <= {Kind.MAP, Kind.VIEW, Kind.GATHER, Kind.SEARCH}

    @property
    def alone(self) -> bool:
        """True if nothing that reads what it makes may be in it."""
        return not ALONE.isdisjoint(self.kinds)

    @property
    def anchor(self) -> str:
        """The kind that the kernel is built around."""
        return next((kind.value for kind in ANCHORS
                     if kind in self.kinds), Kind.MAP.value)

    def settle(self, node: Node, own: Sequence[Dim | None]) -> Index:
        """An own index with new axes where it has none yet: of the region where the result has
        them, of the node alone where a contraction sums over them."""
        names: list[Dim] = [
            symbol(f"@{self.id}.{len(self.own)}.{at}", dim) if place is None else place
            for at, (place, dim) in enumerate(zip(own, (*own_dims(node), 0), strict=False))]
        kept = names if node.op.kind is Kind.REDUCE else result_index(node, tuple(names))
        for place in kept:
            if place != 0:
                self.axes.setdefault(str(place), _size(place))
        return tuple(names)


def _size(axis: Dim) -> Dim:
    """The extent that the symbol of an axis knows."""
    assert isinstance(axis, Expr)
    (atom,) = axis.terms[0][0]
    assert isinstance(atom, Symbol) and atom.size is not None
    return atom.size


def axes_of(index: Index) -> frozenset[str]:
    """The axes of an index, each of whose dims is an axis or 0."""
    return frozenset(name for name in map(plain_symbol, index) if name is not None)


def runs_of(node: Node, own: Index) -> Runs:
    """The axes that a node at ``own`` sums over, as ``summed_runs`` groups them, or carries
    along."""
    if node.op.kind is Kind.SCAN:
        along = own[node.attrs["axis"]]
        return () if along == 0 else ((str(along),),)
    return tuple(tuple(str(own[at]) for at in run) for run in summed_runs(node))


def in_order(names: Sequence[str], region: Region) -> bool:
    """True if these axes are in the order of the region: nothing is turned on its way."""
    order = list(region.axes)
    places = [order.index(name) for name in names]
    return places == sorted(places)


def rename(region: Region, names: Mapping[str, Dim]) -> None:
    """Express the indices of a region in other axes."""
    region.spaces = {frozenset(str(names.get(axis, axis)) for axis in axes)
                     for axes in region.spaces}
    for table in (region.own, region.index, region.reads):
        for key, index in table.items():
            table[key] = tuple(substitute(dim, names) for dim in index)
