"""What ``weft.compile`` promises: NumPy's results for NumPy's arguments, one native call a step."""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from running import in_threads, python

import weft
from weft import RecompileWarning, Variable
from weft.codegen.cpu.jit import cpu_target
from weft.ir.interp.graph import run_plan

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 4)).astype(np.float32)
W = RNG.normal(size=(4, 5)).astype(np.float32)


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Layer:
    w: Any
    b: Any
    name: str = dataclasses.field(default="dense", metadata={"static": True})


def same(got: Any, want: Any) -> None:
    """Equal nests: the same containers, dtypes, shapes and (up to rounding) numbers."""
    assert type(got) is type(want)
    if isinstance(want, dict):
        assert got.keys() == want.keys()
        for key in want:
            same(got[key], want[key])
    elif isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for a, z in zip(got, want, strict=True):
            same(a, z)
    elif dataclasses.is_dataclass(want):
        same(vars(got), vars(want))
    elif isinstance(want, (np.ndarray, np.generic)):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    else:
        assert got == want


# -- arguments and results ----------------------------------------------------------------------

NESTS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (lambda x: x * 2, (X,), {}),
    (lambda x: [x * 2], (X,), {}),
    (lambda x: (x * 2,), (X,), {}),
    (lambda x: (), (X,), {}),
    (lambda x: None, (X,), {}),
    (lambda x: {"a": x + 1, "n": None, "t": (x.sum(), [x[0]])}, (X,), {}),
    (lambda d: d["x"] @ d["w"], ({"x": X, "w": W},), {}),
    (lambda d: {**d, "y": d["x"] @ d["w"]}, ({"x": X, "w": W},), {}),
    (lambda p: Point(p.y, p.x), (Point(X, 2.0),), {}),
    (lambda p: Layer(p.w * 2, p.b, p.name), (Layer(W, None),), {}),
    (lambda items: [item * item for item in items], ([X, X[0], X[0, 0]],), {}),
    (lambda items, none: items[0][1]["a"], (([1.5], [X, {"a": W}])[::-1], None), {}),
    (lambda d: d, (collections.OrderedDict(b=X, a=W),), {}),
    (lambda d: d, (collections.defaultdict(list, b=X, a=W),), {}),
    (lambda x, *rest, scale=2.0, **more: x * scale + sum(rest) + more["shift"],
     (X, 1, 2.0), {"shift": X}),
    (lambda x, *rest, scale=2.0, **more: x * scale, (X,), {"scale": np.float32(3)}),
    (lambda x, /, y, *, z: (x, y, z), (X, 1), {"z": True}),
    (lambda: np.ones(3) * 2, (), {}),
]


@pytest.mark.parametrize("case", range(len(NESTS)))
def test_nests_in_and_out(case: int) -> None:
    function, args, kwargs = NESTS[case]
    compiled = weft.compile(function)
    for _ in range(2):
        same(compiled(*args, **kwargs), function(*args, **kwargs))
    assert compiled.cache_info().specialisations == 1


def test_defaults_and_keywords_are_those_of_the_function() -> None:
    @weft.compile(on_recompile="silent")
    def affine(x: Any, scale: Any = 2.0, *, shift: Any = 1.0) -> Any:
        return x * scale + shift

    same(affine(X), X * 2 + 1)
    same(affine(X, 3.0), X * 3 + 1)
    same(affine(X, shift=X), X * 2 + X)
    same(affine(scale=0.5, x=X), X / 2 + 1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        affine()


def test_metadata_is_that_of_the_function() -> None:
    def scale(x: Any) -> Any:
        """Twice x."""
        return x * 2

    compiled = weft.compile(scale)
    assert (compiled.__name__, compiled.__doc__) == ("scale", "Twice x.")
    assert compiled.py_func is scale
    assert "scale" in repr(compiled)


def test_static_arguments_select_the_specialisation() -> None:
    @weft.compile(static_argnames=("power", "names"), on_recompile="silent")
    def raised(x: Any, power: int, names: tuple[str, ...] = ()) -> Any:
        assert isinstance(power, int)  # a Python number, with which Python can branch
        for _ in range(power - 1):
            x = x * x
        return x if not names else dict.fromkeys(names, x)

    same(raised(X, 1), X)
    same(raised(X, 2), X * X)
    same(raised(X, power=2), X * X)
    same(raised(X, 2, ("a", "b")), {"a": X * X, "b": X * X})
    assert raised.cache_info().specialisations == 3  # a keyword is another spelling only
    same(raised(X, 1), X)
    assert raised.cache_info().specialisations == 3
    same(raised(X, True), X)  # equal to 1, yet another value: it prints differently
    assert raised.cache_info().specialisations == 4


def test_a_changing_number_does_not_compile_again() -> None:
    @weft.compile(on_recompile="error")
    def descend(w: Any, g: Any, lr: float) -> Any:
        return w - lr * g

    for step in range(1000):
        lr = 1 / (1 + step)
        same(descend(X, X, lr), X - lr * X)
    assert descend.cache_info().specialisations == 1


NUMBERS = [True, 2, -3.5]
ARRAYS = [np.arange(4).astype(dtype) for dtype in ("f4", "f8", "i4", "i8", "u4", "u8", "?")]
OPERATORS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: np.maximum(x, y),
    lambda x, y: x < y, lambda x, y: np.where(x > 1, x, y)]


