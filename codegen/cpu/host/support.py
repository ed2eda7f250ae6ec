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

from collections.abc import Mapping
from types import MappingProxyType

from ....ir.plans.control import ABORTED, SIZE
from ....ir.plans.entry import MAX_RANK
from ....ir.plans.plan import MISFIT, NO_MEMORY
from ....ir.plans.stack import ARENA_BYTES, ARGUMENTS_BYTES
from ..text import COLD, FunctionText
from .poll import field
from .pool import POOLED_BYTES, Emitted, ImportTable, emit_blocks, emit_pool

FORMAT = 6  # of header and rows; a program and a support of different formats never meet
HEADER = ("inputs", "results", "scalars", "symbols", "dims", "flags", "arena", "program",
          "arena_of", "sizes_of")  # of a program's constants, eight bytes each
ROW = ("kind", "dtype", "twin", "rank", "item")  # then the dims, see `dim_word`
KINDS: Mapping[str, int] = MappingProxyType({
    "array": 0, "float": 1, "int": 2, "bool": 3, "complex": 4, "scalar": 5})
SINGLE, RELEASE_GIL = 1, 2  # the header's flags
# Of a program, before its dtypes: "raise" is called with the number of a check that has failed,
# "host" with that of a host step and its context.
SLOTS = ("weft_entry", "threads", "spare", "raise", "host")
_DENSE = 0x1 | 0x100  # NumPy's array flags: in C order, aligned

LAYOUT: Mapping[str, int] = MappingProxyType({
    "object.type": 8,
    "array.data": 16,
    "array.nd": 24,
    "array.dims": 32,
    "array.descr": 56,
    "array.flags": 64,
    "descr.scalar": 16,
    "descr.byteorder": 26,
    "descr.num": 28,
    "complex.value": 16,
    "scalar.value": 16,
})
"""Byte offsets in CPython's and NumPy's structures; the runtime checks them before any call."""


def dim_word(index: int, first: bool) -> int:
    """The word for a symbol or expression in a row, negative: sizes stand for themselves.

    ``first`` says that this dim binds symbol ``index``; all others are compared with it.
    """
    return ~(2 * index + first)


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
        _arguments(table),
        _copies(table),
        _results(),
        _new_array(table),
        _run(table),
        _look(table),
        _host(table),
        _release(table),
        _undo(table),
        _drop(table),
        *emit_blocks(table),
        *pool.functions,
    )
    facts = [f"entry={FORMAT}", *(f"{key}={value}" for key, value in LAYOUT.items())]
    exports = ("weft_entry", "weft_refuse", "weft_release", table.name, *pool.exports)
    return Emitted(functions, (*pool.globals_, *table.globals_(facts)), exports)


def element(f: FunctionText, type_: str, array: str, index: int | str) -> str:
    """The address of ``array[index]``."""
    return f(f"getelementptr {type_}, ptr {array}, i64 {index}")


def _function(result: str, name: str, *params: str, linkage: str = "internal",
              attributes: str = "nounwind") -> FunctionText:
    """A function whose parameters are spelled ``"i64 count"``."""
    pairs = [(type_, param) for type_, param in map(str.split, params)]
    return FunctionText(result, name, pairs, linkage=linkage, attributes=attributes)


def _at(f: FunctionText, type_: str, array: str, index: int | str) -> str:
    return f(f"load {type_}, ptr {element(f, type_, array, index)}")


def _header(f: FunctionText, field: str, type_: str = "i64") -> str:
    return _at(f, type_, "%constants", HEADER.index(field))


def _flag(f: FunctionText, flag: int) -> str:
    masked = f(f"and i64 {_header(f, 'flags')}, {flag}")
    return f(f"icmp ne i64 {masked}, 0")


def _row(f: FunctionText, row: str, field: str) -> str:
    return _at(f, "i64", row, ROW.index(field))


def _next(f: FunctionText, row: str, rank: str) -> str:
    return element(f, "i64", row, f(f"add i64 {rank}, {len(ROW)}"))


