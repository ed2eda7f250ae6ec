"""What makes texts and what tells them, in rewritten code: of traced values, when the program runs
(see ``late`` and ``telling``)."""

from __future__ import annotations

import io
import logging
import operator
import pprint
import reprlib
import string
import textwrap
import warnings
from collections.abc import Callable, Iterator, MutableMapping
from functools import partial
from types import BuiltinMethodType, FrameType, FunctionType, MappingProxyType, MethodType
from typing import Any

import numpy as np

from ...face.source import is_internal, user_frame
from ...tracing.arrays.closed_over import read_nest
from ...tracing.context.recorder import ACTIVE
from ...tracing.late import GIVE_TEXTS, holds, late
from ...tracing.telling import Stream, is_standard, stream_of, tell, tell_print
from ...tracing.values.texts import WRITERS
from ..lists.filtered import Filtered
from .protocols import binary

_FORMS: MappingProxyType[int, Callable[[Any], Any]] = MappingProxyType({
    -1: lambda x: x, ord("s"): str, ord("r"): repr, ord("a"): ascii})
_MAKERS = frozenset({
    str, repr, ascii, format, pprint.pformat, reprlib.repr, textwrap.dedent, textwrap.indent,
    textwrap.fill, textwrap.shorten, string.capwords, *WRITERS,
    np.format_float_positional, np.format_float_scientific})
_LEVELS: MappingProxyType[str, int] = MappingProxyType({
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING,
    "warn": logging.WARNING, "error": logging.ERROR, "exception": logging.ERROR,
    "critical": logging.CRITICAL, "fatal": logging.CRITICAL})


def formatted(value: Any, form: int, spec: Any = "") -> Any:
    """What an f-string makes of a value: ``{value!r:spec}``."""
    value = read_nest(value)
    ctx, method = ACTIVE.get(), type(value).__format__
    if form == -1 and isinstance(method, FunctionType) and ctx is not None and holds(value):
        copy = ctx.as_written(method)
        if copy is not method:
            return copy(value, spec)
    return late(_formatted, value, form, spec)


def _formatted(value: Any, form: int, spec: str) -> str:
    return format(_FORMS[form](value), spec)


def joined(*parts: Any) -> Any:
    """An f-string, of its parts."""
    return late(_joined, *parts)


def _joined(*parts: str) -> str:
    return "".join(parts)


def percent(form: Any, values: Any) -> Any:
    """``form % values``."""
    return late(operator.mod, form, read_nest(values)) if isinstance(form, str) else (
        binary("%", form, values))


def meaning(function: Any) -> Any:
    """What a function of texts means in rewritten code; None for any other."""
    if function is print:
        return tell_print
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(function, BuiltinMethodType) and type(owner) is str:
        return _making(function) if name in GIVE_TEXTS else None
    if isinstance(function, type):
        return _making(function) if function is str else None
    if isinstance(function, FunctionType) and function.__module__ == "logging":
        level = function is logging.log or name in _LEVELS
        return _logging(logging.getLogger(), name) if level and vars(logging).get(
            name) is function else None
    if isinstance(function, MethodType):
        return _of_method(function, owner, name)
    if function is warnings.warn:
        return _warn
    if name in ("write", "writelines") and (_is_standard(owner) or isinstance(owner, io.IOBase)):
        return _writing(function, owner)
    if function is pprint.pprint or function is pprint.pp:
        return _told(function)
    known = callable(function) and type(function).__hash__ is not None and function in _MAKERS
    return _making(function) if known else None


def _of_method(function: MethodType, owner: Any, name: str) -> Any:
    if isinstance(owner, (logging.Logger, logging.LoggerAdapter)):
        return _logging(owner, name) if name in _LEVELS or name == "log" else None
    if isinstance(owner, (string.Template, string.Formatter, textwrap.TextWrapper,
                          pprint.PrettyPrinter)):
        if name in ("substitute", "safe_substitute", "format", "vformat", "fill", "pformat"):
            return _making(function)
        return _told(function) if name == "pprint" else None
    if name in ("write", "writelines") and _is_standard(owner):
        return _writing(function, owner)
    return None


def _is_standard(stream: Any) -> bool:
    ctx = ACTIVE.get()
    return ctx is not None and is_standard(ctx, stream)


def _making(function: Callable[..., str]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        return late(function, *map(_items, args), **options)

    return call


def _items(x: Any) -> Any:
    """An argument, of which generators are taken as what they give: ``", ".join(...)``."""
    if isinstance(x, Filtered):
        x = x.listed()
    return list(x) if isinstance(x, Iterator) and not isinstance(x, io.IOBase) else x


def _told(function: Callable[..., Any]) -> Callable[..., None]:
    return lambda *args, **options: tell(function, args, options)


def _logging(logger: Any, name: str) -> Callable[..., None]:
    """A method of a logger, whose record is of the user's line."""
    def call(*args: Any, **options: Any) -> None:
        level, said = (_LEVELS[name], args) if name in _LEVELS else (args[0], args[1:])
        frame = user_frame()
        place = ("", 0, "") if frame is None else (
            frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        tell(partial(_log, logger, level, place), (said, options), {})

    return call


def _log(logger: Any, level: int, place: tuple[str, int, str], said: tuple[Any, ...],
         options: MutableMapping[str, Any]) -> None:
    message, *args = said
    while isinstance(logger, logging.LoggerAdapter):
        message, options = logger.process(message, options)
        logger = logger.logger
    if logger is logging.getLogger() and not logger.handlers:
        logging.basicConfig()
    if logger.isEnabledFor(level):
        file, line, function = place
        logger.handle(logger.makeRecord(logger.name, level, file, line, message, tuple(args), None,
                                        function, options.get("extra")))


def _warn(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None,
          **options: Any) -> None:
    """``warnings.warn``: when the program runs if it tells traced values."""
    frame = _user_frame(stacklevel)
    if frame is None or not holds(message):
        warnings.warn(message, category, stacklevel + 1, source, **options)
        return
    names = frame.f_globals
    kind = type(message) if isinstance(message, Warning) else category or UserWarning
    if isinstance(message, Warning):
        message = late(str, *message.args[:1])
    registry = names.setdefault("__warningregistry__", {})
    place = frame.f_code.co_filename, frame.f_lineno, str(names.get("__name__"))

    def warn(text: str) -> None:
        warnings.warn_explicit(text, kind, *place, registry)

    tell(warn, (message,), {})


def _user_frame(level: int) -> FrameType | None:
    """The frame of the user's that is so many calls up."""
    frame = user_frame()
    while frame is not None and level > 1:
        frame = frame.f_back
        level -= frame is not None and not is_internal(frame)
    return frame


def _writing(function: Callable[..., Any], stream: Any) -> Callable[..., Any]:
    """What writes to a file: when the program runs, if it is a stream of the process or if it
    writes traced values."""
    name = function.__name__

    def call(text: Any) -> Any:
        ctx = ACTIVE.get()
        if ctx is None or not (_is_standard(stream) or holds(text)):
            return function(text)
        tell(partial(_write, stream_of(ctx, stream), name), (text,), {})
        return None

    return call


def _write(stream: Any, name: str, text: Any) -> None:
    getattr(stream() if isinstance(stream, Stream) else stream, name)(text)
