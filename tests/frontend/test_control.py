"""cond, while_loop, fori_loop and scan against Python's loops on NumPy arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import without_places

import weft
from weft.ir.diagnose import Error
from weft.ir.graph import Graph
from weft.ir.interp.graph import run_graph
from weft.ir.interp.plan import run_plan
from weft.ir.plans.plan import Branch, Copy, Loop, all_steps
from weft.ir.text.parser import parse_graph, parse_plan
from weft.ir.text.printer import print_graph, print_plan
from weft.ir.text.same import same_graph, same_plan
from weft.ir.verify.verifier import verify_graph, verify_plan

Golden = Callable[[str, str], None]
Array = np.ndarray[Any, Any]
R = np.random.default_rng(0)


class Python:
    """The meaning of the four functions."""

    @staticmethod
    def scan(f: Any, init: Any, xs: Any, reverse: bool = False) -> Any:
        ys = []
        for x in (xs[::-1] if reverse else xs):
            init, y = f(init, x)
            ys.append(y)
        ys = ys[::-1] if reverse else ys
        return init, tuple(np.array([y[at] for y in ys]).reshape(len(xs), *xs.shape[1:])
                           for at in range(len(ys[0]))) if ys else ()

    @staticmethod
    def fori_loop(lo: int, hi: int, body: Any, init: Any) -> Any:
        for i in range(lo, hi):
            init = body(i, init)
        return init

    @staticmethod
    def while_loop(cond: Any, body: Any, init: Any, max_iterations: int) -> Any:
        for _ in range(max_iterations):
            if not cond(init):
                break
            init = body(init)
        return init

    @staticmethod
    def cond(p: Any, t: Any, f: Any, *ops: Any) -> Any:
        return t(*ops) if p else f(*ops)


# -- random programs ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """Statements on a list of vectors, each of which adds some to it; numbers choose operands."""

    stmts: tuple[tuple[Any, ...], ...]

    def run(self, api: Any, env: list[Any], xs: Any, ids: Any) -> list[Any]:
        for kind, *parts in self.stmts:
            env = env + list(getattr(self, f"_{kind}")(api, env, xs, ids, *parts))
        return env

    def picked(self, api: Any, env: list[Any], xs: Any, ids: Any, picks: tuple[int, ...]) -> Any:
        after = self.run(api, env, xs, ids)
        return tuple(after[-1 - pick % len(after)] for pick in picks)

    def _op(self, api: Any, env: list[Any], xs: Any, ids: Any, name: str, a: int, b: int) -> Any:
        x, y = env[-1 - a % len(env)], env[-1 - b % len(env)]
        return [{"add": lambda: x + y, "max": lambda: np.maximum(x, y * 0.5),
                 "half": lambda: x * 0.5, "tanh": lambda: np.tanh(x), "flip": lambda: x[::-1],
                 "mean": lambda: x - np.mean(y), "take": lambda: x[ids],
                 "new": lambda: x * 0 + 1.5, "put": lambda: np.where(x > y, x, -y)}[name]()]

    def _scan(self, api: Any, env: list[Any], xs: Any, ids: Any, inits: tuple[int, ...],
              body: Block, picks: tuple[int, ...], out: int, reverse: bool) -> Any:
        def f(carry: Any, x: Any) -> Any:
            after = body.run(api, [*env, x, *carry], xs, ids)
            return (tuple(after[-1 - pick % len(after)] for pick in picks),
                    (after[-1 - out % len(after)],))

        start = tuple(env[-1 - at % len(env)] for at in inits)
        carry, ys = api.scan(f, start, xs, reverse=reverse)
        return [*carry, np.sum(ys[0], axis=0) if len(ys) else env[0] * 0]

    def _fori(self, api: Any, env: list[Any], xs: Any, ids: Any, inits: tuple[int, ...],
              body: Block, picks: tuple[int, ...], count: int) -> Any:
        def f(i: Any, carry: Any) -> Any:
            return body.picked(api, [*env, env[0] + i, *carry], xs, ids, picks)

        return api.fori_loop(1, count, f, tuple(env[-1 - at % len(env)] for at in inits))

    def _while(self, api: Any, env: list[Any], xs: Any, ids: Any, inits: tuple[int, ...],
               body: Block, picks: tuple[int, ...], limit: int) -> Any:
        def f(carry: Any) -> Any:
            return body.picked(api, [*env, *carry], xs, ids, picks)

        return api.while_loop(lambda carry: np.sum(carry[0]) < np.sum(env[0]) + 3, f,
                              tuple(env[-1 - at % len(env)] for at in inits),
                              max_iterations=limit)

    def _cond(self, api: Any, env: list[Any], xs: Any, ids: Any, at: int, then: Block,
              other: Block, picks: tuple[int, ...], others: tuple[int, ...]) -> Any:
        p = np.sum(env[-1 - at % len(env)]) > 0.5
        return api.cond(p, lambda x: then.picked(api, [*env, x], xs, ids, picks),
                        lambda x: other.picked(api, [*env, x * 2], xs, ids, others), env[-1])


PICK = st.integers(0, 9)
OPS = ("add", "max", "half", "tanh", "flip", "mean", "take", "new", "put")


def blocks(depth: int) -> st.SearchStrategy[Block]:
    op = st.tuples(st.just("op"), st.sampled_from(OPS), PICK, PICK)
    if depth == 0:
        return st.lists(op, max_size=3).map(tuple).map(Block)
    inner = blocks(depth - 1)

    def several(count: int) -> st.SearchStrategy[tuple[int, ...]]:
        return st.tuples(*[PICK] * count)

    control = st.integers(1, 3).flatmap(lambda n: st.one_of(
        st.tuples(st.just("scan"), several(n), inner, several(n), PICK, st.booleans()),
        st.tuples(st.just("fori"), several(n), inner, several(n), st.integers(0, 4)),
        st.tuples(st.just("while"), several(n), inner, several(n), st.integers(0, 4)),
        st.tuples(st.just("cond"), PICK, inner, inner, several(n), several(n))))
    return st.lists(st.one_of(op, control, control), min_size=1, max_size=3).map(tuple).map(Block)


def program(block: Block, api: Any) -> Callable[..., Any]:
    def run(x: Any, xs: Any, ids: Any) -> Any:
        return tuple(block.run(api, [x * 0.25, x], xs, ids)[-6:])

    return run


def test_a_loop_whose_rounds_compute_nothing() -> None:
    """They would compute rows of an array that has none; only their test is left."""
    empty = np.zeros((0, 5))

    def run(x: Any, rows: Any) -> Any:
        def keep(state: Any) -> Any:
            return state + 0 * rows.sum() if len(rows) else state

        return weft.while_loop(lambda state: np.sum(state) < -1, keep, x, max_iterations=0)

    for opt in (0, 2):
        np.testing.assert_array_equal(weft.compile(run, opt=opt)(np.ones(5), empty), np.ones(5))


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(blocks(2), st.integers(0, 4), st.sampled_from([0, 1, 2, 2]), st.booleans())
def test_random_programs(block: Block, m: int, opt: int, symbolic: bool) -> None:
    rng = np.random.default_rng(m)
    n = 5
    args = rng.normal(size=n), rng.normal(size=(m, n)), rng.integers(0, n, n)
    with np.errstate(all="ignore"):
        want = program(block, Python)(*args)
    function = weft.compile(program(block, weft), opt=opt, on_recompile="silent", inout="error",
                            dynamic={"x": {0: "n"}, "xs": {0: "m", 1: "n"},
                                     "ids": {0: "n"}} if symbolic else None)
    stages = function.lower(*args).stages
    for graph in (stages.traced, stages.optimised, stages.fused):
        verify_graph(graph)
        assert same_graph(parse_graph(print_graph(graph)), graph)
    plan = stages.plan
    verify_plan(plan)
    assert same_plan(parse_plan(print_plan(plan, kernels=True)), plan)
    for got in (run_graph(stages.traced, args), run_graph(stages.fused, args),
                run_plan(plan, args), function(*args)):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


# -- what they mean -----------------------------------------------------------------------------


def both(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result, which is the same at once, compiled, and by both interpreters."""
    program = weft.compile(function, on_recompile="silent", **options)
    wanted = weft.tree.leaves(function(*args))
    stages = program.lower(*args).stages
    verify_graph(stages.traced)
    verify_plan(stages.plan)
    got = program(*args)
    flat = [np.asarray(leaf) for leaf in weft.tree.leaves(args)]
    for found in (weft.tree.leaves(got), run_graph(stages.traced, flat),
                  run_plan(stages.plan, flat)):
        for a, b in zip(found, wanted, strict=True):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return got


