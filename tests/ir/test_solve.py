"""Symbols from the sizes of arguments: from numbers when a step runs, from symbols before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from weft.ir.diagnose import FeedError, ShapeError
from weft.ir.indices.dims import bind_dims, plain_dims, symbols_from
from weft.ir.indices.index import Expr, plain_symbol, symbol
from weft.ir.indices.walk import evaluate
from weft.ir.types import F32, TensorType, parse_dim, parse_type

B, S = symbol("b"), symbol("s")


@pytest.mark.parametrize(("types", "shapes", "expected"), [
    (("f32[b,2*b]",), ((3, 6),), {"b": 3}),
    (("f32[2*b + 1]", "f32[b,s]"), ((9,), (4, 0)), {"b": 4, "s": 0}),
    (("f32[b*s]", "f32[s]", "f32[b + s]"), ((6,), (2,), (5,)), {"b": 3, "s": 2}),
    (("f32[(b + 1)//2]", "f32[b]"), ((3,), (5,)), {"b": 5}),
    (("f32[]",), ((),), {})])
def test_dims_are_bound(
    types: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], expected: dict[str, int]
) -> None:
    arrays = [np.zeros(shape, np.float32) for shape in shapes]
    assert bind_dims([parse_type(t) for t in types], arrays, list("abc"[:len(types)])) == expected


@pytest.mark.parametrize(("types", "shapes", "code", "message"), [
    (("f32[b,b]",), ((3, 4),), "W105", "should be 3"),
    (("f32[2*b]",), ((3,),), "W105", "fits no b"),
    (("f32[b + 4]",), ((3,),), "W105", "fits no b"),
    (("f32[b*s]",), ((6,),), "W105", "no dim follows"),
    (("f32[b//2]",), ((6,),), "W105", "no dim follows"),
    (("f32[3]",), ((4,),), "W303", "should be f32[3]"),
    (("f32[3]",), ((3, 1),), "W303", "should be f32[3]"),
    (("f64[3]",), ((3,),), "W303", "should be f64[3]")])
def test_dims_that_do_not_fit(
    types: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], code: str, message: str
) -> None:
    arrays = [np.zeros(shape, np.float32) for shape in shapes]
    with pytest.raises((ShapeError, FeedError)) as caught:
        bind_dims([parse_type(t) for t in types], arrays, ["x"] * len(types))
    assert caught.value.code == code and message in str(caught.value)


def dims() -> st.SearchStrategy[Any]:
    """Expressions of b and s; without maxima, as a size that clamps has several solutions."""
    leaves = st.one_of(st.just(B), st.just(S), st.integers(0, 4))
    return st.recursive(leaves, lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner), st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, k: a * k, inner, st.integers(1, 3)),
        st.builds(lambda a, k: a // k, inner, st.integers(1, 3))), max_leaves=4)


@given(st.lists(dims(), min_size=1, max_size=4), st.integers(0, 5), st.integers(0, 5))
@settings(max_examples=300, deadline=None)
def test_what_follows_from_symbols_follows_from_numbers(told: list[Any], b: int, s: int) -> None:
    values = {"b": b, "s": s}
    sizes = [evaluate(dim, values) for dim in told]
    assume(all(0 <= size < 100 for size in sizes))
    try:
        found = symbols_from({str(dim): dim for dim in told if isinstance(dim, Expr)})
    except ShapeError as problem:
        assert problem.code == "W105" and "cannot be told" in str(problem)
        return
    texts = {str(dim): size for dim, size in zip(told, sizes, strict=True)}
    by_symbols = {name: evaluate(dim, texts) for name, dim in found.items()}
    arrays = [np.zeros(size, np.float32) for size in sizes]
    by_numbers = bind_dims([TensorType(F32, (dim,)) for dim in told], arrays, ["x"] * len(told))
    assert by_symbols == by_numbers == {name: values[name] for name in by_symbols}


def test_symbols_in_terms_of_sizes() -> None:
    sizes = ("2*s + b", "b", "k*s")
    found = symbols_from({text: parse_dim(text) for text in sizes[:2]})
    assert found == {"b": B, "s": (symbol("2*s + b") - B) // 2}
    with pytest.raises(ShapeError, match=r"W105: the size k cannot be told from .*'s k\*s"):
        symbols_from({text: parse_dim(text) for text in sizes})


def test_plain_dims_are_taken_as_they_come() -> None:
    types = [parse_type(text) for text in ("f32[2*b,b]", "f32[b,s]", "f32[s,s,t]")]
    assert plain_dims(types, [(7, 3), (4, 5), (9,)]) == {"b": 3, "s": 5}
    names = {text: plain_symbol(parse_dim(text)) for text in ("b", "2*b", "b*s", "b + 1", "3")}
    assert {text for text, name in names.items() if name} == {"b"}
    assert plain_symbol(symbol("2*b")) == "2*b"
