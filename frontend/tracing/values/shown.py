"""What a traced value is to the program that asks: the class of NumPy or Python that it stands
for, and which attributes it has."""

from __future__ import annotations

import dis
import sys
from types import FrameType, MappingProxyType
from typing import Any

import numpy as np

from ...face.elsewhere import METHODS, instead
from ..arrays.array import TracedArray
from .asking import asks_attribute

_NUMBERS = MappingProxyType({"b": bool, "i": int, "u": int, "f": float, "c": complex})
# Whose code asks about traced values, and not about what they stand for.
_KNOWING = frozenset({__name__.partition(".")[0], "numpy", "scipy", "ml_dtypes", "copy"})
_SPECIAL = ("__iter__", "__len__", "__getitem__", "__contains__")
# What C code may want of any value, and programs ask whether it is there.
_CONVERTING = ("__index__", "__int__", "__float__", "__complex__", "__round__", "__trunc__",
               "__array__", "__array_priority__", "__array_ufunc__", "__array_function__",
               "__setitem__", "__divmod__", "__rdivmod__", "__matmul__", "__rmatmul__", "__copy__",
               "__deepcopy__", "__array_namespace__")


class MissingError(TypeError, AttributeError):
    """A number has no length and no items, nor the methods that tell them."""


def shown_class(x: Any) -> type:
    """What ``type(x)`` is for the value that a tracer stands for."""
    if x.type.shape:
        return np.ndarray
    if x.weak:
        return _NUMBERS[x.dtype.kind]
    kind: type = x.dtype.type if x.is_scalar else np.ndarray
    return kind


def is_shown(x: Any, name: str) -> bool:
    """Whether an attribute of NumPy's arrays is one of the value that a tracer stands for, to the
    code that asks by way of one function of ours: ``hasattr(x, "__len__")`` is how programs ask."""
    if x._value.type.shape:
        return True
    return _is_ours(sys._getframe(2)) or hasattr(shown_class(x), name)


def _is_ours(frame: FrameType) -> bool:
    module: str = frame.f_globals.get("__name__") or ""
    return module.partition(".")[0] in _KNOWING


def hides(x: Any, name: str) -> bool:
    """Whether a program that asks a traced value for an attribute is told that there is none."""
    member = next((vars(kind)[name] for kind in type(x).__mro__ if name in vars(kind)), None)
    special = isinstance(member, Converting) or (isinstance(member, Member) and not x.type.shape)
    return special and not hasattr(shown_class(x), name)


class Member:
    """A method of arrays that numbers do not have."""

    def __init__(self, name: str, member: Any) -> None:
        self.name, self.member = name, member

    def __get__(self, x: Any, kind: type) -> Any:
        if isinstance(x, TracedArray) and not is_shown(x, self.name):
            raise missing(x, self.name)
        return self.member.__get__(x, kind)


class Converting(Member):
    """A special method that numbers may not have, to programs that ask for it."""

    def __get__(self, x: Any, kind: type) -> Any:
        if isinstance(x, TracedArray):
            frame = sys._getframe(1)
            if not _is_ours(frame) and asks_attribute(frame, self.name) and (
                    not hasattr(shown_class(x), self.name)):
                raise missing(x, self.name)
        get = getattr(self.member, "__get__", None)
        return self.member if get is None else get(x, kind)


class Field(Member):
    """A property of arrays that numbers do not have."""

    def __set__(self, x: Any, value: Any) -> None:
        self.member.__set__(x, value)


def subscripts(frame: FrameType) -> bool:
    """Whether the instruction that runs in a frame is ``x[i]``."""
    code = frame.f_code.co_code[frame.f_lasti]
    return dis.opname[code].startswith("BINARY_") or _is_ours(frame)


def missing(x: Any, name: str) -> AttributeError:
    """The error of Python for an attribute that a number does not have."""
    shown = shown_class(x).__name__
    return MissingError({
        "__len__": f"object of type '{shown}' has no len()",
        "__iter__": f"'{shown}' object is not iterable",
        "__contains__": f"argument of type '{shown}' is not iterable",
        "__getitem__": f"'{shown}' object is not subscriptable",
    }.get(name, f"'{shown}' object has no attribute '{name}'{instead(name, METHODS)}"))


def check_rounds(kind: type) -> None:
    """Raise Python's TypeError where ``round`` takes nothing of a class."""
    if not hasattr(kind, "__round__"):
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        raise TypeError(f"type {module}{kind.__name__} doesn't define __round__ method")


def hide_members(kind: type) -> None:
    """Let numbers that are tracers of a class have no attributes of arrays: those of ``np.ndarray``
    that the class or one below it has."""
    for base in kind.__mro__:
        for name, member in list(vars(base).items()):
            if name in _CONVERTING:
                setattr(kind, name, Converting(name, member))
                continue
            of_arrays = name in _SPECIAL or (not name.startswith("_") and not hasattr(int, name))
            if of_arrays and hasattr(np.ndarray, name) and vars(kind).get(name, member) is member:
                made = Field if isinstance(member, property) else Member
                setattr(kind, name, made(name, member))
