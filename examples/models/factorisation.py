"""Matrix factorisation: hidden pixels of the UCI digits, told from those that are seen.

Image i and pixel j have vectors of their own, and a pixel is their product with biases; only what
is seen is learnt from. Beside it: scikit-learn's nearest neighbours, and each pixel's mean.
"""

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer

import weft
from weft import nn, optim

SIZES = {"small": (60, 20), "normal": (1797, 400)}  # images, steps
RANK, DECAY = 20, 0.15


def data(size):
    """The images, and which pixels are seen: seven of ten."""
    images = (load_digits(return_X_y=True)[0][:SIZES[size][0]] / 16).astype(np.float32)
    return images, np.random.default_rng(0).random(images.shape) < 0.7


def init(rng, images, pixels):
    return {"images": nn.init.normal(rng, (images, RANK), 0.1),
            "pixels": nn.init.normal(rng, (pixels, RANK), 0.1),
            "image": nn.init.zeros((images, 1)), "pixel": nn.init.zeros(pixels)}


def predicted(params):
    return params["images"] @ params["pixels"].T + params["image"] + params["pixel"]


def loss(params, x, seen):
    """The mean square of the errors that are seen, and a little of the vectors' lengths."""
    errors = np.where(seen, predicted(params) - x, 0)
    lengths = np.mean(params["images"] ** 2) + np.mean(params["pixels"] ** 2)
    return np.sum(errors ** 2) / np.sum(seen) + DECAY * lengths


def main(size="normal"):
    x, seen = data(size)
    steps = SIZES[size][1]
    params = init(np.random.default_rng(1), *x.shape)
    adam = optim.Adam(optim.CosineDecay(0.05, steps, warmup=10))

    @weft.compile
    def train(params, x, seen):
        """All steps, in one native loop."""
        def step(carry, _):
            value, grads = weft.value_and_grad(loss)(carry[0], x, seen)
            return adam.update(grads, carry[1], carry[0]), value

        (params, _), losses = weft.scan(step, (params, adam.init(params)), length=steps)
        return params, losses

    start = time.perf_counter()
    params, losses = train(params, x, seen)
    seconds = time.perf_counter() - start
    means = np.where(seen, x, 0).sum(0) / np.maximum(seen.sum(0), 1)
    near = KNNImputer(n_neighbors=5, keep_empty_features=True).fit_transform(
        np.where(seen, x, np.nan))
    errors = [float(np.sqrt(np.mean((guess - x)[~seen] ** 2)))
              for guess in (predicted(params), near, np.broadcast_to(means, x.shape))]
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} in {steps} steps, "
          f"{seconds:.1f} s with compiling")
    print(f"error of {np.sum(~seen)} hidden pixels: {errors[0]:.4f}, of five nearest neighbours "
          f"{errors[1]:.4f}, of means {errors[2]:.4f}")
    rows = np.where(seen, x, np.nan)[:8], np.clip(predicted(params), 0, 1)[:8], x[:8]
    return {"losses": losses, "errors": errors, "images": np.stack(rows).reshape(3, 8, 8, 8)}


if __name__ == "__main__":
    main()
