"""Functions of lists of traced values, which NumPy does not dispatch: np.min([a, b, c])."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

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
    "where": lambda a, b, x: np.where([a > 2, b > 9], 1.0, x[0]),
    "nonzero": lambda a, b, x: np.nonzero([a, 0.0, b])[0],
    "flatnonzero": lambda a, b, x: np.flatnonzero([a, 0.0]),
    "argwhere": lambda a, b, x: np.argwhere([a > 2, b > 9]),
    "partition": lambda a, b, x: np.partition([a, b, 4.0], 1)[1],
    "argpartition": lambda a, b, x: np.argpartition([a, b, 4.0], 1)[1],
    "lexsort": lambda a, b, x: np.lexsort([x[0], x[1]]),
    "unique": lambda a, b, x: np.unique([a, b, 3.0]), "isin": lambda a, b, x: np.isin(x, [a, 7.0]),
    "union1d": lambda a, b, x: np.union1d([a, 7.0], x),
    "intersect1d": lambda a, b, x: np.intersect1d([a, 7.0], x),
    "setdiff1d": lambda a, b, x: np.setdiff1d(x, [a, 7.0]),
    "bincount": lambda a, b, x: np.bincount([a > 2, b > 9]),
    "digitize": lambda a, b, x: np.digitize([a, b], [1.0, 4.0]),
    "histogram": lambda a, b, x: np.histogram([a, b], bins=[0.0, 4.0, 6.0])[0],
    "nanprod": lambda a, b, x: np.nanprod([a, np.nan, b]),
    "nanvar": lambda a, b, x: np.nanvar([a, np.nan, b]),
    "nanstd": lambda a, b, x: np.nanstd([a, np.nan, b]),
    "nanmedian": lambda a, b, x: np.nanmedian([a, np.nan, b]),
    "nanquantile": lambda a, b, x: np.nanquantile([a, np.nan, b], 0.3),
    "nanpercentile": lambda a, b, x: np.nanpercentile([a, np.nan, b], 30),
    "nanargmax": lambda a, b, x: np.nanargmax([np.nan, a, b]),
    "nanargmin": lambda a, b, x: np.nanargmin([np.nan, a, b]),
    "nancumsum": lambda a, b, x: np.nancumsum([a, np.nan, b]),
    "nancumprod": lambda a, b, x: np.nancumprod([a, np.nan, b]),
    "cumulative_sum": lambda a, b, x: np.cumulative_sum([a, b]),
    "cumulative_prod": lambda a, b, x: np.cumulative_prod([a, b]),
    "gradient": lambda a, b, x: np.gradient([a, b, 1.0]),
    "ediff1d": lambda a, b, x: np.ediff1d([a, b, 1.0]),
    "unwrap": lambda a, b, x: np.unwrap([a, b, 9 * a]),
    "tensordot": lambda a, b, x: np.tensordot([x[0], x[1]], x),
    "einsum": lambda a, b, x: np.einsum("i,i", [a, b], x[0]),
    "trace": lambda a, b, x: np.trace([[a, 1.0], [2.0, b]]),
    "diagonal": lambda a, b, x: np.diagonal([x[0], x[1]]),
    "tril": lambda a, b, x: np.tril([x[0], x[1]]), "triu": lambda a, b, x: np.triu([x[0], x[1]]),
    "pad": lambda a, b, x: np.pad([a, b], 1), "resize": lambda a, b, x: np.resize([a, b], 5),
    "insert": lambda a, b, x: np.insert([a, b], 1, 7.0),
    "delete": lambda a, b, x: np.delete([a, b, 1.0], 1),
    "array_split": lambda a, b, x: np.array_split([a, b], 2)[1],
    "expand_dims": lambda a, b, x: np.expand_dims([a, b], 1),
    "broadcast_to": lambda a, b, x: np.broadcast_to([a, b], (3, 2)),
    "atleast_1d": lambda a, b, x: np.atleast_1d([a, b]),
    "atleast_2d": lambda a, b, x: np.atleast_2d([a, b]),
    "atleast_3d": lambda a, b, x: np.atleast_3d([a, b]),
    "moveaxis": lambda a, b, x: np.moveaxis([x, x + 1], 0, 2),
    "swapaxes": lambda a, b, x: np.swapaxes([x[0], x[1]], 0, 1),
    "fliplr": lambda a, b, x: np.fliplr([x[0], x[1]]), "flipud": lambda a, b, x: np.flipud([a, b]),
    "rot90": lambda a, b, x: np.rot90([x[0], x[1]]),
    "matrix_transpose": lambda a, b, x: np.matrix_transpose([x[0], x[1]]),
    "size": lambda a, b, x: np.size([a, b]) * x, "ndim": lambda a, b, x: np.ndim([x[0], x[1]]) * x,
    "nan_to_num": lambda a, b, x: np.nan_to_num([a, np.nan]),
    "real": lambda a, b, x: np.real([a, b]), "imag": lambda a, b, x: np.imag([a * 1j, b]),
    "angle": lambda a, b, x: np.angle([a, -b]),
    "apply_along_axis": lambda a, b, x: np.apply_along_axis(np.sum, 0, [x[0], x[1]]),
    "polyfit": lambda a, b, x: np.polyfit([0.0, 1.0, 2.0], [a, b, 1.0], 1),
    "polyder": lambda a, b, x: np.polyder([a, b, 1.0]),
    "polyint": lambda a, b, x: np.polyint([a, b]),
    "polyadd": lambda a, b, x: np.polyadd([a, b], [1.0]),
    "polysub": lambda a, b, x: np.polysub([a, b], [1.0]),
    "polymul": lambda a, b, x: np.polymul([a, b], [1.0, 2.0]),
    "histogram2d": lambda a, b, x: np.histogram2d([a, b], [b, 1.0], 2)[0],
    "select": lambda a, b, x: np.select([x > 2], [[a, b]], 0.0),
    "compress": lambda a, b, x: np.compress([False, True], [a, b]),
    "extract": lambda a, b, x: np.extract([False, True], [a, b]),
    "column_stack": lambda a, b, x: np.column_stack([[a, b], x[0]]),
    "dstack": lambda a, b, x: np.dstack([[a, b], x[0]]),
    "setxor1d": lambda a, b, x: np.setxor1d([a, b, 1.0], [3.0, 4.0]),
    "around": lambda a, b, x: np.around([a / 7, b]),
    "sinc": lambda a, b, x: np.sinc([a / 7, b]),
}


def test_a_plain_array_at_traced_places() -> None:
    table, places = np.arange(12.0).reshape(3, 4), np.array([2, 0])
    for function in (lambda i: np.take(table, i), lambda i: np.take(table, i, axis=1),
                     lambda i: np.array(table)[i, i]):
        np.testing.assert_array_equal(weft.compile(function)(places), function(places))


@pytest.mark.parametrize("name", CASES)
def test_a_list_is_an_array(name: str) -> None:
    def function(x: Any) -> Any:
        return CASES[name](x[0, 0], x[1, 1], x)

    plain = getattr(np, name)
    np.testing.assert_allclose(weft.compile(function)(X), function(X), rtol=1e-13, strict=True)
    assert getattr(np, name) is plain


@pytest.mark.parametrize("function", [
    lambda a, b: np.linalg.norm([a, b]), lambda a, b: np.linalg.pinv([[a, 1], [b, 2]]),
    lambda a, b: np.linalg.lstsq([[a, 1], [b, 2]], [1, b], rcond=None)[0],
    lambda a, b: np.linalg.cholesky([[a + b, 1], [1, 2]]), lambda a, b: np.fft.fft([a, b, 1]),
    lambda a, b: np.linalg.svd([[a, 1], [b, 2]])[1], lambda a, b: np.fft.rfft([a, b, 1, 2])])
def test_a_list_is_a_matrix_or_a_signal(function: Callable[..., Any]) -> None:
    np.testing.assert_allclose(weft.compile(function)(3.0, 5.0), function(3.0, 5.0), rtol=1e-12)


def test_lists_of_linear_algebra_and_spectra() -> None:
    def function(x: Any) -> Any:
        a, b = x[0, 0], x[1, 1]
        matrix = [[a, 1.0], [1.0, b]]
        return (np.linalg.lstsq(matrix, [a, b], rcond=None)[0], np.linalg.slogdet(matrix)[1],
                np.linalg.cond(matrix), np.linalg.eigvalsh(matrix), np.linalg.pinv(matrix),
                np.linalg.svd(matrix, compute_uv=False), np.abs(np.linalg.qr(matrix)[1]),
                np.linalg.cholesky(matrix), np.linalg.matrix_power(matrix, 2),
                np.linalg.matrix_rank(matrix), np.abs(np.fft.fft([a, b, 1.0])),
                np.fft.irfft(np.fft.rfft([a, b, 1.0, 2.0])))

    for got, want in zip(weft.compile(function)(X), function(X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, strict=True)


def test_lists_of_plain_numbers_stay_numpys() -> None:
    def function(x: Any) -> Any:
        assert type(np.sum([1.0, 2.0])) is np.float64
        return x * np.max([1, 2]) + np.argsort([3, 1, 2])[0]

    np.testing.assert_array_equal(weft.compile(function)(X), function(X))
