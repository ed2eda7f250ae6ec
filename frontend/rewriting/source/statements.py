"""The rewriting of one function: statements and expressions become calls of ``operators``.

    if c: A else: B       def then(): nonlocal x; A      _weft.if_(c, then, other, get, put, names)
    while c: A            def test(): return c           _weft.while_(roots, test, body, get,
                                                                      put, names)
    for t in xs: A        def body(t): ...               _weft.for_(xs, ask, roots, body, go_on,
                                                                    get, put, names)
    a if c else b         _weft.choose(c, lambda: a, lambda: b)
    a and b, a or b       _weft.both(lambda: a, lambda: b), _weft.either(...)
    not a, a == b         _weft.negated(a), _weft.compared("==", a, b)
    a < b < c             _weft.chained(a, (op, lambda: b), (op, lambda: c))
    f(x)                  _weft.called(f)(_weft.given(x))
    f"{x:.2f} s"          _weft.joined(_weft.formatted(x, -1, ".2f"), " s")
    [f(x) for x in xs     _weft.filtered(xs, lambda x: c, lambda x: f(x), False)
     if c]
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence, Set
from typing import Any

from .effects import of_loop
from .exits import Exits
from .heaps import as_heaps
from .matching import Matches
from .names import RUNTIME, bound, changed, here, path_of
from .own_lists import OwnLists, own_lists, returned, to_grow
from .queues import as_lists

_COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
             ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
          ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
          ast.LShift: "<<", ast.RShift: ">>", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
_ITERATORS = ("zip", "enumerate", "reversed", "iter")  # what makes those that nobody else has
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def rewritten(node: ast.FunctionDef) -> ast.FunctionDef:
    """The function, changed in place; see the module docstring. Lines and columns stay."""
    generates = _generates(node)
    if not generates:
        as_lists(node)
        as_heaps(node)
    own = OwnLists() if generates else own_lists(node)
    if not generates:
        _Around("growing", to_grow(node, own)).visit(node)
        _Extending(own).visit(node)
        _let_go(node, own)
        Matches().of_function(node)
        Exits().of_function(node)
    scope = _Scope(node, own)
    node.body = scope.block(node.body)
    node.decorator_list = []
    node.body[:0] = scope.prologue()
    return ast.fix_missing_locations(node)


class _Scope(ast.NodeTransformer):
    """One function's own statements; functions that are defined in it get a scope of their own."""

    def __init__(self, function: ast.FunctionDef, lists: OwnLists) -> None:
        self.lists = lists
        arguments = function.args
        self.parameters = [each.arg for each in (
            *arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs,
            *filter(None, (arguments.vararg, arguments.kwarg)))]
        self.outer = {name: type(each) for each in here(function.body)
                      if isinstance(each, (ast.Global, ast.Nonlocal)) for name in each.names}
        self.shared: dict[str, None] = {}  # locals that inner functions bind
        self.count = 0
        self.inner = [name for each in here(function.body) if isinstance(each, ast.FunctionDef)
                      for sub in ast.walk(each) if isinstance(sub, ast.Nonlocal)
                      for name in sub.names]
        self.own = {*bound(function.body), *self.parameters, *self.outer}

    def prologue(self) -> list[ast.stmt]:
        """Names that inner functions bind, as unbound locals of this one."""
        names = [name for name in self.shared
                 if name not in self.parameters and name not in self.outer]
        if not names:
            return []
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        gone: list[ast.expr] = [ast.Name(name, ast.Del()) for name in names]
        return [ast.Assign(targets, ast.Constant(None)), ast.Delete(gone)]

    def block(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in statements:
            found = self.visit(statement)
            made += found if isinstance(found, list) else [found]
        return made

    # -- statements -----------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        decorators = node.decorator_list
        node.args = self.visit(node.args)
        rewritten(node)
        node.decorator_list = decorators
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit(self, node: ast.AST) -> Any:
        """Statements with a ``yield`` inside stay statements of the generator itself."""
        if isinstance(node, (ast.If, ast.While, ast.For, ast.Try)) and _generates(node):
            self.generic_visit(node)
            if isinstance(node, (ast.If, ast.While)):
                node.test = _weft("known", [node.test], node.test)
            return node
        return super().visit(node)

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        paths = self._state((*node.body, *node.orelse))
        _as_truths(node.test)
        test = self.visit(node.test)
        parts = [self._function("then", node.body, paths), self._function(
            "other", node.orelse, paths)]
        return self._operator("if_", node, [test], parts, paths)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        paths = self._state((ast.Expr(node.test), *node.body))
        roots = self._roots(node)
        _as_truths(node.test)
        test = self._function("test", [ast.copy_location(ast.Return(node.test), node.test)], paths)
        return self._operator("while_", node, [roots], [
            test, self._function("body", node.body, paths)], paths)

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        item = self._fresh("item")
        bind = ast.copy_location(ast.Assign([node.target], ast.Name(item, ast.Load())),
                                 node.target)
        body = [bind, *node.body]
        paths = self._state(body)
        roots = self._roots(node)
        go_on = getattr(node, "go_on", None)
        parts = [self._function("body", body, paths, [item])]
        parts.append(self._function("go_on", [ast.copy_location(ast.Return(
            go_on if go_on is not None else ast.Constant(True)), node.iter)], paths))
        fresh = isinstance(node.iter, ast.Call) and getattr(
            node.iter.func, "id", "") in _ITERATORS
        source = self.visit(node.iter)
        if fresh:
            source = _weft("Fresh", [source], node.iter)
        return self._operator("for_", node, [source, ast.Constant(go_on is not None), roots],
                              parts, paths)

    def _roots(self, node: ast.For | ast.While) -> ast.expr:
        """A function that gives what a loop calls, if it only computes."""
        roots = of_loop(node, self.own, RUNTIME, self.lists.at(node))
        return ast.Constant(None) if roots is None else ast.copy_location(_thunk(ast.Tuple(
            [ast.copy_location(ast.Name(root, ast.Load()), node) for root in roots],
            ast.Load())), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """A name of a function that has parts of its own cannot be annotated in them."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        made: ast.stmt = self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))
        return made

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        target = copy.deepcopy(node.target)
        path = path_of(target)
        self.generic_visit(node)
        if path is None:
            return node
        made = _weft("in_place", [ast.Constant(_SIGNS[type(node.op)]),
                                  _path(path, ast.Load()), node.value], node)
        return ast.copy_location(ast.Assign([target], made), node)

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        _as_truths(node.test)
        message = _thunk(self.visit(node.msg)) if node.msg is not None else ast.Constant(None)
        return ast.copy_location(
            ast.Expr(_weft("check", [self.visit(node.test), message], node)), node)

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        self.generic_visit(node)
        if node.handlers:
            body = ast.With([ast.withitem(_weft("caught", [], node))], node.body)
            node.body = [ast.copy_location(body, node.body[0])]
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        self.generic_visit(node)
        if node.exc is not None:
            node.exc = _weft("raised", [node.exc], node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        if (choice := _choice(node)) is not None:
            return self.visit_If(choice)
        self.generic_visit(node)
        return node

    # -- expressions ----------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if _walrus(node.body, node.orelse):
            return self._plain(node)
        _as_truths(node.test)
        return _weft("choose", [self.visit(node.test), *map(_thunk, map(
            self.visit, (node.body, node.orelse)))], node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        if _walrus(*node.values[1:]):
            return self._plain(node)
        named = _walrus(node.values[0])
        name = "both" if isinstance(node.op, ast.And) else "either"
        parts = [self.visit(each) for each in node.values]
        if getattr(node, "truths", False):
            parts = [_weft("truth", [part], part) for part in parts]
        return _weft(name, [_thunk(part, at_once=named and at == 0)
                            for at, part in enumerate(parts)], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return _weft("negated", [node.operand], node)
        if isinstance(node.operand, ast.Constant):
            return node
        return _weft("single", [ast.Constant(_SIGNS[type(node.op)]), node.operand], node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)) and not (
                _asks_truth(node)):
            return self._plain(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], _ORDERED):
            self.generic_visit(node)
            return _weft("compared", [ast.Constant(_COMPARED[type(node.ops[0])]), node.left,
                                      *node.comparators], node)
        if _walrus(*node.comparators):
            return self._plain(node)
        pairs: list[ast.expr] = []
        for op, right in zip(node.ops, node.comparators, strict=True):
            text = ast.Constant(_COMPARED[type(op)])
            pairs.append(ast.Tuple([text, _thunk(self.visit(right))], ast.Load()))
        return _weft("chained", [self.visit(node.left), *pairs], node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        number = any(isinstance(side, ast.Constant) and not isinstance(side.value, str)
                     for side in (node.left,))
        if isinstance(node.op, ast.Mod) and not number:
            return _weft("percent", [node.left, node.right], node)
        sign = ast.Constant(_SIGNS[type(node.op)])
        return _weft("binary", [sign, node.left, node.right], node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or (
                isinstance(node.value, ast.Name) and node.value.id == RUNTIME):
            return node
        return _weft("attribute", [node.value, ast.Constant(node.attr)], node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.generic_visit(node)
        return _weft("joined", node.values, node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        self.generic_visit(node)
        spec = [] if node.format_spec is None else [node.format_spec]
        return _weft("formatted", [node.value, ast.Constant(node.conversion), *spec], node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
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
        node.func = _weft("called", [node.func], node.func)
        node.args = list(map(_given, node.args))
        for keyword in node.keywords:
            keyword.value = _given(keyword.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        inner = node.value
        if isinstance(node.ctx, ast.Load) and isinstance(inner, ast.Subscript) and not any(
                isinstance(part, (ast.Slice, ast.Tuple, ast.Call, ast.NamedExpr))
                for each in (node.slice, inner.slice) for part in ast.walk(each)):
            return _weft("item_of_row", [self.visit(part) for part in (
                inner.value, inner.slice, node.slice)], node)
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            node.value = _weft("places", [node.value], node.value)
            return node
        if isinstance(node.slice, ast.Tuple):
            node.slice.elts = list(map(_sliced, node.slice.elts))
        node.slice = _sliced(node.slice)
        return _weft("item", [node.value, node.slice], node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self._filtered("filtered", node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return self._filtered("Filtered", node)

    def _filtered(self, name: str, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
        (first, *more) = node.generators
        if more or first.is_async or _walrus(node):
            return self._plain(node)
        sure = ast.Constant(_only_computes(node.elt))
        item = self._fresh("item")
        if not first.ifs:  # of a list that may have fewer items
            parts: list[ast.expr] = [ast.Constant(None)]
        else:
            test = first.ifs[0] if len(first.ifs) == 1 else ast.copy_location(
                ast.BoolOp(ast.And(), first.ifs), first.ifs[0])
            _as_truths(test)
            parts = [_of_item(item, first.target, self.visit(test))]
        parts.append(_of_item(item, first.target, self.visit(node.elt)))
        return _weft(name, [self.visit(first.iter), *parts, sure], node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.args = self.visit(node.args)
        node.body = self.visit(node.body)
        return node

    def _plain(self, node: ast.expr) -> ast.expr:
        self.generic_visit(node)
        return node

    # -- parts ----------------------------------------------------------------------------------

    def _fresh(self, stem: str) -> str:
        self.count += 1
        return f"{RUNTIME}_{stem}_{self.count}"

    def _state(self, statements: Sequence[ast.AST]) -> tuple[str, ...]:
        """The paths that statements change and that are this function's to bind: not globals that
        it only reads, such as modules."""
        found = dict.fromkeys(changed(statements))
        if any(isinstance(node, ast.Call) for node in here(statements)):
            found |= dict.fromkeys(self.inner)  # by a function that is called
        return tuple(path for path in found if path.partition(".")[0] in self.own)

    def _function(
        self, stem: str, body: Sequence[ast.stmt], paths: Sequence[str],
        parameters: Sequence[str] = (),
    ) -> ast.FunctionDef:
        """A function without a result of its own over the names of this scope."""
        names = self._declared(paths)
        made = [*names, *self.block(body)] or [ast.Pass()]
        arguments = ast.arguments([], [ast.arg(name) for name in parameters], None, [], [], None,
                                  [])
        if isinstance(made[-1], (ast.Global, ast.Nonlocal)):
            made.append(ast.Pass())
        like = body[0] if body else ast.Pass()
        made_function = ast.FunctionDef(self._fresh(stem), arguments, made, [])
        return ast.copy_location(made_function, like) if body else made_function

    def _declared(self, paths: Sequence[str]) -> list[ast.stmt]:
        kinds: dict[type, list[str]] = {}
        for path in paths:
            if "." not in path:
                self.shared[path] = None
                kinds.setdefault(self.outer.get(path, ast.Nonlocal), []).append(path)
        return [kind(names) for kind, names in kinds.items()]

    def _operator(
        self, name: str, node: ast.stmt, arguments: list[ast.expr],
        parts: list[ast.FunctionDef], paths: tuple[str, ...],
    ) -> list[ast.stmt]:
        """The definitions of the parts, of ``get`` and ``put``, and the call."""
        get, put = self._fresh("get"), self._fresh("put")
        reads = [_thunk(_path(path, ast.Load())) for path in paths]
        read = ast.FunctionDef(get, ast.arguments([], [], None, [], [], None, []), [
            ast.Return(ast.Call(_attribute("values"), reads, []))], [])
        given = f"{RUNTIME}_values"
        binds: list[ast.stmt] = self._declared(paths)
        for at, path in enumerate(paths):
            value = ast.Subscript(ast.Name(given, ast.Load()), ast.Constant(at), ast.Load())
            binds += [ast.If(
                ast.Compare(value, [ast.Is()], [_attribute("UNBOUND")]),
                self._unbind(path), [ast.Assign([_path(path, ast.Store())], value)])]
        bind = ast.FunctionDef(put, ast.arguments([], [ast.arg(given)], None, [], [], None, []),
                               binds or [ast.Pass()], [])
        lists = self.lists.at(node)
        call = ast.Expr(ast.Call(_attribute(name), [
            *arguments, *(ast.Name(part.name, ast.Load()) for part in parts),
            ast.Name(get, ast.Load()), ast.Name(put, ast.Load()),
            ast.Tuple([ast.Call(_attribute("Own"), [ast.Constant(path)], []) if path in lists
                       else ast.Constant(path) for path in paths], ast.Load())], []))
        made = [*parts, read, bind, call]
        for each in made:
            if not hasattr(each, "lineno"):
                ast.copy_location(each, node)
        # The call shows the line of the test, not all of the statement.
        ast.copy_location(call.value, getattr(node, "test", getattr(node, "iter", node)))
        return made

    @staticmethod
    def _unbind(path: str) -> list[ast.stmt]:
        """``del``, also of what is not bound."""
        first: list[ast.stmt] = [ast.Assign([_path(path, ast.Store())], ast.Constant(None)),
                                 ast.Delete([_path(path, ast.Del())])]
        if "." not in path:
            return first
        lost = ast.Tuple([ast.Name(name, ast.Load()) for name in ("NameError", "AttributeError")],
                         ast.Load())  # of an object that is not bound, either
        return [ast.Try(first, [ast.ExceptHandler(lost, None, [ast.Pass()])], [], [])]


def _let_go(function: ast.FunctionDef, lists: OwnLists) -> None:
    """Let lists that are returned be those of who calls the function."""
    for node in here(function.body):
        if isinstance(node, ast.Return) and node.value is not None:
            values = {value for value in returned(node.value)
                      if isinstance(value, ast.Name) and value.id in lists.at(value)}
            node.value = _Around("let_go", values).visit(node.value)


class _Extending(ast.NodeTransformer):
    """``a.extend(b)`` and ``a += b`` of such lists bind them anew."""

    def __init__(self, lists: OwnLists) -> None:
        self.lists = lists

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and (
                call.func.attr == "extend" and len(call.args) == 1 and not call.keywords):
            return self._bound(call.func.value, call.args[0], node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        return self._bound(node.target, node.value, node) if isinstance(node.op, ast.Add) else node

    def _bound(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> ast.stmt:
        if not (isinstance(target, ast.Name) and target.id in self.lists.at(node)):
            return node
        made = _weft("extended", [ast.Name(target.id, ast.Load()), value], node)
        return ast.copy_location(ast.Assign([ast.Name(target.id, ast.Store())], made), node)


class _Around(ast.NodeTransformer):
    """Puts a call of ours around some expressions."""

    def __init__(self, name: str, values: Set[ast.AST]) -> None:
        self.name, self.values = name, values

    def visit(self, node: ast.AST) -> Any:
        inner = self.generic_visit(node)
        if node in self.values and isinstance(inner, ast.expr):
            return _weft(self.name, [inner], node)
        return inner


def _of_item(name: str, target: ast.expr, value: ast.expr) -> ast.expr:
    """A value as a function of the item that it is computed of: several targets are bound by
    ``[value for target in (item,)][0]``."""
    arguments = ast.arguments([], [ast.arg(name)], None, [], [], None, [])
    alone = ast.Tuple([ast.Name(name, ast.Load())], ast.Load())
    bound = ast.ListComp(value, [ast.comprehension(copy.deepcopy(target), alone, [], 0)])
    first = ast.Subscript(bound, ast.Constant(0), ast.Load())
    made = ast.Lambda(arguments, value if isinstance(target, ast.Name) else first)
    if isinstance(target, ast.Name):
        arguments.args[0].arg = target.id
    for part in ast.walk(made):
        if isinstance(part, (ast.expr, ast.arg)) and not hasattr(part, "lineno"):
            ast.copy_location(part, value)
    return made


def _only_computes(node: ast.expr) -> bool:
    """Whether an expression does no more than arithmetic."""
    return all(isinstance(each, (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator,
                                 ast.unaryop, ast.expr_context)) for each in ast.walk(node))


def _as_truths(test: ast.AST) -> None:
    """Mark ``and`` and ``or`` of which only the truth is asked for: their sides may be numbers."""
    if isinstance(test, ast.BoolOp):
        test.truths = True  # type: ignore[attr-defined]
        for value in test.values:
            _as_truths(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        _as_truths(test.operand)


def _choice(node: ast.Expr) -> ast.If | None:
    """A ternary, ``and`` or ``or`` for whose value nobody asks, as the ``if`` that it is."""
    value = node.value
    if isinstance(value, ast.IfExp):
        made = ast.If(value.test, [ast.Expr(value.body)], [ast.Expr(value.orelse)])
    elif isinstance(value, ast.BoolOp):
        *first, last = value.values
        test = first[0] if len(first) == 1 else ast.BoolOp(value.op, first)
        if isinstance(value.op, ast.Or):
            test = ast.UnaryOp(ast.Not(), test)
        made = ast.If(test, [ast.Expr(last)], [])
    else:
        return None
    for part in (made, made.test, *made.body, *made.orelse):
        ast.copy_location(part, value)
    return ast.fix_missing_locations(made)


def _asks_truth(node: ast.Compare) -> bool:
    """``x is True`` and ``x is None``, which may have a traced answer."""
    (other, *_) = node.comparators
    return isinstance(node.ops[0], (ast.Is, ast.IsNot)) and isinstance(
        other, ast.Constant) and (other.value is None or isinstance(other.value, bool))


def _generates(node: ast.AST) -> bool:
    return any(isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await))
               for each in here(ast.iter_child_nodes(node)))


def _walrus(*nodes: ast.AST) -> bool:
    return any(isinstance(each, ast.NamedExpr) for each in here(nodes))


def _attribute(name: str) -> ast.expr:
    return ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())


def _weft(
    name: str, args: Sequence[ast.expr], like: ast.AST, keywords: Sequence[ast.keyword] = ()
) -> ast.expr:
    return ast.copy_location(ast.Call(_attribute(name), [*args], [*keywords]), like)


def _sliced(node: ast.expr) -> ast.expr:
    """``a:b:c`` among the indices of an item, as the value that it is."""
    if not isinstance(node, ast.Slice):
        return node
    return _weft("sliced", [part or ast.Constant(None) for part in (
        node.lower, node.upper, node.step)], node)


def _calls_ours(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
        node.func.attr == name and isinstance(node.func.value, ast.Name)
        and node.func.value.id == RUNTIME)


def _given(node: ast.expr) -> ast.expr:
    named = isinstance(node, ast.Name) or _calls_ours(node, "attribute")
    return _weft("given", [node], node) if named else node


def _thunk(body: ast.expr, at_once: bool = False) -> ast.expr:
    """A function of nothing. What is computed ``at_once`` may bind names."""
    empty = ast.arguments([], [], None, [], [], None, [])
    if at_once:
        empty.args.append(ast.arg(f"{RUNTIME}_value"))
        empty.defaults.append(body)
        body = ast.copy_location(ast.Name(f"{RUNTIME}_value", ast.Load()), body)
        ast.copy_location(empty.args[0], body)
    return ast.copy_location(ast.Lambda(empty, body), body)


def _path(path: str, context: ast.expr_context) -> ast.expr:
    first, *rest = path.split(".")
    node: ast.expr = ast.Name(first, ast.Load() if rest else context)
    for at, name in enumerate(rest):
        node = ast.Attribute(node, name, context if at == len(rest) - 1 else ast.Load())
    return node
