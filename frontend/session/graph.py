"""weft.Graph: TensorFlow's way, a graph that is built by hand and of which parts are run.

    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (None, 100), name="x")
        relu = weft.nn.relu(W @ x + b)

It is a trace without an end: it grows whenever something is done with one of its values, and every
value can be found by its name.
"""

from __future__ import annotations

import difflib
from contextlib import AbstractContextManager
from typing import Any

from ...ir.diagnose import error
from ...ir.graph import Node, Value
from ..numpy_api.dispatch import NumpyApi
from ..tracing.arrays.variable import Variable
from ..tracing.recorder import TraceContext, active
from ..tracing.source import user_loc
from ..tracing.spec import Spec
from ..tracing.tracer import Operation, Tracer

Element = Value | tuple[Node, ...] | Variable
"""What can be fetched: a value, an operation's nodes, a variable as it is when the step ends."""


class Graph(TraceContext):
    """A graph under construction; ``weft.Session(g)`` runs parts of it."""

    def __init__(self, name: str = "graph") -> None:
        super().__init__(name, NumpyApi())
        self.placeholders: list[Tracer] = []
        self.resources: dict[str, Any] = {}  # queues by name, for nodes whose ``queue`` they are
        self._named: dict[str, Node] = {}
        self._seen = 0

    def as_default(self) -> AbstractContextManager[TraceContext]:
        """Add what the body does to this graph."""
        return self.activate()

    def placeholder(self, dtype: Any, shape: Any = None, name: str | None = None) -> Tracer:
        """A value that is fed. ``dtype`` may be a whole type (``"f32[b,784]"``, a Spec); a dim that
        is None can have any size. Raises DTypeError (W112)."""
        if isinstance(dtype, Spec):
            spec = dtype
        elif isinstance(dtype, str) and "[" in dtype:
            spec = Spec.parse(dtype)
        else:
            spec = Spec(dtype, () if shape is None else shape)
        with self.lock:
            label = self.graph.unique_name(name or "placeholder")
            value = Value(spec.type(label), f"{label}:0")
            self.graph.params.append(value)
            tracer = Tracer(self, value, argument=True)
            self.placeholders.append(tracer)
            return tracer

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
