"""The loop that runs the rows of a plan; ``table`` says what they are.

However many steps there are, there is little code: LLVM's passes take more than linear time in the
length of a function. Rows and words are constants:

    @f_steps   [N x { ptr function, i64 kind, first, count, tasks, shared, check }]
    @f_slots   [M x i64]     what the kernel's context is filled with

Each launch has ended before the context is filled for the next. Few rows of few words are written
out, each with a label to jump to, which saves 10 ns a call.

A plan with times (``ir/plans/times``) has one constant more, the numbers of its rows, and two small
functions: one reads the clock, the other notes a row that has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ....ir.plans.control import ABORTED
from ....ir.plans.inner import WORDS
from ....ir.record import record
from ..host.layout import element
from ..host.poll import ask_at_times, begin_control, field, return_status
from ..text import FunctionText
from .rows import STATUS, THREADS, Kind, Row, Word
from .table import StepTable

UNROLLED = 8   # rows
WRITTEN = 64   # words
POLLED = 64    # rows, none of which takes long without asking itself, until the next question


def step_globals(table: StepTable) -> list[str]:
    """The constants, where a loop reads them."""
    if _is_short(table):
        return []
    name, clocks = table.plan.name, list[str]()
    words = ", ".join(f"i64 {word}" for word in table.words)
    if table.times >= 0:
        numbers = ", ".join(f"i64 {row.clock}" for row in table.rows)
        clocks.append(f"@{name}_clocks = internal constant [{len(table.rows)} x i64] [{numbers}]")
    return [*clocks, f"@{name}_steps = internal constant [{len(table.rows)} x {Row.TYPE}] "
            f"[{', '.join(map(str, table.rows))}]",
            f"@{name}_slots = internal constant [{len(table.words)} x i64] [{words}]"]


def run_steps(
    f: FunctionText, table: StepTable, registers: str, context: str, scratch: str, pool: str,
    polls: bool,
) -> None:
    """Run all steps and return 0, or the number of the check that failed, after which none runs.
    ``polls``: kernels do, so that the control block is to know its caller."""
    polls |= table.parallel or not _is_short(table) or any(
        row.kind is Kind.CONTROL for row in table.rows)
    begin_control(f, polls)
    left = f.alloca("i64", align=8) if polls else ""
    if polls:
        f.do(f"store i64 {POLLED}, ptr {left}, align 8")
    f.do(f"store ptr %control, ptr {element(f, 'i64', registers, STATUS)}, align 8")
    f.do(f"store i64 %threads, ptr {element(f, 'i64', registers, THREADS)}, align 8")
    times = "" if table.times < 0 else f(
        f"load ptr, ptr {element(f, 'ptr', '%args', table.times)}, align 8")
    run = _Run(f, registers, context, scratch, left, pool, table.parallel,
               table.plan.name, times)
    if _is_short(table):
        _written_out(f, table, run)
    else:
        _looped(f, table, run)
    f.ret("i32 0")


def _is_short(table: StepTable) -> bool:
    return len(table.rows) <= UNROLLED and len(table.words) <= WRITTEN


def _written_out(f: FunctionText, table: StepTable, run: _Run) -> None:
    labels = [f.fresh("row") for _ in range(len(table.rows) + 1)]
    f.jump(labels[0])
    for at, row in enumerate(table.rows):
        f.place(labels[at])
        for place, word in enumerate(table.words[row.first:row.first + row.count]):
            run.fill(str(place), run.value_of(word))
        match row.kind:
            case Kind.LAUNCH:
                run.launch(row.function, str(row.tasks), str(row.shared), str(row.check),
                           str(row.clock))
                f.jump(labels[at + 1])
            case Kind.COPY:
                run.copy(str(row.tasks), str(row.clock))
                f.jump(labels[at + 1])
            case Kind.CONTROL:
                run.ask()
                f.branch(run.goes_on(row.function), labels[at + 1], labels[row.tasks])
            case Kind.JUMP:
                f.jump(labels[row.tasks])
            case Kind.HOST:
                run.call_host(str(row.tasks), str(row.clock))
                f.jump(labels[at + 1])
            case Kind.CALL:
                run.call(row.function)
                f.jump(labels[at + 1])
    f.place(labels[-1])


def _looped(f: FunctionText, table: StepTable, run: _Run) -> None:
    name = table.plan.name
    here = f.alloca("i64", align=8)
    f.do(f"store i64 0, ptr {here}, align 8")
    head, body, done = f.fresh("rows"), f.fresh("row"), f.fresh("ended")
    f.jump(head)
    f.place(head)
    at = f(f"load i64, ptr {here}, align 8")
    f.branch(f(f"icmp ult i64 {at}, {len(table.rows)}"), body, done)
    f.place(body)
    run.ask()
    address = f(f"getelementptr {Row.TYPE}, ptr @{name}_steps, i64 {at}")
    function = f(f"load ptr, ptr {address}, align 8")
    kind, first, count, tasks, shared, check = (
        f(f"load i64, ptr {f(f'getelementptr {Row.TYPE}, ptr {address}, i64 0, i32 {n}')}, align 8")
        for n in range(1, 7))
    words = f(f"getelementptr i64, ptr @{name}_slots, i64 {first}")
    with f.loop("0", count) as slot:
        word = f(f"load i64, ptr {element(f, 'i64', words, slot)}, align 8")
        run.fill(slot, run.value(word))
    clock = ""
    if run.times:
        place = f(f"getelementptr i64, ptr @{name}_clocks, i64 {at}")
        clock = f(f"load i64, ptr {place}, align 8")
    following = f(f"add i64 {at}, 1")
    f.do(f"store i64 {following}, ptr {here}, align 8")
    labels = {each: f.fresh(each.name.lower()) for each in Kind
              if each in {row.kind for row in table.rows}}
    cases = " ".join(f"i64 {int(each)}, label %{label}" for each, label in labels.items())
    f.do(f"switch i64 {kind}, label %{done} [ {cases} ]")

    def case(each: Kind, write: Callable[[], None]) -> None:
        f.place(labels[each])
        write()
        f.jump(head)

    def control() -> None:
        go = run.goes_on(function)
        f.do(f"store i64 {f(f'select i1 {go}, i64 {following}, i64 {tasks}')}, ptr {here}, align 8")

    writers: Mapping[Kind, Callable[[], None]] = {
        Kind.LAUNCH: lambda: run.launch(function, tasks, shared, check, clock),
        Kind.COPY: lambda: run.copy(tasks, clock),
        Kind.CONTROL: control,
        Kind.JUMP: lambda: f.do(f"store i64 {tasks}, ptr {here}, align 8"),
        Kind.HOST: lambda: run.call_host(tasks, clock),
        Kind.CALL: lambda: run.call(function),
    }
    for each in labels:
        case(each, writers[each])
    f.place(done)


@record(frozen=True)
class _Run:
    """Writes the code of one step; what it is told are constants or values that were loaded."""

    f: FunctionText
    registers: str
    context: str
    scratch: str
    left: str        # where it stands how many rows run until it is asked if the run is over
    pool: str        # the prefix of its functions
    parallel: bool   # whether any row goes to the workers
    name: str        # of the program
    times: str = ""  # where the times of rows go, if anywhere

    @contextmanager
    def timed(self, number: str) -> Iterator[None]:
        """Note how long the code takes that the body writes."""
        start = self.f(f"call i64 @{self.name}_now()") if self.times else ""
        yield
        if self.times:
            self.f.do(f"call void @{self.name}_note(ptr {self.times}, i64 {number}, i64 {start})")

    def fill(self, slot: str, value: str) -> None:
        """Put a value into a slot of the context."""
        place = element(self.f, "i64", self.context, slot)
        self.f.do(f"store i64 {value}, ptr {place}, align 8")

    def launch(self, kernel: str, tasks: str, shared: str, check: str, clock: str) -> None:
        """Run a kernel, and return if a check fails."""
        f = self.f
        tasks, shared = self._number(tasks), self._number(shared)
        with self.timed(clock):
            done = f.fresh("done")
            if self.parallel and shared != "0":
                together, alone = f.fresh("shared"), f.fresh("alone")
                f.branch(f(f"icmp sgt i64 {shared}, 0"), together, alone)
                f.place(together)
                f.call("void", f"{self.pool}_parallel_for", ("ptr", kernel),
                       ("ptr", self.context), ("i64", tasks), ("i64", "%threads"),
                       ("ptr", self.scratch), ("ptr", "%control"))
                f.jump(done)
                f.place(alone)
            f.do(f"call void {kernel}(ptr {self.context}, i64 0, i64 {tasks}, ptr {self.scratch})")
            f.jump(done)
            f.place(done)
        status = f("load i32, ptr %control, align 4")
        failed, fine = f.fresh("failed"), f.fresh("fine")
        f.branch(f(f"icmp ne i32 {status}, 0"), failed, fine)
        f.place(failed)
        return_status(f, status, f(f"trunc i64 {check} to i32"))
        f.place(fine)

    def ask(self) -> None:
        """Return if the run is over, which is asked now and then."""
        ask_at_times(self.f, self.left, POLLED, self.pool)

    def copy(self, size: str, clock: str) -> None:
        """Copy what the second slot points at to where the first does."""
        f = self.f
        target, source = (f(f"load ptr, ptr {element(f, 'i64', self.context, at)}, align 8")
                          for at in ("0", "1"))
        size = self._number(size)
        with self.timed(clock):
            f.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", target), ("ptr", source),
                   ("i64", size), ("i1", "false"))

    def call(self, function: str) -> None:
        """Call a function of the program, and return what ends the run, if anything does."""
        f = self.f
        status = f(f"call i32 {function}(ptr {self.registers}, ptr %args, ptr %arena, "
                   f"ptr {self.scratch}, ptr %control)")
        failed, fine = f.fresh("failed"), f.fresh("fine")
        f.branch(f(f"icmp ne i32 {status}, 0"), failed, fine)
        f.place(failed)
        f.ret(f"i32 {status}")
        f.place(fine)

    def call_host(self, number: str, clock: str) -> None:
        """Run NumPy's own loop of a host step, if it has one that gives a result; else have the
        caller call a function of the host, and return if that has raised. That it has not, it must
        say: who interrupts Python before it can say anything has raised, too."""
        f = self.f
        asked, done = f.fresh("asked"), f.fresh("done")
        self._inner(number, clock, asked, done)
        f.place(asked)
        call = f(f"load ptr, ptr {field(f, 'host')}, align 8")
        f.do(f"store i32 {ABORTED}, ptr %control, align 4")
        with self.timed(clock):
            f.do(f"call void {call}(i64 {number}, ptr {self.context}, ptr %control)")
        status, failed = f("load i32, ptr %control, align 4"), f.fresh("failed")
        f.branch(f(f"icmp ne i32 {status}, 0"), failed, done)
        f.place(failed)
        f.ret(f"i32 {status}")
        f.place(done)

    def _inner(self, number: str, clock: str, asked: str, done: str) -> None:
        """Go on at ``done`` if a loop of NumPy has computed a step (``inner``), else at ``asked``.
        """
        f = self.f
        some, own = f.fresh("some"), f.fresh("own")
        loops = f(f"load ptr, ptr {field(f, 'loops')}, align 8")
        f.branch(f(f"icmp eq ptr {loops}, null"), asked, some)
        f.place(some)
        row = element(f, "i64", loops, f(f"mul i64 {number}, {len(WORDS)}"))
        function, data, dims, steps, slot = (
            f(f"load {kind}, ptr {element(f, 'i64', row, at)}, align 8")
            for at, kind in enumerate(("ptr", "ptr", "ptr", "ptr", "i64")))
        f.branch(f(f"icmp eq ptr {function}, null"), asked, own)
        f.place(own)
        with self.timed(clock):
            f.do(f"call void {function}(ptr {self.context}, ptr {dims}, ptr {steps}, ptr {data})")
        result = f(f"load ptr, ptr {element(f, 'i64', self.context, slot)}, align 8")
        value = f(f"load double, ptr {result}, align 8")
        f.branch(f(f"fcmp uno double {value}, {value}"), asked, done)

    def goes_on(self, function: str) -> str:
        """Whether a control function says that the next row is the one below."""
        return self.f(f"call i1 {function}(ptr {self.registers}, ptr %args, ptr %arena)")

    def value_of(self, word: int) -> str:
        """What a word that is known stands for: a pointer as a number, or a size."""
        f, number = self.f, word >> 2
        match Word(word & 3):
            case Word.ARGUMENT:
                return f(f"load i64, ptr {element(f, 'ptr', '%args', number)}, align 8")
            case Word.OFFSET:
                return f(f"add i64 {f('ptrtoint ptr %arena to i64')}, {number}")
        value = f(f"load i64, ptr {element(f, 'i64', self.registers, number)}, align 8")
        if Word(word & 3) is Word.VALUE:
            return value
        return f(f"add i64 {f('ptrtoint ptr %arena to i64')}, {value}")

    def value(self, word: str) -> str:
        """What a word that is loaded stands for."""
        f = self.f
        kind, number = f(f"and i64 {word}, 3"), f(f"ashr i64 {word}, 2")
        argument, other, size, ready = (f.fresh(stem) for stem in (
            "argument", "other", "size", "ready"))
        f.branch(f(f"icmp eq i64 {kind}, {int(Word.ARGUMENT)}"), argument, other)
        f.place(argument)
        pointer = f(f"load i64, ptr {element(f, 'ptr', '%args', number)}, align 8")
        f.jump(ready)
        f.place(other)
        arena = f("ptrtoint ptr %arena to i64")
        offset = f(f"add i64 {arena}, {number}")
        f.branch(f(f"icmp eq i64 {kind}, {int(Word.OFFSET)}"), ready, size)
        f.place(size)
        value = f(f"load i64, ptr {element(f, 'i64', self.registers, number)}, align 8")
        base = f(f"select i1 {f(f'icmp eq i64 {kind}, {int(Word.SIZED)}')}, i64 {arena}, i64 0")
        sized = f(f"add i64 {base}, {value}")
        f.jump(ready)
        f.place(ready)
        return f(f"phi i64 [ {pointer}, %{argument} ], [ {offset}, %{other} ], "
                 f"[ {sized}, %{size} ]")

    def _number(self, word: str) -> str:
        """A number, or the register that a negative word stands for."""
        f = self.f
        if not word.startswith("%"):
            known = int(word)
            return word if known >= 0 else f(
                f"load i64, ptr {element(f, 'i64', self.registers, ~known)}, align 8")
        before, told, ready = f.block, f.fresh("told"), f.fresh("ready")
        f.branch(f(f"icmp slt i64 {word}, 0"), told, ready)
        f.place(told)
        at = f(f"xor i64 {word}, -1")
        value = f(f"load i64, ptr {element(f, 'i64', self.registers, at)}, align 8")
        f.jump(ready)
        f.place(ready)
        return f(f"phi i64 [ {word}, %{before} ], [ {value}, %{told} ]")
