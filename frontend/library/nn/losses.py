"""Losses. Each has ``reduction``: "mean", "sum", or "none" for the losses one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracing.context.active import composite
from ..special import logsumexp
from .activations import log_softmax
from .windows import refused


@composite
def cross_entropy(
    logits: Any, labels: Any, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, weight: Any = None,
) -> Any:
    """-log softmax(logits) of the labels, along the last axis.

    ``labels`` are class ids with the leading dims of ``logits``, or probabilities of its shape.
    Labels equal to ``ignore_index`` cost nothing and do not count in the mean.
    ``label_smoothing`` mixes that much of equal probabilities into the labels (Szegedy et al.,
    2016). ``weight`` has one factor for each class; the mean over class ids is then one weighted by
    those of the labels. Raises ShapeError (W102) where labels do not fit, OutOfRangeError (W124)
    for a class that is not there.

    >>> cross_entropy(np.zeros((2, 4)), np.array([1, -1]), ignore_index=-1)
    np.float64(1.3862943611198906)
    """
    logs = log_softmax(logits)
    if np.result_type(labels).kind in "iu":
        _ids_fit("cross_entropy", logs, labels)
        losses, counted = _picked(logs, labels, ignore_index, weight)
    else:
        shares = labels if weight is None else labels * weight
        losses, counted = -np.sum(shares * logs, axis=-1), None
    if label_smoothing:
        even = -np.mean(logs if weight is None else logs * weight, axis=-1)
        if counted is not None and ignore_index is not None:
            even = np.where(labels != ignore_index, even, 0)
        losses = (1 - label_smoothing) * losses + label_smoothing * even
    return _reduced(losses, reduction, "cross_entropy", counted)


@composite
def nll_loss(log_probabilities: Any, labels: Any, reduction: str = "mean",
             ignore_index: int | None = None, weight: Any = None) -> Any:
    """Minus the log-probabilities, along the last axis, of the classes ``labels``; see
    ``cross_entropy``."""
    _ids_fit("nll_loss", log_probabilities, labels)
    losses, counted = _picked(log_probabilities, labels, ignore_index, weight)
    return _reduced(losses, reduction, "nll_loss", counted)


@composite
def binary_cross_entropy_with_logits(
    logits: Any, targets: Any, reduction: str = "mean", pos_weight: Any = 1.0
) -> Any:
    """-y log sigmoid(x) - (1 - y) log(1 - sigmoid(x)) for targets y in [0, 1], without overflow.
    ``pos_weight`` multiplies the first part."""
    losses = (pos_weight * targets * np.logaddexp(0, -logits)
              + (1 - targets) * np.logaddexp(0, logits))
    return _reduced(losses, reduction, "binary_cross_entropy_with_logits")


@composite
def mse_loss(predictions: Any, targets: Any, reduction: str = "mean") -> Any:
    """The squared differences."""
    difference = predictions - targets
    return _reduced(difference * difference, reduction, "mse_loss")


@composite
def l1_loss(predictions: Any, targets: Any, reduction: str = "mean") -> Any:
    """The absolute differences; their gradient at 0 is 0."""
    return _reduced(np.abs(predictions - targets), reduction, "l1_loss")


@composite
def huber_loss(predictions: Any, targets: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    """d * d / 2 of a difference d up to ``delta``, linear beyond (Huber, 1964)."""
    far = np.abs(predictions - targets)
    near = np.minimum(far, delta)
    return _reduced(near * (far - 0.5 * near), reduction, "huber_loss")


@composite
def kl_divergence(log_q: Any, p: Any, reduction: str = "mean") -> Any:
    """sum p (log p - log q) along the last axis, of log-probabilities ``log_q`` and probabilities
    ``p``; where p is 0 nothing is added."""
    positive = np.where(p > 0, p, 1)
    losses = np.sum(np.where(p > 0, p * (np.log(positive) - log_q), 0), axis=-1)
    return _reduced(losses, reduction, "kl_divergence")


@composite
def cosine_similarity(a: Any, b: Any, axis: int = -1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along ``axis``; lengths are taken as at least eps."""
    lengths = [np.maximum(np.linalg.norm(x, axis=axis), eps) for x in (a, b)]
    return np.sum(a * b, axis=axis) / (lengths[0] * lengths[1])


