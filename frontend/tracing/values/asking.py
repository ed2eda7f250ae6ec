"""Whether Python's code asks for the class or an attribute of an object, or C code does.

``isinstance(x, np.ndarray)`` takes the word of ``x.__class__``, and so does C code that then reads
the memory of ``x`` as an object of that class: ``ml_dtypes.bfloat16(3) * x``. Which of the two it
is shows in the instruction that runs in the frame that asks: the answer is for an attribute that is
read, for a pattern of a class, and for a call that is written as one of ``isinstance``. An operator
is C code that reads. All else may be either: ``map(isinstance, xs, kinds)``. So it is with
``hasattr(x, "__index__")`` and C code that wants the number.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType
from weakref import ref

_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
# What asks, as a name or as a method; ``getattr`` for the attribute.
_OF_CLASSES = ("__class__", "isinstance", "_abc_instancecheck", "__instancecheck__", "getattr")
_OF_ATTRIBUTES = ("hasattr", "getattr")


_OPERATORS = ("BINARY_", "COMPARE_", "CONTAINS_", "UNARY_", "INPLACE_", "STORE_SUBSCR")


class _Code:
    """A code object as a key: its own hash reads all of it."""

    __slots__ = ("code",)

    def __init__(self, code: CodeType) -> None:
        self.code = code

    def __hash__(self) -> int:
        return id(self.code)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Code) and other.code is self.code


def asks_class(frame: FrameType) -> bool:
    """Whether the instruction that runs in a frame is a question of Python's code for a class."""
    return _asks(ref(frame.f_code), frame.f_lasti)


@lru_cache(1 << 14)
def _asks(code: ref[CodeType], at: int) -> bool:
    """While tracing it is asked very often: a reference to a code object is one object, which is
    found by what it is."""
    found = code()
    return found is not None and at in _questions(_Code(found), *_OF_CLASSES)


def asks_attribute(frame: FrameType, name: str) -> bool:
    """Whether the instruction that runs in a frame is one for an attribute."""
    return frame.f_lasti in _questions(_Code(frame.f_code), name, *_OF_ATTRIBUTES)


def operates(frame: FrameType) -> bool:
    """Whether the instruction that runs in a frame is an operator."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith(_OPERATORS)


@lru_cache(4096)
def _questions(key: _Code, attribute: str, *called: str) -> frozenset[int]:
    return frozenset(_found(key.code, attribute, called))


def _found(code: CodeType, attribute: str, called: tuple[str, ...]) -> Iterator[int]:
    """Where the questions are. What a call calls begins where the call does; where columns are
    left out of the code, on the same line. Python 3.11 runs some calls in the step before them."""
    steps = list(dis.get_instructions(code))
    starts = {_start(step) for step in steps if step.argval in called}
    for step in steps:
        if step.opname == "MATCH_CLASS" or (
                step.opname in _ATTRIBUTES and step.argval == attribute) or (
                step.opname.startswith(("CALL", "PRECALL")) and _start(step) in starts):
            yield step.offset


def _start(step: dis.Instruction) -> tuple[int | None, int | None]:
    place = step.positions
    return (None, None) if place is None else (place.lineno, place.col_offset)
