"""A line of the user's as it would be with ``np.where``, ``weft.cond`` or ``weft.while_loop``: what
an error about this very line suggests.

    if x > 0:                  np.where(x > 0, ..., ...), or weft.cond(x > 0, lambda: ..., ...)
    y = a if x > 0 else b      y = np.where(x > 0, a, b)
    while s < 9:               s = weft.while_loop(lambda s: s < 9, body, s, max_iterations=1000)
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Sequence

from ....ir.loc import Loc
from ....ir.types import DType

# What to write instead of asking for the truth of a traced value, by how the line asks.
_QUESTIONS: tuple[tuple[str, str], ...] = (
    (r"\s*assert\b", "check it outside of the traced function"),
    (r".*\b(max|min)\(", "use np.maximum or np.minimum"),
    (r".*\b(and|or|not)\b", "use np.logical_and, np.logical_or and np.logical_not"),
)


def truth_hint(locs: Sequence[Loc]) -> str:
    """What to do instead of asking for the truth of a traced value at the first place."""
    line = locs[0].source if locs else ""
    if line.lstrip().startswith(("if ", "elif ")) and _in_generator(locs):
        return "append the items to a list and return it: a generator cannot depend on them"
    choice = rewritten(line)
    if choice:
        return f"write {choice}"
    found = (hint for pattern, hint in _QUESTIONS if re.match(pattern, line))
    return next(found, "choose with np.where(c, a, b)")


def _in_generator(locs: Sequence[Loc]) -> bool:
    """Whether the place is in a function that yields."""
    code = getattr(locs[0], "code", None) if locs else None
    return code is not None and bool(code.co_flags & inspect.CO_GENERATOR) and (
        code.co_name != "<genexpr>")


def rewrite_of(locs: Sequence[Loc]) -> str:
    """What to write instead of the line at the first place; "" where there is nothing to say."""
    return rewritten(locs[0].source) if locs else ""


def bounded(locs: Sequence[Loc]) -> str:
    """The line at the first place with a bound for the rounds of its loop; "" where there is
    nothing to say."""
    node = _parsed(locs[0].source.partition("  #")[0].strip()) if locs else None
    loops = [each for each in ast.walk(node or ast.Pass()) if isinstance(each, ast.Call)
             and ast.unparse(each.func).rpartition(".")[2] in ("fori_loop", "while_loop")]
    for call in loops:
        call.keywords.append(ast.keyword("max_iterations", ast.Constant(1000)))
    return ast.unparse(node) if node is not None and loops else rewrite_of(locs)


def rewritten(line: str) -> str:
    """One line of code whose condition is traced, by functions of arrays and of Weft.

    >>> rewritten("y = 1 if x > 0 else 2")
    'y = np.where(x > 0, 1, 2)'
    """
    node = _parsed(line.partition("  #")[0].strip())
    match node:
        case ast.If(test=test):
            flag = ast.unparse(test)
            return f"np.where({flag}, ..., ...), or weft.cond({flag}, lambda: ..., lambda: ...)"
        case ast.While(test=test):
            side = test.left if isinstance(test, ast.Compare) else test
            state = next((each.id for each in ast.walk(side) if isinstance(each, ast.Name)), "s")
            return (f"{state} = weft.while_loop(lambda {state}: {ast.unparse(test)}, body, "
                    f"{state}, max_iterations=1000)")
        case ast.For(target=target, iter=ast.Call(func=ast.Name(id="range"), args=args)):
            bounds = args[:2] if len(args) > 1 else [ast.Constant(0), *args]
            low, high = map(ast.unparse, bounds)
            return (f"s = weft.fori_loop({low}, {high}, lambda {ast.unparse(target)}, s: ..., s, "
                    "max_iterations=1000)")
        case None:
            return ""
    choices = _Choices()
    made = choices.visit(node)
    return ast.unparse(made) if choices.found else ""


def converted(locs: Sequence[Loc], dtype: DType) -> str:
    """The assignment at the first place, of a value of this dtype; "" if there is none."""
    match _parsed(locs[0].source.partition("  #")[0].strip()) if locs else None:
        case ast.Assign(targets=[target], value=value):
            inner = ast.unparse(value)
            plain = isinstance(value, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
            return (f"{ast.unparse(target)} = {inner if plain else f'({inner})'}"
                    f".astype(np.{dtype.numpy})")
    return ""


def _parsed(line: str) -> ast.stmt | None:
    for text in (line, f"{line} pass", f"if{line[4:]} pass" if line.startswith("elif") else line):
        try:
            return ast.parse(text).body[0]
        except (SyntaxError, IndexError):
            continue
    return None


class _Choices(ast.NodeTransformer):
    """Ternaries as ``np.where``."""

    found = False

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        self.found = True
        where = ast.Attribute(ast.Name("np", ast.Load()), "where", ast.Load())
        return ast.Call(where, [node.test, node.body, node.orelse], [])
