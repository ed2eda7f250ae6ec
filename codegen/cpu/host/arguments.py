"""The arguments of a program: whether they are what it takes, where their data lies, and copies of
those that are not dense."""

from __future__ import annotations

from ..text import FunctionText
from .layout import (
    DENSE,
    KINDS,
    LAYOUT,
    ROW,
    element,
    guard,
    host_function,
    load_at,
    next_row,
    python_field,
    row_word,
)
from .pool import ImportTable


def emit_arguments(table: ImportTable) -> FunctionText:
    """Check ``count`` arguments by their rows and note where their data lies: null stands for an
    array that must be copied, and ``strided`` tells how many there are.

    Returns the row after theirs, or null for a miss.
    """
    f = host_function("ptr", "weft_arguments", "ptr args", "i64 count", "ptr row", "ptr pointers",
                      "ptr dims", "ptr slots", "ptr strided", "ptr table")
    f.do("store i64 0, ptr %strided")
    with f.carried_loop("0", "%count", 1, [("ptr", "%row")]) as loop:
        (row,), value = loop.values, load_at(f, "ptr", "%args", loop.index)
        slot = element(f, "i64", "%slots", loop.index)
        type_ = python_field(f, "ptr", value, "object.type")
        rank, place = row_word(f, row, "rank"), element(f, "ptr", "%pointers", loop.index)
        cases = " ".join(f"i64 {KINDS[kind]}, label %{kind}" for kind in KINDS if kind != "array")
        f.do(f"switch i64 {row_word(f, row, 'kind')}, label %array [ {cases} ]")
        f.place("array")
        guard(f, f(f"icmp eq ptr {type_}, {table.load(f, 'ndarray')}"))
        _check_array(f, value, row, rank)
        masked = f(f"and i32 {python_field(f, 'i32', value, 'array.flags')}, {DENSE}")
        f.branch(f(f"icmp eq i32 {masked}, {DENSE}"), "contiguous", "apart")
        f.place("contiguous")
        f.do(f"store ptr {python_field(f, 'ptr', value, 'array.data')}, ptr {place}")
        f.jump("next")
        f.place("apart")
        f.do(f"store ptr null, ptr {place}")
        more = f(f"add i64 {f('load i64, ptr %strided')}, 1")
        f.do(f"store i64 {more}, ptr %strided")
        f.jump("next")
        f.place("scalar")  # its value lies in the object, and stays as it is
        descr = f(f"load ptr, ptr {element(f, 'i8', '%table', row_word(f, row, 'dtype'))}")
        guard(f, f(f"icmp eq ptr {type_}, {python_field(f, 'ptr', descr, 'descr.scalar')}"))
        f.do(f"store ptr {element(f, 'i8', value, LAYOUT['scalar.value'])}, ptr {place}")
        f.jump("next")
        for kind in ("float", "int", "bool"):
            f.place(kind)
            _read_scalar(f, table, kind, value, type_, slot)
            f.do(f"store ptr {slot}, ptr {place}")
            f.jump("next")
        f.place("complex")  # both parts lie in the object, as they do in arrays
        guard(f, f(f"icmp eq ptr {type_}, {table.load(f, 'complex')}"))
        f.do(f"store ptr {element(f, 'i8', value, LAYOUT['complex.value'])}, ptr {place}")
        f.jump("next")
        f.place("next")
        loop.next = [next_row(f, row, rank)]
    f.ret(f"ptr {loop.results[0]}")
    f.place("miss")
    f.ret("ptr null")
    return f


