"""Slices whose ends go by the numbers of rounds are arrays of such sizes: nothing is measured, no
element beside them is touched, and all ways to run a program give the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.graph import all_nodes
from weft.ir.interp.plan import run_plan
from weft.ir.kernels.kernel import Axis
from weft.ir.machine import GPU
from weft.ir.ops.op import Kind
from weft.ir.plans.plan import Alloc, Copy, Launch, Loop, Plan, Step, all_steps


def durbin(r: Any) -> Any:
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = alpha
    for k in range(1, len(r)):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / (beta + 3)
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def both_ends(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[0:i] += 2.0 * np.flip(x[0:i])
        y[i:] -= x[i:][::-1]
        y[-i - 1:] *= 0.5
        y[:-i] += 1
        y[i + 5:i + 3] += 1
        y[100:i] += 1
    return y


def blocks(x: Any) -> Any:
    """The last block has what is left."""
    s = 0.0
    for i in range(0, len(x), 4):
        s = s * 0.5 + np.sum(x[i:i + 4] ** 2) + x[i:i + 4].size
    return s


def around(x: Any) -> Any:
    """Windows that begin before the array begin at its end, as NumPy has it."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i - 2:i + 3] += 1.0
        y[max(i - 2, 0):i + 3] += x[i]
        y[max(0, i - 3):min(len(x), i + 2)] *= x[i] + 2
    return y


def triangles(x: Any) -> Any:
    a = np.outer(x, x) + len(x) * np.eye(len(x))
    for i in range(len(x)):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])
    return a


def corners(x: Any) -> Any:
    a = np.outer(x, x)
    for i in range(len(x)):
        a[i:, i] = a[i, i:] = a[i:, i:].sum(0)
        a[:i, :i] *= 0.5
        a[:i, None, i:][:, 0] += 0.25
        a[-i - 1, i + 1:] -= 1
        a[i] = a[:, i]
    return a


def of_all_kinds(x: Any) -> Any:
    y = np.zeros((len(x), len(x)))
    s = 0.0
    for i in range(1, len(x)):
        v = x[:i]
        s += np.argmax(v) + np.median(v) + np.unique(v).size + v[v > 0].sum() + v.std()
        s -= np.concatenate([v, x[i + 1:]]).max() + np.cumsum(v)[-1] + len(v)
        y[i, :i + 1] = np.linspace(0, 1, i + 1)
        y[:i, i] = np.arange(i) * x[i] + np.sort(v)
        y[i, i:] += np.ones(len(x) - i)
    return y, s


def downwards(x: Any) -> Any:
    s = 0.0
    for i in range(len(x) - 1, 0, -1):
        for k in range(0, i, 2):
            s = s * 0.9 + x[k:i].min() - x[i:].max()
    return s


def until(x: Any) -> Any:
    s = 0.0
    for i in range(1, len(x)):
        if s > 4:
            break
        s = s + (x[:i] * x[i]).sum() ** 2
    return s


def last(x: Any) -> Any:
    """What a round leaves has the size of the last one."""
    s, v = x * 0, x[:1]
    for i in range(1, len(x)):
        s[i] = v.sum()
        v = x[:i] * 2
    return s, v


