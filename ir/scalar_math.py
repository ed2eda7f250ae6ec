"""draft"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class ScalarBuilder(Protocol):
    """What an emitter offers to the expansions: one method per scalar primitive.

    Values are opaque but for `.dtype`, the name of their dtype ("f32", "f64", "i32", "i64", "bool").
    """

    def const(self, value: float, dtype: str) -> Any: ...
    def add(self, a: Any, b: Any) -> Any: ...
    def sub(self, a: Any, b: Any) -> Any: ...
    def mul(self, a: Any, b: Any) -> Any: ...
    def div(self, a: Any, b: Any) -> Any: ...
    def abs(self, x: Any) -> Any: ...
    def sqrt(self, x: Any) -> Any: ...
    def rint(self, x: Any) -> Any: ...
    def fma(self, a: Any, b: Any, c: Any) -> Any: ...
    def lt(self, a: Any, b: Any) -> Any: ...
    def le(self, a: Any, b: Any) -> Any: ...
    def gt(self, a: Any, b: Any) -> Any: ...
    def ge(self, a: Any, b: Any) -> Any: ...
    def eq(self, a: Any, b: Any) -> Any: ...
    def ne(self, a: Any, b: Any) -> Any: ...
    def and_(self, a: Any, b: Any) -> Any: ...
    def or_(self, a: Any, b: Any) -> Any: ...
    def xor(self, a: Any, b: Any) -> Any: ...
    def shl(self, a: Any, b: Any) -> Any: ...
    def shr(self, a: Any, b: Any) -> Any: ...
    def select(self, cond: Any, a: Any, b: Any) -> Any: ...
    def cast(self, x: Any, dtype: str) -> Any: ...
    def bitcast(self, x: Any, dtype: str) -> Any: ...


@dataclass(frozen=True)
class _Format:
    """An IEEE format as the algorithms see it."""

    integer: str  # the integer dtype of the same width
    mantissa: int  # stored bits of the significand
    bias: int
    sign: int  # the integer with only the sign bit set
    shifter: float  # 1.5 * 2**mantissa: adding it rounds to an integer, kept in the low bits
    min_normal: float
    exp_bounds: tuple[float, float]  # outside, exp and expm1 have reached their limits
    exp2_bounds: tuple[float, float]
    ln2: tuple[float, float]  # high part with trailing zeros (n * high is exact), low part
    log10_2: tuple[float, float]
    log2_e: tuple[float, float]
    log10_e: tuple[float, float]
    pi_2: tuple[float, float]
    erf_top: float
    erf_mid: float


def _f32(x):
    import numpy as np

    return float(np.float32(x))


_LN2_32 = 0.693145751953125
_L102_32 = 0.301025390625
_FORMATS = {
    "f32": _Format(
        integer="i32", mantissa=23, bias=127, sign=-(2**31), shifter=1.5 * 2**23,
        min_normal=2.0**-126, exp_bounds=(-104.0, 89.0), exp2_bounds=(-151.0, 129.0),
        ln2=(_LN2_32, math.log(2) - _LN2_32), log10_2=(_L102_32, math.log10(2) - _L102_32),
        log2_e=(_f32(math.log2(math.e)), math.log2(math.e) - _f32(math.log2(math.e))),
        log10_e=(_f32(math.log10(math.e)), math.log10(math.e) - _f32(math.log10(math.e))),
        pi_2=(_f32(math.pi / 2), math.pi / 2 - _f32(math.pi / 2)), erf_top=3.95, erf_mid=2.5,
    ),
    "f64": _Format(
        integer="i64", mantissa=52, bias=1023, sign=-(2**63), shifter=1.5 * 2**52,
        min_normal=2.0**-1022, exp_bounds=(-746.0, 710.0), exp2_bounds=(-1076.0, 1025.0),
        ln2=(0.693147180559663, 2.8235290563031577e-13),
        log10_2=(0.30102999566383914, 1.42050232272661e-13),
        log2_e=(1.4426950408889634, 2.0355273740931033e-17),
        log10_e=(0.4342944819032518, 1.098319650216765e-17),
        pi_2=(1.5707963267948966, 6.123233995736766e-17), erf_top=5.95, erf_mid=3.5,
    ),
}

_COEFFICIENTS: dict[str, dict[str, tuple[float, ...]]] = {
    "exp": {
        "f32": (0.49999997, 0.16666546, 0.041667435, 0.008366262, 0.0013870657),
        "f64": (
            0.5000000000000006, 0.16666666666666646, 0.041666666666576084, 0.008333333333361864,
            0.0013888888931473777, 0.00019841269766884286, 2.4801505495464784e-05,
            2.7557372159758245e-06, 2.7625937779328694e-07, 2.506328629769343e-08,
        ),
    },
    "exp2": {
        "f32": (0.6931472, 0.24022648, 0.055503596, 0.0096185, 0.0013390994, 0.0001532923),
        "f64": (
            0.6931471805599453, 0.2402265069591011, 0.05550410866482182, 0.009618129107600897,
            0.0013333558146524445, 0.00015403530449698504, 1.5252733651898265e-05,
            1.3215438566385494e-06, 1.0178153667227564e-07, 7.073273319723141e-09,
            4.43969877354247e-10,
        ),
    },
    "log": {
        "f32": (
            -0.49999988, 0.33333325, -0.2500161, 0.20002005, -0.1660841, 0.14180851, -0.13248087,
            0.12912987, -0.076190576,
        ),
        "f64": (
            -0.5000000000000003, 0.33333333333333043, -0.2499999999997642, 0.20000000000082782,
            -0.16666666671187827, 0.14285714279697806, -0.12499999613722733, 0.1111111110294008,
            -0.10000017656570623, 0.09090927113635629, -0.0833286908204513, 0.07691442356844616,
            -0.0714988809349579, 0.06685806840966066, -0.06194593028078562, 0.0565985543511657,
            -0.05678047969987998, 0.06527106832523198, -0.06003930474596537, 0.02617252294757909,
        ),
    },
    "sinpi": {
        "f32": (-1.1406609e-07, -5.1677084, 2.5500414, -0.5980462, 0.077142194),
    },
    "sin": {
        "f64": (
            -0.16666666666666666, 0.008333333333333193, -0.00019841269841204683,
            2.755731920993081e-06, -2.5052106735222827e-08, 1.605893179646514e-10,
            -7.642766088019904e-13, 2.718641724922369e-15,
        ),
    },
    "tanpi": {
        "f32": (-3.5770054e-08, 10.335345, 40.822803, 161.12125, 733.6354, 847.1071, 27608.354),
    },
    "tan": {
        "f64": (
            0.33333333333332277, 0.13333333333482045, 0.05396825389510201, 0.02186949035036028,
            0.008863208930483491, 0.0035923795673883673, 0.0014542190560765224,
            0.0005972885822698062, 0.00021594450496813754, 0.00014954463109041595,
            -4.4418056256837866e-05, 0.00010574210638438958, -5.35226409418823e-05,
            2.2908062295766285e-05,
        ),
    },
    "atan": {
        "f32": (
            -0.333333, 0.1999853, -0.14264016, 0.10950877, -0.08399273, 0.057880245, -0.031095121,
            0.010867223, -0.0017823771,
        ),
        "f64": (
            -0.3333333333333307, 0.19999999999951684, -0.14285714282582376, 0.11111111007147007,
            -0.09090907004193892, 0.07692279847210924, -0.06666404095141229, 0.05880527954813359,
            -0.05253519001506466, 0.04722323503828833, -0.042191821910304184, 0.036641978275810116,
            -0.029903969110704948, 0.021984991857786018, -0.01390068859103133,
            0.007196588454099936, -0.0028849567152336815, 0.0008313322927117585,
            -0.0001521622082003667, 1.3225090567258738e-05,
        ),
    },
    "asin": {
        "f32": (0.16666752, 0.074953094, 0.04546915, 0.024184778, 0.042158306),
        "f64": (
            0.16666666666665408, 0.07500000000337148, 0.04464285682820699, 0.030381959142372097,
            0.022371757912540206, 0.01735970694803194, 0.013885213030335587, 0.012169363505198533,
            0.006527302751637799, 0.019530139017050484, -0.016227231725481416, 0.03191432938633439,
        ),
    },
    "tanh": {
        "f32": (-0.33333212, 0.13329625, -0.05359535, 0.02019273, -0.005233587),
        "f64": (
            -0.33333333333333165, 0.13333333333308986, -0.05396825395594979, 0.02186948822352779,
            -0.008863230860393409, 0.0035920834482939105, -0.0014555488189670744,
            0.0005887686228290129, -0.0002352738939367569, 8.875672972836367e-05,
            -2.759251444767401e-05, 4.990671308440519e-06,
        ),
    },
    "erf": {
        "f32": (
            0.12837917, -0.3761261, 0.11283364, -0.026843518, 0.005167731, -0.0007824739,
            7.2360635e-05,
        ),
        "f64": (
            0.12837916709551256, -0.3761263890318371, 0.11283791670953139, -0.026866170644769583,
            0.00522397762204491, -0.0008548326833623716, 0.00012055326158415943,
            -1.4925485457250715e-05, 1.6459374553741948e-06, -1.6334389412167514e-07,
            1.4560731725972799e-08, -1.1018356028481398e-09, 5.4010775772255546e-11,
        ),
    },
    "erf_tail": {
        "f32": (
            0.14203209, -0.19006497, 0.0936366, -0.012275715, -0.006437619, 0.0027388127,
            1.7389882e-05, -0.0002394887, -1.460112e-05,
        ),
        "f64": (
            0.029360373599541988, -0.05333384963147375, 0.04134507513944349, -0.01647969926762586,
            0.0025463063294148608, 0.0006252853272046596, -0.0003758443928011911,
            4.94773236266531e-05, 1.20643803493478e-05, -5.025932617971694e-06,
            2.925261673559223e-07, 1.7649287481679343e-07, -3.762743097672437e-08,
            -1.6060646252479842e-09, 1.493017942252641e-09, -1.2486026113748477e-10,
            -2.8344982507578868e-11, 9.051645133020063e-12, 2.575095713366628e-13,
            -4.1755890571177403e-13, -5.253995350619206e-14, -1.5008338634080772e-15,
        ),
    },
    "sinh": {
        "f32": (0.16666716, 0.008330271, 0.0002037334),
        "f64": (
            0.16666666666666669, 0.008333333333332912, 0.0001984126984159341,
            2.7557319106756613e-06, 2.505213099869228e-08, 1.605665917771322e-10,
            7.776599487436586e-13,
        ),
    },
    "cosh": {
        "f32": (0.50000054, 0.041659955, 0.0014124961),
        "f64": (
            0.4999999999999988, 0.041666666666716215, 0.0013888888882230721,
            2.4801591399598403e-05, 2.755604771058738e-07, 2.1070314204337574e-09,
        ),
    },
    "pow": {
        "f32": (0.20000076202575245, 0.14273554564320734, 0.11709593984447396),
        "f64": (
            0.2000000000000113, 0.14285714285048323, 0.11111111260243953, 0.09090892157285727,
            0.07693379938458425, 0.06628377936788735, 0.06598462405361961,
        ),
    },
}


class _Num:
    """A builder value that can be used in formulas; numbers become constants of its dtype."""

    __slots__ = ("s", "v")

    def __init__(self, s: ScalarBuilder, v: Any) -> None:
        self.s = s
        self.v = v

    @property
    def format(self) -> _Format:
        return _FORMATS[self.v.dtype]

    def coefficients(self, name: str) -> tuple[float, ...]:
        return _COEFFICIENTS[name][self.v.dtype]

    def like(self, x: _Num | float) -> _Num:
        """`x` itself, or the number `x` as a constant of this value's dtype."""
        return x if isinstance(x, _Num) else _Num(self.s, self.s.const(x, self.v.dtype))

    def __add__(self, other: _Num | float) -> _Num:
        return _Num(self.s, self.s.add(self.v, self.like(other).v))

    def __radd__(self, other: float) -> _Num:
        return self + other

    def __sub__(self, other: _Num | float) -> _Num:
        return _Num(self.s, self.s.sub(self.v, self.like(other).v))

    def __rsub__(self, other: float) -> _Num:
        return self.like(other) - self

    def __mul__(self, other: _Num | float) -> _Num:
        return _Num(self.s, self.s.mul(self.v, self.like(other).v))

    def __rmul__(self, other: float) -> _Num:
        return self * other

    def __truediv__(self, other: _Num | float) -> _Num:
        return _Num(self.s, self.s.div(self.v, self.like(other).v))

    def __rtruediv__(self, other: float) -> _Num:
        return self.like(other) / self

    def __abs__(self) -> _Num:
        return _Num(self.s, self.s.abs(self.v))

    def __lt__(self, other: _Num | float) -> _Num:
        return _Num(self.s, self.s.lt(self.v, self.like(other).v))

    def __le__(self, other: _Num | float) -> _Num:
        return _Num(self.s, self.s.le(self.v, self.like(other).v))

    def __gt__(self, other: _Num | float) -> _Num:
        return _Num(self.s, self.s.gt(self.v, self.like(other).v))

    def equals(self, other: _Num | float) -> _Num:
        return _Num(self.s, self.s.eq(self.v, self.like(other).v))

    def differs(self, other: _Num | float) -> _Num:
        return _Num(self.s, self.s.ne(self.v, self.like(other).v))

    def __and__(self, other: _Num | int) -> _Num:
        return _Num(self.s, self.s.and_(self.v, self.like(other).v))

    def __or__(self, other: _Num | int) -> _Num:
        return _Num(self.s, self.s.or_(self.v, self.like(other).v))

    def __xor__(self, other: _Num | int) -> _Num:
        return _Num(self.s, self.s.xor(self.v, self.like(other).v))

    def __lshift__(self, bits: int) -> _Num:
        return _Num(self.s, self.s.shl(self.v, self.like(bits).v))

    def __rshift__(self, bits: int) -> _Num:
        return _Num(self.s, self.s.shr(self.v, self.like(bits).v))

    def fma(self, factor: _Num | float, term: _Num | float) -> _Num:
        """self * factor + term."""
        return _Num(self.s, self.s.fma(self.v, self.like(factor).v, self.like(term).v))

    def sqrt(self) -> _Num:
        return _Num(self.s, self.s.sqrt(self.v))

    def rint(self) -> _Num:
        return _Num(self.s, self.s.rint(self.v))

    def cast(self, dtype: str) -> _Num:
        return _Num(self.s, self.s.cast(self.v, dtype))

    def bits(self) -> _Num:
        return _Num(self.s, self.s.bitcast(self.v, self.format.integer))

    def floating(self) -> _Num:
        """The float whose bits this integer is."""
        return _Num(self.s, self.s.bitcast(self.v, {"i32": "f32", "i64": "f64"}[self.v.dtype]))

    def signed_like(self, x: _Num) -> _Num:
        """This non-negative value with the sign of `x`."""
        return (self.bits() | (x.bits() & self.format.sign)).floating()


