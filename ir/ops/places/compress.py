"""The row of the COMPRESS family: elements that a mask chooses, one after the other.

    x     3 1 4 1 5
    mask  . x . x x      size 3      ->      1 1 5
"""

from __future__ import annotations

from typing import Any

from ...diagnose import error
from ...indices.index import Dim
from ...kernels.ordering import compressed
from ...types import BOOL, COMPUTED, I64, TensorType
from ..op import Kind, OpDef, Sample


def _infer(x: TensorType, mask: TensorType, *, size: Dim) -> tuple[TensorType, ...]:
    if x.rank != 1 or mask.dtype != BOOL or mask.shape != x.shape:
        raise error("W102", f"compress takes a vector and a mask of it, not {x} and {mask}")
    if x.dtype == BOOL or x.dtype.is_complex:
        raise error("W111", f"compress does not take {x.dtype} operands",
                    hint="take the elements at the places where the mask holds")
    return (x.with_shape((size,)),)


def _grad(b: Any, g: Any, x: Any, mask: Any, y: Any, *, size: Dim) -> tuple[Any, None]:
    """To the elements that were chosen; where there are fewer than ``size``, to none."""
    places = b.compress(b.iota(axis=0, dtype=I64, shape=x.shape), mask, size=size)
    count = b.sum(b.cast(mask, dtype=I64), axes=(0,))
    count = b.broadcast(count, shape=(size,), axes=())
    there = b.lt(b.iota(axis=0, dtype=I64, shape=(size,)), count)
    return b.scatter_add(b.full(0.0, x.type), b.select(there, g, 0.0), places, axes=(0,)), None


ROWS: tuple[OpDef, ...] = (
    OpDef("compress", Kind.COMPRESS, _infer, 2,
          "the first elements where a mask holds, 0 where there are fewer; at most all of them",
          {"size": object},
          ref=compressed, grad=_grad, taken=lambda b, x, mask, y, *, size: (lambda: mask, None),
          moves=True, letters="nb",
          dtypes=tuple(dtype for dtype in COMPUTED if dtype != BOOL),
          samples=tuple(Sample(((n,), (n,)), {"size": size}, low=-9, high=9)
                        for n, size in ((7, 3), (0, 0), (5, 0), (33, 12), (33, 40),
                                        (1000, 480), (1000, 1000), (64, 1)))),
)
