"""What a program is called with: leaves, arrays that it holds, values of variables; and how these
get new values."""

from __future__ import annotations

from .....ir.plans.walk import SOURCES
from ...text import FunctionText
from ..layout import LAYOUT, WRITEABLE, element, guard, host_function, load_at
from ..pool import ImportTable
from .state import get, method, next_word, push, slot


def emit_flat(table: ImportTable) -> FunctionText:
    """What the program is called with: leaves, arrays that it holds, values of variables."""
    f = host_function("void", "weft_flat", "ptr state", "ptr flat", "i64 params")
    with f.loop("0", "%params") as at:
        target = element(f, "ptr", "%flat", at)
        kind = next_word(f)
        listed = " ".join(f"i64 {number}, label %s_{name}" for name, number in SOURCES.items()
                          if name != "held")
        f.do(f"switch i64 {kind}, label %s_held [ {listed} ]")
        f.place("s_leaf")
        f.do(f"store ptr {load_at(f, 'ptr', get(f, 'leaves'), next_word(f))}, ptr {target}")
        f.jump("next")
        f.place("s_held")
        f.do(f"store ptr {next_word(f, 'ptr')}, ptr {target}")
        f.jump("next")
        f.place("s_cell")
        value = f(f"load ptr, ptr {slot(f, table, next_word(f, 'ptr'), 'cell.held')}")
        table.call(f, "void", "Py_IncRef", ("ptr", value))  # another thread may replace it
        push(f, "owned", "kept", value)
        f.do(f"store ptr {value}, ptr {target}")
        f.jump("next")
        f.place("next")
    f.ret()
    return f


def emit_lock(table: ImportTable) -> FunctionText:
    """Take the locks of cells, in this order, without waiting; how many could be taken."""
    f = host_function("i64", "weft_lock", "ptr cells", "i64 count")
    with f.loop("0", "%count") as at:
        cell = load_at(f, "ptr", "%cells", at)
        lock = f(f"load ptr, ptr {slot(f, table, cell, 'cell.lock')}")
        got = method(f, table, lock, "acquire", table.load(f, "False"))
        table.call(f, "void", "Py_DecRef", ("ptr", got))  # which takes null, too
        taken, free = f.fresh("taken"), f.fresh("free")
        f.branch(f(f"icmp eq ptr {got}, {table.load(f, 'True')}"), taken, free)
        f.place(free)
        f.ret(f"i64 {at}")
        f.place(taken)
    f.ret("i64 %count")
    return f


def emit_unlock(table: ImportTable) -> FunctionText:
    """Give so many locks back; an exception that is set stays."""
    f = host_function("void", "weft_unlock", "ptr cells", "i64 count")
    f.branch(f("icmp eq i64 %count, 0"), "none", "some")
    f.place("none")
    f.ret()
    f.place("some")
    kept = [f.alloca("ptr", 1, 8) for _ in range(3)]
    table.call(f, "void", "PyErr_Fetch", *[("ptr", each) for each in kept])
    with f.loop("0", "%count") as at:
        cell = load_at(f, "ptr", "%cells", at)
        lock = f(f"load ptr, ptr {slot(f, table, cell, 'cell.lock')}")
        done = method(f, table, lock, "release")
        table.call(f, "void", "Py_DecRef", ("ptr", done))
    table.call(f, "void", "PyErr_Restore", *[("ptr", f(f"load ptr, ptr {each}"))
                                             for each in kept])
    f.ret()
    return f


def emit_commit(table: ImportTable) -> FunctionText:
    """Give cells new values, which nobody writes to from now on, all at one moment; whether it
    could be done."""
    f = host_function("i1", "weft_commit", "ptr cells", "ptr values", "i64 count", "ptr old")
    got = method(f, table, table.load(f, "commits"), "acquire")
    guard(f, f(f"icmp ne ptr {got}, null"))
    table.call(f, "void", "Py_DecRef", ("ptr", got))
    with f.loop("0", "%count") as at:
        value = load_at(f, "ptr", "%values", at)
        flags = element(f, "i8", value, LAYOUT["array.flags"])
        frozen = f(f"and i32 {f(f'load i32, ptr {flags}')}, {~WRITEABLE}")
        f.do(f"store i32 {frozen}, ptr {flags}")
        table.call(f, "void", "Py_IncRef", ("ptr", value))
        place = slot(f, table, load_at(f, "ptr", "%cells", at), "cell.held")
        f.do(f"store ptr {f(f'load ptr, ptr {place}')}, ptr {element(f, 'ptr', '%old', at)}")
        f.do(f"store ptr {value}, ptr {place}")
    done = method(f, table, table.load(f, "commits"), "release")
    table.call(f, "void", "Py_DecRef", ("ptr", done))
    with f.loop("0", "%count") as at:  # whose memory is freed here, under no lock
        table.call(f, "void", "Py_DecRef", ("ptr", load_at(f, "ptr", "%old", at)))
    f.ret("i1 true")
    f.place("miss")
    f.ret("i1 false")
    return f
