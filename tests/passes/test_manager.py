"""Passes as data: text, options, hooks."""

from __future__ import annotations

import pytest

from weft.ir.diagnose import TextError
from weft.ir.graph import Builder, Graph
from weft.ir.ops.table import OPS
from weft.ir.types import CPU0, F64, Device, TensorType
from weft.ir.verify.verifier import verify_graph
from weft.passes.manager import (
    PASSES,
    PIPELINES,
    PassManager,
    Place,
    Simplify,
    parse_passes,
)


def test_text_of_passes() -> None:
    text = "state,simplify{rounds=1},place{devices=(cpu:0, gpu:1)}"
    passes = parse_passes(text)
    assert passes[1] == Simplify(rounds=1)
    assert passes[2] == Place(devices=(CPU0, Device.parse("gpu:1")))
    assert ",".join(map(str, passes)) == text
    assert parse_passes(" simplify { rounds = 2 } , place ") == (Simplify(), Place())
    assert parse_passes("") == ()


@pytest.mark.parametrize(("text", "message"), [
    ("simplfy", "no pass 'simplfy'"), ("simplify{round=1}", "has no option 'round'"),
    ("simplify{rounds=x}", "option rounds of pass simplify"), ("simplify{rounds=1", "no pass"),
    ("place{devices=(tpu:0)}", "option devices"), ("simplify,,place", "no pass ''")])
def test_wrong_text(text: str, message: str) -> None:
    with pytest.raises(TextError, match=message):
        parse_passes(text)


def test_every_pipeline_runs_and_is_observed() -> None:
    type_ = TensorType(F64, (3,))
    for text in PIPELINES.values():
        graph = Graph("g")
        b = Builder(graph, OPS, share=False, fold=False)
        graph.results = [b.mul(b.tanh(graph.add_param(type_, "x")), 1.0)]
        seen: list[tuple[str, int]] = []
        passes = parse_passes(text)
        manager = PassManager(passes, (
            lambda step, graph, ms, seen=seen: seen.append((str(step), len(graph.nodes))),
            lambda step, graph, ms: verify_graph(graph)))
        result = manager.run(graph)
        assert [name for name, _ in seen] == [str(step) for step in passes]
        assert seen[-1][1] == len(result.nodes)


def test_names_are_keys() -> None:
    assert all(name == kind.name for name, kind in PASSES.items())