def far(x: Any) -> Any:
    """Ends beyond the array, and before it; masks of the user's."""
    found = np.zeros_like(x)
    for i in range(len(x)):
        found[i] = x[:2 * i].sum() + x[:max(i - 3, 0)].sum() - x[i // 2:].max()
        found[i] += np.sum(x, where=np.arange(len(x)) < i)
    return found


FUNCTIONS = (durbin, both_ends, blocks, around, triangles, corners, of_all_kinds, downwards, until,
             last, far)


def array(n: int) -> Any:
    return np.random.default_rng(n).normal(size=n)


def parts(found: Any) -> list[Any]:
    return [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_numpy_has_it(function: Callable[..., Any]) -> None:
    named = weft.compile(function, dynamic={"x" if function is not durbin else "r": {0: "n"}})
    for n in (1, 2, 3, 8, 33, 70):
        x = array(n)
        for compiled in (weft.compile(function), named) if n == 33 else (named,):
            for got, want in zip(parts(compiled(x)), parts(function(x)), strict=True):
                assert got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_same_bits_everywhere(function: Callable[..., Any]) -> None:
    x = array(70)
    lowered = weft.compile(function).lower(x)
    if any(node.op.kind is Kind.EXTENT for node in all_nodes(lowered.traced.graph)):
        pytest.skip("what it measures besides has no plan of one piece")
    want = [part.tobytes() for part in parts(weft.compile(function)(x))]
    arrays = [x, *(held.array for held in lowered.traced.captures)]
    for plan in (lowered.stages.plan, lowered.stages.plan_for(GPU)):
        assert [part.tobytes() for part in run_plan(plan, arrays)] == want
    for options in ({"target": "x86-64-v3"}, {"opt": 0}, {"threads": 1}):
        found = parts(weft.compile(function, **options)(x))  # type: ignore[call-overload]
        assert [part.tobytes() for part in found] == want


def loops(plan: Plan) -> list[Loop]:
    return [step for step in all_steps(plan.steps) if isinstance(step, Loop)]


@pytest.mark.parametrize("function", [durbin, both_ends, triangles])
def test_a_round_touches_what_it_writes(function: Callable[..., Any]) -> None:
    plan = weft.compile(function).lower(array(300)).stages.plan
    inside = [step for loop in loops(plan) for step in all_steps(loop.body)]
    assert loops(plan) and not any(isinstance(step, Copy) for step in inside)
    assert all("t0" in str(step.type) or "t1" in str(step.type) or step.type.size == 1
               for step in inside if isinstance(step, Alloc))
    assert not plan.checks
    # What is stored into is not read as a whole, one element after the other.
    assert all(axis.extent == 1 or "t" in str(axis.extent) or axis.kind == "par"
               for axis in axes_in(plan, inside))


def axes_in(plan: Plan, steps: Sequence[Step]) -> list[Axis]:
    return [axis for step in steps if isinstance(step, Launch)
            for axis in plan.kernels[step.kernel].axes]


def test_what_inner_rounds_have_written_is_written_in_place() -> None:
    def swept(u: Any) -> Any:
        p = np.empty_like(u)
        for _ in range(40):
            p[1:-1, 0] = 1.0
            for j in range(1, len(u)):
                p[1:-1, j] = 1 / (p[1:-1, j - 1] + 2)
            p[1:-1, 0] = 0.5
            for j in range(1, len(u)):
                u[j, 1:-1] += p[1:-1, j] * u[j - 1, 1:-1]
            u[1:-1, -1] = 2.0
        return u

    u = np.outer(array(60), array(60))
    np.testing.assert_allclose(weft.compile(swept)(u.copy()), swept(u.copy()), rtol=1e-12)
    plan = weft.compile(swept).lower(u).stages.plan
    inside = [step for loop in loops(plan) for step in all_steps(loop.body)]
    assert len(loops(plan)) == 3 and not any(isinstance(step, Copy) for step in inside)
    assert all(step.type.size == 58 for step in inside if isinstance(step, Alloc))
    assert all(axis.extent != 60 for axis in axes_in(plan, inside))


def test_lists_that_inner_rounds_fill_have_their_length() -> None:
    def rows(x: Any) -> Any:
        s = 0.0
        for i in range(1, len(x)):
            row = []
            for j in range(i):
                row.append(x[j] * 2)
            s = s * 0.5 + len(row) + sum(row)
        return s

    x = array(80)
    np.testing.assert_allclose(weft.compile(rows)(x), rows(x))
    plan = weft.compile(rows).lower(x).stages.plan
    assert "t0 + 1" in [str(loop.count) for loop in loops(plan)]


def test_what_a_round_leaves_has_the_size_of_it() -> None:
    plan = weft.compile(last).lower(array(80)).stages.plan
    assert [str(loop.count) for loop in loops(plan)] == ["79"] and len(plan.measures) == 1


def test_names_that_only_a_round_binds() -> None:
    def first(x: Any) -> Any:
        out = None
        for i in range(1, len(x)):
            if x[i] > 0.9:
                out = x[:i]
                break
        return out

    compiled = weft.compile(first, dynamic={"x": {0: "n"}})
    with pytest.raises(weft.Error):
        compiled(array(40))


def of_so_many(x: Any, n: Any) -> Any:
    """Rounds of which a value tells how many there are."""
    y, s = x * 1, 0.0
    for i in range(n):
        y[:i] += np.flip(x[:i])
        s = s * 0.5 + np.dot(x[:i + 1], y[:i + 1]) + np.arange(i).sum()
        for j in range(i // 2):
            y[j:i] *= 0.9
    for i in range(2, 2 * n, 3):
        s -= y[i - 2:n].sum() + x[:len(x) - i].sum()
    return y, s


@pytest.mark.parametrize("sizes", [None, {"x": {0: "n"}}])
@pytest.mark.parametrize("policy", ["silent", "error"])
def test_rounds_of_which_a_value_tells_how_many(sizes: Any, policy: Any) -> None:
    compiled = weft.compile(of_so_many, dynamic=sizes, on_recompile=policy)
    x = array(90)
    for n in (70, 0, 1, 89, 90, -4, 33):
        for got, want in zip(parts(compiled(x, n)), parts(of_so_many(x, n)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
        assert len(compiled.signatures) == 1 or n != 70
    first = weft.compile(of_so_many, dynamic=sizes)
    assert str(loops(first.lower(x, 70).stages.plan)[0].count) == "70"
    assert first.fixed.keys() == {"n"} and not compiled.fixed


@pytest.mark.long
def test_gradients_of_rounds_that_are_measured() -> None:
    def loss(x: Any, n: Any) -> Any:
        return np.sum(np.sin(of_so_many(x, n)[0])) + of_so_many(x, n)[1]

    x = array(70) / 4
    found = weft.compile(weft.grad(loss), on_recompile="error")
    assert "length = size" in found.lower(x, 65).as_text()
    for n in (65, 3):
        np.testing.assert_allclose(found(x, n), slopes(lambda x: loss(x, n), x),  # noqa: B023
                                   rtol=1e-4, atol=1e-4)


def test_ends_that_are_named_sizes_beside_others() -> None:
    def ends(x: Any) -> Any:
        y, n = x * 1, len(x)
        for i in range(n - 1, -1, -1):
            y[i:n - 1] -= np.tanh(y[i])
            y[i - n:n] *= 0.5
        return y

    for n in (1, 9, 80):
        np.testing.assert_allclose(
            weft.compile(ends, dynamic={"x": {0: "n"}})(array(n)), ends(array(n)))


def test_nothing_is_taken_of_arrays_without_elements() -> None:
    """Ends that values tell, of which some choose nothing."""
    def flipped(x: Any, ends: Any) -> Any:
        y, s = x * 1, 0.0
        for k in ends:
            y[:k] += np.flip(x[:k])
            s += np.sum((np.ones(k) * x[:k]) ** 2)
            y[k:] = np.where(np.ones(len(x) - k, bool) & (x[k:] > 0), 0, 1)
        return y, s

    x = array(9)
    for ends in ([1, 2, 3], [0, 2, 9], [0, 0, 0], [9, 9, 9]):
        places = np.array(ends * 20)
        for got, want in zip(weft.compile(flipped)(x, places), flipped(x, places), strict=True):
            np.testing.assert_allclose(got, want)


def test_every_other_element() -> None:
    def strided(x: Any) -> Any:
        y, s, n = x * 1, 0.0, len(x)
        for i in range(n):
            s = s * 0.5 + x[i::2].sum() - x[:i:3].max(initial=0) + x[i - 2:i + 4:2].sum()
            s += np.dot(x[i::-1], y[i::-1]) + x[-i - 1::-2].sum() + x[n - i:i:-3].size
            y[-i - 1:i:2] *= 0.5
            y[n:i:-2] -= 1
        return y, s

    for named in (None, {"x": {0: "n"}}):
        compiled = weft.compile(strided, dynamic=named, on_recompile="silent")
        for n in (1, 2, 9, 70):
            for got, want in zip(compiled(array(n)), strided(array(n)), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-9)
    plan = weft.compile(strided).lower(array(70)).stages.plan
    assert not plan.checks and not plan.measures


@pytest.mark.parametrize("part", [lambda w, i: w[i:][:2], lambda w, i: w[:i + 2][i:]])
def test_gradients_of_windows_of_slices(part: Callable[..., Any]) -> None:
    """What is read in all rounds, of which each has another window in a product."""
    v = np.array([[0.3, -0.7]])

    def loss(w: Any) -> Any:
        s = 1.0
        for i in range(79):
            s = s * 0.5 + np.sum(np.tanh(np.cos(v * s * 0.01 + i) @ part(w.reshape(80, 3), i)))
        return s

    w = array(240)
    np.testing.assert_allclose(weft.compile(weft.grad(loss))(w), slopes(loss, w), atol=1e-7)


def test_counts_of_inner_rounds_are_sizes() -> None:
    plan = weft.compile(triangles).lower(array(80)).stages.plan
    assert [str(loop.count) for loop in loops(plan)] == ["80", "t0"]
    assert not any(loop.condition for loop in loops(plan))


def slopes(function: Callable[..., Any], x: Any, step: float = 1e-6) -> Any:
    return np.array([(function(x + step * unit) - function(x - step * unit)) / (2 * step)
                     for unit in np.eye(len(x))])


def squared(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: np.sum(parts_of(function(x)) ** 2)


def parts_of(found: Any) -> Any:
    return found[0] if isinstance(found, tuple) else found


@pytest.mark.long
@pytest.mark.parametrize("function", [durbin, both_ends, blocks, triangles, downwards, until, last])
def test_gradients_and_batches(function: Callable[..., Any]) -> None:
    loss, x = squared(function), array(24) / 4
    np.testing.assert_allclose(weft.compile(weft.grad(loss))(x), slopes(loss, x),
                               rtol=1e-4, atol=1e-4)
    batch = np.stack([x, x[::-1], x * 0.7])
    np.testing.assert_allclose(weft.compile(weft.vmap(loss))(batch), [*map(loss, batch)],
                               rtol=1e-9)
    np.testing.assert_allclose(
        weft.compile(weft.vmap(weft.grad(loss)))(batch), [slopes(loss, each) for each in batch],
        rtol=1e-4, atol=1e-4)
    moved = weft.compile(lambda x, v: weft.jvp(loss, (x,), (v,))[1])(x, np.ones(24))
    np.testing.assert_allclose(moved, slopes(loss, x).sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("transform", [weft.grad, lambda f: weft.vmap(weft.grad(f))])
def test_gradients_of_rounds_touch_what_they_add_to(transform: Callable[..., Any]) -> None:
    n = 50
    x = array(n) if transform is weft.grad else np.stack([array(n), array(n)])
    plan = weft.compile(transform(squared(triangles))).lower(x).stages.plan
    inside = [step for loop in loops(plan) for step in all_steps(loop.body)]
    assert len(loops(plan)) == 4 and not any(isinstance(step, Copy) for step in inside)
    for step in inside:
        if isinstance(step, Launch):
            extents = [axis.extent for axis in plan.kernels[step.kernel].axes]
            assert extents.count(n) == 0, step.kernel


def test_sizes_that_no_round_makes_equal() -> None:
    def added(x: Any, z: Any) -> Any:
        s = 0.0
        for i in range(1, len(x)):
            s += (x[:i] + z).sum()
        return s

    compiled = weft.compile(added, dynamic={"x": {0: "n"}})
    x = array(40)
    np.testing.assert_allclose(compiled(x, np.ones(1)), added(x, np.ones(1)))
    with pytest.raises(ValueError):
        compiled(x, np.ones(40))


def test_what_only_some_rounds_ask() -> None:
    def written(x: Any, z: Any) -> Any:
        y = x * 2
        for i in range(len(x)):
            if i == 3:
                y[:i] = z
        return y

    def added(x: Any, z: Any) -> Any:
        s = 0.0
        for i in range(len(x)):
            if i == 3:
                s += np.dot(x[:i], z)
        return s

    def halves(x: Any, z: Any) -> Any:
        s = 0.0
        for i in range(2, len(x)):
            if i % 2 == 0:
                s = s * 0.5 + x[:i].reshape(2, -1).sum(0).max() + z[0]
        return s

    z = array(3)
    for function in (written, added, halves):
        for n in (9, 2500):
            x = array(n)
            for sizes in ({}, {"x": {0: "n"}}):
                found = weft.compile(function, dynamic=sizes)(x, z)
                np.testing.assert_allclose(found, function(x, z))
