"""The order of a float sum follows from its extent and dtype: every way to compute it has its bits.

The reference is the order written down term by term (``summed``), which knows nothing of loops.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from accuracy import KINDS, errors
from native_kernel import run_native
from test_bits import targets

import weft
from weft.codegen.cpu.jit import cpu_target
from weft.codegen.kernel.order import CHUNK, order_of
from weft.codegen.schedule.cpu import tile
from weft.ir.interp.kernel import run_kernel
from weft.ir.kernels.combine import Order
from weft.ir.kernels.kernel import Kernel
from weft.ir.kernels.sums import reduce_in_order
from weft.ir.text.parser import parse_kernel
from weft.ir.types import as_dtype
from weft.ir.verify.verifier import verify_kernel

Array = np.ndarray[Any, Any]
EXTENTS = (0, 1, 2, 3, 5, 8, 9, 16, 20, 31, 32, 33, 64, 65, 100, 511, 512, 513, 1023, 1024, 1025,
           2047, 2048, 2049, 8191, 8192, 8193, 20_000)


def numbers(*shape: int, dtype: str = "f4", seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def pairwise(terms: list[Any], zero: Any) -> Any:
    while len(terms) > 1:
        terms = [terms[at] + terms[at + 1] if at + 1 < len(terms) else terms[at]
                 for at in range(0, len(terms), 2)]
    return terms[0] if terms else zero


def summed(terms: Array) -> Any:
    """The sum of a vector as ``Order`` defines it, one addition after the other."""
    zero = terms.dtype.type(0)
    lanes = 1024 // (8 * terms.itemsize)
    chunks = []
    for first in range(0, len(terms), CHUNK):
        held = [zero] * lanes
        for at, term in enumerate(terms[first:first + CHUNK]):
            held[at % lanes] = held[at % lanes] + term
        while len(held) > 1:
            half = len(held) // 2
            held = [a + b for a, b in zip(held[:half], held[half:], strict=True)]
        chunks.append(held[0])
    return pairwise(chunks, zero)


def wanted(x: Array, axis: int) -> Array:
    order = order_of(x.shape[axis], as_dtype(x.dtype.name))
    return reduce_in_order(np.add, np.moveaxis(x, axis, -1), np.zeros((), x.dtype), order)


def assert_same(got: Any, want: Any) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    bits = f"u{want.itemsize}"
    np.testing.assert_array_equal(got.view(bits) if got.ndim else got.reshape(1).view(bits),
                                  want.view(bits) if want.ndim else want.reshape(1).view(bits))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("extent", EXTENTS)
def test_the_vectorised_order_is_the_one_that_is_defined(extent: int, dtype: str) -> None:
    x = numbers(3, extent, dtype=dtype)
    for row, want in zip(x, wanted(x, 1), strict=True):
        assert_same(want, summed(row))
    whole = Order(1024 // (8 * x.itemsize), CHUNK)  # what a symbolic extent has
    assert_same(reduce_in_order(np.add, x, np.zeros((), x.dtype), whole), wanted(x, 1))


def test_the_order_of_a_sum_has_what_its_extent_needs() -> None:
    f32, f64 = as_dtype("f32"), as_dtype("f64")
    assert [str(order_of(n, f32)) for n in (0, 1, 3, 20, 1024, 1025)] == [
        "{lanes 1}", "{lanes 1}", "{lanes 4}", "{lanes 32}", "{lanes 32}",
        "{lanes 32, chunk 1024}"]
    assert str(order_of(1025, f64)) == "{lanes 16, chunk 1024}"


# name: the shape around an extent, the axis that is summed
FORMS: dict[str, tuple[Callable[[int], tuple[int, ...]], int]] = {
    "row": (lambda n: (3, n), 1), "whole": (lambda n: (n,), 0), "columns": (lambda n: (n, 5), 0),
    "long rows": (lambda n: (n, 130), 0), "middle": (lambda n: (2, n, 7), 1),
    "strided": (lambda n: (3, 2 * n), 1), "reversed": (lambda n: (n, 3), 0),
    "repeated": (lambda n: (4, n), 1),
}


def viewed(form: str, x: Any) -> Any:
    if form == "strided":
        return x[:, ::2]
    if form == "reversed":
        return x[::-1]
    return np.broadcast_to(x[:, :1], x.shape) if form == "repeated" else x


def of_form(x: Any, form: str) -> Any:
    return viewed(form, x).sum(axis=FORMS[form][1])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("form", FORMS)
def test_sums_of_any_extent(form: str, dtype: str) -> None:
    shape, axis = FORMS[form]
    symbolic = None if form in ("strided", "repeated") else weft.compile(
        dynamic={"x": {axis: "n"}})(partial(of_form, form=form))
    for extent in EXTENTS:
        if extent == 0 and form == "repeated":
            continue  # there is nothing to repeat
        x = numbers(*shape(extent), dtype=dtype)
        want = wanted(np.ascontiguousarray(viewed(form, x)), axis)
        assert_same(weft.compile(partial(of_form, form=form))(x), want)
        if symbolic is not None:
            assert_same(symbolic(x), want)


def chunks_of_rows(x: Any) -> Any:
    return x.sum(axis=0), x.sum(axis=1), x.mean(axis=0), (x * x).sum(axis=1), x.sum()


@pytest.mark.parametrize("shape", [(3, 40), (40, 3), (1100, 70), (70, 1100), (2100, 2)])
def test_neighbours_threads_widths_and_levels_change_no_bit(shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    want = (wanted(x, 0), wanted(x, 1), wanted(x, 0) / np.float32(shape[0]), wanted(x * x, 1),
            wanted(x.reshape(-1), 0))
    ways: list[dict[str, Any]] = [{}, {"opt": 0}, {"opt": 1}, {"threads": 1}, {"threads": 2},
                                  *({"target": name} for name in targets())]
    for way in ways:
        for got, expected in zip(weft.compile(**way)(chunks_of_rows)(x), want, strict=True):
            assert_same(got, expected)


BESIDE: dict[str, Callable[[Any, int], Any]] = {
    "argmax": lambda x, axis: x.argmax(axis=axis), "max": lambda x, axis: x.max(axis=axis),
    "exp": lambda x, axis: np.exp(x), "another": lambda x, axis: np.abs(x).sum(axis=axis),
    "double": lambda x, axis: (x.astype(np.float64) * 2).sum(axis=axis),
    "integers": lambda x, axis: (x > 0).astype(np.int64).sum(axis=axis),
    "norm": lambda x, axis: (x - x.mean(axis=axis, keepdims=True)).var(axis=axis),
}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", BESIDE)
def test_other_work_in_the_loop(name: str, axis: int) -> None:
    """What shares a loop with a sum, of whatever dtype, takes nothing from its order."""
    for shape in ((37, 41), (1500, 6), (6, 1500), (300, 200)):
        x = numbers(*shape)
        got, other = weft.compile(lambda x: (x.sum(axis=axis), BESIDE[name](x, axis)))(x)
        assert_same(got, wanted(x, axis))
        assert_same(other, weft.compile(lambda x: BESIDE[name](x, axis))(x))
        if name == "double":
            assert_same(other, wanted(x.astype(np.float64) * 2, axis))


def test_a_sum_of_a_view_is_that_of_its_copy() -> None:
    x = numbers(70, 65)
    for view in (lambda x: x.T, lambda x: x[::2, ::-1], lambda x: x.T.reshape(50, 91)):
        for axis in (0, 1, None):
            def total(x: Any, axis: int | None = axis) -> Any:
                return np.sum(x, axis=axis)

            got = weft.compile(lambda x, view=view, total=total: total(view(x)))(x)
            assert_same(got, weft.compile(total)(np.ascontiguousarray(view(x))))


AXES = [(0, 2), (1, 3), (0, 2, 3), (0, 3), (0, 1, 3), (1, 2), (0, 1, 2, 3)]


@pytest.mark.parametrize("axes", AXES)
def test_runs_of_neighbours_are_one_axis_and_the_innermost_is_summed_first(
    axes: tuple[int, ...]
) -> None:
    x = numbers(7, 5, 40, 3)
    want = x
    runs: list[list[int]] = []
    for axis in axes:
        if runs and runs[-1][-1] == axis - 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    for run in reversed(runs):
        first, last = run[0], run[-1] + 1
        want = wanted(want.reshape(*want.shape[:first], -1, *want.shape[last:]), first)
    for opt in (0, 2):
        assert_same(weft.compile(opt=opt)(lambda x: x.sum(axis=axes))(x), want)
        turned = np.ascontiguousarray(x.transpose(2, 0, 3, 1))
        assert_same(weft.compile(opt=opt)(
            lambda t: t.transpose(1, 3, 0, 2).sum(axis=axes))(turned), want)
    symbolic = weft.compile(dynamic={"x": {0: "a", 2: "b"}})(lambda x: x.sum(axis=axes))
    assert_same(symbolic(x), want)


def test_several_loops_around_each_other() -> None:
    """Group normalisation: two runs of axes, and elements that need what is summed over both."""
    x = numbers(4, 3, 10, 6)

    def norm(x: Any) -> Any:
        centred = x - x.mean(axis=(0, 2, 3), keepdims=True)
        return (centred / np.sqrt((centred * centred).mean(axis=(0, 2, 3), keepdims=True) + 1),
                x.max(axis=(0, 2, 3)), x.argmax(axis=0))

    got, top, _ = weft.compile(norm)(x)
    want, most, _ = norm(x.astype(np.float64))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert_same(top, most.astype(np.float32))
    assert_same(got, weft.compile(norm, opt=0)(x)[0])


@pytest.mark.parametrize("opt", [0, 1, 2])
def test_a_contraction_is_a_chain_or_a_sum_by_its_sizes_alone(opt: int) -> None:
    """Operands that only repeat along an axis of theirs change nothing."""
    v, w, batch = numbers(1, 70), numbers(70, 90), numbers(3, 70, 9)
    to = np.broadcast_to
    cases: list[tuple[Callable[..., Any], tuple[Array, Array]]] = [
        (lambda v, w: (to(v, (5, 70)), w), (v, w)),
        (lambda v, w: (to(v[:, :1], (5, 70)), to(w[:, :1], (70, 9))), (v, w)),
        (lambda v, w: (to(v[:, :5].T, (5, 70)), to(w[0], (70, 90))), (v, w)),
        (lambda v, w: (to(v, (3, 1, 70)), w), (v, batch)),
        (lambda v, w: (to(v, (3, 4, 70)), w), (v, batch)),
    ]
    for operands, args in cases:
        def product(*args: Any, operands: Any = operands) -> Any:
            left, right = operands(*args)
            return left @ right

        copies = [np.ascontiguousarray(side) for side in operands(*args)]
        want = weft.compile(lambda a, b: a @ b)(*copies)
        assert_same(weft.compile(opt=opt)(product)(*args), want)


@pytest.mark.parametrize("named", [{0: "n"}, {1: "k"}, {0: "n", 1: "k"}])
@pytest.mark.parametrize("terms", [3, 17, 513])
def test_at_most_one_row_of_a_named_number_is_one_row(terms: int, named: dict[int, str]) -> None:
    x = numbers(5, terms)
    for product in (lambda x: x[:1] @ x[:1].T, lambda x: x[:1] @ x.T, lambda x: x @ x[:1].T,
                    lambda x: np.einsum("ik,jk->ij", x[:1], x), lambda x: x[:, :1] @ x[:1]):
        assert_same(weft.compile(product, dynamic={"x": named})(x), weft.compile(product)(x))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "seeds"), [(10, 101), (1000, 101), (10**5, 51), (10**7, 5)])
def test_errors_are_as_small_as_those_of_numpy(count: int, seeds: int, kind: str) -> None:
    ours, theirs, ulp = errors(count, kind, seeds)
    assert ours <= 4 * theirs + ulp


# Kernels written by hand: emitters do what the text says, whatever the order.


def run_on_cpu(kernel: Kernel, buffers: dict[str, Array], dims: dict[str, int]) -> None:
    """Tile, compile and run a kernel for this machine, all of its tasks in one call."""
    run_native(tile(kernel, cpu_target(None)), buffers, dims)


SUMS = """
kernel @k(x: f32[a,b], w: f64[a,b], y: mut f32[5,{size}], z: mut f64[{size}]) {{
  par {par} by 1, seq {seq} by 1 {{
    %0: f32 = x[i, j]
    %1: f64 = w[i, j]
    %2: f32 = reduce add %0 over {axis} {orders[0]}
    %3: f32 = mul %0, %0
    %4: f32 = reduce add %3 over {axis} {orders[1]}
    %5: f64 = reduce add %1 over {axis} {orders[2]}
    %6: f32 = reduce max %0 over {axis}
    %7: f32 = reduce mul %0 over {axis} {orders[1]}
    %8: f32 = sub %0, %2
    %9: f32 = reduce add %8 over {axis} {orders[0]}
    y[0, {kept}] = %2
    y[1, {kept}] = %4
    y[2, {kept}] = %6
    y[3, {kept}] = %7
    y[4, {kept}] = %9
    z[{kept}] = %5
  }}
}}"""
ORDERS = [(1, 0), (2, 64), (8, 0), (16, 256), (64, 0), (64, 64), (32, 1024)]


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("columns", [True, False])
def test_any_order_is_what_the_text_says(columns: bool, static: bool) -> None:
    """Sums of other lanes and chunks and of another dtype in one loop, and a product."""
    rng = np.random.default_rng(3)
    for a, b in ((1, 3), (7, 40), (40, 7), (65, 300), (300, 65), (1030, 5), (5, 1030)):
        orders = [f"{{lanes {lanes}, chunk {chunk}}}" if chunk else f"{{lanes {lanes}}}"
                  for lanes, chunk in rng.permutation(ORDERS)[:3]]
        par, seq = ("j in b", "i in a") if columns else ("i in a", "j in b")
        text = SUMS.format(orders=orders, par=par, seq=seq, axis=seq[0], kept=par[0],
                           size=par[-1])
        if static:
            text = re.sub(r"\bb\b", str(b), re.sub(r"\ba\b", str(a), text))
        kernel = parse_kernel(text)
        verify_kernel(kernel)
        size = b if columns else a
        buffers = {"x": numbers(a, b) / 2, "w": numbers(a, b, dtype="f8"),
                   "y": np.zeros((5, size), np.float32), "z": np.zeros(size)}
        got = {name: buffer.copy() for name, buffer in buffers.items()}
        dims = {} if static else {"a": a, "b": b}
        run_kernel(kernel, buffers, dims)
        run_on_cpu(kernel, got, dims)
        for name in ("y", "z"):
            assert_same(got[name], buffers[name])


NESTED = """
kernel @k(x: f32[a,7,b], w: f32[b], y: mut f32[a,7,b], z: mut f32[7]) {{
  par j in 7 by 1, seq i in a by 1, seq k in b by 1 {{
    %0: f32 = x[{index}]
    %1: f32 = w[k]
    %2: f32 = mul %0, %1
    %3: f32 = reduce add %2 over k {{lanes 8}}
    %4: f32 = reduce max %1 over k
    %5: f32 = mul %3, %4
    %6: f32 = reduce add %5 over i {{lanes 4, chunk 64}}
    %7: f32 = div %3, %6
    %8: f32 = reduce add %0 over k {{lanes 16, chunk 64}}
    %9: f32 = sub %8, %7
    %10: f32 = reduce min %9 over i
    %11: f32 = sub %2, %10
    y[i, j, k] = %11
    z[j] = %6
  }}
}}"""


@pytest.mark.parametrize("index", ["i, j, k", "(i + 1) mod a, j, b - 1 - k"])
def test_loops_in_loops(index: str) -> None:
    """Values of the outer loop, of the inner one and of neither, used in later loops of both."""
    kernel = parse_kernel(NESTED.format(index=index))
    verify_kernel(kernel)
    for a, b in ((1, 1), (3, 50), (50, 3), (130, 70), (0, 4), (4, 0)):
        buffers = {"x": numbers(a, 7, b), "w": numbers(b) + 3,
                   "y": np.zeros((a, 7, b), np.float32), "z": np.zeros(7, np.float32)}
        got = {name: buffer.copy() for name, buffer in buffers.items()}
        run_kernel(kernel, buffers, {"a": a, "b": b})
        run_on_cpu(kernel, got, {"a": a, "b": b})
        for name in ("y", "z"):
            assert_same(got[name], buffers[name])


@pytest.mark.parametrize("opt", [0, 1, 2])
def test_the_sum_of_one_negative_zero_is_zero(opt: int) -> None:
    """As NumPy has it, and as a sum of more terms starts."""
    for shape, axis in (((3, 1), 1), ((1, 40), 0), ((2, 1, 1), (1, 2))):
        x = np.full(shape, -0.0, "f4")
        got = weft.compile(opt=opt)(lambda x, axis=axis: np.sum(x, axis=axis))(x)
        assert not np.signbit(got).any() and not np.signbit(np.sum(x, axis=axis)).any()


@pytest.mark.parametrize("cpu", targets())
@pytest.mark.parametrize("columns", [5, 40, 300])
def test_unknown_rows_are_summed_as_known_ones(columns: int, cpu: str | None) -> None:
    """Few of them are a tree, of which some lanes are empty, beside what has no order."""
    def function(x: Any) -> Any:
        return np.sum(x, axis=0), np.max(x, axis=0)

    dynamic = weft.compile(target=cpu, dynamic={"x": {0: "b"}})(function)
    assert "few" in dynamic.lower(numbers(9, columns)).as_text("kernel")
    special = numbers(70, columns)
    special[:, 0], special[::3, 1], special[7:, 2] = -0.0, -0.0, np.inf
    for count in (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 20, 24, 31, 32, 33, 40, 64, 65, 70):
        want = weft.compile(target=cpu)(function)(special[:count])
        for got, wanted in zip(dynamic(special[:count]), want, strict=True):
            assert_same(got, wanted)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("extent", [1, 2, 5, 17, 100, 3000])
def test_the_extreme_of_zeros_does_not_tell_their_order(name: str, extent: int) -> None:
    """In lanes, columns and trees, beside a sum and alone, of one number and of many."""
    of = getattr(np, name)
    x = np.random.default_rng(extent).choice(np.array([0.0, -0.0, -0.0], np.float32), (9, extent))
    x[::2] = -0.0
    functions = [lambda x: (of(x, axis=1), of(x, axis=0), of(x), of(x[0])),
                 lambda x: (of(x, axis=1), of(x, axis=0), of(x), of(x[0]), x.sum(0), x.sum())]
    for function in functions:
        for way in ({}, {"opt": 0}, *({"target": target} for target in targets())):
            for found in weft.compile(function, **way)(x):
                assert not np.signbit(found).any() and not np.any(found)
