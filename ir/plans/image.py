"""A kernel as a device loads it: what a code generator makes, and what the runtime launches."""

from __future__ import annotations

from ..indices.index import Dim
from ..record import record


@record(frozen=True)
class KernelImage:
    """Source of one kernel for a device: a Triton module with a function ``name``.

    ``signature`` lists the arguments of a launch in order as (name, Triton type): a pointer for
    each parameter of the kernel, the sizes ``dims`` as 64-bit integers, and with ``checked`` a
    pointer to the status: an int32 that is 0 before the launch, and the number of a check that
    failed, if one did, after it. A launch runs ``grid`` programs, on one axis, of ``warps`` warps
    each; loops have ``pipeline`` rounds in flight.
    """

    name: str
    text: str
    signature: tuple[tuple[str, str], ...]
    dims: tuple[str, ...]
    grid: Dim
    checked: bool
    warps: int
    pipeline: int


@record(frozen=True)
class Binary:
    """A kernel compiled for one GPU: a cubin with a function ``name``.

    A launch passes the arguments of the image, then a pointer to ``scratch`` bytes per program and
    a null pointer, with ``threads`` threads per program and ``shared`` bytes of shared memory.
    """

    name: str
    code: bytes
    threads: int
    shared: int
    scratch: int