def _field(f: FunctionText, type_: str, pointer: str, name: str) -> str:
    return f(f"load {type_}, ptr {element(f, 'i8', pointer, LAYOUT[name])}")


def _slot(f: FunctionText, name: str) -> str:
    """The address of one of a program's first slots."""
    return element(f, "ptr", "%table", 1 + SLOTS.index(name))


def _guard(f: FunctionText, condition: str, other: str = "miss") -> None:
    """Go on if ``condition`` holds, else jump to ``other``."""
    label = f.fresh("ok")
    f.branch(condition, label, other)
    f.place(label)


def _entry(table: ImportTable) -> FunctionText:
    """All of a call: check, copy what is not contiguous, serve, let go of the copies."""
    f = _function("ptr", "weft_entry", "ptr args", "i64 nargs", "ptr kwnames", "ptr constants",
                  "ptr table", linkage="")
    inputs, count = _header(f, "inputs"), _header(f, "results")
    _guard(f, f(f"icmp eq i64 %nargs, {inputs}"))
    _guard(f, f("icmp eq ptr %kwnames, null"))
    # Slots for numbers, copies of arrays, pointers to data, results, dims.
    words = f(f"add i64 {f(f'mul i64 {inputs}, 3')}, {f(f'shl i64 {count}, 1')}")
    size = f(f"shl i64 {f(f'add i64 {words}, ' + _header(f, 'dims'))}, 3")
    slots, heap = _memory(f, table, size)
    copies = element(f, "i64", slots, inputs)
    pointers = element(f, "i64", copies, inputs)
    results = element(f, "i64", pointers, f(f"add i64 {inputs}, {count}"))
    dims = element(f, "i64", slots, words)
    strided = f.alloca("i64", align=8)
    first = element(f, "i64", "%constants", len(HEADER))
    rows = f(f"call ptr @weft_arguments(ptr %args, i64 {inputs}, ptr {first}, ptr {pointers}, "
             f"ptr {dims}, ptr {slots}, ptr {strided}, ptr %table)")
    _guard(f, f(f"icmp ne ptr {rows}, null"), "unfit")
    serve = (f"call ptr @weft_serve(ptr %constants, ptr {rows}, ptr {pointers}, ptr {dims}, "
             f"ptr {results}, ptr %table)")
    wanted = f(f"load i64, ptr {strided}")
    f.branch(f(f"icmp eq i64 {wanted}, 0"), "dense", "loose")
    f.place("dense")
    _leave(f, table, heap, f(serve))
    f.place("loose")
    made = f(f"call i64 @weft_copies(ptr %args, i64 {inputs}, ptr {first}, ptr {pointers}, "
             f"ptr {copies}, ptr %table)")
    f.branch(f(f"icmp eq i64 {made}, {wanted}"), "copied", "short")
    f.place("copied")
    result = f(serve)
    f.do(f"call void @weft_drop(ptr {copies}, i64 {made})")
    _leave(f, table, heap, result)
    f.place("short")
    _leave(f, table, heap, f(f"call ptr @weft_undo(ptr {copies}, i64 {made})"))
    f.place("unfit")
    _leave(f, table, heap, f("call ptr @weft_undo(ptr null, i64 0)"))
    f.place("full")
    table.call(f, "ptr", "PyErr_NoMemory")
    f.ret("ptr null")
    f.place("miss")
    f.ret(f"ptr {f('call ptr @weft_undo(ptr null, i64 0)')}")
    return f


