"""Which indices are known to be those of different places."""

from __future__ import annotations

from weft.ir.graph import Builder, Graph
from weft.ir.ops.places.distinct import are_distinct
from weft.ir.ops.table import OPS
from weft.ir.types import I64, TensorType


def test_lines_and_grids() -> None:
    b = Builder(Graph("f"), OPS)
    start, given = (
        b.graph.add_param(TensorType(I64, shape), "x") for shape in ((), (4,)))
    line = b.add(b.iota(axis=0, dtype=I64, shape=(4,)), b.broadcast(start, shape=(4,), axes=()))
    assert are_distinct([line], [4]) and are_distinct([b.mul(line, -2)], [7])
    assert not are_distinct([line], [3])  # the last one may be the first, from the end
    assert not are_distinct([b.mul(line, 2)], [6]) and not are_distinct([given], [9])
    assert not are_distinct([b.sub(line, line)], [9])
    rows, columns = (b.broadcast(line, shape=(4, 4), axes=(axis,)) for axis in (0, 1))
    assert are_distinct([rows, columns], [5, 5]) and not are_distinct([rows], [5])
    assert not are_distinct([b.add(rows, columns)], [50])


def test_a_value_that_is_added_to_itself_over_and_over() -> None:
    """Each sum asks for both of its operands: forty would be a million million."""
    b = Builder(Graph("f"), OPS)
    line = b.iota(axis=0, dtype=I64, shape=(4,))
    for _ in range(40):
        line = b.add(line, line)
    assert not are_distinct([line], [1 << 50])
