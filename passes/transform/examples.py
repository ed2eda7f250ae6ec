"""Ops that take a batch of operands as they are: axes move up by one, letters and indices grow.

    sum x {axes = (0,)}                    sum x {axes = (1,)}
    contract x, w {"mk,kn->mn"}            contract x, w {"zmk,kn->zmn"}
    gather x, i {axes = (0,)}              gather x, z, i {axes = (0, 1)}, of z = 0, 1, 2, ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...ir.diagnose import Error
from ...ir.graph import Builder, Node, Value
from ...ir.indices.index import Dim
from ...ir.letters import LETTERS
from ...ir.ops.axes.reduce import contract_letters
from ...ir.ops.op import Kind
from ...ir.record import record
from ...ir.types import I64, TensorType


@record(frozen=True)
class Batched:
    """A value, and whether its first axis is that of the batch."""

    value: Value
    is_batched: bool


def _up(attr: Any, size: Dim) -> Any:
    """Numbers of axes, with an axis before them."""
    return tuple(axis + 1 for axis in attr) if isinstance(attr, tuple) else attr + 1


def _first(extent: int) -> Callable[[Any, Dim], Any]:
    """An entry for each axis, with one for the new axis; a number stays."""
    return lambda attr, size: (extent, *attr) if isinstance(attr, tuple) else attr


# What an axis before all others makes of the attributes of views.
_VIEWS: Mapping[str, Callable[[Any, Dim], Any]] = MappingProxyType({
    "axis": _up, "along": _up,
    "axes": lambda attr, size: (0, *_up(attr, size)),
    "perm": lambda attr, size: (0, *_up(attr, size)),
    "shape": lambda attr, size: (size, *attr),
    "start": _first(0), "step": _first(1), "low": _first(0), "high": _first(0),
    "interior": _first(0),
})
_AXES = MappingProxyType({"axis": _up, "axes": _up})
_NOTHING: Mapping[str, Callable[[Any, Dim], Any]] = MappingProxyType({})
# Kinds of which the op itself takes a batch of all operands, and their attributes.
_NATIVE = MappingProxyType({
    Kind.MAP: _NOTHING, Kind.COMPLEX: _NOTHING, Kind.ALIAS: _NOTHING, Kind.SORT: _NOTHING,
    Kind.VIEW: _VIEWS, Kind.REDUCE: _AXES, Kind.SCAN: _AXES, Kind.HOST: _AXES,
})


@record(frozen=True)
class Examples:
    """Nodes for ``size`` examples, that are added to a graph."""

    builder: Builder
    size: Dim

    def type_of(self, type_: TensorType) -> TensorType:
        """The type of a batch."""
        return type_.with_shape((self.size, *type_.shape))

    def whole(self, x: Batched) -> Value:
        """A value with the axis of the batch: repeated if it has none."""
        if x.is_batched:
            return x.value
        type_ = x.value.type
        made: Value = self.builder.broadcast(x.value, shape=(self.size, *type_.shape),
                                             axes=tuple(range(1, type_.rank + 1)))
        return made

    def moved(self, value: Value, source: int, to: int) -> Value:
        """An axis in another place."""
        order = list(range(value.type.rank))
        order.insert(to, order.pop(source))
        if source == to:
            return value
        made: Value = self.builder.transpose(value, perm=tuple(order))
        return made

    def all(self, batched: bool, values: Iterable[Value]) -> list[Batched]:
        """Values that have the axis of the batch, or have not."""
        return [Batched(value, batched) for value in values]

    def computed(self, node: Node, operands: Sequence[Batched]) -> list[Batched] | None:
        """The results of a node, whose op takes a batch; None where it does not."""
        match node.op.kind:
            case Kind.CONTRACT:
                return [self._contract(node, operands)]
            case Kind.GATHER:
                return [self._gather(node, operands)]
            case Kind.SCATTER:
                return [self._scatter(node, operands)]
            case Kind.SEARCH if not operands[0].is_batched:
                return self.all(True, self.builder.emit(
                    node.op, [x.value for x in operands], node.attrs).results)
            case kind if kind in _NATIVE:
                made = self._native(node, operands, _NATIVE[kind])
                if made is not None:
                    return self.all(True, made)
        return None

    def _native(
        self, node: Node, operands: Sequence[Batched],
        changes: Mapping[str, Callable[[Any, Dim], Any]],
    ) -> Sequence[Value] | None:
        """The op of a batch of its operands, if its row takes one and gives one of its results."""
        attrs = {name: changes[name](attr, self.size) if name in changes else attr
                 for name, attr in node.attrs.items()}
        # Functions of the host may have integers that are sizes.
        stay = [node.op.kind is Kind.HOST and not x.is_batched and x.value.dtype.is_int
                for x in operands]
        types = [x.value.type if x.is_batched or keeps else self.type_of(x.value.type)
                 for x, keeps in zip(operands, stay, strict=True)]
        try:
            found = node.op.infer(*types, **attrs)
        except Error:
            return None
        if node.op.foreign or found != tuple(self.type_of(x.type) for x in node.results):
            return None
        inputs = [x.value if keeps else self.whole(x)
                  for x, keeps in zip(operands, stay, strict=True)]
        return self.builder.emit(node.op, inputs, attrs).results

    def _contract(self, node: Node, operands: Sequence[Batched]) -> Batched:
        lhs, rhs, out = contract_letters(node.attrs["dims"])
        new = next(letter for letter in LETTERS if letter not in lhs + rhs)
        left, right = (new + letters if x.is_batched else letters
                       for letters, x in zip((lhs, rhs), operands, strict=True))
        made = self.builder.emit(node.op, [x.value for x in operands],
                                 {"dims": f"{left},{right}->{new}{out}"})
        return Batched(made.results[0], True)

    def _gather(self, node: Node, operands: Sequence[Batched]) -> Batched:
        x, *indices = operands
        axes = node.attrs["axes"]
        if not any(index.is_batched for index in indices):
            made = self.builder.emit(node.op, [each.value for each in operands],
                                     {"axes": _up(axes, self.size)}).results[0]
            return Batched(self.moved(made, indices[0].value.type.rank, 0), True)
        places = [self.whole(index) for index in indices]
        if x.is_batched:
            places, axes = [self._number(places[0]), *places], (0, *_up(axes, self.size))
        return Batched(self.builder.emit(node.op, [x.value, *places], {"axes": axes}).results[0],
                       True)

    def _scatter(self, node: Node, operands: Sequence[Batched]) -> Batched:
        x, updates, *indices = operands
        axes = _up(node.attrs["axes"], self.size)
        base, new = self.whole(x), self.whole(updates)
        if any(index.is_batched for index in indices):
            places = [self.whole(index) for index in indices]
            places, axes = [self._number(places[0]), *places], (0, *axes)
        else:
            places = [index.value for index in indices]
            new = self.moved(new, 0, places[0].type.rank)
        return Batched(self.builder.emit(node.op, [base, new, *places], {"axes": axes}).results[0],
                       True)

    def _number(self, index: Value) -> Value:
        """The number of the example, as an index beside another one."""
        made: Value = self.builder.iota(axis=0, dtype=I64, shape=index.shape)
        if index.dtype != I64:
            made = self.builder.cast(made, dtype=index.dtype)
        return made
