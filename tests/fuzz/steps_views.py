"""Steps that move elements: slices with any bounds, rolls, joins, splits, pads, reshapes."""

from __future__ import annotations

from typing import Any

from .writer import Value, Writer, step


def bound(w: Writer, size: str) -> str:
    """A bound of a slice: often beyond the ends, now and then made of the size itself."""
    if w.yes(0.3):
        return ""
    if w.yes(0.15):
        return str(w.one((f"{size} // 2", f"{size} - 1", f"{size} - 2", f"1 - {size}", size,
                          f"{size} + 2")))
    return str(w.rng.randint(-9, 9) if w.yes(0.4) else w.rng.randint(-3, 3))


def span(w: Writer, size: str) -> str:
    step_ = w.one(("", "", "", ":1", ":2", ":3", ":-1", ":-1", ":-2", ":-3"))
    return f"{bound(w, size)}:{bound(w, size)}{step_}"


def subscript(w: Writer, x: Value, name: str = "{0}") -> str:
    """An index of ints, slices, ``...`` and new axes."""
    items = []
    for axis in range(w.rng.randint(1, x.rank) if x.rank else 0):
        size = f"{name}.shape[{axis}]"
        items.append(str(w.rng.randint(-2, 1)) if w.yes(0.15) else ":" if w.yes(0.2)
                     else span(w, size))
    if w.yes(0.1) and len(items) < x.rank:
        items.insert(0, "...")
        items = [":" if ".shape" in item else item for item in items]
    if w.yes(0.1) or not items:
        items.insert(w.rng.randint(0, len(items)), "None")
    return ", ".join(items)


@step("slice", 7, smooth=True)
def slice_(w: Writer) -> Any:
    x = w.array()
    return x and w.emit("slice", f"{{0}}[{subscript(w, x)}]", x)


@step("roll", 2, smooth=True)
def roll(w: Writer) -> Any:
    x = w.array()
    if x is None:
        return None
    by = w.rng.randint(-9, 9)
    if x.rank > 1 and w.yes(0.2):
        return w.emit("roll", f"np.roll({{0}}, ({by}, {w.rng.randint(-3, 3)}), axis=(0, 1))", x)
    return w.emit("roll", f"np.roll({{0}}, {by}, axis={w.one((None, w.axis(x, 0)))})", x)


@step("diff", 2, smooth=True)
def diff(w: Writer) -> Any:
    x = w.array()
    return x and w.emit("diff", f"np.diff({{0}}, {w.one((1, 1, 2, 3))}, axis={w.axis(x, 0)})", x)


@step("flip", 2, smooth=True)
def flip(w: Writer) -> Any:
    x = w.array()
    return x and w.emit("flip", f"np.flip({{0}}, axis={w.one((None, w.axis(x, 0)))})", x)


@step("transpose", 4, smooth=True)
def transpose(w: Writer) -> Any:
    x = w.array(lambda value: value.rank > 1)
    if x is None:
        return None
    order = list(range(x.rank))
    w.rng.shuffle(order)
    return w.emit("transpose", w.one((
        "{0}.T", f"np.transpose({{0}}, {tuple(order)})", f"np.swapaxes({{0}}, 0, {x.rank - 1})",
        "{0}.mT", "np.moveaxis({0}, 0, -1)")), x)


@step("reshape", 4, smooth=True)
def reshape(w: Writer) -> Any:
    x = w.pick()
    if x is None:
        return None
    options = ["{0}.reshape(-1)", "np.ravel({0})", "{0}.reshape(1, -1)", "{0}.reshape(-1, 1)"]
    if x.rank:
        at = w.rng.randrange(x.rank)
        options += [f"np.expand_dims({{0}}, {at})", "{0}.reshape({0}.shape[0], -1)",
                    "{0}.reshape({0}.shape[::-1])", "{0}[..., None]", "np.atleast_2d({0})",
                    f"{{0}}.reshape({{0}}.shape[:{at}] + (-1,))"]
        options += [f"{{0}}.reshape(-1, {k})" for k in (2, 3, 4)]
        options += ["np.squeeze({0})"] * (1 in x.shape)
    if x.rank > 1:
        options.append("{0}.reshape(-1, {0}.shape[-1])")
    return w.emit("reshape", w.one(options), x)


