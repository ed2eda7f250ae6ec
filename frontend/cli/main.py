"""The command line: ``weft dump``, ``viz``, ``explain``, ``run``, ``profile``, ``export``, ``demo``

    weft dump model.py:dense --args 'f32[32,784]' 'f32[784,10]' 'f32[10]' --stage fused
    weft dump model.py:predict --args '{"w1": "f32[1,64]", "b1": "f32[64]"}' 'f32[b,1]'
    weft viz model.py:dense --args 'f32[b,784]' 'f32[784,10]' 'f32[10]' --dim b=64 -o dense.html
    weft run graph.ir
    weft run model.ir --feed x=x.npy --fetch loss --fetch minimize --save
    weft profile -o trace.json train.py --epochs 3

Exit status 1: the program that is compiled has an error. 2: the command has one. Either is said
in a few lines on stderr; ``WEFT_TRACEBACK=full`` shows where the user's own code raised what.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib.util
import inspect
import json
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ...ir.diagnose import Error, UnwritableError
from ...ir.graph import Graph as IRGraph
from ...ir.plans.plan import Plan
from ...ir.record import replace
from ...ir.text.partition import parse_partition
from ...ir.text.printer import print_graph
from ...ir.types import TensorType, parse_type
from ...ir.verify.graph import symbols_in
from ...ir.verify.verifier import read
from ...passes.manager import PassManager, parse_passes
from .. import cache
from ..engine.building.devices import device_names
from ..engine.building.flow import FlowStages, step_stages
from ..engine.building.pipeline import STAGES, Stages
from ..face.compile import compile
from ..face.function import Function
from ..face.source import is_internal
from ..interchange.ahead import export
from ..rewriting.calls.reading import calls_only
from ..session.costs import load_costs
from ..session.graph import Graph
from ..session.saved import tensors_of, with_tensors
from . import demo, models
from . import options as options_of
from .parted import show_partition
from .profiled import run_profiled
from .text import graph_page, run_step, show_run, types_of

_COMMENTS = r"\s*(//.*\s+)*"


class UsageError(Exception):
    """A command that cannot be carried out as it is written; the message is one line."""


def load_function(spec: str) -> Function[..., Any]:
    """The function that ``FILE.py:FUNCTION`` names; a plain one is compiled with defaults.

    The file becomes a module of a name of its own, whatever the file is called, and its folder
    comes last in the path: json.py takes nothing from who imports json. Raises UsageError when
    there is no such file or function, and what the file raises.
    """
    file, _, name = spec.rpartition(":")
    if not name or not file:
        raise UsageError(f"{spec} names no function: write FILE.py:FUNCTION")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file}")
    module_name = f"weft_file_{path.stem}"
    module_spec = importlib.util.spec_from_file_location(module_name, path)
    if module_spec is None or module_spec.loader is None:
        raise UsageError(f"{file} is no Python file: write FILE.py:FUNCTION")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[module_name] = module  # where dataclasses and pickle look for it
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        module_spec.loader.exec_module(module)
    except SyntaxError as problem:
        problem.filename = problem.filename or file  # not known of a file that is no text at all
        raise
    except SystemExit as problem:
        raise UsageError(f"{file} exits while it is imported (SystemExit: {problem}); put what it "
                         "runs below: if __name__ == '__main__'") from None
    found = getattr(module, name, None)
    if not callable(found):
        functions = [key for key, value in vars(module).items() if callable(value)]
        close = difflib.get_close_matches(name, functions, 1)
        raise UsageError(f"{file} has no function {name!r}"
                         + (f"; did you mean {close[0]}?" if close else ""))
    return found if isinstance(found, Function) else compile(found)


def read_argument(text: str) -> Any:
    """One of ``--args``: a type, a nest of types as a Python or JSON literal, or a number.

    >>> read_argument('{"w": "f32[1,64]", "parts": ["f32[2]", null]}')
    {'w': 'f32[1,64]', 'parts': ['f32[2]', None]}
    >>> read_argument("f32[b,784]"), read_argument("0.5")
    ('f32[b,784]', 0.5)
    """
    value = _literal(text)
    for found in _texts(value):
        if "[" in found:
            try:
                parse_type(found)
            except ValueError as problem:
                raise UsageError(f"--args: {problem}") from None
    return value


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if text.lstrip()[:1] in ("{", "(", "["):
            raise UsageError(f"--args: {text} is no nest of types; write such as "
                             """'{"w": "f32[1,64]", "b": "f32[64]"}'""") from None
    return text


def _texts(nest: Any) -> Iterator[str]:
    if isinstance(nest, str):
        yield nest
    elif isinstance(nest, (dict, list, tuple)):
        for item in nest.values() if isinstance(nest, dict) else nest:
            yield from _texts(item)


def read_arguments(function: Function[..., Any], texts: Sequence[str]) -> list[Any]:
    """``--args`` for a function. Raises UsageError where they are too few or too many."""
    args = [read_argument(text) for text in texts]
    try:
        parameters = inspect.signature(function.py_func)
    except (TypeError, ValueError):  # a built-in function does not tell
        return args
    try:
        parameters.bind(*args)
    except TypeError:
        name = getattr(function.py_func, "__name__", "the function")
        raise UsageError(
            f"--args: {name}{parameters} does not take {len(args)} arguments") from None
    return args


def dump(options: argparse.Namespace) -> None:
    """Print one stage of a function; with ``--diff``, how it differs from the stage before."""
    passes = None
    _of_use(options, "-o" if options.output is not None else "--passes" if options.passes else "", {
        "-o": ("stage", "diff", "devices", "passes"), "--passes": ("stage", "devices")})
    if options.passes is not None:
        try:
            passes = parse_passes(options.passes)
        except Error as problem:
            raise UsageError(f"--passes: {problem.message}; {problem.hint}") from None
    function = load_function(options.function)
    lowered = function.lower(*read_arguments(function, options.args))
    if options.output is not None:
        Graph.of(lowered.traced).save(options.output)
        print(f"wrote {options.output} and {tensors_of(options.output)}")
        return
    stages = _on_devices(lowered.stages, options.devices)
    if passes is not None:
        text = print_graph(PassManager(passes).run(stages.traced))
        before = stages.text("trace")
    else:
        text = _stage(stages, options.stage)
        position = STAGES.index(options.stage)
        before = _stage(stages, STAGES[max(0, position - 1)]) if options.diff else ""
    if options.diff:
        text = "\n".join(difflib.unified_diff(
            before.splitlines(), text.splitlines(), "before", "after", lineterm=""))
    print(text)


def _on_devices(stages: Stages | FlowStages, names: str | None) -> Stages | FlowStages:
    """The stages, cut for ``--devices``."""
    if not names or not isinstance(stages, Stages):
        return stages
    devices = device_names(names.split(","))
    return step_stages(replace(stages, options=replace(stages.options, devices=devices)))


def view(options: argparse.Namespace) -> None:
    """Write a page that shows a function, or a graph of a file."""
    if options.program.endswith(".ir"):
        graph = next((item for item in read(_text(options.program))
                      if isinstance(item, IRGraph)), None)
        if graph is None:
            raise UsageError(f"{options.program} holds no graph; weft dump -o writes one")
        sizes = _sizes(options.dim, types_of(graph))
        text = graph_page(graph, options.program, options.fetch, sizes, partial(
            _on_devices, names=options.devices))
    else:
        if options.fetch:
            raise UsageError("--fetch is for graphs; a function gives what it returns")
        function = load_function(options.program)
        lowered = function.lower(*read_arguments(function, options.args))
        sizes = _sizes(options.dim, types_of(lowered.traced.graph))
        stages = _on_devices(lowered.stages, options.devices)
        text = replace(lowered, stages=stages).as_html(sizes)
    Path(options.output).write_text(text, encoding="utf-8")
    print(f"wrote {options.output}")


def _stage(stages: Stages | FlowStages, name: str) -> str:
    try:
        return stages.text(name)
    except ModuleNotFoundError as problem:
        package = (problem.name or "").partition(".")[0]
        source = "'weft[gpu]'" if package == "triton" else package
        raise UsageError(f"--stage {name} needs the package {package}: pip install {source}"
                         ) from None


def run(options: argparse.Namespace) -> None:
    """Run what a text file holds on seeded random arguments: graphs and the parts of steps over
    devices natively, kernels and plans in the reference interpreter. With ``--fetch`` a step of a
    graph on what is fed."""
    text = _text(options.file)
    _of_use(options, "--fetch" if options.fetch else "", {
        "--fetch": ("interpret", "dim", "seed"), "": ("feed", "save")})
    if options.fetch:
        run_step(options.file, options.feed, options.fetch, options.save)
        return
    if re.match(rf"{_COMMENTS}partition\b", text):
        partition, plans = parse_partition(text)
        sizes = _sizes(options.dim, (slot.type for slot in partition.params))
        show_partition(partition, plans, sizes, np.random.default_rng(options.seed))
        return
    items = read(text)
    inner = {id(kernel) for item in items if isinstance(item, Plan)
             for kernel in item.kernels.values()}
    sizes = _sizes(options.dim, (type_ for item in items for type_ in types_of(item)))
    rng = np.random.default_rng(options.seed)
    for item in items:
        if id(item) not in inner:
            state = with_tensors(item, options.file) if isinstance(item, IRGraph) else None
            show_run(item, sizes, rng, options.interpret, state)


def _of_use(
    options: argparse.Namespace, mode: str, useless: Mapping[str, tuple[str, ...]]
) -> None:
    """Refuse options that say nothing beside another one, or without it."""
    for name in useless.get(mode, ()):
        if getattr(options, name) != options.plain[name]:
            raise UsageError(f"--{name} says nothing with {mode}" if mode else
                             f"--{name} is for a step: name what it computes with --fetch")


def _sizes(given: Sequence[tuple[str, int]], types: Iterable[TensorType]) -> dict[str, int]:
    """What ``--dim`` says of the dims of some types, each of which is one of them."""
    dims = symbols_in(tuple(types))
    for name, _ in given:
        if name not in dims:
            raise UsageError(f"--dim {name}: there is no such dim, but "
                             f"{', '.join(sorted(dims)) or 'sizes that are all known'}")
    return dict(given)


def _text(file: str) -> str:
    """A text of Weft's own: LLVM, assembly and Triton are none."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError as problem:
        raise UsageError(f"cannot read {file}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {file}: it is no text") from None
    if not re.match(rf"{_COMMENTS}(graph|kernel|plan|partition)\b", text):
        raise UsageError(f"{file} holds no graph, kernel or plan; what weft dump prints "
                         "for --stage trace, opt, placed, fused or kernel can run")
    return text


