"""What a random program is, and its text.

The text defines ``make(jit, variable)``, which returns the program's function: ``jit`` compiles the
functions that it calls (or leaves them alone), ``variable`` makes its variables. So one text is
NumPy's program and Weft's.

A step is a template such as ``{out} = np.sum({0}, axis=1)``; every value is written once. Where the
result of a step is not certain to the last bit, its ``close`` says how (see ``jitter``), and the
text for the oracle lets ``jitter`` compute the step.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from support.machines import runs

from .data import literal

Close = tuple[str, int]  # a kind of uncertainty, and its size in ULP
Nest = Any               # a name, or ("dict", [(key, nest)]), ("list", [nest]), ("tuple", [nest])


@dataclass(frozen=True)
class Step:
    """One statement. ``out`` is empty for an assignment to a variable."""

    feature: str
    template: str
    out: str
    operands: tuple[str, ...]
    close: Close | None = None
    options: tuple[str, ...] = ()  # those of a function that were varied

    def text(self, uncertain: bool) -> str:
        """Its lines; with ``uncertain`` the step is computed by the oracle's ``jitter``."""
        if not uncertain or not self.operands or not self.out:
            return self.template.format(*self.operands, out=self.out)
        names = [f"_{at}" for at in range(len(self.operands))]
        given = "".join(f", {name}" for name in self.operands)
        if self.template.startswith("{out} = ") and "\n" not in self.template:
            body = self.template.removeprefix("{out} = ").format(*names)
            return f"{self.out} = jitter({self.close}, lambda {', '.join(names)}: {body}{given})"
        lines = _watched(self.template.format(*names, out="_").split("\n"))
        return "\n".join((f"def _s({', '.join(names)}):", *(f"    {line}" for line in lines),
                          "    return _", f"{self.out} = jitter({self.close}, _s{given})"))


@dataclass(frozen=True)
class Inner:
    """A function that the program calls."""

    name: str
    params: tuple[str, ...]
    steps: tuple[Step, ...]
    result: str


@dataclass(frozen=True)
class Leaf:
    """One leaf of the arguments: an array (``dims`` are ints and names), NumPy scalar or number."""

    name: str
    kind: str  # array, scalar, bool, int, float
    dtype: str
    dims: tuple[int | str, ...]
    values: str


@dataclass(frozen=True)
class Settings:
    """How a program is compiled."""

    opt: int = 2
    target: str | None = None
    threads: int | None = None

    @property
    def runnable(self) -> str | None:
        """The target, or what all machines run where this one lacks some of it."""
        return self.target if self.target is None or runs(self.target) else "x86-64-v3"

    def text(self) -> str:
        return f"opt={self.opt}, target={self.target!r}, threads={self.threads}"


@dataclass(frozen=True)
class ArgSet:
    """One set of arguments: the leaves' values, in order, and the layouts of arrays.

    The keys of dicts are in the parameters' order where ``order`` is 0, else in one drawn by it.
    """

    leaves: tuple[Any, ...]
    layouts: tuple[str, ...]
    order: int = 0


@dataclass(frozen=True)
class Program:
    """A random program, its arguments, and the ways to run it."""

    name: str  # seed:number
    kind: str  # call, grad, session
    leaves: tuple[Leaf, ...]
    params: tuple[Nest, ...]
    inners: tuple[Inner, ...]
    variables: tuple[tuple[str, Any], ...]
    steps: tuple[Step, ...]
    result: Nest
    argsets: tuple[ArgSet, ...]
    settings: tuple[Settings, ...]
    checks: frozenset[str] = frozenset()
    features: tuple[str, ...] = ()
    seed: int = 0  # of what the checks draw
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def dynamic(self) -> dict[str, dict[int, str]]:
        """``dynamic=`` of the program: the named dims of each leaf, as a user would name it."""
        found: dict[str, dict[int, str]] = {}
        for at, param in enumerate(self.params):
            for path, name in paths(param, f"p{at}"):
                leaf = next(leaf for leaf in self.leaves if leaf.name == name)
                dims = {axis: dim for axis, dim in enumerate(leaf.dims) if isinstance(dim, str)}
                if dims:
                    found[path] = dims
        return found

    def arguments(self, argset: ArgSet, laid: Any) -> list[Any]:
        """The arguments of a call: nests of arrays, each laid out as ``laid(array, layout)``."""
        found = {leaf.name: laid(value, layout) if leaf.kind == "array" else value
                 for leaf, value, layout in zip(self.leaves, argset.leaves, argset.layouts,
                                                strict=True)}
        return [build(param, found) for param in self.ordered_params(argset)]

    def ordered_params(self, argset: ArgSet) -> list[Nest]:
        """The parameters, with the keys of dicts in the order of these arguments."""
        rng = random.Random(argset.order)
        return [_reordered(param, rng) if argset.order else param for param in self.params]

    def outputs(self) -> list[str]:
        """The names of the results, from left to right."""
        return [name for _, name in paths(self.result, "")]

    def source(self, uncertain: bool = False) -> str:
        """The text of ``make``."""
        lines = ["def make(jit, variable):"]
        lines += [f"    {name} = variable({literal(value)})" for name, value in self.variables]
        for inner in self.inners:
            lines += ["    @jit", f"    def {inner.name}({', '.join(inner.params)}):"]
            lines += _body(inner.steps, uncertain, 8)
            lines.append(f"        return {inner.result}")
        lines.append(f"    def f({', '.join(f'p{at}' for at in range(len(self.params)))}):")
        lines += [f"        {name} = {path}" for at, param in enumerate(self.params)
                  for path, name in paths(param, f"p{at}")]
        lines += _body(self.steps, uncertain, 8)
        lines += [f"        return {show(self.result)}",
                  f"    return f, [{', '.join(name for name, _ in self.variables)}]"]
        return "\n".join(lines)

    def all_steps(self) -> list[Step]:
        """The steps, and those of the functions that they call."""
        return [*self.steps, *(step for inner in self.inners for step in inner.steps)]

    def alive(self) -> Program:
        """Without the steps, functions and leaves that no result needs."""
        writers = [inner.name for inner in self.inners if any(not s.out for s in inner.steps)]
        steps = _alive(self.steps, self.outputs(), writers)
        inners = []
        for inner in reversed(self.inners):
            if any(_calls(step, inner.name) for step in steps):
                kept = tuple(_alive(inner.steps, [inner.result], writers))
                inners.append(replace(inner, steps=kept))
        assigned = " ".join(step.template for step in (
            *steps, *(step for inner in inners for step in inner.steps)))
        variables = tuple((name, value) for name, value in self.variables if name in assigned)
        return replace(self, steps=tuple(steps), inners=tuple(reversed(inners)),
                       variables=variables)


