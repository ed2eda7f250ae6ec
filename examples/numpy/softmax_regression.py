"""Softmax regression trained by gradient descent, with the gradient written by hand."""

import numpy as np

SIZES = {"small": (30, 4, 3), "normal": (2000, 64, 10)}  # samples, features, classes


def inputs(size="normal"):
    n, d, classes = SIZES[size]
    rng = np.random.default_rng(15)
    X = rng.normal(size=(n, d))
    y = np.argmax(X @ rng.normal(size=(d, classes)) + rng.normal(size=(n, classes)), axis=1)
    return X, y, np.zeros((d, classes)), np.zeros(classes)


def softmax(z):
    z = z - np.max(z, axis=1, keepdims=True)
    e = np.exp(z)
    return e / np.sum(e, axis=1, keepdims=True)


def run(X, y, W, b, lr=0.5, epochs=20, reg=1e-3):
    n = X.shape[0]
    W, b = W.copy(), b.copy()
    losses = []
    for _ in range(epochs):
        probs = softmax(X @ W + b)
        losses.append(-np.mean(np.log(probs[np.arange(n), y])) + reg * np.sum(W * W))
        grad = probs
        grad[np.arange(n), y] -= 1
        grad /= n
        W -= lr * (X.T @ grad + 2 * reg * W)
        b -= lr * grad.sum(axis=0)
    accuracy = np.mean(np.argmax(X @ W + b, axis=1) == y)
    return W, b, np.array(losses), accuracy
