"""The entry function shared by all compiled programs of a process, ``@weft_entry``.

A warm call runs no Python code: the callable is a METH_FASTCALL function that

    check      exact types, dtypes, shapes; the symbolic dims are bound on the way
    copy       arrays that are not contiguous, once it is sure that all arguments fit
    allocate   results through the NumPy C API, large ones from the pool, and the arena
    call       i32 @f(ptr args, ptr dims, ptr arena, i64 threads, ptr control)
    return     the array, or scalar, or a tuple; ``NotImplemented`` for whatever was not expected
    raise      the error of a check that failed, what a function of the host raised, or a signal's
               handler, or who looks at the clock (``weft_look``)

``NotImplemented`` means that nothing has happened: the Python caller goes its slow path, which
converts or explains. A program that has begun is never run again. What is expected stands in the
program's constants (``entry``); the loop over them costs a few nanoseconds a call, against
milliseconds to compile it unrolled.
"""

from __future__ import annotations

from ....ir.plans.control import ABORTED
from ....ir.plans.entry import MAX_RANK
from ....ir.plans.plan import MISFIT, NO_MEMORY
from ....ir.plans.walk import HANDED
from ..text import COLD, FunctionText
from .arguments import emit_arguments, emit_copies
from .layout import (
    CALL,
    FORMAT,
    HEADER,
    LAYOUT,
    ROW,
    SINGLE,
    element,
    guard,
    has_flag,
    header_word,
    host_function,
    load_at,
    next_row,
    python_field,
    row_word,
    slot_of,
)
from .memory import leave, memory
from .poll import field
from .pool import POOLED_BYTES, Emitted, ImportTable, emit_blocks, emit_pool
from .running import emit_host, emit_look, emit_run
from .walking.door import emit_door, emit_python, emit_told
from .walking.walk import emit_walk


def emit_support() -> Emitted:
    """The module that serves a process: ``@weft_entry``, ``@weft_refuse``, ``@weft_release`` and
    the pool.

    It must never be unloaded: arrays outlive programs.
    """
    table = ImportTable("weft_support_python")
    pool = emit_pool(table)
    functions = (
        _entry(table),
        _serve(table),
        _refuse(table),
        emit_arguments(table),
        emit_copies(table),
        _results(table),
        _sized(table),
        _new_array(table),
        emit_run(table),
        emit_look(table),
        emit_host(table),
        _release(table),
        _undo(table),
        _drop(table),
        *emit_walk(table),
        emit_door(table),
        emit_told(table),
        emit_python(table),
        *emit_blocks(table),
        *pool.functions,
    )
    facts = [f"entry={FORMAT}", *(f"{key}={value}" for key, value in LAYOUT.items())]
    exports = ("weft_entry", "weft_refuse", "weft_release", "weft_door", table.name,
               *pool.exports)
    return Emitted(functions, (*pool.globals_, *table.globals_(facts)), exports)


def _entry(table: ImportTable) -> FunctionText:
    """All of a call: check, copy what is not contiguous, serve, let go of the copies."""
    f = host_function("ptr", "weft_entry", "ptr args", "i64 nargs", "ptr kwnames", "ptr constants",
                      "ptr table", linkage="")
    inputs, count = header_word(f, "inputs"), header_word(f, "results")
    guard(f, f(f"icmp eq i64 %nargs, {inputs}"))
    handed = f(f"icmp eq ptr %kwnames, inttoptr (i64 {HANDED} to ptr)")
    guard(f, f(f"or i1 {handed}, {f('icmp eq ptr %kwnames, null')}"))
    given = f(f"select i1 {handed}, ptr {element(f, 'ptr', '%args', inputs)}, ptr null")
    # Slots for numbers, copies of arrays, pointers to data, results, dims.
    words = f(f"add i64 {f(f'mul i64 {inputs}, 3')}, {f(f'shl i64 {count}, 1')}")
    size = f(f"shl i64 {f(f'add i64 {words}, ' + header_word(f, 'dims'))}, 3")
    slots, heap = memory(f, table, size)
    copies = element(f, "i64", slots, inputs)
    pointers = element(f, "i64", copies, inputs)
    results = element(f, "i64", pointers, f(f"add i64 {inputs}, {count}"))
    dims = element(f, "i64", slots, words)
    strided = f.alloca("i64", align=8)
    first = element(f, "i64", "%constants", len(HEADER))
    rows = f(f"call ptr @weft_arguments(ptr %args, i64 {inputs}, ptr {first}, ptr {pointers}, "
             f"ptr {dims}, ptr {slots}, ptr {strided}, ptr %table)")
    guard(f, f(f"icmp ne ptr {rows}, null"), "unfit")
    serve = (f"call ptr @weft_serve(ptr %constants, ptr {rows}, ptr {pointers}, ptr {dims}, "
             f"ptr {results}, ptr {given}, ptr %table)")
    wanted = f(f"load i64, ptr {strided}")
    f.branch(f(f"icmp eq i64 {wanted}, 0"), "dense", "loose")
    f.place("dense")
    leave(f, table, heap, f(serve))
    f.place("loose")
    made = f(f"call i64 @weft_copies(ptr %args, i64 {inputs}, ptr {first}, ptr {pointers}, "
             f"ptr {copies}, ptr %table)")
    f.branch(f(f"icmp eq i64 {made}, {wanted}"), "copied", "short")
    f.place("copied")
    result = f(serve)
    f.do(f"call void @weft_drop(ptr {copies}, i64 {made})")
    leave(f, table, heap, result)
    f.place("short")
    leave(f, table, heap, f(f"call ptr @weft_undo(ptr {copies}, i64 {made})"))
    f.place("unfit")
    leave(f, table, heap, f("call ptr @weft_undo(ptr null, i64 0)"))
    f.place("full")
    table.call(f, "ptr", "PyErr_NoMemory")
    f.ret("ptr null")
    f.place("miss")
    f.ret(f"ptr {f('call ptr @weft_undo(ptr null, i64 0)')}")
    return f


