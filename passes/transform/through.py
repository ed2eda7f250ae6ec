"""Masks the way that values go: which elements of a result come from any that is taken.

A gradient that the user wrote is a graph, of which no row says how masks go back (``support``). So
they go forward through it, from the cotangents of results to those of operands: an element that is
computed only from what is left out is left out.

    backward(s, dy)        m of dy
      %t = mul dy, s       m
      %u = slice %t        slice m
      %v = sort %t         all is taken: which ones come from where is not known
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from types import MappingProxyType

from ...ir.graph import Builder, Graph, Node, Value
from ...ir.ops.axes.reduce import contract_letters
from ...ir.ops.op import Kind
from ...ir.types import BOOL, I32
from .support import Support, either, known_support

# How many of the first operands are what is moved or added up, of kinds that have others too.
_MOVED = MappingProxyType({
    Kind.REDUCE: 1, Kind.SCAN: 2, Kind.CONTRACT: 2, Kind.GATHER: 1, Kind.SCATTER: 2})


def taken_through(
    b: Builder, graph: Graph, known: Mapping[Value, Value],
    masks: Mapping[Value, Support | None],
) -> list[Support | None]:
    """The masks of the results of a graph, from those of parameters; what depends on none of these
    has no part in it, and None is a mask of which all is taken. ``known`` says what stands for the
    values of the graph."""
    marks = dict(masks)
    for node in graph.nodes:
        if node.results[0] in known and any(value in marks for value in node.inputs):
            marks.update(dict.fromkeys(node.results, _through(b, node, known, marks)))
    return [marks.get(value) for value in graph.results]


def _through(
    b: Builder, node: Node, known: Mapping[Value, Value], marks: Mapping[Value, Support | None]
) -> Support | None:
    """The mask of the results of a node, of those that its operands have."""
    given = [marks[value] for value in node.inputs if value in marks]
    kind, shape = node.op.kind, node.results[0].shape
    if None in given:
        return None
    if kind in (Kind.MAP, Kind.COMPLEX):
        same = all(x.shape == shape for x in node.inputs if x in marks)
        return reduce(partial(either, b), given) if same else None
    moving = node.inputs[:_MOVED.get(kind, 0)] if kind is not Kind.VIEW else node.inputs
    if len(given) > sum(value in marks for value in moving):
        return None
    return known_support(_made(b, node, len(moving), known, marks))


def _made(
    b: Builder, node: Node, moved: int, known: Mapping[Value, Value],
    marks: Mapping[Value, Support | None],
) -> Value:
    masks = [own.mask() if (own := marks.get(value)) is not None
             else b.full(False, value.type.with_dtype(BOOL)) for value in node.inputs[:moved]]
    rest = [known[value] for value in node.inputs[moved:]]
    made: Value
    if node.op.kind is Kind.REDUCE:
        made = b.any(masks[0], axes=node.attrs["axes"])
    elif node.op.kind is Kind.CONTRACT:
        made = reduce(b.or_, [_multiplied(b, node, at, mask) for at, mask in enumerate(masks)
                              if node.inputs[at] in marks])
    elif node.op.kind is Kind.SCAN:
        made = b.cumor(reduce(b.or_, masks), axis=node.attrs["axis"])
    elif node.op.combine:  # a scatter that adds
        numbers = [b.cast(mask, dtype=I32) for mask in masks]
        made = b.ne(b.emit(node.op, [*numbers, *rest], node.attrs).results[0], 0)
    else:
        attrs = {**node.attrs, "value": 0.0} if "value" in node.attrs else node.attrs
        made = b.emit(node.op, [*masks, *rest], attrs).results[0]
    return made


def _multiplied(b: Builder, node: Node, at: int, mask: Value) -> Value:
    """The elements of a contraction for which one of an operand's counts."""
    *letters, out = contract_letters(node.attrs["dims"])
    own = letters[at]
    if gone := tuple(axis for axis, letter in enumerate(own) if letter not in out):
        mask = b.any(mask, axes=gone)
    kept = [letter for letter in own if letter in out]
    order = tuple(sorted(range(len(kept)), key=lambda place: out.index(kept[place])))
    if order != tuple(range(len(kept))):
        mask = b.transpose(mask, perm=order)
    made: Value = b.broadcast(mask, shape=node.results[0].shape,
                              axes=tuple(sorted(out.index(letter) for letter in kept)))
    return made
