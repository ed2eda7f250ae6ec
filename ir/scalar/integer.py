"""What integers mean: the one place for shifts, division and conversion from floats.

Every result is defined, and equal in the interpreters, in constant folding and on every target:

    x << n, x >> n   n < 0 and n >= bits shift everything out: 0, or -1 for a negative x >> n
    x / 0, x % 0     0, and so are NumPy's // and % by zero
    min / -1         min: arithmetic wraps around, as do -min and abs(min)
    float to i32     the fraction goes; NaN and what does not fit give the least number, -2**31,
                     which is what a C compiler's code for x86-64 gives, and so NumPy
    float to i64     likewise with -2**63
    i8 i16 u8 u16    the low bits of that i32;  u32  the low bits of that i64
    a + b            wraps around where ``add_overflows``; likewise a - b and a * b
    float to u64     the bits of that i64; from 2**63 on those of x - 2**63 with the top one turned

(NumPy's own u32 depends on the position in an array: its vector loop has another rule than the
loop for the rest, which is the one above.)

Machines and LLVM leave these open, so an emitter has no say in them: it offers *raw* primitives,
the bare instructions (``scalar.RAW``), and what is written here keeps their operands or their
results inside the domain. ``s`` is any scalar builder. A value with an attribute ``known`` that is
not None is the constant of that value, and needs no test at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from ..types import F32, F64, I32, I64, U32, U64, DType, as_dtype


def _known(x: Any) -> int | None:
    return getattr(x, "known", None)


def _fits(s: Any, count: Any, dtype: DType) -> Any:
    """Whether a shift count lies in [0, bits): a negative one is large as an unsigned number."""
    unsigned = as_dtype(f"u{dtype.bits}")
    return s.lt(s.cast(count, unsigned), s.const(dtype.bits, unsigned))


def shl(s: Any, a: Any, b: Any) -> Any:
    """``a << b``."""
    dtype, count = as_dtype(a.dtype), _known(b)
    zero = s.const(0, dtype)
    if count is not None:
        return s.raw_shl(a, b) if 0 <= count < dtype.bits else zero
    # What the instruction gives for another count is dropped.
    return s.select(_fits(s, b, dtype), s.raw_shl(a, b), zero)


def shr(s: Any, a: Any, b: Any) -> Any:
    """``a >> b``, with the sign of ``a``."""
    dtype, count = as_dtype(a.dtype), _known(b)
    last = s.const(dtype.bits - 1, dtype)  # shifting by so much leaves copies of the sign
    if count is not None and 0 <= count < dtype.bits:
        return s.raw_shr(a, b)
    if dtype.kind == "i":
        return s.raw_shr(a, last if count is not None else s.select(_fits(s, b, dtype), b, last))
    zero = s.const(0, dtype)
    return zero if count is not None else s.select(_fits(s, b, dtype), s.raw_shr(a, b), zero)


def _divisor(s: Any, b: Any) -> tuple[Any, Any, Any]:
    """A divisor that the machine takes, and where it is not b: b is 0; b is -1 or None."""
    dtype = as_dtype(b.dtype)
    by_zero = special = s.eq(b, s.const(0, dtype))
    negates = None
    if dtype.kind == "i":
        negates = s.eq(b, s.const(-1, dtype))
        special = s.or_(by_zero, negates)
    return s.select(special, s.const(1, dtype), b), by_zero, negates


def idiv(s: Any, a: Any, b: Any) -> Any:
    """``a / b`` without its fraction."""
    dtype, divisor = as_dtype(a.dtype), _known(b)
    zero = s.const(0, dtype)
    if divisor in (0, -1):
        return zero if divisor == 0 else s.neg(a)
    if divisor is not None:
        return s.raw_div(a, b)
    safe, by_zero, negates = _divisor(s, b)
    quotient = s.raw_div(a, safe)
    if negates is not None:
        quotient = s.select(negates, s.neg(a), quotient)
    return s.select(by_zero, zero, quotient)


def irem(s: Any, a: Any, b: Any) -> Any:
    """``a - idiv(a, b) * b``, but 0 for b = 0: what division by the safe divisor 1 leaves."""
    divisor = _known(b)
    if divisor in (0, -1):
        return s.const(0, as_dtype(a.dtype))
    return s.raw_rem(a, b if divisor is not None else _divisor(s, b)[0])


def _differ(s: Any, a: Any, b: Any, zero: Any) -> Any:
    return s.ne(s.lt(a, zero), s.lt(b, zero))


def mod(s: Any, a: Any, b: Any) -> Any:
    """``a % b`` with the sign of ``b``, as in Python and NumPy."""
    dtype = as_dtype(a.dtype)
    rest = s.irem(a, b)
    if dtype.kind == "u":
        return rest
    zero = s.const(0, dtype)
    wrong = s.and_(s.ne(rest, zero), _differ(s, rest, b, zero))
    return s.select(wrong, s.add(rest, b), rest)


def floordiv(s: Any, a: Any, b: Any) -> Any:
    """``a // b`` rounded down, as in Python and NumPy."""
    dtype = as_dtype(a.dtype)
    quotient = s.idiv(a, b)
    if dtype.kind == "u":
        return quotient
    zero = s.const(0, dtype)
    inexact = s.and_(s.ne(s.irem(a, b), zero), _differ(s, a, b, zero))
    return s.select(s.and_(inexact, s.ne(b, zero)), s.sub(quotient, s.const(1, dtype)), quotient)


