"""``i1 @{prefix}_poll(ptr control)``: whether a run is over. ``ir/plans/control`` has the block.

Loops call it after some tens of microseconds of work, in any thread. The coarse clock takes a few
nanoseconds, and is exact to some milliseconds.
"""

from __future__ import annotations

from ....ir.plans.control import ABORTED, OFFSETS, PERIOD, noted
from ..text import FunctionText

_COARSE = 6  # Linux's number of CLOCK_MONOTONIC_COARSE
_SECOND = 1_000_000_000


def field(f: FunctionText, name: str, control: str = "%control") -> str:
    """The address of a field of a control block."""
    return control if name == "status" else f(
        f"getelementptr i8, ptr {control}, i64 {OFFSETS[name]}")


def begin_control(f: FunctionText, polls: bool) -> None:
    """Make a block ready for a run in this thread, which asks its caller if it ``polls``."""
    f.do("store i32 0, ptr %control, align 4")
    if polls:
        f.do(f"store i64 {f.call('i64', 'pthread_self')}, ptr {field(f, 'owner')}, align 8")
        f.do(f"store i64 0, ptr {field(f, 'polled')}, align 8")


def ask_at_times(
    f: FunctionText, left: str, every: int, pool: str, times: str = "1"
) -> None:
    """Return ABORTED if the run is over, which is asked once in so many times; ``left`` is where it
    stands how many are left, of which ``times`` are taken."""
    ask, over, on = f.fresh("ask"), f.fresh("over"), f.fresh("on")
    times = f(f"sub i64 {f(f'load i64, ptr {left}, align 8')}, {times}")
    f.do(f"store i64 {times}, ptr {left}, align 8")
    f.branch(f(f"icmp slt i64 {times}, 0"), ask, on)
    f.place(ask)
    f.do(f"store i64 {every}, ptr {left}, align 8")
    f.branch(f.call_poll(f"@{pool}_poll(ptr %control)"), over, on)
    f.place(over)
    f.ret(f"i32 {ABORTED}")
    f.place(on)


def return_status(f: FunctionText, status: str, first: str) -> None:
    """Return what a status says: the number of a check in its kernel as one of the plan, of which
    ``first`` is the kernel's first; what ends the run stays what it is."""
    last = f(f"add i32 {first}, {noted(1)}")
    number, ended = f(f"sub i32 {last}, {status}"), f(f"icmp slt i32 {status}, 0")
    f.ret(f"i32 {f(f'select i1 {ended}, i32 {status}, i32 {number}')}")


def emit_poll(prefix: str, linkage: str = "") -> FunctionText:
    """The function; the first time that the owner comes, it only looks at the clock."""
    f = FunctionText("i1", f"{prefix}_poll", [("ptr", "control")], linkage=linkage,
                     attributes="noinline cold nounwind")

    def leave_unless(condition: str, result: str) -> None:
        on, off = f.fresh("on"), f.fresh("off")
        f.branch(condition, on, off)
        f.place(off)
        f.ret(f"i1 {result}")
        f.place(on)

    leave_unless(f("icmp ne ptr %control, null"), "false")  # of what takes no time
    status = f("load atomic i32, ptr %control monotonic, align 4")
    leave_unless(f(f"icmp sge i32 {status}, 0"), "true")
    hook = f(f"load ptr, ptr {field(f, 'hook')}, align 8")
    leave_unless(f(f"icmp ne ptr {hook}, null"), "false")
    owner = f(f"load i64, ptr {field(f, 'owner')}, align 8")
    leave_unless(f(f"icmp eq i64 {owner}, {f.call('i64', 'pthread_self')}"), "false")
    place = f.alloca("i64", 2, align=8)
    f.call("i32", "clock_gettime", ("i32", str(_COARSE)), ("ptr", place))
    seconds = f(f"load i64, ptr {place}, align 8")
    rest = f(f"load i64, ptr {f(f'getelementptr i64, ptr {place}, i64 1')}, align 8")
    whole = f(f"mul i64 {seconds}, {_SECOND}")
    now = f(f"add i64 {whole}, {rest}")
    polled = f(f"load i64, ptr {field(f, 'polled')}, align 8")
    first = f(f"icmp eq i64 {polled}, 0")
    since = f(f"select i1 {first}, i64 {now}, i64 {polled}")
    with f.when(first):
        f.do(f"store i64 {now}, ptr {field(f, 'polled')}, align 8")
    late = f(f"icmp sge i64 {f(f'sub i64 {now}, {since}')}, {PERIOD}")
    leave_unless(late, "false")
    f.do(f"store i64 {now}, ptr {field(f, 'polled')}, align 8")
    over = f(f"call i32 {hook}(ptr %control)")
    leave_unless(f(f"icmp ne i32 {over}, 0"), "false")
    f(f"atomicrmw umax ptr %control, i32 {ABORTED} monotonic")
    f.ret("i1 true")
    return f
