"""Checkpoints every so often, written by a thread of its own while the variables go on changing."""

from __future__ import annotations

import os
import threading
import time
import warnings
from contextlib import suppress
from types import TracebackType
from typing import Any

from ...ir.diagnose import error
from ...ir.forks import freed
from .checkpoint import Variables, save, step_of


class SaveWarning(UserWarning):
    """A checkpoint could not be written; the next one is tried when its time comes."""


class Saver:
    """Saves ``variables`` to the folder ``path`` every ``every`` seconds and when it is left.

        with weft.Saver("run", variables, every=60.0, keep=3, step=steps):
            for batch in batches:
                train(batch)

    Each checkpoint holds the values of one moment between two updates, and no update waits for
    it. All variables of a ``weft.Session`` or ``Graph`` are saved where ``variables`` is one.
    ``step`` is a variable that counts updates: with it, the checkpoint names the very step,
    and an ``weft.data`` input resumes by ``batches.assign(step)``. ``keep`` checkpoints stay; see
    ``weft.save``. What a save in the background raises is a ``SaveWarning``, and the next one
    tries again; the last one, when the body ends, raises it.

    >>> import tempfile, weft
    >>> w, steps = weft.Variable(0.0, name="saver/w"), weft.Variable(0, name="saver/steps")
    >>> with tempfile.TemporaryDirectory() as run:
    ...     with weft.Saver(run, [w, steps], every=600, step=steps):
    ...         for at in range(3):
    ...             _ = w.assign_add(0.5), steps.assign_add(1)
    ...     weft.restore(run, [w])
    3
    """

    def __init__(
        self, path: str | os.PathLike[str], variables: Variables, *, every: float = 600.0,
        keep: int = 5, step: Any = None,
    ) -> None:
        if isinstance(every, bool) or not isinstance(every, int | float) or not every > 0:
            raise error("W304", f"every is a number of seconds above 0, not {every!r}",
                        hint="every=60.0 saves each minute")
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise error("W304", f"keep is a number of checkpoints from 1 on, not {keep!r}",
                        hint="keep=3 has the last three")
        if step is not None:
            step_of(step)
        self.path = path
        self._variables = variables
        self._every = every
        self._keep = keep
        self._step = step
        self._ended = freed(threading.Event())
        self._saving = freed(threading.RLock())
        self._thread: threading.Thread | None = None

    def save(self) -> None:
        """Save now, in the calling thread. Raises what ``weft.save`` raises."""
        with self._saving:
            save(self.path, self._variables, self._step, self._keep)

    def __enter__(self) -> Saver:
        if self._thread is not None:
            raise error("W304", "this saver is at work already", hint="make one for each loop")
        self._ended.clear()
        self._thread = threading.Thread(target=self._run, name="weft-saver", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, problem: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        try:
            self.save()
        except Exception as other:
            if problem is None:
                raise
            problem.add_note(f"the last checkpoint could not be written: {other}")

    def _run(self) -> None:
        due = time.monotonic() + self._every
        while not self._ended.wait(min(max(0.0, due - time.monotonic()), threading.TIMEOUT_MAX)):
            try:
                self.save()
            except Exception as problem:
                with suppress(SaveWarning):  # where warnings are errors, the next one tries again
                    warnings.warn(f"no checkpoint in {self.path}: {problem}", SaveWarning,
                                  stacklevel=1)
            due = max(due + self._every, time.monotonic())
