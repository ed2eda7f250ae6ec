"""Profiles as tables of text.

    kernel       calls  total ms  mean us     %  GFLOP/s  GB/s   FLOP  bytes  device  line
    contract_h    1000    12.310    12.31  71.2     85.1  12.0   1.0M   148k  cpu:0   m.py:4 +1
    reduce_loss   1000     4.970     4.97  28.8      2.1   8.4  10.2k  41.0k  cpu:0   m.py:9
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Protocol

from ...ir.loc import Loc
from ...ir.record import record
from .kernels import KernelTime

_WIDE = 40  # of a name


class Profiled(Protocol):
    """What a table is made of; ``profile.Profile`` in fact."""

    @property
    def seconds(self) -> float: ...
    @property
    def lost(self) -> int: ...
    @property
    def kernels(self) -> tuple[KernelTime, ...]: ...
    def totals(self) -> tuple[tuple[int, float], tuple[int, float], float]: ...


@record(frozen=True)
class LineTime:
    """A line of the user: seconds of the kernels that compute it, as far as they do, and their
    names; ``calls`` are their runs."""

    loc: Loc
    seconds: float
    calls: int
    kernels: tuple[str, ...]

    @property
    def source(self) -> str:
        """The text of the line; empty where the file cannot be read."""
        return self.loc.source.strip()


class Lines(tuple[LineTime, ...]):
    """Lines by time; prints as a table."""

    __slots__ = ()

    @staticmethod
    def of(kernels: Iterable[KernelTime]) -> Lines:
        """The lines of kernels. What has no line is left out."""
        seconds, calls = dict[Loc, float](), dict[Loc, int]()
        names: dict[Loc, dict[str, None]] = {}
        for row in kernels:
            for loc, share in row.lines:
                seconds[loc] = seconds.get(loc, 0.0) + share * row.seconds
                calls[loc] = calls.get(loc, 0) + row.calls
                names.setdefault(loc, {})[row.name] = None
        found = [LineTime(loc, spent, calls[loc], tuple(names[loc]))
                 for loc, spent in seconds.items()]
        return Lines(sorted(found, key=lambda line: -line.seconds))

    def __str__(self) -> str:
        total = sum(line.seconds for line in self)
        rows = [(f"{1e3 * line.seconds:.3f}", f"{_percent(line.seconds, total)}", str(line.calls),
                 place(line.loc), line.source) for line in self]
        return table(("total ms", "%", "calls", "line", "source"), rows, ">>><<")


def profile_table(profile: Profiled, rows: int) -> str:
    """A line about all, and the kernels that took longest."""
    kernels = profile.kernels
    total = sum(row.seconds for row in kernels)
    (calls, called), (compiled, compiling), extra = profile.totals()
    head = (f"profile of {seconds_text(profile.seconds)}: {calls} calls {seconds_text(called)}, "
            f"kernels {seconds_text(total)}; {compiled} compiled in {seconds_text(compiling)}")
    if extra:
        head += f" (and {seconds_text(extra)} for the profile)"
    lines = [_row(row, total) for row in kernels[:rows]]
    rest = kernels[rows:]
    if rest:
        spent = sum(row.seconds for row in rest)
        lines.append((f"{len(rest)} more", str(sum(row.calls for row in rest)),
                      f"{1e3 * spent:.3f}", "", _percent(spent, total), *[""] * 6))
    text = table(("kernel", "calls", "total ms", "mean us", "%", "GFLOP/s", "GB/s", "FLOP",
                  "bytes", "device", "line"), lines, "<>>>>>>>><<")
    if profile.lost:
        text += f"\n{profile.lost} single events were too many to keep; the table counts them"
    return f"{head}\n{text}" if kernels else head


def _row(row: KernelTime, total: float) -> tuple[str, ...]:
    name = row.name if len(row.name) <= _WIDE else f"{row.name[:_WIDE - 3]}..."
    more = len(row.lines) - 1
    where = (place(row.lines[0][0]) + (f" +{more}" if more else "")) if row.lines else ""
    return (name, str(row.calls), f"{1e3 * row.seconds:.3f}", f"{1e6 * row.mean:.2f}",
            _percent(row.seconds, total), _decimal(row.gflops), _decimal(row.gbytes),
            _count(row.flops, row.calls), _count(row.bytes, row.calls), row.device, where)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> str:
    """Columns of text, each to the left or right of its room."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    return "\n".join("  ".join(
        f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)
    ).rstrip() for row in (head, *rows))


def place(loc: Loc) -> str:
    """A line as one would open it from here: a file below this folder with its path from here."""
    here = os.path.relpath(loc.file) if os.path.isabs(loc.file) else loc.file
    return f"{os.path.basename(loc.file) if here.startswith('..') else here}:{loc.line}"


def seconds_text(seconds: float) -> str:
    """A time in the unit that it is easily read in."""
    return f"{seconds:.2f} s" if seconds >= 1 else (
        f"{1e3 * seconds:.1f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.1f} us")


def _percent(part: float, total: float) -> str:
    return f"{100 * part / total:.1f}" if total else ""


def _decimal(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"


def _count(total: int | None, calls: int) -> str:
    """What one run did, on average; with three digits or so."""
    if total is None:
        return ""
    number = total / calls
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"
