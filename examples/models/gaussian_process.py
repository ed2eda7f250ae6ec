"""A Gaussian process whose kernel is learnt by the gradient of the likelihood: scikit-learn's
diabetes table, ten measurements to the disease's progress a year later.

Beside it: scikit-learn's process with the same kernel, fitted by L-BFGS on the same split.
"""

import time

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import weft
from weft import optim

SIZES = {"small": (40, 10), "normal": (442, 200)}  # rows, steps


def data(size):
    x, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))[:SIZES[size][0]]
    x, y = x[order] / x.std(0), (y[order] - y.mean()) / y.std()
    held = len(x) // 4
    return x[held:], y[held:], x[:held], y[:held]


def init():
    """Logarithms of the kernel's variance, its length along each axis, and the noise's variance."""
    return {"variance": np.zeros(()), "lengths": np.full(10, 1.0), "noise": np.full((), -1.0)}


def kernel(params, a, b):
    a, b = (x / np.exp(params["lengths"]) for x in (a, b))
    apart = np.sum(a ** 2, 1)[:, None] + np.sum(b ** 2, 1) - 2 * a @ b.T
    return np.exp(params["variance"] - 0.5 * np.maximum(apart, 0))


def covariance(params, x):
    return kernel(params, x, x) + np.exp(params["noise"]) * np.eye(len(x))


def loss(params, x, y):
    """Minus the logarithm of the marginal likelihood (Rasmussen and Williams, 2006, 2.30)."""
    root = np.linalg.cholesky(covariance(params, x))
    white = np.linalg.solve(root, y)
    return 0.5 * np.sum(white ** 2) + np.sum(np.log(np.diagonal(root))) + (
        0.5 * len(x) * np.log(2 * np.pi))


def predicted(params, x, y, new):
    """Mean and variance of new rows (Rasmussen and Williams, 2.25 and 2.26), noise included."""
    across = kernel(params, new, x)
    weights = np.linalg.solve(covariance(params, x), across.T)
    variance = np.exp(params["variance"]) + np.exp(params["noise"]) - np.sum(across.T * weights, 0)
    return weights.T @ y, variance


def main(size="normal"):
    x, y, x_test, y_test = data(size)
    steps, params = SIZES[size][1], init()
    adam = optim.Adam(optim.CosineDecay(0.1, steps))

    @weft.compile
    def step(params, state, x, y):
        value, grads = weft.value_and_grad(loss)(params, x, y)
        return (value, *adam.update(grads, state, params))

    state, losses, start = adam.init(params), [], time.perf_counter()
    for _ in range(steps):
        value, params, state = step(params, state, x, y)
        losses.append(float(value))
    seconds = time.perf_counter() - start

    def score(guess):
        return 1 - np.mean((guess - y_test) ** 2) / np.var(y_test)

    mean, variance = weft.compile(predicted)(params, x, y, x_test)
    start = time.perf_counter()
    peer = GaussianProcessRegressor(
        ConstantKernel() * RBF(np.full(10, np.e)) + WhiteKernel(np.exp(-1))).fit(x, y)
    peer_seconds = time.perf_counter() - start
    likelihoods = [-losses[-1], float(peer.log_marginal_likelihood_value_)]
    scores = [float(score(mean)), float(score(peer.predict(x_test)))]
    print(f"log likelihood {-losses[0]:.2f} -> {likelihoods[0]:.2f} in {steps} steps, "
          f"{seconds:.1f} s with compiling; scikit-learn {likelihoods[1]:.2f}, "
          f"{peer_seconds:.1f} s")
    print(f"R2 of {len(y_test)} held-out rows {scores[0]:.3f}, scikit-learn {scores[1]:.3f}")
    print("lengths", np.round(np.exp(params["lengths"]), 1))
    order = np.argsort(mean)
    band = mean[order], np.sqrt(variance[order]), y_test[order]
    return {"losses": losses, "likelihoods": likelihoods, "scores": scores, "band": band}


if __name__ == "__main__":
    main()
