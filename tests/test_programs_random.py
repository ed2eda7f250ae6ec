"""Random programs in plain NumPy, compiled and compared; and what they, or people, found once.

The programs are those of ``fuzz``: ``python -m fuzz --count 20000``, run in this folder, runs more
of them, in the same way.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz import script as scripts
from fuzz.check import check
from fuzz.draw import FEATURES, program
from fuzz.minimise import minimise, signature
from fuzz.oracle import Jitter, Oracle, differs
from fuzz.prelude import laid
from fuzz.program import Program
from fuzz.supervise import run
from programs import wrong_simplify

import weft
from weft.ir.verify import verify_plan
from weft.passes import manager

SEED, COUNT = 1, 400


def test_programs_are_what_numpy_makes_of_them() -> None:
    """In processes of their own: a crash is the finding of one program, too."""
    reports = run(SEED, COUNT, jobs=2, seconds=5)
    findings = [report for report in reports if report["verdict"] == "finding"]
    assert len(reports) == COUNT
    assert not findings, f"{len(findings)} of {COUNT}; the first one:\n" + findings[0]["script"]
    refused = [report for report in reports if report["verdict"] == "refused"]
    assert len(refused) < COUNT // 8


def test_programs_of_all_kinds_are_drawn() -> None:
    """The test above would pass on empty programs, too."""
    seen: set[str] = set()
    lengths = []
    for number in range(COUNT):
        drawn = program(SEED, number)
        seen.update(drawn.features)
        lengths.append(len(drawn.steps))
    assert {*FEATURES, "call program", "grad program", "session program", "symbolic dims",
            "large arrays", "nest of arguments", "nest of results", "target native",
            "target x86-64-v3", "target x86-64-v4", "opt 0", "opt 1", "opt 2", "opt 3",
            "check threads", "check stages", "check interpreter", "values special", "values index",
            "values count", "layout strided", "layout backward", "layout unaligned",
            "layout readonly", "layout F", "argument scalar", "argument int", "argument float",
            *(f"argument {name}" for name in ("float32", "float64", "int32", "int64", "uint32",
                                              "uint64", "bool"))} <= seen
    assert sum(lengths) > 2 * COUNT


def test_a_number_is_always_the_same_program() -> None:
    code = ("from fuzz.draw import program; from fuzz.script import script; import hashlib;"
            "text = ''.join(script(program(3, n), '') for n in range(20));"
            "print(hashlib.sha256(text.encode()).hexdigest())")
    hashes = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                             check=True, cwd=Path(__file__).parent,
                             env={"PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")}
    assert len(hashes) == 1 and hashes != {""}


def first_with(accept: Callable[[Program], bool], seed: int = 5) -> Program:
    return next(drawn for drawn in (program(seed, n) for n in range(500)) if accept(drawn))


def test_a_wrong_pass_is_found_and_its_program_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = first_with(lambda drawn: drawn.kind == "call" and len(drawn.steps) > 3
                       and any(step.template == "{out} = {0} - {1}" for step in drawn.steps)
                       and all(way.opt for way in drawn.settings) and check(drawn).verdict == "ok")
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
    drawn = first_with(lambda drawn: drawn.kind == kind and check(drawn).verdict == "ok")
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


def test_a_cast_out_of_range_is_certain_of_nothing() -> None:
    drawn = first_with(lambda drawn: any(step.close == ("cast", 0) for step in drawn.steps))
    step = next(step for step in drawn.steps if step.close == ("cast", 0))
    jitter = Jitter()
    jitter.start(0)
    with np.errstate(invalid="ignore"):
        cast = jitter(step.close, lambda x: x.astype("i4"), np.array([1.7, np.nan, 3e9]))
    assert cast[0] == 1 and cast[1] == cast[2] == np.iinfo(np.int32).min
    assert Oracle(drawn).uncertain


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


# What random programs, or people, found to be wrong once; opt=0 and opt=2 compile it differently.
M, EMPTY = np.arange(12.0).reshape(3, 4), np.zeros((2, 0, 4))
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
]


@pytest.mark.parametrize("opt", [0, 2])
def test_one_number_added_to_one_place_several_times(opt: int) -> None:
    """Neither the place nor the number depends on the loop, but it has to run all the same."""
    add = weft.compile(opt=opt)(lambda x, i, k: (x * 1).at[i % 1].add(np.broadcast_to(k, (3, 4))))
    np.testing.assert_array_equal(add(np.ones((1, 4)), np.arange(3), 0.5), np.full((1, 4), 2.5))


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
