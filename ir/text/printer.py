"""Text of graphs, kernels and plans; ``parser`` is the exact inverse.

    graph @mlp(%x: f32[b,784], %w: f32[784,10]) -> (%1: f32[b,10]) {
      %0: f32[b,10] = contract %x, %w {dims = "mk,kn->mn"}  // "logits" model.py:12 in mlp
      %1: f32[b,10] = tanh %0 on cpu:0  // "y" model.py:13 in mlp
      return %1
    }

Parameters keep their names, results of nodes are numbered; the note after ``//`` holds a node's
unique name and the places it came from, so nothing is lost. Names that are not plain words stand
in quotes. Kernel and plan look as in the docstrings of ``kernel`` and ``plan``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..graph import Graph, Node, Value
from ..host import HostFunction
from ..indices.index import Expr
from ..kernels.intrinsics import intrinsic_of
from ..kernels.kernel import (
    Apply,
    Carry,
    Check,
    Const,
    Index,
    Kernel,
    Last,
    Load,
    Stmt,
    Store,
    stages_of,
)
from ..loc import Loc
from ..plans.plan import (
    Alloc,
    Branch,
    Copy,
    Group,
    Host,
    Launch,
    Loop,
    Measure,
    Plan,
    Recv,
    Send,
    Slot,
    Step,
    Window,
)
from ..types import DType, TensorType
from .intrinsics import access_text, print_intrinsic
from .scanner import FUNCTION, PATH, quoted, word


def print_graph(graph: Graph) -> str:
    """The text of a graph, without a newline at the end."""
    return _graph(graph, "")


def print_nodes(graph: Graph, nodes: Iterable[Node]) -> list[str]:
    """The lines of some nodes of a graph, as ``print_graph`` has them."""
    labels = _labels(graph)
    return [_node(node, labels, "") for node in nodes]


def _labels(graph: Graph) -> dict[int, str]:
    labels = {id(value): "%" + word(_param_name(value)) for value in graph.params}
    results = (value for node in graph.nodes for value in node.results)
    labels.update((id(value), f"%{at}") for at, value in enumerate(results))
    return labels


def _param_name(value: Value) -> str:
    # "x:0" is written x; other ports, and stems that end like a port, are written in full.
    stem = value.name.removesuffix(":0")
    return value.name if re.search(r":[0-9]+\Z", stem) else stem


def _refs(labels: Mapping[int, str], values: Iterable[Value]) -> str:
    return ", ".join(labels.get(id(value), f'%"?{value.name}"') for value in values)


def _typed(labels: Mapping[int, str], values: Iterable[Value]) -> str:
    return ", ".join(f"{_refs(labels, (value,))}: {value.type}" for value in values)


def _graph(graph: Graph, indent: str) -> str:
    labels = _labels(graph)
    inner = indent + "  "
    lines = [f"graph @{word(graph.name)}({_typed(labels, graph.params)}) -> "
             f"({_typed(labels, graph.results)}) {{"]
    names = {**graph.variables, **graph.var_params, **graph.var_results, **graph.homes}
    lines += [f"{inner}var {_variable(graph, name, labels)}" for name in names]
    lines += [inner + _node(node, labels, inner) for node in graph.nodes]
    lines.append(f"{inner}return {_refs(labels, graph.results)}".rstrip())
    lines.append(indent + "}")
    return "\n".join(lines)


def _variable(graph: Graph, name: str, labels: Mapping[int, str]) -> str:
    text = quoted(name)
    if name in graph.variables:
        text += f": {graph.variables[name]}"
    if name in graph.var_params:
        text += f" in {_refs(labels, (graph.var_params[name],))}"
    if name in graph.var_results:
        text += f" out {graph.var_results[name]}"
    if name in graph.homes:
        text += f" on {graph.homes[name]}"
    return text


def _node(node: Node, labels: Mapping[int, str], indent: str) -> str:
    text = node.op.name
    if node.results:
        text = f"{_typed(labels, node.results)} = {text}"
    if node.inputs:
        text += " " + _refs(labels, node.inputs)
    if node.attrs:
        text += f" {{{_attrs(node, indent)}}}"
    if node.device is not None:
        text += f" on {node.device}"
    if node.after:
        text += " after " + ", ".join(quoted(earlier.name) for earlier in node.after)
    return f"{text}  // {quoted(node.name)} {locs_text(node.locs)}".rstrip()


def _attrs(node: Node, indent: str) -> str:
    # In the order of the op's row; regions last, because they take many lines.
    declared = list(node.op.attrs)
    names = sorted(node.attrs, key=lambda name: (
        isinstance(node.attrs[name], Graph), name not in declared,
        declared.index(name) if name in declared else 0, name))
    return ", ".join(f"{name} = {_attr(node.attrs[name], indent)}" for name in names)


def _attr(value: Any, indent: str) -> str:
    if isinstance(value, tuple):
        items = [_attr(item, indent) for item in value]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if isinstance(value, Graph):
        return _graph(value, indent)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, HostFunction):
        return f"@{word(value.name)}"
    if isinstance(value, (Expr, DType, TensorType)):
        return str(value)
    return number_text(value)


def number_text(value: bool | int | float | complex) -> str:
    """A number that reads back as the same number of the same Python type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, complex):
        return f"{value.real!r}{'' if str(value.imag)[0] == '-' else '+'}{value.imag!r}j"
    raise TypeError(f"no text for an attribute of type {type(value).__name__}")


