"""Straight lines of equal segments become loops: the same bits, compiled as one segment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.rewriting.loops import counting
from weft.ir.graph import Graph, all_nodes, control_of
from weft.ir.interp.graph import run_graph
from weft.ir.ops.control.region import Looping
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph
from weft.ir.text.same import same_graph
from weft.ir.verify.verifier import verify_graph
from weft.passes.control.inline import inline_regions
from weft.passes.roll.affine import Affine, affine
from weft.passes.roll.repeats import Run, repeats
from weft.passes.roll.roll import roll
from weft.passes.state import resolve_state


@pytest.fixture(autouse=True)
def _traced_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds that store parts of large arrays, too."""
    monkeypatch.setattr(counting, "LARGE", 1 << 60)
    monkeypatch.setattr(counting, "PATIENCE", 1 << 60)


RNG = np.random.default_rng(0)
U = RNG.normal(size=800)
Program = Callable[[int], Callable[..., Any]]


def lorenz(n: int) -> Any:
    def slope(s: Any) -> Any:
        x, y, z = s
        return np.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z])

    def run(s: Any) -> Any:
        out = np.zeros((n + 1, 3))
        out[0] = s
        for t in range(n):
            s = out[t]
            k1 = slope(s)
            k2 = slope(s + 0.005 * k1)
            k3 = slope(s + 0.005 * k2)
            k4 = slope(s + 0.01 * k3)
            out[t + 1] = s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return out
    return run


def filtered(n: int) -> Any:
    def run(u: Any, a: Any) -> Any:
        out, y = np.zeros(n), 0.0
        for t in range(n):
            y = a * y + 0.1 * u[t]
            out[t] = y
        return out
    return run


def delayed(n: int) -> Any:
    def run(u: Any) -> Any:
        out = np.ones(n + 3)
        for t in range(2, n):
            out[t] = u[t] + 0.3 * u[t - 2] + 0.5 * out[t - 1] - 0.3 * out[t - 2]
        return out
    return run


def backwards(n: int) -> Any:
    def run(u: Any) -> Any:
        out, y = np.zeros((2, 2 * n)), 1.0
        for t in range(n - 1, -1, -1):
            y = y * 0.5 + u[2 * t]
            out[0, 2 * t] = y
            out[:, 2 * t + 1] = y + u[:2]
        return out
    return run


def swapped(n: int) -> Any:
    def run(x: Any, y: Any) -> Any:
        for _ in range(n):
            x, y = y, x + y * 0.01
            x, y = np.sin(y) + x, x
        return x, y
    return run


def lists(n: int) -> Any:
    def run(x: Any) -> Any:
        found = []
        for _ in range(n):
            x = np.exp(-x) + 0.1
            found.append(x * x + x)
        return np.array(found), sum(found), found[3], found[-2]
    return run


def heat(n: int) -> Any:
    def run(u: Any, k: Any) -> Any:
        u = u[:40] + 0
        for _ in range(n):
            u[1:-1] = u[1:-1] + k * (u[2:] - 2 * u[1:-1] + u[:-2])
        return u
    return run


def many(n: int) -> Any:
    """Elements that each go through all rounds by themselves, in vectors."""
    def run(u: Any, a: Any) -> Any:
        x, out = u[:100], np.zeros((n, 100))
        for t in range(n):
            x = a * x + np.tanh(u[t:t + 100]) * x
            out[t] = x
        return x, out
    return run


def nested(n: int) -> Any:
    def run(x: Any, y: Any) -> Any:
        for _ in range(n):
            for _ in range(40):
                x = x * 0.5 + y
                y = y - x * 0.01
            y = np.sqrt(np.abs(y)) + x
        return x, y
    return run


def recurrent(n: int) -> Any:
    def run(u: Any, w: Any) -> Any:
        h = u[:16].reshape(2, 8)
        for t in range(n):
            h = np.tanh(h @ w + u[t] * np.sum(w @ w, axis=0))
        return h
    return run


def gathered(n: int) -> Any:
    def run(u: Any, at: Any) -> Any:
        total = 0.0
        for _ in range(n):
            total = total + u[at] * 0.5
            at = (at * 7 + 3) % 11
        return total, at
    return run


