"""Which indices are surely those of different places: lines along axes of their own.

    iota 4 + broadcast %i                     places i, i + 1, i + 2, i + 3
    a column of rows and a row of columns     places of a grid
"""

from __future__ import annotations

from collections.abc import Sequence

from ...graph import Value, constant_of
from ...indices.index import Dim, bounds

_ALIKE = ("unwrapped", "ensure", "cast")  # their first operand
_DEEP = 8  # nodes behind one another that are looked at: sums of a value with itself double


def are_distinct(indices: Sequence[Value], sizes: Sequence[Dim]) -> bool:
    """Whether no two elements of indices name one place, of axes of these sizes. Those from the end
    of an axis are below 0, so a line is no longer than its axis."""
    apart: set[int] = set()
    for index, size in zip(indices, sizes, strict=True):
        steps = _steps(index)
        moving = [] if steps is None else [at for at, step in enumerate(steps) if step]
        if steps is not None and len(moving) == 1:
            at, = moving
            left = size - (index.shape[at] - 1) * abs(steps[at])
            if (left if isinstance(left, int) else bounds(left)[0] or 0) > 0:
                apart.add(at)
    return all(at in apart or dim == 1 for at, dim in enumerate(indices[0].shape))


def _steps(value: Value, depth: int = _DEEP) -> tuple[int, ...] | None:
    """By how much integers change along each of their axes, where that is the same everywhere."""
    node, rank = value.node, value.type.rank
    if constant_of(value) is not None or not rank:
        return (0,) * rank
    if node is None or not depth:
        return None
    name, inputs = node.op.name, node.inputs
    if name == "iota":
        return tuple(int(at == node.attrs["axis"]) for at in range(rank))
    if name == "broadcast":
        inner, axes = _steps(inputs[0], depth - 1), node.attrs["axes"]
        return None if inner is None else tuple(
            inner[axes.index(at)] if at in axes else 0 for at in range(rank))
    if name in _ALIKE:
        return _steps(inputs[0], depth - 1)
    if name in ("add", "sub"):
        one, other = (_steps(each, depth - 1) for each in inputs)
        sign = 1 if name == "add" else -1
        return None if one is None or other is None else tuple(
            step + sign * more for step, more in zip(one, other, strict=True))
    factor = constant_of(inputs[1]) if name == "mul" else None
    steps = _steps(inputs[0], depth - 1) if type(factor) is int else None
    return None if steps is None or type(factor) is not int else tuple(
        step * factor for step in steps)
