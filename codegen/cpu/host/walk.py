"""The interpreter of walks: ``@weft_walk`` takes the arguments of a call apart, runs the program
and puts its results together (``ir/plans/walk`` says what the words mean).

    ptr @weft_walk(ptr words, ptr args, i64 nargs, ptr kwnames)

It answers NotImplemented, before anything has happened, where the call is not for this program.
Variables are read and written under the GIL, which it never gives back in between; the locks of
those that are written are taken before they are read, and none is waited for: a walk that would
have to wait is not for this call. Matching is recursive, as nests are; whoever makes a walk bounds
their depth.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.plans.walk import BUILD, GUARDS, HEADER, MATCH, SOURCES
from ..text import COLD, FunctionText
from .inout import emit_inout
from .layout import (
    LAYOUT,
    WRITEABLE,
    element,
    guard,
    host_function,
    load_at,
    type_of,
)
from .memory import leave, memory
from .pool import ImportTable

# What a walk knows while it runs, eight bytes each: the next word, what it has found so far.
_STATE = ("code", "leaves", "count", "owned", "kept", "results", "given")


def emit_walk(table: ImportTable) -> tuple[FunctionText, ...]:
    """``@weft_walk`` and its parts."""
    return (_walk(table), _bind(), _match(table), _equal(table), _guards(table), _flat(table),
            _lock(table), _unlock(table), _commit(table), _build(table), *emit_inout(table))


def _place(f: FunctionText, name: str) -> str:
    return element(f, "i64", "%state", _STATE.index(name))


def _get(f: FunctionText, name: str, type_: str = "ptr") -> str:
    return f(f"load {type_}, ptr {_place(f, name)}")


def _word(f: FunctionText, type_: str = "i64") -> str:
    """The next word, which is passed."""
    code = _get(f, "code")
    found = f(f"load {type_}, ptr {code}")
    f.do(f"store ptr {element(f, 'i64', code, 1)}, ptr {_place(f, 'code')}")
    return found


def _push(f: FunctionText, array: str, count: str, value: str) -> None:
    """Put a value behind those that an array of the state has."""
    at = _get(f, count, "i64")
    f.do(f"store ptr {value}, ptr {element(f, 'ptr', _get(f, array), at)}")
    f.do(f"store i64 {f(f'add i64 {at}, 1')}, ptr {_place(f, count)}")


def _switch(f: FunctionText, word: str, cases: Sequence[str], prefix: str) -> None:
    listed = " ".join(f"i64 {at}, label %{prefix}_{name}" for at, name in enumerate(cases))
    f.do(f"switch i64 {word}, label %miss [ {listed} ]")


def _function(result: str, name: str, *params: str) -> FunctionText:
    return host_function(result, name, *params)


def _bind() -> FunctionText:
    """Note what each slot is given, by position or by name; whether all of it has a slot."""
    f = _function("i1", "weft_bind", "ptr words", "ptr given", "ptr args", "i64 nargs",
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
    f.ret("i1 true")
    f.place("miss")
    f.ret("i1 false")
    return f


def _match(table: ImportTable) -> FunctionText:
    """Whether a value is what the next words say; its leaves are noted."""
    f = _function("i1", "weft_match", "ptr state", "ptr value")
    word = _word(f)
    omitted = f(f"icmp eq i64 {word}, {MATCH['omitted']}")
    there = f("icmp ne ptr %value, null")
    guard(f, f(f"or i1 {there}, {omitted}"))
    _switch(f, word, list(MATCH), "m")
    f.place("m_leaf")
    _push(f, "leaves", "count", "%value")
    f.ret("i1 true")
    f.place("m_same")
    f.ret(f"i1 {f('icmp eq ptr %value, ' + _word(f, 'ptr'))}")
    f.place("m_equal")
    f.ret(f"i1 {f('call i1 @weft_equal(ptr %value, ptr ' + _word(f, 'ptr') + ')')}")
    f.place("m_omitted")
    default = _word(f, "ptr")
    f.branch(there, "given", "fits")
    f.place("given")
    f.ret(f"i1 {f(f'call i1 @weft_equal(ptr %value, ptr {default})')}")
    f.place("fits")
    f.ret("i1 true")
    f.place("m_rival")
    guard(f, f(f"xor i1 {f('call i1 @weft_equal(ptr %value, ptr ' + _word(f, 'ptr') + ')')}, "
               "true"))
    f.ret(f"i1 {f('call i1 @weft_match(ptr %state, ptr %value)')}")
    f.place("m_referent")
    referent = table.call(f, "ptr", "PyObject_CallNoArgs", ("ptr", _word(f, "ptr")))
    guard(f, f(f"icmp ne ptr {referent}, null"))
    _push(f, "owned", "kept", referent)
    f.ret(f"i1 {f(f'icmp eq ptr %value, {referent}')}")
    for kind in ("tuple", "list"):
        f.place(f"m_{kind}")
        stem = "Tuple" if kind == "tuple" else "List"
        guard(f, f(f"icmp eq ptr {type_of(f, '%value')}, {_word(f, 'ptr')}"))
        count = _word(f)
        size = table.call(f, "i64", f"Py{stem}_Size", ("ptr", "%value"))
        guard(f, f(f"icmp eq i64 {size}, {count}"))
        with f.loop("0", count) as at:
            item = table.call(f, "ptr", f"Py{stem}_GetItem", ("ptr", "%value"), ("i64", at))
            guard(f, f(f"call i1 @weft_match(ptr %state, ptr {item})"))
        f.ret("i1 true")
    f.place("m_dict")
    _match_dict(f, table)
    f.place("m_attributes")
    guard(f, f(f"icmp eq ptr {type_of(f, '%value')}, {_word(f, 'ptr')}"))
    with f.loop("0", _word(f)):
        item = table.call(f, "ptr", "PyObject_GetAttr", ("ptr", "%value"),
                          ("ptr", _word(f, "ptr")))
        guard(f, f(f"icmp ne ptr {item}, null"))
        _push(f, "owned", "kept", item)
        guard(f, f(f"call i1 @weft_match(ptr %state, ptr {item})"))
    f.ret("i1 true")
    f.place("miss")
    f.ret("i1 false")
    return f


def _match_dict(f: FunctionText, table: ImportTable) -> None:
    count = _word(f)
    guard(f, f(f"icmp eq ptr {type_of(f, '%value')}, {table.load(f, 'dict')}"))
    size = table.call(f, "i64", "PyDict_Size", ("ptr", "%value"))
    guard(f, f(f"icmp eq i64 {size}, {count}"))
    place, key, item = (f.alloca(type_, 1, 8) for type_ in ("i64", "ptr", "ptr"))
    f.do(f"store i64 0, ptr {place}")
    with f.loop("0", count):
        more = table.call(f, "i32", "PyDict_Next", ("ptr", "%value"), ("ptr", place), ("ptr", key),
                          ("ptr", item))
        guard(f, f(f"icmp ne i32 {more}, 0"))
        found, wanted = f(f"load ptr, ptr {key}"), _word(f, "ptr")
        _same_or_equal(f, found, wanted)
        guard(f, f(f"call i1 @weft_match(ptr %state, ptr {f(f'load ptr, ptr {item}')})"))
    f.ret("i1 true")


def _same_or_equal(f: FunctionText, found: str, wanted: str) -> None:
    """Go on if the objects are one, or equal texts or numbers."""
    other, on = f.fresh("other"), f.fresh("on")
    f.branch(f(f"icmp eq ptr {found}, {wanted}"), on, other)
    f.place(other)
    f.branch(f(f"call i1 @weft_equal(ptr {found}, ptr {wanted})"), on, "miss")
    f.place(on)


def _equal(table: ImportTable) -> FunctionText:
    """Whether two objects are one, or of one class of numbers or texts and equal; floats are by
    their bits. No code of the user's runs."""
    f = _function("i1", "weft_equal", "ptr a", "ptr b")
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


