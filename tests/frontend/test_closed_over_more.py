"""Arrays from around a function in what holds them and in what is called with them."""

from __future__ import annotations

import bisect
import copy
import dataclasses
import functools
import itertools
import math
import operator
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
from around import Around

import weft


class Rows(list[Any]):
    """A list that is none of Python's own."""


class Table:
    """A class that holds an array, and counts its objects."""

    made = np.zeros(1, int)

    def __init__(self, value: Any) -> None:
        self.value = value
        Table.made[0] += 1

    @functools.cached_property
    def total(self) -> Any:
        return self.value.sum()


    @property
    def held(self) -> Any:
        return self.value

    @held.setter
    def held(self, value: Any) -> None:
        self.value[...] = value


@dataclasses.dataclass
class Body:
    place: Any
    mass: float


PLACE = np.array(0)
SIZES = np.array([1, 2])
KEYS = np.array([1.0, 2.0])
LINE = np.arange(1.0, 5.0)
MASK = np.array([True, False, True, False])
FLAG = np.array(1.0)
ROWS: list[Any] = [np.ones(2), np.full(2, 3.0), np.array([5.0, 2.0])]
LISTED = Rows([np.ones(2), np.zeros(3)])
PARAMS: dict[str, Any] = {"w": np.ones((2, 2)), "b": np.zeros(2)}
NEST: Any = {"layers": [SimpleNamespace(w=np.ones(2)), SimpleNamespace(w=np.zeros(2))]}
BODIES = [Body(np.zeros(2), 1.0), Body(np.ones(2), 2.0)]
FORM = "%s"
FIELDS = np.zeros(2, [("a", "f8"), ("n", "i4")])
WAVE = np.array([1 + 2j, 3 - 1j])
TABLE = Table(np.arange(3.0))
LAYERS = NEST["layers"]
ARRAYS = (PLACE, SIZES, KEYS, LINE, MASK, FLAG, *ROWS, *LISTED, *PARAMS.values(),
          *(each.w for each in LAYERS), *(each.place for each in BODIES), FIELDS["a"], WAVE,
          TABLE.value, Table.made)


def other(x: Any) -> Any:
    return ~x if x.dtype == bool else np.flip(x) if x.ndim else x + 1


AROUND = Around(ARRAYS, other, lambda: vars(TABLE).pop("total", None))
check = AROUND.check


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    AROUND.restore(AROUND.first)


def items_of_dicts(x: Any) -> Any:
    for name in PARAMS:
        PARAMS[name] -= 0.5 * x
    for value in PARAMS.values():
        value *= 2
    return sum(each.sum() for each in PARAMS.values())


def items_of_lists(x: Any) -> Any:
    ROWS[0] += x
    ROWS[-1][1:] *= ROWS[0][:1]
    LISTED[0] += x
    for row, more in zip(ROWS, reversed(ROWS), strict=True):
        row += 0.5 * more
    return ROWS[2].sum()


def attributes_of_items(x: Any) -> Any:
    NEST["layers"][0].w += x
    LAYERS[1].w[0] -= x
    for body in BODIES:
        body.place += x * body.mass
    BODIES[1].place *= 2
    return LAYERS[0].w.sum()


def places_that_are_arrays(x: Any) -> Any:
    ROWS[0][PLACE] = x
    PLACE[...] = (PLACE + 1) % 2
    LINE[MASK] = x
    LINE[~MASK] *= 2
    LINE[PLACE:] += 1
    return LINE[PLACE - 1]


def truths(x: Any) -> Any:
    found = x if FLAG > 1 else -x
    return (found + 1 if FLAG else found), (not MASK[0]), x in LINE, 2.0 in LINE, bool(FLAG)


def copies(x: Any) -> Any:
    one, two = copy.deepcopy(TABLE), copy.deepcopy(PARAMS)
    one.value[0] += x
    two["w"][0] = x
    fields = dataclasses.asdict(BODIES[1])
    row = copy.copy(ROWS)[1]
    row[0] = x
    return one.value, two["w"], fields["place"] * x


def of_python(x: Any) -> Any:
    found = deque(LINE, maxlen=2)
    return (list(itertools.accumulate(LINE)), list(itertools.accumulate(ROWS, np.add)),
            list(itertools.chain(LINE, ROWS[0]))[5] * x, found.popleft(), math.fsum(LINE),
            functools.reduce(operator.mul, LINE), list(itertools.product(LINE, SIZES))[3][0])


def of_numpy(x: Any) -> Any:
    return (list(map(np.sum, ROWS)), list(map(np.add, ROWS, ROWS[::-1])), weft.tree.map(
        np.sum, PARAMS), LINE.clip(1, x), sorted(ROWS, key=lambda row: row[0])[0] * x,
        list(itertools.starmap(np.dot, zip(ROWS, ROWS, strict=True))))


def written_by_numpy(x: Any) -> Any:
    LINE.clip(2, 3, out=LINE)
    np.copyto(dst=ROWS[0], src=x)
    np.cumsum(ROWS[1], out=ROWS[1])
    operator.setitem(ROWS[2], 0, x)
    return LINE.sum()


