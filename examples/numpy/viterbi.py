"""Viterbi's algorithm: the likeliest path of hidden states, in log space."""

import numpy as np

SIZES = {"small": (4, 5, 10), "normal": (32, 20, 80)}  # states, symbols, observations


def inputs(size="normal"):
    states, symbols, steps = SIZES[size]
    rng = np.random.default_rng(2)
    A = rng.dirichlet(np.ones(states), size=states)
    B = rng.dirichlet(np.ones(symbols), size=states)
    pi = rng.dirichlet(np.ones(states))
    return rng.integers(symbols, size=steps), pi, A, B


def run(obs, pi, A, B):
    T, N = len(obs), len(pi)
    log_A, log_B = np.log(A), np.log(B)
    delta = np.zeros((T, N))
    psi = np.zeros((T, N), dtype=int)
    delta[0] = np.log(pi) + log_B[:, obs[0]]
    for t in range(1, T):
        scores = delta[t - 1][:, None] + log_A
        psi[t] = np.argmax(scores, axis=0)
        delta[t] = np.max(scores, axis=0) + log_B[:, obs[t]]

    path = np.zeros(T, dtype=int)
    path[-1] = np.argmax(delta[-1])
    for t in range(T - 2, -1, -1):
        path[t] = psi[t + 1, path[t + 1]]
    return path, np.max(delta[-1])
