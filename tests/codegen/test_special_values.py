"""Every elementwise function at every special value, against NumPy and SciPy.

Zeros, subnormals, the ends of the range, infinities and NaN of both signs, halves, numbers around
2^mantissa; all pairs of them for two operands. Exactly rounded functions give NumPy's numbers to
the bit (NaN is NaN, zeros and infinities have their sign); the others to a few ULP, but zeros,
infinities and NaN where NumPy has them. On two machines and in the kernels' interpreter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from scipy import special

import weft
from weft.frontend.engine.building.link import make_program
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.frontend.numpy_api.elements import elementwise as ufuncs
from weft.frontend.numpy_api.elements import special as bodies
from weft.frontend.tracing.trace import trace_function
from weft.ir.interp.graph import run_plan
from weft.ir.ops.op import Kind
from weft.ir.ops.table import OPS
from weft.ir.scalar.random import SAMPLERS

Array = np.ndarray[Any, Any]

DTYPES = tuple(map(np.dtype, (np.float32, np.float64, np.int8, np.int16, np.int32, np.int64,
                              np.uint8, np.uint16, np.uint32, np.uint64, np.bool_)))
FLOATS = DTYPES[:2]

FUNCTIONS = {u.__name__: u for u in (*ufuncs.ROWS, *ufuncs.BODIES)}
# The others of scipy.special have tests of their own: ``test_special_functions``.
SPECIAL = ("erf", "expit", "logit", "xlogy", "xlog1py", "entr")
FUNCTIONS |= {name: getattr(special, name) for name in SPECIAL}
# Counts of shifts have rules of their own, by width.
del FUNCTIONS["left_shift"], FUNCTIONS["right_shift"]

# Functions whose results are not rounded exactly: allowed ULP, of NumPy's error and ours together.
CLOSE = MappingProxyType(dict.fromkeys((
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cbrt", "cos", "cosh",
    "entr", "erf", "exp", "exp2", "expit", "expm1", "float_power", "hypot", "log", "log10", "log1p",
    "log2", "logaddexp", "logaddexp2", "logit", "power", "sin", "sinh", "tan", "tanh", "xlog1py",
    "xlogy"), 4) | {"rad2deg": 2, "degrees": 2})  # NumPy's factor is 180 over pi in float32
# log(exp(x) + exp(y)) is next to 0 where x is about -exp(y): NumPy too adds a logarithm to the
# larger operand, so both are right to ULPs of that.
CANCELLING = frozenset(("logaddexp", "logaddexp2"))
# Refused by values, which a step finds out.
REFUSED = frozenset(("power",))
# Rows without operands of the user's, or that have tests of their own.
ELSEWHERE = frozenset(("select", "masked", "cast", "narrow", "unwrapped", "full", "iota", "dim",
                       "threefry", "shl", "shr", "ensure", "checked", "asserted", "awaiting",
                       "bitcast", "ipow", "to_int", "span", "gamma_density", "beta_density",
                       "gammainc_by_shape",
                       "betainc_by_first", "betainc_by_second", *SAMPLERS))


def specials(dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        signed = [-1, -2, -3, -7] if dtype.kind == "i" else []
        return np.array([0, 1, 2, 3, 7, limits.max, limits.max - 1, limits.min, limits.min + 1,
                         *signed], dtype)
    info = np.finfo(dtype)
    one, whole = dtype.type(1), 2.0**info.nmant
    huge, tiny = (1e20, 1e-20) if dtype == np.float32 else (1e160, 1e-160)
    positive: Array = np.array([
        0, info.smallest_subnormal, info.tiny / 2, info.tiny, tiny, 1e-10, 0.3, 0.5, np.nextafter(
            one, 0 * one), 1, np.nextafter(one, 2 * one), 1.5, 2, 2.5, 3, 10, whole / 2 + 0.5,
        whole, whole + 1, 2 * whole - 1, 1e10, huge, info.max, math.inf], dtype)
    return np.concatenate([positive, -positive, np.copysign(np.array([math.nan] * 2, dtype),
                                                            np.array([1, -1], dtype))])


def grid(dtype: np.dtype[Any], operands: int) -> list[Array]:
    """All combinations of special values."""
    return [part.ravel() for part in np.meshgrid(*[specials(dtype)] * operands)]


def numpys(function: Callable[..., Any], args: list[Array]) -> Any:
    """NumPy's results as a tuple, or None for a combination it refuses."""
    try:
        with np.errstate(all="ignore"):
            results = function(*args)
    except (TypeError, ValueError):
        return None
    return results if isinstance(results, tuple) else (results,)


def runs(function: Callable[..., Any], args: list[Array]) -> dict[str, list[Array]]:
    traced = trace_function(function, tuple(args), {})
    stages = Stages(traced.graph, Options(target="x86-64-v3"))
    here = make_program(Stages(traced.graph, Options()))
    return {"native": here.run(args), "x86-64-v3": make_program(stages).run(args),
            "interpreter": run_plan(stages.plan, args)}


