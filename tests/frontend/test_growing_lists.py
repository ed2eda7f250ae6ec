"""Lists that branches and loops of the program make longer or shorter."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.rewriting.source.own_lists import own_lists

RNG = np.random.default_rng(12)


def peaks(x: Any) -> Any:
    found = []
    for i in range(1, len(x) - 1):
        if x[i - 1] < x[i] > x[i + 1]:
            found.append(i)
    return np.array(found), len(found), found


def falling(x: Any) -> Any:
    stack: list[Any] = []
    for v in x:
        while stack and stack[-1] > v:
            stack.pop()
        stack.append(v)
    return stack, stack[0], np.diff(stack)


def next_greater(x: Any) -> Any:
    out, stack = np.full(len(x), -1.0), []
    for i in range(len(x)):
        while stack and x[stack[-1]] < x[i]:
            out[stack.pop()] = x[i]
        stack.append(i)
    return out


def pairs(x: Any) -> Any:
    out = []
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            if x[i] * x[j] < -0.1:
                out.append((i, x[j]))
    total = 0.0
    for i, v in out:
        total += i * v
    return len(out), total, sum(v * 2 for _, v in out), [i + v for i, v in out]


def each_round(x: Any) -> Any:
    """A list of known length, as every round makes it longer by one."""
    out, s = [], 0.0
    for v in x:
        if v > 0:
            s += v
        out.append(s)
    return np.array(out) * np.arange(float(len(x))), out[2], out[-1], len(out)


def groups(x: Any) -> Any:
    up, down = [0.0], [0.0]
    for v in x:
        if v > 0:
            up.append(v)
        else:
            down.append(-v)
    return np.mean(up), max(down), len(up) - len(down), sorted(up), up + down, up[::-1], up[-2:]


def runs(x: Any) -> Any:
    starts = [0]
    for i in range(1, len(x)):
        if (x[i] > 0) != (x[i - 1] > 0):
            starts.append(i)
    starts.append(len(x))
    return np.diff(np.array(starts)), starts[-1]


def until(x: Any) -> Any:
    best = []
    for i, v in enumerate(x):
        if v > 1.5:
            break
        if v > 0:
            best.append(i)
    return {"best": best, "all": [x[best], (best,)]}


def window(x: Any) -> Any:
    """Taken from the front, and cut to no items."""
    queue: list[Any] = []
    for v in x:
        queue.append(v)
        if len(queue) > 3:
            queue.pop(0)
        if v < -1.5:
            queue.clear()
    return queue, sum(queue)


def items(x: Any) -> Any:
    kept = [x[0]]
    for v in x[1:]:
        if v > kept[-1]:
            kept += [v, v / 2]
        else:
            kept[-1] = kept[-1] + 0.1
            kept[0] = v
    kept.sort()
    return kept


def bound_anew(x: Any) -> Any:
    """One way begins another list."""
    run, best = [], 0.0
    for v in x:
        if v > 0:
            run.append(v)
        else:
            best = max(best, sum(run))
            run = []
    return best, len(run)


def of_both_dtypes(x: Any) -> Any:
    out = [1]
    for v in x:
        if v > 0:
            out.append(v)
    return np.array(out)


def rows(x: Any) -> Any:
    x = x[: len(x) // 2 * 2].reshape(-1, 2)
    kept = []
    for row in x:
        if row.sum() > 0:
            kept.append(row)
    return np.array(kept), len(kept)


def together(x: Any) -> Any:
    a, b = [], []
    for v in x:
        if v > -0.5:
            a.append(v)
            b.append(v * 2)
    return sum(p * q for p, q in zip(a, b)), [  # noqa: B905
        k * v for k, v in enumerate(a)]


def hull(x: Any) -> Any:
    """Andrew's monotone chain, by a function that returns its list."""
    points = np.stack([np.sort(x), np.cos(3 * np.sort(x))], axis=1)

    def half(points: Any) -> Any:
        h: list[Any] = []
        for p in points:
            while len(h) >= 2 and (h[-1][0] - h[-2][0]) * (p[1] - h[-2][1]) - (
                    h[-1][1] - h[-2][1]) * (p[0] - h[-2][0]) <= 0:
                h.pop()
            h.append(p)
        return h

    lower, upper = half(points), half(points[::-1])
    return np.array(lower[:-1] + upper[:-1])


def by_number(x: Any) -> Any:
    """Rounds by the length of another list, of which there are no more than it has room for."""
    at, gaps = [], []
    for i in range(len(x)):
        if x[i] > 0:
            at.append(i)
    for k in range(1, len(at), 2):
        gaps.append(x[at[k]] - x[at[k - 1]])
    return gaps, sum(gaps)


