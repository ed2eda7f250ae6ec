"""Kernels of a GPU, run as the tests ask: on an NVIDIA GPU where there is one, else in Triton's
interpreter, which needs a process with TRITON_INTERPRET=1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.codegen.gpu.build import interpreting, run_kernel_triton
from weft.codegen.gpu.source import emit_triton
from weft.frontend.engine.building.gpu import gpu_device
from weft.ir.indices.walk import evaluate
from weft.ir.interp.kernel import ChecksFailedError
from weft.ir.kernels.kernel import Kernel


def run_kernel(
    kernel: Kernel, buffers: Mapping[str, NDArray[Any]], dims: Mapping[str, int]
) -> None:
    """As ``weft.ir.interp.kernel.run_kernel``."""
    (run_kernel_triton if interpreting() else _on_the_gpu)(kernel, buffers, dims)


def _on_the_gpu(
    kernel: Kernel, buffers: Mapping[str, NDArray[Any]], dims: Mapping[str, int]
) -> None:
    device, image = gpu_device("gpu:0"), emit_triton(kernel)
    grid = evaluate(image.grid, dims)
    if not grid:
        return
    (loaded,) = device.load([image])
    stream, status = device.stream(), np.zeros(1, np.int32)
    arrays = [*(buffers[param.name] for param in kernel.params), status]
    memory = [device.allocate(array.nbytes) for array in arrays]
    for array, each in zip(arrays, memory, strict=True):
        if array.nbytes:
            stream.upload(array, each.address)
    addresses = [each.address for each in memory]
    stream.launch(loaded, grid, [*addresses[:-1], *(dims[name] for name in image.dims),
                                 *addresses[-1:] * image.checked])
    for param, array, address in zip(kernel.params, arrays, addresses, strict=False):
        if param.mutable:
            stream.download(address, array)
    stream.download(addresses[-1], status)
    if status[0]:
        raise ChecksFailedError(kernel.name, frozenset((int(status[0]),)), kernel.locs)
