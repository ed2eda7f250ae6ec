"""The rewriting of expressions: each becomes a call of ``operators``.

    a if c else b         _weft.choose(c, lambda: a, lambda: b)
    a and b, a or b       _weft.both(lambda: a, lambda: b), _weft.either(...)
    not a, a == b         _weft.negated(a), _weft.compared("==", a, b)
    a < b < c             _weft.chained(a, (op, lambda: b), (op, lambda: c))
    a + b, -a, a.b, a[i]  _weft.binary("+", a, b), _weft.single("-", a), _weft.attribute(a, "b"),
                          _weft.item(a, i)
    f(x)                  _weft.called(f)(_weft.given(x))
    f"{x:.2f} s"          _weft.joined(_weft.formatted(x, -1, ".2f"), " s")
    [f(x) for x in xs     _weft.filtered(xs, lambda x: c, lambda x: f(x), False)
     if c]
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .effects import of_element
from .names import RUNTIME, here
from .nodes import given, of_item, ours, sliced, thunk
from .own_lists import only_asks

_COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
             ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
          ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
          ast.LShift: "<<", ast.RShift: ">>", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


class Expressions(ast.NodeTransformer):
    """Those of one function, which has these parameters, and names of its ``own``."""

    def __init__(self, parameters: Sequence[str]) -> None:
        self.parameters, self.count = parameters, 0
        self.own: set[str] = {*parameters}

    def fresh(self, stem: str) -> str:
        """A name that no code of the user's has."""
        self.count += 1
        return f"{RUNTIME}_{stem}_{self.count}"

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if _walrus(node.body, node.orelse):
            return self._plain(node)
        as_truths(node.test)
        return ours("choose", [self.visit(node.test), *map(thunk, map(
            self.visit, (node.body, node.orelse)))], node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        if _walrus(*node.values[1:]):
            return self._plain(node)
        named = _walrus(node.values[0])
        name = "both" if isinstance(node.op, ast.And) else "either"
        parts = [self.visit(each) for each in node.values]
        if getattr(node, "truths", False):
            parts = [ours("truth", [part], part) for part in parts]
        return ours(name, [thunk(part, at_once=named and at == 0)
                            for at, part in enumerate(parts)], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return ours("negated", [node.operand], node)
        if isinstance(node.operand, ast.Constant):
            return node
        return ours("single", [ast.Constant(SIGNS[type(node.op)]), node.operand], node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)) and not (
                _asks_truth(node)):
            return self._plain(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], _ORDERED):
            self.generic_visit(node)
            return ours("compared", [ast.Constant(_COMPARED[type(node.ops[0])]), node.left,
                                      *node.comparators], node)
        if _walrus(*node.comparators):
            return self._plain(node)
        pairs: list[ast.expr] = []
        for op, right in zip(node.ops, node.comparators, strict=True):
            text = ast.Constant(_COMPARED[type(op)])
            pairs.append(ast.Tuple([text, thunk(self.visit(right))], ast.Load()))
        return ours("chained", [self.visit(node.left), *pairs], node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        number = any(isinstance(side, ast.Constant) and not isinstance(side.value, str)
                     for side in (node.left,))
        if isinstance(node.op, ast.Mod) and not number:
            return ours("percent", [node.left, node.right], node)
        sign = ast.Constant(SIGNS[type(node.op)])
        return ours("binary", [sign, node.left, node.right], node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or (
                isinstance(node.value, ast.Name) and node.value.id == RUNTIME):
            return node
        return ours("attribute", [node.value, ast.Constant(node.attr)], node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.generic_visit(node)
        return ours("joined", node.values, node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        self.generic_visit(node)
        spec = [] if node.format_spec is None else [node.format_spec]
        return ours("formatted", [node.value, ast.Constant(node.conversion), *spec], node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if only_asks(node.func):  # nobody else has the list that NumPy is given
            for each in node.args:
                each.asked = True  # type: ignore[attr-defined]  # read below
        if isinstance(node.func, ast.Attribute):  # a method
            node.func.value = self.visit(node.func.value)
            node.args = [self.visit(each) for each in node.args]
            node.keywords = [self.visit(each) for each in node.keywords]
        else:
            self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            node.args = [ast.Name("__class__", ast.Load()),
                         ast.Name(self.parameters[0], ast.Load())]
            return node
        if isinstance(node.func, ast.Name) and node.func.id in ("locals", "globals", "vars"):
            return node
        if isinstance(node.func, ast.Attribute) and isinstance(
                node.func.value, ast.Name) and node.func.value.id == RUNTIME:
            return node
        node.func = ours("called", [node.func], node.func)
        node.args = list(map(given, node.args))
        for keyword in node.keywords:
            keyword.value = given(keyword.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        inner = node.value
        if isinstance(node.ctx, ast.Load) and isinstance(inner, ast.Subscript) and not any(
                isinstance(part, (ast.Slice, ast.Tuple, ast.Call, ast.NamedExpr))
                for each in (node.slice, inner.slice) for part in ast.walk(each)):
            return ours("item_of_row", [self.visit(part) for part in (
                inner.value, inner.slice, node.slice)], node)
        self.generic_visit(node)
        if isinstance(node.slice, ast.Tuple):
            node.slice.elts = list(map(sliced, node.slice.elts))
        node.slice = sliced(node.slice)
        if isinstance(node.ctx, ast.Load):
            return ours("item", [node.value, node.slice], node)
        node.value = ours("places", [node.value], node.value)
        if not isinstance(node.slice, ast.Constant):
            node.slice = ours("index", [node.slice], node.slice)
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self._filtered("filtered", node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return self._filtered("Filtered", node)

    def _filtered(self, name: str, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
        (first, *more) = node.generators
        late = any(isinstance(each, ast.Lambda) for each in ast.walk(node.elt))
        if more or first.is_async or late or _walrus(node):  # functions see the last item
            return self._plain(node)
        sure = ast.Constant(_only_computes(node.elt))
        item, roots = self.fresh("item"), list[ast.expr]()
        if name == "filtered" and not first.ifs and getattr(node, "asked", False):
            roots.append(self.calls(node, of_element(node, self.own, RUNTIME)))
        if not first.ifs:  # of a list that may have fewer items
            parts: list[ast.expr] = [ast.Constant(None)]
        else:
            test = first.ifs[0] if len(first.ifs) == 1 else ast.copy_location(
                ast.BoolOp(ast.And(), first.ifs), first.ifs[0])
            as_truths(test)
            parts = [of_item(item, first.target, self.visit(test))]
        parts.append(of_item(item, first.target, self.visit(node.elt)))
        return ours(name, [self.visit(first.iter), *parts, sure, *roots], node)

    @staticmethod
    def calls(node: ast.AST, roots: Sequence[str] | None) -> ast.expr:
        """A function that gives what a loop calls, if it only computes (``effects``)."""
        if roots is None:
            return ast.Constant(None)
        found: list[ast.expr] = []
        for root in roots:
            name, _, path = root.partition(".")
            value = ast.copy_location(ast.Name(name, ast.Load()), node)
            found.append(ours("Method", [value, ast.Constant(path)], node) if path else value)
        return ast.copy_location(thunk(ast.Tuple(found, ast.Load())), node)

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = ours("iterated", [node.value], node.value)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.iter = ours("iterated", [node.iter], node.iter)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.args = self.visit(node.args)
        node.body = self.visit(node.body)
        return node

    def _plain(self, node: ast.expr) -> ast.expr:
        self.generic_visit(node)
        return node


def _only_computes(node: ast.expr) -> bool:
    """Whether an expression does no more than arithmetic."""
    return all(isinstance(each, (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator,
                                 ast.unaryop, ast.expr_context)) for each in ast.walk(node))


def as_truths(test: ast.AST) -> None:
    """Mark ``and`` and ``or`` of which only the truth is asked for: their sides may be numbers."""
    if isinstance(test, ast.BoolOp):
        test.truths = True  # type: ignore[attr-defined]
        for value in test.values:
            as_truths(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        as_truths(test.operand)


def _asks_truth(node: ast.Compare) -> bool:
    """``x is True`` and ``x is None``, which may have a traced answer."""
    (other, *_) = node.comparators
    return isinstance(node.ops[0], (ast.Is, ast.IsNot)) and isinstance(
        other, ast.Constant) and (other.value is None or isinstance(other.value, bool))


def _walrus(*nodes: ast.AST) -> bool:
    return any(isinstance(each, ast.NamedExpr) for each in here(nodes))
