"""Losses against float64 formulas, with gradients; what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.references import check, log_softmax, sigmoid

import weft
from weft import nn
from weft.ir.diagnose import OutOfRangeError, ShapeError, UnsupportedError

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(5, 4)), RNG.normal(size=(5, 4))
IDS = np.array([2, 0, 3, 3, 1])


def test_cross_entropy() -> None:
    logs = log_softmax(X)
    own = -logs[np.arange(5), IDS]
    check(lambda x: nn.cross_entropy(x, IDS), (X,), own.mean())
    check(lambda x: nn.cross_entropy(x, IDS, "none", label_smoothing=0.2), (X,),
          0.8 * own - 0.2 * logs.mean(1))
    p = np.exp(log_softmax(Y))
    check(lambda x, p: nn.cross_entropy(x, p, "sum"), (X, p), -(p * logs).sum())
    check(lambda x, p: nn.cross_entropy(x, p, label_smoothing=0.2), (X, p),
          (-(0.8 * p + 0.05) * logs).sum(1).mean())


def test_what_is_ignored_costs_nothing() -> None:
    logs, ids = log_softmax(X), np.array([2, -1, 3, -1, 1])
    kept = ids >= 0
    own = -logs[np.arange(5), np.maximum(ids, 0)] * kept
    check(lambda x: nn.cross_entropy(x, ids, ignore_index=-1), (X,), own.sum() / 3)
    check(lambda x: nn.cross_entropy(x, ids, "none", -1), (X,), own)
    smooth = 0.9 * own - 0.1 * logs.mean(1) * kept
    check(lambda x: nn.cross_entropy(x, ids, ignore_index=-1, label_smoothing=0.1), (X,),
          smooth.sum() / 3)
    check(lambda x: nn.nll_loss(x, ids, "sum", ignore_index=-1), (X,), -X[kept, ids[kept]].sum())
    found = weft.grad(lambda x: nn.cross_entropy(x, ids, ignore_index=-1))(X)
    assert not found[~kept].any() and found[kept].any()


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
def test_weights_of_classes(smoothing: float) -> None:
    """The mean over ids is weighted by their classes; that over probabilities is a plain one."""
    logs, weight = log_softmax(X), np.array([0.5, 2.0, 1.0, 4.0])
    own = -weight[IDS] * logs[np.arange(5), IDS]
    even = -(weight * logs).mean(1)
    losses = (1 - smoothing) * own + smoothing * even
    for reduction, wanted in (("none", losses), ("sum", losses.sum()),
                              ("mean", losses.sum() / weight[IDS].sum())):
        check(lambda x, w, how=reduction: nn.cross_entropy(
            x, IDS, how, label_smoothing=smoothing, weight=w), (X, weight), wanted)
    kept = IDS != 3
    check(lambda x: nn.cross_entropy(x, IDS, ignore_index=3, label_smoothing=smoothing,
                                     weight=weight), (X,),
          losses[kept].sum() / weight[IDS][kept].sum())
    p = np.exp(log_softmax(Y))
    mixed = (1 - smoothing) * p + smoothing / 4
    check(lambda x, p: nn.cross_entropy(x, p, label_smoothing=smoothing, weight=weight), (X, p),
          -(weight * mixed * logs).sum(1).mean())
    check(lambda x: nn.nll_loss(x, IDS, weight=weight), (X,),
          -(weight[IDS] * X[np.arange(5), IDS]).sum() / weight[IDS].sum())


def test_a_vector_of_zeros_has_a_similarity_with_a_gradient() -> None:
    a = np.array([[0.0, 0.0], [3.0, 4.0]])
    b = np.array([[1.0, 2.0], [1.0, 0.0]])
    assert np.isfinite(weft.grad(lambda a: np.sum(nn.cosine_similarity(a, b)))(a)).all()
    np.testing.assert_allclose(nn.cosine_similarity(a, b), [0.0, 0.6])


def test_losses_of_differences() -> None:
    d = X - Y
    huber = np.where(np.abs(d) <= 0.7, d * d / 2, 0.7 * (np.abs(d) - 0.35))
    check(nn.mse_loss, (X, Y), (d * d).mean())
    check(lambda x, y: nn.l1_loss(x, y, "sum"), (X, Y), np.abs(d).sum())
    check(lambda x, y: nn.huber_loss(x, y, "none", delta=0.7), (X, Y), huber)
    signs = np.sign(Y)
    check(lambda x: nn.hinge_loss(x, signs), (X,), np.maximum(1 - signs * X, 0).mean())


def test_binary_cross_entropy() -> None:
    y = sigmoid(Y)
    check(lambda x, y: nn.binary_cross_entropy_with_logits(x, y, "none", 3.0), (X, y),
          -3 * y * np.log(sigmoid(X)) - (1 - y) * np.log(1 - sigmoid(X)))
    far = nn.binary_cross_entropy_with_logits(np.array([1e4, -1e4]), np.array([0.0, 1.0]), "none")
    np.testing.assert_array_equal(far, [1e4, 1e4])


def test_divergence_and_cosine() -> None:
    p, q = np.exp(log_softmax(X)), log_softmax(Y)
    check(lambda q: nn.kl_divergence(q, p, "none"), (q,), (p * (np.log(p) - q)).sum(1))
    hot = np.eye(4)[IDS]
    check(lambda q: nn.kl_divergence(q, hot), (q,), -q[np.arange(5), IDS].mean())
    lengths = np.linalg.norm(X, axis=1) * np.linalg.norm(Y, axis=1)
    check(nn.cosine_similarity, (X, Y), (X * Y).sum(1) / lengths)
    check(nn.cosine_loss, (X, Y), 1 - ((X * Y).sum(1) / lengths).mean())
    assert nn.cosine_similarity(np.zeros(3), np.ones(3)) == 0


class Drawn:
    """A generator of given numbers."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = np.asarray(numbers)

    def random(self, size: Any) -> Any:
        assert size == self.numbers.shape
        return self.numbers


