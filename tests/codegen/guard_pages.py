"""Runs programs whose memory is fenced by pages that may not be touched, and prints what is wrong.

    python tests/codegen/guard_pages.py x86-64-v3 1     ("native" for this machine; every nth case)

A script of its own, for an access outside of an array ends the process. Each case is printed
before it runs; the last line is ``done N``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (which tells NumPy of bfloat16)
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

import weft

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.fenced import fenced_runs

Array = NDArray[Any]

def run_fenced(
    function: Callable[..., Any], arrays: tuple[Array, ...], target: str | None,
    dynamic: bool = False,
) -> Iterator[str]:
    """What is wrong with the results or the fences, for both sides; ``dynamic`` lets the first
    array have any number of rows."""
    wanted = function(*arrays)
    wanted = [np.asarray(x) for x in (wanted if isinstance(wanted, tuple) else (wanted,))]
    unknown = {"x": {0: "rows"}} if dynamic else None
    stages = weft.compile(function, target=target, dynamic=unknown).lower(*arrays).stages
    assert bool(stages.entry.places) == dynamic
    for run in fenced_runs(stages, arrays, wanted):
        if run.status != 0:
            yield f"{run.side}: status {run.status}"
        for at, (got, want) in enumerate(zip(run.results, wanted, strict=True)):
            if not np.array_equal(got, want, equal_nan=want.dtype.kind == "f"):
                yield f"{run.side}: result {at} is {got.tolist()}, should be {want.tolist()}"
        if not run.intact:
            yield f"{run.side}: a write outside of its array"


DTYPES = ("bool", "i1", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
PRODUCTS = ("i4", "u4", "i8", "u8", "f2", "f4", "f8")
SHAPES = ((2, 3, 5), (5, 7, 3), (13, 1, 17), (17, 33, 18), (31, 5, 70), (3, 65, 2))  # m, k, n
ROWS = (0, 1, 2, 7, 15, 16, 17, 33, 64, 65, 130, 300)  # not known to the compiler
TALL = ((20, 40), (33, 128), (70, 256), (300, 3), (300, 256), (1100, 40), (700, 203), (257, 521))
STAGED = ((160, 7, 33), (300, 8, 20), (257, 31, 65), (1025, 700, 8201))  # the last: in blocks
WINDOWS = ((1, 3, 5, 20), (3, 8, 9, 33), (4, 20, 16, 40), (2, 2, 30, 3))  # x is NCHW; results
# Short rows, and around the widths of vectors; the products of two sizes are tails of any length.
SIZES = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65)


def views(x: Array) -> Any:
    """Guarded loads, short rows, shifted and reversed walks."""
    return (np.pad(x, ((1, 0), (0, 2))), np.pad(x, ((0, 1), (3, 0))), x[:, ::-1], x[::2, 1:],
            x[:, ::2], x[:, 1::3] + x[:, :len(x[0, 1::3])],
            np.concatenate([x, x[:1]], 0), np.concatenate([x[:, :1], x], 1),
            np.roll(x, 1, 1), x.T, np.where(x > x[:1], x, x[:, :1]))


def totals(x: Array) -> Any:
    """Reductions along rows, down columns and over all, and of a padded array."""
    return (np.max(x, 0), np.max(x, 1), np.max(x), np.min(np.pad(x, ((0, 0), (1, 2))), 1),
            np.max(np.pad(x, ((1, 0), (0, 2))), 0), np.sum(x == x[:1], 0), np.any(x > x[:1], 1))


def expanded(x: Array, y: Array) -> Any:
    """Sums and extremes of all pairs, in which rows are not known from columns."""
    return np.max(x[:, None] - y), np.min(y[:, None] + x), np.sum(x[:, None] * y)


def chosen(x: Array, y: Array) -> Any:
    """Arrays of sizes that are measured."""
    few = x[x > 0]
    return few, np.flatnonzero(x > 1), few[:, None] * y, y[:len(few)][::-1]


def parted(x: Array, k: Array) -> Any:
    """Parts that are written in turn, of which nobody knows that one ends where the other begins.
    """
    x = x.copy()
    parts = [x[:k], x[k:]]
    for add in range(2):
        for part in parts:
            part += add
    return x, parts[0]


def picked(x: Array, index: Array) -> Any:
    """Gathers and scatters."""
    return x[:, index], x[index % len(x)], np.take(x, index, 1) == x[:, index]


def scattered(x: Any, index: Array) -> Any:
    """Additions and stores at indices that repeat."""
    total, last = x.copy(), x.copy()
    np.add.at(total, (slice(None), index), x[:, :1])
    last[:, index] = x[:, :1] + x[:, index]
    return total, last


def written(x: Array, index: Array) -> Any:
    """Stores to a part of an array."""
    y = np.zeros(x.shape, x.dtype, like=x)
    y[:, 1:] = x[:, :-1]
    rows = np.zeros(x.shape, x.dtype, like=x)
    for at in range(len(x)):
        rows[at] = x[at, index[0]]
    return y, rows


def product(x: Array, y: Array) -> Any:
    return x @ y, (x @ y).T, np.pad(x, ((0, 1), (1, 0))) @ np.pad(y, ((1, 0), (0, 2)))


def convolution(x: Array, w: Array) -> Any:
    """Windows at each place, at every second one, of a padded image, and the other way around."""
    pad = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows, padded = (sliding_window_view(x, w.shape[2:], axis=(2, 3)) for x in (x, pad))
    return (np.einsum("nchwij,ocij->nohw", windows, w),
            np.einsum("nchwij,ocij->nhwo", windows[:, :, ::2, ::2], w),
            np.einsum("nchwij,ocij->nohw", padded[:, :, ::2, ::2], w) + x[:, :1, :1, :1],
            np.einsum("nchwij,nohw->ocij", windows, windows[..., 0, 0]))


def staged(x: Array, y: Array) -> Any:
    """One kernel, with a tile of products in the scratch of its task: the end of the arena."""
    return np.argmin(x @ y, 1)


def kept(x: Array, y: Array) -> Any:
    """One kernel, with the rows of a product kept in the scratch of its task."""
    scores = x @ y
    return scores - np.max(scores, axis=1, keepdims=True)


def columns(x: Array) -> Any:
    """Three sums in one loop down columns: registers are not shared evenly."""
    return x.sum(0), (x * x).sum(0), np.abs(x).sum(0)


def hosted(x: Array, y: Array, shift: Array) -> Any:
    """Functions of the host between kernels, on the same memory."""
    a = x.T @ x + shift
    return np.linalg.solve(a, y) * 2, np.linalg.eigvalsh(a), np.linalg.qr(x, "r") + 1


def turned(x: Array) -> Any:
    """Parts of complex numbers, which lie between each other."""
    return (x * (2 + 1j), np.conj(x)[:, ::-1], x.real - x.imag, x.T @ x, x.sum(0),
            np.stack([x.imag, x.real], axis=-1), np.concatenate([x[:1], 1j * x]))


def ordered(x: Array) -> Any:
    """Rows sorted, their places, what is found among them, and sums along both axes."""
    return (np.sort(x), np.argsort(x, kind="stable"), np.sort(x.T), np.cumsum(x, 0),
            np.cumsum(x, 1), np.searchsorted(np.sort(x[0]), x, "right"))


def narrowed(x: Array) -> Any:
    """Elements of fewer bytes than what they are computed from, in steps of few lanes."""
    powers = np.exp2(x) + np.sum(x, axis=0, keepdims=True)
    return tuple((powers - 1).astype(dtype) for dtype in (
        "i1", "u1", "i2", "u2", "i4", "u4", "f2", "bfloat16"))


def cut(x: Array) -> Any:
    """Maps that are cut into pieces, elements that go back, and runs."""
    return (np.pad(x, 3, "reflect"), np.pad(x, ((2, 0), (1, 5)), "symmetric"),
            np.roll(x, (1, 5), (0, 1)), np.concatenate([x[:, ::-1], x], 1), np.tile(x, (2, 2)),
            x.T.reshape(-1) + x.ravel())


def whole(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Small whole numbers: every order of a sum gives the same."""
    return rng.integers(0, 2 if dtype == "bool" else 9, shape).astype(dtype)


