"""Lists that another name gets, of which the first one is not read again; items in the middle."""

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.rewriting.source.moves import moves_of
from weft.frontend.rewriting.source.own_lists import own_lists
from weft.ir.plans.plan import Loop, all_steps

GRAPH = np.random.default_rng(0).random((9, 9)) < 0.3


def levels(graph: Any) -> Any:
    n = graph.shape[0]
    level = -np.ones(n, dtype=int)
    level[0] = 0
    frontier = [0]
    while len(frontier) > 0:
        following = []
        for u in frontier:
            for v in range(n):
                if graph[u, v] and level[v] < 0:
                    level[v] = level[u] + 1
                    following.append(v)
        frontier = following
    return level


def filtered_twice(graph: Any) -> Any:
    kept = [(u, graph[u, 0]) for u in range(graph.shape[0])]
    for k in range(1, 3):
        given = kept
        kept = []
        for u, _ in given:
            if graph[u, k]:
                kept.append((u, graph[u, k]))
                if u > 4:
                    kept.append((u, graph[k, u]))
    return np.array(kept).sum()


def exchanged(graph: Any) -> Any:
    here, there = [0], [1]
    for v in range(graph.shape[0]):
        if graph[v, 0]:
            here.append(v)
        here, there = there, here
    return np.array(here), np.array(there)


def longest(graph: Any) -> Any:
    best: list[Any] = []
    for u in range(graph.shape[0]):
        here = []
        for v in range(graph.shape[0]):
            if graph[u, v]:
                here.append(v)
        if len(here) > len(best):
            best = here
    return np.array(best)


def on_a_way_that_is_known(graph: Any) -> Any:
    one = [1.0]
    one.append(graph[0, 0] * 2.0)
    other = []
    if len(one) > 1:
        other = one
    other.append(graph[0, 1] * 3.0)
    return np.array(other)


def within_try(graph: Any) -> Any:
    one = [1.0]
    try:
        other = one
        other.append(graph[0, 0] * 2.0)
        one.append(graph[0, 1] * 3.0)
    except ValueError:
        pass
    return np.array(other)


@pytest.mark.parametrize("function", (
    levels, filtered_twice, exchanged, longest, on_a_way_that_is_known, within_try))
def test_values(function: Callable[[Any], Any]) -> None:
    found, right = weft.compile(function)(GRAPH), function(GRAPH)
    for one, want in zip(*(each if isinstance(each, tuple) else (each,) for each in (
            found, right)), strict=True):
        np.testing.assert_array_equal(one, want)


