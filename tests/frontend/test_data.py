"""weft.data: order, batches, positions, reading ahead, and what does not fit together."""

from __future__ import annotations

import gc
import pickle
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft import data
from weft.ir.diagnose import Error

ROWS = np.arange(10)


def flat(batches: Any) -> list[int]:
    return [int(row) for batch in batches for row in np.atleast_1d(batch)]


@given(st.integers(1, 12), st.integers(1, 30), st.integers(1, 5), st.booleans())
def test_every_row_comes_once_in_an_epoch(rows: int, n: int, size: int, drop: bool) -> None:
    batches = list(data.from_arrays(np.arange(rows)).shuffle(n, seed=n).batch(size, drop_last=drop))
    assert all(len(batch) == size for batch in batches[:None if drop else -1])
    seen = flat(batches)
    assert len(seen) == (rows // size * size if drop else rows)
    assert len(set(seen)) == len(seen) and set(seen) <= set(range(rows))


def test_a_small_buffer_keeps_rows_near() -> None:
    order = flat(data.from_arrays(np.arange(1000)).shuffle(8, seed=0))
    assert order != sorted(order) and sorted(order) == list(range(1000))
    assert all(at + 8 > row for at, row in enumerate(order))


@pytest.mark.parametrize("n", [10, 11, 20])
def test_orders_of_a_whole_buffer_are_uniform(n: int) -> None:
    firsts = [flat(data.from_arrays(ROWS).shuffle(n, seed=seed))[0] for seed in range(2000)]
    counts = np.bincount(firsts, minlength=10)
    assert ((counts - 200.0)**2 / 200).sum() < 33.7  # chi-square, 9 degrees of freedom, p = 1e-4


def test_epochs_have_other_orders_and_seeds_the_same() -> None:
    def orders(seed: int) -> np.ndarray[Any, Any]:
        return np.reshape(flat(data.from_arrays(ROWS).shuffle(10, seed).repeat(3)), (3, 10))

    one = orders(5)
    assert (np.sort(one) == ROWS).all() and len({tuple(row) for row in one.tolist()}) == 3
    assert (one == orders(5)).all() and (one != orders(6)).any()


def test_batches_of_arrays_nests_and_functions() -> None:
    @dataclass
    class Pair:
        x: Any
        y: Any

    given = {"x": np.arange(6.0).reshape(3, 2), "y": [np.arange(3)]}
    (batch,) = data.from_arrays(given).batch(3)
    assert (batch["x"] == given["x"]).all() and (batch["y"][0] == given["y"][0]).all()
    pairs = data.from_arrays(ROWS, -ROWS).map(lambda pair: Pair(pair[0] * 2, pair[1])).batch(4)
    first = next(iter(pairs))
    assert isinstance(first, Pair) and list(first.x) == [0, 2, 4, 6]
    assert list(first.y) == [0, -1, -2, -3]


def test_functions_of_the_parts_of_a_tuple() -> None:
    pairs = data.from_arrays(ROWS, -ROWS)
    for product in (lambda x, y: x * y, weft.compile(lambda x, y: x * y), np.multiply,
                    lambda pair: pair[0] * pair[1], lambda *pair: pair[0][0] * pair[0][1]):
        assert list(pairs.map(product)) == [-row * row for row in ROWS]
    with pytest.raises(TypeError, match="positional argument"):
        list(pairs.map(lambda x, y, z: x))


def test_sizes() -> None:
    rows = data.from_arrays(ROWS)
    assert [len(rows), len(rows.batch(3)), len(rows.batch(3, drop_last=True).repeat(2))] == [
        10, 4, 6]
    for endless in (rows.repeat(), data.from_generator(lambda: ROWS)):
        with pytest.raises(TypeError, match="not known"):
            len(endless)
    assert list(data.from_generator(tuple).repeat()) == []


def test_files_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    for at in range(4):
        np.save(tmp_path / f"{at}.npy", np.full(3, at))
    read: list[Path] = []

    def load(path: Path) -> Any:
        read.append(path)
        return np.load(path)

    files = iter(data.from_files(sorted(tmp_path.glob("*.npy")), load).batch(2))
    assert not read
    assert next(files).tolist() == [[0, 0, 0], [1, 1, 1]] and len(read) == 2


PIPELINES = st.lists(st.sampled_from([
    ("shuffle", 3, 7), ("shuffle", 99, 8), ("repeat", 2), ("repeat", 3), ("batch", 2),
    ("prefetch", 2), ("prefetch", 3, 3)]), max_size=4)


def built(steps: list[tuple[Any, ...]], generated: bool) -> data.Dataset:
    made = data.from_generator(lambda: iter(ROWS)) if generated else data.from_arrays(ROWS)
    for name, *options in steps:
        made = getattr(made.map(lambda x: x + 1), name)(*options)
    return made if ("batch", 2) in steps else made.batch(3)


@given(PIPELINES, st.booleans(), st.integers(0, 9))
def test_an_input_goes_on_from_its_position(
    steps: list[tuple[Any, ...]], generated: bool, at: int
) -> None:
    steps = [step for i, step in enumerate(steps) if step[0] != "batch" or step not in steps[:i]]
    whole = [np.asarray(batch).tolist() for batch in built(steps, generated)]
    again = built(steps, generated).input()
    again.assign(np.int64(at))
    assert [np.asarray(batch).tolist() for batch in again] == whole[at:]


def test_the_position_is_part_of_a_checkpoint(tmp_path: Path) -> None:
    def batches() -> data.Input:
        return data.from_arrays(ROWS).shuffle(10, 3).repeat().batch(4).prefetch(2).input("train")

    one, weight = batches(), weft.Variable(1.0, name="data_test/weight")
    for _ in range(5):
        next(one)
    weft.save(tmp_path / "c", [weight, one], step=5)
    expected = [next(one).tolist() for _ in range(4)]
    other = batches()
    next(other)
    weight.assign(0.0)
    assert weft.restore(tmp_path / "c", [weight, other]) == 5
    assert float(weight) == 1.0 and other.position == 5
    assert [next(other).tolist() for _ in range(4)] == expected
    with pytest.raises(Error, match="W304"):
        other.assign(-1)


def test_reading_goes_on_while_the_loop_is_busy() -> None:
    read = [threading.Event() for _ in ROWS]

    def note(row: Any) -> Any:
        read[int(row)].set()
        return row

    with_ahead = iter(data.from_arrays(ROWS).map(note).prefetch(3))
    assert int(next(with_ahead)) == 0
    assert all(event.wait(30) for event in read[:4])  # nobody has asked for 1, 2 and 3
    time.sleep(0.02)
    assert not any(event.is_set() for event in read[4:])


def test_several_threads_read_side_by_side_in_order() -> None:
    meeting = threading.Barrier(3, timeout=30)

    def together(row: Any) -> Any:
        meeting.wait()  # of three elements at once, or it breaks
        return row

    rows = np.arange(12)
    assert flat(data.from_arrays(rows).map(together).prefetch(4, threads=3)) == list(rows)


def test_an_element_that_fails_is_tried_again() -> None:
    for ahead in (0, 2):
        failing = {4}

        def load(row: Any, failing: set[int] = failing) -> Any:
            if int(row) in failing:
                raise OSError(f"no row {row}")
            return row

        made = data.from_arrays(ROWS).map(load)
        rows = (made.prefetch(ahead) if ahead else made).input()
        assert flat(next(rows) for _ in range(4)) == [0, 1, 2, 3]
        for _ in range(2):
            with pytest.raises(OSError, match="no row 4"):
                next(rows)
        failing.clear()
        assert rows.position == 4 and flat(rows) == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("ahead", [0, 2])
def test_errors_have_the_lines_of_the_function_and_no_others(ahead: int) -> None:
    made = data.from_arrays(ROWS).map(lambda row: {"x": row}["y"])  # of the user
    rows = (made.prefetch(ahead) if ahead else made).input("train")
    with pytest.raises(KeyError) as caught:
        next(rows)
    assert caught.value.__notes__ == ["while the host read element 0 of train"]
    files = [Path(str(entry.path)).name for entry in caught.traceback]
    assert set(files) == {"test_data.py"}
    assert "# of the user" in str(caught.traceback[-1].statement)


def test_threads_that_share_an_input_get_each_row_once() -> None:
    rows = data.from_arrays(np.arange(2000)).prefetch(4, threads=2).input()
    taken: list[list[int]] = [[], [], []]

    def take(mine: list[int]) -> None:
        mine.extend(flat(rows))

    threads = [threading.Thread(target=take, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted([row for mine in taken for row in mine]) == list(range(2000))


def test_dropped_inputs_leave_no_threads() -> None:
    def readers() -> int:
        return sum(thread.name.startswith("weft-data") for thread in threading.enumerate())

    for _ in range(5):
        next(iter(data.from_arrays(ROWS).prefetch(2, threads=2).repeat()))
    gc.collect()
    deadline = time.monotonic() + 30
    while readers() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not readers()


def two_shapes() -> Iterator[Any]:
    yield np.zeros(2)
    yield np.zeros(3)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: data.from_arrays(ROWS, ROWS[:3]), r"shapes are \(10,\), \(3,\)"),
    (lambda: data.from_arrays(np.float32(1)), r"shapes are \(\)"),
    (lambda: data.from_arrays(ROWS).batch(0), "batch takes a positive number, not 0"),
    (lambda: list(data.from_generator(two_shapes).batch(2)), r"float64\[2\] and float64\[3\]"),
    (lambda: next(iter(data.from_generator(two_shapes, "f32[2]"))), r"float64\[2\] where"),
    (lambda: list(data.from_generator(two_shapes, "f64[2]")), r"float64\[3\] where"),
    (lambda: next(iter(data.from_generator(lambda: [(1, 2)], "f64[]"))), "the generator gives"),
    (lambda: list(data.from_generator(lambda: [1, (1, 2)]).batch(2)), "the structures"),
    (lambda: data.from_arrays([[1], [1, 2]]), "a list with parts of other lengths"),
    (lambda: data.from_generator(two_shapes()), "from_generator takes a function"),
    (lambda: data.from_files("rows.npy", np.load), "from_files takes a list of paths"),
    (lambda: data.from_files(7, np.load), "from_files takes a list of paths"),  # type: ignore[arg-type]
    (lambda: data.from_files([], "read"), "from_files takes a function"),  # type: ignore[arg-type]
    (lambda: data.from_arrays(ROWS).map(3), "map takes a function"),  # type: ignore[arg-type]
])
def test_what_does_not_fit_together(make: Any, message: str) -> None:
    with pytest.raises(Error, match=f"W305: .*{message}"):
        make()


