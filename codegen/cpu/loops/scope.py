"""What is known at a place in the code of a kernel."""

from __future__ import annotations

from ....ir.record import field, record, replace
from .values import LlvmValue


@record
class Scope:
    """What is known at a place in the code: axes and dims as i64, values, the vector axis."""

    axes: dict[str, str]
    values: dict[str, LlvmValue] = field(default_factory=dict)
    vector: str | None = None
    width: int = 1
    mask: str | None = None

    def child(self) -> Scope:
        return replace(self, axes=dict(self.axes), values=dict(self.values))

    def step(self, axis: str, base: str, width: int, mask: str | None) -> Scope:
        """A child scope in which ``axis`` runs over ``width`` lanes from ``base``."""
        inner = self.child()
        inner.axes[axis] = base
        inner.vector, inner.width, inner.mask = axis, width, mask
        return inner
