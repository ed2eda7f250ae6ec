"""The partition of a graph into regions while they grow: the data that fusion works on.

A region has a *space* of named axes, and every value in it an index in that space. What a node
reads it reads through views, at an index: ``Use``. A node joins a region by unification: each of
its own dims becomes the axis that the values it reads there have at that place.

    s = q @ k.T           axes i j          (d is summed: no other node has it)
    m = max(s, axis=1)    reads s at (i, j): its dims are i and j; it reduces j and is at (i)
    p = exp(s - m)        reads s at (i, j) and m at (i)
    y = p @ v             reads p at (i, j): rows i, sums over j; its columns are a new axis

Regions may become one if all their nodes read each other where the values are computed, and no
third region lies between. Each region has the regions it depends on as one bit set, so that is an
``and``; a region keeps the bits of those it has taken, so that nobody else's set has to change when
regions join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from ...ir.graph import Graph, Node
from ...ir.indices.index import Dim, plain_symbol, symbol
from ...ir.indices.space import Index, natural, operand_index, own_dims, result_index
from ...ir.indices.walk import substitute
from ...ir.ops.op import Kind
from ...ir.record import record
from .jagged import Walks
from .reads import SEARCHED, Use, opaque_values
from .region import Region, axes_of, in_order, rename, runs_of
from .rules import fits, room


@record(frozen=True)
class Stacks:
    """Arrays, by identity, that are stored part by part, and the nodes that copy parts for that."""

    values: frozenset[int] = frozenset()
    copies: frozenset[Node] = frozenset()


NO_STACKS = Stacks()
Groups = Mapping[Node, int]  # of nodes that keep to themselves
NONE_APART: Groups = MappingProxyType({})


class Partition:
    """The regions while they grow, and which region each node is in."""

    def __init__(
        self, graph: Graph, limit: int, apart: Groups = NONE_APART,
        stacks: Stacks = NO_STACKS,
    ) -> None:
        self.graph, self.limit, self.apart, self.stacks = graph, limit, apart, stacks
        self.regions: dict[int, Region] = {}
        self.home: dict[int, Region] = {}
        self.uses: dict[int, list[Use]] = {}
        self.walks = Walks(graph, self.uses)
        self.opaque = opaque_values(graph) | self.walks.below_sums() | stacks.values
        self._of_bit: list[Region] = []

    def new_region(self) -> Region:
        region = Region(len(self._of_bit))
        self._of_bit.append(region)
        self.regions[region.id] = region
        return region

    def producers(self, node: Node) -> list[Region]:
        """Regions that ``node`` reads from, latest first."""
        found = {self.home[id(use.value.node)].id for use in self.uses[id(node)]
                 if use.value.node is not None}
        return [self.regions[at] for at in sorted(found, reverse=True)]

    def together(self, node: Node, region: Region) -> bool:
        """Whether both are on one device, and of one group of those that are apart, or of none."""
        first = region.nodes[0]
        return node.device == first.device and self.apart.get(node) == self.apart.get(first)

    def reads_from(self, node: Node, region: Region) -> Iterator[Use]:
        """The uses of a node that are computed in ``region``."""
        return (use for use in self.uses[id(node)] if use.value.node is not None
                and self.home[id(use.value.node)] is region)

    def unified(self, node: Node, region: Region) -> dict[str, str] | None:
        """The axis of ``region`` that each own dim of ``node`` is where it reads values in place;
        None if it reads one of them elsewhere."""
        dims = own_dims(node)
        bound: dict[str, str] = {}
        for use in self.reads_from(node, region):
            there = region.index.get(id(use.value))  # None: stored, not computed there
            if there is None or not (use.exact and _unify(use.index, there, bound)):
                return None
        same = all(dims[int(own[1:])] == region.axes[axis] for own, axis in bound.items()
                   if own != SEARCHED)
        return bound if same and len(set(bound.values())) == len(bound) else None

    def place(self, node: Node, region: Region, bound: dict[str, str]) -> list[Dim | None]:
        """The own index of ``node`` in ``region``; None for dims that would be new axes.

        What its reads leave open it has where it reads a value from outside as the region does,
        else the axes of equal extents, in order.
        """
        own = natural(own_dims(node))
        extents = {str(dim): size for dim, size in zip(own, own_dims(node), strict=True)}
        if node.op.kind is Kind.GATHER:
            own = (*own, symbol(SEARCHED))
        for use in self.uses[id(node)]:
            known = region.reads.get(id(use.value))
            if known is not None and use.exact:
                trial = dict(bound)
                if (_unify(use.index, known, trial) and len(set(trial.values())) == len(trial)
                        and all(extents.get(o) == region.axes.get(a) for o, a in trial.items())):
                    bound.update(trial)
        if node.op.kind is not Kind.CONTRACT:
            _pair(extents, region.axes, bound)
        return [0 if dim == 0 else symbol(bound[str(dim)], region.axes[bound[str(dim)]])
                if str(dim) in bound else None for dim in own]

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

    def add(self, node: Node, region: Region, own: Index) -> None:
        """Put ``node`` into ``region``, at ``own``."""
        at = result_index(node, own)
        if not region.nodes:
            region.par = axes_of(at)
        region.nodes.append(node)
        region.kinds.add(node.op.kind)
        region.own[id(node)] = own
        self.home[id(node)] = region
        for value in node.results:
            region.index[id(value)] = at
        if node.op.kind in (Kind.REDUCE, Kind.SCAN):
            runs = runs_of(node, own)
            region.reduced += tuple(run for run in runs if run not in region.reduced)
            region.par -= {axis for run in runs for axis in run}
        if node.op.kind is Kind.CONTRACT and not region.product:
            region.product = axes_of(at)
            left, right = (axes_of(operand_index(node, side, own)) for side in (0, 1))
            region.columns, region.batch = region.product - left, left & right & region.product
        region.spaces |= {axes_of(at)}
        if node.op.kind is Kind.REDUCE:
            region.spaces.add(axes_of(own))
        if node.op.kind is Kind.CONTRACT:
            summed = tuple(str(dim) for dim in own if dim not in at and str(dim) in region.axes)
            if summed and (summed,) != region.reduced:
                region.reduced += (summed,)
            region.par -= set(summed)
        names = {f"@{at}": dim for at, dim in enumerate(own)}
        region.outside += [use.value for use in self.uses[id(node)]
                           if id(use.value) not in region.index]
        for use in self.uses[id(node)]:
            if use.exact and id(use.value) not in region.reads:
                index = tuple(substitute(dim, names) for dim in use.index)
                if all(dim == 0 or plain_symbol(dim) in region.axes for dim in index):
                    region.reads[id(use.value)] = index
        for other in self.producers(node):
            self.depend(region, other)

    def store(self, node: Node, region: Region) -> None:
        """Let a region store a view that only moves elements of what it computes."""
        region.nodes.append(node)
        self.home[id(node)] = region

    def merge(self, region: Region, other: Region) -> bool:
        """Join two regions if they share a space, read each other in place and stay acyclic."""
        if (len(region.nodes) + len(other.nodes) > min(self.limit, room(region), room(other))
                or not self.together(other.nodes[0], region)
                or region.readers & other.ancestors or other.readers & region.ancestors):
            return False
        for wide, narrow in ((region, other), (other, region)):
            names = self._shared_axes(wide, narrow)
            if names is not None and fits(wide, narrow, names) and (
                    self.walks.meet_evenly(wide, narrow, names)):
                rename(narrow, {old: symbol(new, wide.axes[new]) for old, new in names.items()})
                if wide is other:
                    region.axes, region.par, region.reduced = wide.axes, wide.par, wide.reduced
                    region.columns, region.product = wide.columns, wide.product
                    region.batch = wide.batch
                self.unite(region, other)
                return True
        return False

    def _shared_axes(self, wide: Region, narrow: Region) -> dict[str, str] | None:
        """The axis of ``wide`` that each axis of ``narrow`` is; None if they read each other
        elsewhere than where the values are computed, or if ``narrow`` has more axes."""
        bound: dict[str, str] = {}
        for reader, source, turned in ((narrow, wide, False), (wide, narrow, True)):
            for node in reader.nodes:
                names = {f"@{at}": dim for at, dim in enumerate(reader.own.get(id(node), ()))}
                for use in self.reads_from(node, source):
                    here = tuple(substitute(dim, names) for dim in use.index)
                    there = source.index.get(id(use.value))
                    if there is None or not use.exact or not _unify(
                            *((there, here) if turned else (here, there)), bound):
                        return None
        if len(set(bound.values())) != len(bound) or any(
                narrow.axes.get(old, old) != wide.axes.get(new) for old, new in bound.items()):
            return None
        _pair(narrow.axes, wide.axes, bound)
        return bound if bound.keys() >= narrow.axes.keys() and in_order(
            [bound[name] for name in narrow.axes], wide) else None

    def unite(self, region: Region, gone: Region) -> None:
        """Let ``region`` take another one that is expressed in its axes."""
        region.own.update(gone.own)
        region.index.update(gone.index)
        region.reads = {**gone.reads, **region.reads}
        region.kinds |= gone.kinds
        region.outside += gone.outside
        region.spaces |= gone.spaces
        self.take(region, gone)

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


def _unify(here: Index, there: Index, bound: dict[str, str]) -> bool:
    """Bind the symbols of one index to those of another; False if they are not the same place."""
    for one, other in zip(here, there, strict=True):
        if one == other == 0:
            continue
        name, axis = plain_symbol(one), plain_symbol(other)
        if name is None or axis is None or name[0] != "@" or axis[0] != "@":
            return False  # what is read at a size, as x[n], is read at one place
        if bound.setdefault(name, axis) != axis:
            return False
    return True


def _pair(own: Mapping[str, Dim], axes: Mapping[str, Dim], bound: dict[str, str]) -> None:
    """Bind what is left of ``own`` to axes of equal extents that are left, in order."""
    left = [axis for axis in axes if axis not in bound.values()]
    for name, extent in own.items():
        if extent != 1 and name not in bound:
            found = next((axis for axis in left if axes[axis] == extent), None)
            if found is not None:
                bound[name] = found
                left.remove(found)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
