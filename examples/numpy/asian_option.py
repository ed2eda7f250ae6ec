"""Asian option by Monte Carlo: the pay-off of the mean of a path of geometric Brownian motion."""

import numpy as np

SIZES = {"small": (100, 12), "normal": (20000, 64)}  # paths, steps


def inputs(size="normal"):
    rng = np.random.default_rng(7)
    return (rng.standard_normal(SIZES[size]),)


def run(Z, S0=100.0, K=100.0, r=0.05, sigma=0.2, T=1.0):
    n_paths, n_steps = Z.shape
    dt = T / n_steps
    increments = (r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * Z
    paths = S0 * np.exp(np.cumsum(increments, axis=1))
    payoff = np.maximum(paths.mean(axis=1) - K, 0)
    discounted = np.exp(-r * T) * payoff
    price = discounted.mean()
    half_width = 1.96 * discounted.std(ddof=1) / np.sqrt(n_paths)
    return price, (price - half_width, price + half_width), np.percentile(payoff, [50, 95, 99])