def _watched(lines: Sequence[str]) -> list[str]:
    """Lines of which the oracle's ``jitter`` looks after each that writes into arrays.

    >>> _watched(["b0 = _0.copy()", "b0[0] += 1", "_ = b0"])
    ['b0 = _0.copy()', "with jitter.line('b0[0] += 1', b0=b0): b0[0] += 1", '_ = b0']
    """
    made: list[str] = []
    found = []
    for line in lines:
        name = re.match(r"(\w+) = ", line)
        if name is not None:
            made.append(name.group(1))
            found.append(line)
            continue
        named = (f"{name}={name}" for name in made)
        start = f"with jitter.line({', '.join((repr(line), *named))}):"
        body = re.sub(r"^(\w+)\.sort\((.*)\)$", r"\1[...] = jitter.sorted(\1, \2)", line)
        body = re.sub(r"\bnp\.sort\(", "jitter.sorted(", body)
        found += [start, f"    {body}"] if line.startswith("for ") else [f"{start} {body}"]
    return found


def _calls(step: Step, name: str) -> bool:
    return f"{name}(" in step.template


def _alive(steps: Sequence[Step], outputs: Sequence[str], writers: Sequence[str]) -> list[Step]:
    """The steps that outputs need, and those that write variables, themselves or by a call."""
    needed, kept = set(outputs), []
    for step in reversed(steps):
        if not step.out or step.out in needed or any(_calls(step, name) for name in writers):
            kept.append(step)
            needed.update(step.operands)
    return kept[::-1]


def _body(steps: Sequence[Step], uncertain: bool, indent: int) -> list[str]:
    return [" " * indent + line for step in steps for line in step.text(uncertain).split("\n")]


def _reordered(nest: Nest, rng: random.Random) -> Nest:
    if isinstance(nest, str):
        return nest
    kind, items = nest
    if kind != "dict":
        return kind, [_reordered(item, rng) for item in items]
    return kind, rng.sample([(key, _reordered(item, rng)) for key, item in items], len(items))


def paths(nest: Nest, path: str) -> list[tuple[str, str]]:
    """Where each leaf of a nest of names is: ``p0['b'][1]``, and its name."""
    if isinstance(nest, str):
        return [(path, nest)]
    kind, items = nest
    keyed = items if kind == "dict" else list(enumerate(items))
    return [found for key, item in keyed for found in paths(item, f"{path}[{key!r}]")]


def show(nest: Nest) -> str:
    """Python text of a nest."""
    if isinstance(nest, str):
        return nest
    kind, items = nest
    if kind == "dict":
        return "{" + ", ".join(f"{key!r}: {show(item)}" for key, item in items) + "}"
    inside = ", ".join(show(item) for item in items)
    return f"[{inside}]" if kind == "list" else f"({inside}{',' if len(items) == 1 else ''})"


def build(nest: Nest, found: dict[str, Any]) -> Any:
    """A nest of names with what the names stand for."""
    if isinstance(nest, str):
        return found[nest]
    kind, items = nest
    if kind == "dict":
        return {key: build(item, found) for key, item in items}
    made = [build(item, found) for item in items]
    return made if kind == "list" else tuple(made)


def flat(result: Any) -> tuple[list[Any], Any]:
    """The leaves of a result, and its structure with the dicts' order."""
    if isinstance(result, dict):
        parts = [flat(item) for item in result.values()]
        shape: Any = ("dict", tuple(result), tuple(part[1] for part in parts))
    elif isinstance(result, (list, tuple)):
        parts = [flat(item) for item in result]
        shape = (type(result).__name__, tuple(part[1] for part in parts))
    else:
        return [result], "leaf"
    return [leaf for part in parts for leaf in part[0]], shape
