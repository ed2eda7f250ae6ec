"""The statement that sorts rows: its text, its rules, the interpreter and native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native_kernel import run_native

import weft
from weft.codegen.cpu.jit import cpu_target
from weft.codegen.schedule.cpu import tile
from weft.ir.diagnose import Error
from weft.ir.interp.kernel import run_kernel
from weft.ir.kernels.ordering import sorted_places, sorted_values
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel
from weft.ir.text.same import same_kernel
from weft.ir.verify.verifier import verify_kernel

SORT = """
kernel @rows(x: f32[m,n], y: mut f32[m,n], room: mut i32[m,n]) {
  par i in m by 1, seq j in n by 1 {
    %0: f32 = x[i, -1*j + n - 1]
    %1: f32 = neg %0
    sort y[i, j] = %1 over j in room
  }
}
"""
PLACES = """
kernel @places(x: f64[m,n], y: mut i64[m,n], room: mut i64[m,3*n]) {
  par i in m by 1, seq j in n by 1 {
    %0: f64 = x[i, j]
    argsort y[i, j] = %0 over j in room
  }
}
"""
TARGETS = [None, "x86-64-v3"]


def rows(count: int, length: int, dtype: str) -> Any:
    rng = np.random.default_rng(count + length)
    x = rng.normal(size=(count, length)).astype(dtype).round(1)
    for value in (np.nan, -np.nan, np.inf, -np.inf, -0.0):
        x.ravel()[rng.integers(0, max(x.size, 1), x.size // 20)] = value
    return x


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("length", [0, 1, 9, 16, 33, 100, 1024, 1500, 2048, 3000])
def test_rows_are_sorted(length: int, target: str | None) -> None:
    for text, dtype, width in ((SORT, "f4", 1), (PLACES, "f8", 3)):
        kernel = parse_kernel(text)
        verify_kernel(kernel)
        assert same_kernel(parse_kernel(print_kernel(kernel)), kernel)
        x = rows(3, length, dtype)
        found = []
        for run, which in ((run_kernel, kernel), (run_native, tile(kernel, cpu_target(target)))):
            y = np.zeros(x.shape, "f4" if width == 1 else "i8")
            room = np.zeros((3, width * length), "i4" if width == 1 else "i8")
            more = {} if run is run_kernel else {"cpu": target}
            run(which, {"x": x, "y": y, "room": room}, {"m": 3, "n": length}, **more)
            found.append(y)
        want = sorted_values(-x[:, ::-1]) if width == 1 else sorted_places(x)
        for y in found:
            assert y.tobytes() == want.tobytes()


LONG = """
kernel @long(x: f64[n], y: mut {result}[n], room: mut i64[{room}]) {{
  seq j in n by 1 {{
    %0: f64 = x[j]
    {verb} y[j] = %0 over j in room
  }}
}}
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("verb", "result", "room"), [
    ("sort", "f64", "n"), ("argsort", "i64", "3*n")])
def test_a_long_row_is_sorted_by_threads(
    verb: str, result: str, room: str, target: str | None
) -> None:
    """Runs of which some may be short, an odd or even number of times they are merged."""
    kernel = tile(parse_kernel(LONG.format(verb=verb, result=result, room=room)),
                  cpu_target(target))
    rng = np.random.default_rng(4)
    for n, threads in ((1000, 4), (65_535, 2), (65_536, 2), (100_003, 3), (163_840, 5),
                       (200_001, 64)):
        x = rng.normal(size=n).round(2)
        x[rng.integers(0, n, 9)] = np.nan
        y = np.zeros(n, "f8" if verb == "sort" else "i8")
        workspace = np.zeros(n if verb == "sort" else 3 * n, "i8")
        run_native(kernel, {"x": x, "y": y, "room": workspace}, {"n": n}, target, threads)
        want = sorted_values(x) if verb == "sort" else sorted_places(x)
        assert y.tobytes() == want.tobytes()


def test_the_order_is_numpys() -> None:
    x = rows(4, 200, "f8")
    np.testing.assert_array_equal(sorted_values(x), np.sort(x))
    np.testing.assert_array_equal(sorted_places(x), np.argsort(x, kind="stable"))
    zeros = sorted_values(np.array([0.0, -0.0, 0.0, -0.0]))
    assert np.signbit(zeros).tolist() == [True, True, False, False]


@pytest.mark.parametrize(("old", "new", "message"), [
    ("seq j in n by 1", "par j in n by 1", "'j' is par, or another axis is not: tasks are rows"),
    ("par i in m by 1", "seq i in m by 1", "'j' is par, or another axis is not: tasks are rows"),
    ("sort y[i, j]", "sort y[i, 0]", "'y' is not one row of 'j' for each task"),
    ("sort y[i, j]", "sort x[i, j]", "a store to 'x', which is not mutable"),
    ("room: mut i32[m,n]", "room: mut i32[m]", "'room' is no room for the rows of 'y'"),
    ("room: mut i32[m,n]", "room: mut f32[m,n]", "'room' is no room for the rows of 'y'"),
    ("over j in room", "over j in y", "'y' is no room for the rows of 'y'"),
    ("over j in room", "over j in z", "'z' is no room for the rows of 'y'"),
    ("sort y", "argsort y", "argsort gives i64, 'y' is of f32[m,n]"),
    ("    sort", "    y[i, j] = %1\n    sort", "a kernel that sorts does nothing else"),
    ("= %1 over", "= %7 over", "%7 is not defined above"),
    (" over j in room", " in room", "expected 'over'"),
])
def test_what_is_wrong_is_named(old: str, new: str, message: str) -> None:
    text = SORT.replace(old, new)
    assert text != SORT
    with pytest.raises(Error) as problem:
        verify_kernel(parse_kernel(text))
    assert problem.value.code in ("W501", "W601") and message in str(problem.value)


def test_a_parameter_may_be_called_sort() -> None:
    text = SORT.replace("y:", "sort:").replace("sort y", "sort sort")
    kernel = parse_kernel(text)
    assert same_kernel(parse_kernel(print_kernel(kernel)), kernel)
    verify_kernel(kernel)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_the_same_bits_everywhere(dtype: str) -> None:
    x = (rows(40, 1500, "f8") if dtype[0] == "f" else np.random.default_rng(1).integers(
        -50, 50, (40, 1500))).astype(dtype)
    found = {tuple(part.tobytes() for part in weft.compile(
        lambda x: (np.sort(x * 2), np.argsort(x, axis=0)), opt=opt, threads=threads,
        target=target)(x))
        for opt in (0, 1, 2) for threads in (1, 2) for target in TARGETS}
    assert len(found) == 1


def test_room_is_in_the_arena_and_what_it_held_is_given_on() -> None:
    """Two sorts, one after the other, have one room."""
    text = weft.compile(lambda x: np.sort(np.sort(x, axis=0) * 2, axis=1)).lower(
        np.ones((500, 500), "f4")).as_text("plan")
    arena = int(text.split("arena = ")[1].split()[0])
    assert arena <= 3 * 500 * 500 * 4 + 64
