"""Arrays of which values say how many rows they have, where ways of a branch or rounds of a loop
leave them in one name: both are the first rows of an array with room for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

V = np.array([1.0, -2.0, 3.0, 4.0])
W = np.tile([0.5, -1.0, 2.0], 40)


def sorted_on_one_way(v: Any, w: Any) -> Any:
    y = v[v > 0]
    if y.sum() > 3:
        y = np.sort(v[v > 1])
    return y


def shorter_on_one_way(v: Any, w: Any) -> Any:
    y = np.cumsum(v[v > 0])
    if y.sum() > 3:
        y = y[1:]
    return y


def an_array_or_some_of_it(v: Any, w: Any) -> Any:
    y = v
    if y.sum() > 3:
        y = np.sort(v[v > 1])
    return y


def longer_on_one_way(v: Any, w: Any) -> Any:
    a = np.unique(v)
    if a.size > 2:
        a = np.append(a, 5.0)
    return a


def a_slice(v: Any, w: Any) -> Any:
    k = int(w.sum()) % 3 + 1
    a = np.diff(v[:k])
    if a.size > 1:
        a = a[1:]
    return a


def what_is_left(v: Any, w: Any) -> Any:
    """There are the fewer, the more were taken."""
    left = v[len(np.sort(v[v > 0])):]
    if v.sum() > 3:
        left = np.sort(left[left < 4])
    return left


def rows(v: Any, w: Any) -> Any:
    a = np.outer(v, v)[v > 0]
    if a.sum() > 0:
        a = np.sort(a, axis=0)
    return a, a.mean(0)


def in_a_tuple(v: Any, w: Any) -> Any:
    pair = v[v > 0], 1.0
    if v.sum() > 3:
        pair = np.sort(v[v > 1]), 2.0
    return pair[0] * pair[1]


def in_a_dict(v: Any, w: Any) -> Any:
    found = {"a": v[v > 0]}
    if v.sum() > 3:
        found["a"] = np.sort(v[v > 1])
    return found["a"]


def returned(v: Any, w: Any) -> Any:
    if v.sum() > 3:
        return np.sort(v[v > 1])
    return v[v > 0]


def in_an_expression(v: Any, w: Any) -> Any:
    return np.sort(v[v > 0]) if v.sum() > 100 else np.unique(v)


def best_of_rounds(v: Any, w: Any) -> Any:
    best = v[v > 0]
    for x in w:
        y = np.sort(v[v > x])
        if y.sum() > best.sum():
            best = y
    return best


def fewer_in_each_round(v: Any, w: Any) -> Any:
    a = np.sort(v[v > -5])
    while a.size > 2:
        a = np.sort(a[a > a.min()])
    return a


def branches_in_rounds(v: Any, w: Any) -> Any:
    a = v[v > 0]
    for x in w:
        if x > 0:
            a = np.sort(a)[::-1]
        elif x < -2:
            a = a * 1.0
    return a


def a_sieve(v: Any, w: Any) -> Any:
    left, found = np.arange(2, 50), []
    while left.size > 0:
        first = left[0]
        left = left[left % first != 0]
        found.append(first)
    return np.array(found)


def two_names(v: Any, w: Any) -> Any:
    a, b = v, w
    for i in range(30):
        a = a[a > a.mean() - i]
        b = np.sort(b[b > b.min() - 1])
    return a, b


PROGRAMS: tuple[Callable[[Any, Any], Any], ...] = (
    sorted_on_one_way, shorter_on_one_way, an_array_or_some_of_it, longer_on_one_way, a_slice,
    what_is_left, rows, in_a_tuple, in_a_dict, returned, in_an_expression, best_of_rounds,
    fewer_in_each_round, branches_in_rounds, a_sieve, two_names)


@pytest.mark.parametrize("program", PROGRAMS)
def test_like_numpy(program: Callable[[Any, Any], Any]) -> None:
    compiled = weft.compile(program)
    for v, w in ((V, W), (-V, W), (V, -W), (V * 0.1, W)):
        found, wanted = (x if isinstance(x, tuple) else (x,) for x in (
            compiled(v, w), program(v, w)))
        for got, want in zip(found, wanted, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want)


@pytest.mark.long
@pytest.mark.parametrize("program", [sorted_on_one_way, best_of_rounds, branches_in_rounds])
def test_gradients(program: Callable[[Any, Any], Any]) -> None:
    def total(v: Any) -> Any:
        return (program(v, W) ** 2).sum()

    v = V + 0.1
    slopes = [(total(v + step) - total(v - step)) / 2e-6 for step in np.eye(4) * 1e-6]
    np.testing.assert_allclose(weft.compile(weft.grad(total))(v), slopes, rtol=1e-6, atol=1e-6)


def test_rows_without_a_bound_have_no_common_array() -> None:
    def f(v: Any, n: Any) -> Any:
        a = v
        if v.sum() > 3:
            a = np.ones(np.int64(n.sum()))
        return a

    with pytest.raises(weft.Error, match="W102"):
        weft.compile(f)(V, np.array([1.0, 2.0]))


def written_after_a_branch(x: Any, k: Any) -> Any:
    y = x[:k[0]]
    if x.sum() > 3:
        y = x[k[0]:k[1] + 1]
    y[0] = 99.0
    return y.sum(), x * 1


def written_of_a_copy(x: Any, k: Any) -> Any:
    y = x[x > -2]
    if x.sum() > 3:
        y = y[1:]
    y[0] = 99.0
    return y * 1, x * 1


def written_by_another_name(x: Any, k: Any) -> Any:
    y = np.sort(x[x > -20])
    z = y
    if x.sum() > 3:
        y = y[1:]
    y[0] = 99.0
    return y * 1, z * 1


def written_around(x: Any, k: Any) -> Any:
    y = x[:k[0]]
    if x.sum() > 3:
        y = y[1:]
    x[1] = 77.0
    return y * 1


def written_in_rounds(x: Any, k: Any) -> Any:
    y = x[:k[0]]
    for i in range(40):
        y = x[i % 3:k[1]]
        y[0] += 1
    return y * 1, x * 1


def written_after_rounds(x: Any, k: Any) -> Any:
    y = x[:k[0]]
    for i in range(40):
        y = x[i % 3:k[1]]
    y[0] = 99.0
    return y * 1, x * 1


@pytest.mark.parametrize(("program", "refused"), [
    (written_after_a_branch, True), (written_of_a_copy, False), (written_by_another_name, True),
    (written_around, False), (written_in_rounds, False), (written_after_rounds, False)])
def test_they_are_views_of_what_they_were_views_of(
    program: Callable[[Any, Any], Any], refused: bool
) -> None:
    for sign in (1.0, -0.1):
        x, k = np.arange(10.0) * sign, np.array([3, 7])
        wanted = program(own := x.copy(), k)
        if refused:
            with pytest.raises(weft.Error, match="W203"):
                weft.compile(program)(x, k)
            continue
        found = weft.compile(program)(x, k)
        for got, want in zip(weft.tree.leaves((found, x)), weft.tree.leaves((wanted, own)),
                             strict=True):
            np.testing.assert_allclose(got, want)
