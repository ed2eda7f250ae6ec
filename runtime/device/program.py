"""A plan as a program of a device: the same calls and the same rules of state as native code has.

Arguments and results are arrays of the host. What is no mirror yet (``mirrors``) is sent to the
device, the plan is walked there, and results are fetched into memory of their own. The values of
variables that live on the device stay there: as long as the host holds a value, its mirror exists.
What only other programs of the device read is not fetched: an array without elements of its own
stands for it, and says its shape.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.diagnose import Error
from ...ir.indices.dims import bind_dims, plain_dims
from ...ir.indices.walk import evaluate
from ...ir.plans.entry import SCALARS
from ...ir.plans.image import KernelImage
from ...ir.plans.plan import Plan, Slot
from ..program import Program, Source, ask_sizes, check_failed, fit
from ..remote import Remote, on_host, shaped
from ..state import Array, Cell, Value
from ..watch import Watch, out_of_time
from .device import Device, Look, Stream, never
from .memory import ALIGNMENT, Memory
from .mirrors import Mirrors
from .walk import CheckFailed, Loaded, Walk


class DeviceProgram(Program):
    """A plan for a device, and where its parameters come from (as ``Program``).

    ``images`` has the kernels of the plan by name; ``kinds`` says what callers pass for each
    parameter: array, float, int or bool.
    """

    def __init__(
        self,
        plan: Plan,
        device: Device,
        images: Mapping[str, KernelImage],
        kinds: Sequence[str],
        *,
        sources: Sequence[Source],
        written: Mapping[str, Cell],
        asynchronous: Collection[str] | None = None,
    ) -> None:
        self.plan, self.device = plan, device
        loaded = device.load(list(images.values()))
        self._kernels = {name: Loaded(image, kernel) for (name, image), kernel in zip(
            images.items(), loaded, strict=True)}
        self._kinds = [*kinds, *["array"] * (len(plan.params) - len(kinds))]
        self._call = self._called
        self.each, self.name = plan.launches, plan.name
        self.params = plan.params
        self._bind(sources, written, plan.results, asynchronous)
        self.live([slot.name for slot, source in zip(plan.params, sources, strict=True)
                   if isinstance(source, Cell)] + [slot.name for slot in plan.results if slot.var])

    def live(self, names: Collection[str]) -> None:
        """These parameters and results are values of variables that live on the device: arrays
        that nobody writes to, and that no caller has."""
        self._lasting = frozenset(names)

    @property
    def stateless(self) -> bool:
        """False: no caller may take a shorter way."""
        return False

    def _refuse(self, refusing: bool) -> None:
        """Each step comes by here anyway."""

    @property
    def threads(self) -> int:
        """One: the device has its own."""
        return 1

    @threads.setter
    def threads(self, count: int) -> None:
        """Nothing of this runs on workers."""

    def _watched(self, watch: Watch) -> Any:
        """The program, which is ended when there is no time left."""
        def look() -> None:
            if not watch.left and watch.seconds is not None:
                raise out_of_time(watch.seconds)

        return lambda *args: self.on_device(args, look=look)

    def _called(self, *args: Any) -> Any:
        """The results; NotImplemented, with nothing done, if the arguments are not just right."""
        if len(args) != len(self.params) or not all(
                map(_is_right, self.params, self._kinds, args)) or not self._fits(args):
            return NotImplemented
        return self.on_device(args)

    def _fits(self, args: Sequence[Any]) -> bool:
        """Whether the sizes of arguments make one solution, as the plan requires it."""
        types = [slot.type for slot in self.params]
        if all(isinstance(dim, int) for type_ in types for dim in type_.shape):
            return True
        try:
            dims = bind_dims(types, list(map(shaped, args)),
                             [slot.name for slot in self.params])
        except Error:
            return False
        return all(need.holds(dims) for need in self.plan.requires)

    def _retry(self, args: list[Any]) -> Any:
        return self.on_device(args)

    def on_device(
        self, args: Sequence[Any], mirrors: Mirrors | None = None, look: Look = never,
        left: Collection[int] = (),
    ) -> tuple[Value, ...]:
        """Run the plan; ``mirrors`` has what else lies on the device, and gets what is sent there.
        Results at the places ``left``, and new values of variables, stay on the device.

        Raises what is wrong with the arguments, the error of a check that failed, MemoryError,
        DeviceLostError (W421), and what ``look`` raises while it runs.
        """
        plan = self.plan
        held = [self._known(slot, arg, mirrors)
                for slot, arg in zip(plan.params, args, strict=True)]
        types = [slot.type for slot in plan.params]
        bound = plain_dims(types, list(map(np.shape, args)))
        arrays = [shaped(arg if memory is not None else fit(slot, kind, arg, bound),
                         slot.type.dtype.numpy)
                  for slot, kind, arg, memory in zip(
            plan.params, self._kinds, args, held, strict=True)]
        ask_sizes(plan, arrays)
        dims = bind_dims(types, arrays, [slot.name for slot in plan.params])
        stream = self.device.stream(look)
        sent = [memory or self._sent(slot, on_host(array), stream, mirrors)
                for slot, array, memory in zip(plan.params, arrays, held, strict=True)]
        made = [self.device.allocate(evaluate(slot.type.nbytes, dims)) for slot in plan.results]
        status = self.device.allocate(ALIGNMENT)
        arena = self.device.allocate(evaluate(plan.arena, dims))
        buffers = {slot.name: memory.address for slot, memory in zip(
            (*plan.params, *plan.results), (*sent, *made), strict=True)}
        try:
            Walk(plan, self._kernels, stream, dims, buffers, arena.address, status.address).run()
        except CheckFailed as failed:
            raise check_failed(plan.checks[failed.site - 1]) from None
        results: list[Value] = []
        for at, (slot, memory) in enumerate(zip(plan.results, made, strict=True)):
            shape = tuple([evaluate(dim, dims) for dim in slot.type.shape])
            dtype = np.dtype(slot.type.dtype.numpy)
            if at in left or slot.name in self._lasting:
                results.append(Remote(self.device, memory, shape, dtype))
                continue
            array = np.empty(shape, dtype)
            stream.download(memory.address, array)
            results.append(array)
            if mirrors is not None:
                mirrors.put(array, memory)
        return tuple(results)

    def _known(self, slot: Slot, arg: Any, mirrors: Mirrors | None) -> Memory | None:
        """Where an argument lies on the device, if it does."""
        if isinstance(arg, Remote):
            return arg.memory if arg.device is self.device and arg.there else None
        lasting = self.device.kept if slot.name in self._lasting else None
        for known in (lasting, mirrors):
            memory = known.find(arg) if known is not None else None
            if memory is not None:
                return memory
        return None

    def _sent(
        self, slot: Slot, array: Array, stream: Stream, mirrors: Mirrors | None
    ) -> Memory:
        """Send an argument to the device."""
        memory = self.device.allocate(array.nbytes)
        if array.nbytes:
            stream.upload(array, memory.address)
        self._keep(slot, array, memory, mirrors)
        return memory

    def _keep(self, slot: Slot, array: Array, memory: Memory, mirrors: Mirrors | None) -> None:
        if slot.name in self._lasting:
            self.device.kept.put(array, memory)
        elif mirrors is not None:
            mirrors.put(array, memory)




def _is_right(slot: Slot, kind: str, arg: Any) -> bool:
    """Whether an argument needs no conversion; sizes that have names are looked at later."""
    if kind in SCALARS:
        return type(arg) is SCALARS[kind][0]
    if kind == "scalar":
        return type(arg) is slot.type.dtype.numpy.type
    return (type(arg) in (np.ndarray, Remote) and arg.dtype == slot.type.dtype.numpy
            and arg.ndim == slot.type.rank
            and all(dim == size for dim, size in zip(slot.type.shape, arg.shape, strict=True)
                    if isinstance(dim, int)))
