"""What NumPy says about a program, and how much of it is certain.

Arithmetic, comparisons, casts and moves are exact: Weft must give the same bits, and raise where
NumPy raises; ``excused`` lists the exceptions. Where NumPy and Weft may differ (the order of a sum,
the last bits of exp, the sign of a zero maximum) the step says so by its ``close``, and NumPy
computes the program several times more with those steps shaken by as much as they may differ. What
the results spread by is the tolerance: an error bound that follows from the program itself, and is
0 where sums are of small whole numbers.

    close     shaken
    ulp       the result
    mix       the operands by 2 ULP, and the result
    sum       operands and result, unless whole numbers make the sum exact; more for long sums;
              nothing is certain where it may be infinite on the way
    mean      as sum, the result always
    var       as mix, more for long sums
    factored  as sum; nothing is certain where an operand is not finite: the sums of each operand
              may be taken first
    row       the operands by 2 ULP, the result by ULP of its largest number; nothing is certain
              where an operand is so large or small that what is computed of it may not be finite
    finite    as row, and nothing is certain where an operand is not finite
    zero      the signs of zeros in the result
    cast      nothing; but floats beyond an integer dtype are cast one by one: what NumPy's loop
              over many of them gives depends on the place in the array
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import prelude
from .excused import substitute
from .program import Close, Program, flat

Array = np.ndarray[Any, Any]
# Past this, sums of whole numbers are rounded.
WHOLE = {"f2": 2.0**10, "f4": 2.0**22, "f8": 2.0**50}
SUMS = frozenset(("sum", "mean", "factored", "var"))
RAISED = (IndexError, ValueError, ZeroDivisionError, OverflowError, TypeError)


class Jitter:
    """Computes the uncertain steps of a program; ``mode`` says how they are shaken."""

    def __init__(self) -> None:
        self.mode: int | None = None
        self.fill: int | None = None  # what stands for values that cannot be computed, if anything
        self.shapes: list[Any] = []   # of all operands and results, in order
        self.beyond = False           # whether a Python integer needs more than 64 bits
        self.largest = 0.0            # of all floats of a run
        self.risks: list[Any] = []    # where the sums of the last unshaken run may overflow
        self.sums = 0                 # of this run so far
        self.rng = np.random.default_rng(0)

    def start(self, mode: int | None, fill: int | None = None) -> None:
        self.mode, self.fill, self.shapes, self.beyond = mode, fill, [], False
        self.largest = 0.0
        self.sums, self.risks = 0, [] if mode is None else self.risks
        self.rng = np.random.default_rng(mode)

    def __call__(self, close: Close | None, function: Callable[..., Any], *operands: Any) -> Any:
        try:
            result = self._computed(close, function, operands)
        except (IndexError, OverflowError):
            if self.fill is None:
                raise
            result = substitute(function, operands, self.fill)
        if type(result) is complex:  # Python's (-1.5) ** 0.5: see ``excused``, 2
            result = float("nan")
        self.beyond |= type(result) is int and not -2**63 <= result < 2**63
        self.shapes += [*map(np.shape, operands), np.shape(result)]
        if np.asarray(result).dtype.kind == "f":
            sizes = np.abs(np.nan_to_num(result, nan=np.inf))
            self.largest = max(self.largest, float(np.max(sizes, initial=0.0)))
        return result

    def _computed(self, close: Close | None, function: Callable[..., Any],
                  operands: tuple[Any, ...]) -> Any:
        kind, ulp = close or ("", 0)
        if kind == "cast":
            return self._cast(function, *operands)
        if close is None:
            return function(*operands)
        if self.mode is None:
            result = function(*operands)
            if kind in SUMS:
                self.risks.append(_overflows(kind, function, operands, result))
            return result
        if kind == "zero":
            return self._zeros(function(*operands))
        if kind == "ulp":
            return self.shake(function(*operands), ulp)
        if kind in ("row", "finite"):
            return self._row(function, operands, ulp, kind == "finite")
        result = function(*operands)
        if kind == "mix":
            return self.shake(function(*(self.shake(_floating(x), 2) for x in operands)), ulp)
        self.sums += 1
        # Shaken operands may be infinite, which is certain; so what was a risk before stays one.
        before = self.risks[self.sums - 1] if self.sums <= len(self.risks) else False
        risk = before | _overflows(kind, function, operands, result)
        if kind != "var" and all(map(is_whole, operands)) and _sum_fits(operands, result):
            return result if kind != "mean" else self.shake(result, ulp)
        if kind == "factored" and not all(np.all(np.abs(x) < 1e30) for x in operands):
            return np.full_like(result, np.nan if self.mode else 0)
        # Sums of many: both sides may add them up in any order.
        ulp += int(_terms(operands, result) ** 0.5)
        shaken = self.shake(function(*(self.shake(_floating(x), 2) for x in operands)), ulp)
        odd = (np.nan, np.inf, -np.inf)[(self.mode or 0) % 3]
        return np.where(risk, np.asarray(odd, np.asarray(shaken).dtype), shaken)[()]

    def _row(self, function: Callable[..., Any], operands: tuple[Any, ...], ulp: int,
             finite: bool) -> Any:
        result = np.asarray(function(*map(self._near, operands)))
        if result.dtype.kind != "f":
            return result[()]
        if not all(map(_is_ordinary, operands)):
            return np.full_like(result, np.nan if self.mode else 0)[()]
        ulp += int(_terms(operands, result) ** 0.5)
        if not all(np.all(np.isfinite(x)) for x in operands if np.asarray(x).dtype.kind == "f"):
            odd = np.asarray(np.nan if self.mode else 0, result.dtype)
            result = np.where(np.isfinite(result) & (not finite), result, odd)
        scale = np.max(np.abs(np.nan_to_num(result, posinf=0, neginf=0)), initial=0)
        by = self.rng.uniform(-ulp, ulp, result.shape) * np.finfo(result.dtype).eps
        return (result + (by * scale).astype(result.dtype))[()]

    def _near(self, x: Any) -> Any:
        """x times 1 and a little; what is 0 or infinite stays so, and numbers are Python's."""
        if np.asarray(x).dtype.kind != "f":
            return x
        by = self.rng.uniform(-2, 2, np.shape(x)) * np.finfo(np.asarray(x).dtype).eps
        moved = x * (1 + by).astype(np.asarray(x).dtype)
        return float(moved) if type(x) is float else moved

    def shake(self, x: Any, ulp: int) -> Any:
        """x, moved by up to so many units in the last place; by all of them in modes 0 and 1.

        What is moved promotes as x does: a Python number is one afterwards.
        """
        if type(x) is float:
            return float(self.shake(np.asarray(x), ulp))
        x = np.asarray(x)
        if x.dtype.kind != "f":
            return x[()]
        by: Any = {0: ulp, 1: -ulp}.get(self.mode or 0) if self.mode in (0, 1) else (
            self.rng.integers(-ulp, ulp + 1, x.shape))
        moved = x + np.asarray(by).astype(x.dtype) * np.spacing(np.abs(x))
        return np.where(np.isfinite(x), moved, x)[()]

    def _zeros(self, x: Any) -> Any:
        x = np.asarray(x)
        if x.dtype.kind != "f":
            return x[()]
        sign = {0: 1.0, 1: -1.0}.get(self.mode or 0, 1.0)
        return np.where(x == 0, x.dtype.type(0) * x.dtype.type(sign), x)[()]

    def _cast(self, function: Callable[[Any], Any], x: Any) -> Any:
        result, x = np.array(function(x)), np.asarray(x)
        limits = np.iinfo(result.dtype)
        outside = ~((x > float(limits.min)) & (x < float(limits.max)))
        for at in np.argwhere(outside):
            result[tuple(at)] = function(np.array(x[tuple(at)]))
        return result[()]


