"""The CPython entry point of a compiled program, emitted beside it.

One METH_FASTCALL function for each program, so that a warm call runs no Python code at all:

    check      exact types, dtypes, order, shapes; the symbolic dims are bound on the way
    allocate   results through the NumPy C API (large ones from ``emit_pool``), and the arena
    call       i32 @f(ptr args, ptr dims, ptr arena, i64 threads)
    return     the array or a tuple of them; ``NotImplemented`` for whatever was not expected

``NotImplemented`` means that nothing has happened yet: the Python caller goes its slow path,
which converts or explains. The code holds no address, so an object serves any process: slot 0
of ``@f_python`` points to a manifest of words, ``array.nd=24`` for a number the code relies on
and ``PyTuple_New`` for an address that the runtime puts into the next slot of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .llvm_pool import POOLED_BYTES, Emitted, ImportTable, emit_block
from .llvm_text import FunctionText

Dim = int | str | Callable[[FunctionText, dict[str, str]], str]
"""A size, the name of a symbol, or a function that emits the size from the symbols' values."""

LAYOUT: Mapping[str, int] = MappingProxyType({
    "object.type": 8,
    "array.data": 16,
    "array.nd": 24,
    "array.dims": 32,
    "array.descr": 56,
    "array.flags": 64,
    "descr.byteorder": 26,
    "descr.num": 28,
})
"""Byte offsets in CPython's and NumPy's structures; the runtime checks them before a call."""

ITEM_BYTES: Mapping[str, int] = MappingProxyType({
    "bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "c64": 8, "c128": 16,
})

TYPE_NUMBERS: Mapping[str, tuple[int, ...]] = MappingProxyType({
    "bool": (0,), "i8": (1,), "u8": (2,), "i16": (3,), "u16": (4,), "i32": (5,), "u32": (6,),
    "i64": (7, 9), "u64": (8, 10), "f16": (23,), "f32": (11,), "f64": (12,), "c64": (14,),
    "c128": (15,),
})
"""NumPy's type numbers; C's long and long long are two types of one dtype. bf16 gets its number
when it is registered, so that one is read from the table."""

_SCALARS = {"float": "f64", "int": "i64", "bool": "bool"}
_STACK_ARENA = 64 << 10  # bytes; larger arenas are kept from call to call
_C_ORDER, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400  # NumPy's array flags


@dataclass(frozen=True)
class InputSpec:
    """An argument: "array" of ``dtype`` and ``shape``, or a Python "float", "int" or "bool"."""

    kind: str
    dtype: str
    shape: tuple[Dim, ...] = ()


@dataclass(frozen=True)
class OutputSpec:
    """A result; a ``given`` one is a trailing argument that is written to and not returned."""

    dtype: str
    shape: tuple[Dim, ...]
    given: bool = False


@dataclass(frozen=True)
class EntrySpec:
    """What the entry of program ``name`` checks and makes.

    ``arena`` is a number of bytes, or None to ask ``i64 @{name}_arena(ptr dims)``. With
    ``may_alias`` destinations may overlap inputs (never each other). ``release_gil`` costs some
    40 ns, so leave it off for tiny programs.
    """

    name: str
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    symbols: tuple[str, ...] = ()
    single: bool = False
    arena: int | None = 0
    release_gil: bool = False
    may_alias: bool = False

    def __post_init__(self) -> None:
        returned = sum(not output.given for output in self.outputs)
        if self.single and returned != 1:
            raise ValueError(f"{self.name}: single, but {returned} results are returned")
        for spec in self.inputs:
            if spec.kind != "array" and _SCALARS.get(spec.kind) != spec.dtype:
                raise ValueError(f"{self.name}: no {spec.kind} argument is passed as {spec.dtype}")
        free = set(self.symbols).difference(*(spec.shape for spec in self.inputs))
        if free:
            raise ValueError(f"{self.name}: no input has the dims {', '.join(sorted(free))}")


def emit_entry(spec: EntrySpec) -> Emitted:
    """``@{name}_call``, its table ``@{name}_python`` and ``@{name}_release`` (frees memory)."""
    table = ImportTable(f"{spec.name}_python")
    functions = [_Call(spec, table).write(), _result(spec.name, table)]
    release = FunctionText("void", f"{spec.name}_release", [], attributes="nounwind")
    globals_: tuple[str, ...] = ()
    if _keeps_arena(spec):
        globals_ = (f"@{spec.name}_spare = internal global ptr null",)
        functions += [emit_block(f"{spec.name}_block", table)]
        functions += [_take(spec.name, table), _give(spec.name, table)]
        spare = release(f"atomicrmw xchg ptr @{spec.name}_spare, ptr null acquire")
        table.call(release, "void", "free", ("ptr", spare))
    release.ret()
    words = [f"{key}={value}" for key, value in LAYOUT.items()]
    dtypes = {item.dtype for item in spec.inputs} | {item.dtype for item in spec.outputs}
    words += [f"{dtype}={TYPE_NUMBERS[dtype][0]}" for dtype in sorted(dtypes & TYPE_NUMBERS.keys())]
    exports = (f"{spec.name}_call", table.name, release.name)
    return Emitted((*functions, release), (*globals_, *table.globals_(words)), exports)


