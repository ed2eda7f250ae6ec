"""Segments: values, gradients, sizes known late, ids that are not there. The best k."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.references import check

import weft
from weft.ir.diagnose import OutOfRangeError

X = np.random.default_rng(1).normal(size=(7, 3))
IDS = np.array([4, 0, 2, 0, 0, 4, 2])
ROWS = {0: [1, 3, 4], 2: [2, 6], 4: [0, 5]}


def wanted(reduce: Any, empty: Any) -> Any:
    return np.stack([reduce(X[ROWS[at]], axis=0) if at in ROWS else np.full(3, empty)
                     for at in range(5)])


@pytest.mark.parametrize(("function", "reduce", "empty"), [
    (weft.segment_sum, np.sum, 0), (weft.segment_mean, np.mean, 0),
    (lambda *a: np.maximum(weft.segment_max(*a), -9), np.max, -9),
    (lambda *a: np.minimum(weft.segment_min(*a), 9), np.min, 9),
])
def test_segments(function: Any, reduce: Any, empty: Any) -> None:
    check(lambda x: function(x, IDS, 5), (X,), wanted(reduce, empty))
    check(lambda x: function(x[:, 0], IDS, 5), (X,), wanted(reduce, empty)[:, 0])


def test_of_any_number_and_dtype() -> None:
    def every(x: Any, ids: Any) -> Any:
        return [f(x, ids, 3) for f in (weft.segment_sum, weft.segment_mean, weft.segment_max,
                                       weft.segment_min)]

    run = weft.compile(dynamic={"x": {0: "n"}, "ids": {0: "n"}})(every)
    for n in (0, 1, 5):
        x, ids = np.arange(n, dtype=np.int32) - 2, np.arange(n) % 2
        for found, plain in zip(run(x, ids), every(x, ids), strict=True):
            np.testing.assert_array_equal(found, plain, strict=True)
    assert every(np.zeros(0, np.float32), np.zeros(0, int))[1].dtype == np.float32


def test_ids_are_checked() -> None:
    with pytest.raises(OutOfRangeError):
        weft.compile(lambda x, ids: weft.segment_sum(x, ids, 4))(X, IDS)


def test_top_k() -> None:
    """Values and gradient of rows; places are no floats."""
    order = np.argsort(-X, axis=1)[:, :2]
    check(lambda x: weft.top_k(x, 2)[0], (X,), np.take_along_axis(X, order, 1))
    np.testing.assert_array_equal(weft.compile(lambda x: weft.top_k(x, 2)[1])(X), order)
