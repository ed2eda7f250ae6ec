"""What a part that runs only on one way, or again and again, changes without a name of its own: it
would be changed once, while the part is traced, and on all ways.

    if x[0] > 0:
        counter.inc()         the object, the list, the plain array that it changes is not among the
                              names that the statement binds or writes to: an error says so

Looked at are containers, iterators, objects of the user's and plain arrays that the function's own
names and their closures lead to.
"""

from __future__ import annotations

import inspect
import itertools
import operator
import sys
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import CellType, CodeType, FrameType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from ....ir.diagnose import Error
from ...face.source import is_internal, user_loc
from ...tracing.arrays.buffer import Buffer, TracedBuffer
from ...tracing.arrays.outside import OutsideError
from ...tracing.trace import is_start
from ...tracing.values.methods import ArrayMethods

_DEEP, _MANY = 4, 2000      # levels, and things, that are looked at
_BYTES = 1 << 20            # of an array
_KEPT = 1 << 16             # of one that was not made while tracing, to be put back
_PLAIN = (str, bytes, int, float, complex, type(None), type, ModuleType, ArrayMethods, TracedBuffer,
          np.generic)
State = tuple[str, Any, Any]  # the name that leads to a thing, the thing, and what it was
_OURS = __name__.partition(".")[0]


class Changed:
    """A thing that a region has changed, and the name that leads to it."""

    def __init__(self, name: str, thing: Any) -> None:
        self.name, self.thing = name, thing


