"""A set of fetches and feeds as ``f.lower`` gives a function: ``Session.lower``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.building.flow import FlowStages
from ..engine.building.pipeline import Stages
from ..engine.stages import Lowered
from ..face import tree
from ..tracing.context.traced import Leaf, Traced


def lowered(
    stages: Stages | FlowStages, compiled: Callable[[], Callable[..., Any]]
) -> Lowered:
    """Stages with what is fed as arguments in order; ``compiled`` gives the function of them."""
    graph = stages.traced
    leaves = tuple(Leaf(value.name, "array", value.type, value) for value in graph.params)
    traced = Traced(graph, tree.structure((tuple(graph.params), {})),
                    tree.structure(list(graph.results)), leaves, ("array",) * len(graph.results),
                    (), {})
    return Lowered(traced, stages, compiled)
