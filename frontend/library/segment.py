"""Reductions of rows by the segment that each belongs to.

    data [1, 2, 3, 4], ids [0, 1, 0, 2], 4 segments   ->   segment_sum [4, 2, 4, 0]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracing.context.active import composite


@composite
def segment_sum(data: Any, ids: Any, num_segments: int) -> Any:
    """The sum of the rows of each segment: data (n, ...), integers ids (n,) to (num_segments, ...).

    Ids need no order; a segment without rows is 0. Raises OutOfRangeError (W124) for an id that is
    not below ``num_segments``; negative ones count from the end, as indices do.

    >>> segment_sum(np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), 3)
    array([2., 5., 0.])
    """
    return _gathered(np.add, data, ids, num_segments, 0)


@composite
def segment_mean(data: Any, ids: Any, num_segments: int) -> Any:
    """The mean of the rows of each segment, 0 where there are none; see ``segment_sum``."""
    sums = segment_sum(data, ids, num_segments)
    ones = np.ones(np.shape(ids), np.result_type(sums, np.float32), like=ids)
    counts = np.maximum(segment_sum(ones, ids, num_segments), 1)
    return sums / np.reshape(counts, (-1, *(1,) * (np.ndim(data) - 1)))


@composite
def segment_max(data: Any, ids: Any, num_segments: int) -> Any:
    """The maximum of the rows of each segment, the least number of the dtype where there are none;
    equal ones share the gradient. See ``segment_sum``."""
    kind = np.result_type(data)
    least = np.iinfo(kind).min if kind.kind in "iu" else -np.inf
    return _gathered(np.maximum, data, ids, num_segments, least)


@composite
def segment_min(data: Any, ids: Any, num_segments: int) -> Any:
    """The minimum of the rows of each segment; see ``segment_max``."""
    kind = np.result_type(data)
    most = np.iinfo(kind).max if kind.kind in "iu" else np.inf
    return _gathered(np.minimum, data, ids, num_segments, most)


def _gathered(combine: np.ufunc, data: Any, ids: Any, count: int, start: Any) -> Any:
    out = np.full((count, *np.shape(data)[1:]), start, np.result_type(data), like=data)
    combine.at(out, ids, data)
    return out
