"""A GPU where there is none: its kernels run in Triton's interpreter, in a process of its own.

Memory is a file without a name that both processes map, as large as the machine's memory, of which
pages exist where something was written. This process allocates, uploads, copies and downloads; the
other one runs a kernel when it is asked to. So nothing is lost with it: if it ends, or is ended
because a step has no time left, the next launch starts a new one on the same memory.
"""

from __future__ import annotations

import atexit
import ctypes
import mmap
import os
import threading
from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakSet, WeakValueDictionary

from ...ir.diagnose import error
from ...ir.plans.image import KernelImage
from ..state import Array
from .device import Look, never
from .memory import Memory, Ranges
from .mirrors import Mirrors
from .process import Command, Process

_LARGE = 1 << 20  # bytes of a range whose pages are given back when it is free
_TURN = 0.05      # seconds between two looks at why one waits for its turn


class Interpreted:
    """A device of Triton's interpreter; it lives as long as there are programs for it."""

    _named: ClassVar[WeakValueDictionary[str, Interpreted]] = WeakValueDictionary()
    _living: ClassVar[WeakSet[Interpreted]] = WeakSet()  # of which a forked child has none

    def __init__(self, name: str, command: Command) -> None:
        self.name, self._command = name, command
        self.uploads = self.downloads = self.launches = self.epoch = 0
        self._reset()
        Interpreted._living.add(self)

    @classmethod
    def of(cls, name: str, command: Command) -> Interpreted:
        """The one device of that name."""
        made = cls(name, command)  # which is nothing yet: it begins at its first allocation
        return cls._named.setdefault(name, made)

    def _reset(self) -> None:
        self.kept = Mirrors()
        self._lock = threading.RLock()
        self._space: _Space | None = None
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        """The process that interprets now, if there is one."""
        return self._process.pid if self._process is not None else None

    def allocate(self, size: int) -> Memory:
        """So many bytes. Raises MemoryError if there are none."""
        return self.space.ranges.allocate(size)

    @property
    def space(self) -> _Space:
        """The memory."""
        with self._lock:
            if self._space is None:
                self._space = _Space()
            return self._space

    def stop(self) -> None:
        """End the process, if there is one and nobody waits for it; a launch starts another."""
        self._process = None

    def load(self, images: Sequence[KernelImage]) -> Sequence[KernelImage]:
        """Nothing to do: who interprets knows the texts that it was given."""
        return images

    def stream(self, look: Look = never) -> InterpretedStream:
        """A new order of work, of which each part is done when its call returns."""
        return InterpretedStream(self, look)

    def run(self, image: KernelImage, grid: int, arguments: Sequence[int], look: Look) -> None:
        """Run a kernel, when no other one runs. Raises DeviceLostError (W421), and what ``look``
        raises."""
        asked = {"name": image.name, "code": image.text, "grid": grid,
                 "types": [type_ for _, type_ in image.signature], "arguments": arguments}
        while not self._lock.acquire(timeout=_TURN):
            look()
        try:
            process = self._process
            if process is None or not process.ready:
                process = self._process = Process(self.name, self._command, self.space.file)
            self.launches += 1
            answer = process.ask(asked, look)
        finally:
            self._lock.release()
        if "error" in answer:
            raise error("W421", f"{self.name} cannot run a kernel: {answer['error']}",
                        hint="leave what it computes out of the weft.device")


class _Space:
    """Memory that is shared with another process."""

    def __init__(self) -> None:
        capacity = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.file = os.memfd_create("weft", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.file, capacity)
            self._map = mmap.mmap(self.file, capacity)
        except OSError as problem:
            os.close(self.file)
            raise MemoryError(f"{capacity} bytes for a device: {problem}") from None
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.ranges = Ranges(capacity, self._freed)

    def _freed(self, start: int, size: int) -> None:
        if size >= _LARGE:
            first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
            last = (start + size) // mmap.PAGESIZE * mmap.PAGESIZE
            self._map.madvise(mmap.MADV_REMOVE, first, last - first)

    def __del__(self) -> None:
        if hasattr(self, "ranges"):
            os.close(self.file)


class InterpretedStream:
    """Work that is done at once."""

    def __init__(self, device: Interpreted, look: Look) -> None:
        self._device, self._look = device, look
        self._space = device.space

    def upload(self, array: Array, address: int) -> None:
        """Write a dense array to the device."""
        self._device.uploads += 1
        ctypes.memmove(self._space.base + address, array.ctypes.data, array.nbytes)

    def download(self, address: int, array: Array) -> None:
        """Fill a dense array from the device."""
        self._device.downloads += 1
        ctypes.memmove(array.ctypes.data, self._space.base + address, array.nbytes)

    def copy(self, source: int, target: int, size: int) -> None:
        """Copy bytes on the device."""
        ctypes.memmove(self._space.base + target, self._space.base + source, size)

    def launch(self, kernel: KernelImage, grid: int, arguments: Sequence[int]) -> None:
        """Run a kernel."""
        self._device.run(kernel, grid, arguments, self._look)

    def synchronise(self) -> None:
        """Nothing is left to do."""
        self._look()


def _forked() -> None:
    """A child has no part in the memory of its parent's devices: it starts its own."""
    for device in list(Interpreted._living):
        device.epoch += 1
        device._reset()


def _ended() -> None:
    """End the processes in order; those of a process that is killed end by themselves."""
    for device in list(Interpreted._living):
        device.stop()


os.register_at_fork(after_in_child=_forked)
atexit.register(_ended)
