"""The row of the EXTENT family: a number that values say, as the size of arrays.

    %k:i64[] = sum %mask
    %size:bool[n, 0] = extent %k {size=n}
    %o:f64[n] = full {value=0.0}

The result has no elements; it tells what n is, for the nodes below it. Plans of a CPU measure it as
they run (``ir/plans``); between devices it is told like any value (``passes/partition``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...diagnose import error
from ...indices.index import Expr
from ...loc import Loc
from ...types import BOOL, I64, TensorType
from ..op import Kind, OpDef


def _infer(number: TensorType, *, size: Expr) -> tuple[TensorType, ...]:
    if number != TensorType(I64, ()):
        raise error("W601", f"a size is an i64[], not {number}")
    return (TensorType(BOOL, (size, 0)),)


def measured(number: Any, locs: Sequence[Loc] = ()) -> np.ndarray[Any, Any]:
    """The array that tells a size. Raises ShapeError (W103) for a negative one."""
    if number < 0:
        raise error("W103", f"an array cannot have the size {int(number)}", locs=locs,
                    hint="sizes are 0 or more: np.maximum(n, 0)")
    return np.empty((int(number), 0), np.bool_)


ROWS: tuple[OpDef, ...] = (
    OpDef("extent", Kind.EXTENT, _infer, 1, "makes a size of a number", {"size": Expr},
          ref=lambda number, *, size: measured(number), differentiable=False, foreign=True),
)
