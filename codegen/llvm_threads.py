"""The worker pool as LLVM IR: ``parallel_for(body, context, tasks, threads)``.

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
"""

from __future__ import annotations

from dataclasses import dataclass

from .llvm_text import FunctionText, module_text

MAX_THREADS = 64

# More chunks than threads, so that a thread that wakes late or is preempted holds up a quarter
# of its share at most; not many more, because each one costs a contended compare-and-swap.
_CHUNKS_PER_THREAD = 4

# Thread i wakes 4i + 1 .. 4i + 4. A wake costs the waker one to ten microseconds, which 63 times
# in a row would hold back the caller's own share.
_WAKE_FAN = 4

# The page: offsets in bytes. What different threads write is two cache lines apart, since cores
# fetch lines in pairs: the owner's own words; the launch word; the fields of the launch, fixed
# while it runs; ``pending``; the bells, one i32 a thread, 1 while it sleeps; the core a thread
# was last seen on, counted from 1.
_LOCK, _HOME, _KEPT, _WORKERS = 0, 4, 8, 16
_WORD = 128
_BODY, _CONTEXT, _CHUNKS, _EACH, _EXTRA, _CONTROL = 256, 264, 272, 280, 288, 296
_PENDING = 384
_BELLS = 512
_CORES = 768
_PAGE = 4096

_CALLER_SLEEPS = 1 << 31  # in ``pending``; one word, so that going to sleep cannot miss the end

# Bit n - 1 is signal n. Workers block all but SIGILL, SIGTRAP, SIGBUS, SIGFPE and SIGSEGV: those
# are about the thread that raises them, and a fault handler must be able to report it.
_BLOCKED = -1 & ~sum(1 << (number - 1) for number in (4, 5, 7, 8, 11))

_CORE_SET = 1024  # bits of libc's cpu_set_t

_WAIT, _WAKE = 128, 129  # FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE
_MAP_PRIVATE_ANONYMOUS = 0x22
_WIPE_ON_FORK = 18


@dataclass(frozen=True)
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
    declarations: tuple[str, ...]


_MACHINES = {
    "x86_64": _Machine(
        futex=202,
        relax="call void @llvm.x86.sse2.pause()",
        spins=1500,
        save_control="call void @llvm.x86.sse.stmxcsr(ptr %control)",
        load_control="call void @llvm.x86.sse.ldmxcsr(ptr %control)",
        declarations=(
            "declare void @llvm.x86.sse2.pause()",
            "declare void @llvm.x86.sse.stmxcsr(ptr)",
            "declare void @llvm.x86.sse.ldmxcsr(ptr)",
        ),
    ),
    "aarch64": _Machine(
        futex=98,
        relax="call void @llvm.aarch64.isb(i32 15)",  # ``yield`` does nothing on most cores
        spins=2500,
        save_control="%mode = call i64 @llvm.aarch64.get.fpcr()\nstore i64 %mode, ptr %control",
        load_control="%mode = load i64, ptr %control\ncall void @llvm.aarch64.set.fpcr(i64 %mode)",
        declarations=(
            "declare void @llvm.aarch64.isb(i32)",
            "declare i64 @llvm.aarch64.get.fpcr()",
            "declare void @llvm.aarch64.set.fpcr(i64)",
        ),
    ),
}

_DECLARATIONS = (
    "declare i64 @syscall(i64, ...)",
    "declare i32 @getpid()",
    "declare ptr @mmap(ptr, i64, i32, i32, i32, i64)",
    "declare i32 @munmap(ptr, i64)",
    "declare i32 @madvise(ptr, i64, i32)",
    "declare i32 @pthread_create(ptr, ptr, ptr, ptr)",
    "declare i32 @pthread_detach(i64)",
    "declare i32 @pthread_sigmask(i32, ptr, ptr)",
    "declare i32 @memcmp(ptr, ptr, i64)",
    "declare i32 @sched_getcpu()",
    "declare i32 @sched_getaffinity(i32, i64, ptr)",
    "declare i32 @sched_setaffinity(i32, i64, ptr)",
    "declare i64 @llvm.umin.i64(i64, i64)",
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    *(text for machine in _MACHINES.values() for text in machine.declarations),
)


def pool_module(triple: str, prefix: str = "weft", linkage: str = "") -> str:
    """The pool as a module of its own, for the target ``triple``."""
    functions, globals_ = pool_parts(triple, prefix, linkage)
    return module_text(functions, globals_, prelude=f'target triple = "{triple}"')


