"""The rounds of a loop cut into parts, each of which goes through a piece of them before the next.

    launch @round(%a, %y, %y) for each k        for each k:  r0[k] = cos(k * a)        in vectors
      %2: f64 = cos(k * a)                      for each k:  y[] = y[] * 0.5 + r0[k]   in turn
      y[] = y[] * 0.5 + %2                      for each k:  ...log of what y was...   in vectors

What follows from what the round before has left is computed in turn; what is before that and what
comes after it is not. Parts hand on values in rows, one element for each round of a piece. So do
loop distribution and strip-mining in compilers (Allen and Kennedy, "Optimizing Compilers for Modern
Architectures", 2001, chapter 5).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ....ir.cost.limits import PASS, STORED
from ....ir.cost.statements import statement_work
from ....ir.indices.index import symbols_of
from ....ir.kernels.kernel import (
    Apply,
    Check,
    Const,
    Index,
    Kernel,
    Load,
    Param,
    Stmt,
    Store,
)
from ....ir.record import record, replace
from ....ir.scalar.primitives import PRIMITIVES
from ....ir.types import TensorType

ROWS = 8   # at most


@record(frozen=True)
class Part:
    """What of a round is computed together, and the buffers that it leaves for the next round; one
    round after the other if it is ``in_turn``. One that ``asks`` has what may be unusual: checks,
    and in vectors operands that have a way of their own."""

    kernel: Kernel
    states: frozenset[str]
    rows: tuple[Param, ...] = ()
    in_turn: bool = False

    @property
    def asks(self) -> bool:
        return any(isinstance(stmt, Check) or (may_be_unusual(stmt) and not self.in_turn)
                   for stmt in self.kernel.body)


def asked(parts: Sequence[Part]) -> int:
    """How many parts there are to the last one that asks."""
    return max((at for at, part in enumerate(parts, 1) if part.asks), default=0)


def may_be_unusual(stmt: Stmt) -> bool:
    """Whether operands of a statement may have a way of their own."""
    return isinstance(stmt, Apply) and (
        PRIMITIVES[stmt.prim].composite or stmt.prim == "fmod")


def distribute(
    kernel: Kernel, index: str, states: Mapping[str, str]
) -> tuple[Part, ...]:
    """The parts of a kernel that is run for each ``index``; ``states`` are the buffers of those of
    its parameters that rounds change. Empty where it is best left whole."""
    body = kernel.body
    anchors = {state: {at for at, stmt in enumerate(body) if isinstance(stmt, (Load, Store))
                       and states.get(stmt.param) == state} for state in set(states.values())}
    above, below = _closures(body)
    chains = _in_turn(anchors, above, below)
    if all(_is_sum(body, chain) for chain in chains):
        return ()  # of which others make vectors as they are
    levels = _levels(body, chains)
    free = repeated(body, index, states)
    levels = _merged(body, levels, free)
    order = sorted({levels[at] for at in range(len(body)) if at not in free})
    if len(order) < 2:
        return ()
    number = {level: at for at, level in enumerate(order)}
    parts = [number.get(level, 0) for level in levels]
    made = _parts(kernel, parts, free, states, order)
    body = _known_guards(body, parts, free, asked(made))
    made = _parts(replace(kernel, body=body), parts, free, states, order)
    return made if len({row for part in made for row in part.rows}) <= ROWS else ()


def _parts(
    kernel: Kernel, parts: Sequence[int], free: Collection[int], states: Mapping[str, str],
    levels: Sequence[int],
) -> tuple[Part, ...]:
    rows = _rows(kernel.body, parts, free)
    return tuple(replace(_part(kernel, at, parts, free, rows, states), in_turn=level % 2 != 0)
                 for at, level in enumerate(levels))


def _closures(body: Sequence[Stmt]) -> tuple[list[set[int]], list[set[int]]]:
    """The statements that each one follows from, and those that follow from it, and itself."""
    place = {stmt.name: at for at, stmt in enumerate(body) if stmt.name}
    above = list[set[int]]()
    for at, stmt in enumerate(body):
        above.append({at}.union(*(above[place[name]] for name in stmt.operands)))
    below = [{at} for at in range(len(body))]
    for at, found in enumerate(above):
        for other in found:
            below[other].add(at)
    return above, below


def _in_turn(
    anchors: Mapping[str, set[int]], above: Sequence[set[int]], below: Sequence[set[int]]
) -> list[set[int]]:
    """The statements that one round after the other has to run, together: each leaves something
    that the next round's follow from."""
    reach = {state: set[int]().union(*(below[at] for at in found))
             for state, found in anchors.items()}
    leads = {state: {other for other, found in anchors.items() if not down.isdisjoint(found)}
             for state, down in reach.items()}
    for _ in anchors:  # what leads to something by way of others
        leads = {state: found.union(*(leads[other] for other in found))
                 for state, found in leads.items()}
    classes, seen = list[set[int]](), set[str]()
    for state in sorted(anchors):
        if state not in seen:
            together = {state} | {other for other in leads[state] if state in leads[other]}
            seen |= together
            starts = set[int]().union(*(anchors[each] for each in together))
            down = set[int]().union(*(below[at] for at in starts))
            up = set[int]().union(*(above[at] for at in starts))
            classes.append(starts | (down & up))
    return classes


def _is_sum(body: Sequence[Stmt], chain: Collection[int]) -> bool:
    """Whether a term is added in each round to a number that nothing else reads."""
    match [body[at] for at in sorted(chain)]:
        case [Load() as load, Apply(prim="add") as total, Store() as store]:
            return load.name in total.args and store.value == total.name and sum(
                load.name in stmt.operands or total.name in stmt.operands for stmt in body) == 2
        case [Store()]:
            return True
    return False


