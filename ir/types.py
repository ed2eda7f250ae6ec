"""Types of values: DType, TensorType, Device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from .indices.index import Dim, maximum, product, symbol
from .record import field, record

DTypeKind = Literal["b", "i", "u", "f", "c"]


@record(frozen=True, eq=False)
class DType:
    """An element type: its short name (``f32``), kind and width in bits.

    There is one object of each, in ``DTYPES``, so that comparing them costs nothing.
    """

    name: str
    kind: DTypeKind
    bits: int
    _numpy: np.dtype[Any] | str = field(repr=False)  # or the name of one that ml_dtypes has

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's twin."""
        if not isinstance(self._numpy, str):
            return self._numpy
        import ml_dtypes  # takes longer to load than this package does

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self._numpy))
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return self.numpy.itemsize

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_int(self) -> bool:
        return self.kind in "iu"

    @property
    def is_half(self) -> bool:
        """f16 and bf16 are computed in f32, and each value of a graph is rounded once."""
        return self.kind == "f" and self.bits == 16

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_inexact(self) -> bool:
        """Real or complex floating point: what has gradients."""
        return self.kind in "fc"

    @property
    def part(self) -> DType:
        """The dtype of the real and of the imaginary part."""
        return DTYPES[f"f{self.bits // 2}"] if self.kind == "c" else self

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


def _dtype(name: str, kind: DTypeKind, bits: int, numpy: object) -> tuple[str, DType]:
    twin = numpy if isinstance(numpy, str) else np.dtype(numpy)  # type: ignore[call-overload]
    return name, DType(name, kind, bits, twin)


DTYPES = MappingProxyType(dict((
    _dtype("bool", "b", 1, np.bool_),
    _dtype("i8", "i", 8, np.int8), _dtype("i16", "i", 16, np.int16),
    _dtype("i32", "i", 32, np.int32), _dtype("i64", "i", 64, np.int64),
    _dtype("u8", "u", 8, np.uint8), _dtype("u16", "u", 16, np.uint16),
    _dtype("u32", "u", 32, np.uint32), _dtype("u64", "u", 64, np.uint64),
    _dtype("f8e4m3", "f", 8, "float8_e4m3fn"),
    _dtype("f8e5m2", "f", 8, "float8_e5m2"),
    _dtype("f16", "f", 16, np.float16), _dtype("bf16", "f", 16, "bfloat16"),
    _dtype("f32", "f", 32, np.float32), _dtype("f64", "f", 64, np.float64),
    _dtype("c64", "c", 64, np.complex64), _dtype("c128", "c", 128, np.complex128),
)))

# Those of ml_dtypes have names that no dtype of NumPy's has.
_BY_NUMPY: Mapping[np.dtype[Any] | str, DType] = MappingProxyType(
    {dtype._numpy: dtype for dtype in DTYPES.values()})
BOOL, I32, I64, U32, U64 = (DTYPES[n] for n in ("bool", "i32", "i64", "u32", "u64"))
F16, BF16, F32, F64 = (DTYPES[n] for n in ("f16", "bf16", "f32", "f64"))
C64, C128 = DTYPES["c64"], DTYPES["c128"]

# The dtypes that every op, both emitters and the tests handle today; the others are declared,
# so that text and files can name them. Complex numbers are pairs (``passes/complex``).
COMPUTED = (F32, F64, I32, I64, U32, U64, BOOL,
            *(DTYPES[n] for n in ("i8", "i16", "u8", "u16", "f16", "bf16")))
NUMBERS = (*COMPUTED, C64, C128)


def _known(numpy: np.dtype[Any]) -> DType | None:
    """The DType of a dtype of NumPy's in the byte order of the machine, if there is one."""
    found = _BY_NUMPY.get(numpy)
    if found is None and numpy.kind in "Vf" and numpy.names is None:
        found = _BY_NUMPY.get(numpy.name)
        return found if found is not None and found.numpy == numpy else None
    return found


def number_kind(dtype: np.dtype[Any]) -> str:
    """``dtype.kind``, which is f for bfloat16 too: NumPy itself says V there."""
    known = _known(dtype)
    return dtype.kind if known is None else known.kind


def float_info(dtype: np.dtype[Any]) -> Any:
    """``np.finfo``, of bfloat16 too."""
    import ml_dtypes

    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def keeps_kind(given: Any, wanted: Any) -> bool:
    """Whether numbers stay of their kind as NumPy casts them, ``np.can_cast(..., "same_kind")``.
    It holds that complex numbers may become bfloat16, of which it knows no kind."""
    to_complex = np.dtype(wanted).kind == "c"
    return np.can_cast(given, wanted, "same_kind") and (
        to_complex or np.dtype(given).kind != "c")


