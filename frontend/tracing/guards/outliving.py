"""Arrays that a function makes while it is traced, and that outlive its trace.

    if TABLE is None:
        TABLE = np.zeros(3)      after the trace TABLE is a plain array, as the function would have
    return x + TABLE             left it. It is one from around then, and the function traced again

Who holds a buffer gets the plain array of the same memory: dicts, lists, objects, classes, cells;
who holds a tuple of buffers gets another tuple. Properties of objects from around that are computed
once (``functools.cached_property``) are computed by Python, for the trace that comes next.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import CellType, FrameType, MemberDescriptorType
from typing import Any
from weakref import ref

import numpy as np

from ...face.source import is_internal_name
from ..arrays.buffer import Buffer
from ..context.recorder import TraceContext

Cached = tuple[ref[Any], str, Callable[[Any], Any]]  # an object, and its property
_DEEP = 3  # tuples in tuples


def released(ctx: TraceContext, *, ended: bool, again: bool) -> bool:
    """Have all who hold a buffer of those that a trace has made hold a plain array; whether there
    is anybody. With ``ended``, what else the trace has held is garbage. Traced ones have the
    numbers that they had before if it is to be made ``again``; else they are told of as such."""
    if ended and _living(ctx, again):
        gc.collect(0)  # what is part of a cycle is nearly always young
    olds: list[Any] = _living(ctx, again)
    new = {id(buffer): _plain(buffer) for buffer in olds}
    found = False
    for _ in range(_DEEP if olds else 0):
        tuples: list[Any] = []
        for holder in gc.get_referrers(*olds):
            if isinstance(holder, tuple):
                tuples.append(holder)
            elif holder is not olds and not isinstance(holder, FrameType) and not _is_ours(holder):
                found |= _set(holder, new)
        olds, new = tuples, {id(each): tuple.__new__(
            type(each), [new.get(id(item), item) for item in each]) for each in tuples}
    return found


def computed(properties: Sequence[Cached]) -> bool:
    """Have objects that outlive a trace the properties that it has computed; whether there are
    any. An exception is told when code asks for that property again."""
    if any(each() is not None for each, _, _ in properties):
        gc.collect(0)
    found = False
    for each, name, get in properties:
        thing = each()
        if thing is None:
            continue
        thing.__dict__.pop(name, None)
        with suppress(Exception):
            thing.__dict__[name] = get(thing)
            found = True
    return found


def uncomputed(properties: Sequence[Cached]) -> None:
    """Take back what a trace that has failed has computed."""
    for each, name, _ in properties:
        thing = each()
        if thing is not None:
            thing.__dict__.pop(name, None)


def _living(ctx: TraceContext, again: bool) -> list[Any]:
    """The buffers of a trace that are there yet, but for those with the numbers of others."""
    made, known = (each() for each in ctx.buffers or ()), ctx.around.own
    return [buffer for buffer in made if buffer is not None and id(buffer) not in known and (
        not buffer.is_traced or (again and buffer.memory().start is not None))]


def _plain(buffer: Buffer) -> Any:
    """The plain array of a buffer: what NumPy has made, or a part of its memory."""
    if buffer.is_traced:
        buffer.memory().as_it_was()
    kept = buffer.memory().let_go()
    part, made = np.ndarray.view(buffer, np.ndarray), vars(np.ndarray)["base"].__get__(buffer)
    part.flags.writeable |= buffer.is_traced or kept
    if type(made) is np.ndarray and (made.shape, made.strides) == (part.shape, part.strides):
        made.flags.writeable = part.flags.writeable
        return made
    return part


def _is_ours(holder: Any) -> bool:
    return is_internal_name(type(holder).__module__ or "") and not isinstance(
        holder, (dict, list, deque, CellType))


def _set(holder: Any, new: Mapping[int, Any]) -> bool:
    """Have one that is no tuple hold what is ``new``, by the ids of the old; whether it could."""
    if isinstance(holder, CellType):
        holder.cell_contents = new[id(holder.cell_contents)]
        return True
    if isinstance(holder, (list, deque)):
        places = [at for at, item in enumerate([*holder]) if id(item) in new]
        for at in places:
            holder[at] = new[id(holder[at])]
        return bool(places)
    held = holder if isinstance(holder, dict) else getattr(holder, "__dict__", {})
    names = [name for name, value in [*held.items()] if id(value) in new]
    classes = [each for each in gc.get_referrers(held) if isinstance(each, type)] if names else []
    for name in names:
        if classes:  # of which attributes are looked up in a cache
            setattr(classes[0], name, new[id(held[name])])
        else:
            held[name] = new[id(held[name])]
    slots = [slot for kind in type(holder).__mro__ for slot in vars(kind).values()
             if isinstance(slot, MemberDescriptorType) and id(_of_slot(slot, holder)) in new]
    replaced = [slot for slot in slots if _replaced(slot, holder, new)]
    return bool(names or replaced)


def _replaced(slot: MemberDescriptorType, holder: Any, new: Mapping[int, Any]) -> bool:
    try:
        slot.__set__(holder, new[id(_of_slot(slot, holder))])
    except AttributeError:  # of Python's own, as the array that a method is bound to
        return False
    return True


def _of_slot(slot: MemberDescriptorType, holder: Any) -> Any:
    try:
        return slot.__get__(holder, type(holder))
    except AttributeError:
        return None  # it is empty
