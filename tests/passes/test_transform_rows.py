"""Tangents and batches of a sample of each op row; ``every_transform`` has all of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from transform_rows import (
    ROWS,
    TANGENTS,
    batch_cases,
    batch_problems,
    native,
    tangent_cases,
    tangent_problems,
)

from weft.ir.ops.op import Kind, OpDef, Sample
from weft.ir.types import DType


def _largest(cases: Iterable[tuple[OpDef, DType, Sample]]) -> list[tuple[OpDef, DType, Sample]]:
    """For each row and dtype the sample with the most dims and elements."""
    def size(case: tuple[OpDef, DType, Sample]) -> tuple[int, int]:
        shapes = [np.shape(s) if isinstance(s, np.generic) else s for s in case[2].shapes]
        return sum(map(len, shapes)), sum(int(np.prod(shape)) for shape in shapes)

    found: dict[tuple[str, DType], tuple[OpDef, DType, Sample]] = {}
    for case in cases:
        key = case[0].name, case[1]
        found[key] = max(found.get(key, case), case, key=size)
    return list(found.values())


TANGENT_CASES = _largest(tangent_cases())
BATCH_CASES = _largest(batch_cases())


def _id(value: object) -> str:
    return value.name if isinstance(value, (OpDef, DType)) else ""


def test_every_row_has_its_case() -> None:
    assert {op.name for op, _, _ in BATCH_CASES} == {op.name for op in ROWS}
    missing = {op.name for op in TANGENTS} - {op.name for op, _, _ in TANGENT_CASES}
    assert not missing


@pytest.mark.parametrize(("op", "dtype", "sample"), TANGENT_CASES, ids=_id)
def test_tangents(op: OpDef, dtype: DType, sample: Sample) -> None:
    assert not list(tangent_problems(op, sample, dtype, np.random.default_rng(1)))


@pytest.mark.parametrize(("op", "dtype", "sample"), BATCH_CASES, ids=_id)
def test_batches(op: OpDef, dtype: DType, sample: Sample) -> None:
    assert not list(batch_problems(op, sample, dtype, np.random.default_rng(1)))


@pytest.mark.parametrize("kind", [Kind.GATHER, Kind.SCATTER, Kind.CONTRACT, Kind.SEARCH])
def test_batches_compiled(kind: Kind) -> None:
    op, dtype, sample = next(case for case in BATCH_CASES if case[0].kind is kind)
    assert not list(batch_problems(op, sample, dtype, np.random.default_rng(1), native))
