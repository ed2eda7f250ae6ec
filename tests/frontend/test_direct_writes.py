"""Where arguments get their new elements: in their own memory, at once, if nothing can fail."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft


def alias_bytes(function: Callable[..., Any], *args: Any) -> Any:
    """Of a function for such arguments."""
    return weft.compile(function).lower(*args).compile().memory_analysis().alias_bytes


def test_new_elements_are_written_at_once_where_nothing_can_fail() -> None:
    def step(params: Any, grads: Any, rate: Any) -> Any:
        for name in params:
            params[name] -= rate * grads[name]

    nest = {"w": np.ones((3, 4)), "b": np.ones(5)}
    assert repr(weft.compile(step).lower(nest, nest, 0.5)) == (
        "<lowered step(mut params['w']: f64[3,4], mut params['b']: f64[5], grads['w']: f64[3,4], "
        "grads['b']: f64[5], rate: f64[]) -> ()>")
    assert alias_bytes(step, nest, nest, 0.5) == 8 * (12 + 5)
    assert str(alias_bytes(step, {"w": "f64[n]"}, {"w": "f64[n]"}, 0.5)) == "8*n"


def added_to(x: Any, g: Any) -> None:
    x += g


def turned(x: Any, g: Any) -> None:
    x += x.T


def read_again(x: Any, g: Any) -> Any:
    old = x.copy()
    x *= 2
    return old @ g, x


def checked(x: Any, g: Any) -> None:
    x += g[int(g[0, 0])]


def told(x: Any, g: Any) -> Any:
    x += g
    return Result(x.sum())


def in_rounds(x: Any, g: Any) -> None:
    for at in range(3):
        x[at] += g[at].sum() + x[at - 1]


class Result:
    def __init__(self, value: Any) -> None:
        self.value = value


@pytest.mark.parametrize("function,direct", [
    (added_to, True), (turned, False), (read_again, False), (checked, True)])
def test_what_is_read_or_may_fail_later_is_copied_at_the_end(
    function: Callable[..., Any], direct: bool
) -> None:
    x, g = np.arange(9.0).reshape(3, 3), np.ones((3, 3))
    assert (alias_bytes(function, x, g) != 0) is direct
    compiled = weft.compile(function, on_recompile="silent")
    for start in (x, x.T.copy().T, np.repeat(x, 2, 1)[:, ::2]):
        for _ in range(3):
            own, other = start.copy(order="K"), start.copy()
            got, wanted = compiled(own, g), function(other, g)
            np.testing.assert_array_equal(own, other)
            for one, two in zip(weft.tree.leaves(got), weft.tree.leaves(wanted), strict=True):
                np.testing.assert_array_equal(one, two)


def put(x: Any, i: Any, j: Any, v: Any) -> None:
    x[i] = v


def put_twice(x: Any, i: Any, j: Any, v: Any) -> None:
    x[i] = v
    x[j] += 2 * v


def swapped(x: Any, i: Any, j: Any, v: Any) -> None:
    x[i], x[j] = x[j].copy(), x[i].copy()


def read_behind(x: Any, i: Any, j: Any, v: Any) -> Any:
    x[i] += v
    return x[j] * 2


def beside_another(x: Any, i: Any, j: Any, v: Any) -> Any:
    """The write could be in one group with what comes before the checks."""
    twice = v * 2
    x[i] = v
    return twice


def one_element(x: Any, i: Any, j: Any, v: Any) -> None:
    x[i, j] = v


def rows(x: Any, i: Any, j: Any, v: Any) -> Any:
    x[[i, j, i]] += v
    return x[j].sum()


def counts(x: Any, i: Any, j: Any, v: Any) -> None:
    np.add.at(x, np.array([i, j, i]), v)


@pytest.mark.parametrize("function", [
    put, put_twice, swapped, read_behind, beside_another, one_element, rows, counts])
def test_checks_come_before_what_is_written(function: Callable[..., Any]) -> None:
    """So it is written at once, and a step that fails has written nothing: not to the arguments,
    wherever the first index that is out of range stands."""
    x = np.arange(35.0).reshape(7, 5)
    args = np.int64(2), np.int64(-1), 3.0
    assert alias_bytes(function, x, *args) == x.nbytes
    compiled = weft.compile(function)
    for i, j in ((2, -1), (0, 0), (-5, 4)):
        own, other = x.copy(), x.copy()
        got = compiled(own, np.int64(i), np.int64(j), 3.0)
        wanted = function(other, np.int64(i), np.int64(j), 3.0)
        np.testing.assert_array_equal(own, other)
        assert (got is None) == (wanted is None)
        np.testing.assert_array_equal(0 if got is None else got, 0 if wanted is None else wanted)
    for i, j in ((7, 0), (0, 7), (-8, -8), (1 << 40, 3)):
        own = x.copy()
        for _ in range(2):
            try:
                function(x.copy(), np.int64(i), np.int64(j), 3.0)
            except IndexError:
                with pytest.raises(IndexError, match="W124"):
                    compiled(own, np.int64(i), np.int64(j), 3.0)
                np.testing.assert_array_equal(own, x)


def test_one_kernel_with_its_checks_and_without() -> None:
    """Elements are put into an array of the program, whose checks stay, and into an argument."""
    def both(x: Any, i: Any, j: Any, v: Any) -> Any:
        y = x * 2
        y[j] = v
        x[i] = v
        return y

    x = np.arange(6.0)
    assert alias_bytes(both, x, np.int64(0), np.int64(0), 5.0) == x.nbytes
    compiled = weft.compile(both)
    for i, j in ((2, -6), (-1, 3)):
        own, other = x.copy(), x.copy()
        got = compiled(own, np.int64(i), np.int64(j), 5.0)
        np.testing.assert_array_equal(got, both(other, i, j, 5.0))
        np.testing.assert_array_equal(own, other)
    for i, j in ((6, 0), (0, 6), (0, -7)):
        with pytest.raises(IndexError, match="W124"):
            compiled(x, np.int64(i), np.int64(j), 5.0)
        np.testing.assert_array_equal(x, np.arange(6.0))


def test_nothing_is_written_into_rows_without_elements() -> None:
    """Indices are checked where they are used, as by what is read."""
    def put_row(x: Any, i: Any) -> None:
        x[i] = 1.0

    for compiled, x in ((weft.compile(put_row, on_recompile="silent"), np.zeros((4, 0))),
                        (weft.compile(put_row, dynamic={"x": {1: "n"}}, on_recompile="silent"),
                         np.zeros((4, 0)))):
        for i in (np.int64(3), np.zeros(0, np.int64), np.int64(4), np.array([0, -5])):
            compiled(x, i)
    with pytest.raises(IndexError, match="W124"):
        compiled(np.ones((4, 1)), np.int64(4))


def test_a_check_that_follows_from_what_is_written_has_it_copied() -> None:
    """The index is an element that the same step has written."""
    def follows(x: Any, i: Any, j: Any) -> Any:
        x[i] = 9
        return x[x[j]]

    x = np.arange(4)
    assert alias_bytes(follows, x, np.int64(1), np.int64(1)) == 0
    compiled = weft.compile(follows)
    for _ in range(2):
        with pytest.raises(IndexError, match="W124"):
            compiled(x, np.int64(1), np.int64(1))
        np.testing.assert_array_equal(x, np.arange(4))
    assert compiled(x, np.int64(1), np.int64(2)) == 2
    np.testing.assert_array_equal(x, [0, 9, 2, 3])


def test_a_step_that_writes_variables_too_copies_at_the_end() -> None:
    total = weft.Variable(np.zeros(3))

    def step(x: Any) -> None:
        x += 1
        total.assign(total + x)

    x = np.zeros(3)
    assert alias_bytes(step, x) == 24  # the variable's
    compiled = weft.compile(step)
    for _ in range(4):
        compiled(x)
    np.testing.assert_array_equal(x, np.full(3, 4.0))
    np.testing.assert_array_equal(total.value, np.full(3, 1.0 + 2 + 3 + 4))


@pytest.mark.parametrize(("m", "k", "n"), [(2, 5, 3), (5, 2, 7), (17, 33, 9), (64, 600, 100),
                                           (129, 65, 257)])
@pytest.mark.parametrize("target", [None, "x86-64-v3"])
def test_what_is_made_of_a_product_may_lie_where_it_was(
    m: int, k: int, n: int, target: str | None,
) -> None:
    def step(r: Any, x: Any, w: Any) -> Any:
        return np.tanh(r) - (x @ w) * r

    rng = np.random.default_rng(0)
    r, x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, n), (m, k), (k, n)))
    want = weft.compile(step, target=target)(r, x, w)
    donated = r.copy()
    got = weft.compile(step, target=target, donate_argnames="r")(donated, x, w)
    assert got is donated
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("target", [None, "x86-64-v3"])
@pytest.mark.parametrize("size", [5, 33, 300])
def test_what_a_product_is_made_of_stays_while_it_is_computed(
    size: int, target: str | None,
) -> None:
    def step(x: Any, w: Any) -> Any:
        return x @ w + x

    x, w = np.random.default_rng(0).standard_normal((2, size, size)).astype(np.float32)
    want, donated = weft.compile(step, target=target)(x, w), x.copy()
    got = weft.compile(step, target=target, donate_argnames="x")(donated, w)
    assert got is not donated
    assert got.tobytes() == want.tobytes()


def test_loops_are_right_wherever_they_write() -> None:
    compiled = weft.compile(in_rounds)
    for _ in range(3):
        own, other, g = np.arange(9.0).reshape(3, 3), np.arange(9.0).reshape(3, 3), np.ones((3, 3))
        compiled(own, g)
        in_rounds(other, g)
        np.testing.assert_array_equal(own, other)


def test_a_step_that_is_written_at_once_is_done_or_was_never() -> None:
    compiled = weft.compile(added_to)
    x, one = np.zeros(1 << 21), np.ones(1 << 21)
    compiled(x, one)
    compiled(x, one)

    def handler(*_: Any) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, handler)
    ended = 0
    try:
        for _ in range(60):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                compiled(x, one)
                time.sleep(0.01)
            except KeyboardInterrupt:
                ended += 1
            assert (x == x[0]).all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert ended


BYTES = """
import resource
import numpy as np, weft

