"""A plan as an object file with a plain C interface, which needs libc and nothing else.

    m.program, m.program_arena, kernels, pool     as in the JIT, but local to the object
    m_call_with_hook(weights, args, dims, arena, threads, hook)    the core: finds weights, makes
                                                                   the arena, runs
    m_call                                        the same with the hook of all calls
    m(weights, x, y, b, threads), m_with_arena    the same with typed arguments
    m_load_weights, m_free_weights, m_arena_bytes, m_set_hook, m_check_cpu, m_check_message,
    m_version

All of it is LLVM IR, so no C compiler is needed to make it. Local symbols have a dot, which no C
name has, and start with the artifact's name: any number of artifacts link into one program.
``m_weights`` is the mapped safetensors file itself; its layout is known here, so a weight is an
address plus a constant, and loading checks that the header is the very one seen at export.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

from ...ir.machine import Machine
from ...ir.plans.control import ABORTED, SIZE
from ...ir.plans.plan import ALIGNMENT, MISFIT, NO_MEMORY, Plan, map_launches
from ...ir.plans.stack import ARGUMENTS_BYTES
from ...ir.record import record, replace
from ...ir.types import TensorType
from ..cpu.cpu_check import emit_cpu_check, portable
from ..cpu.host.poll import field
from ..cpu.host.threads import pool_parts
from ..cpu.program import program_parts
from ..cpu.sorts.sorter import sorts_of
from ..cpu.text import FunctionText, heap_block, module_text
from ..cpu.types import LLVM_TYPES, memory_type

STATUS = MappingProxyType({
    "no_memory": (NO_MEMORY, "out of memory"),
    "no_file": (-2, "the weights file cannot be opened"),
    "other_weights": (-3, "the weights file is not the one that was written with this program"),
    "other_cpu": (-4, "this CPU lacks instructions that the program was compiled for"),
    "bad_argument": (MISFIT, "a size is negative, or the weights are NULL"),
    "ended": (ABORTED, "the hook has ended the call"),
})
"""What functions return besides 0 and the number of a run-time check that failed."""

_READ, _PRIVATE, _CLOSE_ON_EXEC, _END = 1, 2, 0o2000000, 2  # of mmap, open and lseek
_FNV = (0xCBF29CE484222325, 0x100000001B3)
_MASK = (1 << 64) - 1


@record(frozen=True)
class Source:
    """Where a parameter of the plan comes from.

    A C ``argument``, or ``offset`` bytes into the weights file; with both (a variable), an
    argument of NULL means the value in the file.
    """

    argument: str = ""
    offset: int | None = None


@record(frozen=True)
class WeightsFile:
    """The safetensors file: its size, and all that comes before the data."""

    size: int
    header: bytes


@record(frozen=True)
class Artifact:
    """Everything the object and its C header are made of.

    ``name`` is the C name and the prefix of all others; ``dims`` pairs symbols with C names.
    """

    name: str
    plan: Plan
    target: Machine
    sources: tuple[Source, ...]
    results: tuple[str, ...]
    dims: tuple[tuple[str, str], ...] = ()
    weights: WeightsFile | None = None
    version: str = ""

    @property
    def arguments(self) -> list[tuple[str, TensorType, bool]]:
        """(C name, type, passed by value) of the inputs, in C order."""
        return [(source.argument, slot.type, is_scalar(source, slot.type))
                for source, slot in zip(self.sources, self.plan.params, strict=True)
                if source.argument]


def is_scalar(source: Source, type_: TensorType) -> bool:
    """True for arguments that C passes by value: numbers that are not variables."""
    return not type_.rank and source.offset is None and type_.dtype.name in LLVM_TYPES


def digest(header: bytes) -> int:
    """A 64-bit FNV hash of the header, by words; ``m_load_weights`` computes the same."""
    state, prime = _FNV
    for at in range(0, len(header), 8):
        state = (state ^ int.from_bytes(header[at:at + 8], "little")) * prime & _MASK
        state ^= state >> 32
    return state


def emit_artifact(artifact: Artifact) -> str:
    """The module text of the object file."""
    name, target = artifact.name, artifact.target
    pool = f"{name}.pool"
    symbols = [symbol for symbol, _ in artifact.dims]
    functions, globals_ = program_parts(_renamed(artifact.plan, name), target, symbols,
                                        pool)
    functions += sorts_of(functions, target, pool)
    if any(f"@{pool}_" in text for f in functions for part in f.family()
           for text in part.declarations):
        pool_functions, pool_globals = pool_parts(target.triple, pool, "internal")
        functions += pool_functions
        globals_ += pool_globals
    for function in functions:
        if "internal" not in function.header:
            function.header = function.header.replace("define ", "define internal ", 1)
    codes = {key: code for key, (code, _) in STATUS.items()}
    checked, state = emit_cpu_check(name, target, 0, codes["other_cpu"])
    writer = _Writer(artifact)
    functions += [*checked, writer.core(), writer.call(), writer.typed(arena=False),
                  writer.typed(arena=True), writer.arena_bytes(), writer.set_hook()]
    if artifact.weights is not None:
        functions += [writer.load_weights(artifact.weights), writer.free_weights(artifact.weights)]
    texts, constants = writer.texts()
    prelude = f'target triple = "{target.triple}"'
    hook = f"@{name}.hook = internal global ptr null, align 8"
    return module_text(functions + texts, [*globals_, *state, hook, *constants], prelude)


def _renamed(plan: Plan, name: str) -> Plan:
    """The plan with symbols that belong to the artifact."""
    def local(kernel: str) -> str:
        return f"{name}.{kernel}"

    kernels = {local(key): replace(kernel, name=local(key)) for key, kernel in plan.kernels.items()}
    steps = map_launches(plan.steps, lambda step: replace(step, kernel=local(step.kernel)))
    return replace(plan, name=f"{name}.program", kernels=kernels, steps=steps)


class _Writer:
    """The functions of the C interface."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact, self.name = artifact, artifact.name
        self.handle = [("ptr", "weights")] if artifact.weights is not None else []

    def function(self, result: str, stem: str, params: Sequence[tuple[str, str]]) -> FunctionText:
        """A public function; it runs on any CPU, as some come before the CPU is known."""
        name = f"{self.name}_{stem}" if stem else self.name
        return FunctionText(result, name, params, attributes=portable(self.artifact.target))

    def call(self) -> FunctionText:
        """The core with the hook that ``m_set_hook`` has set."""
        params = [*self.handle, ("ptr", "args"), ("ptr", "dims"), ("ptr", "arena"),
                  ("i32", "threads")]
        f = self.function("i32", "call", params)
        hook = f(f"load atomic ptr, ptr @{self.name}.hook monotonic, align 8")
        given = ", ".join(f"{type_} %{param}" for type_, param in params)
        f.ret(f"i32 {f(f'call i32 @{self.name}_call_with_hook({given}, ptr {hook})')}")
        return f

    def core(self) -> FunctionText:
        """The program on an array of argument pointers and an array of dims."""
        artifact = self.artifact
        f = self.function("i32", "call_with_hook", [
            *self.handle, ("ptr", "args"), ("ptr", "dims"), ("ptr", "arena"), ("i32", "threads"),
            ("ptr", "hook")])
        cpu = f(f"call i32 @{self.name}_check_cpu()")
        _unless(f, f"icmp ne i32 {cpu}, 0", f"i32 {cpu}")
        if self.handle:
            _unless(f, "icmp eq ptr %weights, null", _status("bad_argument"))
        for at in range(len(artifact.dims)):
            size = f(f"load i64, ptr {_element(f, 'i64', '%dims', at)}, align 8")
            _unless(f, f"icmp slt i64 {size}, 0", _status("bad_argument"))
        count = len(artifact.sources) + len(artifact.results)
        slots, free = _words(f, count, _status("no_memory"))
        given = 0
        for at, source in enumerate([*artifact.sources, *map(Source, artifact.results)]):
            pointer = ""
            if source.argument:
                pointer = f(f"load ptr, ptr {_element(f, 'ptr', '%args', given)}, align 8")
                given += 1
            if source.offset is not None:
                weight = _element(f, "i8", "%weights", source.offset)
                pointer = weight if not pointer else f(
                    f"select i1 {f(f'icmp eq ptr {pointer}, null')}, ptr {weight}, ptr {pointer}")
            f.do(f"store ptr {pointer}, ptr {_element(f, 'ptr', slots, at)}, align 8")
        self._run(f, slots, free)
        return f

    def _run(self, f: FunctionText, slots: str, free: Callable[[], None]) -> None:
        """Call the program with the caller's arena, an own one, or none if it needs none."""
        def leave(status: str) -> None:
            free()
            f.ret(f"i32 {status}")

        control = f.alloca("i64", SIZE // 8, 8)
        f.do(f"store ptr %hook, ptr {field(f, 'hook', control)}, align 8")
        program = f"call i32 @{self.name}.program(ptr {slots}, ptr %dims, ptr"
        threads = f"i64 {f('sext i32 %threads to i64')}, ptr {control})"
        if self.artifact.plan.arena == 0:
            leave(f(f"{program} null, {threads}"))
            return
        f.branch(f("icmp eq ptr %arena, null"), "own", "given")
        f.place("given")  # aligned here, so that any memory will do
        address = f(f"add i64 {f('ptrtoint ptr %arena to i64')}, {ALIGNMENT - 1}")
        aligned = f(f"inttoptr i64 {f(f'and i64 {address}, {-ALIGNMENT}')} to ptr")
        leave(f(f"{program} {aligned}, {threads}"))
        f.place("own")
        size = self._arena(f, "%dims")
        # Never 0 bytes, for which NULL would not mean that memory is short.
        rounded = f(f"and i64 {f(f'add i64 {size}, {ALIGNMENT}')}, {-ALIGNMENT}")
        block = f.call("ptr", "aligned_alloc", ("i64", str(ALIGNMENT)), ("i64", rounded))
        _unless(f, f"icmp eq ptr {block}, null", _status("no_memory"), free)
        status = f(f"{program} {block}, {threads}")
        f.call("void", "free", ("ptr", block))
        leave(status)

    def typed(self, *, arena: bool) -> FunctionText:
        """The function that C programs call: an argument for each array, number and dim."""
        artifact = self.artifact
        params, stored = list(self.handle), list[tuple[str, str]]()
        for at, (_, type_, scalar) in enumerate(artifact.arguments):
            kind = memory_type(type_.dtype) if scalar else "ptr"
            params.append((kind, f"x{at}"))
            stored.append((kind, f"%x{at}"))
        for at in range(len(artifact.results)):
            params.append(("ptr", f"y{at}"))
            stored.append(("ptr", f"%y{at}"))
        params += [("i64", f"d{at}") for at in range(len(artifact.dims))]
        params.append(("i32", "threads"))
        f = self.function("i32", "with_arena" if arena else "",
                          [*params, ("ptr", "arena")] if arena else params)
        # Pointers, then the numbers that some point to, then dims.
        count = len(stored)
        args, free = _words(f, 2 * count + len(artifact.dims), _status("no_memory"))
        for at, (kind, value) in enumerate(stored):
            if kind != "ptr":
                number = _element(f, "i64", args, count + at)
                f.do(f"store {kind} {value}, ptr {number}, align 8")
                value = number
            f.do(f"store ptr {value}, ptr {_element(f, 'ptr', args, at)}, align 8")
        dims = self._put_dims(f, _element(f, "i64", args, 2 * count))
        handle = "ptr %weights, " if self.handle else ""
        status = f(f"call i32 @{self.name}_call({handle}ptr {args}, ptr {dims}, "
                   f"ptr {'%arena' if arena else 'null'}, i32 %threads)")
        free()
        f.ret(f"i32 {status}")
        return f

    def _put_dims(self, f: FunctionText, dims: str) -> str:
        """Put the arguments ``%d0, %d1, ...`` into an array."""
        for at in range(len(self.artifact.dims)):
            f.do(f"store i64 %d{at}, ptr {_element(f, 'i64', dims, at)}, align 8")
        return dims

    def _arena(self, f: FunctionText, dims: str) -> str:
        """The bytes of arena of a step."""
        arena = self.artifact.plan.arena
        if isinstance(arena, int):
            return str(arena)
        return f(f"call i64 @{self.name}.program_arena(ptr {dims})")

    def set_hook(self) -> FunctionText:
        """Let calls ask now and then whether they are to end."""
        f = self.function("void", "set_hook", [("ptr", "hook")])
        f.do(f"store atomic ptr %hook, ptr @{self.name}.hook monotonic, align 8")
        f.ret()
        return f

    def arena_bytes(self) -> FunctionText:
        """How much memory ``m_with_arena`` wants, wherever it starts."""
        count = len(self.artifact.dims)
        f = self.function("i64", "arena_bytes", [("i64", f"d{at}") for at in range(count)])
        if self.artifact.plan.arena == 0:
            f.ret("i64 0")
            return f
        for at in range(count):
            _unless(f, f"icmp slt i64 %d{at}, 0", "i64 0")
        dims, free = _words(f, count, "i64 0")  # then there is none, and a call says so
        size = self._arena(f, self._put_dims(f, dims))
        free()
        f.ret(f"i64 {f(f'add i64 {size}, {ALIGNMENT - 1}')}")
        return f

    def load_weights(self, file: WeightsFile) -> FunctionText:
        """Map the file; its size and header must be those of the one written at export."""
        f = self.function("i32", "load_weights", [("ptr", "path"), ("ptr", "out")])
        f.do("store ptr null, ptr %out, align 8")
        cpu = f(f"call i32 @{self.name}_check_cpu()")
        _unless(f, f"icmp ne i32 {cpu}, 0", f"i32 {cpu}")
        f.declare("declare i32 @open(ptr, i32, ...)")
        handle = f(f"call i32 (ptr, i32, ...) @open(ptr %path, i32 {_CLOSE_ON_EXEC})")
        _unless(f, f"icmp slt i32 {handle}, 0", _status("no_file"))
        size = f.call("i64", "lseek", ("i32", handle), ("i64", "0"), ("i32", str(_END)))
        f.branch(f(f"icmp eq i64 {size}, {file.size}"), "map", "wrong")
        f.place("wrong")
        f.call("i32", "close", ("i32", handle))
        f.ret(_status("other_weights"))
        f.place("map")
        base = f.call("ptr", "mmap", ("ptr", "null"), ("i64", str(file.size)),
                      ("i32", str(_READ)), ("i32", str(_PRIVATE)), ("i32", handle), ("i64", "0"))
        f.call("i32", "close", ("i32", handle))
        _unless(f, f"icmp eq i64 {f(f'ptrtoint ptr {base} to i64')}, -1", _status("no_memory"))
        start, prime = _FNV
        words = str(len(file.header) // 8)
        with f.carried_loop("0", words, 1, [("i64", str(_signed(start)))]) as loop:
            word = f(f"load i64, ptr {_element(f, 'i64', base, loop.index)}, align 8")
            mixed = f(f"mul i64 {f(f'xor i64 {loop.values[0]}, {word}')}, {prime}")
            loop.next = [f(f"xor i64 {mixed}, {f(f'lshr i64 {mixed}, 32')}")]
        found = f(f"icmp eq i64 {loop.results[0]}, {_signed(digest(file.header))}")
        f.branch(found, "fine", "other")
        f.place("other")
        f.call("i32", "munmap", ("ptr", base), ("i64", str(file.size)))
        f.ret(_status("other_weights"))
        f.place("fine")
        f.do(f"store ptr {base}, ptr %out, align 8")
        f.ret("i32 0")
        return f

    def free_weights(self, file: WeightsFile) -> FunctionText:
        f = self.function("void", "free_weights", self.handle)
        with f.when(f("icmp ne ptr %weights, null")):
            f.call("i32", "munmap", ("ptr", "%weights"), ("i64", str(file.size)))
        f.ret()
        return f

    def texts(self) -> tuple[list[FunctionText], list[str]]:
        """``m_check_message`` and ``m_version``, and the texts they return."""
        texts = {0: "no error"} | dict(STATUS.values())
        for number, site in enumerate(self.artifact.plan.checks, 1):
            places = "".join(f" ({loc})" for loc in site.locs[:1])
            texts[number] = f"{site.code}: {site.message}{places}"
        f = self.function("ptr", "check_message", [("i32", "code")])
        cases = " ".join(f"i32 {code}, label %case{at}" for at, code in enumerate(texts))
        f.do(f"switch i32 %code, label %unknown [ {cases} ]")
        constants = []
        for at, text in enumerate(texts.values()):
            f.place(f"case{at}")
            f.ret(f"ptr @{self.name}.text.{at}")
            constants.append(_constant(f"{self.name}.text.{at}", text))
        f.place("unknown")
        f.ret(f"ptr @{self.name}.text.unknown")
        constants.append(_constant(f"{self.name}.text.unknown", "no such code"))
        version = self.function("ptr", "version", [])
        version.ret(f"ptr @{self.name}.text.version")
        constants.append(_constant(f"{self.name}.text.version", self.artifact.version))
        return [f, version], constants


def _words(f: FunctionText, count: int, without: str) -> tuple[str, Callable[[], None]]:
    """Memory for so many words, and what frees it: it is on the stack, or from the heap if it is
    more than its share; ``without`` any the function returns that."""
    if 8 * count <= ARGUMENTS_BYTES:
        return f.alloca("i64", max(1, count), 8), lambda: None
    block = heap_block(f, 8 * count)
    _unless(f, f"icmp eq ptr {block}, null", without)

    def free() -> None:
        f.call("void", "free", ("ptr", block))

    return block, free


def _unless(
    f: FunctionText, condition: str, result: str, free: Callable[[], None] | None = None
) -> None:
    """Return ``result``, after ``free``, if ``condition`` holds."""
    with_it, fine = f.fresh("bad"), f.fresh("fine")
    f.branch(f(condition), with_it, fine)
    f.place(with_it)
    if free is not None:
        free()
    f.ret(result)
    f.place(fine)


def _status(key: str) -> str:
    return f"i32 {STATUS[key][0]}"


def _element(f: FunctionText, type_: str, base: str, index: int | str) -> str:
    return f(f"getelementptr {type_}, ptr {base}, i64 {index}")


def _constant(name: str, text: str) -> str:
    data = text.encode() + b"\0"
    spelled = "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in data)
    return f'@{name} = internal constant [{len(data)} x i8] c"{spelled}"'


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
