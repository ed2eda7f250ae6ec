"""Makes Python callables of compiled programs: the emitted entry point, or ctypes instead.

A compiled program ``f`` comes with ``f_call``, a CPython function, and ``f_python``, the table
of what that function needs of this process. Here the table's manifest is read, its assumptions
about the layout of CPython's and NumPy's objects are held against arrays whose fields are
known, its slots are filled, and the function becomes a builtin. Where that cannot be
(``WEFT_NATIVE_CALL=0``, a layout we do not know, a free-threaded build, an artifact without
``f_call``) a Python function makes the same checks and calls the program through ctypes.

Both answer ``NotImplemented``, before anything has happened, to arguments they do not expect,
and after a failed run-time check of the program; the caller then goes its slow path.
"""

from __future__ import annotations

import ctypes
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]
from numpy.typing import NDArray

Array = NDArray[Any]
Dim = int | str | Callable[[Mapping[str, int]], int]
"""A size, the name of a symbol, or a function from the symbols' values to the size."""
Lookup = Callable[[str], int]
"""The address of a symbol of the program's code; KeyError where there is none."""

DTYPES: Mapping[str, np.dtype[Any]] = MappingProxyType({
    name: np.dtype(spelled)
    for name, spelled in (
        ("bool", "?"), ("i8", "i1"), ("u8", "u1"), ("i16", "i2"), ("u16", "u2"), ("i32", "i4"),
        ("u32", "u4"), ("i64", "i8"), ("u64", "u8"), ("f16", "f2"), ("f32", "f4"), ("f64", "f8"),
        ("c64", "c8"), ("c128", "c16"),
    )
})

_NUMPY_SLOTS = {  # positions in NumPy's table of C functions
    "PyArray_NewFromDescr": 94,
    "PyDataMem_SetHandler": 304,
}
_FIELDS = frozenset({  # offsets that we know how to check
    "object.type", "array.data", "array.nd", "array.dims", "array.descr", "array.flags",
    "descr.byteorder", "descr.num",
})
_LIBC = frozenset({"aligned_alloc", "free", "madvise", "memcpy", "memmove", "memset"})
_OBJECTS: Mapping[str, object] = MappingProxyType({
    "True": True, "False": False, "NotImplemented": NotImplemented, "MemoryError": MemoryError,
    "float": float, "int": int, "ndarray": np.ndarray,
})
_METHOD_FLAGS = 0x80 | 0x02  # METH_FASTCALL | METH_KEYWORDS
_SCALARS: Mapping[str, tuple[type, type]] = MappingProxyType({
    "float": (float, ctypes.c_double), "int": (int, ctypes.c_int64), "bool": (bool, ctypes.c_int8),
})


@dataclass(frozen=True)
class Argument:
    """An "array" of ``dtype`` and ``shape``, or a Python "float", "int" or "bool"."""

    kind: str
    dtype: str
    shape: tuple[Dim, ...] = ()


@dataclass(frozen=True)
class Result:
    """A result; a ``given`` one is a trailing argument that is written to and not returned."""

    dtype: str
    shape: tuple[Dim, ...]
    given: bool = False


@dataclass(frozen=True)
class Signature:
    """What the ctypes path must know of a program; the emitted entry has it in its code.

    ``arena`` is the scratch memory in bytes, None where ``{name}_arena`` computes it.
    """

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Result, ...]
    symbols: tuple[str, ...] = ()
    single: bool = False
    arena: int | None = 0
    release_gil: bool = False
    may_alias: bool = False


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
    """Whether the offsets and type numbers that some code assumes are those of this process.

    The pointer to the dims is followed only when all other fields are where they should be.
    """
    offset = dict(facts)
    numbers = {name: offset.pop(name) for name in DTYPES if name in offset}
    if any(DTYPES[name].num not in _twins(number) for name, number in numbers.items()):
        return False
    return offset.keys() == _FIELDS and all(_fields_hold(a, offset) for a in _samples())


def _twins(number: int) -> tuple[int, ...]:
    """Type numbers of one dtype: on 64-bit Unix C's long and long long are the same."""
    return {7: (7, 9), 8: (8, 10)}.get(number, (number,))


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
    )
    if not plain or array.ndim == 0:
        return plain
    dims = _word(at + offset["array.dims"])
    return dims % 8 == 0 and dims > 4096 and array.shape == tuple(
        _word(dims + 8 * axis) for axis in range(array.ndim)
    )


