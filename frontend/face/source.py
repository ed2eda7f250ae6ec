"""Where in the user's code an operation was written, and what its result is called there.

The user's frame is the innermost one whose module is neither Weft's nor NumPy's. The name of a
result is read off the instruction after the call:

    h = np.tanh(x @ w)      CALL, STORE_FAST h       the node of tanh is named h
    return x + b            BINARY_OP, RETURN_VALUE  the node of add is named after the function

Each (code, instruction) is looked at once per trace, so loops cost nothing more.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from bisect import bisect_right
from types import CodeType, FrameType, FunctionType
from typing import Any

from ...ir.loc import Loc
from ...ir.record import record

_INTERNAL = frozenset({"weft", "numpy", "contextlib", "functools", "concurrent", "copy", "copyreg",
                       "dataclasses"})
RUNTIME = "_weft"  # by which rewritten code knows what it calls
WRITTEN = "_weft_written"  # by which a rewritten copy knows what it is of
_OPCODES = dis.opmap
_CACHE = _OPCODES.get("CACHE", 0)
_EXTENDED = _OPCODES["EXTENDED_ARG"]
_FAST = frozenset(_OPCODES[n] for n in ("STORE_FAST", "STORE_DEREF") if n in _OPCODES)
# Python 3.13 pairs a store with the next instruction; its own variable is in the high half byte.
_PAIRS = frozenset(_OPCODES[n] for n in ("STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST")
                   if n in _OPCODES)
_GLOBAL = frozenset(_OPCODES[n] for n in ("STORE_NAME", "STORE_GLOBAL"))
_RETURN = frozenset({_OPCODES["RETURN_VALUE"]})
_SUBSCRIPT = frozenset(_OPCODES[n] for n in ("STORE_SUBSCR", "STORE_SLICE") if n in _OPCODES)


@record(frozen=True, slots=True)
class Place:
    """A location, and the variable or function its result gets its name from ('' if none)."""

    loc: Loc
    name: str


def user_frame() -> FrameType | None:
    """The innermost frame of the user's own code, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_internal_name(frame.f_globals.get("__name__") or ""):
            return frame
        frame = frame.f_back
    return None


def is_internal(frame: FrameType) -> bool:
    """True for frames of Weft, NumPy and the decorators of the standard library."""
    return is_internal_name(frame.f_globals.get("__name__") or "")


# What calls functions that are not the user's for the user's code.
_CALLING = f"{__name__.partition('.')[0]}.frontend.rewriting.calls.reading"


def who_asks(frame: FrameType) -> FrameType:
    """The frame that calls, behind those that only hand a call on."""
    while frame.f_globals.get("__name__") == _CALLING and frame.f_back is not None:
        frame = frame.f_back
    return frame


def is_library(frame: FrameType) -> bool:
    """The same, and for all of the standard library."""
    module = str(frame.f_globals.get("__name__") or "").partition(".")[0]
    return is_internal(frame) or (module in sys.stdlib_module_names and module != "__main__")


@functools.cache
def is_internal_name(module: str) -> bool:
    """True for the name of a module whose frames are not the user's."""
    return module.partition(".")[0] in _INTERNAL


def written(function: Any) -> Any:
    """The function as the user wrote it, of its rewritten copy; any other as it is. Decorators may
    have copied the attributes of one to another."""
    found = getattr(function, WRITTEN, None)
    same = isinstance(function, FunctionType) and isinstance(found, FunctionType) and (
        found.__globals__ is function.__globals__ and found.__qualname__ == function.__qualname__)
    return found if same else function


def user_loc() -> tuple[Loc, ...]:
    """The user's line now, as the ``locs`` of an error; slow, so for errors only."""
    frame = user_frame()
    if frame is None:
        return ()
    return (Loc(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name,
                frame.f_code, frame.f_lasti),)


