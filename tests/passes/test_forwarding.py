"""What is read behind a store, and in which order kernels read and store."""

from __future__ import annotations

import numpy as np
import pytest

from weft.ir.interp.graph import run_graph
from weft.ir.ops.table import OPS
from weft.ir.text.parser import parse_graph
from weft.passes.simplify.simplify import simplify

READ = """graph @f(%x: f64[6,2], %v: f64[2]) -> (%2: f64[1,2]) {{
  %0: i64[] = full {{value = {place}, dtype = i64, shape = ()}}
  %1: f64[6,2] = {store} %x, %v, %0 {{axes = (0,){inside}}}
  %2: f64[1,2] = slice %1 {{start = (3, 0), step = (1, 1), shape = (1, 2)}}
  return %2
}}"""


@pytest.mark.parametrize("store", ["scatter", "scatter_add"])
@pytest.mark.parametrize("place", [3, -3, 2, -4, 0, -1])
def test_a_row_behind_a_store(store: str, place: int) -> None:
    inside = ', inside = ("all",)' if place >= 0 else ""  # so that nothing is checked
    graph = parse_graph(READ.format(store=store, place=place, inside=inside))
    x, v = np.arange(12.0).reshape(6, 2), np.array([20.0, 30.0])
    found = simplify(graph)
    np.testing.assert_array_equal(run_graph(found, [x, v])[0], run_graph(graph, [x, v])[0])
    assert (OPS[store] in [node.op for node in found.nodes]) == (place < 0)


def test_a_store_that_fails_stays() -> None:
    graph = parse_graph(READ.format(store="scatter", place=6, inside=""))
    assert OPS["scatter"] in [node.op for node in simplify(graph).nodes]


def test_a_part_of_a_row_is_read_where_it_is() -> None:
    """A kernel reads elements and rows before a store; for others the array would be copied."""
    text = READ.format(store="scatter", place=2, inside="").replace("f64[1,2]", "f64[2,2]")
    graph = parse_graph(text.replace("shape = (1, 2)", "shape = (2, 2)"))
    assert OPS["scatter"] in [node.op for node in simplify(graph).nodes]
