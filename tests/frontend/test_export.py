"""Artifacts: the same numbers from Python, C and ctypes, and clear errors for what does not fit."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import in_threads, python

import weft
from weft.codegen import elf
from weft.codegen.artifact import link
from weft.codegen.artifact.header import c_names
from weft.codegen.artifact.object import STATUS, Artifact, Source, WeightsFile, emit_artifact
from weft.codegen.cpu import cpu_check
from weft.codegen.cpu.jit import compile_object
from weft.frontend.engine.building.link import make_program
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face import tree
from weft.frontend.face.options import Options
from weft.frontend.interchange import artifact, export
from weft.frontend.interchange.export import ExportJob, write_artifact
from weft.ir.diagnose import Error
from weft.ir.graph import Builder, Graph
from weft.ir.interp.graph import run_graph
from weft.ir.machine import Machine
from weft.ir.ops.table import OPS
from weft.ir.text.parser import parse_plan
from weft.ir.text.printer import print_plan
from weft.ir.types import parse_type
from weft.runtime import artifact as loader
from weft.runtime.artifact import Loaded, load, sealed
from weft.runtime.storage.verified import digest
from weft.runtime.tree import collect, describe, structure_of

CC = shutil.which("cc")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler")
RNG = np.random.default_rng(7)
WEIGHTS = {"w1": RNG.standard_normal((784, 128), np.float32) / 28,
           "b1": RNG.standard_normal(128, np.float32),
           "w2": RNG.standard_normal((128, 10), np.float32) / 11,
           "b": RNG.standard_normal(10, np.float32)}  # and the batch is called b, too

Point = namedtuple("Point", ("left", "right"))


@dataclass
class Pair:
    left: Any
    right: Any


def graph(function: Callable[..., Any], *params: str, name: str = "f") -> Graph:
    """The graph of ``function(builder, *values)``; params look like ``x:f32[b,3]``."""
    made = Graph(name)
    builder = Builder(made, OPS, share=False, fold=False)
    values = [made.add_param(parse_type(type_), label)
              for label, _, type_ in (param.partition(":") for param in params)]
    results = function(builder, *values)
    made.results = list(results) if isinstance(results, tuple) else [results]
    return made


def job(made: Graph, count: int, **options: Any) -> ExportJob:
    """An export of a graph whose first ``count`` parameters are arrays passed by position."""
    names = tuple(value.name.removesuffix(":0") for value in made.params[:count])
    results = options.pop("results", tree.LEAF)
    return ExportJob(Stages(made, Options()), (tree.LEAF,) * count, results, names, **options)


def mlp(b: Builder, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    z = b.contract(x, w1, dims="mk,kn->mn")
    h = b.maximum(b.add(z, b.broadcast(b1, shape=z.shape, axes=(1,))), 0.0)
    z = b.contract(h, w2, dims="mk,kn->mn")
    return b.add(z, b.broadcast(b2, shape=z.shape, axes=(1,)))


MLP = graph(mlp, "x:f32[b,784]", "w1:f32[784,128]", "b1:f32[128]", "w2:f32[128,10]", "b:f32[10]")


def batch(size: int) -> Any:
    return np.random.default_rng(size).standard_normal((size, 784), np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-layer network with a symbolic batch, as an artifact."""
    path = tmp_path_factory.mktemp("artifacts") / "m"
    return write_artifact(job(MLP, 1, weights=WEIGHTS, outputs=("y",)), path)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact without weights, with a run-time check and a number by value."""
    def pick(b: Builder, x: Any, ids: Any, scale: Any) -> Any:
        rows = b.gather(x, ids, axes=(0,))
        return b.mul(rows, b.broadcast(scale, shape=rows.shape, axes=()))

    made = graph(pick, "x:f64[n,3]", "ids:i64[k]", "scale:f64[]")
    path = tmp_path_factory.mktemp("artifacts") / "pick"
    return write_artifact(job(made, 3, outputs=("rows",)), path)


# -- from Python --------------------------------------------------------------------------------


def test_files(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "m.h", "m.o", "m.plan", "m.safetensors", "m.so", "manifest.json"]
    assert (folder / "m.o").stat().st_size <= 64 << 10
    text = (folder / "m.plan").read_text()
    assert print_plan(parse_plan(text), kernels=True) == text.strip()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["target"]["cpu"] in ("x86-64-v3", "generic")
    assert manifest["symbols"] == ["b"]


@pytest.mark.parametrize("size", [0, 1, 7, 32])
def test_loaded_gives_the_numbers(folder: Path, size: int) -> None:
    x = batch(size)
    [wanted] = run_graph(MLP, [x, *WEIGHTS.values()])
    y = load(folder)(x)
    assert y.shape == (size, 10)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)


def test_bits_are_those_of_the_compiled_function(folder: Path) -> None:
    program = make_program(Stages(MLP, Options()), [0, *WEIGHTS.values()])
    loaded, x = load(folder, threads=1), batch(300)
    [wanted] = program.run([x])
    np.testing.assert_array_equal(loaded(x), wanted)
    loaded.threads = 4
    np.testing.assert_array_equal(loaded(x), wanted)


def test_many_threads_call_at_once(folder: Path) -> None:
    loaded = load(folder, threads=2)
    inputs = [batch(size) for size in (1, 5, 64, 200)]
    wanted = [loaded(x) for x in inputs]

    def work(at: int) -> None:
        for _ in range(20):
            np.testing.assert_array_equal(loaded(inputs[at]), wanted[at])

    in_threads(*(partial(work, at % 4) for at in range(8)))


def test_loading_needs_no_compiler(folder: Path) -> None:
    run = ("import numpy as np; m = load(sys.argv[1]); y = m(np.ones((2, 784), np.float32)); "
           "assert y.shape == (2, 10); "
           "assert not {'llvmlite', 'networkx', 'triton', *sys.argv[3:]} & set(sys.modules)")
    public = "import sys; from weft import load; " + run
    # The package without its public face, which names everything there is.
    bare = ("import sys, types; weft = sys.modules['weft'] = types.ModuleType('weft'); "
            "weft.__path__ = [sys.argv[2]]; from weft.runtime.artifact import load; " + run)
    root = str(Path(weft.__file__).parent)
    subprocess.run([sys.executable, "-c", public, str(folder), root], check=True)
    subprocess.run([sys.executable, "-c", bare, str(folder), root, "weft.codegen",
                    "weft.frontend", "weft.passes", "safetensors"], check=True)


def test_run_by_name(folder: Path) -> None:
    loaded, x = load(folder), batch(3)
    assert (loaded.inputs, loaded.outputs) == (["x"], ["y"])
    wanted = loaded(x)
    np.testing.assert_array_equal(loaded.run("y", {"x": x}), wanted)
    np.testing.assert_array_equal(loaded.run(["y:0"], {"x:0": x})[0], wanted)
    np.testing.assert_array_equal(loaded.run(None, {"x": x})[0], wanted)
    for code, names, feeds in (("W301", ["z"], {"x": x}), ("W301", "y", {"x": x, "q": x}),
                               ("W302", "y", {}), ("W303", "y", {"x": x.astype(np.float64)})):
        with pytest.raises(Error) as caught:
            loaded.run(names, feeds)
        assert caught.value.code == code


def test_arguments_that_do_not_fit(folder: Path) -> None:
    loaded, x = load(folder), batch(3)
    for bad in (x[:, 1:], x[0], x.astype(np.int32)):
        with pytest.raises(Error) as caught:
            loaded(bad)
        assert caught.value.code == "W303"
        assert "x" in str(caught.value)
    for args, named in (((), {}), ((x, x), {}), ((x,), {"z": x})):
        with pytest.raises(Error) as caught:
            loaded(*args, **named)
        assert caught.value.code == "W102"
    np.testing.assert_array_equal(loaded(x=np.asfortranarray(x)), loaded(x))


def test_check_fails_with_its_code(checked: Path) -> None:
    loaded, x = load(checked), np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(loaded(x, np.array([1, -1]), 2.0), 2 * x[[1, -1]])
    with pytest.raises(IndexError) as caught:
        loaded(x, np.array([0, 4]), 2.0)
    assert caught.value.code == "W124"  # type: ignore[attr-defined]


# -- what is wrong with a folder ----------------------------------------------------------------


def copied(folder: Path, to: Path, **changes: Any) -> Path:
    """A copy with changes to its manifest."""
    shutil.copytree(folder, to / "m")
    manifest = json.loads((folder / "manifest.json").read_text()) | changes
    (to / "m" / "manifest.json").write_text(json.dumps(sealed(manifest)))
    return to / "m"


def test_no_artifact(tmp_path: Path) -> None:
    with pytest.raises(Error, match=r"W403.*no manifest"):
        load(tmp_path)


def test_other_format(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Error, match=r"W403.*format 99 \(of Weft 9\.0\)") as caught:
        load(copied(folder, tmp_path, format=99, weft="9.0"))
    assert "install that version" in str(caught.value)


def test_a_manifest_that_is_damaged(folder: Path, tmp_path: Path) -> None:
    path = copied(folder, tmp_path)
    text = (path / "manifest.json").read_text()
    for wrong in (text.replace('"file"', '"fill"', 1), "[" * 100_000, text[:-40], "3"):
        assert wrong != text
        (path / "manifest.json").write_text(wrong)
        with pytest.raises(Error, match=r"W403: .*manifest\.json cannot be read") as caught:
            weft.load(path)
        assert [loc.file for loc in caught.value.locs] == [__file__]
    with pytest.raises(Error, match=r"W403: .* is not a Weft artifact"):
        weft.load(path / "manifest.json")


def test_a_library_is_linked_where_there_was_no_linker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(object_: Path, library: Path) -> None:
        raise link.error("W404", "there is no linker")

    with monkeypatch.context() as nothing:
        nothing.setattr(export, "link_shared", fails)
        path = weft.export(lambda x: x * 2, "f64[n]", path=tmp_path / "m")
    assert sorted(file.name for file in path.iterdir()) == ["m.h", "m.o", "m.plan", "manifest.json"]
    np.testing.assert_array_equal(weft.load(path)(np.ones(3)), np.full(3, 2.0))
    assert not (path / "m.so").exists()
    with pytest.raises(Error, match=r"W404: .*not linked") as caught:
        load(path)
    assert caught.value.hint == "load it with weft.load, which links it"
    with monkeypatch.context() as nothing:
        nothing.setattr(artifact, "link_shared", fails)
        with pytest.raises(Error, match=r"W404: there is no linker\n(.*\n)*.*fix: install a C"):
            weft.load(path)
    flipped(path / "m.o", 100)
    with pytest.raises(Error, match=r"W403: .*m\.o is not what was written"):
        weft.load(path)


def test_library_of_another_export(folder: Path, checked: Path, tmp_path: Path) -> None:
    path = copied(folder, tmp_path)
    shutil.copy(checked / "pick.so", path / "m.so")
    with pytest.raises(Error, match=r"W403: .*m\.so is not what was written"):
        load(path)
    (path / "m.so").unlink()
    with pytest.raises(Error, match=r"W403: .*m\.so is missing"):
        load(path)


def test_other_weights(folder: Path, tmp_path: Path) -> None:
    path = copied(folder, tmp_path)
    weft.save(path / "m.safetensors", {**WEIGHTS, "b": np.ones(10, np.float64)})
    with pytest.raises(Error, match=r"W403.*m\.safetensors is not what was written"):
        load(path)
    shutil.copy(path / "m.safetensors", tmp_path / "other")
    (path / "m.safetensors").unlink()
    with pytest.raises(Error, match=r"W403.*m\.safetensors is missing"):
        load(path)
    for wrong in ("other", "none", "\0"):
        with pytest.raises(Error, match="W403"):
            load(path, weights=tmp_path / wrong)


# -- what was verified is what is used ------------------------------------------------------------


def flipped(file: Path, at: int, bit: int = 1) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= bit
    file.write_bytes(data)


def test_a_flipped_byte_of_any_file_is_found(folder: Path, tmp_path: Path) -> None:
    path = copied(folder, tmp_path)
    x = batch(2)
    y = load(path)(x)
    draw = np.random.default_rng(0)
    for file in sorted(path.iterdir()):
        whole = file.read_bytes()
        places = {0, len(whole) // 2, len(whole) - 1, *draw.integers(0, len(whole), 20).tolist()}
        for at in sorted(places):
            flipped(file, at, 1 << int(draw.integers(8)))
            with pytest.raises(Error, match="W403") as caught:
                load(path)
            assert file.name in str(caught.value) or "format" in str(caught.value)
            file.write_bytes(whole)
        for size in (0, 1, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:size])
            with pytest.raises(Error, match=re.escape(file.name)):
                load(path)
        file.write_bytes(whole + b" " * (file.name != "manifest.json"))
        if file.name != "manifest.json":
            with pytest.raises(Error, match=re.escape(file.name)):
                load(path)
        file.write_bytes(whole)
    np.testing.assert_array_equal(load(path)(x), y)


def test_a_file_that_is_none_is_seen(folder: Path, tmp_path: Path) -> None:
    """A pipe would be waited for, a device has no end, a link may lead nowhere or to itself."""
    path = copied(folder, tmp_path)
    for name in ("m.so", "m.safetensors", "m.o", "m.h", "manifest.json"):
        whole = (path / name).read_bytes()

        def becomes(make: Callable[[Path], Any], name: str = name, whole: bytes = whole) -> None:
            (path / name).unlink()
            make(path / name)
            with pytest.raises(Error, match="W403"):
                load(path)
            (path / name).rmdir() if (path / name).is_dir() and not (
                path / name).is_symlink() else (path / name).unlink()
            (path / name).write_bytes(whole)

        becomes(os.mkfifo)
        becomes(Path.mkdir)
        for target in ("/dev/zero", "/dev/null", name, "nowhere", "/", "/proc/self/mem"):
            becomes(lambda file, target=target: file.symlink_to(target))
        (path / name).rename(tmp_path / "elsewhere")
        (path / name).symlink_to(tmp_path / "elsewhere")  # as stores of models have them
        load(path)
        flipped(tmp_path / "elsewhere", 50)
        with pytest.raises(Error, match="W403"):
            load(path)
        (path / name).unlink()
        (path / name).write_bytes(whole)
    assert load(path)(batch(2)).shape == (2, 10)


def test_files_that_change_after_they_were_verified_are_not_used(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one who waits for the moment between the two would have it."""
    path, x = copied(folder, tmp_path), batch(3)
    y = load(path)(x)
    open_library, files = ctypes.CDLL, [path / "m.so", path / "m.safetensors"]

    def changed(name: str) -> ctypes.CDLL:
        for file in files:
            file.write_bytes(b"what somebody else has written")
        return open_library(name)

    monkeypatch.setattr(loader, "_LIBRARIES", loader._Libraries())
    monkeypatch.setattr(loader.ctypes, "CDLL", changed)
    with pytest.raises(Error, match=r"W403.*m\.safetensors is not what"):
        load(path)
    shutil.copy(folder / "m.so", path / "m.so")
    monkeypatch.setattr(loader.ctypes, "CDLL", open_library)
    shutil.copy(folder / "m.safetensors", path / "m.safetensors")
    loaded = load(path)
    for file in files:
        with file.open("r+b") as stream:  # in place, and shorter: what is mapped would be gone
            stream.truncate(10)
    np.testing.assert_array_equal(loaded(x), y)
    with pytest.raises(Error, match="W403"):
        load(path)


