"""What a loop writes to a few elements of a large array is stored there: no array is made anew.

    body (%c: f64[1000])                                  body (%c: f64[1000])
      %2 = select(pad(true), pad(%1), %c)  ->               %2 = scatter %c, %1, 2
                                                            c[2] += x, each round
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.graph import Builder, Graph, Node, Value, control_of, with_bodies
from ..ir.indices.index import product
from ..ir.ops.control.region import Branching, Looping
from ..ir.ops.table import OPS
from ..ir.types import I64, TensorType
from .clone import Clone
from .simplify.written import Region, region_of

FEW = 4  # elements of an array for each that is written, from which on it is stored


def stored_in_rounds(graph: Graph) -> Graph:
    """The graph with such stores in the bodies of loops."""
    return _stored(graph, ())


def _stored(graph: Graph, own: Sequence[int]) -> Graph:
    """``own`` are the numbers of the parameters that a loop carries."""
    if not own and all(node.op.control is None for node in graph.nodes):
        return graph
    return _Stores(graph, own).graph()


class _Stores:
    """The walk over one graph. What is to be stored waits until somebody reads the array, so that
    what is read of it before is read before."""

    def __init__(self, graph: Graph, own: Sequence[int]) -> None:
        self.old, self.clone = graph, Clone(graph)
        self.builder = Builder(self.clone.graph, OPS, share=False, fold=False)
        # Memory of the loop's, and what becomes of it.
        self.own = {graph.params[number] for number in own}
        self.waiting: dict[Value, tuple[Node, Region]] = {}

    def graph(self) -> Graph:
        """The new graph."""
        self.clone.params()
        for node in self.old.nodes:
            update = region_of(node.results[0]) if node.op is OPS["select"] and (
                not node.after) else None
            if update is not None and update.base in self.own and _is_small(update):
                self.own.add(node.results[0])
                self.waiting[node.results[0]] = node, update
                continue
            for value in node.inputs:
                self._store(value)
            self._copy(node)
            if node.op in (OPS["scatter"], OPS["scatter_add"]) and node.inputs[0] in self.own:
                self.own.add(node.results[0])
        for value in self.old.results:
            self._store(value)
        return self.clone.finish()

    def _store(self, value: Value) -> None:
        """Store what waits to become a value."""
        chain = []
        while value in self.waiting:
            chain.append((value, *self.waiting.pop(value)))
            value = chain[-1][2].base
        for result, node, update in reversed(chain):
            with self.builder.like(node):
                self.clone.values[result] = self._patched(node, update)

    def _patched(self, node: Node, update: Region) -> Value:
        if update.patch is not None:
            patch = self.clone.values[update.patch]
        else:
            patch = self.builder.full(
                update.number, TensorType(node.results[0].dtype, update.count))
        return store_patch(self.builder, self.clone.values[update.base], patch, update, {})

    def _copy(self, node: Node) -> None:
        copy = self.clone.node(node)
        control = control_of(node)
        if isinstance(control, Looping):
            copy.attrs = with_bodies(node, lambda graph: _stored(
                graph, range(control.carried) if graph is control.body else ()))
            self.own.update(result for result, value in zip(
                node.results[:control.carried], node.inputs, strict=False) if value in self.own)
        elif isinstance(control, Branching):
            own = [number for number, value in enumerate(node.inputs[1:]) if value in self.own]
            copy.attrs = with_bodies(node, lambda graph: _stored(graph, own))
            types = {node.inputs[1 + number].type for number in own}
            self.own.update(value for value in node.results if value.type in types)
        elif control is not None:
            copy.attrs = with_bodies(node, lambda graph: _stored(graph, ()))


def _is_small(update: Region) -> bool:
    """Whether a region has few elements, or so many as each round says."""
    whole, part = update.base.type.size, product(update.count)
    return isinstance(whole, int) and (not isinstance(part, int) or 0 < part * FEW <= whole)


def store_patch(
    b: Any, array: Value, patch: Value, update: Region, at: Mapping[int, Value]
) -> Value:
    """An array with a patch stored: at an index of each of the axes ``at``, and in the others,
    which are those of the update, at its places. ``b`` builds nodes."""
    left = [axis for axis in range(len(array.shape)) if axis not in at]
    sizes = [array.shape[axis] for axis in left]
    one = [number for number, size in enumerate(sizes) if update.count[number] == 1 != size]
    some = [number for number, size in enumerate(sizes)
            if update.count[number] != size and number not in one]
    rest = [number for number in range(len(left)) if number not in one and number not in some]
    shape = tuple([update.count[number] for number in some])
    axes, indices = [*at], [*at.values()]
    for number in one:
        axes.append(left[number])
        low = update.low[number]
        indices.append(b.dim(size=low) if not isinstance(low, int) else
                       b.full(low, TensorType(I64, ())))
    indices = [b.broadcast(index, shape=shape, axes=()) if shape else index for index in indices]
    for place, number in enumerate(some):
        axes.append(left[number])
        every = b.iota(axis=0, dtype=I64, shape=(sizes[number],))
        places = b.slice(every, start=(update.low[number],), step=(update.step[number],),
                         shape=(update.count[number],))
        indices.append(b.broadcast(places, shape=shape, axes=(place,)))
    kept = [number for number in range(len(left)) if number not in one]
    if one:
        patch = b.reshape(patch, shape=tuple([update.count[number] for number in kept]))
    order = tuple([kept.index(number) for number in (*some, *rest)])
    if order != tuple(range(len(order))):
        patch = b.transpose(patch, perm=order)
    inside = ("",) * len(at) + ("all",) * (len(axes) - len(at))
    made: Value = b.scatter(array, patch, *indices, axes=tuple(axes), inside=inside)
    return made
