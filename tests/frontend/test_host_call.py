"""weft.host_call, and functions that NumPy runs because they cannot be compiled."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy._core.overrides import array_function_dispatch
from running import python
from scipy import special

import weft
from weft.ir.diagnose import DTypeError, Error, ShapeError, UnsupportedError

X = np.array([3.0, 1.0, 2.0])


class Parts(NamedTuple):
    low: Any
    rest: Any


def apart(x: Any, scale: Any) -> dict[str, Any]:
    assert type(x["a"]) is np.ndarray and type(scale) is np.ndarray
    return {"low": x["a"].min(), "rest": Parts(x["a"] * scale, x["b"] > 0)}


SPECS = {"low": "f64[]", "rest": Parts(weft.Spec("f64", (3,)), "bool[2]")}


def test_nests_go_in_and_come_out() -> None:
    @weft.compile
    def step(x: Any, scale: Any) -> Any:
        made = weft.host_call(apart, SPECS, x, scale)
        return made["low"] + 1, made["rest"]

    nest = {"a": X, "b": np.array([-1, 1])}
    low, rest = step(nest, 2.0)
    assert low == 2.0 and type(rest) is Parts
    np.testing.assert_array_equal(rest.low, 2 * X)
    np.testing.assert_array_equal(rest.rest, [False, True])
    eager = weft.host_call(apart, SPECS, nest, 2.0)
    assert eager["low"] == 1.0 and type(eager["rest"]) is Parts


def test_results_have_sizes_of_arguments() -> None:
    @weft.compile(dynamic={"x": {0: "b"}})
    def step(x: Any) -> Any:
        twice = weft.host_call(lambda x: np.concatenate([x, x]), "f64[2*b]", x)
        first = weft.host_call(lambda x: x.sum(axis=0), weft.Spec("f64", (x.shape[0],)), x[None])
        return twice, first

    for count in (0, 1, 2, 7):
        x = np.arange(float(count))
        twice, first = step(x)
        np.testing.assert_array_equal(twice, [*x, *x])
        np.testing.assert_array_equal(first, x)
    assert step.cache_info().specialisations == 1


def test_it_is_called_each_time_and_in_order() -> None:
    calls: list[str] = []

    def note(name: str) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            calls.append(name)
            return x + len(calls)

        return function

    first, second = note("first"), note("second")

    @weft.compile
    def step(x: Any) -> Any:
        a = weft.host_call(first, "f64[3]", x)
        b = weft.host_call(second, "f64[3]", x)
        c = weft.host_call(first, "f64[3]", x)
        weft.host_call(note("never"), "f64[3]", x)
        return a, b, c

    for _ in range(2):
        calls.clear()
        a, b, c = step(X)
        assert calls == ["first", "second", "first"]
        np.testing.assert_array_equal([a - X, b - X, c - X], [[1] * 3, [2] * 3, [3] * 3])


def test_variables_and_numbers_are_arrays() -> None:
    v = weft.Variable(X, name="v")

    @weft.compile
    def step(n: Any) -> None:
        v.assign(weft.host_call(lambda v, n: v + n.astype(float), "f64[3]", v, n))

    step(2)
    step(3)
    np.testing.assert_array_equal(v.numpy(), X + 5)


def test_in_a_session() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        y = weft.host_call(np.sort, "f64[3]", x * 2)
    np.testing.assert_array_equal(weft.Session(graph).run(y, {x: X}), [2, 4, 6])


@pytest.mark.parametrize(("made", "spec", "kind", "message"), [
    (np.ones(3, "f4"), "f64[3]", DTypeError, r"W111: .* gave float32\[3\] where float64\[3\]"),
    (np.ones(4), "f64[3]", ShapeError, r"W102: .* gave float64\[4\] where float64\[3\] was prom"),
    (np.ones((1, 3)), "f64[3]", ShapeError, r"W102: .* gave float64\[1, 3\]"),
    ((X, X), "f64[3]", ShapeError, "W102: nests of different structure"),
    (X, ("f64[3]", "f64[3]"), ShapeError, "W102: nests of different structure"),
    (None, "f64[3]", ShapeError, r"W102: .* gave None where float64\[3\] was promised"),
    ("text", "f64[]", DTypeError, "W111: .* gave <U4"),
])
def test_wrong_results(made: Any, spec: Any, kind: Any, message: str) -> None:
    def function(x: Any) -> Any:
        return made

    step = weft.compile(lambda x: weft.host_call(function, spec, x))
    for call in (lambda: step(X), lambda: weft.host_call(function, spec, X)):
        with pytest.raises(kind, match=message) as caught:
            call()
        assert "test_host_call.py" in str(caught.value)




@pytest.mark.parametrize(("function", "message"), [
    (lambda x: weft.host_call(3, "f64[3]", x), "W112: host_call needs a function, not int"),
    (lambda x: weft.host_call(np.sort, None, x), "W112: host_call needs a result"),
    (lambda x: weft.host_call(np.sort, 3, x), "W112: int is no type of a result"),
    (lambda x: weft.host_call(np.sort, weft.Spec("f64", (None,)), x), "W112: .* nothing tells"),
    (lambda x: weft.host_call(np.sort, "f64[b]", x), "W105: no argument has the dim b"),
    (lambda x: weft.host_call(np.sort, "f64[3]", object()), "W112: object is no operand"),
    (lambda x: weft.grad(lambda x: np.sum(weft.host_call(np.sort, "f64[3]", x)))(x),
     "W113: there is no gradient of numpy.sort, which the host runs(?s:.*)stop_gradient"),
])
def test_what_is_refused(function: Any, message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        weft.compile(lambda x: function(x))(X)
    assert "test_host_call.py" in str(caught.value)


def test_gradients_go_around_it() -> None:
    def loss(x: Any) -> Any:
        order = weft.host_call(np.argsort, "i64[3]", x)
        scale = weft.stop_gradient(weft.host_call(np.sort, "f64[3]", x))
        return np.sum(x[order] * scale)

    np.testing.assert_array_equal(weft.compile(weft.grad(loss))(X), X)


# -- on_unsupported="host" -----------------------------------------------------------------


@contextmanager
def noted() -> Iterator[list[str]]:
    """The warnings of the body."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        messages: list[str] = []
        yield messages
    messages += [str(each.message) for each in found]
    assert all(each.category is weft.HostWarning for each in found), messages
    assert all(each.filename == __file__ for each in found)


