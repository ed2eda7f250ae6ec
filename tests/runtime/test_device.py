"""The device layer by itself: memory, mirrors, processes, and programs on a device that is late."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import weft
from weft.codegen.gpu.source import emit_triton
from weft.frontend.engine.building.pipeline import Stages
from weft.ir.diagnose import Error
from weft.ir.indices.walk import evaluate
from weft.ir.interp.kernel import ChecksFailedError, run_kernel
from weft.ir.kernels.kernel import Kernel
from weft.ir.machine import GPU
from weft.ir.plans.image import KernelImage
from weft.runtime.device.device import Look, never
from weft.runtime.device.memory import ALIGNMENT, Memory, Ranges
from weft.runtime.device.mirrors import Mirrors
from weft.runtime.device.process import Process
from weft.runtime.device.program import DeviceProgram


def test_ranges_never_overlap_and_all_come_back() -> None:
    rng = random.Random(0)
    ranges, held = Ranges(64 * ALIGNMENT), list[Memory]()
    for _ in range(2000):
        if held and rng.random() < 0.5:
            held.pop(rng.randrange(len(held)))
        else:
            try:
                held.append(ranges.allocate(rng.randrange(6 * ALIGNMENT)))
            except MemoryError:
                held.pop(rng.randrange(len(held)))
        spans = sorted((each.address, each.address + max(1, each.size)) for each in held)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        assert not spans or spans[-1][1] <= ranges.capacity
    held.clear()
    assert ranges.allocate(64 * ALIGNMENT).address == 0
    with pytest.raises(MemoryError, match=f"of a device with {64 * ALIGNMENT}, of which"):
        ranges.allocate(65 * ALIGNMENT)


def test_a_mirror_goes_with_its_array() -> None:
    ranges, mirrors = Ranges(1 << 20), Mirrors()
    array = np.ones(3)
    mirrors.put(array, ranges.allocate(24))
    assert mirrors.find(array) is not None and mirrors.find(array.copy()) is None
    assert mirrors.find(3.0) is None  # type: ignore[arg-type]
    del array
    assert not len(mirrors) and ranges.allocate(1).address == 0


# -- processes ------------------------------------------------------------------------------------

ECHO = """
import json, os, socket, sys, time
with socket.socket(fileno=int(sys.argv[2])) as near, near.makefile("rwb") as file:
    file.write(json.dumps({BEGIN}).encode() + b"\\n"); file.flush()
    for line in file:
        asked = json.loads(line)
        if "exit" in asked:
            print("last words", file=sys.stderr, flush=True)
            os._exit(asked["exit"])
        time.sleep(asked.get("sleep", 0))
        file.write(line); file.flush()
"""


def started(begin: str = "{}") -> Process:
    code = ECHO.replace("{BEGIN}", begin)
    return Process("gpu:7", lambda memory, asked: [
        sys.executable, "-S", "-c", code, str(memory), str(asked)], os.memfd_create("test"))


def test_a_process_answers_until_it_ends() -> None:
    process = started()
    assert process.ready
    large = {"text": "x" * (1 << 20)}
    assert process.ask(large, never) == large and process.ready
    with pytest.raises(RuntimeError, match="gpu:7 has ended with status 3: last words"):
        process.ask({"exit": 3}, never)
    assert not process.ready


def test_a_process_that_says_why_it_cannot_begin() -> None:
    process = started("{'error': 'no such thing'}")
    with pytest.raises(Error, match="W421: gpu:7: no such thing"):
        process.ask({}, never)
    assert not process.ready


def test_who_stops_waiting_ends_the_process() -> None:
    process = started()
    process.ask({}, never)
    until = time.monotonic() + 0.1

    def look() -> None:
        if time.monotonic() > until:
            raise TimeoutError("late")

    with pytest.raises(TimeoutError, match="late"):
        process.ask({"sleep": 600}, look)
    assert not process.ready
    while os.path.exists(f"/proc/{process.pid}"):
        time.sleep(0.01)


def test_a_process_that_is_being_asked_is_not_ready() -> None:
    process, seen = started(), list[bool]()
    process.ask({"sleep": 0.01}, lambda: seen.append(process.ready))
    assert not any(seen) and process.ready


def test_what_cannot_be_started() -> None:
    with pytest.raises(Error, match="W421: gpu:7 cannot start: "):
        Process("gpu:7", lambda memory, asked: ["/no/such/program"], os.memfd_create("test"))


# -- a device that is late ------------------------------------------------------------------------


class Late:
    """A device whose streams do nothing before they have to: as a driver's may."""

    name = "gpu:9"

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self._kernels = {emit_triton(kernel).name: kernel for kernel in kernels}
        self.space = np.full(1 << 20, 0xA5, np.uint8)
        self._ranges = Ranges(self.space.size)
        self.kept = Mirrors()
        self.uploads = self.downloads = self.launches = 0

    def allocate(self, size: int) -> Memory:
        return self._ranges.allocate(size)

    def load(self, image: KernelImage) -> Kernel:
        return self._kernels[image.name]

    def stream(self, look: Look = never) -> LateStream:
        return LateStream(self)