@cache
def _numpy_table() -> int:
    """The address of NumPy's C function table."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return int(get(umath._ARRAY_API, None))


def _import(name: str, dtypes: Mapping[str, np.dtype[Any]], values: Mapping[str, int]) -> int:
    """The content of the slot ``name``: a number, or an address that never changes."""
    kind, _, rest = name.partition(".")
    if name in values:
        return values[name]
    if kind == "dtype":
        return id(dtypes[rest])
    if kind == "number":
        return dtypes[rest].num
    if name in _OBJECTS:
        return id(_OBJECTS[name])
    if name in _NUMPY_SLOTS:
        return _word(_numpy_table() + 8 * _NUMPY_SLOTS[name])
    if name == "madvise" and sys.platform != "linux":
        return 0
    library = ctypes.CDLL(None) if name in _LIBC else ctypes.pythonapi
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def bind(
    table: int, dtypes: Mapping[str, np.dtype[Any]] = DTYPES, **values: int
) -> Mapping[str, int] | None:
    """Fill the import table at address ``table``; give each slot's address by name.

    None, and nothing is filled, if the code assumes what does not hold here.
    """
    words = ctypes.string_at(_word(table)).decode().split()
    facts = [word.partition("=") for word in words if "=" in word]
    imports = [word for word in words if "=" not in word]
    if facts and not layout_holds(frozenset((name, int(value)) for name, _, value in facts)):
        return None
    try:
        contents = [_import(name, dtypes, values) for name in imports]
    except (AttributeError, KeyError):  # a later version's code may ask for what we lack
        return None
    slots = {name: table + 8 * (1 + index) for index, name in enumerate(imports)}
    for name, content in zip(imports, contents, strict=True):
        ctypes.c_uint64.from_address(slots[name]).value = content
    return slots


@dataclass(frozen=True)
class PoolState:
    """``blocks`` of ``bytes`` in all are kept; of the large requests, ``hits`` got one."""

    blocks: int
    bytes: int
    hits: int
    misses: int


class Pool:
    """The process's recycled memory of large results, over the emitted ``weft_pool`` module.

    Arrays may die at any time, so the code (``keep``) and the handler are never let go.
    """

    def __init__(self, lookup: Lookup, keep: object) -> None:
        if bind(lookup("weft_pool_table")) is None:
            raise RuntimeError("the pool asks for a function that this process does not have")
        functions = {
            name: lookup(f"weft_pool_{name}") for name in ("malloc", "calloc", "realloc", "free")
        }
        self._handler = _DataHandler(name=b"weft", version=1, **functions)
        new = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
        )(("PyCapsule_New", ctypes.pythonapi))
        self._label = ctypes.create_string_buffer(b"mem_handler")
        self.capsule = new(
            ctypes.addressof(self._handler), ctypes.cast(self._label, ctypes.c_char_p), None
        )
        self._state = lookup("weft_pool")
        self._trim = ctypes.PYFUNCTYPE(None)(lookup("weft_pool_trim"))
        self._keep = keep
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def state(self) -> PoolState:
        return PoolState(*(_word(self._state + 8 * index) for index in range(1, 5)))

    def trim(self) -> None:
        """Give the kept blocks back to the system."""
        self._trim()


class _Owner:
    """The builtin's ``self``: what its code lives in, and its definition, die after it."""

    def __init__(self, name: str, function: int, release: int, keep: object) -> None:
        self.definition = _MethodDef(name.encode(), function, _METHOD_FLAGS, None)
        self.release = ctypes.PYFUNCTYPE(None)(release)
        self.keep = keep

    def __del__(self) -> None:
        self.release()


class NativeCall:
    """``call`` is the builtin; hold on to it or to this, the rest follows."""

    def __init__(self, call: Callable[..., Any], threads: int, owner: _Owner) -> None:
        self.call = call
        self._threads = ctypes.c_int64.from_address(threads)
        self._owner = owner  # the slot above lies in its code

    @property
    def threads(self) -> int:
        """The number of threads that the program may use, from the next call on."""
        return self._threads.value

    @threads.setter
    def threads(self, count: int) -> None:
        self._threads.value = count

    def release(self) -> None:
        """Free the scratch memory kept for the next call."""
        self._owner.release()


def native_call(
    name: str,
    lookup: Lookup,
    *,
    keep: object,
    threads: int = 1,
    pool: Pool | None = None,
    dtypes: Mapping[str, np.dtype[Any]] = DTYPES,
) -> NativeCall | None:
    """The emitted entry of program ``name`` as a callable, or None where it cannot serve.

    ``keep`` is what the code lives in (a JIT library). Each program may be bound once.
    """
    if not native_calls_enabled():
        return None
    try:
        function, table = lookup(f"{name}_call"), lookup(f"{name}_python")
        release = lookup(f"{name}_release")
    except KeyError:
        return None
    capsule = 0 if pool is None else id(pool.capsule)
    slots = bind(table, dtypes, threads=threads, pool=capsule)
    if slots is None:
        return None
    owner = _Owner(name, function, release, (keep, dtypes))
    new = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    )(("PyCFunction_NewEx", ctypes.pythonapi))
    return NativeCall(new(ctypes.addressof(owner.definition), owner, None), slots["threads"], owner)