RUN: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("dawsn", lambda x: special.dawsn(x * 3), (X,)),
    ("np.poly", lambda x: np.poly(x[:2]), (X,)),
    ("np.packbits", lambda x: np.packbits(x > 1.5), (X,)),
    ("np.histogram_bin_edges", lambda x: np.histogram_bin_edges(x, bins=4), (X,)),
    ("np.polyfit", lambda x: np.polyfit(np.array([0.0, 1, 2]), x, 1), (X,)),
    ("np.roots", lambda x: np.polyint(x, m=2), (X,)),
    ("np.histogram2d", lambda x: np.histogram2d(x, x, bins=2), (X,)),
    ("np.spacing", np.spacing, (X,)),
    ("x.searchsorted", lambda x: np.sort(x).searchsorted(x), (X,)),
    ("x.byteswap", lambda x: (x + 0).byteswap(), (X,)),
    ("np.multiply.reduceat", lambda x: np.multiply.reduceat(x, [0, 2]), (X,)),
]


@pytest.mark.parametrize(("name", "function", "args"), RUN, ids=lambda x: x if isinstance(
    x, str) else "")
def test_the_host_runs_what_is_refused(name: str, function: Any, args: Any) -> None:
    compiled = weft.compile(on_unsupported="host")(lambda *xs: function(*xs))
    with noted() as messages:
        found = compiled(*args)
    wanted = function(*args)
    for one, other in zip(found if isinstance(found, tuple) else (found,),
                          wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    if not messages:
        pytest.skip("it is compiled by now")
    assert "is not compiled: the host runs it at each call" in messages[0]
    assert "bytes; it has no gradient" in messages[0]
    with pytest.raises(UnsupportedError, match="W113"):
        weft.compile(lambda *xs: function(*xs))(*args)


def test_one_warning_for_each_function_and_line() -> None:
    @weft.compile(on_unsupported="host")
    def step(x: Any) -> Any:
        for _ in range(3):
            x = special.dawsn(x * 0.1)
        return special.ellipk(x), special.dawsn(x)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        step(X)
        step(X)
    messages = [str(each.message).split()[0] for each in found]
    assert messages == ["dawsn", "ellipk", "dawsn"]
    first, *_ = found
    assert first.category is weft.HostWarning and first.filename == __file__
    assert "copies 48 bytes" in str(first.message)


@array_function_dispatch(lambda x: (x,))
def above(x: Any) -> Any:
    """A function that dispatches as NumPy's do, which is none of them."""
    return x[x > 1]


@pytest.mark.parametrize(("function", "reason"), [
    (lambda x: x.transpose().getfield(np.int64), "it returns a view"),
    (above, "the type of its result depends on values"),
    (np.datetime_as_string, "a trial on the host failed"),
    (lambda x: np.busday_count(x, x), "a trial on the host failed"),
])
def test_what_the_host_cannot_run(function: Any, reason: str) -> None:
    compiled = weft.compile(on_unsupported="host")(lambda x: function(x.copy()))
    with pytest.raises(UnsupportedError, match=rf"(?s)W113: .*, nor can the host run it: {reason}"
                                               ".*test_host_call"):
        compiled(X)


def test_sizes_that_are_not_known_are_refused() -> None:
    compiled = weft.compile(on_unsupported="host", dynamic={"x": {0: "b"}})(
        lambda x: special.dawsn(x))
    with pytest.raises(UnsupportedError, match="arrays of known sizes"):
        compiled(X)


def test_without_it_functions_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"W113: dawsn is not supported yet"):
        weft.compile(lambda x: special.dawsn(x))(X)
    with pytest.raises(UnsupportedError, match="W113: on_unsupported='numpy' is not known"):
        weft.compile(on_unsupported="numpy")(lambda x: x)  # type: ignore[call-overload]


