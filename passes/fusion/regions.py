"""Regions and the partition of a graph into them: the data that fusion works on.

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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...ir.graph import Graph, Node, Value
from ...ir.index import Dim, Expr, Symbol, plain_symbol, product, substitute, symbol
from ...ir.ops.op import Kind
from ...ir.ops.reduce import contract_letters
from ...ir.space import (
    Index,
    contract_order,
    is_chain,
    is_transparent,
    natural,
    operand_index,
    operand_place,
    own_dims,
    result_index,
    searched_axis,
    summed_runs,
)

SEARCHED = "@search"  # the axis along which a gather looks for its element
DEPTH = 128  # views that a reader repeats
SHORT = 8    # elements of a reduction that is unrolled beside another one
MANY = 128   # rows that make several tasks
LARGE = 16 << 20      # bytes that no cache of one core holds
ROW_BYTES = 32 << 10  # of a row that a task keeps with others of its block

Runs = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Use:
    """A value that an operand reaches through views, and the index at which it is read."""

    value: Value
    index: Index
    exact: bool  # False: under a condition (pad, concatenate) or at a computed index


@dataclass(eq=False)
class Region:
    """Nodes that will be one kernel, and where each is computed."""

    id: int
    axes: dict[str, Dim] = field(default_factory=dict)      # their extents by name, in order
    own: dict[int, Index] = field(default_factory=dict)     # of each node, by identity
    index: dict[int, Index] = field(default_factory=dict)   # of each value, by identity
    par: frozenset[str] = frozenset()                       # axes that every value has
    reduced: Runs = ()                                      # what REDUCE nodes run over, in order
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
        """True if nothing but elementwise nodes and gathers is in it."""
        return self.kinds <= {Kind.MAP, Kind.VIEW, Kind.GATHER}

    @property
    def anchor(self) -> str:
        """The kind that the kernel is built around."""
        return next((kind.value for kind in (Kind.SCATTER, Kind.CONTRACT, Kind.REDUCE)
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
    if node.op.kind in (Kind.MAP, Kind.REDUCE, Kind.CONTRACT):
        own = natural(own_dims(node))
        return [use for at, operand in enumerate(node.inputs)
                for use in sources(operand, operand_index(node, at, own), opaque)]
    uses = [Use(use.value, use.index, False) for operand in node.inputs
            for use in sources(operand, natural(operand.shape), opaque)]
    if node.op.kind is Kind.GATHER:
        x, axis = node.inputs[0], searched_axis(node)
        own = natural(node.results[0].shape)
        place = None if axis is None else operand_place(node, (*own, symbol(SEARCHED)))
        if place is not None:  # in place, if the region has that axis
            rest = uses[len(list(sources(x, natural(x.shape), opaque))):]
            return [*sources(x, place, opaque), *rest]
    return uses


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

    def __init__(
        self, graph: Graph, limit: int, apart: frozenset[Node] = frozenset()
    ) -> None:
        self.graph, self.limit, self.apart = graph, limit, apart
        self.opaque = opaque_values(graph)
        self.regions: dict[int, Region] = {}
        self.home: dict[int, Region] = {}
        self.uses: dict[int, list[Use]] = {}
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
        """Whether both are apart from the rest, or neither is."""
        return (node in self.apart) == (region.nodes[0] in self.apart)

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
            if not (use.exact and _unify(use.index, region.index[id(use.value)], bound)):
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
        if node.op.kind is Kind.REDUCE:
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

    def merge(self, region: Region, other: Region) -> bool:
        """Join two regions if they share a space, read each other in place and stay acyclic."""
        if (len(region.nodes) + len(other.nodes) > self.limit
                or not self.together(other.nodes[0], region)
                or region.readers & other.ancestors or other.readers & region.ancestors):
            return False
        for wide, narrow in ((region, other), (other, region)):
            names = self._shared_axes(wide, narrow)
            if names is not None and _fits(wide, narrow, names):
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
                names = {f"@{at}": dim for at, dim in enumerate(reader.own[id(node)])}
                for use in self.reads_from(node, source):
                    here = tuple(substitute(dim, names) for dim in use.index)
                    there = source.index[id(use.value)]
                    pair = (there, here) if turned else (here, there)
                    if not (use.exact and _unify(*pair, bound)):
                        return None
        if len(set(bound.values())) != len(bound) or any(
                narrow.axes.get(old, old) != wide.axes.get(new) for old, new in bound.items()):
            return None
        _pair(narrow.axes, wide.axes, bound)
        return bound if bound.keys() >= narrow.axes.keys() and _in_order(
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


def runs_of(node: Node, own: Index) -> Runs:
    """The axes that a node at ``own`` sums over, as ``summed_runs`` groups them."""
    return tuple(tuple(str(own[at]) for at in run) for run in summed_runs(node))


def admits(region: Region, node: Node, own: Sequence[Dim | None]) -> bool:
    """Whether a node that reads a region in place may be computed there: the rule of its kind."""
    rule = _RULES.get(node.op.kind)
    return rule is not None and rule(region, node, own)


def _map_fits(region: Region, node: Node, own: Sequence[Dim | None]) -> bool:
    """Wherever a value of the region is: in full, or where axes have been reduced."""
    index = _closed(own)
    if index is None or not _in_order([str(dim) for dim in index if dim != 0], region):
        return False
    axes = axes_of(index)
    return axes >= region.par and axes in region.spaces


def _reduce_fits(region: Region, node: Node, own: Sequence[Dim | None]) -> bool:
    """Over what the region reduces already, or the first; after another one if that is short, so
    that it will be unrolled; after a contraction if a block of its rows can be kept."""
    index = _closed(own)
    if index is None or axes_of(index) not in region.spaces or not _in_order(
            [str(dim) for dim in index if dim != 0], region):
        return False
    runs = runs_of(node, index)
    if runs == region.reduced:
        return bool(runs) or Kind.CONTRACT not in region.kinds
    if not runs:
        return Kind.CONTRACT not in region.kinds
    axes = {axis for run in runs for axis in run}
    if Kind.CONTRACT in region.kinds:
        return not region.reduced and _rows_can_be_kept(region, node, axes)
    done = {axis for run in region.reduced for axis in run}
    short = product(region.axes[axis] for axis in done)
    rest = product(region.axes[axis] for axis in region.par - axes)
    return not done or (isinstance(short, int) and short <= SHORT and done.isdisjoint(axes)
                        and (not isinstance(rest, int) or rest >= MANY))


def _rows_can_be_kept(region: Region, node: Node, axes: set[str]) -> bool:
    """Whether a task can hold rows of a product that something is reduced along: the last axes,
    short enough, of a product with rows enough for several tasks."""
    length = product(region.axes[axis] for axis in axes)
    rows = product(extent for axis, extent in region.axes.items() if axis not in axes)
    return (isinstance(length, int) and length * node.inputs[0].dtype.itemsize <= ROW_BYTES
            and list(region.axes)[-len(axes):] == [a for a in region.axes if a in axes]
            and len(region.axes) > len(axes) and axes <= region.columns
            and (not isinstance(rows, int) or rows >= MANY))


def _contract_fits(region: Region, node: Node, own: Sequence[Dim | None]) -> bool:
    """Of rows that are kept, over the axis along which they were reduced, with new columns; or of
    a product so large that all else is little beside it."""
    if Kind.CONTRACT not in region.kinds or not is_chain(node):
        return False
    kept, order = contract_letters(node.attrs["dims"])[2], contract_order(node.attrs["dims"])
    place = dict(zip(order, own, strict=True))
    summed = [str(dim) for letter, dim in place.items() if letter not in kept and dim != 0]
    columns = [letter for letter in kept if place[letter] is None]
    rows = {str(place[letter]) for letter in kept if place[letter] not in (None, 0)}
    sizes = dict(zip(order, own_dims(node), strict=True))
    if len(columns) != 1 or not isinstance(sizes[columns[0]], int):
        return False
    if region.reduced:
        return summed == [axis for run in region.reduced for axis in run] and rows == region.par
    return (len(summed) == 1 and rows == region.product - set(summed)
            and is_large(region, node) and _length(region, node, summed) <= ROW_BYTES)


def _length(region: Region, node: Node, axes: Iterable[str]) -> int:
    """Bytes of a row along some axes."""
    length = product(region.axes[axis] for axis in axes)
    return length * node.inputs[0].dtype.itemsize if isinstance(length, int) else 1 << 62


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
    return isinstance(elements, int) and elements * itemsize >= LARGE


def _closed(own: Sequence[Dim | None]) -> Index | None:
    return None if any(dim is None for dim in own) else tuple(dim or 0 for dim in own)


def _gather_fits(region: Region, node: Node, own: Sequence[Dim | None]) -> bool:
    """From a value of the region, along the axis that it reduces: a maximum over the one hit."""
    index = _closed(own)
    return (index is not None and (str(index[-1]),) in region.reduced
            and axes_of(index[:-1]) in region.spaces and axes_of(index[:-1]) >= region.par
            and str(index[-1]) not in axes_of(index[:-1]))


_RULES: Mapping[Kind, Callable[[Region, Node, Sequence[Dim | None]], bool]] = {
    Kind.MAP: _map_fits, Kind.REDUCE: _reduce_fits, Kind.CONTRACT: _contract_fits,
    Kind.GATHER: _gather_fits,
}


def _fits(wide: Region, narrow: Region, names: Mapping[str, str]) -> bool:
    """Whether a region may be computed in the space of another: elementwise ones wherever the
    other has values, reductions over the same axes."""
    if Kind.SCATTER in wide.kinds | narrow.kinds:
        return False
    axes = frozenset(names.values())
    if Kind.CONTRACT in narrow.kinds:
        return _products_fit(wide, narrow, names)
    if narrow.plain:
        return axes >= wide.par and (wide.plain or any(
            axes == axes_of(at) for at in (*wide.own.values(), *wide.index.values())))
    reduced = tuple(tuple(names[axis] for axis in run) for run in narrow.reduced)
    return reduced == wide.reduced and axes == wide.axes.keys() and (
        Kind.CONTRACT not in wide.kinds)


def _products_fit(wide: Region, narrow: Region, names: Mapping[str, str]) -> bool:
    """Products of one shape, of which rows are kept anyway or which are too large to store."""
    axes = frozenset(names[axis] for axis in narrow.product)
    if not axes or axes != wide.product or frozenset(names.values()) != axes:
        return False
    reduced = tuple(tuple(names[axis] for axis in run) for run in narrow.reduced)
    if reduced not in ((), wide.reduced):
        return False
    return bool(wide.reduced) or is_large(wide, wide.nodes[0])


def _unify(here: Index, there: Index, bound: dict[str, str]) -> bool:
    """Bind the symbols of one index to those of another; False if they are not the same place."""
    for one, other in zip(here, there, strict=True):
        if one == other == 0:
            continue
        name, axis = plain_symbol(one), plain_symbol(other)
        if name is None or axis is None or bound.setdefault(name, axis) != axis:
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


def _in_order(names: Sequence[str], region: Region) -> bool:
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


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