def pool_parts(
    triple: str, prefix: str = "weft", linkage: str = ""
) -> tuple[list[FunctionText], list[str]]:
    """The functions and globals of the pool, to be put into a module with other code.

    Of them ``void @{prefix}_parallel_for(ptr body, ptr context, i64 tasks, i64 threads)`` has
    ``linkage``, the others are internal. It runs ``void body(ptr context, i64 begin, i64 end)``
    on disjoint ranges that cover [0, tasks), on at most ``threads`` threads (the caller and up
    to 63 workers), and returns when all have ended. With ``threads`` or ``tasks`` below 2, or
    the pool busy, that is one range in the caller's thread; so results must not depend on cuts.

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
        _parallel_for(prefix, linkage),
        _launch(machine, prefix),
        _enter(prefix),
        _open(prefix),
        _grow(prefix),
        _wake(machine, prefix),
        _work(machine, prefix),
        _run_chunk(prefix),
        _wait(machine, prefix),
        _worker(machine, prefix),
        _spread(prefix),
        _strike(prefix),
        _seen(prefix),
    ]
    blocked = ", ".join([f"i64 {_BLOCKED}"] + ["i64 -1"] * 15)
    globals_ = [
        f"@{prefix}_pool = internal global ptr null, align 8",
        f"@{prefix}_pool_signals = internal constant [16 x i64] [{blocked}], align 8",
    ]
    return functions, globals_


def _function(
    result: str, name: str, params: list[tuple[str, str]], text: str, *, linkage: str = "internal"
) -> FunctionText:
    """A function from literal IR, an instruction (or a part of one) or ``label:`` to a line."""
    function = FunctionText(result, name, params, linkage=linkage, attributes="nounwind")
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.endswith(":"):
            function.place(line[:-1])
        else:
            function.do(line)
    for declaration in _DECLARATIONS:
        if declaration[declaration.index("@") : declaration.index("(") + 1] in text:
            function.declare(declaration)
    return function


def _at(name: str, offset: int) -> str:
    return f"%{name} = getelementptr i8, ptr %pool, i64 {offset}"


def _futex(machine: _Machine, address: str, operation: int, value: str) -> str:
    return (
        f"call i64 (i64, ...) @syscall(i64 {machine.futex}, ptr {address}, i32 {operation}, "
        f"i32 {value}, ptr null, ptr null, i32 0)"
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
        {_at("lock", _LOCK)}
        %most = call i64 @llvm.umin.i64(i64 %threads, i64 {MAX_THREADS})
        %asked = call i64 @llvm.umin.i64(i64 %most, i64 %tasks)
        %seats = call i64 @{prefix}_pool_grow(ptr %pool, i64 %asked)
        %alone = icmp eq i64 %seats, 1
        br i1 %alone, label %unlock, label %launch
      launch:
        call void @{prefix}_pool_launch(
          ptr %pool, ptr %body, ptr %context, i64 %tasks, i64 %seats)
        br label %unlock
      unlock:
        store atomic i32 0, ptr %lock release, align 4
        br i1 %alone, label %inline, label %done
      inline:
        %any = icmp sgt i64 %tasks, 0
        br i1 %any, label %run, label %done
      run:
        call void %body(ptr %context, i64 0, i64 %tasks)
        br label %done
      done:
        ret void"""
    params = [("ptr", "body"), ("ptr", "context"), ("i64", "tasks"), ("i64", "threads")]
    return _function("void", f"{prefix}_parallel_for", params, text, linkage=linkage)


def _launch(machine: _Machine, prefix: str) -> FunctionText:
    """Run one launch on ``seats`` threads, as the owner of the pool."""
    text = f"""
        {_at("at.body", _BODY)}
        {_at("at.context", _CONTEXT)}
        {_at("at.chunks", _CHUNKS)}
        {_at("at.each", _EACH)}
        {_at("at.extra", _EXTRA)}
        {_at("control", _CONTROL)}
        {_at("pending", _PENDING)}
        {_at("word", _WORD)}
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
        call void @{prefix}_pool_work(ptr %pool, i64 0)
        call void @{prefix}_pool_wait(ptr %pool)
        ret void"""
    params = [("ptr", "pool"), ("ptr", "body"), ("ptr", "context"), ("i64", "tasks")]
    return _function("void", f"{prefix}_pool_launch", [*params, ("i64", "seats")], text)


