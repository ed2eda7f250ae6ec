"""Programs of scientific computing as users of JAX and autograd write them: solvers, filters,
samplers and simulations, with gradients through them.

Each is compared with NumPy alone; gradients with differences of the NumPy program.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

import weft

from .user_programs import slopes, user

RNG = np.random.default_rng(11)


# -- a Kalman filter, and the gradient of its likelihood by the noise ---------------------------

TRACK = np.cumsum(RNG.normal(size=(12, 2)), axis=0)
MOVES = np.array([[1.0, 0.2], [-0.1, 0.9]])


def _kalman(noise, seen):
    q, r = np.exp(noise)
    m, p, total = np.zeros(2), np.eye(2), 0.0
    for y in seen:
        m, p = MOVES @ m, MOVES @ p @ MOVES.T + q * np.eye(2)
        s = p + r * np.eye(2)
        gain, off = p @ np.linalg.inv(s), y - m
        total -= 0.5 * (off @ np.linalg.solve(s, off) + np.log(np.linalg.det(s)))
        m, p = m + gain @ off, p - gain @ p
    return total


@user(np.array([-0.5, 0.3]), TRACK, rtol=1e-7,
      want=lambda noise, seen: (_kalman(noise, seen), slopes(lambda n: _kalman(n, seen), noise)))
def kalman_likelihood(noise, seen):
    def likelihood(noise):
        q, r = np.exp(noise)

        def step(state, y):
            m, p = state
            m = MOVES @ m
            p = MOVES @ p @ MOVES.T + q * np.eye(2)
            s = p + r * np.eye(2)
            gain = np.linalg.solve(s, p).T
            off = y - m
            _, logdet = np.linalg.slogdet(s)
            part = -0.5 * (off @ np.linalg.solve(s, off) + logdet)
            return (m + gain @ off, p - gain @ p), part

        _, parts = weft.scan(step, (np.zeros(2), np.eye(2)), seen)
        return np.sum(parts)

    return weft.value_and_grad(likelihood)(noise)


# -- Hamiltonian Monte Carlo -------------------------------------------------------------------

def _energy(q):
    return 0.5 * np.sum(q ** 2) + 0.25 * (q[0] * q[1] - 1) ** 2


def _energy_slope(q):
    return q + 0.5 * (q[0] * q[1] - 1) * q[::-1]


def _hmc(q, momenta, levels):
    chain, taken = [], 0
    for p, u in zip(momenta, levels, strict=True):
        new, v = q.copy(), p - 0.05 * _energy_slope(q)
        for at in range(10):
            new = new + 0.1 * v
            v = v - (0.1 if at < 9 else 0.05) * _energy_slope(new)
        if np.log(u) < _energy(q) + 0.5 * p @ p - _energy(new) - 0.5 * v @ v:
            q, taken = new, taken + 1
        chain.append(q)
    return np.array(chain), taken


@user(np.array([0.3, -0.2]), RNG.normal(size=(6, 2)), RNG.random(6), want=_hmc)
def hamiltonian_monte_carlo(q, momenta, levels):
    slope = weft.grad(_energy)

    def leapfrog(_, state):
        q, p = state
        p = p - 0.05 * slope(q)
        q = q + 0.1 * p
        return q, p - 0.05 * slope(q)

    def draw(carry, given):
        q, taken = carry
        p, u = given
        new, v = weft.fori_loop(0, 10, leapfrog, (q, p))
        gain = _energy(q) + 0.5 * p @ p - _energy(new) - 0.5 * v @ v
        accepted = np.log(u) < gain
        q = weft.cond(accepted, lambda: new, lambda: q)
        return (q, taken + accepted), q

    (_, taken), chain = weft.scan(draw, (q, 0), (momenta, levels))
    return chain, taken


# -- transport: Sinkhorn with a bound of rounds, differentiated through them ---------------------

def _sinkhorn(cost, rounds=60):
    k = np.exp(-cost / 0.5)
    u, v = np.ones(3) / 3, np.ones(4) / 4
    for _ in range(rounds):
        u = (1 / 3) / (k @ v)
        v = (1 / 4) / (k.T @ u)
        if np.abs(u * (k @ v) - 1 / 3).max() < 1e-14:
            break
    return np.sum(u[:, None] * k * v * cost)


COST = RNG.random((3, 4))


@user(COST, want=lambda c: (_sinkhorn(c), slopes(_sinkhorn, c)), rtol=1e-7)
def sinkhorn(cost):
    def transport(cost):
        k = np.exp(-cost / 0.5)

        def going(state):
            u, v = state
            return np.max(np.abs(u * (k @ v) - 1 / 3)) >= 1e-14

        def turn(state):
            _, v = state
            u = (1 / 3) / (k @ v)
            return u, (1 / 4) / (k.T @ u)

        u, v = weft.while_loop(going, turn, (np.ones(3) / 2, np.ones(4) / 4), max_iterations=60)
        return np.sum(u[:, None] * k * v[None, :] * cost)

    return weft.value_and_grad(transport)(cost)


# -- a neural ODE whose step follows its error ---------------------------------------------------

def _field(w, y):
    return np.tanh(w @ y) - 0.3 * y


def _adaptive(w, y, field=_field):
    t, h, n = 0.0, 0.2, 0
    while t < 1.0 - 1e-12 and n < 80:
        h = np.minimum(h, 1.0 - t)
        a = field(w, y)
        b = field(w, y + h / 2 * a)
        c = field(w, y + 3 * h / 4 * b)
        new = y + h / 9 * (2 * a + 3 * b + 4 * c)
        d = field(w, new)
        off = np.max(np.abs(h * (-5 / 72 * a + b / 12 + c / 9 - d / 8)))
        if off < 1e-5:
            y, t = new, t + h
        h, n = h * min(2.0, max(0.3, 0.9 * (1e-5 / off) ** (1 / 3))), n + 1
    return y, n


FIELD = RNG.normal(size=(3, 3))


@user(FIELD, np.array([0.5, -1.0, 0.2]), want=_adaptive)
def neural_ode_with_adaptive_steps(w, y):
    """Bogacki and Shampine's pair of orders 3 and 2."""
    def step(state):
        y, t, h, n = state
        h = np.minimum(h, 1.0 - t)
        a = _field(w, y)
        b = _field(w, y + h / 2 * a)
        c = _field(w, y + 3 * h / 4 * b)
        new = y + h / 9 * (2 * a + 3 * b + 4 * c)
        d = _field(w, new)
        off = np.max(np.abs(h * (-5 / 72 * a + b / 12 + c / 9 - d / 8)))
        good = off < 1e-5
        y, t = np.where(good, new, y), np.where(good, t + h, t)
        return y, t, h * np.clip(0.9 * (1e-5 / off) ** (1 / 3), 0.3, 2.0), n + 1

    y, _, _, n = weft.while_loop(
        lambda s: (s[1] < 1.0 - 1e-12) & (s[3] < 80), step, (y, 0.0, 0.2, 0))
    return y, n


