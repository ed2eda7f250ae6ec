"""Arrays from around a function: what it reads of them, and what it writes to them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from around import Around
from running import python_functions

import weft

TABLE = np.arange(1.0, 5.0)
COUNTS = np.array([1, 2, 3])
RATE = np.array(2.0)
GRID = np.arange(12.0).reshape(3, 4)
FLAGS = np.array([True, False, True])
NET: Any = SimpleNamespace(weights=[np.ones(3), np.full(3, 2.0)], total=np.zeros(3))
ARRAYS = (TABLE, COUNTS, RATE, GRID, FLAGS, *NET.weights, NET.total)
AROUND = Around(ARRAYS, lambda x: np.flip(x) * 2 if x.ndim else np.array(7.0))
check = AROUND.check


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    AROUND.restore(AROUND.first)


def unpacked(x: Any) -> Any:
    first, *rest = TABLE
    return first * x + rest[-1] + max(*TABLE)


def searched(x: Any) -> Any:
    return x * (2.0 in TABLE) + np.searchsorted(COUNTS, 2)


def loops(x: Any) -> Any:
    total = 0.0
    for row in GRID:
        for value in row:
            total += value * x
    return total


def into_its_own(x: Any) -> Any:
    made = np.zeros(4)
    made[:] = TABLE
    made[0] += TABLE[1]
    other = np.zeros(4)
    np.copyto(other, TABLE)
    return made * x + other


def by_an_object(x: Any) -> Any:
    for weight in NET.weights:
        x = x * weight.sum() + weight[0]
    return x


READS: tuple[Callable[..., Any], ...] = (
    lambda x: x * TABLE[0], lambda x: TABLE[1:].sum() * x, lambda x: TABLE + 1,
    lambda x: x * np.sum(TABLE), lambda x: x * float(TABLE[0]), lambda x: x * TABLE.T[0],
    lambda x: x * 2 if TABLE[0] > 3 else x, lambda x: sum(value * x for value in TABLE),
    lambda x: [x * value for value in TABLE][1], lambda x: TABLE[COUNTS[0] % 4] * x,
    lambda x: x * TABLE.tolist()[0], lambda x: x * TABLE.item(1), lambda x: RATE * x,
    lambda x: float(RATE) * x, lambda x: max(TABLE) * x, lambda x: TABLE.copy() * x,
    lambda x: np.array(TABLE)[0] * x, lambda x: TABLE.flat[1] * x, lambda x: -TABLE,
    lambda x: np.stack([TABLE, TABLE]) * x, lambda x: np.where(FLAGS, x, 0.0),
    lambda x: x + GRID[:, FLAGS[:1].repeat(4)].sum(), lambda x: np.linalg.norm(GRID) * x,
    lambda x: x + TABLE[::-1][COUNTS % 4], lambda x: list(TABLE)[1] * x,
    lambda x: [a * b for a in TABLE for b in COUNTS][2] * x, lambda x: x * np.mgrid[:2][1],
    lambda x: [*TABLE][2] * x, lambda x: (not FLAGS[0]) * x, lambda x: x if TABLE.any() else -x,
    unpacked, searched, loops, into_its_own, by_an_object)


@pytest.mark.parametrize("function", READS)
def test_what_is_read_is_read_at_each_call(function: Callable[..., Any]) -> None:
    check(function, 3.0)


def stepped(x: Any) -> Any:
    TABLE[0] = x
    TABLE[1:] += TABLE[0]
    return TABLE.sum()


def counted(x: Any) -> Any:
    COUNTS[1] += 1
    return x * COUNTS[1]


def augmented(x: Any) -> Any:
    global TABLE
    TABLE += x
    return TABLE * 2


def viewed(x: Any) -> Any:
    row = GRID[1]
    column = GRID.T[2]
    row *= x
    column[0] = -1.0
    return row.sum() + GRID[0, 2]


def in_ways(x: Any) -> Any:
    if x > TABLE[0]:
        TABLE[0] = x
    else:
        TABLE[1] = 0.0
    return TABLE + x


def in_loops(x: Any) -> Any:
    for at in range(4):
        TABLE[at] = x * at
    k = 0
    while k < x:
        GRID[0, k] += TABLE[k]
        k += 1
    return GRID.sum()


def helper(memory: Any, x: Any) -> None:
    memory[...] = memory[::-1] + x


def by_a_helper(x: Any) -> Any:
    helper(TABLE, x)
    helper(GRID[0], x)
    return TABLE[0]


def accumulated(x: Any) -> Any:
    NET.total += NET.weights[1] * x
    NET.weights[0][1] = x
    return NET.total.sum()


def sorted_and_filled(x: Any) -> Any:
    GRID[1].sort()
    TABLE.fill(2)
    np.add.at(COUNTS, [0, 0], 2)
    np.multiply(RATE, x, out=RATE)
    np.copyto(GRID[0], TABLE)
    np.put(GRID, [5], x)
    TABLE.flat[1] = x
    return RATE * 1


def plain_stores(x: Any) -> Any:
    TABLE[...] = 3.0
    TABLE[2] = GRID[0, 1]
    FLAGS[1] = True
    return x


def one_of_two(x: Any) -> Any:
    some = TABLE
    some[0] = x
    return some.sum()


WRITES = (stepped, counted, augmented, viewed, in_ways, in_loops, by_a_helper, accumulated,
          sorted_and_filled, plain_stores, one_of_two)


@pytest.mark.parametrize("function", WRITES)
def test_what_is_written_is_there_after_the_call(function: Callable[..., Any]) -> None:
    check(function, 3.0)
    check(function, -1.0)


def test_writes_need_no_python() -> None:
    memory = np.zeros(1000)

    @weft.compile
    def step(x: Any) -> Any:
        memory[0] = x
        return memory[1:].sum()

    for _ in range(3):
        step(2.0)
    assert python_functions(lambda: step(3.0)) == []
    assert memory[0] == 3.0

    @weft.compile
    def scaled(x: Any) -> Any:
        global GRID
        GRID *= x

    scaled(2.0)
    assert scaled.lower(2.0).compile().memory_analysis().alias_bytes == GRID.nbytes


def repeated(x: Any) -> Any:
    return np.concatenate([x * at for at in COUNTS.tolist()]) if COUNTS[1] > 1 else x


@pytest.mark.parametrize("function", [
    lambda x: x * scipy.linalg.hilbert(COUNTS[1]), lambda x: x + np.ones(12).reshape(COUNTS[1], -1),
    lambda x: {1: x, 2: -x, 3: x * 2, 6: x, "": x}[int(COUNTS[0])],
    lambda x: {1.0: x, 8.0: -x}[float(TABLE[0])], repeated])
def test_numbers_that_decide_what_is_traced_are_guarded(function: Callable[..., Any]) -> None:
    compiled = check(function, np.ones(1) if function is repeated else 3)
    kinds = [guard.kind.name for made in compiled.programs.specialisations()
             for guard in made.guards]
    assert "CONTENT" in kinds


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "f8", "c16"])
@pytest.mark.parametrize("size", [1, 8, 9, 1001])
def test_native_code_sees_each_bit(dtype: str, size: int) -> None:
    numbers = np.arange(size).astype(dtype)
    compiled = weft.compile(lambda x: x * len(str(numbers.tolist())), on_recompile="silent")
    compiled(1.0)
    assert python_functions(lambda: compiled(1.0)) == []
    for at in (0, size // 2, size - 1):
        before = compiled.programs.specialisations()
        numbers.view(np.uint8)[at * numbers.itemsize] ^= 1
        assert compiled(1.0) == len(str(numbers.tolist()))
        assert compiled.programs.specialisations() != before


def test_what_has_changed_is_told() -> None:
    @weft.compile
    def f(x: Any) -> Any:
        return scipy.linalg.hilbert(COUNTS[0]) + x

    f(1.0)
    COUNTS[0] = 4
    with pytest.warns(weft.RecompileWarning, match=r"'COUNTS' has \[4, 2, 3\], had \[1, 2, 3\]"):
        assert f(1.0).shape == (4, 4)
    assert f(1.0).shape == (4, 4)


def test_a_step_that_fails_leaves_them_as_they_were() -> None:
    before = TABLE.copy()

    @weft.compile
    def step(x: Any, at: Any) -> Any:
        TABLE[0] = x
        GRID[at] = x
        return TABLE.sum()

    for _ in range(2):
        with pytest.raises(weft.Error, match="W12"):
            step(7.0, 9)
        np.testing.assert_array_equal(TABLE, before)


def test_what_cannot_be_written_is_refused() -> None:
    held = np.zeros(3)
    held.flags.writeable = False
    wide = np.zeros(6)
    part = wide[2:]

    def read_only(x: Any) -> Any:
        held[0] = x
        return held * 1

    def overlapping(x: Any) -> Any:
        wide[0] = x
        return part * 2

    def decides(x: Any) -> Any:
        made = {1: x, "one": x}[int(COUNTS[0])]
        COUNTS[1] = x
        return made

    def foreign(x: Any) -> Any:
        made = Holder().numbers
        made[0] = x
        return made

    class Holder:
        numbers = property(eval("lambda self: __import__('numpy').zeros(3)"))

    for function in (read_only, overlapping, decides, foreign):
        with pytest.raises(weft.Error, match="W203"):
            weft.compile(function)(5)
    assert not held.any() and not wide.any() and COUNTS[1] == 2


def test_what_is_returned_is_the_array_itself() -> None:
    @weft.compile
    def both(x: Any) -> Any:
        TABLE[0] = x
        return {"table": TABLE, "scale": RATE, "row": GRID[0]}

    for _ in range(3):
        found = both(5.0)
        assert found["table"] is TABLE and found["scale"] is RATE and TABLE[0] == 5.0
        np.testing.assert_array_equal(found["row"], GRID[0])
    assert python_functions(lambda: both(5.0)) == []
    assert both.eval_shape(5.0)["table"].shape == (4,)


def test_arguments_may_not_have_their_memory() -> None:
    @weft.compile
    def step(x: Any) -> Any:
        TABLE[0] = x[1]
        return x * 2

    step(np.ones(4))
    with pytest.raises(weft.Error, match=r"W203.*memory in common"):
        step(TABLE)
    with pytest.raises(weft.Error, match=r"W203.*memory in common"):
        step(TABLE[1:])
    assert TABLE[0] == 1.0


def test_what_is_known_of_an_array_is_no_argument_that_is_written() -> None:
    @weft.compile
    def step(x: Any) -> Any:
        scale = {1: 1.0, 2: 2.0, 6: 3.0}[int(COUNTS[0])]
        x += 1
        return x * scale

    for _ in range(2):
        np.testing.assert_array_equal(step(np.ones(3)), [2.0] * 3)
        with pytest.raises(weft.Error, match=r"W203.*memory in common"):
            step(COUNTS)
    assert COUNTS.tolist() == [1, 2, 3]


def test_inside_transforms() -> None:
    def loss(w: Any) -> Any:
        return np.sum(w * TABLE) + TABLE[0] * w[1]

    compiled = weft.compile(weft.grad(loss))
    for scale in (1.0, 3.0):
        TABLE[:] = scale
        np.testing.assert_array_equal(compiled(np.ones(4)), [scale, 2 * scale, scale, scale])
    mapped = weft.compile(weft.vmap(lambda x: x + TABLE[1]))
    for value in (5.0, 6.0):
        TABLE[1] = value
        np.testing.assert_array_equal(mapped(np.zeros(3)), [value] * 3)


def test_another_array_under_the_name_is_seen() -> None:
    space: dict[str, Any] = {"np": np, "memory": np.zeros(3)}

    def step(x: Any) -> Any:
        space["memory"][0] += x
        return space["memory"].sum()

    compiled = weft.compile(step, on_recompile="silent")
    first = space["memory"]
    compiled(1.0)
    space["memory"] = np.ones(3)
    assert compiled(2.0) == 5.0
    assert first[0] == 1.0 and space["memory"][0] == 3.0


def test_nothing_is_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weft.compile(augmented)(1.0)
        weft.compile(counted)(1.0)


def test_what_is_changed_while_it_is_traced_is_refused() -> None:
    """Wherever it is in a large array, and however often the function could be traced again."""
    held = np.zeros(40 << 20)
    memory = memoryview(held)  # which no trace sees

    @weft.compile
    def step(x: Any, n: int = 1) -> Any:
        y = x + held[1]
        poke(n)
        return y + held[1]

    def poke(n: int) -> None:
        memory[12345] += n

    with pytest.raises(weft.Error, match=r"W203: array 'held' was changed while tracing"):
        step(1.0)
    assert held[12345] == 1.0
