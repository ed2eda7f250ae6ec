"""The worker pool: every index exactly once, never a hang, quiet when idle, alive after fork.

Bodies are small LLVM functions. What needs a fresh process (no workers yet, or forks) is a
``scenario_*`` function, which a test runs in a child interpreter under a time limit.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import platform
import resource
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from numpy.testing import assert_array_equal  # now: a lazy import could be held at a fork
from numpy.typing import NDArray
from running import in_threads, python

from weft.codegen.cpu.host.threads import pool_parts
from weft.codegen.cpu.text import FunctionText, module_text
from weft.ir.plans.stack import SCRATCH_BYTES

TRIPLES = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
BODY = [("ptr", "context"), ("i64", "begin"), ("i64", "end"), ("ptr", "scratch")]
LAUNCH = [("ptr", "body"), ("ptr", "context"), ("i64", "tasks"), ("i64", "threads"),
          ("ptr", "scratch")]
INNER = 37  # tasks of a nested launch
FILLED = 1000  # words of scratch that ``fill`` touches
PAUSE = 2000  # rounds of a slow body, about a microsecond

Counts = NDArray[np.int32]


def pool_text(triple: str) -> str:
    """The pool as a module of its own."""
    return module_text(*pool_parts(triple), f'target triple = "{triple}"')


def _count(name: str, amount: int, rounds: int = 0) -> FunctionText:
    """``context[i] += amount`` for each index, after so many rounds of doing nothing."""
    f = FunctionText("void", name, BODY)
    waste = f.alloca("i64", align=8)
    with f.loop("%begin", "%end") as i:
        with f.loop("0", str(rounds)) as k:
            f.do(f"store volatile i64 {k}, ptr {waste}")
        p = f(f"getelementptr i32, ptr %context, i64 {i}")
        f(f"atomicrmw add ptr {p}, i32 {amount} monotonic")
    f.ret()
    return f


def _nested() -> FunctionText:
    """Launch ``count`` on row i of ``context`` for each index, on as many threads as there are."""
    f = FunctionText("void", "nested", BODY)
    with f.loop("%begin", "%end") as i:
        row = f(f"getelementptr [{INNER} x i32], ptr %context, i64 {i}")
        f.do(f"call void @weft_parallel_for(ptr @count, ptr {row}, i64 {INNER}, i64 4, "
             "ptr %scratch, ptr null)")
    f.ret()
    return f


def _who() -> FunctionText:
    """``context[i]`` = the thread that ran index i, slowly, so that others get their turn."""
    f = FunctionText("void", "who", BODY)
    waste = f.alloca("i64", align=8)
    with f.loop("%begin", "%end") as i:
        with f.loop("0", str(10 * PAUSE)) as k:
            f.do(f"store volatile i64 {k}, ptr {waste}")
        p = f(f"getelementptr i32, ptr %context, i64 {i}")
        f.do(f"store i32 {f.call('i32', 'gettid')}, ptr {p}")
    f.ret()
    return f


def _fill() -> FunctionText:
    """``context[i]`` = the thread that ran index i, ``context[64 + i]`` = its scratch; each fills
    the scratch, waits, and counts in ``context[128]`` the words that are no longer its own."""
    f = FunctionText("void", "fill", BODY)
    waste = f.alloca("i64", align=8)
    me = f(f"zext i32 {f.call('i32', 'gettid')} to i64")
    wrong = f("getelementptr i64, ptr %context, i64 128")
    with f.loop("%begin", "%end") as i:
        with f.loop("0", str(FILLED)) as k:
            f.do(f"store volatile i64 {me}, ptr {f(f'getelementptr i64, ptr %scratch, i64 {k}')}")
        with f.loop("0", str(10 * PAUSE)) as k:
            f.do(f"store volatile i64 {k}, ptr {waste}")
        with f.loop("0", str(FILLED)) as k:
            held = f(f"load volatile i64, ptr {f(f'getelementptr i64, ptr %scratch, i64 {k}')}")
            f(f"atomicrmw add ptr {wrong}, "
              f"i64 {f('zext i1 ' + f(f'icmp ne i64 {held}, {me}') + ' to i64')} monotonic")
        f.do(f"store i64 {me}, ptr {f(f'getelementptr i64, ptr %context, i64 {i}')}")
        other = f(f"getelementptr i64, ptr %context, i64 {f(f'add i64 {i}, 64')}")
        f.do(f"store i64 {f('ptrtoint ptr %scratch to i64')}, ptr {other}")
    f.ret()
    return f


def _lame() -> FunctionText:
    """``count``, slow in workers; the caller waits until ``context[8]`` says that one has begun."""
    f = FunctionText("void", "lame", BODY)
    waste = f.alloca("i64", align=8)
    begun = f("getelementptr i32, ptr %context, i64 8")
    first = f(f"icmp eq i32 {f.call('i32', 'gettid')}, {f.call('i32', 'getpid')}")
    f.branch(first, "wait", "work")
    f.place("wait")
    f.branch(f(f"icmp eq i32 {f(f'load atomic i32, ptr {begun} acquire, align 4')}, 0"),
             "wait", "count")
    f.place("work")
    f.do(f"store atomic i32 1, ptr {begun} release, align 4")
    with f.loop("0", str(40_000 * PAUSE)) as k:
        f.do(f"store volatile i64 {k}, ptr {waste}")
    f.jump("count")
    f.place("count")
    with f.loop("%begin", "%end") as i:
        p = f(f"getelementptr i32, ptr %context, i64 {i}")
        f(f"atomicrmw add ptr {p}, i32 1 monotonic")
    f.ret()
    return f


def _meet() -> FunctionText:
    """Count the indices that have begun in ``context[0]``, and wait for all ``context[1]``."""
    f = FunctionText("void", "meet", BODY)
    f(f"atomicrmw add ptr %context, i32 {f('trunc i64 ' + f('sub i64 %end, %begin') + ' to i32')} "
      "monotonic")
    wanted = f(f"load i32, ptr {f('getelementptr i32, ptr %context, i64 1')}")
    f.jump("wait")
    f.place("wait")
    begun = f("load atomic i32, ptr %context acquire, align 4")
    f.branch(f(f"icmp sge i32 {begun}, {wanted}"), "met", "yield")
    f.place("yield")
    f.call("i32", "sched_yield")
    f.jump("wait")
    f.place("met")
    f.ret()
    return f


def _halve() -> FunctionText:
    """``context[i] /= 2`` in float32: zero for a subnormal result where results are flushed."""
    f = FunctionText("void", "halve", BODY)
    with f.loop("%begin", "%end") as i:
        p = f(f"getelementptr float, ptr %context, i64 {i}")
        x = f(f"load volatile float, ptr {p}")
        f.do(f"store float {f(f'fmul float {x}, 0.5')}, ptr {p}")
    f.ret()
    return f


def _repeat() -> FunctionText:
    """Launch over and over without Python in between."""
    f = FunctionText("void", "repeat", [*LAUNCH, ("i64", "launches")])
    with f.loop("0", "%launches"):
        f.do(
            "call void @weft_parallel_for("
            "ptr %body, ptr %context, i64 %tasks, i64 %threads, ptr %scratch, ptr null)"
        )
    f.ret()
    return f


def _alternate() -> FunctionText:
    """Launches that differ from the one before in body, context, size and threads."""
    params = [("ptr", "ups"), ("i64", "n"), ("ptr", "downs"), ("i64", "m"), ("i64", "launches")]
    f = FunctionText("void", "alternate", params)
    with f.loop("0", "%launches"):
        for launch in ("@count, ptr %ups, i64 %n, i64 4", "@count_down, ptr %downs, i64 %m, i64 2",
                       "@count, ptr %ups, i64 2, i64 3"):
            f.do(f"call void @weft_parallel_for(ptr {launch}, ptr null, ptr null)")
    f.ret()
    return f


def _flushed() -> FunctionText:
    """``parallel_for`` with subnormal results flushed in the calling thread."""
    f = FunctionText("void", "flushed", LAUNCH)
    launch = ("call void @weft_parallel_for("
              "ptr %body, ptr %context, i64 %tasks, i64 %threads, ptr %scratch, ptr null)")
    if platform.machine() == "x86_64":
        old, new = f.alloca("i32", align=4), f.alloca("i32", align=4)
        f.call("void", "llvm.x86.sse.stmxcsr", ("ptr", old))
        mode = f(f"or i32 {f(f'load i32, ptr {old}')}, {1 << 15}")
        f.do(f"store i32 {mode}, ptr {new}")
        f.call("void", "llvm.x86.sse.ldmxcsr", ("ptr", new))
        f.do(launch)
        f.call("void", "llvm.x86.sse.ldmxcsr", ("ptr", old))
    else:
        mode = f.call("i64", "llvm.aarch64.get.fpcr")
        f.call("void", "llvm.aarch64.set.fpcr", ("i64", f(f"or i64 {mode}, {1 << 24}")))
        f.do(launch)
        f.call("void", "llvm.aarch64.set.fpcr", ("i64", mode))
    f.ret()
    return f


class Pool:
    """The pool and the functions above, compiled; one for the life of the process."""

    def __init__(self, *, wiped: bool = True, scratch: bool = True) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        triple = llvm.get_process_triple()
        pool = pool_text(triple)
        if not wiped:  # a kernel that knows no MADV_WIPEONFORK
            assert "i32 18)" in pool
            pool = pool.replace("i32 18)", "i32 -1)")
        if not scratch:  # more than any address space has
            assert f"i64 {SCRATCH_BYTES}, i32 3" in pool
            pool = pool.replace(f"i64 {SCRATCH_BYTES}, i32 3", f"i64 {1 << 60}, i32 3")
        bodies = [
            FunctionText("void", "empty", BODY),
            _count("count", 1),
            _count("count_down", -1),
            _count("slow", 1, PAUSE),
            _count("late", 1, 200 * PAUSE),
            _nested(),
            _who(),
            _fill(),
            _lame(),
            _meet(),
            _halve(),
            _repeat(),
            _alternate(),
            _flushed(),
        ]
        bodies[0].ret()
        declared = "declare void @weft_parallel_for(ptr, ptr, i64, i64, ptr, ptr)"
        machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic")
        jit = llvm.create_lljit_compiler(machine, use_jit_link=True)
        builder = llvm.JITLibraryBuilder()
        builder.add_ir(pool).add_ir(module_text(bodies, [declared])).add_current_process()
        for name in ("weft_parallel_for", *(body.name for body in bodies)):
            builder.export_symbol(name)
        self.address = builder.link(jit, "pool")
        for kept in (jit, self.address):  # workers run this code until the process ends
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))

    def call(self, name: str, *args: NDArray[np.generic] | int | str) -> None:
        """Call ``name`` on arrays, integers and names of functions; the GIL is released."""
        spelled: list[ctypes.c_void_p | ctypes.c_int64] = []
        for arg in args:
            if isinstance(arg, np.ndarray):
                spelled.append(ctypes.c_void_p(arg.ctypes.data))
            elif isinstance(arg, str):
                spelled.append(ctypes.c_void_p(self.address[arg]))
            else:
                spelled.append(ctypes.c_int64(arg))
        types = [type(value) for value in spelled]
        ctypes.CFUNCTYPE(None, *types)(self.address[name])(*spelled)

    def launch(
        self, body: str, context: NDArray[np.generic], tasks: int, threads: int, scratch: int = 0
    ) -> None:
        self.call("weft_parallel_for", body, context, tasks, threads, scratch, 0)

    def check(self, tasks: int, threads: int, launches: int = 1, body: str = "count") -> None:
        """Launch, and expect every index to have been counted once a launch, and no other."""
        counts = np.zeros(tasks + 2, np.int32)
        self.call("repeat", body, counts[1:], tasks, threads, 0, launches)
        expected = np.full(tasks + 2, launches, np.int32)
        expected[[0, -1]] = 0
        assert_array_equal(counts, expected)


@pytest.fixture(scope="module")
def pool() -> Pool:
    return Pool()


@pytest.fixture(autouse=True)
def no_hang(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """A launch that hangs in native code cannot be interrupted: end the run, with its stacks."""
    with capfd.disabled():
        terminal = os.dup(2)
    faulthandler.dump_traceback_later(120, exit=True, file=terminal)
    yield
    faulthandler.cancel_dump_traceback_later()
    os.close(terminal)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_every_index_once(pool: Pool, threads: int) -> None:
    for tasks in (0, 1, 2, 3, 5, 8, 15, 17, 64, 101, 1000):
        pool.check(tasks, threads, launches=300)
    pool.check(10**6, threads, launches=3)


def test_odd_arguments(pool: Pool) -> None:
    counts = np.zeros(1, np.int32)
    for tasks, threads in ((-1, 4), (0, 0), (-(2**63), 2), (-5, -5)):
        pool.launch("count", counts, tasks, threads)
    assert counts[0] == 0
    for threads in (-(2**63), -1, 0, 2**63 - 1):
        pool.check(9, threads)


def test_many_more_threads_than_cores(pool: Pool) -> None:
    for tasks in (40, 63, 64, 65, 300, 1000):
        pool.check(tasks, 64, launches=3)


def test_slow_bodies(pool: Pool) -> None:
    for threads in (2, 3, 4):
        pool.check(40, threads, launches=100, body="slow")
        pool.check(3, threads, launches=50, body="late")  # the caller falls asleep


def test_launches_that_differ(pool: Pool) -> None:
    ups, downs = np.zeros(101, np.int32), np.zeros(7, np.int32)
    pool.call("alternate", ups, 100, downs, 6, 3000)
    assert (ups[:2] == 6000).all() and (ups[2:100] == 3000).all() and ups[100] == 0
    assert (downs[:6] == -3000).all() and downs[6] == 0


def test_launches_after_sleep(pool: Pool) -> None:
    for _ in range(50):
        time.sleep(0.002)  # enough for every worker to fall asleep
        pool.check(100, 4)
    for microseconds in range(0, 120, 2):  # around the moment when they do
        time.sleep(microseconds / 1e6)
        pool.check(100, 3)


@pytest.mark.parametrize("seats", [2, 5, 6, 9, 22])
def test_every_worker_is_woken(pool: Pool, seats: int) -> None:
    """Each wakes a few others; no task ends before all have begun, in as many threads."""
    for pause in (0.0, 0.02, 0.02):  # awake, and asleep
        time.sleep(pause)
        met = np.array([0, seats], np.int32)
        pool.launch("meet", met, seats, seats)
        assert met[0] == seats


def test_nested_launch(pool: Pool) -> None:
    for outer in (2, 5, 50):
        counts = np.zeros((outer, INNER), np.int32)
        for _ in range(50):
            pool.launch("nested", counts, outer, 4)
        assert (counts == 50).all()


def test_concurrent_launches(pool: Pool) -> None:
    def launches(seed: int) -> None:
        for round_ in range(40):
            pool.check(1 + 97 * seed + round_, 2 + (seed + round_) % 3, launches=50)

    in_threads(*(partial(launches, seed) for seed in range(4)))


def test_no_more_threads_than_asked(pool: Pool) -> None:
    ids, counts = np.zeros(24, np.int32), np.zeros(64, np.int32)

    def met(threads: int) -> int:
        pool.launch("who", ids, len(ids), threads)
        return len(np.unique(ids))

    pool.check(100, 8)  # more workers than the launches below may use
    for threads in (1, 2, 3):
        time.sleep(0.005)
        assert all(met(threads) <= threads for _ in range(10))
        for _ in range(50):  # right after a launch, when the others still look for work
            pool.launch("slow", counts, len(counts), 8)
            assert met(threads) <= threads
    deadline = time.monotonic() + 5
    while met(3) < 2:  # on a busy machine the caller may be quicker
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_each_thread_has_scratch_of_its_own(pool: Pool, threads: int) -> None:
    own = np.zeros(8 * FILLED + 64, np.uint8)
    mine = own.ctypes.data + -own.ctypes.data % 64
    scratch_of: dict[int, int] = {}
    deadline = time.monotonic() + 5
    while not scratch_of or len(scratch_of) < min(threads, 2):  # the caller may be quicker
        assert time.monotonic() < deadline
        found = np.zeros(129, np.int64)
        pool.launch("fill", found, 64, threads, mine)
        assert found[128] == 0
        for thread, scratch in zip(found[:64].tolist(), found[64:128].tolist(), strict=True):
            assert scratch % 64 == 0 and scratch_of.setdefault(thread, scratch) == scratch
    assert scratch_of.get(threading.get_native_id(), mine) == mine
    assert len(set(scratch_of.values())) == len(scratch_of) <= threads


def test_rounding_of_the_caller(pool: Pool) -> None:
    tiny = np.finfo(np.float32).tiny
    for launch, expected in (("flushed", 0), ("weft_parallel_for", tiny / 2)) * 10:
        values = np.full(100_000, tiny, np.float32)
        pool.call(launch, "halve", values, len(values), 4, 0)
        assert (values == expected).all()


def _fresh(
    scenario: str, *, wiped: bool = True, scratch: bool = True, seconds: float = 60
) -> None:
    """Run ``scenario_<scenario>`` in a new process; a hang or an error there is a failure."""
    command = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); "
        f"import test_threads as t; t.scenario_{scenario}(t.Pool(wiped={wiped}, scratch={scratch}))"
    )
    done = python(command, timeout=seconds)
    assert done.returncode == 0, done.stdout + done.stderr


def _tasks() -> set[str]:
    return set(os.listdir("/proc/self/task"))


def scenario_growth(pool: Pool) -> None:
    before = _tasks()
    for tasks in (0, 1, 2, 1000):
        pool.check(tasks, 1)
    pool.check(1, 4)
    assert _tasks() == before
    for threads, workers in ((2, 1), (4, 3), (2, 3), (64, 63), (1000, 63)):
        pool.check(1000, threads, launches=3)
        assert len(_tasks() - before) == workers


def test_workers_are_made_when_asked_for() -> None:
    _fresh("growth")


def scenario_idle(pool: Pool) -> None:
    before = _tasks()
    pool.check(100, 4, launches=100)
    workers = _tasks() - before

    def used() -> list[list[str]]:
        paths = [Path(f"/proc/self/task/{worker}/stat") for worker in sorted(workers)]
        return [path.read_text().rsplit(")", 1)[1].split()[11:13] for path in paths]

    time.sleep(0.05)
    first = used()
    time.sleep(0.2)
    assert len(first) == 3 and used() == first


def test_idle_workers_use_no_time() -> None:
    _fresh("idle")


def scenario_affinity(pool: Pool) -> None:
    before, allowed = _tasks(), os.sched_getaffinity(0)

    def settles_on(cores: set[int]) -> None:
        """Launch and let the worker sleep, until it has left the caller's core."""
        deadline = time.monotonic() + 5
        while True:
            for _ in range(5):
                pool.check(1000, 2)
                time.sleep(0.002)
            if os.sched_getaffinity(worker) == cores:
                return
            assert time.monotonic() < deadline

    pool.check(1000, 2)
    worker = int(*(_tasks() - before))
    for core in allowed:
        os.sched_setaffinity(0, {core})
        settles_on(allowed - {core} or allowed)
    for core in allowed:  # what is set from outside is kept
        os.sched_setaffinity(worker, {core})
        settles_on({core})
    os.sched_setaffinity(worker, allowed)
    settles_on(allowed - {core} or allowed)
    pool.check(1000, 64)  # more threads than cores: they share
    time.sleep(0.01)
    assert all(os.sched_getaffinity(int(task)) <= allowed for task in _tasks() - before)


