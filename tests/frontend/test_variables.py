"""Variables under threads: no update is lost, nothing is seen by halves."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from running import in_threads

import weft
from weft import Session, Variable
from weft.runtime.state import Writer, commit, cut

ROUNDS = 300


@pytest.fixture(autouse=True)
def many_switches() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def repeat(work: Callable[[], Any], count: int = ROUNDS) -> Callable[[], None]:
    def run() -> None:
        for _ in range(count):
            work()

    return run


class Balance:
    """Two variables of one sum, and a step that moves some from one to the other."""

    def __init__(self) -> None:
        self.a, self.b = Variable(np.zeros(64)), Variable(np.zeros(64))

        @weft.compile(threads=1)
        def move(x: Any) -> None:
            self.a.assign(self.a + x)
            self.b.assign(self.b - x)

        self.move = move
        move(1.0)

    def while_moving(self, look: Callable[[], Any], count: int = ROUNDS) -> None:
        """``look`` again and again while another thread moves."""
        over = threading.Event()

        def write() -> None:
            while not over.is_set():
                self.move(1.0)

        def read() -> None:
            try:
                repeat(look, count)()
            finally:
                over.set()

        in_threads(write, read)


# -- a read of several is of one moment -----------------------------------------------------------


def test_a_step_reads_variables_of_one_moment() -> None:
    pair = Balance()
    total = weft.compile(threads=1)(lambda: pair.a + pair.b)
    total()

    def look() -> None:
        assert not total().any()

    pair.while_moving(look, 20_000)


def test_a_session_reads_variables_of_one_moment() -> None:
    pair = Balance()
    s = Session(weft.Graph())

    def look() -> None:
        a, b = s.run([pair.a, pair.b])
        assert not (a + b).any()

    pair.while_moving(look, 1000)


def test_plain_numpy_reads_variables_of_one_moment() -> None:
    pair = Balance()

    def look() -> None:
        assert not (pair.a + pair.b).any()
        assert not np.add.reduce(np.stack([pair.a, pair.b])).any()

    pair.while_moving(look, 3000)


@pytest.mark.long
def test_an_eager_step_reads_variables_of_one_moment() -> None:
    pair = Balance()

    def look() -> None:
        value, _ = weft.value_and_grad(lambda x: np.sum((pair.a + pair.b) * x))(1.0)
        assert value == 0

    pair.while_moving(look, 40)


@pytest.mark.long
def test_a_checkpoint_is_of_one_moment(tmp_path: Path) -> None:
    pair = Balance()
    found = {"a": np.ones(64), "b": np.ones(64)}

    def look() -> None:
        weft.save(tmp_path / "c", {"a": pair.a, "b": pair.b})
        weft.restore(tmp_path / "c", found)
        assert not (found["a"] + found["b"]).any()

    pair.while_moving(look, 100)


def test_restored_variables_change_at_one_moment(tmp_path: Path) -> None:
    pair = Balance()
    saved = {"a": pair.a, "b": pair.b}
    weft.save(tmp_path / "c", saved)

    def look() -> None:
        weft.restore(tmp_path / "c", saved)
        a, b = cut([pair.a.cell, pair.b.cell])
        assert not (a + b).any()

    pair.while_moving(look, 100)


@pytest.mark.long
def test_an_artifact_has_weights_of_one_moment() -> None:
    pair = Balance()
    traced = weft.compile(lambda: pair.a + pair.b).trace()

    def look() -> None:
        from weft.frontend.engine.specialisation import stages_of
        from weft.frontend.face.options import Options
        from weft.frontend.interchange.export import ExportJob

        a, b = ExportJob.of(traced, stages_of(traced, Options())[0], ()).weights.values()
        assert not (a + b).any()

    pair.while_moving(look, 1000)


def test_verified_steps_run_on_the_values_that_were_verified() -> None:
    pair = Balance()
    checked = weft.compile(lambda: pair.a * 1.0, verify=True)
    pair.while_moving(checked, 50)


# -- an update is lost by nobody ------------------------------------------------------------------


def test_eager_generators_give_each_number_once() -> None:
    rng = weft.random.default_rng(0)
    drawn: list[int] = []

    def draw() -> None:
        drawn.extend(rng.integers(2**62, size=8).tolist())

    in_threads(*[repeat(draw, 100)] * 4)
    assert len(set(drawn)) == len(drawn) == 3200
    assert int(rng.counter) == 2 * 3200  # of 128 bits each


def test_updates_of_all_kinds_are_counted_once() -> None:
    count = Variable(0.0)
    step = weft.compile(threads=1)(lambda: count.assign_add(1.0))
    g = weft.Graph()
    with g.as_default():
        bump = count.assign(count + 1.0)
    s = Session(g)
    optimizer = weft.optim.SGD(lr=1.0)

    def eager() -> None:
        optimizer.minimize(lambda: -np.sum(count), [count])

    in_threads(repeat(step), repeat(lambda: count.assign_add(1.0)),
               repeat(lambda: count.assign_sub(-1.0)), repeat(lambda: s.run(bump)),
               repeat(eager, 50))
    assert float(count) == 4 * ROUNDS + 50


def test_optimizers_make_their_slots_once() -> None:
    for _ in range(10):
        w, adam = Variable(np.ones(3), name="slots_w"), weft.optim.Adam()
        start = threading.Barrier(4)

        def first(w: Variable = w, adam: Any = adam, start: Any = start) -> None:
            start.wait()
            adam.minimize(lambda: np.sum(w * w), [w])

        in_threads(*[first] * 4)
        assert len(adam.variables) == 3
        assert int(adam.variables[-1]) == 4


def test_a_plain_assignment_waits_for_the_update_that_reads_before_it() -> None:
    """Else the update would replace it by what it has computed from the value before."""
    v = Variable(0.0)
    reached, release = threading.Event(), threading.Event()

    def update() -> None:
        def body() -> None:
            (before,) = cut([v.cell])
            reached.set()
            assert release.wait(60)
            commit([v.cell], [np.asarray(before + 1)])

        Writer([v.cell]).run(body)

    def overwrite() -> None:
        reached.wait(60)
        threading.Timer(0.05, release.set).start()
        v.assign(10.0)

    in_threads(update, overwrite)
    assert float(v) == 10


def test_steps_in_opposite_order_do_not_wait_for_each_other() -> None:
    a, b = Variable(0), Variable(0)

    @weft.compile(threads=1)
    def forth() -> None:
        a.assign_add(1)
        b.assign_add(2)

    @weft.compile(threads=1)
    def back() -> None:
        b.assign_add(1)
        a.assign_add(2)

    g = weft.Graph()
    with g.as_default():
        both = weft.group(b.assign_add(1), a.assign_add(1))
    s = Session(g)
    in_threads(*[repeat(forth)] * 2, *[repeat(back)] * 2, repeat(lambda: s.run(both)))
    assert (int(a), int(b)) == (2 * ROUNDS * 3 + ROUNDS, 2 * ROUNDS * 3 + ROUNDS)


def test_the_order_of_writers_is_that_of_creation() -> None:
    cells = [Variable(0).cell for _ in range(20)]
    assert list(Writer(reversed(cells + cells)).cells) == cells


def test_writers_nest() -> None:
    a, b = Variable(0), Variable(0)
    step = weft.compile(lambda: weft.group(a.assign_add(1), b.assign_add(1)) and None)
    step()

    def nested() -> None:
        Writer([b.cell]).run(lambda: Writer([a.cell, b.cell]).run(step))

    in_threads(nested)
    assert (int(a), int(b)) == (2, 2)


def test_readers_do_not_wait_for_a_step(tmp_path: Path) -> None:
    a, b, c = Variable(1.0), Variable(2.0), Variable(0.0)
    read = weft.compile(lambda: a + b)
    note = weft.compile(lambda: c.assign(a + b))
    read(), note()
    looked = threading.Event()

    def look() -> None:
        assert read() == float(a) + float(b) == 3
        assert Session(weft.Graph()).run([a, b]) == [1, 2]
        note()
        weft.save(tmp_path / "c", {"a": a, "b": b})
        looked.set()

    def step() -> None:
        reader = threading.Thread(target=look, daemon=True)
        reader.start()
        assert looked.wait(60), "a reader waits"

    Writer([a.cell, b.cell]).run(step)


def test_failed_steps_change_none_of_their_variables() -> None:
    a, b = Variable(np.zeros(2)), Variable(np.zeros(2))

    @weft.compile
    def step(table: Any, index: Any) -> None:
        a.assign_add(table[index])
        b.assign(a * 2)

    table = np.ones(4)
    step(table, np.array([0, 1]))
    before = a.value, b.value
    for _ in range(3):
        with pytest.raises(IndexError, match="W124"):
            step(table, np.array([0, 4]))
        assert a.value is before[0] and b.value is before[1]
    step(table, np.array([0, 1]))
    np.testing.assert_array_equal(b.numpy(), [4, 4])


# -- who holds a value keeps it -------------------------------------------------------------------

HOLDERS: dict[str, Callable[[Variable], Any]] = {
    "value": lambda v: v.value,
    "view": lambda v: v.value[1:],
    "memoryview": lambda v: memoryview(v.value),
    "list": lambda v: [v.value],
    "frombuffer": lambda v: np.frombuffer(v.value, v.dtype),
    "iterator": lambda v: iter(v.value.flat),
    "other variable": lambda v: Variable(v.value),
    "cut": lambda v: cut([v.cell, v.cell]),
    "captured": lambda v: captured(v.value),
}


def captured(array: Any) -> Any:
    return weft.compile(lambda: array * 1.0)


def seen(held: Any) -> Any:
    held = held() if callable(held) else held
    held = list(held) if not isinstance(held, (Variable, np.ndarray)) else held
    return np.array(held).ravel()[-100:]


@pytest.mark.parametrize("size", [200, 300_000])
@pytest.mark.parametrize("kind", HOLDERS)
def test_held_values_stay(kind: str, size: int) -> None:
    v = Variable(np.zeros(size))
    step = weft.compile(lambda x: v.assign(v + x))
    step(1.0)
    held = HOLDERS[kind](v)
    for _ in range(4):
        step(1.0)
    if kind == "iterator":
        assert {float(x) for x in held} == {1.0}
    else:
        np.testing.assert_array_equal(seen(held), np.ones(100))
    np.testing.assert_array_equal(v.numpy(), np.full(size, 5.0))


def test_values_given_to_steps_are_not_written_by_them() -> None:
    """A value may be the argument of the very step that replaces it."""
    v = Variable(np.zeros(300_000))
    step = weft.compile(lambda x: v.assign_add(x + 1.0))
    for wanted in (1.0, 3.0, 7.0, 15.0):
        given = v.value
        step(given)
        assert v.numpy()[0] == v.numpy()[-1] == wanted
        assert given[0] == given[-1] == (wanted - 1) / 2


def test_results_and_variables_are_apart() -> None:
    v = Variable(np.zeros(300_000))

    @weft.compile
    def step(x: Any) -> Any:
        v.assign(v + x)
        return v[...]

    results = [step(1.0) for _ in range(4)]
    for number, result in enumerate(results, 1):
        assert (result == number).all()
        result[...] = -1
    assert (v.numpy() == 4).all()
    assert not v.value.flags.writeable


def changed(change: Callable[[Any], Any], number: Any, compiled: bool) -> Any:
    return weft.compile(lambda: (change(number), 0)[1])() if compiled else change(number)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("first", "number", "code"), [
    (5, 1.5, "W304"), (5, 2.0, "W304"), (5, float("nan"), "W304"), (True, 3, "W304"),
    (0.5, 1j, "W304"), (np.int8(3), 300, "W131"), (np.int8(3), -129, "W131"), (5, 2**80, "W131"),
    (5, True, ""), (np.uint8(5), 200, ""), (np.float32(5), 2**40, ""), (1j, 2.5, ""),
    (ml_dtypes.bfloat16(1), 2.5, "")])
def test_numbers_that_are_assigned_keep_their_kind(
    first: Any, number: Any, code: str, compiled: bool
) -> None:
    """As in NumPy, where an array of integers += 0.5 is an error, and not += 0."""
    v = Variable(first)
    for change in (v.assign, v.assign_add):
        if code:
            with pytest.raises(weft.Error, match=code):
                changed(change, number, compiled)
            assert v.numpy() == first
    if not code:
        changed(v.assign, number, compiled)
        assert v.numpy() == number and v.dtype == np.asarray(first).dtype


def test_elements_are_not_set_one_by_one() -> None:
    v = Variable(np.zeros(3), "v")

    def put() -> None:
        v[1] = 2

    with pytest.raises(weft.Error, match="W203: the elements of variable v") as outside:
        put()
    with pytest.raises(weft.Error, match="W203: the elements of variable v") as inside:
        weft.compile(put)()
    assert "v.numpy()" in outside.value.hint and "v.at[i].set" in inside.value.hint
    weft.compile(lambda: v.assign(v.at[1].set(2)))()
    np.testing.assert_array_equal(v.numpy(), [0, 2, 0])


def test_a_function_of_the_host_does_not_assign_what_its_step_assigns() -> None:
    total, other = Variable(0.0, "total"), Variable(0.0, "other")

    def host(z: Any) -> Any:
        other.assign_add(1.0)
        total.assign_add(100.0)
        return z

    @weft.compile
    def step(x: Any) -> Any:
        total.assign_add(weft.host_call(host, "f64[]", x))
        return total * 1

    with pytest.raises(weft.Error, match="W304: variable total is assigned by a function that the"):
        step(1.0)
    assert total.numpy() == 0.0 and other.numpy() == 1.0


def test_a_variable_that_is_made_while_tracing_is_warned_of() -> None:
    @weft.compile
    def summed(x: Any) -> Any:
        total = Variable(0.0, "inner")
        total.assign_add(x)
        return total * 1

    with pytest.warns(weft.TracingWarning, match="variable inner is made while the function is tr"):
        assert summed(1.0) == 1.0
    assert summed(1.0) == 2.0
