"""A round of single values, launch after launch, as one kernel.

    launch @test(%x, %gt)              %0 = x[t0]
    branch %gt {                       %1 = gt %0, 0.0
      launch @cell(%x, %h)       ->    %2 = log %0
    } else {                           %3 = select %1, %2, 0.0
      copy %zero to %h                 a1[] = %3
    }

What a launch leaves for the next goes there without memory. Both ways of a branch are computed, and
what is stored is chosen of both; elements are read, and others stored, where their way is taken,
and checks hold where it is not.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from types import MappingProxyType

from ....ir.indices.affine import coefficient
from ....ir.indices.index import Dim, is_natural, symbols_of
from ....ir.indices.walk import substitute
from ....ir.kernels.kernel import (
    Apply,
    Check,
    Const,
    Index,
    Kernel,
    Load,
    Param,
    Stmt,
    Store,
    rename_values,
)
from ....ir.plans.plan import (
    Alloc,
    Branch,
    Copy,
    Group,
    Launch,
    Plan,
    Step,
    Window,
    all_steps,
    window_type,
)
from ....ir.record import record, replace
from ....ir.types import BOOL, I64, DType, TensorType
from ..live import live
from .distribute import may_be_unusual

_SIMPLE = (Const, Index, Load, Apply, Store, Check)


@record(frozen=True)
class Merged:
    """A kernel, what its parameters are, and the values that are those of a way of a branch."""

    kernel: Kernel
    args: Mapping[str, Window]
    chosen: frozenset[str]


def merge(
    plan: Plan, types: Mapping[str, TensorType], steps: Sequence[Step], own: Collection[str] = (),
    rounds: Mapping[str, Dim] = MappingProxyType({}),
) -> Merged | None:
    """What some steps do in turn as one kernel; None where they are more than single values, or
    see a buffer in several ways. What they leave in their ``own`` buffers, as in those that they
    begin, they have stored before they read it. Around are loops of so many ``rounds`` each,
    by the names of their numbers. Checks are those of the kernel, whatever their numbers."""
    every = list(all_steps(steps))
    windows = dict.fromkeys(each for step in every for each in _windows(step))
    if len({arg.buffer for arg in windows}) < len(windows):
        return None
    merging = _Merging(plan, types, windows, rounds, {
        *own, *(step.name for step in every if isinstance(step, Alloc))})
    return merging.merged() if merging.steps(steps, "") else None


def _windows(step: Step) -> tuple[Window, ...]:
    match step:
        case Launch(args=args):
            return args
        case Branch(condition=condition):
            return (condition,)
        case Copy(source=source, target=target):
            return source, target
    return ()


class _Merging:
    """Writes one kernel; recursion is by nesting of branches only."""

    def __init__(self, plan: Plan, types: Mapping[str, TensorType], windows: Mapping[Window, None],
                 rounds: Mapping[str, Dim], own: set[str]) -> None:
        self._plan, self._types, self._own, self._rounds = plan, types, own, rounds
        self._names = {arg: f"a{at}" for at, arg in enumerate(windows)}
        self._params: dict[str, Param] = {}
        self._body: list[Stmt] = []
        self._found: dict[Hashable, str] = {}  # what has been computed, and read
        self._left: dict[str, str] = {}  # what was stored last to a parameter that is one element
        self._chosen: set[str] = set()
        self._numbers: dict[str, Dim] = {}  # what values are that are known of each round
        self._doubtful: set[str] = set()  # values that follow from what may be unusual
        self._fits = True
        self._next = 0

    def merged(self) -> Merged:
        params = tuple(self._params[name] for name in self._names.values() if name in self._params)
        return Merged(Kernel("merged", params, (), live(self._body)),
                      {name: arg for arg, name in self._names.items()}, frozenset(self._chosen))

    def steps(self, steps: Sequence[Step], on: str) -> bool:
        """Add what steps do where ``on`` holds, if it names a value; False if they do more."""
        return all(self._step(step, on) for step in steps) and self._fits

    def _step(self, step: Step, on: str) -> bool:
        if on and not all(map(self._is_there, _windows(step))):
            return False
        match step:
            case Alloc():
                return True
            case Group(launches=launches):
                return self.steps(launches, on)
            case Launch():
                return self._launch(step, on)
            case Copy(source=source, target=target) if not window_type(source, self._types).shape:
                dtype = self._types[source.buffer].dtype
                value = self._element(source, dtype)
                self._store(Store("", dtype, self._param(target, dtype, True), (), value), on)
                return True
            case Branch(condition=condition, then=then, other=other):
                holds = self._element(condition, BOOL)
                fails = self._apply("not_", BOOL, holds)
                return self.steps(then, self._both(on, holds)) and self.steps(
                    other, self._both(on, fails))
        return False

    def _is_there(self, window: Window) -> bool:
        """Whether a window is in its buffer whatever way is taken."""
        return all(is_inside(index, extent, self._rounds) for index, extent in zip(
            window.indices, self._types[window.buffer].shape, strict=False))

    def _param(self, window: Window, dtype: DType, mutable: bool = False) -> str:
        name = self._names[window]
        before = self._params.get(name)
        self._params[name] = before if before is not None and before.mutable >= mutable else Param(
            name, TensorType(dtype, ()) if before is None else before.type, mutable)
        return name

    def _element(self, window: Window, dtype: DType) -> str:
        name = self._param(window, dtype)
        return self._left.get(name) or self._emit(Load("", dtype, name, ()))

    def _apply(self, prim: str, dtype: DType, *args: str) -> str:
        return self._emit(Apply("", dtype, prim, args))

    def _both(self, one: str, other: str) -> str:
        """That two values hold, of which one may be none."""
        return self._apply("and_", BOOL, one, other) if one and other else one or other

    def _launch(self, launch: Launch, on: str) -> bool:
        kernel = self._plan.kernels[launch.kernel]
        if not kernel.is_single or kernel.locals or not all(
                isinstance(stmt, _SIMPLE) for stmt in kernel.body):
            return False
        own = {param.name: self._names[arg]
               for param, arg in zip(kernel.params, launch.args, strict=True)}
        for param in kernel.params:
            name = own[param.name]
            before = self._params.get(name)
            if before is not None and before.type != param.type:
                return False
            self._params[name] = Param(name, param.type, param.mutable or (
                before is not None and before.mutable))
        values = dict[str, str]()
        for stmt in kernel.body:
            now = self._told(_placed(rename_values(stmt, values), kernel))
            match now:
                case Store():
                    self._store(replace(now, param=own[now.param]), on)
                case Check():
                    holds = now.value if not on else self._apply(
                        "or_", BOOL, self._apply("not_", BOOL, on), now.value)
                    self._emit(replace(now, value=holds))
                case Load():
                    values[stmt.name] = self._load(replace(now, param=own[now.param]), on)
                case _:
                    values[stmt.name] = self._emit(now)
                    if on and isinstance(now, Apply):
                        self._chosen.add(values[stmt.name])
        return True

    def _told(self, stmt: Stmt) -> Stmt:
        """An access whose indices are those that values stand for, where these are known."""
        if not isinstance(stmt, (Load, Store)):
            return stmt
        return replace(stmt, indices=tuple(substitute(index, {
            name: self._numbers[name] for name in symbols_of(index) & self._numbers.keys()})
            for index in stmt.indices))

    def _load(self, load: Load, on: str) -> str:
        if not load.indices and not load.guard:
            return self._left.get(load.param) or self._emit(load)
        if load.guard or not self._is_inside(load):
            load = replace(load, guard=self._both(on, self._guard(load)))
        return self._emit(load)

    def _guard(self, access: Load | Store) -> str:
        """The guard of an access, which is one of its array even if what says where it is was
        unusual, and so is of no use."""
        guard = access.guard
        for index, extent in zip(
                access.indices, self._params[access.param].type.shape, strict=True):
            if not self._doubtful.isdisjoint(symbols_of(index)):
                at, first, stop = (self._emit(Index("", I64, each)) for each in (index, 0, extent))
                guard = self._both(guard, self._both(
                    self._apply("ge", BOOL, at, first), self._apply("lt", BOOL, at, stop)))
        return guard

    def _is_inside(self, load: Load) -> bool:
        """Whether a place is in its array whatever way is taken, or has been read already."""
        return _key(load) in self._found or all(
            is_inside(index, extent, self._rounds) for index, extent in zip(
                load.indices, self._params[load.param].type.shape, strict=True))

    def _store(self, store: Store, on: str) -> None:
        plain = not store.indices and not store.guard and not store.accumulate
        if plain and on:
            window = next(arg for arg, name in self._names.items() if name == store.param)
            if store.param in self._left or window.buffer not in self._own:
                store = replace(store, value=self._chosen_of(on, store.value, self._element(
                    window, store.dtype), store.dtype))
        elif not plain and not store.indices:  # a place that is not always stored to
            self._fits = False
        elif not plain:
            store = replace(store, guard=self._both(on, self._guard(store)))
        for key in [key for key in self._found if isinstance(key, tuple) and (
                key[:2] == (Load, store.param))]:
            del self._found[key]
        if plain:  # all that would read what was there before has it already
            self._body = [stmt for stmt in self._body if not isinstance(stmt, Store)
                          or stmt.param != store.param]
            self._left[store.param] = store.value
        self._body.append(store)

    def _chosen_of(self, on: str, value: str, before: str, dtype: DType) -> str:
        """A value where its way is taken, else the one before: where a term has been added to that,
        or taken away, it is a term or nothing, so that it is seen to be a sum, and one without a
        choice in it."""
        if value == before:
            return value
        for total, start in ((value, before), (before, value)):
            stmt = next((stmt for stmt in self._body if stmt.name == total), None)
            if isinstance(stmt, Apply) and start in stmt.args and (
                    stmt.prim == "add" or (stmt.prim == "sub" and stmt.args[0] == start)):
                one, other = stmt.args
                zero = -0.0 if stmt.prim == "add" else 0.0  # which changes no sign of a zero
                nothing = self._emit(Const("", dtype, zero if dtype.is_float else 0))
                term = one if other == start else other
                chosen = (on, term, nothing) if total == value else (on, nothing, term)
                return self._apply(stmt.prim, dtype, start,
                                   self._apply("select", dtype, *chosen))
        return self._apply("select", dtype, on, value, before)

    def _emit(self, stmt: Stmt) -> str:
        """The value of a statement, which is added if nothing there has it."""
        key = _key(stmt)
        if key is not None and key in self._found:
            return self._found[key]
        if not isinstance(stmt, Check):
            stmt = replace(stmt, name=f"%{self._next}")
            self._next += 1
        if may_be_unusual(stmt) or not self._doubtful.isdisjoint(stmt.operands):
            self._doubtful.add(stmt.name)
        match stmt:
            case Const(value=int() as value) if stmt.dtype == I64:
                self._numbers[stmt.name] = value
            case Index(expr=expr):
                self._numbers[stmt.name] = expr
        if key is not None:
            self._found[key] = stmt.name
        self._body.append(stmt)
        return stmt.name


def _key(stmt: Stmt) -> Hashable:
    """What statements have in common that compute, read or ask the same; None for others."""
    match stmt:
        case Const():
            return Const, stmt.dtype, repr(stmt.value)
        case Index():
            return Index, stmt.expr
        case Apply():
            return Apply, stmt.dtype, stmt.prim, stmt.args
        case Check():
            return Check, stmt.value
        case Load(guard=""):
            return Load, stmt.param, stmt.indices
    return None


def is_inside(index: Dim, extent: Dim, rounds: Mapping[str, Dim]) -> bool:
    """Whether an index is from 0 to below an extent, in as many rounds as there are."""
    last = index
    for name in sorted(symbols_of(index) & rounds.keys()):
        split = coefficient(last, name)
        if split is None or not isinstance(split[0], int) or split[0] < 0:
            return False
        last = split[0] * (rounds[name] - 1) + split[1]
    return not any(name.startswith("%") for name in symbols_of(index)) and is_natural(
        index) and is_natural(extent - 1 - last)


def _placed(stmt: Stmt, kernel: Kernel) -> Stmt:
    """A statement at the one index that each axis has."""
    axes: dict[str, Dim] = {axis.name: 0 for axis in kernel.axes}

    def placed(expr: Dim) -> Dim:
        found = symbols_of(expr) & axes.keys()
        return substitute(expr, {name: axes[name] for name in found}) if found else expr

    if isinstance(stmt, Index):
        return replace(stmt, expr=placed(stmt.expr))
    if isinstance(stmt, (Load, Store)):
        return replace(stmt, indices=tuple(map(placed, stmt.indices)))
    return stmt
