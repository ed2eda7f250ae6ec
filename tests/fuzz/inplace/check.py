"""What NumPy leaves in the arguments, and what Weft leaves there: bit for bit.

    NumPy returns      so does Weft, with equal results and arguments, the same of them returned; or
                       it refuses, which is counted
    NumPy raises       Weft raises an error of that class
    Weft raises        all arguments are what they were

Bits are those of the numbers: one NaN is as good as another. Which of two numbers or arrays a name
stands for may depend on a branch, or on the rounds of a loop: Weft has one of the types of both.
"""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from support import with_source

import weft

from .draw import Program, writeable

CALLS = 3
STOPS = 6  # interrupts of one program
SECONDS = 20.0  # of the processor, for one program
# What is refused: the last ones by types that ways must share; the gaps of ufunc.at among them.
UNSUPPORTED = re.compile(r"W2|W113|W127|W111 cannot add to a bool array|"
                         r"W122 1 indices for an array of 0 dims|"
                         r"W1\d\d .* (on one way and|before the loop and) ")


@dataclass(frozen=True)
class Outcome:
    """``ok``, ``refused`` or ``finding``, and what it is."""

    verdict: str
    what: str = ""


class MismatchError(Exception):
    """Something differs."""


class Stop(KeyboardInterrupt):
    """What a signal's handler raises."""


Parts = tuple[list[int], list[int]]
"""Of an array: which of the arguments' parts it is, and of which it has the memory."""


class Given:
    """Arguments, and what they were made of, which may be elsewhere after a call."""

    def __init__(self, args: Any) -> None:
        self.args = args
        self.parts = _parts(args)

    def told(self, loose: bool = False) -> Any:
        """What the arguments are, and the arrays that they were, with the memory around these."""
        return told(self.args, loose), [
            (array.dtype.str, _bytes(array), None if array.base is None else _bytes(array.base))
            for array in self.parts if isinstance(array, np.ndarray)]

    def where(self, nest: Any) -> list[list[int]]:
        """Which of the parts stand in a nest."""
        return [[at for at, one in enumerate(self.parts) if one is each] for each in _parts(nest)]

    def of(self, result: Any) -> list[Parts]:
        """Which of the parts the arrays of a nest are, and whose memory they have."""
        return [([at for at, one in enumerate(self.parts) if one is each],
                 [at for at, one in enumerate(self.parts) if _is_all_of(each, one)])
                for each in _parts(result) if isinstance(each, np.ndarray)]


def _is_all_of(x: Any, y: Any) -> bool:
    """Whether two arrays are the same elements in memory."""
    return isinstance(y, np.ndarray) and (x.ctypes.data, x.size, x.dtype) == (
        y.ctypes.data, y.size, y.dtype)


class EndlessError(BaseException):
    """A program, or its trace, does not end."""


def told(nest: Any, loose: bool = False) -> Any:
    """What a nest is: not how arrays lie in memory. If ``loose``, all numbers are alike."""
    if loose and isinstance(nest, (np.ndarray, np.generic, int, float)) and np.ndim(nest) == 0:
        return "number", repr(complex(nest))
    if isinstance(nest, (np.ndarray, np.generic)):
        kind = "array" if isinstance(nest, np.ndarray) else "number"
        return kind, nest.dtype.newbyteorder("=").str, nest.shape, _bytes(nest)
    if isinstance(nest, dict):
        return [(key, told(item, loose)) for key, item in nest.items()]
    if isinstance(nest, (list, tuple)):
        return type(nest).__name__, [told(item, loose) for item in nest]
    if hasattr(nest, "__dict__"):
        return type(nest).__name__, told(vars(nest), loose)
    return type(nest).__name__, repr(nest)


def _parts(nest: Any) -> list[Any]:
    """The arrays and containers of a nest."""
    if isinstance(nest, np.ndarray):
        return [nest]
    items = (nest.values() if isinstance(nest, dict) else nest if isinstance(nest, (list, tuple))
             else vars(nest).values() if hasattr(nest, "__dict__") else None)
    return [] if items is None else [nest, *(each for item in items for each in _parts(item))]


def _bytes(x: Any) -> bytes:
    """Its elements in order, with one NaN for all."""
    x = np.array(x)
    x = x.astype(x.dtype.newbyteorder("="))
    if x.dtype.kind in "fc":
        parts = x.reshape(-1).view(f"f{x.real.itemsize}")
        x = np.where(np.isnan(parts), np.nan, parts)
    return bytes(x.tobytes())


def check(program: Program) -> Outcome:
    """Run a program with all its arguments."""
    kept = signal.signal(signal.SIGVTALRM, _ended)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        refused = _checked(program)
    except MismatchError as problem:
        return Outcome("finding", str(problem))
    except (Exception, EndlessError) as problem:
        return Outcome("finding", _named(problem))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, kept)
    return Outcome("refused" if refused else "ok", refused)


def _ended(*_: object) -> None:
    raise EndlessError("it does not end")


def _checked(program: Program) -> str:
    host = SimpleNamespace(host_call=lambda function, spec, *args: np.array(function(*args))[()],
                           Spec=lambda *args: None)
    plain = with_source.run(program.text, {"W": host, "__name__": __name__})
    own = with_source.run(program.text, {"W": weft, "__name__": __name__})
    function = _of_all(plain, program, lambda f: f)
    compiled = _of_all(own, program, lambda f: weft.compile(f, on_recompile="silent"))
    refused = ""
    with np.errstate(all="ignore"):
        for call in range(CALLS):
            refused = _call(plain, function, own, compiled, call, program) or refused
    return refused


