"""Runs a program in all ways, and compares: by NumPy and Python (``reference``), by the interpreter
on the graph as it was traced, and compiled, at one level of optimisation and, bit for bit, another.

How far results may lie apart follows from how far the interpreter's move where the arguments do by
a few units in their last places; where they jump, the comparison tells nothing (``unclear``). The
reference of a derivative is a difference: two widths of its step have to agree.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from support import with_source

import weft
from weft.frontend.engine.eager import interpret
from weft.ir.diagnose import Error

from .draw import Program
from .reference import STEP, Reference, UnclearError

CALLS = 2
_ROUNDING = {np.dtype(np.float64): 1e-9, np.dtype(np.complex128): 1e-9,
             np.dtype(np.float32): 2e-4, np.dtype(np.complex64): 2e-4}
_SLOPES = (1.0, 1e-6, 2e-4, 2e-2)  # of differences, by their order


@dataclass(frozen=True)
class Outcome:
    """``ok``, ``unclear`` (nothing differs, but not all could be compared), ``refused`` or
    ``finding``, and what it is."""

    verdict: str
    what: str = ""


class MismatchError(Exception):
    """Two ways give different results."""


def arguments(program: Program, number: int, call: int) -> tuple[Any, ...]:
    """The arguments of one call, the second of another size where sizes are unknown."""
    rng = np.random.default_rng((number, 0 if not program.unknown else call))
    n, b = int(rng.integers(2, 4 if program.order > 1 else 5)), int(rng.integers(1, 4))
    rng = np.random.default_rng((number, call, 1))
    real, cplx = (np.float32, np.complex64) if program.single else (np.float64, np.complex128)
    places = random.Random(number).choice((np.int64, np.int32, np.uint8))
    return (real(rng.normal()), rng.normal(size=n).astype(real),
            rng.normal(size=(b, n)).astype(real), int(rng.integers(0, 4)),
            rng.integers(0, 9, n).astype(places), rng.random(n) < 0.5,
            (rng.normal(size=n) + 1j * rng.normal(size=n)).astype(cplx))


def module(program: Program, within: Any, precise: bool = False) -> dict[str, Any]:
    """The program with the names of weft, or with those of its reference."""
    return with_source.run(program.text, {
        "np": np, "W": within, "F": np.float32 if program.single and not precise else np.float64})


def state(space: dict[str, Any]) -> list[Any]:
    """The program's variable, if it has one."""
    return [np.asarray(space["V"].numpy())] if "V" in space else []


Way = Callable[[int], list[Any]]


def check(program: Program, number: int) -> Outcome:
    """Run the program in all ways. What raises is a finding, but for errors of Weft's that say
    what is not supported: those are refusals."""
    calls = [arguments(program, number, call) for call in range(CALLS)]
    with np.errstate(all="ignore"):
        try:
            return _compared(program, number, calls)
        except MismatchError as problem:
            return Outcome("finding", str(problem))
        except Error as problem:
            kind = "refused" if problem.code in ("W113", "W127") else "finding"
            return Outcome(kind, str(problem))
        except Exception as problem:
            return Outcome("finding", f"{type(problem).__name__}: {problem}")


def _compared(program: Program, number: int, calls: list[Any]) -> Outcome:
    opt = (0, 1)[number % 2]
    runs = {}
    for level in (2, opt):
        space = module(program, weft)
        compiled = weft.compile(space["f"], opt=level, dynamic=_dynamic(program),
                                on_recompile="silent")
        runs[level] = _results(space, compiled, calls)
    for call, (one, two) in enumerate(zip(runs[2], runs[opt], strict=True)):
        for at, (a, b) in enumerate(zip(one, two, strict=True)):
            if a.dtype != b.dtype or a.shape != b.shape or not _same_bits(a, b):
                raise MismatchError(
                    f"opt 2 and {opt} differ: result {at} of call {call}: {a} and {b}")
    traced, *moved = _interpreted(program, calls)
    spreads = [[_spread(x, [other[call][at] for other in moved]) for at, x in enumerate(results)]
               for call, results in enumerate(traced)]
    unclear = _agree("the interpreter", program, runs[2], traced, spreads, 0)
    if not program.reference:
        return Outcome("unclear" if unclear else "ok", unclear)
    wanted = _reference(program, calls, STEP)
    if wanted is None:
        return Outcome("unclear", "the reference takes another way beside the place")
    if program.order:
        again = _reference(program, calls, STEP / 2)
        if again is None:
            return Outcome("unclear", "the reference takes another way beside the place")
        spreads = [[np.maximum(s, _spread(x, [y])) for s, x, y in zip(*each, strict=True)]
                   for each in zip(spreads, wanted, again, strict=True)]
    unclear = _agree("NumPy", program, runs[2], wanted, spreads, program.order) or unclear
    return Outcome("unclear" if unclear else "ok", unclear)


