"""Lloyd's algorithm for k-means, with a mask for each cluster."""

import numpy as np

SIZES = {"small": (60, 2), "normal": (20000, 8)}  # points, dimensions


def inputs(size="normal"):
    n, d = SIZES[size]
    rng = np.random.default_rng(6)
    centres = rng.uniform(-10, 10, (5, d))
    X = centres[rng.integers(5, size=n)] + rng.normal(size=(n, d))
    return X, X[:5].copy()


def run(X, centroids, iterations=10):
    k = len(centroids)
    centroids = centroids.copy()
    for _ in range(iterations):
        distances = np.linalg.norm(X[:, None, :] - centroids[None, :, :], axis=2)
        labels = np.argmin(distances, axis=1)
        for j in range(k):
            centroids[j] = X[labels == j].mean(axis=0)
    inertia = np.sum((X - centroids[labels]) ** 2)
    return centroids, labels, inertia
