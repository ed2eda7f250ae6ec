"""The same program as a graph: any set of values fetched, any set of values fed."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np

import weft

from . import prelude
from .compiled import ERRORS, SYMBOLIC, UNSUPPORTED, Refused
from .excused import excused, of_python
from .oracle import Answer, Expected, Oracle, differs, equal, load
from .prelude import laid
from .program import ArgSet, Program


def check_session(program: Program, mismatch: type[Exception]) -> None:
    """Each value fetched alone is NumPy's; in any company it has the bits it has alone."""
    program = _with_constant_numbers(program)
    graph, holders, pairs = _drawn(program)
    settings = program.settings[0]
    session = weft.Session(graph, opt=settings.opt, target=settings.runnable,
                           threads=settings.threads)
    for argset in program.argsets:
        feeds = {holder: laid(value, layout) for holder, value, layout in zip(
            holders, argset.leaves, argset.layouts, strict=True) if hasattr(holder, "value")}
        alone = _alone(program, argset, session, pairs, feeds, mismatch)
        known = {name: value for name, value in pairs if name in alone}
        if known:
            _in_company(program, argset, session, known, alone, feeds, mismatch)


def _with_constant_numbers(program: Program) -> Program:
    """The numbers among the leaves are part of the graph: the first ones, for all arguments."""
    first = program.argsets[0].leaves
    return replace(program, argsets=tuple(
        replace(argset, leaves=tuple(
            value if leaf.kind == "array" else first[at]
            for at, (leaf, value) in enumerate(zip(program.leaves, argset.leaves, strict=True))))
        for argset in program.argsets))


def _drawn(program: Program) -> tuple[Any, list[Any], list[tuple[str, Any]]]:
    """The graph, its placeholders or numbers, and the values that can be fetched."""
    graph = weft.Graph()
    function, _ = load(program.source(), prelude.scope())(lambda f: f, weft.Variable)
    first = program.argsets[0]
    with graph.as_default():
        holders = [value if leaf.kind != "array" else weft.placeholder(
            np.dtype(leaf.dtype).name if leaf.dtype != "?" else "bool",
            tuple(None if isinstance(dim, str) else dim for dim in leaf.dims), name=leaf.name)
            for leaf, value in zip(program.leaves, first.leaves, strict=True)]
        try:
            values = list(weft.compile(function)(*holders))
        except weft.Error as problem:
            if problem.code in UNSUPPORTED or (program.dynamic and problem.code in SYMBOLIC):
                raise Refused(problem) from None
            if Oracle(program).run(program.arguments(first, laid), None).error is not None:
                raise Refused(problem) from None
            raise
        except (ZeroDivisionError, ValueError) as problem:
            if of_python(program, problem):
                raise Refused(problem) from None
            raise
    # A copy is the same value of the graph, which can be fed only once.
    taken = {id(holder.value) for holder in holders if hasattr(holder, "value")}
    pairs = []
    for name, value in zip(program.outputs(), values, strict=True):
        if hasattr(value, "value") and id(value.value) not in taken:
            taken.add(id(value.value))
            pairs.append((name, value))
    return graph, holders, pairs


def _in_company(program: Program, argset: ArgSet, session: Any, known: dict[str, Any],
                alone: dict[str, Any], feeds: dict[Any, Any],
                mismatch: type[Exception]) -> None:
    """Some values fetched together, others of them fed, have the bits that they have alone."""
    rng = random.Random(program.seed)
    for _ in range(3):
        fetched = rng.sample(list(known), rng.randint(1, len(known)))
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


def _alone(program: Program, argset: ArgSet, session: Any, pairs: list[tuple[str, Any]],
           feeds: dict[Any, Any], mismatch: type[Exception]) -> dict[str, Any]:
    """Each value alone, which is NumPy's, but for those that are errors in NumPy, too."""
    found = {}
    names = program.outputs()
    whole = Oracle(program).expect(program.arguments(argset, laid))
    for name, value in pairs:
        oracle, expect = Oracle(program), _part(whole, names.index(name))
        if whole.base.error is not None:  # perhaps of another value
            oracle = Oracle(replace(program, result=("tuple", [name])).alive())
            expect = oracle.expect(program.arguments(argset, laid))
        try:
            got = session.run(value, feeds)
        except ERRORS as problem:
            calls = [program.arguments(other, laid) for other in program.argsets]
            if expect.base.error is None and not excused(
                    program, problem, oracle, program.arguments(argset, laid), calls):
                raise mismatch(f"{name} alone: {problem}", argset) from None
            continue
        wrong = _problem(program, name, got, expect)
        if wrong and expect.shaken:  # looked at once more with many shaken runs
            sure = oracle.expect(program.arguments(argset, laid), 32)
            expect = sure if whole.base.error is not None else _part(sure, names.index(name))
            wrong = _problem(program, name, got, expect)
        if wrong:
            raise mismatch(wrong, argset)
        found[name] = got
    return found


def _part(whole: Expected, at: int) -> Expected:
    """What is expected of one result."""
    def part(answer: Answer | None) -> Answer | None:
        return answer and replace(answer, results=answer.results[at:at + 1])

    return Expected(part(whole.base), [part(answer) for answer in whole.shaken],  # type: ignore
                    part(whole.unneeded), trimmed=whole.trimmed)


def _problem(program: Program, name: str, got: Any, expect: Expected) -> str:
    base = expect.base
    if expect.trimmed:
        return ""
    if base.error is not None:
        if of_python(program, base.error):
            return ""
        if expect.unneeded is None:
            return f"{name} alone: no error, NumPy raises {base.error}"
        base = expect.unneeded
    shaken = [answer.results[0] for answer in expect.shaken if answer.error is None]
    problem = differs(np.asarray(got), np.asarray(base.results[0]), shaken,
                      program.tags.get(name, "close") != "exact")
    return problem and f"{name} fetched alone is {problem}"
