"""``f.explain()``: the programs of a function, and why there are so many; data, and a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ....ir.indices.index import Dim
from ....ir.record import record
from ...face import tree
from ...face.signature import Signature
from ...tracing.guards.guard import Guard
from .adopted import Made
from .history import KEPT, Change, Dropped, History
from .sizes import Dynamic, accepted, alike, dynamics_for


@record(frozen=True)
class Assumption:
    """What a program takes for granted of the world around its function: ``path`` is as users write
    it, ``holds`` whether it is so now."""

    path: str
    kind: str
    expected: str
    holds: bool
    text: str

    def __str__(self) -> str:
        return self.text


@record(frozen=True)
class Program:
    """One program: the types of its arguments by name, what it cost, what it does."""

    arguments: Mapping[str, str]
    milliseconds: float
    launches: int
    arena: Dim | str  # in bytes
    guards: tuple[Assumption, ...]

    def __str__(self) -> str:
        return (f"({_typed(self.arguments)})  {self.milliseconds:.0f} ms, {self.launches} "
                f"launches, arena {self.arena} bytes")


@record(frozen=True)
class Explanation:
    """The programs of a function, and what they were made for; ``str()`` is a table.

    ``changes`` has an entry for each kind of change and argument, ``counts`` the number of programs
    by kind. ``static`` are arguments that are static by themselves, with the reason. ``dynamic`` is
    what ``weft.compile(dynamic=)`` had better be, None if no size has changed or none would do.
    """

    name: str
    programs: tuple[Program, ...]
    changes: tuple[Change, ...]
    counts: Mapping[str, int]
    static: Mapping[str, str]
    dropped: tuple[Dropped, ...]
    dynamic: Dynamic | None

    def __str__(self) -> str:
        lines = [f"{self.name}: {len(self.programs)} specialisations"]
        for number, program in enumerate(self.programs, 1):
            lines.append(f"  {number}. {program}")
            lines += [f"     as long as {guard}" for guard in program.guards]
        lines += [f"  {each}" for each in self.changes]
        lines += [f"  '{name}' is static: {why}, so each value has a program of its own"
                  for name, why in self.static.items()]
        if self.dropped:
            lines.append(f"  {len(self.dropped)} were dropped, as {KEPT} are kept; the last was "
                         f"({_typed(self.dropped[-1].arguments)})")
        if self.dynamic is not None:
            lines.append(f"  one program for all sizes: weft.compile(dynamic={self.dynamic})")
        return "\n".join(lines)


def _typed(arguments: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {type_}" for name, type_ in arguments.items())


def explained(
    name: str, all_made: Sequence[Made], signature: Signature, fixed: Mapping[str, str],
    history: History,
) -> Explanation:
    """The explanation of a function that has these programs. ``fixed``: arguments that have become
    static because their values were asked for, and why."""
    by_kind = {argument: f"it is {what}" for made in all_made
               for argument, below in signature.statics(made.in_tree).items()
               if (what := tree.constant(below.meta))}
    return Explanation(
        name, tuple([_program(made) for made in all_made]), (*history.changes.values(),),
        dict(history.counts), {**by_kind, **fixed}, (*history.dropped.values(),),
        _dynamic(all_made, signature, history))


def _program(made: Made) -> Program:
    return Program(made.signature(), made.milliseconds, made.launches, made.arena,
                   tuple(map(_assumption, made.guards)))


def _assumption(guard: Guard) -> Assumption:
    return Assumption(str(guard.path), guard.kind.name.lower(), guard.wanted(), guard.holds(),
                      guard.said())


def _dynamic(
    all_made: Iterable[Made], signature: Signature, history: History
) -> Dynamic | None:
    """The dims that have changed in the latest calls that differ in their sizes; None where they
    were tried in vain."""
    every = [(made.names, made.types) for made in all_made]
    for calls in reversed(alike(every)):
        for dynamic in dynamics_for(calls, signature):
            if accepted(dynamic, every, signature) and history.advised.get(repr(dynamic), True):
                return dynamic
    return None
