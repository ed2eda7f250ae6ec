"""What is carried from one index of an axis to the next: cumulative sums and their kin."""

from __future__ import annotations

import numpy as np
import pytest
from carried_kernels import (
    CUMULATIVE,
    attention_buffers,
    attention_of,
    nearest_buffers,
    nearest_of,
    nearest_text,
    streaming_attention_text,
)
from native_kernel import run_native

from weft.codegen.cpu.jit import cpu_target
from weft.codegen.schedule.cpu import tile
from weft.ir.diagnose import Error
from weft.ir.interp.kernel import run_kernel
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel
from weft.ir.text.same import same_kernel
from weft.ir.verify.verifier import verify_kernel


@pytest.mark.parametrize("rows", [0, 1, 5, 70])
@pytest.mark.parametrize("tiled", [False, True])
def test_cumulative_sums_down_columns(rows: int, tiled: bool) -> None:
    """Beside a running maximum of them, and the largest of those."""
    kernel = parse_kernel(CUMULATIVE)
    verify_kernel(kernel)
    assert same_kernel(parse_kernel(print_kernel(kernel)), kernel)
    x = np.random.default_rng(0).normal(size=(rows, 30)).astype("f4")
    want = np.cumsum(x, axis=0, dtype="f4")
    most = want.max(axis=0) if rows else np.full(30, -np.inf, "f4")
    native = tile(kernel, cpu_target(None)) if tiled else kernel
    for run, which in ((run_kernel, kernel), (run_native, native)):
        y, z = np.zeros((rows, 30), "f4"), np.zeros(30, "f4")
        run(which, {"x": x, "y": y, "z": z}, {"n": rows})
        np.testing.assert_array_equal(y, want)
        np.testing.assert_array_equal(z, most)


def test_along_a_row() -> None:
    """The axis that is contiguous, one index after the other; integers, and a product."""
    kernel = parse_kernel("""
kernel @k(x: i32[40], y: mut i32[3,40]) {
  par i in 3 by 1, seq j in 40 by 1 {
    %0: i64 = index i
    %1: i32 = cast %0
    %2: i32 = carry %1 next %4 over j
    %3: i32 = x[j]
    %4: i32 = add %2, %3
    y[i, j] = %2
  }
}
""")
    verify_kernel(kernel)
    x = np.arange(40, dtype="i4")[::-1].copy()
    want = np.arange(3)[:, None] + np.concatenate([[0], np.cumsum(x)[:-1]])
    for run in (run_kernel, run_native):
        y = np.zeros((3, 40), "i4")
        run(kernel, {"x": x, "y": y}, {})
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("keys", [0, 5, 64, 200])
def test_attention_streams_over_blocks_of_keys(keys: int, tiled: bool) -> None:
    """One pass, what was summed rescaled as the maximum grows; nothing as long as the keys."""
    kernel = parse_kernel(streaming_attention_text("seq j in 64 by 1"))
    verify_kernel(kernel)
    assert same_kernel(parse_kernel(print_kernel(kernel)), kernel)
    buffers = attention_buffers(21, keys)
    native = tile(kernel, cpu_target(None)) if tiled else kernel
    for run, which in ((run_kernel, kernel), (run_native, native)):
        run(which, buffers, {"r": 21, "n": keys})
        np.testing.assert_allclose(buffers["y"], attention_of(buffers), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("points", [1, 64, 300])
def test_the_least_of_each_block_against_the_least_so_far(points: int, tiled: bool) -> None:
    kernel = parse_kernel(nearest_text("seq j in 64 by 1"))
    verify_kernel(kernel)
    buffers = nearest_buffers(points)
    native = tile(kernel, cpu_target(None)) if tiled else kernel
    for run, which in ((run_kernel, kernel), (run_native, native)):
        run(which, buffers, {"n": points})
        np.testing.assert_array_equal(buffers["y"], nearest_of(buffers))


def test_nothing_carried_is_what_it_began_with() -> None:
    """The last value along an axis of no indices."""
    kernel = parse_kernel(CUMULATIVE.replace("reduce max %6 over i", "last %5 over i"))
    verify_kernel(kernel)
    for run in (run_kernel, run_native):
        y, z = np.zeros((0, 30), "f4"), np.zeros(30, "f4")
        run(kernel, {"x": y, "y": y.copy(), "z": z}, {"n": 0})
        np.testing.assert_array_equal(z, np.full(30, -np.inf, "f4"))


@pytest.mark.parametrize(("old", "new", "message"), [
    ("reduce max %6 over i", "last %6 over i", "%6 is not carried along 'i'"),
    ("seq i in n by 1", "par i in n by 1", "par axis"),
    ("seq i in n by 1", "seq i in n by 4", "no seq axis by 1"),
    ("next %3", "next %9", "%9, the next value, is not defined below"),
    ("%0: f32 = const 0.0", "%0: f32 = x[i, j]", "the first value depends on 'i'"),
    ("%0: f32 = const 0.0", "%0: f64 = const 0.0", "the dtype is f32, should be f64"),
    ("carry %0 next %3 over i", "carry %0 over i", "a carry needs its next value"),
])
def test_what_is_wrong_is_named(old: str, new: str, message: str) -> None:
    text = CUMULATIVE.replace(old, new)
    assert text != CUMULATIVE
    with pytest.raises(Error, match=message) as problem:
        verify_kernel(parse_kernel(text))
    assert problem.value.code in ("W501", "W601")

