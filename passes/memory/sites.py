"""Which values share one memory: a *site* is a chain of values that hand it on.

    in place     y = tanh(x) where x dies: each element is read and written at one place
    an update    the result of a scatter takes over the memory of its base; so does that of a
                 branch, if all of its ways end in updates of one value (see ``chains``)
    carried      what a loop carries, from its first value to the value after the loop

A site that ends in what its body must deliver *is* the memory of that: a slot of the caller, a row
of the array that a loop stacks up, the result of a branch. The next value of what a loop carries
comes to its memory in one of three ways, the first that is possible:

    in place     it is written there, when the last one is dead or may be overwritten
    exchanged    it is written to other memory, and they change places after each round: a second
                 one, or that of another value, u, v, w = v, w, update of u
    copied       after each round
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.diagnose import error
from ...ir.graph import Graph, Value
from ...ir.indices.index import Dim, symbol
from ...ir.plans.calls import Body, BranchCall, Call, GroupCall, HostCall, LoopCall
from ...ir.plans.plan import LOCAL, KernelCall
from ...ir.record import field, record
from ...ir.types import TensorType
from .chains import Chains
from .lives import Lives
from .overwriting import overwritable, overwritten


@record(frozen=True)
class Target:
    """Memory that belongs to a value outside of a body, or a row of it."""

    value: Value
    indices: tuple[Dim, ...] = ()


@record(eq=False)
class Site:
    """Values that have one memory, in the order in which they have it.

    ``scope`` is the graph in which the memory is had, from ``call`` on. ``home`` is where it is: a
    slot of the caller (by its number) or part of another site; None means the arena. Nothing may
    take over one that ``turns``, as rounds exchange it with others. Memory that comes in with the
    rounds has the type and the name of what it is ``like``.
    """

    scope: Graph
    call: Call
    values: list[Value]
    first: int
    last: int
    home: int | Target | None = None
    turns: bool = False
    like: Site | None = None

    @property
    def free(self) -> bool:
        """True if it may still become the memory of something else."""
        return self.home is None and not self.turns


@record
class Rounds:
    """What is to be done for a loop: copies before it, copies after each round, exchanges."""

    before: list[tuple[Value, Value]] = field(default_factory=list)   # (from, to)
    to_next: list[tuple[Value, Site]] = field(default_factory=list)
    after: list[tuple[Value, Site]] = field(default_factory=list)
    back: list[tuple[Site, Site]] = field(default_factory=list)       # next -> its buffer
    cycles: list[list[Site]] = field(default_factory=list)  # each has the memory of the one behind


@record(frozen=True)
class Wish:
    """Where the next value of what is carried should be: in its ``own`` memory, in ``spare`` one,
    whose value goes on to another, or as an update in any of ``others`` that can be exchanged."""

    own: Site
    spare: tuple[Site, ...] = ()
    others: tuple[Site, ...] = ()


class Sharing:
    """Finds the site of every value, and the copies that remain, in one walk over the calls."""

    def __init__(self, lives: Lives) -> None:
        self.lives, self._chains = lives, Chains(lives)
        self.site: dict[Value, Site] = {}
        self.sites: list[Site] = []
        self.bases: dict[KernelCall, list[tuple[Value, Value]]] = {}  # (result, base) to copy
        self.rounds: dict[LoopCall, Rounds] = {}
        self.finals: dict[Graph, list[tuple[Value, Target]]] = {}     # copies that end a body
        self._rules: dict[int, Mapping[str, frozenset[str]]] = {}

    def run(self, graph: Graph, calls: Sequence[Call]) -> None:
        """The sites of all values; results of the graph get the caller's slots."""
        self._calls(Body(graph, tuple(calls)), {})
        for at, value in enumerate(graph.results):
            self._settle(value, graph, at)

    def _settle(self, value: Value, scope: Graph, home: int | Target) -> bool:
        """Let the memory of a value be ``home``, if it is still free and of this very body."""
        site = self.site.get(self.lives.owner(value))
        if site is None or not site.free or site.scope is not scope:
            return False
        site.home = home
        return True

    # -- calls ----------------------------------------------------------------------------------

    def _calls(self, body: Body, carries: Mapping[Value, Wish]) -> None:
        """The calls of a body; ``carries`` maps the next values of what is carried to the memory
        that they should have."""
        for call in body.calls:
            match call:
                case KernelCall():
                    self._kernel(body.graph, call, call, carries, ())
                case GroupCall():
                    for each in call.calls:
                        others = [other for other in call.calls if other is not each]
                        self._kernel(body.graph, each, call, carries, others)
                case LoopCall():
                    self._loop(body.graph, call, carries)
                case BranchCall():
                    self._branch(body.graph, call, carries)
                case HostCall():
                    for name in call.results:
                        self._new(body.graph, call, self.lives.of(body.graph, name), carries)

    def _new(self, scope: Graph, call: Call, value: Value, carries: Mapping[Value, Wish]) -> Site:
        """Memory for a value that ``call`` makes: what it is to be carried in, if that is idle."""
        moment = self.lives.spans[call][0]
        wish = carries.get(value)
        for wanted in (wish.own, *wish.spare) if wish is not None else ():
            if all(self.lives.last[other] < moment for other in wanted.values):
                return self._join(wanted, value)
        site = Site(scope, call, [value], moment, self.lives.last[value])
        self.site[value] = site
        self.sites.append(site)
        return site

    def _join(self, site: Site, value: Value) -> Site:
        site.values.append(value)
        site.last = max(site.last, self.lives.last[value])
        self.site[value] = site
        return site

    def _kernel(
        self, graph: Graph, call: KernelCall, step: Call, carries: Mapping[Value, Wish],
        others: Sequence[KernelCall],
    ) -> None:
        lives = self.lives
        bases = {lives.of(graph, result): lives.of(graph, base) for result, base in call.updates}
        rules = self._rules.get(id(call.kernel))
        if rules is None:
            rules = self._rules[id(call.kernel)] = overwritable(call.kernel)
        elsewhere = {lives.of(graph, name) for other in others for name in other.args}
        taken: set[Value] = set()
        # What is carried comes first: only it may have the memory of the last round's value.
        for value in sorted(lives.born(graph, call), key=lambda value: value not in carries):
            if value in bases:
                base = bases[value]
                old = [base] if base.name not in call.args else []
            else:
                old = [lives.of(graph, name) for name in overwritten(call, value.name, rules)]
            found = next((other for other in old if other not in taken and other not in elsewhere
                          and self._may_take(call, value, other, carries, value in bases)), None)
            if found is not None:
                taken.add(found)
                self._join(self.site[found], value)
                continue
            self._new(graph, step, value, carries)
            if value in bases:
                self.bases.setdefault(call, []).append((value, bases[value]))

    def _may_take(
        self, call: Call, value: Value, old: Value, carries: Mapping[Value, Wish],
        updates: bool = True,
    ) -> bool:
        """True if ``value`` may live where ``old`` was: memory of its size that is free now, or
        when a branch ends. If it ``updates`` that, there would be a copy else."""
        lives, site = self.lives, self.site.get(old)
        moment = lives.spans[call][isinstance(call, BranchCall)]
        if site is None or not site.free or lives.last[old] != moment or (
                old.dtype != value.dtype or old.type.size != value.type.size):
            return False
        if old.type.shape != value.type.shape and not lives.rows.isdisjoint((value, *site.values)):
            return False  # the rows of another shape lie elsewhere
        wish = carries.get(value)
        wanted = () if wish is None else (
            wish.own, *wish.spare, *(wish.others if updates else ()))
        if self._is_carried(site) and not any(each is site for each in wanted):
            return False
        return site.values[-1] is old

    def _is_carried(self, site: Site) -> bool:
        """True for the memory of what a loop that still runs carries."""
        return site.values[-1] in self.lives.carried

    # -- loops and branches ---------------------------------------------------------------------

    def _loop(self, graph: Graph, call: LoopCall, carries: Mapping[Value, Wish]) -> None:
        lives, rounds = self.lives, Rounds()
        start, end = lives.spans[call]
        inputs = [lives.of(graph, name) for name in call.inputs]
        results = [lives.of(graph, name) for name in call.results]
        params = call.body.graph.params
        self.rounds[call] = rounds
        homes: list[Site] = []
        for param, value, result in zip(params[:call.carried], inputs, results, strict=False):
            old = self.site.get(value)
            if (old is not None and self._may_take(call, result, value, carries)
                    and inputs[:call.carried].count(value) == 1):
                home = old
            else:
                home = self._new(graph, call, result, carries)
                home.values.pop()
                rounds.before.append((value, param))
            home.last = max(home.last, end)
            home.values.append(param)
            self.site[param] = home
            homes.append(home)
        for value in results[call.carried:]:
            self._new(graph, call, value, carries)
        if call.test is not None:
            self._calls(call.test, {})
        self._calls(call.body, self._wishes(graph, call, homes))
        self._stack(call, results[call.carried:])
        self._carry(graph, call, homes, start)
        for value, home in zip(results[:call.carried], homes, strict=True):
            self._join(home, value)
            home.last = max(home.last, end)
        for cycle in rounds.cycles:
            last = max(site.last for site in cycle)
            for site in cycle:
                site.last = last

    def _wishes(
        self, graph: Graph, call: LoopCall, homes: Sequence[Site]
    ) -> dict[Value, Wish]:
        """Where the next values of what a loop carries should be, and with them the values on the
        way there, which all have the memory of the first."""
        params = call.body.graph.params[:call.carried]
        nexts = call.body.graph.results[:call.carried]
        turning = [(home, param, value) for home, param, value
                   in zip(homes, params, nexts, strict=True) if _may_turn(home, graph, param.type)]
        found: dict[Value, Wish] = {}
        for param, value, home in zip(params, nexts, homes, strict=True):
            if value in call.body.graph.params or value in found:
                continue
            same = [each for each in turning if each[1].type == param.type and each[0] is not home
                    ] if _may_turn(home, graph, param.type) else []
            found[value] = Wish(home, tuple([other for other, old, new in same
                                             if new in params and new is not old]),
                                tuple([other for other, *_ in same]))
        for value, wish in [*found.items()]:
            for base in self._chains.way_to(call.body, value):
                found.setdefault(base, wish)
        return found

    def _stack(self, call: LoopCall, results: Sequence[Value]) -> None:
        """Rows of the other results: each is written where it belongs, or copied there."""
        body = call.body.graph
        index = symbol(call.index)
        row = call.count - 1 - index if call.reverse and call.count is not None else index
        for value, result in zip(body.results[call.carried:], results, strict=True):
            target = Target(result, (row,))
            if not self._settle(value, body, target):
                self.finals.setdefault(body, []).append((value, target))

    def _carry(self, graph: Graph, call: LoopCall, homes: Sequence[Site], start: int) -> None:
        """How the next values of what is carried come to its memory."""
        rounds, body = self.rounds[call], call.body.graph
        params, nexts = body.params[:call.carried], body.results[:call.carried]
        following: dict[Site, Site] = {}  # of memory that is exchanged: where the next value is
        turning = {home for home, param in zip(homes, params, strict=True)
                   if _may_turn(home, graph, param.type)}
        left = {home for home, param, value in zip(homes, params, nexts, strict=True)
                if self.site.get(value) is home}  # nothing is to be done
        for value, home in zip(nexts, homes, strict=True):
            site = self.site.get(value)
            if site in turning and home in turning and site not in {*left, *following.values()}:
                following[home] = site
        for at, (param, value, home) in enumerate(zip(params, nexts, homes, strict=True)):
            if home in left or home in following:
                continue
            site = self.site.get(value)
            shared = home in following.values() or any(
                other is param for place, other in enumerate(nexts) if place != at)
            mine = site is not None and site.free and site.scope is body and value not in params
            if not mine and not shared:
                rounds.after.append((value, home))
                continue
            if mine:
                assert site is not None
                new = site
            else:  # other values of the next round are still to be read from ``home``
                new = Site(body, call, [], start, home.last)
                self.sites.append(new)
                rounds.to_next.append((value, new))
            new.turns, new.first, new.call, new.like = True, start, call, home
            if home.scope is graph and home.free:
                following[home] = new
            else:  # the memory is somebody else's, who is not to find it in another place
                new.last = max(new.last, self.lives.spans[call][1])
                rounds.back.append((new, home))
        rounds.cycles = _cycles(following)

    def _branch(self, graph: Graph, call: BranchCall, carries: Mapping[Value, Wish]) -> None:
        lives = self.lives
        results = [lives.of(graph, name) for name in call.results]
        homes: dict[int, tuple[int, Site]] = {}  # of results that take over that of an input
        for at, place in self._chains.taken_over(graph, call).items():
            old = lives.of(graph, call.inputs[place])
            if old.type == results[at].type and self._may_take(call, results[at], old, carries):
                homes[at] = place, self.site[old]
        for at, value in enumerate(results):
            if at not in homes:
                self._new(graph, call, value, carries)
        for body in call.bodies:
            for place, home in homes.values():
                param = body.graph.params[place]
                lives.last[param] = self._chains.last_use(body, param)
                self._join(home, param)
            self._calls(body, {})
            for at, (value, result) in enumerate(zip(body.graph.results, results, strict=True)):
                target = Target(result)
                if at in homes:
                    if self.site.get(lives.owner(value)) is not homes[at][1]:
                        raise error("W601", f"{value.name} is not in the memory of {result.name}")
                elif not self._settle(value, body.graph, target):
                    self.finals.setdefault(body.graph, []).append((value, target))
        for at, (_, home) in homes.items():
            self._join(home, results[at])


def _may_turn(home: Site, scope: Graph, type_: TensorType) -> bool:
    """Whether rounds may exchange the memory of a carried value with that of others; a small one
    is copied as fast."""
    size = type_.nbytes
    return home.scope is scope and home.free and not (isinstance(size, int) and size <= LOCAL)


def _cycles(following: Mapping[Site, Site]) -> list[list[Site]]:
    """Memory in the order in which each has next what the one behind it has; all of it turns."""
    cycles: list[list[Site]] = []
    rest = dict(following)
    heads = [site for site in following if site not in set(following.values())]
    for head in (*heads, *following):
        if head not in rest:
            continue
        cycle = [head]
        while (site := rest.pop(cycle[-1], head)) is not head:
            cycle.append(site)
        for site in cycle:
            site.turns = True
        cycles.append(cycle)
    return cycles
