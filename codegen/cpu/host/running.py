"""A run of a program: its arena and its control block, and what it calls back meanwhile."""

from __future__ import annotations

from ....ir.plans.control import SIZE
from ....ir.plans.stack import ARENA_BYTES
from ..text import FunctionText
from .layout import RELEASE_GIL, element, guard, has_flag, header_word, host_function, slot_of
from .poll import field
from .pool import ImportTable


def emit_run(table: ImportTable) -> FunctionText:
    """Call the program with its arena; the status is -1, and an error set, without memory."""
    f = host_function("i32", "weft_run", "ptr constants", "ptr pointers", "ptr dims", "ptr given",
                      "ptr table", "ptr call")
    static = header_word(f, "arena")
    f.branch(f(f"icmp slt i64 {static}, 0"), "ask", "known")
    f.place("ask")
    asked = f(f"call i64 {header_word(f, 'arena_of', 'ptr')}(ptr %dims)")
    f.jump("known")
    f.place("known")
    size = f(f"phi i64 [ {static}, %entry ], [ {asked}, %ask ]")
    f.branch(f(f"icmp eq i64 {size}, 0"), "ready", "some")
    f.place("some")
    local = f.alloca("i8", ARENA_BYTES, 64)
    f.branch(f(f"icmp ule i64 {size}, {ARENA_BYTES}"), "ready", "take")
    f.place("take")  # larger ones are kept from call to call
    spare = slot_of(f, "spare")
    block = f(f"call ptr @weft_take(i64 {size}, ptr {spare})")
    guard(f, f(f"icmp ne ptr {block}, null"), "full")
    kept, taken = element(f, "i8", block, 64), f.block
    f.jump("ready")
    f.place("ready")
    arena = f(f"phi ptr [ null, %known ], [ {local}, %some ], [ {kept}, %{taken} ]")
    held = f(f"phi ptr [ null, %known ], [ null, %some ], [ {block}, %{taken} ]")
    status = _call_program(f, table, arena)
    f.branch(f(f"icmp eq ptr {held}, null"), "done", "give")
    f.place("give")
    f.do(f"call void @weft_give(ptr {held}, ptr {slot_of(f, 'spare')})")
    f.jump("done")
    f.place("done")
    f.ret(f"i32 {status}")
    f.place("full")
    table.call(f, "ptr", "PyErr_NoMemory")
    f.ret("i32 -1")
    return f


def _call_program(f: FunctionText, table: ImportTable, arena: str) -> str:
    threads = f(f"load i64, ptr {slot_of(f, 'threads')}")
    program, before = header_word(f, "program", "ptr"), f.block
    control = f.alloca("i64", SIZE // 8, 8)
    steps = f(f"load ptr, ptr {slot_of(f, 'host')}")
    # Nobody ends a run that writes to what its caller has: it would be half done.
    hook = f(f"select i1 {f('icmp eq ptr %given, null')}, ptr @weft_look, ptr null")
    for name, value in (("hook", hook), ("host", "@weft_host"), ("steps", steps),
                        ("sized", "@weft_sized"), ("call", "%call"),
                        ("loops", f(f"load ptr, ptr {slot_of(f, 'loops')}"))):
        f.do(f"store ptr {value}, ptr {field(f, name, control)}, align 8")
    release = has_flag(f, RELEASE_GIL)
    f.branch(release, "unlock", "run")
    f.place("unlock")
    saved = table.call(f, "ptr", "PyEval_SaveThread")
    f.jump("run")
    f.place("run")
    state = f(f"phi ptr [ null, %{before} ], [ {saved}, %unlock ]")
    f.do(f"store ptr {state}, ptr {field(f, 'state', control)}, align 8")
    status = f(f"call i32 {program}(ptr %pointers, ptr %dims, ptr {arena}, i64 {threads}, "
               f"ptr {control})")
    f.branch(release, "lock", "ran")
    f.place("lock")
    table.call(f, "void", "PyEval_RestoreThread", ("ptr", state))
    f.jump("ran")
    f.place("ran")
    return status


def emit_look(table: ImportTable) -> FunctionText:
    """The hook of a run: 1, and an error set, if a signal's handler raises, or who watches a run
    of this thread (``runtime/looks``). Nobody but the main thread handles signals, so others take
    the GIL only if any run is watched.
    """
    f = host_function("i32", "weft_look", "ptr control")
    watched = f(f"load atomic i64, ptr {table.load(f, 'watched')} monotonic, align 8")
    own = table.call(f, "i64", "PyThread_get_thread_ident")
    main = f(f"load i64, ptr {table.load(f, 'main')}, align 8")
    some = f(f"icmp ne i64 {watched}, 0")
    guard(f, f(f"or i1 {some}, {f(f'icmp eq i64 {own}, {main}')}"), "go")
    state = f(f"load ptr, ptr {field(f, 'state')}, align 8")
    released = f(f"icmp ne ptr {state}, null")
    with f.when(released):
        table.call(f, "void", "PyEval_RestoreThread", ("ptr", state))
    handled = table.call(f, "i32", "PyErr_CheckSignals")
    one = f(f"and i1 {some}, {f(f'icmp eq i32 {handled}, 0')}")
    before, ask, looked = f.block, f.fresh("ask"), f.fresh("looked")
    f.branch(one, ask, looked)
    f.place(ask)
    made = table.call(f, "ptr", "PyObject_CallNoArgs", ("ptr", table.load(f, "look")))
    table.call(f, "void", "Py_DecRef", ("ptr", made))  # which takes null, too
    raised = f(f"zext i1 {f(f'icmp eq ptr {made}, null')} to i32")
    f.jump(looked)
    f.place(looked)
    over = f(f"phi i32 [ {handled}, %{before} ], [ {raised}, %{ask} ]")
    with f.when(released):
        table.call(f, "ptr", "PyEval_SaveThread")
    f.ret(f"i32 {over}")
    f.place("go")
    f.ret("i32 0")
    return f


def emit_host(table: ImportTable) -> FunctionText:
    """Run a host step: Python calls ``steps(number, address of its context)``. What that raises is
    the thread's error from then on, as it would be in a function of CPython's own."""
    f = host_function("void", "weft_host", "i64 number", "ptr context", "ptr control")
    state = f(f"load ptr, ptr {field(f, 'state')}, align 8")
    released = f(f"icmp ne ptr {state}, null")
    args = f.alloca("ptr", 2, 8)
    with f.when(released):
        table.call(f, "void", "PyEval_RestoreThread", ("ptr", state))
    made = [table.call(f, "ptr", "PyLong_FromLong", ("i64", "%number")),
            table.call(f, "ptr", "PyLong_FromVoidPtr", ("ptr", "%context"))]
    for at, each in enumerate(made):
        f.do(f"store ptr {each}, ptr {element(f, 'ptr', args, at)}, align 8")
    both = (f(f"icmp ne ptr {each}, null") for each in made)
    with f.when(f(f"and i1 {', '.join(both)}")):
        steps = f(f"load ptr, ptr {field(f, 'steps')}, align 8")
        done = table.call(f, "ptr", "PyObject_Vectorcall", ("ptr", steps), ("ptr", args),
                          ("i64", "2"), ("ptr", "null"))
        with f.when(f(f"icmp ne ptr {done}, null")):
            table.call(f, "void", "Py_DecRef", ("ptr", done))
            f.do("store i32 0, ptr %control, align 4")
    for each in made:
        table.call(f, "void", "Py_DecRef", ("ptr", each))  # which takes null, too
    with f.when(released):
        table.call(f, "ptr", "PyEval_SaveThread")
    f.ret()
    return f
