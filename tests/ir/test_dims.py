"""Sizes that depend on symbolic dims: short and empty arrays do what NumPy does, or fail as it."""

from __future__ import annotations

import ctypes
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.frontend.tracing.trace import trace_function
from weft.ir.indices.dims import requirements
from weft.ir.indices.index import Expr, bounds, maximum, minimum, positive, symbol
from weft.ir.indices.proof import differ, nonnegative
from weft.ir.indices.walk import evaluate, substitute
from weft.ir.interp.graph import run_graph, run_plan
from weft.ir.text.parser import parse_graph, parse_plan
from weft.ir.text.printer import print_graph, print_plan
from weft.ir.types import parse_dim
from weft.ir.verify.verifier import verify_plan

TARGETS = (None, "x86-64-v3")
SIZES = range(6)
B, C = symbol("b"), symbol("c")


# -- expressions --------------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "normal"), [
    ("max(b - 3, 0)", "max(b - 3, 0)"),
    ("max(3 - b, 0)", "-1*b + max(b - 3, 0) + 3"),
    ("max(b, 0)", "b"),
    ("max(0 - b - 1, 0)", "0"),
    ("max(b, 3)", "max(b - 3, 0) + 3"),
    ("max(2*b - 4, 0)", "2*max(b - 2, 0)"),
    ("max(max(b - 3, 0) - 2, 0)", "max(b - 5, 0)"),
    ("max(max(b - 3, 0) - b + 1, 0)", "-1*b + max(b - 1, 0) + 1"),
    ("max(b - 3, 0) - max(b - 3, 0)", "0"),
    ("max(b, c) - max(c, b)", "0"),
    ("(max(b - 3, 0) + 1)//2", "(max(b - 3, 0) + 1)//2"),
])
def test_maxima_have_one_normal_form(text: str, normal: str) -> None:
    dim = parse_dim(text)
    assert str(dim) == normal
    assert parse_dim(str(dim)) == dim


def dims() -> st.SearchStrategy[Any]:
    """Expressions with maxima, minima and divisions."""
    leaves = st.one_of(st.just(B), st.just(C), st.integers(-4, 4))
    return st.recursive(leaves, lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner), st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, k: a * k, inner, st.integers(-3, 3)),
        st.builds(maximum, inner, inner), st.builds(minimum, inner, inner),
        st.builds(lambda a, k: a // k, inner, st.integers(1, 3)),
        st.builds(lambda a, k: a % k, inner, st.integers(1, 3))), max_leaves=7)


@pytest.mark.long
@given(dims(), dims())
@settings(max_examples=150, deadline=None)
def test_expressions_mean_what_they_are_made_of(a: Any, b: Any) -> None:
    for sizes in itertools.product(range(6), repeat=2):
        values = dict(zip("bc", sizes, strict=True))
        x, y = evaluate(a, values), evaluate(b, values)
        assert evaluate(maximum(a, b), values) == max(x, y)
        assert evaluate(minimum(a, b), values) == min(x, y)
        assert evaluate(substitute(positive(a - b), {"b": C + 1, "c": 2}), values) == max(
            evaluate(a - b, {"b": values["c"] + 1, "c": 2}), 0)
        low, high = bounds(a)
        assert (low is None or low <= x) and (high is None or x <= high)
        assert not nonnegative(a) or x >= 0
        assert not nonnegative(a, (b,)) or y < 0 or x >= 0
        assert not differ(a, b) or x != y
    assert parse_dim(str(a)) == a or not isinstance(a, Expr)


@pytest.mark.parametrize("text", [
    "b - max(b - 3, 0)", "max(b - 3, 0) - b + 3", "b - b//2", "b - 3 mod max(b, 1)",
    "b*c - b*max(c - 2, 0)", "max(b - 1, 0) - max(b - 2, 0)", "max(b, c) - b",
    "max(max(b - 1, 0) - c, 0)*2", "1 - (b - max(b - 3, 0) + 2)//3", "(b + 2)//3 - b//3 + 0*b",
    "(b - max(b - 5, 0))//2 - (b - max(b - 2, 0))//2",
])
def test_what_slices_need_is_proved(text: str) -> None:
    assert nonnegative(parse_dim(text))
    assert not nonnegative(parse_dim(f"({text}) - 1"))