def test_scan_of_nests() -> None:
    def step(carry: Any, x: Any) -> Any:
        total, state = carry
        state = {"h": np.tanh(state["h"] + x["a"]), "n": state["n"] + 1}
        return (total + np.sum(x["a"]) * x["b"], state), {"h": state["h"], "none": None}

    init = (np.float64(0), {"h": np.zeros(3, np.float32), "n": np.int32(0)})
    xs = {"a": R.normal(size=(4, 3)).astype(np.float32), "b": np.arange(4.0)}
    (total, state), ys = both(lambda i, x: weft.scan(step, i, x), init, xs)
    h, sums = np.zeros(3, np.float32), 0.0
    for row, b in zip(xs["a"], xs["b"], strict=True):
        h, sums = np.tanh(h + row), sums + row.sum() * b
    np.testing.assert_allclose(state["h"], h, rtol=1e-6)
    np.testing.assert_allclose(total, sums, rtol=1e-6)
    assert state["n"] == 4 and state["n"].dtype == np.int32
    assert ys["none"] is None and ys["h"].shape == (4, 3) and list(ys) == ["h", "none"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint32, bool])
@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_dtypes_and_no_rounds(dtype: Any, rounds: int) -> None:
    xs = np.arange(rounds * 3).reshape(rounds, 3).astype(dtype)
    last, rows = both(lambda x: weft.scan(lambda c, x: (c | x if dtype is bool else c + x, c),
                                          x[:0].sum(axis=0).astype(dtype), x), xs)
    want = np.cumsum(xs, axis=0, dtype=dtype) if dtype is not bool else np.logical_or.accumulate(xs)
    assert rows.shape == (rounds, 3) and rows.dtype == dtype
    if rounds:
        np.testing.assert_array_equal(last, want[-1])


