"""Short ways into a specialisation: functions of a call's arguments by position.

Each gives the result, or NotImplemented, with nothing done, for arguments that are not for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..face.held import held
from ..tracing.guards.guard import Guards
from ..tracing.trace import CONVERSIONS


def miss(*args: Any) -> Any:
    """The way of a function that has no program yet."""
    return NotImplemented


def avoiding(rivals: Sequence[tuple[int, Any]], way: Callable[..., Any]) -> Callable[..., Any]:
    """A way that leaves calls with these values to the specialisation that has them built in: a
    call's code must not depend on which calls were made before."""
    def guarded(*args: Any) -> Any:
        for at, value in rivals:
            if len(args) > at and type(args[at]) is type(value) and args[at] == value:
                return NotImplemented
        return way(*args)

    return guarded


def guarded(guards: Guards, way: Callable[..., Any]) -> Callable[..., Any]:
    """A way for as long as the guards of a program hold."""
    def checked(*args: Any) -> Any:
        return way(*args) if guards.hold() or guards.failed() is None else NotImplemented

    return checked


def numbers(kinds: Sequence[str], way: Callable[..., Any], *, single: bool) -> Callable[..., Any]:
    """A way whose results are Python numbers, or arrays without dims, where that is their kind,
    and NumPy's scalars else."""
    made = [CONVERSIONS.get(kind) for kind in kinds]
    only: Any = made[0]

    def one(*args: Any) -> Any:
        result = way(*args)
        return result if result is NotImplemented else only(result)

    def several(*args: Any) -> Any:
        results = way(*args)
        return results if results is NotImplemented else tuple([
            result if convert is None else convert(result)
            for result, convert in zip(results, made, strict=True)])

    return one if single else several


def without(
    fixed: Sequence[tuple[int, Any, Hashable]], places: Sequence[int], way: Callable[..., Any]
) -> Callable[..., Any]:
    """A way for calls with these very objects among the arguments, which are not passed on; with a
    key, for functions and objects that hold the same."""
    count = len(fixed) + len(places)

    def chosen(*args: Any) -> Any:
        if len(args) != count:
            return NotImplemented
        for at, value, key in fixed:
            if args[at] is not value if key is None else (
                    type(args[at]) is not type(value) or held(args[at]) != key):
                return NotImplemented
        return way(*[args[at] for at in places])

    return chosen
