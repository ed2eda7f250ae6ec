"""What users of other libraries look for is not there, and the message names what is."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.face.elsewhere import FUNCTIONS, METHODS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(weft, name)
    assert f"no attribute '{name}'" in str(caught.value)
    assert FUNCTIONS[name] in str(caught.value)
    assert not hasattr(weft, name)


def test_names_that_nobody_has() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
        weft.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_what_is_named_is_there() -> None:
    for text in (*FUNCTIONS.values(), *METHODS.values()):
        for name in re.findall(r"weft\.(\w+)", text):
            assert hasattr(weft, name), text


def test_methods() -> None:
    @weft.compile
    def loss(x: Any) -> Any:
        return np.sum(x).backward()

    with pytest.raises(AttributeError, match=r"no attribute 'backward'; use weft\.grad\(f\)"):
        loss(np.ones(3))


def test_what_numpy_finds_wrong_outside_of_a_trace() -> None:
    """Its exceptions keep their kinds."""
    with pytest.raises(ValueError, match=r"W102: layer_norm: .*\(3,4\) \(3,\)"):
        weft.nn.layer_norm(np.ones((3, 4)), np.ones(3), np.zeros(3))
    with pytest.raises(IndexError, match="W122: embedding: "):
        weft.nn.embedding(np.array([7]), np.ones((4, 2)))
