"""Views and in-place code: what shares memory in NumPy sees a write, and nothing else does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_numpy_api import CASES, INDEXES, INTS, PRODUCTS, B, M, V, W, X

import weft
from weft.frontend.engine.eager import run_eagerly
from weft.frontend.face import tree
from weft.frontend.tracing.arrays import views
from weft.frontend.tracing.trace import trace_function, trace_region
from weft.frontend.tracing.values.tracer import Tracer
from weft.ir.diagnose import Error
from weft.ir.ops.op import Kind
from weft.ir.ops.table import OPS

A = np.arange(12.0).reshape(3, 4)


def copies(args: Any) -> list[Any]:
    return [x.copy() if isinstance(x, np.ndarray) else x for x in args]


def check(function: Callable[..., Any], *args: Any) -> None:
    """The same results as NumPy's, interpreted and compiled; arguments stay as they are."""
    wanted = function(*copies(args))
    for got in (run_eagerly(function, tuple(args)), weft.compile(function)(*args)):
        for found, want in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(found, want)


# -- what is a view ----------------------------------------------------------------------

MORE: dict[str, tuple[Any, ...]] = {
    **{name: (function, X, INTS, M) for name, function in CASES.items()},
    **{name: (function, X, W, V, B) for name, function in PRODUCTS.items()},
    **{name: (function, np.arange(36.0).reshape(3, 3, 4), np.array([0, 2]), np.array([-1, 1]))
       for name, function in INDEXES.items()},
    "split in halves": (lambda x: (*np.split(x, 1), *np.array_split(x, 2), *np.split(x, [1, 9])),
                        X),
    "copies": (lambda x: (x.copy(), x.flatten(), x.astype(x.dtype), np.repeat(x, 1),
                          np.array(x, like=x),
                          np.tile(x, 1), np.take(x, 1, axis=0), np.roll(x, 0), x[[0, 1, 2]],
                          copy.copy(x), copy.deepcopy(x), np.reshape(x, (4, 3), copy=True)), X),
    "the array itself": (lambda x: (np.asarray(x, like=x), x.astype(x.dtype, copy=False), x[...],
                                    np.asanyarray(x, x.dtype, like=x), np.atleast_1d(x), x[:],
                                    np.real(x)), X),
    "numbers": (lambda x: (x[0, 0], x[0, ..., 1], x[1, 2, ...], x.reshape(-1)[3]), X),
    "scalar indices": (lambda x: (x[np.int64(1)], x[:, np.int32(2)], x[np.intp(0), 1:],
                                  x[np.array(1)]), X),
}


@pytest.mark.parametrize("name", MORE)
def test_a_view_is_what_shares_memory_in_numpy(name: str) -> None:
    function, *args = MORE[name]
    with np.errstate(all="ignore"):
        shared = [[isinstance(part, np.ndarray) and np.shares_memory(part, arg) for arg in args]
                  for part in results(function, args)]
    found: list[list[bool]] = []

    def traced(*inputs: Any) -> Any:
        found.extend([isinstance(part, Tracer) and views.owner(part) is x for x in inputs]
                     for part in results(function, inputs))

    trace_function(traced, tuple(args))
    # No element is shared by what has none.
    assert found == shared or [row for row, part in zip(found, results(function, args), strict=True)
                               if np.size(part)] == [
        row for row, part in zip(shared, results(function, args), strict=True) if np.size(part)]


def results(function: Any, args: Any) -> list[Any]:
    with np.errstate(all="ignore"):
        made = function(*args)
    return list(made) if isinstance(made, (tuple, list)) else [made]


def test_every_view_row_says_whether_numpy_shares_memory() -> None:
    """By NumPy's own word, for each sample that has elements."""
    for row in OPS.values():
        assert row.kind is Kind.VIEW or not row.alias
        if row.kind is not Kind.VIEW or row.name in (
                "identity", "stop_gradient", "barrier", "slice"):
            continue  # names for a copy; the reference of a slice is np.take
        for sample in row.samples:
            arrays = [np.ones(shape) for shape in sample.shapes]
            made = row.ref(*arrays, **sample.attrs)  # type: ignore[misc]
            if made.size:
                assert np.shares_memory(made, arrays[0]) == bool(row.alias), row.name


