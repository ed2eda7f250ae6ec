"""Metrics of a classifier's scores: ROC curve, AUC by ranks, average precision, Brier score."""

import numpy as np

SIZES = {"small": 40, "normal": 100000}


def inputs(size="normal"):
    n = SIZES[size]
    rng = np.random.default_rng(30)
    labels = rng.random(n) < 0.3
    return labels, 1 / (1 + np.exp(-rng.normal(loc=1.5 * labels - 0.7, size=n)))


def run(labels, scores):
    n = labels.size
    positives = np.count_nonzero(labels)
    negatives = n - positives
    order = np.argsort(scores)
    ranks = np.empty(n)
    ranks[order] = np.arange(1, n + 1)
    auc = (ranks[labels].sum() - positives * (positives + 1) / 2) / (positives * negatives)

    hits = labels[order[::-1]]
    true_positives = np.cumsum(hits)
    false_positives = np.cumsum(~hits)
    tpr = np.concatenate([[0], true_positives / positives])
    fpr = np.concatenate([[0], false_positives / negatives])
    precision = true_positives / np.arange(1, n + 1)
    average_precision = np.sum(precision * hits) / positives
    brier = np.mean((scores - labels) ** 2)
    return {"auc": auc, "area": np.trapezoid(tpr, fpr), "ap": average_precision, "brier": brier}
