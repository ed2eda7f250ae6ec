"""Random programs in plain NumPy, compiled and compared; and what they, or people, found once.

The programs are those of ``fuzz``: ``python -m fuzz --count 20000``, run in this folder, runs more
of them, in the same way.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz import chosen, slices
from fuzz import script as scripts
from fuzz.check import check
from fuzz.compiled import Compiled
from fuzz.draw import FEATURES, program
from fuzz.excused import unknown_dim
from fuzz.jitter import Jitter
from fuzz.minimise import minimise, signature
from fuzz.nested.loops import soon
from fuzz.oracle import Oracle, differs
from fuzz.prelude import laid
from fuzz.program import ArgSet, Leaf, Program, Settings, Step
from fuzz.supervise import run
from programs import wrong_simplify
from scipy import special

import weft
from weft.frontend.numpy_api.select import parts
from weft.frontend.numpy_api.select.parts import Part
from weft.frontend.tracing.arrays.chosen import Chosen
from weft.ir.verify.verifier import verify_plan
from weft.passes import manager

SEED, COUNT, DRAWN = 1, 160, 400


@pytest.mark.parametrize("first", range(0, COUNT, 20))
def test_programs_are_what_numpy_makes_of_them(first: int) -> None:
    """In a process of their own: a crash is the finding of one program, too."""
    reports = run(SEED, 20, jobs=1, first=first, seconds=5)
    findings = [report for report in reports if report["verdict"] == "finding"]
    assert len(reports) == 20
    assert not findings, f"{len(findings)} of 20; the first one:\n" + findings[0]["script"]
    refused = [report for report in reports if report["verdict"] == "refused"]
    assert len(refused) < 6


@pytest.mark.long
def test_programs_of_all_kinds_are_drawn() -> None:
    """The test above would pass on empty programs, too."""
    seen: set[str] = set()
    lengths = []
    for number in range(DRAWN):
        drawn = program(SEED, number)
        seen.update(drawn.features, (feature.split(" ")[0] for feature in drawn.features))
        lengths.append(len(drawn.steps))
    assert {*FEATURES, "call program", "grad program", "session program", "symbolic dims",
            "large arrays", "nest of arguments", "nest of results", "target native",
            "target x86-64-v3", "target x86-64-v4", "opt 0", "opt 1", "opt 2", "opt 3",
            "check threads", "check shared", "check stages", "check interpreter",
            "values special", "values index", "values count", "layout strided",
            "layout backward", "layout unaligned", "layout readonly", "layout F",
            "argument scalar", "argument int", "argument float",
            *(f"argument {name}" for name in ("bool", "int8", "int16", "int32", "int64", "uint8",
                                              "uint16", "uint32", "uint64", "float16", "bfloat16",
                                              "float32", "float64", "complex64", "complex128"))
            } <= seen
    assert sum(lengths) > 2 * DRAWN


@pytest.mark.long
def test_a_number_is_always_the_same_program() -> None:
    code = ("from fuzz.draw import program; from fuzz.script import script; import hashlib;"
            "text = ''.join(script(program(3, n), '') for n in range(20));"
            "print(hashlib.sha256(text.encode()).hexdigest())")
    path = os.pathsep.join(sys.path)
    hashes = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                             check=True, cwd=Path(__file__).parent,
                             env={"PYTHONHASHSEED": seed, "PYTHONPATH": path}).stdout
              for seed in ("1", "2")}
    assert len(hashes) == 1 and hashes != {""}


def first_with(accept: Callable[[Program], bool], seed: int = 5) -> Program:
    return next(drawn for drawn in (program(seed, n) for n in range(500)) if accept(drawn))


@pytest.mark.long
def test_a_wrong_pass_is_found_and_its_program_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = first_with(lambda drawn: drawn.kind == "call" and len(drawn.steps) > 3
                       and any(step.template == "{out} = {0} - {1}" for step in drawn.steps)
                       and all(way.opt for way in drawn.settings)
                       and "diff" not in drawn.source()  # which subtracts, too
                       and check(drawn).verdict == "ok", seed=6)
    monkeypatch.setattr(manager, "simplify", wrong_simplify("sub", "add"))
    outcome = check(drawn)
    assert outcome.verdict == "finding"
    small = minimise(drawn, lambda candidate: check(candidate).verdict == "finding")
    assert len(small.steps) <= 2 < len(drawn.steps)
    assert " - " in small.source() and len(small.argsets) == 1
    monkeypatch.undo()
    assert check(small).verdict == "ok"


@pytest.mark.parametrize("kind", ["call", "grad", "session"])
def test_a_script_shows_both_sides(kind: str, tmp_path: Path) -> None:
    drawn = first_with(lambda drawn: drawn.kind == kind and check(drawn).verdict == "ok", seed=6)
    path = tmp_path / "found.py"
    path.write_text(scripts.script(drawn, "a mismatch"))
    shown = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert shown.stdout and "raises" not in shown.stdout.replace("raises IndexError", "")


WORKER = """
import json, os, signal, sys, time
if sys.argv[1] == "--one":
    os.kill(os.getpid(), signal.SIGSEGV)
