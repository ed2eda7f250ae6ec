"""The worker pool as LLVM IR: ``parallel_for(body, context, tasks, threads, scratch, control)``.

Emitted rather than linked, so that the JIT and an object file run the same code on libc alone.
One launch at a time owns the pool; any other (concurrent or nested) runs inline: none waits.

The launch word is ``threads << 32 | chunks left``. A thread with index < threads claims a chunk
by a compare-and-swap word -> word - 1 (acquire), reads the launch's fields only *then*, runs the
body, and at last subtracts its number of chunks from ``pending`` (release). The owner writes the
fields, ``pending``, then the word (release), works as thread 0, and waits for ``pending`` = 0
(acquire). So a held claim keeps ``pending`` above 0, hence the fields in place: they are never
read stale. A late swap succeeds only on a word equal to the one seen, and is then a valid claim
in the launch that is there now: with no generation there is none to mistake (no ABA), and 0
left admits nobody. A worker nobody woke costs speed only: the owner would claim all itself.

A body gets scratch memory of the thread that runs it: a worker's own, or the caller's.
"""

from __future__ import annotations

from ....ir.plans.control import PERIOD
from ....ir.record import record
from ..text import FunctionText
from .poll import emit_poll
from .workers import (
    CORE_SET,
    MAX_THREADS,
    Page,
    at,
    pool_function,
    worker_functions,
    worker_globals,
)

# More chunks than threads, so that a thread that wakes late or is preempted holds up a quarter
# of its share at most; not many more, because each one costs a contended compare-and-swap.
_CHUNKS_PER_THREAD = 4

# Thread i wakes 4i + 1 .. 4i + 4. A wake costs the waker one to ten microseconds, which 63 times
# in a row would hold back the caller's own share.
_WAKE_FAN = 4

_CALLER_SLEEPS = 1 << 31  # in ``pending``; one word, so that going to sleep cannot miss the end

_WAIT, _WAKE = 128, 129  # FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE


@record(frozen=True)
class _Machine:
    """What differs between architectures."""

    futex: int  # number of the system call
    relax: str  # the instruction that makes a spinning core yield to its sibling
    # A launch mostly follows another within microseconds, and a wake costs ten and more, so
    # threads spin before they sleep: 10 to 70 us on the cores of the last ten years (a ``pause``
    # is 5 to 45 ns), longer than the gap between kernels, too short to be seen in the load.
    spins: int
    # Every chunk must round as the caller would (flush-to-zero is set by some libraries, in
    # some threads), else results would depend on who ran it.
    save_control: str
    load_control: str


_MACHINES = {
    "x86_64": _Machine(
        futex=202,
        relax="call void @llvm.x86.sse2.pause()",
        spins=1500,
        save_control="call void @llvm.x86.sse.stmxcsr(ptr %mode.word)",
        load_control="call void @llvm.x86.sse.ldmxcsr(ptr %mode.word)",
    ),
    "aarch64": _Machine(
        futex=98,
        relax="call void @llvm.aarch64.isb(i32 15)",  # ``yield`` does nothing on most cores
        spins=2500,
        save_control="%mode = call i64 @llvm.aarch64.get.fpcr()\nstore i64 %mode, ptr %mode.word",
        load_control="%mode = load i64, ptr %mode.word\n"
                     "call void @llvm.aarch64.set.fpcr(i64 %mode)",
    ),
}


def pool_parts(
    triple: str, prefix: str = "weft", linkage: str = ""
) -> tuple[list[FunctionText], list[str]]:
    """The functions and globals of the pool, to be put into a module with other code.

    Of them ``void @{prefix}_parallel_for(ptr body, ptr context, i64 tasks, i64 threads, ptr
    scratch, ptr control)`` and ``i1 @{prefix}_poll(ptr control)`` have ``linkage``, the others are
    internal. The first runs ``void body(ptr context, i64
    begin, i64 end, ptr scratch)`` on disjoint ranges that cover [0, tasks), on at most
    ``threads`` threads (the caller and up to 63 workers), and returns when all have ended. With
    ``threads`` or ``tasks`` below 2, or the pool busy, that is one range in the caller's thread;
    so results must not depend on cuts. The body's scratch is the caller's in its thread, and
    ``SCRATCH_BYTES`` bytes in a worker, aligned to pages and full of what was left there. While
    the caller waits for workers it polls the control block of its run, if that is not null; bodies
    are to do so themselves.

    Workers are never joined: the code must stay mapped until the process ends (the JIT library
    is never freed, not even at exit; a shared object is linked with ``-z nodelete``).

    Raises:
        ValueError: there is no pool for the architecture of ``triple``.
    """
    arch = triple.split("-", 1)[0]
    if arch not in _MACHINES:
        raise ValueError(f"no thread pool for {arch!r}, only for {', '.join(_MACHINES)}")
    machine = _MACHINES[arch]
    functions = [
        emit_poll(prefix, linkage),
        _parallel_for(prefix, linkage),
        _launch(machine, prefix),
        _wake(machine, prefix),
        _work(machine, prefix),
        _run_chunk(prefix),
        _wait(machine, prefix),
        _worker(machine, prefix),
    ]
    return functions + worker_functions(prefix), worker_globals(prefix)