# -- writes ------------------------------------------------------------------------------


def parts_of_split(x: Any) -> Any:
    y = x * 1
    a, b = np.split(y, 2, axis=1)
    a += 1
    b[1] = 0
    c, d, e = np.array_split(y, 3)
    d *= 2
    e[:, ::2] = -1
    return y, a, b, c, d, e


def rows_of_a_loop(x: Any) -> Any:
    y = x + 0
    for at, row in enumerate(y):
        row *= at
        row[1] = 9
    return y, y.T


def views_of_views(x: Any) -> Any:
    y = np.zeros((2, 3, 4), like=x)
    t = y.transpose(2, 0, 1)[::-1]
    inner = t[1:3, :, None, ::2]
    inner += 5
    flat = y.reshape(-1)
    flat[3::7] = -2
    y[1] += x
    whole = np.squeeze(np.expand_dims(np.swapaxes(y, 0, 2), 1))
    whole[0, 0, 0] = 77
    return y, t, inner, flat, whole, np.flip(y)[0]


def names_for_one_array(x: Any) -> Any:
    y = x * 2
    z = y
    z += 1
    w = copy.copy(y)
    w -= 100
    return y, z, w


def through_out(x: Any) -> Any:
    y = x * 0
    np.add(x[:2], 1, out=y[0:2])
    np.multiply(y, x, out=y)
    s = np.zeros(4, like=x)
    np.sum(x, axis=0, out=s)
    np.max(x, axis=1, out=y[:, 0])
    np.divide(x, x - 5, out=y, where=x != 5)
    np.concatenate([x[0, :2], x[1, :2]], out=s)
    np.copyto(y[2], x[0])
    np.nan_to_num(y[:, 1], copy=False, posinf=8)
    np.copyto(y, -1, where=x > 10)
    y[0].fill(3)
    return y, s


def chains(x: Any) -> Any:
    y = x - 4
    y += 1
    y *= x
    y[0] += 5
    y[1:] -= y[:-1]
    y[:, ::2] *= 2
    y[0, 1] /= 4
    y[..., -1] = y[..., 0]
    y[::-1] = y + 0
    y[1, 1:3] **= 2
    np.add.at(y, np.array([0, 0, 2]), 1.0)
    return (y,)


def copies_stay(x: Any) -> Any:
    y = x + 0
    a, b, c, d, e = y[:, [0, 1]], y.flatten(), np.roll(y, 1), y.copy(), y.astype(y.dtype)
    f, g = np.tile(y, 1), np.repeat(y, 1, axis=0)
    y[:] = 5
    a += 1
    b[0] = 2
    f[0] = -1
    return y, a, b, c, d, e, f, g


def one_reads_what_the_other_wrote(x: Any) -> Any:
    y = x + 0
    row, column = y[1], y[:, 2]
    row += column[1]
    column -= row[0]
    row[2:] = column[:2]
    y[1:] = y[:-1]
    return y, row, column


def zero_dimensional(x: Any) -> Any:
    y = x + 0
    cell = y[1, 2, ...]
    cell += 3
    cell[...] = cell * 2
    total = y[0, 0]
    total += 1
    return y, cell, total


WRITES = [parts_of_split, rows_of_a_loop, views_of_views, names_for_one_array, through_out, chains,
          copies_stay, one_reads_what_the_other_wrote, zero_dimensional]


@pytest.mark.parametrize("function", WRITES)
def test_writes_reach_what_shares_memory(function: Callable[..., Any]) -> None:
    check(function, A)
    if function is not chains:  # powers and quotients of whole numbers are floats
        check(function, A.astype(np.float32))


