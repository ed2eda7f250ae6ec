"""WEFT_VERIFY=passes names the pass that changes a result."""

from __future__ import annotations

import numpy as np
import pytest
from programs import wrong_simplify

import weft
from weft.frontend.compile.oracle import example_array
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


def test_examples_are_normal_floats_and_small_integers() -> None:
    rng = np.random.default_rng(0)
    floats = example_array(parse_type("f32[n,50]"), {"n": 20}, rng)
    assert floats.shape == (20, 50) and abs(floats.mean()) < 0.2 and abs(floats.std() - 1) < 0.2
    for text, most in (("i32[200]", 3), ("bool[200]", 1)):
        found = example_array(parse_type(text), {}, rng)
        assert (found.min(), found.max()) == (0, most)
    assert example_array(parse_type("f64[k]"), {}, rng).shape == (4,)
