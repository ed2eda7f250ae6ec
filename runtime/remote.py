"""A value that lies on a device, and on the host when somebody asks for it there.

    a step on gpu:0 commits w              cell.held   Remote(f32[784,10] on gpu:0)
    the next step on gpu:0 reads it        its memory: nothing is sent
    w.numpy(), a checkpoint, a step on
    cpu:0, a fork                          its array: downloaded once, and kept

Nobody writes to its elements, as to no value of a variable. What only a device has is lost with the
device's memory.
"""

from __future__ import annotations

import os
import threading
from typing import Any, ClassVar, Protocol
from weakref import WeakSet

import numpy as np

from ..ir.diagnose import error
from ..ir.forks import freed
from .device.memory import Memory

Array = np.ndarray[Any, Any]


class Place(Protocol):
    """A device, as a value sees it (``device/device``)."""

    name: str
    epoch: int

    def stream(self) -> Any:
        """An order of work, which downloads."""


class Remote:
    """An array in a device's memory; NumPy takes it for an array of the host."""

    __slots__ = ("__weakref__", "_array", "_epoch", "_lock", "device", "dtype", "memory", "shape")
    living: ClassVar[WeakSet[Remote]] = WeakSet()

    def __init__(self, device: Place, memory: Memory, shape: tuple[int, ...],
                 dtype: np.dtype[Any]) -> None:
        self.device, self.memory, self.shape, self.dtype = device, memory, shape, dtype
        self._epoch, self._lock = device.epoch, freed(threading.RLock())
        self._array: Array | None = None
        Remote.living.add(self)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return self.memory.size

    @property
    def there(self) -> bool:
        """Whether the device still has it."""
        return self._epoch == self.device.epoch

    @property
    def array(self) -> Array:
        """The elements on the host, read-only. Raises DeviceLostError (W421) if they are lost."""
        with self._lock:
            if self._array is None:
                if not self.there:
                    raise error("W421", f"a value was lost with the memory of {self.device.name}",
                                hint="restore a checkpoint, or assign the variable a value")
                array = np.empty(self.shape, self.dtype)
                self.device.stream().download(self.memory.address, array)
                array.setflags(write=False)
                self._array = array
            return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype, copy=copy)

    def setflags(self, write: bool) -> None:
        """As an array's: nobody writes to it anyway."""


def shaped(value: Any, dtype: Any = None) -> Array | Remote:
    """A value as something with a dtype and a shape; nothing is downloaded for that."""
    return value if isinstance(value, Remote) else np.asarray(value, dtype)


def on_host(value: Array | Remote) -> Array:
    """A value as an array of the host."""
    return value.array if isinstance(value, Remote) else value


def _forking() -> None:
    """A child has no part in the memory of its parent's devices."""
    for value in list(Remote.living):
        if value.there:
            value.array  # noqa: B018 (it keeps it)


os.register_at_fork(before=_forking)
