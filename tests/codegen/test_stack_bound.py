"""What a call puts on the stack: in the code that LLVM makes, and in threads with little of it."""

from __future__ import annotations

import platform
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import python
from support import small_stacks
from support.frames import Frame, deepest, frames_of

import weft
from weft.codegen.cpu.host.support import emit_support
from weft.codegen.cpu.host.threads import pool_parts
from weft.codegen.cpu.jit import assembly, cpu_target
from weft.codegen.cpu.sorts.sorter import SORTS
from weft.codegen.cpu.steps.table import StepTable
from weft.codegen.cpu.text import module_text
from weft.frontend.engine.building.pipeline import Stages
from weft.ir.kernels.workspace import scratch_bytes, workspace_bytes
from weft.ir.plans.plan import Launch, all_steps
from weft.ir.plans.stack import SCRATCH_BYTES, STACK_BYTES, WORKSPACE_BYTES

FOLDER = Path(__file__).parents[2] / "examples" / "numpy"
EXAMPLES = runpy.run_path(str(FOLDER / "run.py"))
CASES = list(small_stacks.cases())
TARGETS = ("x86-64-v3", "x86-64-v4")
# Parts in parts of a row of 2**34 keys: twice the 35 bits of their number.
LEVELS = {"weft_match": 62, "weft_build": 62,  # the levels of a nest that is walked
          **{f"weft_quick_i{bits}x{words}": 70 for bits, words in ((32, 1), (64, 1), (64, 2))}}
BODY = re.compile(r'define [^@]*@"?([\w.]+)"?\(ptr %context, i64 %begin, i64 %end')
CONTROL = re.compile(r"define [^@]*@([\w.]+)\(ptr %registers, ptr %args")

on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="reads the assembly of x86-64")


@cache
def shared(target: str | None, opt: int) -> Mapping[str, Frame]:
    """The frames of what all programs share: entry, pool and sorts."""
    machine = cpu_target(target)
    prelude = f'target triple = "{machine.triple}"'
    support = emit_support()
    texts = [module_text(support.functions, support.globals_, prelude),
             module_text(*pool_parts(machine.triple), prelude)]
    texts += [module_text([emit(machine, "weft")], prelude=prelude) for name, emit in SORTS.items()
              if machine.mask_registers or not re.search("columns|quick", name)]
    return {name: frame for text in texts
            for name, frame in frames_of(assembly(text, machine, opt)).items()}


def stack_of(llvm: str, name: str, target: str | None, opt: int = 2) -> tuple[int, list[str]]:
    """The bytes of the deepest chain of a program's call, and the chain.

    A body that launches others runs inside of the pool, and they do so inside of it once more.
    """
    frames = dict(shared(target, opt)) | frames_of(assembly(llvm, cpu_target(target), opt))
    bodies = set(BODY.findall(llvm)) & frames.keys()  # without those that are inlined
    pool = {each for each in frames if "_pool_" in each or each == "weft_parallel_for"}
    again = {each: f"{each} again" for each in pool}
    for each in pool:
        frames[again[each]] = replace(
            frames[each], calls={again.get(called, called) for called in frames[each].calls})
    for each in bodies:
        frames[each] = replace(
            frames[each], calls={again.get(called, called) for called in frames[each].calls})
    launching = {each for each in bodies if not frames[each].calls.isdisjoint(again.values())}
    while more := {each for each in bodies - launching if frames[each].calls & launching}:
        launching |= more
    pointers: dict[str, Any] = dict.fromkeys(pool, bodies)
    pointers |= {again[each]: bodies - launching for each in pool}
    pointers |= {"weft_walk": {f"{name}_call"}, "weft_run": {name},
                 f"{name}_call": {"weft_entry"}}
    pointers |= dict.fromkeys((name, f"{name}_inside"), bodies | set(CONTROL.findall(llvm)))
    return deepest(frames, "weft_door", pointers, LEVELS)


def check(function: Callable[..., Any], args: tuple[Any, ...], target: str | None,
          **options: Any) -> None:
    stages: Stages = weft.compile(function, target=target, **options).lower(*args).stages
    size, chain = stack_of(stages.llvm, stages.plan.name, target, options.get("opt", 2))
    assert size <= STACK_BYTES, f"{size} bytes: {' -> '.join(chain)}"


@on_x86
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_frames(case: small_stacks.Case, target: str | None) -> None:
    check(case[1], case[3], target)


@on_x86
@pytest.mark.parametrize("opt", [0, 3])
@pytest.mark.parametrize("name", ["softmaxes", "turned", "reductions32", "products_f4", "sorts_i4",
                                  "gradient", "scans", "ranks"])
def test_frames_of_other_code(name: str, opt: int) -> None:
    case = next(case for case in CASES if case[0] == name)
    check(case[1], case[3], None, opt=opt)


@on_x86
@pytest.mark.parametrize("name", EXAMPLES["PROGRAMS"])
def test_frames_of_examples(name: str) -> None:
    program = EXAMPLES["load"](name)
    check(program.run, program.inputs("small"), None)


