"""A mixture of Gaussians with full covariances, fitted by expectation maximisation."""

import numpy as np

SIZES = {"small": (40, 2, 2), "normal": (5000, 4, 3)}  # samples, dimensions, components


def inputs(size="normal"):
    n, d, k = SIZES[size]
    rng = np.random.default_rng(16)
    centres = rng.uniform(-6, 6, (k, d))
    X = centres[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    return X, centres + rng.normal(size=(k, d))


def log_gaussian(X, mean, cov):
    d = X.shape[1]
    diff = X - mean
    sign, logdet = np.linalg.slogdet(cov)
    mahalanobis = np.sum(diff @ np.linalg.inv(cov) * diff, axis=1)
    return -0.5 * (d * np.log(2 * np.pi) + logdet + mahalanobis)


def run(X, means, iterations=6):
    n, d = X.shape
    k = len(means)
    means = means.copy()
    covs = np.array([np.eye(d) for _ in range(k)])
    weights = np.ones(k) / k
    history = []
    for _ in range(iterations):
        log_prob = np.zeros((n, k))
        for j in range(k):
            log_prob[:, j] = np.log(weights[j]) + log_gaussian(X, means[j], covs[j])
        top = log_prob.max(axis=1, keepdims=True)
        log_norm = top + np.log(np.exp(log_prob - top).sum(axis=1, keepdims=True))
        history.append(log_norm.sum())
        resp = np.exp(log_prob - log_norm)
        Nk = resp.sum(axis=0)
        weights = Nk / n
        for j in range(k):
            means[j] = resp[:, j] @ X / Nk[j]
            diff = X - means[j]
            covs[j] = (resp[:, j, None] * diff).T @ diff / Nk[j] + 1e-6 * np.eye(d)
    return weights, means, covs, np.array(history)
