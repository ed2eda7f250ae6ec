"""``Callable``: the base of objects that native code may call without any Python in between.

It has a place for the address of a C function (PEP 590's vectorcall), which is empty at first: then
Python's own ``__call__`` is called. Where such a type cannot be made, calls are Python's for ever.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

_DEFAULT, _BASE, _VECTORCALL, _METHOD = 1 << 18, 1 << 10, 1 << 11, 1 << 17  # Py_TPFLAGS_...
_TP_CALL, _TP_MEMBERS, _SSIZE, _READONLY = 50, 72, 19, 1  # of typeslots.h and structmember.h
_FLAGS = 168   # where a type has its flags
_POINTER = 16  # where an object has its address, after its count and type


class _Member(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t),
                ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("size", ctypes.c_int), ("item", ctypes.c_int),
                ("flags", ctypes.c_uint), ("slots", ctypes.POINTER(_Slot)))


def _made() -> Any:
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", _SSIZE, _POINTER, _READONLY, None))
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p)
    slots = (_Slot * 3)(_Slot(_TP_CALL, call.value),
                        _Slot(_TP_MEMBERS, ctypes.addressof(members)))
    spec = _Spec(b"weft.Callable", _POINTER + 8, 0, _DEFAULT | _BASE | _VECTORCALL, slots)
    made = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(
        ("PyType_FromSpec", ctypes.pythonapi))(ctypes.addressof(spec))
    made._keeps = members, slots, spec  # which Python does not copy
    return made


NATIVE = (sys.implementation.name == "cpython" and ctypes.sizeof(ctypes.c_void_p) == 8
          and not sysconfig.get_config_var("Py_GIL_DISABLED"))
"""Whether this interpreter has such types as they are known here."""
if TYPE_CHECKING:
    class Callable:
        """Has a place for an address."""
else:
    Callable = _made() if NATIVE else object


def may_be_native(kind: type, method: bool) -> None:
    """Have calls of a class's objects come to their addresses, where they have one. A class that
    has a ``__call__`` of Python's says by itself that they cannot. ``method``: ``thing.name(x)`` is
    such a call, with the thing first; else Python makes a bound method for it."""
    if NATIVE:
        flags = ctypes.c_ulong.from_address(id(kind) + _FLAGS)
        if flags.value == kind.__flags__:  # else they are not where they are known to be
            flags.value |= _VECTORCALL | (_METHOD if method else 0)


def point(made: Any, address: int) -> None:
    """Have native code be called for an object, or Python again if the address is 0."""
    ctypes.c_uint64.from_address(id(made) + _POINTER).value = address