def test_reverse_is_by_place() -> None:
    xs = np.arange(4.0)
    last, ys = both(lambda xs: weft.scan(lambda c, x: (c * 2 + x, c), 0.0, xs, reverse=True), xs)
    assert last == ((3 * 2 + 2) * 2 + 1) * 2 + 0
    np.testing.assert_array_equal(ys, [17.0, 8.0, 3.0, 0.0])


def test_length_without_xs() -> None:
    last, ys = both(lambda x: weft.scan(lambda c, _: (c * 2, c), x, length=4), np.float32(1))
    assert last == 16 and ys.tolist() == [1, 2, 4, 8]


def test_python_numbers_take_the_dtype_of_the_first_round() -> None:
    xs = np.arange(3, dtype=np.float32)
    last, ys = both(lambda xs: weft.scan(lambda c, x: (c + x, c * 2), 0, xs), xs)
    assert last.dtype == np.float32 and ys.dtype == np.float32
    assert type(weft.compile(lambda n: weft.fori_loop(0, 4, lambda i, x: x + i, n))(1)) is int
    assert both(lambda n: weft.while_loop(lambda x: x < 100, lambda x: x * 2.5, n), 1) == 1 * 2.5**6
    assert both(lambda p: weft.cond(p, lambda: 1, lambda: 2.5), np.bool_(True)) == 1.0