def never(x: Any) -> Any:
    out = []
    for v in x:
        if v > 100:
            out.append(v)
    return len(out), np.array(out).size, np.max(out) if out else -1.0


def becomes_an_array(x: Any) -> Any:
    found = []
    for i in range(1, len(x) - 1):
        if x[i] > x[i - 1]:
            found.append(i)
    found = np.array(found, dtype=int)
    near = {"places": found, "values": x[found]}
    kept = np.ones(len(found), bool)
    for k in range(len(found)):
        if x[found[k]] < 0:
            kept[k] = False
    found = found[kept]
    return found, near


def begins_again(x: Any) -> Any:
    found, other = [], {}
    for v in x:
        if v > 0:
            found.append(v)
    other["above"] = np.array(found)
    found = []
    for v in x:
        if v < 0:
            found.append(v)
    total = sum(found)
    found = total
    return found, other


FUNCTIONS = [peaks, falling, next_greater, pairs, each_round, groups, runs, until, window, items,
             bound_anew, of_both_dtypes, rows, together, hull, by_number, never, becomes_an_array,
             begins_again]


def same(a: Any, z: Any) -> None:
    """Nests of numbers, lists and arrays: of one kind, and close."""
    if isinstance(z, dict):
        assert list(a) == list(z)
        a, z = list(a.values()), list(z.values())
    if isinstance(z, (list, tuple)):
        assert type(a) is type(z)
        assert len(a) == len(z)
        for each, other in zip(a, z, strict=True):
            same(each, other)
        return
    assert np.shape(a) == np.shape(z)
    np.testing.assert_allclose(a, z, rtol=1e-12)


@pytest.mark.parametrize("size", [4, 8, 60])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_lists_have_as_many_items_as_values_say(function: Callable[[Any], Any], size: int) -> None:
    compiled = weft.compile(function)
    for _ in range(3):
        x = RNG.normal(size=size)
        same(compiled(x), function(x))


def test_of_sizes_that_are_not_known() -> None:
    for function in (peaks, falling, until, together):
        compiled = weft.compile(function, dynamic={"x": {0: "n"}})
        for size in (1, 3, 4, 17, 60):
            x = RNG.normal(size=size)
            same(compiled(x), function(x))


def test_rounds_of_a_size_that_go_down() -> None:
    def above(x: Any) -> Any:
        found = []
        for i in range(len(x) - 1, -1, -2):
            if x[i] > 0:
                found.append(x[i])
        return found

    compiled = weft.compile(above, dynamic={"x": {0: "n"}})
    for size in (0, 1, 2, 17):
        x = RNG.normal(size=size)
        same(compiled(x), above(x))


def test_gradients_of_what_was_kept() -> None:
    def loss(x: Any) -> Any:
        kept = []
        for v in x:
            if v > 0:
                kept.append(v * v)
        return sum(kept) / len(kept)

    for size in (7, 70):
        x = RNG.normal(size=size)
        value, slope = weft.compile(weft.value_and_grad(loss))(x)
        np.testing.assert_allclose(value, loss(x))
        np.testing.assert_allclose(slope, np.where(x > 0, 2 * x / np.sum(x > 0), 0))
    x = np.abs(RNG.normal(size=(3, 5)))
    np.testing.assert_allclose(weft.compile(weft.vmap(loss))(x), (x * x).mean(axis=1))


def missing(x: Any) -> Any:
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    return out[3]


def popped(x: Any) -> Any:
    out: list[Any] = []
    for v in x:
        if v > 0:
            out.append(v)
        else:
            out.pop()
    return len(out)


@pytest.mark.parametrize(("function", "x"), [
    (missing, [1.0, -1.0, 2.0, 3.0]), (popped, [1.0, -1.0, -1.0, 2.0])])
def test_items_that_are_not_there(function: Callable[[Any], Any], x: Any) -> None:
    compiled, fine = weft.compile(function), np.ones(4)
    same(compiled(fine), function(fine))
    with pytest.raises(IndexError):
        function(np.array(x))
    with pytest.raises(IndexError):
        compiled(np.array(x))


def by_another_name(x: Any) -> Any:
    a: list[Any] = []
    b = a
    for v in x:
        if v > 0:
            a.append(v)
    return len(b)


def in_a_dict(x: Any) -> Any:
    a: list[Any] = []
    d = {"a": a}
    for v in x:
        if v > 0:
            a.append(v)
    return len(d["a"])


