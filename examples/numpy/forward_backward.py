"""The forward-backward algorithm of a hidden Markov model, scaled at each step."""

import numpy as np

SIZES = {"small": (3, 4, 8), "normal": (16, 10, 60)}  # states, symbols, observations


def inputs(size="normal"):
    states, symbols, steps = SIZES[size]
    rng = np.random.default_rng(26)
    A = rng.dirichlet(np.ones(states), size=states)
    B = rng.dirichlet(np.ones(symbols), size=states)
    return rng.integers(symbols, size=steps), np.full(states, 1 / states), A, B


def run(obs, pi, A, B):
    T, N = obs.size, pi.size
    alpha = np.zeros((T, N))
    beta = np.zeros((T, N))
    scale = np.zeros(T)

    alpha[0] = pi * B[:, obs[0]]
    scale[0] = alpha[0].sum()
    alpha[0] /= scale[0]
    for t in range(1, T):
        alpha[t] = (alpha[t - 1] @ A) * B[:, obs[t]]
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]

    beta[-1] = 1
    for t in reversed(range(T - 1)):
        beta[t] = A @ (B[:, obs[t + 1]] * beta[t + 1]) / scale[t + 1]

    gamma = alpha * beta
    xi = np.zeros((N, N))
    for t in range(T - 1):
        xi += alpha[t][:, None] * A * B[:, obs[t + 1]] * beta[t + 1] / scale[t + 1]
    new_A = xi / gamma[:-1].sum(axis=0)[:, None]
    return gamma, new_A, np.log(scale).sum()
