"""WEFT_VERIFY=passes names the pass that changes a result."""

from __future__ import annotations

import numpy as np
import pytest
from programs import wrong_simplify

import weft
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
