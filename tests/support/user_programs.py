"""Programs as users of JAX, autograd and TensorFlow write them: derivatives in loops, loops in
derivatives, closures, classes, dataclasses; each with arguments, and what it has to give.

What it has to give is a function of the same arguments in NumPy, or None: then the program itself
is run as it stands, with Weft's functions at once.
"""

# ruff: noqa: B007, RUF007

from __future__ import annotations

import dataclasses
import functools
import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

import weft

PROGRAMS: list[
    tuple[Callable[..., Any], tuple[Any, ...], Callable[..., Any] | None, float]] = []


def user(
    *args: Any, want: Callable[..., Any] | None = None, rtol: float = 1e-9
) -> Callable[..., Any]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append((function, args, want, rtol))
        return function

    return add


def slopes(f: Callable[..., Any], x: Any, h: float = 5e-3) -> Any:
    """The Jacobian of f at x by differences of sixth order, with f's own axes last."""
    rows = []
    for at in np.ndindex(np.shape(x)):
        parts = []
        for by, factor in ((1, 45), (2, -9), (3, 1)):
            e = np.zeros_like(x)
            e[at] = by * h
            parts.append(factor * (f(x + e) - f(x - e)))
        rows.append(sum(parts) / (60 * h))
    return np.reshape(rows, (*np.shape(x), *np.shape(rows[0])))


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


X = np.array([0.5, -0.3, 0.8])


def _hessian_by_hand(x):
    h = np.zeros((3, 3))
    for i in range(2):
        h[i, i] += 1200 * x[i] ** 2 - 400 * x[i + 1] + 2
        h[i, i + 1] = h[i + 1, i] = -400 * x[i]
        h[i + 1, i + 1] += 200
    return h


@user(X, want=_hessian_by_hand)
def hessian_forward_over_reverse(x):
    return weft.vmap(lambda v: weft.jvp(weft.grad(rosenbrock), (x,), (v,))[1])(np.eye(len(x)))


@user(X, want=_hessian_by_hand)
def hessian_reverse_twice(x):
    return np.stack([weft.grad(lambda x, i=i: weft.grad(rosenbrock)(x)[i])(x) for i in range(3)])


@user(np.array([1.5, 0.5]), want=lambda x: np.array([1.0, 1.0]))
def newton_with_jacobian(x):
    def residual(x):
        return np.array([x[0] ** 2 + x[1] ** 2 - 2.0, x[0] - x[1]])

    for _ in range(20):
        r, pull = weft.vjp(residual, x)
        jacobian = weft.vmap(lambda e, pull=pull: pull(e)[0])(np.eye(2))
        step = np.linalg.solve(jacobian, r)
        x = x - step
        if np.max(np.abs(step)) < 1e-12:
            break
    return x


def _sqrt_fixed(a):
    return weft.while_loop(lambda s: np.abs(s * s - a) > 1e-13 * a, lambda s: 0.5 * (s + a / s), a)


fixed_point = weft.custom_vjp(_sqrt_fixed)
fixed_point.defvjp(lambda a: (lambda y: (y, y))(_sqrt_fixed(a)), lambda y, ct: (ct / (2 * y),))


@user(np.float64(3.0), want=lambda a: (3 ** 0.5, 0.5 / 3 ** 0.5))
def implicit_differentiation(a):
    return weft.value_and_grad(lambda a: fixed_point(a))(a)


@user(np.array([1.0, 4.0, 9.0]), want=lambda a: 0.5 / np.sqrt(a))
def implicit_differentiation_of_a_batch(a):
    return weft.vmap(weft.grad(fixed_point))(a)


@dataclasses.dataclass
class State:
    h: Any
    c: Any





@user(np.linspace(-1, 1, 12).reshape(4, 3), np.linspace(0.1, 0.9, 9).reshape(3, 3))
def rnn_with_dataclass_state(xs, w):
    def cell(state, x):
        h = np.tanh(x @ w + state.h @ w.T)
        return State(h, state.c + h.sum()), h

    def loss(w_):
        last, hs = weft.scan(cell, State(np.zeros(3), 0.0), xs)
        return (hs ** 2).sum() + last.c * w_.sum()

    return weft.value_and_grad(loss)(w)


