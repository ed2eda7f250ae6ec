"""Steps cut into segments: what goes where, and that it changes no bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from parted import compare_functions, outcome, programs_of
from programs import example_arrays, graphs

import weft
from weft.ir.graph import Graph
from weft.ir.partition import Partition


@settings(max_examples=25, phases=(Phase.explicit, Phase.generate))
@given(graphs(), st.integers(0, 1 << 16), st.integers(0, 2))
def test_random_graphs_on_random_devices_give_the_bits_of_one(
    graph: Graph, seed: int, opt: int,
) -> None:
    rng = np.random.default_rng(seed)
    start = example_arrays(list(graph.variables.values()), seed + 1)
    args = example_arrays([value.type for value in graph.params], seed)

    def ran(which: int) -> Any:
        variables = {name: weft.Variable(value, name=name)
                     for name, value in zip(graph.variables, start, strict=True)}
        rng = np.random.default_rng(seed)
        program = programs_of(graph, rng, variables=variables, opt=opt)[which]
        return [outcome(program, args, variables) for _ in range(2)]

    assert ran(1) == ran(0)
