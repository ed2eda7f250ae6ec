"""Places that follow from the numbers of rounds are known before the program runs.

    for t0 in 30: for t1 in 30:                              for t0 in 30: for t1 in 30:
        %2 = add dim {t0}, 1; unwrapped %2                       %5 = slice %T {shape = (1, 1),
        %5 = gather %T, sub(%2, 1), add(dim {t1}, 1)                         start = (t0, t1 + 1)}

Sums and multiples of the numbers of rounds, of which there are as many as is known, have bounds.
Within these they do not leave 64 bits and lie in the array, so nothing of that is to be checked;
and elements at such places are views, which cost nothing and can be chosen from (``choose``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..ir.graph import Builder, Graph, Node, Value, constant_of, control_of, with_bodies
from ..ir.indices.index import Dim, Expr, symbols_of, terms_of
from ..ir.ops.control.region import Branching, Looping
from ..ir.ops.op import Kind
from ..ir.ops.table import OPS
from ..ir.record import record
from ..ir.types import I64
from .clone import Clone

_MOST = 2**63 - 1


@record(frozen=True)
class Place:
    """A number that is told by those of rounds, and what it is at least and at most."""

    expr: Dim
    low: int
    high: int


Counts = Mapping[str, int]  # of the rounds of the loops around, by their symbols
_Known = Mapping[Value, Place]


def known_places(graph: Graph) -> Graph:
    """The graph with views where loops read at places that their rounds tell."""
    return _in(graph, MappingProxyType({}), MappingProxyType({}))


def _in(graph: Graph, counts: Counts, outside: _Known) -> Graph:
    """``outside`` are the parameters that are known."""
    if not graph.nodes or (not counts and all(
            node.op.control is None for node in graph.nodes)):
        return graph
    known = {param: outside[param] for param in graph.params if param in outside}
    return _Walk(graph, counts, known).graph()


class _Walk:
    """One graph: what is known of its values so far."""

    def __init__(self, graph: Graph, counts: Counts, known: dict[Value, Place]) -> None:
        self.old, self.counts, self.known = graph, counts, known
        self.clone = Clone(graph)
        self.builder = Builder(self.clone.graph, OPS, share=False, fold=False)
        self.made: dict[Dim, Value] = {}

    def graph(self) -> Graph:
        """The new graph."""
        for value in self.old.params:
            self.clone.param(value)
        for value, place in [*self.known.items()]:
            self.clone.values[value] = self._made(self.old.nodes[0], place)
        for node in self.old.nodes:
            if node.op.control is not None:
                self.clone.node(node).attrs = self._bodies(node)
            elif not self._is_known(node) and not self._is_view(node):
                self.clone.node(node)
        return self.clone.finish()

    def _bodies(self, node: Node) -> dict[str, Any]:
        """The attributes of a node, with what is known in its bodies."""
        control = control_of(node)
        if isinstance(control, Looping):
            known = self._params(control.body, node.inputs, control.carried + control.scanned,
                                 control.index)
            if control.test is not None:
                known |= self._params(control.test, node.inputs, control.carried, control.index)
            return with_bodies(node, lambda body: _in(
                body, self._counts(control, body is control.test), known))
        if isinstance(control, Branching):
            known = self._params(control.then, node.inputs[1:]) | self._params(
                control.other, node.inputs[1:])
            return with_bodies(node, lambda body: _in(body, self.counts, known))
        return dict(node.attrs)

    def _counts(self, loop: Looping, tests: bool) -> Counts:
        """A test may be asked once more than there are rounds."""
        rest = {name: count for name, count in self.counts.items() if name != loop.index}
        if isinstance(loop.count, int) and loop.count > 0:
            rest[loop.index] = loop.count + tests
        return rest

    def _params(
        self, body: Graph, operands: Sequence[Value], first: int = 0, index: str = ""
    ) -> dict[Value, Place]:
        """The parameters of a body from number ``first`` on that are known, and say nothing of the
        number of another loop's round that is called ``index``, too."""
        pairs = zip(operands[first:], body.params[first:], strict=True)
        return {param: self.known[value] for value, param in pairs if value in self.known
                and index not in symbols_of(self.known[value].expr)}

    # -- numbers --------------------------------------------------------------------------------

    def _is_known(self, node: Node) -> bool:
        """Whether a node is a number that is told by rounds; then it stands for that."""
        if len(node.results) != 1 or node.results[0].type.shape or (
                node.results[0].type.dtype != I64) or node.after:
            return False
        form = _FORMS.get(node.op.name)
        if form is None:
            return False
        parts = [self._place(value) for value in node.inputs]
        if None in parts:
            return False
        place = self._bounded(form(node, [part.expr for part in parts if part is not None]))
        if place is None:
            return False
        self.known[node.results[0]] = place
        self.clone.values[node.results[0]] = self._made(node, place)
        return True

    def _place(self, value: Value) -> Place | None:
        number = constant_of(value)
        if isinstance(number, int) and not isinstance(number, bool):
            return Place(number, number, number)
        return self.known.get(value)

    def _bounded(self, expr: Dim | None) -> Place | None:
        """None for what is not linear in the numbers of rounds, or leaves 64 bits."""
        if not isinstance(expr, Expr):
            return None
        low = high = 0
        for monomial, scale in terms_of(expr):
            if not monomial:
                low, high = low + scale, high + scale
                continue
            name = str(monomial[0])
            if len(monomial) > 1 or name not in self.counts:
                return None
            last = (self.counts[name] - 1) * scale
            low, high = low + min(last, 0), high + max(last, 0)
        return Place(expr, low, high) if max(-low, high) <= _MOST else None

    def _made(self, node: Node, place: Place) -> Value:
        if place.expr not in self.made:
            with self.builder.like(node):
                self.made[place.expr] = self.builder.emit(
                    OPS["dim"], (), {"size": place.expr}, name=node.name).results[0]
        return self.made[place.expr]

    # -- reads ----------------------------------------------------------------------------------

    def _is_view(self, node: Node) -> bool:
        """Whether a node reads at known places of some axes; then these are a view."""
        if node.op.kind is not Kind.GATHER or "axes" not in node.attrs or node.after or any(
                value.type.shape for value in node.inputs[1:]):
            return False
        x, *indices = node.inputs
        axes = node.attrs["axes"]
        starts = {axis: start for axis, value in zip(axes, indices, strict=True)
                  if (start := self._start(value, x.shape[axis])) is not None}
        if not starts:
            return False
        new = self.clone.values[x]
        with self.builder.like(node):
            part = self.builder.slice(
                new, start=tuple(starts.get(axis, 0) for axis in range(len(x.shape))),
                step=(1,) * len(x.shape),
                shape=tuple(1 if axis in starts else dim for axis, dim in enumerate(x.shape)))
            part = self.builder.reshape(part, shape=tuple(
                dim for axis, dim in enumerate(x.shape) if axis not in starts))
            rest = [(axis - sum(other < axis for other in starts), self.clone.values[value])
                    for axis, value in zip(axes, indices, strict=True) if axis not in starts]
            if rest:
                part = self.builder.emit(
                    node.op, (part, *(value for _, value in rest)),
                    {**node.attrs, "axes": tuple(axis for axis, _ in rest)}).results[0]
        self.clone.values[node.results[0]] = part
        return True

    def _start(self, value: Value, extent: Dim) -> Dim | None:
        """Where a view begins that has the element at a place; None if that is not known."""
        place = self._place(value)
        if place is None or not isinstance(extent, int):
            return None
        if place.low >= 0 and place.high < extent:
            return place.expr
        return place.expr + extent if place.low >= -extent and place.high < 0 else None


def _scaled(node: Node, parts: Sequence[Dim]) -> Dim | None:
    one, other = parts
    return one * other if isinstance(one, int) or isinstance(other, int) else None


_FORMS: Mapping[str, Callable[[Node, Sequence[Dim]], Dim | None]] = MappingProxyType({
    "dim": lambda node, parts: node.attrs["size"],
    "add": lambda node, parts: parts[0] + parts[1],
    "sub": lambda node, parts: parts[0] - parts[1],
    "neg": lambda node, parts: -parts[0],
    "mul": _scaled,
    "unwrapped": lambda node, parts: parts[0],
})
