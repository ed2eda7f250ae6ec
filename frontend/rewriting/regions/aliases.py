"""Lists and dicts that several names of a loop have.

    a = b = [0.0, 0.0]        a round begins with one list for both names, as the first one does
    nest = {"in": a}          and so it must end: a list that is changed in place must not be what
                              another name has in some rounds only
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ....ir.diagnose import error
from ...face.source import user_loc
from .nests import Path, items_of, lists_of
from .state import Entry, filled


def shared_alike(
    value: Any, like: Any, path: Path, apart: Collection[Path], made: dict[int, Any]
) -> Any:
    """A nest that was just built, in which lists are one where they are one in another nest of its
    structure, but for those at the places that are ``apart``. ``made`` are those so far, by those
    of the other one."""
    if type(value) is not type(like) or type(value) not in (list, tuple, dict):
        return value
    if path not in apart and id(like) in made:
        return made[id(like)]
    parts = {at: shared_alike(item, like[at], (*path, at), apart, made)
             for at, item in items_of(value)}
    if type(value) is tuple:
        return tuple(parts.values())
    filled(value, parts)
    return value if path in apart else made.setdefault(id(like), value)


def parted(
    names: Sequence[str], first: Sequence[Any], entry: Entry, after: Sequence[Any],
    apart: set[Path],
) -> bool:
    """Whether names have one list when the first round begins and two when a round has ended; then
    they are ``apart``. Raises TracerError (W203) where a round changes such a list in place, or one
    that becomes one with another."""
    begun, ended = dict(lists_of(first)), dict(lists_of(after))
    copies = dict(lists_of(entry.values))
    one, other = _firsts(begun), _firsts(ended)
    found = {path for path in begun.keys() & ended.keys() if one[path] != other[path]}
    for path in found:
        twin = one[path] if one[path] != path else other[path]
        if any(entry.changed(copies[each]) for each in (path, twin) if each in copies):
            raise error(
                "W203", f"{names[path[0]]} and {names[twin[0]]} have one "
                f"{type(begun[path]).__name__} in some rounds only", locs=user_loc(),
                hint="copy it where it gets its second name: y = x.copy()")
    new = {path for path in found if one[path] != path} - apart
    apart |= new
    return bool(new)


def _firsts(lists: Mapping[Path, Any]) -> dict[Path, Path]:
    """Of each list, the place where it comes first."""
    firsts: dict[int, Path] = {}
    return {path: firsts.setdefault(id(value), path) for path, value in lists.items()}


def returned(
    value: Any, after: Any, entry: Entry, start: Any, before: Any, made: dict[int, Any]
) -> Any:
    """The value of a name after a loop: lists and dicts that a round leaves in the places where it
    found them are those from ``before`` the loop."""
    kind = type(value)
    if kind not in (list, tuple, dict) or type(after) is not kind:
        return value
    if id(after) in made:
        return made[id(after)]
    kept = type(before) is kind and (kind is tuple or entry.origin(after) is start)
    begun, given = (start, before) if kept else (None, None)
    parts = {at: returned(item, after[at], entry, _item(begun, at), _item(given, at), made)
             for at, item in items_of(value)}
    if kind is tuple:
        return tuple(parts.values())
    made[id(after)] = filled(before if kept else value, parts)
    return made[id(after)]


def _item(nest: Any, at: Any) -> Any:
    return next((item for place, item in items_of(nest) if place == at), None)
