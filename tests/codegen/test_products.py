"""The order of the sums of a product of matrices: chains of fused multiply-adds, one for each
chunk, and the chunks pairwise. Its extent and dtype say it all, whatever blocks it is computed in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from accuracy import KINDS, product_errors
from native_kernel import run_native
from test_bits import targets

import weft
from weft.codegen.kernel.order import CHAIN, chunk_of
from weft.ir.interp.kernel import run_kernel
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel
from weft.ir.types import as_dtype
from weft.ir.verify.verifier import verify_kernel

Array = np.ndarray[Any, Any]
DEPTHS = (1, 2, CHAIN - 1, CHAIN, CHAIN + 1, 2 * CHAIN, 3 * CHAIN - 1, 5 * CHAIN, 7 * CHAIN + 3,
          9 * CHAIN + 1)


def coarse(*shape: int, seed: int = 0) -> Array:
    """Positive numbers of eleven bits: in float64 a step of a chain of float32 is exact."""
    return (np.random.default_rng(seed).integers(1, 2048, shape) / 2048).astype(np.float32)


def in_order(x: Array, y: Array) -> Array:
    """The product in float32, one step after the other."""
    chains: list[Array] = [np.zeros((len(x), y.shape[1]), np.float32)]
    for k in range(len(y)):
        if k and k % CHAIN == 0:
            chains.append(np.zeros_like(chains[0]))
        step = x[:, k, None].astype(np.float64) * y[k].astype(np.float64) + chains[-1]
        chains[-1] = step.astype(np.float32)
    while len(chains) > 1:
        pairs = [one + other for one, other in zip(chains[::2], chains[1::2], strict=False)]
        chains = pairs + chains[2 * len(pairs):]
    return chains[0]


def test_a_sum_of_one_chain_has_no_chunks() -> None:
    f32 = as_dtype("f32")
    assert [chunk_of([CHAIN], f32), chunk_of([2, CHAIN], f32), chunk_of(["k"], f32)] == [
        0, CHAIN, CHAIN]  # type: ignore[comparison-overlap]
    assert chunk_of([10 * CHAIN], as_dtype("i64")) == 0


@pytest.mark.parametrize("depth", DEPTHS)
def test_the_order_is_that_of_its_extent_known_or_named(depth: int) -> None:
    x, y = coarse(7, depth), coarse(depth, 33, seed=1)
    want = in_order(x, y)
    named = {"x": {1: "k"}, "y": {0: "k"}}
    ways: list[dict[str, Any]] = [{}, {"dynamic": named}, {"opt": 0}, {"threads": 2},
                                  *({"target": name} for name in targets()),
                                  *({"target": name, "dynamic": named} for name in targets())]
    for way in ways:
        product = weft.compile(lambda x, y: x @ y, **way)
        np.testing.assert_array_equal(product(x, y), want, err_msg=str(way))


@pytest.mark.parametrize("form", ["transposed", "narrow", "tall", "batched", "gradient"])
def test_blocks_and_layouts_change_no_bit(form: str) -> None:
    depth = 3 * CHAIN + 5
    if form == "gradient":  # of the weights: the batch is summed
        x, up = coarse(depth, 9), coarse(depth, 40, seed=1)

        def loss(w: Array) -> Any:
            return np.sum(x @ w * up)

        np.testing.assert_array_equal(weft.compile(weft.grad(loss))(coarse(9, 40)),
                                      in_order(x.T, up))
        return
    rows, columns = {"narrow": (300, 3), "tall": (3, 200)}.get(form, (20, 50))
    x, y = coarse(rows, depth), coarse(depth, columns, seed=1)
    want = in_order(x, y)
    if form == "batched":
        got = weft.compile(lambda x, y: np.stack([x, x]) @ y)(x, y)
        np.testing.assert_array_equal(got, [want, want])
    elif form == "transposed":
        np.testing.assert_array_equal(weft.compile(lambda x, y: x.T @ y.T)(
            np.ascontiguousarray(x.T), np.ascontiguousarray(y.T)), want)
    else:
        np.testing.assert_array_equal(weft.compile(lambda x, y: x @ y)(x, y), want)


KERNEL = """
kernel @k(x: f32[9,{depth}], y: f32[{depth},40], z: mut f32[9,40]) {{
  par i in 9 by 1, par j in 40 by 16, seq k in {depth} by 1 {{
    vectorize j by 8
    %0: f32 = x[i, k]
    %1: f32 = y[k, j]
    %2: f32 = contract %0, %1 over k {{chunk {chunk}}}
    z[i, j] = %2
  }}
}}
"""


@pytest.mark.parametrize("depth", ["700", "n"])
@pytest.mark.parametrize("chunk", [64, 128, 512])
def test_loops_do_what_the_text_says(depth: str, chunk: int) -> None:
    kernel = parse_kernel(KERNEL.format(depth=depth, chunk=chunk))
    verify_kernel(kernel)
    text = print_kernel(kernel)
    assert print_kernel(parse_kernel(text)) == text
    x, y, results = coarse(9, 700), coarse(700, 40, seed=1), []
    for run in (run_kernel, run_native):
        z = np.full((9, 40), np.nan, np.float32)
        run(kernel, {"x": x, "y": y, "z": z}, {"n": 700} if depth == "n" else {})
        results.append(z)
    np.testing.assert_array_equal(*results)


def test_many_ones_are_counted() -> None:
    """A chain of float32 stays at 2**24."""
    x = np.ones((20_971_520, 2), np.float32)
    np.testing.assert_array_equal(weft.compile(lambda x: x.T @ x)(x), np.full((2, 2), 20_971_520))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "seeds"), [(10, 101), (1000, 101), (10**5, 21), (10**7, 3)])
def test_errors_are_as_small_as_those_of_numpy(count: int, seeds: int, kind: str) -> None:
    ours, theirs, ulp = product_errors(count, kind, seeds)
    assert ours <= 4 * theirs + ulp