def wrong(got: Array, want: Array, ulp: float, scale: Array | None = None) -> Array:
    """Where results differ: by class or sign, or by more than ``ulp`` of the larger of ``want`` and
    ``scale``."""
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind != "f":
        return np.asarray(got != want)
    with np.errstate(all="ignore"):
        both_nan = np.isnan(got) & np.isnan(want)
        same = (got == want) & (np.signbit(got) == np.signbit(want))
        size = np.abs(want) if scale is None else np.fmax(np.abs(want), scale)
        error = np.abs(got.astype(np.longdouble) - want) / np.spacing(size)
        # Half of the smallest number may be rounded up or down.
        edge = np.fmax(np.abs(got), size) <= np.finfo(want.dtype).smallest_subnormal
        alike = (np.signbit(got) == np.signbit(want)) & (edge | (got != 0) & (want != 0))
        near = np.isfinite(got) & np.isfinite(want) & (error <= ulp) & (
            alike if scale is None else True)
    return np.asarray(~(both_nan | same | near))


def check(name: str, function: Callable[..., Any], args: list[Array], ulp: float = 0,
          scale: Array | None = None, numpy: Callable[..., Any] | None = None) -> None:
    """Compare a function's runs with what NumPy has for it, or for ``numpy``."""
    wanted = numpys(numpy or function, args)
    assert wanted is not None
    for how, results in runs(function, args).items():
        for got, want in zip(results, wanted, strict=True):
            bad = wrong(got, want, ulp, scale)
            where = np.flatnonzero(bad)[:5]
            assert not bad.any(), (how, name, [arg[where] for arg in args], got[where], want[where])


def test_every_elementwise_row_is_tested() -> None:
    reached = {row.name for row in ufuncs.ROWS.values()}
    reached |= {"sigmoid", "digamma", "riemann_zeta", "si", "ci", "zeta", *bodies.UFUNCS}
    rows = {op.name for op in OPS.values() if op.kind is Kind.MAP}
    assert rows - reached == ELSEWHERE - {"shl", "shr"}
    assert set(CLOSE) <= set(FUNCTIONS) and set(REFUSED) <= set(FUNCTIONS)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str, dtype: np.dtype[Any]) -> None:
    function = FUNCTIONS[name]
    args = grid(dtype, function.nin)
    if np.dtype(np.float16) in _resolved(function, dtype):
        pytest.skip("NumPy computes it in float16")
    elif numpys(function, args) is None and name in REFUSED:
        with pytest.raises(weft.Error, match="negative integer powers"):
            weft.compile(lambda *xs: function(*xs))(*args)
    elif numpys(function, args) is None:
        with pytest.raises(weft.Error):
            trace_function(lambda *xs: function(*xs), tuple(args), {})
    else:
        scale = np.maximum(np.abs(args[0]), np.abs(args[1])) if name in CANCELLING else None
        check(name, lambda *xs: function(*xs), args, CLOSE.get(name, 0), scale)


def _resolved(function: Any, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    try:
        found: tuple[Any, ...] = function.resolve_dtypes(
            (dtype,) * function.nin + (None,) * function.nout)
    except TypeError:
        return ()
    return found


EXPONENTS = (-4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 0.5, -0.5, 1.5, 2.0, -2.0, True)


@pytest.mark.parametrize("dtype", [*FLOATS, np.dtype(np.int32), np.dtype(np.int8),
                                   np.dtype(np.bool_)], ids=str)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_with_constant_exponents(exponent: float, dtype: np.dtype[Any]) -> None:
    """``x ** -2`` of 1e20 in float32 is a subnormal, though x * x overflows."""
    def operator(x: Any) -> Any:
        return x ** exponent

    for function in (operator, lambda x: np.power(x, exponent)):
        (x,) = grid(dtype, 1)
        if numpys(function, [x]) is not None:
            # np.power(-0.0, 0.5) is what ** makes of it in new releases of NumPy only.
            numpy = operator if dtype.kind == "f" else function
            check(f"** {exponent}", function, [x], ulp=2, numpy=numpy)
        elif exponent < 0:
            with pytest.raises(weft.Error, match="negative integer powers"):
                trace_function(function, (x,), {})


def test_square_of_bools_is_numpys() -> None:
    x = np.array([True, False])
    assert weft.compile(lambda x: x ** 2)(x).dtype == (x ** 2).dtype == np.int8


@pytest.mark.parametrize("dtype", [*FLOATS, np.dtype(np.int32), np.dtype(np.uint8),
                                   np.dtype(np.bool_)], ids=str)
@pytest.mark.parametrize("options", [
    {}, {"nan": 1.5}, {"posinf": 7.0}, {"neginf": -3.0}, {"nan": 2, "posinf": 3, "neginf": 4},
    {"nan": np.inf}, {"nan": -np.inf}, {"posinf": np.nan}], ids=str)
def test_nan_to_num(options: dict[str, float], dtype: np.dtype[Any]) -> None:
    check("nan_to_num", lambda x: np.nan_to_num(x, **options), grid(dtype, 1))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_other_functions_of_one_operand(dtype: np.dtype[Any]) -> None:
    x, y = grid(dtype, 2)
    for name, function in {
        "round": np.round, "fix": np.fix, "clip": lambda x: np.clip(x, -1, 1), "abs": abs,
        "negative": lambda x: -x, "1 / x": lambda x: 1 / x, "x - x": lambda x: x - x,
        "max of a constant": lambda x: np.maximum(x, 0), "where": lambda x: np.where(x > 0, x, -x),
    }.items():
        check(name, lambda x, function=function: function(x), [x])
    check("divmod", lambda x, y: divmod(x, y), [x, y])
    check("isclose", lambda x, y: np.isclose(x, y), [x, y])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "xlogy", "xlog1py", "logit", "entr"])
