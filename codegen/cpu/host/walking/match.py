"""Whether the arguments of a call are what a walk says, and its leaves."""

from __future__ import annotations

from .....ir.plans.walk import HEADER, MATCH
from ...text import FunctionText
from ..layout import element, guard, host_function, load_at, type_of, verdict
from ..pool import ImportTable
from .state import next_word, push, switch


def emit_bind() -> FunctionText:
    """Note what each slot is given, by position or by name; whether all of it has a slot."""
    f = host_function("i1", "weft_bind", "ptr words", "ptr given", "ptr args", "i64 nargs",
                  "ptr names", "ptr kwnames", "i64 more")
    slots = load_at(f, "i64", "%words", HEADER.index("slots"))
    most = load_at(f, "i64", "%words", HEADER.index("positional"))
    guard(f, f(f"icmp sle i64 %nargs, {most}"))
    with f.loop("0", slots) as at:
        f.do(f"store ptr null, ptr {element(f, 'ptr', '%given', at)}")
    with f.loop("0", "%nargs") as at:
        f.do(f"store ptr {load_at(f, 'ptr', '%args', at)}, ptr {element(f, 'ptr', '%given', at)}")
    own = element(f, "i64", "%words", load_at(f, "i64", "%words", HEADER.index("names")))
    with f.loop("0", "%more") as at:
        name = load_at(f, "ptr", "%names", at)
        place = f.alloca("i64", 1, 8)
        f.do(f"store i64 -1, ptr {place}")
        with f.loop("0", slots) as slot:
            same = f(f"icmp eq ptr {load_at(f, 'ptr', own, slot)}, {name}")
            known = f(f"select i1 {same}, i64 {slot}, i64 {f(f'load i64, ptr {place}')}")
            f.do(f"store i64 {known}, ptr {place}")
        found = f(f"load i64, ptr {place}")
        guard(f, f(f"icmp sge i64 {found}, 0"))
        here = element(f, "ptr", "%given", found)
        guard(f, f(f"icmp eq ptr {f(f'load ptr, ptr {here}')}, null"))  # else it is given twice
        value = load_at(f, "ptr", "%args", f(f"add i64 %nargs, {at}"))
        f.do(f"store ptr {value}, ptr {here}")
    verdict(f)
    return f


def emit_match(table: ImportTable) -> FunctionText:
    """Whether a value is what the next words say; its leaves are noted."""
    f = host_function("i1", "weft_match", "ptr state", "ptr value")
    kind = next_word(f)
    omitted = f(f"icmp eq i64 {kind}, {MATCH['omitted']}")
    there = f("icmp ne ptr %value, null")
    guard(f, f(f"or i1 {there}, {omitted}"))
    switch(f, kind, list(MATCH), "m")
    f.place("m_leaf")
    push(f, "leaves", "count", "%value")
    f.ret("i1 true")
    f.place("m_same")
    f.ret(f"i1 {f('icmp eq ptr %value, ' + next_word(f, 'ptr'))}")
    f.place("m_equal")
    f.ret(f"i1 {f('call i1 @weft_equal(ptr %value, ptr ' + next_word(f, 'ptr') + ')')}")
    f.place("m_omitted")
    default = next_word(f, "ptr")
    f.branch(there, "given", "fits")
    f.place("given")
    f.ret(f"i1 {f(f'call i1 @weft_equal(ptr %value, ptr {default})')}")
    f.place("fits")
    f.ret("i1 true")
    f.place("m_rival")
    guard(f, f(f"xor i1 {f('call i1 @weft_equal(ptr %value, ptr ' + next_word(f, 'ptr') + ')')}, "
               "true"))
    f.ret(f"i1 {f('call i1 @weft_match(ptr %state, ptr %value)')}")
    f.place("m_referent")
    referent = table.call(f, "ptr", "PyObject_CallNoArgs", ("ptr", next_word(f, "ptr")))
    guard(f, f(f"icmp ne ptr {referent}, null"))
    push(f, "owned", "kept", referent)
    guard(f, f(f"icmp eq ptr %value, {referent}"))
    f.ret(f"i1 {f('call i1 @weft_match(ptr %state, ptr %value)')}")
    f.place("m_owner")
    push(f, "owners", "noted", "%value")
    f.ret(f"i1 {f('call i1 @weft_match(ptr %state, ptr %value)')}")
    f.place("m_kind")
    kind = type_of(f, "%value")
    f.ret(f"i1 {f(f'icmp eq ptr {kind}, ' + next_word(f, 'ptr'))}")
    for whole in ("tuple", "list"):
        f.place(f"m_{whole}")
        stem = "Tuple" if whole == "tuple" else "List"
        guard(f, f(f"icmp eq ptr {type_of(f, '%value')}, {next_word(f, 'ptr')}"))
        count = next_word(f)
        size = table.call(f, "i64", f"Py{stem}_Size", ("ptr", "%value"))
        guard(f, f(f"icmp eq i64 {size}, {count}"))
        with f.loop("0", count) as at:
            item = table.call(f, "ptr", f"Py{stem}_GetItem", ("ptr", "%value"), ("i64", at))
            guard(f, f(f"call i1 @weft_match(ptr %state, ptr {item})"))
        f.ret("i1 true")
    f.place("m_dict")
    _match_dict(f, table)
    f.place("m_attributes")
    guard(f, f(f"icmp eq ptr {type_of(f, '%value')}, {next_word(f, 'ptr')}"))
    with f.loop("0", next_word(f)):
        item = table.call(f, "ptr", "PyObject_GetAttr", ("ptr", "%value"),
                          ("ptr", next_word(f, "ptr")))
        guard(f, f(f"icmp ne ptr {item}, null"))
        push(f, "owned", "kept", item)
        guard(f, f(f"call i1 @weft_match(ptr %state, ptr {item})"))
    verdict(f)
    return f