def _midpoint(w, y):
    for _ in range(20):
        y = y + 0.05 * _field(w, y + 0.025 * _field(w, y))
    return np.sum(y ** 2)


@user(FIELD, np.array([0.5, -1.0, 0.2]), rtol=1e-7, want=lambda w, y: (
    slopes(lambda w: _midpoint(w, y), w), slopes(lambda y: _midpoint(w, y), y)))
def adjoint_of_an_ode(w, y):
    """The adjoint method: the state is integrated backwards beside its cotangent."""
    def onwards(w, y):
        return weft.fori_loop(
            0, 20, lambda i, y: y + 0.05 * _field(w, y + 0.025 * _field(w, y)), y)

    def back(saved, ct):
        w, states = saved

        def step(carry, y):
            ct, total = carry
            _, pull = weft.vjp(lambda w, y: y + 0.05 * _field(w, y + 0.025 * _field(w, y)), w, y)
            part, ct = pull(ct)
            return (ct, total + part), None

        (ct, total), _ = weft.scan(step, (ct, np.zeros_like(w)), states, reverse=True)
        return total, ct

    def forward(w, y):
        last, states = weft.scan(
            lambda y, _: (y + 0.05 * _field(w, y + 0.025 * _field(w, y)), y), y, None, length=20)
        return last, (w, states)

    solve = weft.custom_vjp(onwards)
    solve.defvjp(forward, back)
    return weft.grad(lambda w, y: np.sum(solve(w, y) ** 2), argnums=(0, 1))(w, y)


