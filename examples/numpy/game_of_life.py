"""Conway's Game of Life on a torus, after N. Rougier's "From Python to NumPy"."""

import numpy as np

SIZES = {"small": (12, 15), "normal": (512, 512)}


def inputs(size="normal"):
    rng = np.random.default_rng(3)
    return (rng.integers(0, 2, SIZES[size], dtype=np.uint8),)


def run(cells, generations=12):
    rows, cols = cells.shape
    Z = np.zeros((rows + 2, cols + 2), dtype=cells.dtype)
    inner = Z[1:-1, 1:-1]
    inner[...] = cells
    for _ in range(generations):
        # the border repeats the other side
        Z[0, :], Z[-1, :] = Z[-2, :], Z[1, :]
        Z[:, 0], Z[:, -1] = Z[:, -2], Z[:, 1]
        N = (Z[:-2, :-2] + Z[:-2, 1:-1] + Z[:-2, 2:]
             + Z[1:-1, :-2] + Z[1:-1, 2:]
             + Z[2:, :-2] + Z[2:, 1:-1] + Z[2:, 2:])
        birth = (N == 3) & (inner == 0)
        survive = ((N == 2) | (N == 3)) & (inner == 1)
        inner[...] = 0
        inner[birth | survive] = 1
    return inner
