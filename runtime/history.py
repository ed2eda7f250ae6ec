"""A folder of checkpoints: the newest ones, and a manifest that says which they are.

    run/manifest.json           {"format": ..., "checkpoints": [{"step": 90, "file": ...}, ...]}
    run/step-90.safetensors
    run/step-100.safetensors    the newest stands last

A checkpoint counts once it is in the manifest, which is replaced as a whole (``files``), and goes
from the manifest before its file goes. So whenever a writer is killed, all that the manifest
names is there; what else there is, the next writer removes.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ..ir.diagnose import error
from .files import new_file, sweep

MANIFEST = "manifest.json"
_FORMAT = "weft-checkpoints-1"
_OURS = re.compile(r"step-\d+\.safetensors")


@dataclass(frozen=True)
class Entry:
    """One checkpoint of a folder."""

    step: int
    file: str


@contextmanager
def added(folder: Path, step: int | None, keep: int) -> Iterator[tuple[Path, int]]:
    """The file that the body is to write, and its step: without one, the next after the newest.

    When the body ends well it is the newest checkpoint, and of all only ``keep`` stay. Writers of
    one folder take turns.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        old = entries(folder) if (folder / MANIFEST).exists() else []
        sweep(folder)
        number = step if step is not None else old[-1].step + 1 if old else 0
        new = Entry(number, f"step-{number}.safetensors")
        yield folder / new.file, number
        kept = [*(entry for entry in old if entry.step != number), new][-keep:]
        text = {"format": _FORMAT, "checkpoints": list(map(asdict, kept))}
        with new_file(folder / MANIFEST) as file:
            file.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
        named = {entry.file for entry in kept}
        for name in filter(_OURS.fullmatch, os.listdir(folder)):
            if name not in named:
                (folder / name).unlink()


def entries(folder: Path) -> list[Entry]:
    """The checkpoints of a folder, the newest last. Raises Error (W403) if it has none."""
    try:
        text = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if text["format"] != _FORMAT:
            raise ValueError(f"the format is {text['format']}")
        found = [Entry(int(entry["step"]), str(entry["file"])) for entry in text["checkpoints"]]
        strange = [entry.file for entry in found if not _OURS.fullmatch(entry.file)]
        if strange or not found:
            raise ValueError(f"it names {strange or 'none'}")
    except FileNotFoundError:
        raise error("W403", f"{folder} is no folder of checkpoints: it has no {MANIFEST}",
                    hint="name a file, or a folder that weft.save(..., keep=n) has made") from None
    except (ValueError, KeyError, TypeError) as problem:
        raise error("W403", f"{folder / MANIFEST} cannot be read: {problem}",
                    hint="restore from one of the files in the folder by its name") from None
    return found


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
