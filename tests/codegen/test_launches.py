"""Steps of a plan: unrolled where they are few, a table and a loop where they are many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.codegen.cpu.steps import launches
from weft.ir.interp.graph import run_plan
from weft.ir.plans.plan import Alloc


def products(x: Any, w: Any) -> Any:
    for _ in range(9):
        x = np.tanh(x @ w)
    return x, x[:2]


def gathers(x: Any, i: Any) -> Any:
    for _ in range(9):
        x = x[i] * 2
    return x


def scattered(x: Any, i: Any) -> Any:
    """Bases that are copied, values that are stored and returned twice."""
    y = x.at[i].add(1.0)
    z = y.at[i].set(0.5)
    return x, y, z, y, np.sum(z), x[::2].at[i[:1]].add(y[:1])


def large(x: Any, w: Any) -> Any:
    """Steps that go to the workers."""
    return np.sum(np.exp(x), axis=0), x.T * w[0, 0]


R = np.random.default_rng(0)
SQUARE = R.normal(size=(4, 4))
CASES: dict[str, tuple[Callable[..., Any], tuple[str, str], tuple[Any, Any]]] = {
    "products": (products, ("f64[b,4]", "f64[4,4]"), (R.normal(size=(3, 4)), SQUARE)),
    "gathers": (gathers, ("f64[n]", "i64[n]"), (R.normal(size=5), np.arange(5)[::-1])),
    "scattered": (scattered, ("f64[n]", "i64[k]"), (R.normal(size=6), np.array([0, 2, 2, 1]))),
    "large": (large, ("f64[n,64]", "f64[4,4]"), (R.normal(size=(3000, 64)), SQUARE)),
    "nothing": (lambda x, w: (x, w), ("f64[n,4]", "f64[4,4]"), (SQUARE, SQUARE)),
}


@pytest.fixture(params=[0, 8, 10**6], ids=["a loop", "as usual", "unrolled"])
def unrolled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(launches, "UNROLLED", request.param)
    return int(request.param)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("symbolic", [False, True])
def test_steps_compute_what_the_plan_says(name: str, symbolic: bool, unrolled: int) -> None:
    function, specs, args = CASES[name]
    program = weft.compile(inout="error")(function)  # whose results are all of the plan
    lowered = program.lower(*(specs if symbolic else args))
    plan = lowered.stages.plan
    wanted = run_plan(plan, args)
    got = lowered.compile()(*args)
    for a, b in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    steps = sum(not isinstance(step, Alloc) for step in plan.steps)
    assert ("_steps = internal constant" in lowered.as_text("llvm")) == (steps > unrolled)


def test_the_step_that_fails_ends_the_program(unrolled: int) -> None:
    """With the number of its own check; no step after it runs."""
    def function(x: Any, *indices: Any) -> Any:
        for i in indices:
            x = x[i] + 1
        return x

    good, bad = np.arange(4), np.array([0, 9, 1, 2])
    program = weft.compile(function)
    plan = program.lower(np.ones(4), *[good] * 9).stages.plan
    assert plan.launches == 9 and len(plan.checks) == 9
    np.testing.assert_array_equal(program(np.ones(4), *[good] * 9), np.full(4, 10.0))
    for at in (0, 4, 8):
        given = [bad if number == at else good for number in range(9)]
        with pytest.raises(IndexError, match="W124"):
            program(np.ones(4), *given)
