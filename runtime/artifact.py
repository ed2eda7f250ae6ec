"""weft.load: run an exported artifact from Python, without the compiler.

    m = weft.load("m")
    y = m(x)                                       the arguments and results of the function
    [h] = m.run(["h"], {"x": x})                   or by name

A folder's manifest says what goes in and out; the shared library does the rest, weights and
scratch memory included. Nothing in a folder is executed but the library. A variable that the
function assigns is state of the loaded object: it starts as exported and changes call by call.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.diagnose import error
from ..ir.indices.walk import evaluate
from ..ir.plans.plan import CheckSite, Relation, Slot
from ..ir.types import Loc, parse_dim, parse_type
from .lifetime import Lifetime
from .profile.recording import active, span
from .program import check_failed, check_sizes, fit_all
from .threads import thread_limit
from .tree import TreeDef, collect, level, structure_of, unflatten

Array = np.ndarray[Any, Any]

# Where the program headers and the section headers of an ELF file begin, how long one is, and how
# many there are; where a segment begins, and how long it is in the file (System V ABI, 64 bits).
_ELF = struct.Struct("<32x2Q6x4H2x")
_SEGMENT = struct.Struct("<8xQ16xQ")
_SEAL = "crc32"  # of a manifest: the checksum of all else that it says
FORMAT = 2
"""The version of the manifest; a change that old readers cannot read makes it one more."""


def load(path: str | os.PathLike[str], threads: int | None = None) -> Loaded:
    """The artifact in the folder ``path``, ready to be called.

    ``threads`` is the most a call may use; by default ``weft.set_num_threads`` says it.

    Raises:
        Error: (W403) the folder is no artifact, or one for other versions, another CPU or
            another platform; (W404) it was exported where there was no linker.
    """
    return Loaded(*opened(path, threads))


def opened(
    path: str | os.PathLike[str], threads: int | None
) -> tuple[Path, Mapping[str, Any], ctypes.CDLL, int]:
    """What a ``Loaded`` is made of; see ``load``."""
    folder = Path(path)
    manifest = _manifest(folder)
    return folder, manifest, _library(folder, manifest), threads or thread_limit()


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        found, version = manifest["format"], manifest["weft"]
        if found == FORMAT and sealed(manifest)[_SEAL] != manifest.get(_SEAL):
            raise ValueError("it is not what was written")
    except (FileNotFoundError, NotADirectoryError):
        raise error("W403", f"{folder} is not a Weft artifact: it has no manifest.json",
                    hint="make one: weft.export(function, *specs, path=...)") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as problem:
        raise error("W403", f"{folder / 'manifest.json'} cannot be read: {problem}",
                    hint="export it again") from None
    if found != FORMAT:
        raise error("W403", f"{folder} has format {found} (of Weft {version}), "
                            f"this Weft reads format {FORMAT}",
                    hint="install that version of Weft, or export with this one")
    checked: dict[str, Any] = manifest
    return checked


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest with its checksum, by which one that was damaged is found."""
    rest = {name: part for name, part in manifest.items() if name != _SEAL}
    return {**rest, _SEAL: zlib.crc32(json.dumps(rest, sort_keys=True).encode())}


def _library(folder: Path, manifest: Mapping[str, Any]) -> ctypes.CDLL:
    """The shared library of this very export."""
    file = folder / f"{manifest['file']}.so"
    if not file.is_file():
        raise error("W404", f"{file} is missing: there was no linker where it was exported",
                    hint=f"in {folder}: {manifest['link']}")
    if not _is_whole(file):  # whose pages the system would miss when it comes to use them
        raise error("W403", f"{file} is not whole", hint=f"in {folder}: {manifest['link']}")
    before, spelled = None, f"{folder.resolve()}/"
    while True:
        try:
            library = ctypes.CDLL(spelled + file.name)
            version = library[f"{manifest['name']}_version"]
        except (OSError, AttributeError) as problem:
            raise error("W403", f"{file} cannot be loaded: {problem}",
                        hint="export it on a machine of this kind") from None
        version.restype = ctypes.c_char_p
        if version().decode() == manifest["version"]:
            break
        if before == library._handle:
            raise error("W403", f"{file} and its manifest are of two exports",
                        hint=f"in {folder}: {manifest['link']}")
        # One path is one library to the system, even if the file is now that of a later export.
        before, spelled = library._handle, f"{spelled}./"
    if library[f"{manifest['name']}_check_cpu"]() != 0:
        raise error("W403", f"{folder} was compiled for {manifest['target']['cpu']}: "
                            "this CPU lacks instructions of it",
                    hint="export it with the target of an older CPU, or on this machine with "
                         "target='native'")
    return library


