"""Runs that are ended, or fail: when they end, how often they run, and what is left."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import signals
from interrupts import Interrupt
from running import python

import weft
from weft.codegen.cpu.text import POLLED, FunctionText
from weft.ir.diagnose import DeadlineError, OutOfRangeError
from weft.runtime import looks

BEGIN = """
import contextlib, os, random, signal, sys, threading, time
import numpy as np
import weft

class Stop(Exception):
    pass

def handler(*_):
    raise Stop

def while_(x):
    while x > 0:
        x = x + 0.0
    return x
"""

# Each would take minutes or for ever; a signal comes when it has run for a while.
PROGRAMS = """
def counted(x):
    for i in range(10**13):
        x = x * 0.5 + 1
    return x

def elements(x):
    for i in range(10**12):
        x[i % 3] = x[(i + 1) % 3] * 0.5
    return x

def named(x, n):
    for i in range(n):
        x = np.sin(x) + 1
    return x

def outer(combine):
    return lambda a, b: combine(np.exp(a[:, None]) - b)

def body(s):
    return s[0] + 1, np.tanh(s[1])

wide = np.ones(1 << 20)
cases = {
    "while": (while_, 1.0),
    "counted": (counted, 1.0),
    "elements": (lambda x: elements(x.copy()), np.ones(3)),
    "named": (named, np.ones(100), 10**11),
    "sum": (outer(np.sum), np.ones(1 << 22), wide),
    "max of rows": (outer(lambda x: x.max(1)), np.ones(1 << 22), wide),
    "max of columns": (outer(lambda x: x.max(0)), np.ones(1 << 22), wide),
    "while_loop": (lambda x: weft.while_loop(lambda s: s[0] > 0, body, (1, x)), np.ones(3)),
    "product": (lambda x: x @ x, np.ones((8000, 8000), np.float32)),
    "sort": (np.sort, np.random.default_rng(0).random(1 << 25)),
}
weft.set_num_threads(int(sys.argv[1]))
for name, (f, *args) in cases.items():
    compiled = weft.compile(f)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    compiled.lower(*args).compile()
    signal.signal(signal.SIGALRM, handler)
    try:
        # Again and again: Python ignores what a handler raises in a finalizer, as compilation has.
        signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
        compiled(*args)
        print(name, "ended by itself")
    except Stop:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        print(name, "stopped")
"""
NAMES = ("while", "counted", "elements", "named", "sum", "max of rows", "max of columns",
         "while_loop", "product", "sort")


def printed(program: str, *args: str, **environment: str) -> str:
    """What a program prints, in a process of its own."""
    ran = python(BEGIN + program, *args, timeout=300, **environment)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.long
def test_a_signal_ends_what_ctypes_calls() -> None:
    """Without native entries, nothing that a handler raises is lost either."""
    program = """
compiled = weft.compile(while_)
compiled(-1.0)
signal.signal(signal.SIGALRM, handler)
for _ in range(3):
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        compiled(1.0)
    except Stop:
        print("stopped")
"""
    assert printed(program, WEFT_NATIVE_CALL="0") == "stopped\n" * 3


# Artifacts that loop for ever where the first number is positive, with one thread and several.
ARTIFACTS = """
def endless(x):
    while np.min(x) > 0:
        x = np.sqrt(x * x + 1.0) - 1e-9
    return x

total = weft.Variable(2.0, name="total")

def counting(x):
    y = x
    while y > 0:
        y = y + 0.0
    total.assign_add(y)
    return total + 0.0

weft.export(endless, np.ones(1 << 18), path="wide")
weft.export(counting, 1.0, path="state")
wide, state = weft.load("wide", threads=2), weft.load("state", threads=1)
ones = np.ones(1 << 18)

@contextlib.contextmanager
def alarm():
    signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
        yield
        print("ended by itself")
    except Stop:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        print("stopped")

def right():
    x = np.linspace(-1, 1, 1 << 18)
    assert (wide(x) == x).all()

