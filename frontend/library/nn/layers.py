"""Layers by themselves: products, tables of rows, dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ...tracing.context.active import composite
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
    """Rows of ``table`` by integer ids; the result has the dims of ids, then those of a row.

    Raises OutOfRangeError: W123 for ids that are no integers, and for one out of range (W124 in
    traced code, W122 outside).
    """
    if np.result_type(ids).kind not in "iu":
        raise error("W123", f"embedding: ids are {np.result_type(ids)}, not integers",
                    hint="the order is embedding(ids, table); convert ids: ids.astype(np.int64)")
    return table[ids]


@composite
def dropout(x: Any, rate: float, rng: Any, training: bool = True) -> Any:
    """Each element 0 with probability ``rate``, else x / (1 - rate) (Srivastava et al., 2014).

    ``rng`` is a ``weft.random`` (or NumPy) generator. Without ``training`` it is x. Raises
    ParameterError (W132) for a rate that is no probability, DTypeError (W112) for another ``rng``.
    """
    if isinstance(rate, (int, float)) and not 0 <= rate <= 1:
        raise error("W132", f"dropout: rate={rate} is no probability",
                    hint="give the part of the elements that becomes 0: 0.1 for a tenth")
    if not callable(getattr(rng, "random", None)):
        raise error("W112", f"dropout: rng is {type(rng).__name__}, not a generator",
                    hint="make one outside of the function: rng = weft.random.default_rng(0)")
    if not training or rate == 0:
        return x
    if rate == 1:
        return np.zeros_like(x)
    kept = rng.random(x.shape, dtype=np.float32) >= rate
    return np.where(kept, x * (1 / (1 - rate)), 0)
