"""Normalisation: over features, channels, groups of them, or the batch.

Variances are those of the centred values, which no large mean can swallow. Statistics of float16
and bfloat16 are computed in float32, as sums are; weights have one element for each channel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracing.arrays.variable import Variable
from ...tracing.context.active import composite
from ...tracing.context.dependencies import after
from ...tracing.operand import axis_of
from ...transforms.reverse import stop_gradient
from .windows import refused


@composite
def layer_norm(x: Any, weight: Any = None, bias: Any = None, axis: Any = -1,
               eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(variance + eps) along ``axis``, then ``* weight + bias`` (Ba et al., 2016).

    >>> layer_norm(np.array([1.0, 3.0]), eps=0.0)
    array([-1.,  1.])
    """
    return affine(_normalised(x, axis, eps), weight, bias)


@composite
def rms_norm(x: Any, weight: Any = None, axis: Any = -1, eps: float = 1e-6) -> Any:
    """x / sqrt(mean(x * x) + eps) along ``axis``, then ``* weight`` (Zhang and Sennrich, 2019)."""
    return affine(x / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + eps), weight, None)


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
    shape = _one_axis(x, axis)
    others = tuple(at for at in range(x.ndim) if at != axis)
    if not training:
        # One scale for each channel, so that an element is one multiplication and one addition.
        scale = 1 / np.sqrt(running_var + eps)
        scale = scale if weight is None else scale * weight
        return affine(x - np.reshape(running_mean, shape), np.reshape(scale, shape),
                      None if bias is None else np.reshape(bias, shape))
    mean = np.mean(x, axis=others)
    centred = x - np.reshape(mean, shape)
    var = np.mean(centred * centred, axis=others)
    y = affine(centred / np.sqrt(np.reshape(var, shape) + eps),
               *(None if p is None else np.reshape(p, shape) for p in (weight, bias)))
    count = x.size // x.shape[axis]
    unbiased = var * (count / (count - 1)) if not isinstance(count, int) or count > 1 else var
    new_mean = running_mean + momentum * (stop_gradient(mean) - running_mean)
    new_var = running_var + momentum * (stop_gradient(unbiased) - running_var)
    if isinstance(running_mean, Variable) and isinstance(running_var, Variable):
        assigned = [running_mean.assign(new_mean), running_var.assign(new_var)]
        return after(y, assigned)
    return y, new_mean, new_var


@composite
def group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
               axis: int = 1) -> Any:
    """Normalise every sample over each of ``groups`` equal parts of its channels (``axis``) and
    over space (Wu and He, 2018). The first axis is the batch; weights have one element per channel.
    Raises ShapeError (W102) unless ``groups`` divides the channels.
    """
    axis = axis_of(axis, x.ndim)
    if isinstance(x.shape[axis], int) and x.shape[axis] % groups:
        raise refused("W102", f"group_norm: {groups} groups of {x.shape[axis]} channels",
                      "give a number of groups that divides the channels")
    shape = _one_axis(x, axis)
    parts = np.reshape(x, (*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1:]))
    within = tuple(at for at in range(1, x.ndim + 1) if at != axis)
    y = np.reshape(_normalised(parts, within, eps), x.shape)
    return affine(y, *(None if p is None else np.reshape(p, shape) for p in (weight, bias)))


@composite
def instance_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
                  axis: int = 1) -> Any:
    """Normalise every channel (``axis``) of every sample over space (Ulyanov et al., 2016)."""
    axis = axis_of(axis, x.ndim)
    shape = _one_axis(x, axis)
    space = tuple(at for at in range(1, x.ndim) if at != axis)
    return affine(_normalised(x, space, eps),
                  *(None if p is None else np.reshape(p, shape) for p in (weight, bias)))


def affine(x: Any, weight: Any, bias: Any) -> Any:
    """x * weight + bias, of what is given."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _normalised(x: Any, axis: Any, eps: float) -> Any:
    centred = x - np.mean(x, axis=axis, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=axis, keepdims=True) + eps)


def _one_axis(x: Any, axis: int) -> tuple[Any, ...]:
    return tuple(x.shape[at] if at == axis else 1 for at in range(x.ndim))
