"""Makes Python callables of compiled programs: the emitted entry point, or ctypes instead.

A compiled program ``f`` comes with ``f_call``, a CPython function, and ``f_python``, a table of
what it needs of this process; the code that all of them share (``Support``) has a table, too.
Here the tables' manifests are read, what they assume of the layout of CPython's and NumPy's
objects is held against arrays whose fields are known, and the slots are filled. Where that
cannot be (``WEFT_NATIVE_CALL=0``, another layout, a free-threaded build, an artifact without
``f_call``) a Python function makes the same checks and calls the program through ctypes.

Both answer ``NotImplemented``, before anything has happened, to arguments they do not expect; the
caller then goes its slow path. A run that has begun gives results, or raises what ends it: the
error of a check that failed, what a function of the host raised, or what ``looks`` has to say.
"""

from __future__ import annotations

import ctypes
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]
from numpy.typing import NDArray

from ...ir.indices.index import Dim
from ...ir.indices.walk import evaluate
from ...ir.plans.control import ABORTED
from ...ir.plans.entry import SCALARS, Entry, Input
from ...ir.plans.plan import MISFIT, NO_MEMORY
from ...ir.record import record
from ...ir.types import DTYPES
from ..host import HostSteps
from ..lifetime import Lifetime
from ..looks import MAIN, WATCHED, look
from ..state import COMMITS
from .control import Control
from .float_errors import ORDINARY, QUIET, STATE, tell_unheard
from .walk import Door, cell_offsets

Array = NDArray[Any]
Lookup = Callable[[str], int]
"""The address of a symbol of the program's code; KeyError where there is none."""
Fail = Callable[[int], Any]
"""Raises what a status stands for, or gives NotImplemented where nothing has happened."""

_NUMPY_SLOTS = {  # positions in NumPy's table of C functions
    "PyArray_CopyInto": 50,
    "PyArray_Return": 76,
    "PyArray_NewFromDescr": 94,
    "PyDataMem_SetHandler": 304,
}
_FIELDS = frozenset({  # offsets that we know how to check
    "object.type", "array.data", "array.nd", "array.dims", "array.descr", "array.flags",
    "descr.scalar", "descr.byteorder", "descr.num", "complex.value", "scalar.value",
    "tuple.items", "array.strides",
})
_OF_THE_DOOR = frozenset({"function.walks", "recording", "slowly", "told"})  # where there is one
_LIBC = frozenset({"aligned_alloc", "free", "madvise", "memcpy", "memmove", "memset"})
_OBJECTS: Mapping[str, object] = MappingProxyType({
    "True": True, "False": False, "None": None, "NotImplemented": NotImplemented,
    "MemoryError": MemoryError, "float": float, "int": int, "complex": complex, "str": str,
    "bytes": bytes, "dict": dict, "ndarray": np.ndarray, "asarray": np.asarray, "empty": (),
    **{name: sys.intern(name) for name in ("acquire", "release", "item")},
})
_INT64 = range(-(2**63), 2**63)
_METHOD_FLAGS = 0x80 | 0x02  # METH_FASTCALL | METH_KEYWORDS
_SLOTS: Mapping[str, Any] = MappingProxyType({
    "float": ctypes.c_double, "int": ctypes.c_int64, "bool": ctypes.c_int8,
    "complex": lambda number: np.array(number, np.complex128),
})


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _DataHandler(ctypes.Structure):
    """NumPy's PyDataMem_Handler, version 1."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


def native_calls_enabled() -> bool:
    """Whether this interpreter is one that emitted entries are made for, and not told off."""
    return (
        os.environ.get("WEFT_NATIVE_CALL", "1") != "0"
        and sys.implementation.name == "cpython"
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and sys.byteorder == "little"
        and ctypes.sizeof(ctypes.c_void_p) == 8
    )


def _word(address: int, bytes_: int = 8) -> int:
    return int.from_bytes(ctypes.string_at(address, bytes_), "little")


def _samples() -> list[Array]:
    """Arrays that differ in every field the entry reads."""
    frozen = np.zeros((3, 5), np.float32)
    frozen.flags.writeable = False
    strided = np.zeros((4, 2, 6), np.int16)[:, :, 1:5]
    unaligned = np.zeros(9, np.uint8)[1:].view(np.float64)
    return [
        np.ones(7), frozen, strided, strided.T, unaligned, np.zeros((), np.bool_),
        np.zeros((2, 3), np.dtype(np.float64).newbyteorder(">")), np.zeros((0, 9), np.int64),
    ]


@cache
def layout_holds(facts: frozenset[tuple[str, int]]) -> bool:
    """Whether the offsets that some code assumes are those of this process.

    The pointer to the dims is followed only if the next word, the pointer to the strides, is
    behind it by the rank, as NumPy allocates the two: a wrong offset must not end in a crash.
    """
    offset = dict(facts)
    if offset.keys() != _FIELDS or not all(_fields_hold(a, offset) for a in _samples()):
        return False
    number = complex(0.1, -7.0)
    parts = ctypes.string_at(id(number) + offset["complex.value"], 16)
    pair = (number, offset)
    if [_word(id(pair) + offset["tuple.items"] + 8 * at) for at in (0, 1)] != [*map(id, pair)]:
        return False
    return parts == np.complex128(number).tobytes() and all(
        _value_holds(np.ones((), dtype.numpy)[()], offset["scalar.value"])
        for dtype in DTYPES.values())


def _value_holds(scalar: Any, offset: int) -> bool:
    return bool(ctypes.string_at(id(scalar) + offset, scalar.nbytes) == scalar.tobytes())


def _fields_hold(array: Array, offset: Mapping[str, int]) -> bool:
    at, descr = id(array), id(array.dtype)
    order = ctypes.string_at(descr + offset["descr.byteorder"], 1).decode("latin1")
    plain = (
        _word(at + offset["object.type"]) == id(np.ndarray)
        and _word(at + offset["array.data"]) == array.ctypes.data
        and _word(at + offset["array.nd"], 4) == array.ndim
        and _word(at + offset["array.descr"]) == descr
        and _word(at + offset["array.flags"], 4) == array.flags.num
        and order == array.dtype.byteorder
        and _word(descr + offset["descr.num"], 4) == array.dtype.num
        and _word(descr + offset["descr.scalar"]) == id(array.dtype.type)
    )
    if not plain or array.ndim == 0:
        return plain
    dims, strides = (_word(at + offset["array.dims"] + step) for step in (0, 8))
    if strides != dims + 8 * array.ndim or _word(at + offset["array.strides"]) != strides:
        return False
    return array.shape == tuple(_word(dims + 8 * axis) for axis in range(array.ndim))


def _numpy_function(slot: int) -> int:
    """The address in one slot of NumPy's table of C functions."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return _word(get(umath._ARRAY_API, None) + 8 * slot)


