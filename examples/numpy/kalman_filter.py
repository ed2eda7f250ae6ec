"""Kalman filter of a point that moves with constant velocity, seen at noisy positions."""

import numpy as np

SIZES = {"small": 8, "normal": 60}  # steps


def inputs(size="normal"):
    steps = SIZES[size]
    rng = np.random.default_rng(1)
    t = np.arange(steps)
    true = np.stack([0.5 * t, 10 - 0.3 * t], axis=1)
    return (true + rng.normal(scale=0.5, size=true.shape),)


def run(z, dt=1.0, q=0.01, r=0.25):
    n = len(z)
    F = np.eye(4)
    F[0, 2] = F[1, 3] = dt
    H = np.zeros((2, 4))
    H[0, 0] = H[1, 1] = 1
    Q = q * np.eye(4)
    R = r * np.eye(2)

    x = np.zeros(4)
    P = 10.0 * np.eye(4)
    means = np.zeros((n, 4))
    covs = np.zeros((n, 4, 4))
    for t in range(n):
        # predict
        x = F @ x
        P = F @ P @ F.T + Q
        # update
        innovation = z[t] - H @ x
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ innovation
        P = (np.eye(4) - K @ H) @ P
        means[t] = x
        covs[t] = P
    return means, covs
