"""Rounds of loops in parts: what follows from the round before in turn, the rest in vectors."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fenced import Fenced
from fuzz import elements

import weft
from weft.codegen.cpu.steps.rounds import trial_of
from weft.codegen.kernel.rounds.distribute import distribute
from weft.codegen.kernel.rounds.merge import merge
from weft.ir.plans.plan import Loop, Window
from weft.ir.text.parser import parse_kernel, parse_plan
from weft.ir.text.printer import print_kernel

ROUND = """
kernel @round(x0: f64[], x1: f64[], y0: mut f64[], y1: mut f64[100]) {
  %0: i64 = index t0
  %1: f64 = cast %0
  %2: f64 = x0[]
  %3: f64 = mul %1, %2
  %4: f64 = cos %3
  %5: f64 = x1[]
  %6: f64 = mul %5, %4
  %7: f64 = add %6, %4
  y0[] = %7
  %8: f64 = log %7
  y1[t0] = %8
}
"""
PARTS = ("""
kernel @round_0(x0: f64[], r0: mut f64[]) {
  %0: i64 = index t0
  %1: f64 = cast %0
  %2: f64 = x0[]
  %3: f64 = mul %1, %2
  %4: f64 = cos %3
  r0[] = %4
}
""", """
kernel @round_1(x1: f64[], y0: mut f64[], r1: mut f64[], r0: mut f64[]) {
  %4: f64 = r0[]
  %5: f64 = x1[]
  %6: f64 = mul %5, %4
  %7: f64 = add %6, %4
  r1[] = %7
  y0[] = %7
}
""", """
kernel @round_2(y1: mut f64[100], r1: mut f64[]) {
  %7: f64 = r1[]
  %8: f64 = log %7
  y1[t0] = %8
}
""")
# The numbers of rounds are around the lengths of pieces, and of pieces of which there are parts.
COUNTS = (0, 1, 2, 255, 256, 257, 2047, 2048, 2049, 5000)


def test_what_is_in_turn_is_a_part_of_its_own() -> None:
    kernel = parse_kernel(ROUND)
    parts = distribute(kernel, "t0", {"x1": "h", "y0": "h"})
    assert [part.states for part in parts] == [frozenset(), {"h"}, frozenset()]
    for part, text in zip(parts, PARTS, strict=True):
        named = print_kernel(parse_kernel(text)).strip()
        assert print_kernel(part.kernel).strip() == named


@pytest.mark.parametrize("text", [
    ROUND.replace("cos", "neg").replace("log", "neg"),            # little to do beside
    ROUND.replace("  %5: f64 = x1[]\n", "  %5: f64 = x1[]\n  %9: f64 = neg %5\n")
         .replace("cos %3", "cos %9").replace("%9: f64 = neg %5\n", "")
         .replace("  %4: f64", "  %9: f64 = x1[]\n  %4: f64"),    # all of it in turn
], ids=["little", "all in turn"])
def test_what_is_best_left_whole(text: str) -> None:
    kernel = parse_kernel(text.replace("  %8: f64 = log %7\n  y1[t0] = %8\n", ""))
    assert distribute(kernel, "t0", {"x1": "h", "y0": "h"}) == ()


def test_sums_are_left_to_others() -> None:
    """A number that terms are added to in turn, and nothing else reads: LLVM makes vectors of the
    terms, and adds lane by lane."""
    text = ROUND.replace("mul %5, %4", "neg %4").replace("add %6, %4", "add %5, %6").replace(
        "log %7", "log %6")
    assert distribute(parse_kernel(text), "t0", {"x1": "h", "y0": "h"}) == ()


def test_a_round_is_merged() -> None:
    """What one launch leaves for the next is a value; both ways of a branch are computed, and a
    term that one of them adds is a term or nothing; an element is read where its way is taken, if
    it may be out of its array."""
    plan = parse_plan(KERNELS + PLAN)
    loop = next(step for step in plan.steps if isinstance(step, Loop))
    found = merge(plan, plan.types(), loop.body, ["h.next"], {"t0": 9})
    assert found is not None
    assert found.args["a0"] == Window("h")
    assert print_kernel(found.kernel).strip() == print_kernel(parse_kernel(MERGED)).strip()
    outside = merge(plan, plan.types(), loop.body, ["h.next"], {"t0": 10})
    assert outside is not None
    assert "= a2[t0] if %2" in print_kernel(outside.kernel)


KERNELS = """
kernel @test(x0: f64[], y0: mut bool[]) {
  %0: f64 = x0[]
  %1: f64 = const 0.5
  %2: bool = gt %0, %1
  y0[] = %2
}
kernel @cell(x0: f64[9], x1: f64[], y0: mut f64[]) {
  %0: f64 = x0[t0]
  %1: f64 = x1[]
  %2: f64 = add %1, %0
  y0[] = %2
}
kernel @kept(x1: f64[], y0: mut f64[9]) {
  seq u in 1 by 1 {
    %0: i64 = index t0 + u
    %1: f64 = x1[]
    y0[%0] = %1
  }
}
"""
PLAN = """
plan @f(%x: f64[9], %h: f64[]) -> (%y: f64[9]) arena = 128 {
  alloc %h.next: f64[] at 0
  loop t0 in 9 carry (%h = %h.next) fused {
    alloc %gt: bool[] at 64
    launch @test(%h, %gt) on cpu:0
    branch %gt {
      launch @cell(%x, %h, %h.next) on cpu:0
    } else {
      copy %h to %h.next
    }
    launch @kept(%h.next, %y) on cpu:0
  }
}
"""
MERGED = """
kernel @merged(a0: f64[], a1: mut bool[], a2: f64[9], a3: mut f64[], a4: mut f64[9]) {
  %0: f64 = a0[]
  %1: f64 = const 0.5
  %2: bool = gt %0, %1
  a1[] = %2
  %3: bool = not_ %2
  %4: f64 = a2[t0]
  %6: f64 = const -0.0
  %7: f64 = select %3, %6, %4
  %8: f64 = add %0, %7
  a3[] = %8
  a4[t0] = %8
}
"""


EXCHANGED = """
kernel @cell(x0: f64[9], x1: f64[], y0: mut f64[]) {{
  %0: f64 = x0[t0]
  %1: f64 = x1[]
  %2: f64 = sin %0
  %3: f64 = exp %2
  %4: f64 = add %1, %3
  y0[] = %4
}}
plan @f(%x: f64[9], %p: f64[]) -> (%y: f64[]) arena = 128 {{
  alloc %h: f64[] at 0
  alloc %g: f64[] at 64
  copy %p to %h
  copy %p to %g
  loop t0 in 9 carry (%h = %g) fused {{
    launch @cell(%x, %{0}, %{1}) on cpu:0
  }}
  copy %h to %y
}}
"""


@pytest.mark.parametrize(("read", "written"), [("h", "g"), ("g", "h"), ("g", "g")])
def test_rounds_that_read_both_of_what_they_exchange_have_no_parts(read: str, written: str) -> None:
    plan = parse_plan(EXCHANGED.format(read, written))
    loop = next(step for step in plan.steps if isinstance(step, Loop))
    trial = trial_of(plan, plan.types(), loop, {"h", "g"}, {"h", "g"}, {"t0": 9})
    assert (trial is not None) == (read == "h")


def _driven(n: int, a: float) -> float:
    y = 1.0
    for k in range(n):
        y = y + 0.01 * (math.cos(k * a) - 0.5 * y)
    return y


def _likelihood(r: Any, a: float) -> Any:
    h, s = a, 0.0
    all_ = np.zeros(len(r))
    for t in range(len(r)):
        h = 0.1 + 0.2 * r[t] * r[t] + 0.5 * h
        s += math.log(h) + r[t] * r[t] / h
        all_[t] = h
    return s, all_


def _two_states(n: int, a: float) -> Any:
    x, v, kept = 1.0, 0.0, 0.0
    for k in range(n):
        v = v - 0.01 * x + 0.001 * math.sin(a * k)
        x = x + 0.01 * v
        kept = kept * 0.9 + math.exp(-x * x)
    return x, v, kept


def _integers(n: int, a: int) -> int:
    s, x = 0, a
    for k in range(n):
        x = (x * 16807) % 2147483647
        s += (k * k) % 7 + x // 3 % 5
    return s


def _counted(n: int, a: float) -> int:
    c = 0
    for k in range(n):
        if math.sqrt(k) * a < 20.0:
            c += 1
    return c


def _shifted(r: Any, a: float) -> Any:
    """Each round reads what the one before has seen."""
    before, out = a, np.zeros(len(r))
    for t in range(len(r)):
        out[t] = math.exp(-before) + before
        before = r[t]
    return out


def _ways(r: Any, a: float) -> Any:
    """Ways of branches with what is unusual, or fails, in others."""
    s, m, low, out = 0.0, 0, -a, np.zeros(len(r))
    for t in range(len(r)):
        if r[t] > 0:
            s += math.log(r[t])
            out[t] = math.sqrt(r[t])
        elif r[t] < -1:
            s -= math.exp(r[t]) / (r[t] + 1)
            m += 1
        else:
            low = min(low, math.sin(r[t]) + 1e-3 * low)
        if t > 1 and r[t - 2] > r[t]:
            out[t] += r[t - 2]
    return s, m, low, out


def _negative(r: Any, a: float) -> Any:
    """The signs of zeros, of which some are taken away and others are not."""
    s, p = -0.0, 0.0
    for t in range(len(r)):
        if r[t] > 5.0:
            s += math.exp(r[t])
        else:
            p -= r[t] * 0.0 * math.exp(r[t])
    return math.copysign(1.0, s), math.copysign(1.0, p)


@pytest.mark.parametrize("function, wants", [
    (_ways, True), (_negative, True), (_driven, False), (_likelihood, True),
    (_two_states, False), (_counted, False), (_shifted, True)],
    ids=lambda each: getattr(each, "__name__", "")[1:])
def test_rounds_are_right(function: Callable[..., Any], wants: bool) -> None:
    compiled = weft.compile(function, dynamic={"r": {0: "n"}} if wants else None)
    for n in COUNTS:
        first = np.random.default_rng(n).normal(size=n) if wants else n
        got, want = compiled(first, 0.7), function(first, 0.7)
        for one, other in zip(*(each if isinstance(each, tuple) else (each,)
                                for each in (got, want)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_integers_are_exact() -> None:
    compiled = weft.compile(_integers)
    for n in COUNTS:
        assert compiled(n, 42) == _integers(n, 42)


def test_what_is_unusual_comes_once_more() -> None:
    """Sines of large numbers and products beyond 32 bits have ways of their own; pieces of rounds
    with and without some give what each has to."""
    def waves(n: int, a: float) -> float:
        s = 0.0
        for k in range(n):
            s = 0.5 * s + math.sin(a * k * k)
        return s

    def products(n: int, a: int) -> int:
        s = 0
        for k in range(n):
            s += (k + a) * (k - a) % 11
        return s

    for a in (1.0, 1e3, 1e15):
        assert weft.compile(waves)(6000, a) == pytest.approx(waves(6000, a), rel=1e-12)
    for a in (1, (1 << 31) - 3000, 1 << 31):
        assert weft.compile(products)(6000, a) == products(6000, a)


def test_the_first_failure_is_told() -> None:
    """Of two checks that fail in a piece, that of the earlier round; what was before stays."""
    state = weft.Variable(np.zeros(3), name="state")

    def fails(n: int, first: int, second: int) -> float:
        s = 0.0
        for k in range(n):
            s = 0.9 * s + 1.0 / (k - first)
            s = 0.9 * s + math.log(second - k)
        state.assign(np.full(3, s))
        return s

    compiled = weft.compile(fails)
    with pytest.raises(ZeroDivisionError) as divided:
        compiled(5000, 3000, 3001)
    assert "W133" in str(divided.value) and "1.0 / (k - first)" in str(divided.value)
    with pytest.raises(ValueError, match="math domain error"):
        compiled(5000, 3001, 3000)
    with pytest.raises(ZeroDivisionError):
        compiled(5000, 3000, 3000)
    np.testing.assert_array_equal(state.numpy(), np.zeros(3))
    assert compiled(2000, -1, 4000) == pytest.approx(_plain(2000, -1, 4000), rel=1e-12)


def _plain(n: int, first: int, second: int) -> float:
    s = 0.0
    for k in range(n):
        s = 0.9 * s + 1.0 / (k - first)
        s = 0.9 * s + math.log(second - k)
    return s


def test_nothing_is_stored_where_something_unusual_says() -> None:
    """The place of a store is computed of a sine that is far off in a trial."""
    def marks(out: Any, n: int, a: float) -> Any:
        for k in range(n):
            out[int(5 + 4 * math.sin(a * k))] = k + 1.0
        return out

    for a in (1e14, 3e15):
        want = marks(np.zeros(10), 700, a)
        np.testing.assert_array_equal(weft.compile(marks)(np.zeros(10), 700, a), want)


def test_an_index_out_of_range_reads_nothing() -> None:
    def reads(x: Any, n: int) -> float:
        s = 0.0
        for k in range(n):
            s = 0.5 * s + math.sqrt(x[k])
        return s

    compiled, x = weft.compile(reads), np.arange(3000.0)
    assert compiled(x, 3000) == reads(x, 3000)
    with pytest.raises(IndexError, match="out of range"):
        compiled(x, 3001)


def _at_the_end(x: Any) -> Any:
    """The numbers in memory that nobody may touch what is behind of."""
    place = Fenced(x.nbytes, "after", x.itemsize)
    place.put(x)
    return np.frombuffer((ctypes.c_char * x.nbytes).from_address(place.address), x.dtype)


def test_rounds_of_two_loops_are_not_confused() -> None:
    """The second one reads beyond x unless its branch says otherwise, whatever the first does."""
    def two(m: int, n: int, a: float, x: Any, y: Any) -> Any:
        s = r = 0.0
        for j in range(m):
            for i in range(len(y)):
                s = 0.5 * s + np.sin(a * i + s)
                y[(i * 7 + j) % 50] += s
            for i in range(n):
                v = np.sin(a * i)
                if i < len(y):
                    v += np.sin(x[i])
                r = 0.5 * r + v + s
        return s, r

    x = _at_the_end(np.arange(50.0))
    got, want = (f(3, 3000, 0.1, x, np.arange(50.0)) for f in (weft.compile(two), two))
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_guards_stay_until_all_has_been_asked() -> None:
    """An exponential that is one for all rounds asks, too, and does so late."""
    def late(n: int, a: float, b: float) -> Any:
        out, s, r = np.zeros(1000), 0.0, 0.0
        for k in range(n):
            y = k * a
            s = 0.5 * s + (abs(y) + abs(y - 1.0) + abs(y - 2.0) + abs(y - 3.0) + abs(y - 4.0))
            out[k] = s
            if s > 0.3:
                z = s * a
                r = 0.9 * r + np.exp(b) * (abs(z) + abs(z - 1.0) + abs(z - 2.0) + abs(z - 3.0))
        return out, s, r

    compiled = weft.compile(late)
    with pytest.raises(IndexError, match="out of range"):
        compiled(1255, 0.1, 0.2)
    np.testing.assert_allclose(compiled(700, 0.1, 0.2)[2], late(700, 0.1, 0.2)[2], rtol=1e-12)


def test_indices_that_are_proven_may_be_unusual() -> None:
    def far(n: int, a: int, x: Any) -> float:
        s = 0.0
        for k in range(n):
            v = 2147483001 + ((a + k) & 0x1FFFFFFFF)
            s = 0.5 * s + np.sin(x[min(v // 3 - 715827667, 699)])
        return s

    x = _at_the_end(np.random.default_rng(0).random(700))
    for a in (5, 2147484345):
        assert weft.compile(far)(650, a, x) == pytest.approx(far(650, a, x), rel=1e-12)


def test_all_that_is_unusual_is_asked_for() -> None:
    def remainders(n: int, a: float) -> float:
        s = 0.0
        for k in range(n):
            y = k * a
            s = 0.5 * s + (np.fmod(y, 0.7) + np.fmod(y + 1.0, 0.7) + np.fmod(y + 2.0, 0.7))
        return s

    def products(n: int, a: int, b: int) -> Any:
        s = c = 0
        for k in range(n):
            s = (s * 5 + 3) % 17
            if s > 3:
                p = (k + a) * (k + b)
                c += (p & 15) ^ (p & 3) ^ (p & 7) ^ (p & 8) ^ (p & 9) ^ (p & 10)
        return s, c

    assert weft.compile(remainders)(600, 1e20) == pytest.approx(remainders(600, 1e20), rel=1e-9)
    assert weft.compile(products)(600, 9, 8) == products(600, 9, 8)
    with pytest.raises(OverflowError):
        weft.compile(products)(600, 1 << 32, 1 << 32)


def test_rounds_that_come_again_store_once() -> None:
    """What is added to, and places that are what is stored there."""
    def added(n: int, a: float) -> Any:
        out, s = np.zeros(1000), 0.0
        for k in range(n):
            v = math.sin(a * k * k)
            np.add.at(out, k, v)
            s = 0.5 * s + v
        return out, s

    def marked(n: int, a: int) -> Any:
        out, s = np.zeros(1000, np.int64), 0.0
        for k in range(n):
            q = (k * 37 + a) % 1000
            out[q] = q
            s = 0.5 * s + np.sin(q)
        return out, s

    for function, args in ((added, (600, 1e12)), (marked, (65, -(1 << 33)))):
        got, want = weft.compile(function)(*args), function(*args)  # type: ignore[operator]
        np.testing.assert_allclose(got[0], want[0], rtol=1e-12)
        assert got[1] == pytest.approx(want[1], rel=1e-12)


@pytest.mark.filterwarnings("ignore::weft.RecompileWarning")
@pytest.mark.parametrize("seed", [68, 79, 99])
def test_random_programs(seed: int, tmp_path: Path) -> None:
    """Of `fuzz.elements`; rounds of these read elements that they have stored."""
    assert elements.check(seed, tmp_path) == "ok"


@pytest.mark.parametrize("function", [_likelihood, _ways], ids=["likelihood", "ways"])
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
def test_vectors_have_the_bits_of_single_rounds(
    target: str, function: Callable[..., Any]
) -> None:
    """Of any width; level 0 runs rounds as they are written."""
    r = np.random.default_rng(5).normal(size=3001)
    try:
        found = weft.compile(function, target=target)(r, 0.3)
    except weft.Error as problem:
        if problem.code != "W402":
            raise
        pytest.skip(f"this CPU has not what {target} has")
    plain = weft.compile(function, opt=0)(r, 0.3)
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_array_equal(one, other)
