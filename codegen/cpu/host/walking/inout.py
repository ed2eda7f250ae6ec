"""What a call writes to: whether arguments can be written, which others have their memory, and how
they get their new elements.

    weft_apart     all can be written, and share memory with no other argument
    weft_hand      those that the program may write to at once are its results, too; so are values
                   of variables that nobody else has
    weft_update    the others get what the program has made, when it is done
"""

from __future__ import annotations

from .....ir.plans.walk import COPIED, DONATED, HANDED, INOUT, LENT
from ...text import FunctionText
from ..layout import (
    DENSE,
    WRITEABLE,
    element,
    guard,
    host_function,
    load_at,
    python_field,
    type_of,
    verdict,
)
from ..pool import ImportTable


def emit_inout(table: ImportTable) -> tuple[FunctionText, ...]:
    """The functions above."""
    return _extent(), _apart(table), _hand(), _update(table)


def _extent() -> FunctionText:
    """The first byte of an array, and the one behind its last, put into ``ends``."""
    f = host_function("void", "weft_extent", "ptr array", "i64 bytes", "ptr ends")
    data = f(f"ptrtoint ptr {python_field(f, 'ptr', '%array', 'array.data')} to i64")
    rank = f(f"sext i32 {python_field(f, 'i32', '%array', 'array.nd')} to i64")
    sizes = python_field(f, "ptr", "%array", "array.dims")
    strides = python_field(f, "ptr", "%array", "array.strides")
    with f.carried_loop("0", rank, 1, [("i64", data), ("i64", data), ("i64", "%bytes")]) as loop:
        low, high, last = loop.values
        size, stride = (load_at(f, "i64", each, loop.index) for each in (sizes, strides))
        far = f(f"mul i64 {f(f'sub i64 {size}, 1')}, {stride}")
        back = f(f"icmp slt i64 {far}, 0")
        empty = f(f"icmp eq i64 {size}, 0")
        loop.next = [
            f(f"add i64 {low}, {f(f'select i1 {back}, i64 {far}, i64 0')}"),
            f(f"add i64 {high}, {f(f'select i1 {back}, i64 0, i64 {far}')}"),
            f(f"select i1 {empty}, i64 0, i64 {last}")]
    low, high, last = loop.results
    none = f(f"icmp eq i64 {last}, 0")  # of no elements: no byte is its own
    f.do(f"store i64 {low}, ptr %ends")
    end = f(f"select i1 {none}, i64 {low}, i64 {f(f'add i64 {high}, {last}')}")
    f.do(f"store i64 {end}, ptr {element(f, 'i64', '%ends', 1)}")
    f.ret()
    return f


def _apart(table: ImportTable) -> FunctionText:
    """Whether all arrays that are written to can be, and surely share memory with no other."""
    f = host_function("i1", "weft_apart", "ptr inout", "ptr flat", "i64 params")
    count = f("load i64, ptr %inout")
    first = f(f"add i64 {f(f'mul i64 {count}, {INOUT}')}, 1")
    own, ends = f.alloca("i64", 2, 8), f.alloca("i64", 2, 8)

    def bytes_of(param: str) -> str:
        return load_at(f, "i64", "%inout", f(f"add i64 {first}, {param}"))

    with f.loop("0", count) as at:
        here = f(f"add i64 {f(f'mul i64 {at}, {INOUT}')}, 1")
        param, how = (load_at(f, "i64", "%inout", f(f"add i64 {here}, {place}"))
                      for place in (0, 2))
        given, written = f.fresh("given"), f.fresh("written")
        f.branch(f(f"icmp eq i64 {how}, {LENT}"), written, given)
        f.place(given)
        array = load_at(f, "ptr", "%flat", param)
        guard(f, f(f"icmp eq ptr {type_of(f, array)}, {table.load(f, 'ndarray')}"))
        flags = python_field(f, "i32", array, "array.flags")
        guard(f, f(f"icmp ne i32 {f(f'and i32 {flags}, {WRITEABLE}')}, 0"))
        f.do(f"call void @weft_extent(ptr {array}, i64 {bytes_of(param)}, ptr {own})")
        with f.loop("0", "%params") as other:
            size = bytes_of(other)
            alone = f(f"or i1 {f(f'icmp eq i64 {size}, 0')}, {f(f'icmp eq i64 {other}, {param}')}")
            look, on = f.fresh("look"), f.fresh("on")
            f.branch(alone, on, look)
            f.place(look)
            rival = load_at(f, "ptr", "%flat", other)
            guard(f, f(f"icmp eq ptr {type_of(f, rival)}, {table.load(f, 'ndarray')}"))
            f.do(f"call void @weft_extent(ptr {rival}, i64 {size}, ptr {ends})")
            (a, b), (c, d) = ([load_at(f, "i64", each, end) for end in (0, 1)]
                              for each in (own, ends))
            guard(f, f(f"or i1 {f(f'icmp sle i64 {b}, {c}')}, {f(f'icmp sle i64 {d}, {a}')}"))
            f.jump(on)
            f.place(on)
        f.jump(written)
        f.place(written)
    verdict(f)
    return f


