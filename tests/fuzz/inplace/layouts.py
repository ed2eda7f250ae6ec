"""The arguments of a program, as the text of functions that make them anew: arrays of any layout,
in dicts, lists and objects, some of them the same array twice or with memory in common."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ..data import draw_array, literal

DTYPES = ("f8", "f8", "f8", "f4", "i4", "i8", "i8", "u1", "?", "c16")
SHAPES = ((3,), (4,), (2, 3), (3, 3), (1, 4), (2, 2, 3), (0,), (0, 3), (2, 3), (5,), ())
PLACES = ("x", "y", "w", "b", "m", "v")  # of arrays among the arguments


def _own(rng: random.Random, x: Any) -> list[str]:
    """Lines that make an array with memory of its own; ``{0}`` stands for its name."""
    text, dtype, shape = literal(x), x.dtype.str, x.shape
    kind = rng.choice(("C", "C", "C", "F", "turned", "strided", "backward", "column", "swapped",
                       "field", "bytes", "read-only"))
    if kind == "F":
        return [f"{{0}} = np.asfortranarray({text})"]
    if kind == "turned":
        return [f"{{0}} = np.ascontiguousarray({text}.T).T"]
    if kind == "swapped":
        return [f"{{0}} = {text}.astype({x.dtype.newbyteorder().str!r})"]
    if kind == "field":
        return [f"{{0}} = np.zeros({shape}, [('a', 'i1'), ('b', {dtype!r})])['b']",
                f"{{0}}[...] = {text}"]
    if kind == "bytes":
        return [f"{{0}} = np.zeros({x.nbytes + 1}, 'u1')[1:].view({dtype!r}).reshape({shape})",
                f"{{0}}[...] = {text}"]
    if kind == "strided" and shape:
        wide = tuple(2 * size for size in shape)
        return [f"{{0}} = np.zeros({wide}, {dtype!r})[{', '.join(['::2'] * len(shape))}]",
                f"{{0}}[...] = {text}"]
    if kind == "backward" and shape:
        return [f"{{0}} = np.zeros({shape}, {dtype!r})[::-1]", f"{{0}}[...] = {text}"]
    if kind == "column":
        return [f"{{0}} = np.zeros({(*shape, 3)}, {dtype!r})[..., 1]", f"{{0}}[...] = {text}"]
    if kind == "read-only" and rng.random() < 0.3:
        return [f"{{0}} = {text}", "{0}.flags.writeable = False"]
    return [f"{{0}} = {text}"]


def _shared(rng: random.Random, name: str, other: str, x: Any) -> list[str]:
    """Lines that make an array of the memory of another, or both of the memory of a third."""
    kind = rng.choice(("same", "same", "whole", "backward", "part", "beside", "interlaced"))
    if kind == "same" or not x.ndim:
        return [f"{name} = {other}"]
    if kind == "whole":
        return [f"{name} = {other}[...]"]
    if kind == "backward":
        return [f"{name} = {other}[::-1]"]
    if kind == "part":
        return [f"{name} = {other}[{rng.choice(('1:', ':1', ':-1', '::2'))}]"]
    held = f"np.zeros({(2 * x.shape[0] + 2, *x.shape[1:])}, {x.dtype.str!r})"
    parts = ("::2", "1::2") if kind == "interlaced" else (":-1", "1:")
    size = 2 * x.shape[0] if kind == "interlaced" else x.shape[0] + (kind == "beside")
    return [f"h = {held}[:{size}]", f"h[...] = {other}[:1]" if x.size else "",
            f"{other}, {name} = h[{parts[0]}], h[{parts[1]}]"]


def arguments(rng: random.Random) -> tuple[str, set[str]]:
    """The text of three functions that make the arguments ``x, y, d, l, o, at, k``, and what is
    special about them."""
    dtype, shape = np.dtype(rng.choice(DTYPES)), rng.choice(SHAPES)
    types = dict.fromkeys(PLACES, (dtype, shape))
    for name in PLACES[1:]:
        if rng.random() < 0.35:
            types[name] = (np.dtype(rng.choice(DTYPES)),
                           rng.choice((shape, shape, rng.choice(SHAPES))))
    alias = rng.sample(PLACES, 2) if rng.random() < 0.3 else []
    if alias and types[alias[0]] != types[alias[1]]:
        types[alias[1]] = types[alias[0]]
    layout = rng.getrandbits(32)
    texts, features = [], {f"dtype {dtype.name}", f"{len(shape)} dims"}
    for call in range(3):
        same = rng.random() < 0.75
        of = random.Random(layout if same else rng.getrandbits(32))
        lines = []
        for name in PLACES:
            x = draw_array(rng, types[name][0], types[name][1], "whole")
            lines += [line.replace("{0}", name) for line in _own(of, x)]
        if alias:
            x = np.zeros(types[alias[0]][1], types[alias[0]][0])
            lines += filter(None, _shared(of, alias[1], alias[0], x))
        number = rng.choice((0, 1, 2, 2, 3, -1))
        lines.append(f"return x, y, {{'w': w, 'b': b}}, [m, v], Box({rng.choice(('w', 'v + 1'))}, "
                     f"{rng.randint(0, 4)}), {number}, {rng.choice((0.5, -1.5, 2.0))}")
        texts.append("\n    ".join((f"def args{call}():", *lines)))
    features |= {"memory in common"} if alias else set()
    features |= {"no elements"} if 0 in shape else set()
    return "\n\n".join(texts), features
