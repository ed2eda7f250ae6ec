"""Make state explicit: variables become parameters and results, and the graph purely functional.

Each variable has a current value, which reads return and writes replace:

    %0 = read_var {var = "w"}              graph(..., %w) -> (..., %1) {
    %1 = sub %0, %g                 ==>      %1 = sub %w, %g
    assign_var %1 {var = "w"}                return ..., %1
                                           }      var_params w: %w, var_results w: the last one

The runtime passes the value before the step, and stores the value after it when the step has
succeeded: so a step is atomic, and variables need no rules of their own anywhere later.
"""

from __future__ import annotations

from ..ir.graph import Builder, Graph, Node, Value
from ..ir.ops.op import Effect
from ..ir.ops.table import OPS
from .clone import Clone


def resolve_state(graph: Graph) -> Graph:
    """The same computation without EFFECT nodes and control dependencies.

    Parameters of variables that are read before they are written come after the ordinary ones,
    in order of first read; new values of written variables come after the ordinary results, in
    order of first write. ``var_params`` and ``var_results`` say which is which. A graph without
    EFFECT nodes is returned as it is.
    """
    if all(node.op.effect is None for node in graph.nodes):
        return graph
    clone = Clone(graph)
    for value in graph.params:
        clone.param(value)
    clone.graph.variables = dict(graph.variables)
    builder = Builder(clone.graph, OPS, share=False, fold=False)
    current: dict[str, Value] = {}
    written: dict[str, None] = {}  # a dict for its order

    def read(node: Node) -> Value:
        var = node.attrs["var"]
        if var not in current:
            current[var] = clone.graph.add_param(node.attrs["type"], var)
            clone.graph.var_params[var] = current[var]
        return current[var]

    for node in graph.nodes:
        if node.op.effect is None:
            clone.node(node).after = ()
        elif node.op.effect is Effect.READS:
            clone.values[node.results[0]] = read(node)
        else:
            operand = clone.values[node.inputs[0]]
            if node.op.update:
                base, row = read(node), OPS[node.op.update]
                with builder.like(node):
                    operand = builder.emit(row, (base, operand), name=node.name).results[0]
            current[node.attrs["var"]] = operand
            written[node.attrs["var"]] = None
    clone.graph.results = [clone.values[value] for value in graph.results]
    for var in written:
        clone.graph.var_results[var] = len(clone.graph.results)
        clone.graph.results.append(current[var])
    return clone.graph
