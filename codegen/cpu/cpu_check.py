"""What the CPU can do, asked in machine code: in an artifact, whether it is what the code was
compiled for; in the code that processes share, all that is to be known.

An artifact travels. On a CPU without, say, AVX-512 it would die by SIGILL, with no word of why;
so it asks first, once, and its functions return an error instead. What is asked is ``cpuid`` and,
as registers must be saved by the system too, ``xgetbv``. The functions that ask, and those that
run before the answer, are compiled for the oldest CPU there is.
"""

from __future__ import annotations

from ...ir.machine import Machine
from .processors import ECX, FEATURES, LEAVES, LEVEL3, ZMM
from .text import FunctionText

_OSXSAVE = 1 << 27          # in the ECX of leaf 1: xgetbv may be asked
_YMM = 0x06                 # what the system must save
_UNKNOWN = 1

_REGISTERS = "{ i32, i32, i32, i32 }"
_PORTABLE = 'nounwind "target-cpu"="x86-64" "target-features"=""'
_CLOBBERS = "~{dirflag},~{fpsr},~{flags}"


def is_x86(target: Machine) -> bool:
    return target.triple.startswith("x86_64")


def portable(target: Machine) -> str:
    """The attributes of a function that any CPU of the architecture can run."""
    if not is_x86(target):
        return "nounwind"
    return _PORTABLE


def needed(target: Machine) -> frozenset[str]:
    """The features that the code for ``target`` may use."""
    return target.instructions & FEATURES.keys() | LEVEL3


def emit_cpu_check(
    name: str, target: Machine, fitting: int, unfit: int
) -> tuple[list[FunctionText], list[str]]:
    """``i32 @{name}_check_cpu()``: ``fitting`` or ``unfit``, found out once."""
    f = FunctionText("i32", f"{name}_check_cpu", [], attributes=portable(target))
    if not is_x86(target):  # every 64-bit ARM has all that its baseline target uses
        f.ret(f"i32 {fitting}")
        return [f], []
    known = f(f"load atomic i32, ptr @{name}.cpu monotonic, align 4")
    f.branch(f(f"icmp eq i32 {known}, {_UNKNOWN}"), "ask", "done")
    f.place("done")
    f.ret(f"i32 {known}")
    f.place("ask")
    found = f(f"select i1 {f(f'call i1 @{name}.cpu_fits()')}, i32 {fitting}, i32 {unfit}")
    f.do(f"store atomic i32 {found}, ptr @{name}.cpu monotonic, align 4")
    f.ret(f"i32 {found}")
    return [f, _fits(name, target)], [f"@{name}.cpu = internal global i32 {_UNKNOWN}, align 4"]


def _fits(name: str, target: Machine) -> FunctionText:
    f = FunctionText("i1", f"{name}.cpu_fits", [], linkage="internal",
                     attributes=portable(target))
    masks: dict[tuple[int, int], dict[int, int]] = {}
    features = needed(target)
    for feature in sorted(features):
        leaf, subleaf, register, bit = FEATURES[feature]
        place = masks.setdefault((leaf, subleaf), {})
        place[register] = place.get(register, 0) | 1 << bit
    masks[1, 0][ECX] |= _OSXSAVE
    # Leaf 1 first: it says if xgetbv may be asked, and a CPU that has AVX has leaf 7.
    for leaf, subleaf in sorted(masks):
        answer = _cpuid(f, leaf, subleaf)
        for register, mask in masks[leaf, subleaf].items():
            bits = f(f"and i32 {f(f'extractvalue {_REGISTERS} {answer}, {register}')}, "
                     f"{_signed(mask)}")
            _require(f, f(f"icmp eq i32 {bits}, {_signed(mask)}"))
    saved = ZMM if "avx512f" in features else _YMM
    bits = f(f"and i32 {f(f'extractvalue {{ i32, i32 }} {_xgetbv(f)}, 0')}, {saved}")
    f.ret(f"i1 {f(f'icmp eq i32 {bits}, {saved}')}")
    f.place("unfit")
    f.ret("i1 false")
    return f


def emit_cpu_words(triple: str) -> FunctionText:
    """``void @weft_cpu(ptr words)``: what ``cpuid`` says of each of ``LEAVES`` in four words, then
    what registers the system saves, 0 if it does not say; nothing on other architectures."""
    f = FunctionText("void", "weft_cpu", [("ptr", "words")], attributes=_PORTABLE)
    if not triple.startswith("x86_64"):
        f.ret("void")
        return f
    answers = [_cpuid(f, leaf, subleaf) for leaf, subleaf in LEAVES]
    for at, answer in enumerate(answers):
        for register in range(4):
            _store(f, f(f"extractvalue {_REGISTERS} {answer}, {register}"), 4 * at + register)
    first = f(f"extractvalue {_REGISTERS} {answers[LEAVES.index((1, 0))]}, {ECX}")
    f.branch(f(f"icmp ne i32 {f(f'and i32 {first}, {_OSXSAVE}')}, 0"), "ask", "end")
    f.place("ask")
    _store(f, f(f"extractvalue {{ i32, i32 }} {_xgetbv(f)}, 0"), 4 * len(LEAVES))
    f.do("br label %end")
    f.place("end")
    f.ret("void")
    return f


def _store(f: FunctionText, word: str, at: int) -> None:
    f.do(f"store i32 {word}, ptr {f(f'getelementptr i32, ptr %words, i64 {at}')}, align 4")


def _cpuid(f: FunctionText, leaf: int, subleaf: int) -> str:
    return f(f'call {_REGISTERS} asm "cpuid", "={{ax}},={{bx}},={{cx}},={{dx}},{{ax}},{{cx}},'
             f'{_CLOBBERS}"(i32 {_signed(leaf)}, i32 {subleaf})')


def _xgetbv(f: FunctionText) -> str:
    return f(f'call {{ i32, i32 }} asm "xgetbv", "={{ax}},={{dx}},{{cx}},{_CLOBBERS}"(i32 0)')


def _require(f: FunctionText, condition: str) -> None:
    fine = f.fresh("fine")
    f.branch(condition, fine, "unfit")
    f.place(fine)


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word
