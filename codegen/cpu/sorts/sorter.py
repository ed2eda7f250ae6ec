"""The algorithms of sorts, as functions: networks for short rows; then parts, or radix passes.

    columns     one row of registers
    quick       columns -> parts by pivots, down to columns
    radix       network -> radix passes

Which one a row takes is in the text of its kernel. Each function is the same in all programs for a
target: a process compiles it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType

from ....ir.kernels.rows import COLUMNS, Algorithm
from ....ir.machine import Machine
from ..text import FunctionText
from .columns import columns
from .inside import inside
from .merge import merge
from .network import network
from .parts import parts, parts_name
from .quick import BUDGET, quick
from .radix import radix
from .ranks import ranks
from .records import LANES

NETWORK = {32: 2048, 64: 1024}  # keys up to which a network is faster than passes, by their bits
PAIRS = 256                     # keys with places
RECORDS = ((32, 1), (64, 1), (64, 2))  # bits of a word, and words
_CONTROL = "ptr %control"


def sort(f: FunctionText, by: Algorithm, bits: int, x: list[str], y: list[str], n: str,
         control: str, *, places: bool) -> None:
    """Put n records of the memories x, signed keys and what goes with them, in order there; the
    memories y have room for as many.

    ``control`` is the control block of the run; ``places``: the lower half of a key is where it is.
    """
    words = len(x)
    if by.columns:
        call_sort(f, f"weft_columns_i{bits}x{words}_{by.columns}", x, x, n)
        return
    call_sort(f, f"weft_sort_{'places' if places else f'i{bits}x{words}'}_{by.kind}", x, y, n,
              f"ptr {control}")


def _sorter(bits: int, words: int, name: str) -> tuple[FunctionText, list[str], list[str]]:
    """``void(ptr x.., ptr y.., i64 n, ptr control)``, x and y."""
    x, y = ([f"{side}{word}" for word in range(words)] for side in "xy")
    f = FunctionText("void", name, [*(("ptr", name) for name in (*x, *y)), ("i64", "n"),
                                    ("ptr", "control")], attributes="noinline nounwind")
    return f, [f"%{name}" for name in x], [f"%{name}" for name in y]


def _quick(bits: int, words: int, name: str, target: Machine, pool: str) -> FunctionText:
    f, x, y = _sorter(bits, words, name)
    # Parts of many keys do not keep those with equal first bytes in turn.
    passes = radix(bits, words, 0, pool)
    short = _few(bits, words)
    limit = COLUMNS[words - 1][-1] * LANES // bits
    part = [inside(bits)] if words == 1 else []
    parts = quick(bits, words, limit, short.name, passes.name, part[0].name if part else "", pool)
    f.helpers += [short, passes, *part, parts]
    zeros = f.call("i64", "llvm.ctlz.i64", ("i64", "%n"), ("i1", "false"))
    budget = f(f"mul i64 {f(f'sub i64 64, {zeros}')}, {BUDGET}")
    with f.when(f("icmp sgt i64 %n, 1")):
        call_sort(f, parts.name, x, y, "%n", "i1 false", f"i64 {budget}", _CONTROL)
    f.ret()
    return f


def _radix(
    bits: int, words: int, first: int, name: str, target: Machine, pool: str
) -> FunctionText:
    f, x, y = _sorter(bits, words, name)
    limit = PAIRS if words > 1 else NETWORK[bits]
    short, passes = network(bits, limit, words), radix(bits, words, first, pool)
    f.helpers += [short, passes]

    def few() -> list[str]:
        with f.when(f("icmp sgt i64 %n, 1")):
            call_sort(f, short.name, x, x, "%n")
        return []

    def many() -> list[str]:
        call_sort(f, passes.name, x, y, "%n", _CONTROL)
        return []

    f.either(f(f"icmp sle i64 %n, {limit}"), [], few, many)
    f.ret()
    return f


def _few(bits: int, words: int) -> FunctionText:
    """``void(ptr from.., ptr to.., i64 n)``: as many records as are sorted in registers."""
    names = [f"{side}{word}" for side in ("from", "to") for word in range(words)]
    f = FunctionText("void", f"weft_few_i{bits}x{words}", [
        *(("ptr", name) for name in names), ("i64", "n")],
        linkage="internal", attributes="noinline nounwind")
    for rows in COLUMNS[words - 1]:
        here, other = f.fresh("few"), f.fresh("more")
        f.branch(f(f"icmp sle i64 %n, {rows * LANES // bits}"), here, other)
        f.place(here)
        found = f"weft_columns_i{bits}x{words}_{rows}"
        call_sort(f, found, [f"%{name}" for name in names], [], "%n")
        f.ret()
        f.place(other)
    f.do("unreachable")
    return f


def _ranks(bits: int, target: Machine, pool: str) -> FunctionText:
    by = "quick" if target.mask_registers else "radix"
    return ranks(bits, f"weft_sort_i{bits}x1_{by}", vectors=target.mask_registers)


def _parts(bits: int, places: bool, target: Machine, pool: str) -> FunctionText:
    return parts(bits, places=places, vectors=target.mask_registers)


def call_sort(f: FunctionText, name: str, x: list[str], y: list[str], n: str, *more: str) -> None:
    """Call one of the functions that sort."""
    memories = ", ".join(f"ptr {memory}" for memory in (*x, *y))
    if name in SORTS:
        types = [each.split()[0] for each in more]
        f.declare(f"declare void @{name}({', '.join([*['ptr'] * len([*x, *y]), 'i64', *types])})")
    f.do(f"call void @{name}({', '.join((memories, f'i64 {n}', *more))})")


def sorts_of(
    functions: Iterable[FunctionText], target: Machine, pool: str
) -> list[FunctionText]:
    """The functions of this module that others call, and those which these call; ``pool`` is the
    prefix of what tells whether a run is over."""
    found: dict[str, FunctionText] = {}
    waiting = list(functions)
    while waiting:
        for part in waiting.pop().family():
            for text in part.declarations:
                name = text.split("@", 1)[1].split("(", 1)[0]
                if name in SORTS and name not in found:
                    found[name] = SORTS[name](target, pool)
                    waiting.append(found[name])
    return list(found.values())


def _columns(bits: int, words: int, rows: int, target: Machine, pool: str) -> FunctionText:
    return columns(bits, words, rows)


def _merge(bits: int, words: int, target: Machine, pool: str) -> FunctionText:
    return merge(bits, words)


# Bits and words of what is sorted, and the first of its bytes that is not in order already.
_SORTED = (*((f"i{bits}x{words}", bits, words, 0) for bits, words in RECORDS),
           ("places", 64, 1, 4))
SORTS: Mapping[str, Callable[[Machine, str], FunctionText]] = MappingProxyType({
    **{(name := f"weft_sort_{what}_quick"): partial(_quick, bits, words, name)
       for what, bits, words, _ in _SORTED},
    **{(name := f"weft_sort_{what}_radix"): partial(_radix, bits, words, first, name)
       for what, bits, words, first in _SORTED},
    **{f"weft_columns_i{bits}x{words}_{rows}": partial(_columns, bits, words, rows)
       for bits, words in RECORDS for rows in COLUMNS[words - 1]},
    **{f"weft_merge_i{bits}x{words}": partial(_merge, bits, words) for bits, words in RECORDS},
    **{f"weft_rank_i{bits}": partial(_ranks, bits) for bits in (32, 64)},
    **{parts_name(bits, places=places): partial(_parts, bits, places)
       for bits in (32, 64) for places in (False, True)}})
