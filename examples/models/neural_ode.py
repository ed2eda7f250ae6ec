"""A neural ODE on scikit-learn's wines: measurements flow for a time, then lie apart by kind.

The flow is integrated by Runge-Kutta in a scan, and the gradient is that of the scan (discretise,
then differentiate; Chen et al., NeurIPS 2018). Beside it: logistic regression on the same split.
"""

import time

import numpy as np
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression

import weft
from weft import nn, optim

SIZES = {"small": (60, 20), "normal": (178, 300)}  # wines, steps
WIDTH, ROUNDS = 32, 8


def data(size):
    x, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))[:SIZES[size][0]]
    held = len(order) // 3
    seen = x[order][held:]
    x = ((x[order] - seen.mean(0)) / seen.std(0)).astype(np.float32)
    return x[held:], y[order][held:], x[:held], y[order][:held]


def init(rng, measures=13, kinds=3):
    return {"in": nn.init.glorot_normal(rng, (measures, WIDTH)), "time": nn.init.zeros(WIDTH),
            "bias": nn.init.zeros(WIDTH), "out": nn.init.normal(rng, (WIDTH, measures), 0.1),
            "w": nn.init.glorot_normal(rng, (measures, kinds)), "b": nn.init.zeros(kinds)}


def flow(params, x):
    """Where points are at time 1 that are at x at time 0, and after each round before."""
    def slope(x, t):
        return np.tanh(x @ params["in"] + t * params["time"] + params["bias"]) @ params["out"]

    def step(x, t):
        half = np.float32(0.5 / ROUNDS)
        a = slope(x, t)
        b = slope(x + half * a, t + half)
        c = slope(x + half * b, t + half)
        d = slope(x + 2 * half * c, t + 2 * half)
        x = x + half / 3 * (a + 2 * b + 2 * c + d)
        return x, x

    return weft.scan(step, x, np.arange(ROUNDS, dtype=np.float32) / ROUNDS)


def loss(params, x, y):
    return nn.cross_entropy(flow(params, x)[0] @ params["w"] + params["b"], y)


@weft.compile
def classify(params, x):
    return np.argmax(flow(params, x)[0] @ params["w"] + params["b"], axis=-1)


def main(size="normal"):
    x, y, x_test, y_test = data(size)
    steps = SIZES[size][1]
    adam = optim.AdamW(optim.CosineDecay(0.02, steps, warmup=5), weight_decay=0.01)
    params = init(np.random.default_rng(1))

    @weft.compile
    def train(params, x, y):
        """All steps, in one native loop."""
        def step(carry, _):
            value, grads = weft.value_and_grad(loss)(carry[0], x, y)
            return adam.update(grads, carry[1], carry[0]), value

        (params, _), losses = weft.scan(step, (params, adam.init(params)), length=steps)
        return params, losses

    start = time.perf_counter()
    params, losses = train(params, x, y)
    seconds = time.perf_counter() - start
    right = float(np.mean(classify(params, x_test) == y_test))
    beside = LogisticRegression(max_iter=1000).fit(x, y).score(x_test, y_test)
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} in {steps} steps, "
          f"{seconds:.1f} s with compiling")
    print(f"right of {len(y_test)} wines: {right:.3f}, logistic regression {beside:.3f}")
    paths = np.concatenate([x_test[None], flow(params, x_test)[1]])
    return {"losses": losses, "accuracy": right, "beside": beside, "paths": (paths, y_test)}


if __name__ == "__main__":
    main()