def _keeps_arena(spec: EntrySpec) -> bool:
    return spec.arena is None or spec.arena > _STACK_ARENA


class _Call:
    """Writes ``@{name}_call``: every check first, then what must be undone on failure."""

    def __init__(self, spec: EntrySpec, table: ImportTable) -> None:
        self.spec = spec
        self.table = table
        self.f = FunctionText(
            "ptr",
            f"{spec.name}_call",
            [("ptr", "self"), ("ptr", "args"), ("i64", "nargs"), ("ptr", "kwnames")],
            attributes="nounwind",
        )
        self.bound: dict[str, str] = {}
        self.ranges: list[tuple[str, str]] = []  # start and end of each array's memory
        self.pending: list[tuple[Dim, str]] = []  # expressions to compare when all is bound
        self.results: list[str] = []

    def write(self) -> FunctionText:
        f, spec = self.f, self.spec
        given = [output for output in spec.outputs if output.given]
        self.guard(f(f"icmp eq i64 %nargs, {len(spec.inputs) + len(given)}"))
        self.guard(f("icmp eq ptr %kwnames, null"))
        pointers = [self.argument(index, item) for index, item in enumerate(spec.inputs)]
        self.compare_pending()
        inputs = len(self.ranges)
        written = [
            self.array(len(spec.inputs) + index, item.dtype, item.shape, _WRITEABLE)
            for index, item in enumerate(given)
        ]
        self.compare_pending()
        new = [output for output in spec.outputs if not output.given]
        shapes = [[self.dim(dim) for dim in output.shape] for output in new]
        if given:
            self.check_overlap(inputs)
        for output in spec.outputs:
            data = written.pop(0) if output.given else self.allocate(output, shapes.pop(0))
            pointers.append(data)
        status = self.run(pointers)
        self.undo_unless(f(f"icmp eq i32 {status}, 0"))
        self.finish()
        self.write_failure()
        return f

    def guard(self, condition: str) -> None:
        """Go on if ``condition`` holds; else say that this call is not for us."""
        label = self.f.fresh("ok")
        self.f.branch(condition, label, "miss")
        self.f.place(label)

    def undo_unless(self, condition: str) -> None:
        """Like ``guard``, once results exist."""
        label = self.f.fresh("ok")
        self.f.branch(condition, label, f"undo{len(self.results)}")
        self.f.place(label)

    def field(self, type_: str, pointer: str, name: str) -> str:
        address = self.f(f"getelementptr i8, ptr {pointer}, i64 {LAYOUT[name]}")
        return self.f(f"load {type_}, ptr {address}")

    def dim(self, dim: Dim) -> str:
        """The value of a dim; an expression that turns out negative is a miss."""
        if isinstance(dim, int):
            return str(dim)
        if isinstance(dim, str):
            return self.bound[dim]
        value = dim(self.f, dict(self.bound))
        self.guard(self.f(f"icmp sge i64 {value}, 0"))
        return value

    def object(self, index: int) -> str:
        address = self.f(f"getelementptr ptr, ptr %args, i64 {index}")
        return self.f(f"load ptr, ptr {address}")

    def argument(self, index: int, item: InputSpec) -> str:
        """Check argument ``index`` and return the address of its data."""
        f, table = self.f, self.table
        if item.kind == "array":
            return self.array(index, item.dtype, item.shape, 0)
        value, slot = self.object(index), f.alloca("i64", align=8)
        if item.kind == "bool":
            true = f(f"icmp eq ptr {value}, {table.load(f, 'True')}")
            false = f(f"icmp eq ptr {value}, {table.load(f, 'False')}")
            self.guard(f(f"or i1 {true}, {false}"))
            f.do(f"store i8 {f(f'zext i1 {true} to i8')}, ptr {slot}")
            return slot
        type_ = self.field("ptr", value, "object.type")
        self.guard(f(f"icmp eq ptr {type_}, {table.load(f, item.kind)}"))
        if item.kind == "float":
            number = table.call(f, "double", "PyFloat_AsDouble", ("ptr", value))
            f.do(f"store double {number}, ptr {slot}")
        else:
            overflow = f.alloca("i32", align=8)
            number = table.call(
                f, "i64", "PyLong_AsLongLongAndOverflow", ("ptr", value), ("ptr", overflow)
            )
            self.guard(f(f"icmp eq i32 {f(f'load i32, ptr {overflow}')}, 0"))
            f.do(f"store i64 {number}, ptr {slot}")
        return slot

    def array(self, index: int, dtype: str, shape: tuple[Dim, ...], flags: int) -> str:
        """Check an array, bind the symbols it is the first to show, return its data pointer."""
        f, table = self.f, self.table
        array, wanted = self.object(index), flags | _C_ORDER | _ALIGNED
        type_ = self.field("ptr", array, "object.type")
        self.guard(f(f"icmp eq ptr {type_}, {table.load(f, 'ndarray')}"))
        descr = self.field("ptr", array, "array.descr")
        # '>' is the foreign byte order: the runtime admits little-endian machines only
        native = f(f"icmp ne i8 {self.field('i8', descr, 'descr.byteorder')}, {ord('>')}")
        number = self.field("i32", descr, "descr.num")
        if dtype in TYPE_NUMBERS:
            numbers = [str(value) for value in TYPE_NUMBERS[dtype]]
        else:
            numbers = [table.load(f, f"number.{dtype}", "i32")]
        same = self.combine("or", [f(f"icmp eq i32 {number}, {value}") for value in numbers])
        masked = f(f"and i32 {self.field('i32', array, 'array.flags')}, {wanted}")
        dense = f(f"icmp eq i32 {masked}, {wanted}")
        rank = f(f"icmp eq i32 {self.field('i32', array, 'array.nd')}, {len(shape)}")
        self.guard(self.combine("and", [native, same, dense, rank]))
        actual = self.check_shape(array, shape)
        data = self.field("ptr", array, "array.data")
        if any(output.given for output in self.spec.outputs):
            end = f(f"getelementptr i8, ptr {data}, i64 {self.size(dtype, actual)}")
            self.ranges.append((data, end))
        return data

    def check_shape(self, array: str, shape: tuple[Dim, ...]) -> list[str]:
        f = self.f
        if not shape:
            return []
        dims, sizes, matches = self.field("ptr", array, "array.dims"), [], []
        for axis, dim in enumerate(shape):
            size = f(f"load i64, ptr {f(f'getelementptr i64, ptr {dims}, i64 {axis}')}")
            if isinstance(dim, str) and dim not in self.bound:
                self.bound[dim] = size
            elif callable(dim):
                self.pending.append((dim, size))
            else:
                matches.append(f(f"icmp eq i64 {size}, {self.dim(dim)}"))
            sizes.append(str(dim) if isinstance(dim, int) else size)
        if matches:
            self.guard(self.combine("and", matches))
        return sizes

    def compare_pending(self) -> None:
        for dim, size in self.pending:
            self.guard(self.f(f"icmp eq i64 {size}, {self.dim(dim)}"))
        self.pending.clear()

    def combine(self, operation: str, conditions: list[str]) -> str:
        first, *others = conditions
        for other in others:
            first = self.f(f"{operation} i1 {first}, {other}")
        return first

    def size(self, dtype: str, shape: list[str]) -> str:
        """Bytes of a dense array; numbers are multiplied here and not at run time."""
        static = ITEM_BYTES[dtype]
        for dim in shape:
            static *= int(dim) if not dim.startswith("%") else 1
        total = str(static)
        for dim in shape:
            if dim.startswith("%"):
                total = self.f(f"mul i64 {total}, {dim}")
        return total

    def check_overlap(self, inputs: int) -> None:
        """Miss if a destination shares memory with an earlier one or (else allowed) an input.

        Loops over ranges on the stack: unrolled, the pairs of a training step's many
        parameters would make more code than the step.
        """
        f, count = self.f, len(self.ranges)
        starts, ends = f.alloca("ptr", count, 8), f.alloca("ptr", count, 8)
        for index, (start, end) in enumerate(self.ranges):
            f.do(f"store ptr {start}, ptr {f(f'getelementptr ptr, ptr {starts}, i64 {index}')}")
            f.do(f"store ptr {end}, ptr {f(f'getelementptr ptr, ptr {ends}, i64 {index}')}")

        def at(array: str, index: str) -> str:
            return f(f"load ptr, ptr {f(f'getelementptr ptr, ptr {array}, i64 {index}')}")

        with f.loop(str(inputs), str(count)) as i:
            start, end = at(starts, i), at(ends, i)
            with f.loop(str(inputs if self.spec.may_alias else 0), i) as j:
                before = f(f"icmp ule ptr {end}, {at(starts, j)}")
                after = f(f"icmp ule ptr {at(ends, j)}, {start}")
                self.guard(f(f"or i1 {before}, {after}"))

    def allocate(self, output: OutputSpec, shape: list[str]) -> str:
        """A new array; returns its data pointer."""
        f = self.f
        dims = f.alloca("i64", max(1, len(shape)), 8)
        for axis, dim in enumerate(shape):
            f.do(f"store i64 {dim}, ptr {f(f'getelementptr i64, ptr {dims}, i64 {axis}')}")
        descr = self.table.load(f, f"dtype.{output.dtype}")
        size = self.size(output.dtype, shape)
        made = f(
            f"call ptr @{self.spec.name}_result(ptr {descr}, i32 {len(shape)}, ptr {dims}, "
            f"i64 {size})"
        )
        self.undo_unless(f(f"icmp ne ptr {made}, null"))
        self.results.append(made)
        return self.field("ptr", made, "array.data")

    def run(self, pointers: list[str]) -> str:
        """Call the program with its table of pointers, symbols and arena; return the status."""
        f, spec, table = self.f, self.spec, self.table
        args = f.alloca("ptr", max(1, len(pointers)), 8)
        for index, pointer in enumerate(pointers):
            f.do(f"store ptr {pointer}, ptr {f(f'getelementptr ptr, ptr {args}, i64 {index}')}")
        dims = f.alloca("i64", max(1, len(spec.symbols)), 8)
        for index, name in enumerate(spec.symbols):
            slot = f(f"getelementptr i64, ptr {dims}, i64 {index}")
            f.do(f"store i64 {self.bound[name]}, ptr {slot}")
        block, arena = self.arena(dims)
        threads = table.load(f, "threads", "i64")
        state = table.call(f, "ptr", "PyEval_SaveThread") if spec.release_gil else ""
        status = f.call(
            "i32", spec.name, ("ptr", args), ("ptr", dims), ("ptr", arena), ("i64", threads)
        )
        if spec.release_gil:
            table.call(f, "void", "PyEval_RestoreThread", ("ptr", state))
        if block:
            f.do(f"call void @{spec.name}_give(ptr {block})")
        return status

    def arena(self, dims: str) -> tuple[str, str]:
        """The block to give back, if any, and the address of the scratch memory."""
        f, name, arena = self.f, self.spec.name, self.spec.arena
        if arena == 0:
            return "", "null"
        if arena is not None and arena <= _STACK_ARENA:
            return "", f.alloca("i8", arena, 64)
        size = str(arena) if arena is not None else f.call("i64", f"{name}_arena", ("ptr", dims))
        block = f(f"call ptr @{name}_take(i64 {size})")
        fail, ok = f.fresh("full"), f.fresh("ok")
        f.branch(f(f"icmp eq ptr {block}, null"), fail, ok)
        f.place(fail)
        self.table.call(f, "ptr", "PyErr_NoMemory")
        f.jump(f"undo{len(self.results)}")
        f.place(ok)
        return block, f(f"getelementptr i8, ptr {block}, i64 64")

    def finish(self) -> None:
        f, table = self.f, self.table
        if self.spec.single:
            f.ret(f"ptr {self.results[0]}")
            return
        # made after the run: a tuple can start the garbage collector, and that any code
        made = table.call(f, "ptr", "PyTuple_New", ("i64", str(len(self.results))))
        self.undo_unless(f(f"icmp ne ptr {made}, null"))
        for index, result in enumerate(self.results):
            item = (("ptr", made), ("i64", str(index)), ("ptr", result))
            table.call(f, "i32", "PyTuple_SetItem", *item)
        f.ret(f"ptr {made}")

    def write_failure(self) -> None:
        """``undo<n>`` drops n results; then MemoryError is raised and all else is a miss."""
        f, table = self.f, self.table
        for index in reversed(range(len(self.results))):
            f.place(f"undo{index + 1}")
            table.call(f, "void", "Py_DecRef", ("ptr", self.results[index]))
            f.jump(f"undo{index}")
        f.place("undo0")
        f.branch(f(f"icmp eq ptr {table.call(f, 'ptr', 'PyErr_Occurred')}, null"), "miss", "raised")
        f.place("raised")
        kind = table.load(f, "MemoryError")
        memory = table.call(f, "i32", "PyErr_ExceptionMatches", ("ptr", kind))
        f.branch(f(f"icmp ne i32 {memory}, 0"), "raise", "clear")
        f.place("raise")
        f.ret("ptr null")
        f.place("clear")
        table.call(f, "void", "PyErr_Clear")
        f.jump("miss")
        f.place("miss")
        answer = table.load(f, "NotImplemented")
        table.call(f, "void", "Py_IncRef", ("ptr", answer))
        f.ret(f"ptr {answer}")


