"""LLVM IR text to code in this process, or to an object file; the only user of llvmlite.

One ``Jit`` per target serves the process. What all programs call is in ``codegen/shared`` and
stays: workers and arrays outlive programs; so do functions that sort, once a program calls them. A
program's code is a ``Library`` of its own, which its owner unloads when nothing can call it any
more.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any

from ...ir.diagnose import error
from ...ir.forks import LOADING, held
from ...ir.machine import BASELINE, Machine
from ...ir.record import record, replace
from .. import elf
from ..cache import cache as object_cache
from ..cache import key_of
from ..library import Library
from ..shared import SHARED, SUPPORT, WORKERS
from .caches import caches_of, measured_caches
from .cpu_check import emit_cpu_words
from .host.support import emit_support
from .host.threads import pool_parts
from .processors import FEATURES, NATIVE, PORTABLE, features_of, listed
from .sorts.sorter import SORTS
from .text import SERIAL, module_text

_COUNTER = itertools.count()

# What LLVM keeps of an unloaded library, 9 KB and a place in a list that it searches, goes with
# its LLJIT only; to make one takes as long as to link three libraries.
_LIBRARIES = 16


@cache
def _llvm() -> Any:
    """llvmlite's binding, imported on first use: it takes longer to load than NumPy."""
    with LOADING:
        import llvmlite.binding as llvm

        # It lets one thread at a time into LLVM, whose own locks are free while it has this one.
        held(lambda: (llvm.ffi.lib._lock._lock,))
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        llvm.initialize_native_asmparser()  # for the inline assembly of artifacts
        # Loops that sum in order have the rest of their rounds in vectors.
        llvm.set_option("weft", "-force-ordered-reductions=true")
    return llvm


@cache
def cpu_target(name: str | None = None) -> Machine:
    """The target of a CPU name (``x86-64-v3``, ``znver4``); None or "native": this machine, or the
    CPU that ``WEFT_CPU`` says to take it for. Code for any may be made here, and looked at; it is
    ``Jit`` that asks whether this machine can run it.

    Raises W402 for names that there are not, and for CPUs without fused multiply-add, which every
    result relies on.
    """
    if name is None or name == NATIVE:
        return _native()
    return _target(name, PORTABLE, features_of(name))


@cache
def _native() -> Machine:
    llvm, taken_for = _llvm(), os.environ.get("WEFT_CPU")
    if taken_for and taken_for != NATIVE:
        name, base = taken_for, PORTABLE
        target = _target(name, base, features_of(name, "WEFT_CPU"))
        missing = _lacking(target, _found())
        if missing:
            raise error("W402", f"WEFT_CPU={name!r} has {listed(missing)}, which this machine "
                                "lacks", hint="set WEFT_CPU to an older CPU, or not at all")
        return target
    name = llvm.get_host_cpu_name()
    if PORTABLE == "generic":
        return _with_measured(_target(name, name, frozenset(_found())))
    here = frozenset(_found() & FEATURES.keys())
    if not here >= {"avx2", "fma"}:
        raise error("W402", f"this machine ({name}) has no AVX2 with fused multiply-add, which "
                            "every program needs",
                    hint="run it on a newer one: Intel since Haswell, AMD since Zen")
    return _with_measured(_target(name, name, here))


def _with_measured(target: Machine) -> Machine:
    first, second = measured_caches((target.l1, target.l2))
    return replace(target, l1=first, l2=second)


def _found() -> frozenset[str]:
    """What LLVM finds that CPU and system can do here."""
    return frozenset(key for key, on in _llvm().get_host_cpu_features().items() if on)


