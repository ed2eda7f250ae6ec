"""Arrays made in the traced function and written into, views and all: what NumPy has, with the
function compiled as it stands."""

from __future__ import annotations

import builtins
import functools
import sys
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import weft
from weft.ir.diagnose import Error, TracerError

X = np.random.default_rng(0).normal(size=8)


def one_by_one(x: Any) -> Any:
    o = np.zeros(8)
    for i in range(8):
        o[i] = x[i] * i
    return o


def recurrence(x: Any) -> Any:
    o = np.empty(8)
    o[0] = x[0]
    for i in range(1, 8):
        o[i] = o[i - 1] * 0.5 + x[i]
    return o


def views(x: Any) -> Any:
    o = np.zeros((4, 2))
    column, back, turned = o[:, 0], o[::-1], o.T
    column[0], back[0, 1], turned[1, 2] = x[0], x[1], x[2]
    o[3, 0] += 5
    return o, column, back, turned, o.ravel(), o.sum(), o.mean(axis=0)


def of_traced_items(x: Any) -> Any:
    c, s = np.cos(x[0]), np.sin(x[0])
    turn = np.array([[c, -s], [s, c]])
    return turn @ np.array([1.0, 2.0]), np.asarray(x) + 1, np.ascontiguousarray(x), np.full(3, x[0])


def plain_all_along(x: Any) -> Any:
    """Indices, sizes and conditions: what never meets a traced value has numbers."""
    k, places = np.arange(4), np.zeros(4, int)
    places[1] = 2
    y = x[places] if places[1] == 2 else x
    weights = np.ones(3)
    weights *= 2
    return y * int(places.sum()), x[:4] @ k, weights + x[:3]


def in_place(x: Any) -> Any:
    w, out = np.ones(8), np.empty(8)
    w -= x
    w += np.arange(8)
    np.add(x, w, out=out)
    out[2:4] = 0
    return w, out


def counted(x: Any) -> Any:
    sums = np.zeros(4)
    np.add.at(sums, np.array([0, 1, 1, 3, 0, 2, 2, 2]), x)
    return sums


def reshaped(x: Any) -> Any:
    a = np.zeros((2, 3, 2))
    b, c = a.reshape(6, 2), a[1]
    b[4] = x[:2]
    c[0, 1] = x[3]
    d = a.transpose(2, 0, 1)
    return a, b, c, d, a[..., 0], d[1]


def by_rows(x: Any) -> Any:
    o = np.zeros((3, 2))
    for k, row in enumerate(o):
        row[:] = x[k]
    a, b, c = o
    return a + b, c, o, sum([x, np.ones(8)])


def copied(x: Any) -> Any:
    o, p = np.zeros(8), np.zeros((2, 8))
    np.copyto(o, x)
    p[0] = o
    p[1, :] = x
    q = p.copy()
    q[0] = 0
    o.fill(x[1])
    return o, p, q, len(p), p.shape, p.T.shape


def matrices(x: Any) -> Any:
    a = np.eye(2)
    a[0, 1] = x[0]
    b = a.copy()
    b[1] = 0
    return a @ b, a, b, np.linalg.norm(a), a.max(axis=0), np.stack([a, b]), np.where(a > 0, a, b)


def operators(x: Any) -> Any:
    o = np.zeros(8)
    o[1] = x[1]
    return o > 0, o == 0, -o, abs(o), o ** 2, 2 ** o, 1 / (o + 3), o // 2, o % 2, x - o, o - x


def nested(x: Any) -> Any:
    o = np.zeros(3)
    held = {"a": o, "b": [o[:2]]}
    o[:] = x[:3]
    return held["a"], held["b"][0]


def masked(x: Any) -> Any:
    o = np.zeros(8)
    o[x > 0] = 1
    o[x < 0] = x[0]
    return o


def diagonals(x: Any) -> Any:
    m = np.zeros((3, 3))
    m[np.arange(3), np.arange(3)] = x[0]
    m.ravel()[::4] = x[1]
    return m


def integers(x: Any) -> Any:
    o = np.zeros(4, dtype=np.int32)
    o[1:3] = (x[:2] > 0).astype(np.int32)
    o += 1
    return o, o.dtype.itemsize


FUNCTIONS = [one_by_one, recurrence, views, of_traced_items, plain_all_along, in_place, counted,
             reshaped, by_rows, copied, matrices, operators, nested, masked, diagonals, integers]