def _result(name: str, table: ImportTable) -> FunctionText:
    """A new array, its memory from the pool if it is large and the runtime has a pool.

    NumPy asks the handler of the context for memory and remembers it in the array, so the
    handler is set around this one allocation only.
    """
    params = [("ptr", "descr"), ("i32", "nd"), ("ptr", "dims"), ("i64", "size")]
    f = FunctionText(
        "ptr", f"{name}_result", params, linkage="internal", attributes="noinline nounwind"
    )

    def new_array() -> str:
        ndarray = table.load(f, "ndarray")
        args = (("ptr", ndarray), ("ptr", "%descr"), ("i32", "%nd"), ("ptr", "%dims"))
        rest = (("ptr", "null"), ("ptr", "null"), ("i32", "0"), ("ptr", "null"))
        return table.call(f, "ptr", "PyArray_NewFromDescr", *args, *rest)

    table.call(f, "void", "Py_IncRef", ("ptr", "%descr"))  # the call below takes a reference
    pool = table.load(f, "pool")
    large, there = f(f"icmp uge i64 %size, {POOLED_BYTES}"), f(f"icmp ne ptr {pool}, null")
    f.branch(f(f"and i1 {large}, {there}"), "pooled", "plain")
    f.place("plain")
    f.ret(f"ptr {new_array()}")
    f.place("pooled")
    old = table.call(f, "ptr", "PyDataMem_SetHandler", ("ptr", pool))
    f.branch(f(f"icmp eq ptr {old}, null"), "unset", "set")
    f.place("unset")
    table.call(f, "void", "Py_DecRef", ("ptr", "%descr"))
    f.ret("ptr null")
    f.place("set")
    made = new_array()
    ours = table.call(f, "ptr", "PyDataMem_SetHandler", ("ptr", old))
    table.call(f, "void", "Py_DecRef", ("ptr", old))
    f.branch(f(f"icmp eq ptr {ours}, null"), "stuck", "done")
    f.place("stuck")
    table.call(f, "void", "Py_DecRef", ("ptr", made))  # Py_DecRef takes null
    f.ret("ptr null")
    f.place("done")
    table.call(f, "void", "Py_DecRef", ("ptr", ours))
    f.ret(f"ptr {made}")
    return f


