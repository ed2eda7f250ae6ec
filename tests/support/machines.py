"""What this machine runs, or the older one that ``WEFT_CPU`` says to take it for."""

from __future__ import annotations

import platform

from weft.codegen.cpu.jit import cpu_target, lacking


def runs(target: str) -> bool:
    """Whether it runs the code for an x86 CPU."""
    return platform.machine() == "x86_64" and not lacking(cpu_target(target))
