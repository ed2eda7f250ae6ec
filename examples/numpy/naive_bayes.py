"""Gaussian naive Bayes: fitted with masks, log probabilities, a confusion matrix."""

import numpy as np

SIZES = {"small": (30, 3), "normal": (10000, 20)}  # samples, features


def inputs(size="normal"):
    n, d = SIZES[size]
    rng = np.random.default_rng(32)
    y = rng.integers(4, size=n)
    y[:4] = np.arange(4)
    return rng.normal(size=(n, d)) + y[:, None] * 0.5, y


def run(X, y, classes=4):
    n, d = X.shape
    mean = np.zeros((classes, d))
    var = np.zeros((classes, d))
    prior = np.zeros(classes)
    for c in range(classes):
        members = y == c
        mean[c] = X[members].mean(axis=0)
        var[c] = X[members].var(axis=0) + 1e-3
        prior[c] = members.mean()
    log_likelihood = -0.5 * np.sum(
        np.log(2 * np.pi * var) + (X[:, None, :] - mean) ** 2 / var, axis=2)
    joint = log_likelihood + np.log(prior)
    predicted = joint.argmax(axis=1)
    confusion = np.zeros((classes, classes), dtype=int)
    np.add.at(confusion, (y, predicted), 1)
    return predicted, confusion, np.trace(confusion) / n
