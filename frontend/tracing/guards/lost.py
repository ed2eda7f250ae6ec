"""What tracing would lose without a word, noticed when a trace ends.

    self.w = self.w - g          a traced value on an object, where no number will ever be   warning
    params["w"] = w - g          a dict of the trace changes, the caller's does not          W203
    x -= x.mean()                so does an array of the trace                            warning

All of it is looked at while tracing only: a call of a compiled function pays nothing.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import CellType, FrameType
from typing import Any
from weakref import ref

from ....ir.diagnose import TracingWarning, error
from ....ir.loc import Loc
from ...face import tree
from ...face.source import definition
from ..arrays.views import Indexed
from ..values.tracer import Tracer

_MOST_WARNINGS = 3


def warn(message: str, locs: Sequence[Loc]) -> None:
    """A TracingWarning at the line that it is about."""
    place = locs[0] if locs else Loc("<unknown>", 0, "")
    warnings.warn_explicit(message, TracingWarning, place.file, place.line)


# -- arguments ----------------------------------------------------------------------------------


def check_unchanged(
    nest: Any, structure: tree.TreeDef, inputs: Sequence[Any],
    names: Callable[[tree.TreeDef], Sequence[str]], function: Callable[..., Any],
) -> None:
    """Raises TracerError (W203) if a nest of arguments is not what the function was given."""
    leaves, found = tree.flatten_again(nest, structure)
    if found == structure and all(x is y for x, y in zip(leaves, inputs, strict=True)):
        return
    before, after = names(structure), names(found)
    known = dict(zip(before, inputs, strict=True))
    culprit, what = None, "an argument was changed"
    for name, leaf in zip(after, leaves, strict=True):
        if name not in known or known[name] is not leaf:
            culprit, what = leaf, f"{name} was {'set' if name in known else 'added'}"
            break
    else:
        gone = [name for name in before if name not in after]
        what = f"{gone[0]} was removed" if gone else what
    raise error("W203", f"{what} in the traced function, but not in what the caller holds",
                locs=_made_at(culprit) or definition(function),
                hint="leave arguments as they are: change a copy and return it "
                     "(params = {**params, 'w': w})")


def check_used_up(changed: Sequence[tuple[str, tuple[Loc, ...]]]) -> None:
    """Warn of arguments that in-place operators change here, but not in what the caller holds."""
    for name, locs in dict(changed).items():
        warn(f"{name.removesuffix(':0')} is changed in place in the traced function, but the "
             "array of the caller stays as it is. Write x = x + y, and return it if it is for the "
             "caller", locs)


def check_kept(made: Sequence[tuple[str, tuple[Loc, ...]]]) -> None:
    """Warn of variables that are made in the traced function: once, and not at each call."""
    for name, locs in made:
        warn(f"variable {name} is made while the function is traced, and keeps its value from call "
             "to call. Make it outside, or write an array: s = np.zeros(3); s += x", locs)


def check_made(function: Callable[..., Any]) -> None:
    """Warn of arrays that each trace makes anew and leaves behind, as a call would."""
    warn(f"{name_of(function)} makes an array that outlives the call, when it is traced and not at "
         "each call. Return it from the function and store the result", definition(function))


def _made_at(x: Any) -> tuple[Loc, ...]:
    node = x._value.node if isinstance(x, Tracer) and x._value is not None else None
    return node.locs[:1] if node is not None else ()


# -- values that outlive their trace ------------------------------------------------------------


def check_leaks(made: Sequence[ref[Tracer]], function: Callable[..., Any]) -> None:
    """Warn of tracers that are still held somewhere; their trace has let go of all of them."""
    # What is part of a cycle only is not held by anybody. Nearly always all of it is young, if
    # the collector was paused; a full collection takes as long as all objects of the process do.
    for generation in (None, 0, 2):
        if generation is not None:
            gc.collect(generation)
        if not _alive(made):
            return
    alive = _alive(made)
    ours = {id(alive), *(id(part) for tracer in alive for part in _views(tracer))}
    shown = 0
    for tracer in alive:
        where = _holder(tracer, ours)
        if where and shown < _MOST_WARNINGS:
            shown += 1
            value = tracer._value
            what = f"{value.name} ({value.type})" if value is not None else "a size"
            warn(f"{what} is a traced value, which {where} still holds after the trace of "
                  f"{name_of(function)}: there will never be a number in it. Return it from the "
                  "function and store the result, or keep state in a weft.Variable",
                  _made_at(tracer) or definition(function))


def _alive(made: Sequence[ref[Tracer]]) -> list[Tracer]:
    return [tracer for each in made if (tracer := each()) is not None]


def _views(tracer: Tracer) -> Iterator[Any]:
    """What a view holds the array by that it is of."""
    if tracer.taken is not None:
        yield from (tracer.taken, tracer.taken[1])
    if tracer.link is not None:
        yield tracer.link
        if isinstance(tracer.link, Indexed):
            for way in (tracer.link.get, tracer.link.put):
                yield from getattr(way, "__closure__", None) or ()


def _holder(tracer: Tracer, ours: set[int]) -> str:
    """Who holds a tracer, in words; '' if it is another tracer, or a part of one."""
    owners = [owner for owner in gc.get_referrers(tracer)
              if id(owner) not in ours and not isinstance(owner, (FrameType, Tracer))]
    for owner in owners:
        key = _key_of(tracer, owner)
        if isinstance(owner, dict):
            if owner.get("__name__") is not None and "__builtins__" in owner:
                return f"the global variable '{key}' of {owner['__name__']}"
            objects = [x for x in gc.get_referrers(owner) if getattr(x, "__dict__", None) is owner]
            return (f"the attribute '{key}' of {type(objects[0]).__name__}" if objects
                    else f"a dict, as {key!r},")
        if isinstance(owner, CellType):
            return "a variable of an enclosing function"
        if key is not None:
            return f"the attribute '{key}' of {type(owner).__name__}"
    return f"a {type(owners[0]).__name__}" if owners else ""


def _key_of(wanted: Any, owner: Any) -> Any:
    items = owner if isinstance(owner, dict) else getattr(owner, "__dict__", {})
    return next((key for key, value in items.items() if value is wanted), None)


def name_of(function: Any) -> str:
    """How warnings call a function."""
    return str(getattr(function, "__name__", type(function).__name__))
