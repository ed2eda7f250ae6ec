"""The files of one checkpoint: a shard for each device, written and read side by side.

A shard knows its device, and all shards of a checkpoint have one mark; the manifest has their sizes
and the names of their variables (``history``). So a part of a checkpoint is read from the shards
that have it, and what is missing or damaged is told by its name. Each file has the CRC-32 of its
arrays in its metadata (``crc32``), by which a byte that is no longer what was written is found.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.forks import LOADING
from ...ir.types import TensorType, as_dtype, dtype_of
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
_SUMS = "crc32"   # in the metadata of a file: the checksums of its arrays by name,
_REST = ""        # and of the other metadata


def type_of(array: Array) -> TensorType:
    """The type of an array. Raises W304 if it has none."""
    try:
        return TensorType(dtype_of(array), array.shape)
    except TypeError:
        raise error("W304", f"an array of dtype {array.dtype} cannot be saved",
                    hint="convert it to a number dtype") from None


def _checksum(array: Array, so_far: int = 0) -> int:
    """That of the elements in C order, after those of which it is ``so_far``."""
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, so_far)


def _text_checksum(metadata: Mapping[str, str]) -> int:
    return zlib.crc32(json.dumps(sorted(metadata.items())).encode())


def write_tensors(
    path: str | os.PathLike[str], arrays: Mapping[str, Array], metadata: Mapping[str, str]
) -> None:
    """Write a safetensors file; the old one stays until the new one is safely on disk.

    Raises FeedError (W304) for dtypes that the format lacks, OSError if it cannot be written.
    """
    with LOADING:
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

    dense = {}
    for name, array in arrays.items():
        if type_of(array).dtype.name not in STORED.values():
            raise error("W304", f"{name} has dtype {array.dtype}, which safetensors files lack",
                        hint="save its numbers in pairs: np.atleast_1d(x).view(np.float64)"
                        if array.dtype.kind == "c" else
                        "convert it before it is saved: x.astype(np.float32)")
        # Of other memory orders the library writes the wrong elements.
        dense[name] = np.require(array, array.dtype.newbyteorder("="), ("C", "A"))
    sums = {name: _checksum(array) for name, array in dense.items()}
    sums[_REST] = _text_checksum(metadata)
    with new_file(Path(path)) as file:
        try:
            save_file(dense, file, {**metadata, _SUMS: json.dumps(sums)})
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
        self._sums: dict[str, int] = {}
        found = [self._described(dict(file.metadata() or {}), list(file.keys())) for file in files]
        self.metadata = found[0] if found else {}

    def _described(self, metadata: dict[str, str], names: Sequence[str]) -> dict[str, str]:
        """The metadata of a file but for the checksums, which are kept. Raises Error (W403)."""
        summed = _SUMS in metadata  # files of other writers have none
        try:
            sums = dict(json.loads(metadata.pop(_SUMS, "{}")))
        except (ValueError, TypeError, RecursionError):
            sums = {_REST: None}
        rest = _text_checksum(metadata)
        if sums.pop(_REST, rest) != rest or (summed and set(sums) != set(names)):
            raise self._damaged("what is said of its arrays")
        self._sums.update(sums)
        return metadata

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
        """Arrays of their own, those of several files side by side. Raises Error (W403) for one
        that is not what was written."""
        wanted = list(dict.fromkeys(names))
        by_file: dict[int, list[str]] = {}
        for name in wanted:
            by_file.setdefault(id(self._holders[name]), []).append(name)
        with ThreadPoolExecutor(max(1, len(by_file)), "weft-shard") as threads:
            parts = threads.map(lambda part: [(name, self._whole(name)) for name in part],
                                by_file.values())
            found = dict(pair for part in parts for pair in part)
        return [found[name] for name in names]

    def _whole(self, name: str) -> Array:
        found: Array = self._holders[name].get_tensor(name)
        self._compare(name, _checksum(found))
        return found

    def _compare(self, name: str, found: int) -> None:
        if self._sums.get(name, found) != found:
            raise self._damaged(f"'{name}'")

    def _damaged(self, what: str) -> Error:
        return error("W403", f"{self._path} is damaged: {what} is not what was written",
                     hint="copy or save it again, or restore an older checkpoint")

    def check(self, name: str) -> None:
        """Raise Error (W403) if an array is not what was written."""
        found = 0
        for _, block in self._blocks(name):
            found = _checksum(block, found)
        self._compare(name, found)

    def fill(self, name: str, target: Array) -> None:
        """Copy an array into one that there is, block by block."""
        for rows, block in self._blocks(name):
            target[rows] = block

    def _blocks(self, name: str) -> Iterator[tuple[Any, Array]]:
        """An array in parts, and where they are in it."""
        part = self._holders[name].get_slice(name)
        shape = part.get_shape()
        if 0 in shape or not shape:
            yield ..., self._holders[name].get_tensor(name)
            return
        whole = math.prod(shape) * as_dtype(STORED[part.get_dtype()]).numpy.itemsize
        count = max(1, _BLOCK // max(1, whole // shape[0]))
        for first in range(0, shape[0], count):
            rows = slice(first, min(first + count, shape[0]))
            yield rows, part[rows]


@contextmanager
def opened(path: Path, entry: Entry | None, names: Iterable[str]) -> Iterator[Tensors]:
    """The arrays of a file, or of a checkpoint of the folder ``path``: at least those of ``names``
    that it has.

    Raises Error (W403) for a file that is missing or not whole, FileNotFoundError if there is none
    at ``path``.
    """
    with LOADING:
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
