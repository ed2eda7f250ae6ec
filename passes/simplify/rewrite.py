"""Rewriting by rules in one forward walk.

A rule is a name, a pattern and a replacement, both written as small expressions:

    Rule("mul-one", "mul(x, 1)", "x")            Rule("select-same", "select(c, x, x)", "x")

``x y z c`` match any value (a letter that comes twice: the same value), ``k m`` match constants,
numbers match constants of that value (-0.0 is not 0.0); ``op(...)`` has any operands. A
replacement may also be a function of the rewriter and the match; ``when`` is a further condition,
``kinds`` the dtype kinds of ``x``.

The walk rebuilds the graph: operands are in their final form when a node is reached, and what a
rule builds goes through the rules again, so one walk reaches the fixpoint of rules that look at
operands only.

What can fail is not dropped (``rewrite``): ``x[i] ^ x[i]`` is 0, but an index out of range is an
error at every level. So a rule applies only where its replacement still depends on the checks that
its operands depend on; as it costs to know that, and next to no program has such a place, it is
asked only in a second walk, and only of checks that were lost in the first one.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

from ...ir.diagnose import error
from ...ir.graph import (
    Builder,
    Graph,
    Node,
    Value,
    can_fail,
    constant_of,
    freeze,
    live_nodes,
    places_of,
)
from ...ir.ops.op import Kind, OpDef
from ...ir.ops.table import OPS
from ...ir.record import field, record
from ...ir.types import DType, TensorType
from ..clone import Clone

Held = TypeVar("Held")

_FEW = 3     # operands: how patterns with more are found does not matter

# Of ops that only compute something: a value without elements is a constant.
_PURE = frozenset({Kind.MAP, Kind.VIEW, Kind.REDUCE, Kind.CONTRACT, Kind.SCAN})
_ZEROS: Mapping[str, bool | int | float] = MappingProxyType(
    {"b": False, "i": 0, "u": 0, "f": 0.0})

_DEPTH = 32  # of replacements inside replacements: a bound for rules that undo each other


@record(frozen=True)
class Pattern:
    """An op applied to patterns, variable names and numbers."""

    op: str
    args: tuple[Pattern | str | bool | int | float, ...]
    any: bool = False  # whatever its operands are


Term = Pattern | str | bool | int | float


@cache
def parse_pattern(text: str) -> Term:
    """A term from its text, which has Python's expression syntax."""
    def term(node: ast.expr) -> Term:
        match node:
            case ast.Call(func=ast.Name(id=op), args=[ast.Constant(value=value)]) if (
                    value is Ellipsis):
                return Pattern(op, (), any=True)
            case ast.Call(func=ast.Name(id=op), args=args):
                return Pattern(op, tuple(map(term, args)))
            case ast.Name(id="inf"):
                return math.inf
            case ast.Name(id=name):
                return name
            case ast.Constant(value=bool() | int() | float() as number):
                return number
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                positive = term(operand)
                if isinstance(positive, (int, float)):
                    return -positive
        raise ValueError(f"not a pattern: {text!r}")

    return term(ast.parse(text, mode="eval").body)


@record
class Match:
    """What a pattern was matched with: values of its letters, attributes of its ops in preorder."""

    type: TensorType
    values: dict[str, Value] = field(default_factory=dict)
    attrs: list[Mapping[str, Any]] = field(default_factory=list)
    inner: list[Value] = field(default_factory=list)  # results of the ops below the root

    def __getitem__(self, letter: str) -> Value:
        return self.values[letter]

    def constant(self, letter: str) -> bool | int | float:
        """The element of a matched constant."""
        found = constant_of(self.values[letter])
        if found is None:
            raise KeyError(letter)
        return found


Replace = Callable[["Rewriter", Match], Value | None]
_CONSTANTS = ("k", "m")


@record(frozen=True)
class Rule:
    """``pattern -> replacement``; a replacement that is a function may decline with None."""

    name: str
    pattern: str
    replacement: str | Replace
    kinds: str = "iufb"
    when: Callable[[Match], bool] | None = None

    def root(self) -> Pattern:
        term = parse_pattern(self.pattern)
        if not isinstance(term, Pattern):
            raise ValueError(f"{self.name}: a pattern must be an op")
        return term


