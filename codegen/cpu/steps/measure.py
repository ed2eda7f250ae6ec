"""A size that is measured: a function of the program that makes a number a size.

    measure n = %k check 2 arena = 64*n    i32 @f_measure4(registers, args, arena, scratch, control)

It asks what has to be of the size, takes memory for what is so large, has the caller make results
that have waited for it, and computes the registers that count on it. What it takes is chained, the
last block first, and given back when the round of a loop ends, or the program:

    block    ptr before, then from its 64th byte on what it is for
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ....ir.indices.index import Dim, symbol, symbols_of
from ....ir.plans.control import ABORTED
from ....ir.plans.plan import (
    ALIGNMENT,
    EXHAUSTED,
    Loop,
    Measure,
    Plan,
    Window,
    all_steps,
    sizes_told,
)
from ....ir.record import field, record
from ..host.layout import element
from ..host.poll import field as control_field
from ..text import FunctionText
from .checks import check_need, check_range, return_if, sizes_to_compute
from .values import Values


@record(eq=False)
class Measured:
    """A size: its row, the loops around that, and the registers that are known then."""

    step: Measure
    row: int = -1
    around: tuple[Any, ...] = ()
    registers: list[tuple[int, Dim | Window]] = field(default_factory=list)


class Table(Protocol):
    """What of a ``StepTable`` is needed: ``arenas`` are the registers of memory by the size that it
    is for, ``blocks`` the one of where the chain begins."""

    plan: Plan
    arenas: dict[str, int]
    blocks: int

    def size(self, dim: Dim) -> int: ...
    def waits_for(self, *starts: Dim | Window) -> Measured | None: ...
    def address(self, f: FunctionText, window: Window, value: Callable[[Dim], str], *,
                first: bool = False, base: str = "") -> str: ...


def measure_function(table: Table, measured: Measured, name: str) -> FunctionText:
    """See the module docstring. Returns 0, the number of a check that fails, or what ends the run.
    """
    f = FunctionText("i32", name, [(type_, each) for type_, each in (
        ("ptr", "registers"), ("ptr", "args"), ("ptr", "arena"), ("ptr", "scratch"),
        ("ptr", "control"))], linkage="internal", attributes="noinline nounwind")
    values, step, plan = Values(f, table), measured.step, table.plan
    number = f(f"load i64, ptr {table.address(f, step.number, values.dim)}, align 8")
    return_if(f, f(f"icmp slt i64 {number}, 0"), step.site)
    values.store(table.size(symbol(step.size)), number)
    _check(f, table, measured, values)
    if step.size in table.arenas:
        head = values.pointer(table.blocks)
        size = f(f"add i64 {values.dim(step.arena)}, {ALIGNMENT}")
        block = f.call("ptr", "aligned_alloc", ("i64", str(ALIGNMENT)), ("i64", size))
        return_if(f, f(f"icmp eq ptr {block}, null"), EXHAUSTED)
        f.do(f"store ptr {f(f'load ptr, ptr {head}, align 8')}, ptr {block}, align 8")
        f.do(f"store ptr {block}, ptr {head}, align 8")
        values.store(table.arenas[step.size], f(
            f"ptrtoint ptr {element(f, 'i8', block, ALIGNMENT)} to i64"))
    told = sizes_told(plan, [dim for slot in plan.results for dim in slot.type.shape])
    if step.size in told:
        sized = f(f"load ptr, ptr {control_field(f, 'sized')}, align 8")
        f.do(f"store i64 {number}, ptr {control_field(f, 'size')}, align 8")
        made = f(f"call i32 {sized}(ptr %control, i64 {told.index(step.size)})")
        return_if(f, f(f"icmp eq i32 {made}, 0"), ABORTED)
    for register, start in measured.registers:
        if isinstance(start, Window):
            address = table.address(f, start, values.dim, first=True)
            values.store(register, f(f"ptrtoint ptr {address} to i64"))
        elif start != symbol(step.size):
            values.store(register, values.dim(start))
    f.ret("i32 0")
    return f


def _check(f: FunctionText, table: Table, measured: Measured, values: Values) -> None:
    """Ask what has to be of sizes that are known now."""
    plan = table.plan
    indices = {step.index for step in all_steps(plan.steps) if isinstance(step, Loop)}
    sizes = [size for size in sizes_to_compute(plan)
             if table.waits_for(size) is measured and symbols_of(size).isdisjoint(indices)]
    needs = [need for need in plan.requires
             if table.waits_for(need.left, need.right) is measured]
    used = frozenset[str]().union(*map(symbols_of, sizes), *(
        symbols_of(side) for need in needs for side in (need.left, need.right)))
    dims = {name: values.dim(symbol(name)) for name in sorted(used)}
    check_range(f, sizes, dims, EXHAUSTED)
    for need in needs:
        check_need(f, need, dims)


def give_back_function(program: str) -> FunctionText:
    """``void @{program}_give_back(ptr head, ptr until)``: give the blocks of a chain back, down to
    one of them."""
    f = FunctionText("void", f"{program}_give_back", [("ptr", "head"), ("ptr", "until")],
                     linkage="internal", attributes="noinline nounwind")
    again, some, done = f.fresh("again"), f.fresh("some"), f.fresh("done")
    f.jump(again)
    f.place(again)
    block = f("load ptr, ptr %head, align 8")
    f.branch(f(f"icmp eq ptr {block}, %until"), done, some)
    f.place(some)
    f.do(f"store ptr {f(f'load ptr, ptr {block}, align 8')}, ptr %head, align 8")
    f.call("void", "free", ("ptr", block))
    f.jump(again)
    f.place(done)
    f.ret()
    return f