# -- what an inner problem's answer depends on ---------------------------------------------------

DATA, AIM = RNG.normal(size=(8, 3)), RNG.normal(size=8)


def _ridge_loss(decay):
    w = np.linalg.solve(DATA.T @ DATA + np.diag(np.exp(decay)), DATA.T @ AIM)
    return np.mean((DATA[:4] @ w - 0.5) ** 2)


@user(np.array([0.1, -0.3, 0.5]), want=lambda d: slopes(_ridge_loss, d), rtol=1e-7)
def hyperparameters_by_implicit_differentiation(decay):
    def inner(w, decay):
        return 0.5 * np.sum((DATA @ w - AIM) ** 2) + 0.5 * np.sum(np.exp(decay) * w ** 2)

    slope = weft.grad(inner)

    def descend(decay):
        return weft.fori_loop(0, 800, lambda i, w: w - 0.03 * slope(w, decay), np.zeros(3))

    def back(saved, ct):
        w, decay = saved
        hessian = weft.vmap(lambda v: weft.jvp(lambda w: slope(w, decay), (w,), (v,))[1])(np.eye(3))
        _, pull = weft.vjp(lambda decay: slope(w, decay), decay)
        return pull(-np.linalg.solve(hessian, ct))

    solution = weft.custom_vjp(descend)
    solution.defvjp(lambda d: (lambda w: (w, (w, d)))(descend(d)), back)
    return weft.grad(lambda d: np.mean((DATA[:4] @ solution(d) - 0.5) ** 2))(decay)


def _equilibrium(w, x):
    z = np.zeros(3)
    for _ in range(300):
        z = np.tanh(w @ z + x)
    return np.sum(z * np.arange(1.0, 4))


@user(0.3 * FIELD, np.array([0.4, -0.1, 0.2]), rtol=1e-7, want=lambda w, x: (
    slopes(lambda w: _equilibrium(w, x), w), slopes(lambda x: _equilibrium(w, x), x)))
def deep_equilibrium(w, x):
    """A layer that is a fixed point: its backward pass is a fixed point as well."""
    def settle(f, z):
        return weft.while_loop(
            lambda s: (np.max(np.abs(s[0] - s[1])) > 1e-14) & (s[2] < 300),
            lambda s: (f(s[0]), s[0], s[2] + 1), (f(z), z, 0))[0]

    @weft.custom_vjp
    def layer(w, x):
        return settle(lambda z: np.tanh(w @ z + x), np.zeros(3))

    def forward(w, x):
        z = layer(w, x)
        return z, (w, x, z)

    def back(saved, ct):
        w, x, z = saved
        _, inner = weft.vjp(lambda z: np.tanh(w @ z + x), z)
        u = settle(lambda u: inner(u)[0] + ct, ct)
        _, outer = weft.vjp(lambda w, x: np.tanh(w @ z + x), w, x)
        return outer(u)

    layer.defvjp(forward, back)
    return weft.grad(lambda w, x: np.sum(layer(w, x) * np.arange(1.0, 4)), argnums=(0, 1))(w, x)


# -- optimisation --------------------------------------------------------------------------------

