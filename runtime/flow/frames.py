"""What a step runs: the units of a partition, and the values of one run of them, its frame."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.indices.dims import Requirement, check_requirement
from ...ir.indices.index import symbols_of
from ...ir.plans.partition import Segment
from ..state import Array

Wanted = tuple["Frames", Sequence[Array]]
"""What a driver asks for: a body, and the values of its parameters."""
Driver = Generator[Wanted, Sequence[Array], Sequence[Array]]

Begin = Callable[[Any, Sequence[Array]], None]
"""What asks a resource, for a ``Task``; it returns at once."""

# A segment that took less than so many seconds when it ran last is not worth another thread's
# waking, unless it calls a function of the host, which may wait for another segment.
WORTH_WAKING = 25e-6

_NONE: Mapping[str, int] = MappingProxyType({})


class Unit:
    """A segment that is ready to be run again and again; slots are places in a frame's values."""

    __slots__ = ("asks", "begin", "call", "drive", "freed", "gives", "launches", "number", "rank",
                 "readers", "run", "segment", "takes", "tells", "there", "told", "took", "waits")

    def __init__(self, number: int, takes: Sequence[int], gives: Sequence[int],
                 segment: Segment | None = None) -> None:
        self.number, self.segment = number, segment
        self.takes, self.gives = tuple(takes), tuple(gives)
        self.tells: tuple[tuple[int, int, int], ...] = ()  # result, axis, slot of the size
        self.told: tuple[tuple[int, int, str], ...] = ()   # result, axis, name of a number's size
        self.readers: tuple[int, ...] = ()                 # units that lack one less after it
        self.freed: tuple[int, ...] = ()                   # slots that it takes and results are not
        self.rank = 0                                      # the smallest is run first
        self.took = 1.0                                    # seconds, lately
        self.waits = False                                 # perhaps: it calls the host
        self.asks = False                                  # resources, by itself or in its bodies
        self.launches = 0
        # One of four: a program, one on a device with memory of its own, a driver, a resource.
        self.call: Callable[..., Any] | None = None
        self.run: Callable[[Sequence[Array]], Sequence[Array]] | None = None  # with errors
        self.there: Callable[[Sequence[Array], Any], Sequence[Array]] | None = None
        self.drive: Callable[[Sequence[Array]], Driver] | None = None
        self.begin: Begin | None = None

    def ran(self, args: Sequence[Array]) -> Sequence[Array]:
        """What the program gives; it notes how long that takes."""
        assert self.call is not None
        start = time.perf_counter()
        results: Sequence[Array] = self.call(*args)
        if results is NotImplemented:
            assert self.run is not None
            results = self.run(args)
        self.took = time.perf_counter() - start
        return results

    def keep(self, frame: Frame, results: Sequence[Array]) -> None:
        """Put what it has given where its readers find it, and let go of what none needs."""
        values, uses = frame.values, frame.uses
        for slot, value in zip(self.gives, results, strict=True):
            values[slot] = value
        for at, axis, slot in self.tells:
            values[slot] = size_array(results[at].shape[axis])
        if self.told:
            frame.tell({name: results[at].shape[axis] for at, axis, name in self.told})
        for slot in self.freed:  # their memory is free once the last reader has them
            uses[slot] -= 1
            if not uses[slot]:
                values[slot] = None


class Frames:
    """What all frames of one partition share.

    The units ``held`` wait for one thing more: that the caller goes on after the others have ended.
    What sizes have to be, by ``needs``, is looked at when a number has told one; ``sizes`` has the
    parameters that tell others, by name.
    """

    def __init__(self, units: Sequence[Unit], lacks: Sequence[int], uses: Sequence[int],
                 results: Sequence[int], held: Collection[int] = (),
                 needs: Sequence[Requirement] = (), sizes: Mapping[str, int] = _NONE) -> None:
        self.needs, self.sizes = tuple(needs), sizes
        self.units, self.uses = tuple(units), tuple(uses)
        self.lacks = tuple(count + (at in held) for at, count in enumerate(lacks))
        self.results, self.held = tuple(results), tuple(held)
        self.first = tuple(unit for unit, count in zip(units, self.lacks, strict=True)
                           if not count)
        self._plain = not held and all(
            unit.call is not None and not unit.waits for unit in units)

    @property
    def alone(self) -> bool:
        """True if the caller would run all units itself: they are programs, of which at most one
        takes long enough to be worth another thread's waking."""
        return self._plain and sum([unit.took > WORTH_WAKING for unit in self.units]) < 2

    @property
    def asks(self) -> bool:
        """True if units ask resources."""
        return any(unit.asks for unit in self.units)

    def asking_first(self, late: Collection[int]) -> Frames:
        """The same, in two parts: first what asks resources, and what leads to that, then the
        rest. Slots that are ``late`` have no values before the second part."""
        known = set(range(len(self.units)))
        for at, unit in enumerate(self.units):  # which stand in an order in which they may run
            if not set(late).isdisjoint(unit.takes):
                known.discard(at)
            if at not in known:
                known -= set(unit.readers)
        early = {at for at in known if self.units[at].asks}
        for at in reversed(range(len(self.units))):
            if at in known and not early.isdisjoint(self.units[at].readers):
                early.add(at)
        held = [at for at in range(len(self.units)) if at not in early]
        return Frames(self.units, self.lacks, self.uses, self.results, held if early else (),
                      self.needs, self.sizes)


class Frame:
    """The values of one run of a partition; ``done`` is told when all its units have ended."""

    __slots__ = ("dims", "done", "frames", "lacks", "left", "pause", "uses", "values")

    def __init__(self, frames: Frames, params: Sequence[Array],
                 done: Callable[[Sequence[Array]], None] | None = None,
                 dims: Mapping[str, int] = _NONE) -> None:
        self.frames, self.done = frames, done
        self.dims = dict(dims) if frames.needs else {}
        for name, slot in frames.sizes.items() if frames.needs else ():
            self.dims[name] = params[slot].shape[0]
        self.lacks, self.uses = list(frames.lacks), list(frames.uses)
        self.left, self.pause = len(frames.units), len(frames.held)
        self.values: list[Any] = [*params, *[None] * (len(frames.uses) - len(params))]

    def results(self) -> list[Array]:
        values = self.values
        return [values[slot] for slot in self.frames.results]

    def tell(self, found: Mapping[str, int]) -> None:
        """Take note of sizes. Raises what is wrong with them."""
        self.dims.update(found)
        for need in self.frames.needs:
            names = symbols_of(need.left) | symbols_of(need.right)
            if names <= self.dims.keys() and not names.isdisjoint(found):
                check_requirement(need, self.dims)

    def straight(self) -> list[Array]:
        """The results, where the caller is ``alone``: units stand in an order in which they may
        run, and no other thread knows of them. Raises what a unit raises."""
        for unit in self.frames.units:
            unit.keep(self, unit.ran([self.values[slot] for slot in unit.takes]))
        return self.results()


def size_array(size: int) -> Array:
    """The array that tells a size (``ir/plans/partition.carrier``)."""
    return np.empty((size, 0), np.bool_)
