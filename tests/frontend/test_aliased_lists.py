"""Lists and dicts that several names have, where branches and loops change them in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

X = np.random.default_rng(6).normal(size=12)


def two_names_in_branches(x: Any) -> Any:
    a = b = [0.0, 0.0]
    for v in x:
        if v > 0:
            a[0] += 1
        else:
            b[1] += 1
    return a, b, a is b


def two_names_in_a_loop(x: Any) -> Any:
    a = b = [0.0, 0.0]
    k = np.argmin(x) * 0
    while k < len(x):
        a[0] += x[k]
        b[1] += 1
        k = k + 1
    return a, b, a is b


def nests_in_branches(x: Any) -> Any:
    state = {"s": 0.0}
    nest = {"in": state, "list": [state]}
    if x[0] > 0:
        state["s"] += 1
        nest["list"][0]["s"] += 2
    else:
        nest["in"]["s"] -= 1
    state["s"] += 10
    return nest, nest["in"] is state, nest["list"][0] is state


def nests_in_a_loop(x: Any) -> Any:
    state = {"s": 0.0}
    nest = {"in": state, "list": [state]}
    k = np.argmin(x) * 0
    while k < len(x):
        state["s"] += x[k]
        nest["in"]["s"] += 1
        nest["list"][0]["s"] *= 0.5
        k = k + 1
    return nest, nest["in"] is state, nest["list"][0] is state


def attribute_and_name(x: Any) -> Any:
    class State:
        pass

    state = State()
    state.values = [0.0, 0.0]  # type: ignore[attr-defined]
    values = state.values  # type: ignore[attr-defined]
    for v in x:
        if v > 0:
            state.values[0] += v  # type: ignore[attr-defined]
        else:
            values[1] += v
    return values, state.values  # type: ignore[attr-defined]


def one_list_at_first(x: Any) -> Any:
    now = [0.0, 0.0]
    best, most = now, -1e9
    k = np.argmin(x) * 0
    while k < len(x):
        now = [x[k], x[k] * 2]
        if now[0] > most:
            best, most = now, now[0]
        k = k + 1
    return best, most, now


def rows_change_places(x: Any) -> Any:
    before, now = [0.0] * 5, [0.0] * 5
    k = np.argmin(x) * 0
    while k < len(x):
        for j in range(1, 5):
            now[j] = max(before[j], now[j - 1]) + x[k] * j
        before, now = now, before
        k = k + 1
    return before, now


def state_in_a_long_loop(x: Any) -> Any:
    state, other = {"s": 0.0, "n": 0}, [0.0, [1.0]]
    alias, inner = state, other[1]
    for v in np.concatenate([x] * 20):
        if v > 0:
            state["s"] += v
            state["n"] += 1
        else:
            other[1][0] *= 0.9
    return state, other, alias["n"], inner, alias is state


def new_dicts(x: Any) -> Any:
    state = {"s": 0.0, "n": 0}
    old = state
    for v in np.concatenate([x] * 20):
        if v > 0:
            state = {"s": state["s"] + v, "n": state["n"] + 1}
    return state, old


PROGRAMS = (two_names_in_branches, two_names_in_a_loop, nests_in_branches, nests_in_a_loop,
            attribute_and_name, one_list_at_first, rows_change_places, state_in_a_long_loop,
            new_dicts)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("sign", [1, -1])
def test_names_of_one_list(program: Callable[..., Any], sign: int) -> None:
    found, want = weft.compile(program)(sign * X), program(sign * X)
    assert weft.tree.structure(found) == weft.tree.structure(want)
    for a, b in zip(weft.tree.leaves(found), weft.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def becomes_another(x: Any) -> Any:
    now = [0.0]
    best, most, k = now, -1e9, np.argmin(x) * 0
    while k < len(x):
        now[0] = x[k]
        if now[0] > most:
            best, most = now, now[0]
        k = k + 1
    return best


def gets_a_second_name(x: Any) -> Any:
    a, b, k = [0.0], [1.0], np.argmin(x) * 0
    while k < len(x):
        b = a
        a[0] += x[k]
        k = k + 1
    b[0] += 100
    return a, b


@pytest.mark.parametrize("program", [becomes_another, gets_a_second_name])
def test_one_list_in_some_rounds_only(program: Callable[..., Any]) -> None:
    with pytest.raises(weft.Error, match=r"W203.*have one list in some rounds only"):
        weft.compile(program)(X)


def chosen(x: Any) -> Any:
    left, right = [0.0, 1.0], [5.0, 6.0]
    side = left if x[0] < x[1] else right
    side[0] += 100
    return left, right


def bound_on_two_ways(x: Any) -> Any:
    left, right = [0.0, 1.0], [5.0, 6.0]
    side = right
    if x[0] < x[1]:
        side = left
    side[0] += 100
    return left, right


def chosen_in_rounds(x: Any) -> Any:
    sides = {"left": [0.0], "right": [0.0]}
    for v in x:
        side = sides["left"] if v < 0 else sides["right"]
        side[0] += v
    return sides


def appended_to(x: Any) -> Any:
    left: list[Any] = []
    right: list[Any] = []
    for v in x:
        (left if v < 0 else right).append(v)
    return len(left), len(right)


def changed_under_its_first_name(x: Any) -> Any:
    left, right = [0.0, 1.0], [5.0, 6.0]
    side = left if x[0] < x[1] else right
    left[0], right[0] = 50.0, 60.0
    return side


@pytest.mark.parametrize("program", [
    chosen, bound_on_two_ways, chosen_in_rounds, appended_to, changed_under_its_first_name])
def test_which_list_it_is_depends_on_the_way(program: Callable[..., Any]) -> None:
    with pytest.raises(weft.Error, match=r"W203: it depends on values which list this is"):
        weft.compile(program)(X)


def only_read(x: Any) -> Any:
    left, right = [0.0, 1.0], [5.0, 6.0]
    side = left if x[0] < x[1] else right
    return side, left, right, sum(side)


def new_on_both_ways(x: Any) -> Any:
    total = [0.0, 0.0]
    for v in x:
        row = [v, 1.0] if v > 0 else [0.0, v]
        row[0] *= 2
        if row[0] > 1:
            row[1] = row[1] + 1
        total = [total[0] + row[0], total[1] + row[1]]
    return total


def new_in_branches_of_branches(x: Any) -> Any:
    if x[0] > 0:
        row = [x[0], 2.0]
        if x[1] > 0:
            row[0] = 5.0
        else:
            row[1] = 6.0
    else:
        row = [3.0, 4.0]
    row[1] += 7
    return row


def sorted_rows(x: Any) -> Any:
    rows = [[x[i], float(i)] for i in range(4)]
    for i in range(3):
        for j in range(3 - i):
            if rows[j][0] > rows[j + 1][0]:
                rows[j], rows[j + 1] = rows[j + 1], rows[j]
    rows[0][1] = 9.0
    return rows


def exchanged(x: Any) -> Any:
    a, b = [x[0], 1.0], [x[1], 2.0]
    if a[0] > b[0]:
        a, b = b, a
    a[1] += 1
    return a, b


def new_or_the_one_before(x: Any) -> Any:
    state = [0.0, 0.0]
    for v in x:
        if v > 0.5:
            state = [state[0] + 1, 0.0]
        elif v > 0:
            state[1] += v
        else:
            state = [state[0], state[1] * 0.5]
        state[0] += 0.1
    return state


@pytest.mark.parametrize("program", [
    only_read, new_on_both_ways, new_in_branches_of_branches, sorted_rows, exchanged,
    new_or_the_one_before])
@pytest.mark.parametrize("sign", [1, -1])
def test_lists_that_nobody_else_has(program: Callable[..., Any], sign: int) -> None:
    found, want = weft.compile(program)(sign * X), program(sign * X)
    for a, b in zip(weft.tree.leaves(found), weft.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def best_so_far(x: Any) -> Any:
    best = {"loss": np.inf, "weights": np.zeros(1)}
    for v in x:
        if v < best["loss"]:
            best["loss"], best["weights"] = v, v * x
    return best


def first_hit(x: Any) -> Any:
    hit = np.zeros(2)
    for i in range(3):
        if x[i] < 0.5:
            continue
        if x[i] > 0:
            hit = x[:3] * i
    return hit.sum()


@pytest.mark.parametrize(("program", "text"), [
    (best_so_far, r"best\['weights'\] is f64\[12\] on one way and f64\[1\] on the other"),
    (first_hit, r"hit is f64\[3\] on one way and f64\[2\] on the other")])
def test_errors_name_what_differs(program: Callable[..., Any], text: str) -> None:
    with pytest.raises(weft.Error, match=text):
        weft.compile(program)(X)


def test_errors_name_the_inner_function() -> None:
    def outer(x: Any) -> Any:
        def inner(k: Any) -> Any:
            hit = np.zeros(2)
            for v in x:
                if v > k:
                    hit = x
            return hit.sum()

        return inner(0.5)

    with pytest.raises(weft.Error, match="in inner"):
        weft.compile(outer)(X)
