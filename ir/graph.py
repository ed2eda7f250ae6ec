"""The graph: a flat list of typed SSA nodes in execution order, and the Builder that writes one.

Every node has a unique human name (``layer1/relu``) and every value the name ``node:port``; any of
them can be fed or fetched. Passes never edit a graph: they rebuild it in one forward walk through
a ``Builder``, which infers types, folds constants and shares equal nodes. Nothing here recurses
over a graph, so a chain of any length works.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .diagnose import Error, error
from .indices.index import Dim
from .kernels.fold import fold
from .loc import Loc
from .ops.op import MEASURED, Effect, Kind, OpDef
from .record import field, record
from .types import BOOL, DTYPES, Device, DType, TensorType


class Value:
    """One result of a node, or a parameter of a graph (``node`` is None)."""

    __slots__ = ("index", "name", "node", "type")

    def __init__(self, type_: TensorType, name: str, node: Node | None = None, index: int = 0):
        self.type, self.name, self.node, self.index = type_, name, node, index

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.type.shape

    def __repr__(self) -> str:
        return f"<{self.name}: {self.type}>"


@record(eq=False, slots=True)
class Node:
    """One operation. ``after`` lists nodes that must run before it although it reads no value."""

    op: OpDef
    inputs: tuple[Value, ...]
    attrs: dict[str, Any]
    name: str
    results: tuple[Value, ...] = ()
    device: Device | None = None
    locs: tuple[Loc, ...] = ()
    after: tuple[Node, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.name} = {self.op.name}>"


@record(eq=False)
class Graph:
    """Parameters, nodes in execution order, results, and the variables they read and write."""

    name: str
    params: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    variables: dict[str, TensorType] = field(default_factory=dict)
    # Set when state has been made explicit: the parameter that holds a variable's value on entry,
    # and the position in ``results`` of the value it takes when the step succeeds.
    var_params: dict[str, Value] = field(default_factory=dict)
    var_results: dict[str, int] = field(default_factory=dict)
    # Where variables live: what was asked for, full once the graph is placed.
    homes: dict[str, Device] = field(default_factory=dict)
    _names: dict[str, int] = field(default_factory=dict, repr=False)

    def unique_name(self, stem: str) -> str:
        """``stem``, or ``stem_1``, ``stem_2``, ... when it is taken, as in TensorFlow."""
        if stem not in self._names:
            self._names[stem] = 0
            return stem
        while True:
            self._names[stem] += 1
            name = f"{stem}_{self._names[stem]}"
            if name not in self._names:
                self._names[name] = 0
                return name

    def rename(self, node: Node, stem: str) -> None:
        """Give a node that nothing has named yet a better name; the old one becomes free again."""
        base, _, count = node.name.rpartition("_")
        del self._names[node.name]
        if count.isdigit() and self._names.get(base) == int(count):
            self._names[base] -= 1
        node.name = self.unique_name(stem)
        for value in node.results:
            value.name = f"{node.name}:{value.index}"

    def add_param(self, type_: TensorType, name: str) -> Value:
        """Append a parameter; its value is named ``name:0``."""
        value = Value(type_, f"{self.unique_name(name)}:0")
        self.params.append(value)
        return value

    def values(self) -> Iterator[Value]:
        """Parameters and node results, in order of definition."""
        yield from self.params
        for node in self.nodes:
            yield from node.results


_PLAIN = frozenset((int,))


def freeze(attr: Any) -> Any:
    """An attribute as a hashable key: floats by their bits, graphs by identity."""
    if isinstance(attr, tuple):
        # Plain integers are what nearly all tuples have, and are their own key.
        return attr if _PLAIN.issuperset(map(type, attr)) else tuple(
            [freeze(item) for item in attr])
    if isinstance(attr, float):
        return struct.pack("<d", attr)
    if isinstance(attr, complex):
        return struct.pack("<dd", attr.real, attr.imag)
    return (type(attr), attr) if isinstance(attr, (bool, int)) else attr


class Builder:
    """Appends nodes to a graph; every op is a method: ``b.tanh(x)``, ``b.sum(x, axes=(0,))``.

    Python numbers among the operands become constants of the first operand's type. ``share``
    gives equal effect-free nodes one value (source locations are merged); ``fold`` computes
    nodes whose operands are all constant. Tracing uses neither, so every node keeps its name.
    """

    def __init__(
        self, graph: Graph, ops: Mapping[str, OpDef], *, share: bool = True, fold: bool = True
    ) -> None:
        self.graph, self.ops = graph, ops
        self._share, self._fold = share, fold
        self._known: dict[Any, Node] = {}
        self.locs: tuple[Loc, ...] = ()
        self.device: Device | None = None
        self.after: tuple[Node, ...] = ()
        self.stem: str | None = None
        self.prefix = ""  # of the names of new nodes: the tracer's name scope

    @contextmanager
    def like(self, node: Node, suffix: str = "") -> Iterator[None]:
        """Give new nodes the source location, device and (suffixed) name of ``node``."""
        saved = self.locs, self.device, self.stem, self.prefix
        self.locs, self.device = node.locs, node.device
        self.stem = f"{node.name}{suffix}" if suffix else None
        if suffix:
            self.prefix = ""  # the node's name has it already
        try:
            yield
        finally:
            self.locs, self.device, self.stem, self.prefix = saved

    def infer(
        self, op: OpDef, inputs: Sequence[Value], attrs: Mapping[str, Any]
    ) -> tuple[TensorType, ...]:
        """Result types; errors of the row get the locations and operand types of the call."""
        types = [value.type for value in inputs]
        try:
            if op.arity is not None and len(inputs) != op.arity:
                raise error("W102", f"{op.name} takes {op.arity} operands, got {len(inputs)}")
            if op.expand is None and types and types[0].dtype.name in op.wider:
                wider = op.wider[types[0].dtype.name]
                raise error("W111", f"{op.name} takes {wider}, not {types[0].dtype}",
                            hint=f"cast to {wider}, and what comes out back again")
            found = op.infer(*types, **attrs)
            for dim in itertools.chain.from_iterable(type_.shape for type_ in found):
                if isinstance(dim, int) and dim < 0:
                    raise error("W103", f"the size {dim} is negative", hint="give 0 or more")
            return found
        except Error as problem:
            raise error(problem.code, problem.message, locs=problem.locs or self.locs,
                        types=problem.types or types, hint=problem.hint) from None

    def emit(
        self,
        op: OpDef,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        locs: tuple[Loc, ...] | None = None,
        types: tuple[TensorType, ...] | None = None,
    ) -> Node:
        """Append one node (or return an equal one) and give its results, whose ``types`` are
        inferred unless that is done."""
        attrs = dict(attrs or {})
        locs = self.locs if locs is None else locs
        if types is None:
            types = self.infer(op, inputs, attrs)
        pure = op.effect is None and op.control is None and not op.foreign
        if self._fold and pure:
            constant = self._constant(op, inputs, attrs, types)
            if constant is not None:
                return self.emit(self.ops["full"], (), {
                    "value": constant, "dtype": types[0].dtype, "shape": types[0].shape,
                }, name=name, locs=locs)
        key: Any = None
        if self._share and pure and not self.after:
            key = (op.name, tuple(map(id, inputs)), self.device,
                   tuple([(k, freeze(attrs[k])) for k in sorted(attrs)]) if attrs else ())
            known = self._known.get(key)
            if known is not None:
                # The merged node keeps the lines it came from, for errors and profiles.
                known.locs = (*known.locs, *(loc for loc in locs if loc not in known.locs))[:8]
                return known
        label = self.graph.unique_name(self.prefix + (name or self.stem or op.name))
        node = Node(op, tuple(inputs), attrs, label, device=self.device, locs=locs,
                    after=self.after)
        node.results = tuple([Value(type_, f"{node.name}:{at}", node, at)
                              for at, type_ in enumerate(types)])
        self.graph.nodes.append(node)
        if key is not None:
            self._known[key] = node
        return node

    def _constant(
        self, op: OpDef, inputs: Sequence[Value], attrs: Mapping[str, Any],
        types: tuple[TensorType, ...],
    ) -> bool | int | float | None:
        """The one value of all elements of the result, if the operands are constants."""
        if op.kind not in (Kind.MAP, Kind.VIEW) or not inputs or len(types) != 1:
            return None
        found = [constant_of(value) for value in inputs]
        constants = [constant for constant in found if constant is not None]
        if len(constants) < len(inputs):
            return None
        if op.kind is Kind.VIEW:
            fills = {repr(constant) for constant in constants}
            if "value" in attrs:
                fills.add(repr(attrs["value"]))
            return constants[0] if len(fills) == 1 else None
        if op.ref is None or any(dtype.is_complex for dtype in (
                *(type_.dtype for type_ in types), *(value.dtype for value in inputs))):
            return None
        if op.check is None and op.body is not None:
            folded = fold(lambda s, *xs: op.computed(s, xs, types[0].dtype, **attrs), constants,
                          [value.dtype for value in inputs])
            if folded is not None:
                return folded
        scalars = [np.array(constant, value.dtype.numpy)
                   for constant, value in zip(constants, inputs, strict=True)]
        try:
            with np.errstate(all="ignore"):
                result = np.asarray(op.meaning(*scalars, **attrs))
        except Error:  # a check that fails does so where it is run, if it is
            return None
        item: bool | int | float = result.astype(types[0].dtype.numpy).item()
        return item

    def full(self, value: bool | int | float | complex, type_: TensorType) -> Value:
        """A constant tensor whose elements are all ``value``."""
        python = {"b": bool, "i": int, "u": int, "c": complex}.get(type_.dtype.kind, float)
        attrs = {"value": python(value), "dtype": type_.dtype, "shape": type_.shape}
        return self.emit(self.ops["full"], (), attrs).results[0]

    def lift(self, operands: Iterable[Value | bool | int | float]) -> list[Value]:
        """Operands with Python numbers made constants like the first (non-bool) tensor."""
        given = list(operands)
        tensors = [x for x in given if isinstance(x, Value)]
        if len(tensors) == len(given):
            return tensors
        like = next((x for x in tensors if x.dtype != BOOL), tensors[0])
        return [x if isinstance(x, Value) else self.full(x, like.type) for x in given]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = self.ops.get(name)
        if op is None:
            raise AttributeError(f"no op named {name!r}")

        def call(*operands: Value | bool | int | float, **attrs: Any) -> Any:
            inputs = self.lift(operands)
            results = self.compose(op, inputs, attrs)
            return results[0] if len(results) == 1 else results

        return call

    def compose(
        self, op: OpDef, inputs: Sequence[Value], attrs: Mapping[str, Any]
    ) -> tuple[Value, ...]:
        """The results of an op, whatever it is made of.

        What has no kernel for its dtype is computed whole in a wider one: a composite of half types
        is rounded once, sums in memory are as in float32.
        """
        wider = op.wider.get(inputs[0].dtype.name) if inputs else None
        if wider is not None:
            own = inputs[0].dtype
            wide = [self.cast(x, dtype=DTYPES[wider]) if x.dtype == own else x for x in inputs]
            return tuple(self.cast(x, dtype=own) if x.dtype.name == wider else x
                         for x in self.compose(op, wide, attrs))
        if op.expand is not None:
            return (op.expand(self, *inputs, **attrs),)
        return self.emit(op, inputs, attrs).results


def constant_of(value: Value) -> bool | int | float | None:
    """The element of a constant tensor, or None."""
    if value.node is not None and value.node.op.constant:
        constant: bool | int | float = value.node.attrs["value"]
        return constant
    return None


def control_of(node: Node) -> Any:
    """How the bodies of a control-flow node hang on it (``ops.region``); None for other nodes."""
    return None if node.op.control is None else node.op.control(**node.attrs)


def with_bodies(node: Node, change: Callable[[Graph], Graph]) -> dict[str, Any]:
    """The attributes of a node with other graphs."""
    return {name: change(value) if isinstance(value, Graph) else value
            for name, value in node.attrs.items()}


def all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph, and those of the graphs that they hold."""
    pending = [graph]
    while pending:
        for node in pending.pop().nodes:
            yield node
            pending += [attr for attr in node.attrs.values() if isinstance(attr, Graph)]


