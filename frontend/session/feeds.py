"""What is fed to a step: values of the graph, variables, and what their new values must be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.convert import conversion
from ...ir.diagnose import error
from ...ir.graph import Value
from ...ir.types import are_integers, keeps_kind, keeps_values
from ..face.source import user_loc
from ..tracing.arrays.variable import Variable
from ..tracing.subclasses import checked_class
from ..tracing.values.tracer import Tracer
from .graph import Graph

Fed = Value | Variable
"""A value that is fed, or a variable whose value at the start of the step is."""


def flat(feeds: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Feeds with keys that are no tuples: ``{(x, y): (1, 2)}`` gives ``{x: 1, y: 2}``.

    Raises FeedError (W303) if the values are no nest of the keys' structure.
    """
    if not any(issubclass(type(key), tuple) for key in feeds):
        return feeds
    found: list[tuple[Any, Any]] = []
    for key, given in feeds.items():
        if isinstance(key, tuple):
            found += _pairs(key, given)
        else:
            found.append((key, given))
    if len({id(key) if isinstance(key, Tracer) else key for key, _ in found}) < len(found):
        raise error("W301", "a value is fed twice", locs=user_loc(), hint="give each one feed")
    return dict(found)


def _pairs(keys: Any, given: Any) -> list[tuple[Any, Any]]:
    if not isinstance(keys, tuple):
        return [(keys, given)]
    if not isinstance(given, (tuple, list)) or len(given) != len(keys):
        raise error("W303", f"a tuple of {len(keys)} is fed with {type(given).__name__}",
                    locs=user_loc(), hint="feed a tuple of as many values")
    return [pair for each in zip(keys, given, strict=True) for pair in _pairs(*each)]


def listed(feeds: Any) -> list[Any]:
    """What is fed to a callable, in order. Raises FeedError (W301) for what is no list."""
    if not isinstance(feeds, Iterable) or isinstance(feeds, str | Tracer | Variable):
        raise error("W301", f"feeds is a list of what is fed, not {type(feeds).__name__}",
                    locs=user_loc(), hint="write such as s.make_callable(y, [x])")
    return list(feeds)


def names_of(graph: Graph, feeds: Sequence[Fed]) -> dict[str, Variable]:
    """The variables that are fed, by their names in the graph. Raises FeedError (W301) for one that
    is fed twice."""
    found: dict[str, Variable] = {}
    for feed in feeds:
        if isinstance(feed, Variable):
            name = graph.resource(feed)["var"]
            if name in found:
                raise error("W301", f"{name} is fed twice", locs=user_loc(),
                            hint="give each variable one feed")
            found[name] = feed
    return found


def convert(feed: Fed, given: Any, whole: bool = False) -> Any:
    """A fed value in the dtype of what it feeds; with ``whole`` its shape is asked for, too, which
    else the program does. Raises W303 where that would lose values."""
    if isinstance(given, Tracer):
        raise error("W303", f"{feed.name} is fed with a traced value", locs=user_loc(),
                    hint="feed arrays and numbers")
    checked_class(given, feed.name)
    wanted = feed.type
    try:
        array = given.cell.value if isinstance(given, Variable) else np.asarray(given)
    except ValueError:
        raise error("W303", f"{feed.name} is {wanted}, got {type(given).__name__} with parts of "
                            "other lengths", locs=user_loc(),
                    hint="make the parts equally long, or feed them one by one") from None
    dtype = wanted.dtype.numpy
    if whole and array.shape != wanted.shape:
        raise error("W303", f"{feed.name} is {wanted}, got {array.dtype}{list(array.shape)}",
                    locs=user_loc())
    if array.dtype == dtype:
        return array
    out_of_range = are_integers(array.dtype, dtype) or keeps_kind(array.dtype, dtype)
    if not array.size or (out_of_range and keeps_values(array, dtype)):
        return array.astype(dtype)
    numeric = array.dtype.kind not in "OSUMm"
    got = (f"{array.dtype}{list(array.shape)}" if numeric or isinstance(given, np.ndarray)
           else type(given).__name__)
    raise error("W303", f"{feed.name} is {wanted}, got {got}", locs=user_loc(),
                hint=f"feed numbers that {wanted.dtype} holds" if out_of_range else
                conversion(given, wanted.dtype))
