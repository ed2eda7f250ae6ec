"""How far apart two traced integers are, if the graph tells: ``i + 3`` and ``i - 1`` are 4 apart.

Their difference is a sum of values, each with a factor. Going back through the nodes, a value is
replaced by what it is made of until nothing but a constant is left:

    hi = (i + 1) * 4      hi - lo      (i + 1) * 4 - lo      i * 4 + 4 - i * 4      4
    lo = i * 4
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ...ir.graph import Node, Value
from ...ir.indices.index import Dim
from .operand import as_dim
from .recorder import TraceContext
from .tracer import SymbolicDim, Tracer

Parts = tuple[tuple[Value | None, Dim], ...]  # values with factors; None is for a constant


def _number(value: Value) -> Dim | None:
    """The constant that a value is, if it is one."""
    made = _CONSTANTS.get(value.node.op.name) if value.node is not None else None
    return None if made is None or value.node is None else made(value.node.attrs)


def _product(node: Node) -> Parts | None:
    a, b = node.inputs
    number = _number(b)
    if number is not None:
        return ((a, number),)
    number = _number(a)
    return None if number is None else ((b, number),)


def _same(node: Node) -> Parts | None:
    """What passes its first operand on, checked or converted. Integers of 32 bits that wrap around
    are no places of an array that has less than 2**31 elements."""
    x = node.inputs[0]
    kept = x.dtype.is_int and x.dtype.itemsize >= 4
    return ((x, 1),) if kept else None


_CONSTANTS: Mapping[str, Callable[[Mapping[str, Any]], Dim]] = MappingProxyType({
    "full": lambda attrs: int(attrs["value"]), "dim": lambda attrs: attrs["size"]})
_PARTS: Mapping[str, Callable[[Node], Parts | None]] = MappingProxyType({
    "add": lambda node: ((node.inputs[0], 1), (node.inputs[1], 1)),
    "sub": lambda node: ((node.inputs[0], 1), (node.inputs[1], -1)),
    "neg": lambda node: ((node.inputs[0], -1),),
    "mul": _product,
    **dict.fromkeys(_CONSTANTS, lambda node: ((None, _CONSTANTS[node.op.name](node.attrs)),)),
    **dict.fromkeys(("unwrapped", "narrow", "ensure", "awaiting", "cast", "identity"), _same),
})


class _Sum:
    """A sum of values, each with a factor, and a constant."""

    def __init__(self) -> None:
        self.constant: Dim = 0
        self.terms: dict[int, tuple[Value, Dim]] = {}

    def add(self, value: Value | None, factor: Dim) -> None:
        if value is None:
            self.constant = self.constant + factor
            return
        _, known = self.terms.pop(id(value), (value, 0))
        if known + factor != 0:
            self.terms[id(value)] = value, known + factor

    def expand(self, node: Node) -> None:
        """Replace the result of a node by what it is made of."""
        found = self.terms.get(id(node.results[0])) if node.results else None
        parts = _PARTS.get(node.op.name) if found is not None else None
        made = None if parts is None else parts(node)
        if found is None or made is None:
            return
        del self.terms[id(found[0])]
        for value, factor in made:
            self.add(value, factor * found[1])


def is_computed(x: Any) -> bool:
    """True for a traced integer without dims; sizes are none."""
    return isinstance(x, Tracer) and not isinstance(x, SymbolicDim) and (
        x.ndim == 0 and x.dtype.kind in "iu")


def distance(ctx: TraceContext, start: Any, stop: Any) -> Dim | None:
    """``stop - start`` of integers, of which one is traced, if it is the same in every step."""
    total = _Sum()
    ends: tuple[tuple[Any, int], ...] = ((stop, 1), (start, -1))
    for x, sign in ends:
        if is_computed(x):
            total.add(ctx.value_of(x), sign)
        else:
            total.add(None, sign * as_dim(x))
    here: TraceContext | None = ctx
    while here is not None:
        for node in reversed(here.graph.nodes):
            if not total.terms:
                return total.constant
            total.expand(node)
        outer = {id(param): tracer for param, tracer in here.closure}
        for value, factor in list(total.terms.values()):
            if id(value) not in outer:
                return None
            del total.terms[id(value)]
            assert here.parent is not None
            total.add(here.parent.value_of(outer[id(value)]), factor)
        here = here.parent
    return total.constant if not total.terms else None

