"""Long sums in parts: a sum of millions of elements for one number is work for every core.

The order of a sum is chunks of 1024 terms, added pairwise. So groups of a power of two of chunks
can be summed apart, and their sums added pairwise, without any bit changing:

    s = sum x[n]   ->   p = sum x[:m*g] as [m, g], over g      m parts of g terms
                        t = sum x[m*g:]                        the rest
                        s = ((p[0] + p[1]) + (p[2] + p[3])) + t

What x is made of, element by element and for this sum alone, is cut instead of x. So two sums of
one array read it at the same places, and are found to be one loop: ``sum x`` and ``sum x*x``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.graph import Builder, Graph, Node, Value
from ...ir.indices.index import product
from ...ir.indices.space import summed_runs
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ..clone import Clone

LONG = 1 << 18    # elements of an operand, below which one core is enough
CHUNK = 1024      # terms of the order of sums that are added pairwise
MOST_PARTS = 16
COLUMNS = 256     # of a sum down columns that are one task
TASKS = 8         # that a sum has anyway: enough for the cores


def with_long_sums_split(graph: Graph) -> Graph:
    """The graph in which long sums that would be few tasks are sums of parts."""
    chosen = {id(node): parts for node in graph.nodes if (parts := _parts(node))}
    if not chosen:
        return graph
    readers: dict[int, int] = {}
    for node in graph.nodes:
        for value in dict.fromkeys(node.inputs):
            readers[id(value)] = readers.get(id(value), 0) + 1
    for value in graph.results:
        readers[id(value)] = readers.get(id(value), 0) + 1
    return _Splitter(graph, chosen, readers).graph()


def _parts(node: Node) -> int:
    """The terms of one part of a sum that is to be split; 0 for every other node."""
    if node.op.kind is not Kind.REDUCE or node.op.combine != "add":
        return 0
    (operand,), runs = node.inputs, summed_runs(node)
    dims = [dim for dim in operand.shape if isinstance(dim, int)]
    if len(runs) != 1 or len(dims) != len(operand.shape):
        return 0
    terms = product(dims[at] for at in runs[0])
    kept = [dim for at, dim in enumerate(dims) if at not in runs[0]]
    assert isinstance(terms, int)
    rows = product(kept)
    if runs[0][-1] != max(at for at, dim in enumerate(dims) if dim != 1):  # down columns
        rows = product(kept[:-1]) * -(-kept[-1] // COLUMNS)
    assert isinstance(rows, int)
    if product(dims) < LONG or rows >= TASKS or terms < 4 * CHUNK:  # type: ignore[operator]
        return 0
    part = CHUNK
    while part * MOST_PARTS < terms:
        part *= 2
    return part


class _Splitter:
    """The new graph under construction."""

    def __init__(self, graph: Graph, chosen: dict[int, int], readers: dict[int, int]) -> None:
        self.chosen = chosen
        self.clone = Clone(graph)
        self.builder = Builder(self.clone.graph, OPS, share=False, fold=False)
        self.own: set[Node] = set()  # what only a chosen sum is made of
        pending = [value for node in graph.nodes if id(node) in chosen for value in node.inputs]
        while pending:
            value = pending.pop()
            node = value.node
            if node is not None and node.op.kind is Kind.MAP and node.inputs and not (
                    node.after or node.op.check is not None or readers[id(value)] > 1):
                self.own.add(node)
                pending += node.inputs

    def graph(self) -> Graph:
        clone = self.clone
        for param in clone.old.params:
            clone.param(param)
        for node in clone.old.nodes:
            if id(node) in self.chosen:
                with self.builder.like(node):
                    clone.values[node.results[0]] = self._split(node, self.chosen[id(node)])
                clone.nodes[node] = clone.graph.nodes[-1]
            elif node not in self.own:
                clone.node(node)
        return clone.finish()

    def _split(self, node: Node, part: int) -> Value:
        b = self.builder
        (run,) = summed_runs(node)
        operand = node.inputs[0]
        terms = product(operand.shape[at] for at in run)
        assert isinstance(terms, int)
        before, after = operand.shape[:run[0]], operand.shape[run[-1] + 1:]
        whole = (terms - 1) // part  # parts but for the rest, which is not empty
        axis = len(before)

        def piece(value: Value, first: int, count: int) -> Value:
            line = b.reshape(value, shape=(*before, terms, *after))
            rank = len(line.shape)
            start = tuple(first if at == axis else 0 for at in range(rank))
            some: Value = b.slice(line, start=start, step=(1,) * rank,
                                  shape=(*before, count, *after))
            return some

        many = self._cut(operand, lambda value: b.reshape(
            piece(value, 0, whole * part), shape=(*before, whole, part, *after)))
        sums = b.sum(many, axes=(axis + 1,))
        rest = b.sum(self._cut(operand, lambda value: piece(
            value, whole * part, terms - whole * part)), axes=(axis,))
        kept = sums.shape
        values = [b.reshape(
            b.slice(sums, start=tuple(number if at == axis else 0 for at in range(len(kept))),
                    step=(1,) * len(kept), shape=(*before, 1, *after)), shape=rest.shape)
            for number in range(whole)]
        total, shape = _pairwise(b, [*values, rest]), node.results[0].shape
        same: Value = total if total.shape == shape else b.reshape(total, shape=shape)
        return same

    def _cut(self, value: Value, cut: Callable[[Value], Value]) -> Value:
        """A piece of a value, computed from pieces of what it is made of."""
        made: dict[Value, Value] = {}
        stack = [value]
        while stack:
            top = stack[-1]
            node = top.node if top.node in self.own else None
            missing = [operand for operand in node.inputs if operand not in made] if node else []
            if not missing:
                if node is None:
                    made[top] = cut(self.clone.values[top])
                else:
                    with self.builder.like(node):
                        inputs = [made[operand] for operand in node.inputs]
                        made[top] = self.builder.emit(node.op, inputs, node.attrs).results[0]
                stack.pop()
            stack += missing
        return made[value]


def _pairwise(b: Builder, values: Sequence[Value]) -> Value:
    """Neighbours added, level by level; an odd last one goes up as it is."""
    while len(values) > 1:
        values = [b.add(values[at], values[at + 1]) if at + 1 < len(values) else values[at]
                  for at in range(0, len(values), 2)]
    return values[0]
