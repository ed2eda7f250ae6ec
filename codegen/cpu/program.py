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
    Expr,
    Monomial,
    Symbol,
    parts_of,
    symbol,
    symbols_of,
    terms_of,
)
from ...ir.kernels.tiling import round_up
from ...ir.plans.entry import Entry
from ...ir.plans.plan import MISFIT, MOST_BYTES, NO_MEMORY, Plan, Window, tasks_of
from ...ir.plans.stack import STEPS_BYTES
from .dims import emit_dim
from .host.entry import emit_entry
from .host.layout import element
from .loops.accesses import NOWHERE
from .loops.kernel import emit_kernel
from .steps.clock import clock_functions
from .steps.launches import run_steps, step_globals
from .steps.table import StepTable
from .target import Target
from .text import FunctionText, heap_block, module_text


def emit_program(plan: Plan, target: Target, entry: Entry) -> str:
    """The module text of ``plan``, whose kernels are tiled for ``target``, and its ``entry``."""
    functions, globals_ = program_parts(plan, target, entry.symbols, "weft")
    emitted = emit_entry(entry)
    functions += emitted.functions
    globals_ += emitted.globals_
    return module_text(functions, globals_, prelude=f'target triple = "{target.triple}"')


def program_parts(
    plan: Plan, target: Target, symbols: Sequence[str], pool: str
) -> tuple[list[FunctionText], list[str]]:
    """The functions and globals of ``plan``, to be put into a module with other code.

    ``symbols`` orders the dims array, by the text of the dims of arguments; ``pool`` is the prefix
    of the functions of the worker pool.
    """
    table = StepTable(plan, target, pool)
    functions = [emit_kernel(kernel, target, pool) for kernel in plan.kernels.values()
                 if kernel.name in table.launched]
    if symbols:
        functions.append(_fits(plan, symbols))
    if plan.times:
        functions += clock_functions(plan)
    functions += table.functions
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
            _return_if(f, f(f"icmp ne i64 {dims[name]}, {size}"), MISFIT)
        elif name not in told:
            _return_if(f, f(f"icmp slt i64 {dims[name]}, 0"), MISFIT)


def _fits(plan: Plan, symbols: Sequence[str]) -> FunctionText:
    f = FunctionText("i32", f"{plan.name}_fits", [("ptr", "dims")], linkage="internal")
    dims = _load_dims(f, plan, symbols)
    _check_sizes(f, plan, symbols, dims)
    _check_range(f, plan, dims)
    for need in plan.requires:
        left, right = emit_dim(f, need.left, dims), emit_dim(f, need.right, dims)
        wrong = "slt" if need.sign == ">=" else "ne"
        _return_if(f, f(f"icmp {wrong} i64 {left}, {right}"), need.site)
    f.ret("i32 0")
    return f


def _check_range(f: FunctionText, plan: Plan, dims: Mapping[str, str]) -> None:
    """Return if a size could overflow. The sum of all their terms, each at its largest, is taken in
    floating point, where it cannot; below MOST_BYTES every size is exact, on the way to it, too."""
    sizes = [plan.arena, *(type_.nbytes for type_ in plan.types().values())]
    for kernel in plan.kernels.values():
        sizes += [param.type.nbytes for param in kernel.params]
        # What ends where a loop says is a part of an axis that is a size by itself.
        sizes += [tasks_of(kernel), *(axis.extent for axis in kernel.axes
                                      if symbols_of(axis.extent) <= dims.keys())]
    sizes += [side for need in plan.requires for side in (need.left, need.right)]
    largest: dict[Monomial, int] = {}
    for size in sizes:
        for monomial, scale in terms_of(size):
            if monomial:
                largest[monomial] = max(largest.get(monomial, 0), abs(scale))
    total = _magnitude(f, Expr(tuple(largest.items())), dims) if largest else "0.0"
    _return_if(f, f(f"fcmp ogt double {total}, {float(MOST_BYTES):e}"), NO_MEMORY)


def _magnitude(f: FunctionText, dim: Dim, dims: Mapping[str, str]) -> str:
    """A bound of the terms of an expression, as a double that is at least 1."""
    total = "1.0"
    for monomial, scale in terms_of(dim):
        term = f"{float(abs(scale)):e}"
        for atom in monomial:
            if isinstance(atom, Symbol):
                size = f(f"uitofp i64 {dims[atom.name]} to double")
                size = f.call("double", "llvm.maxnum.f64", ("double", size), ("double", "1.0"))
            else:
                size = _magnitude(f, _sum_of(parts_of(atom)), dims)
            term = f(f"fmul double {term}, {size}")
        total = f(f"fadd double {total}, {term}")
    return total


def _sum_of(dims: Sequence[Dim]) -> Dim:
    """An expression with the terms of several, which do not cancel."""
    terms: dict[Monomial, int] = {}
    for dim in dims:
        for monomial, scale in terms_of(dim):
            terms[monomial] = terms.get(monomial, 0) + abs(scale)
    return Expr(tuple(terms.items()))


def _arena(plan: Plan, symbols: Sequence[str]) -> FunctionText:
    f = FunctionText("i64", f"{plan.name}_arena", [("ptr", "dims")])
    fits = f(f"call i32 @{plan.name}_fits(ptr %dims)")
    _return_if(f, f(f"icmp ne i32 {fits}, 0"), 0, "i64")
    f.ret(f"i64 {emit_dim(f, plan.arena, _load_dims(f, plan, symbols))}")
    return f


def _program(
    plan: Plan, symbols: Sequence[str], table: StepTable, pool: str, polls: bool
) -> list[FunctionText]:
    """The program: its registers and context are on the stack, or, where there are many, in memory
    that a function around it takes from the heap."""
    params = [("ptr", "args"), ("ptr", "dims"), ("ptr", "arena"), ("i64", "threads"),
              ("ptr", "control")]
    count = round_up(len(table.registers), 2)
    size = 8 * (count + table.slots)
    if size <= STEPS_BYTES:
        f = FunctionText("i32", plan.name, params)
        around, memory = [], f.alloca("i64", size // 8, align=16)
    else:
        name = f"{plan.name}_inside"
        f = FunctionText("i32", name, [*params, ("ptr", "memory")], linkage="internal",
                         attributes="noinline nounwind")
        around, memory = [_with_memory(plan.name, name, params, size)], "%memory"
    if symbols:
        fits = f(f"call i32 @{plan.name}_fits(ptr %dims)")
        _return_if(f, f(f"icmp ne i32 {fits}, 0"), fits)
    dims = _load_dims(f, plan, symbols)
    registers, context = memory, element(f, "i64", memory, count)
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
    name: str, inside: str, params: Sequence[tuple[str, str]], size: int
) -> FunctionText:
    """The function that calls another one with so many bytes of the heap; NO_MEMORY without."""
    f = FunctionText("i32", name, params)
    memory = heap_block(f, size)
    _return_if(f, f(f"icmp eq ptr {memory}, null"), NO_MEMORY)
    given = ", ".join(f"{type_} %{param}" for type_, param in params)
    status = f(f"call i32 @{inside}({given}, ptr {memory})")
    f.call("void", "free", ("ptr", memory))
    f.ret(f"i32 {status}")
    return f


def _return_if(f: FunctionText, condition: str, code: str | int, type_: str = "i32") -> None:
    failed, fine = f.fresh("failed"), f.fresh("fine")
    f.branch(condition, failed, fine)
    f.place(failed)
    f.ret(f"{type_} {code}")
    f.place(fine)
