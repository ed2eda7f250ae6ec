"""Order that no value says: what runs after what, and what runs together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ....ir.graph import effects_of
from ....ir.ops.op import Effect
from ....ir.record import replace
from ...face import tree
from ...face.source import user_loc
from ..values.methods import ArrayMethods
from ..values.operation import Operation
from ..values.tracer import Tracer
from .active import context_for, context_of
from .recorder import ACTIVE, TraceContext, nodes_of
from .scope import SCOPE, checked_label


@contextmanager
def control_dependencies(operations: Any) -> Iterator[None]:
    """Let nodes made in the body run after these operations or values, or after one; None drops
    outer ones.

    Raises TracerError (W204) where a node would wait for one of another graph.
    """
    scope = SCOPE.get()
    after = dict.fromkeys(scope.after if operations is not None else ())
    several = isinstance(operations, Iterable) and not isinstance(operations, (ArrayMethods, str))
    for item in () if operations is None else operations if several else (operations,):
        after.update(dict.fromkeys(nodes_of(item)))
    ctx = ACTIVE.get()
    if ctx is not None:
        ctx.own_nodes(after, user_loc())
    token = SCOPE.set(replace(scope, after=tuple(after)))
    try:
        yield
    finally:
        SCOPE.reset(token)


def after(value: Any, operations: Sequence[Operation]) -> Any:
    """The same traced value, had only when the operations have run: to fetch it is to run them."""
    ctx = context_for((value,))
    if ctx is None or not isinstance(value, Tracer):
        return value

    def record() -> Tracer:
        with ctx.waiting(*operations):
            return ctx.emit("identity", value)

    return ctx.apply(record, ())


def checked(ctx: TraceContext, result: Any, first: int) -> Any:
    """The same nest of results, had only where the assertions hold that are among the nodes of a
    graph from number ``first`` on."""
    checks = [Operation((node,), node.name, ctx) for node in ctx.graph.nodes[first:]
              if any(each.op.effect is Effect.ASSERTS for each in effects_of(node))]
    return tree.map(lambda leaf: after(leaf, checks), result) if checks else result


def group(*operations: Any, name: str = "group") -> Operation:
    """One operation that stands for several; fetching it, by itself or by name, runs them all.

    Raises TracerError (W204) if they are of several graphs.
    """
    checked_label(name, "group")
    known = [ctx for item in operations for ctx, _ in nodes_of(item)]
    ctx = ACTIVE.get() or (context_of(known[0]) if known else None)
    return Operation((), name, None) if ctx is None else ctx.group(operations, name)