@pytest.mark.parametrize("function", WRITES)
@pytest.mark.parametrize("dims", [{0: "a"}, {1: "b"}, {0: "a", 1: "b"}], ids=str)
def test_writes_reach_it_where_sizes_are_asked_for_at_each_call(
    function: Callable[..., Any], dims: dict[int, str]
) -> None:
    """What checks a size, as np.split does, stands between an array and its views."""
    if function is rows_of_a_loop and 0 in dims:
        return  # a loop over rows needs their number
    found = weft.compile(dynamic={"x": dims})(function)(A)
    for got, want in zip(found, function(A.copy()), strict=True):
        np.testing.assert_array_equal(got, want)


def test_integer_and_bool_arrays_in_place() -> None:
    def function(i: Any, m: Any) -> Any:
        a, b = i + 0, m & True
        a[1:, ::-2] += 3
        b[0][1:] = False
        b.T[2] |= True
        return a, b

    check(function, np.arange(12).reshape(3, 4), A > 5)


def test_a_traced_index_makes_a_view_too() -> None:
    def function(x: Any, n: Any) -> Any:
        y = x + 0
        row, last = y[n], y[:, n - 3]
        row += 1
        last[:] = 0
        y[n] *= 3
        return y, row, last

    check(function, A, 2)
    check(function, A, np.int64(1))


def test_symbolic_sizes() -> None:
    def function(x: Any) -> Any:
        y = x + 0
        top, rest = y[:1], y[1:]
        rest += top[0]
        top *= 2
        y[::-1][0] = 7
        return y, top, rest

    f = weft.compile(dynamic={"x": {0: "b"}})(function)
    for size in (3, 1, 5):
        x = np.arange(4.0 * size).reshape(size, 4)
        for got, want in zip(f(x), function(x.copy()), strict=True):
            np.testing.assert_array_equal(got, want)


VIEW_OF: tuple[Callable[[Any], Any], ...] = (
    lambda x: x[1:], lambda x: x[::-1], lambda x: x[..., :-1], lambda x: x.T, lambda x: x[0],
    lambda x: x[:, None], lambda x: np.swapaxes(x, 0, -1), lambda x: np.flip(x),
    lambda x: np.split(x, [1])[1], lambda x: x.reshape(-1), lambda x: x[..., ::2],
    lambda x: np.squeeze(x), lambda x: x.reshape(*x.shape[::-1]), lambda x: x.ravel()[1:])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, len(VIEW_OF) - 1),
                          st.sampled_from(["view", "set", "add", "rows"])), max_size=8))
def test_any_program_of_views_and_writes(steps: list[tuple[int, int, str]]) -> None:
    def run(x: Any) -> Any:
        arrays = [np.zeros((3, 4), like=x) + x[0, 0] * 0]
        for number, (which, how, what) in enumerate(steps, 1):
            array = arrays[which % len(arrays)]
            if what == "view" and array.ndim and min(array.shape):
                arrays.append(VIEW_OF[how if array.ndim > 1 else how % 2](array))
            elif what == "set" and array.ndim and array.shape[0] > how % 2:
                array[how % 2] = number
            elif what == "add":
                array += number
            elif what == "rows" and array.ndim > 1:
                for row in array:
                    row[:1] -= number
        return [array for array in arrays if array.ndim]

    wanted = run(A.copy())
    try:
        got = run_eagerly(run, (A,))
    except Error as problem:
        assert "lays them out" in str(problem)
        return
    for found, want in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(found, want)


# -- what is refused, and what the fix gives -----------------------------------------------


def refused(function: Callable[..., Any], fix: str) -> None:
    compiled = weft.compile(inout="error")(function)
    for use in (lambda: run_eagerly(function, (A,)), lambda: compiled(A)):
        with pytest.raises(Error) as caught:
            use()
        assert caught.value.code == "W203" and fix in str(caught.value)


