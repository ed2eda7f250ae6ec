"""Threads that fill queues while a loop empties them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..ir.diagnose import Error, error
from ..ir.forks import freed


class QueueRunner:
    """Calls ``step``, which puts something into ``queue``, in threads, while the body runs.

        q = weft.FIFOQueue(100, "f32[784]")
        with weft.QueueRunner(q, lambda: q.enqueue_many(read()), threads=2):
            while True:
                train(q.dequeue_many(32))

    ``step`` is a function without arguments, such as ``Session.make_callable`` gives for an enqueue
    operation. A thread ends when its step raises StopIteration or EOFError, as an input or another
    queue at its end does; after the last one the queue is closed, so that who takes gets the rest
    and then the end (W412). Any other exception closes it at once, ends all threads, and is raised
    where the body ends. However the body ends, the threads end with it.

    >>> import weft
    >>> q, numbers = weft.FIFOQueue(2, "i64[]"), iter(range(5))
    >>> with weft.QueueRunner(q, lambda: q.enqueue(next(numbers))):
    ...     q.dequeue_many(5).tolist()
    [0, 1, 2, 3, 4]
    """

    def __init__(self, queue: Any, step: Callable[[], Any], threads: int = 1) -> None:
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise error("W305", f"threads is a number of threads, not {threads!r}",
                        hint="threads=1 is one thread")
        resource = getattr(queue, "resource", None)
        if resource is None or not callable(step):
            what = f"a queue, not {type(queue).__name__}" if resource is None else (
                f"a function as its step, not {type(step).__name__}")
            raise error("W305", f"a runner has {what}",
                        hint="write such as weft.QueueRunner(q, lambda: q.enqueue(read()))")
        self.problem: BaseException | None = None
        self._queue, self._step = resource, step
        self._lock = freed(threading.RLock())
        self._running = threads
        self._stopped = False
        self._threads = [threading.Thread(target=self._run, name="weft-queue-runner", daemon=True)
                         for _ in range(threads)]

    def __enter__(self) -> QueueRunner:
        begun = 0
        try:
            for thread in self._threads:
                thread.start()
                begun += 1
        except BaseException:
            self.stop()
            for thread in self._threads[:begun]:
                thread.join()
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, problem: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.stop()
        for thread in self._threads:
            thread.join()
        if self.problem is not None and (problem is None or isinstance(problem, EOFError)):
            raise self.problem
        if self.problem is not None and problem is not None:
            problem.add_note(f"a thread that filled queue '{self._queue.name}' had failed: "
                             f"{self.problem!r}")

    def stop(self) -> None:
        """Let the threads end after their steps; what they wait to put is dropped."""
        self._stopped = True
        self._queue.close(cancel_pending=True)

    def _run(self) -> None:
        try:
            while not self._stopped:
                self._step()
        except (StopIteration, EOFError):
            pass
        except BaseException as problem:
            if not (self._queue.closed and isinstance(problem, Error) and problem.code == "W411"):
                self._failed(problem)
        finally:
            with self._lock:
                self._running -= 1
                last = self._running == 0
            if last:
                self._queue.close()

    def _failed(self, problem: BaseException) -> None:
        with self._lock:
            self.problem = self.problem or problem
        self.stop()
