"""Optimizers against their published formulas in float64; schedules; clipping; steps that fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import weft
from weft import optim

RNG = np.random.default_rng(4)
START = RNG.normal(size=5)
GRADS = [RNG.normal(size=5) for _ in range(4)]


def sgd(p: Any, lr: float, m: float = 0, nesterov: bool = False, wd: float = 0) -> Iterator[Any]:
    v = 0 * p
    for g in GRADS:
        g = g + wd * p
        v = m * v + g
        p = p - lr * (g + m * v if nesterov else v)
        yield p


def adam(p: Any, lr: float, wd: float = 0, decoupled: float = 0) -> Iterator[Any]:
    """Algorithm 1 of Kingma and Ba, and 2 of Loshchilov and Hutter with decay times the rate."""
    m, v = 0 * p, 0 * p
    for t, g in enumerate(GRADS, 1):
        g = g + wd * p
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p = p - lr * decoupled * p - lr * (m / (1 - 0.9 ** t)) / (
            np.sqrt(v / (1 - 0.999 ** t)) + 1e-8)
        yield p


def scaled(p: Any, lr: float, keep: float, add: float, eps: float) -> Iterator[Any]:
    """Adagrad keeps all of the squares, RMSProp a decaying mean."""
    v = 0 * p
    for g in GRADS:
        v = keep * v + add * g * g
        p = p - lr * g / (np.sqrt(v) + eps)
        yield p


FORMULAS: dict[str, tuple[Callable[[], optim.Optimizer], Callable[[Any], Iterator[Any]]]] = {
    "sgd": (lambda: optim.SGD(0.1), lambda p: sgd(p, 0.1)),
    "decay": (lambda: optim.SGD(0.1, weight_decay=0.3), lambda p: sgd(p, 0.1, wd=0.3)),
    "momentum": (lambda: optim.SGD(0.1, 0.9), lambda p: sgd(p, 0.1, 0.9)),
    "nesterov": (lambda: optim.SGD(0.1, 0.9, True, 0.1), lambda p: sgd(p, 0.1, 0.9, True, 0.1)),
    "adam": (lambda: optim.Adam(0.1), lambda p: adam(p, 0.1)),
    "adam_decay": (lambda: optim.Adam(0.1, weight_decay=0.2), lambda p: adam(p, 0.1, 0.2)),
    "adamw": (lambda: optim.AdamW(0.1), lambda p: adam(p, 0.1, 0, 0.01)),
    "adagrad": (lambda: optim.Adagrad(0.1), lambda p: scaled(p, 0.1, 1, 1, 1e-10)),
    "rmsprop": (lambda: optim.RMSProp(0.1), lambda p: scaled(p, 0.1, 0.99, 0.01, 1e-8)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name: str) -> None:
    make, formula = FORMULAS[name]
    optimizer, params = make(), {"w": START[:3], "b": START[3:]}
    state = optimizer.init(params)
    for grad, wanted in zip(GRADS, formula(START), strict=True):
        params, state = optimizer.update({"b": grad[3:], "w": grad[:3]}, state, params)
        np.testing.assert_allclose(np.concatenate([params["w"], params["b"]]), wanted, rtol=1e-12)


def test_all_on_variables_in_one_program() -> None:
    """One compiled function takes a step of every optimizer."""
    made = [(make(), weft.Variable(START)) for make, _ in FORMULAS.values()]

    @weft.compile
    def step(grad: Any) -> Any:
        return [o.minimize(lambda v=v: np.sum(v * grad), [v]) for o, v in made]

    for grad, *wanted in zip(GRADS, *(formula(START) for _, formula in FORMULAS.values()),
                             strict=True):
        before = [np.sum(v.numpy() * grad) for _, v in made]
        np.testing.assert_allclose(step(grad), before, rtol=1e-12)
        for (_, v), p in zip(made, wanted, strict=True):
            np.testing.assert_allclose(v.numpy(), p, rtol=1e-12)


SCHEDULES: list[tuple[Any, list[float]]] = [
    (optim.Constant(0.5), [0.5] * 6),
    (optim.PiecewiseConstant((2, 4), (1.0, 0.5, 0.25)), [1, 1, 0.5, 0.5, 0.25, 0.25]),
    (optim.ExponentialDecay(2.0, 2, 0.25), [2 * 0.5 ** t for t in range(6)]),
    (optim.ExponentialDecay(2.0, 2, 0.25, staircase=True), [2, 2, 0.5, 0.5, 0.125, 0.125]),
    (optim.LinearDecay(1.0, 0.2, 4), [1, 0.8, 0.6, 0.4, 0.2, 0.2]),
    (optim.CosineDecay(1.0, 4), [0.5 + 0.5 * math.cos(math.pi * t / 4) for t in range(5)] + [0]),
    (optim.CosineDecay(1.0, 4, warmup=2, final=0.1), [0, 0.5, 1, 0.55, 0.1, 0.1]),
]


@pytest.mark.parametrize(("schedule", "wanted"), SCHEDULES)
def test_schedules(schedule: Any, wanted: list[float]) -> None:
    np.testing.assert_allclose([schedule(step) for step in range(6)], wanted, atol=1e-15)
    np.testing.assert_allclose(schedule(np.arange(6)), wanted, atol=1e-15)


def test_schedules_count_steps() -> None:
    """In nests and on variables, compiled, in the parameter's dtype."""
    rates = [schedule for schedule, _ in SCHEDULES]
    made = [(optim.SGD(rate), weft.Variable(np.float32(0))) for rate in rates]

    @weft.compile
    def step(states: Any, params: Any) -> Any:
        for optimizer, v in made:
            optimizer.minimize(lambda v=v: -v[...], [v])
        moved = [o.update(np.float32(-1), s, p)
                 for (o, _), s, p in zip(made, states, params, strict=True)]
        return [s for _, s in moved], [p for p, _ in moved]

    params = [np.float32(0)] * len(rates)
    states = [optimizer.init(np.float32(0)) for optimizer, _ in made]
    for taken in range(6):
        states, params = step(states, params)
        for (_, wanted), (_, v), p, state in zip(SCHEDULES, made, params, states, strict=True):
            np.testing.assert_allclose(v.numpy(), sum(wanted[:taken + 1]), rtol=1e-6)
            assert p == v.numpy() and p.dtype == np.float32 and state["count"] == taken + 1


