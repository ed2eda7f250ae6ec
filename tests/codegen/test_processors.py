"""CPUs by name: what LLVM says that they can do, and what this machine is not made to run."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding as llvm

import weft
from weft.codegen.cpu import caches, jit, processors
from weft.codegen.cpu.caches import measured_caches
from weft.codegen.cpu.jit import compile_object, cpu_target, jit_for
from weft.codegen.cpu.processors import FEATURES, LEVEL3, LEVEL4, features_of

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are of x86")

HERE = Path(weft.__file__).parents[1]
MANY = sorted(processors._X86)
NONSENSE = ("skylake-foo", "help", "", "+avx2", "haswell,znver4", "haswell ", "Haswell", "znver99",
            "x86-64-v5", "x86_64_v3", "cortex-a769", "\0", "нет", "x" * 10_000)


def run(program: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True,
        timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(HERE), "WEFT_CPU": "", **settings})


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_every_name_of_llvm_is_known(architecture: str) -> None:
    """LLVM prints them, and to standard error alone."""
    said = run(f"""
        import llvmlite.binding as llvm
        llvm.initialize_all_targets(), llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple("{architecture}-unknown-linux-gnu")
        machine = target.create_target_machine(cpu="help")
        machine.emit_assembly(llvm.parse_assembly("define void @f() {{ ret void }}"))
    """).stderr
    names = re.findall(r"^  (\S+) +- Select", said.partition("Available features")[0], re.MULTILINE)
    ours = {"x86_64": processors._X86.keys() | processors._TOO_OLD, "aarch64": processors._ARM}
    assert len(names) > 50
    assert set(names) <= ours[architecture]


def has(cpu: str) -> frozenset[str]:
    """What LLVM says that a CPU can do: it inlines a function only into one that may do as much."""
    parts = ["@g = external global i32"]
    for at, feature in enumerate(FEATURES):
        parts.append(f"""