def test_an_export_that_takes_the_place_of_one_that_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, places, copied_at = loader.private_copy, iter(range(1, 4)), [0]
    path = weft.export(lambda x: x, "f64[3]", path=tmp_path / "m")

    def late(file: Path, wanted: str | None) -> Any:
        k = next(places, 3)
        if not np.array_equal(copied_at, [3]):
            weft.export(lambda x: x + k, "f64[3]", path=path)
            copied_at[:] = [k]
        return copy(file, wanted)

    monkeypatch.setattr(loader, "private_copy", late)
    np.testing.assert_array_equal(weft.load(path)(np.zeros(3)), np.full(3, 3.0))


def test_files_for_c_programs_need_not_be_there(folder: Path, tmp_path: Path) -> None:
    path = copied(folder, tmp_path)
    for name in ("m.o", "m.h", "m.plan"):
        (path / name).unlink()
    (path / "notes").write_text("mine")
    assert load(path)(batch(2)).shape == (2, 10)


def test_without_anonymous_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: Any) -> int:
        raise OSError(38, "Function not implemented")

    path, x = copied(folder, tmp_path), batch(3)
    y = load(path)(x)
    monkeypatch.setattr(loader, "_LIBRARIES", loader._Libraries())
    monkeypatch.setattr(os, "memfd_create", refused)
    loaded = load(path)
    shutil.rmtree(path)
    np.testing.assert_array_equal(loaded(x), y)


