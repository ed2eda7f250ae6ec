"""Operation: what a traced program does besides giving values."""

from __future__ import annotations

from ....ir.graph import Node
from ...stays import Stays
from ..context.scope import Recording


class Operation(Stays):
    """Nodes without a value, such as an assignment: can be fetched, grouped and waited for."""

    instead = "fetch it by its name"

    def __init__(self, nodes: tuple[Node, ...], name: str, ctx: Recording | None) -> None:
        self.nodes, self.name, self.ctx = nodes, name, ctx

    def __repr__(self) -> str:
        return f"Operation<{self.name}>"
