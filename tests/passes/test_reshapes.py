"""What follows a product or a sum stays in its kernel, whatever shapes are between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.ir.diagnose import Error
from weft.ir.indices.index import symbol
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph
from weft.ir.verify.verifier import verify_graph
from weft.passes.simplify.reshapes import groups_of

N, M = symbol("n"), symbol("m")
RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((200, 64)), RNG.standard_normal((64, 96))
BIAS, PLACES, OTHER = (RNG.standard_normal(shape) for shape in ((96,), (20, 96), (10, 20, 96)))

ONE_KERNEL: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "alone": (lambda x, w: (x @ w).reshape(10, 20, 96), (X, W)),
    "flat": (lambda x, w: np.tanh(x @ w).ravel(), (X, W)),
    "relu": (lambda x, w: np.maximum((x @ w).reshape(10, 20, 96), 0), (X, W)),
    "bias": (lambda x, w, b: (x @ w).reshape(10, 20, 96) + b, (X, W, BIAS)),
    "repeated rows": (lambda x, w, b: np.tanh((x @ w).reshape(10, 20, 96) + b), (X, W, PLACES)),
    "another array": (lambda x, w, b: b - (x @ w).reshape(10, 20, 96), (X, W, OTHER)),
    "there and back": (lambda x, w, b: np.exp(x.reshape(10, 20, 64) @ w + b).reshape(200, 96),
                       (X, W, BIAS)),
    "heads": (lambda x, w, b: ((x @ w) * b).reshape(10, 20, 4, 24), (X, W, BIAS)),
    "sum": (lambda x: x.sum(1).reshape(10, 20) * 2, (X,)),
    "kept dims": (lambda x: np.abs(x.max(0, keepdims=True)), (X,)),
    "both": (lambda x, w: (x @ w, (x @ w).reshape(10, -1)), (X, W)),
    "merged heads": (lambda x: (np.exp(x) / np.exp(x).sum(-1, keepdims=True)).transpose(
        0, 2, 1, 3).reshape(5, 8, 60), (RNG.standard_normal((5, 6, 8, 10)),)),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel(name: str) -> None:
    function, arguments = ONE_KERNEL[name]
    compiled = weft.compile(function)
    assert compiled.lower(*arguments).stages.plan.launches == 1
    got: Any = compiled(*arguments)
    for kept in ({"opt": 0}, {"opt": 1}, {"threads": 1}, {"target": "x86-64-v3"},
                 {"verify": True}):
        again: Any = weft.compile(function, **kept)(*arguments)  # type: ignore[arg-type]
        for one, other in zip(_several(got), _several(again), strict=True):
            np.testing.assert_array_equal(one, other)
    for one, want in zip(_several(got), _several(function(*arguments)), strict=True):
        assert one.shape == want.shape
        np.testing.assert_allclose(one, want, rtol=1e-10, atol=1e-12)


def _several(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def test_a_turned_result_is_stored_by_a_kernel_of_its_own() -> None:
    """Its memory is walked in another order than the product's, which would be one jump each."""
    lowered = weft.compile(
        lambda x, w: (x @ w).reshape(10, 20, 4, 24).transpose(0, 2, 3, 1)).lower(X, W)
    assert lowered.stages.plan.launches == 2


def test_columns_that_repeat_differently_are_left_where_they_are() -> None:
    def function(x: Any, w: Any, b: Any) -> Any:
        return (x @ w).reshape(200, 4, 24) + b

    column = RNG.standard_normal((4, 1))
    got = weft.compile(function)(X, W, column)
    np.testing.assert_allclose(got, function(X, W, column), rtol=1e-10)


