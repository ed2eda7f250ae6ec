"""Gradients of cond, while_loop, fori_loop, scan and of Python's own control flow.

Each program is written over a namespace of control flow, which is Weft's or Python's: gradients
are those of the Python loops, written out, and of finite differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from texts import without_places

import weft
from weft.frontend.transforms.graph_gradients import gradients
from weft.frontend.transforms.reverse import grad
from weft.ir.diagnose import Error
from weft.ir.graph import Graph, Node, all_nodes
from weft.ir.interp.graph import run_graph
from weft.ir.interp.plan import run_plan
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph, print_plan
from weft.ir.text.same import same_graph
from weft.ir.verify.verifier import verify_graph, verify_plan

Golden = Callable[[str, str], None]
R = np.random.default_rng(3)
H, XS, W = R.normal(size=(2, 3)), R.normal(size=(4, 2, 3)), R.normal(size=(3, 3)) / 2
A, B = 0.5 + R.random(3), 0.5 + R.random(3)


class Unrolled:
    """The meaning of the four functions, as loops of Python over traced values. Conditions are
    those of plain values, which ``taken`` gives."""

    def __init__(self, taken: list[bool]) -> None:
        self.taken = iter(taken)

    def scan(self, f: Any, init: Any, xs: Any, reverse: bool = False) -> Any:
        ys = []
        for at in range(len(xs))[::-1 if reverse else 1]:
            init, y = f(init, xs[at])
            ys.append(y)
        return init, np.stack(ys[::-1 if reverse else 1])

    def fori_loop(self, lo: int, hi: int, body: Any, init: Any) -> Any:
        for i in range(lo, hi):
            init = body(i, init)
        return init

    def while_loop(self, cond: Any, body: Any, init: Any, max_iterations: int) -> Any:
        for _ in range(max_iterations):
            if not self.true(cond(init)):
                break
            init = body(init)
        return init

    def cond(self, p: Any, t: Any, f: Any, *ops: Any) -> Any:
        return (t if self.true(p) else f)(*ops)

    def true(self, p: Any) -> bool:
        return next(self.taken)


class Eager(Unrolled):
    """The same on plain values, which writes down how conditions were decided."""

    def __init__(self) -> None:
        self.noted: list[bool] = []

    def true(self, p: Any) -> bool:
        self.noted.append(bool(p))
        return self.noted[-1]


def rnn(c: Any, h: Any, xs: Any, w: Any) -> Any:
    def cell(h: Any, x: Any) -> Any:
        h = np.tanh(h @ w + x)
        return h, h * 2

    last, rows = c.scan(cell, h, xs)
    return last.sum() + (rows * rows).sum()


def backwards(c: Any, h: Any, xs: Any, w: Any) -> Any:
    last, rows = c.scan(lambda h, x: (np.sin(h @ w.T * x), h), h, xs, reverse=True)
    return (last * rows[0]).sum() + rows[1:].sum()


def nested(c: Any, h: Any, xs: Any, w: Any) -> Any:
    def cell(h: Any, x: Any) -> Any:
        last, sums = c.scan(lambda r, y: (np.sin(r * y @ w), r.sum()), h, np.stack([x, x * h]))
        return last, sums

    last, rows = c.scan(cell, h, xs)
    return last.sum() + (rows**2).sum()


def weights_of_weights(c: Any, h: Any, xs: Any, w: Any) -> Any:
    """What is the same in all rounds, and costs something, is computed once."""
    return c.scan(lambda h, x: (np.tanh(h @ np.exp(w @ w) + x), h.sum()), h, xs)[0].sum()


def chosen_rounds(c: Any, h: Any, xs: Any, w: Any) -> Any:
    def cell(h: Any, x: Any) -> Any:
        h = c.cond(x.sum() > 0, lambda: np.tanh(h @ w + x), lambda: np.exp(-h * h) * x)
        return h, h.sum()

    last, sums = c.scan(cell, h, xs)
    return last.sum() + (sums * sums).sum()


def inner_rounds(c: Any, h: Any, xs: Any, w: Any) -> Any:
    def cell(h: Any, x: Any) -> Any:
        h = c.while_loop(lambda s: (s * s).sum() < 9, lambda s: s * 1.7 + x @ w, h,
                         max_iterations=4)
        return np.tanh(h), h.sum()

    last, sums = c.scan(cell, h, xs)
    return last.sum() + (sums * sums).sum()


def places(c: Any, x: Any, y: Any) -> Any:
    return c.fori_loop(0, 5, lambda i, s: np.sin(s * y) * x[i % 3] + s[::-1] * i, x).sum()


def one_way(c: Any, x: Any, y: Any) -> Any:
    return c.cond(x.sum() > 0, lambda: (np.exp(x) * y).sum(), lambda: (x @ x * y).sum())


def other_way(c: Any, x: Any, y: Any) -> Any:
    return c.cond(x.sum() < 0, lambda x: (np.exp(x) * y).sum(), lambda z: (z @ x * y).sum(), x)


def rounds(c: Any, x: Any, y: Any) -> Any:
    return c.while_loop(lambda s: s.sum() < 20, lambda s: s * 1.5 + np.exp(-s) * y, x,
                        max_iterations=30).sum()


def no_round(c: Any, x: Any, y: Any) -> Any:
    return (c.while_loop(lambda s: s.sum() < 0, lambda s: s * y, x, max_iterations=3) * x).sum()


def as_many_rounds_as_there_may_be(c: Any, x: Any, y: Any) -> Any:
    return c.while_loop(lambda s: s.sum() < 1e9, lambda s: np.tanh(s * y) + 1, x,
                        max_iterations=3).sum()


def counted_rounds(c: Any, x: Any, y: Any) -> Any:
    """Integers among what is carried; one of them counts from 0 on."""
    def body(s: Any) -> Any:
        return s[0] + 1, np.tanh(s[1] * y + s[0]), s[2] * 2

    return c.while_loop(lambda s: s[0] < 4, body, (0, x, 3), max_iterations=9)[1].sum()


def branches_in_rounds(c: Any, x: Any, y: Any) -> Any:
    def body(s: Any) -> Any:
        return c.cond(s[0] > 1, lambda: s * y + 0.5, lambda: np.exp(s) * y)

    return c.while_loop(lambda s: s.sum() < 9, body, x, max_iterations=7).sum()


def scan_in_rounds(c: Any, x: Any, y: Any) -> Any:
    def body(s: Any) -> Any:
        return c.scan(lambda r, z: (np.tanh(r * z) + y, r.sum()), s, np.stack([s, y]))[0] + s

    return c.while_loop(lambda s: s.sum() < 9, body, x, max_iterations=7).sum()


def exchanged(c: Any, x: Any, y: Any) -> Any:
    a, b = c.fori_loop(0, 3, lambda i, s: (s[1] * s[1], s[0]), (x, y))
    return (a * x).sum() + b.sum()


def left_as_it_was(c: Any, x: Any, y: Any) -> Any:
    a, b = c.fori_loop(0, 3, lambda i, s: (s[0], s[1] * x), (x, y))
    return (a * b).sum()


def overwritten(c: Any, x: Any, y: Any) -> Any:
    a, b = c.fori_loop(0, 3, lambda i, s: (np.ones(3), s[1] * s[0]), (x, y))
    return (a * b).sum()


def not_looked_at(c: Any, x: Any, y: Any) -> Any:
    a, _ = c.fori_loop(0, 3, lambda i, s: (s[0] * y, s[1] * s[0]), (x, y))
    return a.sum()


OF_ROWS = (rnn, backwards, nested, weights_of_weights, chosen_rounds, inner_rounds)
OF_TWO = (places, one_way, other_way, rounds, no_round, as_many_rounds_as_there_may_be,
          counted_rounds, branches_in_rounds, scan_in_rounds, exchanged, left_as_it_was,
          overwritten, not_looked_at)
PROGRAMS = [*((each, (H, XS, W)) for each in OF_ROWS), *((each, (A, B)) for each in OF_TWO)]


def differences(f: Callable[..., Any], args: tuple[Any, ...], at: int) -> Any:
    found = np.zeros_like(args[at])
    for index in np.ndindex(found.shape):
        sides = []
        for step in (1e-6, -1e-6):
            moved = [x.copy() for x in args]
            moved[at][index] += step
            sides.append(float(f(*moved)))
        found[index] = (sides[0] - sides[1]) / 2e-6
    return found


def decided(function: Any, args: Any) -> list[bool]:
    eager = Eager()
    function(eager, *args)
    return eager.noted


@pytest.mark.parametrize(("function", "args"), PROGRAMS,
                         ids=[function.__name__ for function, _ in PROGRAMS])
def test_gradient(function: Any, args: Any) -> None:
    """The gradient is that of differences; bits are the same at all levels and interpreted."""
    numbers = tuple(range(len(args)))
    gradient = weft.grad(lambda *args: function(weft, *args), argnums=numbers)
    compiled = weft.compile(gradient)
    found = compiled(*args)
    for at, each in enumerate(found):
        want = differences(lambda *moved: function(Eager(), *moved), args, at)
        np.testing.assert_allclose(each, want, rtol=1e-5, atol=1e-7)
    lowered = compiled.lower(*args)
    graph = compiled.trace(*args).graph
    verify_graph(graph)
    assert same_graph(parse_graph(print_graph(graph)), graph)
    bits = [x.tobytes() for x in found]
    for run in (run_graph(graph, args), run_plan(lowered.stages.plan, args)):
        for a, b in zip(run, found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert [x.tobytes() for x in weft.compile(gradient, opt=0)(*args)] == bits


@pytest.mark.parametrize(("function", "args"), PROGRAMS,
                         ids=[function.__name__ for function, _ in PROGRAMS])
def test_gradient_of_gradient(function: Any, args: Any) -> None:
    """As of the loop written out, in the interpreter: gradients are ordinary graphs."""
    numbers, taken = tuple(range(len(args))), decided(function, args)

    def twice(of: Callable[..., Any]) -> Any:
        def total(*args: Any) -> Any:
            parts = grad(of, argnums=numbers)(*args)
            return sum(((part * part).sum() for part in parts), 0.0)

        return grad(total, argnums=numbers)(*args)

    found = twice(lambda *args: function(weft, *args))
    want = twice(lambda *args: function(Unrolled(taken), *args))
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


# -- Python's own control flow ------------------------------------------------------------------


def newton(a: Any) -> Any:
    x = a
    for _ in range(50):
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-12:
            break
        x = new
    return x


def pieces(x: Any) -> Any:
    if x > 1:
        y = x * x
    elif x < -1:
        y = np.exp(x) * 3
    else:
        y = -x
    return y * x


def rows(xs: Any) -> Any:
    total = 0.0
    for x in xs:
        if x < 0:
            continue
        total = total + x**2
    return total


def test_gradients_of_pythons_own_control_flow() -> None:
    assert float(weft.grad(newton)(2.0)) == pytest.approx(0.5 / np.sqrt(2), rel=1e-12)
    for x in (3.0, -2.0, 0.5):
        want = (pieces(x + 1e-6) - pieces(x - 1e-6)) / 2e-6
        assert float(weft.grad(pieces)(x)) == pytest.approx(want, rel=1e-7)
    xs = np.array([1.0, -2.0, 3.0])
    np.testing.assert_array_equal(weft.grad(rows)(xs), [2, 0, 6])
    dynamic = weft.compile(weft.grad(rows), dynamic={"xs": {0: "n"}})
    np.testing.assert_array_equal(dynamic(xs), [2, 0, 6])
    np.testing.assert_array_equal(dynamic(np.ones(1)), [2])
    assert dynamic.cache_info().specialisations == 1


# -- bounds, variables, what is saved -----------------------------------------------------------


def test_a_loop_without_a_round_passes_gradients_on() -> None:
    """Also where no round depends on what came before it."""
    x = np.array([0.5, -1.0])

    def forgets(x: Any, n: Any) -> Any:
        return np.sum(weft.fori_loop(0, n, lambda i, s: np.ones(2), np.sin(x), 3) ** 2)

    def over_rows(x: Any, rows: Any) -> Any:
        return np.sum(weft.scan(lambda s, r: (r, None), np.sin(x), rows)[0] ** 2)

    for function, none, some in ((forgets, 0, 2), (over_rows, np.ones((0, 2)), np.ones((3, 2)))):
        unknown = {"rows": {0: "b"}} if function is over_rows else None
        gradient = weft.compile(weft.grad(function), dynamic=unknown)
        tangent = weft.compile(lambda x, *rest, f=function: weft.jvp(
            lambda x: f(x, *rest), (x,), (np.ones(2),))[1])
        np.testing.assert_allclose(gradient(x, none), np.sin(2 * x))
        np.testing.assert_allclose(gradient(x, some), [0, 0])
        np.testing.assert_allclose(tangent(x, none), np.sin(2 * x).sum())
        np.testing.assert_allclose(tangent(x, some), 0)


def test_a_traced_count_needs_a_bound() -> None:
    def power(x: Any, n: Any, most: Any) -> Any:
        return weft.fori_loop(0, n, lambda i, s: s * x, x, max_iterations=most).sum()

    gradient = weft.compile(weft.grad(power), static_argnames="most")
    np.testing.assert_allclose(gradient(A, 3, 5), 4 * A**3)
    np.testing.assert_allclose(gradient(A, 5, 5), 6 * A**5)
    np.testing.assert_allclose(gradient(A, -1, 5), 1)
    with pytest.raises(Error, match="W124: fori_loop has more rounds than max_iterations=5"):
        gradient(A, 6, 5)
    with pytest.raises(Error, match=r"W113.*no bound[^|]*(.|\n)*max_iterations"):
        gradient(A, np.array(3), None)
    stopped = weft.grad(lambda x, n: power(weft.stop_gradient(x), n, None) + x.sum())
    np.testing.assert_array_equal(stopped(A, 3), np.ones(3))


def test_a_loop_without_end_beside_the_path_is_no_matter() -> None:
    def loss(x: Any) -> Any:
        n = weft.while_loop(lambda n: n < 10, lambda n: n * 2, 1)
        return (x * n).sum()

    np.testing.assert_array_equal(weft.grad(loss)(A), np.full(3, 16.0))


def test_variables_in_rounds() -> None:
    """Those that are only read are read once; those that are assigned are what they were in the
    round, and a gradient takes them for constants."""
    w = weft.Variable(B.copy(), name="w")
    total = weft.Variable(np.zeros(()), name="total")

    def loss(xs: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            total.assign_add(x.sum())
            return np.tanh(h * w + total * x), h

        return weft.scan(cell, xs[0], xs)[0].sum()

    def plain(xs: Any, w: Any) -> Any:
        h = xs[0]
        for x, sum_ in zip(xs, sums, strict=True):
            h = np.tanh(h * w + sum_ * x)
        return h.sum()

    xs = XS[:, 0] / 4
    sums = np.cumsum(xs.sum(axis=1))
    found = weft.compile(weft.grad(loss))(xs)
    np.testing.assert_allclose(found, differences(plain, (xs, B), 0), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(total.numpy(), xs.sum())
    total.assign(np.zeros(()))
    step = weft.compile(lambda xs: weft.optim.SGD(0.5).minimize(lambda: loss(xs), [w]))
    step(xs)
    np.testing.assert_allclose(w.numpy(), B - 0.5 * differences(plain, (xs, B), 1), rtol=1e-6)


def test_gradients_of_a_graph_reach_variables_in_rounds() -> None:
    w = weft.Variable(B.copy(), name="w")
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        y = weft.fori_loop(0, 3, lambda i, s: s * w, x).sum()
        (found,) = gradients(y, [w])
    np.testing.assert_allclose(weft.Session(g).run(found, {x: A}), 3 * A * B**2)


def loop_nodes(graph: Graph) -> list[Node]:
    return [node for node in all_nodes(graph) if node.op.control is not None]


def lstm(params: Any, xs: Any) -> Any:
    wx, wh, b = params

    def cell(state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = np.split(x @ wx + h @ wh + b, 4, axis=1)
        c = weft.nn.sigmoid(f) * c + weft.nn.sigmoid(i) * np.tanh(g)
        h = weft.nn.sigmoid(o) * np.tanh(c)
        return (h, c), h

    zero = np.zeros((xs.shape[1], wh.shape[0]), np.float32)
    return np.mean(weft.scan(cell, (zero, zero), xs)[1] ** 2)


LSTM = {"params": ("f32[2,16]", "f32[4,16]", "f32[16]"), "xs": "f32[5,3,2]"}


def test_the_gradient_of_an_lstm_multiplies_once_for_each_weight() -> None:
    """The weights' cotangents are one product over all rounds; the rounds back have one each."""
    graph = weft.compile(weft.grad(lstm)).trace(LSTM["params"], LSTM["xs"]).graph
    forward, back = loop_nodes(graph)
    products = [sum(node.op.name == "contract" for node in part.nodes)
                for part in (graph, forward.attrs["body"], back.attrs["body"])]
    assert products == [2, 2, 1]
    assert [back.attrs["reverse"], forward.attrs["reverse"]] == [True, False]
    # Saved are h, c, four activations and tanh(c), each of (3, 4): no product, no weight.
    kept = forward.results[forward.attrs["carried"]:]
    assert sum(value.type.size for value in kept) <= 8 * 5 * 12


