"""Random numbers: their distributions, their bits everywhere, and where their state goes.

Thresholds are those that a true sample exceeds once in some thousand seeds; seeds are fixed.
"""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats
from texts import without_notes

import weft
from weft.frontend.tracing.context.lanes import lanes
from weft.ir.ops.table import OPS
from weft.ir.scalar.primitives import PRIMITIVES
from weft.random import default_rng, from_key

# -- the generator -----------------------------------------------------------------------------


def test_known_answers() -> None:
    """Those of Random123 for threefry2x32 with 20 rounds (file kat_vectors)."""
    keys = np.array([0, 0xFFFFFFFFFFFFFFFF, 0x13198A2E03707344], np.uint64)
    counters = np.array([0, 0xFFFFFFFFFFFFFFFF, 0x243F6A8885A308D3], np.uint64)
    known = np.array([0x6B20015999BA4EFE, 0x1CB996FCBB002BE7, 0xC4923A9C483DF7A0], np.uint64)
    np.testing.assert_array_equal(OPS["threefry"].meaning(keys, counters), known)

    @weft.compile
    def numbers(key: Any) -> Any:
        return from_key(key).split(1)

    assert numbers(keys[0])[0] == known[0]


def test_the_tails() -> None:
    words = np.array([0, 1, 2**64 - 2, 2**64 - 1], np.uint64)
    normal = PRIMITIVES["random_normal"].numpy(words)
    np.testing.assert_allclose(normal, [special.ndtri(2.0**-65), -special.ndtri(2.0**-65), 0, 0],
                               rtol=1e-14, atol=1e-15)
    exponential = PRIMITIVES["random_exponential"].numpy(words)
    np.testing.assert_allclose(exponential, [65 * math.log(2), 2.0**-65, math.log(2), math.log(2)],
                               rtol=1e-15)


# -- distributions --------------------------------------------------------------------------------

N = 20_000
CONTINUOUS: dict[str, tuple[tuple[float, ...], Any]] = {
    "random": ((), stats.uniform()),
    "uniform": ((-1.0, 3.0), stats.uniform(-1, 4)),
    "standard_normal": ((), stats.norm()),
    "normal": ((1.0, 2.0), stats.norm(1, 2)),
    "lognormal": ((0.5, 0.3), stats.lognorm(0.3, scale=math.exp(0.5))),
    "standard_exponential": ((), stats.expon()),
    "exponential": ((2.0,), stats.expon(scale=2)),
    "laplace": ((1.0, 2.0), stats.laplace(1, 2)),
    "logistic": ((1.0, 2.0), stats.logistic(1, 2)),
    "gumbel": ((1.0, 2.0), stats.gumbel_r(1, 2)),
    "rayleigh": ((2.0,), stats.rayleigh(scale=2)),
    "weibull": ((1.5,), stats.weibull_min(1.5)),
    "pareto": ((3.0,), stats.lomax(3)),
    "power": ((2.5,), stats.powerlaw(2.5)),
    "standard_cauchy": ((), stats.cauchy()),
    "standard_gamma": ((0.3,), stats.gamma(0.3)),
    "gamma": ((3.5, 2.0), stats.gamma(3.5, scale=2)),
    "log_gamma": ((0.4,), stats.loggamma(0.4)),
    "chisquare": ((3.0,), stats.chi2(3)),
    "standard_t": ((4.0,), stats.t(4)),
    "f": ((3.0, 8.0), stats.f(3, 8)),
    "beta": ((0.5, 2.0), stats.beta(0.5, 2)),
    "wald": ((1.0, 2.0), stats.invgauss(0.5, scale=2)),
    "triangular": ((-1.0, 0.0, 3.0), stats.triang(0.25, -1, 4)),
    "vonmises": ((0.0, 4.0), stats.vonmises(4)),
    "noncentral_chisquare": ((3.0, 2.0), stats.ncx2(3, 2)),
    "noncentral_f": ((3.0, 10.0, 2.0), stats.ncf(3, 10, 2)),
}
DISCRETE: dict[str, list[tuple[tuple[float, ...], Any]]] = {
    "bernoulli": [((0.3,), stats.bernoulli(0.3))],
    "poisson": [((0.5,), stats.poisson(0.5)), ((9.9,), stats.poisson(9.9)),
                ((10.0,), stats.poisson(10)), ((700.0,), stats.poisson(700))],
    "binomial": [((5, 0.3), stats.binom(5, 0.3)), ((50, 0.9), stats.binom(50, 0.9)),
                 ((100, 0.1), stats.binom(100, 0.1)), ((1000, 0.6), stats.binom(1000, 0.6))],
    "negative_binomial": [((3.5, 0.3), stats.nbinom(3.5, 0.3))],
    "geometric": [((0.2,), stats.geom(0.2))],
    "integers": [((3, 10), stats.randint(3, 10))],
    "zipf": [((3.0,), stats.zipf(3))],
    "logseries": [((0.3,), stats.logser(0.3)), ((0.9,), stats.logser(0.9))],
    "hypergeometric": [((5, 7, 4), stats.hypergeom(12, 5, 4)),
                       ((20, 30, 25), stats.hypergeom(50, 20, 25)),
                       ((300, 50, 320), stats.hypergeom(350, 300, 320)),
                       ((50, 300, 40), stats.hypergeom(350, 50, 40))],
}