for n in range(int(sys.argv[2]), int(sys.argv[3])):
    print(json.dumps({"start": n}), flush=True)
    if n == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    if n == 5:
        time.sleep(60)
    print(json.dumps({"done": n, "verdict": "ok", "what": "", "features": []}), flush=True)
"""


@pytest.mark.long
def test_crashes_and_hangs_are_findings_of_one_program() -> None:
    reports = run(0, 8, jobs=1, seconds=0.5, patience=3, command=(sys.executable, "-c", WORKER))
    assert [report["done"] for report in reports] == list(range(8))
    found = {report["done"]: report["what"].split(":")[0] for report in reports
             if report["verdict"] == "finding"}
    assert found == {3: "crash", 5: "hang"}
    assert "def make" in reports[3]["script"]


def test_a_worker_that_never_starts_is_an_error_of_the_run() -> None:
    with pytest.raises(RuntimeError, match="did not start"):
        run(0, 2, jobs=1, command=(sys.executable, "-c", "raise SystemExit(3)"))


def test_the_oracle_is_certain_of_arithmetic_only() -> None:
    jitter = Jitter()
    x = np.array([0.1, 0.7, 0.3])
    spreads = {}
    for close, function in ((("sum", 4), np.sum), (("mix", 4), np.exp), (("zero", 0), np.abs)):
        jitter.start(None)
        want = jitter(close, function, x)
        jitter.start(0)
        spreads[close[0]] = np.max(np.abs(jitter(close, function, x) - want))
        whole = jitter(("sum", 4), np.sum, np.arange(5.0))
        assert whole == 10.0
    assert 0 < spreads["sum"] < 1e-14 and 0 < spreads["mix"] < 1e-14 and spreads["zero"] == 0


def test_numbers_of_python_stay_weak_and_real_in_the_oracle() -> None:
    jitter = Jitter()
    for mode in (None, 0, 1, 2):
        jitter.start(mode)
        fourth = jitter(("mix", 8), lambda x: x**4, 0.5)
        assert type(fourth) is float and abs(fourth - 0.0625) < 1e-14
        assert jitter(("sum", 4), lambda x, y: x * y, np.float32(2), 3).dtype == np.float32
        assert np.isnan(jitter(None, lambda x: x**0.5, -1.5))


def test_the_oracle_sees_the_last_bit_the_sign_of_zero_the_dtype_and_the_shape() -> None:
    x = np.array([1.0, 0.0, np.nan])
    assert not differs(x.copy(), x, (), False)
    assert differs(np.nextafter(x, 2), x, (), False)
    assert differs(np.array([1.0, -0.0, np.nan]), x, (), False)
    assert not differs(np.array([1.0, -0.0, np.nan]), x, (), True)
    assert differs(x.astype(np.float32), x, (), False)
    assert differs(x[:, None], x, (), False)
    assert differs(np.float64(1.0), 1.0, (), False)
    near = [x + np.array([1e-15, 0, 0])]
    assert not differs(x + np.array([3e-15, 0, 0]), x, near, False)
    assert differs(x + np.array([1e-14, 0, 0]), x, near, False)


def test_a_cast_out_of_range_is_that_of_one_number() -> None:
    """NumPy's loop over many has another rule for uint32; the bits must not depend on the place."""
    jitter, x = Jitter(), np.array([1.7, np.nan, -2.5, 5e9, -1e30] * 9)
    for mode in (None, 0, 1):
        jitter.start(mode)
        with np.errstate(invalid="ignore"):
            cast = jitter(("cast", 0), lambda x: x.astype("u4"), x)
            want = [np.float64(one).astype("u4") for one in x]
            assert cast.tolist() == want
            got = weft.compile(lambda x: x.astype("u4"))(x)
        assert got.tolist() == want
    casts = Step("cast", "{out} = {0}.astype('u4')", "b", ("x",), ("cast", 0))
    drawn = replace(drawn_with("b = x + 1"), steps=(casts,))
    assert not Oracle(drawn).uncertain


