"""Hypothesis strategies: random valid graphs, kernels and plans, and arguments to run them.

Graphs are written through the Builder from the op rows, so a new row of a known kind is drawn
without a change here. Names, locations and devices are odd on purpose: all must survive as text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from weft.ir.diagnose import Error
from weft.ir.graph import Builder, Graph, Value
from weft.ir.indices.index import Dim, symbol, symbols_of
from weft.ir.indices.space import separate_space
from weft.ir.indices.walk import evaluate
from weft.ir.kernels.build import KernelBuilder, Scalar
from weft.ir.kernels.combine import Order, is_ordered
from weft.ir.kernels.kernel import Axis, Contract, Kernel, Param, Reduce, Stmt, Store
from weft.ir.kernels.schedule import IN_TURN, Program, Vectors, Way
from weft.ir.loc import Loc
from weft.ir.ops.op import Kind
from weft.ir.ops.table import OPS
from weft.ir.plans.plan import (
    ALIGNMENT,
    Alloc,
    CheckSite,
    Copy,
    Launch,
    Plan,
    Relation,
    Slot,
    Step,
    Window,
)
from weft.ir.record import replace
from weft.ir.scalar.primitives import PRIMITIVES
from weft.ir.types import BOOL, COMPUTED, F32, F64, I64, Device, DType, TensorType
from weft.passes.clone import Clone

B, S = symbol("b"), symbol("s")
names = st.one_of(
    st.sampled_from(("x", "layer1/relu", "w.0", "0", "a b", 'say "hi"', "split:1", "größe", "a\nb",
                     "// x", "return", "%3", "if", "f32", "x:0:0", "tab\t", "on", "{", "\u2028")),
    st.text(min_size=1, max_size=6))
locs = st.lists(st.builds(
    Loc, st.sampled_from(("model.py", "/home/a b/model.py", "<stdin>", "C:\\m.py", "a:3", "ü.py")),
    st.integers(0, 9999), st.sampled_from(("", "dense", "f.<locals>.<lambda>", "odd name"))),
    max_size=3).map(tuple)
devices = st.sampled_from((None, Device("cpu", 0), Device("gpu"), Device("gpu", 1, "worker", 2),
                           Device(job="ps", task=0), Device()))
dims = st.sampled_from((1, 2, 3, 4, B, S, 2 * B, B + 1))
orders = st.builds(Order, st.sampled_from((1, 2, 16, 64)), st.sampled_from((0, 64, 4096)))
dtypes = st.sampled_from((F32, F32, F64, *COMPUTED))
types = st.builds(TensorType, dtypes, st.lists(dims, max_size=3).map(tuple))


def wrong_simplify(op: str, other: str) -> Callable[[Graph, int], Graph]:
    """In the place of a pass: it turns every ``op`` into ``other``."""
    def wrong(graph: Graph, rounds: int) -> Graph:
        clone = Clone(graph)
        for value in graph.params:
            clone.param(value)
        for node in graph.nodes:
            copy = clone.node(node)
            if node.op.name == op:
                copy.op = OPS[other]
        return clone.finish()

    return wrong


class GraphWriter:
    """Appends random nodes to a graph; each ``add_*`` method may give up and append nothing."""

    def __init__(self, draw: st.DrawFn, graph: Graph, *, nested: bool = False) -> None:
        self.draw, self.graph = draw, graph
        self.builder = Builder(graph, OPS, share=False, fold=False)
        self.choices: list[Callable[[], None]] = [
            self.add_map, self.add_map, self.add_view, self.add_view, self.add_reduce,
            self.add_contract, self.add_indexed, self.add_full, self.add_dim, self.add_cast]
        if not nested:
            self.choices += [self.add_effect, self.add_fused]

    def one(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def value(self, accept: Callable[[Value], bool] = lambda value: True) -> Value | None:
        found = [value for value in self.graph.values() if accept(value)]
        return self.one(found) if found else None

    def emit(self, op: str, inputs: list[Value], attrs: dict[str, Any] | None = None) -> Any:
        """One node with random name, locations, device and control dependencies."""
        builder = self.builder
        builder.locs, builder.device = self.draw(locs), self.draw(devices)
        builder.after = tuple(self.draw(st.lists(st.sampled_from(self.graph.nodes), max_size=2))
                              if self.graph.nodes else ())
        name = self.draw(st.one_of(st.none(), names))
        if name is not None and name.removesuffix(":0") != name:
            name = None  # the value names of another node
        try:
            node = builder.emit(OPS[op], inputs, attrs, name=name)
        except Error:
            return None
        return node.results[0] if node.results else None

    def add_map(self) -> None:
        row = self.one(row for row in OPS.values() if row.kind is Kind.MAP and row.ref is not None
                       and not row.attrs)
        accepted = {dtype.kind for dtype in row.dtypes}
        x = self.value(lambda value: value.dtype.kind in accepted)
        if x is None:
            return
        inputs = [x]
        if row.name == "select":
            condition = self.emit("eq", [x, x])
            inputs = [condition, x]
        while len(inputs) < (row.arity or 1):
            other = self.value(lambda value: value.type == x.type)
            inputs.append(other or x)
        self.emit(row.name, inputs)

    def add_view(self) -> None:
        x = self.value()
        if x is None:
            return
        rank, shape = len(x.shape), x.shape
        choice = self.one(("identity", "stop_gradient", "reshape", "transpose", "broadcast",
                           "slice", "concatenate", "pad"))
        attrs: dict[str, Any] = {}
        if choice == "reshape":
            attrs = {"shape": self.one(((x.type.size,), (1, *shape), (*shape, 1), shape[::-1]))}
        elif choice == "transpose":
            attrs = {"perm": tuple(self.draw(st.permutations(range(rank))))}
        elif choice == "broadcast":
            attrs = {"shape": (self.one((2, *shape)), *shape), "axes": tuple(range(1, rank + 1))}
        elif choice == "slice":
            static = [isinstance(dim, int) for dim in shape]
            back = [self.draw(st.booleans()) and ok for ok in static]
            attrs = {"start": tuple(d - 1 if r else 0 for d, r in zip(shape, back, strict=True)),
                     "step": tuple(-1 if r else 1 for r in back), "shape": shape}
        elif choice == "concatenate":
            if rank == 0:
                return
            self.emit(choice, [x, x], {"axis": self.draw(st.integers(0, rank - 1))})
            return
        elif choice == "pad":
            widths = st.tuples(*[st.integers(0, 2)] * rank)
            value = self.draw(st.sampled_from((0, 1, 1.5, -0.0, float("inf"), float("nan"), True)))
            attrs = {"low": self.draw(widths), "high": self.draw(widths),
                     "interior": (0,) * rank, "value": value if x.dtype.is_float else 1}
        self.emit(choice, [x], attrs)

    def add_reduce(self) -> None:
        row = self.one(row for row in OPS.values() if row.kind is Kind.REDUCE and row.combine)
        accepted = {dtype.kind for dtype in row.dtypes}
        x = self.value(lambda value: value.dtype.kind in accepted)
        if x is not None:
            axes = self.draw(st.sets(st.integers(0, max(len(x.shape) - 1, 0)), max_size=3))
            self.emit(row.name, [x], {"axes": tuple(sorted(axes))})

    def add_contract(self) -> None:
        x = self.value(lambda value: value.dtype.kind in "iuf" and value.type.rank > 0)
        if x is not None:
            dims = {1: "k,k->", 2: "mk,nk->mn", 3: "bmk,bnk->bnm"}.get(x.type.rank)
            if dims is not None:
                self.emit("contract", [x, x], {"dims": dims})

    def add_indexed(self) -> None:
        x = self.value(lambda value: any(isinstance(dim, int) and dim > 0 for dim in value.shape)
                       and value.dtype != BOOL)
        if x is None:
            return
        axis = self.one(at for at, dim in enumerate(x.shape) if isinstance(dim, int) and dim > 0)
        count = self.draw(st.integers(0, x.shape[axis]))
        index = self.emit("iota", [], {"axis": 0, "dtype": self.one((I64, OPS["gather"].dtypes[2])),
                                       "shape": (count,)})
        if index is None or not index.dtype.is_int:
            return
        rows = self.emit("gather", [x, index], {"axes": (axis,)})
        if rows is not None:
            self.emit(self.one(("scatter", "scatter_add")), [x, rows, index], {"axes": (axis,)})

    def add_full(self) -> None:
        x = self.value()
        shape = x.shape if x is not None else (2,)
        dtype = self.draw(dtypes)
        value = {"b": st.booleans(), "i": st.integers(-9, 9), "u": st.integers(0, 9)}.get(
            dtype.kind, st.floats(width=32, allow_nan=False) | st.just(float("nan")))
        self.emit("full", [], {"value": self.draw(value), "dtype": dtype, "shape": shape})

    def add_dim(self) -> None:
        x = self.value()
        if x is not None:
            self.emit("dim", [], {"size": (x.type.size + 3) // 2})

    def add_cast(self) -> None:
        # Not from floats to integers: what NaN becomes is nobody's business.
        x = self.value()
        if x is not None:
            to = self.one((F32, F64) if x.dtype.is_float else COMPUTED)
            self.emit("cast", [x], {"dtype": to})

    def add_effect(self) -> None:
        x = self.value(lambda value: value.dtype != BOOL)
        if x is None:
            return
        var = self.draw(names)
        attrs = {"var": var, "type": self.graph.variables.setdefault(var, x.type)}
        self.emit("read_var", [], attrs)
        if attrs["type"] == x.type:
            self.emit(self.one(("assign_var", "update_var")), [x], attrs)

    def add_fused(self) -> None:
        inputs = [value for value in (self.value(), self.value()) if value is not None]
        body = Graph(self.draw(names))
        for value in inputs:
            body.add_param(value.type, self.draw(names))
        writer = GraphWriter(self.draw, body, nested=True)
        writer.write(3)
        self.emit("fused", inputs, {"body": body, "space": separate_space(body)})

    def write(self, most: int) -> None:
        """Up to ``most`` steps, then results."""
        for _ in range(self.draw(st.integers(0, most))):
            self.one(self.choices)()
        values = list(self.graph.values())
        if values:
            self.graph.results = self.draw(st.lists(st.sampled_from(values), max_size=4))


@st.composite
def graphs(draw: st.DrawFn, most: int = 10) -> Graph:
    """A valid graph of up to about ``2 * most`` nodes."""
    graph = Graph(draw(names))
    # One parameter binds every symbol, so that all shapes have a value.
    for type_ in (TensorType(F32, (B, S)), *draw(st.lists(types, max_size=2))):
        stem = draw(names)
        graph.add_param(type_, stem.removesuffix(":0"))
    GraphWriter(draw, graph).write(most)
    return graph


def example_arrays(types: list[TensorType], seed: int) -> list[np.ndarray[Any, Any]]:
    """Random arguments of the given types; the dims b and s are between 1 and 4."""
    rng = np.random.default_rng(seed)
    env = {"b": int(rng.integers(1, 5)), "s": int(rng.integers(1, 5))}
    return [example_array(rng, type_.dtype, [evaluate(dim, env) for dim in type_.shape])
            for type_ in types]


def example_array(rng: np.random.Generator, dtype: DType, shape: list[int]) -> Any:
    """A random array: floats around 0, small integers."""
    if dtype.is_float:
        return np.asarray(rng.normal(size=shape)).astype(dtype.numpy)
    return np.asarray(rng.integers(0, 2 if dtype == BOOL else 9, shape)).astype(dtype.numpy)


@st.composite
def kernels(draw: st.DrawFn, *, exact: bool = False) -> Kernel:
    """A valid kernel over axes i (par) and j (lane or seq): loads, maths, reductions, stores.

    ``exact`` leaves out primitives whose last bit may depend on how many elements there are.
    """
    rows_of, columns_of = tuple[Dim, ...]((3, B, 2 * B)), tuple[Dim, ...]((1, 4, S))
    n, m = draw(st.sampled_from(rows_of)), draw(st.sampled_from(columns_of))
    loop = draw(st.sampled_from((Axis("j", m, "lane", 0), Axis("j", m, "seq", 2))))
    axes = (Axis("i", n, "par", draw(st.integers(1, 9))), loop)
    i, j = symbol("i", n), symbol("j", m)
    dtype = draw(st.sampled_from((F32, F64, I64)))
    source, rows = draw(names), draw(names) + "'"
    params = [Param(source, TensorType(dtype, (n, m))), Param(rows, TensorType(I64, (n,)))]
    s = KernelBuilder()
    values: list[Scalar] = [
        s.load(source, dtype, (i, j)), s.const(draw(st.integers(-3, 3)), dtype),
        s.cast(s.index(draw(st.sampled_from((8 * i + j, i // 2, (i + j) % 3, i * m + 1)))), dtype)]
    row = s.load(rows, I64, (i,))
    inside = s.and_(s.ge(row, s.const(0, I64)), s.lt(row, s.index(n)))
    values.append(s.load(source, dtype, (symbol(row.name), j), inside))
    if draw(st.booleans()):
        s.check(inside, draw(st.integers(1, 3)))
    for _ in range(draw(st.integers(0, 8))):
        _kernel_step(draw, s, values, draw(st.booleans()), exact)
    depends = Kernel("", tuple(params), axes, tuple(s.body)).value_axes
    for at, value in enumerate(draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))):
        full = "j" in depends[value.name]
        out = Param(f"out{at}", TensorType(value.dtype, (n, m) if full else (n,)), mutable=True)
        params.append(out)
        guard = draw(st.sampled_from((None, inside)))
        accumulate = value.dtype != BOOL and draw(st.booleans())
        s.store(out.name, (i, j) if full else (i,), value, accumulate=accumulate, guard=guard)
    return Kernel(draw(names), tuple(params), axes, tuple(_with_ways(draw, s.body)), draw(locs),
                  (), draw(_vectors), draw(st.none() | st.builds(Program, st.just(8), st.just(2))))


_vectors = st.sampled_from((2, 8, 256)).map(lambda lanes: (Vectors(0, "i", lanes),)) | st.just(())


def _with_ways(draw: st.DrawFn, body: list[Stmt]) -> list[Stmt]:
    """Sums may be taken lane by lane, unless something beside them goes index by index."""
    if any(isinstance(stmt, Contract) or (isinstance(stmt, Store) and stmt.accumulate)
           for stmt in body):
        return body
    ways = st.sampled_from((IN_TURN, Way("by lanes", 1), Way("in strips", 2, few=1)))
    return [replace(stmt, way=draw(ways)) if isinstance(stmt, Reduce) and stmt.order else stmt
            for stmt in body]


def _kernel_step(
    draw: st.DrawFn, s: KernelBuilder, values: list[Scalar], reduce: bool, exact: bool
) -> None:
    x = draw(st.sampled_from(values))
    if reduce:
        depends = Kernel("", (), (Axis("i", 1, "par"), Axis("j", 1, "lane", 0)),
                         tuple(s.body)).value_axes
        if "j" in depends[x.name]:
            combine = "or_" if x.dtype == BOOL else draw(st.sampled_from(("add", "max", "min")))
            order = draw(orders) if is_ordered(combine, x.dtype) else None
            total = s.reduce(combine, x, "j", order)
            values.append(draw(st.sampled_from((total, x if x.dtype == BOOL
                                                else s.contract(x, x, ("j",))))))
        return
    prim = PRIMITIVES[draw(st.sampled_from([name for name, p in PRIMITIVES.items()
                                            if p.rule in ("same", "compare")
                                            and not (exact and p.composite
                                                     and x.dtype.is_float)]))]
    if x.dtype.kind in prim.kinds and x.dtype != BOOL:
        args = [x, *(draw(st.sampled_from([v for v in values if v.dtype == x.dtype]))
                     for _ in range(prim.arity - 1))]
        values.append(s.apply(prim.name, *args))


def add_kernel(n: Dim) -> Kernel:
    """y = x + z over n elements of f32."""
    s, i = KernelBuilder(), symbol("i", n)
    s.store("y", (i,), s.add(s.load("x", F32, (i,)), s.load("z", F32, (i,))))
    type_ = TensorType(F32, (n,))
    params = (Param("x", type_), Param("z", type_), Param("y", type_, mutable=True))
    return Kernel("add", params, (Axis("i", n, "par", 16),), tuple(s.body))


@st.composite
def plans(draw: st.DrawFn, *, random_offsets: bool = False) -> Plan:
    """A chain of additions through temporaries, some of which share memory.

    Offsets are those of a first-fit allocator, so the plan is valid; with ``random_offsets`` they
    are any aligned ones inside the arena, so it may not be.
    """
    n = draw(st.sampled_from(tuple[Dim, ...]((24, 5, B))))
    type_ = TensorType(F32, (n,))
    params = (Slot(draw(names), type_), Slot("p", type_, draw(st.sampled_from(("", "W", "a b")))))
    if params[0].name in ("p", "y", "add") or params[0].name.startswith("t"):
        params = (Slot("x", type_), params[1])
    count = draw(st.integers(0, 6))
    operands: list[tuple[str, str]] = []
    above = [slot.name for slot in params]
    for at in range(count):
        operands.append((draw(st.sampled_from(above)), draw(st.sampled_from(above))))
        above.append(f"t{at}")
    last = {name: at for at, pair in enumerate(operands) for name in pair}
    last[above[-1]] = count
    size = type_.nbytes
    block = (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    free, used = list(range(count)), dict[str, int]()
    steps: list[Step] = []
    for at, pair in enumerate(operands):
        place = draw(st.integers(0, 2)) if random_offsets else free.pop(0)
        used[f"t{at}"] = place
        first = draw(st.integers(1, 3))
        share = draw(st.sampled_from((False, True, Relation(8 * n, ">=", 100))))
        steps += [Alloc(f"t{at}", type_, block * place),
                  Launch("add", tuple(map(Window, (*pair, f"t{at}"))), first_check=first,
                         parallel=share)]
        if not random_offsets:
            gone = [name for name in used if last.get(name, at) <= at]
            free = sorted({*free, *(used.pop(name) for name in gone)})
    steps += [Copy(Window(above[-1]), Window("y"))]
    checks = draw(st.lists(st.builds(CheckSite, st.just("W124"), names, locs), max_size=2))
    return Plan(draw(names), params, (Slot("y", type_, draw(st.sampled_from(("", "W")))),),
                tuple(steps), block * max(count, 3), {"add": add_kernel(n)}, tuple(checks))


def value_names(dim: Dim) -> list[str]:
    """The kernel values that an index expression reads."""
    return [name for name in symbols_of(dim) if name.startswith("%")]