def in_a_function(x: Any) -> Any:
    def add(to: list[Any], v: Any) -> None:
        if v > 0:
            to.append(v)

    a: list[Any] = []
    for v in x:
        add(a, v)
    return len(a)


def a_key(x: Any) -> Any:
    def add(to: dict[str, Any], v: Any) -> None:
        if v > 0:
            to["k"] = v

    d: dict[str, Any] = {}
    for v in x:
        add(d, v)
    return len(d)


def of_lists(x: Any) -> Any:
    out: list[Any] = []
    for v in x:
        if v > 0:
            row = [v, 0]
            out.append(row)
            row[1] = 1
    return out


def _pairs(x: Any) -> Any:
    out: list[Any] = []
    for i in range(len(x)):
        if x[i] > 1.7:
            return out, i
        out.append([x[i], 1.0])
    return out, -1


def _twice(x: Any) -> Any:
    out: list[Any] = []
    for v in x:
        if v > 1.7:
            return out, out
        out.append([v, 1.0])
    return out, out


def a_row_of_a_helper(x: Any) -> Any:
    out, at = _pairs(x)
    row = out[0]
    row[0] = 42.0
    return np.array(out), at


def one_list_given_twice(x: Any) -> Any:
    out, other = _twice(x)
    out[0][0] = 42.0
    return np.array(other)


def a_row_of_a_slice(x: Any) -> Any:
    out: list[Any] = []
    for v in x:
        if v > 1.7:
            break
        out.append([v, 1.0])
    row = out[0:][0]
    row[0] = 42.0
    return np.array(out)


def arrays_in_rows(x: Any) -> Any:
    out: list[Any] = []
    y = x * 1
    for v in x:
        if v > 1.7:
            break
        y += 0.5
        out.append([y, 1.0])
    return out[0][0]


def of_shapes(x: Any) -> Any:
    out: list[Any] = []
    for i in range(4):
        if x[i] > 0:
            out.append(x[: i + 1])
    return len(out)


def written(x: Any) -> Any:
    kept = []
    for row in x.reshape(-1, 2).copy():
        if row[0] > 0:
            kept.append(row)
    kept[0][0] = 9.0
    return kept[0]


@pytest.mark.parametrize(("function", "what"), [
    (by_another_name, "W102: a is a list of 1 on one way"),
    (in_a_dict, "W102: a is a list of 1 on one way"),
    (in_a_function, "W102: to is a list of 1 on one way"),
    (a_key, "W102: to is a dict of 1 on one way"),
    (of_lists, "W102: out is a list of 1 on one way"),
    (a_row_of_a_helper, "W123: a list of lists"),
    (one_list_given_twice, r"W102: the result\[0\]"),
    (a_row_of_a_slice, "W102: out is a list of 0 on one way"),
    (arrays_in_rows, "W102: out is a list of 0 on one way"),
    (of_shapes, "W102: an item that is not like the others"),
    (written, "W203: "),
])
def test_what_others_have_is_not_changed_behind_them(
    function: Callable[[Any], Any], what: str
) -> None:
    with pytest.raises(weft.Error, match=what):
        weft.compile(function)(np.array([1.0, -1.0, 2.0, 1.5, -0.5, 0.25]))


def test_a_list_that_grows_within_a_way_that_is_wanted_shorter() -> None:
    """The inner branch leaves more items than the outer one had found room for."""
    def function(x: Any) -> Any:
        a, s = [1.5], 0.0
        for v in x:
            if v < len(a):
                a += [v, s]
                if v > 0 and a:
                    s += a.pop()
                elif a:
                    a.pop(0)
            elif len(a) > 4:
                a.clear()
            if a:
                s += a[-1]
        return a, s

    compiled = weft.compile(function)
    for _ in range(4):
        x = RNG.normal(size=20)
        same(compiled(x), function(x))


def test_rounds_that_add_and_take_away() -> None:
    """There is room for what is there in the middle of a round; another list is no longer one."""
    def balanced(x: Any) -> Any:
        a = [0.5]
        for v in x:
            a.append(v)
            a.append(v * 2)
            if v > 0:
                a.append(1.0)
                a.pop()
            a.pop()
            a.pop()
            if v > 1:
                a[0] = v
        return a, len(a)

    def cleared(x: Any) -> Any:
        a: list[Any] = []
        for v in x:
            if v > 0.5:
                a.clear()
            a.append(v)
            a.append(1.0)
        return a

    for function in (balanced, cleared):
        for size in (5, 60):
            x = RNG.normal(size=size)
            same(weft.compile(function)(x), function(x))