def agree(found: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            agree(one, other)
    else:
        assert np.asarray(found).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_as_numpy_has_it(function: Callable[..., Any]) -> None:
    agree(weft.compile(function)(X), function(X))


@pytest.mark.parametrize("function", [one_by_one, recurrence, in_place], ids=lambda f: f.__name__)
def test_gradients_go_through_writes(function: Callable[..., Any]) -> None:
    def loss(x: Any) -> Any:
        result = function(x)
        return np.sum((result[1] if isinstance(result, tuple) else result) ** 2)

    found = weft.compile(weft.grad(loss))(X)
    for at in range(8):
        step = np.zeros(8)
        step[at] = 1e-6
        assert found[at] == pytest.approx((loss(X + step) - loss(X - step)) / 2e-6, rel=1e-6)


# -- views ---------------------------------------------------------------------------------------

VIEWS: list[Callable[[Any], Any]] = [
    lambda a: a[0], lambda a: a[-1], lambda a: a[::-1], lambda a: a[1:], lambda a: a[:, ::2],
    lambda a: a[..., 0], lambda a: a.T, lambda a: a[None], lambda a: a.reshape(-1),
    lambda a: a.swapaxes(0, -1), lambda a: a[::-2], lambda a: np.expand_dims(a, 1),
    lambda a: np.moveaxis(a, 0, -1), lambda a: a.squeeze(), lambda a: a[..., ::-1],
    lambda a: np.flip(a), lambda a: a[:1], lambda a: np.atleast_2d(a)]


def viewed(array: Any, steps: list[int]) -> list[Any]:
    found = [array]
    for step in steps:
        base = found[-1]
        try:
            view = VIEWS[step](base) if base.ndim and base.size else base
        except (IndexError, ValueError):  # too few dims
            continue
        if isinstance(view, np.ndarray) and view.ndim and np.may_share_memory(view, array):
            found.append(view)
    return found


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, len(VIEWS) - 1), max_size=4), st.integers(0, 4), st.integers(0, 4))
def test_writes_reach_views_and_their_bases(steps: list[int], first: int, second: int) -> None:
    """Of any view of a view: through one, then through another."""
    def run(x: Any) -> Any:
        array = np.arange(24.0).reshape(2, 3, 4).copy()
        found = viewed(array, steps)
        found[first % len(found)][0] = x[0]
        found[second % len(found)][-1] += x[1]
        return tuple(each + 0 for each in found)

    want = run(X)
    try:
        got = weft.compile(run)(X)
    except TracerError as problem:
        assert "neither a part of its axes nor a run" in str(problem)
        return
    agree(got, want)


def test_a_view_that_no_index_describes_is_refused() -> None:
    def run(x: Any) -> Any:
        o = np.zeros((4, 3))
        odd = o[:, :2].reshape(2, 2, 2)[:, 0]
        o[0] = x[:3]
        return odd

    agree(weft.compile(run)(X), run(X))


# -- NumPy itself stays as it is -----------------------------------------------------------------


def test_nothing_is_patched() -> None:
    """Neither NumPy nor what a user has put there, while a function is traced and after it."""
    before, seen = np.zeros, list[bool]()

    def mine(*args: Any) -> None:
        seen.append(True)

    def traced(x: Any) -> Any:
        made = one_by_one(x)
        worker = threading.Thread(target=lambda: seen.append(
            sys.modules["numpy"].zeros is before and builtins.print is mine))
        worker.start()
        worker.join()
        return made

    printed = builtins.print
    builtins.print = mine
    try:
        weft.compile(traced)(X)
        assert builtins.print is mine and seen == [True]
    finally:
        builtins.print = printed


def test_a_name_of_ones_own_for_what_makes_arrays() -> None:
    make = np.zeros

    def function(x: Any) -> Any:
        y = make(3)
        y[1] = x[0]
        return y

    np.testing.assert_array_equal(weft.compile(function)(X), [0, X[0], 0])


def test_other_threads_have_numpys() -> None:
    found: list[Any] = []

    def traced(x: Any) -> Any:
        worker = threading.Thread(target=lambda: found.append(np.zeros(3)))
        worker.start()
        worker.join()
        y = np.zeros(3)
        y[0] = x[0]
        return y

    agree(weft.compile(traced)(X), [X[0], 0, 0])
    assert type(found[0]) is np.ndarray and not found[0].any()


def test_traces_in_traces_and_in_threads() -> None:
    inner = weft.compile(recurrence)
    results: list[Any] = []

    def work() -> None:
        results.append(weft.compile(lambda x: inner(x) + recurrence(x))(X))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for result in results:
        np.testing.assert_allclose(result, 2 * recurrence(X))
    assert len(results) == 4 and type(np.zeros(1)) is np.ndarray


def test_arrays_of_the_caller_stay_as_they_are() -> None:
    outside = np.zeros(8)

    def write(x: Any) -> Any:
        outside[0] = x[0]
        return outside

    def alias(x: Any) -> Any:
        same = np.asarray(outside)
        same[0] = x[0]
        return same

    def copy(x: Any) -> Any:
        mine = np.array(outside)
        mine[0] = x[0]
        return mine

    for function in (write, alias):
        with pytest.raises(Error, match="W203"):
            weft.compile(function, inout="error")(X)
    assert weft.compile(copy)(X)[0] == X[0]
    assert not outside.any()


