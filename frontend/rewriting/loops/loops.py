"""Loops that run when the function does: ``while`` and ``for`` over what is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.indices.index import Dim
from ....ir.ops.control.region import ENDLESS
from ...face.source import user_loc
from ...tracing.arrays.buffer import TracedBuffer
from ...tracing.arrays.grid import Grid
from ...tracing.arrays.growing import GrowingList
from ...tracing.arrays.selection import Selection
from ...tracing.context.active import current
from ...tracing.context.distance import goes_by_rounds, is_computed, is_natural_here, tell_bound
from ...tracing.context.recorder import TraceContext
from ...tracing.extents import size_of
from ...tracing.operand import as_dim, as_number
from ...tracing.values.numbers import numbers_behind
from ...tracing.values.tracer import SymbolicDim, Tracer
from ...transforms import regions
from ..calls.protocols import iterated
from ..lists.filtered import Filtered, same
from ..regions.adopting import Adopted
from ..regions.branches import if_
from ..regions.expressions import both
from ..regions.state import Get, Part, Put, context_of, is_traced, truth
from .counting import Rounds, in_program, unrolled
from .iterables import Zipped, most_of
from .ranges import Range
from .rounds import EndedRoundError, Loop, OtherCarryError
from .tables import Fresh, Table


def while_(
    roots: Callable[[], Any] | None, test: Part, body: Part, get: Get, put: Put,
    names: Sequence[str],
) -> None:
    """``while test(): body()``. ``roots`` is what these call that only computes."""
    rounds = Rounds.of_while(roots, body, get, names)
    check = unrolled(roots, get)
    for at in count():
        before = get()
        if rounds is not None and (rounds.go_on(at) if at else rounds.begin()):
            with in_program(rounds.code):
                _rounds(current(), "while", lambda _: truth(test()), lambda _: body(), get, put,
                        names)
            rounds.end()
            return
        flag = truth(test())
        if is_traced(flag):
            put(before)  # the loop itself starts with the test
            break
        if not flag:
            return
        check()
        body()
    _rounds(context_of(flag), "while", lambda _: truth(test()), lambda _: body(), get, put, names,
            flag=flag)


def for_(
    items: Any, asks: bool, roots: Callable[[], Any] | None, body: Callable[[Any], Any],
    go_on: Part, get: Get, put: Put, names: Sequence[str],
) -> None:
    """``for item in items: body(item)`` as long as ``go_on()``, which is asked if ``asks``.
    ``roots`` is what a body calls that only computes."""
    if isinstance(items, Fresh):
        items = items.ahead(get())
    items = iterated(items)
    if isinstance(items, Filtered) and items.is_fresh:
        items.use_up(partly=asks)
        plain = items.test is None and items.element is same
        for_(items.items, asks, roots if plain else None, body if plain else _of_chosen(
            items, body, get, put, names), go_on, get, put, names)
        return
    if isinstance(items, TracedBuffer):
        items = items.traced()
    if isinstance(items, Grid):
        items = current().apply(current().api.realised, (items,))
    if isinstance(items, Tracer) and items.ndim and isinstance(items.shape[0], SymbolicDim):
        _counted(items.__getitem__, items.shape[0], asks, body, go_on, get, put, names)
        return
    if isinstance(items, Selection) and items.known is None:
        _counted(items.__getitem__, items.shape[0], asks, body, go_on, get, put, names,
                 most=_most_items(items))
        return
    if isinstance(items, Zipped) and isinstance(items.count, Tracer):
        most = most_of(items)
        _counted(items.row, items.count, asks, body, go_on, get, put, names,
                 most=ENDLESS if most is None else most)
        return
    if isinstance(items, Range):
        most = items.most
        _counted(items.bounded, items.rounds, asks, body, go_on, get, put, names,
                 most=ENDLESS if most is None else most)
        return
    rounds = Rounds.of(items, roots, body, get, names)
    if rounds is not None and rounds.begin():
        with in_program(rounds.code):
            _from(rounds.rows, 0, asks, body, go_on, get, put, names, current())
        rounds.end()
        return
    check = unrolled(roots, get)
    for at, item in enumerate(items):
        if asks:
            flag = truth(go_on())
            if is_traced(flag):
                rows = rounds.rows if at and rounds is not None and isinstance(
                    rounds.rows, Table) and rounds.go_on(at) else items
                _rest(rows, at, body, go_on, get, put, names, context_of(flag))
                return
            if not flag:
                return
        if at and rounds is not None and rounds.go_on(at):
            with in_program(rounds.code):
                _from(rounds.rows, at, asks, body, go_on, get, put, names, current())
            rounds.end()
            return
        check()
        body(item)


def _most_items(items: Selection) -> Dim:
    """How many there may be. What nobody knows is not how many rounds there may be: lists that grow
    by these would have room for all that there may be in the next round, and so on."""
    if not isinstance(items, GrowingList):
        size: Dim = items.array.type.shape[0]
        return size
    return ENDLESS if items.item.open else items.room


def _of_chosen(
    items: Filtered, body: Callable[[Any], Any], get: Get, put: Put, names: Sequence[str]
) -> Callable[[Any], Any]:
    """The body of a loop over a generator, of an item that its condition may choose."""
    test, element = items.test, items.element
    if test is None:
        return lambda item: body(element(item))
    return lambda item: if_(test(item), lambda: body(element(item)), lambda: None, get, put, names)


def _from(
    items: Any, at: int, asks: bool, body: Callable[[Any], Any], go_on: Part, get: Get, put: Put,
    names: Sequence[str], ctx: TraceContext,
) -> None:
    """The rounds of a range, a table or an array from number ``at`` on, as one loop."""
    def item(k: Any) -> Any:
        if isinstance(items, (Zipped, Table)):
            return items.row(k + at)
        if not isinstance(items, range):
            return items[k + at]
        number = items[at] + k * items.step
        least, most = sorted((items[at], items[-1]))
        if isinstance(number, Tracer):
            tell_bound(current(), number, most, least, max(items.stop, most))
        return number

    _counted(item, len(items) - at, asks, body, go_on, get, put, names, ctx)


def _rest(
    items: Any, at: int, body: Callable[[Any], Any], go_on: Part, get: Get, put: Put,
    names: Sequence[str], ctx: TraceContext,
) -> None:
    """What is left of a loop from its item number ``at``, since when it may end at any item."""
    if isinstance(items, (range, Tracer, Zipped, Table)):
        _from(items, at, True, body, go_on, get, put, names, ctx)
        return
    rest = list(items)[at:] if isinstance(items, (list, tuple, np.ndarray)) else None
    if rest is None:
        raise error("W201", "whether this loop goes on is not known before the function runs",
                    locs=user_loc(), hint="loop over a list, an array or a range")
    for each in rest:
        if_(go_on(), lambda each=each: body(each), lambda: None,  # type: ignore[misc]
            get, put, names)


def _counted(
    item: Callable[[Any], Any], count: Any, asks: bool, body: Callable[[Any], Any], go_on: Part,
    get: Get, put: Put, names: Sequence[str], ctx: TraceContext | None = None,
    most: Dim = ENDLESS,
) -> None:
    """A loop of ``count`` rounds over ``item(0)``, ``item(1)`` and so on: no more than that, if
    it is known, which a gradient asks for; or than ``most``, which lists ask for that grow."""
    if is_computed(count) and (ctx or context_of(count)).request.counts:
        count = as_number(size_of(count))
    limit = as_dim(count) if regions.is_size(count) else ENDLESS
    known = limit is not ENDLESS and not asks

    def test(index: Any) -> Any:
        inside = index < count
        return both(lambda: inside, go_on) if asks else inside

    behind = numbers_behind(count.ctx, count.value) if isinstance(count, Tracer) and not (
        isinstance(count, SymbolicDim)) else frozenset()
    ctx = ctx or context_of(count)
    if limit is not ENDLESS and not goes_by_rounds(ctx, limit):
        most = limit  # of all rounds of the loops around
    first: Callable[[], Any] | None = None
    if not asks or _goes_on(go_on):
        certain = limit is not ENDLESS and is_natural_here(ctx, limit - 1)
        first = (lambda: True) if certain else lambda: count > 0
    _rounds(ctx, "for", None if known else test, lambda index: body(item(index)), get, put, names,
            limit, most=most, behind=behind, first=first)


def _goes_on(go_on: Part) -> bool:
    """Whether a loop surely has a round, if there is an item."""
    flag = truth(go_on())
    return not is_traced(flag) and bool(flag)


def _end(problem: Exception, goes_on: Any, get: Get, put: Put, names: Sequence[str]) -> None:
    """What a loop is whose first round ends in an exception, if there is one."""
    def first() -> None:
        raise problem

    if_(goes_on, first, lambda: None, get, put, names)


def _rounds(
    ctx: TraceContext, what: str, test: Callable[[Any], Any] | None, body: Callable[[Any], Any],
    get: Get, put: Put, names: Sequence[str], limit: Dim = ENDLESS, flag: Any = None,
    most: Dim = ENDLESS, behind: frozenset[str] = frozenset(),
    first: Callable[[], Any] | None = None,
) -> None:
    """Rounds as long as a test holds; without one, as many as ``limit`` says. How many there are
    is said by the arguments ``behind`` it, if by any; ``first``: whether there is one."""
    region = Adopted(ctx, get, put, names)
    loop = Loop(region, what, test, body, limit, flag, most, behind, first)
    while True:
        try:
            loop.trace()
            break
        except OtherCarryError:
            continue
        except EndedRoundError as end:
            put(region.before)
            _end(end.problem, as_number(limit) > 0 if test is None else test(0), get, put, names)
            return
        except regions.ChangedError as found:
            loop.drop(found)
        except Error as problem:
            loop.first += region.take(problem)
    region.put(loop.bound(region.before))
