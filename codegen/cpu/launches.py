"""The steps of a plan as constants, and the loop that runs them.

However many steps there are, there is little code: LLVM's passes take more than linear time in the
length of a function. A step is a row, and its operands are words of another table:

    [N x { ptr kernel, i64 first, i64 count, i64 tasks, i64 work, i64 check }] @f_steps
    [M x i64] @f_slots       what the kernel's context is filled with; see ``_Slot``

``tasks`` and ``work`` are numbers, or negative: ``~n`` is the nth of ``sizes``, the expressions of
symbolic dims that the program computes first. A row without a kernel is a copy, whose ``tasks`` are
bytes. Each launch has ended before the context is filled for the next. The loop over few steps is
unrolled, which saves 10 ns a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ...ir.index import Dim, symbol
from ...ir.kernel import Kernel
from ...ir.plan import Alloc, Copy, Launch, Plan, tasks_of
from ..kernel.cost import kernel_work
from .host.support import element
from .text import FunctionText

# Scalar operations below which waking a thread costs more than it saves (about 20 us of work).
PARALLEL_WORK = 1 << 18
UNROLLED = 8  # steps

_ROW = "{ ptr, i64, i64, i64, i64, i64 }"


class _Slot(IntEnum):
    """What the low bits of a slot's word say that the others count."""

    ARGUMENT = 0   # a pointer of ``args``
    OFFSET = 1     # bytes from the start of the arena
    SIZED = 2      # one of ``sizes`` bytes from there
    SIZE = 3       # one of ``sizes`` itself


@dataclass(frozen=True)
class _Row:
    """A step: words ``first`` and so on, ``count`` of them, tasks, work and the first check."""

    kernel: str
    numbers: tuple[int, int, int, int, int]

    @property
    def first(self) -> int:
        return self.numbers[0]

    @property
    def count(self) -> int:
        return self.numbers[1]

    def __str__(self) -> str:
        return f"{_ROW} {{ ptr {self.kernel}, {', '.join(f'i64 {n}' for n in self.numbers)} }}"