def _serve(table: ImportTable) -> FunctionText:
    """The rest of a call whose arguments fit: allocate, run, return."""
    f = _function("ptr", "weft_serve", "ptr constants", "ptr rows", "ptr pointers", "ptr dims",
                  "ptr results", "ptr table")
    inputs, count = _header(f, "inputs"), _header(f, "results")
    _evaluate_sizes(f, "%dims")
    data = element(f, "ptr", "%pointers", inputs)
    made = f(f"call i64 @weft_results(i64 {count}, ptr %rows, ptr {data}, ptr %dims, "
             "ptr %results, ptr %table)")
    _guard(f, f(f"icmp eq i64 {made}, {count}"), "undo")
    status = f("call i32 @weft_run(ptr %constants, ptr %pointers, ptr %dims, ptr %table)")
    _guard(f, f(f"icmp eq i32 {status}, 0"), "failed")
    _return_results(f, table, "%results", count)
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
    told = f(f"load ptr, ptr {_slot(f, 'raise')}")
    nothing = table.call(f, "ptr", "PyObject_CallOneArg", ("ptr", told), ("ptr", number))
    table.call(f, "void", "Py_DecRef", ("ptr", number))
    f.ret(f"ptr {nothing}")
    f.place("undo")
    f.ret(f"ptr {f(f'call ptr @weft_undo(ptr %results, i64 {made})')}")
    f.place("miss")
    f.ret(f"ptr {f('call ptr @weft_undo(ptr null, i64 0)')}")
    return f


def _memory(f: FunctionText, table: ImportTable, size: str) -> tuple[str, str]:
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


def _leave(f: FunctionText, table: ImportTable, heap: str, answer: str) -> None:
    """Return from a call; what it has of the heap goes back."""
    with f.when(f(f"icmp ne ptr {heap}, null")):
        table.call(f, "void", "free", ("ptr", heap))
    f.ret(f"ptr {answer}")


def _refuse(table: ImportTable) -> FunctionText:
    """What takes the place of ``weft_entry`` in a program whose calls are to go the slow path."""
    f = _function("ptr", "weft_refuse", "ptr args", "i64 nargs", "ptr kwnames", "ptr constants",
                  "ptr table", linkage="")
    f.ret(f"ptr {f('call ptr @weft_undo(ptr null, i64 0)')}")
    return f


def _evaluate_sizes(f: FunctionText, dims: str) -> None:
    """Have the program compute its expressions; a negative size is a miss."""
    compute, done = f.fresh("compute"), f.fresh("done")
    sizes_of = _header(f, "sizes_of", "ptr")
    f.branch(f(f"icmp eq ptr {sizes_of}, null"), done, compute)
    f.place(compute)
    f.do(f"call void {sizes_of}(ptr {dims})")
    with f.loop(_header(f, "symbols"), _header(f, "dims")) as i:
        _guard(f, f(f"icmp sge i64 {_at(f, 'i64', dims, i)}, 0"))
    f.jump(done)
    f.place(done)


def _return_results(f: FunctionText, table: ImportTable, results: str, count: str) -> None:
    with f.loop("0", _header(f, "scalars")) as i:
        place = element(f, "ptr", results, i)
        array, done = f(f"load ptr, ptr {place}"), f.fresh("done")
        plain, scalar = f(f"icmp ne i32 {_field(f, 'i32', array, 'array.nd')}, 0"), f.fresh("nd0")
        f.branch(plain, done, scalar)
        f.place(scalar)
        made = table.call(f, "ptr", "PyArray_Return", ("ptr", array))  # takes the array
        f.do(f"store ptr {made}, ptr {place}")  # null goes to ``weft_undo``
        _guard(f, f(f"icmp ne ptr {made}, null"), "undo")
        f.jump(done)
        f.place(done)
    f.branch(_flag(f, SINGLE), "single", "several")
    f.place("single")
    f.ret(f"ptr {_at(f, 'ptr', results, 0)}")
    f.place("several")
    # made after the run: a tuple can start the garbage collector, and that any code
    made = table.call(f, "ptr", "PyTuple_New", ("i64", count))
    _guard(f, f(f"icmp ne ptr {made}, null"), "undo")
    with f.loop("0", count) as i:
        item = ("ptr", _at(f, "ptr", results, i))
        table.call(f, "i32", "PyTuple_SetItem", ("ptr", made), ("i64", i), item)
    f.ret(f"ptr {made}")


