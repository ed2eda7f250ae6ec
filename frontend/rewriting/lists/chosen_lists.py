"""Lists and dicts of which it depends on the way whether they are one that is there already.

    side = left if x < 0 else right     a list of its own here, with the items of the one or the
    side[0] += x                        other: so neither of the three may be changed afterwards

It is no matter where nobody has what it may be: ``a, b = b, a`` in a branch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ....ir.diagnose import error
from ...face.source import user_loc
from ...tracing.context.active import current
from ..regions.nests import lists_of
from ..regions.state import Ways


def watch(made: Iterable[tuple[Ways, Any]], before: Sequence[Any], after: Sequence[Any]) -> None:
    """Look after what a branch has made of lists, with what each way has left; names had the lists
    ``before`` and have the values ``after``. The trace raises TracerError (W203) at its end if one
    of them was changed that may be another."""
    gone = {id(each) for each in before} - {id(each) for _, each in lists_of(after)}
    for ways, result in made:
        rivals = [each for each in _there(ways) if id(each) not in gone and each is not result]
        if rivals:
            watch_one(result, rivals)


def watch_one(result: Any, rivals: Sequence[Any]) -> None:
    """The same of a list that may be one of several."""
    current().at_end.append(_Watched(result, rivals).check)


def _there(ways: Ways) -> list[Any]:
    """The lists that are around the branch; all of them have one kind."""
    found = []
    for (entry, value), count in zip(ways, _references(ways), strict=True):
        origin = entry.origin(value)
        if origin is not None:
            found.append(origin)
        elif count > _ALONE:
            found.append(value)
    return found


def _references(ways: Sequence[tuple[Any, Any]]) -> list[int]:
    return [sys.getrefcount(value) for _, value in ways]


def _alone() -> int:
    """How many references there are to a list that is in one thing only, and in a way."""
    box: list[list[Any]] = [[]]
    return _references([(None, box[0])])[0]


_ALONE = _alone()


class _Watched:
    """A list and those that it may be, with what is in them."""

    def __init__(self, result: Any, rivals: Sequence[Any]) -> None:
        self.states = [(each, _state(each)) for each in (result, *rivals)]
        self.locs = user_loc()

    def check(self) -> None:
        for each, state in self.states:
            if not _same(_state(each), state):
                kind = type(each).__name__
                raise error("W203", f"it depends on values which {kind} this is, and one that it "
                                    "may be is changed afterwards", locs=self.locs,
                            hint=f"change each {kind} on its own way, or copy it: y = x.copy()")


def _state(nest: Any) -> Any:
    return [*nest.items()] if isinstance(nest, dict) else [*nest]


def _same(one: Any, other: Any) -> bool:
    if type(one) is type(other) and isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_is, one, other))
    return one is other


def _is(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, tuple) and _same(one, other))
