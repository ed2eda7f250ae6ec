"""Long loops of known length that branch in each round: loops of the program, where bodies allow
that, and traced round by round where not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.graph import all_nodes

N = 60
U = np.random.default_rng(3).random(N)
BESIDE = np.random.default_rng(4).random(1000)
NAMES = [f"name{at}" for at in range(N)]
WEIGHTS = [0.5 + 0.1 * at for at in range(N)]
SEEN: list[Any] = []


class Counter:
    def __init__(self) -> None:
        self.n = 0


COUNTER = Counter()


def walk(x: Any, u: Any) -> Any:
    steps = 0
    for t in range(len(u)):
        if u[t] < 0.5:
            x = x * 0.5 + u[t]
        else:
            x = x + np.sin(x) / (t + 1)
            steps += 1
    return x, steps


def ising(x: Any, u: Any) -> Any:
    s = np.where(np.outer(x, x) > 0.3, 1.0, -1.0)
    n = len(s)
    for t in range(len(u)):
        i, j = t * 7 % n, t * 3 % n
        near = s[(i + 1) % n, j] + s[i - 1, j] + s[i, (j + 1) % n] + s[i, j - 1]
        if near * s[i, j] <= 0 or u[t] < math.exp(-2 * near * s[i, j]):
            s[i, j] *= -1
    return s


def leaves_early(x: Any, u: Any) -> Any:
    for t in range(1, len(u), 2):
        if t == 3:
            continue
        x = np.tanh(x + u[t])
        if np.sum(x) > 3.2:
            return x, t
        if x[0] > 0.99:
            break
    return x * 2, -1


def rows(x: Any, u: Any) -> Any:
    best, at = -np.inf, -1
    for number, row in enumerate(u):
        if row > best:
            best, at = row, number
    for row, other, number in zip(u, BESIDE, range(3, 2000, 2), strict=False):
        if row > other:
            x = x + row * number
    for row in u:
        if row > 0.5:
            x = x + row
    return best, at, x


def nested(x: Any, u: Any) -> Any:
    count = 0
    for i in range(20):
        for j in range(i + 1, 20):
            if abs(u[i] - u[j]) < 0.1:
                count += 1
    return x, count


def becomes_float(x: Any, u: Any) -> Any:
    total = 0
    for t in range(len(u)):
        total = total + u[t] if u[t] > 0.3 else total - 1
    return total, x


def in_a_buffer(x: Any, u: Any) -> Any:
    out = np.zeros(len(u))
    out[0] = x[0]
    for t in range(1, len(u)):
        if u[t] > 0.5:
            out[t] = out[t - 1] * 0.5 + u[t]
        else:
            out[t] = out[t - 1] - 0.1
    return out


def energy(x: Any) -> Any:
    """Of one place, as a function of the user's."""
    return half(x) * x if x > 0 else -abs(x)


half = lambda x: x / 2  # noqa: E731


def of_functions(x: Any, u: Any) -> Any:
    def proposed(x: Any, t: Any) -> Any:
        for k in range(2):
            x = x + 0.1 * u[t] * k
        return x

    at, taken = x[0], 0
    for t in range(len(u)):
        other = proposed(at, t)
        if math.log(u[t]) < energy(at) - energy(other):
            at = other
            taken += 1
    return at, taken, x


LOOPS: Mapping[str, Callable[..., Any]] = {
    f.__name__: f for f in (walk, ising, leaves_early, rows, nested, becomes_float, in_a_buffer,
                            of_functions)}


def asks_for_sizes(x: Any, u: Any) -> Any:
    for t in range(len(u)):
        if u[t] > 0.5:
            x = x + np.sum(np.ones(t))
    return x


def appends(x: Any, u: Any) -> Any:
    found = []
    for t in range(len(u)):
        if u[t] > 0.5:
            x = x + np.sin(u[t]) * np.cos(x)
        found.append(x)
    return found


def uses_texts(x: Any, u: Any) -> Any:
    for t in range(len(u)):
        if u[t] > 0.5:
            x = x + len(NAMES[t]) + (1 if NAMES[t] in ("name3", "name7") else 0)
    return x


def large_powers(x: Any, u: Any) -> Any:
    for t in range(len(u)):
        if u[t] > 0.5:
            x = x + 1 / (2**(t + 40)) + np.sin(x)
    return x


def numbers_of_lists(x: Any, u: Any) -> Any:
    x = x.astype(np.float32)
    for t in range(len(u)):
        if u[t] > 0.5:
            x = x + WEIGHTS[t] * np.float32(0.5)
    return x


def counts_calls(x: Any, u: Any) -> Any:
    def one(x: Any, t: Any) -> Any:
        SEEN.append(t)
        return x + 1

    for t in range(len(u)):
        if u[t] > 0.5:
            x = x * 0.5 + np.sin(x) * np.cos(x)
        x = one(x, t)
    return x


def remembers(x: Any) -> Any:
    SEEN.append(x)
    return x * 0.5


def calls_what_remembers(x: Any, u: Any) -> Any:
    def around(x: Any) -> Any:
        return remembers(x) + np.sin(x) * np.cos(x)

    for t in range(len(u)):
        if u[t] > 0.5:
            x = x * 0.5 - np.tanh(x)
        x = around(x)
    SEEN.clear()
    return x


def raised(counts: Any, x: Any) -> Any:
    counts[0] += 1
    counts += [0]
    return x * 0.5


def calls_what_writes(x: Any, u: Any) -> Any:
    counts = [0]
    for t in range(len(u)):
        if u[t] > 0.5:
            x = x * 0.5 - np.tanh(x) * np.cos(x)
        x = raised(counts, x)
    return x, counts[0], len(counts)


