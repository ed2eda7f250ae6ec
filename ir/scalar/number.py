"""Numbers to write formulas with, for any emitter: ``(x * 2.0).fma(y, 1.0)``.

A ``Number`` is a builder and one of its opaque values: an operator asks the builder for the
primitive of that name. ``Format`` has what formulas need to know about the number's dtype.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Protocol

from ..record import record


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

    def rarely(self, cond: Any, function: Callable[..., Any], args: Any, usual: Any) -> Any:
        """``function(builder, *args)`` where ``cond`` holds, else ``usual``; all have one dtype.

        An emitter that can branch runs the function only where a lane needs it.
        """

    def repeat(
        self, limit: int, going: Callable[..., Any], step: Callable[..., Any], state: Any
    ) -> Any:
        """``state = step(*state)`` at most ``limit`` times, in each lane while ``going(*state)``.

        A lane that has ended keeps its state, so what others do is nothing to it.
        """


@record(frozen=True)
class Format:
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


FORMATS = MappingProxyType({
    "f32": Format(
        integer="i32", mantissa=23, bias=127, sqrt_half=0x3F3504F3,
        exp_bounds=(-104.0, 89.0), exp2_bounds=(-151.0, 129.0),
        tanh_bound=9.1, erf_bound=3.95, erf_center=2.5,
        ln2=(0.693145751953125, 1.4286068203094173e-06),
        log10_2=(0.301025390625, 4.605038981195214e-06),
        log2_e=(1.4426950216293335, 1.9259629911266175e-08),
        log10_e=(0.4342944920063019, -1.0103050052231683e-08),
        half_pi=(1.5707963705062866, -4.3711390001862426e-08),
    ),
    "f64": Format(
        integer="i64", mantissa=52, bias=1023, sqrt_half=0x3FE6A09E667F3BCD,
        exp_bounds=(-746.0, 710.0), exp2_bounds=(-1076.0, 1025.0),
        tanh_bound=19.1, erf_bound=5.95, erf_center=3.5,
        ln2=(0.693147180559663, 2.8235290563031577e-13),
        log10_2=(0.30102999566383914, 1.42050232272661e-13),
        log2_e=(1.4426950408889634, 2.0355273740931033e-17),
        log10_e=(0.4342944819032518, 1.098319650216765e-17),
        half_pi=(1.5707963267948966, 6.123233995736766e-17),
    ),
})


def _unary(method: str) -> Callable[[Number], Number]:
    def apply(a: Number) -> Number:
        return Number(a.s, getattr(a.s, method)(a.v))

    return apply


def _binary(method: str) -> Callable[[Number, Number | float], Number]:
    def apply(a: Number, b: Number | float) -> Number:
        return Number(a.s, getattr(a.s, method)(a.v, a.like(b).v))

    return apply


class Number:
    """A builder value for use in formulas; a number beside it becomes a constant of its dtype."""

    __slots__ = ("s", "v")

    def __init__(self, s: ScalarBuilder, v: Any) -> None:
        self.s = s
        self.v = v

    @property
    def dtype(self) -> str:
        return str(self.v.dtype)

    @property
    def format(self) -> Format:
        return FORMATS[self.dtype]

    def like(self, x: Number | float) -> Number:
        return x if isinstance(x, Number) else Number(self.s, self.s.const(x, self.dtype))

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

    def __rsub__(self, other: float) -> Number:
        return self.like(other) - self

    def __rtruediv__(self, other: float) -> Number:
        return self.like(other) / self

    def fma(self, factor: Number | float, term: Number | float) -> Number:
        """self * factor + term"""
        return Number(self.s, self.s.fma(self.v, self.like(factor).v, self.like(term).v))

    def cast(self, dtype: str) -> Number:
        return Number(self.s, self.s.cast(self.v, dtype))

    def bits(self) -> Number:
        return Number(self.s, self.s.bitcast(self.v, self.format.integer))

    def floating(self) -> Number:
        """The float that has the bits of this integer."""
        return Number(self.s, self.s.bitcast(self.v, {"i32": "f32", "i64": "f64"}[self.dtype]))

    def signed_like(self, x: Number) -> Number:
        """This non-negative value with the sign of ``x``."""
        return (self.bits() | (x.bits() & x.format.sign)).floating()


def select(cond: Number, a: Number, b: Number | float) -> Number:
    return Number(cond.s, cond.s.select(cond.v, a.v, a.like(b).v))


def rarely(
    cond: Number, function: Callable[..., Number], args: tuple[Number, ...], usual: Number
) -> Number:
    """``function(*args)`` where ``cond`` holds, which is seldom enough to be worth a branch."""
    values = tuple(arg.v for arg in args)
    return Number(cond.s, cond.s.rarely(cond.v, expansion(function), values, usual.v))


def loop(
    limit: int, going: Callable[..., Number], step: Callable[..., tuple[Number, ...]],
    state: tuple[Number, ...],
) -> tuple[Number, ...]:
    """``step`` at most ``limit`` times while ``going`` holds: for series of unknown length."""
    s = state[0].s

    def numbers(values: Any) -> tuple[Number, ...]:
        return tuple(Number(s, value) for value in values)

    found = s.repeat(limit, lambda *values: going(*numbers(values)).v,
                   lambda *values: tuple(x.v for x in step(*numbers(values))),
                   tuple(x.v for x in state))
    return numbers(found)


def called(name: str, *args: Number) -> Number:
    """A composite primitive by name, which an emitter may keep as a function of its own."""
    s = args[0].s
    return Number(s, getattr(s, name)(*(arg.v for arg in args)))


def expansion(function: Callable[..., Number]) -> Callable[..., Any]:
    """A function of ``Number`` as a function of a builder and its values."""

    @functools.wraps(function)
    def expand(s: ScalarBuilder, *args: Any) -> Any:
        return function(*(Number(s, arg) for arg in args)).v

    return expand


def at_most(x: Number, bound: Number | float) -> Number:
    """min(x, bound), and NaN where x is. Written like this it is one instruction on x86."""
    limit = x.like(bound)
    return select(limit < x, limit, x)


def at_least(x: Number, bound: Number | float) -> Number:
    limit = x.like(bound)
    return select(x < limit, limit, x)


def unless_tiny(x: Number, y: Number) -> Number:
    """``y``, but ``x`` where f(x) rounds to x: this keeps -0 and the last bit of subnormals."""
    return select(abs(x) < 2.0**-60, x, y)
