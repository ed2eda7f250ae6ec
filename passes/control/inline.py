"""The nodes of bodies in the place of what holds them: calls, and fused regions.

    %0 = call %x, %w {body = @body(%p0, %p1) -> relu(p0 @ p1)}     ->     contract, le, select

Calls say how their bodies are differentiated, which is done while tracing; fused regions are what
fusion makes, of which this is the inverse, as far as results go. What tells derivatives alone from
another op (``OpDef.becomes``) is that one from here on. A size that several calls measure has
another name in each of them.
"""

from __future__ import annotations

from itertools import count

from ...ir.graph import Graph, Node, all_nodes, control_of, with_bodies
from ...ir.indices.index import symbol
from ...ir.ops.control.region import Calling
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ...ir.plans.partition import sizes_measured
from ...ir.record import record
from ..clone import Clone, renamed


def inline_regions(graph: Graph) -> Graph:
    """A graph without calls and fused regions: their bodies' nodes stand in their place."""
    if not any(_stands_for_nodes(node) or node.op.becomes for node in all_nodes(graph)):
        return graph
    return _Inlining({*sizes_measured(all_nodes(graph))}, set()).run(graph)


@record(frozen=True)
class _Inlining:
    """``sizes`` are all that the program measures, ``known`` those that stand there by now."""

    sizes: set[str]
    known: set[str]

    def run(self, graph: Graph) -> Graph:
        """The graph without calls; recursion is by nesting of bodies only."""
        clone = Clone(graph)
        clone.params()
        for node in graph.nodes:
            if not _stands_for_nodes(node):
                copy = clone.node(node)
                if node.op.becomes:
                    copy.op = OPS[node.op.becomes]
                if node.op.control is not None:
                    copy.attrs = with_bodies(node, self.run)
                self.known.update(sizes_measured((node,)))
                continue
            self._call(clone, node)
        return clone.finish()

    def _call(self, clone: Clone, node: Node) -> None:
        body = node.attrs["body"]
        again = self.known & sizes_measured(all_nodes(body))
        body = self.run(renamed(body, {name: symbol(self._fresh(name)) for name in sorted(again)}))
        for param, operand in zip(body.params, node.inputs, strict=True):
            clone.values[param] = clone.values[operand]
        for inner in body.nodes:  # none of them becomes another one any more
            clone.node(inner, inner.device or node.device)
        for result, value in zip(node.results, body.results, strict=True):
            clone.values[result] = clone.values[value]

    def _fresh(self, name: str) -> str:
        made = next(each for at in count(2) if (each := f"{name}_{at}") not in self.sizes)
        self.sizes.add(made)
        return made


def _stands_for_nodes(node: Node) -> bool:
    return node.op.kind is Kind.REGION and isinstance(control_of(node), (Calling, type(None)))
