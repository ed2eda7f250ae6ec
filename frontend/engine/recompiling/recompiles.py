"""What a function was compiled again for: one line for each kind of change, then a count.

    step recompiled (31 ms): x.shape[0] 3 -> 8 at train.py:14; write weft.compile(dynamic={...})

Methods of several objects have the history of their class's function: of ten objects whose arrays
have changed alike, one line tells. What is advised has been tried: a trace with these dims fits all
sizes that came so far.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from ....ir.diagnose import error
from ....ir.record import replace
from ...face.function import OnRecompile, RecompileWarning
from ...face.source import definition, is_library, user_loc
from ...tracing.arguments import Call
from ...tracing.context.traced import Traced
from .adopted import Made
from .changes import Difference, Key, differences, said
from .history import KEPT, History, shorten
from .sizes import Dynamic, Types, accepted, alike, allows, dynamics_for


class Recompiles:
    """Tells a user what a function is compiled again for. ``trace`` gives a trace of a call from
    which the function has learned nothing. ``history`` is that of the class of a method."""

    def __init__(
        self, function: Callable[..., Any], name: str, policy: OnRecompile,
        history: History | None,
    ) -> None:
        self._function, self._name, self._policy = function, name, policy
        self._of_object = history is not None
        self.history = History() if history is None else history

    @property
    def allowed(self) -> bool:
        """Whether there may be more than one program."""
        return self._policy != "error"

    def clear(self) -> None:
        """Forget what was told, but for that of other objects."""
        if not self._of_object:
            self.history.clear()

    def differences(
        self, made: Mapping[Key, Made], key: Key, call: Call,
        outdated: Difference | None, fixed: Mapping[str, str], trace: Callable[[Call], Traced],
    ) -> list[Difference]:
        """Why a program is made for a call; for nothing, if it is the first. ``outdated``: what is
        wrong with the one that there is. Raises Error (W405) where there may be no second."""
        if not made:
            other = Difference("object", "self", "another object", "this object", "")
            return [other] if self._of_object and self.history.compiled else []
        if outdated is not None:
            found = [outdated]
        elif hash(key) in self.history.dropped:
            found = [Difference(
                "dropped", "", "kept", "dropped", "the program for these arguments was dropped, as "
                f"{KEPT} were used later", "call it with fewer kinds of arguments")]
        else:
            found = differences(made, key, call.signature, fixed)
        if self._policy == "error":
            advice = self._advice(found, made, call, trace)
            raise error("W405", f"{self._name} would be compiled again: {said(found)}",
                        locs=user_loc(), hint=f"{advice}, or allow it with on_recompile='warn'")
        return found

    def add(
        self, found: Sequence[Difference], before: Mapping[Key, Made], call: Call,
        milliseconds: float, trace: Callable[[Call], Traced],
    ) -> None:
        """A program was made: count it, and tell of it in one line, if that is news. A choice
        between few values is none, nor are lists that have become longer, nor other objects."""
        file, line, module = self._caller()
        self.history.add(found, f"{file}:{line}", milliseconds)
        expected = not found or all(each.choice for each in found) or (
            found[0].kind in ("list", "object"))
        if expected or self._policy != "warn" or not self.history.is_news(found):
            return
        warnings.warn_explicit(
            RecompileWarning(f"{self._name} recompiled ({milliseconds:.0f} ms): {said(found)} at "
                             f"{file}:{line}; {self._advice(found, before, call, trace)}"),
            None, file, line, module)

    def _advice(
        self, found: Sequence[Difference], made: Mapping[Key, Made], call: Call,
        trace: Callable[[Call], Traced],
    ) -> str:
        """What to write so that it need not be compiled for."""
        fix = next((each.fix for each in found if each.fix), "")
        if fix:
            return fix
        every: list[Types] = [*[(each.names, each.types) for each in made.values()],
                              (call.names, call.types)]
        calls = alike(every)[-1]
        for dynamic in dynamics_for(calls, call.signature):
            if accepted(dynamic, every, call.signature) and self._serves(
                    dynamic, call, calls, trace):
                return f"write weft.compile(dynamic={dynamic})"
        return "no dynamic= serves all of these sizes: pass few of them, padded, say"

    def _serves(
        self, dynamic: Dynamic, call: Call, calls: Sequence[Types], trace: Callable[[Call], Traced]
    ) -> bool:
        """Whether one program can do for calls, if these dims are dynamic."""
        trial = replace(call, signature=call.signature.with_dynamic(dynamic))
        try:
            found = allows(trace(trial).graph, trial.types, calls)
        except Exception:
            found = False
        self.history.advised[repr(dynamic)] = found
        shorten(self.history.advised)
        return found

    def _caller(self) -> tuple[str, int, str]:
        """File, line and module of the innermost code of the user's. A thread may run the function
        and nothing else of the user's; then it is where that is defined."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if not is_library(frame):
                return frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", "")
            frame = frame.f_back
        place = next(iter(definition(self._function)), None)
        module = getattr(self._function, "__module__", None) or ""
        return (place.file, place.line, module) if place else ("<unknown>", 1, module)