@on_x86
def test_frames_are_seen() -> None:
    """What is over the bound, and what has no bound, is found."""
    text = """
define void @leaf(ptr %p) noinline nounwind {
  %a = alloca i8, i64 3000, align 64
  call void @use(ptr %a)
  ret void
}
define void @grows(i64 %n) noinline nounwind {
  %a = alloca i8, i64 %n, align 16
  call void @use(ptr %a)
  ret void
}
define void @first(ptr %f) noinline nounwind {
  %a = alloca i8, i64 70000, align 16
  call void @leaf(ptr %a)
  call void %f(ptr %a)
  ret void
}
define void @again(ptr %p) noinline nounwind {
  call void @again(ptr %p)
  call void @use(ptr %p)
  ret void
}
declare void @use(ptr)
"""
    frames = frames_of(assembly(text, cpu_target("x86-64-v3")))
    size, chain = deepest(frames, "first", {}, {})
    assert 73000 < size < 73400 and chain == ["first", "leaf"]
    assert 3000 <= deepest(frames, "leaf", {}, {})[0] < 3200
    with pytest.raises(ValueError, match="no fixed size"):
        deepest(frames, "first", {"first": ["grows"]}, {})
    with pytest.raises(ValueError, match="calls itself"):
        deepest(frames, "again", {}, {})
    assert deepest(frames, "again", {}, {"again": 5})[0] == 5 * frames["again"].size


def test_a_large_workspace_is_scratch() -> None:
    """Rows that are kept, tiles that are turned and sums in memory, of which a kernel may have any
    number, count in the plan's scratch as soon as they are more than their share of the stack."""
    for function, specs in (
            (small_stacks.softmaxes, ("f64[40,4000]",)),
            (small_stacks.turned, ("f64[300,300]",) * 9),
            (small_stacks.reductions, ("f32[a,b]",))):
        plan = weft.compile(function).lower(*specs).stages.plan
        large = [kernel for kernel in plan.kernels.values()
                 if workspace_bytes(kernel) > WORKSPACE_BYTES]
        assert large, function.__name__
        assert plan.scratch >= max(map(workspace_bytes, large))
    small = weft.compile(small_stacks.softmax).lower(np.ones((40, 100))).stages.plan
    assert not plan_scratch(small) and max(map(workspace_bytes, small.kernels.values())) > 0


def plan_scratch(plan: Any) -> int:
    return max(map(scratch_bytes, plan.kernels.values()))


def test_more_scratch_than_a_worker_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel with more of it is run by the thread that calls, whose scratch is in the arena."""
    plan = weft.compile(small_stacks.softmaxes).lower(np.ones((4000, 4000))).stages.plan
    launches = [step for step in all_steps(plan.steps) if isinstance(step, Launch)]
    target = cpu_target()
    assert any(step.parallel for step in launches) and StepTable(plan, target, "weft").parallel
    monkeypatch.setattr("weft.codegen.cpu.steps.table.SCRATCH_BYTES", plan.scratch - 1)
    kept = {step.kernel for step in launches if scratch_bytes(
        plan.kernels[step.kernel]) == plan.scratch}
    rows = [row for row in StepTable(plan, target, "weft").rows if row.function[1:] in kept]
    assert rows and not any(row.shared for row in rows)
    assert plan.scratch <= SCRATCH_BYTES


# -- threads and processes with small stacks

def run(way: str, kilobytes: int, limit: str = "") -> None:
    """A process of its own, which a stack that is too small ends."""
    script = Path(small_stacks.__file__)
    command = f'{limit}exec "{sys.executable}" "{script}" {way} {kilobytes}'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=900,
                          check=False)
    where = "\n".join([*done.stdout.splitlines()[-1:], *done.stderr.splitlines()[-20:]])
    assert done.returncode == 0 and done.stdout.endswith("done\n"), f"{done.returncode}: {where}"


@pytest.mark.long
@pytest.mark.parametrize("kilobytes", [96, 256])
def test_calls_in_small_threads(kilobytes: int) -> None:
    run("compiled", kilobytes)


@pytest.mark.long
def test_compilation_in_a_small_thread() -> None:
    run("cold", 256)


@pytest.mark.long
@pytest.mark.parametrize("kilobytes", [256])
def test_processes_with_a_small_stack(kilobytes: int) -> None:
    run("main", 0, f"ulimit -s {kilobytes}; ")


LISTS = """
import sys, threading
import numpy as np
import weft

count = int(sys.argv[1])
numbers = [float(at) for at in range(count)]
pairs = {"pairs": [(at, at + 0.5) for at in range(count // 2)]}
ends = weft.compile(lambda xs: xs[0] + 10 * xs[-1])
last = weft.compile(lambda nest: nest["pairs"][-1][1] - nest["pairs"][1][0])
many = weft.compile(lambda *xs: xs[1] + xs[-1])
whole = weft.compile(lambda xs: np.asarray(xs)[::count // 4] * 2)
found = []

def work():
    for _ in range(2):
        found.append(ends(numbers))
        if count < 100_000:
            found.extend([last(pairs), many(*numbers), *whole(numbers)])

threading.stack_size(256 << 10)
thread = threading.Thread(target=work)
thread.start()
thread.join()
n = count
rest = [n // 2 - 1.5, n, *(n * k / 2 for k in range(4))] if n < 100_000 else []
assert found == 2 * [10 * (n - 1), *rest], found
print("done")
"""


@pytest.mark.long
@pytest.mark.parametrize("count", [40_000, 200_000])
def test_long_lists_in_a_small_thread(count: int) -> None:
    done = python(LISTS, str(count), timeout=900)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2000:]
