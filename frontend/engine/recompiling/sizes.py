"""Which dims of a function had better be dynamic, as its programs differ in sizes alone.

    x f32[3,4]  y f32[3]
    x f32[8,4]  y f32[8]        dynamic={'x': {0: 'n'}, 'y': {0: 'n'}}
    x f32[5,4]  y f32[5]

Dims that have always been equal have one symbol. What the function has already stays; where all
leaves of an argument have the same dims, its name stands for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....ir.graph import Graph
from ....ir.indices.dims import requirements
from ....ir.indices.index import Dim, plain_symbol, symbols_of
from ....ir.types import TensorType
from ...face.signature import Signature, plain_path
from ...tracing.arguments import covers

Types = tuple[Sequence[str], Sequence[tuple[str, TensorType]]]
"""The names and types of the leaves of a call."""
Dynamic = dict[str, dict[int, Any]]


def alike(calls: Iterable[Types]) -> list[list[Types]]:
    """Calls by all that they are but for sizes and dtypes; those of the last one come last."""
    groups: dict[tuple[Any, ...], list[Types]] = {}
    for names, types in calls:
        form = (*names, *[(kind, type_.rank) for kind, type_ in types])
        groups[form] = [*groups.pop(form, []), (names, types)]
    return [*groups.values()]


def dynamics_for(calls: Sequence[Types], signature: Signature) -> list[Dynamic]:
    """What dims of the arguments of a function may be dynamic, as these calls, which are alike,
    tell: the shortest way to write it first. Nothing if no size has changed."""
    names, types = calls[-1]
    taken = {name for _, type_ in types for dim in type_.shape for name in symbols_of(dim)}
    symbols: dict[tuple[Dim, ...], str] = {}
    found: Dynamic = {}
    for at, (name, (_, type_)) in enumerate(zip(names, types, strict=True)):
        for axis in range(type_.rank):
            sizes = tuple([leaves[at][1].shape[axis] for _, leaves in calls])
            if len({*sizes}) > 1:
                if sizes not in symbols:
                    symbols[sizes] = _new(taken)
                found.setdefault(name, {})[axis] = symbols[sizes]
    return [_merged(signature.dynamic, each) for each in (_joined(found, names), found) if found]


def _new(taken: set[str]) -> str:
    name = next(name for at in range(len(taken) + 1) if (name := f"n{at or ''}") not in taken)
    taken.add(name)
    return name


def _joined(found: Dynamic, names: Sequence[str]) -> Dynamic:
    """Dims by argument, where all leaves of one have the same."""
    roots: dict[str, list[str]] = {}
    for name in names:
        roots.setdefault(re.split(r"[.\[]", name)[0], []).append(name)
    joined: Dynamic = {}
    for root, leaves in roots.items():
        first = found.get(leaves[0])
        if first and all(found.get(leaf) == first for leaf in leaves):
            joined[root] = first
        else:
            joined |= {leaf: found[leaf] for leaf in leaves if leaf in found}
    return joined


def _merged(old: Mapping[str, Mapping[int, Any]], new: Dynamic) -> Dynamic:
    known = {plain_path(name): name for name in new}
    found: Dynamic = {}
    for name, dims in old.items():
        written = {axis: dim if dim is None or isinstance(dim, (int, str)) else str(dim)
                   for axis, dim in dims.items()}
        found[known.get(name, name)] = written
    for name, dims in new.items():
        found[name] = {**found.get(name, {}), **dims}
    return found


def accepted(dynamic: Dynamic, calls: Iterable[Types], signature: Signature) -> bool:
    """Whether calls of whatever structure have these dims, as ``dynamic=`` requires."""
    plain = {plain_path(name): dims for name, dims in dynamic.items()}
    for names, types in calls:
        ranks = [(plain_path(name), type_.rank)
                 for name, (_, type_) in zip(names, types, strict=True)]
        for wanted, dims in plain.items():
            own = [rank for name, rank in ranks if covers(wanted, name)]
            root = wanted.partition(".")[0]
            omitted = root in signature.defaults and not any(
                covers(root, name) for name, _ in ranks)
            if not (own or omitted) or any(axis >= rank or axis < -rank
                                           for rank in own for axis in dims):
                return False
    return True


def allows(graph: Graph, dynamic: Sequence[tuple[str, TensorType]], calls: Sequence[Types]) -> bool:
    """Whether a graph that was traced with such types may run with the sizes of all these calls:
    where an axis was repeated because its size was 1, say, it may not."""
    needs = requirements(graph)
    for _, types in calls:
        sizes: dict[str, int] = {}
        for (_, type_), (_, own) in zip(dynamic, types, strict=True):
            for dim, size in zip(type_.shape, own.shape, strict=True):
                name = plain_symbol(dim)
                if name is not None and isinstance(size, int):
                    sizes[name] = size
        if not all(need.holds(sizes) for need in needs if (
                symbols_of(need.left) | symbols_of(need.right)) <= sizes.keys()):
            return False
    return True
