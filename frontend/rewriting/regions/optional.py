"""Names that are None on one way only, or before a loop and not after a round.

    best = None
    if x[0] > 0: best = x[1]      one way leaves None, the other one a number: both are traced
                                  again, with a ``Maybe`` at their ends

A program is traced so only where it cannot be traced otherwise: what is known to be there needs no
flag, and no check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....ir.record import replace
from ....ir.types import TensorType
from ...tracing.arrays.items import Item
from ...tracing.arrays.maybe import Maybe, is_maybe, is_optional
from ...tracing.arrays.selection import Firsts
from ...tracing.context.active import active
from ...tracing.context.distance import goes_by_rounds
from .rows import (
    Masked,
    Rows,
    as_masked,
    as_rows,
    common_mask,
    common_rows,
    is_masked,
    is_rows,
    mask_kind,
)
from .state import UNBOUND


class Slots(dict[Any, Any]):
    """What items of lists and dicts are like, by their places, of those that may be None."""


Kind = Item | Rows | Masked | Slots


def _is_nest(value: Any) -> bool:
    return type(value) in (list, dict)


def _keys(value: Any) -> list[Any]:
    return list(value) if type(value) is dict else list(range(len(value)))


def has_kind(value: Any, kind: Kind) -> bool:
    """Whether a value is bound so already."""
    if isinstance(kind, Slots):
        return all(has_kind(value[key], each) for key, each in kind.items())
    if isinstance(kind, Rows):
        return is_rows(value, kind)
    if isinstance(kind, Masked):
        return is_masked(value, kind)
    return is_maybe(value) and bool(value.maybe.item == kind)


def kind_of(value: Any) -> Kind | None:
    """What a value that is bound so is like; None for others."""
    if is_maybe(value):
        found: Item = value.maybe.item
        return found
    if type(value) is Firsts:
        return Rows(value.array.type)
    if (mask := mask_kind(value)) is not None:
        return mask
    if not _is_nest(value):
        return None
    return Slots((key, kind) for key in _keys(value)
                 if (kind := kind_of(value[key])) is not None) or None


def counts_rows(kind: Kind | None) -> bool:
    """Whether a value of that kind is, or has, an array of which the rows are counted."""
    return isinstance(kind, Rows) or (
        isinstance(kind, Slots) and any(map(counts_rows, kind.values())))


def as_maybe(value: Any, kind: Kind) -> Any:
    """A value as one of that kind; a list or a dict is changed in place, where others have it."""
    if has_kind(value, kind):
        return value
    if isinstance(kind, Slots):
        if type(value) is tuple:
            return tuple([as_maybe(each, kind[at]) if at in kind else each
                          for at, each in enumerate(value)])
        for key, each in kind.items():
            value[key] = as_maybe(value[key], each)
        return value
    if isinstance(kind, Masked):
        return as_masked(value, kind)
    if isinstance(kind, Rows):
        return as_rows(value, kind)
    return Maybe.of(None if value is UNBOUND else value, kind).bound()


def may_be_unbound(name: str) -> str:
    """A name, if it may have a value on some ways only."""
    ctx = active()
    return name if ctx is not None and name in ctx.request.unbound else ""


def common(values: Sequence[Any], unbound: str = "") -> Kind | None:
    """What values are like of which some, or items of which, may be None; None where all are known
    to be there, or none is, or where they are not alike. ``unbound``: a name that may have none."""
    first = values[0]
    if all(value is first for value in values):
        return None
    if _is_nest(first):
        if not all(type(value) is type(first) and _keys(value) == _keys(first)
                   for value in values):
            return None
        return Slots((key, kind) for key in _keys(first)
                     if (kind := common([value[key] for value in values])) is not None) or None
    if type(first) is tuple and all(type(value) is tuple and len(value) == len(first)
                                    for value in values):
        items = [_common_arrays(items) or _common(items) for items in zip(*values, strict=True)]
        if any(items):
            return Slots((at, kind) for at, kind in enumerate(items) if kind is not None)
    return _common_arrays(values) or (_common_bound(values, unbound) if unbound else None) or (
        _common(values))


def _common_arrays(values: Sequence[Any]) -> Masked | Rows | None:
    return common_mask(values) or common_rows(values)


def _common_bound(values: Sequence[Any], name: str) -> Item | None:
    """What values are like of which some are missing."""
    missing = [value is UNBOUND or (is_maybe(value) and bool(value.maybe.item.unbound))
               for value in values]
    if not any(missing) or any(value is None or is_optional(value) for value in values):
        return None
    there = [value for value in values if value is not UNBOUND]
    found = _joined(there)
    # A value keeps the dtype of the way that has bound it: no other one is made for both.
    return None if found is None or any(
        _types(value) != found.types for value in there) else replace(found, unbound=name)


def _types(value: Any) -> tuple[TensorType, ...] | None:
    item = value.maybe.item if is_maybe(value) else Item.of(value)
    return None if item is None else item.types


def _common(values: Sequence[Any]) -> Item | None:
    if not any(value is None or is_optional(value) for value in values) or any(
            value is UNBOUND for value in values):
        return None
    found = _joined([value for value in values if value is not None])
    ctx = active()
    if ctx is not None and found is not None and not ctx.request.optional:
        ctx.asked.optional = True
        return None
    return found


def _joined(values: Sequence[Any]) -> Item | None:
    """What values are like, of which all or some are there; None if they are not alike."""
    found: Item | None = None
    for value in values:
        item = value.maybe.item if is_maybe(value) else Item.of(value)
        found = item if found is None or item is None else found.joined(item)
        if found is None or any(a.shape and a != b for a, b in zip(
                found.types, item.types if item is not None else (), strict=True)):
            return None
    ctx = active()
    return None if ctx is None or (found is not None and any(
        goes_by_rounds(ctx, *type_.shape) for type_ in found.types)) else found
