"""WEFT_VERIFY=passes names the pass that changes a result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from programs import wrong_simplify

import weft
from weft.frontend.engine.building import pipeline
from weft.frontend.engine.building.oracle import example_array
from weft.ir.plans.plan import Plan, map_launches
from weft.ir.record import replace
from weft.ir.types import parse_type
from weft.passes import manager


def step(x: object) -> object:
    return np.sin(x) * 2  # type: ignore[call-overload]


def test_right_passes_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_VERIFY", "passes")
    x = np.arange(5.0)
    np.testing.assert_allclose(weft.compile(step)(x), np.sin(x) * 2)


def test_a_wrong_pass_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_VERIFY", "passes")
    monkeypatch.setattr(manager, "simplify", wrong_simplify("sin", "cos"))
    with pytest.raises(weft.Error, match=r"W601: pass simplify changes result 0") as caught:
        weft.compile(step)(np.arange(5.0))
    assert "np.sin(x) * 2" in str(caught.value)


def test_a_wrong_plan_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step after the graphs: two operands of a kernel change places."""
    monkeypatch.setenv("WEFT_VERIFY", "passes")
    plan_memory = pipeline.plan_memory

    def wrong(*args: Any) -> Plan:
        plan = plan_memory(*args)
        return replace(plan, steps=map_launches(plan.steps, lambda launch: replace(
            launch, args=(launch.args[1], launch.args[0], *launch.args[2:]))))

    monkeypatch.setattr(pipeline, "plan_memory", wrong)
    with pytest.raises(weft.Error, match="W601: pass memory changes result 0") as caught:
        weft.compile(lambda x, y: x - y * 2)(np.arange(5.0), np.ones(5))
    assert "which was right after tile" in str(caught.value)


def test_a_wrong_kernel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_VERIFY", "passes")
    monkeypatch.setattr(pipeline, "tile_cpu", lambda kernel, target: replace(
        kernel, body=kernel.body[1:]))
    with pytest.raises(weft.Error, match="W601: check_definitions of kernel"):
        weft.compile(step)(np.arange(5.0))


def test_a_loop_without_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The random arguments of the oracle are not those of the program."""
    monkeypatch.setenv("WEFT_VERIFY", "passes")
    grown = weft.compile(lambda x, n: weft.while_loop(lambda x: x != n, lambda x: x + 1, x))
    assert grown(np.float64(1), np.float64(5)) == 5


def test_the_steps_are_one_list() -> None:
    assert [each.name for each in pipeline.STEPS] == [
        "inline", "state", "complex", "elements", "places", "stores", "choose", "roll", "hoist",
        "simplify", "ranges", "place", "fuse", "lower", "parts", "checks", "share",
        "group", "tile", "memory", "windows", "workers", "loops", "clock", "emit"]
    stages = weft.compile(step).lower(np.arange(5.0)).stages
    assert not stages.times
    stages.text("opt")
    assert list(stages.times) == [  # and nothing later
        "inline", "state", "complex", "elements", "places", "stores", "choose", "roll", "hoist",
        "simplify"]
    stages.text("plan")
    assert list(stages.times)[-1] == "loops"
    with pytest.raises(KeyError):
        stages.after("melt")


def test_examples_are_normal_floats_and_small_integers() -> None:
    rng = np.random.default_rng(0)
    floats = example_array(parse_type("f32[n,50]"), {"n": 20}, rng)
    assert floats.shape == (20, 50) and abs(floats.mean()) < 0.2 and abs(floats.std() - 1) < 0.2
    for text, most in (("i32[200]", 3), ("bool[200]", 1)):
        found = example_array(parse_type(text), {}, rng)
        assert (found.min(), found.max()) == (0, most)
    assert example_array(parse_type("f64[k]"), {}, rng).shape == (4,)
