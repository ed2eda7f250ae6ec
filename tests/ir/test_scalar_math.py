"""The expansions of transcendental functions: error in ULP, limits, exact cases, cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special

from weft.ir.scalar import transcendental as scalar_math
from weft.ir.scalar import trigonometry as scalar_trigonometry
from weft.ir.scalar.number import FORMATS
from weft.ir.scalar.transcendental import EXPANSIONS, MAX_ULP

Array = np.ndarray[Any, Any]
Reference = Callable[..., Array]

BINARY = ("atan2", "pow", "hypot")
UNARY = tuple(name for name in EXPANSIONS if name not in BINARY)
PERIODIC = ("sin", "cos", "tan")
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "bool": np.bool_}
LIMITS = {"f32": (-126, 23), "f64": (-1022, 52)}  # least exponent of a normal number, mantissa bits


@dataclass(frozen=True)
class Value:
    data: Array
    dtype: str


def exact_fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of float64, rounded once: exact product, exact sums, one rounding to odd.

    (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008.)
    """
    def two_sum(x: Array, y: Array) -> tuple[Array, Array]:
        s = x + y
        t = s - x
        return s, (x - (s - t)) + (y - t)

    def halves(x: Array) -> tuple[Array, Array]:
        t = x * 134217729.0
        high = t - (t - x)
        return high, x - high

    p = a * b
    (a1, a2), (b1, b2) = halves(a), halves(b)
    e = a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2)
    high, low = two_sum(c, e)
    s, t = two_sum(p, high)
    v, lost = two_sum(t, low)
    bits = v.view(np.int64)
    outward = np.where((lost > 0) == (v > 0), 1, -1)
    odd = np.where((lost != 0) & (bits & 1 == 0), bits + outward, bits)
    exact = s + odd.view(np.float64)
    # Where the splitting may over- or underflow, 64 bits of extended precision must do.
    magnitude = np.abs(p)
    safe = (magnitude > 1e-200) & (np.maximum(np.maximum(np.abs(a), np.abs(b)), magnitude) < 1e280)
    plain = (a.astype(np.longdouble) * b + c).astype(np.float64)
    return np.where(safe & (np.abs(c) < 1e280), exact, plain)


class NumpyScalars:
    """The scalar primitives on arrays; ``fused`` says whether ``fma`` rounds once."""

    def __init__(self, fused: bool = True) -> None:
        self.fused = fused
        self.count: Counter[str] = Counter()

    def const(self, value: float, dtype: str) -> Value:
        return Value(np.asarray(value, DTYPES[dtype]), dtype)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        assert a.dtype == b.dtype == c.dtype
        self.count["fma"] += 1
        if not self.fused:
            return Value(a.data * b.data + c.data, a.dtype)
        if a.dtype == "f32":
            wide = a.data.astype(np.float64) * b.data + c.data
            return Value(wide.astype(np.float32), "f32")
        return Value(exact_fma(*np.broadcast_arrays(a.data, b.data, c.data)), "f64")

    def select(self, cond: Value, a: Value, b: Value) -> Value:
        assert cond.dtype == "bool" and a.dtype == b.dtype
        self.count["select"] += 1
        return Value(np.where(cond.data, a.data, b.data), a.dtype)

    def cast(self, x: Value, dtype: str) -> Value:
        self.count["cast"] += 1
        return Value(x.data.astype(DTYPES[dtype]), dtype)

    def bitcast(self, x: Value, dtype: str) -> Value:
        return Value(x.data.view(DTYPES[dtype]), dtype)

    def rarely(self, cond: Value, function: Any, args: Any, usual: Value) -> Value:
        there = np.flatnonzero(cond.data)
        data = np.array(np.broadcast_to(usual.data, cond.data.shape))
        chosen = (Value(np.broadcast_to(arg.data, data.shape)[there], arg.dtype) for arg in args)
        if len(there):
            data[there] = function(self, *chosen).data
        return Value(data, usual.dtype)

    def __getattr__(self, name: str) -> Callable[..., Value]:
        function: Callable[..., Array] = {
            "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
            "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
            "eq": np.equal, "ne": np.not_equal, "and_": np.bitwise_and, "or_": np.bitwise_or,
            "xor": np.bitwise_xor, "shl": np.left_shift, "shr": np.right_shift,
        }.get(name) or getattr(np, name)

        def apply(*args: Value) -> Value:
            assert len({arg.dtype for arg in args}) == 1, name
            self.count[name] += 1
            result = function(*(arg.data for arg in args))
            return Value(result, "bool" if result.dtype == np.bool_ else args[0].dtype)

        return apply


