"""The devices that a program or a session is asked to use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ....ir.diagnose import error
from ....ir.types import CPU0, Device
from ...face.source import user_loc
from .gpu import check_gpu


def device_names(names: Sequence[str]) -> tuple[str, ...]:
    """Full names of different devices; raises W401, and W404 for a GPU where none can be."""
    try:
        alone = isinstance(names, str) or not isinstance(names, Iterable)
        given: Sequence[Any] = [names] if alone else names
        found = list(map(Device.parse, given))
    except ValueError as problem:
        raise error("W401", str(problem), locs=user_loc(),
                    hint="name devices as in devices=(\"cpu:0\", \"cpu:1\")") from None
    part = next((each for each in found
                 if each.kind not in ("cpu", "gpu") or each.index is None), None)
    wrong = part or next((each for at, each in enumerate(found) if each in found[:at]), None)
    if wrong is not None or not found:
        what = "no devices are given" if wrong is None else f"'{wrong}' is " + (
            "given twice" if part is None else "no device that a session can use")
        raise error("W401", what, locs=user_loc(),
                    hint="name each device once: devices=(\"cpu:0\", \"cpu:1\", \"gpu:0\")")
    for each in found:
        if each.kind == "gpu":
            check_gpu(str(each))
    return tuple(map(str, found))


def devices_of(device: str) -> tuple[str, ...]:
    """The device of a program. Raises Error (W401, W404) for one that there cannot be."""
    known = "use 'cpu:0', or 'gpu:0' for Triton's interpreter"
    try:
        wanted = Device.parse(device)
    except ValueError as problem:
        raise error("W401", str(problem), locs=user_loc(), hint=known) from None
    if wanted.kind == "gpu" and wanted.index is not None:
        return device_names([device])
    if wanted.kind not in (None, "cpu") or wanted.index not in (None, 0):
        raise error("W401", f"no device {device!r}", locs=user_loc(), hint=known)
    return (str(CPU0),)
