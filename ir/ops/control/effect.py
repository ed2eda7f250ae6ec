"""Rows of the EFFECT family: variables. Nodes on one variable run in the order of the list.

Assertions are effects on a number of their own, 1 as long as all of them hold, on which
``passes/state`` lets a result depend: so they are carried out of loops and branches, and not dead.
"""

from __future__ import annotations

from ...diagnose import error
from ...types import BOOL, I64, TensorType
from ..op import Effect, Kind, OpDef


def _read_infer(*, var: str, type: TensorType) -> tuple[TensorType, ...]:
    return (type,)


def _assign_infer(x: TensorType, *, var: str, type: TensorType) -> tuple[TensorType, ...]:
    if x != type:
        raise error("W304", f"variable {var} is {type}, the value is {x}",
                    hint="a variable keeps its dtype and shape: convert or reshape the value")
    return ()


def _assert_infer(
    x: TensorType, *, var: str, type: TensorType, message: str
) -> tuple[TensorType, ...]:
    if x != TensorType(BOOL, ()) or type != TensorType(I64, ()):
        raise error("W601", f"what is asserted is {x}, not one bool")
    return ()


_ATTRS = {"var": str, "type": TensorType}

ROWS: tuple[OpDef, ...] = (
    OpDef("read_var", Kind.EFFECT, _read_infer, 0, "the value of a variable at this point of the "
          "program", _ATTRS, effect=Effect.READS, differentiable=False),
    OpDef("assign_var", Kind.EFFECT, _assign_infer, 1, "a variable takes the value of x",
          _ATTRS, effect=Effect.WRITES, differentiable=False),
    OpDef("update_var", Kind.EFFECT, _assign_infer, 1, "x is added to a variable",
          _ATTRS, effect=Effect.WRITES, update="add", differentiable=False),
    OpDef("take_var", Kind.EFFECT, _assign_infer, 1, "x is added to a counter, of which all that "
          "matters is that nobody has its numbers twice", _ATTRS, effect=Effect.WRITES,
          update="add", taking=True, differentiable=False),
    OpDef("assert_true", Kind.EFFECT, _assert_infer, 1, "the step fails (W125) unless x is true",
          {**_ATTRS, "message": str}, effect=Effect.ASSERTS, differentiable=False),
)
