"""What is loaded when Weft is imported, and what its names mean then."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from weft.frontend.face.names import MODULES, NAMES

HEAVY = ("llvmlite", "networkx", "ml_dtypes", "dataclasses", "decimal", "weft.frontend.engine",
         "weft.frontend.tracing", "weft.passes", "weft.codegen", "weft.ir.types")


def python(program: str) -> str:
    """What a process of its own prints."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=True, timeout=120).stdout


def test_importing_loads_the_face_alone() -> None:
    loaded = python("import numpy, sys, threading; before = set(sys.modules)\n"
                    "import weft\n"
                    "print(*(set(sys.modules) - before)); print(threading.active_count())")
    modules, threads = loaded.splitlines()
    assert not [name for name in modules.split() if name.startswith(HEAVY)]
    assert len(modules.split()) < 20 and threads == "1"


def test_a_decorated_function_loads_no_engine() -> None:
    program = ("import numpy, sys, weft\n"
               "@weft.compile\n"
               "def f(x): return x + 1\n"
               "g = weft.compile(static_argnames='n', dynamic={'x': {0: 'b'}})(lambda x, n: x)\n"
               "print(f, f.__name__, g.py_func.__name__, [n for n in sys.modules if n in (\n"
               "    'llvmlite', 'ml_dtypes', 'weft.frontend.engine.programs', 'weft.ir.types')])")
    assert python(program).rstrip() == "<weft.compile of f> f <lambda> []"


def test_every_public_name_is_where_the_table_says() -> None:
    assert list(NAMES) == weft.__all__
    assert set(weft.__all__) <= set(dir(weft))
    for name, place in NAMES.items():
        module, _, attribute = place.partition(":")
        found = importlib.import_module(f"weft.{module}")
        assert getattr(weft, name) is (getattr(found, attribute) if attribute else found), name


def test_type_checkers_are_told_the_same_names() -> None:
    """Those of the table, at the same places."""
    text = Path(weft.__file__).read_text(encoding="utf-8")
    block = next(node for node in ast.parse(text).body if isinstance(node, ast.If))
    told = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names:
            place = f"{node.module}:{alias.name}"
            told[alias.asname] = place if NAMES[alias.asname or ""] == place else (
                place.replace(":", "."))
    assert told == dict(NAMES)


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_imported_by_their_public_names(name: str) -> None:
    assert python(f"import weft.{name} as found, weft\n"
                  f"print(found is weft.{name}, found.__name__)").split() == [
        "True", f"weft.{MODULES[name]}"]


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"weft\.nothing"):
        importlib.import_module("weft.nothing")
    with pytest.raises(AttributeError, match=r"use weft\.compile"):
        _ = weft.jit  # type: ignore[attr-defined]


def test_a_star_gives_all_names() -> None:
    assert python("import weft; found = set(weft.__all__); names = {}\n"
                  "exec('from weft import *', names); print(found <= set(names))") == "True\n"


def test_threads_that_call_first_at_once_get_one_set_of_programs() -> None:
    program = ("import numpy as np, threading, weft\n"
               "f = weft.compile(lambda x: x * 2)\n"
               "start, found = threading.Barrier(8), []\n"
               "def run():\n"
               "    start.wait(); found.append(f(np.ones(3)).sum())\n"
               "threads = [threading.Thread(target=run) for _ in range(8)]\n"
               "[t.start() for t in threads]; [t.join() for t in threads]\n"
               "print(found == [6.0] * 8, f.cache_info().specialisations)")
    assert python(program) == "True 1\n"
