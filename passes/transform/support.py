"""Of a cotangent, where it is 0 because the elements that it belongs to were left out.

The rule: what a mask, a ``where=`` or an index leaves out has the gradient 0, whatever the slope of
the functions around it. The chain rule alone has 0 times that slope, which is NaN where it is
infinite or NaN itself:

    y = sqrt x                 dx = masked(m, dy / (2 * y), 0)     0 / 0 where x is 0 and m is not
    z = masked(m, y, 0)        dy = masked(m, dz, 0)

Rows that leave elements out say which they take (``OpDef.taken``). That mask goes back with the
cotangent, from the result of each node to its operands, and at each elementwise function whose
slope matters the cotangent is set to 0 once more. ``select`` takes both of its operands:
``np.where(m, sqrt(x), 0)`` has the gradient of the chain rule.

A mask is computed only where it is asked for.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from functools import partial, reduce

from ...ir.graph import Builder, Node, Value, constant_of
from ...ir.indices.index import product
from ...ir.ops.axes.reduce import contract_letters
from ...ir.ops.axes.scan import turned
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ...ir.record import record
from ...ir.types import BOOL, TensorType
from .harmless import identity

_BARE = 6  # nodes between a cotangent and a part of it that are looked at
_ALIKE = (Kind.MAP, Kind.COMPLEX)
_MOVING = (Kind.VIEW, Kind.GATHER, Kind.SCATTER, Kind.COMPRESS)
CARRYING = frozenset((*_ALIKE, *_MOVING, Kind.REDUCE, Kind.CONTRACT))
"""The kinds of ops whose operands have a mask if their result has one."""


class Reach(enum.IntEnum):
    """How far a mask goes back. What slices leave out would slow down products, which are the most
    of ordinary gradients, and what indices of each element leave out sums and repeated elements,
    as cross-entropy has them."""

    FAR = 0
    SUMS = 1   # not through products
    NEAR = 2   # through elementwise functions and changes of shape alone


@record(eq=False)
class Support:
    """The mask of a cotangent, of its shape: appended when it is asked for, once, and after those
    of ``parents``, of which it is made."""

    made: Callable[[], Value] | Value
    reach: Reach = Reach.FAR
    parents: Sequence[Support] = ()

    def mask(self) -> Value:
        """The mask. Chains of parents are as long as a program, so that is no recursion."""
        waiting = [self]
        while waiting:
            here = waiting[-1]
            missing = [each for each in here.parents if not isinstance(each.made, Value)]
            if missing and not isinstance(here.made, Value):
                waiting += missing
                continue
            waiting.pop()
            if not isinstance(here.made, Value):
                here.made = here.made()
        assert isinstance(self.made, Value)
        return self.made


Part = tuple[Value | None, Support | None]
"""A cotangent, where there is a path, and its mask, where not all is taken."""


def known_here(b: Builder, condition: Value, wanted: bool, x: Value) -> Support:
    """That of all of x or nothing, by a condition that is to be True, or False."""
    return Support(lambda: b.broadcast(
        condition if wanted else b.not_(condition), shape=x.shape, axes=()), Reach.SUMS)


def either(b: Builder, one: Support | None, other: Support | None) -> Support | None:
    """The mask of a sum of two cotangents; None where all is taken."""
    if one is None or other is None or one is other:
        return one if one is other else None
    return Support(lambda: _written(b, one.mask(), other.mask()), max(one.reach, other.reach),
                   (one, other))


def of_results(
    b: Builder, node: Node, given: Sequence[Value | None], masks: Sequence[Support | None]
) -> Support | None:
    """The mask of a node's one result. Of functions of the host, which may have several, that of
    their stack: they take the axes of each matrix, or of each transform, together."""
    if node.op.kind is not Kind.HOST:
        return masks[0] if len(masks) == 1 else None
    left = [mask for part, mask in zip(given, masks, strict=True) if part is not None]
    known = [mask for mask in left if mask is not None and not mask.reach]
    if len(known) < len(left) or not left or node.op.foreign:
        return None
    stacks: list[Support | None] = [_of_stack(b, node, mask) for mask in known]
    return reduce(partial(either, b), stacks)


def _of_stack(b: Builder, node: Node, support: Support) -> Support:
    """Whether anything is taken of each matrix, or of each line that is transformed."""
    def made() -> Value:
        mask = support.mask()
        together = node.attrs["axes"] if node.op.room == "fft" else tuple(
            range(node.inputs[0].type.rank - 2, mask.type.rank))
        return b.any(mask, axes=together) if together else mask

    return Support(made, parents=(support,))


def supports(b: Builder, node: Node, support: Support | None) -> list[Support | None]:
    """The masks of the cotangents of a node's operands, of that of its result (``of_results``)."""
    found = [None if support is None or not x.dtype.is_inexact else _before(b, node, at, support)
             for at, x in enumerate(node.inputs)]
    row = node.op.taken
    if row is None:
        return found
    if node.op.kind in _MOVING and found[0] is not None:
        return found  # a mask that is moved is False where nothing comes from
    reach = Reach.FAR
    if node.op.kind is Kind.VIEW:
        reach = Reach.SUMS
    elif node.op.kind in (Kind.GATHER, Kind.SCATTER) and len(node.attrs["axes"]) > 1:
        reach = Reach.NEAR
    rows = row(b, *node.inputs, node.results[0], **node.attrs)
    return [own if mask is None or not x.dtype.is_inexact else both(b, mask, own, reach)
            for x, mask, own in zip(node.inputs, rows, found, strict=True)]


