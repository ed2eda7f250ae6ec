"""``return``, ``break`` and ``continue`` in the middle, as flags and branches.

    if c:                      if c:
        return a                   value = a; returned = True
    b = f(x)                   else:
    return b                       b = f(x); value = b; returned = True
                               return value

What follows an ``if`` of which one side always leaves goes into its other side. What follows one
that may leave waits for the flags, and so does the next round of a loop. Tuples of one length that
all returns give are values item by item: a list among them may have another length on each way.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence

from ....ir.record import field, record
from .names import LIST, here
from .own_lists import OwnLists, is_new

_LOOPS = (ast.For, ast.While)
RESULT, RETURNED = "_weft_result", "_weft_returned"


def told(name: str) -> str:
    """A name as users are told: results, and lists of comprehensions, have none of theirs."""
    if name.startswith(LIST):
        return f"the list of comprehension {name.removeprefix(LIST)}"
    if not name.startswith(RESULT):
        return name
    item = name.removeprefix(RESULT).removeprefix("_")
    return f"the result[{item}]" if item else "the result"


def leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements surely leave by return, break, continue or raise."""
    for statement in statements:
        if isinstance(statement, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return True
        if isinstance(statement, ast.If) and leaves(statement.body) and leaves(statement.orelse):
            return True
        if isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant) and (
                statement.test.value) and not _ends_by_break(statement):
            return True  # it ends by a return, if it ends
    return False


def _ends_by_break(loop: ast.While) -> bool:
    """Whether a loop of its own body's ends by a break."""
    todo: list[ast.AST] = list(loop.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Break):
            return True
        if not isinstance(node, (*_LOOPS, ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)
    return False


def _returns(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Return) for each in here([node]))


def _gives(node: ast.AST) -> bool:
    """Whether a node returns anything but None."""
    return isinstance(node, ast.Return) and not (node.value is None or (
        isinstance(node.value, ast.Constant) and node.value.value is None))


@record(frozen=True)
class Results:
    """What returns in the middle of a function give, if there are any: the names of the items of
    their tuples, or of the value; and which of these are lists that nobody else has (``own``)."""

    names: tuple[str, ...] = (RESULT,)
    own: frozenset[str] = frozenset()
    is_tuple: bool = False
    rows: frozenset[str] = frozenset()  # of the lists, those of which nobody has an item

    @staticmethod
    def of(node: ast.FunctionDef, lists: OwnLists) -> Results:
        if not any(map(_returns, _with_exits(node.body))) or not leaves(node.body):
            return Results()
        given = [each.value for each in here(node.body) if isinstance(each, ast.Return)]
        tuples = [value.elts for value in given if isinstance(value, ast.Tuple) and not any(
            isinstance(item, ast.Starred) for item in value.elts)]
        count = len(tuples[0]) if tuples else 0
        is_tuple = count > 0 and [len(each) for each in tuples] == [count] * len(given)
        names = tuple([f"{RESULT}_{at}" for at in range(count)]) if is_tuple else (RESULT,)
        twice = {name for items in tuples for name, times in Counter(
            each.id for item in items for each in ast.walk(item) if isinstance(each, ast.Name)
        ).items() if times > 1}  # one list, of which two would be made
        ways = dict(zip(names, zip(*(tuples if is_tuple else ([value] for value in given)),
                                   strict=True), strict=True))
        own = frozenset(name for name, values in ways.items() if all(
            is_new(value) or (isinstance(value, ast.Name) and value.id in lists.at(value)
                              and value.id not in twice) for value in values))
        rows = frozenset(name for name in own if all(
            isinstance(value, ast.Name) and value.id in lists.rows for value in ways[name]))
        return Results(names, own, is_tuple, rows)

    def items(self, value: ast.expr) -> list[ast.expr]:
        """What the names stand for where that is returned."""
        return value.elts if self.is_tuple and isinstance(value, ast.Tuple) else [value]


@record
class _Loop:
    """The flags of a loop: their names, and which of them are asked for."""

    broken: str
    skipped: str
    breaks: bool = False