def test_each_library_is_the_one_that_was_asked_for(tmp_path: Path) -> None:
    """Names of copies come again: to the system, one name is one library."""
    made = [weft.export(lambda x, k=k: x + k, "f64[3]", path=tmp_path / f"m{k}")
            for k in range(12)]
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        for k, path in enumerate(made):
            np.testing.assert_array_equal(weft.load(path)(np.zeros(3)), np.full(3, float(k)))
    assert len(os.listdir("/proc/self/fd")) == before


def test_exported_again_at_the_same_place(tmp_path: Path) -> None:
    found = []
    for factor in (1.0, 2.0, 3.0):
        made = graph(lambda b, x, factor=factor: b.mul(x, factor), "x:f32[3]")
        write_artifact(job(made, 1), tmp_path / "again")
        found.append(load(tmp_path / "again")(np.ones(3, np.float32))[0])
    assert found == [1.0, 2.0, 3.0]


def test_scratch_memory_is_kept_for_the_next_call(folder: Path) -> None:
    loaded = load(folder)
    assert loaded._spare == []
    loaded(batch(9))
    kept, = loaded._spare
    loaded(batch(9))
    assert loaded._spare[0] is kept
    wanted = load(folder)(batch(900))
    np.testing.assert_array_equal(loaded(batch(900)), wanted)  # the old one is too small
    assert len(loaded._spare) == 1 and loaded._spare[0].size > kept.size


