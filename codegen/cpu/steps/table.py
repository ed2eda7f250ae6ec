"""The steps of a plan as a table of rows, of which loops and branches are jumps.

    copy %h0 to %h                      copy
    loop t in 9 carry (%h = %g) {       control  t = 0, where is %xs[t]?; past the end if 9 is 0
      launch @cell(%xs[t], %h, %g)      launch
    }                                   control  t = t + 1, exchange %h and %g, where is %xs[t]?;
    copy %h to %y                       copy                                  back to the launch

*Registers* are 8-byte words of a running program: sizes that are expressions of symbolic dims, the
indices of loops, the addresses of windows that move and of buffers that are exchanged. What the
rounds of a loop change in them is a small function of its own, which also says where to go on.

The operands of a row are *words*, which fill the context of a kernel: ``number << 2 | kind``. All
that a plan needs is found here, before any code of the program itself is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from ....ir.diagnose import error
from ....ir.indices.index import Dim, plain_symbol, product, row_major, symbol, symbols_of
from ....ir.kernels.kernel import Kernel
from ....ir.kernels.workspace import scratch_bytes
from ....ir.machine import Machine
from ....ir.ops.table import OPS
from ....ir.plans.plan import (
    Alloc,
    Branch,
    Carry,
    Copy,
    Group,
    Host,
    Launch,
    Loop,
    Measure,
    Plan,
    Relation,
    Step,
    Window,
    all_steps,
    host_sizes,
    host_steps,
    tasks_of,
    window_type,
)
from ....ir.plans.stack import SCRATCH_BYTES
from ....ir.plans.times import clocked_steps, runs_as_one
from ....ir.record import field, record, replace
from ..host.layout import element
from ..loops.kernel import emit_kernel
from ..sorts.long_row import is_long_row
from ..text import FunctionText
from .fused import fused_loop
from .groups import Members, group_function
from .measure import Measured, measure_function
from .rows import STATUS, THREADS, Kind, Row, Word
from .values import Values


@record(eq=False)
class _Around:
    """A loop around the steps that are being written, the windows and sizes that change with its
    rounds, and the buffers of these that loops inside of it exchange: each round has them anew."""

    loop: Loop
    moving: list[tuple[int, Dim | Window]] = field(default_factory=list)
    fresh: list[tuple[int, Window]] = field(default_factory=list)

    @cached_property
    def exchanged_inside(self) -> frozenset[str]:
        """The buffers that loops inside of this one exchange."""
        inner = (*self.loop.test, *self.loop.body)
        return frozenset(name for step in all_steps(inner) if isinstance(step, Loop)
                         for name in step.exchanged)


class StepTable:
    """Rows, words, registers (what each is at the start, if anything) and functions of a plan."""

    def __init__(self, plan: Plan, target: Machine, pool: str) -> None:
        self.plan, self.types = plan, plan.types()
        self._target, self._pool = target, pool
        self.launched: set[str] = set()  # kernels that are functions which rows call
        self._inlined: dict[str, FunctionText] = {}
        self.rows: list[Row] = []
        self.words: list[int] = []
        self.registers: list[Dim | Window | None] = [None, None]  # STATUS and THREADS
        self._sizes: dict[str, Measured] = {step.size: Measured(step) for step in plan.measures}
        # Where blocks of memory are chained that are taken as sizes are known.
        self.blocks = self._new_register(None) if self._sizes else -1
        self.arenas = {step.size: self._new_register(None) for step in plan.measures if step.arena}
        self.functions: list[FunctionText] = []
        self.parallel = False    # whether any step may go to the workers
        self.slots = 2           # the length of the longest context; a copy has 2
        self._known: dict[object, int] = {}
        self._groups: dict[Members, str] = {}
        self._hosts = {id(step): at for at, step in enumerate(host_steps(plan))}
        self._clocks = {id(step): at for at, step in enumerate(
            clocked_steps(plan) if plan.times else ())}
        self._places: dict[str, int | Alloc] = {
            slot.name: at for at, slot in enumerate((*plan.params, *plan.results))}
        steps = list(all_steps(plan.steps))
        self._places.update({step.name: step for step in steps if isinstance(step, Alloc)})
        self.exchanged: dict[str, int] = {}  # buffers, and the registers that know where they are
        for step in steps:
            for name in step.exchanged if isinstance(step, Loop) else ():
                if name not in self.exchanged:
                    self.exchanged[name] = self._new_register(Window(name))
        self._steps(plan.steps, ())
        for measured in self._sizes.values():
            name = f"{plan.name}_measure{len(self.functions)}"
            self.functions.append(measure_function(self, measured, name))
            self.rows[measured.row] = replace(self.rows[measured.row], function=f"@{name}")

    @property
    def hosts(self) -> bool:
        """Whether any step calls a function of the host."""
        return bool(self._hosts)

    # -- registers and words --------------------------------------------------------------------

    def _new_register(self, start: Dim | Window | None) -> int:
        """A register that is known from the start, or from when all sizes in it are measured."""
        register = len(self.registers)
        measured = None if start is None else self.waits_for(start)
        if measured is not None and start is not None:
            measured.registers.append((register, start))
        self.registers.append(start if measured is None else None)
        return register

    def waits_for(self, *starts: Dim | Window) -> Measured | None:
        """The last of the sizes that some sizes or addresses count on, if any is measured."""
        if not self._sizes:
            return None
        used: set[str] = set()
        for start in starts:
            if isinstance(start, Window):
                home = self._places[start.buffer]
                dims = [*start.indices, *self.types[start.buffer].shape]
                if isinstance(home, Alloc):
                    used.add(home.size)
                    dims.append(home.offset)
            else:
                dims = [start]
            used = used.union(*map(symbols_of, dims))
        return next((each for name, each in reversed(self._sizes.items()) if name in used), None)

    def size(self, dim: Dim, around: Sequence[_Around] = ()) -> int:
        """The register of an expression of dims and of the indices of loops ``around``, or of such
        an index."""
        loop = None if plain_symbol(dim) is not None else self._mover(
            symbols_of(dim), self.waits_for(dim), around)
        key = dim if loop is None else (dim, loop)
        if key not in self._known:
            self._known[key] = self._new_register(dim if loop is None else None)
            if loop is not None:
                loop.moving.append((self._known[key], dim))
        return self._known[key]

    def _mover(
        self, used: frozenset[str], measured: Measured | None, around: Sequence[_Around]
    ) -> _Around | None:
        """The loop whose rounds change what counts on these symbols, if it is not known later
        still: when a size is measured in a round."""
        loop = next((one for one in reversed(around) if one.loop.index in used), None)
        return None if measured is not None and loop in measured.around else loop

    def _operand(self, dim: Dim, around: Sequence[_Around]) -> int:
        return dim if isinstance(dim, int) else ~self.size(dim, around)

    def _word(self, kind: Word, number: int) -> int:
        return number << 2 | kind

    def _window(self, window: Window, around: Sequence[_Around]) -> int:
        """The word for a window that a step inside of these loops reads or writes."""
        if window.indices:
            return self._word(Word.VALUE, self._moving(window, around))
        if window.buffer in self.exchanged:
            return self._word(Word.VALUE, self.exchanged[window.buffer])
        place = self._places[window.buffer]
        if isinstance(place, int):
            return self._word(Word.ARGUMENT, place)
        if place.size:
            return self._word(Word.VALUE, self._moving(window, around))
        if isinstance(place.offset, int):
            return self._word(Word.OFFSET, place.offset)
        return self._word(Word.SIZED, self.size(place.offset, around))

    def _moving(self, window: Window, around: Sequence[_Around]) -> int:
        """The register that holds the address of a window when a step needs it."""
        used = frozenset[str]().union(*map(symbols_of, window.indices))
        if window.buffer in self.exchanged:
            loop = around[-1] if around and (
                window.buffer not in around[-1].exchanged_inside) else None
            if loop is None:  # nobody else knows when it has moved
                register = self._new_register(None)
                self._control([(register, window)], lambda f, values: "true")
                return register
        else:
            loop = self._mover(used, self.waits_for(window), around)
        key = window, loop
        if key not in self._known:
            self._known[key] = self._new_register(window if loop is None else None)
            if loop is not None:
                loop.moving.append((self._known[key], window))
        return self._known[key]

    # -- rows -----------------------------------------------------------------------------------

    def _steps(self, steps: Sequence[Step], around: tuple[_Around, ...]) -> None:
        """Append the rows of steps; recursion is by nesting of steps only."""
        for step in steps:
            match step:
                case Launch():
                    self._launch(step, around)
                case Group():
                    self._group(step, around)
                case Copy():
                    words = [self._window(w, around) for w in (step.target, step.source)]
                    size = window_type(step.source, self.types).nbytes
                    self._add(Row(Kind.COPY, tasks=self._operand(size, around),
                                  clock=self._clock(step)), words)
                case Loop() if step.fused:
                    self._fused(step)
                case Loop():
                    self._loop(step, around)
                case Branch():
                    self._branch(step, around)
                case Host() if step.function in OPS:
                    self._host(step, around)
                case Measure():
                    self._sizes[step.size].row = len(self.rows)
                    self._sizes[step.size].around = around
                    self._add(Row(Kind.CALL), ())
                case Alloc():
                    if around and step.name in self.exchanged and not (
                            step.size and self._sizes[step.size].around == around):
                        around[-1].fresh.append((self.exchanged[step.name], Window(step.name)))
                case _:
                    name = type(step).__name__.lower()
                    raise error("W113", f"a step '{name}' has no native code yet",
                                hint="run the plan in the interpreter")

    def _add(self, row: Row, words: Sequence[int]) -> None:
        self.rows.append(replace(row, first=len(self.words), count=len(words)))
        self.words += words
        self.slots = max(self.slots, len(words))

    def _clock(self, step: Step) -> int:
        return self._clocks.get(id(step), -1)

    @property
    def times(self) -> int:
        """Where among the arguments is what takes the times of rows; -1 if nothing does."""
        names = [slot.name for slot in self.plan.params]
        return names.index(self.plan.times) if self.plan.times else -1

    def _host(self, step: Host, around: Sequence[_Around]) -> None:
        """Windows, then the sizes that the runtime cannot know (``plan.host_sizes``)."""
        words = [self._window(window, around) for window in (*step.inputs, *step.outputs)]
        words += [self._word(Word.VALUE, self.size(dim, around))
                  for dim in host_sizes(step, self.types)]
        self._add(Row(Kind.HOST, tasks=self._hosts[id(step)], clock=self._clock(step)), words)

    def _context(self, launch: Launch, around: Sequence[_Around]) -> list[int]:
        """The words of a kernel's context: arguments, sizes, where a failed check goes, and the
        threads of those that launch others."""
        kernel = self.plan.kernels[launch.kernel]
        return [*(self._window(arg, around) for arg in launch.args),
                *(self._word(Word.VALUE, self.size(symbol(name))) for name in kernel.dims),
                self._word(Word.VALUE, STATUS),
                *([self._word(Word.VALUE, THREADS)] if is_long_row(kernel) else [])]

    def _launch(self, launch: Launch, around: Sequence[_Around]) -> None:
        kernel, words = self.plan.kernels[launch.kernel], self._context(launch, around)
        self.launched.add(kernel.name)
        self._add(Row(Kind.LAUNCH, f"@{kernel.name}",
                      tasks=self._operand(tasks_of(kernel), around),
                      shared=self._shared(launch.parallel, [kernel], around),
                      check=launch.first_check, clock=self._clock(launch)), words)

    def _shared(
        self, parallel: bool | Relation, kernels: Iterable[Kernel], around: Sequence[_Around]
    ) -> int:
        """What decides if the workers are woken: 0 where one thread is always enough, or where only
        the one that calls has enough scratch."""
        if any(scratch_bytes(kernel) > SCRATCH_BYTES for kernel in kernels):
            return 0
        gap = parallel.left - parallel.right + 1 if isinstance(parallel, Relation) else parallel
        if isinstance(gap, int):
            self.parallel |= gap > 0
            return int(gap > 0)
        self.parallel = True
        return self._operand(gap, around)

    def _group(self, group: Group, around: Sequence[_Around]) -> None:
        """One launch of a function that runs the tasks of several kernels, one after the other.

        Launches with checks of their own stay what they are: numbers of checks do not mix.
        """
        kernels = [self.plan.kernels[launch.kernel] for launch in group.launches]
        if not runs_as_one(self.plan, group):
            self._steps(group.launches, tuple(around))
            return
        members, words = list[tuple[Kernel, int, int]](), list[int]()
        for launch, kernel in zip(group.launches, kernels, strict=True):
            start, tasks = len(words), tasks_of(kernel)
            words += self._context(launch, around)
            if not isinstance(tasks, int):
                words.append(self._word(Word.VALUE, self.size(tasks, around)))
            self.launched.add(kernel.name)
            members.append((kernel, start, tasks if isinstance(tasks, int) else ~(len(words) - 1)))
        total: Dim = sum(map(tasks_of, kernels), 0)
        name = self._group_function(tuple(members))
        self._add(Row(Kind.LAUNCH, f"@{name}", tasks=self._operand(total, around),
                      shared=self._shared(group.parallel, kernels, around),
                      clock=self._clock(group)), words)

    def _group_function(self, members: Members) -> str:
        """The function of a group, which all groups of these kernels share."""
        name = self._groups.get(members)
        if name is None:
            name = self._groups[members] = f"{self.plan.name}_group{len(self.functions)}"
            self.functions.append(group_function(name, members))
        return name

    def _fused(self, loop: Loop) -> None:
        """One row for all rounds of a loop."""
        name = f"{self.plan.name}_loop{len(self.functions)}"
        self.functions.append(fused_loop(self, loop, name, self._pool))
        self._add(Row(Kind.CALL, f"@{name}"), ())

    def inlined(self, kernel: Kernel) -> FunctionText:
        """The function of a kernel that becomes a part of those that call it."""
        name = f"{kernel.name}_inline"
        if name not in self._inlined:
            self._inlined[name] = emit_kernel(kernel, self._target, self._pool, name)
            self.functions.append(self._inlined[name])
        return self._inlined[name]

    def tried(self, kernel: Kernel, usual: bool) -> FunctionText:
        """That of a part of a round, which goes on where something is not as ``usual``."""
        name = f"{kernel.name}_tried{len(self.functions)}"
        self.functions.append(emit_kernel(kernel, self._target, self._pool, name, True, usual))
        return self.functions[-1]

    def _loop(self, loop: Loop, around: tuple[_Around, ...]) -> None:
        here = _Around(loop)
        index = self.size(symbol(loop.index))
        self.registers[index] = None
        enter = self._reserve()
        self._steps(loop.test, (*around, here))
        ends = [enter]
        if loop.condition is not None:
            ends.append(len(self.rows))
            self._condition(loop.condition)
        self._steps(loop.body, (*around, here))
        again = self._reserve()

        def first(f: FunctionText, values: Values) -> str:
            return "true" if loop.count is None else f(
                f"icmp sgt i64 {values.dim(loop.count)}, 0")

        def ended(f: FunctionText, values: Values) -> str:
            return "false" if loop.count is None else f(
                f"icmp sge i64 {values.load(index)}, {values.dim(loop.count)}")

        takes = any(isinstance(step, Measure) for step in all_steps((*loop.test, *loop.body)))
        mark = self._new_register(None) if takes and self.arenas else -1

        def start(f: FunctionText, values: Values) -> None:
            values.store(index, "0")
            if mark >= 0:
                values.store(mark, f(f"load i64, ptr {values.pointer(self.blocks)}, align 8"))
            self._renew(here, f, values)

        def turn(f: FunctionText, values: Values) -> None:
            self._turn(index, loop.carried, f, values)
            if mark >= 0:
                f.do(f"call void @{self.plan.name}_give_back(ptr {values.pointer(self.blocks)}, "
                     f"ptr {values.pointer(mark)})")
            self._renew(here, f, values)

        self._control(here.moving, first, at=enter, before=start)
        self._control(here.moving, ended, at=again, other=enter + 1, before=turn)
        for row in ends:
            self.rows[row] = replace(self.rows[row], tasks=len(self.rows))

    def _renew(self, here: _Around, f: FunctionText, values: Values) -> None:
        for register, window in here.fresh:
            address = self.address(f, window, values.dim, first=True)
            values.store(register, f(f"ptrtoint ptr {address} to i64"))

    def _turn(
        self, index: int, carried: Sequence[Carry], f: FunctionText, values: Values
    ) -> None:
        """Count the round that has ended, and exchange what the loop carries."""
        values.store(index, f(f"add nsw i64 {values.load(index)}, 1"))
        for carry in carried:
            places = [(self.exchanged[name], values.load(self.exchanged[other]))
                      for name, other in carry.pairs]
            for register, place in places:
                values.store(register, place)

    def _branch(self, branch: Branch, around: tuple[_Around, ...]) -> None:
        test = len(self.rows)
        self._condition(branch.condition)
        self._steps(branch.then, around)
        if branch.other:
            done = len(self.rows)
            self.rows.append(Row(Kind.JUMP))
            self.rows[test] = replace(self.rows[test], tasks=len(self.rows))
            self._steps(branch.other, around)
            self.rows[done] = replace(self.rows[done], tasks=len(self.rows))
        else:
            self.rows[test] = replace(self.rows[test], tasks=len(self.rows))

    def _condition(self, window: Window) -> None:
        """A row that goes on if a bool in memory is true."""
        def holds(f: FunctionText, values: Values) -> str:
            byte = f(f"load i8, ptr {self.address(f, window, values.dim)}")
            return f(f"icmp ne i8 {byte}, 0")

        self._control([], holds)

    def _reserve(self) -> int:
        self.rows.append(Row(Kind.CONTROL))
        return len(self.rows) - 1

    def _control(
        self, moving: Sequence[tuple[int, Dim | Window]],
        goes_on: Callable[[FunctionText, Values], str], *, at: int | None = None, other: int = 0,
        before: Callable[[FunctionText, Values], None] | None = None,
    ) -> None:
        """A row that finds out where windows are, and what sizes, after something else, and where
        to go on."""
        at = self._reserve() if at is None else at
        name = f"{self.plan.name}_control{len(self.functions)}"
        f = FunctionText("i1", name, [("ptr", "registers"), ("ptr", "args"), ("ptr", "arena")],
                         linkage="internal", attributes="nounwind")
        self.functions.append(f)
        values = Values(f, self)
        if before is not None:
            before(f, values)
        for register, each in moving:
            values.store(register, f(
                f"ptrtoint ptr {self.address(f, each, values.dim)} to i64") if isinstance(
                each, Window) else values.dim(each))
        f.ret(f"i1 {goes_on(f, values)}")
        self.rows[at] = replace(self.rows[at], function=f"@{name}", tasks=other)

    # -- addresses ------------------------------------------------------------------------------

    def address(
        self, f: FunctionText, window: Window, value: Callable[[Dim], str], *,
        first: bool = False, base: str = ""
    ) -> str:
        """The code of a window's address, now or when the program starts; ``value`` writes that of
        a size. ``base`` is where its buffer is, if only the caller knows."""
        base = base or self._base(f, window.buffer, value, first)
        shape = self.types[window.buffer].shape
        depth = len(window.indices)
        size = product(shape[depth:]) * self.types[window.buffer].dtype.itemsize
        offset = row_major(window.indices, shape[:depth]) * size
        return base if offset == 0 else f(f"getelementptr i8, ptr {base}, i64 {value(offset)}")

    def _base(
        self, f: FunctionText, buffer: str, value: Callable[[Dim], str], first: bool
    ) -> str:
        if buffer in self.exchanged and not first:
            place = element(f, "i64", "%registers", self.exchanged[buffer])
            return f(f"load ptr, ptr {place}, align 8")
        home = self._places[buffer]
        if isinstance(home, int):
            return f(f"load ptr, ptr {element(f, 'ptr', '%args', home)}, align 8")
        arena = "%arena"
        if home.size:
            at = element(f, "i64", "%registers", self.arenas[home.size])
            arena = f(f"load ptr, ptr {at}, align 8")
        return f(f"getelementptr i8, ptr {arena}, i64 {value(home.offset)}")