def test_bounds_may_be_traced() -> None:
    def function(lo: Any, hi: Any, x: Any) -> Any:
        return weft.fori_loop(lo, hi, lambda i, x: x + i * x[0], x)

    x = np.array([1.0, 2.0])
    for lo, hi in ((0, 4), (2, 5), (-2, 1), (3, 3), (5, 1)):
        want = x
        for i in range(lo, hi):
            want = want + i * want[0]
        got = weft.compile(function)(np.int64(lo), np.int32(hi), x)
        np.testing.assert_allclose(got, want)
        fixed = weft.compile(lambda x, lo=lo, hi=hi: function(lo, hi, x))
        np.testing.assert_allclose(fixed(x), want)
        np.testing.assert_allclose(function(lo, hi, x), want)


def test_symbolic_sizes() -> None:
    @weft.compile(dynamic={"xs": {0: "s", 1: "b"}})
    def function(xs: Any) -> Any:
        total = weft.fori_loop(0, xs.shape[0], lambda i, t: t + i, 0)
        return *weft.scan(lambda c, x: (c + x, c.sum()), xs[0] * 0, xs), total

    for s, b in ((1, 3), (4, 1), (6, 5)):
        xs = R.normal(size=(s, b))
        last, sums, total = function(xs)
        np.testing.assert_allclose(last, xs.sum(axis=0))
        np.testing.assert_allclose(sums, np.cumsum(xs.sum(axis=1)) - xs.sum(axis=1), atol=1e-12)
        assert total == s * (s - 1) // 2
    assert len(function.signatures) == 1


def test_loops_in_branches_in_loops() -> None:
    def collatz(n: Any) -> Any:
        def body(state: Any) -> Any:
            n, steps = state
            n = weft.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n)
            return n, steps + 1

        return weft.while_loop(lambda state: state[0] > 1, body, (n, 0))[1]

    def function(ns: Any) -> Any:
        return weft.scan(lambda most, n: (np.maximum(most, collatz(n)), collatz(n)), 0, ns)

    most, steps = both(function, np.array([1, 2, 7, 27, 97]))
    assert steps.tolist() == [0, 1, 16, 111, 118] and most == 118


def test_values_from_around_are_operands() -> None:
    table, scale = np.array([1.0, 2.0]), 2.0

    def function(x: Any) -> Any:
        y = x * 3
        return weft.scan(lambda c, i: (c + y * table * scale + i, y), x, np.arange(5))

    program = weft.compile(function)
    for run in (program, function):
        np.testing.assert_allclose(run(np.ones(2))[0], 1 + 5 * 3 * table * 2 + 10)
    table[:] = 0  # read at each call
    assert program(np.ones(2))[0].tolist() == [11, 11]


def test_an_index_out_of_range_in_a_body_has_its_line() -> None:
    @weft.compile
    def function(x: Any, ids: Any) -> Any:
        def step(c: Any, i: Any) -> Any:
            return c + x[i], None  # the line

        return weft.scan(step, 0.0, ids)[0]

    assert function(np.arange(3.0), np.array([0, 2])) == 2
    with pytest.raises(IndexError, match="W124") as caught:
        function(np.arange(3.0), np.array([0, 3]))
    assert "# the line" in str(caught.value)
    taken = weft.compile(lambda p, x, i: weft.cond(p, lambda: x[i], lambda: 0.0))
    assert taken(np.bool_(False), np.arange(3.0), np.int64(7)) == 0
    with pytest.raises(IndexError, match="W124"):
        taken(np.bool_(True), np.arange(3.0), np.int64(7))


def test_a_while_stops_at_its_limit() -> None:
    for limit, want in ((0, 1), (3, 8), (100, 16)):
        assert both(lambda x, limit=limit: weft.while_loop(
            lambda x: x < 16, lambda x: x * 2, x, max_iterations=limit), np.int64(1)) == want