def test_an_argument_stays_and_its_copy_can_change() -> None:
    def wrong(x: Any) -> Any:
        row = x[0]
        row[:] = 0
        return x

    def right(x: Any) -> Any:
        x = x.copy()
        row = x[0]
        row[:] = 0
        return (x,)

    refused(wrong, "x = x.copy()")
    check(right, A)

    def update(x: Any) -> Any:
        return (x.at[0].set(0),)

    np.testing.assert_array_equal(run_eagerly(update, (A,))[0], right(A.copy())[0])


def test_a_repeated_array_is_read_only_and_its_copy_is_not() -> None:
    def wrong(x: Any) -> Any:
        y = np.broadcast_to(x[:1] + 0, (3, 4))
        y[0] = 1
        return y

    def same_shape(x: Any) -> Any:
        y = np.broadcast_to(x + 0, (3, 4))
        y[0] = 1
        return y

    def right(x: Any) -> Any:
        y = np.broadcast_to(x[:1] + 0, (3, 4)).copy()
        y[0] = 1
        return (y,)

    for function in (wrong, same_shape):
        with pytest.raises(ValueError, match="read-only"):
            function(A.copy())
        refused(function, "np.broadcast_to(x, shape).copy()")
    check(right, A)


def test_a_reshape_that_numpy_may_copy_is_refused_when_it_matters() -> None:
    """NumPy copies here for an F-ordered argument only."""
    def written(x: Any) -> Any:
        y = x * 2
        flat = y.reshape(-1)
        flat += 1
        return y, flat

    def base_written(x: Any) -> Any:
        y = x * 2
        flat = y.ravel()
        y += 1
        return y, flat

    def right(x: Any) -> Any:
        y = x * 2
        flat = np.reshape(y, -1).copy()
        flat += 1
        y -= 1
        return y, flat

    def alone(x: Any) -> Any:
        flat = (x * 2).reshape(-1)
        flat[::2] += 1
        return (flat,)

    for function in (written, base_written):
        outcomes = [function(x)[0].sum() + function(x)[1].sum()
                    for x in (A.copy(), np.asfortranarray(A))]
        assert outcomes[0] != outcomes[1]
        refused(function, "np.reshape(x, shape).copy()")
    check(right, A)
    check(alone, A)


def test_a_reshape_of_a_transposed_array_is_a_copy_or_refused() -> None:
    def function(x: Any) -> Any:
        y = np.zeros((3, 4), like=x)
        flat = y.T.reshape(-1)
        flat += 1
        return flat, y

    refused(function, "copy()")


def test_an_array_around_a_region_is_not_changed_in_it() -> None:
    def body_of(change: Callable[[Any], Any]) -> Any:
        def function(x: Any) -> Any:
            y = x + 0
            region = trace_region(lambda w: w * change(y), [x], tree.structure((0,)), "body")
            return region.graph.results[0].type.shape == (3, 4)

        return function

    def wrong(y: Any) -> Any:
        y[0] = 1
        return y

    def right(y: Any) -> Any:
        y = y.copy()
        y[0] = 1
        return y

    refused(body_of(wrong), "x.copy()")
    assert run_eagerly(body_of(right), (A,))


def test_an_inner_function_changes_what_it_shares() -> None:
    def function(x: Any) -> Any:
        y = x + 0

        def loss(w: Any) -> Any:
            y[0] = 1
            return np.sum(w * y)

        return weft.grad(loss)(x), y

    y = A.copy()
    y[0] = 1
    for found in weft.compile(function)(A):
        np.testing.assert_array_equal(found, y)


def test_arrays_of_the_caller_are_not_written_and_the_fix_works() -> None:
    outside = np.zeros((3, 4))

    def wrong(x: Any) -> Any:
        np.copyto(outside, x)
        return outside

    def right(x: Any) -> Any:
        y = np.zeros_like(x)
        np.copyto(y, x)
        return (y,)

    with pytest.raises(weft.Error, match=r"W203.*an array from around the"):
        weft.compile(wrong, inout="error")(A)
    check(right, A)


