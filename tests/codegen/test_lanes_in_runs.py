"""Loads whose lanes lie in runs, ``x[i//n]`` and ``x[i mod n]``: the sums of all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.indices.runs import run_along
from weft.ir.interp.plan import run_plan
from weft.ir.types import parse_dim

RNG = np.random.default_rng(3)
DYNAMIC = {"x": {0: "n"}, "y": {0: "m"}}


def pairs(x: Any, y: Any) -> Any:
    apart = x[:, None] - y[None]
    return (apart * apart).sum(), apart.max(), np.abs(apart).min(), (apart > 0).sum()


@pytest.mark.parametrize(("columns", "dtype"), [
    (1, "f8"), (2, "f4"), (3, "i4"), (7, "f8"), (15, "u1"), (16, "f8"), (17, "f4"), (31, "f8"),
    (64, "i4"), (100, "f8"), (1000, "f4")])
def test_all_pairs(columns: int, dtype: str) -> None:
    x, y = (RNG.integers(0, 100, size).astype(dtype) for size in (67, columns))
    found = {name: [np.asarray(part).tobytes() for part in weft.compile(pairs, **options)(x, y)]
             for name, options in (
        ("known", {}), ("named", {"dynamic": DYNAMIC}), ("v3", {"target": "x86-64-v3"}),
        ("named v3", {"dynamic": DYNAMIC, "target": "x86-64-v3"}), ("opt 0", {"opt": 0}))}
    plan = weft.compile(pairs, dynamic=DYNAMIC).lower(x, y).stages.plan
    found["interpreted"] = [part.tobytes() for part in run_plan(plan, [x, y])]
    assert len(set(map(tuple, found.values()))) == 1
    for got, want in zip(weft.compile(pairs)(x, y), pairs(x, y), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_nobody_is_not_divided_by() -> None:
    total = weft.compile(lambda x, y: (x[:, None] * y).sum(), dynamic=DYNAMIC)
    for n, m in ((0, 0), (40, 0), (0, 40), (5, 40)):
        assert total(np.ones(n), np.ones(m)) == n * m


@pytest.mark.parametrize(("offset", "wanted"), [
    ("(i + 64*p)//m", ("i + 64*p", "m", False)),
    ("(i + 64*p) mod m", ("i + 64*p", "m", True)),
    ("k*((i + p)//m) + (i + p) mod m", ("i + p", "m", True)),
    ("2*(i mod m)", None), ("i + i mod m", None), ("i//m + i mod n", None), ("(2*i) mod m", None),
    ("p mod m", None), ("i mod (m + i)", None), ("(i//m)*(i mod m)", None),
])
def test_runs_of_an_offset(offset: str, wanted: tuple[str, str, bool] | None) -> None:
    run = run_along(parse_dim(offset), "i")
    found = None if run is None else (str(run.number), str(run.length), run.moves)
    assert found == (None if wanted is None else (str(parse_dim(wanted[0])), *wanted[1:]))