def from_float(s: Any, x: Any, dtype: DType) -> Any:
    """The float ``x`` as an integer."""
    if as_dtype(x.dtype).bits < 32:
        x = s.cast(x, F32)
    start = as_dtype(x.dtype)
    if dtype == U64:
        half = s.const(2.0**63, start)
        above = s.ge(x, half)
        low = s.cast(_signed(s, s.select(above, s.sub(x, half), x), I64), U64)
        return s.xor(low, s.select(above, s.const(1 << 63, U64), s.const(0, U64)))
    if dtype == U32:
        return s.cast(_low_word(s, x), U32)
    if dtype.bits < 32:  # of -2**31 nothing is left in these
        return s.cast(_signed(s, x, I32, otherwise=0.0), dtype)
    return s.cast(_signed(s, x, dtype), dtype)


def _signed(s: Any, x: Any, dtype: DType, otherwise: float | None = None) -> Any:
    """i32 or i64; what does not fit is replaced before the conversion, by what it becomes if
    nothing else is given."""
    limit = 2.0 ** (dtype.bits - 1)
    return s.raw_int(_below(s, x, limit, -limit if otherwise is None else otherwise), dtype)


def _below(s: Any, x: Any, limit: float, otherwise: float) -> Any:
    """x, but another number where abs(x) is not below the limit."""
    start = as_dtype(x.dtype)
    return s.select(s.lt(s.abs(x), s.const(limit, start)), x, s.const(otherwise, start))


def _low_word(s: Any, x: Any) -> Any:
    """The low 32 bits of x as an i64 is, without that i64, which takes two vectors or, on machines
    without vectors of such conversions, one lane after the other.

    A multiple of 2**32 is taken away, so that at most 2**31 is left; it is exact, as all of it are
    bits of x. Where it is 2**31, the conversion of what does not fit gives the right bits.
    """
    start = as_dtype(x.dtype)
    whole = _below(s, x, 2.0**63, 0.0)
    if start != F32:  # whose numbers from 2**23 on have no fraction
        whole = s.trunc(whole)
    count = s.rint(s.mul(whole, s.const(2.0**-32, start)))
    rest = s.fma(count, s.const(-(2.0**32), start), whole)
    if start == F32:
        return _signed(s, rest, I32)
    # A float64 between 2**52 and 2**53 has its integer in its low bits.
    return s.bitcast(s.add(rest, s.const(1.5 * 2.0**52, start)), I64)