def distance(x: Any, distribution: Any) -> float:
    """The distance of Kolmogorov and Smirnov, times sqrt(n); above 1.95 once in a thousand."""
    return float(stats.kstest(x, distribution.cdf).statistic) * math.sqrt(len(x))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str) -> None:
    params, distribution = CONTINUOUS[name]
    x = getattr(default_rng(1), name)(*params, size=N)
    assert x.dtype == np.float64 and distance(x, distribution) < 1.95
    mean, variance = distribution.stats()
    if math.isfinite(variance):
        assert abs(x.mean() - mean) < 4 * math.sqrt(variance / N)
    fourth = distribution.stats("k")
    if math.isfinite(fourth) and math.isfinite(variance):
        assert abs(x.var() / variance - 1) < 5 * math.sqrt((fourth + 2) / N)


@pytest.mark.parametrize("kappa", [0.0, 1e-6, 0.5, 1e3, 1e9])
def test_angles(kappa: float) -> None:
    """From everywhere alike to as good as one, about any direction."""
    whole = stats.vonmises(kappa) if kappa else stats.uniform(-np.pi, 2 * np.pi)
    assert distance(default_rng(1).vonmises(0.0, kappa, N), whole) < 1.95
    turned = default_rng(1).vonmises(3.0, kappa, N)
    assert np.abs(turned).max() <= np.pi
    around = default_rng(1).vonmises(0.0, kappa, N) + 3.0
    np.testing.assert_allclose(np.exp(1j * turned), np.exp(1j * around), atol=1e-12)


def test_few_degrees_of_freedom_off_the_origin() -> None:
    for df, nonc in ((0.5, 4.0), (1.0, 3.0), (2.5, 0.0)):
        x = default_rng(1).noncentral_chisquare(df, nonc, N)
        assert distance(x, stats.ncx2(df, nonc) if nonc else stats.chi2(df)) < 1.95


def test_a_first_candidate_is_taken_where_the_second_look_would() -> None:
    """The bound that spares a logarithm is one: gamma numbers are those of Marsaglia and Tsang."""
    words = np.random.default_rng(0).integers(0, 2**64, 20_000, np.uint64)
    threefry, normal = OPS["threefry"].meaning, PRIMITIVES["random_normal"].numpy
    for a in (1.0, 1.3, 2.5, 40.0, 1e4):
        x = normal(threefry(words, np.zeros_like(words)))
        u = -PRIMITIVES["random_exponential"].numpy(threefry(words, np.ones_like(words)))
        d = a - 1 / 3
        v = (1 + x / math.sqrt(9 * d)) ** 3
        with np.errstate(invalid="ignore", divide="ignore"):
            taken = (v > 0) & (u < x * x / 2 + d * (1 - v + np.log(v)))
        made = PRIMITIVES["random_gamma"].numpy(words, np.full(words.shape, a))
        assert 0.95 < taken.mean() < (1 if a < 1e4 else 1.1)
        np.testing.assert_allclose(made[taken], (d * v)[taken], rtol=1e-12)
        assert np.all(made[~taken] != (d * v)[~taken])


