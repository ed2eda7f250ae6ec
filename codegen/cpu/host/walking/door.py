"""Where calls of compiled functions come in."""

from __future__ import annotations

from ...text import COLD, FunctionText
from ..layout import element, guard, host_function, load_at, type_of
from ..memory import leave, memory
from ..pool import ImportTable
from .state import slot


def emit_door(table: ImportTable) -> FunctionText:
    """``@weft_door``: the vectorcall of compiled functions. The walks of a function are tried in
    turn, then Python is asked, as it is where the running code is traced:

        ptr @weft_door(ptr self, ptr args, i64 flags, ptr kwnames)

    of ``flags`` all but the highest bit are the number of arguments by position.

    What a walk raises is handed to Python, which says what is to be raised, or None: the call is
    made again, by Python.
    """
    f = host_function("ptr", "weft_door", "ptr self", "ptr args", "i64 flags", "ptr kwnames",
                      linkage="")
    nargs = f(f"and i64 %flags, {(1 << 63) - 1}")
    place = slot(f, table, "%self", "function.walks")
    walks = f(f"load ptr, ptr {place}")
    guard(f, f(f"icmp ne ptr {walks}, null"), "python")
    guard(f, f(f"icmp ne ptr {walks}, {table.load(f, 'None')}"), "python")
    found = f.alloca("ptr", 1, 8)
    table.call(f, "i32", "PyContextVar_Get", ("ptr", table.load(f, "recording")), ("ptr", "null"),
               ("ptr", found))
    trace = f(f"load ptr, ptr {found}")
    table.call(f, "void", "Py_DecRef", ("ptr", trace))  # which its context has, too
    guard(f, f(f"icmp eq ptr {trace}, {table.load(f, 'None')}"), "python")
    table.call(f, "void", "Py_IncRef", ("ptr", walks))  # another thread may replace them
    text = table.call(f, "ptr", "PyTuple_GetItem", ("ptr", walks), ("i64", "0"))
    words = table.call(f, "ptr", "PyBytes_AsString", ("ptr", text))
    count = f(f"load i64, ptr {words}")
    with f.loop("0", count) as at:
        walk = load_at(f, "ptr", words, f(f"add i64 {at}, 1"))
        made = f(f"call ptr @weft_walk(ptr {walk}, ptr %args, i64 {nargs}, ptr %kwnames)")
        other, ours, next_ = f.fresh("other"), f.fresh("ours"), f.fresh("next")
        f.branch(f(f"icmp eq ptr {made}, {table.load(f, 'NotImplemented')}"), other, ours)
        f.place(ours)
        table.call(f, "void", "Py_DecRef", ("ptr", walks))
        bad, good = f.fresh("bad"), f.fresh("good")
        f.branch(f(f"icmp eq ptr {made}, null"), bad, good)
        f.place(good)
        f.ret(f"ptr {made}")
        f.place(bad)
        again = f("call i1 @weft_told(ptr %self)")
        f.branch(again, "python", "raise")
        f.place(other)
        table.call(f, "void", "Py_DecRef", ("ptr", made))
        f.jump(next_)
        f.place(next_)
    table.call(f, "void", "Py_DecRef", ("ptr", walks))
    f.jump("python")
    f.place("raise")
    f.ret("ptr null")
    f.place("python")
    asked = f(f"call ptr @weft_python(ptr %self, ptr %args, i64 {nargs}, ptr %kwnames)")
    f.ret(f"ptr {asked}")
    return f


def emit_told(table: ImportTable) -> FunctionText:
    """Hand what is raised to Python: true if the call is to be made again, else there is an error
    set."""
    f = host_function("i1", "weft_told", "ptr self", attributes=COLD)
    type_, value, trace = kept = [f.alloca("ptr", 1, 8) for _ in range(3)]
    table.call(f, "void", "PyErr_Fetch", *[("ptr", each) for each in kept])
    table.call(f, "void", "PyErr_NormalizeException", *[("ptr", each) for each in kept])
    problem, at = f(f"load ptr, ptr {value}"), f(f"load ptr, ptr {trace}")
    with f.when(f(f"icmp ne ptr {at}, null")):
        table.call(f, "i32", "PyException_SetTraceback", ("ptr", problem), ("ptr", at))
    given = f.alloca("ptr", 2, 8)
    for number, each in enumerate(("%self", problem)):
        f.do(f"store ptr {each}, ptr {element(f, 'ptr', given, number)}")
    told = table.call(f, "ptr", "PyObject_Vectorcall", ("ptr", table.load(f, "told")),
                      ("ptr", given), ("i64", "2"), ("ptr", "null"))
    for each in (f(f"load ptr, ptr {type_}"), problem, at):
        table.call(f, "void", "Py_DecRef", ("ptr", each))
    guard(f, f(f"icmp ne ptr {told}, null"), "raised")
    guard(f, f(f"icmp ne ptr {told}, {table.load(f, 'None')}"), "again")
    kind = type_of(f, told)
    table.call(f, "void", "Py_IncRef", ("ptr", kind))
    frames = table.call(f, "ptr", "PyException_GetTraceback", ("ptr", told))
    table.call(f, "void", "PyErr_Restore", ("ptr", kind), ("ptr", told), ("ptr", frames))
    f.ret("i1 false")
    f.place("again")
    table.call(f, "void", "Py_DecRef", ("ptr", told))
    f.ret("i1 true")
    f.place("raised")
    f.ret("i1 false")
    return f


def emit_python(table: ImportTable) -> FunctionText:
    """Call the function of Python's that calls go to which no walk is for."""
    f = host_function("ptr", "weft_python", "ptr self", "ptr args", "i64 nargs", "ptr kwnames")
    before, counted, known = f.block, f.fresh("counted"), f.fresh("known")
    f.branch(f("icmp eq ptr %kwnames, null"), known, counted)
    f.place(counted)
    size = table.call(f, "i64", "PyTuple_Size", ("ptr", "%kwnames"))
    f.jump(known)
    f.place(known)
    more = f(f"phi i64 [ 0, %{before} ], [ {size}, %{counted} ]")
    count = f(f"add i64 %nargs, {more}")
    given, heap = memory(f, table, f(f"shl i64 {f(f'add i64 {count}, 1')}, 3"))
    f.do(f"store ptr %self, ptr {given}")
    with f.loop("0", count) as at:
        target = element(f, "ptr", given, f(f"add i64 {at}, 1"))
        f.do(f"store ptr {load_at(f, 'ptr', '%args', at)}, ptr {target}")
    made = table.call(f, "ptr", "PyObject_Vectorcall", ("ptr", table.load(f, "slowly")),
                      ("ptr", given), ("i64", f("add i64 %nargs, 1")), ("ptr", "%kwnames"))
    leave(f, table, heap, made)
    f.place("full")
    table.call(f, "ptr", "PyErr_NoMemory")
    f.ret("ptr null")
    return f
