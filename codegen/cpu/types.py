"""How Weft's dtypes are spelled in LLVM IR, in registers and in memory.

Half types are the integers of their bits: LLVM is never asked for arithmetic in them.
"""

from __future__ import annotations

import struct
from types import MappingProxyType

import numpy as np

from ...ir.diagnose import error
from ...ir.kernels.kernel import Kernel
from ...ir.types import DType

LLVM_TYPES = MappingProxyType({
    "bool": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "u8": "i8",
    "u16": "i16", "u32": "i32", "u64": "i64", "f16": "i16", "bf16": "i16", "f32": "float",
    "f64": "double",
})


def check_dtypes(kernel: Kernel) -> None:
    """Raise DTypeError (W111) for a dtype that is for storage only."""
    for dtype in (*(param.type.dtype for param in kernel.params),
                  *(stmt.dtype for stmt in kernel.body if stmt.name)):
        if dtype.name not in LLVM_TYPES:
            raise error("W111", f"there is no arithmetic in {dtype}, which is for storage only",
                        locs=kernel.locs, hint="convert the array before the call: "
                                               "x.astype(np.float32)")


def memory_type(dtype: DType) -> str:
    """The type of an element in memory: a bool is a byte there."""
    return "i8" if dtype.name == "bool" else LLVM_TYPES[dtype.name]


def vector_type(element: str, width: int) -> str:
    """``element`` itself for width 1, which stands for a scalar."""
    return element if width == 1 else f"<{width} x {element}>"


def suffix(element: str, width: int) -> str:
    """The overload suffix of an intrinsic: ``v16f32``, ``f64``, ``v8i64``."""
    scalar = {"float": "f32", "double": "f64"}.get(element, element)
    return scalar if width == 1 else f"v{width}{scalar}"


def constant(value: bool | int | float, dtype: DType) -> str:
    """A literal with exactly the bits of ``value`` in ``dtype``; floats in hexadecimal."""
    if dtype.name == "bool":
        return "true" if value else "false"
    if dtype.is_half:
        return str(int(np.array(value, dtype.numpy).view(np.int16)))
    if dtype.is_float:
        rounded = float(np.float32(value)) if dtype.bits == 32 else float(value)
        return f"0x{struct.unpack('>Q', struct.pack('>d', rounded))[0]:016X}"
    bits = int(value) & ((1 << dtype.bits) - 1)
    return str(bits - (1 << dtype.bits) if bits >> (dtype.bits - 1) else bits)
