"""Maps that are cut where conditions on their indices turn, axes with runs, loads that go back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from native_kernel import native_text
from texts import without_notes

import weft
from weft.codegen.cpu.jit import cpu_target
from weft.codegen.kernel.domain.pieces import all_ranges, piece
from weft.ir.diagnose import Error
from weft.ir.kernels.kernel import Apply, Kernel, Load
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel
from weft.ir.text.same import same_kernel

Array = np.ndarray[Any, Any]
CPUS = (None, "x86-64-v3")
SHAPES = ((40, 70), "f4"), ((33, 96), "f8"), ((64, 130), "i1")
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "reflected": lambda x: np.pad(x, 3, "reflect"),
    "symmetric": lambda x: np.pad(x, ((2, 5), (7, 1)), "symmetric"),
    "wrapped": lambda x: np.pad(x, 4, "wrap"),
    "edges": lambda x: np.pad(x, ((1, 2), (0, 3)), "edge"),
    "zeros": lambda x: np.pad(x, 2),
    "rolled": lambda x: np.roll(x, (3, -5), (0, 1)),
    "rolled backwards": lambda x: np.roll(x[:, ::-1], 3, 1),
    "joined": lambda x: np.concatenate([x, 2 * x[:, :7], x[:, ::-1]], 1),
    "laplacian": lambda x: (np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1)
                            + np.roll(x, -1, 1) - 4 * x),
    "rows that are chosen": lambda x: np.where(np.arange(x.shape[1]) <= 40, x, -x),
    "every second": lambda x: np.where(2 * np.arange(x.shape[1]) > 55, x + 1, x[::-1]),
}


def kernel_of(function: Callable[..., Any], *args: Any) -> Kernel:
    plan = weft.compile(target="x86-64-v3")(function).lower(*args).stages.plan
    (kernel,) = plan.kernels.values()
    return kernel


def numbers(*shape: int, dtype: str = "f4") -> Array:
    return (np.random.default_rng(shape).normal(size=shape) * 50).astype(dtype)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dims", [(None, None), (0, None), (None, 1), (0, 1)])
def test_values(name: str, dims: tuple[Any, ...]) -> None:
    """Known and unknown sizes, with rests of vectors and without, of elements of all widths."""
    function = PROGRAMS[name]
    named = {axis: "ab"[axis] for axis in dims if axis is not None}
    for cpu in CPUS:
        made = weft.compile(dynamic={"x": named} if named else None, target=cpu,
                            on_recompile="silent")(lambda x: function(x))
        for shape, dtype in SHAPES if not named else (((40, 70), "f4"), ((9, 600), "f4")):
            if cpu and dtype != "f4":
                continue
            x = numbers(*shape, dtype=dtype)
            np.testing.assert_array_equal(made(x), function(x), err_msg=f"{shape} {dtype} {cpu}")


def test_pieces_know_what_holds_in_them() -> None:
    """Nothing is asked, and one element is read: that of the piece."""
    kernel = kernel_of(PROGRAMS["reflected"], numbers(50, 90))
    assert [str(split) for split in kernel.splits] == ["split i at 3, 53", "split j at 3, 93"]
    pieces = [piece(kernel, ranges) for ranges in all_ranges(kernel, kernel.splits)]
    assert len(pieces) == 9
    for each in pieces:
        assert [type(stmt) for stmt in each.body if isinstance(stmt, (Load, Apply))] == [Load]


def test_guards_of_what_is_not_cut_stay() -> None:
    """A piece of one axis keeps the conditions on the other."""
    kernel = kernel_of(PROGRAMS["zeros"], numbers(50, 90))
    (load,) = (stmt for stmt in piece(kernel, {"i": (2, 52)}).body if isinstance(stmt, Load))
    assert load.guard
    (load,) = (stmt for stmt in piece(kernel, {"i": (2, 52), "j": (2, 92)}).body
               if isinstance(stmt, Load))
    assert not load.guard
    assert not any(isinstance(stmt, Load) for stmt in piece(kernel, {"i": (0, 2)}).body)


def test_small_and_narrow_maps_are_whole() -> None:
    assert not kernel_of(PROGRAMS["reflected"], numbers(5, 6)).splits
    stacked = kernel_of(lambda x: np.stack([x, 2 * x], -1), numbers(3000))
    assert all(split.axis != vectors.axis for split in stacked.splits
               for vectors in stacked.vectors)


def test_elements_that_go_back_are_not_gathered() -> None:
    kernel = kernel_of(lambda x: x[::-1] + x, numbers(1000))
    text = native_text(kernel, cpu_target("x86-64-v3"))
    assert "gather" not in text
    assert "shufflevector" in text


def test_the_text_says_where() -> None:
    kernel = kernel_of(PROGRAMS["rolled"], numbers(50, 90))
    text = print_kernel(kernel)
    assert "    split j at 85\n" in text
    assert same_kernel(parse_kernel(text), kernel)
    moved = parse_kernel(text.replace("split j at 85", "split j at 20, 85, 88"))
    target = cpu_target("x86-64-v3")
    assert native_text(moved, target) != native_text(kernel, target)


@pytest.mark.parametrize(("new", "message"), [
    ("split k at 3", "a par axis"), ("split j at 9, 5", "ascending"),
    ("split j at i", "numbers and dims"), ("split j at 3\n split j at 5", "once")])
def test_texts_that_make_no_sense(new: str, message: str) -> None:
    text = print_kernel(kernel_of(PROGRAMS["rolled"], numbers(50, 90)))
    with pytest.raises(Error, match=message):
        parse_kernel(text.replace("split j at 85", new))


def test_sums_are_not_cut() -> None:
    text = print_kernel(kernel_of(lambda x: np.sum(np.roll(x, 3, 1), 1), numbers(50, 90)))
    assert "split" not in without_notes(text)
    with pytest.raises(Error, match="only a map"):
        parse_kernel(text.replace("    vectorize", "    split i at 3\n    vectorize", 1))


RUNS: dict[str, Callable[[Any], Any]] = {
    "tiled": lambda x: np.tile(x, (2, 3)),
    "tiled rows": lambda x: np.tile(x.ravel(), 3),
    "repeated": lambda x: np.repeat(x.ravel(), 100),
    "turned": lambda x: x.T.reshape(-1) * 2,
    "turned blocks": lambda x: x.reshape(x.shape[1], -1).T.reshape(x.shape),
    "tiled and padded": lambda x: np.pad(np.tile(x, 2), 3, "reflect"),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_have_axes_of_their_own(name: str) -> None:
    for shape, dtype in ((64, 128), "f4"), ((70, 90), "f8"), ((128, 64), "i1"), ((5, 7), "f4"):
        x = numbers(*shape, dtype=dtype)
        np.testing.assert_array_equal(weft.compile(RUNS[name])(x), RUNS[name](x))


def test_long_runs_are_not_gathered() -> None:
    for name in ("tiled", "tiled rows", "repeated", "turned"):
        text = print_kernel(kernel_of(RUNS[name], numbers(64, 128)))
        assert "mod" not in without_notes(text.split("{", 1)[1]), text
        assert "//" not in text.split("\n", 1)[1], text
    short = print_kernel(kernel_of(RUNS["tiled rows"], numbers(5, 7)))
    assert "mod 35" in short


@pytest.mark.parametrize("function", [
    lambda x: np.correlate(x, x[:5]), lambda x: np.isin(x, x[:5]),
    lambda x: np.argmin(np.abs(x[:, None] - x[:6]), 1)])
def test_short_rows_do_not_fill_vectors(function: Callable[[Any], Any]) -> None:
    """What lies beside does: each lane sums a row, in the order of the row."""
    x = numbers(500)
    kernel = kernel_of(function, x)
    assert [vectors.axis for vectors in kernel.vectors] == ["i"]
    np.testing.assert_allclose(weft.compile(function)(x), function(x), 1e-4)


def _written_rows(x: Any) -> Any:
    v = x.copy()
    v[np.arange(2), np.arange(2)] = 4
    for row in v:
        row += 0
    return np.cumsum(v, axis=0)


def _padded_halves(x: Any) -> Any:
    v, size = x, len(x)
    for k in range(1, size - 1):
        v = np.pad(v[:k], ((0, size - k), (0, 0))) + np.pad(v[k:], ((k, 0), (0, 0))) * 0.5
    return v


@pytest.mark.parametrize("function", [_written_rows, _padded_halves])
def test_what_is_read_under_two_guards_is_computed_once(function: Any) -> None:
    """Each value reads the one before in two places, each under conditions of its own."""
    lengths = []
    for size in (8, 16):
        x = np.random.default_rng(size).normal(size=(size, 5))
        compiled = weft.compile(function, dynamic={"x": {1: "m"}})
        np.testing.assert_array_equal(compiled(x), function(x))
        lengths.append(len(compiled.lower(x).stages.llvm))
    assert lengths[1] < 3 * lengths[0]


def test_a_piece_without_elements_fails_no_check() -> None:
    diagonal = weft.compile(lambda x: np.diagonal(x, 5), dynamic={"x": {1: "b"}})
    for width in (4, 5, 7, 9):
        x = np.arange(3.0 * width).reshape(3, width)
        np.testing.assert_array_equal(diagonal(x), np.diagonal(x, 5))
