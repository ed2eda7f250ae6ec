"""What the entries of programs and the code that they share know of each other, and of Python.

A program comes with constants (a ``HEADER``, then a ``ROW`` for each argument and result) and with
a table of what it needs of its process, whose first ``SLOTS`` are those here. ``LAYOUT`` is where
fields of CPython's and NumPy's objects are.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..text import FunctionText

DENSE = 0x1 | 0x100  # NumPy's array flags: in C order, aligned
OWN = 0x4            # with memory of its own
WRITEABLE = 0x400

FORMAT = 9  # of header and rows; a program and a support of different formats never meet
# Of a program's constants, eight bytes each. Of the ``dims`` the first are ``symbols``, then those
# that are ``told`` in the middle of a run, then expressions, those that are ``known`` before first.
HEADER = ("inputs", "results", "scalars", "symbols", "told", "known", "dims", "flags", "arena",
          "program", "arena_of", "sizes_of")
ROW = ("kind", "dtype", "twin", "rank", "item", "waits")  # then the dims, see `dim_word`
# What a call hands on to who makes results in its middle: ``call`` of its control block.
CALL = ("constants", "rows", "data", "dims", "results", "table")
KINDS: Mapping[str, int] = MappingProxyType({
    "array": 0, "float": 1, "int": 2, "bool": 3, "complex": 4, "scalar": 5})
SINGLE, RELEASE_GIL = 1, 2  # the header's flags
# Of a program, before its dtypes: "raise" is called with the number of a check that has failed,
# "host" with that of a host step and its context; "loops" are those of NumPy for host steps.
SLOTS = ("weft_entry", "threads", "spare", "raise", "host", "loops")

LAYOUT: Mapping[str, int] = MappingProxyType({
    "object.refs": 0,
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
    "tuple.items": 24,
    "array.strides": 40,
    "array.weak": 72,
})
"""Byte offsets in CPython's and NumPy's structures; the runtime checks them before any call."""


def dim_word(index: int, first: bool) -> int:
    """The word for a symbol or expression in a row, negative: sizes stand for themselves.

    ``first`` says that this dim binds symbol ``index``; all others are compared with it.
    """
    return ~(2 * index + first)


def element(f: FunctionText, type_: str, array: str, index: int | str) -> str:
    """The address of ``array[index]``."""
    return f(f"getelementptr {type_}, ptr {array}, i64 {index}")


def host_function(result: str, name: str, *params: str, linkage: str = "internal",
                  attributes: str = "nounwind") -> FunctionText:
    """A function whose parameters are spelled ``"i64 count"``."""
    pairs = [(type_, param) for type_, param in map(str.split, params)]
    return FunctionText(result, name, pairs, linkage=linkage, attributes=attributes)


def load_at(f: FunctionText, type_: str, array: str, index: int | str) -> str:
    return f(f"load {type_}, ptr {element(f, type_, array, index)}")


def header_word(f: FunctionText, field: str, type_: str = "i64") -> str:
    return load_at(f, type_, "%constants", HEADER.index(field))


def has_flag(f: FunctionText, flag: int) -> str:
    masked = f(f"and i64 {header_word(f, 'flags')}, {flag}")
    return f(f"icmp ne i64 {masked}, 0")


def row_word(f: FunctionText, row: str, field: str) -> str:
    return load_at(f, "i64", row, ROW.index(field))


def next_row(f: FunctionText, row: str, rank: str) -> str:
    return element(f, "i64", row, f(f"add i64 {rank}, {len(ROW)}"))


def type_of(f: FunctionText, value: str) -> str:
    """The class of an object."""
    return python_field(f, "ptr", value, "object.type")


def python_field(f: FunctionText, type_: str, pointer: str, name: str) -> str:
    return f(f"load {type_}, ptr {element(f, 'i8', pointer, LAYOUT[name])}")


def slot_of(f: FunctionText, name: str) -> str:
    """The address of one of a program's first slots."""
    return element(f, "ptr", "%table", 1 + SLOTS.index(name))


def verdict(f: FunctionText) -> None:
    """Return true here, and false where guards lead."""
    f.ret("i1 true")
    f.place("miss")
    f.ret("i1 false")


def guard(f: FunctionText, condition: str, other: str = "miss") -> None:
    """Go on if ``condition`` holds, else jump to ``other``."""
    label = f.fresh("ok")
    f.branch(condition, label, other)
    f.place(label)
