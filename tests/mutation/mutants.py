"""Mutants: one small change each to the text of one file, found in its syntax tree.

    comparison  <  <=      ==  !=     is  is not     in  not in
    arithmetic  +  -       *  +       //  *     %  *     <<  >>     &  |     -x  x
    boolean     and  or    not x  x   a condition  its negation     a filter  none
    constant    n  n + 1   n  n - 1   True  False
    statement   a call, an update, a raise  pass      return x  return None      break  continue
    arguments   f(a, b)  f(b, a)
    wrapper     a decorator  none     with x:  if True:
"""

from __future__ import annotations

import ast
import copy
import difflib
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeGuard

_COMPARED: Mapping[type[ast.cmpop], type[ast.cmpop]] = MappingProxyType({
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
})
_COMPUTED: Mapping[type[ast.operator], type[ast.operator]] = MappingProxyType({
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
})


@dataclass(frozen=True, order=True)
class Mutant:
    """Characters ``begin`` to ``end`` of ``file`` become ``text``, from ``line`` on.

    ``run`` are the first and last line of what has to run for a test to notice.
    """

    file: str
    line: int
    begin: int
    end: int
    kind: str
    text: str
    run: tuple[int, int]

    @property
    def key(self) -> str:
        """The same in every run on the same sources."""
        return f"{self.file}:{self.line}:{self.begin}-{self.end}:{self.kind}:{self.text}"

    def applied(self, source: str) -> str:
        """The file with the change."""
        return source[:self.begin] + self.text + source[self.end:]

    def diff(self, source: str) -> str:
        """The change as a unified diff without headers or context."""
        lines = difflib.unified_diff(source.splitlines(), self.applied(source).splitlines(), n=0,
                                     lineterm="")
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def mutants_of(file: str, source: str) -> list[Mutant]:
    """All mutants of a file, in order; a few of them may not compile."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = source.splitlines()

    def place(line: int, column: int) -> int:
        # Columns of a syntax tree count bytes.
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    found = dict[tuple[int, int, str], Mutant]()
    for node, kind, text, run in _changes(ast.parse(source)):
        first = node.lineno
        begin = place(first, node.col_offset)
        end = place(node.end_lineno or first, node.end_col_offset or 0)
        if kind == "wrapper" and not isinstance(node, (ast.With, ast.AsyncWith)):
            begin = source.rindex("@", 0, begin)  # a decorator's mark is no part of its node
        if isinstance(node, (ast.With, ast.AsyncWith)):
            end = source.index("\n", place(node.items[-1].context_expr.end_lineno or first, 0))
        mutant = Mutant(file, first, begin, end, kind, text, run)
        found.setdefault((begin, end, text), mutant)
    return sorted(found.values())


def compiles(mutant: Mutant, source: str) -> bool:
    """Whether the change is one that Python would take."""
    try:
        compile(mutant.applied(source), mutant.file, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


Change = tuple[ast.expr | ast.stmt, str, str]
"""A node, the kind of the mutation and the text that takes the node's place."""


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str, str, tuple[int, int]]]:
    """Every change to a part of the program that runs: no annotations, docstrings or texts.

    Each with the lines of the statement around it, those of its head where it has a body.
    """
    pending: list[tuple[ast.AST, tuple[int, int]]] = [(tree, (1, 1))]
    while pending:
        node, lines = pending.pop()
        if isinstance(node, ast.stmt):
            lines = _lines(node)
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                # Texts with fields have no places of their own before Python 3.12.
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    pending.append((child, lines))
        for rule in _RULES:
            for changed, kind, text in rule(node):
                yield changed, kind, text, lines


def _lines(node: ast.stmt) -> tuple[int, int]:
    body = getattr(node, "body", None)
    begin = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])
    end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
    return begin, max(begin, end)


def _spelled(node: ast.AST) -> str:
    return f"({ast.unparse(node)})"


def _comparison(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            changed = copy.copy(node)
            changed.ops = list(node.ops)
            changed.ops[at] = _COMPARED[type(operator)]()
            yield node, "comparison", _spelled(changed)


def _arithmetic(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        texts = any(isinstance(side, (ast.JoinedStr, ast.Constant)) and not _number(side)
                    for side in (node.left, node.right))
        if not texts:
            yield node, "arithmetic", _spelled(
                ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node, "arithmetic", _spelled(node.operand)
    elif isinstance(node, ast.AugAssign) and type(node.op) in _COMPUTED:
        yield node, "arithmetic", ast.unparse(
            ast.AugAssign(node.target, _COMPUTED[type(node.op)](), node.value))


def _number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _boolean(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, "boolean", _spelled(ast.BoolOp(other, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, "boolean", _spelled(node.operand)
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)) and not isinstance(
            node.test, (ast.Compare, ast.Constant)):  # a comparison is negated on its own
        yield node.test, "boolean", _spelled(ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.comprehension):
        for condition in node.ifs:
            yield condition, "boolean", "True"


def _constant(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, "constant", str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        for value in (node.value + 1, node.value - 1):
            yield node, "constant", f"({value})" if value < 0 else str(value)


def _statement(node: ast.AST) -> Iterator[Change]:
    if _acts(node):
        yield node, "statement", "pass"
    elif isinstance(node, ast.Return) and node.value is not None and not (
            isinstance(node.value, ast.Constant) and not node.value.value):
        yield node, "statement", "return None"
    elif isinstance(node, ast.Break):
        yield node, "statement", "continue"
    elif isinstance(node, ast.Continue):
        yield node, "statement", "break"


def _acts(node: ast.AST) -> TypeGuard[ast.stmt]:
    """Whether a statement does something besides giving a name to a value."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, (ast.Call, ast.YieldFrom, ast.Yield))
    if isinstance(node, ast.Assign):
        return not isinstance(node.targets[0], (ast.Name, ast.Tuple))
    return isinstance(node, (ast.Raise, ast.AugAssign, ast.Delete, ast.Assert))


def _arguments(node: ast.AST) -> Iterator[Change]:
    if not isinstance(node, ast.Call):
        return
    for at in range(len(node.args) - 1):
        first, second = node.args[at:at + 2]
        if any(isinstance(arg, ast.Starred) for arg in (first, second)):
            continue
        if ast.dump(first) != ast.dump(second):
            changed = copy.copy(node)
            changed.args = [*node.args[:at], second, first, *node.args[at + 2:]]
            yield node, "arguments", ast.unparse(changed)


def _wrapper(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        for decorator in node.decorator_list:
            if ast.unparse(decorator) not in ("overload", "abstractmethod", "override"):
                yield decorator, "wrapper", ""
    elif isinstance(node, ast.With):
        for at, item in enumerate(node.items):
            if item.optional_vars is None:
                rest = [*node.items[:at], *node.items[at + 1:]]
                held = ", ".join(map(ast.unparse, rest))
                yield node, "wrapper", f"with {held}:" if rest else "if True:"


_RULES: tuple[Callable[[ast.AST], Iterator[Change]], ...] = (
    _comparison, _arithmetic, _boolean, _constant, _statement, _arguments, _wrapper)


def sampled(root: Path, files: Iterable[str], count: int, seed: int) -> list[Mutant]:
    """``count`` of the mutants of ``files``; a larger sample with one seed contains a smaller."""
    sources = {file: (root / file).read_text(encoding="utf-8") for file in files}
    order = [mutant for file, source in sorted(sources.items())
             for mutant in mutants_of(file, source)]
    random.Random(seed).shuffle(order)
    good = (mutant for mutant in order if compiles(mutant, sources[mutant.file]))
    return list(itertools.islice(good, count))