def test_which_lists_have_one_name() -> None:
    import ast

    text = """
def f(x, given):
    a, b = [], [0] * 3
    c = []
    d = c
    e = []
    g = []
    for h in g:
        g.append(h)
    i = []
    k = []
    m, n = [], []
    later = zip(m, x)
    for o, p in enumerate(n):
        n.append(p)
    q = []
    r = [s for s, t in enumerate(zip(q, x))]
    for v in x:
        m.append(v)
        q.append(v)
        a.append(v)
        b.append(v)
        c.append(v)
        e.append(v)
        given.append(v)
        i.append(lambda: k)
        k.append(v)
    use(e)
    return np.array(a), len(b), i
"""
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert own_lists(function).at(function.body[-1]) == {"a", "b", "i", "q"}


def stacked(x: Any) -> Any:
    rows, firsts, blocks = [], [], []
    for i in range(len(x)):
        if x[i, 0] > 0:
            rows.append(x[i] * 2)
            firsts.append(x[i, 0])
            blocks.append(x[:2] * x[i, 0])
    return (np.stack(rows), np.vstack(rows), np.concatenate(rows), np.hstack(rows),
            np.stack(firsts), np.hstack(firsts), np.vstack(firsts), np.stack(rows).mean(axis=0),
            np.stack(blocks), np.vstack(blocks), np.concatenate(blocks, axis=0).sum())


@pytest.mark.parametrize("size", [2, 7])
def test_items_put_together(size: int) -> None:
    x = RNG.normal(size=(size, 3))
    x[0, 0] = 1
    same(weft.compile(stacked)(x), stacked(x))


def made_an_array(x: Any) -> Any:
    """The name is bound to an array of the list."""
    found, sizes = [], []
    for v in x:
        if v > 0:
            found.append(v)
            sizes.append(v * v)
    found, sizes = np.array(found), np.array(sizes)
    return found * 2 - sizes, found.mean(), found.shape[0], sizes[1:]


def at_thresholds(x: Any) -> Any:
    shares = []
    for t in np.unique(x):
        shares.append(np.mean(x >= t))
    shares = np.array(shares)
    return shares, np.sum(np.diff(shares) * shares[1:])


