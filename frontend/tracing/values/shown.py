"""What a traced value is to the program that asks: the class of NumPy or Python that it stands
for, and whether it has a length."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CodeType, MappingProxyType
from typing import Any

import numpy as np

_NUMBERS = MappingProxyType({"b": bool, "i": int, "u": int, "f": float, "c": complex})
_COMPARING = frozenset({"IS_OP", "COMPARE_OP", "CONTAINS_OP"})


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


def asks_identity(function: Any) -> bool:
    """Whether the code of a function asks what Python alone answers, with no word to the object:
    ``x is True`` (as ``match`` does, too), or ``type(x)`` compared with a class."""
    code = getattr(function, "__code__", None)
    return isinstance(code, CodeType) and any(map(_asks, _codes(code)))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _asks(code: CodeType) -> bool:
    truths = any(constant is True or constant is False for constant in code.co_consts)
    kinds = "type" in code.co_names  # of a global name, or of an attribute
    if not truths and not kinds:
        return False
    steps = list(dis.get_instructions(code))
    kinds = kinds and any(step.opname.startswith("LOAD_GLOBAL") and step.argval == "type"
                          for step in steps)
    return any(step.opname in _COMPARING and (kinds or (
        step.opname == "IS_OP" and isinstance(steps[at - 1].argval, bool)))
        for at, step in enumerate(steps))
