"""Functions of lists of traced values, which NumPy does not dispatch: np.min([a, b, c])."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.tracing.arrays.standins import LISTED

X = np.array([[3.0, 1.0], [2.0, 5.0]])
CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda a, b, x: np.sum((x[0], x[1])), "prod": lambda a, b, x: np.prod([x[0], x[1]], 0),
    "max": lambda a, b, x: np.max([x[0], x[1]], axis=0), "min": lambda a, b, x: np.min([a, b, 2]),
    "amax": lambda a, b, x: np.amax([a, 2]), "amin": lambda a, b, x: np.amin([a, 2]),
    "mean": lambda a, b, x: np.mean([x[0], x[1] * 2], axis=0),
    "median": lambda a, b, x: np.median([a, b, 2.0]),
    "average": lambda a, b, x: np.average([a, b], weights=[1, 2]),
    "var": lambda a, b, x: np.var([x[0], x[1]]), "std": lambda a, b, x: np.std([a, b], ddof=1),
    "ptp": lambda a, b, x: np.ptp([a, b]), "any": lambda a, b, x: np.any([a > 9, b > 7]),
    "all": lambda a, b, x: np.all([x[0] > 0, x[1] > 1], axis=0),
    "argmax": lambda a, b, x: np.argmax([a, 4.0, b]), "argmin": lambda a, b, x: np.argmin([a, b]),
    "cumsum": lambda a, b, x: np.cumsum([a, b]), "cumprod": lambda a, b, x: np.cumprod([a, b]),
    "sort": lambda a, b, x: np.sort([a, b]), "argsort": lambda a, b, x: np.argsort([a, b]),
    "diff": lambda a, b, x: np.diff([a, b, 7]), "percentile": lambda a, b, x: np.percentile(
        [a, b], 30), "quantile": lambda a, b, x: np.quantile([a, b], 0.3),
    "dot": lambda a, b, x: np.dot([1.0, 3.0], [a, 2.0]), "outer": lambda a, b, x: np.outer(
        [a, 1], x[0]), "inner": lambda a, b, x: np.inner([a, 2.0], [1.0, 3.0]),
    "transpose": lambda a, b, x: np.transpose([x[0], x[1]]),
    "ravel": lambda a, b, x: np.ravel([x[0], x[1]]),
    "reshape": lambda a, b, x: np.reshape([x[0], x[1]], 4),
    "shape": lambda a, b, x: np.shape([x[0], x[1]])[0] * x,
    "nansum": lambda a, b, x: np.nansum([a, np.nan]), "nanmean": lambda a, b, x: np.nanmean(
        [a, np.nan, b]), "nanmax": lambda a, b, x: np.nanmax([a, b, np.nan]),
    "nanmin": lambda a, b, x: np.nanmin([x[0], x[1]]),
    "count_nonzero": lambda a, b, x: np.count_nonzero([a, 0.0, b]),
    "trapezoid": lambda a, b, x: np.trapezoid([a, b, 2.0]),
    "cross": lambda a, b, x: np.cross([a, b, 1.0], [1.0, a, 2.0]),
    "kron": lambda a, b, x: np.kron([a, b], x), "vdot": lambda a, b, x: np.vdot([a, b], x[0]),
    "interp": lambda a, b, x: np.interp([a / 9, 0.5], [0.0, 1.0], [a, b]),
    "polyval": lambda a, b, x: np.polyval([a, b], x), "round": lambda a, b, x: np.round([a / 7, b]),
    "clip": lambda a, b, x: np.clip([a, b], 2.0, 4.0), "flip": lambda a, b, x: np.flip([a, b]),
    "append": lambda a, b, x: np.append([a], [b]),
    "isclose": lambda a, b, x: np.isclose([a, b], x[0]),
    "allclose": lambda a, b, x: np.allclose([a, b], [3.0, b]),
    "array_equal": lambda a, b, x: np.array_equal([x[0], x[1]], x),
    "searchsorted": lambda a, b, x: np.searchsorted([a, b], [4.0, a]),
    "squeeze": lambda a, b, x: np.squeeze([[a, b]]), "cov": lambda a, b, x: np.cov([x[0], x[1]]),
    "corrcoef": lambda a, b, x: np.corrcoef([x[0], -x[1]]),
    "convolve": lambda a, b, x: np.convolve([a, b], [1.0, b, 2.0]),
    "correlate": lambda a, b, x: np.correlate([a, b, 2.0], [1.0, a]),
}


def test_a_plain_array_at_traced_places() -> None:
    table, places = np.arange(12.0).reshape(3, 4), np.array([2, 0])
    for function in (lambda i: np.take(table, i), lambda i: np.take(table, i, axis=1),
                     lambda i: np.array(table)[i, i]):
        np.testing.assert_array_equal(weft.compile(function)(places), function(places))


def test_every_one_is_tried() -> None:
    assert set(CASES) == set(LISTED)


@pytest.mark.parametrize("name", LISTED)
def test_a_list_is_an_array(name: str) -> None:
    def function(x: Any) -> Any:
        return CASES[name](x[0, 0], x[1, 1], x)

    plain = getattr(np, name)
    np.testing.assert_allclose(weft.compile(function)(X), function(X), rtol=1e-14, strict=True)
    assert getattr(np, name) is plain


def test_lists_of_plain_numbers_stay_numpys() -> None:
    def function(x: Any) -> Any:
        assert type(np.sum([1.0, 2.0])) is np.float64
        return x * np.max([1, 2]) + np.argsort([3, 1, 2])[0]

    np.testing.assert_array_equal(weft.compile(function)(X), function(X))
