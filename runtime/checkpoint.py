"""Checkpoints: variables in a safetensors file, written whole or not at all.

    weft.save("model.safetensors", variables, step=100)
    step = weft.restore("model.safetensors", variables)

Whenever the machine stops, there is the old checkpoint or the new one (``files``). Restoring
looks at every name, dtype and shape first and assigns after that, so a checkpoint that does not
fit changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ..ir.diagnose import error
from ..ir.types import TensorType, as_dtype
from .files import new_file
from .history import added, entries
from .state import Cell, assign, cut

Array = np.ndarray[Any, Any]
Variables = Mapping[str, Any] | Iterable[Any]
"""Arrays or variables by name, or objects with ``name``, ``numpy()`` and ``assign(array)``."""

_FORMAT = "weft-checkpoint-1"
_STEP = "__metadata__"  # which no variable may be named

# The dtypes that safetensors' NumPy interface both writes and reads.
_STORED = MappingProxyType({
    "BOOL": "bool", "I8": "i8", "U8": "u8", "I16": "i16", "U16": "u16", "I32": "i32", "U32": "u32",
    "I64": "i64", "U64": "u64", "F16": "f16", "BF16": "bf16", "F32": "f32", "F64": "f64",
    "C64": "c64",
})


def save(
    path: str | os.PathLike[str], variables: Variables, step: Any = None,
    keep: int | None = None,
) -> None:
    """Write the values that ``variables`` have at one moment, and ``step``, to the file ``path``.

    The step is a number, or a variable that counts, whose value of that moment it is. With
    ``keep`` the path is a folder that holds the last ``keep`` checkpoints and a manifest of them
    (``runtime.history``); without ``step`` they are counted.

    Raises FeedError (W304) if two variables have one name, for arrays without names, for dtypes
    that the format lacks, and for a ``keep`` that is no positive number.
    """
    arrays, step = _values(_named(variables), step)
    if keep is None:
        write_tensors(path, arrays, _metadata(step))
        return
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
        raise error("W304", f"keep is a number of checkpoints, not {keep!r}", hint="keep=3")
    with added(Path(path), step, keep) as (file, number):
        write_tensors(file, arrays, _metadata(number))


def restore(
    path: str | os.PathLike[str], variables: Variables, rename: Mapping[str, str] | None = None
) -> int | None:
    """Assign the values in the file ``path`` to ``variables``; the step that was saved, if any.

    Of a folder that ``save`` made with ``keep``, the newest checkpoint is read. ``rename`` gives
    the names that variables have in the file: ``{"encoder/w": "model/w"}`` reads the variable
    encoder/w from model/w. Variables change all at one moment; NumPy arrays are filled in place.
    Names in the file that are not asked for are left alone.

    Raises:
        FeedError: (W304) a variable is not in the file or has another dtype or shape there, or
            what is renamed is no variable.
        Error: (W403) the file is not a safetensors file, or a folder has no checkpoints.
        FileNotFoundError: there is no such file.
    """
    targets = _named(variables)
    file = Path(path)
    if file.is_dir():
        file /= entries(file)[-1].file
    found, metadata = _read(file, targets, _renamed(targets, rename or {}))
    cells = _cells(targets)
    assign(list(cells.values()), [np.array(found[name]) for name in cells])
    for name, variable in targets.items():
        if isinstance(variable, np.ndarray):
            variable[...] = found[name]
        elif name not in cells:
            variable.assign(found[name])
    step = metadata.get("step")
    return None if step is None else int(step)


def _metadata(step: int | None) -> dict[str, str]:
    return {"format": _FORMAT} | ({} if step is None else {"step": str(int(step))})


def _renamed(targets: Mapping[str, Any], rename: Mapping[str, str]) -> dict[str, str]:
    """The name in the file of each target."""
    for name in rename:
        if name not in targets:
            raise error("W304", f"rename has '{name}', which is none of the variables",
                        hint="rename={name of the variable: name in the file}")
    return {name: rename.get(name, name) for name in targets}


def write_tensors(
    path: str | os.PathLike[str], arrays: Mapping[str, Array], metadata: Mapping[str, str]
) -> None:
    """Write a safetensors file; the old one stays until the new one is safely on disk.

    Raises FeedError (W304) for dtypes that the format lacks, OSError if it cannot be written.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    dense = {}
    for name, array in arrays.items():
        if _type(array).dtype.name not in _STORED.values():
            raise error("W304", f"{name} has dtype {array.dtype}, which safetensors files lack",
                        hint="convert it before it is saved")
        # Of other memory orders the library writes the wrong elements.
        dense[name] = np.require(array, array.dtype.newbyteorder("="), ("C", "A"))
    with new_file(Path(path)) as file:
        try:
            save_file(dense, file, dict(metadata))
        except SafetensorError as problem:  # all that is left to go wrong: a full disk, a limit
            raise OSError(f"{path} cannot be written: {problem}") from None


def read_tensors(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays of a safetensors file by name, and its metadata. Raises Error (W403)."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, dict(file.metadata() or {})
    except SafetensorError as problem:
        raise error("W403", f"{path} is not a safetensors file: {problem}",
                    hint="it may be incomplete: copy or save it again") from None


def _named(variables: Variables) -> dict[str, Any]:
    """The variables by name."""
    named: dict[str, Any] = {}
    if isinstance(variables, Mapping):
        pairs = list(variables.items())
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
    return arrays, None if step is None else int(number)


def _value(variable: Any) -> Array:
    numpy = getattr(variable, "numpy", None)
    return np.asarray(numpy() if callable(numpy) else variable)


def _type(array: Array) -> TensorType:
    try:
        return TensorType(as_dtype(array.dtype), array.shape)
    except TypeError:
        raise error("W304", f"an array of dtype {array.dtype} cannot be saved",
                    hint="convert it to a number dtype") from None


def _read(
    path: Path, targets: Mapping[str, Any], names: Mapping[str, str]
) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays for ``targets``, all of which fit, and the metadata; ``names`` in the file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            stored = set(file.keys())
            problems = []
            for name, variable in targets.items():
                if names[name] not in stored:
                    problems.append(f"{names[name]} is not in the file")
                    continue
                part = file.get_slice(names[name])
                dtype = _STORED.get(part.get_dtype(), part.get_dtype())
                problems += _misfit(name, variable, dtype, tuple(part.get_shape()))
            if problems:
                more = f" and {len(problems) - 4} more" if len(problems) > 4 else ""
                raise error("W304", f"{path} does not fit: {'; '.join(problems[:4])}{more}",
                            hint=f"the file has {', '.join(sorted(stored)[:8]) or 'no variables'}")
            arrays = {name: file.get_tensor(names[name]) for name in targets}
            return arrays, dict(file.metadata() or {})
    except SafetensorError as problem:
        raise error("W403", f"{path} is not a safetensors file: {problem}",
                    hint="it may be incomplete: copy or save it again") from None


def _misfit(name: str, variable: Any, dtype: str, shape: tuple[int, ...]) -> list[str]:
    if isinstance(variable, np.ndarray):
        if not variable.flags.writeable:
            return [f"array {name} is read-only"]
    elif not hasattr(variable, "assign"):
        return [f"{name} is neither a variable nor an array"]
    wanted = getattr(variable, "type", None) or _type(_value(variable))
    found = f"{dtype}[{','.join(map(str, shape))}]"
    return [] if str(wanted) == found else [f"{name} is {wanted}, in the file {found}"]
