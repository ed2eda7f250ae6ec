"""Forward-mode differentiation, graph to graph: a tangent beside each value that has one.

``jvp`` walks the nodes between inputs and outputs in order and puts the nodes of tangents between
them. The rules follow from the kind of an op, and for all that is left from its gradient:

    linear (views, gathers, sums, ...)   dy = op(dx)
    products of several (contractions)   dy = op(da, b) + op(a, db)
    elementwise                          dy = grad(dx): a diagonal matrix is its own transpose
    else                                 the gradient is linear in its cotangent g, so the gradient
                                         of <grad(g), dx> with respect to g is the tangent

Control flow computes both: its bodies get parameters and results for tangents.

    h, y = scan h0, xs {carried = 1}  =>  h, dh, y, dy = scan h0, dh0, xs, dxs {carried = 2}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.diagnose import error
from ...ir.graph import Builder, Graph, Node, Value, control_of
from ...ir.ops.control.region import Branching, Calling, Custom, Looping
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ..clone import Clone
from ..control.bodies import live_values
from . import reverse
from .dependence import DERIVATIVES
from .emit import emit_graph
from .support import Support, kept_zero, known_here
from .through import NOTHING, mask_through

Tangent = Value | None

_LINEAR = (Kind.VIEW, Kind.GATHER, Kind.SCATTER, Kind.COMPRESS, Kind.COMPLEX)


def jvp(
    builder: Builder, outputs: Sequence[Value], inputs: Sequence[Value],
    tangents: Sequence[Tangent],
) -> list[Tangent]:
    """The derivative of each output along ``tangents``; None where there is no path.

    The tangents must be computed before anything that depends on the inputs. Nodes are added
    between those of the graph; nodes of control flow are extended in place. Raises DTypeError
    (W111) for inputs that are not floating-point, ShapeError (W102) for a tangent of another type.
    """
    reverse.check_inputs(inputs)
    for value, tangent in zip(inputs, tangents, strict=True):
        if tangent is not None and tangent.type != value.type:
            raise error("W102", f"the tangent of {value.name} must have its type, {value.type}",
                        types=[tangent.type])
    known = {value: tangent for value, tangent in zip(inputs, tangents, strict=True)
             if tangent is not None}
    _Forward(builder, known).walk(outputs)
    return [known.get(value) for value in outputs]


class _Forward:
    """A graph to which tangents are added; ``known`` has those of its values, ``masks`` the masks
    of those of which parts are left out."""

    def __init__(self, builder: Builder, known: dict[Value, Value]) -> None:
        self.builder, self.known = builder, known
        self.masks: dict[Value, Support] = {}

    def walk(self, outputs: Sequence[Value]) -> None:
        graph = self.builder.graph
        varying = DERIVATIVES.of_nodes(graph.nodes, self.known)
        live = live_values(graph, outputs)
        wanted = [node for node in graph.nodes if any(
            value in varying and value in live and value not in self.known
            for value in node.results)]
        if not wanted:
            return
        first = graph.nodes.index(wanted[0])
        todo, between = graph.nodes[first:], set(wanted)
        del graph.nodes[first:]
        for node in todo:
            if node not in between:
                graph.nodes.append(node)
                continue
            with self.builder.like(node, "_tangent"):
                if node.op.control is not None:
                    self._control(node)
                    continue
                graph.nodes.append(node)
                for value, tangent in zip(node.results, self._tangents(node, live), strict=True):
                    if tangent is not None and value not in self.known:
                        mask = self._mask(node)
                        if mask is not None:
                            self.masks[value] = mask
                            tangent = self._kept_zero(node, tangent, mask)
                        self.known[value] = tangent

    def _mask(self, node: Node) -> Support | None:
        """Of the tangent of a node's result, where it is not 0 because something else was taken."""
        return mask_through(self.builder, node, node.inputs, [
            self.masks.get(value) if value in self.known else NOTHING for value in node.inputs])

    def _kept_zero(self, node: Node, tangent: Value, mask: Support) -> Value:
        """A slope that is infinite there makes NaN of 0."""
        given = [self.known.get(value) for value in node.inputs]
        return kept_zero(self.builder, node, given, tangent, mask)

    def _tangents(self, node: Node, live: set[Value]) -> Sequence[Tangent]:
        """The tangents of the results of a node, of which some operands have one."""
        given = [self.known.get(value) for value in node.inputs]
        for at, operand in node.op.refused.items():
            if given[at] is not None:
                raise reverse.refusal(node, operand)
        kind = node.op.kind
        if kind in _LINEAR or (kind is Kind.REDUCE and node.op.combine == "add"):
            return [self._linear(node, given)]
        if kind is Kind.CONTRACT:
            return [self._sum(self._with(node, at, tangent)
                              for at, tangent in enumerate(given) if tangent is not None)]
        if kind is Kind.MAP and all(value.dtype == node.results[0].dtype for value, tangent in zip(
                node.inputs, given, strict=True) if tangent is not None):
            return [self._elementwise(node, given)]
        return self._transposed(node, given, live)

    def _linear(self, node: Node, given: Sequence[Tangent]) -> Value:
        """The op itself on tangents; what it puts between elements has none."""
        operands = [
            tangent if tangent is not None else self.builder.full(0.0, value.type)
            if value.dtype.is_inexact else value
            for value, tangent in zip(node.inputs, given, strict=True)]
        attrs = {**node.attrs, "value": 0.0} if "value" in node.attrs else node.attrs
        return self.builder.emit(node.op, operands, attrs).results[0]

    def _with(self, node: Node, at: int, tangent: Value) -> Value:
        operands = [*node.inputs[:at], tangent, *node.inputs[at + 1:]]
        return self.builder.emit(node.op, operands, node.attrs).results[0]

    def _sum(self, terms: Any) -> Value:
        first, *others = terms
        for term in others:
            first = self.builder.add(first, term)
        return first  # type: ignore[no-any-return]

    def _elementwise(self, node: Node, given: Sequence[Tangent]) -> Tangent:
        """The sum of the gradients for each operand, with its tangent for the cotangent."""
        scratch = _Scratch(node, given)
        parts = [scratch.backward([tangent])[at]
                 for at, tangent in enumerate(scratch.tangents) if tangent is not None]
        terms = [part for part in parts if part is not None]
        for term in terms[1:]:
            terms[0] = scratch.builder.add(terms[0], term)
        return scratch.finished(self.builder, terms[:1])[0] if terms else None

    def _transposed(
        self, node: Node, given: Sequence[Tangent], live: set[Value]
    ) -> list[Tangent]:
        """The gradient of <grad(g), tangents> for the cotangent g of each result that is read."""
        scratch = _Scratch(node, given)
        seeds = [scratch.param(value) if value.dtype.is_inexact and value in live else None
                 for value in node.results]
        pairs = [(part, tangent) for part, tangent in zip(
                     scratch.backward(seeds), scratch.tangents, strict=True)
                 if part is not None and tangent is not None]
        asked = [seed for seed in seeds if seed is not None]
        found = iter(reverse.vjp(scratch.builder, [part for part, _ in pairs],
                                 [tangent for _, tangent in pairs], asked))
        results = [None if seed is None else next(found) for seed in seeds]
        made = iter(scratch.finished(self.builder, [x for x in results if x is not None]))
        return [None if value is None else next(made) for value in results]

    def _control(self, node: Node) -> None:
        """Extend a node of control flow by tangents of its operands and results."""
        control = control_of(node)
        given = [value in self.known for value in node.inputs]
        attrs = dict(node.attrs)
        match control:
            case Branching():
                inside, groups = given[1:], [len(given) - 1]
                out = DERIVATIVES.of_results(node, [False, *inside])
                out_groups = [len(node.results)]
            case Looping():
                inside = DERIVATIVES.in_body(control, given)
                groups = [control.carried, control.scanned,
                          len(given) - control.carried - control.scanned]
                out = DERIVATIVES.of_graph(control.body, inside)
                out[:control.carried] = inside[:control.carried]
                out_groups = [control.carried, len(node.results) - control.carried]
                attrs["carried"] += sum(inside[:control.carried])
                if "scanned" in attrs:
                    attrs["scanned"] += sum(inside[control.carried:][:control.scanned])
            case Calling(custom=Custom()):
                raise error("W113", f"{node.name} has a custom gradient (custom_vjp), which has no "
                                    "forward mode", locs=node.locs,
                            hint="use weft.vjp or weft.grad, or the function without custom_vjp")
            case _:
                inside, groups = given, [len(given)]
                out, out_groups = DERIVATIVES.of_results(node, given), [len(node.results)]
        for name, body in node.attrs.items():
            if isinstance(body, Graph):
                test = isinstance(control, Looping) and body is control.test
                attrs[name] = _with_tangents(body, inside, groups, [False] if test else out,
                                             [1] if test else out_groups)
        skipped = len(given) - len(inside)  # the condition
        operands = list(node.inputs[skipped:])
        tangents = [self.known.get(value) or self.builder.full(0.0, value.type) if mark else None
                    for value, mark in zip(operands, inside, strict=True)]
        node.inputs = (*node.inputs[:skipped], *_joined(operands, tangents, groups))
        node.attrs = attrs
        made: list[Tangent] = [
            Value(value.type, "", node) if mark else None
            for value, mark in zip(node.results, out, strict=True)]
        self.known.update({value: tangent for value, tangent in zip(
            node.results, made, strict=True) if tangent is not None})
        if isinstance(control, Branching):
            self._of_one_way(node, control, inside)
        node.results = tuple(_joined(list(node.results), made, out_groups))
        for at, value in enumerate(node.results):
            value.index, value.name = at, f"{node.name}:{at}"
        self.builder.graph.nodes.append(node)

    def _of_one_way(self, node: Node, control: Branching, given: Sequence[bool]) -> None:
        """Masks of the results of a branch that have a tangent in one way only."""
        then, other = (DERIVATIVES.of_graph(body, given) for body in (control.then, control.other))
        for value, one, two in zip(node.results, then, other, strict=True):
            if value in self.known and one != two:
                self.masks[value] = known_here(self.builder, node.inputs[0], one, value)