def _process_address(name: str) -> int:
    """The address of an object or function of CPython, NumPy or libc; it never changes."""
    if name in _OBJECTS:
        return id(_OBJECTS[name])
    if name in _NUMPY_SLOTS:
        return _numpy_function(_NUMPY_SLOTS[name])
    if name == "madvise" and sys.platform != "linux":
        return 0  # its advice on huge pages is Linux's own
    library = ctypes.CDLL(None) if name in _LIBC else ctypes.pythonapi
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def _manifest(table: int) -> tuple[dict[str, int], list[str]]:
    """The facts that the code of an import table relies on, and the names of its slots."""
    words = ctypes.string_at(_word(table)).decode().split()
    facts = [word.partition("=") for word in words if "=" in word]
    return {name: int(value) for name, _, value in facts}, [w for w in words if "=" not in w]


def _fill(table: int, names: Iterable[str], values: Mapping[str, int]) -> None:
    """Write the slots, which come after the pointer to the manifest; spare is the code's own."""
    for index, name in enumerate(names, 1):
        if name == "spare" or (name in _OF_THE_DOOR and name not in values):
            continue
        value = values[name] if name in values else _process_address(name)
        ctypes.c_uint64.from_address(table + 8 * index).value = value


@record(frozen=True)
class PoolState:
    """``blocks`` of ``bytes`` in all are kept; of the large requests, ``hits`` got one."""

    blocks: int
    bytes: int
    hits: int
    misses: int


