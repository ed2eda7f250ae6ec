"""Jacobi's iteration and successive over-relaxation for a sparse-like linear system."""

import numpy as np

SIZES = {"small": 10, "normal": 400}


def inputs(size="normal"):
    n = SIZES[size]
    A = 4.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return A, np.sin(np.arange(n))


def run(A, b, iterations=25):
    D = np.diag(A)
    R = A - np.diagflat(D)
    x = np.zeros_like(b)
    residuals = []
    for _ in range(iterations):
        x = (b - R @ x) / D
        residuals.append(np.linalg.norm(A @ x - b))
    return x, np.array(residuals)