def test_what_a_loop_carries_may_change_places() -> None:
    def fibonacci(n: Any) -> Any:
        return weft.fori_loop(0, n, lambda i, ab: (ab[1], ab[0] + ab[1]), (0, 1))[0]

    assert [weft.compile(fibonacci)(n) for n in range(10)] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
    a, b, c = (np.full(3, x) for x in (1.0, 2.0, 3.0))
    both(lambda *abc: weft.fori_loop(0, 4, lambda i, s: (s[1], s[2], s[0]), abc), a, b, c)
    both(lambda *abc: weft.fori_loop(0, 4, lambda i, s: (s[1], s[1] + 1, s[0]), abc), a, b, c)
    both(lambda *abc: weft.fori_loop(0, 4, lambda i, s: (s[1] + s[2], s[0], s[0]), abc), a, b, c)


# -- variables ----------------------------------------------------------------------------------


def test_variables_in_bodies() -> None:
    v = weft.Variable(np.zeros(2), name="v")
    w = weft.Variable(np.array([1.0, 2.0]), name="w")

    def function(xs: Any) -> Any:
        before = v * 1

        def step(total: Any, x: Any) -> Any:
            v.assign_add(x * w)
            return total + v[0], v * 2

        total, ys = weft.scan(step, 0.0, xs)
        return before, total, ys, v * 1

    xs = np.arange(6.0).reshape(3, 2)
    for run in (weft.compile(function), function, weft.compile(function, opt=0)):
        v.assign(np.ones(2))
        before, total, ys, after = run(xs)
        want = 1 + np.cumsum(xs * w.numpy(), axis=0)
        np.testing.assert_allclose(ys, 2 * want)
        np.testing.assert_allclose(after, want[-1])
        np.testing.assert_allclose(v.numpy(), want[-1])
        assert total == want[:, 0].sum() and before.tolist() == [1, 1]


def test_a_branch_may_assign() -> None:
    v = weft.Variable(np.float64(1), name="state")
    count = weft.Variable(np.int64(0), name="count")

    @weft.compile
    def step(x: Any) -> Any:
        def larger() -> Any:
            v.assign(x)
            count.assign_add(1)
            return x

        return weft.cond(x > v, larger, lambda: v[()])

    assert [float(step(np.float64(x))) for x in (0.5, 3.0, 2.0, 4.0)] == [1, 3, 3, 4]
    assert v.numpy() == 4 and count.numpy() == 2


def test_a_failed_loop_leaves_variables_as_they_were() -> None:
    v = weft.Variable(np.zeros(3), name="held")

    @weft.compile
    def function(ids: Any) -> Any:
        def step(c: Any, i: Any) -> Any:
            v.assign(v.at[i].add(1.0))
            return c, None

        return weft.scan(step, 0, ids)[0]

    with pytest.raises(IndexError):
        function(np.array([0, 1, 5]))
    assert v.numpy().tolist() == [0, 0, 0]
    function(np.array([0, 1, 1]))
    assert v.numpy().tolist() == [1, 2, 0]


def test_a_while_reads_what_its_body_assigns() -> None:
    v = weft.Variable(np.float64(1), name="grown")

    @weft.compile
    def function() -> Any:
        def body(n: Any) -> Any:
            v.assign(v * 2)
            return n + 1

        return weft.while_loop(lambda n: v < 100, body, 0)

    assert function() == 7 and v.numpy() == 128


# -- sessions, threads, artifacts ---------------------------------------------------------------


def test_fetch_by_name() -> None:
    g = weft.Graph()
    with g.as_default():
        xs = weft.placeholder("f64", (None, 2), name="xs")
        last, ys = weft.scan(lambda c, x: (c + x, c * x), np.zeros(2), xs)
        top = np.max(ys, axis=0)
        with weft.name_scope("out"):
            both = last + top
    s = weft.Session(g)
    value = R.normal(size=(4, 2))
    rows = np.cumsum(value, axis=0)
    np.testing.assert_allclose(s.run(last, {xs: value}), rows[-1])
    np.testing.assert_allclose(s.run(["scan:0", both], {"xs:0": value})[0], rows[-1])
    # Only what is fetched is computed: the stacked rows are gone.
    plan = s.program(last, [xs]).plan
    assert not any("scan:1" in slot.name for slot in plan.results)
    stored = [param.type for kernel in plan.kernels.values() for param in kernel.params
              if param.mutable]
    assert all(type_.shape == (2,) for type_ in stored)
    np.testing.assert_allclose(s.run(top, {"scan:1": value}), value.max(axis=0))


