"""``python -m bench.picture FILE.json... PICTURE.svg``: what ``--json`` has written, as a picture.

A panel for each file, a row for each table, a dot for each workload: how many times as long as Weft
the best peer takes, and NumPy. Dots left of the line are workloads at which Weft is behind.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import matplotlib.pyplot as plt

TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200)
COLOURS = {"numpy": "#b9c3cf", "best peer": "#1f6f5c"}


def ratios(run: Mapping[str, Any]) -> dict[str, dict[str, list[float]]]:
    """For each table with peers, the times of the best of them and of NumPy over Weft's."""
    found: dict[str, dict[str, list[float]]] = {}
    for tables in run["families"].values():
        for table in tables:
            rows = [row["ratios"] for row in table["rows"] if row.get("ratios")]
            if rows:
                found[table["title"]] = {
                    "numpy": [row["numpy"] for row in rows if "numpy" in row],
                    "best peer": [min(row.values()) for row in rows]}
    return found


def draw(runs: Sequence[Mapping[str, Any]]) -> Any:
    """The figure of some runs."""
    tables = [ratios(run) for run in runs]
    most = max(map(len, tables))
    figure, panels = plt.subplots(1, len(runs), figsize=(5.2 * len(runs) + 1, 0.42 * most + 1.6),
                                  sharex=True, squeeze=False)
    for panel, run, table in zip(panels[0], runs, tables, strict=True):
        for at, kinds in enumerate(table.values()):
            for kind, numbers in kinds.items():
                shift = 0.14 if kind == "numpy" else -0.14
                panel.scatter(numbers, [at - shift] * len(numbers), s=16, lw=0, alpha=0.85,
                              color=COLOURS[kind], label=kind if at == 0 else None)
            mean = geometric_mean(kinds["best peer"])
            panel.plot([mean, mean], [at, at + 0.28], color="black", lw=1.5,
                       label="geometric mean" if at == 0 else None)
        panel.axvline(1, color="#888888", lw=0.8)
        panel.set_xscale("log")
        panel.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        panel.minorticks_off()
        panel.set_yticks(range(len(table)), list(table) if panel is panels[0][0] else [])
        panel.invert_yaxis()
        panel.set_xlabel("time over Weft's")
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(axis="y", length=0)
        panel.set_title(f"{run['cpu']}, {run['threads']} threads, vectors of {run['vector bits']} "
                        f"bits, {run['date']}", fontsize=9, loc="left")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="upper right", fontsize=8,
                  frameon=False, ncols=3)
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    return figure


def main() -> None:
    *files, picture = sys.argv[1:]
    runs = [json.loads(Path(file).read_text()) for file in files]
    plt.rcParams["svg.fonttype"] = "none"  # as text
    draw(runs).savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