def test_sizes_known_at_the_call_only() -> None:
    def function(x: Any, w: Any, b: Any) -> Any:
        return np.maximum((x.reshape(-1, 64) @ w).reshape(x.shape[0], 20, 96) + b, 0)

    compiled = weft.compile(function, dynamic={"x": {0: "n"}})
    for rows in (0, 1, 3, 10):
        x = RNG.standard_normal((rows, 20, 64))
        np.testing.assert_allclose(compiled(x, W, BIAS), function(x, W, BIAS), rtol=1e-10,
                                   atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_kept_dims_of_unknown_sizes(axis: int) -> None:
    def function(x: Any) -> Any:
        return np.ptp(x, axis=axis, keepdims=True) * 2

    compiled = weft.compile(function, dynamic={"x": {0: "n", 1: "m"}})
    for shape in ((3, 5), (1, 4), (6, 1)):
        x = RNG.standard_normal(shape)
        np.testing.assert_array_equal(compiled(x), function(x))


def test_a_part_is_no_repetition() -> None:
    """The first of three elements, beside a sum of one: its operand is longer than it is."""
    def function(x: Any) -> Any:
        return np.sum(np.tanh(np.concatenate([x, x, x]) * x))

    value, gradient = weft.compile(weft.value_and_grad(function))(np.array([0.75]))
    assert value == pytest.approx(3 * np.tanh(0.75**2))
    np.testing.assert_allclose(gradient, [3 * 2 * 0.75 * (1 - np.tanh(0.75**2) ** 2)], rtol=1e-12)


def test_what_is_written_to_at_indices_is_memory_of_its_own() -> None:
    def function(x: Any, index: Any) -> Any:
        top = np.max(x, axis=-1, keepdims=True)
        return top.at[index].add(top[index])

    x, index = RNG.standard_normal((6, 4)), np.array([1, 4, 1])
    want = np.max(x, axis=-1, keepdims=True)
    np.add.at(want, index, want[index].copy())
    for opt in (0, 2):
        np.testing.assert_array_equal(weft.compile(function, opt=opt)(x, index), want)


@pytest.mark.parametrize(("one", "other", "groups"), [
    ((10, 20, 96), (200, 96), [(2, 1), (1, 1)]),
    ((200, 96), (10, 20, 4, 24), [(1, 2), (1, 2)]),
    ((6, 4), (8, 3), [(2, 2)]),
    ((5,), (5,), [(1, 1)]),
    ((5, 1), (5,), [(1, 1), (1, 0)]),
    ((), (1,), [(0, 1)]),
    ((1, M), (M,), [(1, 0), (1, 1)]),
    ((N, M), (N * M,), [(2, 1)]),
    ((N * M, 3), (N, M, 3), [(1, 2), (1, 1)]),
    ((4, 6), (3, 8), [(2, 2)]),
])
def test_groups(one: Any, other: Any, groups: Any) -> None:
    assert [(len(a), len(b)) for a, b in groups_of(one, other)] == groups


SPLITS = {24: [(24,), (4, 6), (2, 3, 4), (1, 24), (24, 1)], 30: [(30,), (5, 6), (3, 1, 10)],
          32: [(32,), (2, 16), (4, 4, 2)]}


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_shapes(data: st.DataObject) -> None:
    """A product, then steps that reshape it or put something broadcast beside it."""
    m, k, n = (data.draw(st.sampled_from(sorted(SPLITS))) for _ in range(3))
    steps: list[tuple[str, Any]] = []
    shape: tuple[int, ...] = (m, n)
    for _ in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans()):
            shape = (*data.draw(st.sampled_from(SPLITS[m])), *data.draw(st.sampled_from(SPLITS[n])))
            steps.append(("reshape", shape))
        else:
            kept = tuple(size if data.draw(st.booleans()) else 1 for size in shape)
            steps.append(("add", RNG.integers(0, 9, kept).astype(np.float64)))

    def function(x: Any, w: Any, *arrays: Any) -> Any:
        y, rest = x @ w, iter(arrays)
        for step, what in steps:
            y = y.reshape(what) if step == "reshape" else np.tanh(y) + next(rest)
        return y

    x, w = RNG.standard_normal((m, k)), RNG.standard_normal((k, n))
    arrays = [what for step, what in steps if step == "add"]
    got, unfused = (weft.compile(function, opt=opt)(x, w, *arrays) for opt in (2, 0))
    np.testing.assert_array_equal(got, unfused)
    np.testing.assert_allclose(got, function(x, w, *arrays), rtol=1e-9, atol=1e-12)


def test_where_a_moved_result_is_stored_is_in_the_text() -> None:
    text = print_graph(weft.compile(ONE_KERNEL["alone"][0]).lower(X, W).stages.fused)
    assert 'space = "ijk,-"' in text
    assert print_graph(parse_graph(text)) == text


def test_a_result_that_is_nowhere_is_refused() -> None:
    text = """graph @f(%x: f32[6]) -> (%0: f32[3]) {
  %0: f32[3] = fused %x {space = "i,-", body = graph @body(%p0: f32[6]) -> (%1: f32[3]) {
    %0: f32[6] = exp %p0
    %1: f32[3] = slice %0 {start = (0,), step = (2,), shape = (3,)}
    return %1
  }}
  return %0
}
"""
    with pytest.raises(Error, match="nothing says where"):
        verify_graph(parse_graph(text))