def _enter(prefix: str) -> FunctionText:
    """Try to own the pool; null if it is busy, or could not be made.

    ``home`` is the mark of the process that made the workers. A forked child finds 0 there (its
    page was wiped) or, on a kept page, another process, maybe in the lock too; it starts anew.
    A child forked *inside a body* may only exec or exit, as POSIX has it for any threaded
    process: the chunks of the other threads are lost to it.
    """
    text = f"""
        %known = load atomic ptr, ptr @{prefix}_pool acquire, align 8
        %first = icmp eq ptr %known, null
        br i1 %first, label %make, label %have
      make:
        %made = call ptr @{prefix}_pool_open()
        %failed = icmp eq ptr %made, null
        br i1 %failed, label %busy, label %have
      have:
        %pool = phi ptr [ %known, %entry ], [ %made, %make ]
        {_at("lock", _LOCK)}
        {_at("at.home", _HOME)}
        {_at("at.kept", _KEPT)}
        %kept = load i32, ptr %at.kept
        %wiped = icmp eq i32 %kept, 0
        br i1 %wiped, label %try, label %ask
      ask:
        %pid = call i32 @getpid()
        br label %try
      try:
        %mark = phi i32 [ 1, %have ], [ %pid, %ask ]
        %pair = cmpxchg ptr %lock, i32 0, i32 %mark acquire monotonic
        %holder = extractvalue {{ i32, i1 }} %pair, 0
        %won = extractvalue {{ i32, i1 }} %pair, 1
        br i1 %won, label %locked, label %held
      held:
        %ours = icmp eq i32 %holder, %mark
        br i1 %ours, label %busy, label %steal
      steal:
        ; The holder is a thread of the parent that this process was forked from.
        %pair.2 = cmpxchg ptr %lock, i32 %holder, i32 %mark acquire monotonic
        %won.2 = extractvalue {{ i32, i1 }} %pair.2, 1
        br i1 %won.2, label %locked, label %busy
      locked:
        %home = load i32, ptr %at.home
        %settled = icmp eq i32 %home, %mark
        br i1 %settled, label %done, label %reset
      reset:
        {_at("word", _WORD)}
        {_at("workers", _WORKERS)}
        {_at("bells", _BELLS)}  ; and the cores, which follow them
        store atomic i64 0, ptr %word monotonic, align 8
        store i64 0, ptr %workers
        call void @llvm.memset.p0.i64(ptr align 64 %bells, i8 0, i64 {8 * MAX_THREADS}, i1 false)
        store i32 %mark, ptr %at.home
        br label %done
      done:
        ret ptr %pool
      busy:
        ret ptr null"""
    return _function("ptr", f"{prefix}_pool_enter", [], text)


def _open(prefix: str) -> FunctionText:
    """Map the page; where two threads do at once, one page wins. Null without memory.

    The kernel wipes the page in a forked child (MADV_WIPEONFORK, Linux 4.14), so the child finds
    a free pool without workers, whatever the threads of its parent were doing. A comparison of
    getpid would cost every launch a system call, and is fooled by reused numbers; a handler of
    pthread_atfork could not be removed with the code, and is not a symbol that glibc exports.
    Where the kernel cannot wipe, the page is marked ``kept`` and the lock names its process.
    """
    text = f"""
        %page = call ptr @mmap(
          ptr null, i64 {_PAGE}, i32 3, i32 {_MAP_PRIVATE_ANONYMOUS}, i32 -1, i64 0)
        %address = ptrtoint ptr %page to i64
        %failed = icmp eq i64 %address, -1
        br i1 %failed, label %none, label %advise
      advise:
        ; An emulator that accepts any advice ignores it: only a kernel that refuses -1 counts.
        %nonsense = call i32 @madvise(ptr %page, i64 {_PAGE}, i32 -1)
        %advised = call i32 @madvise(ptr %page, i64 {_PAGE}, i32 {_WIPE_ON_FORK})
        %ignored = icmp eq i32 %nonsense, 0
        %refused = icmp ne i32 %advised, 0
        %keeps = or i1 %ignored, %refused
        %kept = zext i1 %keeps to i32
        %at.kept = getelementptr i8, ptr %page, i64 {_KEPT}
        store i32 %kept, ptr %at.kept
        %pair = cmpxchg ptr @{prefix}_pool, ptr null, ptr %page acq_rel acquire
        %other = extractvalue {{ ptr, i1 }} %pair, 0
        %won = extractvalue {{ ptr, i1 }} %pair, 1
        br i1 %won, label %ours, label %theirs
      ours:
        ret ptr %page
      theirs:
        %ignore = call i32 @munmap(ptr %page, i64 {_PAGE})
        ret ptr %other
      none:
        ret ptr null"""
    return _function("ptr", f"{prefix}_pool_open", [], text)


