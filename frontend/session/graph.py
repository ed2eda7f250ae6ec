"""weft.Graph: TensorFlow's way, a graph that is built by hand and of which parts are run.

    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (None, 100), name="x")
        relu = weft.nn.relu(W @ x + b)

It is a trace without an end: it grows whenever something is done with one of its values, and every
value can be found by its name. ``variables`` has the variables that it reads, writes or was the
graph under construction for, by their names; ``trainable_variables`` those of optimizers.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...ir.diagnose import error
from ...ir.graph import Graph as IRGraph
from ...ir.graph import Node, Value, all_nodes, effects_of, writes
from ...ir.indices.index import symbols_of
from ...ir.ops.op import Effect
from ...passes.clone import Clone
from ..face.boundary import boundary
from ..face.source import user_loc
from ..numpy_api.dispatch import NumpyApi
from ..rewriting.retrace import as_written, lost_names
from ..stays import Stays
from ..tracing.arrays.variable import Variable
from ..tracing.context.active import active
from ..tracing.context.captures import Capture
from ..tracing.context.dependencies import group
from ..tracing.context.recorder import TraceContext
from ..tracing.context.scope import checked_label, checked_name
from ..tracing.context.traced import Traced
from ..tracing.spec import Spec
from ..tracing.trace import hidden
from ..tracing.values.operation import Operation
from ..tracing.values.tracer import Tracer
from ..viz.document import graph_document
from ..viz.page import frame
from .saved import read_state, write_state

Element = Value | tuple[Node, ...] | Variable
"""What can be fetched: a value, an operation's nodes, a variable as it is when the step ends."""


def _in_program_order(graph: IRGraph) -> None:
    """Have what reads or writes a variable run after what wrote it before, as in the function:
    who fetches a part gets what the function gives."""
    last: dict[str, Node] = {}
    for node in graph.nodes:
        touched = dict.fromkeys(each.attrs["var"] for each in effects_of(node))
        node.after += tuple(dict.fromkeys(
            last[name] for name in touched if name in last and last[name] not in node.after))
        last.update({each.attrs["var"]: node for each in effects_of(node) if writes(each)})


class Placeholder(Tracer):
    """A value that is fed: a key of dicts in each step, which runs no Python for that."""

    __slots__ = ()
    __hash__ = object.__hash__


