"""Gravity between many bodies: softened forces of all pairs, kick-drift-kick steps."""

import numpy as np

SIZES = {"small": 10, "normal": 300}


def inputs(size="normal"):
    n = SIZES[size]
    rng = np.random.default_rng(13)
    mass = np.full(n, 20.0 / n)
    pos, vel = rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    vel -= np.mean(mass[:, None] * vel, axis=0) / np.mean(mass)
    return pos, vel, mass


def acceleration(pos, mass, softening=0.1):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
    inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** (-1.5)
    ax = (dx * inv_r3) @ mass
    ay = (dy * inv_r3) @ mass
    az = (dz * inv_r3) @ mass
    return np.stack((ax, ay, az), axis=1)


def run(pos, vel, mass, dt=0.01, steps=10):
    pos, vel = pos.copy(), vel.copy()
    kinetic = np.zeros(steps)
    acc = acceleration(pos, mass)
    for t in range(steps):
        vel += acc * dt / 2
        pos += vel * dt
        acc = acceleration(pos, mass)
        vel += acc * dt / 2
        kinetic[t] = 0.5 * np.sum(mass[:, None] * vel**2)
    return pos, vel, kinetic
