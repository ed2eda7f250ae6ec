"""Long sums in parts: a sum of millions of elements for one number is work for every core.

The order of a sum is chunks of 1024 terms, added pairwise. So groups of a power of two of chunks
can be summed apart, and their sums added pairwise, without any bit changing; what has no order can
be cut anywhere. A kernel with few tasks becomes kernels of which the first has many:

    seq i in n                     par p in n // 65536, seq i in 65536     parts, beside each other
      %1 = reduce add %0 over i      t[p] = the sum of its terms
      y[] = sqrt %1
                                   seq i in n mod 65536                    the total
                                     the sum of the rest
                                   seq p in n // 65536 + 1
                                     %1 = reduce add (t[p], or the rest) over p, pairwise
                                     y[] = sqrt %1

Of a product with few results and a long axis the parts are products, too, the rest is one more of
them, and the total is a sum.

Checks of what is summed go with the parts. What else is computed at each index goes into a third
kernel, which reads what is settled by the totals, and may have sums of its own to cut. An axis of
unknown extent, which may be short, is cut where no third kernel is needed and no loop is around.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from types import MappingProxyType

from ...ir.cost.limits import SPLIT
from ...ir.cost.statements import LOAD
from ...ir.indices.index import Dim, ceil_div, product, symbol, symbols_of
from ...ir.indices.walk import substitute
from ...ir.kernels.combine import Order
from ...ir.kernels.kernel import (
    Apply,
    Axis,
    Check,
    Const,
    Contract,
    Index,
    Kernel,
    Load,
    Param,
    Reduce,
    Stmt,
    Store,
    rename_values,
)
from ...ir.kernels.tiling import power_of_two
from ...ir.plans.calls import Call, split_kernels
from ...ir.plans.plan import KernelCall
from ...ir.record import record, replace
from ...ir.types import BOOL, I64, TensorType
from .axes.across import columns_across, sums_across
from .axes.walks import vector_axis
from .order import CHUNK

TERM = LOAD + 1      # work of an element that is loaded and added
PART = 64            # chunks of a part of one row; of several, fewer
LONG = SPLIT // TERM  # elements, below which one core is enough
COLUMNS = 256        # of a sum down columns that are one task
TASKS = 8            # that a sum has anyway: enough for the cores
PRODUCTS = 16        # parts of a product, at least; half as many of the shortest
SHORTEST = 4         # chunks of such a part
RESULTS = 1 << 16    # of a product that is cut: each part has all of them
PAIRWISE = Order(1, 1)
_SIMPLE = (Const, Index, Load, Apply, Reduce, Store, Check)


def with_parts(calls: Sequence[Call]) -> tuple[Call, ...]:
    """The calls, with those of long sums that would be few tasks in parts."""
    return split_kernels(calls, lambda call, again: _split(call, again, count()))


def _split(call: KernelCall, again: bool, numbers: Iterable[int]) -> list[KernelCall]:
    if call.updates or call.rooms:
        return [call]
    long = _long_product(call.kernel)
    if long is not None:
        cut = _Cut(call, call.kernel.axis(long.axis), _terms(call.kernel, long), numbers)
        return [call] if cut.along or cut.checks else cut.products()
    axis = _long_axis(call.kernel)
    if axis is None:
        return [call]
    rows = [other.extent for other in call.kernel.axes if other.name != axis.name]
    cut = _Cut(call, axis, _group(rows), numbers)
    if (cut.along or again) and not isinstance(axis.extent, int):
        return [call]
    parts, total, rest = cut.calls()
    return [parts, total, *(_split(rest, again, numbers) if rest else ())]


def _long_product(kernel: Kernel) -> Contract | None:
    """The product that is to be cut: the only sum of its kernel, with few results."""
    sums = [stmt for stmt in kernel.body if isinstance(stmt, (Reduce, Contract))]
    stmt = sums[0] if len(sums) == 1 else None
    if not isinstance(stmt, Contract) or len(stmt.axes) != 1 or not stmt.chunk:
        return None
    if not all(isinstance(other, _SIMPLE) or other is stmt for other in kernel.body) or any(
            isinstance(other, Store) and other.meets for other in kernel.body):
        return None
    rows = [axis.extent for axis in kernel.axes if axis.name != stmt.axis]
    depth, results = kernel.axis(stmt.axis).extent, product(rows)
    if not isinstance(depth, int) or not isinstance(results, int) or not 0 < results <= RESULTS:
        return None
    most = max(row for row in rows if isinstance(row, int)) if rows else 1
    return stmt if depth >= max(2 * SHORTEST * stmt.chunk, PRODUCTS * most) and (
        depth * results >= LONG) else None


def _terms(kernel: Kernel, stmt: Contract) -> int:
    """The terms of a part of a product: its chunk by a power of two."""
    depth = kernel.axis(stmt.axis).extent
    assert isinstance(depth, int)
    return stmt.chunk * max(SHORTEST, power_of_two(depth // (PRODUCTS * stmt.chunk) + 1) // 2)


def _long_axis(kernel: Kernel) -> Axis | None:
    """The axis of sums that are to be cut."""
    if not all(isinstance(stmt, _SIMPLE) for stmt in kernel.body) or any(
            isinstance(stmt, Store) and stmt.meets for stmt in kernel.body):
        return None
    sums = {stmt.axis for stmt in kernel.body if isinstance(stmt, Reduce)}
    if len(sums) != 1:
        return None
    axis = kernel.axis(*sums)
    rows = [other.extent for other in kernel.axes if other.name != axis.name]
    if not all(isinstance(row, int) for row in rows):
        return None
    tasks = product(rows)
    if rows and _walks_down(kernel, axis.name):
        columns = columns_across(kernel, rows[-1]) if sums_across(
            kernel, vector_axis(kernel)) else COLUMNS
        tasks = product([*rows[:-1], ceil_div(rows[-1], columns)])
    elements = product([*rows, axis.extent])
    if not isinstance(tasks, int) or tasks >= TASKS or (isinstance(axis.extent, int) and (
            axis.extent < 2 * _group(rows))) or (isinstance(elements, int) and elements < LONG):
        return None
    return axis


def _group(rows: Sequence[Dim]) -> int:
    """The terms of a part: a multiple of the chunk by a power of two."""
    width = product(rows)
    assert isinstance(width, int)
    return CHUNK * max(2, PART // power_of_two(width))


def _walks_down(kernel: Kernel, axis: str) -> bool:
    """True if neighbours in memory are not neighbours along the axis."""
    last = [stmt.indices[-1] for stmt in kernel.body if isinstance(stmt, Load) and stmt.indices]
    return not any(axis in symbols_of(dim) for dim in last if not isinstance(dim, int))


@record
class _Cut:
    """A kernel call that is cut along an axis."""

    call: KernelCall
    axis: Axis
    group: int  # terms of a part
    numbers: Iterable[int]

    def __post_init__(self) -> None:
        kernel = self.kernel = self.call.kernel
        self.by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
        self.args = dict(zip((param.name for param in kernel.params), self.call.args, strict=True))
        self.rows = [axis for axis in kernel.axes if axis.name != self.axis.name]
        self.sums = self._first_sums()
        self.checks, self.along, self.others, self.settled = self._apart()
        self.parts = self.axis.extent // self.group
        self.left = self.axis.extent - self.parts * self.group
        self.rooms: dict[str, TensorType] = {}

    def _first_sums(self) -> list[Reduce | Contract]:
        """The sums that need no other one."""
        late: set[str] = set()
        found: list[Reduce | Contract] = []
        for stmt in self.kernel.body:
            if not late.isdisjoint(stmt.operands):
                late.add(stmt.name)
            elif isinstance(stmt, (Reduce, Contract)):
                found.append(stmt)
                late.add(stmt.name)
        return found

    def calls(self) -> tuple[KernelCall, KernelCall, KernelCall | None]:
        """The parts, the total, and what is left to do along the axis."""
        sums = {stmt.name: self._room(stmt, self.parts) for stmt in self.sums}
        parts = self._parts(sums)
        totals = {stmt.name: self._room(stmt) for stmt in self.settled}
        return parts, self._total(sums, totals), self._after(totals) if self.along else None

    def products(self) -> list[KernelCall]:
        """The parts of a product, what is left of its axis as one more, and the total."""
        sums = {stmt.name: self._room(stmt, self.parts) for stmt in self.sums}
        calls, rest = [self._parts(sums)], dict[str, str]()
        if self.left:
            within = self._name("i")
            body, names = self._at(symbol(within) + self.parts * self.group, within)
            for stmt in self.sums:
                rest[stmt.name] = self._room(stmt)
                body.append(Store("", stmt.dtype, rest[stmt.name], self._places(stmt),
                                  names[stmt.name]))
            calls.append(self._call(f"{self.kernel.name}_rest", body,
                                    [*self.rows, Axis(within, self.left, "seq")], rest.values()))
        return [*calls, self._total(sums, {}, rest)]

    def _apart(self) -> tuple[list[Stmt], list[Stmt], list[Stmt], list[Stmt]]:
        """The checks along the axis that need no sum; the effects along it, or of what is behind
        other sums; the other ones; and the values that those read of these: they are behind first
        sums, and nothing else."""
        axes, first = self.kernel.value_axes, {id(stmt) for stmt in self.sums}
        settled: dict[str, Stmt] = {}
        moving, late = set[str](), set[str]()
        checks, along, others, read = list[Stmt](), list[Stmt](), list[Stmt](), set[str]()
        for at, stmt in enumerate(self.kernel.body):
            moves = (isinstance(stmt, Reduce) and id(stmt) not in first) or any(
                name in moving for name in stmt.operands if id(stmt) not in first) or (
                self.axis.name in (axes[stmt.name] if stmt.name else self.kernel.effect_axes[at]))
            if isinstance(stmt, Reduce) or not late.isdisjoint(stmt.operands):
                late.add(stmt.name)
            if moves and isinstance(stmt, Check) and late.isdisjoint(stmt.operands):
                checks.append(stmt)
            elif moves:
                moving.add(stmt.name)
                read.update(stmt.operands)
            elif id(stmt) in first or not settled.keys().isdisjoint(stmt.operands):
                settled[stmt.name] = stmt
            if not stmt.name and stmt not in checks:
                (along if moves else others).append(stmt)
        return checks, along, others, [stmt for name, stmt in settled.items() if name in read]

    def _room(self, stmt: Stmt, *more: Dim) -> str:
        """A name for memory of a value, of so many parts."""
        name = f"t{next(iter(self.numbers))}"
        self.rooms[name] = TensorType(stmt.dtype, (
            *more, *(axis.extent for axis in self._rows_of(stmt))))
        return name

    def _rows_of(self, stmt: Stmt) -> list[Axis]:
        return [axis for axis in self.rows if axis.name in self.kernel.value_axes[stmt.name]]

    def _needed(self, stmts: Sequence[Stmt], known: Iterable[Stmt]) -> list[Stmt]:
        """What defines the values behind statements, in order; not those that are known, nor what
        these alone are made of."""
        first = {stmt.name for stmt in known}
        found: set[str] = set()
        pending = [name for stmt in stmts for name in stmt.operands]
        while pending:
            name = pending.pop()
            if name not in found and name not in first:
                found.add(name)
                pending += self.by_name[name].operands
        return [stmt for stmt in self.kernel.body if stmt.name in found]

    def _at(self, place: Dim, within: str) -> tuple[list[Stmt], dict[str, str]]:
        """The first sums and checks at a place of the axis, over another one, and the names of
        their values there."""
        ends = [*self.checks, *self.sums]
        kept = [*self._needed(ends, self.sums), *ends]
        names = {stmt.name: f"{stmt.name}_" for stmt in kept if stmt.name}
        moved = [_moved(replace(rename_values(stmt, names), name=names.get(stmt.name, "")),
                        {self.axis.name: place}) for stmt in kept]
        return [replace(stmt, axis=within) if isinstance(stmt, Reduce) else
                replace(stmt, axes=(within,)) if isinstance(stmt, Contract) else stmt
                for stmt in moved], names

    def _parts(self, sums: Mapping[str, str]) -> KernelCall:
        part, within = self._name("p"), self._name("i")
        body, names = self._at(symbol(part) * self.group + symbol(within), within)
        for stmt in self.sums:
            body.append(Store("", stmt.dtype, sums[stmt.name],
                              (symbol(part), *self._places(stmt)), names[stmt.name]))
        return self._call(f"{self.kernel.name}_parts", body, [
            Axis(part, self.parts, "par"), *self.rows, Axis(within, self.group, "seq")],
            sums.values())

    def _total(
        self, sums: Mapping[str, str], totals: Mapping[str, str],
        known: Mapping[str, str] = MappingProxyType({}),
    ) -> KernelCall:
        """The sums of parts and of what is left, which is in rooms if it is ``known``."""
        part, within = self._name("p"), self._name("i")
        axes, body, rest = list(self.rows), list[Stmt](), dict[str, str]()
        more = self.left != 0
        if known:
            rest = {stmt.name: f"{stmt.name}_rest" for stmt in self.sums}
            body = [Load(rest[stmt.name], stmt.dtype, known[stmt.name], self._places(stmt))
                    for stmt in self.sums]
        elif more:
            body, rest = self._at(symbol(within) + self.parts * self.group, within)
            axes.append(Axis(within, self.left, "seq"))
        if more:
            body += [Index("%p", I64, symbol(part)), Index("%count", I64, self.parts),
                     Apply("%there", BOOL, "lt", ("%p", "%count"))]
        axes.append(Axis(part, self.parts + int(more), "seq"))
        for stmt in self.sums:
            room = sums[stmt.name]
            load = Load(f"{stmt.name}_part", stmt.dtype, room,
                        (symbol(part), *self._places(stmt)), "%there" if more else "")
            body.append(load)
            term = load.name
            if more:
                term = f"{stmt.name}_term"
                body.append(Apply(term, stmt.dtype, "select",
                                  ("%there", load.name, rest[stmt.name])))
            order = None if isinstance(stmt, Reduce) and stmt.order is None else PAIRWISE
            body.append(Reduce(stmt.name, stmt.dtype, stmt.combine, term, part, order))
        kept = [Store("", stmt.dtype, totals[stmt.name], self._places(stmt), stmt.name)
                for stmt in self.settled]
        stores = [*self.others, *kept]
        body += [*self._needed(stores, self.sums), *stores]
        return self._call(f"{self.kernel.name}_total", body, axes, totals.values())

    def _after(self, totals: Mapping[str, str]) -> KernelCall:
        """The rest of the kernel, which reads what is settled."""
        loads: list[Stmt] = [Load(stmt.name, stmt.dtype, totals[stmt.name], self._places(stmt))
                             for stmt in self.settled]
        body = [*loads, *self._needed(self.along, self.settled), *self.along]
        summed = any(isinstance(stmt, Reduce) for stmt in body)
        axes = [replace(axis, kind="par") if axis.name == self.axis.name and not summed else axis
                for axis in self.kernel.axes]
        return self._call(self.kernel.name, body, axes, ())

    def _places(self, stmt: Stmt) -> tuple[Dim, ...]:
        return tuple(symbol(axis.name) for axis in self._rows_of(stmt))

    def _name(self, stem: str) -> str:
        """A name that no axis, dim or parameter has."""
        taken = {*self.kernel.dims, *(axis.name for axis in self.kernel.axes),
                 *(param.name for param in self.kernel.params)}
        while stem in taken:
            stem += "_"
        return stem

    def _call(self, name: str, body: Sequence[Stmt], axes: Sequence[Axis],
              made: Iterable[str]) -> KernelCall:
        """A call of a kernel of these statements; ``made`` are the rooms that it is the first to
        write."""
        numbered = _numbered(body)
        used = {stmt.param for stmt in numbered if isinstance(stmt, (Load, Store))}
        stored = {stmt.param for stmt in numbered if isinstance(stmt, Store)}
        names = {room: f"{self.call.origin.name}.{room}:0" for room in self.rooms
                 if self.call.origin is not None}
        params = [*(param for param in self.kernel.params if param.name in used),
                  *(Param(room, type_, room in stored) for room, type_ in self.rooms.items()
                    if room in used)]
        alive = {axis for stmt in numbered for axis in _axes_of(stmt)}
        kernel = replace(self.kernel, name=name, params=tuple(params), body=tuple(numbered),
                         axes=tuple(axis for axis in axes if axis.name in alive))
        args = tuple(self.args.get(param.name) or names[param.name] for param in params)
        rooms = tuple((names[room], self.rooms[room]) for room in made)
        checks = self.call.checks if any(isinstance(stmt, Check) for stmt in numbered) else ()
        return replace(self.call, kernel=kernel, args=args, rooms=rooms, checks=checks)


def _moved(stmt: Stmt, places: Mapping[str, Dim]) -> Stmt:
    """A statement with other expressions for axes."""
    if isinstance(stmt, (Load, Store)):
        return replace(stmt, indices=tuple(substitute(dim, places) for dim in stmt.indices))
    return replace(stmt, expr=substitute(stmt.expr, places)) if isinstance(stmt, Index) else stmt


def _numbered(body: Sequence[Stmt]) -> list[Stmt]:
    """Statements whose values are %0, %1 and so on."""
    names: dict[str, str] = {}
    made = []
    for stmt in body:
        renamed = rename_values(stmt, names)
        if stmt.name:
            names[stmt.name] = f"%{len(names)}"
            renamed = replace(renamed, name=names[stmt.name])
        made.append(renamed)
    return made


def _axes_of(stmt: Stmt) -> set[str]:
    """The axes that a statement mentions."""
    found = set(stmt.summed)
    return found.union(*(symbols_of(dim) for dim in stmt.exprs))