class CtypesCall:
    """The same behaviour in Python; ``call`` costs some microseconds."""

    def __init__(
        self,
        signature: Signature,
        lookup: Lookup,
        *,
        keep: object,
        threads: int = 1,
        dtypes: Mapping[str, np.dtype[Any]] = DTYPES,
    ) -> None:
        self.threads = threads
        self._signature = signature
        self._dtypes = dtypes
        self._keep = keep
        self._given = tuple(output for output in signature.outputs if output.given)
        self._spare: list[Array] = []  # at most one block of scratch memory that no call uses
        prototype = ctypes.CFUNCTYPE if signature.release_gil else ctypes.PYFUNCTYPE
        pointers = [ctypes.c_void_p] * 3
        self._program = prototype(ctypes.c_int32, *pointers, ctypes.c_int64)(lookup(signature.name))
        if signature.arena is None:
            size = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
            self._arena_bytes = size(lookup(f"{signature.name}_arena"))

    def call(self, *args: object) -> Any:
        signature, bound = self._signature, dict[str, int]()
        count = len(signature.inputs)
        if len(args) != count + len(self._given):
            return NotImplemented
        held = [self._argument(*pair, bound) for pair in zip(signature.inputs, args, strict=False)]
        late = list(zip(signature.inputs, args, strict=False))
        if any(item is None for item in held) or not self._shapes_hold(late, bound):
            return NotImplemented
        given = list(args[count:])
        for output, array in zip(self._given, given, strict=True):
            wanted = Argument("array", output.dtype, output.shape)
            data = self._argument(wanted, array, bound)
            if data is None or not self._shapes_hold([(wanted, array)], bound):
                return NotImplemented
            if not data.flags.writeable:
                return NotImplemented
        if self._overlap([item for item in held if isinstance(item, np.ndarray)], given):
            return NotImplemented
        shapes = [_sizes(output.shape, bound) for output in signature.outputs]
        if any(dim < 0 for shape in shapes for dim in shape):
            return NotImplemented
        results: list[Any] = []
        for output, shape in zip(signature.outputs, shapes, strict=True):
            dtype = self._dtypes[output.dtype]
            results.append(given.pop(0) if output.given else np.empty(shape, dtype))
        if self._run([*held, *results], [bound[name] for name in signature.symbols]) != 0:
            return NotImplemented
        pairs = zip(signature.outputs, results, strict=True)
        returned = tuple(array for output, array in pairs if not output.given)
        return returned[0] if signature.single else returned

    def release(self) -> None:
        """Free the scratch memory kept for the next call."""
        self._spare.clear()

    def _argument(self, wanted: Argument, value: object, bound: dict[str, int]) -> Any:
        """What holds the argument's data, or None for a miss; binds symbols it is first to show."""
        if wanted.kind != "array":
            type_, slot = _SCALARS[wanted.kind]
            if type(value) is not type_:
                return None
            if type_ is int and not -(2**63) <= value < 2**63:  # type: ignore[operator]
                return None
            return slot(value)
        if type(value) is not np.ndarray or value.dtype != self._dtypes[wanted.dtype]:
            return None
        if not (value.flags.c_contiguous and value.flags.aligned):
            return None
        if value.ndim != len(wanted.shape):
            return None
        for dim, size in zip(wanted.shape, value.shape, strict=True):
            if isinstance(dim, str):
                bound.setdefault(dim, size)
        return value

    def _shapes_hold(
        self, pairs: Iterable[tuple[Argument, object]], bound: Mapping[str, int]
    ) -> bool:
        return all(
            value.shape == _sizes(wanted.shape, bound)
            for wanted, value in pairs
            if isinstance(value, np.ndarray)
        )

    def _overlap(self, inputs: Sequence[Array], given: Sequence[Any]) -> bool:
        """Whether a destination shares memory with an earlier one or (else allowed) an input."""
        others = [] if self._signature.may_alias else list(inputs)
        for array in given:
            if any(np.may_share_memory(array, other) for other in others):
                return True
            others.append(array)
        return False

    def _run(self, held: Sequence[Any], dims: Sequence[int]) -> int:
        pointers = (ctypes.c_void_p * len(held))(*map(_address, held))
        symbols = (ctypes.c_int64 * len(dims))(*dims)
        size = self._signature.arena
        if size is None:
            size = self._arena_bytes(symbols)
        if not size:
            return int(self._program(pointers, symbols, None, self.threads))
        try:
            block = self._spare.pop()
        except IndexError:  # none yet, or a concurrent call has it
            block = np.empty(0, np.uint8)
        if block.size < size + 63:
            block = np.empty(size + 63, np.uint8)
        arena = -(-block.ctypes.data // 64) * 64
        status = int(self._program(pointers, symbols, arena, self.threads))
        self._spare[:] = [block]
        return status


def _sizes(shape: Iterable[Dim], bound: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(
        bound[dim] if isinstance(dim, str) else dim if isinstance(dim, int) else dim(bound)
        for dim in shape
    )


def _address(held: Any) -> int:
    if isinstance(held, np.ndarray):
        return held.ctypes.data
    return ctypes.addressof(held)