def squared(n: int) -> Any:
    """The first round reads one value as two of its operands."""
    def run(x: Any) -> Any:
        y = x
        for _ in range(n):
            y = np.sin(y * x) + 0.5
        return y
    return run


def timed(n: int) -> Any:
    """Times of rounds, exact or not, and numbers made of them."""
    def run(y: Any) -> Any:
        out = np.zeros((n, 3))
        for t in range(n):
            y = y + 0.1 * (np.sin(t * 0.1) - y) * ((t + 1) * 0.3) - t
            out[t] = y
        return out
    return run


def polynomial(n: int) -> Any:
    coefficients = np.random.default_rng(1).choice([-1.0, 0.0, -0.0, 0.5, 2.0], n).tolist()

    def run(x: Any) -> Any:
        y = x * 0
        for c in coefficients:
            y = y * x + c
        return y
    return run


def bounded(n: int) -> Any:
    """A table of states: each is written in parts, reads the one before and what it has itself."""
    def run(u: Any) -> Any:
        out = np.ones((n + 1, 20))
        out[0] = u
        for t in range(n):
            out[t + 1, 1:-1] = out[t, 1:-1] + 0.2 * (out[t, 2:] - out[t, :-2])
            out[t + 1, 0] = out[t + 1, 1] - out[t, 0]
            early = out + 0
            out[t + 1, -1] = 0.5
        return out, early
    return run


def waves(n: int) -> Any:
    """The boundaries come first; columns are states, two of which a round reads."""
    def run(u: Any) -> Any:
        out = np.zeros((20, n + 2))
        out[:, 0], out[1:-1, 1] = u, u[1:-1] * 0.9
        for t in range(1, n + 1):
            out[0, t + 1] = t * 0.1
            out[-1, t + 1] = out[-2, t]
            out[1:-1, t + 1] = 2 * out[1:-1, t] - out[1:-1, t - 1] + 0.5 * (
                out[2:, t] - 2 * out[1:-1, t] + out[:-2, t])
        return out, out[3]
    return run


def plates(n: int) -> Any:
    def run(u: Any) -> Any:
        out = np.empty((n + 1, 5, 4))
        out[0] = u.reshape(5, 4)
        for t in range(n):
            out[t + 1, 1:-1, 1:-1] = out[t, 1:-1, 1:-1] * 0.9 + 0.1 * out[t, 2:, :-2]
            out[t + 1, ::4] = t
            out[t + 1, :, 0] = 1
            out[t + 1, :, -1] = out[t + 1, :, -2]
        return out
    return run


def gradient(program: Program, loss: Callable[[Any], Any], which: Any = 0) -> Program:
    def made(n: int) -> Any:
        inner = program(n)
        return lambda *args: weft.value_and_grad(lambda *args: loss(inner(*args)), which)(*args)
    return made


# What is compiled, with which arguments, how many loops it has, and of how many rounds.
PROGRAMS: dict[str, tuple[Program, tuple[Any, ...], int, int]] = {
    "lorenz": (lorenz, (np.ones(3),), 1, 40),
    "filtered": (filtered, (U, 0.9), 1, 40),
    "delayed": (delayed, (U,), 1, 40),
    "backwards": (backwards, (U,), 1, 40),
    "swapped": (swapped, (1.0, 2.0), 1, 60),
    "lists": (lists, (0.5,), 3, 130),
    "heat": (heat, (U, 0.1), 1, 40),
    "many": (many, (U, 0.1), 1, 40),
    "nested": (nested, (1.0, 2.0), 2, 20),
    "recurrent": (recurrent, (U, U[:64].reshape(8, 8) / 4), 1, 40),
    "gathered": (gathered, (U, 4), 1, 60),
    "bounded": (bounded, (U[:20],), 1, 40),
    "waves": (waves, (U[:20],), 1, 40),
    "plates": (plates, (U[:20],), 1, 40),
    "squared": (squared, (0.3,), 1, 60),
    "timed": (timed, (U[:3],), 1, 40),
    "polynomial": (polynomial, (U[:5],), 1, 130),
    "grad polynomial": (gradient(polynomial, np.sum), (U[:5],), 2, 130),
    "grad lorenz": (gradient(lorenz, np.sum), (np.ones(3),), 2, 40),
    "grad filtered": (gradient(filtered, lambda y: np.sum(y * y), (0, 1)), (U, 0.9), 2, 40),
    "grad heat": (gradient(heat, lambda y: np.sum(y * y), (0, 1)), (U, 0.1), 2, 40),
    "grad lists": (gradient(lists, lambda y: np.sum(y[0]) + y[1]), (0.5,), 6, 130),
}