def _serve(table: ImportTable) -> FunctionText:
    """The rest of a call whose arguments fit: allocate, run, return."""
    f = host_function("ptr", "weft_serve", "ptr constants", "ptr rows", "ptr pointers", "ptr dims",
                      "ptr results", "ptr given", "ptr table")
    inputs, count = header_word(f, "inputs"), header_word(f, "results")
    _evaluate_sizes(f, "%dims")
    _tell_unheard(f, table)
    data = element(f, "ptr", "%pointers", inputs)
    made = f(f"call i64 @weft_results(i64 {count}, ptr %rows, ptr {data}, ptr %dims, "
             "ptr %results, ptr %given, ptr %table, i64 0)")
    guard(f, f(f"icmp eq i64 {made}, {count}"), "undo")
    call = f.alloca("ptr", len(CALL), 8)
    for at, value in enumerate(("%constants", "%rows", data, "%dims", "%results", "%table")):
        f.do(f"store ptr {value}, ptr {element(f, 'ptr', call, at)}, align 8")
    status = f("call i32 @weft_run(ptr %constants, ptr %pointers, ptr %dims, ptr %given, "
               f"ptr %table, ptr {call})")
    guard(f, f(f"icmp eq i32 {status}, 0"), "failed")
    _return_results(f, table, "%results", count, "%given")
    f.place("failed")
    cases = ((ABORTED, "ended"), (NO_MEMORY, "undo"), (MISFIT, "undo"))
    f.do(f"switch i32 {status}, label %raise [ "
         f"{' '.join(f'i32 {code}, label %{label}' for code, label in cases)} ]")
    f.place("ended")  # what ends it is raised already
    f.do(f"call void @weft_drop(ptr %results, i64 {made})")
    f.ret("ptr null")
    f.place("raise")  # the error of a check
    f.do(f"call void @weft_drop(ptr %results, i64 {made})")
    number = table.call(f, "ptr", "PyLong_FromLong", ("i64", f(f"sext i32 {status} to i64")))
    told = f(f"load ptr, ptr {slot_of(f, 'raise')}")
    nothing = table.call(f, "ptr", "PyObject_CallOneArg", ("ptr", told), ("ptr", number))
    table.call(f, "void", "Py_DecRef", ("ptr", number))
    f.ret(f"ptr {nothing}")
    f.place("undo")
    f.ret(f"ptr {f(f'call ptr @weft_undo(ptr %results, i64 {made})')}")
    f.place("miss")
    f.ret(f"ptr {f('call ptr @weft_undo(ptr null, i64 0)')}")
    return f


def _refuse(table: ImportTable) -> FunctionText:
    """What takes the place of ``weft_entry`` in a program whose calls are to go the slow path."""
    f = host_function("ptr", "weft_refuse", "ptr args", "i64 nargs", "ptr kwnames", "ptr constants",
                      "ptr table", linkage="")
    f.ret(f"ptr {f('call ptr @weft_undo(ptr null, i64 0)')}")
    return f


