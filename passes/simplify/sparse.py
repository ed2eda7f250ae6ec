"""Updates that change some rows of an array cost these rows, whatever the array has besides.

    %s = scatter_add 0.0, %g, %ids                 %r = gather %w, %ids
    %u = mul %s, 0.1                         ->    %t = the sum of the %g of equal ids, at each
    sub %w, %u                                     scatter %w, sub(%r, mul(%t, 0.1)), %ids

This is the step of a table of embeddings, whose gradient is zero but for the rows that were looked
up. What is not looked up stays as it is, bit by bit: only where 0.0 is subtracted, or -0.0 added,
which is computed here from the update itself. Rows that are named several times are written as
often, with one and the same value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.graph import Value, constant_of
from ...ir.indices.index import Dim, product
from ...ir.ops.op import Kind
from ...ir.ops.places.distinct import are_distinct
from ...ir.ops.table import OPS
from ...ir.record import record
from ...ir.types import I64, TensorType
from .rewrite import Match, Replace, Rewriter, Rule, is_constant

_MOST = 16      # values that an update is computed from, element by element
_FEW = 64       # rows of which each is compared with each other
_SMALL = 4096   # elements that are computed at once sooner than it is told which are to be
_TABLE = 1 << 15  # rows, of which a number that is not known is few


@record(frozen=True)
class _Sum:
    """Zeros with rows added to some of them, one part after the other."""

    axes: tuple[int, ...]
    parts: tuple[tuple[Value, tuple[Value, ...]], ...]  # what is added, and where


def _sum_of(value: Value) -> _Sum | None:
    parts: list[tuple[Value, tuple[Value, ...]]] = []
    axes: tuple[int, ...] = ()
    while (node := value.node) is not None and node.op is OPS["scatter_add"]:
        if parts and node.attrs["axes"] != axes:
            return None
        axes = node.attrs["axes"]
        value, rows, *indices = node.inputs
        parts.append((rows, tuple(indices)))
    return _Sum(axes, tuple(reversed(parts))) if parts and is_constant(value, 0) else None


def _sums_in(change: Value) -> dict[Value, _Sum] | None:
    """The sums that a value is computed from, element by element; None if there is more to it."""
    found: dict[Value, _Sum] = {}
    pending, seen = [change], {change}
    while pending:
        value = pending.pop()
        if constant_of(value) is not None:
            continue
        made = _sum_of(value)
        if made is not None:
            found[value] = made
            continue
        node = value.node
        if node is None or node.op.kind is not Kind.MAP or node.op.indexed or (
                node.op.check is not None) or len(seen) > _MOST:
            return None
        new = [each for each in node.inputs if each not in seen]
        seen.update(new)
        pending += new
    return found if len({made.axes for made in found.values()}) == 1 else None


def _changed_rows(name: str, at: int) -> Replace:
    """The rule of an op that changes its operand ``at``."""
    stays = 0.0 if name == "sub" else -0.0

    def replace(r: Rewriter, match: Match) -> Value | None:
        array, change = (match[letter] for letter in ("xy" if at == 0 else "yx"))
        sums = _sums_in(change)
        if not sums or array.shape != change.shape or array.dtype.name in OPS["scatter"].wider:
            return None
        axes = next(iter(sums.values())).axes
        parts = [part for each in sums.values() for part in each.parts]
        count = sum((product(indices[0].shape) for _, indices in parts), start=0)
        rest = tuple(dim for axis, dim in enumerate(array.shape) if axis not in axes)
        sizes = tuple(array.shape[axis] for axis in axes)
        if any(0 in indices[0].shape for _, indices in parts) or not _are_few(
                count, product(sizes), product(rest)):
            return None
        none = _computed(r, change, {each: r.builder.full(0, each.type) for each in sums},
                         change.shape)
        if not is_constant(none, stays if array.dtype.is_float else 0):
            return None
        rows = _Rows(r, parts, sizes, count, rest)
        new = _computed(r, change, {each: rows.total(made) for each, made in sums.items()},
                        rows.shape)
        indices = rows.indices
        before = r.gather(array, *indices, axes=axes)
        after = r.make(OPS[name], (before, new) if at == 0 else (new, before), {})[0]
        found: Value = r.scatter(array, after, *indices, axes=axes)
        r.fails_with(found, change)
        return found

    return replace


def _are_few(count: Dim, rows: Dim, rest: Dim) -> bool:
    """Whether rows are so few of so many, of ``rest`` elements each, that they pay."""
    width = rest if isinstance(rest, int) else 1
    if not isinstance(rows, int):
        return isinstance(count, int)
    if not isinstance(count, int):
        return rows >= _TABLE
    return (rows - 2 * count) * width >= _SMALL


def _computed(
    r: Rewriter, value: Value, known: Mapping[Value, Value], shape: tuple[Dim, ...]
) -> Value:
    """What a value is where it is computed from these, for elements of another shape."""
    made = dict(known)
    pending = [value]
    while pending:
        value = pending[-1]
        number = constant_of(value)
        if value not in made and number is not None:
            made[value] = r.builder.full(number, value.type.with_shape(shape))
        if value in made:
            pending.pop()
            continue
        assert value.node is not None
        missing = [each for each in value.node.inputs if each not in made]
        if not missing:
            made[value] = r.make(value.node.op, [made[each] for each in value.node.inputs],
                                 value.node.attrs)[0]
        pending += missing
    return made[value]


class _Rows:
    """The rows that are changed, ``count`` of them, each as often as it is named: the ``indices``
    of all parts, one part behind the other, and the ``shape`` of the rows. ``_starts`` has where a
    part begins, by its indices: where two parts have the same, either will do."""

    def __init__(
        self, r: Rewriter, parts: Sequence[tuple[Value, tuple[Value, ...]]],
        sizes: tuple[Dim, ...], count: Dim, rest: tuple[Dim, ...],
    ) -> None:
        self.r, self.count, self.rest = r, count, rest
        self._flat = [[r.reshape(r.cast(index, dtype=I64), shape=(product(index.shape),))
                       for index in indices] for _, indices in parts]
        (rows, first), *more = parts
        if more:
            self.indices = [r.concatenate(*each, axis=0) for each in zip(*self._flat, strict=True)]
            self.shape = (count, *rest)
        else:
            self.indices, self.shape = [*first], rows.shape
        self._starts: dict[tuple[Value, ...], tuple[Dim, Dim]] = {}
        start: Dim = 0
        for (_, indices), flat in zip(parts, self._flat, strict=True):
            size: Dim = flat[0].shape[0]
            self._starts.setdefault(indices, (start, size))
            start = start + size
        distinct = not more and (count == 1 or are_distinct(first, sizes))
        self._firsts = None if distinct else self._first_of_equals(sizes)

    def total(self, made: _Sum) -> Value:
        """For each of the rows, the sum of what is added to those of the same place."""
        r, type_ = self.r, made.parts[0][0].type
        if self._firsts is None:
            (rows, _), = made.parts
            sums: Value = r.add(rows, r.builder.full(0, rows.type))
            return sums
        total = r.builder.full(0, type_.with_shape((self.count, *self.rest)))
        for rows, indices in made.parts:
            start, size = self._starts[indices]
            places = r.slice(self._firsts, start=(start,), step=(1,), shape=(size,))
            total = r.scatter_add(total, r.reshape(rows, shape=(size, *self.rest)), places,
                                  axes=(0,), inside=("all",))
        total = r.gather(total, self._firsts, axes=(0,), inside=("all",))
        found: Value = r.reshape(total, shape=self.shape)
        return found

    def _first_of_equals(self, sizes: tuple[Dim, ...]) -> Value:
        """For each of the rows, the number of the first one that has the same place; sorts keep
        equal ones in turn."""
        r, count = self.r, self.count
        keys = self._keys(sizes)
        each = TensorType(I64, (count,))
        number = r.iota(axis=0, dtype=I64, shape=(count,))
        if isinstance(count, int) and count <= _FEW:
            square = (count, count)
            mine, other = (r.broadcast(keys, shape=square, axes=(axis,)) for axis in (0, 1))
            which = r.broadcast(number, shape=square, axes=(1,))
            least: Value = r.min(r.select(r.eq(mine, other), which, count), axes=(1,))
            return least
        order = r.argsort(keys)
        inside = {"axes": (0,), "inside": ("all",)}
        ordered = r.gather(keys, order, **inside)
        before = r.gather(ordered, r.maximum(r.sub(number, 1), 0), **inside)
        begins = r.cummax(r.select(r.ne(ordered, before), number, 0), axis=0)
        found: Value = r.scatter(r.builder.full(0, each), r.gather(order, begins, **inside),
                                 order, **inside)
        return found

    def _keys(self, sizes: tuple[Dim, ...]) -> Value:
        """One number for each place; those from the end of an axis have that of the place."""
        r, found = self.r, list[Value]()
        for at, size in enumerate(sizes):
            parts = [flat[at] for flat in self._flat]
            index = r.concatenate(*parts, axis=0) if len(parts) > 1 else parts[0]
            extent = r.builder.full(size, index.type) if isinstance(size, int) else r.broadcast(
                r.dim(size=size), shape=index.shape, axes=())
            place = r.select(r.lt(index, 0), r.add(index, extent), index)
            found.append(r.add(r.mul(found[-1], extent), place) if found else place)
        return found[-1]


SPARSE = (Rule("sub-rows", "sub(x, y)", _changed_rows("sub", 0)),
          Rule("add-rows", "add(x, y)", _changed_rows("add", 0)),
          Rule("add-to-rows", "add(x, y)", _changed_rows("add", 1)))
