"""Elements under masks and slices with computed bounds have memory as NumPy's arrays have it: what
is a view there is written to with its base, what is a copy is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft

X = np.array([4.0, 0.0, 3.0, 1.0, 5.0, 2.0])
M = np.array([True, False, True, False, True, True])


def agree(function: Callable[..., Any], *args: Any) -> None:
    want = function(*(np.array(arg) for arg in args))
    got = weft.compile(function)(*args)
    want, got = (found if isinstance(found, tuple) else (found,) for found in (want, got))
    assert len(want) == len(got)
    for one, other in zip(want, got, strict=True):
        np.testing.assert_array_equal(other, one)
        assert other.dtype == one.dtype


VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda y: y, "tail": lambda y: y[1:], "inner": lambda y: y[1:-1],
    "all": lambda y: y[:], "dots": lambda y: y[...], "backward": lambda y: y[::-1],
    "tail of tail": lambda y: y[1:][1:], "row": lambda y: y[None], "column": lambda y: y[:, None],
    "reshaped": lambda y: y.reshape(-1), "matrix": lambda y: y.reshape(-1, 1),
    "raveled": np.ravel, "transposed": lambda y: y.T, "asarray": lambda y: np.asarray(y),
    "flipped": np.flip,
    "squeezed": np.squeeze, "1d": np.atleast_1d, "2d": np.atleast_2d, "real": np.real,
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": lambda y: y.copy(), "np.copy": np.copy, "array": lambda y: np.array(y),
    "plus": lambda y: +y,
    "astype": lambda y: y.astype(float), "mask": lambda y: y[y > 2], "list": lambda y: y[[0, 1]],
    "sorted": np.sort, "sum": lambda y: y + 0, "cumsum": np.cumsum,
}


@pytest.mark.parametrize("name", [*VIEWS, *COPIES])
@pytest.mark.parametrize("taken", ["mask", "slice", "unique"])
def test_writes_reach_views_and_no_copies(name: str, taken: str) -> None:
    def array_of(x: Any, m: Any) -> Any:
        if taken == "slice":
            return x[: np.argmin(m) + 4]
        return x[m] if taken == "mask" else np.unique(x)

    def to_base(x: Any, m: Any) -> Any:
        y = array_of(x * 1, m)
        z = {**VIEWS, **COPIES}[name](y)
        y *= 2
        return y, z

    def to_view(x: Any, m: Any) -> Any:
        y = array_of(x * 1, m)
        z = {**VIEWS, **COPIES}[name](y)
        z += 10
        return y, z

    agree(to_base, X, M)
    agree(to_view, X, M)


def two_views_of_one(x: Any, m: Any) -> Any:
    y = x[m]
    a, b = y[:2], y[1:]
    a[...] = 9
    b -= 1
    return y, a, b


def the_base_of_a_slice(x: Any, m: Any) -> Any:
    a = x * 1
    s = a[1:np.argmax(a) + 2]
    r = s[1:]
    r *= 2
    s[0] = 7
    return a, s, r


def a_copy_of_a_slice(x: Any, m: Any) -> Any:
    a = x * 1
    c = a[:np.argmax(a)].copy()
    c *= 2
    return a, c


def elements(x: Any, m: Any) -> Any:
    y = x[m]
    y[0], y[1] = y[1], y[0]
    y[y > 3] = 0
    y[1:] -= y[:-1]
    y[-1] += 5
    return y


def changed_where_a_mask_holds(x: Any, m: Any) -> Any:
    y = x[x == x]
    y[m] *= 2
    y[::-1] -= y
    return y


def one_for_all(x: Any, m: Any) -> Any:
    y = x[m]
    y[y > 2] = x[x > x.max() - 1]
    y += x[x == 1]
    return y, y * x[x == 2]


def added_to_an_array(x: Any, m: Any) -> Any:
    y = x * 1
    z = y[:2]
    y += x[x == x]
    y *= np.flatnonzero(x == x)
    return y, z


def places_and_elements(x: Any, m: Any) -> Any:
    y, i = x[x > 1], np.flatnonzero(x[::-1] > 1)
    y *= i
    i[::-1] -= i
    return y, i, y - i, i - y


def places(x: Any, m: Any) -> Any:
    i = np.nonzero(m)[0]
    j = i
    j -= 1
    i[0] = 5
    return x[i], i


def methods(x: Any, m: Any) -> Any:
    y = x[m]
    z = y[:2]
    y.sort()
    w = x[m]
    w.fill(3)
    return y, z, w


def functions(x: Any, m: Any) -> Any:
    y = x[m]
    z = y[1:]
    np.add(y, 1, out=y)
    np.copyto(z, 8, where=z > 4)
    return y, z


def rows_and_columns(x: Any, m: Any) -> Any:
    y = np.stack([x, x * 2], 1)[m]
    column, turned, row = y[:, 0], y.T, y[1]
    column *= 5
    turned += 1
    row -= 100
    return y, column, turned, row


def grids(x: Any, m: Any) -> Any:
    a = np.stack([x, x * 2, x * 3])
    part = a[:np.argmax(x), 1:]
    turned = part.T
    turned += 1
    part[0] = 0
    return a, part, turned


def on_one_way(x: Any, m: Any) -> Any:
    y = x[m]
    z = y[1:]
    if x[0] > 1:
        y *= 2
    else:
        z += 1
    return y, z


def bound_anew_on_one_way(x: Any, m: Any) -> Any:
    y = x[m] if x[0] > 1 else x[x > 4]
    if x[1] < 1:
        y = y * 2
    return y


def in_rounds(x: Any, m: Any) -> Any:
    y = x[m]
    z = y[1:]
    while y.sum() < 100:
        y *= 2
        z += 1
    return y, z


def fewer_in_each_round(x: Any, m: Any) -> Any:
    y = x
    while y.size > 2:
        y = y[y > y.min()]
    return y


def each_in_turn(x: Any, m: Any) -> Any:
    y = x[m]
    for i in range(len(y)):
        y[i] += i
    for v in y:
        if v > 3:
            y[0] += v
    where = np.nonzero(m)[0]
    for i in range(len(where)):
        where[i] -= i
    return y, where


PROGRAMS = [
    two_views_of_one, the_base_of_a_slice, a_copy_of_a_slice, elements, changed_where_a_mask_holds,
    one_for_all, added_to_an_array, places_and_elements, places, methods, functions,
    rows_and_columns, grids, on_one_way, bound_anew_on_one_way, in_rounds, fewer_in_each_round,
    each_in_turn]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_programs(function: Callable[..., Any]) -> None:
    agree(function, X, M)
    agree(function, X[::-1].copy(), np.ones(6, bool))


def test_what_is_only_computed_with_needs_no_size_from_values() -> None:
    def centred(x: Any, m: Any) -> Any:
        y = x[m]
        y -= y.mean()
        y[y > 0] = 0
        return y.sum()

    lines = weft.compile(centred).lower(X, M).as_text("trace")
    assert "extent" not in lines
    agree(centred, X, M)


def test_a_wider_result_does_not_fit() -> None:
    def halved(x: Any, m: Any) -> Any:
        y = x.astype(int)[m]
        y += 0.5
        return y

    with pytest.raises(weft.Error, match="W111"):
        weft.compile(halved)(X, M)


NAMES = [*VIEWS, "copy", "sum", "mask"]


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(NAMES), st.integers(0, 9),
                          st.sampled_from(["+=", "*=", "all", "first"])), min_size=1, max_size=5))
def test_any_views_and_writes(steps: list[tuple[int, str, int, str]]) -> None:
    def program(x: Any, m: Any) -> Any:
        arrays = [x[m]]
        for base, name, to, how in steps:
            made = {**VIEWS, **COPIES}[name](arrays[base % len(arrays)].reshape(-1))
            arrays.append(made)
            z = arrays[to % len(arrays)]
            if how == "+=":
                z += 1
            elif how == "*=":
                z *= 2
            elif how == "all":
                z[...] = 3
            else:
                z[:1] = 4
        return tuple(arrays)

    agree(program, X, np.ones(6, bool))