define internal i32 @has{at}() "target-cpu"="x86-64" "target-features"="+{feature}" {{
  %v = load volatile i32, ptr @g
  ret i32 %v
}}
define i32 @asks{at}() "target-cpu"="{cpu}" "target-features"="" {{
  %v = call i32 @has{at}()
  ret i32 %v
}}""")
    module = llvm.parse_assembly("\n".join(parts), context=llvm.create_context())
    machine = jit._machine(cpu_target(), 2)
    module.triple = "x86_64-unknown-linux-gnu"
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    bodies = dict(re.findall(r"@asks(\d+)\(\)[^{]*\{(.*?)\}", str(module), re.DOTALL))
    return frozenset(feature for at, feature in enumerate(FEATURES)
                     if " call " not in bodies[str(at)])


@pytest.mark.parametrize("name", MANY)
def test_a_cpu_can_do_what_llvm_says(name: str) -> None:
    assert features_of(name) == has(name)


def test_a_level_is_what_the_manual_of_the_architecture_says() -> None:
    assert features_of("x86-64-v3") == LEVEL3 and features_of("x86-64-v4") == LEVEL4
    assert {f"avx512{part}" for part in ("f", "vl", "bw", "dq", "cd")} == LEVEL4 - LEVEL3
    assert not has("x86-64-v2") >= LEVEL3


@pytest.mark.parametrize("name", ["tigerlake", "rocketlake", "emeraldrapids", "graniterapids",
                                  "cooperlake", "meteorlake", "znver5", "native"])
def test_code_for_any_cpu_can_be_looked_at(name: str) -> None:
    lowered = weft.compile(target=name)(lambda x: np.tanh(x) + 1).lower("f64[64]")
    wide = cpu_target(name).vector_bits == 512
    assert ("%zmm" in lowered.as_text("asm")) is wide
    assert lowered.stages.target.vector_bits == (512 if wide else 256)


@pytest.mark.parametrize("name", [name for name in MANY if "avx512vl" in features_of(name)])
def test_code_has_no_more_than_the_name_says(name: str) -> None:
    """The features that a target switches off stay off, whatever LLVM takes the name to imply."""
    text = "define <16 x i32> @f(<16 x i32> %x) { ret <16 x i32> %x }"
    target = cpu_target(name)
    assert target.instructions == features_of(name)
    assert target.base == "x86-64-v3"
    assert compile_object(text, target).object.startswith(b"\x7fELF")


def lacked() -> list[str]:
    return [name for name in MANY if features_of(name) - cpu_target().instructions]


def test_what_this_cpu_lacks_is_named_and_not_run() -> None:
    for name in lacked():
        with pytest.raises(weft.Error, match="W402") as caught:
            weft.compile(target=name)(lambda x: x + 1)(np.ones(3))
        for feature in features_of(name) - cpu_target().instructions:
            assert re.search(rf"\b{re.escape(feature)}\b", caught.value.message)
        assert "use target='native'" in caught.value.hint
        assert caught.value.locs[0].file == __file__
        with pytest.raises(weft.Error, match="W402"):
            jit_for(cpu_target(name))
    np.testing.assert_array_equal(
        weft.compile(target="native")(lambda x: x + 1)(np.ones(3)), np.full(3, 2.0))


def test_a_session_does_not_run_what_this_cpu_lacks() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (None,), name="x")
        y = np.sum(x)
    for name in lacked():
        with pytest.raises(weft.Error, match="W402"):
            weft.Session(graph, target=name).run(y, {x: np.ones(3)})
    assert weft.Session(graph, target="native").run(y, {x: np.ones(3)}) == 3


def test_an_artifact_for_another_cpu_is_written_and_not_run(tmp_path: Path) -> None:
    # It is the CPU itself that an artifact asks, whatever it is taken for.
    for name in [name for name in MANY if features_of(name) - jit._found()][:3]:
        path = weft.export(lambda x: x + 1, "f64[3]", path=tmp_path / "m", target=name)
        with pytest.raises(weft.Error, match=r"W403.*this CPU lacks"):
            weft.load(path)
    path = weft.export(lambda x: x + 1, "f64[3]", path=tmp_path / "m", target="native")
    np.testing.assert_array_equal(weft.load(path)(np.ones(3)), np.full(3, 2.0))


def compiled(name: object) -> None:
    weft.compile(target=name)(lambda x: x)  # type: ignore[call-overload]


def exported(name: object) -> None:
    weft.export(lambda x: x, "f64[3]", path="/dev/null/nowhere", target=name)  # type: ignore[arg-type]


def session(name: object) -> None:
    weft.Session(weft.Graph(), target=name)  # type: ignore[arg-type]


@pytest.mark.parametrize("use", [compiled, exported, session, cpu_target])
@pytest.mark.parametrize("name", [*NONSENSE, 3, b"haswell", True, 1.5],
                         ids=lambda name: ascii(name)[:20])
def test_a_name_that_there_is_not_never_comes_to_llvm(
    use: Callable[[object], None], name: object
) -> None:
    with pytest.raises(weft.Error, match=r"W402.*is no name of a CPU") as caught:
        use(name)
    fix = re.search(r"use target='([^']+)'", caught.value.hint)
    assert fix is not None
    assert cpu_target(fix[1]).vector_bits >= 256


@pytest.mark.parametrize("use", [compiled, exported, session, cpu_target])
@pytest.mark.parametrize("name", sorted(processors._ARM - {"generic"}))
def test_a_name_of_another_architecture_is_said_to_be_one(
    use: Callable[[object], None], name: str
) -> None:
    with pytest.raises(weft.Error, match=rf"W402: target='{name}' is a CPU of 64-bit ARM") as found:
        use(name)
    assert found.value.hint.startswith("use target='x86-64-v3', or compile on a machine")


def test_names_of_this_architecture_are_of_another_on_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    class Machine:
        machine = "aarch64"

    monkeypatch.setattr(processors.os, "uname", Machine)
    monkeypatch.setattr(processors, "PORTABLE", "generic")
    assert features_of("apple-m1") == features_of("generic") == frozenset()
    for name in ("haswell", "nehalem", "x86-64-v3"):
        with pytest.raises(weft.Error, match=r"is a CPU of x86-64, .* one of 64-bit ARM"):
            features_of(name)


@pytest.mark.parametrize(("name", "fix"), [
    ("skylake-foo", "skylake"), ("Haswell", "haswell"), ("znver6", "znver"),
    ("x86-64-v5", "x86-64-v"), ("nativ", "native"), ("emerald-rapids", "emeraldrapids")])
def test_the_fix_is_a_name_like_it(name: str, fix: str) -> None:
    with pytest.raises(weft.Error, match=f"use target='{fix}"):
        cpu_target(name)


@pytest.mark.parametrize("name", sorted(processors._TOO_OLD))
def test_cpus_without_fused_multiply_add_are_refused(name: str) -> None:
    with pytest.raises(weft.Error, match=r"W402.*no AVX2") as caught:
        cpu_target(name)
    assert caught.value.hint.startswith("use target='x86-64-v3'")


@pytest.mark.parametrize("name", ["nehalem", "ivybridge", "bdver2", "bdver3", "btver2", "tremont",
                                  "goldmont-plus", "x86-64", "x86-64-v2"])
def test_llvm_says_so_as_well(name: str) -> None:
    assert not has(name) >= {"avx2", "fma"}


@pytest.mark.parametrize("lost", ["avx2", "fma"])
def test_a_machine_with_half_of_what_is_needed_is_refused(
    lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Piledriver has fused multiply-add and no AVX2; some others had it the other way round."""
    found = jit._found() - {lost}
    monkeypatch.setattr(jit, "_found", lambda: found)
    monkeypatch.delenv("WEFT_CPU", raising=False)
    with pytest.raises(weft.Error, match=r"W402.*no AVX2"):
        jit._native.__wrapped__()


