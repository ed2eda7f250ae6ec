"""A pool for the memory of large results, as a NumPy data handler (NEP 49), and import tables.

Memory of a megabyte and more often comes fresh from the kernel and goes back at once, and then
its page faults cost more than the loop that fills it. The pool keeps the blocks of dropped
results instead. A block is 64 bytes that begin with its capacity, then the data:

    malloc   the kept block that fits best, at most an eighth too large, else a new one
    free     the newest of at most 64 blocks and 256 MiB; the oldest ones make room

What is here takes part of a microsecond for a megabyte, and is not worth LLVM's optimiser.
State is one lock and the list. A thread that finds the lock held goes to libc instead of
waiting, so that a fork in the middle of anything leaves the child with a working program.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....ir.record import record
from ..text import COLD, FunctionText

POOLED_BYTES = 1 << 20  # smaller results are left to NumPy: malloc reuses their pages
# What is kept at most. A step makes new values for all variables and drops the old ones at once, so
# that the blocks are to be as many as a model's large variables.
_BLOCKS, _BYTES = 64, 256 << 20
_HUGE = 4 << 20  # bytes; from here on huge pages are asked for, as NumPy does
_STATE = ("lock", "count", "bytes", "hits", "misses")  # i64 each, then the kept blocks
_LIST = 8 * len(_STATE)  # byte offset of the kept blocks, oldest first


@record(frozen=True)
class Emitted:
    """Functions and globals to put into one module, and the symbols to export."""

    functions: tuple[FunctionText, ...]
    globals_: tuple[str, ...]
    exports: tuple[str, ...]


class ImportTable:
    """Addresses that emitted code asks for by name, so that it holds none itself.

    Slot 0 points to the manifest, words separated by blanks: ``name=number`` is a fact that the
    code relies on, any other word names the content of the next slot.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.imports: list[str] = []

    def offset(self, name: str) -> int:
        """Where in the table the runtime puts what ``name`` says, in bytes."""
        if name not in self.imports:
            self.imports.append(name)
        return 8 * (1 + self.imports.index(name))

    def load(self, f: FunctionText, name: str) -> str:
        """The content of the slot for ``name``."""
        return f(f"load ptr, ptr getelementptr (i8, ptr @{self.name}, i64 {self.offset(name)})")

    def call(self, f: FunctionText, result: str, name: str, *args: tuple[str, str]) -> str:
        """Call the imported function ``name`` on (type, value) pairs."""
        function = self.load(f, name)
        spelled = ", ".join(f"{type_} {value}" for type_, value in args)
        if result == "void":
            f.do(f"call void {function}({spelled})")
            return ""
        return f(f"call {result} {function}({spelled})")

    def globals_(self, assumed: Iterable[str]) -> tuple[str, str]:
        """The manifest and the table; to be asked for when all code is written."""
        manifest = " ".join((*assumed, *self.imports))
        slots = ", ".join([f"ptr @{self.name}_manifest", *["ptr null"] * len(self.imports)])
        size = len(manifest) + 1
        return (
            f'@{self.name}_manifest = internal constant [{size} x i8] c"{manifest}\\00"',
            f"@{self.name} = global [{1 + len(self.imports)} x ptr] [{slots}]",
        )


def emit_blocks(table: ImportTable) -> tuple[FunctionText, ...]:
    """``ptr @weft_block(i64 size)``, and ``@weft_take``, ``@weft_give`` for a program's arena."""
    return _block(table), _take(table), _give(table)


