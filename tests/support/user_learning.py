"""Programs of machine learning as users of JAX, PyTorch and TensorFlow write them: models, losses,
decoding and training steps, with their gradients.

Each is compared with NumPy alone; gradients with differences of the NumPy program.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

import weft

from .user_programs import slopes, user

RNG = np.random.default_rng(5)
XS, YS = RNG.normal(size=(5, 3)), RNG.normal(size=5)
W1, W2 = RNG.normal(size=(3, 4)) / 2, RNG.normal(size=4) / 2


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _mlp(w1, w2, x):
    return np.tanh(x @ w1) @ w2


def _private(w1, w2, xs, ys):
    total = [np.zeros_like(w1), np.zeros_like(w2)]
    for x, y in zip(xs, ys, strict=True):
        g = [slopes(lambda w, x=x, y=y: (_mlp(w, w2, x) - y) ** 2, w1),
             slopes(lambda w, x=x, y=y: (_mlp(w1, w, x) - y) ** 2, w2)]
        norm = np.sqrt(sum(np.sum(part ** 2) for part in g))
        total = [a + b * min(1.0, 0.5 / norm) for a, b in zip(total, g, strict=True)]
    return [a / len(xs) for a in total]


@user(W1, W2, XS, YS, want=_private, rtol=1e-8)
def clipped_gradients_of_each_example(w1, w2, xs, ys):
    def loss(params, x, y):
        return (_mlp(params["w1"], params["w2"], x) - y) ** 2

    def clipped(params, x, y):
        g = weft.grad(loss)(params, x, y)
        norm = np.sqrt(sum(np.sum(part ** 2) for part in weft.tree.leaves(g)))
        return weft.tree.map(lambda part: part * np.minimum(1.0, 0.5 / norm), g)

    each = weft.vmap(clipped, in_axes=(None, 0, 0))({"w1": w1, "w2": w2}, xs, ys)
    return weft.tree.map(lambda g: g.mean(axis=0), [each["w1"], each["w2"]])


def _adapted(w, xs, ys):
    total = 0.0
    for x, y in zip(xs, ys, strict=True):
        v = w - 0.1 * 2 * x[:3].T @ (x[:3] @ w - y[:3]) / 3
        v = v - 0.1 * 2 * x[:3].T @ (x[:3] @ v - y[:3]) / 3
        total += np.mean((x[3:] @ v - y[3:]) ** 2)
    return total / len(xs)


TASKS, AIMS = RNG.normal(size=(4, 5, 2)), RNG.normal(size=(4, 5))


@user(np.array([0.5, -0.5]), TASKS, AIMS, rtol=1e-8,
      want=lambda w, xs, ys: (_adapted(w, xs, ys), slopes(lambda w: _adapted(w, xs, ys), w)))
def meta_learning(w, xs, ys):
    """MAML: the gradient through two steps of descent for each task of a batch."""
    def loss(w, x, y):
        return np.mean((x @ w - y) ** 2)

    def task(w, x, y):
        for _ in range(2):
            w = w - 0.1 * weft.grad(loss)(w, x[:3], y[:3])
        return loss(w, x[3:], y[3:])

    return weft.value_and_grad(
        lambda w: weft.vmap(task, in_axes=(None, 0, 0))(w, xs, ys).mean())(w)


# -- generative models ---------------------------------------------------------------------------

FLOW = [RNG.normal(size=(2, 4)) / 2 for _ in range(3)]


def _coupled(layers, x):
    total = np.zeros(len(x))
    for at, w in enumerate(layers):
        kept, moved = x[:, at % 2], x[:, 1 - at % 2]
        h = np.tanh(kept[:, None] * w[0] + w[1])
        scale, shift = np.tanh(h[:, 0] + h[:, 1]), h[:, 2] + h[:, 3]
        moved = moved * np.exp(scale) + shift
        x = np.stack([kept, moved] if at % 2 == 0 else [moved, kept], 1)
        total = total + scale
    return np.mean(total - 0.5 * np.sum(x ** 2, 1))


@user(FLOW, XS[:, :2], rtol=1e-8, want=lambda layers, x: (_coupled(layers, x), [
    slopes(lambda w, at=at: _coupled([*layers[:at], w, *layers[at + 1:]], x), layers[at])
    for at in range(3)], np.array(x)))
def normalising_flow(layers, x):
    """RealNVP: likelihood, its gradient, and back again through the inverse."""
    masks = [np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([1.0, 0.0])]

    def moves(w, mask, x):
        h = np.tanh(np.sum(x * mask, axis=1)[:, None] * w[0] + w[1])
        return np.tanh(h[:, :2].sum(axis=1))[:, None] * (1 - mask), h[:, 2:].sum(axis=1)[
            :, None] * (1 - mask)

    def onwards(layers, x):
        total = 0.0
        for w, mask in zip(layers, masks, strict=True):
            scale, shift = moves(w, mask, x)
            x = x * np.exp(scale) + shift
            total += np.sum(scale, axis=1)
        return x, total

    def likelihood(layers):
        z, total = onwards(layers, x)
        return np.mean(total - 0.5 * np.sum(z ** 2, axis=1))

    value, slope = weft.value_and_grad(likelihood)(layers)
    z, _ = onwards(layers, x)
    for w, mask in zip(reversed(layers), reversed(masks), strict=True):
        scale, shift = moves(w, mask, z)
        z = (z - shift) * np.exp(-scale)
    return value, slope, z


def _elbo(w, x, eps):
    mu, logvar = x @ w[:, :2], x @ w[:, 2:4]
    z = mu + np.exp(0.5 * logvar) * eps
    logits = z @ w[:, 4:].T[:2]
    rebuilt = np.sum(np.maximum(logits, 0) - logits * (x > 0) + np.log1p(np.exp(-abs(logits))), 1)
    return np.mean(rebuilt - 0.5 * np.sum(1 + logvar - mu ** 2 - np.exp(logvar), 1))


ENCODER = RNG.normal(size=(3, 6)) / 2


@user(ENCODER, XS, RNG.normal(size=(5, 2)), rtol=1e-8, want=lambda w, x, eps: (
    _elbo(w, x, eps), slopes(lambda w: _elbo(w, x, eps), w)))
def variational_autoencoder(w, x, eps):
    def loss(w):
        mu, logvar, decoder = np.split(w, 3, axis=1)
        mu, logvar = x @ mu, x @ logvar
        z = mu + np.exp(logvar / 2) * eps
        rebuilt = weft.nn.binary_cross_entropy_with_logits(
            z @ decoder.T, np.where(x > 0, 1.0, 0.0), reduction="none").sum(axis=1)
        kl = -0.5 * np.sum(1 + logvar - mu ** 2 - np.exp(logvar), axis=1)
        return np.mean(rebuilt + kl)

    return weft.value_and_grad(loss)(w)


def _gan(g, d, z, x):
    for _ in range(3):
        d = d - 0.1 * slopes(lambda d, g=g: np.mean(
            np.log1p(np.exp(-(x @ d))) + np.log1p(np.exp(np.tanh(z @ g) @ d))), d)
        g = g - 0.1 * slopes(lambda g, d=d: np.mean(np.log1p(np.exp(-(np.tanh(z @ g) @ d)))), g)
    return g, d


@user(RNG.normal(size=(2, 3)), RNG.normal(size=3), RNG.normal(size=(5, 2)), XS, want=_gan,
      rtol=1e-8)
def two_players(g, d, z, x):
    """One loss, of which each player sees its own part: stop_gradient keeps the other's away."""
    def loss(players, which):
        g, d = players["g"], players["d"]
        if which == "d":
            g = weft.stop_gradient(g)
            return np.mean(weft.nn.softplus(-(x @ d)) + weft.nn.softplus(np.tanh(z @ g) @ d))
        return np.mean(weft.nn.softplus(-(np.tanh(z @ g) @ weft.stop_gradient(d))))

    players = {"g": g, "d": d}
    for _ in range(3):
        for which in ("d", "g"):
            slope = weft.grad(loss)(players, which)
            players = weft.tree.map(lambda p, s: p - 0.1 * s, players, slope)
    return players["g"], players["d"]


