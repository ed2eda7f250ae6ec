"""What the text of a function leaves out: arithmetic, branches and loops of which all is known."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
from weft.codegen.cpu.text import FunctionText

X = np.arange(12.0).reshape(3, 4)


def lines(f: FunctionText) -> list[str]:
    return [line.strip() for line in str(f).splitlines()[2:-1]]


@pytest.mark.parametrize("instruction, known", [
    ("add i64 3, 4", "7"), ("sub i64 3, 4", "-1"), ("mul i64 -3, 4", "-12"), ("and i64 7, -4", "4"),
    ("icmp slt i64 3, 4", "true"), ("icmp sgt i64 3, 4", "false"), ("icmp sge i64 4, 4", "true"),
    ("add i64 %x, 0", "%x"), ("sub i64 %x, 0", "%x"), ("mul i64 %x, 1", "%x"),
])
def test_what_is_known_is_no_instruction(instruction: str, known: str) -> None:
    f = FunctionText("void", "f", [("i64", "x")])
    assert f(instruction) == known and lines(f) == []


@pytest.mark.parametrize("instruction", [
    "add i64 9223372036854775807, 1", "sub i64 0, %x", "and i64 %x, 0", "add i32 1, 2",
    "icmp ult i64 1, 2", "sdiv i64 7, 2", "fadd double %y, 0", "add <2 x i64> %v, 0"])
def test_what_is_not_known_is_one(instruction: str) -> None:
    f = FunctionText("void", "f", [("i64", "x")])
    assert f(instruction) == "%t1" and lines(f) == [f"%t1 = {instruction}"]


def test_the_least_and_the_most_of_constants() -> None:
    f = FunctionText("void", "f", [])
    assert f.call("i64", "llvm.smin.i64", ("i64", "3"), ("i64", "5")) == "3"
    assert f.call("i64", "llvm.smax.i64", ("i64", "3"), ("i64", "5")) == "5"
    assert lines(f) == [] and not f.declarations


@pytest.mark.parametrize("stop, results", [("0", ["7"]), ("4", ["%t1"]), ("1", ["%t1"])])
def test_a_loop_of_no_or_of_one_round_is_none(stop: str, results: list[str]) -> None:
    f = FunctionText("void", "f", [("i64", "x")])
    with f.carried_loop("0", stop, 4, [("i64", "7")]) as loop:
        assert loop.index == "0"
        loop.next = [f(f"xor i64 %x, {loop.values[0]}")]
    assert loop.results == results
    assert lines(f) == (["%t1 = xor i64 %x, 7"] if stop != "0" else [])


def test_a_loop_of_two_rounds_is_one() -> None:
    f = FunctionText("void", "f", [])
    with f.loop("0", "5", 4) as at:
        f.do(f"call void @g(i64 {at})")
    assert sum(" phi " in line for line in lines(f)) == 1


def test_a_branch_that_is_decided_is_none() -> None:
    f = FunctionText("void", "f", [])
    with f.when("false"), f.loop("0", "9"):
        f.do("fence seq_cst")
    assert lines(f) == [] and f.block == "entry"
    with f.when("true"):
        f.do("fence seq_cst")
    assert lines(f) == ["fence seq_cst"]
    assert f.either("false", ["i64"], lambda: ["1"], lambda: ["2"]) == ["2"]


@pytest.mark.parametrize("function", [
    lambda x: x[0, 0] * 2 + 1, lambda x: x[1] @ x[2], lambda x: x[0, :3].sum(), np.tanh])
def test_one_task_is_no_loop_over_tasks(function: Any) -> None:
    """Arrays of known sizes below a vector have no loops at all."""
    lowered = weft.compile(function).lower(X)
    kernel = re.findall(r"^define internal void @\w+\(ptr %context.*?^}", lowered.as_text("llvm"),
                        re.DOTALL | re.MULTILINE)
    assert kernel and not any("%begin," in text.partition("\n")[2] for text in kernel)
    np.testing.assert_allclose(lowered.compile()(X), function(X), rtol=1e-15)


def text_before(f: FunctionText, label: str) -> str:
    """All that stands before the first block whose name begins so."""
    return str(f).split(f"\n{label}", 1)[0]


def test_arithmetic_without_part_in_a_loop_is_done_before_it_once() -> None:
    f = FunctionText("void", "f", [("i64", "x"), ("ptr", "p")])
    with f.loop("0", "%x") as i, f.loop("0", "%x") as j:
        own = f(f"sdiv i64 {i}, 9")
        again = f(f"sdiv i64 {i}, 9")
        none = f("srem i64 %x, 7")
        inner = f(f"mul i64 {j}, 4")
        f.do(f"call void @g(i64 {own}, i64 {none}, i64 {inner})")
    assert own == again
    outer, first, second, *_ = re.split(r"\nbody\d+:", str(f))
    assert f"{none} = srem i64 %x, 7" in outer
    assert f"{own} = sdiv i64 {i}, 9" in first and f"{inner} = mul" in second


@pytest.mark.parametrize("instruction", [
    "sdiv i64 7, %x", "load i64, ptr %p", "udiv i64 %x, 0", "fadd double %y, 1.0"])
def test_what_may_fail_or_is_no_index_stays_in_its_loop(instruction: str) -> None:
    f = FunctionText("void", "f", [("i64", "x"), ("ptr", "p"), ("double", "y")])
    with f.loop("0", "%x"):
        f(instruction)
    assert instruction not in text_before(f, "body")


def test_what_a_branch_knows_stays_in_it() -> None:
    f = FunctionText("void", "f", [("i64", "x"), ("i1", "c"), ("ptr", "p")])
    with f.loop("0", "%x"), f.when("%c"):
        held = f("load i64, ptr %p")
        with f.loop("0", "%x"):
            inner = f(f"add i64 {held}, 1")
            f.do(f"call void @g(i64 {inner})")
    assert str(f).index(f"{inner} = add") > str(f).index(f"{held} = load")