def can_fail(node: Node) -> bool:
    """True if computing a node may fail the step, by itself or in its bodies."""
    if node.op.can_fail:
        return not is_inside(node)
    bodies = [attr for attr in node.attrs.values() if isinstance(attr, Graph)]
    return any(inner.op.can_fail and not is_inside(inner)
               for body in bodies for inner in all_nodes(body))


def is_inside(node: Node) -> bool:
    """Whether no index of a read or a store can be out of range, which passes have found."""
    known = node.attrs.get("inside", ())
    return bool(known) and all(word == "all" for word in known)


def places_of(node: Node) -> tuple[object, ...] | None:
    """What a read or a store checks, None for other nodes: those of the same indices in arrays of
    the same shape fail together."""
    if "inside" not in node.op.facts:
        return None
    axes = node.attrs["axes"]
    return node.inputs[-len(axes):], axes, node.inputs[0].shape


def effects_of(node: Node) -> Iterator[Node]:
    """The EFFECT nodes of a node: itself, or those in its bodies."""
    pending = [node]
    while pending:
        here = pending.pop()
        if here.op.effect is not None:
            yield here
        elif here.op.control is not None:
            for attr in here.attrs.values():
                if isinstance(attr, Graph):
                    pending += reversed(attr.nodes)


def writes(node: Node) -> bool:
    """True if the node changes a variable, talks to a resource, tells a size, or may fail on
    purpose, so that it is never merged or dropped as dead."""
    if node.op.effect is None and node.op.control is None:
        return apart(node)
    return apart(node) or any(each.op.effect is not Effect.READS for each in effects_of(node))


