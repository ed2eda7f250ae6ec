"""Steps cut into segments: what goes where, and that it changes no bit."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from parted import DEVICES, compare_functions, outcome, programs_of, scattered
from programs import example_arrays, graphs

import weft
from weft.frontend.engine.building.flow import FlowStages, step_stages
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.ir.graph import Graph
from weft.ir.plans.partition import Partition, Segment, all_segments
from weft.ir.text.partition import parse_partition, print_partition
from weft.ir.types import F32
from weft.passes.partition import partition

BOTH = ("cpu:0", "cpu:1")


def on(name: str, pinned: bool = True) -> AbstractContextManager[Any]:
    return weft.device(name) if pinned else nullcontext()


def cut(function: Any, *args: Any, **options: Any) -> Partition:
    """The partition of a function over two devices."""
    stages = step_stages(Stages(weft.compile(function).trace(*args).graph,
                                Options(devices=BOTH, **options)))
    assert isinstance(stages, FlowStages)
    return stages.partition


def names(segment: Segment) -> list[str]:
    return [node.name for node in segment.graph.nodes]


def sent(made: Partition) -> list[tuple[tuple[str, ...], str, str]]:
    return [(send.keys, str(send.source), str(send.target)) for send in made.sends]


def test_a_value_goes_to_a_device_once() -> None:
    """Figure 4 of the white paper (Abadi et al. 2015): x is read by b and c on the other device,
    and crosses once."""
    def figure(w: Any, y: Any) -> Any:
        with on("cpu:0"):
            x = np.tanh(w)
            a = x * y
        with on("cpu:1"):
            b = np.sin(x)
            c = x + b
        return a, c

    made = cut(figure, "f32[4,4]", "f32[4,4]")
    assert sent(made) == [(("x:0",), "cpu:0", "cpu:1")]
    assert [names(each) for each in made.segments] == [["x", "a"], ["b", "c"]]


def test_what_is_ready_together_is_sent_together() -> None:
    def both(x: Any) -> Any:
        with on("cpu:1"):
            a = np.tanh(x)
            b = np.sin(x)
        with on("cpu:0"):
            return a @ b

    made = cut(both, "f32[4,4]")
    assert sent(made) == [(("a:0", "b:0"), "cpu:1", "cpu:0")]


def test_sends_are_early_and_cheap_nodes_late() -> None:
    """What leads to a send waits for nothing else; heavy work is done while others wait, and what
    is cheap joins its reader."""
    def model(x: Any, w: Any) -> Any:
        with on("cpu:0"):
            a = np.tanh(x)
        with on("cpu:1"):
            b = a @ w
        with on("cpu:0"):
            heavy = x @ x
            light = x.T * 2.0
            return b + heavy + light

    first, other, last = cut(model, "f32[64,64]", "f32[64,64]").segments
    assert {"a", "heavy"} <= set(names(first)) and "b" in names(other)
    assert "light" in names(last) and "light" not in names(first)


def test_constants_are_made_where_they_are_read() -> None:
    def shifted(x: Any) -> Any:
        ones = np.ones((3,), np.float32)
        with on("cpu:1"):
            y = x @ np.diag(ones + x)
        with on("cpu:0"):
            return y + ones

    made = cut(shifted, "f32[3]")
    assert all("full" not in key for send in made.sends for key in send.keys)


def test_values_can_cross_in_half_the_bits() -> None:
    """Each is rounded once, to nearest even; what stays on its device keeps its bits."""
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (5,), name="x")
        with weft.device("cpu:1"):
            h = np.tanh(x)
            same = h * 1.0
        with weft.device("cpu:0"):
            far = np.negative(h)
    array = np.linspace(-2, 2, 5).astype(np.float32)
    half = weft.Session(g, devices=BOTH, transfer="bf16")
    own, crossed, kept = half.run([h, far, same], {x: array})
    exact = weft.Session(g, devices=BOTH).run(h, {x: array})
    assert (own == exact).all() and (kept == exact).all()
    bf16 = F32.numpy.type(1) and weft.ir.types.BF16.numpy
    assert (crossed == -exact.astype(bf16).astype(np.float32)).all() and (crossed != -exact).any()
    (send,) = half.program(far, [x]).partition.sends
    assert send.keys == ("h:0 as bf16",)
    with pytest.raises(weft.Error, match=r"W113.*transfer='f16'"):
        weft.Session(g, devices=BOTH, transfer="f16")


LOOPS = {
    "while": lambda x, d: weft.while_loop(
        lambda s: s[1] < 4, lambda s: (near(away(s[0], d), d) + x, s[1] + 1), (x, 0))[0],
    "bounded": lambda x, d: weft.while_loop(
        lambda s: away(s[0], d).sum() < 9, lambda s: (near(s[0], d) + away(x, d),), (x,),
        max_iterations=6)[0],
    "scan": lambda x, d: weft.scan(
        lambda c, row: (near(away(c + row, d), d), away(row, d).sum()), x, np.outer(x, x)),
    "reverse": lambda x, d: weft.scan(
        lambda c, row: (near(c * 0.5, d), away(row * c, d)), x, np.outer(x, x), reverse=True),
    "for": lambda x, d: weft.fori_loop(0, 5, lambda i, c: near(c * i, d) + away(c, d), x),
    "cond": lambda x, d: weft.cond(
        x.sum() > 0, lambda y: near(np.tanh(away(y, d)), d), lambda y: away(near(y, d), d), x),
    "nested": lambda x, d: weft.fori_loop(0, 3, lambda i, c: weft.cond(
        c.sum() > i, lambda y: near(away(y, d), d), lambda y: away(y * 2, d), c), x),
}


def away(x: Any, pinned: bool) -> Any:
    with on("cpu:1", pinned):
        return np.sin(x) * x + 0.25


def near(x: Any, pinned: bool) -> Any:
    with on("cpu:0", pinned):
        return np.exp(-x * x)


@pytest.mark.parametrize("name", LOOPS)
def test_control_flow_over_devices_is_driven_with_its_gradient(name: str) -> None:
    def stepped(pinned: bool) -> tuple[Any, weft.Session]:
        g = weft.Graph()
        with g.as_default():
            x = weft.placeholder("f64", (3,), name="x")

            def loss(x: Any) -> Any:
                return sum((leaf * leaf).sum() for leaf in weft.tree.leaves(LOOPS[name](x, pinned)))

            out = LOOPS[name](x, pinned)
            grads = weft.grad(loss)(x) if name in ("bounded", "reverse", "cond") else x
            fetches = [*weft.tree.leaves(out), grads]
        s = weft.Session(g, devices=BOTH if pinned else BOTH[:1], opt=1)
        rng = np.random.default_rng(0)
        found = [s.run(fetches, {x: rng.normal(size=3)}) for _ in range(4)]
        return found, s.program(fetches, [x])

    (parted, stages), (whole, _) = stepped(True), stepped(False)
    assert isinstance(stages, FlowStages)
    assert any(segment.bodies for segment in all_segments(stages.partition))
    for found, wanted in zip(parted, whole, strict=True):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("seed", (1, 2, 5))
def test_random_control_flow_on_random_devices(seed: int) -> None:
    """``python support/parted.py`` runs more of them."""
    compare_functions(seed)


def test_the_stages_of_a_parted_step_parse_back() -> None:
    def model(x: Any) -> Any:
        return LOOPS["nested"](np.tanh(x), True)

    stages = step_stages(Stages(weft.compile(model).trace("f32[b,3]").graph,
                                Options(devices=BOTH)))
    for stage in ("placed", "plan"):
        text = stages.text(stage)
        made, plans = parse_partition(text)
        assert print_partition(made, plans) == text
        assert bool(plans) == (stage == "plan")


@settings(max_examples=10, phases=(Phase.explicit, Phase.generate))
@given(graphs(), st.integers(0, 1 << 16), st.integers(0, 2))
def test_random_graphs_on_random_devices_give_the_bits_of_one(
    graph: Graph, seed: int, opt: int,
) -> None:
    types = [value.type for value in graph.params]
    arrays = example_arrays([*types, *graph.variables.values()], seed)
    args, start = arrays[:len(types)], arrays[len(types):]

    def ran(which: int) -> Any:
        variables = {name: weft.Variable(value, name=name)
                     for name, value in zip(graph.variables, start, strict=True)}
        rng = np.random.default_rng(seed)
        program = programs_of(graph, rng, variables=variables, opt=opt)[which]
        return [outcome(program, args, variables) for _ in range(2)]

    assert ran(1) == ran(0)


@settings(max_examples=10, phases=(Phase.explicit, Phase.generate))
@given(graphs(), st.integers(0, 1 << 16))
def test_the_text_of_random_partitions_parses_back(graph: Graph, seed: int) -> None:
    stages = Stages(scattered(graph, np.random.default_rng(seed)), Options(devices=DEVICES))
    text = print_partition(partition(stages.placed))
    assert print_partition(*parse_partition(text)) == text