@user(np.log(np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.2, 0.2, 0.6], [0.7, 0.2, 0.1]])), 2)
def beam_search(logp, width):
    scores = np.full(2, -np.inf)
    scores[0] = 0.0
    paths = np.zeros((2, 4), dtype=int)
    for t in range(4):
        total = (scores[:, None] + logp[t][None, :]).ravel()
        order = np.argsort(-total, kind="stable")[:2]
        paths = paths[order // 3]
        paths[:, t] = order % 3
        scores = total[order]
    return paths, scores


@user(0.3, 7)
def metropolis(x, seed):
    rng = weft.random.default_rng(3)

    def step(state, _):
        x, accepted = state
        new = x + 0.5 * rng.normal()
        take = np.log(rng.random()) < -(new ** 2) / 2 + x ** 2 / 2
        return (np.where(take, new, x), accepted + take), x

    (x, accepted), chain = weft.scan(step, (x * 1.0, 0), None, length=50)
    return chain.mean(), accepted


@user(1.0, 0.0, want=lambda y, t: True)
def adaptive_ode(y, t):
    """Heun's method with a step that follows its error."""
    h = 0.1
    n = 0
    while t < 1.0 and n < 5000:
        h = min(h, 1.0 - t)
        k1 = -y
        k2 = -(y + h * k1)
        error = abs(h * (k2 - k1) / 2)
        if error < 1e-6 or h < 1e-7:
            y = y + h * (k1 + k2) / 2
            t = t + h
            n += 1
        h = h * min(2.0, max(0.3, 0.9 * math.sqrt(1e-6 / (error + 1e-300))))
    return abs(y - np.exp(-1.0)) < 1e-3


@user(np.array([0.4, -0.2]), np.array([[0.1, 0.3], [0.2, -0.4]]))
def policy_gradient_rollout(theta, w):
    def rollout(theta):
        def step(carry, t):
            s, alive, total = carry
            a = np.tanh(s @ theta)
            s = w @ s + a * np.array([0.5, 1.0])
            reward = -np.sum(s ** 2)
            total = total + np.where(alive, reward, 0.0)
            alive = alive & (np.abs(s).max() < 3)
            return (s, alive, total), reward

        (_, _, total), rewards = weft.scan(step, (np.array([1.0, -1.0]), True, 0.0), np.arange(8))
        return total, rewards

    return weft.value_and_grad(rollout, has_aux=True)(theta)


@user(np.array([3.0, -2.0]))
def early_stopping(x):
    best, patience = np.inf, 0
    for epoch in range(200):
        loss, g = weft.value_and_grad(lambda x: np.sum(x ** 4) + np.sum(x ** 2))(x)
        x = x - 0.01 * g
        if loss < best - 1e-4:
            best, patience = loss, 0
        else:
            patience += 1
        if patience >= 3:
            break
    return x, best, epoch


class Layer:
    def __init__(self, w, b):
        self.w, self.b = w, b

    def __call__(self, x):
        return np.tanh(x @ self.w + self.b)


class Network:
    def __init__(self, sizes, rng):
        self.layers = [Layer(rng.normal(size=(a, b)), np.zeros(b))
                       for a, b in zip(sizes, sizes[1:], strict=False)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if np.abs(x).max() > 0.999:
                x = x * 0.5
        return x


_net = Network([3, 4, 2], np.random.default_rng(0))


@user(X)
def network_of_classes(x):
    return _net.forward(x), weft.grad(lambda x: np.sum(_net.forward(x)))(x)


@user(X, 3)
def power_iteration_with_closure(x, n):
    a = np.outer(x, x) + np.diag([1.0, 2.0, 3.0])

    def normalised(v):
        return v / np.sqrt(np.sum(v * v))

    v = np.ones(3)
    for _ in range(n):
        v = normalised(a @ v)
    return v @ a @ v


@user(np.array([2.0, 5.0, 1.0, 4.0]))
def bisection_by_vmap(targets):
    def solve(t):
        lo, hi = 0.0, 10.0
        while hi - lo > 1e-10:
            mid = (lo + hi) / 2
            if mid ** 3 > t:
                hi = mid
            else:
                lo = mid
        return (lo + hi) / 2

    return weft.vmap(solve)(targets)


@user(np.array([0.2, 0.5, 0.3]), np.array([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]]),
      np.array([0, 2, 1, 1, 0]))
def hidden_markov_likelihood(start, transition, seen):
    emission = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])

    def likelihood(start):
        def step(alpha, y):
            alpha = (alpha @ transition) * emission[:, y]
            return alpha / alpha.sum(), np.log(alpha.sum())

        _, parts = weft.scan(step, start, seen)
        return parts.sum()

    return weft.value_and_grad(likelihood)(start)


