"""Attention (Vaswani et al., 2017)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...tracing.context.active import composite
from .activations import softmax
from .windows import refused


@composite
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, mask: Any = None, is_causal: bool = False,
    scale: float | None = None,
) -> Any:
    """softmax(query @ key.T * scale) @ value over the last two axes.

    Shapes (..., T, D), (..., S, D), (..., S, E) to (..., T, E); ``scale`` is 1 / sqrt(D) if it is
    not given. A boolean ``mask`` says which (T, S) pairs attend, a float one is added;
    ``is_causal`` lets t attend to s <= t. A row that attends to nothing is NaN.
    """
    width = query.shape[-1]
    factor = scale if scale is not None else (
        1 / math.sqrt(width) if isinstance(width, int) else 1 / np.sqrt(width))
    scores = (query @ np.swapaxes(key, -1, -2)) * factor
    if is_causal:
        rows = np.arange(query.shape[-2], like=query)
        columns = np.arange(key.shape[-2], like=query)
        scores = np.where(np.expand_dims(rows, -1) >= columns, scores, -np.inf)
    if mask is not None:
        scores = (np.where(mask, scores, -np.inf) if np.result_type(mask).kind == "b"
                  else scores + mask)
    return softmax(scores) @ value


@composite
def multi_head_attention(
    query: Any, key: Any, value: Any, w_query: Any, w_key: Any, w_value: Any, w_out: Any,
    num_heads: int, mask: Any = None, is_causal: bool = False, scale: float | None = None,
) -> Any:
    """Attention of ``num_heads`` parts of the projected inputs, put together by ``w_out``.

    query (..., T, I), key and value (..., S, I'); w_query (I, H), w_key (I', H), w_value (I', H')
    and w_out (H', O), where H and H' are multiples of ``num_heads``; to (..., T, O). The mask has
    the shape of the scores, (..., num_heads, T, S), or one that broadcasts to it.
    Raises ShapeError (W102) where heads do not divide a width.

    >>> x, w = np.ones((3, 4)), np.eye(4)
    >>> multi_head_attention(x, x, x, w, w, w, w, num_heads=2)[0]
    array([1., 1., 1., 1.])
    """
    heads = [_heads(x @ w, num_heads)
             for x, w in ((query, w_query), (key, w_key), (value, w_value))]
    mixed = np.swapaxes(scaled_dot_product_attention(
        *heads, mask=mask, is_causal=is_causal, scale=scale), -2, -3)
    return np.reshape(mixed, (*mixed.shape[:-2], mixed.shape[-2] * mixed.shape[-1])) @ w_out


def _heads(x: Any, count: int) -> Any:
    """(..., T, count * D) to (..., count, T, D)."""
    width = x.shape[-1]
    if isinstance(width, int) and width % count:
        raise refused("W102", f"multi_head_attention: {count} heads of a width of {width}",
                      "give weights whose width is a multiple of the number of heads")
    return np.swapaxes(np.reshape(x, (*x.shape[:-1], count, width // count)), -2, -3)
