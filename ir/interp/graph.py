"""The reference interpreter: NumPy evaluates a graph node by node. The oracle of every test.

It shares nothing with the compiler but the op rows: a node's value is what its row's ``ref`` says,
in the dtype and shape that inference gave it, which are checked.

    y, = run_graph(graph, [x, w], variables={"step": np.int64(3)})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from ..diagnose import error
from ..graph import Graph, Node, live_nodes
from ..host import call_host
from ..indices.dims import bind_dims, check_requirement, node_requirements
from ..indices.index import Expr
from ..indices.walk import evaluate
from ..ops.control.extent import measured
from ..ops.op import MEASURED, Effect, Kind, host_name
from ..ops.table import OPS
from ..types import TensorType
from .kernel import Array, ChecksFailedError, run_kernel
from .plan import run_plan

__all__ = ["ChecksFailedError", "run_graph", "run_kernel", "run_plan"]

Watch = Callable[[Node, tuple[Array, ...]], None]


def run_graph(
    graph: Graph,
    args: Sequence[Any],
    variables: MutableMapping[str, Any] | None = None,
    watch: Watch | None = None,
    most: int | None = None,
    resources: Mapping[str, Any] | None = None,
) -> list[Array]:
    """Results of a graph as new arrays. Nodes that nothing needs are not run, as in a program.

    ``args`` are the parameters in order. ``variables`` holds the state by name and is changed only
    when every node has succeeded. Where state is explicit (``var_params``), parameters and results
    of variables go by ``variables`` too. ``watch`` sees each node with its results, those inside
    fused bodies before the fused node. ``most`` is how many times bodies may be run, all together:
    a loop need not end. ``resources`` are its queues by name, which may make it wait.

    Raises W303 for an argument of another type, W105 for dims that do not fit, W124 for an index
    out of range, W601 for a loop that takes too long.
    """
    held = dict(variables or {})
    given = iter(args)
    by_param = {id(value): var for var, value in graph.var_params.items()}
    if len(args) != len(graph.params) - len(by_param):
        raise error("W303", f"graph @{graph.name} takes {len(graph.params) - len(by_param)} "
                            f"arguments, got {len(args)}")
    operands = [np.asarray(held[by_param[id(value)]] if id(value) in by_param else next(given))
                for value in graph.params]
    dims = bind_dims([value.type for value in graph.params], operands,
                     [value.name.removesuffix(":0") for value in graph.params])
    run = _Run(dims, held, watch, most, resources or {})
    with np.errstate(all="ignore"):
        # Copies: a view of an argument must not leave the interpreter.
        results = [np.array(value) for value in run.body(graph, operands)]
    stored = {var: results[at] for var, at in graph.var_results.items()}
    if variables is not None:
        variables.update({var: held[var] for var in run.written} | stored)
    return [value for at, value in enumerate(results) if at not in graph.var_results.values()]


class _Run:
    """One run: the bound dims, the variables, and who watches."""

    def __init__(self, dims: Mapping[str, int], held: dict[str, Any], watch: Watch | None,
                 left: int | None, resources: Mapping[str, Any]) -> None:
        self.dims, self.held, self.watch, self.left = dims, held, watch, left
        self.resources = resources
        self.written: set[str] = set()
        self._shapes: dict[TensorType, tuple[int, ...]] = {}

    def __call__(self, graph: Graph, operands: Sequence[Array], **dims: int) -> list[Array]:
        """The results of a nested graph, with values of its own symbols."""
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise error("W601", f"@{graph.name} is run too often")
        before = self.dims
        self.dims = {**before, **dims}
        try:
            return self.body(graph, operands)
        finally:
            self.dims = before

    def body(self, graph: Graph, operands: Sequence[Array]) -> list[Array]:
        """The results of a graph; recursion is by nesting of regions only."""
        live = set(live_nodes(graph))
        last = {id(value): at for at, node in enumerate(graph.nodes) if node in live
                for value in node.inputs}
        last.update((id(value), len(graph.nodes)) for value in graph.results)
        known = dict(zip(map(id, graph.params), operands, strict=True))
        for at, node in enumerate(graph.nodes):
            if self.dims:  # what sizes have to be, nobody needs to read
                for need in node_requirements(node):
                    check_requirement(need, self.dims)
            if node not in live:
                continue
            results = self.node(node, [known[id(value)] for value in node.inputs])
            for value, result in zip(node.results, results, strict=True):
                if id(value) in last:
                    known[id(value)] = result
            for value in node.inputs:
                if last[id(value)] == at:
                    known.pop(id(value), None)
        return [known[id(value)] for value in graph.results]

    def node(self, node: Node, operands: list[Array]) -> tuple[Array, ...]:
        """The results of one node, in their inferred types."""
        raw = self._evaluate(node, operands)
        if len(raw) != len(node.results):
            raise error("W601", f"{node.name} gave {len(raw)} results, not {len(node.results)}",
                        locs=node.locs)
        if node.op.kind in MEASURED:  # whose sizes nobody knows before
            self.dims = {**self.dims, **bind_dims([value.type for value in node.results], raw,
                                                  [value.name for value in node.results])}
            self._shapes.clear()
        results = []
        for value, result in zip(node.results, raw, strict=True):
            array = np.asarray(result).astype(value.dtype.numpy, copy=False)
            if array.shape != self.shape(value.type):
                raise error("W601", f"{value.name} is {value.type}, the interpreter gave shape "
                                    f"{array.shape}", locs=node.locs)
            results.append(array)
        if self.watch is not None:
            self.watch(node, tuple(results))
        return tuple(results)

    def _evaluate(self, node: Node, operands: list[Array]) -> Sequence[Any]:
        if node.op.effect is not None:
            return self._effect(node, operands)
        if node.op.kind is Kind.RESOURCE:
            return self._resource(node, operands)
        if node.op.kind is Kind.EXTENT:
            return (measured(operands[0], node.locs),)
        attrs = node.attrs
        if self.dims:
            attrs = {name: self._bound(value) for name, value in attrs.items()}
        assert node.op.ref is not None
        if node.op.kind is Kind.HOST:
            wanted = [(value.dtype.numpy, self.shape(value.type)) for value in node.results]
            return call_host(node.op.ref, operands, attrs, wanted, host_name(node.op, attrs),
                             node.locs)
        try:
            if node.op.kind is Kind.REGION:
                return tuple(node.op.ref(self, *operands, **attrs))
            result = node.op.meaning(*operands, **attrs)
        except IndexError as problem:
            raise error("W124", f"{node.name}: {problem}", locs=node.locs,
                        types=[value.type for value in node.inputs]) from None
        return result if isinstance(result, tuple) else (result,)

    def _effect(self, node: Node, operands: list[Array]) -> Sequence[Any]:
        var, type_ = node.attrs["var"], node.attrs["type"]
        if node.op.effect is Effect.ASSERTS:
            if not operands[0]:
                raise error("W125", node.attrs["message"], locs=node.locs)
            return ()
        if node.op.effect is Effect.WRITES:
            # A new array each time: values read before keep what they read.
            (value,) = operands
            if node.op.update:
                join = OPS[node.op.update].ref
                assert join is not None
                value = np.asarray(join(self.held[var], value))
            self.held[var] = value
            self.written.add(var)
            return ()
        if var not in self.held:
            raise error("W302", f"variable {var} has no value", locs=node.locs)
        return (np.asarray(self.held[var], type_.dtype.numpy),)

    def _resource(self, node: Node, operands: list[Array]) -> Sequence[Any]:
        found = self.resources.get(node.attrs["queue"])
        if found is None:
            raise error("W302", f"there is no queue {node.attrs['queue']}", locs=node.locs)
        assert node.op.ref is not None
        waited: Sequence[Any] = node.op.ref(found, *operands, **node.attrs).wait()
        return waited

    def shape(self, type_: TensorType) -> tuple[int, ...]:
        """The shape of a type for the sizes of this run."""
        shape = self._shapes.get(type_)
        if shape is None:
            shape = tuple(evaluate(dim, self.dims) for dim in type_.shape)
            self._shapes[type_] = shape
        return shape

    def _bound(self, attr: Any) -> Any:
        """An attribute with the values of its symbolic dims."""
        if isinstance(attr, Expr):
            return evaluate(attr, self.dims)
        if isinstance(attr, tuple):
            return tuple(self._bound(item) for item in attr)
        if isinstance(attr, TensorType):
            return attr.with_shape(self.shape(attr))
        return attr
