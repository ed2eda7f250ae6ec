"""Code and memory of programs: gone after the last user, and never while one may come."""

from __future__ import annotations

import copy
import gc
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import call_soak
import numpy as np
import pytest
from running import in_threads, python
from soak import MANY, Footprint, Soak

import weft
from weft.codegen.cpu import jit as llvm_jit
from weft.codegen.cpu.jit import compile_object, cpu_target, jit_for
from weft.runtime.lifetime import Lifetime

X = np.linspace(0, 1, 7)


def mappings() -> int:
    return Footprint.now().mappings


# -- Lifetime -----------------------------------------------------------------------------------


def test_end_comes_once_after_the_last_reference() -> None:
    ended = list[int]()
    first = Lifetime(lambda: ended.append(1))
    second, again = Lifetime(lambda: ended.append(2)), first
    del first
    assert not ended
    del again
    assert ended == [1]
    del second
    assert ended == [1, 2]


def test_no_finaliser_of_a_dead_cycle_comes_after_the_end() -> None:
    """The collector calls the finalisers of a cycle before it takes it apart, oldest first."""
    seen = list[str]()

    class User:
        def __init__(self, held: Lifetime) -> None:
            self.held, self.cycle = held, self

        def __del__(self) -> None:
            seen.append("use")

    gc.collect()
    User(Lifetime(lambda: seen.append("end")))
    assert not seen
    gc.collect()
    assert seen == ["use", "end"]
    assert not gc.is_tracked(Lifetime(lambda: None))


def test_a_lifetime_cannot_be_copied() -> None:
    held = Lifetime(lambda: None)
    with pytest.raises(TypeError):
        copy.copy(held)
    with pytest.raises(TypeError):
        copy.deepcopy(held)


