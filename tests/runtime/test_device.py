"""The device layer by itself: memory, mirrors, processes, and programs on a device that is late."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_cuda import Driver, compiled

import weft
from weft.codegen.gpu.source import emit_triton
from weft.frontend.engine.building.pipeline import Stages
from weft.ir.diagnose import Error
from weft.ir.machine import GPU
from weft.ir.plans.image import Binary, KernelImage
from weft.runtime.device.cuda import Cuda, find_driver
from weft.runtime.device.device import never
from weft.runtime.device.memory import ALIGNMENT, Memory, Ranges
from weft.runtime.device.mirrors import Mirrors
from weft.runtime.device.process import Process
from weft.runtime.device.program import DeviceProgram
from weft.runtime.remote import Remote, shaped
from weft.runtime.state import Cell, assign, cut, merged


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


# -- CUDA, whose driver is ours -----------------------------------------------------------------


def on_cuda(function: Any, *args: Any) -> tuple[DeviceProgram, Cuda, Driver]:
    stages = weft.compile(function).lower(*args).stages
    assert isinstance(stages, Stages)
    plan = stages.plan_for(GPU)
    driver = Driver(list(plan.kernels.values()))
    device = Cuda("gpu:9", 0, driver, compiled)
    images = {name: emit_triton(kernel) for name, kernel in plan.kernels.items()}
    program = DeviceProgram(plan, device, images, ["array"] * len(args),
                            sources=list(range(len(args))), written={})
    return program, device, driver


def test_programs_wait_for_what_they_have_to_know_only() -> None:
    def f(x: Any) -> Any:
        y = weft.while_loop(lambda h: np.sum(h) < 50, lambda h: h * 2 + x, x)
        z, rows = weft.scan(lambda h, row: (np.cumsum(h) + row, h), y, weft.numpy.stack([x, y, y]))
        return weft.cond(z[0] > 3, lambda: z - 1, lambda: z + 1), rows

    x = np.arange(1.0, 6.0)
    program, device, driver = on_cuda(f, x)
    for found, want in zip(program.run([x]), weft.compile(f)(x), strict=True):
        np.testing.assert_array_equal(found, want)
    assert device.uploads == 1
    del found
    device.allocate(1)
    assert driver.held <= 1  # nothing else is held any more


def test_a_check_on_a_device_names_the_line() -> None:
    def f(x: Any, at: Any) -> Any:
        return np.tanh(x)[at] * 2

    x, at = np.arange(5.0), np.array([1, 4])
    program, *_ = on_cuda(f, x, at)
    (found,) = program.run([x, at])
    np.testing.assert_array_equal(found, weft.compile(f)(x, at))
    with pytest.raises(IndexError, match=r"W124.*\n.*test_device"):
        program.run([x, at + 1])
    with pytest.raises(Error, match="W303"):
        program.run([x.astype(np.float32), at])
    assert program.attempt(x.astype(np.float32), at) is NotImplemented


def test_programs_of_a_device_run_side_by_side() -> None:
    program, *_ = on_cuda(lambda x: np.cumsum(x) * 2, np.ones(8))
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


def doubled(x: Any) -> Any:
    return np.cumsum(x) * 2


def test_a_gpu_without_memory_and_one_that_breaks() -> None:
    x = np.ones(5)
    program, device, driver = on_cuda(doubled, x)
    want = np.arange(1, 6) * 2.0
    np.testing.assert_array_equal(program.run([x])[0], want)
    driver.fail["cuMemAllocFromPoolAsync"] = 2, "CUDA_ERROR_OUT_OF_MEMORY"
    with pytest.raises(MemoryError, match="gpu:9 has no memory left"):
        program.run([x])
    np.testing.assert_array_equal(program.run([x])[0], want)
    for function in ("cuLaunchKernel", "cuStreamQuery", "cuMemcpyDtoHAsync"):
        driver.fail[function] = 1, "CUDA_ERROR_ILLEGAL_ADDRESS"
        before = driver.calls.count("cuDevicePrimaryCtxReset")
        with pytest.raises(Error, match=f"W421: gpu:9 has failed: {function} says CUDA_ERROR_ILL"):
            program.run([x])
        assert driver.calls.count("cuDevicePrimaryCtxReset") == before + 1
        np.testing.assert_array_equal(program.run([x])[0], want)  # with its kernels loaded again
    driver.fail["cuMemcpyHtoDAsync"] = 1, "CUDA_ERROR_INVALID_VALUE"
    with pytest.raises(Error, match="cuMemcpyHtoDAsync says CUDA_ERROR_INVALID_VALUE"):
        program.run([x])
    assert not device.kept and driver.calls.count("cuDevicePrimaryCtxReset") == 3
    np.testing.assert_array_equal(program.run([x])[0], want)


def test_a_thread_that_finds_an_error_late_leaves_the_new_beginning_alone() -> None:
    _, device, driver = on_cuda(doubled, np.ones(5))
    before, other = device.stream(), device.stream()
    driver.fail["cuStreamQuery"] = 1, "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(Error, match="W421"):
        before.synchronise()
    memory = device.allocate(40)
    device.stream().upload(np.arange(5.0), memory.address)
    driver.fail["cuStreamQuery"] = 1, "CUDA_ERROR_CONTEXT_IS_DESTROYED"
    with pytest.raises(Error, match="W421"):
        other.synchronise()
    found = np.empty(5)
    device.stream().download(memory.address, found)
    np.testing.assert_array_equal(found, np.arange(5.0))
    assert device.epoch == driver.calls.count("cuDevicePrimaryCtxReset") == 1


def test_whoever_stops_waiting_for_a_gpu_leaves_it_usable() -> None:
    x = np.ones(5)
    program, _, driver = on_cuda(doubled, x)

    def look() -> None:
        raise TimeoutError("late")

    with pytest.raises(TimeoutError, match="late"):
        program.on_device([x], look=look)
    assert driver.work  # which the next step waits for
    np.testing.assert_array_equal(program.run([x])[0], np.arange(1, 6) * 2.0)


def test_kernels_of_a_gpu_are_compiled_once_and_go_with_their_programs() -> None:
    made: list[str] = []

    def counted(image: KernelImage, target: str) -> Binary:
        made.append(image.name)
        return compiled(image, target)

    program, device, driver = on_cuda(doubled, np.ones(5))
    images = [emit_triton(kernel) for kernel in program.plan.kernels.values()]
    device = Cuda("gpu:9", 0, driver, counted)
    first, second = device.load(images), device.load([*images, *images])
    assert second == first * 2 and len(made) == len(images)
    stream = device.stream()
    memory = [device.allocate(40) for _ in images[0].signature]
    stream.launch(first[0], 1, [each.address for each in memory])
    assert len(driver.modules) == 1
    del first, second
    (again,) = device.load(images[:1])
    stream.launch(again, 1, [each.address for each in memory])
    assert len(made) == len(images) + 1 and len(driver.modules) == 1


def test_what_triton_cannot_compile_is_told() -> None:
    def refuse(image: KernelImage, target: str) -> Binary:
        raise ValueError("too large\nfor this")

    program, device, driver = on_cuda(doubled, np.ones(5))
    device = Cuda("gpu:9", 0, driver, refuse)
    images = [emit_triton(kernel) for kernel in program.plan.kernels.values()]
    with pytest.raises(Error, match=r"W421: gpu:9 cannot run the kernel .*ValueError: too large"):
        device.load(images)


def test_a_gpu_is_not_to_be_had_in_a_forked_process() -> None:
    program, device, _ = on_cuda(doubled, np.ones(5))
    device._owner += 1
    with pytest.raises(Error, match=r"W421: .*forked.*"):
        program.run([np.ones(5)])


def test_the_driver_says_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Driver([])
    package = SimpleNamespace(driver=ours)
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bindings=package))
    monkeypatch.setitem(sys.modules, "cuda.bindings", package)
    assert find_driver.__wrapped__() == (ours, 1, "")
    ours.fail["cuInit"] = 1, "CUDA_ERROR_NO_DEVICE"
    assert find_driver.__wrapped__()[1:] == (0, "the driver says CUDA_ERROR_NO_DEVICE")
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert find_driver.__wrapped__()[1:] == (0, "the package cuda-bindings is not installed")


def test_variables_stay_on_the_device_until_they_are_asked_for() -> None:
    x, driver = np.ones(5), Driver([])
    device = Cuda("gpu:9", 0, driver, compiled)
    memory = device.allocate(x.nbytes)
    device.stream().upload(x, memory.address)
    cell = Cell(np.zeros(5))
    assign([cell], [Remote(device, memory, (5,), x.dtype)])
    assert device.downloads == 0 and shaped(cell.held) is cell.held
    np.testing.assert_array_equal(cell.value, x)
    assert cell.value is cell.value and not cell.value.flags.writeable and device.downloads == 1
    np.testing.assert_array_equal(np.asarray(cell.held, np.float32), x.astype(np.float32))
    np.testing.assert_array_equal(cut([cell, cell])[1], x)
    other = Remote(device, memory, (5,), x.dtype)
    driver.fail["cuStreamQuery"] = 1, "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(Error, match="W421"):
        device.stream().synchronise()
    np.testing.assert_array_equal(cell.value, x)  # which the host has
    with pytest.raises(Error, match="W421: a value was lost with the memory of gpu:9"):
        np.asarray(other)


def test_a_fork_downloads_what_its_child_may_ask_for() -> None:
    x, driver = np.ones(5), Driver([])
    device = Cuda("gpu:9", 0, driver, compiled)
    memory = device.allocate(x.nbytes)
    device.stream().upload(x, memory.address)
    value = Remote(device, memory, (5,), x.dtype)
    child = os.fork()
    if child == 0:
        os._exit(int(value.array.sum()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5


def test_an_update_that_did_not_wait_merges_values_of_devices() -> None:
    x, driver = np.ones(5), Driver([])
    device = Cuda("gpu:9", 0, driver, compiled)
    memory = device.allocate(x.nbytes)
    device.stream().upload(x * 3, memory.address)
    new = Remote(device, memory, (5,), x.dtype)
    assert merged(x, new, x) is new and device.downloads == 0
    np.testing.assert_array_equal(np.asarray(merged(x, new, x * 2)), x * 4)
