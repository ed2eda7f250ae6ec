"""Fixes that convert: what to write where a value has another dtype than the one that is wanted."""

from __future__ import annotations

from typing import Any

import numpy as np

from .types import DType


def spelling(dtype: DType) -> str:
    """A dtype as users write it: ``np.float32``, ``ml_dtypes.bfloat16``."""
    name = str(dtype.numpy)
    return f"np.{name}" if hasattr(np, name) else f"ml_dtypes.{name}"


def conversion(given: Any, wanted: DType, name: str = "x") -> str:
    """What makes ``given``, which the user calls ``name``, one of a wanted dtype.

    >>> from .types import F32, I32
    >>> conversion(np.ones(2), F32), conversion([1.5], I32)
    ('convert it: x.astype(np.float32)', 'convert it: np.asarray(x).astype(np.int32)')
    >>> conversion(np.ones(2) * 1j, F32)
    'take a part of it: np.real(x).astype(np.float32)'
    """
    kind = _kind(given)
    target = spelling(wanted)
    if isinstance(given, int):  # more than 64 bits
        return f"give a number that {wanted} holds"
    if kind not in "biufc":
        return f"give numbers, or an array of them: np.array([1, 2], {target})"
    if kind == "c" and wanted.kind != "c":
        return f"take a part of it: np.real({name}).astype({target})"
    own = name if hasattr(given, "astype") else f"np.asarray({name})"
    return f"convert it: {own}.astype({target})"


def _kind(given: Any) -> str:
    """The kind of the numbers of an array, of what has a dtype as one, or of Python's."""
    if not hasattr(given, "dtype"):
        try:
            given = np.asarray(given)
        except ValueError:  # of parts of several lengths
            return "O"
    dtype = np.dtype(given.dtype)
    return "f" if dtype.kind == "V" and dtype.names is None else dtype.kind  # of ml_dtypes
