"""A residual network of the UCI digits (He et al., ECCV 2016): each block adds to what it is given.

Beside it: scikit-learn's support vector machine and nearest neighbours on the same split.
"""

import time
from itertools import pairwise

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import weft
from weft import nn, optim

SIZES = {"small": (150, 2), "normal": (1797, 30)}  # images, epochs
BLOCKS = ((16, 1), (32, 2), (32, 1))  # channels, stride
FIRST, BATCH = 16, 64


def data(size):
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))[:SIZES[size][0]]
    images = (images[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    held = len(images) // 5
    return images[held:], labels[order][held:], images[:held], labels[order][:held]


def init(rng):
    blocks, before = [], FIRST
    for channels, stride in BLOCKS:
        blocks.append({"norm1": (nn.init.ones(before), nn.init.zeros(before)),
                       "conv1": nn.init.he_normal(rng, (channels, before, 3, 3)),
                       "norm2": (nn.init.ones(channels), nn.init.zeros(channels)),
                       "conv2": nn.init.he_normal(rng, (channels, channels, 3, 3))})
        if (channels, stride) != (before, 1):  # what is given does not fit what is added
            blocks[-1]["short"] = nn.init.he_normal(rng, (channels, before, 1, 1))
        before = channels
    return {"first": nn.init.he_normal(rng, (FIRST, 1, 3, 3)), "blocks": blocks,
            "w": nn.init.glorot_normal(rng, (before, 10)), "b": nn.init.zeros(10)}


def statistics():
    """Running means and variances of each block's norms: Variables, which training updates."""
    widths = [FIRST, *(channels for channels, _ in BLOCKS)]
    return [[[weft.Variable(f(many), trainable=False) for f in (nn.init.zeros, nn.init.ones)]
             for many in pair] for pair in pairwise(widths)]


def logits(params, x, running, training=False):
    h = nn.conv2d(x, params["first"], padding="SAME")
    rows = zip(params["blocks"], running, BLOCKS, strict=True)
    for p, (first, second), (_, stride) in rows:
        inner = nn.relu(nn.batch_norm(h, *first, *p["norm1"], training=training))
        given = nn.conv2d(inner, p["short"], stride) if "short" in p else h
        inner = nn.conv2d(inner, p["conv1"], stride, padding="SAME")
        inner = nn.relu(nn.batch_norm(inner, *second, *p["norm2"], training=training))
        h = given + nn.conv2d(inner, p["conv2"], padding="SAME")
    return nn.linear(nn.global_avg_pool(nn.relu(h)), params["w"], params["b"])


def loss(params, x, y, running):
    return nn.cross_entropy(logits(params, x, running, True), y)


def main(size="normal"):
    x, y, x_test, y_test = data(size)
    epochs = SIZES[size][1]
    params, running = init(np.random.default_rng(0)), statistics()
    adam = optim.AdamW(optim.CosineDecay(5e-3, epochs * (len(x) // BATCH), warmup=20))

    @weft.compile
    def step(params, state, x, y):
        value, grads = weft.value_and_grad(loss)(params, x, y, running)
        return (value, *adam.update(grads, state, params))

    classify = weft.compile(lambda params, x: np.argmax(logits(params, x, running), axis=-1))
    state, losses, rng = adam.init(params), [], np.random.default_rng(2)
    start = time.perf_counter()
    for _ in range(epochs):
        places = rng.permutation(len(x))
        for at in range(0, len(x) - BATCH + 1, BATCH):
            rows = places[at:at + BATCH]
            moved = np.roll(x[rows], rng.integers(-1, 2, 2), (2, 3))  # by up to a pixel
            value, params, state = step(params, state, moved, y[rows])
            losses.append(float(value))
    seconds = time.perf_counter() - start
    accuracy = np.mean(classify(params, x_test) == y_test)
    beside = [peer.fit(x.reshape(-1, 64), y).score(x_test.reshape(-1, 64), y_test)
              for peer in (SVC(), KNeighborsClassifier(3))]
    print(f"loss {losses[0]:.3f} -> {np.mean(losses[-20:]):.4f} in {len(losses)} steps, "
          f"{seconds:.1f} s with compiling")
    print(f"accuracy on {len(y_test)} held-out images: {100 * accuracy:.2f} %, support vector "
          f"machine {100 * beside[0]:.2f} %, three neighbours {100 * beside[1]:.2f} %")
    return {"losses": losses, "accuracy": accuracy, "beside": beside}


if __name__ == "__main__":
    main()
