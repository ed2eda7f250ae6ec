"""Compiled functions, variables and errors that are copied, or go to other processes."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.loc import Loc

COPIES = (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)))
X = np.arange(3.0)


@weft.compile
def double(x: Any) -> Any:
    return x * 2


@weft.compile
def misfit(x: Any) -> Any:
    return x + np.ones(4)


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.w = weft.Variable(np.full(3, scale), name="copied/w", trainable=False)
        self.rng = weft.random.default_rng(7)
        self.step = double

    @weft.compile
    def apply(self, x: Any) -> Any:
        return x * self.w + self.scale


@pytest.mark.parametrize("made", COPIES)
def test_a_function_is_its_own_copy(made: Callable[[Any], Any]) -> None:
    assert made(double) is double and made({"f": double})["f"] is double
    assert made(Model.apply) is Model.apply


def test_what_has_no_name_cannot_be_pickled() -> None:
    inner = weft.compile(lambda x: x)
    assert copy.deepcopy(inner) is inner
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(inner)


@pytest.mark.parametrize("made", COPIES[1:])
def test_a_model_is_copied_with_its_variables(made: Callable[[Any], Any]) -> None:
    model = Model(3.0)
    model.rng.random(5)
    other = made(model)
    np.testing.assert_array_equal(other.rng.random(4), model.rng.random(4))
    model.w.assign(np.zeros(3))
    np.testing.assert_array_equal(model.apply(X), np.full(3, 3.0))
    np.testing.assert_array_equal(other.apply(X), X * 3 + 3)
    assert not other.w.trainable and other.w.name != model.w.name
    assert other.step is double
    method = made(model.apply)
    assert method.__self__ is not model
    np.testing.assert_array_equal(method(X), np.full(3, 3.0))


def test_a_copied_variable_has_the_name_where_it_is_free() -> None:
    data = pickle.dumps(weft.Variable(X, name="copied/free"))
    assert pickle.loads(data).name == "copied/free"


@pytest.mark.parametrize("made", COPIES)
def test_errors_are_copied_whole_but_for_the_columns(made: Callable[[Any], Any]) -> None:
    with pytest.raises(weft.Error) as caught:
        misfit(X)
    other = made(caught.value)
    assert type(other) is type(caught.value) and isinstance(other, ValueError)
    assert (other.code, other.message, other.hint, other.types, other.locs) == (
        caught.value.code, caught.value.message, caught.value.hint, caught.value.types,
        caught.value.locs)
    assert "x + np.ones(4)" in str(other)
    assert made(Loc("f.py", 3, "g")) == Loc("f.py", 3, "g")


PROGRAM = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
import numpy as np, weft

@weft.compile
def double(x):
    return x * 2

@weft.compile
def misfit(x):
    return x + np.ones(4)

if __name__ == "__main__":
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        print([found.sum() for found in pool.map(double, [np.ones(3), np.ones(4)])])
        try:
            pool.submit(misfit, np.ones(3)).result()
        except weft.Error as problem:
            print(problem)
"""


@pytest.mark.long
def test_other_processes_run_functions_and_return_errors(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(tmp_path / "work.py")], capture_output=True,
                          text=True, check=True, timeout=120)
    assert "6.0" in done.stdout and "8.0" in done.stdout
    assert "W101" in done.stdout and "work.py:12 in misfit" in done.stdout