def test_clipping() -> None:
    nest = {"a": np.array([3.0, 0.0]), "b": [np.float32(-4)]}
    assert optim.global_norm(nest) == 5
    half = optim.clip_by_global_norm(nest, 2.5)
    np.testing.assert_allclose(half["a"], [1.5, 0])
    assert half["b"][0] == -2 and half["b"][0].dtype == np.float32
    kept = optim.clip_by_global_norm(nest, 7)
    np.testing.assert_array_equal(kept["a"], nest["a"])
    np.testing.assert_array_equal(optim.clip_by_value(nest, 1)["a"], [1, 0])
    assert optim.global_norm({"a": np.zeros(2)}) == 0
    assert np.isfinite(optim.clip_by_global_norm({"a": np.zeros(2)}, 1.0)["a"]).all()


@pytest.mark.parametrize(("options", "wanted"), [
    ({"clip_norm": 2.5}, [-1.5, 2]), ({"clip_value": 3.5}, [-3, 3.5]),
    ({"clip_value": 3.0, "clip_norm": math.sqrt(18) / 2}, [-1.5, 1.5]),
])
def test_optimizers_clip(options: Any, wanted: list[float]) -> None:
    sgd, v = optim.SGD(1.0, **options), weft.Variable(np.zeros(2))
    grad = np.array([3.0, -4.0])
    sgd.minimize(lambda: np.sum(v * grad), [v])
    np.testing.assert_allclose(v.numpy(), wanted)
    params, _ = sgd.update((grad[0], grad[1:]), sgd.init((0.0, np.zeros(1))), (0.0, np.zeros(1)))
    np.testing.assert_allclose(np.hstack(params), wanted)


