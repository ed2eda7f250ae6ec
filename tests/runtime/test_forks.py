"""A process is forked while other threads trace, compile, queue and commit: the child goes on.

What another thread was in the middle of has no end in the child. Each scenario runs in a process
of its own, where a child that hangs is killed and counted.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import python

import weft

START = '''
import contextlib, gc, os, random, signal, sys, threading, time
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

@contextlib.contextmanager
def elsewhere(lock, seconds=None):
    """Another thread has the lock meanwhile, or for that long."""
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait(seconds)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()

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
'''


def run(program: str) -> str:
    done = python(START + textwrap.dedent(program))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("lock", [
    "jit._llvm().ffi.lib._lock._lock", "forks.LOADING", "state.COMMITS",
    "next(iter(Queue.living))._lock", "looks._COUNTING"])
def test_a_fork_waits_for_what_must_be_whole(lock: str) -> None:
    said = run(f"""
        from weft.codegen.cpu import jit
        from weft.runtime import looks, state
        queue = weft.FIFOQueue(3, ["f64[3]"])
        lock = {lock}
        with elsewhere(lock, 0.5):
            began = time.monotonic()
            print(*ended(child(works)), time.monotonic() - began > 0.3)
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
        from weft.frontend.engine.building.pipeline import Stages
        from weft.frontend.library.optim import optimizers
        with elsewhere({lock}):
            print(*ended(child(works)))
        works()
        with {lock}:
            print(*ended(child(works)))
    """)
    assert said.split() == ["0", "0"]


@pytest.mark.long
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
        assert np.zeros is ZEROS and not gc.isenabled()  # or this would show nothing
        print(*ended(child(works)))
        done.set()
        thread.join()
        print(np.zeros is ZEROS, gc.isenabled(), *slow(np.ones(3)))
    """)
    assert said.split() == ["0", "True", "True", "1.0", "1.0", "1.0"]


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


PLACE = """
        import tempfile
        from weft.runtime.device.interpreted import Interpreted
        folder = tempfile.mkdtemp()
        w = weft.Variable(1.0, name="w")
        saver = weft.Saver(folder, [w], every=3600)
        events = weft.SummaryWriter(folder + "/events")
        queue = weft.FIFOQueue(100, "i64[]")
        runner = weft.QueueRunner(queue, iter([]).__next__)
        profile, data = weft.profile(), weft.data.from_arrays(np.arange(9.0)).input("data")
        session = weft.Session(weft.Graph())
"""


@pytest.mark.parametrize(("lock", "use"), [
    ("saver._saving", "saver.save()"),
    ("saver._ended._cond", "saver.__enter__().__exit__(None, None, None)"),
    ("runner._lock", "runner._failed(ValueError())"),
    ("runner._lock", "runner.__enter__().__exit__(None, None, None)"),
    ("profile._lock", "profile.__enter__().__exit__()"),
    ("profile._recorder._lock", "profile._recorder.span('call', 'f', 0, 1)"),
    ("data._lock", "next(data)"),
    ("w.cell.lock", "w.assign_add(1.0)"),
    ("recording._RECORDING._lock", "profile.__enter__().__exit__()"),
    ("session._helpers._lock", "session._helpers.stop()"),
])
def test_a_child_uses_what_other_threads_had(lock: str, use: str) -> None:
    said = run(PLACE + f"""
        from weft.runtime.profile import recording

        def child_uses():
            signal.alarm(20)
            {use}

        with elsewhere({lock}):
            print(*ended(child(child_uses)))
        {use}
    """)
    assert said.split() == ["0"]


@pytest.mark.long
def test_events_are_whole_in_a_child() -> None:
    """A fork waits for what is being written, and the file has every event of both."""
    pytest.importorskip("tensorboardX")
    said = run(PLACE + """
        stop, written = threading.Event(), 0

        def write():
            global written
            while not stop.is_set():
                events.add_scalar("loss", 1.0, written)
                written += 1

        thread = threading.Thread(target=write)
        thread.start()
        codes = [code for at in range(20)
                 for code in ended(child(lambda: events.add_scalar("child", 2.0, at)))]
        stop.set()
        thread.join()
        events.close()
        [name] = os.listdir(events.logdir)
        data, at, found = open(os.path.join(events.logdir, name), "rb").read(), 0, 0
        while at < len(data):
            at, found = at + 16 + int.from_bytes(data[at:at + 8], "little"), found + 1
        print(set(codes), at == len(data), found == 1 + written + 20)
    """)
    assert said == "{0} True True\n"


