"""Sums over several axes of one array: each pair of them, in loops of more than a few rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.indices.index import symbol
from weft.passes.fusion.nesting import loops_nest

Axes = tuple[int, ...]
AXES = [axes for count in (1, 2, 3) for axes in combinations(range(3), count)]

X = np.random.default_rng(0).normal(size=(9, 10, 11))


def beside(x: Any, one: Axes, other: Axes) -> Any:
    return (x * x).sum(one), (x * x).sum(other)


def chained(x: Any, one: Axes, other: Axes) -> Any:
    return (x.sum(one, keepdims=True) * x).sum(other)


def centred(x: Any, one: Axes, other: Axes) -> Any:
    return np.sum((x - x.max(one, keepdims=True)) ** 2, other)


def there_and_back(x: Any, one: Axes, other: Axes) -> Any:
    mean = np.exp(x).mean(one, keepdims=True)
    return np.sum((x - np.max(mean, other, keepdims=True)) ** 2, one)


@pytest.mark.parametrize("function", [beside, chained, centred, there_and_back])
@pytest.mark.parametrize("one", AXES)
def test_sums_over_two_sets_of_axes(function: Callable[..., Any], one: Axes) -> None:
    for other in AXES:
        found = weft.compile(function)(X, one, other)
        for ours, numpys in zip(_parts(found), _parts(function(X, one, other)), strict=True):
            np.testing.assert_allclose(ours, numpys, rtol=1e-12)


def _parts(found: Any) -> Iterator[Any]:
    yield from found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("sizes", list(product((3, 9), repeat=4)))
def test_sums_between_short_axes(sizes: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        scaled = x * x.mean(1, keepdims=True)
        best = x + np.argmax(scaled, 0, keepdims=True)
        return best.mean((0, 2)), best.sum(2), best.max((1, 3))

    x = np.random.default_rng(1).normal(size=sizes)
    for ours, numpys in zip(weft.compile(function)(x), function(x), strict=True):
        np.testing.assert_allclose(ours, numpys, rtol=1e-12)


def test_loops_nest_unless_two_go_around_each_other() -> None:
    extents = {"i": 9, "j": 9, "k": symbol("n"), "s": 8}
    every = frozenset("ijk")
    over_j, over_k = ((("j",),), every), ((("k",),), every)
    assert loops_nest(extents, [over_j])
    assert not loops_nest(extents, [over_j, over_k])
    assert loops_nest(extents, [over_k, ((("j",),), frozenset("ij"))])  # of what k is summed out of
    assert not loops_nest(extents, [((("i",), ("k",)), every), ((("i",),), every)])
    assert loops_nest(extents, [((("i",), ("k",)), every), ((("k",),), every)])
    assert loops_nest(extents, [((("j",),), frozenset("js")), ((("s",),), frozenset("js"))])


def test_distances_to_all_others_have_a_gradient() -> None:
    def energy(x: Any) -> Any:
        return np.sum(np.sum((x[:, None] - x) ** 2, -1) ** 2)

    x = np.random.default_rng(2).normal(size=(9, 9))
    away = x[:, None] - x
    expected = 8 * np.sum(np.sum(away ** 2, -1)[..., None] * away, 1)
    np.testing.assert_allclose(weft.compile(weft.grad(energy))(x), expected, rtol=1e-12)
