"""The surface of NumPy's functions: parameters by name, integers of every kind, reductions with all
their options, and the fixes that errors suggest."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_numpy_api import INTS, B, M, V, W, X, check

import weft
from weft.frontend.engine.eager import run_eagerly
from weft.frontend.library import nn
from weft.frontend.numpy_api.registry import ROWS
from weft.frontend.tracing.arrays.variable import Variable
from weft.ir.diagnose import Error, UnsupportedError

# -- parameters by name ------------------------------------------------------------------

# What NumPy's functions take that traced code refuses by name, besides ``out``, which is general,
# and ``like``, which NumPy takes for itself.
REFUSED = {"array": {"ndmax"}, "clip": {"kwargs"},
           "pad": {"kwargs"}, "einsum": {"kwargs"},
           "fftfreq": {"device"}, "rfftfreq": {"device"}}


def signatures() -> list[tuple[Callable[..., Any], Any, Any]]:
    found = []
    for function, row in ROWS.items():
        if row.body is None or isinstance(row.body, np.ufunc):
            continue
        try:
            found.append((function, inspect.signature(function), inspect.signature(row.body)))
        except (TypeError, ValueError):
            continue  # built in
    return found


@pytest.mark.parametrize(("function", "theirs", "ours"), signatures(), ids=lambda x: getattr(
    x, "__name__", ""))
def test_the_parameters_are_numpys(function: Any, theirs: Any, ours: Any) -> None:
    """By name, and in NumPy's order where both take them by position."""
    names, own = dict(theirs.parameters), dict(ours.parameters)
    missing = set(names) - set(own) - {"out", "like"} - REFUSED.get(function.__name__, set())
    assert not missing
    for name, parameter in names.items():
        if name in own and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            assert own[name].kind is parameter.POSITIONAL_OR_KEYWORD


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("transpose", {"a": X, "axes": (1, 0)}), ("transpose", {"a": X}),
    ("swapaxes", {"a": X, "axis1": 0, "axis2": 1}),
    ("moveaxis", {"a": B, "source": 0, "destination": -1}),
    ("expand_dims", {"a": X, "axis": 1}), ("squeeze", {"a": X[:1], "axis": 0}),
    ("broadcast_to", {"array": X, "shape": (2, 3, 4)}), ("ravel", {"a": X, "order": "C"}),
    ("stack", {"arrays": [X, X], "axis": 1}), ("hstack", {"tup": [X, X]}),
    ("vstack", {"tup": [X, X]}), ("flip", {"m": X, "axis": 0}),
    ("roll", {"a": X, "shift": 1, "axis": 0}), ("tile", {"A": X, "reps": 2}),
    ("repeat", {"a": X, "repeats": 2, "axis": 0}), ("take", {"a": X, "indices": 1, "axis": 0}),
    ("take_along_axis", {"arr": X, "indices": np.argsort(X, 0), "axis": 0}),
    ("pad", {"array": X, "pad_width": 1, "mode": "constant", "constant_values": 2}),
    ("full_like", {"a": X, "fill_value": 2}), ("tril", {"m": X, "k": 1}),
    ("sum", {"a": X, "axis": 0, "dtype": np.float64, "keepdims": True}),
    ("mean", {"a": X, "axis": 0}), ("max", {"a": X, "axis": 1}), ("argmax", {"a": X, "axis": 0}),
    ("var", {"a": X, "axis": 0, "ddof": 1}), ("std", {"a": X, "keepdims": True}),
    ("average", {"a": X, "axis": 0, "weights": [1, 2, 3]}), ("ptp", {"a": X, "axis": 0}),
    ("count_nonzero", {"a": X, "axis": 0}), ("trace", {"a": X, "offset": 1}),
    ("clip", {"a": X, "a_min": -1, "a_max": 1}), ("clip", {"a": X, "min": -1, "max": 1}),
    ("round", {"a": X, "decimals": 1}), ("diff", {"a": X, "n": 2, "axis": 0}),
    ("isclose", {"a": X, "b": X, "rtol": 1e-3}), ("outer", {"a": V, "b": V}),
    ("tensordot", {"a": X, "b": W, "axes": 1}),
    ("nan_to_num", {"x": X, "nan": 1.0}), ("array_equal", {"a1": X, "a2": X}),
    ("concatenate", {"arrays": [X, X], "axis": None}),
]