def test_gradients_flow_through_views_that_were_written() -> None:
    def loss(x: Any) -> Any:
        y = x * x
        a, b = np.split(y, 2, axis=1)
        a *= 3
        b[0] = 0
        return np.sum(y)

    wanted = 2 * A * np.array([3, 3, 1, 1])
    wanted[0, 2:] = 0
    np.testing.assert_allclose(weft.grad(loss)(A), wanted)


def test_a_graph_fetches_what_was_written() -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3, 4), name="x")
        y = x * 2
        row = y[1]
        y[1:] += 1
    got = weft.Session(g).run([y, row], {x: A})
    np.testing.assert_array_equal(got[1], A[1] * 2 + 1)
    np.testing.assert_array_equal(got[0][1], got[1])


@pytest.mark.parametrize("made", [
    lambda x: np.ones_like(x), lambda x: np.full_like(x, 2), lambda x: np.copy(x),
    lambda x: np.zeros_like(x, order="F"), lambda x: np.array(x)])
def test_arrays_laid_out_like_an_argument(made: Callable[..., Any]) -> None:
    """np.ravel copies what is in Fortran's order, which an argument may be."""
    def function(x: Any) -> Any:
        y = made(x)
        row = y.ravel()
        y *= 3
        row[0] = 7
        return y

    with pytest.raises(Error, match="W203"):
        weft.compile(function)(np.asfortranarray(np.ones((2, 3))))


@pytest.mark.parametrize("made", [
    lambda x: np.ones_like(x, order="C"), lambda x: x.copy(), lambda x: np.array(x, order="C"),
    lambda x: np.zeros(x.shape), lambda x: np.ones_like(x[0]), lambda x: np.zeros_like(x, shape=6)])
def test_arrays_laid_out_row_by_row(made: Callable[..., Any]) -> None:
    def function(x: Any) -> Any:
        y = made(x)
        row = y.ravel()
        y *= 3
        row[0] = 7
        return y

    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(weft.compile(function)(x), function(x))


@pytest.mark.parametrize("taken", [lambda y: y[::2], lambda y: y[::-1], lambda y: y[1:3][::-1]])
def test_ravel_copies_what_is_no_block(taken: Callable[..., Any]) -> None:
    def copied(x: Any) -> Any:
        row = taken(x * 2).ravel()
        row[0] = 7
        return row

    def both(x: Any) -> Any:
        y = x * 2
        taken(y).ravel()[0] = 7
        return y

    x = np.arange(5.0)
    np.testing.assert_array_equal(weft.compile(copied)(x), copied(x))
    with pytest.raises(Error, match="W203"):  # NumPy: not changed
        weft.compile(both)(x)


def test_ravel_of_a_block_is_a_view() -> None:
    def function(x: Any) -> Any:
        y = x.copy()
        y.ravel()[1] = 7
        y[2:].ravel()[0] = 9
        return y

    for x in (np.arange(5.0), np.arange(12.0).reshape(4, 3)):
        np.testing.assert_array_equal(weft.compile(function)(x), function(x))


@pytest.mark.parametrize("view", [
    lambda x: x.reshape(-1), lambda x: x.ravel(), lambda x: x[None], lambda x: x[..., None].T,
    lambda x: np.atleast_2d(x)[0]])
def test_an_array_without_dims_that_is_made_shares_its_memory(view: Callable[..., Any]) -> None:
    def both(x: Any) -> Any:
        y = np.ones(x.shape)
        z = view(y)
        z[:] += x
        y *= 3
        return y, z

    def looped(x: Any, n: Any) -> Any:
        y = np.ones(())
        z = view(y)
        for _ in range(n):
            z += x
            if z[0] < 4:
                y *= 1.5
        return y, z

    check(both, np.array(2.5))
    for n in (0, 1, 4):
        wanted = looped(2.5, n)
        for got in zip(weft.compile(looped)(2.5, np.int64(n)), wanted, strict=True):
            np.testing.assert_array_equal(*got)