def _check_array(f: FunctionText, array: str, row: str, rank: str) -> None:
    descr = python_field(f, "ptr", array, "array.descr")
    wanted = f(f"load ptr, ptr {element(f, 'i8', '%table', row_word(f, row, 'dtype'))}")
    f.branch(f(f"icmp eq ptr {descr}, {wanted}"), "typed", "alike")
    f.place("alike")  # a dtype object of its own can still be the same dtype
    number = python_field(f, "i32", descr, "descr.num")
    same = f(f"icmp eq i32 {number}, {python_field(f, 'i32', wanted, 'descr.num')}")
    wide = f(f"zext i32 {number} to i64")
    twin = f(f"icmp eq i64 {wide}, {row_word(f, row, 'twin')}")
    # the foreign byte order: the runtime admits little-endian machines only
    native = f(f"icmp ne i8 {python_field(f, 'i8', descr, 'descr.byteorder')}, {ord('>')}")
    f.branch(f(f"and i1 {native}, {f(f'or i1 {same}, {twin}')}"), "typed", "miss")
    f.place("typed")
    nd = f(f"sext i32 {python_field(f, 'i32', array, 'array.nd')} to i64")
    guard(f, f(f"icmp eq i64 {nd}, {rank}"))
    sizes = python_field(f, "ptr", array, "array.dims")
    words = element(f, "i64", row, len(ROW))
    with f.loop("0", rank) as axis:
        size, word = load_at(f, "i64", sizes, axis), load_at(f, "i64", words, axis)
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


def emit_copies(table: ImportTable) -> FunctionText:
    """Contiguous copies of the arrays for which ``pointers`` has null; how many could be made."""
    f = host_function("i64", "weft_copies", "ptr args", "i64 count", "ptr row", "ptr pointers",
                      "ptr copies", "ptr table")
    with f.carried_loop("0", "%count", 1, [("ptr", "%row"), ("i64", "0")]) as loop:
        row, number = loop.values
        rank, place = row_word(f, row, "rank"), element(f, "ptr", "%pointers", loop.index)
        before = f.block
        f.branch(f(f"icmp eq ptr {f(f'load ptr, ptr {place}')}, null"), "copy", "next")
        f.place("copy")
        array = load_at(f, "ptr", "%args", loop.index)
        sizes = python_field(f, "ptr", array, "array.dims")
        with f.carried_loop("0", rank, 1, [("i64", row_word(f, row, "item"))]) as axes:
            axes.next = [f(f"mul i64 {axes.values[0]}, {load_at(f, 'i64', sizes, axes.index)}")]
        descr = f(f"load ptr, ptr {element(f, 'i8', '%table', row_word(f, row, 'dtype'))}")
        made = f(f"call ptr @weft_new_array(ptr {descr}, i32 {f(f'trunc i64 {rank} to i32')}, "
                 f"ptr {sizes}, i64 {axes.results[0]})")
        f.branch(f(f"icmp eq ptr {made}, null"), "full", "there")
        f.place("full")
        f.ret(f"i64 {number}")
        f.place("there")
        f.do(f"store ptr {made}, ptr {element(f, 'ptr', '%copies', number)}")
        f.do(f"store ptr {python_field(f, 'ptr', made, 'array.data')}, ptr {place}")
        status = table.call(f, "i32", "PyArray_CopyInto", ("ptr", made), ("ptr", array))
        more, copied = f(f"add i64 {number}, 1"), f.block
        f.branch(f(f"icmp eq i32 {status}, 0"), "next", "failed")
        f.place("failed")
        table.call(f, "void", "Py_DecRef", ("ptr", made))
        f.ret(f"i64 {number}")
        f.place("next")
        now = f(f"phi i64 [ {number}, %{before} ], [ {more}, %{copied} ]")
        loop.next = [next_row(f, row, rank), now]
    f.ret(f"i64 {loop.results[1]}")
    return f


def _read_scalar(
    f: FunctionText, table: ImportTable, kind: str, value: str, type_: str, slot: str
) -> None:
    if kind == "bool":
        true = f(f"icmp eq ptr {value}, {table.load(f, 'True')}")
        false = f(f"icmp eq ptr {value}, {table.load(f, 'False')}")
        guard(f, f(f"or i1 {true}, {false}"))
        f.do(f"store i8 {f(f'zext i1 {true} to i8')}, ptr {slot}")
        return
    guard(f, f(f"icmp eq ptr {type_}, {table.load(f, kind)}"))
    if kind == "float":
        number = table.call(f, "double", "PyFloat_AsDouble", ("ptr", value))
        f.do(f"store double {number}, ptr {slot}")
        return
    overflow = f.alloca("i32", align=8)
    args = (("ptr", value), ("ptr", overflow))
    number = table.call(f, "i64", "PyLong_AsLongLongAndOverflow", *args)
    guard(f, f(f"icmp eq i32 {f(f'load i32, ptr {overflow}')}, 0"))
    f.do(f"store i64 {number}, ptr {slot}")
