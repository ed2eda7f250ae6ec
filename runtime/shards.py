"""The files of one checkpoint: a shard for each device, written and read side by side.

A shard knows its device, and all shards of a checkpoint have one mark; the manifest has their sizes
and the names of their variables (``history``). So a part of a checkpoint is read from the shards
that have it, and what is missing or damaged is told by its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ..ir.diagnose import Error, error
from ..ir.types import TensorType, as_dtype
from .files import new_file
from .history import Addition, Entry, Shard

Array = np.ndarray[Any, Any]

# The dtypes that safetensors' NumPy interface both writes and reads.
STORED = MappingProxyType({
    "BOOL": "bool", "I8": "i8", "U8": "u8", "I16": "i16", "U16": "u16", "I32": "i32", "U32": "u32",
    "I64": "i64", "U64": "u64", "F16": "f16", "BF16": "bf16", "F32": "f32", "F64": "f64",
    "C64": "c64",
})
_BLOCK = 1 << 24  # bytes of an array that are read at a time


def type_of(array: Array) -> TensorType:
    """The type of an array. Raises W304 if it has none."""
    try:
        return TensorType(as_dtype(array.dtype), array.shape)
    except TypeError:
        raise error("W304", f"an array of dtype {array.dtype} cannot be saved",
                    hint="convert it to a number dtype") from None


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
        if type_of(array).dtype.name not in STORED.values():
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
    with opened(Path(path), None, ()) as stored:
        return dict(zip(stored.names, stored.read(stored.names), strict=True)), stored.metadata


def write_shards(
    new: Addition, parts: Mapping[str, Mapping[str, Array]], metadata: Mapping[str, str]
) -> None:
    """Write what each device holds, all at the same time."""
    def write(at: int, device: str, arrays: Mapping[str, Array]) -> Shard:
        path = new.folder / new.shard(at)
        write_tensors(path, arrays, {**metadata, "device": device})
        return Shard(path.name, device, path.stat().st_size, tuple(arrays))

    with ThreadPoolExecutor(len(parts), "weft-shard") as threads:
        new.shards += threads.map(write, range(len(parts)), parts, parts.values())


class Tensors:
    """The arrays of some files that are open."""

    def __init__(self, path: Path, files: Sequence[Any]) -> None:
        self._path = path
        self._holders = {name: file for file in files for name in list(file.keys())}
        self.metadata = dict(files[0].metadata() or {}) if files else {}

    @property
    def names(self) -> list[str]:
        return sorted(self._holders)

    def type_of(self, name: str) -> str | None:
        """The type of an array as text; None if there is none of that name."""
        if name not in self._holders:
            return None
        part = self._holders[name].get_slice(name)
        dtype = STORED.get(part.get_dtype(), part.get_dtype())
        return f"{dtype}[{','.join(map(str, part.get_shape()))}]"

    def read(self, names: Iterable[str]) -> list[Array]:
        """Arrays of their own, those of several files side by side."""
        wanted = list(dict.fromkeys(names))
        by_file: dict[int, list[str]] = {}
        for name in wanted:
            by_file.setdefault(id(self._holders[name]), []).append(name)
        with ThreadPoolExecutor(max(1, len(by_file)), "weft-shard") as threads:
            parts = threads.map(lambda part: [(name, self._holders[name].get_tensor(name))
                                              for name in part], by_file.values())
            found = dict(pair for part in parts for pair in part)
        return [found[name] for name in names]

    def fill(self, name: str, target: Array) -> None:
        """Copy an array into one that there is, block by block."""
        if not target.ndim or not target.size:
            target[...] = self._holders[name].get_tensor(name)
            return
        part = self._holders[name].get_slice(name)
        rows = max(1, _BLOCK // max(1, target.nbytes // len(target)))
        for first in range(0, len(target), rows):
            last = min(first + rows, len(target))
            target[first:last] = part[first:last]


@contextmanager
def opened(path: Path, entry: Entry | None, names: Iterable[str]) -> Iterator[Tensors]:
    """The arrays of a file, or of a checkpoint of the folder ``path``: at least those of ``names``
    that it has.

    Raises Error (W403) for a file that is missing or not whole, FileNotFoundError if there is none
    at ``path``.
    """
    from safetensors import SafetensorError, safe_open

    wanted = set(names)
    shards = entry.shards if entry is not None else ()
    used = [shard for shard in shards if not wanted.isdisjoint(shard.variables)] or shards[:1]
    files = [path / shard.file for shard in used] or [path / entry.file if entry else path]
    for shard in used:
        _check(path, shard, entry)
    with ExitStack() as stack:
        held = []
        for file in files:
            try:
                held.append(stack.enter_context(safe_open(file, framework="np")))
            except SafetensorError as problem:
                raise error("W403", f"{file} is not a safetensors file: {problem}",
                            hint="it may be incomplete: copy or save it again") from None
        yield Tensors(path, held)


def _check(folder: Path, shard: Shard, entry: Entry | None) -> None:
    assert entry is not None
    file, what = folder / shard.file, f"of the checkpoint of step {entry.step}"
    if not file.exists():
        raise _lost(f"the shard of {shard.device} {what} is missing: {file}", shard)
    size = file.stat().st_size
    if size != shard.bytes:
        raise _lost(f"the shard of {shard.device} {what} is damaged: {file} has {size} bytes, not "
                    f"{shard.bytes}", shard)


def _lost(message: str, shard: Shard) -> Error:
    names = ", ".join(shard.variables[:4]) + (", ..." if len(shard.variables) > 4 else "")
    return error("W403", message, hint=f"copy it again, or restore all but {names}")