@pytest.mark.parametrize(("name", "options"), CALLS, ids=lambda c: c if isinstance(c, str) else "")
def test_arguments_by_keyword(name: str, options: dict[str, Any]) -> None:
    names = list(options)
    traced = [key for key in names if isinstance(options[key], np.ndarray)]
    rest = {key: value for key, value in options.items() if key not in traced}
    first = inspect.signature(getattr(np, name)).parameters.get(names[0])
    if first is not None and first.kind is first.POSITIONAL_ONLY:
        with pytest.raises(TypeError):
            getattr(np, name)(**options)
        return
    if not traced:  # a list of arrays
        check(lambda x: getattr(np, name)(**{**rest, names[0]: [x, x]}), X)
    else:
        check(lambda *arrays: getattr(np, name)(**dict(zip(traced, arrays, strict=True)), **rest),
              *(options[key] for key in traced))


def test_arguments_that_do_not_fit_are_refused_by_name() -> None:
    for function, text in (
            (lambda x: np.einsum("ij->i", x, order="C", casting="no"), "casting"),
            (lambda x: np.clip(x, 0, 1, where=x > 0), "where"),
            (lambda x: np.pad(x, 1, end_values=3), "end_values")):
        with pytest.raises(UnsupportedError, match=text):
            run_eagerly(function, (X,))


# -- integers ----------------------------------------------------------------------------

INTEGERS = (int, np.int64, np.int32, np.uint8, np.intp, lambda n: np.array(n))

