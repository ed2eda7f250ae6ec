"""The C header of an artifact: plain C99, for people to read.

The comments say all there is to know: how to compile and call, the meaning, shape and dtype of
every argument, who owns memory, and what may run at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import MappingProxyType

from .object import STATUS, Artifact

# Element types in C; of those that C99 lacks, the bits.
C_TYPES = MappingProxyType({
    "bool": "uint8_t", "i8": "int8_t", "u8": "uint8_t", "i16": "int16_t", "u16": "uint16_t",
    "i32": "int32_t", "u32": "uint32_t", "i64": "int64_t", "u64": "uint64_t",
    "f8e4m3": "uint8_t", "f8e5m2": "uint8_t", "f16": "uint16_t", "bf16": "uint16_t",
    "f32": "float", "f64": "double", "c64": "float", "c128": "double",
})

_RESERVED = frozenset(word for line in """
    alignas alignof and asm auto bool break case catch char class compl const constexpr continue
    default delete do double else enum explicit export extern false float for friend goto if inline
    int long main mutable namespace new not nullptr operator or private protected public register
    restrict return short signed sizeof static struct switch template this throw true try typedef
    typeid typename typeof union unsigned using virtual void volatile wchar_t while xor
    weights threads arena args dims aligned_alloc bcmp close fmod fmodf free getpid lseek madvise
    memcmp memcpy memmove memset mmap munmap open pthread_create pthread_detach pthread_sigmask
    sched_getaffinity sched_getcpu sched_setaffinity syscall
""".splitlines() for word in line.split())


def c_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Different C identifiers close to ``names``: ``p['w'].0`` becomes ``p_w_0``."""
    used, result = set(taken), []
    for name in names:
        stem = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_") or "x"
        stem = f"x{stem}" if stem[0].isdigit() else stem
        stem = f"{stem}_" if stem in _RESERVED else stem
        unique, count = stem, 1
        while unique in used:
            unique, count = f"{stem}_{count}", count + 1
        used.add(unique)
        result.append(unique)
    return result


def header_text(artifact: Artifact, file: str) -> str:
    """The header of ``artifact``, whose files are ``file``.h, ``file``.o and so on."""
    guard = f"WEFT_{artifact.name.upper()}_H"
    parts = [
        _introduction(artifact, file),
        f"#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <stdint.h>",
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        _codes(artifact),
        *([_weights(artifact)] if artifact.weights is not None else []),
        _program(artifact),
        _others(artifact),
        "#ifdef __cplusplus\n}\n#endif\n\n#endif",
    ]
    return "\n\n".join(parts) + "\n"


def _comment(lines: Iterable[str]) -> str:
    text = "\n".join(f" * {line}".rstrip() for line in lines)
    return f"/{text[1:]}\n */" if "\n" in text else f"/{text[1:]} */"


def _introduction(artifact: Artifact, file: str) -> str:
    name = artifact.name
    handle = "weights, " if artifact.weights is not None else ""
    passed = [label for label, _, _ in artifact.arguments]
    passed += [*artifact.results, *(label for _, label in artifact.dims), "1"]
    call = f"{name}({handle}{', '.join(passed)})"
    lines = [f"{name}: {artifact.version}", "", f"    cc main.c {file}.o -lm -lpthread", ""]
    if artifact.weights is not None:
        lines += [
            f"    {name}_weights *weights;",
            f'    int32_t code = {name}_load_weights("{file}.safetensors", &weights);',
            f"    if (code == 0) code = {call};",
        ]
    else:
        lines.append(f"    int32_t code = {call};")
    lines.append(f"    if (code != 0) fprintf(stderr, \"%s\\n\", {name}_check_message(code));")
    if artifact.weights is not None:
        lines.append(f"    {name}_free_weights(weights);")
    lines += [
        "",
        "Arrays are dense and row-major, and aligned as their elements are. Results must not",
        "overlap each other or an argument. After an error their contents are undefined.",
        "All functions may be called from any number of threads at once. A call that may use",
        "several threads shares one pool of workers, made by the first such call and kept until",
        "the process ends; threads = 1 makes none. The bits of the results never depend on it.",
        "As a shared library: cc -shared -o "
        f"{file}.so {file}.o -lm -lpthread -Wl,-z,nodelete",
    ]
    return _comment(lines)


def _codes(artifact: Artifact) -> str:
    name = artifact.name
    items = [f"  {name}_{key} = {code}{',' if at < len(STATUS) else ' '}  /* {text} */"
             for at, (key, (code, text)) in enumerate(STATUS.items(), 1)]
    width = max(item.index("/*") for item in items)
    items = [item.replace("  /*", " " * (width - item.index("/*") + 2) + "/*") for item in items]
    checks = [f"  {number}: {site.code}: {_plain(site.message)}"
              for number, site in enumerate(artifact.plan.checks, 1)]
    title = ["Functions return 0, one of these, or the number of a run-time check that failed:"
             if checks else "Functions return 0 or one of these.", *checks]
    return _comment(title) + "\nenum {\n" + "\n".join(items) + "\n};"


