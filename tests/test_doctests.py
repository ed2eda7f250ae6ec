"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.runtime.threads import thread_limit

ROOT = Path(weft.__file__).parent
MODULES = sorted(
    ".".join(("weft", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for pattern in ("*.py", *(f"{layer}/**/*.py" for layer in (
        "ir", "passes", "codegen", "runtime", "frontend")))
    for path in ROOT.glob(pattern) if ">>> " in path.read_text(encoding="utf-8"))
# What a user meets first has an example that can be tried.
SHOWN = ("weft.frontend.face.compile", "weft.frontend.session.session",
         "weft.frontend.transforms.gradients", "weft.runtime.threads")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    limit = thread_limit()
    try:
        with np.printoptions(legacy=False):
            # Under the module's own name, the example would count as Weft's code, not a user's.
            failures, count = doctest.testmod(module, extraglobs={"__name__": "__main__"})
    finally:
        weft.set_num_threads(limit)
    assert failures == 0
    assert count > 0


def test_the_main_interface_has_examples() -> None:
    assert set(SHOWN) <= set(MODULES)
    for thing in (weft.compile, weft.grad, weft.value_and_grad, weft.Session.run,
                  weft.set_num_threads):
        assert ">>> " in (inspect.getdoc(thing) or ""), thing