@user(np.array([-1.2, 1.0, 0.8]), want=lambda x: np.ones(3), rtol=1e-6)
def limited_memory_bfgs(x):
    """Two loops over the last differences, which are kept in rings."""
    keep = 4

    def f(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    slope = weft.grad(f)

    def direction(g, ss, ys, n):
        q, alphas = g, np.zeros(keep)
        for j in range(keep):
            at = (n - 1 - j) % keep
            s, y = ss[at], ys[at]
            live = n - 1 - j >= 0
            alpha = np.where(live, s @ q / np.where(live, s @ y, 1.0), 0.0)
            alphas[j] = alpha
            q = q - alpha * y
        last = (n - 1) % keep
        yy = ys[last] @ ys[last]
        q = np.where(n > 0, q * (ss[last] @ ys[last]) / np.where(yy > 0, yy, 1.0), q)
        for j in range(keep - 1, -1, -1):
            at = (n - 1 - j) % keep
            s, y = ss[at], ys[at]
            live = n - 1 - j >= 0
            beta = y @ q / np.where(live, s @ y, 1.0)
            q = q + np.where(live, alphas[j] - beta, 0.0) * s
        return -q

    def step(state):
        x, g, ss, ys, n = state
        d = direction(g, ss, ys, n)
        t = weft.while_loop(lambda t: (f(x + t * d) > f(x) + 1e-4 * t * (g @ d)) & (t > 1e-10),
                            lambda t: t * 0.5, 1.0)
        new = x + t * d
        h = slope(new)
        at = n % keep
        return new, h, ss.at[at].set(new - x), ys.at[at].set(h - g), n + 1

    start = (x, slope(x), np.zeros((keep, 3)), np.zeros((keep, 3)), 0)
    return weft.while_loop(
        lambda s: (np.max(np.abs(s[1])) > 1e-9) & (s[4] < 200), step, start)[0]


LAPLACE = 2.1 * np.eye(6) - np.eye(6, k=1) - np.eye(6, k=-1)


def _stiffness_loss(k):
    return np.sum(np.linalg.solve(LAPLACE + np.diag(k), np.arange(6.0)) ** 2)


@user(np.linspace(0.1, 0.6, 6), rtol=1e-7,
      want=lambda k: (_stiffness_loss(k), slopes(_stiffness_loss, k)))
def conjugate_gradients_without_a_matrix(k):
    """The solution's gradient is one more solution, as jax.lax.custom_linear_solve has it."""
    def product_with(k, v):
        return LAPLACE @ v + k * v

    def descend(k, b):
        def step(state):
            x, r, p, rs, n = state
            ap = product_with(k, p)
            alpha = rs / np.dot(p, ap)
            x, r = x + alpha * p, r - alpha * ap
            new = np.dot(r, r)
            return x, r, r + new / rs * p, new, n + 1

        return weft.while_loop(lambda s: (s[3] > 1e-24) & (s[4] < 50), step,
                               (np.zeros_like(b), b, b, np.dot(b, b), 0))[0]

    def back(saved, ct):
        k, x = saved
        u = descend(k, ct)
        return -u * x, u

    solve = weft.custom_vjp(descend)
    solve.defvjp(lambda k, b: (lambda x: (x, (k, x)))(descend(k, b)), back)
    return weft.value_and_grad(lambda k: np.sum(solve(k, np.arange(6.0)) ** 2))(k)


def _lasso(x, y):
    w = z = u = np.zeros(3)
    for _ in range(40):
        w = np.linalg.solve(x.T @ x + np.eye(3), x.T @ y + z - u)
        z = np.sign(w + u) * np.maximum(np.abs(w + u) - 1.5, 0)
        u = u + w - z
    return z


@user(DATA, AIM, want=_lasso)
def lasso_by_admm(x, y):
    a = np.linalg.cholesky(x.T @ x + np.eye(3))

    def step(_, state):
        z, u = state
        w = np.linalg.solve(a.T, np.linalg.solve(a, x.T @ y + z - u))
        z = np.sign(w + u) * np.maximum(np.abs(w + u) - 1.5, 0)
        return z, u + w - z

    return weft.fori_loop(0, 40, step, (np.zeros(3), np.zeros(3)))[0]


def _fitted(p, t, y):
    damping = 1.0
    off = p[0] * np.exp(-p[1] * t) + p[2] - y
    for _ in range(6):  # later, noise decides
        j = np.stack([np.exp(-p[1] * t), -p[0] * t * np.exp(-p[1] * t), np.ones_like(t)], 1)
        new = p - np.linalg.solve(j.T @ j + damping * np.eye(3), j.T @ off)
        there = new[0] * np.exp(-new[1] * t) + new[2] - y
        if there @ there < off @ off:
            p, off, damping = new, there, damping * 0.3
        else:
            damping *= 2
    return p, damping


TIMES = np.linspace(0, 3, 10)


@user(np.array([1.0, 1.0, 0.0]), TIMES, 2.5 * np.exp(-1.3 * TIMES) + 0.5 + 0.01 * np.sin(9 * TIMES),
      want=_fitted, rtol=1e-6)
def levenberg_marquardt(p, t, y):
    def residual(p):
        return p[0] * np.exp(-p[1] * t) + p[2] - y

    damping = 1.0
    for _ in range(6):
        off = residual(p)
        j = weft.vmap(lambda v, p=p: weft.jvp(residual, (p,), (v,))[1], out_axes=1)(np.eye(3))
        new = p - np.linalg.solve(j.T @ j + damping * np.eye(3), j.T @ off)
        if np.sum(residual(new) ** 2) < np.sum(off ** 2):
            p = new
            damping *= 0.3
        else:
            damping *= 2
    return p, damping


# -- statistics ----------------------------------------------------------------------------------

def _mixture(x):
    means, spread, shares = np.array([-1.0, 1.0]), np.ones(2), np.ones(2) / 2
    last = -np.inf
    for n in range(200):  # noqa: B007
        d = shares * np.exp(-0.5 * ((x[:, None] - means) / spread) ** 2) / spread
        now = np.log(d.sum(1)).sum()
        if abs(now - last) < 1e-10:
            break
        last = now
        r = d / d.sum(1, keepdims=True)
        k = r.sum(0)
        shares, means = k / len(x), (r * x[:, None]).sum(0) / k
        spread = np.sqrt((r * (x[:, None] - means) ** 2).sum(0) / k)
    return means, spread, shares, n


@user(np.concatenate([RNG.normal(-2, 0.5, 12), RNG.normal(1, 1.0, 18)]), want=_mixture, rtol=1e-6)
def expectation_maximisation(x):
    means = np.array([-1.0, 1.0])
    spread = np.ones(2)
    shares = np.ones(2) / 2
    last, n = -np.inf, 0
    while n < 200:
        d = shares * np.exp(-0.5 * ((x[:, None] - means) / spread) ** 2) / spread
        now = np.sum(np.log(np.sum(d, axis=1)))
        if np.abs(now - last) < 1e-10:
            break
        last = now
        r = d / np.sum(d, axis=1, keepdims=True)
        k = np.sum(r, axis=0)
        shares = k / len(x)
        means = np.sum(r * x[:, None], axis=0) / k
        spread = np.sqrt(np.sum(r * (x[:, None] - means) ** 2, axis=0) / k)
        n += 1
    return means, spread, shares, n


def _particles(seen, noise, levels):
    x, means = noise[0], []
    for y, eps, u in zip(seen, noise[1:], levels, strict=True):
        x = 0.9 * x + 0.5 * eps
        w = np.exp(-0.5 * (y - x) ** 2)
        w /= w.sum()
        means.append(w @ x)
        points = (u + np.arange(len(x))) / len(x)
        x = x[np.minimum(np.searchsorted(np.cumsum(w), points), len(x) - 1)]
    return np.array(means)


@user(RNG.normal(size=5), RNG.normal(size=(6, 16)), RNG.random(5), want=_particles)
def particle_filter(seen, noise, levels):
    n = noise.shape[1]

    def step(x, given):
        y, eps, u = given
        x = 0.9 * x + 0.5 * eps
        w = np.exp(-0.5 * (y - x) ** 2)
        w = w / w.sum()
        ancestors = np.searchsorted(np.cumsum(w), (u + np.arange(n)) / n)
        return x[np.minimum(ancestors, n - 1)], w @ x

    return weft.scan(step, noise[0], (seen, noise[1:], levels))[1]


def _evidence(theta, x, y):
    k = np.exp(theta[0] - 0.5 * np.exp(theta[1]) * (x[:, None] - x) ** 2)
    k += np.exp(theta[2]) * np.eye(len(x))
    return 0.5 * y @ np.linalg.solve(k, y) + 0.5 * np.linalg.slogdet(k)[1]


@user(np.array([0.1, 0.5, -1.0]), DATA[:, 0], AIM, rtol=1e-7, want=lambda theta, x, y: (
    slopes(lambda t: _evidence(t, x, y), theta),
    slopes(lambda t: slopes(lambda s: _evidence(s, x, y), t), theta)))
def gaussian_process_evidence(theta, x, y):
    """The gradient and the Hessian through a factorisation."""
    def evidence(theta):
        k = np.exp(theta[0] - 0.5 * np.exp(theta[1]) * (x[:, None] - x[None, :]) ** 2)
        low = np.linalg.cholesky(k + np.exp(theta[2]) * np.eye(len(x)))
        a = np.linalg.solve(low, y)
        return 0.5 * a @ a + np.sum(np.log(np.diagonal(low)))

    slope = weft.grad(evidence)
    rows = [weft.grad(lambda t, at=at: slope(t)[at])(theta) for at in range(3)]
    return slope(theta), np.stack(rows)


# -- simulation ----------------------------------------------------------------------------------

def _march(origins, directions):
    found = []
    for o, d in zip(origins, directions, strict=True):
        t = 0.0
        for _ in range(60):
            p = o + t * d
            away = min(np.sqrt(p @ p) - 1.0, p[1] + 1.2)
            if away < 1e-9 or t > 20:
                break
            t += away
        p = o + t * d
        up = p / np.sqrt(p @ p) if np.sqrt(p @ p) - 1 < p[1] + 1.2 else np.array([0.0, 1, 0])
        found.append(np.where(t > 20, 0.0, max(up @ np.array([0.6, 0.8, 0.0]), 0.0)))
    return np.array(found)


AHEAD = np.concatenate([RNG.uniform(-0.6, 0.6, (6, 2)), np.ones((6, 1))], 1)
AHEAD /= np.linalg.norm(AHEAD, axis=1, keepdims=True)


@user(np.tile([0.0, 0.2, -3.0], (6, 1)), AHEAD, want=_march, rtol=1e-6)
def ray_marching(origins, directions):
    """A loop for each pixel by vmap; normals are gradients of the distance."""
    def distance(p):
        return np.minimum(np.sqrt(np.sum(p * p)) - 1.0, p[1] + 1.2)

    def shade(o, d):
        t, _ = weft.while_loop(
            lambda s: (distance(o + s[0] * d) >= 1e-9) & (s[0] <= 20) & (s[1] < 60),
            lambda s: (s[0] + distance(o + s[0] * d), s[1] + 1), (0.0, 0))
        normal = weft.grad(distance)(o + t * d)
        return np.where(t > 20, 0.0, np.maximum(normal @ np.array([0.6, 0.8, 0.0]), 0.0))

    return weft.vmap(shade)(origins, directions)


def _bounces(v):
    x, y = 0.0, 1.0
    vx, vy = v
    for _ in range(40):
        vy = vy - 0.02 * 9.8
        x, y = x + 0.02 * vx, y + 0.02 * vy
        if y < 0:
            y, vy = -y, -0.8 * vy
    return (x - 2) ** 2 + (y - 0.5) ** 2


@user(np.array([1.5, 2.0]), rtol=1e-7,
      want=lambda v: (_bounces(v), slopes(_bounces, v, 1e-4)))
def bouncing_ball_with_remat(v):
    def rollout(v):
        @weft.remat
        def step(_, state):
            x, v = state
            v = v - np.array([0.0, 0.02 * 9.8])
            x = x + 0.02 * v
            hit = x[1] < 0
            x = np.where(hit & (np.arange(2) == 1), -x, x)
            v = np.where(hit & (np.arange(2) == 1), -0.8 * v, v)
            return x, v

        x, _ = weft.fori_loop(0, 40, step, (np.array([0.0, 1.0]), v))
        return np.sum((x - np.array([2.0, 0.5])) ** 2)

    return weft.value_and_grad(rollout)(v)


def _lennard_jones(x):
    total = 0.0
    for i, j in product(range(len(x)), repeat=2):
        if i < j:
            r2 = np.sum((x[i] - x[j]) ** 2)
            if r2 < 6.25:
                total += 4 * (r2 ** -6 - r2 ** -3)
    return total


ATOMS = np.array([[0.0, 0, 0], [1.1, 0.1, 0], [0.1, 1.2, 0], [3.0, 3.0, 0.2]])


def _dynamics(x):
    v, f = np.zeros_like(x), -slopes(_lennard_jones, x, 1e-4)
    for _ in range(3):
        x = x + 0.01 * v + 0.5e-4 * f
        new = -slopes(_lennard_jones, x, 1e-4)
        v, f = v + 0.005 * (f + new), new
    return x, v


@user(ATOMS, want=_dynamics, rtol=1e-6)
def molecular_dynamics(x):
    """Forces are gradients of an energy whose diagonal would be infinite."""
    def energy(x):
        d = x[:, None] - x[None, :]
        r2 = np.sum(d * d, axis=-1)
        near = (r2 < 6.25) & ~np.eye(len(x), dtype=bool)
        safe = np.where(near, r2, 1.0)
        return 0.5 * np.sum(np.where(near, 4 * (safe ** -6 - safe ** -3), 0.0))

    def force(x):
        return -weft.grad(energy)(x)

    def step(state, _):
        x, v, f = state
        x = x + 0.01 * v + 0.5e-4 * f
        new = force(x)
        return (x, v + 0.005 * (f + new), new), None

    (x, v, _), _ = weft.scan(step, (x, np.zeros_like(x), force(x)), None, length=3)
    return x, v


def _riccati(a, b):
    gains, p = [], np.eye(2)
    for _ in range(5):
        k = np.linalg.solve(0.1 * np.eye(1) + b.T @ p @ b, b.T @ p @ a)
        p = np.eye(2) + a.T @ p @ (a - b @ k)
        gains.append(k)
    return np.array(gains[::-1])


PUSH = np.array([0.1, -0.2])


@user(PUSH, want=lambda x: _riccati(*(lambda c, s: (
    np.array([[1.0, 0.1], [0.1 * c, 1.0]]), np.array([[0.0], [0.1]])))(np.cos(x[0]), 0)))
def controller_of_a_pendulum(x):
    """The dynamics' Jacobians come from vjp under vmap; gains by a scan backwards."""
    def dynamics(x, u):
        return np.array([x[0] + 0.1 * x[1], x[1] + 0.1 * (np.sin(x[0]) + u[0])])

    _, pull = weft.vjp(dynamics, x, np.zeros(1))
    a, b = weft.vmap(pull)(np.eye(2))

    def back(p, _):
        k = np.linalg.solve(0.1 * np.eye(1) + b.T @ p @ b, b.T @ p @ a)
        return np.eye(2) + a.T @ p @ (a - b @ k), k

    return weft.scan(back, np.eye(2), np.arange(5), reverse=True)[1]


def _option(p, z):
    s, k = p[0] * np.ones(z.shape[1]), 1.0
    total = np.zeros(z.shape[1])
    for row in z:
        s = s * np.exp((0.02 - 0.5 * p[1] ** 2) * 0.1 + p[1] * np.sqrt(0.1) * row)
        total += s
    return np.mean(np.log1p(np.exp(8 * (total / len(z) - k)))) / 8


@user(np.array([1.05, 0.3]), RNG.normal(size=(6, 20)), rtol=1e-6, want=lambda p, z: (
    _option(p, z), slopes(lambda p: _option(p, z), p),
    slopes(lambda p: slopes(lambda p: _option(p, z), p), p)))
def greeks_of_an_asian_option(p, z):
    def price(p):
        def path(s, row):
            s = s * np.exp((0.02 - 0.5 * p[1] ** 2) * 0.1 + p[1] * np.sqrt(0.1) * row)
            return s, s

        _, each = weft.scan(path, p[0] * np.ones(z.shape[1]), z)
        return np.mean(weft.nn.softplus(8 * (np.mean(each, axis=0) - 1.0))) / 8

    value, delta = weft.value_and_grad(price)(p)
    gamma = weft.vmap(lambda v: weft.jvp(weft.grad(price), (p,), (v,))[1])(np.eye(2))
    return value, delta, gamma


# -- alignments and grammars ---------------------------------------------------------------------

def _soft_dtw(a, b, gamma=0.5):
    r = np.full((len(a) + 1, len(b) + 1), np.inf)
    r[0, 0] = 0.0
    for i, j in product(range(len(a)), range(len(b))):
        z = -np.array([r[i, j], r[i, j + 1], r[i + 1, j]]) / gamma
        soft = -gamma * (np.max(z) + np.log(np.sum(np.exp(z - np.max(z)))))
        r[i + 1, j + 1] = (a[i] - b[j]) ** 2 + soft
    return r[-1, -1]


@user(np.array([0.1, 0.5, 0.9, 0.2]), np.array([0.0, 0.6, 0.4]), rtol=1e-7,
      want=lambda a, b: (_soft_dtw(a, b), slopes(lambda a: _soft_dtw(a, b), a)))
def soft_time_warping(a, b):
    def cost(a):
        far, gamma = 1e10, 0.5

        def row(above, x):
            def cell(left, here):
                y, corner, top = here
                z = -np.array([corner, top, left]) / gamma
                value = (x - y) ** 2 - gamma * weft.nn.logsumexp(z)
                return value, value

            _, new = weft.scan(cell, far, (b, above[:-1], above[1:]))
            return np.concatenate([np.array([far]), new]), None

        first = np.array([0.0] + [far] * len(b))
        return weft.scan(row, first, a)[0][-1]

    return weft.value_and_grad(cost)(a)


def _edits(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), int)
    d[:, 0], d[0] = np.arange(len(a) + 1), np.arange(len(b) + 1)
    for i, j in product(range(len(a)), range(len(b))):
        d[i + 1, j + 1] = min(d[i, j + 1] + 1, d[i + 1, j] + 1, d[i, j] + int(a[i] != b[j]))
    return d[-1, -1]


