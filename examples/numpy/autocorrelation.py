"""Autocorrelation of a series, a test for white noise, and an AR model by Yule and Walker."""

import numpy as np

SIZES = {"small": 50, "normal": 20000}


def inputs(size="normal"):
    n = SIZES[size]
    rng = np.random.default_rng(23)
    noise = rng.normal(size=n)
    x = np.zeros(n)
    for t in range(2, n):
        x[t] = 0.6 * x[t - 1] - 0.3 * x[t - 2] + noise[t]
    return (x,)


def run(x, max_lag=20, order=3):
    n = len(x)
    x = x - x.mean()
    acf = np.empty(max_lag + 1)
    for lag in range(max_lag + 1):
        acf[lag] = np.dot(x[: n - lag], x[lag:]) / n
    variance = acf[0]
    acf /= variance
    ljung_box = n * (n + 2) * np.sum(acf[1:] ** 2 / (n - np.arange(1, max_lag + 1)))
    # Toeplitz matrix of the first autocorrelations
    R = acf[np.abs(np.subtract.outer(np.arange(order), np.arange(order)))]
    phi = np.linalg.solve(R, acf[1: order + 1])
    sigma2 = variance * (1 - phi @ acf[1: order + 1])
    return acf, ljung_box, phi, sigma2
