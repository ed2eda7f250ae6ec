"""The interpreter of walks: ``@weft_walk`` takes the arguments of a call apart, runs the program
and puts its results together (``ir/plans/walk`` says what the words mean).

    ptr @weft_walk(ptr words, ptr args, i64 nargs, ptr kwnames)

It answers NotImplemented, before anything has happened, where the call is not for this program.
Variables are read and written under the GIL; the locks of those that are written are taken before
they are read, and none is waited for: a walk that would have to wait is not for this call. Matching
is recursive, as nests are; whoever makes a walk bounds their depth.
"""

from __future__ import annotations

from .....ir.plans.walk import HEADER
from ...text import FunctionText
from ..layout import (
    LAYOUT,
    element,
    guard,
    host_function,
    load_at,
)
from ..memory import leave, memory
from ..pool import ImportTable
from .build import emit_build
from .cells import emit_commit, emit_flat, emit_lend, emit_lock, emit_return, emit_unlock
from .fill import emit_fills
from .guards import emit_guards
from .inout import emit_inout
from .match import emit_bind, emit_equal, emit_match
from .state import STATE, drop_owned


def emit_walk(table: ImportTable) -> tuple[FunctionText, ...]:
    """``@weft_walk`` and its parts."""
    return (_Walk(table).emit(), emit_bind(), emit_match(table), emit_equal(table),
            emit_guards(table), emit_flat(table), emit_lock(table), emit_unlock(table),
            emit_commit(table), emit_lend(table), emit_return(table),
            emit_build(table), *emit_inout(table), *emit_fills(table))


