"""Complex values become two real ones, so that nothing after this pass knows complex numbers.

    graph(%z: c64[n]) {                    graph(%z: c64[n]) {
      %w = mul %z, %z           ==>          %p: f32[n,2] = parts %z        the memory of z
      return %w                              %re, %im = slices of %p, reshaped
    }                                        %a = sub (mul %re, %re), (mul %im, %im)
                                             %b = add (mul %re, %im), (mul %im, %re)
                                             %q: f32[n,2] = concatenate %a[n,1], %b[n,1]
                                             %w: c64[n] = joined %q         the memory of q
                                             return %w }

Only arguments, results and what functions of the host read and make stay complex, in memory.
Bodies of control flow take and give the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.diagnose import error
from ...ir.graph import Builder, Graph, Node, Value, all_nodes, control_of
from ...ir.ops.control.region import Looping
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ..clone import Clone
from .functions import Pair, apart, together
from .rules import BY_KIND, RULES


def split_complex(graph: Graph) -> Graph:
    """The same computation on real numbers. A graph without complex ones is returned as it is.

    Raises UnsupportedError (W113) for an op that has no meaning for complex operands here.
    """
    if not any(value.dtype.is_complex for value in graph.params) and not any(
            value.dtype.is_complex for node in all_nodes(graph) for value in node.results):
        return graph
    split = _Split(graph)
    split.clone.params()
    for value in graph.params:
        split.take_apart(value)
    split.walk()
    return split.finish()


class _Split:
    """A graph being rebuilt. ``pairs`` are the parts of complex values, ``clone.values`` has those
    of them that are in memory."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.clone = graph, Clone(graph)
        self.builder = Builder(self.clone.graph, OPS, share=False, fold=False)
        self.pairs: dict[Value, Pair] = {}
        self.parted = {value for node in graph.nodes if node.op.kind is not Kind.HOST
                       for value in node.inputs if value.dtype.is_complex}

    def walk(self) -> None:
        """Rebuild all nodes in order; recursion is by nesting of bodies only."""
        for node in self.graph.nodes:
            if node.op.control is not None:
                self._control(node)
            elif node.op.kind is Kind.HOST:
                self._join(node.inputs, node)
                self.clone.node(node)
                for value in node.results:
                    self.take_apart(value)
            elif any(value.dtype.is_complex for value in (*node.inputs, *node.results)):
                self._compute(node)
            else:
                self.clone.node(node)

    def finish(self) -> Graph:
        """The new graph, its results in memory."""
        self._join(self.graph.results, None)
        return self.clone.finish()

    # -- between memory and parts ---------------------------------------------------------------

    def take_apart(self, value: Value) -> None:
        """The parts of a value that is in memory, if anything reads them."""
        if value not in self.parted:
            return
        b, whole = self.builder, self.clone.values[value]
        b.stem = whole.name.removesuffix(":0").replace(":", "_")
        self.pairs[value] = apart(b, b.parts(whole))
        b.stem = None

    def _join(self, values: Sequence[Value], node: Node | None) -> None:
        """Have complex values in memory: first all that kernels have to make for it."""
        b = self.builder
        missing = [value for value in dict.fromkeys(values) if value not in self.clone.values]
        stacks = []
        for value in missing:
            source = value.node or node  # a parameter of a body has no node
            b.locs = () if source is None else source.locs
            b.stem = value.name.removesuffix(":0").replace(":", "_")
            stacks.append(together(b, self.pairs[value]))
        for value, stack in zip(missing, stacks, strict=True):
            b.stem = value.name.removesuffix(":0").replace(":", "_")
            self.clone.values[value] = b.joined(stack)
        b.stem = None

    # -- nodes ----------------------------------------------------------------------------------

    def _operand(self, value: Value) -> Any:
        return self.pairs[value] if value.dtype.is_complex else self.clone.values[value]

    def _compute(self, node: Node) -> None:
        """The parts of the result of a node, or its real result, by the rule of the op."""
        rule = RULES.get(node.op.name) or BY_KIND.get(node.op.kind)
        if rule is None or len(node.results) != 1:
            raise error("W113", f"{node.op.name} of complex numbers is not supported",
                        locs=node.locs, types=[value.type for value in node.inputs],
                        hint="compute with z.real and z.imag")
        (result,) = node.results
        with self.builder.like(node):
            self.builder.stem = node.name
            made = rule(self.builder, node, *map(self._operand, node.inputs))
        if result.dtype.is_complex:
            self.pairs[result] = made
        else:
            self.clone.values[result] = made

    def _control(self, node: Node) -> None:
        """A node with bodies, which take and give parts; so does it."""
        attrs = {name: _body(value) if isinstance(value, Graph) else value
                 for name, value in node.attrs.items()}
        control = control_of(node)
        if isinstance(control, Looping):
            ends = control.carried, control.carried + control.scanned
            attrs["carried"] = sum(map(_width, node.inputs[:ends[0]]))
            if "scanned" in attrs:
                attrs["scanned"] = sum(map(_width, node.inputs[slice(*ends)]))
        inputs = [part for value in node.inputs for part in self._flat(value)]
        with self.builder.like(node):
            made = iter(self.builder.emit(node.op, inputs, attrs, name=node.name).results)
        for value in node.results:
            if value.dtype.is_complex:
                self.pairs[value] = Pair(next(made), next(made))
            else:
                self.clone.values[value] = next(made)

    def _flat(self, value: Value) -> Sequence[Value]:
        return self.pairs[value] if value.dtype.is_complex else (self.clone.values[value],)

    def body(self) -> Graph:
        """A body, with two parameters and results for each complex one."""
        clone = self.clone
        self.parted.update(value for value in self.graph.results if value.dtype.is_complex)
        for value in self.graph.params:
            if not value.dtype.is_complex:
                clone.param(value)
                continue
            type_ = value.type.with_dtype(value.dtype.part)
            stem = value.name.removesuffix(":0").replace(":", "_")
            self.pairs[value] = Pair(clone.graph.add_param(type_, f"{stem}.re"),
                                     clone.graph.add_param(type_, f"{stem}.im"))
        self.walk()
        clone.graph.results = [part for value in self.graph.results for part in self._flat(value)]
        return clone.graph


def _body(graph: Graph) -> Graph:
    return _Split(graph).body()


def _width(value: Value) -> int:
    return 1 + value.dtype.is_complex
