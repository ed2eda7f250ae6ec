"""``weft.numpy``: NumPy's names and those of the array API standard, traced and on plain arrays."""

from __future__ import annotations

import operator
import os
import pickle
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import array_api_calls as standard
import numpy
import pytest
from numpy_samples import Sample

import weft
import weft.numpy as np
from weft.frontend.numpy_api.registry import ROWS, Row


def sample(call: str) -> Sample:
    """A call of the standard as a sample of a function of this namespace."""
    name, _, rest = call.partition("(")
    return Sample(Row((operator.attrgetter(name)(np),)), rest.removesuffix(")"))


def parts(result: Any) -> list[Any]:
    return [*result] if isinstance(result, (tuple, list)) else [result]


@pytest.mark.parametrize("call", standard.CALLS)
def test_the_standard_traces(call: str) -> None:
    """The same types and numbers as on plain arrays, which are NumPy's."""
    one = sample(call)
    arrays = one.arrays(numpy.float64)
    wanted, fixed = one.call(*arrays), []

    def traced(*arrays: Any) -> Any:
        result = one.call(*arrays)
        if isinstance(result, (bool, numpy.dtype)):
            fixed.append(result)
            return 0
        return result

    found = weft.compile(traced)(*arrays)
    if fixed:
        assert fixed == [wanted]
        return
    assert len(parts(found)) == len(parts(wanted))
    for x, y in zip(parts(found), parts(wanted), strict=True):
        assert (numpy.asarray(x).dtype, numpy.shape(x)) == (numpy.asarray(y).dtype, numpy.shape(y))
        numpy.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)


def test_names() -> None:
    for name in standard.NAMES:
        operator.attrgetter(name)(np)
    assert set(numpy.__all__) - {"__version__", "__array_namespace_info__"} <= set(dir(np))
    assert np.sin is numpy.sin and np.float32 is numpy.float32 and np.random is numpy.random
    assert issubclass(np.linalg.LinAlgError, ValueError)
    assert np.__array_api_version__ == "2024.12"
    with pytest.raises(AttributeError, match=r"'weft\.numpy' has no attribute 'nought'"):
        np.nought  # noqa: B018


def test_every_function_of_numpy_with_a_row_is_here() -> None:
    for function in ROWS:
        module = function.__module__.removeprefix("numpy").lstrip(".")
        if module in ("", "linalg", "fft"):
            path = f"{module}.{function.__name__}".lstrip(".")
            assert callable(operator.attrgetter(path)(np))


def test_attributes_of_arrays() -> None:
    def f(x: Any) -> Any:
        for name in standard.ATTRIBUTES.split():
            assert hasattr(type(x), name), name
        assert x.device == "cpu" and x.to_device("cpu") is x and x.size == 6
        with pytest.raises(ValueError, match="'gpu'"):
            x.to_device("gpu")
        with pytest.raises(ValueError, match=r"2099\.1"):
            x.__array_namespace__(api_version="2099.1")
        xp = x.__array_namespace__(api_version="2024.12")
        assert xp is np
        assert not xp.__array_namespace_info__().capabilities()["data-dependent shapes"]
        return xp.permute_dims(x, (1, 0)), xp.finfo(x).eps * x

    x = numpy.arange(6.0).reshape(2, 3)
    turned, scaled = weft.compile(f)(x)
    numpy.testing.assert_array_equal(turned, x.T)
    numpy.testing.assert_array_equal(scaled, numpy.finfo(float).eps * x)
    assert np.__array_namespace_info__().capabilities()["data-dependent shapes"]


