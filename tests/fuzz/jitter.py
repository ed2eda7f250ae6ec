"""How steps are shaken whose results are not certain, and by how much.

    close     shaken
    ulp       the result
    mix       the operands by 2 ULP, and the result
    sum       operands and result, unless whole numbers make the sum exact; more for long sums;
              nothing is certain where it may be infinite on the way
    mean      as sum, the result always; nothing is certain of complex infinities
    var       as mix, more for long sums
    factored  as sum; nothing is certain where an operand is not finite: the sums of each operand
              may be taken first, and complex infinities make NaN in one order or another
    row       the operands by 2 ULP, the result by ULP of its largest number; nothing is certain
              where an operand is so large or small that what is computed of it may not be finite
    finite    as row, and nothing is certain where an operand is not finite
    full      as row, and nothing is certain where an operand has no elements: NumPy's FFTs of a
              given length leave what memory held
    complex   the operands by 2 ULP and the result by ULP of their absolute values, as NumPy's loops
              fuse multiply and add or do not by the place in the array; so are arrays after each
              line of a step that multiplies, of whose largest number the ULP are then; nothing is
              certain where an operand is so large or small that a product of it may not be finite
    branch    as complex, and nothing is certain where an operand is not finite
    zero      the signs of zeros in the result; which of several complex NaN it is
    cast      nothing; but floats beyond an integer dtype are cast one by one: what NumPy's loop
              over many of them gives depends on the place in the array

Halves: Weft's sums, means and what else is computed across elements is float32 until it is done,
as NumPy's float16 mostly is and ml_dtypes' bfloat16, which rounds each partial sum, is not. So of
halves the steps ``sum``, ``mean``, ``var`` and ``factored`` are what NumPy makes of float32, shaken
there, and rounded once; of ``row`` and ``finite`` that is one of the shaken runs, and what NumPy
makes of halves is the answer. All other steps are float32 inside of both: 2 ULP are enough.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from .data import is_half, kind_of, parts
from .excused import filled, substitute
from .program import Close

Array = np.ndarray[Any, Any]
# Past this, sums of whole numbers are rounded.
WHOLE = {"bfloat16": 2.0**7, "float16": 2.0**10, "float32": 2.0**22, "float64": 2.0**50,
         "complex64": 2.0**21, "complex128": 2.0**49}
HALF_ULP = 2  # of a function of halves, computed in float32
_MULTIPLIES = re.compile(r"\*|square|multiply")
NOISE = 0.01  # of terms beside ordinary numbers
SUMS = frozenset(("sum", "mean", "factored", "var"))


class Jitter:
    """Computes the uncertain steps of a program; ``mode`` says how they are shaken."""

    def __init__(self) -> None:
        self.mode: int | None = None
        self.fill: int | None = None  # what stands for values that cannot be computed, if anything
        self.met: list[Exception] = []  # in the place of whose results something stands
        self.shapes: list[Any] = []   # of all operands and results, in order
        self.beyond = False           # whether a Python integer needs more than 64 bits
        self.largest = 0.0            # of all floats of a run
        self.risks: list[Any] = []    # where the sums of the last unshaken run may overflow
        self.sums = 0                 # of this run so far
        self.trimmed = False          # whether a polynomial has lost leading zeros
        self.array = False            # whether the last step made an array, not a number
        self.products = False         # whether arrays of the step are shaken line by line
        self.peak = 0.0               # the largest of their numbers so far
        self.rng = np.random.default_rng(0)

    def start(self, mode: int | None, fill: int | None = None) -> None:
        self.mode, self.fill, self.shapes, self.beyond = mode, fill, [], False
        self.largest, self.met, self.trimmed = 0.0, [], False
        self.sums, self.risks = 0, [] if mode is None else self.risks
        self.rng = np.random.default_rng(mode)

    def __call__(self, close: Close | None, function: Callable[..., Any], *operands: Any) -> Any:
        def seen(*operands: Any) -> Any:
            result = function(*operands)
            self.array = isinstance(result, np.ndarray)
            return result

        self.peak = 0.0
        self.products = close is not None and close[0] == "complex" and self.mode is not None
        try:
            result = self._computed(close, seen, operands)
            if self.array and not isinstance(result, np.ndarray):  # of no dims, to be written to
                result = np.asarray(result)
        except (IndexError, OverflowError, ValueError) as problem:
            if self.fill is None:
                raise
            self.met.append(problem)
            result = substitute(function, operands, self.fill)
        if type(result) is complex:  # Python's (-1.5) ** 0.5: see ``excused``, 2
            result = float("nan")
        self.beyond |= type(result) is int and not -2**63 <= result < 2**63
        self.shapes += [*map(np.shape, operands), np.shape(result)]
        if kind_of(result) == "f":
            sizes = np.abs(np.nan_to_num(np.asarray(result, float), nan=np.inf))
            self.largest = max(self.largest, float(np.max(sizes, initial=0.0)))
        return result

    @contextlib.contextmanager
    def line(self, text: str, **arrays: Any) -> Iterator[None]:
        """One line of a step that writes into some of these arrays. Where something stands for
        values that cannot be computed, it stands after a line that raises in all of them that the
        line is about, and in those of the same memory."""
        written = [array for array in arrays.values() if isinstance(array, np.ndarray)]
        about = [array for name, array in arrays.items() if re.search(rf"\b{name}\b", text)]
        try:
            yield
        except (IndexError, OverflowError, ValueError) as problem:
            if self.fill is None:
                raise
            self.met.append(problem)
            for array in written:
                if any(np.may_share_memory(array, other) for other in about):
                    array[...] = filled(array, self.fill)
        for array in written if self.products else ():
            if array.base is None:
                if _MULTIPLIES.search(text):
                    array[...] = self.shake(array, 2)
                self.peak = max(self.peak, float(np.max(_finite(array), initial=0)))

    @staticmethod
    def sorted(x: Any, axis: int = -1, kind: str | None = None) -> Any:
        """np.sort; ml_dtypes' order of bfloat16 has no place for NaN."""
        return np.sort(_single(x) if x.dtype.kind == "V" else x, axis, kind).astype(x.dtype)

    def _computed(self, close: Close | None, function: Callable[..., Any],
                  operands: tuple[Any, ...]) -> Any:
        kind, ulp = close or ("", 0)
        if kind == "cast":
            return self._cast(function, *operands)
        if kind == "zero" and any(np.asarray(x).dtype.kind == "V" for x in operands):
            # ml_dtypes' order of bfloat16 has no place for NaN.
            wide = self._computed(close, function, tuple(map(_single, operands)))
            return wide if isinstance(wide, bool) else (
                np.asarray(wide).astype(np.asarray(function(*operands)).dtype)[()])
        if close is None:
            return function(*operands)
        if kind in SUMS and any(map(is_half, operands)):
            return self._wide(close, function, operands)
        if self.mode is None:
            result = function(*operands)
            if kind in SUMS:
                self.risks.append(_overflows(kind, function, operands, result))
            if kind == "finite":
                usual = function(*map(np.ones_like, operands))
                self.trimmed |= np.shape(usual) != np.shape(result)
            return result
        if kind == "zero":
            return self._zeros(function(*operands), "c" in map(kind_of, operands))
        if kind == "ulp":
            return self.shake(function(*operands), ulp)
        if kind == "full" and not all(map(np.size, operands)):
            return _unknown(np.asarray(function(*operands)), self.mode)
        if kind in ("row", "finite", "full"):
            return self._row(function, operands, ulp, kind == "finite")
        usual = {"complex": _is_ordinary, "branch": _is_usual}.get(kind)
        if usual is not None and not all(map(usual, operands)):
            return _unknown(function(*operands), self.mode)
        result = function(*operands)
        if kind in ("mix", "complex", "branch"):
            near = _floating if kind == "mix" else np.asarray  # others may be indices
            shaken = function(*(self.shake(near(x), 2) for x in operands))
            return self.shake(shaken, ulp, self.peak)
        self.sums += 1
        if kind in ("mean", "var") and kind_of(result) == "c" and not all(
                map(_is_finite, operands)):
            return _unknown(result, self.mode)
        # Shaken operands may be infinite, which is certain; so what was a risk before stays one.
        before = self.risks[self.sums - 1] if self.sums <= len(self.risks) else False
        risk = before | _overflows(kind, function, operands, result)
        if kind != "var" and all(map(is_whole, operands)) and _sum_fits(operands, result):
            return result if kind != "mean" else self.shake(result, ulp)
        if kind == "factored" and not all(np.all(np.abs(x) < 1e30) for x in operands):
            return _unknown(result, self.mode)
        # Sums of many: both sides may add them up in any order. Equal terms are rounded the same
        # way time and again, which adds up to more than chance would.
        many = int(_added(operands, result) ** 0.5)
        ulp += 4 * many
        # Partial sums are rounded as well, which are larger than a sum of both signs.
        near = (self.shake(_floating(x), 2 + many // 8) for x in operands)
        shaken = self.shake(function(*near), ulp)
        if self.mode == 2:  # as another order of the terms may have it
            shaken = np.where(_cancels(function, operands, shaken), 0 * shaken, shaken)
        if self.mode == 3:  # or anything, where what terms are rounded by is not small itself
            shaken = np.where(_cancels(function, operands, shaken, NOISE), np.nan * shaken, shaken)
        odd = (np.nan, np.inf, -np.inf, 0.0)[(self.mode or 0) % 4]
        either = complex(odd, odd) if kind_of(shaken) == "c" else odd
        return np.where(risk, np.asarray(either, np.asarray(shaken).dtype), shaken)[()]

    def _wide(self, close: Close, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """What comes of float32 in the place of halves, in the dtype that comes of halves."""
        like = np.asarray(function(*operands))
        result = np.asarray(self._computed(close, function, tuple(map(_single, operands))))
        if kind_of(like) not in "fc":
            return like[()]
        result = result.astype(like.dtype)
        if close[0] == "var" and self.mode is not None:  # squares of halves are soon infinite
            result = np.where(np.isfinite(like), result, _unknown(result, self.mode))
        # A deviation is the root of a variance, which has been rounded as well.
        return self.shake(result, HALF_ULP) if close[0] == "var" and self.mode is not None else (
            result[()])

    def _row(self, function: Callable[..., Any], operands: tuple[Any, ...], ulp: int,
             finite: bool) -> Any:
        half = any(map(is_half, operands))
        result = np.asarray(function(*map(self._near, operands)))
        if half and kind_of(result) in "fc":
            ulp = min(ulp, HALF_ULP) if is_half(result) else ulp
            if self.mode == 0:
                result = np.asarray(function(*map(_single, operands))).astype(result.dtype)
        if kind_of(result) not in "fc":
            return result[()]
        if not all(map(_is_ordinary, operands)):
            return _unknown(result, self.mode)
        ulp += int(_terms(operands, result) ** 0.5)
        if kind_of(result) == "c":  # which of several NaN it is
            result = np.where(np.isnan(result), _unknown(result, self.mode), result)
        if is_half(result) or not all(map(_is_finite, operands)):
            result = np.where(np.isfinite(result) & (not finite), result,
                              _unknown(result, self.mode))
        scale = np.max(_finite(result), initial=0)
        by = self._by(ulp, result) * eps(result)
        return (result + (by * scale).astype(result.dtype))[()]

    def _by(self, ulp: float, like: Any) -> Any:
        """Random numbers up to that for each element, of both parts of complex ones."""
        if kind_of(like) == "c":
            real, imag = (self.rng.uniform(-ulp, ulp, np.shape(like)) for _ in range(2))
            return real + 1j * imag
        return self.rng.uniform(-ulp, ulp, np.shape(like))

    def _near(self, x: Any) -> Any:
        """x times 1 and a little; what is 0 or infinite stays so, and numbers are Python's."""
        if kind_of(x) not in "fc" or is_half(x):
            return x
        by = self.rng.uniform(-2, 2, np.shape(x)) * eps(x)
        if kind_of(x) == "c":  # infinities times a number: as parts, which stay what they are
            return _joined(parts(x) * (1 + by[..., None]).astype(np.asarray(x).real.dtype))
        moved = x * (1 + by).astype(np.asarray(x).dtype)
        return float(moved) if type(x) is float else moved

    def shake(self, x: Any, ulp: int, least: float = 0.0) -> Any:
        """x, moved by up to so many units in the last place; by all of them in modes 0 and 1.

        Complex numbers are moved as if they were no smaller than ``least``. What is moved promotes
        as x does: a Python number is one afterwards, an array is an array.
        """
        if type(x) is float:
            return float(self.shake(np.asarray(x), ulp))
        like = np.asarray if isinstance(x, np.ndarray) else lambda moved: moved[()]
        x = np.asarray(x)
        if x.dtype.kind == "c":
            return like(self._shake_complex(x, ulp, least))
        if kind_of(x) != "f":
            return like(x)
        ulp = min(ulp, HALF_ULP) if is_half(x) else ulp
        by: Any = {0: ulp, 1: -ulp}.get(self.mode or 0) if self.mode in (0, 1) else (
            self.rng.integers(-ulp, ulp + 1, x.shape))
        moved = x + np.asarray(by).astype(x.dtype) * np.spacing(np.abs(x))
        return like(np.where(np.isfinite(x), moved, x))

    def _shake_complex(self, x: Array, ulp: int, least: float) -> Any:
        """Each part by ULP of the absolute value; parts that are not finite stay so."""
        each, by = parts(x), np.asarray(self._by(ulp, x))
        size = np.maximum(np.max(_finite(each), axis=-1), least).astype(each.dtype)
        if self.mode in (0, 1):
            by = np.asarray((ulp if self.mode == 0 else -ulp) * np.full(x.shape, 1 + 1j))
        unit = np.maximum(size * eps(x), ml_dtypes.finfo(each.dtype).smallest_subnormal)
        moved = each + (parts(by) * unit[..., None]).astype(each.dtype)
        return _joined(np.where(np.isfinite(each), moved, each))

    def _zeros(self, x: Any, pairs: bool = False) -> Any:
        x = np.asarray(x)
        if x.dtype.kind == "c":
            made = _joined(np.asarray(self._zeros(parts(x))))
            return np.where(np.isnan(x), _unknown(x, self.mode), made)[()]
        if pairs and x.dtype.kind == "f":
            x = np.where(np.isnan(x), _unknown(x, self.mode), x)
        if kind_of(x) != "f":
            return x[()]
        sign = {0: 1.0, 1: -1.0}.get(self.mode or 0, 1.0)
        return np.where(x == 0, x.dtype.type(0) * x.dtype.type(sign), x)[()]

    def _cast(self, function: Callable[[Any], Any], x: Any) -> Any:
        result, x = np.array(function(x)), np.asarray(x)
        limits = np.iinfo(result.dtype)
        x = x.real
        outside = ~((x > float(limits.min)) & (x < float(limits.max)))
        for at in np.argwhere(outside):
            result[tuple(at)] = function(np.array(x[tuple(at)]))
        return result[()]


def eps(x: Any) -> float:
    """The distance from 1 to the next number of a dtype."""
    return float(ml_dtypes.finfo(np.asarray(x).dtype).eps)


def _joined(each: Array) -> Any:
    """Complex numbers of their parts."""
    return np.ascontiguousarray(each).view(f"c{2 * each.itemsize}")[..., 0][()]


def _single(x: Any) -> Any:
    """float32 in the place of halves."""
    return np.asarray(x, np.float32)[()] if is_half(x) else x


def _finite(x: Any) -> Array:
    """Absolute values as they are summed up: what is not finite is 0."""
    x = np.asarray(x)
    wide = np.abs(x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble))
    return np.asarray(np.nan_to_num(wide, posinf=0, neginf=0))


def _unknown(result: Any, mode: int | None) -> Any:
    """Of its shape, and nothing certain."""
    if kind_of(result) not in "fc":
        return result
    nan = complex(np.nan, np.nan) if kind_of(result) == "c" else np.nan
    return np.full_like(result, (0, nan, 1.25)[(mode or 0) % 3])[()]


def _is_finite(x: Any) -> bool:
    return kind_of(x) not in "fc" or bool(np.all(np.isfinite(x)))


def _is_ordinary(x: Any) -> bool:
    """Whether products and quotients of a few such numbers are numbers of the dtype; of integers,
    whether sums of them as floats are exact."""
    if kind_of(x) not in "fc":
        return bool(np.all(np.abs(np.asarray(x).astype(float)) < WHOLE["float64"]))
    x = np.abs(parts(x))
    limit = float(ml_dtypes.finfo(x.dtype).max) ** 0.2
    return bool(np.all((x == 0) | ~np.isfinite(x) | ((x < limit) & (x > 1 / limit))))


def _is_usual(x: Any) -> bool:
    return _is_finite(x) and _is_ordinary(x)


def _cancels(function: Callable[..., Any], operands: Sequence[Any], result: Any,
             least: float = 0.0) -> Any:
    """Where nothing may be left of a sum: as good as nothing of the absolute values is, though what
    they are rounded by is more than ``least``."""
    with contextlib.suppress(TypeError, ValueError):
        whole = function(*(np.abs(_floating(x)) for x in operands))
        if np.shape(whole) == np.shape(result):
            rounded = 16 * eps(result) * np.abs(whole)
            return (np.abs(result) <= rounded) & (rounded > least)
    return False


def _floating(x: Any) -> Any:
    """Integers as NumPy takes them where the result is a float, so that they can be shaken."""
    if type(x) in (int, float):
        return float(x)
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind in "iu" and x.dtype.itemsize >= 4 else x


def is_whole(x: Any) -> bool:
    x = parts(x)
    return kind_of(x) != "f" or bool(np.all(np.isfinite(x)) and np.all(x == np.rint(x)))


def _terms(operands: Sequence[Any], result: Any) -> float:
    """At least so many numbers are added up for each element."""
    return float(max(np.size(x) for x in operands) / max(np.size(result), 1))


def _added(operands: Sequence[Any], result: Any) -> float:
    """About so many products are added up for each element: m k n k / m n = k^2 of matrices."""
    sizes = np.prod([float(np.size(x)) for x in operands])
    return float((sizes / max(np.size(result), 1)) ** (1 / len(operands)))


def _overflows(kind: str, function: Callable[..., Any], operands: Sequence[Any],
               result: Any) -> Any:
    """Where a sum or a term of it may be infinite on the way, in one order or another: what it is
    then depends on the order, as inf - inf is NaN."""
    if kind_of(result) not in "fc":
        return np.zeros((), bool)
    dtype = np.asarray(result).real.dtype
    wide: Any = np.float64 if dtype.itemsize < 8 else np.longdouble
    each = [_finite(x).astype(wide) for x in operands]
    terms = max(_terms(operands, result), 1) if kind == "mean" else 1
    most = np.longdouble(max(map(np.size, each), default=0)) * terms
    for part in each:
        most *= np.max(part, initial=0)
    limit = float(ml_dtypes.finfo(dtype).max)
    if most < limit:
        return np.zeros((), bool)
    total = np.sum if kind == "var" else function
    return total(*each) * np.longdouble(terms) > limit


def _sum_fits(operands: Sequence[Any], result: Any) -> bool:
    dtype = np.asarray(result).dtype
    bound = float(max(np.size(x) for x in operands))
    for x in operands:
        bound *= float(np.max(_finite(x), initial=0))
    return bound < WHOLE.get(dtype.name, 0.0)
