"""weft.load: run an exported artifact from Python, without the compiler.

    m = weft.load("m")
    y = m(x)                                       the arguments and results of the function
    [h] = m.run(["h"], {"x": x})                   or by name

A folder's manifest says what goes in and out; the shared library does the rest, weights and
scratch memory included. Nothing in a folder is executed but the library. A variable that the
function assigns is state of the loaded object: it starts as exported and changes call by call.

The manifest has the SHA-256 of each file. What is executed and computed with is a copy that was
verified as it was read, so nothing that happens to the folder afterwards is seen; a file that was
damaged, or is of another export, is an error. This is no protection from who may write a manifest.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import shutil
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.diagnose import Error, error
from ..ir.forks import freed
from ..ir.indices.walk import evaluate
from ..ir.loc import Loc
from ..ir.plans.control import ABORTED
from ..ir.plans.entry import Input
from ..ir.plans.plan import CheckSite, Relation, Slot
from ..ir.record import record
from ..ir.types import parse_dim, parse_type
from .entry.control import Hook
from .entry.float_errors import tell_unheard
from .entry.through_ctypes import address_of, held_for
from .lifetime import Lifetime
from .profile.recording import active, span
from .program import check_failed, check_sizes, fit_all
from .storage.verified import checked, digest, private_copy
from .storage.verified import opened as plain_file
from .threads import thread_limit
from .tree import TreeDef, collect, level, structure_of, unflatten

Array = np.ndarray[Any, Any]

_SEAL = "crc32"  # of a manifest: the checksum of all else that it says
FORMAT = 4
"""The version of the manifest; a change that old readers cannot read makes it one more."""


Link = Callable[[Path, Path], None]
"""Makes a shared library of an object file."""


def load(
    path: str | os.PathLike[str], threads: int | None = None,
    weights: str | os.PathLike[str] | None = None, link: Link | None = None,
) -> Loaded:
    """The artifact in the folder ``path``, ready to be called.

    ``threads`` is the most a call may use; by default ``weft.set_num_threads`` says it.
    ``weights`` is a safetensors file with other values for the artifact's weights, of the same
    names, dtypes and shapes. ``link`` is for an artifact that was exported without a linker.

    Raises:
        Error: (W403) the folder is no artifact, or is not what was written, or one for other
            versions, another CPU or another platform; (W404) there is no linker.
    """
    return Loaded(*opened(path, threads, weights, link))


def opened(
    path: str | os.PathLike[str], threads: int | None, weights: str | os.PathLike[str] | None,
    link: Link | None,
) -> tuple[Mapping[str, Any], ctypes.CDLL, Weights | None, int]:
    """What a ``Loaded`` is made of; see ``load``."""
    folder = Path(path)
    while True:
        manifest = _manifest(folder)
        try:
            library, found = _verified(folder, manifest, weights, link)
        except Error:
            if manifest == _manifest(folder):
                raise
            continue  # another export has taken its place meanwhile
        return manifest, library, found, threads or thread_limit()


def _verified(
    folder: Path, manifest: Mapping[str, Any], weights: str | os.PathLike[str] | None,
    link: Link | None,
) -> tuple[ctypes.CDLL, Weights | None]:
    """The library and the weights, where all files are what was written."""
    used = [f"{manifest['file']}{suffix}" for suffix in (".so", ".safetensors")]
    for name, wanted in manifest["files"].items():
        if name not in used and os.path.lexists(folder / name):  # what C programs may want
            with _usable(folder / name):
                checked(folder / name, wanted)
    library = _library(folder, manifest, link)
    return library, (
        _weights(folder, manifest, library, weights) if manifest["weights"] else None)


@contextmanager
def _usable(file: Path) -> Iterator[None]:
    """What goes wrong as the body uses a file of an artifact is an error (W403)."""
    try:
        yield
    except ValueError as problem:  # it is damaged, or no file can have that name
        raise error("W403", str(problem), hint="export it again") from None
    except FileNotFoundError:
        raise error("W403", f"{file} is missing", hint="export it again") from None
    except OSError as problem:
        raise error("W403", f"{file} cannot be read: {problem.strerror or problem}",
                    hint="export it again, or see that it may be read") from None


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        with plain_file(folder / "manifest.json") as file:
            manifest = json.loads(file.read().decode())
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
    whole: dict[str, Any] = manifest
    return whole


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest with its checksum, by which one that was damaged is found."""
    rest = {name: part for name, part in manifest.items() if name != _SEAL}
    return {**rest, _SEAL: zlib.crc32(json.dumps(rest, sort_keys=True).encode())}


