"""What is told of a program that another process has made: as of one of this process."""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.record import record
from ....ir.types import TensorType
from ....runtime.tree import TreeDef
from ...face.signature import Signature
from ...ready.calls import Ready
from ...tracing.arguments import Call
from ...tracing.arrays.variable import Variable
from ...tracing.guards.guard import Guard
from ..specialisation import Specialisation
from .changes import Key, typed


@record(frozen=True, eq=False)
class Adopted:
    """A program that was found; see ``Specialisation``."""

    names: tuple[str, ...]
    types: tuple[tuple[str, TensorType], ...]
    milliseconds: float
    in_tree: TreeDef
    launches: int
    arena: str
    guards: Sequence[Guard]

    def signature(self) -> dict[str, str]:
        """The types of the arguments by name."""
        return typed(self.names, self.types)


Made = Specialisation | Adopted
"""A program that a function has."""


def adopted(ready: Ready, signature: Signature) -> tuple[Key, Adopted]:
    """The key of a program that was found, and what is told of it."""
    call = Call(signature, (), {}, ready.leaves, ready.structure)
    key = Key(call.structure, call.types, (), tuple(
        [id(leaf) for leaf in call.leaves if isinstance(leaf, Variable)]))
    about = ready.about
    return key, Adopted(tuple(call.names), call.types, about.milliseconds, call.structure,
                        about.launches, about.arena, ready.guards)
