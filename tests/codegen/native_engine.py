"""Compiles hand-written programs and their entries, for the tests of calls from Python."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from typing import Any

import llvmlite.binding as llvm
from support.runs import fail

from weft.codegen.cpu.host.entry import emit_entry
from weft.codegen.cpu.host.pool import Emitted
from weft.codegen.cpu.host.support import emit_support
from weft.codegen.cpu.text import module_text
from weft.ir.indices.index import Dim, symbols_of
from weft.ir.plans.entry import Entry, Input, Output
from weft.ir.plans.plan import MISFIT
from weft.ir.types import parse_dim
from weft.runtime.entry.native import NativeCall, native_call
from weft.runtime.entry.support import Support
from weft.runtime.entry.through_ctypes import CtypesCall

Make = Callable[..., NativeCall | CtypesCall]

MIB = 1 << 20
HEAD = "(ptr %args, ptr %dims, ptr %arena, i64 %threads, ptr %control)"

# y = 2 * x + 1 on one f32[n], n being the first dim
TWICE = f"""
define i32 @f{HEAD} {{
entry:
  %x = load ptr, ptr %args
  %slot = getelementptr ptr, ptr %args, i64 1
  %y = load ptr, ptr %slot
  %n = load i64, ptr %dims
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %following, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %p = getelementptr float, ptr %x, i64 %i
  %q = getelementptr float, ptr %y, i64 %i
  %a = load float, ptr %p
  %b = fmul float %a, 2.0
  %c = fadd float %b, 1.0
  store float %c, ptr %q
  %following = add i64 %i, 1
  br label %head
done:
  ret i32 0
}}"""
NOTHING = f"define i32 @f{HEAD} {{\n  ret i32 0\n}}"
FAILS = f"define i32 @f{HEAD} {{\n  ret i32 7\n}}"
MISFITS = f"define i32 @f{HEAD} {{\n  ret i32 {MISFIT}\n}}"




class Engine:
    """The JIT, with a library for each program, all of one process-wide support."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(opt=1, reloc="pic")
        self.jit = llvm.create_lljit_compiler(machine, use_jit_link=True)
        self.names = (f"library{index}" for index in itertools.count())
        shared = self.link(emit_support())
        self.support = Support(shared.__getitem__, keep=(self.jit, shared))

    def link(self, emitted: Emitted, program: str = "", exports: Iterable[str] = ()) -> Any:
        text = module_text(emitted.functions, emitted.globals_, program)
        for name in re.findall(r"^define \w+ @(\w+)", program, re.MULTILINE):
            text = re.sub(rf"^declare .*@{name}\(.*$", "", text, flags=re.MULTILINE)
        library = llvm.JITLibraryBuilder().add_ir(text).add_current_process()
        for name in (*emitted.exports, *exports):
            library.export_symbol(name)
        return library.link(self.jit, next(self.names))

    def native(self, spec: Entry, program: str, **options: Any) -> NativeCall:
        made = self.maybe_native(spec, program, **options)
        assert made is not None
        return made

    def maybe_native(self, spec: Entry, program: str, **options: Any) -> NativeCall | None:
        library = self.link(emit_entry(spec), program)
        return native_call(
            spec.name, library.__getitem__, self.support, keep=(self.jit, library), fail=fail,
            **options
        )

    def by_ctypes(self, spec: Entry, program: str, **options: Any) -> CtypesCall:
        exports = (spec.name, *([f"{spec.name}_arena"] if spec.arena is None else []))
        library = self.link(emit_entry(spec), program, exports)
        return CtypesCall(spec, library.__getitem__, keep=(self.jit, library), fail=fail,
                          **options)


def dims(shape: Iterable[int | str]) -> tuple[Dim, ...]:
    return tuple(dim if isinstance(dim, int) else parse_dim(dim) for dim in shape)


def array(*shape: int | str, dtype: str = "f32") -> Input:
    return Input("array", dtype, dims(shape))


def out(*shape: int | str, dtype: str = "f32") -> Output:
    return Output(dtype, dims(shape))


def entry(inputs: Iterable[Input], outputs: Iterable[Output], **options: Any) -> Entry:
    inputs = tuple(inputs)
    symbols = dict.fromkeys(
        name for item in inputs for dim in item.shape for name in symbols_of(dim))
    return Entry("f", inputs, tuple(outputs), tuple(symbols), **options)


VECTOR = entry([array("n")], [out("n")], single=True)