def test_sampled_softmax() -> None:
    many, u = 9, np.array([0.05, 0.31, 0.31, 0.8, 0.999])
    ids = np.array([0, 8, 1, 4, 0])
    x, w, b = RNG.normal(size=(5, 4)), RNG.normal(size=(many, 4)), RNG.normal(size=many)
    chance = np.log1p(1 / (np.arange(many) + 1)) / np.log(many + 1)
    assert abs(chance.sum() - 1) < 1e-12
    # The smallest class whose part of the distribution reaches u.
    drawn = np.searchsorted(np.cumsum(chance), u)
    logits = x @ w.T + b
    wanted = []
    for row, own in zip(logits, ids, strict=True):
        kept = [row[own], *(row[c] - np.log(5 * chance[c]) for c in drawn if c != own)]
        wanted.append(np.log(np.sum(np.exp(kept))) - row[own])
    check(lambda x, w, b: nn.sampled_softmax(x, ids, w, b, len(u), Drawn(u), "none"), (x, w, b),
          np.array(wanted))


def test_many_samples_are_near_the_whole() -> None:
    x, w, b = RNG.normal(size=(5, 4)), RNG.normal(size=(9, 4)), RNG.normal(size=9)
    rng = weft.random.default_rng(1)
    step = weft.compile(lambda x, w, b: nn.sampled_softmax(x, IDS, w, b, 20_000, rng))
    np.testing.assert_allclose(step(x, w, b), nn.cross_entropy(x @ w.T + b, IDS), rtol=0.02)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: nn.cross_entropy(x, IDS, "median"), UnsupportedError, "reduction='median'"),
    (lambda x: nn.mse_loss(x, x, None), UnsupportedError, "reduction=None"),
    (lambda x: nn.cross_entropy(x, IDS[:, None]), ShapeError, "ids of 2 dims for scores of 2"),
])
def test_refusals(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        weft.compile(call)(X)


def test_a_class_that_is_not_there() -> None:
    with pytest.raises(OutOfRangeError):
        weft.compile(lambda x, y: nn.nll_loss(x, y))(X, IDS + 1)
