"""Layers and losses of neural networks, in plain NumPy: they trace, and run on arrays as they are.

Numerically stable forms throughout: softmax and its kin are shifted by the maximum, sigmoids do not
overflow, variances are of the centred values. Weights multiply from the right, ``x @ w``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ..tracing.arrays.variable import Variable
from ..tracing.dependencies import after
from ..tracing.operand import axis_of
from ..tracing.recorder import composite
from ..tracing.source import user_loc
from ..transforms.reverse import stop_gradient
from . import special
from .special import logsumexp

__all__ = [
    "batch_norm", "cross_entropy", "dropout", "embedding", "gelu", "gru_cell", "layer_norm",
    "linear", "log_softmax", "logsumexp", "lstm_cell", "one_hot", "relu", "rms_norm",
    "scaled_dot_product_attention", "sigmoid", "silu", "softmax",
]


@composite
def relu(x: Any) -> Any:
    """max(x, 0); its gradient at 0 is 0. NaN stays NaN."""
    return np.where(x <= 0, 0, x)


@composite
def gelu(x: Any, approximate: str = "none") -> Any:
    """Gaussian error linear unit x * Phi(x) (Hendrycks and Gimpel, 2016).

    ``approximate="tanh"`` takes their tanh form instead of erf.
    """
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + np.tanh(inner))
    if approximate != "none":
        raise error("W113", f"gelu with approximate={approximate!r}", locs=user_loc(),
                    hint='use "none" or "tanh"')
    return 0.5 * x * (1 + special.erf(x * math.sqrt(0.5)))


@composite
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow."""
    return special.expit(x)


@composite
def silu(x: Any) -> Any:
    """x * sigmoid(x), also called swish."""
    return x * special.expit(x)


@composite
def softmax(x: Any, axis: Any = -1) -> Any:
    """exp(x) / sum(exp(x)) along ``axis``."""
    # The shift cancels, so no gradient need flow through it.
    shifted = np.exp(x - stop_gradient(np.max(x, axis=axis, keepdims=True)))
    return shifted / np.sum(shifted, axis=axis, keepdims=True)


