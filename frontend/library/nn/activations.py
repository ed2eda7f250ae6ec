"""Activations. None overflows, and each keeps NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...tracing.context.active import composite
from ...transforms.reverse import stop_gradient
from .. import special
from .windows import refused

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


@composite
def relu(x: Any) -> Any:
    """max(x, 0); its gradient at 0 is 0. NaN stays NaN."""
    return np.where(x <= 0, 0, x)


@composite
def relu6(x: Any) -> Any:
    """min(max(x, 0), 6)."""
    return hard_tanh(x, 0, 6)


@composite
def leaky_relu(x: Any, slope: Any = 0.01) -> Any:
    """x, or ``slope * x`` below 0; with a traced slope, a parametric relu (He et al., 2015)."""
    return np.where(x <= 0, slope * x, x)


@composite
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """x, or alpha * (exp(x) - 1) below 0 (Clevert et al., 2016)."""
    return np.where(x <= 0, alpha * np.expm1(np.minimum(x, 0)), x)


@composite
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """x, or alpha * (exp(x / alpha) - 1) below 0: with a continuous derivative (Barron, 2017)."""
    return np.where(x <= 0, alpha * np.expm1(np.minimum(x, 0) / alpha), x)


@composite
def selu(x: Any) -> Any:
    """The scaled elu that keeps mean 0 and variance 1 (Klambauer et al., 2017)."""
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


@composite
def gelu(x: Any, approximate: str = "none") -> Any:
    """Gaussian error linear unit x * Phi(x) (Hendrycks and Gimpel, 2016).

    ``approximate="tanh"`` takes their tanh form instead of erf.
    """
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + np.tanh(inner))
    if approximate != "none":
        raise refused("W113", f"gelu with approximate={approximate!r}", 'use "none" or "tanh"')
    return 0.5 * x * (1 + special.erf(x * math.sqrt(0.5)))


@composite
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow."""
    return special.expit(x)


@composite
def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)), exact also where sigmoid is tiny."""
    return -np.logaddexp(0, -x)


@composite
def silu(x: Any) -> Any:
    """x * sigmoid(x), also called swish."""
    return x * special.expit(x)


@composite
def mish(x: Any) -> Any:
    """x * tanh(softplus(x)) (Misra, 2020)."""
    return x * np.tanh(softplus(x))


@composite
def softplus(x: Any) -> Any:
    """log(1 + exp(x)), without overflow."""
    return np.logaddexp(x, 0)


@composite
def softsign(x: Any) -> Any:
    """x / (1 + |x|)."""
    return x / (1 + np.abs(x))


@composite
def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return np.tanh(x)


@composite
def hard_tanh(x: Any, low: Any = -1, high: Any = 1) -> Any:
    """x between ``low`` and ``high``; the gradient is 0 at them and beyond."""
    return np.where(x <= low, low, np.where(x >= high, high, x))


@composite
def hard_sigmoid(x: Any) -> Any:
    """min(max(x / 6 + 1 / 2, 0), 1) (Howard et al., 2019)."""
    return relu6(x + 3) / 6


@composite
def hard_swish(x: Any) -> Any:
    """x * hard_sigmoid(x)."""
    return x * hard_sigmoid(x)


@composite
def glu(x: Any, axis: int = -1) -> Any:
    """The first half of x along ``axis`` times the sigmoid of the second (Dauphin et al., 2017)."""
    value, gate = np.split(x, 2, axis=axis)
    return value * special.expit(gate)


@composite
def softmax(x: Any, axis: Any = -1) -> Any:
    """exp(x) / sum(exp(x)) along ``axis``.

    >>> softmax(np.array([0.0, 0.0, -np.inf]))
    array([0.5, 0.5, 0. ])
    """
    # The shift cancels, so no gradient need flow through it.
    shifted = np.exp(x - stop_gradient(np.max(x, axis=axis, keepdims=True)))
    return shifted / np.sum(shifted, axis=axis, keepdims=True)


@composite
def log_softmax(x: Any, axis: Any = -1) -> Any:
    """The logarithm of softmax, exact also where softmax is tiny."""
    shifted = x - stop_gradient(np.max(x, axis=axis, keepdims=True))
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
