"""What a fused loop may hold: what one thread runs without leaving the code of the loop."""

from __future__ import annotations

from ..kernels.kernel import Contract, Kernel
from ..kernels.rows import row_stmt
from ..kernels.workspace import scratch_bytes
from .plan import Alloc, Branch, Copy, Group, Launch, Loop, Plan, all_steps
from .stack import SCRATCH_BYTES


def why_not_fused(plan: Plan, loop: Loop) -> str:
    """What keeps a loop from being fused; empty if nothing does."""
    for step in all_steps((*loop.test, *loop.body)):
        match step:
            case Launch() | Group() if step.parallel is not False:
                return "a launch that may be shared out"
            case Launch() if not _is_plain(plan.kernels[step.kernel]):
                return f"@{step.kernel}, which has a large task"
            case Alloc() | Branch() | Copy() | Group() | Launch() | Loop():
                continue
            case _:
                return f"a step '{type(step).__name__.lower()}'"
    return ""


def _is_plain(kernel: Kernel) -> bool:
    """Whether a kernel has nothing that is large by itself: sorts, products in tiles, memory that
    only the caller has."""
    return scratch_bytes(kernel) <= SCRATCH_BYTES and row_stmt(kernel) is None and not any(
        isinstance(stmt, Contract) and stmt.tiling for stmt in kernel.body)
