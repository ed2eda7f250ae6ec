"""Arrays that a call writes to: that they can be written, and which others have their memory.

    f(x, x)           one array, under two names: a program of its own, in which they are one
    f(x, x[1:])       an error, if either is written: what NumPy does depends on the order
    f(x, x[::2])      the same; x[::2] and x[1::2] are apart
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.diagnose import Error, error
from ..face.source import user_loc
from ..tracing.containers import found_at
from ..tracing.context.traced import Traced
from ..tracing.guards.guard import Kind

_WORK = 10_000  # that it may take to find out whether two arrays share an element


def shared_memory(traced: Traced, leaves: Sequence[Any]) -> list[tuple[int, int]]:
    """The arrays of a call that are the very memory of earlier ones, where the program writes to
    that. Raises TracerError (W203) for what cannot be written, and for partly shared memory."""
    arrays = {at: leaf for at, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)}
    names = {at: entry.name for at, entry in enumerate(traced.leaves)}
    around = [(capture.param.name.removesuffix(":0"), capture.array) for capture in traced.captures]
    # What is known of an array would be another after a write to its memory.
    around += [(str(guard.path), guard.path.get()) for guard in traced.guards.all
               if guard.kind is Kind.CONTENT]
    for at, (name, array) in enumerate(around, len(leaves)):
        arrays[at], names[at] = array, name
    found: dict[int, int] = {}
    for at in traced.written:
        written = arrays[at]
        if not written.flags.writeable:
            raise error("W203", f"{names[at]} is read-only, and {traced.graph.name} writes to it",
                        locs=user_loc(), hint=f"pass a copy: {names[at]}.copy()")
        same = [at]  # all that are this very array
        for other, array in arrays.items():
            if other != at and np.may_share_memory(written, array) and _share(written, array):
                if max(at, other) >= len(leaves) or not _are_one(written, array):
                    raise _overlap(names[at], names[other], traced)
                same.append(other)
        found |= {each: min(same) for each in same if each != min(same)}
    return sorted(found.items())


def check_containers(traced: Traced, arguments: Any) -> None:
    """Raises TracerError (W203) where a list, a dict or an object is given twice, and changed."""
    seen: dict[int, Any] = {}
    changed = {fill.number for fill in traced.changed}
    for number, path in enumerate(traced.containers):
        found = found_at(arguments, path)
        other = seen.setdefault(id(found), number)
        if other != number and not {other, number}.isdisjoint(changed):
            raise error("W203", f"one {type(found).__name__} is given twice, and "
                                f"{traced.graph.name} changes it", locs=user_loc(),
                        hint="give it once, or a copy of it: copy.deepcopy(d)")


def _share(one: Any, other: Any) -> bool:
    try:
        return bool(np.shares_memory(one, other, max_work=_WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _are_one(one: Any, other: Any) -> bool:
    """Whether two arrays are the same elements in the same order."""
    return one is other or (
        one.ctypes.data == other.ctypes.data and one.shape == other.shape
        and one.strides == other.strides and one.dtype == other.dtype)


def _overlap(name: str, other: str, traced: Traced) -> Error:
    return error("W203", f"{name} and {other} have memory in common, and {traced.graph.name} "
                         f"writes to {name}", locs=user_loc(),
                 hint=f"pass arrays that are apart, or a copy: {other}.copy()")
