"""Lorenz' equations for many starting points, by the classical Runge-Kutta method."""

import numpy as np

SIZES = {"small": 5, "normal": 5000}  # starting points


def inputs(size="normal"):
    rng = np.random.default_rng(14)
    return (np.array([1.0, 1.0, 1.0]) + 0.1 * rng.normal(size=(SIZES[size], 3)),)


def lorenz(state, sigma=10.0, rho=28.0, beta=8 / 3):
    x, y, z = state[:, 0], state[:, 1], state[:, 2]
    out = np.empty_like(state)
    out[:, 0] = sigma * (y - x)
    out[:, 1] = x * (rho - z) - y
    out[:, 2] = x * y - beta * z
    return out


def run(state, dt=0.01, steps=15):
    trajectory = np.empty((steps + 1, *state.shape))
    trajectory[0] = state
    for i in range(steps):
        s = trajectory[i]
        k1 = lorenz(s)
        k2 = lorenz(s + dt / 2 * k1)
        k3 = lorenz(s + dt / 2 * k2)
        k4 = lorenz(s + dt * k3)
        trajectory[i + 1] = s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    spread = trajectory.std(axis=1)
    return trajectory[-1], spread
