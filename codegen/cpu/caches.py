"""The caches of a CPU: as the system tells them of the machine that compiles, and by name.

They steer tiles and blocks only, never a bit of a result.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

KB = 1 << 10

# First and second level, of one core, in KB: as the makers' manuals have them. Where a name stands
# for several kinds of core, those of the smaller caches.
_BY_NAME = MappingProxyType({name: (first * KB, second * KB) for names, first, second in (
    ("haswell core-avx2 core_4th_gen_avx core_4th_gen_avx_tsx broadwell core_5th_gen_avx "
     "core_5th_gen_avx_tsx skylake cannonlake", 32, 256),
    ("alderlake meteorlake raptorlake", 32, 1280), ("gracemont sierraforest grandridge", 32, 512),
    ("skylake-avx512 skylake_avx512 skx cascadelake cooperlake", 32, 1024),
    ("icelake-client icelake_client rocketlake", 48, 512),
    ("tigerlake icelake-server icelake_server", 48, 1280),
    ("sapphirerapids emeraldrapids graniterapids graniterapids-d graniterapids_d", 48, 2048),
    ("knl mic_avx512 knm", 32, 512), ("znver1 znver2 znver3", 32, 512), ("znver4", 32, 1024),
    ("znver5", 48, 1024), ("neoverse-n1 neoverse-v1 neoverse-n2 neoverse-v2", 64, 1024),
) for name in names.split()})


def caches_of(name: str, usual: tuple[int, int]) -> tuple[int, int]:
    """Bytes of the first and second level of a CPU by its name; ``usual`` where it is not known."""
    return _BY_NAME.get(name, usual)


def measured_caches(
    usual: tuple[int, int], system: Path = Path("/sys/devices/system/cpu"),
) -> tuple[int, int]:
    """Bytes of the first and second level of data caches of this machine, the smallest of its
    cores'; ``usual`` where the system does not tell."""
    found: dict[int, int] = {}
    for cache in system.glob("cpu[0-9]*/cache/index*"):
        try:
            level, kind, size = ((cache / part).read_text().strip()
                                 for part in ("level", "type", "size"))
            if kind != "Instruction":
                each = int(size.removesuffix("K")) * KB
                found[int(level)] = min(found.get(int(level), each), each)
        except (OSError, ValueError):
            continue
    first, second = found.get(1, 0), found.get(2, 0)
    # A virtual machine may tell anything.
    return (first, second) if 8 * KB <= first <= second <= 64 << 20 else usual
