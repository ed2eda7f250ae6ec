"""The function of a group: the tasks of several kernels, one after the other."""

from __future__ import annotations

from ....ir.kernels.kernel import Kernel
from ..host.layout import element
from ..text import FunctionText

Members = tuple[tuple[Kernel, int, int], ...]
"""Kernels, at which slot of the whole context each has its own, and how many tasks it has."""


def group_function(name: str, members: Members) -> FunctionText:
    """Tasks [begin, end) of several kernels, which are numbered through; each has its context at
    some slot of the whole one, and a number of tasks (negative: ``~n`` is slot n)."""
    f = FunctionText("void", name, [("ptr", "context"), ("i64", "begin"), ("i64", "end"),
                                    ("ptr", "scratch")],
                     linkage="internal", attributes="noinline nounwind")
    begin, end = "%begin", "%end"
    for kernel, start, count in members:
        tasks = str(count) if count >= 0 else f(
            f"load i64, ptr {element(f, 'i64', '%context', ~count)}, align 8")
        first = f.call("i64", "llvm.smax.i64", ("i64", begin), ("i64", "0"))
        last = f.call("i64", "llvm.smin.i64", ("i64", end), ("i64", tasks))
        with f.when(f(f"icmp slt i64 {first}, {last}")):
            own = element(f, "i64", "%context", start)
            f.do(f"call void @{kernel.name}(ptr {own}, i64 {first}, i64 {last}, ptr %scratch)")
        begin, end = f(f"sub i64 {begin}, {tasks}"), f(f"sub i64 {end}, {tasks}")
    f.ret()
    return f
