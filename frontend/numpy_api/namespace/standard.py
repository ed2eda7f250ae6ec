"""Functions that the array API standard has with other parameters than NumPy; NumPy's work too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracing.arrays.buffer import is_traced


def _kept(**options: Any) -> dict[str, Any]:
    """The options that somebody gave."""
    return {name: value for name, value in options.items() if value is not None}


def _dtype(x: Any) -> Any:
    """The dtype of an array; anything else as it is, as classes that stand for dtypes."""
    return x if isinstance(x, type) else getattr(x, "dtype", x)


def sort(a: Any, /, axis: Any = -1, kind: Any = None, order: Any = None, *,
         descending: bool = False, stable: bool | None = None) -> Any:
    """``np.sort``; the largest first with ``descending``, and NaN before it."""
    found: Any = np.sort(a, axis, **_kept(kind=kind, order=order, stable=stable))
    return np.flip(found, -1 if axis is None else axis) if descending else found


def argsort(a: Any, /, axis: Any = -1, kind: Any = None, order: Any = None, *,
            descending: bool = False, stable: bool | None = None) -> Any:
    """``np.argsort``; the largest first with ``descending``. Equal elements keep their order, as
    the standard says that they do if nothing else is said."""
    options = _kept(kind=kind, order=order, stable=stable)
    if not descending:
        return np.argsort(a, axis, **(options or {"stable": True}))
    x: Any = np.ravel(a) if axis is None else a
    along = -1 if axis is None else axis
    last = x.shape[along] - 1
    turned: Any = np.argsort(np.flip(x, along), along, **(options or {"stable": True}))
    return last - np.flip(turned, along)


def clip(a: Any, /, min: Any = None, max: Any = None, out: Any = None, *, a_min: Any = None,
         a_max: Any = None, **options: Any) -> Any:
    """``np.clip``, by the names of the standard or by NumPy's older ones."""
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    return np.clip(a, low, high, out, **options)


def finfo(dtype: Any, /) -> Any:
    """``np.finfo`` of a dtype or of an array."""
    return np.finfo(_dtype(dtype))


def iinfo(type: Any, /) -> Any:
    """``np.iinfo`` of a dtype or of an array."""
    return np.iinfo(_dtype(type))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """``np.from_dlpack``; a traced array is one of NumPy's already."""
    if is_traced(x):
        return np.asarray(x, device=device, copy=copy, like=x)
    return np.from_dlpack(x, device=device, copy=copy)


FUNCTIONS: tuple[Callable[..., Any], ...] = (sort, argsort, clip, finfo, iinfo, from_dlpack)
