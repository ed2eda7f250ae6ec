"""What kind of value comes in and goes out: Python's numbers, NumPy's scalars, arrays without dims,
and arrays of classes and byte orders that a program would lose."""

from __future__ import annotations

import collections.abc
import functools
import itertools
import numbers
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft

X = np.arange(4.0)
ONES: dict[str, Any] = {
    "float": 3.0, "int": 3, "bool": True, "complex": 3j, "float64": np.float64(3),
    "float32": np.float32(3), "int64": np.int64(3), "bool_": np.bool_(True),
    "complex128": np.complex128(3j), "0-d": np.array(3.0), "0-d int": np.array(3),
    "1-d": np.array([3.0])}
ATTRIBUTES = ("__iter__", "__len__", "__getitem__", "shape", "dtype", "ndim", "size", "item",
              "astype", "reshape", "T", "sum", "real", "__call__", "append")
CLASSES: tuple[Any, ...] = (
    np.ndarray, np.generic, np.floating, np.integer, float, int, bool, complex, numbers.Number,
    numbers.Real, numbers.Integral)


def kinds(x: Any) -> Any:
    return [isinstance(x, kind) for kind in CLASSES], np.isscalar(x), type(x) is float, type(x) is (
        np.float64), type(x).__name__


def attributes(x: Any) -> Any:
    return [hasattr(x, name) for name in ATTRIBUTES], getattr(x, "ndim", -1), callable(x)


def abstract(x: Any) -> Any:
    return [isinstance(x, kind) for kind in (
        collections.abc.Iterable, collections.abc.Sized, collections.abc.Container,
        collections.abc.Sequence, collections.abc.Callable)]


def length(x: Any) -> Any:
    try:
        return len(x)
    except TypeError:
        return -1


def items(x: Any) -> Any:
    try:
        return [item for item in x]  # noqa: C416  # as written by users
    except TypeError:
        return -1


def itself(x: Any) -> Any:
    return x


def changed(x: Any) -> Any:
    return x + 1, np.asarray(x), np.sum(x), np.copy(x), [x, 2 * x]


def classes(x: Any) -> Any:
    return [classes(item) for item in x] if isinstance(x, (list, tuple)) else type(x)


@pytest.mark.parametrize("function", [kinds, attributes, abstract, length, items, itself, changed])
@pytest.mark.parametrize("backwards", [False, True])
def test_one_function_for_all_kinds(function: Callable[..., Any], backwards: bool) -> None:
    """In any order, and again when the native entries are there."""
    compiled = weft.compile(on_recompile="silent")(function)
    for _ in range(3):
        for name, x in reversed(ONES.items()) if backwards else ONES.items():
            got, want = compiled(x), function(x)
            assert classes(got) == classes(want), name
            np.testing.assert_equal(got, want, name)


def test_a_number_that_became_static_does_not_keep_arrays_out() -> None:
    sized = weft.compile(lambda n: np.zeros(n).sum() if np.isscalar(n) else n * 2)
    assert sized(3) == 0
    np.testing.assert_array_equal(sized(X), X * 2)


# -- classes with arithmetic of their own


class Unit(np.ndarray):
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*map(np.asarray, inputs), **options) * 10


class Twisted(np.ndarray):
    def __mul__(self, other: Any) -> Any:
        return np.asarray(self) + np.asarray(other)


class Plain(np.ndarray):
    """Which only has a name."""


MASKED = np.ma.masked_array([1.0, 2, 3, 4], [0, 1, 0, 1])
MATRIX = np.matrix([[1.0, 2], [3, 4]])
OWN = {"masked": MASKED, "matrix": MATRIX, "unit": X.view(Unit), "twisted": X.view(Twisted)}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("where", ["argument", "closure", "default", "item", "attribute",
                                   "returned", "variable", "function"])
def test_classes_that_compute_in_their_own_way_are_refused(name: str, where: str) -> None:
    own = OWN[name]
    plain = np.asarray(own).copy()

    class Holder:
        def __init__(self) -> None:
            self.held = own

    holder, held = Holder(), {"x": [own]}
    functions: dict[str, Callable[..., Any]] = {
        "argument": lambda x: x * 2, "closure": lambda x: x * own,
        "default": lambda x, y=own: x * y, "item": lambda x: x * held["x"][0],
        "attribute": lambda x: x * holder.held, "returned": lambda x: (x, own),
        "variable": lambda x: x, "function": lambda x: np.add(x, own)}
    with pytest.raises(weft.Error, match=r"W112.*(has arithmetic of its|own)"):
        if where == "variable":
            weft.Variable(own)
        weft.compile(functions[where])(own if where == "argument" else plain)


