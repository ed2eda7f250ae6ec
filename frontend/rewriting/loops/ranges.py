"""``range`` of traced bounds, with all that Python's own one can be asked.

    range(n)[::-1]         range(n - 1, -1, -1)           a slice is a range again
    k in range(2, n, 3)    2 <= k < n and (k - 2) % 3 == 0
    sum(range(n))          n * (n - 1) // 2

Only what needs its items one by one while tracing, such as ``list``, asks for the bounds.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.indices.index import Dim, positive
from ....ir.record import record
from ...face import tree
from ...face.source import user_loc
from ...tracing.arrays.buffer import TracedBuffer
from ...tracing.arrays.variable import Variable
from ...tracing.context.active import current
from ...tracing.context.distance import (
    bound_of,
    is_natural_in_rounds,
    size_in_rounds,
    tell_bound,
    told_by_rounds,
)
from ...tracing.failing import failure_of
from ...tracing.operand import as_dim, as_number, cast, is_number, to_tracer
from ...tracing.values.numbers import numbers_behind
from ...tracing.values.tracer import SymbolicDim, Tracer
from ...transforms import regions


@record(frozen=True, eq=False)
class Range:
    """``range`` of traced bounds. ``within``: of which one it is a slice, if it is one."""

    start: Any
    stop: Any
    step: Any = 1
    within: Range | None = None

    @staticmethod
    def of(*args: Any) -> Any:
        """``range(*args)``, of which some may be traced."""
        if all(isinstance(x, (int, np.integer)) for x in args):
            return range(*args)
        start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
        for bound in (start, stop, step):
            if isinstance(bound, Tracer) and (bound.ndim or bound.dtype.kind not in "iub"):
                raise TypeError(f"a bound of range is {bound.type}, not an integer")
        zero = "range() arg 3 must not be zero"
        if isinstance(step, Tracer):
            raise_unless(step != 0, ValueError(zero))
        elif step == 0:
            raise ValueError(zero)
        return Range(*(python_int(bound) for bound in (start, stop, step)))

    @property
    def rounds(self) -> Any:
        """How many numbers there are."""
        size, step = told_by_rounds(current(), self.stop - self.start, ask=False), self.step
        if isinstance(step, Tracer):  # size over step, rounded up; a step of 0 fails by itself
            size = -(-size // np.where(step == 0, 1, step))
        elif abs(step) == 1 and isinstance(size, Tracer) and not (
                isinstance(size, SymbolicDim) or (type(self.start) is int and self.start == 0)):
            size = current().apply(_spanned, (self.start, self.stop)[::step])
        elif step != 1:
            size = (size + (step - 1 if step > 0 else step + 1)) // step
        if isinstance(size, SymbolicDim):
            return as_number(size_in_rounds(current(), size.expr))
        return told_by_rounds(current(), np.maximum(size, 0), ask=False)

    def number(self, at: Any) -> Any:
        """The number at a place that there is."""
        far = at if type(self.step) is int and self.step == 1 else at * self.step
        return far if type(self.start) is int and self.start == 0 else self.start + far

    def bounded(self, at: Any) -> Any:
        """The same, of which is known what it is at most, and at least."""
        number, most = self.number(at), bound_of(current(), self.stop)
        if isinstance(self.step, Tracer) and all(map(regions.is_size, (self.start, self.stop))):
            low, high = as_dim(self.start), as_dim(self.stop)
            if is_natural_in_rounds(current(), high - low):  # a step back has no rounds
                return python_int(np.minimum(np.maximum(number, self.start), self.stop - 1))
        up = type(self.step) is int and self.step > 0 and type(self.start) is int
        if isinstance(number, Tracer) and most is not None and up:
            tell_bound(current(), number, most - 1, self.start, most)
        return number

    @property
    def most(self) -> Dim | None:
        """How many numbers there are at most, by what the range ends with, or begins with if it
        goes down."""
        if self.within is not None:
            return self.within.most
        start, stop, step = self.start, self.stop, self.step
        if type(step) is not int:
            return None
        if step > 0:
            most = bound_of(current(), stop) if type(start) is int and start >= 0 else None
        else:
            most = bound_of(current(), start) if type(stop) is int and stop <= 0 else None
            most = None if most is None else most - stop
        return None if most is None else positive(most)

    @property
    def behind(self) -> frozenset[str]:
        """The arguments that decide the bounds, if these are numbers and nothing else does."""
        found = [frozenset() if isinstance(each, SymbolicDim) else numbers_behind(
            each.ctx, each.value) for each in (self.start, self.stop, self.step)
            if isinstance(each, Tracer)]
        return frozenset().union(*found) if all(found) else frozenset()

    def __eq__(self, other: object) -> Any:
        return self.equal(other)

    def __ne__(self, other: object) -> Any:
        return np.logical_not(self.equal(other))

    def __hash__(self) -> int:
        raise self._traced().no_key()

    def __iter__(self) -> Iterator[Any]:
        raise self._asked("how often this loop runs is not known before the function runs",
                          "write it as a for statement over range(n)")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise self._asked("how many numbers this range has is not known before the function runs",
                          "write np.arange(n) in the place of range(n)")

    def __len__(self) -> int:
        raise self._asked("the length of this range is not known before the function runs",
                          "ask len(range(n)) in the function itself")

    def _asked(self, message: str, hint: str) -> Error:
        return self._traced().ctx.asked.behind(
            error("W201", message, locs=user_loc(), hint=hint), self.behind)

    def _traced(self) -> Tracer:
        """A bound that is traced: one is."""
        bounds = (self.start, self.stop, self.step)
        return next(bound for bound in bounds if isinstance(bound, Tracer))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._sliced(index)
        count, at = python_int(self.rounds), python_int(index)
        place = np.where(at < 0, at + count, at)
        raise_unless(np.logical_and(place >= 0, place < count),
                     IndexError("range object index out of range"))
        return python_int(self.number(place))

    def _sliced(self, index: slice) -> Range:
        step: Any = 1 if index.step is None else operator.index(index.step)
        if step == 0:
            raise ValueError("slice step cannot be zero")
        count = self.rounds
        low, high = (0, count) if step > 0 else (-1, count - 1)

        def end(given: Any, default: Any) -> Any:
            if given is None:
                return default
            place = np.where(given < 0, np.maximum(given + count, low), np.minimum(given, high))
            return python_int(place)

        first, last = (low, high) if step > 0 else (high, low)
        return Range(python_int(self.number(end(index.start, first))),
                     python_int(self.number(end(index.stop, last))), self.step * step,
                     self if self.within is None else self.within)

    def holds(self, item: Any) -> Any:
        """``item in self``."""
        if not (_is_traced(item) or is_number(item)) or np.ndim(item):
            return False
        start, stop, step = self.start, self.stop, self.step
        item, possible = _exact(item)
        rising: Any = np.logical_and(start <= item, item < stop)
        falling: Any = np.logical_and(stop < item, item <= start)
        if isinstance(step, Tracer):
            inside = np.where(step > 0, rising, falling)
            step = np.where(step == 0, 1, step)
        else:
            inside = rising if step > 0 else falling
        return np.logical_and(possible, np.logical_and(inside, (item - start) % step == 0))

    def index(self, item: Any) -> Any:
        """Where an item is; a ValueError when the function runs if it is not there."""
        raise_unless(self.holds(item), ValueError("the number is not in range"))
        return python_int((python_int(item) - self.start) // self.step)

    def count(self, item: Any) -> Any:
        """How often it has an item: once, or not at all."""
        return python_int(self.holds(item))

    def equal(self, other: Any) -> Any:
        """``self == other``: whether they have the same numbers."""
        if not isinstance(other, (range, Range)):
            return False
        count = self.rounds
        size: Any = other.rounds if isinstance(other, Range) else len(other)
        first = np.logical_or(count == 0, self.start == other.start)
        steps = np.logical_or(count <= 1, self.step == other.step)
        return np.logical_and(count == size, np.logical_and(first, steps))

    def total(self, start: Any = 0) -> Any:
        """``sum(self, start)``."""
        count = python_int(self.rounds)
        return start + count * self.start + self.step * (count * (count - 1) // 2)

    def extreme(self, name: str) -> Any:
        """``min(self)`` or ``max(self)``, if it has any numbers."""
        first, last = self.start, self.number(self.rounds - 1)
        reduced: Any = np.minimum if name == "min" else np.maximum
        return python_int(reduced(first, last))


def _spanned(start: Any, stop: Any) -> Tracer:
    """How many numbers there are from one on and below another."""
    found = current().emit("span", *(to_tracer(python_int(end), np.dtype(np.int64))
                                     for end in (start, stop)))
    return Tracer(found.ctx, found.value, weak=True)


def _is_traced(x: Any) -> bool:
    return isinstance(x, (Tracer, TracedBuffer, Variable))


def _exact(item: Any) -> tuple[Any, Any]:
    """A number as one of Python's, and whether it is one that a range can have."""
    if not _is_traced(item):
        return item.real, isinstance(item, (int, np.integer, np.bool_)) or item.imag == 0
    kind, ctx = item.dtype.kind, current()
    if kind == "c":
        return item.real, item.imag == 0
    possible = item < 1 << 63 if item.dtype == np.uint64 else True
    made = ctx.apply(lambda: cast(to_tracer(item), np.dtype(
        np.float64 if kind == "f" else np.int64)), ())
    return Tracer(made.ctx, made.value, weak=True), possible


def python_int(x: Any) -> Any:
    """A number as one of Python's integers, if it is traced."""
    if isinstance(x, SymbolicDim) or not _is_traced(x):
        return x
    made = current().apply(lambda: cast(to_tracer(x), np.dtype(np.int64)), ())
    return Tracer(made.ctx, made.value, weak=True)


def raise_unless(flag: Any, problem: BaseException) -> None:
    """Raise an exception, when the function runs if the flag is traced."""
    if _is_traced(flag):
        ctx = current()
        failure, _ = failure_of(ctx, problem)
        ctx.apply(ctx.failing, (flag, failure))
    elif not flag:
        raise problem


tree.register(Range, lambda found: ((found.start, found.stop, found.step), None),
              lambda _, parts: Range.of(*parts))
