"""Keys of numbers: signed integers in the order that ``ir.ordering`` gives them, as statements."""

from __future__ import annotations

from typing import Any

from ..types import DTYPES, DType


def key_of(s: Any, value: Any, dtype: DType, *, places: bool) -> Any:
    """The key of a value; ``places``: -0.0 and 0.0 have one."""
    whole = DTYPES[f"i{dtype.bits}"]
    if dtype.kind == "i":
        return value
    if dtype.kind == "u":
        return s.apply("xor", s.bitcast(value, whole), s.const(-1 << (dtype.bits - 1), whole))
    if places:
        value = s.apply("add", value, s.const(0.0, dtype))  # -0.0 + 0.0 is 0.0
    bits = s.bitcast(value, whole)
    one_nan = s.const(0x7FC0_0000 if dtype.bits == 32 else 0x7FF8 << 48, whole)
    return _mirrored(s, s.apply("select", s.apply("ne", value, value), one_nan, bits), whole)


def value_of(s: Any, key: Any, dtype: DType) -> Any:
    """The value of a key, as bits."""
    whole = DTYPES[f"i{dtype.bits}"]
    if dtype.kind == "u":
        return s.apply("xor", key, s.const(-1 << (dtype.bits - 1), whole))
    return _mirrored(s, key, whole) if dtype.is_float else key


def packed(s: Any, key: Any, place: Any) -> Any:
    """A key of 32 bits above the place of its element: all words of a row are different."""
    whole = DTYPES["i64"]
    high = s.apply("raw_shl", s.cast(key, whole), s.const(32, whole))
    return s.apply("or_", high, place)


def place_of(s: Any, word: Any) -> Any:
    """The place in a packed word."""
    return s.apply("and_", word, s.const((1 << 32) - 1, DTYPES["i64"]))


def _mirrored(s: Any, bits: Any, whole: DType) -> Any:
    """Bits of negative numbers with their order turned, and back."""
    sign = s.apply("raw_shr", bits, s.const(whole.bits - 1, whole))
    return s.apply("xor", bits, s.apply("and_", sign, s.const((1 << (whole.bits - 1)) - 1, whole)))
