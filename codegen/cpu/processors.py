"""The CPUs that code can be compiled for by name, and what each of them can do.

LLVM ends the process if it is asked for a CPU that it does not know, and tells nobody what one can
do; so the names and the features are here, as LLVM has them, and it is given features alone. Only
features that a running program can ask the CPU for are used (``FEATURES``): that nothing else is
in the code is what makes the question whether a CPU can run it have an answer.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from ...ir.diagnose import error

EBX, ECX, EDX, EAX = 1, 2, 3, 0

FEATURES = MappingProxyType({
    **{name: (1, 0, ECX, bit) for name, bit in (
        ("sse3", 0), ("pclmul", 1), ("ssse3", 9), ("fma", 12), ("cx16", 13), ("sse4.1", 19),
        ("sse4.2", 20), ("movbe", 22), ("popcnt", 23), ("aes", 25), ("avx", 28), ("f16c", 29))},
    **{name: (7, 0, EBX, bit) for name, bit in (
        ("bmi", 3), ("avx2", 5), ("bmi2", 8), ("avx512f", 16), ("avx512dq", 17), ("adx", 19),
        ("avx512ifma", 21), ("avx512cd", 28), ("sha", 29), ("avx512bw", 30), ("avx512vl", 31))},
    **{name: (7, 0, ECX, bit) for name, bit in (
        ("avx512vbmi", 1), ("avx512vbmi2", 6), ("gfni", 8), ("vaes", 9), ("vpclmulqdq", 10),
        ("avx512vnni", 11), ("avx512bitalg", 12), ("avx512vpopcntdq", 14))},
    "avx512vp2intersect": (7, 0, EDX, 8),
    "avx512fp16": (7, 0, EDX, 23),
    **{name: (7, 1, EAX, bit) for name, bit in (
        ("sha512", 0), ("sm3", 1), ("sm4", 2), ("avxvnni", 4), ("avx512bf16", 5),
        ("avxifma", 23))},
    **{name: (7, 1, EDX, bit) for name, bit in (
        ("avxvnniint8", 4), ("avxneconvert", 5), ("avxvnniint16", 10))},
    **{name: (0x80000001, 0, ECX, bit) for name, bit in (
        ("lzcnt", 5), ("sse4a", 6), ("xop", 11), ("fma4", 16), ("tbm", 21))},
})
"""LLVM's name of a feature: leaf and subleaf of cpuid, register, bit."""
LEAVES = tuple(sorted({(leaf, subleaf) for leaf, subleaf, _, _ in FEATURES.values()}))
ZMM = 0xE6
"""The bits of registers that the system must save for AVX-512."""


def cpu_text(words: Sequence[int]) -> str:
    """What ``weft_cpu`` has said, as a text that two CPUs share if they run the same code equally:
    model, features, and registers that are saved."""
    registers = {place: words[4 * at:4 * at + 4] for at, place in enumerate(LEAVES)}
    has = [name for name, (leaf, subleaf, register, bit) in FEATURES.items()
           if registers[leaf, subleaf][register] >> bit & 1]
    return f"{registers[1, 0][EAX]:x} {words[4 * len(LEAVES)] & ZMM:x} {' '.join(has)}"


def _and(*parts: frozenset[str] | str) -> frozenset[str]:
    return frozenset().union(*(part.split() if isinstance(part, str) else part for part in parts))


LEVEL3 = _and("sse3 ssse3 sse4.1 sse4.2 cx16 popcnt avx avx2 bmi bmi2 f16c fma lzcnt movbe")
"""Of all CPUs that code is compiled for: x86-64-v3 of the psABI."""
LEVEL4 = _and(LEVEL3, "avx512f avx512vl avx512bw avx512dq avx512cd")