def _is_whole(file: Path) -> bool:
    """Whether all parts of an ELF file lie in it; of other formats, the system is to tell."""
    with file.open("rb") as stream:
        header = stream.read(_ELF.size)
        size = os.fstat(stream.fileno()).st_size
        if header[:4] != b"\x7fELF":
            return size > 0
        if len(header) < _ELF.size:
            return False
        programs, sections, entry, count, other, others = _ELF.unpack(header)
        if max(programs + entry * count, sections + other * others) > size:
            return False
        stream.seek(programs)
        parts = [_SEGMENT.unpack(stream.read(entry)[:_SEGMENT.size]) for _ in range(count)]
    return all(start + length <= size for start, length in parts)


class Loaded:
    """A loaded artifact; ``threads`` may be set at any time. Calls may run side by side, but
    those of an artifact with variables take turns.
    """

    def __init__(
        self, folder: Path, manifest: Mapping[str, Any], library: ctypes.CDLL, threads: int
    ) -> None:
        self.name: str = manifest["name"]
        self.threads = threads
        self._manifest, self._library = manifest, library
        self._inputs, self._outputs = (
            [Slot(item["name"], parse_type(item["type"]), item.get("variable", ""))
             for item in manifest[side]] for side in ("inputs", "outputs"))
        self._kinds: list[str] = [item["kind"] for item in manifest["inputs"]]
        self._made: list[str] = [item["kind"] for item in manifest["outputs"]]
        self._symbols: list[str] = manifest["symbols"]
        self._args = [structure_of(text) for text in manifest["args"]]
        self._keywords = [(name, structure_of(text)) for name, text in manifest["keywords"]]
        self._results = structure_of(manifest["results"])
        self._run = library[f"{self.name}_call"]
        self._arena = library[f"{self.name}_arena_bytes"]
        self._arena.restype = ctypes.c_size_t
        self._arena.argtypes = [ctypes.c_int64] * len(self._symbols)
        self._handle = self._map_weights(folder) if manifest["weights"] else None
        self._state: dict[str, Array] = {
            slot.var: self._initial(slot, item["offset"])
            for slot, item in zip(self._inputs, manifest["inputs"], strict=True) if slot.var}
        self._stateful = any(slot.var for slot in self._outputs)
        self._lock = threading.Lock()
        self._spare: list[Array] = []  # at most one arena that no call uses
        self._last: tuple[tuple[int, ...], list[list[int]], int] | None = None

    def __repr__(self) -> str:
        inputs = ", ".join(f"{slot.name}: {slot.type}" for slot in self._inputs if not slot.var)
        outputs = ", ".join(f"{slot.name}: {slot.type}" for slot in self._outputs if not slot.var)
        return f"<{self.name}({inputs}) -> ({outputs})>"

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs, in order, as ``run`` takes them."""
        return [slot.name for slot in self._inputs if not slot.var]

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, in order."""
        return [slot.name for slot in self._outputs if not slot.var]

    @property
    def variables(self) -> dict[str, Array]:
        """The variables that the function assigns, with their values now."""
        with self._lock:
            return {name: array.copy() for name, array in self._state.items()}

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function as it was exported.

        Raises ShapeError (W102, W105) or FeedError (W303) for arguments that do not fit, and
        the error of a run-time check that fails.
        """
        leaves: list[Any] = []
        for structure, value, path in self._arrange(list(args), named):
            collect(structure, value, path, leaves)
        results = self._call(leaves)
        return unflatten(self._results, [
            array.item() if kind == "number" else
            array if array.ndim or kind == "0-d" else array[()]
            for array, slot, kind in zip(results, self._outputs, self._made, strict=True)
            if not slot.var])

    def run(self, names: str | Sequence[str] | None, feeds: Mapping[str, Any]) -> Any:
        """Outputs by name (None: all), from inputs by name; one name gives one array.

        Raises FeedError: (W301) for a name that is not there, (W302) for an input that is
        missing, (W303) for a value that does not fit.
        """
        given = {name.removesuffix(":0"): value for name, value in feeds.items()}
        _known(given, self.inputs, "input")
        missing = [name for name in self.inputs if name not in given]
        if missing:
            raise error("W302", f"no value for {', '.join(missing)}",
                        hint=f"inputs are {', '.join(self.inputs)}")
        single = isinstance(names, str)
        asked = [names] if isinstance(names, str) else self.outputs if names is None else names
        wanted = [name.removesuffix(":0") for name in asked]
        _known(wanted, self.outputs, "output")
        results = self._call([given[name] for name in self.inputs])
        arrays = {slot.name: array for slot, array in zip(self._outputs, results, strict=True)
                  if not slot.var}
        return arrays[wanted[0]] if single else [arrays[name] for name in wanted]

    def _arrange(self, args: list[Any], named: dict[str, Any]) -> list[tuple[TreeDef, Any, str]]:
        """(structure, value, name) of each argument; those given by name are put in place."""
        positional, keywords = self._args, self._keywords
        labels = self._manifest["parameters"]
        if len(args) > len(positional):
            raise error("W102", f"{self.name} takes {len(positional)} arguments, got {len(args)}")
        found = list(zip(positional, args, labels, strict=False))
        expected = [*zip(labels[len(args):], positional[len(args):], strict=True),
                    *keywords]
        for label, structure in expected:
            if label in named:
                found.append((structure, named.pop(label), label))
            elif level(structure)[0] not in ("static", "none"):
                raise error("W102", f"{self.name} is missing the argument '{label}'")
        for label in named:
            problem = "got two values for" if label in labels else "has no argument"
            raise error("W102", f"{self.name} {problem} '{label}'",
                        hint=f"arguments are {', '.join([*labels, *(k for k, _ in keywords)])}")
        return found

    def _call(self, leaves: Sequence[Any]) -> list[Array]:
        """One run, which a profile is told of as a whole: its code is that of the export."""
        if not active():
            return self._step(leaves)
        with span("call", self.name):
            return self._step(leaves)

    def _step(self, leaves: Sequence[Any]) -> list[Array]:
        """One run: results in order, those for variables too, which are committed."""
        with self._lock if self._stateful else nullcontext():
            source = iter(leaves)
            slots = self._inputs
            values = [self._state[slot.var] if slot.var else next(source) for slot in slots]
            fitted, bound = fit_all(slots, self._kinds, values)
            args = [np.asarray(value, slot.type.dtype.numpy)
                    for slot, value in zip(slots, fitted, strict=True)]
            dims = tuple([bound[name] for name in self._symbols])
            last = self._last
            if last is None or last[0] != dims:  # the next call mostly has the same sizes
                self._ask_sizes(bound)
                last = self._last = dims, self._shapes(bound), self._arena(*dims)
            results = [np.empty(shape, slot.type.dtype.numpy)
                       for shape, slot in zip(last[1], self._outputs, strict=True)]
            self._execute([*args, *results], dims, last[2])
            for slot, array in zip(self._outputs, results, strict=True):
                if slot.var:
                    self._state[slot.var] = array
            return results

    def _ask_sizes(self, bound: Mapping[str, int]) -> None:
        """Raise the error of a requirement of sizes that does not hold, before memory is had."""
        for left, sign, right, number in self._manifest["requires"]:
            check_sizes(Relation(parse_dim(left), sign, parse_dim(right)), self._site(number),
                        bound)

    def _site(self, number: int) -> CheckSite:
        site = self._manifest["checks"][number - 1]
        return CheckSite(site["code"], site["message"], tuple(Loc(*loc) for loc in site["locs"]))

    def _shapes(self, bound: Mapping[str, int]) -> list[list[int]]:
        return [[evaluate(dim, bound) for dim in slot.type.shape] for slot in self._outputs]

    def _execute(self, arrays: Sequence[Array], dims: Sequence[int], size: int) -> None:
        pointers = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
        sizes = (ctypes.c_int64 * len(dims))(*dims)
        arena = None
        if size:
            try:
                arena = self._spare.pop()
            except IndexError:  # the first call, or another one has it
                arena = np.empty(size, np.uint8)
            if arena.size < size:
                arena = np.empty(size, np.uint8)
        status = self._run(*([] if self._handle is None else [self._handle]), pointers, sizes,
                           None if arena is None else ctypes.c_void_p(arena.ctypes.data),
                           ctypes.c_int32(self.threads))
        if arena is not None:
            self._spare[:] = [arena]
        if status:
            self._fail(status)

    def _fail(self, status: int) -> None:
        if status > 0:
            raise check_failed(self._site(status))
        message = self._library[f"{self.name}_check_message"]
        message.restype = ctypes.c_char_p
        if status == self._manifest["codes"]["no_memory"]:
            raise MemoryError(f"{self.name}: {message(status).decode()}")
        raise error("W403", f"{self.name}: {message(status).decode()}")

    def _map_weights(self, folder: Path) -> ctypes.c_void_p:
        """The weights, mapped by the library itself, for as long as this object lives."""
        handle = ctypes.c_void_p()
        file = folder / f"{self._manifest['file']}.safetensors"
        status = self._library[f"{self.name}_load_weights"](os.fsencode(file), ctypes.byref(handle))
        if status:
            raise error("W403", f"{file} does not belong to this artifact, or is missing",
                        hint="export it again; weights must keep their names, dtypes and shapes")
        free = self._library[f"{self.name}_free_weights"]
        self._mapped = Lifetime(partial(free, handle))
        return handle

    def _initial(self, slot: Slot, offset: int) -> Array:
        """The exported value of a variable, so many bytes into the weights file."""
        assert self._handle is not None
        assert self._handle.value is not None
        type_ = slot.type
        shape = [evaluate(dim, {}) for dim in type_.shape]
        count = int(np.prod(shape, dtype=np.int64)) * type_.dtype.itemsize
        data = ctypes.string_at(self._handle.value + offset, count)
        return np.frombuffer(data, type_.dtype.numpy).reshape(shape).copy()


def _known(names: Iterable[str], there: Sequence[str], what: str) -> None:
    for name in names:
        if name not in there:
            raise error("W301", f"no {what} named '{name}'", hint=f"there are {', '.join(there)}")