@contextmanager
def unchanged(*run: Callable[..., Any]) -> Iterator[None]:
    """Raises TracerError (W203) where the body, in which functions are ``run``, leaves something
    changed that the user's function can see. Names that a statement binds are to be as they were at
    both ends. What was changed is put back, also by a body that fails: it may have a copy then, and
    be traced again."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_internal(frame):
        frame = frame.f_back
    before = [] if frame is None else list(_reached(frame.f_locals))
    try:
        yield
    except BaseException:
        _put_back(_changed(before, frame, run))
        raise
    changed = _changed(before, frame, run)
    if changed:
        _put_back(changed)
        raise _problem(*changed[0][:2])


def _changed(
    before: Sequence[State], frame: FrameType | None, run: Sequence[Callable[..., Any]]
) -> list[State]:
    """What is not as it was before something was ``run`` in a frame. Where there are other threads,
    they have changed what no name leads to that this asks for."""
    found = [(name, thing, state) for name, thing, state in before
             if not _same(state, _state(thing))]
    codes = list(_users(run))
    if not found or frame is None or not codes or None in codes or threading.active_count() == 1:
        return found
    asked = {name for code in codes if code is not None for name in code.co_freevars}
    names = {name: value for name, value in frame.f_locals.items() if name in asked}
    own = {id(thing) for _, thing, _ in _reached(names)}
    return [each for each in found if id(each[1]) in own]


def _users(run: Iterable[Any]) -> Iterator[CodeType | None]:
    """The code of the user's functions among some, and of those that ours hold, which wrap them;
    None for what is no function."""
    for each in run:
        if isinstance(each, FunctionType) and _is_ours(each):
            held = [cell.cell_contents for cell in each.__closure__ or () if is_set(cell)]
            yield from _users(part for part in held if isinstance(part, FunctionType))
        else:
            yield getattr(each, "__code__", None)


def is_outside(thing: Any) -> bool:
    """Whether the function that is traced finds a thing in its arguments or in what is around it,
    where it was before and will be after: what it holds there is no value of this trace."""
    frame: FrameType | None = sys._getframe(1)
    outermost = None
    while frame is not None and not is_start(frame.f_code):
        outermost = outermost if is_internal(frame) else frame
        frame = frame.f_back
    if outermost is None:
        return False
    code = outermost.f_code
    count = code.co_argcount + code.co_kwonlyargcount + sum(
        bool(code.co_flags & flag) for flag in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS))
    given = {*code.co_freevars, *code.co_varnames[:count]}
    names = {name: value for name, value in outermost.f_locals.items() if name in given}
    return any(found is thing for _, found, _ in _reached(names))


def _put_back(changed: Sequence[State]) -> None:
    for _, thing, state in changed:
        _restore(thing, state)


def _problem(name: str, thing: Any) -> Error:
    what = "array" if isinstance(thing, np.ndarray) else type(thing).__name__
    return OutsideError(
        f"'{name}' leads to {'an' if what[0] in 'aeiou' else 'a'} {what} that is changed where it "
        "is not known before the function runs whether or how often: by a function, a method or "
        "another name", Changed(name, thing), locs=user_loc(),
        hint="change it by its own name in the very statement (p[0] = v, c.n += 1), or return the "
             "new value")


def _reached(names: dict[str, Any]) -> Iterator[State]:
    """Things that names lead to, with their states."""
    seen: set[int] = set()
    level = [(name, value) for name, value in names.items() if not name.startswith("_weft")]
    for _ in range(_DEEP):
        below: list[tuple[str, Any]] = []
        for name, thing in level:
            if isinstance(thing, _PLAIN) or id(thing) in seen or len(seen) >= _MANY:
                continue
            seen.add(id(thing))
            state = _state(thing)
            if state is not None:
                yield name, thing, state
            below += [(name, part) for part in _parts(thing)]
        level = below


def _parts(thing: Any) -> list[Any]:
    if isinstance(thing, (list, tuple, set, frozenset, deque)):
        return list(thing)
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, MethodType):
        return [thing.__self__]
    if isinstance(thing, FunctionType):
        return [] if _is_ours(thing) else [
            cell.cell_contents for cell in thing.__closure__ or () if is_set(cell)]
    if isinstance(thing, (enumerate, filter, map, zip)):
        return list(thing.__reduce__()[1])  # what they take their items from
    return list(vars(thing).values()) if _is_object(thing) else []


def _state(thing: Any) -> Any:
    """What changes when a thing does; None for what does not."""
    if isinstance(thing, np.ndarray):
        plain = thing.dtype.kind in "biufc" and thing.nbytes <= _BYTES
        if not plain:
            return None
        kept = isinstance(thing, Buffer) or thing.nbytes <= _KEPT
        return thing.tobytes() if kept else zlib.crc32(np.ascontiguousarray(thing).data)
    if isinstance(thing, (list, deque)):
        return list(thing)
    if isinstance(thing, set):
        return sorted(thing, key=id)
    if isinstance(thing, dict):
        return [*thing.keys(), *thing.values()]
    if isinstance(thing, bytearray):
        return zlib.crc32(thing)
    if isinstance(thing, GeneratorType):
        frame = thing.gi_frame
        return [] if frame is None else [frame.f_lasti, *frame.f_locals.values()]
    if isinstance(thing, itertools.count):
        return repr(thing)
    if hasattr(type(thing), "__length_hint__"):
        return operator.length_hint(thing)
    return [*vars(thing).keys(), *vars(thing).values()] if _is_object(thing) else None


def _restore(thing: Any, state: Any) -> None:
    """Put back what a thing held, but for iterators and large arrays of others."""
    if isinstance(thing, np.ndarray):
        if not isinstance(thing, TracedBuffer) and isinstance(state, bytes):
            thing.view(np.ndarray)[...] = np.frombuffer(state, thing.dtype).reshape(
                thing.shape)
    elif isinstance(thing, list):
        thing[:] = state
    elif isinstance(thing, (set, deque)):
        thing.clear()
        thing.update(state) if isinstance(thing, set) else thing.extend(state)
    elif isinstance(thing, dict) or _is_object(thing):
        held = thing if isinstance(thing, dict) else vars(thing)
        names, values = state[:len(state) // 2], state[len(state) // 2:]
        held.clear()
        held.update(zip(names, values, strict=True))


def _same(before: Any, now: Any) -> bool:
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(map(_is, before, now))
    return bool(before == now)


def _is(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, (int, float, str)) and type(a) is type(b) and a == b)


def _is_object(thing: Any) -> bool:
    return hasattr(thing, "__dict__") and not isinstance(
        thing, (FunctionType, MethodType, np.ndarray)) and not _is_ours(type(thing))


def _is_ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).partition(".")[0] in (_OURS, "numpy")


def is_set(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  it is not there
    except ValueError:
        return False
    return True
