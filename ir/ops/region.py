"""Rows of the REGION family: ops whose ``body`` attribute is a graph."""

from __future__ import annotations

from typing import Any

from ..diagnose import error
from ..types import TensorType
from .op import Kind, OpDef


def _fused_infer(*types: TensorType, body: Any, anchor: str) -> tuple[TensorType, ...]:
    if tuple(param.type for param in body.params) != types:
        raise error("W601", "the operands of a fused node are not those of its body")
    return tuple(value.type for value in body.results)


ROWS: tuple[OpDef, ...] = (
    OpDef("fused", Kind.REGION, _fused_infer, None,
          "a region that becomes one kernel; anchor names the family that schedules it",
          {"body": object, "anchor": str}, differentiable=False),
)