USES: dict[str, Callable[[Any, Any, Callable[[int], Any]], Any]] = {
    "indices": lambda x, b, i: (x[i(1)], x[:, i(2)], x[i(1), i(2)], b[i(1), ..., i(0)]),
    "slices": lambda x, b, i: (x[i(1):], x[:i(2), ::i(2)], x[i(0):i(3):i(2)]),
    "axes": lambda x, b, i: (x.sum(i(1)), np.max(b, axis=(i(0), i(2))), np.argmin(x, axis=i(0)),
                             np.flip(x, i(1)), np.expand_dims(x, i(1)), np.swapaxes(b, i(0), i(2)),
                             np.moveaxis(b, i(0), i(1)), np.concatenate([x, x], axis=i(1)),
                             np.stack([x, x], i(1)), np.take(x, [0, 1], axis=i(1)),
                             np.transpose(x, (i(1), i(0))), np.diff(x, axis=i(0)),
                             *np.split(x, 2, axis=i(1)), nn.softmax(x, axis=i(0))),
    "shapes": lambda x, b, i: (x.reshape(i(4), i(3)), np.reshape(x, (i(2), -1)), x.reshape(i(12)),
                               np.broadcast_to(x, (i(2), i(3), i(4))),
                               np.zeros((i(2), i(3)), like=x), np.ones(i(2), like=x),
                               np.full((i(2),), 3.0, like=x), np.eye(i(3), k=i(1), like=x),
                               np.arange(i(5), like=x) * 1, np.identity(i(2), like=x),
                               np.arange(i(1), i(5), like=x) * 1),
    "counts": lambda x, b, i: (np.roll(x, i(1)), np.roll(x, i(2), axis=i(1)), np.tile(x, i(2)),
                               np.tile(x, (i(1), i(2))), np.repeat(x, i(2), axis=i(0)),
                               np.diff(x, n=i(2)), *np.split(x, i(2), axis=1),
                               *np.array_split(x, i(3), axis=i(1)), np.pad(x, i(1)),
                               np.tril(x, i(1)), np.triu(x, i(1)), np.trace(x, i(1)),
                               np.var(x, ddof=i(1)), np.round(x, i(1)), x ** i(2),
                               np.tensordot(x, x.T, i(1)), np.take(x, i(5))),
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("kind", INTEGERS, ids=("int", "int64", "int32", "uint8", "intp", "array"))
def test_every_integer_is_one(name: str, kind: Any) -> None:
    """As with Python's own, which NumPy takes alike everywhere."""
    wanted = USES[name](X, B, int)
    got = run_eagerly(lambda x, b: USES[name](x, b, kind), (X, B))
    for found, want in zip(got, wanted, strict=True):
        assert np.shape(found) == np.shape(want)
        np.testing.assert_allclose(found, want, rtol=2e-6, atol=1e-5)


@pytest.mark.parametrize("kind", INTEGERS, ids=("int", "int64", "int32", "uint8", "intp", "array"))
def test_every_integer_says_where_to_write(kind: Any) -> None:
    def change(x: Any) -> Any:
        y = x + 0
        y[kind(1)] = 5
        y[kind(0)] += 2
        y[kind(1):, kind(2)] -= 1
        row = y[kind(2)]  # a copy if the index is an array
        row *= 3
        return y, row

    def update(x: Any) -> Any:
        return x.at[kind(1)].set(7), x.at[kind(1), kind(2)].add(1.5), x.at[kind(1):].add(1)

    a, b, c = X + 0, X + 0, X + 0
    a[1] = 7
    b[1, 2] += np.float32(1.5)
    c[1:] += 1
    got = (*run_eagerly(change, (X,)), *run_eagerly(update, (X,)))
    for found, want in zip(got, (*change(X), a, b, c), strict=True):
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("use", [
    lambda x: x.sum(axis=True), lambda x: x.sum(axis=np.True_), lambda x: x.reshape(True, 12),
    lambda x: np.sum(x, axis=0.0),
    lambda x: np.roll(x, 1, axis=False), lambda x: np.expand_dims(x, np.True_),
    lambda x: np.repeat(x, 1.5), lambda x: np.broadcast_to(x, (2.0, 3, 4)),
    lambda x: x[1.0], lambda x: x[::1.5], lambda x: np.split(x, 1.5),
    lambda x: weft.grad(np.sum, argnums=0.5)(x)])
def test_truth_values_and_fractions_are_no_integers(use: Any) -> None:
    with pytest.raises(Error) as caught:
        run_eagerly(use, (X,))
    assert caught.value.code in ("W112", "W123") and caught.value.hint


# -- reductions --------------------------------------------------------------------------

S = np.float32(2.5)


def test_reductions_of_numbers_and_of_no_axes() -> None:
    for function in (np.sum, np.max, np.min, np.any, np.all, np.ptp, np.count_nonzero, np.argmax,
                     np.argmin):
        for axis in (None, 0, -1):
            check(lambda s, f=function, axis=axis: f(s, axis=axis), S)
    for function in (np.mean, np.var, np.std, np.average):
        check(lambda s, f=function: f(s), S)
    for function in (np.sum, np.max, np.min, np.any, np.all, np.ptp, np.mean, np.var, np.std,
                     np.count_nonzero):
        check(lambda x, s, f=function: (f(x, axis=()), f(s, axis=())), X, S)
    check(lambda s: (s.mean(), s.sum(), s.max(), s.std(), s.argmax(), np.sum(s, keepdims=True)), S)
    check(lambda x: (x[0, 0].mean(), np.sum(x[1, 1]), np.max(x[0, 0], axis=0)), X)


@pytest.mark.parametrize(("function", "axis"), [
    (np.mean, 0), (np.var, -1), (np.std, 0), (np.average, 0), (np.sum, 1), (np.max, 1),
    (np.sum, (0,)), (np.argmax, 1), (np.all, -2)])
def test_an_axis_of_a_number_is_out_of_range_where_numpy_says_so(function: Any, axis: Any) -> None:
    with pytest.raises(np.exceptions.AxisError):
        function(S, axis=axis)
    with pytest.raises(IndexError, match="W121"):
        run_eagerly(lambda s: function(s, axis=axis), (S,))


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, i, m: (np.sum(x, where=m), np.sum(x, axis=0, initial=3), np.sum(i, where=m),
                            np.sum(x, 1, where=m, initial=2.5, keepdims=True),
                            np.sum(i, initial=2), np.sum(x, where=m[:1]), np.sum(m, initial=1),
                            np.sum(x, where=[True, False, True, False])),
    "extremes": lambda x, i, m: (np.max(x, initial=1), np.max(x, where=m, initial=-9),
                                 np.min(x, axis=1, where=m, initial=9, keepdims=True),
                                 np.min(i, initial=0.5), np.max(x[:0], initial=3, axis=0),
                                 np.min(x[:0], initial=3), np.amax(x, 0, initial=0)),
    "truth": lambda x, i, m: (np.any(m, where=x > 1), np.all(m, axis=0, where=x > 0),
                              m.all(axis=1, keepdims=True, where=x < 2)),
    "averages": lambda x, i, m: (np.mean(x, where=x > -2), np.mean(i, axis=0, where=i > -5),
                                 np.var(x, where=x > -2), np.std(x, axis=0, where=x > -9, ddof=1),
                                 np.var(x, mean=np.mean(x, keepdims=True)),
                                 np.std(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)),
                                 np.var(x, correction=1)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_with_a_mask_and_a_first_value(name: str) -> None:
    check(REDUCTIONS[name], X, INTS, M)
    compiled = weft.compile(REDUCTIONS[name])(X, INTS, M)
    for found, want in zip(compiled, REDUCTIONS[name](X, INTS, M), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5)


def test_a_maximum_of_nothing_has_no_value_but_with_a_first_one() -> None:
    def wrong(x: Any) -> Any:
        return np.max(x, where=x > 9)

    with pytest.raises(ValueError, match="initial"):
        wrong(X)
    with pytest.raises(ValueError, match=r"W102(.|\n)*initial="):
        run_eagerly(wrong, (X,))
    check(lambda x: np.max(x, where=x > 9, initial=-1), X)


# -- variables ---------------------------------------------------------------------------


def test_what_is_assigned_may_be_a_list_and_what_is_added_broadcasts() -> None:
    for run in (lambda f: f(), lambda f: weft.compile(f)(), lambda f: run_eagerly(f, ())):
        v = Variable(np.ones((2, 3), np.float32))

        def step(v: Any = v) -> None:
            v.assign([[1, 2, 3], [4, 5, 6.5]])
            v.assign_sub([1, 1, 2])
            v.assign_add(0.5)
            v.assign_add(np.float32(0.25))
            v.assign_sub(np.ones((2, 1), np.float32))

        run(step)
        wanted = np.array([[1, 2, 3], [4, 5, 6.5]], np.float32)
        wanted -= [1, 1, 2]
        wanted += 0.75
        wanted -= np.ones((2, 1), np.float32)
        np.testing.assert_array_equal(v.numpy(), wanted)
        assert v.dtype == np.float32


@pytest.mark.parametrize("value", [
    [1.5, 2.5], np.ones(4, np.int64), np.ones((2, 4), np.int64), [[1, 2, 3]] * 3])
def test_what_does_not_fit_a_variable_is_refused_alike(value: Any) -> None:
    v = Variable(np.zeros((2, 3), np.int64))
    for run in (lambda f: f(), lambda f: weft.compile(f)()):
        with pytest.raises(Error, match=r"W304|W111"):
            run(lambda: v.assign_add(value) and None)
    np.testing.assert_array_equal(v.numpy(), 0)


# -- updates by number -------------------------------------------------------------------


@pytest.mark.parametrize("value", [1.0, 2, np.float32(0.5)])
def test_repeated_indices_add_a_number_repeatedly(value: Any) -> None:
    i, j = np.array([0, 2, 0, 0, -1]), np.array([1, 1, -1, 1, 1])
    for index in ((i,), (slice(None), i % 4), (i, j), (i, slice(1, 3)), (..., j),
                  (i[:, None], j[None, :3])):
        wanted = X.copy()
        np.add.at(wanted, index, value)
        for run in (run_eagerly, lambda f, args: weft.compile(f)(*args)):
            got = run(lambda x, index=index: x.at[index].add(value), (X,))
            np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize("opt", [0, 2])
def test_an_addition_leaves_the_zeros_beside_it_as_they_are(opt: int) -> None:
    x, i = np.full((3, 4), -0.0, np.float32), np.array([2, 0])
    for index in (np.s_[1], np.s_[:, 1::2], np.s_[::-2, 1:3], (i, slice(1, 3))):
        wanted = x.copy()
        np.add.at(wanted, index, -0.0)
        added = weft.compile(opt=opt)(lambda x, index=index: x.at[index].add(-0.0))(x)
        assert np.signbit(wanted).all()
        np.testing.assert_array_equal(np.signbit(added), True)


def test_index_arrays_apart_from_each_other() -> None:
    x = np.arange(120.0).reshape(2, 3, 4, 5)
    i, j = np.array([0, 2, 0]), np.array([1, 1, -1])
    for shape in ((3, 2, 4), (2, 4), (3, 1, 1), ()):  # the index dims come first
        v = np.arange(np.prod(shape, dtype=int) * 1.0).reshape(shape) + 1
        wanted = x.copy()
        np.add.at(wanted, (slice(None), i, slice(None), j), v)
        for run in (run_eagerly, lambda f, args: weft.compile(f)(*args)):
            np.testing.assert_array_equal(
                run(lambda x, i, j, v: x.at[:, i, :, j].add(v), (x, i, j, v)), wanted)


# -- fixes -------------------------------------------------------------------------------

N = np.abs(X) + 1
FIXES: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "where": (
        lambda x: np.add(x, 1, where=x > 2),  # elsewhere is what memory held before
        lambda x: np.add(x, 1, out=np.ones_like(x), where=x > 2), "give out="),
}


