"""Loops and transforms in Triton's interpreter: their kernels run there, and the results are those
of the CPU.

    TRITON_INTERPRET=1 python -m every_transform triton        all nests, and random programs
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import on_gpu
from fuzz.nested import check
from fuzz.nested.draw import program
from nests import ALL, CUBES, FORWARD, REVERSE, X

import weft
from weft.ir.interp.graph import run_plan
from weft.ir.machine import GPU


def in_triton(function: Callable[..., Any], *args: Any) -> list[Any]:
    """The results of a function without variables whose kernels run in Triton's interpreter."""
    lowered = weft.compile(function, on_recompile="error").lower(*args)  # no number is static
    traced = lowered.traced
    params = [entry for entry in traced.leaves if entry.param is not None]
    arrays = [np.asarray(leaf, entry.type.dtype.numpy) for leaf, entry in zip(
        traced.given(weft.tree.leaves(args)), params, strict=True)]
    arrays += [held.array for held in traced.captures]
    return run_plan(lowered.stages.plan_for(GPU), arrays, kernel_runner=on_gpu.run_kernel)


def nest_problems(every: int = 1) -> Iterator[tuple[str, str]]:
    """What is wrong of each nest of transforms, or of every so many; "" is nothing."""
    for cube, nest in ALL[::every]:
        transformed = {**REVERSE, **FORWARD}[nest]
        yield f"{nest} of {cube}", difference(lambda x, cube=cube, nest=transformed: nest(
            lambda y: np.sum(CUBES[cube](y + 0 * np.sum(x))))[0], X)


def program_problems(seed: int, numbers: range) -> Iterator[tuple[str, str]]:
    """What is wrong of each random program without state."""
    for number in numbers:
        drawn = program(seed, number)
        if not {"random", "variable"} & {*drawn.features}:
            space = check.module(drawn, weft)
            yield f"{seed}:{number}", difference(
                space["f"], *check.arguments(drawn, number, 0), far=1e-3 if drawn.single else 1e-9)


def difference(function: Callable[..., Any], *args: Any, far: float = 1e-9) -> str:
    """How the results in Triton's interpreter differ from the CPU's."""
    try:
        want = weft.tree.leaves(weft.compile(function)(*args))
    except weft.Error as problem:
        return "" if problem.code == "W113" else str(problem)
    try:
        found = in_triton(function, *args)
    except Exception as problem:  # each is a finding
        return f"{type(problem).__name__}: {problem}"[:500]
    for at, (a, b) in enumerate(zip(found, want, strict=False)):
        if not np.allclose(a, b, rtol=far, atol=far, equal_nan=True):
            return f"result {at} is {a}, on the CPU {b}"
    return ""