def _guards(table: ImportTable) -> FunctionText:
    """Whether all guards hold; the state's next word is how many there are."""
    f = _function("i1", "weft_guards", "ptr state", "ptr registers")

    def register() -> str:
        return load_at(f, "ptr", "%registers", _word(f))

    def made(target: str, value: str) -> None:
        """A register gets a new object, which is dropped at the end."""
        guard(f, f(f"icmp ne ptr {value}, null"))
        _push(f, "owned", "kept", value)
        f.do(f"store ptr {value}, ptr {target}")

    with f.loop("0", _word(f)):
        _switch(f, _word(f), list(GUARDS), "g")
        f.place("g_base")
        target = element(f, "ptr", "%registers", _word(f))
        f.do(f"store ptr {_word(f, 'ptr')}, ptr {target}")
        f.jump("next")
        f.place("g_reference")
        target = element(f, "ptr", "%registers", _word(f))
        made(target, table.call(f, "ptr", "PyObject_CallNoArgs", ("ptr", _word(f, "ptr"))))
        f.jump("next")
        for name, function in (("item", "PyObject_GetItem"), ("attribute", "PyObject_GetAttr")):
            f.place(f"g_{name}")
            target = element(f, "ptr", "%registers", _word(f))
            whole = register()
            made(target, table.call(f, "ptr", function, ("ptr", whole), ("ptr", _word(f, "ptr"))))
            f.jump("next")
        f.place("g_is")
        found = register()
        guard(f, f(f"icmp eq ptr {found}, {_word(f, 'ptr')}"))
        f.jump("next")
        f.place("g_refers")
        found = register()
        wanted = table.call(f, "ptr", "PyObject_CallNoArgs", ("ptr", _word(f, "ptr")))
        guard(f, f(f"icmp ne ptr {wanted}, null"))
        _push(f, "owned", "kept", wanted)
        guard(f, f(f"icmp ne ptr {wanted}, {table.load(f, 'None')}"))
        guard(f, f(f"icmp eq ptr {found}, {wanted}"))
        f.jump("next")
        f.place("g_class")
        found = register()
        guard(f, f(f"icmp eq ptr {type_of(f, found)}, {_word(f, 'ptr')}"))
        f.jump("next")
        f.place("g_length")
        size = table.call(f, "i64", "PyObject_Size", ("ptr", register()))
        guard(f, f(f"icmp eq i64 {size}, {_word(f)}"))
        f.jump("next")
        f.place("g_keys")
        _guard_keys(f, table, register())
        f.jump("next")
        f.place("g_equals")
        found = register()
        same = table.call(f, "i32", "PyObject_RichCompareBool", ("ptr", found),
                          ("ptr", _word(f, "ptr")), ("i32", "2"))
        guard(f, f(f"icmp eq i32 {same}, 1"))
        f.jump("next")
        f.place("g_alias")
        found = register()
        guard(f, f(f"icmp eq ptr {found}, {register()}"))
        f.jump("next")
        f.place("next")
    f.ret("i1 true")
    f.place("miss")
    f.ret("i1 false")
    return f