@pytest.mark.parametrize("operator", range(len(OPERATORS)))
def test_numbers_promote_as_in_numpy(operator: int) -> None:
    """NEP 50: Python numbers are weak, NumPy scalars and arrays without dims are not."""
    function = OPERATORS[operator]
    for left in ARRAYS:
        for right in (*NUMBERS, np.float32(2), np.int64(2), np.array(2.0), np.bool_(True)):
            if left.dtype == np.uint64 and isinstance(right, np.int64):
                continue  # they have no common integer: Weft asks for a conversion
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    want = function(left, right)
                except TypeError:  # such as a comparison of what has no order
                    continue
                got = weft.compile(function)(left, right)
            same(got, want)


def test_numbers_alone_stay_numbers() -> None:
    double = weft.compile(on_recompile="silent")(lambda x: (x * 2, x + 0.5, x > 1))
    assert [type(value) for value in double(3)] == [int, float, bool]
    assert double(3) == (6, 3.5, True)
    assert double(0.25) == (0.5, 0.75, False)
    assert [type(value) for value in double(np.float32(3))] == [np.float32, np.float32, np.bool_]


def test_results_without_dims_are_numpy_scalars() -> None:
    total = weft.compile(lambda x: (x.sum(), x[0, 0], x.max(axis=0)))
    for _ in range(2):
        a, b, c = total(X)
        assert (type(a), type(b), type(c)) == (np.float32, np.float32, np.ndarray)
    assert type(weft.compile(lambda x: x + 1)(np.array(1.5))) is np.float64


def test_numbers_beyond_64_bits_are_static() -> None:
    times = weft.compile(lambda x, n: x * n, on_recompile="silent")
    for n in (3, 2**63, 2**70, 4):
        np.testing.assert_array_equal(times(X, n), X * n)
    with pytest.raises(weft.Error, match="W131"):
        times(np.arange(3), 2**63)


class Tagged(np.ndarray):  # type: ignore[type-arg]
    pass


def variants(x: Array) -> dict[str, Array]:
    """The same numbers in other memory."""
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    unaligned[...] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    return {
        "dense": x.copy(), "fortran": np.asfortranarray(x), "transposed": x.T.copy().T,
        "strided": np.repeat(x, 2, axis=-1)[..., ::2], "reversed": x[::-1, ::-1].copy()[::-1, ::-1],
        "swapped": x.astype(x.dtype.newbyteorder(">")), "read only": frozen,
        "subclass": x.copy().view(Tagged), "unaligned": unaligned,
        "repeated": np.broadcast_to(x[:1, :1], x.shape),
    }


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u8", "?"])
def test_arguments_in_any_memory(dtype: str) -> None:
    @weft.compile(on_recompile="error")
    def function(x: Any, y: Any) -> Any:
        return np.where(x > y, x, y), x.sum(axis=0), y[::-1]

    x = (10 * RNG.normal(size=(6, 7))).astype(dtype)
    for name, array in variants(x).items():
        before = array.copy()
        got = function(array, x)
        want = function.py_func(np.asarray(array.astype(dtype)), x)
        for a, z in zip(got, want, strict=True):
            assert type(a) is np.ndarray, name
            same(a, z)
        np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    for function in (lambda x: x * 2, lambda x: x.sum(axis=0), lambda x: x.sum(),
                     lambda x: np.concatenate([x, x]), lambda x: x.reshape(-1),
                     lambda x: x @ np.ones((x.shape[-1], 3)) if x.ndim > 1 else x,
                     lambda x: x.T @ x if x.ndim == 2 else x):
        same(weft.compile(function)(x), function(x))


@pytest.mark.parametrize("opt", [0, 2])
def test_rows_without_elements_beside_what_is_made_of_them(opt: int) -> None:
    """More rows than lanes of a step; what is stored of them has no place to be stored to."""
    def within(x: Any) -> Any:
        found = np.isin(x, [])
        return found, found.any(axis=0)

    def rows(x: Any) -> Any:
        none = (x[:, None] * 2.0)[:, :0]
        return none, none.sum(axis=1), none.max(axis=1, initial=3.0), none @ np.ones((0, 2))

    for n in (1, 15, 16, 100):
        x = np.arange(n)
        for function in (within, rows):
            for one, other in zip(weft.compile(function, opt=opt)(x), function(x), strict=True):
                same(one, other)