def test_no_proof_divides_by_a_size_that_may_be_0() -> None:
    assert not nonnegative(parse_dim("2 - b - 6//b"), (parse_dim("2 - b"),))


# -- short arrays -------------------------------------------------------------------------------

def outcome(function: Callable[[], Any]) -> tuple[Any, ...] | Exception:
    try:
        result = function()
    except (ValueError, IndexError) as problem:
        return problem
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def agree(found: Any, wanted: Any, note: str) -> None:
    if isinstance(found, Exception) or isinstance(wanted, Exception):
        assert isinstance(found, weft.Error) and isinstance(wanted, Exception), (
            note, found, wanted)
        return
    assert len(found) == len(wanted), note
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=note, strict=True)


def check_short(function: Callable[..., Any], columns: int = 0, reference: Any = None) -> None:
    """NumPy, native code for both targets, and the interpreter of the graph and of the plan, read
    from their texts, on arrays of 0 to 5 elements or rows."""
    shape = (columns,) * bool(columns)
    spec = f"f64[b{',' if columns else ''}{columns or ''}]"
    programs = [weft.compile(dynamic={"x": {0: "b"}}, on_recompile="error", target=target)(function)
                for target in TARGETS]
    traced = trace_function(function, (spec,))
    graph = parse_graph(print_graph(traced.graph))
    plan = Stages(traced.graph, Options()).plan
    verify_plan(plan)
    again = parse_plan(print_plan(plan, kernels=True))
    captured = [capture.array for capture in traced.captures]
    for size in SIZES:
        x = np.arange(1.0, size * (columns or 1) + 1).reshape(size, *shape)
        wanted = outcome(lambda x=x: (reference or function)(x))  # type: ignore[misc]
        for target, program in zip(TARGETS, programs, strict=True):
            agree(outcome(lambda x=x, p=program: p(x)), wanted,  # type: ignore[misc]
                  f"{size} elements, target {target}")
        agree(outcome(lambda x=x: run_graph(graph, [x, *captured])), wanted, f"graph, {size}")
        agree(outcome(lambda x=x: run_plan(again, [x, *captured])), wanted, f"plan, {size}")


