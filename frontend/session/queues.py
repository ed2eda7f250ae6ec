"""Queues between threads and steps: weft.FIFOQueue and its kin.

    q = weft.FIFOQueue(100, ("f32[784]", "i32[]"))
    with g.as_default():
        put = q.enqueue_many((images, labels))         a node of the graph, run by a session
        x, y = q.dequeue_many(32)

Outside of a graph the same calls act at once, and wait. ``runtime.queues`` has how.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.indices.index import Dim, plain_symbol, symbol, symbols_of
from ...ir.indices.walk import substitute
from ...ir.ops.table import OPS
from ...ir.types import TensorType
from ...runtime.queues.queue import Queue
from ...runtime.queues.stores import Line, Pool, Store
from ...runtime.tree import collect
from ..face import tree
from ..face.boundary import boundary
from ..face.source import user_loc
from ..seeds import checked_seed
from ..stays import Stays
from ..tracing.arrays.variable import takes
from ..tracing.context.active import context_for
from ..tracing.context.recorder import TraceContext
from ..tracing.context.scope import checked_name
from ..tracing.operand import cast, to_tracer
from ..tracing.spec import Spec
from ..tracing.values.operation import Operation
from ..tracing.values.tracer import Tracer
from .graph import Graph


class FIFOQueue(Stays):
    """At most ``capacity`` elements, which leave in the order in which they came.

    ``specs`` says what an element is: a nest of ``weft.Spec`` or texts such as ``"f32[784]"``, of
    known sizes; a list of one spec is that spec, and one of its array that array, as in TensorFlow.
    Calls wait for room or for elements, and are served in their order. In a graph that is being
    built they are nodes, which wait when a step comes to them: a step that fails gives back what it
    has taken, first in line again; what it has put stays. Branches and loops of a graph may use
    queues, too: in each round, and only where the branch is taken.

    A step that updates variables first waits for all that does not depend on them, and for the room
    for what does; then it reads them. Where it puts such values into several queues, more of them
    than the queue holds, or in a loop, it waits while other updates of these variables wait for it
    (not those of a session with ``updates="async"``).

    Raises W305 for elements of other structures, dtypes or shapes, W411 (a RuntimeError) where
    something is put into a closed queue, W412 (an EOFError) where a closed one has too few elements
    left, and W413 (a TimeoutError).

    >>> q = FIFOQueue(10, ("f32[2]", "i64[]"))
    >>> q.enqueue_many(([[1, 2], [3, 4], [5, 6]], [0, 1, 2]))
    >>> q.dequeue()
    (array([1., 2.], dtype=float32), np.int64(0))
    >>> q.close()
    >>> x, at = q.dequeue_many(2)
    >>> x.shape, at.tolist(), q.size()
    ((2, 2), [1, 2], 0)
    """

    instead = "make one in each process, and send elements"
    _padded = False

    def __init__(self, capacity: int, specs: Any, *, name: str = "queue") -> None:
        self._set_up(capacity, specs, name, lambda _: Line())

    def _set_up(self, capacity: int, specs: Any, name: str,
                store: Callable[[tuple[TensorType, ...]], Store], least: int = 0) -> None:
        if type(specs) in (list, tuple) and len(specs) == 1:
            specs = specs[0]
        leaves, self._structure = tree.flatten(specs)
        given = [Spec.parse(leaf) if isinstance(leaf, str) else leaf for leaf in leaves]
        if not given or not all(isinstance(spec, Spec) for spec in given):
            raise error("W305", "a queue has elements of a nest of specs", locs=user_loc(),
                        hint='write such as weft.FIFOQueue(100, ("f32[784]", "i32[]"))')
        types = tuple(spec.type(f"{name}_{at}") for at, spec in enumerate(given))
        if not self._padded and not all(isinstance(dim, int) for x in types for dim in x.shape):
            raise error("W305", f"elements of a {type(self).__name__} have known sizes, not "
                                f"{', '.join(map(str, given))}", locs=user_loc(),
                        hint="weft.PaddingFIFOQueue takes sizes that differ")
        composed = [str(spec) for spec, type_ in zip(given, types, strict=True)
                    if any(not isinstance(dim, int) and plain_symbol(dim) is None
                           for dim in type_.shape)]
        if composed:
            raise error("W305", f"sizes of elements are numbers, names or None, not as those of "
                                f"{composed[0]}", locs=user_loc(),
                        hint="give each size that differs a name of its own")
        self.capacity = _positive(capacity, "capacity")
        self.name = checked_name(name, "queue")
        self.resource = Queue(name, self.capacity, types, store(types), least)
        self._serial = itertools.count()

    @boundary
    def enqueue(self, element: Any, timeout: float | None = None) -> Any:
        """Put one element, when there is room; at most ``timeout`` seconds later."""
        return self._put(element, False, timeout)

    @boundary
    def enqueue_many(self, elements: Any, timeout: float | None = None) -> Any:
        """Put the rows of arrays, one after the other, as there is room for them. A call that is
        ended early leaves those that are in."""
        return self._put(elements, True, timeout)

    @boundary
    def dequeue(self, timeout: float | None = None) -> Any:
        """The next element, when it is there."""
        return self._take(0, False, timeout)

    @boundary
    def dequeue_many(self, n: int, timeout: float | None = None) -> Any:
        """``n`` elements, stacked along a new first axis, when they are there.

        If the queue ends before, they stay in it and W412 is raised.
        """
        return self._take(_positive(n, "dequeue_many"), False, timeout)

    @boundary
    def dequeue_up_to(self, n: int, timeout: float | None = None) -> Any:
        """``n`` elements, or those that are left in a closed queue, if there are any.

        >>> q = FIFOQueue(10, "i64[]")
        >>> q.enqueue_many([1, 2, 3])
        >>> q.close()
        >>> q.dequeue_up_to(2), q.dequeue_up_to(2)
        (array([1, 2]), array([3]))
        """
        return self._take(_positive(n, "dequeue_up_to"), True, timeout)

    @boundary
    def close(self, cancel_pending: bool = False) -> Any:
        """Let nothing more in; elements may still be taken, until there are none.

        Calls that wait to put theirs go on to do so, or fail at once with ``cancel_pending``.
        """
        graph = self._graph((), None)
        if graph is None:
            return self.resource.close(cancel_pending)
        return self._operation(graph, "queue_close", cancel_pending=cancel_pending)

    @boundary
    def size(self) -> Any:
        """How many elements are in it; in a graph, when the step comes to it."""
        graph = self._graph((), None)
        if graph is None:
            return self.resource.size
        return graph.apply(lambda: graph.emit("queue_size", queue=self._name_in(graph)), (),
                           stem="size")

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.name!r}, {self.resource.size} of {self.capacity}>"

    def _graph(self, operands: Any, timeout: float | None) -> TraceContext | None:
        """What records calls: the graph that is being built, or the body of one of its branches or
        loops; None where calls act at once."""
        ctx = context_for(operands)
        if ctx is None:
            return None
        if not isinstance(_graph_around(ctx), Graph):
            raise error("W113", f"queue '{self.name}' is used in a compiled function, which never "
                                "waits", locs=user_loc(),
                        hint="take the element outside and pass it as an argument, or build a "
                             "weft.Graph")
        if timeout is not None:
            raise error("W305", "in a graph, calls of a queue wait as long as their step",
                        locs=user_loc(), hint="give the time-out to Session.run")
        return ctx

    def _name_in(self, ctx: TraceContext) -> str:
        """What nodes of the graph call this queue."""
        graph = _graph_around(ctx)
        assert isinstance(graph, Graph), "no other trace records calls of queues"
        return graph.queue_name(self)

    def _put(self, element: Any, many: bool, timeout: float | None) -> Any:
        leaves: list[Any] = []
        types = self.resource.types
        if type(element) in (list, tuple) and len(element) == 1 and len(types) == 1 and (
                np.ndim(element[0]) == types[0].rank + many):
            element = tree.unflatten(self._structure, [element[0]])
        collect(self._structure, element, "the element", leaves)
        graph = self._graph(leaves, timeout)
        if graph is None:
            self.resource.put(leaves, many).wait(timeout)
            return None
        return self._operation(graph, "enqueue", *leaves, types=self.resource.types, many=many)

    def _take(self, count: int, partial: bool, timeout: float | None) -> Any:
        graph = self._graph((), timeout)
        if graph is None:
            taken: Any = self.resource.take(count, partial).wait(timeout)
            taken = [array[()] if array.ndim == 0 else array for array in taken]
        else:
            taken = graph.apply(self._node, (graph, count, partial), stem="dequeue")
        return tree.unflatten(self._structure, list(taken))

    def _node(self, graph: TraceContext, count: int, partial: bool) -> tuple[Tracer, ...]:
        """The node of a take; sizes that are not known are symbols of its own."""
        name, serial = self._name_in(graph), next(self._serial)
        stem = "".join(c if c.isalnum() else "_" for c in name).strip("_") or "queue"
        known = {each for type_ in self.resource.types for dim in type_.shape
                 for each in symbols_of(dim)}
        fresh: dict[str, Dim] = {each: symbol(f"{stem}_{serial}_{at}")
                                 for at, each in enumerate(sorted(known))}
        first: tuple[Dim, ...] = (symbol(f"{stem}_{serial}"),) if partial else (
            (count,) if count else ())
        results = tuple([type_.with_shape(first + tuple(
            substitute(dim, fresh) for dim in type_.shape)) for type_ in self.resource.types])
        return graph.emit_all("dequeue", queue=name, count=count, partial=partial, results=results)

    def _operation(self, graph: TraceContext, op: str, *leaves: Any, **attrs: Any) -> Operation:
        def record() -> Operation:
            found = [to_tracer(leaf) for leaf in leaves]
            # A Python number takes the dtype of the queue, if that keeps its kind.
            inputs = [cast(x, type_.dtype) if x.weak and takes(type_.dtype.numpy, x.dtype) else x
                      for x, type_ in zip(found, self.resource.types, strict=False)]
            node = graph.builder.emit(OPS[op], [graph.value_of(x) for x in inputs],
                                      {"queue": self._name_in(graph), **attrs})
            return Operation((node,), node.name, graph)

        made: Operation = graph.apply(record, ())
        return made


class PaddingFIFOQueue(FIFOQueue):
    """A ``FIFOQueue`` whose elements may have sizes of their own, where a dim is None or a name.

    What ``dequeue_many`` takes together is padded with zeros to the largest size of the batch.

    >>> q = PaddingFIFOQueue(10, "i64[n]")
    >>> q.enqueue([1]), q.enqueue([2, 3])
    (None, None)
    >>> q.dequeue_many(2)
    array([[1, 0],
           [2, 3]])
    """

    _padded = True


class RandomShuffleQueue(FIFOQueue):
    """A queue out of which elements come in a random order, that of ``seed`` if there is one.

    ``min_after_dequeue`` elements stay in it until it is closed, among which the next one is
    chosen.

    >>> q = RandomShuffleQueue(10, "i64[]", min_after_dequeue=2, seed=0)
    >>> q.enqueue_many(list(range(6)))
    >>> q.dequeue_many(4).tolist()
    [1, 4, 2, 3]
    >>> q.close()
    >>> sorted([q.dequeue(), q.dequeue()])
    [np.int64(0), np.int64(5)]
    """

    def __init__(self, capacity: int, specs: Any, min_after_dequeue: int = 0,
                 seed: int | None = None, *, name: str = "queue") -> None:
        room = _positive(capacity, "capacity")
        if isinstance(min_after_dequeue, bool) or not isinstance(
                min_after_dequeue, int | np.integer) or not 0 <= min_after_dequeue < room:
            raise error("W305", f"min_after_dequeue is a number from 0 to below the capacity, not "
                                f"{min_after_dequeue!r}", locs=user_loc(),
                        hint=f"write such as min_after_dequeue={room // 2}")
        order = None if seed is None else checked_seed(seed, "a queue")
        self._set_up(capacity, specs, name, lambda types: Pool(types, order), min_after_dequeue)


def _graph_around(ctx: TraceContext) -> TraceContext:
    """The trace itself, of which a body is a part."""
    while ctx.parent is not None:
        ctx = ctx.parent
    return ctx


def _positive(n: Any, what: str) -> int:
    try:
        number = 0 if isinstance(n, Tracer | bool) else operator.index(n)
    except TypeError:
        number = 0
    if number < 1:
        raise error("W305", f"{what} takes a positive number that is known now, not {n!r}",
                    locs=user_loc(), hint="give an integer of 1 or more")
    return number
