"""The rewriting of one function: statements become calls of ``operators``, and so do
their ``expressions``.

    if c: A else: B       def then(): nonlocal x; A      _weft.if_(c, then, other, get, put, names)
    while c: A            def test(): return c           _weft.while_(roots, test, body, get,
                                                                      put, names)
    for t in xs: A        def body(t): ...               _weft.for_(xs, ask, roots, body, go_on,
                                                                    get, put, names)
    x += a                x = _weft.in_place("+", x, a)
    assert c, m           _weft.check(c, lambda: m)
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from typing import Any

from .appending import as_loops
from .effects import of_loop
from .exits import Exits, Results
from .expressions import SIGNS, Expressions, as_truths
from .heaps import as_heaps
from .lasting import Occurrences
from .list_calls import Around, Extending, Moved, let_go
from .matching import Matches
from .names import RUNTIME, bound, changed, here, path_of
from .nodes import attribute, ours, path_node, thunk
from .own_lists import OwnLists, own_lists, to_grow
from .queues import as_lists

_WITH_BODIES = (ast.If, ast.While, ast.For, ast.Try, ast.TryStar)
_EXITS = (ast.Return, ast.Break, ast.Continue)
_ITERATORS = ("zip", "enumerate", "reversed", "iter")  # what makes those that nobody else has


def rewritten(node: ast.FunctionDef) -> ast.FunctionDef:
    """The function, changed in place; see the module docstring. Lines and columns stay."""
    generates = _generates(node)
    if not generates:
        as_loops(node)
        as_lists(node)
        as_heaps(node)
    own = OwnLists() if generates else own_lists(node)
    occurrences = Occurrences.of(node)
    if not generates:
        Around("growing", to_grow(node, own)).visit(node)
        Extending(own).visit(node)
        Moved(own.moved).visit(node)
        Matches().of_function(node)
        results = Results.of(node, own)
        let_go(node, own, results)
        Exits(results).of_function(node)
        own = own.with_names(results.own, results.rows)
    scope = _Scope(node, own, occurrences)
    node.body = scope.block(node.body)
    node.decorator_list = []
    node.body[:0] = scope.prologue()
    return ast.fix_missing_locations(node)


class _Scope(Expressions, ast.NodeTransformer):
    """One function's own statements; functions that are defined in it get a scope of their own."""

    def __init__(
        self, function: ast.FunctionDef, lists: OwnLists, occurrences: Occurrences
    ) -> None:
        self.lists, self.occurrences = lists, occurrences
        arguments = function.args
        super().__init__([each.arg for each in (
            *arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs,
            *filter(None, (arguments.vararg, arguments.kwarg)))])
        self.outer = {name: type(each) for each in here(function.body)
                      if isinstance(each, (ast.Global, ast.Nonlocal)) for name in each.names}
        self.shared: dict[str, None] = {}  # locals that inner functions bind
        self.inner = [name for each in here(function.body) if isinstance(each, ast.FunctionDef)
                      for sub in ast.walk(each) if isinstance(sub, ast.Nonlocal)
                      for name in sub.names]
        self.generates = _generates(function)
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
        """Statements with a ``yield`` inside stay statements of the generator itself, and so do
        those that it leaves by."""
        if isinstance(node, _WITH_BODIES) and (_generates(node) or (
                self.generates and any(isinstance(each, _EXITS) for each in here([node])))):
            self.generic_visit(node)
            if isinstance(node, (ast.If, ast.While)):
                node.test = ours("known", [node.test], node.test)
            elif isinstance(node, ast.For):
                node.iter = ours("iterated", [node.iter], node.iter)
            return node
        return super().visit(node)

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        paths = self._state((*node.body, *node.orelse))
        as_truths(node.test)
        test = self.visit(node.test)
        parts = [self._function("then", node.body, paths), self._function(
            "other", node.orelse, paths)]
        return self._operator("if_", node, [test], parts, paths)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        paths = self._state((ast.Expr(node.test), *node.body))
        roots = self._roots(node)
        as_truths(node.test)
        test = self._function("test", [ast.copy_location(ast.Return(node.test), node.test)], paths)
        return self._operator("while_", node, [roots], [
            test, self._function("body", node.body, paths)], paths)

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        item = self.fresh("item")
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
            source = ours("Fresh", [source], node.iter)
        return self._operator("for_", node, [source, ast.Constant(go_on is not None), roots],
                              parts, paths)

    def _roots(self, node: ast.For | ast.While) -> ast.expr:
        """A function that gives what a loop calls, if it only computes."""
        return self.calls(node, of_loop(node, self.own, RUNTIME, self.lists.at(node)))

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        if len(node.targets) == 1 and isinstance(target := node.targets[0], ast.Attribute):
            name = ast.Constant(target.attr)
            made = ours("set_attribute", [node.value, target.value, name], node)
            return ast.copy_location(ast.Expr(made), node)
        if any(isinstance(each, (ast.Tuple, ast.List)) for each in node.targets) and not (
                isinstance(node.value, (ast.Tuple, ast.List))):
            node.value = ours("iterated", [node.value], node.value)
        return node

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
            return self._updated(node)
        old = self._read(path, node)
        made = ours("in_place", [ast.Constant(SIGNS[type(node.op)]), old, node.value], node)
        if isinstance(target, ast.Attribute):
            owner = self._read(path.rpartition(".")[0], node)
            stored = ours("set_attribute", [made, owner, ast.Constant(target.attr)], node)
            return ast.copy_location(ast.Expr(stored), node)
        return ast.copy_location(ast.Assign([target], made), node)

    def _read(self, path: str, node: ast.AST) -> ast.expr:
        """What is at a path, whose attributes may be properties."""
        value = path_node(path, ast.Load())
        for part in ast.walk(value):
            ast.copy_location(part, node)
        found: ast.expr = self.visit(value)
        return found

    @staticmethod
    def _updated(node: ast.AugAssign) -> ast.AugAssign:
        """``a[i] += b`` and ``f().x += b``, of which Python asks each part once."""
        target = node.target
        if isinstance(target, ast.Subscript):
            target.value = ours("updated", [target.value], target.value)
        elif isinstance(target, ast.Attribute):
            target.value = ours("fields", [target.value], target.value)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        as_truths(node.test)
        message = thunk(self.visit(node.msg)) if node.msg is not None else ast.Constant(None)
        return ast.copy_location(
            ast.Expr(ours("check", [self.visit(node.test), message], node)), node)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> ast.stmt:
        self.generic_visit(node)
        if node.handlers:
            body = ast.With([ast.withitem(ours("caught", [], node))], node.body)
            node.body = [ast.copy_location(body, node.body[0])]
        return node

    def visit_TryStar(self, node: ast.TryStar) -> ast.stmt:
        return self.visit_Try(node)

    def visit_With(self, node: ast.With) -> ast.stmt:
        self.generic_visit(node)
        for item in node.items:
            item.context_expr = ours("manager", [item.context_expr], item.context_expr)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        self.generic_visit(node)
        if node.exc is not None:
            node.exc = ours("raised", [node.exc], node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        if (choice := _choice(node)) is not None:
            return self.visit_If(choice)
        self.generic_visit(node)
        return node

    # -- parts ----------------------------------------------------------------------------------

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
        made_function = ast.FunctionDef(self.fresh(stem), arguments, made, [])
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
        get, put = self.fresh("get"), self.fresh("put")
        reads = [thunk(path_node(path, ast.Load())) for path in paths]
        read = ast.FunctionDef(get, ast.arguments([], [], None, [], [], None, []), [
            ast.Return(ast.Call(attribute("values"), reads, []))], [])
        given = f"{RUNTIME}_values"
        binds: list[ast.stmt] = self._declared(paths)
        for at, path in enumerate(paths):
            value = ast.Subscript(ast.Name(given, ast.Load()), ast.Constant(at), ast.Load())
            binds += [ast.If(
                ast.Compare(value, [ast.Is()], [attribute("UNBOUND")]),
                self._unbind(path), [ast.Assign([path_node(path, ast.Store())], value)])]
        bind = ast.FunctionDef(put, ast.arguments([], [ast.arg(given)], None, [], [], None, []),
                               binds or [ast.Pass()], [])
        lists = self.lists.at(node)
        trusted = thunk(ast.Tuple([ast.Name(name, ast.Load()) for name in self.lists.trusted],
                                  ast.Load()))
        named = [ours("own_name", [ast.Constant(path), trusted,
                                   ast.Constant(path in self.lists.rows)], node)
                 if path in lists else self._name(node, path) for path in paths]
        call = ast.Expr(ast.Call(attribute(name), [
            *arguments, *(ast.Name(part.name, ast.Load()) for part in parts),
            ast.Name(get, ast.Load()), ast.Name(put, ast.Load()),
            ast.Tuple(named, ast.Load())], []))
        made = [*parts, read, bind, call]
        for each in made:
            if not hasattr(each, "lineno"):
                ast.copy_location(each, node)
        # The call shows the line of the test, not all of the statement.
        ast.copy_location(call.value, getattr(node, "test", getattr(node, "iter", node)))
        return made

    def _name(self, node: ast.stmt, path: str) -> ast.expr:
        """A name as it is after a statement."""
        kind = self.occurrences.kind(node, path) if isinstance(node, ast.For) else None
        found = ast.Constant(path)
        return found if kind is None else ours(kind.__name__, [found], node)

    @staticmethod
    def _unbind(path: str) -> list[ast.stmt]:
        """``del``, also of what is not bound."""
        first: list[ast.stmt] = [ast.Assign([path_node(path, ast.Store())], ast.Constant(None)),
                                 ast.Delete([path_node(path, ast.Del())])]
        if "." not in path:
            return first
        lost = ast.Tuple([ast.Name(name, ast.Load()) for name in ("NameError", "AttributeError")],
                         ast.Load())  # of an object that is not bound, either
        return [ast.Try(first, [ast.ExceptHandler(lost, None, [ast.Pass()])], [], [])]


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


def _generates(node: ast.AST) -> bool:
    return any(isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await))
               for each in here(ast.iter_child_nodes(node)))