def test_threads() -> None:
    xs = R.normal(size=(20, 40_000))
    function = weft.compile(lambda xs: weft.scan(lambda c, x: (np.tanh(c + x), np.sum(c)),
                                                 np.zeros(40_000), xs))
    wanted = [a.tobytes() for a in function(xs)]
    found: list[list[bytes]] = []
    threads = [threading.Thread(target=lambda: found.append([a.tobytes() for a in function(xs)]))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    weft.set_num_threads(1)
    try:
        found.append([a.tobytes() for a in function(xs)])
    finally:
        weft.set_num_threads(2)
    assert found == [wanted] * 5


def test_export(tmp_path: Any) -> None:
    w = R.normal(size=(3, 3))

    def function(xs: Any, n: Any) -> Any:
        h, ys = weft.scan(lambda h, x: (np.tanh(h @ w + x),) * 2, np.zeros(3), xs)
        return weft.while_loop(lambda x: np.sum(np.abs(x)) > n, lambda x: x / 2, h), ys

    weft.export(function, "f64[s,3]", "f64[]", path=tmp_path / "m")
    xs = R.normal(size=(7, 3))
    loaded = weft.load(tmp_path / "m")
    for got, want in zip(loaded(xs, 0.1), function(xs, np.float64(0.1)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


# -- plans --------------------------------------------------------------------------------------


def lstm(params: Any, xs: Any) -> Any:
    def cell(state: Any, x: Any) -> Any:
        h, c = weft.nn.lstm_cell(x, state, params["w"], params["u"], params["b"])
        return (h, c), h

    zeros = np.zeros((8, 16), np.float32)
    return weft.scan(cell, (zeros, zeros), xs)[1]


def newton(a: Any) -> Any:
    return weft.while_loop(lambda x: np.abs(x * x - a) > 1e-9, lambda x: 0.5 * (x + a / x), a,
                           max_iterations=60)


def clipped(xs: Any, most: Any) -> Any:
    def step(total: Any, x: Any) -> Any:
        total = weft.cond(np.sum(total) > most, lambda t, x: t / t.sum(), lambda t, x: t + x,
                          total, x)
        return total, np.max(total)

    return weft.scan(step, xs[0] * 0, xs)


def updated(params: Any, grads: Any, state: Any) -> Any:
    return weft.optim.Adam(1e-3).update(grads, state, params)


SIZED = [f"f32[{n}]" for n in (3, 16, 100, 7, 640, 1, 33, 256, 48, 12)]
PLANS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scan_lstm": (lstm, ({"w": "f32[4,64]", "u": "f32[16,64]", "b": "f32[64]"}, "f32[20,8,4]")),
    "while_newton": (newton, ("f64[]",)),
    "cond_in_scan": (clipped, ("f64[m,5]", "f64[]")),
    "group_adam": (updated, (SIZED, SIZED, {"mean": SIZED, "square": SIZED, "count": "i64[]"})),
}


@pytest.mark.parametrize("name", PLANS)
def test_plans(name: str, golden: Golden) -> None:
    function, specs = PLANS[name]
    lowered = weft.compile(target="x86-64-v3")(function).lower(*specs)
    golden(without_places(print_plan(lowered.stages.plan, kernels=True)), f"plans/{name}.plan")


def test_rounds_copy_only_rows_of_results() -> None:
    """The memory of what is carried is written in place, exchanged, or is a row of a result."""
    def steps(function: Any, *specs: str) -> list[Any]:
        return list(all_steps(weft.compile(function).lower(*specs).stages.plan.steps))

    elementwise = steps(lambda x, n: weft.fori_loop(
        0, n, lambda i, c: c * 0.5 + 1, x), "f64[9]", "i64[]")
    assert sum(isinstance(step, Copy) for step in elementwise) == 1  # of the first value
    assert not any(step.carried for step in elementwise if isinstance(step, Loop))
    product = steps(lambda x, w: weft.fori_loop(0, 9, lambda i, c: c @ w, x * 2),
                    "f64[4,4]", "f64[4,4]")
    loop = next(step for step in product if isinstance(step, Loop))
    assert len(loop.carried) == 1 and not any(isinstance(step, Copy) for step in loop.body)
    nested = steps(lambda x, n: weft.fori_loop(0, n, lambda i, c: weft.fori_loop(
        0, n, lambda j, c: c * 2 + j, c), x), "f64[4]", "i64[]")
    assert sum(isinstance(step, Copy) for step in nested) == 1


def test_results_that_nobody_reads_are_not_computed() -> None:
    def function(x: Any, xs: Any) -> Any:
        (a, _, c), _ = weft.scan(lambda s, x: ((s[0] + x, np.tanh(s[1]), s[2]), np.exp(x)),
                                 (x, x, x), xs)
        return a + c

    scan = next(node for node in weft.compile(function).lower(
        "f64[3]", "f64[5,3]").stages.optimised.nodes if node.op.control is not None)
    assert (scan.attrs["carried"], scan.attrs["scanned"], len(scan.results)) == (1, 1, 1)
    assert [node.op.name for node in scan.attrs["body"].nodes] == ["add"]


def test_a_known_condition_chooses() -> None:
    stages = weft.compile(lambda x: weft.cond(True, np.sin, np.cos, x)).lower("f64[3]").stages
    assert [node.op.name for node in stages.optimised.nodes] == ["sin"]
    assert not any(isinstance(step, Branch) for step in stages.plan.steps)


def test_constants_move_into_bodies() -> None:
    def function(xs: Any) -> Any:
        two = np.full(3, 2.0, like=xs)
        return weft.scan(lambda c, x: (c * two + x, None), two, xs)[0]

    graph: Graph = weft.compile(function).lower("f64[5,3]").stages.optimised
    scan = next(node for node in graph.nodes if node.op.control is not None)
    assert len(scan.inputs) == 2  # the first value and the rows


@pytest.mark.parametrize(("function", "code"), [
    (lambda x: weft.scan(lambda c, x: (c, x), x, x[0, 0]), "W102"),
    (lambda x: weft.scan(lambda c, x: (c, x), x, (x, x[:1])), "W102"),
    (lambda x: weft.scan(lambda c, x: (c, x), x), "W102"),
    (lambda x: weft.scan(lambda c, x: (c, x), x, length=-1), "W102"),
    (lambda x: weft.scan(lambda c, x: c, x, x), "W102"),
    (lambda x: weft.scan(lambda c, x: ((c, c), x), x, x), "W102"),
    (lambda x: weft.scan(lambda c, x: (c.astype(np.float32), x), x, x), "W111"),
    (lambda x: weft.scan(lambda c, x: (c[0], x), x, x), "W102"),
    (lambda x: weft.while_loop(lambda c: c, lambda c: c, x), "W102"),
    (lambda x: weft.while_loop(lambda c: c[0, 0], lambda c: c, x), "W111"),
    (lambda x: weft.while_loop(lambda c: c[0, 0] > 0, lambda c: c, x, max_iterations=-1), "W112"),
    (lambda x: weft.cond(x[0, 0] > 0, lambda: x, lambda: x[0]), "W102"),
    (lambda x: weft.cond(x[0, 0] > 0, lambda: x, lambda: (x, x)), "W102"),
    (lambda x: weft.cond(x[0, 0] > 0, lambda: x, lambda: x.astype(np.float32)), "W111"),
    (lambda x: weft.cond(x[0, 0], lambda: x, lambda: x), "W111"),
    (lambda x: weft.fori_loop(0, x[0, 0], lambda i, c: c, x), "W112"),
])
def test_what_is_refused(function: Callable[..., Any], code: str) -> None:
    for run in (weft.compile(function), function):
        with pytest.raises(Error, match=f"^{code}: ") as caught:
            run(np.ones((2, 3)))
        assert "fix: " in str(caught.value)
        assert any(loc.file == __file__ for loc in caught.value.locs)