def test_a_value_of_a_graph_is_minimized() -> None:
    w, b = weft.Variable(np.zeros(2)), weft.Variable(1.0)
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (None, 2), name="x")
        loss = np.mean((x @ w + b) ** 2)
        train = optim.SGD(0.25).minimize(loss, [w, b])
    session = weft.Session(g)
    at = np.array([[1.0, 2.0], [3.0, 0.0]])
    assert session.run(loss, {x: at}) == 1 and b.numpy() == 1  # the loss alone takes no step
    assert session.run([train, loss], {x: at}) == [None, 1]
    np.testing.assert_allclose(w.numpy(), -0.25 * 2 * at.mean(0))
    assert b.numpy() == 0.5


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("make", [lambda: optim.SGD(0.1), lambda: optim.Adam(0.1)])
def test_minimize_gives_what_else_the_loss_returns(make: Any, compiled: bool) -> None:
    w, other = weft.Variable(np.array([2.0, 1.0])), weft.Variable(np.array([2.0, 1.0]))
    optimizer, plain = make(), make()

    def loss(x: Any) -> Any:
        error = x @ w
        return error**2, {"error": error, "w": w, "sizes": (x.shape[0], "kept"), "none": None}

    def step(x: Any) -> Any:
        return optimizer.minimize(loss, [w], x, has_aux=True)

    run = weft.compile(step) if compiled else step
    for _ in range(3):
        x, before = np.array([1.0, -3.0]), w.value
        value, aux = run(x)
        np.testing.assert_allclose(
            value, plain.minimize(lambda x=x: (x @ other) ** 2, [other]), rtol=1e-12)
        np.testing.assert_allclose(aux["error"], x @ before, rtol=1e-12)
        np.testing.assert_array_equal(aux["w"], before)
        assert aux["sizes"] == (2, "kept") and aux["none"] is None
        np.testing.assert_allclose(w.value, other.value, rtol=1e-12)


def test_minimize_says_what_has_aux_is_for() -> None:
    w = weft.Variable(1.0)
    with pytest.raises(weft.Error, match=r"(?s)W114.*\(value, aux\)"):
        optim.SGD(0.1).minimize(lambda: w * w, [w], has_aux=True)
    with pytest.raises(weft.Error, match=r"(?s)W114.*has_aux=True"):
        optim.SGD(0.1).minimize(lambda: (w * w, w), [w])
    g = weft.Graph()
    with g.as_default():
        found, rest = optim.SGD(0.1).minimize(lambda: (w * w, w + 1), [w], has_aux=True)
        loss = w * w
        with pytest.raises(weft.Error, match="W114"):
            optim.SGD(0.1).minimize(loss, [w], has_aux=True)
    assert weft.Session(g).run([found, rest]) == [1, 2] and w.value == 0.8


def test_a_step_that_fails_changes_nothing() -> None:
    table = weft.Variable(RNG.normal(size=(4, 3)))
    optimizer = optim.Adam(optim.LinearDecay(0.1, 0.0, 100), clip_norm=1.0)
    step = weft.compile(lambda ids: optimizer.minimize(
        lambda: np.sum(weft.nn.embedding(ids, table) ** 2), [table]))
    step(np.array([0, 1]))
    everything = [table, *optimizer.variables]
    before = [v.numpy().copy() for v in everything]
    with pytest.raises(weft.Error, match="W124"):
        step(np.array([1, 9]))
    for v, value in zip(everything, before, strict=True):
        np.testing.assert_array_equal(v.numpy(), value)
    step(np.array([1, 3]))
    assert not np.array_equal(table.numpy(), before[0])


@pytest.mark.parametrize(("make", "code"), [
    (lambda: optim.SGD(-0.1), "W132"),
    (lambda: optim.SGD(math.nan), "W132"),
    (lambda: optim.SGD(np.array([0.1, -0.1])), "W132"),
    (lambda: optim.SGD("fast"), "W112"),
    (lambda: optim.SGD(True), "W112"),
    (lambda: optim.SGD(1j), "W112"),
    (lambda: optim.SGD(0.1, momentum=1.5), "W132"),
    (lambda: optim.SGD(0.1, weight_decay=-1), "W132"),
    (lambda: optim.SGD(0.1, clip_norm=0), "W132"),
    (lambda: optim.SGD(0.1, clip_value=-1.0), "W132"),
    (lambda: optim.Adam(0.1, beta1=1.0), "W132"),
    (lambda: optim.AdamW(0.1, beta2=-0.5), "W132"),
    (lambda: optim.Adam(0.1, eps=-1e-8), "W132"),
    (lambda: optim.RMSProp(0.1, decay=99), "W132"),
    (lambda: optim.Adagrad(0.1, eps=None), "W112"),
    (lambda: optim.CosineDecay(0.1, 0), "W132"),
    (lambda: optim.CosineDecay(0.1, 10, warmup=-1), "W132"),
    (lambda: optim.LinearDecay(0.1, 0.0, 0), "W132"),
    (lambda: optim.ExponentialDecay(0.1, 2.5, 0.9), "W112"),
    (lambda: optim.PiecewiseConstant((5, 3), (1.0, 0.5, 0.1)), "W132"),
    (lambda: optim.PiecewiseConstant((3,), (1.0,)), "W132"),
    (lambda: optim.Constant(-1.0), "W132"),
])
def test_numbers_out_of_their_range(make: Callable[[], Any], code: str) -> None:
    with pytest.raises(weft.Error) as caught:
        make()
    assert caught.value.code == code