def _target(name: str, base: str, has: frozenset[str]) -> Machine:
    """The target of a CPU that can do what is in ``has``, and nothing else that LLVM knows."""
    llvm = _llvm()
    triple = llvm.get_process_triple()
    if triple.startswith("aarch64"):
        features = ",".join(f"+{key}" for key in sorted(has))
        return Machine("cpu", name, triple, features, 128, 32,
                       *caches_of(name, (64 << 10, 1 << 20)), base=base)
    lacks = sorted(llvm.get_host_cpu_features().keys() - has - BASELINE)
    # What is switched off takes with it what builds on it, so what is on comes last.
    features = ",".join([*(f"-{key}" for key in lacks), *(f"+{key}" for key in sorted(has)),
                         "-idivq-to-divl"])  # emitters have a way of their own
    if has >= {"avx512f", "avx512vl"}:
        # Some tunings split 512-bit vectors; explicit widths are meant as they are written.
        features += ",-prefer-256-bit"
        return Machine("cpu", name, triple, features, 512, 32,
                       *caches_of(name, (32 << 10, 1 << 20)), mask_registers=True, base=base)
    return Machine("cpu", name, triple, features, 256, 16,
                   *caches_of(name, (32 << 10, 512 << 10)), base=base)


def lacking(target: Machine) -> list[str]:
    """What the code for ``target`` may use and this machine, or that which it is taken for, has
    not."""
    return _lacking(target, _native().instructions)


def _lacking(target: Machine, has: frozenset[str]) -> list[str]:
    return sorted(target.instructions - has)


@record(frozen=True)
class Code:
    """Machine code of one module: its object file."""

    object: bytes


@cache
def _machine(target: Machine, opt: int) -> Any:
    llvm = _llvm()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.base or target.name, features=target.features, opt=min(opt, 2),
        reloc="pic", codemodel="small")


def _optimise(module: Any, machine: Any, opt: int, serial: bool) -> None:
    """Run LLVM's passes; 1.5 KB of a builder stay, which llvmlite cannot free."""
    llvm = _llvm()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    # Vectors are written by hand: the vectorisers would only cost compile time. Rounds that go on
    # with what the one before has left are written one by one; some of their work is not serial.
    options.loop_vectorization, options.slp_vectorization = serial, False
    options.loop_unrolling = False
    # A builder is good for one run: each one leaves hooks in it that end with the run.
    builder = llvm.create_pass_builder(machine, options)
    if serial or opt >= 3:
        passes = builder.getModulePassManager()
    else:
        # What is emitted is already clean: the standard pipeline takes ten times as long as
        # these and made no measured kernel faster; global value numbering found 1 % to remove.
        passes = llvm.create_new_module_pass_manager()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    # ModulePassManager inherits the _dispose of ObjectRef, which does nothing, before this one.
    llvm.newpassmanagers.NewPassManager._dispose(passes)
    passes.detach()


Taken = Callable[[str], AbstractContextManager[None]]
"""What is around each step, which it is told the name of."""


def _plainly(step: str) -> AbstractContextManager[None]:
    return nullcontext()


def _optimised(text: str, target: Machine, opt: int, taken: Taken = _plainly,
               plain: bool = False) -> tuple[Any, Any]:
    with taken("parse"):
        # In a context of its own: the global one would keep every constant for ever.
        module = _llvm().parse_assembly(text, context=_llvm().create_context())
        machine = _machine(target, opt)
        module.data_layout = str(machine.target_data)
    with taken("optimise"):
        if opt and not plain:
            _optimise(module, machine, opt, SERIAL in text)
    return module, machine


def compile_object(text: str, target: Machine, opt: int = 2, taken: Taken = _plainly, *,
                   plain: bool = False) -> Code:
    """Optimise and assemble a module; the result is position independent. The steps are parse,
    optimise and assemble, none where the disk has the code. ``plain``: the text is such that
    LLVM's passes find nothing in it."""
    store = object_cache()
    key = "" if store is None else key_of(text, repr(target), str(opt), str(plain), *_versions())
    if store is not None and (known := store.get(key)) is not None:
        return Code(known)
    module, machine = _optimised(text, target, opt, taken, plain)
    with taken("assemble"):
        made: bytes = machine.emit_object(module)
    if store is not None:
        store.put(key, made)
    return Code(made)


@cache
def _versions() -> tuple[str, str]:
    """Of what makes code of a text."""
    llvm = _llvm()
    return sys.modules["llvmlite"].__version__, ".".join(map(str, llvm.llvm_version_info))


def assembly(text: str, target: Machine, opt: int = 2) -> str:
    """The assembly that ``compile_object`` would assemble."""
    module, machine = _optimised(text, target, opt)
    result: str = machine.emit_assembly(module)
    return result


