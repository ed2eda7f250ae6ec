"""The Ising model: Metropolis' steps on the two colours of a checkerboard."""

import numpy as np

SIZES = {"small": (8, 10, 3), "normal": (256, 256, 12)}  # rows, columns, sweeps


def inputs(size="normal"):
    rows, cols, sweeps = SIZES[size]
    rng = np.random.default_rng(33)
    return rng.choice([-1, 1], size=(rows, cols)), rng.random((sweeps, 2, rows, cols))


def run(spins, uniforms, beta=0.44):
    spins = spins.copy()
    rows, cols = spins.shape
    i, j = np.ogrid[:rows, :cols]
    colours = [(i + j) % 2 == 0, (i + j) % 2 == 1]
    magnetisation = np.zeros(len(uniforms))
    for sweep in range(len(uniforms)):
        for parity, mask in enumerate(colours):
            neighbours = (np.roll(spins, 1, 0) + np.roll(spins, -1, 0)
                          + np.roll(spins, 1, 1) + np.roll(spins, -1, 1))
            dE = 2 * spins * neighbours
            flip = mask & (uniforms[sweep, parity] < np.exp(-beta * dE))
            spins[flip] *= -1
        magnetisation[sweep] = spins.mean()
    energy = -np.mean(spins * (np.roll(spins, 1, 0) + np.roll(spins, 1, 1)))
    return spins, magnetisation, energy
