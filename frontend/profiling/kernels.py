"""What the rows of a plan are to the user: names, lines, operations and bytes of one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from ...ir.graph import Graph, Node
from ...ir.indices.index import Dim
from ...ir.indices.walk import evaluate
from ...ir.loc import Loc
from ...ir.ops.op import host_name
from ...ir.ops.table import OPS
from ...ir.plans.plan import Copy, Group, Host, Launch, Plan, Window, host_types, window_type
from ...ir.plans.times import clocked_steps
from ...ir.record import record
from ...ir.types import Device, TensorType
from ...passes.placement.costs import Costs
from ...runtime.profile.recording import Recorder, Rows, Runs
from ..engine.stages import kernel_flops

Share = tuple[Loc, float]


@record(frozen=True)
class KernelTime:
    """A kernel, copy or call of the host in one function, and all that its runs took.

    ``kind`` is kernel, group (several kernels in one launch), copy or host; ``ops`` are those that
    were fused into it. ``seconds``, ``flops`` and ``bytes`` are of all ``calls`` together, at the
    sizes that each had; None where they are not known. ``lines`` are the user's lines, each with
    its share of the time, the largest first.
    """

    name: str
    kind: str
    function: str
    device: str
    ops: tuple[str, ...]
    lines: tuple[Share, ...]
    calls: int
    seconds: float
    flops: int | None
    bytes: int | None

    @property
    def mean(self) -> float:
        """Seconds of one run."""
        return self.seconds / max(1, self.calls)

    @property
    def gflops(self) -> float | None:
        """Billions of operations in a second."""
        return _rate(self.flops, self.seconds)

    @property
    def gbytes(self) -> float | None:
        """Billions of bytes in a second: each buffer once for each run, wherever it lay."""
        return _rate(self.bytes, self.seconds)


def _rate(total: int | None, seconds: float) -> float | None:
    return None if total is None or not seconds else 1e-9 * total / seconds


@record(frozen=True)
class Site:
    """A row of a plan at some sizes: what one run of it is."""

    name: str
    kind: str
    device: str
    ops: tuple[str, ...]
    lines: tuple[Share, ...]
    flops: int | None
    bytes: int | None
    shapes: tuple[str, ...]

    @cached_property
    def args(self) -> Mapping[str, Any]:
        """What an event says of it besides its name and times."""
        return {"flops": self.flops, "bytes": self.bytes, "shapes": self.shapes, "ops": self.ops,
                "lines": tuple(f"{loc.file}:{loc.line}" for loc, _ in self.lines)}


def kernel_times(recorder: Recorder) -> tuple[KernelTime, ...]:
    """All rows of all programs, the longest first; those of one name, function and lines are one,
    whatever their sizes."""
    found: dict[tuple[object, ...], KernelTime] = {}
    for runs in list(recorder.runs.values()):
        for site, (calls, spent) in zip(sites_of(runs), runs.totals.tolist(), strict=True):
            if not calls:
                continue
            lines = tuple(loc for loc, _ in site.lines)
            key = runs.plan.name, site.name, site.kind, site.device, frozenset(lines)
            row = KernelTime(site.name, site.kind, runs.plan.name, site.device, site.ops,
                             site.lines, calls, 1e-9 * spent, _times(site.flops, calls),
                             _times(site.bytes, calls))
            found[key] = row if key not in found else _sum(found[key], row)
    return tuple(sorted(found.values(), key=lambda row: -row.seconds))


def _sum(one: KernelTime, two: KernelTime) -> KernelTime:
    longer = one if one.seconds >= two.seconds else two
    return KernelTime(one.name, one.kind, one.function, one.device, one.ops, longer.lines,
                      one.calls + two.calls, one.seconds + two.seconds,
                      _plus(one.flops, two.flops), _plus(one.bytes, two.bytes))


def _times(count: int | None, calls: int) -> int | None:
    return None if count is None else count * calls


def _plus(one: int | None, two: int | None) -> int | None:
    return None if one is None or two is None else one + two


def with_sites(recorder: Recorder) -> Iterator[tuple[Rows, Sequence[Site]]]:
    """The single rows that were kept, call by call, and what they are by number."""
    known: dict[int, Sequence[Site]] = {}
    for rows in list(recorder.rows):
        if id(rows.runs) not in known:
            known[id(rows.runs)] = sites_of(rows.runs)
        yield rows, known[id(rows.runs)]


def sites_of(runs: Runs) -> list[Site]:
    """The rows of a program, in order."""
    sizes = dict(runs.sizes)
    types = runs.plan.types()
    return [_site(runs.plan, step, types, sizes) for step in clocked_steps(runs.plan)]


def _site(plan: Plan, step: Launch | Group | Copy | Host, types: Mapping[str, TensorType],
          sizes: Mapping[str, int]) -> Site:
    match step:
        case Launch():
            return _launched(plan, (step,), types, sizes)
        case Group():
            return _launched(plan, step.launches, types, sizes)
        case Copy():
            size = _number(window_type(step.source, types).nbytes, sizes)
            return Site(f"copy_{step.target.buffer}", "copy", _device(plan), (), (), 0,
                        _times(size, 2), _shapes((step.source,), types, sizes))
    windows = (*step.inputs, *step.outputs)
    moved: Dim = 0
    for type_ in host_types(step, types):
        moved = moved + type_.nbytes
    row = OPS[step.function]
    name = host_name(row, dict(step.attrs))
    lines = tuple((loc, 1 / len(step.locs)) for loc in step.locs)
    return Site(name, "host", _device(plan), (row.name,), lines, None,
                _number(moved, sizes), _shapes(windows, types, sizes))


def _device(plan: Plan) -> str:
    """The device of a plan, which has one."""
    return next((str(launch.device) for step in clocked_steps(plan) for launch in (
        step.launches if isinstance(step, Group) else (step,)) if isinstance(launch, Launch)),
        "cpu:0")


def _launched(plan: Plan, launches: Sequence[Launch], types: Mapping[str, TensorType],
              sizes: Mapping[str, int]) -> Site:
    first, more = launches[0], len(launches) - 1
    flops: int | None = 0
    moved: int | None = 0
    for launch in launches:
        kernel = plan.kernels[launch.kernel]
        flops = _plus(flops, _number(kernel_flops(kernel), sizes))
        for param in kernel.params:
            moved = _plus(moved, _number(param.type.nbytes, sizes))
    nodes = [launch.origin for launch in launches if launch.origin is not None]
    args = [arg for launch in launches for arg in launch.args]
    return Site(first.kernel + (f" +{more}" if more else ""), "group" if more else "kernel",
                str(first.device), _ops(nodes), _lines(nodes, first.device, sizes), flops, moved,
                _shapes(args, types, sizes))


def _inner(node: Node) -> Sequence[Node]:
    body = node.attrs.get("body")
    return body.nodes if isinstance(body, Graph) else (node,)


def _ops(nodes: Iterable[Node]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(inner.op.name for node in nodes for inner in _inner(node)))


def _lines(nodes: Iterable[Node], device: Device, sizes: Mapping[str, int]) -> tuple[Share, ...]:
    """The lines of fused nodes. A line has the share of the time that its nodes have of the
    operations, by the estimates that ``place`` decides by; without any, all have the same."""
    costs, spent = Costs(sizes=sizes), dict[Loc, float]()
    for node in nodes:
        for inner in _inner(node):
            locs = inner.locs or node.locs
            work = costs.operations((inner,), device)
            for loc in locs:
                spent[loc] = spent.get(loc, 0.0) + work / len(locs)
    total = sum(spent.values())
    shares = ((loc, work / total if total else 1 / len(spent)) for loc, work in spent.items())
    return tuple(sorted(shares, key=lambda share: -share[1]))


def _number(dim: Dim, sizes: Mapping[str, int]) -> int | None:
    try:
        return evaluate(dim, sizes)
    except KeyError:  # it depends on the round of a loop
        return None


def _shapes(windows: Iterable[Window], types: Mapping[str, TensorType],
            sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The arrays that a step works on, with the sizes that they have."""
    found = []
    for window in windows:
        type_ = window_type(window, types)
        shape = ",".join(str(dim if size is None else size) for dim in type_.shape
                         for size in [_number(dim, sizes)])
        found.append(f"{type_.dtype}[{shape}]")
    return tuple(found)
