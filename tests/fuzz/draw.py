"""Draws what is around the steps of a program: arguments, dims, nests, variables, ways to run it.

``program(seed, number)`` is always the same program.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from . import (
    steps_buffers,
    steps_calls,
    steps_convert,
    steps_elementwise,
    steps_index,
    steps_reduce,
    steps_rows,
    steps_views,
)
from .data import DTYPES, LAYOUTS, bearable, draw_array, draw_number
from .program import ArgSet, Leaf, Nest, Program, Settings
from .writer import FAMILIES, Value, Writer

BEYOND = (-1, 200, 300, -200, 2**31, -2**31 - 1, 2**32, 2**40)  # integers beyond some dtypes
EDGES = (7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65)  # of vectors
TARGETS = (None, None, "x86-64-v4", "x86-64-v3")
FEATURES = tuple(dict.fromkeys(family.feature for family in FAMILIES))
SYMBOLS = ("n", "m", "k")
STEP_FILES = (steps_buffers, steps_calls, steps_convert, steps_elementwise, steps_index,
              steps_reduce, steps_rows, steps_views)
MOST_LEAVES = 7
# What is not drawn: in a graph np.zeros gives plain arrays, which hold no traced values.
OUTSIDE = {"grad": ("variable", "nested call"), "session": ("variable", "nested call", "buffer")}


def program(seed: int, number: int) -> Program:
    """Program ``number`` of a seed; the kinds take turns by chance."""
    attempt = 0
    while True:
        rng = random.Random(f"weft {seed} {number} {attempt}")
        kind = rng.choices(("call", "grad", "session"), (84, 9, 7))[0]
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            made = _program(rng, f"{seed}:{number}", kind)
        if made is not None:
            return made
        attempt += 1


def _program(rng: random.Random, name: str, kind: str) -> Program | None:
    smooth = kind == "grad"
    large = kind == "call" and rng.random() < 0.02
    symbolic = not large and rng.random() < 0.45
    leaves = _leaves(rng, smooth, large, symbolic)
    sizes = _sizes(rng, symbolic)
    samples = [[_draw_leaf(rng, leaf, env) for leaf in leaves] for env in sizes[:2]]
    values = [Value(leaf.name, tuple(sample[at] for sample in samples), "exact", leaf.values)
              for at, leaf in enumerate(leaves)]

    def more(dtype: str, dims: Sequence[int | str], kind: str) -> Value | None:
        """Another argument, for a step that needs one like it."""
        if len(leaves) >= MOST_LEAVES or large:
            return None
        leaf = Leaf(f"x{len(leaves)}", "array", dtype, tuple(dims), kind)
        leaves.append(leaf)
        return Value(leaf.name, tuple(_draw_leaf(rng, leaf, env) for env in sizes[:2]), "exact",
                     kind)

    writer = Writer(rng, values, smooth=smooth, limit=300_000 if large else 4000, more=more,
                    symbols=SYMBOLS[:3] if symbolic else (), sizes=sizes[:2])
    writer.families = [family for family in writer.families if kind == "call"
                       or family.feature not in OUTSIDE.get(kind, ())]
    writer.weights = [family.weight for family in writer.families]
    writer.draw(rng.randint(2, 5) if kind == "session" or large else rng.randint(2, 9))
    arguments = {leaf.name for leaf in leaves}
    made = [value for value in writer.values if value.name and value.name not in arguments]
    if not made:
        return None
    result, tags = _result(rng, kind, made, writer)
    if result is None:
        return None
    checks = {"again"} | {check for check, chance in (
        ("interpreter", 0.6), ("stages", 0.08), ("threads", 0.15)) if rng.random() < chance}
    if writer.variables:
        checks = {"shared"}
    if large:
        checks -= {"stages"}  # kernels of so many elements take the interpreter minutes
    argsets = [_argset(rng, leaves, env, hostile=at >= 2) for at, env in enumerate(sizes)]
    argsets[0] = replace(argsets[0], order=0)
    if any("linalg" in step.feature or "'wrap'" in step.text(False)
           for step in (*writer.steps, *(step for inner in writer.inners for step in inner.steps))):
        argsets = [replace(argset, leaves=tuple(map(bearable, argset.leaves)))
                   for argset in argsets]
    drawn = Program(
        name, kind, tuple(leaves), tuple(_params(rng, leaves, kind)), tuple(writer.inners),
        tuple((at, held.value) for at, held in writer.variables.items()), tuple(writer.steps),
        result, tuple(argsets), _settings(rng, large), frozenset(checks), (),
        rng.getrandbits(30), tags)
    drawn = drawn.alive()
    features = _features(drawn, symbolic, large)
    return Program(**{**drawn.__dict__, "features": features})


def _leaves(rng: random.Random, smooth: bool, large: bool, symbolic: bool) -> list[Leaf]:
    dims: list[int | str] = [2, 3, 4, 5, 1, 7, 3, 4]
    if rng.random() < 0.4:  # tiny and odd beside the widths of vectors
        dims = [*rng.sample(EDGES, 2), *rng.sample([0, 1, 1, 2, 3, 5, 70], 2)]
    if symbolic:
        dims = [*SYMBOLS[:rng.choice((1, 2, 3))] * 3, *dims[:4]]
    if large:
        dims = [300, 257, 1000, 64]
    dims = rng.sample(dims, min(len(dims), 4))
    deep = not large and rng.random() < 0.1  # loops in loops, none short enough to be written out
    if deep:
        dims = [9, 10, 12, *dims[:1]]
    leaves = []
    for at in range(rng.randint(1, 4)):
        rank = rng.choice((2, 2) if large else (1, 3, 3) if deep else (1, 2) if smooth
                          else (0, 1, 1, 2, 2, 2, 3))
        shape = tuple(rng.choice(dims) for _ in range(rank))
        kind = "array" if at == 0 or rng.random() < 0.8 else rng.choice(
            ("scalar", "int", "float", "bool"))
        dtype = "f8" if smooth else rng.choice(DTYPES)
        values = "unit" if smooth else rng.choice(("normal", "normal", "whole", "whole", "special"))
        if at and not smooth and rng.random() < 0.25:
            dtype, kind = rng.choice(("i4", "i8", "i8", "i8", "i4", "i2", "u1")), "array"
            values = rng.choice(("index", "index", "count"))
            shape = shape[:2]
        elif at and smooth and rng.random() < 0.2:
            dtype, values, kind = "i8", "index", "array"
        leaves.append(Leaf(f"x{at}", kind, dtype, shape if kind == "array" else (), values))
    return leaves


def _sizes(rng: random.Random, symbolic: bool) -> list[dict[str, int]]:
    """Sizes of the symbols: two ordinary sets for drawing, then small ones and a larger one."""
    if not symbolic:
        return [{} for _ in range(rng.choice((3, 4, 5)))]
    pool = rng.sample(range(4, 12), 6)  # no size is the same in both by chance
    ordinary = [dict(zip(SYMBOLS, pool[at:at + 3], strict=True)) for at in (0, 3)]
    small = [{name: rng.randint(0, 5) for name in SYMBOLS} for _ in range(3)]
    odd = {name: rng.randint(0, 2) for name in SYMBOLS}
    big = {name: rng.choice((6, 70, *EDGES)) for name in SYMBOLS}
    return [*ordinary, *small, odd, big]


def _draw_leaf(rng: random.Random, leaf: Leaf, env: dict[str, int]) -> Any:
    if leaf.kind in ("bool", "int", "float"):
        return draw_number(rng, leaf.kind)
    shape = tuple(env[dim] if isinstance(dim, str) else dim for dim in leaf.dims)
    array = draw_array(rng, np.dtype(leaf.dtype), shape, leaf.values)
    return array[()] if leaf.kind == "scalar" else array


def _argset(rng: random.Random, leaves: Sequence[Leaf], env: dict[str, int],
            hostile: bool) -> ArgSet:
    values = []
    for leaf in leaves:
        kind = "far" if hostile and leaf.values == "index" and rng.random() < 0.5 else leaf.values
        drawn = Leaf(leaf.name, leaf.kind, leaf.dtype, leaf.dims, kind)
        beyond = hostile and leaf.kind == "int" and kind != "unit" and rng.random() < 0.3
        values.append(rng.choice(BEYOND) if beyond else _draw_leaf(rng, drawn, env))
    return ArgSet(tuple(values), tuple(rng.choice(LAYOUTS) for _ in leaves), rng.getrandbits(16))


def _params(rng: random.Random, leaves: Sequence[Leaf], kind: str) -> list[Nest]:
    """The parameters: leaves as they are, or a few of them in a nest."""
    names: list[Nest] = [leaf.name for leaf in leaves]
    if kind == "call" and len(names) > 1 and rng.random() < 0.3:
        count = rng.randint(1, len(names))
        at = rng.randint(0, len(names) - count)
        names[at:at + count] = [_nest(rng, names[at:at + count])]
    return names


def _nest(rng: random.Random, items: list[Nest]) -> Nest:
    """A dict in any order of its keys, a list or a tuple; sometimes one in another."""
    if len(items) > 1 and rng.random() < 0.3:
        items = [_nest(rng, items[:1]), *items[1:]]
    kind = rng.choice(("dict", "dict", "list", "tuple"))
    if kind != "dict":
        return kind, items
    keys = rng.sample(["b", "a", "w1", "w0", "Z", "key with space", "_"], len(items))
    return kind, list(zip(keys, items, strict=True))


def _result(rng: random.Random, kind: str, made: list[Value],
            writer: Writer) -> tuple[Nest | None, dict[str, str]]:
    tags = {value.name: value.tag for value in made}
    if kind == "grad":
        floats = [value for value in made if value.kind == "f"]
        if not floats:
            return None, tags
        x = floats[-1]
        loss = writer.emit("loss", "np.sum(np.tanh({0}))" if x.rank else "np.tanh({0}) * 1.5", x,
                           close=("sum", 4))
        return (loss.name if loss is not None else None), tags
    if kind == "session":
        return ("tuple", [value.name for value in made]), tags
    wanted = [made[-1], *rng.sample(made, min(len(made), rng.randint(0, 6)))]
    names: list[Nest] = [value.name for value in wanted]
    if len(names) == 1 and rng.random() < 0.8:
        return names[0], tags
    return (_nest(rng, names) if rng.random() < 0.4 else ("tuple", names)), tags


def _settings(rng: random.Random, large: bool) -> tuple[Settings, ...]:
    """Two ways to compile a program, which have to give the same bits; often one: compiling is
    what takes the time."""
    threads = (1, 2, 4) if large or rng.random() < 0.2 else (None,)
    ways = tuple(Settings(rng.choice((0, 1, 2, 2, 3)), rng.choice(TARGETS), rng.choice(threads))
                 for _ in range(2))
    return ways if large or rng.random() < 0.4 else ways[:1] * 2


def _features(drawn: Program, symbolic: bool, large: bool) -> tuple[str, ...]:
    steps = [*drawn.steps, *(made for inner in drawn.inners for made in inner.steps)]
    found = {f"{drawn.kind} program", *(made.feature for made in steps)}
    found |= {f"option {made.feature} {option}" for made in steps for option in made.options}
    found |= {f"argument {leaf.kind if leaf.kind != 'array' else np.dtype(leaf.dtype).name}"
              for leaf in drawn.leaves}
    found |= {f"values {leaf.values}" for leaf in drawn.leaves}
    found |= {f"layout {layout}" for argset in drawn.argsets for layout in argset.layouts}
    found |= {f"opt {way.opt}" for way in drawn.settings}
    found |= {f"target {way.target or 'native'}" for way in drawn.settings}
    found |= {f"check {check}" for check in drawn.checks}
    found |= {"symbolic dims"} if symbolic else set()
    found |= {"large arrays"} if large else set()
    found |= {"nest of arguments"} if any(not isinstance(p, str) for p in drawn.params) else set()
    found |= {"nest of results"} if drawn.kind == "call" and not isinstance(
        drawn.result, str) else set()
    return tuple(sorted(found))
