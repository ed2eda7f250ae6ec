"""Compiles hand-written programs and their entries, for the tests of calls from Python."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from typing import Any

import llvmlite.binding as llvm

from weft.codegen.cpu.host import entry as llvm_entry
from weft.codegen.cpu.host.entry import EntrySpec, InputSpec, OutputSpec, emit_entry
from weft.codegen.cpu.host.pool import Emitted
from weft.codegen.cpu.host.support import emit_support
from weft.codegen.cpu.text import module_text
from weft.runtime.entry.native import (
    Argument,
    CtypesCall,
    Dim,
    NativeCall,
    Result,
    Signature,
    Support,
    native_call,
)

Sizes = Iterable[tuple[llvm_entry.Dim, Dim]]
Make = Callable[..., NativeCall | CtypesCall]

MIB = 1 << 20
HEAD = "(ptr %args, ptr %dims, ptr %arena, i64 %threads)"

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



class Engine:
    """The JIT, with a library for each program, all of one process-wide support."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        self.jit = llvm.create_lljit_compiler(target.create_target_machine(opt=1, reloc="pic"))
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

    def native(self, spec: EntrySpec, program: str, **options: Any) -> NativeCall:
        made = self.maybe_native(spec, program, **options)
        assert made is not None
        return made

    def maybe_native(self, spec: EntrySpec, program: str, **options: Any) -> NativeCall | None:
        library = self.link(emit_entry(spec), program)
        return native_call(
            spec.name, library.__getitem__, self.support, keep=(self.jit, library), **options
        )

    def by_ctypes(
        self, spec: EntrySpec, program: str, sizes: Sizes = (), **options: Any
    ) -> CtypesCall:
        """``sizes`` pairs each emitted expression with the same one in Python."""
        exports = (spec.name, *([f"{spec.name}_arena"] if spec.arena is None else []))
        library = self.link(emit_entry(spec), program, exports)
        inputs = tuple(Argument(item.kind, item.dtype, item.shape) for item in spec.inputs)
        python: dict[Any, Any] = dict(sizes)
        outputs = tuple(
            Result(item.dtype, tuple(python.get(dim, dim) for dim in item.shape))
            for item in spec.outputs
        )
        fields = (spec.symbols, spec.single, spec.arena, spec.release_gil)
        signature = Signature(spec.name, inputs, outputs, *fields)
        return CtypesCall(signature, library.__getitem__, keep=(self.jit, library), **options)


def array(*shape: int | str, dtype: str = "f32") -> InputSpec:
    return InputSpec("array", dtype, shape)


def out(*shape: llvm_entry.Dim, dtype: str = "f32") -> OutputSpec:
    return OutputSpec(dtype, shape)


def entry(
    inputs: Iterable[InputSpec], outputs: Iterable[OutputSpec], **options: Any
) -> EntrySpec:
    inputs = tuple(inputs)
    symbols = dict.fromkeys(d for item in inputs for d in item.shape if isinstance(d, str))
    return EntrySpec("f", inputs, tuple(outputs), tuple(symbols), **options)


VECTOR = entry([array("n")], [out("n")], single=True)