@pytest.mark.parametrize("function", [made_an_array, at_thresholds])
def test_a_name_that_is_bound_to_the_array_of_a_list(function: Callable[[Any], Any]) -> None:
    for size in (2, 9, 40):
        x = np.abs(RNG.normal(size=size)) - 0.1
        x[0] = 0.5
        for a, b in zip(weft.compile(function)(x), function(x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, strict=True)


def runs_of_equal(x: Any) -> Any:
    x = np.round(x)
    out = []
    last, count = x[0], 1
    for v in x[1:]:
        if v == last:
            count += 1
        else:
            out.append((last, count))
            last, count = v, 1
    out.append((last, count))
    return out, max(count for _, count in out)


def above(x: Any) -> Any:
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            out.append((i, x[i], (x[i] * x[:2], 2.5)))
    return out


def from_a_function(x: Any) -> Any:
    found = above(x)
    total = 0.0
    for i, v, _ in found:
        total += i * v
    return {"found": found}, len(found), total


@pytest.mark.parametrize("function", [runs_of_equal, above, from_a_function])
def test_lists_of_tuples_are_returned(function: Callable[[Any], Any]) -> None:
    for size in (2, 7, 40):
        x = RNG.normal(size=size)
        found, wanted = weft.compile(function)(x), function(x)
        assert weft.tree.structure(found) == weft.tree.structure(wanted)
        for a, b in zip(*map(weft.tree.leaves, (found, wanted)), strict=True):
            assert type(a) is type(b)
            np.testing.assert_allclose(a, b, rtol=1e-12, strict=True)


def test_a_list_that_a_function_has_given_away_is_not_changed() -> None:
    def changed(x: Any) -> Any:
        found = above(x)
        found.append((1, x[0], (x[:2], 1.0)))
        return found

    with pytest.raises(weft.Error, match=r"W123: .* asked to \.append"):
        weft.compile(changed)(RNG.normal(size=5))


def longest_rising(x: Any) -> Any:
    tails = []
    for v in x:
        at = bisect.bisect_left(tails, v)
        if at == len(tails):
            tails.append(v)
        else:
            tails[at] = v
    return len(tails), tails


def places_in_order(x: Any) -> Any:
    x = np.sort(x)
    steps = [-1.0, 0.5, 0.5, 2.0]
    return (bisect.bisect_left(x, 0.2), bisect.bisect_right(x, x[0]), bisect.bisect(steps, x[-1]),
            bisect.bisect_left(steps, 0.5))


@pytest.mark.parametrize("function", [longest_rising, places_in_order])
def test_bisection(function: Callable[[Any], Any]) -> None:
    for size in (1, 6, 30):
        x = RNG.normal(size=size)
        same(weft.compile(function)(x), function(x))


def parts_of_tuples(x: Any) -> Any:
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            out.append((i, x[i]))
    k, total = np.argmax(x), 0.0
    for i, v in out[1:]:
        total += i * v
    return (out[::-1], out[1:], out[:-1], out[:k], out[k:], out[-2:], out[2:1], out[:],
            len(out[1:]), total)


def path_backwards(x: Any) -> Any:
    """A path through a table, from its end."""
    i, j = len(x) - 1, len(x) - 1
    path = [(i, j)]
    while i > 0 or j > 0:
        if j == 0 or (i > 0 and x[i] * j < x[j] * i):
            i -= 1
        else:
            j -= 1
        path.append((i, j))
    return path[::-1]


@pytest.mark.parametrize("function", [parts_of_tuples, path_backwards])
def test_parts_of_lists_of_tuples(function: Callable[[Any], Any]) -> None:
    for x in (RNG.normal(size=9), -np.ones(3), np.ones(1)):
        assert weft.compile(function)(x) == function(x)


def pairs_of_pairs(x: Any) -> Any:
    found = []
    for i in range(len(x)):
        if x[i] > 0:
            found.append(((x[i], i), (0.5, x[i] * 2)))
    return np.array(found)


def single_ones(x: Any) -> Any:
    found = []
    for i in range(len(x)):
        if x[i] > 0:
            found.append((x[i],))
    return np.array(found), np.sum(found)


@pytest.mark.parametrize("function", (pairs_of_pairs, single_ones))
def test_arrays_of_nested_items(function: Callable[[Any], Any]) -> None:
    """Rows of what NumPy makes of an item, and not of its leaves."""
    x = np.random.default_rng(0).normal(size=20)
    found, right = weft.compile(function)(x), function(x)
    for one, want in zip(*(each if isinstance(each, tuple) else (each,) for each in (
            found, right)), strict=True):
        assert np.shape(one) == np.shape(want)
        np.testing.assert_array_equal(one, want)


def the_very_array(x: Any) -> Any:
    found, y = [], x * 1.0
    for _ in range(20):
        y += 0.1
        if y[0] > 2:
            found.append(y)
    return np.array(found)


def a_copy_of_it(x: Any) -> Any:
    found, y = [], x * 1.0
    for _ in range(20):
        y += 0.1
        if y[0] > 2:
            found.append((y.copy(), 1.0))
    return found


def another_each_time(x: Any) -> Any:
    found, y = [], x * 1.0
    for k in range(20):
        y = y + 0.1
        y[1] = k
        if y[0] > 2:
            found.append(y)
    return np.array(found)


def known_while_tracing(x: Any) -> Any:
    y = np.zeros(2)
    found = [(k, y) for k in range(3) if x[k] > 1]
    y[0] = 3
    return found


def shortened(x: Any) -> Any:
    found, y = [np.zeros(3), np.ones(3)], x * 1.0
    for i in range(3):
        if x[i] > 1:
            found.pop()
        else:
            found.append(y)
        if len(found) < 1:
            found.append(x * 2)
    y[0] = 100
    return np.array(found)


def test_arrays_that_are_items_are_written_to() -> None:
    """The list has copies: who writes to the array itself may not read the list."""
    x = np.array([1.0, 2.0, 3.0])
    for function in (a_copy_of_it, another_each_time):
        for found, right in zip(weft.compile(function)(x), function(x), strict=True):
            np.testing.assert_array_equal(found[0], right[0])
    for function in (the_very_array, known_while_tracing, shortened):
        with pytest.raises(weft.Error, match="W203"):
            weft.compile(function)(x)


def test_arrays_that_are_items_and_outlive_the_trace() -> None:
    """They can be written to again."""
    seen: list[Any] = []

    @weft.compile
    def function(x: Any) -> Any:
        y, found = np.zeros(2), []
        seen.append(y)
        for k in range(3):
            if x[k] > 1:
                found.append(y)
        return np.array(found)

    assert function(np.array([3.0, 1.0, 2.0])).shape == (2, 2)
    for array in seen:
        assert type(array) is np.ndarray
        array[0] = 1.0