def test_nothing_that_cannot_be_traced_is_taken_silently() -> None:
    for bad in (np.array(["a"]), np.array([None]), object(), {1, 2},
                np.array(["2020-01-01"], "M8[D]")):
        with pytest.raises(TypeError, match="W112"):
            weft.compile(lambda x: x)(bad)
    assert weft.compile(lambda x: x)("text") == "text"


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_arrays_with_arithmetic_of_their_own_are_refused() -> None:
    """A mask would be lost, and a matrix multiplies otherwise; also after a plain array came."""
    square = weft.compile(lambda x: x * x)
    for first in (False, True):
        if first:
            square(np.ones((2, 2)))
        for own in (np.ma.masked_array(np.ones((2, 2)), np.eye(2)), np.matrix(np.ones((2, 2)))):
            with pytest.raises(TypeError, match=r"W112.*arithmetic of its own"):
                square(own)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_floats_of_8_bits_are_for_storage(dtype: Any) -> None:
    x = np.ones((3, 3), dtype)
    for function in (lambda x: x * 2, lambda x: x.astype(np.float32), lambda x: x.sum()):
        with pytest.raises(TypeError, match=r"W111: .* in f8e[45]m[23], which is for storage only"
                           ) as caught:
            weft.compile(function)(x)
        assert "test_compile.py" in str(caught.value)
    wide = weft.compile(lambda x: x * 2)(x.astype(np.float32))
    same(wide, np.full((3, 3), 2, np.float32))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2"])
