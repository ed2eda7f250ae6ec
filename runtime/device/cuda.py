"""An NVIDIA GPU: memory of the driver's pool, kernels that are compiled here, one order of work.

Everything of a device goes into one CUDA stream, in the order in which it was told. So memory that
was freed may be given to the next who asks, whatever still runs: that one's work comes later. Only
``download`` and ``synchronise`` wait.

    compile(image, "sm_90") -> Binary       Triton, or the disk        (once for each kernel)
    upload    cuMemcpyHtoDAsync             download  wait, cuMemcpyDtoHAsync
    launch    cuModuleLoadData, cuLaunchKernel

An error that a kernel made (an illegal address) is the end of all that the process has on the GPU:
values that nobody has asked for are lost. The next step begins anew, on a device that is reset.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from ...ir.diagnose import error
from ...ir.forks import freed
from ...ir.plans.image import Binary, KernelImage
from ..lifetime import Lifetime
from ..state import Array
from .device import Look, never
from .memory import Memory
from .mirrors import Mirrors

_T = TypeVar("_T")

Compile = Callable[[KernelImage, str], Binary]
"""What makes the code of a kernel for a GPU named as in ``sm_90``."""

_SHARED = 48 << 10   # bytes of shared memory that a kernel has without asking
_HOT = 2e-4          # seconds in which a wait looks without a pause: steps are short
_PAUSE = 1e-4        # between two looks after that
_COMPILING = 8       # kernels that are compiled at once
_KEPT = 1 << 62      # bytes of free memory that the pool does not give back to the driver
_FATAL = frozenset(f"CUDA_ERROR_{each}" for each in (
    "ASSERT", "CONTEXT_IS_DESTROYED", "ECC_UNCORRECTABLE", "HARDWARE_STACK_ERROR",
    "ILLEGAL_ADDRESS", "ILLEGAL_INSTRUCTION", "INVALID_ADDRESS_SPACE", "INVALID_PC",
    "LAUNCH_FAILED", "LAUNCH_TIMEOUT", "MISALIGNED_ADDRESS", "UNKNOWN"))
"""Errors after which a context answers nothing else."""


@functools.cache
def find_driver() -> tuple[Any, int, str]:
    """The functions of the driver, the number of its GPUs, and why there are none."""
    try:
        from cuda.bindings import driver
    except ImportError:
        return None, 0, "the package cuda-bindings is not installed"
    try:
        code, *_ = driver.cuInit(0)
        if not code:
            code, count = driver.cuDeviceGetCount()
    except RuntimeError as problem:  # there is no libcuda
        return None, 0, str(problem)
    if code or not count:
        return None, 0, f"the driver says {code.name}" if code else "the driver knows no GPU"
    return driver, count, ""


class Cuda:
    """One GPU of this process."""

    _named: ClassVar[WeakValueDictionary[str, Cuda]] = WeakValueDictionary()

    def __init__(self, name: str, number: int, driver: Any, compile: Compile) -> None:
        self.name, self._number, self._driver, self._compile = name, number, driver, compile
        self.uploads = self.downloads = self.launches = self.epoch = 0
        self.kept = Mirrors()
        self._owner, self._lock = os.getpid(), freed(threading.RLock())
        self._context: Context | None = None
        self._kernels: WeakValueDictionary[KernelImage, Kernel] = WeakValueDictionary()

    @classmethod
    def of(cls, name: str, number: int, driver: Any, compile: Compile) -> Cuda:
        """The one device of that name; nothing begins before it is asked for something."""
        made = cls(name, number, driver, compile)
        return cls._named.setdefault(name, made)

    @property
    def context(self) -> Context:
        """Its context, which is the calling thread's from now on.

        Raises DeviceLostError (W421) in a process that was forked."""
        with self._lock:
            if self._owner != os.getpid():
                raise error("W421", f"{self.name} is not to be had in a process that was forked",
                            hint="use multiprocessing.get_context('spawn')")
            if self._context is None:
                self._context = Context(self.name, self._number, self._driver, self._lost)
            context = self._context
        context.enter()
        return context

    def _lost(self, context: Context) -> None:
        """Begin anew with the next step, unless another thread has found out before."""
        with self._lock:
            if self._context is context:
                context.reset()
                self._context, self.kept = None, Mirrors()
                self.epoch += 1

    def allocate(self, size: int) -> Memory:
        """So many bytes. Raises MemoryError if there are none."""
        return self.context.allocate(size)

    def load(self, images: Sequence[KernelImage]) -> list[Kernel]:
        """Kernels, compiled side by side. Raises DeviceLostError (W421) for what no GPU can run."""
        target, known = self.context.target, self._kernels
        found = {image: kernel for image in images if (kernel := known.get(image)) is not None}
        missing = list(dict.fromkeys(image for image in images if image not in found))
        with ThreadPoolExecutor(_COMPILING) as pool:
            for kernel in pool.map(lambda image: self._compiled(image, target), missing):
                found[kernel.image] = known.setdefault(kernel.image, kernel)
        return [found[image] for image in images]

    def _compiled(self, image: KernelImage, target: str) -> Kernel:
        try:
            return Kernel(image, self._compile(image, target))
        except Exception as problem:
            said = f"{type(problem).__name__}: {problem}".strip().splitlines()[0]
            raise error("W421", f"{self.name} cannot run the kernel {image.name}: {said}",
                        hint="leave what it computes out of the weft.device") from problem

    def stream(self, look: Look = never) -> CudaStream:
        """The order of work, as one step sees it."""
        return CudaStream(self, self.context, look)


class Kernel:
    """A kernel that was compiled; each context loads it when it is first launched there."""

    def __init__(self, image: KernelImage, binary: Binary) -> None:
        self.image, self.binary = image, binary


class Context:
    """A GPU as this process uses it: its stream, memory and kernels, until one of them fails."""

    def __init__(self, name: str, number: int, driver: Any,
                 lost: Callable[[Context], None]) -> None:
        self._name, self._driver, self._lost = name, driver, lost
        self._device = self.call("cuDeviceGet", number)
        self._context = self.call("cuDevicePrimaryCtxRetain", self._device)
        self.enter()
        which = driver.CUdevice_attribute
        major, minor = (self.call("cuDeviceGetAttribute", each, self._device) for each in (
            which.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            which.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))
        self.target = f"sm_{major}{minor}"
        model: bytes = self.call("cuDeviceGetName", 128, self._device)
        self.model = model.partition(b"\0")[0].decode()
        self._stream = self.call("cuStreamCreate", driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
        self._pool = self.call("cuMemPoolCreate", _pool_of(driver, number))
        self.call("cuMemPoolSetAttribute", self._pool,
                  driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                  driver.cuuint64_t(_KEPT))
        self._dynamic = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._freed, self._unloaded = deque[tuple[int, int]](), deque[Any]()
        self._loaded: WeakKeyDictionary[Kernel, tuple[Any, Lifetime]] = WeakKeyDictionary()

    def call(self, function: str, *args: Any) -> Any:
        """What a function of the driver gives. Raises MemoryError, DeviceLostError (W421)."""
        code, *results = getattr(self._driver, function)(*args)
        if code:
            raise self._failed(function, code.name)
        return results[0] if results else None

    def _failed(self, function: str, code: str) -> Exception:
        if code == "CUDA_ERROR_OUT_OF_MEMORY":
            return MemoryError(f"{self._name} has no memory left")
        if code in _FATAL:
            self._lost(self)
        return error("W421", f"{self._name} has failed: {function} says {code}",
                     hint="values that only it had are lost: restore a checkpoint" if code in _FATAL
                     else "run the step again: no variable has changed")

    def reset(self) -> None:
        """Give back all that the process has on the GPU, whatever state that is in."""
        self._driver.cuDevicePrimaryCtxReset(self._device)

    def enter(self) -> None:
        """Make it the context of the thread that calls."""
        self.call("cuCtxSetCurrent", self._context)

    def allocate(self, size: int) -> Memory:
        """So many bytes, at once; what others have freed may still be in use until then."""
        for freed_address, _ in _taken(self._freed):
            self.call("cuMemFreeAsync", freed_address, self._stream)
        address = int(self.call("cuMemAllocFromPoolAsync", max(size, 1), self._pool, self._stream))
        return Memory(address, size, self._freed.append)

    def queue(self, function: str, *args: Any) -> None:
        """Let the driver do something when all before it is done."""
        self.call(function, *args, self._stream)

    def launch(self, kernel: Kernel, grid: int, arguments: Sequence[int]) -> None:
        """Let programs run when all before them is done."""
        binary = kernel.binary
        scratch = self.allocate(grid * binary.scratch) if binary.scratch else None
        words = np.array([*arguments, scratch.address if scratch else 0, 0], np.int64)
        places = words.ctypes.data + 8 * np.arange(len(words), dtype=np.int64)
        self.call("cuLaunchKernel", self._function(kernel), grid, 1, 1, binary.threads, 1, 1,
                  binary.shared, self._stream, places.ctypes.data, 0)

    def _function(self, kernel: Kernel) -> Any:
        found = self._loaded.get(kernel)
        if found is None:
            for gone in _taken(self._unloaded):
                self.call("cuModuleUnload", gone)
            binary, unloaded = kernel.binary, self._unloaded
            module = self.call("cuModuleLoadData", binary.code)
            function = self.call("cuModuleGetFunction", module, binary.name.encode())
            if binary.shared > _SHARED:
                self.call("cuFuncSetAttribute", function, self._dynamic, binary.shared)
            found = self._loaded[kernel] = (
                function, Lifetime(lambda: unloaded.append(module)))
        return found[0]

    @property
    def is_idle(self) -> bool:
        """Whether all is done."""
        code, *_ = self._driver.cuStreamQuery(self._stream)
        if code and code.name != "CUDA_ERROR_NOT_READY":
            raise self._failed("cuStreamQuery", code.name)
        return not code


def _taken(queue: deque[_T]) -> Iterator[_T]:
    """What is in a queue, which other threads may empty as well."""
    with suppress(IndexError):
        while True:
            yield queue.popleft()


def _pool_of(driver: Any, number: int) -> Any:
    """What a pool of memory on a GPU is asked for with."""
    asked = driver.CUmemPoolProps()
    asked.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    asked.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    asked.location.id = number
    return asked


class CudaStream:
    """Work in order; ``look`` is called while the host waits."""

    def __init__(self, device: Cuda, context: Context, look: Look) -> None:
        self._device, self._context, self._look = device, context, look

    def upload(self, array: Array, address: int) -> None:
        """Write a dense array to the device; it may be changed when this returns."""
        self._device.uploads += 1
        self._context.queue("cuMemcpyHtoDAsync", address, array.ctypes.data, array.nbytes)

    def download(self, address: int, array: Array) -> None:
        """Fill a dense array from the device."""
        self._device.downloads += 1
        self.synchronise()
        if array.nbytes:
            self._context.queue("cuMemcpyDtoHAsync", array.ctypes.data, address, array.nbytes)
            self.synchronise()

    def copy(self, source: int, target: int, size: int) -> None:
        """Copy bytes on the device."""
        if size:
            self._context.queue("cuMemcpyDtoDAsync", target, source, size)

    def launch(self, kernel: Kernel, grid: int, arguments: Sequence[int]) -> None:
        """Run ``grid`` programs on addresses and sizes."""
        self._device.launches += 1
        self._context.launch(kernel, grid, arguments)

    def synchronise(self) -> None:
        """Wait until all is done. Raises DeviceLostError (W421) if the device has failed, and what
        ``look`` raises."""
        hot = time.perf_counter() + _HOT
        while not self._context.is_idle:
            self._look()
            if time.perf_counter() > hot:
                time.sleep(_PAUSE)
