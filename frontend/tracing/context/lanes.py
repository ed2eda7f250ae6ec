"""The batches that the running code is traced for an example of: ``vmap`` says so here, and what
draws random numbers asks.

    def one(number, *examples):           # of np.arange(size of the batch)
        with lanes(number):
            return function(*examples)

What one example draws is of a stream of its own, which its number picks. The state of the generator
advances around the batch, once for all examples, since those have no order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from ..values.tracer import Tracer
from .active import current
from .recorder import TraceContext


class Lane(NamedTuple):
    """The trace of an example, and its number in the batch."""

    ctx: TraceContext
    number: Tracer


_LANES: ContextVar[tuple[Lane, ...]] = ContextVar("lanes", default=())


@contextmanager
def lanes(number: Tracer) -> Iterator[None]:
    """While the body runs, the active trace is that of the example of this number in a batch."""
    token = _LANES.set((*_LANES.get(), Lane(current(), number)))
    try:
        yield
    finally:
        _LANES.reset(token)


def lane_numbers() -> list[Tracer]:
    """The numbers of the example in all batches around, the outermost first."""
    return [lane.number for lane in _LANES.get()]


def around_lanes(ctx: TraceContext) -> TraceContext:
    """The trace around the batches whose example ``ctx`` is the trace of; itself if it is none."""
    for lane in reversed(_LANES.get()):
        if ctx is lane.ctx and ctx.parent is not None:
            ctx = ctx.parent
    return ctx
