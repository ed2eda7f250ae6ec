"""The shared library that the own linker writes, as ``readelf`` sees it and beside that of ``ld``.

That it loads says little: a loader looks at a fraction of it, and debuggers at the rest.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.codegen import elf
from weft.codegen.cpu.cpu_check import is_x86
from weft.codegen.cpu.jit import cpu_target

pytestmark = pytest.mark.skipif(
    not is_x86(cpu_target()) or not shutil.which("readelf") or not shutil.which("ld"),
    reason="needs binutils, on x86-64")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One object linked by Weft and by ``ld``."""
    folder = tmp_path_factory.mktemp("elf") / "m"
    w = np.ones((784, 10), np.float32)
    weft.export(weft.compile(lambda x: np.tanh(x @ w)), "f32[b,784]", path=folder)
    own, other = folder / "own.so", folder / "other.so"
    own.write_bytes(elf.link((folder / "m.o").read_bytes(), "m.so"))
    subprocess.run(["ld", "-shared", "-o", other, folder / "m.o", "-lc"], check=True)
    return own, other


def shown(what: str, path: Path) -> str:
    run = subprocess.run(["readelf", "-W", what, path], capture_output=True, text=True, check=True)
    assert not run.stderr
    return run.stdout


def sections(path: Path) -> dict[str, tuple[int, int, str]]:
    """Address, size and flags by name."""
    row = r"\[ *\d+\] (\.\S+) +\S+ +([0-9a-f]{16}) [0-9a-f]+ ([0-9a-f]+) [0-9a-f]{2} +([A-Z]*) "
    return {name: (int(address, 16), int(size, 16), flags)
            for name, address, size, flags in re.findall(row, shown("-S", path))}


def segments(path: Path) -> list[tuple[str, int, int, int, int, str]]:
    """Type, offset, address, size in the file and in memory, and flags."""
    row = r"^ +([A-Z_]+) +0x(\S+) 0x(\S+) 0x\S+ 0x(\S+) 0x(\S+) ([RWE ]{3}) "
    return [(kind, *(int(word, 16) for word in words), flags.replace(" ", ""))  # type: ignore[misc]
            for kind, *words, flags in re.findall(row, shown("-l", path), re.MULTILINE)]


def test_readelf_finds_nothing_wrong(libraries: tuple[Path, Path]) -> None:
    text = shown("-a", libraries[0])
    assert "Warning" not in text and "<corrupt" not in text and "<unknown" not in text
    assert "Library soname: [m.so]" in text
    assert re.search(r"Flags: NOW NODELETE", text)


def test_segments_cover_the_sections_and_none_is_written_and_run(
    libraries: tuple[Path, Path]
) -> None:
    found, placed = segments(libraries[0]), sections(libraries[0])
    loads = [segment for segment in found if segment[0] == "LOAD"]
    assert all(offset % elf.PAGE == address % elf.PAGE for _, offset, address, *_ in loads)
    assert all(set(flags) != set("RWE") for *_, flags in found)
    assert [flags for kind, *_, flags in found if kind == "GNU_STACK"] == ["RW"]
    for name, (address, size, flags) in placed.items():
        if "A" in flags:
            wanted = {"R", *("W" if "W" in flags else ""), *("E" if "X" in flags else "")}
            assert [set(segment[5]) for segment in loads
                    if segment[2] <= address and address + size <= segment[2] + segment[4]
                    ] == [wanted], name
    relro = next(segment for segment in found if segment[0] == "GNU_RELRO")
    for name in (".dynamic", ".got"):
        address, size, _ = placed[name]
        assert relro[2] <= address and address + size <= relro[2] + relro[4]


def test_the_dynamic_section_points_at_the_tables(libraries: tuple[Path, Path]) -> None:
    placed, text = sections(libraries[0]), shown("-d", libraries[0])
    tags = dict(re.findall(r"\((\w+)\) +(\S+)", text))
    for tag, name in (("HASH", ".hash"), ("STRTAB", ".dynstr"), ("SYMTAB", ".dynsym"),
                      ("RELA", ".rela.dyn")):
        assert int(tags[tag], 16) == placed[name][0]
    assert int(tags["STRSZ"]) == placed[".dynstr"][1]
    assert int(tags["RELASZ"]) == placed[".rela.dyn"][1]
    assert (tags["SYMENT"], tags["RELAENT"]) == ("24", "24")


def test_symbols_are_those_that_ld_exports(libraries: tuple[Path, Path]) -> None:
    def symbols(path: Path) -> set[tuple[str, ...]]:
        row = r"\d+: [0-9a-f]{16} +(\d+) (\w+) +(\w+) +(\w+) +(\w+) (\S+)"
        return {(*words, "here" if place != "UND" else place, name) for *words, place, name
                in re.findall(row, shown("--dyn-syms", path))}

    own, other = map(symbols, libraries)
    exported = {row for row in other if row[4] == "here"}
    assert {row for row in own if row[4] == "here"} == exported and exported
    assert {row[5] for row in own - exported} == {row[5].partition("@")[0]
                                                   for row in other - exported}


def test_sections_are_aligned_and_none_is_for_unwinding(libraries: tuple[Path, Path]) -> None:
    rows = re.findall(r"\[ *\d+\] (\.\S+) +\S+ +([0-9a-f]{16}) .* (\d+)$",
                      shown("-S", libraries[0]), re.MULTILINE)
    assert {".got", ".dynamic", ".text"} <= {name for name, *_ in rows}
    for name, address, align in rows:
        assert int(align) & int(align) - 1 == 0 and int(address, 16) % max(int(align), 1) == 0, name
    assert ".eh_frame" not in {name for name, *_ in rows}


def test_every_relocation_says_something(libraries: tuple[Path, Path]) -> None:
    rows = re.findall(r"^[0-9a-f]{16} +[0-9a-f]{16} (R_X86_64_\w+)", shown("-r", libraries[0]),
                      re.MULTILINE)
    assert len(rows) * 24 == sections(libraries[0])[".rela.dyn"][1]
    assert set(rows) <= {"R_X86_64_RELATIVE", "R_X86_64_GLOB_DAT", "R_X86_64_64"} and rows