def are_integers(*dtypes: Any) -> bool:
    """Whether all dtypes are of integers."""
    return all(np.dtype(dtype).kind in "iu" for dtype in dtypes)


def keeps_values(array: np.ndarray[Any, Any], wanted: Any) -> bool:
    """Whether a dtype holds numbers of another one: integers as they are, and what is finite as
    something finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        made = array.astype(wanted)
    if are_integers(array.dtype, made.dtype):
        return bool((made == array).all())
    return bool((np.isfinite(made) | ~np.isfinite(array)).all())


class NoDTypeError(TypeError):
    """What NumPy has a dtype for, and Weft has not: texts, objects, dates, long doubles, and
    numbers in another byte order than the machine's."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def as_dtype(spec: object) -> DType:
    """The DType of a short name, a NumPy dtype or scalar type, or a DType.

    Raises NoDTypeError for anything without a Weft dtype (strings, objects, dates, another byte
    order).

    >>> as_dtype(np.float32), as_dtype("i64"), as_dtype(bool)
    (f32, i64, bool)
    """
    if isinstance(spec, DType):
        return spec
    if isinstance(spec, str) and spec in DTYPES:
        return DTYPES[spec]
    if isinstance(spec, np.dtype) and spec in _BY_NUMPY:
        return _BY_NUMPY[spec]
    numpy = np.dtype(spec)  # type: ignore[call-overload]
    found = _known(numpy.newbyteorder("="))
    if found is None:
        raise NoDTypeError(f"values of dtype {numpy} cannot be traced",
                           "use bool, an integer dtype, float16 to float64, complex64 or "
                           "complex128")
    if not numpy.isnative:
        raise NoDTypeError(f"values in the byte order of {numpy.str} cannot be traced",
                           f"compute with np.{numpy.newbyteorder('=')}, and convert the result "
                           f"outside: y.astype({numpy.str!r})")
    return found


def as_native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array with the byte order of the machine: itself, if it has that."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def dtype_of(array: np.ndarray[Any, Any] | np.generic) -> DType:
    """The DType of the numbers of an array, which are read in whatever byte order they have.

    Raises NoDTypeError as ``as_dtype`` does.
    """
    return as_dtype(array.dtype.newbyteorder("="))


