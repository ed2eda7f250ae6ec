"""Dynamic time warping of two series: the table of costs, filled row by row with Python loops."""

import numpy as np

SIZES = {"small": (6, 7), "normal": (10, 10)}


def inputs(size="normal"):
    n, m = SIZES[size]
    rng = np.random.default_rng(31)
    a = np.sin(np.linspace(0, 6, n)) + 0.1 * rng.normal(size=n)
    return a, np.sin(np.linspace(0.5, 7, m)) + 0.1 * rng.normal(size=m)


def run(a, b):
    n, m = len(a), len(b)
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0
    cost = np.abs(a[:, None] - b[None, :])
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            D[i, j] = cost[i - 1, j - 1] + np.min([D[i - 1, j], D[i, j - 1], D[i - 1, j - 1]])
    return D[n, m], D[1:, 1:]
