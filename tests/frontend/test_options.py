"""Options of the wrong type: an error with a sentence, and nothing has changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.runtime.threads import thread_limit

X = np.ones(2)
WRONG: tuple[Any, ...] = ("a", b"x", -1, 1.5, float("nan"), [1], {"a": 1}, np.ones(2), 1j, object(),
                          len, -2**70)
# What Python says of its own objects, of which users know nothing.
_INTERNAL = re.compile(r"not supported between|ambiguous|object is not iterable|has no attribute|"
                       r"only integer scalar|descriptor|subscriptable|not callable")


def step(**options: Any) -> Any:
    return weft.compile(**options)(lambda x, n=2: x * n)(X)


def session(**options: Any) -> Any:
    g = weft.Graph()
    with g.as_default():
        y = weft.Variable(X, name="y") * 2
    run = {name: options.pop(name) for name in ("timeout", "trace") if name in options}
    return weft.Session(g, **options).run(y, **run)


def queue(**options: Any) -> Any:
    return weft.FIFOQueue(**{"capacity": 3, "specs": "f32[]", **options})


def padding(**options: Any) -> Any:
    return weft.PaddingFIFOQueue(**{"capacity": 3, "specs": "f32[]", **options})


def shuffled(**options: Any) -> Any:
    return weft.RandomShuffleQueue(
        **{"capacity": 3, "min_after_dequeue": 1, "specs": "f32[]", **options})


def saver(**options: Any) -> Any:
    return weft.Saver("nowhere", {"x": X}, **options)


def runner(**options: Any) -> Any:
    return weft.QueueRunner(queue(), lambda: None, **options)


def graph(**options: Any) -> Any:
    with weft.Graph(**{name: options[name] for name in ("name",) if name in options}).as_default():
        return weft.placeholder(**{"dtype": "f32", **options})


def adam(**options: Any) -> Any:
    return weft.optim.Adam(**{"lr": 0.1, **options})


def sgd(**options: Any) -> Any:
    return weft.optim.SGD(**{"lr": 0.1, **options})


def piecewise(**options: Any) -> Any:
    return weft.optim.PiecewiseConstant(**{"boundaries": (1,), "values": (1.0, 2.0), **options})


def threads(count: Any) -> None:
    weft.set_num_threads(count)


def _is_positive(x: Any) -> bool:
    return isinstance(x, float | np.ndarray) and bool(np.all(x > 0))


# The options, and which of the wrong values are right for them.
OPTIONS: list[tuple[Callable[..., Any], str, Callable[[Any], bool]]] = [
    (step, "static_argnames", lambda x: False), (step, "dynamic", lambda x: False),
    (step, "donate_argnames", lambda x: False), (step, "check", lambda x: False),
    (step, "device", lambda x: False), (step, "threads", lambda x: False),
    (step, "target", lambda x: False), (step, "opt", lambda x: False),
    (step, "verify", lambda x: False), (step, "disable", lambda x: False),
    (step, "on_recompile", lambda x: False), (step, "on_unsupported", lambda x: False),
    (step, "progress", lambda x: x is len),
    (session, "devices", lambda x: False), (session, "threads", lambda x: False),
    (session, "target", lambda x: False), (session, "opt", lambda x: False),
    (session, "transfer", lambda x: False), (session, "updates", lambda x: False),
    (session, "soft_placement", lambda x: False),
    (session, "timeout", lambda x: isinstance(x, float) and x > 0),
    (session, "trace", lambda x: False),
    (queue, "capacity", lambda x: False), (queue, "specs", lambda x: False),
    (queue, "name", lambda x: isinstance(x, str)), (padding, "capacity", lambda x: False),
    (shuffled, "capacity", lambda x: False), (shuffled, "min_after_dequeue", lambda x: False),
    (saver, "every", lambda x: isinstance(x, float) and x > 0), (saver, "keep", lambda x: False),
    (saver, "step", lambda x: False), (runner, "threads", lambda x: False),
    (graph, "name", lambda x: isinstance(x, str)), (graph, "dtype", lambda x: False),
    (graph, "shape", lambda x: isinstance(x, list | np.ndarray)),
    (adam, "lr", lambda x: callable(x) or _is_positive(x)), (adam, "beta1", lambda x: False),
    (adam, "clip", _is_positive),
    (sgd, "nesterov", lambda x: False), (piecewise, "boundaries", lambda x: isinstance(x, list)),
    (piecewise, "values", lambda x: isinstance(x, np.ndarray)), (threads, "count", lambda x: False),
]


@pytest.mark.parametrize(("make", "option", "right"), OPTIONS,
                         ids=lambda x: x if isinstance(x, str) else getattr(x, "__name__", "x"))
def test_wrong_values_are_refused(
    make: Callable[..., Any], option: str, right: Callable[[Any], bool],
) -> None:
    before = thread_limit()
    for value in WRONG:
        if right(value):
            continue
        with pytest.raises((weft.Error, TypeError, ValueError)) as caught:
            make(**{option: value})
        text = str(caught.value)
        assert not _INTERNAL.search(text), (value, text)
    assert thread_limit() == before


@pytest.mark.parametrize("count", ["a", 1.5, True, None, [1], 0, -1, 2**70, float("inf")])
def test_a_wrong_number_of_threads_changes_nothing(count: Any) -> None:
    before = thread_limit()
    with pytest.raises((TypeError, ValueError), match="number of threads is"):
        weft.set_num_threads(count)
    assert thread_limit() == before


@pytest.mark.parametrize("seed", ["a", 0.5, -1, 1j, {"a": 1}, object()])
def test_a_wrong_seed_is_refused(seed: Any) -> None:
    with pytest.raises(weft.Error, match="W112"):
        weft.random.default_rng(seed)


def test_sizes_and_bounds_of_draws_are_checked() -> None:
    rng, fresh = weft.random.default_rng(0), weft.random.default_rng(0)
    for wrong in (lambda: rng.normal(size=2**70), lambda: rng.random(2**70),
                  lambda: rng.integers(5, np.nan), lambda: rng.integers(np.inf),
                  lambda: rng.spawn(-1), lambda: rng.spawn(2**70)):
        with pytest.raises(weft.Error):
            wrong()
    assert rng.random() == fresh.random()  # nothing was drawn


def test_gradients_are_clipped_to_a_number() -> None:
    for clip in (weft.optim.clip_by_global_norm, weft.optim.clip_by_value):
        for wrong in ("a", None, [1], -1.0, float("nan")):
            with pytest.raises(weft.Error, match="limit"):
                clip({"w": X}, wrong)
    assert weft.optim.clip_by_global_norm({}, 1.0) == {}


def test_export_needs_a_function(tmp_path: Path) -> None:
    for wrong in (None, 3, "f", X):
        with pytest.raises(weft.Error, match="W112: what is exported is a function"):
            weft.export(wrong, path=tmp_path / "m")
    assert not (tmp_path / "m").exists()