def test_a_list_with_two_names() -> None:
    """Both names have it as either changes it."""
    def function(x: Any) -> Any:
        one = [0.0]
        for v in x:
            if v > 0:
                other = one
                other.append(v)
        one.append(9.0)
        return np.array(one)

    with pytest.raises(weft.Error, match="W102: 'one' is a list of 2"):
        weft.compile(function)(np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize(("code", "moved"), (
    ("a = []\nb = a", [("b", "a")]),
    ("a = []\nb = a\nprint(a)", []),
    ("a = []\nb = a\na = 1\nprint(a)", [("b", "a")]),
    ("a = []\nfor i in x:\n    b = a\n    a = []", [("b", "a")]),
    ("a = []\nfor i in x:\n    b = a", []),                       # the next round reads it
    ("while x:\n    n = []\n    f = n", [("f", "n")]),
    ("while x:\n    if y: n = []\n    f = n", []),                # perhaps
    ("a, b = b, a", [("a", "b"), ("b", "a")]),
    ("a, b = b, [b]", []),
    ("a = []\nif x:\n    b = a\nelse:\n    c = a", [("b", "a"), ("c", "a")]),
    ("while x:\n    n = []\n    f = n\n    if y: continue\n    z = n", [("z", "n")]),
    ("while x:\n    n = []\n    f = n\n    break\nprint(n)", []),
    ("while x:\n    f = n\n    n = 1\n    try: g()\n    finally: h(n)", [("f", "n")]),
    ("a = []\ntry:\n    b = a\n    print(a)\nfinally: pass", []),
    ("a = []\ntry:\n    b = a\nfinally: pass", []),
    ("a = []\nif a:\n    b = a\n    print(a)", []),
    ("a = []\nwhile a:\n    b = a\n    print(a)\n    a = c", []),
    ("for a in x:\n    b = a\n    print(a)", []),
    ("for a in x:\n    b = a", [("b", "a")]),
    ("a = []\nmatch x:\n    case 3:\n        b = a\n        print(a)", []),
    ("a = []\nwith x:\n    b = a\n    print(a)", []),
    ("a = []\nwith x:\n    b = a\n    g()\n    a = []\nprint(a)", []),  # x may end what g raises
    ("a = []\nb = a\ndef g(): return a", []),
    ("a = []\nb = a\na += [1]", [])))
def test_what_is_a_move(code: str, moved: list[tuple[str, str]]) -> None:
    function = ast.parse("def f(x, y):\n    " + code.replace("\n", "\n    ")).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert [(move.target, move.source.id) for move in moves_of(function)] == moved


def path(before: Any) -> Any:
    found: list[Any] = []
    u = before.shape[0] - 1
    while u != -1:
        found.insert(0, u)
        u = before[u]
    return np.array(found)


def sorted_by_insertion(before: Any) -> Any:
    found: list[Any] = []
    for v in before * 7 % 5:
        k = 0
        while k < len(found) and found[k] < v:
            k += 1
        found.insert(k, v)
    return np.array(found)


def beyond_the_ends(before: Any) -> Any:
    found: list[Any] = []
    for i in range(before.shape[0]):
        if before[i] > 0:
            found.insert(-1, before[i])
        else:
            found.insert(100, before[i])
        if before[i] == 1:
            found.insert(-50, -1)
    return np.array(found)


@pytest.mark.parametrize("function", (path, sorted_by_insertion, beyond_the_ends))
def test_insert(function: Callable[[Any], Any]) -> None:
    x = np.array([-1, 0, 0, 1, 3, 2, 4])
    np.testing.assert_array_equal(weft.compile(function)(x), function(x))


STEPS = {0: (-1, 0), 1: (1, 0), 2: (0, -1), 5: (0, 1)}


def walked(keys: Any) -> Any:
    x = y = 0
    for key in keys:
        dx, dy = STEPS[key]
        x += dx
        y += dy
    return x, y


def test_dicts_with_numbers_as_keys() -> None:
    keys = np.array([0, 1, 1, 5, 5, 2, 5])
    assert weft.compile(walked)(keys) == walked(keys)
    with pytest.raises(KeyError):
        weft.compile(walked)(np.array([0, 1, 3]))


def escapes(x: Any, n: Any) -> Any:
    i = 0
    while i < n:
        if x[i] > 0.9:
            break
        if x[i] < 0.1:
            i += 2
            continue
        i += 1
    return i


def with_a_helper(x: Any) -> Any:
    total = 0
    for k in range(len(x)):
        total += escapes(x, k)
    return total


def with_elements_as_exponents(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += 2.0 ** x[i] + (1 << int(x[i] * 8)) + x[i] ** x[i - 1] + 0.5 ** i
    return total


@pytest.mark.parametrize("function", (with_a_helper, with_elements_as_exponents))
def test_loops_of_the_program(function: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(1).random(400)
    compiled = weft.compile(function)
    np.testing.assert_allclose(compiled(x), function(x), rtol=1e-13)
    steps = all_steps(compiled.lower(x).stages.plan.steps)
    assert sum(isinstance(step, Loop) for step in steps) in (1, 2)


def near(x: Any) -> Any:
    i = 7
    found = [(i, j) for i in range(len(x)) for j in range(i + 1, len(x)) if abs(x[i] - x[j]) < 0.1]
    return len(found), i, np.array(found)


def filtered_pairs(x: Any) -> Any:
    found = [(v, 1.0) for v in x if v > 0.2 if v < 0.9]
    found = [(b, a) for a, b in found if a > 0.5]
    total = 0.0
    for _, b in found:
        total += b
    return total


def given_at_once(x: Any) -> Any:
    return np.array([(v, k) for k, v in enumerate(x) if v < 0.5])


def known(x: Any) -> Any:
    found = [(k, k * 2) for k in range(5) if k % 2]
    return x * len(found)


@pytest.mark.parametrize("function", (near, filtered_pairs, given_at_once, known))
def test_comprehensions_of_tuples(function: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(2).random(14)
    found, right = weft.compile(function)(x), function(x)
    for one, want in zip(*(each if isinstance(each, tuple) else (each,) for each in (
            found, right)), strict=True):
        np.testing.assert_allclose(one, want, rtol=1e-14)


def test_masks_of_known_numbers_beside_slices() -> None:
    def function(x: Any, rounds: Any) -> Any:
        i, j = np.meshgrid(range(6), range(6))
        inside = (i - 2) ** 2 + j ** 2 < 9
        for _ in range(rounds):
            kept = x[inside, :]
            x = x + 0.5
            x[inside, :] = kept[:, [1, 0, 2]]
            x[..., inside.any(0), 2] = 0.0
        return x

    x = np.random.default_rng(3).random((6, 6, 3))
    np.testing.assert_array_equal(weft.compile(function)(x, 5), function(x, 5))
    with pytest.raises(weft.Error, match="W122: a boolean mask of shape"):
        weft.compile(lambda x: x[np.ones((5, 6), bool), :])(x)


def doubled_on_a_way(x: Any) -> Any:
    here = [0.0]
    for v in x:
        if v > 0.5:
            following = []
            for u in here:
                if u < x[0]:
                    following.append(u + 1)
                    following.append(u + 2)
            here = following
    return len(here), np.array(here)


def doubled_in_rounds(x: Any) -> Any:
    here, most = [0.0], 0
    for v in x:
        following = [v]
        for u in here:
            if u > 0.6:
                following.append(u * 0.9)
                following.append(u * 0.8)
        here = following
        most = max(most, len(here))
    return most, np.array(here)


@pytest.mark.parametrize(("function", "size"), ((doubled_on_a_way, 4), (doubled_in_rounds, 200)))
def test_lists_that_grow_by_what_they_have(function: Callable[[Any], Any], size: int) -> None:
    """No number of rounds tells how long they become: to ask again would have no end."""
    x = np.random.default_rng(4).random(size)
    x[0] = 3.0
    for found, right in zip(weft.compile(function)(x), function(x), strict=True):
        np.testing.assert_array_equal(found, right)


def test_lists_that_a_closure_has_through_other_names() -> None:
    function = ast.parse("""def f(x):
    a = []
    a.append(x)
    b = a
    c = b
    d = c
    def g(): return d
    return g""").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert own_lists(function).lives == ()


def test_the_list_of_a_comprehension_has_no_name_of_ours() -> None:
    def function(x: Any) -> Any:
        x = [(v, v * 2) for v in x if v > 0]
        return x, 1.0

    with pytest.raises(weft.Error, match=r"W102: .*the list of comprehension 1"):
        weft.compile(function)(np.ones(3))
