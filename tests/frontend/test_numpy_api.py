"""NumPy functions, operators and indexing on traced values give what NumPy gives: the same dtype,
shape and numbers. Every case runs plainly and traced (by the reference interpreter)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.frontend.engine.eager import run_eagerly
from weft.frontend.face.signature import Signature
from weft.frontend.tracing.trace import trace_function
from weft.ir.diagnose import DTypeError, Error
from weft.ir.interp.graph import run_graph
from weft.ir.verify.verifier import verify_graph

DTYPES = (np.float32, np.float64, np.int32, np.int64, np.bool_)
RNG = np.random.default_rng(0)


def array(shape: Any, dtype: Any = np.float32, low: float = -3, high: float = 3) -> Any:
    return RNG.uniform(low, high, shape).astype(dtype)


def check(function: Any, *args: Any, rtol: float = 2e-6) -> None:
    with np.errstate(all="ignore"):
        expected = function(*args)
    got = run_eagerly(function, args)
    if not isinstance(expected, (tuple, list)):
        expected, got = [expected], [got]
    assert len(expected) == len(got)
    for wanted, found in zip(expected, got, strict=True):
        assert np.result_type(found) == np.result_type(wanted)
        assert np.shape(found) == np.shape(wanted)
        exact = np.result_type(wanted).kind in "iub"
        np.testing.assert_allclose(found, wanted, rtol=0 if exact else rtol,
                                   atol=0 if exact else rtol, equal_nan=True)


X, Y = array((3, 4)), array((3, 4))
V, W = array(4), array((4, 5))
B = array((2, 3, 4))
INTS = np.arange(12, dtype=np.int64).reshape(3, 4) - 5
M = X > 0

UNARY = [np.exp, np.exp2, np.expm1, np.tanh, np.sinh, np.cosh, np.sin, np.cos, np.tan, np.arctan,
         np.floor, np.ceil, np.rint, np.trunc, np.abs, np.absolute, np.fabs, np.negative,
         np.positive, np.sign, np.square, np.reciprocal, np.isnan, np.isinf, np.isfinite,
         np.logical_not, np.signbit, np.cbrt, np.arcsinh, np.deg2rad, np.rad2deg, np.radians,
         np.degrees, np.conjugate, np.spacing]


@pytest.mark.parametrize("ufunc", UNARY[:-1], ids=lambda u: u.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_unary_ufuncs(ufunc: Any, dtype: Any) -> None:
    x = array((3, 4), dtype)
    check(lambda x: ufunc(x), x)


@pytest.mark.parametrize("ufunc", [np.log, np.log2, np.log10, np.log1p, np.sqrt, np.arccosh],
                         ids=lambda u: u.__name__)
def test_positive_ufuncs(ufunc: Any) -> None:
    check(lambda x: ufunc(x), array((3, 4), low=1.1, high=9))
    check(lambda x: ufunc(x), array((3, 4), np.int64, low=2, high=9))


@pytest.mark.parametrize("ufunc", [np.arcsin, np.arccos, np.arctanh], ids=lambda u: u.__name__)
def test_unit_ufuncs(ufunc: Any) -> None:
    check(lambda x: ufunc(x), array((3, 4), low=-0.9, high=0.9))


SPECIAL_VALUES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 1e30, -2.5], np.float64)


@pytest.mark.parametrize("ufunc", [
    np.hypot, np.logaddexp, np.logaddexp2, np.fmax, np.fmin, np.copysign, np.heaviside, np.maximum,
    np.minimum, np.arctan2, np.add, np.multiply], ids=lambda u: u.__name__)
def test_binary_ufuncs_at_special_values(ufunc: Any) -> None:
    x, y = np.meshgrid(SPECIAL_VALUES, SPECIAL_VALUES)
    check(lambda x, y: ufunc(x, y), x, y)


@pytest.mark.parametrize("ufunc", [np.arcsinh, np.cbrt, np.signbit, np.sign, np.rint],
                         ids=lambda u: u.__name__)
def test_unary_ufuncs_at_special_values(ufunc: Any) -> None:
    check(lambda x: ufunc(x), SPECIAL_VALUES)


BINARY = [np.add, np.subtract, np.multiply, np.true_divide, np.floor_divide, np.remainder,
          np.maximum, np.minimum, np.equal, np.not_equal, np.less, np.less_equal, np.greater,
          np.greater_equal, np.logical_and, np.logical_or, np.logical_xor, np.arctan2, np.hypot,
          np.logaddexp, np.fmax, np.fmin, np.float_power, np.bitwise_and, np.bitwise_or,
          np.bitwise_xor, np.left_shift, np.right_shift, np.copysign, np.power]
PYTHON = [2, 1.5, True]


def operand(kind: Any, low: float = 1) -> Any:
    return kind if isinstance(kind, (bool, int, float)) else array((3,), kind, low=low, high=4)


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_promotion_is_numpys(ufunc: Any) -> None:
    for left, right in itertools.product((*DTYPES, *PYTHON), repeat=2):
        x, y = operand(left), operand(right)
        python = isinstance(left, (bool, int, float)) + isinstance(right, (bool, int, float))
        if python == 2:
            continue
        try:
            expected = ufunc(x, y)
        except TypeError:
            with pytest.raises(DTypeError):
                run_eagerly(lambda x, y, ufunc=ufunc: ufunc(x, y), (x, y))
            continue
        if expected.dtype.itemsize < 4 and expected.dtype != bool:
            continue  # float16 and int8, which NumPy makes of bools
        check(lambda x, y, ufunc=ufunc: ufunc(x, y), x, y)
        if python:  # a number in the code, and not an argument
            if isinstance(left, (bool, int, float)):
                check(lambda a, ufunc=ufunc, left=left: ufunc(left, a), y)
            else:
                check(lambda a, ufunc=ufunc, right=right: ufunc(a, right), x)


OPERATORS = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b,
    lambda a, b: a // b, lambda a, b: a % b, lambda a, b: divmod(a, b), lambda a, b: a < b,
    lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b, lambda a, b: a == b,
    lambda a, b: a != b, lambda a, b: +a - -b, lambda a, b: abs(a) + b]


@pytest.mark.parametrize("op", range(len(OPERATORS)))
def test_python_numbers_stay_python_numbers(op: int) -> None:
    function = OPERATORS[op]
    for a, b in itertools.product((3, 2.5, True, -7), (2, 0.5, True)):
        expected, got = function(a, b), run_eagerly(function, (a, b))
        assert got == expected and type(got) is type(expected), (a, b)
        x = np.array([1, 2], np.float32)
        check(lambda x, a, b: x * function(a, b)[0] if op == 6
              else x * function(a, b), x, a, b)


def test_weak_numbers_take_the_dtype_of_arrays() -> None:
    x32, i32 = np.ones(3, np.float32), np.ones(3, np.int32)
    check(lambda x, lr: x * lr, x32, 0.1)
    check(lambda x, lr: x * (lr * 2 + 1), x32, 0.1)
    check(lambda x, n: x + n, i32, 2)
    check(lambda x, lr: x * np.sqrt(lr), x32, 0.1)  # np.sqrt gives a NumPy float64
    check(lambda x, lr: x * lr, i32, 0.5)
    check(lambda x, s: x * s, x32, np.float64(0.1))
    check(lambda x, n: x ** n, x32, 2)
    check(lambda a, b: (a & b, a | b, a ^ b), True, False)
    check(lambda n: (n ** 2, n ** -1, n << 1), 5)
    assert isinstance(run_eagerly(lambda lr: lr * 2, (0.25,)), float)
    assert isinstance(run_eagerly(lambda n: n ** -1, (4,)), float)


def test_constants() -> None:
    check(lambda x: x + np.float64(1.5), X)
    check(lambda x: x + np.array(1.5), X)
    check(lambda x: x * [1, 2, 3, 4], X)
    check(lambda x: [0.5, 1.0, 2.0, 3.0] - x, V)
    check(lambda x: np.add(x, [x[0], 2.0, 3.0, x[1]]), V)
    with pytest.raises(OverflowError, match="W131: Python integer 1099511627776 out of bounds"):
        run_eagerly(lambda x: x + 2 ** 40, (np.ones(3, np.int32),))
    for compare in (np.less, np.greater, np.equal, np.not_equal):
        check(lambda x, c=compare: c(x, 2 ** 40), np.ones(3, np.int32))
        check(lambda x, c=compare: c(-2 ** 40, x), np.ones(3, np.int32))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 5, 7, -1, -2, -3, 0.5, 2.5, 2.0])
def test_constant_powers(exponent: Any) -> None:
    check(lambda x: x ** exponent, array((5,), low=0.3, high=3))
    check(lambda x: np.power(x, exponent), array((5,), np.float64, low=0.3, high=3))
    if isinstance(exponent, int) and exponent >= 0:
        check(lambda x: x ** exponent, INTS)
    if exponent == 2:
        check(lambda x: x ** exponent, X)


CASES: dict[str, Any] = {
    "sum": lambda x, i, m: (x.sum(), np.sum(x, axis=0), x.sum(-1, keepdims=True), np.sum(i),
                            np.sum(m), m.sum(axis=1), i.astype(np.int32).sum(axis=0),
                            np.sum(x, axis=(0, 1)), np.sum(x, dtype=np.float64), np.add.reduce(x)),
    "mean": lambda x, i, m: (x.mean(), np.mean(x, axis=1), np.mean(i), np.mean(m, axis=0),
                             np.mean(x, axis=0, keepdims=True), np.mean(i, dtype=np.float32)),
    "extremes": lambda x, i, m: (x.max(), np.min(x, axis=0), np.amax(i, axis=1), np.amin(m),
                                 np.max(x, axis=(0, 1), keepdims=True), np.maximum.reduce(x),
                                 np.ptp(x, axis=0), np.minimum.reduce(x, axis=1)),
    "arg": lambda x, i, m: (x.argmax(), np.argmin(x, axis=0), np.argmax(i, axis=1),
                            np.argmax(m, axis=1), np.argmax(x, axis=1, keepdims=True),
                            np.argmin(x, keepdims=True)),
    "truth": lambda x, i, m: (m.any(), np.all(m, axis=0), np.any(x > 2, axis=1, keepdims=True),
                              np.all(x), np.count_nonzero(m), np.count_nonzero(x > 0, axis=1)),
    "variance": lambda x, i, m: (np.var(x), x.std(axis=0), np.var(x, axis=1, ddof=1),
                                 np.std(i), np.var(x, keepdims=True), np.std(x, ddof=1)),
    "average": lambda x, i, m: (np.average(x), np.average(x, axis=0, weights=[1, 2, 3]),
                                np.average(x, weights=x * x)),
    "norm": lambda x, i, m: (np.linalg.norm(x), np.linalg.norm(x, axis=1), np.linalg.norm(i),
                             np.linalg.norm(x[0], 1), np.linalg.norm(x[0], np.inf),
                             np.linalg.norm(x, "fro"), np.linalg.norm(x, axis=0, keepdims=True)),
    "reshape": lambda x, i, m: (x.reshape(4, 3), np.reshape(x, -1), x.reshape((2, -1)), x.ravel(),
                                x.flatten(), np.ravel(i), x.reshape(2, 2, 3)),
    "transpose": lambda x, i, m: (x.T, np.transpose(x), x.transpose(1, 0), np.swapaxes(x, 0, -1),
                                  np.moveaxis(x, 0, 1), x.mT, np.matrix_transpose(x),
                                  np.transpose(x, (-1, 0))),
    "dims": lambda x, i, m: (np.expand_dims(x, 0), np.expand_dims(x, (0, -1)), x[None].squeeze(),
                             np.squeeze(x[:, None], axis=1), np.atleast_1d(x), np.atleast_2d(x[0]),
                             np.atleast_3d(x), np.atleast_3d(x[0])),
    "broadcast": lambda x, i, m: (np.broadcast_to(x, (2, 3, 4)), np.broadcast_to(x[:, :1], (3, 7)),
                                  *np.broadcast_arrays(x, x[:1])),
    "join": lambda x, i, m: (np.concatenate([x, i]), np.concatenate([x, x], axis=1),
                             np.concatenate((x, i), axis=None), np.stack([x, x]),
                             np.stack([x, i, m], axis=-1), np.hstack([x, x]), np.vstack([x, x]),
                             np.hstack([x[0], x[1]]), np.vstack([x[0], x[1]])),
    "split": lambda x, i, m: (*np.split(x, 2, axis=1), *np.split(x, [1, 2]),
                              *np.array_split(x, 3, axis=1)),
    "flip": lambda x, i, m: (np.flip(x), np.flip(x, 0), np.fliplr(x), np.flipud(x),
                             np.flip(x, (0, 1)), np.roll(x, 1), np.roll(x, -2, axis=1),
                             np.roll(x, (1, 1), axis=(0, 1)), np.roll(x, 7, axis=0)),
    "repeat": lambda x, i, m: (np.tile(x, 2), np.tile(x, (2, 1)), np.tile(x, (2, 1, 3)),
                               np.repeat(x, 2), np.repeat(x, 3, axis=0), x.repeat(2, axis=1)),
    "pad": lambda x, i, m: (np.pad(x, 1), np.pad(x, ((1, 2), (0, 3)), constant_values=7),
                            np.pad(i, (1, 2), mode="constant"), np.pad(x, [(0, 1), (2, 0)])),
    "take": lambda x, i, m: (np.take(x, [0, 2], axis=0), x.take([1, 5]),
                             np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), axis=1),
                             np.take_along_axis(x, np.array([[0, 1, 2, 0]]), axis=0)),
    "like": lambda x, i, m: (np.zeros_like(x), np.ones_like(i), np.full_like(x, 2.5),
                             np.full_like(i, 2.5), np.zeros((2, 3), like=x),
                             np.full((2,), 3, like=x), np.eye(3, like=x),
                             np.arange(5, like=x), np.arange(2, 6, like=x),
                             np.ones(3, np.int32, like=x), np.zeros_like(x, shape=(2,)),
                             np.arange(0, 1, 0.25, like=x), np.array([1, 2], like=x)),
    "clip": lambda x, i, m: (np.clip(x, -1, 1), x.clip(0), np.clip(x, None, 0.5),
                             np.clip(i, -2, 2), np.clip(i, 0.5, 2), np.clip(x, x * 0.5, 1)),
    "select": lambda x, i, m: (np.where(m, x, 0), np.where(m, i, 1.5), np.where(x > 0, x, i),
                               np.where(m, 1, 0), np.where(i, x, -x),
                               np.select([x > 1, x > 0], [x, x * 2], -1)),
    "close": lambda x, i, m: (np.isclose(x, x + 1e-7), np.allclose(x, x), np.array_equal(x, x),
                              np.array_equal(x, x[0]), np.isclose(i, i),
                              np.nan_to_num(np.log(x)), np.nan_to_num(i),
                              np.nan_to_num(x / 0, nan=1, posinf=2)),
    "round": lambda x, i, m: (np.round(x), x.round(2), np.around(x, 1), np.round(i)),
    "diff": lambda x, i, m: (np.diff(x), np.diff(x, axis=0), np.diff(i, n=2), np.diff(m)),
    "triangle": lambda x, i, m: (np.tril(x), np.triu(x), np.tril(i, 1), np.triu(x, -1),
                                 np.trace(x), np.trace(i, 1), np.trace(x, offset=-1),
                                 np.tril(x[0])),
    "convert": lambda x, i, m: (x.astype(np.int32), i.astype("f4"), m.astype(float), x.copy(),
                                np.copy(x), np.add(i, i, dtype=np.float64)),
    "outer": lambda x, i, m: (np.outer(x[0], x[1]), np.add.outer(x[0], i[0]),
                              np.multiply.outer(x, x[0])),
    "empty": lambda x, i, m: (x[:0].sum(), x[:, :0].sum(axis=1), np.concatenate([x[:0], x]),
                              x[3:] + 1),
    "shape": lambda x, i, m: (x.reshape(np.shape(x)), np.size(x) * x, x * np.ndim(x), x * len(x)),
}


@pytest.mark.parametrize("name", CASES)
def test_functions(name: str) -> None:
    check(CASES[name], X, INTS, M)


PRODUCTS: dict[str, Any] = {
    "matmul": lambda x, w, v, b: (x @ w, w.T @ x.T, x @ v, v @ w, v @ v, b @ w, b @ v,
                                  np.matmul(b, b.mT), v @ b.mT, b[:, None] @ w, x @ b.mT),
    "dot": lambda x, w, v, b: (np.dot(x, w), x.dot(v), np.dot(v, v), np.dot(b, w), np.dot(v, 2.0),
                               np.dot(b, b.mT), np.vdot(x, x), np.inner(x, x), np.inner(v, v)),
    "tensordot": lambda x, w, v, b: (np.tensordot(x, w, 1), np.tensordot(b, x, ((1, 2), (0, 1))),
                                     np.tensordot(x, w, ((1,), (0,))), np.tensordot(v, v, 0),
                                     np.tensordot(b, w, axes=(-1, 0))),
    "einsum": lambda x, w, v, b: (
        np.einsum("ij,jk->ik", x, w), np.einsum("ij,jk", x, w), np.einsum("ij->ji", x),
        np.einsum("ij->j", x), np.einsum("ij->", x), np.einsum("bij,jk->bik", b, w),
        np.einsum("i,j->ij", v, v), np.einsum("bij,bij->b", b, b),
        np.einsum("...ij,jk->...ik", b, w),
        np.einsum("ij,jk,kl->il", x, w, w.T), np.einsum("ij,k->i", x, v),
        np.einsum("bij,ij->bj", b, x), np.einsum("ij,ij->ij", x, x), np.einsum("i,i,i->", v, v, v)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    check(PRODUCTS[name], X, W, V, B)


def test_integer_and_bool_products() -> None:
    check(lambda i, m: (i @ i.T, m @ m.T, np.dot(i, i.T), i @ m.T, np.vdot(m, m), np.vdot(i, i)),
          INTS, M)
    check(lambda x, i: (x @ i.T, i @ x.T), X.astype(np.float64), INTS)


@pytest.mark.skipif(not hasattr(np, "vecdot"), reason="needs NumPy 2.2")
def test_vector_ufuncs() -> None:
    check(lambda x, v: (np.vecdot(x, v), np.vecdot(x, x)), X, V)
    if hasattr(np, "matvec"):
        check(lambda x, v, w: (np.matvec(x, v), np.vecmat(v, w)), X, V, W)


def test_scipy_special_traces() -> None:
    special = pytest.importorskip("scipy.special")
    x = array((5,), low=0.1, high=0.9)
    for function in (special.erf, special.expit, special.logit, special.entr):
        check(lambda x, f=function: f(x), x, rtol=2e-6)
    check(lambda x: special.xlogy(x, x), x)
    check(lambda x: special.xlogy(np.where(x > 0.5, 0, x), 0 * x), x)
    check(lambda x: special.xlog1py(x, x), x)


INDEXES: dict[str, Any] = {
    "ints": lambda x, i, j: (x[0], x[-1], x[1, 2], x[0, -1, 2], x[..., 1], x[1, ..., 0]),
    "slices": lambda x, i, j: (x[1:], x[:, ::2], x[::-1], x[:, 2:0:-1], x[-2:, 1:3], x[5:],
                               x[..., ::-2], x[:], x[:-1, 1:], x[::-3, ::-1, 3:1:-1]),
    "new": lambda x, i, j: (x[None], x[:, None], x[..., None], x[None, 0, None, 1:]),
    "arrays": lambda x, i, j: (x[i], x[:, i], x[i, i], x[i, :, j], x[:, i, j], x[[0, 1]], x[i, 0],
                               x[0, i], x[0, :, j], x[..., i], x[i, ..., j], x[:, i[:, None], j]),
    "mixed": lambda x, i, j: (x[i, None], x[None, i], x[i, None, j], x[:, None, i], x[1:, i, ::2],
                              x[i, :, 0], x[:, i, 1:], x[i, j, None], x[[], 0], x[i][0],
                              x[:, np.array([[0, 1], [2, 0]])]),
}


@pytest.mark.parametrize("name", INDEXES)
def test_indexing(name: str) -> None:
    x = array((3, 3, 4))
    i, j = np.array([0, 2]), np.array([-1, 1])
    check(INDEXES[name], x, i, j)
    check(lambda x: INDEXES[name](x, i, j), x)  # closed-over index arrays


def test_indexing_by_traced_scalars() -> None:
    x = array((3, 4))
    check(lambda x, n: (x[n], x[:, n], x[n, n], x[n, 1], x[0, n], x[n - 2]), x, 1)
    check(lambda x, n: (x[n], x[n, ::2]), x, np.int32(2))
    check(lambda x: x[np.argmax(x[:, 0])], x)


def index_items() -> Any:
    bound = st.one_of(st.none(), st.integers(-6, 6))
    step = st.one_of(st.none(), st.integers(-3, 3).filter(bool))
    return st.one_of(
        st.integers(-2, 1), st.builds(slice, bound, bound, step), st.none(),
        st.lists(st.integers(-2, 1), min_size=2, max_size=2),
        st.lists(st.lists(st.integers(-2, 1), min_size=2, max_size=2), min_size=1, max_size=1))


@settings(max_examples=300, deadline=None)
@given(st.lists(index_items(), max_size=4), st.integers(-1, 4))
def test_any_index(items: list[Any], dots: int) -> None:
    used = sum(item is not None for item in items)
    index: tuple[Any, ...] = tuple(items)
    if 0 <= dots <= len(items):
        index = (*items[:dots], Ellipsis, *items[dots:])
    if used > 3:
        return
    check(lambda x: x[index], np.arange(24.0).reshape(2, 3, 4))


@settings(max_examples=200, deadline=None)
@given(st.lists(index_items().filter(lambda i: not isinstance(i, list)), max_size=4),
       st.booleans(), st.booleans())
def test_any_update(items: list[Any], scalar: bool, add: bool) -> None:
    if sum(item is not None for item in items) > 3:
        return
    index = tuple(items)
    x = np.arange(24.0).reshape(2, 3, 4)
    value = np.float64(-1) if scalar else -np.arange(x[index].size * 1.0).reshape(x[index].shape)

    def change(x: Any, value: Any) -> Any:
        y = x.copy()
        y[index] = y[index] + value if add else value
        return y

    check(change, x, value)
    traced = run_eagerly(lambda x, v: x.at[index].add(v) if add else x.at[index].set(v), (x, value))
    np.testing.assert_array_equal(traced, change(x, value))


def test_updates_at_index_arrays() -> None:
    x, i, j = array((4, 5, 6)), np.array([0, 2, 0]), np.array([1, 1, -1])

    def plain(index: Any, value: Any) -> Any:
        y = x.copy()
        np.add.at(y, index, value)
        return y

    for index in ((i,), (slice(None), i), (i, slice(None), j), (slice(None), i, j), (i, 1),
                  (slice(1, 3), i), (i, slice(None, None, -2)), (0, i), (..., i)):
        shape = x[index].shape
        for value in (np.float32(2), array(shape), array(shape[-1:])):
            got = run_eagerly(lambda x, v, index=index: x.at[index].add(v), (x, value))
            np.testing.assert_allclose(got, plain(index, value), rtol=1e-6)


def test_setting_by_traced_integers_and_masks() -> None:
    x, n = array((4, 5)), 2

    def change(x: Any, n: Any) -> Any:
        a, b, c, d = x.copy(), x.copy(), x.copy(), x.copy()
        a[n] = 1
        b[:, n] = x[:, 0]
        c[n, 1:3] = x[0, :2]
        d[x > 0] = -1
        e = x * 1
        e[n - 4, n] += 10
        return a, b, c, d, e

    check(change, x, n)
    i = np.array([0, 2, 0])
    got = run_eagerly(lambda x, i: x.at[i].set(7.0), (x, i))
    np.testing.assert_array_equal(got, np.where(np.isin(np.arange(4), i)[:, None], 7, x))
    got = run_eagerly(lambda x, i: x.at[:, i].set(0), (x, i))
    np.testing.assert_array_equal(got, np.where(np.isin(np.arange(5), i), 0, x))


def test_a_mask_that_is_known_while_tracing() -> None:
    x, whole, rows = array((4, 5)), array((4, 5)) > 0, np.array([True, False, False, True])

    def change(x: Any) -> Any:
        a, b = x.copy(), x.copy()
        a[whole] = -1
        b[rows] = x[0]
        return a, b

    check(change, x)
    added = run_eagerly(lambda x: x.at[rows].add(2.0), (x,))
    np.testing.assert_array_equal(added, np.where(rows[:, None], x + np.float32(2), x))


def run_symbolic(function: Any, spec: str, x: Any) -> Any:
    traced = trace_function(function, (spec,))
    verify_graph(traced.graph)
    return run_graph(traced.graph, [x, *(c.array for c in traced.captures)])


def test_slices_of_symbolic_dims_clamp_as_those_of_numpy() -> None:
    slices = [np.s_[1:], np.s_[:-1], np.s_[::2], np.s_[::-1], np.s_[::-2], np.s_[:3], np.s_[2:5],
              np.s_[-3:], np.s_[-3:-1], np.s_[-1], np.s_[2], np.s_[-3], np.s_[3::-1], np.s_[-1::-1],
              np.s_[1:-1], np.s_[-4::2], np.s_[:, -2:], np.s_[..., None, 0:2, 1]]
    for size, index in itertools.product((0, 1, 3, 4, 7), slices):
        x = np.arange(size * 4.0).reshape(size, 4)
        try:
            wanted = x[index]
        except IndexError:
            with pytest.raises(IndexError, match="W124"):
                run_symbolic(lambda x, index=index: x[index], "f64[b,4]", x)
            continue
        (found,) = run_symbolic(lambda x, index=index: x[index], "f64[b,4]", x)
        np.testing.assert_array_equal(found, wanted)
    table = np.arange(12.0).reshape(4, 3)

    def positions(x: Any) -> Any:
        return np.array(table, like=x)[:x.shape[0]] * 1

    for size in (0, 3, 4, 5):
        (found,) = run_symbolic(positions, "f64[b]", np.ones(size))
        np.testing.assert_array_equal(found, table[:size])


@pytest.mark.parametrize("size", [1, 2, 7])
def test_symbolic_dims(size: int) -> None:
    x = array((size, 4))

    def function(x: Any) -> Any:
        n = x.shape[0]
        return (np.mean(x, axis=0), x / n, x.reshape(-1), x.reshape(n * 2, 2), x[::-1], x[:-1],
                np.full((n, 3), 0.0, like=x) + x[:, :1], x[1:] - x[:-1], np.arange(n, like=x) + 1,
                x.reshape(2, -1, 2), np.var(x, axis=0, ddof=0), 1.0 / n, np.sqrt(n) * x, x[None],
                np.concatenate([x, x]), x @ x.T, x.sum() / x.size, np.tile(x, (2, 1)),
                np.roll(x, 1, axis=1), np.eye(n, like=x), np.flip(x, 0), x[::2] if False else x)

    expected = function(x)
    for wanted, found in zip(expected, run_symbolic(function, "f32[b,4]", x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-5)


def test_symbolic_dims_compare_when_it_is_certain() -> None:
    def function(x: Any, y: Any) -> Any:
        assert x.shape == y.shape
        assert x.shape[0] != x.shape[0] + 1
        assert hash(x.shape[0]) == hash(y.shape[0])
        return x + y

    trace_function(function, ("f32[b]", "f32[b]"))
    with pytest.raises(Error) as caught:
        trace_function(lambda x, y: x + y, ("f32[b]", "f32[b + 2]"))
    assert caught.value.code == "W101" and "dims b and b + 2 differ" in caught.value.message


def test_dynamic_names() -> None:
    x = {"w": array((5, 3)), "b": array((5,))}
    for name in ("x.w", "x['w']", 'x["w"]'):
        signature = Signature(lambda x: x["w"].sum(), dynamic={name: {0: "n"}})
        traced = trace_function(signature.function, (x,), signature=signature)
        assert [str(leaf.type) for leaf in traced.leaves] == ["f32[n,3]", "f32[5]"]
    signature = Signature(lambda x: x["w"].sum(), dynamic={"x": {0: "n"}})
    traced = trace_function(signature.function, (x,), signature=signature)
    assert [str(leaf.type) for leaf in traced.leaves] == ["f32[n,3]", "f32[n]"]


@pytest.mark.parametrize("ndmin", [0, 1, 2, 4])
def test_arrays_of_at_least_so_many_dims(ndmin: int) -> None:
    check(lambda x, v: (np.array(x, ndmin=ndmin, like=x) * 2, np.array(v, ndmin=ndmin, like=v) + 1),
          X, V)


@pytest.mark.parametrize(("shape", "places", "axis"), [
    ((1, 4), (3, 2), 1), ((3, 1), (2, 4), 0), ((2, 1, 4), (2, 3, 1), 2), ((3, 4), (1, 2), 1)])
def test_take_along_axis_repeats_what_has_size_1(
    shape: tuple[int, ...], places: tuple[int, ...], axis: int
) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    i = np.arange(np.prod(places)).reshape(places) % shape[axis]
    check(lambda x, i: np.take_along_axis(x, i, axis), x, i)


@pytest.mark.parametrize("subscripts", ["ij,jk->iik", "ij,jk->iz"])
def test_results_of_einsum_that_mean_nothing(subscripts: str) -> None:
    with pytest.raises(ValueError, match=f"W102: the result of '{subscripts}' names a letter"):
        run_eagerly(lambda x, w: np.einsum(subscripts, x, w), (X, W))


def test_elements_set_at_arrays_beside_numbers_and_slices() -> None:
    def function(b: Any, row: Any, one: Any) -> Any:
        first, second, third = b.copy(), b.copy(), b.copy()
        first[np.array([0, 1]), 2] = row
        second[np.array([0, 1]), 1, 1:3] = row[1:3]
        third[1, np.array([2, 0])] = one
        return first, second, third

    check(function, B, X[0], X[1, 1])


@pytest.mark.parametrize("number", [7, -7, 5])
def test_sizes_are_divided_by_what_is_above_0(number: int) -> None:
    """The size stays a size where that is certain; else it is a traced integer."""
    def function(x: Any) -> Any:
        n = x.shape[0]
        return (x[:n // 2], x[n % 3:], x * (n // number), x * (number // n), x * (number % n),
                x + n // -2, x + n % -3)

    compiled = weft.compile(dynamic={"x": {0: "n"}})(function)
    for size in (1, 2, 9):
        x = np.arange(float(size))
        for found, wanted in zip(compiled(x), function(x), strict=True):
            np.testing.assert_array_equal(found, wanted, strict=True)


def test_random_floats_of_other_dtypes_are_refused() -> None:
    rng = weft.random.default_rng(0)
    with pytest.raises(weft.Error, match="W111: random floats are float32 or float64, not int32"):
        rng.random(3, dtype=np.int32)