def locs_text(locs: Iterable[Loc]) -> str:
    """Source locations: ``model.py:12 in dense, lib/util.py:3``."""
    return ", ".join(
        f"{word(loc.file, PATH)}:{loc.line}"
        + (f" in {word(loc.function, FUNCTION)}" if loc.function else "") for loc in locs)


def _from(locs: Iterable[Loc]) -> str:
    text = locs_text(locs)
    return f"  // from {text}" if text else ""


def print_kernel(kernel: Kernel) -> str:
    """The text of a kernel, without a newline at the end."""
    params = ", ".join(f"{word(p.name)}: {'mut ' if p.mutable else ''}{p.type}"
                       for p in kernel.params)
    own = ", ".join(f"{word(p.name)}: {p.type} at {p.offset}" for p in kernel.locals)
    private = f" local ({own})" if own else ""
    program = f" {kernel.program}" if kernel.program else ""
    lines = [f"kernel @{word(kernel.name)}({params}){private}{program} {{{_from(kernel.locs)}"]
    inner = "  "
    if kernel.axes:
        lines.append(f"  {', '.join(map(str, kernel.axes))} {{")
        inner = "    "
    for at, stage in enumerate(stages_of(kernel)):
        lines += [f"{inner}{vectors}" for vectors in kernel.vectors if vectors.stage == at]
        if at == 0:
            lines += [f"{inner}{split}" for split in kernel.splits]
        lines += [inner + print_stmt(stmt) for stmt in stage]
    if kernel.axes:
        lines.append("  }")
    return "\n".join([*lines, "}"])


def print_stmt(stmt: Stmt) -> str:
    """One line of a kernel."""
    if isinstance(stmt, Store):
        sign = "+= atomic" if stmt.atomic else "+=" if stmt.accumulate else "="
        return f"{access_text(stmt.param, stmt.indices)} {sign} {stmt.value}{_guard(stmt.guard)}"
    if isinstance(stmt, Check):
        return f"check {stmt.value} site {stmt.site}"
    row = intrinsic_of(stmt)
    text = _meaning(stmt) if row is None else print_intrinsic(row, stmt)
    return f"{stmt.name}: {stmt.dtype} = {text}" if stmt.name else text


def _meaning(stmt: Stmt) -> str:
    match stmt:
        case Const(value=value):
            return f"const {number_text(value)}"
        case Index(expr=expr):
            return f"index {expr}"
        case Load():
            return access_text(stmt.param, stmt.indices) + _guard(stmt.guard)
        case Apply():
            return f"{stmt.prim} {', '.join(stmt.args)}"
        case Carry():
            return f"carry {stmt.init} next {stmt.next} over {stmt.axis}"
        case Last():
            return f"last {stmt.value} over {stmt.axis}"
    raise TypeError(f"no text for a statement of type {type(stmt).__name__}")


def _guard(guard: str) -> str:
    return f" if {guard}" if guard else ""


