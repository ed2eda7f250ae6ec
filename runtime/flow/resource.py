"""Segments that ask a resource: how a queue's answer becomes the results of a node.

A row of the RESOURCE family starts an operation, and gives what is pending
(``ir/ops/control/queue``): done at once, or later, by whichever thread makes it so. No thread of a
step waits for it. If the step ends first, the operation is cancelled; if the step fails later, it
is undone, as far as it can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.diagnose import Error, error
from ...ir.graph import Node, queues_of
from ...ir.indices.index import Dim, symbols_of
from ...ir.indices.walk import evaluate
from ...ir.loc import Loc
from ...ir.record import record
from ..state import Array
from ..watch import out_of_time
from .frames import Begin
from .run import Run, Task


def asker(node: Node, resources: Mapping[str, Any]) -> Begin:
    """What starts the operation of a node on its resource."""
    resource = resources[node.attrs["queue"]]
    if node.op.puts is None:
        return lambda task, args: _Asked(node, task).begin(resource, args)
    return lambda task, args: _Asked(node, task).begin(task.place(resource), args)


@record(frozen=True)
class Keeping:
    """Room in a queue that a step asks for before it reads the variables that it updates.

    What it puts depends on them. Were it to wait for room then, all others that update these
    variables would wait for it, and so perhaps who is to make room.
    """

    resource: Any
    counts: tuple[Dim, ...]
    locs: Sequence[Loc]

    @staticmethod
    def of(nodes: Sequence[Node], resources: Mapping[str, Any]) -> Keeping | None:
        """For what a step puts once it has read its variables, of all nodes that talk then.

        None where it would not do: of several queues, whoever takes from one may wait for what
        waits for another; and of what is put in a loop nobody knows the number."""
        queues = {id(queue): queue for node in nodes
                  for queue in map(resources.__getitem__, queues_of(node))}
        puts = [node for node in nodes if node.op.puts is not None]
        if len(queues) != 1 or not puts or any(node.op.control is not None for node in nodes):
            return None
        (resource,) = queues.values()
        counts = [node.op.puts(*(value.type for value in node.inputs), **node.attrs)
                  for node in puts if node.op.puts is not None]
        return Keeping(resource, tuple(counts), puts[0].locs)

    def count(self, dims: Mapping[str, int]) -> int:
        """For how many elements, at these sizes; 0 if that is not known, or more than fit."""
        if not all(symbols_of(count) <= dims.keys() for count in self.counts):
            return 0
        wanted = sum(evaluate(count, dims) for count in self.counts)
        return wanted if wanted <= self.resource.capacity else 0

    def wait(self, run: Run, count: int) -> None:
        """Let the caller of a step wait for the room, which is given back if the step fails."""
        room = self.resource.keep(count)
        run.keep(self.resource, room)
        try:
            room.enter()
            room.wait(run.left)
        except Error as problem:
            raise out_of_time(run.seconds) if problem.code == "W413" else _at(
                self.locs, problem) from None


class _Asked:
    """One operation that was started, and the task that wants its results."""

    def __init__(self, node: Node, task: Task) -> None:
        self._node, self._task = node, task
        self._pending: Any = None

    def begin(self, resource: Any, args: Sequence[Array]) -> None:
        ref = self._node.op.ref
        assert ref is not None
        self._pending = ref(resource, *args, **self._node.attrs, wake=self.answer)
        self._task.on_cancel(self.cancel, self.answer)
        self._pending.enter()
        self.answer()

    def answer(self) -> None:
        """Tell the task what has come out, if anything has."""
        pending = self._pending
        if not pending.done:
            return
        pending.wake = None  # it refers to this, which refers to it
        try:
            results = pending.results()
        except Exception as problem:
            pending.drop()
            self._task.fail(_at(self._node.locs, problem))
            return
        if not self._task.done(results, pending.drop):
            pending.drop()

    def cancel(self) -> None:
        """The step is over without it."""
        self._pending.drop()


def _at(locs: Sequence[Loc], problem: BaseException) -> BaseException:
    """An error of a resource, with the line of who asked."""
    if not isinstance(problem, Error) or problem.locs:
        return problem
    return error(problem.code, problem.message, locs=locs, types=problem.types,
                 hint=problem.hint)
