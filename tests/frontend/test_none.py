"""Names that are None on some ways only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft


def last_above(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if x[i] > 0.3:
            best = i
    return best


def asked(x: Any) -> Any:
    """Whether there is one decides what is computed, and a check is where it is used."""
    best: Any = None
    found: Any = None
    for i in range(len(x)):
        if x[i] > 0.3:
            best, found = i, x * 2
    y = x[best] + found.sum() if best is not None else -1.0
    z = 0.0
    if best is not None:
        z += x[best]
    return best, found, y, z, 1 if found is None else 2, not best


def nearest(points: Any) -> Any:
    least, pair = np.inf, None
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            d = np.abs(points[i] - points[j])
            if d < least:
                least, pair = d, (i, j)
    return least, pair


def unpacked(points: Any) -> Any:
    _, pair = nearest(points)
    if pair is None:
        return -1.0
    i, j = pair
    return points[i] - points[j]


def first_above(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] > 0.3:
            return i
    return None


def of_a_function(x: Any) -> Any:
    i = first_above(x)
    if i is None:
        return -1.0
    return x[i] * 2


def changed_in_place(x: Any) -> Any:
    w, best = np.zeros(3), None
    for v in x:
        w += v
        if v > 0.3:
            best = w.copy()
            best[0] = v
    w += 100
    if best is not None:
        best[1] = 7
    return best, w


def in_a_while(x: Any) -> Any:
    last, k = None, np.argmax(np.abs(x))
    while k > 0:
        if x[k] > 0:
            last = x[k]
        k -= 1
    return last


class Split:
    def __init__(self) -> None:
        self.place: Any = None
        self.value: Any = None


def of_an_object(x: Any) -> Any:
    split = Split()
    for i in range(len(x)):
        if x[i] > 0.3:
            split.place, split.value = i, x[i]
    share = (x > split.value).mean() if split.value is not None else 0.0
    return split.place, split.value, share


class Tracker:
    """Changed in a method: what is in its dict, too."""

    def __init__(self) -> None:
        self.best: Any = None
        self.state: dict[str, Any] = {"last": None, "count": 0}

    def update(self, v: Any) -> None:
        if self.best is None or v > self.best:
            self.best = v
        if v > 0.3:
            self.state["last"] = v
            self.state["count"] += 1


def of_methods(x: Any) -> Any:
    tracker = Tracker()
    for i in range(len(x)):
        tracker.update(x[i])
    return tracker.best, tracker.state


def in_nests(x: Any) -> Any:
    found: dict[str, Any] = {"best": None, "count": 0}
    same, slots = found, [None] * min(3, len(x))
    for v in x:
        if v > 0.3:
            found["best"] = v
            found["count"] += 1
    for i in range(len(slots)):
        if x[i] > 0.3:
            slots[i] = x[i]
    return found, same["best"], slots, sum(1 if each is None else 0 for each in slots)


def stopped_early(x: Any) -> Any:
    w, best, best_loss, waited = np.zeros(2), None, np.inf, 0
    for v in x:
        w = w + v
        loss = np.sum((w - 1) ** 2)
        if loss < best_loss:
            best, best_loss, waited = w.copy(), loss, 0
        else:
            waited += 1
            if waited >= 2:
                break
    return best, best_loss


def same(found: Any, wanted: Any) -> None:
    assert (found is None) == (wanted is None)
    if isinstance(wanted, dict):
        assert list(found) == list(wanted)
        found, wanted = tuple(found.values()), tuple(wanted.values())
    if isinstance(wanted, (tuple, list)):
        for a, b in zip(found, wanted, strict=True):
            same(a, b)
    elif wanted is not None:
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-12, strict=True)


ABOVE = np.array([0.1, 0.7, -0.4, 0.35, 0.9, -2.0])


@pytest.mark.parametrize("x", [ABOVE, -np.abs(ABOVE), ABOVE[:1], np.tile(ABOVE, 12)])
@pytest.mark.parametrize("function", [
    last_above, asked, nearest, unpacked, first_above, of_a_function, changed_in_place, in_a_while,
    of_an_object, of_methods, in_nests, stopped_early])
def test_none_on_some_ways(function: Callable[[Any], Any], x: Any) -> None:
    same(weft.compile(function)(x), function(x))


def test_one_program_gives_both() -> None:
    compiled = weft.compile(last_above)
    for x in (ABOVE, -np.abs(ABOVE), ABOVE):
        same(compiled(x), last_above(x))
    assert compiled.cache_info().specialisations == 1


def test_none_where_a_value_is_needed() -> None:
    def used(x: Any) -> Any:
        return x[last_above(x) + 0]

    compiled = weft.compile(used)
    same(compiled(ABOVE), used(ABOVE))
    with pytest.raises(weft.Error, match="W124: None stands where a value is needed"):
        compiled(-np.abs(ABOVE))


def test_gradients_of_what_may_be_none() -> None:
    def loss(x: Any) -> Any:
        kept = None
        for v in x:
            if v > 0.3:
                kept = v * v
        return 0.0 if kept is None else kept

    for x, slope in ((ABOVE, np.array([0, 0, 0, 0, 1.8, 0])), (-np.abs(ABOVE), np.zeros(6))):
        np.testing.assert_allclose(weft.compile(weft.grad(loss))(x), slope)


def shared(x: Any) -> Any:
    w, best = x * 1, None
    if x[0] > 0:
        best = w
    w += 100
    return best, w


def written(x: Any) -> Any:
    w, row = np.zeros((3, 3)), None
    for i in range(3):
        if x[i] > 0.3:
            row = w[i]
    if row is not None:
        row += 2
    return row, w


@pytest.mark.parametrize("function", [shared, written])
def test_arrays_of_which_it_is_not_known_whether_they_are_views(
    function: Callable[[Any], Any]
) -> None:
    with pytest.raises(weft.Error, match=r"W102|W201"):
        weft.compile(function)(ABOVE)


def test_what_cannot_be_none_on_some_ways() -> None:
    def kinds(x: Any) -> Any:
        best = None
        if x[0] > 0:
            best = {"a": x}
        return best

    with pytest.raises(weft.Error, match="W102: best is"):
        weft.compile(kinds)(ABOVE)
