"""PageRank by power iteration over a list of links."""

import numpy as np

SIZES = {"small": (10, 40), "normal": (5000, 50000)}  # pages, links


def inputs(size="normal"):
    pages, links = SIZES[size]
    rng = np.random.default_rng(17)
    source = rng.integers(pages, size=links)
    target = (pages * rng.random(links) ** 2).astype(np.int64)
    return source, target, np.full(pages, 1.0 / pages)


def run(source, target, rank, damping=0.85, iterations=20):
    n = len(rank)
    out_degree = np.bincount(source, minlength=n)
    dangling = out_degree == 0
    for _ in range(iterations):
        share = rank / np.maximum(out_degree, 1)
        incoming = np.zeros(n)
        np.add.at(incoming, target, share[source])
        lost = rank[dangling].sum()
        rank = (1 - damping) / n + damping * (incoming + lost / n)
    top = np.argsort(rank)[::-1][:5]
    return rank, top
