"""What has to be equal: NumPy's results and Weft's, under any way to compile and to call.

For each set of arguments: the same exception or not, the same nest with the same dtypes and shapes,
the same values as far as they are certain, the same variables; the same bits under both settings,
in a second call, and from several threads at once; and arguments that are as they were. Threads
that share variables leave in them what calls in turn would leave.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import weft

from .check_grad import check_grad
from .check_session import check_session
from .check_stages import check_interpreter, check_stages
from .compiled import PLAIN, Compiled, Refused
from .excused import excused, of_python
from .jitter import is_whole
from .oracle import Answer, Expected, Oracle, differs, equal, same_bits
from .prelude import laid
from .program import ArgSet, Program, Settings


class Mismatch(Exception):  # noqa: N818
    """What is wrong, and with which arguments and settings it shows."""

    def __init__(self, what: str, argset: ArgSet | None = None,
                 settings: Settings | None = None) -> None:
        super().__init__(what)
        self.what, self.argset, self.settings = what, argset, settings


@dataclass(frozen=True)
class Outcome:
    """ok, refused or finding."""

    verdict: str
    what: str = ""


ROUNDS = 3  # of calls from several threads

KINDS: dict[str, Callable[[Program], None]] = {}


def check(program: Program) -> Outcome:
    """Run a program every way that it asks for."""
    try:
        with np.errstate(all="ignore"):
            KINDS[program.kind](program)
    except Refused as problem:
        return Outcome("refused", str(problem))
    except Mismatch as problem:
        return Outcome("finding", problem.what)
    except Exception as problem:  # whatever else leaves Weft is a defect, too
        code = f"{problem.code} " if isinstance(problem, weft.Error) else ""
        return Outcome("finding", f"{type(problem).__name__}: {code}{str(problem)[:300]}")
    return Outcome("ok")


def check_call(program: Program) -> None:
    """A compiled function beside the Python function."""
    oracle = Oracle(program)
    calls = [program.arguments(argset, laid) for argset in program.argsets]
    first = [held.value for held in oracle.held]
    answers: list[list[Answer]] = []
    for settings in dict.fromkeys(program.settings):
        compiled = Compiled(program, settings)
        compiled.assign(first)
        for held, value in zip(oracle.held, first, strict=True):
            held.value = value
        answers.append(_compare(program, compiled, oracle, calls, settings))
    for at, (one, other) in enumerate(zip(answers[0], answers[-1], strict=True)):
        problem = same_bits(one, other)
        if problem:
            raise Mismatch(f"{program.settings[0].text()} and {program.settings[1].text()} "
                           f"differ: {problem}", program.argsets[at])


def _compare(program: Program, compiled: Compiled, oracle: Oracle, calls: Sequence[list[Any]],
             settings: Settings) -> list[Answer]:
    answers = []
    try:
        traced = compiled.trace(calls[0])
    except (weft.Error, IndexError, *PLAIN) as problem:
        # NumPy has to raise, too; with symbolic dims, this or another error for all sizes.
        wanted = oracle.run(calls[0], None).error
        if wanted is None or not _in_its_words(problem, wanted):
            raise Mismatch(f"{code(problem)} while tracing: {problem}",
                           program.argsets[0], settings) from None
        raise Refused(problem) from None
    agreed = []
    for at, args in enumerate(calls):
        copies = [np.array(leaf) for leaf in program.argsets[at].leaves]
        expect = oracle.expect(args)
        got = compiled.run(args)
        if got.error is not None and excused(program, got.error, oracle, args, calls):
            answers.append(got)
            continue
        _same_answer(program, got, expect, at, settings, lambda args=args: oracle.expect(args, 32))
        for leaf, value, copy in zip(program.leaves, program.argsets[at].leaves, copies,
                                     strict=True):
            if not np.all(equal(np.asarray(value), copy)):
                raise Mismatch(f"argument {leaf.name} was changed", program.argsets[at], settings)
        for held, value in zip(oracle.held, got.held, strict=True):
            held.value = value
        answers.append(got)
        if got.error is None and expect.base.error is None:
            agreed.append(args)
    if "again" in program.checks:
        _again(program, compiled, calls, answers, settings)
    if "shared" in program.checks:
        _shared(program, compiled, oracle, agreed, settings)
    if "interpreter" in program.checks:
        check_interpreter(program, traced, Mismatch)
    if "stages" in program.checks:
        check_stages(program, traced, settings, Mismatch)
    return answers


def _same_answer(program: Program, got: Answer, expect: Expected, at: int, settings: Settings,
                 sure: Callable[[], Expected]) -> None:
    """Compare one call. What differs is looked at once more with many shaken runs."""
    problem = _problem(program, got, expect)
    if problem and expect.shaken:
        problem = _problem(program, got, sure())
    if problem:
        raise Mismatch(problem, program.argsets[at], settings)


def _problem(program: Program, got: Answer, expect: Expected) -> str:
    base = expect.base
    if expect.trimmed:
        return ""
    if got.error is not None and base.error is not None:
        return _other_error(program, got.error, base.error, expect.later) or _held_problem(
            program, got, base, [])
    if got.error is not None:
        if any(answer.error is not None for answer in expect.shaken):
            return ""
        return f"{code(got.error)} at a call: {got.error}".split("\n")[0]
    if base.error is not None:
        if of_python(program, base.error):
            return ""
        if expect.unneeded is None:
            return f"no error, NumPy raises {type(base.error).__name__}: {base.error}"
        base = expect.unneeded
    shaken = [answer for answer in expect.shaken if answer.error is None]
    if got.shape != base.shape:
        return f"results in another nest\n{got.shape}\n{base.shape}"
    for at, name in enumerate(program.outputs()):
        loose = program.tags.get(name, "close") != "exact"
        problem = differs(got.results[at], base.results[at],
                          [answer.results[at] for answer in shaken], loose)
        if problem:
            return f"{name} is {problem}"
    return _held_problem(program, got, base, shaken)


def _held_problem(program: Program, got: Answer, base: Answer, shaken: list[Answer]) -> str:
    for at, (name, _) in enumerate(program.variables):
        problem = differs(got.held[at], base.held[at], [answer.held[at] for answer in shaken], True)
        if problem:
            return f"variable {name} is {problem}"
    return ""


def _other_error(program: Program, got: Exception, base: Exception,
                 later: Sequence[Exception]) -> str:
    """Why an error is another kind of error than NumPy's, or than those it would come to."""
    if not any(_in_its_words(got, each) for each in (base, *later)):
        return f"{type(got).__name__}: {got}; NumPy raises {type(base).__name__}: {base}"
    if isinstance(got, (type(base), *map(type, later))) or of_python(program, base):
        return ""
    if isinstance(base, np.linalg.LinAlgError) and isinstance(got, ValueError):
        return ""  # a wrong shape is W102 wherever it is found, a ValueError as LinAlgError is one
    if code(got) == "W102" and re.search(r"\(.* is \d+\)", str(got)):
        return ""  # sizes are looked at before a step begins
    return f"{type(got).__name__} {code(got)}, NumPy raises {type(base).__name__}: {base}"


