"""TraceContext: one graph while it is being built, and everything that belongs to it.

It finds the user's line and names for new nodes, turns closed-over arrays into hidden parameters
(captured by identity: their contents are read at each call, never baked in), and reads and writes
variables. One application of a NumPy function is one ``apply``: all nodes it makes share a line.

A context lives as long as its trace; that of a ``weft.Graph`` lives on and its graph grows. The
context of a region (a loop body) has a parent, whose tracers become parameters of the region.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import CodeType, FunctionType
from typing import Any, cast
from weakref import WeakKeyDictionary, ref

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.forks import freed
from ....ir.graph import Builder, Graph, Node, Value
from ....ir.indices.index import Dim
from ....ir.loc import Loc
from ....ir.ops.table import OPS
from ....ir.types import DType, NoDTypeError, TensorType, as_dtype, as_native, dtype_of
from ....runtime.entry.float_errors import heard
from ...face.source import SourceMap, name_of, user_loc
from ..arrays.buffer import Buffer, unwrapped
from ..arrays.views import refresh, track
from ..guards.float_errors import check_unheard
from ..subclasses import checked_class, computes_itself
from ..values.operation import Operation
from ..values.tracer import Tracer
from .around import Around
from .captures import Capture, Captures, is_uniform
from .effects import Effects
from .hints import Hints
from .request import NONE, Asked, Request
from .scope import RECORDING, SCOPE, Api, Recording, Scope, Writes

Array = np.ndarray[Any, Any]


Rewritten = Callable[[Any], Any]


class TraceContext(Effects, Hints):
    """The state of one trace; see the module docstring."""

    def __init__(self, name: str, api: Api[Tracer], parent: TraceContext | None = None) -> None:
        super().__init__()
        self.graph = Graph(name)
        self.builder = Builder(self.graph, OPS, share=False, fold=False)
        self.api, self.parent = api, parent
        self.alive = True
        self.ended = False  # and has left nothing behind
        # The tracers of a trace that has an end, which none should outlive (``lost``), and the
        # buffers, which become plain then (``outliving``).
        self.made: list[ref[Tracer]] | None = None if parent is None else parent.made
        self.buffers: list[ref[Buffer]] | None = None if parent is None else parent.buffers
        self.given: list[Any] = []  # the arguments, while the function runs
        self.writes: Writes = Writes() if parent is None else parent.writes
        self.traced_memory: bool = parent is not None and parent.traced_memory  # of a Buffer
        # Properties of objects that are computed once, for those that outlive the trace.
        self.computed: list[tuple[ref[Any], str, Callable[[Any], Any]]] = []
        # How many transforms differentiate what is recorded now, those of a trace around included.
        self.derivatives: int = 0 if parent is None else parent.derivatives
        self.used_up: list[tuple[str, tuple[Loc, ...]]] = []  # arguments that x += y has changed
        # Variables that the user's code makes, which outlive the call.
        self.kept: list[tuple[str, tuple[Loc, ...]]] = [] if parent is None else parent.kept
        self.at_end: list[Callable[[], None]] = []  # checks for when the user's code has ended
        self.refused: Error | None = None  # the last use of a tracer as a number
        self.classed: Error | None = None  # what C code that asked for a class is to be told
        self.text: tuple[Any, tuple[Loc, ...]] | None = None  # the last text of traced values
        # Whether this is a way of an if, and whether the user may catch what is raised here.
        self.way = False
        self.caught: bool = parent is not None and parent.caught
        self.has_caught = False  # whether the user has caught anything in this trace
        self.told: Any = None  # the variable that counts what is printed
        self.streams: tuple[Any, ...] = (sys.stdout, sys.stderr) if parent is None else (
            parent.streams)  # the standard ones, before the user's code redirects them
        # What is made of functions before they are recorded: their rewritten copies. A graph, which
        # is endless, wants them always, as it cannot take back what it has recorded.
        self.rewritten: Rewritten | None = None if parent is None else parent.rewritten
        self.endless: bool = parent is not None and parent.endless
        self.heard: dict[str, str] = heard() if parent is None else parent.heard
        self.print_options: Mapping[str, Any] = np.get_printoptions() if parent is None else {}
        self.sums: Any = None  # what ``distance`` knows of integers
        self.groups: dict[str, Operation] = {}
        self.extents: list[tuple[Value, Dim]] = []  # numbers that are sizes, and these sizes
        self.numbers: dict[str, tuple[TraceContext, Value]] = {}  # these, of the whole trace
        self.closure: list[tuple[Value, Tracer]] = []  # region parameter, the parent's tracer
        self.source: SourceMap = SourceMap() if parent is None else parent.source
        self.around: Around = Around() if parent is None else parent.around
        self._captures: Captures[Tracer] = Captures()
        self._inherited: dict[int, Tracer] = {}
        # Of an array around this region, what the region has of it, if it may change that memory.
        self.copied: Callable[[Tracer], Tracer | None] | None = None
        self.lock = freed(threading.RLock())  # held by who changes the graph, or needs it unchanged
        self.request: Request = NONE if parent is None else parent.request
        # Functions of the user that were called, and their code. What is made while tracing goes
        # with its maker, whose code has its.
        self.entered: WeakKeyDictionary[FunctionType, None] = (
            WeakKeyDictionary() if parent is None else parent.entered)
        self.codes: set[CodeType] = set() if parent is None else parent.codes
        self.asked: Asked = Asked() if parent is None else parent.asked
        # Parameters that are bools, each of which has a program of its own where Python branches.
        self.flags: frozenset[str] = frozenset()
        self._busy = False

    def enter(self, function: FunctionType) -> None:
        """A function of the user's is called."""
        self.entered.setdefault(function)
        self.codes.add(function.__code__)

    def computes(self, thing: Any, name: str, get: Callable[[Any], Any]) -> None:
        """A property is computed that an object keeps."""
        with suppress(TypeError):  # there are no weak references to it
            self.root.computed.append((ref(thing), name, get))

    # -- activation -----------------------------------------------------------------------------

    @contextmanager
    def activate(self) -> Iterator[TraceContext]:
        """Record what the body does, in a fresh name scope; what new nodes of this very graph are
        to wait for stays."""
        outer = SCOPE.get()
        trace = ACTIVE.set(self)
        scope = SCOPE.set(Scope(device=outer.device, after=tuple(
            [(ctx, node) for ctx, node in outer.after if ctx is self])))
        try:
            yield self
        finally:
            SCOPE.reset(scope)
            ACTIVE.reset(trace)

    def rebase(self, graph: Graph) -> None:
        """Go on with a graph that exists."""
        self.graph = graph
        self.builder = Builder(graph, OPS, share=False, fold=False)

    def as_written(self, function: Any) -> Any:
        """A function that is to be recorded, as its rewritten copy where this trace wants that."""
        return function if self.rewritten is None else self.rewritten(function)

    def end(self) -> None:
        """After the user's code, check what was to be."""
        for check in self.at_end:
            check()
        self.at_end.clear()

    def finish(self) -> None:
        """End the trace: its tracers are of no use any more. Raises TracerError (W203) if a
        captured array was changed while tracing, since the program would see only its last state.
        """
        self.alive, self.copied = False, None
        self._captures.check_unchanged()

    def forget(self) -> None:
        """Let go of all tracers: who holds one now is not part of the trace."""
        self.refused = self.text = self.sums = self.copied = None
        self._inherited.clear()
        self.forget_variables()
        self._captures.clear()
        self.closure.clear()
        self.numbers.clear()

    def descends_from(self, other: Recording) -> bool:
        """True if ``other`` is this trace or one around it."""
        here: TraceContext | None = self
        while here is not None:
            if here is other:
                return True
            here = here.parent
        return False

    # -- operations -----------------------------------------------------------------------------

    def apply(
        self, function: Callable[..., Any], args: tuple[Any, ...],
        options: Mapping[str, Any] | None = None, *, stem: str = "",
    ) -> Any:
        """Run one operation the user wrote. The node of its result is named after the variable it
        is assigned to, else ``stem``, else its op. Errors get the user's line.
        """
        if self.traced_memory:
            args, options = unwrapped(args), unwrapped(options)
        with self.lock:
            if self._busy:
                return function(*args, **(options or {}))
            check_unheard(self.heard)
            builder, scope = self.builder, SCOPE.get()
            place = self.source.here()
            builder.locs = (place.loc,) if place is not None else ()
            builder.prefix, builder.device = scope.prefix, scope.device
            builder.after = self.own_nodes(scope.after, builder.locs) if scope.after else ()
            first = len(self.graph.nodes)
            token = ACTIVE.set(self)
            self._busy = True
            try:
                result = function(*args, **(options or {}))
            except Error as problem:
                if problem.locs:
                    raise
                raise error(problem.code, problem.message, locs=builder.locs, types=problem.types,
                            hint=problem.hint) from None
            except NoDTypeError as problem:
                raise error("W112", f"{problem}", locs=builder.locs, hint=problem.hint) from None
            finally:
                self._busy = False
                ACTIVE.reset(token)
            name = (place.name if place is not None else "") or stem
            if name:
                self._name(result, name, first)
            return result

    def own_nodes(
        self, found: Iterable[tuple[Recording, Node]], locs: tuple[Loc, ...]
    ) -> tuple[Node, ...]:
        """The nodes, which must be of this graph: others do not run when it runs. Raises
        TracerError (W204)."""
        nodes = dict.fromkeys(found)
        for ctx, node in nodes:
            if ctx is not self:
                raise error("W204", f"{node.name} belongs to graph '{ctx.graph.name}', not to "
                                    f"'{self.graph.name}'", locs=locs,
                            hint="group and wait for operations of one graph; run the others in "
                                 "a step before")
        return tuple(node for _, node in nodes)

    def group(self, operations: Iterable[Any], name: str) -> Operation:
        """One operation for several of this graph, to be found by its name."""
        with self.lock:
            found = [pair for item in operations for pair in nodes_of(item)]
            nodes = self.own_nodes(found, user_loc())
            label = self.graph.unique_name(SCOPE.get().prefix + name)
            self.groups[label] = Operation(nodes, label, self)
            return self.groups[label]

    def scoped(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any],
        name: str,
    ) -> Any:
        """Run a part of the operation that is recorded: its result is called ``name``, the nodes
        on the way ``name/add`` and so on."""
        builder, first = self.builder, len(self.graph.nodes)
        outer = builder.prefix
        builder.prefix = f"{outer}{name}/"
        try:
            result = function(*args, **options)
        finally:
            builder.prefix = outer
        self._name(result, name, first)
        return result

    def _name(self, result: Any, name: str, first: int) -> None:
        """Name the nodes of one result or several, if they are as new as node number ``first``."""
        for tracer in result if isinstance(result, tuple) else (result,):
            node = tracer.value.node if isinstance(tracer, Tracer) else None
            wanted = self.builder.prefix + name
            if node is not None and not _is_numbered(node.name, wanted) and any(
                    node is other for other in reversed(self.graph.nodes[first:])):
                self.graph.rename(node, wanted)

    def emit(self, op: str, *operands: Tracer, **attrs: Any) -> Tracer:
        """Append a node; its (first) result as a tracer."""
        row = OPS[op]
        inputs = [self.value_of(operand) for operand in operands]
        result = self.builder.compose(row, inputs, attrs)[0]
        return track(self, Tracer(self, result), row, operands, attrs)

    def emit_all(self, op: str, *operands: Tracer, **attrs: Any) -> tuple[Tracer, ...]:
        """Append a node; all its results, each of them new memory in the order of its axes."""
        inputs = [self.value_of(operand) for operand in operands]
        made = tuple([Tracer(self, value)
                      for value in self.builder.emit(OPS[op], inputs, attrs).results])
        for tracer in made:
            tracer.ordered = tracer.dense = True
        return made

    def tracer(self, value: Value) -> Tracer:
        """A tracer of a value of this graph."""
        return Tracer(self, value)

    def full(self, number: bool | int | float | complex, dtype: np.dtype[Any] | DType,
             shape: tuple[Dim, ...] = ()) -> Tracer:
        """A constant."""
        made = Tracer(self, self.builder.full(number, TensorType(as_dtype(dtype), shape)))
        made.ordered = made.dense = True
        return made

    def dim(self, dim: Dim) -> Value:
        """The size of a dim as an i64 scalar of this graph."""
        return self.builder.emit(OPS["dim"], (), {"size": dim}).results[0]

    def value_of(self, tracer: Tracer) -> Value:
        """The value of a tracer in this graph; that of an outer trace becomes a parameter."""
        if tracer.anew is not None and tracer._ctx is not self and self.descends_from(tracer._ctx):
            return self.value_of(tracer.anew())
        value = tracer.operand()
        if tracer._ctx is self:
            return value
        if not tracer.ctx.alive or not self.descends_from(tracer.ctx):
            tracer.context()  # raises W202 or W204
            raise error("W204", f"{tracer.name} belongs to graph '{tracer.ctx.graph.name}', not "
                                f"to '{self.graph.name}'", hint="use values of one graph together")
        return self._inherit(tracer).operand()

    def _inherit(self, tracer: Tracer) -> Tracer:
        assert self.parent is not None
        outer = tracer if tracer.ctx is self.parent else self.parent._inherit(tracer)
        copy = None if self.copied is None else self.copied(outer)
        if copy is not None:
            return copy
        known = self._inherited.get(id(outer.operand()))
        if known is None:
            stem = tracer.value.name.removesuffix(":0").replace(":", "_")
            param = self.graph.add_param(tracer.type, stem)
            known = Tracer(self, param, weak=tracer.weak)
            self._inherited[id(outer.value)] = known
            self.closure.append((param, outer))
        return known

    def own_copy(self, tracer: Tracer) -> Tracer | None:
        """What this region has instead of an array around it, to write to; None if it has none."""
        if self.parent is None:
            return None
        outer = tracer if tracer.ctx is self.parent else self.parent.own_copy(tracer)
        return None if outer is None or self.copied is None else self.copied(outer)

    @property
    def nested(self) -> bool:
        """True for the trace of a body inside of another trace."""
        return self.parent is not None

    def outside(self, param: Value) -> Tracer | None:
        """The tracer of the trace around for which a parameter stands, if there is one."""
        return next((outer for mine, outer in self.closure if mine is param), None)

    # -- arrays and variables from outside ------------------------------------------------------

    @property
    def captures(self) -> list[Capture]:
        """The closed-over arrays, in the order of their parameters."""
        return self._captures.all

    def capture(self, array: Array, constant: bool = False) -> Tracer:
        """A closed-over array as a hidden parameter, which may be written to unless it is a
        constant. Raises DTypeError (W112) for arrays of objects or strings."""
        # One that is made while tracing may have other numbers later.
        if isinstance(array, Buffer) and not array.is_left:
            return array.traced() if array.is_traced else self.constant(
                as_native(array))
        if self.parent is not None:
            outer = self.parent.capture(array, constant)  # which nobody writes to by mistake here
            copy = self.own_copy(outer)
            return outer if copy is None else copy
        known = self._captures.find(array)
        if known is not None:
            return known
        checked_class(array, f"the array '{name_of(array) or 'captured'}'")
        try:
            type_ = TensorType(dtype_of(array), array.shape)
        except TypeError:
            raise error("W112", f"an array of dtype {array.dtype} cannot be traced",
                        hint="convert it to a number dtype first") from None
        param = self.graph.add_param(type_, name_of(array) or "captured")
        # One that is read-only is an error of the call, as an argument is.
        stays = (constant or not self.request.inout) and "an array from around the traced function"
        made = Tracer(self, param, argument=stays)
        made.made = True  # without dims: no number, it can change
        if array.flags.c_contiguous:  # an array of other strides is another one
            made.ordered = made.dense = True
        return self._captures.add(Capture(param, array), made, self.builder.locs)

    def captured_arrays(self) -> list[Tracer]:
        """What the trace has of the closed-over arrays, in the order of ``captures``."""
        return self._captures.tracers

    def written_captures(self) -> list[tuple[int, Tracer]]:
        """The closed-over arrays that have been written to, by their places among ``captures``, and
        what they hold now."""
        for held in self._captures.tracers:
            if not held.argument:
                refresh(held)  # which raises where it is not known whether it was written to
        return [(at, held) for at, (capture, held) in enumerate(zip(
            self.captures, self._captures.tracers, strict=True))
            if not held.argument and held._value is not capture.param]

    def has_written(self, array: Array) -> bool:
        """Whether a closed-over array has been written to."""
        held = self._captures.find(array)
        return held is not None and held.version is not None

    def hold(self, capture: Capture) -> None:
        """Let a parameter be a closed-over array."""
        self._captures.add(capture, Tracer(self, capture.param, argument=True), ())

    def constant(self, array: Array) -> Tracer:
        """The numbers that an array has now."""
        if self.parent is not None:
            return self._inherit(self.parent.constant(array))
        as_dtype(array.dtype)  # which is not to be lost
        if array.size and is_uniform(array):
            return self.full(array.flat[0].item(), array.dtype, array.shape)
        return self.capture(self._captures.copy_of(array), constant=True)

    def numbers_of(self, constant: Value) -> Array | None:
        """What ``constant`` was made of; one number for all that has one."""
        if constant.node is not None:
            number: Array = np.array(constant.node.attrs["value"])
            return number
        outer, found = self.outside(constant), None
        if outer is not None and self.parent is not None:
            found = self.parent.numbers_of(outer.operand())
        return next((each.array for each in self.captures if each.param is constant), found)

    def captured(self, x: Any) -> Any:
        """A plain array as ``capture`` gives it, read at each call; anything else as it is."""
        if isinstance(x, Tracer) or not isinstance(x, np.ndarray) or computes_itself(type(x)):
            return x
        try:
            dtype_of(x)
        except TypeError:  # objects, texts, dates
            return x
        return self.apply(self.capture, (x,))

    @property
    def root(self) -> TraceContext:
        """The outermost trace."""
        here = self
        while here.parent is not None:
            here = here.parent
        return here

    @contextmanager
    def waiting(self, *operations: Operation) -> Iterator[None]:
        """Let nodes made in the body run after these operations."""
        saved = self.builder.after
        self.builder.after = (*saved, *(node for op in operations for node in op.nodes))
        try:
            yield
        finally:
            self.builder.after = saved

    @contextmanager
    def differentiating(self, more: int) -> Iterator[None]:
        """Count so many more transforms that differentiate what the body records."""
        self.derivatives += more
        try:
            yield
        finally:
            self.derivatives -= more


# Nothing but a TraceContext is ever active, which ``scope`` cannot say.
ACTIVE = cast("ContextVar[TraceContext | None]", RECORDING)


def _is_numbered(name: str, stem: str) -> bool:
    """True for the stem, and for it with a number that makes it unique."""
    return name == stem or (name.startswith(f"{stem}_") and name[len(stem) + 1:].isdigit())


def nodes_of(item: Any) -> list[tuple[Recording, Node]]:
    """The nodes behind an operation or a tracer, with their graph."""
    if isinstance(item, Operation):
        return [(item.ctx, node) for node in item.nodes if item.ctx is not None]
    if isinstance(item, Tracer):
        node = item.operand().node
        return [(item.ctx, node)] if node is not None else []
    raise error("W112", f"{type(item).__name__} is neither an operation nor a traced value",
                locs=user_loc())