def _arguments(table: ImportTable) -> FunctionText:
    """Check ``count`` arguments by their rows and note where their data lies: null stands for an
    array that must be copied, and ``strided`` tells how many there are.

    Returns the row after theirs, or null for a miss.
    """
    f = _function("ptr", "weft_arguments", "ptr args", "i64 count", "ptr row", "ptr pointers",
                  "ptr dims", "ptr slots", "ptr strided", "ptr table")
    f.do("store i64 0, ptr %strided")
    with f.carried_loop("0", "%count", 1, [("ptr", "%row")]) as loop:
        (row,), value = loop.values, _at(f, "ptr", "%args", loop.index)
        slot = element(f, "i64", "%slots", loop.index)
        type_ = _field(f, "ptr", value, "object.type")
        rank, place = _row(f, row, "rank"), element(f, "ptr", "%pointers", loop.index)
        cases = " ".join(f"i64 {KINDS[kind]}, label %{kind}" for kind in KINDS if kind != "array")
        f.do(f"switch i64 {_row(f, row, 'kind')}, label %array [ {cases} ]")
        f.place("array")
        _guard(f, f(f"icmp eq ptr {type_}, {table.load(f, 'ndarray')}"))
        _check_array(f, value, row, rank)
        masked = f(f"and i32 {_field(f, 'i32', value, 'array.flags')}, {_DENSE}")
        f.branch(f(f"icmp eq i32 {masked}, {_DENSE}"), "contiguous", "apart")
        f.place("contiguous")
        f.do(f"store ptr {_field(f, 'ptr', value, 'array.data')}, ptr {place}")
        f.jump("next")
        f.place("apart")
        f.do(f"store ptr null, ptr {place}")
        more = f(f"add i64 {f('load i64, ptr %strided')}, 1")
        f.do(f"store i64 {more}, ptr %strided")
        f.jump("next")
        f.place("scalar")  # its value lies in the object, and stays as it is
        descr = f(f"load ptr, ptr {element(f, 'i8', '%table', _row(f, row, 'dtype'))}")
        _guard(f, f(f"icmp eq ptr {type_}, {_field(f, 'ptr', descr, 'descr.scalar')}"))
        f.do(f"store ptr {element(f, 'i8', value, LAYOUT['scalar.value'])}, ptr {place}")
        f.jump("next")
        for kind in ("float", "int", "bool"):
            f.place(kind)
            _read_scalar(f, table, kind, value, type_, slot)
            f.do(f"store ptr {slot}, ptr {place}")
            f.jump("next")
        f.place("complex")  # both parts lie in the object, as they do in arrays
        _guard(f, f(f"icmp eq ptr {type_}, {table.load(f, 'complex')}"))
        f.do(f"store ptr {element(f, 'i8', value, LAYOUT['complex.value'])}, ptr {place}")
        f.jump("next")
        f.place("next")
        loop.next = [_next(f, row, rank)]
    f.ret(f"ptr {loop.results[0]}")
    f.place("miss")
    f.ret("ptr null")
    return f


