"""The worker pool's page and workers: where its state is, what survives a fork, who runs where.

All state is one page that is mapped when the first launch asks for it; then workers are started
as launches ask for more of them, and settle on cores of their own. None of them is ever ended.

    enter   -> the page, owned by the calling thread; -> open where there is none yet
    grow    -> workers for a launch
    scratch -> memory for the tasks of a worker, which only it uses
    spread  -> a worker, before it sleeps, leaves the cores of the threads before it
"""

from __future__ import annotations

from ....ir.plans.stack import SCRATCH_BYTES
from ..text import COLD, FunctionText

MAX_THREADS = 64


class Page:
    """Offsets in bytes; what different threads write is two cache lines apart, since cores fetch
    lines in pairs."""

    LOCK, HOME, KEPT, WORKERS = 0, 4, 8, 16  # the owner's own words
    WORD = 128  # the launch word
    # The fields of the launch, fixed while it runs.
    BODY, CONTEXT, CHUNKS, EACH, EXTRA, CONTROL = 256, 264, 272, 280, 288, 296
    PENDING = 384
    BELLS = 512  # one i32 a thread, 1 while it sleeps
    CORES = 768  # one i32 a thread: the core it was last seen on, counted from 1
    SIZE = 4096


CORE_SET = 1024  # bits of libc's cpu_set_t

# Bit n - 1 is signal n. Workers block all but SIGILL, SIGTRAP, SIGBUS, SIGFPE and SIGSEGV: those
# are about the thread that raises them, and a fault handler must be able to report it.
_BLOCKED = -1 & ~sum(1 << (number - 1) for number in (4, 5, 7, 8, 11))

_MAP_PRIVATE_ANONYMOUS = 0x22
_MAP_NORESERVE = 0x4000
_WIPE_ON_FORK = 18
_DONT_FORK = 10

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
    "declare void @llvm.x86.sse2.pause()",
    "declare void @llvm.x86.sse.stmxcsr(ptr)",
    "declare void @llvm.x86.sse.ldmxcsr(ptr)",
    "declare void @llvm.aarch64.isb(i32)",
    "declare i64 @llvm.aarch64.get.fpcr()",
    "declare void @llvm.aarch64.set.fpcr(i64)",
)


def pool_function(
    result: str, name: str, params: list[tuple[str, str]], text: str, *, linkage: str = "internal",
    attributes: str = "nounwind",
) -> FunctionText:
    """A function from literal IR, an instruction (or a part of one) or ``label:`` to a line."""
    function = FunctionText(result, name, params, linkage=linkage, attributes=attributes)
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.endswith(":"):
            function.place(line[:-1])
        else:
            function.do(line)
    for declaration in _DECLARATIONS:
        if declaration[declaration.index("@") : declaration.index("(") + 1] in text:
            function.declare(declaration)
    return function


def at(name: str, offset: int) -> str:
    """An instruction: ``%{name}`` is the address of a field of the page ``%pool``."""
    return f"%{name} = getelementptr i8, ptr %pool, i64 {offset}"


def worker_functions(prefix: str) -> list[FunctionText]:
    """``{prefix}_pool_enter``, ``_grow``, ``_spread``, ``_seen``, ``_scratch`` and their like."""
    return [
        _enter(prefix),
        _open(prefix),
        _grow(prefix),
        _spread(prefix),
        _strike(prefix),
        _seen(prefix),
        _scratch(prefix),
    ]


def worker_globals(prefix: str) -> list[str]:
    """The pointer to the page, null at first, and the signals that workers block."""
    blocked = ", ".join([f"i64 {_BLOCKED}"] + ["i64 -1"] * 15)
    return [
        f"@{prefix}_workers = internal global ptr null, align 8",
        f"@{prefix}_pool_signals = internal constant [16 x i64] [{blocked}], align 8",
    ]