def test_workers_leave_the_caller_its_core() -> None:
    _fresh("affinity")


def scenario_signals(pool: Pool) -> None:
    mine = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    before = _tasks()
    pool.check(100, 3)
    assert len(_tasks() - before) == 2
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mine
    time.sleep(0.05)  # libc starts a thread with all signals blocked, until it first runs
    for worker in _tasks() - before:
        lines = Path(f"/proc/self/task/{worker}/status").read_text().splitlines()
        blocked = int(next(line for line in lines if line.startswith("SigBlk")).split()[1], 16)
        for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGUSR1", "SIGCHLD", "SIGPROF", "SIGRTMAX"):
            assert blocked >> (getattr(signal, name) - 1) & 1, name
        for name in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL"):
            assert not blocked >> (getattr(signal, name) - 1) & 1, name


def test_workers_block_signals() -> None:
    _fresh("signals")


def scenario_interrupted(pool: Pool) -> None:
    """Signals end the caller's sleep, but not its waiting."""
    caught = []
    signal.signal(signal.SIGALRM, lambda *_: caught.append(1))
    signal.setitimer(signal.ITIMER_REAL, 2e-4, 2e-4)
    for _ in range(5):
        counts = np.zeros(9, np.int32)
        pool.launch("lame", counts, 2, 2)
        assert_array_equal(counts[:2], [1, 1])
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert len(caught) >= 5  # Python's part of a handler runs after each launch


