"""First values of weights: ``weft.nn.init``. Each takes a generator and a shape.

``rng`` is one of NumPy's or ``weft.random``'s. The fans of a shape: a matrix (I, O) multiplies from
the right and has I inputs; a kernel (O, C, *K) of a convolution has C times the size of K.

    w = weft.nn.init.he_normal(rng, (784, 100))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..special import erfinv

F32 = np.float32


def zeros(shape: Sequence[int], dtype: Any = F32) -> Any:
    """All 0: for biases."""
    return np.zeros(shape, dtype)


def ones(shape: Sequence[int], dtype: Any = F32) -> Any:
    """All 1: for the scales of norms."""
    return np.ones(shape, dtype)


def uniform(rng: Any, shape: Sequence[int], low: float = -0.05, high: float = 0.05,
            dtype: Any = F32) -> Any:
    """Uniform in [low, high)."""
    return rng.uniform(low, high, tuple(shape)).astype(dtype)


def normal(rng: Any, shape: Sequence[int], scale: float = 0.01, dtype: Any = F32) -> Any:
    """Normal of mean 0 and standard deviation ``scale``."""
    return rng.normal(0.0, scale, tuple(shape)).astype(dtype)


def truncated_normal(rng: Any, shape: Sequence[int], scale: float = 0.01, bound: float = 2.0,
                     dtype: Any = F32) -> Any:
    """A normal, cut off at ``bound`` standard deviations ``scale``, by the inverse of its
    distribution."""
    edge = math.erf(bound / math.sqrt(2))
    u = rng.uniform(-edge, edge, tuple(shape))
    return (np.clip(erfinv(u) * math.sqrt(2), -bound, bound) * scale).astype(dtype)


def glorot_uniform(rng: Any, shape: Sequence[int], gain: float = 1.0, dtype: Any = F32) -> Any:
    """Uniform of variance ``gain**2`` * 2 / (inputs + outputs) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = fans(shape)
    bound = gain * math.sqrt(6 / (fan_in + fan_out))
    return uniform(rng, shape, -bound, bound, dtype)


def glorot_normal(rng: Any, shape: Sequence[int], gain: float = 1.0, dtype: Any = F32) -> Any:
    """Normal of variance ``gain**2`` * 2 / (inputs + outputs)."""
    fan_in, fan_out = fans(shape)
    return normal(rng, shape, gain * math.sqrt(2 / (fan_in + fan_out)), dtype)


def he_uniform(rng: Any, shape: Sequence[int], gain: float = math.sqrt(2), dtype: Any = F32) -> Any:
    """Uniform of variance ``gain**2`` / inputs (He et al., 2015), whose gain fits relu."""
    bound = gain * math.sqrt(3 / fans(shape)[0])
    return uniform(rng, shape, -bound, bound, dtype)


def he_normal(rng: Any, shape: Sequence[int], gain: float = math.sqrt(2), dtype: Any = F32) -> Any:
    """Normal of variance ``gain**2`` / inputs.

    >>> he_normal(np.random.default_rng(0), (50, 200)).std().round(2)
    np.float32(0.2)
    """
    return normal(rng, shape, gain / math.sqrt(fans(shape)[0]), dtype)


def orthogonal(rng: Any, shape: Sequence[int], gain: float = 1.0, dtype: Any = F32) -> Any:
    """Orthonormal rows, or columns where there are fewer, times ``gain`` (Saxe et al., 2014).
    Axes but the last count as one."""
    rows, columns = math.prod(shape[:-1]), shape[-1]
    q, r = np.linalg.qr(rng.normal(size=(max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diagonal(r))  # so that all of them are equally likely
    return (gain * np.reshape(q if rows >= columns else q.T, tuple(shape))).astype(dtype)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """How many inputs and outputs an element of weights of that shape has."""
    if len(shape) < 3:
        return (shape[0], shape[-1]) if shape else (1, 1)
    size = math.prod(shape[2:])
    return shape[1] * size, shape[0] * size