def _enter(prefix: str) -> FunctionText:
    """Try to own the pool; null if it is busy, or could not be made.

    ``home`` is the mark of the process that made the workers. A forked child finds 0 there (its
    page was wiped) or, on a kept page, another process, maybe in the lock too; it starts anew.
    A child forked *inside a body* may only exec or exit, as POSIX has it for any threaded
    process: the chunks of the other threads are lost to it.
    """
    text = f"""
        %known = load atomic ptr, ptr @{prefix}_workers acquire, align 8
        %first = icmp eq ptr %known, null
        br i1 %first, label %make, label %have
      make:
        %made = call ptr @{prefix}_pool_open()
        %failed = icmp eq ptr %made, null
        br i1 %failed, label %busy, label %have
      have:
        %pool = phi ptr [ %known, %entry ], [ %made, %make ]
        {at("lock", Page.LOCK)}
        {at("at.home", Page.HOME)}
        {at("at.kept", Page.KEPT)}
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
        {at("word", Page.WORD)}
        {at("workers", Page.WORKERS)}
        {at("bells", Page.BELLS)}  ; and the cores, which follow them
        store atomic i64 0, ptr %word monotonic, align 8
        store i64 0, ptr %workers
        call void @llvm.memset.p0.i64(ptr align 64 %bells, i8 0, i64 {8 * MAX_THREADS}, i1 false)
        store i32 %mark, ptr %at.home
        br label %done
      done:
        ret ptr %pool
      busy:
        ret ptr null"""
    return pool_function("ptr", f"{prefix}_pool_enter", [], text)


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
          ptr null, i64 {Page.SIZE}, i32 3, i32 {_MAP_PRIVATE_ANONYMOUS}, i32 -1, i64 0)
        %address = ptrtoint ptr %page to i64
        %failed = icmp eq i64 %address, -1
        br i1 %failed, label %none, label %advise
      advise:
        ; An emulator that accepts any advice ignores it: only a kernel that refuses -1 counts.
        %nonsense = call i32 @madvise(ptr %page, i64 {Page.SIZE}, i32 -1)
        %advised = call i32 @madvise(ptr %page, i64 {Page.SIZE}, i32 {_WIPE_ON_FORK})
        %ignored = icmp eq i32 %nonsense, 0
        %refused = icmp ne i32 %advised, 0
        %keeps = or i1 %ignored, %refused
        %kept = zext i1 %keeps to i32
        %at.kept = getelementptr i8, ptr %page, i64 {Page.KEPT}
        store i32 %kept, ptr %at.kept
        %pair = cmpxchg ptr @{prefix}_workers, ptr null, ptr %page acq_rel acquire
        %other = extractvalue {{ ptr, i1 }} %pair, 0
        %won = extractvalue {{ ptr, i1 }} %pair, 1
        br i1 %won, label %ours, label %theirs
      ours:
        ret ptr %page
      theirs:
        %ignore = call i32 @munmap(ptr %page, i64 {Page.SIZE})
        ret ptr %other
      none:
        ret ptr null"""
    return pool_function("ptr", f"{prefix}_pool_open", [], text, attributes=COLD)


def _grow(prefix: str) -> FunctionText:
    """Start workers for ``asked`` threads; return how many threads the launch can have."""
    text = f"""
        %thread = alloca i64
        %mask = alloca [16 x i64]
        {at("at.workers", Page.WORKERS)}
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
    return pool_function("i64", f"{prefix}_pool_grow", [("ptr", "pool"), ("i64", "asked")], text,
                         attributes=COLD)


def _spread(prefix: str) -> FunctionText:
    """Keep this worker off the cores of the threads before it, as far as others are free.

    Some kernels, most of all in virtual machines, wake a thread on its waker's core while halted
    cores idle. Launches are too short for their load balancing to see that, and the two threads
    would share one core for ever. ``chosen`` is what this function set last: any other affinity
    was set from outside, and is what the worker is ``allowed``.
    """
    size = f"i64 {CORE_SET // 8}"
    text = f"""
        %now = alloca [{CORE_SET // 64} x i64], align 8
        %free = alloca [{CORE_SET // 64} x i64], align 8
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
    return pool_function("void", f"{prefix}_pool_spread", params, text, attributes=COLD)


def _strike(prefix: str) -> FunctionText:
    """Take the cores of the threads before worker ``index`` out of ``set``."""
    text = f"""
        {at("cores", Page.CORES)}
        br label %head
      head:
        %at = phi i64 [ 0, %entry ], [ %at.1, %next ]
        %at.1 = add i64 %at, 1
        %slot = getelementptr i32, ptr %cores, i64 %at
        %core.1 = load atomic i32, ptr %slot monotonic, align 4
        %core = sub i32 %core.1, 1
        %known = icmp ult i32 %core, {CORE_SET}
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
    return pool_function("void", f"{prefix}_pool_strike", params, text, attributes=COLD)


def _seen(prefix: str) -> FunctionText:
    """Note the core that thread ``index`` is on."""
    text = f"""
        {at("cores", Page.CORES)}
        %core = call i32 @sched_getcpu()
        %core.1 = add i32 %core, 1
        %own = getelementptr i32, ptr %cores, i64 %index
        store atomic i32 %core.1, ptr %own monotonic, align 4
        ret void"""
    return pool_function("void", f"{prefix}_pool_seen", [("ptr", "pool"), ("i64", "index")], text)


def _scratch(prefix: str) -> FunctionText:
    """Map a worker's scratch; null if that fails. It is kept out of a forked child, which has none
    of the workers and makes its own."""
    text = f"""
        %block = call ptr @mmap(ptr null, i64 {SCRATCH_BYTES}, i32 3,
          i32 {_MAP_PRIVATE_ANONYMOUS | _MAP_NORESERVE}, i32 -1, i64 0)
        %address = ptrtoint ptr %block to i64
        %failed = icmp eq i64 %address, -1
        br i1 %failed, label %none, label %advise
      advise:
        %ignored = call i32 @madvise(ptr %block, i64 {SCRATCH_BYTES}, i32 {_DONT_FORK})
        ret ptr %block
      none:
        ret ptr null"""
    return pool_function("ptr", f"{prefix}_pool_scratch", [], text)