class Graph(Stays, TraceContext):
    """A graph under construction; ``weft.Session(g)`` runs parts of it."""

    instead = "g.save(path) writes it with its state, weft.Graph.load reads it"

    def __init__(self, name: str = "graph") -> None:
        super().__init__(checked_name(name, "graph"), NumpyApi())
        self.rewritten, self.endless = as_written, True
        self.placeholders: list[Tracer] = []
        self.resources: dict[str, Any] = {}  # queues by name, for nodes whose ``queue`` they are
        self._named: dict[str, Node] = {}
        self._seen = 0
        self._stands: dict[Value, Value] = {}  # for the values of another graph

    @classmethod
    def of(cls, traced: IRGraph | Traced, variables: Mapping[str, Any] | None = None,
           arrays: Mapping[str, Any] | None = None) -> Graph:
        """A graph to run parts of, which may grow, from that of a traced function.

        Its values go by their names, or by themselves (``t.graph.results[0]``). Variables and
        closed-over arrays are those that the function was traced with, or the given ones.

        >>> import numpy as np
        >>> import weft
        >>> traced = weft.compile(lambda x: np.tanh(x) * 2).trace(np.ones(2))
        >>> weft.Session(traced.graph).run("mul:0", {"tanh:0": [1.0, 2.0]})
        array([2., 4.])
        """
        found = traced.graph if isinstance(traced, Traced) else traced
        bound, held = Traced.bound(found)
        clone = Clone(found)
        for value in found.params:
            clone.param(value)
        for node in found.nodes:
            clone.node(node)
        made = cls(found.name)
        made.rebase(clone.finish())
        made._stands = clone.values
        if isinstance(traced, Traced):
            _in_program_order(made.graph)
            made.failures.update(traced.failures)
        known = {**bound, **(variables or {})}
        for node in all_nodes(found):
            name = node.attrs.get("var")
            if node.op.effect is Effect.ASSERTS:
                made.asserted = name
            elif node.op.effect is not None and name not in known:
                raise error("W304", f"graph '{found.name}' has a variable '{name}', which is not "
                                    "given", hint="give it: Graph.of(graph, {name: variable})")
        for name in found.variables:
            if name in known:
                made.bind(name, known[name])
        given = {**{capture.param.name: capture.array for capture in held},
                 **{f"{name}:0": array for name, array in (arrays or {}).items()}}
        for value in made.graph.params:
            if value.name in given:
                made.hold(Capture(value, given[value.name]))
            else:
                made.placeholders.append(Placeholder(made, value, argument=True))
        return made

    def _repr_html_(self) -> str:
        with self.lock:
            return frame(graph_document(self.graph))

    @property
    def trainable_variables(self) -> dict[str, Variable]:
        """The variables that optimizers change by default, by name."""
        return {name: variable for name, variable in self.variables.items() if variable.trainable}

    def initializer(self, name: str = "init") -> Operation:
        """An operation that gives every variable of the graph the value that it has now: made
        before any step, it takes the model back to its start."""
        with self.as_default():
            return group(*[variable.assign(variable.cell.value)
                           for variable in list(self.variables.values())], name=name)

    def knows(self, variable: Variable) -> bool:
        """True for a variable of this graph."""
        return any(known is variable for known in list(self.variables.values()))

    def adopt(self, variable: Any, stem: str) -> str:
        """A variable that is made while the graph is built is one of its own."""
        with self.lock:
            return self._listed(variable, stem)

    @boundary
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph as text to ``path``, and beside it, as safetensors, what it holds: the
        values that its variables have at one moment, and closed-over arrays.

        Raises Error: W304 for a dtype that safetensors lack, W113 for a graph with queues, W408 (an
        OSError) where it cannot be written.

        >>> import os, tempfile, weft
        >>> g, v = weft.Graph(), weft.Variable([1.0, 2.0], name="start")
        >>> with g.as_default():
        ...     x = weft.placeholder("f64", (2,), name="x")
        ...     y = v + x
        >>> file = os.path.join(tempfile.mkdtemp(), "model.ir")
        >>> g.save(file)
        >>> again = weft.Graph.load(file)
        >>> weft.Session(again).run("y:0", {"x:0": [1, 1]})
        array([2., 3.])
        """
        with self.lock:
            if self.resources:
                raise error("W113", f"graph '{self.graph.name}' has queues, which a file cannot "
                                    "hold", locs=user_loc(), hint="save a graph without them")
            write_state(path, self.graph, self.variables, self.captures,
                        {name: [node.name for node in made.nodes]
                         for name, made in self.groups.items()})

    @classmethod
    @boundary
    def load(cls, path: str | os.PathLike[str]) -> Graph:
        """The graph that ``save`` wrote, with variables of its own. Text alone is enough for one
        that holds nothing.

        Raises TextError (W501) for text that is no graph, Error (W403) for tensors that are not
        its own, FileNotFoundError.
        """
        state = read_state(path)
        variables = {name: Variable(array, name, trainable=name not in state.fixed)
                     for name, array in state.variables.items()}
        made = cls.of(state.graph, variables, state.arrays)
        nodes = {node.name: node for node in made.graph.nodes}
        for name, names in state.groups.items():
            made.groups[made.graph.unique_name(name)] = Operation(
                tuple(nodes[each] for each in names), name, made)
        return made

    @contextmanager
    def as_default(self) -> Iterator[TraceContext]:
        """Add what the body does to this graph.

        Functions that the body calls may use Python's control flow on traced values where they are
        compiled (``@weft.compile``) or given to a transform or a loop; the body itself may not. It
        makes arrays of the graph's values by ``weft.numpy``: ``np.zeros`` makes plain ones.
        """
        with self.activate() as trace, lost_names():
            try:
                yield trace
            except (TypeError, ValueError, AttributeError) as problem:
                told = hidden(trace, problem)
                if told is None:
                    raise
                raise told from None

    def placeholder(self, dtype: Any, shape: Any = None, name: str | None = None) -> Tracer:
        """A value that is fed. ``dtype`` may be a whole type (``"f32[b,784]"``, a Spec); a dim that
        is None can have any size. Raises DTypeError (W112)."""
        if isinstance(dtype, Spec) or (isinstance(dtype, str) and "[" in dtype):
            if shape is not None:
                raise error("W112", f"the placeholder's type {dtype} has a shape, and {shape!r} is "
                                    "given as another one", locs=user_loc(),
                            hint="leave it out; a name is given by its name: name='x'")
            spec = dtype if isinstance(dtype, Spec) else Spec.parse(dtype)
        else:
            spec = Spec(dtype, () if shape is None else shape)
        stem = checked_label("" if name is None else name, "placeholder") or "placeholder"
        with self.lock:
            label = self.graph.unique_name(stem)
            known = {size for each in self.graph.values() for dim in each.type.shape
                     for size in symbols_of(dim)}
            value = Value(spec.type(label, known), f"{label}:0")
            self.graph.params.append(value)
            tracer = Placeholder(self, value, argument=True)
            self.placeholders.append(tracer)
            return tracer

    def queue_name(self, queue: Any) -> str:
        """What nodes of this graph call a queue."""
        for name, known in self.resources.items():
            if known is queue.resource:
                return name
        name = self.graph.unique_name(queue.name)
        self.resources[name] = queue.resource
        return name

    def find(self, name: str) -> Value | Node | Operation | Variable:
        """The value ``layer1/relu:0`` or the node ``layer1/relu``; a placeholder, captured array
        or variable goes by either, a group by its name. Raises FeedError (W301) with the names
        that come close."""
        with self.lock:
            found = self._find(name)
            if found is not None:
                return found
            known = [*(value.name for value in self.graph.values()), *self.groups, *self.variables]
        close = difflib.get_close_matches(name, known, 3)
        raise error("W301", f"no value '{name}' in graph '{self.graph.name}'", locs=user_loc(),
                    hint=f"did you mean {' or '.join(close)}?" if close else
                         "list the names with [v.name for v in g.graph.values()]")

    def _find(self, name: str) -> Value | Node | Operation | Variable | None:
        for value in self.graph.params:
            if name in (value.name, value.name.removesuffix(":0")):
                return value
        for node in self.graph.nodes[self._seen:]:
            self._named[node.name] = node
        self._seen = len(self.graph.nodes)
        if name in self._named:
            return self._named[name]
        stem, _, port = name.rpartition(":")
        if stem in self._named and port.isdigit():
            results = self._named[stem].results
            if int(port) < len(results):
                return results[int(port)]
        variable: Variable | None = self.variables.get(name.removesuffix(":0"))
        return variable if variable is not None else self.groups.get(name)

    def element(self, item: Any) -> Element:
        """What a fetch or feed means: a tracer's value, the nodes of an operation, a variable, or
        what has that name.

        Raises FeedError (W301) for an item that is not of this graph.
        """
        if isinstance(item, Tracer):
            if item.ctx is not self:
                raise error("W301", f"{item.name} is not in graph '{self.graph.name}'",
                            locs=user_loc(), hint="feed and fetch values of the session's graph")
            return item.value if item.argument else item.operand()
        if isinstance(item, Operation):
            if item.nodes and item.ctx is not self:
                raise error("W301", f"{item.name} is not in graph '{self.graph.name}'",
                            locs=user_loc(), hint="fetch operations of the session's graph")
            return item.nodes
        if isinstance(item, Variable):
            return item
        if isinstance(item, Value):
            return self._stands.get(item, item)
        if isinstance(item, str):
            found = self.find(item)
            if isinstance(found, Operation):
                return found.nodes
            return (found,) if isinstance(found, Node) else found
        raise error("W301", f"{type(item).__name__} can be neither fed nor fetched",
                    locs=user_loc(), hint="use traced values, operations and names")


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tracer:
    """A value of the default graph that is fed; see ``Graph.placeholder``."""
    graph = active()
    if not isinstance(graph, Graph):
        raise error("W204", "a placeholder needs a graph", locs=user_loc(),
                    hint="write it inside of: with weft.Graph().as_default()")
    return graph.placeholder(dtype, shape, name)
