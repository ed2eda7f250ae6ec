"""Mutants: one small change each to the text of one file, found in its syntax tree.

    comparison   <  <=      ==  !=     is  is not     in  not in
    arithmetic   +  -       *  +       //  *     %  *     <<  >>     &  |     -x  x
    condition    a condition  its negation     not x  x    a filter  none
    logic        and  or
    constant     n  n + 1   n  n - 1   True  False
    call         f(x)  pass
    assignment   x.a = y, x[i] = y, x = f(x), x += y  pass
    return       return x  return None
    jump         raise  pass     break  continue
    arguments    f(a, b)  f(b, a)
    wrapper      with x:  if True:     a decorator that keeps or converts results  none
    emitted      icmp slt  icmp sle      add  sub     sext  zext     in the text of a program

What only states something that holds anyway is left alone: assertions, ``strict=`` and ``frozen=``.
"""

from __future__ import annotations

import ast
import copy
import difflib
import itertools
import random
import re
from collections import defaultdict
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

_INSTRUCTIONS: Mapping[str, str] = MappingProxyType({
    "slt": "sle", "sle": "slt", "sgt": "sge", "sge": "sgt", "ult": "ule", "ule": "ult",
    "ugt": "uge", "uge": "ugt", "eq": "ne", "ne": "eq", "oeq": "ueq", "une": "one", "olt": "ole",
    "ole": "olt", "ogt": "oge", "oge": "ogt", "uno": "ord", "ord": "uno",
    "add": "sub", "sub": "add", "mul": "add", "sdiv": "udiv", "udiv": "sdiv", "srem": "urem",
    "urem": "srem", "shl": "lshr", "lshr": "ashr", "ashr": "lshr", "and": "or", "or": "and",
    "xor": "or", "fadd": "fsub", "fsub": "fadd", "fmul": "fadd", "fdiv": "fmul", "sext": "zext",
    "zext": "sext",
})
_INSTRUCTION = re.compile(
    r"(?<=[if]cmp )[a-z]{2,3}\b"
    r"|\b(?:f?add|f?sub|f?mul|[suf]div|[su]rem|shl|[la]shr|and|or|xor|[sz]ext)"
    r"(?= (?:nsw |nuw |exact )*(?:i\d|float|double|<))"
    r"|\b(?:f?add|f?sub|f?mul|[suf]div|[su]rem|shl|[la]shr|xor|[sz]ext)(?= \{)")
# Without one of these the program does not even load: such a mistake needs no test.
_NEEDED = ("overload", "abstractmethod", "override", "property", "staticmethod", "classmethod",
           "contextmanager", "dataclass", "setter")
_STATED = ("strict", "frozen", "slots", "kw_only")  # arguments


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
    tree = ast.parse(source)
    for text, run in _texts(tree):
        begin = place(text.lineno, text.col_offset)
        end = place(text.end_lineno or text.lineno, text.end_col_offset or 0)
        for match in _INSTRUCTION.finditer(source, begin, end):
            if match[0] in _INSTRUCTIONS:
                line = 1 + source.count("\n", 0, match.start())
                mutant = Mutant(file, line, *match.span(), "emitted", _INSTRUCTIONS[match[0]], run)
                found[*match.span(), mutant.text] = mutant
    for node, kind, text, run in _changes(tree):
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


def _parts(tree: ast.Module) -> Iterator[tuple[ast.AST, tuple[int, int]]]:
    """Every part of the program that runs: no annotations or docstrings, and nothing in a text.

    Each with the lines of the statement around it, those of its head where it has a body.
    """
    pending: list[tuple[ast.AST, tuple[int, int]]] = [(tree, (1, 1))]
    while pending:
        node, lines = pending.pop()
        if isinstance(node, ast.Assert) or (
                isinstance(node, ast.keyword) and node.arg in _STATED):
            continue
        if isinstance(node, ast.stmt):
            lines = _lines(node)
        yield node, lines
        if isinstance(node, ast.JoinedStr) or (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue  # the fields of a text have no places of their own before Python 3.12
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns", "type_params"):
                children = value if isinstance(value, list) else [value]
                pending += [(child, lines) for child in children if isinstance(child, ast.AST)]


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str, str, tuple[int, int]]]:
    for node, lines in _parts(tree):
        for rule in _RULES:
            for changed, kind, text in rule(node):
                yield changed, kind, text, lines


