"""Segments that ask a resource: how a queue's answer becomes the results of a node.

A row of the RESOURCE family starts an operation, and gives what is pending
(``ir/ops/control/queue``): done at once, or later, by whichever thread makes it so. No thread of a
step waits for it. If the step ends first, the operation is cancelled; if the step fails later, it
is undone, as far as it can be.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.diagnose import Error, error
from ...ir.graph import Node
from ..state import Array
from .run import Begin, Task


def asker(node: Node, resources: Mapping[str, Any]) -> Begin:
    """What starts the operation of a node on its resource."""
    resource = resources[node.attrs["queue"]]
    return lambda task, args: _Asked(node, task).begin(resource, args)


class _Asked:
    """One operation that was started, and the task that wants its results."""

    def __init__(self, node: Node, task: Task) -> None:
        self._node, self._task = node, task
        self._pending: Any = None
        self._once = threading.Lock()  # whoever gets it answers: who began, or who woke

    def begin(self, resource: Any, args: Sequence[Array]) -> None:
        ref = self._node.op.ref
        assert ref is not None
        self._pending = ref(resource, *args, **self._node.attrs, wake=self.answer)
        self._task.on_cancel(self.cancel)
        self.answer()

    def answer(self) -> None:
        """Tell the task what has come out, if anything has."""
        pending = self._pending
        if pending is None or not pending.done or not self._once.acquire(blocking=False):
            return
        try:
            results = pending.results()
        except BaseException as problem:
            pending.undo()
            self._task.fail(_at(self._node, problem))
            return
        if not self._task.done(results, pending.undo):
            pending.undo()

    def cancel(self) -> None:
        """The step is over without it."""
        self._pending.cancel(error("W411", "the step that waited has ended", locs=self._node.locs))


def _at(node: Node, problem: BaseException) -> BaseException:
    """An error of a resource, with the line of the node that asked."""
    if not isinstance(problem, Error) or problem.locs:
        return problem
    return error(problem.code, problem.message, locs=node.locs, types=problem.types,
                 hint=problem.hint)
