"""A smaller program with the same finding: statements are left out, and expressions become plain
names, as long as it stays."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..minimise import signature


def minimise(
    program: Any, check: Callable[[Any], Any], what: str, seconds: float
) -> Any:
    """The smallest program, a dataclass with a ``text``, found in so many seconds whose finding
    reads alike."""
    end, wanted = time.monotonic() + seconds, signature(what)[:60]
    tried: set[str] = set()
    while True:
        for text in _smaller(program.text):
            if time.monotonic() > end:
                return program
            if text in tried:
                continue
            tried.add(text)
            outcome = check(replace(program, text=text))
            if outcome.verdict == "finding" and signature(outcome.what)[:60] == wanted:
                program = replace(program, text=text)
                break
        else:
            return program


def _smaller(text: str) -> Iterator[str]:
    """Texts with one statement, or one expression, less."""
    for at in range(len(_statements(ast.parse(text)))):
        tree = ast.parse(text)
        rows, place = _statements(tree)[at]
        del rows[place]
        if not rows:
            rows.append(ast.Pass())
        yield ast.unparse(tree) + "\n"
    for at in range(len(_expressions(ast.parse(text)))):
        tree = ast.parse(text)
        old, new = _expressions(tree)[at]
        yield ast.unparse(_Put(old, new).visit(tree)) + "\n"


def _statements(tree: ast.AST) -> list[tuple[list[ast.stmt], int]]:
    rows = [rows for node in ast.walk(tree) for name in ("body", "orelse")
            if isinstance(rows := getattr(node, name, None), list)]
    return [(each, at) for each in rows for at in range(len(each))]


def _expressions(tree: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """Expressions, and parts that may stand in their places."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            pairs += [(node, node.left), (node, node.right)]
        elif isinstance(node, ast.Call):
            pairs += [(node, each) for each in node.args]
    return pairs


class _Put(ast.NodeTransformer):
    """Puts one expression in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)
