"""A process that is a GPU: it runs kernels in Triton's interpreter, on memory that it shares.

Triton interprets or compiles, as it was imported, and its interpreter runs one kernel at a time. So
each device that is interpreted is a process of its own, and neither binds the process that asked:
that one may use Triton as it likes, or not have imported it.

What is asked comes through a socket, a line of JSON each, and so do the answers:

    {"name": "top", "code": "...", "types": ["*fp32", "i64"], "grid": 4, "arguments": [4096, 100]}
    {}                                  done; the status, if any, is in memory
    {"error": "..."}                    the kernel could not be run

Pointers are offsets in the memory. The process ends with whoever asks: when the other end of the
socket is closed, or when its parent is another one, which a killed parent cannot prevent.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import socket
import sys
import threading
import time
import traceback
from typing import Any

from .build import prepared
from .pointer import Pointer

PATIENCE = 1.0  # seconds in which the end of the parent is seen

_MAIN = """import json, os, sys
sys.path[:] = json.loads(sys.argv[1])
os.environ["TRITON_INTERPRET"] = "1"
from {module} import serve
serve(*map(int, sys.argv[2:]))"""


def command(memory: int, asked: int) -> list[str]:
    """What starts the process, given the file descriptors of its memory and socket."""
    return [sys.executable, "-X", "faulthandler", "-c", _MAIN.format(module=__name__),
            json.dumps(sys.path), str(memory), str(asked), str(os.getpid())]


def serve(memory: int, asked: int, parent: int) -> None:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the parent
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    shared = mmap.mmap(memory, 0)
    base = ctypes.addressof(ctypes.c_char.from_buffer(shared))
    with socket.socket(fileno=asked) as connection, connection.makefile("rwb") as file:
        _answer(file, _begun())
        for line in file:
            _answer(file, _launched(json.loads(line), base))
    os._exit(0)  # the memory is still looked at by ctypes: nothing to tidy up


def _follow(parent: int) -> None:
    """End with the parent, even if a child of its own holds the other end of the socket."""
    while os.getppid() == parent:
        time.sleep(PATIENCE)
    os._exit(0)


def _answer(file: Any, answer: dict[str, str]) -> None:
    file.write(json.dumps(answer).encode() + b"\n")
    file.flush()


def _begun() -> dict[str, str]:
    try:
        prepared()
    except Exception as problem:
        return {"error": f"Triton's interpreter does not start: {_said(problem)}"}
    return {}


def _launched(asked: dict[str, Any], base: int) -> dict[str, str]:
    try:
        arguments = [Pointer(base + value, type_[1:]) if type_.startswith("*") else value
                     for type_, value in zip(asked["types"], asked["arguments"], strict=True)]
        prepared()(asked["code"], asked["name"], asked["grid"], arguments)
    except Exception as problem:
        return {"error": f"{asked['name']}: {_said(problem)}"}
    return {}


def _said(problem: BaseException) -> str:
    return "".join(traceback.format_exception_only(problem)).strip()
