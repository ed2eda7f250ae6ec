"""The clock of a program that tells the times of its rows: ``ir/plans/times`` has their layout.

    i64  @f_now()                                  nanoseconds of CLOCK_MONOTONIC
    void @f_note(ptr times, i64 row, i64 start)    a row has ended

The two calls of a row take some 70 ns, nearly all of it to read the clock twice.
"""

from __future__ import annotations

from ....ir.plans.plan import Plan
from ....ir.plans.times import EVENT, EVENTS, clocked_steps, head_words
from ..host.layout import element
from ..text import FunctionText

_MONOTONIC = 1  # Linux's number of the clock
_SECOND = 1_000_000_000


def clock_functions(plan: Plan) -> list[FunctionText]:
    """The two functions, for the module of the program."""
    return [_now(plan.name), _note(plan)]


def _now(name: str) -> FunctionText:
    f = FunctionText("i64", f"{name}_now", [], linkage="internal", attributes="noinline nounwind")
    place = f.alloca("i64", 2, align=8)
    f.call("i32", "clock_gettime", ("i32", str(_MONOTONIC)), ("ptr", place))
    seconds = f(f"load i64, ptr {place}, align 8")
    rest = f(f"load i64, ptr {element(f, 'i64', place, 1)}, align 8")
    whole = f(f"mul i64 {seconds}, {_SECOND}")
    f.ret(f"i64 {f(f'add i64 {whole}, {rest}')}")
    return f


def _note(plan: Plan) -> FunctionText:
    f = FunctionText("void", f"{plan.name}_note",
                     [("ptr", "times"), ("i64", "row"), ("i64", "start")],
                     linkage="internal", attributes="noinline nounwind")
    end = f(f"call i64 @{plan.name}_now()")
    first = f("shl i64 %row, 1")
    for at, more in ((1, "1"), (2, f(f"sub i64 {end}, %start"))):
        place = element(f, "i64", "%times", f(f"add i64 {first}, {at}"))
        total = f(f"add i64 {f(f'load i64, ptr {place}, align 8')}, {more}")
        f.do(f"store i64 {total}, ptr {place}, align 8")
    count = f("load i64, ptr %times, align 8")
    f.do(f"store i64 {f(f'add i64 {count}, 1')}, ptr %times, align 8")
    with f.when(f(f"icmp ult i64 {count}, {EVENTS}")):
        base = f(f"add i64 {f(f'mul i64 {count}, {EVENT}')}, "
                 f"{head_words(len(clocked_steps(plan)))}")
        for at, word in enumerate(("%row", "%start", end)):
            place = element(f, "i64", "%times", f(f"add i64 {base}, {at}"))
            f.do(f"store i64 {word}, ptr {place}, align 8")
    f.ret()
    return f