def _guard_keys(f: FunctionText, table: ImportTable, found: str) -> None:
    wanted = _word(f, "ptr")
    guard(f, f(f"icmp eq ptr {type_of(f, found)}, {table.load(f, 'dict')}"))
    count = table.call(f, "i64", "PyTuple_Size", ("ptr", wanted))
    size = table.call(f, "i64", "PyDict_Size", ("ptr", found))
    guard(f, f(f"icmp eq i64 {size}, {count}"))
    place, key, item = (f.alloca(type_, 1, 8) for type_ in ("i64", "ptr", "ptr"))
    f.do(f"store i64 0, ptr {place}")
    with f.loop("0", count) as at:
        table.call(f, "i32", "PyDict_Next", ("ptr", found), ("ptr", place), ("ptr", key),
                   ("ptr", item))
        _same_or_equal(f, f(f"load ptr, ptr {key}"),
                       table.call(f, "ptr", "PyTuple_GetItem", ("ptr", wanted), ("i64", at)))


def _flat(table: ImportTable) -> FunctionText:
    """What the program is called with: leaves, arrays that it holds, values of variables."""
    f = _function("void", "weft_flat", "ptr state", "ptr flat", "i64 params")
    with f.loop("0", "%params") as at:
        target = element(f, "ptr", "%flat", at)
        word = _word(f)
        listed = " ".join(f"i64 {number}, label %s_{name}" for name, number in SOURCES.items()
                          if name != "held")
        f.do(f"switch i64 {word}, label %s_held [ {listed} ]")
        f.place("s_leaf")
        f.do(f"store ptr {load_at(f, 'ptr', _get(f, 'leaves'), _word(f))}, ptr {target}")
        f.jump("next")
        f.place("s_held")
        f.do(f"store ptr {_word(f, 'ptr')}, ptr {target}")
        f.jump("next")
        f.place("s_cell")
        value = f(f"load ptr, ptr {_slot(f, table, _word(f, 'ptr'), 'cell.value')}")
        table.call(f, "void", "Py_IncRef", ("ptr", value))  # another thread may replace it
        _push(f, "owned", "kept", value)
        f.do(f"store ptr {value}, ptr {target}")
        f.jump("next")
        f.place("next")
    f.ret()
    return f