def _check_array(f: FunctionText, array: str, row: str, rank: str) -> None:
    descr = _field(f, "ptr", array, "array.descr")
    wanted = f(f"load ptr, ptr {element(f, 'i8', '%table', _row(f, row, 'dtype'))}")
    f.branch(f(f"icmp eq ptr {descr}, {wanted}"), "typed", "alike")
    f.place("alike")  # a dtype object of its own can still be the same dtype
    number = _field(f, "i32", descr, "descr.num")
    same = f(f"icmp eq i32 {number}, {_field(f, 'i32', wanted, 'descr.num')}")
    wide = f(f"zext i32 {number} to i64")
    twin = f(f"icmp eq i64 {wide}, {_row(f, row, 'twin')}")
    # the foreign byte order: the runtime admits little-endian machines only
    native = f(f"icmp ne i8 {_field(f, 'i8', descr, 'descr.byteorder')}, {ord('>')}")
    f.branch(f(f"and i1 {native}, {f(f'or i1 {same}, {twin}')}"), "typed", "miss")
    f.place("typed")
    nd = f(f"sext i32 {_field(f, 'i32', array, 'array.nd')} to i64")
    _guard(f, f(f"icmp eq i64 {nd}, {rank}"))
    sizes = _field(f, "ptr", array, "array.dims")
    words = element(f, "i64", row, len(ROW))
    with f.loop("0", rank) as axis:
        size, word = _at(f, "i64", sizes, axis), _at(f, "i64", words, axis)
        f.branch(f(f"icmp sge i64 {word}, 0"), "static", "symbolic")
        f.place("static")
        f.branch(f(f"icmp eq i64 {word}, {size}"), "same", "miss")
        f.place("symbolic")
        code = f(f"xor i64 {word}, -1")
        known = element(f, "i64", "%dims", f(f"lshr i64 {code}, 1"))
        f.branch(f(f"trunc i64 {code} to i1"), "bind", "compare")
        f.place("bind")
        f.do(f"store i64 {size}, ptr {known}")
        f.jump("same")
        f.place("compare")
        f.branch(f(f"icmp eq i64 {f(f'load i64, ptr {known}')}, {size}"), "same", "miss")
        f.place("same")


def _copies(table: ImportTable) -> FunctionText:
    """Contiguous copies of the arrays for which ``pointers`` has null; how many could be made."""
    f = _function("i64", "weft_copies", "ptr args", "i64 count", "ptr row", "ptr pointers",
                  "ptr copies", "ptr table")
    with f.carried_loop("0", "%count", 1, [("ptr", "%row"), ("i64", "0")]) as loop:
        row, number = loop.values
        rank, place = _row(f, row, "rank"), element(f, "ptr", "%pointers", loop.index)
        before = f.block
        f.branch(f(f"icmp eq ptr {f(f'load ptr, ptr {place}')}, null"), "copy", "next")
        f.place("copy")
        array = _at(f, "ptr", "%args", loop.index)
        sizes = _field(f, "ptr", array, "array.dims")
        with f.carried_loop("0", rank, 1, [("i64", _row(f, row, "item"))]) as axes:
            axes.next = [f(f"mul i64 {axes.values[0]}, {_at(f, 'i64', sizes, axes.index)}")]
        descr = f(f"load ptr, ptr {element(f, 'i8', '%table', _row(f, row, 'dtype'))}")
        made = f(f"call ptr @weft_new_array(ptr {descr}, i32 {f(f'trunc i64 {rank} to i32')}, "
                 f"ptr {sizes}, i64 {axes.results[0]})")
        f.branch(f(f"icmp eq ptr {made}, null"), "full", "there")
        f.place("full")
        f.ret(f"i64 {number}")
        f.place("there")
        f.do(f"store ptr {made}, ptr {element(f, 'ptr', '%copies', number)}")
        f.do(f"store ptr {_field(f, 'ptr', made, 'array.data')}, ptr {place}")
        status = table.call(f, "i32", "PyArray_CopyInto", ("ptr", made), ("ptr", array))
        more, copied = f(f"add i64 {number}, 1"), f.block
        f.branch(f(f"icmp eq i32 {status}, 0"), "next", "failed")
        f.place("failed")
        table.call(f, "void", "Py_DecRef", ("ptr", made))
        f.ret(f"i64 {number}")
        f.place("next")
        now = f(f"phi i64 [ {number}, %{before} ], [ {more}, %{copied} ]")
        loop.next = [_next(f, row, rank), now]
    f.ret(f"i64 {loop.results[1]}")
    return f


