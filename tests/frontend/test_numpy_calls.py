"""Calls as people write them, not made from the samples of rows: dtype, shape and numbers are
NumPy's."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import with_source

import weft
from weft.ir.diagnose import Error

rng = np.random.default_rng(3)
ARRAYS: dict[str, Any] = {
    "x": rng.normal(size=(3, 4)), "y": rng.normal(size=(3, 4)), "v": rng.normal(size=7),
    "w": rng.normal(size=7), "f": rng.normal(size=(3, 4)).astype(np.float32),
    "h": rng.normal(size=(3, 4)).astype(np.float16), "i": rng.integers(-5, 6, (3, 4)),
    "n": rng.integers(0, 6, 9), "i8": rng.integers(-128, 128, (3, 4)).astype(np.int8),
    "u8": rng.integers(0, 256, (3, 4)).astype(np.uint8), "m": rng.random((3, 4)) < 0.5,
    "z": rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4)), "s": np.float64(1.7),
    "q": rng.normal(size=(4, 4)), "inf": np.array([1, np.inf, -2.0, 0, 5]),
    "nan": np.array([1.0, np.nan, 3, -np.inf, np.nan, 0, 2]),
}

# What stands before the last semicolon is done first.
CALLS = """
np.divide.accumulate(x, axis=1); np.divide.accumulate(i); np.gcd.accumulate(n)
np.hypot.accumulate(v); np.arctan2.accumulate(v[:0]); np.divide.accumulate(v, dtype=np.float32)
np.divide.reduce(x, axis=-1, keepdims=True); np.remainder.reduce(v); np.logaddexp.accumulate(v)
np.bitwise_and.reduceat(i, [0, 2], axis=1); np.add.reduceat(v, np.sort(n[:6]))
np.add.reduceat(i8, np.sort(n[:2] % 3), axis=1); np.multiply(f, 2, casting="same_kind")
a = np.ones(6) | np.multiply.at(a, n, s) | a
a = np.zeros(6, np.float32) | np.divide.at(a, n, s) | a
a = np.zeros(6, int) | np.bitwise_xor.at(a, n, 5) | a
a = x.copy() | np.multiply.at(a, (n % 3, n % 4), 2) | a
a = x.copy() | np.sqrt.at(a, m) | a
a = x.copy() | np.negative.at(a, (slice(None), [1, 1])) | a
a = np.zeros((3, 4)) | b = a[:, 1] | np.power.at(b, [0, 0], s) | b += 1 | a
a = np.ones(6) | np.multiply.at(a, n[:0], s) | a
np.roots(v); np.roots(z[0]); np.polydiv(v, np.array([1, 0.5])); np.polydiv(v[:2], w); np.poly(q)
np.packbits(m); np.packbits(m, axis=1, bitorder="little"); np.unpackbits(u8, axis=0)
np.unpackbits(u8, count=-20); np.unpackbits(u8, axis=1, count=50)
np.linalg.eig(q); np.round(i * 7, -1); np.cross(v[:2], w[:2]); np.cross(x[:, :2], y[:, :3])
np.convolve(v, inf[:3]); np.convolve(v, inf[:3], "same"); np.convolve(inf[:3], v, "same")
np.correlate(v, inf[:3], "full"); np.correlate(inf[:3], v, "same"); np.convolve(h[0], h[1])
np.r_[v, 1, 2]; np.r_[1:3, v]; np.r_[0:1:5j, v]; np.c_[np.ones(7), v]; np.r_["1", x, y]
np.r_["0,2", v, w]; np.r_["1,2,0", v, w]; np.r_[f[0], 1.0, s]; np.c_[x, y]
[c[0] * d for c, d in np.ndenumerate(x)]; np.fromiter((c for c in v), float)
np.fromiter([c * 2 for c in v], np.float32, count=3)
np.vectorize(lambda c: c * 2 if c > 0 else -c)(f); np.vectorize(lambda c, d=2: c * d)(v, d=w)
np.vectorize(lambda c, d: (c, d * 2))(x, s); np.vectorize(lambda c: 1, otypes=[float])(v)
np.vectorize(lambda c, p: c * p[1], excluded=[1])(v, [1, 2]); np.vectorize(np.sin)(x)
np.linalg.norm([v[0], v[1]]); np.linalg.det([[v[0], v[1]], [1, 2]]); np.clip([s, v[0]], 0, 1)
np.sqrt([v[0] ** 2, 1]); np.maximum.reduce([v, w, 2 * v]); np.logical_or.reduce((v > 0, w > 0))
sorted(v, reverse=True); np.add([s, 1], v[:2]); np.subtract.outer([s, 1], [2, 3])
np.median(v[v > 0]); np.percentile(v[v > 0], [30, 60]); np.median(nan[nan > 0]); np.median(v[v > 9])
np.extract(v > 0, v).sum(); np.median(i[i > 0])
k = np.arange(7) > 2 | v[k]
k = np.arange(7) > 2 | np.concatenate([np.sort(v[k]), w[~k]])
k = np.arange(7) > 2 | v[k] @ np.arange(4.0) + len(v[k])
k = np.arange(7) > 2 | a = np.zeros(7) | a[k] = w[:4] | a
k = np.ones(7, bool) | a = np.zeros(7) | a[k] = a[k] * a[k] + v[k] | a
a = x.copy() | a[np.array([True, False, True])] = y[:2] | a
x.flat[3]; sum(x.flat); np.sum(x.flat); x.T.flat[:4]; x.max().item() * f; i8[0, 0].item() + 1000
x.item((1, 2)); np.array(x.tolist()); v.compress([True, False, True])
a = x.copy() | a.flat[::5] = [1, 2, 3] | a.T.flat[1] = s | a
a = np.zeros((3, 4)) | b = a[:, 0] | a.flat[::5] = s | b += 1 | a
a = np.zeros((3, 4)) | a.flat = v[:4] | a
a = np.zeros(5, complex) | a.real = v[:5] | a.imag[1:] = 2 | a
a = np.zeros(7, int) | a[2:4] = nan[0] | a[n[0]] = v[1] * 5 | a
isinstance(x, np.ndarray), isinstance(x[0, 0], np.ndarray), isinstance(x + 1, (list, np.ndarray))
z ** 5; z ** -3; z ** np.array([1, 2, 3, -7]); np.fmax(z, 1j); np.searchsorted([0, 1], f)
"""
LINES = [text.strip() for line in CALLS.splitlines()
         for text in (line.split(";") if "|" not in line or "(v > 0" in line else [line])
         if text.strip()]


def function(text: str) -> tuple[Any, list[Any]]:
    """A call as a function of the arrays that it names, and these."""
    *body, result = text.split(" | ")
    used = set(compile(text.replace(" | ", "\n"), text, "exec").co_names)
    names = [name for name in ARRAYS if name in used or any(
        name in getattr(part, "co_names", ()) for part in compile(
            text.replace(" | ", "\n"), text, "exec").co_consts)]
    lines = "".join(f"    {line}\n" for line in (*body, f"return {result}"))
    source = f"def call({', '.join(names)}):\n{lines}"
    return with_source.run(source, {"np": np})["call"], [ARRAYS[name] for name in names]


def parts(result: Any) -> list[Any]:
    return [part for each in result for part in parts(each)] if isinstance(
        result, (tuple, list)) else [result]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", LINES)
def test_a_call(text: str) -> None:
    call, arrays = function(text)
    with np.errstate(all="ignore"):
        wanted = call(*arrays)
    found = weft.compile(call)(*arrays)
    assert len(parts(found)) == len(parts(wanted))
    for one, other in zip(map(np.asarray, parts(found)), map(np.asarray, parts(wanted)),
                          strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        rtol = {2: 2e-3, 4: 1e-6}.get(one.dtype.itemsize, 1e-13) if one.dtype.kind in "fc" else 0
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


SPECIAL = [complex(re, im) for re in (0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan)
           for im in (0.0, -0.0, 0.5, -1.0, np.inf, -np.inf, np.nan)]
UFUNCS = [np.exp, np.log, np.log1p, np.sqrt, np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh,
          np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.abs, np.sign,
          np.reciprocal]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_functions_at_special_values(dtype: Any) -> None:
    """Infinities, NaN and signs of zeros of both parts."""
    z = np.array(SPECIAL, dtype)
    with np.errstate(all="ignore"):
        wanted = [ufunc(z) for ufunc in UFUNCS]
    found = weft.compile(lambda z: [ufunc(z) for ufunc in UFUNCS])(z)
    rtol = 1e-6 if dtype == np.complex64 else 1e-14
    for ufunc, one, other in zip(UFUNCS, found, wanted, strict=True):
        for a, b in ((np.real(one), np.real(other)), (np.imag(one), np.imag(other))):
            np.testing.assert_allclose(a, b, rtol=rtol, err_msg=ufunc.__name__)
            zeros = b == 0
            assert np.array_equal(np.signbit(a[zeros]), np.signbit(b[zeros])), ufunc.__name__


@pytest.mark.parametrize("factor", [np.nan, np.inf, 1e30])
def test_a_number_that_an_integer_cannot_hold(factor: float) -> None:
    def put(x: Any) -> Any:
        a = np.zeros(3, int)
        a[1] = x
        return a

    with pytest.raises(Error, match="NaN or too large cannot be set in an array of int64"):
        weft.compile(put)(np.float64(factor))
    np.testing.assert_array_equal(weft.compile(put)(np.float64(-2.5)), put(np.float64(-2.5)))


@pytest.mark.parametrize(("call", "code"), [
    (lambda x: x.astype(str), "W111"), (lambda x: np.polydiv(x[0], x[0])[1], "W124"),
    (lambda x: np.roots(x[0] * 0), "W124"), (lambda x: np.searchsorted(x[0] * 1j, 1), "W113"),
    (lambda x: np.divide.reduce(x, axis=None), "W121"), (lambda x: np.less.accumulate(x), "W111"),
    (lambda x: np.add.reduceat(x[0], x.argsort(1)[0, ::-1] * 0 - 1), "W124"),
    (lambda x: np.vectorize(np.sum, signature="(n),(n)->()")(x), "W102"),
    (lambda x: np.vectorize(np.dot, signature="(n),(n)->()")(x, x[:, 1:]), "W102"),
    (lambda x: np.vectorize(np.sum, signature="(n)->(n)")(x), "W102"),
    (lambda x: x[0, 0].view(np.uint8), "W102"), (lambda x: x.view(bool), "W113"),
    (lambda x: np.r_["r", x], "W113"), (lambda x: x.item(), "W102")])
def test_errors(call: Any, code: str) -> None:
    with pytest.raises(Error, match=code), warnings.catch_warnings():
        weft.compile(call)(ARRAYS["x"])


def test_rows_of_a_loop_lie_in_memory_of_their_own_shape() -> None:
    """What is scanned row by row, or stacked up so, may not share memory with another shape."""
    def doubled(x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            return carry, weft.cond(row > 0, lambda: row * 2, lambda: -row)

        return weft.scan(step, (), x)[1].reshape(2, 4)

    x = np.arange(-3.0, 5)
    np.testing.assert_array_equal(
        weft.compile(doubled)(x), np.where(x > 0, 2 * x, -x).reshape(2, 4))


RNG = np.random.default_rng(7)
F = RNG.normal(size=(3, 8))
VIEWS = (F, F.astype("f4"), np.abs(F * 90).astype("u1"), F > 0, F[:, :4] + 1j * F[:, 4:],
         (F * 90).astype("i8"))


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "f4", "i4", "u8", "f8", "c8", "c16"])
def test_views_of_other_sizes(dtype: str) -> None:
    for x in VIEWS:
        try:
            wanted = x.view(dtype)
        except ValueError:
            with pytest.raises((Error, ValueError)):
                weft.compile(lambda x: x.view(dtype))(x)
            continue
        found = weft.compile(lambda x: x.view(dtype))(x)
        assert found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes(), x.dtype


def test_writes_through_views_of_other_sizes() -> None:
    def function(x: Any) -> Any:
        y = x.copy()
        raw = y.view("u1")
        raw[:, 0] ^= 1
        y.view("u4")[0] = 7
        return y, raw

    for one, other in zip(weft.compile(function)(F), function(F), strict=True):
        assert one.tobytes() == other.tobytes()
    compiled = weft.compile(lambda x: x.view("u4"), dynamic={"x": {0: "n", 1: "m"}})
    for size in (0, 4, 8):
        x = np.ones((2, size), "u1")
        np.testing.assert_array_equal(compiled(x), x.view("u4"))
    with pytest.raises(Error):
        compiled(np.ones((2, 3), "u1"))


def test_vectorize_with_a_signature() -> None:
    inner = np.vectorize(np.dot, signature="(n),(n)->()")
    parts = np.vectorize(lambda a: (a - a.mean(), a.max()), signature="(n)->(n),()")
    inverse = np.vectorize(lambda m: np.linalg.inv(m @ m.T + np.eye(2)), signature="(n,m)->(n,n)")
    full = np.vectorize(np.convolve, signature="(n),(m)->(k)")
    for function, args in ((inner, (F, F[0])), (inner, (F[:, None], F)), (parts, (F,)),
                           (inverse, (F.reshape(6, 2, 2),)), (full, (F, F[0, :3]))):
        found = weft.tree.leaves(weft.compile(lambda *a: function(*a))(*args))  # noqa: B023
        for one, other in zip(found, weft.tree.leaves(function(*args)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("size", [0, 1, 3, 40])
def test_poly_of_many_zeros(size: int) -> None:
    zeros = RNG.uniform(-1, 1, size)
    def function(x: Any) -> Any:
        return np.poly(x)

    for compiled in (weft.compile(function), weft.compile(function, dynamic={"x": {0: "n"}})):
        np.testing.assert_allclose(compiled(zeros), np.poly(zeros), rtol=1e-6, atol=1e-12)


def test_poly_of_no_zeros_is_a_number() -> None:
    found = weft.compile(np.poly)(np.zeros(0))
    assert found == np.poly(np.zeros(0)) == 1 and type(found) is float


def test_poly_of_a_placeholder() -> None:
    with weft.Graph().as_default() as graph:
        zeros = weft.placeholder("f64", (None,))
        found = weft.numpy.poly(zeros)
    session = weft.Session(graph)
    for given in ([], [2.0], [1.0, -2.0, 0.5]):
        np.testing.assert_allclose(session.run(found, {zeros: given}), np.poly(given))


@pytest.mark.parametrize(("ufunc", "x"), [
    (np.hypot, F), (np.gcd, np.array([-4, 6, -3, 2], "i4")), (np.add, np.array([9, 9, -1], "i2")),
    (np.logical_and, np.array([3, 0, 2]))])
def test_reduceat_keeps_single_elements(ufunc: np.ufunc, x: Any) -> None:
    found = weft.compile(lambda x: ufunc.reduceat(x, [0, 2, 1]))(x)
    wanted = ufunc.reduceat(x, [0, 2, 1])
    np.testing.assert_allclose(found, wanted, rtol=1e-15)
    assert found.dtype == wanted.dtype


def test_sums_of_one_product_begin_at_zero() -> None:
    """0 + -0 is 0, in BLAS and in np.einsum."""
    x, y = np.array([[-1.0], [0.0]]), np.array([[0.0, -0.0, 3]])
    for function in (np.matmul, np.dot, lambda x, y: np.einsum("ik,kj->ij", x, y),
                     lambda x, y: np.tensordot(x[:, 0], y[0], 0), lambda x, y: x[0] @ y[:, 0],
                     lambda x, y: np.convolve(x[:, 0], y[0, :1]), np.outer, np.kron):
        for options in ({"opt": 0}, {"opt": 2}):
            found = weft.compile(lambda x, y: function(x, y), **options)(x, y)  # noqa: B023
            np.testing.assert_array_equal(np.signbit(found), np.signbit(function(x, y)))


@pytest.mark.parametrize("dtype", ["f2", "bfloat16", "f4", "i4", "c8"])
def test_dtypes_of_hfft(dtype: str) -> None:
    x = np.arange(1, 5).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    assert weft.compile(np.fft.hfft)(x).dtype == np.fft.hfft(x).dtype


def test_numpys_dtypes_and_orders() -> None:
    small = RNG.integers(1, 200, (6, 3)).astype("u1")
    for function, x in (
            (lambda x: np.cov(x, fweights=np.arange(8), dtype=np.float32), F),
            (lambda x: np.cov(x, dtype=np.float32), F), (np.lcm.reduce, small),
            (lambda x: np.lcm.reduceat(x, [0, 2, 1]), small),
            (lambda x: np.lcm.reduce(x, axis=1, keepdims=True), small)):
        found, wanted = weft.compile(lambda x: function(x))(x), function(x)  # noqa: B023
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        assert found.dtype == wanted.dtype


def test_rows_are_read_when_their_turn_comes() -> None:
    def function(x: Any) -> Any:
        y = x * 1
        turned = np.flip(y)
        for at, number in enumerate(y):
            turned[at] = number
        return y

    x = np.arange(5.0)
    np.testing.assert_array_equal(weft.compile(function)(x), function(x))


def test_numpy_is_told_that_rows_cannot_be_counted() -> None:
    compiled = weft.compile(lambda x, m: np.piecewise(x, m, [np.sin, np.cos]),
                            dynamic={"x": {0: "n"}, "m": {0: "n"}})
    x = np.arange(5.0)
    np.testing.assert_allclose(compiled(x, x > 2), np.piecewise(x, x > 2, [np.sin, np.cos]))
