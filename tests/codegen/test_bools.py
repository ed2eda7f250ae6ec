"""Bools that are summed, counted and asked for, on CPUs with and without registers for masks."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

TARGETS = ["x86-64-v3", None]
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "any of rows": lambda b: b.any(1), "all of rows": lambda b: b.all(1),
    "any of columns": lambda b: b.any(0), "all of columns": lambda b: b.all(0),
    "any": lambda b: b.any(), "all": lambda b: b.all(),
    "count": lambda b: np.count_nonzero(b), "of rows": lambda b: b.sum(1),
    "of columns": lambda b: b.sum(0), "as bytes": lambda b: b.sum(1, dtype=np.int8),
    "as words": lambda b: b.sum(1, dtype=np.uint16),
    "both": lambda b: (b.sum(1), b.any(1), (~b).sum(1)),
    "compared": lambda b: ((b.astype("f4") - 0.5) > 0).sum(1),
    "of what is counted": lambda b: b.astype("i8").sum(1) * b[:, 0].astype("i8").sum(),
}


SHAPES = [(5, 1), (3, 7), (9, 64), (4, 65), (2, 300), (70, 1030)]


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_as_numpy(target: str | None, name: str) -> None:
    function = FUNCTIONS[name]
    compiled = weft.compile(function, target=target, on_recompile="silent")
    for shape, share in itertools.product(SHAPES, (0.0, 0.02, 0.5, 1.0)):
        b = np.random.default_rng(0).random(shape) < share
        found, wanted = (weft.tree.flatten(each(b))[0] for each in (compiled, function))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
            assert np.asarray(one).dtype == np.asarray(other).dtype


def test_bools_that_are_counted_are_bits() -> None:
    """A step adds the number of lanes that are true, and not each lane by itself."""
    b = np.zeros((40, 1000), bool)
    for target in TARGETS:
        text = weft.compile(lambda b: b.sum(1), target=target).lower(b).as_text("llvm")
        assert "llvm.ctpop.i64" in text


def test_bools_are_held_as_bytes_where_there_are_no_registers_for_masks() -> None:
    b = np.zeros((40, 1000), bool)
    text = weft.compile(lambda b: b.any(1), target="x86-64-v3").lower(b).as_text("llvm")
    assert "phi <64 x i8>" in text and "phi <64 x i1>" not in text
