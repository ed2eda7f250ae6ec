"""Chains of values of which each is the last one, updated: they have one memory if no link of the
chain is read once the next one is made.

    x -> scatter(x) -> scatter(...) -> loop that carries it -> branch that updates it, or not

A branch may update a value in place if each of its bodies gives the value itself or the end of such
a chain that starts with it; so the items of a list that is appended to on some ways are not copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from ...ir.graph import Graph, Value
from ...ir.plans.calls import Body, BranchCall, Call, GroupCall, HostCall, LoopCall, MeasureCall
from ...ir.plans.plan import KernelCall
from .lives import Lives
from .overwriting import overwritten

Link = tuple[Value, int]
"""The value that another one is made of, and the moment from which on it must not be read."""


class Chains:
    """Finds chains; of a branch only once, as bodies are asked at every level."""

    def __init__(self, lives: Lives) -> None:
        self.lives = lives
        self._taken: dict[BranchCall, Mapping[int, int]] = {}

    def way_to(self, body: Body, value: Value) -> Iterator[Value]:
        """The links of the chain that ends in a value of a body, backwards, without parameters;
        what a kernel may overwrite is one, too."""
        links = self._links(body)
        for call in body.calls:
            if isinstance(call, KernelCall):
                for made in self.lives.born(body.graph, call):
                    old = overwritten(call, made.name)
                    if old and made not in links:
                        links[made] = (self.lives.of(body.graph, old[0]),
                                       self.lives.spans[call][0])
        while (link := links.get(value)) is not None and link[0] not in body.graph.params:
            value = link[0]
            yield value

    def taken_over(self, graph: Graph, call: BranchCall) -> Mapping[int, int]:
        """The results of a branch that may have the memory of an input, and which input that is.
        It must not be read after the branch."""
        found = self._taken.get(call)
        if found is None:
            found = self._taken[call] = dict(self._found(graph, call))
        return found

    def _found(self, graph: Graph, call: BranchCall) -> Iterator[tuple[int, int]]:
        lives = self.lives
        owners = [lives.owner(lives.of(graph, name)) for name in (*call.inputs, call.condition)]
        used: set[int] = set()
        starts = [list(self._starts(body)) for body in call.bodies]
        for at, places in enumerate(zip(*starts, strict=True)):
            place = places[0]
            if (place is None or place in used or any(other != place for other in places)
                    or owners.count(owners[place]) > 1):
                continue
            if not any(self._names(body.graph.params[place], value)
                       for body in call.bodies
                       for other, value in enumerate(body.graph.results) if other != at):
                used.add(place)
                yield at, place

    def _starts(self, body: Body) -> Iterator[int | None]:
        """For each result of a body the parameter in whose memory it can be, if there is one."""
        links, params = self._links(body), body.graph.params
        for value in body.graph.results:
            link = links.get(value)
            while link is not None and link[0] not in params:
                value, moment = link
                link = links.get(value) if self.lives.last[value] == moment else None
            if link is not None:
                value, moment = link
                yield params.index(value) if self.last_use(body, value) == moment else None
            else:
                yield params.index(value) if value in params else None

    def _links(self, body: Body) -> dict[Value, Link]:
        """What values of a body are made of in place."""
        graph, spans = body.graph, self.lives.spans
        of = partial(self.lives.of, graph)
        found: dict[Value, Link] = {}
        for call in body.calls:
            start, end = spans[call]
            match call:
                case KernelCall() | GroupCall():
                    calls = call.calls if isinstance(call, GroupCall) else (call,)
                    read = [name for each in calls for name in each.args]
                    found.update({of(result): (of(base), start) for each in calls
                                  for result, base in each.updates if base not in read})
                case LoopCall():
                    inputs = call.inputs[:call.carried]
                    found.update({of(result): (of(name), start) for name, result
                                  in zip(inputs, call.results, strict=False)
                                  if call.inputs.count(name) == 1})
                case BranchCall():
                    found.update({of(call.results[at]): (of(call.inputs[place]), end)
                                  for at, place in self.taken_over(graph, call).items()})
        return found

    def last_use(self, body: Body, param: Value) -> int:
        """The moment at which a body last reads a parameter: its end for what it gives."""
        given = any(self._names(param, value) for value in body.graph.results)
        last = self.lives.spans[body.calls[-1]][1] + 1 if given and body.calls else -1
        return max([last, *(self._moment(body.graph, call, param) for call in body.calls)])

    def _moment(self, graph: Graph, call: Call, param: Value) -> int:
        """The last moment of a call at which it reads a parameter of its body, or -1."""
        start, end = self.lives.spans[call]

        def among(names: Iterable[str]) -> bool:
            return any(self._names(param, self.lives.of(graph, name)) for name in names)

        match call:
            case KernelCall():
                reads, late = among((*call.args, *(base for _, base in call.updates))), False
            case GroupCall():
                return max(self._moment(graph, each, param) for each in call.calls)
            case LoopCall():
                reads = among(call.inputs[:call.carried])
                late = among(call.inputs[call.carried:])
            case BranchCall():
                reads, late = among([call.condition]), among(call.inputs)
            case HostCall():
                reads, late = among(call.inputs), False
            case MeasureCall():
                reads, late = among([call.number]), False
        return end if late else start if reads else -1

    def _names(self, param: Value, value: Value) -> bool:
        """Whether a value of a body is a parameter of it, or another name for its memory."""
        while value is not param and value in self.lives.aliases:
            value = self.lives.aliases[value].value
        return value is param
