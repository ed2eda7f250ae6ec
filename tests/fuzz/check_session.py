"""The same program as a graph: any set of values fetched, any set of values fed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import weft

from . import prelude
from .compiled import SYMBOLIC, UNSUPPORTED, Refused
from .oracle import Oracle, differs, equal, load
from .prelude import laid
from .program import Program


def check_session(program: Program, mismatch: type[Exception]) -> None:
    """Each value fetched alone is NumPy's; in any company it has the bits it has alone."""
    rng = random.Random(program.seed)
    graph = weft.Graph()
    oracle = Oracle(program)
    expect = oracle.expect(program.arguments(program.argsets[0], laid))
    scope = prelude.scope()
    function, _ = load(program.source(), scope)(lambda f: f, weft.Variable)
    numbers = [at for at, leaf in enumerate(program.leaves) if leaf.kind != "array"]
    with graph.as_default():
        holders = [program.argsets[0].leaves[at] if at in numbers else weft.placeholder(
            np.dtype(leaf.dtype).name if leaf.dtype != "?" else "bool",
            tuple(None if isinstance(dim, str) else dim for dim in leaf.dims), name=leaf.name)
            for at, leaf in enumerate(program.leaves)]
        try:
            values = list(function(*holders))
        except weft.Error as problem:
            if problem.code in UNSUPPORTED or (program.dynamic and problem.code in SYMBOLIC):
                raise Refused(problem) from None
            if expect.base.error is not None:
                raise Refused(problem) from None
            raise
    names = program.outputs()
    # A copy is the same value of the graph, which can be fed only once.
    taken = {id(holder.value) for holder in holders if hasattr(holder, "value")}
    pairs = []
    for name, value in zip(names, values, strict=True):
        if hasattr(value, "value") and id(value.value) not in taken:
            taken.add(id(value.value))
            pairs.append((name, value))
    argset = program.argsets[0]
    feeds = {holder: laid(value, layout) for at, (holder, value, layout) in enumerate(zip(
        holders, argset.leaves, argset.layouts, strict=True)) if at not in numbers}
    settings = program.settings[0]
    session = weft.Session(graph, opt=settings.opt, target=settings.target,
                           threads=settings.threads)
    alone = _alone(program, session, pairs, feeds, expect, mismatch)
    known = {name: value for name, value in pairs if name in alone}
    for _ in range(3):
        fetched = rng.sample(list(known), rng.randint(1, len(known))) if known else []
        fed = rng.sample(list(known), rng.randint(0, min(2, len(known))))
        nest = {name: known[name] for name in fetched}
        given = {known[name]: alone[name] for name in fed}
        got = session.run(nest, {**feeds, **given})
        if list(got) != fetched:
            raise mismatch("a dict of fetches comes back in another order\n"
                           f"{fetched}\n{list(got)}", argset)
        for name in fetched:
            if not np.all(equal(np.asarray(got[name]), np.asarray(alone[name]))):
                raise mismatch(f"{name} fetched with {fetched}, fed {fed}, is not what it is alone",
                               argset)


def _alone(program: Program, session: Any, pairs: list[tuple[str, Any]], feeds: dict[Any, Any],
           expect: Any, mismatch: type[Exception]) -> dict[str, Any]:
    """Each value alone: what NumPy gives, or an error where NumPy has one."""
    found = {}
    names = program.outputs()
    for name, value in pairs:
        try:
            got = session.run(value, feeds)
        except weft.Error as problem:
            if expect.base.error is None:
                raise mismatch(f"{name} alone: {problem.code} {problem.message}",
                               program.argsets[0]) from None
            continue
        found[name] = got
        if expect.base.error is None:
            at = names.index(name)
            shaken = [answer.results[at] for answer in expect.shaken if answer.error is None]
            problem_text = differs(np.asarray(got), np.asarray(expect.base.results[at]), shaken,
                                   program.tags.get(name, "close") != "exact")
            if problem_text:
                raise mismatch(f"{name} fetched alone is {problem_text}", program.argsets[0])
    return found

