"""Rows of the HOST family: discrete Fourier transforms, which NumPy does with pocketfft.

Operands have the sizes of their transforms: the surface cuts and pads. A transform is a symmetric
matrix, so each is its own gradient; that of ``irfft`` counts twice what stands for two terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...convert import conversion
from ...diagnose import error
from ...indices.index import Dim
from ...types import C64, C128, F32, F64, I64, TensorType
from ..elements.complex import complex_of
from ..op import Kind, OpDef, Sample

OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}  # of norm=
_ATTRS = {"axes": tuple, "norm": str}


def _check(name: str, x: TensorType, dtypes: tuple[Any, ...], axes: tuple[int, ...]) -> None:
    if x.dtype not in dtypes:
        raise error("W111", f"{name} does not take {x.dtype}",
                    hint=conversion(np.empty(0, x.dtype.numpy), F64))
    if not axes or any(not 0 <= axis < x.rank for axis in axes):
        raise error("W121", f"axes {axes} are out of range for rank {x.rank}")


def _resized(x: TensorType, axis: int, size: Dim) -> tuple[Dim, ...]:
    return (*x.shape[:axis], size, *x.shape[axis + 1:])


def _fft_infer(x: TensorType, *, axes: tuple[int, ...], norm: str) -> tuple[TensorType, ...]:
    _check("fft", x, (C64, C128), axes)
    return (x,)


def _rfft_infer(x: TensorType, *, axes: tuple[int, ...], norm: str) -> tuple[TensorType, ...]:
    _check("rfft", x, (F32, F64), axes)
    shape = _resized(x, axes[-1], x.shape[axes[-1]] // 2 + 1)
    return (TensorType(complex_of(x.dtype), shape),)


def _along(one: Callable[..., Any], several: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function of several axes, or that of one, which takes half the time to call."""
    def transformed(x: Any, *, axes: tuple[int, ...], norm: Any) -> Any:
        if len(axes) == 1:
            return one(x, axis=axes[0], norm=norm)
        return several(x, axes=axes, norm=norm)

    return transformed


def _irfft_infer(
    x: TensorType, n: TensorType, *, axes: tuple[int, ...], norm: str, size: Dim
) -> tuple[TensorType, ...]:
    _check("irfft", x, (C64, C128), axes)
    if n != TensorType(I64, ()) or x.shape[axes[-1]] != size // 2 + 1:
        raise error("W102", f"irfft of {size} elements needs {size // 2 + 1} of the spectrum")
    return (TensorType(x.dtype.part, _resized(x, axes[-1], size)),)


def _irfft_ref(x: Any, n: Any, *, axes: tuple[int, ...], norm: Any, size: Any) -> Any:
    if len(axes) == 1:
        return np.fft.irfft(x, int(n), axes[0], norm)
    sizes = [*(x.shape[axis] for axis in axes[:-1]), int(n)]
    return np.fft.irfftn(x, s=sizes, axes=axes, norm=norm)


def _rfft_grad(b: Any, g: Any, x: Any, y: Any, *, axes: tuple[int, ...], norm: str) -> Any:
    last, none = axes[-1], (0,) * len(x.shape)
    more = (*none[:last], x.shape[last] - g.shape[last], *none[last + 1:])
    whole = b.pad(g, low=none, high=more, interior=none, value=0.0)
    return (b.real(b.fft(whole, axes=axes, norm=norm)),)


def _irfft_grad(
    b: Any, g: Any, x: Any, n: Any, y: Any, *, axes: tuple[int, ...], norm: str, size: Dim
) -> Any:
    """An element of the spectrum stands for its conjugate too; the first, and the one in the middle
    of an even number, for itself alone."""
    place = b.iota(axis=axes[-1], dtype=I64, shape=x.shape)
    count = b.broadcast(n, shape=x.shape, axes=())
    alone = b.or_(b.eq(place, 0), b.eq(b.add(place, place), count))
    spectrum = b.conj(b.rfft(g, axes=axes, norm=OPPOSITE[norm]))
    return b.select(alone, spectrum, b.mul(spectrum, 2.0)), None


def _row(name: str, infer: Any, ref: Any, grad: Any, doc: str, dtypes: Any, attrs: Any,
         samples: tuple[Sample, ...], arity: int = 1) -> OpDef:
    return OpDef(name, Kind.HOST, infer, arity, doc, attrs, ref=ref, grad=grad, dtypes=dtypes,
                 samples=samples, room="fft")


_CASES: tuple[tuple[tuple[int, ...], tuple[int, ...], str], ...] = (
    ((8,), (0,), "backward"), ((3, 5), (1,), "ortho"), ((3, 5), (0,), "forward"),
    ((2, 4, 6), (0, 2), "backward"), ((1,), (0,), "backward"))


def _samples(**more: Any) -> tuple[Sample, ...]:
    return tuple(Sample((shape,), {"axes": axes, "norm": norm, **more})
                 for shape, axes, norm in _CASES)


def _half(shape: tuple[int, ...], axes: tuple[int, ...], norm: str) -> Sample:
    last, size = axes[-1], shape[axes[-1]]
    shapes: tuple[Any, ...] = ((*shape[:last], size // 2 + 1, *shape[last + 1:]), np.int64(size))
    return Sample(shapes, {"axes": axes, "norm": norm, "size": size})


ROWS: tuple[OpDef, ...] = (
    _row("fft", _fft_infer, _along(np.fft.fft, np.fft.fftn),
         lambda b, g, x, y, *, axes, norm: (b.fft(g, axes=axes, norm=norm),),
         "the Fourier transform along axes", (C64, C128), _ATTRS, _samples()),
    _row("ifft", _fft_infer, _along(np.fft.ifft, np.fft.ifftn),
         lambda b, g, x, y, *, axes, norm: (b.ifft(g, axes=axes, norm=norm),),
         "the inverse Fourier transform along axes", (C64, C128), _ATTRS, _samples()),
    _row("rfft", _rfft_infer, _along(np.fft.rfft, np.fft.rfftn),
         _rfft_grad, "the Fourier transform of real numbers, half of it along the last of the axes",
         (F32, F64), _ATTRS, _samples()),
    _row("irfft", _irfft_infer, _irfft_ref, _irfft_grad,
         "the real inverse of rfft, of n elements along the last of the axes; size is n",
         (C64, C128), {**_ATTRS, "size": object}, tuple(_half(*case) for case in _CASES), arity=2),
)
