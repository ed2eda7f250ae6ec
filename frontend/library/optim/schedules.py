"""Learning rates that change from step to step: given to an optimizer instead of a number.

A schedule is called with the number of steps taken before, 0 at first; an optimizer counts them in
its state. Each raises DTypeError (W112) for what is no number, ParameterError (W132) for one out of
its range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ...face.source import user_loc
from .checks import check_count, check_number


@dataclass(frozen=True)
class Constant:
    """``lr`` at every step."""

    lr: float

    def __post_init__(self) -> None:
        check_number("lr", self.lr)

    def __call__(self, step: Any) -> Any:
        return np.full_like(step, self.lr, dtype=np.float64)


@dataclass(frozen=True)
class PiecewiseConstant:
    """``values[0]`` before step ``boundaries[0]``, ``values[1]`` from there on, and so on.

    >>> [float(PiecewiseConstant((2, 3), (1.0, 0.5, 0.1))(step)) for step in range(4)]
    [1.0, 1.0, 0.5, 0.1]
    """

    boundaries: Sequence[int]
    values: Sequence[float]

    def __post_init__(self) -> None:
        for name, given in (("boundaries", self.boundaries), ("values", self.values)):
            if not isinstance(given, (tuple, list, np.ndarray)):
                raise error("W112", f"{name} is {given!r}, not a tuple of numbers",
                            locs=user_loc(), hint=f"write such as {name}=(10, 20)")
        for value in self.values:
            check_number("a value", value)
        for boundary in self.boundaries:
            check_count("a boundary", boundary, 0)
        if len(self.values) != len(self.boundaries) + 1 or list(self.boundaries) != sorted(
                set(self.boundaries)):
            raise error("W132", f"boundaries {self.boundaries} and values {self.values} do not fit",
                        locs=user_loc(),
                        hint="give boundaries that grow, and one value more than there are of them")

    def __call__(self, step: Any) -> Any:
        rate: Any = Constant(self.values[0])(step)
        for start, value in zip(self.boundaries, self.values[1:], strict=True):
            rate = np.where(step < start, rate, value)
        return rate


@dataclass(frozen=True)
class ExponentialDecay:
    """``lr * rate ** (step / steps)``; with ``staircase`` in whole powers, one each ``steps``."""

    lr: float
    steps: int
    rate: float
    staircase: bool = False

    def __post_init__(self) -> None:
        check_number("lr", self.lr)
        check_count("steps", self.steps)
        check_number("rate", self.rate)

    def __call__(self, step: Any) -> Any:
        return self.lr * self.rate ** (step // self.steps if self.staircase else step / self.steps)


@dataclass(frozen=True)
class LinearDecay:
    """From ``lr`` to ``final`` in ``steps`` equal parts, then ``final``."""

    lr: float
    final: float
    steps: int

    def __post_init__(self) -> None:
        check_number("lr", self.lr)
        check_number("final", self.final)
        check_count("steps", self.steps)

    def __call__(self, step: Any) -> Any:
        return self.lr + (self.final - self.lr) * np.minimum(step / self.steps, 1.0)


@dataclass(frozen=True)
class CosineDecay:
    """Up from 0 to ``lr`` in ``warmup`` equal parts, then down to ``final`` along half a cosine
    (Loshchilov and Hutter, 2017), there after ``steps`` in all, or a step after a longer warmup.

    >>> [round(float(CosineDecay(1.0, 6, warmup=2)(step)), 3) for step in range(8)]
    [0.0, 0.5, 1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """

    lr: float
    steps: int
    warmup: int = 0
    final: float = 0.0

    def __post_init__(self) -> None:
        check_number("lr", self.lr)
        check_number("final", self.final)
        check_count("warmup", self.warmup, 0)
        check_count("steps", self.steps)

    def __call__(self, step: Any) -> Any:
        part = np.clip((step - self.warmup) / max(self.steps - self.warmup, 1), 0.0, 1.0)
        rate = self.final + (self.lr - self.final) * 0.5 * (1 + np.cos(math.pi * part))
        return np.where(step < self.warmup, self.lr * step / max(self.warmup, 1), rate)
