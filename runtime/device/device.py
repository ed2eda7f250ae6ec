"""What a program asks of a device that is not the processor this code runs on.

    device.allocate(bytes)      memory of the device, free when nobody holds it any more
    device.load(images)         kernels, ready to be launched
    device.stream(look)         work in order: upload, copy, launch, download, synchronise

Work of one stream happens in order, work of several in any. What a stream is told to do may happen
later, but ``download`` and ``synchronise`` return when all that came before is done. So a driver
may put launches into a queue, and a device that does everything at once is a device, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ...ir.plans.image import KernelImage
from ..state import Array
from .memory import Memory
from .mirrors import Mirrors

Look = Callable[[], None]
"""Called while the host waits for a device; what it raises ends the waiting."""


def never() -> None:
    """A look that finds nothing: work that nobody ends."""


class Stream(Protocol):
    """Work on one device, in order. Addresses are bytes of the device's memory."""

    def upload(self, array: Array, address: int) -> None:
        """Write a dense array to the device."""

    def download(self, address: int, array: Array) -> None:
        """Fill a dense array from the device."""

    def copy(self, source: int, target: int, size: int) -> None:
        """Copy bytes on the device, between ranges that do not overlap."""

    def launch(self, kernel: Any, grid: int, arguments: Sequence[int]) -> None:
        """Run ``grid`` programs of what ``Device.load`` gave, on addresses and sizes."""

    def synchronise(self) -> None:
        """Wait until all is done. Raises DeviceLostError (W421) if the device has failed."""


class Device(Protocol):
    """Memory, kernels, and who runs them.

    ``kept`` has the arrays of variables that were sent here: so they are not sent again. ``epoch``
    counts how often all memory was lost; ``uploads``, ``downloads`` and ``launches`` count as well,
    for tests and reports.
    """

    name: str
    kept: Mirrors
    epoch: int
    uploads: int
    downloads: int
    launches: int

    def allocate(self, size: int) -> Memory:
        """So many bytes. Raises MemoryError if there are none."""

    def load(self, images: Sequence[KernelImage]) -> Sequence[Any]:
        """Kernels to launch. Raises DeviceLostError (W421) for what the device cannot run."""

    def stream(self, look: Look = never) -> Stream:
        """A new order of work."""
