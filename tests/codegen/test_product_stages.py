"""Products that are a stage of a kernel, with what is computed along their rows: whatever axes a
task has beside those of its tiles, all of its results are there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_logits_are_compared_with_ids_that_are_shifted() -> None:
    """The loss of language models: rows and images of a batch do not become one axis."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 7, 16)), rng.normal(size=(16, 11))
    ids = rng.integers(0, 11, (4, 8))

    def loss(x: Any, w: Any, ids: Any) -> Any:
        chosen = np.take_along_axis(np.log(_softmax(x @ w)), ids[:, 1:, None], -1)
        return -np.mean(chosen), chosen

    for got, want in zip(weft.compile(loss)(x, w, ids), loss(x, w, ids), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize(("first", "second"), [
    ("ijd,dk->ijk", "ijk,kg->ijg"),      # two axes on the side of the rows
    ("ijd,dkl->ijkl", "ijkl,klg->ijkg"),  # a third axis within the task
    ("ijd,hdk->hijk", "hijk,ikg->hijg"),  # rows that the second product has on neither side
    ("id,jdk->ijk", "ijk,kg->ijg"),      # a side that has no axis within the task
    ("ijd,jdk->ijk", "ijk,ikg->ijg"),
])
@pytest.mark.parametrize("after", [1, 0])
def test_products_around_a_softmax(first: str, second: str, after: int) -> None:
    size = dict(zip("hijdklg", (3, 5, 4, 6, 7, 2, 3), strict=True))
    rng = np.random.default_rng(1)

    def array(letters: str, more: int = 0) -> Any:
        return rng.normal(size=[size[letter] + more for letter in letters])

    one, two = (spec.partition("->")[0].split(",") for spec in (first, second))
    out = first.partition("->")[2]
    arrays = array(one[0]), array(one[1]), array(two[1]), array(out, after)
    own = tuple(slice(after, None) for _ in out)

    def function(x: Any, w: Any, v: Any, shifts: Any) -> Any:
        s = _softmax(np.einsum(first, x, w) + shifts[own])
        return np.einsum(second, s, v), s

    for got, want in zip(weft.compile(function)(*arrays), function(*arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-14)