def test_sums_that_overflow_on_the_way_are_certain_of_nothing() -> None:
    x = np.array([3e38, 3e38, -3e38, -3e38], np.float32)
    jitter = Jitter()
    found = set()
    for mode in (None, 0, 1, 2):
        jitter.start(mode)
        total = jitter(("sum", 4), np.sum, x)
        assert np.isfinite(jitter(("sum", 4), np.sum, x * np.float32(0.1)))
        if mode is not None:
            found.add(str(total))
            # An infinite term is certain, but was a risk where it was finite.
            assert str(jitter(("sum", 4), np.sum, x + np.float32(np.inf))) == str(total)
        else:
            jitter(("sum", 4), np.sum, x)
    assert found == {"nan", "inf", "-inf"}


def test_of_a_sum_that_cancels_nothing_may_be_left() -> None:
    x = np.array([[1, 1e-8], [-1, 1e-8], [1e-9, 1e-8]], np.float32)
    jitter = Jitter()
    totals = []
    for mode in (None, 0, 1, 2):
        jitter.start(mode)
        totals.append(jitter(("sum", 4), lambda x: np.sum(x, 0), x))
    assert totals[3][0] == 0 and all(total[0] != 0 for total in totals[:3])
    assert all(total[1] != 0 for total in totals)  # each column by what is in it


def drawn_with(*steps: str, result: Any = "b", names: str = "xi") -> Program:
    """A program of x = float64[3] and i = int64[2] out of range, step by step as ``out = text``."""
    made = []
    for text in steps:
        out, body = text.split(" = ", 1)
        used = [name for name in (*names, "a", "b") if re.search(rf"\b{name}\b", body)]
        for at, name in enumerate(used):
            body = re.sub(rf"\b{name}\b", f"{{{at}}}", body)
        made.append(Step("gather", f"{{out}} = {body}", out, tuple(used)))
    leaves = (Leaf("x", "array", "f8", (3,), "whole"), Leaf("i", "array", "i8", (2,), "index"))
    argset = ArgSet((np.array([1.0, 2, 3]), np.array([0, 9])), ("C", "C"))
    return Program("test", "call", leaves, ("x", "i"), (), (), tuple(made), result, (argset,),
                   (Settings(),) * 2, tags={"a": "exact", "b": "exact"})


@pytest.mark.parametrize(("steps", "needed"), [
    (("a = x[i]", "b = x + 1"), False),
    (("a = x[i]", "b = np.zeros_like(a)"), False),
    (("a = x[i]", "b = np.isnan(a > 0)"), False),
    (("a = x[i]", "b = a * 0"), True),          # NaN * 0 is NaN
    (("a = x[i]", "b = np.minimum(a, 1)"), True),
    (("a = x[i] > 0", "b = np.any(a)"), True),
    (("a = x[i]", "b = np.array([x[0], a[0]]).sum() * 2"), True),
])
def test_errors_of_values_that_nothing_depends_on_are_excused(
    steps: tuple[str, ...], needed: bool
) -> None:
    drawn = drawn_with(*steps)
    oracle = Oracle(drawn)
    expect = oracle.expect(list(drawn.argsets[0].leaves))
    assert isinstance(expect.base.error, IndexError)
    assert (expect.unneeded is None) == needed
    if not needed and "isnan" not in steps[1]:
        plain = drawn_with(*steps[1:]) if "a" not in steps[1].split("=", 1)[1] else None
        want = Oracle(plain).expect(list(drawn.argsets[0].leaves)).base.results if plain else [
            np.zeros(2)]
        assert not differs(expect.unneeded.results[0], want[0], (), False)  # type: ignore


def test_the_oracle_knows_the_next_error_of_a_program() -> None:
    drawn = drawn_with("a = x[i]", "b = a + x.reshape(2, 2)")
    expect = Oracle(drawn).expect(list(drawn.argsets[0].leaves))
    assert isinstance(expect.base.error, IndexError)
    assert any(isinstance(problem, ValueError) for problem in expect.later)


