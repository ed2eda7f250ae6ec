"""The algebra of elementwise ops, as a table of rewriting rules (see ``rewrite``).

Every rule keeps each bit of IEEE arithmetic, NaN payloads aside: so ``x + 0.0`` stays (it turns
-0.0 into 0.0) while ``x - 0.0`` goes, ``x * 0`` goes for integers only, and nothing is
reassociated for floats. One thing is a definition: pow(x, 2.0) *is* x * x and pow(x, -1.0) *is*
1 / x, which are correctly rounded (NumPy's ``**`` does the same).

Columns: name, dtype kinds of x (i signed, u unsigned, f float, b bool), pattern -> replacement.
"""

from __future__ import annotations

import math
from types import MappingProxyType

import numpy as np

from ...ir.graph import Value
from ...ir.types import BOOL, DType
from .rewrite import Match, Rewriter, Rule

_ALGEBRA = """
constant-second-add   iuf   add(k, x)                       -> add(x, k)
constant-second-mul   iuf   mul(k, x)                       -> mul(x, k)
constant-second-and   iub   and_(k, x)                      -> and_(x, k)
constant-second-or    iub   or_(k, x)                       -> or_(x, k)
constant-second-xor   iub   xor(k, x)                       -> xor(x, k)
constant-second-eq    iufb  eq(k, x)                        -> eq(x, k)
constant-second-ne    iufb  ne(k, x)                        -> ne(x, k)
constant-second-lt    iufb  lt(k, x)                        -> gt(x, k)
constant-second-le    iufb  le(k, x)                        -> ge(x, k)
constant-second-gt    iufb  gt(k, x)                        -> lt(x, k)
constant-second-ge    iufb  ge(k, x)                        -> le(x, k)

add-zero              iu    add(x, 0)                       -> x
add-minus-zero        f     add(x, -0.0)                    -> x
add-self              iuf   add(x, x)                       -> mul(x, 2)
add-neg               iuf   add(x, neg(y))                  -> sub(x, y)
neg-add               iuf   add(neg(x), y)                  -> sub(y, x)
add-add-constants     iu    add(add(x, k), m)               -> add(x, add(k, m))
sub-zero              iuf   sub(x, 0)                       -> x
sub-self              iu    sub(x, x)                       -> 0
sub-from-zero         iu    sub(0, x)                       -> neg(x)
sub-from-minus-zero   f     sub(-0.0, x)                    -> neg(x)
sub-neg               iuf   sub(x, neg(y))                  -> add(x, y)
sub-constant          iu    sub(x, k)                       -> add(x, neg(k))
neg-neg               iuf   neg(neg(x))                     -> x
neg-sub               iu    neg(sub(x, y))                  -> sub(y, x)
neg-mul-constant      iuf   neg(mul(x, k))                  -> mul(x, neg(k))

mul-one               iuf   mul(x, 1)                       -> x
mul-zero              iu    mul(x, 0)                       -> 0
mul-minus-one         iuf   mul(x, -1)                      -> neg(x)
mul-neg-constant      iuf   mul(neg(x), k)                  -> mul(x, neg(k))
mul-neg-neg           iuf   mul(neg(x), neg(y))             -> mul(x, y)
mul-abs-abs           iuf   mul(abs(x), abs(x))             -> mul(x, x)
mul-mul-constants     iu    mul(mul(x, k), m)               -> mul(x, mul(k, m))
div-one               f     div(x, 1)                       -> x
div-minus-one         f     div(x, -1)                      -> neg(x)
div-neg-constant      f     div(neg(x), k)                  -> div(x, neg(k))
div-neg-neg           f     div(neg(x), neg(y))             -> div(x, y)
floordiv-one          iu    floordiv(x, 1)                  -> x
mod-one               iu    mod(x, 1)                       -> 0
pow-zero              f     pow(x, 0)                       -> 1
pow-one               f     pow(x, 1)                       -> x
pow-two               f     pow(x, 2)                       -> mul(x, x)
pow-minus-one         f     pow(x, -1)                      -> div(1, x)
pow-of-one            f     pow(1, x)                       -> 1

abs-unsigned          u     abs(x)                          -> x
abs-neg               if    abs(neg(x))                     -> abs(x)
abs-abs               iuf   abs(abs(x))                     -> abs(x)
sign-sign             iuf   sign(sign(x))                   -> sign(x)
floor-floor           f     floor(floor(x))                 -> floor(x)
ceil-ceil             f     ceil(ceil(x))                   -> ceil(x)
rint-rint             f     rint(rint(x))                   -> rint(x)
trunc-trunc           f     trunc(trunc(x))                 -> trunc(x)
maximum-self          iufb  maximum(x, x)                   -> x
minimum-self          iufb  minimum(x, x)                   -> x
maximum-least         f     maximum(x, -inf)                -> x
minimum-greatest      f     minimum(x, inf)                 -> x

and-self              iub   and_(x, x)                      -> x
and-none              iu    and_(x, 0)                      -> 0
and-all               iu    and_(x, -1)                     -> x
and-false             b     and_(x, False)                  -> False
and-true              b     and_(x, True)                   -> x
or-self               iub   or_(x, x)                       -> x
or-none               iu    or_(x, 0)                       -> x
or-all                iu    or_(x, -1)                      -> -1
or-false              b     or_(x, False)                   -> x
or-true               b     or_(x, True)                    -> True
xor-self              iub   xor(x, x)                       -> 0
xor-none              iu    xor(x, 0)                       -> x
xor-all               iu    xor(x, -1)                      -> not_(x)
xor-false             b     xor(x, False)                   -> x
xor-true              b     xor(x, True)                    -> not_(x)
not-not               iub   not_(not_(x))                   -> x
shl-zero              iu    shl(x, 0)                       -> x
shr-zero              iu    shr(x, 0)                       -> x

not-eq                iufb  not_(eq(x, y))                  -> ne(x, y)
not-ne                iufb  not_(ne(x, y))                  -> eq(x, y)
not-lt                iub   not_(lt(x, y))                  -> ge(x, y)
not-le                iub   not_(le(x, y))                  -> gt(x, y)
not-gt                iub   not_(gt(x, y))                  -> le(x, y)
not-ge                iub   not_(ge(x, y))                  -> lt(x, y)
lt-self               iufb  lt(x, x)                        -> False
gt-self               iufb  gt(x, x)                        -> False
le-self               iub   le(x, x)                        -> True
ge-self               iub   ge(x, x)                        -> True
eq-self               iub   eq(x, x)                        -> True
ne-self               iub   ne(x, x)                        -> False
eq-true               b     eq(x, True)                     -> x
eq-false              b     eq(x, False)                    -> not_(x)
ne-true               b     ne(x, True)                     -> not_(x)
ne-false              b     ne(x, False)                    -> x

select-true           iufb  select(True, x, y)              -> x
select-false          iufb  select(False, x, y)             -> y
select-same           iufb  select(c, x, x)                 -> x
select-condition      b     select(x, True, False)          -> x
select-negation       b     select(x, False, True)          -> not_(x)
select-and            b     select(c, x, c)                 -> and_(c, x)
select-or             b     select(c, c, x)                 -> or_(c, x)
select-not            iufb  select(not_(c), x, y)           -> select(c, y, x)
select-first          iufb  select(c, select(c, x, y), z)   -> select(c, x, z)
select-second         iufb  select(c, x, select(c, y, z))   -> select(c, x, z)
"""


