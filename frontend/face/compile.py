"""``weft.compile``: what it is asked for is checked here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, overload

from ...ir.diagnose import error
from ...ir.record import replace
from .boundary import boundary
from .function import Function, OnRecompile, P, R
from .loading import load
from .options import Hook, Options, checked_flag, checked_hook, names_in
from .signature import Signature
from .source import user_loc


@overload
def compile(function: Callable[P, R], /) -> Function[P, R]: ...


@overload
def compile(
    *, static_argnames: Sequence[str] | str = (),
    dynamic: Mapping[str, Mapping[int, Any]] | None = None,
    donate_argnames: Sequence[str] | str = (), device: str | None = None,
    threads: int | None = None, target: str | None = None, opt: int = 2, check: Sequence[str] = (),
    verify: bool = False, on_recompile: OnRecompile = "warn",
    on_unsupported: Literal["error", "host"] = "error", inout: Literal["allow", "error"] = "allow",
    disable: bool = False, progress: Hook | None = None,
) -> Callable[[Callable[P, R]], Function[P, R]]: ...


@boundary
def compile(
    function: Callable[..., Any] | None = None, /, *, static_argnames: Sequence[str] | str = (),
    dynamic: Mapping[str, Mapping[int, Any]] | None = None,
    donate_argnames: Sequence[str] = (), device: str | None = None, threads: int | None = None,
    target: str | None = None, opt: int = 2, check: Sequence[str] = (), verify: bool = False,
    on_recompile: OnRecompile = "warn", on_unsupported: Literal["error", "host"] = "error",
    inout: Literal["allow", "error"] = "allow", disable: bool = False, progress: Hook | None = None,
) -> Any:
    """Compile a function written in plain NumPy; use as ``@compile`` or ``@compile(...)``.

    Arguments and results are nests (dict, list, tuple, namedtuple, dataclass, None) of arrays and
    scalars; Python scalars are traced, so another value does not compile again. Dicts keep their
    order. Closed-over arrays are read at each call (what is computed from them alone, once, while
    tracing). Numbers, functions and items of lists and dicts that the function reads are guards:
    where one is another, as a name that has another array, the function is traced again, and says
    so (``explain()`` lists them). A default value is used as it is, spelled out or not. As a
    method, the function has specialisations for each object, whose attributes are closed over (an
    object that is itself a nest, such as a dataclass of arrays, is an argument like any other).

    Args:
        static_argnames: arguments that stay Python values and select the specialisation, by type
            and value: 1, 1.0 and True are three. They must be hashable. A text is static by
            itself, and so is a bool that an ``if`` asks for; ``explain()`` lists them.
        dynamic: dims that may have any size, ``{"x": {0: "b"}}``.
        donate_argnames: arguments that are needed no more after a call. A result of the same type
            may then be such an array itself, with new elements, so that nothing is allocated:
            ``x = step(x)``. It is one where nothing can fail once it has begun
            (``memory_analysis().alias_bytes``), and the array is dense and shares its memory with
            no other argument; else it is a new array, and the argument stays as it is.
        device: "cpu:0" (the default), or a GPU, "gpu:0": Triton's interpreter, a process of its
            own that computes what a GPU does, slowly. Functions of the host do not run there.
        threads: how many threads calls may use; None follows ``set_num_threads``.
        target: a CPU name that LLVM knows, such as "x86-64-v3"; None or "native" is this machine's.
            Code for any may be dumped and exported; to run what this CPU lacks is an error (W402).
        opt: 0 one kernel for each op; 1 and 2 all passes; 3 LLVM's own full pipeline as well.
        check: run-time checks by name; none so far (indices are always checked).
        verify: run the reference interpreter beside each call and compare.
        on_recompile: from the second specialisation on "warn" (the default), in one line for each
            kind of change; "silent", they are counted (``explain()``); or "error" (W405).
        on_unsupported: "host" has NumPy run the functions that cannot be compiled, at each call,
            where a trial tells the type of what they return; with a HostWarning for each line. The
            default, "error", refuses them. A function that is called while another one is traced
            follows that one.
        inout: what writes into arrays among the arguments do (``x[i] = v``, ``x += g``,
            ``out=x``). "allow" (the default): the caller's arrays are what NumPy would have left,
            once the call has succeeded; "error" refuses them (W203).
        disable: call the Python function itself.
        progress: called as ``progress(step, done, total)`` when a step of a compilation begins, and
            as ``progress("done", total, total)`` at its end. What it raises ends the compilation:
            nothing has run then, and the next call compiles again. At a terminal, one line shows
            compilations of more than a second (``WEFT_PROGRESS=0`` never, ``1`` always).

    Raises (at calls): weft errors with the user's line; see ``weft.Error``.

    >>> import numpy as np
    >>> double = compile(lambda x: x * 2)
    >>> double(np.arange(3.0))
    array([0., 2., 4.])
    """
    checked_hook(progress)
    options = Options(opt, target, threads, device, names_in(check, "check"), verify,
                      on_unsupported, inout)

    def decorate(decorated: Callable[..., Any]) -> Function[..., Any]:
        return compile_with(decorated, static_argnames, dynamic, donate_argnames, device,
                            on_recompile, disable, options, progress)

    return decorate if function is None else decorate(function)


def compile_with(
    function: Callable[..., Any], static_argnames: Sequence[str] | str,
    dynamic: Mapping[str, Mapping[int, Any]] | None, donate_argnames: Sequence[str],
    device: str | None, on_recompile: OnRecompile, disable: bool, options: Options,
    progress: Hook | None = None,
) -> Function[..., Any]:
    """The decorator's work, with its options checked."""
    binds: type | None = None
    if isinstance(function, (classmethod, staticmethod)):
        binds, function = type(function), function.__func__
    if not callable(function):
        raise error("W112", f"compile needs a function, not {type(function).__name__}",
                    locs=user_loc(), hint="write @weft.compile above a function")
    checked_flag(disable, "disable")
    if not isinstance(on_recompile, str) or on_recompile not in ("warn", "silent", "error"):
        raise error("W113", f"on_recompile={on_recompile!r} is not known", locs=user_loc(),
                    hint="use 'warn', 'silent' or 'error'")
    if device is not None and not (isinstance(device, str) and device == "cpu:0"):
        devices_of = load("frontend.engine.building.devices").devices_of
        options = replace(options, devices=devices_of(device))
    signature = Signature(function, static_argnames, dynamic)
    donated = names_in(donate_argnames, "donate_argnames")
    unknown = {*donated} - {*signature.positional, *signature.keyword_only}
    if unknown:
        raise error("W112", f"donate_argnames: no argument '{min(unknown)}'", locs=user_loc(),
                    hint=f"the arguments are {', '.join(signature.positional)}")
    if donated:
        options = replace(options, donate=donated)
    return Function(function, options, signature, on_recompile, disable, binds, progress)