@record
class Exits:
    """Takes the exits out of one function that gives some ``results``."""

    results: Results = Results()
    returned: str = RETURNED
    gives: bool = True  # a value, on some way
    count: int = 0
    loops: list[_Loop] = field(default_factory=list)

    def of_function(self, node: ast.FunctionDef) -> bool:
        """Change the function's body; whether it needed that. A function that may reach its end
        without a return gives None there."""
        for each in here(node.body):
            if isinstance(each, ast.While):
                _test_inside(each)
        inner = _with_exits(node.body)
        if not inner:
            return False
        returns = any(map(_returns, inner))
        self.gives = any(map(_gives, here(node.body)))
        if self.gives and not leaves(node.body):
            node.body.append(_nothing(node.body[-1]))
        body = self.lowered(node.body) if returns else self.lowered(node.body[:-1] if isinstance(
            node.body[-1], ast.Return) else node.body)
        if returns:
            last = node.body[-1]
            node.body = [_bind(self.returned, False, node), *body]
            if self.gives:
                end = ast.Return(_call("result", [self._given()]))
                node.body.append(ast.copy_location(end, last))
        else:
            last = node.body[-1]
            node.body = [*body, *([last] if isinstance(last, ast.Return) else [])]
        return True

    def lowered(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements without exits."""
        made: list[ast.stmt] = []
        for at, statement in enumerate(statements):
            rest = list(statements[at + 1:])
            if isinstance(statement, (ast.Return, ast.Break, ast.Continue)):
                return [*made, *self._left(statement)]
            if isinstance(statement, ast.If) and rest:
                sides = leaves(statement.body), leaves(statement.orelse)
                if any(sides) and self._may_leave(statement):
                    if not all(sides):
                        side = statement.orelse if sides[0] else statement.body
                        side.extend(rest)
                    rest = []
            flags = self._flags(statement)
            made += self._inside(statement)
            if rest and flags:
                after = ast.If(_none_of(flags), self.lowered(rest), [])
                return [*made, ast.copy_location(after, rest[0])]
            if isinstance(statement, ast.If) and not rest:
                return made
        return made

    def _left(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, ast.Return):
            left = _bind(self.returned, True, statement)
            if not self.gives:
                return [left]
            value = statement.value or ast.copy_location(ast.Constant(None), statement)
            return [*(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], item), item)
                      for name, item in zip(self.results.names, self.results.items(value),
                                            strict=True)), left]
        loop = self.loops[-1]
        if isinstance(statement, ast.Break):
            loop.breaks = True
            return [_bind(loop.broken, True, statement)]
        return [_bind(loop.skipped, True, statement)]

    def _given(self) -> ast.expr:
        """What the function gives in the end."""
        found: list[ast.expr] = []
        for name in self.results.names:
            value: ast.expr = ast.Name(name, ast.Load())
            found.append(_call("let_go", [value]) if name in self.results.own else value)
        return ast.Tuple(found, ast.Load()) if self.results.is_tuple else found[0]

    def _may_leave(self, node: ast.AST) -> bool:
        return bool(self._flags(node))

    def _flags(self, node: ast.AST) -> list[str]:
        """The flags that a statement may set, of those that what follows it has to ask."""
        found: dict[str, None] = {}
        todo: list[tuple[ast.AST, bool]] = [(node, False)]
        while todo:
            each, inside = todo.pop()
            if isinstance(each, ast.Return):
                found[self.returned] = None
            elif isinstance(each, ast.Break) and not inside:
                found[self.loops[-1].broken] = None
            elif isinstance(each, ast.Continue) and not inside:
                found[self.loops[-1].skipped] = None
            if not isinstance(each, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
                own = each.body if isinstance(each, _LOOPS) else ()
                todo += [(child, inside or any(child is one for one in own))
                         for child in ast.iter_child_nodes(each)]
        return list(found)

    def _inside(self, statement: ast.stmt) -> list[ast.stmt]:
        """A statement whose own parts have no exits any more."""
        if isinstance(statement, _LOOPS):
            return self._loop(statement)
        if isinstance(statement, (ast.Try, ast.TryStar)):
            self._guard(statement)
        for name in ("body", "orelse", "finalbody"):
            part = getattr(statement, name, None)
            if isinstance(part, list) and not isinstance(
                    statement, (ast.FunctionDef, ast.ClassDef)):
                setattr(statement, name, self.lowered(part) or (
                    [ast.copy_location(ast.Pass(), statement)] if name == "body" else []))
        for handler in getattr(statement, "handlers", ()):
            handler.body = self.lowered(handler.body)
        return [statement]

    def _guard(self, statement: ast.Try | ast.TryStar) -> None:
        """Who leaves the body of a ``try`` does not come to its ``else``; who leaves its
        ``finally`` takes no exception along."""
        flags = [flag for each in statement.body for flag in self._flags(each)]
        if statement.orelse and flags:
            test = _none_of(list(dict.fromkeys(flags)))
            statement.orelse = [ast.copy_location(
                ast.If(test, statement.orelse, []), statement.orelse[0])]
        if leaves(statement.finalbody) and any(map(self._may_leave, statement.finalbody)):
            whole: ast.stmt = ast.copy_location(type(statement)(
                statement.body, statement.handlers, statement.orelse, []), statement)
            lost = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, [ast.Pass()])
            body = [whole] if statement.handlers else statement.body
            statement.body, statement.orelse = body, []
            statement.handlers = [ast.copy_location(lost, statement)]

    def _loop(self, statement: ast.For | ast.While) -> list[ast.stmt]:
        self.count += 1
        loop = _Loop(f"_weft_broken_{self.count}", f"_weft_skipped_{self.count}")
        self.loops.append(loop)
        returns = any(map(_returns, statement.body))
        skips = any(isinstance(each, ast.Continue) for each in here(statement.body))
        after, statement.orelse = statement.orelse, []
        breaks = _breaks(statement.body)
        body = self.lowered(statement.body)
        self.loops.pop()
        if skips:
            body = [_bind(loop.skipped, False, statement), *body]
        statement.body = body or [ast.copy_location(ast.Pass(), statement)]
        flags = [loop.broken] * breaks + [self.returned] * returns
        made: list[ast.stmt] = [_bind(loop.broken, False, statement)] if breaks else []
        if flags:
            go_on = ast.copy_location(_none_of(flags), statement)
            if isinstance(statement, ast.While):
                test = ast.BoolOp(ast.And(), [go_on, statement.test])
                statement.test = ast.copy_location(test, statement.test)
            else:
                statement.go_on = go_on  # type: ignore[attr-defined]  # read by ``statements``
        made.append(statement)
        if after:
            lowered = self.lowered(after)
            made += [ast.copy_location(ast.If(_none_of(flags), lowered, []), after[0])] if (
                flags) else lowered
        return made


def _with_exits(body: Sequence[ast.stmt]) -> list[ast.AST]:
    """The statements of a function that have an exit in them, or have an ``else`` for one."""
    return [each for each in here(body) if isinstance(
        each, (ast.If, ast.With, ast.Try, ast.TryStar, *_LOOPS)) and (
            (isinstance(each, _LOOPS) and each.orelse) or any(isinstance(
                sub, (ast.Return, ast.Break, ast.Continue)) for sub in here([each])))]


def _test_inside(loop: ast.While) -> None:
    """A test that binds names is a part of the body: what it binds is carried from there."""
    if loop.orelse or not any(isinstance(each, ast.NamedExpr) for each in here([loop.test])):
        return
    stop = ast.If(ast.UnaryOp(ast.Not(), loop.test), [ast.Break()], [])
    loop.body.insert(0, ast.fix_missing_locations(ast.copy_location(stop, loop.test)))
    loop.test = ast.copy_location(ast.Constant(True), loop.test)


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop's own body has a break."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, _LOOPS):
            todo += node.orelse
        elif not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)
    return False


def _bind(name: str, value: bool, like: ast.AST) -> ast.stmt:
    return ast.copy_location(
        ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value)), like)


def _none_of(flags: Sequence[str]) -> ast.expr:
    tests: list[ast.expr] = [ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load())) for flag in flags]
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _call(name: str, args: list[ast.expr]) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name("_weft", ast.Load()), name, ast.Load()), args, [])


def _nothing(last: ast.stmt) -> ast.stmt:
    """The ``return None`` that a function ends with where it has no other end."""
    return ast.copy_location(ast.Return(ast.copy_location(ast.Constant(None), last)), last)
