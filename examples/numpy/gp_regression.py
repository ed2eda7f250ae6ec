"""Gaussian-process regression: posterior mean, variance and log marginal likelihood.

Rasmussen and Williams, "Gaussian Processes for Machine Learning", algorithm 2.1.
"""

import numpy as np

SIZES = {"small": (20, 30), "normal": (300, 500)}  # observations, points to predict


def inputs(size="normal"):
    n, m = SIZES[size]
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-5, 5, (n, 1)), axis=0)
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=n)
    return x, y, np.linspace(-6, 6, m)[:, np.newaxis]


def rbf(a, b, length=1.0, variance=1.0):
    """The squared-exponential kernel between the rows of two arrays."""
    sq = np.sum(a**2, 1)[:, None] + np.sum(b**2, 1)[None, :] - 2 * a @ b.T
    return variance * np.exp(-0.5 * sq / length**2)


def run(x, y, x_new, noise=0.1):
    K = rbf(x, x)
    K[np.diag_indices_from(K)] += noise**2
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    K_s = rbf(x, x_new)
    mean = K_s.T @ alpha
    v = np.linalg.solve(L, K_s)
    var = np.diag(rbf(x_new, x_new)) - np.sum(v**2, axis=0)
    log_likelihood = (-0.5 * y @ alpha - np.sum(np.log(np.diag(L)))
                      - len(y) / 2 * np.log(2 * np.pi))
    return mean, var, log_likelihood
