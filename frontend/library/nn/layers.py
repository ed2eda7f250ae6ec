"""Layers by themselves: products, tables of rows, dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracing.active import composite
from .normalization import affine


@composite
def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """x @ weight + bias, with ``weight`` of shape (inputs, outputs)."""
    return affine(x @ weight, None, bias)


@composite
def one_hot(ids: Any, num_classes: int, dtype: Any = np.float32) -> Any:
    """A new last axis of ``num_classes``: 1 at the id, else 0; all 0 for ids out of range."""
    classes = np.arange(num_classes, like=ids)
    return (np.expand_dims(ids, -1) == classes).astype(dtype)


@composite
def embedding(ids: Any, table: Any) -> Any:
    """Rows of ``table`` by integer ids; the result has the dims of ids, then those of a row."""
    return table[ids]


@composite
def dropout(x: Any, rate: float, rng: Any, training: bool = True) -> Any:
    """Each element 0 with probability ``rate``, else x / (1 - rate) (Srivastava et al., 2014).

    ``rng`` is a ``weft.random`` (or NumPy) generator. Without ``training`` it is x.
    """
    if not training or rate == 0:
        return x
    kept = rng.random(x.shape, dtype=np.float32) >= rate
    return np.where(kept, x * (1 / (1 - rate)), 0)
