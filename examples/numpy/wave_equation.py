"""The wave equation on a string by leapfrog, with snapshots and the energy at each step."""

import numpy as np

SIZES = {"small": 40, "normal": 20000}


def inputs(size="normal"):
    x = np.linspace(0, 1, SIZES[size])
    return (np.exp(-200 * (x - 0.3) ** 2),)


def run(u0, c2=0.81, steps=40):
    n = len(u0)
    previous = u0.copy()
    current = u0.copy()
    current[1:-1] += 0.5 * c2 * (u0[2:] - 2 * u0[1:-1] + u0[:-2])
    snapshots = np.zeros((steps // 20, n))
    energy = np.zeros(steps)
    for t in range(steps):
        following = np.zeros(n)
        following[1:-1] = (2 * current[1:-1] - previous[1:-1]
                           + c2 * (current[2:] - 2 * current[1:-1] + current[:-2]))
        velocity = following - current
        slope = np.diff(following)
        energy[t] = 0.5 * np.sum(velocity**2) + 0.5 * c2 * np.sum(slope**2)
        previous, current = current, following
        if (t + 1) % 20 == 0:
            snapshots[t // 20] = current
    return snapshots, energy
