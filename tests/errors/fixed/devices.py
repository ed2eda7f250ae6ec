"""``errors/devices.py`` with the fixes applied; see ``fixing``."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np

import weft
from weft.frontend.engine.building.gpu import gpu_device

from ..devices import BOTH, gpu
from .fixing import fixed


def doubled(*devices: str, **options: Any) -> Any:
    """A step of a session with such devices."""
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        y = x * 2
    return weft.Session(g, devices=devices, **options).run(y, {x: np.ones(3)})


@fixed('devices=("cpu:0", "cpu:1"')
def a_session_with_a_device_twice() -> Any:
    g = weft.Graph()
    with g.as_default():
        y = weft.Variable(np.ones(3), name="twice") * 2
    return weft.Session(g, devices=("cpu:0", "cpu:1")).run(y), np.full(3, 2.0)


@fixed('devices=("cpu:0", "cpu:1"')
def a_session_without_devices() -> Any:
    g = weft.Graph()
    with g.as_default():
        y = weft.Variable(np.ones(3), name="two_devices") + 1
    return weft.Session(g, devices=("cpu:0", "cpu:1")).run(y), np.full(3, 2.0)


@fixed("'bf16'")
def a_transfer_that_is_not_known() -> Any:
    return doubled(*BOTH, transfer='bf16'), np.full(3, 2.0)


@fixed("indices run from -n to n - 1")
def an_index_out_of_range_on_another_device() -> Any:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        at = weft.placeholder("i64", (), name="at")
        with weft.device("cpu:0"):
            y = np.tanh(x)
        with weft.device("cpu:1"):
            z = y[at]
    return weft.Session(g, devices=BOTH).run(z, {x: np.arange(3.0), at: -1}), np.tanh(2.0)


@fixed("dims with one symbol have one size")
def sizes_that_differ_over_devices() -> Any:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64[b,2]", name="x")
        y = weft.placeholder("f64[b]", name="y")
        with weft.device("cpu:0"):
            one = x.sum()
        with weft.device("cpu:1"):
            two = y.sum()
    s = weft.Session(g, devices=BOTH)
    return s.run([one, two], {x: np.ones((4, 2)), y: np.ones(4)}), [8.0, 4.0]


@fixed("give it a longer timeout")
def a_step_over_devices_that_takes_too_long() -> Any:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        with weft.device("cpu:0"):
            y = weft.host_call(np.sort, "f64[3]", x)
        with weft.device("cpu:1"):
            z = y * 2
    return weft.Session(g, devices=BOTH).run(z, {x: [3, 1, 2]}, timeout=100), [2.0, 4, 6]


@fixed('"gpu:0"')
def a_gpu_without_a_number() -> Any:
    gpu()
    return doubled("cpu:0", "gpu:0"), np.full(3, 2.0)


@fixed("leave it out of the")
def a_function_of_the_host_on_a_gpu() -> Any:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (2, 2), name="x")
        inverse = np.linalg.inv(x)
        with weft.device("gpu:0"):
            y = inverse * 2
    return weft.Session(g, devices=gpu()).run(y, {x: np.eye(2)}), 2 * np.eye(2)


@fixed("leave it out of the")
def a_queue_on_a_gpu() -> Any:
    queue = weft.FIFOQueue(3, ["f64[2]"], name="batches")
    queue.enqueue([1.0, 2.0])
    g = weft.Graph()
    with g.as_default():
        rows = queue.dequeue()
        with weft.device("gpu:0"):
            y = rows * 2
    return weft.Session(g, devices=gpu()).run(y), [2.0, 4.0]


@fixed("compile the function without")
def a_function_of_the_host_in_a_function_for_a_gpu() -> Any:
    return weft.compile(lambda x: np.linalg.inv(x) * 2)(np.eye(2)), 2 * np.eye(2)


@fixed("'triton'")
def native_code_of_a_gpu() -> Any:
    gpu()
    text = weft.compile(device="gpu:0")(np.tanh).lower(np.ones(3)).as_text('triton')
    return "tl.store" in text, True


@fixed("indices run from -n to n - 1")
def an_index_out_of_range_on_a_gpu() -> Any:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        at = weft.placeholder("i64", (), name="at")
        with weft.device("gpu:0"):
            z = np.tanh(x)[at]
    return weft.Session(g, devices=gpu()).run(z, {x: np.arange(3.0), at: -3}), 0.0


@fixed("run the step again")
def a_gpu_that_fails() -> Any:
    gpu()
    double = weft.compile(device="gpu:0")(lambda x: x * 2)
    double(np.ones(3))
    process = gpu_device("gpu:0").pid
    assert process is not None
    os.kill(process, signal.SIGKILL)
    try:
        double(np.ones(3))
    except weft.Error:
        return double(np.ones(3)), np.full(3, 2.0)
    raise AssertionError("the process was there")
