"""Boolean masks: inside of reductions, in assignments, and refused as values of their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_numpy_rows import agree, differences

import weft
from weft.frontend.engine.eager import run_eagerly
from weft.ir.diagnose import Error

X = np.random.default_rng(4).uniform(-3, 3, (5, 4))
ROWS = np.array([True, False, True, True, False])

REDUCED: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x[x > 0].sum(), "mean": lambda x: np.mean(x[x > 0]),
    "max": lambda x: x[x < 1].max(), "min": lambda x: np.min(x[x > -1]),
    "std": lambda x: x[x > 0].std(ddof=1), "var": lambda x: np.var(x[x > 0]),
    "any": lambda x: (x > 1)[x > 0].any(), "all": lambda x: np.all((x > 1)[x > 0]),
    "prod": lambda x: x[x > 0].prod(), "count": lambda x: np.count_nonzero(x[x > 0]),
    "size": lambda x: x[x > 0].size, "shape": lambda x: x[x > 0].shape[0] * 2,
    "rows": lambda x: x[x[:, 0] > 0].mean(axis=0), "of all": lambda x: x[x[:, 0] > 0].sum(),
    "columns": lambda x: x[x[:, 0] > -3].max(axis=(0, 1)), "kept": lambda x: x[x[:, 0] > 0].sum(
        axis=0, keepdims=True), "each": lambda x: (np.abs(x[x < 0]) * 2 + 1).mean(),
    "two": lambda x: (x[x > 0] * (x + 1)[x > 0]).sum(), "known": lambda x: x[ROWS[:len(x)]].sum(0),
    "ints": lambda x: (x * 4).astype(int)[x > 0].max(), "dtype": lambda x: x[x > 0].sum(
        dtype=np.float32),
}


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("dynamic", [None, {"x": {0: "b"}}], ids=("static", "dynamic"))
def test_reductions(name: str, dynamic: Any) -> None:
    if dynamic and name == "known":
        pytest.skip("its length is part of the program")
    function = weft.compile(REDUCED[name], verify=True, dynamic=dynamic)
    agree(function(X), REDUCED[name](X), 1e-12 if name != "dtype" else 1e-6)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "std", "prod", "rows", "each", "two"])
def test_gradients(name: str) -> None:
    def loss(x: Any) -> Any:
        return np.sum(REDUCED[name](x))

    found = weft.compile(weft.grad(loss))(X)
    np.testing.assert_allclose(found, differences(loss, [X.copy()], 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_nothing(name: str) -> None:
    def function(x: Any) -> Any:
        return getattr(x[x > 9], name)()

    with pytest.raises(ValueError):
        function(X)
    with pytest.raises(Error, match="W124"):
        weft.compile(function)(X)
    assert weft.compile(lambda x: x[x > 9].max(initial=4))(X) == 4
    assert np.isnan(weft.compile(lambda x: x[x > 9].mean())(X))
    assert weft.compile(lambda x: x[x > 9].sum())(X) == 0


def into(write: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        y = x * 1
        write(y, x)
        return y

    return function


def set_scalar(y: Any, x: Any) -> None:
    y[x > 0] = 7


def add_scalar(y: Any, x: Any) -> None:
    y[y > 0] += 1.5


def set_from(y: Any, x: Any) -> None:
    mask = x > 0
    y[mask] = (x * 3)[mask]


def set_from_an_equal_mask(y: Any, x: Any) -> None:
    y[x > 0] = (x * 3)[x > 0]


def set_itself(y: Any, x: Any) -> None:
    mask = y < 0
    y[mask] = -y[mask]


def multiply(y: Any, x: Any) -> None:
    mask = x > 0
    y[mask] *= x[mask]


def of_rows(y: Any, x: Any) -> None:
    y[x[:, 0] > 0] -= 2
    y[x[:, 1] > 0] = np.arange(4.0)


@pytest.mark.parametrize("write", [set_scalar, add_scalar, set_from, set_from_an_equal_mask,
                                   set_itself, multiply, of_rows], ids=lambda f: f.__name__)
def test_assignments(write: Callable[..., Any]) -> None:
    agree(weft.compile(into(write), verify=True)(X), into(write)(X), 0)


OF_A_SIZE_THAT_VALUES_SAY: list[Callable[..., Any]] = [
    lambda x: x[x > 0] + x, lambda x: x[x > 0].reshape(-1), lambda x: x[x > 0].argsort(),
    lambda x: np.concatenate([x[x > 0], x], axis=1), lambda x: np.sort(x[x[:, 0] > 0], 0),
    lambda x: x[x[:, 0] > 0] + x[x[:, 0] > 1],
    lambda x: into(lambda y, x: y.__setitem__(0, x[x > 1]))(x), lambda x: np.array(x[x > 0])]


@pytest.mark.parametrize("function", OF_A_SIZE_THAT_VALUES_SAY)
def test_values_of_unknown_size(function: Callable[..., Any]) -> None:
    try:
        wanted = function(X)
    except (ValueError, IndexError):
        with pytest.raises(Error, match=r"W105|W121"):
            weft.compile(function)(X)
    else:
        np.testing.assert_array_equal(weft.compile(function)(X), wanted)


def test_a_mask_of_another_shape() -> None:
    with pytest.raises(IndexError):
        X[X[:, :2] > 0].sum()
    with pytest.raises(Error, match="W122"):
        weft.compile(lambda x: x[x[:, :2] > 0].sum())(X)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0)])
def test_a_mask_without_elements_fits_any_size(shape: Any) -> None:
    def put(x: Any, mask: Any) -> Any:
        y = x.copy()
        y[mask] = 1
        y[mask] *= x[mask]
        return y

    for function in (lambda x, mask: x[mask].sum(), lambda x, mask: x[mask], put):
        found = weft.compile(function)(X[:3, :4], np.zeros(shape, bool))
        agree(found, function(X[:3, :4], np.zeros(shape, bool)), 0)
    with pytest.raises(Error, match="W122"):
        weft.compile(put)(X[:3, :4], np.zeros((0, 3), bool))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.integers(0, 99), st.integers(1, 3),
       st.sampled_from(["sum", "mean", "prod", "any", "all", "var"]), st.booleans())
def test_any_mask(shape: Any, seed: int, rank: int, name: str, first: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, shape)
    mask = rng.random(shape[:rank]) < rng.random()

    def function(x: Any, mask: Any) -> Any:
        return getattr(np, name)(x[mask], axis=0 if first else None)

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = function(x, mask)
    agree(run_eagerly(function, (x, mask)), wanted, 1e-12)


@pytest.mark.parametrize("function", [
    lambda x, b: x[b], lambda x, b: x[b].sum(), lambda x, b: x[b].shape[0],
    lambda x, b: np.sort(x[b], axis=-1), lambda x, b: x[b, ...] if x.ndim > 5 else x[b] + 1])
def test_a_mask_without_dims_takes_all_or_nothing(function: Any) -> None:
    compiled = weft.compile(function)
    for x in (np.arange(3.0), np.arange(6.0).reshape(2, 3), np.array(3.0), np.zeros((0, 2))):
        for mask in (np.bool_(True), np.bool_(False), True, False, np.array(True)):
            want, got = function(x, mask), compiled(x, mask)
            assert np.shape(got) == np.shape(want)
            np.testing.assert_array_equal(got, want)


def test_a_known_mask_without_dims() -> None:
    for mask in (np.array(True), np.array(False), True, False):
        np.testing.assert_array_equal(weft.compile(lambda x, mask=mask: x[mask])(np.arange(3.0)),
                                      np.arange(3.0)[mask])


def test_two_masks() -> None:
    compiled = weft.compile(lambda x, m, k: x[m, k])
    x, three = np.arange(12.0).reshape(3, 4), np.array([True, False, True])
    assert compiled(x, three, np.array([False, True, True, False])).tolist() == [1.0, 10.0]
    assert compiled(x, ~three, np.array([False, True, False, False])).tolist() == [5.0]
    assert compiled(x[:, :3], three, np.roll(three, 1)).tolist() == [0.0, 9.0]
    assert compiled(x, three & False, np.zeros(4, bool)).size == 0
    with pytest.raises(ValueError, match=r"W105: dims .* must be equal"):
        compiled(x, three, np.ones(4, bool))
    with pytest.raises(IndexError, match="W122: index arrays: dims 2 and 3 differ"):
        weft.compile(lambda x: x[np.arange(2), np.arange(3)])(x)


def of_chosen_truths(x: Any) -> Any:
    """Truth values that are chosen themselves, as index of arrays of that size."""
    s = np.flatnonzero(x > 0)
    code, keep, even = np.ones(len(s)), np.ones(len(s), bool), s % 2 == 0
    code[even] = code[even] * 31 + s[even]
    code[~even] += 1
    keep[s % 3 == 0] = False
    table = np.outer(s, s)
    return code, code[even], s[keep], table[even].sum(0), table[keep, 0], table[:, even].sum(1)


def suppressed(x: Any) -> Any:
    places = np.flatnonzero(x > 0)
    keep = np.ones(len(places), dtype=bool)
    for i in range(len(places)):
        if keep[i]:
            near = np.abs(places - places[i]) < 3
            near[i] = False
            keep[near] = False
    return places[keep]


@pytest.mark.parametrize("function", [of_chosen_truths, suppressed])
def test_chosen_truths_are_masks(function: Any) -> None:
    compiled = weft.compile(function)
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=40)
        for got, want in zip(weft.tree.leaves(compiled(x)), weft.tree.leaves(function(x)),
                             strict=True):
            np.testing.assert_array_equal(got, want)


def test_open_meshes_of_masks() -> None:
    def function(x: Any, m: Any) -> Any:
        y = x.copy()
        y[np.ix_(m, ~m)] += 1
        return x[np.ix_(m, m)], x[np.ix_(~m, [0, 2])], y

    compiled, x = weft.compile(function), np.arange(25.0).reshape(5, 5)
    for m in (x[0] > 1, x[0] > 9, x[0] < 1, x[0] % 2 == 0):
        for got, want in zip(compiled(x, m), function(x, m), strict=True):
            np.testing.assert_array_equal(got, want)
