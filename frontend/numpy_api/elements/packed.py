"""Truth values as bits of bytes, and bytes as bits.

    packbits   1 0 1 | 1 1 0 0 0 0 0 0 0  ->  b1011_0000 ...     eight of an axis in a byte
    unpackbits is the way back; ``little`` has the first element in the last bit
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ....ir.indices.proof import larger, nonnegative
from ...tracing.context.active import current
from ...tracing.operand import as_int, as_number, axis_of, cast, required, reshape, strong
from ...tracing.values.tracer import Tracer
from ..arrange.shape import moveaxis, ravel
from ..registry import numpy

_BYTE = np.dtype(np.uint8)


def _weights(order: Any, name: str) -> list[int]:
    """How far each of eight elements is shifted."""
    if order not in ("big", "little"):
        raise error("W112", f"{name} with bitorder={order!r}", hint="use 'big' or 'little'")
    return list(range(8)) if order == "little" else list(range(7, -1, -1))


def _rows(x: Tracer, axis: Any) -> tuple[Any, int]:
    """The array with the axis that bits lie along as its last, and where it was."""
    if axis is None or x.ndim == 0:
        return ravel(x), 0
    at = axis_of(axis, x.ndim)
    return moveaxis(x, at, -1), at


def _longer(x: Tracer, count: Any) -> Any:
    """The array with zeros behind its last axis."""
    none = (0,) * x.ndim
    return current().emit("pad", x, low=none, high=(*none[1:], count), interior=none, value=0)


@numpy(np.packbits, samples=(
    "m[3,9]", "m[3,4], 1", "m[11], bitorder='little'", "i[9,2], 0", "m[0]"))
def packbits(a: Any, axis: Any = None, bitorder: Any = "big") -> Any:
    x = strong(a)
    if x.dtype.kind not in "iub":
        raise error("W111", "np.packbits takes truth values and integers", types=[x.type],
                    hint="compare with 0 first")
    rows, at = _rows(x, axis)
    *rest, size = rows.type.shape
    count = (size + 7) // 8
    bits = cast(cast(_longer(rows, 8 * count - size), np.dtype(bool)), _BYTE)
    bits = reshape(bits, (*rest, count, 8))
    shifted = bits << np.array(_weights(bitorder, "np.packbits"), _BYTE)
    return moveaxis(np.sum(shifted, axis=-1, dtype=_BYTE), -1, at)


@numpy(np.unpackbits, samples=(
    "i[3,2].astype(np.uint8)", "i[3,2].astype(np.uint8), 1, 5", "i[4].astype(np.uint8), count=-3",
    "i[3].astype(np.uint8), bitorder='little'", "i[3,2].astype(np.uint8), 0, 30"))
def unpackbits(a: Any, axis: Any = None, count: Any = None, bitorder: Any = "big") -> Any:
    x = strong(a)
    if x.dtype != _BYTE:
        raise error("W111", "np.unpackbits takes bytes", types=[x.type],
                    hint="convert with .astype(np.uint8)")
    rows, at = _rows(x, axis)
    *rest, size = rows.type.shape
    shifts = np.array(_weights(bitorder, "np.unpackbits"), _BYTE)
    bits = reshape((rows[..., None] >> shifts) & 1, (*rest, 8 * size))
    if count is not None:
        wanted: Dim = as_int(count, "count")
        if not nonnegative(wanted):  # without so many of the last bits
            message = "np.unpackbits has fewer bits than its negative count leaves out"
            if nonnegative(-1 - 8 * size - wanted):
                raise error("W102", message, types=[x.type])
            bits = required(bits, bits.type.shape, least=(8 * size + wanted,), code="W102",
                            message=message)
            wanted = larger(8 * size + wanted, 0)
        bits = _longer(bits, larger(wanted - 8 * size, 0))[..., :as_number(wanted)]
    return moveaxis(bits, -1, at)
