"""How fast devices are: the table behind every choice, for one worker of a device.

    >>> cpu = SPEEDS["cpu"]
    >>> f"{1e6 * cpu.seconds(1 << 18):.1f} us"  # of so many additions
    '8.7 us'
    >>> cpu.additions(cpu.wake)                   # done before another worker helps
    262144
    >>> f"{1e6 * cpu.shared(1e-3, workers=4):.0f} us" # with those
    '257 us'
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..record import record

WAKE = (1 << 18) / 3e10  # seconds: a power of two of additions, which plans have in their text
SEGMENT = 2.2e-6         # seconds to begin a part of a step on a device of this process


@record(frozen=True)
class Speed:
    """How fast devices of a kind are.

    ``launch``: seconds of one launch. ``operations``: in a second, of float32 in vectors, by the
    kind of the op; a kind that is missing is free. ``memory``: bytes in a second. The others are of
    CPUs alone. ``wake``: seconds from a launch until a worker that was asleep helps. ``alone``:
    operations in a second on single numbers. ``clock``: cycles in a second.
    """

    launch: float
    operations: Mapping[str, float]
    memory: float
    wake: float = WAKE
    alone: float = 8.55e8
    clock: float = 2.3e9

    def seconds(self, additions: float, moved: float = 0.0) -> float:
        """What takes longer: so many additions in vectors, or reading and writing ``moved``
        bytes."""
        return max(additions / self.operations["map"], moved / self.memory)

    def shared(self, seconds: float, workers: int) -> float:
        """How long work of so many seconds takes. Others help as soon as they are awake, if there
        is anything left to do."""
        return seconds if seconds <= self.wake else self.wake + (seconds - self.wake) / workers

    def additions(self, seconds: float) -> int:
        """The additions in vectors that are done in so many seconds."""
        return round(seconds * self.operations["map"])

    def singles(self, seconds: float) -> int:
        """The operations on single numbers that are done in so many seconds."""
        return round(seconds * self.alone)

    def cycles(self, seconds: float) -> float:
        """The cycles of so many seconds."""
        return seconds * self.clock


# Measured on one core of a Xeon with AVX-512, float32 (cpu); of data sheets of an H100 (gpu).
SPEEDS: Mapping[str, Speed] = MappingProxyType({
    "cpu": Speed(3e-7, MappingProxyType({
        "map": 3e10, "reduce": 3e10, "contract": 1e11, "gather": 1e9, "scatter": 7e8, "scan": 1e9,
        "sort": 3e9, "search": 7e8, "host": 1e9}), 6e10),
    "gpu": Speed(5e-6, MappingProxyType({
        "map": 2e13, "reduce": 1e13, "contract": 5e13, "gather": 1e11, "scatter": 5e10,
        "scan": 1e11, "sort": 1e10, "search": 1e10}), 2e12),
})
