"""What a region starts from and leaves behind: the values of the names that its code changes.

A region must not change what lies around it, so its code gets arrays, lists and dicts of its own.
Afterwards it is known what was bound anew, and what was changed in place and has to be changed
around the region as well, where others may hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.types import BOOL
from ...face import tree
from ...face.source import user_loc
from ...tracing.arrays import closed_over, views
from ...tracing.arrays.buffer import Buffer, TracedBuffer
from ...tracing.arrays.chosen import Chosen
from ...tracing.arrays.filtered import FilteredList
from ...tracing.arrays.growing import GrowingList
from ...tracing.arrays.maybe import Maybe, is_maybe, is_optional
from ...tracing.arrays.variable import Variable
from ...tracing.context.active import context_for, current
from ...tracing.context.recorder import TraceContext
from ...tracing.operand import is_number as is_python
from ...tracing.values.numbers import numbers_behind
from ...tracing.values.rewrites import rewrite_of
from ...tracing.values.tracer import Tracer
from ..calls.protocols import method
from ..loops.ranges import Range

_NONE: Mapping[int, Tracer] = MappingProxyType({})
Part = Callable[[], Any]
Get = Callable[[], tuple[Any, ...]]
Put = Callable[[Sequence[Any]], None]

# Names that have no one value after a branch or a loop, while a rewritten function is traced: on
# which ways they have one, or the error for who reads them all the same.
LOST: ContextVar[dict[str, str | Error] | None] = ContextVar("weft_lost_names", default=None)


def lost(name: str, why: str | Error, again: bool = True) -> str | Error:
    """Remember why a name has no value from here on, or from before (unless ``again``)."""
    names = LOST.get()
    if isinstance(why, Error):  # which must not hold the frames of the trace
        why.__traceback__ = why.__context__ = None
    if names is None:
        return why
    if name not in names or (again and not (
            isinstance(why, str) and isinstance(names[name], Error))):  # which tells more
        names[name] = why
    return names[name]


def lost_name(problem: NameError) -> str:
    """The name that an exception is of, if it has no one value; else nothing."""
    named = re.search(r"variable '(\w+)'|name '(\w+)'", str(problem))
    name = next(filter(None, named.groups()), "") if named else ""
    return name if name in (LOST.get() or {}) else ""


def was_lost(name: str) -> bool:
    """Whether two ways have left the name with values that are not alike: that is why it has
    none. The name of another function is told by its file only."""
    why = (LOST.get() or {}).get(name)
    return isinstance(why, Error) and [loc.file for loc in why.locs[:1]] == [
        loc.file for loc in user_loc()[:1]]


def own_names(found: Mapping[str, Part]) -> dict[str, Any]:
    """``locals()``, by functions of what the names have. Raises NameError for a name that only some
    ways bind."""
    names: dict[str, Any] = {}
    for name, get in found.items():
        try:
            names[name] = get()
            if is_maybe(names[name]) and names[name].maybe.item.unbound:
                raise error("W201", f"whether {name} has a value is decided when the function runs",
                            locs=user_loc(), hint=f"give {name} a first value")
        except NameError:
            if name in (LOST.get() or {}):
                raise
    return names


class Unbound:
    """The value of a name that has none."""

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND = Unbound()


def values(*names: Callable[[], Any]) -> tuple[Any, ...]:
    """What names are bound to, or ``UNBOUND``."""
    found = []
    for bound in names:
        try:
            found.append(bound())
        except (NameError, AttributeError):
            found.append(UNBOUND)
    return tuple(found)


def is_array(x: Any) -> bool:
    """Whether a value can be traced; others have to be the same on all ways."""
    return isinstance(x, (Tracer, np.ndarray, np.generic)) or is_python(x)


def is_traced(x: Any) -> bool:
    """Whether a value is not known before the function runs."""
    return isinstance(x, (Tracer, TracedBuffer, Variable))


class Entry:
    """What the code of a region, the active trace, starts from: copies of the values of its names.

    Arrays that share memory share it in the copies too, and two names of a list or a dict are two
    names of its copy. ``roots`` are the arrays that own it: what
    the region leaves in their copies is what it has changed in place. It has copies of ``adopted``
    arrays, too, which are no values of its names.
    """

    def __init__(self, values: Sequence[Any], roots: Mapping[int, Tracer] = _NONE,
                 adopted: Sequence[Tracer] = ()) -> None:
        self.roots: dict[int, tuple[Tracer, Tracer, Any]] = {}  # an array, its copy, and its value
        self.start = tuple(values)
        self.leaves: dict[int, tuple[int, int]] = {}  # of a loop: which leaf begins with an array
        self._given = roots
        self._moved: dict[int, tuple[Any, Any]] = {}  # an array, which stays, and its copy
        self._origins: dict[int, tuple[Any, Any]] = {}  # by copy: the copy and what it is of
        self._items: dict[int, Any] = {}
        self._lists: dict[int, Any] = {}  # the copies of lists and dicts
        self.values = tuple(map(self._copied, values))
        for array in adopted:
            self._copied(array)
        current().copied = self.copied
        for array, copy, _ in self.roots.values():
            for rival in views.rivals(array):
                other = self.roots.get(id(rival))
                if other is not None:
                    views.may_share(copy, other[1])

    def origins_of(self, owner: Any) -> list[Any]:
        """Of which arrays the memory may be that an array of the region owns: one that was copied
        for it, or itself and those of which it is not known; none of no array (None)."""
        if owner is None:
            return []
        copied = {id(copy): array for array, copy, _ in self.roots.values()}
        if id(owner) in copied:
            return [copied[id(owner)]]
        return [copied.get(id(each), each) for each in (owner, *views.rivals(owner))]

    def origin(self, copy: Any) -> Any:
        """What a value is the region's copy of; None for what is not one."""
        return self._origins.get(id(copy), (None, None))[1]

    def copied(self, array: Any) -> Any:
        """An array around the region as the region has it, if it shares memory with what the
        region may change: a view that was made before. None for others."""
        if array.is_scalar:
            return None
        return self._of_array(array) if id(views.owner(array)) in self.roots else None

    def changed(self, copy: Any) -> bool:
        """Whether a list or a dict was changed."""
        return bool(_items(copy) != self._items[id(copy)])

    def has_changed(self, value: Any) -> bool:
        """Whether a list or a dict that others may have was changed: a copy, or one in it."""
        if type(value) in (list, dict) and self.origin(value) is not None and self.changed(value):
            return True
        if type(value) not in (list, tuple, dict):
            return False
        return any(map(self.has_changed, value.values() if type(value) is dict else value))

    def _copied(self, value: Any) -> Any:
        made = value
        if id(value) in self._lists:
            return self._lists[id(value)]
        if type(value) in (list, tuple):
            made = type(value)(map(self._copied, value))
        elif type(value) is dict:
            made = {key: self._copied(item) for key, item in value.items()}
        elif isinstance(value, Chosen):
            made = value.again(*map(self._copied, value.leaves()))
        elif is_maybe(value):
            made = value.maybe.again(*map(self._copied, value.maybe.leaves()))
        elif isinstance(value, (Tracer, Buffer)):
            array = value.traced() if isinstance(value, Buffer) else value
            if array.is_scalar:
                return value
            array.operand()  # which follows its links
            made = current().apply(self._of_array, (array,))
        else:
            return value
        if type(value) in (list, dict):
            self._items[id(made)], self._lists[id(value)] = _items(made), made
        self._origins[id(made)] = made, value
        return made

    def _of_array(self, array: Any) -> Any:
        if id(array) not in self._moved:
            self._moved[id(array)] = array, self._root(array) if array.link is None else (
                array.link.again(self._of_array(array.link.base)))
        return self._moved[id(array)][1]

    def _root(self, array: Any) -> Tracer:
        ctx = current()
        source = self._given.get(id(array), array)
        made = Tracer(ctx, ctx.value_of(source), weak=array.weak, argument=array.argument)
        made.ordered, made.dense, made.made = array.ordered, array.dense, array.made
        made.waiting = array.waiting
        self.roots[id(array)] = array, made, made._value
        return made