def _in_its_words(got: Exception, wanted: Exception) -> bool:
    """Whether an error that is not of Weft says what NumPy says."""
    return not Compiled.is_plain(got) or (type(got), str(got)) == (type(wanted), str(wanted))


def code(problem: Exception) -> str:
    """Weft's code of an error, if it is one of its own."""
    return str(getattr(problem, "code", ""))


def _again(program: Program, compiled: Compiled, calls: Sequence[list[Any]],
           answers: Sequence[Answer], settings: Settings) -> None:
    """Second calls give the same bits, and leave the first results alone."""
    kept = [[np.array(leaf) for leaf in answer.results] for answer in answers]
    rounds = [[compiled.run(args)] for args in calls]
    if "threads" in program.checks:
        rounds = compiled.run_at_once(calls)
    for at, repeated in enumerate(rounds):
        for answer in repeated:
            problem = same_bits(answers[at], answer)
            if problem:
                how = "at once" if "threads" in program.checks else "again"
                raise Mismatch(f"called {how}: {problem}", program.argsets[at], settings)
        for leaf, copy in zip(answers[at].results, kept[at], strict=True):
            if not np.all(equal(np.asarray(leaf), copy)):
                raise Mismatch("a later call changed an earlier result", program.argsets[at],
                               settings)


def _shared(program: Program, compiled: Compiled, oracle: Oracle, calls: Sequence[list[Any]],
            settings: Settings) -> None:
    """Calls at once leave what calls one after the other leave, if no order matters to that."""
    if not calls:
        return
    start = [held.value for held in oracle.held]
    turns = [*range(len(calls))]  # each call is once the last one
    orders = [[at for at in turns for _ in range(ROUNDS)],
              *((turns[at:] + turns[:at]) * ROUNDS for at in turns)]
    want, *others = (_in_turn(oracle, calls, order, start) for order in orders)
    if not all(map(is_whole, want)) or any(same_bits(Answer([*want]), Answer([*other]))
                                           for other in others):
        return
    compiled.assign(start)
    for answer in itertools.chain(*compiled.run_at_once(calls, ROUNDS)):
        if answer.error is not None:
            raise Mismatch(f"called at once: {answer.error}", None, settings)
    for (name, _), got, value in zip(program.variables, compiled.values(), want, strict=True):
        problem = differs(got, value, (), True)
        if problem:
            raise Mismatch(f"calls at once: variable {name} is {problem}", None, settings)
    compiled.assign(start)


def _in_turn(oracle: Oracle, calls: Sequence[list[Any]], order: Sequence[int],
             start: Sequence[Any]) -> list[Any]:
    """The variables after calls in that order."""
    for held, value in zip(oracle.held, start, strict=True):
        held.value = value
    for at in order:
        for held, value in zip(oracle.held, oracle.run(calls[at], None).held, strict=True):
            held.value = value
    found = [held.value for held in oracle.held]
    for held, value in zip(oracle.held, start, strict=True):
        held.value = value
    return found


KINDS |= {"call": check_call, "grad": lambda program: check_grad(program, Mismatch),
          "session": lambda program: check_session(program, Mismatch)}