def _take(name: str, table: ImportTable) -> FunctionText:
    """The spare block if it is there and large enough, else a new one (null: no memory).

    Whoever finds the spare gone, because a concurrent call has it, makes its own: one atomic
    exchange, no waiting.
    """
    f = FunctionText("ptr", f"{name}_take", [("i64", "size")], linkage="internal")
    block = f(f"atomicrmw xchg ptr @{name}_spare, ptr null acquire")
    f.branch(f(f"icmp eq ptr {block}, null"), "fresh", "sized")
    f.place("sized")
    f.branch(f(f"icmp uge i64 {f(f'load i64, ptr {block}')}, %size"), "keep", "drop")
    f.place("keep")
    f.ret(f"ptr {block}")
    f.place("drop")
    table.call(f, "void", "free", ("ptr", block))
    f.jump("fresh")
    f.place("fresh")
    made = f(f"call ptr @{name}_block(i64 %size)")
    f.ret(f"ptr {made}")
    return f


def _give(name: str, table: ImportTable) -> FunctionText:
    """Make ``block`` the spare one, or keep the larger of two."""
    f = FunctionText("void", f"{name}_give", [("ptr", "block")], linkage="internal")
    size = f("load i64, ptr %block")  # before the exchange: then it may be another call's
    other = f(f"atomicrmw xchg ptr @{name}_spare, ptr %block acq_rel")
    f.branch(f(f"icmp eq ptr {other}, null"), "done", "both")
    f.place("both")
    f.branch(f(f"icmp ugt i64 {f(f'load i64, ptr {other}')}, {size}"), "swap", "drop")
    f.place("swap")
    smaller = f(f"atomicrmw xchg ptr @{name}_spare, ptr {other} acq_rel")
    table.call(f, "void", "free", ("ptr", smaller))
    f.ret()
    f.place("drop")
    table.call(f, "void", "free", ("ptr", other))
    f.ret()
    f.place("done")
    f.ret()
    return f
