"""Layers and losses of neural networks, in plain NumPy: they trace, and run on arrays as they are.

Each is what one would write oneself: a composition of NumPy's functions, which compiles, fuses and
differentiates as any other. Forms are numerically stable throughout: softmax and its kin are
shifted by the maximum, sigmoids do not overflow, variances are of the centred values. Weights
multiply from the right, ``x @ w``; kernels of convolutions are OIHW. ``init`` has first values.
"""

from __future__ import annotations

from ..special import logsumexp
from . import init
from .activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_swish,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
    tanh,
)
from .attention import multi_head_attention, scaled_dot_product_attention
from .convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from .layers import dropout, embedding, linear, one_hot
from .losses import (
    binary_cross_entropy_with_logits,
    cosine_loss,
    cosine_similarity,
    cross_entropy,
    hinge_loss,
    huber_loss,
    kl_divergence,
    l1_loss,
    mse_loss,
    nll_loss,
    sampled_softmax,
)
from .normalization import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from .pooling import (
    adaptive_avg_pool,
    adaptive_max_pool,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    global_avg_pool,
    global_max_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from .recurrent import gru, gru_cell, lstm, lstm_cell, rnn, rnn_cell

__all__ = [
    "adaptive_avg_pool", "adaptive_max_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "batch_norm", "binary_cross_entropy_with_logits", "celu", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_loss", "cosine_similarity",
    "cross_entropy", "dropout", "elu", "embedding", "gelu", "global_avg_pool", "global_max_pool",
    "glu", "group_norm", "gru", "gru_cell", "hard_sigmoid", "hard_swish", "hard_tanh",
    "hinge_loss", "huber_loss", "init", "instance_norm", "kl_divergence", "l1_loss", "layer_norm",
    "leaky_relu", "linear", "log_sigmoid", "log_softmax", "logsumexp", "lstm", "lstm_cell",
    "max_pool1d", "max_pool2d", "max_pool3d", "mish", "mse_loss", "multi_head_attention",
    "nll_loss", "one_hot", "relu", "relu6", "rms_norm", "rnn", "rnn_cell", "sampled_softmax",
    "scaled_dot_product_attention", "selu", "sigmoid", "silu", "softmax", "softplus", "softsign",
    "tanh",
]
