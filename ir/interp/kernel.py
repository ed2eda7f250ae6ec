"""The reference interpreter of kernels.

Statements are evaluated one after the other over all axes at once: a value is an array with one
dimension for each axis of the kernel, of size 1 where the value does not depend on it. Blocks and
tasks do not show, so every schedule of a kernel means the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..diagnose import OutOfRangeError, error
from ..indices.index import Dim, Symbol
from ..indices.walk import evaluate, fold
from ..kernels.combine import identity
from ..kernels.intrinsics import Intrinsic, intrinsic_of
from ..kernels.kernel import (
    Apply,
    Axis,
    Carry,
    Check,
    Const,
    Index,
    Kernel,
    Last,
    Load,
    Reduce,
    Stmt,
    Store,
)
from ..kernels.rows import RowStmt
from ..loc import Loc
from ..scalar.primitives import PRIMITIVES
from ..types import TensorType

Array = NDArray[Any]

_SIGNS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "+": np.add, "*": np.multiply, "//": np.floor_divide, "%": np.remainder,
    "max": np.maximum})


class ChecksFailedError(OutOfRangeError):
    """Run-time checks of a kernel failed; ``sites`` are their numbers."""

    def __init__(self, kernel: str, sites: frozenset[int], locs: tuple[Loc, ...]) -> None:
        numbers = ", ".join(map(str, sorted(sites)))
        super().__init__("W124", f"check {numbers} of kernel @{kernel} failed", locs=locs)
        self.sites = sites


def run_kernel(kernel: Kernel, buffers: Mapping[str, Array], dims: Mapping[str, int]) -> None:
    """Run a kernel on arrays by parameter name; mutable ones are changed in place.

    Raises ChecksFailedError (W124) at the end if a check failed anywhere, and VerifyError (W601)
    for an access outside its array, which a guard should have prevented.
    """
    if any(axis.kind == "par" and evaluate(axis.extent, dims) == 0 for axis in kernel.axes):
        return  # there are no tasks
    run = _KernelRun(kernel, buffers, dims)
    last = {name: at for at, stmt in enumerate(kernel.body) for name in stmt.operands}
    last.update(dict.fromkeys({end for axis in kernel.axes for end in (axis.low, axis.high)},
                              len(kernel.body)))
    with np.errstate(all="ignore"):
        for at, stmt in enumerate(kernel.body):
            if isinstance(stmt, Carry):
                last.update(dict.fromkeys(run.carry(at, stmt), len(kernel.body)))
            elif stmt.name not in run.values:
                run.step(stmt)
            for name in stmt.operands:
                if last[name] == at:
                    run.values.pop(name, None)
    if run.failed:
        raise ChecksFailedError(kernel.name, frozenset(run.failed), kernel.locs)


class _KernelRun:
    def __init__(
        self, kernel: Kernel, buffers: Mapping[str, Array], dims: Mapping[str, int]
    ) -> None:
        self.kernel, self.dims = kernel, dims
        self.values: dict[str, Array] = {}
        self.failed: set[int] = set()
        self.ends: dict[str, Array] = {}  # of what is carried, after the last index
        self.rank = len(kernel.axes)
        self.axes: dict[str, Array] = {}
        for at, axis in enumerate(kernel.axes):
            shape = [1] * self.rank
            shape[at] = evaluate(axis.extent, dims)
            self.axes[axis.name] = np.arange(shape[at], dtype=np.int64).reshape(shape)
        self.memory = {param.name: self._memory(param.type, buffers[param.name], param.name)
                       for param in kernel.params}
        # A local is private to its task: here all tasks have theirs side by side.
        self.tasks = [self.axes[axis.name] // axis.block for axis in kernel.axes
                      if axis.kind == "par"]
        blocks = [int(task.max()) + 1 for task in self.tasks]
        for local in kernel.locals:
            shape = [*blocks, *(evaluate(dim, dims) for dim in local.type.shape)]
            self.memory[local.name] = np.empty(shape or [1], local.type.dtype.numpy)

    def _memory(self, type_: TensorType, buffer: Array, name: str) -> Array:
        shape = tuple(evaluate(dim, self.dims) for dim in type_.shape)
        if buffer.shape != shape or buffer.dtype != type_.dtype.numpy:
            raise error("W601", f"parameter {name} of kernel @{self.kernel.name} is {type_}, got "
                                f"{buffer.dtype}{list(buffer.shape)}")
        return buffer.reshape(shape or (1,))  # scalars as one element: one kind of access

    def position(self, axis: str) -> int:
        """Which dimension of a value belongs to an axis."""
        return next(at for at, other in enumerate(self.kernel.axes) if other.name == axis)

    def carry(self, at: int, first: Carry) -> set[str]:
        """Evaluate what goes round from a carry to its next value, one index at a time; gives the
        names of what has been computed."""
        body = self.kernel.body
        end, places = at, {stmt.name: k for k, stmt in enumerate(body)}
        for k, stmt in enumerate(body):  # what is carried through what is carried
            if at <= k <= end and isinstance(stmt, Carry):
                end = max(end, places[stmt.next])
        # A next value may be one that does not change.
        moving = {first.name} | {stmt.next for stmt in body[at:end + 1] if isinstance(stmt, Carry)}
        for stmt in body[at + 1:end + 1]:
            if not stmt.name:  # it comes when all that it takes is known
                continue
            if not moving.isdisjoint((stmt.name, *stmt.operands)) or isinstance(stmt, Carry):
                moving.add(stmt.name)
            elif stmt.name not in self.values:
                self.step(stmt)
        cycle = [stmt for stmt in body[at:end + 1] if stmt.name in moving]
        place, rank = self.position(first.axis), self.rank
        parts: dict[str, list[Array]] = {stmt.name: [] for stmt in cycle}
        whole, axis = dict(self.values), self.axes[first.axis]
        for k in range(axis.size):
            self.axes[first.axis] = np.full((1,) * rank, k, np.int64)
            self.values = {name: _slice(value, [place], [k]) for name, value in whole.items()}
            for stmt in cycle:
                if isinstance(stmt, Carry):
                    self.values[stmt.name] = parts[stmt.next][-1] if k else self.values[stmt.init]
                else:
                    self.step(stmt)
                parts[stmt.name].append(self.values[stmt.name])
        for stmt in cycle:
            if isinstance(stmt, Carry):
                self.ends[stmt.name] = (parts[stmt.next] or [whole[stmt.init]])[-1]
        self.axes[first.axis], self.values = axis, whole
        for name, rows in parts.items():
            shape = np.broadcast_shapes(*(row.shape for row in rows)) if rows else (1,) * rank
            dtype = next(stmt.dtype for stmt in cycle if stmt.name == name).numpy
            empty = np.empty([0 if at == place else n for at, n in enumerate(shape)], dtype)
            self.values[name] = np.concatenate(
                [np.broadcast_to(row, shape) for row in rows] or [empty], axis=place)
        return set(parts)

    def step(self, stmt: Stmt) -> None:
        """Evaluate one statement."""
        if isinstance(stmt, Store):
            self._store(stmt)
        elif isinstance(stmt, RowStmt):
            self._row(stmt)
        elif isinstance(stmt, Check):
            if not self.values[stmt.value].all():
                self.failed.add(stmt.site)
        else:
            value = self._value(stmt)
            self.values[stmt.name] = np.asarray(value).astype(stmt.dtype.numpy, copy=False)

    def _value(self, stmt: Stmt) -> Array:
        match stmt:
            case Const():
                return np.full((1,) * self.rank, stmt.value, stmt.dtype.numpy)
            case Index():
                return self._index(stmt.expr)
            case Load():
                return self._load(stmt)
            case Apply():
                return self._apply(stmt)
            case Last():
                return self.ends[stmt.value]
        return self._summed(stmt)

    def _index(self, dim: Dim) -> Array:
        def leaf(symbol: Symbol) -> Any:
            if symbol.name in self.axes:
                return self.axes[symbol.name]
            if symbol.name in self.values:
                return self.values[symbol.name].astype(np.int64)
            return np.int64(self.dims[symbol.name])

        result = np.asarray(fold(dim, np.int64, leaf, lambda sign, a, b: _SIGNS[sign](a, b)))
        return result.reshape(result.shape or (1,) * self.rank)

    def _where(
        self, stmt: Load | Store, *others: Array
    ) -> tuple[tuple[int, ...], Any, tuple[Array, ...]]:
        """Shape of all sites, a mask of those that the guard lets through, their indices there."""
        memory = self.memory[stmt.param]
        indices = [self._index(dim) for dim in stmt.indices]
        if self.kernel.is_local(stmt.param):
            indices = [*self.tasks, *indices]
        indices = indices or [self._index(0)]
        guards = [self.values[stmt.guard]] if stmt.guard else []
        shape = np.broadcast_shapes(*(part.shape for part in (*guards, *indices, *others)))
        mask = np.broadcast_to(guards[0], shape) if guards else ...
        inside = tuple(np.broadcast_to(index, shape)[mask] for index in indices)
        for index, size in zip(inside, memory.shape, strict=True):
            if ((index < 0) | (index >= size)).any():
                raise error("W601", f"kernel @{self.kernel.name} accesses '{stmt.param}' outside "
                                    f"its shape {list(memory.shape)}", locs=self.kernel.locs)
        return shape, mask, inside

    def _load(self, stmt: Load) -> Array:
        shape, mask, inside = self._where(stmt)
        memory = self.memory[stmt.param]
        result = np.zeros(shape, memory.dtype)
        result[mask] = memory[inside]
        return result

    def _store(self, stmt: Store) -> None:
        value = self.values[stmt.value]
        shape, mask, inside = self._where(stmt, value)
        memory = self.memory[stmt.param]
        data = np.broadcast_to(value, shape)[mask]
        if stmt.accumulate:
            np.add.at(memory, inside, data)  # one by one, in index order
        else:
            if not stmt.guard:
                self._check_window(stmt, self.kernel.axes, np.broadcast_to(value, shape),
                                   memory[inside].reshape(shape))
            memory[inside] = data

    def _row(self, stmt: RowStmt) -> None:
        """Rows of memory made of rows of values, one for each index of the other axes."""
        row = _row_of(stmt)
        own = {stmt.axis, getattr(stmt, row.gives)}.union(*row.axes(stmt))
        operands = [self._along(name, axes, own)
                    for name, axes in zip(row.operands(stmt), row.axes(stmt), strict=True)]
        memory = self.memory[stmt.param]
        found = row.meaning(stmt, memory.shape[-1], *operands)
        memory[...] = found.reshape(memory.shape)

    def _along(self, name: str, axes: Sequence[str], own: Set[str] | None = None) -> Array:
        """A value with these axes as its last one, the last of them fastest; without the others of
        an instruction's ``own``, if it has any, but with all that are not."""
        sizes = [axis.size for axis in self.axes.values()]
        shape = [size if name in axes or (own and name not in own) else 1
                 for name, size in zip(self.axes, sizes, strict=True)]
        value = self.values[name]
        value = np.broadcast_to(value, np.broadcast_shapes(value.shape, shape))
        at = [self.position(axis) for axis in axes]
        moved = np.moveaxis(value, at, range(-len(at), 0))
        kept = [moved.shape[place] for place, axis in enumerate(
            axis for axis in self.axes if axis not in axes) if not own or axis not in own]
        return moved.reshape(*kept, prod(moved.shape[-len(at):]))

    def _summed(self, stmt: Stmt) -> Array:
        """A value that has no longer the axes that are summed over."""
        row, at = _row_of(stmt), [self.position(axis) for axis in stmt.summed]
        operands = [self._along(name, axes)
                    for name, axes in zip(row.operands(stmt), row.axes(stmt), strict=True)]
        if type(stmt) is Reduce:
            axis = self.kernel.axis(stmt.axis)
            whole = np.broadcast_shapes(self.values[stmt.value].shape, self.axes[stmt.axis].shape)
            self._check_window(stmt, [axis], np.broadcast_to(self.values[stmt.value], whole),
                               np.array(identity(stmt.combine, stmt.dtype), stmt.dtype.numpy))
        return np.expand_dims(row.meaning(stmt, 0, *operands), sorted(at))

    def _apply(self, stmt: Apply) -> Array:
        primitive = PRIMITIVES[stmt.prim]
        args = [self.values[name] for name in stmt.args]
        more = (stmt.dtype,) if primitive.rule == "convert" else ()
        found = np.asarray(primitive.numpy(*args, *more))
        # What does not depend on its operands, as x**0, may have fewer dims than they have.
        return found.reshape((1,) * (args[0].ndim - found.ndim) + found.shape) if args else found

    def _outside(self, axis: Axis) -> Array:
        """The indices of an axis that lie outside of its window."""
        place = self.axes[axis.name]
        found = np.zeros_like(place, np.bool_)
        if axis.low:
            found |= place < self.values[axis.low]
        if axis.high:
            found |= place >= self.values[axis.high]
        return found

    def _check_window(self, stmt: Stmt, axes: Iterable[Axis], found: Array, known: Array) -> None:
        """Raises VerifyError (W601) where something happens outside of the window of an axis."""
        for axis in axes:
            if (axis.low or axis.high) and found.shape[self.position(axis.name)] > 1:
                where = np.broadcast_to(self._outside(axis), found.shape)
                one, other = (np.broadcast_to(each, found.shape)[where] for each in (found, known))
                if one.tobytes() != other.tobytes():
                    raise error("W601", f"{stmt.name or 'a store'} has something outside of the "
                                        f"window of '{axis}'")


def _row_of(stmt: Stmt) -> Intrinsic:
    row = intrinsic_of(stmt)
    assert row is not None, f"no meaning for a statement of type {type(stmt).__name__}"
    return row


def _slice(part: Array, at: Sequence[int], where: Sequence[int]) -> Array:
    """The elements of a value at one index of some of its dimensions, kept as 1."""
    index: list[Any] = [slice(None)] * part.ndim
    for place, k in zip(at, where, strict=True):
        k = k if part.shape[place] > 1 else 0
        index[place] = slice(k, k + 1)
    return np.asarray(part[tuple(index)])
