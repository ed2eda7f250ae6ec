"""``ufunc.reduce`` by halves, for ufuncs whose order of elements does not matter, or to the last
bit only: of 7 elements 3 are computed with 3 others, then 4 are left."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import product
from ...tracing.operand import axes_of, cast, reshape, strong

PAIRWISE = frozenset((np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_xor, np.fmax,
                      np.fmin, np.gcd, np.logaddexp, np.logaddexp2, np.hypot))


def halved(
    ufunc: np.ufunc, x: Any, result: np.dtype[Any], axis: Any = 0, *, keepdims: bool = False,
    initial: Any = None, where: Any = True,
) -> Any:
    """A reduction over axes of known size by a tree of elementwise steps. ``initial`` counts as
    one element more, and only elements count where the mask holds."""
    rows: Any = strong(x)
    if rows.ndim == 0:
        axis, rows, keepdims = None, reshape(rows, (1,)), False
    axes = axes_of(axis, rows.ndim)
    kept = tuple(1 if at in axes else dim for at, dim in enumerate(rows.type.shape))
    none = ufunc.identity
    if isinstance(none, int):  # -1, all bits, of unsigned ones too
        none = cast(strong(none), rows.dtype)
    neutral = initial if none is None else none
    if where is not True:
        if neutral is None:
            raise ValueError(f"reduction operation '{ufunc.__name__}' does not have an identity, "
                             "so to use a where mask one has to specify 'initial'")
        rows = np.where(where, rows, neutral)
    rows = np.moveaxis(rows, axes, range(len(axes)))
    shape = rows.type.shape
    size = product(shape[:len(axes)])
    if not isinstance(size, int) or (size == 0 and neutral is None):
        raise error("W113", f"np.{ufunc.__name__}.reduce over an axis of size {size} is not "
                            "supported", types=[rows.type], hint="give the axis a known size")
    rows = reshape(rows, (size, *shape[len(axes):]))
    if ufunc is np.logical_xor:
        rows = np.not_equal(rows, 0)
    if initial is None and size < 2:  # hypot(0, -2) is 2
        initial = none
    if size == 0:
        return np.broadcast_to(cast(strong(initial), result), kept if keepdims else rows.shape[1:])
    while size > 1:
        half = size // 2
        rows = np.concatenate([ufunc(rows[:half], rows[half:2 * half]), rows[2 * half:]])
        size = rows.type.shape[0]
    found: Any = cast(rows[0] if initial is None else ufunc(rows[0], initial), result)
    return reshape(found, kept) if keepdims else found
