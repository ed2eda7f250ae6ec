"""Rows of the REGION family: ops whose ``body`` attribute is a graph."""

from __future__ import annotations

from typing import Any

from ..diagnose import error
from ..space import space_problem
from ..types import TensorType
from .op import Kind, OpDef


def _fused_infer(*types: TensorType, body: Any, space: str) -> tuple[TensorType, ...]:
    if tuple(param.type for param in body.params) != types:
        raise error("W601", "the operands of a fused node are not those of its body")
    problem = space_problem(body, space)
    if problem:
        raise error("W601", problem)
    return tuple(value.type for value in body.results)


ROWS: tuple[OpDef, ...] = (
    OpDef("fused", Kind.REGION, _fused_infer, None,
          "a region that becomes one kernel; space says which axes its nodes have (``ir/space``)",
          {"body": object, "space": str}, differentiable=False),
)