class Support:
    """The code that all entries of the process share, and its pool for large results.

    Arrays from the pool may die at any time, so what the code lives in (``keep``) is never let
    go. Raises RuntimeError where the code does not fit this process.
    """

    def __init__(self, lookup: Lookup, keep: object, door: Door | None = None) -> None:
        table = lookup("weft_support_python")
        facts, names = _manifest(table)
        self.format = facts.pop("entry")
        if not native_calls_enabled() or not layout_holds(frozenset(facts.items())):
            raise RuntimeError("emitted entries are switched off or do not fit this interpreter")
        self.entry, self.refuse = lookup("weft_entry"), lookup("weft_refuse")
        self.release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(lookup("weft_release"))
        self._state = lookup("weft_pool")
        self._trim = ctypes.PYFUNCTYPE(None)(lookup("weft_pool_trim"))
        functions = {
            name: lookup(f"weft_pool_{name}") for name in ("malloc", "calloc", "realloc", "free")
        }
        self._handler = _DataHandler(name=b"weft", version=1, **functions)
        self._label = ctypes.create_string_buffer(b"mem_handler")
        new = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        )(("PyCapsule_New", ctypes.pythonapi))
        where = ctypes.addressof(self._handler), ctypes.addressof(self._label)
        self._capsule = new(*where, None)
        self._keep = keep
        _fill(table, names, {"pool": id(self._capsule), "look": id(look),
                             "watched": ctypes.addressof(WATCHED), "main": ctypes.addressof(MAIN),
                             "errstate": id(STATE), "ordinary": id(ORDINARY),
                             "quiet": ctypes.addressof(QUIET.word),
                             "unheard": id(tell_unheard), "commits": id(COMMITS),
                             **cell_offsets(), **({} if door is None else door.values())})
        self.door = lookup("weft_door")
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def pool_state(self) -> PoolState:
        return PoolState(*(_word(self._state + 8 * index) for index in range(1, 5)))

    def trim_pool(self) -> None:
        """Give the kept blocks back to the system."""
        self._trim()


class NativeCall:
    """``call`` is the builtin; hold on to it or to this, the rest follows."""

    def __init__(self, call: Callable[..., Any], address: int, threads: int,
                 free: Callable[[], Any], entry: int, ways: tuple[int, int]) -> None:
        self.call, self.address = call, address
        # Both are in the code, which `call` holds.
        self._threads = ctypes.c_int64.from_address(threads)
        self._entry, self._ways = ctypes.c_uint64.from_address(entry), ways
        self._free = free

    @property
    def threads(self) -> int:
        """The number of threads that the program may use, from the next call on."""
        return self._threads.value

    @threads.setter
    def threads(self, count: int) -> None:
        self._threads.value = count

    @property
    def refusing(self) -> bool:
        """Whether all calls give NotImplemented, from the next one on, wherever ``call`` is held:
        a call costs nothing for being asked, since another function runs then."""
        return self._entry.value == self._ways[True]

    @refusing.setter
    def refusing(self, refusing: bool) -> None:
        self._entry.value = self._ways[refusing]

    def release(self) -> None:
        """Free the scratch memory kept for the next call."""
        self._free()


def native_call(
    name: str,
    lookup: Lookup,
    support: Support | None,
    *,
    keep: object,
    fail: Fail,
    threads: int = 1,
    host: HostSteps | None = None,
) -> NativeCall | None:
    """The emitted entry of program ``name`` as a callable, or None where it cannot serve.

    ``keep`` is what the code lives in (a JIT library), ``host`` what it calls in Python, and
    ``fail`` raises the error of a check that has failed.
    """
    if support is None or not native_calls_enabled():
        return None
    try:
        function, table = lookup(f"{name}_call"), lookup(f"{name}_python")
    except KeyError:
        return None
    facts, names = _manifest(table)
    if facts != {"entry": support.format}:
        return None
    values = {"weft_entry": support.entry, "threads": threads, "raise": id(fail),
              "host": 0 if host is None else id(host)}
    values |= {f"dtype.{dtype}": id(dtype.numpy) for dtype in DTYPES.values()}
    _fill(table, names, values)
    definition = _MethodDef(name.encode(), function, _METHOD_FLAGS, None)
    free = partial(support.release, table)
    owner = Lifetime(partial(_end, free, definition, keep, fail, host))
    new = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    )(("PyCFunction_NewEx", ctypes.pythonapi))
    call = new(ctypes.addressof(definition), owner, None)
    threads_at, entry_at = (table + 8 * (1 + names.index(slot)) for slot in (
        "threads", "weft_entry"))
    return NativeCall(call, function, threads_at, free, entry_at,
                      (support.entry, support.refuse))


def _end(free: Callable[[], Any], *held: object) -> None:
    """The end of the builtin's ``self``: its definition and its code are let go after this."""
    free()