def _futex(
    machine: _Machine, address: str, operation: int, value: str, timeout: str = "null"
) -> str:
    return (
        f"call i64 (i64, ...) @syscall(i64 {machine.futex}, ptr {address}, i32 {operation}, "
        f"i32 {value}, ptr {timeout}, ptr null, i32 0)"
    )


def _admits(stem: str) -> str:
    """``%{stem}.go``: the launch word ``%{stem}`` has a chunk for thread ``%index``."""
    return f"""
        %{stem}.left = and i64 %{stem}, {0xFFFFFFFF}
        %{stem}.seats = lshr i64 %{stem}, 32
        %{stem}.some = icmp ne i64 %{stem}.left, 0
        %{stem}.seated = icmp ult i64 %index, %{stem}.seats
        %{stem}.go = and i1 %{stem}.some, %{stem}.seated"""


def _parallel_for(prefix: str, linkage: str) -> FunctionText:
    """The entry: a launch where it pays and the pool is free, else one call of the body."""
    text = f"""
        %many = icmp sgt i64 %tasks, 1
        %wide = icmp sgt i64 %threads, 1
        %parallel = and i1 %many, %wide
        br i1 %parallel, label %ask, label %inline
      ask:
        %pool = call ptr @{prefix}_pool_enter()
        %busy = icmp eq ptr %pool, null
        br i1 %busy, label %inline, label %own
      own:
        {at("lock", Page.LOCK)}
        %most = call i64 @llvm.umin.i64(i64 %threads, i64 {MAX_THREADS})
        %asked = call i64 @llvm.umin.i64(i64 %most, i64 %tasks)
        %seats = call i64 @{prefix}_pool_grow(ptr %pool, i64 %asked)
        %alone = icmp eq i64 %seats, 1
        br i1 %alone, label %unlock, label %launch
      launch:
        call void @{prefix}_pool_launch(
          ptr %pool, ptr %body, ptr %context, i64 %tasks, i64 %seats, ptr %scratch,
          ptr %control)
        br label %unlock
      unlock:
        store atomic i32 0, ptr %lock release, align 4
        br i1 %alone, label %inline, label %done
      inline:
        %any = icmp sgt i64 %tasks, 0
        br i1 %any, label %run, label %done
      run:
        call void %body(ptr %context, i64 0, i64 %tasks, ptr %scratch)
        br label %done
      done:
        ret void"""
    params = [("ptr", "body"), ("ptr", "context"), ("i64", "tasks"), ("i64", "threads"),
              ("ptr", "scratch"), ("ptr", "control")]
    return pool_function("void", f"{prefix}_parallel_for", params, text, linkage=linkage)


def _launch(machine: _Machine, prefix: str) -> FunctionText:
    """Run one launch on ``seats`` threads, as the owner of the pool."""
    text = f"""
        {at("at.body", Page.BODY)}
        {at("at.context", Page.CONTEXT)}
        {at("at.chunks", Page.CHUNKS)}
        {at("at.each", Page.EACH)}
        {at("at.extra", Page.EXTRA)}
        {at("mode.word", Page.CONTROL)}
        {at("pending", Page.PENDING)}
        {at("word", Page.WORD)}
        %wanted = mul i64 %seats, {_CHUNKS_PER_THREAD}
        %chunks = call i64 @llvm.umin.i64(i64 %wanted, i64 %tasks)
        %each = udiv i64 %tasks, %chunks
        %extra = urem i64 %tasks, %chunks
        store ptr %body, ptr %at.body
        store ptr %context, ptr %at.context
        store i64 %chunks, ptr %at.chunks
        store i64 %each, ptr %at.each
        store i64 %extra, ptr %at.extra
        {machine.save_control}
        %count = trunc i64 %chunks to i32
        store atomic i32 %count, ptr %pending monotonic, align 4
        %high = shl i64 %seats, 32
        %published = or i64 %high, %chunks
        ; Sequentially consistent, and so are the bell that a worker sets before it sleeps and
        ; its last look at the word: either it sees this launch, or the launch sees its bell.
        store atomic i64 %published, ptr %word seq_cst, align 8
        call void @{prefix}_pool_wake(ptr %pool, i64 0, i64 %seats)
        call void @{prefix}_pool_work(ptr %pool, i64 0, ptr %scratch)
        call void @{prefix}_pool_wait(ptr %pool, ptr %control)
        ret void"""
    params = [("ptr", "pool"), ("ptr", "body"), ("ptr", "context"), ("i64", "tasks"),
              ("i64", "seats"), ("ptr", "scratch"), ("ptr", "control")]
    return pool_function("void", f"{prefix}_pool_launch", params, text)