"""


@pytest.mark.long
def test_a_signal_ends_artifacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = printed(ARTIFACTS + """
for threads in (1, 2, 1):
    wide.threads = threads
    with alarm():
        wide(ones)
    right()
with alarm():
    wide.run(None, {wide.inputs[0]: ones})
for _ in range(2):
    with alarm():
        state(1.0)
    assert state.variables == {"total": 2.0}
print(state(-1.5))
""")
    assert said == "stopped\n" * 6 + "0.5\n"


@pytest.mark.long
def test_handlers_of_artifacts_come_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every exception of a handler is seen: the loop cannot end by itself."""
    monkeypatch.chdir(tmp_path)
    said = printed(ARTIFACTS + """
draw, seen = random.Random(5), 0
signal.signal(signal.SIGALRM, handler)
for at in range(40):
    number = np.float64(1.0)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.12 * draw.random())
        state(number)
    except Stop:
        seen += 1
print(seen, state(-1.0))
""")
    assert said == "40 1.0\n"


@pytest.mark.long
def test_threads_that_run_one_artifact_end_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timeout ends the call of its thread, a signal that of the main one."""
    monkeypatch.chdir(tmp_path)
    said = printed(ARTIFACTS + """
from weft.runtime import looks
spent = {}

def work(seconds):
    began = time.monotonic()

    def look():
        if time.monotonic() > began + seconds:
            raise Stop(seconds)

    try:
        looks.watched(look, wide, ones)
    except Stop as problem:
        spent[problem.args[0]] = time.monotonic() - began

threads = [threading.Thread(target=work, args=(seconds,)) for seconds in (0.5, 1.5)]
for thread in threads:
    thread.start()
with alarm():
    wide(ones)
for thread in threads:
    thread.join()
assert all(seconds <= took < seconds + 1 for seconds, took in spent.items()), spent
right()
print(*sorted(spent))
""")
    assert said == "stopped\n0.5 1.5\n"


@pytest.mark.long
def test_the_timeout_of_a_step_ends_the_artifact_that_it_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = printed(ARTIFACTS + """
graph = weft.Graph()
with graph.as_default():
    x = weft.placeholder("f64", (), name="x")
    y = weft.host_call(lambda x: np.asarray(state(x)), "f64[]", x)
session = weft.Session(graph)
for _ in range(2):
    try:
        session.run(y, {x: 1.0}, timeout=0.3)
    except weft.Error as problem:
        print(problem.code)
print(session.run(y, {x: -1.0}, timeout=60))
""")
    assert said == "W413\nW413\n1.0\n"


def test_a_signal_in_a_host_step_is_no_guess() -> None:
    """What its handler raises is what the call raises, wherever in the step it comes."""
    program = """
def send(x):
    os.kill(os.getpid(), signal.SIGALRM)
    return x

def often(x):
    while x > 0:
        x = weft.host_call(np.positive, "f64[]", x)
    return x

sending = weft.compile(lambda x: weft.host_call(send, "f64[]", x) + 1)
looping = weft.compile(often)
sending.lower(1.0).compile()
looping(-1.0)
signal.signal(signal.SIGALRM, handler)
seen, draw = 0, random.Random(3)
for _ in range(50):
    try:
        sending(1.0)
    except Stop:
        seen += 1
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.01 * draw.random())
        looping(1.0)
    except Stop:
        seen += 1