@pytest.mark.parametrize("name", FIXES)
def test_the_suggested_fix_gives_what_was_wanted(name: str) -> None:
    wrong, right, hint = FIXES[name]
    with pytest.raises(Error) as caught:
        run_eagerly(wrong, (N,))
    assert hint in caught.value.hint
    np.testing.assert_allclose(run_eagerly(right, (N,)), right(N), rtol=1e-5)


def test_several_values_at_index_arrays_are_set_one_after_the_other() -> None:
    def at_once(x: Any, i: Any, v: Any) -> Any:
        y = x + 0
        y[i] = v
        return y

    def right(x: Any, i: Any, v: Any) -> Any:
        y = x + 0
        for k in range(len(i)):
            y[i[k]] = v[k]
        return y

    i, v = np.array([2, 0, 2]), N[[1, 1, 0]] * 7  # the last of equal indices wins
    for function in (at_once, right):
        np.testing.assert_array_equal(weft.compile(function)(N, i, v), at_once(N, i, v))


def test_the_arguments_of_a_gradient_are_counted_by_any_integer() -> None:
    def loss(a: Any, b: Any) -> Any:
        return np.sum(a * b * b)

    for one in (1, np.int64(1), np.array(1)):
        np.testing.assert_allclose(weft.grad(loss, argnums=one)(X, N), 2 * X * N, rtol=1e-6)
        first, second = weft.grad(loss, argnums=(np.int64(0), one))(X, N)
        np.testing.assert_allclose(first, N * N, rtol=1e-6)
        np.testing.assert_allclose(second, 2 * X * N, rtol=1e-6)


