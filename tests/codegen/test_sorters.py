"""The functions that sort keys, alone: patterns that lead pivots astray, and bad pivots at once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.codegen.cpu.jit import compile_object, cpu_target, jit_for
from weft.codegen.cpu.sorts import sorter
from weft.codegen.cpu.sorts.columns import comparisons
from weft.codegen.cpu.sorts.radix import radix as passes
from weft.codegen.cpu.text import module_text

RNG = np.random.default_rng(3)
LENGTHS = (0, 1, 2, 15, 17, 64, 127, 128, 129, 257, 300, 1000, 2049, 5000, 32767, 40_000)
PATTERNS: dict[str, Callable[[int], Any]] = {
    "random": lambda n: RNG.integers(-1 << 63, (1 << 63) - 1, n),
    "up": lambda n: np.arange(n) - n // 2,
    "down": lambda n: n // 2 - np.arange(n),
    "pipe": lambda n: np.minimum(np.arange(n), np.arange(n)[::-1]),
    "equal": lambda n: np.zeros(n, np.int64),
    "largest": lambda n: np.full(n, (1 << 63) - 1),
    "few": lambda n: RNG.integers(0, 3, n),
    "mostly largest": lambda n: np.where(RNG.random(n) < 0.9, (1 << 63) - 1, RNG.integers(0, 9, n)),
    "mostly smallest": lambda n: np.where(RNG.random(n) < 0.9, -1 << 63, RNG.integers(0, 9, n)),
    "sawtooth": lambda n: np.arange(n) % 125,
    "one above": lambda n: np.where(np.arange(n) == n // 2, 1, 0),
    "one below": lambda n: np.where(np.arange(n) == n // 3, -1, 0),
}


def native(
    name: str, words: int, target: str | None = None, numbers: int = 1
) -> tuple[Any, Any]:
    """A sorter by its name in ``SORTS``, and what is to be held as long as it is called."""
    machine = cpu_target(target)
    text = module_text([sorter.SORTS[name](machine, "weft")],
                       prelude=f'target triple = "{machine.triple}"')
    library = jit_for(machine).link(compile_object(text, machine, plain=True).object, (name,))
    controls = [ctypes.c_void_p] if name.startswith("weft_sort") else []
    type_ = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (2 * words),
                             *[ctypes.c_int64] * numbers, *controls)
    function = type_(library.addresses[name])
    return partial(_with_control, function) if controls else function, library


def _with_control(function: Any, *args: int) -> None:
    """Call a function that asks now and then whether the run is over: it never is."""
    function(*args, None)


def check(sort: Any, words: int, bits: int) -> None:
    """Rows between guards, which nothing may be written to."""
    for n in LENGTHS:
        for name, pattern in PATTERNS.items():
            keys = pattern(n).astype(f"i{bits // 8}")
            x, y = ([np.full(n + 32, 77, keys.dtype) for _ in range(words)] for _ in range(2))
            x[0][16:16 + n] = keys
            x[-1][16:16 + n] = keys if words == 1 else np.arange(n)
            sort(*(array.ctypes.data + 16 * array.itemsize for array in (*x, *y)), n)
            order = np.argsort(keys, kind="stable")
            np.testing.assert_array_equal(x[0][16:16 + n], keys[order], f"{name} of {n}")
            if words == 2:
                np.testing.assert_array_equal(x[1][16:16 + n], order, f"{name} of {n}")
            for array in (*x, *y):
                assert (array[:16] == 77).all() and (array[16 + n:] == 77).all(), f"{name} of {n}"


with_masks = pytest.mark.skipif(not cpu_target().mask_registers, reason="there are no pivots")


@pytest.mark.parametrize(("bits", "words"), sorter.RECORDS)
@pytest.mark.parametrize(("algorithm", "target"), [
    pytest.param("quick", None, marks=with_masks), ("radix", "x86-64-v3")])
def test_patterns_of_every_length(
    algorithm: str, bits: int, words: int, target: str | None
) -> None:
    sort, _held = native(f"weft_sort_i{bits}x{words}_{algorithm}", words, target)
    check(sort, words, bits)


@with_masks
@pytest.mark.parametrize("budget", [0, 1])
def test_radix_passes_take_over_from_bad_pivots(
    budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and after so many levels as there would be with perfect pivots."""
    sizes: list[str] = []
    monkeypatch.setattr(sorter, "BUDGET", budget)

    def radix(bits: int, words: int, first: int, pool: str) -> Any:
        sizes.append(f"{bits}x{words}")
        return passes(bits, words, first, pool)

    monkeypatch.setattr(sorter, "radix", radix)
    for name, words, bits in (("weft_sort_i32x1_quick", 1, 32), ("weft_sort_i64x2_quick", 2, 64)):
        sort, _held = native(name, words)
        check(sort, words, bits)
    assert sizes == ["32x1", "64x2"]