print(seen)
"""
    assert printed(program, WEFT_NATIVE_CALL="0") == "100\n"


@pytest.mark.long
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_signal_ends_native_code(threads: str) -> None:
    found = printed(PROGRAMS, threads)
    assert found == "".join(f"{name} stopped\n" for name in NAMES)


@pytest.mark.long
def test_random_programs_with_signals() -> None:
    """In a process of its own, whose native code looks for signals all the time."""
    ran = subprocess.run([sys.executable, signals.__file__, "--count", "150", "--seed", "3"],
                         timeout=300, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ", 0 were wrong" in ran.stdout


def endless(device: str = "cpu:0") -> tuple[weft.Graph, Any, Any, weft.Variable]:
    """A graph with an endless loop for x > 0, a placeholder and an update of a variable."""
    total = weft.Variable(1.0, name="total")
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (), name="x")
        with weft.device(device):
            y = weft.while_loop(lambda s: s > 0, lambda s: s + 0.0, x)
        update = total.assign_add(y)
    return graph, x, update, total


@pytest.mark.parametrize("devices", [("cpu:0",), ("cpu:0", "cpu:1")])
def test_a_timeout_ends_native_code(devices: tuple[str, ...]) -> None:
    graph, x, update, total = endless(devices[-1])
    session = weft.Session(graph, devices=devices)
    for _ in range(2):
        with pytest.raises(DeadlineError, match="W413"):
            session.run(update, {x: 1.0}, timeout=0.3)
        assert total.numpy() == 1.0
    session.run(update, {x: -2.0}, timeout=60)
    assert total.numpy() == -1.0


def test_a_timeout_ends_native_code_of_other_threads() -> None:
    """Several at once, in threads that handle no signals; each by its own time."""
    graph, x, update, total = endless()
    session = weft.Session(graph)
    session.run(update, {x: 0.0})
    ended: list[type[BaseException]] = []

    def work(seconds: float) -> None:
        try:
            session.run(update, {x: 1.0}, timeout=seconds)
        except weft.Error as problem:
            ended.append(type(problem))

    threads = [threading.Thread(target=work, args=(0.2 * at,)) for at in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ended == [DeadlineError] * 3
    assert total.numpy() == 1.0


def test_a_failed_step_ends_the_segments_of_other_devices() -> None:
    """One device loops for ever, another one fails: the step ends, and so does the loop."""
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (), name="x")
        with weft.device("cpu:1"):
            far = weft.while_loop(lambda s: s > 0, lambda s: s + 0.0, x)

        def late(y: Any) -> Any:
            time.sleep(0.2)
            raise ValueError("enough")

        near = weft.host_call(late, "f64[]", x)
    session = weft.Session(graph, devices=("cpu:0", "cpu:1"))
    with pytest.raises(ValueError, match="enough"):
        session.run([near, far], {x: 1.0}, timeout=60)
    for _ in range(2):  # both devices have their threads back
        assert session.run(far, {x: -1.0}, timeout=60) == -1.0


CALLS: list[str] = []


def note(x: Any) -> Any:
    CALLS.append("note")
    return x


def checked(x: Any) -> Any:
    y = weft.host_call(note, "f64[3]", x)
    print("seen", y[0])
    assert np.min(y) > 0, "not positive"
    return y * 2


def indexed(x: Any) -> Any:
    y = weft.host_call(note, "f64[3]", x)
    print("seen", y[0])
    return y[(4 * y[0]).astype(np.int64)]


def raised(x: Any) -> Any:
    y = weft.host_call(note, "f64[3]", x)
    print("seen", y[0])
    if y[0] < 0:
        raise KeyError("negative")
    return y


@pytest.mark.parametrize("native", ["1", "0"])
@pytest.mark.parametrize(("function", "problem"), [
    (checked, AssertionError), (indexed, IndexError), (raised, KeyError)])
def test_a_step_that_fails_runs_once(
    function: Callable[..., Any], problem: type[Exception], native: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WEFT_NATIVE_CALL", native)
    compiled = weft.compile(function)
    for first in (True, False):
        CALLS.clear()
        with pytest.raises(problem):
            compiled(np.full(3, -7.0))
        assert CALLS == ["note"]
        assert capsys.readouterr().out == "seen -7.0\n"
        if first:  # and again, by the short way
            compiled(np.full(3, 0.25))
            capsys.readouterr()


def test_a_failing_step_of_a_session_runs_once() -> None:
    total = weft.Variable(0.0, name="total")
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        at = weft.placeholder("i64", (), name="at")
        y = weft.host_call(note, "f64[3]", x)[at]
        update = total.assign_add(y)
    session = weft.Session(graph)
    for place, calls in ((0, 1), (5, 1), (1, 1), (-4, 1)):
        CALLS.clear()
        before = total.numpy().item()
        if -3 <= place < 3:
            session.run(update, {x: np.ones(3), at: place})
            assert total.numpy() == before + 1
        else:
            with pytest.raises(OutOfRangeError):
                session.run(update, {x: np.ones(3), at: place})
            assert total.numpy() == before
        assert len(CALLS) == calls


@pytest.mark.parametrize("size", [7, 100_000])
def test_the_first_check_in_the_program_counts(size: int) -> None:
    """Two checks that fail at different places of one kernel, by several threads."""
    def f(x: Any, i: Any, j: Any) -> Any:
        return x[i] * 2 + x[j]

    x = np.ones(10)
    i, j = np.zeros(size, np.int64), np.zeros(size, np.int64)
    i[-1], j[0] = 99, 99
    compiled = weft.compile(f)
    for _ in range(20):
        with pytest.raises(OutOfRangeError) as failed:
            compiled(x, i, j)
        assert "|   return x[i] * 2 + x[j]\n   |          ^^^^\n" in str(failed.value)


@pytest.mark.long
def test_a_handler_that_returns_ends_nothing() -> None:
    """It may run programs itself, in the middle of one."""
    program = """