def _slot(f: FunctionText, table: ImportTable, thing: str, name: str) -> str:
    """The address of a slot of one of our objects, whose offset the process knows."""
    offset = f(f"ptrtoint ptr {table.load(f, name)} to i64")
    return element(f, "i8", thing, offset)


def _method(
    f: FunctionText, table: ImportTable, thing: str, name: str, *args: str
) -> str:
    """Call a method of an object, whose name the table has."""
    given = f.alloca("ptr", 1 + len(args), 8)
    for at, each in enumerate((thing, *args)):
        f.do(f"store ptr {each}, ptr {element(f, 'ptr', given, at)}")
    return table.call(f, "ptr", "PyObject_VectorcallMethod", ("ptr", table.load(f, name)),
                      ("ptr", given), ("i64", str(1 + len(args))), ("ptr", "null"))


def _lock(table: ImportTable) -> FunctionText:
    """Take the locks of cells, in this order, without waiting; how many could be taken."""
    f = _function("i64", "weft_lock", "ptr cells", "i64 count")
    with f.loop("0", "%count") as at:
        cell = load_at(f, "ptr", "%cells", at)
        lock = f(f"load ptr, ptr {_slot(f, table, cell, 'cell.lock')}")
        got = _method(f, table, lock, "acquire", table.load(f, "False"))
        table.call(f, "void", "Py_DecRef", ("ptr", got))  # which takes null, too
        taken, free = f.fresh("taken"), f.fresh("free")
        f.branch(f(f"icmp eq ptr {got}, {table.load(f, 'True')}"), taken, free)
        f.place(free)
        f.ret(f"i64 {at}")
        f.place(taken)
    f.ret("i64 %count")
    return f


def _unlock(table: ImportTable) -> FunctionText:
    """Give so many locks back; an exception that is set stays."""
    f = _function("void", "weft_unlock", "ptr cells", "i64 count")
    f.branch(f("icmp eq i64 %count, 0"), "none", "some")
    f.place("none")
    f.ret()
    f.place("some")
    kept = [f.alloca("ptr", 1, 8) for _ in range(3)]
    table.call(f, "void", "PyErr_Fetch", *[("ptr", each) for each in kept])
    with f.loop("0", "%count") as at:
        cell = load_at(f, "ptr", "%cells", at)
        lock = f(f"load ptr, ptr {_slot(f, table, cell, 'cell.lock')}")
        done = _method(f, table, lock, "release")
        table.call(f, "void", "Py_DecRef", ("ptr", done))
    table.call(f, "void", "PyErr_Restore", *[("ptr", f(f"load ptr, ptr {each}"))
                                             for each in kept])
    f.ret()
    return f


def _commit(table: ImportTable) -> FunctionText:
    """Give cells new values, which nobody writes to from now on, all at one moment; whether it
    could be done."""
    f = _function("i1", "weft_commit", "ptr cells", "ptr values", "i64 count", "ptr old")
    got = _method(f, table, table.load(f, "commits"), "acquire")
    guard(f, f(f"icmp ne ptr {got}, null"))
    table.call(f, "void", "Py_DecRef", ("ptr", got))
    with f.loop("0", "%count") as at:
        value = load_at(f, "ptr", "%values", at)
        flags = element(f, "i8", value, LAYOUT["array.flags"])
        frozen = f(f"and i32 {f(f'load i32, ptr {flags}')}, {~WRITEABLE}")
        f.do(f"store i32 {frozen}, ptr {flags}")
        table.call(f, "void", "Py_IncRef", ("ptr", value))
        place = _slot(f, table, load_at(f, "ptr", "%cells", at), "cell.value")
        f.do(f"store ptr {f(f'load ptr, ptr {place}')}, ptr {element(f, 'ptr', '%old', at)}")
        f.do(f"store ptr {value}, ptr {place}")
    done = _method(f, table, table.load(f, "commits"), "release")
    table.call(f, "void", "Py_DecRef", ("ptr", done))
    with f.loop("0", "%count") as at:  # whose memory is freed here, under no lock
        table.call(f, "void", "Py_DecRef", ("ptr", load_at(f, "ptr", "%old", at)))
    f.ret("i1 true")
    f.place("miss")
    f.ret("i1 false")
    return f


