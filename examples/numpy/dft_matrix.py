"""The discrete Fourier transform as a product with its matrix, and the strongest frequencies."""

import numpy as np

SIZES = {"small": 24, "normal": 512}


def inputs(size="normal"):
    n = SIZES[size]
    t = np.arange(n) / n
    rng = np.random.default_rng(27)
    return (np.sin(2 * np.pi * 3 * t) + 0.5 * np.cos(2 * np.pi * 7 * t)
            + 0.1 * rng.normal(size=n),)


def run(x):
    n = len(x)
    k = np.arange(n)
    W = np.exp(-2j * np.pi * np.outer(k, k) / n)
    X = W @ x
    power = np.abs(X[: n // 2]) ** 2
    strongest = np.argsort(power)[::-1][:2]
    phases = np.angle(X[strongest])
    back = (W.conj() @ X / n).real
    return X, strongest, phases, back
