"""Primitives of one element where a branch or a flag makes them shorter than those of vectors.

What divisors hardly ever are (0, -1, large, or of another sign than what is left) is behind
branches that are not taken, so that a chain of divisions waits for divisions alone. LLVM's own way
around divisions of 64 bits jumps in each of them, from which the prediction of others suffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ....ir.scalar.expand import EXPANSIONS
from ....ir.types import DTYPES
from .values import LlvmValue

Single = Callable[[Any, LlvmValue, LlvmValue], LlvmValue]
Pair = tuple[LlvmValue, LlvmValue]


def _flag(name: str) -> Single:
    """Whether an integer operation overflows: the flag that the instruction leaves."""
    def single(s: Any, a: LlvmValue, b: LlvmValue) -> LlvmValue:
        pair = f"{{{a.type}, i1}}"
        found = s.f.call(pair, f"llvm.s{name}.with.overflow.{a.type}",
                         (a.type, a.ref), (b.type, b.ref))
        return LlvmValue(s.f(f"extractvalue {pair} {found}, 1"), "bool")

    return single


def _mul_overflows(s: Any, a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """A factor that is known says how large the other one may be, so that nobody has to wait for
    the whole product."""
    x, factor = (b, a.known) if a.known is not None else (a, b.known)
    if factor is None or abs(factor) < 2:
        return _flag("mul")(s, a, b)
    limit = 1 << DTYPES[a.dtype].bits - 1
    ends = -(limit // factor), (limit - 1) // factor  # of those for which it fits
    if factor < 0:
        ends = -((limit - 1) // -factor), limit // -factor
    low, high = ends
    from_low = s.sub(x, s.const(low, x.dtype))
    return LlvmValue(s.f(f"icmp ugt {x.type} {from_low.ref}, {high - low}"), "bool")


def _divided(s: Any, a: LlvmValue, b: LlvmValue, *, down: bool) -> Pair:
    """Quotient and rest, of truncation or rounded ``down``."""
    zero = s.const(0, a.dtype)

    def near() -> Pair:
        """In 32 bits, which takes some CPUs a fourth of the time."""
        parts = [s.f(f"trunc i64 {part.ref} to i32") for part in (a, b)]
        quotient, rest = (LlvmValue(s.f(f"zext i32 {s.f(f'{word} i32 {parts[0]}, {parts[1]}')} "
                                        "to i64"), a.dtype) for word in ("udiv", "urem"))
        return quotient, rest

    def far() -> Pair:
        if a.dtype[0] == "u":
            return s.raw_div(a, b), s.raw_rem(a, b)
        found: Pair = s.seldom(s.eq(b, s.const(-1, b.dtype)), lambda: (s.neg(a), zero),
                               lambda: (s.raw_div(a, b), s.raw_rem(a, b)))
        return _rounded_down(s, found, b) if down else found

    def by_some() -> Pair:
        if DTYPES[a.dtype].bits != 64:
            return far()
        high = s.f(f"lshr i64 {s.or_(a, b).ref}, 32")
        found: Pair = s.seldom(LlvmValue(s.f(f"icmp ne i64 {high}, 0"), "bool"), far, near)
        return found

    found: Pair = s.seldom(s.eq(b, zero), lambda: (zero, zero), by_some)
    return found


def _rounded_down(s: Any, found: Pair, b: LlvmValue) -> Pair:
    quotient, rest = found
    zero, one = s.const(0, b.dtype), s.const(1, b.dtype)

    def other() -> Pair:
        """For a rest that has not the sign of the divisor, as 0 has not that of a negative one."""
        exact = s.eq(rest, zero)
        return (s.select(exact, quotient, s.sub(quotient, one)),
                s.select(exact, rest, s.add(rest, b)))

    made: Pair = s.seldom(s.lt(s.xor(rest, b), zero), other, lambda: found)
    return made


def _by_unknown(name: str, down: bool, at: int) -> Single:
    """Of divisors that are known, what is written for all."""
    def single(s: Any, a: LlvmValue, b: LlvmValue) -> LlvmValue:
        if b.known is None and DTYPES[b.dtype].is_int:
            return _divided(s, a, b, down=down)[at]
        found: LlvmValue = EXPANSIONS[name](s, a, b)
        return found

    return single


LLVM_SINGLES: Mapping[str, Single] = MappingProxyType({
    "add_overflows": _flag("add"), "sub_overflows": _flag("sub"), "mul_overflows": _mul_overflows,
    **{name: _by_unknown(name, down, at) for name, down, at in (
        ("idiv", False, 0), ("irem", False, 1), ("floordiv", True, 0), ("mod", True, 1))},
})


def _small_product(s: Any, a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Whether a product overflows, where those of 32 bits are the usual ones."""
    if a.known is not None or b.known is not None or DTYPES[a.dtype].bits != 64:
        return _mul_overflows(s, a, b)
    for factor in dict.fromkeys((a, b)):
        moved = s.add(factor, s.const(1 << 31, factor.dtype))
        s.note(LlvmValue(s.f(f"icmp ugt i64 {moved.ref}, {(1 << 32) - 1}"), "bool"))
    return LlvmValue("false", "bool")


def _small_division(name: str, word: str) -> Single:
    """By a positive number that is known, where what is divided is usually one of 31 bits."""
    def single(s: Any, a: LlvmValue, b: LlvmValue) -> LlvmValue:
        if b.known is None or not 0 < b.known < 1 << 31 or DTYPES[a.dtype].bits != 64:
            found: LlvmValue = EXPANSIONS[name](s, a, b)
            return found
        s.note(LlvmValue(s.f(f"icmp ugt i64 {a.ref}, {(1 << 31) - 1}"), "bool"))
        part = s.f(f"{word} i32 {s.f(f'trunc i64 {a.ref} to i32')}, {b.known}")
        return LlvmValue(s.f(f"zext i32 {part} to i64"), a.dtype)

    return single


# Without branches and flags, which LLVM makes no vectors of, and without divisions of 64 bits.
LLVM_USUAL: Mapping[str, Single] = MappingProxyType({
    "mul_overflows": _small_product, **{name: _small_division(name, word) for name, word in (
        ("idiv", "udiv"), ("irem", "urem"), ("floordiv", "udiv"), ("mod", "urem"))}})