def explain(options: argparse.Namespace) -> None:
    """Say where each part of a function would run on some devices, and why."""
    function = load_function(options.function)
    stages = function.lower(*read_arguments(function, options.args)).stages
    placed = Stages(stages.traced, replace(
        stages.options, devices=device_names(options.devices.split(",")),
        soft_placement=options.soft,
        costs=load_costs(options.costs) if options.costs else None)).placement
    print("\n".join(map(str, (*placed.ignored, placed.report()))))


def write(options: argparse.Namespace) -> None:
    """Export a function ahead of time."""
    function = load_function(options.function)
    folder = export(function, *read_arguments(function, options.args), path=options.output,
                    target=options.target)
    print(f"wrote {folder}")


def profiled(options: argparse.Namespace) -> None:
    """Run a program as Python does, and say where its time went, however it ends."""
    if not Path(options.file).is_file():
        raise UsageError(f"there is no file {options.file}")
    if options.output is not None and not Path(options.output).absolute().parent.is_dir():
        raise UsageError(f"there is no folder for {options.output}")  # before the program runs
    run_profiled(options.file, options.arguments, options.output, options.lines, options.rows)


def cached(options: argparse.Namespace) -> None:
    """Say what is kept on disk, look whether it is as it was, or remove it."""
    state = cache.info()
    if not state.folder:
        print("there is no cache: it is off, or its folder cannot be used")
    elif options.what == "list":
        print(f"{state.folder}: {state.entries} entries, {state.bytes:,} bytes")
    elif options.what == "verify":
        wrong = cache.verify()
        print(f"{state.entries - len(wrong)} entries are as they were, {len(wrong)} were removed")
    else:
        print(f"{cache.clear()} entries removed")