def gcd(s: Any, x: Any, y: Any) -> Any:
    """Without divisions but by powers of two (Stein, *Computational problems associated with Racah
    algebra*, 1967): b is odd, and each step halves the product of both, until a is 0.

    The least absolute value of a signed dtype is its own negative, and a power of two.
    """
    dtype = as_dtype(x.dtype)
    zero, one = s.const(0, dtype), s.const(1, dtype)

    def twos(z: Any) -> Any:
        return s.and_(z, s.sub(zero, z))

    def odd(z: Any) -> Any:
        return s.select(s.eq(z, zero), zero, s.idiv(z, s.select(s.eq(z, zero), one, twos(z))))

    def step(a: Any, b: Any) -> tuple[Any, Any]:
        low, high = s.min(a, b), s.max(a, b)
        even = s.eq(s.and_(a, one), zero)
        return s.shr(s.select(even, a, s.sub(high, low)), one), s.select(even, b, low)

    first, second = (s.abs(x), s.abs(y)) if dtype.kind == "i" else (x, y)
    common = twos(s.or_(first, second))
    none = s.eq(second, zero)
    state = odd(s.select(none, zero, first)), odd(s.select(none, first, second))
    most = 2 * dtype.bits - (2 if dtype.kind == "i" else 0) + 1
    return s.mul(common, s.repeat(most, lambda a, b: s.ne(a, zero), step, state)[1])


def ipow(s: Any, x: Any, n: Any) -> Any:
    """``x**n`` by repeated squaring, of the low bits of the exponent; the sign of one that has a
    sign does not count."""
    dtype = as_dtype(x.dtype)
    zero, one = s.const(0, dtype), s.const(1, dtype)
    signed = dtype.kind == "i"
    if signed:
        n = s.and_(n, s.const((1 << dtype.bits - 1) - 1, dtype))

    def step(result: Any, x: Any, n: Any) -> tuple[Any, Any, Any]:
        odd = s.ne(s.and_(n, one), zero)
        return s.select(odd, s.mul(result, x), result), s.mul(x, x), s.shr(n, one)

    return s.repeat(dtype.bits - signed, lambda result, x, n: s.ne(n, zero), step, (one, x, n))[0]


def add_overflows(s: Any, a: Any, b: Any) -> Any:
    """Whether ``a + b`` wraps around: then its sign is that of neither."""
    total = s.add(a, b)
    return _is_negative(s, s.and_(s.xor(total, a), s.xor(total, b)))


def sub_overflows(s: Any, a: Any, b: Any) -> Any:
    """Whether ``a - b`` wraps around: the signs of a and b differ, and it has not that of a."""
    return _is_negative(s, s.and_(s.xor(a, b), s.xor(a, s.sub(a, b))))


def mul_overflows(s: Any, a: Any, b: Any) -> Any:
    """Whether ``a * b`` wraps around: it is off by a multiple of 2**bits then, which is more than
    the product of floats rounds off."""
    far = s.sub(s.cast(s.mul(a, b), F64), s.mul(s.cast(a, F64), s.cast(b, F64)))
    return s.not_(s.lt(s.abs(far), s.const(2.0 ** (as_dtype(a.dtype).bits - 2), F64)))


def _is_negative(s: Any, x: Any) -> Any:
    return s.lt(x, s.const(0, as_dtype(x.dtype)))


# The composite primitives of integers, by name; ``expand`` has those of floats.
EXPANSIONS: MappingProxyType[str, Callable[..., Any]] = MappingProxyType({
    "shl": shl, "shr": shr, "idiv": idiv, "irem": irem, "gcd": gcd,
    "ipow": ipow, "add_overflows": add_overflows, "sub_overflows": sub_overflows,
    "mul_overflows": mul_overflows,
})
