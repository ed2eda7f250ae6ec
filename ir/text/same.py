"""Structural equality of graphs, kernels and plans: what ``parse(print(x)) == x`` means.

Graphs compare by identity, so that passes can use them as keys. Here they are described as plain
nested tuples: values by their number, floats by their bits, nested graphs by their own
description. Two IRs are the same when their descriptions are equal.
"""

from __future__ import annotations

from typing import Any

from ..graph import Graph, freeze
from ..kernels.kernel import Kernel
from ..plans.plan import Plan
from ..record import fields


def same_graph(a: Graph, b: Graph) -> bool:
    """True if both hold the same nodes, names, types, attributes and source locations."""
    return describe_graph(a) == describe_graph(b)


def same_kernel(a: Kernel, b: Kernel) -> bool:
    """True if both have the same parameters, axes, statements and source locations."""
    return describe_kernel(a) == describe_kernel(b)


def same_plan(a: Plan, b: Plan) -> bool:
    """True if both have the same slots, steps, checks and kernels."""
    return describe_plan(a) == describe_plan(b)


def describe_graph(graph: Graph) -> tuple[Any, ...]:
    """A graph as plain tuples."""
    number = {id(value): at for at, value in enumerate(graph.values())}

    def keys(values: Any) -> tuple[Any, ...]:
        return tuple(number.get(id(value), value.name) for value in values)

    nodes = tuple((
        node.op.name, node.name, keys(node.inputs), _attrs(node.attrs), node.device, node.locs,
        tuple((value.name, value.type) for value in node.results),
        tuple(earlier.name for earlier in node.after),
    ) for node in graph.nodes)
    params = tuple((value.name, value.type) for value in graph.params)
    state = tuple((var, number.get(id(value), value.name))
                  for var, value in graph.var_params.items())
    return (graph.name, params, nodes, keys(graph.results), frozenset(graph.variables.items()),
            frozenset(state), frozenset(graph.var_results.items()), frozenset(graph.homes.items()))


def _attrs(attrs: dict[str, Any]) -> tuple[Any, ...]:
    return tuple((name, describe_graph(value) if isinstance(value, Graph) else freeze(value))
                 for name, value in sorted(attrs.items()))


def describe_kernel(kernel: Kernel) -> tuple[Any, ...]:
    """A kernel as plain tuples."""
    body = tuple((type(stmt).__name__, *(freeze(getattr(stmt, part.name)) for part in fields(stmt)))
                 for stmt in kernel.body)
    schedule = kernel.vectors, kernel.program, kernel.splits
    return kernel.name, kernel.params, kernel.locals, kernel.axes, body, kernel.locs, schedule


def describe_plan(plan: Plan) -> tuple[Any, ...]:
    """A plan, with its kernels, as plain tuples."""
    kernels = tuple((name, describe_kernel(kernel))
                    for name, kernel in sorted(plan.kernels.items()))
    checks = tuple((site.code, site.message, site.locs) for site in plan.checks)
    memory = plan.arena, plan.scratch
    return plan.name, plan.params, plan.results, plan.steps, memory, kernels, checks
