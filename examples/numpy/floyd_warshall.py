"""Shortest paths between all pairs of nodes: Floyd and Warshall's algorithm, with successors."""

import numpy as np

SIZES = {"small": 8, "normal": 60}


def inputs(size="normal"):
    n = SIZES[size]
    rng = np.random.default_rng(18)
    weights = rng.uniform(1, 10, (n, n))
    weights[rng.random((n, n)) > 0.2] = np.inf
    np.fill_diagonal(weights, 0)
    return (weights,)


def run(weights):
    n = weights.shape[0]
    dist = weights.copy()
    following = np.where(np.isfinite(weights), np.arange(n)[None, :], -1)
    for k in range(n):
        through = dist[:, k, None] + dist[None, k, :]
        better = through < dist
        dist[better] = through[better]
        following = np.where(better, following[:, k][:, None], following)
    reachable = np.isfinite(dist)
    diameter = np.max(dist, where=reachable, initial=0)
    return dist, following, diameter
