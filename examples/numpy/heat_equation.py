"""The heat equation on a plate: explicit Euler steps written into a buffer by slices."""

import numpy as np

SIZES = {"small": (12, 15), "normal": (400, 400)}


def inputs(size="normal"):
    rows, cols = SIZES[size]
    u = np.zeros((rows, cols))
    u[0, :] = 100
    u[rows // 3: rows // 2, cols // 3: cols // 2] = 50
    return (u,)


def run(u0, alpha=0.2, steps=20):
    u = u0.copy()
    new = np.empty_like(u)
    for _ in range(steps):
        new[1:-1, 1:-1] = u[1:-1, 1:-1] + alpha * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        # the upper edge is held, the others are insulated
        new[0, :] = u0[0, :]
        new[-1, :] = new[-2, :]
        new[:, 0] = new[:, 1]
        new[:, -1] = new[:, -2]
        u, new = new, u
    return u, u.mean()
