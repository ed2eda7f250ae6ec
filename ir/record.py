"""Classes that are their fields, as ``dataclasses`` makes them, and made in a tenth of the time.

    @record(frozen=True)
    class Launch:
        kernel: str
        args: tuple[Window, ...] = ()
        locs: tuple[Loc, ...] = field(default=(), compare=False, repr=False)

``dataclasses`` compiles six methods of each class while it is imported. Here five are shared by all
classes, and ``__init__``, which is the one that has to be fast, is compiled at the first object:
half of the classes have none in a process.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")
_FIELDS = "__record_fields__"
_set = object.__setattr__


class Missing:
    """What stands for a default that there is not."""

    def __repr__(self) -> str:
        return "..."


MISSING: Any = Missing()


class Field:
    """A field: its default value or what makes one, and whether it is shown and compared."""

    __slots__ = ("compare", "default", "factory", "name", "repr")

    def __init__(self, default: Any, factory: Any, repr: bool, compare: bool) -> None:
        self.name = ""
        self.default, self.factory, self.repr, self.compare = default, factory, repr, compare


def field(
    *, default: Any = MISSING, default_factory: Any = MISSING, repr: bool = True,
    compare: bool = True,
) -> Any:
    """What a class says of a field beside its type, as ``dataclasses.field``."""
    return Field(default, default_factory, repr, compare)


@overload
def record(kind: type[T], /) -> type[T]: ...


@overload
def record(
    *, frozen: bool = False, eq: bool = True, slots: bool = False
) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(field_specifiers=(field,))
def record(
    kind: Any = None, /, *, frozen: bool = False, eq: bool = True, slots: bool = False
) -> Any:
    """Make a class one of records; ``frozen``, ``eq`` and ``slots`` mean what they mean to
    ``dataclasses.dataclass``. Annotations are texts (``from __future__ import annotations``)."""
    def make(kind: type[T]) -> type[T]:
        made = _fields_of(kind)
        if slots:
            kind = _with_slots(kind, [each.name for each in made])
        names = {each.name for each in made}
        setattr(kind, _FIELDS, tuple(made))
        methods: dict[str, Any] = {"__init__": _first_init(kind, frozen), "__repr__": _repr,
                                   "__match_args__": tuple([each.name for each in made])}
        if eq:
            key = _key([each.name for each in made if each.compare])
            methods |= {"__eq__": _equal(key), "__hash__": _hash(key) if frozen else None}
        if frozen:
            methods |= _frozen(kind, names)
        if frozen and slots:
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
        for name, method in methods.items():
            if name not in kind.__dict__ or (name == "__hash__" and kind.__dict__[name] is None):
                setattr(kind, name, method)
        return kind

    return make if kind is None else make(kind)


def fields(kind: Any) -> tuple[Field, ...]:
    """The fields of a record, or of a class of records, in their order."""
    found: tuple[Field, ...] = getattr(kind, _FIELDS)
    return found


def replace(of: T, /, **changes: Any) -> T:
    """A record like another one, but for some fields."""
    values = {each.name: getattr(of, each.name) for each in fields(of)}
    return type(of)(**values | changes)


def as_dict(of: Any) -> dict[str, Any]:
    """The values of a record by the names of its fields."""
    return {each.name: getattr(of, each.name) for each in fields(of)}


def _fields_of(kind: type) -> list[Field]:
    """The fields of a class: those of its bases, then its own. Its attributes are the defaults."""
    found: dict[str, Field] = {}
    for base in reversed(kind.__mro__[1:]):
        found |= {each.name: each for each in base.__dict__.get(_FIELDS, ())}
    for name, type_ in inspect.get_annotations(kind).items():
        if type_.startswith("ClassVar"):
            continue
        given = kind.__dict__.get(name, MISSING)
        made = given if isinstance(given, Field) else Field(given, MISSING, True, True)
        made.name = name
        found[name] = made
        if isinstance(given, Field):
            if made.default is MISSING:
                delattr(kind, name)
            else:
                setattr(kind, name, made.default)
    return list(found.values())


def _with_slots(kind: Any, names: list[str]) -> Any:
    """The class with slots for its own fields, which are no attributes of it then."""
    inherited = {name for base in kind.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    attributes = {name: value for name, value in kind.__dict__.items()
                  if name not in (*names, "__dict__", "__weakref__")}
    attributes["__slots__"] = tuple([name for name in names if name not in inherited])
    made = type(kind)(kind.__name__, kind.__bases__, attributes)
    made.__qualname__ = kind.__qualname__
    return made


def _first_init(kind: Any, frozen: bool) -> Callable[..., None]:
    """The ``__init__`` that makes the one for all objects but the first."""
    def first(self: Any, /, *args: Any, **kwargs: Any) -> None:
        made = _init(kind, frozen)
        kind.__init__ = made
        made(self, *args, **kwargs)

    return first


def _init(kind: Any, frozen: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"__name__": kind.__module__, "_set": _set, "_missing": MISSING}
    takes, does = ["_self"], []
    for at, each in enumerate(fields(kind)):
        name = value = each.name
        if each.factory is not MISSING:
            known[f"_{at}"] = each.factory
            takes.append(f"{name}=_missing")
            value = f"_{at}() if {name} is _missing else {name}"
        elif each.default is not MISSING:
            known[f"_{at}"] = each.default
            takes.append(f"{name}=_{at}")
        else:
            takes.append(name)
        does.append(f"_set(_self, {name!r}, {value})" if frozen else f"_self.{name} = {value}")
    if hasattr(kind, "__post_init__"):
        does.append("_self.__post_init__()")
    text = f"def __init__({', '.join(takes)}):\n    " + "\n    ".join(does or ["pass"])
    exec(text, known)
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    made.__module__ = kind.__module__
    return made


def _key(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The fields that are compared."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    get = operator.attrgetter(names[0]) if names else None
    return lambda of: () if get is None else (get(of),)


def _equal(key: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def equal(self: Any, other: object) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or key(self) == key(other)

    return equal


def _hash(key: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    return lambda self: hash(key(self))


def _frozen(kind: Any, names: set[str]) -> dict[str, Any]:
    """What refuses to change fields; a class below may have more attributes than these."""
    def assign(self: Any, name: str, value: Any) -> None:
        if type(self) is kind or name in names:
            raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")
        super(kind, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is kind or name in names:
            raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted")
        super(kind, self).__delattr__(name)

    return {"__setattr__": assign, "__delattr__": delete}


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        _set(self, each.name, value)


def _repr(self: Any) -> str:
    shown = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"
