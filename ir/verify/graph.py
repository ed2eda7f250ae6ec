"""What a sound graph is: SSA order, names, types, attributes, effects. See ``verify``.

A check yields (node, message) for each broken rule; node is None where the graph as a whole is
meant. Nested graphs are checked one by one, so nothing recurses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..diagnose import Error
from ..graph import Graph, Node, control_of
from ..indices.index import Expr, symbols_of
from ..ops.control.region import Looping
from ..ops.op import MEASURED, Kind
from ..record import field, record
from ..types import DTYPES, DType, TensorType

Problems = Iterator[tuple[Node | None, str]]

# Words that mean something else where the text has a dim.
RESERVED = frozenset(("mod", "by", "inf", "nan", "true", "false", *DTYPES))


@record(frozen=True)
class Scope:
    """A graph, the symbolic dims and variables known around it, the node whose body it is."""

    graph: Graph
    dims: frozenset[str] = frozenset()
    variables: Mapping[str, TensorType] = field(default_factory=dict)
    holder: Node | None = None

    @property
    def known_dims(self) -> frozenset[str]:
        """Dims that a caller can bind: those of parameters and variables, and what queues
        and numbers tell."""
        types = (*(value.type for value in self.graph.params), *self.graph.variables.values(),
                 *(attr for node in self.graph.nodes if node.op.kind in MEASURED
                   for attr in node.attrs.values()))
        return self.dims.union(*map(symbols_in, types))


def inner_scopes(scope: Scope) -> list[Scope]:
    """The graphs that nodes of a graph hold."""
    known = {**scope.variables, **scope.graph.variables}
    return [Scope(attr, scope.known_dims.union(index_of(node)), known, node)
            for node in scope.graph.nodes for attr in node.attrs.values()
            if isinstance(attr, Graph)]


def index_of(node: Node) -> tuple[str, ...]:
    """The symbol that a node binds in its bodies, if any."""
    control = control_of(node)
    return (control.index,) if isinstance(control, Looping) else ()


def symbols_in(attr: Any) -> frozenset[str]:
    """Names of symbolic dims in an attribute or type."""
    if isinstance(attr, Expr):
        return symbols_of(attr)
    if isinstance(attr, TensorType):
        attr = attr.shape
    if isinstance(attr, tuple):
        return frozenset[str]().union(*map(symbols_in, attr))
    return frozenset()


def check_order(scope: Scope) -> Problems:
    """Values are defined once, above their uses, by the node that lists them."""
    known: set[int] = set()
    for value in scope.graph.params:
        if value.node is not None or id(value) in known:
            yield None, f"parameter {value.name} is the result of a node or listed twice"
        known.add(id(value))
    for node in scope.graph.nodes:
        for at, value in enumerate(node.inputs):
            if id(value) not in known:
                yield node, f"operand {at} ({value.name}) is not defined above"
        for at, value in enumerate(node.results):
            if value.node is not node or value.index != at or id(value) in known:
                yield node, f"result {at} ({value.name}) does not belong to this place"
            known.add(id(value))
    for value in scope.graph.results:
        if id(value) not in known:
            yield None, f"result {value.name} is not defined in the graph"


def check_names(scope: Scope) -> Problems:
    """Node and value names are unique; a value is named ``node:port``."""
    params: set[str] = set()
    for value in scope.graph.params:
        if not re.fullmatch(r"(?s:.+):[0-9]+", value.name) or value.name in params:
            yield None, f"parameter name '{value.name}' is taken or has no port"
        params.add(value.name)
    seen = {name.rpartition(":")[0] for name in params}
    for node in scope.graph.nodes:
        if not node.name or node.name in seen:
            yield node, f"the name '{node.name}' is taken or empty"
        seen.add(node.name)
        for at, value in enumerate(node.results):
            if value.name != f"{node.name}:{at}":
                yield node, f"result {at} is named '{value.name}'"


def check_arity(scope: Scope) -> Problems:
    """An op has as many operands as its row says."""
    for node in scope.graph.nodes:
        if node.op.arity not in (None, len(node.inputs)):
            yield node, f"{node.op.name} takes {node.op.arity} operands, got {len(node.inputs)}"


def check_attrs(scope: Scope) -> Problems:
    """A node has the attributes of its row, of the declared types."""
    for node in scope.graph.nodes:
        if node.attrs.keys() - node.op.facts.keys() != node.op.attrs.keys():
            yield node, f"attributes are {sorted(node.attrs)}, not {sorted(node.op.attrs)}"
        for name, expected in {**node.op.attrs, **node.op.facts}.items():
            if name in node.attrs and not _fits(node.attrs[name], expected, node.op.kind):
                yield node, f"attribute {name} = {node.attrs[name]!r} is no {expected.__name__}"


def _fits(value: Any, expected: type, kind: Kind) -> bool:
    if expected is object:
        return isinstance(value, Graph) if kind is Kind.REGION else _is_item(value)
    if expected is Expr:  # a size
        return type(value) in (int, Expr)
    if expected is tuple:
        return isinstance(value, tuple) and all(map(_is_item, value))
    if expected is float:  # the text keeps apart 1, 1.0 and true
        return type(value) in (bool, int, float, complex)
    return type(value) is expected


def _is_item(value: Any) -> bool:
    return type(value) in (bool, int, float, complex, str, Expr, DType, TensorType) or (
        isinstance(value, tuple) and all(map(_is_item, value)))


def check_types(scope: Scope) -> Problems:
    """Stored types are those that the row infers."""
    for node in scope.graph.nodes:
        try:
            inferred = node.op.infer(*(value.type for value in node.inputs), **node.attrs)
        except Error as problem:
            yield node, problem.message
        except Exception as problem:  # rows expect what check_attrs cannot know
            yield node, f"the row of {node.op.name} fails: {problem!r}"
        else:
            stored = tuple(value.type for value in node.results)
            if inferred != stored:
                yield node, f"stored types are {list(stored)}, inferred {list(inferred)}"


def check_dims(scope: Scope) -> Problems:
    """Symbolic dims have plain names and occur in the type of what is given, or are measured
    above."""
    known = scope.known_dims
    later = {name for node in scope.graph.nodes if node.op.kind is Kind.EXTENT
             for name in symbols_in(node.attrs["size"])}
    for name in sorted(known - scope.dims):
        if name in RESERVED or not re.fullmatch(r"[^\W\d][\w.]*", name):
            yield None, f"'{name}' is not a name for a dim"
    for node in scope.graph.nodes:
        parts: Iterable[Any] = (*node.attrs.values(), *(value.type for value in node.results))
        used = frozenset[str]().union(*map(symbols_in, parts))
        if used - known:
            yield node, f"dim {min(used - known)} is not in the type of any parameter or variable"
        if node.op.kind is Kind.EXTENT:
            later -= used
        elif used & later:
            yield node, f"dim {min(used & later)} is measured below"
        for index in index_of(node):
            if index in known or index in RESERVED or not re.fullmatch(r"[^\W\d][\w.]*", index):
                yield node, f"the index '{index}' is taken or no name for a dim"


def check_effects(scope: Scope) -> Problems:
    """Effects name a variable of the graph around all, with its type; what becomes one kernel has
    none."""
    for node in scope.graph.nodes:
        if node.op.effect is None:
            continue
        known = {**scope.variables, **scope.graph.variables}
        if scope.holder is not None and scope.holder.op.control is None:
            yield node, f"{node.op.name} inside the body of a node"
        elif known.get(node.attrs["var"]) != node.attrs["type"]:
            yield node, f"the graph has no variable '{node.attrs['var']}' of this type"


def check_after(scope: Scope) -> Problems:
    """Control dependencies point at nodes above."""
    above: set[int] = set()
    for node in scope.graph.nodes:
        for earlier in node.after:
            if id(earlier) not in above:
                yield node, f"'{earlier.name}' is to run before, but is not above"
        above.add(id(node))


def check_state(scope: Scope) -> Problems:
    """Explicit state: variables are bound to parameters and results of their type."""
    graph = scope.graph
    params = {id(value) for value in graph.params}
    for var, value in graph.var_params.items():
        if id(value) not in params or graph.variables.get(var) != value.type:
            yield None, f"variable '{var}' is not a parameter of its type"
    for var, at in graph.var_results.items():
        if not 0 <= at < len(graph.results) or graph.variables.get(var) != graph.results[at].type:
            yield None, f"variable '{var}' is not a result of its type"
    for var in graph.homes:
        if var not in graph.variables:
            yield None, f"'{var}' has a device, but is no variable"


GRAPH_CHECKS: tuple[Callable[[Scope], Problems], ...] = (
    check_order, check_names, check_arity, check_attrs, check_types, check_dims, check_effects,
    check_after, check_state,
)