def _block(table: ImportTable) -> FunctionText:
    """A block of at least ``size`` bytes after its header, or null."""
    f = FunctionText("ptr", "weft_block", [("i64", "size")], linkage="internal", attributes=COLD)
    total = f(f"and i64 {f('add i64 %size, 127')}, -64")
    block = table.call(f, "ptr", "aligned_alloc", ("i64", "64"), ("i64", total))
    f.branch(f(f"icmp eq ptr {block}, null"), "none", "made")
    f.place("made")
    f.do(f"store i64 {f(f'sub i64 {total}, 64')}, ptr {block}")
    madvise = table.load(f, "madvise")  # null where there is none of Linux's kind
    large, there = f(f"icmp uge i64 {total}, {_HUGE}"), f(f"icmp ne ptr {madvise}, null")
    f.branch(f(f"and i1 {large}, {there}"), "huge", "done")
    f.place("huge")
    start = f(f"ptrtoint ptr {block} to i64")
    stop = f(f"and i64 {f(f'add i64 {start}, {total}')}, -4096")
    page = f(f"and i64 {f(f'add i64 {start}, 4095')}, -4096")
    f(f"call i32 {madvise}(i64 {page}, i64 {f(f'sub i64 {stop}, {page}')}, i32 14)")
    f.jump("done")
    f.place("done")
    f.ret(f"ptr {block}")
    f.place("none")
    f.ret("ptr null")
    return f


def _take(table: ImportTable) -> FunctionText:
    """The program's spare block if it is there and large enough, else a new one, or null.

    Whoever finds the spare gone, because a concurrent call has it, makes its own: one atomic
    exchange, no waiting.
    """
    f = FunctionText(
        "ptr", "weft_take", [("i64", "size"), ("ptr", "spare")], linkage="internal", attributes=COLD
    )
    block = f("atomicrmw xchg ptr %spare, ptr null acquire")
    f.branch(f(f"icmp eq ptr {block}, null"), "fresh", "sized")
    f.place("sized")
    f.branch(f(f"icmp uge i64 {f(f'load i64, ptr {block}')}, %size"), "keep", "drop")
    f.place("keep")
    f.ret(f"ptr {block}")
    f.place("drop")
    table.call(f, "void", "free", ("ptr", block))
    f.jump("fresh")
    f.place("fresh")
    f.ret(f"ptr {f('call ptr @weft_block(i64 %size)')}")
    return f


def _give(table: ImportTable) -> FunctionText:
    """Make ``block`` the spare one, or keep the larger of two."""
    f = FunctionText(
        "void", "weft_give", [("ptr", "block"), ("ptr", "spare")], linkage="internal",
        attributes=COLD,
    )
    size = f("load i64, ptr %block")  # before the exchange: then it may be another call's
    other = f("atomicrmw xchg ptr %spare, ptr %block acq_rel")
    f.branch(f(f"icmp eq ptr {other}, null"), "done", "both")
    f.place("both")
    f.branch(f(f"icmp ugt i64 {f(f'load i64, ptr {other}')}, {size}"), "swap", "drop")
    f.place("swap")
    smaller = f(f"atomicrmw xchg ptr %spare, ptr {other} acq_rel")
    table.call(f, "void", "free", ("ptr", smaller))
    f.ret()
    f.place("drop")
    table.call(f, "void", "free", ("ptr", other))
    f.ret()
    f.place("done")
    f.ret()
    return f


def emit_pool(table: ImportTable) -> Emitted:
    """The handler's functions ``@weft_pool_{malloc,calloc,realloc,free}`` and ``_trim``.

    They call ``@weft_block`` (``emit_blocks``), which belongs into the same module.
    """
    functions = (
        _remove(table),
        _malloc(),
        _calloc(table),
        _realloc(table),
        _free(table),
        _trim(table),
    )
    state = f"@weft_pool = global [{len(_STATE) + _BLOCKS} x i64] zeroinitializer"
    public = tuple(f.name for f in functions if "internal" not in f.header)
    return Emitted(functions, (state,), (*public, "weft_pool"))


def _at(offset: int) -> str:
    return f"getelementptr (i8, ptr @weft_pool, i64 {offset})"


def _read(f: FunctionText, name: str) -> str:
    return f(f"load i64, ptr {_at(8 * _STATE.index(name))}")


def _add(f: FunctionText, name: str, amount: str) -> None:
    total = f(f"add i64 {_read(f, name)}, {amount}")
    f.do(f"store i64 {total}, ptr {_at(8 * _STATE.index(name))}")