def _evaluate_sizes(f: FunctionText, dims: str) -> None:
    """Have the program compute its expressions; a negative size is a miss. Those that are told
    later count as 0 so far."""
    first = header_word(f, "symbols")
    with f.loop(first, f(f"add i64 {first}, {header_word(f, 'told')}")) as i:
        f.do(f"store i64 0, ptr {element(f, 'i64', dims, i)}, align 8")
    compute, done = f.fresh("compute"), f.fresh("done")
    sizes_of = header_word(f, "sizes_of", "ptr")
    f.branch(f(f"icmp eq ptr {sizes_of}, null"), done, compute)
    f.place(compute)
    f.do(f"call void {sizes_of}(ptr {dims})")
    told = f(f"add i64 {header_word(f, 'symbols')}, {header_word(f, 'told')}")
    with f.loop(told, header_word(f, "known")) as i:
        guard(f, f(f"icmp sge i64 {load_at(f, 'i64', dims, i)}, 0"))
    f.jump(done)
    f.place(done)


def _tell_unheard(f: FunctionText, table: ImportTable) -> None:
    """Tell who has asked NumPy to raise errors of floats that programs do not; that may raise."""
    place = f.alloca("ptr", 1, 8)
    state = ("ptr", table.load(f, "errstate"))
    table.call(f, "i32", "PyContextVar_Get", state, ("ptr", "null"), ("ptr", place))
    found = f(f"load ptr, ptr {place}")
    table.call(f, "void", "Py_DecRef", ("ptr", found))  # which its context has, too
    other, tell, told, go = (f.fresh(label) for label in ("other", "tell", "told", "go"))
    f.branch(f(f"icmp eq ptr {found}, {table.load(f, 'ordinary')}"), go, other)
    f.place(other)
    quiet = f(f"load atomic ptr, ptr {table.load(f, 'quiet')} monotonic, align 8")
    f.branch(f(f"icmp eq ptr {found}, {quiet}"), go, tell)
    f.place(tell)
    made = table.call(f, "ptr", "PyObject_CallNoArgs", ("ptr", table.load(f, "unheard")))
    table.call(f, "void", "Py_DecRef", ("ptr", made))  # which takes null, too
    f.branch(f(f"icmp eq ptr {made}, null"), told, go)
    f.place(told)
    f.ret("ptr null")
    f.place(go)


def _return_results(
    f: FunctionText, table: ImportTable, results: str, count: str, given: str
) -> None:
    with f.loop("0", header_word(f, "scalars")) as i:
        place = element(f, "ptr", results, i)
        array, done = f(f"load ptr, ptr {place}"), f.fresh("done")
        rank, scalar = python_field(f, "i32", array, "array.nd"), f.fresh("nd0")
        f.branch(f(f"icmp ne i32 {rank}, 0"), done, scalar)
        f.place(scalar)
        made = table.call(f, "ptr", "PyArray_Return", ("ptr", array))  # takes the array
        f.do(f"store ptr {made}, ptr {place}")  # null goes to ``weft_undo``
        guard(f, f(f"icmp ne ptr {made}, null"), "undo")
        f.jump(done)
        f.place(done)
    f.branch(has_flag(f, SINGLE), "single", "several")
    f.place("single")
    f.ret(f"ptr {load_at(f, 'ptr', results, 0)}")
    f.place("several")
    # made after the run: a tuple can start the garbage collector, and that any code; not where
    # the caller's memory is written, and he has not said so yet
    collects = f.alloca("i32", 1, 8)
    f.do(f"store i32 0, ptr {collects}")
    with f.when(f(f"icmp ne ptr {given}, null")):
        f.do(f"store i32 {table.call(f, 'i32', 'PyGC_Disable')}, ptr {collects}")
    made = table.call(f, "ptr", "PyTuple_New", ("i64", count))
    with f.when(f(f"icmp ne i32 {f(f'load i32, ptr {collects}')}, 0")):
        table.call(f, "i32", "PyGC_Enable")
    guard(f, f(f"icmp ne ptr {made}, null"), "undo")
    with f.loop("0", count) as i:
        item = ("ptr", load_at(f, "ptr", results, i))
        table.call(f, "i32", "PyTuple_SetItem", ("ptr", made), ("i64", i), item)
    f.ret(f"ptr {made}")


