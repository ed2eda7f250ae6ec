"""What a function traces with: attempts, each with what the one before has lacked.

    n is asked for as a size     n is static until a call has another one, and such sizes are
                                 measured from then on; or else each n has its own program
    a list grows without an end  it has capacity for FIRST items; where a step needs more, for TIMES
                                 as many, in a program that is made anew
    x[:n] in a loop              n is static until a call has another one, and traced from then on
    x[:i] for i in range(n)      so it is here; what needs to know the size then measures n
    best is None on some ways    it may be, in this program
    range(sizes[0])              the numbers of the global array are known, in this program
    sizes[0] += 1                but not those of an array that is written
    a loop draws too much        it is a loop of the program; see ``tracing/context/request``

What is of no use is taken back: the error is that of the first attempt.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from ...ir.diagnose import Error
from ...ir.record import record, replace
from ..face.signature import Signature
from ..rewriting.lists.room import FIRST, MOST, TIMES
from ..tracing.arguments import Call
from ..tracing.context.request import Loops, Need, Request

T = TypeVar("T")
_SIZES = "it says how large arrays in a loop are"
_EXACT = "it says how large arrays are, which have to fit others"


@record
class _Before:
    """What was so before an attempt that may be taken back. ``first``: the problem before all
    integers were static; ``optional``: before names might be None; ``unknown``: before numbers of
    arrays from around were known; ``conflict``: before those that are written were not."""

    fixed: Mapping[str, str]
    first: Exception | None = None
    optional: Exception | None = None
    unknown: Exception | None = None
    conflict: Exception | None = None


class Attempts:
    """What the calls of a function have taught about how it is to be traced. ``fixed``: arguments
    that have become static, and why; ``capacity``: of lists of which nobody knows how long they
    become. ``request`` is what they begin with."""

    def __init__(
        self, signature: Signature, lock: AbstractContextManager[Any], request: Request
    ) -> None:
        self.signature, self._lock, self._first = signature, lock, request
        self.fixed: Mapping[str, str] = {}
        self._tried: dict[str, Any] = {}  # of these, those of one value until now, and which
        self._varying: set[str] = set()   # numbers that have had several
        self.capacity = FIRST

    def more_capacity(self) -> bool:
        """Have longer lists from now on; False if they may not be longer."""
        if self.capacity * TIMES > MOST:
            return False
        self.capacity *= TIMES
        return True

    def until_made(
        self, make: Callable[[Call, Request], T | Need], call: Call
    ) -> tuple[T, Call]:
        """What ``make`` gives as soon as it lacks nothing, and the call that it gives that for."""
        call = self._varied(call)
        before = _Before(self.fixed)
        request = self._request(call)
        while True:
            found = _untyped(call) or make(call, request)
            if not isinstance(found, Need):
                return found, call
            call, request = self._with_what_it_says(found, call, request, before) or (
                self._with_loops(found, call, request, before) or (
                    self._with_numbers(found, call, request, before)))

    def _with_what_it_says(
        self, found: Need, call: Call, request: Request, before: _Before
    ) -> tuple[Call, Request] | None:
        """What to try where a need alone says it."""
        if not found.written <= request.written:
            before.conflict = before.conflict or found.problem
            return call, replace(request, written=request.written | found.written, loops=Loops())
        if found.sizes:
            request = replace(request, sizes=self._has_sizes(found, call), loops=Loops())
            return call.with_fixed(self.fixed), request
        if found.known and not _numbers(found, call):
            before.unknown = before.unknown or found.problem
            return call, replace(request, known=found.known, loops=Loops())
        if found.exact or found.short:
            return self._with_less(found, call, request)
        if found.capacity and not request.capacity and found.code is None and (
                not request.loops.long and not _numbers(found, call)):
            # No number and no loop that may be traced otherwise says how long a list becomes.
            return call, replace(request, capacity=self.capacity,
                                 loops=replace(request.loops, used=False))
        sized = _with_sizes_told_otherwise(request, found)
        return None if sized is None else (call, sized)

    def _with_loops(
        self, found: Need, call: Call, request: Request, before: _Before
    ) -> tuple[Call, Request] | None:
        """What to try where loops may be why, or what rounds tell."""
        if before.unknown is not None and type(found.problem) is ValueError:
            raise before.unknown  # of NumPy: what is known cannot be written
        if not _is_outside(found, call):
            loops = request.loops.after(found)
            if loops is not None and loops.unrolls and not _numbers(found, call):
                told = _with_names(found, request, before)
                if told is not None:
                    return call, told
            if loops is not None:
                return call, replace(request, loops=loops)
        if found.measured and request.rounds and not found.static:
            return call, _of_whole_arrays(request)
        return None

    def _with_numbers(
        self, found: Need, call: Call, request: Request, before: _Before
    ) -> tuple[Call, Request]:
        """The last to try: lists that grow, names that may be None, numbers that are static. Raises
        the problem where all of that was tried."""
        problem = (before.conflict if _asks(before.unknown) else before.unknown) or found.problem
        assert problem is not None  # else there are loops to go on with
        if not isinstance(problem, Error):
            raise problem
        with self._lock:  # of threads that need the same one makes arguments static
            if call.signature.fixed == self.fixed.keys():
                names = _numbers(found, call)
                if found.capacity and not request.capacity and not names:
                    return call, replace(request, capacity=self.capacity, loops=Loops())
                told = None if names else _with_names(found, request, before)
                if told is not None:
                    return call, told
                if not names and (before.first is not None or not call.numbers(int)):
                    self._fix(before.fixed)
                    raise before.optional or before.first or problem
                if not names:
                    before.first = problem
                sizes = names.intersection(call.numbers(int)) - self._varying
                if sizes and not request.sizes and self._first.measures:
                    self._varying |= sizes  # there may be no second program: this one has them all
                    return call, replace(
                        request, varying=frozenset(self._varying), loops=Loops())
                self._try(sizes, call)
                self._fix({**self.fixed, **dict.fromkeys(
                    names or call.numbers(int), _reason(problem, call, names))})
            loops = replace(request.loops, used=False) if _is_outside(found, call) else Loops()
            return call.with_fixed(self.fixed), replace(request, loops=loops)

    def _with_less(self, found: Need, call: Call, request: Request) -> tuple[Call, Request]:
        """Without what a trace has tried: sizes that are measured, or many rounds as one loop."""
        if not found.exact:
            return call, replace(request, short=True, loops=Loops())
        with self._lock:
            names = request.varying.intersection(call.numbers(int))
            self._fix({**self.fixed, **dict.fromkeys(names, _EXACT)})
            return call.with_fixed(self.fixed), replace(
                request, varying=frozenset(), loops=Loops())

    def _request(self, call: Call) -> Request:
        """What to begin with: no capacity, if a number may say how long lists become."""
        return replace(self._first, loops=Loops(), varying=frozenset(self._varying),
                       capacity=0 if call.numbers(bool, int, float) else self.capacity)

    def _has_sizes(self, need: Need, call: Call) -> bool:
        """Whether the numbers that say sizes in loops are static from now on."""
        with self._lock:
            if not need.static.issubset(call.numbers(int)) or need.static & self._varying:
                return False
            if call.signature.fixed == self.fixed.keys():
                self._try(need.static, call)
                self._fix({**self.fixed, **dict.fromkeys(need.static, _SIZES)})
            return True

    def _try(self, names: frozenset[str], call: Call) -> None:
        """Have numbers be static until a call has others, unless one had already."""
        if self._first.measures:
            self._tried.update((name, leaf) for name, leaf in zip(
                call.names, call.leaves, strict=True) if name in names - self._varying)

    def _varied(self, call: Call) -> Call:
        """A call in which numbers that were static for one value are not any more, if it has
        others than the one before."""
        with self._lock:
            if not self._tried:
                return call
            traced = call.with_fixed(self.fixed.keys() - self._tried.keys())
            others = {name for name, leaf in zip(traced.names, traced.leaves, strict=True)
                      if name in self._tried and (type(leaf) is not int
                                                  or leaf != self._tried[name])}
            if others:
                self._varying |= others
                self._tried = {name: size for name, size in self._tried.items()
                               if name not in others}
                self._fix({name: why for name, why in self.fixed.items() if name not in others})
            return call.with_fixed(self.fixed)

    def _fix(self, reasons: Mapping[str, str]) -> None:
        """Have just these arguments be static by themselves, from now on."""
        self.fixed, self.signature = reasons, self.signature.with_fixed(reasons)


def _with_names(found: Need, request: Request, before: _Before) -> Request | None:
    """What to try where names may be None, or have no value, on some ways."""
    if not found.unbound <= request.unbound:
        before.optional = before.optional or found.problem
        return replace(request, unbound=request.unbound | found.unbound, loops=Loops())
    if found.optional and not request.optional:
        before.optional = before.optional or found.problem
        return replace(request, optional=True, loops=Loops())
    return None


def _with_sizes_told_otherwise(request: Request, found: Need) -> Request | None:
    """A request after one that was given up for its sizes, or that may have failed as it was not
    known how many rounds there are; None if neither is so."""
    if found.measured and found.problem is None:
        return _of_whole_arrays(request)
    if request.counts or (found.counts and request.counts is False):
        return replace(request, counts=None if request.counts else True, loops=Loops())
    return None


def _of_whole_arrays(request: Request) -> Request:
    """A request for arrays of which elements are chosen, where sizes are not known."""
    return replace(request, measures=False, rounds=False, counts=None, loops=Loops())


def _untyped(call: Call) -> Need | None:
    """What a call lacks of which an argument has no type, as an integer of more than 64 bits."""
    try:
        _ = call.types
    except Error as problem:
        return Need(problem)
    return None


def _numbers(need: Need, call: Call) -> frozenset[str]:
    """The arguments that decide what a trace asked for, if these are Python's numbers only; of a
    choice, integers, as floats that are compared have too many values."""
    kinds = (bool, int) if need.truth else (bool, int, float)
    return need.static if need.static.issubset(call.numbers(*kinds)) else frozenset()


def _is_outside(need: Need, call: Call) -> bool:
    """Whether numbers are asked for outside of loops, which are not why then."""
    return need.outside and bool(_numbers(need, call))


def _reason(problem: Error, call: Call, names: frozenset[str]) -> str:
    """Why arguments become static: these, or else all integers."""
    if not names:
        return "it is an integer without whose value there was no trace"
    kind, where = "a number whose value is", next(iter(problem.locs), None)
    if names.issubset(call.numbers(bool)):
        kind = "a bool that is"
    place = f" at {os.path.basename(where.file)}:{where.line}" if where else ""
    return f"it is {kind} asked for{place}"


def _asks(problem: Exception | None) -> bool:
    """Whether a problem is that a number is not known."""
    return isinstance(problem, Error) and problem.code == "W201"
