"""NumPy's covariances and correlations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ...tracing.context.active import current
from ...tracing.operand import cast, result_dtype, strong
from ..arrange.diagonal import diag
from ..arrange.join import concatenate
from ..arrange.shape import atleast
from ..registry import numpy
from .reduce import average

_F64 = np.dtype(np.float64)


@numpy(np.cov, samples=("z[3,5]",
    "x[3,5]", "x[5]", "x[5,2], rowvar=False", "x[4], x[4]", "x[2,4], bias=True", "x[2,5], ddof=0",
    "x[2,4], fweights=[1, 2, 1, 3]", "x[2,4], aweights=p[4]",
    "x[2,4], fweights=[1, 2, 1, 3], aweights=p[4]", "x[2,4], x[3,4], dtype=np.float64"))
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
    fweights: Any = None, aweights: Any = None, *, dtype: Any = None,
) -> Any:
    rows, kind = _rows(m, y, rowvar, dtype)
    if rows[0].type.shape[0] == 0:  # no variables: NumPy's array of none, whatever dtype and y are
        return current().full(0, _F64, (0, 0))
    x: Any = rows[0] if len(rows) == 1 else concatenate(rows, 0)
    if ddof is None:
        ddof = 0 if bias else 1
    weights = _weights(fweights, aweights)
    mean: Any = np.mean(x, 1) if weights is None else average(x, 1, weights)
    if weights is None:
        free: Any = x.shape[1] - ddof
    else:
        free = total = np.sum(weights)
        if ddof != 0:
            free = free - ddof * (1 if aweights is None else np.sum(weights * strong(
                aweights)) / total)
    scale: Any = 1 / np.maximum(cast(strong(free), _F64), 0.0)
    apart = cast(strong(x - mean[:, None]), x.dtype)  # in place: of x's dtype, whatever the mean's
    product: Any = apart @ np.conjugate((apart if weights is None else apart * weights).T)
    kind = kind if weights is None else np.result_type(kind, _F64)  # which weights are of
    return np.squeeze(cast(product * scale, kind))


def _rows(m: Any, y: Any, rowvar: bool, dtype: Any) -> tuple[list[Any], np.dtype[Any]]:
    """The variables of both as rows."""
    parts: list[Any] = [strong(part) for part in (m, y) if part is not None]
    if any(part.ndim > 2 for part in parts):
        raise error("W102", "np.cov takes vectors and matrices",
                    types=[part.type for part in parts])
    kind = np.dtype(dtype) if dtype is not None else result_dtype(*parts, np.float64(0))
    rows = []
    for at, part in enumerate(parts):
        row: Any = atleast(2)(cast(part, kind))
        turned = row.shape[0] != 1 if at else part.ndim != 1
        rows.append(row.T if not rowvar and turned else row)
    return rows, kind


def _weights(fweights: Any, aweights: Any) -> Any:
    """The product of frequencies and weights, or None."""
    given: list[Any] = [cast(strong(w), _F64) for w in (fweights, aweights) if w is not None]
    if any(w.ndim > 1 for w in given):
        raise error("W102", "the weights of np.cov are vectors", types=[w.type for w in given])
    return None if not given else given[0] if len(given) == 1 else given[0] * given[1]


@numpy(np.corrcoef, samples=("z[3,5]", "x[3,5]", "x[4], x[4]", "x[5,2], rowvar=False", "x[5]"))
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    c: Any = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    spread: Any = np.sqrt(np.real(diag(c)))
    c = c / spread[:, None] / spread[None, :]
    if c.dtype.kind == "c":
        return np.clip(c.real, -1, 1) + 1j * np.clip(c.imag, -1, 1)
    return np.clip(c, -1, 1)
