"""What views and reads have of an array: an index for some of its axes, as ranges tell it.

    %0 = slice %A {start = (t0, 0), shape = (1, 40)}        axis 0: t0; axis 1 from 0 on
    %1 = gather (reshape %0), %j                            axis 0: t0; axis 1: %j
"""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.graph import Node, Value
from ...ir.indices.index import Dim
from ...ir.ops.table import OPS
from ...ir.record import record
from .ranges import Ranges


@record(frozen=True, eq=False)
class Part:
    """A part of an array: an index for some of its axes, and for each dim the axis in which it
    lies, from where and how far from index to index; None for a dim of 1."""

    fixed: Mapping[int, Dim]
    dims: tuple[tuple[int, Dim, Dim] | None, ...]


def whole(array: Value) -> Part:
    """All of an array."""
    return Part({}, tuple([(axis, 0, 1) for axis in range(len(array.shape))]))


def part_of(node: Node, part: Part, ranges: Ranges) -> Part | None:
    """What a node has of a part of an array."""
    if node.op is OPS["slice"]:
        return _sliced(node, part)
    if node.op is OPS["reshape"]:
        kept = [(dim, size) for dim, size in zip(part.dims, node.inputs[0].shape, strict=True)
                if dim is not None]
        if [size for _, size in kept] != list(node.results[0].shape):
            return None
        return Part(part.fixed, tuple([dim for dim, _ in kept]))
    if node.op is not OPS["gather"]:
        return None
    fixed = dict(part.fixed)
    for axis, index in zip(node.attrs["axes"], node.inputs[1:], strict=True):
        dim, expr = part.dims[axis], ranges.expr(index)
        if dim is None and not (not index.shape and expr == 0):
            return None  # it may not be there
        if dim is None or index.shape:
            continue
        if not ranges.holds(expr) or not (isinstance(dim[2], int) or isinstance(expr, int)):
            return None  # it may count from the end
        fixed[dim[0]] = dim[1] + dim[2] * expr
    return Part(fixed, ())


def _sliced(node: Node, part: Part) -> Part | None:
    fixed, dims = dict(part.fixed), list(part.dims)
    for at, (start, step, size) in enumerate(zip(
            node.attrs["start"], node.attrs["step"], node.attrs["shape"], strict=True)):
        dim = dims[at]
        if dim is None:
            continue
        axis, first, stride = dim
        if not (isinstance(stride, int) and isinstance(step, int)):
            return None
        if size == 1:
            fixed[axis], dims[at] = first + start * stride, None
        else:
            dims[at] = axis, first + start * stride, stride * step
    return Part(fixed, tuple(dims))
