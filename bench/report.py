"""Tables for the terminal, and the same as data for a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable


@dataclass(frozen=True)
class Must:
    """Something that this version has to reach: ``found`` at least (or at most) ``wanted``."""

    what: str
    wanted: float
    found: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.found <= self.wanted if self.at_most else self.found >= self.wanted


@dataclass
class Table:
    """One table: cells as they are shown, notes below it, and the numbers behind it."""

    title: str
    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    data: list[dict[str, Any]] = field(default_factory=list)
    musts: list[Must] = field(default_factory=list)


def number(value: float, digits: int = 3) -> str:
    """``value`` with three significant digits and no exponent.

    >>> number(0.0000793), number(12.345), number(1234.5)
    ('0.0000793', '12.3', '1234')
    """
    if value == 0 or value != value:
        return f"{value}"
    size = abs(value)
    places = 0
    while size < 10 ** (digits - 1) and places < 9:
        size, places = size * 10, places + 1
    return f"{value:.{places}f}"


def show(console: Console, table: Table) -> None:
    """Print a table and its notes."""
    shown = RichTable(title=table.title, title_justify="left", title_style="bold", box=SIMPLE_HEAD,
                      padding=(0, 1, 0, 0))
    for at, column in enumerate(table.columns):
        shown.add_column(column, justify="right" if at else "left", no_wrap=True)
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)
    for note in table.notes:
        console.print(f"  {note}", markup=False, highlight=False, soft_wrap=True)
    console.print()


def musts_table(musts: Sequence[Must]) -> Table:
    """What this version has to reach, and whether it did."""
    rows = [[must.what, f"{'<=' if must.at_most else '>='} {must.wanted:g}", f"{must.found:.2f}",
             "yes" if must.met else "NO"] for must in musts]
    return Table("musts", ("what", "wanted", "found", "met"), rows,
                 data=[asdict(must) for must in musts])


def write_json(path: Path, facts: Mapping[str, Any], tables: Mapping[str, Sequence[Table]]) -> None:
    """The numbers of a run: ``facts`` of machine and versions, then those of each family."""
    families = {family: [{"title": table.title, "notes": table.notes, "rows": table.data}
                         for table in found] for family, found in tables.items()}
    path.write_text(json.dumps({**facts, "families": families}, indent=1) + "\n")
