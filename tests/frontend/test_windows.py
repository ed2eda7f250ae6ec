"""sliding_window_view in traced code: NumPy's values, gradients, sizes known late, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import weft
from weft.ir.diagnose import OutOfRangeError, ShapeError, UnsupportedError

X = np.random.default_rng(0).standard_normal((5, 7, 6))


@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize(("size", "axis"), [
    (3, 0), (1, 1), (6, 2), ((2, 3), (0, 2)), ((2, 3), (-1, 0)), ((5, 7, 6), None),
    ((2, 2), (1, 1)), ((3,), (1,)),
])
def test_values(size: Any, axis: Any, opt: int) -> None:
    want = sliding_window_view(X, size, axis)
    got = weft.compile(lambda x: sliding_window_view(x, size, axis), opt=opt)(X)
    np.testing.assert_array_equal(got, want)
    assert got.shape == want.shape


@pytest.mark.parametrize("opt", [0, 2])
def test_windows_are_read_like_any_array(opt: int) -> None:
    def means(x: Any) -> Any:
        windows = sliding_window_view(x, (2, 3), axis=(1, 2))
        return windows[:, ::2, ::-1].sum((-1, -2)) * windows[:, ::2, :, 0, 1]

    np.testing.assert_allclose(weft.compile(means, opt=opt)(X), means(X), rtol=1e-12)


@pytest.mark.parametrize("opt", [0, 2])
def test_gradient(opt: int) -> None:
    weights = np.random.default_rng(1).standard_normal((4, 7, 4, 2, 3))

    def loss(x: Any) -> Any:
        return np.sum(np.sin(sliding_window_view(x, (2, 3), axis=(0, 2))) * weights)

    got: Any = weft.compile(weft.grad(loss), opt=opt)(X)
    step = 1e-6
    for place in np.ndindex(2, 3, 6):
        moved = np.zeros_like(X)
        moved[place] = step
        slope = (loss(X + moved) - loss(X - moved)) / (2 * step)
        np.testing.assert_allclose(got[place], slope, rtol=1e-6, atol=1e-8)


def test_the_size_may_be_known_at_the_call_only() -> None:
    run = weft.compile(dynamic={"x": {0: "n"}})(lambda x: sliding_window_view(x, 3).sum(-1))
    for size in (3, 4, 50):
        x = np.arange(float(size))
        np.testing.assert_array_equal(run(x), sliding_window_view(x, 3).sum(-1))
    with pytest.raises(ShapeError, match="a window of 3 in an axis of n"):
        run(np.zeros(2))
    np.testing.assert_array_equal(run(np.ones(3)), [3.0])


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: sliding_window_view(x, 8, 1), ShapeError, "a window of 8 in an axis of 7"),
    (lambda x: sliding_window_view(x, -1, 1), ShapeError, "a window of -1 in an axis of 7"),
    (lambda x: sliding_window_view(x, (2, 2), 1), ShapeError, "2 window sizes for 1 axes"),
    (lambda x: sliding_window_view(x, 2), ShapeError, "1 window sizes for 3 axes"),
    (lambda x: sliding_window_view(x, 2, 3), OutOfRangeError, "axis 3"),
    (lambda x: sliding_window_view(x, 2, 1, writeable=True), UnsupportedError,
     "writeable=True"),
])
def test_refusals(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        weft.compile(call)(X)
