"""Hypothesis strategies: random plans of every kind of step, for their text; and programs of nested
loops and branches that are sound, for what they compute."""

from __future__ import annotations

from hypothesis import strategies as st
from programs import add_kernel, locs, names

from weft.ir.host import HostFunction
from weft.ir.indices.index import Dim, symbol
from weft.ir.plans.plan import (
    Alloc,
    Branch,
    Carry,
    CheckSite,
    Copy,
    Group,
    Host,
    Launch,
    Loop,
    Plan,
    Recv,
    Send,
    Slot,
    Step,
    Window,
)
from weft.ir.types import F32, Device, TensorType

N, M = symbol("n"), symbol("m")
ROW, ROWS = TensorType(F32, (N,)), TensorType(F32, (M, N, 4))
DEVICES = st.sampled_from((Device("cpu", 0), Device("gpu", 1, "worker", 2)))


@st.composite
def windows(draw: st.DrawFn, buffers: dict[str, int], indices: list[str]) -> Window:
    name = draw(st.sampled_from(sorted(buffers)))
    parts: list[Dim] = [0, 3, N - 1, *(symbol(index) for index in indices),
                        *(M - 1 - symbol(index) for index in indices)]
    depth = draw(st.integers(0, buffers[name]))
    return Window(name, tuple(draw(st.sampled_from(parts)) for _ in range(depth)))


@st.composite
def hosts(draw: st.DrawFn, some: st.SearchStrategy[tuple[Window, ...]]) -> Host:
    inputs, outputs = draw(some), draw(some)
    typed = draw(st.booleans())
    attrs = draw(st.sampled_from((
        (), (("mode", "a } b"), ("rcond", 0.5), ("full", True)),
        (("function", HostFunction("model:f.<locals>.g")), ("results", (ROW, ROWS))))))
    return Host(draw(names), inputs, outputs, (ROWS,) * (len(inputs) + len(outputs)) * typed, attrs,
                draw(locs))


@st.composite
def trees(
    draw: st.DrawFn, buffers: dict[str, int], indices: list[str], depth: int = 2
) -> tuple[Step, ...]:
    """Steps that parse, sound or not."""
    one = windows(buffers, indices)
    some = st.lists(one, max_size=3).map(tuple)
    launch = st.builds(Launch, names, some, DEVICES, st.integers(1, 3))
    simple = st.one_of(
        launch, st.builds(Copy, one, one), hosts(some),
        st.builds(Group, st.lists(launch, max_size=3).map(tuple)),
        st.builds(Send, one, DEVICES, names), st.builds(Recv, one, DEVICES, names))
    steps: list[Step] = []
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(("alloc", "simple", "loop", "while", "branch")))
        inner = dict(buffers)
        if kind == "alloc":
            name = draw(names)
            steps.append(Alloc(name, TensorType(F32, (N,)), draw(st.sampled_from((0, 64 * N)))))
            buffers[name] = 1
        elif kind == "simple" or depth == 0:
            steps.append(draw(simple))
        elif kind == "branch":
            then = draw(trees(inner, indices, depth - 1))
            steps.append(Branch(draw(one), then, draw(trees(dict(buffers), indices, depth - 1))))
        else:
            index = f"t{len(indices)}"
            body = draw(trees(inner, [*indices, index], depth - 1))
            cycle = st.lists(st.sampled_from(sorted(buffers)), min_size=2, max_size=4)
            carried = tuple(draw(st.lists(st.builds(Carry, cycle.map(tuple)), max_size=2)))
            count = draw(st.sampled_from((0, 7, M, 2 * N + 1)))
            if kind == "loop":
                steps.append(Loop(index, count, body, carried))
            else:
                test = draw(trees(dict(buffers), [*indices, index], depth - 1))
                limit = draw(st.sampled_from((None, count)))
                steps.append(Loop(index, limit, body, carried, draw(one), test))
    return tuple(steps)


@st.composite
def plan_trees(draw: st.DrawFn) -> Plan:
    """A plan of any steps; sound in nothing but its text."""
    params = (Slot("x", ROW), Slot("rows", ROWS))
    buffers = {"x": 1, "rows": 3, "y": 1}
    steps = draw(trees(buffers, []))
    checks = draw(st.lists(st.builds(CheckSite, st.just("W124"), names, locs), max_size=2))
    arena, scratch = draw(st.sampled_from((0, 64, 64 * N))), draw(st.sampled_from((0, 128)))
    return Plan(draw(names), params, (Slot("y", ROW),), steps, arena + scratch,
                {"add": add_kernel(N)}, tuple(checks), scratch=scratch)
