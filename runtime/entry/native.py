"""Makes Python callables of compiled programs: the emitted entry point.

It answers ``NotImplemented``, before anything has happened, to arguments that it does not expect;
the caller then goes its slow path. A run that has begun gives results, or raises what ends it: the
error of a check that failed, what a function of the host raised, or what ``looks`` has to say.
Where there can be no native entry (``WEFT_NATIVE_CALL=0``, another layout, a free-threaded build,
an artifact without ``f_call``), ``through_ctypes`` does the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

from ...ir.types import DTYPES
from ..lifetime import Lifetime
from .layout import native_calls_enabled
from .support import Lookup, Support, fill, manifest

Fail = Callable[[int], Any]
"""Raises what a status stands for, or gives NotImplemented where nothing has happened."""

_METHOD_FLAGS = 0x80 | 0x02  # METH_FASTCALL | METH_KEYWORDS


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


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
    host: Any = None,
) -> NativeCall | None:
    """The emitted entry of program ``name`` as a callable, or None where it cannot serve.

    ``keep`` is what the code lives in (a JIT library), ``host`` (``HostSteps``) what it calls in
    Python, and ``fail`` raises the error of a check that has failed.
    """
    if support is None or not native_calls_enabled():
        return None
    try:
        function, table = lookup(f"{name}_call"), lookup(f"{name}_python")
    except KeyError:
        return None
    facts, names = manifest(table)
    if facts != {"entry": support.format}:
        return None
    values = {"weft_entry": support.entry, "threads": threads, "raise": id(fail),
              "host": 0 if host is None else id(host),
              "loops": 0 if host is None else host.loops.address}
    values |= {name: id(DTYPES[name.partition(".")[2]].numpy) for name in names
               if name.startswith("dtype.")}
    fill(table, names, values)
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