def show(options: argparse.Namespace) -> None:
    """Train a model of the examples, or the digit classifier."""
    if options.name is not None:
        try:
            models.run(options.name, options.size, Path(options.output))
        except LookupError as problem:
            raise UsageError(problem.args[0]) from None
        return
    demo.run(Path(options.output), epochs=options.epochs, seed=options.seed)


COMMANDS = (
    ("dump", "print a stage of a function",
     options_of.dump, dump),
    ("viz", "write a page that shows a function: its graph by stages, its kernels, its memory",
     options_of.viz, view),
    ("explain", "say where parts of a function run, and why",
     options_of.explain, explain),
    ("run", "run a text file of graphs, kernels and plans",
     options_of.run, run),
    ("profile", "run a program, and say which kernels and lines take its time",
     options_of.profile, profiled),
    ("export", "write a function as object file and C header",
     options_of.export, write),
    ("cache", "list, verify or clear the machine code that is kept on disk",
     options_of.cache, cached),
    ("demo", "train a digit classifier on real images, or a model of examples/models by its name",
     options_of.demo, show),
)


def parser() -> argparse.ArgumentParser:
    """The options of every command."""
    root = argparse.ArgumentParser(prog="weft", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    root.add_argument("--version", action="version", version=f"weft {version('weft')}")
    commands = root.add_subparsers(required=True, metavar="COMMAND")
    for name, about, add_options, action in COMMANDS:
        command = commands.add_parser(name, help=about)
        add_options(command)
        command.set_defaults(action=action, plain={
            each.dest: each.default for each in command._actions})
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; errors about the user's program are printed without a traceback."""
    options = parser().parse_args(argv)
    try:
        options.action(options)
        sys.stdout.flush()
    except UsageError as problem:
        return _fail(f"weft: {problem}", 2)
    except UnwritableError as problem:
        return _fail(f"weft: {problem.message}", 2)
    except Error as problem:
        # A value of the command itself was wrong: the line that started it says nothing.
        command = os.path.abspath(sys.argv[0])
        problem.locs = tuple(loc for loc in problem.locs if os.path.abspath(loc.file) != command)
        return _fail(str(problem), 1)
    except BrokenPipeError:
        return 0
    except Exception as problem:
        told = _told(problem)
        if told is None or os.environ.get("WEFT_TRACEBACK") == "full":
            raise
        return _fail(f"weft: {told[0]}", told[1])
    return 0


def _fail(message: str, status: int) -> int:
    print(message, file=sys.stderr)
    return status


def _told(problem: Exception) -> tuple[str, int] | None:
    """An exception that is no error of Weft's in one line, with the line of the user's code that
    raised it, and the status; None for a defect of Weft."""
    text = problem.msg if isinstance(problem, SyntaxError) else str(problem)
    first = next(iter(text.splitlines()), "")
    place = _raised_at(problem)
    if place:
        return f"{place}: {type(problem).__name__}: {first}", 1
    if isinstance(problem, OSError):
        return ": ".join(str(part) for part in (problem.filename, problem.strerror) if part), 2
    return (f"out of memory: {first}", 1) if isinstance(problem, MemoryError) else None


def _raised_at(problem: Exception) -> str:
    """Where the user's code raised an exception, by itself or in a library; empty if it was Weft,
    which raises no more than Python does where there is no such attribute or argument."""
    if isinstance(problem, SyntaxError) and problem.filename:
        return f"{problem.filename}:{problem.lineno or 1}"
    package, standard = __name__.partition(".")[0], sysconfig.get_paths()["stdlib"]
    for frame, line in reversed(list(traceback.walk_tb(problem.__traceback__))):
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if calls_only(frame.f_code):
            continue
        if frame.f_globals.get("__name__", "").partition(".")[0] == package:
            if not isinstance(problem, (AttributeError, TypeError)) or name == "main":
                return ""
        elif not (is_internal(frame) or file.startswith(("<", standard)) or "-packages" in file):
            return f"{file}:{line}" + (f" in {name}" if name != "<module>" else "")
    return ""