def evaluate(name: str, dtype: str, *args: Array, fused: bool = True) -> Array:
    """An expansion on arrays, in pieces that stay in the cache."""
    pieces = []
    step = 1 << 15
    with np.errstate(all="ignore"):
        for start in range(0, len(args[0]), step):
            values = (Value(arg[start:start + step], dtype) for arg in args)
            pieces.append(EXPANSIONS[name](NumpyScalars(fused), *values).data)
    return np.concatenate(pieces)


def logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


NUMPY: dict[str, Reference] = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "pow": np.power, "hypot": np.hypot, "sigmoid": logistic, "erf": special.erf,
}


def extended(name: str, *args: Array) -> Array:
    """The value in more than float64: NumPy's long double, mpmath where it has no function."""
    if name != "erf":
        with np.errstate(all="ignore"):
            wide = [arg.astype(np.longdouble) for arg in args]
            return np.asarray((NUMPY.get(name) or getattr(np, name))(*wide))
    high = special.erf(args[0])
    with mpmath.workprec(120):
        low = [float(mpmath.erf(float(x)) - float(y)) if math.isfinite(x) else 0.0
               for x, y in zip(args[0], high, strict=True)]
    return np.asarray(high.astype(np.longdouble) + np.array(low))


def errors(result: Array, exact: Array, dtype: str) -> Array:
    """|result - exact| in ULP of ``exact``; 0 where both are NaN or the same infinity."""
    least, mantissa = LIMITS[dtype]
    with np.errstate(all="ignore"):
        ulp = np.ldexp(exact.dtype.type(1),
                       np.maximum(np.frexp(exact)[1] - 1, least) - mantissa)
        error = np.abs(result - exact) / ulp
        rounded: Array = exact.astype(DTYPES[dtype])
        same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
        # The largest number for an infinity, or the other way round, is one rounding off.
        edge = np.abs(exact) / np.finfo(DTYPES[dtype]).max
        special_case = np.isinf(rounded) | np.isinf(result) | np.isnan(error)
        off = np.where((edge > 0.999999) & (edge < 1.000001), 1.0, np.inf)
        assert not np.any((np.signbit(result) != np.signbit(rounded)) & ~np.isnan(rounded))
    return np.where(special_case, np.where(same, 0.0, off), error)


def worst(name: str, dtype: str, exact: Array, *args: Array, fused: bool = True) -> float:
    error = errors(evaluate(name, dtype, *args, fused=fused), exact, dtype)
    return float(error.max())


def any_bits(rng: np.random.Generator, dtype: str, n: int) -> Array:
    """All exponents alike: subnormal and huge numbers, infinities, NaN."""
    bits = rng.integers(-2**31, 2**31, n) if dtype == "f32" else rng.integers(-2**63, 2**63 - 1, n)
    return bits.astype(f"i{4 if dtype == 'f32' else 8}").view(DTYPES[dtype])