_HASWELL = _and(LEVEL3, "pclmul")
_BROADWELL = _and(_HASWELL, "adx")
_SKYLAKE = _and(_BROADWELL, "aes")
_ALDERLAKE = _and(_SKYLAKE, "sha gfni vaes vpclmulqdq avxvnni")
_SIERRAFOREST = _and(_ALDERLAKE, "avxifma avxvnniint8 avxneconvert")
_LUNARLAKE = _and(_SIERRAFOREST, "avxvnniint16 sha512 sm3 sm4")
_KNL = _and(_SKYLAKE, "avx512f avx512cd")
_SKX = _and(_SKYLAKE, LEVEL4)
_CASCADELAKE = _and(_SKX, "avx512vnni")
_COOPERLAKE = _and(_CASCADELAKE, "avx512bf16")
_CANNONLAKE = _and(_SKX, "avx512ifma sha avx512vbmi")
_ICELAKE = _and(_CANNONLAKE, "avx512vbmi2 gfni vaes vpclmulqdq avx512vnni avx512bitalg",
                "avx512vpopcntdq")
_TIGERLAKE = _and(_ICELAKE, "avx512vp2intersect")
_SAPPHIRERAPIDS = _and(_ICELAKE, "avx512fp16 avxvnni avx512bf16")
_ZNVER1 = _and(_SKYLAKE, "sha sse4a")
_ZNVER3 = _and(_ZNVER1, "vaes vpclmulqdq")
_ZNVER4 = _and(_ZNVER3, _ICELAKE, "avx512bf16")

_X86 = MappingProxyType({name: features for names, features in (
    ("x86-64-v3", LEVEL3),
    ("x86-64-v4", LEVEL4),
    ("haswell core-avx2 core_4th_gen_avx core_4th_gen_avx_tsx", _HASWELL),
    ("broadwell core_5th_gen_avx core_5th_gen_avx_tsx", _BROADWELL),
    ("skylake", _SKYLAKE),
    ("alderlake gracemont meteorlake raptorlake", _ALDERLAKE),
    ("arrowlake grandridge sierraforest", _SIERRAFOREST),
    ("arrowlake-s arrowlake_s clearwaterforest lunarlake pantherlake wildcatlake", _LUNARLAKE),
    ("knl mic_avx512", _KNL),
    ("knm", _and(_KNL, "avx512vpopcntdq")),
    ("skylake-avx512 skylake_avx512 skx", _SKX),
    ("cascadelake", _CASCADELAKE),
    ("cooperlake", _COOPERLAKE),
    ("cannonlake", _CANNONLAKE),
    ("icelake-client icelake_client icelake-server icelake_server rocketlake", _ICELAKE),
    ("tigerlake", _TIGERLAKE),
    ("sapphirerapids emeraldrapids graniterapids graniterapids-d graniterapids_d",
     _SAPPHIRERAPIDS),
    ("diamondrapids novalake", _and(_SAPPHIRERAPIDS, _LUNARLAKE)),
    ("bdver4", _and(LEVEL3, "pclmul aes sse4a fma4 xop tbm")),
    ("znver1 znver2", _ZNVER1),
    ("znver3", _ZNVER3),
    ("znver4", _ZNVER4),
    ("znver5", _and(_ZNVER4, "avx512vp2intersect avxvnni")),
) for name in names.split()})

_TOO_OLD = _and("""
    amdfam10 athlon athlon-4 athlon-fx athlon-mp athlon-tbird athlon-xp athlon64 athlon64-sse3
    atom atom_sse4_2 atom_sse4_2_movbe barcelona bdver1 bdver2 bdver3 bonnell btver1 btver2
    c3 c3-2 core-avx-i core2 core_2_duo_sse4_1 core_2_duo_ssse3 core_2nd_gen_avx
    core_3rd_gen_avx core_aes_pclmulqdq core_i7_sse4_2 corei7 corei7-avx generic geode
    goldmont goldmont-plus goldmont_plus i386 i486 i586 i686 ivybridge k6 k6-2 k6-3 k8
    k8-sse3 lakemont nehalem nocona opteron opteron-sse3 penryn pentium pentium-m
    pentium-mmx pentium2 pentium3 pentium3m pentium4 pentium4m pentium_4 pentium_4_sse3
    pentium_ii pentium_iii pentium_iii_no_xmm_regs pentium_m pentium_mmx pentium_pro
    pentiumpro prescott sandybridge silvermont slm tremont westmere winchip-c6 winchip2
    x86-64 x86-64-v2 yonah""")

