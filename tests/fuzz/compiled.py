"""Weft's side of a program: compiled as it stands, or interpreted from its graph."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

import weft

from . import prelude
from .oracle import Answer, load
from .program import Program, Settings, flat

# What Weft may refuse at compile time: unsupported functions and combinations, and, where sizes are
# symbolic, what cannot be told without them.
UNSUPPORTED = frozenset(("W111", "W113", "W123", "W201", "W203"))
SYMBOLIC = frozenset(("W101", "W102", "W103", "W104", "W105", "W121", "W122", "W304"))

# Of a step that NumPy runs, and what NumPy says of arrays that are known while tracing.
ERRORS = (weft.Error, np.linalg.LinAlgError, IndexError)
# What else NumPy and Python say of such arrays and of sizes that are known: their own words.
PLAIN = (ValueError, ZeroDivisionError)


class Refused(Exception):  # noqa: N818
    """Weft does not support the program, and said so before it ran; or Python itself does not."""

    def __init__(self, problem: Exception) -> None:
        text = f"{problem.code} {problem.message}" if isinstance(problem, weft.Error) else (
            f"Python: {problem}")
        super().__init__(text)


class Compiled:
    """One program under one way to compile it."""

    def __init__(self, program: Program, settings: Settings) -> None:
        self.program = program
        self.options: dict[str, Any] = {
            "opt": settings.opt, "target": settings.runnable, "threads": settings.threads,
            "on_recompile": "silent"}
        scope = prelude.scope()
        inner = weft.compile(**self.options)
        function, self.held = load(program.source(), scope)(inner, weft.Variable)
        self.function = weft.compile(dynamic=program.dynamic, **self.options)(function)
        # Of stages, all results are those of the graph.
        self.staged = weft.compile(dynamic=program.dynamic, inout="error", **self.options)(function)

    def trace(self, args: Sequence[Any]) -> Any:
        """The graph. Raises Refused, or the weft.Error that NumPy's own would be."""
        try:
            return self.staged.trace(*args)
        except weft.Error as problem:
            if problem.code in UNSUPPORTED or (self.program.dynamic and problem.code in SYMBOLIC):
                raise Refused(problem) from None
            raise

    def run(self, args: Sequence[Any]) -> Answer:
        """One call. Errors that are neither Weft's own nor maybe NumPy's leave as they are: they
        are findings."""
        try:
            results, shape = flat(self.function(*args))
        except (*ERRORS, *PLAIN) as problem:
            return Answer([], None, problem, self.values())
        return Answer(results, shape, None, self.values())

    @staticmethod
    def is_plain(problem: Exception) -> bool:
        """Whether an error is not of Weft: NumPy has to say the same."""
        return isinstance(problem, PLAIN) and not isinstance(problem, ERRORS)

    def values(self) -> tuple[Any, ...]:
        """The variables."""
        return tuple(np.array(held.numpy()) for held in self.held)

    def assign(self, values: Sequence[Any]) -> None:
        """Give the variables values."""
        for held, value in zip(self.held, values, strict=True):
            held.assign(value)

    def run_at_once(self, calls: Sequence[Sequence[Any]], rounds: int = 3) -> list[list[Answer]]:
        """All calls from threads of their own at the same time, several times each."""
        found: list[list[Answer]] = [[] for _ in calls]
        start = threading.Barrier(len(calls))

        def work(at: int) -> None:
            start.wait()
            with np.errstate(all="ignore"):
                found[at] += [self.run(calls[at]) for _ in range(rounds)]

        threads = [threading.Thread(target=work, args=(at,)) for at in range(len(calls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found