def test_an_unknown_dim_is_excused_only_where_one_is_one() -> None:
    leaves = (Leaf("x", "array", "f8", ("n",), "whole"), Leaf("i", "array", "f8", ("m",), "whole"))

    def argset(n: int, m: int) -> ArgSet:
        return ArgSet((np.ones(n), np.ones(m)), ("C", "C"))

    drawn = replace(drawn_with("b = x + i"), leaves=leaves,
                    argsets=(argset(4, 4), argset(1, 4), argset(1, 1)))
    assert check(drawn).verdict == "ok"
    oracle = Oracle(drawn)
    calls = [list(one.leaves) for one in drawn.argsets]
    shapes = [oracle.shapes(args) for args in calls]
    refused = weft.ir.diagnose.error("W105", "")
    assert unknown_dim(drawn, refused, shapes[1], shapes)
    assert not unknown_dim(drawn, refused, shapes[0], shapes)
    assert not unknown_dim(drawn, weft.ir.diagnose.error("W124", ""), shapes[1], shapes)


@pytest.mark.parametrize("wrong", [IndexError("another"), None])
def test_a_number_beyond_its_dtype_has_to_be_an_overflow_error(
    monkeypatch: pytest.MonkeyPatch, wrong: Exception | None
) -> None:
    leaves = (Leaf("x", "array", "u4", (2,), "whole"), Leaf("i", "int", "i8", (), "whole"))
    drawn = replace(drawn_with("b = x + i"), leaves=leaves, argsets=(
        ArgSet((np.array([1, 2], "u4"), 3), ("C", "C")),
        ArgSet((np.array([1, 2], "u4"), -3), ("C", "C"))))
    assert check(drawn).verdict == "ok"
    run = Compiled.run

    def other(self: Compiled, args: Any) -> Any:
        answer = run(self, args)
        return replace(answer, error=wrong) if answer.error is not None else answer

    monkeypatch.setattr(Compiled, "run", other)
    assert check(drawn).verdict == "finding"


@pytest.mark.long
def test_an_update_that_threads_lose_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = first_with(lambda drawn: "check shared" in drawn.features and any(
        "assign_add" in step.template for step in drawn.steps) and check(drawn).verdict == "ok"
        and loses_updates(drawn, monkeypatch))
    assert check(drawn).verdict == "ok"


def loses_updates(drawn: Program, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a run that forgets one call's update is a finding."""
    at_once = Compiled.run_at_once

    def forgetful(self: Compiled, calls: Any, rounds: int = 3) -> Any:
        found = at_once(self, calls, rounds)
        self.assign([value - 1 if value.dtype.kind in "iu" else value * 0 - 77
                     for value in self.values()])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Compiled, "run_at_once", forgetful)
        return "calls at once" in check(drawn).what


@pytest.mark.parametrize("layout", ["C", "F", "transposed", "strided", "backward", "rows",
                                    "unaligned", "readonly"])
def test_layouts_keep_the_elements(layout: str) -> None:
    for array in (np.arange(12.0).reshape(3, 4), np.zeros((0, 3), np.int32), np.array(2.5)):
        made = laid(array, layout)
        assert made.shape == array.shape and made.dtype == array.dtype
        assert np.array_equal(made, array)
        assert layout != "unaligned" or not made.flags.aligned or not array.size
        assert layout != "readonly" or not made.flags.writeable or not array.ndim


def test_signatures_forget_numbers_and_names() -> None:
    assert signature("v6 is np.uint32(7) at [0, 1], NumPy gives np.uint32(0) (3 differ)") == (
        signature("v12 is np.int64(-7) at [2], NumPy gives np.int64(9) (1 differ)"))