class _Linker:
    """One LLJIT and the process it belongs to; it goes when the last of its libraries has gone."""

    def __init__(self, target: Machine) -> None:
        self.process = os.getpid()
        self.linked = 0
        # JITLink takes one block of memory for an object. The older linker maps sections one at a
        # time and ends the process where two of them are out of reach of 32-bit addresses.
        self.lljit = _llvm().create_lljit_compiler(
            _machine(target, 2), use_jit_link=True, suppress_errors=False)

    def unload(self, tracker: Any) -> None:
        """Unmap a library.

        A forked child leaves what it inherited alone: another thread of its parent may have held
        LLVM's locks, and nobody is left to give them back.
        """
        if self.process == os.getpid():
            tracker.close()
        else:
            tracker.detach()
            self.lljit.detach()


class Jit:
    """The code of this process for one target: links objects and knows their addresses.

    Raises Error (W402) for a target that has what this machine lacks.
    """

    def __init__(self, target: Machine) -> None:
        missing = lacking(target)
        if missing:
            raise error("W402", f"target={target.name!r} has {listed(missing)}, which this CPU "
                                f"({_native().name}) lacks",
                        hint=f"use target={NATIVE!r}; code for others is for dumps and exports")
        self.target = target
        self._linker: _Linker | None = None
        known = SHARED.found(SUPPORT)
        self.support = self._share(SUPPORT, *_support()) if known is None else known

    def _share(self, label: str, image: bytes, exports: tuple[str, ...]) -> Mapping[str, int]:
        """Have an object in this process for good that all programs may call."""
        try:
            return SHARED.add(label, elf.link(image, label), self.needs(image, exports))
        except elf.UnlinkableError:  # which knows one architecture
            return SHARED.keep(label, self._linked_by_llvm(image, exports))

    def link(self, image: bytes, exports: tuple[str, ...]) -> Library:
        """Load an object file whose ``exports`` are wanted. Our own linker takes as long for an
        object as LLVM's, which takes 25 ms more for the first one."""
        try:
            return SHARED.linked(self.needs(image, exports), elf.link(image, exports[0]))
        except elf.UnlinkableError:
            return self._linked_by_llvm(image, exports)

    def _linked_by_llvm(self, image: bytes, exports: tuple[str, ...]) -> Library:
        builder = _llvm().JITLibraryBuilder().add_object_img(image).add_current_process()
        for name, label in self.needs(image, exports).items():
            builder.import_symbol(name, (SHARED.found(label) or {})[name])
        for name in exports:
            builder.export_symbol(name)
        linker = self._linker
        if linker is None or linker.linked >= _LIBRARIES or linker.process != os.getpid():
            linker = self._linker = _Linker(self.target)
        linker.linked += 1
        tracker = builder.link(linker.lljit, f"weft{next(_COUNTER)}")
        addresses = {name: tracker[name] for name in exports}
        return Library(addresses, partial(linker.unload, tracker))

    def needs(self, image: bytes, own: tuple[str, ...]) -> dict[str, str]:
        """The labels of the shared code that an object names, and which is not its own. What
        sorts is made where it is not there yet."""
        def named(name: str) -> bool:
            return name not in own and name.encode() + b"\0" in image

        found = {name: SUPPORT for name in WORKERS if named(name)}
        for name, emit in SORTS.items():
            if named(name):
                found[name] = label = f"{name} {key_of(repr(self.target))}"
                if SHARED.found(label) is None:
                    text = module_text([emit(self.target, "weft")],
                                       prelude=f'target triple = "{self.target.triple}"')
                    self._share(label, compile_object(text, self.target, plain=True).object,
                                (name,))
        return found


def _support() -> tuple[bytes, tuple[str, ...]]:
    """The code that all programs share, for every CPU that there are programs for, and what it
    exports."""
    target, support = cpu_target(PORTABLE), emit_support()
    functions, globals_ = pool_parts(target.triple)
    text = module_text([*support.functions, *functions, emit_cpu_words(target.triple)],
                       [*support.globals_, *globals_], prelude=f'target triple = "{target.triple}"')
    return compile_object(text, target).object, ("weft_cpu", *WORKERS, *support.exports)


@cache
def jit_for(target: Machine) -> Jit:
    """The process's JIT for a target; made on first use."""
    return Jit(target)