def test_a_traced_function_cannot_read() -> None:
    rows = data.from_arrays(ROWS).input()
    with pytest.raises(Error, match="W305: input is read while a function is traced"):
        weft.compile(lambda x: x + next(rows))(1.0)
    assert rows.position == 0


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_map_does_not_end_the_data(ahead: int) -> None:
    def function(x: Any) -> Any:
        return x if x < 3 else next(iter(()))

    data = weft.data.from_arrays(np.arange(6)).map(function)
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(data.prefetch(ahead) if ahead else data)


def test_reading_does_not_end_the_data() -> None:
    files = weft.data.from_files(range(3), lambda at: next(iter(())) if at else at)
    for rows in (files, files.batch(2)):
        with pytest.raises(RuntimeError, match="StopIteration"):
            list(rows)


@pytest.mark.parametrize("seed", [-1, "a", None, 2.5, True])
def test_seeds_are_integers(seed: Any) -> None:
    with pytest.raises(Error, match=r"W112: the seed of a shuffle is .*, not an integer"):
        data.from_arrays(ROWS).shuffle(3, seed)
    if seed is not None:
        with pytest.raises(Error, match="W112: the seed of a queue is"):
            weft.RandomShuffleQueue(5, "f64[]", seed=seed)


def test_a_spec_that_is_none_is_told_at_once() -> None:
    with pytest.raises(Error, match="W112"):
        data.from_generator(two_shapes, "no type")


def test_data_sets_go_to_other_processes() -> None:
    """Where the functions in them do."""
    made = (data.from_arrays(ROWS, ROWS * 2).shuffle(4, seed=1).map(np.add).batch(3).repeat(2),
            data.from_files([1, 2, 3], float).batch(2),
            data.from_generator(two_shapes, ("f64[n]")))
    for rows in made:
        again = list(pickle.loads(pickle.dumps(rows)))
        for one, other in zip(rows, again, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_function_may_change_the_rows_it_is_given() -> None:
    x = np.arange(6.0).reshape(3, 2)
    data = weft.data.from_arrays(x).map(lambda row: np.multiply(row, 10, out=row)).batch(3)
    for _ in range(2):
        np.testing.assert_array_equal(next(iter(data)), 10 * np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(x, np.arange(6.0).reshape(3, 2))
