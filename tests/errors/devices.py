"""Wrong programs of steps over devices; see ``programs``."""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.engine.building.gpu import gpu_device

from .programs import wrong

BOTH = ("cpu:0", "cpu:1")


@wrong("W401")
def a_session_with_a_device_twice() -> None:
    weft.Session(weft.Graph(), devices=("cpu:1", "cpu:1"))  # here


@wrong("W401")
def a_session_without_devices() -> None:
    weft.Session(weft.Graph(), devices=())  # here


@wrong("W113", NotImplementedError)
def a_transfer_that_is_not_known() -> None:
    weft.Session(weft.Graph(), devices=BOTH, transfer="f16")  # here


@wrong("W124", IndexError)
def an_index_out_of_range_on_another_device() -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        at = weft.placeholder("i64", (), name="at")
        with weft.device("cpu:0"):
            y = np.tanh(x)
        with weft.device("cpu:1"):
            z = y[at]  # here
    weft.Session(g, devices=BOTH).run([y, z], {x: np.ones(3), at: 3})


@wrong("W105", ValueError)
def sizes_that_differ_over_devices() -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64[b,2]", name="x")
        y = weft.placeholder("f64[b]", name="y")
        with weft.device("cpu:0"):
            one = np.tanh(x).sum()
        with weft.device("cpu:1"):
            two = np.tanh(y).sum()
    weft.Session(g, devices=BOTH).run([one, two], {x: np.ones((3, 2)), y: np.ones(4)})  # here


@wrong("W413", TimeoutError)
def a_step_over_devices_that_takes_too_long() -> None:
    def slow(x: Any) -> Any:
        time.sleep(0.05)
        return x

    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        with weft.device("cpu:0"):
            y = weft.host_call(slow, "f64[3]", x)
        with weft.device("cpu:1"):
            z = np.tanh(y)
    weft.Session(g, devices=BOTH).run(z, {x: np.ones(3)}, timeout=0.01)  # here


def gpu() -> tuple[str, str]:
    """The devices of a session with a GPU, where there can be one."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed (the extra 'gpu')")
    return "cpu:0", "gpu:0"


@wrong("W401")
def a_gpu_without_a_number() -> None:
    weft.Session(weft.Graph(), devices=("cpu:0", "gpu"))  # here


@wrong("W401")
def a_function_of_the_host_on_a_gpu() -> None:
    devices = gpu()
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (2, 2), name="x")
        with weft.device("gpu:0"):
            y = np.linalg.inv(x) * 2  # here
    weft.Session(g, devices=devices).run(y, {x: np.eye(2)})


@wrong("W401")
def a_queue_on_a_gpu() -> None:
    devices = gpu()
    queue = weft.FIFOQueue(3, ["f64[2]"], name="batches")
    g = weft.Graph()
    with g.as_default(), weft.device("gpu:0"):
        y = queue.dequeue() * 2  # here
    weft.Session(g, devices=devices).run(y)


@wrong("W401")
def a_function_of_the_host_in_a_function_for_a_gpu() -> None:
    gpu()

    @weft.compile(device="gpu:0")
    def solve(x: Any) -> Any:
        return np.linalg.inv(x) * 2  # here

    solve(np.eye(2))


@wrong("W113", NotImplementedError)
def native_code_of_a_gpu() -> None:
    gpu()
    weft.compile(device="gpu:0")(np.tanh).lower(np.ones(3)).as_text("llvm")  # here


@wrong("W124", IndexError)
def an_index_out_of_range_on_a_gpu() -> None:
    devices = gpu()
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        at = weft.placeholder("i64", (), name="at")
        y = np.tanh(x)
        with weft.device("gpu:0"):
            z = y[at]  # here
    weft.Session(g, devices=devices).run(z, {x: np.ones(3), at: 3})


@wrong("W421", RuntimeError)
def a_gpu_that_fails() -> None:
    gpu()
    double = weft.compile(device="gpu:0")(lambda x: x * 2)
    double(np.ones(3))
    process = gpu_device("gpu:0").pid
    assert process is not None
    os.kill(process, signal.SIGKILL)
    double(np.ones(3))  # here
