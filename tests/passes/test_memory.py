"""The memory plan: nothing live is overwritten, and as little memory as reuse can give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.ir.diagnose import VerifyError
from weft.ir.graph import Builder, Graph, Value
from weft.ir.indices.index import Dim, symbol
from weft.ir.indices.walk import evaluate
from weft.ir.interp.graph import run_graph, run_plan
from weft.ir.kernels.build import KernelBuilder, Scalar
from weft.ir.kernels.kernel import Axis, Kernel, Param
from weft.ir.ops.table import OPS
from weft.ir.plans.plan import Alloc, Copy, KernelCall, Launch, Plan
from weft.ir.types import F64, I64, TensorType
from weft.ir.verify.verifier import verify_graph, verify_plan
from weft.passes.memory.arena import Block, _FreeList, assign_offsets
from weft.passes.memory.lives import written
from weft.passes.memory.overwriting import overwritable
from weft.passes.memory.plan import plan_memory

N = 5
ROW, COL = symbol("i"), symbol("j")


@dataclass
class Program:
    """A graph together with the kernel calls that compute it."""

    graph: Graph = field(default_factory=lambda: Graph("program"))
    calls: list[KernelCall] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.b = Builder(self.graph, OPS, share=False, fold=False)

    def param(self, shape: tuple[Dim, ...], name: str) -> Value:
        return self.graph.add_param(TensorType(F64, shape), name)

    def call(
        self, body: Any, inputs: list[Value], outputs: list[Value], axes: tuple[Axis, ...],
        updates: tuple[tuple[str, str], ...] = (),
    ) -> None:
        params = [*(Param(f"x{at}", v.type) for at, v in enumerate(inputs)),
                  *(Param(f"y{at}", v.type, mutable=True) for at, v in enumerate(outputs))]
        s = KernelBuilder()
        body(s)
        kernel = Kernel(f"k{len(self.calls)}", tuple(params), axes, tuple(s.body))
        self.calls.append(KernelCall(kernel, tuple(v.name for v in (*inputs, *outputs)), updates))

    def axes(self, shape: tuple[Dim, ...]) -> tuple[Axis, ...]:
        return (Axis("i", shape[0], "par"), *(Axis("j", n, "lane", 0) for n in shape[1:]))

    def map(self, op: str, *xs: Value) -> Value:
        """One elementwise kernel."""
        y: Value = getattr(self.b, op)(*xs)
        at = (ROW, COL)[:len(y.shape)]

        def body(s: KernelBuilder) -> None:
            loaded = [s.load(f"x{k}", F64, at) for k in range(len(xs))]
            s.store("y0", at, s.apply(op, *loaded))

        self.call(body, list(xs), [y], self.axes(y.shape))
        return y

    def pair(self, x: Value) -> tuple[Value, Value]:
        """One kernel with two results: -x and |x|."""
        outputs = [self.b.neg(x), self.b.abs(x)]
        at = (ROW, COL)[:len(x.shape)]

        def body(s: KernelBuilder) -> None:
            loaded = s.load("x0", F64, at)
            s.store("y0", at, s.neg(loaded))
            s.store("y1", at, s.abs(loaded))

        self.call(body, [x], outputs, self.axes(x.shape))
        return outputs[0], outputs[1]

    def row_max(self, x: Value) -> Value:
        y: Value = self.b.max(x, axes=(1,))

        def body(s: KernelBuilder) -> None:
            s.store("y0", (ROW,), s.reduce("max", s.load("x0", F64, (ROW, COL)), "j"))

        self.call(body, [x], [y], self.axes(x.shape))
        return y

    def add_row(self, x: Value, row: Value) -> Value:
        y: Value = self.b.add(x, self.b.broadcast(row, shape=x.shape, axes=(0,)))

        def body(s: KernelBuilder) -> None:
            total = s.add(s.load("x0", F64, (ROW, COL)), s.load("x1", F64, (ROW,)))
            s.store("y0", (ROW, COL), total)

        self.call(body, [x, row], [y], self.axes(x.shape))
        return y

    def reverse(self, x: Value) -> Value:
        """Rows in reverse order: not elementwise."""
        rows = x.shape[0]
        y: Value = self.b.slice(x, start=(rows - 1, 0), step=(-1, 1), shape=x.shape)

        def body(s: KernelBuilder) -> None:
            s.store("y0", (ROW, COL), s.load("x0", F64, (rows - 1 - ROW, COL)))

        self.call(body, [x], [y], self.axes(x.shape))
        return y

    def double(self, x: Value) -> Value:
        """Every row once more below: a larger result."""
        rows = x.shape[0]
        y: Value = self.b.concatenate(x, x, axis=0)

        def body(s: KernelBuilder) -> None:
            loaded = s.load("x0", F64, (ROW, COL))
            s.store("y0", (ROW, COL), loaded)
            s.store("y0", (rows + ROW, COL), loaded)

        self.call(body, [x], [y], self.axes(x.shape))
        return y

    def scatter(self, base: Value, updates: Value, ids: Value) -> Value:
        y: Value = self.b.scatter_add(base, updates, ids, axes=(0,))

        def body(s: KernelBuilder) -> None:
            row: Scalar = s.load("x1", I64, (ROW,))
            s.store("y0", (symbol(row.name), COL), s.load("x0", F64, (ROW, COL)), accumulate=True)

        axes = (Axis("i", updates.shape[0], "seq"), Axis("j", N, "lane", 0))
        self.call(body, [updates, ids], [y], axes, ((y.name, base.name),))
        return y

    def plan(self) -> Plan:
        verify_graph(self.graph)
        plan = plan_memory(self.graph, self.calls)
        verify_plan(plan)
        return plan


def names_of(launch: Launch) -> list[str]:
    return [window.buffer for window in launch.args]


def check_contents(program: Program, plan: Plan, dims: dict[str, int]) -> None:
    """Brute force: follow which value each byte range holds, call by call."""
    windows: dict[str, tuple[str, int, int]] = {}
    for slot in (*plan.params, *plan.results):
        windows[slot.name] = (slot.name, 0, max(evaluate(slot.type.nbytes, dims), 1))
    held: dict[tuple[str, int, int], str] = {}
    for value, slot in zip(program.graph.params, plan.params, strict=True):
        held[windows[slot.name]] = value.name

    def write(window: tuple[str, int, int], value: str) -> None:
        space, start, stop = window
        for other in list(held):
            if other[0] == space and other[1] < stop and start < other[2]:
                del held[other]
        held[window] = value

    calls = iter(program.calls)
    for step in plan.steps:
        if isinstance(step, Alloc):
            start = evaluate(step.offset, dims)
            windows[step.name] = ("arena", start, start + evaluate(step.type.nbytes, dims))
        elif isinstance(step, Copy):
            write(windows[step.target.buffer], held[windows[step.source.buffer]])
        else:
            assert isinstance(step, Launch)
            call = next(calls)
            bases = dict(call.updates)
            targets: list[tuple[tuple[str, int, int], str]] = []
            for param, arg, name in zip(call.kernel.params, call.args, names_of(step), strict=True):
                if param.mutable:
                    targets.append((windows[name], arg))
                    if arg in bases:
                        assert held[windows[name]] == bases[arg]
                else:
                    assert held[windows[name]] == arg
            for window, value in targets:
                for param, name in zip(call.kernel.params, names_of(step), strict=True):
                    read = windows[name]
                    meets = read[0] == window[0] and read[1] < window[2] and window[1] < read[2]
                    if not param.mutable and meets:
                        output = next(p.name for p, n in zip(call.kernel.params, names_of(step),
                                                             strict=True)
                                      if p.mutable and windows[n] == window)
                        assert read == window and param.name in overwritable(call.kernel)[output]
                write(window, value)
    for value, slot in zip(program.graph.results, plan.results, strict=True):
        assert held[windows[slot.name]] == value.name


def run_both(program: Program, plan: Plan, args: list[Any], variables: Any = None) -> None:
    one, two = dict(variables or {}), dict(variables or {})
    for left, right in zip(run_graph(program.graph, args, one), run_plan(plan, args, two),
                           strict=True):
        np.testing.assert_array_equal(left, right)
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])


def arena_without_reuse(program: Program, dims: dict[str, int]) -> int:
    results = set(program.graph.results)
    return sum(-(-evaluate(value.type.nbytes, dims) // 64) * 64
               for node in program.graph.nodes for value in node.results if value not in results)


def test_elementwise_chain_needs_no_arena() -> None:
    program = Program()
    x = y = program.param((4, N), "x")
    for _ in range(30):
        y = program.map("neg", program.map("abs", y))
    program.graph.results = [y]
    plan = program.plan()
    assert plan.arena == 0 and not any(isinstance(step, Copy) for step in plan.steps)
    assert {name for step in plan.steps if isinstance(step, Launch) for name in names_of(step)} == {
        plan.params[0].name, plan.results[0].name}
    check_contents(program, plan, {})
    run_both(program, plan, [np.arange(20.0).reshape(4, N)])
    assert x.name == "x:0"


def test_chain_that_cannot_run_in_place_alternates() -> None:
    program = Program()
    y = program.param((4, N), "x")
    for _ in range(30):
        y = program.reverse(y)
    program.graph.results = [program.row_max(y)]
    plan = program.plan()
    assert plan.arena == 2 * 192
    run_both(program, plan, [np.random.default_rng(0).normal(size=(4, N))])


def test_symbolic_sizes_get_rows_of_their_own() -> None:
    program = Program()
    y = program.param((symbol("b"), N), "x")
    for _ in range(6):
        y = program.reverse(y)
    for _ in range(6):
        y = program.reverse(program.double(y) if y.shape[0] == symbol("b") else y)
    program.graph.results = [program.row_max(y)]
    plan = program.plan()
    assert str(plan.arena) == "128*((40*b + 63)//64) + 128*((80*b + 63)//64)"
    for rows in (0, 1, 3, 8):
        check_contents(program, plan, {"b": rows})
        run_both(program, plan, [np.random.default_rng(0).normal(size=(rows, N))])


def test_results_that_are_params_or_come_twice_are_copied() -> None:
    program = Program()
    x = program.param((3,), "x")
    y = program.map("neg", x)
    program.graph.results = [y, x, y]
    plan = program.plan()
    assert sum(isinstance(step, Copy) for step in plan.steps) == 2 and plan.arena == 0
    run_both(program, plan, [np.arange(3.0)])


def test_a_value_read_later_is_not_overwritten() -> None:
    program = Program()
    x = program.param((4, N), "x")
    a = program.map("neg", x)
    c = program.map("abs", a)
    program.graph.results = [program.row_max(program.map("add", a, c))]
    plan = program.plan()
    assert plan.arena == 2 * 192
    check_contents(program, plan, {})


def test_results_are_not_overwritten() -> None:
    program = Program()
    a = program.map("neg", program.param((4, N), "x"))
    program.graph.results = [a, program.map("abs", a)]
    plan = program.plan()
    check_contents(program, plan, {})
    run_both(program, plan, [np.ones((4, N))])


def test_scatter_takes_over_a_dead_base() -> None:
    program = Program()
    x, rows = program.param((8, N), "x"), program.param((4, N), "rows")
    ids = program.graph.add_param(TensorType(I64, (4,)), "ids")
    program.graph.results = [program.scatter(program.map("neg", x), rows, ids)]
    plan = program.plan()
    assert plan.arena == 0 and not any(isinstance(step, Copy) for step in plan.steps)
    run_both(program, plan, [np.ones((8, N)), np.ones((4, N)), np.array([1, 1, 0, 7])])


@pytest.mark.parametrize("base_is", ["param", "live", "updates"])
def test_scatter_copies_a_base_that_stays(base_is: str) -> None:
    program = Program()
    x, rows = program.param((4, N), "x"), program.param((4, N), "rows")
    ids = program.graph.add_param(TensorType(I64, (4,)), "ids")
    base = x if base_is == "param" else program.map("neg", x)
    y = program.scatter(base, base if base_is == "updates" else rows, ids)
    program.graph.results = [y, *([program.row_max(base)] if base_is == "live" else [])]
    plan = program.plan()
    assert sum(isinstance(step, Copy) for step in plan.steps) == 1
    check_contents(program, plan, {})
    run_both(program, plan, [np.ones((4, N)), np.ones((4, N)), np.array([1, 1, 0, 3])])


def test_variables_are_slots() -> None:
    program = Program()
    x, w = program.param((3,), "x"), program.param((3,), "w")
    program.graph.variables = {"w": w.type}
    program.graph.var_params = {"w": w}
    program.graph.results = [x, program.map("add", w, x)]
    program.graph.var_results = {"w": 1}
    plan = program.plan()
    assert [slot.var for slot in plan.params] == ["", "w"]
    assert [slot.var for slot in plan.results] == ["", "w"]
    run_both(program, plan, [np.arange(3.0)], {"w": np.ones(3)})


def test_what_may_be_overwritten() -> None:
    program = Program()
    x, row = program.param((4, N), "x"), program.param((4,), "row")
    program.map("add", x, x)
    program.add_row(x, row)
    program.reverse(x)
    program.row_max(x)
    program.pair(x)
    assert [overwritable(call.kernel) for call in program.calls] == [
        {"y0": {"x0", "x1"}}, {"y0": {"x0"}}, {"y0": frozenset()}, {},
        {"y0": {"x0"}, "y1": {"x0"}}]


def test_same_value_in_two_roles_is_kept() -> None:
    program = Program()
    a = program.map("neg", program.param((4,), "x"))
    matrix = program.param((4, N), "m")
    program.graph.results = [program.row_max(program.add_row(matrix, a)), program.map("add", a, a)]
    run_both(program, program.plan(), [np.arange(4.0), np.ones((4, N))])


def test_kernels_of_one_name_stay_apart() -> None:
    program = Program()
    x = program.param((3,), "x")
    program.graph.results = [program.map("abs", program.map("neg", x))]
    one, two = program.calls
    program.calls[1] = KernelCall(
        Kernel("k0", two.kernel.params, two.kernel.axes, two.kernel.body), two.args)
    plan = program.plan()
    assert sorted(plan.kernels) == ["k0", "k0_1"]
    run_both(program, plan, [np.array([1.0, -2.0, 3.0])])
    assert written(one) == [one.args[-1]]


def test_wrong_calls_are_refused() -> None:
    program = Program()
    x = program.param((3,), "x")
    y = program.map("neg", x)
    program.graph.results = [program.map("abs", y)]
    program.calls.reverse()
    with pytest.raises(VerifyError, match="before it is written"):
        program.plan()
    program.calls = []
    with pytest.raises(VerifyError, match="no kernel writes"):
        program.plan()


def test_empty_values() -> None:
    program = Program()
    x = program.param((0, N), "x")
    program.graph.results = [program.reverse(program.reverse(program.double(x)))]
    plan = program.plan()
    assert plan.arena == 0
    run_both(program, plan, [np.zeros((0, N))])


@pytest.mark.long
@settings(max_examples=200)
@given(st.data(), st.booleans())
def test_random_programs(data: st.DataObject, symbolic: bool) -> None:
    program = Program()
    rows: Dim = symbol("b") if symbolic else 4
    values = [program.param((rows, N), "x"), program.param((2 * rows, N), "z"),
              program.param((rows,), "r")]
    ids = program.graph.add_param(TensorType(I64, (rows,)), "ids")

    def pick(*shape: Dim) -> Value:
        fitting = [value for value in values if value.shape == shape]
        return data.draw(st.sampled_from(fitting))

    for _ in range(data.draw(st.integers(1, 20))):
        kind = data.draw(st.sampled_from(
            ("neg", "add", "pair", "row_max", "add_row", "reverse", "double", "scatter")))
        shape = data.draw(st.sampled_from([value.shape for value in values]))
        if kind == "neg":
            values.append(program.map("neg", pick(*shape)))
        elif kind == "add":
            values.append(program.map("add", pick(*shape), pick(*shape)))
        elif kind == "pair":
            values += program.pair(pick(*shape))
        elif kind == "row_max":
            values.append(program.row_max(pick(rows, N)))
        elif kind == "add_row":
            values.append(program.add_row(pick(rows, N), pick(rows)))
        elif kind == "reverse":
            values.append(program.reverse(pick(2 * rows, N)))
        elif kind == "double":
            values.append(program.double(pick(rows, N)))
        else:
            values.append(program.scatter(pick(2 * rows, N), pick(rows, N), ids))
    program.graph.results = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))
    plan = program.plan()
    rng = np.random.default_rng(0)
    for count in ((1, 3, 8) if symbolic else (4,)):
        dims = {"b": count} if symbolic else {}
        check_contents(program, plan, dims)
        assert evaluate(plan.arena, dims) <= arena_without_reuse(program, dims)
        run_both(program, plan, [rng.integers(-9, 9, (count, N)) * 1.0,
                                 rng.integers(-9, 9, (2 * count, N)) * 1.0,
                                 rng.integers(-9, 9, (count,)) * 1.0,
                                 rng.integers(0, 2 * count, (count,))])


BLOCKS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(0, 5)), max_size=40)


@settings(max_examples=300)
@given(BLOCKS)
def test_arena_against_brute_force(drawn: list[tuple[int, int, int]]) -> None:
    blocks = [Block(first, first + length, size * 64) for first, length, size in drawn]
    offsets, total = assign_offsets(blocks)
    moments = [sum(evaluate(b.size, {}) for b in blocks if b.first <= t <= b.last)
               for t in range(30)]
    assert max(moments) <= evaluate(total, {}) <= sum(evaluate(b.size, {}) for b in blocks)
    places = [range(evaluate(o, {}), evaluate(o, {}) + evaluate(b.size, {}))
              for o, b in zip(offsets, blocks, strict=True)]
    for at, (one, block) in enumerate(zip(places, blocks, strict=True)):
        assert one.stop <= evaluate(total, {}) and one.start % 64 == 0
        for two, other in zip(places[at + 1:], blocks[at + 1:], strict=True):
            if block.first <= other.last and other.first <= block.last:
                assert one.stop <= two.start or two.stop <= one.start or not (one and two)


def test_what_is_left_of_a_free_range_is_free() -> None:
    free = _FreeList()
    first, second = free.take(128), free.take(64)
    free.give(first, 128)
    assert (free.take(32), free.take(96)) == (0, 32) and free.top == 192
    free.give(32, 96)
    free.give(0, 32)
    free.give(second, 64)
    assert free.take(192) == 0 and free.top == 192  # neighbours were joined
