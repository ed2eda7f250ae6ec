"""What results of programs become, by their kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

MADE: Mapping[str, Callable[[Any], Any]] = MappingProxyType({
    "0-d": np.asarray, "list": list, "numbers": np.ndarray.tolist})
"""What native code calls with what the program gives: an array without dims, a list, or a list of
Python's numbers is made of it."""
