"""np.fft: HOST rows, which run in NumPy between the native launches, and what is made of them.

Float32 and complex64 are transformed in single precision, all else in double, as NumPy 2 does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ....ir.indices.proof import nonnegative
from ....ir.ops.hosted.fourier import OPPOSITE
from ....ir.types import BF16, I64, as_dtype
from ...tracing.context.active import current
from ...tracing.operand import as_dim, as_number, axes_of, axis_of, cast, required, strong
from ...tracing.values.tracer import Tracer
from ..registry import numpy

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_C64, _C128 = np.dtype(np.complex64), np.dtype(np.complex128)


def _number(a: Any, *, real: bool) -> Tracer:
    """An operand as transforms take it. Raises DTypeError (W111)."""
    x = strong(a)
    if x.dtype.kind == "c" and real:
        raise error("W111", "this transform takes real numbers", types=[x.type],
                    hint="take x.real, or use np.fft.fft")
    if x.dtype in (np.float32, np.complex64) or as_dtype(x.dtype).is_half:
        return x if x.dtype.kind == "c" else cast(x, _F32 if real else _C64)
    return cast(x, _F64 if real else _C128)


def _norm(norm: Any) -> str:
    found = norm or "backward"
    if found not in OPPOSITE:
        raise error("W112", f"norm={norm!r} is not known",
                    hint=f"use one of {', '.join(OPPOSITE)}")
    return str(found)


def _sized(x: Tracer, axis: int, size: Dim) -> Tracer:
    """x with zeros after it, or without its last elements, along an axis."""
    own, message = x.type.shape[axis], f"a Fourier transform of {size} elements does not exist"
    if isinstance(size, int) and size < 1:
        raise error("W102", message, types=[x.type])
    if not isinstance(size, int):
        x = required(x, x.type.shape, least=(size - 1,), code="W102", message=message)
    none = (0,) * x.ndim
    if own == size:
        return x
    if nonnegative(size - own):
        high = (*none[:axis], size - own, *none[axis + 1:])
        return current().emit("pad", x, low=none, high=high, interior=none, value=0.0)
    if nonnegative(own - size):
        return _part(x, axis, 0, size)
    high = (*none[:axis], size, *none[axis + 1:])  # enough, whichever is larger
    wide = current().emit("pad", x, low=none, high=high, interior=none, value=0.0)
    return _part(wide, axis, 0, size)


def _part(x: Tracer, axis: int, start: Dim, count: Dim) -> Tracer:
    none, shape = (0,) * x.ndim, x.type.shape
    return current().emit("slice", x, start=(*none[:axis], start, *none[axis + 1:]),
                          step=(1,) * x.ndim, shape=(*shape[:axis], count, *shape[axis + 1:]))


def _sizes(x: Tracer, s: Any, axes: Any) -> tuple[tuple[int, ...], list[Dim | None]]:
    """The axes of a transform, and the sizes along them: None is that of the operand."""
    if axes is None:
        count = x.ndim if s is None else len(s)
        axes = tuple(range(x.ndim - count, x.ndim))
    found = tuple(axis_of(axis, x.ndim) for axis in axes)
    sizes: list[Dim | None] = [None] * len(found) if s is None else [
        None if size is None or (isinstance(size, int) and size == -1) else as_dim(size)
        for size in s]
    if not found or len(sizes) != len(found):
        raise error("W102", "a Fourier transform needs axes, and as many sizes", types=[x.type],
                    hint="give s= and axes= of one length")
    return found, sizes


def _emit(op: str, x: Tracer, axes: Sequence[int], norm: Any, *more: Tracer,
          **attrs: Any) -> Any:
    if len(set(axes)) != len(axes):
        raise error("W113", "Fourier transforms along one axis twice are not supported",
                    hint="call it once for each time")
    made = current().emit_all(op, x, *more, axes=tuple(axes), norm=_norm(norm), **attrs)
    return made[0]


def _whole(op: str, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    """fftn and ifftn."""
    x = _number(a, real=False)
    found, sizes = _sizes(x, s, axes)
    for axis, size in zip(found, sizes, strict=True):
        x = _sized(x, axis, x.type.shape[axis] if size is None else size)
    return _emit(op, x, found, norm)


def _half(a: Any, s: Any, axes: Any, norm: Any) -> Any:
    """rfftn."""
    x = _number(a, real=True)
    found, sizes = _sizes(x, s, axes)
    for axis, size in zip(found, sizes, strict=True):
        x = _sized(x, axis, x.type.shape[axis] if size is None else size)
    return _emit("rfft", x, found, norm)


def _from_half(a: Any, s: Any, axes: Any, norm: Any) -> Any:
    """irfftn."""
    own = strong(a).dtype
    x = _number(a, real=False)
    found, sizes = _sizes(x, s, axes)
    if own == BF16.numpy and len(found) == 1:
        x = cast(strong(a), _C128)
    last = sizes[-1]
    full: Dim = (x.type.shape[found[-1]] - 1) * 2 if last is None else last
    message = f"a Fourier transform of {full} elements does not exist"
    if isinstance(full, int) and full < 1:
        raise error("W102", message, types=[x.type])
    if not isinstance(full, int):
        x = required(x, x.type.shape, least=(full - 1,), code="W102", message=message)
    for axis, size in zip(found[:-1], sizes, strict=False):
        x = _sized(x, axis, x.type.shape[axis] if size is None else size)
    x = _sized(x, found[-1], full // 2 + 1)
    count = current().tracer(current().dim(full))
    result = _emit("irfft", x, found, norm, count, size=full)
    return cast(result, own) if own == np.float16 and len(found) == 1 else result


def _one(n: Any) -> Any:
    return None if n is None else (n,)


@numpy(np.fft.fft, samples=(
    "z[3,4]", "x[6]", "x[3,5], 4", "x[3,4], 7, 0, 'ortho'", "1j * x[4] + 1"))
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return _whole("fft", a, _one(n), (axis,), norm)


@numpy(np.fft.ifft, samples=("z[3,4], 6", "x[6]", "x[3,5], 4", "1j * x[3,4], 7, 0, 'forward'"))
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return _whole("ifft", a, _one(n), (axis,), norm)


@numpy(np.fft.rfft, samples=("x[6]", "x[3,5], 4", "x[3,4], 7, 0, 'ortho'"))
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return _half(a, _one(n), (axis,), norm)


@numpy(np.fft.irfft, samples=(
    "z[3,4], 6", "x[6] * 1j", "x[3,5], 7", "x[3,4], 5, 0, 'ortho'", "x[4], 10"))
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return _from_half(a, _one(n), (axis,), norm)


@numpy(np.fft.hfft, samples=("z[5]", "x[6] * 1j + 2", "x[3,5], 7", "x[3,4], 5, 0, 'ortho'"))
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    x: Any = strong(a)
    return irfft(np.conjugate(x) if x.dtype.kind == "c" else x, n, axis, OPPOSITE[_norm(norm)])


@numpy(np.fft.ihfft, samples=("x[6]", "x[3,5], 4", "x[3,4], 7, 0, 'forward'"))
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return np.conjugate(rfft(a, n, axis, OPPOSITE[_norm(norm)]))


@numpy(np.fft.fftn, samples=("x[3,4]", "x[2,3,4], axes=(0, 2)", "x[3,4], (4, 3), (0, 1), 'ortho'"))
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    return _whole("fft", a, s, axes, norm)


@numpy(np.fft.ifftn, samples=("x[3,4]", "1j * x[2,3,4], axes=(0, 2)"))
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    return _whole("ifft", a, s, axes, norm)


@numpy(np.fft.rfftn, samples=("x[3,4]", "x[2,3,4], axes=(2, 0)", "x[3,4], (4, 3), (0, 1)"))
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    return _half(a, s, axes, norm)


@numpy(np.fft.irfftn, samples=(
    "z[3,4]", "x[3,4]", "x[2,3,4], axes=(2, 0)", "x[3,4], (4, 5), (0, 1)"))
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    return _from_half(a, s, axes, norm)


@numpy(np.fft.fft2, samples=("z[3,4]", "x[3,4]", "x[2,3,4], (4, 4)"))
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
    return _whole("fft", a, s, axes, norm)


@numpy(np.fft.ifft2, samples=("x[3,4]", "1j * x[2,3,4], (4, 4)"))
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
    return _whole("ifft", a, s, axes, norm)


@numpy(np.fft.rfft2, samples=("x[3,4]", "x[2,3,4], (4, 4)"))
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
    return _half(a, s, axes, norm)


@numpy(np.fft.irfft2, samples=("x[3,4]", "x[2,3,4], (4, 5)"))
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
    return _from_half(a, s, axes, norm)


def _shifted(a: Any, axes: Any, back: bool) -> Any:
    x = strong(a)
    for axis in axes_of(axes, x.ndim):
        size = x.type.shape[axis]
        first = size // 2 if back else size - size // 2  # what comes before the others
        parts = [_part(x, axis, start, count)
                 for start, count in ((first, size - first), (0, first))]
        x = current().emit("concatenate", *parts, axis=axis)
    return x


@numpy(np.fft.fftshift, samples=("x[5]", "x[3,4]", "x[3,4], 1", "x[3,4], (0, 1)"))
def fftshift(x: Any, axes: Any = None) -> Any:
    return _shifted(x, axes, back=False)


@numpy(np.fft.ifftshift, samples=("x[5]", "x[3,4]", "x[3,4], 1"))
def ifftshift(x: Any, axes: Any = None) -> Any:
    return _shifted(x, axes, back=True)


@numpy(np.fft.fftfreq, samples=("5, p[()]", "4, d=p[()]"))
def fftfreq(n: Any, d: Any = 1.0) -> Any:
    size = as_dim(n)
    place = current().emit("iota", axis=0, dtype=I64, shape=(size,))
    count = as_number(size)
    return np.where(place < (count + 1) // 2, place, place - count) * (1.0 / (count * d))


@numpy(np.fft.rfftfreq, samples=("5, p[()]", "4, d=p[()]"))
def rfftfreq(n: Any, d: Any = 1.0) -> Any:
    size = as_dim(n)
    place: Any = current().emit("iota", axis=0, dtype=I64, shape=(size // 2 + 1,))
    return place * (1.0 / (as_number(size) * d))
