"""A folder of checkpoints: the newest ones, and a manifest that says which they are.

    run/manifest.json                 {"format": ..., "checkpoints": [
    run/step-90.safetensors             {"step": 90, "file": "step-90.safetensors"},
    run/step-100-5f0c93a1.0.safetensors {"step": 100, "shards": [{"file": ..., "device": "cpu:0",
    run/step-100-5f0c93a1.1.safetensors   "bytes": 4096, "variables": ["w"]}, ...]}]}

The newest stands last. What variables of several devices hold is a checkpoint of several files,
its shards, under names that no other checkpoint has or had.

A checkpoint counts once it is in the manifest, which is replaced as a whole (``files``), and goes
from the manifest before its files go. So whenever a writer is killed, all that the manifest
names is there; what else there is, the next writer removes. Until a folder has its first manifest,
a file says that it has been begun: else its files would be somebody's own.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...ir.diagnose import error
from ...ir.record import as_dict, field, record
from .files import new_file, sweep
from .handles import close_handle, open_handle

MANIFEST = "manifest.json"
_PLAIN, _SHARDED = "weft-checkpoints-1", "weft-checkpoints-2"
_BEGUN = ".weft-begun"
_OURS = re.compile(r"step-\d+(-[0-9a-f]{8}\.\d+)?\.safetensors")


@record(frozen=True)
class Shard:
    """What the variables of one device hold; it is a file of so many bytes."""

    file: str
    device: str
    bytes: int
    variables: tuple[str, ...]


@record(frozen=True)
class Entry:
    """One checkpoint of a folder: a file, or shards."""

    step: int
    file: str = ""
    shards: tuple[Shard, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        return tuple([shard.file for shard in self.shards]) or (self.file,)

    @staticmethod
    def parse(text: dict[str, Any]) -> Entry:
        """From JSON. Raises ValueError, KeyError or TypeError."""
        shards = tuple([Shard(str(each["file"]), str(each["device"]), int(each["bytes"]),
                              tuple(map(str, each["variables"])))
                        for each in text.get("shards", ())])
        found = Entry(int(text["step"]), "" if shards else str(text["file"]), shards)
        strange = [name for name in found.files if not _OURS.fullmatch(name)]
        if strange:
            raise ValueError(f"it names {strange}")
        return found

    def as_json(self) -> dict[str, Any]:
        if not self.shards:
            return {"step": self.step, "file": self.file}
        return {"step": self.step, "shards": list(map(as_dict, self.shards))}


@record
class Addition:
    """A checkpoint that is being written: to ``file``, unless there are shards."""

    folder: Path
    step: int
    shards: list[Shard] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._mark = secrets.token_hex(4)

    @property
    def file(self) -> str:
        return f"step-{self.step}.safetensors"

    def shard(self, at: int) -> str:
        """The name of the file of shard ``at``."""
        return f"step-{self.step}-{self._mark}.{at}.safetensors"


@contextmanager
def added(folder: Path, step: int | None, keep: int) -> Iterator[Addition]:
    """What the body is to write: without a step, that of the next one after the newest.

    When the body ends well it is the newest checkpoint, and of all only ``keep`` stay. Writers of
    one folder take turns.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        old = entries(folder) if (folder / MANIFEST).exists() else _begun(folder)
        sweep(folder)
        number = step if step is not None else old[-1].step + 1 if old else 0
        new = Addition(folder, number)
        try:
            yield new
        except BaseException:
            _clean(folder, old)
            raise
        entry = Entry(number, "" if new.shards else new.file, tuple(new.shards))
        kept = [*(entry for entry in old if entry.step != number), entry][-keep:]
        form = _SHARDED if any(entry.shards for entry in kept) else _PLAIN
        text = {"format": form, "checkpoints": [entry.as_json() for entry in kept]}
        with new_file(folder / MANIFEST) as file:
            file.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
        (folder / _BEGUN).unlink(missing_ok=True)
        _clean(folder, kept)


def _begun(folder: Path) -> list[Entry]:
    """No checkpoints, of a folder that is to have some. Raises UnwritableError (W408) for one that
    has files of which nobody knows whose they are."""
    found = sorted(filter(_OURS.fullmatch, os.listdir(folder)))
    if found and not (folder / _BEGUN).exists():
        raise error("W408", f"{folder} has {found[0]}, and no {MANIFEST} that names it: what is "
                            "not named is removed as checkpoints come",
                    hint="save to another folder, or move the files that are to stay")
    (folder / _BEGUN).touch()
    return []


def _clean(folder: Path, kept: list[Entry]) -> None:
    """Remove files of checkpoints that are not kept."""
    named = {name for entry in kept for name in entry.files}
    for name in filter(_OURS.fullmatch, os.listdir(folder)):
        if name not in named:
            (folder / name).unlink()


def entries(folder: Path) -> list[Entry]:
    """The checkpoints of a folder, the newest last. Raises Error (W403) if it has none."""
    try:
        text = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if text["format"] not in (_PLAIN, _SHARDED):
            raise ValueError(f"the format is {text['format']}")
        found = list(map(Entry.parse, text["checkpoints"]))
        if not found:
            raise ValueError("it names none")
    except FileNotFoundError:
        raise error("W403", f"{folder} is no folder of checkpoints: it has no {MANIFEST}",
                    hint="name a file, or a folder that weft.save(..., keep=n) has made") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError,
            RecursionError) as problem:
        raise error("W403", f"{folder / MANIFEST} cannot be read: {problem}",
                    hint="restore from one of the files in the folder by its name") from None
    return found


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    handle = open_handle(folder)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        close_handle(handle)