# -- what programs leave behind -----------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("native", ["1", "0"])
def test_dropped_functions_leave_nothing(
    native: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any kind: functions, sessions, variables, workers, loaded artifacts."""
    monkeypatch.setenv("WEFT_NATIVE_CALL", native)
    soak, marks = Soak(tmp_path, calls=3), list[Footprint]()
    soak.run(120, lambda _: marks.append(Footprint.now()), every=40)
    assert not marks[-1].growth(marks[0], functions=80, kilobytes=3 << 10)


@pytest.mark.long
def test_calls_leave_nothing() -> None:
    """Right and wrong ones, by one thread and by several."""
    assert not call_soak.soak(130_000, lambda mark, counts: None, parts=5)


@pytest.mark.long
def test_clear_cache_unmaps() -> None:
    f = weft.compile(on_recompile="silent")(lambda x: np.tanh(x) * 2)
    f(X)
    before = mappings()
    for size in range(2, 42):
        f(X[:1].repeat(size))
    assert mappings() > before + 80
    f.clear_cache()
    assert mappings() <= before
    np.testing.assert_allclose(f(X), np.tanh(X) * 2)


@pytest.mark.long
def test_a_closed_session_unmaps() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (7,), name="x")
        values = [np.tanh(x) * number for number in range(40)]
    session = weft.Session(graph)
    before = mappings()
    for value in values:
        session.run(value, {x: X})
    assert mappings() > before + 80
    session.close()
    assert mappings() <= before + 3
    np.testing.assert_allclose(session.run(values[3], {x: X}), np.tanh(X) * 3)


@pytest.mark.parametrize("function", [
    lambda x: x * 2, lambda x: {"y": x * 2}, lambda x: x.sum(), lambda x: x * np.ones(7)])
def test_no_cycle_keeps_code(function: Callable[..., Any]) -> None:
    """The count of references alone ends a program; it need not wait for the collector."""
    f = weft.compile(function)
    f(X)
    f(X)
    made = weakref.ref(next(iter(f.programs._made.values())).program)
    gc.disable()
    try:
        f.clear_cache()
        assert made() is None
    finally:
        gc.enable()


@pytest.mark.long
def test_a_linker_goes_with_its_last_library() -> None:
    """LLVM keeps some of each library until then."""
    def linkers() -> set[int]:
        gc.collect()
        return {id(item) for item in gc.get_objects() if type(item) is llvm_jit._Linker}

    weft.compile(lambda x: x - 1)(X)  # the first of a target has the code of entries and workers
    before = linkers()
    for number in range(3 * llvm_jit._LIBRARIES):
        weft.compile(lambda x, number=number: x + number)(X)
    assert len(linkers() - before) <= 1  # the one that is being filled


# -- what still has a user ----------------------------------------------------------------------


def test_results_outlive_their_function() -> None:
    f = weft.compile(on_recompile="silent")(lambda x: np.sqrt(x) + 1)
    small, large = f(X), f(MANY)
    view = large[5:9]
    del f, large
    gc.collect()
    np.testing.assert_array_equal(small, np.sqrt(X) + 1)
    np.testing.assert_array_equal(view, np.full(4, 2, np.float32))


@pytest.mark.long
@pytest.mark.parametrize("captured", [False, True])
def test_a_direct_callable_outlives_its_function(captured: bool) -> None:
    more = np.arange(7.0) if captured else 0.0
    f = weft.compile(lambda x: np.sqrt(x) + more)
    f(X)
    direct = next(iter(f.programs._made.values())).program.direct
    f.clear_cache()
    del f
    gc.collect()
    np.testing.assert_array_equal(direct(X), np.sqrt(X) + more)
    before = mappings()
    del direct
    assert mappings() < before


def test_one_of_many_survives_the_others() -> None:
    functions = [weft.compile(lambda x, n=n: x * n) for n in range(20)]
    for f in functions:
        f(X)
    kept = functions[7]
    del functions, f
    gc.collect()
    np.testing.assert_array_equal(kept(X), X * 7)


CYCLE = """
import gc, numpy as np, weft

class Model:
    def __init__(self, step, large):
        self.step, self.large, self.cycle = step, large, self
    def __del__(self):
        y = self.large(np.ones((500, 500)))
        print(self.step(np.arange(3.0))[2], round(y.sum()), flush=True)

for _ in range(3):
    step = weft.compile(lambda x: x * 2)
    large = weft.compile(lambda x: (x / x.sum(axis=0)).sum(axis=1))
    step(np.arange(3.0)), large(np.ones((500, 500)))
    Model(step, large)  # the younger object: its finaliser is called last
    del step, large
    gc.collect()
"""


@pytest.mark.parametrize("native", ["1", "0"])
def test_a_finaliser_may_call_its_own_compiled_function(native: str) -> None:
    done = python(CYCLE, WEFT_NATIVE_CALL=native)
    assert (done.returncode, done.stdout.split()) == (0, ["4.0", "500"] * 3), done.stderr


@pytest.mark.parametrize("function, argument", [
    (lambda x: np.tanh(x) * 2, X), (lambda x: np.tanh(x) * 2, MANY),
    (lambda x: {"y": np.tanh(x) * 2}, X)])
def test_calls_run_while_the_cache_is_cleared(
    function: Callable[..., Any], argument: np.ndarray[Any, Any]
) -> None:
    f = weft.compile(threads=2)(function)
    wanted = f(argument)
    wanted = wanted["y"] if isinstance(wanted, dict) else wanted
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            got = f(argument)
            np.testing.assert_array_equal(got["y"] if isinstance(got, dict) else got, wanted)

    def clear() -> None:
        try:
            for _ in range(12):
                f.clear_cache()
                f(argument)
        finally:
            stop.set()

    in_threads(*[work] * 4, clear)


def test_variables_are_whole_while_the_cache_is_cleared() -> None:
    v = weft.Variable(np.zeros(7))

    @weft.compile
    def step() -> None:
        v.assign_add(np.ones(7))

    step()
    threads = [threading.Thread(target=lambda: [step() for _ in range(200)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        step.clear_cache()
    np.testing.assert_array_equal(v.numpy(), np.full(7, 601.0))


@pytest.mark.long
def test_exit_with_running_calls() -> None:
    """Nothing is unmapped at the end of the process: other threads may be running."""
    code = """
import threading, numpy as np, weft
f = weft.compile(threads=2)(lambda x: np.tanh(x) * 2)
x = np.ones(1 << 20, np.float32)
f(x)
def work():
    while True:
        f(x)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
print("end")
"""
    done = python(code)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


FORK = """
import os, threading, time, numpy as np, weft
from llvmlite.binding import ffi

def compiled(n):
    f = weft.compile(lambda x: x * n)
    f(np.ones(3))
    return f

functions = [compiled(n) for n in range(40)]
lock, end = ffi.lib._lock._lock, threading.Event()
def other():
    n = 100
    while not end.is_set():
        compiled(n)
        n += 1
thread = threading.Thread(target=other)
thread.start()
codes = []
for _ in range(5):
    while lock.acquire(blocking=False):  # until the other thread is in LLVM
        lock.release()
        time.sleep(1e-4)
    child = os.fork()
    if child == 0:
        kept = functions[3]
        functions.clear()
        ok = (kept(np.ones(3)) == 3).all() and compiled(7)(np.ones(3))[0] == 7
        del kept
        os._exit(0 if ok else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
end.set()
thread.join()
functions.clear()
print(codes, compiled(5)(np.ones(3))[0])
"""


@pytest.mark.long
def test_a_forked_child_drops_functions_while_the_parent_compiles() -> None:
    """LLVM's locks may be held by a thread that the child does not have: a fork waits for it, and
    the child can compile, too."""
    done = python(FORK, timeout=60)
    assert (done.returncode, done.stdout) == (0, "[0, 0, 0, 0, 0] 5.0\n"), done.stderr


@pytest.mark.long
def test_a_forked_child_compiles_and_drops() -> None:
    functions = [weft.compile(lambda x, n=n: x * n) for n in range(20)]
    for f in functions:
        f(X)
    child = os.fork()
    if child == 0:
        functions.clear()
        before = mappings()
        right = all((weft.compile(lambda x, n=n: x + n)(X) == X + n).all() for n in range(40))
        os._exit(0 if right and mappings() <= before + 20 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(functions[4](X), X * 4)


# -- what compiling leaves behind ---------------------------------------------------------------


def test_a_machine_that_was_used_gives_the_same_code() -> None:
    target = cpu_target()
    texts = [weft.compile(function).lower(X).stages.llvm
             for function in (lambda x: np.tanh(x) * 2, lambda x: np.outer(x, x).sum(axis=0))]
    for opt in range(4):
        fresh = []
        for text in texts:
            llvm_jit._machine.cache_clear()
            fresh.append(compile_object(text, target, opt).object)
        used = [compile_object(text, target, opt).object for text in (*texts, *texts)]
        assert used == fresh * 2


def test_a_library_is_unloaded_on_its_own() -> None:
    target = cpu_target()
    stages = weft.compile(lambda x: x * 2).lower(X).stages
    image = compile_object(stages.llvm, target).object
    libraries = [jit_for(target).link(image, (stages.plan.name,)) for _ in range(10)]
    assert len({library.addresses[stages.plan.name] for library in libraries}) == 10
    before = mappings()
    for library in libraries:
        library.unload()
    assert mappings() <= before - 20
