"""Plans with loops, branches, windows and groups as native code: what the interpreter computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.runs import attempted, fail

from weft.codegen.cpu.jit import compile_object, cpu_target, jit_for
from weft.codegen.cpu.program import emit_program
from weft.codegen.cpu.steps import launches
from weft.ir.diagnose import Error, UnsupportedError
from weft.ir.interp.plan import Outside, run_plan
from weft.ir.plans.entry import entry_of
from weft.ir.plans.plan import Plan, map_loops
from weft.ir.record import replace
from weft.ir.text.parser import parse_plan
from weft.ir.text.printer import print_plan
from weft.ir.verify.verifier import verify_plan
from weft.runtime.entry.through_ctypes import CtypesCall
from weft.runtime.lifetime import Lifetime

KERNELS = '''
kernel @add(x: f64[n], z: f64[n], y: mut f64[n]) {
  par i in n by 8 {
    %0: f64 = x[i]
    %1: f64 = z[i]
    %2: f64 = add %0, %1
    y[i] = %2
  }
}

kernel @less(x: f64[n], p: mut bool[]) {
  lane j in n {
    %0: f64 = x[j]
    %1: f64 = reduce add %0 over j {lanes 16}
    %2: f64 = const 100.0
    %3: bool = lt %1, %2
    p[] = %3
  }
}

kernel @half(x: f64[n], y: mut f64[n]) {
  par i in n by 8 {
    %0: f64 = x[i]
    %1: f64 = const 50.0
    %2: bool = lt %0, %1
    check %2 site 1
    %3: f64 = const 0.5
    %4: f64 = mul %0, %3
    y[i] = %4
  }
}

kernel @count(y: mut f64[n]) {
  par i in n by 8 {
    %0: i64 = index t
    %1: f64 = cast %0
    y[i] = %1
  }
}
'''
TOP = "alloc %h: f64[n] at 0\nalloc %g: f64[n] at (n + 7)//8*64\ncopy %x to %h\n"
BODIES = {
    "carried": TOP + '''
        loop t in m carry (%h = %g) {
          launch @add(%rows[m - 1 - t], %h, %g) on cpu:0
          copy %g to %ys[t]
        }
        copy %h to %y''',
    "in place": TOP + '''
        loop t in m {
          launch @add(%rows[t], %h, %h) on cpu:0
          copy %h to %ys[m - 1 - t]
        }
        copy %h to %y''',
    "while": TOP + '''
        loop t while %more carry (%h = %g) limit 9 {
          test {
            alloc %more: bool[] at (n + 7)//8*128
            launch @less(%h, %more) on cpu:0
          }
          launch @add(%h, %x, %g) on cpu:0
        }
        copy %h to %y
        copy %rows to %ys''',
    "branches": TOP + '''
        loop t in m {
          branch %which[t] {
            launch @add(%h, %rows[t], %h) on cpu:0
          } else {
            branch %which[m - 1 - t] {
              launch @half(%h, %h) on cpu:0
            }
          }
          copy %h to %ys[t]
        }
        copy %h to %y''',
    "in turn": TOP + '''
        alloc %a: f64[n] at (n + 7)//8*128
        alloc %b: f64[n] at (n + 7)//8*192
        copy %x to %g
        launch @add(%x, %x, %a) on cpu:0
        loop t in m carry (%h = %a = %g = %b) {
          launch @add(%rows[t], %h, %h) on cpu:0
          launch @add(%a, %h, %b) on cpu:0
          copy %g to %ys[t]
        }
        copy %a to %y''',
    "changing places": TOP + '''
        launch @add(%x, %x, %g) on cpu:0
        loop t in m carry (%h = %g) {
          launch @add(%rows[t], %h, %h) on cpu:0
          copy %g to %ys[t]
        }
        launch @add(%g, %h, %y) on cpu:0''',
    "nested": TOP + '''
        loop t in m carry (%h = %g) {
          alloc %a: f64[n] at (n + 7)//8*128
          alloc %b: f64[n] at (n + 7)//8*192
          launch @count(%a) on cpu:0
          loop s in 3 carry (%a = %b) {
            launch @add(%rows[t], %a, %b) on cpu:0
          }
          launch @add(%a, %h, %g) on cpu:0
          copy %a to %ys[t]
        }
        copy %h to %y''',
    "memory of an earlier round": TOP + '''
        loop t in m {
          alloc %a: f64[n] at (n + 7)//8*128
          alloc %c: f64[n] at (n + 7)//8*192
          launch @count(%c) on cpu:0
          launch @add(%rows[t], %x, %a) on cpu:0
          launch @add(%c, %a, %a) on cpu:0
          alloc %b: f64[n] at (n + 7)//8*192
          loop s in 3 carry (%a = %b) {
            launch @add(%rows[t], %a, %b) on cpu:0
          }
          copy %a to %ys[t]
        }
        copy %h to %y''',
    "loops in a row": TOP + "".join(f'''
        loop t in {count} {{
          launch @add(%rows[m - 1 - t], %h, %h) on cpu:0
        }}''' for count in ("m", "m - m//2", "m//2", "m") * 2) + '''
        copy %h to %y
        copy %rows to %ys''',
    "windows of what is carried": '''
        alloc %h: f64[m,n] at 0
        alloc %g: f64[m,n] at (m*n + 7)//8*64
        copy %rows to %h
        loop t in 3 carry (%h = %g) {
          copy %h to %g
          loop s in m {
            launch @add(%h[s], %x, %g[m - 1 - s]) on cpu:0
          }
        }
        copy %h to %ys
        copy %h[m - 1] to %y''',
    "groups": TOP + '''
        loop t in m {
          group {
            launch @add(%rows[t], %h, %ys[t]) on cpu:0
            launch @add(%h, %h, %g) on cpu:0
          }
          group {
            launch @half(%g, %h) on cpu:0
            launch @half(%ys[t], %y) on cpu:0 checks from 2
          }
        }''',
}
# What is sound only where there are rows.
FOR_A_ROW = ("groups", "windows of what is carried")


def fused(plan: Plan) -> Plan:
    """The plan with loops that are one piece of code each."""
    return replace(plan, steps=map_loops(plan.steps, lambda loop: replace(loop, fused=True)))


def sized(name: str, **sizes: int) -> Plan:
    """A plan for known sizes, so that a fused loop may have its buffers as locals."""
    text = print_plan(plan_of(name), kernels=True)
    for dim, size in sizes.items():
        text = re.sub(rf"\b{dim}\b", str(size), text)
    return parse_plan(text)


def plan_of(name: str) -> Plan:
    checks = 'check 1 W124 "large"\ncheck 2 W124 "larger"\n'
    plan = parse_plan(f"{KERNELS}plan @p(%x: f64[n], %rows: f64[m,n], %which: bool[m]) -> "
                      f"(%y: f64[n], %ys: f64[m,n]) arena = ((n + 7)//8 + (m*n + 7)//8)*256 + 64 {{"
                      f"{checks}{BODIES[name]}\n}}")
    if name not in FOR_A_ROW:
        verify_plan(plan)
    return plan


def native(plan: Plan) -> Callable[..., tuple[int, list[Any]]]:
    """The program: from arguments to its status and its results."""
    target = cpu_target(None)
    entry = entry_of(plan)
    code = compile_object(emit_program(plan, target, entry), target, 2)
    jit = jit_for(target)
    sizes = ["p_arena"] if entry.arena is None else []
    library = jit.link(code.object, ("p", *sizes, "p_call", "p_python"))
    call = CtypesCall(entry, library.addresses.__getitem__, keep=Lifetime(library.unload),
                      fail=fail, threads=2)

    def run(*args: Any) -> tuple[int, list[Any]]:
        return attempted(call, *args)

    return run


def arguments(n: int, m: int, scale: float = 1.0) -> list[Any]:
    rng = np.random.default_rng(n + m)
    return [rng.integers(0, 5, n) * scale, rng.integers(0, 5, (m, n)) * scale,
            rng.integers(0, 2, m) > 0]


@pytest.mark.parametrize("unrolled", [0, 8, 10**6])
@pytest.mark.parametrize("name", BODIES)
def test_trees(name: str, unrolled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "UNROLLED", unrolled)
    plan = plan_of(name)
    run = native(plan)
    for n, m in ((1, 1), (5, 4), (17, 1), (3, 9)):
        args = arguments(n, m)
        for got, want in zip(run(*args)[1], run_plan(plan, args), strict=True):
            np.testing.assert_array_equal(got, want)
    if name not in FOR_A_ROW:
        args = arguments(4, 0)
        np.testing.assert_array_equal(run(*args)[1][0], run_plan(plan, args)[0])


@pytest.mark.parametrize("name", BODIES)
def test_fused_trees(name: str) -> None:
    """Whatever is a local, and whatever is exchanged."""
    plan = fused(plan_of(name))
    if name not in FOR_A_ROW:
        verify_plan(plan)
    text = print_plan(plan, kernels=True)
    assert " fused {" in text
    assert print_plan(parse_plan(text), kernels=True) == text
    run = native(plan)
    for n, m in ((1, 1), (5, 4), (17, 1), (3, 9)):
        args = arguments(n, m)
        known = native(fused(sized(name, n=n, m=m)))
        for got, small, want in zip(
                run(*args)[1], known(*args)[1], run_plan(plan, args), strict=True):
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(small, want)
    if name not in FOR_A_ROW:
        args = arguments(4, 0)
        want = run_plan(plan, args)[0]
        np.testing.assert_array_equal(run(*args)[1][0], want)
        np.testing.assert_array_equal(native(fused(sized(name, n=4, m=0)))(*args)[1][0], want)


def test_a_large_group_is_one_parallel_launch() -> None:
    """Sizes that go to the workers; cuts fall inside of members and between them."""
    plan = plan_of("groups")
    run = native(plan)
    for n in (8 * 40_000, 300_001):
        args = arguments(n, 2)
        for got, want in zip(run(*args)[1], run_plan(plan, args), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("unrolled", [0, 10**6])
def test_a_check_that_fails_in_a_loop_ends_the_program(
        unrolled: int, one: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "UNROLLED", unrolled)
    plan = fused(plan_of("groups")) if one else plan_of("groups")
    run = native(plan)
    for row, message in ((0.0, "large"), (90.0, "larger")):
        args = arguments(4, 3)
        args[0][:] = 60.0 - row
        args[1][:] = row
        with pytest.raises(Error, match=f'W124: {message}$'):
            run_plan(plan, args)
        assert run(*args)[0] == (1 if message == "large" else 2)


def test_what_is_sent_is_received() -> None:
    one = parse_plan('plan @a(%x: f64[3]) -> (%y: f64[3]) arena = 0 {\n  copy %x to %y\n'
                     '  send %y to cpu:1 key "k"\n}')
    two = parse_plan('plan @b(%x: f64[3]) -> (%y: f64[3], %z: f64[3]) arena = 0 {\n'
                     '  recv %y from cpu:0 key "k"\n  host @twice(%y) -> (%z)\n}')
    for plan in (one, two):
        verify_plan(plan)
        assert print_plan(parse_plan(print_plan(plan))) == print_plan(plan)
    sent: dict[tuple[str, str], Any] = {}
    run_plan(one, [np.arange(3.0)], outside=Outside(sent=sent))
    outside = Outside({"twice": lambda x: 2 * x}, sent, "cpu:1")
    y, z = run_plan(two, [np.zeros(3)], outside=outside)
    np.testing.assert_array_equal(y, np.arange(3.0))
    np.testing.assert_array_equal(z, 2 * np.arange(3.0))
    assert not sent
    with pytest.raises(Error, match="has sent nothing under the key \"k\""):
        run_plan(two, [np.zeros(3)], outside=outside)


@pytest.mark.parametrize("step", ["host @twice(%x) -> (%y)", 'send %x to cpu:1 key "k"',
                                  'recv %y from cpu:1 key "k"'])
def test_steps_without_native_code_are_refused(step: str) -> None:
    plan = parse_plan(f"plan @a(%x: f64[3]) -> (%y: f64[3]) arena = 0 {{\n  {step}\n}}")
    with pytest.raises(UnsupportedError, match=f"W113: a step '{step[:4]}' has no native code"):
        emit_program(plan, cpu_target("x86-64-v3"), entry_of(plan))
