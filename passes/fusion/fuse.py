"""Fusion: a partition of the graph into regions, each of which becomes one kernel.

Regions grow in one forward walk. A node joins the region of an operand when it reads that operand
at the very index at which the region computes it, and the rule of its kind admits it there; views
in between are index maps and belong to no region, they are repeated in each. So softmax and layer
norm are one region, and so is attention:

    max = reduce x     a region of axes (i, j); max is at (i)
    d   = x - max      joins: reads max at (i,), where the region has it
    s   = sum exp(d)   joins: the same axes;   y = exp(d) / s   joins

A join must keep the regions acyclic (see ``partition``). Afterwards producers with one consumer
region are absorbed through their views (prologues) when recomputing them costs little.
"""

from __future__ import annotations

from ...ir.cost.statements import LOAD
from ...ir.graph import Builder, Graph, Node, Value
from ...ir.indices.affine import coefficient
from ...ir.indices.index import Dim, product, row_major, symbol, symbols_of
from ...ir.indices.runs import PAIR, WHOLE, longest_run, step_along
from ...ir.indices.space import (
    Index,
    Part,
    is_transparent,
    natural,
    own_dims,
    parts_of,
    placed_nodes,
    space_text,
)
from ...ir.indices.walk import substitute
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from .again import with_copies
from .before import read_before_stores
from .kept import with_fewer_kept
from .masks import with_own_masks
from .order import ordered
from .partition import NO_STACKS, NONE_APART, Groups, Partition, Stacks
from .reads import Use, operand_uses, pieces, reads_whole, sources
from .region import Region, axes_of, rename
from .rules import admits, goes_one_by_one, is_wide, room
from .segments import fuse_around
from .stacks import with_stacks
from .stored import read_where_stored

LIMIT = 64  # nodes of one region: past it registers spill and compile time grows
COPIES = 2  # of a cheap producer, one for each place that its consumer reads it at
LONG_RUN = 32  # elements from which on vectors of results may be cut where one ends


def _grow(partition: Partition, node: Node) -> None:
    """Put one node into the region of an operand, or into a new one, then join the others."""
    partition.uses[id(node)] = operand_uses(node, partition.opaque)
    candidates = partition.producers(node)
    home: Region | None = None
    for region in candidates:
        own = _place_in(partition, node, region)
        others = [other for other in candidates if other is not region]
        if (own is not None and len(region.nodes) < min(partition.limit, room(region))
                and partition.acyclic(region, others)):
            home = region
            break
    else:
        home, own = partition.new_region(), [
            0 if dim == 1 else None for dim in own_dims(node)]
    assert own is not None
    partition.add(node, home, home.settle(node, own))
    for region in candidates:
        if region is not home and region.id in partition.regions:
            partition.merge(home, region)


def _place_in(partition: Partition, node: Node, region: Region) -> list[Dim | None] | None:
    """The own index of a node in a region that it may join; None if it may not."""
    if region.alone or not partition.together(node, region):
        return None
    bound = partition.unified(node, region)
    if bound is None:
        return None
    own = partition.place(node, region, bound)
    if node.op.kind is Kind.GATHER and own[-1] is None:  # nothing of the region is searched
        del own[-1]
    return own if admits(region, node, own) and (
        partition.walks.joins_evenly(node, region, own)) else None