@dataclass
class StepTable:
    """The rows and words of a plan's steps while they are written."""

    plan: Plan
    sizes: list[Dim] = field(default_factory=list)  # expressions that the program has to compute
    parallel: bool = False                          # whether any step may go to the workers
    rows: list[_Row] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    _numbers: dict[Dim, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan, types = self.plan, self.plan.types()
        places: dict[str, int | Alloc] = {
            slot.name: at for at, slot in enumerate((*plan.params, *plan.results))}
        places.update({step.name: step for step in plan.steps if isinstance(step, Alloc)})
        for step in plan.steps:
            if isinstance(step, Launch):
                kernel = plan.kernels[step.kernel]
                slots = [self._place(places[name]) for name in step.args]
                slots += [self._word(_Slot.SIZE, self._number(symbol(name)))
                          for name in kernel.dims]
                self._add(f"@{kernel.name}", slots, tasks_of(kernel), self._work(kernel),
                          step.first_check)
            elif isinstance(step, Copy):
                slots = [self._place(places[name]) for name in (step.target, step.source)]
                self._add("null", slots, types[step.source].nbytes, 0, 1)

    @property
    def slots(self) -> int:
        """The length of the longest context, with the pointer to the status."""
        kernels = self.plan.kernels.values()
        return max([2, *(len(k.params) + len(k.dims) for k in kernels)]) + 1  # a copy has 2

    def globals_(self) -> list[str]:
        """The constants, where a loop reads them."""
        if len(self.rows) <= UNROLLED:
            return []
        name = self.plan.name
        words = ", ".join(f"i64 {word}" for word in self.words)
        return [f"@{name}_steps = internal constant [{len(self.rows)} x {_ROW}] "
                f"[{', '.join(map(str, self.rows))}]",
                f"@{name}_slots = internal constant [{len(self.words)} x i64] [{words}]"]

    def _add(self, kernel: str, slots: Sequence[int], tasks: Dim, work: Dim, check: int) -> None:
        self.rows.append(_Row(kernel, (len(self.words), len(slots), self._operand(tasks),
                                       self._operand(work), check)))
        self.words += slots

    def _work(self, kernel: Kernel) -> Dim:
        """What decides if the workers are woken: 0 where one thread is always enough."""
        work = kernel_work(kernel)
        if isinstance(work, int) and (work < PARALLEL_WORK or tasks_of(kernel) == 1):
            return 0
        self.parallel = True
        return work

    def _operand(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else ~self._number(dim)

    def _place(self, place: int | Alloc) -> int:
        if isinstance(place, int):
            return self._word(_Slot.ARGUMENT, place)
        if isinstance(place.offset, int):
            return self._word(_Slot.OFFSET, place.offset)
        return self._word(_Slot.SIZED, self._number(place.offset))

    def _word(self, kind: _Slot, number: int) -> int:
        return number << 2 | kind

    def _number(self, dim: Dim) -> int:
        if dim not in self._numbers:
            self._numbers[dim] = len(self.sizes)
            self.sizes.append(dim)
        return self._numbers[dim]


def run_steps(
    f: FunctionText, table: StepTable, sizes: str, context: str, parallel_for: str
) -> None:
    """Run all steps and return 0, or the number of the check that failed, after which none runs."""
    status = f.alloca("i32", align=4)
    f.do(f"store i32 0, ptr {status}, align 4")
    run = _Run(f, sizes, context, status, parallel_for if table.parallel else "")
    if len(table.rows) <= UNROLLED:
        for row in table.rows:
            for place, word in enumerate(table.words[row.first:row.first + row.count]):
                run.fill(str(place), str(word))
            run.step(row.kernel, *(str(n) for n in row.numbers[1:]))
    else:
        name = table.plan.name
        with f.loop("0", str(len(table.rows))) as at:
            address = f(f"getelementptr {_ROW}, ptr @{name}_steps, i64 {at}")
            kernel = f(f"load ptr, ptr {address}, align 8")
            first, *numbers = (
                f(f"load i64, ptr {f(f'getelementptr {_ROW}, ptr {address}, i64 0, i32 {n}')}, "
                  "align 8") for n in range(1, 6))
            words = f(f"getelementptr i64, ptr @{name}_slots, i64 {first}")
            with f.loop("0", numbers[0]) as slot:
                run.fill(slot, f(f"load i64, ptr {element(f, 'i64', words, slot)}, align 8"))
            run.step(kernel, *numbers)
    f.ret("i32 0")


@dataclass(frozen=True)
class _Run:
    """Writes the code of one step; what it is told are constants or values that were loaded."""

    f: FunctionText
    sizes: str
    context: str
    status: str
    parallel_for: str

    def fill(self, slot: str, word: str) -> None:
        """Put what a word stands for into a slot of the context."""
        place = element(self.f, "i64", self.context, slot)
        self.f.do(f"store i64 {self._value(word)}, ptr {place}, align 8")

    def step(self, kernel: str, count: str, tasks: str, work: str, check: str) -> None:
        """Run a kernel, or copy, and return if a check fails."""
        f = self.f
        last = element(f, "i64", self.context, count)
        f.do(f"store ptr {self.status}, ptr {last}, align 8")
        tasks, work = self._number(tasks), self._number(work)
        copy, launch, done = f.fresh("copy"), f.fresh("launch"), f.fresh("done")
        f.branch(f(f"icmp eq ptr {kernel}, null"), copy, launch)
        f.place(copy)
        target, source = (f(f"load ptr, ptr {element(f, 'i64', self.context, at)}, align 8")
                          for at in ("0", "1"))
        f.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", target), ("ptr", source), ("i64", tasks),
               ("i1", "false"))
        f.jump(done)
        f.place(launch)
        if self.parallel_for:
            shared, alone = f.fresh("shared"), f.fresh("alone")
            f.branch(f(f"icmp sge i64 {work}, {PARALLEL_WORK}"), shared, alone)
            f.place(shared)
            f.call("void", self.parallel_for, ("ptr", kernel), ("ptr", self.context),
                   ("i64", tasks), ("i64", "%threads"))
            f.jump(done)
            f.place(alone)
        f.do(f"call void {kernel}(ptr {self.context}, i64 0, i64 {tasks})")
        f.jump(done)
        f.place(done)
        site = f(f"load i32, ptr {self.status}, align 4")
        failed, fine = f.fresh("failed"), f.fresh("fine")
        f.branch(f(f"icmp ne i32 {site}, 0"), failed, fine)
        f.place(failed)
        before = f(f"sub i32 {f(f'trunc i64 {check} to i32')}, 1")
        f.ret(f"i32 {f(f'add i32 {site}, {before}')}")
        f.place(fine)

    def _value(self, word: str) -> str:
        """What a slot's word stands for: a pointer as a number, or a size."""
        f = self.f
        kind, number = f(f"and i64 {word}, 3"), f(f"ashr i64 {word}, 2")
        argument, other, size, ready = (f.fresh(stem) for stem in (
            "argument", "other", "size", "ready"))
        f.branch(f(f"icmp eq i64 {kind}, {_Slot.ARGUMENT}"), argument, other)
        f.place(argument)
        pointer = f(f"load i64, ptr {element(f, 'ptr', '%args', number)}, align 8")
        f.jump(ready)
        f.place(other)
        arena = f("ptrtoint ptr %arena to i64")
        offset = f(f"add i64 {arena}, {number}")
        f.branch(f(f"icmp eq i64 {kind}, {_Slot.OFFSET}"), ready, size)
        f.place(size)
        value = f(f"load i64, ptr {element(f, 'i64', self.sizes, number)}, align 8")
        base = f(f"select i1 {f(f'icmp eq i64 {kind}, {_Slot.SIZED}')}, i64 {arena}, i64 0")
        sized = f(f"add i64 {base}, {value}")
        f.jump(ready)
        f.place(ready)
        return f(f"phi i64 [ {pointer}, %{argument} ], [ {offset}, %{other} ], "
                 f"[ {sized}, %{size} ]")

    def _number(self, word: str) -> str:
        """A number, or the size that a negative word stands for."""
        f = self.f
        before, told, ready = f.block, f.fresh("told"), f.fresh("ready")
        f.branch(f(f"icmp slt i64 {word}, 0"), told, ready)
        f.place(told)
        at = f(f"xor i64 {word}, -1")
        value = f(f"load i64, ptr {element(f, 'i64', self.sizes, at)}, align 8")
        f.jump(ready)
        f.place(ready)
        return f(f"phi i64 [ {word}, %{before} ], [ {value}, %{told} ]")