def _read_scalar(
    f: FunctionText, table: ImportTable, kind: str, value: str, type_: str, slot: str
) -> None:
    if kind == "bool":
        true = f(f"icmp eq ptr {value}, {table.load(f, 'True')}")
        false = f(f"icmp eq ptr {value}, {table.load(f, 'False')}")
        _guard(f, f(f"or i1 {true}, {false}"))
        f.do(f"store i8 {f(f'zext i1 {true} to i8')}, ptr {slot}")
        return
    _guard(f, f(f"icmp eq ptr {type_}, {table.load(f, kind)}"))
    if kind == "float":
        number = table.call(f, "double", "PyFloat_AsDouble", ("ptr", value))
        f.do(f"store double {number}, ptr {slot}")
        return
    overflow = f.alloca("i32", align=8)
    args = (("ptr", value), ("ptr", overflow))
    number = table.call(f, "i64", "PyLong_AsLongLongAndOverflow", *args)
    _guard(f, f(f"icmp eq i32 {f(f'load i32, ptr {overflow}')}, 0"))
    f.do(f"store i64 {number}, ptr {slot}")


def _results() -> FunctionText:
    """Allocate ``count`` results by their rows; return how many there was memory for."""
    f = _function("i64", "weft_results", "i64 count", "ptr row", "ptr pointers", "ptr dims",
                  "ptr results", "ptr table")
    shape = f.alloca("i64", MAX_RANK, 8)
    with f.carried_loop("0", "%count", 1, [("ptr", "%row")]) as loop:
        (row,), i = loop.values, loop.index
        rank, words = _row(f, row, "rank"), element(f, "i64", row, len(ROW))
        with f.carried_loop("0", rank, 1, [("i64", _row(f, row, "item"))]) as axes:
            word, axis = _at(f, "i64", words, axes.index), axes.index
            static, before = f.fresh("static"), f.block
            symbolic = f.fresh("symbolic")
            f.branch(f(f"icmp sge i64 {word}, 0"), static, symbolic)
            f.place(symbolic)
            index = f(f"lshr i64 {f(f'xor i64 {word}, -1')}, 1")
            value = _at(f, "i64", "%dims", index)
            f.jump(static)
            f.place(static)
            size = f(f"phi i64 [ {word}, %{before} ], [ {value}, %{symbolic} ]")
            f.do(f"store i64 {size}, ptr {element(f, 'i64', shape, axis)}")
            axes.next = [f(f"mul i64 {axes.values[0]}, {size}")]
        descr = f(f"load ptr, ptr {element(f, 'i8', '%table', _row(f, row, 'dtype'))}")
        made = f(f"call ptr @weft_new_array(ptr {descr}, i32 {f(f'trunc i64 {rank} to i32')}, "
                 f"ptr {shape}, i64 {axes.results[0]})")
        there, none = f.fresh("there"), f.fresh("none")
        f.branch(f(f"icmp eq ptr {made}, null"), none, there)
        f.place(none)
        f.ret(f"i64 {i}")
        f.place(there)
        f.do(f"store ptr {made}, ptr {element(f, 'ptr', '%results', i)}")
        place = element(f, "ptr", "%pointers", i)
        f.do(f"store ptr {_field(f, 'ptr', made, 'array.data')}, ptr {place}")
        loop.next = [_next(f, row, rank)]
    f.ret("i64 %count")
    return f


def _new_array(table: ImportTable) -> FunctionText:
    """A new array, its memory from the pool if it is large.

    NumPy asks the handler of the context for memory and remembers it in the array, so the
    handler is set around this one allocation only.
    """
    f = _function("ptr", "weft_new_array", "ptr descr", "i32 nd", "ptr dims", "i64 size")

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


