"""Index expressions: simplification never changes a value, and the text is exact."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.ir.indices.affine import coefficient
from weft.ir.indices.index import (
    Dim,
    Expr,
    Symbol,
    bounds,
    ceil_div,
    divide,
    product,
    row_major,
    symbol,
    symbols_of,
    terms_of,
)
from weft.ir.indices.walk import evaluate, fold, substitute, with_sizes
from weft.ir.ops.places.view import unravel
from weft.ir.types import parse_dim

# Axes know their sizes, dims are at least 1, kernel values are any integers.
SIZES: Mapping[str, Dim] = {"i": 4, "j": 8, "r": 6, "q": symbol("b")}
DIMS = ("b", "s.1")
VALUES = ("%3", "%12")

Env = Mapping[str, int]


@dataclass(frozen=True)
class Case:
    """An expression, and how plain Python computes it."""

    dim: Dim
    value: Callable[[Env], int]

    def __repr__(self) -> str:
        return f"Case({self.dim})"


def leaf(name: str) -> Case:
    return Case(symbol(name, SIZES.get(name)), lambda env: env[name])


def _sum(a: Case, b: Case) -> Case:
    return Case(a.dim + b.dim, lambda env: a.value(env) + b.value(env))


def _difference(a: Case, b: Case) -> Case:
    return Case(a.dim - b.dim, lambda env: a.value(env) - b.value(env))


def _product(a: Case, b: Case) -> Case:
    return Case(a.dim * b.dim, lambda env: a.value(env) * b.value(env))


def _quotient(a: Case, b: Case) -> Case:
    return Case(a.dim // b.dim, lambda env: a.value(env) // b.value(env))


def _remainder(a: Case, b: Case) -> Case:
    return Case(a.dim % b.dim, lambda env: a.value(env) % b.value(env))


leaves = st.one_of(
    st.integers(-9, 9).map(lambda n: Case(n, lambda env: n)),
    st.sampled_from((*SIZES, *DIMS, *VALUES)).map(leaf),
)
# Divisors are sizes: positive ints, dims, and products of both.
divisors = st.one_of(
    st.integers(1, 16).map(lambda n: Case(n, lambda env: n)),
    st.sampled_from(DIMS).map(leaf),
    st.tuples(st.integers(1, 8), st.sampled_from(DIMS)).map(
        lambda pair: _product(Case(pair[0], lambda env: pair[0]), leaf(pair[1]))),
)
cases = st.recursive(leaves, lambda inner: st.one_of(
    st.builds(_sum, inner, inner), st.builds(_difference, inner, inner),
    st.builds(_product, inner, inner), st.builds(_quotient, inner, divisors),
    st.builds(_remainder, inner, divisors)), max_leaves=8)


@st.composite
def environments(draw: st.DrawFn) -> Env:
    """A value for each symbol, within its size."""
    env = {name: draw(st.integers(1, 12)) for name in DIMS}
    env.update({name: draw(st.integers(-20, 20)) for name in VALUES})
    for name, size in SIZES.items():
        env[name] = draw(st.integers(0, evaluate(size, env) - 1))
    return env


@given(cases, environments())
def test_simplification_keeps_the_value(case: Case, env: Env) -> None:
    assert evaluate(case.dim, env) == case.value(env)


@given(cases, environments())
def test_fold_computes_the_value(case: Case, env: Env) -> None:
    signs = {"+": int.__add__, "*": int.__mul__, "//": int.__floordiv__, "%": int.__mod__}
    result = fold(case.dim, lambda n: n, lambda leaf: env[leaf.name],
                  lambda sign, a, b: signs[sign](a, b))  # type: ignore[arg-type]
    assert result == case.value(env)


@given(cases, environments())
def test_bounds_hold(case: Case, env: Env) -> None:
    low, high = bounds(case.dim)
    value = case.value(env)
    assert low is None or low <= value
    assert high is None or value <= high


TRICKY = (
    "(2*(b//3))//5", "(b//3)//2", "(2*(i//3))//5", "(i//3)//2", "(2*(j//3)) mod 5",
    "(i - 5)//b", "(i - 5) mod b", "(j*b + i)//b", "(8*i + j)//8", "(8*i + j) mod 8",
    "(8*i - j)//8", "(6*i + j) mod 6", "(%3 + 8)//8",
    "((j//2)*2 + j mod 2)//4", "4*((j//2) mod 2) + 8*(j//4)", "(b*b)//b", "(2*b*i + 3)//(2*b)",
    "(3*b)//(2*b)", "(-1*j)//4", "(j - 8) mod 4", "(q + b*i) mod b", "(q - b)//b", "(i*j)//3")


@pytest.mark.parametrize("text", TRICKY)
def test_tricky_expressions(text: str) -> None:
    """Over all small values: the value, the bounds, and the text again."""
    dim = with_sizes(parse_dim(text), SIZES)
    # Sizes take part only when expressions are combined, so combine again.
    sized = substitute(dim, {name: symbol(name, size) for name, size in SIZES.items()})
    code = compile(text.replace("mod", "%").replace("%3", "v"), text, "eval")
    for b, i, j, v in itertools.product((1, 2, 5, 23), range(4), range(8), (-9, 0, 7)):
        for q in {0, b // 2, b - 1}:
            env = {"b": b, "i": i, "j": j, "q": q, "%3": v}
            value = eval(code, {"b": b, "i": i, "j": j, "q": q, "v": v})
            for form in (dim, sized):
                low, high = bounds(form)
                assert evaluate(form, env) == value
                assert (low is None or low <= value) and (high is None or value <= high)
    assert with_sizes(parse_dim(str(sized)), SIZES) == sized


@given(cases)
def test_text_is_exact(case: Case) -> None:
    parsed = with_sizes(parse_dim(str(case.dim)), SIZES)
    assert parsed == case.dim
    assert str(parsed) == str(case.dim)


@given(cases, divisors, environments())
def test_divide_is_divmod(case: Case, divisor: Case, env: Env) -> None:
    quotient, remainder = divide(case.dim, divisor.dim)
    expected = divmod(case.value(env), divisor.value(env))
    assert (evaluate(quotient, env), evaluate(remainder, env)) == expected
    assert evaluate(quotient * divisor.dim + remainder, env) == case.value(env)


@given(cases, cases, st.sampled_from((*VALUES, *DIMS)), environments())
def test_substitution_is_evaluation_in_two_steps(
    case: Case, other: Case, name: str, env: Env
) -> None:
    if name in DIMS and other.value(env) < 1:
        return  # a size
    replaced = substitute(case.dim, {name: other.dim})
    inner = {**env, name: other.value(env)}
    if SIZES["q"] == symbol(name) and env["q"] >= inner[name]:
        return
    assert evaluate(replaced, env) == case.value(inner)


@given(cases, st.sampled_from((*SIZES, *DIMS, *VALUES)), environments())
def test_coefficient_splits_affine_expressions(case: Case, name: str, env: Env) -> None:
    split = coefficient(case.dim, name)
    if split is not None:
        slope, rest = split
        assert name not in symbols_of(slope) | symbols_of(rest)
        assert evaluate(slope * symbol(name) + rest, env) == case.value(env)


@given(st.lists(st.one_of(st.integers(1, 5), st.sampled_from(DIMS).map(symbol)), max_size=4),
       st.data())
def test_unravel_inverts_row_major(shape: list[Dim], data: st.DataObject) -> None:
    """Symbolically, at once: the axes come back; and their offset is that of NumPy."""
    axes = tuple(symbol(f"a{at}", extent) for at, extent in enumerate(shape))
    back = unravel(row_major(axes, shape), tuple(shape))
    env = {name: data.draw(st.integers(1, 5), label=name) for name in DIMS}
    sizes = [evaluate(extent, env) for extent in shape]
    env |= {f"a{at}": data.draw(st.integers(0, size - 1)) for at, size in enumerate(sizes)}
    assert [evaluate(index, env) for index in back] == [env[f"a{at}"] for at in range(len(shape))]
    offset = 0
    for at, size in enumerate(sizes):
        offset = offset * size + env[f"a{at}"]
    assert evaluate(row_major(axes, shape), env) == offset


def test_static_reshapes_cancel() -> None:
    i, j = symbol("i", 4), symbol("j", 8)
    flat = row_major((i, j), (4, 8))
    assert unravel(flat, (4, 8)) == (i, j)
    k = symbol("k", 32)
    assert row_major(unravel(k, (4, 8)), (4, 8)) == k
    assert row_major(unravel(k, (2, 4, 4)), (2, 4, 4)) == k
    assert unravel(flat, (2, 2, 8)) == (i // 2, i % 2, j)


def test_symbolic_reshapes_cancel() -> None:
    b = symbol("b")
    i, j = symbol("i", b), symbol("j", 8)
    assert unravel(row_major((i, j), (b, 8)), (b, 8)) == (i, j)
    k = symbol("k", 8 * b)
    assert row_major(unravel(k, (b, 8)), (b, 8)) == k
    assert unravel(row_major((j, i), (8, b)), (8, b)) == (j, i)


@given(st.integers(0, 1000), st.integers(1, 64))
def test_ceil_div(extent: int, block: int) -> None:
    assert ceil_div(extent, block) == -(-extent // block)
    assert evaluate(ceil_div(symbol("b"), block), {"b": extent}) == -(-extent // block)


def test_equal_expressions_are_equal_objects() -> None:
    b, s = symbol("b"), symbol("s")
    assert (b + s) * 2 == 2 * s + 2 * b
    assert hash(b * s + 1) == hash(1 + s * b)
    assert b - b == 0 and isinstance(b - b, int)
    assert (b * 6) // 3 == 2 * b
    assert product([b, 3, s]) == 3 * b * s
    assert terms_of(0) == ()


def test_evaluate_names_the_missing_symbol() -> None:
    with pytest.raises(KeyError, match="s"):
        evaluate(symbol("b") + symbol("s"), {"b": 3})


def test_with_sizes_keeps_the_form() -> None:
    plain = parse_dim("(8*i + j)//8")
    sized = with_sizes(plain, {"i": 4, "j": 8})
    assert str(sized) == str(plain) and sized == plain
    assert isinstance(sized, Expr) and Symbol("i", 4) in {
        atom for atom in _symbols(sized) if atom.size == 4}
    assert substitute(sized, {"k": 1}) == plain
    assert divide(8 * symbol("i", 4) + symbol("j", 8), 8) == (symbol("i"), symbol("j"))


def test_division_takes_common_factors_out() -> None:
    run, at = symbol("run"), symbol("at", 14)
    assert divide(14 * run + at, 196) == (run // 14, 14 * (run % 14) + at)
    assert divide(28 * run + at + 14, 196) == ((2 * run + 1) // 14, 14 * ((2 * run + 1) % 14) + at)
    assert str(divide(14 * run + symbol("more", 15), 196)[0]) == "(more + 14*run)//196"


def _symbols(dim: Dim) -> list[Symbol]:
    found: list[Symbol] = []

    def leaf(symbol: Symbol) -> int:
        found.append(symbol)
        return 0

    fold(dim, lambda n: n, leaf, lambda sign, a, b: 0)
    return found


@pytest.mark.parametrize("text", [
    "", "2 *", "(b", "b)", "b,c", "b//", "2b+", "-", "b ? c", "mod", "b mod", "3 4"])
def test_malformed_dims_are_errors(text: str) -> None:
    with pytest.raises(ValueError, match="not a dim"):
        parse_dim(text)


@pytest.mark.parametrize(("text", "same"), [
    ("b*2+1", "2*b + 1"), ("-b", "-1*b"), ("(b + 3)//2", "(b + 1)//2 + 1"), ("7//2", "3"),
    ("(%3 + 1)*2", "2*%3 + 2"), ("b mod 4 + 4*(b//4)", "b"), ("(b)", "b"), ("s.1", "s.1")])
def test_dims_are_read_and_simplified(text: str, same: str) -> None:
    assert str(parse_dim(text)) == same
