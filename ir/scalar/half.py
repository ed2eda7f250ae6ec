"""f16 and bf16 from and to f32, by integer arithmetic on their bits, for CPUs that cannot do it.

Rounded to nearest, ties to even, with subnormals, infinities and signed zeros; a NaN stays one.

    bf16   the upper half of an f32:   s eeeeeeee fffffff | ffffffffffffffff
    f16    s eeeee ffffffffff          the bits of |x| * 2**-112 as an f32, shifted by 13

``s`` is any scalar builder. The bits of a half type are an i16, which ``bitcast`` gives.
"""

from __future__ import annotations

from typing import Any

from ..types import BF16, DTYPES, F32, F64, I32, U32, DType, as_dtype

_U16 = DTYPES["u16"]
_MAGNITUDE, _INFINITY = 0x7FFF_FFFF, 0x7F80_0000


def from_half(s: Any, x: Any) -> Any:
    """A half as an f32, exactly."""
    bits = s.cast(s.bitcast(x, _U16), U32)
    if as_dtype(x.dtype) == BF16:
        return s.bitcast(s.raw_shl(bits, s.const(16, U32)), F32)
    sign = s.raw_shl(s.and_(bits, s.const(0x8000, U32)), s.const(16, U32))
    rest = s.raw_shl(s.and_(bits, s.const(0x7FFF, U32)), s.const(13, U32))
    scaled = s.bitcast(s.mul(s.bitcast(rest, F32), s.const(2.0**112, F32)), U32)
    special = s.ge(rest, s.const(0x7C00 << 13, U32))  # infinity and NaN keep their fraction
    whole = s.select(special, s.or_(rest, s.const(_INFINITY, U32)), scaled)
    return s.bitcast(s.or_(whole, sign), F32)


def to_half(s: Any, x: Any, to: DType) -> Any:
    """An f32 as a half, rounded once."""
    bits = s.bitcast(x, U32)
    if to == BF16:
        odd = s.and_(s.raw_shr(bits, s.const(16, U32)), s.const(1, U32))
        rounded = s.add(s.add(bits, s.const(0x7FFF, U32)), odd)
        quiet = s.or_(bits, s.const(0x0040_0000, U32))  # of a NaN, whose upper part may be 0
        word = s.raw_shr(s.select(s.ne(x, x), quiet, rounded), s.const(16, U32))
        return s.bitcast(s.cast(word, _U16), to)
    size = s.and_(bits, s.const(_MAGNITUDE, U32))
    odd = s.and_(s.raw_shr(size, s.const(13, U32)), s.const(1, U32))
    rebased = s.sub(s.add(s.add(size, s.const(0xFFF, U32)), odd), s.const(112 << 23, U32))
    normal = s.raw_shr(rebased, s.const(13, U32))
    # The float unit rounds subnormals: 0.5 has its last bit where they have theirs.
    moved = s.add(s.bitcast(size, F32), s.const(0.5, F32))
    small = s.sub(s.bitcast(moved, U32), s.const(0x3F00_0000, U32))
    word = s.select(s.lt(size, s.const(113 << 23, U32)), small, normal)
    word = s.select(s.ge(size, s.const(0x477F_F000, U32)), s.const(0x7C00, U32), word)
    word = s.select(s.gt(size, s.const(_INFINITY, U32)), s.const(0x7E00, U32), word)
    sign = s.raw_shr(s.and_(bits, s.const(1 << 31, U32)), s.const(16, U32))
    return s.bitcast(s.cast(s.or_(word, sign), _U16), to)


def odd_float(s: Any, x: Any) -> Any:
    """An f64 as an f32 that rounds to the same f16: cut off, with its last bit set if anything was
    lost, so that it is neither a tie nor on another side of one."""
    near = s.cast(x, F32)
    back = s.cast(near, F64)
    bits = s.bitcast(near, I32)
    cut = s.select(s.gt(s.abs(back), s.abs(x)), s.sub(bits, s.const(1, I32)), bits)
    return s.bitcast(s.select(s.ne(back, x), s.or_(cut, s.const(1, I32)), bits), F32)
