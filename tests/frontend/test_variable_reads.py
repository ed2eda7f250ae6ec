"""Every way to read a variable in traced code is a read of that moment, and has a gradient: none is
a constant of the time of tracing."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Variable

Read = Callable[[Any], Any]
READS: tuple[tuple[str, Read], ...] = (
    ("itself", lambda v: v), ("value", lambda v: v.value), ("numpy", lambda v: v.numpy()),
    ("all", lambda v: v[...]), ("asarray", lambda v: np.asarray(v)),
    ("array", lambda v: np.array(v)), ("copy", lambda v: np.copy(v)),
    ("slice", lambda v: v.value[:]), ("transpose", lambda v: v.value.T),
    ("astype", lambda v: v.value.astype(np.float64)), ("stack", lambda v: np.stack(list(v))),
    ("items", lambda v: np.array([float(v[0]), float(v.value[1])])),
    ("attribute", lambda v: operator.attrgetter("value")(v)),
)
reads = pytest.mark.parametrize("read", [read for _, read in READS], ids=[n for n, _ in READS])


@reads
def test_each_call_reads_what_the_variable_has_then(read: Read) -> None:
    v = Variable(np.array([1.0, 2.0]))
    step = weft.compile(lambda x: read(v) * x)
    assert np.array_equal(step(2.0), [2, 4])
    v.assign(np.array([3.0, 4.0]))
    assert np.array_equal(step(2.0), [6, 8])


@pytest.mark.parametrize("read", [read for name, read in READS if name != "items"])
def test_a_graph_reads_it_too_and_knows_its_gradient(read: Read) -> None:
    v, g = Variable(np.array([1.0, 2.0])), weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", name="x")
        y = weft.compile(read)(v) * x
        by, = weft.gradients(np.sum(y * y), [v])
    session = weft.Session(g)
    for values in ([1.0, 2.0], [3.0, 4.0]):
        v.assign(np.array(values))
        found, slope = session.run([y, by], {x: 2.0})
        assert np.array_equal(found, 2 * np.array(values))
        assert np.array_equal(slope, 8 * np.array(values))


@reads
def test_minimize_moves_what_is_read(read: Read) -> None:
    v = Variable(np.array([1.0, 2.0]))
    weft.optim.SGD(0.1).minimize(lambda: np.sum(read(v) ** 2), [v])
    np.testing.assert_allclose(v.value, [0.8, 1.6])


@reads
def test_training_by_gradients_of_what_is_read(read: Read) -> None:
    w, b = Variable(np.array([1.0, 2.0])), Variable(np.array([0.25, 0.25]))

    def loss(params: list[Any], x: Any) -> Any:
        return (np.sum(params[0] * x) + np.sum(params[1])) ** 2

    @weft.compile
    def step(x: Any) -> Any:
        value, grads = weft.value_and_grad(loss)([read(v) for v in (w, b)], x)
        for v, grad in zip((w, b), grads, strict=True):
            v.assign_sub(0.01 * grad)
        return value

    own_w, own_b = w.value.copy(), b.value.copy()
    for at in range(3):
        x = np.array([1.0, -1.5 + at])
        rest = np.sum(own_w * x) + np.sum(own_b)
        np.testing.assert_allclose(step(x), rest**2)
        own_w, own_b = own_w - 0.02 * rest * x, own_b - 0.02 * rest
        np.testing.assert_allclose(w.value, own_w)
        np.testing.assert_allclose(b.value, own_b)


def test_numbers_of_python() -> None:
    v = Variable(2.5)
    steps = [weft.compile(function) for function in (
        lambda x: float(v) * x, lambda x: float(v.value) * x, lambda x: v.value.item() * x,
        lambda x: v.value[()] * x, lambda x: abs(v) * x)]
    whole = weft.compile(lambda x: int(v) + x)
    asked = weft.compile(lambda x: x if v.value > 3 else -x)
    for value in (2.5, -3.5, 7.25):
        v.assign(value)
        assert [step(2.0) for step in steps] == [2 * value] * 4 + [2 * abs(value)]
        assert whole(1) == int(value) + 1
        assert asked(1.0) == (1 if value > 3 else -1)


def test_a_read_after_an_assignment_sees_it() -> None:
    v = Variable(np.array([1.0, 2.0]))

    @weft.compile
    def step(x: float) -> Any:
        before = v.value
        v.assign(before + x)
        between = v.value, v.numpy()
        v.assign_add(1.0)
        return before, *between, v.value

    for first in (1.0, 12.0):
        rows = [first, first + 10, first + 10, first + 11]
        assert np.array_equal(step(10.0), [[row, row + 1] for row in rows])


def test_reads_in_loops_and_branches() -> None:
    v = Variable(1.0)

    @weft.compile
    def doubled(n: int) -> Any:
        total = 0.0
        for _ in range(n):
            v.assign(v.value * 2)
            total = total + v.numpy()
        return total

    @weft.compile
    def moved(x: float) -> Any:
        if x > 0:
            v.assign(v.value + x)
        else:
            v.assign(v.numpy() * 3)
        return v.value

    assert [doubled(3), v.value, doubled(2), v.value] == [14, 8, 48, 32]
    assert [moved(2.0), moved(-1.0), moved(1.0)] == [34, 102, 103]


def test_a_helper_that_keeps_what_it_has_read() -> None:
    class Helper:
        def __init__(self, variable: Any) -> None:
            self.kept = variable.value

    v = Variable(np.array([1.0, 2.0]))
    step = weft.compile(lambda x: Helper(v).kept * x)
    assert np.array_equal(step(1.0), [1, 2])
    v.assign_add(1.0)
    assert np.array_equal(step(1.0), [2, 3])


def test_the_copy_may_be_written_and_assigned() -> None:
    v = Variable(np.array([1.0, 2.0]))

    @weft.compile
    def put(x: float) -> Any:
        copy = v.numpy()
        copy[0] = x
        seen = v.value
        v.assign(copy)
        return seen

    assert np.array_equal(put(5.0), [1, 2])
    assert np.array_equal(put(7.0), [5, 2])
    assert np.array_equal(v.value, [7, 2])


def test_outside_of_a_trace_it_is_the_array() -> None:
    v = Variable(np.array([1.0, 2.0]))
    before = v.value
    assert type(before) is np.ndarray and not before.flags.writeable
    v.assign_add(1.0)
    assert np.array_equal(before, [1, 2]) and np.array_equal(v.numpy(), [2, 3])
    assert weft.compile(lambda: v.shape + v.value.shape + (v.ndim, v.size, len(v.value)))() == (
        2, 2, 1, 2, 2)
