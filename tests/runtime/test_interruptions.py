"""Steps that are interrupted: by signals, by their handlers' own steps, by forks."""

from __future__ import annotations

from pathlib import Path

import interrupts
import pytest
from running import python

INTERRUPTED = """
import signal, threading, numpy as np, weft
a, b = weft.Variable(np.zeros(3)), weft.Variable(np.zeros(3))
@weft.compile(threads=1)
def step(x):
    a.assign(a + x)
    b.assign(b - x)
step(1.0)

class Stop(Exception):
    pass

def handler(*_):
    raise Stop

signal.signal(signal.SIGALRM, handler)
done = stopped = 0
while stopped < 400:
    try:
        signal.setitimer(signal.ITIMER_REAL, 2e-5 + stopped * 1e-7)
        while True:
            step(1.0)
    except Stop:
        stopped += 1
    assert not (a + b).any(), (a.numpy(), b.numpy())
signal.setitimer(signal.ITIMER_REAL, 0)
other = threading.Thread(target=step, args=(1.0,), daemon=True)
other.start()
other.join(20)
print("taken" if other.is_alive() else "free")
"""

HANDLED = """
import signal, numpy as np, weft
a, b = weft.Variable(np.zeros(3)), weft.Variable(np.zeros(3))
seen = []
@weft.compile(threads=1)
def step(x):
    a.assign(a + x)
    b.assign(b - x)
total = weft.compile(threads=1)(lambda: a + b)
step(1.0), total()

def handler(*_):
    seen.append(total().any())
    if len(seen) % 20 == 0:
        weft.save("checkpoint", {"a": a, "b": b})
    signal.setitimer(signal.ITIMER_REAL, 1e-4 + len(seen) * 1e-7)

signal.signal(signal.SIGALRM, handler)
handler()
while len(seen) < 400:
    step(1.0)
signal.setitimer(signal.ITIMER_REAL, 0)
print(any(seen))
"""

SIGNALLED = """
import signal, threading, numpy as np, weft
v = weft.Variable(np.zeros((300, 300), np.float32))
@weft.compile(threads=3)
def step(x):
    y = np.tanh(x @ x) @ x
    v.assign(v + y)
    return y
x = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)
wanted = step(x)
v.assign(np.zeros_like(x))
count = [0]

def handler(*_):
    count[0] += 1

for number, which in ((signal.SIGALRM, signal.ITIMER_REAL), (signal.SIGPROF, signal.ITIMER_PROF)):
    signal.signal(number, handler)
    signal.setitimer(which, 2e-4, 2e-4)
for _ in range(60):
    assert np.array_equal(step(x), wanted)
for which in (signal.ITIMER_REAL, signal.ITIMER_PROF):
    signal.setitimer(which, 0)
total = np.zeros_like(x)
for _ in range(60):
    total += wanted
assert np.array_equal(v.numpy(), total) and count[0] > 60, count

signal.signal(signal.SIGALRM, signal.default_int_handler)
interrupted = 0
for number in range(60):
    v.assign(np.zeros_like(x))
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4 * (1 + number % 20))
        while True:
            v.assign(np.zeros_like(x))
            step(x)
    except KeyboardInterrupt:
        interrupted += 1
    assert not v.value.any() or np.array_equal(v.value, wanted)
print(interrupted, np.array_equal(step(x), wanted))
"""

FORKED = """
import os, threading, warnings, numpy as np, weft
warnings.simplefilter("ignore")
a, b = weft.Variable(np.zeros(3)), weft.Variable(np.zeros(3))
@weft.compile(threads=1)
def step(x):
    a.assign(a + x)
    b.assign(b - x)
total = weft.compile(threads=1)(lambda: a + b)
step(1.0), total()
over = threading.Event()

def work():
    while not over.is_set():
        step(1.0)

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(50):
    child = os.fork()
    if child == 0:
        torn = total().any()
        step(1.0)
        os._exit(1 if torn else 0)
    assert os.waitpid(child, 0)[1] == 0
over.set()
print("alive")
"""


@pytest.mark.parametrize(("program", "wanted"), [
    (INTERRUPTED, "free"), (HANDLED, "False"), (SIGNALLED, "60 True"),
    (FORKED, "alive")], ids=["interrupted", "handled", "signalled", "forked"])
def test_in_a_process_of_its_own(program: str, wanted: str, tmp_path: Path) -> None:
    run = python(program, cwd=tmp_path)
    assert (run.stdout.strip(), run.stderr) == (wanted, "")


@pytest.mark.parametrize("handled", [False, True], ids=["interrupts", "handlers"])
@pytest.mark.parametrize("devices", [("cpu:0",), ("cpu:0", "cpu:1")], ids=["one", "two"])
def test_at_some_places_of_the_runtime(devices: tuple[str, ...], handled: bool) -> None:
    """All of them: ``python tests/runtime/interrupts.py``."""
    told: list[str] = []
    bad = interrupts.check(devices, 41, 7 * len(devices), handled=handled, report=told.append)
    assert not bad, told
