"""Programs that run without Python tell less of what fails them: what the host would only keep for
an error (``HostFunction.keeps``) is left out.

    %ok = host_call %0, %s {function = @weft.failing.keep}    ==>    %ok = full {value = false}
"""

from __future__ import annotations

from ..ir.graph import Builder, Graph, Node, all_nodes
from ..ir.host import HostFunction
from ..ir.ops.table import OPS
from .clone import Clone, map_bodies


def keeps(node: Node) -> bool:
    """Whether a node is a call of the host that only keeps what an error is to tell."""
    function = node.attrs.get("function")
    return isinstance(function, HostFunction) and function.keeps


def without_keeping(graph: Graph) -> Graph:
    """The graph without such calls, itself if there are none."""
    if not any(map(keeps, all_nodes(graph))):
        return graph
    clone = Clone(graph)
    builder = Builder(clone.graph, OPS, share=False, fold=False)
    clone.params()
    for node in graph.nodes:
        if keeps(node):
            clone.values[node.results[0]] = builder.full(False, node.results[0].type)
        else:
            clone.node(node)
    return map_bodies(clone.finish(), without_keeping)