def _merge_siblings(partition: Partition) -> None:
    """Join independent regions over one space that read the same value: it is loaded once."""
    first: dict[tuple[object, ...], Region] = {}
    for region in list(partition.regions.values()):
        if region.anchor not in ("map", "reduce"):
            continue
        names = list(region.axes)
        reduced = tuple(tuple(map(names.index, run)) for run in region.reduced)
        for read in _read_in_full(partition, region):
            key = (read, region.anchor, region.extents, reduced)
            other = first.get(key, region)
            if other is region or other.id not in partition.regions or (
                    len(other.nodes) + len(region.nodes) > partition.limit // 2):
                first[key] = region
            elif not (other.ancestors & region.bits or region.ancestors & other.bits) and (
                    partition.together(region.nodes[0], other)):
                rename(region, {name: symbol(axis, extent) for name, (axis, extent) in zip(
                    names, other.axes.items(), strict=True)})
                partition.unite(other, region)
                break


def _read_in_full(partition: Partition, region: Region) -> list[tuple[int, Index]]:
    """Values from outside that a region reads element by element in the order of its axes, perhaps
    in parts (``x[4096*i + j]``), by identity, and where, if its axes were numbered."""
    numbered = {name: symbol(f"@{at}", size) for at, (name, size) in enumerate(region.axes.items())}
    found: dict[tuple[int, Index], None] = {}
    for node in region.nodes:
        place = region.own.get(id(node), ())
        own = dict(zip(map(str, natural(own_dims(node))), place, strict=False))
        for use in partition.uses[id(node)]:
            if use.exact and id(use.value) not in region.index:
                index = tuple(substitute(dim, own) for dim in use.index)
                walked = [name for dim in index for name in region.axes if name in symbols_of(dim)]
                if walked == list(region.axes):
                    found[id(use.value), tuple(substitute(dim, numbered) for dim in index)] = None
    return list(found)


def _absorb_prologues(partition: Partition, roots: set[int]) -> None:
    """Pull map regions into their only consumer, through views, when that saves memory traffic."""
    readers: dict[int, set[int]] = {at: set() for at in partition.regions}
    reads: dict[int, set[int]] = {at: set() for at in partition.regions}
    for at, region in partition.regions.items():
        for node in region.nodes:
            for use in partition.uses[id(node)]:
                if use.value.node is not None:
                    producer = partition.home[id(use.value.node)].id
                    if producer != at:
                        readers[producer].add(at)
                        reads[at].add(producer)
    copies, parts = _Copies(partition), _Parts(partition)
    for region in sorted(partition.regions.values(), key=lambda r: -r.id):
        if len(readers[region.id]) != 1 or not region.plain:
            continue
        target = partition.regions[min(readers[region.id])]
        times = copies.of(region, target)
        if not _absorbable(partition, region, target, times, roots) or (
                copies.weight(target) + times * copies.weight(region) > partition.limit
                or not parts.take(region, target)):
            continue
        copies.take(region, times)
        for producer in reads.pop(region.id):
            readers[producer] = readers[producer] - {region.id} | {target.id}
            reads[target.id].add(producer)
        partition.swallow(target, region)


class _Copies:
    """How often a region computes what it has absorbed: once for each index it is read at.

    ``concatenate(x[32:], x[:32])`` reads x at two places; n of them in a row would make 2**n.
    """

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        # Nodes that came together are computed together, and as often as one another.
        self.origin = {id(node): at for at, region in partition.regions.items()
                       for node in region.nodes}
        self.times = dict.fromkeys(partition.regions, 1)

    def of(self, region: Region, target: Region) -> int:
        """At how many places ``target`` reads ``region``."""
        places = {(self.origin[id(node)], use.index) for node in target.nodes
                  for use in self.partition.uses[id(node)] if use.value.node is not None
                  and self.partition.home[id(use.value.node)] is region}
        return sum(self.times[origin] for origin, _ in places)

    def weight(self, region: Region) -> int:
        """Nodes of a region, counted as often as they are computed."""
        return sum(self.times[self.origin[id(node)]] for node in region.nodes)

    def take(self, region: Region, times: int) -> None:
        """Note that all of ``region`` will be computed ``times`` times as often."""
        for origin in {self.origin[id(node)] for node in region.nodes}:
            self.times[origin] *= times


class _Parts:
    """Nodes of which their region computes not every element that they have: it reads a slice of
    them. What can fail is none of these, or it would be checked less than without fusion."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.checked = any(node.op.can_fail for node in partition.graph.nodes)
        self.nodes: set[int] = set()

    def take(self, region: Region, target: Region) -> bool:
        """Note what will be computed of ``region`` in ``target``; False if it may not be that."""
        if not self.checked or self._is_read_whole(region, target):
            return True
        if any(node.op.can_fail for node in region.nodes):
            return False
        self.nodes.update(map(id, region.nodes))
        return True

    def _is_read_whole(self, region: Region, target: Region) -> bool:
        if product(target.extents) == 0:
            return product(region.extents) == 0
        for node in target.nodes:
            dims = own_dims(node)
            extents = {str(at): dim for at, dim in zip(natural(dims), dims, strict=True)}
            for use in self.partition.uses[id(node)]:
                if self.partition.home.get(id(use.value.node)) is region and (
                        id(node) in self.nodes or not reads_whole(use, extents)):
                    return False
        return True


def _absorbable(
    partition: Partition, region: Region, target: Region, times: int, roots: set[int]
) -> bool:
    if any(id(value) in roots for node in region.nodes for value in node.results):
        return False
    if region.nodes[0].device != target.nodes[0].device:
        return False
    if Kind.SCATTER in target.kinds or not {Kind.GATHER, Kind.SEARCH}.isdisjoint(target.kinds):
        return False
    if goes_one_by_one(target) and is_wide(region):
        return False
    if not partition.walks.absorbs_evenly(region, target):
        return False
    cheap = (len(region.nodes) <= 6 and times <= COPIES
             and all(node.op.check is None and node.op.cost <= LOAD for node in region.nodes))
    if Kind.CONTRACT in target.kinds:
        return cheap
    grows = _is_more(product(target.extents), product(region.extents))
    return cheap or (times == 1 and not grows)


def _is_more(one: Dim, other: Dim) -> bool:
    """True unless ``one`` is surely at most ``other``."""
    if isinstance(one, int) and isinstance(other, int):
        return one > other
    return one != other


def fuse(graph: Graph, limit: int = LIMIT) -> Graph:
    """Rewrite a functional graph as ``fused`` nodes and control flow, whose bodies are fused too;
    every value in between disappears."""
    return fuse_around(read_before_stores(graph), lambda body: fuse(body, limit),
                       lambda part: _fused(part, limit), rounds=limit > 1)


def _fused(graph: Graph, limit: int) -> Graph:
    graph = read_where_stored(graph)
    partition = grow(graph, limit)
    masked = with_own_masks(graph, partition)
    if masked is not None:
        graph = masked
        partition = grow(graph, limit)
    apart: Groups = NONE_APART
    for rewrite in (with_copies, with_fewer_kept):
        again = rewrite(graph, partition)
        if again is not None:
            graph, apart = again
            partition = grow(graph, limit, apart)
    stacked = with_stacks(graph, partition)
    if stacked is not None:
        graph, apart, stacks = stacked
        partition = grow(graph, limit, apart, stacks)
    return _rebuild(graph, partition)


def grow(
    graph: Graph, limit: int = LIMIT, apart: Groups = NONE_APART,
    stacks: Stacks = NO_STACKS,
) -> Partition:
    """The regions of a graph: each node that computes is in exactly one of them. Nodes that are
    ``apart`` share none but with those of their group; ``stacks`` are stored part by part."""
    partition = joined(graph, limit, apart, stacks)
    _absorb_prologues(partition, {id(value) for value in graph.results} | partition.opaque)
    return partition


def joined(
    graph: Graph, limit: int = LIMIT, apart: Groups = NONE_APART,
    stacks: Stacks = NO_STACKS,
) -> Partition:
    """Regions that have grown and merged, before any is absorbed."""
    partition = Partition(graph, limit, apart, stacks)
    roots = {id(value) for value in graph.results} | partition.opaque
    for node in graph.nodes:
        if node in stacks.copies:
            continue  # with the array that they are copied to
        if not is_transparent(node):
            _grow(partition, node)
        elif any(id(value) in roots for value in node.results):
            _grow_root(partition, node)
    _merge_siblings(partition)
    return partition


def _grow_root(partition: Partition, node: Node) -> None:
    """A view or constant that must be memory: stored by what computes it, else a region of its
    own."""
    value, shape = node.results[0], node.results[0].shape
    copied_by = _copies(partition, node)
    partition.uses[id(node)] = [
        use for piece in pieces(node, Use(value, natural(shape), True))
        for use in sources(piece.value, piece.index, partition.opaque)]
    home = copied_by or _stored_by(partition, node)
    if home is not None:
        partition.store(node, home)
        return
    region = partition.new_region()
    own = region.settle(node, [0 if dim == 1 else None for dim in shape])
    partition.add(node, region, own)


def _copies(partition: Partition, node: Node) -> Region | None:
    """The region of the copies that an array of many parts is made of, if it is."""
    region: Region | None = None
    for part in node.inputs:
        if part.node in partition.stacks.copies:
            if region is None:
                region = partition.new_region()
                own = region.settle(part.node, [
                    0 if dim == 1 else None for dim in own_dims(part.node)])
            partition.uses[id(part.node)] = operand_uses(part.node, partition.opaque)
            partition.add(part.node, region, own)
    return region


def _stored_by(partition: Partition, node: Node) -> Region | None:
    """The region that computes all that a view only moves, if it walks the view's memory as evenly:
    along its last axis without gaps, or in long runs of the vectors of a product."""
    value = node.results[0]
    parts = parts_of(value, partition.home)
    makers = [part.source.node for part in parts]
    regions = {id(region): region for maker in makers if maker is not None
               and (region := partition.home.get(id(maker))) is not None}
    if len(parts) == len(regions) == PAIR:  # complex numbers: their parts are computed together
        first, other = regions.values()
        if not partition.merge(first, other):
            return None
        regions = {id(first): first}
    if len(regions) != 1 or not all(part.views for part in parts):
        return None
    results = {id(result) for result in partition.graph.results}
    if any(part.source.node is not None and is_transparent(part.source.node)
           and id(part.source) not in results for part in parts):
        return None  # what is only moved has no place there unless it is stored, too
    region, = regions.values()
    if (any(id(part.source) not in region.index for part in parts) or region.alone
            or (id(value) in partition.opaque and id(value) not in partition.stacks.values)
            or not partition.together(node, region)):
        return None
    # Each part is stored in all tasks of the region, so all must have the same axes.
    places = {axes_of(region.index[id(part.source)]) for part in parts}
    return region if len(places) == 1 and all(
        _is_even(region, part, len(parts)) for part in parts) else None


def _is_even(region: Region, part: Part, count: int) -> bool:
    index, result = natural(part.source.shape), part.views[0][0].results[0]
    offset = row_major(part.moved(index), result.shape)
    axes = [str(dim) for dim in index if dim != 0]
    if any(coefficient(offset, axis) is None for axis in axes[:-1]):
        return False
    last = [str(place) for place in region.index[id(part.source)] if place != 0][-1:]
    tiles = (region.kinds <= {Kind.CONTRACT, Kind.MAP} and last == [*region.columns]
             and bool(region.par - region.columns - region.batch))
    if axes and count == PAIR == step_along(offset, axes[-1]):
        return True  # the parts lie between each other, as those of complex numbers
    run = longest_run(offset, axes[-1]) if axes else WHOLE
    return run >= (LONG_RUN if tiles else WHOLE)


def _rebuild(graph: Graph, partition: Partition) -> Graph:
    """Regions as ``fused`` nodes, in an order that respects their dependencies."""
    position = {id(node): at for at, node in enumerate(graph.nodes)}
    result = Graph(graph.name)
    builder = Builder(result, OPS, share=False, fold=False)
    moved: dict[int, Value] = {}
    for param in graph.params:
        moved[id(param)] = result.add_param(param.type, param.name.rpartition(":")[0])
    needed = _outside_uses(partition)
    for region in ordered(partition, position):
        region.nodes.sort(key=lambda node: position[id(node)])
        outputs = [value for node in region.nodes for value in node.results if id(value) in needed]
        if not outputs:
            continue
        body, inputs, space = _body(region, outputs, partition.opaque)
        last = parts_of(outputs[-1], region.own)[-1].source.node
        assert last is not None
        locs = tuple(dict.fromkeys(loc for node in region.nodes for loc in node.locs))
        builder.device = last.device
        fused = builder.emit(OPS["fused"], [moved[id(value)] for value in inputs],
                             {"body": body, "space": space}, name=last.name, locs=locs)
        moved.update(zip(map(id, outputs), fused.results, strict=True))
    result.results = [moved[id(value)] for value in graph.results]
    result.variables = dict(graph.variables)
    result.var_params = {var: moved[id(value)] for var, value in graph.var_params.items()}
    result.var_results = dict(graph.var_results)
    result.homes = dict(graph.homes)
    return result


def _outside_uses(partition: Partition) -> set[int]:
    """Values that must be stored: results, and what other regions read."""
    needed = {id(value) for value in partition.graph.results}
    for region in partition.regions.values():
        for node in region.nodes:
            for use in partition.uses[id(node)]:
                producer = use.value.node
                if producer is not None and partition.home[id(producer)] is not region:
                    needed.add(id(use.value))
    return needed


def _body(
    region: Region, outputs: list[Value], opaque: set[int]
) -> tuple[Graph, list[Value], str]:
    """The region as a graph: its nodes, the views and constants it sees through; its inputs and
    its space."""
    own = {id(node) for node in region.nodes}
    body = Graph("body")
    builder = Builder(body, OPS, share=True, fold=False)
    inputs: list[Value] = []
    moved: dict[int, Value] = {}
    places: dict[int, Index | None] = {}
    for node in region.nodes:
        pending = [(node, False)]
        while pending:
            current, expanded = pending.pop()
            if all(id(value) in moved for value in current.results):
                continue
            if not expanded:
                pending.append((current, True))
                for operand in current.inputs:
                    if id(operand) in moved:
                        continue
                    maker = operand.node
                    inline = maker is not None and (id(maker) in own or (
                        is_transparent(maker) and id(operand) not in opaque))
                    if inline:
                        assert maker is not None
                        pending.append((maker, False))
                    else:
                        inputs.append(operand)
                        moved[id(operand)] = body.add_param(operand.type, f"p{len(inputs) - 1}")
                continue
            with builder.like(current):
                builder.device = None  # the fused node says it for all
                made = builder.emit(current.op, [moved[id(v)] for v in current.inputs],
                                    current.attrs, name=current.name)
            moved.update(zip(map(id, current.results), made.results, strict=True))
            if places.get(id(made)) is None:
                places[id(made)] = region.own.get(id(current))
    body.results = [moved[id(value)] for value in outputs]
    return body, inputs, space_text([places[id(node)] for node in placed_nodes(body)])
