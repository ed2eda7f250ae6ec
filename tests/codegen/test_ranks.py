"""Ranks without a sort: the functions that find them, the kernels around these, what NumPy has."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_kernel import run_native
from test_sorters import PATTERNS

import weft
from weft.codegen.cpu.jit import compile_object, cpu_target, jit_for
from weft.codegen.cpu.sorts import ranks as source
from weft.codegen.cpu.sorts import sorter
from weft.codegen.cpu.text import module_text
from weft.codegen.schedule.cpu import tile
from weft.ir.diagnose import Error
from weft.ir.interp.kernel import run_kernel
from weft.ir.kernels.ordering import parted_places, parted_values, sorted_places, sorted_ranks
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel
from weft.ir.text.same import same_kernel
from weft.ir.verify.verifier import verify_kernel

RNG = np.random.default_rng(8)
TARGETS = [None, "x86-64-v3"]
KERNEL = """
kernel @rows(x: f64[m,n], r: i64[m,k], y: mut {out}, room: mut {room}) {{
  par i in m by 1, seq j in n by 1, seq t in k by 1 {{
    %0: f64 = x[i, -1*j + n - 1]
    %1: f64 = neg %0
    %2: i64 = r[i, t]
    {verb} = %1 over j at %2 over t in room
  }}
}}
"""
TEXTS = {
    "ranked": KERNEL.format(out="f64[m,k]", room="i64[m,2*n]", verb="ranked y[i, t]"),
    "partition": KERNEL.format(out="f64[m,n]", room="i64[m,3*k + n + 1]", verb="partition y[i, j]"),
    "argpartition": KERNEL.format(out="i64[m,n]", room="i64[m,3*k + n + 1]",
                                  verb="argpartition y[i, j]"),
}
MEANINGS: dict[str, Callable[[Any, Any], Any]] = {
    "ranked": sorted_ranks, "partition": parted_values, "argpartition": parted_places}


def native(bits: int, target: str | None) -> tuple[Any, Any]:
    """The function that finds ranks, and what is to be held as long as it is called."""
    machine, name = cpu_target(target), f"weft_rank_i{bits}"
    text = module_text([sorter.SORTS[name](machine, "weft")],
                       prelude=f'target triple = "{machine.triple}"')
    library = jit_for(machine).link(compile_object(text, machine, plain=True).object, (name,))
    result = ctypes.c_int64 if bits == 64 else ctypes.c_int32
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    type_ = ctypes.CFUNCTYPE(result, pointer, pointer, number, number, pointer)
    return type_(library.addresses[name]), library


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("bits", [32, 64])
def test_patterns_of_every_length(bits: int, target: str | None) -> None:
    """Between guards, in any turn; how many keys are below and how many equal, too."""
    find, _held = native(bits, target)
    for n in (1, 2, 17, 512, 513, 5000, 40_000):
        for name, pattern in PATTERNS.items():
            keys = pattern(n).astype(f"i{bits // 8}")
            ordered, kept, room = np.sort(keys), keys.copy(), np.full(n + 32, 77, keys.dtype)
            state = np.zeros(source.STATE, np.int64)
            for rank in (0, n // 3, (n - 1) // 2, n // 2, n - 1, n // 5, n // 3, n - 1, 0):
                found = find(keys.ctypes.data, room.ctypes.data + 16 * keys.itemsize, n, rank,
                             state.ctypes.data)
                assert found == ordered[rank], f"{name} of {n}: rank {rank}"
                assert state[:2].tolist() == [np.searchsorted(ordered, found, side)
                                              for side in ("left", "right")], f"{name} of {n}"
            np.testing.assert_array_equal(keys, kept)
            assert (room[:16] == 77).all() and (room[16 + n:] == 77).all(), f"{name} of {n}"


def test_bad_pivots_are_followed_by_the_middle_of_the_values(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample whose keys are all from one end says nothing of the others."""
    n = 30_000
    find, _held = native(64, None)
    keys = np.arange(n, dtype=np.int64) ** 3
    count = next(some for limit, some, _ in source.SAMPLES if n <= limit)
    step = n // count
    drawn = [at * step + ((2 * at + 1) * (0x9E3779B97F4A7C15 % (1 << 32)) % (1 << 32) * step >> 32)
             for at in range(count)]
    keys[drawn], keys[:count] = keys[:count].copy(), keys[drawn].copy()  # the least ones are drawn
    state, room, ordered = np.zeros(source.STATE, np.int64), np.zeros_like(keys), np.sort(keys)
    for rank in (count + 1, n // 2, n - 2):
        assert find(keys.ctypes.data, room.ctypes.data, n, rank,
                    state.ctypes.data) == ordered[rank]


@pytest.mark.parametrize("verb", TEXTS)
def test_kernels(verb: str) -> None:
    kernel = parse_kernel(TEXTS[verb])
    verify_kernel(kernel)
    assert same_kernel(parse_kernel(print_kernel(kernel)), kernel)
    for n in (1, 9, 600, 3000):
        x = RNG.normal(size=(3, n)).round(1)
        for value in (np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0):
            x.ravel()[RNG.integers(0, x.size, x.size // 20)] = value
        ranks = np.array([[n // 2, -1, n // 3, n // 2], [0, n - 1, n, -n - 5], [2, 1, 0, -1]])
        want = MEANINGS[verb](-x[:, ::-1], ranks)
        for run, which, more in ((run_kernel, kernel, {}), *(
                (run_native, tile(kernel, cpu_target(target)), {"cpu": target})
                for target in TARGETS)):
            y = np.zeros(want.shape, want.dtype)
            room = np.zeros((3, 2 * n if verb == "ranked" else n + 13), np.int64)
            run(which, {"x": x, "r": ranks, "y": y, "room": room}, {"m": 3, "n": n, "k": 4}, **more)
            assert y.tobytes() == want.tobytes(), (verb, n, more)


@pytest.mark.parametrize(("old", "new", "message"), [
    ("over t in room", "over j in room", "another axis is not: tasks are rows"),
    ("seq t in k", "par t in k", "'j' or 't' is par, or another axis is not: tasks are rows"),
    ("= r[i, t]", "= r[i, j]", "%2 lies along 't', it cannot depend on 'j'"),
    ("ranked y[i, t]", "ranked y[i, j]", "'y' is not one row of 't' for each task"),
    ("%2: i64 = r[i, t]", "%2: f64 = x[i, 0]", "a rank of dtype f64"),
    ("room: mut i64[m,2*n]", "room: mut i64[m,n]", "'room' is no room for the rows of 'y'"),
    (" over t in room", " in room", "expected 'over'"),
    ("at %2", "at %7", "%7 is not defined above"),
])
def test_what_is_wrong_is_named(old: str, new: str, message: str) -> None:
    text = TEXTS["ranked"].replace(old, new)
    assert text != TEXTS["ranked"]
    with pytest.raises(Error) as problem:
        verify_kernel(parse_kernel(text))
    assert message in str(problem.value)


def parts_of(x: Any, kth: tuple[int, ...]) -> Any:
    """A partition as it is documented: elements below, at, between and above the places."""
    ordered, found = np.sort(x), []
    edges = [ordered[place] for place in sorted(place % x.size for place in kth)]
    low = None
    for edge in dict.fromkeys(edges):
        found += [x[(x < edge) & (True if low is None else x > low)], x[x == edge]]
        low = edge
    return np.concatenate([*found, x[x > low]])


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i2", "i8", "u4"])
@pytest.mark.parametrize("kth", [(700,), (-3, 40, 1500)])
def test_partitions_keep_the_turn_of_each_part(dtype: str, kth: tuple[int, ...]) -> None:
    x = RNG.integers(0, 300, (2, 2000)).astype(dtype)
    found = {}
    for threads in (1, 2):
        for target in TARGETS:
            part, places = weft.compile(
                lambda x: (np.partition(x, kth), np.argpartition(x, kth)), threads=threads,
                target=target)(x)
            found[part.tobytes(), places.tobytes()] = part, places
    (part, places), = found.values()
    for row, got, at in zip(x, part, places, strict=True):
        np.testing.assert_array_equal(got, parts_of(row, kth))
        np.testing.assert_array_equal(row[at], got)
        np.testing.assert_array_equal(at[[*kth]], sorted_places(row)[[*kth]])


def test_the_largest_of_long_rows() -> None:
    x = RNG.integers(0, 50, (3, 3000)).astype("f4")
    x[1, ::500] = np.nan
    for count in (1, 5, 700):
        values, places = weft.compile(lambda x, count=count: weft.top_k(x, count))(x)
        wanted = weft.top_k(x, count)
        np.testing.assert_array_equal(values, wanted[0])
        np.testing.assert_array_equal(places, wanted[1])


def test_gradients_and_batches() -> None:
    """A median's gradient goes where a stable sort has the middle, of each row of a batch."""
    x = RNG.integers(0, 40, (3, 1500)).astype("f8")
    middles = [sorted_places(row)[[749, 750]] for row in x]
    found = weft.compile(weft.vmap(weft.grad(np.median)))(x)
    for row, at in zip(found, middles, strict=True):
        assert np.flatnonzero(row).tolist() == sorted(at) and set(row[at]) == {0.5}
    part = weft.grad(lambda x: np.sum(np.partition(x, 700) * np.arange(1500.0)))(x[0])
    places = parted_places(x[0], np.array([700]))
    np.testing.assert_array_equal(part[places], np.arange(1500.0))


def test_artifacts_hold_what_finds_ranks(tmp_path: Path) -> None:
    y = RNG.random(1000).astype("f4")
    weft.export(lambda x, y: (np.median(x), np.partition(y, 300)), "f64[n]", "f32[1000]",
                path=tmp_path / "m")
    loaded = weft.load(tmp_path / "m")
    for n in (1, 100, 3000):
        x = RNG.random(n)
        middle, part = loaded(x, y)
        assert middle == np.median(x)
        np.testing.assert_array_equal(part, parts_of(y, (300,)))