weft.set_num_threads(2)
inner = weft.compile(lambda x: (np.exp(x[:, None] - x)).sum())
x = np.linspace(0, 1, 3000)
want = inner(x)
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(inner(x)))
def slow(a, b):
    return np.exp(a[:, None] - b).sum(1)
outer = weft.compile(slow)
a, b = np.linspace(0, 1, 20000), np.linspace(0, 1, 20000)
plain = outer(a, b)
def send():
    sent = 0
    while not done.wait(0.02):
        if len(seen) == sent:          # the one before has been handled
            sent += 1
            os.kill(os.getpid(), signal.SIGUSR1)
done = threading.Event()
thread = threading.Thread(target=send)
thread.start()
again = [outer(a, b) for _ in range(5)]
done.set()
thread.join()
assert all((each == plain).all() for each in again)
assert seen and all(each == want for each in seen)
print("same bits")
"""
    assert printed(program) == "same bits\n"


def test_a_forked_child_looks_for_signals() -> None:
    """Its main thread is the one that has forked."""
    program = """
compiled = weft.compile(while_)
compiled(-1.0)
signal.signal(signal.SIGALRM, handler)

def work():
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
        try:
            compiled(1.0)
        except Stop:
            os._exit(7)
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    assert printed(program) == "7\n"


def test_loops_ask_where_they_may_take_long() -> None:
    """Short ones are what they would be without it."""
    def text(stop: str, body: int) -> str:
        f = FunctionText("void", "f", [("i64", "n"), ("ptr", "control")])
        f.asks("@weft_poll(ptr %control)")
        with f.loop("0", stop):
            for _ in range(body):
                f.do("fence seq_cst")
        f.ret()
        return str(f)

    assert "@weft_poll" not in text(str(POLLED // 10), 10)
    assert "@weft_poll" in text(str(POLLED // 10 + 1), 10)
    assert "@weft_poll" in text("%n", 1)
    assert "stretch" not in text("16", 10)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_watched_steps_are_forgotten_by_a_forked_child() -> None:
    def forked() -> None:
        child = os.fork()
        if child == 0:
            os._exit(looks.WATCHED.value)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1

    before = looks.WATCHED.value
    looks.watched(lambda: None, forked)
    assert looks.WATCHED.value == before


def test_an_interrupt_leaves_nobody_who_looks() -> None:
    """Else all later steps of the thread would end with what this one has failed with."""
    looked: list[int] = []
    at = 0
    while Interrupt(at).during(lambda: looks.watched(lambda: looked.append(1), looks.look)):
        looked.clear()
        looks.look()
        assert not looked, f"place {at}"
        at += 1
    assert at > 5 and looked == [1]
