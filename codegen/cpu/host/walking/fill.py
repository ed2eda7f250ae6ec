"""Lists, dicts and objects among the arguments that get other contents.

    weft_alone     none that is filled is given twice
    weft_fill      each gets what was built for it
"""

from __future__ import annotations

from .....ir.plans.walk import ATTRIBUTES, LIST, WHOLE
from ...text import FunctionText
from ..layout import guard, host_function, load_at, verdict
from ..pool import ImportTable
from .state import get, next_word


def emit_fills(table: ImportTable) -> tuple[FunctionText, ...]:
    """The functions above; the state's next word is how many there are."""
    return _alone(), _fill(table)


def _alone() -> FunctionText:
    f = host_function("i1", "weft_alone", "ptr state")
    noted = get(f, "noted", "i64")
    with f.loop("0", next_word(f)):
        number = next_word(f)
        owner = load_at(f, "ptr", get(f, "owners"), number)
        with f.loop("0", noted) as other:
            rival = load_at(f, "ptr", get(f, "owners"), other)
            same = f(f"and i1 {f(f'icmp eq ptr {rival}, {owner}')}, "
                     f"{f(f'icmp ne i64 {other}, {number}')}")
            guard(f, f(f"xor i1 {same}, true"))
        next_word(f)
        next_word(f)
        with f.loop("0", next_word(f)):
            next_word(f)
    verdict(f)
    return f


def _fill(table: ImportTable) -> FunctionText:
    """From a list of contents; false, and an error set, if there is no memory for it."""
    f = host_function("i1", "weft_fill", "ptr state", "ptr contents")
    with f.loop("0", next_word(f)) as at:
        content = table.call(f, "ptr", "PyList_GetItem", ("ptr", "%contents"), ("i64", at))
        owner = load_at(f, "ptr", get(f, "owners"), next_word(f))
        how, name = next_word(f), next_word(f, "ptr")
        items, keys, done = f.fresh("items"), f.fresh("keys"), f.fresh("done")
        f.branch(f(f"icmp eq i64 {how}, {LIST}"), items, keys)
        f.place(items)
        size = table.call(f, "i64", "PyList_Size", ("ptr", owner))
        status = table.call(f, "i32", "PyList_SetSlice", ("ptr", owner), ("i64", "0"),
                            ("i64", size), ("ptr", content))
        guard(f, f(f"icmp eq i32 {status}, 0"))
        next_word(f)  # nothing is removed
        f.jump(done)
        f.place(keys)
        held, plain, asked = f.fresh("held"), f.fresh("plain"), f.fresh("asked")
        f.branch(f(f"icmp eq i64 {how}, {ATTRIBUTES}"), asked, plain)
        f.place(asked)
        own = table.call(f, "ptr", "PyObject_GetAttr", ("ptr", owner), ("ptr", name))
        guard(f, f(f"icmp ne ptr {own}, null"))
        there = f.block
        f.jump(held)
        f.place(plain)
        table.call(f, "void", "Py_IncRef", ("ptr", owner))
        f.jump(held)
        f.place(held)
        target = f(f"phi ptr [ {own}, %{there} ], [ {owner}, %{plain} ]")
        with f.when(f(f"icmp eq i64 {how}, {WHOLE}")):
            table.call(f, "void", "PyDict_Clear", ("ptr", target))
        with f.loop("0", next_word(f)):
            table.call(f, "i32", "PyDict_DelItem", ("ptr", target), ("ptr", next_word(f, "ptr")))
        status = table.call(f, "i32", "PyDict_Update", ("ptr", target), ("ptr", content))
        table.call(f, "void", "Py_DecRef", ("ptr", target))
        guard(f, f(f"icmp eq i32 {status}, 0"))
        f.jump(done)
        f.place(done)
    verdict(f)
    return f