def _lock(f: FunctionText, held: str, ours: str) -> None:
    """Branch to ``ours`` with the lock taken, or to ``held`` if another thread has it."""
    before = f("atomicrmw xchg ptr @weft_pool, i64 1 acquire")
    f.branch(f(f"icmp eq i64 {before}, 0"), ours, held)


def _unlock(f: FunctionText) -> None:
    f.do("store atomic i64 0, ptr @weft_pool release, align 8")


def _kept(f: FunctionText, index: str) -> str:
    """The address of list entry ``index``."""
    return f(f"getelementptr ptr, ptr {_at(_LIST)}, i64 {index}")


def _remove(table: ImportTable) -> FunctionText:
    """Take entry ``index`` out of the list and return its block; the lock is held."""
    f = FunctionText("ptr", "weft_pool_remove", [("i64", "index")], linkage="internal",
                     attributes=COLD)
    slot = _kept(f, "%index")
    block = f(f"load ptr, ptr {slot}")
    capacity = f(f"load i64, ptr {block}")
    _add(f, "bytes", f(f"sub i64 0, {capacity}"))
    _add(f, "count", "-1")
    later = f(f"sub i64 {_read(f, 'count')}, %index")
    rest, size = f(f"getelementptr ptr, ptr {slot}, i64 1"), f(f"mul i64 {later}, 8")
    table.call(f, "ptr", "memmove", ("ptr", slot), ("ptr", rest), ("i64", size))
    f.ret(f"ptr {block}")
    return f


def _malloc() -> FunctionText:
    params = [("ptr", "context"), ("i64", "size")]
    f = FunctionText("ptr", "weft_pool_malloc", params, attributes=COLD)
    most = f(f"add i64 %size, {f('lshr i64 %size, 3')}")
    f.branch(f(f"icmp uge i64 %size, {POOLED_BYTES}"), "large", "fresh")
    f.place("large")
    _lock(f, "fresh", "search")
    f.place("search")
    with f.carried_loop("0", _read(f, "count"), 1, [("i64", "-1"), ("i64", most)]) as loop:
        best, least = loop.values  # later entries win a tie: their pages are warmer
        capacity = f(f"load i64, ptr {f(f'load ptr, ptr {_kept(f, loop.index)}')}")
        enough, near = f(f"icmp uge i64 {capacity}, %size"), f(f"icmp ule i64 {capacity}, {least}")
        fits = f(f"and i1 {enough}, {near}")
        loop.next = [
            f(f"select i1 {fits}, i64 {loop.index}, i64 {best}"),
            f(f"select i1 {fits}, i64 {capacity}, i64 {least}"),
        ]
    best = loop.results[0]
    f.branch(f(f"icmp slt i64 {best}, 0"), "missing", "found")
    f.place("found")
    block = f(f"call ptr @weft_pool_remove(i64 {best})")
    _add(f, "hits", "1")
    _unlock(f)
    f.ret(f"ptr {f(f'getelementptr i8, ptr {block}, i64 64')}")
    f.place("missing")
    _add(f, "misses", "1")
    _unlock(f)
    f.jump("fresh")
    f.place("fresh")
    made = f("call ptr @weft_block(i64 %size)")
    f.branch(f(f"icmp eq ptr {made}, null"), "none", "made")
    f.place("made")
    f.ret(f"ptr {f(f'getelementptr i8, ptr {made}, i64 64')}")
    f.place("none")
    f.ret("ptr null")
    return f


