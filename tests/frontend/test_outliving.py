"""Arrays that a function makes at its first call, and that stay: global tables, caches, properties
that are computed once. They are plain arrays from then on, which are read at each call."""

from __future__ import annotations

import functools
import gc
import pickle
from collections import deque, namedtuple
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft

ONES = np.ones(3)
PLACE: Any = None
BASE = np.ones(3)
Pair = namedtuple("Pair", "first second")


class Classed:
    table: Any = None


class Slotted:
    __slots__ = ("other", "table")

    def __init__(self) -> None:
        self.table: Any = None


class Parent:
    pass


slotted, holder, queue = Slotted(), Parent(), deque[Any]()
cache: dict[str, Any] = {}
items: list[Any] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    global PLACE
    PLACE = Classed.table = slotted.table = None
    for each in (cache, queue, items, vars(holder)):
        each.clear()
    BASE[:] = 1


@functools.lru_cache
def by_lru_cache(number: int) -> Any:
    return np.zeros(3)


def by_a_global() -> Any:
    global PLACE
    if PLACE is None:
        PLACE = np.zeros(3)
    return PLACE


def by_a_class() -> Any:
    if Classed.table is None:
        Classed.table = np.zeros(3) + 1
    return Classed.table


def by_a_slot() -> Any:
    if slotted.table is None:
        slotted.table = np.arange(3.0)
    return slotted.table


def by_an_attribute() -> Any:
    if not hasattr(holder, "table"):
        holder.table = holder.same = np.linspace(0, 1, 3)  # type: ignore[attr-defined]
    return holder.same  # type: ignore[attr-defined]


def by_a_view() -> Any:
    if "row" not in cache:
        cache["whole"] = np.zeros((2, 3))
        cache["row"] = cache["whole"][1]
    return cache["row"]


def by_a_list() -> Any:
    if not items:
        items.append(np.zeros(3))
    return items[0]


def by_a_queue() -> Any:
    if not queue:
        queue.append(np.zeros(3))
    return queue[0]


def by_tuples() -> Any:
    global PLACE
    if PLACE is None:
        PLACE = Pair(np.zeros(3), (np.ones(3), 2.0))
    return PLACE.second[0]


def _in_a_cell() -> Callable[[], Any]:
    table: Any = None

    def found() -> Any:
        nonlocal table
        if table is None:
            table = np.zeros(3)
        return table

    return found


@pytest.mark.parametrize("table", [
    lambda: by_lru_cache(1), by_a_global, by_a_class, by_a_slot, by_an_attribute, by_a_view,
    by_a_list, by_a_queue, by_tuples, _in_a_cell()])
def test_what_is_made_once_is_read_at_each_call(table: Callable[[], Any]) -> None:
    f = weft.compile(on_recompile="error")(lambda x: x + table())
    before = f(ONES) - ONES
    made = table()
    assert type(made) is np.ndarray and type(pickle.loads(pickle.dumps(made))) is np.ndarray
    np.testing.assert_array_equal(made, before)
    made[0] = 7.0
    np.testing.assert_array_equal(f(ONES), ONES + made)
    assert table() is made


def test_views_share_the_memory_that_they_had() -> None:
    weft.compile(lambda x: x + by_a_view())(ONES)
    cache["whole"][1, 2] = 5.0
    assert cache["row"][2] == 5.0
    weft.compile(lambda x: x + by_an_attribute())(ONES)
    assert vars(holder)["table"] is vars(holder)["same"]


def test_what_is_made_once_is_written_at_each_call() -> None:
    @weft.compile
    def total(x: Any) -> Any:
        global PLACE
        if PLACE is None:
            PLACE = np.full(3, 2.0)
            PLACE[1] = 10.0
        PLACE[0] += x
        return PLACE * 1

    for value in (3.0, 4.0, 5.0):
        np.testing.assert_array_equal(total(1.0), [value, 10, 2])
        np.testing.assert_array_equal(PLACE, [value, 10, 2])


def test_an_object_made_once_has_plain_arrays() -> None:
    def f(x: Any) -> Any:
        if "it" not in cache:
            cache["it"] = SimpleNamespace(w=np.zeros(3), parts=[np.ones(3)])
        return x + cache["it"].w + cache["it"].parts[0]

    compiled = weft.compile(f)
    np.testing.assert_array_equal(compiled(ONES), [2, 2, 2])
    cache["it"].w[:] = 4.0
    cache["it"].parts[0][:] = -1.0
    np.testing.assert_array_equal(compiled(ONES), [4, 4, 4])


def test_nor_does_a_trace_that_fails_leave_buffers() -> None:
    def f(x: Any) -> Any:
        made = by_a_global()
        made[0] = x
        return float(str(x).strip("["))

    with pytest.raises(weft.Error):
        weft.compile(f)(1.5)
    assert type(PLACE) is np.ndarray and PLACE.tolist() == [0, 0, 0]


def test_what_is_made_at_each_call_is_told_of() -> None:
    @weft.compile
    def f(x: Any) -> Any:
        items.append(np.zeros(3))
        return x

    with pytest.warns(weft.TracingWarning, match="f makes an array that outlives the call"):
        f(ONES)
    assert {type(each) for each in items} == {np.ndarray}


class Cached:
    def __init__(self) -> None:
        self.base, self.computed = np.ones(3), 0

    @functools.cached_property
    def zeros(self) -> Any:
        return np.zeros(3)

    @functools.cached_property
    def double(self) -> Any:
        return self.base * 2

    @functools.cached_property
    def of_a_global(self) -> Any:
        return BASE * 3

    @functools.cached_property
    def number(self) -> Any:
        return float(self.base[0]) + 0.5


def straight(thing: Cached, name: str) -> Callable[..., Any]:
    return lambda x: x + getattr(thing, name)


def in_a_branch(thing: Cached, name: str) -> Callable[..., Any]:
    return lambda x: x + getattr(thing, name) if x.sum() > 0 else x


def in_a_loop(thing: Cached, name: str) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        total = x * 0
        k = 0
        while k < x[0]:
            total = total + getattr(thing, name)
            k += 1
        return total

    return f


@pytest.mark.parametrize("name", ["zeros", "double", "of_a_global", "number"])
@pytest.mark.parametrize("way", [straight, in_a_branch, in_a_loop])
def test_properties_that_are_computed_once(way: Any, name: str) -> None:
    """As Python has them: what they are of may change, and so may they."""
    ones, others = Cached(), Cached()
    compiled = weft.compile(on_recompile="silent")(way(ones, name))
    plain = way(others, name)
    for step in range(3):
        np.testing.assert_array_equal(compiled(ONES), plain(ONES))
        assert type(vars(ones)[name]) is type(vars(others)[name])
        BASE[:] = ones.base[:] = others.base[:] = 7.0
        if step and name != "number":
            vars(ones)[name][1] = vars(others)[name][1] = -2.0


def test_objects_of_the_trace_keep_traced_properties() -> None:
    def f(x: Any) -> Any:
        thing = Cached()
        thing.base = x * 2
        return thing.double + thing.double

    np.testing.assert_array_equal(weft.compile(f)(ONES), [8, 8, 8])
    gc.collect()
