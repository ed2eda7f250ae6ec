"""The picture of a run of the benchmark that the README shows has all of its workloads."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_every_workload_is_a_dot() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    picture = runpy.run_path(str(ROOT / "bench" / "picture.py"))
    run = json.loads((ROOT / "bench" / "figures" / "avx2.json").read_text())
    found = picture["ratios"](run)
    workloads = {table["title"]: table["rows"] for tables in run["families"].values()
                 for table in tables if any(row.get("ratios") for row in table["rows"])}
    assert found.keys() == workloads.keys()
    for title, rows in workloads.items():
        assert found[title]["best peer"] == [
            min(ratio for name, ratio in row["ratios"].items()) for row in rows]
    (panel,) = picture["draw"]([run]).axes
    dots = sum(len(each.get_offsets()) for each in panel.collections)
    assert dots == sum(len(numbers) for kinds in found.values() for numbers in kinds.values())
    assert [text.get_text() for text in panel.get_yticklabels()] == list(found)
    shown = (ROOT / "docs" / "speed.svg").read_text()
    for title in (*found, run["date"]):
        assert re.search(rf">[^<]*{re.escape(title)}[^<]*<", shown)
