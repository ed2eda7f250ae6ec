"""Steps over logical devices: what a Send/Recv pair costs, and what a second device gains.

    python bench/devices.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

import weft

BOTH = ("cpu:0", "cpu:1")


def median(call: Callable[[], Any], times: int, repeat: int = 15) -> float:
    """Microseconds of a call: the median of some averages."""
    call()
    found = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(times):
            call()
        found.append((time.perf_counter() - start) / times)
    return 1e6 * statistics.median(found)


def chain(crossings: int, devices: tuple[str, ...]) -> Callable[[], Any]:
    """A step that goes from one device to the other again and again."""
    g = weft.Graph()
    with g.as_default():
        y = x = weft.placeholder("f32", (16,), name="x")
        for at in range(crossings + 1):
            with weft.device(f"cpu:{at % 2}") if len(devices) > 1 else nullcontext():
                y = y * 2 + x
    call = weft.Session(g, devices=devices).make_callable(y, [x])
    array = np.ones(16, np.float32)
    return lambda: call(array)


def branches(devices: tuple[str, ...], **options: Any) -> Callable[[], Any]:
    """Two heavy branches that meet at the end."""
    def on(name: str) -> AbstractContextManager[Any]:
        return weft.device(name) if len(devices) > 1 else nullcontext()

    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (512, 512), name="x")
        a = b = x
        for _ in range(8):
            with on("cpu:0"):
                a = np.tanh(a @ x)
            with on("cpu:1"):
                b = np.sin(b @ x)
        y = a + b
    call = weft.Session(g, devices=devices, **options).make_callable(y, [x])
    array = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32) / 16
    return lambda: call(array)


def loops(devices: tuple[str, ...]) -> Callable[[], Any]:
    """Two loops of small products, which several threads compute no faster than one; nothing is
    said of where."""
    g = weft.Graph()
    rng = np.random.default_rng(0)
    weights = (rng.normal(size=(256, 256)) / 16).astype(np.float32)
    with g.as_default():
        x, y = (weft.placeholder("f32", (16, 256), name=name) for name in "xy")
        a, b = (weft.fori_loop(0, 200, lambda i, h: np.tanh(h @ weights), each) for each in (x, y))
        z = a + b
    call = weft.Session(g, devices=devices).make_callable(z, [x, y])
    array = rng.normal(size=(16, 256)).astype(np.float32)
    return lambda: call(array, array)


def main() -> None:
    none, ten = (median(chain(count, BOTH), 400) for count in (2, 12))
    print(f"Send/Recv pair between two devices     {(ten - none) / 5:7.2f} us")
    print(f"step of three segments                 {none:7.2f} us")
    print(f"the same step on one device            {median(chain(2, BOTH[:1]), 4000):7.2f} us")
    one, two = branches(BOTH[:1], threads=1), branches(BOTH)
    print(f"two heavy branches, one device, 1 thread {median(one, 1, 9) / 1e3:7.2f} ms")
    print(f"two heavy branches, one device           "
          f"{median(branches(BOTH[:1]), 1, 9) / 1e3:7.2f} ms")
    print(f"two heavy branches, two devices          {median(two, 1, 9) / 1e3:7.2f} ms")
    print(f"two loops, one device                    {median(loops(BOTH[:1]), 1) / 1e3:7.2f} ms")
    print(f"two loops, two devices, placed by cost   {median(loops(BOTH), 1) / 1e3:7.2f} ms")


if __name__ == "__main__":
    main()
