"""Functions of all kinds that a second process is to call without the engine.

    python ready_cases.py      prints for each: its name, whether the engine was loaded, results
"""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
from objects import Body, Point

import weft

SCALE = 2.0
TABLE = {"gain": 3.0, "offset": [1.0, 2.0]}
WEIGHTS = np.arange(12.0).reshape(3, 4)
RNG = weft.random.default_rng(3)
COUNT = weft.Variable(np.zeros(3), name="count")


class Mode(enum.Enum):
    SUM = 1
    MEAN = 2


@dataclasses.dataclass
class Moving(Body):
    def energy(self) -> Any:
        return 0.5 * (self.speed ** 2).sum() * SCALE


class Net:
    rate = 0.5

    def __init__(self) -> None:
        self.layers = [np.full((3, 3), 0.5), np.eye(3)]

    def __call__(self, x: Any) -> Any:
        for w in self.layers:
            x = activated(x @ w) * self.rate
        return x


NET = Net()


def activated(x: Any) -> Any:
    return np.maximum(x, 0.0)


def helped(x: Any) -> Any:
    return np.tanh(x) * SCALE + TABLE["gain"]


@weft.compile
def plain(x: Any) -> Any:
    return helped(x).sum() + math.pi


@weft.compile
def nest(params: Any, x: Any, *, power: float = 2.0) -> Any:
    h = x @ params["w"] + params["b"]
    return {"sum": (h ** power).sum(), "all": (h, [h.max(), None]), "name": "nest"}


@weft.compile
def tuples(p: Any) -> Any:
    return Point(p.x + p.y, p.x * 2)


@weft.compile
def dataclass(b: Any, dt: Any) -> Any:
    return Moving(b.place + b.speed * dt, b.speed, b.kind), b.energy()


@weft.compile
def namespace(n: Any) -> Any:
    return SimpleNamespace(a=n.a * 2, b=n.b)


@weft.compile(static_argnames=("mode", "n"))
def static(x: Any, mode: Any, n: int) -> Any:
    for _ in range(n):
        x = x + 1
    return x.sum() if mode is Mode.SUM else x.mean()


@weft.compile
def flagged(x: Any, double: bool) -> Any:
    if double:
        x = x * 2
    return x.sum()


@weft.compile
def sized(n: int) -> Any:
    return np.arange(n) * 1.5


@weft.compile(dynamic={"x": {0: "n"}})
def dynamic(x: Any) -> Any:
    return x.sum(axis=0), np.sort(x[:, 0])


@weft.compile
def closed(x: Any) -> Any:
    return WEIGHTS @ x


@weft.compile
def network(x: Any) -> Any:
    return NET(x)


@weft.compile
def counted(x: Any) -> Any:
    COUNT.assign(COUNT + x)
    return COUNT * 2


@weft.compile
def written(x: Any, g: Any) -> Any:
    x += g
    x[0] = 7.0
    return x.sum()


@weft.compile
def returned(x: Any, y: Any) -> Any:
    return y, x + 1


@weft.compile
def checked(x: Any, at: Any) -> Any:
    return x[at]


@weft.compile
def drawn(x: Any) -> Any:
    return RNG.normal(size=3) * x


@weft.compile
def no_arrays() -> Any:
    return np.arange(4.0).sum()


def made(scale: float) -> Any:
    @weft.compile
    def inner(x: Any) -> Any:
        return x * scale

    return inner


loss_gradient = weft.grad(lambda w, x: ((x @ w) ** 2).sum())


def cases() -> list[tuple[str, Any]]:
    """Each a name and a call."""
    x, params = np.arange(6.0).reshape(2, 3), {"w": np.ones((3, 4)), "b": np.zeros(4)}
    place = np.arange(3.0)
    return [
        ("plain", lambda: plain(x)),
        ("float32", lambda: plain(x.astype(np.float32))),
        ("a number", lambda: plain(3)),
        ("a scalar", lambda: plain(np.float32(3))),
        ("nest", lambda: nest(params, x)),
        ("keyword", lambda: nest(params, x, power=3.0)),
        ("tuples", lambda: tuples(Point(place, 2.0))),
        ("dataclass", lambda: dataclass(Moving(place, place + 1), 0.1)),
        ("namespace", lambda: namespace(SimpleNamespace(a=place, b=1.5))),
        ("static", lambda: static(x, Mode.SUM, 3)),
        ("another static", lambda: static(x, Mode.MEAN, n=2)),
        ("flagged", lambda: flagged(x, True)),
        ("flagged not", lambda: flagged(x, False)),
        ("sized", lambda: sized(5)),
        ("another size", lambda: sized(6)),
        ("dynamic", lambda: dynamic(x)),
        ("another dim", lambda: dynamic(np.ones((7, 3)))),
        ("closed", lambda: closed(np.arange(4.0))),
        ("network", lambda: network(x)),
        ("counted", lambda: counted(place)),
        ("counted again", lambda: counted(place)),
        ("written", lambda: (written(place, np.ones(3)), place.copy())),
        ("returned", lambda: returned(x, place)[0] is place),
        ("checked", lambda: checked(x, np.array([1, 0]))),
        ("no arrays", no_arrays),
        ("drawn", lambda: (drawn(place), drawn(place))),
        ("made", lambda: made(2.0)(x)),
        ("made again", lambda: made(3.0)(x)),
        ("gradient", lambda: loss_gradient(np.ones(3), x)),
    ]


if __name__ == "__main__":
    warnings.simplefilter("ignore", weft.RecompileWarning)
    for name, call in cases():
        result = call()
        engine = "weft.frontend.engine.programs" in sys.modules
        print(f"{name}\t{engine}\t{result!r}".replace("\n", " "))
