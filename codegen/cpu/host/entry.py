"""What a program's module needs to be called from Python: a stub, constants, a table.

    ptr @f_call(ptr self, ptr args, i64 nargs, ptr kwnames)   a METH_FASTCALL function
    @f_entry     a header, and a row for each argument and result: kind, dtype, rank, dims
    @f_python    the table of what the process provides (``ImportTable``), filled by the runtime

The stub hands all of it to ``weft_entry``, which is compiled once per process (``support``
says what it does). So an entry adds no noticeable time to a compilation, be it for 300 arrays,
and holds no address: a cached object or a shared library serves any process.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....ir.indices.index import Dim, plain_symbol, symbols_of
from ....ir.plans.entry import Entry
from ....ir.types import DTYPES
from ..dims import emit_dim
from ..text import FunctionText
from .layout import (
    FORMAT,
    HEADER,
    KINDS,
    RELEASE_GIL,
    SINGLE,
    SLOTS,
    dim_word,
    element,
)
from .pool import Emitted, ImportTable

_TWINS = {"i64": 9, "u64": 10}  # NumPy's number of C's long long, where long is the dtype


def emit_entry(spec: Entry) -> Emitted:
    """``@{name}_call``, its constants and its table, for the module of the program."""
    name = spec.name
    table = ImportTable(f"{name}_python")
    stub = FunctionText(
        "ptr",
        f"{name}_call",
        [("ptr", "self"), ("ptr", "args"), ("i64", "nargs"), ("ptr", "kwnames")],
        attributes="nounwind",
    )
    entry = table.load(stub, "weft_entry")
    handed = f"ptr %args, i64 %nargs, ptr %kwnames, ptr @{name}_entry, ptr @{name}_python"
    stub.ret(f"ptr {stub(f'tail call ptr {entry}({handed})')}")
    for slot in SLOTS:
        table.offset(slot)
    rows = _Rows(spec, table)
    words = rows.header()
    stub.declare(f"declare i32 @{name}(ptr, ptr, ptr, i64, ptr)")
    if spec.arena is None:
        stub.declare(f"declare i64 @{name}_arena(ptr)")
    functions = [stub] if rows.sizes is None else [stub, rows.sizes]
    constants = f"@{name}_entry = internal constant {{{', '.join(w.split()[0] for w in words)}}}"
    constants += f" {{{', '.join(words)}}}"
    globals_ = (constants, *table.globals_([f"entry={FORMAT}"]))
    return Emitted(tuple(functions), globals_, (stub.name, table.name))


class _Rows:
    """The words of ``@{name}_entry``; rows are those of inputs, then results."""

    def __init__(self, spec: Entry, table: ImportTable) -> None:
        self.spec = spec
        self.table = table
        self.names = (*spec.symbols, *spec.measured)
        self.words: list[int] = []
        self.bound: set[str] = set()
        found = dict.fromkeys(dim for output in spec.outputs for dim in output.shape
                              if not isinstance(dim, int) and plain_symbol(dim) is None)
        late = [dim for dim in found if not symbols_of(dim) <= set(spec.symbols)]
        self.known = len(found) - len(late)
        self.expressions = [*(dim for dim in found if dim not in late), *late]
        for item in spec.inputs:
            self.add(KINDS[item.kind], item.dtype, item.shape)
        for output in spec.outputs:
            self.add(KINDS["array"], output.dtype, output.shape, spec.waits_for(output))
        self.sizes = self.write_sizes() if self.expressions else None

    def add(self, kind: int, dtype: str, shape: Iterable[Dim], waits: int = 0) -> None:
        dims = [self.dim(dim) for dim in shape]
        slot = self.table.offset(f"dtype.{dtype}")
        size = DTYPES[dtype].itemsize
        row = [kind, slot, _TWINS.get(dtype, -1), len(dims), size, waits]
        self.words += row + dims

    def dim(self, dim: Dim) -> int:
        if isinstance(dim, int):
            return dim
        name = plain_symbol(dim)
        if name is not None:
            first = name not in self.bound
            self.bound.add(name)
            return dim_word(self.names.index(name), first)
        return dim_word(len(self.names) + self.expressions.index(dim), False)

    def header(self) -> list[str]:
        spec, name = self.spec, self.spec.name
        numbers = {
            "inputs": len(spec.inputs),
            "results": len(spec.outputs),
            "symbols": len(spec.symbols),
            "told": len(spec.measured),
            "known": len(self.names) + self.known,
            "dims": len(self.names) + len(self.expressions),
            "flags": SINGLE * spec.single | RELEASE_GIL * spec.release_gil,
            "scalars": spec.scalars,
            "arena": -1 if spec.arena is None else spec.arena,
        }
        addresses = {
            "program": f"@{name}",
            "arena_of": f"@{name}_arena" if spec.arena is None else "null",
            "sizes_of": f"@{name}_sizes" if self.sizes else "null",
        }
        return [
            f"i64 {numbers[key]}" if key in numbers else f"ptr {addresses[key]}"
            for key in HEADER
        ] + [f"i64 {word}" for word in self.words]

    def write_sizes(self) -> FunctionText:
        """``void @{name}_sizes(ptr dims)`` puts the expressions' values after the names."""
        f = FunctionText(
            "void", f"{self.spec.name}_sizes", [("ptr", "dims")], linkage="internal"
        )
        values = {
            symbol: f(f"load i64, ptr {element(f, 'i64', '%dims', index)}")
            for index, symbol in enumerate(self.names)
        }
        for index, expression in enumerate(self.expressions, len(self.names)):
            value = emit_dim(f, expression, values)
            f.do(f"store i64 {value}, ptr {element(f, 'i64', '%dims', index)}")
        f.ret()
        return f
