"""The gradient of a loop: a loop in the opposite direction.

The loop that is differentiated stacks what its gradient needs, row by row:

    %h1, %hs = scan %h0, %xs, %w           %h1, %hs, %before = scan ... body -> n, n, h
      body(h, x, w) -> n, n                %dh0, %dys = scan %dh1, %dhs, %hs, %w {reverse}
        y = contract h, w            ==>     body(dh, dn', n, w) -> contract dy, w; dy
        n = tanh (y + x)                       dy = (dh + dn') * (1 - n*n)
                                           %dw = contract %before, %dys {"tmk,tmn->kn"}

The cotangent of what every round reads is summed over the rounds: carried, or, where it is a
contraction of a round's values, as one contraction over all of them, as above. What depends on no
round is computed before the loop. A while saves its rows in arrays of ``limit`` rows, of which it
fills one in each round, and counts its rounds; its gradient is a while that counts down.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ...ir.graph import Builder, Graph, Node, Value, control_of
from ...ir.indices.index import Dim, symbol
from ...ir.indices.rounds import range_of
from ...ir.ops.axes.reduce import contract_letters
from ...ir.ops.control.region import Looping
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ...ir.record import record, replace
from ...ir.types import BOOL, I64, TensorType
from ..clone import Clone, substituted
from ..control.bodies import live_values
from .counting import more_results
from .dependence import reached, spread
from .pullback import Pull, Pullback, copy_nodes, elements, needed, symbols_within
from .sized import measured_rounds
from .sums import summed
from .support import Part, Reach, Support, joined

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class LoopGradient:
    """The gradient of one loop. ``carries`` are the numbers of what is carried whose cotangent is,
    ``asked`` has the cotangents of stacked results; ``counter`` is the number of what counts the
    rounds of a while."""

    def __init__(
        self, builder: Builder, node: Node, given: Sequence[Value | None],
        left: Sequence[Support | None], wanted: set[int], asks: set[int], pull: Pull,
    ) -> None:
        self.builder, self.node, self.given, self.asks = builder, node, given, asks
        control = control_of(node)
        assert isinstance(control, Looping)
        body = control.body
        if control.test is not None:  # the rounds of which are numbered the other way by values
            body = measured_rounds(body, control.index)
        self.control = control = replace(control, body=body)
        moving = spread(control, wanted)
        asked = {at for at, value in enumerate(given) if value is not None}
        while True:  # whose cotangents the ones that are asked for come to depend on
            live = live_values(body, [body.results[at] for at in asked])
            more = {at for at in moving if at < control.carried and body.params[at] in live} - asked
            if not more:
                break
            asked |= more
        self.carries = sorted(at for at in asked if at < control.carried)
        self.asked = {at: value for at in sorted(asked) if at >= control.carried
                      and (value := given[at]) is not None}
        inputs = sorted(at for at in moving if at >= control.carried or at in asked)
        outputs = sorted(asked & reached(body, moving))
        self.left = {at: mask for at in (*self.asked, *self.carries)
                     if (mask := left[at]) is not None and not mask.reach}
        self.masked: set[int] = set()
        self.way = self._pulled(outputs, inputs, pull)

    def _pulled(self, outputs: Sequence[int], inputs: Sequence[int], pull: Pull) -> Pullback:
        """The gradient of a round; ``masked`` are the numbers of what is carried that has a mask
        before each round, which no round makes one of which all is taken."""
        def tried() -> Pullback:
            left = {at: Reach.FAR for at in outputs
                    if at in self.masked or (at in self.asked and at in self.left)}
            return Pullback(self.control.body, outputs, inputs, pull, left,
                            self.asks | self.masked, rounds=True)

        if self.left:
            self.masked = {at for at in self.carries if at in self.left or self.given[at] is None}
        way = tried()
        more = {at for at in self.asks.intersection(self.carries) - self.masked
                if way.reach.get(at) is Reach.FAR}
        if more:  # a round leaves out some of what is taken after it
            self.masked |= more
            way = tried()
        while full := {at for at in self.masked if at in way.found and at not in way.taken}:
            self.masked -= full
            way = tried()
        return way

    def run(self, counter: int | None) -> dict[int, Part]:
        """The cotangents of operands, by their numbers, and masks of those that are asked for;
        ``counter`` is the number of what counts the rounds of a while."""
        control, way, node = self.control, self.way, self.node
        first, stop = control.carried, control.carried + control.scanned
        # Stacks, by what they are rows of; and what is the same in all rounds.
        self.rows = dict(zip(way.graph.results[first:], node.results[first:], strict=True))
        self.rows.update(zip(way.given[first:stop], node.inputs[first:stop], strict=True))
        self.still = dict(zip(way.given[stop:], node.inputs[stop:], strict=True))
        for value in self.still:
            self.rows.pop(value, None)
        self.outside = way.invariant(self.still, control.index)
        self._save("" if counter is None else control.index)
        return self._scan() if counter is None else self._while(counter)

    # -- what comes from the forward pass -------------------------------------------------------

    def _save(self, index: str) -> None:
        """Have the forward loop stack what is saved."""
        count = self.control.count
        assert count is not None
        saved = self.way.saved({*self.rows, *self.still, *self.outside}, index)
        body = self.way.forward(saved).graph
        first = len(body.results) - len(saved)
        body.results[first:] = [self._padded(Builder(body, OPS), value)
                                for value in body.results[first:]]
        self.node.attrs = {**self.node.attrs, "body": body}
        made = more_results(self.node, [value.type.with_shape((count, *value.shape))
                                        for value in body.results[first:]])
        self.rows.update(zip(saved, made, strict=True))
        self.rows.update(zip(saved, made, strict=True))

    def _row(self, value: Value) -> TensorType:
        """The type of a row of a stack: as large as what the rounds put there gets."""
        assert self.control.count is not None
        counts = {self.control.index: self.control.count}
        return value.type.with_shape(tuple(range_of(dim, counts)[1] for dim in value.shape))

    def _padded(self, b: Builder, value: Value) -> Value:
        row = self._row(value).shape
        if row == value.shape:
            return value
        zeros = (0,) * len(row)
        padded: Value = b.pad(value, low=zeros, interior=zeros, value=0, high=tuple(
            most - dim for most, dim in zip(row, value.shape, strict=True)))
        return padded

    def _read(self, clone: Clone, value: Value, places: Mapping[str, Dim]) -> None:
        """A parameter for a row of what was saved, of which the round has put there a part."""
        row = self._row(value)
        param = clone.param(value)
        if row != value.type:
            param.type = row
            rank = value.type.rank
            clone.values[value] = Builder(clone.graph, OPS).slice(
                param, start=(0,) * rank, step=(1,) * rank,
                shape=substituted(value.shape, places))

    def _hoist(self, values: Collection[Value]) -> None:
        """Compute before the loop what is the same in all rounds."""
        nodes, _ = needed(self.way.graph, values, self.still.keys())
        made = dict(self.still)
        for node in nodes:
            found = self.builder.emit(node.op, [made[value] for value in node.inputs], node.attrs)
            made.update(zip(node.results, found.results, strict=True))
        self.still.update({value: made[value] for value in values})

    # -- the backward loop ----------------------------------------------------------------------

    def _scan(self) -> dict[int, Part]:
        control, way = self.control, self.way
        scans = range(control.carried, control.carried + control.scanned)
        stacked = {at: way.found[at] for at in way.found if at in scans}
        taken = {at: way.taken[at] for at in way.taken if at in scans}
        made = dict.fromkeys(stacked.values())
        sums = self._sums(made)
        made.update(dict.fromkeys(taken.values()))
        carried, kept = self._carried(sums.keys()), self._kept()
        clone, nodes, leaves = self._body(carried, kept, made)
        scanned = [(way.cotangents[at], value) for at, value in self.asked.items()]
        scanned += self._masks(leaves)
        scanned += [(value, self.rows[value]) for value in leaves if value in self.rows]
        rest = [value for value in leaves if value in self.still]
        assert control.count is not None
        places = {control.index: control.count - 1 - symbol(control.index)}
        for value in (*(value for value, _ in scanned), *rest):
            self._read(clone, value, places)
        copy_nodes(clone, nodes, places)
        self._finish(clone, carried, kept, made)
        first = [*self._first(carried), *self._first_masks(kept)]
        results = self.builder.emit(
            self.node.op, [*first, *(stack for _, stack in scanned),
                           *(self.still[value] for value in rest)],
            {**self.node.attrs, "carried": len(first), "scanned": len(scanned),
             "reverse": not control.reverse, "body": clone.graph}).results
        rows = {**self.rows, **dict(zip(made, results[len(first):], strict=True))}
        found = dict(zip(carried, results, strict=False))
        found.update({at: rows[value] for at, value in stacked.items()})
        found.update({at: each.over(self.builder, rows) for at, each in sums.items()})
        return self._parts(found, {
            **dict(zip(kept, results[len(carried):], strict=False)),
            **{at: rows[value] for at, value in taken.items()}})

    def _while(self, counter: int) -> dict[int, Part]:
        way, carried, kept = self.way, self._carried(()), self._kept()
        clone, nodes, leaves = self._body(carried, kept, ())
        b = Builder(clone.graph, OPS)
        at = clone.graph.add_param(TensorType(I64, ()), "at")
        stacks = {value: self.rows[value] for value in leaves if value in self.rows}
        stacks.update({way.cotangents[number]: value for number, value in self.asked.items()})
        stacks.update(self._masks(leaves))
        rest = [value for value in leaves if value in self.still]
        params = {value: clone.param(stack) for value, stack in stacks.items()}
        for value in rest:
            clone.param(value)
        clone.values.update({value: b.gather(param, at, axes=(0,))
                             for value, param in params.items()})
        copy_nodes(clone, nodes, {})
        self._finish(clone, carried, kept, ())
        clone.graph.results.append(b.sub(at, 1))
        test = Graph("test")
        for value in clone.graph.params:
            test.add_param(value.type, value.name.removesuffix(":0"))
        test.results = [Builder(test, OPS).ge(test.params[len(carried) + len(kept)], 0)]
        last = self.builder.sub(self.node.results[counter], 1)
        first = [*self._first(carried), *self._first_masks(kept)]
        results = self.builder.emit(
            self.node.op, [*first, last, *stacks.values(), *(self.still[value] for value in rest)],
            {**self.node.attrs, "carried": len(first) + 1, "test": test,
             "body": clone.graph}).results
        return self._parts(dict(zip(carried, results, strict=False)),
                           dict(zip(kept, results[len(carried):], strict=False)))

    def _parts(self, found: Mapping[int, Value], taken: Mapping[int, Value]) -> dict[int, Part]:
        """The cotangents of operands, with their masks."""
        reach = self.way.reach
        return {at: (value, Support(taken[at], reach.get(at, Reach.FAR))
                     if at in taken and at in self.asks else None) for at, value in found.items()}

    def _masks(self, leaves: Collection[Value]) -> list[tuple[Value, Value]]:
        """The masks of rows that are read, and their stacks."""
        return [(param, self.left[at].mask()) for at, param in self.way.masks.items()
                if at in self.asked and param in leaves]

    def _carried(self, other: Collection[int]) -> list[int]:
        """The parameters whose cotangents are carried: those of what is carried, and sums."""
        control = self.control
        return [*self.carries, *(at for at in self.way.found if at not in other
                                 and at >= control.carried + control.scanned)]

    def _kept(self) -> list[int]:
        """The parameters whose masks are carried, of the same."""
        rest = self.control.carried + self.control.scanned
        return [*sorted(self.masked & (self.way.masks.keys() | self.asks)),
                *(at for at in self.way.taken if at >= rest)]

    def _first_masks(self, kept: Sequence[int]) -> list[Value]:
        """The masks after the last round: of what has no cotangent yet, nothing is taken."""
        return [self.left[at].mask() if at in self.masked and at in self.left
                else self.builder.full(at in self.masked and self.given[at] is not None,
                                       self.way.given[at].type.with_dtype(BOOL)) for at in kept]

    def _first(self, carried: Sequence[int]) -> list[Value]:
        """The cotangents after the last round."""
        def zero(at: int) -> Value:
            return self.builder.full(0.0, self.way.given[at].type)

        return [known if at in self.carries and (known := self.given[at]) is not None else zero(at)
                for at in carried]

    def _body(
        self, carried: Sequence[int], kept: Sequence[int], made: Iterable[Value]
    ) -> tuple[Clone, list[Node], list[Value]]:
        """A body with parameters for what is carried; the nodes that compute what it has to give,
        and what those read."""
        way, clone = self.way, Clone(self.way.graph)
        clone.graph.name = f"{way.graph.name}_grad"
        for at in carried:
            ct = way.cotangents.get(at) if at in self.carries else None
            self._param(clone, at, ct, way.given[at].type, "d")
        for at in kept:
            mask = way.masks.get(at) if at in self.masked else None
            self._param(clone, at, mask, way.given[at].type.with_dtype(BOOL), "m")
        targets = [*(way.found.get(at) for at in carried), *(way.taken.get(at) for at in kept)]
        nodes, leaves = needed(way.graph, [*filter(None, targets), *made], {
            *self.rows, *self.still, *self.outside, *way.cotangents.values(),
            *way.masks.values()})
        self._hoist([value for value in leaves if value in self.outside])
        return clone, nodes, leaves

    def _param(
        self, clone: Clone, at: int, own: Value | None, type_: TensorType, word: str
    ) -> None:
        if own is not None:
            clone.param(own)
        else:
            stem = self.way.given[at].name.removesuffix(":0").replace(":", "_")
            clone.graph.add_param(type_, f"{word}_{stem}")

    def _finish(
        self, clone: Clone, carried: Sequence[int], kept: Sequence[int], made: Iterable[Value]
    ) -> None:
        """The results of a round: cotangents and masks before it, sums with its part, and rows."""
        b = Builder(clone.graph, OPS)
        parts = [self.way.found.get(at) for at in carried]
        marks = [self.way.taken.get(at) for at in kept]
        # Whatever is read of the round, by which a sum knows that nothing else reads its part.
        clone.graph.results = [clone.values[value] for value in (*parts, *marks, *made)
                               if value is not None]
        results = []
        for at, value, param in zip(carried, parts, list(clone.graph.params), strict=False):
            part = b.full(0.0, param.type) if value is None else clone.values[value]
            results.append(part if at in self.carries else summed(b, param, part, fresh=True))
        for at, value, param in zip(kept, marks, clone.graph.params[len(carried):], strict=False):
            part = b.full(False, param.type) if value is None else clone.values[value]
            results.append(part if at in self.masked else joined(b, param, part))
        clone.graph.results = [*results, *(clone.values[value] for value in made)]

    # -- sums over the rounds -------------------------------------------------------------------

    def _sums(self, made: dict[Value, None]) -> dict[int, _Sum]:
        """Cotangents of what every round reads that are one contraction over all rounds: those that
        are one of values of a round, where the rows that are stacked for it, which join ``made``,
        have no more elements than what would be carried."""
        found: dict[int, _Sum] = {}
        control = self.control
        rest = control.carried + control.scanned
        for at in sorted((at for at in self.way.found if at >= rest),
                         key=lambda at: -elements([self.way.given[at]])):
            sum_ = _sum_of(self.way.found[at], control.index)
            if sum_ is None or any(each in self.still or each in self.outside or
                                   self._row(each) != each.type for each in sum_.factors):
                continue
            new = [each for each in dict.fromkeys(sum_.factors)
                   if each not in self.rows and each not in made]
            if elements(new) <= elements(sum_.node.results):
                found[at] = sum_
                made.update(dict.fromkeys(new))
        return found


@record(frozen=True)
class _Sum:
    """A contraction of values of a round that is summed over all rounds, and views of the sum."""

    node: Node
    views: Sequence[Node]

    @property
    def factors(self) -> tuple[Value, ...]:
        return self.node.inputs

    def over(self, b: Builder, rows: Mapping[Value, Value]) -> Value:
        dims = self.node.attrs["dims"]
        left, right, out = contract_letters(dims)
        letter = next(each for each in _LETTERS if each not in dims)
        value: Value = b.contract(*(rows[each] for each in self.factors),
                                  dims=f"{letter}{left},{letter}{right}->{out}")
        for node in self.views:
            value = b.emit(node.op, [value], node.attrs).results[0]
        return value


def _sum_of(value: Value, index: str) -> _Sum | None:
    """A contraction, and the views of it that a value is, which no round has another one of."""
    views: list[Node] = []
    while (node := value.node) is not None and node.op.kind is Kind.VIEW and len(node.inputs) == 1:
        if index in symbols_within(tuple(node.attrs.values())):
            return None
        views.append(node)
        value = node.inputs[0]
    return None if node is None or node.op.kind is not Kind.CONTRACT else _Sum(node, views[::-1])
