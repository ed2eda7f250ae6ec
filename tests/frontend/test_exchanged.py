"""What loops carry in arrays that change places: buffers are exchanged, and nothing is copied."""

from __future__ import annotations

import itertools
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import with_source
from hypothesis import given, reject

import weft
from weft.ir.plans.plan import Copy, Loop, Plan, all_steps

ROUNDS = np.linspace(-1, 2, 7)


def wave(u: Any, c: Any, steps: int) -> Any:
    u, v, w = u.copy(), u.copy(), np.zeros_like(u)
    for t in range(steps):
        v[5] += t
        w[1:-1] = 2 * v[1:-1] - u[1:-1] + c * (v[2:] - 2 * v[1:-1] + v[:-2])
        u, v, w = v, w, u
    return v


def leapfrog(u: Any, c: Any, steps: int) -> Any:
    v = u * 2
    for t in range(steps):
        u, v = v, 2 * v - u + c * t
    return u, v


def swap(u: Any, c: Any, steps: int) -> Any:
    u, v = u.copy(), u * 2
    for t in range(steps):
        u[t % 7] += c
        u, v = v, u
    return u - v


def four(u: Any, c: Any, steps: int) -> Any:
    u, a, b, d = u * 1, u * 2, u * 3, u * 4
    for t in range(steps):
        a[t % 9] = b[2] + c
        u, a, b, d = d, b, u, a
    return u, a, b, d


def lives_on(u: Any, c: Any, steps: int) -> Any:
    """One of what changes places is asked for long after the others, and behind other memory."""
    u, v, w = u * 1, u * 2, u * 3
    for t in range(steps):
        if v[0] > 1e9:
            v = v * 0.5
        v[t % 5] += t
        w[1:-1] = v[1:-1] * c + u[:-2]
        u, v, w = v, w, u
    a = np.sort(np.cumsum(v))
    b = np.cumsum(np.sort(w) + a)
    return np.sort(b) + np.cumsum(a) + u


def copies_in_rounds(plan: Plan) -> list[Copy]:
    return [step for loop in all_steps(plan.steps) if isinstance(loop, Loop)
            for step in all_steps(loop.body) if isinstance(step, Copy)]


@pytest.mark.parametrize("function", [wave, leapfrog, swap, four, lives_on])
def test_nothing_is_copied(function: Any) -> None:
    u = np.random.default_rng(0).random(40)
    for opt in (0, 2):
        f = weft.compile(function, opt=opt)
        for steps in (5, 0, 1, 8, 61, 62, 1000):
            for got, want in zip(weft.tree.leaves(f(u, 0.25, steps)),
                                 weft.tree.leaves(function(u.copy(), 0.25, steps)), strict=True):
                np.testing.assert_allclose(got, want, 1e-12)
        if opt:
            lowered = f.lower(u, 0.25, 1000)
            assert not copies_in_rounds(lowered.stages.plan), lowered.as_text("plan")


# -- random rounds ---------------------------------------------------------------------------------

NAMES = "abcd"
STATEMENTS = st.one_of(
    st.builds("{0}[{2}] += {1}[1] * x".format, st.sampled_from(NAMES), st.sampled_from(NAMES),
              st.sampled_from(["0", "t", "t % 3"])),
    st.builds("{0} = {1} + x".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds("{0} = {1} * 0.5 - {2}[::-1]".format, *[st.sampled_from(NAMES)] * 3),
    st.builds("{0}[1:] = {1}[:-1] * {2}[1:]".format, *[st.sampled_from(NAMES)] * 3),
    st.builds("{0}[:] = 0.5 * {1}".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.permutations(NAMES).map(lambda names: f"{', '.join(NAMES)} = {', '.join(names)}"),
    st.builds("{0} = {1}.copy()".format, st.sampled_from(NAMES), st.sampled_from(NAMES)))
BLOCKS = st.one_of(
    st.lists(STATEMENTS, min_size=1, max_size=4),
    st.tuples(st.sampled_from(["if x > 0:", "if a[2] > b[1]:", "for s in range(t):"]),
              st.lists(STATEMENTS, min_size=1, max_size=3)).map(
        lambda block: [block[0], *(f"    {line}" for line in block[1])]))


@given(rounds=st.lists(BLOCKS, min_size=1, max_size=3), size=st.sampled_from([7, 12, 40]),
       given=st.sampled_from(["a, b, c, d", "a", "c, b", "a + d, b"]))
def test_random_rounds(
    rounds: list[list[str]], size: int, given: str
) -> None:
    body = "\n".join(f"        {line}" for line in itertools.chain(*rounds))
    source = (f"def f(a, b, c, d, xs):\n    for t, x in enumerate(xs):\n{body}\n"
              f"    return {given}\n")
    f = with_source.run(source, {"np": np})["f"]
    rng = np.random.default_rng(1)
    arrays = [rng.random(size) * 0.5 for _ in NAMES]
    with np.errstate(all="ignore"):
        want = weft.tree.leaves(f(*(x.copy() for x in arrays), ROUNDS))
    for opt in (0, 2):
        try:
            got = weft.tree.leaves(weft.compile(f, opt=opt, inout="allow")(
                *(x.copy() for x in arrays), ROUNDS))
        except weft.Error as problem:
            assert problem.code == "W203", source  # a way decides which memory it is
            reject()
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, 1e-9, err_msg=source)