@user(np.array([0.2, 0.5, 0.3]), np.array([0, 2, 1, 1, 0]))
def viterbi(start, seen):
    n = len(seen)
    score = np.log(start)
    back = np.zeros((n, 3), dtype=int)
    transition = np.log(np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]))
    for t in range(n):
        table = score[:, None] + transition
        back[t] = np.argmax(table, axis=0)
        score = np.max(table, axis=0) + np.where(np.arange(3) == seen[t], 0.0, -2.0)
    path = np.zeros(n, dtype=int)
    path[n - 1] = np.argmax(score)
    for t in range(n - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path


Point = namedtuple("Point", "x v")


@user(Point(np.array([1.0, 0.0]), np.array([0.0, 1.0])), 0.01)
def leapfrog_with_namedtuples(p, dt):
    def force(x):
        return -weft.grad(lambda x: 0.5 * np.sum(x * x) + 0.25 * np.sum(x ** 4))(x)

    def step(i, p):
        v = p.v + 0.5 * dt * force(p.x)
        x = p.x + dt * v
        return Point(x, v + 0.5 * dt * force(x))

    return weft.fori_loop(0, 50, step, p)


@user(np.arange(6.0), 3.5)
def binary_search(x, v):
    lo, hi = 0, len(x)
    while lo < hi:
        mid = (lo + hi) // 2
        if x[mid] < v:
            lo = mid + 1
        else:
            hi = mid
    return lo


@user(np.array([0.1, 0.7, 0.4]))
def conjugate_gradient(b):
    a = np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]])
    x, r = np.zeros(3), b * 1.0
    p, rs = r, r @ r
    for _ in range(10):
        if rs < 1e-20:
            break
        ap = a @ p
        alpha = rs / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        new = r @ r
        p, rs = r + new / rs * p, new
    return x


@user(np.array([0.3, 0.9]))
def line_search(x):
    def f(x):
        return np.sum((x - 2) ** 4) + np.sum(x ** 2)

    for _ in range(5):
        g = weft.grad(f)(x)
        step = 1.0
        while f(x - step * g) > f(x) - 1e-4 * step * np.sum(g * g):
            step = step * 0.5
        x = x - step * g
    return x


@user(np.array([[1.0, 2.0], [3.0, 4.0], [0.5, 0.5], [3.2, 3.9]]))
def kmeans(points):
    centres = points[:2] * 1.0
    while True:
        nearest = np.argmin(np.sum((points[:, None] - centres[None]) ** 2, -1), 1)
        one = (nearest[:, None] == np.arange(2)).astype(float)
        new = one.T @ points / np.maximum(one.sum(0), 1)[:, None]
        if np.allclose(new, centres):
            break
        centres = new
    return centres, nearest


@user(48, 18)
def euclid(a, b):
    while b:
        a, b = b, a % b
    return a


@user(np.array([5, 3, 8, 1, 9, 2]))
def selection_sort(x):
    x = x.copy()
    for i in range(len(x)):
        least = i
        for j in range(i + 1, len(x)):
            if x[j] < x[least]:
                least = j
        x[i], x[least] = x[least], x[i]
    return x


@user(0.3 + 0.4j, want=lambda c: sum(1 for _ in _escapes(c)))
def mandelbrot(c):
    z, n = 0j, 0
    while abs(z) <= 2 and n < 50:
        z = z * z + c
        n += 1
    return n


def _escapes(c):
    z = 0j
    while abs(z) <= 2:
        z = z * z + c
        yield z
        if len(range(50)) == 0:
            return
        _escapes.n = getattr(_escapes, "n", 0) + 1
        if _escapes.n >= 50:
            _escapes.n = 0
            return


@user({"w": np.array([0.5, -0.5]), "b": 0.1}, np.array([[1.0, 2.0], [2.0, 1.0], [0.0, 1.0]]),
      np.array([1.0, 0.0, 1.0]))
