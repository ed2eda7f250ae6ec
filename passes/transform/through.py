"""Masks the way that values go: which elements of a result come from any that is taken.

So they go with tangents, which are 0 where a mask put something that has none. A gradient that the
user wrote is a graph, of which no row says how masks go back (``support``): they go forward through
it, from the cotangents of results to those of operands. An element that is computed only from what
is left out is left out.

    backward(s, dy)        m of dy
      %t = mul dy, s       m
      %u = slice %t        slice m
      %v = sort %t         all is taken: which ones come from where is not known
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from types import MappingProxyType

from ...ir.graph import Builder, Graph, Node, Value
from ...ir.ops.axes.reduce import contract_letters
from ...ir.ops.op import Kind
from ...ir.types import BOOL, I32
from .support import Reach, Support, both, either


def _nothing() -> Value:
    raise AssertionError("this is no mask")


NOTHING = Support(_nothing)
"""Stands for the mask of a value of which nothing counts."""

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
            mask = mask_through(b, node, [known[value] for value in node.inputs], [
                marks.get(value, NOTHING) for value in node.inputs])
            marks.update(dict.fromkeys(node.results, mask))
    return [marks.get(value) for value in graph.results]


def mask_through(
    b: Builder, node: Node, inputs: Sequence[Value], given: Sequence[Support | None]
) -> Support | None:
    """The mask of the results of a node of these operands, of which ``given`` has the masks;
    ``NOTHING`` for those of which nothing counts."""
    kind, op = node.op.kind, node.op
    some = [mask for mask in given if mask is not NOTHING]
    if kind is Kind.MAP and op.taken is not None:
        rows = op.taken(b, *inputs, node.results[0], **node.attrs)
        given = [mask if mask is NOTHING or row is None else both(b, row, mask, Reach.FAR)
                 for mask, row in zip(given, rows, strict=True)]
        return _any(b, given) if len(some) == 1 or any(some) else None
    if kind in (Kind.MAP, Kind.COMPLEX):
        same = all(x.shape == node.results[0].shape for x, mask in zip(
            inputs, given, strict=True) if mask is not NOTHING)
        return _any(b, given) if same else None
    moved = len(given) if kind is Kind.VIEW else _MOVED.get(kind, 0)
    if any(mask is not NOTHING for mask in given[moved:]) or not moved:
        return None
    fills = "value" in node.attrs or NOTHING in given[:moved]
    if None in some and not (fills and (kind is Kind.VIEW or (
            kind is Kind.SCATTER and not (op.combine and given[0] is None)))):
        return None
    return Support(lambda: _made(b, node, inputs, given[:moved]), parents=tuple(
        mask for mask in given[:moved] if mask is not None and mask is not NOTHING))


def _any(b: Builder, given: Sequence[Support | None]) -> Support | None:
    return reduce(partial(either, b), [mask for mask in given if mask is not NOTHING])


def _made(
    b: Builder, node: Node, inputs: Sequence[Value], given: Sequence[Support | None]
) -> Value:
    masks = [b.full(mask is None, x.type.with_dtype(BOOL)) if mask is None or mask is NOTHING
             else mask.mask() for x, mask in zip(inputs, given, strict=False)]
    rest = inputs[len(masks):]
    made: Value
    if node.op.kind is Kind.REDUCE:
        made = b.any(masks[0], axes=node.attrs["axes"])
    elif node.op.kind is Kind.CONTRACT:
        made = reduce(b.or_, [_multiplied(b, node, at, mask) for at, mask in enumerate(masks)
                              if given[at] is not NOTHING])
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
