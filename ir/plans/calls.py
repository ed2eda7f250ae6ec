"""What the memory pass takes: a tree of calls on the values of a graph that is fused and lowered.

    KernelCall                   a kernel on values; in ``plan``
    GroupCall(a, b, c)           kernels of which none reads what another one writes
    LoopCall(body, test)         a body for each round; its parameters are carried, scanned, outer
    BranchCall(then, other)      one of two bodies
    HostCall                     a function of the host
    MeasureCall                  a number, which is a size from then on

Values are named as in the graph, or body, that the call stands in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

from ..graph import Graph
from ..indices.index import Dim
from ..indices.rounds import Counts, counts_inside
from ..loc import Loc
from ..record import record, replace
from .plan import KernelCall


@record(frozen=True, eq=False)
class GroupCall:
    """Kernel calls that may run in any order, or at once."""

    calls: tuple[KernelCall, ...]


@record(frozen=True, eq=False)
class Body:
    """A graph and the calls that compute its results."""

    graph: Graph
    calls: tuple[Call, ...]


@record(frozen=True, eq=False)
class LoopCall:
    """A loop of ``count`` rounds (None: as long as the only result of ``test`` is true).

    ``inputs`` are the first values of what is carried, then the arrays whose rows the rounds get
    (the last row first if ``reverse``), then what all rounds read; so are the parameters of the
    body. Its results are the next values of what is carried, then rows of the other results.
    ``test`` has the parameters of the body; ``index`` names the number of the round.
    """

    inputs: tuple[str, ...]
    results: tuple[str, ...]
    carried: int
    scanned: int
    index: str
    count: Dim | None
    reverse: bool
    body: Body
    test: Body | None = None


@record(frozen=True, eq=False)
class BranchCall:
    """The first body if the condition is true, else the second; both have the same parameters."""

    condition: str
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    bodies: tuple[Body, Body]


@record(frozen=True, eq=False)
class HostCall:
    """A HOST row, by its name, and attributes; what it makes is in none of its operands' memory."""

    function: str
    attrs: tuple[tuple[str, Any], ...]
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    locs: tuple[Loc, ...] = ()


@record(frozen=True, eq=False)
class MeasureCall:
    """Make a number the size of that name."""

    number: str
    size: str
    locs: tuple[Loc, ...] = ()


Call = KernelCall | GroupCall | LoopCall | BranchCall | HostCall | MeasureCall


def bodies_of(call: Call) -> tuple[Body, ...]:
    """The bodies of a call, in the order in which they run."""
    match call:
        case LoopCall():
            return (call.body,) if call.test is None else (call.test, call.body)
        case BranchCall():
            return call.bodies
    return ()


def all_calls(calls: Iterable[Call]) -> Iterator[Call]:
    """All calls of a tree, each before those that it holds."""
    for call in calls:  # recursion is by nesting of bodies only
        yield call
        if isinstance(call, GroupCall):
            yield from call.calls
        for body in bodies_of(call):
            yield from all_calls(body.calls)


def calls_in_rounds(
    calls: Iterable[Call], counts: Counts = MappingProxyType({})
) -> Iterator[tuple[Call, Counts]]:
    """All calls of a tree, with the counts of the rounds that each is made in, where these have an
    end."""
    for call in calls:  # recursion is by nesting of bodies only
        yield call, counts
        if isinstance(call, GroupCall):
            yield from calls_in_rounds(call.calls, counts)
        inner = (counts_inside(counts, call.index, call.count) if isinstance(call, LoopCall)
                 else counts)
        for body in bodies_of(call):
            yield from calls_in_rounds(body.calls, inner)


def kernel_calls(calls: Iterable[Call]) -> Iterator[KernelCall]:
    """All kernel calls of a tree, in order."""
    return (call for call in all_calls(calls) if isinstance(call, KernelCall))


def map_bodies(call: Call, change: Callable[[Body], Body]) -> Call:
    """A call with other bodies."""
    match call:
        case LoopCall():
            test = None if call.test is None else change(call.test)
            return replace(call, body=change(call.body), test=test)
        case BranchCall():
            then, other = call.bodies
            return replace(call, bodies=(change(then), change(other)))
    return call


def split_kernels(
    calls: Iterable[Call], change: Callable[[KernelCall, bool], Sequence[KernelCall]],
    again: bool = False,
) -> tuple[Call, ...]:
    """The same tree with several kernel calls for one, of which ``change`` is told whether it runs
    ``again`` in a loop; groups are not made yet."""
    made: list[Call] = []
    for call in calls:  # recursion is by nesting of bodies only
        loops = again or isinstance(call, LoopCall)

        def inside(body: Body, loops: bool = loops) -> Body:
            return replace(body, calls=split_kernels(body.calls, change, loops))

        made += change(call, again) if isinstance(call, KernelCall) else [map_bodies(call, inside)]
    return tuple(made)


def map_kernels(
    calls: Iterable[Call], change: Callable[[Sequence[KernelCall]], Sequence[KernelCall]]
) -> tuple[Call, ...]:
    """The same tree with other kernel calls, of which ``change`` is given all at once."""
    calls = tuple(calls)
    made = iter(change(list(kernel_calls(calls))))

    def moved(call: Call) -> Call:
        match call:
            case KernelCall():
                return next(made)
            case GroupCall():
                return GroupCall(tuple(next(made) for _ in call.calls))
        if isinstance(call, LoopCall) and call.test is not None:  # in the order in which they run
            test = inside(call.test)
            return replace(call, test=test, body=inside(call.body))
        return map_bodies(call, inside)

    def inside(body: Body) -> Body:
        return replace(body, calls=tuple(map(moved, body.calls)))

    return tuple(map(moved, calls))