_ARM = _and("""
    a64fx ampere1 ampere1a ampere1b ampere1c apple-a10 apple-a11 apple-a12 apple-a13 apple-a14
    apple-a15 apple-a16 apple-a17 apple-a18 apple-a19 apple-a7 apple-a8 apple-a9 apple-m1
    apple-m2 apple-m3 apple-m4 apple-m5 apple-s10 apple-s4 apple-s5 apple-s6 apple-s7
    apple-s8 apple-s9 c1-nano c1-premium c1-pro c1-ultra carmel cobalt-100 cortex-a320
    cortex-a34 cortex-a35 cortex-a510 cortex-a520 cortex-a520ae cortex-a53 cortex-a55
    cortex-a57 cortex-a65 cortex-a65ae cortex-a710 cortex-a715 cortex-a72 cortex-a720
    cortex-a720ae cortex-a725 cortex-a73 cortex-a75 cortex-a76 cortex-a76ae cortex-a77
    cortex-a78 cortex-a78ae cortex-a78c cortex-r82 cortex-r82ae cortex-x1 cortex-x1c
    cortex-x2 cortex-x3 cortex-x4 cortex-x925 cyclone exynos-m3 exynos-m4 exynos-m5 falkor
    fujitsu-monaka gb10 generic grace kryo neoverse-512tvb neoverse-e1 neoverse-n1
    neoverse-n2 neoverse-n3 neoverse-v1 neoverse-v2 neoverse-v3 neoverse-v3ae olympus
    oryon-1 saphira thunderx thunderx2t99 thunderx3t110 thunderxt81 thunderxt83 thunderxt88
    tsv110""")

NATIVE = "native"
"""The name of the machine that compiles."""
PORTABLE = "x86-64-v3" if os.uname().machine == "x86_64" else "generic"
"""The name of what most machines of this architecture can run."""


def features_of(name: Any, setting: str = "target") -> frozenset[str]:
    """What the CPU of that name can do, of the features that code may use; of 64-bit ARM's none,
    as their code is that of the baseline. ``setting`` says where the name was given.

    Raises Error (W402) for a name that there is not, or that is one of another architecture, and
    for CPUs without fused multiply-add, which every result relies on.
    """
    x86, known = os.uname().machine == "x86_64", isinstance(name, str)
    if known and name in (_X86 if x86 else _ARM):
        return _X86[name] if x86 else frozenset()
    if known and x86 and name in _TOO_OLD:
        raise error("W402", f"{setting}={name!r}: that CPU has no AVX2 with fused multiply-add",
                    hint=f"use {setting}={PORTABLE!r}, the oldest that there is code for")
    if known and name in ((_ARM if x86 else _X86.keys() | _TOO_OLD) - {PORTABLE}):
        there, here = ("64-bit ARM", "x86-64")[::1 if x86 else -1]
        raise error("W402", f"{setting}={name!r} is a CPU of {there}, and this machine, which "
                            f"makes code for its own architecture only, is one of {here}",
                    hint=f"use {setting}={PORTABLE!r}, or compile on a machine of that kind")
    names = [NATIVE, *(_X86 if x86 else _ARM)]
    close = importlib.import_module("difflib").get_close_matches  # which takes 3 ms to load
    near = close(name.lower(), names, 3) if known else []
    raise error("W402", f"{setting}={name!r} is no name of a CPU that LLVM has",
                hint=f"use {setting}={(near or [PORTABLE])[0]!r}"
                     + "".join(f", or {other!r}" for other in near[1:]))


def listed(features: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([part for part in (", ".join(features[:-1]), features[-1]) if part])
