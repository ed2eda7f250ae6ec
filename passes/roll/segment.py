"""A run of equal keys as rounds of a loop: where each operand of a round comes from.

    outside     a value from before the loop, the same in all rounds
    inside      a value of the same round, of the one before, or of one before that
    family      a value of another loop: of its round ``first + step * t`` in round t
    table       a constant, another one in each round

Where a round begins is chosen so that few values go from one to the next. Rounds at the ends of a
run that do not fit stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...ir.record import record
from .line import CONSTANT, Line, Numbers, places
from .repeats import Run

DELAY = 16  # rounds after which a value may still be read


@record(frozen=True)
class Outside:
    number: int


@record(frozen=True)
class Inside:
    """Value ``at`` of the round ``back`` before; ``first`` is read in the first such rounds."""

    back: int
    at: int
    first: tuple[int, ...] = ()


@record(frozen=True)
class Family:
    """Value ``at`` of rounds ``first``, ``first + step``, ... of another loop."""

    loop: int
    at: int
    first: int
    step: int


@record(frozen=True)
class Table:
    """A constant of each round."""

    numbers: tuple[int, ...]


Source = Outside | Inside | Family | Table


@record(frozen=True, eq=False)
class Segment:
    """Rounds of nodes: the first node and value of the first round, how many there are of each."""

    start: int
    period: int
    rounds: int
    first: int
    values: int
    sources: tuple[tuple[Source, ...], ...]  # of each node of a round
    steps: tuple[tuple[int, ...], ...]       # by how much the places of each node move

    @property
    def stop(self) -> int:
        return self.start + self.rounds * self.period

    @property
    def span(self) -> range:
        """The numbers of its values."""
        return range(self.first, self.first + self.rounds * self.values)

    def place(self, number: int) -> tuple[int, int]:
        """The round of a value, and which one of the round it is."""
        return divmod(number - self.first, self.values)


def segment(
    line: Line, run: Run, loops: Sequence[Segment], owner: Numbers, least: int
) -> Segment | None:
    """The longest stretch of a run that is a loop; ``owner`` has the loop of each value, or -1."""
    start = run.start + _best_cut(line, run)
    rounds = (run.stop - start) // run.period
    if rounds < least or rounds < 3:
        return None
    columns = _Columns(line, start, run.period, rounds, loops, owner)
    first, last = columns.stretch()
    if last - first + 1 < least:
        return None
    while first > 0 and columns.may_begin_at(first - 1):
        first -= 1
    return columns.segment(first, last - first + 1)


def _best_cut(line: Line, run: Run) -> int:
    """How far into a run a round begins so that the fewest values are alive there; of several such
    places the last one that costs no round, as what is written before a loop joins its rows."""
    period = run.period
    middle = run.start + (run.length // period // 2) * period
    stop = min(middle + period, len(line.nodes))
    sources = line.sources[line.first_source[middle]:line.first_source[stop]]
    counts = np.diff(line.first_source[middle:stop + 1])
    readers = np.repeat(np.arange(middle, stop), counts)
    inside = sources >= line.first_value[run.start]
    sources, readers = sources[inside], readers[inside]
    makers = line.home[sources]
    lasting: dict[int, tuple[int, int]] = {}
    per_round = int(line.first_value[stop] - line.first_value[middle])
    base = int(line.first_value[run.start])
    for source, maker, reader in zip(sources.tolist(), makers.tolist(), readers.tolist(),
                                     strict=True):
        key = (source - base) % per_round
        if key not in lasting or lasting[key][1] < reader - maker:
            lasting[key] = (maker - run.start) % period, reader - maker
    crossing = np.zeros(period + 1, np.int64)
    for maker, length in lasting.values():  # it is alive at the places maker + 1 ... + length
        whole, rest = divmod(length, period)
        crossing[:period] += whole
        first, end = maker + 1, maker + 1 + rest
        crossing[first:min(end, period)] += 1
        crossing[:max(0, end - period)] += 1
    cuts = np.flatnonzero(crossing[:period] == crossing[:period].min())
    return int(max(cuts, key=lambda cut: ((run.length - cut) // period, cut)))


class _Columns:
    """The operands and places of all rounds, a column for each that a round has."""

    def __init__(self, line: Line, start: int, period: int, rounds: int,
                 loops: Sequence[Segment], owner: Numbers) -> None:
        self.line, self.start, self.period, self.rounds = line, start, period, rounds
        self.loops, self.owner = loops, owner
        stop = start + rounds * period
        self.bases = line.first_value[start:stop:period]
        self.per_round = int(line.first_value[start + period] - line.first_value[start])
        self.sources = line.sources[line.first_source[start]:line.first_source[stop]].reshape(
            rounds, -1)
        nodes = line.nodes[start:stop]
        self.counts = [len(places(node, line.attrs(node))) if node.op.moving else 0
                       for node in nodes[:period]]
        self.places = np.array([place for node in nodes if node.op.moving
                                for place in places(node, line.attrs(node))],
                               np.int64).reshape(rounds, -1)
        self.relative = self.sources - self.bases[:, None]
        middle = rounds // 2
        self.inside = (self.relative[middle] == self.relative[middle + 1]) & (
            self.relative[middle] >= -DELAY * self.per_round)
        self.steps = self.sources[middle + 1] - self.sources[middle]
        self.slopes = self.places[middle + 1] - self.places[middle]
        self.back = np.where(self.inside, -(self.relative[middle] // self.per_round), 0)
        self.constant: NDArray[np.bool_] = np.all(
            self.sources[middle:middle + 2] <= CONSTANT, axis=0)
        self.outside = ~self.inside & ~self.constant & (self.steps == 0)
        self.family = ~self.inside & ~self.constant & (self.steps != 0)

    def _as_before(self, first: int, stop: int) -> NDArray[np.bool_]:
        """Whether operands from outside go on in rounds ``first + 1 ... stop - 1`` as they do from
        the middle one to the next; the others do."""
        sources = self.sources[first:stop]
        found: NDArray[np.bool_] = self.inside | np.where(
            self.constant, (sources[1:] <= CONSTANT) & (sources[:-1] <= CONSTANT),
            sources[1:] - sources[:-1] == self.steps)
        return found

    def stretch(self) -> tuple[int, int]:
        """The first and the last of the longest row of rounds that follow one another."""
        relative, sources = self.relative, self.sources
        fits = (self._as_before(0, self.rounds) & (
            ~self.inside | (relative[1:] == relative[:-1]))).all(1)
        fits &= (self.places[1:] - self.places[:-1] == self.slopes).all(1)
        if self.family.any():
            far = sources[:, self.family]
            own = np.where(far >= 0, self.owner[np.maximum(far, 0)], -1)
            known = (own >= 0).all(1) & (own == own[self.rounds // 2]).all(1)
            fits &= known[1:] & known[:-1]
        early = (sources[:, self.outside] < self.bases[:1]).all()
        edges = np.flatnonzero(np.diff(np.concatenate(([False], fits, [False])).astype(np.int8)))
        if not early or not edges.size:
            return 0, -1
        lengths = edges[1::2] - edges[::2]
        best = int(np.argmax(lengths))
        return int(edges[2 * best]), int(edges[2 * best] + lengths[best])

    def may_begin_at(self, k: int) -> bool:
        """True if round ``k`` fits before those that follow it, but for what it and they read of
        rounds before it: that is from outside."""
        if not ((self.places[k + 1] - self.places[k] == self.slopes).all()
                and self._as_before(k, k + 2).all() and not self.family.any()):
            return False
        usual = self.relative[self.rounds // 2]
        for later in range(int(self.back.max(initial=0)) + 1):
            early = self.inside & (self.back > later)
            late = self.inside & (self.back <= later)
            if k + later >= self.rounds or np.any(
                    early & (self.sources[k + later] >= self.bases[k])) or np.any(
                    late & (self.relative[k + later] != usual)):
                return False
        return True

    def segment(self, first: int, rounds: int) -> Segment | None:
        """The loop of some rounds; None if what is handed on begins with another type."""
        line, k = self.line, first
        base = int(self.bases[k])
        found: list[Source] = []
        for column in range(self.sources.shape[1]):
            source = int(self.sources[k, column])
            if self.constant[column]:
                numbers = tuple(self.sources[k:k + rounds, column].tolist())
                found.append(Outside(source) if len(set(numbers)) == 1 else Table(numbers))
                continue
            if not self.inside[column]:
                if self.steps[column] == 0:
                    found.append(Outside(source))
                    continue
                other = self.loops[int(self.owner[source])]
                round_, at = other.place(source)
                step, rest = divmod(int(self.steps[column]), other.values)
                if rest:
                    return None
                found.append(Family(int(self.owner[source]), at, round_, step))
                continue
            back = int(self.back[column])
            at = int(self.relative[self.rounds // 2, column]) % self.per_round
            starts = tuple(int(n) for n in self.sources[k:k + back, column])
            if back > rounds or any(line.value(n).type != line.value(base + at).type
                                    for n in starts):
                return None
            found.append(Inside(back, at, starts))
        nodes = line.nodes[self.start + k * self.period:][:self.period]
        sources, slopes = iter(found), iter(self.slopes.tolist())
        return Segment(
            self.start + k * self.period, self.period, rounds, base, self.per_round,
            tuple(tuple(next(sources) for _ in node.inputs) for node in nodes),
            tuple(tuple(next(slopes) for _ in range(count)) for count in self.counts))
