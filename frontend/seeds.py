"""Seeds of random orders."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.diagnose import error
from .face.source import user_loc


def checked_seed(seed: Any, what: str) -> int:
    """The seed itself. Raises DTypeError (W112) unless it is an integer of 0 or more."""
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0:
        return int(seed)
    raise error("W112", f"the seed of {what} is {seed!r}, not an integer of 0 or more",
                locs=user_loc(), hint="seed=0 gives the same order in each run")
