"""Arrays of classes that compute in their own way: masks, matrices, units. A program has their
numbers alone, so they are no operands; the error says what would be lost."""

from __future__ import annotations

from types import FrameType
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...ir.diagnose import Error, error
from ..face.source import is_internal, user_loc

_OURS = __name__.partition(".")[0]
_RULES = ("__array_ufunc__", "__array_function__", *(
    name for name in vars(NDArrayOperatorsMixin) if callable(getattr(np.ndarray, name, None))))


def computes_itself(kind: type) -> bool:
    """Whether a class of arrays has arithmetic of its own; one that only stores its elements
    elsewhere (``np.memmap``), or reads them in another way, has none."""
    if kind is np.ndarray or kind.__module__.partition(".")[0] == _OURS:  # a buffer is plain, too
        return False
    priority = getattr(kind, "__array_priority__", 0)
    return (isinstance(priority, (int, float)) and priority > 0) or any(
        getattr(kind, name) is not getattr(np.ndarray, name) for name in _RULES)


def checked_class(x: Any, what: str) -> None:
    """Raises DTypeError (W112) for an array, which ``what`` says, that computes in its own way."""
    if type(x) is not np.ndarray and isinstance(x, np.ndarray) and computes_itself(type(x)):
        raise error("W112", f"{what}: a {type(x).__name__} has arithmetic of its own, which a "
                            "compiled function has not", locs=user_loc(), hint=_fix(type(x)))


def makes_masked(frame: FrameType | None) -> bool:
    """Whether what runs is called by NumPy's functions of masked arrays."""
    while frame is not None and is_internal(frame):
        if str(frame.f_globals.get("__name__")).startswith("numpy.ma."):
            return True
        frame = frame.f_back
    return False


def of_class(kind: type) -> Error:
    """The error of a traced array that is to become one of such a class."""
    masked = issubclass(kind, np.ma.MaskedArray)
    return error("W112", f"a traced array cannot be a {kind.__name__}, which has arithmetic of its "
                         "own", locs=user_loc(), hint="keep the mask as an array beside x, and "
                         "write np.where(mask, 0, x) or x[~mask]" if masked else _fix(kind))


def _fix(kind: type) -> str:
    if issubclass(kind, np.ma.MaskedArray):
        return ("pass np.ma.filled(x, 0), whose masked elements are zeros, and its mask: "
                "np.ma.getmaskarray(x)")
    if issubclass(kind, np.matrix):
        return "pass np.asarray(x), whose * is element by element, and write @ for products"
    return f"pass np.asarray(x): what {kind.__name__} adds to plain arrays is lost"
