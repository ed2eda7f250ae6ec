"""GPUs of this process: which there are, and what they cost.

A device named ``gpu:k`` is the NVIDIA GPU of that number. Where the driver knows none, it is
Triton's interpreter in a process of its own (``runtime/device``): that computes what a GPU
computes, at the pace of Python, so that programs can be tried. ``WEFT_GPU=interpreter`` asks for it
on a machine with a GPU as well.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Sequence
from types import MappingProxyType

from ....ir.cost.speed import SPEEDS, Speed
from ....ir.diagnose import error
from ....ir.record import replace
from ....ir.types import Device
from ....passes.placement.costs import Costs, Link
from ....runtime.device.cuda import Cuda, find_driver
from ....runtime.device.interpreted import Interpreted
from ...face.loading import load
from ...face.source import user_loc

# Measured on one core of a Xeon. Programs of a kernel run one after the other, each operation of a
# tile by NumPy: so small tiles, as of rows that are summed, are the slowest.
_INTERPRETER = Speed(1.3e-3, MappingProxyType({
    "map": 1e7, "reduce": 5e4, "contract": 1e8, "gather": 3e5, "scatter": 2e3, "scan": 8e3,
    "sort": 4e4, "search": 5e5}), 1e9)
_COPY = Link(2e-5, 1e10)


def _interpreted() -> bool:
    """Whether GPUs are interpreted: nothing else is wanted, or to be had."""
    return (os.environ.get("WEFT_GPU") == "interpreter" or os.environ.get("TRITON_INTERPRET") == "1"
            or not find_driver()[1])


def check_gpu(name: str) -> None:
    """Raises Error (W404) if a GPU is asked for where none can be, and W401 for one too many."""
    if importlib.util.find_spec("triton") is None:
        raise error("W404", f"{name} needs Triton, which is not installed", locs=user_loc(),
                    hint="pip install 'weft[gpu]', or use cpu devices")
    if not _interpreted():
        count = find_driver()[1]
        if (Device.parse(name).index or 0) >= count:
            raise error("W401", f"{name}: this machine has {count} GPU{'s' * (count > 1)}",
                        locs=user_loc(), hint="use 'gpu:0'")


def gpu_device(name: str) -> Cuda | Interpreted:
    """The device of that name; nothing is started before it is asked for something."""
    check_gpu(name)
    if _interpreted():
        return Interpreted.of(name, load("codegen.gpu.worker").command)
    return Cuda.of(name, Device.parse(name).index or 0, find_driver()[0],
                   load("codegen.gpu.build").binary_of)


def local_costs(devices: Iterable[str]) -> Costs:
    """Estimates for devices of this process. The driver is asked only where one is a GPU."""
    base = Costs()
    if all(Device.parse(name).kind != "gpu" for name in devices) or not _interpreted():
        return base
    return replace(base, speeds={**SPEEDS, "gpu": _INTERPRETER},
                   links={**base.links, "bus": _COPY})


def described(devices: Sequence[str]) -> list[str]:
    """A line for each device that is not what its name says."""
    gpus = [name for name in devices if Device.parse(name).kind == "gpu"]
    if gpus and _interpreted():
        return [f"  {name:<7} is Triton's interpreter: it shows what a GPU computes, not how fast"
                for name in gpus]
    return []