def _build(table: ImportTable) -> FunctionText:
    """What the next words say, as a new object; null, and an error set, where there is none."""
    f = _function("ptr", "weft_build", "ptr state")
    _switch(f, _word(f), list(BUILD), "b")

    def result() -> str:
        at = _get(f, "given", "i64")
        f.do(f"store i64 {f(f'add i64 {at}, 1')}, ptr {_place(f, 'given')}")
        return load_at(f, "ptr", _get(f, "results"), at)

    f.place("b_result")
    found = result()
    table.call(f, "void", "Py_IncRef", ("ptr", found))
    f.ret(f"ptr {found}")
    f.place("b_number")
    f.ret(f"ptr {_method(f, table, result(), 'item')}")
    f.place("b_whole")
    whole = table.call(f, "ptr", "PyObject_CallOneArg", ("ptr", table.load(f, "asarray")),
                       ("ptr", result()))
    f.ret(f"ptr {whole}")
    f.place("b_given")
    leaf = load_at(f, "ptr", _get(f, "leaves"), _word(f))
    table.call(f, "void", "Py_IncRef", ("ptr", leaf))
    f.ret(f"ptr {leaf}")
    f.place("b_constant")
    constant = _word(f, "ptr")
    table.call(f, "void", "Py_IncRef", ("ptr", constant))
    f.ret(f"ptr {constant}")
    for kind in ("Tuple", "List"):
        f.place(f"b_{kind.lower()}")
        count = _word(f)
        made = table.call(f, "ptr", f"Py{kind}_New", ("i64", count))
        guard(f, f(f"icmp ne ptr {made}, null"))
        with f.loop("0", count) as at:
            item = f("call ptr @weft_build(ptr %state)")
            _or_drop(f, table, item, made)
            table.call(f, "i32", f"Py{kind}_SetItem", ("ptr", made), ("i64", at), ("ptr", item))
        f.ret(f"ptr {made}")
    f.place("b_dict")
    count = _word(f)
    made = table.call(f, "ptr", "PyDict_New")
    guard(f, f(f"icmp ne ptr {made}, null"))
    with f.loop("0", count):
        key, item = _word(f, "ptr"), f("call ptr @weft_build(ptr %state)")
        _or_drop(f, table, item, made)
        table.call(f, "i32", "PyDict_SetItem", ("ptr", made), ("ptr", key), ("ptr", item))
        table.call(f, "void", "Py_DecRef", ("ptr", item))
    f.ret(f"ptr {made}")
    f.place("b_call")
    function, names, count = _word(f, "ptr"), _word(f, "ptr"), _word(f)
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