def _hand() -> FunctionText:
    """Behind the arguments of the program, note which of them are its results, too; what tells the
    program so in the place of keywords, null if none is. The results that ``cells`` get are the
    last ones, from ``first`` on; ``loans`` is told where those that are lent are noted."""
    f = host_function("ptr", "weft_hand", "ptr inout", "ptr flat", "ptr handed", "i64 results",
                      "ptr cells", "i64 first", "ptr loans")
    count = f("load i64, ptr %inout")
    guard(f, f(f"icmp ne i64 {count}, 0"))
    with f.loop("0", "%results") as at:
        f.do(f"store ptr null, ptr {element(f, 'ptr', '%handed', at)}")
    any_ = f.alloca("ptr", 1, 8)
    f.do(f"store ptr null, ptr {any_}")
    with f.loop("0", count) as at:
        here = f(f"add i64 {f(f'mul i64 {at}, {INOUT}')}, 1")
        param, result, how = (
            load_at(f, "i64", "%inout", f(f"add i64 {here}, {place}")) for place in range(INOUT))
        array = load_at(f, "ptr", "%flat", param)
        flags = f(f"and i32 {python_field(f, 'i32', array, 'array.flags')}, {DENSE}")
        dense = f(f"icmp eq i32 {flags}, {DENSE}")
        own, ask, there = f.fresh("own"), f.fresh("ask"), f.fresh("there")
        f.branch(f(f"icmp eq i64 {how}, {LENT}"), ask, own)
        f.place(ask)
        cell = load_at(f, "ptr", "%cells", f(f"sub i64 {result}, %first"))
        lent = f(f"call i1 @weft_lend(ptr {cell}, ptr {array})")
        with f.when(lent):
            f.do(f"store ptr {element(f, 'ptr', '%handed', '%first')}, ptr %loans")
        last = f.block
        f.jump(there)
        f.place(own)
        may = f(f"and i1 {dense}, {f(f'icmp ne i64 {how}, {COPIED}')}")
        f.jump(there)
        f.place(there)
        with f.when(f(f"phi i1 [ {lent}, %{last} ], [ {may}, %{own} ]")):
            f.do(f"store ptr {array}, ptr {element(f, 'ptr', '%handed', result)}")
            f.do(f"store ptr inttoptr (i64 {HANDED} to ptr), ptr {any_}")
    f.ret(f"ptr {f(f'load ptr, ptr {any_}')}")
    f.place("miss")
    f.ret("ptr null")
    return f


def _update(table: ImportTable) -> FunctionText:
    """Give arguments their new elements; whether that could be done."""
    f = host_function("i1", "weft_update", "ptr inout", "ptr flat", "ptr results")
    with f.loop("0", f("load i64, ptr %inout")) as at:
        here = f(f"add i64 {f(f'mul i64 {at}, {INOUT}')}, 1")
        param, place, how = (
            load_at(f, "i64", "%inout", f(f"add i64 {here}, {word}")) for word in range(INOUT))
        array = load_at(f, "ptr", "%flat", param)
        new = load_at(f, "ptr", "%results", place)
        kept = f(f"icmp ult i64 {how}, {DONATED}")  # an argument that is no donated one
        # Else the program has written there.
        with f.when(f(f"and i1 {kept}, {f(f'icmp ne ptr {new}, {array}')}")):
            status = table.call(f, "i32", "PyArray_CopyInto", ("ptr", array), ("ptr", new))
            guard(f, f(f"icmp eq i32 {status}, 0"))
    verdict(f)
    return f
