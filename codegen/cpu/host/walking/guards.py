"""Whether what a program takes for granted of the world still holds."""

from __future__ import annotations

from collections.abc import Sequence

from .....ir.plans.walk import GUARDS
from ...text import FunctionText
from ..layout import (
    DENSE,
    element,
    guard,
    host_function,
    load_at,
    python_field,
    type_of,
    verdict,
)
from ..pool import ImportTable
from .match import same_or_equal
from .state import next_word, push, switch


def emit_guards(table: ImportTable) -> FunctionText:
    """Whether all guards hold; the state's next word is how many there are."""
    f = host_function("i1", "weft_guards", "ptr state", "ptr registers")

    def register() -> str:
        return load_at(f, "ptr", "%registers", next_word(f))

    def made(target: str, value: str) -> None:
        """A register gets a new object, which is dropped at the end."""
        guard(f, f(f"icmp ne ptr {value}, null"))
        push(f, "owned", "kept", value)
        f.do(f"store ptr {value}, ptr {target}")

    with f.loop("0", next_word(f)):
        switch(f, next_word(f), list(GUARDS), "g")
        f.place("g_base")
        target = element(f, "ptr", "%registers", next_word(f))
        f.do(f"store ptr {next_word(f, 'ptr')}, ptr {target}")
        f.jump("next")
        f.place("g_reference")
        target = element(f, "ptr", "%registers", next_word(f))
        made(target, table.call(f, "ptr", "PyObject_CallNoArgs", ("ptr", next_word(f, "ptr"))))
        f.jump("next")
        for name, function in (("item", "PyObject_GetItem"), ("attribute", "PyObject_GetAttr")):
            f.place(f"g_{name}")
            target = element(f, "ptr", "%registers", next_word(f))
            whole = register()
            key = next_word(f, "ptr")
            made(target, table.call(f, "ptr", function, ("ptr", whole), ("ptr", key)))
            f.jump("next")
        f.place("g_is")
        found = register()
        guard(f, f(f"icmp eq ptr {found}, {next_word(f, 'ptr')}"))
        f.jump("next")
        f.place("g_refers")
        found = register()
        wanted = table.call(f, "ptr", "PyObject_CallNoArgs", ("ptr", next_word(f, "ptr")))
        guard(f, f(f"icmp ne ptr {wanted}, null"))
        push(f, "owned", "kept", wanted)
        guard(f, f(f"icmp ne ptr {wanted}, {table.load(f, 'None')}"))
        guard(f, f(f"icmp eq ptr {found}, {wanted}"))
        f.jump("next")
        f.place("g_class")
        found = register()
        guard(f, f(f"icmp eq ptr {type_of(f, found)}, {next_word(f, 'ptr')}"))
        f.jump("next")
        f.place("g_length")
        size = table.call(f, "i64", "PyObject_Size", ("ptr", register()))
        guard(f, f(f"icmp eq i64 {size}, {next_word(f)}"))
        f.jump("next")
        f.place("g_keys")
        _guard_keys(f, table, register())
        f.jump("next")
        f.place("g_equals")
        found = register()
        same = table.call(f, "i32", "PyObject_RichCompareBool", ("ptr", found),
                          ("ptr", next_word(f, "ptr")), ("i32", "2"))
        guard(f, f(f"icmp eq i32 {same}, 1"))
        f.jump("next")
        f.place("g_alias")
        found = register()
        guard(f, f(f"icmp eq ptr {found}, {register()}"))
        f.jump("next")
        f.place("g_content")
        _guard_content(f, table, register())
        f.jump("next")
        f.place("next")
    verdict(f)
    return f


def _guard_content(f: FunctionText, table: ImportTable, found: str) -> None:
    wanted = next_word(f, "ptr")
    guard(f, f(f"icmp eq ptr {type_of(f, found)}, {table.load(f, 'ndarray')}"))
    flags = f(f"and i32 {python_field(f, 'i32', found, 'array.flags')}, {DENSE}")
    guard(f, f(f"icmp eq i32 {flags}, {DENSE}"))
    for type_, name in (("ptr", "array.descr"), ("i32", "array.nd")):
        same = [python_field(f, type_, each, name) for each in (found, wanted)]
        guard(f, f(f"icmp eq {type_} {same[0]}, {same[1]}"))
    dims = [python_field(f, "ptr", each, "array.dims") for each in (found, wanted)]
    rank = f(f"sext i32 {python_field(f, 'i32', wanted, 'array.nd')} to i64")
    _guard_words(f, "i64", dims, rank)
    data = [python_field(f, "ptr", each, "array.data") for each in (found, wanted)]
    size = next_word(f)
    _guard_words(f, "i64", data, f(f"lshr i64 {size}, 3"))
    whole = f(f"and i64 {size}, -8")
    rest = [element(f, "i8", each, whole) for each in data]
    _guard_words(f, "i8", rest, f(f"and i64 {size}, 7"))


def _guard_words(f: FunctionText, type_: str, sides: Sequence[str], count: str) -> None:
    """So many numbers are the same on both sides."""
    with f.carried_loop("0", count, 1, [(type_, "0")]) as loop:
        one, other = (load_at(f, type_, side, loop.index) for side in sides)
        loop.next = [f(f"or {type_} {loop.values[0]}, {f(f'xor {type_} {one}, {other}')}")]
    guard(f, f(f"icmp eq {type_} {loop.results[0]}, 0"))


def _guard_keys(f: FunctionText, table: ImportTable, found: str) -> None:
    wanted = next_word(f, "ptr")
    guard(f, f(f"icmp eq ptr {type_of(f, found)}, {table.load(f, 'dict')}"))
    count = table.call(f, "i64", "PyTuple_Size", ("ptr", wanted))
    size = table.call(f, "i64", "PyDict_Size", ("ptr", found))
    guard(f, f(f"icmp eq i64 {size}, {count}"))
    place, key, item = (f.alloca(type_, 1, 8) for type_ in ("i64", "ptr", "ptr"))
    f.do(f"store i64 0, ptr {place}")
    with f.loop("0", count) as at:
        table.call(f, "i32", "PyDict_Next", ("ptr", found), ("ptr", place), ("ptr", key),
                   ("ptr", item))
        same_or_equal(f, f(f"load ptr, ptr {key}"),
                       table.call(f, "ptr", "PyTuple_GetItem", ("ptr", wanted), ("i64", at)))
