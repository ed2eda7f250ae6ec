"""Constants of rounds as a function of the round, if that has the same bits.

    0.0, 1.0, 2.0, ...      the round, converted
    0.0, 0.1, 0.2, ...      the round times 0.1, as ``t * dt`` gives them
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.record import record

_EXACT = 1 << 24  # up to here whole numbers are floats, too


@record(frozen=True)
class Affine:
    """``first + step * t`` in round t, exactly; then times ``by``, rounded once."""

    first: int
    step: int
    by: float | None = None


def affine(numbers: NDArray[Any]) -> Affine | None:
    """The function that gives these numbers, bit for bit; None if none is found.

    >>> affine(np.array([0.2, 0.30000000000000004, 0.4]))
    Affine(first=2, step=1, by=0.1)
    >>> affine(np.array([0.2, 0.3, 0.4])) is None
    True
    """
    is_float = numbers.dtype in (np.float32, np.float64)
    if len(numbers) < 2 or not (is_float or numbers.dtype in (np.int32, np.int64)):
        return None
    rounds = np.arange(len(numbers))
    if np.all(np.abs(numbers) < _EXACT) and np.all(numbers == np.trunc(numbers)):
        first, step = int(numbers[0]), int(numbers[1]) - int(numbers[0])
        if _same(numbers, rounds * step + first):
            return Affine(first, step)
    if not is_float:
        return None
    with np.errstate(all="ignore"):
        nearest = np.rint(numbers[0] / (numbers[1] - numbers[0]))
        if not 0 <= nearest < len(numbers):
            return None
        # The number at a power of two is that times the factor, without rounding.
        first, power = int(nearest), 1 << max(0, int(nearest) - 1).bit_length()
        by = numbers[power - first] / numbers.dtype.type(power)
        found = (rounds + first).astype(numbers.dtype) * by
    return Affine(first, 1, float(by)) if _same(numbers, found) else None


def _same(numbers: NDArray[Any], others: NDArray[Any]) -> bool:
    return numbers.tobytes() == others.astype(numbers.dtype).tobytes()