def logistic_regression_by_newton(params, x, y):
    def loss(flat):
        z = x @ flat[:2] + flat[2]
        return np.mean(np.logaddexp(0, z) - y * z) + 0.05 * np.sum(flat ** 2)

    flat = np.concatenate([params["w"], np.array([params["b"]])])

    def newton(i, flat):
        g = weft.grad(loss)(flat)
        h = weft.vmap(lambda v: weft.jvp(weft.grad(loss), (flat,), (v,))[1])(np.eye(3))
        return flat - np.linalg.solve(h, g)

    flat = weft.fori_loop(0, 6, newton, flat)
    return {"w": flat[:2], "b": flat[2]}, weft.grad(loss)(flat)


@user(np.array([0.5, 1.5, -0.7]))
def gradient_penalty(x):
    def critic(x):
        return np.sum(np.tanh(x * np.array([1.0, 2.0, 3.0])))

    def penalty(x):
        g = weft.grad(critic)(x)
        return (np.sqrt(np.sum(g * g)) - 1) ** 2

    return weft.grad(penalty)(x)


@user(np.array([0.5, 1.5]), np.array([1.0, -1.0]))
def unrolled_inner_optimisation(lr, x):
    """The gradient of what a few steps of descent reach, by their rates."""
    def inner(lr):
        y = x
        for _ in range(4):
            y = y - lr * weft.grad(lambda y: np.sum((y - 3) ** 2 + np.sin(y)))(y)
        return np.sum(y ** 2)

    return weft.grad(inner)(lr)


@user(np.arange(12.0).reshape(3, 4) / 10, np.array([4, 2, 3]))
def sequences_of_different_lengths(xs, lengths):
    def one(x, n):
        total = 0.0
        for t in range(n):
            total = 0.5 * total + x[t]
        return total

    return weft.vmap(one)(xs, lengths)


@user(np.array([1.0, 2.0, 3.0]))
def partial_and_reduce(x):
    scale = functools.partial(np.multiply, 2.0)
    f = functools.reduce(lambda f, g: lambda x: g(f(x)), [np.sin, scale, np.cos])
    return weft.vmap(weft.grad(f))(x)


@user(np.float64(0.7))
def derivatives_of_any_order(x):
    f, found = np.sin, []
    for _ in range(4):
        f = weft.grad(f)
        found.append(f(x))
    return found


@user(np.array([[0.5, 0.2], [0.1, 0.4]]))
def gradient_through_eigenvalues(a):
    def loss(a):
        w = np.linalg.eigvalsh(a + a.T)
        return np.sum(np.where(w > 0.5, w ** 2, 0.0))

    return weft.grad(loss)(a)


@user(np.zeros((4, 4)), 1)
def game_of_life(board, n):
    board = board.copy()
    board[1, 0:3] = 1.0
    for _ in range(n):
        around = sum(np.roll(np.roll(board, i, 0), j, 1)
                     for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        board = np.where((around == 3) | ((board == 1) & (around == 2)), 1.0, 0.0)
    return board


@user(np.array([1.0, 2.0, 3.0, 4.0]), 2)
def moving_window_with_while(x, width):
    i, best = 0, -np.inf
    while i + 2 <= len(x):
        s = x[i] + x[i + 1]
        if s > best:
            best = s
        i += 1
    return best


@user(np.array([0.1, 0.2, 0.3, 0.4]), 0.65)
def sampling_by_cumulated_sums(p, u):
    total = 0.0
    for i in range(len(p)):
        total += p[i]
        if u < total:
            return i
    return len(p) - 1


@user(np.array([1.0, 0.0, 2.0]), np.array([0.5, 0.5, 0.5]))
def checkpointed_scan(x, w):
    def block(h, _):
        return np.tanh(h * w + np.sin(h)), None

    return weft.grad(lambda x: weft.scan(weft.remat(block), x, None, length=6)[0].sum())(x)


@user(np.array([0.2, 0.4]), np.array([1.0, 0.5]))
def straight_through_estimator(x, w):
    @weft.custom_vjp
    def hard(x):
        return np.where(x > 0.3, 1.0, 0.0)

    hard.defvjp(lambda x: (np.where(x > 0.3, 1.0, 0.0), None), lambda _, ct: (ct,))
    return weft.grad(lambda x: np.sum(hard(x) * w))(x)


@user(5)
def fibonacci_by_recursion(n):
    def fib(a, b, n):
        return weft.fori_loop(0, n, lambda i, s: (s[1], s[0] + s[1]), (a, b))[0]

    return fib(0, 1, n), fib(1.0, 1.0, n)
