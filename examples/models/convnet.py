"""A convolutional classifier of the UCI digits: two convolutions with batch norm, pooling, dropout.

Beside it: scikit-learn's support vector machine on the same split.
"""

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import weft
from weft import nn, optim

SIZES = {"small": (200, 2), "normal": (1797, 40)}  # images, epochs


def data(size):
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))[:SIZES[size][0]]
    images = (images[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    held = len(images) // 5
    return images[held:], labels[order][held:], images[:held], labels[order][:held]


def init(rng):
    return {"conv1": nn.init.he_normal(rng, (16, 1, 3, 3)), "scale1": nn.init.ones(16),
            "shift1": nn.init.zeros(16), "conv2": nn.init.he_normal(rng, (32, 16, 3, 3)),
            "bias2": nn.init.zeros(32), "w": nn.init.glorot_normal(rng, (32 * 16, 10)),
            "b": nn.init.zeros(10)}


def statistics():
    return np.zeros(16, np.float32), np.ones(16, np.float32)


def logits(params, x, running, training=False, rng=None):
    """The scores of the classes, and the running statistics after this batch."""
    h = nn.conv2d(x, params["conv1"], padding="SAME")
    h = nn.batch_norm(h, *running, params["scale1"], params["shift1"], training=training)
    h, *running = h if training else (h, *running)
    h = nn.conv2d(nn.relu(h), params["conv2"], padding="SAME", bias=params["bias2"])
    h = nn.max_pool2d(nn.relu(h), 2)
    h = h.reshape(h.shape[0], -1)
    h = nn.dropout(h, 0.3, rng, training) if rng is not None else h
    return nn.linear(h, params["w"], params["b"]), tuple(running)


def loss(params, x, y, running, rng=None):
    scores, running = logits(params, x, running, True, rng)
    return nn.cross_entropy(scores, y), running


def main(size="normal"):
    x, y, x_test, y_test = data(size)
    epochs = SIZES[size][1]
    params, running, rng = init(np.random.default_rng(0)), statistics(), weft.random.default_rng(1)
    adam = optim.AdamW(optim.CosineDecay(3e-3, epochs * (len(x) // 64), warmup=20))
    state = adam.init(params)

    @weft.compile
    def step(params, state, running, x, y):
        of_loss = weft.value_and_grad(loss, has_aux=True)
        (value, running), grads = of_loss(params, x, y, running, rng)
        return (value, running, *adam.update(grads, state, params))

    @weft.compile
    def classify(params, running, x):
        return np.argmax(logits(params, x, running)[0], axis=-1)

    order, losses, start = np.random.default_rng(2), [], time.perf_counter()
    for _ in range(epochs):
        places = order.permutation(len(x))
        for at in range(0, len(x) - 63, 64):
            rows = places[at:at + 64]
            value, running, params, state = step(params, state, running, x[rows], y[rows])
            losses.append(float(value))
    seconds = time.perf_counter() - start
    accuracy = np.mean(classify(params, running, x_test) == y_test)
    machine = SVC().fit(x.reshape(len(x), -1), y).score(x_test.reshape(len(x_test), -1), y_test)
    print(f"loss {losses[0]:.3f} -> {np.mean(losses[-20:]):.4f} in {len(losses)} steps, "
          f"{seconds:.1f} s with compiling")
    print(f"accuracy on {len(y_test)} held-out images: {100 * accuracy:.2f} %, "
          f"support vector machine {100 * machine:.2f} %")
    return {"losses": losses, "accuracy": accuracy, "machine": machine}


if __name__ == "__main__":
    main()