def test_float32_samples() -> None:
    for name in ("random", "standard_normal", "standard_exponential", "standard_gamma"):
        params, distribution = CONTINUOUS[name]
        x = getattr(default_rng(2), name)(*params, size=N, dtype=np.float32)
        assert x.dtype == np.float32 and distance(x, distribution) < 1.95
    assert default_rng(0).random(1000, np.float32).max() < 1
    y = default_rng(0).normal(np.float32(2), 3, size=5, dtype=np.float32)
    assert y.dtype == np.float32


def test_the_distance_can_tell() -> None:
    x = default_rng(1).normal(size=N)
    assert distance(x * 1.08, stats.norm()) > 1.95 and distance(x + 0.05, stats.norm()) > 1.95


def surprise(x: Any, distribution: Any) -> float:
    """The p-value of a chi-square test, with the tails as one outcome each."""
    low, high = (int(k) for k in distribution.ppf([0.002, 0.998]))
    inner = np.arange(low + 1, high)
    seen = [np.sum(x <= low), *(np.sum(x == k) for k in inner), np.sum(x >= high)]
    expected = np.array([distribution.cdf(low), *distribution.pmf(inner),
                         distribution.sf(high - 1)]) * len(x)
    return float(stats.chisquare(seen, expected * (len(x) / expected.sum())).pvalue)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name: str) -> None:
    rng = default_rng(1)
    for params, distribution in DISCRETE[name]:
        x = getattr(rng, name)(*params, size=N)
        assert x.dtype == (bool if name == "bernoulli" else np.int64)
        assert surprise(x, distribution) > 1e-3, params


def test_certain_outcomes() -> None:
    rng = default_rng(1)
    for x, outcome in ((rng.geometric(1.0, 9), 1), (rng.poisson(0.0, 9), 0),
                       (rng.gamma(0.0, 1, 9), 0), (rng.binomial(7, 1.0, 9), 7),
                       (rng.normal(3, 0.0, 9), 3), (rng.bernoulli(1.0, 9), True),
                       (rng.triangular(2, 2, 2, 9), 2), (rng.zipf(1e4, 9), 1),
                       (rng.logseries(0.0, 9), 1), (rng.hypergeometric(0, 50, 20, 9), 0),
                       (rng.hypergeometric(50, 0, 20, 9), 20)):
        assert (x == outcome).all()


def test_the_surprise_can_tell() -> None:
    x = default_rng(1).poisson(10.0, N)
    assert surprise(x, stats.poisson(10.15)) < 1e-3


@pytest.mark.parametrize("name", ["poisson", "binomial", "standard_gamma"])
def test_large_means(name: str) -> None:
    """Where the distribution is nearly a normal one."""
    params = {"poisson": (1e9,), "binomial": (10**12, 0.25), "standard_gamma": (1e8,)}[name]
    mean, variance = {"poisson": (1e9, 1e9), "binomial": (2.5e11, 2.5e11 * 0.75),
                      "standard_gamma": (1e8, 1e8)}[name]
    x = getattr(default_rng(3), name)(*params, size=N)
    assert distance((x - mean) / math.sqrt(variance), stats.norm()) < 1.95


