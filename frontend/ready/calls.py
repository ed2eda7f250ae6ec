"""Calls of functions that an earlier process has compiled: their programs are found on disk and
mapped, without tracing, without the engine, without LLVM."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ...codegen.cache import cache, told
from ...codegen.shared import SHARED
from ...ir.forks import freed
from ...ir.record import record
from ...runtime.entry.native import NativeCall, native_call
from ...runtime.entry.walk import Walk
from ...runtime.lifetime import Lifetime
from ...runtime.profile.recording import follow_profiles
from ...runtime.threads import follow_thread_limit, thread_limit
from ..face.collector import paused_collector
from ..face.options import Options
from ..face.recording import RECORDING
from ..face.signature import Signature
from ..tracing.guards.guard import Guard
from .content import NoKeyError
from .question import Question, question_of
from .stored import Loader, unpacked
from .support import support
from .walks import walk_of


class Asking(Protocol):
    """What asks for programs: ``face.function.Function``."""

    __name__: str
    py_func: Any
    options: Options
    signature: Signature
    disable: bool

    def offer(self, program: Any, walk: Any) -> Any: ...
    def withdraw(self, program: Any) -> Any: ...


_KEPT = 256    # programs of one function
_ASKED = 4096  # keys of one function that are asked for once


@record(frozen=True)
class About:
    """What is told of a program: the milliseconds that it took to make, what it launches, and the
    bytes of its arena."""

    milliseconds: float
    launches: int
    arena: str


class Ready:
    """A program that was found, bound to this process. ``leaves`` stand for those of the call that
    it was found for."""

    def __init__(self, question: Question, native: NativeCall, walk: Walk,
                 guards: Sequence[Guard], about: About) -> None:
        self.key, self.structure = question.key, question.structure
        self.leaves = [*map(_stand_in, question.leaves)]
        self.native, self.walk, self.guards, self.about = native, walk, guards, about

    @property
    def threads(self) -> int:
        """The number of threads that calls may use."""
        return self.native.threads

    @threads.setter
    def threads(self, count: int) -> None:
        self.native.threads = count

    @property
    def profiled(self) -> bool:
        """Whether a profile is active, which needs another form of the program."""
        return self.native.refusing

    @profiled.setter
    def profiled(self, profiled: bool) -> None:
        self.native.refusing = profiled


class ReadyCalls:
    """The programs of one function that were found, the latest first."""

    def __init__(self) -> None:
        self.programs: tuple[Ready, ...] = ()
        self.fixed: Mapping[str, str] = {}  # arguments that are static by themselves, and why
        self._asked: set[tuple[int, str]] = set()  # by which thread, and the key
        self._off = False
        self._lock = freed(threading.RLock())

    def find(
        self, function: Asking, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> bool:
        """Whether there is a program for a call, which native calls try from now on. Each thread
        asks for it once: it may be that another has found it meanwhile."""
        if self._off or function.disable or RECORDING.get() is not None or (
                cache() is None or support() is None):
            return False
        with self._lock, paused_collector():  # what is read here is alive, or small
            try:
                found = self._found(function, args, kwargs)
            except Exception as problem:  # objects of the user's were asked: the engine tells
                told(f"program of {function.__name__}", _reason(problem))
                return False
            if found is None:
                return False
            if found not in self.programs:
                self.programs = (found, *self.programs)[:_KEPT]
            function.offer(found, found.walk)
            return True

    def drop(self, function: Asking, program: Ready) -> None:
        """Have a program no more."""
        with self._lock:
            self.programs = tuple([each for each in self.programs if each is not program])
            function.withdraw(program)

    def clear(self) -> None:
        """Forget all programs, and find none any more."""
        with self._lock:
            self.programs, self._off = (), True

    def _found(
        self, function: Asking, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Ready | None:
        store = cache()
        assert store is not None
        signature = function.signature.with_fixed(self.fixed)
        while True:
            question = question_of(function.py_func, function.__name__, function.options,
                                   signature, args, kwargs)
            asked = threading.get_ident(), question.key
            if asked in self._asked:
                return None
            if len(self._asked) >= _ASKED:
                self._asked.clear()
            self._asked.add(asked)
            for each in self.programs:
                if each.key == question.key:
                    return each
            data = store.get(question.key, f"program of {function.__name__}")
            if data is None:
                return None
            kind, *parts = unpacked(data)
            if kind == "program":
                return _bound(function, signature, question, parts)
            self.fixed = {**self.fixed, **parts[0]}
            signature = signature.with_fixed(self.fixed)


def _bound(
    function: Asking, signature: Any, question: Question, parts: Any
) -> Ready | None:
    """A program in this process, None where no native code can call it."""
    name, needs, image, outline, about = parts
    own = Loader(question.reader, function.py_func).outline(
        outline, question.structure, question.variables)
    library = SHARED.linked(needs, image)
    asked = function.options.threads
    native = native_call(name, library.addresses.__getitem__, support(),
                         keep=Lifetime(library.unload), threads=asked or thread_limit(),
                         fail=_to_engine)
    walk = None if native is None else walk_of(own, signature, native.address, native.call)
    if native is None or walk is None:
        return None
    made = Ready(question, native, walk, own.guards, About(*about))
    if asked is None:
        follow_thread_limit(made)
    follow_profiles(made)
    return made


def _stand_in(leaf: Any) -> Any:
    """What has the type of a leaf, and holds nothing of the user's."""
    return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape) if isinstance(
        leaf, np.ndarray) else leaf


def _reason(problem: Exception) -> str:
    if isinstance(problem, NoKeyError):
        return "it reads or does what no other process can know"
    return f"{type(problem).__name__}: {problem}"


def _to_engine(number: int) -> Any:
    """A check has failed, and nothing has happened: the engine knows what to say of it."""
    return NotImplemented
