"""The disk cache of machine code: what comes out of it is what was put in, or nothing."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cache_storm import DAMAGES, Storm

from weft.codegen.cache import Cache, key_of

PROGRAM = """
import numpy as np, sys, weft
from weft.codegen.cpu import jit
calls = []
inner = jit._optimised
jit._optimised = lambda *args: (calls.append(1), inner(*args))[1]
for k in range(int(sys.argv[1])):
    f = weft.compile(lambda x: np.tanh(x) * 2 + np.float64(k))
    assert np.array_equal(f(np.arange(5.0)), np.tanh(np.arange(5.0)) * 2 + k) or np.allclose(
        f(np.arange(5.0)), np.tanh(np.arange(5.0)) * 2 + k, rtol=1e-14)
print(len(calls))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder that this process and those that it starts use."""
    place = tmp_path / "cache"
    monkeypatch.setenv("WEFT_CACHE", "1")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(place))
    yield place
    if place.is_dir():
        place.chmod(0o700)


def run(count: int = 1, **environment: str) -> tuple[int, str]:
    """How many modules a process of its own had to compile, and what it logged."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(count)], capture_output=True,
                          text=True, check=True, timeout=300, env={**os.environ, **environment})
    return int(done.stdout), done.stderr


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_what_is_stored_comes_back(folder: Path) -> None:
    store = Cache(folder)
    assert store.get(key_of("a")) is None
    folder.mkdir()
    store.put(key_of("a"), b"one")
    store.put(key_of("b"), b"")
    assert store.get(key_of("a")) == b"one" and store.get(key_of("b")) == b""
    assert [entry.key for entry in store.entries()] == sorted(
        (key_of("a"), key_of("b")), key=lambda key: Path(
            store.folder, key[:2], key).stat().st_mtime)
    assert store.clear() == 2 and store.get(key_of("a")) is None


def test_keys_tell_parts_apart() -> None:
    assert len({key_of("ab", "c"), key_of("a", "bc"), key_of("abc"), key_of("ab", "c", "")}) == 4


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_entries_are_found_and_made_anew(folder: Path, kind: str) -> None:
    """Every way to damage a file."""
    store, rng = Cache(folder), random.Random(kind)
    data = {key_of(str(at)): rng.randbytes(rng.randrange(400)) for at in range(40)}
    folder.mkdir()
    for key, held in data.items():
        store.put(key, held)
    for _ in range(100):
        key, other = rng.sample([*data], 2)
        DAMAGES[kind](*(Path(store.folder, each[:2], each) for each in (key, other)), rng)
        for each in (key, other):
            assert store.get(each) in (None, data[each])
            store.put(each, data[each])
            assert store.get(each) == data[each]
    assert store.verify() == []
    damaged = files(folder)[3]
    damaged.write_bytes(b"weft entry 2\n")
    assert store.verify() == [damaged.name]


def test_the_oldest_go_where_there_are_too_many(folder: Path) -> None:
    store = Cache(folder, capacity=1000)
    for at in range(30):
        store.put(key_of(str(at)), bytes(100))
        path = Path(store.folder, key_of(str(at))[:2], key_of(str(at)))
        os.utime(path, (at + 1, at + 1))
    store.trim()
    kept = [entry.key for entry in store.entries()]
    assert sum(entry.size for entry in store.entries()) <= 800
    assert kept == [key_of(str(at)) for at in range(30 - len(kept), 30)]


@pytest.mark.long
def test_a_process_finds_what_another_has_compiled(folder: Path) -> None:
    first, log = run(WEFT_CACHE_LOG="1")
    assert first == log.count("object") == 2  # what programs share, and one
    assert log.count("absent") == log.count("\n") == 3  # and that as it is linked
    assert run(WEFT_CACHE_LOG="1") == (0, "")
    assert run(WEFT_CACHE="0")[0] == first
    moved = folder.with_name("moved")
    shutil.copytree(folder, moved)
    assert run(WEFT_CACHE_DIR=str(moved))[0] == 0


@pytest.mark.long
def test_a_damaged_entry_is_compiled_again(folder: Path) -> None:
    first, _ = run()
    for path in files(folder):
        path.write_bytes(path.read_bytes()[:-1])
    again, log = run(WEFT_CACHE_LOG="1")
    assert again == first == 2 and log.count("truncated or changed") == log.count("\n") == 3
    assert run()[0] == 0


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_is_no_error(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o500)
    assert run()[0] == 2 and not files(folder)


def test_a_folder_that_others_may_write_is_refused(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    found, log = run(WEFT_CACHE_LOG="1")
    assert found == 2 and "others may write" in log and not files(folder)


def test_where_a_file_is_in_the_way_there_is_no_cache(folder: Path) -> None:
    folder.write_text("in the way")
    assert run()[0] == 2
    folder.unlink()


def test_files_are_private(folder: Path) -> None:
    run()
    for path in (folder, *folder.rglob("*")):
        assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO), path


@pytest.mark.long
def test_a_small_storm(tmp_path: Path) -> None:
    """Some of ``python tests/cache_storm.py``: processes race, are killed, and meet damage."""
    storm = Storm(tmp_path, 11, 0)
    storm.kill(3, 3)
    storm.damage(200, every=200)
    assert storm.seen["kills"] == 3 and storm.seen["damages"] == 200
