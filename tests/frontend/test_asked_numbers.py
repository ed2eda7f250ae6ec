"""Numbers whose values a trace asks for become static; the user's own exceptions are raised."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from texts import without_notes

import weft

X = np.arange(1.0, 7.0)


def same(function: Callable[..., Any], *calls: tuple[Any, ...]) -> Any:
    """Compiled, the function gives what it gives by itself, for each of the calls."""
    compiled = weft.compile(function, on_recompile="silent")
    for args in calls:
        want, got = function(*args), compiled(*args)
        assert type(want) is type(got)
        np.testing.assert_allclose(got, want)
        np.testing.assert_allclose(compiled(*args), want)
    return compiled


# -- numbers that become static -----------------------------------------------------------------


def wave(points: int, steps: int, speed: float) -> Any:
    out = np.zeros((steps, points))
    out[0] = np.sin(np.linspace(0, 1, points))
    for i in range(1, steps):
        out[i] = out[i - 1] * speed
    return out


def test_sizes_become_static_and_factors_stay_traced() -> None:
    made = same(wave, (5, 3, 0.5), (5, 3, 0.25))
    assert set(made.fixed) == {"points", "steps"}
    same(wave, (5, 3, 0.5), (6, 3, 0.5))
    made(6, 3, 0.5)
    assert set(made.fixed) == {"steps"}  # of one value until now
    assert [set(types) for types in made.signatures] == [{"speed"}, {"points", "speed"}]
    assert "'steps' is static: it is a number whose value is asked for at test" in str(
        made.explain())


def ramp(x: float, n: int) -> Any:
    y = np.zeros(n)
    for i in range(n):
        y[i] = x * i
    return y


def triangle(x: float, n: int) -> Any:
    rows = np.zeros((n, n))
    for i in range(n):
        rows[i, 0] = x
        for j in range(1, i + 1):
            rows[i, j] = rows[i - 1, j - 1] + rows[i - 1, j]
    return rows


def in_bins(x: float, n: int) -> Any:
    edges = np.linspace(0, x, n + 1)
    return edges, edges.reshape(-1, 1)


def sieved(x: float, n: int) -> Any:
    prime = np.ones(n + 1, bool)
    for i in range(2, int(n ** 0.5) + 1):
        if prime[i]:
            for j in range(i * i, n + 1, i):
                prime[j] = False
    return x, prime[2:].sum(), np.nonzero(prime)[0]


def turned(x: float, n: int) -> Any:
    y, old = np.arange(n) * x, np.zeros(n)
    for i in range(n):
        old[i] = y[(i - 1) % n] + y[(i + 1) % n]
    return np.roll(old, 2)


@pytest.mark.parametrize("function", [ramp, triangle, in_bins, sieved, turned])
def test_a_size_is_traced_from_its_second_value_on(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (5, 4, 9, 1, 17, 5, 0 if function is not sieved else 3):
            for got, want in zip(weft.tree.leaves(compiled(0.5, n)),
                                 weft.tree.leaves(function(0.5, n)), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-14, strict=True)
    assert len(compiled.signatures) == 2 and not compiled.fixed
    with pytest.raises((ValueError, IndexError)):
        compiled(0.5, -3)
    np.testing.assert_allclose(weft.tree.leaves(compiled(0.5, 6))[0],
                               weft.tree.leaves(function(0.5, 6))[0])


@pytest.mark.parametrize("function", [ramp, triangle])
def test_what_a_size_says_of_indices(function: Callable[..., Any]) -> None:
    """Loops and arrays that go by one number need no check of an index, nor of their rounds."""
    compiled = weft.compile(function)
    compiled(0.5, 4)
    compiled(0.5, 5)
    text = without_notes(compiled.lower(0.5, 6).as_text("plan"))
    assert "measure size = %n" in text and "in size" in text
    assert "W124" not in text and "while" not in text


def test_rows_of_such_sizes_are_put_between_others() -> None:
    compiled = weft.compile(lambda x, n: (
        np.insert(x, 1, np.zeros(n)), np.insert(x, -2, n + np.ones(n))))
    for n in (3, 4, 0, 1):
        for got, want in zip(compiled(X, n), (np.insert(X, 1, np.zeros(n)),
                                              np.insert(X, -2, n + np.ones(n))), strict=True):
            np.testing.assert_array_equal(got, want)


def test_least_numbers_of_bins_are_not_negative() -> None:
    compiled = weft.compile(lambda x, n: np.bincount(x, minlength=n))
    for n in (4, 5, 0, 2):
        np.testing.assert_array_equal(compiled(np.array([0, 3]), n), np.bincount([0, 3], None, n))
    with pytest.raises(ValueError, match="must not be negative"):
        compiled(np.array([0, 3]), -1)


def guarded(x: Any, n: int) -> Any:
    y = np.zeros(n)
    if n > 2:
        return y[2] + 1.0
    return -1.0


def fibonacci(x: Any, n: int) -> Any:
    y = np.zeros(n + 1)
    if n > 0:
        y[1] = 1.0
    for i in range(2, n + 1):
        y[i] = y[i - 1] + y[i - 2]
    return y[n]


def largest(x: Any, n: int) -> Any:
    y = np.ones(n)
    return y.max() if n else 0.0


def tried(x: Any, n: int) -> Any:
    y = np.zeros(n)
    try:
        v = y[3]
    except IndexError:
        v = -1.0
    return v + x


def repeated(x: Any, n: int) -> Any:
    return np.zeros(6 if n > 1 else n) + x


def squeezed(x: Any, n: int) -> Any:
    return (np.ones((n, 6)) * x).squeeze()


def late(x: Any, n: int) -> Any:
    least, total = np.maximum(n, 0), 0.0
    for i in range(len(x)):
        if i >= least:
            total += (n + 1) * np.sum(np.ones(n) * x[i])
    return total


@pytest.mark.parametrize("function", [guarded, fibonacci, largest, tried, repeated, squeezed,
                                      late])
def test_sizes_that_only_some_ways_ask_for_are_known(function: Callable[..., Any]) -> None:
    """What is not reached is not asked, and dims of 1 are repeated, as in NumPy."""
    compiled = weft.compile(function, on_recompile="silent")
    for n in (5, 6, 3, 1, 0, 2, 4):
        try:
            want = function(X, n)
        except ValueError:
            with pytest.raises(ValueError):
                compiled(X, n)
            continue
        np.testing.assert_allclose(compiled(X, n), want, strict=True)


def test_a_number_that_has_to_be_known_is_static_for_good() -> None:
    compiled = weft.compile(lambda x, k: np.concatenate([x] * k), on_recompile="silent")
    for k in (1, 2, 3):
        np.testing.assert_array_equal(compiled(X, k), np.concatenate([X] * k))
    assert set(compiled.fixed) == {"k"} and len(compiled.signatures) == 3


# -- numbers that say sizes in loops ------------------------------------------------------------


def swept(x: Any, low: int, high: int, rounds: int) -> Any:
    y = x * 1
    for i in range(1, rounds):
        y[low:high - 1] += 0.5 * y[low + 1:high] * i
    return y


LONG = np.linspace(0, 1, 300)


def test_they_are_static_until_there_are_others() -> None:
    compiled = weft.compile(swept)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for low, high, rounds, static in (
                (2, 280, 70, {"low", "high"}), (2, 280, 80, {"low", "high"}),
                (2, 270, 70, {"low"}), (2, 260, 70, {"low"}), (3, 280, 70, set()),
                (2, 280, 70, set()), (0, 0, 70, set()), (-3, 900, 70, set())):
            try:
                want = swept(LONG, low, high, rounds)
            except ValueError:
                with pytest.raises(ValueError):
                    compiled(LONG, low, high, rounds)
                continue
            np.testing.assert_allclose(compiled(LONG, low, high, rounds), want)
            assert compiled.fixed.keys() == static
    assert len(compiled.signatures) == 3
    assert "high 280 -> any number" in str(compiled.explain())


def test_they_may_be_something_else() -> None:
    compiled = weft.compile(swept, on_recompile="silent")
    for high in (280, np.int64(250), np.array(240), 270):
        np.testing.assert_allclose(compiled(LONG, 0, high, 70), swept(LONG, 0, high, 70))
    with pytest.raises(TypeError):
        compiled(LONG, 0, np.array([3, 4]), 70)
    with pytest.raises(TypeError):
        compiled(LONG, 0, 2.5, 70)


def test_a_function_of_one_program_has_them_traced() -> None:
    compiled = weft.compile(swept, on_recompile="error")
    for high in (280, 200):
        np.testing.assert_allclose(compiled(LONG, 2, high, 70), swept(LONG, 2, high, 70))
    assert not compiled.fixed


def test_an_artifact_takes_them(tmp_path: Path) -> None:
    loaded = weft.load(weft.export(weft.compile(swept), LONG, 2, 280, 70, path=tmp_path / "out"))
    np.testing.assert_allclose(loaded(LONG, 4, 200, 65), swept(LONG, 4, 200, 65))


def test_threads_with_others_at_once() -> None:
    compiled = weft.compile(swept, on_recompile="silent")
    wrong: list[int] = []

    def called(high: int) -> None:
        want = swept(LONG, 2, high, 70)
        for _ in range(3):
            if not np.allclose(compiled(LONG, 2, high, 70), want):
                wrong.append(high)

    threads = [threading.Thread(target=called, args=(high,)) for high in (280, 270, 280, 260)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and not compiled.fixed.keys() & {"high"}


def simulated(end: float, dt: float) -> Any:
    found = []
    for i in range(int(end / dt)):
        found.append(i * dt)
    return np.array(found)


def test_a_size_that_is_computed_of_floats() -> None:
    assert set(same(simulated, (1.0, 0.25), (2.0, 0.25)).fixed) == {"end", "dt"}


def test_what_runs_as_a_loop_is_compiled_once() -> None:
    def power(x: Any, n: int) -> Any:
        y = 1.0
        for _ in range(n):
            y = y * x
        return y

    made = same(power, (2.0, 3), (2.0, 4))
    assert not made.fixed and len(made.signatures) == 1


def test_first_elements_for_a_function_that_needs_their_number() -> None:
    same(lambda x, k: np.outer(x[:k], x[:k]), (X, 2), (X, 3))


def test_a_size_in_a_grid_that_numpy_makes() -> None:
    same(lambda x, n: x[0] * np.mgrid[-n:n + 1, 0:2][0], (X, 1), (X, 2))


def test_ways_of_other_shapes_are_chosen_by_a_number() -> None:
    def ends(x: Any, mode: int) -> Any:
        if mode == 1:
            return x[:2]
        return x

    same(ends, (X, 1), (X, 2))


def test_a_window_of_a_method_and_a_keyword() -> None:
    class Filter:
        scale = 2.0

        @weft.compile(on_recompile="silent")
        def windows(self, x: Any, *, width: int) -> Any:
            return self.scale * np.lib.stride_tricks.sliding_window_view(x, width).mean(axis=1)

    for width in (2, 3):
        want = 2 * np.lib.stride_tricks.sliding_window_view(X, width).mean(axis=1)
        np.testing.assert_allclose(Filter().windows(X, width=width), want)


def test_lowered_functions_and_shapes_know_them_too() -> None:
    f = weft.compile(lambda x, n: np.tile(x, n))
    assert f.eval_shape("f64[3]", 2).shape == (6,)
    np.testing.assert_array_equal(f.lower(X, 2).compile()(X, 2), np.tile(X, 2))


def test_functions_as_arguments() -> None:
    def integral(f: Any, a: float, b: float, n: int = 8) -> Any:
        x = np.linspace(a, b, n)
        y = f(x)
        return np.sum((y[1:] + y[:-1]) * np.diff(x)) / 2

    def cube(x: Any) -> Any:
        return x ** 3

    made = same(integral, (np.sin, 0.0, 1.0), (cube, 0.0, 1.0), (cube, 0.0, 2.0, 9))
    assert "'f' is static: it is a function or a class" in str(made.explain())


def test_numbers_that_are_of_no_help_stay_traced() -> None:
    f = weft.compile(lambda x, n: hash(x[0]) + n)
    with pytest.raises(weft.Error, match="W201"):
        f(X, 2)
    assert not f.fixed


def test_a_computed_number_of_an_array_is_a_size() -> None:
    made = weft.compile(lambda x, n: np.zeros(x[1].astype(int) * n))
    np.testing.assert_array_equal(made(X, 2), np.zeros(int(X[1]) * 2))
    assert len(made.signatures) == 1


def test_each_value_of_a_size_warns_and_a_choice_does_not() -> None:
    f = weft.compile(lambda n: np.concatenate([X] * n))
    f(2)
    with pytest.warns(weft.RecompileWarning, match="n 2 -> 3 at .*static, as it is a number whose"):
        f(3)
    g = weft.compile(lambda x, up: x + 1 if not up else x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(g(X, True), X)
        np.testing.assert_array_equal(g(X, False), X + 1)


def test_threads_ask_for_one_number_at_once() -> None:
    f = weft.compile(lambda x, n: np.repeat(x, n), on_recompile="silent")
    found: dict[int, Any] = {}
    start = threading.Barrier(3)

    def call(n: int) -> None:
        start.wait()
        found[n] = f(X, n)

    threads = [threading.Thread(target=call, args=(n,)) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in (1, 2, 3):
        np.testing.assert_array_equal(found[n], np.repeat(X, n))
        np.testing.assert_array_equal(f(X, n), np.repeat(X, n))


# -- exceptions of the user's -------------------------------------------------------------------


class OutsideError(ValueError):
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@weft.compile
def checked(x: Any, k: Any = 0) -> Any:
    if np.any(x < 0):
        raise ValueError("negative")
    if x.sum() > 100:
        raise OutsideError("large", 7)
    for i in range(len(x)):
        if x[i] == 13:
            raise RuntimeError
    y = np.sqrt(x)
    return y * 2 if y[0] > 2 else y


@pytest.mark.parametrize(("x", "kind", "text"), [
    ([-1.0, 2.0], ValueError, "negative"), ([99.0, 9.0], OutsideError, "large"),
    ([1.0, 13.0], RuntimeError, "")])
def test_exceptions_are_those_of_the_function(x: Any, kind: type, text: str) -> None:
    for _ in range(2):
        with pytest.raises(kind) as caught:
            checked(np.array(x))
        assert type(caught.value) is kind and str(caught.value) == text
        assert getattr(caught.value, "code", 7) == 7
        assert isinstance(caught.value.__cause__, weft.Error)
        assert "test_asked_numbers.py" in str(caught.value.__cause__)
    np.testing.assert_array_equal(checked(np.array([9.0, 1.0])), [6.0, 2.0])
    np.testing.assert_array_equal(checked(np.array([1.0, 4.0])), [1.0, 2.0])


def test_a_failed_check_leaves_variables_as_they_were() -> None:
    count = weft.Variable(0)

    @weft.compile
    def step(x: Any) -> Any:
        count.assign_add(1)
        if x > 3:
            raise KeyError("x")
        return x

    step(1.0)
    with pytest.raises(KeyError):
        step(4.0)
    assert int(count.numpy()) == 1


def test_a_loop_that_must_end_by_a_break() -> None:
    @weft.compile(on_recompile="silent")
    def root(a: Any, most: Any) -> Any:
        x = a
        for _ in range(most):
            new = (x + a / x) / 2
            if abs(new - x) < 1e-12:
                break
            x = new
        else:
            raise ArithmeticError("no convergence")
        return new

    assert root(2.0, 50) == pytest.approx(math.sqrt(2))
    with pytest.raises(ArithmeticError, match="no convergence"):
        root(2.0, 2)


def test_an_exception_inside_of_branches_and_loops() -> None:
    @weft.compile
    def scan(x: Any, limit: Any) -> Any:
        total = 0.0
        i = 0
        while i < len(x):
            if x[i] > 0:
                total += x[i]
                if total > limit:
                    raise OverflowError("too much")
            i += 1
        return total

    assert scan(np.array([1.0, -5.0, 2.0]), 3.0) == 3.0
    with pytest.raises(OverflowError, match="too much"):
        scan(np.array([1.0, 5.0, 2.0]), 3.0)


def test_one_of_several_exceptions() -> None:
    @weft.compile
    def either(x: Any) -> Any:
        if x > 9:
            raise ValueError
        if x > 3:
            raise LookupError
        if x > 1:
            raise TypeError
        raise KeyError("nothing else")

    for x, kind in ((10.0, ValueError), (4.0, LookupError), (2.0, TypeError), (0.0, KeyError)):
        with pytest.raises(kind) as caught:
            either(np.array(x))
        assert caught.type is kind


def test_an_exception_in_every_round_is_refused() -> None:
    def never(x: Any) -> Any:
        while x > 0:
            raise ValueError
        return x

    with pytest.raises(weft.Error, match="W201: whether this exception"):
        weft.compile(never)(np.array(1.0))


# -- what such programs use besides -------------------------------------------------------------


def test_functions_of_math_under_vectorize_and_as_arguments() -> None:
    def special(x: Any) -> Any:
        return np.vectorize(math.erf)(x) + math.gamma(x[1]) + math.lgamma(x[2]) + math.erfc(x[0])

    same(special, (X,))
    same(lambda x: sum(map(math.sqrt, x)), (X,))


def test_functions_of_math_give_floats_of_python() -> None:
    def lengths(x: Any) -> Any:
        size = math.sqrt(np.sum(x * x))
        return size, x / size, math.hypot(x[0], x[1], x[2]), math.pow(2, x[1])

    f, x = weft.compile(lengths), X.astype(np.float32)
    for got, want in zip(f(x), lengths(x), strict=True):
        assert type(got) is type(want) and np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_ranges_are_indices() -> None:
    def cleared(x: Any) -> Any:
        x = x.copy()
        x[range(3), range(3)] = 0
        return x[range(0, 3, 2)]

    same(cleared, (np.ones((3, 3)),))


def test_chosen_elements_one_by_one() -> None:
    image = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1]])

    def votes(image: Any) -> Any:
        ys, xs = np.nonzero(image)
        found = np.zeros((9, 2), np.uint64)
        for k in range(2):
            np.add.at(found[:, k], np.round(ys * 0.5 + xs * k).astype(int), 1)
        plane = np.zeros((3, 3))
        np.add.at(plane, (ys, xs), np.clip(xs, 0, 1) * 0.5)
        return found + plane.sum()

    same(votes, (image,), (0 * image,))


def test_chosen_elements_by_their_numbers() -> None:
    def matched(x: Any) -> Any:
        values, places = np.unique(x, return_inverse=True)
        return np.where(values > 2, values, -values)[places], values[[0, -1]]

    f = weft.compile(matched)
    x = np.array([3.0, 1.0, 3.0, 2.0])
    for got, want in zip(f(x), matched(x), strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(IndexError):
        weft.compile(lambda x: np.unique(x)[np.arange(4)])(x)


# -- results and conversions --------------------------------------------------------------------


def test_texts_and_dtypes_among_results() -> None:
    def said(x: Any) -> Any:
        return None, "ok", x.sum(), {"kind": x.dtype, "shape": x.shape}

    f = weft.compile(said)
    for _ in range(2):
        assert f(X) == said(X)
    assert weft.compile(lambda x: "nothing")(X) == "nothing"
    assert weft.compile(lambda x: (x[x > 2], "chosen"))(X)[1] == "chosen"


def test_another_text_on_each_way_is_refused() -> None:
    def sized(x: Any) -> Any:
        if x.sum() > 2:
            return x, "large"
        return x, "small"

    with pytest.raises(weft.Error, match=r"W102: the result\[1\] is 'large' on one way"):
        weft.compile(sized)(X)


def test_classes_of_scalars_convert() -> None:
    def hashed(data: Any) -> Any:
        h = np.uint64(14695981039346656037)
        for byte in data:
            h = (h ^ np.uint64(byte)) * np.uint64(1099511628211)
        return h

    def several(x: Any, k: Any) -> Any:
        return np.float32(x), np.int64(x[1]), np.uint8(k), np.bool_(x[0]), np.complex128(x[2])

    data = np.frombuffer(b"wikipedia", np.uint8)
    with np.errstate(over="ignore"):
        assert weft.compile(hashed)(data) == hashed(data)
    for got, want in zip(weft.compile(several)(X, 7), several(X, 7), strict=True):
        assert type(got) is type(want) and got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_a_loop_over_nditer() -> None:
    def total(x: Any) -> Any:
        found = 0.0
        for each in np.nditer(x):
            found += each
        return found

    x = X.reshape(2, 3)
    assert weft.compile(total)(x) == total(x)


def test_an_argument_changed_by_an_operator_warns() -> None:
    def normal(x: Any) -> Any:
        x -= x.mean()
        y = x + 1
        y *= 2
        return x / x.std()

    x = X.copy()
    with pytest.warns(weft.TracingWarning, match="x is changed in place") as caught:
        got = weft.compile(inout="error")(normal)(x)
    assert len(caught) == 1 and caught[0].filename == __file__
    np.testing.assert_array_equal(x, X)
    np.testing.assert_allclose(got, normal(X.copy()))


def test_a_numerical_gradient_over_nditer() -> None:
    def slopes(x: Any) -> Any:
        x, h = x.copy(), 1e-5
        out = np.zeros_like(x)
        places = np.nditer(x, flags=["multi_index"], op_flags=["readwrite"])
        while not places.finished:
            at = places.multi_index
            old = x[at]
            x[at] = old + h
            above = np.sum(np.tanh(x) ** 2)
            x[at] = old - h
            out[at] = (above - np.sum(np.tanh(x) ** 2)) / (2 * h)
            x[at] = old
            places.iternext()
        return out, sum(float(v) for v in np.nditer(x, flags=["multi_index"]))

    x = np.array([[0.3, -1.0], [2.0, 0.5]])
    for got, want in zip(weft.compile(slopes)(x), slopes(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9)
