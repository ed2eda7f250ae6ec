"""The smallest linker that will do: one object file of ours to a shared library, for x86-64.

Export must work where there is no compiler and no linker, and what our objects need is little:

    read-only   headers, symbol and hash tables, relocations, .rodata
    code        .text, and for each function of libc a jump through its slot
    relro       dynamic section, slots (the global offset table), .data.rel.ro
    data        .data, .bss

File offsets equal addresses, each group starts a page, and all symbols are bound when the library
is loaded. It names no libc: that of the process serves. Numbers are those of the System V ABI
(gABI chapters 4 and 5, and the AMD64 supplement).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..ir.record import field, record

PAGE = 0x1000

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_DYNAMIC = struct.Struct("<QQ")

_SYMTAB, _RELATIONS, _NOBITS, _UNWIND = 2, 4, 8, 0x70000001       # section types
_WRITE, _ALLOC, _EXEC = 1, 2, 4                                   # section flags
_ABS64, _PC32, _PLT32, _GOTPCREL, _GLOB_DAT, _RELATIVE = 1, 2, 4, 9, 6, 8
_SLOTTED = (_GOTPCREL, 41, 42)                                    # GOTPCRELX, REX_GOTPCRELX
_RELRO_PREFIX = ".data.rel.ro"
_STUB = 8                                                         # jmp *slot(%rip), padded


class UnlinkableError(Exception):
    """The object holds something that this linker does not know."""


@record
class _Section:
    name: str
    type: int
    flags: int
    data: bytes | bytearray
    size: int
    link: int
    info: int
    align: int
    address: int = 0


@record(frozen=True)
class _Symbol:
    name: str
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def exported(self) -> bool:
        """Global, defined and visible."""
        return self.info >> 4 == 1 and self.section != 0 and self.other & 3 == 0


@record
class _Group:
    """Sections that share a segment, in the order of their addresses."""

    label: str
    flags: int  # of the program header: 4 read, 2 write, 1 execute
    sections: list[_Section] = field(default_factory=list)

    def place(self, address: int) -> int:
        """Give addresses from ``address`` on; the end. What has no bits in the file comes last."""
        self.sections.sort(key=lambda section: section.type == _NOBITS)
        for section in self.sections:
            address = _aligned(address, section.align)
            section.address = address
            address += section.size
        return address


def _aligned(address: int, align: int) -> int:
    return -(-address // max(align, 1)) * max(align, 1)


def link(image: bytes, soname: str) -> bytes:
    """The shared library of a relocatable object; raises UnlinkableError."""
    return _Linker(image, soname).link()


def _text(table: bytes, at: int) -> str:
    return table[at:table.index(b"\0", at)].decode()


def _read(image: bytes) -> tuple[list[_Section], list[_Symbol]]:
    fields = _HEADER.unpack_from(image)
    if fields[0][:6] != b"\x7fELF\x02\x01" or fields[1:3] != (1, 62):
        raise UnlinkableError("not an x86-64 object file")
    offset, count, names = fields[6], fields[12], fields[13]
    rows = [_SECTION.unpack_from(image, offset + _SECTION.size * at) for at in range(count)]
    strings = image[rows[names][4]:rows[names][4] + rows[names][5]]
    sections = [
        _Section(_text(strings, row[0]), row[1], row[2],
                 bytearray() if row[1] == _NOBITS else bytearray(image[row[4]:row[4] + row[5]]),
                 row[5], row[6], row[7], row[8]) for row in rows]
    table = next((section for section in sections if section.type == _SYMTAB), None)
    if table is None:
        raise UnlinkableError("no symbols")
    labels = bytes(sections[table.link].data)
    symbols = [_Symbol(_text(labels, name), info, other, section, value, size)
               for name, info, other, section, value, size in _SYMBOL.iter_unpack(table.data)]
    return sections, symbols


class _Linker:
    def __init__(self, image: bytes, soname: str) -> None:
        self.sections, self.symbols = _read(image)
        self.soname = soname
        self.relations = list(self._relations())
        self.outside = list(dict.fromkeys(
            symbol for _, _, symbol, _ in self.relations if not symbol.section))
        self.exported = [symbol for symbol in self.symbols if symbol.exported]
        slotted = [symbol for _, kind, symbol, _ in self.relations if kind in _SLOTTED]
        self.slots = {
            symbol: at for at, symbol in enumerate(dict.fromkeys([*self.outside, *slotted]))}
        self.dynamic_relations: list[bytes] = []

    def _kept(self) -> Iterator[tuple[int, _Section]]:
        for at, section in enumerate(self.sections):
            if section.flags & _ALLOC and section.type != _UNWIND and section.size:
                yield at, section

    def _relations(self) -> Iterator[tuple[tuple[_Section, int], int, _Symbol, int]]:
        """((section, offset), type, symbol, addend) of what is to be filled in."""
        kept = dict(self._kept())
        for section in self.sections:
            target = kept.get(section.info)
            if section.type == _RELATIONS and target is not None:
                for offset, info, addend in _RELA.iter_unpack(section.data):
                    yield (target, offset), info & 0xFFFFFFFF, self.symbols[info >> 32], addend

    def link(self) -> bytes:
        strings, numbers = self._strings()
        symbol_bytes = _SYMBOL.size * (1 + len(self.outside) + len(self.exported))
        tables = {
            ".hash": self._hash(),
            ".dynsym": bytes(symbol_bytes),
            ".dynstr": strings,
            ".rela.dyn": bytes(_RELA.size * self._count()),
            ".plt": b"".join(b"\xff\x25" + bytes(_STUB - 2) for _ in self.outside),
            ".dynamic": bytes(_DYNAMIC.size * 12),
            ".got": bytes(8 * len(self.slots)),
        }
        made = {name: _Section(name, 1, 0, data, len(data), 0, 0, 8)
                for name, data in tables.items()}
        groups = self._groups(made)
        start = _HEADER.size + _PROGRAM.size * (len(groups) + 3)
        for group in groups:
            end = group.place(start)
            start = _aligned(end, PAGE)
        self._fill_stubs(made)
        self._fill_slots(made[".got"])
        for place, kind, symbol, addend in self.relations:
            self._apply(place, kind, symbol, addend, made)
        made[".rela.dyn"].data = b"".join(self.dynamic_relations)
        made[".dynsym"].data = self._symbol_table(numbers, groups)
        made[".dynamic"].data = self._dynamic(made, numbers[self.soname], len(strings))
        return _write(groups, made)

    def _groups(self, made: Mapping[str, _Section]) -> list[_Group]:
        first = [made[name] for name in (".hash", ".dynsym", ".dynstr", ".rela.dyn")]
        groups = [_Group("read", 4, first), _Group("code", 5, [made[".plt"]]),
                  _Group("relro", 6, [made[".dynamic"], made[".got"]]), _Group("data", 6)]
        read, code, relro, data = groups
        for _, section in self._kept():
            if section.flags & _EXEC:
                code.sections.append(section)
            elif not section.flags & _WRITE:
                read.sections.append(section)
            else:
                (relro if section.name.startswith(_RELRO_PREFIX) else data).sections.append(section)
        return [group for group in groups if group.sections]

    def _strings(self) -> tuple[bytes, dict[str, int]]:
        names = [symbol.name for symbol in (*self.outside, *self.exported)]
        table, numbers = bytearray(1), {}
        for name in (*names, self.soname):
            numbers[name] = len(table)
            table += name.encode() + b"\0"
        return bytes(table), numbers

    def _hash(self) -> bytes:
        """The hash table of the dynamic symbols, one bucket for about two of them."""
        names = [symbol.name for symbol in (*self.outside, *self.exported)]
        count = max(1, len(names) // 2)
        buckets, chains = [0] * count, [0] * (1 + len(names))
        for number, name in enumerate(names, 1):
            bucket = _hashed(name) % count
            chains[number], buckets[bucket] = buckets[bucket], number
        words = [count, len(chains), *buckets, *chains]
        return struct.pack(f"<{len(words)}I", *words)

    def _count(self) -> int:
        return len(self.slots) + sum(kind == _ABS64 for _, kind, _, _ in self.relations)

    def _address(self, symbol: _Symbol) -> int:
        if not 0 < symbol.section < len(self.sections):
            raise UnlinkableError(f"symbol {symbol.name} has no section")
        return self.sections[symbol.section].address + symbol.value

    def _fill_stubs(self, made: Mapping[str, _Section]) -> None:
        plt, got = made[".plt"], made[".got"]
        stubs = []
        for at, symbol in enumerate(self.outside):
            distance = got.address + 8 * self.slots[symbol] - (plt.address + _STUB * at + 6)
            stubs.append(b"\xff\x25" + struct.pack("<i", distance) + b"\xcc\xcc")
        plt.data = b"".join(stubs)

    def _fill_slots(self, got: _Section) -> None:
        for symbol, at in self.slots.items():
            if symbol.section:
                self._bind(got.address + 8 * at, _RELATIVE, 0, self._address(symbol))
            else:
                self._bind(got.address + 8 * at, _GLOB_DAT, self.outside.index(symbol) + 1, 0)

    def _bind(self, address: int, kind: int, symbol: int, addend: int) -> None:
        """Have the loader fill in an address."""
        self.dynamic_relations.append(_RELA.pack(address, symbol << 32 | kind, addend))

    def _apply(
        self, place: tuple[_Section, int], kind: int, symbol: _Symbol, addend: int,
        made: Mapping[str, _Section],
    ) -> None:
        section, offset = place
        here = section.address + offset
        if kind == _ABS64:
            if symbol.section:
                self._bind(here, _RELATIVE, 0, self._address(symbol) + addend)
            else:
                self._bind(here, _ABS64, self.outside.index(symbol) + 1, addend)
            return
        if kind in _SLOTTED:
            target = made[".got"].address + 8 * self.slots[symbol]
        elif kind in (_PC32, _PLT32):
            target = (self._address(symbol) if symbol.section else
                      made[".plt"].address + _STUB * self.outside.index(symbol))
        else:
            raise UnlinkableError(f"relocation of type {kind} in {section.name}")
        assert isinstance(section.data, bytearray)
        struct.pack_into("<i", section.data, offset, target + addend - here)

    def _symbol_table(self, numbers: Mapping[str, int], groups: Sequence[_Group]) -> bytes:
        placed = [section for group in groups for section in group.sections]
        rows = [bytes(_SYMBOL.size)]
        rows += [_SYMBOL.pack(numbers[s.name], 0x10, 0, 0, 0, 0) for s in self.outside]
        for symbol in self.exported:
            where = placed.index(self.sections[symbol.section]) + 1
            rows.append(_SYMBOL.pack(numbers[symbol.name], symbol.info, 0, where,
                                     self._address(symbol), symbol.size))
        return b"".join(rows)

    def _dynamic(self, made: Mapping[str, _Section], soname: int, strings: int) -> bytes:
        entries = [
            (14, soname), (4, made[".hash"].address), (5, made[".dynstr"].address),
            (6, made[".dynsym"].address), (10, strings), (11, _SYMBOL.size),
            (7, made[".rela.dyn"].address), (8, made[".rela.dyn"].size), (9, _RELA.size),
            (30, 8),             # bind now
            (0x6FFFFFFB, 9),     # now, and never unload: workers of the pool may be in the code
            (0, 0),
        ]
        return b"".join(_DYNAMIC.pack(*entry) for entry in entries)


def _hashed(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value


def _write(groups: Sequence[_Group], made: Mapping[str, _Section]) -> bytes:
    """The file: headers, the groups at their addresses, and a section table for other tools."""
    image = bytearray()
    programs: list[tuple[int, ...]] = []
    for at, group in enumerate(groups):
        start = 0 if at == 0 else group.sections[0].address // PAGE * PAGE
        size, memory = _extent(group, start)
        programs.append((1, group.flags, start, start, start, size, memory, PAGE))
        if group.label == "relro":
            programs.append((0x6474E552, 4, start, start, start, size, _aligned(memory, PAGE), 1))
    dynamic = made[".dynamic"]
    programs.append((2, 6, *[dynamic.address] * 3, dynamic.size, dynamic.size, 8))
    programs.append((0x6474E551, 6, 0, 0, 0, 0, 0, 16))  # the stack is not executable
    placed = [section for group in groups for section in group.sections]
    for section in placed:
        if section.type != _NOBITS:
            image += bytes(section.address - len(image)) + section.data
    names, rows = _section_table(placed, len(image))
    image += names
    table = _aligned(len(image), 8)
    image += bytes(table - len(image)) + b"".join(_SECTION.pack(*row) for row in rows)
    head = _HEADER.pack(b"\x7fELF\x02\x01\x01".ljust(16, b"\0"), 3, 62, 1, 0, _HEADER.size, table,
                        0, _HEADER.size, _PROGRAM.size, len(programs), _SECTION.size, len(rows),
                        len(rows) - 1)
    head += b"".join(_PROGRAM.pack(*program) for program in programs)
    image[:len(head)] = head
    return bytes(image)


def _extent(group: _Group, start: int) -> tuple[int, int]:
    """How many bytes a segment has in the file and in memory."""
    filled = [s.address + s.size for s in group.sections if s.type != _NOBITS]
    size = max(filled, default=start) - start
    return size, max(s.address + s.size for s in group.sections) - start


def _section_table(
    placed: Iterable[_Section], end: int
) -> tuple[bytes, list[tuple[int, ...]]]:
    """Names and rows of the section table; the names' own row is the last."""
    types = {".hash": (5, 2, 4), ".dynsym": (11, 3, 24), ".rela.dyn": (4, 2, 24),
             ".dynamic": (6, 3, 16), ".dynstr": (3, 0, 0)}
    names = bytearray(1)
    rows: list[tuple[int, ...]] = [(0,) * 10]
    order = [section.name for section in placed]
    for section in placed:
        type_, link, entry = types.get(section.name, (section.type, 0, 0))
        # The dynamic section and symbols use .dynstr, the hash and relocations .dynsym.
        linked = order.index({2: ".dynsym", 3: ".dynstr"}[link]) + 1 if link else 0
        own = {".dynamic": _WRITE, ".got": _WRITE, ".plt": _EXEC}.get(section.name, 0)
        flags = section.flags or _ALLOC | own
        info = 1 if section.name == ".dynsym" else 0
        rows.append((len(names), type_, flags, section.address, section.address, section.size,
                     linked, info, section.align, entry))
        names += section.name.encode() + b"\0"
    at = len(names)
    names += b".shstrtab\0"
    rows.append((at, 3, 0, 0, end, len(names), 0, 0, 1, 0))
    return bytes(names), rows