def joined(b: Builder, held: Value, mask: Value) -> Value:
    """Where either holds, of which the second may be many of them."""
    waiting = [mask]
    while waiting:
        mask = waiting.pop()
        if mask.node is not None and mask.node.op is OPS["or_"]:
            waiting += mask.node.inputs[::-1]
        else:
            held = _written(b, held, mask)
    return held


def _written(b: Builder, held: Value, mask: Value) -> Value:
    """Where either holds. What indices take is written into what is held, in its place: all of some
    places, or a part of one."""
    node = mask.node
    found: Value
    if node is not None and node.op is OPS["scatter"] and constant_of(node.inputs[0]) is False:
        _, taken, *indices = node.inputs
        whole = constant_of(taken) is True
        if whole or product(indices[0].shape) == 1:
            if not whole:
                taken = b.or_(b.gather(held, *indices, axes=node.attrs["axes"]), taken)
            found = b.scatter(held, taken, *indices, **node.attrs)
            return found
    found = b.or_(held, mask)
    return found


def both(
    b: Builder, mask: Callable[[], Value], own: Support | None, reach: Reach
) -> Support:
    """What a mask leaves of another one."""
    if own is None:
        return Support(mask, reach)
    return Support(lambda: b.and_(mask(), own.mask()), reach, (own,))


def _before(b: Builder, node: Node, at: int, support: Support) -> Support | None:
    """The mask of an operand, of that of the result."""
    kind, x, reach = node.op.kind, node.inputs[at], support.reach
    if kind in _ALIKE:
        return support if x.shape == node.results[0].shape else None
    if (reach is Reach.NEAR and (kind is not Kind.VIEW or node.op.alias == "repeated")) or (
            reach and kind in (Kind.CONTRACT, Kind.HOST)):
        return None
    if kind not in (*CARRYING, Kind.HOST, Kind.SCAN):
        return None
    return Support(lambda: _of_operand(b, node, at, support.mask()), reach, (support,))


def _of_operand(b: Builder, node: Node, at: int, mask: Value) -> Value:
    """The mask of an operand, of that of a result that is not of its elements alone."""
    kind, x = node.op.kind, node.inputs[at]
    if kind is Kind.CONTRACT:
        return _shared(b, node, at, mask)
    if kind is Kind.HOST:
        return _of_each(b, node, x.type, mask)
    if kind is Kind.SCAN:
        return _up_to(b, mask, node.attrs["axis"])
    if kind is not Kind.REDUCE:
        return _moved(b, node, at, mask)
    axes = node.attrs["axes"]
    made: Value = b.broadcast(mask, shape=x.shape, axes=tuple(
        axis for axis in range(x.type.rank) if axis not in axes))
    return made


