"""What ``@weft.compile`` gives: a function that is ready to be called, and not yet compiled.

Calls go straight to native code (``runtime.entry.walk``), which takes the place of ``__call__`` as
soon as there is some. Those that it is not for go to the ``Programs`` of the function, with which
the engine is loaded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
)

from . import tree
from .boundary import boundary, leave
from .loading import load
from .options import Hook, Options
from .signature import Signature
from .walked import Walked

if TYPE_CHECKING:
    from ..engine.recompiling.explained import Explanation
    from ..engine.stages import Lowered
    from ..tracing.context.traced import Traced

P = ParamSpec("P")
R = TypeVar("R")
OnRecompile = Literal["warn", "silent", "error"]

class RecompileWarning(UserWarning):
    """A function was compiled again: for arguments of another type, size or structure, or because
    something that it reads is another. One line for each kind of change; ``explain()`` counts."""


class CacheInfo(NamedTuple):
    """Specialisations of one function, and the milliseconds spent on making them."""

    specialisations: int
    milliseconds: float


class Programs(Protocol):
    """What a function asks of the engine; ``engine.programs.Programs``. ``methods`` are the
    functions of single objects, ``history`` what it was compiled again for."""

    methods: Any
    history: Any

    def call(self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any: ...
    def prepared(self, function: Any, problem: BaseException) -> BaseException | None: ...
    def trace(self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Traced: ...
    def lower(self, function: Any, first: tuple[Any, ...], args: tuple[Any, ...],
              kwargs: Mapping[str, Any]) -> Lowered: ...
    @property
    def fixed(self) -> Mapping[str, str]: ...
    def signatures(self) -> list[dict[str, str]]: ...
    def specialisations(self) -> list[Any]: ...
    def explain(self) -> Explanation: ...
    def milliseconds(self) -> list[float]: ...
    def clear(self, function: Any) -> None: ...


class _Unloaded:
    """What a function has before it has programs: each call loads them."""

    @staticmethod
    def prepared(function: Any, problem: BaseException) -> BaseException:
        leave(problem)
        return problem


_UNLOADED = _Unloaded()


class Function(Walked, Generic[P, R], method=True):
    """A compiled function; see ``weft.compile``."""

    __slots__ = ("__dict__", "__weakref__", "_method_of")

    __name__: str
    __qualname__: str

    def __new__(
        cls, function: Callable[P, R], options: Options, signature: Signature,
        on_recompile: OnRecompile, disable: bool, binds: type | None = None,
        progress: Hook | None = None,
    ) -> Function[P, R]:
        """One that is no method, where ``binds`` says so."""
        is_method = binds is object or (binds is None and hasattr(type(function), "__get__"))
        return object.__new__(cls if is_method else Unbound)

    def __init__(
        self, function: Callable[P, R], options: Options, signature: Signature,
        on_recompile: OnRecompile, disable: bool, binds: type | None = None,
        progress: Hook | None = None,
    ) -> None:
        super().__init__()
        self.__name__ = self.__qualname__ = type(function).__name__  # for what has no name: partial
        functools.update_wrapper(self, function)
        self.py_func: Any = function
        self.options, self.signature = options, signature
        self.on_recompile, self.disable, self.progress = on_recompile, disable, progress
        self.history: Any = None  # of the programs of all objects, if this is the method of one
        self.shares = False  # programs with others of the same code, see ``engine.recent``
        self.binds: type = binds if binds is not None else (
            object if hasattr(type(function), "__get__") else staticmethod)
        self.owners: tuple[type, ...] = ()  # classes that have it as an attribute
        # The class's function and a reference to the object, if this is the method of one.
        self._method_of: tuple[Function[..., Any], Any] | None = None
        self.changing = False  # it sets attributes of that object
        self._made: Programs | _Unloaded = _UNLOADED

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._made is _UNLOADED and self.ready.find(self, args, kwargs):
            return self(*args, **kwargs)
        try:
            return self.programs.call(self, args, kwargs)  # type: ignore[no-any-return]
        except BaseException as problem:
            told = self._made.prepared(self, problem)
            if told is problem:
                raise
            if told is not None:
                raise told from problem
        return self(*args, **kwargs)

    def offer(self, program: Any, walk: Any) -> bool:
        """See ``Walked``; the function of one object is called by way of its class's, too."""
        if self.changing:  # it has the walks of the class's: what is given to it is not the object
            return bool(self._method_of and self._method_of[0].offer(program, walk))
        new = super().offer(program, walk)
        if new and self._method_of is not None:
            function, reference = self._method_of
            function.offer(program, walk.of_method(reference))
        return new

    def withdraw(self, program: Any = None) -> Any:
        """See ``Walked``."""
        others = self.offered if program is None else [program]
        held = super().withdraw(program)
        if self._method_of is None:
            return held
        return held, [self._method_of[0].withdraw(each) for each in others]

    def told(self, problem: BaseException) -> BaseException | None:
        """What a native call raises that has ended so; None: it is to be made again."""
        told = self._made.prepared(self, problem)
        if told is not None and told is not problem:
            told.__cause__ = problem
        return told

    @functools.cached_property
    def ready(self) -> Any:
        """Its programs that were made by other processes; ``ready.calls.ReadyCalls``."""
        return load("frontend.ready.calls").ReadyCalls()

    @property
    def programs(self) -> Programs:
        """Its programs; they load the engine."""
        if self._made is _UNLOADED:
            of = load("frontend.engine.programs").Programs.of
            with self._lock:
                if self._made is _UNLOADED:
                    self._made = of(self)
        return self._made  # type: ignore[return-value]

    def __set_name__(self, owner: type, name: str) -> None:
        self.owners = (*self.owners, owner)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Methods can be compiled: the instance becomes the first argument."""
        target = owner if self.binds is classmethod else instance
        if target is None or self.binds is staticmethod:
            return self
        return self.programs.methods.bound(self, target)

    def __repr__(self) -> str:
        return f"<weft.compile of {self.__qualname__}>"

    def __reduce__(self) -> str:
        """Pickled by name and never copied, as Python's functions are."""
        return self.__qualname__

    def for_object(
        self, function: Callable[..., Any], signature: Signature, reference: Any, changing: bool
    ) -> Function[..., Any]:
        """The function of one object whose method this is, to which ``reference`` is one. It has
        the arguments of the method, and before them, if it is ``changing``, what the object
        holds."""
        made = Function(function, self.options, signature, self.on_recompile, self.disable,
                        staticmethod, self.progress)
        made.history = self.programs.history
        made._method_of, made.changing = (self, reference), changing
        return made

    def traced_by(self) -> tuple[Any, ...]:
        """What decides how a call is recorded in a trace, arguments apart."""
        return self.py_func, self.signature.static, self.disable

    # -- stages ---------------------------------------------------------------------------------

    @boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The graph for arguments, or specs and texts that stand for them; nothing runs."""
        return self.programs.trace(self, args, kwargs)

    @boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The stages for arguments or specs; compiled only on demand."""
        return self.programs.lower(self, (), args, kwargs)

    @boundary
    def lower_with(
        self, first: tuple[Any, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Lowered:
        """``lower`` with some first arguments that the program gets at each call, as a method."""
        return self.programs.lower(self, first, args, kwargs)

    @boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The results as a nest of ``Spec``, without compiling or running anything. A size that
        values say is None."""
        traced = self.programs.trace(self, args, kwargs)
        specs = load("frontend.tracing.spec").specs
        values = iter(traced.graph.results)
        types = [traced.type_of(kind) if isinstance(kind, int) else next(values).type
                 for kind in traced.out_kinds]
        found = tree.unflatten(traced.out_tree, specs(types, traced.graph.params))
        return found[0] if traced.changed else found  # beside what the arguments become

    # -- specialisations ------------------------------------------------------------------------

    @property
    def fixed(self) -> Mapping[str, str]:
        """The arguments that have become static by themselves, and why."""
        return self.programs.fixed

    @property
    def signatures(self) -> list[dict[str, str]]:
        """The argument types of each specialisation, in the order they were made."""
        return self.programs.signatures()

    def explain(self) -> Explanation:
        """The specialisations as data, and as a table by ``print``: types, compile time, kernels,
        guards; what each was compiled again for, which arguments have become static by themselves,
        and what ``dynamic=`` would do with one."""
        return self.programs.explain()

    def cache_info(self) -> CacheInfo:
        """How many specialisations there are, and what they cost."""
        milliseconds = self.programs.milliseconds()
        return CacheInfo(len(milliseconds), sum(milliseconds))

    def argument_names(self, count: int) -> list[str]:
        """The names of the first ``count`` positional arguments."""
        return [self.signature.name(at) for at in range(count)]

    def clear_cache(self) -> None:
        """Forget all specialisations; the next call traces again.

        Their code is unmapped as soon as no call is running it and nothing else holds it.
        """
        self.programs.clear(self)


class Unbound(Function[P, R]):
    """A compiled function that does not get the object whose attribute it is: a static method, a
    class method, what is no function of Python's."""

    __slots__ = ()
