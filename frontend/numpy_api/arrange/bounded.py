"""Arrays of which it is known how long they are at most: ``np.arange(ends[t])`` in a loop over t.

    t = min(x[i], n)             np.arange(t) is np.arange(n)[:t], elements under a mask, so that
    s += np.arange(t).sum()      the loop is one of the program, whose iterations allocate nothing

Outside of loops, and where nothing is known, the number of elements is an extent; where it goes by
the number of a round, it is that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracing.arrays.selection import Firsts
from ...tracing.context.active import current
from ...tracing.context.distance import bounds_of, is_computed, most_of, told_by_rounds
from ...tracing.operand import is_choice
from ..select.parts import is_natural


def longest_of(shape: Any, empty: bool = False) -> tuple[Any, ...] | None:
    """The shape with room for as many rows as a computed first dim may be; None where that is not
    known, rounds tell the dim, or it may be negative, which is an error unless it stands for
    ``empty``."""
    dims = shape if isinstance(shape, tuple) else (shape,)
    if not dims or not is_computed(dims[0]) or is_choice(dims[0]) or not current().nested:
        return None
    if not is_computed(told_by_rounds(current(), dims[0])):
        return None
    most = most_of(bounds_of(current(), dims[0]))
    if most is None or not (empty or is_natural(dims[0])) or any(map(is_computed, dims[1:])):
        return None
    return (most, *dims[1:])


def first_of(rows: Any, shape: Any) -> Firsts:
    """As many of the first rows as the first dim says."""
    count: Any = shape[0] if isinstance(shape, tuple) else shape
    return Firsts(rows, count if is_natural(count) else np.maximum(count, 0),
                  current().builder.locs)
