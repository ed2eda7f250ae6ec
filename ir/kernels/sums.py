"""What reductions, searches and products are in NumPy: their terms, which lie along the last axis,
combined in the order that is theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scalar.primitives import PRIMITIVES
from .combine import Order, identity
from .kernel import Contract, Reduce, Search

Array = NDArray[Any]


def reduced(stmt: Reduce, terms: Array) -> Array:
    """The terms of a reduction combined, from the identity on."""
    combine = PRIMITIVES[stmt.combine].numpy
    assert isinstance(combine, np.ufunc)
    start = np.array(identity(stmt.combine, stmt.dtype), stmt.dtype.numpy)
    if stmt.order is not None:
        return reduce_in_order(combine, terms, start, stmt.order)
    return np.asarray(combine.reduce(terms, axis=-1, dtype=stmt.dtype.numpy, initial=start))


def searched(stmt: Search, terms: Array) -> Array:
    """Where the extreme is that a search is for."""
    return np.asarray((np.argmax if stmt.combine == "max" else np.argmin)(terms, axis=-1))


def contracted(stmt: Contract, lhs: Array, rhs: Array) -> Array:
    """The sum of products: chains of multiply-adds, of so many terms, and the chains pairwise."""
    shape = np.broadcast_shapes(lhs.shape[:-1], rhs.shape[:-1])
    chains: list[Array] = []
    for k in range(lhs.shape[-1]):
        if k == 0 or (stmt.chunk and k % stmt.chunk == 0):
            chains.append(np.zeros(shape, stmt.dtype.numpy))
        left, right = lhs[..., k], rhs[..., k]
        chains[-1] = (PRIMITIVES["fma"].numpy(left, right, chains[-1]) if stmt.dtype.is_float
                      else left * right + chains[-1])
    return _pairwise(np.add, chains) if chains else np.zeros(shape, stmt.dtype.numpy)


def reduce_in_order(combine: np.ufunc, terms: Array, start: Array, order: Order) -> Array:
    """The last dimension of ``terms`` combined from ``start`` as ``Order`` says."""
    kept, count = terms.shape[:-1], terms.shape[-1]
    rounds = -(-(order.chunk or max(count, 1)) // order.lanes)
    chunks = max(1, -(-count // (rounds * order.lanes)))
    padded = np.full((*kept, chunks * rounds * order.lanes), start, start.dtype)
    padded[..., :count] = terms
    padded = padded.reshape(*kept, chunks, rounds, order.lanes)
    lanes = np.full((*kept, chunks, order.lanes), start, start.dtype)
    for at in range(rounds):
        lanes = combine(lanes, padded[..., at, :])
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = combine(lanes[..., :half], lanes[..., half:])
    return _pairwise(combine, list(np.moveaxis(lanes[..., 0], -1, 0)))


def _pairwise(combine: np.ufunc, sums: Sequence[Array]) -> Array:
    """Sums combined by neighbours; an odd last one goes up unchanged."""
    while len(sums) > 1:
        sums = [*map(combine, sums[:-1:2], sums[1::2]), *(sums[-1:] if len(sums) % 2 else ())]
    return np.asarray(sums[0])