# -- sequences -----------------------------------------------------------------------------------

GATES, TABLE = RNG.normal(size=(7, 16)) / 2, RNG.normal(size=(5, 3))
HEAD = RNG.normal(size=(4, 5))


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _spoken(gates, words, forced):
    h, c, last, total = np.zeros(4), np.zeros(4), 0, 0.0
    for word, force in zip(words, forced, strict=True):
        i, f, g, o = np.split(np.concatenate([TABLE[last], h]) @ gates, 4)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        p = _softmax(h @ HEAD)
        total -= np.log(p[word])
        last = word if force else int(np.argmax(p))
    return total / len(words)


@user(GATES, np.array([1, 4, 2, 0, 3]), np.array([True, False, True, False, False]), rtol=1e-8,
      want=lambda gates, words, forced: (_spoken(gates, words, forced),
                                         slopes(lambda g: _spoken(g, words, forced), gates, 1e-4)))
def lstm_with_teacher_forcing(gates, words, forced):
    def loss(gates):
        def step(carry, given):
            (h, c), last = carry
            word, force = given
            i, f, g, o = np.split(np.concatenate([TABLE[last], h]) @ gates, 4)
            c = weft.nn.sigmoid(f) * c + weft.nn.sigmoid(i) * np.tanh(g)
            h = weft.nn.sigmoid(o) * np.tanh(c)
            logp = weft.nn.log_softmax(h @ HEAD)
            guess = np.argmax(logp)
            return ((h, c), np.where(force, word, guess)), -logp[word]

        zeros = np.zeros(4), np.zeros(4)
        return weft.scan(step, (zeros, 0), (words, forced))[1].mean()

    return weft.value_and_grad(loss)(gates)