def _is_ordinary(x: Any) -> bool:
    """Whether products and quotients of a few such numbers are numbers of the dtype."""
    x = np.abs(np.asarray(x))
    if x.dtype.kind != "f":
        return True
    limit = float(np.finfo(x.dtype).max) ** 0.2
    return bool(np.all((x == 0) | ~np.isfinite(x) | ((x < limit) & (x > 1 / limit))))


def _floating(x: Any) -> Any:
    """Integers as NumPy takes them where the result is a float, so that they can be shaken."""
    if type(x) in (int, float):
        return float(x)
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind in "iu" and x.dtype.itemsize >= 4 else x


def is_whole(x: Any) -> bool:
    x = np.asarray(x)
    return x.dtype.kind != "f" or bool(np.all(np.isfinite(x)) and np.all(x == np.rint(x)))


def _terms(operands: Sequence[Any], result: Any) -> float:
    """At least so many numbers are added up for each element."""
    return float(max(np.size(x) for x in operands) / max(np.size(result), 1))


def _overflows(kind: str, function: Callable[..., Any], operands: Sequence[Any],
               result: Any) -> Any:
    """Where a sum or a term of it may be infinite on the way, in one order or another: what it is
    then depends on the order, as inf - inf is NaN."""
    dtype = np.asarray(result).dtype
    if dtype.kind != "f":
        return np.zeros((), bool)
    wide: Any = np.float64 if dtype.itemsize < 8 else np.longdouble
    parts = [np.abs(np.nan_to_num(np.asarray(x, wide), posinf=0, neginf=0)) for x in operands]
    terms = max(_terms(operands, result), 1) if kind == "mean" else 1
    most = np.longdouble(max(map(np.size, parts), default=0)) * terms
    for part in parts:
        most *= np.max(part, initial=0)
    if most < np.finfo(dtype).max:
        return np.zeros((), bool)
    total = np.sum if kind == "var" else function
    return total(*parts) * np.longdouble(terms) > np.finfo(dtype).max