def _table(text: str) -> tuple[Rule, ...]:
    rules = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, kinds, meaning = line.split(None, 2)
        pattern, _, replacement = meaning.partition("->")
        rules.append(Rule(name, pattern.strip(), replacement.strip(), kinds))
    return tuple(rules)


def _exact_reciprocal(match: Match) -> bool:
    """True for a power of two whose reciprocal is finite: then x / k and x * (1/k) are one number.

    Both are the correctly rounded value of the same real number.
    """
    divisor = float(match.constant("k"))
    if not math.isfinite(divisor) or abs(math.frexp(divisor)[0]) != 0.5:
        return False
    numpy = match.type.dtype.numpy.type
    with np.errstate(over="ignore", under="ignore"):
        return all(math.isfinite(number) and float(numpy(number)) == number
                   for number in (divisor, 1 / divisor))


def _power_of_two(match: Match) -> bool:
    divisor = int(match.constant("k"))
    return divisor > 1 and divisor & (divisor - 1) == 0


def _shift(r: Rewriter, match: Match) -> Value:
    # An arithmetic shift rounds down, as floordiv does.
    value: Value = r.shr(match["x"], int(match.constant("k")).bit_length() - 1)
    return value


def _mask(r: Rewriter, match: Match) -> Value:
    value: Value = r.and_(match["x"], int(match.constant("k")) - 1)
    return value


_EXACT_BITS = MappingProxyType({"f16": 11, "bf16": 8, "f32": 24, "f64": 53})  # of integers
_WIDER = frozenset((("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64"),
                    ("f32", "f64")))


def holds(wide: DType, narrow: DType) -> bool:
    """True if every value of ``narrow`` is a value of ``wide``.

    >>> from weft.ir.types import as_dtype
    >>> holds(as_dtype("f64"), as_dtype("i32")), holds(as_dtype("f64"), as_dtype("i64"))
    (True, False)
    """
    if narrow in (BOOL, wide):
        return True
    if wide.is_float:
        if narrow.is_float:
            return (narrow.name, wide.name) in _WIDER
        return narrow.bits - (narrow.kind == "i") <= _EXACT_BITS.get(wide.name, 0)
    if not narrow.is_int or not wide.is_int:
        return False
    return wide.bits > narrow.bits and (wide.kind, narrow.kind) != ("u", "i")


def _cast_own(match: Match) -> bool:
    return match["x"].dtype == match.type.dtype


def _cast_through(match: Match) -> bool:
    """cast(cast(x, middle), last) = cast(x, last) when the middle loses nothing.

    From a float to an integer only if that fits too: a float out of range becomes another number
    than the integer that it came from.
    """
    first, middle, last = match["x"].dtype, match.inner[0].dtype, match.type.dtype
    if first.is_float and last.is_int:
        return False
    if middle.is_float and last.is_int and not holds(last, first):
        return False
    return holds(middle, first)


def _cast(r: Rewriter, match: Match) -> Value:
    value: Value = r.cast(match["x"], dtype=match.type.dtype)
    return value


ALGEBRA: tuple[Rule, ...] = (
    *_table(_ALGEBRA),
    Rule("div-power-of-two", "div(x, k)", "mul(x, div(1, k))", "f", _exact_reciprocal),
    Rule("floordiv-power-of-two", "floordiv(x, k)", _shift, "iu", _power_of_two),
    Rule("mod-power-of-two", "mod(x, k)", _mask, "iu", _power_of_two),
    Rule("cast-own", "cast(x)", "x", when=_cast_own),
    Rule("cast-cast", "cast(cast(x))", _cast, when=_cast_through),
)
