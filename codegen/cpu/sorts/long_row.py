"""A long row sorted by several threads: as runs, which are then merged two by two.

    run 0 | run 1 | run 2      each filled and sorted by a task, in one of the two memories
    run 0 + 1     | run 2      merged from there to the other one, each task a part of the row
    run 0 + 1 + 2              ends in the memory that is stored to

A kernel of one row has one task, which launches these. What they know beside the kernel's context
follows it. How a row is cut does not show in it, as equal keys are the same or have their places.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum

from ....ir.kernels.kernel import Kernel
from ....ir.kernels.rows import Sort, row_stmt
from ..host.layout import element
from ..loops.scope import Scope
from ..loops.statements import StmtEmitter
from ..text import FunctionText
from .sorted_row import SortedRow

CUTS = 4         # tasks that merge as many records as a run has: a thread may come late
GRAIN = 64       # records of such a task, at least


class _Slot(IntEnum):
    """What follows the context: the length of runs at first and by now, and whether they are in the
    memory that is beside the one that is stored to."""

    FIRST = 0
    RUN = 1
    BESIDE = 2


def is_long_row(kernel: Kernel) -> bool:
    """Whether a kernel sorts one row by runs. Then its context ends with the threads that it may
    use."""
    last = row_stmt(kernel)
    return isinstance(last, Sort) and last.algorithm is not None and last.algorithm.runs > 0


def emit_sort(stmts: StmtEmitter, scope: Scope, stmt: Sort, pool: str) -> None:
    """One task: a row of a kernel that sorts. A long one is cut, if there are threads for it."""
    row = SortedRow(stmts, scope, stmt)
    if is_long_row(stmts.kernel):
        _by_threads(stmts, row, pool)
    else:
        row.emit()


def _by_threads(stmts: StmtEmitter, row: SortedRow, pool: str) -> None:
    """The one task of a kernel: by itself, or by others that it launches."""
    f, kernel = stmts.f, stmts.kernel
    words = len(kernel.params) + len(kernel.dims) + 1
    threads = f(f"load i64, ptr {element(f, 'i64', '%context', words)}, align 8")
    most = f(f"lshr i64 {row.length}, {row.algorithm.runs.bit_length() - 1}")
    threads = f.call("i64", "llvm.smin.i64", ("i64", threads), ("i64", most))
    alone, team, done = (f.fresh(name) for name in ("alone", "team", "done"))
    f.branch(f(f"icmp sgt i64 {threads}, 1"), team, alone)
    f.place(alone)
    row.emit()
    f.jump(done)
    f.place(team)
    _launch(stmts, row, words, threads, pool)
    f.jump(done)
    f.place(done)


def _launch(
    stmts: StmtEmitter, row: SortedRow, words: int, threads: str, pool: str
) -> None:
    """Run the tasks on threads that are more than one."""
    f = stmts.f
    run = _parts(f, _parts(f, row.length, threads), CUTS * GRAIN)
    run = f(f"mul i64 {run}, {CUTS * GRAIN}")
    runs = _parts(f, row.length, run)
    cuts = _parts(f, row.length, f(f"udiv i64 {run}, {CUTS}"))
    zeros = f.call("i64", "llvm.ctlz.i64", ("i64", f(f"sub i64 {runs}, 1")), ("i1", "false"))
    levels = f(f"sub i64 64, {zeros}")
    context = f.alloca("i64", words + len(_Slot))
    f.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", context), ("ptr", "%context"),
           ("i64", str(8 * words)), ("i1", "false"))

    def put(slot: _Slot, value: str) -> None:
        f.do(f"store i64 {value}, ptr {element(f, 'i64', context, words + slot)}, align 8")

    def launch(part: type[_Part], tasks: str) -> None:
        f.helpers.append(body := part(stmts, row.stmt, words).f)
        f.call("void", f"{pool}_parallel_for", ("ptr", f"@{body.name}"), ("ptr", context),
               ("i64", tasks), ("i64", threads), ("ptr", "%scratch"), ("ptr", stmts.status))
        f.ask()

    put(_Slot.FIRST, run)
    put(_Slot.BESIDE, f(f"and i64 {levels}, 1"))
    launch(_Run, runs)
    with f.loop("0", levels) as level:
        put(_Slot.RUN, f(f"shl i64 {run}, {level}"))
        put(_Slot.BESIDE, f(f"and i64 {f(f'sub i64 {levels}, {level}')}, 1"))
        launch(_Merged, cuts)


def _parts(f: FunctionText, whole: str, part: str | int) -> str:
    """How many parts a whole has, the last of which may be smaller."""
    most = f(f"add i64 {whole}, {f(f'sub i64 {part}, 1')}")
    return f(f"udiv i64 {most}, {part}")


class _Part(ABC):
    """A function that runs tasks of one kind, with a row of its own."""

    name: str

    def __init__(self, stmts: StmtEmitter, stmt: Sort, words: int) -> None:
        kernel = stmts.kernel
        self.f = f = FunctionText("void", f"{kernel.name}_{self.name}", [
            ("ptr", "context"), ("i64", "begin"), ("i64", "end"), ("ptr noalias", "scratch"),
        ], linkage="internal", attributes="noinline nounwind")
        own = StmtEmitter(f, kernel, stmts.target)
        own.use_scratch("%scratch")
        self.row = SortedRow(own, own.task_scope("0"), stmt)
        self.first, self.run, beside = (
            f(f"load i64, ptr {element(f, 'i64', '%context', words + slot)}, align 8")
            for slot in _Slot)
        self.beside = f(f"icmp ne i64 {beside}, 0")
        x, y = self.row.memories()
        # Where the records are, and the other memory.
        self.x, self.y = ([f(f"select i1 {self.beside}, ptr {b}, ptr {a}")
                           for a, b in pairs] for pairs in (zip(x, y, strict=True),
                                                            zip(y, x, strict=True)))
        with f.loop("%begin", "%end") as task:
            self.emit(task)
        f.ret()

    @abstractmethod
    def emit(self, task: str) -> None:
        """What one task does."""

    def cut(self, length: str, task: str) -> tuple[str, str]:
        """The part of the row that a task is about."""
        f, begin = self.f, self.f(f"mul i64 {task}, {length}")
        end = f.call("i64", "llvm.smin.i64", ("i64", f(f"add i64 {begin}, {length}")),
                     ("i64", self.row.length))
        return begin, end


class _Run(_Part):
    name = "run"

    def emit(self, task: str) -> None:
        f, row = self.f, self.row
        begin, end = self.cut(self.first, task)
        row.fill(self.x, begin, end)
        x, y = ([f(f"getelementptr {row.word}, ptr {memory}, i64 {begin}") for memory in memories]
                for memories in (self.x, self.y))
        row.sort(x, y, f(f"sub i64 {end}, {begin}"))


class _Merged(_Part):
    name = "merged"

    def emit(self, task: str) -> None:
        f, row = self.f, self.row
        begin, end = self.cut(f(f"udiv i64 {self.first}, {CUTS}"), task)
        name = f"weft_merge_i{row.word.bits}x{len(self.x)}"
        types = ", ".join(["ptr"] * 2 * len(self.x) + ["i64"] * 4)
        f.declare(f"declare void @{name}({types})")
        memories = ", ".join(f"ptr {memory}" for memory in (*self.x, *self.y))
        numbers = ", ".join(f"i64 {n}" for n in (self.run, row.length, begin, end))
        f.do(f"call void @{name}({memories}, {numbers})")
        with f.when(f(f"icmp sge i64 {f(f'shl i64 {self.run}, 1')}, {row.length}")):
            row.finish(begin, end)