def _results(table: ImportTable) -> FunctionText:
    """Allocate those of ``count`` results, by their rows, that wait for ``told`` sizes, but for
    those that are ``given``; return how many there was memory for. What still waits is null."""
    f = host_function("i64", "weft_results", "i64 count", "ptr row", "ptr pointers", "ptr dims",
                      "ptr results", "ptr given", "ptr table", "i64 told")
    shape = f.alloca("i64", MAX_RANK, 8)
    with f.carried_loop("0", "%count", 1, [("ptr", "%row")]) as loop:
        (row,), i = loop.values, loop.index
        rank, words = row_word(f, row, "rank"), element(f, "i64", row, len(ROW))
        place = element(f, "ptr", "%pointers", i)
        now, later, wait, ask, own, new, next_ = (f.fresh(label) for label in (
            "now", "later", "wait", "ask", "own", "new", "next"))
        waits = row_word(f, row, "waits")
        f.branch(f(f"icmp eq i64 {waits}, %told"), now, later)
        f.place(later)
        f.branch(f(f"icmp ugt i64 {waits}, %told"), wait, next_)
        f.place(wait)
        f.do(f"store ptr null, ptr {element(f, 'ptr', '%results', i)}")
        f.jump(next_)
        f.place(now)
        f.branch(f("icmp eq ptr %given, null"), new, ask)
        f.place(ask)
        array = load_at(f, "ptr", "%given", i)
        f.branch(f(f"icmp eq ptr {array}, null"), new, own)
        f.place(own)
        table.call(f, "void", "Py_IncRef", ("ptr", array))
        f.do(f"store ptr {array}, ptr {element(f, 'ptr', '%results', i)}")
        f.do(f"store ptr {python_field(f, 'ptr', array, 'array.data')}, ptr {place}")
        f.jump(next_)
        f.place(new)
        with f.carried_loop("0", rank, 1, [("i64", row_word(f, row, "item"))]) as axes:
            word, axis = load_at(f, "i64", words, axes.index), axes.index
            static, before = f.fresh("static"), f.block
            symbolic = f.fresh("symbolic")
            f.branch(f(f"icmp sge i64 {word}, 0"), static, symbolic)
            f.place(symbolic)
            index = f(f"lshr i64 {f(f'xor i64 {word}, -1')}, 1")
            value = load_at(f, "i64", "%dims", index)
            f.jump(static)
            f.place(static)
            size = f(f"phi i64 [ {word}, %{before} ], [ {value}, %{symbolic} ]")
            f.do(f"store i64 {size}, ptr {element(f, 'i64', shape, axis)}")
            axes.next = [f(f"mul i64 {axes.values[0]}, {size}")]
        descr = f(f"load ptr, ptr {element(f, 'i8', '%table', row_word(f, row, 'dtype'))}")
        made = f(f"call ptr @weft_new_array(ptr {descr}, i32 {f(f'trunc i64 {rank} to i32')}, "
                 f"ptr {shape}, i64 {axes.results[0]})")
        there, none = f.fresh("there"), f.fresh("none")
        f.branch(f(f"icmp eq ptr {made}, null"), none, there)
        f.place(none)
        f.ret(f"i64 {i}")
        f.place(there)
        f.do(f"store ptr {made}, ptr {element(f, 'ptr', '%results', i)}")
        f.do(f"store ptr {python_field(f, 'ptr', made, 'array.data')}, ptr {place}")
        f.jump(next_)
        f.place(next_)
        loop.next = [next_row(f, row, rank)]
    f.ret("i64 %count")
    return f


def _sized(table: ImportTable) -> FunctionText:
    """A program has measured the size number ``at``: make the results that have waited for it."""
    f = host_function("i32", "weft_sized", "ptr control", "i64 at")
    size = f(f"load i64, ptr {field(f, 'size')}, align 8")
    state = f(f"load ptr, ptr {field(f, 'state')}, align 8")
    released = f(f"icmp ne ptr {state}, null")
    call = f(f"load ptr, ptr {field(f, 'call')}, align 8")
    constants, rows, data, dims, results, own = (
        load_at(f, "ptr", call, at) for at in range(len(CALL)))
    word = f(f"add i64 {load_at(f, 'i64', constants, HEADER.index('symbols'))}, %at")
    f.do(f"store i64 {size}, ptr {element(f, 'i64', dims, word)}, align 8")
    sizes_of = load_at(f, "ptr", constants, HEADER.index("sizes_of"))
    with f.when(f(f"icmp ne ptr {sizes_of}, null")):
        f.do(f"call void {sizes_of}(ptr {dims})")
    count = load_at(f, "i64", constants, HEADER.index("results"))
    with f.when(released):
        table.call(f, "void", "PyEval_RestoreThread", ("ptr", state))
    made = f(f"call i64 @weft_results(i64 {count}, ptr {rows}, ptr {data}, ptr {dims}, "
             f"ptr {results}, ptr null, ptr {own}, i64 {f('add i64 %at, 1')})")
    with f.when(released):
        table.call(f, "ptr", "PyEval_SaveThread")
    done = f(f"icmp eq i64 {made}, {count}")
    f.ret(f"i32 {f(f'zext i1 {done} to i32')}")
    return f


