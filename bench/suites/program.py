"""A program of a suite: what there is to call, with what, and what others have for it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Program:
    """``names`` tells arguments apart where one differs. ``others`` makes the versions of
    ``numba`` and ``jax``, which may raise any exception: not every one is kept up to date."""

    function: Function
    args: Sequence[Any]
    names: Sequence[str]
    others: Mapping[str, Callable[[], Function]] = field(default_factory=dict)


def module(path: Path) -> Any:
    """A file, imported under its own name."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made
    spec.loader.exec_module(made)
    return made
