"""What this machine can do at most, measured in the run that needs it.

Arithmetic: independent chains of fused multiply-adds in registers, at the widest vector. Memory:
reading, and copying with ordinary or streaming stores (the better counts), for a size in the
middle of each cache and one far beyond them. The loops are LLVM IR, compiled by Weft's own JIT, so
they are what generated code could reach.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from weft.codegen.cpu.jit import compile_object, cpu_target, jit_for
from weft.codegen.cpu.text import FunctionText, module_text
from weft.ir.machine import Machine

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
UNROLL = 4  # vectors that one turn of a memory loop takes
PIECE = 32 << 20  # bytes of an array beyond the caches that one run walks, about a millisecond

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Tier:
    """A cache level or DRAM: bytes a second, for working sets up to ``capacity`` bytes."""

    name: str
    capacity: float
    read: float
    copy: float


@dataclass(frozen=True)
class Limit:
    """The least time of a workload in seconds, and what sets it."""

    seconds: float
    by: str


@dataclass(frozen=True)
class Limits:
    """Peaks for a number of threads: FLOP/s by dtype, and the tiers from small to large."""

    threads: int
    flops: dict[str, float]
    tiers: tuple[Tier, ...]

    def of(self, read: int, written: int, flop: int, dtype: str) -> Limit:
        """The limit of work that reads and writes so many bytes and does ``flop`` operations."""
        memory = self.memory(read, written)
        if dtype not in self.flops:
            return memory
        arithmetic = Limit(flop / self.flops[dtype], "FLOP")
        return max(memory, arithmetic, key=lambda limit: limit.seconds)

    def memory(self, read: int, written: int) -> Limit:
        """The limit that bytes set, and the level that most of them come from.

        What is written counts as copied from as much of what is read; the rest is only read.
        Every level serves, of each call's bytes, as many as it can hold.
        """
        total = read + written
        copied = 2 * min(read, written) / total if total else 0.0
        parts = []
        below = 0.0
        for tier in self.tiers:
            held = max(0.0, min(total, tier.capacity) - below)
            parts.append(Limit(held * (copied / tier.copy + (1 - copied) / tier.read), tier.name))
            below = tier.capacity
        most = max(parts, key=lambda part: part.seconds)
        return Limit(sum(part.seconds for part in parts), most.by)


def _peak(name: str, element: str, target: Machine) -> FunctionText:
    """``rounds`` turns of one FMA on each of as many accumulators as fit the registers."""
    lanes = target.vector_bits // (32 if element == "float" else 64)
    vector, chains = f"<{lanes} x {element}>", 3 * target.registers // 4
    f = FunctionText("void", name, [("ptr", "out"), ("ptr", "factors"), ("i64", "rounds")])
    a = f(f"load {vector}, ptr %factors, align 8")
    step = f(f"getelementptr {vector}, ptr %factors, i64 1")
    b = f(f"load {vector}, ptr {step}, align 8")
    suffix = f"v{lanes}f{32 if element == 'float' else 64}"
    # Different first values: equal chains would be found to be one.
    first = [f(f"load {vector}, ptr {f(f'getelementptr i8, ptr %factors, i64 {8 * at}')}, align 8")
             for at in range(chains)]
    with f.carried_loop("0", "%rounds", 1, [(vector, value) for value in first]) as loop:
        loop.next = [f.call(vector, f"llvm.fma.{suffix}", (vector, value), (vector, a), (vector, b))
                     for value in loop.values]
    for at, value in enumerate(loop.results):
        f.do(f"store {vector} {value}, ptr {f(f'getelementptr {vector}, ptr %out, i64 {at}')}, "
             "align 8")
    f.ret()
    return f


def _copy(name: str, target: Machine, hint: str) -> FunctionText:
    """Copy ``count`` vectors, a multiple of UNROLL, ``rounds`` times over."""
    vector, size = f"<{target.vector_bits // 32} x float>", target.vector_bits // 8
    f = FunctionText("void", name, [("ptr", "to"), ("ptr", "from"), ("i64", "count"),
                                    ("i64", "rounds")])
    with f.loop("0", "%rounds"), f.loop("0", "%count", UNROLL) as i:
        for at in range(UNROLL):
            j = f(f"add i64 {i}, {at}")
            value = f(f"load {vector}, ptr {f(f'getelementptr {vector}, ptr %from, i64 {j}')}, "
                      f"align {size}")
            f.do(f"store {vector} {value}, ptr {f(f'getelementptr {vector}, ptr %to, i64 {j}')}, "
                 f"align {size}{hint}")
    f.ret()
    return f


def _read(name: str, target: Machine) -> FunctionText:
    """Read ``count`` vectors ``rounds`` times; their exclusive or keeps the loads alive."""
    vector, size = f"<{target.vector_bits // 32} x i32>", target.vector_bits // 8
    f = FunctionText("void", name, [("ptr", "to"), ("ptr", "from"), ("i64", "count"),
                                    ("i64", "rounds")])
    start = [f(f"load {vector}, ptr %from") for _ in range(UNROLL)]
    with f.carried_loop("0", "%rounds", 1, [(vector, value) for value in start]) as outer:
        with f.carried_loop("0", "%count", UNROLL,
                            [(vector, value) for value in outer.values]) as inner:
            for at, value in enumerate(inner.values):
                j = f(f"add i64 {inner.index}, {at}")
                found = f(f"load {vector}, ptr {f(f'getelementptr {vector}, ptr %from, i64 {j}')}, "
                          f"align {size}")
                inner.next.append(f(f"xor {vector} {value}, {found}"))
        outer.next = inner.results
    for at, value in enumerate(outer.results):
        f.do(f"store {vector} {value}, ptr {f(f'getelementptr {vector}, ptr %to, i64 {at}')}")
    f.ret()
    return f


class Probes:
    """The compiled loops, and arrays for them to work on."""

    def __init__(self, cpu: str | None = None) -> None:
        target = cpu_target(cpu)
        functions = [_peak("peak_f32", "float", target), _peak("peak_f64", "double", target),
                     _copy("copy", target, ""), _copy("stream", target, ", !nontemporal !0"),
                     _read("read", target)]
        text = module_text(functions, ["!0 = !{i32 1}"])
        names = tuple(function.name for function in functions)
        self._library = jit_for(target).link(compile_object(text, target).object, names)
        self.target = target

    def _function(self, name: str, signature: str) -> Callable[..., None]:
        kinds = {"p": ctypes.c_void_p, "i": ctypes.c_int64}
        made = ctypes.CFUNCTYPE(None, *(kinds[letter] for letter in signature))
        return made(self._library.addresses[name])

    def flops(self, dtype: str, threads: int) -> float:
        """FLOP/s of all threads together."""
        call = self._function(f"peak_{dtype}", "ppi")
        number = np.dtype(dtype.replace("f", "float"))
        lanes = self.target.vector_bits // 8 // number.itemsize
        chains, rounds = 3 * self.target.registers // 4, 500_000
        factors = np.ones(64 * lanes, number)  # ones times one, plus one: the values stay finite
        outs = [np.empty(chains * lanes, number) for _ in range(threads)]
        seconds = _together([partial(call, out.ctypes.data, factors.ctypes.data, rounds)
                             for out in outs])
        return float(2 * rounds * chains * lanes * threads / seconds)

    def bandwidth(self, names: Sequence[str], each: int, threads: int) -> float:
        """Bytes a second of the fastest of the loops ``names`` over ``each`` bytes a thread.

        A large array is walked in pieces: the shorter a run, the more likely is one of many that
        nothing disturbs.
        """
        step = UNROLL * self.target.vector_bits // 8
        part = max(each // 2 // step * step, step)
        piece = min(part, PIECE)
        rounds = max(1, 4 * PIECE // piece)
        arrays = [(_aligned(part), _aligned(part)) for _ in range(threads)]
        best = 0.0
        for name in names:
            call = self._function(name, "ppii")
            work = [partial(self._walk, call, pair, piece, rounds if part == piece else 1,
                            itertools.cycle(range(part // piece)), name == "read")
                    for pair in arrays]
            moved = 2 * piece * (rounds if part == piece else 1) * threads
            best = max(best, moved / _together(work))
        return best

    def _walk(self, call: Callable[..., None], pair: tuple[Bytes, Bytes], piece: int, rounds: int,
              turns: Iterator[int], both: bool) -> None:
        """One run over the next piece of a pair of arrays; ``both`` reads one, then the other."""
        start, count = next(turns) * piece, piece // (self.target.vector_bits // 8)
        to, source = (array.ctypes.data + start for array in pair)
        call(to, source, count, rounds)
        if both:
            call(source, to, count, rounds)


def _aligned(size: int) -> Bytes:
    """Zeros that begin at a page, written once so that their pages exist."""
    raw = np.zeros(size + 4096, np.uint8)
    raw[:] = 0
    start = -raw.ctypes.data % 4096
    return raw[start:start + size]


def _together(work: Sequence[Callable[[], Any]], seconds: float = 0.4) -> float:
    """Seconds that all of ``work`` takes side by side, a thread for each.

    The best of the runs in ``seconds``: there are hundreds, so that a machine with other work
    still has some in which nothing else ran.
    """
    spans: list[list[tuple[float, float]]] = [[] for _ in work]
    end = time.perf_counter() + seconds
    going = True

    def decide() -> None:
        nonlocal going
        going = time.perf_counter() < end or not spans[0]

    barrier = threading.Barrier(len(work), action=decide)

    def worker(at: int) -> None:
        while True:
            barrier.wait()
            if not going:
                return
            start = time.perf_counter()
            work[at]()
            spans[at].append((start, time.perf_counter()))

    threads = [threading.Thread(target=worker, args=(at,)) for at in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return min(float(max(end for _, end in run) - min(start for start, _ in run))
               for run in zip(*spans, strict=True))


def cache_sizes() -> dict[int, int]:
    """Bytes of the data caches of the first CPU, by level."""
    found = {}
    for folder in sorted(CACHES.glob("index*")):
        kind, size = ((folder / name).read_text().strip() for name in ("type", "size"))
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if match and kind != "Instruction":
            unit = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[match[2]]
            found[int((folder / "level").read_text())] = int(match[1]) * unit
    # Machines that do not tell get common sizes.
    return found or {1: 32 << 10, 2: 1 << 20, 3: 32 << 20}


class Measured:
    """The machine's limits by number of threads, each measured once."""

    def __init__(self, target: str | None = None) -> None:
        self._target = target
        self._known: dict[int, Limits] = {}

    @cached_property
    def _probes(self) -> Probes:
        return Probes(self._target)

    def limits(self, threads: int) -> Limits:
        """Peaks for ``threads`` threads; some seconds when first asked for."""
        if threads not in self._known:
            probes, sizes = self._probes, cache_sizes()
            flops = {dtype: probes.flops(dtype, threads) for dtype in ("f32", "f64")}
            tiers = []
            for level, size in sorted(sizes.items()):
                shared = level >= 3  # by all cores; the smaller ones are each core's own
                capacity = size if shared else size * threads
                tiers.append(self._tier(f"L{level}", capacity, capacity // 2, threads))
            far = 8 * max(sizes.values())
            tiers.append(self._tier("DRAM", float("inf"), far, threads))
            self._known[threads] = Limits(threads, flops, tuple(tiers))
        return self._known[threads]

    def _tier(self, name: str, capacity: float, used: int, threads: int) -> Tier:
        each = used // threads
        return Tier(name, capacity, self._probes.bandwidth(("read",), each, threads),
                    self._probes.bandwidth(("copy", "stream"), each, threads))


def describe(target: str | None = None) -> dict[str, Any]:
    """The machine in words and numbers, for the record."""
    model = "unknown"
    try:
        info = Path("/proc/cpuinfo").read_text()
        model = next(line.split(":")[1].strip() for line in info.splitlines()
                     if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"cpu": model, "vector bits": cpu_target(target).vector_bits,
            "cpus": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0],
            "caches": cache_sizes()}
