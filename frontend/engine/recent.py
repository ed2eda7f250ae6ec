"""What was made of functions lately, for those that are written anew at each use:

    for x in data:
        w = w - rate * weft.grad(lambda w: loss(w, x))(w)      traced and compiled once

A trace, or a program, serves each function of the same code that reads the same
(``ready.content``).
It is kept if it holds nothing of the user's, and all that the function does is to compute: what
else happens while it is traced is to happen again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...ir.graph import all_nodes, effects_of
from ..face import tree
from ..face.exact import immutable
from ..ready.content import NoKeyError, Reader
from ..tracing.arrays.variable import Variable
from ..tracing.context.traced import Traced

T = TypeVar("T")
K = TypeVar("K")
Arrays = Sequence[np.ndarray[Any, Any]]
_KEPT = 256
_LEVELS = frozenset({None, tuple, list, dict, type(None), tree.Static})  # no code of the user's


def recent(
    what: str, function: Any, leaves: Sequence[Any], structure: tree.TreeDef,
    make: Callable[[], T], without: Callable[[T, Arrays], K | None],
    again: Callable[[K, Arrays], T],
) -> T:
    """What ``make`` gives for a call, or ``again`` from what was kept of such a call lately:
    ``without`` takes the arrays out that the function leads to, if what is left may be kept."""
    key, arrays = _key(what, function, leaves, structure)
    if key is None:
        return make()
    slot = _slot(key)
    if slot:
        return again(slot[0], arrays)
    made = make()
    kept = without(made, arrays)
    # Not if the function has changed what it reads, which the next one is to change again.
    if kept is not None and not slot and _key(what, function, leaves, structure)[0] == key:
        slot.append(kept)
    return made


@functools.lru_cache(_KEPT)
def _slot(key: Hashable) -> list[Any]:
    """Where what belongs to a key is, once it is made."""
    return []


def _key(
    what: str, function: Any, leaves: Sequence[Any], structure: tree.TreeDef
) -> tuple[Hashable, Arrays]:
    """What a trace of a call depends on, None where that is not known; and the arrays that the
    function leads to."""
    if not _is_plain(structure) or any(isinstance(leaf, Variable) for leaf in leaves):
        return None, ()
    reader = Reader(strict=True)
    try:
        reader.add(function)
        digest = reader.digest()
    except NoKeyError:
        return None, ()
    return (what, digest, structure, *[
        (type(leaf), leaf.dtype, leaf.shape) if isinstance(leaf, (np.ndarray, np.generic))
        else type(leaf) for leaf in leaves]), [
            value for value in reader.held if type(value) is np.ndarray]


def _is_plain(structure: tree.TreeDef) -> bool:
    if structure.kind is tree.Static:
        return immutable(structure.meta)
    return structure.kind in _LEVELS and all(map(_is_plain, structure.children))


def may_stay(traced: Traced) -> bool:
    """Whether a trace computes and does nothing else; what it closes over apart, it holds nothing
    of the user's."""
    return (not traced.variables and not traced.failures and _is_plain(traced.out_tree)
            and not any(True for node in traced.graph.nodes for _ in effects_of(node))
            and not any(callable(attr) for node in all_nodes(traced.graph)
                        for attr in node.attrs.values()))
