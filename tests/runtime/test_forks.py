"""A process is forked while other threads trace, compile, queue and commit: the child goes on.

What another thread was in the middle of has no end in the child. Each scenario runs in a process
of its own, where a child that hangs is killed and counted.
"""

from __future__ import annotations

import textwrap

import pytest
from running import python

START = """
import gc, os, random, signal, sys, threading, time
import numpy as np
import numpy.testing  # now: nobody could end an import that another thread has begun
import weft
from weft.ir import forks
from weft.runtime.queues.queue import Queue

ZEROS, PRINT, R = np.zeros, print, type(np.r_).__getitem__.__code__

def child(body):
    pid = os.fork()
    if not pid:
        signal.alarm(60)  # which ends it, whatever it waits for
        try:
            assert np.zeros is ZEROS and print is PRINT, "NumPy is not as it was"
            assert type(np.r_).__getitem__.__code__ is R, "nor is np.r_"
            assert gc.isenabled()
            body()
        except BaseException as problem:
            print(type(problem).__name__, problem, flush=True)
            os._exit(1)
        os._exit(0)
    return pid

def ended(*pids):
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]

@weft.compile(on_recompile="silent")
def shared(x):
    return np.tanh(x) + np.zeros(x.shape) + np.r_[x[:1], 1.0].sum()

def works(size=7):
    np.testing.assert_allclose(shared(np.ones(size)), np.tanh(1.0) + 2)
    assert weft.compile(lambda x: x * size + np.zeros(3))(np.ones(3)).tolist() == [size] * 3
    v.assign_add(np.ones(3))
    assert len(set(v.numpy())) == 1
    weft.Variable(np.ones(3))

v = weft.Variable(np.zeros(3), name="v")
"""


def run(program: str) -> str:
    done = python(START + textwrap.dedent(program))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_forks_at_any_moment() -> None:
    said = run("""
        draw, stop, pids, codes = random.Random(0), threading.Event(), [], []

        def work():
            size = 3
            while not stop.is_set():
                works(size := size % 400 + 1)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        for at in range(30):
            time.sleep(draw.random() * 0.05)
            pids.append(child(lambda: works(500 + at)))
            if at % 3 == 2:
                codes += ended(*pids[at - 2:])
        stop.set()
        for thread in threads:
            thread.join()
        works()
        print(codes)
    """)
    assert said == f"{[0] * 30}\n"


@pytest.mark.parametrize("lock", [
    "jit._llvm().ffi.lib._lock._lock", "forks.LOADING", "state._COMMITS",
    "next(iter(Queue.living))._lock"])
def test_a_fork_waits_for_what_must_be_whole(lock: str) -> None:
    said = run(f"""
        from weft.codegen.cpu import jit
        from weft.runtime import state
        queue = weft.FIFOQueue(3, ["f64[3]"])
        lock, held = {lock}, threading.Event()

        def hold():
            with lock:
                held.set()
                time.sleep(0.5)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        began = time.monotonic()
        print(*ended(child(works)), time.monotonic() - began > 0.3)
        thread.join()
        with lock:  # one that the forking thread has is no reason to wait
            print(*ended(child(works)))
        works()
    """)
    assert said.split() == ["0", "True", "0"]


@pytest.mark.parametrize("lock", [
    "shared._lock", "weft.Variable._naming", "optimizers._MAKING", "v.cell.lock",
    "vars(Stages)['processor'].lock if hasattr(vars(Stages)['processor'], 'lock') else shared._lock"
])
def test_a_child_finds_what_others_compile_with_free(lock: str) -> None:
    said = run(f"""
        from weft.frontend.compile.pipeline import Stages
        from weft.frontend.library.optim import optimizers
        held, done = threading.Event(), threading.Event()

        def hold():
            with {lock}:
                held.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        print(*ended(child(works)))
        done.set()
        thread.join()
        works()
        with {lock}:
            print(*ended(child(works)))
    """)
    assert said.split() == ["0", "0"]


def test_a_child_has_numpy_as_it_was() -> None:
    said = run("""
        inside, done = threading.Event(), threading.Event()

        @weft.compile
        def slow(x):
            y = np.zeros(3) + x
            inside.set()
            done.wait()
            return y

        thread = threading.Thread(target=lambda: slow(np.ones(3)))
        thread.start()
        inside.wait()
        assert np.zeros is not ZEROS and not gc.isenabled()  # or this would show nothing
        print(*ended(child(works)))
        done.set()
        thread.join()
        print(np.zeros is ZEROS, gc.isenabled(), *slow(np.ones(3)))
    """)
    assert said.split() == ["0", "True", "True", "1.0", "1.0", "1.0"]


def test_a_trace_that_forks_goes_on_in_both() -> None:
    said = run("""
        codes = []

        @weft.compile
        def forks_inside(x):
            y = np.zeros(3) + x
            pid = os.fork()
            if pid:
                codes.append(os.waitpid(pid, 0)[1])
            else:
                signal.alarm(60)
            return y + np.ones(3)

        y = forks_inside(np.ones(3))
        assert np.zeros is ZEROS and gc.isenabled() and y.tolist() == [2, 2, 2]
        if not codes:
            works()
            os._exit(0)
        works()
        print(codes)
    """)
    assert said == "[0]\n"


def test_threads_that_fork_side_by_side() -> None:
    said = run("""
        codes = []

        def fork():
            for _ in range(5):
                codes.extend(ended(child(works)))
                works(len(codes) % 50 + 1)

        threads = [threading.Thread(target=fork) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(codes, forks._FORKS.taken)
    """)
    assert said == f"{[0] * 15} {{}}\n"


def test_a_child_that_forks_itself() -> None:
    said = run("""
        def twice():
            works(20)
            assert ended(child(lambda: works(30))) == [0]
            works(40)

        stop = threading.Event()

        def work():
            while not stop.is_set():
                works(random.randrange(1, 300))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        print(*(code for _ in range(4) for code in ended(child(twice))))
        stop.set()
        thread.join()
    """)
    assert said.split() == ["0"] * 4
