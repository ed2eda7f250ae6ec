"""The ten documents most similar to each query, by the cosine of their vectors."""

import numpy as np

SIZES = {"small": (50, 8, 3), "normal": (20000, 128, 16)}  # documents, dimensions, queries


def inputs(size="normal"):
    docs, d, queries = SIZES[size]
    rng = np.random.default_rng(8)
    return (rng.standard_normal((docs, d)).astype(np.float32),
            rng.standard_normal((queries, d)).astype(np.float32))


def run(documents, queries, k=10):
    documents = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    queries = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    similarity = queries @ documents.T
    top = np.argpartition(-similarity, k, axis=1)[:, :k]
    values = np.take_along_axis(similarity, top, axis=1)
    order = np.argsort(-values, axis=1)
    return np.take_along_axis(top, order, axis=1), np.take_along_axis(values, order, axis=1)