def test_what_replaces_them_works() -> None:
    filled, mask, matrix = MASKED.filled(0), MASKED.mask, np.asarray(MATRIX)
    compiled = weft.compile(lambda x: (x + filled, np.where(mask, 0, x).sum(), x[~mask].sum()))
    np.testing.assert_array_equal(compiled(X)[0], [1, 1, 5, 3])
    assert compiled(X)[1:] == (2.0, 2.0)
    np.testing.assert_array_equal(weft.compile(lambda y: matrix @ y)(np.eye(2)), MATRIX)


@pytest.mark.parametrize("make", [
    lambda x: np.ma.masked_array(x, x > 1).sum(), lambda x: np.ma.masked_greater(x, 1),
    lambda x: MASKED * x, lambda x: np.asmatrix(x), lambda x: x.view(Unit)])
def test_they_are_not_made_of_traced_arrays(make: Callable[..., Any]) -> None:
    with pytest.raises(weft.Error, match=r"W112: .* cannot be a .* arithmetic of its own"):
        weft.compile(make)(X)


def test_classes_that_only_store_are_arrays(tmp_path: Path) -> None:
    stored = np.memmap(tmp_path / "x", float, "w+", shape=(4,))
    stored[:] = X
    for x in (stored, X.view(Plain), X.view(np.recarray)):
        compiled = weft.compile(lambda y, x=x: x * y)
        np.testing.assert_array_equal(compiled(X), X * X)
        np.testing.assert_array_equal(weft.compile(lambda x: x * 2)(x), X * 2)
        np.testing.assert_array_equal(weft.compile(lambda x: x.view(np.ndarray) + 1)(X), X + 1)


# -- byte order

OTHER = X.dtype.newbyteorder()


@pytest.mark.parametrize("function", [
    lambda x: x.view(OTHER), lambda x: x.astype(OTHER), lambda x: np.array(x, OTHER),
    lambda x: np.zeros_like(x, dtype=OTHER), lambda x: np.full(2, x[0], OTHER),
    lambda x: np.sum(x, dtype=OTHER), lambda x: np.asarray([x[0]], dtype=OTHER)])
def test_a_byte_order_that_would_be_lost_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"W112: values in the byte order of .*\n(.*\n)*.*astype"):
        weft.compile(function)(X)


def test_a_buffer_in_another_byte_order_holds_no_traced_value() -> None:
    def write(x: Any) -> Any:
        y = np.zeros(2, OTHER)
        y[0] = x[1]
        return y

    with pytest.raises(weft.Error, match="W112: values in the byte order of"):
        weft.compile(write)(X)


def test_arguments_are_read_in_any_byte_order() -> None:
    other = X.astype(OTHER)
    np.testing.assert_array_equal(weft.compile(lambda x: x + other)(other), 2 * X)
    raw = (7).to_bytes(4, "big") * 2
    found = weft.compile(lambda x: np.frombuffer(raw, ">i4") * x[1])(X)
    np.testing.assert_array_equal(found, [7.0, 7.0])
    assert weft.Variable(other).value.tolist() == X.tolist()


# -- what NumPy is told about floating-point errors


