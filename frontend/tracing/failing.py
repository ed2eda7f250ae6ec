"""What fails a step with a text or an exception of the user's that tells traced values.

    raise ValueError(f"negative {s}")      ok = host_call(0, s), in the way that fails
                                           assert_true ok

The host keeps the values, in the thread that runs the step; when the check has failed, and that was
the first one, who called takes them and makes the exception (``exception``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from ...ir.diagnose import FailedAssertionError
from ...ir.host import HostFunction
from ...ir.loc import Loc
from ...ir.types import BOOL, TensorType
from ..face import tree
from .context.active import current
from .context.recorder import TraceContext
from .host import recorded
from .late import LateText, Nest, late, taken
from .values.texts import filled, writing


class Failure:
    """An exception of the user's, or the text of an assertion (``kind`` None), as a function of the
    values that it tells."""

    def __init__(self, kind: type[BaseException] | None, nest: Nest, text: str) -> None:
        self.kind, self.nest, self.text = kind, nest, text
        self.locs: Sequence[Loc] = ()  # of the check, whose objects no other program has
        self._kept = threading.local()

    def says(self, other: Failure) -> bool:
        """Whether another one is no other, whatever the values."""
        return not self.nest.kinds and (self.kind, self.nest) == (other.kind, other.nest)

    def is_at(self, locs: Sequence[Loc]) -> bool:
        """Whether the check with these places is its own."""
        return bool(locs) and any(loc is locs[0] for loc in self.locs)

    def keep(self, _: Any, *arrays: Any) -> Any:
        """What a failing step tells: of the first example of a batch."""
        if "values" not in self._kept.__dict__:
            self._kept.values = arrays
        return np.bool_(False)

    def forget(self) -> tuple[Any, ...]:
        """The values of the step that has failed in this thread, which are kept no longer."""
        found: tuple[Any, ...] = self._kept.__dict__.pop("values", ())
        return found

    def without_values(self) -> BaseException | None:
        """The exception with the names of values in its text."""
        if self.kind is None:
            return None
        own = self.kind.__new__(self.kind)
        own.args = (self.text.partition(": ")[2],)
        return own

    def made(self, values: tuple[Any, ...]) -> Any:
        """The exception, or the text."""
        told = self.nest.of(values)
        if self.kind is None:
            return told
        given, args, attributes = told
        own = self.kind.__new__(self.kind, *given)
        if not isinstance(self.kind.__init__, FunctionType):  # which has set attributes in C
            own.__init__(*given)  # type: ignore[misc]
        own.args = args
        own.__dict__.update(attributes)
        return own


def told_by(problem: BaseException) -> tuple[Any, Any, Any]:
    """What an exception is made of, its arguments and its attributes."""
    built = None if isinstance(type(problem).__reduce__, FunctionType) else problem.__reduce__()
    given = problem.args if built is None or isinstance(built, str) else built[1]
    return given, problem.args, dict(problem.__dict__)


def failure_of(ctx: TraceContext, problem: BaseException) -> tuple[Failure, Any]:
    """An exception, and a bool of the active trace that is false, once its values are kept; None
    where it tells no values."""
    operands, nest = taken(ctx, told_by(problem))
    with writing() as holes:
        said = str(problem)
    said = filled(said, [_described(late(hole.written, hole.value)) for hole in holes])
    return _known(Failure(type(problem), nest, f"{type(problem).__name__}: {said}"), operands)


def failed_assertion(ctx: TraceContext, message: Any) -> tuple[Failure, Any]:
    """The same of the message of an assertion."""
    text = late(str, message)
    operands, nest = taken(ctx, text)
    return _known(Failure(None, nest, f"the assertion does not hold: {_described(text)}"), operands)


def _described(text: Any) -> str:
    return text.described() if isinstance(text, LateText) else text


def _known(failure: Failure, operands: Any) -> tuple[Failure, Any]:
    return failure, kept(failure, operands) if operands else None


def kept(failure: Failure, operands: Sequence[Any] = ()) -> Any:
    """A bool that is false, once the host has kept the values; after what was told before."""
    ctx = current()
    told = ctx.root.told
    after = np.int64(0) if told is None else ctx.apply(ctx.read, (told,))
    keep = HostFunction("weft.failing.keep", failure.keep, keeps=True)
    return ctx.apply(recorded, (keep, [after, *operands], [TensorType(BOOL, ())], tree.LEAF),
                     stem="keep")


def exception(
    problem: FailedAssertionError, programs: Iterable[Mapping[str, Failure]]
) -> BaseException:
    """What the user is to see of a check that has failed in one of some programs: an exception of
    the function's own, or the check with its text. The values that failing checks have kept are let
    go."""
    found: Failure | None = None
    values: tuple[Any, ...] = ()
    for failures in programs:
        for text, failure in failures.items():
            kept = failure.forget()
            if text == problem.message and (found is None or failure.is_at(problem.locs)):
                found, values = failure, kept
    if found is None:
        return problem
    if len(values) != len(found.nest.kinds):  # kept by another thread, or not at all
        return found.without_values() or problem
    made = found.made(values)
    if isinstance(made, BaseException):
        return made
    problem.message = f"the assertion does not hold: {made}"
    return problem