def texts(x: Any) -> Any:
    return str(LINE), repr(SIZES), f"{KEYS} {x:.1f}", FORM % (FLAG,)


def of_a_class(x: Any) -> Any:
    return Table(LINE * x).total + TABLE.total + Table.made[0]


def a_field(x: Any) -> Any:
    FIELDS["a"][0] += x
    FIELDS["a"] = FIELDS["a"] + x
    FIELDS["a"] *= 2
    return FIELDS["a"] * x


def parts_and_properties(x: Any) -> Any:
    WAVE.imag *= 2
    WAVE.real[0] = x
    TABLE.held += x
    TABLE.held *= 2
    return max(LINE), max(LINE[0], LINE[1]), WAVE.real * x


def swapped(x: Any) -> Any:
    one, two = ROWS[0], ROWS[1]
    for _ in range(3):
        two[:] = one + x
        one, two = two, one
    return one.sum()


def one_of_rows(x: Any) -> Any:
    ROWS[SIZES[0]][0] += x
    ROWS[SIZES[1]] += x
    return ROWS[SIZES[0]] * ROWS[SIZES[1]][0]


@pytest.mark.parametrize("function", [
    items_of_dicts, items_of_lists, attributes_of_items, places_that_are_arrays, truths, copies,
    of_python, of_numpy, written_by_numpy, texts, of_a_class, a_field,
    parts_and_properties, swapped, one_of_rows])
def test_they_are_read_and_written_at_each_call(function: Callable[..., Any]) -> None:
    check(function, 3.0)


def counted(x: Any) -> Any:
    found: Any = defaultdict(int)
    for size in SIZES:
        found[int(size)] += 1
    return dict(found), Counter(SIZES.tolist())[2] * x


def key_beside_writes(x: Any) -> Any:
    rate = {1.0: 0.5, 2.0: 0.25}[float(KEYS[0])]
    LINE[:] -= rate * LINE.sum() * x
    return LINE.sum()


def count_beside_sizes(x: Any) -> Any:
    name = {1: x, 2: -x}[int(SIZES[0])]
    PLACE[...] += 1
    return name * PLACE


def by_scipy(x: Any) -> Any:
    LINE[0] += scipy.interpolate.CubicSpline(np.arange(4.0), ROWS[0].repeat(2))(1.5)
    return LINE.sum() * x + bisect.bisect(KEYS, 1.5)


@pytest.mark.parametrize("function", [
    counted, key_beside_writes, count_beside_sizes, by_scipy])
def test_some_are_known_and_others_written(function: Callable[..., Any]) -> None:
    check(function, 3.0)


def test_what_is_far_away_is_guarded() -> None:
    top = end = SimpleNamespace()
    for _ in range(8):
        end.next = SimpleNamespace()
        end = end.next
    end.size = np.array([1])

    @weft.compile(on_recompile="silent")
    def f(x: Any) -> Any:
        here = top
        while hasattr(here, "next"):
            here = here.next
        return {1: x, 2: -x}[int(here.size[0])]

    assert f(3.0) == 3.0
    end.size[0] = 2
    assert f(3.0) == -3.0


def test_which_array_is_written_must_be_known() -> None:
    @weft.compile
    def by_a_number(x: Any) -> Any:
        row = ROWS[0] if x > 2 else ROWS[1]
        row[0] += x
        return row.sum()

    with pytest.raises(weft.Error, match="W203"):
        by_a_number(3.0)
    assert ROWS[0][0] == 1.0

    @weft.compile(on_recompile="silent")
    def equal_at_first(x: Any) -> Any:
        row = ROWS[0] if x > 2 else BODIES[1].place
        return row * x

    for value in (1.0, 4.0):
        ROWS[0][:] = value
        np.testing.assert_array_equal(equal_at_first(3.0), np.full(2, 3 * value))
        np.testing.assert_array_equal(equal_at_first(1.0), np.ones(2))


def test_views_of_what_decides_are_not_written() -> None:
    keys = LINE[:1]

    @weft.compile
    def f(x: Any) -> Any:
        found = {1.0: x}[float(keys[0])]
        LINE[0] = 2.0
        return found

    with pytest.raises(weft.Error, match="W203"):
        f(3.0)
    assert LINE[0] == 1.0


def test_names_that_are_bound_anew_are_told() -> None:
    one, other = np.zeros(2), np.ones(2)

    def step(x: Any) -> Any:
        nonlocal one, other
        one, other = other, one
        return one * x

    with pytest.warns(weft.TracingWarning, match="'one' is bound to another array"):
        weft.compile(step)(2.0)


@pytest.mark.long
def test_what_another_function_has_left_is_around() -> None:
    cache: dict[str, Any] = {}

    def fill(x: Any) -> Any:
        cache["line"] = np.arange(3.0)
        return x

    def use(x: Any) -> Any:
        cache["line"][0] += x
        return cache["line"].sum() if cache["line"][2] > 1 else -x

    weft.compile(fill)(1.0)
    compiled = weft.compile(use)
    assert compiled(2.0) == 5.0 and compiled(2.0) == 7.0
    cache["line"][2] = 0.0
    assert compiled(2.0) == -2.0
    np.testing.assert_array_equal(cache["line"], [6.0, 1.0, 0.0])