@pytest.mark.long
def test_a_saver_forks_at_any_moment() -> None:
    said = run(PLACE + """
        codes = []
        with weft.Saver(folder, [w], every=0.001, keep=2):
            for at in range(25):
                time.sleep(0.003 * random.random())
                own = tempfile.mkdtemp()
                codes += ended(child(lambda: weft.Saver(own, [w]).save()))
            pid = os.fork()
            if not pid:
                signal.alarm(60)
        if not pid:
            os._exit(0)
        print(set(codes), *ended(pid), weft.restore(folder, [w]) > 0)
    """)
    assert said == "{0} 0 True\n"


@pytest.mark.long
def test_a_child_holds_no_lock_of_a_folder() -> None:
    """It saves there as soon as its parent can, and keeps nobody waiting while it lives."""
    said = run(PLACE + """
        from pathlib import Path
        from weft.runtime.storage import history

        def waits():
            print("saving", flush=True)
            saver.save()
            print("saved", flush=True)

        with elsewhere(history._alone(Path(folder))):
            lives, saves = child(lambda: time.sleep(50)), child(waits)
            time.sleep(0.5)
            print("released", flush=True)
        saver.save()
        print(*ended(saves), flush=True)
        os.kill(lives, signal.SIGKILL)
        ended(lives)
    """)
    assert said.split() == ["saving", "released", "saved", "0"]


MAKERS = {f"threading.{name}" for name in (
    "Lock", "RLock", "Condition", "Event", "Semaphore", "BoundedSemaphore", "Barrier")}
ELSEWHERE = {  # of a module, what it calls a lock that no fork need know, and why
    ("runtime/queues/queue.py", "latch"): "of one call, in the thread that forks or a lost one",
    ("runtime/flow/run.py", "bell"): "of one wait, in the thread that forks or a lost one",
    ("runtime/flow/run.py", "lock"): "of one step, which has lost its threads in a child",
    ("runtime/flow/notes.py", "_lock"): "of one step, too",
    ("runtime/flow/helpers.py", "_lock"): "made anew by its module",
    ("runtime/profile/recording.py", "_lock"): "made anew by Recording.forked",
    ("runtime/state.py", "lock"): "made anew by its module",
    ("runtime/device/interpreted.py", "_lock"): "made anew by its module",
    ("runtime/device/memory.py", "_lock"): "of the memory of a device, which a child has not",
    ("frontend/library/data.py", "_lock"): "made anew by its module",
    ("frontend/library/streams.py", "_turned"): "of what a child gives up",
}


def locks() -> Iterator[tuple[str, str, bool]]:
    """The module and the name of all locks that are made in the package, and whether ``freed`` or
    ``held`` knows it."""
    root = Path(weft.__file__).parent
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root)
        if path.parts[0] in ("tests", "bench", "examples"):
            continue
        tree = ast.parse(file.read_text())
        above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        held = {name for node in ast.walk(tree) if called(node) == "held"
                for name in names(node)}
        for node in ast.walk(tree):
            assert not (isinstance(node, ast.ImportFrom) and node.module == "threading")
            if called(node) in MAKERS:
                known, place = False, node
                while not isinstance(place, ast.stmt):
                    place = above[place]
                    known = known or called(place) == "freed"
                targets = names(*(place.targets if isinstance(place, ast.Assign) else
                                  [place.target] if isinstance(place, ast.AnnAssign) else []))
                name = next(each for each in [*targets, "?"] if each not in ("self", "each"))
                yield path.as_posix(), name, known or bool(held & set(targets))


def called(node: ast.AST) -> str:
    """The name of the function that a node calls, if it is a call."""
    if not isinstance(node, ast.Call):
        return ""
    return ast.unparse(node.func)


def names(*nodes: ast.AST) -> list[str]:
    return [each.attr if isinstance(each, ast.Attribute) else each.id
            for node in nodes for each in ast.walk(node)
            if isinstance(each, ast.Attribute | ast.Name)]


@pytest.mark.long
def test_forks_know_every_lock() -> None:
    """A new lock is ``freed`` or ``held``, or stands above with the reason why it need not be."""
    found = list(locks())
    assert len(found) > 30
    assert {(path, name) for path, name, known in found if not known} == set(ELSEWHERE)
