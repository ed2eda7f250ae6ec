"""``weft demo NAME``: the models of the folder ``examples/models`` of a checkout."""

from __future__ import annotations

import difflib
import importlib.util
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from . import pictures

FOLDER = Path(__file__).parents[2] / "examples" / "models"


def names() -> list[str]:
    """The models there are; none where Weft is installed without its examples."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def load(name: str) -> ModuleType:
    """The module of a model, whose ``main(size)`` trains it. Raises LookupError."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), 1)
        raise LookupError(f"no model {name!r} in {FOLDER}" + (
            f": did you mean {near[0]}?" if near else f": there are {', '.join(names())}"
            if names() else ": run it in a checkout of Weft"))
    spec = importlib.util.spec_from_file_location(f"weft_example_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as problem:
        raise LookupError(f"{name} needs {problem.name}: install the examples, "
                          "pip install 'weft[examples]'") from problem
    return module


def run(name: str, size: str, folder: Path) -> None:
    """Train a model, and draw what it returns into ``folder``. Raises LookupError."""
    result = load(name).main(size)
    if find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed")
        return
    path = folder / f"{name}.png"
    pictures.draw(result, path, name.replace("_", " "))
    print(f"wrote {path}")
