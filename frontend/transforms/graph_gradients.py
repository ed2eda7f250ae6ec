"""TensorFlow's way to differentiate: from one value of a graph to others, as the graph stands.

    loss = ...                                   a value, made of x and of variables
    by_w, by_h = weft.gradients(loss, [w, h])    more values of the same graph
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.graph import Node, Value, effects_of, writes
from ...ir.ops.op import Effect
from ...passes.transform import reverse
from ..face.boundary import boundary
from ..face.source import user_loc
from ..tracing.arrays.variable import Variable
from ..tracing.context.active import context_for
from ..tracing.context.recorder import TraceContext
from ..tracing.operand import cast, to_tracer
from ..tracing.values.tracer import Tracer
from .reverse import bounded_loops


@boundary
def gradients(ys: Any, xs: Any, grad_ys: Any = None, stop_gradients: Any = ()) -> list[Any]:
    """The gradients of the sum of ``ys`` for each of ``xs``, as values of their graph.

    ``ys`` and ``xs`` are traced values and variables, one or a list. The result has an entry for
    each x, of its type: None where no y depends on it. Where one x is computed from another, the
    other's gradient goes through it: derivatives are total. ``grad_ys`` has for each y the weights
    of its elements, in its shape; None stands for ones. Nothing flows back through the values in
    ``stop_gradients``.

    Raises DTypeError: W114 for a y without a gradient, W111 for an x that is no float; W102 for
    weights of another shape; UnsupportedError (W113) for a variable that a loop or branch on the
    way assigns, and for loops without a bound.

    >>> import weft
    >>> w, g = weft.Variable(3.0), weft.Graph()
    >>> with g.as_default():
    ...     x = weft.placeholder("f64", name="x")
    ...     h = w * x
    ...     by = weft.gradients(h * h, [w, x, h])
    >>> weft.Session(g).run(by, {x: 2.0})
    [np.float64(24.0), np.float64(36.0), np.float64(12.0)]
    """
    outputs, inputs, stops = _listed(ys), _listed(xs), _listed(stop_gradients)
    weights = [None] * len(outputs) if grad_ys is None else _listed(grad_ys)
    if len(weights) != len(outputs):
        raise error("W102", f"grad_ys has {len(weights)} entries for {len(outputs)} values",
                    locs=user_loc(), hint="give one for each y, or None")
    ctx = context_for(outputs)
    if ctx is None or not all(isinstance(y, (Tracer, Variable)) for y in outputs):
        raise error("W114", "gradients needs traced values", locs=user_loc(),
                    hint="use weft.grad(f) on a function")
    found: tuple[Any, ...] = ctx.apply(_found, (ctx, outputs, inputs, weights, stops),
                                       stem="gradients")
    return list(found)


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _found(ctx: TraceContext, outputs: Sequence[Any], inputs: Sequence[Any],
           weights: Sequence[Any], stops: Sequence[Any]) -> tuple[Any, ...]:
    ends = [to_tracer(y) for y in outputs]
    values = [ctx.value_of(y) for y in ends]
    for y, value in zip(ends, values, strict=True):
        if not value.dtype.is_inexact or value.dtype.kind == "c":
            raise error("W114", f"{y.name} is {value.dtype}, which has no gradient",
                        types=[value.type], hint="differentiate a real floating-point value")
    seeds = [ctx.full(1.0, y.dtype, y.type.shape) if weight is None else
             cast(to_tracer(weight, y.dtype), y.dtype)
             for y, weight in zip(ends, weights, strict=True)]
    nodes = list(ctx.graph.nodes)
    groups = [_values(ctx, x, nodes, values) for x in inputs]
    ended = [value for x in stops for value in _values(ctx, x, nodes, values)]
    flat = [value for group in groups for value in group]
    with bounded_loops():
        parts = iter(reverse.vjp(ctx.builder, values, [ctx.value_of(seed) for seed in seeds], flat,
                                 stops=ended))
    made: list[Any] = []
    for x, group in zip(inputs, groups, strict=True):
        known = [Tracer(ctx, part) for part in [next(parts) for _ in group] if part is not None]
        total = functools.reduce(operator.add, known) if known else None
        if total is not None and isinstance(x, Tracer):
            total.weak = x.weak
        made.append(total)
    return tuple(made)


def _values(ctx: TraceContext, x: Any, nodes: Sequence[Node],
            ends: Sequence[Value]) -> list[Value]:
    """The values of the graph that an x stands for: of a variable, all that was read of it."""
    if not isinstance(x, Variable):
        if not isinstance(x, (Tracer, np.ndarray)):
            raise error("W112", f"there is no gradient by {type(x).__name__}",
                        hint="differentiate by traced values and variables")
        return [ctx.value_of(to_tracer(x))]
    found = []
    for node in nodes:
        if node.op.effect is Effect.READS and ctx.variables.get(node.attrs["var"]) is x:
            found.append(node.results[0])
        elif node.op.effect is None and _assigns(ctx, node, x) and _leads(nodes, node, ends):
            raise error("W113", f"'{x.name}' is assigned in {node.name}, on which the value "
                                "depends: there is no gradient by it", locs=node.locs,
                        hint="carry its value through the loop, and assign it afterwards")
    return found


def _assigns(ctx: TraceContext, node: Node, x: Variable) -> bool:
    """True for control flow that assigns a variable, and perhaps reads it."""
    return node.op.control is not None and any(
        writes(each) and ctx.variables.get(each.attrs["var"]) is x for each in effects_of(node))


def _leads(nodes: Sequence[Node], node: Node, ends: Sequence[Value]) -> bool:
    """True if one of the ends is computed from results of the node."""
    reached = set(node.results)
    for later in nodes[nodes.index(node) + 1:]:
        if not reached.isdisjoint(later.inputs):
            reached.update(later.results)
    return not reached.isdisjoint(ends)