def branch(x: Any, w: Any) -> Any:
    return weft.cond(x[0] > 0, lambda: np.tanh(x @ w).sum(), lambda: (x * x).sum())


def search(x: Any, y: Any) -> Any:
    return weft.while_loop(lambda s: s.sum() < 20, lambda s: s * 1.5 + np.exp(-s) * y, x,
                           max_iterations=30).sum()


def cheap(x: Any, xs: Any) -> Any:
    """Sums and products of what is carried are computed again from that."""
    return weft.scan(lambda h, x: (h * (0.5 + x * h) + x, None), x, xs)[0].sum()


def dear(x: Any, xs: Any) -> Any:
    """Exponentials are saved beside it, once, or by hand not."""
    return weft.scan(_dear_round, x, xs)[0].sum()


def again(x: Any, xs: Any) -> Any:
    return weft.scan(weft.remat(_dear_round), x, xs)[0].sum()


def _dear_round(h: Any, x: Any) -> Any:
    return np.exp(-np.exp(h) * x), None


@pytest.mark.parametrize(("name", "function", "args"), [
    ("cheap", cheap, ("f64[16]", "f64[40,16]")),
    ("dear", dear, ("f64[16]", "f64[40,16]")),
    ("again", again, ("f64[16]", "f64[40,16]")),
    ("lstm", lstm, (LSTM["params"], LSTM["xs"])),
    ("branch", branch, ("f64[3]", "f64[3,2]")),
    ("search", search, ("f64[3]", "f64[3]")),
])
def test_golden(name: str, function: Any, args: Any, golden: Golden) -> None:
    lowered = weft.compile(target="x86-64-v3")(weft.grad(function)).lower(*args)
    verify_plan(lowered.stages.plan)
    golden(without_places(lowered.as_text("opt")), f"grad/{name}.ir")
    golden(without_places(print_plan(lowered.stages.plan, kernels=True)),
           f"plans/{name}_gradient.plan")