QKV = RNG.normal(size=(3, 4, 4))
EMBEDDED = RNG.normal(size=(6, 4))


def _decoded(start):
    words = [start]
    for _ in range(7):
        x = EMBEDDED[words]
        q, k, v = x[-1] @ QKV[0], x @ QKV[1], x @ QKV[2]
        words.append(int(np.argmax((_softmax(q @ k.T / 2.0) @ v + x[-1]) @ EMBEDDED.T)))
    return np.array(words)


@user(2, want=_decoded)
def decoding_with_a_cache(start):
    """Keys and values are written at the place of each word, and those to come are masked."""
    def step(t, state):
        words, keys, values = state
        x = EMBEDDED[words[t]]
        keys = keys.at[t].set(x @ QKV[1])
        values = values.at[t].set(x @ QKV[2])
        scores = np.where(np.arange(8) <= t, keys @ (x @ QKV[0]) / 2.0, -np.inf)
        mixed = weft.nn.softmax(scores) @ values + x
        return words.at[t + 1].set(np.argmax(mixed @ EMBEDDED.T)), keys, values

    words = np.zeros(8, dtype=int)
    words[0] = start
    return weft.fori_loop(0, 7, step, (words, np.zeros((8, 4)), np.zeros((8, 4))))[0]


def _ctc(logp, labels):
    """All paths, one by one."""
    total = 0.0
    for path in product(range(logp.shape[1]), repeat=len(logp)):
        merged = [p for at, p in enumerate(path) if at == 0 or p != path[at - 1]]
        if [p for p in merged if p] == list(labels):
            total += np.exp(sum(logp[t, p] for t, p in enumerate(path)))
    return -np.log(total)


SPEECH = RNG.normal(size=(5, 3))


def _ctc_of(x, labels):
    return _ctc(np.log(_softmax(x)), labels)


@user(SPEECH, np.array([1, 2]), rtol=1e-8, want=lambda x, labels: (
    _ctc_of(x, labels), slopes(lambda x: _ctc_of(x, labels), x)))
