"""The workspace of a kernel as it is given out: on the stack, or in the scratch if it is large.

Parts are taken one after the other and end as the code that needs them ends, so that code which is
written several times has the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ....ir.kernels.kernel import Kernel
from ....ir.kernels.tiling import round_up
from ....ir.kernels.workspace import workspace_at, workspace_bytes
from ....ir.plans.plan import ALIGNMENT
from ....ir.plans.stack import WORKSPACE_BYTES
from ..text import FunctionText


class Workspace:
    """That of the kernel which ``f`` is written for; ``scratch`` is where its scratch begins."""

    def __init__(self, f: FunctionText, kernel: Kernel, scratch: str) -> None:
        self._f, self._scratch = f, scratch
        self._size, self._at = workspace_bytes(kernel), workspace_at(kernel)
        self._stack = ""
        self._taken = 0

    @contextmanager
    def part(self) -> Iterator[None]:
        """What is taken inside is given back at the end."""
        taken = self._taken
        yield
        self._taken = taken

    def take(self, size: int) -> str:
        """The address of so many bytes, aligned to a cache line."""
        at, self._taken = self._taken, self._taken + round_up(size, ALIGNMENT)
        if self._taken > self._size:
            raise AssertionError(f"{self._f.name}: a workspace of {self._size} bytes, of which "
                                 f"{self._taken} are taken")
        if self._size > WORKSPACE_BYTES:
            return self._f(f"getelementptr i8, ptr {self._scratch}, i64 {self._at + at}")
        self._stack = self._stack or self._f.alloca("i8", self._size, ALIGNMENT)
        return self._f(f"getelementptr i8, ptr {self._stack}, i64 {at}")
