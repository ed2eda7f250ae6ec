"""Times of a program by NumPy, by Weft and by what else is installed, in turn."""

from __future__ import annotations

import copy
import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from ..peers import Jax
from .program import Function, Program

_ROUNDS = 5


@dataclass(frozen=True)
class _Contestant:
    """``prepare`` makes its arguments, which is not timed."""

    function: Function
    prepare: Callable[[Sequence[Any]], Sequence[Any]] = copy.deepcopy

    def seconds(self, args: Sequence[Any]) -> float:
        """Of one call, on arguments of its own, as it may write to them."""
        given = self.prepare(args)
        start = time.perf_counter()
        self.function(*given)
        return time.perf_counter() - start


def in_turn(program: Program, compiled: Function) -> str:
    """Median milliseconds of calls, and how many times as fast Weft is."""
    contestants = {"NumPy": _Contestant(program.function), "Weft": _Contestant(compiled)}
    absent = []
    for name, make in (("numba", _numba), ("jax", _jax)):
        try:
            contestants[name] = _peer(program, name, make)
        except LookupError as problem:
            absent.append(f"{name} {problem.args[0]}")
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(_ROUNDS):
        for name, each in contestants.items():
            times[name].append(each.seconds(program.args))
    middle = {name: median(each) for name, each in times.items()}
    ours = middle["Weft"]
    told = [f"{name} {1e3 * spent:.3g} ms" + ("" if name == "Weft" else f" ({spent / ours:.3g})")
            for name, spent in middle.items()]
    return ", ".join(told + absent)


def _peer(program: Program, name: str,
          make: Callable[[Callable[[], Function]], _Contestant]) -> _Contestant:
    """A library's version, called once. Raises LookupError, which says why there is none."""
    if importlib.util.find_spec(name) is None:
        raise LookupError("is not installed")
    if name not in program.others:
        raise LookupError("has no version")
    try:
        made = make(program.others[name])
        made.seconds(program.args)
    except FileNotFoundError:
        raise LookupError("has no version") from None
    except Exception as problem:
        raise LookupError(f"failed ({type(problem).__name__})") from problem
    return made


def _numba(version: Callable[[], Function]) -> _Contestant:
    return _Contestant(version())


def _jax(version: Callable[[], Function]) -> _Contestant:
    jax = Jax()  # before the version is imported: it says that numbers have 64 bits
    function = version()
    return _Contestant(
        lambda *args: jax.wait(function(*args)),
        lambda args: [jax.array(each) if isinstance(each, np.ndarray) else each for each in args])
