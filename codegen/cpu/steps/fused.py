"""A fused loop as one function: its rounds, the loops and branches inside, and their kernels, which
LLVM inlines.

    loop t in 9 carry (%h = %g) fused {     i32 @f_loop3(registers, args, arena, scratch, control)
      launch @cell(%xs[t], %h, %g)          returns 0, or what ends the run: the number of a check
    }                                       that failed, ABORTED

What is small (``LOCAL`` bytes) is a local of that function, so that what one kernel leaves for the
next, and one round for the next, stays in registers of the machine. What is there before the loop
is copied in, what is asked for after it is copied out; small buffers are copied where others are
exchanged.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from ....ir.indices.index import Dim, symbol, symbols_of
from ....ir.kernels.kernel import Check, Kernel
from ....ir.plans.plan import (
    LOCAL,
    Alloc,
    Branch,
    Carry,
    Copy,
    Group,
    Launch,
    Loop,
    Plan,
    Step,
    Window,
    all_steps,
    tasks_of,
    window_type,
)
from ....ir.types import TensorType
from ....ir.verify.lives import buffers_of, reads_and_writes
from ...kernel.rounds.distribute import Part
from ..dims import emit_dim
from ..host.layout import element
from ..host.poll import ask_at_times, return_status
from ..text import SERIAL, FunctionText
from ..types import memory_type
from .rounds import Trial, number_of_rounds, trial_of

POLLED = 256  # rounds, until the next question whether the run is over
PIECE = 256   # rounds, of which parts have rows
UNUSUAL = 8   # pieces that are run as they are written after one in which something was unusual
_SMALL = 8    # rounds of a few scalar operations count as one


class Table(Protocol):
    """What of a ``StepTable`` its fused loops need. ``exchanged`` are the registers that know where
    buffers are which loops exchange."""

    plan: Plan
    types: dict[str, TensorType]
    exchanged: dict[str, int]

    def size(self, dim: Dim) -> int: ...
    def address(self, f: FunctionText, window: Window, value: Callable[[Dim], str], *,
                first: bool = False, base: str = "") -> str: ...
    def inlined(self, kernel: Kernel) -> FunctionText: ...
    def tried(self, kernel: Kernel, usual: bool) -> FunctionText: ...


def fused_loop(table: Table, loop: Loop, name: str, pool: str) -> FunctionText:
    """The function of a loop; see the module docstring."""
    return _FusedLoop(table, loop, name, pool).f


class _FusedLoop:
    """Writes one function; recursion is by nesting of steps only."""

    def __init__(self, table: Table, loop: Loop, name: str, pool: str) -> None:
        self.f = f = FunctionText(
            "i32", name, [(type_, each) for type_, each in (
                ("ptr", "registers"), ("ptr", "args"), ("ptr", "arena"), ("ptr", "scratch"),
                ("ptr", "control"))], linkage="internal", attributes=f"noinline nounwind {SERIAL}")
        f.polls = True
        self.table, self.plan, self._pool = table, table.plan, pool
        self._indices: dict[str, str] = {}   # where the index of each loop is
        self._rounds_of: dict[str, Dim] = {}  # how many there are of each at most, where known
        self._rows: list[str] = []  # what parts hand on; loops that have some share their memory
        self._left = f.alloca("i64", align=8)
        f.do(f"store i64 {POLLED * _SMALL}, ptr {self._left}, align 8")
        steps = [loop, *all_steps((*loop.test, *loop.body))]
        own = {step.name for step in steps if isinstance(step, Alloc)}
        carries = [each for step in steps if isinstance(step, Loop) for each in step.carried]
        named = frozenset[str]().union(*map(buffers_of, steps))
        self._locals = {each: "" for each in sorted(named) if self._is_small(each)}
        moving = {each for carry in carries for each in carry.buffers
                  if not self._locals.keys() >= {*carry.buffers}}
        self._locals = {each: f.alloca("i8", self._bytes(each)) for each in self._locals
                        if each not in moving}
        self._pointers = {each: f.alloca("ptr", align=8) for each in sorted(moving)}
        for each, place in self._pointers.items():
            f.do(f"store ptr {self._exchanged(each)}, ptr {place}, align 8")
        around = [each for each in self._locals if each not in own]
        homes = {each: table.address(f, Window(each), self.value) for each in around}
        for each, home in homes.items():
            self._move(self._locals[each], home, str(self._bytes(each)))
        given = {slot.name for slot in (*self.plan.params, *self.plan.results)}
        self._given = {each: table.address(f, Window(each), self.value) for each in sorted(
            named & given - self._locals.keys() - table.exchanged.keys())}
        self._loop(loop)
        changed = self._changed([loop])
        for each, home in homes.items():
            if each in changed:
                self._move(home, self._locals[each], str(self._bytes(each)))
        for each, place in self._pointers.items():
            at = element(f, "i64", "%registers", table.exchanged[each])
            f.do(f"store ptr {f(f'load ptr, ptr {place}, align 8')}, ptr {at}, align 8")
        f.ret("i32 0")

    # -- buffers --------------------------------------------------------------------------------

    def _bytes(self, buffer: str) -> int:
        size = self.table.types[buffer].nbytes
        assert isinstance(size, int), "a local has a known size"
        return size

    def _is_small(self, buffer: str) -> bool:
        size = self.table.types[buffer].nbytes
        return isinstance(size, int) and 0 < size <= LOCAL  # what is empty may have no memory

    def _changed(self, steps: Sequence[Step]) -> set[str]:
        """The buffers that steps write to, and those within them."""
        found: set[str] = set()
        for step in all_steps(steps):
            found |= {window.buffer for window in reads_and_writes(self.plan, step)[1]}
            if isinstance(step, Loop):
                found.update(step.exchanged)
        return found

    def _exchanged(self, buffer: str) -> str:
        place = element(self.f, "i64", "%registers", self.table.exchanged[buffer])
        return self.f(f"load ptr, ptr {place}, align 8")

    def value(self, dim: Dim) -> str:
        """An expression of sizes and of the indices of loops, as they are now."""
        f, known = self.f, dict[str, str]()
        for name in sorted(symbols_of(dim)):
            place = self._indices.get(name) or element(
                f, "i64", "%registers", self.table.size(symbol(name)))
            known[name] = f(f"load i64, ptr {place}, align 8")
        return emit_dim(f, dim, known)

    def address(self, window: Window) -> str:
        """Where a window is now."""
        f, name = self.f, window.buffer
        if name in self._locals:
            base = self._locals[name]
        elif name in self._pointers:
            base = f(f"load ptr, ptr {self._pointers[name]}, align 8")
        elif name in self._given:
            base = self._given[name]
        else:
            return self.table.address(f, window, self.value)
        return self.table.address(f, window, self.value, base=base)

    def _move(self, target: str, source: str, size: str) -> None:
        self.f.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", target), ("ptr", source),
                    ("i64", size), ("i1", "false"))

    # -- steps ----------------------------------------------------------------------------------

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Launch():
                    self._launch(step)
                case Group():
                    self._steps(step.launches)
                case Copy():
                    self._move(self.address(step.target), self.address(step.source), self.value(
                        window_type(step.source, self.table.types).nbytes))
                case Loop():
                    self._loop(step)
                case Branch():
                    self._branch(step)
                case Alloc():
                    if step.name in self._pointers:
                        home = self.table.address(
                            self.f, Window(step.name), self.value, first=True)
                        self.f.do(f"store ptr {home}, ptr {self._pointers[step.name]}, align 8")
                case _:
                    raise AssertionError(f"a fused loop has no {type(step).__name__.lower()}")

    def _launch(self, launch: Launch) -> None:
        f, kernel = self.f, self.plan.kernels[launch.kernel]
        code = self.table.inlined(kernel)
        failed = self._call(code, kernel, list(map(self.address, launch.args)))
        if kernel.is_single:
            self._fail(failed, launch)
        elif any(isinstance(stmt, Check) for stmt in kernel.body) or any(
                part.polls for part in code.family()):
            status = f("load i32, ptr %control, align 4")
            self._fail(f(f"icmp ne i32 {status}, 0"), launch)

    def _call(self, code: FunctionText, kernel: Kernel, places: Sequence[str]) -> str:
        """A kernel with its parameters at these places; whether one of single values has failed."""
        f = self.f
        words = [*(("ptr", place) for place in places),
                 *(("i64", self.value(symbol(name))) for name in kernel.dims), ("ptr", "%control")]
        context = f.alloca("i64", len(words), align=8)
        for at, (type_, value) in enumerate(words):
            f.do(f"store {type_} {value}, ptr {element(f, 'i64', context, at)}, align 8")
        tasks = self.value(tasks_of(kernel))
        call = f"@{code.name}(ptr {context}, i64 0, i64 {tasks}, ptr %scratch)"
        if kernel.is_single:
            return f(f"call i1 {call}")
        f.do(f"call void {call}")
        return "false"

    def _fail(self, failed: str, launch: Launch) -> None:
        """Return what ends the run if something in a launch does."""
        f = self.f
        ended, fine = f.fresh("ended"), f.fresh("fine")
        f.branch(failed, ended, fine)
        f.place(ended)
        return_status(f, f("load i32, ptr %control, align 4"), str(launch.first_check))
        f.place(fine)

    def _holds(self, window: Window, then: str, other: str) -> None:
        byte = self.f(f"load i8, ptr {self.address(window)}")
        self.f.branch(self.f(f"icmp ne i8 {byte}, 0"), then, other)

    def _branch(self, branch: Branch) -> None:
        done = self.f.fresh("done")
        for steps in self._ways(branch):
            self._steps(steps)
            self.f.jump(done)
        self.f.place(done)

    def _ways(self, branch: Branch) -> Iterator[tuple[Step, ...]]:
        """The steps of both ways, each at its label."""
        then, other = self.f.fresh("then"), self.f.fresh("other")
        self._holds(branch.condition, then, other)
        for label, steps in ((then, branch.then), (other, branch.other)):
            self.f.place(label)
            yield steps

    def _loop(self, loop: Loop) -> None:
        f, around, counts = self.f, dict(self._indices), dict(self._rounds_of)
        index = self._indices[loop.index] = f.alloca("i64", align=8)
        self._rounds_of.pop(loop.index, None)
        if loop.count is not None:
            self._rounds_of[loop.index] = loop.count
        f.do(f"store i64 0, ptr {index}, align 8")
        weight = _SMALL if _is_small_round(self.plan, loop) else 1
        number = number_of_rounds(self.plan, loop, self._changed([loop]))
        if number is not None:
            self._counted(loop, index, weight, f(f"load i64, ptr {self.address(number)}, align 8"))
        elif loop.condition is None:
            assert loop.count is not None, "a loop without end has a test"
            self._counted(loop, index, weight, self.value(loop.count))
        else:
            self._asked(loop, index, weight)
        self._indices, self._rounds_of = around, counts

    def _counted(self, loop: Loop, index: str, weight: int, count: str) -> None:
        """So many rounds, in pieces without a question: nothing but the work is left in them."""
        f, most = self.f, POLLED * weight
        trial = trial_of(self.plan, self.table.types, loop, self._changed([loop]),
                         self._locals.keys(), self._rounds_of)
        if trial is not None and len(trial.parts) > 1:
            most = PIECE
        piece, on, done = f.fresh("piece"), f.fresh("on"), f.fresh("end")
        f.branch(f(f"icmp slt i64 0, {count}"), piece, done)
        f.place(piece)
        begin = f(f"load i64, ptr {index}, align 8")
        rest = f(f"sub i64 {count}, {begin}")
        rounds = f.call("i64", "llvm.smin.i64", ("i64", rest), ("i64", str(most)))
        stop = f(f"add nsw i64 {begin}, {rounds}")
        ask_at_times(f, self._left, POLLED * _SMALL, self._pool,
                     f(f"mul nsw i64 {rounds}, {_SMALL // weight}"))
        if trial is not None:
            self._tried(loop, trial, index, begin, stop, on)
        if trial is None or trial.asked:
            self._rounds(loop, index, stop, on)
        f.place(on)
        f.branch(f(f"icmp slt i64 {stop}, {count}"), piece, done)
        f.place(done)

    def _rounds(self, loop: Loop, index: str, stop: str, on: str) -> None:
        head = self._head()
        self._steps(loop.body)
        self._next_round(loop.carried, index)
        self._again(index, stop, head, on)

    def _head(self) -> str:
        head = self.f.fresh("round")
        self.f.jump(head)
        self.f.place(head)
        return head

    def _again(self, index: str, stop: str, head: str, on: str) -> None:
        f = self.f
        f.branch(f(f"icmp slt i64 {f(f'load i64, ptr {index}, align 8')}, {stop}"), head, on)

    def _tried(
        self, loop: Loop, trial: Trial, index: str, begin: str, stop: str, on: str
    ) -> None:
        """Rounds that nothing leaves, part by part, in which LLVM finds vectors. If something in
        one of them was unusual, as a check that fails is, all is as it was before, and they come
        once more."""
        f, again, plain = self.f, self.f.fresh("again"), self.f.fresh("plain")
        kept = dict[str, str]()
        if trial.asked:
            kept = {each: f.alloca("i8", self._bytes(each)) for each in sorted(
                self._changed([loop]) & self._locals.keys())}
            trust = self._trusted(plain)
        for each, place in kept.items():
            self._move(place, self._locals[each], str(self._bytes(each)))
        unusual = f.alloca("i8", align=1)
        f.do(f"store i8 0, ptr {unusual}, align 1")
        names = dict.fromkeys(row.name for part in trial.parts for row in part.rows)
        self._rows += [f.alloca("i64", PIECE) for _ in range(len(names) - len(self._rows))]
        rows = dict(zip(names, self._rows, strict=False))
        left = {carry.buffers[0] for carry in loop.carried}
        for number, part in enumerate(trial.parts, 1):
            f.do(f"store i64 {begin}, ptr {index}, align 8")
            head = self._head()
            self._part(part, trial, rows, begin, index, unusual)
            own = left if number == len(trial.parts) else left & part.states
            left = left - own
            self._next_round([carry for carry in loop.carried if carry.buffers[0] in own], index)
            ended = f.fresh("part")
            self._again(index, stop, head, ended)
            f.place(ended)
            if number == trial.asked:
                usual = f.fresh("usual")
                f.branch(f(f"icmp ne i8 {f(f'load i8, ptr {unusual}, align 1')}, 0"), again, usual)
                f.place(usual)
        f.jump(on)
        if trial.asked:
            f.place(again)
            for each, place in kept.items():
                self._move(self._locals[each], place, str(self._bytes(each)))
            f.do(f"store i64 {begin}, ptr {index}, align 8")
            f.do(f"store i64 {-UNUSUAL}, ptr {trust}, align 8")
            f.jump(plain)
            f.place(plain)

    def _trusted(self, plain: str) -> str:
        """Go to ``plain`` if pieces were unusual not long ago; where it stands how many are to be
        run as they are written before the next trial, below 0."""
        f, tried, rest = self.f, self.f.fresh("trial"), self.f.fresh("rest")
        trust = f.counter()
        left = f(f"load i64, ptr {trust}, align 8")
        f.branch(f(f"icmp slt i64 {left}, 0"), rest, tried)
        f.place(rest)
        f.do(f"store i64 {f(f'add i64 {left}, 1')}, ptr {trust}, align 8")
        f.jump(plain)
        f.place(tried)
        return trust

    def _part(
        self, part: Part, trial: Trial, rows: Mapping[str, str], begin: str, index: str,
        unusual: str,
    ) -> None:
        """A part of one round, with the elements of rows that are of it; and a note whether
        something in it was unusual."""
        f = self.f
        at = f(f"sub nsw i64 {f(f'load i64, ptr {index}, align 8')}, {begin}")
        code = self.table.tried(part.kernel, not part.in_turn)
        if code.notes and not part.asks:
            raise AssertionError(f"{code.name}: nobody asks what it notes")
        failed = self._call(code, part.kernel, [
            element(f, memory_type(param.type.dtype), rows[param.name], at)
            if param.name in rows else self.address(trial.args[param.name])
            for param in part.kernel.params])
        if part.asks:
            before = f(f"load i8, ptr {unusual}, align 1")
            now = f(f"or i8 {before}, {f(f'zext i1 {failed} to i8')}")
            f.do(f"store i8 {now}, ptr {unusual}, align 1")

    def _asked(self, loop: Loop, index: str, weight: int) -> None:
        """Rounds as long as a test holds."""
        f = self.f
        head, body, done = f.fresh("round"), f.fresh("body"), f.fresh("end")
        f.jump(head)
        f.place(head)
        if loop.count is not None:
            within = f.fresh("within")
            at = f(f"load i64, ptr {index}, align 8")
            f.branch(f(f"icmp slt i64 {at}, {self.value(loop.count)}"), within, done)
            f.place(within)
        self._steps(loop.test)
        assert loop.condition is not None
        self._holds(loop.condition, body, done)
        f.place(body)
        ask_at_times(f, self._left, POLLED * _SMALL, self._pool, str(_SMALL // weight))
        last = loop.body[-1] if loop.body else None
        self._steps(loop.body[:-1])
        # A way that ends the loop leaves it: the test of the next round is known on it.
        for steps in self._ways(last) if isinstance(last, Branch) else (loop.body[-1:],):
            self._steps(steps)
            self._next_round(loop.carried, index)
            f.jump(head)
        f.place(done)

    def _next_round(self, carried: Iterable[Carry], index: str) -> None:
        f = self.f
        following = f(f"add nsw i64 {f(f'load i64, ptr {index}, align 8')}, 1")
        f.do(f"store i64 {following}, ptr {index}, align 8")
        for carry in carried:
            self._exchange(carry)

    def _exchange(self, carry: Carry) -> None:
        f, first = self.f, carry.buffers[0]
        if first in self._locals:
            kept, size = f.alloca("i8", self._bytes(first)), str(self._bytes(first))
            places = [*(self._locals[each] for each in carry.buffers), kept]
            self._move(kept, places[0], size)
            for place, other in itertools.pairwise(places):
                self._move(place, other, size)
            return
        found = [(self._pointers[name], f(f"load ptr, ptr {self._pointers[other]}, align 8"))
                 for name, other in carry.pairs]
        for place, pointer in found:
            f.do(f"store ptr {pointer}, ptr {place}, align 8")


def _is_small_round(plan: Plan, loop: Loop) -> bool:
    """Whether a round is a few scalar operations: kernels of one element each, and no loop."""
    return all(plan.kernels[step.kernel].is_single if isinstance(step, Launch)
               else not isinstance(step, Loop) for step in all_steps((*loop.test, *loop.body)))