@composite
def log_softmax(x: Any, axis: Any = -1) -> Any:
    """The logarithm of softmax, exact also where softmax is tiny."""
    shifted = x - stop_gradient(np.max(x, axis=axis, keepdims=True))
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@composite
def layer_norm(x: Any, weight: Any = None, bias: Any = None, axis: Any = -1,
               eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(variance + eps) along ``axis``, then ``* weight + bias`` (Ba et al., 2016).
    """
    centred = x - np.mean(x, axis=axis, keepdims=True)
    variance = np.mean(centred * centred, axis=axis, keepdims=True)
    return _affine(centred / np.sqrt(variance + eps), weight, bias)


@composite
def rms_norm(x: Any, weight: Any = None, axis: Any = -1, eps: float = 1e-6) -> Any:
    """x / sqrt(mean(x * x) + eps) along ``axis``, then ``* weight`` (Zhang and Sennrich, 2019)."""
    return _affine(x / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + eps), weight, None)


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


@composite
def batch_norm(
    x: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5, axis: int = 1,
) -> Any:
    """Normalise each channel (``axis``) with running statistics, or in training with those of the
    batch (Ioffe and Szegedy, 2015). All statistics and weights have one element per channel.

    In training, statistics that are Variables are updated and the result is y; statistics that are
    arrays are returned, updated, as ``(y, mean, var)``.
    """
    axis = axis_of(axis, x.ndim)
    shape = tuple(x.shape[at] if at == axis else 1 for at in range(x.ndim))
    others = tuple(at for at in range(x.ndim) if at != axis)

    def per_channel(p: Any) -> Any:
        return None if p is None else np.reshape(p, shape)

    if not training:
        scale = 1 / np.sqrt(per_channel(running_var) + eps)
        y = (x - per_channel(running_mean)) * scale
        return _affine(y, per_channel(weight), per_channel(bias))
    mean = np.mean(x, axis=others)
    centred = x - per_channel(mean)
    var = np.mean(centred * centred, axis=others)
    y = _affine(centred / np.sqrt(per_channel(var) + eps), per_channel(weight), per_channel(bias))
    count = x.size // x.shape[axis]
    unbiased = var * (count / (count - 1)) if not isinstance(count, int) or count > 1 else var
    new_mean = running_mean + momentum * (stop_gradient(mean) - running_mean)
    new_var = running_var + momentum * (stop_gradient(unbiased) - running_var)
    if isinstance(running_mean, Variable) and isinstance(running_var, Variable):
        assigned = [running_mean.assign(new_mean), running_var.assign(new_var)]
        return after(y, assigned)
    return y, new_mean, new_var


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
def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """x @ weight + bias, with ``weight`` of shape (inputs, outputs)."""
    return _affine(x @ weight, None, bias)


@composite
def cross_entropy(logits: Any, labels: Any, reduction: str = "mean") -> Any:
    """-log softmax(logits) of the labels, along the last axis.

    ``labels`` are class ids with the leading dims of ``logits``, or probabilities of its shape.
    ``reduction`` is "mean", "sum" or "none".
    """
    logs = log_softmax(logits)
    if np.result_type(labels).kind in "iu":
        losses = -np.squeeze(np.take_along_axis(logs, np.expand_dims(labels, -1), axis=-1), -1)
    else:
        losses = -np.sum(labels * logs, axis=-1)
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise error("W113", f"cross_entropy with reduction={reduction!r}", locs=user_loc(),
                    hint='use "mean", "sum" or "none"')
    return np.mean(losses) if reduction == "mean" else np.sum(losses)


@composite
def dropout(x: Any, rate: float, rng: Any, training: bool = True) -> Any:
    """Each element 0 with probability ``rate``, else x / (1 - rate) (Srivastava et al., 2014).

    ``rng`` is a ``weft.random`` (or NumPy) generator. Without ``training`` it is x.
    """
    if not training or rate == 0:
        return x
    kept = rng.random(x.shape, dtype=np.float32) >= rate
    return np.where(kept, x * (1 / (1 - rate)), 0)


@composite
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, mask: Any = None, causal: bool = False,
    scale: float | None = None,
) -> Any:
    """softmax(query @ key.T * scale) @ value over the last two axes (Vaswani et al., 2017).

    Shapes (..., T, D), (..., S, D), (..., S, E) to (..., T, E). A boolean ``mask`` says which
    (T, S) pairs attend, a float one is added; ``causal`` lets t attend to s <= t.
    """
    width = query.shape[-1]
    factor = scale if scale is not None else (
        1 / math.sqrt(width) if isinstance(width, int) else 1 / np.sqrt(width))
    scores = (query @ np.swapaxes(key, -1, -2)) * factor
    if causal:
        rows = np.arange(query.shape[-2], like=query)
        columns = np.arange(key.shape[-2], like=query)
        scores = np.where(np.expand_dims(rows, -1) >= columns, scores, -np.inf)
    if mask is not None:
        scores = (np.where(mask, scores, -np.inf) if np.result_type(mask).kind == "b"
                  else scores + mask)
    return softmax(scores) @ value


@composite
def lstm_cell(x: Any, state: tuple[Any, Any], w_x: Any, w_h: Any, bias: Any = None) -> Any:
    """One step of a long short-term memory (Hochreiter and Schmidhuber, 1997).

    x (B, I), state (h, c) of (B, H) each, w_x (I, 4H), w_h (H, 4H), bias (4H,); gates in the order
    input, forget, cell, output. Returns the new (h, c); the output is h.
    """
    h, c = state
    i, f, g, o = np.split(_affine(x @ w_x + h @ w_h, None, bias), 4, axis=-1)
    new_c = special.expit(f) * c + special.expit(i) * np.tanh(g)
    return special.expit(o) * np.tanh(new_c), new_c


@composite
def gru_cell(x: Any, h: Any, w_x: Any, w_h: Any, b_x: Any = None, b_h: Any = None) -> Any:
    """One step of a gated recurrent unit (Cho et al., 2014); returns the new h.

    x (B, I), h (B, H), w_x (I, 3H), w_h (H, 3H), biases (3H,); gates in the order reset, update,
    new, with the reset gate applied after the product with w_h.
    """
    r_x, z_x, n_x = np.split(_affine(x @ w_x, None, b_x), 3, axis=-1)
    r_h, z_h, n_h = np.split(_affine(h @ w_h, None, b_h), 3, axis=-1)
    update = special.expit(z_x + z_h)
    new = np.tanh(n_x + special.expit(r_x + r_h) * n_h)
    return (1 - update) * new + update * h
