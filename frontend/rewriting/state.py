"""What a region starts from and leaves behind: the values of the names that its code changes.

A region must not change what lies around it, so its code gets arrays, lists and dicts of its own.
Afterwards it is known what was bound anew, and what was changed in place and has to be changed
around the region as well, where others may hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.types import BOOL
from .. import tree
from ..tracing.arrays import views
from ..tracing.arrays.buffer import Buffer, TracedBuffer
from ..tracing.arrays.variable import Variable
from ..tracing.operand import is_number as is_python
from ..tracing.recorder import TraceContext, context_for, current
from ..tracing.source import user_loc
from ..tracing.tracer import Tracer

Part = Callable[[], Any]
Get = Callable[[], tuple[Any, ...]]
Put = Callable[[Sequence[Any]], None]

# Names that have a value on some ways only, while a rewritten function is traced.
LOST: ContextVar[dict[str, str] | None] = ContextVar("weft_lost_names", default=None)


def lost(name: str, where: str) -> None:
    """Remember why a name has no value from here on."""
    names = LOST.get()
    if names is not None:
        names[name] = where


class Unbound:
    """The value of a name that has none."""

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND = Unbound()


def values(*reads: Callable[[], Any]) -> tuple[Any, ...]:
    """What names are bound to, or ``UNBOUND``."""
    found = []
    for read in reads:
        try:
            found.append(read())
        except (NameError, AttributeError):
            found.append(UNBOUND)
    return tuple(found)


def is_array(x: Any) -> bool:
    """Whether a value can be traced; others have to be the same on all ways."""
    return isinstance(x, (Tracer, np.ndarray, np.generic)) or is_python(x)


def is_traced(x: Any) -> bool:
    """Whether a value is not known before the function runs."""
    return isinstance(x, (Tracer, TracedBuffer, Variable))


@dataclass(frozen=True)
class Fresh:
    """A region's own copy of a value, and what it had when the region began."""

    given: Any
    value: Any
    then: Any

    @property
    def changed(self) -> bool:
        """Whether the copy was written to."""
        if isinstance(self.value, Tracer):
            return _content(self.value) is not self.then
        return isinstance(self.value, (list, dict)) and bool(_items(self.value) != self.then)


def fresh(value: Any) -> Fresh:
    """A copy for the code of a region, which is the active trace."""
    if isinstance(value, (Tracer, Buffer)) and value.ndim:
        ctx = current()
        source = value.traced() if isinstance(value, TracedBuffer) else value
        argument = isinstance(source, Tracer) and views.owner(source).argument
        if isinstance(source, Buffer):
            source = ctx.apply(ctx.constant, (np.asarray(source),))
        made = Tracer(ctx, ctx.apply(ctx.value_of, (source,)), weak=source.weak, argument=argument)
        made.ordered, made.dense = source.ordered, source.dense
        return Fresh(value, made, _content(made))
    if type(value) in (list, dict):
        made = type(value)(value)
        return Fresh(value, made, _items(made))
    return Fresh(value, value, None)


def _content(x: Tracer) -> Any:
    return x._value


def _items(x: Any) -> Any:
    """What tells whether a list or a dict was changed."""
    return [(key, id(item)) for key, item in (x.items() if type(x) is dict else enumerate(x))]


def written(copy: Fresh, result: Any) -> Any:
    """Change in place, around the region, what its code has changed in place: the name's value."""
    given = copy.given
    if type(given) is list:
        given[:] = result
        return given
    if type(given) is dict:
        given.clear()
        given.update(result)
        return given
    array = given.traced() if isinstance(given, TracedBuffer) else given
    if isinstance(array, Tracer) and views.owner(array).argument:
        array.changed = views.owner(array).changed = result
        array.ctx.writes.count += 1
        return result
    given[...] = result
    return given


def leaves(value: Any) -> tuple[list[Any], tree.TreeDef]:
    """The leaves of a nest; a traced buffer is its tracer."""
    found, structure = tree.flatten(value)
    return [each.traced() if isinstance(each, TracedBuffer) else each for each in found], structure


def alike(a: Any, b: Any) -> bool:
    """Whether two values are one for all that a program can see: known, and equal."""
    if a is b:
        return True
    if type(a) is not type(b) or is_traced(a):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (float, np.floating)):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    try:
        return a == b  # type: ignore[no-any-return]
    except Exception:  # whatever a class of the user's does
        return False


def rebuilt(structure: tree.TreeDef, parts: Sequence[Any]) -> Any:
    """A nest of leaves."""
    return tree.unflatten(structure, list(parts))


@dataclass(frozen=True)
class End:
    """What one way leaves behind, name by name."""

    copies: tuple[Fresh, ...]
    after: tuple[Any, ...]

    def kept(self, at: int) -> bool:
        """Whether a name is bound to the region's copy still."""
        return self.after[at] is self.copies[at].value

    def untouched(self, at: int) -> bool:
        return self.kept(at) and not self.copies[at].changed


def is_number(x: Any) -> bool:
    return not isinstance(x, (list, dict)) and not getattr(x, "ndim", 0)


def truth(x: Any) -> Any:
    """``bool(x)``, or a traced bool."""
    if not is_traced(x):
        return bool(x)
    if isinstance(x, TracedBuffer):
        x = x.traced()
    if isinstance(x, Variable):
        x = x[...]
    if x.ndim:
        if x.size != 1:
            raise error("W102", f"the truth of {x.name} is ambiguous: it has more than one element",
                        locs=user_loc(), types=[x.type], hint="reduce it with np.any or np.all")
        x = x.reshape(())
    return x if x.type.dtype == BOOL else x != 0


def context_of(x: Any) -> TraceContext:
    """The trace that is active."""
    found = context_for([x])
    assert found is not None
    return found