def _weights(artifact: Artifact) -> str:
    name = artifact.name
    return "\n".join([
        _comment([
            "The weights file, mapped into memory: loading is quick, processes share the pages,",
            "and it may serve any number of threads. It must be the file written with this",
            "program, or one with the same header, that is, only other values.",
        ]),
        f"typedef struct {name}_weights {name}_weights;",
        f"int32_t {name}_load_weights(const char *safetensors_path, {name}_weights **weights);",
        f"void {name}_free_weights({name}_weights *weights);",
    ])


def _program(artifact: Artifact) -> str:
    name = artifact.name
    params: list[tuple[str, str]] = []
    if artifact.weights is not None:
        params.append((f"const {name}_weights *weights", ""))
    inputs = zip(artifact.arguments, _optional(artifact), strict=True)
    for (label, type_, scalar), optional in inputs:
        spelled = C_TYPES[type_.dtype.name]
        note = f"{type_}" + ("; NULL: the value in the weights file" if optional else "")
        params.append((f"{spelled} {label}" if scalar else f"const {spelled} *{label}", note))
    for label, slot in zip(artifact.results, artifact.plan.results, strict=True):
        note = f"{slot.type}, written"
        if slot.var:
            note += f": the new value of the variable '{_plain(slot.var)}'"
        params.append((f"{C_TYPES[slot.type.dtype.name]} *{label}", note))
    params += [(f"int64_t {label}", f"the size {symbol}") for symbol, label in artifact.dims]
    params.append(("int32_t threads", "at most so many, the caller included"))
    dims = ", ".join(f"int64_t {label}" for _, label in artifact.dims) or "void"
    return "\n".join([
        _comment(["Run the program once. Scratch memory is allocated and freed inside."]),
        _prototype(name, params),
        "",
        _comment([f"The same, with {name}_arena_bytes bytes of scratch memory of the caller; one",
                  "block serves one call at a time."]),
        f"size_t {name}_arena_bytes({dims});",
        _prototype(f"{name}_with_arena", [*params, ("void *arena", "")]),
    ])


def _optional(artifact: Artifact) -> list[bool]:
    return [source.offset is not None for source in artifact.sources if source.argument]


def _prototype(name: str, params: list[tuple[str, str]]) -> str:
    lines = [f"int32_t {name}("]
    for at, (declaration, note) in enumerate(params, 1):
        comma = "," if at < len(params) else ""
        lines.append(f"    {declaration}{comma}" + (f"  /* {note} */" if note else ""))
    return "\n".join([*lines, ");"])


def _others(artifact: Artifact) -> str:
    name = artifact.name
    handle = f"const {name}_weights *weights, " if artifact.weights is not None else ""
    pointers = [*(label for label, _, _ in artifact.arguments), *artifact.results]
    sizes = ", ".join(symbol for symbol, _ in artifact.dims) or "none"
    return "\n".join([
        _comment([
            "The same for callers that build argument lists at run time. args: a pointer to each",
            f"of {', '.join(pointers)}; dims: {sizes}; arena may be NULL.",
        ]),
        f"int32_t {name}_call({handle}void *const *args, const int64_t *dims,",
        f"    {' ' * len(name)}         void *arena, int32_t threads);",
        "",
        _comment([
            "Long calls of all threads ask this function every 50 ms or so, in the thread that has",
            f"made the call, whether they are to end: not 0 ends one with {name}_ended. What it is",
            "given is of no use to it. NULL, as it is at first: nothing ends a call.",
        ]),
        f"void {name}_set_hook(int32_t (*hook)(void *));",
        "",
        _comment([f"{name}_call with a hook of its own in place of that one."]),
        f"int32_t {name}_call_with_hook({handle}void *const *args, const int64_t *dims,",
        f"    {' ' * len(name)}                   void *arena, int32_t threads,",
        f"    {' ' * len(name)}                   int32_t (*hook)(void *));",
        "",
        _comment(["0 if this CPU can run the program; the other functions ask, too."]),
        f"int32_t {name}_check_cpu(void);",
        "",
        _comment(["What a code means, and what this program is; constant texts."]),
        f"const char *{name}_check_message(int32_t code);",
        f"const char *{name}_version(void);",
    ])


def _plain(text: str) -> str:
    """Text that cannot end a comment."""
    return text.replace("*/", "* /").replace("\n", " ")

