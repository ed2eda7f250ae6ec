"""Programs of notebooks and textbooks: compiled, they give what NumPy gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.notebook_programs import PROGRAMS

import weft


@pytest.mark.parametrize(("function", "args"), PROGRAMS,
                         ids=[function.__name__ for function, _ in PROGRAMS])
def test_a_program(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    wanted, given = (weft.tree.flatten(f(*map(np.copy, args))) for f in (
        function, weft.compile(function)))
    assert given[1] == wanted[1]
    for a, b in zip(given[0], wanted[0], strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
