"""``weft.save`` and ``weft.restore``: those of the runtime, whose errors have the user's line."""

from __future__ import annotations

from ..runtime import checkpoint
from .tracing.boundary import boundary

save = boundary(checkpoint.save)
restore = boundary(checkpoint.restore)
