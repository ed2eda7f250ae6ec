"""What a program is called with: leaves, arrays that it holds, values of variables; and how these
get new values.

    weft_flat      what the parameters are
    weft_lend      the value of a variable is the program's, to make the next one of it in place
    weft_return    what was lent is the variable's again
    weft_commit    variables get new values
"""

from __future__ import annotations

from .....ir.plans.walk import SOURCES
from ...text import FunctionText
from ..layout import (
    DENSE,
    LAYOUT,
    OWN,
    WRITEABLE,
    element,
    guard,
    host_function,
    load_at,
    python_field,
    type_of,
    verdict,
)
from ..pool import ImportTable
from .state import get, method, next_word, push, slot

_ALONE = 2  # references to a value that nobody has but its cell and the walk


def emit_flat(table: ImportTable) -> FunctionText:
    """What the program is called with: leaves, arrays that it holds, values of variables; false if
    one of these is lent."""
    f = host_function("i1", "weft_flat", "ptr state", "ptr flat", "i64 params")
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
        guard(f, f(f"icmp ne ptr {value}, null"))
        table.call(f, "void", "Py_IncRef", ("ptr", value))  # another thread may replace it
        push(f, "owned", "kept", value)
        f.do(f"store ptr {value}, ptr {target}")
        f.jump("next")
        f.place("next")
    verdict(f)
    return f


def emit_lend(table: ImportTable) -> FunctionText:
    """Whether the cell has lent its value: an array that has its own memory, and that nobody else
    could see change."""
    f = host_function("i1", "weft_lend", "ptr cell", "ptr array")
    held = slot(f, table, "%cell", "cell.held")
    barred = f(f"load i64, ptr {table.load(f, 'barred')}, align 8")
    guard(f, f(f"icmp eq i64 {barred}, 0"))
    guard(f, f(f"icmp eq ptr {f(f'load ptr, ptr {held}')}, %array"))
    guard(f, f(f"icmp eq ptr {type_of(f, '%array')}, {table.load(f, 'ndarray')}"))
    guard(f, f(f"icmp eq i32 {python_field(f, 'i32', '%array', 'object.refs')}, {_ALONE}"))
    guard(f, f(f"icmp eq ptr {python_field(f, 'ptr', '%array', 'array.weak')}, null"))
    flags = f(f"and i32 {python_field(f, 'i32', '%array', 'array.flags')}, {DENSE | OWN}")
    guard(f, f(f"icmp eq i32 {flags}, {DENSE | OWN}"))
    f.do(f"store ptr %array, ptr {slot(f, table, '%cell', 'cell.lent')}")
    f.do(f"store ptr null, ptr {held}")
    verdict(f)
    return f


def emit_return(table: ImportTable) -> FunctionText:
    """Give back what was lent; ``loans`` has an array for each cell that did, and may be null. A
    step in the middle of this one, in a finalizer, may have given the cell another value."""
    f = host_function("void", "weft_return", "ptr cells", "ptr loans", "i64 count")
    guard(f, f("icmp ne ptr %loans, null"))
    with f.loop("0", "%count") as at:
        array = load_at(f, "ptr", "%loans", at)
        with f.when(f(f"icmp ne ptr {array}, null")):
            cell = load_at(f, "ptr", "%cells", at)
            held, lent = (slot(f, table, cell, f"cell.{name}") for name in ("held", "lent"))
            f.do(f"store ptr null, ptr {lent}")
            value = f(f"load ptr, ptr {held}")
            none = f(f"icmp eq ptr {value}, null")
            f.do(f"store ptr {f(f'select i1 {none}, ptr {array}, ptr {value}')}, ptr {held}")
            # The reference that it had been lent with is that of the cell, or is dropped.
            spare = f(f"select i1 {none}, ptr null, ptr {array}")
            table.call(f, "void", "Py_DecRef", ("ptr", spare))  # which takes null, too
    f.jump("miss")
    f.place("miss")
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
    could be done. Where cells have lent theirs it can, at once: who reads several reads them in one
    call of C code, and who waited for more could be interrupted."""
    f = host_function("i1", "weft_commit", "ptr cells", "ptr loans", "ptr values", "i64 count",
                      "ptr old")
    f.branch(f("icmp eq ptr %loans, null"), "wait", "turn")
    f.place("wait")
    got = method(f, table, table.load(f, "commits"), "acquire")
    guard(f, f(f"icmp ne ptr {got}, null"))
    table.call(f, "void", "Py_DecRef", ("ptr", got))
    f.jump("turn")
    f.place("turn")
    f.do("call void @weft_return(ptr %cells, ptr %loans, i64 %count)")
    with f.loop("0", "%count") as at:
        value = load_at(f, "ptr", "%values", at)
        flags = element(f, "i8", value, LAYOUT["array.flags"])
        frozen = f(f"and i32 {f(f'load i32, ptr {flags}')}, {~WRITEABLE}")
        f.do(f"store i32 {frozen}, ptr {flags}")
        table.call(f, "void", "Py_IncRef", ("ptr", value))
        place = slot(f, table, load_at(f, "ptr", "%cells", at), "cell.held")
        f.do(f"store ptr {f(f'load ptr, ptr {place}')}, ptr {element(f, 'ptr', '%old', at)}")
        f.do(f"store ptr {value}, ptr {place}")
    f.branch(f("icmp eq ptr %loans, null"), "give", "gone")
    f.place("give")
    done = method(f, table, table.load(f, "commits"), "release")
    table.call(f, "void", "Py_DecRef", ("ptr", done))
    f.jump("gone")
    f.place("gone")
    with f.loop("0", "%count") as at:  # whose memory is freed here, under no lock
        table.call(f, "void", "Py_DecRef", ("ptr", load_at(f, "ptr", "%old", at)))
    verdict(f)
    return f