def _wake(machine: _Machine, prefix: str) -> FunctionText:
    """Wake those workers of a launch with ``seats`` threads that ``index`` is to ring."""
    text = f"""
        {at("bells", Page.BELLS)}
        %before = mul i64 %index, {_WAKE_FAN}
        %first = add i64 %before, 1
        %last = add i64 %before, {_WAKE_FAN + 1}
        %stop = call i64 @llvm.umin.i64(i64 %last, i64 %seats)
        br label %head
      head:
        %at = phi i64 [ %first, %entry ], [ %following, %next ]
        %inside = icmp ult i64 %at, %stop
        br i1 %inside, label %look, label %done
      look:
        %bell = getelementptr i32, ptr %bells, i64 %at
        %state = load atomic i32, ptr %bell seq_cst, align 4
        %sleeps = icmp eq i32 %state, 1
        br i1 %sleeps, label %ring, label %next
      ring:
        call void @{prefix}_pool_seen(ptr %pool, i64 %index)
        %was = atomicrmw xchg ptr %bell, i32 0 seq_cst
        %mine = icmp eq i32 %was, 1
        br i1 %mine, label %call, label %next
      call:
        %woken = {_futex(machine, "%bell", _WAKE, "1")}
        br label %next
      next:
        %following = add i64 %at, 1
        br label %head
      done:
        ret void"""
    params = [("ptr", "pool"), ("i64", "index"), ("i64", "seats")]
    return pool_function("void", f"{prefix}_pool_wake", params, text)


def _work(machine: _Machine, prefix: str) -> FunctionText:
    """Claim and run chunks as thread ``index`` until none is left, then report them done."""
    text = f"""
        {at("at.word", Page.WORD)}
        {at("mode.word", Page.CONTROL)}
        {at("pending", Page.PENDING)}
        %start = load atomic i64, ptr %at.word monotonic, align 8
        br label %check
      check:
        %word = phi i64 [ %start, %entry ], [ %seen, %claim ], [ %now, %chunk ]
        %count = phi i32 [ 0, %entry ], [ %count, %claim ], [ %counted, %chunk ]
        {_admits("word")}
        br i1 %word.go, label %claim, label %report
      claim:
        %taken = sub i64 %word, 1
        %pair = cmpxchg ptr %at.word, i64 %word, i64 %taken acquire monotonic
        %seen = extractvalue {{ i64, i1 }} %pair, 0
        %won = extractvalue {{ i64, i1 }} %pair, 1
        br i1 %won, label %claimed, label %check
      claimed:
        %first = icmp eq i32 %count, 0
        br i1 %first, label %adopt, label %chunk
      adopt:
        {machine.load_control}
        br label %chunk
      chunk:
        call void @{prefix}_pool_run_chunk(ptr %pool, i64 %word.left, ptr %scratch)
        %counted = add i32 %count, 1
        %now = load atomic i64, ptr %at.word monotonic, align 8
        br label %check
      report:
        %any = icmp ne i32 %count, 0
        br i1 %any, label %settle, label %done
      settle:
        %owed = atomicrmw sub ptr %pending, i32 %count acq_rel
        ; The launch may be over from here on: only the page's address is used.
        %asleep = or i32 %count, {_CALLER_SLEEPS}
        %last = icmp eq i32 %owed, %asleep
        br i1 %last, label %wake, label %done
      wake:
        %woken = {_futex(machine, "%pending", _WAKE, "1")}
        br label %done
      done:
        ret void"""
    params = [("ptr", "pool"), ("i64", "index"), ("ptr", "scratch")]
    return pool_function("void", f"{prefix}_pool_work", params, text)


def _run_chunk(prefix: str) -> FunctionText:
    """Run the body on the chunk claimed when ``left`` were left; the claim keeps the fields."""
    text = f"""
        {at("at.body", Page.BODY)}
        {at("at.context", Page.CONTEXT)}
        {at("at.chunks", Page.CHUNKS)}
        {at("at.each", Page.EACH)}
        {at("at.extra", Page.EXTRA)}
        %body = load ptr, ptr %at.body
        %context = load ptr, ptr %at.context
        %chunks = load i64, ptr %at.chunks
        %each = load i64, ptr %at.each
        %extra = load i64, ptr %at.extra
        ; The first ``extra`` chunks hold one task more than the others.
        %number = sub i64 %chunks, %left
        %longer = icmp ult i64 %number, %extra
        %one = zext i1 %longer to i64
        %size = add i64 %each, %one
        %before = mul i64 %number, %each
        %ones = call i64 @llvm.umin.i64(i64 %number, i64 %extra)
        %begin = add i64 %before, %ones
        %end = add i64 %begin, %size
        call void %body(ptr %context, i64 %begin, i64 %end, ptr %scratch)
        ret void"""
    params = [("ptr", "pool"), ("i64", "left"), ("ptr", "scratch")]
    return pool_function("void", f"{prefix}_pool_run_chunk", params, text)