def talks(node: Node) -> bool:
    """True if a resource computes the node, or one in its bodies: it may wait, and what it does is
    seen at once."""
    return _holds(node, (Kind.RESOURCE,))


def apart(node: Node) -> bool:
    """True if no kernel can compute the node, or one in its bodies, as it is not known before how
    large its results are: it talks to a resource, or makes a size of a number."""
    return _holds(node, MEASURED)


def _holds(node: Node, kinds: tuple[Kind, ...]) -> bool:
    """True if a node, or one in its bodies, is of these kinds."""
    if node.op.kind in kinds or not node.attrs:
        return node.op.kind in kinds
    bodies = [attr for attr in node.attrs.values() if isinstance(attr, Graph)]
    return bool(bodies) and any(
        inner.op.kind in kinds for body in bodies for inner in all_nodes(body))


def queues_of(node: Node) -> set[str]:
    """The queues that a node talks to, in its bodies too."""
    inner = (each for attr in node.attrs.values() if isinstance(attr, Graph)
             for each in all_nodes(attr))
    return {each.attrs["queue"] for each in (node, *inner) if each.op.kind is Kind.RESOURCE}


def live_nodes(graph: Graph) -> list[Node]:
    """The nodes that a result or a variable needs, in order."""
    live: set[Node] = {value.node for value in graph.results if value.node is not None}
    for node in reversed(graph.nodes):
        if node in live or writes(node):
            live.add(node)
            live.update(node.after)
            live.update(value.node for value in node.inputs if value.node is not None)
    return [node for node in graph.nodes if node in live]
