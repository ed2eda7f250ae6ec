"""Checkpoints: variables in a safetensors file, written whole or not at all.

    weft.save("model.safetensors", variables, step=100)
    step = weft.restore("model.safetensors", variables)

Variables of several devices make a folder, with a file for each device (``shards``). Whenever the
machine stops, there is the old checkpoint or the new one (``files``). Restoring looks at every
name, dtype and shape first and assigns after that, so a checkpoint that does not fit changes
nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.types import CPU0
from ..state import Cell, assign, cut
from .files import written
from .history import added, entries
from .shards import Tensors, opened, type_of, write_shards, write_tensors

Array = np.ndarray[Any, Any]
Variables = Mapping[str, Any] | Iterable[Any]
"""Arrays or variables by name, or objects with ``name``, ``numpy()`` and ``assign(array)``; or a
``weft.Graph`` or ``Session``, of which it is all variables."""

_FORMAT = "weft-checkpoint-1"
_STEP = "__metadata__"  # which no variable may be named
_MOST_DIGITS = 100  # of a step; Python reads no number of thousands


def save(
    path: str | os.PathLike[str], variables: Variables, step: Any = None,
    keep: int | None = None,
) -> None:
    """Write the values that ``variables`` have at one moment, and ``step``, to the file ``path``.

    The step is a number, or a variable that counts, whose value of that moment it is. With
    ``keep`` the path is a folder that holds the last ``keep`` checkpoints and a manifest of them
    (``runtime.storage.history``); without ``step`` they are counted. Variables that live on several
    devices (``weft.device`` where they are made) are written as one file for each device, all at
    the same time, into such a folder, of one checkpoint without ``keep``. With ``keep``, variables
    of which nothing is said are in the file of the device where a session has put them. Arrays are
    written from where they are: it takes no memory of their size.

    Raises FeedError (W304) if two variables have one name, for arrays without names, for dtypes
    that the format lacks, for a ``keep`` that is no positive number, and where a folder is needed
    and ``path`` is a file. Raises UnwritableError (W408), an OSError, where it cannot be written:
    what was there before is there as it was.

    >>> import tempfile, weft
    >>> w, steps = weft.Variable([1.0, 2.0], name="save/w"), weft.Variable(7, name="save/steps")
    >>> with tempfile.TemporaryDirectory() as run:
    ...     save(run + "/first.safetensors", [w, steps], step=steps)
    ...     _ = w.assign([0.0, 0.0])
    ...     restore(run + "/first.safetensors", {"b": w}, rename={"b": "save/w"}), w.numpy()
    (7, array([1., 2.]))
    """
    named = _named(variables)
    arrays, step = _values(named, step)
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 1):
        raise error("W304", f"keep is a number of checkpoints, not {keep!r}", hint="keep=3")
    parts: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        # A path that is to be a file stays one, whatever placement does.
        placed = getattr(named[name], "placed", None) if keep is not None else None
        home = getattr(named[name], "home", None) or placed or CPU0
        parts.setdefault(str(home), {})[name] = array
    if keep is None and len(parts) < 2:
        with written(path, "checkpoint"):
            write_tensors(path, arrays, _metadata(step))
        return
    if keep is None and Path(path).is_file():
        raise error("W304", f"variables of {len(parts)} devices are saved in a folder, and {path} "
                            "is a file", hint="name a new folder")
    with written(path, "checkpoint"), added(Path(path), step, keep or 1) as new:
        if len(parts) < 2:
            write_tensors(new.folder / new.file, arrays, _metadata(new.step))
        else:
            write_shards(new, parts, _metadata(new.step))


def restore(
    path: str | os.PathLike[str], variables: Variables, rename: Mapping[str, str] | None = None
) -> int | None:
    """Assign the values in the file ``path`` to ``variables``; the step that was saved, if any.

    Of a folder that ``save`` made, the newest checkpoint is read, and of one with shards just the
    files that have what is asked for. ``rename`` gives the names that variables have in the file:
    ``{"encoder/w": "model/w"}`` reads the variable encoder/w from model/w. Variables change all at
    one moment, and to which devices they belong does not matter; NumPy arrays are filled in place.
    Names in the file that are not asked for are left alone.

    Raises:
        FeedError: (W304) a variable is not in the file or has another dtype or shape there, or
            what is renamed is no variable.
        Error: (W403) the file is not a safetensors file or damaged (each array has a checksum), a
            shard is missing or damaged, a step is no number, or a folder has no checkpoints.
        FileNotFoundError: there is no such file.
    """
    targets = _named(variables)
    names = _renamed(targets, rename or {})
    place = Path(path)
    entry = entries(place)[-1] if place.is_dir() else None
    with opened(place, entry, names.values()) as stored:
        _check_fit(place, stored, targets, names)
        step = _stored_step(place, stored)
        cells = _cells(targets)
        arrays = [name for name, each in targets.items() if isinstance(each, np.ndarray)]
        others = [name for name in targets if name not in cells and name not in arrays]
        for name in arrays:
            stored.check(names[name])
        # What is read belongs to nobody else: the cells take it as it is.
        read = stored.read([names[name] for name in (*cells, *others)])
        _assign_each([targets[name] for name in others], read[len(cells):])
        assign(list(cells.values()), read[:len(cells)])
        for name in arrays:
            stored.fill(names[name], targets[name])
    return step


def _stored_step(path: Path, stored: Tensors) -> int | None:
    """The step that files say they are of. Raises Error (W403) for one that is no number."""
    step = stored.metadata.get("step")
    if step is None or (step.isascii() and step.isdigit() and len(step) < _MOST_DIGITS):
        return None if step is None else int(step)
    raise error("W403", f"{path} is of step {step[:40]!r}, which is no whole number",
                hint="take the arrays alone: w.assign(safetensors.numpy.load_file(path)['w'])")


def _assign_each(targets: Sequence[Any], arrays: Sequence[Array]) -> None:
    """Assign to variables of other libraries, or leave all of them as they were."""
    old = list(map(_value, targets))
    for at, (target, array) in enumerate(zip(targets, arrays, strict=True)):
        try:
            target.assign(array)
        except BaseException:
            for earlier, value in zip(targets[:at], old, strict=False):
                earlier.assign(value)
            raise


def _metadata(step: int | None) -> dict[str, str]:
    return {"format": _FORMAT} | ({} if step is None else {"step": str(int(step))})


def _renamed(targets: Mapping[str, Any], rename: Mapping[str, str]) -> dict[str, str]:
    """The name in the file of each target."""
    if not isinstance(rename, Mapping):
        raise error("W304", f"rename is a mapping of names, not {type(rename).__name__}",
                    hint="rename={name of the variable: name in the file}")
    for name in rename:
        if name not in targets:
            raise error("W304", f"rename has '{name}', which is none of the variables",
                        hint="rename={name of the variable: name in the file}")
    return {name: rename.get(name, name) for name in targets}


def _named(variables: Variables) -> dict[str, Any]:
    """The variables by name."""
    named: dict[str, Any] = {}
    for graph in (variables, getattr(variables, "graph", None)):  # itself, or of a session
        if isinstance(getattr(graph, "variables", None), Mapping):
            variables = list(graph.variables.values())  # type: ignore[union-attr]
            break
    if isinstance(variables, Mapping):
        pairs = list(variables.items())
    elif not hasattr(variables, "name") and not isinstance(variables, Iterable):
        raise error("W304", f"{type(variables).__name__} has no variables",
                    hint="give a list of variables, a dict by name, or a graph or session")
    else:
        alone = hasattr(variables, "name") or isinstance(variables, np.ndarray)
        pairs = [(getattr(variable, "name", None), variable)
                 for variable in ([variables] if alone else list[Any](variables))]
    for name, variable in pairs:
        if not isinstance(name, str) or name == _STEP:
            raise error("W304", f"{type(variable).__name__} without a name" if name is None else
                                f"{name!r} cannot be the name of a variable",
                        hint="give names: {'w': first, 'b': second} in place of a list")
        if named.setdefault(name, variable) is not variable:
            raise error("W304", f"two variables are named '{name}'",
                        hint="give them names: save(path, {'first': v, 'second': w})")
    return named


def _cells(variables: Mapping[str, Any]) -> dict[str, Cell]:
    """The cells of those that have one."""
    found = {name: getattr(variable, "cell", None) for name, variable in variables.items()}
    return {name: cell for name, cell in found.items() if isinstance(cell, Cell)}


def _values(variables: Mapping[str, Any], step: Any) -> tuple[dict[str, Array], int | None]:
    """The values by name, and the step; those of variables are of one moment."""
    named = {**variables, _STEP: step}
    cells = _cells(named)
    known = dict(zip(cells, cut(list(cells.values())), strict=True))
    arrays = {name: known[name] if name in known else _value(variable)
              for name, variable in named.items()}
    number = arrays.pop(_STEP)
    return arrays, None if step is None else _count(number)


def step_of(step: Any) -> int:
    """The number that a step, or a variable that counts them, is now. Raises FeedError (W304)."""
    return _count(_value(step))


def _count(step: Array) -> int:
    """A step as a number of updates: it is part of file names, by which writers know their own."""
    whole = step.shape == () and step.dtype.kind in "iuf" and np.isfinite(step) and step >= 0
    if not whole or int(step) != step:
        raise error("W304", f"a step is a whole number from 0 on, not {step!s}",
                    hint="count updates: step=100, or a variable that each update adds 1 to")
    return int(step)


def _value(variable: Any) -> Array:
    numpy = getattr(variable, "numpy", None)
    return np.asarray(numpy() if callable(numpy) else variable)


def _check_fit(
    path: Path, stored: Tensors, targets: Mapping[str, Any], names: Mapping[str, str]
) -> None:
    """Raise W304 unless all targets are stored, in their types."""
    problems = [problem for name, variable in targets.items()
                for problem in _misfit(name, variable, names[name], stored.type_of(names[name]))]
    if problems:
        more = f" and {len(problems) - 4} more" if len(problems) > 4 else ""
        raise error("W304", f"{path} does not fit: {'; '.join(problems[:4])}{more}",
                    hint=f"the file has {', '.join(stored.names[:8]) or 'no variables'}")


def _misfit(name: str, variable: Any, stored: str, found: str | None) -> list[str]:
    if found is None:
        return [f"{stored} is not in the file"]
    if isinstance(variable, np.ndarray):
        if not variable.flags.writeable:
            return [f"array {name} is read-only"]
    elif not hasattr(variable, "assign"):
        return [f"{name} is neither a variable nor an array"]
    wanted = getattr(variable, "type", None) or type_of(_value(variable))
    return [] if str(wanted) == found else [f"{name} is {wanted}, in the file {found}"]
