"""A plan as one native function, with its kernels and its entry point, in one LLVM module.

    i32 @f(ptr args, ptr dims, ptr arena, i64 threads, ptr control)
        args: pointers to inputs, then results; dims: sizes of arguments by name; returns 0, the
        number of the check that failed (later steps are then skipped), what @f_fits says,
        or ABORTED; the caller has set what ``control`` says of it (``ir/plans/control``)
    i64 @f_arena(ptr dims)       bytes of arena, if they depend on symbolic dims; 0 if these fail
    i32 @f_fits(ptr dims)        0, the number of a requirement of sizes that fails, MISFIT if sizes
        disagree, NO_MEMORY if they are past all memory; only where there are dims
    ptr @f_call(...)             the CPython entry point (llvm_entry)

The steps are constants that a loop runs (``table``, ``launches``); those with enough work go to the
workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.indices.dims import argument_sizes, symbols_from
from ...ir.indices.index import (
    Dim,
    symbol,
    symbols_of,
)
from ...ir.kernels.tiling import round_up
from ...ir.machine import Machine
from ...ir.plans.entry import Entry
from ...ir.plans.plan import MISFIT, NO_MEMORY, Plan, Window
from ...ir.plans.stack import STEPS_BYTES
from .dims import emit_dim
from .host.entry import emit_entry
from .host.layout import element
from .loops.kernel import emit_kernel
from .loops.lanes import NOWHERE
from .steps.checks import check_need, check_range, return_if, sizes_to_compute
from .steps.clock import clock_functions
from .steps.launches import run_steps, step_globals
from .steps.measure import give_back_function
from .steps.table import StepTable
from .text import FunctionText, heap_block, module_text


def emit_program(plan: Plan, target: Machine, entry: Entry) -> str:
    """The module text of ``plan``, whose kernels are tiled for ``target``, and its ``entry``."""
    functions, globals_ = program_parts(plan, target, entry.symbols, "weft")
    emitted = emit_entry(entry)
    functions += emitted.functions
    globals_ += emitted.globals_
    return module_text(functions, globals_, prelude=f'target triple = "{target.triple}"')


def program_parts(
    plan: Plan, target: Machine, symbols: Sequence[str], pool: str
) -> tuple[list[FunctionText], list[str]]:
    """The functions and globals of ``plan``, to be put into a module with other code.

    ``symbols`` orders the dims array, by the text of the dims of arguments; ``pool`` is the prefix
    of the functions of the worker pool.
    """
    table = StepTable(plan, target, pool)
    functions = [emit_kernel(kernel, target, pool) for kernel in plan.kernels.values()
                 if kernel.name in table.launched]
    if symbols or plan.requires:
        functions.append(_fits(plan, symbols))
    if plan.times:
        functions += clock_functions(plan)
    functions += table.functions
    if table.arenas:
        functions.append(give_back_function(plan.name))
    polls = any(part.polls for f in functions for part in f.family())
    functions += _program(plan, symbols, table, pool, polls)
    if not isinstance(plan.arena, int):
        functions.append(_arena(plan, symbols))
    return functions, [NOWHERE, *step_globals(table)]


def _load_dims(f: FunctionText, plan: Plan, symbols: Sequence[str]) -> dict[str, str]:
    """The sizes of arguments by their text, and every symbol that follows from them."""
    values = {}
    for at, name in enumerate(symbols):
        place = f(f"getelementptr i64, ptr %dims, i64 {at}")
        values[name] = f(f"load i64, ptr {place}, align 8")
    for name, dim in symbols_from(_told(plan, symbols)).items():
        if name not in values:
            values[name] = emit_dim(f, dim, values)
    return values


def _told(plan: Plan, symbols: Sequence[str]) -> dict[str, Dim]:
    sizes = argument_sizes(plan)
    return {name: sizes.get(name, symbol(name)) for name in symbols}


def _check_sizes(
    f: FunctionText, plan: Plan, symbols: Sequence[str], dims: Mapping[str, str]
) -> None:
    """Return if an argument has not the size that its dim comes to, or a dim is negative."""
    told = _told(plan, symbols)
    for name in dims:
        # What is told as it is holds; a symbol is judged by the size it follows from.
        if name in told and told[name] != symbol(name):
            size = emit_dim(f, told[name], dims)
            return_if(f, f(f"icmp ne i64 {dims[name]}, {size}"), MISFIT)
        elif name not in told:
            return_if(f, f(f"icmp slt i64 {dims[name]}, 0"), MISFIT)


def _fits(plan: Plan, symbols: Sequence[str]) -> FunctionText:
    f = FunctionText("i32", f"{plan.name}_fits", [("ptr", "dims")], linkage="internal")
    dims = _load_dims(f, plan, symbols)
    _check_sizes(f, plan, symbols, dims)
    # What is measured is asked when it is known. What ends where a loop says is a part of an axis
    # that is a size by itself.
    check_range(f, [size for size in sizes_to_compute(plan) if symbols_of(size) <= dims.keys()],
                dims, NO_MEMORY)
    for need in plan.requires:
        if symbols_of(need.left) | symbols_of(need.right) <= dims.keys():
            check_need(f, need, dims)
    f.ret("i32 0")
    return f


def _arena(plan: Plan, symbols: Sequence[str]) -> FunctionText:
    f = FunctionText("i64", f"{plan.name}_arena", [("ptr", "dims")])
    fits = f(f"call i32 @{plan.name}_fits(ptr %dims)")
    return_if(f, f(f"icmp ne i32 {fits}, 0"), 0, "i64")
    f.ret(f"i64 {emit_dim(f, plan.arena, _load_dims(f, plan, symbols))}")
    return f


def _program(
    plan: Plan, symbols: Sequence[str], table: StepTable, pool: str, polls: bool
) -> list[FunctionText]:
    """The program: its registers and context are on the stack, or, where there are many, in memory
    that a function around it takes from the heap; that one also gives back what was taken as sizes
    were measured."""
    params = [("ptr", "args"), ("ptr", "dims"), ("ptr", "arena"), ("i64", "threads"),
              ("ptr", "control")]
    count = round_up(len(table.registers), 2)
    size = 8 * (count + table.slots)
    large = size > STEPS_BYTES
    extra = [("ptr", "memory")] * large + [("ptr", "blocks")] * bool(table.arenas)
    around: list[FunctionText] = []
    if extra:
        name = f"{plan.name}_inside"
        f = FunctionText("i32", name, [*params, *extra], linkage="internal",
                         attributes="noinline nounwind")
        around.append(_with_memory(plan.name, name, params, size if large else 0,
                                   bool(table.arenas)))
    else:
        f = FunctionText("i32", plan.name, params)
    memory = "%memory" if large else f.alloca("i64", size // 8, align=16)
    if symbols or plan.requires:
        fits = f(f"call i32 @{plan.name}_fits(ptr %dims)")
        return_if(f, f(f"icmp ne i32 {fits}, 0"), fits)
    dims = _load_dims(f, plan, symbols)
    registers, context = memory, element(f, "i64", memory, count)
    if table.arenas:
        f.do(f"store ptr %blocks, ptr {element(f, 'i64', registers, table.blocks)}, align 8")
    for at, start in enumerate(table.registers):
        if start is None:
            continue
        if isinstance(start, Window):
            address = table.address(f, start, lambda dim: emit_dim(f, dim, dims),
                                    first=True)
            value = f(f"ptrtoint ptr {address} to i64")
        else:
            value = emit_dim(f, start, dims)
        f.do(f"store i64 {value}, ptr {element(f, 'i64', registers, at)}, align 8")
    scratch = "null"
    if plan.scratch:
        scratch = f(f"getelementptr i8, ptr %arena, i64 {emit_dim(f, plan.scratch_at, dims)}")
    run_steps(f, table, registers, context, scratch, pool, polls)
    return [f, *around]


def _with_memory(
    name: str, inside: str, params: Sequence[tuple[str, str]], size: int, blocks: bool
) -> FunctionText:
    """The function that calls another one with so many bytes of the heap, if any (NO_MEMORY
    without), and with a chain for ``blocks``, which it gives back."""
    f = FunctionText("i32", name, params)
    extra = list[str]()
    if size:
        memory = heap_block(f, size)
        return_if(f, f(f"icmp eq ptr {memory}, null"), NO_MEMORY)
        extra.append(memory)
    if blocks:
        head = f.alloca("ptr", align=8)
        f.do(f"store ptr null, ptr {head}, align 8")
        extra.append(head)
    given = ", ".join([*(f"{type_} %{param}" for type_, param in params),
                       *(f"ptr {each}" for each in extra)])
    status = f(f"call i32 @{inside}({given})")
    if blocks:
        f.do(f"call void @{name}_give_back(ptr {head}, ptr null)")
    if size:
        f.call("void", "free", ("ptr", memory))
    f.ret(f"i32 {status}")
    return f
