"""The options of each command, in the order of the help."""

from __future__ import annotations

import argparse
import ast
from functools import partial
from typing import Any

import numpy as np

from ..engine.building.pipeline import STAGES
from . import models


def dump(command: argparse.ArgumentParser) -> None:
    command.add_argument("function", metavar="FILE.py:FUNCTION")
    command.add_argument("--args", nargs="*", default=[], metavar="TYPE",
                         help="for each argument a type, such as 'f32[b,784]', or a nest of types, "
                              """such as '{"w": "f32[784,10]"}'""")
    command.add_argument("--stage", choices=STAGES, default="opt")
    command.add_argument("--devices", metavar="NAMES",
                         help="cut the step for devices: cpu:0,cpu:1")
    command.add_argument("--diff", action="store_true", help="against the stage before")
    command.add_argument("-o", "--output", metavar="FILE.ir", type=_path,
                         help="write the graph as it was traced, and beside it its variables and "
                              "arrays as safetensors; weft run reads both")
    command.add_argument("--passes", metavar="PASSES",
                         help="run these passes on the trace, such as 'state,simplify{rounds=1}'")


def viz(command: argparse.ArgumentParser) -> None:
    command.add_argument("program", metavar="FILE.py:FUNCTION | FILE.ir")
    command.add_argument("--args", nargs="*", default=[], metavar="TYPE", help="as for dump")
    command.add_argument("--devices", metavar="NAMES",
                         help="cut the step for devices: cpu:0,cpu:1")
    command.add_argument("--dim", action="append", default=[], type=_size, metavar="NAME=SIZE",
                         help="draw it for this size of a dim; 128 where it is not given")
    command.add_argument("--fetch", action="append", default=[], metavar="NAME",
                         help="of a saved graph: show the step that computes this")
    command.add_argument("-o", "--output", default="weft.html", metavar="FILE.html", type=_path)


def explain(command: argparse.ArgumentParser) -> None:
    command.add_argument("function", metavar="FILE.py:FUNCTION")
    command.add_argument("--args", nargs="*", default=[], metavar="TYPE", help="as for dump")
    command.add_argument("--devices", default="cpu:0,cpu:1", metavar="NAMES")
    command.add_argument("--costs", metavar="FILE", help="of Session.measure_costs")
    command.add_argument("--soft", action="store_true",
                         help="constraints that no device meets are not kept")


def run(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE.ir")
    command.add_argument("--dim", action="append", default=[], type=_size, metavar="NAME=SIZE")
    command.add_argument("--feed", action="append", default=[], type=_fed, metavar="NAME=VALUE",
                         help="a number, a list, or the name of a .npy file")
    command.add_argument("--fetch", action="append", default=[], metavar="NAME",
                         help="run one step that computes this; may be given several times")
    command.add_argument("--save", action="store_true",
                         help="write the variables back as the step leaves them")
    command.add_argument("--seed", type=_number, default=0)
    command.add_argument("--interpret", action="store_true",
                         help="use the reference interpreter for graphs, too")


def profile(command: argparse.ArgumentParser) -> None:
    command.add_argument("-o", "--output", metavar="TRACE.json", type=_path,
                         help="write a trace for ui.perfetto.dev or chrome://tracing")
    command.add_argument("--lines", action="store_true", help="show lines instead of kernels")
    command.add_argument("--rows", type=_number, default=30, metavar="N")
    command.add_argument("file", metavar="FILE.py")
    command.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...",
                         help="the program's own arguments")


def export(command: argparse.ArgumentParser) -> None:
    command.add_argument("function", metavar="FILE.py:FUNCTION")
    command.add_argument("--args", nargs="*", default=[], metavar="TYPE",
                         help="as for dump")
    command.add_argument("-o", "--output", required=True, metavar="FOLDER", type=_path)
    command.add_argument("--target", metavar="CPU")


def cache(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", choices=("list", "verify", "clear"))


def demo(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", nargs="?", metavar="NAME", help=", ".join(models.names()) or None)
    command.add_argument("--size", choices=("small", "normal"), default="normal")
    command.add_argument("-o", "--output", default="weft-demo", metavar="FOLDER", type=_path)
    command.add_argument("--epochs", type=partial(_number, least=1), default=200)
    command.add_argument("--seed", type=_number, default=0)


def _number(text: str, least: int = 0) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {least} on")
    return int(text)


def _path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("the name is empty")
    return text


def _size(text: str) -> tuple[str, int]:
    name, _, size = text.partition("=")
    if not name or not size.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE")
    return name, int(size)


def _fed(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, np.load(value) if value.endswith(".npy") else ast.literal_eval(value)
    except OSError as problem:
        raise argparse.ArgumentTypeError(f"cannot read {value}: {problem.strerror}") from None
    except (ValueError, SyntaxError):
        raise argparse.ArgumentTypeError(f"{value!r} is no number, list or .npy file") from None
