"""Groups of small kernels: which calls join one, and that nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.codegen.kernel.launches import group as grouping
from weft.ir.plans.calls import GroupCall, KernelCall
from weft.ir.plans.plan import Group, Launch, Loop, all_steps
from weft.ir.verify.verifier import verify_plan


def sizes_of_groups(function: Any, *specs: Any) -> list[int]:
    """The numbers of launches in the steps of a plan, in order."""
    stages = weft.compile(function).lower(*specs).stages
    verify_plan(stages.plan)
    return [len(step.launches) if isinstance(step, Group) else 1 for step in stages.plan.steps
            if isinstance(step, (Group, Launch))]


def rows(*xs: Any) -> Any:
    """Two kernels for each argument, of which the second reads the first."""
    return [x / np.sum(np.exp(x[::-1]) * np.max(x)) for x in xs]


def test_levels_become_groups() -> None:
    specs = ["f32[3]", "f32[40]", "f32[7]", "f32[9]"]
    alone = sum(sizes_of_groups(rows, specs[0]))
    found = sizes_of_groups(rows, *specs)
    assert sum(found) == alone * 4 and set(found) == {4}


def test_what_is_large_symbolic_or_checked_stays_alone() -> None:
    assert sizes_of_groups(lambda x, y: (x[::-1] * 2, y[::-1] + 1), "f32[9]", "f32[5]") == [2]
    assert sizes_of_groups(lambda x, y: (x[::-1] * 2, y[::-1] + 1), "f32[9]", "f32[900000]") == [
        1, 1]
    assert sizes_of_groups(lambda x, y: (x[::-1] * 2, y[::-1] + 1), "f32[9]", "f32[n]") == [1, 1]
    assert sizes_of_groups(lambda x, y, i: (x[::-1] * 2, y[i]), "f32[9]", "f32[5]", "i64[3]") == [
        1, 1]


def test_a_call_moves_up_by_a_little_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def chain(x: Any, y: Any) -> Any:
        for _ in range(5):
            x = x[::-1] * np.sum(x)
        return x, y * 2

    assert max(sizes_of_groups(chain, "f32[5]", "f32[7]")) == 2
    monkeypatch.setattr(grouping, "NEAR", 1)
    assert sizes_of_groups(chain, "f32[5]", "f32[7]")[0] == 1


def test_groups_in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(xs: Any, ys: Any) -> Any:
        return weft.scan(lambda c, r: ((c[0] * np.sum(r[0]), c[1][::-1] * np.sum(r[1])), None),
                         (xs[0], ys[0]), (xs, ys))[0]

    program = weft.compile(function)
    xs, ys = np.random.default_rng(0).normal(size=(2, 6, 5))
    plan = program.lower(xs, ys).stages.plan
    loop = next(step for step in plan.steps if isinstance(step, Loop))
    assert [len(step.launches) for step in all_steps(loop.body) if isinstance(step, Group)] == [2]
    grouped = program(xs, ys)
    monkeypatch.setattr(grouping, "SMALL", 0)
    for a, b in zip(grouped, weft.compile(function)(xs, ys), strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_member_reads_what_another_makes() -> None:
    def function(*xs: Any) -> Any:
        return rows(*xs), [x + 1 for x in xs], np.sum(xs[0]) * xs[1]

    calls = weft.compile(function).lower("f32[3]", "f32[4]", "f32[5]").stages.lowered
    groups = [call for call in calls if isinstance(call, GroupCall)]
    assert groups and not any(isinstance(call, KernelCall) and call in groups for call in calls)
    for group in groups:
        written = [arg for call in group.calls
                   for param, arg in zip(call.kernel.params, call.args, strict=True)
                   if param.mutable]
        read = [arg for call in group.calls
                for param, arg in zip(call.kernel.params, call.args, strict=True)
                if not param.mutable]
        assert len(set(written)) == len(written) and not set(written) & set(read)
