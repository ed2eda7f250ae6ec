"""Guards: what a program takes for granted of the world outside of its arguments.

    scale = 2.0                               scale                 is 2.0
    class Net:                                self.layers           has 2 items
        def __call__(self, x):                self.layers[0]        is that very array
            for w in self.layers:             act                   is that very function
                x = act(x @ w) * scale        act.__code__          is that very code

They are found after tracing (``search``), as data: a path, a kind, what is expected there. A call
asks whether they hold; where one does not, the function is traced again. Contents of arrays are no
guards: arrays are read at each call.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from types import CodeType
from typing import Any

import numpy as np

from ....ir.record import record, replace
from ...face.exact import UnhashableError, exact

GONE = (LookupError, AttributeError, TypeError, ValueError)  # ValueError: of an empty cell
NOTHING = object()
"""What is found where there is nothing any more."""


class Kind(Enum):
    """What is expected at a path."""

    OBJECT = "is"      # this very object: an array, a function, a class
    VALUE = "equals"   # a number, a text, a tuple of such
    CLASS = "is a"     # an object of this class
    LENGTH = "has"     # so many items
    KEYS = "has keys"  # just these keys, in this order
    ITEMS = "has items"  # a set of just these, or a long list of these numbers
    ALIAS = "is at"    # what is at another path
    CONTENT = "has numbers"  # an array of the dtype, the dims and the very bits of this one


class Step(Enum):
    """How a path goes on."""

    ATTRIBUTE = "."
    ITEM = "[]"


@record(frozen=True, eq=False)
class Path:
    """Where something is. It begins at a namespace, or at what a reference is to (``of``) that
    keeps nothing alive. ``name`` is what users call the first ``hidden`` steps."""

    base: Any
    of: bool
    name: str
    hidden: int
    steps: tuple[tuple[Step, Any], ...] = ()

    @staticmethod
    def in_namespace(namespace: dict[str, Any], name: str) -> Path:
        """A global name."""
        return Path(namespace, False, name, 1, ((Step.ITEM, name),))

    @staticmethod
    def of_reference(reference: Callable[[], Any], name: str) -> Path:
        """The function that is traced, or the object whose method it is."""
        return Path(reference, True, name, 0)

    def cell(self, at: int, name: str) -> Path:
        """The path to a name of an enclosing function, from the function that has it."""
        return self.attribute("__closure__").item(at).attribute("cell_contents").called(name)

    def called(self, name: str) -> Path:
        """The same path, of which users know the end by this name."""
        return replace(self, name=name, hidden=len(self.steps))

    def attribute(self, name: str) -> Path:
        """The path to an attribute of what is there."""
        return replace(self, steps=(*self.steps, (Step.ATTRIBUTE, name)))

    def item(self, key: Any) -> Path:
        """The path to an item."""
        return replace(self, steps=(*self.steps, (Step.ITEM, key)))

    def above(self) -> Path:
        """The path to what has the last step."""
        return replace(self, steps=self.steps[:-1])

    @property
    def key(self) -> tuple[Any, ...]:
        """Two paths of one key are one."""
        return id(self.base), *self.steps

    def __str__(self) -> str:
        """As users write it: ``self.layers[0]``."""
        return self.name + "".join([f".{key}" if step is Step.ATTRIBUTE else f"[{key!r}]"
                                    for step, key in self.steps[self.hidden:]])

    def get(self) -> Any:
        """What is there now; ``NOTHING`` if there is nothing."""
        try:
            value = self.base() if self.of else self.base
            for step, key in self.steps:
                value = getattr(value, key) if step is Step.ATTRIBUTE else value[key]
        except GONE:
            return NOTHING
        return value


@record(frozen=True, eq=False)
class Guard:
    """What is expected at a path; an object that has a place for references is ``weak``: what a
    function leads to may hold its own program."""

    path: Path
    kind: Kind
    expected: Any
    weak: bool = False

    @staticmethod
    def object(path: Path, value: Any) -> Guard:
        """This very object is there."""
        try:
            return Guard(path, Kind.OBJECT, weakref.ref(value), weak=True)
        except TypeError:
            return Guard(path, Kind.OBJECT, value)

    def holds(self) -> bool:
        """Whether it is so now."""
        found = self.path.get()
        if found is NOTHING:
            return False
        match self.kind:
            case Kind.OBJECT:
                return found is not None and found is self.value()
            case Kind.VALUE:
                return found is self.expected or (
                    (key := key_of(found)) is not None and key == key_of(self.expected))
            case Kind.CLASS:
                return type(found) is self.expected
            case Kind.LENGTH:
                return hasattr(found, "__len__") and len(found) == self.expected
            case Kind.KEYS:
                return isinstance(found, dict) and (*found,) == self.expected
            case Kind.ITEMS:
                return isinstance(found, (set, list, tuple, deque)) and found == self.expected and (
                    isinstance(found, set) or [*map(type, found)] == [*map(type, self.expected)])
            case Kind.ALIAS:
                return found is self.expected.get()
            case Kind.CONTENT:
                return has_numbers(found, self.expected)

    def value(self) -> Any:
        """What is expected, which a weak guard refers to."""
        return self.expected() if self.weak else self.expected

    def said(self) -> str:
        """What it says, for ``explain()``."""
        match self.kind:
            case Kind.OBJECT:
                return f"{self.path} is the same {_described(self.value())}"
            case Kind.VALUE | Kind.CLASS | Kind.ALIAS:
                return f"{self.path} is {self.wanted()}"
            case _:
                return f"{self.path} has {self.wanted()}"

    def wanted(self) -> str:
        """What is expected."""
        match self.kind:
            case Kind.OBJECT:
                return f"this {_described(self.value())}"
            case Kind.VALUE:
                return short(self.expected)
            case Kind.CLASS:
                return f"a {self.expected.__name__}"
            case Kind.LENGTH:
                return _items(self.expected)
            case Kind.KEYS | Kind.ITEMS:
                return listed(self.expected)
            case Kind.ALIAS:
                return f"{self.expected}"
            case Kind.CONTENT:
                return short(self.expected.tolist())

    def sides(self) -> tuple[str, str]:
        """What was expected, and what is there now."""
        found = self.path.get()
        return self.wanted(), "nothing" if found is NOTHING else self._shown(found)

    def _shown(self, found: Any) -> str:
        match self.kind:
            case Kind.OBJECT:
                return f"another {_described(found)}"
            case Kind.VALUE:
                return f"a {type(found).__name__}" if key_of(found) is None else short(found)
            case Kind.CLASS:
                return f"a {type(found).__name__}"
            case Kind.LENGTH:
                return _items(len(found)) if hasattr(found, "__len__") else "no items"
            case Kind.KEYS | Kind.ITEMS:
                return listed(found if hasattr(found, "__iter__") else ())
            case Kind.ALIAS:
                return "another object"
            case Kind.CONTENT:
                return short(found.tolist()) if isinstance(found, np.ndarray) else (
                    f"a {type(found).__name__}")

    def changed(self) -> str:
        """What is otherwise now, for a warning."""
        found = self.path.get()
        if found is NOTHING:
            return f"'{self.path}' is not there any more"
        shown = self._shown(found)
        match self.kind:
            case Kind.OBJECT:
                return f"the {_described(found)} '{self.path}' is another"
            case Kind.VALUE | Kind.CLASS:
                return f"'{self.path}' is {shown}, was {self.wanted()}"
            case Kind.LENGTH | Kind.KEYS | Kind.ITEMS | Kind.CONTENT:
                return f"'{self.path}' has {shown}, had {self.wanted()}"
            case Kind.ALIAS:
                return f"'{self.path}' is not '{self.expected}' any more"


def key_of(value: Any) -> tuple[Hashable] | None:
    """By what two values are the same; None for what has no such key."""
    try:
        return (exact(value),)
    except UnhashableError:
        return None


def has_numbers(found: Any, expected: np.ndarray[Any, Any]) -> bool:
    """Whether an array has the dtype, the dims and the very bits of another one."""
    return isinstance(found, np.ndarray) and found.dtype == expected.dtype and (
        found.shape == expected.shape and found.tobytes() == expected.tobytes())


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "array"
    if isinstance(value, type):
        return "class"
    if isinstance(value, CodeType):
        return "code"
    return "function" if callable(value) else "object"


def short(value: Any) -> str:
    """The beginning of a value's text, in one line."""
    return _cut(repr(value))


