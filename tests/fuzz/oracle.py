"""What NumPy says about a program, and how much of it is certain.

Arithmetic, comparisons, casts and moves are exact: Weft must give the same bits, and raise where
NumPy raises; ``excused`` lists the exceptions. Where NumPy and Weft may differ (the order of a sum,
the last bits of exp, the sign of a zero maximum) the step says so by its ``close``, and NumPy
computes the program several times more with those steps shaken by as much as they may differ. What
the results spread by is the tolerance: an error bound that follows from the program itself, and is
0 where sums are of small whole numbers. ``jitter`` says how each kind of step is shaken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from support import with_source

from . import prelude
from .data import kind_of, parts
from .jitter import Jitter
from .program import Program, flat

Array = np.ndarray[Any, Any]
RAISED = (IndexError, ValueError, ZeroDivisionError, OverflowError, TypeError, MemoryError)


@dataclass
class Answer:
    """What NumPy gives for one set of arguments."""

    results: list[Any]
    shape: Any = None
    error: Exception | None = None
    held: tuple[Any, ...] = ()  # the variables afterwards


@dataclass
class Expected:
    """An answer, and those that are shaken, which tell how far each leaf is certain.

    ``later`` are the errors that the program would come to if those before were not: which of them
    is raised depends on when each is looked for. ``unneeded`` is what there is besides an error:
    the answer of a program of which no result depends on the values that cannot be computed.
    ``trimmed`` says that sizes depend on values: ``excused``, 5.
    """

    base: Answer
    shaken: list[Answer]
    unneeded: Answer | None = None
    later: tuple[Exception, ...] = ()
    trimmed: bool = False


class Oracle:
    """NumPy's side of a program. Its variables are kept equal to those of the other side."""

    def __init__(self, program: Program) -> None:
        self.program, self.jitter = program, Jitter()
        self.uncertain = any(step.close and step.close[0] != "cast"
                             for step in program.all_steps())
        scope = {**prelude.scope(), "jitter": self.jitter}
        self.function, self.held = load(program.source(True), scope)(_plain, prelude.Held)

    def run(self, args: Sequence[Any], mode: int | None, fill: int | None = None) -> Answer:
        """One run; after it the variables are what they were before."""
        self.jitter.start(mode, fill)
        before = [held.value for held in self.held]
        try:
            with np.errstate(all="ignore"):
                results, shape = flat(self.function(*args))
            after = tuple(held.value for held in self.held)
            return Answer([np.array(x) if isinstance(x, np.ndarray) else x for x in results],
                          shape, None, after)
        except RAISED as problem:
            return Answer([], None, problem, tuple(before))
        finally:
            for held, value in zip(self.held, before, strict=True):
                held.value = value

    def expect(self, args: Sequence[Any], runs: int = 4) -> Expected:
        """The answer and its spread."""
        base, trimmed = self.run(args, None), self.jitter.trimmed
        unneeded, later = self._beyond(args) if base.error is not None else (None, ())
        fill = None if unneeded is None else 0
        shaken = [self.run(args, mode, fill) for mode in range(runs)] if self.uncertain and (
            base.error is None or unneeded is not None) else []
        return Expected(base, shaken, unneeded, later, trimmed)

    def _beyond(self, args: Sequence[Any]) -> tuple[Answer | None, tuple[Exception, ...]]:
        """What comes after the values that raise: the answer, if it is the same whatever stands for
        them, and all errors on the way."""
        first, *others = (self.run(args, None, fill) for fill in range(5))
        if first.error is not None:
            return None, (*self.jitter.met, first.error)
        same = not any(same_bits(first, other) for other in others)
        return first if same else None, tuple(self.jitter.met)

    def largest(self, args: Sequence[Any]) -> float:
        """The largest number that the program computes on its way, infinite for NaN."""
        self.run(args, None)
        return self.jitter.largest

    def shapes(self, args: Sequence[Any]) -> list[Any]:
        """Those of all operands and results, as far as the program comes."""
        self.run(args, None)
        return self.jitter.shapes


def same_bits(one: Answer, other: Answer) -> str:
    """Why two answers are not the same to the last bit, or nothing."""
    if (one.error is None) != (other.error is None):
        return f"{one.error or 'no error'} and {other.error or 'no error'}"
    for a, z in zip([*one.results, *one.held], [*other.results, *other.held], strict=True):
        problem = differs(a, z, (), False)
        if problem:
            return problem.replace("NumPy gives", "and")
    return ""


def _plain(function: Any) -> Any:
    return function


def load(source: str, scope: dict[str, Any]) -> Any:
    """``make`` of a program's text; the text is what tracebacks and errors show."""
    return with_source.run(source, scope)["make"]


def differs(got: Any, want: Any, shaken: Sequence[Any], loose: bool) -> str:
    """Why a result is wrong, or nothing. ``loose`` overlooks the signs of zeros."""
    python = isinstance(want, (bool, int, float)) and not isinstance(want, np.generic)
    if python != (isinstance(got, (bool, int, float)) and not isinstance(got, np.generic)):
        return f"a {type(got).__name__}, NumPy gives {type(want).__name__}"
    a, z = np.asarray(got), np.asarray(want)
    if z.dtype == object:
        return ""  # made of a Python integer beyond 64 bits: see ``excused``, 4
    if (a.dtype, a.shape) != (z.dtype, z.shape):
        return f"{a.dtype}{list(a.shape)}, NumPy gives {z.dtype}{list(z.shape)}"
    wrong = ~equal(a, z, loose)
    if wrong.any() and shaken:
        others = [np.asarray(x) for x in shaken]
        if any(x.shape != z.shape for x in others):
            return ""
        wrong &= ~_within(a, z, others)
    if not wrong.any():
        return ""
    place = tuple(int(at[0]) for at in np.nonzero(wrong)) if z.ndim else ()
    return f"{a[place]!r} at {list(place)}, NumPy gives {z[place]!r} ({int(wrong.sum())} differ)"


def equal(a: Array, z: Array, loose: bool = False) -> Array:
    """Equal, NaN to NaN, and zeros by sign as well unless ``loose``."""
    if a.dtype.kind == "c":
        return np.asarray(np.all(equal(parts(a), parts(z), loose), axis=-1))
    same = a == z
    if kind_of(a) == "f":
        same = same | (np.isnan(a) & np.isnan(z))
        if not loose:
            same = same & ((np.signbit(a) == np.signbit(z)) | np.isnan(a))
    return np.asarray(same)


def _within(a: Array, z: Array, others: Sequence[Array]) -> Array:
    """Elements that are uncertain anyway, or as near to NumPy's as the shaken runs are."""
    if z.dtype.kind == "c":
        each = [parts(x) for x in others]
        return np.asarray(np.all(_within(parts(a), parts(z), each)
                                 | equal(parts(a), parts(z)), axis=-1))
    if kind_of(z) != "f":
        return np.any([x != z for x in others], axis=0)
    unsure = np.any([(np.isfinite(x) != np.isfinite(z)) | (np.isnan(x) != np.isnan(z))
                     | ((x != z) & ~np.isfinite(z) & ~np.isnan(z)) for x in others], axis=0)
    with np.errstate(all="ignore"):
        wide = z.astype(np.float64)
        spread = np.max([np.abs(x.astype(np.float64) - wide) for x in others], axis=0)
        near = np.abs(a.astype(np.float64) - wide) <= 4 * spread
        unsure |= ~np.isfinite(a) & (spread > np.abs(wide) / 8)  # one step from 0 / 0
    return np.asarray(unsure | near)
