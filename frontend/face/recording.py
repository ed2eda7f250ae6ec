"""Whether the running code is being traced."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

RECORDING: ContextVar[Any] = ContextVar("weft_active_trace", default=None)
"""The trace that records it, if one does: ``tracing.context.recorder.TraceContext``."""
