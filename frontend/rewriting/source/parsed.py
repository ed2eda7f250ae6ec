"""The definition of which a code object was compiled, newly parsed from the user's file."""

from __future__ import annotations

import ast
import inspect
import linecache
from types import CodeType

_COROUTINES = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def definition_of(code: CodeType) -> ast.FunctionDef | ast.Lambda | None:
    """The definition of which ``code`` was compiled, newly parsed; None if it is not found, or
    if it is a coroutine."""
    if code.co_flags & _COROUTINES:
        return None
    text = "".join(linecache.getlines(code.co_filename))
    if not text:
        return None
    try:
        module = ast.parse(text, code.co_filename)
    except SyntaxError:
        return None
    wanted: type[ast.AST] = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef
    found = [node for node in ast.walk(module) if isinstance(node, wanted) and _first_line(
        node) == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name]
    if len(found) > 1:  # several lambdas in one line
        found = [node for node in found if _same(node, code)]
    node = found[-1] if found else None  # the innermost: one around it has its columns, too
    return node if isinstance(node, (ast.FunctionDef, ast.Lambda)) else None


def _first_line(node: ast.AST) -> int:
    decorators = getattr(node, "decorator_list", None)
    first = decorators[0] if decorators else node
    return getattr(first, "lineno", 0)


def _same(node: ast.AST, code: CodeType) -> bool:
    """Whether a lambda has the columns of a code object."""
    columns = [(line, column) for line, _, column, _ in code.co_positions()
               if line is not None and column is not None]
    assert isinstance(node, ast.Lambda)
    end = node.body.end_lineno, node.body.end_col_offset
    start = node.body.lineno, node.body.col_offset
    return bool(columns) and all(start <= place <= end for place in columns
                                 if place[1] or place[0] != node.lineno)
