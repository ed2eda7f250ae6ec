"""Functions on the bits of numbers: exponents, neighbours, counts of bits, arrays seen as others.

A float of b bits is a sign, an exponent that is counted from a bias, and a mantissa:

    s | e e e e | m m m m m m        (-1)**s * 2**(e - bias) * 1.mmmmmm
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.record import record
from ....ir.types import as_dtype, float_info, number_kind
from ...tracing.arrays import views
from ...tracing.context.active import current
from ...tracing.operand import cast, constant, reshape, strong, to_tracer
from ...tracing.subclasses import computes_itself, of_class
from ...tracing.values.tracer import Tracer


@record(frozen=True)
class Layout:
    """How the floats of a dtype lie in integers of the same size."""

    ints: np.dtype[Any]
    mantissa: int
    bias: int

    @classmethod
    def of(cls, dtype: np.dtype[Any]) -> Layout:
        info = float_info(dtype)
        return cls(np.dtype(f"i{dtype.itemsize}"), int(info.nmant), int(info.maxexp) - 1)

    @property
    def exponents(self) -> int:
        """All bits of an exponent, as a number."""
        return 2 * self.bias + 1


def bitcast(x: Any, dtype: Any) -> Any:
    return current().emit("bitcast", x, dtype=as_dtype(dtype))


def ldexp(x: Any, n: Any) -> Any:
    """x * 2**n, rounded once: no factor but the last one reaches the numbers below the normal."""
    form = Layout.of(x.dtype)
    least, most = 1 - form.bias, form.bias
    deep = least + form.mantissa + 1
    n = cast(np.clip(n, 4 * least, 4 * most), form.ints)
    for _ in range(2):
        above, below = n > most, n < least
        x = np.where(above, x * 2.0**most, np.where(below, x * 2.0**deep, x))
        n = np.where(above, n - most, np.where(below, n - deep, n))
    n = np.clip(n, least, most) + form.bias
    return x * bitcast(n << form.mantissa, x.dtype)


def frexp(x: Any) -> tuple[Any, Any]:
    """A mantissa from 0.5 to 1 and an exponent."""
    form = Layout.of(x.dtype)
    small = abs(x) < float_info(x.dtype).tiny
    more = form.mantissa + 2
    bits = bitcast(np.where(small, x * 2.0**more, x), form.ints)
    half = form.bias - 1
    exponent = ((bits >> form.mantissa) & form.exponents) - half - np.where(small, more, 0)
    exponent = np.where(np.equal(x, 0) | ~np.isfinite(x), 0, exponent)
    return ldexp(x, -exponent), exponent.astype(np.int32)


def modf(x: Any) -> tuple[Any, Any]:
    """The fraction and the whole number, both with the sign of x."""
    whole = np.trunc(x)
    return np.copysign(np.where(np.isinf(x), 0, x - whole), x), whole


def nextafter(x: Any, y: Any) -> Any:
    """The next number after x in the direction of y; it moves as x does."""
    form = Layout.of(x.dtype)
    bits = bitcast(x, form.ints)
    moved = bitcast(bits + np.where((x < y) == (x > 0), 1, -1).astype(form.ints), x.dtype)
    least = constant(float(float_info(x.dtype).smallest_subnormal), x.dtype, x.type.shape)
    moved = np.where(np.equal(x, 0), np.copysign(least, y), moved)
    same = x if x.dtype == np.float16 else y  # as two zeros are: NumPy's halves stay
    found = np.where(np.isnan(x) | np.isnan(y), x + y, np.where(np.equal(x, y), same, moved))
    found, here = (current().emit("stop_gradient", value) for value in (found, x))
    return found - np.where(np.isfinite(x), here - x, 0)  # 0.0, with the gradient of -x


def spacing(x: Any) -> Any:
    """The distance to the next number away from 0."""
    inf = constant(np.inf, x.dtype, x.type.shape)
    if x.dtype == np.float16:  # NumPy has the distance to the next number above
        return np.where(np.isneginf(x), np.nan, nextafter(x, inf) - x)
    away = np.copysign(inf, x)
    if x.dtype.kind == "f":  # NumPy's -0.0 has the distance of 0.0; bfloat16's has its own
        away = np.where(np.equal(x, 0), inf, away)
    x = current().emit("stop_gradient", x)
    return np.where(np.isinf(x), np.nan, nextafter(x, away) - x)


def bitwise_count(x: Any) -> Any:
    """How many bits of |x| are set: sums of pairs of bits, of pairs of those, and so on."""
    x = cast(x, np.dtype(np.uint8)) if x.dtype.kind == "b" else abs(x)
    bits: Any = cast(cast(x, np.dtype(f"u{x.dtype.itemsize}")), np.dtype(np.uint64))
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return cast((bits * 0x0101010101010101) >> 56, np.dtype(np.uint8))


def fmod(x: Any, y: Any) -> Any:
    if number_kind(x.dtype) == "f":
        return current().emit("fmod", x, y)
    rest = np.remainder(x, y)
    wrong = np.not_equal(rest, 0) & ((x < 0) != (y < 0))
    return np.where(wrong, rest - y, rest) if x.dtype.kind == "i" else rest


def lcm(x: Any, y: Any) -> Any:
    whole = np.dtype(f"u{x.dtype.itemsize}")  # which holds the size of the least number, too
    a, b = (cast(abs(z), whole) for z in (x, y))
    return cast(a // np.maximum(np.gcd(a, b), 1) * b, x.dtype)


def power(x: Any, n: Any) -> Any:
    """Integers to integer powers; a step with a negative one fails."""
    if n.dtype.kind == "i":
        n = current().emit("ensure", n, n, message=(
            "integers to negative integer powers are not allowed"))
    return current().emit("ipow", x, n)


def _flat(z: Any) -> Any:
    """Complex numbers as their parts, one after the other."""
    *rest, count = z.type.shape
    both: Any = np.stack([z.real, z.imag], axis=-1)
    return reshape(both, (*rest, 2 * count))


def _paired(parts: Any) -> Any:
    """Real numbers as complex ones, of two each."""
    return current().emit("complex", parts[..., ::2], parts[..., 1::2])


def _as_words(x: Any, wanted: np.dtype[Any]) -> Any:
    """Elements as others of another size: complex numbers as their parts, wide words as narrow
    ones, the lowest first, and narrow ones as wide. Raises ShapeError where they do not fill one.
    """
    if x.dtype.kind == "c":
        x = _flat(x)
    if wanted.kind == "c":
        return _paired(_as_words(x, np.dtype(f"f{wanted.itemsize // 2}")))
    if x.dtype == wanted:
        return x  # the numbers themselves: through integers they would have no gradient
    small, wide = (np.dtype(f"u{dtype.itemsize}") for dtype in (x.dtype, wanted))
    bits = cast(x, small) if x.dtype.kind == "b" else bitcast(x, small)
    count, rest = max(small.itemsize, wide.itemsize) // min(small.itemsize, wide.itemsize), x.shape
    if small.itemsize > wide.itemsize:
        places: Any = to_tracer(np.arange(count, dtype=small) * small.type(8 * wide.itemsize))
        bits = reshape(cast(bits[..., None] >> places, wide),
                       (*x.type.shape[:-1], x.type.shape[-1] * count))
    elif small.itemsize < wide.itemsize:
        rows: Any = np.reshape(bits, (*rest[:-1], -1, count))
        bits = cast(rows[..., 0], wide)
        for at in range(1, count):
            bits = bits | (cast(rows[..., at], wide) << wide.type(8 * small.itemsize * at))
    return bits if wanted == wide else bitcast(bits, wanted)


def view(x: Any, dtype: Any) -> Tracer:
    """The memory of an array as elements of another dtype."""
    if isinstance(dtype, type) and issubclass(dtype, np.ndarray):
        if computes_itself(dtype):
            raise of_class(dtype)
        dtype = None
    a = strong(x)
    wanted = a.dtype if dtype is None else np.dtype(dtype)
    if a.dtype == wanted:
        return a[...]
    sizes = a.dtype.itemsize, wanted.itemsize
    part = sizes[0] // 2 if a.dtype.kind == "c" != wanted.kind else wanted.itemsize
    if number_kind(wanted) not in "iufc" or wanted.itemsize > part:
        raise error("W113", f"x.view({wanted}) of an array of {a.dtype} is not supported",
                    types=[a.type], hint="view it as a number dtype, or convert the numbers with "
                                         ".astype")
    if sizes[0] != sizes[1] and a.ndim == 0:
        raise error("W102", f"x.view({wanted}) of a number of {a.dtype}: the sizes differ",
                    types=[a.type], hint="use np.atleast_1d(x)")

    def seen(base: Any) -> Any:
        if base.dtype.itemsize != wanted.itemsize or "c" in (base.dtype.kind, wanted.kind):
            return _as_words(base, wanted)
        if base.dtype.kind == "b":
            base = cast(base, np.dtype(np.uint8))
        return base if base.dtype == wanted else bitcast(base, wanted)

    def back(base: Any, new: Any) -> Any:
        return _as_words(new, base.dtype)

    made: Tracer = seen(a)
    if isinstance(x, Tracer) and a.dtype.kind != "b":
        views.link(made, views.Indexed(x, seen, back))
    return made
