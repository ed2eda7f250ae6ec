"""Rows of the EFFECT family: variables. The nodes on one variable run in the order of the list."""

from __future__ import annotations

from ..diagnose import error
from ..types import TensorType
from .op import Effect, Kind, OpDef


def _read_infer(*, var: str, type: TensorType) -> tuple[TensorType, ...]:
    return (type,)


def _assign_infer(x: TensorType, *, var: str, type: TensorType) -> tuple[TensorType, ...]:
    if x != type:
        raise error("W304", f"variable {var} is {type}, the value is {x}",
                    hint="a variable keeps its dtype and shape: convert or reshape the value")
    return ()


_ATTRS = {"var": str, "type": TensorType}

ROWS: tuple[OpDef, ...] = (
    OpDef("read_var", Kind.EFFECT, _read_infer, 0, "the value of a variable at this point of the "
          "program", _ATTRS, effect=Effect.READS, differentiable=False),
    OpDef("assign_var", Kind.EFFECT, _assign_infer, 1, "a variable takes the value of x",
          _ATTRS, effect=Effect.WRITES, differentiable=False),
    OpDef("update_var", Kind.EFFECT, _assign_infer, 1, "x is added to a variable",
          _ATTRS, effect=Effect.WRITES, update="add", differentiable=False),
)
