"""Text of plans that are trees: round trip, and errors with line and column."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from plan_trees import plan_trees

from weft.ir.diagnose import TextError
from weft.ir.plans.plan import Plan
from weft.ir.text.parser import parse_plan
from weft.ir.text.printer import print_plan
from weft.ir.text.same import same_plan


@pytest.mark.long
@settings(max_examples=300)
@given(plan_trees())
def test_round_trip(plan: Plan) -> None:
    text = print_plan(plan, kernels=True)
    parsed = parse_plan(text)
    assert same_plan(parsed, plan)
    assert print_plan(parsed, kernels=True) == text


TEXT = '''
plan @p(%x: f32[n], %rows: f32[m,n]) -> (%y: f32[n]) arena = 128 {
  alloc %h: f32[n] at 0
  alloc %g: f32[n] at 64
  loop t in m carry (%h = %g) {
    launch @k(%rows[m - 1 - t], %h, %g) on cpu:0
  }
  loop s while %more carry (%h = %g) limit 7 {
    test {
      launch @less(%h, %more) on cpu:0
    }
    branch %more {
      copy %h to %y
    } else {
      group {
        launch @k(%h) on cpu:0 checks from 2
      }
    }
  }
  host @fft(%h) -> (%g)
  send %g to cpu:1 key "g"
  recv %y from cpu:1 key "y"
}'''
WRONG = [
    ("(%h = %g) {", "(%h) {", "%h is carried without its next: write %h = %next", "5:24"),
    ("%rows[m - 1 - t]", "%rows[t, 1, 2]", "%rows has 2 dims, not 3", "6:20"),
    ("%rows[m - 1 - t]", "%rows[s]", "'s' is the index of no loop around", "6:20"),
    ("%rows[m - 1 - t]", "%rows[t", "expected indices such as [t]", "6:20"),
    ("copy %h to %y", "copy %h[t] to %y", "'t' is the index of no loop around", "13:14"),
    ("loop s while", "loop n while", "the name 'n' is taken", "8:8"),
    ("loop t in m", "loop t of m", "expected 'in'", "5:10"),
    ("loop t in m carry", "loop t in {", "expected a dim", "5:13"),
    ("limit 7", "limit seven+", "not a dim", ""),
    ("arena = 128", "arena = 128 scratch 64", "not a dim", ""),
    ("arena = 128", "arena = 128 scratch = n", "expected a number", "2:76"),
    ("group {\n        launch", "group {\n        copy", "expected 'launch'", "16:9"),
    ("-> (%g)", "(%g)", "expected '->'", "20:17"),
    (' key "g"', "", "expected 'key'", "22:3"),
    ("from cpu:1", "to cpu:1", "expected 'from'", "22:11"),
    ("branch %more {", "branches %more {", "expected a step", "12:5"),
    ("\n}", "", "expected a step", ""),
]


@pytest.mark.parametrize(("old", "new", "message", "place"), WRONG)
def test_errors_name_line_and_column(old: str, new: str, message: str, place: str) -> None:
    parse_plan(TEXT)
    assert old in TEXT
    text = TEXT[:TEXT.rindex(old)] + new if old == "\n}" else TEXT.replace(old, new, 1)
    with pytest.raises(TextError, match=re.escape(message)) as caught:
        parse_plan(text)
    if place:
        line, column = map(int, place.split(":"))
        shown = str(caught.value).splitlines()
        margin = re.match(r" *", text.splitlines()[line - 1])
        assert shown[1] == f"  --> line {line}, column {column}" and margin is not None
        assert shown[3].index("^") - len("   |   ") + margin.end() == column - 1