PROGRAM = """
    import numpy as np, weft
    f = weft.compile(lambda x: np.tanh(x).sum())
    print(f(np.ones(100)), "zmm" in f.lower("f64[100]").as_text("asm"))
    for name in ("x86-64-v4", "x86-64-v3", "native"):
        try:
            weft.compile(target=name)(lambda x: x + 1)(np.ones(3))
        except weft.Error as problem:
            print(name, problem.code, problem.message)
        else:
            print(name, "runs")
"""


@pytest.mark.long
def test_a_machine_can_be_taken_for_an_older_one() -> None:
    for name in ("x86-64-v3", "haswell"):
        ran = run(PROGRAM, WEFT_CPU=name)
        assert ran.returncode == 0, ran.stderr
        first, *others = ran.stdout.splitlines()
        assert float(first.split()[0]) == pytest.approx(100 * np.tanh(1.0), rel=1e-15)
        assert first.split()[1] == "False"
        assert others == ["x86-64-v4 W402 target='x86-64-v4' has avx512bw, avx512cd, avx512dq, "
                          f"avx512f and avx512vl, which this CPU ({name}) lacks",
                          "x86-64-v3 runs", "native runs"]


@pytest.mark.long
def test_a_machine_is_not_taken_for_one_that_can_do_more() -> None:
    program = partial(run, "import weft, numpy as np\nweft.compile(lambda x: x + 1)(np.ones(3))")
    assert "WEFT_CPU='skylake-foo' is no name of a CPU" in program(WEFT_CPU="skylake-foo").stderr
    for name in [name for name in MANY if features_of(name) - jit._found()][:1]:
        assert f"W402: WEFT_CPU='{name}' has " in program(WEFT_CPU=name).stderr
    assert program(WEFT_CPU="native").returncode == 0


def test_caches_are_those_of_the_machine(tmp_path: Path) -> None:
    """The smallest of all cores; what is told by halves, or makes no sense, is not believed."""
    def tell(cpu: int, index: int, level: str, kind: str, size: str) -> None:
        place = tmp_path / f"cpu{cpu}/cache/index{index}"
        place.mkdir(parents=True)
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (place / name).write_text(text + "\n")

    usual = (32 << 10, 1 << 20)
    assert measured_caches(usual, tmp_path) == usual
    tell(0, 0, "1", "Data", "48K")
    tell(0, 1, "1", "Instruction", "16K")
    assert measured_caches(usual, tmp_path) == usual
    tell(0, 2, "2", "Unified", "2048K")
    assert measured_caches(usual, tmp_path) == (48 << 10, 2 << 20)
    tell(1, 0, "1", "Data", "32K")
    tell(1, 2, "2", "Unified", "nonsense")
    assert measured_caches(usual, tmp_path) == (32 << 10, 2 << 20)
    tell(2, 2, "2", "Unified", "16K")
    assert measured_caches(usual, tmp_path) == usual


def test_caches_by_name() -> None:
    known = processors._X86.keys() | processors._ARM
    assert caches._BY_NAME.keys() <= known
    assert (cpu_target("znver3").l1, cpu_target("znver3").l2) == (32 << 10, 512 << 10)
    assert cpu_target("sapphirerapids").l2 == 2 << 20
