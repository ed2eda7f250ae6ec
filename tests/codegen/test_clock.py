"""Programs that tell the times of their rows, with a clock that ticks when it is read."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from support.runs import attempted, fail

import weft
from weft.codegen.cpu.jit import compile_object, cpu_target, jit_for
from weft.codegen.cpu.program import emit_program
from weft.codegen.cpu.steps import launches
from weft.frontend.engine.building.pipeline import Stages
from weft.ir.diagnose import Error
from weft.ir.plans.entry import entry_of
from weft.ir.plans.plan import Launch, Plan, all_steps
from weft.ir.plans.times import EVENT, EVENTS, clocked_steps, head_words, with_times
from weft.ir.text.parser import parse_plan
from weft.ir.text.printer import print_plan
from weft.ir.verify.verifier import verify_plan
from weft.runtime.entry.through_ctypes import CtypesCall
from weft.runtime.lifetime import Lifetime

KERNELS = """
kernel @add(x: f64[4], z: f64[4], y: mut f64[4]) {
  par i in 4 by 4 {
    %0: f64 = x[i]
    %1: f64 = z[i]
    %2: f64 = add %0, %1
    y[i] = %2
  }
}

kernel @less(x: f64[4], p: mut bool[]) {
  lane j in 4 {
    %0: f64 = x[j]
    %1: f64 = reduce add %0 over j {lanes 16}
    %2: f64 = const 100.0
    %3: bool = lt %1, %2
    p[] = %3
  }
}

kernel @half(x: f64[4], y: mut f64[4]) {
  par i in 4 by 4 {
    %0: f64 = x[i]
    %1: f64 = const 50.0
    %2: bool = lt %0, %1
    check %2 site 1
    %3: f64 = const 0.5
    %4: f64 = mul %0, %3
    y[i] = %4
  }
}
"""
PLAN = """plan @p(%x: f64[4]) -> (%y: f64[4], %z: f64[4]) arena = 320 {
  check 1 W124 "large"
  alloc %h: f64[4] at 0
  alloc %g: f64[4] at 64
  alloc %p: bool[] at 128
  alloc %a: f64[4] at 192
  alloc %b: f64[4] at 256
  copy %x to %h
  loop t in ROUNDS carry (%h = %g) {
    launch @add(%h, %x, %g) on cpu:0
  }
  group {
    launch @add(%h, %x, %y) on cpu:0
    launch @add(%x, %x, %a) on cpu:0
  }
  group {
    launch @half(%x, %b) on cpu:0
    launch @add(%a, %x, %z) on cpu:0
  }
  launch @less(%x, %p) on cpu:0
  branch %p {
    copy %a to %z
  } else {
    launch @add(%b, %x, %z) on cpu:0
  }
}"""
TICKS = """@ticks = internal global i64 0

define internal i64 @p_now() noinline nounwind {
  %a = load i64, ptr @ticks
  %b = add i64 %a, 1
  store i64 %b, ptr @ticks
  ret i64 %b
}
"""


def plan_of(rounds: int) -> Plan:
    return with_times(parse_plan(KERNELS + PLAN.replace("ROUNDS", str(rounds))))


def told(plan: Plan, x: Any) -> tuple[int, list[list[int]], list[list[int]], int]:
    """Status, (runs, ticks) of each row, rows as they were run, and how many."""
    target, entry = cpu_target(None), entry_of(plan)
    text = re.sub(r"define internal i64 @p_now\(\).*?\n}\n", lambda _: TICKS,
                  emit_program(plan, target, entry), count=1, flags=re.DOTALL)
    assert "@ticks" in text
    library = jit_for(target).link(compile_object(text, target).object, ("p",))
    call = CtypesCall(entry, library.addresses.__getitem__, keep=Lifetime(library.unload),
                      fail=fail)
    rows = len(clocked_steps(plan))
    head = head_words(rows)
    times = np.zeros(head + EVENT * EVENTS, np.int64)
    status, _ = attempted(call, x, times)
    kept = min(int(times[0]), EVENTS)
    return (status, times[1:head].reshape(-1, 2).tolist(),
            times[head:head + EVENT * kept].reshape(-1, EVENT).tolist(), int(times[0]))


@pytest.mark.parametrize("unrolled", [0, 64])
def test_each_row_is_told_once_for_each_run(
    unrolled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launches, "UNROLLED", unrolled)
    plan = plan_of(3)
    kinds = [type(step).__name__ for step in clocked_steps(plan)]
    # A group is one row; one with checks is as many as it has launches.
    assert kinds == ["Copy", "Launch", "Group", "Launch", "Launch", "Launch", "Copy", "Launch"]
    status, totals, rows, count = told(plan, np.full(4, 7.0))
    order = [0, 1, 1, 1, 2, 3, 4, 5, 6]
    assert status == 0
    assert rows == [[row, 2 * at + 1, 2 * at + 2] for at, row in enumerate(order)]
    assert totals == [[order.count(row), order.count(row)] for row in range(8)]
    assert count == len(order)


def test_a_step_that_fails_tells_of_what_it_ran() -> None:
    status, totals, rows, _ = told(plan_of(1), np.full(4, 70.0))
    assert status == 1
    assert [row for row, _, _ in rows] == [0, 1, 2, 3]
    assert totals[3:] == [[1, 1]] + [[0, 0]] * 4


def test_totals_go_on_when_there_is_no_room() -> None:
    _, totals, rows, count = told(plan_of(5000), np.full(4, 1e-3))
    assert count == 5000 + 6
    assert len(rows) == EVENTS
    assert totals[1] == [5000, 5000]
    assert rows[-1] == [1, 2 * EVENTS - 1, 2 * EVENTS]


def test_the_text_says_where_times_go() -> None:
    plan = plan_of(2)
    text = print_plan(plan)
    assert "%times: i64[12305]) -> " in text
    assert "arena = 320 times %times {" in text
    again = parse_plan(text, plan.kernels)
    assert print_plan(again) == text
    assert again.times == "times"
    verify_plan(plan)
    with pytest.raises(Error, match="%times is no parameter for times: i64"):
        verify_plan(parse_plan(text.replace("i64[12305]", "i64[12304]"), plan.kernels))


def test_a_parameter_has_the_name_already() -> None:
    plan = parse_plan(KERNELS + PLAN.replace("ROUNDS", "2").replace("%x", "%times"))
    assert with_times(plan).times == "times_1"


def test_launches_know_the_lines_that_they_compute() -> None:
    """Equal kernels are one, and each launch of it has lines of its own."""
    def both(x: Any, z: Any) -> Any:
        a = np.sort(x)
        return a, np.sort(z)

    stages = weft.compile(both).lower(np.ones(8), np.ones(8)).stages
    assert isinstance(stages, Stages)
    found = [step for step in all_steps(stages.plan.steps) if isinstance(step, Launch)]
    assert len({launch.kernel for launch in found}) == 1
    first = both.__code__.co_firstlineno
    assert [{loc.line for loc in launch.origin.locs} for launch in found if launch.origin] == [
        {first + 1}, {first + 2}]
