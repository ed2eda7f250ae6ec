"""Tuples of traced numbers in Python's order: ``sorted``, ``list.sort``, ``min`` and ``max``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft

PROGRAMS: tuple[Callable[[Any], Any], ...] = (
    lambda x: sorted([(v, i) for i, v in enumerate(x)]),
    lambda x: sorted([(v > 0, i % 2, v) for i, v in enumerate(x)], reverse=True),
    lambda x: sorted(range(len(x)), key=lambda i: (x[i] > 0, -i)),
    lambda x: sorted([(v > 0, i) for i, v in enumerate(x)], key=lambda p: p[0], reverse=True),
    lambda x: min([(v > 0, 7, i) for i, v in enumerate(x)]),
    lambda x: max([(v > 0, 7, i) for i, v in enumerate(x)], key=lambda p: p[:2]),
    lambda x: (max((x[0], 1), (x[1], 2)), min((x[0], 1), (x[1], 2))),
    lambda x: _sorted_in_place([(v, i) for i, v in enumerate(x)]),
    lambda x: _sorted_in_place([(v, i) for i, v in enumerate(x)], key=lambda p: -p[0]),
    lambda x: _sorted_in_place([[v, 1.0 * i] for i, v in enumerate(x)], key=lambda p: p[0] ** 2),
    lambda x: [_sorted_in_place([3, 1, 2], key=lambda v: -v), x[0]])


def _sorted_in_place(items: list[Any], **options: Any) -> list[Any]:
    items.sort(**options)
    return items


@pytest.mark.parametrize("program", PROGRAMS)
def test_order_is_that_of_python(program: Callable[[Any], Any]) -> None:
    compiled = weft.compile(program)
    for x in np.random.default_rng(0).integers(-2, 3, (4, 7)) * 0.5:
        found, want = compiled(x), program(x)
        assert weft.tree.structure(found) == weft.tree.structure(want)
        assert weft.tree.leaves(found) == weft.tree.leaves(want)


class Point(NamedTuple):
    height: Any
    place: Any


def test_items_keep_their_kind() -> None:
    def program(x: Any) -> Any:
        points = [Point(v, {"at": i, "both": [i, v]}) for i, v in enumerate(x)]
        lowest = min(points, key=lambda p: p.height)
        return lowest, sorted(points, key=lambda p: -p.height), lowest.place["both"]

    x = np.array([2.0, 0.5, 1.0])
    found, want = weft.compile(program)(x), program(x)
    assert weft.tree.structure(found) == weft.tree.structure(want)
    assert weft.tree.leaves(found) == weft.tree.leaves(want)
    with pytest.raises(weft.Error, match="W102: the items are not alike"):
        weft.compile(lambda x: min([(x[0], 1), (x[1], [2])], key=lambda p: p[0]))(x)


def test_tuples_of_arrays_have_no_order() -> None:
    with pytest.raises(weft.Error, match="W201"):
        weft.compile(lambda x: sorted([(x[0], x), (x[1], x)]))(np.arange(3.0))


def test_nests_at_a_place() -> None:
    def program(x: Any) -> Any:
        rows = [[v, (i, 2 * v)] for i, v in enumerate(x)]
        pairs = [(v, x * v) for v in x]
        return rows[np.argmin(x)], pairs[np.argmax(x)], pairs[-np.argmin(x) - 1]

    compiled = weft.compile(program)
    for x in np.random.default_rng(0).normal(size=(4, 5)):
        found, want = compiled(x), program(x)
        assert weft.tree.structure(found) == weft.tree.structure(want)
        for a, b in zip(weft.tree.leaves(found), weft.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("choose", [
    lambda rows, x: rows[np.argmin(x)], lambda rows, x: min(rows, key=lambda row: row[0])])
@pytest.mark.parametrize("make", [lambda x, i: [x[i], 1.0], lambda x, i: x[i:i + 2].copy()])
def test_what_is_chosen_is_not_silently_another(
    choose: Callable[[Any, Any], Any], make: Callable[[Any, int], Any]
) -> None:
    def written(x: Any) -> Any:
        rows = [make(x, i) for i in range(4)]
        choose(rows, x[:4])[1] = 99.0
        return rows

    def copied(x: Any) -> Any:
        rows = [make(x, i) for i in range(4)]
        row = choose(rows, x[:4]).copy()
        row[1] = 99.0
        return rows, row

    x = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    with pytest.raises(weft.Error, match="W203"):
        weft.compile(written)(x)
    for a, b in zip(weft.tree.leaves(weft.compile(copied)(x)), weft.tree.leaves(copied(x)),
                    strict=True):
        np.testing.assert_array_equal(a, b)