def test_traced_keys_are_no_keys() -> None:
    @weft.compile
    def f(x: Any) -> Any:
        found: Any = defaultdict(int)
        found[int(x[0])] += 1
        return found[1]

    with pytest.raises(weft.Error, match="W201"):
        f(np.array([1, 2]))


def test_objects_keep_no_traced_values() -> None:
    f = weft.compile(lambda x: TABLE.total * x)
    assert f(2.0) == 6.0
    assert type(vars(TABLE)["total"]) is np.float64
    TABLE.value[0] = 1.0
    assert f(2.0) == 6.0  # computed once, as in Python


class Fields(dict[str, Any]):
    """A dict whose keys are attributes, and that raises KeyError for those that are not there."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def test_keys_that_are_attributes() -> None:
    held: Any = Fields(w=np.ones(2), b=np.zeros(2))

    @weft.compile
    def f(x: Any) -> Any:
        held.b[0] += x
        held.b -= 1
        return held.w * x

    np.testing.assert_array_equal(f(2.0), [2.0, 2.0])
    held.w[0] = 5.0
    np.testing.assert_array_equal(f(2.0), [10.0, 2.0])
    np.testing.assert_array_equal(held.b, [2.0, -2.0])


def test_files_that_are_arrays(tmp_path: Any) -> None:
    stored: Any = np.memmap(tmp_path / "x", dtype=float, mode="w+", shape=(3,))
    stored[:] = [1, 2, 3]

    @weft.compile
    def f(x: Any) -> Any:
        stored[0] += x
        return stored.sum() if stored[1] > 1 else -x

    assert f(1.0) == 7.0 and f(1.0) == 8.0
    stored[1] = 0.0
    assert f(5.0) == -5.0
    np.testing.assert_array_equal(stored, [8.0, 0.0, 3.0])


def in_all(x: Any) -> Any:
    for name in PARAMS:
        PARAMS[name] -= x
    for row in ROWS:
        row *= x
    ROWS[0][0] += PARAMS["b"][0]
    return sum(each.sum() for each in (*PARAMS.values(), *ROWS))


def test_what_holds_them_is_looked_at_though_its_arrays_are_written() -> None:
    compiled = weft.compile(on_recompile="silent")(in_all)
    saved, params, rows = [each.copy() for each in ARRAYS], dict(PARAMS), [*ROWS]
    changes: tuple[Callable[[], Any], ...] = (
        lambda: None, lambda: PARAMS.update(c=np.ones(1)), lambda: PARAMS.update(b=np.ones(3)),
        lambda: ROWS.append(np.ones(4)), lambda: ROWS.pop(1))
    try:
        for change in changes:
            outcomes = []
            for function in (in_all, compiled):
                AROUND.restore(saved)
                PARAMS.clear()
                PARAMS.update({name: each.copy() for name, each in params.items()})
                ROWS[:] = [each.copy() for each in rows]
                function(2.0)
                change()
                outcomes.append((function(2.0), dict(PARAMS), [*ROWS]))
            for a, b in zip(*map(weft.tree.leaves, outcomes), strict=True):
                np.testing.assert_array_equal(a, b)
    finally:
        PARAMS.clear()
        PARAMS.update(params)
        ROWS[:] = rows


def test_two_names_of_one_array_may_part() -> None:
    pair = SimpleNamespace(one=np.zeros(2))
    pair.other = pair.one

    @weft.compile(on_recompile="silent")
    def f(x: Any) -> Any:
        pair.one[0] += x
        pair.other[1] += x
        return pair.one.sum()

    assert f(1.0) == 2.0
    pair.other = np.zeros(2)
    assert f(1.0) == 3.0
    np.testing.assert_array_equal(pair.other, [0.0, 1.0])


def test_what_is_chosen_of_them_is_the_item_itself() -> None:
    best: list[Any] = [[2.0, np.ones(2)], [1.0, np.zeros(2)]]

    @weft.compile(on_recompile="silent")
    def f(x: Any) -> Any:
        first = min(best, key=lambda item: item[0])
        first[1][0] += x
        return sorted(best, key=lambda item: item[1][0])[-1][1] * 1

    for value in (3.0, 6.0):
        np.testing.assert_array_equal(f(3.0), [value, 0.0])
        assert best[1][1][0] == value and type(best[1][1]) is np.ndarray


def test_numbers_that_are_known_may_be_read_under_a_traced_mask() -> None:
    which = np.array([1.0, 3.0, 0.5])

    @weft.compile(on_recompile="silent")
    def f(x: Any, m: Any) -> Any:
        function = {1.0: np.sum, 2.0: np.max}[float(which[0])]
        return function(x) + which[m].sum()

    mask = np.array([True, False, True])
    assert f(np.arange(3.0), mask) == 4.5
    which[0] = 2.0
    assert f(np.arange(3.0), mask) == 4.5
    which[1:] = 0.0
    assert f(np.arange(3.0), mask) == 4.0