def connectionist_temporal_classification(x, labels):
    far = -1e30

    def loss(x):
        logp = weft.nn.log_softmax(x)
        n = 2 * len(labels) + 1
        extended = np.zeros(n, dtype=int)
        extended[1::2] = labels
        skips = np.zeros(n, dtype=bool)
        skips[3::2] = labels[1:] != labels[:-1]

        def step(alpha, row):
            one = np.concatenate([np.array([far]), alpha[:-1]])
            two = np.where(skips, np.concatenate([np.array([far, far]), alpha[:-2]]), far)
            alpha = np.logaddexp(np.logaddexp(alpha, one), two) + row[extended]
            return alpha, None

        first = np.where(np.arange(n) < 2, logp[0][extended], far)
        alpha, _ = weft.scan(step, first, logp[1:])
        return -np.logaddexp(alpha[-1], alpha[-2])

    return weft.value_and_grad(loss)(x)


def _partition(emit, move):
    return np.log(sum(np.exp(sum(emit[t, y] for t, y in enumerate(path)) + sum(
        move[a, b] for a, b in pairwise(path)))
        for path in product(range(3), repeat=len(emit))))


@user(RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3)), rtol=1e-8, want=lambda emit, move: (
    slopes(lambda e: _partition(e, move), emit), slopes(lambda m: _partition(emit, m), move)))
def marginals_of_a_random_field(emit, move):
    """Of a CRF: the gradient of the logarithm of its partition function."""
    def partition(emit, move):
        alpha = emit[0]
        for row in emit[1:]:
            alpha = weft.nn.logsumexp(alpha[:, None] + move, axis=0) + row
        return weft.nn.logsumexp(alpha)

    return weft.grad(partition, argnums=(0, 1))(emit, move)


def _beams(logp, width):
    beams = [((), 0.0)]
    for t in range(4):
        beams = [((*path, b), score + logp[t, path[-1] if path else 0, b])
                 for path, score in beams for b in range(4)]
        beams = sorted(beams, key=lambda beam: -beam[1])[:3]
    return np.array([path for path, _ in beams]), np.array([score for _, score in beams])