def test_composed_functions_are_close_in_between(name: str, dtype: np.dtype[Any]) -> None:
    """The error of functions made of others, measured in more than float64."""
    rng = np.random.default_rng(8)
    function = FUNCTIONS[name]
    x = rng.uniform(0, 1, 2000) if name in ("logit", "entr") else rng.normal(0, 5, 2000)
    args = [x.astype(dtype), np.abs(rng.normal(0, 5, 2000)).astype(dtype)][:function.nin]
    wide = [arg.astype(np.longdouble) for arg in args]
    one = np.longdouble(1)
    exact = {
        "logit": lambda x: np.log(x) - np.log1p(-x), "entr": lambda x: -x * np.log(x),
        "xlogy": lambda x, y: x * np.log(y), "xlog1py": lambda x, y: x * np.log1p(y),
        "logaddexp": np.logaddexp,
        "logaddexp2": lambda x, y: np.maximum(x, y) + np.log1p(np.exp2(-abs(x - y))) / np.log(
            2 * one),
    }[name](*wide)
    for how, (got,) in runs(lambda *xs: function(*xs), args).items():
        size = np.maximum(np.abs(exact), np.abs(wide[0])) if name in CANCELLING else np.abs(exact)
        error = np.abs(got - exact) / np.spacing(size.astype(dtype))
        assert error.max() <= 4, (how, name, args[0][error.argmax()], error.max())


# -- what is seldom needed ----------------------------------------------------------------------


def test_far_out_in_some_lanes_of_a_vector() -> None:
    """Such lanes take a way of their own, the others keep their values."""
    near = np.linspace(-9, 9, 200)
    for function in (np.sin, np.cos, np.tan):
        compiled = weft.compile(lambda x, function=function: function(x))
        alone = compiled(near)
        for every in (1, 2, 7, 16, 33):
            x = near.copy()
            x[::every] = -1e300
            kept = np.arange(200) % every != 0
            np.testing.assert_array_equal(compiled(x)[kept], alone[kept])
            np.testing.assert_allclose(compiled(x)[~kept], function(-1e300), rtol=1e-15)


def test_seldom_needed_code_is_compiled_once_and_quickly() -> None:
    """Of one lane and without LLVM's care: optimised and of a whole vector it took three times as
    long to compile as the rest of the program."""
    x = np.ones((64, 64))
    text = weft.compile(lambda x: (np.sin(x) @ np.sin(x), np.sin(x.T @ x))).lower(x).as_text("llvm")
    heads = [line for line in text.splitlines() if "far_sine" in line and "define" in line]
    lanes = [line for line in heads if "_f64_x" in line]
    assert len(heads) == len({line.split("(")[0] for line in heads}) == len(lanes) + 1
    assert all("optnone" in line for line in heads)


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=str)
def test_remainders_are_exact(dtype: np.dtype[Any]) -> None:
    """Of any bits, of multiples and their neighbours, of quotients that have all bits or do not."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 256, (2, 4000, dtype.itemsize), "u1").view(dtype)[..., 0]
    divisors = rng.normal(size=4000).astype(dtype)
    multiples = (divisors * rng.integers(-2000, 2000, 4000)).astype(dtype)
    special = np.array([0, -0.0, 1, -5, np.inf, -np.inf, np.nan, np.finfo(dtype).tiny / 4,
                        np.finfo(dtype).max], dtype)
    pairs = (bits, (multiples, divisors), (np.nextafter(multiples, dtype.type(0)), divisors),
             (np.nextafter(multiples, dtype.type(np.inf)), divisors),
             np.array(np.meshgrid(special, special)).reshape(2, -1))
    for x, y in pairs:
        for function in (np.fmod, np.remainder, np.floor_divide):
            made = weft.compile(on_recompile="silent")(lambda x, y, f=function: f(x, y))
            with np.errstate(all="ignore"):
                want = function(x, y)
            got = made(x, y)
            np.testing.assert_array_equal(got, want)
            number = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])