def test_signals_do_not_end_the_waiting() -> None:
    _fresh("interrupted")


def scenario_no_more_threads(pool: Pool) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = resource.getrlimit(resource.RLIMIT_AS)
    before = _tasks()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, limit[1]))  # no room for a stack
    pool.check(100, 3, launches=3)
    resource.setrlimit(resource.RLIMIT_AS, limit)
    assert _tasks() == before
    pool.check(100, 3, launches=3)
    assert len(_tasks() - before) == 2


def test_threads_that_cannot_be_made() -> None:
    _fresh("no_more_threads")


def scenario_no_scratch(pool: Pool) -> None:
    before = _tasks()
    for _ in range(3):
        pool.check(100, 4, launches=100)
        time.sleep(0.01)
    deadline = time.monotonic() + 5
    while _tasks() != before:  # they end
        assert time.monotonic() < deadline
        time.sleep(0.001)
    pool.check(100, 4, launches=100)
    assert _tasks() == before


def test_workers_without_scratch() -> None:
    _fresh("no_scratch", scratch=False)


def scenario_fork_and_scratch(pool: Pool) -> None:
    """A child has the scratch of its own workers, and not that of its parent's as well."""
    def address_space() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

    def launches() -> None:
        """Launch until three workers have mapped what they need."""
        before, deadline = address_space(), time.monotonic() + 5
        while address_space() < before + 3 * SCRATCH_BYTES:
            assert time.monotonic() < deadline
            pool.check(100, 4, launches=10)

    def child() -> None:
        assert address_space() < mine - 2 * SCRATCH_BYTES
        launches()

    launches()
    mine = address_space()
    _fork(child)