def _of_all(space: Any, program: Program, compiled: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function of all arrays, of which two may be around what is compiled."""
    if not program.around:
        made: Callable[..., Any] = compiled(space["f"])
        return made
    inner = space["around"](None, None)
    cells = dict(zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True))
    entry = compiled(inner)

    def call(x: Any, y: Any, *rest: Any) -> Any:
        for name, array in (("x", x), ("y", y)):
            if name in cells:
                cells[name].cell_contents = array
        return entry(*rest)

    return call


def _call(
    plain: Any, function: Any, own: Any, compiled: Any, call: int, program: Program
) -> str:
    """One call; why it was refused."""
    theirs, ours, before = (Given(space[f"args{call}"]()) for space in (plain, own, own))
    wanted, theirs_error = _caught(function, theirs)
    lines = program.text.partition("def f(")[2]
    branches = any(word in lines for word in ("if ", "for ", "while "))
    if theirs_error is None and program.interrupted:
        _interrupted(own, compiled, call, before, theirs)
    found, error = _caught(compiled, ours)
    if "read-only" in str(theirs_error):  # Weft refuses them, but for writes that change nothing
        theirs = Given(plain[f"args{call}"]())
        writeable(theirs.args)
        wanted, theirs_error = _caught(function, theirs)
    raised = f"NumPy raises {_named(theirs_error)}"
    if error is not None:
        if ours.told() != before.told() or ours.where(ours.args) != before.where(before.args):
            raise MismatchError(f"arguments were changed by a call that raised {_named(error)}")
        if theirs_error is not None and isinstance(error, _public(theirs_error)):
            return ""
        if theirs_error is not None and _is_seen_first(error):
            return _named(error)
        if UNSUPPORTED.match(_named(error)) or _is_inside(error, program):
            return _named(error)
        raise MismatchError(f"{_named(error)}, {raised}")
    if theirs_error is not None:
        raise MismatchError(f"no error, {raised}")
    if ours.told(branches) != theirs.told(branches):
        raise MismatchError(f"arguments are {ours.args}, NumPy leaves {theirs.args}")
    if told(found, branches) != told(wanted, branches):
        raise MismatchError(f"the result is {found!r}, NumPy's {wanted!r}")
    for what, ours_of, theirs_of in (("returned", found, wanted),
                                     ("in containers", ours.args, theirs.args)):
        if not _agree(ours.of(ours_of), theirs.of(theirs_of), branches):
            raise MismatchError(f"other arrays are {what}")
    return ""


def _agree(ours: list[Parts], theirs: list[Parts], branches: bool) -> bool:
    """Whether arrays are those that they are in NumPy, or others of that memory. Which one it is
    may depend on a branch: Weft has a new array then, or a number."""
    if branches:
        return True
    return all({*one} <= {*all_theirs} and {*other} <= {*held}
               for (one, held), (other, all_theirs) in zip(ours, theirs, strict=True))


def _is_inside(problem: Exception, program: Program) -> bool:
    """Whether types do not fit in a line of a branch or a loop, which NumPy may never have run."""
    if not isinstance(problem, weft.Error) or problem.code not in ("W101", "W102", "W111", "W112"):
        return False
    lines = program.text.split("\n")
    inside = " " * (12 if program.around else 8)
    return any(lines[place.line - 1].startswith(inside) for place in problem.locs)


def _is_seen_first(problem: Exception) -> bool:
    """Whether an error is told when a function is traced, before others of lines further up."""
    return isinstance(problem, weft.Error) and problem.code.startswith("W1") and (
        problem.code not in ("W124", "W125"))


def _public(problem: Exception) -> type:
    """The class of an error that users name."""
    return next(kind for kind in type(problem).__mro__
                if kind.__module__ in ("builtins", "numpy.exceptions"))


def _caught(function: Callable[..., Any], given: Given) -> tuple[Any, Exception | None]:
    try:
        return function(*given.args), None
    except Exception as problem:
        return None, problem


def _named(problem: BaseException | None) -> str:
    if problem is None:
        return "nothing"
    text = f"{type(problem).__name__}: {problem}"
    if isinstance(problem, weft.Error):
        text = f"{problem.code} {problem.message}"
    return text.split("\n")[0]


def _interrupted(own: Any, compiled: Any, call: int, before: Given, after: Given) -> None:
    """Calls that a signal ends, at a random moment, have left all, or nothing."""
    rng = random.Random(call)
    _, error = _caught(compiled, Given(own[f"args{call}"]()))
    if error is not None:  # it is refused
        return

    def stop(*_: object) -> None:
        raise Stop

    kept = signal.signal(signal.SIGALRM, stop)
    try:
        for _ in range(STOPS):
            given, done = Given(own[f"args{call}"]()), False
            try:
                signal.setitimer(signal.ITIMER_REAL, 10 ** rng.uniform(-5, -3))
                compiled(*given.args)
                done = True
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Stop:
                pass
            if given.told(True) != after.told(True) and (done or given.told() != before.told()):
                raise MismatchError("a call that was interrupted has left half of what it writes")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, kept)
