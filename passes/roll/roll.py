"""A straight line of equal segments, as a Python loop leaves it, becomes one loop.

    x1 = mul x0, a; y1 = add x1, b; out1 = update out0, y1 {low = 0}         for t in range(n):
    x2 = mul y1, a; y2 = add x2, b; out2 = update out1, y2 {low = 1}             x = x * a + b
    ...                                                                          out[t] = x
    ==>
    y, ys = scan x0, a, b {length = n, body = @round(c0, x0, x1) -> (y, y)}; out = ys

So 10,000 steps are compiled as one. What is done, in the order of the files:

    rows        parts of a row of an array are written into the row
    reads       slices of what was written are read from what was written
    line        numbers: a key for each node (op, types, attributes but for places that may move),
                and the numbers of the values that it reads
    repeats     runs of a period in the list of keys
    segment     where operands come from, in all rounds alike: ``Outside``, ``Inside``, ``Family``;
                by how much places move from round to round
    buffers     what a loop writes into a buffer, a part in each round
    build       the new graph: scans, before them what is the same in all rounds

The bits stay what they are: a round does what its segment did. It is what is left when state has
become explicit and gradients have been taken, so what goes backwards is rolled as well, and reads
the rows of what went forward. Bodies are rolled in turn: loops in loops.
"""

from __future__ import annotations

import numpy as np

from ...ir.graph import Graph, all_nodes, control_of
from ...ir.ops.control.region import Looping
from ...ir.record import replace
from ..clone import map_bodies
from .build import Roller, names_in
from .line import Line, Numbers
from .repeats import Run, repeats
from .rows import with_rows
from .segment import Segment, segment

LEAST = 8     # rounds
PARTS = 8     # of a round that look alike
NODES = 128   # of all rounds: what is shorter compiles quickly, and is fused over rounds


def roll(graph: Graph, taken: frozenset[str] = frozenset()) -> Graph:
    """The graph with loops for what repeats itself, in bodies too; symbols that are ``taken`` mean
    something around it."""
    taken |= names_in(graph)
    graph = map_bodies(graph, lambda body: roll(body, taken))
    if len(graph.nodes) < NODES:
        return graph
    found = _rolled(graph, taken)
    rows = with_rows(graph, LEAST)
    if rows is not graph:
        found = min(found, _rolled(rows, taken), key=_size)
    return found


def _size(graph: Graph) -> int:
    """How many nodes there are, and elements that loops hand on."""
    sizes = [value.type.size for node in all_nodes(graph)
             if isinstance(control := control_of(node), Looping)
             for value in control.body.params[:control.carried]]
    return sum(size if isinstance(size, int) else 1 for size in sizes) + sum(
        1 for _ in all_nodes(graph))


def _rolled(graph: Graph, taken: frozenset[str]) -> Graph:
    line = Line(graph)
    owner = np.full(len(line.values), -1, np.int64)
    loops: list[Segment] = []
    for run in _runs(line):
        found = _segment(line, run, loops, owner)
        if found is not None:
            owner[found.span.start:found.span.stop] = len(loops)
            loops.append(found)
    return Roller(line, loops, roll, taken).graph() if loops else graph


def _runs(line: Line) -> list[Run]:
    """What repeats itself, constants included; and of what is left, what does but for them."""
    found = [run for run in repeats(line.keys(constants=True), LEAST) if run.length >= NODES]
    rest, at = line.keys(constants=False), 0
    for run in [*found, Run(len(rest), 0, 1)]:
        found += [replace(more, start=more.start + at)
                  for more in repeats(rest[at:run.start], LEAST) if more.length >= NODES]
        at = run.stop
    return sorted(found, key=lambda run: run.start)


def _segment(
    line: Line, run: Run, loops: list[Segment], owner: Numbers
) -> Segment | None:
    """The loop of a run. Where parts of a round look alike, what they read tells them apart: then
    a round is several of what has been found to repeat."""
    for parts in range(1, PARTS + 1):
        found = segment(line, replace(run, period=run.period * parts), loops, owner, LEAST)
        if found is not None and found.rounds * found.period >= max(NODES, run.length // 2):
            return found
    return None
