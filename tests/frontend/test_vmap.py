"""vmap: axes and nests, unknown sizes, what is shared, control flow, the host, errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from texts import without_places

import weft
from weft.frontend.transforms.batch import vmap
from weft.ir.diagnose import Error, ShapeError, UnsupportedError
from weft.ir.ops.table import OPS
from weft.ir.text.printer import print_plan

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 3, 5))
B = RNG.normal(size=(5, 2))
V = RNG.normal(size=(4, 3))
IDS = RNG.integers(0, 3, (4, 6))
S = A @ A.mT + np.eye(3)


def _placed(x: Any, at: Any, v: Any) -> Any:
    x = np.array(x)
    x[at] = v
    return x


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any, Callable[..., Any] | None]] = {
    "product": (lambda a, b: a @ b, (A, B), (0, None), None),
    "product of two batches": (lambda a, b: a @ b, (A, A.mT), 0, None),
    "einsum": (lambda a, v: np.einsum("ij,i->j", a, v), (A, V), 0, None),
    "softmax": (lambda a: np.exp(a - a.max(1, keepdims=True)) / np.exp(
        a - a.max(1, keepdims=True)).sum(1, keepdims=True), (A,), 0, None),
    "views": (lambda a: np.concatenate([a.reshape(-1)[::-2], np.pad(a, 1).T[0]]), (A,), 0, None),
    "diagonal": (lambda a: np.trace(a) + np.tril(a).sum(), (A,), 0, None),
    "orders": (lambda a: np.cumsum(np.sort(a, axis=0), 1)[np.argsort(a[:, 0])], (A,), 0, None),
    "rows": (lambda a, i: a[i], (A, IDS), 0, None),
    "rows of one": (lambda a, i: a[i, 1], (A[0], IDS), (None, 0), None),
    "same rows": (lambda a, i: a[:, i], (A, IDS[0]), (0, None), None),
    "set": (lambda a, i, v: a.at[i, 1].set(v), (A, IDS[:, 0], V[:, 0]), 0,
            lambda a, i, v: _placed(a, (i, 1), v)),
    "set same": (lambda a, v: a.at[np.array([0, 2])].set(v), (A, V[:, 0]), 0,
                 lambda a, v: _placed(a, [0, 2], v)),
    "set one": (lambda a, i: a.at[i].set(1.0), (A[0], IDS[:, 0]), (None, 0),
                lambda a, i: _placed(a, i, 1.0)),
    "search": (lambda a: np.searchsorted(np.sort(a[:, 0]), a[:, 1]), (A,), 0, None),
    "search in one": (lambda a, v: np.searchsorted(a, v), (np.arange(3.0), A), (None, 0), None),
    "inverse": (np.linalg.inv, (S,), 0, None),
    "solve": (np.linalg.solve, (S[0], V), (None, 0), None),
    "least squares": (lambda s, v: np.linalg.lstsq(s, v)[0], (S, V), 0, None),
    "transforms": (lambda a: np.fft.irfft(np.fft.rfft(a), 5), (A,), 0, None),
    "complex": (lambda a: np.abs(a * 1j + np.conj(a[::-1])), (A + 1j,), 0, None),
    "written in place": (lambda v: _doubled(v), (V,), 0, None),
    "shared": (lambda v: v + np.tanh(B).sum(), (V,), 0, None),
}


def _doubled(v: Any) -> Any:
    out = np.zeros(3)
    out[1:] = v[1:] * 2
    return out


@pytest.mark.parametrize("name", CASES)
def test_a_batch_is_a_loop(name: str) -> None:
    function, args, in_axes, plain = CASES[name]
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    wanted = [(plain or function)(*(x if axis is None else x[at] for x, axis in zip(
        args, axes, strict=True))) for at in range(4)]
    np.testing.assert_allclose(vmap(function, in_axes)(*args), wanted, rtol=1e-12)


def test_compiled() -> None:
    def all_of(args: Any) -> Any:
        return [vmap(CASES[name][0], CASES[name][2])(*given) for name, given in args.items()]

    args = {name: CASES[name][1] for name in CASES}
    wanted = [vmap(CASES[name][0], CASES[name][2])(*given) for name, given in args.items()]
    for found, each in zip(weft.compile(all_of)(args), wanted, strict=True):
        np.testing.assert_allclose(found, each, rtol=1e-11)


@pytest.mark.parametrize(("in_axes", "out_axes", "shape"), [
    (0, 0, (3, 4, 5)), (1, 0, (4, 3, 5)), (-1, 0, (5, 3, 4)), (2, 2, (3, 4, 5)), (0, -1, (4, 5, 3)),
    (1, 1, (3, 4, 5)), ((-2,), -2, (3, 4, 5))])
def test_axes(in_axes: Any, out_axes: Any, shape: tuple[int, ...]) -> None:
    x = RNG.normal(size=(3, 4, 5))
    axis = in_axes if isinstance(in_axes, int) else in_axes[0]
    found = vmap(lambda x: x * 2, in_axes, out_axes)(x)
    assert found.shape == shape
    np.testing.assert_array_equal(found, np.moveaxis(x * 2, axis, out_axes))


def test_nests_of_axes() -> None:
    def f(params: Any, x: Any, *, scale: Any) -> Any:
        return {"y": x @ params["w"] * scale, "w": params["w"], "n": params["n"]}

    found = vmap(f, in_axes=({"w": None, "n": 1}, 0), out_axes={"y": 1, "w": None, "n": 0})(
        {"n": V.T, "w": B}, A[:, 0], scale=np.arange(4.0))
    np.testing.assert_allclose(found["y"], (A[:, 0] @ B * np.arange(4.0)[:, None]).T)
    np.testing.assert_array_equal(found["w"], B)
    np.testing.assert_array_equal(
        vmap(lambda p, x: x + p["n"], in_axes=({"w": None, "n": 1}, None))({"n": V, "w": B}, 1.0),
        1 + V.T)


def test_what_is_no_batch_is_computed_once() -> None:
    traced = weft.compile(lambda v, w: vmap(lambda v: v @ np.tanh(w))(v)).trace(V, A[0])
    shapes = {node.op.name: node.results[0].shape for node in traced.graph.nodes}
    assert shapes["tanh"] == (3, 5) and shapes["contract"] == (4, 5)


def test_a_result_that_every_example_shares_is_repeated() -> None:
    found = vmap(lambda x: (x, 1.0, B))(V)
    assert found[1].tolist() == [1.0] * 4 and found[2].shape == (4, 5, 2)


def test_unknown_sizes() -> None:
    @weft.compile(dynamic={"x": {0: "b"}, "y": {0: "c"}})
    def f(x: Any, y: Any, w: Any) -> Any:
        return vmap(lambda x, y: np.tanh(x @ w).sum() + y[np.argmax(y)])(x, y)

    for n in (1, 4, 7):
        x, y = RNG.normal(size=(n, 5)), RNG.normal(size=(n, 3))
        np.testing.assert_allclose(f(x, y, B), np.tanh(x @ B).sum(1) + y.max(1))
    assert f.cache_info().specialisations == 1
    with pytest.raises(ShapeError, match="must be equal"):
        f(np.ones((3, 5)), np.ones((4, 3)), B)


def test_branches_of_each_example() -> None:
    x = np.array([-1.0, 0.5, 3.0])
    f = vmap(lambda x: weft.cond(x > 1, lambda x: (x * 2, 1), lambda x: (x - 1, 0), x))
    found = f(x)
    assert found[0].tolist() == [-2.0, -0.5, 6.0] and found[1].tolist() == [0, 0, 1]


def test_rounds_of_each_example() -> None:
    """Those that are done keep their state, even where another round would spoil it."""
    def halved(n: Any) -> Any:
        return weft.while_loop(lambda s: s[0] > 1, lambda s: (s[0] // 2, s[1] + 1, 1 / (s[0] - 1)),
                               (n, 0, 0.0))[1]

    assert vmap(halved)(np.array([1, 2, 5, 64])).tolist() == [0, 1, 2, 6]
    assert vmap(lambda n: weft.fori_loop(0, n, lambda i, x: x + i, 0))(
        np.array([0, 3, 5])).tolist() == [0, 3, 10]


def test_a_dear_test_is_computed_once_in_a_round() -> None:
    def nearest(a: Any, w: Any) -> Any:
        return weft.while_loop(lambda s: np.sum((s @ w - a) ** 2) > 1e-3,
                               lambda s: s - 0.1 * (s @ w - a) @ w.T, np.zeros(3), 500)

    rng = np.random.default_rng(0)
    a, w = rng.normal(size=(4, 3)), np.eye(3) + rng.normal(size=(3, 3)) / 4
    stages = weft.compile(vmap(nearest, in_axes=(0, None))).lower(a, w).stages
    loop = next(node for node in stages.optimised.nodes if node.op.control is not None)
    products = [sum(node.op.name == "contract" for node in loop.attrs[name].nodes)
                for name in ("test", "body")]
    assert products == [0, 3]
    each = [nearest(row, w) for row in a]
    np.testing.assert_allclose(weft.compile(vmap(nearest, in_axes=(0, None)))(a, w), each,
                               rtol=1e-12)
    found = weft.compile(weft.grad(
        lambda a: np.sum(vmap(nearest, in_axes=(0, None))(a, w) ** 2)))(a)
    np.testing.assert_allclose(found, [weft.grad(lambda a: np.sum(nearest(a, w) ** 2))(row)
                                       for row in a], rtol=1e-9)


def test_a_test_that_knows_its_round_is_computed_for_the_next_one() -> None:
    def grown(x: Any, n: Any) -> Any:
        for i in range(n):
            if np.sum(x * x) > 10 * i + 3:
                break
            x = x * 1.5 + i
        return x

    xs, ns = np.random.default_rng(1).normal(size=(5, 3)), np.array([0, 1, 2, 5, 9])
    np.testing.assert_allclose(weft.compile(vmap(grown))(xs, ns), [
        grown(x, int(n)) for x, n in zip(xs, ns, strict=True)])


TABLE = np.arange(5.0)


def counted(k: Any, n: Any) -> Any:
    """Rounds, the last index of which is one too far."""
    return weft.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] + TABLE[s[0]]),
                           (k, 0.0 * n))[1]


def guarded(k: Any, n: Any) -> Any:
    return weft.cond(k < 5, lambda k: TABLE[k], lambda k: -1.0 * n, k)


def nested(k: Any, n: Any) -> Any:
    s = 0.0
    if k < 5:
        for i in range(n):
            s += TABLE[k] * i
            while s < 3:
                s += TABLE[k] + 1
                assert s < 100
        y = weft.scan(lambda c, r: (c + r * TABLE[k], c), s, np.arange(3.0))[0]
    else:
        assert k > 5
        y = -1.0
    return y + s


def endless(k: Any, n: Any) -> Any:
    """For 0 there are rounds without end."""
    def doubled(k: Any) -> Any:
        while k < 5:
            k = k * 2
        return k

    return doubled(k) if k > 0 else k - n


def written(k: Any, n: Any) -> Any:
    y = np.zeros(3)
    if k < 3:
        y[k] = n
    return y


def too_large(k: Any, n: Any) -> Any:
    if k < 5:
        return k * 2**60 if k < 3 else n
    return k


@pytest.mark.parametrize("function", [counted, guarded, nested, endless, written, too_large])
def test_what_an_example_does_not_come_by_cannot_fail_for_it(function: Callable[..., Any]) -> None:
    ks, ns = np.array([0, 3, 4, 7, 9]), np.array([3, 2, 0, 1, 2])
    each = [function(int(k), int(n)) for k, n in zip(ks, ns, strict=True)]
    for run in (vmap(function), weft.compile(vmap(function))):
        np.testing.assert_array_equal(run(ks, ns), each)


def test_what_an_example_does_come_by_may_fail() -> None:
    def bad(k: Any) -> Any:
        return TABLE[k] if k > 2 else TABLE[k + 5 * k]

    def positive(k: Any) -> Any:
        assert k > 0, "it is not positive"
        return 1.0 / k

    np.testing.assert_array_equal(vmap(bad)(np.array([0, 3, 4])), [0, 3, 4])
    for ks in ([0, 3, 5], [1, 3, 4]):
        with pytest.raises(Error, match="W124"):
            weft.compile(vmap(bad))(np.array(ks))
    np.testing.assert_array_equal(weft.compile(vmap(positive))(np.array([1, 2])), [1, 0.5])
    with pytest.raises(Error, match="W125: the assertion does not hold: it is not positive"):
        weft.compile(vmap(positive))(np.array([1, -2]))


def test_rows_that_no_round_has_written_are_not_read() -> None:
    """In the gradient of a gradient an example that is done took its last index from there."""
    def cube(x: Any) -> Any:
        return np.sum(weft.while_loop(
            lambda s: s[0] < 3 + (np.sum(x) > 0), lambda s: (
                s[0] + 1, np.where(s[0] < 3, s[1] * x, s[1])), (0, np.ones(3)), 6)[1])

    xs = np.array([[0.5, -1.5, 2], [-1, -2, 0.5], [2, 1, 0.25]])
    twice = weft.grad(lambda x: weft.grad(cube)(x) @ np.ones(3))
    for shift in range(3):  # with other memory below
        np.testing.assert_allclose(weft.compile(lambda x, s: vmap(twice)(x + 0 * s))(
            xs, np.ones(10**shift).sum()), 6 * xs)


def test_rows_of_each_example() -> None:
    def f(h: Any, xs: Any) -> Any:
        return weft.scan(lambda h, x: (np.tanh(h + x), h * x), h, xs, reverse=True)

    for in_axes in ((0, 0), (None, 0), (0, None)):
        h, xs = V[:, 0], A[:, :, 0]
        given = [x if axis == 0 else x[0] for x, axis in zip((h, xs), in_axes, strict=True)]
        found = vmap(f, in_axes)(*given)
        wanted = [f(*(x if axis is None else x[at] for x, axis in zip(
            given, in_axes, strict=True))) for at in range(4)]
        np.testing.assert_allclose(found[0], [x[0] for x in wanted])
        np.testing.assert_allclose(found[1], [x[1] for x in wanted])


def test_pythons_control_flow() -> None:
    def newton(a: Any) -> Any:
        x = a
        while abs(x * x - a) > 1e-12:
            x = 0.5 * (x + a / x)
        return x if x < 5 else -x

    found = weft.vmap(newton)(np.array([1.0, 2.0, 100.0]))
    np.testing.assert_allclose(found, [1.0, np.sqrt(2.0), -10.0])


def test_functions_of_the_user_run_for_each_example() -> None:
    calls = []

    def host(x: Any) -> Any:
        calls.append(x.shape)
        return x * 2

    found = vmap(lambda x: weft.host_call(host, weft.Spec("f64", (3,)), x))(V)
    np.testing.assert_array_equal(found, V * 2)
    assert calls == [(3,)] * 4


def test_variables_are_read() -> None:
    w = weft.Variable(B, name="w")
    np.testing.assert_allclose(weft.vmap(lambda a: a @ w)(A), A @ B)


def test_random_numbers_of_each_example() -> None:
    """The generator advances once for all, in loops too; each example has a stream of its own."""
    rng = weft.random.default_rng(0)

    @weft.compile
    def walk(x: Any) -> Any:
        return vmap(lambda x: weft.scan(
            lambda c, _: (c + rng.random(), c), x + rng.random(), None, length=3)[1])(x)

    found = walk(np.zeros(5))
    assert np.unique(np.diff(found, axis=1)).size == 10 and rng.counter.numpy() == 4
    assert not np.intersect1d(walk(np.zeros(5)), found).size


def test_random_numbers_where_examples_go_different_ways() -> None:
    """Each example draws what it would draw alone as an example of that number, on its way and for
    as many rounds as it needs."""
    rng, seed = weft.random.default_rng(0), weft.random.default_rng(0)

    def one(x: Any) -> Any:
        y = weft.cond(x > 0, lambda: x + rng.random(), lambda: x - rng.random())
        rounds, total = weft.while_loop(
            lambda s: s[1] < x, lambda s: (s[0] + 1, s[1] + rng.random()), (0, 0.0 * x))
        return y, rounds, total

    x = np.array([3.0, -1.0, 0.5, 2.0, 4.0])
    ways, rounds, totals = weft.compile(lambda x: vmap(one)(x))(x)
    # The words of example i are those of the key of its number: both ways, then round by round.
    keys = [words_of(seed, i) for i in range(5)]
    for i, draws in enumerate(keys):
        assert ways[i] == (x[i] + draws[0] if x[i] > 0 else x[i] - draws[1])
        sums = np.cumsum([0.0, *draws[2:]])
        many = int(np.argmax(sums >= x[i]))
        assert rounds[i] == many and totals[i] == sums[many]
    assert rng.counter.numpy() == 2 + rounds.max()
    np.testing.assert_array_equal(  # at once, too
        weft.vmap(lambda x: weft.cond(x < 0, lambda: x * rng.random(), lambda: x))(x)[2:], x[2:])


def words_of(rng: Any, example: int, many: int = 40) -> Any:
    """What an example of a batch draws."""
    key = OPS["threefry"].meaning(rng._stream.key, np.uint64((3 << 62) + example))
    return weft.random.from_key(key).random(many)


def test_assignments() -> None:
    """What no example differs in is assigned once."""
    count, total = weft.Variable(0.0), weft.Variable(0.0)
    step = weft.compile(lambda v: vmap(lambda x: (count.assign_add(1.0), x + count)[1])(v))
    np.testing.assert_array_equal(step(V), V + 1)
    assert count.numpy() == 1
    with pytest.raises(UnsupportedError, match="depends on the batch of a vmap"):
        vmap(lambda x: (total.assign_add(x.sum()), x)[1])(V)
    with pytest.raises(UnsupportedError, match="go different ways"):
        vmap(lambda x: weft.cond(x[0] > 0, lambda: (total.assign(1.0), x)[1], lambda: x))(V)


def test_an_empty_batch() -> None:
    assert weft.vmap(lambda a: np.tanh(a).sum(0))(A[:0]).shape == (0, 5)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: vmap(lambda x, y: x + y)(V, A[:3, 0]), r"x has 4 examples along axis 0, y has 3"),
    (lambda: vmap(lambda x, y: x + y)(V, 1.0), r"y is f64\[\] and has no axis 0"),
    (lambda: vmap(lambda x: x, 2)(V), r"x is f64\[4,3\] and has no axis 2"),
    (lambda: vmap(lambda x: x, (0, 0))(V), "in_axes has 2 entries for 1 arguments"),
    (lambda: vmap(lambda x: x, ({"a": 0},))({"b": V}), "in_axes is .* does not fit"),
    (lambda: vmap(lambda x: x, None)(V), "no argument has an axis of the batch"),
    (lambda: vmap(lambda x: x, 0, None)(V), "depends on the batch, but its entry of out_axes"),
    (lambda: vmap(lambda x: x, 0, 5)(V), "has no axis 5"),
    (lambda: vmap(lambda x: x, 0, (0, 0))(V), "out_axes is .* does not fit")])
def test_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(Error, match=message):
        call()


def test_text(golden: Callable[[str, str], None]) -> None:
    """The graph of a batch, from a function with each kind of op."""
    @weft.compile
    def attend(q: Any, k: Any, table: Any, ids: Any) -> Any:
        def one(q: Any, ids: Any) -> Any:
            scores = k @ q
            weights = np.exp(scores - scores.max())
            return (weights / weights.sum()) @ table[ids]

        return vmap(one)(q, ids)

    traced = attend.trace("f32[b,8]", "f32[5,8]", "f32[20,8]", "i64[b,5]")
    golden(re.sub(r" /\S+:\d+ in \w+", "", traced.as_text()), "transforms/vmap.ir")


def test_plan_of_a_while(golden: Callable[[str, str], None]) -> None:
    @weft.compile
    def roots(a: Any) -> Any:
        def root(a: Any) -> Any:
            return weft.while_loop(lambda x: np.abs(x * x - a) > 1e-6 * a,
                                   lambda x: 0.5 * (x + a / x), a)

        return vmap(root)(a)

    given = np.array([1.0, 2.0, 9.0])
    np.testing.assert_allclose(roots(given), np.sqrt(given), rtol=1e-6)
    whole = weft.compile(roots.py_func, target="x86-64-v4")  # whose vectors the text shows
    plan = whole.lower("f64[100]").stages.plan
    golden(without_places(print_plan(plan, kernels=True)), "plans/vmap_of_while.plan")
