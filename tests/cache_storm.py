"""The disk cache under load and faults: many processes, kills, damage, disks that are full or gone.

    python tests/cache_storm.py --processes 8 --functions 100 --kills 60 --damages 10000

Processes that share one cache call the functions of ``support.storm_functions`` and compare each
result with NumPy's. They are killed at random moments, while entries are taken away so that others
are written; entries are damaged in every way there is; the folder is moved, deleted, full,
read-only and too small. Ends with status 1 at the first thing that is wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from support import storm_functions

import weft
from weft.codegen.cache import Cache

PAGE = 4096
HEAD = 45    # bytes of an entry before what is stored
EVERY = 500  # damages between runs of a process over a damaged folder
PARENT = str(Path(weft.__file__).parents[1])


class WrongError(Exception):
    """Something that must not happen."""


class Storm:
    """One folder with functions and a cache; ``seen`` counts what was done."""

    def __init__(self, folder: Path, functions: int, seed: int) -> None:
        self.folder, self.functions = folder, functions
        self.place = folder / "cache"
        self.rng = random.Random(seed)
        self.seen: Counter[str] = Counter()
        (folder / "functions.py").write_text(storm_functions.text(functions, seed))

    @property
    def cache(self) -> Cache:
        return Cache(self.place)

    def path(self, key: str) -> Path:
        """Where an entry is."""
        return Path(self.cache.folder, key[:2], key)

    # -- processes --------------------------------------------------------------------------------

    def start(self, *within: str, **environment: str) -> subprocess.Popen[str]:
        """A process that calls all functions, in an order of its own; ``within`` is a command that
        starts it."""
        settings = {**os.environ, "WEFT_CACHE": "1", "WEFT_CACHE_DIR": str(self.place),
                    "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": PARENT, **environment}
        self.seen["processes"] += 1
        return subprocess.Popen(
            [*within, sys.executable, "functions.py", str(self.rng.randrange(1 << 30)),
             str(self.functions)], env=settings, cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self, process: subprocess.Popen[str], wanted: str = "") -> None:
        """Wait for a process. ``wanted`` is what it is to say of its programs: ready or traced."""
        said, errors = process.communicate(timeout=600)
        if process.returncode:
            raise WrongError(f"a process ended with {process.returncode}: {errors or said}")
        if wanted and said.strip() != wanted:
            raise WrongError(f"functions are {said.strip()}, not {wanted}")

    def check(self, damaged: frozenset[str] = frozenset()) -> None:
        """All functions are right, and found by the next process; entries are what they say, but
        for damaged ones that nobody has asked for."""
        self.end(self.start())
        self.end(self.start(), "ready")
        wrong = {*self.cache.verify()} - damaged
        if wrong or self.cache.verify():
            raise WrongError(f"entries that are not what they say: {wrong}")

    def kill(self, kills: int, processes: int) -> None:
        """So many processes at a time, of which random ones are killed at random moments."""
        running: list[subprocess.Popen[str]] = []
        while self.seen["kills"] < kills:
            for each in [each for each in running if each.poll() is not None]:
                running.remove(each)
                self.end(each)
            running += [self.start() for _ in range(processes - len(running))]
            time.sleep(self.rng.uniform(0, 1.5))
            entries = self.cache.entries()
            for entry in self.rng.sample(entries, len(entries) // 3):  # so that others are written
                Path(entry.path).unlink(missing_ok=True)
            victim = running.pop(self.rng.randrange(len(running)))
            victim.kill()
            victim.communicate()
            self.seen["kills"] += victim.returncode == -signal.SIGKILL
        for each in running:
            self.end(each)
        self.check()
        self.seen["files that killed processes left"] = sum(1 for _ in self.place.rglob("new-*"))

    # -- damage -----------------------------------------------------------------------------------

    def damage(self, damages: int, every: int = EVERY) -> None:
        """What is damaged is not there, or what it was; processes make it anew."""
        store = self.cache
        held = {entry.key: Path(entry.path).read_bytes() for entry in store.entries()}
        wanted = {key: store.get(key) for key in held}
        for at in range(damages):
            key, other = self.rng.sample([*held], 2)
            kind = self._damaged(key, other)
            for each in (key, other):
                found = store.get(each)
                if found is not None and found != wanted[each]:
                    raise WrongError(f"{kind}: the cache gave what nobody had stored")
                if each == key:
                    self.seen[f"{kind}: {'as it was' if found else 'none'}"] += 1
                _put_back(self.path(each), held[each])
            if at % every == every - 1:
                for each in self.rng.sample([*held], len(held) // 2):
                    self._damaged(each, self.rng.choice([*held]))
                    self.seen["damaged, then met by a process"] += 1
                self.check(frozenset(held))
                for each, data in held.items():
                    _put_back(self.path(each), data)
        self.seen["damages"] += damages
        self.check()

    def _damaged(self, key: str, other: str) -> str:
        """Damage an entry, and perhaps another; in which way."""
        kind = self.rng.choice([*DAMAGES])
        with suppress(OSError):  # the other one is damaged already
            DAMAGES[kind](self.path(key), self.path(other), self.rng)
        return kind

    # -- the system around ------------------------------------------------------------------------

    def surroundings(self, processes: int) -> None:
        """The folder is moved, deleted, full, read-only and too small."""
        for fault in (self._moved, self._moved_under_them, self._deleted_under_them,
                      self._files_too_large, self._disk_full, self._read_only, self._too_small):
            name = fault.__name__.strip("_").replace("_", " ")
            self.seen[f"{name}: processes"] += fault(processes)
            self.check()

    def _moved(self, processes: int) -> int:
        self.check()
        self.place = self.place.rename(self.folder / "elsewhere")
        self.end(self.start(), "ready")
        self.place = self.place.rename(self.folder / "cache")
        return 1

    def _moved_under_them(self, processes: int) -> int:
        def move() -> None:
            aside = self.folder / f"aside {self.rng.random()}"
            with suppress(OSError):
                self.place.rename(aside)
                time.sleep(self.rng.uniform(0, 0.1))
                aside.rename(self.place)  # not where there is another by now

        return self._meanwhile(processes, move)

    def _deleted_under_them(self, processes: int) -> int:
        return self._meanwhile(processes, lambda: shutil.rmtree(self.place, ignore_errors=True))

    def _meanwhile(self, processes: int, act: Callable[[], None]) -> int:
        running = [self.start() for _ in range(processes)]
        while any(each.poll() is None for each in running):
            time.sleep(self.rng.uniform(0, 0.3))
            act()
        for each in running:
            self.end(each)
        return processes

    def _files_too_large(self, processes: int) -> int:
        """No process may write a file of more than 4 or 8 KB: what is larger is not stored."""
        shutil.rmtree(self.place)
        return self._in_turn("sh", "-c", 'ulimit -f 8 && exec "$@"', "sh")

    def _disk_full(self, processes: int) -> int:
        """On a disk of 200 KB, which the first process fills."""
        return self._mounted('mount -t tmpfs -o size=200k tmpfs "$WEFT_CACHE_DIR"')

    def _read_only(self, processes: int) -> int:
        """On a disk that cannot be written, with half of the entries."""
        for entry in self.cache.entries()[::2]:
            Path(entry.path).unlink()
        before = {entry.key for entry in self.cache.entries()}
        done = self._mounted('mount --bind "$WEFT_CACHE_DIR" "$WEFT_CACHE_DIR" && '
                             'mount -o remount,bind,ro "$WEFT_CACHE_DIR"')
        if done and before != {entry.key for entry in self.cache.entries()}:
            raise WrongError("a disk was written that is read-only")
        return done

    def _mounted(self, mount: str) -> int:
        """Processes that have a mount of their own; none where that is not allowed."""
        within = ["unshare", "-m", "sh", "-c", f'{mount} && "$@" >/dev/null && exec "$@"', "sh"]
        try:
            tried = subprocess.run([*within, "true"], capture_output=True, check=False,
                                   env={**os.environ, "WEFT_CACHE_DIR": str(self.place)})
        except OSError:
            return 0
        if tried.returncode:
            return 0
        self.end(self.start(*within))
        return 2

    def _in_turn(self, *within: str) -> int:
        for _ in range(2):
            self.end(self.start(*within))
        return 2

    def _too_small(self, processes: int) -> int:
        """Entries go as soon as there are others."""
        running = [self.start(WEFT_CACHE_SIZE="50000") for _ in range(processes)]
        for each in running:
            self.end(each)
        return processes


# -- ways to damage a file, and perhaps another ----------------------------------------------------

Damage = Callable[[Path, Path, random.Random], object]


def edited(edit: Callable[[bytearray, random.Random], object]) -> Damage:
    """Damage to the bytes of a file."""
    def damage(path: Path, other: Path, rng: random.Random) -> None:
        data = bytearray(path.read_bytes())
        edit(data, rng)
        path.write_bytes(data)

    return damage


def _flip(data: bytearray, rng: random.Random, end: int | None = None) -> None:
    for at in rng.sample(range(len(data[:end])), rng.choice((1, 1, 2, 8))):
        data[at] ^= 1 << rng.randrange(8)


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)):]


def _zero(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(0, len(data), PAGE)
    data[at:at + PAGE] = bytes(len(data[at:at + PAGE]))


def _swap(path: Path, other: Path, rng: random.Random) -> None:
    one, two = path.read_bytes(), other.read_bytes()
    path.write_bytes(two)
    other.write_bytes(one)


def _replace(make: Callable[[Path, Path], object]) -> Damage:
    """What is no file in its place."""
    def damage(path: Path, other: Path, rng: random.Random) -> None:
        path.unlink()
        make(path, other)

    return damage


DAMAGES: dict[str, Damage] = {
    "bits": edited(_flip), "bits of the head": edited(lambda data, rng: _flip(data, rng, HEAD)),
    "truncated": edited(_cut), "a page of zeros": edited(_zero),
    "appended": edited(lambda data, rng: data.extend(rng.randbytes(rng.randint(1, 100)))),
    "random": lambda path, other, rng: path.write_bytes(rng.randbytes(path.stat().st_size)),
    "empty": lambda path, other, rng: path.write_bytes(b""),
    "another's": lambda path, other, rng: path.write_bytes(other.read_bytes()), "swapped": _swap,
    "a folder": _replace(lambda path, other: path.mkdir()),
    "a link": _replace(lambda path, other: path.symlink_to(other)),
    "a link to nothing": _replace(lambda path, other: path.symlink_to(path.with_name("none"))),
    "a link to itself": _replace(lambda path, other: path.symlink_to(path)),
    "no rights": lambda path, other, rng: path.chmod(0),
}


def _put_back(path: Path, data: bytes) -> None:
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--processes", type=int, default=8, help="at a time")
    parser.add_argument("--functions", type=int, default=100)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--damages", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        storm = Storm(Path(folder), options.functions, options.seed)
        wrong = ""
        try:
            storm.kill(options.kills, options.processes)
            storm.damage(options.damages)
            storm.surroundings(options.processes)
        except WrongError as problem:
            wrong = str(problem)
    storm.seen["seconds"] = round(time.perf_counter() - start)
    width = max(map(len, storm.seen))
    print("\n".join(f"{name:{width}} {count:7}" for name, count in storm.seen.items()))
    print(f"wrong: {wrong}" if wrong else "nothing is wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
