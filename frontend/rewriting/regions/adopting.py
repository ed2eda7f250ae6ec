"""What a region changes under no name of its own: in a function that it calls, a method, a closure.

    def swap(a, i, j):               x is no name that the branch changes. When swap writes to it,
        a[i], a[j] = a[j], a[i]      the branch is traced again, with a copy of x to write to, as if
                                     it had changed x itself
    if x[0] > x[1]:
        swap(x, 0, 1)                an object, a list or a dict of numbers and arrays becomes one
        count.more()                 more name of the branch, of which they are the value

A region in a region finds a copy of an array only where the one around it has one, so the outer one
is traced again first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ....ir.diagnose import Error
from ...tracing.arrays import views
from ...tracing.arrays.buffer import Buffer
from ...tracing.arrays.closed_over import may_be_written, written
from ...tracing.arrays.outside import OutsideError
from ...tracing.context.recorder import TraceContext
from ...tracing.values.tracer import Tracer
from .state import Get, Put, is_array, settled
from .unseen import Changed, is_outside, unchanged


class Adopted:
    """The names of a region in the trace ``ctx``, and what it has to have besides: copies of
    ``arrays``, and the contents of ``things``, as values of more names. Names of arrays from around
    have what the trace has of these as long as the region is traced."""

    def __init__(self, ctx: TraceContext, get: Get, put: Put, names: Sequence[str]) -> None:
        self.ctx, self._get, self._put, self._own = ctx, get, put, len(names)
        self.names = list(names)
        self.arrays: list[Tracer] = []
        self.things: list[Any] = []
        self._around: dict[int, tuple[Any, Any]] = {}
        self.before = tuple(map(self._entered, settled(get())))
        self.put(self.before)
    def get(self) -> tuple[Any, ...]:
        """What the names are bound to."""
        return (*self._get(), *map(_content, self.things))

    def put(self, values: Sequence[Any]) -> None:
        """Bind the names."""
        self._put([self._around.get(id(each), (None, each))[1] for each in values[:self._own]])
        for thing, content in zip(self.things, values[self._own:], strict=True):
            _fill(thing, content)

    def _entered(self, value: Any) -> Any:
        made = written(value) if may_be_written(value) else value
        if made is not value:
            self._around[id(made)] = made, value
        return made

    @contextmanager
    def part(self, *run: Callable[..., Any]) -> Iterator[None]:
        """Around the trace of a part of the region, which leaves the names to the next as they were
        before. Raises TracerError (W203) where what is ``run`` has changed anything else."""
        with unchanged(*run):
            try:
                yield
            finally:
                self.put(self.before)

    def take(self, problem: Error) -> tuple[Any, ...]:
        """Adopt what the region could not change; the values of new names. Raises the problem where
        that is none of this trace, or nothing that can be chosen or carried."""
        if not isinstance(problem, OutsideError):
            raise problem
        changed = problem.thing
        if isinstance(changed, Changed) and not isinstance(changed.thing, Buffer):
            return self._take_thing(changed, problem)
        found = self._here(changed.thing if isinstance(changed, Changed) else changed)
        if found is None or any(found is array for array in self.arrays):
            raise problem
        self.arrays.append(found)
        return ()

    def _take_thing(self, changed: Changed, problem: Error) -> tuple[Any, ...]:
        thing = changed.thing
        if not _can_be_held(thing) or any(
                thing is other for other in self.things) or is_outside(thing):
            raise problem
        self.things.append(thing)
        self.names.append(f"'{changed.name}'")  # which no name is: without it nobody can do
        new = settled((_content(thing),))
        self.before += new
        return new

    def _here(self, array: Any) -> Tracer | None:
        if isinstance(array, Buffer) and array.memory().ctx is self.ctx:
            return views.owner(array.traced())  # type: ignore[return-value]
        if not isinstance(array, Tracer):
            return None
        if array.ctx is self.ctx:
            return array
        copy = self.ctx.own_copy(array)
        return None if copy is None else views.owner(copy)  # type: ignore[return-value]


def _can_be_held(thing: Any) -> bool:
    """Whether a thing has numbers, arrays or texts in it, which its content is."""
    return isinstance(thing, (list, dict)) or hasattr(thing, "__dict__")


def _is_value(x: Any) -> bool:
    return x is None or is_array(x) or isinstance(x, str)


def _content(thing: Any) -> Any:
    """What a thing has in it but for other things, which are held by themselves: a list of values,
    or values by their places."""
    if isinstance(thing, list):
        return [*thing] if all(map(_is_value, thing)) else {
            at: value for at, value in enumerate(thing) if _is_value(value)}
    held = thing if isinstance(thing, dict) else vars(thing)
    return {key: value for key, value in held.items() if _is_value(value)}


def _fill(thing: Any, content: Any) -> None:
    if isinstance(content, list):
        thing[:] = content
        return
    held = thing if isinstance(thing, (list, dict)) else vars(thing)
    if isinstance(held, dict):
        for key in [key for key, value in held.items() if key not in content and _is_value(value)]:
            del held[key]
    for place, value in content.items():
        held[place] = value