@step("broadcast", 3, smooth=True)
def broadcast(w: Writer) -> Any:
    x = w.pick(lambda value: value.rank < 3)
    if x is None:
        return None
    wide = w.array(lambda value: value.rank > x.rank)
    if wide is not None and w.yes():
        return w.emit("broadcast", "np.broadcast_to({0}, {1}.shape)", x, wide)
    n = w.rng.randint(0, 3)
    options = [f"np.broadcast_to({{0}}, ({n}, *{{0}}.shape))"]
    if x.rank:
        options += [f"np.tile({{0}}, {n})", f"np.repeat({{0}}, {n}, axis={w.axis(x, 0)})",
                    f"np.repeat({{0}}, {n})", f"np.tile({{0}}, (2, {n}))"]
    return w.emit("broadcast", w.one(options), x)


@step("concatenate", 4, smooth=True)
def concatenate(w: Writer) -> Any:
    x = w.array()
    if x is None:
        return None
    axis = w.rng.randrange(x.rank)

    def fits(value: Value) -> bool:
        return value.rank == x.rank and all(
            a == z for one, other in zip(x.shapes, value.shapes, strict=True)
            for at, (a, z) in enumerate(zip(one, other, strict=True)) if at != axis)

    parts = [x, *(w.pick(fits) or x for _ in range(w.rng.randint(1, 2)))]
    w.rng.shuffle(parts)
    texts = ", ".join(f"{{{at}}}" for at in range(len(parts)))
    if all(part.shapes == x.shapes for part in parts) and w.yes(0.3):
        name = w.one(("np.stack", "np.vstack", "np.hstack"))
        return w.emit("concatenate", f"{name}([{texts}])", *parts)
    return w.emit("concatenate", f"np.concatenate([{texts}], axis={axis})", *parts)


@step("split", 2, smooth=True)
def split(w: Writer) -> Any:
    x = w.array()
    if x is None:
        return None
    axis = w.axis(x, 0)
    if w.yes():
        places = sorted(w.rng.randint(-2, 6) for _ in range(w.rng.randint(1, 2)))
        return w.emit("split", f"np.split({{0}}, {places}, axis={axis})[{w.rng.randint(0, 1)}]", x)
    name = w.one(("np.split", "np.array_split"))
    return w.emit("split", f"{name}({{0}}, {w.one((1, 2, 3))}, axis={axis})[0]", x)


@step("pad", 3, smooth=True)
def pad(w: Writer) -> Any:
    x = w.array(lambda value: value.kind != "b")
    if x is None:
        return None
    width = w.one((1, 2, (1, 2), (0, 3)))
    if w.yes(0.4):
        width = tuple((w.rng.randint(0, 2), w.rng.randint(0, 3)) for _ in range(x.rank))
    value = w.one(("", ", constant_values=3", ", constant_values=1"))
    return w.emit("pad", f"np.pad({{0}}, {width}{value})", x)


@step("triangle", 1)
def triangle(w: Writer) -> Any:
    x = w.array(lambda value: value.rank > 1)
    return x and w.emit("triangle", f"{w.one(('np.tril', 'np.triu'))}({{0}}, {w.one((-1, 0, 1))})",
                        x)


@step("create", 2)
def create(w: Writer) -> Any:
    x = w.array()
    n = w.rng.randint(0, 5)
    return x and w.emit("create", w.one((
        "np.zeros_like({0})", "np.ones_like({0})", "np.full_like({0}, 3)", f"np.arange({n})",
        f"np.eye({n})", f"np.arange({n}, dtype=np.float32)", "np.arange({0}.shape[0], like={0})",
        "np.zeros({0}.shape, like={0})", f"np.full({{0}}.shape, {n}, like={{0}})",
        "{0}.shape[0] * {0}", "{0} * {0}.size", "np.zeros_like({0}, dtype=np.int32)")), x)