def _new_array(table: ImportTable) -> FunctionText:
    """A new array, its memory from the pool if it is large.

    NumPy asks the handler of the context for memory and remembers it in the array, so the
    handler is set around this one allocation only.
    """
    f = host_function("ptr", "weft_new_array", "ptr descr", "i32 nd", "ptr dims", "i64 size")

    def new_array() -> str:
        ndarray = table.load(f, "ndarray")
        args = (("ptr", ndarray), ("ptr", "%descr"), ("i32", "%nd"), ("ptr", "%dims"))
        rest = (("ptr", "null"), ("ptr", "null"), ("i32", "0"), ("ptr", "null"))
        return table.call(f, "ptr", "PyArray_NewFromDescr", *args, *rest)

    table.call(f, "void", "Py_IncRef", ("ptr", "%descr"))  # NumPy takes a reference
    f.branch(f(f"icmp uge i64 %size, {POOLED_BYTES}"), "large", "small")
    f.place("small")
    f.ret(f"ptr {new_array()}")
    f.place("large")
    pool = table.load(f, "pool")
    old = table.call(f, "ptr", "PyDataMem_SetHandler", ("ptr", pool))
    f.branch(f(f"icmp eq ptr {old}, null"), "unset", "set")
    f.place("unset")
    table.call(f, "void", "Py_DecRef", ("ptr", "%descr"))
    f.ret("ptr null")
    f.place("set")
    made = new_array()
    ours = table.call(f, "ptr", "PyDataMem_SetHandler", ("ptr", old))
    table.call(f, "void", "Py_DecRef", ("ptr", old))
    f.branch(f(f"icmp eq ptr {ours}, null"), "stuck", "done")
    f.place("stuck")
    table.call(f, "void", "Py_DecRef", ("ptr", made))  # which takes null, too
    f.ret("ptr null")
    f.place("done")
    table.call(f, "void", "Py_DecRef", ("ptr", ours))
    f.ret(f"ptr {made}")
    return f


def _release(table: ImportTable) -> FunctionText:
    """Free what a program keeps; for its last caller, or whenever memory is short."""
    f = host_function("void", "weft_release", "ptr table", linkage="", attributes=COLD)
    block = f(f"atomicrmw xchg ptr {slot_of(f, 'spare')}, ptr null acquire")
    table.call(f, "void", "free", ("ptr", block))
    f.ret()
    return f


def _undo(table: ImportTable) -> FunctionText:
    """Drop ``count`` results; then MemoryError is raised, and all else is NotImplemented."""
    f = host_function("ptr", "weft_undo", "ptr results", "i64 count", attributes=COLD)
    f.do("call void @weft_drop(ptr %results, i64 %count)")
    error = table.call(f, "ptr", "PyErr_Occurred")
    f.branch(f(f"icmp eq ptr {error}, null"), "miss", "raised")
    f.place("raised")
    memory = table.load(f, "MemoryError")
    matches = table.call(f, "i32", "PyErr_ExceptionMatches", ("ptr", memory))
    f.branch(f(f"icmp ne i32 {matches}, 0"), "raise", "clear")
    f.place("raise")
    f.ret("ptr null")
    f.place("clear")
    table.call(f, "void", "PyErr_Clear")
    f.jump("miss")
    f.place("miss")
    answer = table.load(f, "NotImplemented")
    table.call(f, "void", "Py_IncRef", ("ptr", answer))
    f.ret(f"ptr {answer}")
    return f


def _drop(table: ImportTable) -> FunctionText:
    """Drop ``count`` results, whatever is raised."""
    f = host_function("void", "weft_drop", "ptr results", "i64 count", attributes=COLD)
    with f.loop("0", "%count") as i:
        table.call(f, "void", "Py_DecRef", ("ptr", load_at(f, "ptr", "%results", i)))
    f.ret()
    return f
