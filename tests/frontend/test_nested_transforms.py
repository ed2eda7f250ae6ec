"""Transforms of transforms (``nests``); ``every_transform nests`` tries all with all functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nests import ALL, nested

import weft

CASES = [(cube, nest) for cube, nest in ALL if cube in ("scan", "while_each") or nest in (
    "grad_of_grad", "vmap_of_grad", "grad_of_vmap", "jvp_of_grad", "jvp_of_vmap", "grad_of_jvp")]


@pytest.mark.parametrize(("cube", "nest"), CASES)
def test_interpreted(cube: str, nest: str) -> None:
    found, wanted = nested(cube, nest)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize(("cube", "nest"), [
    ("scan", "jvp_of_vmap_of_grad"), ("while_each", "grad_of_vmap_of_grad"),
    ("remat_of_scan", "hessian"), ("cond", "vmap_of_grad_of_jvp"),
    ("scan_of_custom", "grad_of_vmap_of_grad")])
def test_compiled(cube: str, nest: str) -> None:
    """At every level of optimisation the bits of the interpreter."""
    def run() -> Any:
        return nested(cube, nest)[0]

    wanted = run()
    for opt in (0, 1, 2):
        np.testing.assert_array_equal(weft.compile(opt=opt)(run)(), wanted)