def _match_dict(f: FunctionText, table: ImportTable) -> None:
    count = next_word(f)
    guard(f, f(f"icmp eq ptr {type_of(f, '%value')}, {table.load(f, 'dict')}"))
    size = table.call(f, "i64", "PyDict_Size", ("ptr", "%value"))
    guard(f, f(f"icmp eq i64 {size}, {count}"))
    place, key, item = (f.alloca(type_, 1, 8) for type_ in ("i64", "ptr", "ptr"))
    f.do(f"store i64 0, ptr {place}")
    with f.loop("0", count):
        more = table.call(f, "i32", "PyDict_Next", ("ptr", "%value"), ("ptr", place), ("ptr", key),
                          ("ptr", item))
        guard(f, f(f"icmp ne i32 {more}, 0"))
        found, wanted = f(f"load ptr, ptr {key}"), next_word(f, "ptr")
        same_or_equal(f, found, wanted)
        guard(f, f(f"call i1 @weft_match(ptr %state, ptr {f(f'load ptr, ptr {item}')})"))
    f.ret("i1 true")


def same_or_equal(f: FunctionText, found: str, wanted: str) -> None:
    """Go on if the objects are one, or equal texts or numbers."""
    other, on = f.fresh("other"), f.fresh("on")
    f.branch(f(f"icmp eq ptr {found}, {wanted}"), on, other)
    f.place(other)
    f.branch(f(f"call i1 @weft_equal(ptr {found}, ptr {wanted})"), on, "miss")
    f.place(on)


def emit_equal(table: ImportTable) -> FunctionText:
    """Whether two objects are one, or of one class of numbers or texts and equal; floats are by
    their bits. No code of the user's runs."""
    f = host_function("i1", "weft_equal", "ptr a", "ptr b")
    f.branch(f("icmp eq ptr %a, %b"), "yes", "apart")
    f.place("yes")
    f.ret("i1 true")
    f.place("apart")
    type_ = type_of(f, "%a")
    guard(f, f(f"icmp eq ptr {type_}, {type_of(f, '%b')}"))
    f.branch(f(f"icmp eq ptr {type_}, {table.load(f, 'float')}"), "floats", "others")
    f.place("floats")
    bits = [f(f"bitcast double {table.call(f, 'double', 'PyFloat_AsDouble', ('ptr', each))} to i64")
            for each in ("%a", "%b")]
    f.ret(f"i1 {f(f'icmp eq i64 {bits[0]}, {bits[1]}')}")
    f.place("others")
    plain = [f(f"icmp eq ptr {type_}, {table.load(f, name)}") for name in ("int", "str", "bytes")]
    guard(f, f(f"or i1 {plain[0]}, {f(f'or i1 {plain[1]}, {plain[2]}')}"))
    same = table.call(f, "i32", "PyObject_RichCompareBool", ("ptr", "%a"), ("ptr", "%b"),
                      ("i32", "2"))
    f.ret(f"i1 {f(f'icmp eq i32 {same}, 1')}")
    f.place("miss")
    f.ret("i1 false")
    return f