def test_ignored_errors_are_no_matter() -> None:
    def inverse(x: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
            return 1 / x

    np.testing.assert_array_equal(weft.compile(inverse)(np.zeros(2)), [np.inf, np.inf])


@pytest.mark.parametrize("how", ["raise", "print"])
def test_errors_that_are_to_be_heard_of_are_refused(how: Any) -> None:
    def inverse(x: Any) -> Any:
        if x[0] >= 0:
            with np.errstate(divide=how):
                x = 1 / x
        return x

    with pytest.raises(weft.Error, match=rf"W113: np.errstate\(divide='{how}'\) has no effect"):
        weft.compile(inverse)(np.zeros(2))


alias = isinstance
KINDS = (np.ndarray, np.float64, np.generic, numbers.Number, float, collections.abc.Iterable)


def called(f: Any, x: Any, kind: Any) -> Any:
    return f(x, kind)


def by_a_local(x: Any, kind: Any) -> Any:
    table = {"is": isinstance}
    return table["is"](x, kind)


@pytest.mark.parametrize("ask", [
    lambda x: tuple(map(isinstance, [x] * len(KINDS), KINDS)),
    lambda x: tuple(map(functools.partial(isinstance, x), KINDS)),
    lambda x: tuple(functools.partial(isinstance, x)(kind) for kind in KINDS),
    lambda x: tuple(itertools.starmap(isinstance, [(x, kind) for kind in KINDS])),
    lambda x: tuple(alias(x, kind) for kind in KINDS),
    lambda x: tuple(called(isinstance, x, kind) for kind in KINDS),
    lambda x: tuple(by_a_local(x, kind) for kind in KINDS),
    lambda x: [*map(isinstance, (x, 1.0), (np.ndarray, float))],
    lambda x: (any(map(isinstance, [x], [np.ndarray])), all(map(alias, [x], [np.float64]))),
    lambda x: sum(map(isinstance, [x, x, 3], [np.ndarray, np.float64, int])),
    lambda x: [kind.__name__ for kind in filter(functools.partial(isinstance, x), KINDS)],
    lambda x: list(itertools.compress("abcdef", map(isinstance, itertools.repeat(x), KINDS))),
], ids=range(12))
@pytest.mark.parametrize("value", [
    np.arange(3.0), np.array(2.0), np.float64(2.0), 2.0], ids=["array", "0-d", "scalar", "number"])
def test_isinstance_as_a_value(ask: Callable[[Any], Any], value: Any) -> None:
    compiled = weft.compile(ask)
    assert compiled(value) == compiled(value) == ask(value)


def test_isinstance_as_a_value_of_code_without_a_source() -> None:
    """It cannot be rewritten: an error, and not another answer."""
    names: dict[str, Any] = {"np": np}
    exec("def f(x):\n    return tuple(map(isinstance, [x], [np.ndarray]))", names)
    exec("def g(x):\n    return tuple(isinstance(each, np.ndarray) for each in [x])", names)
    with pytest.raises(weft.Error, match=r"(?s)W201: .* isinstance .* fix: write isinstance"):
        weft.compile(names["f"])(np.arange(3.0))
    assert weft.compile(names["g"])(np.arange(3.0)) == (True,)


SPECIAL = (
    "__index__", "__int__", "__float__", "__complex__", "__round__", "__trunc__", "__array__",
    "__array_priority__", "__array_ufunc__", "__setitem__", "__divmod__", "__matmul__", "__copy__",
    "__deepcopy__", "__array_namespace__", "__bool__", "__abs__", "__len__", "__iter__")


@pytest.mark.parametrize("value", [
    np.arange(3.0), np.arange(3), np.array(2.0), np.array(2), np.float64(2), np.float32(2),
    np.int64(2), np.bool_(True), np.complex128(2j), 2.0, 2, True, 2j], ids=repr)
def test_special_methods_are_there_as_in_numpy(value: Any) -> None:
    def has(x: Any) -> Any:
        return tuple(hasattr(x, name) for name in SPECIAL)

    def gets(x: Any) -> Any:
        return tuple(getattr(x, name, None) is not None for name in SPECIAL)

    def kind(x: Any) -> str:
        if hasattr(x, "__len__"):
            return "row"
        return "whole" if hasattr(x, "__index__") else "real" if hasattr(
            x, "__float__") else "other"

    for f in (has, gets, kind):
        assert weft.compile(f)(value) == f(value)


def test_special_methods_still_convert() -> None:
    """What the questions above deny, C code finds."""
    x, two = np.arange(3.0), 2.0
    for f in (lambda x, y: np.asarray(y) + x, lambda x, y: np.add(x, y), lambda x, y: x * y,
              lambda x, y: np.stack([y, y]), lambda x, y: np.array([y, x[0]]),
              lambda x, y: divmod(y, 0.75)[1], lambda x, y: round(y), lambda x, y: float(y),
              lambda x, y: np.float64(3) * y, lambda x, y: np.multiply.outer(x, y)):
        np.testing.assert_array_equal(weft.compile(f)(x, two), f(x, two))
    assert weft.compile(lambda n: [1, 2, 3][n])(1) == 2


def heard_at(call: Callable[..., Any], *args: Any) -> list[tuple[str, int]]:
    """The places of the TracingWarnings of one call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(*args)
    assert all(each.category is weft.TracingWarning for each in found)
    return [(Path(each.filename).name, each.lineno) for each in found]


@pytest.mark.parametrize("native", ["1", "0"])
def test_a_caller_who_wants_to_hear_of_errors_is_told_each_time(
    native: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WEFT_NATIVE_CALL", native)
    compiled, zeros = weft.compile(lambda x: 1 / x), np.zeros(1)
    total = weft.Variable(zeros)
    stateful = weft.compile(lambda x: total.assign_add(1 / x))
    weft.export(lambda x: 1 / x, zeros, path=tmp_path / "m")
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (1,), name="x")
        y = 1 / x
    step = weft.Session(graph).make_callable(y, [x])
    here = (Path(__file__).name, heard_at.__code__.co_firstlineno + 4)
    for call in (compiled, stateful, weft.load(tmp_path / "m"), step):
        assert heard_at(call, zeros) == []  # the first call compiles, the second one may be native
        assert heard_at(call, zeros) == []
        for how in ("raise", "print", "log"):
            for _ in range(2):
                with np.errstate(divide=how):  # type: ignore[arg-type]
                    assert heard_at(call, zeros) == [here], how
        with np.errstate(divide="ignore", over="warn"):
            assert heard_at(call, zeros) == []
        before = np.seterr(invalid="raise")
        try:
            assert heard_at(call, zeros) == [here]
            assert heard_at(call, np.zeros(1)[::-1]) == [here]
        finally:
            np.seterr(**before)
        assert heard_at(call, zeros) == []
    with np.errstate(over="raise"):
        assert heard_at(weft.compile(lambda x: x + 1), zeros) == [here]


@pytest.mark.parametrize("native", ["1", "0"])
def test_a_warning_that_is_an_error_runs_nothing(
    native: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_NATIVE_CALL", native)
    total, seen = weft.Variable(np.ones(1)), list[int]()

    @weft.compile
    def counted(x: Any) -> Any:
        seen_ = weft.host_call(lambda x: seen.append(1) or x, "f64[1]", x)
        total.assign_add(seen_)
        return seen_

    counted(np.ones(1))
    counted(np.ones(1))
    with np.errstate(divide="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(weft.TracingWarning, match=r"divide='raise'.*has no effect"):
                counted(np.ones(1))
    assert seen == [1, 1] and total.numpy() == 3
    assert counted(np.ones(1)) == 1 and total.numpy() == 4


def test_who_wants_to_hear_of_nothing_pays_nothing() -> None:
    """Python runs once for what NumPy was told, and not at each call."""
    compiled, x = weft.compile(lambda x: 1 / x), np.zeros(1)
    names: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        names.extend([frame.f_code.co_name] if event == "call" else [])

    before = np.seterr(all="ignore")
    try:
        for at in range(4):
            compiled(x)
            sys.setprofile(note if at > 1 else None)
            compiled(x)
            sys.setprofile(None)
            assert names == [], at
        with np.errstate(divide="raise"):
            assert len(heard_at(compiled, x)) == 1
        assert heard_at(compiled, x) == []
    finally:
        np.seterr(**before)


def test_errors_are_not_raised_in_other_threads_because_of_this_one() -> None:
    compiled, found = weft.compile(lambda x: 1 / x), list[Any]()
    compiled(np.zeros(1))
    with np.errstate(divide="raise"):
        thread = threading.Thread(target=lambda: found.append(heard_at(compiled, np.zeros(1))))
        thread.start()
        thread.join()
    assert found == [[]]


# -- ranges


@pytest.mark.parametrize(("a", "b"), [(5, 5), (3, 5), (0, -4), (-1, 0), (1, 2)])
def test_ranges_of_traced_bounds_are_compared(a: int, b: int) -> None:
    def compare(n: Any, m: Any) -> Any:
        return [range(n) == range(m), range(n) != range(m), range(n) == range(5),
                range(5) == range(n), range(0, n, 2) == range(0, m, 3), range(n) == [0],
                range(n, 0, -1) == range(m, 0, -1), range(n) in [range(0), range(3)]]

    assert weft.compile(compare)(a, b) == compare(a, b)