class _Walk:
    """Writes ``@weft_walk``."""

    def __init__(self, table: ImportTable) -> None:
        self.table = table
        self.f = f = host_function("ptr", "weft_walk", "ptr words", "ptr args", "i64 nargs",
                                   "ptr kwnames")
        self.number = {name: load_at(f, "i64", "%words", at) for at, name in enumerate(HEADER)
                       if name != "function"}
        self.function = load_at(f, "ptr", "%words", HEADER.index("function"))
        self.every = f(f"add i64 {self.number['results']}, {self.number['written']}")
        self.at, self.heap = self._memory()
        self.state = f.alloca("i64", len(STATE), 8)
        self.loans = f.alloca("ptr", 1, 8)  # what cells have lent, in their order, or null

    def _memory(self) -> tuple[dict[str, str], str]:
        """Where all that a walk finds has its place, and the block to be freed."""
        f, number = self.f, self.number
        sizes = {name: number[name] for name in (
            "slots", "leaves", "params", "owned", "registers", "results", "written", "owners")}
        sizes |= {"results": self.every, "handed": self.every}
        starts, total = dict[str, str](), "0"
        joined = ("params", "handed")  # in this order: the program gets both
        for name in (*joined, *[name for name in sizes if name not in joined]):
            starts[name] = total
            total = f(f"add i64 {total}, {sizes[name]}")
        block, heap = memory(f, self.table, f(f"shl i64 {total}, 3"))
        return {name: element(f, "ptr", block, starts[name]) for name in sizes}, heap

    def section(self, name: str, skip: int = 0) -> str:
        """Where a part of the words begins."""
        return element(self.f, "i64", "%words", self.f(f"add i64 {self.number[name]}, {skip}"))

    def put(self, name: str, type_: str, value: str) -> None:
        """Note something in the state."""
        f = self.f
        f.do(f"store {type_} {value}, ptr {element(f, 'i64', self.state, STATE.index(name))}")

    def emit(self) -> FunctionText:
        """All of it."""
        for name in ("leaves", "owned", "results", "owners"):
            self.put(name, "ptr", self.at[name])
        for name in ("count", "kept", "given", "noted"):
            self.put(name, "i64", "0")
        self._match()
        taken = self._lock()
        made = self._run()
        answer = self._settle()
        self._ends(taken, made, answer)
        return self.f

    def _match(self) -> None:
        """The arguments and the world are what they are to be."""
        f, at_ = self.f, self.at
        before, counted, bound = f.block, f.fresh("counted"), f.fresh("bound")
        f.branch(f("icmp eq ptr %kwnames, null"), bound, counted)
        f.place(counted)
        size = self.table.call(f, "i64", "PyTuple_Size", ("ptr", "%kwnames"))
        first = element(f, "i8", "%kwnames", LAYOUT["tuple.items"])
        f.jump(bound)
        f.place(bound)
        more = f(f"phi i64 [ 0, %{before} ], [ {size}, %{counted} ]")
        names = f(f"phi ptr [ null, %{before} ], [ {first}, %{counted} ]")
        guard(f, f(f"call i1 @weft_bind(ptr %words, ptr {at_['slots']}, ptr %args, i64 %nargs, "
                   f"ptr {names}, ptr %kwnames, i64 {more})"))
        self.put("code", "ptr", self.section("match"))
        with f.loop("0", self.number["slots"]) as at:
            given = load_at(f, "ptr", at_["slots"], at)
            guard(f, f(f"call i1 @weft_match(ptr {self.state}, ptr {given})"))
        self.put("code", "ptr", self.section("guards"))
        guard(f, f(f"call i1 @weft_guards(ptr {self.state}, ptr {at_['registers']})"))

    def _lock(self) -> str:
        """Take the locks of what is written; how many were taken."""
        f = self.f
        locks = f(f"load i64, ptr {self.section('locks')}")
        taken = f(f"call i64 @weft_lock(ptr {self.section('locks', 1)}, i64 {locks})")
        guard(f, f(f"icmp eq i64 {taken}, {locks}"), "busy")
        return taken

    def _run(self) -> str:
        """Call the program, and note its results; what it gives."""
        f, flat, params = self.f, self.at["params"], self.number["params"]
        f.do(f"store ptr null, ptr {self.loans}")
        self.put("code", "ptr", self.section("sources"))
        guard(f, f(f"call i1 @weft_flat(ptr {self.state}, ptr {flat}, i64 {params})"), "busy")
        guard(f, f(f"call i1 @weft_apart(ptr {self.section('inout')}, ptr {flat}, i64 {params})"),
              "busy")
        self.put("code", "ptr", self.section("fills"))
        guard(f, f(f"call i1 @weft_alone(ptr {self.state})"), "busy")
        keywords = f(f"call ptr @weft_hand(ptr {self.section('inout')}, ptr {flat}, "
                     f"ptr {self.at['handed']}, i64 {self.every}, ptr {self.section('cells')}, "
                     f"i64 {self.number['results']}, ptr {self.loans})")
        made = f(f"call ptr {self.function}(ptr null, ptr {flat}, i64 {params}, ptr {keywords})")
        guard(f, f(f"icmp ne ptr {made}, null"), "raised")
        guard(f, f(f"icmp ne ptr {made}, {self.table.load(f, 'NotImplemented')}"), "unfit")
        f.branch(f(f"icmp ne i64 {self.number['single']}, 0"), "single", "several")
        f.place("single")
        f.do(f"store ptr {made}, ptr {self.at['results']}")
        f.jump("there")
        f.place("several")
        with f.loop("0", self.every) as at:
            item = self.table.call(f, "ptr", "PyTuple_GetItem", ("ptr", made), ("i64", at))
            f.do(f"store ptr {item}, ptr {element(f, 'ptr', self.at['results'], at)}")
        f.jump("there")
        f.place("there")
        return made

    def _settle(self) -> str:
        """Put the answer together, then give variables and arguments their new values; variables
        first where they have lent theirs, which are gone."""
        f, results, written = self.f, self.at["results"], self.number["written"]
        before, first, put = f.block, f.fresh("first"), f.fresh("put")
        f.branch(f(f"icmp eq ptr {f(f'load ptr, ptr {self.loans}')}, null"), put, first)
        f.place(first)
        self._commit()  # which waits for nothing then
        f.jump(put)
        f.place(put)
        done = f(f"phi i1 [ false, %{before} ], [ true, %{first} ]")
        self.put("code", "ptr", self.section("build"))
        answer = f(f"call ptr @weft_build(ptr {self.state})")
        guard(f, f(f"icmp ne ptr {answer}, null"), "lost")
        none = f(f"icmp eq i64 {written}, 0")
        f.branch(f(f"or i1 {done}, {none}"), "settled", "commit")
        f.place("commit")
        guard(f, self._commit(), "uncommitted")
        f.jump("settled")
        f.place("settled")
        guard(f, f(f"call i1 @weft_update(ptr {self.section('inout')}, ptr {self.at['params']}, "
                   f"ptr {results})"), "uncommitted")
        f.jump("done")
        return answer

    def _commit(self) -> str:
        """Give variables their new values; false if an error is set."""
        f = self.f
        new = element(f, "ptr", self.at["results"], self.number["results"])
        done = f(f"call i1 @weft_commit(ptr {self.section('cells')}, "
                 f"ptr {f(f'load ptr, ptr {self.loans}')}, ptr {new}, "
                 f"i64 {self.number['written']}, ptr {self.at['written']})")
        f.do(f"store ptr null, ptr {self.loans}")
        return done

    def _fill(self, answer: str) -> str:
        """Give containers their new contents, which are a part of the answer; the rest of it."""
        f, table = self.f, self.table
        self.put("code", "ptr", self.section("fills"))
        none, some, filled = f.block, f.fresh("some"), f.fresh("filled")
        count = f(f"load i64, ptr {self.section('fills')}")
        f.branch(f(f"icmp eq i64 {count}, 0"), filled, some)
        f.place(some)
        contents = table.call(f, "ptr", "PyTuple_GetItem", ("ptr", answer), ("i64", "1"))
        done = f(f"call i1 @weft_fill(ptr {self.state}, ptr {contents})")
        result = table.call(f, "ptr", "PyTuple_GetItem", ("ptr", answer), ("i64", "0"))
        table.call(f, "void", "Py_IncRef", ("ptr", result))
        table.call(f, "void", "Py_DecRef", ("ptr", answer))
        told = f(f"select i1 {done}, ptr {result}, ptr null")
        f.jump(filled)
        f.place(filled)
        return f(f"phi ptr [ {answer}, %{none} ], [ {told}, %{some} ]")

    def _ends(self, taken: str, made: str, answer: str) -> None:
        """Drop what the walk has, and give the locks back, however it ends."""
        f, table, owned = self.f, self.table, self.at["owned"]

        def unlock() -> None:
            f.do(f"call void @weft_unlock(ptr {self.section('locks', 1)}, i64 {taken})")

        def end(label: str, answer: str, *, drop: bool = False) -> None:
            f.place(label)
            f.do(f"call void @weft_return(ptr {self.section('cells')}, "
                 f"ptr {f(f'load ptr, ptr {self.loans}')}, i64 {self.number['written']})")
            if drop:
                table.call(f, "void", "Py_DecRef", ("ptr", made))
            unlock()
            drop_owned(f, self.state, owned)
            leave(f, table, self.heap, answer)

        f.place("done")
        table.call(f, "void", "Py_DecRef", ("ptr", made))
        unlock()
        told = self._fill(answer)  # which may run code, of what goes: no lock is held
        drop_owned(f, self.state, owned)
        leave(f, table, self.heap, told)
        f.place("uncommitted")
        table.call(f, "void", "Py_DecRef", ("ptr", answer))
        f.jump("lost")
        end("lost", "null", drop=True)
        end("raised", "null")
        end("unfit", made)
        f.place("busy")
        unlock()
        f.jump("miss")
        f.place("miss")
        drop_owned(f, self.state, owned)
        leave(f, table, self.heap, f("call ptr @weft_undo(ptr null, i64 0)"))
        f.place("full")
        table.call(f, "ptr", "PyErr_NoMemory")
        f.ret("ptr null")
