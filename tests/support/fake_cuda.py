"""A driver of CUDA that does nothing before it has to, as a real one may: memory is an array,
kernels run in the NumPy interpreter of kernels, and any call can be made to fail.

It has the functions of ``cuda.bindings.driver`` that ``runtime/device/cuda.py`` calls. Work of a
stream is done when somebody waits, one piece for each look. Memory that is given is poisoned, when
it is freed as well; a kernel may touch only what is allocated, whole.
"""

# ruff: noqa: N802 (these are CUDA's names)
from __future__ import annotations

import ctypes
import enum
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from weft.codegen.gpu.source import emit_triton
from weft.ir.indices.walk import evaluate
from weft.ir.interp.kernel import ChecksFailedError, run_kernel
from weft.ir.kernels.kernel import Kernel
from weft.ir.plans.image import Binary, KernelImage
from weft.runtime.device.memory import Memory, Ranges

BASE = 0x7F00_0000_0000  # where the memory of the GPU begins
SHARED = 48 << 10
SCRATCH = 64
CUresult = enum.IntEnum("CUresult", {
    "CUDA_SUCCESS": 0, "CUDA_ERROR_INVALID_VALUE": 1, "CUDA_ERROR_OUT_OF_MEMORY": 2,
    "CUDA_ERROR_NO_DEVICE": 100, "CUDA_ERROR_NOT_READY": 600, "CUDA_ERROR_ILLEGAL_ADDRESS": 700,
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": 709})
OK = CUresult(0)
Answer = tuple[Any, ...]


def compiled(image: KernelImage, target: str) -> Binary:
    """What Triton would make: here the name is the code. Much is asked for, to see that it is
    given."""
    assert target == "sm_90" and image.name in image.text
    return Binary(image.name, image.name.encode(), 32 * image.warps, SHARED + 1, SCRATCH)


class Driver:
    """One GPU that knows some kernels; ``fail`` says which call of a function fails, and how."""

    CUdevice_attribute = SimpleNamespace(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR="major",
                                         CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR="minor")
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    CUmemPool_attribute = SimpleNamespace(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD="threshold")
    CUmemAllocationType = SimpleNamespace(CU_MEM_ALLOCATION_TYPE_PINNED=1)
    CUmemLocationType = SimpleNamespace(CU_MEM_LOCATION_TYPE_DEVICE=1)
    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="most")
    cuuint64_t = int

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self._kernels = {emit_triton(kernel).name: kernel for kernel in kernels}
        self.fail: dict[str, tuple[int, str]] = {}
        self.calls: list[str] = []
        self.reset()

    def reset(self) -> None:
        """All that there is on the GPU goes."""
        self.space = np.full(1 << 20, 0xA5, np.uint8)
        self._ranges, self._held = Ranges(self.space.size), dict[int, Memory]()
        self.work = deque[Callable[[], None]]()
        self.shared: dict[str, int] = {}
        self.modules: list[bytes] = []
        self.broken = OK

    @property
    def held(self) -> int:
        """Bytes that are allocated."""
        return sum(memory.size for memory in self._held.values())

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return partial(self._called, name, found) if name.startswith("cu") and callable(
            found) and name != "cuuint64_t" else found

    def _called(self, name: str, function: Callable[..., Answer], *args: Any) -> Answer:
        self.calls.append(name)
        left, code = self.fail.get(name, (0, ""))
        if left:
            self.fail[name] = left - 1, code
            if left == 1:
                if code == "CUDA_ERROR_ILLEGAL_ADDRESS":
                    self.broken = CUresult[code]
                return CUresult[code], None
        if self.broken and name not in ("cuDevicePrimaryCtxReset", "cuCtxSetCurrent"):
            return self.broken, None
        return function(*args)

    # -- the device

    def cuInit(self, flags: int) -> Answer:
        return (OK,)

    def cuDeviceGetCount(self) -> Answer:
        return OK, 1

    def cuDeviceGet(self, number: int) -> Answer:
        return OK, number

    def cuDeviceGetName(self, size: int, device: int) -> Answer:
        return OK, b"Paper GPU\0\0"

    def cuDeviceGetAttribute(self, which: str, device: int) -> Answer:
        return OK, {"major": 9, "minor": 0}[which]

    def cuDevicePrimaryCtxRetain(self, device: int) -> Answer:
        return OK, "context"

    def cuDevicePrimaryCtxReset(self, device: int) -> Answer:
        self.reset()
        return (OK,)

    def cuCtxSetCurrent(self, context: str) -> Answer:
        assert context == "context"
        return (OK,)

    def cuStreamCreate(self, flags: int) -> Answer:
        return OK, "stream"

    # -- memory

    def CUmemPoolProps(self) -> Any:
        return SimpleNamespace(location=SimpleNamespace())

    def cuMemPoolCreate(self, asked: Any) -> Answer:
        assert (asked.allocType, asked.location.type, asked.location.id) == (1, 1, 0)
        return OK, "pool"

    def cuMemPoolSetAttribute(self, pool: str, which: str, value: int) -> Answer:
        return (OK,)

    def cuMemAllocFromPoolAsync(self, size: int, pool: str, stream: str) -> Answer:
        try:
            memory = self._ranges.allocate(size)
        except MemoryError:
            return CUresult["CUDA_ERROR_OUT_OF_MEMORY"], None
        memory.size = size
        self._held[BASE + memory.address] = memory
        return OK, BASE + memory.address

    def cuMemFreeAsync(self, address: int, stream: str) -> Answer:
        memory = self._held.pop(address)

        def poison() -> None:
            self.space[memory.address:memory.address + memory.size] = 0xA5

        self.work.append(poison)
        return (OK,)

    def _bytes(self, address: int, size: int) -> Any:
        start = max((each for each in self._held if each <= address), default=0)
        assert start and address + size <= start + self._held[start].size, "out of bounds"
        return self.space[address - BASE:address - BASE + size]

    def cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: str) -> Answer:
        data = np.frombuffer(ctypes.string_at(source, size), np.uint8)
        there = self._bytes(target, size)
        self.work.append(lambda: np.copyto(there, data))
        return (OK,)

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: str) -> Answer:
        while self.work:
            self.work.popleft()()
        ctypes.memmove(target, self._bytes(source, size).ctypes.data, size)
        return (OK,)

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: str) -> Answer:
        there, here = self._bytes(target, size), self._bytes(source, size)
        self.work.append(lambda: np.copyto(there, here))
        return (OK,)

    # -- kernels

    def cuModuleLoadData(self, code: bytes) -> Answer:
        self.modules.append(code)
        return OK, code

    def cuModuleUnload(self, module: bytes) -> Answer:
        self.modules.remove(module)
        return (OK,)

    def cuModuleGetFunction(self, module: bytes, name: bytes) -> Answer:
        assert module == name
        return OK, name.decode()

    def cuFuncSetAttribute(self, function: str, which: str, value: int) -> Answer:
        self.shared[function] = value
        return (OK,)

    def cuLaunchKernel(
        self, function: str, grid: int, y: int, z: int, threads: int, v: int, w: int, shared: int,
        stream: str, places: int, extra: int,
    ) -> Answer:
        kernel = self._kernels[function]
        assert (y, z, v, w, extra) == (1, 1, 1, 1, 0) and shared <= self.shared[function]
        image = emit_triton(kernel)
        assert threads == 32 * image.warps
        count = len(image.signature)
        where = (ctypes.c_int64 * (count + 2)).from_address(places)
        words = [ctypes.c_int64.from_address(place).value for place in where]
        dims = dict(zip(kernel.dims, words[len(kernel.params):], strict=False))
        assert grid == evaluate(image.grid, dims)
        assert len(self._bytes(words[count], grid * SCRATCH)) and words[count + 1] == 0
        buffers = {}
        for param, address in zip(kernel.params, words, strict=False):
            shape = [evaluate(dim, dims) for dim in param.type.shape]
            dtype = np.dtype(param.type.dtype.numpy)
            there = self._bytes(address, int(np.prod(shape, dtype=int)) * dtype.itemsize)
            buffers[param.name] = there.view(dtype).reshape(shape)
        status = self._bytes(words[count - 1], 4).view(np.int32) if image.checked else None
        self.work.append(lambda: _run(kernel, buffers, dims, status))
        return (OK,)

    def cuStreamQuery(self, stream: str) -> Answer:
        if not self.work:
            return (OK,)
        self.work.popleft()()
        return (CUresult["CUDA_ERROR_NOT_READY"],)


def _run(kernel: Kernel, buffers: dict[str, Any], dims: dict[str, int], status: Any) -> None:
    try:
        run_kernel(kernel, buffers, dims)
    except ChecksFailedError as failed:
        status[0] = min(failed.sites)
