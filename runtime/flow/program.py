"""A partition as a program: the same calls, the same rules of state, run by segments.

``runtime.program.Program`` reads variables before and commits them after, whatever runs between;
here that is a ``Run``. So variables are cut once and committed once for the whole step, on all
devices, and a step that fails anywhere leaves them as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.graph import talks
from ...ir.indices.dims import Requirement, bind_dims
from ...ir.indices.index import plain_symbol, symbols_of
from ...ir.ops.control.extent import measured
from ...ir.plans.partition import Partition, Segment
from ...ir.plans.plan import CheckSite, host_steps
from ..device.program import DeviceProgram
from ..profile.recording import Recorder
from ..program import Program, Source, check_sizes, fit_all, no_retry
from ..remote import Remote, on_host
from ..state import Array, Cell, peek
from ..watch import Turns, Watch
from .drive import driver
from .frames import Frame, Frames, Unit, size_array
from .helpers import Helpers
from .resource import Keeping, asker
from .run import Run

_SIZE = "size "


class FlowProgram(Program):
    """A partition, its compiled segments, and where the step's parameters come from.

    ``programs`` has those of compiled segments; ``resources`` are the queues by name.
    """

    def __init__(
        self,
        partition: Partition,
        programs: Mapping[Segment, Program],
        *,
        sources: Sequence[Source],
        written: Mapping[str, Cell],
        helpers: Helpers,
        requires: Sequence[Requirement] = (),
        resources: Mapping[str, Any] = MappingProxyType({}),
        asynchronous: Collection[str] | None = None,
    ) -> None:
        self.partition, self._programs = partition, dict(programs)
        self._helpers = helpers
        self.name = partition.name
        self._timing = None
        self._found: Sequence[Recorder] = ()
        self.params = tuple(slot for slot in partition.params
                            if not slot.name.startswith(_SIZE))
        self._told = [slot.name.removeprefix(_SIZE)
                      for slot in partition.params[len(self.params):]]
        given = frozenset[str]().union(*(symbols_of(dim) for slot in self.params
                                         for dim in slot.type.shape))
        # What depends on sizes that only a queue tells, the segments that have them check.
        self._requires = tuple(need for need in requires if
                               symbols_of(need.left) | symbols_of(need.right) <= given)
        late = [need for need in requires if need not in self._requires]
        self._frames = frames_of(partition, self._programs, resources, late)
        self._forms = [(slot.type.dtype.numpy, slot.type.shape) for slot in self.params]
        dims = [dim for _, shape in self._forms for dim in shape if not isinstance(dim, int)]
        self._plain, self._told_plainly = not dims, None not in map(plain_symbol, dims)
        self._kinds = ["array"] * len(self.params)
        self._call: Callable[..., Any] = self._flow
        self.each = sum(program.plan.launches for program in self._programs.values())
        self._bind(sources, written, partition.results, asynchronous)
        # What may wait does so before variables are read, and before anyone waits for this step.
        self._late = [at for at, source in enumerate(sources) if isinstance(source, Cell)]
        parted = self._frames.asking_first(self._late)
        # What only reads takes no turns: where it asks with what it has read, too, it does not wait
        # for answers before it asks.
        if self._written or not any(parted.units[at].asks for at in parted.held):
            self._frames = parted
        at_last = set(self._frames.held or range(len(self._frames.units)))
        self._keeping = Keeping.of([
            segment.graph.nodes[-1] for at, segment in enumerate(partition.segments)
            if at in at_last and not segment.compiled and talks(segment.graph.nodes[-1])
        ], resources) if self._updates else None
        # What other segments than those of devices read of the arguments, they read on the host.
        self._near = frozenset[int]().union(*(
            unit.takes for unit in self._frames.units if unit.there is None))
        self._begun: tuple[Run, Frame] | None = None

    def within(self, watch: Watch) -> Program:
        watched = copy(self)
        watched._watch, watched._call = watch, watch.calls(watched._flow)
        watched._writer = Turns(self._writer, watch)
        return watched

    def _refuse(self, refusing: bool) -> None:
        """The programs of segments are told themselves."""

    def prepare(self) -> None:
        for program in self._programs.values():
            program.prepare()

    def _tells(self, found: Sequence[Recorder], watch: Watch) -> Callable[..., None]:
        """Segments tell of themselves."""
        self._found, self._call = found, watch.calls(self._flow)
        return super()._tells(found, watch)

    def _run(self, leaves: Sequence[Any], otherwise: Callable[..., Any]) -> Any:
        """One step. What asks resources goes first where it can: no one else waits for this step
        then, and variables are read after; so is the room for what depends on them. If the step
        fails before its commit, what was taken is given back."""
        if not self._frames.asks:
            return super()._run(leaves, otherwise)
        args = self._arguments(leaves, peek(self._read))
        dims = self._dims(args)
        if dims is None:
            if otherwise is no_retry:
                return NotImplemented
            args, dims = self._fitted(args)
        step, run, frame = copy(self), self._new_run(), self._frame(args, dims)
        step._begun, step._settles = (run, frame), (run,)
        step._call = step._flow if self._watch is None else self._watch.calls(step._flow)
        try:
            if frame.pause:
                run.drive(frame)
            if self._keeping is not None and (count := self._keeping.count(dims)):
                self._keeping.wait(run, count)
            results = super(FlowProgram, step)._run(leaves, otherwise)
        except BaseException:
            try:
                run.undo()
            finally:  # an interrupt may have ended that
                run.undo()
            raise
        finally:
            # What refers to itself would be kept, with all values of the step, until Python's
            # collector comes.
            step._begun, step._call = None, no_retry
            run.let_go()
        return results

    def _new_run(self) -> Run:
        watch = self._watch
        return Run(self._helpers) if watch is None else Run(self._helpers, watch.left,
                                                            watch.seconds, self._found)

    def _frame(self, args: Sequence[Array], dims: Mapping[str, int]) -> Frame:
        values = [on_host(arg) if at in self._near else arg for at, arg in enumerate(args)]
        return Frame(self._frames, [*values, *(size_array(dims[name]) for name in self._told)],
                     dims=dims)

    @property
    def threads(self) -> int:
        """The number of threads that all devices together may use, from the next step on."""
        return self._threads

    @threads.setter
    def threads(self, count: int) -> None:
        self._threads = count
        for program in self._programs.values():
            program.threads = max(1, count // (self._helpers.most + 1))

    def _flow(self, *args: Any) -> Any:
        if self._begun is not None:
            run, frame = self._begun
            for at in self._late:
                frame.values[at] = on_host(args[at]) if at in self._near else args[at]
            results = run.go_on(frame) if frame.pause else run.drive(frame)
        else:
            dims = self._dims(args)
            if dims is None:
                return NotImplemented
            frame = self._frame(args, dims)
            alone = self._watch is None and self._frames.alone
            results = frame.straight() if alone else self._new_run().drive(frame)
        return self._own(results, args)

    def _own(self, results: list[Any], args: Sequence[Any]) -> tuple[Any, ...]:
        """Results as memory of their own, and of nobody else, on the host; but new values of
        variables stay on their device, where nobody writes to them."""
        given = set(map(id, args))
        for at, array in enumerate(results):
            if isinstance(array, Remote):
                if at < self._returned:
                    results[at] = np.array(array)
                continue
            if id(array) in given or array.base is not None:
                results[at] = array = np.array(array)
            given.add(id(array))
        return tuple(results)

    def _dims(self, args: Sequence[Any]) -> dict[str, int] | None:
        """The sizes of the arguments; None if they do not fit."""
        if len(args) != len(self._forms):
            return None
        dims: dict[str, int] = {}
        for arg, (dtype, shape) in zip(args, self._forms, strict=True):
            if type(arg) not in (np.ndarray, Remote) or arg.dtype != dtype:
                return None
            if arg.shape != shape and self._told_plainly:
                if self._plain or arg.ndim != len(shape):
                    return None
                for dim, size in zip(shape, arg.shape, strict=True):
                    if size != (dim if isinstance(dim, int) else
                                dims.setdefault(str(plain_symbol(dim)), size)):
                        return None
        if not self._told_plainly:
            dims = self._solved(args)
        return dims if all(need.holds(dims) for need in self._requires) else None

    def _solved(self, args: Sequence[Array]) -> dict[str, int]:
        return bind_dims([slot.type for slot in self.params], args,
                         [slot.name for slot in self.params])

    def _fitted(self, args: Sequence[Any]) -> tuple[list[Array], dict[str, int]]:
        """Arguments as the program wants them, and their sizes. Raises what is wrong with them."""
        fitted, _ = fit_all(self.params, self._kinds, args)
        dims = self._solved(fitted)
        for need in self._requires:
            check_sizes(need, CheckSite(need.code, need.message, need.locs), dims)
        return fitted, dims

    def _retry(self, args: list[Any]) -> Any:
        return self._call(*self._fitted(args)[0])


def frames_of(
    partition: Partition, programs: Mapping[Segment, Program],
    resources: Mapping[str, Any], needs: Sequence[Requirement] = (),
) -> Frames:
    """What the executor runs; recursion is by nesting of bodies only."""
    slots: dict[str, int] = {slot.name: at for at, slot in enumerate(partition.params)}
    fetched = _fetched(partition, programs)
    givers: dict[str, int] = {}
    units: list[Unit] = []
    segments = partition.segments
    for number, segment in enumerate(segments):
        for key in (*segment.takes, *segment.gives):
            slots.setdefault(key, len(slots))
        givers.update(dict.fromkeys(segment.gives, number))
        unit = Unit(number, [slots[key] for key in segment.takes],
                    [slots[key] for key in segment.gives], segment)
        _set(unit, segment, programs, resources, fetched, needs)
        units.append(unit)
    _tell_sizes(partition, slots, givers, units)
    before = [{givers[key] for key in segment.takes if key in givers} | set(segment.after)
              for segment in segments]
    if any(max(earlier, default=-1) >= number for number, earlier in enumerate(before)):
        raise error("W601", f"segments of {partition.name} wait for each other")
    for number, unit in enumerate(units):
        unit.readers = tuple(at for at, earlier in enumerate(before) if number in earlier)
    for unit in reversed(units):
        unit.rank = min([units[at].rank for at in unit.readers], default=0) - 1
    results = [slots[slot.name] for slot in partition.results]
    uses = [0] * len(slots)
    kept = {*results, *(slots[slot.name] for slot in partition.params)}
    for unit in units:
        unit.freed = tuple(set(unit.takes) - kept)
        for slot in unit.freed:
            uses[slot] += 1
    sizes = {slot.name.removeprefix(_SIZE): slots[slot.name] for slot in partition.params
             if slot.name.startswith(_SIZE)}
    return Frames(units, list(map(len, before)), uses, results, needs=needs, sizes=sizes)


def _set(
    unit: Unit, segment: Segment, programs: Mapping[Segment, Program],
    resources: Mapping[str, Any], fetched: Collection[str], needs: Sequence[Requirement],
) -> None:
    """What a unit does, of four."""
    program = programs.get(segment)
    if program is not None:
        program.part = True
    if isinstance(program, DeviceProgram):
        unit.there = partial(_there, program, [
            at for at, key in enumerate(segment.gives) if key not in fetched])
        return
    if program is not None:
        unit.call, unit.run = program.direct, program.run
        unit.waits = bool(host_steps(program.plan))
        return
    unit.took = 0.0  # to start it
    node = segment.graph.nodes[-1]
    unit.asks = talks(node)
    sizes = [key.removeprefix(_SIZE) for key in segment.takes if key.startswith(_SIZE)]
    places = {value: at for at, value in enumerate(segment.graph.params)}
    slots = [unit.takes[places[value]] for value in node.inputs]
    unit.takes = (*slots, *unit.takes[len(unit.takes) - len(sizes):])
    if segment.resource:
        unit.begin = asker(node, resources)
        return
    if segment.measured:
        unit.call = lambda number: (measured(number, node.locs),)
        unit.told = tuple((at, axis, str(plain_symbol(dim)))
                          for at, value in enumerate(segment.graph.results)
                          for axis, dim in enumerate(value.shape) if not isinstance(dim, int))
        return
    bodies = {name: (frames_of(body, programs, resources, needs),
                     [slot.name.removeprefix(_SIZE) for slot in body.params
                      if slot.name.startswith(_SIZE)])
              for name, body in segment.bodies}
    unit.drive = driver(node, sizes, bodies)


def _there(
    program: DeviceProgram, left: Collection[int], args: Sequence[Array], run: Run
) -> Sequence[Any]:
    return program.on_device(args, run.mirrors[program.device.name], run.look, left)


def _fetched(partition: Partition, programs: Mapping[Segment, Program]) -> set[str]:
    """The keys of what the host has to have: results, and what is read elsewhere than on the one
    device that has made it."""
    makers = {key: segment.device for segment in partition.segments for key in segment.gives}
    wanted = {slot.name for slot in partition.results}
    for segment in partition.segments:
        there = isinstance(programs.get(segment), DeviceProgram)
        wanted |= {key for key in segment.takes
                   if not there or makers.get(key) != segment.device}
    return wanted


def _tell_sizes(
    partition: Partition, slots: Mapping[str, int], givers: dict[str, int],
    units: Sequence[Unit],
) -> None:
    """Sizes that only a resource or a number tells, by what it has given."""
    params = {slot.name for slot in partition.params}
    for key in [key for key in slots if key.startswith(_SIZE) and key not in params]:
        name = key.removeprefix(_SIZE)
        number, at, axis = next(
            (number, at, axis) for number, segment in enumerate(partition.segments)
            for at, value in enumerate(segment.graph.results)
            for axis, dim in enumerate(value.shape) if segment.measured and
            not isinstance(dim, int) and plain_symbol(dim) == name)
        units[number].tells += ((at, axis, slots[key]),)
        givers[key] = number
