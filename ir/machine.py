"""What schedules and emitters need to know of the machine they generate code for."""

from __future__ import annotations

from typing import Literal

from .cost.speed import SPEEDS, Speed
from .record import record

BASELINE = frozenset(("64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2"))
"""The features that every 64-bit CPU of the kind has."""


@record(frozen=True)
class Machine:
    """A CPU or GPU to compile for; hashed into the cache key.

    ``features`` are LLVM's (``+avx2,-avx512f``), and ``base`` its name of the CPU that they change
    and whose timings are assumed: ``name`` itself unless there is one. Widths, registers and caches
    (bytes of one core's first and second level, measured on the machine that compiles for itself)
    steer tile sizes only: the bits of a CPU result do not depend on them. ``mask_registers``: the
    instruction set masks lanes by a register of bits (AVX-512), not by whole lanes.
    """

    kind: Literal["cpu", "gpu"]
    name: str
    triple: str = ""
    features: str = ""
    vector_bits: int = 256
    registers: int = 16
    l1: int = 32 << 10
    l2: int = 1 << 20
    mask_registers: bool = False
    base: str = ""

    @property
    def instructions(self) -> frozenset[str]:
        """The features that the code may use, beside those of every CPU of the architecture."""
        asked = {feature[1:] for feature in self.features.split(",") if feature.startswith("+")}
        return frozenset(asked - BASELINE)

    @property
    def f16c(self) -> bool:
        """Whether the CPU converts float16, as those for AArch64 all do."""
        return self.triple.startswith("aarch64") or "f16c" in self.instructions

    @property
    def speed(self) -> Speed:
        """How fast machines of the kind are."""
        return SPEEDS[self.kind]


# What graphs are fused for and plans are made for, wherever that is done.
CPU = Machine("cpu", "reference")
# What schedules for a GPU are made for; the kernels compile for other ones as well.
GPU = Machine("gpu", "sm_90")