def _texts(tree: ast.Module) -> Iterator[tuple[ast.expr, tuple[int, int]]]:
    for node, lines in _parts(tree):
        if isinstance(node, ast.JoinedStr) or (
                isinstance(node, ast.Constant) and isinstance(node.value, str)):
            yield node, lines


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


def _condition(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, "logic", _spelled(ast.BoolOp(other, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, "condition", _spelled(node.operand)
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)) and not isinstance(
            node.test, (ast.Compare, ast.Constant)):  # a comparison is negated on its own
        yield node.test, "condition", _spelled(ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.comprehension):
        for condition in node.ifs:
            yield condition, "condition", "True"


def _constant(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, "constant", str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        for value in (node.value + 1, node.value - 1):
            yield node, "constant", f"({value})" if value < 0 else str(value)


def _statement(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Expr) and isinstance(
            node.value, (ast.Call, ast.Yield, ast.YieldFrom)):
        yield node, "call", "pass"
    elif isinstance(node, ast.Delete) or _updates(node):
        yield node, "assignment", "pass"
    elif isinstance(node, ast.Return) and node.value is not None and not (
            isinstance(node.value, ast.Constant) and not node.value.value):
        yield node, "return", "return None"
    elif isinstance(node, ast.Raise):
        yield node, "jump", "pass"
    elif isinstance(node, ast.Break):
        yield node, "jump", "continue"
    elif isinstance(node, ast.Continue):
        yield node, "jump", "break"


def _updates(node: ast.AST) -> TypeGuard[ast.stmt]:
    """Whether a statement does something besides giving a first name to a value."""
    if not isinstance(node, ast.Assign):
        return isinstance(node, ast.AugAssign)
    if not isinstance(node.targets[0], ast.Name):
        return not isinstance(node.targets[0], ast.Tuple)
    return any(isinstance(part, ast.Name) and part.id == node.targets[0].id
               for part in ast.walk(node.value))


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
            name = ast.unparse(decorator).partition("(")[0]
            if name.rpartition(".")[2] not in _NEEDED:
                yield decorator, "wrapper", ""
    elif isinstance(node, ast.With):
        for at, item in enumerate(node.items):
            if item.optional_vars is None:
                rest = [*node.items[:at], *node.items[at + 1:]]
                held = ", ".join(map(ast.unparse, rest))
                yield node, "wrapper", f"with {held}:" if rest else "if True:"


_RULES: tuple[Callable[[ast.AST], Iterator[Change]], ...] = (
    _comparison, _arithmetic, _condition, _constant, _statement, _arguments, _wrapper)


def sampled(root: Path, files: Iterable[str], count: int, seed: int) -> list[Mutant]:
    """``count`` of the mutants of ``files``, of each kind the same number as long as they last.

    Else most would be of the kind that is most often possible: swapped arguments and constants.
    A larger sample with one seed contains a smaller.
    """
    sources = {file: (root / file).read_text(encoding="utf-8") for file in files}
    kinds = defaultdict[str, list[Mutant]](list)
    for file, source in sorted(sources.items()):
        for mutant in mutants_of(file, source):
            kinds[mutant.kind].append(mutant)
    dice = random.Random(seed)
    for _, mutants in sorted(kinds.items()):
        dice.shuffle(mutants)
    rounds = itertools.zip_longest(*(mutants for _, mutants in sorted(kinds.items())))
    order = (mutant for mutant in itertools.chain.from_iterable(rounds) if mutant is not None)
    good = (mutant for mutant in order if compiles(mutant, sources[mutant.file]))
    return list(itertools.islice(good, count))