def listed(values: Iterable[Any]) -> str:
    """The first of some values, in one line."""
    return _cut(", ".join(map(repr, values))) or "no items"


def _items(count: int) -> str:
    return f"{count} item{'' if count == 1 else 's'}"


def _cut(text: str) -> str:
    text = " ".join(text.split("\n"))
    return text if len(text) <= 40 else f"{text[:37]}..."


class Guards:
    """The guards of one program; ``hold`` tells quickly whether all do."""

    def __init__(self, guards: Sequence[Guard]) -> None:
        self.all = tuple(guards)
        self.version = 0  # of the objects that are expected
        self.hold: Callable[[], bool] = _checker(self.all)

    def __iter__(self) -> Any:
        return iter(self.all)

    def failed(self) -> Guard | None:
        """The first that does not hold. Numbers that are others, and equal, do."""
        if self.hold():
            return None
        failed = next((guard for guard in self.all if not guard.holds()), None)
        if failed is None:  # what is there is the same, in other objects
            self.all = tuple([_renewed(guard) for guard in self.all])
            self.hold = _checker(self.all)
            self.version += 1
        return failed


def _renewed(guard: Guard) -> Guard:
    """A guard that expects the very object which is there now."""
    return guard if guard.kind is not Kind.VALUE else Guard(
        guard.path, guard.kind, guard.path.get())