def _sum_fits(operands: Sequence[Any], result: Any) -> bool:
    dtype = np.asarray(result).dtype
    bound = float(max(np.size(x) for x in operands))
    for x in operands:
        bound *= float(np.max(np.abs(np.asarray(x, np.float64)), initial=0))
    return bound < WHOLE.get(dtype.str[1:], 0.0)


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

    ``later`` is the error that the program would come to if the first one were not: which of two
    is raised depends on when each is looked for. ``unneeded`` is what there is besides an error:
    the answer of a program of which no result depends on the values that cannot be computed.
    """

    base: Answer
    shaken: list[Answer]
    unneeded: Answer | None = None
    later: Exception | None = None


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
        base = self.run(args, None)
        unneeded, later = self._beyond(args) if base.error is not None else (None, None)
        fill = None if unneeded is None else 0
        shaken = [self.run(args, mode, fill) for mode in range(runs)] if self.uncertain and (
            base.error is None or unneeded is not None) else []
        return Expected(base, shaken, unneeded, later)

    def _beyond(self, args: Sequence[Any]) -> tuple[Answer | None, Exception | None]:
        """What comes after the values that raise: the answer, if it is the same whatever stands for
        them, and another error, if there is one."""
        first, *others = (self.run(args, None, fill) for fill in range(5))
        if first.error is not None or any(same_bits(first, other) for other in others):
            return None, first.error
        return first, None

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
    exec(compile(source, "<program>", "exec"), scope)
    return scope["make"]


def differs(got: Any, want: Any, shaken: Sequence[Any], loose: bool) -> str:
    """Why a result is wrong, or nothing. ``loose`` overlooks the signs of zeros."""
    python = isinstance(want, (bool, int, float)) and not isinstance(want, np.generic)
    if python != (isinstance(got, (bool, int, float)) and not isinstance(got, np.generic)):
        return f"a {type(got).__name__}, NumPy gives {type(want).__name__}"
    a, z = np.asarray(got), np.asarray(want)
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
    same = a == z
    if a.dtype.kind == "f":
        same = same | (np.isnan(a) & np.isnan(z))
        if not loose:
            same = same & ((np.signbit(a) == np.signbit(z)) | np.isnan(a))
    return np.asarray(same)


def _within(a: Array, z: Array, others: Sequence[Array]) -> Array:
    """Elements that are uncertain anyway, or as near to NumPy's as the shaken runs are."""
    if z.dtype.kind != "f":
        return np.any([x != z for x in others], axis=0)
    unsure = np.any([(np.isfinite(x) != np.isfinite(z)) | (np.isnan(x) != np.isnan(z))
                     | ((x != z) & ~np.isfinite(z) & ~np.isnan(z)) for x in others], axis=0)
    with np.errstate(all="ignore"):
        wide = z.astype(np.float64)
        spread = np.max([np.abs(x.astype(np.float64) - wide) for x in others], axis=0)
        near = np.abs(a.astype(np.float64) - wide) <= 4 * spread
        unsure |= ~np.isfinite(a) & (spread > np.abs(wide) / 8)  # one step from 0 / 0
    return np.asarray(unsure | near)
