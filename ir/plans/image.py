"""A kernel as a device loads it: what a code generator makes, and what the runtime launches."""

from __future__ import annotations

from ..indices.index import Dim
from ..record import record


@record(frozen=True)
class KernelImage:
    """Code of one kernel for one kind of device.

    ``code`` is what the device loads, here the text of a Triton module with a function ``name``.
    A launch runs ``grid`` programs. Each takes a pointer for each parameter of the kernel, the
    sizes ``dims`` as 64-bit integers, and with ``checked`` a pointer to the status: an int32 that
    is 0 before the launch, and the number of a check that failed, if one did, after it.
    ``arguments`` has the types of all of these, in Triton's words (``*fp32``, ``i64``).
    """

    name: str
    code: str
    arguments: tuple[str, ...]
    dims: tuple[str, ...]
    grid: Dim
    checked: bool