@record(frozen=True, slots=True)
class TensorType:
    """dtype and shape; a dim is an int or a symbolic expression. Text: ``f32[b,784]``."""

    dtype: DType
    shape: tuple[Dim, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Dim:
        """The number of elements."""
        return product(self.shape)

    @property
    def nbytes(self) -> Dim:
        """Bytes of a dense array of this type."""
        return self.size * self.dtype.itemsize

    @property
    def parts(self) -> TensorType:
        """The same memory as real numbers: parts of complex ones are a last axis of 2."""
        if not self.dtype.is_complex:
            return self
        return TensorType(self.dtype.part, (*self.shape, 2))

    def with_shape(self, shape: tuple[Dim, ...]) -> TensorType:
        return TensorType(self.dtype, shape)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(dtype, self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        return str(self)


def parse_dim(text: str) -> Dim:
    """A dim from text: ints, names, ``+ - * // mod``, ``max(a, b)`` and brackets (``2*b``).

    >>> parse_dim("2*b + 1")
    Expr(2*b + 1)
    """
    return _DimText(text).whole()


class _DimText:
    """A dim being read, by recursive descent."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = re.findall(r"%?\w[\w.]*|//|[-+*(),]", text)
        self.at = 0
        if "".join(self.tokens) != text.replace(" ", ""):
            raise self.problem()

    def problem(self) -> ValueError:
        return ValueError(f"not a dim: {self.text!r}")

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def expect(self, sign: str) -> None:
        if self.take() != sign:
            raise self.problem()

    def whole(self) -> Dim:
        value = self.sums()
        if self.peek():
            raise self.problem()
        return value

    def sums(self) -> Dim:
        value = self.products()
        while self.peek() in ("+", "-"):
            sign = self.take()
            value = value + self.products() * (1 if sign == "+" else -1)
        return value

    def products(self) -> Dim:
        value = self.atom()
        while self.peek() in ("*", "//", "mod"):
            sign, right = self.take(), self.atom()
            value = value * right if sign == "*" else (
                value // right if sign == "//" else value % right)
        return value

    def atom(self) -> Dim:
        token = self.take()
        if token == "(":
            inner = self.sums()
            self.expect(")")
            return inner
        if token == "max":
            self.expect("(")
            first = self.sums()
            self.expect(",")
            second = self.sums()
            self.expect(")")
            return maximum(first, second)
        if token == "-":
            return self.atom() * -1
        if token.isdigit():
            return int(token)
        if re.fullmatch(r"%[\w.]+|[^\W\d][\w.]*", token) and token != "mod":
            return symbol(token)
        raise self.problem()


def parse_size(text: str) -> Dim:
    """``parse_dim`` for text of any origin: raises ValueError whatever is wrong with it."""
    try:
        return parse_dim(text)
    except (ZeroDivisionError, RecursionError):
        raise ValueError(f"not a size: {text[:60]!r}") from None


def split_dims(text: str) -> list[str]:
    """The parts of a list of dims: split at the commas outside of brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts if text.strip() else []


def parse_type(text: str) -> TensorType:
    """A TensorType from its text, ``f32[b,784]``; ``f32[]`` is a scalar.

    >>> parse_type("f32[2*b,784]")
    f32[2*b,784]
    """
    match = re.fullmatch(r"\s*(\w+)\s*\[(.*)\]\s*", text)
    if not match or match[1] not in DTYPES:
        raise ValueError(f"not a type: {text!r} (expected such as 'f32[128,784]')")
    dims = tuple(map(parse_size, split_dims(match[2])))
    if any(isinstance(dim, int) and dim < 0 for dim in dims):
        raise ValueError(f"not a type: {text!r} (a size is negative)")
    return TensorType(DTYPES[match[1]], dims)


_HERE = re.compile(r"^/job:localhost(?=/|$)(/replica:0(?=/|$))?(/task:0(?=/|$))?|/replica:0(?=/|$)")


@record(frozen=True, slots=True)
class Device:
    """A device name or a partial one: ``/job:worker/task:1/gpu:0``, ``gpu:0``, ``cpu``."""

    kind: str | None = None
    index: int | None = None
    job: str | None = None
    task: int | None = None

    @staticmethod
    def parse(text: str) -> Device:
        """Read a full or partial device name; raises ValueError with the expected form. Those of
        TensorFlow are read, too: there is one replica, and the job ``localhost`` is this process.

        >>> str(Device.parse("/job:localhost/replica:0/task:0/device:CPU:1"))
        'cpu:1'
        """
        found: dict[str, str] = {}
        text = _HERE.sub("", text) if isinstance(text, str) else text
        parts = text.replace("device:", "").strip("/").split("/") if isinstance(text, str) else "?"
        for part in filter(None, parts):
            key, colon, value = part.partition(":")
            found[key.lower() if value or not colon else part] = value
        kinds = [key for key in found if key in ("cpu", "gpu")]
        numbers = [found.get("task", "")] + [found[key] for key in kinds]
        if (set(found) - {"job", "task", "cpu", "gpu"} or len(kinds) > 1
                or any(n and not n.isdigit() for n in numbers)):
            raise ValueError(f"not a device: {text!r} (expected such as 'gpu:0')")
        kind = kinds[0] if kinds else None
        index = int(found[kind]) if kind and found[kind] else None
        task = int(found["task"]) if found.get("task") else None
        return Device(kind, index, found.get("job") or None, task)

    def inside(self, outer: Device | None) -> Device:
        """This name where ``outer`` is asked for around it: what it leaves open is as there. A
        number goes with its word: of another kind or job the outer one says nothing.

        >>> str(Device.parse("cpu:1").inside(Device.parse("/job:worker/task:2/gpu:0")))
        '/job:worker/task:2/cpu:1'
        """
        if outer is None:
            return self
        kind, index, job, task = self.kind, self.index, self.job, self.task
        if index is None and kind in (None, outer.kind):
            index = outer.index
        if task is None and job in (None, outer.job):
            task = outer.task
        return Device(kind or outer.kind, index, job or outer.job, task)

    def fits(self, constraint: Device | None) -> bool:
        """True if this full name agrees with every part that a constraint gives.

        >>> Device.parse("gpu:1").fits(Device.parse("gpu")), CPU0.fits(Device.parse("cpu:1"))
        (True, False)
        """
        return constraint is None or all(
            wanted in (None, found) for wanted, found in zip(
                constraint.parts, self.parts, strict=True))

    def meet(self, other: Device | None) -> Device | None:
        """The constraint that asks for both; None where they contradict each other."""
        if other is None:
            return self
        pairs = list(zip(self.parts, other.parts, strict=True))
        if any(None not in pair and pair[0] != pair[1] for pair in pairs):
            return None
        kind, index, job, task = (b if a is None else a for a, b in pairs)
        return Device(kind, index, job, task)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The parts of the name; None is what is left open."""
        return self.kind, self.index, self.job, self.task

    def __str__(self) -> str:
        parts = [f"job:{self.job}" if self.job is not None else "",
                 f"task:{self.task}" if self.task is not None else ""]
        if self.kind is not None:
            parts.append(self.kind if self.index is None else f"{self.kind}:{self.index}")
        kept = [part for part in parts if part]
        return kept[0] if len(kept) == 1 and self.kind else "/" + "/".join(kept)


CPU0 = Device("cpu", 0)
