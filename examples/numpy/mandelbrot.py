"""The Mandelbrot set: how many steps each point of the complex plane takes to escape."""

import numpy as np

SIZES = {"small": (20, 30), "normal": (400, 600)}  # rows, columns of the picture


def inputs(size="normal"):
    height, width = SIZES[size]
    return np.linspace(-2.2, 0.8, width), np.linspace(-1.2, 1.2, height)


def run(re, im, steps=30):
    c = re[np.newaxis, :] + 1j * im[:, np.newaxis]
    z = np.zeros_like(c)
    counts = np.zeros(c.shape, dtype=int)
    for _ in range(steps):
        alive = np.abs(z) <= 2
        z[alive] = z[alive] ** 2 + c[alive]
        counts[alive] += 1
    return counts
