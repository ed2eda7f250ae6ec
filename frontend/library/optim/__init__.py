"""Optimizers: ``update(grads, state, params)`` on nests, ``minimize`` on Variables.

An optimizer is plain NumPy over the leaves. ``init`` makes its slots (moments), nests like the
parameters, of zeros; ``minimize`` keeps them as Variables, which it makes when it first sees a
variable, also while tracing.

    adam = weft.optim.Adam(weft.optim.CosineDecay(1e-3, 10_000, warmup=100), clip_norm=1.0)
    state = adam.init(params)
    params, state = adam.update(grads, state, params)        # pure: in compiled or plain code
    loss = adam.minimize(loss_fn, [w, b], x, y)              # assigns w and b
"""

from __future__ import annotations

from .clipping import clip_by_global_norm, clip_by_value, global_norm
from .optimizers import SGD, Adagrad, Adam, AdamW, Optimizer, RMSProp
from .schedules import Constant, CosineDecay, ExponentialDecay, LinearDecay, PiecewiseConstant

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Constant", "CosineDecay", "ExponentialDecay",
           "LinearDecay", "Optimizer", "PiecewiseConstant", "RMSProp", "clip_by_global_norm",
           "clip_by_value", "global_norm"]