def test_cpu_that_lacks_a_feature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {**cpu_check.FEATURES, "reserved": (1, 0, 2, 16)}  # a bit that no CPU sets
    monkeypatch.setattr(cpu_check, "FEATURES", places)
    monkeypatch.setattr(cpu_check, "LEVEL3", cpu_check.LEVEL3 | {"reserved"})
    made = graph(lambda b, x: b.mul(x, 2.0), "x:f32[3]")
    path = write_artifact(job(made, 1), tmp_path / "future")
    with pytest.raises(Error, match=r"W403.*CPU lacks .* any of .*avx2, .*fma"):
        load(path)
    library = ctypes.CDLL(str(path / "future.so"))
    x = (ctypes.c_float * 3)()
    assert library.future(x, x, 1) == -4  # and not an illegal instruction


# -- from C -------------------------------------------------------------------------------------

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "m/m.h"

int main(void) {
  static float x[4 * 784], y[4 * 10];
  for (int i = 0; i < 4 * 784; i++) x[i] = (float)(i % 17) / 16;
  m_weights *weights;
  int32_t code = m_load_weights("m/m.safetensors", &weights);
  if (code == 0) code = m(weights, x, y, 4, 2);
  if (code != 0) {
    fprintf(stderr, "%s\\n", m_check_message(code));
    return 1;
  }
  for (int i = 0; i < 4 * 10; i++) printf("%a\\n", y[i]);
  m_free_weights(weights);
  return 0;
}
"""
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")


def run_c(source: str, where: Path, *objects: str) -> subprocess.CompletedProcess[str]:
    """Compile and run a C program in a folder."""
    (where / "main.c").write_text(source)
    assert CC is not None
    subprocess.run([CC, *STRICT, "main.c", *objects, "-o", "main", "-lm", "-lpthread"],
                   cwd=where, check=True)
    return subprocess.run(["./main"], cwd=where, capture_output=True, text=True, check=False)


@needs_cc
def test_c_program_prints_the_same_numbers(folder: Path) -> None:
    done = run_c(MAIN, folder.parent, "m/m.o")
    assert done.returncode == 0, done.stderr
    x = ((np.arange(4 * 784) % 17) / 16).astype(np.float32).reshape(4, 784)
    printed = np.array([float.fromhex(line) for line in done.stdout.split()], np.float32)
    np.testing.assert_array_equal(printed.reshape(4, 10), load(folder)(x))


@needs_cc
def test_two_artifacts_in_one_program(folder: Path, checked: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "m")
    shutil.copytree(checked, tmp_path / "pick")
    source = """
    #include <stdio.h>
    #include "m/m.h"
    #include "pick/pick.h"
    int main(void) {
      double x[6] = {1, 2, 3, 4, 5, 6}, rows[3];
      int64_t ids[1] = {1}, wrong[1] = {2};
      if (pick(x, ids, 0.5, rows, 1, 2, 1) || rows[0] != 2) return 1;
      int32_t code = pick(x, wrong, 0.5, rows, 1, 2, 1);
      printf("%d %s\\n%s\\n", code, pick_check_message(code), m_check_message(m_bad_argument));
      return m(NULL, NULL, NULL, 1, 1) == m_bad_argument ? 0 : 2;
    }"""
    done = run_c(source, tmp_path, "m/m.o", "pick/pick.o")
    assert done.returncode == 0
    assert re.match(r"1 W124: .*\na size is negative", done.stdout)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_header_is_also_cpp(folder: Path) -> None:
    for language in ("c", "c++"):
        subprocess.run(["g++" if language == "c++" else "cc", "-x", language, "-fsyntax-only",
                        "-Wall", "-Wextra", "-pedantic", "-Werror", "m.h"], cwd=folder, check=True)


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_symbols(folder: Path) -> None:
    def symbols(*options: str) -> set[str]:
        listed = subprocess.run(["nm", *options, "m.o"], cwd=folder, capture_output=True,
                                text=True, check=True).stdout
        return {line.split()[-1] for line in listed.splitlines()}

    libc = {"aligned_alloc", "bcmp", "clock_gettime", "close", "free", "getpid", "lseek", "madvise",
            "memcmp", "memcpy", "memset", "mmap", "munmap", "open", "pthread_create",
            "pthread_detach", "pthread_self", "pthread_sigmask", "sched_getaffinity",
            "sched_getcpu", "sched_setaffinity", "syscall"}
    assert symbols("-u") <= libc
    declared = set(re.findall(r"\b(m(?:_\w+)?)\(", (folder / "m.h").read_text()))
    assert symbols("-g", "--defined-only") == declared


@pytest.mark.skipif(shutil.which("ldd") is None, reason="no ldd")
def test_library_needs_libc_only(folder: Path) -> None:
    listed = subprocess.run(["ldd", "m.so"], cwd=folder, capture_output=True, text=True,
                            check=False).stdout
    names = set(re.findall(r"(\w[\w-]*)\.so", listed))
    assert names <= {"linux-vdso", "libc", "libm", "libpthread", "ld-linux-x86-64",
                     "ld-linux-aarch64"}


# -- through ctypes -----------------------------------------------------------------------------


def test_ctypes_without_weft(folder: Path) -> None:
    code = """