def test_integers() -> None:
    rng = default_rng(0)
    assert set(rng.integers(3, size=100, endpoint=True).tolist()) == {0, 1, 2, 3}
    for dtype in (np.int8, np.uint8, np.int32, np.uint64):
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, 2000, dtype, endpoint=True)
        assert x.dtype == dtype
        assert abs(x.astype(float).mean() / float(info.max) - (info.min + info.max) / 2 / float(
            info.max)) < 0.06
    assert rng.integers(0, 2, 9, bool).dtype == bool
    # Beyond 2**32, each half of the range is as probable as the other.
    count = 3 << 61
    wide = rng.integers(0, count, N, np.uint64)
    assert wide.max() < count and distance(wide / count, stats.uniform()) < 1.95
    each = rng.integers([0, 10, -5], [1, 12, -3], size=(50, 3))
    assert [set(column) for column in each.T.tolist()] == [{0}, {10, 11}, {-5, -4}]
    traced = weft.compile(lambda low: rng.integers(low, low + 2, size=(50, 2)))(np.array([4, 8]))
    assert [set(column) for column in traced.T.tolist()] == [{4, 5}, {8, 9}]


def test_vectors() -> None:
    rng = default_rng(5)
    cov = np.array([[2.0, 0.6], [0.6, 1.0]])
    for method in ("svd", "eigh", "cholesky"):
        x = rng.multivariate_normal([1, -1], cov, N, method=method)
        assert np.abs(x.mean(0) - [1, -1]).max() < 0.05 and np.abs(np.cov(x.T) - cov).max() < 0.08
    alpha = np.array([0.5, 1.0, 2.5])
    shares = rng.dirichlet(alpha, N)
    np.testing.assert_allclose(shares.sum(1), 1)
    assert distance(shares[:, 2], stats.beta(2.5, 1.5)) < 1.95
    assert np.isfinite(rng.dirichlet([1e-4, 1e-4], 100)).all()
    counts = rng.multinomial(30, [0.2, 0.5, 0.3], N)
    assert (counts.sum(1) == 30).all() and surprise(counts[:, 1], stats.binom(30, 0.5)) > 1e-3
    assert surprise(counts[:, 2], stats.binom(30, 0.3)) > 1e-3
    kinds = rng.multivariate_hypergeometric([10, 20, 30], 25, N)
    assert (kinds.sum(1) == 25).all() and surprise(kinds[:, 1], stats.hypergeom(60, 20, 25)) > 1e-3
    assert surprise(kinds[:, 2], stats.hypergeom(60, 30, 25)) > 1e-3
    places = rng.categorical(np.log([[0.2, 0.8], [0.6, 0.4]]), size=(N, 2))
    assert np.abs(places.mean(0) - [0.8, 0.4]).max() < 0.015


def test_choice() -> None:
    rng, p = default_rng(7), np.array([0.1, 0.0, 0.6, 0.3])
    assert stats.chisquare(np.bincount(rng.choice(4, N), minlength=4)).pvalue > 1e-3
    seen = np.bincount(rng.choice(4, N, p=p), minlength=4)
    assert seen[1] == 0 and stats.chisquare(seen[p > 0], p[p > 0] * N).pvalue > 1e-3
    table = np.arange(12.0).reshape(3, 4)
    picked = rng.choice(table, 2, replace=False, axis=1)
    assert picked.shape == (3, 2) and len(set(picked[0])) == 2
    # Without replacement: the first, and the second of what is left.
    pairs = np.array([rng.choice(3, 2, replace=False, p=[0.5, 0.3, 0.2]) for _ in range(3000)])
    seen = np.bincount(pairs[:, 0] * 3 + pairs[:, 1], minlength=9)[[1, 2, 3, 5, 6, 7]]
    expected = np.array([0.5 * 0.6, 0.5 * 0.4, 0.3 * 5 / 7, 0.3 * 2 / 7, 0.2 * 0.625, 0.2 * 0.375])
    assert stats.chisquare(seen, expected * len(pairs)).pvalue > 1e-3


def test_orders() -> None:
    rng = default_rng(3)
    orders = np.array([rng.permutation(3) for _ in range(1200)])
    seen = np.bincount(orders @ [9, 3, 1])
    assert stats.chisquare(seen[seen > 0]).pvalue > 1e-3 and np.count_nonzero(seen) == 6
    table = np.arange(12).reshape(3, 4)
    assert sorted(map(tuple, rng.permutation(table).tolist())) == sorted(map(tuple, table.tolist()))
    rows = rng.permuted(table, axis=1)
    np.testing.assert_array_equal(np.sort(rows, 1), table)
    assert sorted(rng.permuted(table).ravel()) == list(range(12))
    words = ["a", "b", "c"]
    rng.shuffle(words)
    assert sorted(words) == ["a", "b", "c"]
    state = weft.Variable(np.arange(5))
    rng.shuffle(state)
    assert sorted(state.numpy()) == list(range(5))


