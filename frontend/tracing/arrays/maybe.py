"""What a name is bound to of which a branch or a loop of the program decides whether it is None.

    best = None                       present   a traced bool
    for i in range(len(x)):           parts     the value's arrays, zeros where there is none
        if x[i] > 0: best = i
    return best                       None, or the number, as the program says
    y[best] = 1                       the value: the step fails where there is none

``best is None`` asks whether there is one. The check is where the value is used. A name that some
ways do not bind is such a value, too, but for that question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.record import record
from ....ir.types import I64
from ...face import tree
from ..context.active import current
from ..operand import broadcast, cast, to_tracer
from ..spec import Spec
from ..values.tracer import Tracer
from . import views
from .buffer import Buffer
from .items import Item

NOTHING = "None stands where a value is needed"
UNBOUND = "{} is read where it has no value: no way that binds it was taken"


@record(frozen=True)
class Maybe:
    """A value of the form ``item``, or None."""

    item: Item
    present: Any
    parts: tuple[Any, ...]

    @staticmethod
    def of(value: Any, item: Item) -> Maybe:
        """A value as one that may be None, from now on."""
        if is_maybe(value) and value.maybe.item.unbound == item.unbound:
            found: Maybe = value.maybe
            return found if found.item == item else Maybe(item, found.present, tuple(
                cast(part, type_.dtype.numpy)
                for part, type_ in zip(found.parts, item.types, strict=True)))
        there: Any = current().apply(to_tracer, (np.bool_(value is not None),))
        if value is None:
            return Maybe(item, there, tuple(
                current().apply(lambda type_=type_: broadcast(
                    to_tracer(type_.dtype.numpy.type(0)), type_.shape), ())
                for type_ in item.types))
        return Maybe(item, there, tuple(_part(leaf, type_.dtype.numpy) for leaf, type_ in zip(
            tree.leaves(value), item.types, strict=True)))

    def leaves(self) -> tuple[Any, ...]:
        """What a region carries of it."""
        return self.present, *self.parts

    def again(self, present: Any, *parts: Any) -> Any:
        """What a name is bound to."""
        return Maybe(self.item, present, parts).bound()

    def bound(self) -> Any:
        values = [self._checked(part, weak)
                  for part, weak in zip(self.parts, self.item.weak, strict=True)]
        if self.item.structure == tree.LEAF:
            found = values[0]
            made = MaybeArray(found.ctx, found.value, weak=found.weak, maybe=self)
            made.link, made.seen, made.asked = found.link, found.seen, found.asked
            made.made, made.anew = found.made, found.anew
            return made
        return MaybeTuple(tree.unflatten(self.item.structure, values), self)

    def _checked(self, part: Any, weak: bool) -> Tracer:
        """A part, which there is, or the step fails."""
        def checked(base: Any) -> Any:
            there: Any = cast(to_tracer(self.present), I64.numpy) - 1
            spare = there if not base.ndim else broadcast(there, base.type.shape)
            name = self.item.unbound
            return current().emit("ensure", base, spare,
                                  message=UNBOUND.format(name) if name else NOTHING)

        found = current().apply(checked, (part,))
        made = Tracer(found.ctx, found.value, weak=weak)
        if not part.is_scalar:
            views.link(made, views.Indexed(part, checked, lambda base, new: new))
        made.anew = lambda: self._checked(part, weak)
        return made

    @property
    def value(self) -> Any:
        """The nest of the parts, without a check."""
        return tree.unflatten(self.item.structure, [
            Tracer(part.ctx, part.value, weak=weak) if part.is_scalar else part
            for part, weak in zip(self.parts, self.item.weak, strict=True)])


class MaybeArray(Tracer):
    """A number or an array that may be None."""

    __slots__ = ("maybe",)

    def __init__(self, ctx: Any, value: Any, *, weak: bool, maybe: Maybe) -> None:
        super().__init__(ctx, value, weak=weak)
        self.maybe = maybe


class MaybeTuple(tuple[Any, ...]):
    """A tuple of such, that may be None."""

    maybe: Maybe

    def __new__(cls, items: Sequence[Any], maybe: Maybe) -> MaybeTuple:
        made = super().__new__(cls, items)
        made.maybe = maybe
        return made


def is_maybe(value: Any) -> bool:
    """Whether there may be no value."""
    return type(value) in (MaybeArray, MaybeTuple)


def is_optional(value: Any) -> bool:
    """Whether a value may be None, and not just missing."""
    return is_maybe(value) and not value.maybe.item.unbound


class Returned:
    """Such a value as a result of the program: a nest of whether it is there, and the value."""

    by_values = True

    def __init__(self, maybe: Maybe) -> None:
        self.present, self.value = maybe.present, maybe.value

    @staticmethod
    def put_together(present: Any, value: Any) -> Any:
        """What the program gave as what the function returns; of types, those of the value."""
        return value if isinstance(present, Spec) or present else None


tree.register(Returned, lambda found: ((found.present, found.value), None),
              lambda _, parts: Returned.put_together(*parts))


def _part(leaf: Any, dtype: Any) -> Any:
    array = leaf.traced() if isinstance(leaf, Buffer) else leaf
    return current().apply(lambda: cast(to_tracer(array), dtype), ()) if (
        not isinstance(array, Tracer) or array.dtype != dtype) else array
