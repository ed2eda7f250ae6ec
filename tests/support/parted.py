"""Steps cut at random: a graph with random devices on its nodes, and the same graph on one device.

    python tests/support/parted.py 0 500     # random control flow and its gradients, cut
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from random_control import function_of

import weft
from weft.frontend.engine.building.flow import FlowStages, make_flow, step_stages
from weft.frontend.engine.building.link import make_program
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.engine.specialisation import stages_of
from weft.frontend.face.options import Options
from weft.ir.graph import Graph, with_bodies
from weft.ir.types import CPU0, Device
from weft.passes.clone import Clone
from weft.runtime.flow.helpers import Helpers
from weft.runtime.program import Program

DEVICES = ("cpu:0", "cpu:1", "cpu:2")
HELPERS = Helpers(len(DEVICES) - 1)


def scattered(graph: Graph, rng: np.random.Generator | None, near: Device = CPU0) -> Graph:
    """The graph with a random device on every node; on ``near`` if there is no ``rng``. Half of the
    nodes are where the one before is, so that segments have more than one."""
    clone = Clone(graph)
    for value in graph.params:
        clone.param(value)
    at = near
    for node in graph.nodes:
        if rng is not None and rng.random() < 0.5:
            at = Device.parse(str(rng.choice(DEVICES)))
        copy = clone.node(node, at)
        copy.name = f"n{len(clone.graph.nodes)}"  # no names that kernels cannot have
        if "var" in node.attrs or "message" in node.attrs:
            copy.device = None
        inside = rng if rng is not None and rng.random() < 0.5 else None
        copy.attrs = with_bodies(node, partial(scattered, rng=inside, near=at))
    made = clone.finish()
    made.name = "step"
    return made


def programs_of(
    graph: Graph, rng: np.random.Generator, sources: Sequence[Any] | None = None,
    variables: Mapping[str, Any] | None = None, **options: Any,
) -> tuple[Program, Program]:
    """The program of a graph, and that of the graph cut at random."""
    whole = make_program(Stages(scattered(graph, None), Options(**options)), sources, variables)
    stages = step_stages(Stages(scattered(graph, rng), Options(devices=DEVICES, **options)))
    given = sources if sources is not None else list(range(len(graph.params)))
    if isinstance(stages, FlowStages):
        return whole, make_flow(stages, given, variables or {}, HELPERS, {})
    return whole, make_program(stages, given, variables)


def outcome(program: Program, args: Sequence[Any], variables: Mapping[str, Any]) -> Any:
    """What a step gives, and what variables are after it: bits, or the error."""
    try:
        found: Any = [_bits(each) for each in program.run(list(args))]
    except weft.Error as problem:
        found = type(problem), str(problem)
    return found, [_bits(variable.numpy()) for variable in variables.values()]


def _bits(array: Any) -> tuple[Any, ...]:
    array = np.asarray(array)
    nan = np.isnan(array) if array.dtype.kind in "fc" else np.zeros(array.shape, bool)
    return array.shape, str(array.dtype), np.where(nan, 0, array).tobytes(), nan.tobytes()


def compare_functions(seed: int) -> tuple[int, int]:
    """Cut random control flow, or its gradient; the number of segments and of messages."""
    rng = np.random.default_rng(seed)
    function = function_of(seed, bounded=True)

    def loss(a: Any, b: Any, x: Any) -> Any:
        a, b, c, v = function(a, b, 2, x)
        return a + 0.5 * b + c + (v * v).sum()

    traced = weft.compile(weft.grad(loss, argnums=(0, 1, 2)) if seed % 2 else loss).trace(
        np.float64(0.5), np.float64(1.5), np.ones(3))
    _, sources = stages_of(traced, Options())
    whole, parted = programs_of(traced.graph, rng, sources, opt=int(rng.integers(0, 3)))
    for _ in range(2):
        args = [np.asarray(rng.normal()), np.asarray(rng.normal()), rng.normal(size=3)]
        assert outcome(parted, args, {}) == outcome(whole, args, {}), seed
    partition = getattr(parted, "partition", None)
    return (len(partition.segments), len(partition.sends)) if partition else (1, 0)


def sweep(first: int, last: int) -> Iterator[tuple[int, int, int, bool]]:
    """Steps that agree, and whether a program was refused: with arrays of which it is not known
    whether they share memory, as random ones may have (W203)."""
    for seed in range(first, last):
        try:
            yield (seed, *compare_functions(seed), False)
        except weft.Error as problem:
            if problem.code != "W203":
                raise
            yield (seed, 0, 0, True)


if __name__ == "__main__":
    total = [0, 0, 0]
    for seed, segments, sends, refused in sweep(int(sys.argv[1]), int(sys.argv[2])):
        total = [total[0] + segments, total[1] + sends, total[2] + refused]
        if seed % 20 == 19:
            print(seed + 1, "steps,", *total[:2], "segments and messages,", total[2],
                  "programs refused", flush=True)