def _library(folder: Path, manifest: Mapping[str, Any], link: Link | None) -> ctypes.CDLL:
    """The shared library of this very export."""
    name = f"{manifest['file']}.so"
    wanted = manifest["files"].get(name)
    if wanted is not None:
        with _usable(folder / name), private_copy(folder / name, wanted) as copy:
            library = _LIBRARIES.load(copy, wanted)
    else:
        library = _linked(folder, manifest, link)
    if library[f"{manifest['name']}_check_cpu"]() != 0:
        asked = [key[1:] for key in manifest["target"]["features"].split(",") if key[:1] == "+"]
        raise error("W403", f"{folder} was compiled for {manifest['target']['cpu']}: this CPU "
                            f"lacks instructions of it, which may be any of {', '.join(asked)}",
                    hint="export it with the target of an older CPU, or on this machine with "
                         "target='native'")
    return library


def _linked(folder: Path, manifest: Mapping[str, Any], link: Link | None) -> ctypes.CDLL:
    """The library of an artifact that was exported where there was no linker."""
    object_ = folder / f"{manifest['file']}.o"
    try:
        if link is None:
            raise error("W404", f"{object_} was not linked where it was exported",
                        hint="load it with weft.load, which links it")
        with _usable(object_), private_copy(object_, manifest["files"][object_.name]) as copy, (
                tempfile.TemporaryDirectory()) as place:
            made = Path(place, f"{manifest['file']}.so")
            shutil.copyfile(copy, made.with_suffix(".o"))
            link(made.with_suffix(".o"), made)
            wanted = digest(made)
            with private_copy(made, wanted) as library:
                return _LIBRARIES.load(library, wanted)
    except Error as problem:
        if problem.code == "W404" and link is not None:
            problem.hint = "install a C compiler, or export it where there is one"
        raise


class _Libraries:
    """The libraries that this process has loaded, by what is in them; they stay."""

    def __init__(self) -> None:
        self._loaded: dict[str, ctypes.CDLL] = {}
        self._names = itertools.count(1)

    def load(self, name: str, content: str) -> ctypes.CDLL:
        """The library in the file of that name, whose SHA-256 is ``content``."""
        found = self._loaded.get(content)
        if found is None:
            # To the system a name is a library for ever, and names of copies come again; so each
            # time the same name is spelled in another way.
            head, tail = os.path.split(name)
            other = "".join("./" if bit == "1" else "/" for bit in f"{next(self._names):b}")
            try:
                found = ctypes.CDLL(f"{head}/{other}{tail}")
            except OSError as problem:
                why = str(problem).removeprefix(f"{head}/{other}{tail}: ")
                raise error("W403", f"the library of the artifact cannot be loaded: {why}",
                            hint="export it on a machine of this kind") from None
            found = self._loaded.setdefault(content, found)
        return found


_LIBRARIES = _Libraries()


@record(frozen=True)
class Weights:
    """A weights file that is mapped for the library, for as long as this object lives."""

    handle: ctypes.c_void_p
    mapped: Lifetime


