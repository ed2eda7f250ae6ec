"""Complex values become pairs of real ones: what each op becomes computes what NumPy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.ir.diagnose import UnsupportedError
from weft.ir.graph import Builder, Graph, all_nodes
from weft.ir.interp.graph import run_graph, run_plan
from weft.ir.ops.op import Kind, OpDef
from weft.ir.ops.table import OPS
from weft.ir.record import replace
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph
from weft.ir.types import BOOL, C64, C128, F64, TensorType
from weft.ir.verify.verifier import verify_graph
from weft.passes.complex.split import split_complex

Z = TensorType(C128, (5,))


def graph_of(*types: TensorType) -> tuple[Graph, Builder, list[Any]]:
    graph = Graph("f")
    return graph, Builder(graph, OPS, share=False, fold=False), [
        graph.add_param(type_, f"x{at}") for at, type_ in enumerate(types)]


def arrays(*types: TensorType) -> list[Any]:
    rng = np.random.default_rng(3)
    made = [rng.normal(size=type_.parts.shape).astype(type_.dtype.part.numpy) for type_ in types]
    return [array.view(type_.dtype.numpy).reshape(type_.shape)
            for array, type_ in zip(made, types, strict=True)]


def agree(graph: Graph, given: list[Any]) -> Graph:
    """The split graph, which is valid and computes the same."""
    split = split_complex(graph)
    verify_graph(split)
    for got, want in zip(run_graph(split, given), run_graph(graph, given), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-12)
    return split


def test_a_product_is_four_real_ones() -> None:
    graph, b, (x, y) = graph_of(Z, Z)
    graph.results = [b.mul(x, y)]
    split = agree(graph, arrays(Z, Z))
    assert [node.op.name for node in split.nodes].count("mul") == 4
    complex_ = {node.op.name for node in split.nodes
                if any(value.dtype.is_complex for value in (*node.inputs, *node.results))}
    assert complex_ == {"parts", "joined"}


def test_a_graph_of_real_numbers_stays_as_it_is() -> None:
    graph, b, (x,) = graph_of(TensorType(F64, (3,)))
    graph.results = [b.exp(x)]
    assert split_complex(graph) is graph


def test_what_is_only_handed_on_is_not_taken_apart() -> None:
    graph, b, (x,) = graph_of(Z)
    graph.results = [x, b.fft(x, axes=(0,), norm="backward")]
    split = agree(graph, arrays(Z))
    assert not any(node.op.kind is Kind.ALIAS for node in split.nodes)


def test_loops_carry_parts() -> None:
    body, inner, (held, row) = graph_of(TensorType(C128, ()), TensorType(C128, ()))
    body.results = [inner.mul(held, row), inner.add(held, row)]
    graph, b, (x, start) = graph_of(Z, TensorType(C128, ()))
    scan = b.emit(OPS["scan"], [start, x], {"carried": 1, "scanned": 1, "length": 5,
                                            "reverse": True, "index": "t", "body": body})
    graph.results = list(scan.results)
    split = agree(graph, arrays(Z, TensorType(C128, ())))
    (loop,) = [node for node in split.nodes if node.op.control is not None]
    assert loop.attrs["carried"] == loop.attrs["scanned"] == 2
    assert all(not value.dtype.is_complex for node in all_nodes(loop.attrs["body"])
               for value in node.inputs)


def test_constants_print_and_parse() -> None:
    graph, b, (x,) = graph_of(Z)
    numbers = [1 - 2j, complex(-0.0, 0.0), complex(0.0, -0.0), complex(np.inf, -np.inf),
               complex(-1e300, np.nan)]
    graph.results = [b.add(x, b.full(number, Z)) for number in numbers]
    text = print_graph(graph)
    again = parse_graph(text)
    assert print_graph(again) == text
    found = [node.attrs["value"] for node in again.nodes if node.op.name == "full"]
    assert [str(number) for number in found] == [str(number) for number in numbers]
    agree(graph, arrays(Z))


@pytest.mark.parametrize("opt", [0, 1, 2])
def test_plans_compute_on_the_memory_of_arguments(opt: int) -> None:
    """No copy of an argument and none of a result: kernels see them as real numbers."""
    type_ = TensorType(C64, (7,))
    graph, b, (x, y) = graph_of(type_, type_)
    graph.results = [b.add(b.mul(x, y), x)]
    given = arrays(type_, type_)
    plan = Stages(graph, Options(opt=opt)).plan
    assert [slot.type for slot in (*plan.params, *plan.results)] == [type_] * 3
    if opt:
        assert plan.launches == 1 and plan.arena == 0
    (got,) = run_plan(plan, given)
    np.testing.assert_allclose(got, given[0] * given[1] + given[0], rtol=1e-6)


NUMBERS = [row for row in OPS.values() if row.kind is Kind.MAP and C128 in row.dtypes]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in NUMBERS])
def test_every_row_that_takes_complex_numbers_has_a_rule(row: OpDef) -> None:
    sample = row.samples[0]
    real = {"select": (BOOL, 0), "masked": (BOOL, 0), "ensure": (F64, 1),
            "awaiting": (F64, 1)}.get(row.name)
    graph, b, values = graph_of(*(
        TensorType(real[0] if real is not None and real[1] == at else C128, shape)
        for at, shape in enumerate(sample.shapes)))
    graph.results = [b.emit(row, values, sample.attrs).results[0]]
    verify_graph(split_complex(graph))


def test_what_has_no_rule_is_refused() -> None:
    graph, b, (x,) = graph_of(Z)
    graph.results = [b.emit(replace(OPS["exp"], name="unknown"), [x]).results[0]]
    with pytest.raises(UnsupportedError, match="W113: unknown of complex numbers"):
        split_complex(graph)


def test_what_is_split_can_be_split_again() -> None:
    graph, b, (x,) = graph_of(Z)
    graph.results = [b.exp(x)]
    agree(agree(graph, arrays(Z)), arrays(Z))
