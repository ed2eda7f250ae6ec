"""Wrong programs of steps over devices; see ``programs``."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import weft

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
