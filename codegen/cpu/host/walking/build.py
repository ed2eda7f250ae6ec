"""How results are put together."""

from __future__ import annotations

from .....ir.plans.walk import BUILD
from ...text import FunctionText
from ..layout import guard, host_function, load_at
from ..pool import ImportTable
from .state import get, method, next_word, place, switch


def emit_build(table: ImportTable) -> FunctionText:
    """What the next words say, as a new object; null, and an error set, where there is none."""
    f = host_function("ptr", "weft_build", "ptr state")
    switch(f, next_word(f), list(BUILD), "b")

    def result() -> str:
        at = get(f, "given", "i64")
        f.do(f"store i64 {f(f'add i64 {at}, 1')}, ptr {place(f, 'given')}")
        return load_at(f, "ptr", get(f, "results"), at)

    f.place("b_result")
    found = result()
    table.call(f, "void", "Py_IncRef", ("ptr", found))
    f.ret(f"ptr {found}")
    f.place("b_number")
    f.ret(f"ptr {method(f, table, result(), 'item')}")
    f.place("b_made")
    function = next_word(f, "ptr")
    made = table.call(f, "ptr", "PyObject_CallOneArg", ("ptr", function), ("ptr", result()))
    f.ret(f"ptr {made}")
    f.place("b_given")
    leaf = load_at(f, "ptr", get(f, "leaves"), next_word(f))
    table.call(f, "void", "Py_IncRef", ("ptr", leaf))
    f.ret(f"ptr {leaf}")
    f.place("b_owner")
    owner = load_at(f, "ptr", get(f, "owners"), next_word(f))
    table.call(f, "void", "Py_IncRef", ("ptr", owner))
    f.ret(f"ptr {owner}")
    f.place("b_constant")
    constant = next_word(f, "ptr")
    table.call(f, "void", "Py_IncRef", ("ptr", constant))
    f.ret(f"ptr {constant}")
    for kind in ("Tuple", "List"):
        f.place(f"b_{kind.lower()}")
        count = next_word(f)
        made = table.call(f, "ptr", f"Py{kind}_New", ("i64", count))
        guard(f, f(f"icmp ne ptr {made}, null"))
        with f.loop("0", count) as at:
            item = f("call ptr @weft_build(ptr %state)")
            _or_drop(f, table, item, made)
            table.call(f, "i32", f"Py{kind}_SetItem", ("ptr", made), ("i64", at), ("ptr", item))
        f.ret(f"ptr {made}")
    f.place("b_dict")
    count = next_word(f)
    made = table.call(f, "ptr", "PyDict_New")
    guard(f, f(f"icmp ne ptr {made}, null"))
    with f.loop("0", count):
        key, item = next_word(f, "ptr"), f("call ptr @weft_build(ptr %state)")
        _or_drop(f, table, item, made)
        table.call(f, "i32", "PyDict_SetItem", ("ptr", made), ("ptr", key), ("ptr", item))
        table.call(f, "void", "Py_DecRef", ("ptr", item))
    f.ret(f"ptr {made}")
    f.place("b_call")
    function, names, count = next_word(f, "ptr"), next_word(f, "ptr"), next_word(f)
    values = table.call(f, "ptr", "PyDict_New")
    guard(f, f(f"icmp ne ptr {values}, null"))
    with f.loop("0", count) as at:
        item = f("call ptr @weft_build(ptr %state)")
        _or_drop(f, table, item, values)
        key = table.call(f, "ptr", "PyTuple_GetItem", ("ptr", names), ("i64", at))
        table.call(f, "i32", "PyDict_SetItem", ("ptr", values), ("ptr", key), ("ptr", item))
        table.call(f, "void", "Py_DecRef", ("ptr", item))
    called = table.call(f, "ptr", "PyObject_Call", ("ptr", function),
                        ("ptr", table.load(f, "empty")), ("ptr", values))
    table.call(f, "void", "Py_DecRef", ("ptr", values))
    f.ret(f"ptr {called}")
    f.place("miss")
    f.ret("ptr null")
    return f


def _or_drop(f: FunctionText, table: ImportTable, item: str, whole: str) -> None:
    """Go on with an item, or give up the whole that it was for."""
    there, gone = f.fresh("there"), f.fresh("gone")
    f.branch(f(f"icmp ne ptr {item}, null"), there, gone)
    f.place(gone)
    table.call(f, "void", "Py_DecRef", ("ptr", whole))
    f.ret("ptr null")
    f.place(there)
