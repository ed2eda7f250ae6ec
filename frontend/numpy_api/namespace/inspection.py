"""What ``weft.numpy`` tells of itself, as the array API standard asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracing.context.scope import RECORDING


class Inspection(type(np.__array_namespace_info__())):  # type: ignore[misc]  # NumPy hides it
    """NumPy's answers; while a function is traced no size can depend on values."""

    def capabilities(self) -> dict[str, Any]:
        """As the standard has it: by name, True for what works here and now."""
        plain = RECORDING.get() is None
        found: dict[str, Any] = super().capabilities()
        return {**found, "boolean indexing": plain, "data-dependent shapes": plain}
