"""A Markov chain: its stationary distribution, and walks by inverse transform sampling."""

import numpy as np

SIZES = {"small": (4, 10, 5), "normal": (20, 1000, 60)}  # states, walks, steps


def inputs(size="normal"):
    states, walks, steps = SIZES[size]
    rng = np.random.default_rng(10)
    return rng.dirichlet(np.ones(states), size=states), rng.random((steps, walks))


def run(P, uniforms):
    n = len(P)
    # stationary distribution: pi (P - I) = 0 and sum(pi) = 1
    A = np.vstack([P.T - np.eye(n), np.ones(n)])
    b = np.zeros(n + 1)
    b[-1] = 1
    pi = np.linalg.lstsq(A, b, rcond=None)[0]
    far = np.linalg.matrix_power(P, 50)[0]

    cumulative = np.cumsum(P, axis=1)
    steps, walks = uniforms.shape
    state = np.zeros(walks, dtype=int)
    visits = np.zeros(n)
    for t in range(steps):
        state = (uniforms[t][:, None] > cumulative[state]).sum(axis=1)
        state = np.minimum(state, n - 1)
        np.add.at(visits, state, 1)
    return pi, far, visits / visits.sum()