def print_plan(plan: Plan, *, kernels: bool = False) -> str:
    """The text of a plan, without a newline at the end; ``kernels`` puts its kernels first."""
    scratch = f" scratch = {plan.scratch}" if plan.scratch else ""
    times = f" times %{word(plan.times)}" if plan.times else ""
    lines = [f"plan @{word(plan.name)}({', '.join(map(_slot, plan.params))}) -> "
             f"({', '.join(map(_slot, plan.results))}) arena = {plan.arena}{scratch}{times} {{"]
    lines += [f"  check {at} {site.code} {quoted(site.message)}{_from(site.locs)}"
              for at, site in enumerate(plan.checks, 1)]
    lines += [f"  require {need.site}: {need}" for need in plan.requires]
    lines += ["  " + line for step in plan.steps for line in print_step(step)]
    text = "\n".join([*lines, "}"])
    items = [print_kernel(kernel) for kernel in plan.kernels.values()] if kernels else []
    return "\n\n".join([*items, text])


def _slot(slot: Slot) -> str:
    var = f" var {quoted(slot.var)}" if slot.var else ""
    return f"{_buffer(slot.name)}: {slot.type}{var}"


def print_step(step: Step) -> list[str]:
    """The lines of a step; recursion is by nesting of steps only."""
    match step:
        case Alloc():
            of = f" of {step.size}" if step.size else ""
            return [f"alloc {_buffer(step.name)}: {step.type} at {step.offset}{of}"]
        case Measure():
            return [f"measure {step.size} = {print_window(step.number)} check {step.site} "
                    f"arena = {step.arena}"]
        case Launch():
            checks = f" checks from {step.first_check}" if step.first_check != 1 else ""
            return [f"launch @{word(step.kernel)}({_windows(step.args)}) on {step.device}{checks}"
                    f"{_parallel(step)}"]
        case Copy():
            return [f"copy {print_window(step.source)} to {print_window(step.target)}"]
        case Group():
            return _block(f"group{_parallel(step)}", step.launches)
        case Loop():
            return _block(_loop(step), step.body, test=step.test)
        case Branch():
            lines = _block(f"branch {print_window(step.condition)}", step.then)
            return [*lines[:-1], *_block("} else", step.other)] if step.other else lines
        case Host():
            return [_host(step)]
        case Send():
            return [f"send {print_window(step.source)} to {step.device} key {quoted(step.key)}"]
        case Recv():
            return [f"recv {print_window(step.target)} from {step.device} key {quoted(step.key)}"]
    raise TypeError(f"no text for a step of type {type(step).__name__}")


def _host(step: Host) -> str:
    windows = [print_window(window) for window in (*step.inputs, *step.outputs)]
    if step.types:
        windows = [f"{window}: {type_}" for window, type_ in zip(windows, step.types, strict=True)]
    count = len(step.inputs)
    attrs = ", ".join(f"{name} = {_attr(value, '')}" for name, value in step.attrs)
    return (f"host @{word(step.function)}({', '.join(windows[:count])}) -> "
            f"({', '.join(windows[count:])}){f' {{{attrs}}}' if attrs else ''}{_from(step.locs)}")


def _parallel(step: Launch | Group) -> str:
    where = "" if isinstance(step.parallel, bool) else f" if {step.parallel}"
    return f" parallel{where}" if step.parallel else ""


def _loop(step: Loop) -> str:
    text = f"loop {step.index}"
    if step.condition is None:
        text += f" in {step.count}"
    else:
        text += f" while {print_window(step.condition)}"
    if step.carried:
        carried = (" = ".join(map(_buffer, carry.buffers)) for carry in step.carried)
        text += f" carry ({', '.join(carried)})"
    if step.condition is not None and step.count is not None:
        text += f" limit {step.count}"
    return f"{text} fused" if step.fused else text


def _block(first: str, steps: Iterable[Step], test: Sequence[Step] = ()) -> list[str]:
    inner = _block("test", test) if test else []
    inner += [line for step in steps for line in print_step(step)]
    return [f"{first} {{", *("  " + line for line in inner), "}"]


def print_window(window: Window) -> str:
    """A buffer, with its indices if there are any."""
    indices = f"[{', '.join(map(str, window.indices))}]" if window.indices else ""
    return _buffer(window.buffer) + indices


def _windows(windows: Iterable[Window]) -> str:
    return ", ".join(map(print_window, windows))


def _buffer(name: str) -> str:
    return f"%{word(name)}"
