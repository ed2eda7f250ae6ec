"""WEFT_VERIFY=passes names the pass that changes a result."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.graph import Graph
from weft.ir.ops import OPS
from weft.passes import manager
from weft.passes.clone import Clone


def wrong_simplify(graph: Graph, rounds: int) -> Graph:
    """Like the pass, but it turns every sine into a cosine."""
    clone = Clone(graph)
    for value in graph.params:
        clone.param(value)
    for node in graph.nodes:
        copy = clone.node(node)
        if node.op.name == "sin":
            copy.op = OPS["cos"]
    return clone.finish()


def step(x: object) -> object:
    return np.sin(x) * 2  # type: ignore[call-overload]


def test_right_passes_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_VERIFY", "passes")
    x = np.arange(5.0)
    np.testing.assert_allclose(weft.compile(step)(x), np.sin(x) * 2)


def test_a_wrong_pass_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_VERIFY", "passes")
    monkeypatch.setattr(manager, "simplify", wrong_simplify)
    with pytest.raises(weft.Error, match=r"W601: pass simplify changes result 0") as caught:
        weft.compile(step)(np.arange(5.0))
    assert "np.sin(x) * 2" in str(caught.value)