def graph_of(function: Any, *args: Any) -> Graph:
    return resolve_state(weft.compile(function).trace(*args).graph)


def loops(graph: Graph) -> list[Looping]:
    return [control for node in all_nodes(graph)
            if isinstance(control := control_of(node), Looping)]


def bits(nest: Any) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in weft.tree.flatten(nest)[0]]


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bits_from_loops(name: str) -> None:
    program, args, count, rounds = PROGRAMS[name]
    function = program(rounds)
    plain = graph_of(function, *args)
    rolled = roll(plain)
    verify_graph(rolled)
    assert len(loops(rolled)) == count
    assert same_graph(parse_graph(print_graph(rolled)), rolled)
    given = [np.asarray(arg) for arg in args]
    assert bits(run_graph(rolled, given)) == bits(run_graph(plain, given))
    wanted = bits(weft.compile(function, opt=0)(*args))  # which rolls nothing
    for options in ({"opt": 1}, {"opt": 2}, {"target": "x86-64-v3", "threads": 1}):
        assert bits(weft.compile(function, **options)(*args)) == wanted


@pytest.mark.parametrize("name", PROGRAMS)
def test_twice_the_rounds_are_no_more_nodes(name: str) -> None:
    """But for constants of which each round has its own."""
    program, args, _, rounds = PROGRAMS[name]
    one, two = (sum(not node.op.constant for node in all_nodes(roll(graph_of(program(n), *args))))
                for n in (rounds, 2 * rounds))
    assert two <= one + 4


def test_a_filter_is_one_kernel_that_stores_its_rows() -> None:
    text = weft.compile(filtered(60)).lower(U, 0.9).as_text("kernel")
    loop = next(kernel for kernel in text.split("\nkernel ") if " carry " in kernel)
    assert loop.count(" carry ") == 1 and "seq k0" in loop and "[k0" in loop


def test_times_of_rounds_are_computed_from_their_number() -> None:
    body = loops(roll(graph_of(timed(60), U[:3])))[0].body
    assert {node.attrs["value"] for node in body.nodes if node.op.constant} == {0.1, 0.3, True}
    assert sum(node.op.name == "dim" for node in body.nodes) == 2


@pytest.mark.parametrize(("numbers", "wanted"), [
    ([0.0, 1.0, 2.0], Affine(0, 1)),
    ([5, 3, 1], Affine(5, -2)),
    (np.arange(3, 9) * 0.1, Affine(3, 1, 0.1)),
    (np.arange(3, 9, dtype=np.float32) * np.float32(0.1), Affine(3, 1, float(np.float32(0.1)))),
    ([-0.0, 1.0, 2.0], None),
    (np.arange(3, 9) * 0.1 + 1e-3, None),
    ([0.0, np.inf, np.inf], None),
    ([2.0 ** 60, 2.0 ** 60, 2.0 ** 60], None),
    ([True, False, True], None),
])
def test_constants_as_functions_of_the_round(numbers: Any, wanted: Affine | None) -> None:
    assert affine(np.asarray(numbers)) == wanted


@pytest.mark.parametrize("program", [bounded, waves, plates])
def test_a_table_of_states_is_not_handed_on(program: Program) -> None:
    loop, = loops(roll(inline_regions(graph_of(program(40), U[:20]))))
    assert sum(value.type.size for value in loop.body.params[:loop.carried]) <= 3 * 20