def _grow(prefix: str) -> FunctionText:
    """Start workers for ``asked`` threads; return how many threads the launch can have."""
    text = f"""
        %thread = alloca i64
        %mask = alloca [16 x i64]
        {_at("at.workers", _WORKERS)}
        %had = load i64, ptr %at.workers
        %first = add i64 %had, 1
        %missing = icmp ult i64 %first, %asked
        br i1 %missing, label %block, label %done
      block:
        call void @{prefix}_pool_seen(ptr %pool, i64 0)
        ; A new thread inherits the mask, so it never runs with another one.
        %blocked = call i32 @pthread_sigmask(i32 2, ptr @{prefix}_pool_signals, ptr %mask)
        br label %create
      create:
        %index = phi i64 [ %first, %block ], [ %following, %created ]
        %argument = inttoptr i64 %index to ptr
        %error = call i32 @pthread_create(
          ptr %thread, ptr null, ptr @{prefix}_pool_worker, ptr %argument)
        %failed = icmp ne i32 %error, 0
        br i1 %failed, label %restore, label %created
      created:
        %id = load i64, ptr %thread
        %detached = call i32 @pthread_detach(i64 %id)
        store i64 %index, ptr %at.workers
        %following = add i64 %index, 1
        %more = icmp ult i64 %following, %asked
        br i1 %more, label %create, label %restore
      restore:
        %reached = phi i64 [ %index, %create ], [ %following, %created ]
        %restored = call i32 @pthread_sigmask(i32 2, ptr %mask, ptr null)
        br label %done
      done:
        %have = phi i64 [ %first, %entry ], [ %reached, %restore ]
        %seats = call i64 @llvm.umin.i64(i64 %have, i64 %asked)
        ret i64 %seats"""
    return _function("i64", f"{prefix}_pool_grow", [("ptr", "pool"), ("i64", "asked")], text)


def _wake(machine: _Machine, prefix: str) -> FunctionText:
    """Wake those workers of a launch with ``seats`` threads that ``index`` is to ring."""
    text = f"""
        {_at("bells", _BELLS)}
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
    return _function("void", f"{prefix}_pool_wake", params, text)


def _work(machine: _Machine, prefix: str) -> FunctionText:
    """Claim and run chunks as thread ``index`` until none is left, then report them done."""
    text = f"""
        {_at("at.word", _WORD)}
        {_at("control", _CONTROL)}
        {_at("pending", _PENDING)}
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
        call void @{prefix}_pool_run_chunk(ptr %pool, i64 %word.left)
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
    return _function("void", f"{prefix}_pool_work", [("ptr", "pool"), ("i64", "index")], text)


def _run_chunk(prefix: str) -> FunctionText:
    """Run the body on the chunk claimed when ``left`` were left; the claim keeps the fields."""
    text = f"""
        {_at("at.body", _BODY)}
        {_at("at.context", _CONTEXT)}
        {_at("at.chunks", _CHUNKS)}
        {_at("at.each", _EACH)}
        {_at("at.extra", _EXTRA)}
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
        call void %body(ptr %context, i64 %begin, i64 %end)
        ret void"""
    return _function("void", f"{prefix}_pool_run_chunk", [("ptr", "pool"), ("i64", "left")], text)


def _wait(machine: _Machine, prefix: str) -> FunctionText:
    """Return once no chunk is pending: spin, then sleep."""
    text = f"""
        {_at("pending", _PENDING)}
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
        %told = atomicrmw or ptr %pending, i32 {_CALLER_SLEEPS} acq_rel
        br label %look
      look:
        %still = load atomic i32, ptr %pending acquire, align 4
        %ended = icmp eq i32 %still, {_CALLER_SLEEPS}
        br i1 %ended, label %done, label %sleep
      sleep:
        %slept = {_futex(machine, "%pending", _WAIT, "%still")}
        br label %look
      done:
        ret void"""
    return _function("void", f"{prefix}_pool_wait", [("ptr", "pool")], text)


