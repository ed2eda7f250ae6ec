"""``raise`` on a way that is chosen when the function runs: a check, with the user's exception.

    if np.any(x < 0):                    the step fails unless ~any(x < 0), and then
        raise ValueError("negative")     ValueError is raised where the function was called;
    y = np.sqrt(x)                       the other way is the only one that is left

What Python raises itself on such a way, ``d["b"]`` of a dict without it, is raised so too. What may
be caught inside of the function cannot wait until the step is over: that is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dis import get_instructions
from inspect import getattr_static
from itertools import pairwise
from types import FunctionType, GeneratorType
from typing import Any

from ....ir.diagnose import Error, OutOfRangeError, error
from ...face.source import user_loc
from ...tracing.context.active import current
from ...tracing.context.recorder import ACTIVE, TraceContext
from ...tracing.context.request import GivenUpError
from ...tracing.failing import told_by
from ...tracing.late import holds
from ...tracing.trace import EndError
from ..calls.protocols import entered
from .state import Part, lost_name

PYTHONS = (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError)


def raised(problem: Any) -> Any:
    """The exception of a ``raise``. Raises TracerError (W201) where it is not known while tracing
    whether it is raised, and the way it is on is none of an ``if`` alone."""
    ctx = ACTIVE.get()
    if ctx is None:  # what the host runs
        return problem
    made = problem() if isinstance(problem, type) else problem
    first = ctx.parent is None and ctx.asserted is None and ctx.told is None
    if first and not isinstance(made, BaseException):
        return problem
    if first and not holds(told_by(made)):
        return made
    if ctx.caught or not (ctx.way or ctx.parent is None):
        raise _unknown(ctx)
    raise EndError(made)


def _unknown(ctx: TraceContext) -> Error | GivenUpError:
    """The error of an exception that may be raised; none that a handler of the user's would catch,
    which may then run in vain."""
    found = error("W201", "whether this exception is raised is not known before the function runs",
                  locs=user_loc(), hint="raise it in an if outside of try, or write the condition "
                  "as an assert, which is checked when the function runs, or mark the result: "
                  "np.where(bad, np.nan, y)")
    return GivenUpError(ctx.root.asked.need(found)) if ctx.caught else found


def raised_by(run: Part) -> EndError | None:
    """Run one way of an ``if``: the exception that it ends in, if it does."""
    current().way = True
    try:
        run()
    except EndError as end:
        return end
    except PYTHONS as problem:
        if is_pythons(problem):
            return EndError(problem)
        raise
    return None


def is_pythons(problem: Exception) -> bool:
    """Whether an exception is one that Python, or NumPy, raises whenever code comes there: none of
    a name that has no one value, or of writing to what is known and so read-only. Gives the trace
    up where a handler of the user's would catch it, which may never be raised."""
    found = _is_pythons(problem)
    if found and current().caught:
        raise _unknown(current())
    return found


def _is_pythons(problem: Exception) -> bool:
    if isinstance(problem, NameError):  # a local name may have a value in another round
        return "is not defined" in str(problem) and not lost_name(problem)
    if type(problem) is ValueError:
        return current().root.request.known == 0
    return isinstance(problem, OutOfRangeError) or not _is_ours(type(problem).__module__)


@contextmanager
def caught() -> Iterator[None]:
    """The body of a ``try`` with handlers."""
    ctx = ACTIVE.get()
    if ctx is None:
        yield
        return
    saved, ctx.caught = ctx.caught, True
    ctx.root.has_caught = True
    try:
        yield
    finally:
        ctx.caught = saved


def manager(x: Any) -> Any:
    """What a ``with`` enters: the body of one that may let exceptions end is one of a ``try``."""
    return _Catching(entered(x)) if ACTIVE.get() is not None and _may_catch(x) else entered(x)


def _may_catch(x: Any) -> bool:
    generator = getattr(x, "gen", None)
    if isinstance(generator, GeneratorType):
        frame = generator.gi_frame
        return frame is not None and not _is_ours(frame.f_globals.get("__name__", "")) and any(
            step.opname == "CHECK_EXC_MATCH" for step in get_instructions(generator.gi_code))
    leave = getattr_static(type(x), "__exit__", None)
    if not isinstance(leave, FunctionType) or _is_ours(leave.__module__):
        return False
    steps = list(get_instructions(leave.__code__))
    return any(step.opname == "RETURN_VALUE" and not (
        before.opname == "LOAD_CONST" and not before.argval) for before, step in pairwise(steps))


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]


class _Catching:
    def __init__(self, x: Any) -> None:
        self._x, self._body = x, caught()

    def __enter__(self) -> Any:
        self._body.__enter__()
        return self._x.__enter__()

    def __exit__(self, *problem: Any) -> Any:
        self._body.__exit__(None, None, None)
        return self._x.__exit__(*problem)
