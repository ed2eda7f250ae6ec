"""np.fft in traced code: sizes that are not known, options, errors; values and gradients of samples
are in test_numpy_rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.diagnose import Error

RNG = np.random.default_rng(5)


def same(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_even_and_odd_sizes_that_are_not_known() -> None:
    def function(x: Any) -> Any:
        half = np.fft.rfft(x)
        return (np.fft.irfft(half * 2, n=x.shape[0]), np.fft.irfft(half), np.fft.fft(x),
                np.fft.fftfreq(x.shape[0], 0.5), np.fft.rfftfreq(x.shape[0]),
                np.fft.fftshift(x), np.fft.ifftshift(x), np.fft.hfft(x), np.fft.ihfft(x))

    kernel: Any = weft.compile(function, dynamic={"x": {0: "b"}})
    for size in (2, 3, 7, 8, 33):
        x = RNG.normal(size=size)
        same(kernel(x), function(x))
    assert kernel.cache_info().specialisations == 1
    with pytest.raises(ValueError, match="W102: a Fourier transform of b elements"):
        kernel(np.ones(0))


def test_gradients_where_it_is_not_known_whether_a_size_is_even() -> None:
    def loss(x: Any) -> Any:
        spectrum = np.fft.rfft(x)
        return np.sum(np.fft.irfft(spectrum * spectrum, n=x.shape[0]) ** 2)

    kernel: Any = weft.compile(weft.grad(loss), dynamic={"x": {0: "b"}})
    for size in (2, 5, 8):
        x = RNG.normal(size=size)
        wanted = [(loss(x + step) - loss(x - step)) / 2e-6 for step in 1e-6 * np.eye(size)]
        np.testing.assert_allclose(kernel(x), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "c8", "c16", "?"])
@pytest.mark.parametrize("function", [np.fft.fft, np.fft.irfft, np.fft.fft2])
def test_dtypes_are_numpys(function: Callable[..., Any], dtype: str) -> None:
    x = RNG.integers(0, 5, (4, 6)).astype(dtype)
    found, wanted = weft.compile(function)(x), function(x)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_a_filter_inside_of_a_loop() -> None:
    def step(x: Any) -> Any:
        return np.fft.irfft(np.fft.rfft(x) * 0.5, n=8)

    x = RNG.normal(size=8)
    found = weft.compile(lambda x: weft.fori_loop(0, 3, lambda _, x: step(x), x))(x)
    np.testing.assert_allclose(found, x / 8, rtol=1e-12)


@pytest.mark.parametrize(("function", "text"), [
    (lambda x: np.fft.fft(x, 0), "W102: a Fourier transform of 0 elements"),
    (lambda x: np.fft.fft(x, norm="half"), "W112: norm='half'"),
    (lambda x: np.fft.rfft(x * 1j), "W111: this transform takes real numbers"),
    (lambda x: np.fft.fftn(x, axes=(0, 0)), "W113: Fourier transforms along one axis twice"),
    (lambda x: np.fft.fftn(x, (2, 2), axes=(0,)), "W102"),
    (lambda x: np.fft.fft(x, axis=3), "W121"),
    (lambda x: np.fft.irfft(x[:, :1]), "W102: a Fourier transform of 0 elements"),
])
def test_what_is_refused(function: Callable[..., Any], text: str) -> None:
    with pytest.raises(Error, match=text):
        weft.compile(function)(RNG.normal(size=(3, 4)))


