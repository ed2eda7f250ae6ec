"""What an artifact asks of the CPU, against what LLVM finds of the same features."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
from llvmlite import binding as llvm

from weft.codegen.cpu import cpu_check
from weft.codegen.cpu.cpu_check import emit_cpu_check, is_x86
from weft.codegen.cpu.jit import compile_object, cpu_target, jit_for
from weft.codegen.cpu.processors import EAX, EBX, ECX, EDX, FEATURES, LEVEL3
from weft.codegen.cpu.text import module_text
from weft.ir.record import replace

FIT, UNFIT = 0, -4
NATIVE = cpu_target()

pytestmark = pytest.mark.skipif(not is_x86(NATIVE), reason="only x86 is asked")


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[int]]]:
    """What two checks in a row say, by the one feature that is asked for beside AVX."""
    monkeypatch.setattr(cpu_check, "LEVEL3", frozenset(("avx",)))
    functions, globals_, names = [], [], {}
    for at, feature in enumerate(FEATURES):
        target = replace(NATIVE, features=f"+{feature}")
        found = emit_cpu_check(f"asked{at}", target, FIT, UNFIT)
        functions += found[0]
        globals_ += found[1]
        names[feature] = f"asked{at}_check_cpu"
    code = compile_object(module_text(functions, globals_), NATIVE).object
    library = jit_for(NATIVE).link(code, tuple(names.values()))
    check = ctypes.CFUNCTYPE(ctypes.c_int32)
    yield {feature: [check(library.addresses[name])() for _ in range(2)]
           for feature, name in names.items()}
    library.unload()


def test_each_feature_is_found_where_it_is(checked: dict[str, list[int]]) -> None:
    host = llvm.get_host_cpu_features()
    here = {feature: FIT if host.get(feature) else UNFIT for feature in checked}
    assert checked == {feature: [answer, answer] for feature, answer in here.items()}
    assert {checked["avx2"][0], checked["fma"][0]} == {FIT}


def test_features_that_are_off_are_not_asked_for() -> None:
    needed = cpu_check.needed(replace(NATIVE, features="+avx512f,-avx512bw,+of-the-future"))
    assert needed == LEVEL3 | {"avx512f"}


def test_what_a_named_target_says() -> None:
    target = cpu_target("x86-64-v3")
    assert (target.kind, target.name, target.vector_bits) == ("cpu", "x86-64-v3", 256)
    assert {"+avx2", "+fma"} <= set(target.features.split(","))
    wide = cpu_target("x86-64-v4")
    assert (wide.kind, wide.name, wide.vector_bits) == ("cpu", "x86-64-v4", 512)
    assert wide.mask_registers and not target.mask_registers


def test_bits_are_those_of_the_manuals() -> None:
    """Intel's and AMD's, as one mask for each register; this machine may have all of them."""
    masks: dict[tuple[int, int, int], int] = {}
    for leaf, subleaf, register, bit in FEATURES.values():
        place = leaf, subleaf, register
        assert not masks.get(place, 0) >> bit & 1
        masks[place] = masks.get(place, 0) | 1 << bit
    assert masks == {(1, 0, ECX): 0x32D83203, (7, 0, EBX): 0xF02B0128, (7, 0, ECX): 0x5F42,
                     (7, 0, EDX): 0x800100, (7, 1, EAX): 0x800037, (7, 1, EDX): 0x430,
                     (0x80000001, 0, ECX): 0x210860}
