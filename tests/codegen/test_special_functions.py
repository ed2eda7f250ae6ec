"""scipy.special by name: SciPy's values at every special value and in between, its dtypes and
options, gradients, and the same numbers at any width and number of threads.

Where SciPy is further from the truth than we are, the truth is what counts: ``accuracy.py
--special`` has both beside each other.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp
from scipy import special
from scipy.special import log_softmax, logsumexp, polygamma, softmax
from special_reference import CASES, OURS, errors, exact, points

import weft
from weft.frontend.engine.building.link import make_program
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.frontend.numpy_api.elements import special as bodies
from weft.frontend.tracing.trace import trace_function

Array = np.ndarray[Any, Any]
FLOATS = (np.float32, np.float64)
UFUNCS = {name: getattr(special, name, None) or getattr(special._ufuncs, name)
          for name in (*bodies.UFUNCS, *bodies.PAIRS)}
EDGES = (0.0, 1e-30, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 10.0, 41.5, np.inf)
# Where SciPy's answer is another one, with what it would take to have it.
APART: dict[str, Callable[..., Any]] = {
    "beta": lambda a, b: (np.minimum(a, b) <= 0) | np.isinf(a + b),  # the signs of infinities
    "betaln": lambda a, b: np.isinf(np.maximum(abs(a), abs(b))),
    "spence": np.isinf,  # -inf is its limit, SciPy has NaN
    "gammaincc": lambda a, x: np.isinf(a) & np.isinf(x),
    "_zeta": lambda x, q: np.isnan(x) | np.isinf(x) | (q < 0),  # few digits of SciPy's
}


def grid(dtype: Any, operands: int) -> list[Array]:
    positive = np.array(EDGES, dtype)
    values = np.concatenate([positive, -positive, [np.nan]]).astype(dtype)
    return [part.ravel() for part in np.meshgrid(*[values] * operands)]


def parts(results: Any) -> tuple[Array, ...]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UFUNCS)
def test_special_values_are_scipys(name: str, dtype: Any) -> None:
    """Infinities, NaN and zeros (of either sign) where SciPy has them, poles and whole numbers."""
    function = UFUNCS[name]
    args = grid(dtype, function.nin)
    if name == "expn":
        args[0] = np.trunc(args[0])
        args = [x[np.isfinite(args[0])] for x in args]
    with np.errstate(all="ignore"):
        dtypes = [x.dtype for x in parts(function(*args))]
        # In float32 some of SciPy's functions are less exact than ours.
        wanted = [x.astype(dtype) for x in parts(function(*(x.astype(float) for x in args)))]
        kept = ~APART[name](*args) if name in APART else np.full(args[0].shape, True)
    results = parts(weft.compile(lambda *xs: function(*xs))(*args))
    assert [x.dtype for x in results] == dtypes
    for got, want in zip(results, wanted, strict=True):
        np.testing.assert_allclose(got[kept], want[kept], err_msg=name,
                                   rtol=1e-6 if dtype == np.float32 else 2e-12)


# Measured by ``accuracy.py --special 2000``: the most ULP in float64, with a margin.
MAX_ULP = {
    "gammainc": 400, "gammaincc": 400, "betainc": 500, "zeta": 12, "beta": 3000, "betaln": 400,
    "expn": 12, "digamma below 0": 12, "riemann_zeta": 60, "ci": 40, "j0": 40, "j1": 40,
    "gammaln below 0": 8, "i1": 8, "exp1": 8,
}


@pytest.mark.parametrize("name", CASES)
def test_error_in_ulp(name: str) -> None:
    """Against mpmath: at most 4 ULP of float32; float64 as stated above, or 5."""
    base = name.split()[0]
    function: Any = OURS.get(base) or getattr(weft.special, base)
    for dtype, bound in ((np.float32, 4), (np.float64, MAX_ULP.get(name, 5))):
        args = points(name, dtype, 30)
        result = weft.compile(lambda *xs: function(*xs))(*args)
        error = errors(name, result, exact(name, args))
        worst = int(np.argmax(error))
        assert error[worst] <= bound, (dtype, [x[worst] for x in args], result[worst])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("a", "b", "x"), [
    (0.12, 1e-20, 0.92), (0.12, 3.8e-6, 0.999), (50, 1e-15, 0.99), (5, 1e-12, 0.9999999),
    (1000, 1e-10, 0.9999), (1e5, 1e-6, 0.999999), (3, 1e-8, 0.8), (1e-10, 1e-20, 0.6)])
def test_betainc_of_a_small_parameter(a: float, b: float, x: float, dtype: Any) -> None:
    """It is a multiple of b, of which 1 less the complement has no digits."""
    args = [dtype(v) for v in (a, b, x)]
    with mp.workdps(60):
        p, q, z = (mp.mpf(float(v)) for v in args)
        wanted = float(z**p / (p * mp.beta(p, q)) * mp.hyp2f1(p, 1 - q, p + 1, z))
    found = weft.compile(lambda *xs: special.betainc(*xs))(*args)
    np.testing.assert_allclose(found, wanted, rtol=2e-7 if dtype == np.float32 else 3e-13)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e8, 1e10, 1e15, 1e30])
def test_betainc_of_large_parameters(size: float) -> None:
    """More than a fraction would come to the end of."""
    function = weft.compile(lambda *xs: weft.special.betainc(*xs), on_recompile="silent")
    assert abs(function(size, size, 0.5) - 0.5) < 1e-15
    a, b = size, 3 * size
    with mp.workdps(50):
        x = 0.25 * (1 + 2 * float(size) ** -0.5)
        n, z = mp.mpf(a) + b, mp.mpf(x)
        depth = -a * mp.log(z * n / a) - b * mp.log((1 - z) * n / b)
        width = mp.sqrt(2 * depth * n / (mp.mpf(a) * b))
        y = (z * n - a) / (mp.mpf(a) * b / n)
        first = (width / y - 1) / width / mp.sqrt(2 * mp.pi * a * b / n) * mp.exp(-depth)
        wanted = float(mp.erfc(-mp.sqrt(depth)) / 2 - first)
    np.testing.assert_allclose(function(a, b, x), wanted, rtol=max(3e-14, 0.1 / size))


@pytest.mark.parametrize(("s", "q", "wanted"), [
    (2, -1e-20, 1e40), (3, -1e-20, -1e60), (2, -1e-9, 1e18), (3, -3 - 2.0**-40, -(2.0**120)),
    (2, 1e300, 1e-300), (1.5, 1e300, 2e-150), (3, 1e120, 5e-241), (2, 1e-150, 1e300)])
def test_zeta_beside_poles_and_far_out(s: float, q: float, wanted: float) -> None:
    found = weft.compile(lambda *xs: special.zeta(*xs))(np.float64(s), np.float64(q))
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_where_digits_cancel_or_squares_overflow(dtype: Any) -> None:
    def slope(function: Callable[..., Any], x: Any) -> Array:
        return weft.compile(weft.grad(lambda x: function(x).sum()))(np.array(x, dtype))

    x = [5.9, 6.1, 8.0, 39.0, 41.0, 1e3, 1e6]
    with mp.workdps(60):
        wanted = [float(2 * mp.mpf(dtype(v).item()) * CASES["erfcx"].exact(
            mp.mpf(dtype(v).item())) - 2 / mp.sqrt(mp.pi)) for v in x[:5]]
        wanted += [-1 / np.sqrt(np.pi) / v**2 for v in x[5:]]
    np.testing.assert_allclose(slope(special.erfcx, x), wanted, rtol=1e-5)
    assert np.all(np.abs(slope(np.sinc, [1e10, -1e12, 3e37])) < 2e-10)
    np.testing.assert_array_equal(slope(lambda x: polygamma(1, x), [1e-200]), [-np.inf])


def test_python_functions_of_scipy_trace_by_any_name() -> None:
    x = np.linspace(-2, 3, 12).reshape(3, 4)
    for function in (
        lambda x: logsumexp(x), lambda x: special.logsumexp(x, axis=0, keepdims=True),
        lambda x: logsumexp(x, axis=(0, 1), b=np.exp(-x)), lambda x: softmax(x, axis=1),
        lambda x: logsumexp(x, b=-x, axis=1, return_sign=True), lambda x: special.softmax(x),
        lambda x: log_softmax(x, axis=-1), lambda x: polygamma(1, x + 3),
        lambda x: polygamma(np.arange(4), x + 3), lambda x: special.polygamma(0, x),
        lambda x: special.zeta(x + 4), lambda x: special.zeta(x + 4, 1.5), lambda x: np.i0(x),
        lambda x: special.expn(2, x + 2), lambda x: special.sici(x), lambda x: special.sinc(x),
    ):
        for dtype in FLOATS:
            given = x.astype(dtype)
            got = parts(weft.compile(function, on_recompile="silent")(given))
            for ours, theirs in zip(got, parts(function(given)), strict=True):
                assert ours.dtype == theirs.dtype
                np.testing.assert_allclose(ours, theirs, *(
                    (1e-5, 1e-7) if dtype == np.float32 else (1e-12, 1e-15)))
    assert logsumexp.__code__.co_filename.endswith("_logsumexp.py")  # SciPy is as it was


def test_empty_and_infinite_sums() -> None:
    x = np.full((2, 3), -np.inf)
    assert weft.compile(lambda x: logsumexp(x, axis=1))(x).tolist() == [-np.inf] * 2
    x[0, 1] = np.inf
    np.testing.assert_array_equal(weft.compile(lambda x: logsumexp(x, axis=1))(x),
                                  [np.inf, -np.inf])
    b = np.array([0.0, 1, 1])
    np.testing.assert_array_equal(weft.compile(lambda x: logsumexp(x, b=b))(
        np.array([np.inf, 0, 0])), np.log(2))


@pytest.mark.parametrize("name", weft.special.__all__)
def test_the_same_without_scipy(name: str) -> None:
    """weft.special gives on plain arrays, at once, what it gives compiled."""
    function = getattr(weft.special, name)
    x = np.linspace(0.1, 0.9, 7)
    args = {"beta": 2, "betaln": 2, "gammainc": 2, "gammaincc": 2, "expn": 2, "rel_entr": 2,
            "kl_div": 2, "huber": 2, "pseudo_huber": 2, "xlogy": 2, "xlog1py": 2, "betainc": 3,
            "polygamma": 2}.get(name, 1)
    operands = [x] * args
    if name == "polygamma":
        operands[0] = np.arange(7)
    for got, want in zip(parts(function(*operands)), parts(weft.compile(
            lambda *xs: function(*xs))(*operands)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)


def test_scipy_is_not_imported() -> None:
    code = ("import sys, weft, numpy as np; weft.compile(lambda x: weft.special.gammaln(x))"
            "(np.ones(3)); assert not [m for m in sys.modules if m.startswith('scipy')]")
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))


@pytest.mark.parametrize("dtype", FLOATS)
def test_lanes_threads_and_targets_do_not_change_a_bit(dtype: Any) -> None:
    """A loop runs until the last lane has ended, which is nothing to the others."""
    rng = np.random.default_rng(3)
    a, x = rng.uniform(0.1, 300, (2, 4097)).astype(dtype)
    b = rng.uniform(0, 1, 4097).astype(dtype)

    def function(a: Any, x: Any, b: Any) -> Any:
        return (special.gammainc(a, x), special.betainc(a, x, b), special.zeta(a + 1, x),
                special.gammaln(a), special.expn(3, x))

    traced = trace_function(function, (a, x, b), {})
    wanted = make_program(Stages(traced.graph, Options(threads=1))).run([a, x, b])
    for options in (Options(threads=2), Options(target="x86-64-v3"), Options(opt=0)):
        for got, want in zip(make_program(Stages(traced.graph, options)).run([a, x, b]), wanted,
                             strict=True):
            np.testing.assert_array_equal(got, want)
    alone = weft.compile(lambda a, x, b: function(a, x, b))
    for at in (0, 5, 4096):
        for got, want in zip(alone(a[at:at + 1], x[at:at + 1], b[at:at + 1]), wanted, strict=True):
            assert got[0] == want[at]


def test_any_size() -> None:
    function = weft.compile(lambda x: special.gammaln(x) + logsumexp(x, keepdims=True),
                            dynamic={"x": {0: "b"}})
    for size in (1, 2, 7, 0, 33):
        x = np.linspace(0.5, 9, size)
        want = special.gammaln(x) + (logsumexp(x, keepdims=True) if size else 0)
        np.testing.assert_allclose(function(x), want, rtol=1e-13)


SECOND = {
    "gammaln": (0.3, 9), "digamma": (0.4, 9), "erfc": (-2, 2), "erfinv": (-0.8, 0.8),
    "ndtr": (-2, 2), "log_ndtr": (-5, 2), "expit": (-3, 3), "log_expit": (-3, 3), "i0e": (0.2, 9),
    "i1e": (0.2, 9), "i0": (-3, 3), "i1": (0.2, 3), "j0": (-9, 9), "j1": (0.2, 9),
    "expi": (0.3, 4), "exp1": (0.3, 4), "spence": (0.2, 0.9), "gamma": (0.5, 4), "entr": (0.2, 3),
    "ndtri": (0.2, 0.8), "erfcx": (-1, 3),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name: str) -> None:
    function = getattr(special, name)
    x = np.linspace(*SECOND[name], 7)
    first = weft.grad(lambda x: function(x).sum())
    second = weft.compile(weft.grad(lambda x: first(x).sum()))(x)
    slope, step = weft.compile(lambda x: first(x)), 1e-5
    np.testing.assert_allclose(second, (slope(x + step) - slope(x - step)) / (2 * step), rtol=1e-6,
                               atol=1e-7)


def test_derivatives_that_are_refused_by_name() -> None:
    with pytest.raises(weft.Error, match="the gradient of zeta with respect to x"):
        weft.compile(weft.grad(lambda x: special.zeta(x, 2.0).sum()))(np.array([2.0, 3.0]))
    weft.compile(weft.grad(lambda x: special.zeta(2.0, x).sum()))(np.array([2.0, 3.0]))


def _by_places(f: Callable[..., Any], args: list[Any], at: int) -> float:
    """The derivative of a function of mpmath, by differences in many digits."""
    with mpmath.mp.workdps(60):
        given, step = [mpmath.mpf(float(x)) for x in args], mpmath.mpf(10) ** -20
        ends = [f(*(x + sign * step if k == at else x for k, x in enumerate(given)))
                for sign in (1, -1)]
        return float((ends[0] - ends[1]) / (2 * step))


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "betainc"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_derivatives_of_incomplete_functions_by_all_operands(name: str, dtype: Any) -> None:
    """Against mpmath, in the middle and in the tails of the distributions."""
    rng = np.random.default_rng(5)
    a, b = 10 ** rng.uniform(-2, 2.5, (2, 25))
    args = [a, a * np.exp(np.minimum(2 / np.sqrt(a), 1) * rng.normal(size=25))]
    if name == "betainc":
        args = [a, b, np.clip(rng.beta(a, b), 1e-4, 1 - 1e-4)]
    args = [x.astype(dtype) for x in args]
    function, exact_ = getattr(special, name), CASES[name].exact
    slopes = weft.compile(weft.grad(lambda *xs: function(*xs).sum(), argnums=tuple(
        range(len(args)))))(*args)
    for at, slope in enumerate(slopes):
        wanted = [_by_places(exact_, row, at) for row in zip(*args, strict=True)]
        np.testing.assert_allclose(slope, wanted, rtol=2e-5 if dtype == np.float32 else 1e-9,
                                   atol=1e-30)


def test_derivatives_of_incomplete_functions_at_the_ends() -> None:
    by_shape = weft.compile(weft.grad(lambda a, x: special.gammainc(a, x).sum()))
    a, x = np.array([2.0, 0.0, 2.0, -1.0, 1e9, 3.0]), np.array([0.0, 1.0, np.inf, 1.0, 1.0, np.nan])
    np.testing.assert_array_equal(by_shape(a, x), [0, 0, 0, np.nan, 0, np.nan])
    second = weft.grad(lambda x: weft.grad(lambda a: special.gammainc(a, x))(2.0))
    by_x = weft.grad(lambda a: weft.grad(lambda x: special.gammainc(a, x))(1.5))
    np.testing.assert_allclose(second(1.5), by_x(2.0), rtol=1e-9)


def test_a_function_is_compiled_once_for_all_its_calls() -> None:
    x = np.ones(64)
    text = weft.compile(lambda x: special.gammaln(special.gammaln(x) + special.gammaln(x[::2].sum())
                                                  ).sum()).lower(x).as_text("llvm")
    heads = [line for line in text.splitlines() if "define" in line and "@weft_gammaln" in line]
    assert len(heads) == len({line.split("(")[0] for line in heads})
