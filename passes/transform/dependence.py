"""Which values depend on some parameters of a graph, through control flow.

What a loop carries depends on them as soon as it does after some round, so its body is looked at
until nothing is added:

    h, y = scan(lambda h, x: (h + x, x * w))     x varies: h and y do;  only w: y does
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import zip_longest

from ...ir.graph import Graph, Node, Value, control_of
from ...ir.indices.index import symbols_of
from ...ir.ops.control.region import Branching, Calling, Custom, Looping
from ...ir.ops.op import Kind
from ...ir.plans.partition import symbols_of_node
from ...ir.record import record

Passes = Callable[[Node], Sequence[bool]]


def differentiable(node: Node) -> Sequence[bool]:
    """Which results of a node have a derivative, if an operand varies."""
    return [node.op.differentiable and value.dtype.is_inexact for value in node.results]


def everything(node: Node) -> Sequence[bool]:
    """All results of a node differ if an operand does."""
    return [True] * len(node.results)


@record(frozen=True)
class Dependence:
    """``passes`` says which results of a node that holds no graph an operand reaches. ``whole``:
    what a loop carries has one form in all rounds, so what it begins with counts at the end; and
    what counts on a size depends on the number that has become that size."""

    passes: Passes
    whole: bool = False

    def of_nodes(self, nodes: Iterable[Node], varying: Iterable[Value]) -> set[Value]:
        """The values that depend on the given ones, and these themselves."""
        found, sizes = set(varying), set[str]()
        for node in nodes:
            given = [value in found for value in node.inputs]
            if self.whole and node.op.kind is Kind.EXTENT and any(given):
                sizes |= symbols_of(node.attrs["size"])
            if sizes and not sizes.isdisjoint(symbols_of_node(node)):
                found.update(node.results)
            elif any(given):
                found.update(value for value, depends in zip(
                    node.results, self.of_results(node, given), strict=True) if depends)
        return found

    def of_graph(self, graph: Graph, given: Sequence[bool]) -> list[bool]:
        """Which results depend on the marked parameters."""
        marked = [value for value, mark in zip(graph.params, given, strict=True) if mark]
        found = self.of_nodes(graph.nodes, marked)
        return [value in found for value in graph.results]

    def of_results(self, node: Node, given: Sequence[bool]) -> list[bool]:
        """Which results of a node depend on the marked operands."""
        match control_of(node):
            case None:
                return list(self.passes(node)) if any(given) else [False] * len(node.results)
            case Branching(then, other):
                both = [self.of_graph(body, given[1:]) for body in (then, other)]
                return [(given[0] and passes) or any(either) for passes, *either in zip(
                    self.passes(node), *both, strict=True)]
            case Looping() as loop:
                inside = self.in_body(loop, given)
                if self._rounds_differ(loop, inside):
                    return [True] * len(node.results)
                found = self.of_graph(loop.body, inside)
                if self.whole:
                    return [*inside[:loop.carried], *found[loop.carried:]]
                if loop.test is None and isinstance(loop.count, int) and loop.count > 0:
                    return found
                return [  # without a round the first values are the last ones
                    after or (at < loop.carried and first and passes)
                    for at, (after, first, passes) in enumerate(
                        zip_longest(found, given[:loop.carried], self.passes(node)))]
            case Calling(custom=Custom()):  # its gradient is not that of its body
                return list(self.passes(node)) if any(given) else [False] * len(node.results)
            case called:
                return self.of_graph(called.body, given)

    def in_body(self, loop: Looping, given: Sequence[bool]) -> list[bool]:
        """Which parameters of the body of a loop depend on the marked operands, in some round."""
        marks = list(given)
        while True:
            carried = [True] * loop.carried if self._rounds_differ(
                loop, marks) else self.of_graph(loop.body, marks)[:loop.carried]
            more = [before or after for before, after in zip(marks, carried, strict=False)]
            if more == marks[:loop.carried]:
                return marks
            marks[:loop.carried] = more


    def _rounds_differ(self, loop: Looping, inside: Sequence[bool]) -> bool:
        """Whether the marks say how often a loop goes round, and so all that it gives."""
        return loop.test is not None and self.of_graph(loop.test, inside)[0]


EVERYTHING = Dependence(everything, whole=True)
DERIVATIVES = Dependence(differentiable)


def active(nodes: Iterable[Node], leaves: Collection[Value]) -> set[Value]:
    """The values that have a derivative by some of the leaves, and the leaves."""
    return DERIVATIVES.of_nodes(nodes, leaves)


def reached(body: Graph, params: Collection[int]) -> set[int]:
    """The results of a body, by number, that have a derivative by these parameters."""
    found = active(body.nodes, [body.params[at] for at in params])
    return {at for at, value in enumerate(body.results) if value in found}


def spread(loop: Looping, operands: Collection[int]) -> set[int]:
    """These parameters of the body of a loop, and what it carries that comes to depend on them."""
    marks = [at in operands for at in range(len(loop.body.params))]
    return {at for at, mark in enumerate(DERIVATIVES.in_body(loop, marks)) if mark}
