"""Which way rows of keys are sorted: networks for short ones; then parts, or radix passes.

    AVX-512     columns -> parts by pivots, down to columns
    others      network -> radix passes

Each function is the same in all programs for a target: a process compiles it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType

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
ROWS = ((2, 4, 8, 16), (2, 4, 8))  # of vectors that are sorted in registers: keys, with places


def sort(f: FunctionText, target: Machine, bits: int, x: list[str], y: list[str], n: str,
         length: int | None, control: str, *, places: bool) -> None:
    """Put n records of the memories x, signed keys and what goes with them, in order there; the
    memories y have room for as many.

    ``length`` is n where it is known; ``control`` the control block of the run; ``places``: the
    lower half of a key is where it is.
    """
    words = len(x)
    if target.mask_registers:
        for rows in ROWS[words - 1]:
            if length is not None and length <= rows * LANES // bits:
                call_sort(f, f"weft_columns_i{bits}x{words}_{rows}", x, x, n)
                return
    call_sort(f, f"weft_sort_{'places' if places else f'i{bits}x{words}'}", x, y, n,
              f"ptr {control}")


def _sort(
    bits: int, words: int, first: int, name: str, target: Machine, pool: str
) -> FunctionText:
    names = [f"{side}{word}" for side in "xy" for word in range(words)]
    f = FunctionText("void", name, [*(("ptr", name) for name in names), ("i64", "n"),
                                    ("ptr", "control")], attributes="noinline nounwind")
    x, y = ([f"%{side}{word}" for word in range(words)] for side in "xy")
    if target.mask_registers:
        # Parts of many keys do not keep those with equal first bytes in turn.
        passes = radix(bits, words, 0, pool)
        short = _few(bits, words)
        limit = ROWS[words - 1][-1] * LANES // bits
        part = [inside(bits)] if words == 1 else []
        parts = quick(bits, words, limit, short.name, passes.name, part[0].name if part else "",
                      pool)
        f.helpers += [short, passes, *part, parts]
        zeros = f.call("i64", "llvm.ctlz.i64", ("i64", "%n"), ("i1", "false"))
        budget = f(f"mul i64 {f(f'sub i64 64, {zeros}')}, {BUDGET}")
        with f.when(f("icmp sgt i64 %n, 1")):
            call_sort(f, parts.name, x, y, "%n", "i1 false", f"i64 {budget}", _CONTROL)
        f.ret()
        return f
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
    for rows in ROWS[words - 1]:
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
    return ranks(bits, f"weft_sort_i{bits}x1", vectors=target.mask_registers)


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


SORTS: Mapping[str, Callable[[Machine, str], FunctionText]] = MappingProxyType({
    **{f"weft_sort_i{bits}x{words}": partial(_sort, bits, words, 0, f"weft_sort_i{bits}x{words}")
       for bits, words in RECORDS},
    "weft_sort_places": partial(_sort, 64, 1, 4, "weft_sort_places"),
    **{f"weft_columns_i{bits}x{words}_{rows}": partial(_columns, bits, words, rows)
       for bits, words in RECORDS for rows in ROWS[words - 1]},
    **{f"weft_merge_i{bits}x{words}": partial(_merge, bits, words) for bits, words in RECORDS},
    **{f"weft_rank_i{bits}": partial(_ranks, bits) for bits in (32, 64)},
    **{parts_name(bits, places=places): partial(_parts, bits, places)
       for bits in (32, 64) for places in (False, True)}})
