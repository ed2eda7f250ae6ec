"""The message of an ``assert``: it is computed only where the assertion does not hold."""

from __future__ import annotations

from typing import Any

from ...face import tree
from ...tracing.context.active import current
from ...tracing.context.recorder import TraceContext
from ...tracing.failing import failed_assertion
from ...tracing.trace import trace_region
from ...tracing.values.tracer import Tracer
from .branches import failing
from .state import Part


def told(ctx: TraceContext, flag: Tracer, message: Part) -> None:
    """Let the step fail with a message unless the flag is true."""
    made: list[Any] = []

    def way() -> list[Any]:
        made[:] = failed_assertion(current(), message())
        return [] if made[1] is None else made[1:]

    region = trace_region(way, (), tree.structure(()), "message")
    failure, told = made
    holds = flag if told is None else failing(ctx, flag, region, 1)
    ctx.apply(ctx.failing if told is not None else _plainly(ctx), (holds, failure))


def _plainly(ctx: TraceContext) -> Any:
    return lambda holds, failure: ctx.assertion(holds, failure.text)
