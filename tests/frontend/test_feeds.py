"""Feeds of graphs: sizes that they tell, values of equal expressions, numbers that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft

DEVICES = [("cpu:0",), ("cpu:0", "cpu:1")]


def sized() -> tuple[weft.Graph, dict[str, Any]]:
    """A graph of values whose sizes are those of its placeholders."""
    g = weft.Graph("sized")
    with g.as_default():
        x = weft.placeholder("f64[b,3]", name="x")
        y = weft.placeholder("f64[2*b + c]", name="y")
        z = weft.placeholder("f64[c]", name="z")
        values = {"x": x, "y": y, "z": z, "rows": x.sum(axis=1),
                  "ones": weft.numpy.ones(x.shape[0]),
                  "count": x.shape[0] * 1.0, "more": weft.numpy.zeros(z.shape[0]) + 2,
                  "chosen": weft.cond(z.sum() > 0, lambda: weft.numpy.ones(x.shape[0]),
                                      lambda: np.zeros(x.shape[0]))}
        values["added"] = values["rows"] + values["ones"]
    return g, values


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize(("fetch", "feeds", "missing"), [
    ("ones", (), "x"), ("count", (), "x"), ("more", (), "z"), ("more", ("x",), "z"),
    ("chosen", ("z",), "x"), ("ones", ("y",), "x"), (["ones", "more"], ("z",), "x")])
def test_a_size_that_nothing_tells(
    fetch: Any, feeds: tuple[str, ...], missing: str, devices: tuple[str, ...],
) -> None:
    """W105 names the placeholder, and feeding it makes the step run."""
    g, values = sized()
    given = {"x": np.ones((4, 3)), "y": np.ones(10), "z": np.ones(2)}
    session = weft.Session(g, devices=devices)
    asked = [values[name] for name in fetch] if isinstance(fetch, list) else values[fetch]
    with pytest.raises(weft.Error, match=r"W105: .* no fed value tells") as caught:
        session.run(asked, {values[name]: given[name] for name in feeds})
    assert isinstance(caught.value, ValueError)
    assert f"add '{missing}:0': value to feed_dict" in str(caught.value)
    assert any(loc.file == __file__ for loc in caught.value.locs)
    told = {values[name]: given[name] for name in (*feeds, missing)}
    want = {"ones": np.ones(4), "count": 4.0, "more": np.full(2, 2.0), "chosen": np.ones(4)}
    found = session.run(asked, told)
    for name, array in zip(fetch if isinstance(fetch, list) else [fetch],
                           found if isinstance(fetch, list) else [found], strict=True):
        np.testing.assert_array_equal(array, want[name])


def test_sizes_that_something_else_tells() -> None:
    g, values = sized()
    session = weft.Session(g)
    assert session.run(values["added"], {values["rows"]: [1.0, 2.0]}).tolist() == [2, 3]
    assert session.run(values["added"], {values["ones"]: [1.0, 2.0],
                                         values["rows"]: [1.0, 2.0]}).tolist() == [2, 4]
    # 2*b + c is 10 where c is 2.
    given = {values["y"]: np.ones(10), values["z"]: np.ones(2)}
    assert session.run(values["ones"], given).tolist() == [1, 1, 1, 1]


def test_what_is_needed_has_what_tells_the_sizes() -> None:
    g, values = sized()
    lowered = weft.Session(g).lower(values["ones"]).compile()
    assert lowered(np.ones((2, 3))).tolist() == [1, 1]


def test_sizes_of_queues_and_of_values_need_no_feed() -> None:
    g, q = weft.Graph(), weft.FIFOQueue(5, "f64[]")
    q.enqueue_many([1.0, 2.0, 3.0])
    with g.as_default():
        rows = q.dequeue_up_to(2)
        total = rows.sum() + weft.numpy.ones(rows.shape[0]).sum()
        x = weft.placeholder("f64[4]", name="x")
        counted = weft.numpy.zeros(np.sum(x > 0)) + 1
    session = weft.Session(g)
    assert session.run(total) == 5
    assert session.run(counted, {x: [1, -1, 1, 1]}).tolist() == [1, 1, 1]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("apart", [False, True])
def test_a_fed_value_is_not_seen_by_its_equal(devices: tuple[str, ...], apart: bool) -> None:
    """Two values of one expression are two values: which of them is fed matters."""
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        with weft.name_scope("one"):
            one = np.tanh(x) * 2
        with weft.device(devices[-1] if apart else devices[0]), weft.name_scope("two"):
            two = np.tanh(x) * 2
        both = one - two
        last = both + one
    given, session = np.arange(3.0), weft.Session(g, devices=devices)
    plain = np.tanh(given) * 2
    fed = np.array([5.0, 6, 7])
    for _ in range(2):  # from what is compiled, too
        np.testing.assert_allclose(session.run([one, two, both], {x: given}),
                                   [plain, plain, 0 * plain])
        np.testing.assert_allclose(session.run([one, two, both], {x: given, one: fed}),
                                   [fed, plain, fed - plain])
        np.testing.assert_allclose(session.run([one, two, both], {x: given, two: fed}),
                                   [plain, fed, plain - fed])
        np.testing.assert_allclose(session.run(two, {x: given, one: fed}), plain)
        np.testing.assert_allclose(session.run([last, two], {x: given, one.name: fed}),
                                   [2 * fed - plain, plain])
        np.testing.assert_allclose(session.run(both, {one: fed, two: fed}), 0 * fed)
        inner = session.run([one, two], {x: given, "one/tanh:0": fed})
        np.testing.assert_allclose(inner, [2 * fed, plain])


def test_a_fed_constant_is_not_seen_by_its_equal() -> None:
    g = weft.Graph()
    with g.as_default():
        v = weft.Variable(np.ones(2), name="v")
        one, two = v + 0, v + 0
        total = one * 10 + two
    session = weft.Session(g)
    assert session.run([total, two], {one: [5.0, 6.0]})[0].tolist() == [51, 61]
    assert session.run([total, one], {two: [5.0, 6.0]})[0].tolist() == [15, 16]
    assert session.run(total).tolist() == [11, 11]


@pytest.mark.parametrize(("dtype", "value", "fits"), [
    ("f32", 1e300, False), ("f32", -1e39, False), ("f32", 1e38, True), ("f32", np.inf, True),
    ("f32", np.nan, True), ("f16", 65520.0, False), ("f16", 1e4, True), ("f16", 10**6, False),
    ("bf16", 1e39, False), ("bf16", 1e38, True), ("c64", 1e300j, False), ("c64", 1e300, False),
    ("c64", 1j, True), ("f64", 1e300, True), ("i8", 300, False), ("i8", 100, True)])
def test_numbers_too_large_are_refused(dtype: str, value: Any, fits: bool) -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder(dtype, (2,), name="x")
        y = x + 0
    for session in (weft.Session(g), weft.Session(g, devices=("cpu:0", "cpu:1"))):
        given = np.array([value, 1])
        if fits:
            found = session.run(y, {x: given})
            np.testing.assert_array_equal(found, given.astype(found.dtype))
            continue
        for wrong in (given, [value, 1]):
            with pytest.raises(weft.Error, match=f"feed numbers that {dtype} holds"):
                session.run(y, {x: wrong})


@pytest.mark.parametrize(("dtype", "value", "fits"), [
    ("i8", 300, False), ("i8", -128, True), ("u8", -1, False), ("f32", 1e300, False),
    ("f32", np.inf, True), ("f16", 7e4, False), ("i64", 2**62, True), ("u8", 255, True),
    ("u8", 256, False)])
def test_queues_take_numbers_that_they_hold(dtype: str, value: Any, fits: bool) -> None:
    """Python's numbers are converted, as those of feeds are."""
    one, many = (weft.FIFOQueue(5, f"{dtype}[]") for _ in range(2))
    if fits:
        one.enqueue(value)
        many.enqueue_many([1, value])
        assert one.dequeue() == value and many.dequeue_many(2).tolist() == [1, value]
        return
    for wrong in (lambda: one.enqueue(value), lambda: many.enqueue_many([1, value])):
        with pytest.raises(weft.Error, match="W305: queue"):
            wrong()
    assert one.size() == many.size() == 0


@pytest.mark.parametrize("dtype", ["i8", "f32", "f64"])
def test_numbers_of_more_than_64_bits_are_refused(dtype: str) -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder(dtype, (), name="x")
    for value in (2**70, 10**400):
        with pytest.raises(weft.Error, match=f"give a number that {dtype} holds"):
            weft.Session(g).run(x, {x: value})


def test_nothing_can_be_fetched() -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.Variable(np.ones(2), name="x") + 1
    session = weft.Session(g)
    for fetches in (None, [x, None], {"a": (x, None)}):
        with pytest.raises(weft.Error, match="W301: None is fetched"):
            session.run(fetches)
        with pytest.raises(weft.Error, match="W301: None is fetched"):
            session.make_callable(fetches)
    assert session.run([]) == [] and session.run({}) == {}
