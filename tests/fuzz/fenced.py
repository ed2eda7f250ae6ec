"""Random programs whose memory is fenced by pages that may not be touched (``support.fenced``).

    python -m fuzz.fenced --count 2000 --log fenced.log         run in tests/

A finding is a program that ends its process, writes beside its arrays, or has other bits than in
ordinary memory. Queues, variables and arguments that are written are left to the other commands.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from support.fenced import fenced_runs

from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.ir.graph import talks

from .check import Outcome
from .check_stages import arrays_of, check_sizes
from .command import main
from .compiled import ERRORS, Compiled, Refused
from .draw import program
from .nested.worker import main as work
from .prelude import laid
from .program import Program, flat
from .script import script

WORKER = (sys.executable, "-m", "fuzz.fenced", "--worker")


def check(program: Program) -> Outcome:
    """Run a program for each set of its arguments, with pages on both sides."""
    if program.kind != "call" or program.variables:
        return Outcome("refused", "no function of arguments alone")
    settings = program.settings[0]
    compiled = Compiled(program, settings)
    calls = [program.arguments(argset, laid) for argset in program.argsets]
    try:
        traced = compiled.trace(calls[0])
    except (Refused, *ERRORS) as problem:
        return Outcome("refused", str(problem))
    if any(map(talks, traced.graph.nodes)):
        return Outcome("refused", "the host takes part")
    stages = Stages(traced.graph, Options(settings.opt, settings.runnable, settings.threads))
    for at, args in enumerate(calls):
        arrays = arrays_of(program, traced, at)
        try:
            check_sizes(traced.graph, arrays)  # others are for another trace
            wanted = [np.asarray(x) for x in flat(compiled.staged(*args))[0]]
        except ERRORS:
            continue
        for run in fenced_runs(stages, arrays, wanted):
            same = all(got.tobytes() == want.tobytes() for got, want in zip(
                run.results, wanted, strict=True))
            if run.status or not run.intact or not same:
                return Outcome("finding", f"{run.side}: status {run.status}, " + (
                    "a write outside of its array" if not run.intact else "other bits"))
    return Outcome("ok")


def report(seed: int, number: int, seconds: float) -> dict[str, Any]:
    """Run one program."""
    drawn = program(seed, number)
    with np.errstate(all="ignore"):
        outcome = check(drawn)
    found: dict[str, Any] = {"done": number, "verdict": outcome.verdict, "what": outcome.what,
                             "features": drawn.features}
    if outcome.verdict == "finding":
        found["script"] = script(drawn, outcome.what)
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2:], report)
    else:
        sys.exit(main("python -m fuzz.fenced", __doc__, command=WORKER))