@user(np.array([3, 1, 4, 1, 5, 9]), np.array([1, 4, 4, 5, 2]), want=_edits)
def edit_distance(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    for i in range(len(a) + 1):
        d[i, 0] = i
    for j in range(len(b) + 1):
        d[0, j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[len(a), len(b)]


LIMIT: Callable[..., Any] = lambda x: np.sum(np.sin(x)) * np.prod(x)  # noqa: E731


@user(np.array([0.5, 1.2, -0.3]), np.array([1.0, -1.0, 0.5]), rtol=1e-6, want=lambda x, v: (
    slopes(lambda t: LIMIT(x + t[0] * v), np.zeros(1))[0],
    slopes(lambda t: slopes(lambda s: LIMIT(x + s[0] * v), t), np.zeros(1))[0, 0],
    sum(slopes(lambda y: slopes(LIMIT, y), x)[i, i] for i in range(3))))
def directional_derivatives_and_laplacian(x, v):
    def along(order):
        f = lambda t: LIMIT(x + t * v)  # noqa: E731
        for _ in range(order):
            f = lambda t, f=f: weft.jvp(f, (t,), (1.0,))[1]  # noqa: E731
        return f(0.0)

    laplacian = weft.vmap(lambda e: weft.jvp(weft.grad(LIMIT), (x,), (e,))[1] @ e)(np.eye(3)).sum()
    return along(1), along(2), laplacian
