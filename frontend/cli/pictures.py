"""Pictures of what models return: a panel for each entry that can be drawn.

    losses    numbers, one a step; or a dict of such
    images    (rows, columns, height, width), of ink from 0 to 1
    band      mean, deviation and truth of points, in the order of the means
    paths     (times, points, dims), and the kind of each point; of the dims, two are drawn
    grid      a table of numbers, NaN where there is nothing
    words     names, the most frequent first, and their vectors
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_COLOURS = ("#1f4e8c", "#b5482a", "#3d7a3a")
_WINDOW = 25


def draw(result: Mapping[str, Any], path: Path, title: str) -> None:
    """Write the panels of a result, side by side, as a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [name for name in PANELS if name in result]
    figure = Figure(figsize=(6 * len(shown), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, name in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        PANELS[name](axes, result[name])
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _losses(axes: Any, losses: Any) -> None:
    """Every step, and the running mean where there are many."""
    named = losses if isinstance(losses, dict) else {"": losses}
    for colour, (name, values) in zip(_COLOURS, named.items(), strict=False):
        window = min(_WINDOW, max(1, len(values) // 2))
        smooth = np.convolve(values, np.full(window, 1 / window), "valid")
        axes.plot(values, color=colour, linewidth=0.8, alpha=0.3)
        axes.plot(np.arange(window - 1, len(values)), smooth, color=colour,
                  label=name.replace("_", " ") or f"mean of {window}")
    axes.set(xlabel="step", ylabel="loss")
    if all(np.min(values) > 0 for values in named.values()):
        axes.set_yscale("log")
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)


def _images(axes: Any, images: Array) -> None:
    rows, columns, height, width = images.shape
    framed = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=np.nan)
    whole = framed.transpose(0, 2, 1, 3).reshape(rows * (height + 2), columns * (width + 2))
    axes.imshow(whole, cmap="gray_r", vmin=0, vmax=1)
    axes.set_axis_off()


def _band(axes: Any, band: tuple[Array, Array, Array]) -> None:
    mean, deviation, truth = band
    places = np.arange(len(mean))
    axes.fill_between(places, mean - 2 * deviation, mean + 2 * deviation, color=_COLOURS[0],
                      alpha=0.2, linewidth=0, label="two standard deviations")
    axes.plot(places, mean, color=_COLOURS[0], label="mean")
    axes.plot(places, truth, ".", color=_COLOURS[1], label="held out")
    axes.set(xlabel="held-out row, by its mean")
    axes.legend(frameon=False)


def _paths(axes: Any, drawn: tuple[Array, Array]) -> None:
    paths, kinds = drawn
    flat = _plane(paths.reshape(-1, paths.shape[-1])).reshape(*paths.shape[:2], 2)
    for at, kind in enumerate(np.unique(kinds)):
        mine, colour = flat[:, kinds == kind], _COLOURS[at % len(_COLOURS)]
        axes.plot(*mine.T.swapaxes(1, 2), color=colour, linewidth=0.8, alpha=0.5)
        axes.plot(*mine[-1].T, ".", color=colour)
    axes.set(xlabel="first principal component", ylabel="second")


def _grid(axes: Any, grid: Array) -> None:
    axes.figure.colorbar(axes.imshow(grid))
    axes.set_axis_off()


def _words(axes: Any, drawn: tuple[list[str], Array]) -> None:
    names, vectors = drawn
    flat = _plane(vectors)[:60]
    axes.plot(*flat.T, ".", color=_COLOURS[0], markersize=3)
    for name, place in zip(names, flat, strict=False):
        axes.annotate(name, place, fontsize=6)
    axes.set_axis_off()


def _plane(rows: Array) -> Array:
    """The first two principal components of rows."""
    centred = rows - rows.mean(0)
    plane: Array = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    return plane


PANELS: Mapping[str, Callable[[Any, Any], None]] = MappingProxyType({
    "losses": _losses, "images": _images, "band": _band, "paths": _paths, "grid": _grid,
    "words": _words})
