"""A graph as TensorBoard reads it: a GraphDef of TensorFlow, with name scopes, devices, shapes.

A variable is a node that its reads and writes have as an input; parameters are placeholders. Bodies
of loops, branches and kernels are scopes inside of the scope of their node, with arguments of their
own, so that every edge can be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ...ir.graph import Graph, Node, Value
from ...ir.record import field, record
from ...ir.types import Device, TensorType

# The numbers that TensorFlow's types.proto gives to dtypes.
_NUMBERS = MappingProxyType({
    "f32": 1, "f64": 2, "i32": 3, "u8": 4, "i16": 5, "i8": 6, "c64": 8, "i64": 9, "bool": 10,
    "bf16": 14, "u16": 17, "c128": 18, "f16": 19, "u32": 22, "u64": 23, "f8e5m2": 24, "f8e4m3": 25})


def graph_def(graph: Graph) -> Any:
    """The GraphDef of a graph, as ``tensorboardX`` knows that message."""
    from tensorboardX.proto.graph_pb2 import GraphDef
    from tensorboardX.proto.versions_pb2 import VersionDef

    writer = _Writer()
    for name, type_ in graph.variables.items():
        writer.variables[name] = writer.add(name, "VariableV2", (), (type_,), graph.homes.get(name))
    writer.params(graph, (), "Placeholder", "")
    writer.nodes(graph.nodes, "")
    for at, value in enumerate(graph.results):
        writer.add(f"result_{at}", "Result", [writer.names[value]], (value.type,))
    return GraphDef(node=writer.found, versions=VersionDef(producer=22))


@record
class _Writer:
    found: list[Any] = field(default_factory=list)
    names: dict[Value, str] = field(default_factory=dict)       # of values: node, or node:port
    variables: dict[str, str] = field(default_factory=dict)
    _nodes: dict[Node, str] = field(default_factory=dict)
    _taken: Graph = field(default_factory=lambda: Graph(""))

    def add(self, name: str, op: str, inputs: Iterable[str], types: Iterable[TensorType],
            device: Device | None = None, attrs: Mapping[str, Any] | None = None) -> str:
        """Append a node; gives its name, in which TensorBoard's signs have no other meaning."""
        from tensorboardX.proto.attr_value_pb2 import AttrValue
        from tensorboardX.proto.node_def_pb2 import NodeDef

        plain = re.sub(r"[^\w.\-/]", "_", name, flags=re.ASCII).strip("/") or "_"
        plain = self._taken.unique_name(re.sub(r"/{2,}", "/", plain))
        types = tuple(types)
        values: dict[str, Any] = {}
        if types:
            values["T"] = AttrValue(type=_NUMBERS[types[0].dtype.name])
            values["_output_shapes"] = AttrValue(list=AttrValue.ListValue(
                shape=[_shape(type_) for type_ in types]))
            values["type"] = _text(", ".join(map(str, types)))
        for key, value in (attrs or {}).items():
            values[key] = _text(str(value))
        self.found.append(NodeDef(name=plain, op=op, input=list(inputs),
                                  device=_device(device), attr=values))
        return plain

    def params(self, graph: Graph, operands: Iterable[Value], op: str, scope: str) -> None:
        """Nodes of the parameters of a graph; those of a body have its operands as inputs."""
        given = [self.names[value] for value in operands]
        for at, value in enumerate(graph.params):
            self.names[value] = self.add(scope + value.name.removesuffix(":0"), op,
                                         given[at:at + 1], (value.type,))

    def nodes(self, nodes: Iterable[Node], scope: str) -> None:
        """Nodes in order, each after its bodies; recursion is by nesting of bodies only."""
        for node in nodes:
            inputs = [self.names[value] for value in node.inputs]
            bodies = {key: body for key, body in node.attrs.items() if isinstance(body, Graph)}
            for key, body in bodies.items():
                inner = f"{scope}{node.name}/{key}/"
                # A branch's condition is none of the operands of its bodies.
                operands = node.inputs[max(0, len(node.inputs) - len(body.params)):]
                self.params(body, operands if len(operands) == len(body.params) else (),
                            "Argument", inner)
                self.nodes(body.nodes, inner)
                inputs += [self.names[value] for value in body.results]
            var = node.attrs.get("var")
            if var in self.variables:
                inputs.append(self.variables[var])
            inputs += [f"^{self._nodes[earlier]}" for earlier in node.after
                       if earlier in self._nodes]
            places = {"source": ", ".join(map(str, node.locs))} if node.locs else {}
            name = self.add(scope + node.name, node.op.name, dict.fromkeys(inputs),
                            (value.type for value in node.results), node.device,
                            {**{key: value for key, value in node.attrs.items()
                                if key not in bodies}, **places})
            self._nodes[node] = name
            for value in node.results:
                self.names[value] = name if not value.index else f"{name}:{value.index}"


def _text(text: str) -> Any:
    from tensorboardX.proto.attr_value_pb2 import AttrValue

    return AttrValue(s=text.encode("utf-8", "replace"))


def _shape(type_: TensorType) -> Any:
    """A shape, in which sizes that are known at run time only are -1."""
    from tensorboardX.proto.tensor_shape_pb2 import TensorShapeProto

    return TensorShapeProto(dim=[TensorShapeProto.Dim(
        size=dim if isinstance(dim, int) else -1, name="" if isinstance(dim, int) else str(dim))
        for dim in type_.shape])


def _device(device: Device | None) -> str:
    """A device by the name that TensorFlow would give it."""
    if device is None:
        return ""
    parts = [f"job:{device.job}" if device.job is not None else "",
             f"task:{device.task}" if device.task is not None else "",
             "" if device.kind is None else
             f"device:{device.kind.upper()}:{'*' if device.index is None else device.index}"]
    return "".join(f"/{part}" for part in parts if part)