@composite
def cosine_loss(a: Any, b: Any, reduction: str = "mean", axis: int = -1) -> Any:
    """1 - ``cosine_similarity``."""
    return _reduced(1 - cosine_similarity(a, b, axis), reduction, "cosine_loss")


@composite
def hinge_loss(scores: Any, targets: Any, reduction: str = "mean") -> Any:
    """max(0, 1 - y * score) for targets y of -1 or 1 (Cortes and Vapnik, 1995)."""
    return _reduced(np.maximum(1 - targets * scores, 0), reduction, "hinge_loss")


@composite
def sampled_softmax(
    inputs: Any, labels: Any, weights: Any, biases: Any, num_sampled: int, rng: Any,
    reduction: str = "mean",
) -> Any:
    """Cross-entropy of ``inputs @ weights.T + biases`` with only ``num_sampled`` classes beside
    the true ones: training over a large vocabulary, whose sum over all others is estimated by
    importance sampling (Bengio and Senécal, 2008), and so tends to ``cross_entropy``.

    inputs (B, D), labels (B,), weights (V, D), biases (V,). Classes are drawn with replacement, the
    same for the whole batch, with probability log((c + 2) / (c + 1)) / log(V + 1) for class c, so
    that ids should be in the order of their frequency (Zipf's law); the logit of a sample is less
    by the logarithm of how often it is expected. A sample that is the true class is left out.
    ``rng`` is a ``weft.random`` (or NumPy) generator.
    """
    many = weights.shape[0]
    span = np.log(many + 1.0)
    drawn = np.exp(rng.random((num_sampled,)) * span).astype(np.int64) - 1
    sampled = np.minimum(drawn, many - 1)
    expected = np.log((sampled + 2) / (sampled + 1)) / span * num_sampled
    true = np.sum(inputs * weights[labels], axis=-1) + biases[labels]
    others = inputs @ weights[sampled].T + (
        biases[sampled] - np.log(expected).astype(np.result_type(inputs)))
    others = np.where(np.expand_dims(labels, -1) == sampled, -np.inf, others)
    every = np.concatenate([np.expand_dims(true, -1), others], axis=-1)
    return _reduced(logsumexp(every, axis=-1) - true, reduction, "sampled_softmax")


def _ids_fit(name: str, logs: Any, labels: Any) -> None:
    if np.ndim(labels) != np.ndim(logs) - 1:
        raise refused("W102", f"{name}: class ids of {np.ndim(labels)} dims for scores of "
                              f"{np.ndim(logs)}", "ids have the dims of the scores but the last")
    for own, given in zip(np.shape(logs), np.shape(labels), strict=False):
        if isinstance(own, int) and isinstance(given, int) and own != given:
            raise refused("W102", f"{name}: class ids of shape {np.shape(labels)} for scores of "
                                  f"shape {np.shape(logs)}",
                          "ids have the dims of the scores but the last")


def _picked(logs: Any, labels: Any, ignored: int | None, weight: Any) -> tuple[Any, Any]:
    """Minus the elements at the labels, and how much each of them counts: None for all alike."""
    counted = None if ignored is None else labels != ignored
    at = labels if counted is None else np.where(counted, labels, 0)
    losses = -np.squeeze(np.take_along_axis(logs, np.expand_dims(at, -1), axis=-1), -1)
    if weight is not None:
        own = np.take(weight, at).astype(np.result_type(losses))
        losses, counted = losses * own, own if counted is None else np.where(counted, own, 0)
    return losses if counted is None else np.where(counted, losses, 0), counted


def _reduced(losses: Any, reduction: str, name: str, counted: Any = None) -> Any:
    if reduction == "none":
        return losses
    if reduction == "sum":
        return np.sum(losses)
    if reduction != "mean":
        raise refused("W113", f"{name} with reduction={reduction!r}",
                      'use "mean", "sum" or "none"')
    if counted is None:
        return np.mean(losses)
    return np.sum(losses) / np.sum(counted).astype(np.result_type(losses))
