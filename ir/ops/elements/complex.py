"""Rows about complex numbers: from parts to numbers and back.

Kernels compute real numbers only. ``passes/complex`` puts two real values in the place of each
complex one; where memory has complex numbers (arguments, results, functions of the host), it is
seen as real numbers with one more axis:

    parts     f32[n,2] of c64[n]: the same memory
    joined    c64[n] of f32[n,2]: the same memory

Gradients follow JAX's convention: the cotangent of z = x + iy is dL/dx - i dL/dy, so a function
that has a complex derivative has a gradient that looks like a real one's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...diagnose import error
from ...types import C64, C128, DTYPES, F32, F64, TensorType
from ..op import Kind, OpDef, Sample

_COMPLEX = (C64, C128)
_SHAPES = ((), (0,), (1,), (7,), (3, 5))


def complex_of(dtype: Any) -> Any:
    """The complex dtype whose parts have a real one."""
    return DTYPES[f"c{dtype.bits * 2}"]


def _of_complex(name: str, part: bool) -> Callable[..., tuple[TensorType, ...]]:
    def infer(x: TensorType) -> tuple[TensorType, ...]:
        if not x.dtype.is_complex:
            raise error("W111", f"{name} takes complex operands, not {x.dtype}")
        return (x.with_dtype(x.dtype.part) if part else x,)

    return infer


def _complex_infer(re: TensorType, im: TensorType) -> tuple[TensorType, ...]:
    if re != im or re.dtype not in (F32, F64):
        raise error("W111", f"complex takes two operands of one type, f32 or f64, not {re}, {im}")
    return (re.with_dtype(complex_of(re.dtype)),)


def _complex_ref(re: Any, im: Any) -> Any:
    result = np.empty(np.shape(re), np.result_type(re, np.complex64))
    result.real, result.imag = re, im
    return result


def _parts_infer(x: TensorType) -> tuple[TensorType, ...]:
    if not x.dtype.is_complex:
        raise error("W111", f"parts takes complex operands, not {x.dtype}")
    return (x.parts,)


def _parts_ref(x: Any) -> Any:
    return np.stack([np.real(x), np.imag(x)], axis=-1)


def _joined_infer(x: TensorType) -> tuple[TensorType, ...]:
    if x.dtype not in (F32, F64) or x.rank == 0 or x.shape[-1] != 2:
        raise error("W111", f"joined takes f32 or f64 with a last axis of 2, not {x}")
    return (TensorType(complex_of(x.dtype), x.shape[:-1]),)


def _zero(b: Any, x: Any) -> Any:
    return b.full(0.0, x.type)


def _row(name: str, infer: Any, ref: Any, grad: Any, doc: str, *, arity: int = 1,
         kind: Kind = Kind.COMPLEX, dtypes: Any = _COMPLEX, last: tuple[int, ...] = ()) -> OpDef:
    return OpDef(name, kind, infer, arity, doc, {}, ref=ref, grad=grad,
                 differentiable=grad is not None, dtypes=dtypes,
                 samples=tuple(Sample(((*shape, *last),) * arity) for shape in _SHAPES))


ROWS: tuple[OpDef, ...] = (
    _row("real", _of_complex("real", True), np.real,
         lambda b, g, x, y: (b.complex(g, _zero(b, g)),), "the real part"),
    _row("imag", _of_complex("imag", True), np.imag,
         lambda b, g, x, y: (b.complex(_zero(b, g), b.neg(g)),), "the imaginary part"),
    _row("conj", _of_complex("conj", False), np.conj,
         lambda b, g, x, y: (b.conj(g),), "x with the opposite imaginary part"),
    _row("complex", _complex_infer, _complex_ref,
         lambda b, g, re, im, y: (b.real(g), b.neg(b.imag(g))), "re + im * 1j, of any two numbers",
         arity=2, dtypes=(F32, F64)),
    _row("parts", _parts_infer, _parts_ref, None, "the memory of x as real and imaginary parts",
         kind=Kind.ALIAS),
    _row("joined", _joined_infer, lambda x: _complex_ref(x[..., 0], x[..., 1]), None,
         "the memory of real and imaginary parts as complex numbers", kind=Kind.ALIAS,
         dtypes=(F32, F64), last=(2,)),
)