def _levels(body: Sequence[Stmt], classes: Sequence[set[int]]) -> list[int]:
    """The part of each statement: those that are run in turn are odd, and come after all that they
    follow from."""
    place = {stmt.name: at for at, stmt in enumerate(body) if stmt.name}
    group = {at: set(members) for members in classes for at in members}
    levels, more = [0] * len(body), True
    for members in classes:
        for at in members:
            levels[at] = 1
    while more:
        more = False
        for at, stmt in enumerate(body):
            least = levels[at]
            for name in stmt.operands:
                other = levels[place[name]]
                beyond = place[name] not in group.get(at, ())
                least = max(least, other + (beyond and (other % 2 != 0 or at in group)))
            if at in group:
                least = least | 1
            if least > levels[at]:
                more = True
                for each in group.get(at, (at,)):
                    levels[each] = max(levels[each], least)
    return levels


def repeated(body: Sequence[Stmt], index: str, states: Collection[str]) -> set[int]:
    """The statements that each part has for itself: what is the same in all rounds, which do not
    change the parameters but ``states``, and what little there is to do to have something of the
    number of the round."""
    place = {stmt.name: at for at, stmt in enumerate(body) if stmt.name}
    costs = dict[int, int]()  # of those; 0: the same in all rounds
    for at, stmt in enumerate(body):
        if any(place[name] not in costs for name in stmt.operands):
            continue
        turning = any(index in symbols_of(expr) for expr in stmt.exprs)
        cost = sum(costs[place[name]] for name in stmt.operands)
        if isinstance(stmt, Const) or (
                isinstance(stmt, Load) and stmt.param not in states and not turning and not cost):
            costs[at] = 0
        elif isinstance(stmt, Index):
            costs[at] = cost + turning
        elif isinstance(stmt, Apply):
            cost += statement_work(stmt) if cost else 0
            if cost < STORED:
                costs[at] = cost
    return set(costs)


def _merged(body: Sequence[Stmt], levels: Sequence[int], free: Collection[int]) -> list[int]:
    """Levels without those parts in vectors that are too little to be one."""
    work = dict[int, int]()
    for at, stmt in enumerate(body):
        if isinstance(stmt, Apply) and at not in free:
            work[levels[at]] = work.get(levels[at], 0) + statement_work(stmt)
    now, target = dict[int, int](), 1
    for level in sorted(set(levels)):
        if level % 2 == 0 and work.get(level, 0) >= PASS:
            now[level], target = level, level + 1
        else:
            now[level] = target
    return [now[level] for level in levels]


def _known_guards(
    body: Sequence[Stmt], parts: Sequence[int], free: Collection[int], asked: int
) -> tuple[Stmt, ...]:
    """Statements with the guards that are left of them: after so many parts it has been ``asked``
    whether all checks have held, and they are run if so."""
    holding, numbers = set[str](), dict[str, Any]()
    checked = {stmt.value for stmt in body if isinstance(stmt, Check)}
    for stmt in body:
        match stmt:
            case Const(value=value) | Index(expr=int() as value):
                numbers[stmt.name] = value
            case Apply(prim="and_", args=args) if holding.issuperset(args):
                holding.add(stmt.name)
            case Apply(prim="ge", args=(a, b)) if {a, b} <= numbers.keys() and (
                    numbers[a] >= numbers[b]):
                holding.add(stmt.name)
        if stmt.name in checked:
            holding.add(stmt.name)
    return tuple(replace(stmt, guard="") if isinstance(stmt, (Load, Store)) and (
        stmt.guard in holding and part >= asked and at not in free) else stmt
        for at, (stmt, part) in enumerate(zip(body, parts, strict=True)))


def _rows(
    body: Sequence[Stmt], parts: Sequence[int], free: Collection[int]
) -> dict[str, tuple[Param, int]]:
    """The values that a part needs of one before, as parameters, and the part that gives each."""
    place = {stmt.name: at for at, stmt in enumerate(body) if stmt.name}
    wanted = dict[int, None]()
    for at, stmt in enumerate(body):
        for name in stmt.operands:
            other = place[name]
            if at not in free and other not in free and parts[other] != parts[at]:
                wanted[other] = None
    return {body[at].name: (Param(f"r{number}", TensorType(body[at].dtype, ()), mutable=True),
                            parts[at]) for number, at in enumerate(wanted)}


def _part(
    kernel: Kernel, part: int, parts: Sequence[int], free: Collection[int],
    rows: Mapping[str, tuple[Param, int]], states: Mapping[str, str],
) -> Part:
    """One part of a kernel, as a kernel."""
    body, needed, used = list[Stmt](), set[str](), list[Param]()
    for at in reversed(range(len(kernel.body))):
        stmt = kernel.body[at]
        own = at not in free and parts[at] == part
        row, source = rows.get(stmt.name, (None, -1))
        if row is not None and own:
            body.append(Store("", stmt.dtype, row.name, (), stmt.name))
            used.append(row)
        elif row is not None and stmt.name in needed and source != part:
            body.append(Load(stmt.name, stmt.dtype, row.name, ()))
            used.append(row)
            continue
        if own or stmt.name in needed:
            body.append(stmt)
            needed.update(stmt.operands)
    body.reverse()
    read = {stmt.param for stmt in body if isinstance(stmt, (Load, Store))}
    params = (*(param for param in kernel.params if param.name in read), *used)
    made = replace(kernel, name=f"{kernel.name}_{part}", params=params, body=tuple(body))
    left = {stmt.param for at, stmt in enumerate(kernel.body) if parts[at] == part
            and at not in free and isinstance(stmt, (Load, Store))}
    return Part(made, frozenset(states[name] for name in left if name in states), tuple(used))
