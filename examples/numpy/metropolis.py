"""Metropolis' algorithm for many chains at once, with the random numbers drawn beforehand."""

import numpy as np

SIZES = {"small": (6, 10), "normal": (2000, 80)}  # chains, steps


def inputs(size="normal"):
    chains, steps = SIZES[size]
    rng = np.random.default_rng(19)
    return rng.normal(size=(chains, 2)), rng.normal(size=(steps, chains, 2)), rng.random(
        (steps, chains))


def log_density(x):
    """Rosenbrock's banana."""
    return -((1 - x[..., 0]) ** 2 + 5 * (x[..., 1] - x[..., 0] ** 2) ** 2) / 4


def run(x, proposals, uniforms, scale=0.6, burn_in=4):
    x = x.copy()
    steps, chains = uniforms.shape
    samples = np.zeros((steps, chains, 2))
    accepted = np.zeros(chains, dtype=int)
    current = log_density(x)
    for t in range(steps):
        candidate = x + scale * proposals[t]
        new = log_density(candidate)
        accept = np.log(uniforms[t]) < new - current
        x[accept] = candidate[accept]
        current[accept] = new[accept]
        accepted += accept
        samples[t] = x
    kept = samples[burn_in:].reshape(-1, 2)
    return kept.mean(axis=0), np.cov(kept, rowvar=False), accepted / steps
