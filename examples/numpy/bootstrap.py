"""Bootstrap: confidence intervals of mean, median and correlation from drawn indices."""

import numpy as np

SIZES = {"small": (20, 15), "normal": (400, 500)}  # samples, draws


def inputs(size="normal"):
    n, draws = SIZES[size]
    rng = np.random.default_rng(34)
    x = rng.gamma(2.0, size=n)
    return x, 0.5 * x + rng.normal(size=n), rng.integers(n, size=(draws, n))


def run(x, y, draws, level=0.95):
    tail = 100 * (1 - level) / 2
    bx, by = x[draws], y[draws]
    dx = bx - bx.mean(axis=1, keepdims=True)
    dy = by - by.mean(axis=1, keepdims=True)
    corr = (dx * dy).sum(axis=1) / np.sqrt((dx**2).sum(axis=1) * (dy**2).sum(axis=1))
    found = {"mean": (x.mean(), bx.mean(axis=1)), "median": (np.median(x), np.median(bx, axis=1)),
             "corr": (np.corrcoef(x, y)[0, 1], corr)}
    return {name: (value, *np.percentile(samples, [tail, 100 - tail]))
            for name, (value, samples) in found.items()}