def _dynamic(program: Program) -> dict[str, dict[int, str]] | None:
    return {"v": {0: "n"}, "m": {0: "b", 1: "n"}, "ids": {0: "n"}, "q": {0: "n"},
            "z": {0: "n"}} if program.unknown else None


def _results(space: dict[str, Any], run: Callable[..., Any], calls: list[Any]) -> list[Any]:
    return [[*map(np.asarray, run(*args)), *state(space)] for args in calls]


def _interpreted(program: Program, calls: list[Any]) -> list[list[Any]]:
    """The results of the calls, and of calls beside them, each from the state of the start."""
    found = []
    space = module(program, weft)
    traced = _traced(program, space, calls)
    for seed in (None, 1, 2):
        if seed is not None and ("V" in space or "rng" in space):
            space = module(program, weft)
            traced = _traced(program, space, calls)
        given = calls if seed is None else [_moved(args, seed, program) for args in calls]
        found.append(_results(space, lambda *args, run=traced: interpret(
            run, weft.tree.leaves(args)), given))
    return found


def _traced(program: Program, space: dict[str, Any], calls: list[Any]) -> Any:
    function = weft.compile(space["f"], dynamic=_dynamic(program), on_recompile="error")
    return function.trace(*calls[0])  # in which no number is static


def _reference(program: Program, calls: list[Any], step: float) -> list[Any] | None:
    """None where a derivative goes another way beside its place."""
    precise = program.order > 0
    space = module(program, Reference(step), precise)
    if precise:
        calls = [tuple(np.asarray(x, np.result_type(x, np.float64))[()]
                       if np.asarray(x).dtype.kind in "fc" else x for x in args) for args in calls]
    try:
        return _results(space, space["f"], calls)
    except RuntimeError as problem:
        if isinstance(problem.__cause__, StopIteration) or "StopIteration" in str(problem):
            return None
        raise
    except (StopIteration, UnclearError):
        return None


def _moved(args: tuple[Any, ...], seed: int, program: Program) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    unit = 3e-7 if program.single else 3e-15

    def moved(x: Any) -> Any:
        kind = np.asarray(x).dtype
        if kind.kind not in "fc":
            return x
        return np.asarray(x * (1 + unit * rng.uniform(-1, 1, np.shape(x))), kind)[()]

    return tuple(moved(x) for x in args)


def _spread(x: Any, others: list[Any]) -> Any:
    """How far results lie apart; endless where one is no number and another is."""
    if x.dtype.kind not in "fc":
        return np.where(np.all([x == y for y in others], 0), 0.0, np.inf)
    apart = np.max([np.abs(y.astype(np.complex128) - x) for y in others], 0, initial=0.0)
    nan = [np.isnan(y) == np.isnan(x) for y in others]
    return np.where(np.all(nan, 0), np.where(np.isnan(apart), 0.0, apart), np.inf)


def _same_bits(a: Any, b: Any) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def _agree(
    name: str, program: Program, given: list[Any], wanted: list[Any], spreads: list[Any],
    order: int,
) -> str:
    """What could not be compared. Raises MismatchError where results lie too far apart."""
    unclear = ""
    for call, rows in enumerate(zip(given, wanted, spreads, strict=True)):
        for at, (a, b, spread) in enumerate(zip(*rows, strict=True)):
            where = f"{name} at result {at} of call {call}"
            if a.shape != b.shape or (a.dtype != b.dtype and not (order and program.single)):
                raise MismatchError(
                    f"{where} gives {b.dtype}{b.shape}, compiled {a.dtype}{a.shape}")
            if a.dtype.kind not in "fc":
                near = np.zeros(a.shape)
            else:
                near = max(_ROUNDING[a.dtype], _SLOPES[order] * (order > 0))
                near = near * (1 + np.abs(np.where(np.isnan(b), 0, b))) + 50 * spread
            rough = ~(near < 0.05 * (1 + np.abs(b))) & ~np.isnan(b)
            with np.errstate(all="ignore"):
                right = (np.abs(a - b) <= near) | (np.isnan(a) & np.isnan(b)) | (a == b)
            if np.any(~right & ~rough):
                raise MismatchError(f"{where} gives {b}, compiled {a}; the spread is {spread}")
            if np.any(rough):
                unclear = f"{where} jumps"
    return unclear