def test_arrays_are_made_without_source() -> None:
    """Written in place, plain until then; and outside of a trace they are NumPy's. Code that has no
    source is traced as it stands."""
    code = """
import numpy, weft
import weft.numpy as np
from weft.numpy.linalg import norm
from weft.numpy.fft import fftfreq

@weft.compile
def f(x):
    y, places = np.zeros(3), np.arange(2)
    if places[1] == 1:
        y[places[1]:] = x
    y[0] = norm(np.array([x[0], 4.0]))
    w = fftfreq(4)
    w[1] = x[1]
    return y, w, np.asarray([x[0], 1])

print([part.tolist() for part in f(numpy.array([3.0, 7.0]))], type(np.zeros(2)).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[[5.0, 3.0, 7.0], [0.0, 7.0, -0.5, -0.25], [3.0, 1.0]] ndarray\n"


def test_functions_can_be_pickled() -> None:
    for function in (np.zeros, np.sort, np.sin, np.fft.fftfreq):
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_descending_sorts_are_stable(axis: Any) -> None:
    """Equal elements keep their order, also where the largest come first; NaNs are first then."""
    x = numpy.array([[3, 1, 3, 2], [1, 1, 0, 3.0], [numpy.nan, 1, 3, 2]])

    def places(x: Any) -> Any:
        return np.argsort(x, axis=axis, descending=True), np.sort(x, axis=axis, descending=True)

    found, values = places(x)
    keys = numpy.where(numpy.isnan(x), -9, -x)
    numpy.testing.assert_array_equal(found, numpy.argsort(keys, axis=axis, kind="stable"))
    numpy.testing.assert_array_equal(
        values, numpy.take_along_axis(x if axis is not None else x.ravel(), found, axis))
    for one, other in zip(weft.compile(places)(x), (found, values), strict=True):
        numpy.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2"])
def test_narrow_integers_are_sorted(dtype: str) -> None:
    x = numpy.array([3, 250, 7, 0, 5, 5, 129]).astype(dtype)

    def f(x: Any) -> Any:
        return np.sort(x), np.argsort(x), np.searchsorted(np.sort(x), x), np.median(x)

    for one, other in zip(weft.compile(f)(x), f(x), strict=True):
        numpy.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


@pytest.mark.parametrize("call", [
    lambda x, y: numpy.vecdot(x, y, axis=0), lambda x, y: numpy.vecdot(x, y, keepdims=True),
    lambda x, y: numpy.vecdot(x, y, axis=1, keepdims=True),
    lambda x, y: numpy.vecdot(x, y, axes=[0, 0, ()]),
    lambda x, y: numpy.matmul(x, y, axes=[(0, 1), (2, 1), (0, 2)]),
    lambda x, y: numpy.matvec(x, y[0, 0], axes=[(1, 2), 0, 0]),
])
def test_axes_of_generalised_ufuncs(call: Any) -> None:
    x, y = numpy.random.default_rng(2).normal(size=(2, 3, 3, 3))
    numpy.testing.assert_allclose(weft.compile(call)(x, y), call(x, y), rtol=1e-12)


def test_axes_may_be_ranges_and_arrays() -> None:
    x = numpy.arange(24.0).reshape(2, 3, 4)
    for axes in (range(2), numpy.array([0, 1])):
        found = weft.compile(lambda x, axes=axes: numpy.moveaxis(x, axes, range(-2, 0)))(x)
        numpy.testing.assert_array_equal(found, numpy.moveaxis(x, [0, 1], [-2, -1]))


@pytest.mark.long
def test_libraries_compute_with_the_namespace_of_a_traced_array() -> None:
    """scipy asks an array for its namespace where it is told to."""
    code = """
import numpy, weft, scipy.stats, scipy.integrate, scipy.special
x = numpy.random.default_rng(0).normal(size=(6, 4))
for f in (scipy.stats.zscore, scipy.stats.skew, scipy.integrate.trapezoid, scipy.special.softmax,
          scipy.integrate.cumulative_simpson):
    numpy.testing.assert_allclose(weft.compile(lambda x: f(x))(x), f(x), rtol=1e-12)
print("done")
"""
    pytest.importorskip("scipy")
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                          env={**os.environ, "SCIPY_ARRAY_API": "1"})
    assert done.stdout == "done\n"


def test_the_harness_of_the_public_suite_compiles_what_its_tests_call() -> None:
    """See tests/array_api; the suite itself is not here."""
    code = """
import traced as xp
from calls import CALLS
assert type(xp.asarray([1, 2]) + 1).__name__ == "Array" and not CALLS["calls"]
here = {"xp": xp, "__name__": "array_api_tests.test_something"}
exec("x = xp.asarray([1.0, 2]); x[0] = 3; x += 1; y = xp.sum(x * x), xp.result_type(x, 1)", here)
print(here["x"].tolist(), here["y"], CALLS["calls"], CALLS["complex"])
exec("z = xp.abs(xp.asarray([3 + 4j]))", here)
print(here["z"].tolist())
"""
    path = Path(__file__).parents[1] / "array_api"
    paths = os.pathsep.join([str(path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": paths})
    assert done.stdout == "[4.0, 3.0] (Array(25.), dtype('float64')) 6 0\n[5.0]\n"
    run = runpy.run_path(str(path / "run.py"))
    assert set(run["exceptions"](False).split("\n")) < set(run["exceptions"](True).split("\n"))
