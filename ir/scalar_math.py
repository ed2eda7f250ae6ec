"""Transcendental functions written as expansions over the scalar primitives.

One definition of ``exp``, ``sin``, ``pow``, ... serves the LLVM emitter, the Triton emitter and
NumPy: a function takes a builder and its values and writes itself as additions, FMAs, selects and
bit operations. No library call, no table in memory, no branch; every lane takes the same path.

    reduce the argument  ->  a polynomial on a short interval  ->  undo the reduction

Subnormals are kept; infinities, NaN and signed zeros come out as in C99. ``MAX_ULP`` states the
errors. In float64 the trigonometric functions are NaN where |x| >= 2**46: better none than a wrong
number. Where ``fma`` is computed as mul and add, errors grow by about one ULP, but trigonometric
functions need the real one for |x| above a thousand.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

EXPANSIONS: dict[str, Callable[..., Any]] = {}

# The largest error in ULP, float32 and float64. Found by trying all arguments in float32, unless
# there are two, and some millions else, with a margin.
MAX_ULP: dict[str, tuple[float, float]] = {
    "exp": (0.93, 0.95), "exp2": (0.9, 0.85), "expm1": (1.35, 1.4), "sigmoid": (1.65, 1.75),
    "tanh": (1.25, 1.3), "sinh": (1.55, 1.95), "cosh": (1.95, 1.6), "log": (0.9, 0.95),
    "log2": (1.1, 1.1), "log10": (1.05, 1.0), "log1p": (1.55, 1.5), "sin": (1.95, 1.75),
    "cos": (1.75, 1.75), "tan": (0.7, 1.95), "atan": (1.35, 1.65), "atan2": (1.6, 1.6),
    "asin": (1.2, 1.3), "acos": (1.15, 1.3), "erf": (1.45, 1.25), "pow": (0.55, 1.6),
}


class ScalarBuilder(Protocol):
    """What an emitter offers the expansions: one method per scalar primitive used here.

    Values are opaque but for ``.dtype``: "f32", "f64", "i32", "i64" or "bool". ``const`` rounds to
    the dtype; ``div``, ``sqrt`` and ``fma`` round correctly; ``shr`` keeps the sign. Nothing may be
    reassociated, contracted or flushed to zero.
    """

    def const(self, value: float, dtype: str) -> Any: ...
    def add(self, a: Any, b: Any) -> Any: ...
    def sub(self, a: Any, b: Any) -> Any: ...
    def mul(self, a: Any, b: Any) -> Any: ...
    def div(self, a: Any, b: Any) -> Any: ...
    def fma(self, a: Any, b: Any, c: Any) -> Any: ...
    def neg(self, x: Any) -> Any: ...
    def abs(self, x: Any) -> Any: ...
    def sqrt(self, x: Any) -> Any: ...
    def rint(self, x: Any) -> Any: ...
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
    """An IEEE format as the algorithms see it. A pair is a constant in two parts, high + low."""

    integer: str  # the integer dtype of the same width
    mantissa: int  # stored bits of the significand
    bias: int
    sqrt_half: int  # the bits of sqrt(1/2)
    exp_bounds: tuple[float, float]  # outside, exp is 0 or inf
    exp2_bounds: tuple[float, float]
    tanh_bound: float  # from here on tanh rounds to 1
    erf_bound: float  # likewise
    erf_center: float  # the tail of erf is a polynomial in |x| - erf_center
    ln2: tuple[float, float]  # high ends in zeros: its product with an exponent is exact
    log10_2: tuple[float, float]  # likewise
    log2_e: tuple[float, float]
    log10_e: tuple[float, float]
    half_pi: tuple[float, float]

    @property
    def sign(self) -> int:
        """The integer that has only the sign bit set."""
        return -(1 << (63 if self.mantissa == 52 else 31))

    @property
    def shifter(self) -> float:
        """x + shifter rounds x to an integer, which it keeps in its low bits (added to those of
        ``shifter``); subtracting ``shifter`` gives it as a float."""
        return 1.5 * 2.0**self.mantissa

    @property
    def shifter_bits(self) -> int:
        return (2 * (self.bias + self.mantissa) + 1) << (self.mantissa - 1)


_FORMATS = {
    "f32": _Format(
        integer="i32", mantissa=23, bias=127, sqrt_half=0x3F3504F3,
        exp_bounds=(-104.0, 89.0), exp2_bounds=(-151.0, 129.0),
        tanh_bound=9.1, erf_bound=3.95, erf_center=2.5,
        ln2=(0.693145751953125, 1.4286068203094173e-06),
        log10_2=(0.301025390625, 4.605038981195214e-06),
        log2_e=(1.4426950216293335, 1.9259629911266175e-08),
        log10_e=(0.4342944920063019, -1.0103050052231683e-08),
        half_pi=(1.5707963705062866, -4.3711390001862426e-08),
    ),
    "f64": _Format(
        integer="i64", mantissa=52, bias=1023, sqrt_half=0x3FE6A09E667F3BCD,
        exp_bounds=(-746.0, 710.0), exp2_bounds=(-1076.0, 1025.0),
        tanh_bound=19.1, erf_bound=5.95, erf_center=3.5,
        ln2=(0.693147180559663, 2.8235290563031577e-13),
        log10_2=(0.30102999566383914, 1.42050232272661e-13),
        log2_e=(1.4426950408889634, 2.0355273740931033e-17),
        log10_e=(0.4342944819032518, 1.098319650216765e-17),
        half_pi=(1.5707963267948966, 6.123233995736766e-17),
    ),
}

# Lowest power first; minimax for the relative error of the function that they serve. Remez exchange
# in 200-bit arithmetic, then one coefficient after the other was rounded to its format and the rest
# fitted again. What each polynomial stands for:
#   exp       (exp(r) - 1 - r) / r^2 for |r| <= ln2 / 2
#   exp2      (2^r - 1) / r for |r| <= 1/2, and pow_exp2, for float64 arithmetic
#   log       (log(1 + f) - f) / f^2
#   sin       (sin(r) - r) / r^3 in r^2 for |r| <= pi/2; f32: sin(pi f) / f - slope in f^2
#   tan       (tan(r) - r) / r^3 in r^2 for |r| <= pi/4; f32: tan(pi f) / f in f^2, in float64
#   atan, asin, tanh, sinh: likewise (f(r) - r) / r^3, for |r| up to 1, 1/2, 0.6875, 1
#   cosh      (cosh(r) - 1) / r^2 in r^2 for |r| <= ln2
#   erf       erf(x) / x - 1 in x^2 for |x| <= 1.1
#   erf_tail  erfc(x)^(1/4) in x - erf_center above that, minimax for erf
#   pow       ((atanh(s) / s - 1) / s^2 - 1/3) / s^2 in s^2 for |s| < 0.172, in float64
_COEFFICIENTS: dict[tuple[str, str], tuple[float, ...]] = {
    ("exp", "f32"): (0.49999997, 0.16666546, 0.041667435, 0.008366262, 0.0013870657),
    ("exp", "f64"): (0.5000000000000006, 0.16666666666666646, 0.041666666666576084,
        0.008333333333361864, 0.0013888888931473777, 0.00019841269766884286, 2.4801505495464784e-05,
        2.7557372159758245e-06, 2.7625937779328694e-07, 2.506328629769343e-08),
    ("exp2", "f32"): (0.6931472, 0.24022648, 0.055503596, 0.0096185, 0.0013390994, 0.0001532923),
    ("exp2", "f64"): (0.6931471805599453, 0.2402265069591011, 0.05550410866482182,
        0.009618129107600897, 0.0013333558146524445, 0.00015403530449698504, 1.5252733651898265e-05,
        1.3215438566385494e-06, 1.0178153667227564e-07, 7.073273319723141e-09,
        4.43969877354247e-10),
    ("log", "f32"): (-0.49999988, 0.33333325, -0.2500161, 0.20002005, -0.1660841, 0.14180851,
        -0.13248087, 0.12912987, -0.076190576),
    ("log", "f64"): (-0.5000000000000003, 0.33333333333333043, -0.2499999999997642,
        0.20000000000082782, -0.16666666671187827, 0.14285714279697806, -0.12499999613722733,
        0.1111111110294008, -0.10000017656570623, 0.09090927113635629, -0.0833286908204513,
        0.07691442356844616, -0.0714988809349579, 0.06685806840966066, -0.06194593028078562,
        0.0565985543511657, -0.05678047969987998, 0.06527106832523198, -0.06003930474596537,
        0.02617252294757909),
    ("sin", "f32"): (0.7665926, -5.1677084, 2.550041, -0.5980371, 0.07711428),
    ("sin", "f64"): (-0.16666666666666666, 0.008333333333333193, -0.00019841269841204683,
        2.755731920993081e-06, -2.5052106735222827e-08, 1.605893179646514e-10,
        -7.642766088019904e-13, 2.718641724922369e-15),
    ("tan", "f32"): (3.1415926498783273, 10.335433100604266, 40.80012860377413, 163.3119968221428,
        632.9870725397698, 3218.301634392827, -70.6602570190552, 126853.36197395882),
    ("tan", "f64"): (0.33333333333332277, 0.13333333333482045, 0.05396825389510201,
        0.02186949035036028, 0.008863208930483491, 0.0035923795673883673, 0.0014542190560765224,
        0.0005972885822698062, 0.00021594450496813754, 0.00014954463109041595,
        -4.4418056256837866e-05, 0.00010574210638438958, -5.35226409418823e-05,
        2.2908062295766285e-05),
    ("atan", "f32"): (-0.333333, 0.1999853, -0.14264016, 0.10950877, -0.08399273, 0.057880245,
        -0.031095121, 0.010867223, -0.0017823771),
    ("atan", "f64"): (-0.3333333333333307, 0.19999999999951684, -0.14285714282582376,
        0.11111111007147007, -0.09090907004193892, 0.07692279847210924, -0.06666404095141229,
        0.05880527954813359, -0.05253519001506466, 0.04722323503828833, -0.042191821910304184,
        0.036641978275810116, -0.029903969110704948, 0.021984991857786018, -0.01390068859103133,
        0.007196588454099936, -0.0028849567152336815, 0.0008313322927117585, -0.0001521622082003667,
        1.3225090567258738e-05),
    ("asin", "f32"): (0.16666752, 0.074953094, 0.04546915, 0.024184778, 0.042158306),
    ("asin", "f64"): (0.16666666666665408, 0.07500000000337148, 0.04464285682820699,
        0.030381959142372097, 0.022371757912540206, 0.01735970694803194, 0.013885213030335587,
        0.012169363505198533, 0.006527302751637799, 0.019530139017050484, -0.016227231725481416,
        0.03191432938633439),
    ("tanh", "f32"): (-0.33333212, 0.13329625, -0.05359535, 0.02019273, -0.005233587),
    ("tanh", "f64"): (-0.33333333333333165, 0.13333333333308986, -0.05396825395594979,
        0.02186948822352779, -0.008863230860393409, 0.0035920834482939105, -0.0014555488189670744,
        0.0005887686228290129, -0.0002352738939367569, 8.875672972836367e-05,
        -2.759251444767401e-05, 4.990671308440519e-06),
    ("erf", "f32"): (0.12837917, -0.3761261, 0.11283364, -0.026843518, 0.005167731, -0.0007824739,
        7.2360635e-05),
    ("erf", "f64"): (0.12837916709551256, -0.3761263890318371, 0.11283791670953139,
        -0.026866170644769583, 0.00522397762204491, -0.0008548326833623716, 0.00012055326158415943,
        -1.4925485457250715e-05, 1.6459374553741948e-06, -1.6334389412167514e-07,
        1.4560731725972799e-08, -1.1018356028481398e-09, 5.4010775772255546e-11),
    ("erf_tail", "f32"): (0.14203209, -0.19006497, 0.0936366, -0.012275715, -0.006437619,
        0.0027388127, 1.7389882e-05, -0.0002394887, -1.460112e-05),
    ("erf_tail", "f64"): (0.029360373599541988, -0.05333384963147375, 0.04134507513944349,
        -0.01647969926762586, 0.0025463063294148608, 0.0006252853272046596, -0.0003758443928011911,
        4.94773236266531e-05, 1.20643803493478e-05, -5.025932617971694e-06, 2.925261673559223e-07,
        1.7649287481679343e-07, -3.762743097672437e-08, -1.6060646252479842e-09,
        1.493017942252641e-09, -1.2486026113748477e-10, -2.8344982507578868e-11,
        9.051645133020063e-12, 2.575095713366628e-13, -4.1755890571177403e-13,
        -5.253995350619206e-14, -1.5008338634080772e-15),
    ("sinh", "f32"): (0.16666716, 0.008330271, 0.0002037334),
    ("sinh", "f64"): (0.16666666666666669, 0.008333333333332912, 0.0001984126984159341,
        2.7557319106756613e-06, 2.505213099869228e-08, 1.605665917771322e-10,
        7.776599487436586e-13),
    ("cosh", "f32"): (0.50000054, 0.041659955, 0.0014124961),
    ("cosh", "f64"): (0.4999999999999988, 0.041666666666716215, 0.0013888888882230721,
        2.4801591399598403e-05, 2.755604771058738e-07, 2.1070314204337574e-09),
    ("pow", "f32"): (0.20000076202575245, 0.14273554564320734, 0.11709593984447396),
    ("pow", "f64"): (0.2000000000000113, 0.14285714285048323, 0.11111111260243953,
        0.09090892157285727, 0.07693379938458425, 0.06628377936788735, 0.06598462405361961),
    ("pow_exp2", "f32"): (0.6931472029042488, 0.24022647906930256, 0.05550332350555286,
        0.009618437841618987, 0.0013398925274473294, 0.00015353325183117323),
}


def _unary(method: str) -> Callable[[_Number], _Number]:
    def apply(a: _Number) -> _Number:
        return _Number(a.s, getattr(a.s, method)(a.v))

    return apply


def _binary(method: str) -> Callable[[_Number, _Number | float], _Number]:
    def apply(a: _Number, b: _Number | float) -> _Number:
        return _Number(a.s, getattr(a.s, method)(a.v, a.like(b).v))

    return apply


class _Number:
    """A builder value for use in formulas; a number beside it becomes a constant of its dtype."""

    __slots__ = ("s", "v")

    def __init__(self, s: ScalarBuilder, v: Any) -> None:
        self.s = s
        self.v = v

    @property
    def dtype(self) -> str:
        return str(self.v.dtype)

    @property
    def format(self) -> _Format:
        return _FORMATS[self.dtype]

    def like(self, x: _Number | float) -> _Number:
        return x if isinstance(x, _Number) else _Number(self.s, self.s.const(x, self.dtype))

    __add__ = _binary("add")
    __sub__ = _binary("sub")
    __mul__ = _binary("mul")
    __truediv__ = _binary("div")
    __and__ = _binary("and_")
    __or__ = _binary("or_")
    __xor__ = _binary("xor")
    __lshift__ = _binary("shl")
    __rshift__ = _binary("shr")
    __lt__ = _binary("lt")
    __le__ = _binary("le")
    __gt__ = _binary("gt")
    __ge__ = _binary("ge")
    equals = _binary("eq")
    differs = _binary("ne")
    __neg__ = _unary("neg")
    __abs__ = _unary("abs")
    sqrt = _unary("sqrt")
    rint = _unary("rint")

    def __rsub__(self, other: float) -> _Number:
        return self.like(other) - self

    def __rtruediv__(self, other: float) -> _Number:
        return self.like(other) / self

    def fma(self, factor: _Number | float, term: _Number | float) -> _Number:
        """self * factor + term"""
        return _Number(self.s, self.s.fma(self.v, self.like(factor).v, self.like(term).v))

    def cast(self, dtype: str) -> _Number:
        return _Number(self.s, self.s.cast(self.v, dtype))

    def bits(self) -> _Number:
        return _Number(self.s, self.s.bitcast(self.v, self.format.integer))

    def floating(self) -> _Number:
        """The float that has the bits of this integer."""
        return _Number(self.s, self.s.bitcast(self.v, {"i32": "f32", "i64": "f64"}[self.dtype]))

    def signed_like(self, x: _Number) -> _Number:
        """This non-negative value with the sign of ``x``."""
        return (self.bits() | (x.bits() & x.format.sign)).floating()


def _select(cond: _Number, a: _Number, b: _Number | float) -> _Number:
    return _Number(cond.s, cond.s.select(cond.v, a.v, a.like(b).v))


def _at_most(x: _Number, bound: float) -> _Number:
    """min(x, bound), and NaN where x is. Written like this it is one instruction on x86."""
    limit = x.like(bound)
    return _select(limit < x, limit, x)


def _at_least(x: _Number, bound: float) -> _Number:
    limit = x.like(bound)
    return _select(x < limit, limit, x)


def _unless_tiny(x: _Number, y: _Number) -> _Number:
    """``y``, but ``x`` where f(x) rounds to x: this keeps -0 and the last bit of subnormals."""
    return _select(abs(x) < 2.0**-60, x, y)


def _horner(x: _Number, coefficients: tuple[float, ...]) -> _Number:
    result = x.like(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = result.fma(x, c)
    return result


def _polynomial(name: str, x: _Number, *lowest: float) -> _Number:
    """The polynomial of the table, below its terms those with the coefficients ``lowest``."""
    return _horner(x, (*lowest, *_COEFFICIENTS[name, x.dtype]))


def _expansion(function: Callable[..., _Number]) -> Callable[..., Any]:
    """Publish a function of ``_Number`` as a function of a builder and its values."""

    @functools.wraps(function)
    def expand(s: ScalarBuilder, *args: Any) -> Any:
        return function(*(_Number(s, arg) for arg in args)).v

    EXPANSIONS[function.__name__] = expand
    return expand


# Exponentials: x = n ln2 + r with |r| <= ln2 / 2, and exp(x) = 2^n exp(r).


def _exponent(x: _Number, bias: int, times: int = 1) -> tuple[_Number, _Number]:
    """n of ``times`` x as a float, and an integer whose low bits are n + bias."""
    shifter = x.format.shifter + bias
    t = x.fma(times * math.log2(math.e), shifter)
    return t - shifter, t.bits()


def _remainder(x: _Number, n: _Number) -> _Number:
    high, low = x.format.ln2
    return n.fma(-low, n.fma(-high, x))


def _power_of_two(biased: _Number, f: _Format) -> _Number:
    """2^n, where the low bits of ``biased`` are n + f.bias."""
    return (biased << f.mantissa).floating()


def _scale(p: _Number, biased: _Number) -> _Number:
    """p * 2^n, where the low bits of ``biased`` are n + 2 bias; 2^n itself may overflow."""
    half = biased >> 1
    return p * _power_of_two(half, p.format) * _power_of_two(biased - half, p.format)


def _bounded_exp(x: _Number) -> _Number:
    n, biased = _exponent(x, 2 * x.format.bias)
    return _scale(_polynomial("exp", _remainder(x, n), 1.0, 1.0), biased)


@_expansion
def exp(x: _Number) -> _Number:
    low, high = x.format.exp_bounds
    return _bounded_exp(_at_least(_at_most(x, high), low))


@_expansion
def exp2(x: _Number) -> _Number:
    low, high = x.format.exp2_bounds
    x = _at_least(_at_most(x, high), low)
    shifter = x.format.shifter + 2 * x.format.bias
    t = x + shifter
    return _scale(_polynomial("exp2", x - (t - shifter), 1.0), t.bits())


@_expansion
def expm1(x: _Number) -> _Number:
    """2^n (exp(r) - 1) + (2^n - 1), at half its size because 2^n may overflow before the result."""
    f = x.format
    bounded = _at_least(_at_most(x, f.exp_bounds[1]), -f.mantissa - 2.0)
    n, biased = _exponent(bounded, f.bias - 1)
    r = _remainder(bounded, n)
    # exp(r) - 1 = r + w; w takes in what was lost when r was rounded.
    lost = n.fma(-f.ln2[1], n.fma(-f.ln2[0], bounded) - r)
    w = (r * r).fma(_polynomial("exp", r), lost)
    half = _power_of_two(biased, f)
    return _unless_tiny(x, half.fma(w, half.fma(r, half - 0.5)) * 2.0)


@_expansion
def sigmoid(x: _Number) -> _Number:
    """With e = exp(-|x|), which cannot overflow: 1 - e / (1 + e), or e - e^2 / (1 + e) if x < 0."""
    e = _bounded_exp(_at_least((x.bits() | x.format.sign).floating(), x.format.exp_bounds[0]))
    factor = _select(x < 0.0, e, 1.0)
    return (-factor).fma(e / (e + 1.0), factor)


@_expansion
def tanh(x: _Number) -> _Number:
    """An odd polynomial near 0, else 1 - 2 / (exp(2|x|) + 1)."""
    f = x.format
    a = abs(x)
    z = x * x
    near = (a * z).fma(_polynomial("tanh", z), a)
    bounded = _at_most(a, f.tanh_bound)
    n, biased = _exponent(bounded, f.bias, times=2)
    # r is half as large as in ``exp``; the coefficients make up for it.
    if x.dtype == "f32":  # n is so small that ln2 needs no low part
        r = n.fma(-math.log(2) / 2, bounded)
    else:
        r = n.fma(-f.ln2[1] / 2, n.fma(-f.ln2[0] / 2, bounded))
    series = (1.0, 1.0, *_COEFFICIENTS["exp", x.dtype])
    p = _horner(r, tuple(c * 2.0**k for k, c in enumerate(series)))
    far = 1.0 - 2.0 / _power_of_two(biased, f).fma(p, 1.0)
    return _select(a < 0.6875, near, far).signed_like(x)


def _hyperbolic(a: _Number, n_source: _Number) -> tuple[_Number, _Number, _Number, _Number]:
    """With a = n ln2 + r: sinh(r), cosh(r) - 1, sinh(n ln2), cosh(n ln2).

    sinh(a) and cosh(a) follow by the addition theorems, without division or cancellation.
    """
    f = a.format
    # Beyond this bound n stays what it is, and the polynomials overflow instead of 2^n.
    bounded = _at_most(n_source, (f.bias + 1) * math.log(2) - 0.01)
    n, biased = _exponent(bounded, f.bias - 1)
    r = _remainder(a, n)
    z = r * r
    sine = (r * z).fma(_polynomial("sinh", z), r)
    cosine = z * _polynomial("cosh", z)
    up = biased << f.mantissa
    down = ((2 * f.bias - 2) << f.mantissa) - up  # 2^(-n-1), or 0 if that is no normal number
    down = _select(down < 0, down.like(0), down)
    return sine, cosine, up.floating() - down.floating(), up.floating() + down.floating()


@_expansion
def sinh(x: _Number) -> _Number:
    a = abs(x)
    n_source = _select(a < 1.0, a.like(0.0), a)
    sine, cosine, n_sine, n_cosine = _hyperbolic(a, n_source)
    return (n_sine + cosine.fma(n_sine, sine * n_cosine)).signed_like(x)


@_expansion
def cosh(x: _Number) -> _Number:
    a = abs(x)
    sine, cosine, n_sine, n_cosine = _hyperbolic(a, a)
    return n_cosine + cosine.fma(n_cosine, sine * n_sine)


# Logarithms: x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), and log(1 + f) = f + f^2 Q(f).


def _from_exponent(field: _Number, f: _Format, bias: _Number | float) -> _Number:
    """float(field) - bias, ``bias`` being given with ``shifter`` added: before AVX-512 there is no
    conversion of i64 vectors, so the integer is planted in the low bits of a float."""
    return (field + f.shifter_bits).floating() - bias


def _exponent_and_fraction(x: _Number, bias: _Number | float) -> tuple[_Number, _Number]:
    """e and f of a positive normal x; for ``bias`` see ``_from_exponent``."""
    f = x.format
    k = x.bits() + ((f.bias << f.mantissa) - f.sqrt_half)
    significand = ((k & ((1 << f.mantissa) - 1)) + f.sqrt_half).floating()
    return _from_exponent(k >> f.mantissa, f, bias), significand - 1.0


def _split(x: _Number) -> tuple[_Number, _Number]:
    """e and f of a positive finite x."""
    f = x.format
    subnormal = x < 2.0 ** (1 - f.bias)
    bias = f.shifter + f.bias
    return _exponent_and_fraction(
        _select(subnormal, x * 2.0**f.mantissa, x),
        _select(subnormal, x.like(bias + f.mantissa), bias),
    )


def _log_limits(x: _Number, y: _Number) -> _Number:
    """``y``, or the logarithm of an ``x`` that is not positive and finite."""
    y = _select(x < math.inf, y, math.inf)
    return _select(x > 0.0, y, _select(x.equals(0.0), y.like(-math.inf), math.nan))


def _log_tail(f: _Number) -> _Number:
    """log(1 + f) - f"""
    return f * f * _polynomial("log", f)


@_expansion
def log(x: _Number) -> _Number:
    e, f = _split(x)
    high, low = x.format.ln2
    return _log_limits(x, e.fma(high, f + e.fma(low, _log_tail(f))))


@_expansion
def log2(x: _Number) -> _Number:
    e, f = _split(x)
    high, low = x.format.log2_e
    return _log_limits(x, e + f.fma(high, f.fma(low, _log_tail(f) * high)))


@_expansion
def log10(x: _Number) -> _Number:
    e, f = _split(x)
    high, low = x.format.log10_e
    e_high, e_low = x.format.log10_2
    tail = f.fma(low, _log_tail(f).fma(high, e * e_low))
    return _log_limits(x, e.fma(e_high, f.fma(high, tail)))


@_expansion
def log1p(x: _Number) -> _Number:
    """log(u), where u is 1 + x rounded; what the rounding lost is added to the fraction."""
    f = x.format
    u = x + 1.0
    lost = x - (u - 1.0)
    one = f.bias << f.mantissa
    exponent = (u.bits() + (one - f.sqrt_half)) & ((2 * f.bias + 1) << f.mantissa)
    inverse = 2 * one - exponent  # 2^-e; where it is no normal number, nothing was lost
    inverse = _select(inverse < 0, inverse.like(0), inverse)
    fraction = lost.fma(inverse.floating(), (u.bits() + one - exponent).floating() - 1.0)
    e = _from_exponent(exponent >> f.mantissa, f, f.shifter + f.bias)
    high, low = f.ln2
    y = e.fma(high, fraction + e.fma(low, _log_tail(fraction)))
    return _select(x.equals(0.0), x, _log_limits(u, y))


# Trigonometric functions.

# 1 / pi as high + low, for |x| >= start: there x is a multiple of such a power of two that the
# leading bits of 1 / pi add whole turns only. They are left out, which keeps high * x below 2^49.
_INVERSE_PI = (
    (0.0, 0.3183098861837907, -1.9678676675182486e-17),
    (2.0**50, -2.0598845603958264e-09, 1.4188110088932633e-25),
    (2.0**77, 3.583247455607534e-17, -1.0721436282893004e-33),
    (2.0**103, -2.7170920538718753e-25, 1.9429493537593412e-41),
)
# pi in three parts; the first has 43 bits, so that its multiples are exact as long as may be.
_PI_PARTS = (3.1415926535896688, 1.2446744343793227e-13, 1.69568553207378e-31)
# Between the extremes of sin(pi f) / f on [0, 1/2], which balances the rounding errors.
_SINE_SLOPE = 2.375


def _half_turns(x: _Number) -> tuple[_Number, _Number]:
    """x / pi = n + f, |f| <= 0.523, for any float32 x: the bits of n, and f in float64.

    x * high has 77 bits. Where n cancels so many that x * low, the next bits of 1 / pi, counts, the
    difference is exact.
    """
    a = abs(x)
    wide = x.cast("f64")
    _, high, low = (wide.like(c) for c in _INVERSE_PI[0])
    for start, next_high, next_low in _INVERSE_PI[1:]:
        large = a >= start
        high = _select(large, wide.like(next_high), high)
        low = _select(large, wide.like(next_low), low)
    shifter = wide.format.shifter
    t = wide.fma(high, shifter)
    return t.bits(), wide.fma(low, wide.fma(high, shifter - t))


def _radians(x: _Number, period: float, offset: float) -> tuple[_Number, _Number, _Number]:
    """n = rint(x / period + offset) for float64 |x| < 2^46: its bits, m = n - offset as a float,
    and x - m * (the first part of ``period``), exactly."""
    shifter = x.format.shifter
    if offset:
        t = x.fma(1 / period, offset) + shifter
        n = t - shifter - offset
    else:
        t = x.fma(1 / period, shifter)
        n = t - shifter
    return t.bits(), n, n.fma(-_PI_PARTS[0] * (period / math.pi), x)


def _sine(x: _Number, quarter: bool) -> _Number:
    """sin(x), or sin(x + pi/2) if ``quarter``."""
    if x.dtype == "f32":
        n, f = _half_turns(x)
        if quarter:
            f = 0.5 - abs(f)
        f = (f.bits() ^ (n << 63)).floating().cast("f32")
        return f.fma(_SINE_SLOPE, f * _polynomial("sin", f * f))
    bits, n, r = _radians(x, math.pi, 0.5 if quarter else 0.0)
    for part in _PI_PARTS[1:]:
        r = n.fma(-part, r)
    z = r * r
    y = (r * z).fma(_polynomial("sin", z), r)
    y = _at_least(_at_most((y.bits() ^ (bits << 63)).floating(), 1.0), -1.0)
    return _select(abs(x) < 2.0**46, y, math.nan)


@_expansion
def sin(x: _Number) -> _Number:
    return _unless_tiny(x, _sine(x, quarter=False))


@_expansion
def cos(x: _Number) -> _Number:
    return _sine(x, quarter=True)


@_expansion
def tan(x: _Number) -> _Number:
    if x.dtype == "f32":  # all in float64: reduction, quotient and their errors add up otherwise
        _, f = _half_turns(x)
        a = abs(f)
        steep = a > 0.25
        g = _select(steep, 0.5 - a, a)
        p = g * _horner(g * g, _COEFFICIENTS["tan", "f32"])
        y = _select(steep, p.like(1.0), p) / _select(steep, p, 1.0)
        return _unless_tiny(x, (y.bits() ^ (f.bits() & f.format.sign)).floating().cast("f32"))
    bits, n, r = _radians(x, math.pi / 2, 0.0)
    # r - n * (second + third) as r + tail: exact product, exact sum, and a sum of what they lost.
    _, second, third = (part / 2 for part in _PI_PARTS)
    product = n * second
    rough = r - product
    back = r - rough
    lost = r - (rough + back) + (back - product) - n.fma(third, n.fma(second, -product))
    r = rough + lost
    tail = lost - (r - rough)
    z = r * r
    p = r + (r * z).fma(_polynomial("tan", z), tail.fma(z, tail))
    odd = (bits & 1).equals(1)
    y = _select(odd, p.like(-1.0), p) / _select(odd, p, 1.0)
    return _unless_tiny(x, _select(abs(x) < 2.0**46, y, math.nan))


def _arctangent(t: _Number) -> _Number:
    z = t * t
    return (t * z).fma(_polynomial("atan", z), t)


def _complement(p: _Number, quarters: int) -> _Number:
    """quarters * pi/2 - p"""
    high, low = p.format.half_pi
    return quarters * high - (p - quarters * low)


@_expansion
def atan(x: _Number) -> _Number:
    a = abs(x)
    steep = a > 1.0
    p = _arctangent(_select(steep, a.like(1.0), a) / _select(steep, a, 1.0))
    return _select(steep, _complement(p, 1), p).signed_like(x)


@_expansion
def atan2(y: _Number, x: _Number) -> _Number:
    a, b = abs(y), abs(x)
    steep = a > b
    small, large = _select(steep, b, a), _select(steep, a, b)
    one = _select(small > 0.0, small.like(1.0), 0.0)
    p = _arctangent(_select(small.equals(large), one, small / large))  # 0 / 0 and inf / inf too
    p = _select(steep, _complement(p, 1), p)
    return _select(x.bits() < 0, _complement(p, 2), p).signed_like(y)


def _arcsine(a: _Number, near: _Number) -> tuple[_Number, _Number]:
    """s and asin(s) - s, where s is ``a`` if ``near``, else sqrt((1 - a) / 2)."""
    z = _select(near, a * a, a.fma(-0.5, 0.5))
    s = _select(near, a, z.sqrt())
    return s, s * z * _polynomial("asin", z)


@_expansion
def asin(x: _Number) -> _Number:
    """asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)) above 1/2."""
    a = abs(x)
    near = a <= 0.5
    s, w = _arcsine(a, near)
    high, low = x.format.half_pi
    head = s.fma(-2.0, high)
    lost = s.fma(-2.0, high - head)  # where s is small, head is rounded
    far = head + (lost - w.fma(2.0, -low))
    return _select(near, s + w, far).signed_like(x)


@_expansion
def acos(x: _Number) -> _Number:
    near = abs(x) <= 0.5
    s, w = _arcsine(abs(x), near)
    negative = x < 0.0
    p = s + w
    twice = p + p
    far = _select(negative, _complement(twice, 2), twice)
    return _select(near, _complement(_select(negative, -p, p), 1), far)


@_expansion
def erf(x: _Number) -> _Number:
    """An odd polynomial near 0, else 1 - q^4: the fourth root of erfc is close to a polynomial."""
    f = x.format
    near = x.fma(_polynomial("erf", x * x), x)
    a = abs(x)
    q = _polynomial("erf_tail", _at_most(a, f.erf_bound) - f.erf_center)
    q = q * q
    far = (-q).fma(q, 1.0)
    return _select(a < 1.1, near, far.signed_like(x))


# Powers: |x|^y = 2^(y log2|x|).

# 2 / (3 ln2) and its head and tail.
_LOG2_SCALE = (0.9617966939259756, 0.9617966860532761, 7.872699542894897e-09)


def _head(x: _Number) -> _Number:
    """The leading 26 bits of a float64: the product of two heads is exact."""
    return (x.bits() & -(1 << 27)).floating()


def _log2_parts(x: _Number) -> tuple[_Number, _Number]:
    """log2 of a positive float64 as head + tail, to about 65 bits.

    log(1 + f) = 2 atanh(s) with s = f / (2 + f), and atanh(s) = s + s^3 / 3 + s^5 Q(s^2), where all
    but Q is computed as head + tail. Sun's fdlibm (e_pow.c) is the source of this scheme.
    """
    e, f = _split(x)
    d = f + 2.0
    d_head = _head(d)
    d_tail = f - (d_head - 2.0)
    inverse = 1.0 / d
    s = f * inverse
    s_head = _head(s)
    s_tail = inverse * (-d_tail).fma(s_head, (-d_head).fma(s_head, f))
    # 3 atanh(s) = s u
    z = s * s
    z_head = s_head * s_head
    rest = (z * z * 3.0).fma(_polynomial("pow", z), s_tail * (s_head + s))
    u_head = _head(z_head + 3.0 + rest)
    u_tail = rest - (u_head - 3.0 - z_head)
    p = s_head * u_head
    p_rest = s_tail.fma(u_head, u_tail * s)
    p_head = _head(p + p_rest)
    p_tail = p_rest - (p_head - p)
    scale, scale_head, scale_tail = _LOG2_SCALE
    high = p_head * scale_head
    low = p_head.fma(scale_tail, p_tail * scale)
    head = _head(e + (high + low))
    return head, low - (head - e - high)


def _power64(x: _Number, y: _Number) -> _Number:
    log_head, log_tail = _log2_parts(x)
    y_head = _head(y)
    w = y_head * log_head
    rest = (y - y_head).fma(log_head, y * log_tail)
    rest = _select(abs(w) < 1100.0, rest, 0.0)  # beyond, the result is 0 or inf
    w = _at_least(_at_most(w, 1100.0), -1100.0)
    shifter = w.format.shifter + 2 * w.format.bias
    t = w + shifter
    return _scale(_polynomial("exp2", w - (t - shifter) + rest, 1.0), t.bits())


def _power32(x: _Number, y: _Number) -> _Number:
    """In float64, which also rounds and scales the result right."""
    wide = x.cast("f64")
    shifter = wide.format.shifter + wide.format.bias
    e, f = _exponent_and_fraction(wide, shifter)
    s = f / (f + 2.0)
    series = (1.0, 1 / 3, *_COEFFICIENTS["pow", "f32"])
    log = s.fma(_horner(s * s, tuple(c * 2 * math.log2(math.e) for c in series)), e)
    w = _at_least(_at_most(y.cast("f64") * log, 300.0), -300.0)
    t = w + shifter
    p = _horner(w - (t - shifter), (1.0, *_COEFFICIENTS["pow_exp2", "f32"]))
    return (p * _power_of_two(t.bits(), w.format)).cast("f32")


@_expansion
def pow(x: _Number, y: _Number) -> _Number:
    a = abs(x)
    numbers = x.equals(x) & y.equals(y)
    y = _at_least(_at_most(y, 2.0**65), -(2.0**65))  # no other power becomes 0 or inf by this
    power = _power32(a, y) if x.dtype == "f32" else _power64(a, y)
    zero, infinite = a.equals(0.0), a.equals(math.inf)
    edge = _select(zero ^ (y > 0.0), y.like(math.inf), 0.0)
    power = _select(zero | infinite, edge, power)
    whole = y.rint().equals(y)
    half = y * 0.5
    odd = whole & half.rint().differs(half)
    bits = power.bits()
    power = _select(odd, bits | (x.bits() & x.format.sign), bits).floating()
    defined = numbers & (whole | infinite | (x >= 0.0))
    power = _select(defined, power, math.nan)
    return _select(x.equals(1.0) | y.equals(0.0), power.like(1.0), power)