def scipy_call() -> tuple[str, tuple[Loc, ...]] | None:
    """The function of SciPy in whose Python the user's code is now, and the line that called it."""
    frame, name = user_frame(), ""
    while frame is not None:
        module, code = str(frame.f_globals.get("__name__") or ""), frame.f_code
        if not module.startswith("scipy.") and not is_internal_name(module):
            break
        if module.startswith("scipy._"):  # decorators, and what all of SciPy shares
            name = name or "scipy"
        elif module.startswith("scipy."):
            public = [word for word in module.split(".") if not word.startswith("_")]
            called = code.co_name if "<" in code.co_qualname else code.co_qualname
            name = ".".join((*public, called.removesuffix(".__init__")))
        frame = frame.f_back
    if frame is None or not name:
        return None
    return name, (Loc(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name,
                      frame.f_code, frame.f_lasti),)


def definition(function: Any) -> tuple[Loc, ...]:
    """Where a function is defined, as the ``locs`` of an error; empty for built-in ones."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ()
    return (Loc(code.co_filename, code.co_firstlineno, code.co_name),)


def assigns_item() -> bool:
    """True if the user's line is storing into an array: ``buffer[i] = ...``."""
    frame = user_frame()
    return frame is not None and frame.f_code.co_code[frame.f_lasti] in _SUBSCRIPT


def name_of(wanted: Any) -> str:
    """The user's variable that holds this very object; '' if none is found."""
    frame = user_frame()
    if frame is None:
        return ""
    for names in (frame.f_locals, frame.f_globals):
        for name, value in names.items():
            if value is wanted and name.isidentifier() and not name.startswith("_"):
                return str(name)
    return ""


class _Lines:
    """The line table and instructions of one code object, unpacked once."""

    def __init__(self, code: CodeType) -> None:
        self.code, self.instructions = code, code.co_code
        table = [(start, line) for start, _, line in code.co_lines() if line is not None]
        self.starts = [start for start, _ in table]
        self.lines = [line for _, line in table]
        cells = [name for name in code.co_cellvars if name not in code.co_varnames]
        self.variables = (*code.co_varnames, *cells, *code.co_freevars)

    def place(self, instruction: int) -> Place:
        at = bisect_right(self.starts, instruction) - 1
        line = self.lines[at] if at >= 0 else self.code.co_firstlineno
        loc = Loc(self.code.co_filename, line, self.code.co_name, self.code, instruction)
        return Place(loc, self._target(instruction))

    def _target(self, instruction: int) -> str:
        text = self.instructions
        at = instruction + 2
        high = 0
        while at + 1 < len(text) and text[at] in (_CACHE, _EXTENDED):
            if text[at] == _EXTENDED:
                high = (high | text[at + 1]) << 8
            at += 2
        if at + 1 >= len(text):
            return ""
        opcode, argument = text[at], high | text[at + 1]
        name = ""
        if opcode in _FAST:
            name = self.variables[argument]
        elif opcode in _PAIRS:
            name = self.variables[argument >> 4]
        elif opcode in _GLOBAL:
            name = self.code.co_names[argument]
        elif opcode in _RETURN:
            name = self.code.co_name
        # "_" and "<lambda>" say nothing.
        return name if name.isidentifier() and name.strip("_") else ""


class SourceMap:
    """Finds places; one per trace, which keeps what it has read of the code objects."""

    def __init__(self) -> None:
        self._codes: dict[int, _Lines] = {}
        self._places: dict[tuple[int, int], Place] = {}

    def here(self) -> Place | None:
        """The place in the user's code that is running now."""
        frame = user_frame()
        if frame is None:
            return None
        code = frame.f_code
        # Hashing a code object reads all of it, so the key is its id; _codes keeps it alive.
        key = id(code), frame.f_lasti
        place = self._places.get(key)
        if place is None:
            lines = self._codes.get(key[0])
            if lines is None:
                lines = self._codes[key[0]] = _Lines(code)
            place = self._places[key] = lines.place(frame.f_lasti)
        return place