HOSTILE: dict[str, Callable[[Any], Any]] = {
    "x[:3]": lambda x: x[:3],
    "x[-3:]": lambda x: x[-3:],
    "x[5::-1]": lambda x: x[5::-1],
    "x[-2::-1]": lambda x: x[-2::-1],
    "x[1:-1]": lambda x: x[1:-1],
    "x[::2]": lambda x: x[::2],
    "x[4:1:-2]": lambda x: x[4:1:-2],
    "x[-1:-4:-2]": lambda x: x[-1:-4:-2],
    "x[n//2:]": lambda x: x[x.shape[0] // 2:],
    "x[:n - 3]": lambda x: x[:x.shape[0] - 3],
    "x[n - 3:]": lambda x: x[x.shape[0] - 3:],
    "x[n - 3::-1]": lambda x: x[x.shape[0] - 3::-1],
    "x[:n - 3:-1]": lambda x: x[:x.shape[0] - 3:-1],
    "x[2 - n:]": lambda x: x[2 - x.shape[0]:],
    "slices of slices": lambda x: x[1:][:3][::-1][1:],
    "roll": lambda x: (np.roll(x, 2), np.roll(x, -7), np.roll(x, 0), np.roll(x, 5)),
    "diff": lambda x: (np.diff(x), np.diff(x, n=2)),
    "split": lambda x: np.split(x, 2),
    "split at places": lambda x: np.split(x, [1, 3]),
    "array_split": lambda x: np.array_split(x, 3),
    "product that clamps": lambda x: (x[:-10**7] @ x[10**7:]) + x,
    "product of parts": lambda x: x[1:] @ x[:-1],
    "product of parts that differ": lambda x: x[:2] @ x[2:],
    "concatenate": lambda x: np.concatenate([x[:-4], x]),
    "sum of nothing": lambda x: (np.sum(x[3:]), np.sum(x[9:])),
    "mean and var": lambda x: (np.mean(x), np.var(x), np.var(x, ddof=1), np.var(x, ddof=3),
                               np.var(x, ddof=1.5), np.std(x[2:], ddof=2)),
    "max of a part": lambda x: np.max(x[2:]),
    "min of a part": lambda x: np.min(x[:-3]),
    "argmax": lambda x: (np.argmax(x), np.argmin(x[1:])),
    "ptp": lambda x: np.ptp(x[-3:]),
    "gather of nothing": lambda x: np.sum(x[np.zeros(0, int)]),
    "gather at one place": lambda x: np.sum(x[np.full_like(x, 2, dtype=int)]),
    "an int": lambda x: x[3],
    "an int from the end": lambda x: x[-2],
    "a size as an index": lambda x: x[x.shape[0] - 2],
    "an int beside an array": lambda x: x[:, None][2, np.zeros(1, int)],
    "pad": lambda x: np.pad(x[2:], (1, 2)),
    "stack": lambda x: np.stack([x[:3], x[-3:]]),
    "the -1 of a reshape": lambda x: x.reshape(x.shape[0], -1),
    "the -1 of a reshape with rows": lambda x: x.reshape(-1, 1),
    "the -1 of a reshape of a part": lambda x: np.broadcast_to(x[1:], (2, *x[1:].shape)).reshape(
        x[1:].shape[0], -1),
    "zeros of a size": lambda x: np.zeros_like(x, shape=(x.shape[0] - 2,)),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", HOSTILE)
def test_short_arrays_do_what_numpy_does(name: str) -> None:
    check_short(HOSTILE[name])


REPEATED: dict[str, Callable[[Any], Any]] = {
    "the first": lambda x: x - x[:1],
    "the last": lambda x: x[-1:] / x,
    "the first of both sides": lambda x: (x[:1], x, x[-1:] + x[:1]),
    "the last one by its number": lambda x: x * x[x.shape[0] - 1:],
    "steps beyond the rest": lambda x: x * x[-3::3] + x[x.shape[0] - 1::2],
    "one of another part": lambda x: x[2:] * x[:1],
    "where": lambda x: np.where(x[:1] > 2, x, -x),
    "against a size": lambda x: x[:1] + np.arange(3.0),
    "against nothing": lambda x: x[:1] + np.ones(0),
    "the last one of a part": lambda x: np.diff(x, 3) * np.diff(x, 3)[x.shape[0] - 4::3],
    "rows": lambda x: x[:, None] * x[None, :1],
    "cumulated": lambda x: np.sum((x - x[:1]) * x[-1:]),
    "broadcast_to": lambda x: np.broadcast_to(x[:1], (2, *x.shape)),
    "in place": lambda x: x.at[1:].set(x[:1]),
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_dim_that_is_at_most_one_is_repeated(name: str) -> None:
    def plain(x: Any) -> Any:
        y = x.copy()
        y[1:] = x[:1]
        return y

    check_short(REPEATED[name], reference=plain if name == "in place" else None)


def test_gradients_of_what_is_repeated() -> None:
    def gradient(x: Any) -> Any:
        return weft.grad(lambda x: np.sum((x - x[:1]) ** 2 * x[-1:]))(x)

    dynamic = weft.compile(dynamic={"x": {0: "b"}}, on_recompile="error")(gradient)
    static = weft.compile(on_recompile="silent")(gradient)
    for size in (0, 1, 2, 5):
        x = np.arange(2.0, size + 2)
        np.testing.assert_array_equal(dynamic(x), static(x), strict=True)


def test_one_of_an_array_against_an_unrelated_dim() -> None:
    function = weft.compile(dynamic={"x": {0: "a"}, "y": {0: "b"}})(lambda x, y: x[:1] + y)
    for a, b in ((3, 2), (1, 0), (2, 1), (0, 0)):
        x, y = np.arange(a) + 1.0, np.arange(b) + 2.0
        np.testing.assert_array_equal(function(x, y), x[:1] + y, strict=True)
    with pytest.raises(ValueError, match=r"W105: dims [^ ]+ .* and b do not broadcast"):
        function(np.ones(0), np.ones(2))


UPDATES: dict[str, tuple[Any, str, Any]] = {
    "an int": (np.s_[4], "set", 0.5),
    "an int, added to": (np.s_[4], "add", 0.5),
    "from the end": (np.s_[-3], "set", 0.5),
    "from the end, added to": (np.s_[-3], "add", 0.5),
    "the head": (np.s_[:2], "set", 7.0),
    "the tail": (np.s_[3:], "add", 7.0),
    "every other one": (np.s_[::2], "set", 1.0),
    "backwards": (np.s_[::-2], "add", 1.0),
    "backwards from a place": (np.s_[2::-1], "set", 3.0),
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates_of_short_arrays(name: str) -> None:
    index, mode, value = UPDATES[name]

    def in_place(x: Any) -> Any:
        y = x.copy()
        y[index] = value if mode == "set" else y[index] + value
        return y

    check_short(lambda x: getattr(x.at[index], mode)(value), reference=in_place)
    check_short(in_place)


KNOWN_INDICES: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x[[-1, 1]],
    "columns": lambda x: x[:, [1, 0]],
    "both": lambda x: x[[0, 1], [1, 0]],
    "take": lambda x: np.take(x, [3, 0]),
    "take of rows": lambda x: np.take(x, [-2, 1], axis=0),
    "take of columns": lambda x: np.take(x, [0, 2], axis=1),
    "a row that nothing depends on": lambda x: (x, np.zeros_like(x[[2]])),
}


@pytest.mark.parametrize("name", KNOWN_INDICES)
def test_known_indices_are_checked_as_numpy_does_also_without_elements(name: str) -> None:
    function = KNOWN_INDICES[name]
    for dynamic in ({0: "n"}, {1: "m"}, {0: "n", 1: "m"}):
        compiled = weft.compile(dynamic={"x": dynamic}, on_recompile="silent")(function)
        for shape in itertools.product(range(4), range(4)):
            x = np.arange(1.0, shape[0] * shape[1] + 1).reshape(shape)
            found, wanted = (outcome(lambda f=f, x=x: f(x))  # type: ignore[misc]
                             for f in (compiled, function))
            agree(found, wanted, f"{name}, {shape}, {dynamic}")
            assert not isinstance(wanted, IndexError) or isinstance(found, IndexError)


def test_indices_are_checked_where_they_are_used() -> None:
    """Nothing is taken from rows without elements, in native code as in the interpreter."""
    def function(x: Any, i: Any) -> Any:
        return x[:, i], x.at[:, i].add(1)

    for rows in (0, 2):
        x, i = np.ones((rows, 3)), np.array([0, 7])
        traced = trace_function(function, (x, i))
        runs: list[Callable[[], Any]] = [
            lambda x=x, i=i: weft.compile(function)(x, i),  # type: ignore[misc]
            lambda g=traced.graph, x=x, i=i: run_graph(g, [x, i]),  # type: ignore[misc]
            lambda g=traced.graph, x=x, i=i: run_plan(  # type: ignore[misc]
                Stages(g, Options()).plan, [x, i])]
        for run in runs:
            found = outcome(run)
            assert isinstance(found, IndexError) if rows else [y.shape for y in found] == [
                (0, 2), (0, 3)]


FOLDED: dict[str, Callable[[Any], Any]] = {
    "a part, padded": lambda x: np.pad(x[-1:6:-3].reshape(1, -1), ((2, 2), (2, 3))),
    "padded": lambda x: np.pad(x.reshape(1, -1) + 1, ((2, 2), (2, 3)), constant_values=1),
    "joined": lambda x: np.concatenate([np.ones(3), x.T.reshape(-1), x.reshape(-1)]),
    "joined and summed": lambda x: np.sum(np.concatenate([np.tanh(x).T.reshape(-1), np.ones(2)])),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FOLDED)
def test_rows_and_columns_of_no_width_beside_elements(name: str, target: str | None) -> None:
    """The index of an element that is not there divides by 0, which would end the process."""
    function = FOLDED[name]
    compiled = weft.compile(dynamic={"x": {0: "n", 1: "m"}}, target=target)(function)
    for shape in itertools.product((4, 0, 9, 1), repeat=2):
        x = np.arange(float(np.prod(shape))).reshape(shape)
        np.testing.assert_allclose(compiled(x), function(x), rtol=1e-12, strict=True)


def test_an_int_past_a_dynamic_end_names_the_line() -> None:
    function = weft.compile(dynamic={"x": {0: "b"}})(lambda x: x.at[5].set(0.0))
    np.testing.assert_array_equal(function(np.ones(6)), [1, 1, 1, 1, 1, 0])
    for size in (0, 5):
        with pytest.raises(IndexError, match=rf"W124: index 5 is out of range for axis 0 with size "
                                             rf"b \(b is {size}\)[^$]*x.at\[5\]"):
            function(np.ones(size))
    beside = weft.compile(dynamic={"x": {0: "b"}})(lambda x: x[-3, np.array([0, 1])])
    with pytest.raises(IndexError, match="W124"):  # -3 of 2 rows is not row 1
        beside(np.ones((2, 2)))


# -- random chains ------------------------------------------------------------------------------

def bound() -> st.SearchStrategy[Any]:
    """A bound of a slice: none, an int, or of the size n: (a, k) is n//a - k."""
    return st.one_of(st.none(), st.integers(-7, 7), st.just(10**7), st.just(-10**7),
                     st.tuples(st.sampled_from((1, 2)), st.integers(0, 4)))


def cut(x: Any, start: Any, stop: Any, step: int) -> Any:
    n = x.shape[0]
    first, last = (n // at[0] - at[1] if isinstance(at, tuple) else at for at in (start, stop))
    return x[first:last:step]


def links() -> st.SearchStrategy[Any]:
    step = st.sampled_from((1, 1, 2, -1, -3))
    return st.one_of(
        st.builds(lambda a, b, s: lambda x: cut(x, a, b, s), bound(), bound(), step),
        st.builds(lambda k: lambda x: np.roll(x, k, axis=0), st.integers(-7, 7)),
        st.just(lambda x: np.diff(x, axis=0)),
        st.builds(lambda a, b: lambda x: np.concatenate([cut(x, a, None, 1), cut(x, None, b, -1)]),
                  bound(), bound()),
        st.just(lambda x: x[1:] * x[:-1]))


def hard_to_prove(x: Any) -> Any:
    """One size is asked for, and then the proof of another is not found beside that fact."""
    y = np.diff(cut(x, 10_000_000, -10_000_000, -3), axis=0)
    return np.concatenate([cut(y, -1, None, 1), cut(y, None, (2, 0), -1)])


@pytest.mark.long
def test_sizes_are_proved_beside_what_is_required() -> None:
    def function(x: Any) -> Any:
        y = hard_to_prove(x)
        return y, np.sum(y, axis=0), np.concatenate([y, x]), y @ y

    check_short(function)


@pytest.mark.long
@given(st.lists(links(), min_size=1, max_size=3), st.sampled_from((0, 3)))
@settings(max_examples=20, deadline=None)
def test_random_chains_of_slices(chain: list[Callable[[Any], Any]], columns: int) -> None:
    def function(x: Any) -> Any:
        y = x
        for link in chain:
            y = link(y)
        # Exact in any order: small integers.
        return y, np.sum(y, axis=0), np.concatenate([y, x]), (y.T @ y if columns else y @ y)

    try:
        trace_function(function, (f"f64[b,{columns}]" if columns else "f64[b]",))
    except weft.Error as problem:  # what is too long to compute with is refused
        assert problem.code == "W122"
        return
    check_short(function, columns)


@pytest.mark.parametrize("name", ["x[:3]", "x[-3:]", "x[5::-1]", "x[-2::-1]", "x[::2]",
                                  "x[4:1:-2]", "x[:n - 3]", "slices of slices", "roll", "diff",
                                  "product that clamps", "concatenate", "pad"])
def test_gradients_through_short_slices(name: str) -> None:
    """The same as for static sizes, whose slices have no maxima."""
    def loss(x: Any) -> Any:
        results = HOSTILE[name](x)
        return sum(np.sum(y * y) for y in (results if isinstance(results, tuple) else (results,)))

    def gradient(x: Any) -> Any:
        return weft.grad(loss)(x)

    dynamic = weft.compile(dynamic={"x": {0: "b"}}, on_recompile="error")(gradient)
    static = weft.compile(on_recompile="silent")(gradient)
    for size in (0, 1, 2, 4, 7):
        x = np.arange(1.0, size + 1)
        np.testing.assert_array_equal(dynamic(x), static(x), strict=True)


# -- dims that must be equal --------------------------------------------------------------------

MEETINGS: dict[str, Callable[[Any, Any], Any]] = {
    "concatenate": lambda x, z: np.concatenate([x, z], axis=1),
    "a part of it": lambda x, z: np.concatenate([x, z], axis=1)[:, :4],
    "product": lambda x, z: x.T @ z,
    "einsum": lambda x, z: np.einsum("ij,ik->jk", x, z),
    "elementwise": lambda x, z: x[:, 0] + z[:, 0],
    "where": lambda x, z: np.where(x[:, 0] > 0, x[:, 0], z[:, 0]),
    "stack": lambda x, z: np.stack([x[:, 0], z[:, 0]]),
    "tensordot": lambda x, z: np.tensordot(x, z, axes=((0,), (0,))),
}


@pytest.mark.parametrize("name", MEETINGS)
def test_unknown_dims_that_meet_are_equal_or_refused(name: str) -> None:
    function = MEETINGS[name]
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (None, 4), name="x")
        z = weft.placeholder("f64", (None, 3), name="z")
        y = function(x, z)
        apart = [x * 2, z * 2]
    session = weft.Session(g)
    compiled = weft.compile(dynamic={"x": {0: "a"}, "z": {0: "b"}})(function)
    graph = parse_graph(print_graph(trace_function(function, ("f64[a,4]", "f64[b,3]")).graph))
    for rows in (0, 2, 3):
        a, c = np.ones((rows, 4)), np.arange(rows * 3.0).reshape(rows, 3)
        wanted = function(a, c)
        for found in (session.run(y, {x: a, z: c}), compiled(a, c), run_graph(graph, [a, c])[0]):
            np.testing.assert_array_equal(found, wanted)
        other = np.ones((4, 3))
        with pytest.raises(ValueError, match=r"W105: dims z_0 \(axis 0 of 'z'\) and x_0 \(axis 0 of"
                                             rf" 'x'\) must be equal \(x_0 is {rows}, z_0 is 4\)"):
            session.run(y, {x: a, z: other})
        with pytest.raises(ValueError, match="W105"):
            compiled(a, other)
        with pytest.raises(ValueError, match="W105"):
            run_graph(graph, [a, other])
        # Nobody asks for equal sizes of what is not put together.
        assert [r.shape for r in session.run(apart, {x: a, z: other})] == [(rows, 4), (4, 3)]


def test_an_unknown_dim_against_a_known_one() -> None:
    function = weft.compile(dynamic={"x": {0: "b"}})(lambda x: x + np.arange(3.0))
    np.testing.assert_array_equal(function(np.ones(3)), [1, 2, 3])
    for size in (0, 2):
        with pytest.raises(ValueError, match=rf"W105.*b \(axis 0 of 'x'\) and 3.*b is {size}"):
            function(np.ones(size))
    # An unknown dim is never repeated; where it is 1, a program of its own does that.
    np.testing.assert_array_equal(function(np.ones(1)), [1, 2, 3])
    with pytest.raises(ValueError, match=r"W105.*b \(axis 0 of 'x'\) and 3.*b is 1"):
        function.lower(np.ones(1)).compile()(np.ones(1))
    ones = weft.compile(dynamic={"x": {0: "b"}})(lambda x: x + np.ones(1))
    assert ones(np.ones(5)).shape == (5,)
    with pytest.raises(ValueError, match="W101: dims b and b \\+ 1 differ"):
        trace_function(lambda x: x + np.concatenate([x, np.ones(1)]), ("f64[b]",))


def test_equal_dims_have_gradients() -> None:
    both = weft.compile(dynamic={"x": {0: "a"}, "z": {0: "b"}})(
        lambda x, z: weft.grad(lambda x, z: np.sum(x * z * z), argnums=(0, 1))(x, z))
    x, z = np.arange(3.0), np.arange(3.0) + 2
    for found, wanted in zip(both(x, z), (z * z, 2 * x * z), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_requirements_are_what_cannot_be_proved() -> None:
    def needs(function: Callable[..., Any], *specs: str) -> list[str]:
        return [str(need) for need in requirements(trace_function(function, specs).graph)]

    assert needs(lambda x: (x[:3], x[-3:], np.roll(x, 2), np.diff(x), x[5::-1]), "f32[b]") == []
    assert needs(lambda x: np.max(x) + np.max(x), "f32[b]") == ["b >= 1"]
    assert needs(lambda x: np.max(x), "f32[b + 1]") == []
    assert needs(lambda x: x[5] + x[3], "f32[b]") == ["b - 6 >= 0"]
    assert needs(lambda x, y: (x + y) * y, "f32[a]", "f32[b]") == ["b == a"]
    assert needs(lambda x: np.zeros_like(x, shape=(x.shape[0] - 3,)), "f32[b]") == ["b - 3 >= 0"]


# -- artifacts ----------------------------------------------------------------------------------

def test_exported_functions_clamp_and_check(tmp_path: Path) -> None:
    def function(x: Any, z: Any) -> Any:
        return np.concatenate([x[-3:], np.roll(z, 2)]), np.sum(x[3:]) + z[1], x + z

    weft.export(function, "f64[b]", "f64[c]", path=tmp_path / "clamp")
    header = (tmp_path / "clamp" / "clamp.h").read_text()
    assert "max(b - 3, 0)" in header
    assert "W105: dims c (axis 0 of 'z') and b (axis 0 of 'x') must be equal" in header
    loaded = weft.load(tmp_path / "clamp")
    for size in (2, 3, 5):
        x, z = np.arange(1.0, size + 1), np.arange(1.0, size + 1) * 10
        for found, wanted in zip(loaded(x, z), function(x, z), strict=True):
            np.testing.assert_array_equal(found, wanted)
    with pytest.raises(ValueError, match=r"W105.*must be equal \(b is 4, c is 2\)"):
        loaded(np.ones(4), np.ones(2))
    with pytest.raises(IndexError, match="W124: index 1 is out of range"):
        loaded(np.ones(1), np.ones(1))
    # The C function asks by itself, before it touches an array.
    manifest = json.loads((tmp_path / "clamp" / "manifest.json").read_text())
    library = ctypes.CDLL(str(tmp_path / "clamp" / "clamp.so"))
    arrays = [np.ones(9) for _ in range(5)]
    pointers = (ctypes.c_void_p * 5)(*[array.ctypes.data for array in arrays])
    status = library.clamp_call(pointers, (ctypes.c_int64 * 2)(4, 2), None, ctypes.c_int32(1))
    assert status > 0 and manifest["checks"][status - 1]["code"] == "W105"
    assert all((array == 1).all() for array in arrays)
    status = library.clamp_call(pointers, (ctypes.c_int64 * 2)(1 << 61, 1 << 61), None,
                                ctypes.c_int32(1))
    assert status == manifest["codes"]["no_memory"]


def test_kernels_for_gpus_have_maxima() -> None:
    graph = trace_function(lambda x: x[-3:] * 2, ("f32[b]",)).graph
    assert "tl.maximum(" in Stages(graph, Options()).text("triton")


# -- sizes past all memory, and specs -----------------------------------------------------------

def test_sizes_past_all_memory_name_the_bytes() -> None:
    outer = weft.compile(dynamic={"x": {0: "b"}})(lambda x: x[:, None] + x[None, :])
    with pytest.raises(MemoryError, match=r"TiB|bytes"):
        outer(np.ones(10**7))
    huge = weft.compile(dynamic={"x": {0: "b"}})(lambda x: np.zeros_like(x, shape=(
        x.shape[0] * 10**9, x.shape[0] * 10**9, 2)))
    with pytest.raises(MemoryError, match=str(2 * 8 * 10**24)):
        huge(np.ones(10**3))
    # 2**64 elements are none to 64 bits.
    wraps = weft.compile(dynamic={"x": {0: "b"}})(
        lambda x: np.sum(np.zeros_like(x, shape=(x.shape[0] * 2**60,)) + np.sum(x)))
    for size in (2, 16):
        with pytest.raises(MemoryError):
            wraps(np.ones(size))


@pytest.mark.parametrize(("spec", "message"), [
    ("f32[1.5]", "not a dim: '1.5'"), ("f32[-3]", "negative"), ("f32[b b]", "not a dim: 'b b'"),
    ("f32[3b]", "not a dim"), ("f32[%3]", "no name"), ("f32[max]", "not a dim"),
    ("f32[b,]", "not a dim"), (("f32", (1.5,)), "integer"), (("f32", (-3,)), "negative"),
    (("f32", ("-3",)), "negative"), (("f32", ("b b",)), "not a dim"),
])
def test_specs_of_sizes_that_are_none(spec: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"W112: not a spec: .*{message}"):
        weft.compile(lambda x: x).trace(spec if isinstance(spec, str) else weft.Spec(*spec))


def test_squeeze_keeps_axes_of_unknown_size() -> None:
    """Whose size is not 1: else the result would have another number of dims than NumPy's."""
    squeeze = weft.compile(dynamic={"x": {1: "n"}})(lambda x: np.squeeze(x) * 2)
    for size in (0, 2, 3, 1):
        x = np.arange(4.0 * size).reshape(1, size, 4)
        np.testing.assert_array_equal(squeeze(x), np.squeeze(x) * 2)
    x = np.ones((1, 1, 4))
    with pytest.raises(weft.Error, match=r"W105: np.squeeze without axis= .*\(n is 1\)"):
        squeeze.lower(x).compile()(x)


def test_squeeze_of_an_axis_that_is_1_in_every_step() -> None:
    named = weft.compile(dynamic={"x": {0: "n"}})(lambda x: np.squeeze(x, axis=0) + 1)
    first = weft.compile(dynamic={"x": {0: "n"}})(lambda x: np.squeeze(x[:1]) + 1)
    np.testing.assert_array_equal(named(np.ones((1, 3))), [2, 2, 2])
    np.testing.assert_array_equal(first(np.ones((5, 3))), [2, 2, 2])
    assert first(np.ones((0, 3))).shape == (0, 3)  # by a program of its own
    for function, size in ((named, 2), (named, 0)):
        with pytest.raises(ValueError, match=rf"W105: .* 1 must be equal \(n is {size}\)"):
            function(np.ones((size, 3)))
    with pytest.raises(ValueError, match="W102: axis 0 has size n \\+ 2"):
        trace_function(lambda x: np.squeeze(x, axis=0), ("f32[n + 2]",))


# -- texts of sizes -----------------------------------------------------------------------------

@pytest.mark.parametrize("dim", ["b//0", "b//c", "4//b", "b mod c", "(b + 1)//(2*c)", "b//-2",
                                 "b//(c - c)", "2*(b//c) + 1", "max(b//c, 2)", "(" * 5000 + "b"])
def test_a_size_is_divided_by_what_is_above_0_only(dim: str) -> None:
    """Division by a size of 0 ends the process."""
    for make in (lambda: weft.Spec.parse(f"f32[b,c,{dim}]"), lambda: weft.Spec("f32", (dim,)),
                 lambda: weft.compile(lambda x: x, dynamic={"x": {0: dim}})(np.ones(3))):
        with pytest.raises(weft.Error, match=r"W112: not a spec: not a (size|dim)"):
            make()
    assert weft.Spec.parse("f32[b,c,b//max(c, 1)]").shape[0] == symbol("b")
    assert str(parse_dim("(b + 3)//4")) == str(weft.Spec("f32", ("(b + 3)//4",)).shape[0])


def test_a_dtype_that_is_none_is_named() -> None:
    with pytest.raises(weft.Error, match=r"W112.*float32 is no dtype(.*\n)*.*f16, bf16, f32"):
        weft.compile(np.tanh).lower("float32[3]")