def _items(x: Any) -> Any:
    """What tells whether a list or a dict was changed."""
    return [(key, id(item)) for key, item in (x.items() if type(x) is dict else enumerate(x))]


def is_around(memory: Any, result: Any) -> bool:
    """Whether an array was made before the region that has this result."""
    return bool(result.ctx.descends_from(memory.ctx))


Ways = Sequence[tuple[Entry, Any]]  # what each way has left


def restored(ways: Ways, result: Any, made: dict[tuple[int, ...], tuple[Ways, Any]]) -> Any:
    """The value of a name after a region, of what each way has left it bound to: lists and dicts
    that are still in their places keep who they are, with what was changed in them, and what is one
    list on all ways is one afterwards (``made``)."""
    kind = type(result)
    if kind not in (list, tuple, dict) or any(type(value) is not kind for _, value in ways):
        return result
    key = tuple(id(value) for _, value in ways)
    if key in made:
        return made[key][1]
    parts = {at: restored([(entry, value[at]) for entry, value in ways], item, made)
             for at, item in (result.items() if kind is dict else enumerate(result))}
    if kind is tuple:
        return tuple(parts.values())
    given = [entry.origin(value) for entry, value in ways]
    same = type(given[0]) is kind and all(each is given[0] for each in given)
    made[key] = ways, filled(given[0] if same else result, parts)
    return made[key][1]