def test_narrow_integers(dtype: str) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    function = weft.compile(lambda x: (x * 7, x @ x.T, x.sum(), x // 3, x + np.float32(1), x > 2))
    for got, want in zip(function(x), function.py_func(x), strict=True):
        same(got, want)


def test_an_error_of_the_users_own_leaves_nothing_behind() -> None:
    v, runs = Variable(np.zeros(2)), [0]

    @weft.compile
    def step(x: Any) -> Any:
        v.assign_add(x)
        runs[0] += 1
        if runs[0] == 1:
            raise RuntimeError("mine")
        return v * 1

    with pytest.raises(RuntimeError, match="mine"):
        step(np.ones(2))
    same(v.numpy(), np.zeros(2))
    assert step.cache_info().specialisations == 0
    same(step(np.ones(2)), np.ones(2))


def test_functions_compile_in_several_threads() -> None:
    numbers = iter(range(100))

    def work() -> None:
        own = next(numbers)
        for at in range(3):
            function = weft.compile(lambda x, k=own * 10 + at: np.tanh(x * k) @ x + x.sum(axis=0))
            x = np.random.default_rng(own).normal(size=(own + 3, own + 3))
            np.testing.assert_allclose(function(x), function.py_func(x))

    in_threads(*[work] * 6)


def test_one_function_compiles_once_for_all_threads() -> None:
    traced: list[int] = []

    @weft.compile
    def function(x: Any) -> Any:
        traced.append(1)
        return np.tanh(x).sum()

    in_threads(*[lambda: same(function(X), np.tanh(X).sum())] * 6)
    assert traced == [1]


# -- results belong to the caller ---------------------------------------------------------------


def test_results_are_fresh() -> None:
    constant = np.arange(3.0)

    @weft.compile
    def function(x: Any) -> Any:
        y = x * 2
        return x, y, y, x.T, x.reshape(-1), constant, y[0], np.zeros(3), 7

    first = function(X)
    kept = [np.array(value) for value in first]
    for got, want in zip(first, function.py_func(X), strict=True):
        same(got, want)
    second = function(X)
    assert first[0] is second[0] is X  # as Python gives it
    assert first[5] is second[5] is constant
    arrays = [value for value in (*first[1:], *second[1:])
              if isinstance(value, np.ndarray) and value is not constant]
    for at, array in enumerate(arrays):
        assert array.flags.writeable and array.flags.c_contiguous
        assert not np.shares_memory(array, X) and not np.shares_memory(array, constant)
        assert not any(np.shares_memory(array, other) for other in arrays[:at])
        array[...] = -1
    for got, want in zip(function(X), kept, strict=True):
        np.testing.assert_array_equal(got, want)


def test_large_results_are_not_used_again_while_they_live() -> None:
    add = weft.compile(lambda x, y: x + y)
    x = np.ones(1 << 21)
    held = [add(x, number) for number in range(6)]
    del held[::2]
    held += [add(x, 10 + number) for number in range(4)]
    assert [int(array[0]) for array in held] == [2, 4, 6, 11, 12, 13, 14]
    assert all((array == array[0]).all() for array in held)


def test_a_wide_function() -> None:
    """More arguments and results than registers, or than anyone counts on."""
    arrays = {f"a{at}": np.full(5, at, np.float32) for at in range(300)}
    double = weft.compile(lambda d: {name: value * 2 for name, value in d.items()})
    same(double(arrays), {name: value * 2 for name, value in arrays.items()})


# -- dynamic dims -------------------------------------------------------------------------------


def test_one_specialisation_for_all_batch_sizes() -> None:
    @weft.compile(dynamic={"x": {0: "b"}}, on_recompile="error")
    def dense(x: Any, w: Any) -> Any:
        h = np.maximum(x @ w, 0)
        return h, h.sum(axis=0), h - h.mean(axis=1, keepdims=True), x.shape[0] * 1.0

    for b in (0, 1, 2, 7, 4096):
        x = RNG.normal(size=(b, 4)).astype(np.float32)
        for got, want in zip(dense(x, W), dense.py_func(x, W), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)
    assert dense.cache_info().specialisations == 1
    assert dense.signatures == [{"x": "f32[b,4]", "w": "f32[4,5]"}]


def test_dims_with_one_symbol_must_agree() -> None:
    add = weft.compile(dynamic={"x": {0: "n"}, "y": {0: "n"}})(lambda x, y: x + y)
    for size in (5, 3):
        same(add(np.ones(size), np.ones(size)), np.full(size, 2.0))
        with pytest.raises(ValueError, match=r"W105.*'y' must be f64\[n\]"):
            add(np.ones(size), np.ones(size + 1))


def test_dims_may_be_expressions() -> None:
    function = weft.compile(dynamic={"x": {0: "b"}, "y": {0: "b+1"}}, on_recompile="error")(
        lambda x, y: (y[1:] * x, np.concatenate([x, y])))
    for b in (3, 0, 8):
        x, y = RNG.normal(size=b), RNG.normal(size=b + 1)
        same(function(x, y), function.py_func(x, y))
    with pytest.raises(ValueError, match=r"W105.*b \+ 1 is 4"):
        function(np.ones(3), np.ones(3))
    pairs = weft.compile(dynamic={"x": {0: "2*b"}})(lambda x: x.reshape(-1, 2).sum(axis=1))
    for b in (3, 0, 8):
        x = RNG.normal(size=2 * b)
        same(pairs(x), pairs.py_func(x))
    with pytest.raises(ValueError, match=r"W105: dim 2\*b of argument x is 5, which fits no b"):
        pairs(np.ones(5))
    with pytest.raises(ValueError, match="W105: the size s cannot be told"):
        weft.compile(dynamic={"x": {0: "s*t"}})(lambda x: x)(np.ones(6))


def test_nested_arguments_may_have_dynamic_dims() -> None:
    @weft.compile(dynamic={"batch.x": {0: "b"}, "batch['y']": {0: "b"}}, on_recompile="error")
    def loss(batch: Any, w: Any) -> Any:
        return ((batch["x"] @ w - batch["y"]) ** 2).sum()

    for b in (4, 9):
        batch = {"x": RNG.normal(size=(b, 4)), "y": RNG.normal(size=(b, 1))}
        np.testing.assert_allclose(loss(batch, W[:, :1]), loss.py_func(batch, W[:, :1]), rtol=1e-6)


def test_wrong_names_of_dynamic_arguments() -> None:
    with pytest.raises(weft.Error, match="W105: dynamic: no argument 'y'"):
        weft.compile(dynamic={"y": {0: "b"}})(lambda x: x)(X)
    for odd in (True, "x", ["x"], {"x": 0}, {"x": "n"}, {"x": ["n"]}, {0: {0: "n"}},
                {"x": {"n": 0}}):
        with pytest.raises(TypeError, match=r"W112: dynamic=.* does not say which dims"):
            weft.compile(lambda x: x, dynamic=odd)  # type: ignore[call-overload]
    with pytest.raises(weft.Error, match="W105: dynamic: x has no axis 2"):
        weft.compile(dynamic={"x": {2: "b"}})(lambda x: x)(X)


# -- closed-over arrays -------------------------------------------------------------------------


def test_closed_over_arrays_are_read_at_each_call() -> None:
    table = np.arange(4, dtype=np.float32)

    @weft.compile(on_recompile="error")
    def function(x: Any) -> Any:
        return x * table

    same(function(X), X * table)
    table[1] = 100
    same(function(X), X * table)
    assert function.cache_info().specialisations == 1
    assert "100" not in function.lower(X).as_text("llvm").partition("weft_nowhere")[0]


# -- variables ----------------------------------------------------------------------------------


def test_variables_in_a_step() -> None:
    v, count = Variable(np.arange(3.0)), Variable(0)

    @weft.compile
    def step(x: Any) -> Any:
        before = v * 1
        v.assign(v * 2 + x)
        count.assign_add(1)
        v.assign_sub(1.0 * np.ones(3))
        return before, v * 1, count + 0

    want, state = np.arange(3.0), np.arange(3.0)
    for number in range(1, 4):
        state = want * 2 + 0.5 - 1
        before, after, counted = step(0.5)
        same(before, want)
        same(after, state)
        assert counted == number
        want = state
    same(v.numpy(), state)
    assert int(count) == 3


def test_variables_may_be_arguments() -> None:
    a, b = Variable(np.ones(3)), Variable(np.zeros(3))

    @weft.compile(on_recompile="silent")
    def add(v: Variable, x: Any) -> Any:
        v.assign_add(x)
        return v * 2

    same(add(a, np.ones(3)), np.full(3, 4.0))
    same(add(b, np.ones(3)), np.full(3, 2.0))
    same(add(a, np.ones(3)), np.full(3, 6.0))
    same((a.numpy(), b.numpy()), (np.full(3, 3.0), np.ones(3)))
    assert add.cache_info().specialisations == 2


def test_values_read_before_a_step_stay_what_they_were() -> None:
    v = Variable(np.zeros(3))

    @weft.compile
    def step() -> Any:
        v.assign_add(np.ones(3))
        return v * 1

    seen = [(v.numpy(), v.value, step()) for _ in range(5)]
    for at, (copied, value, result) in enumerate(seen):
        same((copied, value, result), (np.full(3, at + 0.0),) * 2 + (np.full(3, at + 1.0),))


def test_a_failed_step_leaves_every_variable_as_it_was() -> None:
    total, table = Variable(np.zeros(3)), Variable(np.arange(4.0))

    @weft.compile
    def step(index: Any) -> Any:
        total.assign_add(np.ones(3))
        table.assign(table * 2)
        return table[index]

    index = np.array([0, 3, -4])
    same(step(index), np.array([0.0, 6.0, 0.0]))
    for bad in ([0, 4, 0], [0, 0, -5]):
        with pytest.raises(IndexError, match="W124"):
            step(np.array(bad))
        same((total.numpy(), table.numpy()), (np.ones(3), np.arange(4.0) * 2))
    same(step(index), np.array([0.0, 12.0, 0.0]))


def test_concurrent_steps_lose_nothing_and_tear_nothing() -> None:
    count, wide = Variable(0), Variable(np.zeros(20_000))

    @weft.compile(threads=1)
    def step(x: Any) -> Any:
        count.assign_add(1)
        wide.assign(wide + x)
        return wide[0] - wide[-1]

    read = weft.compile(threads=1)(lambda: (wide.min(), wide.max()))
    step(0.0)
    read()

    def work() -> None:
        for _ in range(150):
            assert step(1.0) == 0
            low, high = read()
            assert low == high
            held = wide.value
            assert held[0] == held[-1]

    in_threads(*[work] * 4)
    assert int(count) == 601
    same(wide.numpy(), np.full(20_000, 600.0))


def test_concurrent_calls_have_arenas_of_their_own() -> None:
    @weft.compile(dynamic={"x": {0: "n"}}, threads=1)
    def function(x: Any, number: float) -> Any:
        kept = np.tanh(x).sum() * 0  # a second kernel, and memory between the two
        return (x * number) @ (x + 1 + kept)

    def work() -> None:
        for n in (2000, 30, 700, 4, 5000):
            x = np.ones(n)
            for number in range(20):
                assert function(x, float(number)) == 2.0 * n * number

    in_threads(*[work] * 4)
    assert function.cache_info().specialisations == 1


# -- recompilation ------------------------------------------------------------------------------


def test_the_recompile_warning_names_the_difference() -> None:
    @weft.compile
    def scale(x: Any, k: Any, d: Any = None) -> Any:
        return x * k

    scale(X, 2.0)
    line = r"scale recompiled \(\d+ ms\): {} at .*test_compile.py:\d+; {}"
    for args, difference, advice in [
        ((X[:2], 2.0), r"x\.shape\[0\] 3 -> 2", r"write weft.compile\(dynamic={'x': {0: 'n'}}\)"),
        ((X.astype(np.float64), 2.0), r"x\.dtype f32 -> f64", r"convert it: x.astype\(np.float32"),
        ((X[0], 2.0), r"x\.ndim 2 -> 1", "pass x in one way: an array of 2 dims"),
        ((X, np.ones(4)), r"k was a float, is an array f64\[4\]", "pass k in one way, as a number"),
        ((X, 2), "k float -> int", r"pass Python's own number: float\(k\)"),
        ((X, 2.0, [1.0]), "d was left out, is a list of 1 item",
         "pass the same nest of arguments at each call"),
    ]:
        with pytest.warns(RecompileWarning, match=line.format(difference, advice)) as caught:
            scale(*args)
        assert caught[0].filename == __file__


def test_recompilation_can_be_an_error_or_silent() -> None:
    strict = weft.compile(on_recompile="error")(lambda x: x * 2)
    strict(X)
    with pytest.raises(weft.Error, match=r"W405.*x\.shape\[0\] 3 -> 2"):
        strict(X[:2])
    same(strict(X), X * 2)
    assert strict.cache_info().specialisations == 1
    silent = weft.compile(on_recompile="silent")(lambda x: x * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        silent(X)
        silent(X[:2])
    assert silent.cache_info().specialisations == 2


def test_calls_of_any_kind_find_their_specialisation() -> None:
    """The fast path of the last specialisation must not keep others from theirs."""
    double = weft.compile(on_recompile="silent")(lambda x: x * 2)
    kinds = [X, X[0], X.astype(np.float64), np.float32(2), 3, 2.5, True, [X], {"a": X}, X.T]
    for _ in range(3):
        for value in kinds[:7]:
            same(double(value), double.py_func(value))
    assert double.cache_info().specialisations == 7


# -- ways to use it -----------------------------------------------------------------------------


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    @weft.compile(static_argnames="self", on_recompile="silent")
    def __call__(self, x: Any) -> Any:
        return x * self.scale


@dataclasses.dataclass
class Dense:
    w: Any

    @weft.compile
    def forward(self, x: Any) -> Any:
        return x @ self.w


def test_methods() -> None:
    twice, thrice = Model(2.0), Model(3.0)
    same((twice(X), thrice(X), twice(X)), (X * 2, X * 3, X * 2))
    layer = Dense(W)
    same(layer.forward(X), X @ W)
    layer.w = 2 * W  # an argument like any other
    same(layer.forward(X), X @ W * 2)
    assert Dense.forward.cache_info().specialisations == 1


def test_compiled_functions_call_each_other() -> None:
    @weft.compile
    def inner(x: Any) -> Any:
        return np.tanh(x)

    @weft.compile
    def outer(x: Any) -> Any:
        return inner(x) + inner(x * 2)

    same(outer(X), np.tanh(X) + np.tanh(X * 2))
    assert inner.cache_info().specialisations == 0  # part of outer's one program
    gradient = weft.grad(lambda x: outer(x).sum())
    same(gradient(X), (1 - np.tanh(X) ** 2) + 2 * (1 - np.tanh(2 * X) ** 2))


def test_callables_without_a_name() -> None:
    class Scale:
        def __init__(self, k: float) -> None:
            self.k = k

        def __call__(self, x: Any) -> Any:
            return x * self.k

    for function, name in ((Scale(3.0), "Scale"), (functools.partial(np.multiply, 3.0), "partial"),
                           (Scale(3.0).__call__, "__call__"), (np.tanh, "tanh")):
        compiled = weft.compile(function)
        same(compiled(X), function(X))
        with pytest.warns(RecompileWarning, match=f"^{name} recompiled"):
            same(compiled(X[0]), function(X[0]))
        assert str(compiled.explain()).startswith(f"{name}: 2 specialisations")
        assert name in repr(compiled)


@pytest.mark.parametrize("name", ["fmod", "memcpy", "memset", "map_fmod", "map", "sort_sort",
                                  "contract_matmul", "weft_sort_i64x1_quick"])
def test_a_program_has_a_symbol_of_its_own(name: str) -> None:
    """Code of a function called fmod found itself where it called that of the C library."""
    def function(x: Array) -> Any:
        return np.fmod(x, 2.5), np.sort(x), x @ np.ones((300, 4)), np.zeros(3000), x.copy()

    function.__name__ = name
    x = np.linspace(1, 1e300, 300)
    for found, wanted in zip(weft.compile(function)(x), function(x), strict=True):
        np.testing.assert_allclose(found, wanted)


def test_disable_calls_the_function_itself() -> None:
    seen: list[type] = []

    @weft.compile(disable=True)
    def function(x: Any) -> Any:
        seen.append(type(x))
        return x * 2

    same(function(X), X * 2)
    assert seen == [np.ndarray]
    assert function.cache_info().specialisations == 0


def program(x: Any, w: Any, b: Any, index: Any) -> Any:
    h = np.tanh(x @ w + b)
    p = weft.nn.softmax(h)
    return p, h.sum(axis=0), p[index], (p * h).max(), h.T.reshape(-1)[::2]


ARGUMENTS = (X, W, W[0], np.array([2, 0, -1, 1]))


def test_verify_runs_the_interpreter_beside_each_call() -> None:
    checked = weft.compile(verify=True)(program)
    for got, want in zip(checked(*ARGUMENTS), weft.compile(program)(*ARGUMENTS), strict=True):
        same(got, want)


def test_verify_reports_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    @weft.compile(verify=True)
    def function(x: Any) -> Any:
        return x * 2

    function(X)
    made = next(iter(function.programs._made.values()))
    right = made.program.run
    monkeypatch.setattr(made.program, "run", lambda given: tuple(y + 1 for y in right(given)))
    with pytest.raises(weft.Error, match=r"W601: native code gives .* the interpreter") as caught:
        function(X)
    assert caught.value.locs[0].file == __file__


@pytest.mark.parametrize("opt", [0, 1, 3])
def test_results_are_the_same_at_every_level(opt: int) -> None:
    wanted = weft.compile(program)(*ARGUMENTS)
    for got, want in zip(weft.compile(opt=opt)(program)(*ARGUMENTS), wanted, strict=True):
        same(got, want)


def test_other_targets() -> None:
    if os.uname().machine == "x86_64":
        same(weft.compile(target="x86-64-v3")(lambda x: x @ x.T)(X), X @ X.T)
    with pytest.raises(weft.Error, match="W402"):
        weft.compile(target="no-such-cpu")(lambda x: x)(X)


def test_wrong_options() -> None:
    for options, code in [({"device": "gpu"}, "W401"), ({"device": "moon"}, "W401"),
                          ({"on_recompile": "often"}, "W113"), ({"opt": 4}, "W113"),
                          ({"opt": -1}, "W113"), ({"opt": "fast"}, "W113"),
                          ({"threads": 0}, "W113"), ({"threads": 1.5}, "W113"),
                          ({"check": ("nan",)}, "W113"), ({"static_argnames": "z"}, "W112"),
                          ({"donate_argnames": ("z",)}, "W112")]:
        with pytest.raises(weft.Error, match=code):
            weft.compile(**options)(lambda x: x)  # type: ignore[call-overload]
    with pytest.raises(weft.Error, match="W112"):
        weft.compile(3)  # type: ignore[call-overload]


THREADS = """
import os
import numpy as np
import weft
count = lambda: len(os.listdir("/proc/self/task"))
x = np.ones((600, 600), np.float32)
before = count()
f = weft.compile(threads={threads})(lambda x: np.tanh(x @ x).sum(axis=0))
for _ in range(3):
    f(x)
print(count() - before)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux's /proc")
@pytest.mark.parametrize("threads", [1, 3])
def test_threads_are_as_many_as_were_asked_for(threads: int) -> None:
    run = python(THREADS.format(threads=threads))
    assert (run.stdout, run.stderr) == (f"{threads - 1}\n", "")


# -- stages -------------------------------------------------------------------------------------


def test_stages_have_text() -> None:
    function = weft.compile(program)
    traced = function.trace(*ARGUMENTS)
    assert traced.as_text().startswith("graph @program(%x: f32[3,4]")
    lowered = function.lower(*ARGUMENTS)
    for stage in ("trace", "opt", "placed", "fused", "kernel", "plan", "llvm", "asm", "triton"):
        assert lowered.as_text(stage).strip(), stage
    assert lowered.as_text("trace") == traced.as_text()
    compiled = lowered.compile()
    for got, want in zip(compiled(*ARGUMENTS), program(*ARGUMENTS), strict=True):
        same(got, want)
    assert compiled.as_text("plan") == lowered.as_text("plan")
    with pytest.raises(ValueError, match="no stage 'magic'; stages are trace, opt"):
        lowered.as_text("magic")
    assert function.cache_info().specialisations == 0  # stages are apart from calls
    report = compiled.report()
    assert all(ms >= 0 for ms in report.values())
    assert {"fuse", "lower", "tile", "memory", "emit", "link"} <= report.keys()


def test_the_steps_of_compiling_take_no_longer_than_all_of_it() -> None:
    start = time.perf_counter()
    report = weft.compile(lambda x: np.tanh(x) + 1).lower("f32[b,3]").compile().report()
    assert 0 < sum(report.values()) <= 1e3 * (time.perf_counter() - start)


def test_specs_stand_for_arrays() -> None:
    dense = weft.compile(lambda x, w, k: (x @ w) * k)
    for spec in (weft.Spec("f32", ("b", 784)), "f32[b,784]"):
        lowered = dense.lower(spec, "f32[784,10]", 2.0)
        assert lowered.as_text("trace").startswith(
            "graph @lambda(%x: f32[b,784], %w: f32[784,10], %k: f64[])")
        compiled = lowered.compile()
        for b in (1, 6):
            x, w = np.ones((b, 784), np.float32), np.ones((784, 10), np.float32)
            same(compiled(x, w, 0.5), x @ w * np.float32(0.5))
    with pytest.raises(weft.Error, match="W303"):
        compiled(x.astype(np.float64), w, 0.5)
    with pytest.raises(weft.Error, match="W303"):
        compiled([x], w, 0.5)


def test_cost_of_a_matrix_product() -> None:
    M, K, N = 12, 34, 56
    x, w, b = np.ones((M, K), np.float32), np.ones((K, N), np.float32), np.ones(N, np.float32)
    plain = weft.compile(lambda x, w: x @ w).lower(x, w).cost_analysis()
    assert plain == {"flops": 2 * M * N * K, "bytes accessed": 4 * (M * K + K * N + M * N)}
    dense = weft.compile(lambda x, w, b: np.maximum(x @ w + b, 0)).lower(x, w, b)
    assert dense.cost_analysis() == {"flops": 2 * M * N * K + 2 * M * N,
                                     "bytes accessed": 4 * (M * K + K * N + N + M * N)}
    assert dense.compile().cost_analysis() == dense.cost_analysis()
    symbolic = weft.compile(lambda x, w: x @ w).lower("f32[b,34]", w).cost_analysis()
    assert str(symbolic["flops"]) == f"{2 * N * K}*b"


def test_memory_analysis_is_the_plan() -> None:
    def function(x: Any, w: Any) -> Any:
        return np.tanh(x @ w) @ w.T @ w

    for x in (X, "f32[b,4]"):
        compiled = weft.compile(function).lower(x, W).compile()
        memory = compiled.memory_analysis()
        assert memory.peak_bytes == compiled.lowered.stages.plan.arena
        assert memory.peak_bytes != 0
    static = weft.compile(function).lower(X, W).compile().memory_analysis()
    assert (static.argument_bytes, static.result_bytes) == (X.nbytes + W.nbytes, 4 * 3 * 5)
    assert str(memory.argument_bytes) == "16*b + 80"
    one = weft.compile(lambda x: np.tanh(x) * 2).lower(X).compile().memory_analysis()
    assert one.peak_bytes == 0  # one kernel needs no temporaries


def test_eval_shape_runs_nothing() -> None:
    ran: list[int] = []

    @weft.compile
    def function(x: Any, w: Any) -> Any:
        ran.append(1)
        return {"y": x @ w, "total": (x @ w).sum(), "n": x.shape[0] * 2}

    shapes = function.eval_shape("f32[b,4]", W)
    assert shapes == {"y": weft.Spec("f32", ("b", 5)), "total": weft.Spec("f32"),
                      "n": weft.Spec("i64")}
    assert ran == [1]
    assert function.cache_info().specialisations == 0


def test_signatures_explain_and_clear_cache() -> None:
    @weft.compile(on_recompile="silent")
    def scale(x: Any, k: Any) -> Any:
        return x * k

    scale(X, 2.0)
    scale(X[0], 2)
    assert scale.signatures == [{"x": "f32[3,4]", "k": "float"}, {"x": "f32[4]", "k": "int"}]
    lines = str(scale.explain()).splitlines()
    assert lines[0] == "scale: 2 specialisations"
    assert re.fullmatch(r"  1\. \(x: f32\[3,4\], k: float\)  \d+ ms, 1 launches, arena 0 bytes",
                        lines[1])
    info = scale.cache_info()
    assert info.specialisations == 2 and info.milliseconds > 0
    scale.clear_cache()
    assert scale.cache_info() == (0, 0.0)
    assert scale.signatures == []
    same(scale(X, 2.0), X * 2)
    assert scale.cache_info().specialisations == 1


def test_changed_thread_limit_reaches_compiled_functions() -> None:
    function = weft.compile(lambda x: x @ x.T)
    fixed = weft.compile(threads=2)(lambda x: x @ x.T)
    function(X), fixed(X)
    programs = [next(iter(f.programs._made.values())).program for f in (function, fixed)]
    before = programs[0].threads
    try:
        weft.set_num_threads(3)
        assert [program.threads for program in programs] == [3, 2]
        same(function(X), X @ X.T)
    finally:
        weft.set_num_threads(before)
    with pytest.raises(ValueError, match="from 1 to 65536, not 0"):
        weft.set_num_threads(0)


def test_without_the_native_entry() -> None:
    """The path for interpreters that emitted entries do not fit gives the same."""
    code = ("import numpy as np, weft\n"
            "f = weft.compile(dynamic={'x': {0: 'b'}})(lambda x, k: (x @ x.T * k, x.sum()))\n"
            "for b in (3, 0, 5):\n"
            "    x = np.arange(b * 2.0).reshape(b, 2)\n"
            "    y, total = f(x, 2)\n"
            "    assert np.array_equal(y, x @ x.T * 2) and total == x.sum(), b\n")
    run = python(code, WEFT_NATIVE_CALL="0")
    assert run.returncode == 0, run.stderr


def test_launches_of_one_kernel_name_their_own_lines() -> None:
    """Equal kernels are one, also where they check indices; a failed check is the launch's."""
    def function(x: Any, i: Any, j: Any) -> Any:
        y = x[i] * 2
        return y[j] * 2  # the second

    program = weft.compile(function)
    lowered = program.lower("f64[5]", "i64[5]", "i64[5]")
    plan = lowered.stages.plan
    assert len(plan.kernels) == 1 and plan.launches == 2
    x, good, bad = np.arange(5.0), np.arange(5), np.array([0, 1, 2, 3, 5])
    np.testing.assert_array_equal(program(x, good, good), x * 4)
    first = function.__code__.co_firstlineno
    for arguments, line in (((x, bad, good), first + 1), ((x, good, bad), first + 2)):
        for run in (program, lambda *given: run_plan(plan, given)):
            with pytest.raises(IndexError) as caught:
                run(*arguments)
            assert caught.value.locs[0].line == line  # type: ignore[attr-defined]


def test_large_arrays_and_long_programs_let_other_threads_run() -> None:
    """Giving up Python's lock costs 30 ns, so tiny programs keep it."""
    def released(function: Callable[..., Any], *specs: str) -> bool:
        return bool(weft.compile(function).lower(*specs).stages.entry.release_gil)

    def many(x: Any) -> Any:
        for _ in range(4):
            x = np.sum(x[:, None] * x[::-1], axis=1)
        return x

    assert not released(lambda x: x + 1, "f64[8]")
    assert released(lambda x: x + 1, "f64[100000]")
    assert released(lambda x: x + 1, "f64[n]")
    assert released(many, "f64[8]")


def test_each_step_of_the_compiler_is_timed() -> None:
    program = weft.compile(lambda x, w: np.tanh(x @ w)).lower(X, W).compile()
    times = program.lowered.stages.times
    assert {"state", "simplify", "place", "fuse", "lower", "share", "tile", "memory", "emit",
            "parse", "optimise", "assemble", "link"} <= set(times)


@pytest.mark.parametrize(("name", "bits"), [
    ("x86-64-v3", 256), ("x86-64-v4", 512), ("haswell", 256), ("skylake", 256),
    ("skylake-avx512", 512), ("sapphirerapids", 512), ("znver4", 512), ("znver3", 256)])
def test_targets_by_the_names_of_processors(name: str, bits: int) -> None:
    target = cpu_target(name)
    assert (target.name, target.vector_bits, target.registers) == (name, bits, bits // 16)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_results_that_do_not_fit_into_memory_name_the_bytes() -> None:
    run = python("""
import resource, numpy as np, weft
f = weft.compile(dynamic={"x": {0: "n"}})(lambda x: x[:, None] * x[None, :])
f(np.ones(3))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)
try:
    f(np.ones(20_000))
except MemoryError as problem:
    print(problem)
print(f(np.ones(2)).sum())
""")
    assert run.returncode == 0, run.stderr
    assert re.search(r"2\.98 GiB|3200000000 bytes", run.stdout) and run.stdout.split()[-1] == "4.0"


def test_names_that_are_no_symbols_of_an_object_file() -> None:
    @weft.compile
    def größe(x: Any) -> Any:
        höhe = x + x
        return höhe * höhe

    assert größe(np.ones(2)).tolist() == [4, 4]
    with weft.Graph("0").as_default() as g:
        y = weft.placeholder("f64", (2,)) * 2
    assert weft.Session(g).run(y, {"placeholder": np.ones(2)}).tolist() == [2, 2]
