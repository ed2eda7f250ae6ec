"""What an artifact asks of the CPU, against what LLVM finds of the same features."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace

import pytest
from llvmlite import binding as llvm

from weft.codegen import cpu_check
from weft.codegen.cpu_check import emit_cpu_check, is_x86
from weft.codegen.llvm_jit import compile_object, cpu_target, jit_for
from weft.codegen.llvm_text import module_text

FIT, UNFIT = 0, -4
NATIVE = cpu_target()

pytestmark = pytest.mark.skipif(not is_x86(NATIVE), reason="only x86 is asked")


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[int]]]:
    """What two checks in a row say, by the one feature that is asked for beside AVX."""
    monkeypatch.setattr(cpu_check, "_ALWAYS", frozenset(("avx",)))
    functions, globals_, names = [], [], {}
    for at, feature in enumerate(cpu_check._PLACES):
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
    assert needed == cpu_check._ALWAYS | {"avx512f"}
