"""What a walk knows while it runs, and how its functions read its words."""

from __future__ import annotations

from collections.abc import Sequence

from ...text import FunctionText
from ..layout import element, load_at
from ..pool import ImportTable

# What a walk knows while it runs, eight bytes each: the next word, what it has found so far.
STATE = ("code", "leaves", "count", "owned", "kept", "results", "given", "owners", "noted")


def place(f: FunctionText, name: str) -> str:
    return element(f, "i64", "%state", STATE.index(name))


def get(f: FunctionText, name: str, type_: str = "ptr") -> str:
    return f(f"load {type_}, ptr {place(f, name)}")


def next_word(f: FunctionText, type_: str = "i64") -> str:
    """The next word, which is passed."""
    code = get(f, "code")
    found = f(f"load {type_}, ptr {code}")
    f.do(f"store ptr {element(f, 'i64', code, 1)}, ptr {place(f, 'code')}")
    return found


def push(f: FunctionText, array: str, count: str, value: str) -> None:
    """Put a value behind those that an array of the state has."""
    at = get(f, count, "i64")
    f.do(f"store ptr {value}, ptr {element(f, 'ptr', get(f, array), at)}")
    f.do(f"store i64 {f(f'add i64 {at}, 1')}, ptr {place(f, count)}")


def switch(f: FunctionText, word: str, cases: Sequence[str], prefix: str) -> None:
    listed = " ".join(f"i64 {at}, label %{prefix}_{name}" for at, name in enumerate(cases))
    f.do(f"switch i64 {word}, label %miss [ {listed} ]")


def slot(f: FunctionText, table: ImportTable, thing: str, name: str) -> str:
    """The address of a slot of one of our objects, whose offset the process knows."""
    offset = f(f"ptrtoint ptr {table.load(f, name)} to i64")
    return element(f, "i8", thing, offset)


def method(
    f: FunctionText, table: ImportTable, thing: str, name: str, *args: str
) -> str:
    """Call a method of an object, whose name the table has."""
    given = f.alloca("ptr", 1 + len(args), 8)
    for at, each in enumerate((thing, *args)):
        f.do(f"store ptr {each}, ptr {element(f, 'ptr', given, at)}")
    return table.call(f, "ptr", "PyObject_VectorcallMethod", ("ptr", table.load(f, name)),
                      ("ptr", given), ("i64", str(1 + len(args))), ("ptr", "null"))


def drop_owned(f: FunctionText, state: str, owned: str) -> None:
    kept = load_at(f, "i64", state, STATE.index("kept"))
    f.do(f"call void @weft_drop(ptr {owned}, i64 {kept})")