class CtypesCall:
    """The same behaviour in Python; a call costs some microseconds."""

    def __init__(self, entry: Entry, lookup: Lookup, *, keep: object, fail: Fail,
                 threads: int = 1, host: HostSteps | None = None) -> None:
        self.entry, self.threads, self._fail, self._host = entry, threads, fail, host
        self.refusing = False  # see NativeCall
        self._places = entry.places
        self._keep = keep
        self._spare: list[Array] = []  # at most one block of scratch memory that no call uses
        prototype = ctypes.CFUNCTYPE if entry.release_gil else ctypes.PYFUNCTYPE
        pointers = [ctypes.c_void_p] * 3
        self._program = prototype(ctypes.c_int32, *pointers, ctypes.c_int64, ctypes.c_void_p)(
            lookup(entry.name))
        if entry.arena is None:
            size = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
            self._arena_bytes = size(lookup(f"{entry.name}_arena"))

    def call(self, *args: Any, **named: Any) -> Any:
        ran = None if named or self.refusing else self.attempt(*args)
        if ran is None or ran[0] != 0:
            return NotImplemented  # it has not begun
        results = [value[()] if at < self.entry.scalars and value.ndim == 0 else value
                   for at, value in enumerate(ran[1])]
        return results[0] if self.entry.single else tuple(results)

    def attempt(self, *args: Any) -> tuple[int, list[Array]] | None:
        """Run the program: its status and all its results; None if the arguments do not fit. The
        status is 0, NO_MEMORY or MISFIT, which both come before it begins. Raises what ends it."""
        entry = self.entry
        if len(args) != len(entry.inputs):
            return None
        held = list(map(held_for, entry.inputs, args))
        if any(item is None for item in held):
            return None
        dims = [args[at].shape[axis] for at, axis in self._places]
        bound = dict(zip(entry.symbols, dims, strict=True))
        for wanted, value in zip(entry.inputs, args, strict=True):
            if wanted.shape and value.shape != _sizes(wanted.shape, bound):
                return None
        try:
            results = [np.empty(_sizes(output.shape, bound), DTYPES[output.dtype].numpy)
                       for output in entry.outputs]
        except ValueError:  # a negative size, or more elements than an array can have
            return None
        tell_unheard()
        status = self._run([*held, *results], dims)
        if status not in (0, NO_MEMORY, MISFIT):
            self._fail(status)
            return MISFIT, results
        return status, results

    def release(self) -> None:
        """Free the scratch memory kept for the next call."""
        self._spare.clear()

    def _run(self, held: Sequence[Any], dims: Sequence[int]) -> int:
        pointers = (ctypes.c_void_p * len(held))(*map(address_of, held))
        symbols = (ctypes.c_int64 * len(dims))(*dims)
        size = self.entry.arena
        if size is None:
            size = self._arena_bytes(symbols)
        control = Control(self._host)
        arena = None
        if size:
            try:
                block = self._spare.pop()
            except IndexError:  # none yet, or a concurrent call has it
                block = np.empty(0, np.uint8)
            if block.size < size + 63:
                block = np.empty(size + 63, np.uint8)
            arena = -(-block.ctypes.data // 64) * 64
        status = int(self._program(pointers, symbols, arena, self.threads, control.address))
        if size:
            self._spare[:] = [block]
        if status == ABORTED:
            raise control.ended()
        return status


def held_for(wanted: Input, value: Any) -> Any:
    """What holds the data of an argument, or None for a miss; dims are checked later."""
    numpy = DTYPES[wanted.dtype].numpy
    if wanted.kind == "scalar":
        return np.asarray(value) if type(value) is numpy.type else None
    if wanted.kind != "array":
        fits = type(value) is SCALARS[wanted.kind][0] and (
            wanted.kind != "int" or value in _INT64)
        return _SLOTS[wanted.kind](value) if fits else None
    if type(value) is not np.ndarray or value.dtype != numpy or value.ndim != len(wanted.shape):
        return None
    flags = value.flags
    return value if flags.c_contiguous and flags.aligned else value.copy()


def _sizes(shape: Iterable[Dim], bound: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([evaluate(dim, bound) for dim in shape])


class _ArrayHead(ctypes.Structure):
    """The first fields of NumPy's arrays."""

    _fields_ = (("object", ctypes.c_char * object.__basicsize__), ("data", ctypes.c_void_p))


# To ask ``array.ctypes`` makes several objects each time.
_HEADS_HOLD = native_calls_enabled() and all(
    _ArrayHead.from_address(id(sample)).data == sample.ctypes.data for sample in _samples())


def address_of(held: Any) -> int:
    """Where the data of an argument lies that ``held_for`` has given, or of a result."""
    if not isinstance(held, np.ndarray):
        return ctypes.addressof(held)
    found = _ArrayHead.from_address(id(held)).data if _HEADS_HOLD else held.ctypes.data
    return int(found)
