"""Names of kernels, and one kernel for all calls of equal ones: it is tiled and compiled once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ....ir.graph import Node
from ....ir.kernels.kernel import Kernel
from ....ir.ops.op import Kind
from ....ir.plans.plan import KernelCall
from ....ir.record import replace
from ....ir.text.printer import print_kernel

# Functions of the C library that LLVM calls by name, for what no instruction does.
_CALLED = frozenset((
    "bcmp", "ceil", "ceilf", "floor", "floorf", "fma", "fmaf", "fmod", "fmodf", "memcmp", "memcpy",
    "memmove", "memset", "rint", "rintf", "sqrt", "sqrtf", "trunc", "truncf"))
# How the names of kernels and of what they share begin.
_KINDS = frozenset(("weft", *(kind.value for kind in Kind)))


def program_name(name: str) -> str:
    """A graph's name as that of its program, which is a symbol beside those of kernels, of what
    they share and of the C library: none of these may find it in their place."""
    found = _symbol(name)
    taken = found in _CALLED or found.partition("_")[0] in _KINDS
    return f"program_{found}" if taken else found


def _symbol(name: str) -> str:
    """A name as a symbol of an object file."""
    return re.sub(r"\W+|^(?=\d)", "_", name, flags=re.ASCII) or "graph"


def kernel_name(node: Node) -> str:
    """The name of the kernel of a fused node, by what it is built around."""
    kinds = {inner.op.kind for inner in node.attrs["body"].nodes}
    anchor = next((kind for kind in (Kind.REGION, Kind.SORT, Kind.COMPRESS, Kind.SCATTER,
                                     Kind.CONTRACT, Kind.SCAN, Kind.REDUCE)
                   if kind in kinds), Kind.MAP)
    return _symbol(f"{anchor.value}_{node.name.rpartition('/')[2]}")


def share(calls: Sequence[KernelCall]) -> list[KernelCall]:
    """Calls of kernels with equal text share the first of these, whose name no other has."""
    known: dict[str, Kernel] = {}
    names: set[str] = set()
    numbers: dict[str, int] = {}
    made: dict[int, Kernel] = {}
    for old in {id(call.kernel): call.kernel for call in calls}.values():
        key = print_kernel(replace(old, name="_", locs=()))
        if key not in known:
            name = stem = old.name
            while name in names:
                numbers[stem] = numbers.get(stem, 0) + 1
                name = f"{stem}_{numbers[stem]}"
            names.add(name)
            known[key] = replace(old, name=name)
        made[id(old)] = known[key]
    return [replace(call, kernel=made[id(call.kernel)]) for call in calls]