def _weights(
    folder: Path, manifest: Mapping[str, Any], library: ctypes.CDLL,
    other: str | os.PathLike[str] | None,
) -> Weights:
    """The weights as exported, or those of another file."""
    name, handle = manifest["name"], ctypes.c_void_p()
    own = folder / f"{manifest['file']}.safetensors"
    file = own if other is None else Path(other)
    wanted = manifest["files"][own.name] if other is None else None
    with _usable(file), private_copy(file, wanted) as copy:
        status = library[f"{name}_load_weights"](os.fsencode(copy), ctypes.byref(handle))
    if status:
        raise error("W403", f"{file} does not fit this artifact",
                    hint="weights must have the names, dtypes and shapes that were exported")
    return Weights(handle, Lifetime(partial(library[f"{name}_free_weights"], handle)))


@record(frozen=True)
class _Sizes:
    """What a step of some sizes needs: the shapes of its arrays, and the bytes of its arena."""

    dims: Any  # in C
    inputs: tuple[tuple[int, ...], ...]  # of numbers empty
    outputs: tuple[tuple[int, ...], ...]
    arena: int


class Loaded:
    """A loaded artifact; ``threads`` may be set at any time. Calls may run side by side, but
    those of an artifact with variables take turns.
    """

    def __init__(
        self, manifest: Mapping[str, Any], library: ctypes.CDLL, weights: Weights | None,
        threads: int,
    ) -> None:
        self.name: str = manifest["name"]
        self.threads = threads
        self._manifest, self._library = manifest, library
        self._inputs, self._outputs = (
            [Slot(item["name"], parse_type(item["type"]), item.get("variable", ""))
             for item in manifest[side]] for side in ("inputs", "outputs"))
        self._kinds: list[str] = [item["kind"] for item in manifest["inputs"]]
        self._wanted = [Input(kind, slot.type.dtype.name, slot.type.shape)
                        for kind, slot in zip(self._kinds, self._inputs, strict=True)]
        self._pointers = ctypes.c_void_p * (len(self._inputs) + len(self._outputs))
        self._dtypes = [slot.type.dtype.numpy for slot in self._outputs]
        self._made: list[str] = [item["kind"] for item in manifest["outputs"]]
        self._symbols: list[str] = manifest["symbols"]
        self._args = [structure_of(text) for text in manifest["args"]]
        self._keywords = [(name, structure_of(text)) for name, text in manifest["keywords"]]
        self._results = structure_of(manifest["results"])
        self._run = library[f"{self.name}_call_with_hook"]
        self._arena = library[f"{self.name}_arena_bytes"]
        self._arena.restype = ctypes.c_size_t
        self._arena.argtypes = [ctypes.c_int64] * len(self._symbols)
        self._weights = weights
        self._state: dict[str, Array] = {
            slot.var: self._initial(slot, item["offset"])
            for slot, item in zip(self._inputs, manifest["inputs"], strict=True) if slot.var}
        self._stateful = any(slot.var for slot in self._outputs)
        self._lock = freed(threading.RLock())
        # At most one of each that no call uses.
        self._spare, self._hooks = list[Array](), list[Hook]()
        self._last: _Sizes | None = None  # the next call mostly has the same
        self._flat = not self._keywords and all(each.kind is None for each in self._args)

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

        Raises ShapeError (W102, W105) or FeedError (W303) for arguments that do not fit, the
        error of a run-time check that fails, and what ends the call: Ctrl-C, what a signal's
        handler raises, or the timeout of the step that makes it.
        """
        leaves: list[Any] = []
        if self._flat and not named and len(args) == len(self._args):
            leaves.extend(args)
        else:
            for structure, value, path in self._arrange(list(args), named):
                collect(structure, value, path, leaves)
        results = [array.item() if kind == "number" else
                   array if array.ndim or kind == "0-d" else array[()]
                   for array, slot, kind in zip(
                       self._call(leaves), self._outputs, self._made, strict=True)
                   if not slot.var]
        return results[0] if self._results.kind is None else unflatten(self._results, results)

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
        if not self._stateful:
            return self._run_on(leaves)
        with self._lock:
            results = self._run_on(leaves)
            for slot, array in zip(self._outputs, results, strict=True):
                if slot.var:
                    self._state[slot.var] = array
            return results

    def _run_on(self, leaves: Sequence[Any]) -> list[Array]:
        values = leaves
        if self._state:
            source = iter(leaves)
            values = [self._state[slot.var] if slot.var else next(source) for slot in self._inputs]
        sizes = self._last
        held = None if sizes is None else self._held(values, sizes)
        if sizes is None or held is None:
            sizes, held = self._fitted(values)
        results = [np.empty(*each) for each in zip(sizes.outputs, self._dtypes, strict=True)]
        self._execute([*held, *results], sizes)
        return results

    def _held(self, values: Sequence[Any], sizes: _Sizes) -> list[Any] | None:
        """What holds the data of arguments, if they are just right for steps of these sizes."""
        held: list[Any] = []
        for wanted, shape, value in zip(self._wanted, sizes.inputs, values, strict=True):
            if wanted.kind == "array" and isinstance(value, np.generic):
                value = np.asarray(value)
            one = held_for(wanted, value)
            if one is None or (shape and value.shape != shape):
                return None
            held.append(one)
        return held

    def _fitted(self, values: Sequence[Any]) -> tuple[_Sizes, list[Any]]:
        """The sizes of arguments, and the arguments in the form that the program wants. Raises
        what is wrong with them."""
        slots = self._inputs
        fitted, bound = fit_all(slots, self._kinds, values)
        held = [np.asarray(value, slot.type.dtype.numpy)
                for slot, value in zip(slots, fitted, strict=True)]
        self._ask_sizes(bound)
        dims = [bound[name] for name in self._symbols]
        self._last = _Sizes((ctypes.c_int64 * len(dims))(*dims), tuple([x.shape for x in held]),
                            self._shapes(bound), self._arena(*dims))
        return self._last, held

    def _ask_sizes(self, bound: Mapping[str, int]) -> None:
        """Raise the error of a requirement of sizes that does not hold, before memory is had."""
        for left, sign, right, number in self._manifest["requires"]:
            check_sizes(Relation(parse_dim(left), sign, parse_dim(right)), self._site(number),
                        bound)

    def _site(self, number: int) -> CheckSite:
        site = self._manifest["checks"][number - 1]
        return CheckSite(site["code"], site["message"], tuple(Loc(*loc) for loc in site["locs"]))

    def _shapes(self, bound: Mapping[str, int]) -> tuple[tuple[int, ...], ...]:
        return tuple([tuple([evaluate(dim, bound) for dim in slot.type.shape])
                      for slot in self._outputs])

    def _execute(self, held: Sequence[Any], sizes: _Sizes) -> None:
        pointers = self._pointers(*map(address_of, held))
        arena, size = None, sizes.arena
        if size:
            try:
                arena = self._spare.pop()
            except IndexError:  # the first call, or another one has it
                arena = np.empty(size, np.uint8)
            if arena.size < size:
                arena = np.empty(size, np.uint8)
        try:
            hook = self._hooks.pop()
        except IndexError:
            hook = Hook()
        tell_unheard()
        status = self._run(*([] if self._weights is None else [self._weights.handle]), pointers,
                           sizes.dims,
                           None if arena is None else ctypes.c_void_p(address_of(arena)),
                           ctypes.c_int32(self.threads), hook.function)
        if arena is not None:
            self._spare[:] = [arena]
        if status == ABORTED:
            raise hook.ended()
        self._hooks[:] = [hook]
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

    def _initial(self, slot: Slot, offset: int) -> Array:
        """The exported value of a variable, so many bytes into the weights file."""
        assert self._weights is not None
        assert self._weights.handle.value is not None
        type_ = slot.type
        shape = [evaluate(dim, {}) for dim in type_.shape]
        count = int(np.prod(shape, dtype=np.int64)) * type_.dtype.itemsize
        data = ctypes.string_at(self._weights.handle.value + offset, count)
        return np.frombuffer(data, type_.dtype.numpy).reshape(shape).copy()


def _known(names: Iterable[str], there: Sequence[str], what: str) -> None:
    for name in names:
        if name not in there:
            raise error("W301", f"no {what} named '{name}'", hint=f"there are {', '.join(there)}")