def _joined(
    values: Sequence[Value], tangents: Sequence[Tangent], groups: Sequence[int]
) -> list[Value]:
    """Each group of values, and the tangents of its members after it."""
    found: list[Value] = []
    start = 0
    for size in groups:
        here = slice(start, start + size)
        found += [*values[here], *(x for x in tangents[here] if x is not None)]
        start += size
    return found


def _with_tangents(
    body: Graph, given: Sequence[bool], groups: Sequence[int], wanted: Sequence[bool],
    out_groups: Sequence[int],
) -> Graph:
    """A body that also takes the tangents of the marked parameters and gives those wanted."""
    clone = Clone(body)
    params = [clone.param(value) for value in body.params]
    tangents = [clone.graph.add_param(value.type, f"{value.name.removesuffix(':0')}_tangent")
                if mark else None for value, mark in zip(params, given, strict=True)]
    for node in body.nodes:
        clone.node(node)
    graph = clone.finish()
    graph.params = _joined(params, tangents, groups)
    builder = Builder(graph, OPS, share=False, fold=False)
    marked = [(value, tangent) for value, tangent in zip(params, tangents, strict=True)
              if tangent is not None]
    results = list(graph.results)
    asked = [value for value, mark in zip(results, wanted, strict=True) if mark]
    found = iter(jvp(builder, asked, [value for value, _ in marked], [t for _, t in marked]))
    made = [next(found) or builder.full(0.0, value.type) if mark else None
            for value, mark in zip(results, wanted, strict=True)]
    graph.results = _joined(results, made, out_groups)
    return graph