@user(np.log(_softmax(RNG.normal(size=(4, 4, 4)))), 3, want=_beams)
def beam_search_in_a_loop(logp, width):
    def step(t, state):
        paths, scores = state
        last = np.where(t > 0, paths[:, t - 1], 0)
        total = scores[:, None] + logp[t][last]
        scores, best = weft.top_k(total.ravel(), 3)
        paths = paths[best // 4]
        paths[:, t] = best % 4
        return paths, scores

    scores = np.full(3, -np.inf)
    scores[0] = 0.0
    return weft.fori_loop(0, 4, step, (np.zeros((3, 4), int), scores))


# -- routing, graphs, sets -----------------------------------------------------------------------

EXPERTS, ROUTER = RNG.normal(size=(4, 3, 3)), RNG.normal(size=(3, 4))


def _mixed(router, experts, xs):
    total = 0.0
    for x in xs:
        p = _softmax(x @ router)
        best = np.argsort(-p)[:2]
        y = sum(p[e] / p[best].sum() * np.tanh(x @ experts[e]) for e in best)
        total += np.sum(y ** 2)
    shares = np.bincount([np.argmax(x @ router) for x in xs], minlength=4) / len(xs)
    return total + 4 * np.sum(shares * _softmax(xs @ router).mean(0))


@user(ROUTER, EXPERTS, XS, rtol=1e-8, want=lambda r, e, xs: (
    _mixed(r, e, xs), slopes(lambda r: _mixed(r, e, xs), r, 1e-4),
    slopes(lambda e: _mixed(r, e, xs), e)))
def mixture_of_experts(router, experts, xs):
    """Each row goes to two experts, whose weights are gathered; a term keeps them busy."""
    def loss(router, experts):
        p = weft.nn.softmax(xs @ router)
        gates, chosen = weft.top_k(p, 2)
        gates = gates / gates.sum(axis=-1, keepdims=True)
        each = np.tanh(np.einsum("ni,nkij->nkj", xs, experts[chosen]))
        y = np.sum(gates[..., None] * each, axis=1)
        shares = weft.nn.one_hot(chosen[:, 0], 4).mean(axis=0)
        return np.sum(y ** 2) + 4 * np.sum(weft.stop_gradient(shares) * p.mean(axis=0))

    value, slope = weft.value_and_grad(loss, argnums=(0, 1))(router, experts)
    return value, *slope


class Network(NamedTuple):
    nodes: Any
    senders: Any
    receivers: Any


def _attended(w, nodes, senders, receivers):
    h = np.tanh(nodes @ w)
    scores = np.array([h[s] @ h[r] for s, r in zip(senders, receivers, strict=True)])
    out = np.zeros_like(h)
    for node in range(len(nodes)):
        own = receivers == node
        if own.any():
            out[node] = _softmax(scores[own]) @ h[senders[own]]
    return np.sum(out ** 2) + out.max()


SENDERS, RECEIVERS = np.array([0, 1, 2, 3, 4, 0, 2]), np.array([1, 2, 1, 0, 3, 2, 3])


@user(W1, Network(XS, SENDERS, RECEIVERS), rtol=1e-8, want=lambda w, graph: (
    _attended(w, *graph), slopes(lambda w: _attended(w, *graph), w)))
def graph_attention(w, graph):
    """Softmax over the edges that meet in each node, by sums and maxima of segments."""
    def loss(w):
        n = graph.nodes.shape[0]
        h = np.tanh(graph.nodes @ w)
        scores = np.sum(h[graph.senders] * h[graph.receivers], axis=-1)
        most = weft.segment_max(scores, graph.receivers, n)
        e = np.exp(scores - weft.stop_gradient(most)[graph.receivers])
        total = weft.segment_sum(e, graph.receivers, n)
        share = e / total[graph.receivers]
        out = weft.segment_sum(share[:, None] * h[graph.senders], graph.receivers, n)
        return np.sum(out ** 2) + out.max()

    return weft.value_and_grad(loss)(w)


def _pushed(a, b):
    z = np.concatenate([a, b])
    z = z / np.sqrt(np.sum(z ** 2, 1, keepdims=True))
    s = z @ z.T / 0.5
    np.fill_diagonal(s, -np.inf)
    n = len(a)
    return -np.mean([np.log(_softmax(s[i])[(i + n) % (2 * n)]) for i in range(2 * n)])


@user(XS, XS[::-1] + 0.3, rtol=1e-8, want=lambda a, b: (
    _pushed(a, b), slopes(lambda a: _pushed(a, b), a)))
def contrastive_loss(a, b):
    def loss(a):
        z = np.concatenate([a, b])
        z = z / np.linalg.norm(z, axis=1, keepdims=True)
        n = z.shape[0]
        scores = np.where(np.eye(n, dtype=bool), -np.inf, z @ z.T / 0.5)
        other = (np.arange(n) + n // 2) % n
        return weft.nn.cross_entropy(scores, other)

    return weft.value_and_grad(loss)(a)


def _listed(scores, grades):
    order = np.argsort(-grades, kind="stable")
    s = scores[order]
    return -sum(s[i] - np.log(np.sum(np.exp(s[i:]))) for i in range(len(s)))


@user(YS, np.array([2.0, 0.0, 3.0, 1.0, 0.0]), rtol=1e-8, want=lambda s, g: (
    _listed(s, g), slopes(lambda s: _listed(s, g), s)))
def ranking_by_lists(scores, grades):
    """Plackett and Luce: the likelihood of the order of the grades."""
    def loss(scores):
        s = scores[np.argsort(-grades, kind="stable")]
        below = np.logaddexp.accumulate(s[::-1])[::-1]
        return np.sum(below - s)

    return weft.value_and_grad(loss)(scores)


# -- decisions -----------------------------------------------------------------------------------

def _episode(theta, draws):
    s, terms = np.array([1.0, -0.5]), []
    for u in draws:
        p = _softmax(theta @ s)
        a = int(np.searchsorted(np.cumsum(p), u))
        terms.append((s, a, -np.sum(s ** 2)))
        s = 0.9 * s + 0.3 * np.array([np.cos(2.0 * a), np.sin(2.0 * a)])
    rewards = np.array([r for _, _, r in terms])
    returns = np.array([sum(0.9 ** (k - t) * rewards[k] for k in range(t, len(rewards)))
                        for t in range(len(rewards))])
    gain = returns - returns.mean()
    return slopes(lambda th: -np.mean([g * np.log(_softmax(th @ s)[a]) for g, (s, a, _) in zip(
        gain, terms, strict=True)]), theta), returns


@user(RNG.normal(size=(3, 2)), RNG.random(7), want=_episode, rtol=1e-8)
def policy_gradient(theta, draws):
    def play(s, u):
        p = weft.nn.softmax(theta @ s)
        a = np.searchsorted(np.cumsum(p), u)
        push = np.stack([np.cos(2.0 * a), np.sin(2.0 * a)])
        return 0.9 * s + 0.3 * push, (s, a, -np.sum(s ** 2))

    _, (states, actions, rewards) = weft.scan(play, np.array([1.0, -0.5]), draws)

    def discount(later, reward):
        later = reward + 0.9 * later
        return later, later

    _, returns = weft.scan(discount, 0.0, rewards, reverse=True)

    def loss(theta):
        logp = weft.nn.log_softmax(states @ theta.T)
        taken = np.take_along_axis(logp, actions[:, None], axis=1)[:, 0]
        return -np.mean(taken * (returns - returns.mean()))

    return weft.grad(loss)(theta), returns


def _pulled(means, noise):
    counts, sums, regret = np.zeros(3), np.zeros(3), 0.0
    for t, eps in enumerate(noise):
        best = t if t < 3 else int(np.argmax(sums / counts + np.sqrt(2 * np.log(t) / counts)))
        counts[best] += 1
        sums[best] += means[best] + eps
        regret += means.max() - means[best]
    return counts, regret


@user(np.array([0.2, 0.8, 0.5]), RNG.normal(size=30) / 2, want=_pulled)
def bandit(means, noise):
    """Upper confidence bounds, with a class that holds what is known."""
    class Arms:
        def __init__(self, n):
            self.counts = np.zeros(n)
            self.sums = np.zeros(n)

        def choose(self, t):
            bound = np.sqrt(2 * np.log(np.maximum(t, 1)) / np.maximum(self.counts, 1))
            scores = np.where(self.counts == 0, np.inf, self.sums / np.maximum(self.counts, 1))
            return np.argmax(scores + bound)

        def learn(self, arm, reward):
            self.counts[arm] += 1
            self.sums[arm] += reward

    arms, regret = Arms(3), 0.0
    for t in range(len(noise)):
        arm = arms.choose(t)
        arms.learn(arm, means[arm] + noise[t])
        regret += np.max(means) - means[arm]
    return arms.counts, regret


# -- training loops ------------------------------------------------------------------------------

def _quantiles(w, xs, ys):
    for _ in range(2):
        for x, y in zip(xs, ys, strict=True):
            for at, q in enumerate((0.1, 0.5, 0.9)):
                w = w.copy()
                w[at] -= 0.05 * np.where(y > w[at] @ x, -q, 1 - q) * x
    return w


@user(np.zeros((3, 3)), XS, YS, want=_quantiles)
def quantile_regression(w, xs, ys):
    levels = np.array([0.1, 0.5, 0.9])

    def pinball(w, x, y):
        off = y - w @ x
        return np.sum(np.where(off > 0, levels * off, (levels - 1) * off))

    def epoch(w, _):
        return weft.scan(lambda w, row: (w - 0.05 * weft.grad(pinball)(w, *row), None),
                         w, (xs, ys))

    return weft.scan(epoch, w, None, length=2)[0]


def _normed(gain, x):
    mean = var = 0.0
    for row in x:
        m, v = row.mean(0), row.var(0)
        mean, var = 0.9 * mean + 0.1 * m, 0.9 * var + 0.1 * v
    return mean, var, sum(np.sum(np.tanh(gain * (r - r.mean(0)) / np.sqrt(r.var(0) + 1e-5)) ** 2)
                          for r in x)


BATCHES = RNG.normal(size=(3, 5, 2))


@user(np.array([1.0, 0.5]), BATCHES, rtol=1e-7, want=lambda gain, x: (
    *_normed(gain, x), slopes(lambda g: _normed(g, x)[2], gain)))
def running_statistics_as_auxiliary_results(gain, x):
    def loss(gain, stats, batch):
        m, v = batch.mean(axis=0), batch.var(axis=0)
        y = gain * (batch - m) / np.sqrt(v + 1e-5)
        new = {"mean": 0.9 * stats["mean"] + 0.1 * m, "var": 0.9 * stats["var"] + 0.1 * v}
        return np.sum(np.tanh(y) ** 2), new

    def step(carry, batch):
        stats, total, slope = carry
        (value, stats), g = weft.value_and_grad(loss, has_aux=True)(gain, stats, batch)
        return (stats, total + value, slope + g), None

    first = {"mean": np.zeros(2), "var": np.zeros(2)}
    (stats, total, slope), _ = weft.scan(step, (first, 0.0, np.zeros(2)), x)
    return stats["mean"], stats["var"], total, slope


def _adam(w, xs, ys):
    m = v = np.zeros_like(w)
    for t in range(1, 13):
        at = (t - 1) % 4
        x, y = xs[at:at + 2], ys[at:at + 2]
        g = 2 * x.T @ (x @ w - y) / 2
        g = g * min(1.0, 1.0 / np.sqrt(g @ g))
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        rate = 0.1 * (t / 4 if t < 4 else 0.5 * (1 + np.cos(np.pi * (t - 4) / 8)))
        w = w - rate * m / (1 - 0.9 ** t) / (np.sqrt(v / (1 - 0.99 ** t)) + 1e-8)
    return w


@user(np.array([0.5, -0.5, 0.1]), XS, YS, want=_adam)
def training_with_minibatches_cut_by_a_traced_start(w, xs, ys):
    """Adam with warming up, a cosine, and clipped gradients; batches are slices in the loop."""
    def step(t, state):
        w, m, v = state
        at = (t - 1) % 4
        x, y = xs[at:at + 2], ys[at:at + 2]
        g = weft.grad(lambda w: np.mean((x @ w - y) ** 2))(w)
        g = g * np.minimum(1.0, 1.0 / np.linalg.norm(g))
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        rate = 0.1 * np.where(t < 4, t / 4, 0.5 * (1 + np.cos(np.pi * (t - 4) / 8)))
        return w - rate * m / (1 - 0.9 ** t) / (np.sqrt(v / (1 - 0.99 ** t)) + 1e-8), m, v

    return weft.fori_loop(1, 13, step, (w, np.zeros(3), np.zeros(3)))[0]


@user(np.array([1.0, 2.0, 3.0]), 0.1, want=lambda w, rate: (
    w * 0.8 ** 5, sum(np.sum((w * 0.8 ** k) ** 2) for k in range(5))))
def optimiser_in_an_object(w, rate):
    """State that a Python object gathers over rounds, and a history in a list."""
    class Descent:
        def __init__(self, rate):
            self.rate, self.losses = rate, []

        def step(self, f, w):
            value, slope = weft.value_and_grad(f)(w)
            self.losses.append(value)
            return w - self.rate * slope

    descent = Descent(rate)
    for _ in range(5):
        w = descent.step(lambda w: np.sum(w * w), w)
    return w, sum(descent.losses)


def _skipped(words, pairs):
    u, v = words
    u, v = u.copy(), v.copy()
    for a, b, label in pairs:
        g = _sigmoid(u[a] @ v[b]) - label
        du, dv = g * v[b], g * u[a]
        u[a] -= 0.1 * du
        v[b] -= 0.1 * dv
    return u, v


@user((RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))),
      np.array([[0, 1, 1], [0, 3, 0], [2, 1, 1], [0, 1, 0]]), want=_skipped)
def words_by_negative_samples(words, pairs):
    def loss(tables, pair):
        u, v = tables
        logit = np.dot(u[pair[0]], v[pair[1]])
        return weft.nn.softplus(logit) - logit * pair[2]

    for pair in pairs:
        slope = weft.grad(loss)(words, pair)
        words = weft.tree.map(lambda p, g: p - 0.1 * g, words, slope)
    return words
