"""Assignments after which the name that was assigned is not read before it is bound again.

    nxt = []                     what is handed on: ``frontier`` is the list's only name from there
    for u in frontier:           on, as far as anybody can tell
        nxt.append(u + 1)
    frontier = nxt
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ....ir.record import record
from .names import here, pairs

# Statements after which comes the next one, unless a function ends there.
_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.Pass,
          ast.Assert, ast.Delete, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal,
          ast.FunctionDef, ast.ClassDef)


@record(frozen=True)
class Move:
    """``target = source`` in an assignment; ``ends``: nothing else there binds the source."""

    node: ast.Assign
    target: str
    source: ast.Name
    ends: bool


def moves_of(function: ast.FunctionDef) -> list[Move]:
    """All of them."""
    found: list[Move] = []
    for node in here(function.body):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        bound = list(pairs(node.targets[0], node.value))
        again = {target for target, _ in bound}
        for target, value in bound:
            if isinstance(value, ast.Name) and target != value.id and (
                    sum(each.id == value.id for each in ast.walk(node.value)
                        if isinstance(each, ast.Name)) == 1):
                if value.id in again:
                    found.append(Move(node, target, value, False))
                elif not _Live(value.id, node).after(function):
                    found.append(Move(node, target, value, True))
    return found


class _Live:
    """Whether a name may be read after a statement as it is bound there: live-variable analysis,
    from the last statement to the first, over loops until nothing changes."""

    def __init__(self, name: str, node: ast.stmt) -> None:
        self.name, self.node, self.found = name, node, False

    def after(self, function: ast.FunctionDef) -> bool:
        self._block(function.body, False, False, False)
        return self.found

    def _block(self, block: Sequence[ast.stmt], after: bool, leaves: bool, goes_on: bool) -> bool:
        """Whether it is live before statements: ``after`` them, where a loop is left, and where one
        goes on."""
        for each in reversed(block):
            if each is self.node:
                self.found |= after
            after = self._statement(each, after, leaves, goes_on)
        return after

    def _statement(self, node: ast.stmt, after: bool, leaves: bool, goes_on: bool) -> bool:
        if isinstance(node, ast.If):  # both ways are looked at, whatever the test reads
            ways = [self._block(block, after, leaves, goes_on)
                    for block in (node.body, node.orelse)]
            return self._reads(node.test) or any(ways)
        if isinstance(node, (ast.While, ast.For)):
            return self._loop(node, after, leaves, goes_on)
        if isinstance(node, (ast.Break, ast.Continue)):
            return leaves if isinstance(node, ast.Break) else goes_on
        if not isinstance(node, _PLAIN):  # try, match, with: who knows how far that gets
            self.found |= any(each is self.node for each in ast.walk(node))
            return after or leaves or goes_on or self._reads(node)
        if self._reads(node):
            return True
        if isinstance(node, (ast.Return, ast.Raise)):
            return False
        return after and not self._binds(node)

    def _loop(self, node: ast.While | ast.For, after: bool, leaves: bool, goes_on: bool) -> bool:
        end = self._block(node.orelse, after, leaves, goes_on)
        binds = isinstance(node, ast.For) and self._binds(node.target)
        asks = isinstance(node, ast.While) and self._reads(node.test)
        head = end
        for _ in range(2):  # what is live where a round ends is where the next one begins
            body = self._block(node.body, head, after, head)
            head = asks or end or (body and not binds)
        return head or (isinstance(node, ast.For) and self._reads(node.iter))

    def _reads(self, node: ast.AST) -> bool:
        """Whether a node reads the name, or something in it may later."""
        return any((isinstance(each, ast.Name) and each.id == self.name and not isinstance(
            each.ctx, ast.Store)) or (isinstance(each, ast.AugAssign) and isinstance(
                each.target, ast.Name) and each.target.id == self.name) for each in ast.walk(node))

    def _binds(self, node: ast.AST) -> bool:
        return any(isinstance(each, ast.Name) and each.id == self.name
                   and isinstance(each.ctx, ast.Store) for each in ast.walk(node))
