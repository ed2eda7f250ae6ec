"""Stores that end a branch are stores behind it: of an element, not of the array around it.

    %y = cond %c, %x {                            %v, %k = cond %c, %x {
      then:  scatter %x, 7, %i              ==>     then:  7, %i
      other: %x                                     other: slice %x {start = 0}; 0
    }                                             }
                                                  %y = scatter %x, %v, %k

Ways that both store are one store, and an element that one of them stores at the same place in all
rounds of a loop can be carried by itself (``promote``): a way without a store stores what is there
once more, or, where rounds do not tell that the place is in the array, the first element. So are
known parts. Another store of one way, at a place that values tell, stays there, where a round
without it waits for nothing.
What is read on the ways is read from the array that came in, as it was.

    a store     scatter of elements or rows at single places, or an update of a known region
    its chain   as many as a way ends with, of which each is read by the next one only

Both chains must begin at the same parameter, and the shorter one must be like the end of the other:
its stores become one with them, and what is stored again comes before them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ...ir.graph import Builder, Graph, Node, Value, can_fail, control_of, writes
from ...ir.indices.index import Dim, is_natural, product
from ...ir.indices.rounds import Counts, counts_inside
from ...ir.ops.control.region import Branching, Looping
from ...ir.ops.table import OPS
from ...ir.record import record
from ...ir.types import BOOL, TensorType
from ..clone import Clone, map_branches
from ..ranges.boxes import box, of_some
from ..simplify.written import Update, update_of
from .hoist import unchanging

MOST = 8    # stores of one way
SMALL = 64  # elements, which are stored once more whatever there are; of others one in PART
PART = 4


@record(frozen=True)
class Store:
    """One store: what is stored, and where. ``region`` is known, or else ``indices`` are values."""

    value: Value
    indices: tuple[Value, ...]
    axes: tuple[int, ...]
    region: Update | None
    node: Node

    def place(self) -> object:
        """What two stores have in common that may become one."""
        region = self.region
        where = None if region is None else (region.low, region.step, region.count)
        return where, self.axes, self.value.type, tuple(index.type for index in self.indices)

    def has_first(self) -> bool:
        """Whether there surely is an element to be stored once more."""
        shape = self.node.results[0].type.shape
        sizes = shape if self.region is not None else [shape[axis] for axis in self.axes]
        return all(isinstance(size, int) and size > 0 for size in sizes)


@record(frozen=True)
class Chain:
    """The stores with which a way ends, and the number of the parameter that they begin with."""

    param: int
    stores: tuple[Store, ...]


def hoist_stores(graph: Graph) -> Graph:
    """The graph in which branches give what they store; in bodies as well, innermost first."""
    places = dict(_places(graph, (), "", {}))
    return map_branches(graph, lambda clone, node, control: _split(
        clone, node, control, places[node]))


def _places(
    graph: Graph, given: Iterable[Value], index: str, counts: Counts
) -> Iterator[tuple[Node, _Places]]:
    """For each branch, what its indices may be made of. ``given`` is the same in all rounds of the
    loop around, whose number is ``index``; ``counts`` are of all loops around."""
    same = unchanging(graph, given, index) if index else set[Value]()
    for node in graph.nodes:  # recursion is by nesting of bodies only
        control = control_of(node)
        if isinstance(control, Looping):
            first = control.carried + control.scanned
            for body in (control.body, control.test):
                if body is not None:
                    yield from _places(body, body.params[first:], control.index, counts_inside(
                        counts, control.index, None if control.count is None
                        else of_some(control.count)))
        elif isinstance(control, Branching):
            kept = [at for at, value in enumerate(node.inputs[1:]) if value in same]
            yield node, _Places(frozenset(kept), index, counts)
            for body in (control.then, control.other):
                yield from _places(body, [body.params[at] for at in kept], index, counts)
        else:
            for body in node.attrs.values():
                if isinstance(body, Graph):
                    yield from _places(body, (), "", {})


@record(frozen=True)
class _Places:
    """The operands of a branch, by number, that are the same in all rounds of the loop around, the
    number of that (empty if there is none), and how many rounds the loops around have."""

    kept: frozenset[int]
    index: str
    counts: Counts

    def have(self, body: Graph, store: Store) -> bool:
        """Whether a store in a way is of a known part, or at the same place in all rounds."""
        return store.region is not None or (self.index != "" and unchanging(
            body, [body.params[at] for at in self.kept], self.index).issuperset(store.indices))

    def told(self, store: Store) -> tuple[Dim, ...] | None:
        """The indices of a store that rounds tell, if they are in the array in all of them."""
        shape, found = store.node.results[0].shape, list[Dim]()
        for axis, index in zip(store.axes, store.indices, strict=True):
            if index.node is None or index.node.op is not OPS["dim"]:
                return None
            at: Dim = index.node.attrs["size"]
            low, high = box(at, self.counts)
            if low is None or high is None or not (
                    is_natural(low) and is_natural(shape[axis] - 1 - high)):
                return None
            found.append(at)
        return tuple(found)


def _split(clone: Clone, node: Node, control: Branching, places: _Places) -> bool:
    chains = _chains(control, node, places)
    if chains:
        _Split(clone, node, control, chains, places).write()
    return bool(chains)


def _chains(
    control: Branching, node: Node, places: _Places
) -> dict[int, tuple[Chain, Chain]]:
    """By the numbers of results, the chains of both ways that can leave the branch."""
    ways = (control.then, control.other)
    reads = [_reads(body) for body in ways]
    found = {}
    for at, result in enumerate(node.results):
        if not result.type.shape:
            continue
        then, other = (_chain(body, at, read) for body, read in zip(ways, reads, strict=True))
        if then is None or other is None or then.param != other.param or not (
                then.stores or other.stores) or not _can_be_one(
                    then.stores, other.stores, places):
            continue
        least = min(len(then.stores), len(other.stores))
        if all(places.have(body, store) for body, chain in zip(ways, (then, other), strict=True)
               for store in chain.stores[:len(chain.stores) - least]):
            found[at] = then, other
    return found


def _reads(body: Graph) -> Counter[Value]:
    """How often each value is read; a node that others wait for is read once more."""
    reads = Counter(body.results)
    for node in body.nodes:
        reads.update(node.inputs)
        reads.update(value for earlier in node.after for value in earlier.results)
    return reads


def _chain(body: Graph, at: int, reads: Counter[Value]) -> Chain | None:
    value, stores = body.results[at], list[Store]()
    while (store := _store(value)) is not None and reads[value] == 1 and len(stores) < MOST:
        stores.append(store)
        value = store.node.inputs[0] if store.region is None else store.region.base
    if value not in body.params:
        return None
    return Chain(body.params.index(value), tuple(reversed(stores)))


def _store(value: Value) -> Store | None:
    """What a value is, if it is a small store."""
    node = value.node
    if node is None or not value.type.shape:
        return None
    if node.op is OPS["scatter"]:
        _, stored, *indices = node.inputs
        axes: tuple[int, ...] = node.attrs["axes"]
        found = Store(stored, tuple(indices), axes, None, node)
        if any(index.type.shape for index in indices):
            return None
    else:
        region = update_of(value)
        if region is None or region.patch is None:
            return None
        found = Store(region.patch, (), (), region, node)
    size, whole = product(found.value.shape), product(value.shape)
    if not isinstance(size, int) or (
            size > SMALL and (not isinstance(whole, int) or size * PART > whole)):
        return None
    return found


def _can_be_one(then: Sequence[Store], other: Sequence[Store], places: _Places) -> bool:
    least = min(len(then), len(other))
    first, second = (stores[len(stores) - least:] for stores in (then, other))
    alone = (*then[:len(then) - least], *other[:len(other) - least])
    return all(store.has_first() or places.told(store) for store in alone) and all(
        one.place() == two.place() for one, two in zip(first, second, strict=True))


class _Split:
    """A branch as one that gives what is stored, and the stores."""

    def __init__(self, clone: Clone, node: Node, control: Branching,
                 chains: dict[int, tuple[Chain, Chain]], places: _Places) -> None:
        self.clone, self.node, self.chains, self.places = clone, node, chains, places
        self.kept = [at for at in range(len(node.results)) if at not in chains]
        self.bodies = [self._body(way, body) for way, body in enumerate(
            (control.then, control.other))]

    def _stores(self, at: int, way: int) -> list[tuple[Store, bool]]:
        """Those of both chains of a result, and whether each is one of that way."""
        own, their = self.chains[at][way].stores, self.chains[at][1 - way].stores
        more = len(their) - len(own)
        return [*((store, False) for store in their[:max(more, 0)]),
                *((store, True) for store in own)]

    def _body(self, way: int, body: Graph) -> Graph:
        """A way that gives what it does not store, and for each store the value and the place."""
        clone = Clone(body)
        for param in body.params:
            clone.param(param)
        gone = {store.node for at in self.chains for store, mine in self._stores(at, way) if mine}
        for inner in body.nodes:
            if inner not in gone:
                clone.node(inner)
        b = Builder(clone.graph, OPS, share=False, fold=False)
        results = [clone.values[body.results[at]] for at in self.kept]
        for at in self.chains:
            param = clone.values[body.params[self.chains[at][way].param]]
            for store, mine in self._stores(at, way):
                results += ([clone.values[value] for value in (store.value, *store.indices)]
                            if mine else _again(b, param, store, self.places.told(store)))
        clone.graph.results = results
        _drop_unread(clone.graph)
        return clone.graph

    def write(self) -> None:
        """Append the branch, and behind it the stores."""
        node, clone = self.node, self.clone
        split = Node(node.op, node.inputs, {
            **node.attrs, "then": self.bodies[0], "other": self.bodies[1]}, node.name,
            device=node.device, locs=node.locs, after=node.after)
        split.results = tuple(Value(value.type, f"{node.name}:{at}", split, at)
                              for at, value in enumerate(self.bodies[0].results))
        copy = clone.node(split)
        clone.nodes[node] = copy
        given = iter(copy.results)
        for at in self.kept:
            clone.values[node.results[at]] = next(given)
        b = Builder(clone.graph, OPS, share=False, fold=False)
        with b.like(node):
            for at, (then, other) in self.chains.items():
                array = clone.values[node.inputs[1 + then.param]]
                for store in max(then.stores, other.stores, key=len):
                    b.locs = store.node.locs
                    value, *indices = (next(given) for _ in (store.value, *store.indices))
                    array = _stored(b, array, store, value, indices)
                clone.values[node.results[at]] = array


def _drop_unread(body: Graph) -> None:
    """Leave out what only the stores have read: masks and patches of the size of the array."""
    read = set(body.results)
    kept: list[Node] = []
    for node in reversed(body.nodes):
        if read.isdisjoint(node.results) and node.op.control is None and not can_fail(node) and (
                not writes(node)):
            continue
        read.update(node.inputs)
        read.update(value for earlier in node.after for value in earlier.results)
        kept.append(node)
    body.nodes[:] = reversed(kept)


def _again(
    b: Builder, array: Value, store: Store, told: tuple[Dim, ...] | None
) -> list[Value]:
    """What a store of something that is there already stores, and where: at the place that rounds
    tell, or at the first one."""
    region, shape = store.region, array.shape
    if region is not None:
        return [b.slice(array, start=region.low, step=region.step, shape=region.count)]
    start = dict(zip(store.axes, told or (0,) * len(store.axes), strict=True))
    part = b.slice(
        array, start=tuple(start.get(axis, 0) for axis in range(len(shape))),
        step=(1,) * len(shape),
        shape=tuple(1 if axis in start else size for axis, size in enumerate(shape)))
    return [b.reshape(part, shape=store.value.shape),
            *(b.emit(OPS["dim"], (), {"size": at}).results[0] if told else b.full(0, index.type)
              for at, index in zip(start.values(), store.indices, strict=True))]


def _stored(b: Builder, array: Value, store: Store, value: Value, indices: list[Value]) -> Value:
    region = store.region
    made: Value
    if region is None:
        made = b.scatter(array, value, *indices, axes=store.axes)
    else:
        high = tuple(size - part[-1] - 1 for size, part in zip(
            array.shape, map(region.part, range(len(region.low))), strict=True))
        frame = {"low": region.low, "high": high, "interior": tuple(by - 1 for by in region.step)}
        there = b.pad(b.full(True, TensorType(BOOL, region.count)), value=0, **frame)
        made = b.select(there, b.pad(value, value=0, **frame), array)
    return made
