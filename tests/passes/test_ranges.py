"""Ranges of integers: what needs no check, whatever the program is; proven by the interpreter,
which asks each index that is said to be inside, and by random loops against Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import without_notes
from with_source import run

import weft
from weft.ir.graph import Graph, all_nodes, control_of
from weft.ir.interp.graph import run_graph
from weft.ir.ops.control.region import Looping
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph
from weft.ir.verify.verifier import verify_graph

X = np.arange(42.0).reshape(6, 7)
I = np.array([3, 0, 5, 2])  # noqa: E741


def marked(function: Callable[..., Any], *args: Any) -> Graph:
    graph = weft.compile(function).lower(*args).stages.after("ranges").graph
    verify_graph(graph)
    assert print_graph(parse_graph(print_graph(graph))) == print_graph(graph)
    return graph


def words(graph: Graph) -> list[str]:
    """What is said of the indices of reads and stores, sorted."""
    return sorted(word for node in all_nodes(graph) if "inside" in node.op.facts
                  for word in node.attrs.get("inside", ("",) * len(node.attrs["axes"])))


def kept(graph: Graph) -> list[str]:
    """The sums that are checked for numbers beyond 64 bits, in order."""
    return [node.attrs["of"] for node in all_nodes(graph) if node.op.name == "unwrapped"]


def triangle(x: Any, n: int) -> Any:
    """A loop whose end another loop tells."""
    total = np.float64(0)
    for i in range(min(n, 6)):
        for j in range(i):
            total += x[i, j] - x[j, i]
    return total


def guarded(x: Any, k: int) -> Any:
    return x[k, 0] if 0 <= k < 6 else x[0, 0]


def half_guarded(x: Any, k: int) -> Any:
    return x[k, 0] if k >= 1 else x[0, 0]


def clipped(x: Any, i: Any) -> Any:
    return x[np.clip(i, 0, 5), 0] + x[np.minimum(np.maximum(i, 1), 5), 1]


def wrapped(x: Any, i: Any) -> Any:
    return x[i % 6, 0]


def counted(x: Any, n: int) -> Any:
    total = np.float64(0)
    k = 0
    while k < n:
        total = total + x[k, 0]
        k += 1
    return total


CASES: tuple[tuple[Callable[..., Any], Any, list[str]], ...] = (
    (triangle, 3, ["all"] * 4),
    (guarded, 3, ["all"]), (half_guarded, 3, ["low"]), (clipped, I, ["all"] * 4),
    (wrapped, I, ["all"] * 2), (counted, 4, ["low"]))


@pytest.mark.parametrize(("function", "arg", "found"), CASES)
def test_what_is_known_of_indices(
    function: Callable[..., Any], arg: Any, found: list[str]
) -> None:
    graph = marked(function, X, arg)
    assert words(graph) == found, print_graph(graph)
    want = function(X, arg)
    np.testing.assert_array_equal(run_graph(graph, [X, np.asarray(arg)])[0], want)
    np.testing.assert_array_equal(weft.compile(function)(X, arg), want)


@pytest.mark.parametrize("k", [-7, -6, -1, 6, 2**63 - 1, -2**63])
def test_what_a_branch_leaves_out_is_not_read(k: int) -> None:
    assert weft.compile(guarded)(X, k) == X[0, 0]
    if k < 6:
        assert weft.compile(half_guarded)(X, k) == X[0, 0]
    else:
        with pytest.raises(weft.Error, match="W124"):
            weft.compile(half_guarded)(X, k)


def test_checks_of_sums_go_where_they_hold() -> None:
    def steps(x: Any, n: int, k: int) -> Any:
        total = np.float64(0)
        for t in range(n):
            total += x[t + 1, 0] * (t * 2 - 1)
        return total * (k * 2 - 1)

    assert kept(marked(steps, X, 3, 4)) == ["mul", "sub"]  # k * 2, and what then is k * 2 - 1?


def test_sums_that_leave_their_dtype_are_not_trusted() -> None:
    """What a failed check would have told is not taken for true before it is told."""
    def far(x: Any, k: int) -> Any:
        at = k + 2**62
        return x[at - 2**62, 0] if k >= 0 else x[0, 0]

    f = weft.compile(far)
    assert f(X, 3) == X[3, 0]
    with pytest.raises(weft.Error, match=r"W131|W124"):
        f(X, 2**62)


def test_what_is_known_and_not_there_is_an_error() -> None:
    def full(k: int) -> Any:
        s = 0
        for i in range(200):
            s += np.full(5, i)[k]
        return s

    def repeated(k: int, y: Any, n: int) -> Any:
        for i in range(150):
            r = np.zeros(4, int) + i
            if k < n:
                y[i] = r[k]
        return y

    assert weft.compile(full)(4) == full(4)
    for k in (5, -6):
        with pytest.raises(IndexError, match="W124"):
            weft.compile(full)(k)
    np.testing.assert_array_equal(
        weft.compile(repeated)(3, np.zeros(150), 9), repeated(3, np.zeros(150), 9))
    with pytest.raises(IndexError, match="W124"):
        weft.compile(repeated)(4, np.zeros(150), 9)


def above(x: Any) -> Any:
    count = longest = run = 0
    for i in range(x.size):
        if x[i] > 0:
            count += 1
        run = run + 1 if x[i] < 3 else 0
        longest = max(longest, run)
    return count * 100 + longest


def fibonacci(n: int) -> Any:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, (a + b) % 1000000007
    return a


def lengths(n: int) -> Any:
    """Rounds of loops of which nobody knows how many there are."""
    total = 0
    for k in range(1, n):
        while k > 1:
            k //= 2
            total += 3
    return total


def powers(n: int) -> Any:
    k = 1
    for _ in range(n):
        k = k + k
    return k


def squares(x: Any) -> Any:
    total = 0
    for i in range(x.size):
        total += i * i
    return total


@pytest.mark.parametrize(("function", "args", "left"), [
    (above, (X.ravel() % 5 - 1,), []), (fibonacci, (100,), []), (lengths, (40,), []),
    (powers, (40,), ["add"]), (squares, (np.zeros(300),), [])])
def test_what_rounds_add_is_known(
    function: Callable[..., Any], args: tuple[Any, ...], left: list[str]
) -> None:
    assert kept(marked(function, *args)) == left
    assert weft.compile(function)(*args) == function(*args)


def test_a_sum_that_rounds_make_too_large_fails() -> None:
    f = weft.compile(powers)
    assert f(62) == 2**62
    with pytest.raises(OverflowError, match="W131"):
        f(63)


ROUNDS = (
    "a = N(a + 1)", "a = N(b - a)", "b = N(b - 7) if a > b else b", "a = N(a + 5) if i % 3 else 0",
    "b = N(a * 3) & 1023", "a, b = b, N(a + b) % 1009", "b = min(b, N(a - 2))",
    "a = N(a + (i > 4) * 2)", "a = max(N(a - 3), 0)", "a = N(a + b) // 2 if a < b else b",
    "while a < b:\n            b = N(a + b) // 2\n            a = N(a + 1)",
    "for _ in range(3): b = N(b + 2)",
    "k = i\n        while k > 1:\n            k = k // 2\n            a = N(a + 2)",
    "for j in range(i):\n            if j > 2:\n                b = N(b - 1)")
FIRST = (0, 7, 2**63 - 12, -2**63 + 30)


def _held(value: int) -> int:
    if not -2**63 <= value < 2**63:
        raise OverflowError
    return value


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(ROUNDS), min_size=1, max_size=3), st.sampled_from(FIRST),
       st.sampled_from(FIRST), st.sampled_from(["n", "12"]), st.integers(0, 14), st.booleans())
def test_random_sums(
    lines: list[str], a: int, b: int, count: str, n: int, known: bool
) -> None:
    """Integers that go round: as Python's, and an error as soon as one does not fit. All of them
    are needed: what is not, need not be computed."""
    first = [f"    a = a * 0 + {a}"] if known else []
    source = "\n".join(["def f(n, a, b):", *first, "    s = 0", f"    for i in range({count}):", *[
        f"        {line}\n        s = s ^ a ^ b" for line in lines], "    return a, b, s"])
    args = n, 0 if known else a, b
    try:
        want = run(source, {"N": _held})["f"](*args)
    except OverflowError:
        want = None
    f = run(source.replace("N(", "("), {})["f"]
    graph = marked(f, *args)
    compiled = weft.compile(f, on_recompile="silent")
    if want is None:
        with pytest.raises(OverflowError, match="W131"):
            compiled(*args)
        with pytest.raises(OverflowError, match="W131"):
            run_graph(graph, [np.asarray(x) for x in args])
    else:
        assert tuple(map(int, compiled(*args))) == want
        assert tuple(map(int, run_graph(graph, [np.asarray(x) for x in args]))) == want


OFFSETS = st.integers(-2, 2)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 7), st.integers(0, 7), st.lists(st.tuples(
    st.sampled_from(["i", "j", "i - j", "j - i", "i + j", "n - i", "n - 1 - j", "2 * i"]), OFFSETS,
    st.sampled_from(["", "i > j", "j >= 1 and i <= 3", "i != j", "n - j >= 2"])),
    min_size=1, max_size=3), st.sampled_from(["i", "i + 1", "n - i", "max(i - 2, n)", "5"]))
def test_random_loops(n: int, m: int, reads: list[tuple[str, int, str]], end: str) -> None:
    """Loops in loops over places that they tell: as Python, or an error where Python has one."""
    lines = [f"            {test and f'if {test}: '}total += x[{place} + {offset}] * {at + 1}"
             for at, (place, offset, test) in enumerate(reads)]
    source = "\n".join([
        "def f(x, n, m):", "    total = 0.0", "    for i in range(m):",
        f"        for j in range({end}):", *lines, "    return total"])
    space = run(source, {})
    x = np.arange(1.0, 8.0)
    try:
        want = space["f"](x, n, m)
    except IndexError:
        want = None
    args = x, np.int64(n), np.int64(m)
    graph = marked(space["f"], *args)
    compiled = weft.compile(space["f"], on_recompile="silent")
    if want is None:
        with pytest.raises(IndexError):
            run_graph(graph, args)
        with pytest.raises(IndexError, match="W124"):
            compiled(*args)
    else:
        np.testing.assert_array_equal(run_graph(graph, args)[0], want)
        np.testing.assert_array_equal(compiled(*args), want)


def checksum(data: Any) -> Any:
    """Numbers of Python that meet bytes: no more than one bit is left of them."""
    crc = 0xFFFF
    for b in data:
        for _ in range(8):
            crc = (crc >> 1) ^ 0x8408 if (crc & 1) ^ (b & 1) else crc >> 1
            b >>= 1
    return ~crc & 0xFFFF


def bits(x: Any, k: int) -> Any:
    at = (k & 6) | (k & 1) ^ 2
    return x[at >> 1, at & 3] + x[-(k & -2) & 5, (k & 1) | 2]


def test_bits_are_bounded() -> None:
    data = np.random.default_rng(0).integers(0, 256, 200, np.uint8)
    graph = marked(checksum, data)
    assert not any(node.op.check for node in all_nodes(graph))
    assert weft.compile(checksum)(data) == checksum(data)
    assert words(marked(bits, X, 3)) == ["all"] * 4
    f = weft.compile(bits)
    for k in range(-9, 10):
        assert f(X, k) == bits(X, k)


def test_what_stays_within_its_bounds() -> None:
    """Halves of an interval: no index is out of range, and no sum of two of them."""
    def places(x: Any, keys: Any) -> Any:
        found = np.zeros(keys.size, np.int64)
        for k in range(keys.size):
            low, high = 0, x.size
            while low < high:
                middle = (low + high) // 2
                if x[middle] < keys[k]:
                    low = middle + 1
                else:
                    high = middle
            found[k] = low
        return found

    x, keys = np.sort(np.random.default_rng(0).random(500)), np.linspace(-1, 2, 200)
    graph = marked(places, x, keys)
    assert not any(node.op.check for node in all_nodes(graph))
    assert set(words(graph)) == {"all"}
    np.testing.assert_array_equal(weft.compile(places)(x, keys), np.searchsorted(x, keys))


def test_what_holds_is_not_asked() -> None:
    """A divisor that is never zero; signs that are known."""
    def primes(n: int) -> int:
        count = 0
        for k in range(2, n):
            prime, d = True, 2
            while d * d <= k:
                if k % d == 0:
                    prime = False
                    break
                d += 1
            if prime:
                count += 1
        return count

    graph = marked(primes, 100)
    assert kept(graph) == ["mul"]
    assert not any(node.op.name == "checked" for node in all_nodes(graph))
    assert all(node.results[0].dtype.name == "u64" for node in all_nodes(graph)
               if node.op.name == "mod")
    assert weft.compile(primes)(100) == primes(100)


def test_what_both_of_two_say_is_known() -> None:
    """``a and b``, of which b is asked where a holds; an or that is false."""
    def inserted(x: Any) -> Any:
        x = x.copy()
        for i in range(1, len(x)):
            key, j = x[i], i - 1
            while j >= 0 and x[j] > key:
                x[j + 1] = x[j]
                j -= 1
            x[j + 1] = key
        return x

    def before(x: Any, k: int) -> Any:
        total = 0.0
        for i in range(k):
            if i >= 30 or x[i] < 0:
                continue
            total += x[i] * x[29 - i]
        return total

    x = np.random.default_rng(0).normal(size=30)
    graph = marked(inserted, x)
    loops = [loop for node in all_nodes(graph) if isinstance(loop := control_of(node), Looping)
             and loop.test is not None]
    assert [words(loop.body) for loop in loops] == [["all"] * len(words(loops[0].body))]
    np.testing.assert_array_equal(weft.compile(inserted)(x), np.sort(x))
    assert set(words(marked(before, x, 40))) == {"all"}
    for k in (0, 1, 30, 90):
        assert weft.compile(before)(x, k) == before(x, k)


def test_products_are_bounded() -> None:
    def squares(x: Any) -> Any:
        total = 0
        for k in range(1, 1000):
            total += x[k * (k - 1) % 30] * (k * k)
        return total

    x = np.arange(30.0)
    graph = marked(squares, x)
    assert not any(node.op.name == "unwrapped" for node in all_nodes(graph))
    assert weft.compile(squares)(x) == squares(x)

    def bits(x: Any) -> Any:
        found = 0
        for k in range(1000):
            found ^= (1 << (k & 31)) * 3 + (k >> (k & 3))
        return found * x[0]

    graph = marked(bits, x)
    assert not any(node.op.name == "unwrapped" for node in all_nodes(graph))
    assert weft.compile(bits)(x) == bits(x)

    def product(a: int, b: int) -> int:
        return a * b

    assert any(node.op.name == "unwrapped" for node in all_nodes(marked(product, 3, 4)))
    with pytest.raises(weft.Error, match="W131"):
        weft.compile(product)(2**40, 2**40)


def test_a_loop_inside_of_rounds_has_one() -> None:
    """Where its rounds are counted by those around, these are not the first."""
    def triangle(x: Any) -> Any:
        total = 0.0
        for i in range(60):
            for j in range(i):
                if i >= 1 and i + j > 0:
                    total = total * 0.5 + x[i - 1, j]
        return total

    x = np.random.default_rng(0).normal(size=(60, 60))
    graph = marked(triangle, x)
    assert not any(node.op.name in ("cond", "ge", "gt") for node in all_nodes(graph))
    assert weft.compile(triangle)(x) == triangle(x)


@pytest.mark.parametrize("a", (0, 1, -1, 3, 2**31, 2**62, -2**62, 2**62 - 1, -2**63, 2**63 - 1))
def test_shifts_that_64_bits_hold(a: int) -> None:
    shifted = weft.compile(lambda a, b: a << b)
    for b in (0, 1, 2, 31, 32, 61, 62, 63, 64, 200):
        if -2**63 <= a << b < 2**63:
            assert shifted(a, b) == a << b
        else:
            with pytest.raises(weft.Error, match="W131"):
                shifted(a, b)


def test_a_shift_that_is_an_index_is_within_bounds() -> None:
    def taken(x: Any, z: Any) -> Any:
        total = 0.0
        for k in range(1000):
            total += z[(x[k] & 3) << 2]
        return total

    x, z = np.arange(1000), np.arange(13.0)
    lowered = weft.compile(taken).lower(x, z)
    assert not any("check" in without_notes(lowered.as_text(stage)) for stage in ("plan", "kernel"))
    assert weft.compile(taken)(x, z) == taken(x, z)
    assert "check" in without_notes(weft.compile(taken).lower(x, z[:12]).as_text("kernel"))