def _moved(b: Builder, node: Node, at: int, mask: Value) -> Value:
    """A mask moved as the cotangent is: an element is taken if any place that it goes to is."""
    grad = node.op.grad
    assert grad is not None
    found: Value
    if node.op.kind is Kind.SCATTER:
        found = grad(b, mask, *node.inputs, node.results[0], **node.attrs)[at]
        return found
    if node.op.kind is Kind.GATHER and product(node.inputs[1].shape) == 1:
        found = b.scatter(b.full(False, node.inputs[0].type.with_dtype(BOOL)), mask,
                          *node.inputs[1:], **node.attrs)
        return found
    numbers = b.cast(mask, dtype=node.inputs[at].dtype)
    found = b.ne(grad(b, numbers, *node.inputs, node.results[0], **node.attrs)[at], 0.0)
    return found


def _of_each(b: Builder, node: Node, type_: TensorType, mask: Value) -> Value:
    """The mask of a stack, for each of its elements."""
    together = node.attrs["axes"] if node.op.room == "fft" else range(type_.rank)[-2:]
    made: Value = b.broadcast(mask, shape=type_.shape, axes=tuple(
        axis for axis in range(type_.rank) if axis not in together))
    return made


def _up_to(b: Builder, mask: Value, axis: int) -> Value:
    """Along an axis, what comes before anything that is taken."""
    found: Value = turned(b, b.cumor(turned(b, mask, axis), axis=axis), axis)
    return found


def _shared(b: Builder, node: Node, at: int, mask: Value) -> Value:
    """Of the result of a contraction: where an element of an operand meets any that is taken."""
    *letters, out = contract_letters(node.attrs["dims"])
    own, x = letters[at], node.inputs[at]
    if gone := tuple(axis for axis, letter in enumerate(out) if letter not in own):
        mask = b.any(mask, axes=gone)
    kept = [letter for letter in out if letter in own]
    order = sorted(range(len(kept)), key=lambda place: own.index(kept[place]))
    if order != list(range(len(kept))):
        mask = b.transpose(mask, perm=tuple(order))
    found: Value = b.broadcast(mask, shape=x.shape,
                               axes=tuple(sorted(own.index(letter) for letter in kept)))
    return found


def leaving_out(b: Builder, mask: Value, x: Value) -> Value:
    """x itself, of which is left out what the mask does not have."""
    made: Value = b.masked(mask, x, b.stop_gradient(x))
    return made


def operands_taken(
    b: Builder, node: Node, support: Support | None
) -> tuple[Sequence[Value], Sequence[Value]]:
    """The operands and results that the gradient of a node computes with. A contraction adds up
    products, of which those with what is left out must be 0; a matrix that is left out must not
    fail it."""
    inputs, results = node.inputs, node.results
    if support is None:
        return inputs, results
    if node.op.kind is Kind.CONTRACT and not support.reach:
        inputs = tuple(
            b.masked(_shared(b, node, at, support.mask()), x, 0.0) if x.dtype.is_inexact else x
            for at, x in enumerate(inputs))
    elif _is_of_matrices(node):
        rank = inputs[0].type.rank
        inputs, results = (tuple(
            b.masked(_of_each(b, node, x.type, support.mask()), x, identity(b, x.type))
            if x.dtype.is_inexact and x.type.rank == rank else x for x in values)
            for values in (inputs, results))
    return inputs, results


def _is_of_matrices(node: Node) -> bool:
    return node.op.kind is Kind.HOST and node.op.room == "linalg"


def kept_zero(
    b: Builder, node: Node, given: Sequence[Value | None], part: Value, support: Support | None
) -> Value:
    """The cotangent of an operand, 0 where it is to be."""
    sloping = node.op.kind in (*_ALIKE, Kind.REDUCE, Kind.SCAN) or _is_of_matrices(node)
    if support is None or not sloping or _is_bare(part, given):
        return part
    made: Value = b.masked(support.mask(), part, 0.0)
    return made


def _is_bare(part: Value, given: Sequence[Value | None], depth: int = _BARE) -> bool:
    """True if a part is surely 0 where the cotangent is: nothing but that and finite constants
    are in it."""
    if part.dtype == BOOL or any(part is each for each in given):
        return True
    constant = constant_of(part)
    if constant is not None:
        return math.isfinite(abs(constant))
    node = part.node
    return (depth > 0 and node is not None and node.op.kind in (*_ALIKE, Kind.VIEW)
            and bool(node.inputs) and all(_is_bare(x, given, depth - 1) for x in node.inputs))
