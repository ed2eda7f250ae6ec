"""The shape of the package: layers, imports, folders, tables, names, error codes."""

from __future__ import annotations

import ast
import doctest
import functools
import importlib
import inspect
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import weft
from weft.codegen.cpu.loops.scalars import LLVM_PRIMITIVES
from weft.codegen.gpu.scalars import TRITON_PRIMITIVES
from weft.ir.diagnose import CODES
from weft.ir.ops.op import Kind
from weft.ir.ops.table import OPS
from weft.ir.scalar.expand import EXPANSIONS
from weft.ir.scalar.primitives import PRIMITIVES, RAW

ROOT = Path(weft.__file__).parent
CHECKOUT = Path(__file__).parents[1]  # which is the package as well, where it is not installed
LAYERS = {
    "ir": {"ir"}, "passes": {"ir", "passes"}, "codegen": {"ir", "codegen"},
    "runtime": {"ir", "runtime"}, "frontend": {"ir", "passes", "codegen", "runtime", "frontend"},
    "": {"ir", "frontend", "runtime"},
}
SOURCES = sorted([*ROOT.glob("*.py"), *(path for layer in LAYERS if layer
                                        for path in (ROOT / layer).rglob("*.py"))])
# Where a third-party package may be used, besides NumPy and ml_dtypes; all but safetensors are
# too slow to import before they are needed.
HOMES = {"llvmlite": r"codegen/cpu/.*", "triton": r"codegen/gpu/.*", "networkx": r".*",
         "safetensors": r".*", "sklearn": r"frontend/cli/demo.*",
         "matplotlib": r"frontend/cli/pictures.*",
         "rich": r"frontend/.*", "cuda": r"runtime/.*",
         "tensorboardX": r"frontend/interchange/.*"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[ast.stmt, bool, str]]:
    """Each import of a file: the statement, whether it runs on import, and ``layer`` or package.

    An import for type checkers only, under ``if TYPE_CHECKING``, has to keep the layers as well.
    """
    tree = parsed(path)
    package = name_of(path).split("/")[:-1]

    def walk(node: ast.AST, runs: bool) -> Iterator[tuple[ast.stmt, bool, str]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield child, runs, alias.name
            elif isinstance(child, ast.ImportFrom):
                if child.level:
                    base = package[:len(package) - child.level + 1]
                    names = [*base, *(child.module or "").split(".")]
                    if child.module:
                        yield child, runs, "." + ".".join(name for name in names if name)
                    else:
                        for alias in child.names:
                            yield child, runs, "." + ".".join([*base, alias.name])
                else:
                    yield child, runs, child.module or ""
            inner = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            only_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            yield from walk(child, runs and not inner and not only_types)

    yield from walk(tree, True)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_layers(path: Path) -> None:
    """ir <- passes, codegen, runtime <- frontend; imports inside functions are no exception."""
    layer = path.relative_to(ROOT).parts[0] if path.parent != ROOT else ""
    for statement, _, target in imports(path):
        place = f"{name_of(path)}:{statement.lineno}"
        if target.startswith("."):
            wanted = target[1:].split(".")[0]
            assert wanted in LAYERS[layer], f"{place} imports {target}"
        else:
            assert target.split(".")[0] != "weft", f"{place}: imports of the package are relative"


@pytest.mark.parametrize("folder", ["schedule", "kernel"])
def test_what_is_chosen_asks_no_emitter(folder: str) -> None:
    """What kernels and their schedules are is in their text, which emitters read."""
    emitters = (".codegen.cpu", ".codegen.gpu", ".codegen.artifact")
    for path in (path for path in SOURCES if name_of(path).startswith(f"codegen/{folder}/")):
        found = [target for _, _, target in imports(path) if target.startswith(emitters)]
        assert not found, f"{name_of(path)} imports {found}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_third_party_imports(path: Path) -> None:
    allowed = {"numpy", "ml_dtypes", *sys.stdlib_module_names}
    for statement, runs, target in imports(path):
        place = f"{name_of(path)}:{statement.lineno}"
        package = target.split(".")[0]
        if target.startswith(".") or package in allowed:
            continue
        assert package in HOMES, f"{place} imports {package}"
        assert not name_of(path).startswith("ir/"), f"{place}: ir needs NumPy only"
        assert re.match(HOMES[package], name_of(path)), f"{place} imports {package}"
        assert not runs or package == "safetensors", f"{place}: import {package} on first use"


def dotted(path: Path) -> str:
    """The name of a module, without weft; '' for weft itself."""
    return ".".join(path.with_suffix("").parts).removesuffix("__init__").strip(".")


MODULES = {dotted(path.relative_to(ROOT)): path for path in SOURCES}


def needs(name: str, path: Path, modules: Mapping[str, Path]) -> set[str]:
    """The modules that a file imports: where it runs, in functions, or for type checkers only.

    With a module come the packages that it is in, but for those that the file is in itself.
    """
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue  # what else there is, is not of the package: see test_layers
        base = package[:len(package) - node.level + 1]
        target = ".".join([*base, *(node.module or "").split(".")]).strip(".")
        for alias in node.names:
            inside = f"{target}.{alias.name}".strip(".")
            found.add(inside if inside in modules else target)
    around = {".".join(parts[:end]) for parts in (target.split(".") for target in found)
              for end in range(1, len(parts))}
    found |= {target for target in around if not name.startswith(f"{target}.")}
    return {target for target in found if target in modules and target != name}


def circle(modules: Mapping[str, Path]) -> list[str]:
    """The modules of an import circle, each imported by the next; empty if there is none."""
    try:
        TopologicalSorter({name: sorted(needs(name, path, modules))
                           for name, path in modules.items()}).prepare()
    except CycleError as problem:
        names: list[str] = problem.args[1]
        return names
    return []


@pytest.mark.long
def test_no_import_circles() -> None:
    """All imports count, those in functions and under ``if TYPE_CHECKING`` too."""
    assert circle(MODULES) == []


@pytest.mark.parametrize(("files", "found"), [
    ({"a.py": "from .b import x", "b.py": "from . import a"}, {"a", "b"}),
    ({"a.py": "def f():\n    from .p.b import x",
      "p/b.py": "if TYPE_CHECKING:\n    from .. import a"}, {"a", "p.b"}),
    ({"p/__init__.py": "from .b import x", "p/b.py": "from .c import x", "p/c.py": ""}, set()),
    ({"p/__init__.py": "from .b import x", "p/b.py": "from .. import a",
      "a.py": "from .p.c import x", "p/c.py": ""}, {"p", "p.b", "a"}),
    ({"p/__init__.py": "from .b import x", "p/b.py": "from . import y"}, {"p", "p.b"}),
    ({"__init__.py": "from .a import x", "a.py": "from . import x"}, {"", "a"}),
])
def test_circles_are_found(files: dict[str, str], found: set[str], tmp_path: Path) -> None:
    modules = {}
    for name, code in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
        modules[dotted(Path(name))] = path
    assert set(circle(modules)) == found


def test_the_packages_are_those_of_pyproject() -> None:
    """What is not listed is not installed, and what is not in SOURCES is not tested here."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = settings["tool"]["setuptools"]["packages"]
    folders = {path.parent for layer in LAYERS if layer
               for path in (CHECKOUT / layer).rglob("*.py")}
    assert sorted(listed) == sorted(["weft", *(
        ".".join(("weft", *folder.relative_to(CHECKOUT).parts)) for folder in folders)])
    assert all((folder / "__init__.py").exists() for folder in folders)
    tested = {path.parent.relative_to(ROOT) for path in SOURCES}
    assert tested == {folder.relative_to(CHECKOUT) for folder in (CHECKOUT, *folders)}


def test_one_module_solves_for_sizes() -> None:
    """Symbols follow from sizes in ``ir/indices/dims``, be the sizes numbers or yet to be told."""
    users = {name_of(path) for path in SOURCES
             if re.search(r"\bunclamped\b", path.read_text(encoding="utf-8"))}
    assert users == {"ir/indices/dims.py", "ir/indices/affine.py"}


def changes(path: Path) -> Iterator[str]:
    """Module globals that functions of the module change."""
    tree = parsed(path)
    targets = [target for statement in tree.body
               if isinstance(statement, (ast.Assign, ast.AnnAssign))
               for target in (statement.targets if isinstance(statement, ast.Assign)
                              else [statement.target])]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names
        method = isinstance(node, ast.Attribute) and node.attr in (
            "append", "add", "update", "setdefault", "pop", "clear", "extend", "insert")
        stored = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
        if (method or stored) and isinstance(node.value, ast.Name):  # type: ignore[attr-defined]
            name = node.value.id  # type: ignore[attr-defined]
            if name in names:
                yield name


def test_no_mutable_module_globals() -> None:
    """But for registries: rows, filled while modules are imported, and the names of functions that
    the program declared."""
    found = {(name_of(path), name) for path in SOURCES for name in changes(path)}
    assert found <= {("ir/scalar/transcendental.py", "EXPANSIONS"),
                     ("frontend/numpy_api/registry.py", "_ROWS"),
                     ("frontend/numpy_api/registry.py", "_MEANINGS"), ("ir/host.py", "_DECLARED")}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_module_says_what_it_is(path: Path) -> None:
    doc = ast.get_docstring(parsed(path))
    assert doc, f"{name_of(path)} has no docstring"


def python(code: str) -> str:
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], text=True,
                         capture_output=True, check=True)
    assert run.stderr == ""
    return run.stdout


def test_import_is_quiet_and_light() -> None:
    heavy = ("llvmlite", "triton", "networkx", "sklearn", "matplotlib", "rich", "torch", "ray",
             "scipy", "hypothesis", "multiprocessing", "asyncio", "tensorboardX")
    code = f"""
import os, sys, threading
import numpy
tasks = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
before = set(sys.modules)
import weft
loaded = [name for name in {heavy!r} if name in sys.modules and name not in before]
after = len(os.listdir("/proc/self/task")) if tasks else 0
assert not loaded, loaded
assert threading.active_count() == 1 and after == tasks
"""
    assert python(code) == ""


def inside(thing: Any, module: ModuleType) -> bool:
    """Whether something is of a module, or of one in its folder."""
    home = getattr(thing, "__module__", "") or getattr(thing, "__name__", "")
    return home == module.__name__ or home.startswith(f"{module.__name__}.")


@pytest.mark.parametrize("name", ["nn", "optim", "random", "special", "tree"])
def test_public_modules_can_be_imported(name: str) -> None:
    module = getattr(weft, name)
    assert importlib.import_module(f"weft.{name}") is module
    assert importlib.import_module(module.__name__) is module
    assert python(f"import weft.{name}; print(weft.{name}.__name__)") == f"{module.__name__}\n"
    own = [thing for label, thing in vars(module).items() if not label.startswith("_")
           and callable(thing) and inside(thing, module)]
    # What goes by a module's own name goes on to work.
    assert own
    for thing in own:
        assert pickle.loads(pickle.dumps(thing)) is thing
        assert inside(inspect.getmodule(thing), module)
        assert inspect.getsource(thing)
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(("code", "printed"), [
    ("from weft.nn import relu; print(relu(-1.0))", "0.0"),
    ("from weft.nn.init import fans; print(fans((3, 4)))", "(3, 4)"),
    ("import weft.random as r; print(r.default_rng(0).normal(size=3).shape)", "(3,)"),
    ("import weft.random, random; print(random is weft.random)", "False"),
    ("from weft.tree import map; print(map(abs, [-1]))", "[1]"),
])
def test_public_modules_in_a_fresh_process(code: str, printed: str) -> None:
    assert python(code) == f"{printed}\n"


def test_no_file_hides_the_standard_library() -> None:
    """From who runs Python in the checkout, whose root is then on the path."""
    files = {path.stem for path in CHECKOUT.glob("*.py*")} | {
        path.parent.name for path in CHECKOUT.glob("*/__init__.py")}
    assert files & sys.stdlib_module_names == set()


def test_a_function_is_compiled_without_the_gpu_packages() -> None:
    code = """
import sys
import numpy, weft
weft.compile(lambda x: (x @ x).sum())(numpy.ones((3, 3)))
heavy = ("triton", "torch", "rich", "matplotlib", "sklearn", "networkx")
print([name for name in heavy if name in sys.modules])
"""
    assert python(code) == "[]\n"


def test_the_back_ends_know_the_same_primitives() -> None:
    base = {name for name, primitive in PRIMITIVES.items() if not primitive.composite} | set(RAW)
    assert set(LLVM_PRIMITIVES) == base
    assert set(TRITON_PRIMITIVES) == base
    assert set(EXPANSIONS) >= {name for name, p in PRIMITIVES.items() if p.composite}


def test_every_op_that_computes_has_a_schedule() -> None:
    lowered = {Kind.MAP, Kind.VIEW, Kind.REDUCE, Kind.CONTRACT, Kind.GATHER, Kind.SCATTER,
               Kind.HOST, Kind.SCAN, Kind.SORT, Kind.COMPRESS, Kind.SEARCH}
    resolved = {Kind.EFFECT, Kind.RESOURCE, Kind.EXTENT, Kind.REGION, Kind.COMPLEX, Kind.ALIAS}
    assert {op.kind for op in OPS.values()} <= lowered | resolved


def public() -> Iterator[tuple[str, Any]]:
    """What ``weft.__all__`` names, with the methods of its classes and names of its modules."""
    for name in weft.__all__:
        thing = getattr(weft, name)
        yield name, thing
        own = vars(thing) if isinstance(thing, (type, ModuleType)) else {}
        for label, part in own.items():
            function = inspect.unwrap(part) if callable(part) else part
            if label.startswith("_") or not callable(part):
                continue
            ours = getattr(function, "__module__", "").startswith("weft")
            if isinstance(thing, type) or (ours and inside(part, thing)):
                yield f"{name}.{label}", part


def test_public_names_are_documented_and_sorted() -> None:
    assert list(weft.__all__) == sorted(weft.__all__, key=lambda name: (not name.isupper(),
                                                                        name.islower(), name))
    undocumented = [name for name, thing in public() if callable(thing) and not thing.__doc__]
    assert undocumented == []


def test_error_codes_are_those_of_the_table() -> None:
    """Each code of the table can be raised, and each code that is raised is in the table."""
    raised: dict[str, str] = {}
    for path in SOURCES:
        if name_of(path) == "ir/diagnose.py":
            continue
        tree = parsed(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(
                    r"W\d{3}", node.value):
                raised.setdefault(node.value, f"{name_of(path)}:{node.lineno}")
    unknown = {code: place for code, place in raised.items() if code not in CODES}
    assert unknown == {}
    assert set(CODES) - set(raised) == set()


def asked_by_name(path: Path) -> Iterator[int]:
    """Lines that compare the name of an op with a text: rows say what there is to know of ops."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Compare) and any(
                isinstance(side, ast.Attribute) and side.attr == "name"
                and isinstance(side.value, (ast.Attribute, ast.Name))
                and getattr(side.value, "attr", getattr(side.value, "id", "")) == "op"
                for side in (node.left, *node.comparators)):
            yield node.lineno


def test_no_op_is_asked_for_by_its_name() -> None:
    """But by the rewriter, whose rules are patterns of names."""
    found = {name_of(path) for path in SOURCES if list(asked_by_name(path))}
    assert found == {"passes/simplify/rewrite.py"}