def _wait(machine: _Machine, prefix: str) -> FunctionText:
    """Return once no chunk is pending: spin, then sleep, and poll now and then."""
    text = f"""
        {at("pending", Page.PENDING)}
        %timeout = alloca [2 x i64], align 8
        br label %poll
      poll:
        %spins = phi i64 [ 0, %entry ], [ %spun, %relax ]
        %owed = load atomic i32, ptr %pending acquire, align 4
        %over = icmp eq i32 %owed, 0
        br i1 %over, label %done, label %relax
      relax:
        {machine.relax}
        %spun = add i64 %spins, 1
        %again = icmp ult i64 %spun, {machine.spins}
        br i1 %again, label %poll, label %announce
      announce:
        store [2 x i64] [i64 0, i64 {PERIOD}], ptr %timeout, align 8
        %told = atomicrmw or ptr %pending, i32 {_CALLER_SLEEPS} acq_rel
        br label %look
      look:
        %still = load atomic i32, ptr %pending acquire, align 4
        %ended = icmp eq i32 %still, {_CALLER_SLEEPS}
        br i1 %ended, label %done, label %sleep
      sleep:
        %slept = {_futex(machine, "%pending", _WAIT, "%still", "%timeout")}
        %alone = icmp eq ptr %control, null
        br i1 %alone, label %look, label %ask
      ask:
        %ignored = call i1 @{prefix}_poll(ptr %control)
        br label %look
      done:
        ret void"""
    return pool_function("void", f"{prefix}_pool_wait", [("ptr", "pool"), ("ptr", "control")],
                         text)


def _worker(machine: _Machine, prefix: str) -> FunctionText:
    """The life of worker ``argument``: spin for a launch, join it; without one, sleep.

    Without memory for its scratch it ends at once: nobody waits for a thread that claims nothing.
    """
    text = f"""
        %index = ptrtoint ptr %argument to i64
        %pool = load atomic ptr, ptr @{prefix}_workers acquire, align 8
        {at("at.word", Page.WORD)}
        {at("bells", Page.BELLS)}
        %bell = getelementptr i32, ptr %bells, i64 %index
        %allowed = alloca [{CORE_SET // 64} x i64], align 8
        %chosen = alloca [{CORE_SET // 64} x i64], align 8
        call void @llvm.memset.p0.i64(ptr %chosen, i8 0, i64 {CORE_SET // 8}, i1 false)
        %scratch = call ptr @{prefix}_pool_scratch()
        %lacking = icmp eq ptr %scratch, null
        br i1 %lacking, label %end, label %poll
      end:
        ret ptr null
      poll:
        %spins = phi i64 [ 0, %entry ], [ %spun, %relax ],
          [ 0, %join ], [ 0, %stay ], [ 0, %sleep ]
        %word = load atomic i64, ptr %at.word monotonic, align 8
        {_admits("word")}
        br i1 %word.go, label %join, label %relax
      join:
        call void @{prefix}_pool_wake(ptr %pool, i64 %index, i64 %word.seats)
        call void @{prefix}_pool_work(ptr %pool, i64 %index, ptr %scratch)
        br label %poll
      relax:
        {machine.relax}
        %spun = add i64 %spins, 1
        %again = icmp ult i64 %spun, {machine.spins}
        br i1 %again, label %poll, label %doze
      doze:
        call void @{prefix}_pool_spread(
          ptr %pool, i64 %index, ptr %allowed, ptr %chosen)
        store atomic i32 1, ptr %bell seq_cst, align 4
        br label %look
      look:
        %last = load atomic i64, ptr %at.word seq_cst, align 8
        {_admits("last")}
        br i1 %last.go, label %stay, label %sleep
      stay:
        store atomic i32 0, ptr %bell monotonic, align 4
        br label %poll
      sleep:
        %slept = {_futex(machine, "%bell", _WAIT, "1")}
        %state = load atomic i32, ptr %bell monotonic, align 4
        %unrung = icmp eq i32 %state, 1
        br i1 %unrung, label %look, label %poll"""
    return pool_function("ptr", f"{prefix}_pool_worker", [("ptr", "argument")], text)