def filled(target: Any, parts: Mapping[Any, Any]) -> Any:
    """A list or a dict, with these items."""
    if type(target) is list:
        target[:] = parts.values()
    else:
        target.clear()
        target.update(parts)
    return target


def overwrite(root: Any, result: Any) -> None:
    """Let the memory of an array, and with it of its views, hold what a region has left in it."""
    root[...] = result


def settled(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values; arrays made in this trace that regions may write to are traced from here on."""
    for value in values:
        for leaf in tree.leaves(value):
            if isinstance(leaf, Buffer):
                leaf.traced()
    return values


class _Parts:
    """Chosen elements as a nest of their memory and the masks, or what may be None."""

    def __init__(self, chosen: Chosen | Maybe) -> None:
        self.chosen = chosen

    def flat(self) -> tuple[tuple[Any, ...], _Choice]:
        return self.chosen.leaves(), _Choice(self.chosen)


class _Choice:
    """How parts become that again."""

    def __init__(self, like: Chosen | Maybe) -> None:
        self.like = like
        self.key: Any = (Maybe, like.item) if isinstance(like, Maybe) else (
            like.item if isinstance(like, GrowingList) else like.ndim,
            tuple(mask is None for mask in getattr(like, "masks", ())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Choice) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


tree.register(_Parts, _Parts.flat, lambda choice, parts: choice.like.again(*parts))


def leaves(value: Any) -> tuple[list[Any], tree.TreeDef]:
    """The leaves of a nest; a traced buffer is its tracer, and an array from around is what the
    trace has of it: through a list in which it is, it may be written to."""
    found, structure = tree.flatten(value)
    if all(type(leaf) is Tracer for leaf in found):  # which would be asked for its class
        return found, structure
    if any(isinstance(leaf, Chosen) or is_maybe(leaf) for leaf in found):
        found, structure = tree.flatten(tree.map(
            lambda leaf: _Parts(leaf) if isinstance(leaf, Chosen) else
            _Parts(leaf.maybe) if is_maybe(leaf) else leaf, value))
    found = [closed_over.written(leaf) if closed_over.may_be_written(leaf) else leaf
             for leaf in found]
    return [each.traced() if isinstance(each, TracedBuffer) else each for each in found], structure


def alike(a: Any, b: Any) -> bool:
    """Whether two values are one for all that a program can see: known, and equal."""
    if a is b:
        return True
    if type(a) is not type(b) or is_traced(a):
        return False
    if isinstance(a, np.ndarray):
        if closed_over.is_around(a) or closed_over.is_around(b):
            return False  # what they hold is read at each call
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if isinstance(a, (float, np.floating)):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    try:
        found: bool = np.all(a == b).item()
        return found
    except Exception:  # whatever a class of the user's does
        return False


def rebuilt(structure: tree.TreeDef, parts: Sequence[Any]) -> Any:
    """A nest of leaves."""
    return tree.unflatten(structure, list(parts))


def truth(x: Any) -> Any:
    """``bool(x)``, or a traced bool."""
    x = closed_over.read(x)
    if isinstance(x, FilteredList):
        return x.shape[0] > 0
    if isinstance(x, Range):
        return x.rounds > 0
    if is_optional(x):
        there, value = x.maybe.present, x.maybe.value
        return there if isinstance(value, tuple) else np.logical_and(there, truth(value))
    if not is_traced(x):
        own = method(x, "__bool__") or method(x, "__len__")
        return bool(x) if own is None else truth(own())
    if isinstance(x, TracedBuffer):
        x = x.traced()
    if isinstance(x, Variable):
        x = x[...]
    if x.ndim:
        if x.size != 1:
            locs = user_loc()
            choice = rewrite_of(locs)
            raise error("W102", f"the truth of {x.name} is ambiguous: it has more than one element",
                        locs=locs, types=[x.type], hint="reduce it with np.any or np.all" + (
                            f"; for each element by itself: {choice.partition(', or weft')[0]}"
                            if "np.where" in choice else
                            "; masks are joined by & and |: (x > 0) & (x < 1)"))
        x = x.reshape(())
    if x.ctx.root.flags and (behind := numbers_behind(x.ctx, x.value)) and (
            behind.issubset(x.ctx.root.flags)):
        bool(x)  # raises: each of the two has a program of its own
    return x if x.type.dtype == BOOL else x != 0


def context_of(x: Any) -> TraceContext:
    """The trace that is active."""
    found = context_for([x])
    assert found is not None
    return found
