"""The command line: ``weft dump``, ``weft run``, ``weft export``, ``weft demo``.

    weft dump model.py:dense --args 'f32[32,784]' 'f32[784,10]' 'f32[10]' --stage fused
    weft run graph.ir
"""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.diagnose import Error, error
from ..ir.graph import Graph
from ..ir.interp import run_graph
from ..ir.parser import parse
from ..ir.printer import print_graph
from ..passes.manager import PassManager, parse_passes
from . import demo
from .compile import Function, compile, export
from .oracle import example_array
from .pipeline import STAGES, Options, Stages
from .program import make_program


def load_function(spec: str) -> Function[..., Any]:
    """The function that ``FILE.py:FUNCTION`` names; a plain one is compiled with defaults.

    Raises W301 when there is no such file or function.
    """
    file, _, name = spec.rpartition(":")
    path = Path(file)
    if not name or not path.is_file():
        raise error("W301", f"no file for {spec!r}", hint="write FILE.py:FUNCTION")
    module_spec = importlib.util.spec_from_file_location(path.stem, path)
    if module_spec is None or module_spec.loader is None:
        raise error("W301", f"{file} is no Python file")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))
    module_spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        functions = [key for key, value in vars(module).items() if callable(value)]
        close = difflib.get_close_matches(name, functions, 1)
        raise error("W301", f"{file} has no function {name!r}",
                    hint=f"did you mean {close[0]}?" if close else "")
    return found if isinstance(found, Function) else compile(found)


def dump(options: argparse.Namespace) -> None:
    """Print one stage of a function; with ``--diff``, how it differs from the stage before."""
    stages = load_function(options.function).lower(*options.args).stages
    if options.passes is not None:
        text = print_graph(PassManager(parse_passes(options.passes)).run(stages.traced))
        before = stages.text("trace")
    else:
        text = stages.text(options.stage)
        position = STAGES.index(options.stage)
        before = stages.text(STAGES[max(0, position - 1)]) if options.diff else ""
    if options.diff:
        text = "\n".join(difflib.unified_diff(
            before.splitlines(), text.splitlines(), "before", "after", lineterm=""))
    print(text)


def run(options: argparse.Namespace) -> None:
    """Compile and run every graph of a text file on seeded random arguments."""
    text = Path(options.file).read_text(encoding="utf-8")
    graphs = [item for item in parse(text) if isinstance(item, Graph)]
    if not graphs:
        raise error("W501", f"{options.file} holds no graph")
    sizes = {name: int(size) for name, _, size in (pair.partition("=") for pair in options.dim)}
    rng = np.random.default_rng(options.seed)
    for graph in graphs:
        arrays = [example_array(param.type, sizes, rng) for param in graph.params]
        if options.interpret:
            results: Sequence[Any] = run_graph(graph, arrays)
        else:
            results = make_program(Stages(graph, Options())).run(arrays)
        print(f"graph @{graph.name}")
        for value, result in zip(graph.results, results, strict=True):
            print(f"{value.name}: {value.type} =\n{result}")


def write(options: argparse.Namespace) -> None:
    """Export a function ahead of time."""
    folder = export(load_function(options.function), *options.args, path=options.output,
                    target=options.target)
    print(f"wrote {folder}")


def show(options: argparse.Namespace) -> None:
    """Train the digit classifier."""
    demo.run(Path(options.output), epochs=options.epochs, seed=options.seed)


def parser() -> argparse.ArgumentParser:
    """The options of every command."""
    root = argparse.ArgumentParser(prog="weft", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = root.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("dump", help="print a stage of a function")
    command.add_argument("function", metavar="FILE.py:FUNCTION")
    command.add_argument("--args", nargs="*", default=[], metavar="TYPE",
                         help="argument types, such as 'f32[b,784]'")
    command.add_argument("--stage", choices=STAGES, default="opt")
    command.add_argument("--diff", action="store_true", help="against the stage before")
    command.add_argument("--passes", metavar="PASSES",
                         help="run these passes on the trace, such as 'state,simplify{rounds=1}'")
    command.set_defaults(action=dump)

    command = commands.add_parser("run", help="compile and run a text file of graphs")
    command.add_argument("file", metavar="FILE.ir")
    command.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--interpret", action="store_true", help="use the reference interpreter")
    command.set_defaults(action=run)

    command = commands.add_parser("export", help="write a function as object file and C header")
    command.add_argument("function", metavar="FILE.py:FUNCTION")
    command.add_argument("--args", nargs="*", default=[], metavar="TYPE")
    command.add_argument("-o", "--output", required=True, metavar="FOLDER")
    command.add_argument("--target", metavar="CPU")
    command.set_defaults(action=write)

    command = commands.add_parser("demo", help="train a digit classifier on real images")
    command.add_argument("-o", "--output", default="weft-demo", metavar="FOLDER")
    command.add_argument("--epochs", type=int, default=200)
    command.add_argument("--seed", type=int, default=0)
    command.set_defaults(action=show)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; errors about the user's program are printed without a traceback."""
    options = parser().parse_args(argv)
    try:
        options.action(options)
    except Error as problem:
        print(problem, file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    return 0