def test_candidates_are_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails, the program ends up with one step, one set of arguments and no options."""
    drawn = first_with(lambda drawn: drawn.kind == "call" and len(drawn.steps) > 4)
    small = minimise(drawn, lambda candidate: bool(candidate.steps))
    assert len(small.steps) == 1 and len(small.argsets) == 1 and not small.checks
    assert replace(small, name="") != replace(drawn, name="")


def rolled(x: Any) -> Any:
    """Nothing but views, each of two pieces: seen through, 2 ** 40 of them."""
    for _ in range(40):
        x = np.concatenate([x[1:], x[:1]])
    return x * 2


def swapped(x: Any) -> Any:
    """Each step reads the one before at two places: computed again each time, 2 ** 30 steps."""
    for _ in range(30):
        x = np.concatenate([x[2:] * 0.5, x[:2] + 1])
    return x


def carried(x: Any) -> Any:
    """A view of so many pieces that they are stored, and a result that is a view of that."""
    rows = np.zeros((140, *x.shape))
    for at in range(1, len(rows)):
        rows[at] = rows[at - 1] * 0.5 + x
    return rows[None]


def taken_away(x: Any, i: Any) -> Any:
    """Less unsigned numbers: they were negated as such."""
    y = x[0] * 1
    np.subtract.at(y, i % 2, i)
    return y


def no_dims(x: Any) -> Any:
    """What np.full makes is an array even without dims: += changed it for nobody else."""
    y = np.full((), x[0, 1])
    row, view = y.reshape(1), y[...]
    y += x[0, 2]
    row *= 3
    return y, row, view


def one_place(x: Any) -> Any:
    """One number to one place again and again: the verifier took the kernel for a wrong one."""
    y = x * 1
    y[np.zeros(4, int)] = 3
    return y


def without_nan(z: Any) -> Any:
    """NaN of complex numbers were not left out."""
    return (np.nansum(z, 0), np.nanprod(z), np.nanmean(z), np.nanvar(z), np.nanstd(z, 0),
            np.nanmin(z, 1), np.nanargmax(z, 1), np.nanmedian(z), np.nancumsum(z), np.median(z[1]))


# What random programs, or people, found to be wrong once; opt=0 and opt=2 compile it differently.
M, EMPTY = np.arange(12.0).reshape(3, 4), np.zeros((2, 0, 4))
Z = np.array([[1 + 2j, np.nan, 3 - 1j, 2j], [1j, 1, 2, 2 - 1j], [5, 4, -1j, -2]])
ONCE_WRONG: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    # a view that is a result itself and read by others: it was used before it was made
    (lambda x: (np.broadcast_to(x.sum(), (3,)), np.broadcast_to(x.sum(), (3,)) * 2, x.sum()), (M,)),
    # reductions of what does not depend on the axis
    (lambda x: np.broadcast_to(x[0], (5, 4)).sum(axis=0), (M,)),
    (lambda x: (np.zeros_like(x).sum(axis=1), np.ones_like(x).mean()), (M,)),
    # products whose rows, columns or terms are all the same
    (lambda x: np.ones_like(x) @ x.T, (M,)),
    (lambda x: np.broadcast_to(x, (7, 9)) @ np.broadcast_to(x, (9, 3)), (2.0,)),
    (lambda x: np.broadcast_to(x[0], (5, 4)).T @ (np.broadcast_to(x[0], (5, 4)) @ x.T), (M,)),
    # no elements: shapes without an index, sums without terms
    *((function, (EMPTY,)) for function in (
        lambda x: x.sum(), lambda x: x.sum(axis=1), lambda x: x.sum(axis=(0, 1)),
        lambda x: (x - x.sum(), x.sum()), lambda x: x.reshape(-1) * 2, lambda x: x.reshape(4, 0, 2),
        lambda x: np.concatenate([x.T + 1, x.T + 1]), lambda x: x @ x.transpose(0, 2, 1),
        lambda x: x.transpose(0, 2, 1) @ x, lambda x: (x * 2, x * 2))),
    # no indices: element 0 of an array that has none was read before the empty loop, and checked
    (lambda x, i: (np.sum(x[i]), np.tanh(x[i])), (np.ones((7, 7)), np.full(64, 99)[:0])),
    # programs that exploded
    (rolled, (np.arange(8.0),)),
    (swapped, (np.arange(4.0),)),
    # a view of a stored view: nothing said where it is stored
    (carried, (np.arange(4.0),)),
    (taken_away, (M, np.array([1, 0, 3], np.uint8))),
    (one_place, (M,)),
    (no_dims, (M,)),
    (without_nan, (Z,)),
    # complex numbers: between, one by one, in order
    (lambda z: (np.linspace(z, 2, 3), np.logspace(z[1], 2j, 3, endpoint=False)), (Z,)),
    (lambda x, z: np.interp(x, np.arange(8.0), z.ravel(), left=1j), (M, Z[1:])),
    (lambda x, z: np.isin(x, z), (M, np.arange(80) * 1j)),
    (lambda z: np.poly(z[2]), (Z,)),
    # a number has an axis to ufuncs and to argsort
    (lambda z: (np.max(z, axis=-1), np.ptp(z, 0), np.maximum.reduce(z), np.subtract.reduce(z),
                np.argsort(z)), (np.array(2 + 1j),)),
]


@pytest.mark.parametrize("opt", [0, 2])
def test_one_number_added_to_one_place_several_times(opt: int) -> None:
    """Neither the place nor the number depends on the loop, but it has to run all the same."""
    add = weft.compile(opt=opt)(lambda x, i, k: (x * 1).at[i % 1].add(np.broadcast_to(k, (3, 4))))
    np.testing.assert_array_equal(add(np.ones((1, 4)), np.arange(3), 0.5), np.full((1, 4), 2.5))


def test_nothing_is_repeated_to_unknown_sizes() -> None:
    repeated = weft.compile(lambda x, y: np.resize(y[:0], x.shape), dynamic={"x": {0: "n"}})
    np.testing.assert_array_equal(repeated(np.ones(3), np.ones(2)), np.zeros(3))


def test_nothing_has_no_extreme() -> None:
    least = weft.compile(lambda x: np.fmin.reduce(x), dynamic={"x": {0: "n", 1: "m"}})
    np.testing.assert_array_equal(least(np.ones((2, 3))), np.ones(3))
    with pytest.raises(ValueError, match="W102"):
        least(np.ones((0, 3)))


def test_complex_numbers_are_refused_where_their_real_parts_would_be_taken() -> None:
    functions: list[Callable[[Any], Any]] = [
        lambda z: np.quantile(z, 0.5), lambda z: np.max(z[z.real > 0]), np.i0, special.logsumexp,
        lambda z: np.interp(z, [0, 1.0], [0, 1.0]),
        lambda z: np.bincount(np.arange(12) % 3, z.ravel())]
    for function in functions:
        with pytest.raises(weft.Error, match=r"W11[13]"):
            weft.compile(function)(Z)


@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("case", range(len(ONCE_WRONG)))
def test_what_was_wrong_once(case: int, opt: int) -> None:
    function, args = ONCE_WRONG[case]
    lowered = weft.compile(opt=opt)(function).lower(*args)
    verify_plan(lowered.stages.plan)
    assert len(lowered.as_text("llvm")) < 1_000_000
    want = function(*args)
    got = lowered.compile()(*args)
    for a, z in zip(got if isinstance(got, tuple) else (got,),
                    want if isinstance(want, tuple) else (want,), strict=True):
        assert np.shape(a) == np.shape(z)
        np.testing.assert_allclose(a, z, rtol=1e-12)


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_chosen_elements_are_what_numpy_chooses(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 10):
        verdict = chosen.check(seed, tmp_path)
        assert verdict == "ok" or verdict.startswith("refused"), f"{verdict}\n{chosen.drawn(seed)}"


@pytest.mark.parametrize("first", range(0, 24, 6))
def test_slices_in_loops_are_what_numpy_takes(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon(monkeypatch.setattr)
    for seed in range(first, first + 6):
        verdict = slices.check(seed, tmp_path)
        assert verdict == "ok" or verdict.startswith("refused"), f"{verdict}\n{slices.drawn(seed)}"


def test_a_slice_that_is_too_long_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "drawn", lambda seed: (
        "import numpy as np\n\n\ndef f(x, a, k):\n    y, n = x * 1, len(x)\n"
        "    for i in range(n - 3):\n        y[:i] += np.sin(x[1:i + 1])\n"
        "    return y, y\n\n\nSMOOTH = False\n"))
    soon(monkeypatch.setattr)
    assert slices.check(0, tmp_path) == "ok"
    monkeypatch.setattr(parts, "Part", lambda start, count, step: Part(start, count + 1, step))
    assert "NumPy gives" in slices.check(0, tmp_path)


def test_a_write_to_a_copy_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen, "drawn", lambda seed: (
        "import numpy as np\n\n\ndef f(x, y, m, k):\n    z = x[m]\n    z = z[1:]\n    z += 1\n"
        "    return z, z\n"))
    assert chosen.check(0, tmp_path) == "ok"
    monkeypatch.setattr(Chosen, "change", lambda self, ufunc, other: self)
    assert "NumPy gives" in chosen.check(0, tmp_path)