def test_a_forked_child_has_its_own_scratch_only() -> None:
    _fresh("fork_and_scratch")


def _fork(child: Callable[[], None], seconds: float = 20) -> None:
    """Run ``child`` in a forked process and expect it to return before the time is over."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is the point
        process = os.fork()
    if process == 0:
        status = 1
        try:
            child()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            assert status == 0, f"the child ended with status {status}"
            return
        time.sleep(0.0005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    raise AssertionError("the child hangs")


def scenario_fork(pool: Pool) -> None:
    def launches() -> None:
        alone = len(_tasks())
        pool.check(100, 3, launches=100)
        assert len(_tasks()) == alone + 2

    def child() -> None:
        launches()
        _fork(launches)
        pool.check(100, 3, launches=100)

    pool.check(100, 3, launches=100)
    for _ in range(5):
        _fork(child)
        _fork(lambda: _fork(launches))  # a child that never launches itself
        pool.check(100, 4, launches=100)


@pytest.mark.parametrize("wiped", [True, False], ids=["wiped page", "kept page"])
def test_launch_in_a_forked_child(wiped: bool) -> None:
    _fresh("fork", wiped=wiped)


def scenario_fork_while_launching(pool: Pool) -> None:
    over = threading.Event()

    def child() -> None:
        pool.check(50, 4, launches=20)
        assert len(_tasks()) == 4

    def forks() -> None:
        try:
            for _ in range(20):
                _fork(child)
                time.sleep(0.001)
        finally:
            over.set()

    def launches() -> None:
        while not over.is_set():
            pool.check(60, 3, launches=50, body="slow")

    in_threads(forks, launches, launches)
    pool.check(100, 4, launches=100)


@pytest.mark.parametrize("wiped", [True, False], ids=["wiped page", "kept page"])
def test_fork_while_others_launch(wiped: bool) -> None:
    _fresh("fork_while_launching", wiped=wiped)


@pytest.mark.parametrize("triple", TRIPLES)
def test_text_compiles_for(triple: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(pool_text(triple))
    module.verify()
    machine = llvm.Target.from_triple(triple).create_target_machine()
    assert machine.emit_object(module)[:4] == b"\x7fELF"


def test_a_part_of_another_module() -> None:
    functions, globals_ = pool_parts(TRIPLES[0], prefix="model", linkage="internal")
    run = FunctionText("void", "run", BODY)
    run.call("void", "model_parallel_for", *((type_, f"%{name}") for type_, name in BODY[:1]),
             ("ptr", "null"), ("i64", "1"), ("i64", "1"), ("ptr", "%scratch"), ("ptr", "null"))
    run.ret()
    module = llvm.parse_assembly(module_text([run, *functions], globals_))
    module.verify()
    own = {f.name: f.linkage.name for f in module.functions if not f.is_declaration}
    assert own.pop("run") == "external"
    assert all(name.startswith("model_") for name in own)
    assert set(own.values()) == {"internal"}
    assert {g.linkage.name for g in module.global_variables} == {"internal"}
    libc = {f.name for f in module.functions if f.is_declaration and "llvm." not in f.name}
    assert libc == {
        "clock_gettime", "getpid", "madvise", "memcmp", "mmap", "munmap", "pthread_create",
        "pthread_detach", "pthread_self", "pthread_sigmask", "sched_getaffinity", "sched_getcpu",
        "sched_setaffinity", "syscall",
    }  # fmt: skip


def test_unknown_architecture() -> None:
    with pytest.raises(ValueError, match="riscv64"):
        pool_parts("riscv64-unknown-linux-gnu")
