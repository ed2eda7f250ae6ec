"""The verifier: every rule that an IR keeps, as one named check each.

``GRAPH_CHECKS``, ``KERNEL_CHECKS`` and ``PLAN_CHECKS`` list them in order; a check may rely on the
ones before it. A broken rule raises VerifyError (W601) that names the check and shows the lines
around the place. It is a defect of the pass that wrote the IR, never of the user's program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..diagnose import Error, error
from ..graph import Graph, Node
from ..kernel import Kernel
from ..plan import Plan, all_steps
from ..text.printer import print_nodes, print_step, print_stmt
from ..types import Loc
from .graph import GRAPH_CHECKS, Scope, inner_scopes
from .kernel import KERNEL_CHECKS
from .plan import PLAN_CHECKS

__all__ = ["GRAPH_CHECKS", "KERNEL_CHECKS", "PLAN_CHECKS", "verify_graph", "verify_kernel",
           "verify_plan"]

AROUND = 2  # lines shown on either side of a problem


def verify_graph(graph: Graph) -> None:
    """Check a graph and the graphs nested in it; raises VerifyError (W601)."""
    pending = [Scope(graph)]
    while pending:
        scope = pending.pop()
        own = scope.graph

        def lines(nodes: Sequence[Node], graph: Graph = own) -> list[str]:
            return print_nodes(graph, nodes)

        for check in GRAPH_CHECKS:
            _raise_first(f"graph @{own.name}", check, check(scope), own.nodes, lines)
        pending += inner_scopes(scope)


def verify_kernel(kernel: Kernel) -> None:
    """Check a kernel; raises VerifyError (W601)."""
    for check in KERNEL_CHECKS:
        _raise_first(f"kernel @{kernel.name}", check, check(kernel), kernel.body,
                     lambda body: [print_stmt(stmt) for stmt in body])


def verify_plan(plan: Plan) -> None:
    """Check a plan and its kernels; raises VerifyError (W601)."""
    for kernel in plan.kernels.values():
        verify_kernel(kernel)
    for check in PLAN_CHECKS:
        _raise_first(f"plan @{plan.name}", check, check(plan), list(all_steps(plan.steps)),
                     lambda steps: [print_step(step)[0] for step in steps])


def _raise_first(
    what: str,
    check: Callable[..., Any],
    problems: Iterator[tuple[Any, str]],
    items: Sequence[Any],
    lines: Callable[[Sequence[Any]], list[str]],
) -> None:
    """Raise the first problem that a check found, if it found one."""
    for item, message in problems:
        at = next((at for at, other in enumerate(items) if other is item), None)
        where = f" at '{item.name}'" if isinstance(item, Node) else ""
        locs: tuple[Loc, ...] = item.locs if isinstance(item, Node) else ()
        text = f"{check.__name__} of {what}{where}: {message}"
        raise _report(text, locs, items, at, lines)


def _report(
    text: str, locs: tuple[Loc, ...], items: Sequence[Any], at: int | None,
    lines: Callable[[Sequence[Any]], list[str]],
) -> Error:
    if at is None:
        return error("W601", text, locs=locs)
    first = max(at - AROUND, 0)
    shown = items[first:at + AROUND + 1]
    try:
        printed = lines(shown)
    except TypeError:  # what is broken may have no text
        printed = [repr(item) for item in shown]
    marked = [f"   {'>' if first + offset == at else '|'}   {line}"
              for offset, line in enumerate(printed)]
    return error("W601", "\n".join([text, *marked]), locs=locs)
