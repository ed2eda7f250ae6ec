"""The code that all native entries of a process share, bound to this interpreter.

A compiled program ``f`` comes with ``f_call``, a CPython function, and ``f_python``, a table of
what it needs of this process; the code that all of them share has a table, too. Here the tables'
manifests are read and their slots are filled.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import numpy as np
from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]

from ...ir.record import record
from ..looks import MAIN, WATCHED, look
from ..state import COMMITS, LOANS
from .float_errors import ORDINARY, QUIET, STATE, tell_unheard
from .layout import layout_holds, native_calls_enabled, word
from .walk import Door, cell_offsets

Lookup = Callable[[str], int]
"""The address of a symbol of the program's code; KeyError where there is none."""

_NUMPY_SLOTS = {  # positions in NumPy's table of C functions
    "PyArray_CopyInto": 50,
    "PyArray_Return": 76,
    "PyArray_NewFromDescr": 94,
    "PyDataMem_SetHandler": 304,
}
_OF_THE_DOOR = frozenset({"function.walks", "recording", "slowly", "told"})  # where there is one
_LIBC = frozenset({"aligned_alloc", "free", "madvise", "memcpy", "memmove", "memset"})
_OBJECTS: Mapping[str, object] = MappingProxyType({
    "True": True, "False": False, "None": None, "NotImplemented": NotImplemented,
    "MemoryError": MemoryError, "float": float, "int": int, "complex": complex, "str": str,
    "bytes": bytes, "dict": dict, "ndarray": np.ndarray, "empty": (),
    **{name: sys.intern(name) for name in ("acquire", "release", "item")},
})


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


def _numpy_function(slot: int) -> int:
    """The address in one slot of NumPy's table of C functions."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return word(get(umath._ARRAY_API, None) + 8 * slot)


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


def manifest(table: int) -> tuple[dict[str, int], list[str]]:
    """The facts that the code of an import table relies on, and the names of its slots."""
    words = ctypes.string_at(word(table)).decode().split()
    facts = [word.partition("=") for word in words if "=" in word]
    return {name: int(value) for name, _, value in facts}, [w for w in words if "=" not in w]


def fill(table: int, names: Iterable[str], values: Mapping[str, int]) -> None:
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
        facts, names = manifest(table)
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
        fill(table, names, {"pool": id(self._capsule), "look": id(look),
                             "watched": ctypes.addressof(WATCHED), "main": ctypes.addressof(MAIN),
                             "errstate": id(STATE), "ordinary": id(ORDINARY),
                             "quiet": ctypes.addressof(QUIET.word),
                             "unheard": id(tell_unheard), "commits": id(COMMITS),
                             "barred": ctypes.addressof(LOANS.barred),
                             **cell_offsets(), **({} if door is None else door.values())})
        self.door = lookup("weft_door")
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def pool_state(self) -> PoolState:
        return PoolState(*(word(self._state + 8 * index) for index in range(1, 5)))

    def trim_pool(self) -> None:
        """Give the kept blocks back to the system."""
        self._trim()