def cases() -> Iterator[tuple[str, Callable[..., Any], tuple[Array, ...], bool]]:
    for case in static_cases():
        yield *case, False
    rng = np.random.default_rng(1)
    for k, n, dtype in ((4, 5, "f4"), (20, 33, "f8"), (70, 17, "f4")):
        for rows in ROWS:
            x, y = whole(rng, (rows, k), dtype), whole(rng, (k, n), dtype)
            for function in (kept, staged, product) if k == 4 else (kept, staged):
                yield f"{function.__name__} {dtype} {(rows, k, n)} rows not known", function, (
                    x, y), True
            if k == 20:
                yield f"hosted {dtype} {(rows, k, n)} rows not known", hosted, (
                    x, y, k * np.eye(k)), True
    for rows in ROWS:
        for at in {0, rows // 2, rows}:
            for dynamic in (False, True):
                yield f"parted {rows} {at} {dynamic}", parted, (
                    whole(rng, (rows,), "f8"), np.array(at)), dynamic
    for rows in ROWS[1::2]:
        for size in SIZES[::3]:
            x, y = whole(rng, (rows,), "f8"), whole(rng, (size,), "f8")
            yield f"expanded {x.shape} {y.shape}", expanded, (x, y), True
            yield f"chosen {x.shape} {y.shape}", chosen, (x, y), True
    for rows in (255, 256, 300):
        x = whole(rng, (rows, 37), "f4")
        yield f"columns {x.dtype} {x.shape} rows not known", columns, (x,), True
    for images, channels, size, results in WINDOWS:
        x = whole(rng, (images, channels, size, size + 1), "f4")
        w = whole(rng, (results, channels, 3, 3), "f4")
        yield f"convolution {x.shape} images not known", convolution, (x, w), True


def static_cases() -> Iterator[tuple[str, Callable[..., Any], tuple[Array, ...]]]:
    rng = np.random.default_rng(0)
    for dtype in DTYPES:
        for at, size in enumerate(SIZES):
            x = whole(rng, (2 + at % 3, size), dtype)
            index = rng.integers(0, size, 5 + at)
            yield f"views {x.dtype} {x.shape}", views, (x,)
            if at % 2 == 0:
                yield f"totals {x.dtype} {x.shape}", totals, (x,)
                yield f"picked {x.dtype} {x.shape}", picked, (x, index)
                yield f"written {x.dtype} {x.shape}", written, (x, index)
                if dtype != "bool":
                    yield f"scattered {x.dtype} {x.shape}", scattered, (x, index)
        if dtype in PRODUCTS:
            for m, k, n in SHAPES:
                x, y = whole(rng, (m, k), dtype), whole(rng, (k, n), dtype)
                yield f"product {x.dtype} {(m, k, n)}", product, (x, y)
    for dtype in ("f4", "u4", "i8", "f8"):
        for size in (*SIZES[::3], 130, 1030, 2100):
            x = whole(rng, (2, size), dtype)
            yield f"ordered {x.dtype} {x.shape}", ordered, (x,)
    for dtype in ("f4", "f8", "i8"):
        for size in SIZES:
            x = whole(rng, (3, size), dtype) % 4
            yield f"narrowed {x.dtype} {x.shape}", narrowed, (x,)
    for dtype in ("c8", "c16"):
        for size in (*SIZES, 130):
            x = whole(rng, (2, size), dtype) + 1j * whole(rng, (2, size), dtype)
            yield f"turned {x.dtype} {x.shape}", turned, (x.astype(dtype),)
    for dtype in ("i1", "f4", "f8"):
        for shape in ((9, 130), (64, 71), (5, 513)):
            x = whole(rng, shape, dtype)
            yield f"cut {x.dtype} {x.shape}", cut, (x,)
    for shape in TALL:
        x = whole(rng, shape, "f4")
        yield f"columns {x.dtype} {x.shape}", columns, (x,)
    for m, k, n in STAGED:
        x, y = whole(rng, (m, k), "f4"), whole(rng, (k, n), "f4")
        yield f"staged {x.dtype} {(m, k, n)}", staged, (x, y)
        yield f"kept {x.dtype} {(m, k, n)}", kept, (x, y)
    for images, channels, size, results in WINDOWS:
        x = whole(rng, (images, channels, size, size + 1), "f4")
        w = whole(rng, (results, channels, 3, 3), "f4")
        yield f"convolution {x.shape}", convolution, (x, w)
    for m, k, n in SHAPES:
        x, y = whole(rng, (m, k), "f8"), whole(rng, (k, n), "f8")
        yield f"hosted {x.dtype} {(m, k, n)}", hosted, (x, y, k * np.eye(k))


def main(name: str, step: int) -> None:
    target = None if name == "native" else name
    count = 0
    for label, function, arrays, dynamic in islice(cases(), 0, None, step):
        print(label, flush=True)
        for problem in run_fenced(function, arrays, target, dynamic):
            print(f"wrong: {label}: {problem}", flush=True)
        count += 1
    print(f"done {count}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
