"""Names of kernels, and one kernel for all calls of equal ones: it is tiled and compiled once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ...ir.graph import Node
from ...ir.kernels.kernel import Kernel
from ...ir.ops.op import Kind
from ...ir.plans.plan import KernelCall
from ...ir.text.printer import print_kernel


def symbol_name(name: str) -> str:
    """A graph's name as a symbol of an object file."""
    return re.sub(r"\W+|^(?=\d)", "_", name, flags=re.ASCII) or "graph"


def kernel_name(node: Node) -> str:
    """The name of the kernel of a fused node, by what it is built around."""
    kinds = {inner.op.kind for inner in node.attrs["body"].nodes}
    anchor = next((kind for kind in (Kind.REGION, Kind.SORT, Kind.COMPRESS, Kind.SCATTER,
                                     Kind.CONTRACT, Kind.SCAN, Kind.REDUCE)
                   if kind in kinds), Kind.MAP)
    return symbol_name(f"{anchor.value}_{node.name.rpartition('/')[2]}")


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