def _walk(table: ImportTable) -> FunctionText:
    """All of it."""
    f = _function("ptr", "weft_walk", "ptr words", "ptr args", "i64 nargs", "ptr kwnames")
    number = {name: load_at(f, "i64", "%words", at) for at, name in enumerate(HEADER)
              if name != "function"}
    function = load_at(f, "ptr", "%words", HEADER.index("function"))
    every = f(f"add i64 {number['results']}, {number['written']}")
    parts = {name: number[name] for name in (
        "slots", "leaves", "params", "owned", "registers", "results", "written")}
    parts = {**parts, "results": every, "handed": every}
    starts, total = {}, "0"
    joined = ("params", "handed")  # in this order: the program gets both
    for name in (*joined, *[name for name in parts if name not in joined]):
        starts[name] = total
        total = f(f"add i64 {total}, {parts[name]}")
    block, heap = memory(f, table, f(f"shl i64 {total}, 3"))
    given, leaves, flat, owned, registers, results, old, handed = (
        element(f, "ptr", block, starts[name]) for name in parts)

    def section(name: str, skip: int = 0) -> str:
        return element(f, "i64", "%words", f(f"add i64 {number[name]}, {skip}"))

    state = f.alloca("i64", len(_STATE), 8)

    def put(name: str, type_: str, value: str) -> None:
        f.do(f"store {type_} {value}, ptr {element(f, 'i64', state, _STATE.index(name))}")

    for name, value in (("leaves", leaves), ("owned", owned), ("results", results)):
        put(name, "ptr", value)
    for name in ("count", "kept", "given"):
        put(name, "i64", "0")
    before, counted, bound = f.block, f.fresh("counted"), f.fresh("bound")
    f.branch(f("icmp eq ptr %kwnames, null"), bound, counted)
    f.place(counted)
    size = table.call(f, "i64", "PyTuple_Size", ("ptr", "%kwnames"))
    first = element(f, "i8", "%kwnames", LAYOUT["tuple.items"])
    f.jump(bound)
    f.place(bound)
    more = f(f"phi i64 [ 0, %{before} ], [ {size}, %{counted} ]")
    names = f(f"phi ptr [ null, %{before} ], [ {first}, %{counted} ]")
    guard(f, f(f"call i1 @weft_bind(ptr %words, ptr {given}, ptr %args, i64 %nargs, ptr {names}, "
               f"ptr %kwnames, i64 {more})"))
    put("code", "ptr", section("match"))
    with f.loop("0", number["slots"]) as at:
        guard(f, f(f"call i1 @weft_match(ptr {state}, ptr {load_at(f, 'ptr', given, at)})"))
    put("code", "ptr", section("guards"))
    guard(f, f(f"call i1 @weft_guards(ptr {state}, ptr {registers})"))
    locks = f(f"load i64, ptr {section('locks')}")
    taken = f(f"call i64 @weft_lock(ptr {section('locks', 1)}, i64 {locks})")
    held = f(f"icmp eq i64 {taken}, {locks}")
    guard(f, held, "busy")
    put("code", "ptr", section("sources"))
    f.do(f"call void @weft_flat(ptr {state}, ptr {flat}, i64 {number['params']})")
    guard(f, f(f"call i1 @weft_apart(ptr {section('inout')}, ptr {flat}, i64 {number['params']})"),
          "busy")
    keywords = f(f"call ptr @weft_hand(ptr {section('inout')}, ptr {flat}, ptr {handed}, "
                 f"i64 {every})")
    made = f(f"call ptr {function}(ptr null, ptr {flat}, i64 {number['params']}, ptr {keywords})")
    guard(f, f(f"icmp ne ptr {made}, null"), "raised")
    guard(f, f(f"icmp ne ptr {made}, {table.load(f, 'NotImplemented')}"), "unfit")
    f.branch(f(f"icmp ne i64 {number['single']}, 0"), "single", "several")
    f.place("single")
    f.do(f"store ptr {made}, ptr {results}")
    f.jump("there")
    f.place("several")
    with f.loop("0", every) as at:
        item = table.call(f, "ptr", "PyTuple_GetItem", ("ptr", made), ("i64", at))
        f.do(f"store ptr {item}, ptr {element(f, 'ptr', results, at)}")
    f.jump("there")
    f.place("there")
    put("code", "ptr", section("build"))
    answer = f(f"call ptr @weft_build(ptr {state})")
    guard(f, f(f"icmp ne ptr {answer}, null"), "lost")
    f.branch(f(f"icmp eq i64 {number['written']}, 0"), "settled", "commit")
    f.place("commit")
    new = element(f, "ptr", results, number["results"])
    done = f(f"call i1 @weft_commit(ptr {section('cells')}, ptr {new}, i64 {number['written']}, "
             f"ptr {old})")
    guard(f, done, "uncommitted")
    f.jump("settled")
    f.place("settled")
    guard(f, f(f"call i1 @weft_update(ptr {section('inout')}, ptr {leaves}, ptr {results})"),
          "uncommitted")
    f.jump("done")

    def end(label: str, answer: str, *, drop: bool = False) -> None:
        """Drop what the walk has; give the locks back."""
        f.place(label)
        if drop:
            table.call(f, "void", "Py_DecRef", ("ptr", made))
        f.do(f"call void @weft_unlock(ptr {section('locks', 1)}, i64 {taken})")
        _drop_owned(f, state, owned)
        leave(f, table, heap, answer)

    end("done", answer, drop=True)
    f.place("uncommitted")
    table.call(f, "void", "Py_DecRef", ("ptr", answer))
    f.jump("lost")
    end("lost", "null", drop=True)
    end("raised", "null")
    end("unfit", made)
    f.place("busy")
    f.do(f"call void @weft_unlock(ptr {section('locks', 1)}, i64 {taken})")
    f.jump("miss")
    f.place("miss")
    _drop_owned(f, state, owned)
    leave(f, table, heap, f("call ptr @weft_undo(ptr null, i64 0)"))
    f.place("full")
    table.call(f, "ptr", "PyErr_NoMemory")
    f.ret("ptr null")
    return f


def _drop_owned(f: FunctionText, state: str, owned: str) -> None:
    kept = load_at(f, "i64", state, _STATE.index("kept"))
    f.do(f"call void @weft_drop(ptr {owned}, i64 {kept})")


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
    place = _slot(f, table, "%self", "function.walks")
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