def test_a_warmup_longer_than_the_steps() -> None:
    rates = [float(optim.CosineDecay(1.0, 3, warmup=4, final=0.5)(step)) for step in range(7)]
    assert rates == [0.0, 0.25, 0.5, 0.75, 1.0, 0.5, 0.5]


def test_what_only_the_step_knows_is_taken() -> None:
    rate = weft.Variable(0.5)
    w = weft.Variable(1.0)
    optim.SGD(rate).minimize(lambda: w * w, [w])
    assert w.numpy() == 0.0
    step = weft.compile(lambda p, lr, beta: optim.Adam(lr, beta1=beta).update(
        p, optim.Adam(lr).init(p), p)[0])
    np.testing.assert_allclose(step(np.ones(2), 0.1, 0.9), 0.9)


@pytest.mark.parametrize("in_graph", [False, True])
def test_variables_that_the_loss_does_not_read(in_graph: bool) -> None:
    """They stay as they are: Adam would move them by what it remembers, AdamW by their decay."""
    used, unused = weft.Variable(3.0, name="used"), weft.Variable(2.0, name="unused")
    adam = optim.AdamW(0.1, weight_decay=0.5)
    with pytest.warns(weft.TracingWarning, match="does not depend on 'unused"):
        if in_graph:
            with weft.Graph().as_default() as graph:
                step = adam.minimize(used * used, [used, unused])
            weft.Session(graph).run(step)
        else:
            adam.minimize(lambda: used * used, [used, unused])
    assert used.numpy() < 3.0
    assert unused.numpy() == 2.0
    assert not any(unused.name in slot.name for slot in adam.variables)
    with pytest.raises(weft.Error, match="does not depend on any") as caught:
        adam.minimize(lambda: used * used, [unused])
    assert caught.value.code == "W114"


@pytest.mark.parametrize("optimizer", [
    lambda: optim.SGD(0.1), lambda: optim.SGD(0.05, 0.9, nesterov=True),
    lambda: optim.Adam(0.1),
    lambda: optim.AdamW(0.1, weight_decay=1e-5), lambda: optim.RMSProp(0.05),
    lambda: optim.Adagrad(0.5),
    lambda: optim.SGD(0.1, clip_value=0.5), lambda: optim.Adam(0.1, clip_norm=1.0)])
def test_complex_parameters_go_down(optimizer: Callable[[], Any]) -> None:
    target = np.array([1 + 2j, -3 + 0.5j])

    def loss(z: Any) -> Any:
        return np.sum(np.abs(z - target) ** 2)

    plain, of_variables = optimizer(), optimizer()
    held = weft.Variable(np.zeros(2, np.complex64), "z")
    z = np.zeros(2, complex)
    state = plain.init(z)
    step = weft.compile(lambda z, state: plain.update(weft.grad(loss)(z), state, z))
    minimized = weft.compile(lambda: of_variables.minimize(lambda: loss(held[...]), [held]))
    for _ in range(200):
        z, state = step(z, state)
        minimized()
    np.testing.assert_allclose(z, target, atol=0.02)
    np.testing.assert_allclose(held.numpy(), target, atol=0.02)
    kinds = {name: array.dtype for name, array in state.items() if name != "count"}
    assert kinds == {name: {"square": np.float64}.get(name, np.complex128) for name in plain.slots}


def test_squares_take_both_parts() -> None:
    z = np.array([3 + 4j])
    assert optim.global_norm({"a": z}) == 5.0
    np.testing.assert_allclose(optim.clip_by_global_norm([z], 1.0)[0], z / 5)
    np.testing.assert_array_equal(optim.clip_by_value([z, 1 - 9j], 3)[0], [3 + 3j])