# -- the same bits --------------------------------------------------------------------------------


def everything(rng: Any, n: int = 261) -> list[Any]:
    """One draw of each, the sizes being no multiples of a vector's."""
    found = [getattr(rng, name)(*params, size=n) for name, (params, _) in CONTINUOUS.items()]
    found += [getattr(rng, name)(*cases[-1][0], size=n) for name, cases in DISCRETE.items()]
    found += [rng.random(n, np.float32), rng.standard_normal(n, np.float32),
              rng.integers(0, 2**63, n, np.uint64)]
    found += [rng.permutation(50), rng.choice(9, 5, replace=False), rng.choice(9, 5, p=np.full(
        9, 1 / 9)), rng.permuted(np.arange(12).reshape(3, 4), axis=1)]
    return found


@pytest.mark.long
def test_the_same_bits_eager_and_compiled() -> None:
    rng = default_rng(11)
    compiled = weft.compile(lambda: everything(rng))()
    for at, (got, want) in enumerate(zip(compiled, everything(default_rng(11)), strict=True)):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, err_msg=str(at))


def test_the_same_bits_on_other_targets() -> None:
    def some(rng: Any) -> list[Any]:
        return [rng.normal(size=261), rng.gamma(0.5, size=33), rng.poisson(40.0, 33),
                rng.integers(0, 7, 33), rng.random((9, 5), np.float32), rng.permutation(50)]

    rng = default_rng(11)
    plain = weft.compile(opt=0, threads=1, target="x86-64-v3")(lambda: some(rng))()
    for got, want in zip(plain, some(default_rng(11)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_the_same_bits_in_other_company() -> None:
    """Fused or not, in one draw or two, with parameters that are known or traced."""
    rng, x = default_rng(4), np.linspace(0, 1, 1000)
    fused = weft.compile(lambda x: (x + rng.normal(size=x.shape) * 2).sum())
    plain = x + default_rng(4).normal(size=1000) * 2
    assert fused(x) == weft.compile(np.sum)(plain)
    assert default_rng(4).gamma(2.0, size=7)[:5].tolist() == default_rng(4).gamma(
        2.0, size=5).tolist()
    rng = default_rng(4)
    traced = weft.compile(lambda a: rng.gamma(a))(np.full(7, 2.0))
    np.testing.assert_array_equal(traced, default_rng(4).gamma(2.0, size=7))


def test_draws_fuse_into_what_uses_them() -> None:
    rng = default_rng(0)
    lowered = weft.compile(lambda x: x * rng.normal(size=x.shape)).lower("f64[n]")
    text = without_notes(lowered.as_text("kernel"))
    assert text.count("kernel @") == 2  # the counter, and all the rest
    assert "random_normal" in text and "threefry" not in text


# -- state ----------------------------------------------------------------------------------------


def test_control_flow_draws_anew_in_each_round() -> None:
    rng = default_rng(0)

    @weft.compile
    def loops(n: Any) -> Any:
        _, rows = weft.scan(lambda c, _: (c, rng.random(2)), 0.0, None, length=3)
        total = weft.fori_loop(0, 2, lambda i, x: x + rng.normal(), 0.0)
        for _ in range(n):
            total = total + rng.random()
        while total < 100.0:
            total = total + 50.0 * rng.random()
        if n > 2:
            total = total + rng.random()
        first = weft.cond(n > 2, lambda: rng.random(), lambda: 0.0)
        return rows, total, first

    plain = default_rng(0)
    for n in (3, 1):
        rows = np.array([plain.random(2) for _ in range(3)])
        total = 0.0
        for _ in range(2):
            total = total + plain.normal()
        for _ in range(n):
            total = total + plain.random()
        while total < 100.0:
            total = total + 50.0 * plain.random()
        if n > 2:
            total = total + plain.random()
        first = plain.random() if n > 2 else 0.0
        got = loops(n)
        np.testing.assert_array_equal(got[0], rows)
        assert got[1:] == (total, first)
        assert int(rng.counter) == int(plain.counter)


def test_generators_that_a_traced_function_makes_begin_anew() -> None:
    outer = default_rng(1)

    @weft.compile
    def draw(key: Any) -> Any:
        own, (child,) = default_rng(3), outer.spawn(1)
        inner = weft.scan(lambda c, _: (c, own.random()), 0.0, None, length=2)[1]
        return own.random(2), inner, child.random(), from_key(key).random(), default_rng().random()

    first, second = draw(np.uint64(5)), draw(np.uint64(5))
    plain = default_rng(3)
    inner = [plain.random(), plain.random()]
    np.testing.assert_array_equal(first[1], inner)
    np.testing.assert_array_equal(first[0], plain.random(2))
    for at in (0, 1, 3):
        np.testing.assert_array_equal(first[at], second[at])
    assert first[2] != second[2] and first[4] != second[4]
    assert first[3] == from_key(5).random()


def spawned() -> Any:
    parent = default_rng(4)
    children = [*parent.spawn(2), *parent.spawn(1)]
    return [child.normal(size=3) for child in children], parent.normal(size=3)


def shared() -> Any:
    rng = default_rng(4)
    return rng.dirichlet(np.arange(1.0, 20.0), 9), rng.multivariate_normal(
        np.ones(5), np.eye(5) + 0.1, 7, method="cholesky")


@pytest.mark.parametrize("draw", [spawned, shared])
def test_compiled_or_not(draw: Callable[[], Any]) -> None:
    for plain, compiled in zip(draw(), weft.compile(draw)(), strict=True):
        np.testing.assert_array_equal(compiled, plain)


def test_streams() -> None:
    parent = default_rng(9)
    children = [*parent.spawn(3), *parent.spawn(1), *(from_key(k) for k in parent.split(2)),
                *(from_key(k) for k in weft.random.split(17, 2)), parent]
    numbers = np.array([child.standard_normal(N) for child in children])
    apart = np.corrcoef(numbers) - np.eye(len(children))
    assert np.abs(apart).max() < 4.5 / math.sqrt(N)
    shifted = np.mean(numbers[:, 1:] * numbers[:, :-1], axis=1)  # nor do neighbours correlate
    assert np.abs(shifted).max() < 4 / math.sqrt(N)
    again = default_rng(9).spawn(4)[3].standard_normal(4)
    np.testing.assert_array_equal(numbers[3][:4], again)
    keys = weft.compile(lambda key: weft.random.split(key, (2, 3)))(np.uint64(17))
    np.testing.assert_array_equal(keys.ravel(), weft.random.split(17, 6))
    assert len(np.unique(default_rng(0).split(10_000))) == 10_000


def test_the_counter_is_state(tmp_path: Path) -> None:
    rng = default_rng(0)
    step = weft.compile(lambda: rng.normal(size=3))
    step()
    assert int(rng.counter) == 3
    weft.save(tmp_path / "state", {"rng": rng.counter})
    copies = [copy.deepcopy(rng), pickle.loads(pickle.dumps(rng))]
    after = step()
    for other in copies:
        np.testing.assert_array_equal(other.normal(size=3), after)
    weft.restore(tmp_path / "state", {"rng": rng.counter})
    np.testing.assert_array_equal(step(), after)


def test_sessions_go_on() -> None:
    rng = default_rng(0)
    g = weft.Graph()
    with g.as_default():
        x = rng.random(2)
        y = rng.spawn(1)[0].random(2)
    s = weft.Session(g)
    first, second = s.run([x, y]), s.run([x, y])
    plain = default_rng(0)
    (child,) = plain.spawn(1)  # when the graph is built; numbers are drawn in its steps
    for got in (first, second):
        np.testing.assert_array_equal(got[0], plain.random(2))
        np.testing.assert_array_equal(got[1], child.random(2))


def test_symbolic_sizes() -> None:
    rng = default_rng(2)
    draw = weft.compile(lambda x: (rng.gamma(x), rng.permutation(x), rng.random(x.shape)),
                        dynamic={"x": {0: "n"}})
    plain = default_rng(2)
    for n in (4, 0, 9):
        x = np.linspace(1, 2, n)
        for got, want in zip(draw(x), (plain.gamma(x), plain.permutation(x), plain.random(n)),
                             strict=True):
            np.testing.assert_array_equal(got, want)


def test_in_place() -> None:
    rng = default_rng(2)

    @weft.compile
    def shuffled(x: Any) -> Any:
        y, z = x * 2, np.zeros(4)
        z[1:] = x
        rng.shuffle(y)
        rng.shuffle(z)
        out = np.empty(3)
        rng.random(out=out)
        return y, z, out

    plain, x = default_rng(2), np.array([1.0, 2.0, 3.0])
    y, z, out = shuffled(x)
    np.testing.assert_array_equal(y, plain.permutation(x * 2))
    np.testing.assert_array_equal(z, plain.permutation(np.array([0.0, 1.0, 2.0, 3.0])))
    np.testing.assert_array_equal(out, plain.random(3))


def test_each_example_of_a_batch_has_its_own_stream() -> None:
    """What ``vmap`` asks for with ``lanes``."""
    rng = default_rng(4)

    @weft.compile
    def draw(number: Any) -> Any:
        with lanes(number):
            inner = default_rng(6)  # made for the example, so that it is as in plain Python
            return rng.random(3), inner.random(3)

    found = [draw(np.int64(at)) for at in range(3)]
    numbers = np.array([x for x, _ in found])
    assert len(np.unique(numbers)) == 9
    key = OPS["threefry"].meaning(rng._stream.key, np.uint64((3 << 62) + 1))
    expected = from_key(key)
    expected.random(3)  # the second call begins where the first has ended
    np.testing.assert_array_equal(numbers[1], expected.random(3))
    assert int(rng.counter) == 9
    for _, x in found:
        np.testing.assert_array_equal(x, default_rng(6).random(3))


# -- gradients ------------------------------------------------------------------------------------


def test_gradients_by_location_and_scale() -> None:
    def loss(a: Any, b: Any, rng: Any) -> Any:
        parts = [rng.normal(a, b, 5), rng.uniform(a, b, 5), rng.laplace(a, b, 5),
                 rng.gumbel(a, b, 5), rng.exponential(b, 5), rng.gamma(2.0, b, 5)]
        return sum(np.sum(np.sin(part)) for part in parts)

    rng = default_rng(6)
    got = weft.compile(weft.grad(lambda a, b: loss(a, b, rng), argnums=(0, 1)))(0.3, 1.2)
    for at in range(2):
        ends = [loss(*(value + sign * 1e-6 * (at == k) for k, value in enumerate((0.3, 1.2))),
                     default_rng(6)) for sign in (1, -1)]
        assert abs(got[at] - (ends[0] - ends[1]) / 2e-6) < 1e-6


@pytest.mark.parametrize("a", [1.0, 30.0])
def test_gradient_by_a_shape(a: float) -> None:
    """The derivative of the quantile that a number is."""
    rng = default_rng(8)

    @weft.compile
    def numbers(a: Any) -> Any:
        x = rng.standard_gamma(a)
        return x, weft.vjp(lambda a: default_rng(8).standard_gamma(a), a)[1](np.ones_like(a))[0]

    shape = np.full(50, a)
    x, slope = numbers(shape)
    step = 1e-5 * a
    quantile = special.gammainc(a, x)
    lower = quantile < 0.5
    upper = special.gammaincc(a, x)
    ends = [np.where(lower, special.gammaincinv(a + d, quantile),
                     special.gammainccinv(a + d, upper)) for d in (step, -step)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=2e-6)


@pytest.mark.long
def test_gradients_through_shapes_on_average() -> None:
    """d mean / d parameter, of 20,000 numbers."""
    rng = default_rng(12)

    def mean(name: str, *params: float) -> Any:
        count = tuple(range(len(params)))
        return weft.compile(weft.grad(
            lambda *p: np.mean(getattr(rng, name)(*p, size=N)), argnums=count))(*params)

    np.testing.assert_allclose(mean("standard_gamma", 0.3), [1], rtol=0.05)
    np.testing.assert_allclose(mean("beta", 2.0, 3.0), [3 / 25, -2 / 25], rtol=0.03)


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("draw", "code"), [
    (lambda r: r.normal(0, -1.0), "W132"), (lambda r: r.normal(0, np.array([1, -1.0])), "W132"),
    (lambda r: r.poisson(np.nan), "W132"), (lambda r: r.binomial(3, 1.5), "W132"),
    (lambda r: r.integers(5, 5), "W132"), (lambda r: r.integers(0, 300, dtype=np.int8), "W132"),
    (lambda r: r.integers([0, 3], 2), "W132"), (lambda r: r.choice(0), "W132"),
    (lambda r: r.choice(3, 4, replace=False), "W132"), (lambda r: r.choice(2, p=[0.5, 1]), "W132"),
    (lambda r: r.choice(2, 2, replace=False, p=[1.0, 0.0]), "W132"),
    (lambda r: r.choice(3, p=[0.5, 0.5]), "W102"),
    (lambda r: r.multinomial(3, [0.7, 0.7, 0]), "W132"),
    (lambda r: r.multivariate_normal([0, 0], [[1, 2], [2, 1]]), "W132"),
    (lambda r: r.multivariate_normal([0, 0], [[1.0]]), "W102"),
    (lambda r: r.normal(np.zeros(3), 1, size=2), "W101"), (lambda r: r.random(3, np.int32), "W111"),
    (lambda r: r.hypergeometric(1, 2, 4), "W132"), (lambda r: r.triangular(0, 2, 1), "W132"),
    (lambda r: r.zipf(1.0), "W132"), (lambda r: r.logseries(1.0), "W132"),
    (lambda r: r.bit_generator, "W113")])
def test_wrong_parameters(draw: Any, code: str) -> None:
    with pytest.raises(weft.Error) as caught:
        draw(default_rng(0))
    assert caught.value.code == code


def test_all_of_numpys_names_are_there() -> None:
    names = {name for name in dir(np.random.Generator) if not name.startswith("_")}
    assert names - set(dir(weft.random.Generator)) == {"bit_generator"}
    assert len(default_rng(0).bytes(7)) == 7


def test_a_parameter_made_of_several_is_named_so() -> None:
    draw = weft.compile(lambda n: default_rng(0).hypergeometric(3, 4, n))
    with pytest.raises(ValueError, match=r"ngood \+ nbad - nsample is not at least 0"):
        draw(8)
    assert draw(7) == 3


def test_names_that_numpy_does_not_have() -> None:
    assert not hasattr(default_rng(0), "no_such_name")


def test_a_traced_parameter_fails_the_step() -> None:
    rng = default_rng(0)
    draw = weft.compile(lambda scale: rng.normal(0.0, scale, 2))
    draw(1.0)
    with pytest.raises(ValueError, match=r"rng.normal: scale is not at least 0") as caught:
        draw(-1.0)
    assert isinstance(caught.value, weft.Error) and caught.value.code == "W132"
    assert int(rng.counter) == 2  # a step that fails changes nothing


def test_plain_arrays_are_arranged_in_traced_functions() -> None:
    pool, rng, other = np.array([3, 5, 7]), default_rng(4), default_rng(4)

    def drawn(rng: Any) -> Any:
        return (rng.choice(pool, 4), rng.permutation(pool), rng.choice(pool, 2, replace=False),
                rng.choice(pool, 5, p=[0.2, 0.3, 0.5]))

    for got, want in zip(weft.compile(lambda: drawn(rng))(), drawn(other), strict=True):
        np.testing.assert_array_equal(got, want)