def changes_objects(x: Any, u: Any) -> Any:
    counter = COUNTER
    for t in range(len(u)):
        if u[t] > 0.5:
            x = x * 0.5 + np.sin(x) * np.cos(x)
        counter.n += 1
    return x


def grows(x: Any, u: Any) -> Any:
    y = x[:1]
    for t in range(len(u)):
        if u[t] > 0.5:
            x = x * 0.5 + np.sin(x) * np.cos(x)
        y = np.concatenate([y, x[:1]])
    return y


OTHERS: Mapping[str, Callable[..., Any]] = {
    f.__name__: f for f in (asks_for_sizes, appends, uses_texts, large_powers, numbers_of_lists,
                            counts_calls, calls_what_remembers, calls_what_writes,
                            changes_objects,
                            grows)}
X = np.array([0.3, -0.2, 0.9, 0.1])


def size(function: Callable[..., Any], rounds: int) -> int:
    u = np.random.default_rng(rounds).random(rounds)
    return sum(1 for _ in all_nodes(weft.compile(function).trace(X, u).graph))


def agree(found: Any, wanted: Any) -> None:
    found, wanted = weft.tree.leaves(found), weft.tree.leaves(wanted)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert isinstance(a, np.generic) == isinstance(b, np.generic) or np.ndim(a) == 0


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_the_program(name: str) -> None:
    function = LOOPS[name]
    agree(weft.compile(function)(X, U), function(X.copy(), U))
    if name != "nested":
        assert size(function, 100) == size(function, 400)


@pytest.mark.parametrize("name", OTHERS)
def test_bodies_that_are_traced_round_by_round(name: str) -> None:
    SEEN.clear()
    COUNTER.n = 0
    function = OTHERS[name]
    compiled = weft.compile(function)
    agree(compiled(X, U), function(X, U))


def test_what_a_round_does_besides_is_done_in_each() -> None:
    for function, count in ((counts_calls, lambda: len(SEEN)),
                            (changes_objects, lambda: COUNTER.n)):
        SEEN.clear()
        COUNTER.n = 0
        weft.compile(function)(X, U)
        assert count() >= N


def test_rounds_that_change_a_shape_do_not_unroll_the_loops_inside() -> None:
    def function(x: Any) -> Any:
        total = 0
        for _ in range(5):
            path = np.zeros(len(x), dtype=int)
            for i in range(len(x) - 2, -1, -1):
                low, high = max(path[i + 1] - 1, 0), min(path[i + 1] + 2, x.shape[1])
                path[i] = low + np.argmin(x[i, low:high])
            total += path.sum()
            x = x[:, 1:]
        return total

    x = np.random.default_rng(0).random((30, 40))
    compiled = weft.compile(function)
    assert compiled(x) == function(x)
    assert sum(1 for _ in all_nodes(compiled.trace(x).graph)) < 1000


@pytest.mark.parametrize("name", ["walk", "in_a_buffer", "becomes_float"])
def test_gradients(name: str) -> None:
    def loss(x: Any, u: Any) -> Any:
        return np.sum(weft.tree.leaves(LOOPS[name](x, u))[0] * 1.0)

    found = weft.compile(weft.grad(loss))(X, U)
    step = 1e-6
    wanted = [(loss(X + step * unit, U) - loss(X - step * unit, U)) / (2 * step)
              for unit in np.eye(len(X))]
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


def test_batches() -> None:
    xs = np.stack([X, -X, 2 * X])
    found = weft.compile(weft.vmap(lambda x: walk(x, U)[0]))(xs)
    np.testing.assert_allclose(found, [walk(x, U)[0] for x in xs], rtol=1e-12)


def test_an_error_of_the_body_is_that_of_its_line() -> None:
    def function(x: Any, u: Any) -> Any:
        for t in range(len(u)):
            if u[t] > 0.5:
                x = x + np.sin(x) * np.cos(x) - np.tanh(x)
            x = x @ np.ones((3, 3))
        return x

    with pytest.raises(weft.Error, match="W104") as caught:
        weft.compile(function)(X, U)
    assert "np.ones((3, 3))" in str(caught.value)


def test_slices_as_long_as_the_number_of_a_round_says() -> None:
    """Of a loop in a loop, nobody knows how many rounds there are: such slices have no size there,
    and the loops are traced round by round."""
    def two_opt(points: Any) -> Any:
        n = len(points)
        tour = np.arange(n)
        far = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
        for _ in range(2):
            for i in range(1, n - 2):
                for j in range(i + 1, n - 1):
                    a, b, c, d = tour[i - 1], tour[i], tour[j], tour[j + 1]
                    if far[a, b] + far[c, d] > far[a, c] + far[b, d] + 1e-12:
                        tour[i:j + 1] = tour[i:j + 1][::-1]
        return tour, far[tour, np.roll(tour, -1)].sum()

    def turned(x: Any, chosen: Any) -> Any:
        x = x.copy()
        for j in range(40):
            if chosen[j] > 0.5:
                x[: j + 1] = x[: j + 1][::-1]
        return x

    rng = np.random.default_rng(3)
    points = rng.random((12, 2))
    for one, other in zip(weft.compile(two_opt)(points), two_opt(points), strict=True):
        np.testing.assert_allclose(one, other)
    x, chosen = rng.random(50), rng.random(40)
    np.testing.assert_array_equal(weft.compile(turned)(x, chosen), turned(x, chosen))


def test_what_a_first_round_raises_waits_for_a_round() -> None:
    def run(x: Any) -> Any:
        table, s = {"a": 1.0}, 0.0
        for _ in range(len(x)):
            s = s + table["b"]
        return s

    compiled = weft.compile(run, dynamic={"x": {0: "n"}})
    assert compiled(np.zeros(0)) == 0
    with pytest.raises(KeyError):
        compiled(np.zeros(2))