class _Entry:
    """A rule with what its operands must be at least, so that most misses cost next to nothing."""

    def __init__(self, rule: Rule) -> None:
        self.rule, self.root = rule, rule.root()
        args = self.root.args
        self.arity = len(args)
        self.producers = tuple(
            (at, arg.op if isinstance(arg, Pattern) else "full") for at, arg in enumerate(args)
            if not isinstance(arg, str) or arg in _CONSTANTS)
        self.equal = self.arity == 2 and args[0] == args[1] and isinstance(args[0], str)

    def may_match(self, inputs: Sequence[Value]) -> bool:
        if len(inputs) != self.arity or (self.equal and inputs[0] is not inputs[1]):
            return False
        for at, op in self.producers:
            node = inputs[at].node
            if node is None or node.op.name != op:
                return False
        return True


class Table:
    """Rules by the ops that they are about, in order; those of an op are read when it comes."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules: dict[str, list[Rule]] = {}
        self._entries: dict[str, list[_Entry]] = {}
        self._made_by: dict[tuple[str | None, ...], list[_Entry]] = {}
        for rule in rules:
            op, call, _ = rule.pattern.partition("(")
            if not call:
                raise ValueError(f"{rule.name}: a pattern must be an op")
            self._rules.setdefault(op, []).append(rule)

    def __contains__(self, op: str) -> bool:
        return op in self._rules

    def __getitem__(self, op: str) -> Sequence[_Entry]:
        found = self._entries.get(op)
        if found is None:
            found = self._entries[op] = [_Entry(rule) for rule in self._rules[op]]
        return found

    def about(self, op: str, inputs: Sequence[Value]) -> Sequence[_Entry]:
        """The rules of an op whose operands are made by such ops: most have none."""
        if len(inputs) > _FEW:
            return self[op]
        key = (op, *[value.node.op.name if value.node else None for value in inputs])
        found = self._made_by.get(key)
        if found is None:
            found = self._made_by[key] = [
                entry for entry in self[op] if entry.arity == len(inputs) and all(
                    key[1 + at] == maker for at, maker in entry.producers)]
        return found


def by_op(rules: Iterable[Rule]) -> Table:
    """Rules by the ops that they are about."""
    return Table(rules)


def find(rule: Rule, root: Pattern, inputs: Sequence[Value], attrs: Mapping[str, Any],
         infer: Callable[[], TensorType]) -> Match | None:
    """The match of a rule with an op about to be emitted, or None."""
    found: dict[str, Value] = {}
    tables: list[Mapping[str, Any]] = [attrs]
    inner: list[Value] = []
    # A pattern is matched from a list of pending (term, value) pairs; the root has no value yet.
    pending = [] if root.any else list(zip(reversed(root.args), reversed(inputs), strict=True))
    while pending:
        term, value = pending.pop()
        if isinstance(term, Pattern):
            node = value.node
            if node is None or node.op.name != term.op or not (
                    term.any or len(node.inputs) == len(term.args)):
                return None
            tables.append(node.attrs)
            inner.append(value)
            if term.any:
                continue
            pending += zip(reversed(term.args), reversed(node.inputs), strict=True)
        elif isinstance(term, str):
            if found.setdefault(term, value) is not value:
                return None
            if term in _CONSTANTS and constant_of(value) is None:
                return None
        elif not is_constant(value, term):
            return None
    if "x" in found and found["x"].dtype.kind not in rule.kinds:
        return None
    match = Match(infer(), found, tables, inner)
    return match if rule.when is None or rule.when(match) else None


def matched(rule: Rule, value: Value) -> Match | None:
    """The match of a rule with the node that a value is the result of, or None."""
    node, root = value.node, rule.root()
    if node is None or node.op.name != root.op or not (
            root.any or len(node.inputs) == len(root.args)):
        return None
    return find(rule, root, node.inputs, node.attrs, lambda: value.type)


def is_constant(value: Value, number: bool | int | float) -> bool:
    """True if a value is the constant ``number``; the sign of zero counts, -1 is all ones."""
    constant = constant_of(value)
    if constant is None or isinstance(number, bool) != (value.dtype.kind == "b"):
        return False
    if value.dtype.is_float:
        return constant == number and math.copysign(1, constant) == math.copysign(1, number)
    return constant == _wrapped(number, value.dtype)


def _wrapped(number: bool | int | float, dtype: DType) -> bool | int | float:
    return number % (1 << dtype.bits) if dtype.kind == "u" else number


class Rewriter:
    """Rebuilds one graph by rules; every op is a method, as of a Builder: ``r.transpose(x, ...)``.

    ``fired`` counts the applications of each rule, ``uses`` the reads of each new value by nodes
    and results of the old graph. ``kept`` are nodes that no rule may drop.
    """

    def __init__(self, graph: Graph, rules: Table, kept: frozenset[Node] = frozenset()) -> None:
        self._clone = Clone(graph)
        self.builder = Builder(self._clone.graph, OPS, share=True, fold=True)
        self.fired: Counter[str] = Counter()
        self.uses: Counter[Value] = Counter()
        self._rules = rules
        self._depth = 0
        self._found: dict[Any, Value | None] = {}  # by op, inputs and attributes
        self._kept = {node: 1 << at for at, node in enumerate(kept)}
        self._behind: dict[Value, int] = {}  # the bits of the kept nodes that a value depends on
        self._failing: list[Node] = []
        self._checked: list[tuple[Value, Value]] = []  # with the checks of another value in it
        self._held: dict[type, Any] = {}

    def held(self, kind: type[Held]) -> Held:
        """What rules keep of the new graph from one match to the next, one of each kind."""
        if kind not in self._held:
            self._held[kind] = kind()
        found: Held = self._held[kind]
        return found

    def run(self) -> Graph:
        """The rewritten graph, without dead nodes."""
        old, clone = self._clone.old, self._clone
        live = live_nodes(old)
        self._failing = [node for node in live if can_fail(node)]
        reads = Counter(value for node in live for value in node.inputs)
        reads.update(old.results)
        for value in old.params:
            self.uses[clone.param(value)] += reads[value]
        for node in live:
            self._node(node)
            for value in node.results:
                self.uses[clone.values[value]] += reads[value]
        graph = clone.finish()
        graph.nodes = live_nodes(graph)
        return graph

    def lost(self, graph: Graph) -> frozenset[Node]:
        """The nodes that could fail, and have no part in the graph that was made."""
        if not self._failing:
            return frozenset()
        live, nodes = set(graph.nodes), self._clone.nodes
        for value, other in reversed(self._checked):
            if value.node in live:
                live |= _nodes_behind(other, live)
        checked = {places_of(node) for node in live}
        return frozenset(node for node in self._failing if node in nodes
                         and nodes[node] not in live and can_fail(nodes[node])
                         and (places_of(nodes[node]) or node) not in checked)

    def _node(self, node: Node) -> None:
        nodes, builder = self._clone.nodes, self.builder
        inputs = [self._clone.values[value] for value in node.inputs]
        with builder.like(node):
            builder.after = tuple(nodes[earlier] for earlier in node.after if earlier in nodes)
            results = self.make(node.op, inputs, node.attrs, node.name)
            builder.after = ()
        self._clone.values.update(zip(node.results, results, strict=True))
        made = results[0].node if results else self._clone.graph.nodes[-1]
        if made is not None:
            nodes[node] = made
        if node in self._kept:
            for value in results:
                self._behind[value] = self._checks(results) | self._kept[node]

    def fails_with(self, value: Value, other: Value) -> None:
        """Say that a value has in it all checks that another one depends on."""
        self._behind[value] = self._checks([value, other])
        self._checked.append((value, other))

    def _checks(self, values: Iterable[Value]) -> int:
        bits = 0
        for value in values:
            bits |= self._behind.get(value, 0)
        return bits

    def make(
        self, op: OpDef, inputs: Sequence[Value], attrs: Mapping[str, Any], name: str | None = None
    ) -> tuple[Value, ...]:
        """The results of an op, or of what the rules make of it."""
        # Constants are folded, not rewritten.
        folds = op.kind is Kind.MAP and inputs and all(
            constant_of(value) is not None for value in inputs)
        types: list[tuple[TensorType, ...]] = []  # inferred once, for all rules and the node

        def infer() -> TensorType:
            if not types:
                types.append(self.builder.infer(op, inputs, attrs))
            return types[0][0]

        if (op.kind in _PURE and op.check is None and not op.constant and not self.builder.after
                and 0 in infer().shape and infer().dtype.kind in _ZEROS
                and not self._checks(inputs)):
            return (self.builder.full(_ZEROS[infer().dtype.kind], infer()),)
        if (op.name in self._rules and not folds and not self.builder.after
                and self._depth < _DEPTH):
            found = self._replaced(op, inputs, attrs, name, infer)
            if found is not None:
                return (found,)
        results = self.builder.emit(op, inputs, attrs, name=name,
                                    types=types[0] if types else None).results
        if self._kept:
            bits = self._checks(inputs)
            self._behind.update((value, bits | self._behind.get(value, 0)) for value in results)
        return results

    def _replaced(
        self, op: OpDef, inputs: Sequence[Value], attrs: Mapping[str, Any], name: str | None,
        infer: Callable[[], TensorType],
    ) -> Value | None:
        """What the rules make of an op. What a replacement asks for twice is looked for once: a
        slice of a product of one value with itself, of one of those, would double at each."""
        key: Any = None
        if self._depth:
            key = (op.name, tuple(inputs), self.builder.device,
                   tuple((k, freeze(v)) for k, v in sorted(attrs.items())))
            if key in self._found:
                return self._found[key]
        self._depth += 1
        found = self._rewritten(op, inputs, attrs, name, infer)
        self._depth -= 1
        if key is not None:
            self._found[key] = found
        return found

    def _rewritten(
        self, op: OpDef, inputs: Sequence[Value], attrs: Mapping[str, Any], name: str | None,
        infer: Callable[[], TensorType],
    ) -> Value | None:
        for entry in self._rules.about(op.name, inputs):
            if not entry.may_match(inputs):
                continue
            match = find(entry.rule, entry.root, inputs, attrs, infer)
            if match is None:
                continue
            rule = entry.rule
            if isinstance(rule.replacement, str):
                result: Value | None = self._build(
                    parse_pattern(rule.replacement), match, match.type, name)
            else:
                result = rule.replacement(self, match)
            if result is not None and not (
                    self._kept and self._checks(inputs) & ~self._checks([result])):
                if result.type != match.type:
                    raise error("W601", f"rule {rule.name} makes {result.type} of {match.type}",
                                locs=self.builder.locs)
                self.fired[rule.name] += 1
                return result
        return None

    def _build(self, term: Term, match: Match, type_: TensorType, name: str | None) -> Value:
        """A term with the matched values filled in; numbers are constants of ``type_``."""
        if isinstance(term, str):
            return match[term]
        if not isinstance(term, Pattern):
            return self.builder.full(_wrapped(term, type_.dtype), type_)
        # Patterns are two or three levels deep: recursion over them is not over the graph.
        given = {at: self._build(arg, match, type_, None) for at, arg in enumerate(term.args)
                 if isinstance(arg, (str, Pattern))}
        like = next((value.type for value in given.values() if value.dtype.kind != "b"), type_)
        inputs = [given[at] if at in given else self._build(arg, match, like, None)
                  for at, arg in enumerate(term.args)]
        return self.make(OPS[term.op], inputs, {}, name)[0]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = OPS.get(name)
        if op is None:
            raise AttributeError(f"no op named {name!r}")

        def call(*operands: Value | bool | int | float, **attrs: Any) -> Any:
            return self.make(op, self.builder.lift(operands), attrs)[0]

        return call


def _nodes_behind(value: Value, seen: Set[Node]) -> set[Node]:
    """The nodes that a value depends on, but for those that have been seen."""
    found: set[Node] = set()
    waiting = [value.node]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found and node not in seen:
            found.add(node)
            waiting += [operand.node for operand in node.inputs]
    return found


def rewrite(graph: Graph, rules: Table, fired: Counter[str] | None = None) -> tuple[Graph, bool]:
    """The graph after one walk, without the loss of a check, and whether another walk may find
    more: rules that ask for a value's only reader see those that have died meanwhile as well."""
    kept: frozenset[Node] = frozenset()
    while True:
        rewriter = Rewriter(graph, rules, kept)
        made = rewriter.run()
        lost = rewriter.lost(made) - kept
        if not lost:
            if fired is not None:
                fired.update(rewriter.fired)
            reads = Counter(value for node in made.nodes for value in node.inputs)
            reads.update(made.results)
            return made, any(rewriter.uses[value] > 1 for value, n in reads.items()
                             if n == 1 and value.node is not None)
        kept |= lost
