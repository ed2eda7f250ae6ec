"""``weft.Session``: any part of a graph, by feeding and fetching any of its values.

The first test is the introductory example of TensorFlow's white paper (Abadi et al., 2015,
figure 1), which Weft's graphs and sessions are modelled on.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from running import in_threads
from texts import without_notes

import weft
from weft import Session, Variable
from weft.ir.diagnose import Error
from weft.ir.types import as_dtype

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(3)


def test_the_introductory_example() -> None:
    b = Variable(np.zeros(100, np.float32))
    W = Variable(RNG.uniform(-1, 1, (784, 100)).astype(np.float32))
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (1, 784), name="x")
        relu = weft.nn.relu(x @ W + b)
        C = np.sum(relu**2)
    s = Session(g)
    for _ in range(10):
        input_ = RNG.normal(size=(1, 784)).astype(np.float32)
        result = s.run(C, feed_dict={x: input_})
        want = np.maximum(input_ @ W.numpy() + b.numpy(), 0)
        np.testing.assert_allclose(result, (want**2).sum(), rtol=1e-4)
        np.testing.assert_allclose(s.run(relu, {x: input_}), want, rtol=1e-4, atol=1e-4)
    assert len(s._steps.compiled) == 2


def test_the_column_form_of_the_example() -> None:
    """relu(W @ x + b), as section 10 of the design writes it."""
    W, b = RNG.normal(size=(10, 100)).astype(np.float32), np.ones(10, np.float32)
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (100,), name="x")
        relu = weft.nn.relu(W @ x + b)
    s = Session(g)
    v = RNG.normal(size=100).astype(np.float32)
    want = np.maximum(W @ v + b, 0)
    np.testing.assert_allclose(s.run(relu, feed_dict={x: v}), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(s.run("relu:0", {"x:0": v}), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(s.make_callable(relu, [x])(v), want, rtol=1e-4, atol=1e-5)


class Net:
    """x -> h = 2x -> y = h + 1 -> total; z = exp(x) apart; ``count`` and its update."""

    def __init__(self) -> None:
        self.count = Variable(0, name="count")
        self.g = weft.Graph("net")
        with self.g.as_default():
            self.x = weft.placeholder("f64", (3,), name="x")
            with weft.name_scope("layer1"):
                h = self.x * 2
                y = h + 1
            total = np.sum(y)
            z = np.exp(self.x)
            self.bump = self.count.assign_add(1)
        self.h, self.y, self.total, self.z = h, y, total, z
        self.s = Session(self.g)


@pytest.fixture
def net() -> Net:
    return Net()


V = np.array([1.0, 2.0, 3.0])


def test_fetch_by_object_and_by_name(net: Net) -> None:
    for fetch in (net.y, "layer1/y:0", "layer1/y", net.y.name):
        np.testing.assert_array_equal(net.s.run(fetch, {net.x: V}), V * 2 + 1)
    for key in (net.x, "x:0", "x"):
        np.testing.assert_array_equal(net.s.run(net.y, {key: V}), V * 2 + 1)
    assert len(net.s._steps.compiled) == 1


def test_any_value_can_be_fed(net: Net) -> None:
    assert net.s.run(net.total, {net.h: V}) == (V + 1).sum()
    assert net.s.run(net.total, {"layer1/y:0": V}) == V.sum()
    assert net.s.run(net.total, {net.x: V, net.h: V * 10}) == (V * 10 + 1).sum()
    np.testing.assert_array_equal(net.s.run([net.h, net.z], {net.x: V, net.h: V * 10})[0], V * 10)


def test_feed_and_fetch_of_one_value(net: Net) -> None:
    for value in (net.x, net.h):
        fed = V.copy()
        got = net.s.run(value, {value: fed})
        np.testing.assert_array_equal(got, V)
        got[0] = -1
        np.testing.assert_array_equal(fed, V)
    assert net.s.run([net.y, net.y, net.total], {net.y: V})[2] == V.sum()


class Pair(NamedTuple):
    a: Any
    b: Any


def test_fetches_are_nests(net: Net) -> None:
    result = net.s.run({"y": net.y, "more": [Pair(net.total, "layer1/h"), (net.bump, net.bump)]},
                       {net.x: V})
    np.testing.assert_array_equal(result["y"], V * 2 + 1)
    ((total, h), rest) = result["more"]
    assert isinstance(result["more"][0], Pair) and type(total) is np.float64
    np.testing.assert_array_equal(h, V * 2)
    assert rest == (None, None)
    assert int(net.count) == 1
    assert net.s.run([], {}) == []
    assert net.s.run((), None) == ()


def test_operations_give_none_and_happen_once(net: Net) -> None:
    assert net.s.run(net.bump) is None
    assert net.s.run([net.bump, net.bump]) == [None, None]
    assert net.s.run(net.bump.name) is None
    assert int(net.count) == 3
    assert net.s.run([net.count, net.bump]) == [4, None]
    assert net.s.run(net.count) == 4


def test_only_what_is_needed_is_compiled_and_run(net: Net) -> None:
    report = weft.StepReport()
    net.s.run(net.z, {net.x: V}, trace=report)
    assert report.launches == 1
    text = net.s.program(net.z, [net.x]).text("plan")
    assert text.count("launch") == 1
    for stage in ("trace", "fused"):
        text = without_notes(net.s.program(net.z, [net.x]).text(stage))
        assert "exp" in text and "mul" not in text and "add" not in text and "count" not in text
    net.s.run(net.y, {net.x: V}, trace=report)
    assert report.launches == 1
    # Feeding cuts what is above it: neither exp nor the product is there.
    assert "mul" not in without_notes(net.s.program(net.total, [net.h]).text("trace"))
    assert int(net.count) == 0


def test_two_branches_fetch_apart() -> None:
    a, b = Variable(np.zeros(2)), Variable(np.zeros(2))
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (2,), name="x")
        left, right = a.assign(x * 2), b.assign(x * 3)
        both = weft.group(left, right)
    s = Session(g)
    s.run(left, {x: np.ones(2)})
    np.testing.assert_array_equal((a.numpy(), b.numpy()), ([2, 2], [0, 0]))
    assert s.run(both, {x: np.full(2, 5.0)}) is None
    np.testing.assert_array_equal((a.numpy(), b.numpy()), ([10, 10], [15, 15]))


# -- what is wrong ------------------------------------------------------------------------------


def test_unknown_names(net: Net) -> None:
    with pytest.raises(KeyError, match=r"W301: no value 'layer1/yy' in graph 'net'") as caught:
        net.s.run("layer1/yy", {net.x: V})
    assert "did you mean layer1/y:0" in str(caught.value)
    assert caught.value.locs[0].file == __file__  # type: ignore[attr-defined]
    for wrong in ("layer1/y:1", "nothing like it", ""):
        with pytest.raises(weft.Error, match="W301"):
            net.s.run(wrong)
        with pytest.raises(weft.Error, match="W301"):
            net.s.run(net.y, {wrong: V})
    with pytest.raises(weft.Error, match="W301: int can be neither fed nor fetched"):
        net.s.run(3)
    with pytest.raises(weft.Error, match="W301: x:0 is not in graph 'net'"):
        net.s.run(Net().x)
    with pytest.raises(weft.Error, match=r"W301: count.*/update is an operation"):
        net.s.run(net.y, {net.bump: V})
    with pytest.raises(weft.Error, match="W301: a session needs a graph"):
        Session()


def test_missing_feeds(net: Net) -> None:
    with pytest.raises(weft.Error, match="W302: placeholder 'x' is not fed") as caught:
        net.s.run(net.total)
    assert "add 'x:0': value to feed_dict, where value is f64[3]" in str(caught.value)
    with pytest.raises(weft.Error, match="W302"):
        net.s.run(net.z, {net.h: V})
    with pytest.raises(weft.Error, match="W302: placeholder 'x' is not fed, but it is fetched"):
        net.s.run(net.x)


def test_feeds_that_do_not_fit(net: Net) -> None:
    with pytest.raises(weft.Error, match=r"W303: x:0 is f64\[3\], got complex128\[3\]"):
        net.s.run(net.y, {net.x: V * 1j})
    with pytest.raises(weft.Error, match=r"W303: 'x' must be f64\[3\], .* 4"):
        net.s.run(net.y, {net.x: np.ones(4)})
    with pytest.raises(weft.Error, match="W303"):
        net.s.run(net.y, {net.x: np.ones((3, 1))})
    with pytest.raises(weft.Error, match="W303: x:0 is fed with a traced value"):
        net.s.run(net.y, {net.x: net.h})
    with pytest.raises(weft.Error, match="W303"):
        net.s.run(net.y, {net.x: ["a", "b", "c"]})
    # What loses nothing is converted: ints, lists, other memory.
    for given in ([1, 2, 3], V.astype(np.float32), V.astype(int), V[::-1].copy()[::-1]):
        np.testing.assert_array_equal(net.s.run(net.y, {net.x: given}), V * 2 + 1)


def test_integers_are_fed_where_they_fit() -> None:
    g = weft.Graph()
    with g.as_default():
        n = weft.placeholder("u32", (None,), name="n")
        doubled = n * 2
    s = Session(g)
    for good in ([1, 2], np.array([1, 2]), np.array([1, 2], np.uint64), [True, False], []):
        got = s.run(doubled, {n: good})
        np.testing.assert_array_equal(got, np.asarray(good, np.uint32) * 2)
        assert got.dtype == np.uint32
    for bad in ([-1], [2**32], np.array([-1]), [1.0], np.array([1.5]), ["1"], [None]):
        with pytest.raises(weft.Error, match=r"W303: n:0 is u32\[n_0\], got"):
            s.run(doubled, {n: bad})


def test_a_value_is_fed_once(net: Net) -> None:
    with pytest.raises(weft.Error, match="W301: x:0 is fed twice"):
        net.s.run(net.y, {net.x: V, "x:0": V})


# -- order and state ----------------------------------------------------------------------------


def test_control_dependencies_run_what_nobody_fetches() -> None:
    count, last = Variable(0), Variable(np.zeros(2))
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (2,), name="x")
        bump = count.assign_add(1)
        keep = last.assign(x)
        with weft.control_dependencies([bump, keep]):
            y = x + 1
            after = last * 1
        z = x + 2
    s = Session(g)
    s.run(z, {x: np.ones(2)})
    assert int(count) == 0
    s.run(y, {x: np.full(2, 4.0)})
    assert int(count) == 1
    np.testing.assert_array_equal(last.numpy(), [4, 4])
    np.testing.assert_array_equal(s.run(after, {x: np.full(2, 7.0)}), [7, 7])
    assert int(count) == 2


def test_names_come_from_scopes_variables_and_ops() -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (2,))
        with weft.name_scope("a"), weft.name_scope("b"):
            y = np.tanh(x)
            assert y.name == "a/b/y:0"
            assert np.tanh(x).name == "a/b/tanh:0"
            assert np.tanh(x).name == "a/b/tanh_1:0"
        w = weft.placeholder("f32", (2,), name="x")
        w2 = weft.placeholder("f32", (2,), name="x")
    assert (x.name, w.name, w2.name) == ("placeholder:0", "x:0", "x_1:0")


def test_callables(net: Net) -> None:
    call = net.s.make_callable([net.y, "layer1/h"], ["x:0"])
    for number in range(3):
        y, h = call(V + number)
        np.testing.assert_array_equal(y, (V + number) * 2 + 1)
        np.testing.assert_array_equal(h, (V + number) * 2)
    two = net.s.make_callable(net.total, [net.h, net.x])
    assert two(V, V) == (V + 1).sum()
    bump = net.s.make_callable(net.bump)
    assert bump() is None and int(net.count) == 1
    with pytest.raises(weft.Error, match=r"W302: 1 values are fed \(x:0\), got 2"):
        call(V, V)
    with pytest.raises(weft.Error, match="W301"):
        net.s.make_callable(net.y, ["no"])


def test_two_sessions_share_variables_and_nothing_else(net: Net) -> None:
    other = Session(net.g)
    net.s.run(net.bump)
    other.run(net.bump)
    assert net.s.run(net.count) == other.run(net.count) == 2
    with Session(net.g) as third:
        np.testing.assert_array_equal(third.run(net.y, {net.x: V}), V * 2 + 1)
    np.testing.assert_array_equal(net.s.run(net.y, {net.x: V}), V * 2 + 1)


def test_a_graph_may_grow_after_a_run(net: Net) -> None:
    net.s.run(net.y, {net.x: V})
    with net.g.as_default():
        w = net.y * net.y
        more = weft.placeholder("f64", (3,), name="more")
        mixed = w + more
    np.testing.assert_array_equal(net.s.run("w", {net.x: V}), (V * 2 + 1) ** 2)
    np.testing.assert_array_equal(net.s.run(mixed, {net.x: V, "more": V}), (V * 2 + 1) ** 2 + V)
    outside = mixed * 2  # an operation on a value of the graph grows it, too
    np.testing.assert_array_equal(net.s.run(outside, {mixed: V}), V * 2)


def test_steps_share_variables(net: Net) -> None:
    W = Variable(np.ones((2, 3)))
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64[b,2]", name="x")
        y = weft.placeholder("f64[b,3]", name="y")
        error = x @ W - y
        loss = np.sum(error**2)
        train = W.assign_sub(0.01 * (x.T @ error))
    s = Session(g)
    rows, want = RNG.normal(size=(20, 2)), RNG.normal(size=(2, 3))
    losses = []
    for _ in range(200):
        s.run(train, {x: rows, y: rows @ want})
        losses.append(float(s.run(loss, {x: rows, y: rows @ want})))
    assert losses[-1] < 1e-6 * losses[0]
    np.testing.assert_allclose(W.numpy(), want, atol=1e-3)
    compiled = weft.compile(lambda: W * 2)  # the same variable in a compiled function
    np.testing.assert_array_equal(compiled(), W.numpy() * 2)


def test_variables_are_fetched_like_values(net: Net) -> None:
    count, result = net.s.run([net.count, net.y], {net.x: V})
    assert (count, net.s.run(net.count)) == (0, 0)
    np.testing.assert_array_equal(result, V * 2 + 1)


def test_unknown_batch_sizes_compile_once() -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (None, 4), name="x")
        y = weft.nn.softmax(x @ np.ones((4, 5), np.float32))
        mean = y.mean(axis=0)
    s = Session(g)
    for rows in (1, 0, 7, 300):
        v = RNG.normal(size=(rows, 4)).astype(np.float32)
        got = s.run([y, mean], {x: v})
        assert got[0].shape == (rows, 5)
        if rows:
            np.testing.assert_allclose(got[1], np.full(5, 0.2), rtol=1e-5)
    assert len(s._steps.compiled) == 1


def test_unknown_sizes_follow_from_what_is_fed() -> None:
    """An intermediate of 2*n rows is fed, and n is nowhere told."""
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", ("n",), name="x")
        twice = np.concatenate([x, x])
        pairs = twice.reshape(-1, 2).sum(axis=1)
    s = Session(g)
    np.testing.assert_array_equal(s.run(pairs, {x: [1.0, 2, 3]}), [3, 4, 5])
    np.testing.assert_array_equal(s.run(pairs, {twice: [1.0, 2, 3, 4]}), [3, 7])
    with pytest.raises(weft.Error, match="W105: dim 2\\*n of argument twice is 3"):
        s.run(pairs, {twice: [1.0, 2, 3]})


def test_failed_steps_change_nothing() -> None:
    total = Variable(np.zeros(2))
    g = weft.Graph()
    with g.as_default():
        index = weft.placeholder("i64", (2,), name="index")
        table = weft.placeholder("f64", (3,), name="table")
        add = total.assign_add(table[index])
    s = Session(g)
    s.run(add, {index: [0, 2], table: V})
    with pytest.raises(IndexError, match="W124") as caught:
        s.run(add, {index: [0, 3], table: V})
    assert "total.assign_add(table[index])" in str(caught.value)
    np.testing.assert_array_equal(total.numpy(), [1, 3])


def test_sessions_serve_several_threads(net: Net) -> None:
    def work(at: int) -> None:
        for number in range(50):
            v = V * at + number
            fetch = (net.y, net.z, net.total, net.h)[number % 4]
            want = (v * 2 + 1, np.exp(v), (v * 2 + 1).sum(), v * 2)[number % 4]
            np.testing.assert_allclose(net.s.run(fetch, {net.x: v}), want)
            net.s.run(net.bump)

    in_threads(*(partial(work, at) for at in range(4)))
    assert int(net.count) == 200


def test_gradients_and_optimizers_are_parts_of_the_graph() -> None:
    W = Variable(np.zeros((2, 1)))
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (None, 2), name="x")
        gradient = weft.grad(lambda w: np.sum((x @ w - 1.0) ** 2))(W)
        train = W.assign(W - 0.1 * gradient)
    s = Session(g)
    v = np.array([[1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_allclose(s.run(gradient, {x: v}), [[-2.0], [-4.0]])
    for _ in range(100):
        s.run(train, {x: v})
    np.testing.assert_allclose(v @ W.numpy(), np.ones((2, 1)), atol=1e-6)


def test_closing_forgets_programs(net: Net) -> None:
    net.s.run(net.y, {net.x: V})
    net.s.close()
    assert net.s._steps.compiled == {}
    np.testing.assert_array_equal(net.s.run(net.y, {net.x: V}), V * 2 + 1)



@pytest.mark.parametrize("rows", [0, 1, 2, 5])
def test_a_part_of_a_placeholder_can_be_fed_without_it(rows: int) -> None:
    """Its size clamps, as that of ``x[2:]`` does; one size of the whole that gives it will do."""
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (None, 2), name="x")
        rest, first, turned = x[2:], x[:6], np.concatenate([x[1:], x[:1]])
        results = {rest: rest[1:] * 2, first: np.sum(first * first, 1), turned: turned[::-1] + 1}
    s = weft.Session(g)
    part = np.arange(2.0 * rows).reshape(rows, 2)
    wanted = [part[1:] * 2, np.sum(part * part, 1), part[::-1] + 1]
    for (fed, result), value in zip(results.items(), wanted, strict=True):
        np.testing.assert_array_equal(s.run(result, {fed: part}), value)


def test_a_part_that_is_fed_must_fit_the_whole() -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (None,), name="x")
        first, rest = x[:3], x[2:]
        both = np.sum(x) + np.sum(rest)
    s = weft.Session(g)
    assert s.run(both, {x: np.ones(5), rest: np.ones(3)}) == 8
    for result, feeds in ((both, {x: np.ones(5), rest: np.ones(4)}),
                          (np.sum(first), {first: np.ones(4)})):
        with pytest.raises(weft.Error, match="W105"):
            s.run(result, feeds)


def test_steps_are_found_again_by_what_is_asked_now() -> None:
    """Not by nests that have changed since, nor by objects that stood where others stand now."""
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f32", (3,), name="x")
        values = [x * k for k in range(40)]
    session, fed = weft.Session(graph), np.ones(3, np.float32)
    nest = {"a": [values[1]], "b": "x:0"}
    assert session.run(nest, {x: fed})["a"][0][0] == 1
    nest["a"] = [values[2], values[3]]  # type: ignore[assignment]
    assert [part[0] for part in session.run(nest, {x: fed})["a"]] == [2, 3]
    names = [value.name for value in values]
    for _ in range(3):
        for at, name in enumerate(names):
            assert session.run([name], {"x": fed})[0][0] == at
    step = session.make_callable([values[5], {"y": values[4]}], [x])
    five, four = step(fed)
    assert five[0] == 5 and four["y"][0] == 4
    with pytest.raises(Error, match="W302: 1 values are fed"):
        step()
    with pytest.raises(Error, match="W303"):
        step(np.ones(4, np.float32))
    assert step([1, 2, 3])[0].tolist() == [5, 10, 15]


def test_what_is_needed_is_fed_where_no_feeds_are_named() -> None:
    g = weft.Graph()
    with g.as_default():
        v = weft.Variable(2.0, name="scale")
        y, x = (weft.placeholder("f64", (2,), name=name) for name in "yx")
        weft.placeholder("f64", (), name="unused")
        z = x * v + np.array([1.0, 2.0]) - y
    s = weft.Session(g)
    lowered = s.lower(z)
    assert lowered.as_text("plan") == s.lower(z, [y, x]).as_text("plan")
    np.testing.assert_array_equal(lowered.compile()([3.0, 3.0], [1.0, 1.0]), [0.0, 1.0])
    assert s.explain([z, v]) == s.explain([z, v], [y, x]) != ""
    with pytest.raises(weft.Error, match="W302"):
        s.lower(z, [y])


@pytest.mark.parametrize("given", [None, "text", {"a": 1}, object()])
def test_what_is_no_number_is_not_fed(net: Net, given: Any) -> None:
    kind = type(given).__name__
    with pytest.raises(Error, match=f"W303: x:0 is f64\\[3\\], got {kind}(?s:.*)fix: give numbers"):
        net.s.run(net.y, {net.x: given})


def test_feeds_are_a_dict_and_those_of_a_callable_a_list(net: Net) -> None:
    assert net.s.run(net.y, {net.x: V})[0] == 3
    for feeds in (V, [net.x, V], [net.x], "x", 3):
        with pytest.raises(Error, match="W303: feed_dict is a dict, not"):
            net.s.run(net.y, feeds)  # type: ignore[arg-type]
    for listed in (net.x, "x:0", 3, net.count):
        for call in (net.s.make_callable, net.s.lower, net.s.explain):
            with pytest.raises(Error, match="W301: feeds is a list of what is fed, not"):
                call(net.y, listed)
    with pytest.raises(Error, match="W305: trace is a weft"):
        net.s.run(net.bump, trace=3)  # type: ignore[arg-type]
    assert net.count.numpy() == 0


@pytest.mark.parametrize("make", [
    lambda: weft.Graph(3), lambda: weft.Variable(1.0, name=3), lambda: weft.group(name=3),
    lambda: weft.FIFOQueue(2, "f64[]", name=3), lambda: weft.name_scope(3).__enter__(),
    lambda: weft.placeholder("f64", name=3), lambda: weft.data.from_arrays(V).input(3),
])
def test_names_are_text(make: Any) -> None:
    with weft.Graph().as_default(), pytest.raises(Error, match=r"W112: the name of a .* is text"):
        make()


@pytest.mark.parametrize("devices", [(0,), None, "cpu:", ("cpu:0", ""), 3])
def test_what_is_no_device(devices: Any) -> None:
    with pytest.raises(Error, match="W401"):
        Session(weft.Graph(), devices=devices)
    if devices is not None and not isinstance(devices, tuple):
        with pytest.raises(Error, match="W401: not a device"), weft.device(devices):
            pass


def test_targets_are_names() -> None:
    for make in (partial(Session, weft.Graph()), partial(weft.compile, np.tanh)):
        with pytest.raises(Error, match="W402: target=3 is no name of a CPU"):
            make(target=3)


def test_nests_that_never_end(net: Net) -> None:
    deep: Any = net.y
    for _ in range(5000):
        deep = [deep]
    endless: list[Any] = [net.y]
    endless.append(endless)
    for nest in (deep, endless):
        for call in (net.s.run, weft.compile(np.sum)):
            with pytest.raises(Error, match="W112: a nest is too deep") as caught:
                call(nest)
            assert caught.value.locs


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i32"])
def test_complex_numbers_are_fed_to_complex_values_only(dtype: str) -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder(dtype, (2,), name="x")
        y = x * 1
    session = weft.Session(graph)
    for given in ([1j, 2], np.array([1, 2], np.complex64)):
        with pytest.raises(weft.Error, match="W303: x:0 is"):
            session.run(y, {x: given})
    held = weft.Variable(np.zeros(2).astype(as_dtype(dtype).numpy))
    with pytest.raises(weft.Error, match="W304"):
        held.assign([1j, 2])


def test_a_whole_type_has_its_shape() -> None:
    with weft.Graph().as_default():
        with pytest.raises(Error, match="W112: the placeholder's type"):
            weft.placeholder("f32[3]", "x")
        assert weft.placeholder("f32[3]", name="x").name == "x:0"
