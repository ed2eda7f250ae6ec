"""A smaller program with the same defect: fewer arguments, steps, results and ways to run.

Greedy: each round tries all ways to make the program smaller and keeps what still fails. A value
may be replaced by an operand of the step that makes it, so steps go from the middle, too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from .program import ArgSet, Program, Settings, Step, paths

Fails = Callable[[Program], bool]


def signature(what: str) -> str:
    """A message without its numbers and names, so that smaller programs have the same one."""
    words = what.split("\n")[0]
    return re.sub(r"\[.*?\]|'.*?'|\(.*?\)|-?\b[a-z]+\d+\b|[-+]?[\d.]+(e[-+]?\d+)?|nan|inf", "_",
                  words)[:60]


def minimise(program: Program, fails: Fails, seconds: float = 20.0) -> Program:
    """The smallest program found in that time for which ``fails`` holds."""
    end = time.monotonic() + seconds
    smaller = True
    while smaller and time.monotonic() < end:
        smaller = False
        for candidate in _candidates(program):
            if time.monotonic() > end:
                break
            if fails(candidate):
                program, smaller = candidate, True
                break
    return program


def _candidates(program: Program) -> Iterator[Program]:
    if len(program.argsets) > 1:
        yield from (replace(program, argsets=(argset,)) for argset in program.argsets)
        yield from (replace(program, argsets=program.argsets[:-1]) for _ in range(1))
        yield replace(program, argsets=program.argsets[1:])
    if any(argset.order for argset in program.argsets):
        yield replace(program, argsets=tuple(replace(argset, order=0)
                                             for argset in program.argsets))
    simple = Settings()
    for settings in ((simple, simple), *((way, way) for way in program.settings)):
        if settings != program.settings and program.settings != (simple, simple):
            yield replace(program, settings=settings)
    yield from (replace(program, checks=program.checks - {check})
                for check in sorted(program.checks))
    yield from _results(program)
    if any(not isinstance(param, str) for param in program.params):
        names = [name for at, param in enumerate(program.params)
                 for _, name in paths(param, f"p{at}")]
        yield replace(program, params=tuple(names))
    for at, step in enumerate(program.steps):
        yield from (_without(program, at, other) for other in step.operands) if step.out else iter(
            [replace(program, steps=program.steps[:at] + program.steps[at + 1:]).alive()])
    for at, inner in enumerate(program.inners):
        for name in (*inner.params, *(step.out for step in inner.steps)):
            if name != inner.result:
                inners = list(program.inners)
                inners[at] = replace(inner, result=name)
                yield replace(program, inners=tuple(inners)).alive()
    yield from _without_leaves(program)
    for layouts in ("C",):
        plain = tuple(ArgSet(argset.leaves, (layouts,) * len(argset.leaves), argset.order)
                      for argset in program.argsets)
        if plain != program.argsets:
            yield replace(program, argsets=plain)


def _results(program: Program) -> Iterator[Program]:
    names = program.outputs()
    if program.kind == "grad":
        return
    if program.kind == "session":
        if len(names) > 1:
            yield from (replace(program, result=("tuple", [x for x in names if x != name])).alive()
                        for name in names)
    elif not isinstance(program.result, str):
        yield from (replace(program, result=name).alive() for name in names)
        if program.result != ("tuple", names):
            yield replace(program, result=("tuple", names))


def _without(program: Program, at: int, other: str) -> Program:
    """Without a step, and ``other`` for its value."""
    gone = program.steps[at].out

    def renamed(step: Step) -> Step:
        return replace(step, operands=tuple(other if x == gone else x for x in step.operands))

    steps = tuple(renamed(step) for number, step in enumerate(program.steps) if number != at)
    result = _renamed(program.result, gone, other)
    tags = {**program.tags, other: program.tags.get(gone, "close")}
    return replace(program, steps=steps, result=result, tags=tags).alive()


def _renamed(nest: object, gone: str, other: str) -> object:
    if isinstance(nest, str):
        return other if nest == gone else nest
    kind, items = nest  # type: ignore[misc]
    if kind == "dict":
        return kind, [(key, _renamed(item, gone, other)) for key, item in items]
    return kind, [_renamed(item, gone, other) for item in items]


def _without_leaves(program: Program) -> Iterator[Program]:
    """Without arguments that nothing reads; where parameters are leaves."""
    used = {x for step in program.steps for x in step.operands} | set(program.outputs())
    for at, leaf in enumerate(program.leaves):
        if leaf.name in used or leaf.name not in program.params or len(program.leaves) == 1:
            continue
        argsets = tuple(replace(argset, leaves=argset.leaves[:at] + argset.leaves[at + 1:],
                                layouts=argset.layouts[:at] + argset.layouts[at + 1:])
                        for argset in program.argsets)
        yield replace(program, leaves=program.leaves[:at] + program.leaves[at + 1:],
                      params=tuple(x for x in program.params if x != leaf.name), argsets=argsets)
