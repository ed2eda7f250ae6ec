"""Updates that change some rows: the bits of the dense form, at the cost of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft

ROWS, WIDTH = 3000, 4


def table(dtype: Any = np.float32) -> Any:
    """Of all kinds of floats: what is not touched stays bit by bit."""
    found = np.random.default_rng(0).standard_normal((ROWS, WIDTH))
    found[::3] = -0.0
    found[1::7] = 0.0
    with np.errstate(all="ignore"):
        found[5, 1], found[6, 0], found[8] = np.nan, np.inf, -np.inf
        return (found * 100).astype(dtype)


def added(shape: tuple[int, ...], *parts: tuple[Any, Any], dtype: Any = np.float32) -> Any:
    found = np.zeros(shape, dtype)
    for index, rows in parts:
        np.add.at(found, index, rows)
    return found


def made_of(text: str, shape: str) -> list[str]:
    """The ops of which there are results of a shape."""
    lines = [line.split(" = ", 1) for line in text.splitlines() if " = " in line]
    return [value.split()[0] for type_, value in lines if type_.endswith(shape)]


def is_dense(function: Callable[..., Any], *args: Any) -> bool:
    """Whether anything but the result of a store is as large as the first argument."""
    text = weft.compile(function).lower(*args).as_text("opt")
    return made_of(text, f"[{','.join(map(str, args[0].shape))}]") != ["scatter"]


def check(function: Callable[..., Any], want: Any, *args: Any, dense: bool = False) -> None:
    got = weft.compile(function)(*args)
    assert got.dtype == want.dtype
    for each in (got, want):  # all NaNs are alike
        each[each != each] = 0
    assert got.tobytes() == want.tobytes()
    assert is_dense(function, *args) == dense


def ids_of(count: int, rows: int = ROWS, seed: int = 0) -> Any:
    """Some of them twice, some from the end."""
    rng = np.random.default_rng(seed)
    found = rng.integers(-rows, rows, count)
    found[: count // 2] = rng.integers(-3, 3, count // 2)
    return found


def rows_of(*shape: int, dtype: Any = np.float32) -> Any:
    found = np.random.default_rng(1).standard_normal((*shape, WIDTH)) * 9
    found.flat[::5] = -0.0
    return found.astype(dtype)


@pytest.mark.parametrize("count", [1, 2, 17, 64, 65, 400])
def test_rows(count: int) -> None:
    w, ids, g = table(), ids_of(count), rows_of(count)
    want = w - added(w.shape, (ids, g)) * np.float32(0.1)
    check(lambda w, ids, g: w - np.zeros_like(w).at[ids].add(g) * 0.1, want, w, ids, g)


def test_rows_by_grids_of_ids_and_along_other_axes() -> None:
    w, ids, g = table(), ids_of(30).reshape(5, 6), rows_of(5, 6)
    want = w - added(w.shape, (ids, g)) * np.float32(0.5)
    check(lambda w, ids, g: w - 0.5 * np.zeros_like(w).at[ids].add(g), want, w, ids, g)
    wide, columns, h = np.ascontiguousarray(w.T), ids_of(30), rows_of(30)
    moved = np.zeros_like(wide)
    np.add.at(moved.T, columns, h)
    check(lambda w, ids, g: w - 0.5 * np.zeros_like(w).at[:, ids].add(g.T),
          wide - np.float32(0.5) * moved, wide, columns, h)


def test_elements_by_several_indices() -> None:
    w, i, j = table(), ids_of(40), ids_of(40, WIDTH, 1)
    g = rows_of(10).reshape(40)
    want = w - added(w.shape, ((i, j), g)) * np.float32(0.5)
    check(lambda w, i, j, g: w - 0.5 * np.zeros_like(w).at[i, j].add(g), want, w, i, j, g)


def test_several_sums_of_one_table() -> None:
    w, ids, g, more, h = table(), ids_of(20), rows_of(20), ids_of(30, seed=2), rows_of(30)
    half = np.float32(0.5)
    check(lambda w, ids, g, more, h:
          w - 0.5 * np.zeros_like(w).at[ids].add(g).at[more].add(h),
          w - added(w.shape, (ids, g), (more, h)) * half, w, ids, g, more, h)
    check(lambda w, ids, g, more, h:
          w - 0.5 * (np.zeros_like(w).at[ids].add(g) + np.zeros_like(w).at[more].add(h)),
          w - (added(w.shape, (ids, g)) + added(w.shape, (more, h))) * half,
          w, ids, g, more, h)
    check(lambda w, ids, g, more, h:  # at one place, two sums
          w - 0.5 * (np.zeros_like(w).at[ids].add(g) * np.zeros_like(w).at[ids].add(g * 2)),
          w - half * (added(w.shape, (ids, g)) * added(w.shape, (ids, g * 2))),
          w, ids, g, more, h)


def test_what_would_change_other_rows_is_dense() -> None:
    """-0.0 + 0.0 is 0.0, and 0.0 * inf is no number."""
    w, ids, g = table(), ids_of(20), rows_of(20)
    sums = added(w.shape, (ids, g))
    with np.errstate(all="ignore"):
        check(lambda w, ids, g: w + np.zeros_like(w).at[ids].add(g), w + sums, w, ids, g,
              dense=True)
        check(lambda w, ids, g: w - np.zeros_like(w).at[ids].add(g) * -0.5,
              w - sums * np.float32(-0.5), w, ids, g, dense=True)
        check(lambda w, ids, g: w - np.zeros_like(w).at[ids].add(g) * np.inf,
              w - sums * np.float32(np.inf), w, ids, g, dense=True)
        check(lambda w, ids, g: w - np.exp(np.zeros_like(w).at[ids].add(g)), w - np.exp(
            np.zeros_like(w)), w, ids, np.zeros_like(g), dense=True)
    check(lambda w, ids, g: w + np.zeros_like(w).at[ids].add(g) * -0.5,
          w + sums * np.float32(-0.5), w, ids, g)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float64])
def test_dtypes(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    w, g = (rng.integers(0, 200, (count, WIDTH)).astype(dtype) for count in (ROWS, 50))
    ids = ids_of(50)
    check(lambda w, ids, g: w - np.zeros_like(w).at[ids].add(g),
          w - added(w.shape, (ids, g), dtype=dtype), w, ids, g)


def test_halves_and_empty_parts() -> None:
    half = table(np.float16)
    ids, g = ids_of(20), rows_of(20, dtype=np.float16)
    got = weft.compile(lambda w, ids, g: w - np.zeros_like(w).at[ids].add(g))(half, ids, g)
    assert got.dtype == np.float16
    none, some, w = np.zeros(0, np.int64), np.array([5]), table()
    h, k = rows_of(0), rows_of(1)
    weft.compile(lambda w, ids, g: w - np.zeros_like(w).at[ids].add(g))(w, none, h)
    got = weft.compile(lambda w, i, g, j, h: w - np.zeros_like(w).at[i].add(g).at[j].add(h))(
        w, none, h, some, k)
    assert got.tobytes() == (w - added(w.shape, (some, k))).tobytes()


def test_named_sizes() -> None:
    """How many ids there are of a large table, or how many rows."""
    def step(w: Any, ids: Any, g: Any) -> Any:
        return w - np.zeros_like(w).at[ids].add(g) * 0.25

    w = np.tile(table(), (11, 1))
    for dynamic, shape in (({"ids": {0: "n"}, "g": {0: "n"}}, "[33000,4]"),
                           ({"w": {0: "rows"}}, "[rows,4]")):
        compiled = weft.compile(step, dynamic=dynamic, on_recompile="silent")
        for count in (5, 0, 70) if "ids" in dynamic else (5,):
            ids, g = ids_of(count, len(w)), rows_of(count)
            want = w - added(w.shape, (ids, g)) * np.float32(0.25)
            assert compiled(w, ids, g).tobytes() == want.tobytes()
            assert made_of(compiled.lower(w, ids, g).as_text("opt"), shape) == ["scatter"]


@pytest.mark.parametrize("bad", [ROWS, -ROWS - 1])
def test_an_index_out_of_range_is_an_error(bad: int) -> None:
    compiled = weft.compile(lambda w, ids, g: w - np.zeros_like(w).at[ids].add(g) * 0.1)
    parts = weft.compile(lambda w, ids, g: w - 0.1 * (
        np.zeros_like(w).at[ids].add(g) + np.zeros_like(w).at[ids[::2]].add(g[::2])))
    for function in (compiled, parts):
        with pytest.raises(IndexError, match="W124"):
            function(table(), np.array([3, bad]), rows_of(2))


ANY = weft.compile(lambda w, ids, g: w - np.zeros_like(w).at[ids].add(g) * 0.1,
                   dynamic={"ids": {0: "n"}, "g": {0: "n"}}, on_recompile="silent")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-32768, 32767) | st.integers(-2, 2), max_size=90), st.integers(0, 99))
def test_any_ids(ids: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((1 << 15, 2)).astype(np.float32)
    g = (rng.standard_normal((len(ids), 2)) * 9).astype(np.float32)
    places = np.array(ids, np.int64)
    want = w - added(w.shape, (places, g)) * np.float32(0.1)
    assert ANY(w, places, g).tobytes() == want.tobytes()


def test_a_table_of_embeddings_is_trained_in_place() -> None:
    start = table()
    start[~np.isfinite(start)] = 0.5
    variable, rate = weft.Variable(start), np.float32(0.1)
    optimizer = weft.optim.SGD(0.1)

    def loss(ids: Any) -> Any:
        rows = variable[ids]
        return np.sum(rows * rows)

    step = weft.compile(lambda ids: optimizer.minimize(loss, [variable], ids))
    want = start.copy()
    places = []
    for seed in range(6):
        ids = ids_of(50, seed=seed)
        step(ids)
        want = want - rate * added(want.shape, (ids, want[ids] * 2))
        assert variable.value.tobytes() == want.tobytes()
        places.append(variable.value.ctypes.data)
    assert len(set(places[2:])) == 1