import ctypes, sys
sys.modules["weft"] = sys.modules["numpy"] = None
m = ctypes.CDLL(sys.argv[1] + "/m.so")
weights = ctypes.c_void_p()
assert m.m_load_weights(sys.argv[1].encode() + b"/m.safetensors", ctypes.byref(weights)) == 0
x, y = (ctypes.c_float * 1568)(*[0.5] * 1568), (ctypes.c_float * 20)()
assert m.m(weights, x, y, ctypes.c_int64(2), 1) == 0
print(*[value.hex() for value in y])
"""
    done = subprocess.run([sys.executable, "-I", "-c", code, str(folder)], capture_output=True,
                          text=True, check=True)
    y = load(folder)(np.full((2, 784), 0.5, np.float32))
    assert [float.fromhex(word) for word in done.stdout.split()] == y.ravel().tolist()


def library(folder: Path) -> ctypes.CDLL:
    found = ctypes.CDLL(str(folder / f"{folder.name}.so"))
    for name in ("version", "check_message"):
        getattr(found, f"{folder.name}_{name}").restype = ctypes.c_char_p
    return found


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def test_arena_of_the_caller(folder: Path) -> None:
    m, weights = library(folder), ctypes.c_void_p()
    assert m.m_load_weights(str(folder / "m.safetensors").encode(), ctypes.byref(weights)) == 0
    size = m.m_arena_bytes(ctypes.c_int64(9))
    assert size >= 9 * 128 * 4
    arena = np.full(size + 2, 7, np.uint8)
    x, y = batch(9), np.empty((9, 10), np.float32)
    assert m.m_with_arena(weights, pointer(x), pointer(y), ctypes.c_int64(9), 1,
                          pointer(arena[1:])) == 0
    np.testing.assert_array_equal(y, load(folder)(x))
    assert arena[0] == arena[-1] == 7  # nothing outside was touched
    m.m_free_weights(weights)


def test_a_hook_ends_a_call(tmp_path: Path) -> None:
    def endless(x: Any) -> Any:
        while x > 0:
            x = x + 0.0
        return x

    weft.export(endless, 1.0, path=tmp_path / "m")
    m, asked = library(tmp_path / "m"), list[int]()

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
    def hook(_: int) -> int:
        asked.append(threading.get_ident())
        return len(asked) == 3

    m.m_set_hook(hook)
    assert m.m(ctypes.c_double(1.0), pointer(np.empty(())), 1) == -6
    assert b"hook" in m.m_check_message(-6)
    assert asked == [threading.get_ident()] * 3
    m.m_set_hook(None)
    y = np.empty(())
    assert m.m(ctypes.c_double(-1.0), pointer(y), 1) == 0
    assert y == -1.0


def test_codes(folder: Path, tmp_path: Path) -> None:
    m, weights = library(folder), ctypes.c_void_p(1)
    file = tmp_path / "w"
    file.write_bytes(b"short")
    assert m.m_load_weights(str(file).encode(), ctypes.byref(weights)) == -3
    assert weights.value is None
    data = bytearray((folder / "m.safetensors").read_bytes())
    data[100] ^= 1  # somewhere in the header
    file.write_bytes(data)
    assert m.m_load_weights(str(file).encode(), ctypes.byref(weights)) == -3
    assert m.m_load_weights(str(tmp_path / "none").encode(), ctypes.byref(weights)) == -2
    m.m_free_weights(None)
    assert m.m_load_weights(str(folder / "m.safetensors").encode(), ctypes.byref(weights)) == 0
    assert m.m(weights, None, None, ctypes.c_int64(-1), 1) == -5
    assert m.m_arena_bytes(ctypes.c_int64(-1)) == 0
    assert b"negative" in library(folder).m_check_message(-5)
    m.m_free_weights(weights)


def test_values_of_the_weights_may_be_others(folder: Path, tmp_path: Path) -> None:
    """Of a file that is named; in the folder itself, nobody could tell them from damage."""
    path, other = copied(folder, tmp_path), tmp_path / "retrained.safetensors"
    data = bytearray((path / "m.safetensors").read_bytes())
    data[8 + int.from_bytes(data[:8], "little"):] = bytes(
        len(data) - 8 - int.from_bytes(data[:8], "little"))
    other.write_bytes(data)
    assert not load(path, weights=other)(batch(2)).any()
    assert not weft.load(path, weights=str(other))(batch(2)).any()
    assert load(path)(batch(2)).any()
    shutil.copy(other, path / "m.safetensors")
    with pytest.raises(Error, match=r"W403.*m\.safetensors is not what was written"):
        load(path)


# -- linkers ------------------------------------------------------------------------------------


def test_own_linker(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link.shutil, "which", lambda name: None)
    path = copied(folder, tmp_path)
    (path / "m.so").unlink()
    try:
        link.link_shared(path / "m.o", path / "m.so")
    except Error as problem:
        assert problem.code == "W404"
        pytest.skip("the linker is for x86-64")
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"]["m.so"] = digest(path / "m.so")
    (path / "manifest.json").write_text(json.dumps(sealed(manifest)))
    x = batch(500)
    np.testing.assert_array_equal(load(path, threads=2)(x), load(folder)(x))


def test_own_linker_refuses_what_it_does_not_know(checked: Path) -> None:
    for image in (b"\x7fELF\x01" + bytes(60), bytes(64)):
        with pytest.raises(elf.UnlinkableError):
            elf.link(image, "x.so")


def test_broken_linker_is_not_the_end(
    checked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link.shutil, "which", lambda name: "/bin/false")
    try:
        link.link_shared(checked / "pick.o", tmp_path / "pick.so")
    except Error as problem:
        assert "/bin/false failed" in str(problem)  # not on x86-64
    else:
        assert (tmp_path / "pick.so").is_file()


# -- state, names and nests ---------------------------------------------------------------------


def counter(b: Builder, x: Any) -> Any:
    """Adds x to the variable ``total`` and returns it with the old value of ``w`` added."""
    state = b.graph.variables
    state["total"], state["w"] = x.type, x.type
    total = b.read_var(var="total", type=x.type)
    new = b.add(total, x)
    b.assign_var(new, var="total", type=x.type)
    return b.add(new, b.read_var(var="w", type=x.type))


@pytest.fixture(scope="module")
def stateful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    weights = {"total": np.full(3, 10.0), "w": np.full(3, 0.5)}
    path = tmp_path_factory.mktemp("artifacts") / "counter"
    return write_artifact(job(graph(counter, "x:f64[3]"), 1, weights=weights), path)


def test_assigned_variables_are_state(stateful: Path) -> None:
    first, second = load(stateful), load(stateful)
    x = np.ones(3)
    for step in (1, 2, 3):
        np.testing.assert_array_equal(first(x), np.full(3, 10.5 + step))
    np.testing.assert_array_equal(first.variables["total"], np.full(3, 13.0))
    np.testing.assert_array_equal(second.variables["total"], np.full(3, 10.0))
    assert list(first.variables) == ["total"]  # w is a weight


def test_assigned_variables_in_c_are_arguments(stateful: Path) -> None:
    c, weights = library(stateful), ctypes.c_void_p()
    file = stateful / "counter.safetensors"
    assert c.counter_load_weights(str(file).encode(), ctypes.byref(weights)) == 0
    x, y, new, newer = (np.ones(3) for _ in range(4))
    assert c.counter(weights, pointer(x), None, pointer(y), pointer(new), 1) == 0
    assert c.counter(weights, pointer(x), pointer(new), pointer(y), pointer(newer), 1) == 0
    assert (new[0], newer[0], y[0]) == (11.0, 12.0, 12.5)
    text = (stateful / "counter.h").read_text()
    assert "const double *total,  /* f64[3]; NULL: the value in the weights file */" in text
    assert "double *new_total,  /* f64[3], written: the new value of the variable" in text


def test_variable_without_a_value(tmp_path: Path) -> None:
    with pytest.raises(Error, match=r"W302.*'total'"):
        write_artifact(job(graph(counter, "x:f64[3]"), 1), tmp_path / "counter")
    assert list(tmp_path.iterdir()) == []


NESTS = [
    {"b": 1, "a": (2, None, [3])}, Point(1, {"k": 2}), Pair([1, 2], None), [], 5, {1: 2, 2: 3},
]


@pytest.mark.parametrize("nest", NESTS, ids=str)
def test_nests_survive_json(nest: Any) -> None:
    leaves, structure = tree.flatten(nest)
    written = json.loads(json.dumps(describe(structure, "x")))
    found: list[Any] = []
    read = structure_of(written)
    assert describe(read, "x") == written
    collect(read, nest, "x", found)
    assert found == leaves
    again = tree.unflatten(read, leaves)
    if isinstance(nest, Pair):
        assert (type(again).__name__, again.left, again.right) == ("Pair", [1, 2], None)
    else:
        assert again == nest
        assert type(again).__name__ == type(nest).__name__


def test_manifests_are_read_as_they_were_written() -> None:
    """The text of a nest is a format: artifacts that lie about must load."""
    text = {"dict": [["w", {"list": ["*", None]}], [2, {"tuple": []}],
                     ["p", {"namedtuple": [["x", "*"], ["_1", "*"]], "name": "Point"}],
                     ["d", {"dataclass": [["left", "*"]], "name": "Pair"}],
                     ["mode", {"static": "'relu'"}]]}
    read = structure_of(text)
    assert describe(read, "x") == text and read.count == 4
    assert tree.paths(read) == ["['w'][0]", "['p'].x", "['p']._1", "['d'].left"]
    point = namedtuple("point", ["x", "_1"], rename=True)
    given = {"w": (1, None), 2: [], "p": point(2, 3), "d": Pair(4, 5), "mode": "relu"}
    found: list[Any] = []
    collect(read, given, "x", found)
    assert found == [1, 2, 3, 4]
    for change, message in (({"mode": "tanh"}, r"x\['mode'\] is 'tanh', but 'relu' was compiled"),
                            ({"p": (2, 3)}, r"x\['p'\] has no field 'x': a tuple of 2")):
        with pytest.raises(Error, match=f"W102: {message}"):
            collect(read, given | change, "x", [])


def test_any_object_with_the_fields_will_do() -> None:
    read = structure_of(describe(tree.structure(Pair(1, 2)), "x"))
    found: list[Any] = []
    collect(read, make_dataclass("Other", ["right", "left"])("r", "l"), "x", found)
    assert found == ["l", "r"]


@pytest.mark.parametrize(("wrong", "message"), [
    ({"a": (1, None, [2])}, "x must be a dict with the keys 'b', 'a', got dict with 'a'"),
    ({"a": (1, None, [2, 3]), "b": 4}, r"x\['a'\]\[2\] must be a list of 1, got a list of 2"),
    ({"a": (1, 0, [2]), "b": 4}, r"x\['a'\]\[1\] must be None"),
    (3, "x must be a dict"),
])
def test_other_nests_are_refused(wrong: Any, message: str) -> None:
    read = structure_of(describe(tree.structure(NESTS[0]), "x"))
    with pytest.raises(Error, match=message) as caught:
        collect(read, wrong, "x", [])
    assert caught.value.code == "W102"


def test_classes_a_manifest_cannot_describe() -> None:
    class Own:
        pass

    tree.register(Own, lambda own: ((1,), None), lambda meta, children: Own())
    with pytest.raises(Error, match="W112"):
        describe(tree.structure(Own()), "x")


def test_public_export(tmp_path: Path) -> None:
    w, bias = np.arange(12, dtype=np.float32).reshape(4, 3), weft.Variable(np.float32(1))

    @weft.compile(static_argnames="mode")
    def layer(p: Any, scale: float, *, mode: str = "relu") -> Any:
        y = (p["x"] @ w + bias) * scale
        return {"y": np.maximum(y, 0) if mode == "relu" else y, "all": (np.sum(y), scale * 2)}

    path = weft.export(layer, {"x": "f32[b,4]"}, 2.0, path=tmp_path / "layer")
    loaded, x = weft.load(path), np.ones((2, 4), np.float32)
    wanted, found = layer({"x": x}, 3.0), loaded({"x": x}, scale=3.0)
    np.testing.assert_array_equal(found["y"], wanted["y"])
    assert found["all"] == wanted["all"]
    assert type(found["all"][1]) is float
    assert loaded.inputs == ["p['x']", "scale"]
    assert loaded.outputs == ["y", "all[0]", "all[1]"]
    assert list(found) == list(wanted) == ["y", "all"]
    assert isinstance(loaded, Loaded)
    assert re.search(r"float \*p_x,.*\n\s+double scale,", (path / "layer.h").read_text())


def test_variables_as_arguments_are_weights(tmp_path: Path) -> None:
    v = weft.Variable(np.arange(3.0), name="given")
    path = weft.export(lambda v, x: v * x, v, "f64[3]", path=tmp_path / "scaled")
    loaded, x = load(path), np.ones(3)
    assert loaded.inputs == ["x"]
    np.testing.assert_array_equal(loaded(None, x), v.numpy())
    np.testing.assert_array_equal(loaded(x=x), v.numpy())
    with pytest.raises(Error, match=r"W102.*v must be None"):
        loaded(x, x)


def test_variable_that_is_only_written(tmp_path: Path) -> None:
    last = weft.Variable(np.zeros(3), name="last_seen")

    def remember(x: Any) -> Any:
        last.assign(x)
        return {"new_last_seen": x * 2}  # which is also what its C result would be called

    loaded = load(weft.export(remember, "f64[3]", path=tmp_path / "remember"))
    x = np.arange(3.0)
    np.testing.assert_array_equal(loaded(x)["new_last_seen"], 2 * x)
    np.testing.assert_array_equal(loaded.run("new_last_seen", {"x": x}), 2 * x)
    np.testing.assert_array_equal(loaded.variables["last_seen"], x)


def test_training_goes_on_where_it_was_exported(tmp_path: Path) -> None:
    w = weft.Variable(np.zeros((4, 2), np.float32), name="trained")

    def loss(x: Any, y: Any) -> Any:
        return np.mean((x @ w - y) ** 2)

    @weft.compile
    def step(x: Any, y: Any) -> Any:
        return weft.optim.SGD(0.1).minimize(loss, [w], x, y)

    rng = np.random.default_rng(0)
    x, y = rng.random((8, 4), np.float32), rng.random((8, 2), np.float32)
    step(x, y)
    loaded = load(weft.export(step, "f32[8,4]", "f32[8,2]", path=tmp_path / "step"))
    for _ in range(3):
        assert loaded(x, y) == step(x, y)
    np.testing.assert_array_equal(loaded.variables["trained"], w.numpy())


def test_threads_follow_the_process(folder: Path) -> None:
    free, fixed = load(folder), load(folder, threads=3)
    before = free.threads
    try:
        weft.set_num_threads(2)
        assert (free.threads, fixed.threads) == (2, 3)
    finally:
        weft.set_num_threads(before)


def test_objects_for_other_machines() -> None:
    arm = Machine("cpu", "generic", "aarch64-unknown-linux-gnu", "", 128, 32, 64 << 10, 1 << 20)
    plan = Stages(MLP, Options()).plan_for(arm)
    sources = (Source("x"), *(Source(offset=64 * at) for at in range(4)))
    artifact = Artifact("m", plan, arm, sources, ("y",), (("b", "b"),),
                        WeightsFile(1 << 20, bytes(64)), "text")
    assert compile_object(emit_artifact(artifact), arm).object[18] == 183  # EM_AARCH64


def test_full_pipeline_of_llvm(tmp_path: Path) -> None:
    names = ("x",)
    high = ExportJob(Stages(MLP, Options(opt=3)), (tree.LEAF,), tree.LEAF, names, weights=WEIGHTS)
    x = batch(40)
    y = load(write_artifact(high, tmp_path / "high"))(x)
    np.testing.assert_allclose(y, run_graph(MLP, [x, *WEIGHTS.values()])[0], rtol=1e-4, atol=1e-4)


def test_c_names() -> None:
    assert c_names(["x", "p['w'].0", "int", "2d", "x", "größe", ""]) == [
        "x", "p_w_0", "int_", "x2d", "x_1", "gr_e", "x_2"]
    assert c_names(["b"], ["b"]) == ["b_1"]


def test_folder_names_become_c_names(tmp_path: Path) -> None:
    made = graph(lambda b, x: b.mul(x, 2.0), "x:f32[3]")
    for folder, name in (("my-model 1.2", "my_model_1_2"), ("7b", "x7b"), ("main", "main_")):
        path = write_artifact(job(made, 1), tmp_path / folder)
        assert load(path).name == name
        assert (path / f"{folder}.h").is_file()
        np.testing.assert_array_equal(load(path)(np.ones(3, np.float32)), 2 * np.ones(3))


def test_size_that_no_argument_tells(tmp_path: Path) -> None:
    made = graph(lambda b, x: b.mul(x, 2.0), "x:f32[2*n]")
    with pytest.raises(Error, match=r"W105.*size n"):
        write_artifact(job(made, 1), tmp_path / "m")


@pytest.mark.parametrize("shape", [(3, 2), (4, 3), (3, 1), (5, 0)])
def test_size_that_stands_before_its_symbol_is_checked(
    tmp_path: Path, shape: tuple[int, int]
) -> None:
    """What ``2*b`` does not fit was read as ``b`` said: outside of the array."""
    path = weft.export(lambda x: x[:x.shape[0] // 2] - x[x.shape[0] // 2:], "f32[2*b,b]",
                       path=tmp_path / "halves")
    loaded, x = weft.load(path), np.arange(18, dtype=np.float32).reshape(6, 3)
    np.testing.assert_array_equal(loaded(x), x[:3] - x[3:])
    with pytest.raises(weft.Error, match=r"W105.*2\*b is"):
        loaded(np.zeros(shape, np.float32))


def test_a_library_that_cannot_be_loaded(folder: Path, tmp_path: Path) -> None:
    path = copied(folder, tmp_path)
    (path / "m.so").write_bytes(b"no library at all")
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"]["m.so"] = digest(path / "m.so")
    (path / "manifest.json").write_text(json.dumps(sealed(manifest)))
    with pytest.raises(Error, match="W403: the library of the artifact cannot be loaded: "):
        load(path)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_weights_that_do_not_fit_into_memory_have_a_code(tmp_path: Path) -> None:
    w = np.ones(1 << 22)
    weft.export(weft.compile(lambda x: np.sum(x[0] * w)), "f64[3]", path=tmp_path / "large")
    run = python("""
import ctypes, resource, sys
m = ctypes.CDLL(sys.argv[1] + "/large.so")
weights = ctypes.c_void_p(1)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20),) * 2)
print(m.large_load_weights(sys.argv[1].encode() + b"/large.safetensors", ctypes.byref(weights)),
      weights.value)
""", str(tmp_path / "large"))
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [str(STATUS["no_memory"][0]), "None"]


def test_the_header_shows_how_to_call_it(folder: Path, checked: Path) -> None:
    weighted, plain = (folder / "m.h").read_text(), (checked / "pick.h").read_text()
    lines = [line.removeprefix(" * ").strip() for line in weighted.splitlines()]
    at = lines.index("m_weights *weights;")
    assert lines[at:at + 5] == [
        "m_weights *weights;", 'int32_t code = m_load_weights("m.safetensors", &weights);',
        "if (code == 0) code = m(weights, x, y, b, 1);",
        'if (code != 0) fprintf(stderr, "%s\\n", m_check_message(code));',
        "m_free_weights(weights);"]
    assert "pick_weights" not in plain and "int32_t code = pick(" in plain
