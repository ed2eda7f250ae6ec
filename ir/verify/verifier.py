"""The verifier: every rule that an IR keeps, as one named check each.

``GRAPH_CHECKS``, ``KERNEL_CHECKS`` and ``PLAN_CHECKS`` list them in order; a check may rely on the
ones before it. A broken rule raises VerifyError (W601) that names the check and shows the lines
around the place. It is a defect of the pass that wrote the IR, never of the user's program. In a
text that a person has written (``read``) it is an error like any other of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..diagnose import Error, error
from ..graph import Graph, Node
from ..kernels.kernel import Kernel
from ..loc import Loc
from ..plans.plan import Plan, all_steps
from ..text.parser import items_of
from ..text.printer import print_nodes, print_step, print_stmt
from ..text.scanner import Scanner
from .graph import GRAPH_CHECKS, Scope, inner_scopes
from .kernel import KERNEL_CHECKS
from .plan import PLAN_CHECKS

__all__ = ["GRAPH_CHECKS", "KERNEL_CHECKS", "PLAN_CHECKS", "read", "verify_graph", "verify_kernel",
           "verify_plan"]

# What shows the place of an item in the text that it was read from.
Shown = Callable[[object], str]
AROUND = 2  # lines shown on either side of a problem


def read(text: str) -> list[Graph | Kernel | Plan]:
    """All items of a text, parsed and verified.

    Raises TextError (W501), with the line, the column and a caret: for a rule that is broken, too,
    whose check it names.

    >>> read("kernel @k(x: mut f32[4]) { par i in 4 by 1 { x[i] = %0 } }")
    Traceback (most recent call last):
    weft.ir.diagnose.TextError: W501: %0 is not defined above
      --> line 1, column 53
       |   kernel @k(x: mut f32[4]) { par i in 4 by 1 { x[i] = %0 } }
       |                                                       ^
    """
    scanner = Scanner(text)
    items = items_of(scanner)

    def shown(item: object) -> str:
        return scanner.shown(scanner.place(item))

    for item in items:
        match item:
            case Graph():
                verify_graph(item, shown)
            case Kernel():
                verify_kernel(item, shown)
            case Plan():
                verify_plan(item, shown)
    return items


def verify_graph(graph: Graph, shown: Shown | None = None) -> None:
    """Check a graph and the graphs nested in it; raises VerifyError (W601)."""
    pending = [Scope(graph)]
    while pending:
        scope = pending.pop()
        own = scope.graph

        def lines(nodes: Sequence[Node], graph: Graph = own) -> list[str]:
            return print_nodes(graph, nodes)

        for check in GRAPH_CHECKS:
            _raise_first(own, check, check(scope), own.nodes, lines, shown)
        pending += inner_scopes(scope)


def verify_kernel(kernel: Kernel, shown: Shown | None = None) -> None:
    """Check a kernel; raises VerifyError (W601)."""
    for check in KERNEL_CHECKS:
        _raise_first(kernel, check, check(kernel), kernel.body,
                     lambda body: [print_stmt(stmt) for stmt in body], shown)


def verify_plan(plan: Plan, shown: Shown | None = None) -> None:
    """Check a plan and its kernels; raises VerifyError (W601)."""
    for kernel in plan.kernels.values():
        verify_kernel(kernel, shown)
    for check in PLAN_CHECKS:
        _raise_first(plan, check, check(plan), list(all_steps(plan.steps)),
                     lambda steps: [print_step(step)[0] for step in steps], shown)


def _raise_first(
    whole: Graph | Kernel | Plan,
    check: Callable[..., Any],
    problems: Iterator[tuple[Any, str]],
    items: Sequence[Any],
    lines: Callable[[Sequence[Any]], list[str]],
    shown: Shown | None,
) -> None:
    """Raise the first problem that a check found, if it found one."""
    what = f"{type(whole).__name__.lower()} @{whole.name}"
    for item, message in problems:
        at = next((at for at, other in enumerate(items) if other is item), None)
        where = f" at '{item.name}'" if isinstance(item, Node) else ""
        locs: tuple[Loc, ...] = item.locs if isinstance(item, Node) else ()
        text = f"{check.__name__} of {what}{where}: {message}"
        if shown is not None:
            raise error("W501", text + shown(whole if item is None else item))
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