def _worker(machine: _Machine, prefix: str) -> FunctionText:
    """The life of worker ``argument``: spin for a launch, join it; without one, sleep."""
    text = f"""
        %index = ptrtoint ptr %argument to i64
        %pool = load atomic ptr, ptr @{prefix}_pool acquire, align 8
        {_at("at.word", _WORD)}
        {_at("bells", _BELLS)}
        %bell = getelementptr i32, ptr %bells, i64 %index
        %allowed = alloca [{_CORE_SET // 64} x i64], align 8
        %chosen = alloca [{_CORE_SET // 64} x i64], align 8
        call void @llvm.memset.p0.i64(ptr %chosen, i8 0, i64 {_CORE_SET // 8}, i1 false)
        br label %poll
      poll:
        %spins = phi i64 [ 0, %entry ], [ %spun, %relax ],
          [ 0, %join ], [ 0, %stay ], [ 0, %sleep ]
        %word = load atomic i64, ptr %at.word monotonic, align 8
        {_admits("word")}
        br i1 %word.go, label %join, label %relax
      join:
        call void @{prefix}_pool_wake(ptr %pool, i64 %index, i64 %word.seats)
        call void @{prefix}_pool_work(ptr %pool, i64 %index)
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
    return _function("ptr", f"{prefix}_pool_worker", [("ptr", "argument")], text)


def _spread(prefix: str) -> FunctionText:
    """Keep this worker off the cores of the threads before it, as far as others are free.

    Some kernels, most of all in virtual machines, wake a thread on its waker's core while halted
    cores idle. Launches are too short for their load balancing to see that, and the two threads
    would share one core for ever. ``chosen`` is what this function set last: any other affinity
    was set from outside, and is what the worker is ``allowed``.
    """
    size = f"i64 {_CORE_SET // 8}"
    text = f"""
        %now = alloca [{_CORE_SET // 64} x i64], align 8
        %free = alloca [{_CORE_SET // 64} x i64], align 8
        %unknown = call i32 @sched_getaffinity(i32 0, {size}, ptr %now)
        %known = icmp eq i32 %unknown, 0
        br i1 %known, label %compare, label %done
      compare:
        %changed = call i32 @memcmp(ptr %now, ptr %chosen, {size})
        %ours = icmp eq i32 %changed, 0
        br i1 %ours, label %begin, label %learn
      learn:
        call void @llvm.memcpy.p0.p0.i64(ptr %allowed, ptr %now, {size}, i1 false)
        br label %begin
      begin:
        call void @llvm.memcpy.p0.p0.i64(ptr %free, ptr %allowed, {size}, i1 false)
        call void @{prefix}_pool_strike(ptr %pool, i64 %index, ptr %free)
        %differs = call i32 @memcmp(ptr %free, ptr %now, {size})
        %same = icmp eq i32 %differs, 0
        br i1 %same, label %publish, label %move
      move:
        ; An error means that no core is free: then the worker stays as it is.
        %error = call i32 @sched_setaffinity(i32 0, {size}, ptr %free)
        %moved = icmp eq i32 %error, 0
        br i1 %moved, label %keep, label %publish
      keep:
        call void @llvm.memcpy.p0.p0.i64(ptr %chosen, ptr %free, {size}, i1 false)
        br label %publish
      publish:
        call void @{prefix}_pool_seen(ptr %pool, i64 %index)
        br label %done
      done:
        ret void"""
    params = [("ptr", "pool"), ("i64", "index"), ("ptr", "allowed"), ("ptr", "chosen")]
    return _function("void", f"{prefix}_pool_spread", params, text)


def _strike(prefix: str) -> FunctionText:
    """Take the cores of the threads before worker ``index`` out of ``set``."""
    text = f"""
        {_at("cores", _CORES)}
        br label %head
      head:
        %at = phi i64 [ 0, %entry ], [ %at.1, %next ]
        %at.1 = add i64 %at, 1
        %slot = getelementptr i32, ptr %cores, i64 %at
        %core.1 = load atomic i32, ptr %slot monotonic, align 4
        %core = sub i32 %core.1, 1
        %known = icmp ult i32 %core, {_CORE_SET}
        br i1 %known, label %clear, label %next
      clear:
        %number = lshr i32 %core, 6
        %word = getelementptr i64, ptr %set, i32 %number
        %wide = zext i32 %core to i64
        %low = and i64 %wide, 63
        %bit = shl i64 1, %low
        %others = xor i64 %bit, -1
        %old = load i64, ptr %word
        %left = and i64 %old, %others
        store i64 %left, ptr %word
        br label %next
      next:
        %more = icmp ult i64 %at.1, %index
        br i1 %more, label %head, label %done
      done:
        ret void"""
    params = [("ptr", "pool"), ("i64", "index"), ("ptr", "set")]
    return _function("void", f"{prefix}_pool_strike", params, text)


def _seen(prefix: str) -> FunctionText:
    """Note the core that thread ``index`` is on."""
    text = f"""
        {_at("cores", _CORES)}
        %core = call i32 @sched_getcpu()
        %core.1 = add i32 %core, 1
        %own = getelementptr i32, ptr %cores, i64 %index
        store atomic i32 %core.1, ptr %own monotonic, align 4
        ret void"""
    return _function("void", f"{prefix}_pool_seen", [("ptr", "pool"), ("i64", "index")], text)
