"""Reshapes move below the elementwise ops that follow a contraction or a reduction.

There they cost nothing: a result is stored as another shape by the kernel that computes it. So
what comes after a product of matrices stays in its kernel, whatever shapes are between:

    maximum(reshape(x @ w), 0)    ->    reshape(maximum(x @ w, 0))
    add(reshape(x @ w), bias)     ->    reshape(add(x @ w, bias'))      bias' repeats it as x @ w is
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ...ir.graph import Value, constant_of
from ...ir.indices.index import Dim, product, symbol
from ...ir.ops.op import Kind, OpDef
from ...ir.ops.table import OPS
from .rewrite import Match, Rewriter, Rule

_LETTERS = "xyz"
_STEPS = 64  # back from a reshape, to what computes the value


def _is_computed(value: Value) -> bool:
    """Whether elementwise ops alone lie between a value and a contraction or a reduction of its
    shape."""
    shape, node = value.shape, value.node
    if all(dim == 1 for dim in shape):
        return False  # one element is stored anywhere at no cost
    for _ in range(_STEPS):
        if node is None or node.results[0].shape != shape:
            return False
        if node.op.kind in (Kind.CONTRACT, Kind.REDUCE):
            return True
        if node.op.kind is not Kind.MAP:
            return False
        makers = [operand.node for operand in node.inputs if operand.node is not None
                  and operand.node.op.kind in (Kind.MAP, Kind.CONTRACT, Kind.REDUCE)
                  and operand.node.inputs]
        node = makers[0] if makers else None
    return False


def groups_of(shape: Sequence[Dim], other: Sequence[Dim]) -> list[tuple[range, range]]:
    """The shortest runs of axes of two shapes that have equal products, in order.

    (10, 20, 96) and (200, 96) have (10, 20) | (200,) and (96,) | (96,); 1 may be equal to none.
    """
    found: list[tuple[range, range]] = []
    first = second = 0
    while first < len(shape) or second < len(other):
        rest = [(range(first, one), range(second, two)) for one in range(first, len(shape) + 1)
                for two in range(second, len(other) + 1)]
        rest.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
        equal = [pair for pair in rest[1:] if product(shape[at] for at in pair[0]) == product(
            other[at] for at in pair[1])]
        found.append(equal[0] if equal else rest[-1])
        first, second = (group.stop for group in found[-1])
    return found


def _repeats(value: Value) -> tuple[int, ...] | None:
    """The axes of a view that are those of its operand, along the others of which it repeats."""
    node = value.node
    if node is None or node.op.view is None or len(node.inputs) != 1:
        return None
    index = tuple(symbol(f"@{at}", dim) for at, dim in enumerate(value.shape))
    types = tuple(operand.type for operand in node.inputs)
    piece, *more = node.op.view(index, types, value.type, **node.attrs)
    if more or piece.conditions or not all(dim in index for dim in piece.indices):
        return None
    axes = tuple(index.index(dim) for dim in piece.indices)
    whole = node.inputs[piece.operand].shape == tuple(value.shape[axis] for axis in axes)
    return axes if whole and all(a < b for a, b in pairwise(axes)) else None


def _reshaped(r: Rewriter, value: Value, shape: tuple[Dim, ...]) -> Value | None:
    """The elements of an operand as another shape; None where that would take more than reading
    it elsewhere."""
    constant = constant_of(value)
    if constant is not None:
        return r.builder.full(constant, value.type.with_shape(shape))
    node, spread = value.node, _repeats(value)
    if node is None or spread is None:
        return r.reshape(value, shape=shape)  # type: ignore[no-any-return]
    inner: list[Dim] = []
    axes: list[int] = []
    groups = groups_of(value.shape, shape)
    for here, there in groups:
        whole = [axis in spread for axis in here]
        if all(whole):
            axes += there
            inner += [shape[axis] for axis in there]
        elif any(whole):  # what is computed of a row's number is computed once for the row
            rows = here is not groups[-1][0]
            return r.reshape(value, shape=shape) if rows else None
    (operand,) = node.inputs
    source = r.reshape(operand, shape=tuple(inner))
    return r.broadcast(source, shape=shape, axes=tuple(axes))  # type: ignore[no-any-return]


def _below(op: OpDef, at: int) -> Any:
    def replace(r: Rewriter, match: Match) -> Any:
        x = match["x"]
        if not _is_computed(x):
            return None
        operands = [x]
        for letter in _LETTERS[1:op.arity]:
            operand = _reshaped(r, match[letter], x.shape)
            if operand is None:
                return None
            operands.append(operand)
        operands.insert(at, operands.pop(0))
        moved = r.make(op, operands, match.attrs[0])[0]
        return r.reshape(moved, shape=match.type.shape)

    return replace


def _rule(op: OpDef, at: int) -> Rule:
    """The rule for a reshape as operand ``at``, the other operands being y and z."""
    assert op.arity is not None
    args = list(_LETTERS[1:op.arity])
    args.insert(at, "reshape(x)")
    return Rule(f"{op.name}-reshape-{at}", f"{op.name}({', '.join(args)})", _below(op, at))


RESHAPES: tuple[Rule, ...] = tuple(
    _rule(op, at) for op in OPS.values()
    if op.kind is Kind.MAP and op.arity and op.arity <= len(_LETTERS) and not op.indexed
    for at in range(op.arity))