def _run(table: ImportTable) -> FunctionText:
    """Call the program with its arena; the status is -1, and an error set, without memory."""
    f = _function("i32", "weft_run", "ptr constants", "ptr pointers", "ptr dims", "ptr table")
    static = _header(f, "arena")
    f.branch(f(f"icmp slt i64 {static}, 0"), "ask", "known")
    f.place("ask")
    asked = f(f"call i64 {_header(f, 'arena_of', 'ptr')}(ptr %dims)")
    f.jump("known")
    f.place("known")
    size = f(f"phi i64 [ {static}, %entry ], [ {asked}, %ask ]")
    f.branch(f(f"icmp eq i64 {size}, 0"), "ready", "some")
    f.place("some")
    local = f.alloca("i8", ARENA_BYTES, 64)
    f.branch(f(f"icmp ule i64 {size}, {ARENA_BYTES}"), "ready", "take")
    f.place("take")  # larger ones are kept from call to call
    spare = _slot(f, "spare")
    block = f(f"call ptr @weft_take(i64 {size}, ptr {spare})")
    _guard(f, f(f"icmp ne ptr {block}, null"), "full")
    kept, taken = element(f, "i8", block, 64), f.block
    f.jump("ready")
    f.place("ready")
    arena = f(f"phi ptr [ null, %known ], [ {local}, %some ], [ {kept}, %{taken} ]")
    held = f(f"phi ptr [ null, %known ], [ null, %some ], [ {block}, %{taken} ]")
    status = _call_program(f, table, arena)
    f.branch(f(f"icmp eq ptr {held}, null"), "done", "give")
    f.place("give")
    f.do(f"call void @weft_give(ptr {held}, ptr {_slot(f, 'spare')})")
    f.jump("done")
    f.place("done")
    f.ret(f"i32 {status}")
    f.place("full")
    table.call(f, "ptr", "PyErr_NoMemory")
    f.ret("i32 -1")
    return f


def _call_program(f: FunctionText, table: ImportTable, arena: str) -> str:
    threads = f(f"load i64, ptr {_slot(f, 'threads')}")
    program, before = _header(f, "program", "ptr"), f.block
    control = f.alloca("i64", SIZE // 8, 8)
    steps = f(f"load ptr, ptr {_slot(f, 'host')}")
    for name, value in (("hook", "@weft_look"), ("host", "@weft_host"), ("steps", steps)):
        f.do(f"store ptr {value}, ptr {field(f, name, control)}, align 8")
    release = _flag(f, RELEASE_GIL)
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


def _look(table: ImportTable) -> FunctionText:
    """The hook of a run: 1, and an error set, if a signal's handler raises, or who watches a run
    of this thread (``runtime/looks``). Nobody but the main thread handles signals, so others take
    the GIL only if any run is watched.
    """
    f = _function("i32", "weft_look", "ptr control")
    watched = f(f"load atomic i64, ptr {table.load(f, 'watched')} monotonic, align 8")
    own = table.call(f, "i64", "PyThread_get_thread_ident")
    main = f(f"load i64, ptr {table.load(f, 'main')}, align 8")
    some = f(f"icmp ne i64 {watched}, 0")
    _guard(f, f(f"or i1 {some}, {f(f'icmp eq i64 {own}, {main}')}"), "go")
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


def _host(table: ImportTable) -> FunctionText:
    """Run a host step: Python calls ``steps(number, address of its context)``. What that raises is
    the thread's error from then on, as it would be in a function of CPython's own."""
    f = _function("void", "weft_host", "i64 number", "ptr context", "ptr control")
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


def _release(table: ImportTable) -> FunctionText:
    """Free what a program keeps; for its last caller, or whenever memory is short."""
    f = _function("void", "weft_release", "ptr table", linkage="", attributes=COLD)
    block = f(f"atomicrmw xchg ptr {_slot(f, 'spare')}, ptr null acquire")
    table.call(f, "void", "free", ("ptr", block))
    f.ret()
    return f


def _undo(table: ImportTable) -> FunctionText:
    """Drop ``count`` results; then MemoryError is raised, and all else is NotImplemented."""
    f = _function("ptr", "weft_undo", "ptr results", "i64 count", attributes=COLD)
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
    f = _function("void", "weft_drop", "ptr results", "i64 count", attributes=COLD)
    with f.loop("0", "%count") as i:
        table.call(f, "void", "Py_DecRef", ("ptr", _at(f, "ptr", "%results", i)))
    f.ret()
    return f
