"""What a call asks the cache for: the key of the program that it needs.

    digest of   the function, and all that it reads         ``content``
                the structure of the arguments, kind, dtype and shape of each leaf
                options; the environment's WEFT_...; threads
                versions of Weft, NumPy and Python; the CPU

It is made without tracing, so that a program which is there needs none.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from ...codegen.cache import key_of
from ...codegen.cpu.processors import LEAVES, cpu_text
from ...codegen.shared import SHARED, SUPPORT, versions
from ...ir.record import record
from ...runtime.threads import thread_limit
from ..face import tree
from ..face.options import Options
from ..face.signature import Signature, plain_path
from .content import NoKeyError, Reader

_NUMBERS = frozenset({bool, int, float, complex})
_NOT_READ = ("WEFT_CACHE", "WEFT_PROGRESS")  # what decides no code begins so


@record(frozen=True, eq=False)
class Question:
    """The key of a call; ``reader`` has met what the function leads to."""

    key: str
    reader: Reader
    structure: tree.TreeDef
    leaves: list[Any]

    @property
    def variables(self) -> dict[int, Any]:
        """Those leaves that are variables, by number."""
        return {at: leaf for at, leaf in enumerate(self.leaves) if _is_variable(leaf)}


def question_of(
    function: Any, name: str, options: Options, signature: Signature,
    args: tuple[Any, ...], kwargs: Mapping[str, Any],
) -> Question:
    """The question of one call. Raises NoKeyError where there is none, and what is wrong with the
    arguments."""
    if type(function) is not FunctionType:
        raise NoKeyError
    leaves, structure = signature.flatten(args, kwargs)
    reader = Reader()
    reader.add(function)
    reader.structure(structure)
    names = [*map(plain_path, signature.names(structure))] if signature.dynamic else (
        [""] * len(leaves))
    for leaf, label in zip(leaves, names, strict=True):
        _add_leaf(reader, leaf, label, signature.dynamic)
    reader.add((name, *_decided(options), *sorted(signature.static), *sorted(signature.fixed)))
    reader.add((options.threads or thread_limit(), *np.geterr().items()))
    return Question(key_of("ready", reader.digest(), _around(), versions(), _cpu()), reader,
                    structure, leaves)


def _decided(options: Options) -> list[Any]:
    """The options, of those programs that are kept."""
    if (options.verify or options.devices != ("cpu:0",) or options.costs is not None
            or options.timed):
        raise NoKeyError
    return [options.opt, options.target, options.check, options.on_unsupported,
            options.inout, options.donate]


def _around() -> str:
    return repr(sorted([(name, value) for name, value in os.environ.items()
                        if name.startswith("WEFT_") and not name.startswith(_NOT_READ)]))


@cache
def _cpu() -> str:
    addresses = SHARED.found(SUPPORT)
    if addresses is None:
        raise NoKeyError
    words = (ctypes.c_uint32 * (4 * len(LEAVES) + 1))()
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(addresses["weft_cpu"])(ctypes.addressof(words))
    return cpu_text([*words])


def _add_leaf(
    reader: Reader, leaf: Any, name: str, dynamic: Mapping[str, Mapping[int, Any]]
) -> None:
    kind = type(leaf)
    if kind is np.ndarray:
        shape = [*map(str, leaf.shape)]
        for wanted, dims in dynamic.items():
            if name == wanted or name.startswith(wanted + "."):
                for axis, dim in dims.items():
                    if not -len(shape) <= axis < len(shape):
                        raise NoKeyError
                    shape[axis] = f"dim {dim}"
        reader.add(("array", leaf.dtype, *shape))
    elif isinstance(leaf, np.generic):
        reader.add(("scalar", leaf.dtype))
    elif kind in _NUMBERS and (kind is not int or -1 << 63 <= leaf < 1 << 63):
        reader.add(("number", kind.__name__))
    elif _is_variable(leaf):
        reader.add(leaf)
    else:
        raise NoKeyError


def _is_variable(leaf: Any) -> bool:
    return type(leaf).__name__ == "Variable" and hasattr(leaf, "cell")
