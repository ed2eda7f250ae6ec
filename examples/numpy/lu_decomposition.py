"""LU decomposition with partial pivoting by loops, and the solution of a system by it."""

import numpy as np

SIZES = {"small": 5, "normal": 24}


def inputs(size="normal"):
    n = SIZES[size]
    rng = np.random.default_rng(24)
    return rng.normal(size=(n, n)), rng.normal(size=n)


def run(A, b):
    n = len(A)
    LU = A.copy()
    perm = np.arange(n)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(LU[k:, k]))
        LU[[k, p]] = LU[[p, k]]
        perm[[k, p]] = perm[[p, k]]
        LU[k + 1:, k] /= LU[k, k]
        LU[k + 1:, k + 1:] -= np.outer(LU[k + 1:, k], LU[k, k + 1:])

    x = b[perm]
    for i in range(1, n):
        x[i] -= LU[i, :i] @ x[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - LU[i, i + 1:] @ x[i + 1:]) / LU[i, i]
    return LU, perm, x