def test_inside_of_loops_and_of_called_functions() -> None:
    inner = weft.compile(lambda x: special.dawsn(x * 0.1))

    @weft.compile(on_unsupported="host")
    def step(x: Any) -> Any:
        return weft.fori_loop(0, 3, lambda i, x: inner(x) * 2, x)

    with noted() as messages:
        found = step(X * 4)
    wanted = X * 4
    for _ in range(3):
        wanted = special.dawsn(wanted * 0.1) * 2
    np.testing.assert_array_equal(found, wanted)
    assert messages and all(message.startswith("dawsn") for message in messages)


def test_results_in_an_order_of_their_own() -> None:
    """Whether a reshape of them is a view is not known, so writing through it is refused."""
    def change(x: Any) -> Any:
        made = weft.host_call(np.sort, "f64[2,3]", x)
        made.reshape(6)[0] = 1.0
        return made

    with pytest.raises(Error, match="W203"):
        weft.compile(change)(np.ones((2, 3)))
    x = np.ones((3, 3)) + np.eye(3)

    def transposed(x: Any) -> Any:
        vh = np.linalg.svd(x, hermitian=True)[2]
        vh.reshape(9)[0] = 1.0
        return vh

    with pytest.raises(Error, match="W203"):
        weft.compile(transposed)(x)


@pytest.mark.long
def test_functions_are_not_called_to_verify_passes() -> None:
    code = """
import numpy as np, weft
calls = []
def note(x):
    calls.append(x.sum())
    return x
f = weft.compile(lambda x: weft.host_call(note, "f64[3]", x * 2) + 1)
print(f(np.ones(3)).tolist(), [float(x) for x in calls])
g = weft.compile(lambda x: np.linalg.cholesky(x))  # of random numbers there is none
print(g(np.eye(2)).tolist())
"""
    done = python(code, WEFT_VERIFY="passes")
    assert done.stdout == "[3.0, 3.0, 3.0] [6.0]\n[[1.0, 0.0], [0.0, 1.0]]\n"


def refusing(z: Any) -> Any:
    if z > 3:
        raise ValueError("more than 3")
    return z


def catching(z: Any) -> Any:
    try:
        for i in range(int(z)):
            if i > 2:
                raise ValueError("many")
        return z * 10
    except ValueError:
        return -z


def test_functions_of_code_that_is_rewritten_run_as_python_runs_them() -> None:
    @weft.compile
    def step(x: Any) -> Any:
        def local(z: Any) -> Any:
            return refusing(z) if z < 9 else z

        if x > 0:
            x = x + 1
        return [weft.host_call(function, "f64[]", x) for function in (
            refusing, catching, local, lambda z: catching(z))]

    assert step(1.0) == [2.0, 20.0, 2.0, 20.0]
    assert step(2.0) == [3.0, 30.0, 3.0, 30.0]
    with pytest.raises(ValueError, match="more than 3"):
        step(5.0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of ctypes
@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(),
                    reason="signals go to the main thread")
def test_an_interrupt_before_a_host_call_ends_the_step(capfd: pytest.CaptureFixture[str]) -> None:
    calls: list[str] = []

    def begin(z: Any) -> Any:
        calls.append("begin")
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        return z

    def end(z: Any) -> Any:
        calls.append("end")
        return z

    @weft.compile
    def step(x: Any) -> Any:
        start = weft.host_call(begin, "f64[]", x[0, 0])
        y = x + 0 * start
        for _ in range(12):
            y = np.tanh(y @ x)
        state.assign(weft.host_call(end, "f64[]", y.sum()))
        return y

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    state, x = weft.Variable(-1.0), np.full((700, 700), 1e-3)
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        step(x)
        state.assign(-1.0)
        calls.clear()
        signal.signal(signal.SIGALRM, interrupt)
        with pytest.raises(KeyboardInterrupt):
            step(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert state.numpy() == -1.0 and calls[0] == "begin" and calls.count("begin") == 1
