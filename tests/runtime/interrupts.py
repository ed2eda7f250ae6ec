"""Interrupts wherever the runtime can have one, one after the other, and what is left after each.

    python tests/runtime/interrupts.py

Python looks for signals where a function begins and where a call has ended. A tracer raises
KeyboardInterrupt at the k-th such place of a step, for each k until the step ends without one. Then
variables are old or new as a whole and agree with the queues, no element is lost or there twice, no
lock is held, and the next step works. A second round calls the queues at each place instead, as a
signal handler or finalizer may. Status 1 if anything is wrong. The suite runs a sample
(``test_interruptions``).
"""

from __future__ import annotations

import argparse
import contextlib
import dis
import functools
import itertools
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import weft

_RUNTIME = str(Path(weft.__file__).parent / "runtime")
_TOTAL = 1000  # what all elements and the variable sum up to


@functools.cache
def _places(code: CodeType) -> frozenset[int]:
    """The offsets of what comes after a place where Python looks for signals, and is handled by
    the same handler."""
    table = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]

    def handler(offset: int) -> int:
        return next((each.target for each in table if each.start <= offset < each.end), -1)

    steps = list(dis.get_instructions(code))
    return frozenset(
        after.offset for before, after in itertools.pairwise(steps)
        if before.opname in ("RESUME", "CALL", "CALL_FUNCTION_EX", "CALL_KW")
        and handler(before.offset) == handler(after.offset))


class Interrupt:
    """Does something at place number ``at`` of the runtime, once: by default, it interrupts."""

    def __init__(self, at: int, act: Callable[[], Any] | None = None) -> None:
        self.left, self.place, self._act = at, "", act

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_RUNTIME):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and self.left >= 0 and frame.f_lasti in _places(frame.f_code):
            self.left -= 1
            if self.left < 0:
                self.place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                if self._act is None:
                    raise KeyboardInterrupt
                self._act()
        return self

    def during(self, call: Callable[[], Any]) -> bool:
        """Call it; True if it was interrupted."""
        sys.settrace(self)
        try:
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False


class Model:
    """Elements go around: from a queue to a variable, to another queue, and back."""

    def __init__(self, devices: tuple[str, ...]) -> None:
        g = weft.Graph()
        self.one = weft.FIFOQueue(8, "i64[]", name="one")
        self.two = weft.RandomShuffleQueue(8, "i64[]", seed=0, name="two")
        self.v = weft.Variable(0, name="v")
        self.w = weft.Variable(0, name="w")
        with g.as_default():
            x = self.one.dequeue_many(2)
            self.take = weft.group(self.v.assign_add(np.sum(x)), self.w.assign_sub(np.sum(x)))
            y = self.two.dequeue()
            self.move = weft.group(self.v.assign_add(y), self.w.assign_sub(y))
            self.loop = weft.fori_loop(0, 2, lambda _, __: self._moved(), None)
        self.session = weft.Session(g, devices=devices)
        self.reset()
        for each in (self.take, self.move, self.loop):
            self.session.run(each, timeout=20)

    def _moved(self) -> None:
        z = self.one.dequeue()
        self.v.assign_add(z)
        self.w.assign_sub(z)

    def reset(self) -> None:
        for q in (self.one, self.two):
            if q.size():
                q.dequeue_many(q.size(), timeout=20)
        self.one.enqueue_many([1, 2, 3, 4, 5], timeout=20)
        self.two.enqueue_many([10, 20, 30], timeout=20)
        self.v.assign(_TOTAL - 75)
        self.w.assign(75 - _TOTAL)

    def steps(self) -> dict[str, Callable[[], Any]]:
        s = self.session
        return {
            "take": lambda: s.run(self.take, timeout=20),
            "move": lambda: s.run(self.move, timeout=20),
            "loop": lambda: s.run(self.loop, timeout=20),
            "late": lambda: self.late(),
            "eager": lambda: self.one.dequeue_many(3, timeout=20) * 0,
            "assign": lambda: self.v.assign_add(0),
        }

    def used(self) -> None:
        """What a handler does with the queues; nothing changes."""
        self.one.size()
        x = self.two.dequeue(timeout=20)
        self.two.enqueue(x, timeout=20)
        front = self.one.resource.take(1)
        front.wait(20)
        front.undo()

    def late(self) -> None:
        with contextlib.suppress(TimeoutError):
            self.session.run(self.take, timeout=0.0)

    def wrong(self, name: str, interrupted: bool) -> list[str]:
        """What does not hold any more."""
        found = []
        for cell in (self.v.cell, self.w.cell):
            if not _free(cell.lock):
                found.append("the lock of a variable is held")
        for q in (self.one, self.two):
            if not _free(q.resource._lock):
                found.append(f"the lock of {q.name} is held")
            if q.resource._puts or q.resource._takes:
                found.append(f"{q.name} has {len(q.resource._takes)} calls waiting")
            if q.resource.kept:
                found.append(f"{q.name} keeps room")
        if found:
            return found
        sizes = self.one.size(), self.two.size()
        taken = [q.dequeue_many(n, timeout=20).tolist() if n else []
                 for q, n in zip((self.one, self.two), sizes, strict=True)]
        if name == "eager":
            if sizes[0] not in ((2, 5) if interrupted else (2,)):
                found.append(f"{sizes[0]} elements are left")
            wanted = _TOTAL - (6 if sizes[0] == 2 else 0)
        else:
            wanted = _TOTAL
        total = int(self.v.numpy()) + sum(map(sum, taken))
        if total != wanted or self.v.numpy() != -self.w.numpy():
            found.append(f"elements {taken}, v {self.v.numpy()}, w {self.w.numpy()}")
        if sorted(taken[0]) != taken[0]:
            found.append(f"{taken[0]} is no order")
        return found


def _free(lock: Any) -> bool:
    """Whether another thread can have a lock."""
    found: list[bool] = []

    def ask() -> None:
        found.append(lock.acquire(timeout=5))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return found[0]


def check(devices: tuple[str, ...], stride: int, first: int = 0, *, handled: bool = False,
          report: Callable[[str], None] = print) -> int:
    """Interrupt each step at every ``stride``-th place, or have queues be used there; how many
    times something was wrong."""
    bad = 0
    model = Model(devices)
    for name in model.steps():
        at, done = first, 0
        while True:
            model.reset()
            interrupt = Interrupt(at, model.used if handled else None)
            interrupted = interrupt.during(model.steps()[name])
            wrong = model.wrong(name, interrupted)
            if wrong:
                bad += 1
                report(f"{name}, place {at} in {interrupt.place}: {'; '.join(wrong)}")
                model = Model(devices)
            if interrupt.left >= 0:
                break
            at, done = at + stride, done + 1
        report(f"{len(devices)} devices, {name}: {done} "
               f"{'handlers' if handled else 'interrupts'}")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stride", type=int, default=1)
    stride = parser.parse_args().stride
    bad = sum(check(devices, stride, handled=handled) for handled in (False, True)
              for devices in (("cpu:0",), ("cpu:0", "cpu:1")))
    print(f"{bad} times something was wrong" if bad else "nothing is wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
