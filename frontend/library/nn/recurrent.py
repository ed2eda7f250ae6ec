"""Recurrent cells, and loops of them over time, by ``weft.scan``.

Gates are one product, in the order that the field has them. Time is the first axis: xs (T, B, I).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracing.context.active import composite
from ...transforms.control import scan
from .. import special
from .normalization import affine


@composite
def rnn_cell(x: Any, h: Any, w_x: Any, w_h: Any, bias: Any = None) -> Any:
    """tanh(x @ w_x + h @ w_h + bias): one step of a plain network (Elman, 1990).

    x (B, I), h (B, H), w_x (I, H), w_h (H, H), bias (H,); returns the new h.
    """
    return np.tanh(affine(x @ w_x + h @ w_h, None, bias))


@composite
def lstm_cell(x: Any, state: tuple[Any, Any], w_x: Any, w_h: Any, bias: Any = None) -> Any:
    """One step of a long short-term memory (Hochreiter and Schmidhuber, 1997).

    x (B, I), state (h, c) of (B, H) each, w_x (I, 4H), w_h (H, 4H), bias (4H,); gates in the order
    input, forget, cell, output. Returns the new (h, c); the output is h.
    """
    return _lstm_gates(affine(x @ w_x + state[0] @ w_h, None, bias), state[1])


@composite
def gru_cell(x: Any, h: Any, w_x: Any, w_h: Any, b_x: Any = None, b_h: Any = None) -> Any:
    """One step of a gated recurrent unit (Cho et al., 2014); returns the new h.

    x (B, I), h (B, H), w_x (I, 3H), w_h (H, 3H), biases (3H,); gates in the order reset, update,
    new, with the reset gate applied after the product with w_h.
    """
    return _gru_gates(affine(x @ w_x, None, b_x), affine(h @ w_h, None, b_h), h)


@composite
def rnn(xs: Any, h: Any, w_x: Any, w_h: Any, bias: Any = None, reverse: bool = False) -> Any:
    """``rnn_cell`` over the first axis of xs (T, B, I), from h (B, H).

    Returns the states of all times, (T, B, H), and the last one; with ``reverse`` time runs
    backwards.
    """
    # The products of the inputs do not wait for the states: all times are one product.
    return _swapped(scan(lambda h, x: _twice(np.tanh(x + h @ w_h)), h,
                         affine(xs @ w_x, None, bias), reverse=reverse))


@composite
def lstm(xs: Any, state: tuple[Any, Any], w_x: Any, w_h: Any, bias: Any = None,
         reverse: bool = False) -> Any:
    """``lstm_cell`` over the first axis of xs (T, B, I), from ``state`` (h, c) of (B, H) each.

    Returns the outputs h of all times, (T, B, H), and the last (h, c); with ``reverse`` time runs
    backwards.
    """
    def step(state: tuple[Any, Any], gates: Any) -> Any:
        new = _lstm_gates(gates + state[0] @ w_h, state[1])
        return new, new[0]

    return _swapped(scan(step, state, affine(xs @ w_x, None, bias), reverse=reverse))


@composite
def gru(xs: Any, h: Any, w_x: Any, w_h: Any, b_x: Any = None, b_h: Any = None,
        reverse: bool = False) -> Any:
    """``gru_cell`` over the first axis of xs (T, B, I), from h (B, H).

    Returns the states of all times, (T, B, H), and the last one; with ``reverse`` time runs
    backwards.
    """
    return _swapped(scan(lambda h, x: _twice(_gru_gates(x, affine(h @ w_h, None, b_h), h)), h,
                         affine(xs @ w_x, None, b_x), reverse=reverse))


def _lstm_gates(gates: Any, c: Any) -> tuple[Any, Any]:
    i, f, g, o = np.split(gates, 4, axis=-1)
    new = special.expit(f) * c + special.expit(i) * np.tanh(g)
    return special.expit(o) * np.tanh(new), new


def _gru_gates(of_x: Any, of_h: Any, h: Any) -> Any:
    (r_x, z_x, n_x), (r_h, z_h, n_h) = (np.split(part, 3, axis=-1) for part in (of_x, of_h))
    update = special.expit(z_x + z_h)
    new = np.tanh(n_x + special.expit(r_x + r_h) * n_h)
    return (1 - update) * new + update * h


def _twice(h: Any) -> tuple[Any, Any]:
    return h, h


def _swapped(carried: tuple[Any, Any]) -> tuple[Any, Any]:
    return carried[1], carried[0]
