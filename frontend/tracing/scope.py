"""What is active while user code runs: the trace that records it, and its name scope and device.

Both are context variables, so every thread (and every asyncio task) has its own.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...ir.graph import Node
from ...ir.types import Device

if TYPE_CHECKING:
    from .recorder import TraceContext


@dataclass(frozen=True)
class Scope:
    """What ``name_scope``, ``device`` and ``control_dependencies`` give to new nodes."""

    prefix: str = ""
    device: Device | None = None
    after: tuple[tuple[TraceContext, Node], ...] = ()


ACTIVE: ContextVar[TraceContext | None] = ContextVar("weft_active_trace", default=None)
_NOTHING = Scope()
SCOPE: ContextVar[Scope] = ContextVar("weft_scope", default=_NOTHING)


def active() -> TraceContext | None:
    """The trace that records the running code; None outside of any."""
    return ACTIVE.get()


def current() -> TraceContext:
    """The trace that an operation is being recorded in; there always is one then."""
    context = ACTIVE.get()
    if context is None:
        raise RuntimeError("no trace is active")
    return context
