"""Extents: numbers that only values say, as sizes of arrays: ``np.zeros(np.sum(mask))``.

A size is a symbolic dim then, as one of an argument is; its number is looked at between two parts
of the program (``ir/ops/control/extent``). Numbers that are computed alike are one size, so that
arrays of as many elements fit together.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from ...ir.graph import Graph, Value, all_nodes, constant_of
from ...ir.indices.dims import Requirement, inner_requirements, node_requirements
from ...ir.indices.index import Dim, symbol, symbols_of
from ...ir.indices.proof import nonnegative
from ...ir.ops.table import OPS
from ...ir.plans.partition import sizes_measured
from ...ir.types import I64
from ...passes.ranges.places import known_places
from .arrays.selection import computed_alike
from .context.distance import (
    is_natural_in_rounds,
    multiple,
    tell_size,
    told_by_rounds,
)
from .context.recorder import TraceContext
from .values.tracer import SymbolicDim, Tracer


def size_of(number: Tracer) -> Dim:
    """The size that a traced integer without dims says, or that rounds tell; negative ones fail the
    step (W103)."""
    ctx = cast(TraceContext, number.context())
    told = told_by_rounds(ctx, number)
    if isinstance(told, SymbolicDim) and is_natural_in_rounds(ctx, told.expr):
        return told.expr
    value: Value = ctx.value_of(number)
    known = _known(ctx, value)
    if known is not None:
        return known
    factor, rest = multiple(ctx, value) if number.weak else (1, 0)
    name = ctx.root.graph.unique_name("size")
    size = symbol(name)

    def emit() -> None:
        whole = value if value.dtype == I64 else ctx.builder.cast(value, dtype=I64)
        if factor > 1:
            whole = ctx.builder.floordiv(ctx.builder.sub(whole, rest), factor)
        ctx.root.numbers[name] = ctx, whole
        ctx.builder.emit(OPS["extent"], (whole,), {"size": size})

    ctx.apply(emit, ())  # which asks that it is not negative
    found = _floored(ctx, value) or size * factor + rest
    ctx.extents.append((value, found))
    tell_size(ctx, value, found)
    return found


def _known(ctx: TraceContext, value: Value) -> Dim | None:
    """The size that the number is by now, in this trace or one around."""
    while True:
        for other, size in ctx.extents:
            if computed_alike(value, other):
                return size
        outer = ctx.outside(value) if ctx.nested else None
        if outer is None:
            return None
        ctx, value = cast(TraceContext, outer.ctx), outer.operand()


def _floored(ctx: TraceContext, value: Value) -> Dim | None:
    """The size of ``np.arange(n)`` or of ``range(n)`` for a number n that is not negative."""
    for other, size in ctx.extents:
        node = other.node
        if node is not None and node.op is OPS["maximum"] and constant_of(node.inputs[1]) == 0 and (
                computed_alike(node.inputs[0], value)):
            return size
    return None


def asks_where_it_may_not_be(graph: Graph, asserts: bool) -> bool:
    """Whether a way of a branch, or a round, asks something of a size that is measured before it:
    that is asked when it is measured, whichever way is taken (``s.min() if len(s) else 0.0``). So
    is what stands behind an assertion. And so is what only some rounds ask of sizes that go by
    their numbers: it would be asked of all of them."""
    measured = sizes_measured(graph.nodes)
    behind = (need for node in graph.nodes for need in node_requirements(node)
              if not all(map(nonnegative, need.facts)))
    return any(by_rounds or _counts_on(need, measured)
               for need, by_rounds in inner_requirements(graph)) or (
        asserts and any(_counts_on(need, measured) for need in behind))


def counts_on_sizes(ctx: TraceContext) -> bool:
    """Whether sizes that are measured have to be equal to others, or are asked for where only some
    ways come, or where the user catches what is raised. Known ones would do as Python does: one of
    1 is repeated, and what is not reached is not asked."""
    measured = sizes_measured(ctx.graph.nodes)
    return bool(measured) and (ctx.has_caught or asks_where_it_may_not_be(ctx.graph, True) or any(
        need.sign == "==" and _counts_on(need, measured) for node in all_nodes(ctx.graph)
        for need in node_requirements(node)))


def may_leave_64_bits(graph: Graph) -> bool:
    """Whether loops compute with Python's integers what may be none of 64 bits, or negative powers:
    but for counters, which take too long for that."""
    known = known_places(graph)
    bodies = (body for node in known.nodes for body in node.attrs.values()
              if isinstance(body, Graph))
    return any(node.op in (OPS["ipow"], OPS["to_int"]) or (node.op is OPS["unwrapped"] and not (
        node.attrs["of"] in ("add", "sub") and any(map(_is_small, node.inputs[1:]))))
               for body in bodies for node in all_nodes(body))


def _is_small(value: Value) -> bool:
    number = constant_of(value)
    return isinstance(number, int) and abs(number) < 1 << 31


def _counts_on(need: Requirement, sizes: Collection[str]) -> bool:
    return not (symbols_of(need.left) | symbols_of(need.right)).isdisjoint(sizes)
