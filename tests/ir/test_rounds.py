"""Dims that go by the numbers of rounds: ranges, what is simpler in rounds, and proofs hold for all
rounds there are, which these tests try one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.ir.indices.dims import is_surely_size
from weft.ir.indices.index import Dim, maximum, minimum, positive, symbol
from weft.ir.indices.rounds import (
    counts_inside,
    is_natural_when_tried,
    range_of,
    rounds_behind,
    simplified,
)
from weft.ir.indices.walk import evaluate
from weft.ir.types import parse_dim

N, T, U = symbol("n"), symbol("t"), symbol("u")
COUNTS = [({"t": N}, "t"), ({"t": N, "u": T}, "u in t"), ({"t": N + 2, "u": N - T + 1}, "n - t"),
          ({"t": 5, "u": T + 1}, "known"), ({"t": 4, "u": minimum(T, 2)}, "clamped")]


def dims() -> st.SearchStrategy[Any]:
    """Expressions of sizes and numbers of rounds as slices have them."""
    leaves = st.one_of(st.sampled_from([N, T, U]), st.integers(-3, 3))
    return st.recursive(leaves, lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner), st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, k: a * k, inner, st.integers(-2, 3)),
        st.builds(maximum, inner, inner), st.builds(minimum, inner, inner),
        st.builds(lambda a, b: positive(a) * positive(b), inner, inner),
        st.builds(lambda a, k: a // k, inner, st.integers(1, 3))), max_leaves=5)


def rounds(counts: dict[str, Dim], n: int) -> Iterator[dict[str, int]]:
    """The numbers of all rounds, and of a loop that there is not."""
    for t in range(max(evaluate(counts["t"], {"n": n}), 0)):
        for u in range(max(evaluate(counts["u"], {"n": n, "t": t}), 0)) if "u" in counts else [0]:
            yield {"n": n, "t": t, "u": u}


@given(dims(), st.sampled_from(COUNTS))
@settings(max_examples=200, deadline=None)
def test_what_is_said_of_all_rounds_is_so_in_each(dim: Dim, loop: Any) -> None:
    counts, _ = loop
    behind = rounds_behind(dim, counts)
    least, most = range_of(dim, counts)
    simple = simplified(dim, counts)
    sure = is_surely_size(dim, tuple(behind.items()), (N,))
    tried = is_natural_when_tried(dim, counts)
    for n in range(6):
        for numbers in rounds(counts, n):
            value = evaluate(dim, numbers)
            assert evaluate(least, numbers) <= value <= evaluate(most, numbers)
            assert evaluate(simple, numbers) == value
            assert value >= 0 or not (sure or tried)


@given(dims(), st.sampled_from([each for each in COUNTS if each[1] in ("known", "clamped")]))
@settings(max_examples=100, deadline=None)
def test_rounds_of_known_loops_are_tried(dim: Dim, loop: Any) -> None:
    counts = rounds_behind(dim, loop[0])
    if "t" in counts and "n" not in str(dim):
        found = [evaluate(dim, numbers) for numbers in rounds(counts, 0)]
        assert is_natural_when_tried(dim, counts) == (min(found, default=0) >= 0)


@pytest.mark.parametrize(("text", "counts"), [
    ("t*(n - t)", {"t": "n"}), ("max(t - 1, 0)*(11 - t)", {"t": "11"}),
    ("(9 - u + max(u - 9, 0))*(u - max(u - 9, 0))", {"u": "n"}),
    ("(n - t)*(n - u)", {"t": "n", "u": "t"}), ("n*n - t*t", {"t": "n"})])
def test_products_of_sizes_are_sizes(text: str, counts: dict[str, str]) -> None:
    loop = {name: parse_dim(count) for name, count in counts.items()}
    assert is_surely_size(parse_dim(text), tuple(loop.items()), (N,))


def test_what_is_too_much_to_try() -> None:
    many = {"t": 1 << 21}
    assert not is_natural_when_tried(T, many)
    assert not is_natural_when_tried(T * T * T * T * T, {"t": 1 << 20})
    assert not is_natural_when_tried(T + N, {"t": 3})
    assert is_natural_when_tried(T - 1, {"t": 0}) and not is_natural_when_tried(T - 1, {"t": 1})


def test_ranges_are_what_is_reached_where_a_dim_only_grows_or_gets_less() -> None:
    assert range_of(T + 1, {"t": N - 1}) == (1, positive(N - 2) + 1)
    assert range_of(N - T, {"t": N}) == (N - positive(N - 1), N)
    assert range_of(T - U, {"t": 9, "u": T + 1}) == (0, 8)
    assert counts_inside({"t": N}, "u", None) == {"t": N}
    assert counts_inside({"t": N}, "u", T) == {"t": N, "u": T}