def test_sizes_of_specs_and_placeholders() -> None:
    for size in (3, np.int64(3), np.uint8(3), np.array(3)):
        spec = weft.Spec("f32", (size, np.int64(-1)))
        assert spec == weft.Spec("f32", (3, None)) and hash(spec) == hash(weft.Spec("f32", (3, -1)))
        g = weft.Graph()
        with g.as_default():
            x = weft.placeholder("f32", (size, 4), name="x")
            y = x.reshape(np.int64(12))
        np.testing.assert_array_equal(weft.Session(g).run(y, {x: X}), X.ravel())
    for wrong in (True, 2.0, -2, np.array([3])):
        with pytest.raises(Error, match="W112"):
            weft.Spec("f32", (wrong, 4))


def test_a_number_among_the_arguments_can_be_static() -> None:
    def power(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = x * x
        return x

    np.testing.assert_allclose(weft.compile(static_argnames="n")(power)(N, 2), N ** 4, rtol=1e-6)
    np.testing.assert_allclose(weft.compile(power)(N, 2), N ** 4, rtol=1e-6)
    rolled = weft.compile(lambda x, n: np.roll(x, n))(N, 2)  # which becomes static by itself
    np.testing.assert_array_equal(rolled, np.roll(N, 2))


def test_layers_refuse_an_axis_that_is_not_there() -> None:
    for layer in (nn.softmax, nn.log_softmax, nn.layer_norm, nn.rms_norm):
        for run in (lambda f: f(X), lambda f: run_eagerly(f, (X,))):
            with pytest.raises(IndexError, match="axis"):
                run(lambda x, f=layer: f(x, axis=2))
    with pytest.raises(IndexError, match="axis"):
        nn.batch_norm(X, V, V, axis=2)




GRID, NONE = np.arange(6.0).reshape(2, 3) - 2, np.zeros((0, 0, 0))


@pytest.mark.parametrize(("function", "x"), [
    # Python's bool and int where NumPy gives them
    (lambda x: np.array_equal(x, x, equal_nan=True), GRID),
    (lambda x: np.array_equiv(x, x[:1]), GRID),
    (lambda x: np.allclose(x, x + 1), GRID),
    (lambda x: np.linalg.matrix_rank(x[0]), GRID),
    (lambda x: np.size(x, (0, -1)), GRID),
    (lambda x: np.size(x, ()), GRID),
    # sums and products in bool
    (lambda x: np.sum(x, 0, dtype=bool), GRID),
    (lambda x: np.prod(x, 1, dtype=bool, initial=2), GRID),
    (lambda x: np.sum(x, dtype=bool, initial=True, where=x > 9), GRID),
    (lambda x: np.einsum("ij->j", x > 0), GRID),
    (lambda x: np.cumsum(x, 1, dtype=bool), GRID),
    (lambda x: np.cumprod(x, dtype=bool), GRID),
    (lambda x: np.pad(x > 0, 1, "symmetric", reflect_type="odd"), GRID),
    (lambda x: np.pad(x > 0, ((0, 0), (3, 2)), "reflect", reflect_type="odd"), GRID),
    (lambda x: np.modf(x, dtype=np.float32)[0], GRID[0].astype("f4")),
    (lambda x: np.lcm.reduce(x.astype(int)[0, 0], axis=-1), GRID),
    (lambda x: np.logaddexp.reduce(x.astype(int)[0, 0]), GRID),
    (lambda x: np.hypot.reduce(x.astype(int)[:1]), GRID),
    (lambda x: np.reshape(x, (3, -1), order="F"), GRID),
    (lambda x: x.ravel("F") + x.flatten(order="F"), GRID),
    (lambda x: np.partition(x, 3), NONE),
    (lambda x: np.cumsum(np.cumsum(x[0, 0][None], axis=0) + 1), GRID),
    # norms of matrices without elements
    (lambda x: np.linalg.norm(x, 2, (1, 2)), NONE),
    (lambda x: np.linalg.norm(x, "nuc", (1, 2), keepdims=True), NONE),
])
def test_kinds_of_results(function: Any, x: Any) -> None:
    wanted, found = function(x), weft.compile(function, verify=True)(x)
    assert type(found) is type(wanted)
    np.testing.assert_array_equal(found, wanted, strict=True)


def test_too_few_elements_of_unknown_sizes() -> None:
    """The error is NumPy's kind, before any index is out of range."""
    for function in (np.gradient, lambda x: np.partition(x, 1)):
        compiled = weft.compile(lambda x, f=function: f(x), dynamic={"x": {0: "b"}})
        np.testing.assert_array_equal(compiled(np.arange(3.0)), function(np.arange(3.0)))
        for size in (0, 1) if function is np.gradient else (1,):  # of none, any part is none
            with pytest.raises(ValueError, match="W102"):
                compiled(np.zeros(size))


def test_the_gradient_of_a_mantissa() -> None:
    x = np.array([1.5, -3.0, 0.1, 1e-310])
    found = weft.compile(weft.grad(lambda x: np.sum(np.frexp(x)[0])))(x)
    np.testing.assert_array_equal(found[:3], 1 / np.exp2(np.frexp(x)[1])[:3])
    assert np.isinf(found[3]) or found[3] == 2.0**1029


def test_a_distance_between_numbers_does_not_change() -> None:
    np.testing.assert_array_equal(weft.grad(lambda x: np.sum(np.spacing(x)))(GRID), 0 * GRID)


def test_sizes_that_may_be_equal() -> None:
    equal = weft.compile(lambda x: np.array_equal(x, np.arange(3.0)), dynamic={"x": {0: "n"}})
    assert equal(np.arange(3.0)) is True
    assert equal(np.arange(2.0)) is False
    with pytest.raises(Error, match="W105"):  # whether it is 3 is not one program's to ask
        equal.lower(np.arange(2.0)).compile()(np.arange(2.0))


def test_numbers_that_are_close_to_halves_are_halves() -> None:
    x = np.array([0.0, -5.96e-8, -3.05e-5, 2.5, 1.0], np.float16)
    for function in (lambda x: np.isclose(x, 0.5, rtol=1), lambda x: np.isclose(0, x, atol=1),
                     lambda x: np.isclose(x, 1)):
        np.testing.assert_array_equal(weft.compile(function)(x), function(x))


@pytest.mark.parametrize("size", [1, 5])
def test_rolled_by_computed_numbers(size: int) -> None:
    def rolled(x: np.ndarray, by: np.ndarray) -> object:
        square = np.outer(x, x + 1)
        return (np.roll(x, by[0]), np.roll(square, by[1]), np.roll(square, by[2], axis=1),
                np.roll(square, -by[0], axis=0))

    x, by = np.random.default_rng(0).normal(size=size), np.array([2, -7, 13])
    for got, want in zip(weft.compile(rolled)(x, by), rolled(x, by), strict=True):
        np.testing.assert_array_equal(got, want, strict=True)