class LateStream:
    def __init__(self, device: Late) -> None:
        self._device, self._work = device, list[Callable[[], None]]()

    def _bytes(self, address: int, size: int) -> np.ndarray[Any, Any]:
        return self._device.space[address:address + size]

    def upload(self, array: Any, address: int) -> None:
        data = np.frombuffer(array.tobytes(), np.uint8)

        def put() -> None:
            self._bytes(address, data.size)[:] = data

        self._device.uploads += 1
        self._work.append(put)

    def download(self, address: int, array: Any) -> None:
        self.synchronise()
        self._device.downloads += 1
        array[...] = self._bytes(address, array.nbytes).view(array.dtype).reshape(array.shape)

    def copy(self, source: int, target: int, size: int) -> None:
        def put() -> None:
            self._bytes(target, size)[:] = self._bytes(source, size)

        self._work.append(put)

    def launch(self, kernel: Kernel, grid: int, arguments: Sequence[int]) -> None:
        count = len(kernel.params)
        dims = dict(zip(kernel.dims, arguments[count:], strict=False))

        def run() -> None:
            buffers = {}
            for param, address in zip(kernel.params, arguments, strict=False):
                shape = [evaluate(dim, dims) for dim in param.type.shape]
                dtype = np.dtype(param.type.dtype.numpy)
                size = int(np.prod(shape, dtype=int)) * dtype.itemsize
                buffers[param.name] = self._bytes(address, size).view(dtype).reshape(shape)
            try:
                run_kernel(kernel, buffers, dims)
            except ChecksFailedError as failed:
                self._bytes(arguments[-1], 4).view(np.int32)[0] = min(failed.sites)

        self._device.launches += 1
        self._work.append(run)

    def synchronise(self) -> None:
        work, self._work = self._work, []
        for each in work:
            each()


def on_late(function: Any, *args: Any) -> tuple[DeviceProgram, Late]:
    stages = weft.compile(function).lower(*args).stages
    assert isinstance(stages, Stages)
    plan = stages.plan_for(GPU)
    device = Late(list(plan.kernels.values()))
    images = {name: emit_triton(kernel).image(kernel) for name, kernel in plan.kernels.items()}
    return DeviceProgram(plan, device, images, ["array"] * len(args),
                         sources=list(range(len(args))), written={}), device


def test_programs_wait_for_what_they_have_to_know_only() -> None:
    def f(x: Any) -> Any:
        y = weft.while_loop(lambda h: np.sum(h) < 50, lambda h: h * 2 + x, x)
        z, rows = weft.scan(lambda h, row: (np.cumsum(h) + row, h), y, weft.numpy.stack([x, y, y]))
        return weft.cond(z[0] > 3, lambda: z - 1, lambda: z + 1), rows

    x = np.arange(1.0, 6.0)
    program, device = on_late(f, x)
    for found, want in zip(program.run([x]), weft.compile(f)(x), strict=True):
        np.testing.assert_array_equal(found, want)
    assert device.uploads == 1
    assert device._ranges.allocate(1).address == 0  # nothing is held any more


def test_a_check_on_a_device_names_the_line() -> None:
    def f(x: Any, at: Any) -> Any:
        return np.tanh(x)[at] * 2

    x, at = np.arange(5.0), np.array([1, 4])
    program, _ = on_late(f, x, at)
    (found,) = program.run([x, at])
    np.testing.assert_array_equal(found, weft.compile(f)(x, at))
    with pytest.raises(IndexError, match=r"W124.*\n.*test_device"):
        program.run([x, at + 1])
    with pytest.raises(Error, match="W303"):
        program.run([x.astype(np.float32), at])
    assert program.attempt(x.astype(np.float32), at) is NotImplemented


def test_programs_of_a_device_run_side_by_side() -> None:
    program, _ = on_late(lambda x: np.cumsum(x) * 2, np.ones(8))
    results: dict[int, Any] = {}
    threads = [threading.Thread(target=lambda at=at: results.setdefault(
        at, program.run([np.full(8, float(at))])[0])) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for at, found in results.items():
        np.testing.assert_array_equal(found, np.arange(1, 9) * 2.0 * at)
    assert len(results) == 4