def test_memory_is_the_planned_one() -> None:
    """10,000 rounds save 10,000 rows, and nothing else grows with them; nor does the program."""
    def figures(rounds: int) -> tuple[int, int]:
        lowered = weft.compile(weft.grad(lstm)).lower(LSTM["params"], f"f32[{rounds},3,2]")
        return lowered.compile().memory_analysis().peak_bytes, len(lowered.as_text("llvm"))

    (small, _), (large, short) = figures(10), figures(10_000)
    kept = 4 * 3 * (8 * 4 + 16)  # bytes of a row: what is saved, and the gates' cotangents
    assert large - small <= 1.01 * (10_000 - 10) * kept
    # Loops of many rounds ask whether the run is over, which those of 10 do not.
    assert figures(40_000)[1] <= 1.02 * short


def test_what_rounds_save_follows_from_what_it_costs() -> None:
    """Rows for each of 10,000 rounds: of the state, and of one more value that is dear."""
    row, rounds = 16 * 8, 10_000
    peaks = {}
    for function in (cheap, dear, again):
        lowered = weft.compile(weft.grad(function)).lower("f64[16]", f"f64[{rounds},16]")
        peak = lowered.compile().memory_analysis().peak_bytes
        peaks[function.__name__] = peak / (row * rounds)
    assert peaks["cheap"] < 1.01 and peaks["again"] < 1.01
    assert 1.9 < peaks["dear"] < 2.01