def _always() -> bool:
    return True


def _checker(guards: Sequence[Guard]) -> Callable[[], bool]:
    """One function of all guards, by identity: what leads to several is looked up once."""
    if not guards:
        return _always
    known: dict[str, Any] = {"__name__": __name__, "gone": GONE, "has_numbers": has_numbers}
    lines: list[str] = []
    names: dict[tuple[Any, ...], str] = {}

    def place(path: Path) -> str:
        if path.key not in names:
            name = f"v{len(names)}"
            if not path.steps:
                known[f"b{name}"] = path.base
                lines.append(f"{name} = b{name}{'()' if path.of else ''}")
            else:
                step, last = path.steps[-1]
                above = place(path.above())
                known[f"k{name}"] = last
                lines.append(f"{name} = {above}.{last}" if step is Step.ATTRIBUTE else
                             f"{name} = {above}[k{name}]")
            names[path.key] = name
        return names[path.key]

    for at, guard in enumerate(guards):
        name = place(guard.path)
        known[f"e{at}"] = guard.expected
        match guard.kind:
            case Kind.OBJECT if guard.weak:
                fails = f"{name} is None or {name} is not e{at}()"
            case Kind.OBJECT | Kind.VALUE:
                fails = f"{name} is not e{at}"
            case Kind.CLASS:
                fails = f"{name}.__class__ is not e{at}"
            case Kind.LENGTH:
                fails = f"len({name}) != e{at}"
            case Kind.KEYS:
                fails = f"(*{name},) != e{at}"
            case Kind.ITEMS:
                fails = f"{name} != e{at}"
            case Kind.ALIAS:
                fails = f"{name} is not {place(guard.expected)}"
            case Kind.CONTENT:
                fails = f"not has_numbers({name}, e{at})"
        lines.append(f"if {fails}: return False")
    text = "def hold():\n try:\n  " + "\n  ".join(lines) + (
        "\n except gone:\n  return False\n return True")
    exec(text, known)
    hold: Callable[[], bool] = known["hold"]
    return hold