def _select(cond: _Num, a: _Num | float, b: _Num | float) -> _Num:
    if isinstance(a, _Num):
        return _Num(cond.s, cond.s.select(cond.v, a.v, a.like(b).v))
    assert isinstance(b, _Num)
    return _Num(cond.s, cond.s.select(cond.v, b.like(a).v, b.v))


def _at_most(x: _Num, bound: float) -> _Num:
    """min(x, bound) that lets NaN through; x86 has this very select as one instruction."""
    limit = x.like(bound)
    return _select(limit < x, limit, x)


def _at_least(x: _Num, bound: float) -> _Num:
    limit = x.like(bound)
    return _select(x < limit, limit, x)


def _polynomial(x: _Num, coefficients: tuple[float, ...]) -> _Num:
    """c[0] + c[1] x + c[2] x^2 + ... by Horner's rule."""
    result = x.like(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = result.fma(x, c)
    return result


EXPANSIONS: dict[str, Callable[..., Any]] = {}


def _expansion(function: Callable[..., _Num]) -> Callable[..., Any]:
    @functools.wraps(function)
    def expand(s: ScalarBuilder, *args: Any) -> Any:
        return function(*(_Num(s, a) for a in args)).v

    EXPANSIONS[function.__name__] = expand
    return expand


# exp family


def _exp_even(x: _Num, sign: float = 1.0) -> tuple[_Num, _Num]:
    """exp(sign * x) = p * scale * scale."""
    f = x.format
    high, low = f.ln2
    t = x.fma(sign * math.log2(math.e) / 2, f.shifter + f.bias)
    m = t - (f.shifter + f.bias)
    if sign > 0:
        r = m.fma(-2 * low, m.fma(-2 * high, x))
    else:
        r = m.fma(2 * low, m.fma(2 * high, x))
    c = x.coefficients("exp")
    c = tuple(v * sign**k for k, v in enumerate((1.0, 1.0, *c)))
    return _polynomial(r, c), (t.bits() << f.mantissa).floating()


@_expansion
def exp(x: _Num) -> _Num:
    low, high = x.format.exp_bounds
    p, scale = _exp_even(_at_least(_at_most(x, high), low))
    return p * scale * scale


@_expansion
def exp2(x: _Num) -> _Num:
    f = x.format
    low, high = f.exp2_bounds
    x = _at_least(_at_most(x, high), low)
    t = x + (f.shifter + 2 * f.bias)
    r = x - (t - (f.shifter + 2 * f.bias))
    p = _polynomial(r, (1.0, *x.coefficients("exp2")))
    both = t.bits()
    first = both >> 1
    return p * (first << f.mantissa).floating() * (both - first << f.mantissa).floating()


@_expansion
def expm1(x: _Num) -> _Num:
    f = x.format
    w = _at_least(_at_most(x, f.exp_bounds[1]), -f.mantissa - 2.0)
    high, low = f.ln2
    t = w.fma(math.log2(math.e), f.shifter + f.bias - 1)
    n = t - (f.shifter + f.bias - 1)
    r = n.fma(-low, n.fma(-high, w))
    p = (r * r).fma(_polynomial(r, x.coefficients("expm1")), r)
    half = (t.bits() << f.mantissa).floating()
    y = half.fma(p, half - 0.5) * 2.0
    return _select(abs(x) < 2.0**-60, x, y)


@_expansion
def sigmoid(x: _Num) -> _Num:
    a = _at_most(abs(x), -x.format.exp_bounds[0])
    p, scale = _exp_even(a, -1.0)
    e = p * scale * scale
    return _select(x < 0.0, e, 1.0) / (e + 1.0)


@_expansion
def tanh(x: _Num) -> _Num:
    f = x.format
    a = abs(x)
    z = x * x
    small = (x * z).fma(_polynomial(z, x.coefficients("tanh")), x)
    w = _at_most(a, 9.1 if f.mantissa == 23 else 19.1)
    t = w.fma(2 * math.log2(math.e), f.shifter + f.bias)
    n = t - (f.shifter + f.bias)
    high, low = f.ln2
    if f.mantissa == 23:
        r = n.fma(-math.log(2) / 2, w)
    else:
        r = n.fma(-low / 2, n.fma(-high / 2, w))
    c = tuple(v * 2.0**k for k, v in enumerate((1.0, 1.0, *x.coefficients("expm1"))))
    p = _polynomial(r, c)
    big = 1.0 - 2.0 / (t.bits() << f.mantissa).floating().fma(p, 1.0)
    return _select(a < 0.625, small, big.signed_like(x))


def _hyperbolic(w: _Num, t: _Num, r_src: _Num) -> tuple[_Num, _Num, _Num, _Num]:
    f = w.format
    n = t - (f.shifter + f.bias - 1)
    high, low = f.ln2
    r = n.fma(-low, n.fma(-high, r_src))
    z = r * r
    sh = (r * z).fma(_polynomial(z, w.coefficients("sinh")), r)
    ch = z.fma(_polynomial(z, w.coefficients("cosh")), 1.0)
    up = t.bits() << f.mantissa
    total = (2 * f.bias - 2) << f.mantissa
    down = total - up
    down = _select(down < 0, 0, down)
    return sh, ch, up.floating(), down.floating()


def _hyper_args(a: _Num, small: float) -> tuple[_Num, _Num]:
    f = a.format
    top = (f.bias + 1) * math.log(2) - 0.01
    w = _at_most(a, top)
    if small:
        w = _select(a < small, 0.0, w)
    return w, w.fma(math.log2(math.e), f.shifter + f.bias - 1)


@_expansion
def sinh(x: _Num) -> _Num:
    a = abs(x)
    w, t = _hyper_args(a, 1.0)
    sh, ch, up, down = _hyperbolic(w, t, a)
    return sh.fma(up + down, ch * (up - down)).signed_like(x)


@_expansion
def cosh(x: _Num) -> _Num:
    a = abs(x)
    w, t = _hyper_args(a, 0.0)
    sh, ch, up, down = _hyperbolic(w, t, a)
    return ch.fma(up + down, sh * (up - down))


# log family


def _bits_of_sqrt_half(f: _Format) -> int:
    return 0x3F3504F3 if f.mantissa == 23 else 0x3FE6A09E667F3BCD


def _small_integer_to_float(i: _Num, f: _Format, offset: _Num | float) -> _Num:
    """float(i) - offset"""
    if f.mantissa == 23:
        return i.cast("f32") - offset
    # no x86 below AVX-512 converts i64 vectors, so plant the integer in the low bits of a float
    return (i + 0x4338000000000000).floating() - (offset + f.shifter)


def _exponent_and_fraction(x: _Num) -> tuple[_Num, _Num]:
    """x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for finite positive x."""
    f = x.format
    small = x < f.min_normal
    scaled = _select(small, x * 2.0**f.mantissa, x)
    k = scaled.bits() + ((f.bias << f.mantissa) - _bits_of_sqrt_half(f))
    base = f.bias + (f.shifter if f.mantissa == 52 else 0)
    offset = _select(small, x.like(base + float(f.mantissa)), base)
    i = k >> f.mantissa
    if f.mantissa == 23:
        e = i.cast("f32") - offset
    else:
        e = (i + 0x4338000000000000).floating() - offset
    m = ((k & ((1 << f.mantissa) - 1)) + _bits_of_sqrt_half(f)).floating()
    return e, m - 1.0


def _log_limits(x: _Num, y: _Num) -> _Num:
    y = _select(x < math.inf, y, math.inf)
    return _select(x > 0.0, y, _select(x.equals(0.0), y.like(-math.inf), math.nan))


def _log_tail(fraction: _Num) -> _Num:
    return fraction * fraction * _polynomial(fraction, fraction.coefficients("log"))


@_expansion
def log(x: _Num) -> _Num:
    e, f = _exponent_and_fraction(x)
    high, low = x.format.ln2
    return _log_limits(x, e.fma(high, f + e.fma(low, _log_tail(f))))


@_expansion
def log2(x: _Num) -> _Num:
    e, f = _exponent_and_fraction(x)
    high, low = x.format.log2_e
    return _log_limits(x, e + f.fma(high, f.fma(low, _log_tail(f) * high)))


@_expansion
def log10(x: _Num) -> _Num:
    e, f = _exponent_and_fraction(x)
    high, low = x.format.log10_e
    two_high, two_low = x.format.log10_2
    tail = f.fma(low, _log_tail(f).fma(high, e * two_low))
    return _log_limits(x, e.fma(two_high, f.fma(high, tail)))


@_expansion
def log1p(x: _Num) -> _Num:
    f = x.format
    u = x + 1.0
    lost = x - (u - 1.0)
    k = u.bits() - _bits_of_sqrt_half(f)
    power = k & -(1 << f.mantissa)
    shift = (f.bias << f.mantissa) - power
    fraction = lost.fma(shift.floating(), (u.bits() - power).floating() - 1.0)
    if f.mantissa == 23:
        e = (k >> f.mantissa).cast("f32")
    else:
        e = ((k + (f.bias << 52) >> f.mantissa) + 0x4338000000000000).floating() - (
            f.shifter + f.bias
        )
    high, low = f.ln2
    y = e.fma(high, fraction + e.fma(low, _log_tail(fraction)))
    y = _log_limits(u, y)
    return _select(x.equals(0.0), x, y)


# trigonometry

_PI_HI = _f32(math.pi)
_M = (
    (0.0, 0.3183098861837907, -1.9678676675182486e-17),
    (2.0**51, -2.0598845603958264e-09, 1.4188110088932633e-25),
    (2.0**77, 3.583247455607534e-17, -1.0721436282893004e-33),
    (2.0**103, -2.7170920538718753e-25, 1.9429493537593412e-41),
)
_PI_PARTS = (
    3.1415926534682512, 1.2154201012607932e-10, 4.044532497422333e-21, 1.69568553207378e-31
)
_SHIFT64 = 1.5 * 2**52


def _half_turns32(x: _Num, offset: float) -> tuple[_Num, _Num]:
    """x / pi + offset = n + f with |f| <= 1/2: the bits of n (low end), f in float64."""
    a = abs(x)
    wide = x.cast("f64")
    _, high, low = _M[0]
    high_part, low_part = wide.like(high), wide.like(low)
    for start, high, low in _M[1:]:
        big = ~_Bool(a, start)
        high_part = _select(big, high, high_part)
        low_part = _select(big, low, low_part)
    if offset:
        t = wide.fma(high_part, offset) + _SHIFT64
    else:
        t = wide.fma(high_part, _SHIFT64)
    n = t - _SHIFT64
    if offset:
        n = n - offset
    return t.bits(), wide.fma(low_part, wide.fma(high_part, 0.0 - n))


def _Bool(a, start):
    class I:
        def __invert__(self):
            return _Num(a.s, a.s.ge(a.v, a.like(start).v))

    return I()


def _sine32(n: _Num, f: _Num) -> _Num:
    f = (f.bits() ^ (n << 63)).floating().cast("f32")
    z = f * f
    return f.fma(_PI_HI, f * _polynomial(z, f.coefficients("sinpi")))


def _radians64(x: _Num, offset: float, period: float) -> tuple[_Num, _Num]:
    w = x.fma(1 / math.pi / period, offset) + _SHIFT64 if offset else x.fma(1 / math.pi / period, _SHIFT64)
    h = w - _SHIFT64
    if offset:
        h = h - offset
    r = x
    for part in _PI_PARTS:
        r = h.fma(-part * period, r)
    return w.bits(), r


def _sine64(n: _Num, r: _Num) -> _Num:
    z = r * r
    y = (r * z).fma(_polynomial(z, r.coefficients("sin")), r)
    return (y.bits() ^ (n << 63)).floating()


@_expansion
def sin(x: _Num) -> _Num:
    if x.v.dtype == "f32":
        return _select(abs(x) < 2.0**-12, x, _sine32(*_half_turns32(x, 0.0)))
    y = _sine64(*_radians64(x, 0.0, 1.0))
    return _select(abs(x) < 2.0**-26, x, y)


@_expansion
def cos(x: _Num) -> _Num:
    if x.v.dtype == "f32":
        return _sine32(*_half_turns32(x, 0.5))
    return _sine64(*_radians64(x, 0.5, 1.0))


@_expansion
def tan(x: _Num) -> _Num:
    if x.v.dtype == "f32":
        _, f = _half_turns32(x, 0.0)
        a = abs(f)
        flip = a > 0.25
        g = _select(flip, 0.5 - a, a).cast("f32")
        z = g * g
        p = g.fma(_PI_HI, g * _polynomial(z, g.coefficients("tanpi")))
        y = _select(flip, 1.0, p) / _select(flip, p, 1.0)
        sign = ((f.bits() >> 32).cast("i32")) & x.format.sign
        y = (y.bits() ^ sign).floating()
        return _select(abs(x) < 2.0**-12, x, y)
    n, r = _radians64(x, 0.0, 0.5)
    z = r * r
    p = (r * z).fma(_polynomial(z, r.coefficients("tan")), r)
    odd = (n & 1).equals(1)
    y = _select(odd, -1.0, p) / _select(odd, p, 1.0)
    return _select(abs(x) < 2.0**-26, x, y)


def _arctangent(t: _Num) -> _Num:
    z = t * t
    return (t * z).fma(_polynomial(z, t.coefficients("atan")), t)


@_expansion
def atan(x: _Num) -> _Num:
    a = abs(x)
    big = a > 1.0
    high, low = x.format.pi_2
    p = _arctangent(_select(big, 1.0, a) / _select(big, a, 1.0))
    return _select(big, high - (p - low), p).signed_like(x)


@_expansion
def atan2(y: _Num, x: _Num) -> _Num:
    ay, ax = abs(y), abs(x)
    steep = ay > ax
    low_side, high_side = _select(steep, ax, ay), _select(steep, ay, ax)
    one = _select(low_side > 0.0, low_side.like(1.0), 0.0)
    t = _select(low_side.equals(high_side), one, low_side / high_side)
    p = _arctangent(t)
    high, low = x.format.pi_2
    p = _select(steep, high - (p - low), p)
    p = _select(x.bits() < 0, 2 * high - (p - 2 * low), p)
    return p.signed_like(y)


def _arcsine_parts(a: _Num, small: _Num) -> tuple[_Num, _Num]:
    z = _select(small, a * a, a.fma(-0.5, 0.5))
    s = _select(small, a, z.sqrt())
    return s, s * z * _polynomial(z, a.coefficients("asin"))


@_expansion
def asin(x: _Num) -> _Num:
    a = abs(x)
    small = a <= 0.5
    s, w = _arcsine_parts(a, small)
    high, low = x.format.pi_2
    return _select(small, s + w, s.fma(-2.0, high) - w.fma(2.0, -low)).signed_like(x)


@_expansion
def acos(x: _Num) -> _Num:
    a = abs(x)
    small = a <= 0.5
    s, w = _arcsine_parts(a, small)
    high, low = x.format.pi_2
    negative = x < 0.0
    p = s + w
    signed = _select(negative, 0.0 - p, p)
    middle = high - (signed - low)
    p2 = p + p
    outer = _select(negative, 2 * high - (p2 - 2 * low), p2)
    return _select(small, middle, outer)


@_expansion
def erf(x: _Num) -> _Num:
    f = x.format
    small = x.fma(_polynomial(x * x, x.coefficients("erf")), x)
    a = abs(x)
    v = _at_most(a, f.erf_top) - f.erf_mid
    q = _polynomial(v, x.coefficients("erf_tail"))
    q = q * q
    big = q.fma(0.0 - q, 1.0)
    return _select(a < 1.0, small, big.signed_like(x))
