"""Checks of plans, each on a plan that was broken for it; and which buffers may share memory."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import weft
from weft.ir.diagnose import VerifyError
from weft.ir.interp.plan import run_plan
from weft.ir.kernels.access import may_share
from weft.ir.kernels.workspace import scratch_bytes
from weft.ir.plans.plan import Loop, Plan, Window, map_launches
from weft.ir.record import replace
from weft.ir.text.parser import parse, parse_kernel, parse_plan
from weft.ir.text.printer import print_plan
from weft.ir.text.same import same_plan
from weft.ir.verify.verifier import PLAN_CHECKS, verify_kernel, verify_plan

Golden = Callable[[str, str], None]

PLAN = '''
kernel @add(x: f32[n], z: f32[n], y: mut f32[n]) {
  par i in n by 8 {
    %0: f32 = x[i]
    %1: f32 = z[i]
    %2: f32 = add %0, %1
    %3: bool = ge %2, %0
    check %3 site 1
    y[i] = %2
  }
}

kernel @flip(x: f32[n], y: mut f32[n]) {
  par i in n by 8 {
    %0: f32 = x[i]
    y[n - 1 - i] = %0
  }
}

kernel @total(x: f32[n], y: mut f32[]) {
  lane j in n {
    %0: f32 = x[j]
    %1: f32 = reduce add %0 over j {lanes 32, chunk 1024}
    y[] += %1
  }
}

plan @p(%x: f32[n], %z: f32[n] var "w", %one: f32[1])
    -> (%y: f32[n], %s: f32[]) arena = (n + 15)//16*192 {
  check 1 W124 "negative"
  alloc %a: f32[n] at 0
  alloc %b: f32[n] at (n + 15)//16*64
  alloc %c: f32[n,1] at (n + 15)//16*128
  alloc %d: f32[n] at 0
  launch @add(%x, %z, %a) on cpu:0
  launch @add(%a, %x, %b) on cpu:0
  launch @add(%b, %a, %c) on cpu:0
  launch @add(%c, %b, %d) on cpu:0
  launch @add(%d, %d, %d) on cpu:0
  launch @flip(%d, %y) on cpu:0
  copy %one to %s
  launch @total(%y, %s) on cpu:0
}'''


def test_the_sound_plan() -> None:
    verify_plan(parse_plan(PLAN))


def test_a_kernel_may_add_to_what_it_has_stored() -> None:
    """Only what a kernel needs from before must have been written before."""
    verify_plan(parse_plan('''
        kernel @twice(x: f32[4], y: mut f32[4]) {
          par i in 4 by 1 {
            %0: f32 = x[i]
            y[i] = %0
            y[i] += %0
          }
        }
        plan @p(%x: f32[4]) -> (%y: f32[4]) arena = 0 { launch @twice(%x, %y) on cpu:0 }'''))


BROKEN_PLANS = [
    ("check_kernels", "launch @total", "launch @sum", "no kernel @sum"),
    ("check_buffers", "alloc %b", "alloc %x", "the name %x is taken"),
    ("check_buffers", "%s: f32[])", "%x: f32[])", "the name %x is taken"),
    ("check_buffers", "@add(%x, %z, %a)", "@add(%x, %z, %q)", "no buffer %q above"),
    ("check_buffers", "copy %one", "copy %two", "no buffer %two above"),
    ("check_arguments", "(%y, %s)", "(%y, %y, %s)", "3 buffers for 2 parameters"),
    ("check_arguments", "(%y, %s)", "(%s, %s)", "%s is f32[], parameter x is f32[n]"),
    ("check_arguments", "alloc %a: f32", "alloc %a: i32", "parameter y is f32[n]"),
    ("check_arguments", "copy %one to %s", "copy %z to %s", "%s is f32[]"),
    ("check_dims", "%a: f32[n] at 0", "%a: f32[n] at 64*m", "nothing binds dim m"),
    ("check_dims", "%s: f32[])", "%s: f32[], %r: f32[m])", "a dim that nothing binds"),
    ("check_dims", "= (n + 15)", "= (m + 15)", "a dim that no parameter binds"),
    ("check_dims", "par i in n by", "par i in m by", "nothing binds dim m"),
    ("check_dims", "  alloc %a", "  require 1: m >= 3\n  alloc %a",
     "a dim that nothing binds"),
    ("check_sizes", "  alloc %a", "  alloc %q: f32[n - 3] at 0\n  alloc %a",
     "the size n - 3 may be negative"),
    ("check_sites", "  alloc %a", "  require 2: n >= 3\n  alloc %a", "check 2 of 1"),
    ("check_writes", "(%a, %x, %b)", "(%b, %x, %b)", "%b is read before it is written"),
    ("check_writes", "  copy %one to %s\n", "", "%s is read before it is written"),
    ("check_writes", "(%a, %x, %b)", "(%a, %b, %x)", "%b is read before"),
    ("check_writes", "(%x, %z, %a)", "(%x, %x, %z)", "parameter %z is written"),
    ("check_writes", "copy %one to %s", "copy %one to %one", "parameter %one is written"),
    ("check_writes", "%s: f32[])", "%s: f32[], %r: f32[n])", "result %r is never written"),
    ("check_sites", "site 1", "site 2", "check 2 of 1"),
    ("check_sites", "on cpu:0", "on cpu:0 checks from 2", "check 2 of 1"),
    ("check_sites", "on cpu:0", "on cpu:0 checks from 0", "check 0 of 1"),
    ("check_arena", "at (n + 15)//16*64", "at (n + 15)//16*60", "not a multiple of 64"),
    ("check_arena", "*192", "*128", "are not in the arena"),
    ("check_arena", "%a: f32[n] at 0", "%a: f32[n] at -64", "are not in the arena"),
    ("check_arena", "*192", "*128 + 64 scratch = 64", "are not in the arena before its scratch"),
    ("check_scratch", "*192", "*192 + 64 scratch = 32", "the scratch is 32 bytes at"),
    ("check_scratch", "arena = (n + 15)//16*192", "arena = 64 scratch = 128",
     "more than the arena"),
    ("check_sharing", "@flip(%d, %y)", "@flip(%d, %d) on cpu:0\n  launch @flip(%d, %y)",
     "%d is both x and y"),
    ("check_overlap", "*128", "*64", "%c and %b overlap"),
    ("check_overlap", "%b: f32[n] at (n + 15)//16*64", "%b: f32[n] at 64", "overlap"),
]


TREE = '''
kernel @add(x: f32[n], z: f32[n], y: mut f32[n]) {
  par i in n by 8 {
    %0: f32 = x[i]
    %1: f32 = z[i]
    %2: f32 = add %0, %1
    y[i] = %2
  }
}

kernel @less(x: f32[n], p: mut bool[]) {
  lane j in n {
    %0: f32 = x[j]
    %1: f32 = reduce add %0 over j {lanes 32}
    %2: f32 = const 9.0
    %3: bool = lt %1, %2
    p[] = %3
  }
}

plan @p(%x: f32[n], %rows: f32[m,n], %which: bool[5])
    -> (%y: f32[n], %ys: f32[m,n], %z: f32[n], %s: f32[n]) arena = (n + 15)//16*192 + 64 {
  alloc %h: f32[n] at 0
  alloc %g: f32[n] at (n + 15)//16*64
  copy %x to %h
  loop t in m carry (%h = %g) {
    alloc %a: f32[n] at (n + 15)//16*128
    launch @add(%rows[m - 1 - t], %h, %a) on cpu:0
    launch @add(%a, %a, %g) on cpu:0
    copy %g to %ys[t]
  }
  loop r while %more limit 5 {
    test {
      alloc %more: bool[1] at (n + 15)//16*192
      launch @less(%h, %more) on cpu:0
    }
    branch %which[r] {
      launch @add(%h, %x, %h) on cpu:0
    } else {
      launch @add(%h, %h, %h) on cpu:0
    }
  }
  group {
    launch @add(%h, %x, %y) on cpu:0
    launch @add(%h, %h, %z) on cpu:0
  }
  send %y to cpu:1 key "y"
  recv %s from /job:ps/cpu:0 key "s \\"1\\""
  host @wave(%s, %x) -> (%s)
}'''


NEST = '''
kernel @add(x: f32[], y: mut f32[]) {
  %0: f32 = x[]
  %1: f32 = y[]
  %2: f32 = add %0, %1
  y[] = %2
}

plan @p(%x: f32[n,n], %z: f32[n]) -> (%y: f32[n]) arena = 0 {
  copy %z to %y
  loop i in n {
    loop j in i {
      launch @add(%x[i, j], %y[j]) on cpu:0
    }
  }
}'''


def test_a_loop_may_count_to_the_index_of_one_around() -> None:
    verify_plan(parse_plan(NEST))
    for count in ("j", "k"):
        broken = parse_plan(NEST.replace("loop j in i", f"loop j in {count}"))
        with pytest.raises(VerifyError, match=f"nothing binds dim {count}"):
            verify_plan(broken)
    beside = NEST.replace("  loop i in n {", "  loop k in n {\n    copy %x[k] to %y\n  }\n"
                          "  loop i in n {")
    verify_plan(parse_plan(beside))
    with pytest.raises(VerifyError, match="nothing binds dim k"):
        verify_plan(parse_plan(beside.replace("loop j in i", "loop j in k")))


def test_the_sound_tree() -> None:
    plan = parse_plan(TREE)
    verify_plan(plan)
    assert same_plan(parse_plan(print_plan(plan, kernels=True)), plan)
    assert plan.launches == 7


BROKEN_PLANS += [
    ("check_kernels", "[r] {\n      launch @add", "[r] {\n      launch @k",
     "no kernel @k"),
    ("check_buffers", "alloc %more", "alloc %h", "the name %h is taken"),
    ("check_buffers", "copy %g to %ys[t]\n  }", "copy %g to %ys[t]\n  }\n  copy %a to %z",
     "no buffer %a above"),
    ("check_buffers", "while %more", "while %less", "no buffer %less above"),
    ("check_buffers", "(%h = %g)", "(%h = %a)", "no buffer %a above"),
    ("check_dims", "at (n + 15)//16*128", "at t*64", "nothing binds dim t"),
    ("check_arguments", "%ys[t]", "%ys", "%ys is f32[m,n]"),
    ("check_control", "branch %which[r]", "branch %which", "the condition %which is bool[5]"),
    ("check_control", "alloc %g: f32[n]", "alloc %g: f32[n,1]", "its next is f32[n,1]"),
    ("check_control", "(%h = %g)", "(%h = %g, %g = %h)", "%h is carried twice"),
    ("check_control", "(%h = %g)", "(%h = %z)", "%z is the caller's and cannot be carried"),
    ("check_windows", "%rows[m - 1 - t]", "%rows[m - t]", "is not inside of f32[m,n]"),
    ("check_windows", "%ys[t]", "%ys[t + 1]", "is not inside of f32[m,n]"),
    ("check_windows", " limit 5", "", "%which: the loop over r has no end"),
    ("check_windows", " limit 5", " limit 6", "%which[5] is not inside of bool[5]"),
    ("check_writes", "  copy %x to %h\n", "", "%h is carried, but has no first value"),
    ("check_writes", "%a, %a, %g)", "%a, %a, %h)", "%g is read before it is written"),
    ("check_writes", "    copy %g to %ys[t]\n", "", "result %ys is never written"),
    ("check_writes", "copy %g to %ys[t]", "copy %g to %ys[m - 1]", "result %ys is never written"),
    ("check_writes", "%a, %a, %g)", "%a, %a, %ys[t])", "%g is read before it is written"),
    ("check_writes", "launch @less(%h, %more) on cpu:0", "", "condition %more is never written"),
    ("check_writes", "launch @add(%h, %x, %y)", "launch @add(%y, %x, %y)",
     "%y is read before it is written"),
    ("check_arena", "+ 64 {", "+ 0 {", "are not in the arena"),
    ("check_groups", "(%h, %h, %z)", "(%y, %h, %z)", "%y is written by one launch and used by"),
    ("check_groups", "(%h, %h, %z)", "(%h, %h, %y)", "%y is written by one launch and used by"),
    ("check_overlap", "%a: f32[n] at (n + 15)//16*128", "%a: f32[n] at 0", "%a and %h overlap"),
    ("check_overlap", "bool[1] at (n + 15)//16*192", "bool[1] at 0", "%more and %h overlap"),
    ("check_overlap", "%g: f32[n] at (n + 15)//16*64", "%g: f32[n] at 0", "%g and %h overlap"),
    ("check_fused", "(%h = %g) {\n", "(%h = %g) fused {\n    host @wave(%x, %x) -> (%g)\n",
     "a fused loop has a step 'host'"),
    ("check_fused", "limit 5 {\n    test {\n      alloc %more: bool[1] at (n + 15)//16*192\n"
     "      launch @less(%h, %more) on cpu:0", "limit 5 fused {\n    test {\n"
     "      alloc %more: bool[1] at (n + 15)//16*192\n"
     "      launch @less(%h, %more) on cpu:0 parallel if n >= 9",
     "a fused loop has a launch that may be shared out"),
    ("check_times", "+ 64 {", "+ 64 times %x {", "%x is no parameter for times: i64["),
]


@pytest.mark.parametrize(("check", "old", "new", "message"), BROKEN_PLANS)
def test_broken_plans(check: str, old: str, new: str, message: str) -> None:
    text = PLAN if old in PLAN else TREE
    assert old in text
    with pytest.raises(VerifyError, match=f"^W601: {check} of plan @p: .*{re.escape(message)}"):
        verify_plan(parse_plan(text.replace(old, new, 1)))


def test_kernels_of_a_plan_are_verified_and_listed_by_name() -> None:
    with pytest.raises(VerifyError, match="check_params of kernel @add"):
        verify_plan(parse_plan(PLAN.replace("y: mut f32[n]", "y: f32[n]")))
    plan = parse_plan(PLAN)
    with pytest.raises(VerifyError, match="check_kernels of plan @p: kernel @add is listed"):
        verify_plan(replace(plan, kernels={**plan.kernels, "plus": plan.kernels["add"]}))


def test_a_plan_may_require_what_its_sizes_need() -> None:
    short = PLAN.replace("  alloc %a", "  require 1: n >= 3\n"
                                       "  alloc %q: f32[n - 3] at 0\n  alloc %a")
    verify_plan(parse_plan(short))


def test_indices_have_names_of_their_own() -> None:
    plan = parse_plan(TREE)
    steps = tuple(replace(step, index="n") if isinstance(step, Loop) and step.condition else step
                  for step in plan.steps)
    with pytest.raises(VerifyError, match="check_dims of plan @p: the name 'n' is taken"):
        verify_plan(replace(plan, steps=steps))


def test_no_check_is_one_that_cannot_fail() -> None:
    assert {check.__name__ for check in PLAN_CHECKS} == {case[0] for case in BROKEN_PLANS}
    assert all(check.__doc__ for check in PLAN_CHECKS)


def static_plan(first: int, second: int, kernel: str) -> Plan:
    """a = f(x); b = f(a); y = f(b), with a and b at the given offsets."""
    items = parse(kernel + f'''
        plan @p(%x: f32[4,4]) -> (%y: f32[4,4]) arena = 128 {{
          alloc %a: f32[4,4] at {first}
          alloc %b: f32[4,4] at {second}
          launch @f(%x, %a) on cpu:0
          launch @f(%a, %b) on cpu:0
          launch @f(%b, %y) on cpu:0
        }}''')
    assert isinstance(items[-1], Plan)
    return items[-1]


def unary(stmts: str, axes: str = "par i in 4 by 1, lane j in 4") -> str:
    body = "\n".join(stmts.split("; "))
    return f"kernel @f(x: f32[4,4], y: mut f32[4,4]) {{ {axes} {{\n{body}\n}} }}"


TANH = unary("%0: f32 = x[i, j]; %1: f32 = tanh %0; y[i, j] = %1")
MAX = "%1: f32 = reduce max %0 over j; %2: f32 = sub %0, %1; "
IN_PLACE = [
    (TANH, True),
    (unary(f"%0: f32 = x[i, j]; {MAX}y[i, j] = %2"), True),  # one row at a time
    (unary("%0: f32 = x[j, i]; %1: f32 = tanh %0; y[i, j] = %1"), False),  # transposed
    (unary(f"%0: f32 = x[i, j]; y[i, j] = %0; {MAX}y[i, j] += %2"), False),  # read after writing
    (unary("%0: f32 = x[i, j]; y[i, j] = %0; %1: f32 = x[i, j]; y[i, j] = %1"), False),
    (unary("%0: f32 = x[i, 0]; y[i, j] = %0"), False),  # another lane may have written it
    (unary("%0: f32 = const 1.0; y[i, j] = %0"), True),  # not read at all
    (unary("%0: f32 = x[0, j]; y[0, j] = %0"), False),  # tasks of i read what others wrote
    (unary("%0: f32 = x[i, j]; %1: f32 = y[i, j]; %2: f32 = add %0, %1; y[i, j] = %2"), False),
    (unary("%0: f32 = x[i, j]; y[i, j] += %0"), False),
]


@pytest.mark.parametrize(("kernel", "allowed"), IN_PLACE)
def test_sharing_of_memory(kernel: str, allowed: bool) -> None:
    assert may_share(parse_kernel(kernel), "x", "y") == allowed


def test_a_loop_that_comes_after_the_store_forbids_sharing() -> None:
    """The second loop computes %0 again, from memory that the first has overwritten."""
    kernel = parse_kernel('''
        kernel @f(x: f32[4,4], y: mut f32[4,4], z: mut f32[4,4]) {
          par i in 4 by 1, seq j in 4 by 2 {
            %0: f32 = x[i, j]
            %1: f32 = reduce max %0 over j
            %2: f32 = sub %0, %1
            y[i, j] = %0
            z[i, j] = %2
          }
        }''')
    verify_kernel(kernel)
    assert not may_share(kernel, "x", "y")
    assert may_share(kernel, "x", "z")


def test_a_loop_in_a_loop_that_sums_again_forbids_sharing() -> None:
    """The second loop over i computes %1 again, from rows that the first has overwritten."""
    kernel = parse_kernel('''
        kernel @f(x: f32[4,4], y: mut f32[4,4], z: mut f32[4]) {
          seq i in 4 by 1, seq j in 4 by 1 {
            %0: f32 = x[i, j]
            %1: f32 = reduce max %0 over j
            %2: f32 = sub %0, %1
            y[i, j] = %2
            %3: f32 = reduce max %1 over i
            %4: f32 = sub %1, %3
            z[i] = %4
          }
        }''')
    verify_kernel(kernel)
    assert not may_share(kernel, "x", "y")


def test_temporaries_in_place() -> None:
    """A dying temporary and the one written from it may have one place; halves of it not."""
    verify_plan(static_plan(0, 64, TANH))
    verify_plan(static_plan(0, 0, TANH))
    with pytest.raises(VerifyError, match="check_overlap"):
        verify_plan(static_plan(0, 0, IN_PLACE[2][0]))
    plan = static_plan(0, 0, TANH)
    with pytest.raises(VerifyError, match="%b and %a overlap in the arena while both are live"):
        verify_plan(with_args(plan, ("x", "a"), ("a", "b"), ("a", "y")))
    verify_plan(with_args(plan, ("x", "a"), ("a", "a"), ("a", "y")))


def test_a_launch_has_the_scratch_that_its_kernel_needs() -> None:
    plan = weft.compile(lambda x, w: x @ w).lower("f32[b,70]", "f32[70,90]").stages.plan
    verify_plan(plan)
    needed = max(map(scratch_bytes, plan.kernels.values()))
    assert plan.scratch == needed > 0
    less = replace(plan, scratch=needed - 64)
    with pytest.raises(VerifyError, match=rf"check_scratch .* needs {needed} bytes of scratch"):
        verify_plan(less)


def with_args(plan: Plan, *args: tuple[str, ...]) -> Plan:
    """The plan with other operands of its launches."""
    given = iter(args)
    return replace(plan, steps=map_launches(
        plan.steps, lambda launch: replace(launch, args=tuple(map(Window, next(given))))))


def test_golden_message(golden: Golden) -> None:
    with pytest.raises(VerifyError) as caught:
        verify_plan(parse_plan(PLAN.replace("*128", "*64", 1)))
    golden(str(caught.value), "text/verify_plan.txt")


MEASURED = '''
kernel @ones(y: mut f64[k]) {
  par i in k by 8 {
    %0: f64 = const 1.0
    y[i] = %0
  }
}

plan @p(%n: i64[], %m: i64[]) -> (%y: f64[k]) arena = 0 {
  check 1 W103 "negative"
  measure k = %n check 1 arena = 64*((8*k + 63)//64)
  alloc %a: f64[k] at 0 of k
  launch @ones(%a) on cpu:0 parallel if k >= 262144
  copy %a to %y
}'''


def test_a_plan_that_measures() -> None:
    plan = parse_plan(MEASURED)
    verify_plan(plan)
    assert same_plan(parse_plan(print_plan(plan, kernels=True)), plan)
    np.testing.assert_array_equal(run_plan(plan, [np.int64(3), np.int64(0)])[0], np.ones(3))
    with pytest.raises(weft.Error, match="W103: negative"):
        run_plan(plan, [np.int64(-3), np.int64(0)])


@pytest.mark.parametrize(("check", "old", "new", "message"), [
    ("check_dims", "of k", "of q", "no size 'q' is measured above"),
    ("check_arena", "at 0 of k", "at 64 of k", "are not in the arena"),
    ("check_sites", "%n check 1", "%n check 2", "check 2 of 1"),
    ("check_buffers", "measure k = %n", "measure k = %q", "no buffer %q above"),
    ("check_control", "%n: i64[]", "%n: i32[]", "the size %n is i32[]"),
    ("check_dims", "%m: i64[]) -> (%y: f64[k])", "%m: i64[]) -> (%y: f64[q])", "%y: f64[q] has"),
    ("check_dims", "  measure k = %n check 1 arena = 64*((8*k + 63)//64)\n  alloc",
     "  loop t in 3 { measure k = %n check 1 arena = 0 }\n  alloc", "no size 'k' is measured"),
    ("check_dims", "  copy %a", "  measure k1 = %m check 1 arena = 64*k2\n  copy %a",
     "nothing binds dim k2"),
])
def test_a_broken_plan_that_measures(check: str, old: str, new: str, message: str) -> None:
    assert MEASURED.count(old) == 1
    plan = parse_plan(MEASURED.replace(old, new))
    found = next(each for each in PLAN_CHECKS if each.__name__ == check)
    assert any(message in problem for _, problem in found(plan))
    with pytest.raises(VerifyError):
        verify_plan(plan)


def test_a_size_has_a_name_of_its_own() -> None:
    with pytest.raises(weft.Error, match="the name 'k' is taken"):
        parse_plan(MEASURED.replace("  copy %a", "  measure k = %m check 1 arena = 0\n  copy %a"))
