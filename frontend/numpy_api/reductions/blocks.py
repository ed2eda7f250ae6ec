"""Long rows in blocks that a core's cache holds: what asks for an array twice reads it once.

A variance needs the mean first, log-sum-exp the largest element: two passes over memory. Of a block
both are made while it is near, and what blocks have found is joined: variances as by Chan, Golub
and LeVeque ("Updating formulae and a pairwise algorithm for computing sample variances", 1979), but
with what the rounding of the means of blocks leaves.

    f32[1000000] -> blocks f32[125,8000], no rest
    f32[1000003] -> blocks f32[244,4096], rest f32[579]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....ir.indices.index import product
from ...tracing.operand import as_number, reshape
from ...tracing.values.tracer import Tracer

LEAST = 1 << 18           # elements of a row that is cut: the second level of caches has fewer
SIZE, MOST = 1 << 12, 1 << 13  # elements of a block; one that leaves no rest may have up to MOST


def blocks_of(x: Tracer, axes: Sequence[int]) -> tuple[Tracer, Tracer | None] | None:
    """The rows that are reduced along the last ``axes``, in blocks ``[..., blocks, elements]``, and
    what they leave. None where rows are short, lie across others, or have a size with a name: the
    order of a sum depends on sizes alone, and not on the machine."""
    first = x.ndim - len(axes)
    length = product(x.type.shape[first:])
    if tuple(axes) != tuple(range(first, x.ndim)) or not isinstance(length, int) or (
            length < LEAST):
        return None
    size = next((size for size in range(MOST, MOST // 4, -1) if length % size == 0), SIZE)
    rows = x.type.shape[:first]
    flat = x if first == x.ndim - 1 else reshape(x, (*rows, length))
    count = length // size
    whole: Any = flat if count * size == length else flat[..., :count * size]
    rest: Any = None if count * size == length else flat[..., count * size:]
    return reshape(whole, (*rows, count, size)), rest


def spread(x: Any) -> tuple[Any, Any, Any]:
    """Of rows along the last axis: their means, as they are rounded, the sums of what lies around
    these, and of its squares."""
    mean = x.sum(-1) / as_number(x.shape[-1])
    around = x - mean[..., None]
    return mean, around.sum(-1), (around * around).sum(-1)


def around_mean(whole: Tracer, rest: Tracer | None) -> Any:
    """The sum of the squares around the mean of all, of blocks and a rest."""
    means, beside, squares = spread(whole)
    size, count = whole.shape[-1], means.shape[-1]
    total = size * means.sum(-1)
    if rest is None:
        centre = total / as_number(size * count)
    else:
        few = rest.shape[-1]
        mean, aside, square = spread(rest)
        centre = (total + few * mean) / as_number(size * count + few)
    # (x - centre)^2 = (x - mean)^2 + 2 (x - mean) (mean - centre) + (mean - centre)^2: the middle
    # would be 0 of means that are not rounded.
    away = means - centre[..., None]
    found = (squares + away * (2 * beside + size * away)).sum(-1)
    if rest is not None:
        off = mean - centre
        found = found + (square + off * (2 * aside + few * off))
    return found