def test_what_is_short_stays_a_straight_line() -> None:
    assert not loops(roll(graph_of(lorenz(7), np.ones(3))))
    assert not loops(roll(graph_of(swapped(30), 1.0, 2.0)))


def test_weights_of_their_own_stay_a_straight_line() -> None:
    weights = [RNG.normal(size=(3, 3)) for _ in range(80)]

    def deep(x: Any, weights: Any) -> Any:
        for w in weights:
            x = np.tanh(x @ w) + x * 0.1
        return x

    assert not loops(roll(graph_of(deep, np.ones(3), weights)))
    assert bits(weft.compile(deep)(np.ones(3), weights)) == bits(
        weft.compile(deep, opt=0)(np.ones(3), weights))


def test_negative_zeros_of_what_is_added() -> None:
    """What slices send back is added to an array of zeros: -0.0 becomes 0.0 but in one place."""
    def run(u: Any) -> Any:
        total = 0.0
        for t in range(60):
            total = total * 0.5 + u[t] * -0.0 + u[t + 1] * 0.0
        return total

    function = weft.grad(run)
    u = np.where(np.arange(62) % 3, 1.0, -0.0)
    assert bits(weft.compile(function)(u)) == bits(weft.compile(function, opt=0)(u))


def test_an_index_is_checked_in_every_round() -> None:
    function = gathered(60)
    with pytest.raises(IndexError, match="W124"):
        weft.compile(function)(U[:8], 4)


def test_variables_are_written_once() -> None:
    def trained(opt: int) -> Any:
        v = weft.Variable(np.array([1.0, 2.0]), name="v")

        @weft.compile(opt=opt)
        def train(x: Any) -> Any:
            for _ in range(80):
                v.assign_sub(0.01 * (v * x - 1))
            return np.sum(v)

        return train(0.5), v.numpy()

    assert bits(trained(2)) == bits(trained(0))


def test_values_of_rounds_are_fetched_by_name() -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (), name="x")
        y = x
        for _ in range(100):
            y = np.sin(y) * 1.5 + x
    s = weft.Session(g)
    wanted, y = [], 0.5
    for _ in range(100):
        wanted.append(np.sin(y))
        y = wanted[-1] * 1.5 + 0.5
    some = [0, 17, 98, 99]
    names = ["sin:0" if at == 0 else f"sin_{at}:0" for at in some]
    np.testing.assert_allclose(s.run(names, {x: 0.5}), [wanted[at] for at in some], rtol=1e-12)


@pytest.mark.long
def test_a_loop_over_rows_of_any_length() -> None:
    @weft.compile(dynamic={"x": {1: "b"}})
    def run(x: Any) -> Any:
        h = x[0] * 0
        for t in range(70):
            h = np.tanh(h + x[t]) * 0.9
        return h

    for size in (0, 1, 2, 7):
        x = RNG.normal(size=(70, size))
        assert bits(run(x)) == bits(weft.compile(run.py_func, opt=0)(x))


def test_runs_of_a_period() -> None:
    keys = np.array([*b"pq", *b"abc" * 40, *b"z", *b"abaxabay" * 30, *b"q"], np.int64)
    assert repeats(keys, 16) == [Run(2, 120, 3), Run(123, 240, 8)]
    assert repeats(np.arange(1000), 16) == []
    assert repeats(np.zeros(10, np.int64), 16) == []


def test_loops_in_loops_are_found_from_the_outside() -> None:
    inner = np.tile(RNG.integers(0, 50, 10), 30)
    keys = np.tile(np.concatenate((inner, RNG.integers(0, 50, 20))), 50)
    assert repeats(keys, 16) == [Run(0, len(keys), 320)]


def test_branches_without_results_among_the_rounds() -> None:
    def function(a: Any, v: Any, ids: Any) -> Any:
        w = v
        for _ in range(12):
            if a < v[0]:
                v[ids]  # of which nothing is used
            w = -np.tanh(np.outer(w, v)) @ v
            w[1:] += w[:-1] * 0.5
        return w

    args = np.float64(0.3), np.arange(1.0, 5.0), np.array([0, 1])
    np.testing.assert_allclose(weft.compile(function)(*args), function(*args))
