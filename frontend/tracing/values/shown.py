"""What a traced value is to the program that asks: the class of NumPy or Python that it stands
for, and whether it has a length."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

_NUMBERS = MappingProxyType({"b": bool, "i": int, "u": int, "f": float, "c": complex})


class NoLengthError(TypeError, AttributeError):
    """A number has no length, nor the method that tells it."""


def shown_class(x: Any) -> type:
    """What ``type(x)`` is for the value that a tracer stands for."""
    if x.type.shape:
        return np.ndarray
    if x.weak:
        return _NUMBERS[x.dtype.kind]
    kind: type = x.dtype.type if x.is_scalar else np.ndarray
    return kind


class Length:
    """``__len__``, which numbers do not have: ``hasattr(x, "__len__")`` is how programs ask."""

    def __get__(self, x: Any, kind: type) -> Callable[[], int]:
        if x is None:
            length: Callable[[], int] = kind._length  # type: ignore[attr-defined]
            return length
        if not x.type.shape and shown_class(x) is not np.ndarray:
            raise NoLengthError("len() of a number")
        answer: Callable[[], int] = x._length
        return answer
