"""Comprehensions with conditions: of traced ones, all items and all flags make a ``FilteredList``.

    [x * 2 for x in v if x > 0]     filtered(v, lambda x: x > 0, lambda x: x * 2, sure=True)
    [f(x) for x in rows]            one without is a loop of the program, where a ``for`` would be

An item that may fail where its condition does not hold is computed under the condition; what only
computes (``sure``) is computed for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from itertools import chain
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ...face.source import user_loc
from ...tracing.arrays.filtered import FilteredList, FixedList
from ...tracing.arrays.growing import FULL, GrowingList
from ...tracing.context.active import active, current
from ...tracing.context.distance import goes_by_rounds
from ...tracing.operand import as_dim, shape_of, to_tracer
from ...tracing.values.tracer import SymbolicDim, Tracer
from ...transforms import loops as loop_nodes
from ..calls.protocols import iterated
from ..loops.counting import in_program, is_worth_a_loop, unrolled
from ..loops.iterables import Zipped, item_at, length_of, most_of, rows_of
from ..loops.ranges import Range
from ..regions.adopting import Adopted
from ..regions.branches import if_
from ..regions.expressions import both
from ..regions.state import UNBOUND, context_of, is_array, is_traced, truth
from ..source.exits import RESULT
from .room import ask_room


def same(item: Any) -> Any:
    """What ``filter`` and ``reversed`` make of an item."""
    return item


FEW = 16  # items, which are taken one by one
Test = Callable[[Any], Any]


class Filtered:
    """A generator expression with conditions, that nobody has asked for an item yet."""

    def __init__(self, items: Any, test: Test | None, element: Callable[[Any], Any],
                 sure: bool) -> None:
        self.items, self.test, self.element, self.sure = iterated(items), test, element, sure
        self._rest: Iterator[Any] | None = None

    def __iter__(self) -> Filtered:
        return self

    def __next__(self) -> Any:
        if self._rest is None:
            self._rest = self._plain(iter(self.items))
        return next(self._rest)

    def _plain(self, items: Iterator[Any]) -> Iterator[Any]:
        return (self.element(item) for item in items if self.test is None or self.test(item))

    def begins(self) -> bool:
        """Whether the items come one by one, as the first condition is known."""
        if self._rest is not None:
            return True
        if _is_uncertain(self.items):
            return False
        if isinstance(self.items, Zipped):  # rows of arrays, which conditions are about
            return self.test is None
        items = iter(self.items)
        try:
            first = next(items)
        except StopIteration:
            self._rest = items
            return True
        flag = True if self.test is None else truth(self.test(first))
        if is_traced(flag):
            self.items = chain((first,), items) if items is self.items else self.items
            return False
        self._rest = chain((self.element(first),) if flag else (), self._plain(items))
        return True

    @property
    def is_fresh(self) -> bool:
        """Whether nobody has asked for an item."""
        return self._rest is None

    def use_up(self, partly: bool) -> None:
        """A loop takes all items; ``partly``, as many as it has rounds."""
        self._rest = iter(_unknown_rest, None) if partly else iter(())

    def listed(self, partly: bool = False) -> Any:
        """The items as a list, of which perhaps only some are taken; itself where they may have no
        end, or are asked for already."""
        if self.test is None and not _is_uncertain(self.items):
            return self
        if self._rest is not None or not (length_of(rows_of(self.items)) is not None or isinstance(
                self.items, Sized)):
            return self
        self.use_up(partly)
        return filtered(self.items, self.test, self.element, self.sure)


def _unknown_rest() -> Any:
    raise error("W201", "how many items are left in a generator is not known before the function "
                        "runs", locs=user_loc(), hint="make a list of them before it")


def filtered(
    items: Any, test: Test | None, element: Callable[[Any], Any], sure: bool,
    roots: Callable[[], Any] | None = None,
) -> Any:
    """``[element(item) for item in items if test(item)]``; ``roots`` is what an element calls that
    only computes. Raises TracerError (W201) for items that are no numbers or arrays of one shape,
    if a traced condition chooses them."""
    items = iterated(items)
    if test is None and not _is_uncertain(items):
        return _mapped(items, element, roots)
    if isinstance(items, GrowingList) and items.known is None:
        return _by_rounds(items, items.room, test or _always, element, items.count)
    rows = rows_of(items)
    count = length_of(rows)
    if isinstance(count, Tracer) and not isinstance(count, SymbolicDim):
        return _by_values(rows, count, test or _always, element)
    test = test or _always
    if isinstance(count, SymbolicDim) or (
            count is not None and count > FEW and is_traced(truth(test(item_at(rows, 0))))):
        return _by_rounds(rows, as_dim(count), test, element)
    made: list[Any] = []
    flags: list[Any] = []
    for item in items:
        flag = truth(test(item))
        if is_traced(flag):
            made.append(element(item) if sure else _under(flag, element, item))
            flags.append(flag)
        elif flag:
            made.append(element(item))
            flags.append(True)
    found = next(filter(is_traced, flags), None)
    if found is None:
        return made
    ctx = context_of(found)
    _check(made)
    weak = all(type(each) in (bool, int, float, complex) or getattr(each, "weak", False)
               for each in made)
    return ctx.apply(_stacked, (made, flags, weak))


def _mapped(items: Any, element: Callable[[Any], Any], roots: Callable[[], Any] | None) -> Any:
    """An element of each item. Where these would draw much, and only compute, a loop of the program
    computes them; raises GivenUpError where that shows late."""
    ctx = active()
    if ctx is None or roots is None:
        return [element(item) for item in items]
    check, made, before = unrolled(roots, tuple), list[Any](), len(ctx.graph.nodes)
    code = getattr(element, "__code__", None)
    for item in items:
        check()
        made.append(element(item))
        # An array among them may be a view, and may be written to by the name of another list.
        if len(made) > 1 or not getattr(made[0], "is_scalar", False) or code is None or not (
                is_worth_a_loop(items, len(ctx.graph.nodes) - before, roots, code)):
            continue
        rows = rows_of(items)
        with in_program(code):
            found = _by_rounds(rows, as_dim(length_of(rows)), _always, element)
        return FixedList(found.array, found.mask, found.locs, found.weak)
    return made


def _always(item: Any) -> bool:
    return True


def _is_uncertain(items: Any) -> bool:
    """Whether how many items there are is decided when the function runs."""
    return (isinstance(items, FilteredList) and items.known is None) or (
        isinstance(items, Zipped) and isinstance(items.count, Tracer)) or (
        isinstance(items, Range))


def _stacked(made: list[Any], flags: list[Any], weak: bool) -> FilteredList:
    array, mask = (np.stack([*map(to_tracer, each)]) for each in (made, flags))
    return FilteredList(array, mask, user_loc(), weak)


def _check(made: list[Any]) -> None:
    if not all(map(is_array, made)):
        raise error("W201", "a comprehension of what is no number or array has a condition "
                            "that is decided when the function runs", locs=user_loc(),
                    hint="make one of numbers for each part, or arrays: x[mask], y[mask]")


def _under(flag: Tracer, element: Callable[[Any], Any], item: Any) -> Any:
    """An item that is asked for only where its condition holds, zeros elsewhere."""
    box: list[Any] = [UNBOUND]

    def put(values: Any) -> None:
        box[0] = values[0]

    if_(flag, lambda: put([element(item)]), lambda: None, lambda: (box[0],), put, (RESULT,))
    return box[0]


def _by_values(rows: Any, count: Tracer, test: Test, element: Callable[[Any], Any]) -> FilteredList:
    """As many items as a number says that the function computes."""
    most = most_of(rows)
    if most is None:
        most = ask_room(rows.behind if isinstance(rows, Range) else frozenset())
        count = current().apply(lambda: current().emit(
            "ensure", count, most - count, message=FULL), ())
    return _by_rounds(rows, most, test, element, count)


def _by_rounds(rows: Any, most: Dim, test: Test, element: Callable[[Any], Any],
               count: Any = None) -> FilteredList:
    """The items and flags of a loop of the program. Of a list with room for more items than there
    are (``count``), the others are not chosen."""
    ctx = current()
    region = Adopted(ctx, lambda: (), lambda _: None, ())
    weak = False

    def step(_: Any, __: Any, index: Any) -> Any:
        nonlocal weak
        with region.part(test, element):
            item = rows.row(index) if isinstance(rows, GrowingList) else item_at(rows, index)
            flag = truth(test(item)) if count is None else both(
                lambda: index < count, lambda: truth(test(item)))
            value = _under(flag, element, item) if is_traced(flag) else element(item)
        _check([value])
        if goes_by_rounds(current(), *shape_of(value)):
            raise error("W102", "the items of a list have different shapes", locs=user_loc(),
                        hint="pad them to one shape")
        weak = type(value) in (bool, int, float, complex) or getattr(value, "weak", False)
        return (), (value, flag)

    _, (array, mask) = loop_nodes.scanned(
        "for", step, element, (), None, most, False, ctx)
    return FilteredList(array, mask, user_loc(), weak)
