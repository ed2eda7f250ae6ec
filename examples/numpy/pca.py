"""Principal component analysis by the singular value decomposition."""

import numpy as np

SIZES = {"small": (30, 6), "normal": (2000, 50)}  # samples, features


def inputs(size="normal"):
    n, d = SIZES[size]
    rng = np.random.default_rng(5)
    return (rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d),)


def run(X, n_components=3):
    mean = X.mean(axis=0)
    Xc = X - mean
    U, s, Vt = np.linalg.svd(Xc, full_matrices=False)
    # the largest entry of each component is positive, so that the signs are told
    signs = np.sign(Vt[np.arange(len(Vt)), np.argmax(np.abs(Vt), axis=1)])
    components = (Vt * signs[:, None])[:n_components]
    explained = s**2 / (len(X) - 1)
    ratio = explained / explained.sum()
    scores = Xc @ components.T
    restored = scores @ components + mean
    error = np.mean((X - restored) ** 2)
    return scores, ratio[:n_components], error
