"""Memory for the time of a call."""

from __future__ import annotations

from ....ir.plans.stack import ARGUMENTS_BYTES
from ..text import FunctionText
from .pool import ImportTable


def memory(f: FunctionText, table: ImportTable, size: str) -> tuple[str, str]:
    """Memory for a call: its share of the stack if that is enough, else a block of the heap, which
    is told, too; it is null on the stack."""
    stack = f.alloca("i8", ARGUMENTS_BYTES, 16)
    before, block, ready = f.block, f.fresh("block"), f.fresh("ready")
    f.branch(f(f"icmp ule i64 {size}, {ARGUMENTS_BYTES}"), ready, block)
    f.place(block)
    found = table.call(f, "ptr", "aligned_alloc", ("i64", "64"),
                       ("i64", f(f"and i64 {f(f'add i64 {size}, 63')}, -64")))
    f.branch(f(f"icmp eq ptr {found}, null"), "full", ready)
    f.place(ready)
    return (f(f"phi ptr [ {stack}, %{before} ], [ {found}, %{block} ]"),
            f(f"phi ptr [ null, %{before} ], [ {found}, %{block} ]"))


def leave(f: FunctionText, table: ImportTable, heap: str, answer: str) -> None:
    """Return from a call; what it has of the heap goes back."""
    with f.when(f(f"icmp ne ptr {heap}, null")):
        table.call(f, "void", "free", ("ptr", heap))
    f.ret(f"ptr {answer}")