def _calloc(table: ImportTable) -> FunctionText:
    params = [("ptr", "context"), ("i64", "count"), ("i64", "item")]
    f = FunctionText("ptr", "weft_pool_calloc", params, attributes=COLD)
    f.declare("declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)")
    product = f("call {i64, i1} @llvm.umul.with.overflow.i64(i64 %count, i64 %item)")
    size = f(f"extractvalue {{i64, i1}} {product}, 0")
    f.branch(f(f"extractvalue {{i64, i1}} {product}, 1"), "none", "make")
    f.place("make")
    made = f(f"call ptr @weft_pool_malloc(ptr %context, i64 {size})")
    f.branch(f(f"icmp eq ptr {made}, null"), "none", "clear")
    f.place("clear")
    table.call(f, "ptr", "memset", ("ptr", made), ("i32", "0"), ("i64", size))
    f.ret(f"ptr {made}")
    f.place("none")
    f.ret("ptr null")
    return f


def _realloc(table: ImportTable) -> FunctionText:
    params = [("ptr", "context"), ("ptr", "data"), ("i64", "size")]
    f = FunctionText("ptr", "weft_pool_realloc", params, attributes=COLD)
    made = f("call ptr @weft_pool_malloc(ptr %context, i64 %size)")
    old, new = f("icmp eq ptr %data, null"), f(f"icmp eq ptr {made}, null")
    f.branch(f(f"or i1 {old}, {new}"), "done", "copy")
    f.place("copy")
    capacity = f(f"load i64, ptr {f('getelementptr i8, ptr %data, i64 -64')}")
    smaller = f(f"icmp ult i64 {capacity}, %size")
    size = f(f"select i1 {smaller}, i64 {capacity}, i64 %size")
    table.call(f, "ptr", "memcpy", ("ptr", made), ("ptr", "%data"), ("i64", size))
    f.do(f"call void @weft_pool_free(ptr %context, ptr %data, i64 {capacity})")
    f.jump("done")
    f.place("done")
    f.ret(f"ptr {made}")
    return f


def _free(table: ImportTable) -> FunctionText:
    """Keep the block; the size NumPy passes is not trusted, since arrays change their shapes."""
    params = [("ptr", "context"), ("ptr", "data"), ("i64", "size")]
    f = FunctionText("void", "weft_pool_free", params, attributes=COLD)
    f.branch(f("icmp eq ptr %data, null"), "done", "some")
    f.place("some")
    block = f("getelementptr i8, ptr %data, i64 -64")
    capacity = f(f"load i64, ptr {block}")
    large = f(f"icmp uge i64 {capacity}, {POOLED_BYTES}")
    fits = f(f"icmp ule i64 {capacity}, {_BYTES}")
    f.branch(f(f"and i1 {large}, {fits}"), "keep", "drop")
    f.place("keep")
    _lock(f, "drop", "room")
    f.place("room")  # an empty list has room, so this loop ends
    total = f(f"add i64 {_read(f, 'bytes')}, {capacity}")
    full = f(f"icmp uge i64 {_read(f, 'count')}, {_BLOCKS}")
    f.branch(f(f"or i1 {full}, {f(f'icmp ugt i64 {total}, {_BYTES}')}"), "evict", "push")
    f.place("evict")
    table.call(f, "void", "free", ("ptr", f("call ptr @weft_pool_remove(i64 0)")))
    f.jump("room")
    f.place("push")
    f.do(f"store ptr {block}, ptr {_kept(f, _read(f, 'count'))}")
    _add(f, "count", "1")
    _add(f, "bytes", capacity)
    _unlock(f)
    f.jump("done")
    f.place("drop")
    table.call(f, "void", "free", ("ptr", block))
    f.jump("done")
    f.place("done")
    f.ret()
    return f


def _trim(table: ImportTable) -> FunctionText:
    """Give all kept blocks back to libc."""
    f = FunctionText("void", "weft_pool_trim", [], attributes=COLD)
    _lock(f, "done", "more")
    f.place("more")
    f.branch(f(f"icmp eq i64 {_read(f, 'count')}, 0"), "empty", "drop")
    f.place("drop")
    table.call(f, "void", "free", ("ptr", f("call ptr @weft_pool_remove(i64 0)")))
    f.jump("more")
    f.place("empty")
    _unlock(f)
    f.jump("done")
    f.place("done")
    f.ret()
    return f