def points(name: str, dtype: str, n: int) -> Array:
    """Random bits, the intervals where something happens, and long runs of neighbours."""
    rng = np.random.default_rng(sum(map(ord, name)))
    parts = [any_bits(rng, dtype, n), rng.uniform(-1, 1, n), rng.uniform(-20, 20, n),
             rng.uniform(-110, 110, n), 1 + rng.normal(0, 0.01, n),
             np.exp2(rng.uniform(-30, 12, n)) * rng.choice([-1, 1], n)]
    if dtype == "f64":
        parts += [rng.uniform(-750, 750, n), rng.integers(0, 2**53, n) * 5e-324]
    for center in (0.5, 0.6875, 1.0, 1.1, math.sqrt(2), math.log(2) / 2, 3.95, 88.72, -87.33):
        start = np.array(center, DTYPES[dtype]).view(f"i{4 if dtype == 'f32' else 8}")
        parts.append((start + np.arange(-n // 40, n // 40)).view(DTYPES[dtype]))
    return np.concatenate([part.astype(DTYPES[dtype]) for part in parts])


def pairs(name: str, dtype: str, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(sum(map(ord, name)))
    wild = any_bits(rng, dtype, 2 * n).reshape(2, n)
    if name in ("atan2", "hypot"):
        tame = rng.normal(size=(2, n)) * np.exp2(rng.uniform(-40, 0, (2, n)))
        both: Array = np.concatenate([wild, tame.astype(DTYPES[dtype])], axis=1)
        return both[0], both[1]
    least, mantissa = LIMITS[dtype]
    bases = (np.exp2(rng.uniform(least - mantissa, -least, n)), rng.uniform(0.5, 2, n),
             1 + rng.normal(0, 1e-5, n))
    base: Array = np.concatenate(bases).astype(DTYPES[dtype])
    with np.errstate(all="ignore"):  # exponents that exhaust the range of results
        reach = (mantissa - least) / np.maximum(np.abs(np.log2(base.astype(np.float64))), 1e-30)
    power: Array = np.clip(reach * rng.uniform(-1.01, 1.01, 3 * n), -1e30, 1e30)
    whole: Array = rng.integers(-30, 30, (2, n)).astype(DTYPES[dtype])
    x = np.concatenate([base, wild[0], whole[0]])
    return x, np.concatenate([power.astype(DTYPES[dtype]), wild[1], whole[1]])


@pytest.mark.parametrize("name", UNARY)
def test_float32_error(name: str) -> None:
    x = points(name, "f32", 400_000)
    with np.errstate(all="ignore"):
        exact = (NUMPY.get(name) or getattr(np, name))(x.astype(np.float64))
    assert worst(name, "f32", exact, x) <= MAX_ULP[name][0]


@pytest.mark.parametrize("name", UNARY)
def test_float64_error(name: str) -> None:
    x = points(name, "f64", 400 if name == "erf" else 15_000)
    assert worst(name, "f64", extended(name, x), x) <= MAX_ULP[name][1]


@pytest.mark.parametrize("name", BINARY)
def test_error_of_two_arguments(name: str) -> None:
    x, y = pairs(name, "f32", 300_000)
    with np.errstate(all="ignore"):
        exact = (NUMPY[name])(x.astype(np.float64), y.astype(np.float64))
    assert worst(name, "f32", exact, x, y) <= MAX_ULP[name][0]
    x, y = pairs(name, "f64", 15_000)
    assert worst(name, "f64", extended(name, x, y), x, y) <= MAX_ULP[name][1]


@pytest.mark.parametrize("name", EXPANSIONS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_error_without_fused_multiply_add(name: str, dtype: str) -> None:
    args = pairs(name, dtype, 3000) if name in BINARY else (points(name, dtype, 300),)
    if name in PERIODIC:
        args = (args[0][np.abs(args[0]) < 1000],)
    bound = MAX_ULP[name][dtype == "f64"] + 1
    exact = extended(name, *args)
    # A zero of sin or cos takes all that the product keeps.
    clear = np.abs(exact) > 1e-3 if name in PERIODIC else np.full(exact.shape, True)
    result = evaluate(name, dtype, *args, fused=False)
    assert errors(result, exact, dtype)[clear].max() <= bound


def same(result: Array, expected: Array) -> Array:
    """Equal with the sign of zero, or both NaN."""
    equal = (result == expected) & (np.signbit(result) == np.signbit(expected))
    return np.asarray(equal | (np.isnan(result) & np.isnan(expected)))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_limits_and_signed_zeros(dtype: str) -> None:
    """Zeros, infinities and NaN come out where NumPy has them, and nowhere else."""
    info = np.finfo(DTYPES[dtype])
    positive = [0.0, info.smallest_subnormal, info.tiny, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 1e6,
                9007199254740991.0, info.max, math.inf, math.nan]
    x: Array = np.array([*positive, *(-np.array(positive))], DTYPES[dtype])
    for name in EXPANSIONS:
        args = np.meshgrid(x, x) if name in BINARY else [x]
        args = [arg.ravel() for arg in args]
        with np.errstate(all="ignore"):
            expected = (NUMPY.get(name) or getattr(np, name))(*args)
        result = evaluate(name, dtype, *args)
        ordinary = np.isfinite(expected) & np.isfinite(result) & (expected != 0) & (result != 0)
        wrong = ~ordinary & ~same(result, expected)
        assert not wrong.any(), (name, [arg[wrong] for arg in args], result[wrong], expected[wrong])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("fused", [True, False])
def test_exact_values(dtype: str, fused: bool) -> None:
    least, mantissa = LIMITS[dtype]

    def check(name: str, *args: Any, expected: Any) -> None:
        arrays = np.broadcast_arrays(*(np.asarray(arg, DTYPES[dtype]) for arg in args))
        result = evaluate(name, dtype, *map(np.atleast_1d, arrays), fused=fused)
        assert np.array_equal(result, np.atleast_1d(np.asarray(expected, DTYPES[dtype]))), name

    exponents = np.arange(least - mantissa, 1 - least + 1)
    powers = np.ldexp(DTYPES[dtype](1), exponents)
    check("exp2", exponents, expected=powers)
    check("log2", powers, expected=exponents)
    check("pow", 2.0, exponents, expected=powers)
    tens = np.arange(11 if dtype == "f32" else 23)
    check("log10", 10.0**tens, expected=tens)
    check("pow", [3, -3, 7, 10, 1.5], [5, 3, -0.0, 3, 2], expected=[243, -27, 1, 1000, 2.25])
    check("pow", [0.7, 4.0, -8.0], [1, 0.5, 1], expected=[DTYPES[dtype](0.7), 2, -8])
    for name in ("exp", "cos", "cosh"):
        check(name, [0.0, -0.0], expected=[1, 1])
    check("sigmoid", [0.0, -math.inf, math.inf], expected=[0.5, 0, 1])
    for name in ("tanh", "erf"):
        check(name, [-math.inf, -30, 30, math.inf], expected=[-1, -1, 1, 1])
    pi = math.pi
    check("atan2", [0, 0, 1, -1, math.inf], [1, -1, 0, 0, -math.inf],
          expected=[0, pi, pi / 2, -pi / 2, 3 * pi / 4])
    check("acos", [1, -1, 0], expected=[0, pi, pi / 2])
    check("asin", [1, -1], expected=[pi / 2, -pi / 2])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_results_stay_in_their_interval(dtype: str) -> None:
    for name in ("sin", "cos", "tanh", "erf", "sigmoid"):
        x = points(name, dtype, 4000)
        result = evaluate(name, dtype, x)[~np.isnan(x)]
        assert np.nanmax(np.abs(result)) <= 1, name
    assert np.all(evaluate("sigmoid", dtype, points("sigmoid", dtype, 4000))[~np.isnan(x)] >= 0)


@pytest.mark.parametrize("name", EXPANSIONS)
def test_subnormal_arguments_are_kept(name: str) -> None:
    """f(x) is x, one or f of zero: nothing else is near."""
    x = np.arange(1, 1000, dtype=np.int64).view(np.float64)
    if name in BINARY:
        other = np.full_like(x, name != "hypot")
        assert np.array_equal(evaluate(name, "f64", x, other), x)
    elif name not in ("log", "log2", "log10", "cbrt"):
        with np.errstate(all="ignore"):
            expected = (NUMPY.get(name) or getattr(np, name))(x)
        assert worst(name, "f64", expected, x) <= 0.5 + (name == "erf")


def closest_to_quarter_turns() -> Iterator[float]:
    """The float64 numbers that come closest to a multiple of pi/2: m * 2^e is close to k * pi/2
    where m / k is a convergent of the continued fraction of 2^-e * pi/2."""
    with mpmath.workprec(1300):
        for e in range(-52, 972):
            rest = mpmath.ldexp(mpmath.pi / 2, -e)
            previous, m = 0, 1
            while m < 2**53:
                if m > 2**40 and math.ldexp(m, e) > 1:
                    yield math.ldexp(m, e)
                whole = int(mpmath.floor(rest))
                previous, m = m, whole * m + previous
                rest = 1 / (rest - whole)


def exact_periodic(name: str, x: Array) -> Array:
    """The function of float64 numbers to the precision of a long double."""
    function, whole = getattr(mpmath, name), []
    with mpmath.workprec(1300):
        for value in x.tolist():
            exact = function(mpmath.mpf(value))
            high = float(exact)
            whole.append(np.longdouble(high) + np.longdouble(float(exact - high)))
    return np.array(whole)


@pytest.mark.parametrize("name", PERIODIC)
def test_float64_close_to_quarter_turns(name: str) -> None:
    x = np.array([6381956970095103 * 2.0**797, *closest_to_quarter_turns()])
    assert len(x) > 2000
    assert worst(name, "f64", exact_periodic(name, x), x) <= MAX_ULP[name][1]


@pytest.mark.parametrize("name", PERIODIC)
def test_float64_far_out(name: str) -> None:
    """Any finite argument is reduced right, of either sign; beyond there is nothing."""
    rng = np.random.default_rng(6)
    edges = np.nextafter(2.0**46, [0, 100, np.inf])
    x = np.concatenate([edges, np.exp2(rng.uniform(40, 1024, 3000)), np.exp2(np.arange(40, 1024.0)),
                        [np.finfo(np.float64).max]])
    x *= rng.choice([-1, 1], len(x))
    assert worst(name, "f64", exact_periodic(name, x), x) <= MAX_ULP[name][1]
    assert np.isnan(evaluate(name, "f64", np.array([np.inf, -np.inf, np.nan]))).all()


@pytest.mark.parametrize("name", PERIODIC)
def test_float32_far_out(name: str) -> None:
    """All of float32 is reduced right; this one is the closest of all to a multiple of pi/2."""
    rng = np.random.default_rng(5)
    hard = np.float32(16367173 * 2.0**72)
    x = np.concatenate([[hard, -hard], np.exp2(rng.uniform(20, 128, 2000))]).astype(np.float32)
    with mpmath.workprec(300):
        exact = np.array([float(getattr(mpmath, name)(mpmath.mpf(float(v)))) for v in x])
    assert worst(name, "f32", exact, x) <= MAX_ULP[name][0]


def test_constants() -> None:
    """High and low parts add up to the constant they are named after."""
    with mpmath.workprec(1300):
        one = mpmath.mpf(1)
        constants = {"ln2": mpmath.log(2), "log10_2": mpmath.log10(2), "half_pi": mpmath.pi / 2,
                     "log2_e": one / mpmath.log(2), "log10_e": one / mpmath.log(10)}
        for dtype, bits in (("f32", 40), ("f64", 92)):
            for name, value in constants.items():
                high, low = getattr(FORMATS[dtype], name)
                assert float(DTYPES[dtype](high)) == high
                assert abs((high + mpmath.mpf(low)) / value - 1) < 2.0**-bits, (dtype, name)
        assert abs(sum(map(mpmath.mpf, scalar_trigonometry._PI_PARTS)) - mpmath.pi) < 2.0**-150
        scale, head, tail = map(mpmath.mpf, scalar_math._LOG2_SCALE)
        assert float(2 / (3 * mpmath.log(2))) == scale
        assert abs((head + tail) * 3 * mpmath.log(2) / 2 - 1) < 2.0**-78
        for at, word in enumerate(scalar_trigonometry._TWO_OVER_PI):
            assert int(mpmath.floor(mpmath.ldexp(2 / mpmath.pi, 56 * at + 48))) % 2**56 == word
        high, low = scalar_trigonometry._PI_OF_LIMB
        assert abs((high + mpmath.mpf(low)) * 2**27 / mpmath.pi - 1) < 2.0**-100
        for start, high, low in scalar_trigonometry._INVERSE_PI:
            # What is left out of 1 / pi, times the spacing of float32 at ``start``, is even.
            spacing = mpmath.mpf(start) * 2.0**-23
            turns = (1 / mpmath.pi - mpmath.mpf(high) - mpmath.mpf(low)) * spacing / 2
            assert abs(turns - mpmath.nint(turns)) < 2.0**-80


# Builder operations, a comparison and its select being two; float64 ones in float32 functions too.
COST = {"exp": 20, "log": 30, "tanh": 27, "erf": 27, "sigmoid": 25, "sin": 28, "cos": 27}


@pytest.mark.parametrize("name", COST)
def test_cost_of_the_hot_functions(name: str) -> None:
    s = NumpyScalars()
    with np.errstate(all="ignore"):
        EXPANSIONS[name](s, Value(np.array([0.3], np.float32), "f32"))
    assert s.count.total() <= COST[name], s.count


def test_every_function_states_its_error() -> None:
    assert set(MAX_ULP) == set(EXPANSIONS)
    assert max(max(pair) for pair in MAX_ULP.values()) <= 2