def test_a_buffer_of_another_trace_is_an_array_from_around() -> None:
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(functools.partial(np.sum, np.zeros(8)))  # in which nobody can put another
        return x

    def use(x: Any) -> Any:
        kept[0].args[0][0] = x[0]
        return kept[0].args[0]

    weft.compile(keep)(X)
    written = weft.compile(use)(X)
    np.testing.assert_array_equal(written, [X[0], *[0] * 7])
    kept[0].args[0][0] = 2  # plain numbers go on
    assert kept[0]() == 2


def test_what_was_used_before_a_plain_write_keeps_its_numbers() -> None:
    def run(x: Any) -> Any:
        o = np.arange(8.0)
        y = x + o
        o[0] = 100
        z = x + o
        o[1] = x[0]
        return y, z, o

    agree(weft.compile(run)(X), run(X))


def test_variables_are_written_into_buffers() -> None:
    v = weft.Variable(np.array([1.0, 2.0]), name="v")

    @weft.compile
    def run(x: Any) -> Any:
        o, q = np.zeros((3, 2)), np.ones(2)
        o[0], o[1] = v, x
        q += v
        return o, np.array([v, x]), q

    for value in (np.array([1.0, 2.0]), np.array([5.0, 6.0])):
        v.assign(value)
        o, pair, q = run(X[:2])
        np.testing.assert_array_equal(o, [value, X[:2], [0, 0]])
        np.testing.assert_array_equal(pair, [value, X[:2]])
        np.testing.assert_array_equal(q, value + 1)


def test_control_flow_takes_buffers() -> None:
    def run(x: Any) -> Any:
        o = np.zeros(8)
        o[0] = x[0]
        first = weft.cond(x[0] > 0, lambda o: o + 1, lambda o: o - 1, o)
        last, _ = weft.scan(lambda c, v: (c * 0.5 + v, c), o[0], o + x)
        return first, last

    first, last = weft.compile(run)(X)
    o = np.zeros(8)
    o[0] = X[0]
    np.testing.assert_allclose(first, o + 1 if X[0] > 0 else o - 1)
    c = o[0]
    for v in o + X:
        c = c * 0.5 + v
    assert last == pytest.approx(c)


def test_symbolic_sizes() -> None:
    def run(x: Any) -> Any:
        o = np.zeros(x.shape)
        o[1:] = x[:-1]
        p = np.ones((x.shape[0], 2))
        p[:, 0] = x
        return o, p

    compiled = weft.compile(run, dynamic={"x": {0: "n"}})
    for size in (1, 2, 7):
        agree(compiled(X[:size]), run(X[:size]))
    assert len(compiled.signatures) == 1


def test_arrays_by_their_class() -> None:
    """``np.ndarray(shape)`` makes an array to be written into, as ``np.empty`` does."""
    def function(x: Any) -> Any:
        made = np.ndarray((3,), dtype=x.dtype)
        whole = np.ndarray(shape=x.shape)
        made[:2] = x[:2]
        made[2] = 1
        for k in range(3):
            whole[k] = x[k] * made[k]
        assert isinstance(made, np.ndarray)
        return made, whole

    x = np.arange(3.0)
    for found, wanted in zip(weft.compile(function)(x), function(x), strict=True):
        np.testing.assert_array_equal(found, wanted)
    data = np.arange(4.0)
    np.testing.assert_array_equal(
        weft.compile(lambda x: x + np.ndarray((3,), float, data))(x), x + data[:3])


@pytest.mark.parametrize("make, copies", [
    (lambda: np.zeros(1 << 20), 1), (lambda: np.full((1 << 10, 1 << 10), 2.0).T, 1),
    (lambda: np.arange(float(1 << 20)), 2)])
def test_a_trace_needs_little_more_memory_than_the_arrays(make: Any, copies: int) -> None:
    """One of many numbers is a constant besides."""
    @weft.compile
    def run(x: Any) -> Any:
        y = make()
        y[0] = x
        return y

    run.trace(1.0)  # what is loaded and kept for ever
    tracemalloc.start()
    try:
        run.trace(1.0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (copies + 0.1) * (8 << 20)


def test_a_function_of_numpys_that_the_user_has_replaced_stays_so(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    zeros = np.zeros

    def mine(*args: Any, **options: Any) -> Any:
        return zeros(*args, **options) + 1

    monkeypatch.setattr(np, "zeros", mine)
    agree(weft.compile(lambda x: x + np.zeros(8))(X), X + 1)
    assert np.zeros is mine
