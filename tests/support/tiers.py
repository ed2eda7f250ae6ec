"""The tiers of the tests: the first is what ``pytest tests`` runs, the rest what that leaves out.

Of each test function the first tier has half as many cases as the square root of their number, or
one, spread evenly. Where cases are of rows (of ops, of NumPy's functions), the first function of a
folder of ``tests`` that has cases of a row has one of them there instead, another for another row.
What is marked ``long`` is left to the rest. So a new test is in a tier by itself, and one of many
cases adds little to the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from math import isqrt
from pathlib import Path

import pytest

from weft.frontend.numpy_api.registry import Row
from weft.ir.ops.op import OpDef

SECONDS = 30  # of one core, that a test of the first tier may take on a slow machine


def first_tier(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Those of all cases of some test functions that are of the first tier."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("long") is None:
            functions.setdefault(function_of(item), []).append(item)
    rows: set[tuple[str, str]] = set()  # folders and the rows that they have cases of
    return [item for name, cases in functions.items()
            for item in _sample(name.partition("/")[0], cases, rows)]


def function_of(item: pytest.Item) -> str:
    """The full name of a test, without its case."""
    return item.nodeid.partition("[")[0]


def row_of(item: pytest.Item) -> str | None:
    """The name of the row that a case is of: a parameter, or what one of them is a sample of."""
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    for value in params:
        found = getattr(value, "row", value)
        if isinstance(found, (OpDef, Row)):
            return found.name
    return None


def _sample(
    folder: str, cases: Sequence[pytest.Item], rows: set[tuple[str, str]]
) -> Iterator[pytest.Item]:
    others, by_row = list[pytest.Item](), dict[str, list[pytest.Item]]()
    for case in cases:
        row = row_of(case)
        if row is None or (folder, row) in rows:
            others.append(case)
        else:
            by_row.setdefault(row, []).append(case)
    count = (isqrt(len(others)) + 1) // 2
    yield from (others[at * len(others) // count] for at in range(count))
    for number, (row, group) in enumerate(by_row.items()):
        rows.add((folder, row))
        yield group[number % len(group)]


def wanted(config: pytest.Config) -> str:
    """The tier that a run is of: ``first``, ``rest`` or ``all``.

    Whoever asks for tests by what they are called, for those that failed, or for golden files means
    all of them.
    """
    option = config.option
    every = option.keyword or option.update_golden or getattr(option, "lf", False)
    return str(option.tier or ("all" if every else "first"))


def named(config: pytest.Config) -> set[Path]:
    """The files that a run was asked for, or for some of their tests."""
    here = config.invocation_params.dir
    return {path.resolve() for path in (here / arg.partition("::")[0] for arg in config.args)
            if path.is_file()}


def split(
    config: pytest.Config, items: Sequence[pytest.Item]
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that run and those that are left out; a file that is named runs whole."""
    whole, tier, first = named(config), wanted(config), {item.nodeid for item in first_tier(items)}
    runs = [tier == "all" or (item.nodeid in first) == (tier == "first")
            or item.path.resolve() in whole for item in items]
    return ([item for item, run in zip(items, runs, strict=True) if run],
            [item for item, run in zip(items, runs, strict=True) if not run])


def core_seconds() -> float:
    """What this process and those that it has waited for took of a core."""
    return sum(os.times()[:4])