class _Scratch:
    """A small graph for the rule of one node, of which only what its tangents need is kept.

    Its parameters stand for the operands, results and tangents of the node, and for cotangents,
    on which no tangent depends.
    """

    def __init__(self, node: Node, given: Sequence[Tangent]) -> None:
        self.node = node
        self.builder = Builder(Graph("tangent"), OPS, share=False, fold=False)
        self.outside: list[Tangent] = []
        own = {value: self.param(value, value) for value in (*node.inputs, *node.results)}
        self.inputs = [own[value] for value in node.inputs]
        self.results = [own[value] for value in node.results]
        self.tangents = [None if tangent is None else self.param(tangent, tangent)
                         for tangent in given]

    def param(self, like: Value, stands_for: Tangent = None) -> Value:
        self.outside.append(stands_for)
        return self.builder.graph.add_param(like.type, "x")

    def backward(self, cotangents: Sequence[Tangent]) -> list[Tangent]:
        """The gradient of the node's row."""
        return reverse.row_gradient(self.builder, self.node, cotangents, self.inputs, self.results)

    def finished(self, builder: Builder, results: Sequence[Value]) -> list[Value]:
        """What computes these results, appended to the graph around."""
        graph = self.builder.graph
        graph.results = list(results)
        live = live_values(graph, results)
        kept = [(param, value) for param, value in zip(graph.params, self.outside, strict=True)
                if param in live]
        graph.params = [param for param, _ in kept]
        operands = [value for _, value in kept]
        assert all(value is not None for value in operands), "a tangent depends on a cotangent"
        return emit_graph(builder, graph, [value for value in operands if value is not None])