@with_masks
def test_words_that_differ_below_their_first_bytes_stay_in_turn() -> None:
    """Words of a key and a place: many equal keys, beyond what stays in two memories."""
    sort, _held = native("weft_sort_places_quick", 1)
    keys = RNG.integers(0, 50, 70_000)
    x = (keys << 32) | np.arange(keys.size)
    y = np.empty_like(x)
    sort(x.ctypes.data, y.ctypes.data, x.size)
    np.testing.assert_array_equal(x & 0xFFFFFFFF, np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("target", [None, "x86-64-v3"])
@pytest.mark.parametrize(("bits", "words"), sorter.RECORDS)
def test_any_part_of_merged_runs(bits: int, words: int, target: str | None) -> None:
    """Between guards; runs of which one is short or missing, and parts of all lengths."""
    function, _held = native(f"weft_merge_i{bits}x{words}", words, target, numbers=4)
    dtype = np.dtype(f"i{bits // 8}")
    for run, n in ((1, 2), (5, 10), (16, 32), (64, 100), (64, 64), (64, 65), (40, 155), (100, 777)):
        for name, pattern in PATTERNS.items():
            keys, starts = pattern(n).astype(dtype), np.arange(n) // run * run
            order = np.lexsort((np.arange(n), keys, starts))
            memories = [keys[order], order.astype(dtype)][:words]
            merged = np.lexsort((np.arange(n), keys, starts // (2 * run)))
            want = [keys[merged], merged]
            for step in (1, 7, 2 * run):
                to = [np.full(n + 2, 77, dtype) for _ in range(words)]
                for begin in range(0, n, step):
                    end = min(begin + step, n, (begin // (2 * run) + 1) * 2 * run)
                    for first, last in ((begin, end), (end, min(begin + step, n))):
                        function(*(array.ctypes.data for array in memories),
                                 *(array.ctypes.data + dtype.itemsize for array in to), run, n,
                                 first, last)
                for found, wanted in zip(to, want, strict=False):
                    np.testing.assert_array_equal(found[1:-1], wanted, f"{name} of {n}")
                    assert found[0] == found[-1] == 77


@pytest.mark.parametrize("rows", [1, 2, 4, 8, 16])
def test_comparisons_are_a_network(rows: int) -> None:
    """What sorts all rows of zeros and ones sorts everything (Knuth, *Sorting and searching*)."""
    pairs = list(comparisons(rows))
    every = np.arange(1 << rows)[:, None] >> np.arange(rows) & 1
    for low, high in pairs:
        every[:, [low, high]] = np.sort(every[:, [low, high]], axis=1)
    assert (np.diff(every, axis=1) >= 0).all()


def test_artifacts_hold_what_sorts(tmp_path: Path) -> None:
    """Rows of any length, which call short ones, and short ones themselves; and the pool."""
    weft.export(lambda x, y: (np.sort(x), np.argsort(y)), "f64[n]", "f32[40]", path=tmp_path / "m")
    loaded = weft.load(tmp_path / "m", threads=2)
    y = RNG.random(40).astype(np.float32)
    for n in (0, 100, 3000, 200_000):
        x = RNG.random(n)
        values, places = loaded(x, y)
        np.testing.assert_array_equal(values, np.sort(x))
        np.testing.assert_array_equal(places, np.argsort(y))