@weft.compile
def step(params, grads, rate):
    for name in params:
        params[name] -= rate * grads[name]

n = 1 << 21
params, grads = ({name: np.full(n, 1.0) for name in "abcd"} for _ in range(2))
small = {name: np.ones(4) for name in "abcd"}
step(small, small, 0.5)  # the engine is there
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(4):
    step(params, grads, 0.5)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert params["d"][n - 1] == -1.0
print(grown >> 10)
"""


@pytest.mark.long
def test_a_step_over_large_arguments_has_no_second_copy() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", BYTES], capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 32  # MB, of 128 that are arguments: those of the compilation


# -- donated arguments ----------------------------------------------------------------------------

def test_a_result_is_the_array_that_was_donated() -> None:
    @weft.compile(donate_argnames="x")
    def step(x: Any, g: Any) -> Any:
        return np.tanh(x) + g

    x, g = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    wanted = np.tanh(x) + g
    for _ in range(2):
        np.testing.assert_array_equal(step(x.copy(), g), wanted)
    own = x.copy()
    assert step(own, g) is own
    np.testing.assert_array_equal(own, wanted)
    assert step.lower(x, g).compile().memory_analysis().alias_bytes == x.nbytes
    strided = np.repeat(x, 2, 1)[:, ::2]
    np.testing.assert_array_equal(step(strided, g), wanted)
    np.testing.assert_array_equal(strided, x)
    np.testing.assert_array_equal(step(g, g), np.tanh(1.0) + 1)  # it is needed for the other one
    np.testing.assert_array_equal(g, np.ones((2, 3)))


def test_nests_are_donated_leaf_by_leaf() -> None:
    def step(state: Any, g: Any) -> Any:
        new = {name: x - g for name, x in state.items()}
        return new, sum(x.sum() for x in new.values())

    compiled = weft.compile(donate_argnames=("state",))(step)
    g = np.ones(3)
    state = {"a": np.zeros(3), "b": np.arange(3.0)}
    for turn in range(1, 6):
        before = state["a"], state["b"]
        state, total = compiled(state, g)
        np.testing.assert_array_equal(state["b"], np.arange(3.0) - turn)
        assert total == 3.0 - 6 * turn
    del before


def test_what_is_returned_twice_or_read_later_is_no_donation() -> None:
    @weft.compile(donate_argnames="x")
    def both(x: Any) -> Any:
        return x * 2, x.T + 1, x

    @weft.compile(donate_argnames="x")
    def beside(x: Any) -> Any:
        return x * 2, x

    x = np.arange(9.0).reshape(3, 3)
    for _ in range(4):
        twice, turned_, same = both(x)
        np.testing.assert_array_equal(twice, np.arange(9.0).reshape(3, 3) * 2)
        np.testing.assert_array_equal(turned_, np.arange(9.0).reshape(3, 3).T + 1)
        assert same is x
        twice, same = beside(x)
        np.testing.assert_array_equal(twice, same * 2)
        assert same is x


def test_a_check_keeps_what_was_donated() -> None:
    @weft.compile(donate_argnames="x")
    def step(x: Any, at: Any) -> Any:
        return x + x[at]

    for _ in range(3):
        x = np.arange(3.0)
        with pytest.raises(weft.Error, match="W124"):
            step(x, 5)
        np.testing.assert_array_equal(x, np.arange(3.0))
        got = step(x, 1)
        np.testing.assert_array_equal(got, np.arange(3.0) + 1)
        assert got is x
