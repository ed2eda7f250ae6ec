"""GPUs of this process: which there are, and what they cost.

A device named ``gpu:k`` is Triton's interpreter in a process of its own (``runtime/device``). It
computes what a GPU computes, at the pace of Python: it is there to try programs, not to be fast.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from types import MappingProxyType

from ....ir.diagnose import error
from ....ir.record import replace
from ....ir.types import Device
from ....passes.placement.costs import SPEEDS, Costs, Link, Speed
from ....runtime.device.interpreted import Interpreted
from ...face.loading import load
from ...face.source import user_loc

# Measured on one core of a Xeon. Programs of a kernel run one after the other, each operation of a
# tile by NumPy: so small tiles, as of rows that are summed, are the slowest.
_INTERPRETER = Speed(1.3e-3, MappingProxyType({
    "map": 1e7, "reduce": 5e4, "contract": 1e8, "gather": 3e5, "scatter": 2e3, "scan": 8e3,
    "sort": 4e4, "search": 5e5}), 1e9)
_COPY = Link(2e-5, 1e10)


def check_gpu(name: str) -> None:
    """Raises Error (W404) if a GPU is asked for where none can be."""
    if importlib.util.find_spec("triton") is None:
        raise error("W404", f"{name} needs Triton, which is not installed", locs=user_loc(),
                    hint="pip install 'weft[gpu]', or use cpu devices")


def gpu_device(name: str) -> Interpreted:
    """The device of that name; nothing is started before it is asked for something."""
    check_gpu(name)
    return Interpreted.of(name, load("codegen.gpu.worker").command)


def local_costs() -> Costs:
    """Estimates for the devices of this process."""
    base = Costs()
    return replace(base, speeds={**SPEEDS, "gpu": _INTERPRETER},
                   links={**base.links, "bus": _COPY})


def described(devices: Sequence[str]) -> list[str]:
    """A line for each device that is not what its name says."""
    return [f"  {name:<7} is Triton's interpreter: it shows what a GPU computes, not how fast"
            for name in devices if Device.parse(name).kind == "gpu"]
