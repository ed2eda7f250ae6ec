"""Statements of random programs: each is drawn as lines, and the names that are there after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .draw import (
    EXPRESSIONS,
    Drawer,
    Scope,
    decision,
    mask,
    near_one,
    part,
    place,
    test,
    vector,
)

Lines = list[str]
Statement = Callable[[Drawer, Scope], tuple[Lines, Scope]]


def block(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """One to three statements."""
    lines: Lines = []
    for _ in range(d.rng.randint(1, 3)):
        d.budget -= 1
        if d.budget < 0:
            break
        made, s = statement(d, s)
        lines += made
    return lines or [f"pass  # {s.depth}"], s


def statement(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    if s.depth > 4 or d.chance(0.2):
        return assign(d, s)
    kinds: list[Statement] = [write, branch, for_loop, cond, scan, fori, while_, remat, closed]
    kinds += [batch] * 2
    if s.left:
        kinds += [derivative] * 4
    if not s.forward:
        kinds.append(custom)
    if d.variable and s.effects and not s.batch:
        kinds.append(assigned)
    if s.loop:
        kinds += [leave] * 2
    if s.back:
        kinds.append(early)
    if not s.reverse:
        kinds.append(python_while)
    return d.rng.choice(kinds)(d, s)


def bound(s: Scope, name: str, kind: str) -> Scope:
    return replace(s, names={**s.names, name: kind}, own=s.own | {name})


def indented(lines: Lines) -> Lines:
    return ["    " + line for line in lines]


def kind_of(d: Drawer, s: Scope) -> str:
    return d.pick("s", "s", "v", "v", "m", *("z" if d.complex else ""))


def assign(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """Bind a name, or a known one anew."""
    known = sorted(name for name in s.own if s.names[name] in EXPRESSIONS)
    if known and d.chance(0.6):
        name = d.rng.choice(known)
        return [f"{name} = {near_one(d, s, s.names[name])}"], s
    kind = kind_of(d, s)
    name = d.name(kind)
    return [f"{name} = {near_one(d, s, kind)}"], bound(s, name, kind)


def write(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """A copy of a vector, or a new one, of which elements are set."""
    name = d.name("v")
    made = [d.rng.choice((lambda: f"{name} = {vector(d, s)} * 1.0",
                          lambda: f"{name} = np.zeros(len(v), F)"))()]
    after = bound(s, name, "v")
    for _ in range(d.rng.randint(1, 2)):
        made.append(d.rng.choice((
            lambda: f"{name}[{place(d, s)}] {d.pick('=', '+=')} {near_one(d, s, 's')}",
            lambda: f"{name}[{mask(d, s)}] {d.pick('=', '*=')} {near_one(d, s, 's')}",
            lambda: f"np.add.at({name}, ids % len(v), {near_one(d, after, 'v')})",
            lambda: f"{name}[ids % len(v)] = {near_one(d, s, 's')}",
            lambda: f"{name}[1:] += {name}[:-1] * 0.5",
            lambda: f"{name}[{part(d, s)}] {d.pick('=', '*=')} {near_one(d, s, 's')}",
            lambda: f"{name}[::2] *= {near_one(d, s, 's')}"))())
    d.features.add("writes")
    return made, after


def branch(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    inner = replace(s, depth=s.depth + 1)
    made = [f"if {test(d, s)}:", *indented(block(d, inner)[0])]
    if d.chance(0.3):
        made += [f"elif {test(d, s)}:", *indented(block(d, inner)[0])]
    if d.chance(0.6):
        made += ["else:", *indented(block(d, inner)[0])]
    d.features.add("if")
    return made, s


def for_loop(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """Python's for; a traced number of rounds has no gradient in reverse."""
    at = d.name("i")
    counted = () if s.reverse else ("range(k)", "range(1, k + 2)")
    items = d.pick("range(3)", "range(1, 4)", *counted, *(() if d.unknown else s.of("v")))
    inner = replace(s, names={**s.names, at: "i" if "range" in items else "s"}, loop=True,
                    depth=s.depth + 1)
    made = [f"for {at} in {items}:", *indented(block(d, inner)[0])]
    if d.chance(0.2):
        made += ["else:", *indented(block(d, replace(s, depth=s.depth + 1))[0])]
    d.features.add("for")
    return made, s


def python_while(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    count = d.name("w")
    inner = replace(s, names={**s.names, count: "i"}, loop=True, depth=s.depth + 1)
    d.features.add("while")
    return [f"{count} = 0", f"while {count} < 4 and {test(d, s)}:", f"    {count} += 1",
            *indented(block(d, inner)[0])], s


def leave(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    word = d.pick("break", "continue")
    d.features.add(word)
    return [f"if {test(d, s)}:", f"    {word}"], s


def assigned(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    d.features.add("assignments in " + ("loops" if s.depth else "order"))
    return [d.rng.choice((
        lambda: f"V.assign({near_one(d, s, 's')})",
        lambda: f"V.assign_add(0.1 * {near_one(d, s, 's')})"))()], s


# -- functions ----------------------------------------------------------------------------------


def function(
    d: Drawer, s: Scope, params: str, back: str, **around: object
) -> tuple[Lines, str]:
    """A function of the user's: the kinds of its parameters, and of what it returns."""
    name = d.name("g")
    names = [d.name({"i": "j"}.get(kind, kind)) for kind in params]
    inner = replace(
        s, names={**s.names, **dict(zip(names, params, strict=True))}, loop=False,
        own=frozenset(name for name, kind in zip(names, params, strict=True) if kind != "i"),
        back=back, depth=s.depth + 1, **around)  # type: ignore[arg-type]
    lines, inner = block(d, inner)
    made = ", ".join(near_one(d, inner, kind) for kind in back)
    return [f"def {name}({', '.join(names)}):", *indented(lines), f"    return {made}"], name


def given(d: Drawer, s: Scope, kinds: str) -> str:
    return ", ".join(near_one(d, s, kind) for kind in kinds)


def to(d: Drawer, s: Scope, kinds: str) -> tuple[str, Scope]:
    """Names to which results are bound."""
    made = []
    for kind in kinds:
        made.append(d.name(kind))
        s = bound(s, made[-1], kind)
    return ", ".join(made), s


def closed(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """A function that is called as it is."""
    kinds = d.pick("s", "v", "sv")
    back = d.pick("sv", "vs")
    lines, name = function(d, s, kinds, back)
    names, after = to(d, s, back)
    return [*lines, f"{names} = {name}({given(d, s, kinds)})"], after


def early(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """A return before the end of the function."""
    d.features.add("return in a loop" if s.loop else "early return")
    return [f"if {test(d, s)}:", f"    return {given(d, s, s.back)}"], s


def cond(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    kinds, back = d.pick("s", "v", "sv", ""), d.pick("s", "v", "vs")
    ways = [function(d, s, kinds, back) for _ in range(2)]
    names, after = to(d, s, back)
    d.features.add("cond")
    operands = "".join(f", {near_one(d, s, kind)}" for kind in kinds)
    return [*ways[0][0], *ways[1][0],
            f"{names} = W.cond({decision(d, s)}, {ways[0][1]}, {ways[1][1]}{operands})"], after


def scan(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """Over the elements of a vector or the rows of a matrix."""
    carry = d.pick("s", "v", *(["z"] * d.complex))
    row, xs = d.rng.choice((("s", "v"), ("v", "m"), ("", "")))
    lines, name = function(d, s, carry + row, carry + "s")
    d.features.add("scan")
    if not row:
        lines[0] = lines[0].replace("):", ", _):")
    over = near_one(d, s, xs) if xs else f"None, length={d.pick('3', 'len(v)', '0')}"
    names, after = to(d, s, carry)
    rows = d.name("r")
    made = [*lines, f"{names}, {rows} = W.scan({name}, {given(d, s, carry)}, {over}"
                    f"{d.pick('', ', reverse=True')})"]
    if xs == "v":
        after = bound(after, rows, "v")
    else:
        total = d.name("s")
        made.append(f"{total} = np.sum({rows})")
        after = bound(after, total, "s")
    return made, after


def fori(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    kind = d.pick("s", "v")
    lines, name = function(d, s, "i" + kind, kind)
    names, after = to(d, s, kind)
    traced = d.pick("0, k", "k, 4")
    bounds = d.pick("0, 3", "1, len(v)", traced)
    limit = ", max_iterations=4" if bounds == traced and (s.reverse or d.chance(0.4)) else ""
    d.features.add("fori_loop")
    return [*lines, f"{names} = W.fori_loop({bounds}, {name}, {given(d, s, kind)}{limit})"], after


def while_(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """Rounds while a number that the loop carries is small enough, and something else holds."""
    kind = d.pick("s", "v")
    lines, name = function(d, s, kind, kind)
    count, inner = d.name("j"), d.name(kind)
    inside = replace(s, names={**s.names, count: "i", inner: kind})
    most = d.pick("3", "k", "4")
    after_test = f" & ({decision(d, inside)})" if d.chance(0.5) else ""
    names, after = to(d, s, kind)
    limit = ", 5" if s.reverse or d.chance(0.4) else ""
    d.features.add("while_loop")
    return [*lines, f"_, {names} = W.while_loop(lambda c: (lambda {count}, {inner}: "
                    f"({count} < {most}){after_test})(*c), lambda c: (c[0] + 1, {name}(c[1])), "
                    f"(0, {given(d, s, kind)}){limit})"], after


# -- transforms ---------------------------------------------------------------------------------


def remat(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    kinds, back = d.pick("v", "sv"), d.pick("v", "s", "vs")
    lines, name = function(d, s, kinds, back)
    names, after = to(d, s, back)
    d.features.add("remat")
    return [*lines, f"{names} = W.remat({name})({given(d, s, kinds)})"], after


def custom(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """A function with a gradient of its own, which may be another one than it has where no
    derivative is taken of that; ``s.left`` tells."""
    name, kind = d.name("g"), d.pick("s", "v")
    straight = s.order == 1 and not s.left
    rule = d.rng.choice((
        ("np.sin(x)", "x", "np.cos(saved) * ct"), ("x ** 3 * 0.3", "x", "0.9 * saved ** 2 * ct"),
        ("np.tanh(x)", "np.tanh(x)", "(1.0 - saved * saved) * ct"),
        *([("np.floor(x * 3.0)", "x", "ct * 3.0"), ("x * 0.5", "None", "2.0 * ct")] * straight)))
    names, after = to(d, s, kind)
    d.features.add("custom_vjp")
    return [f"{name} = W.custom_vjp(lambda x: {rule[0]})",
            f"{name}.defvjp(lambda x: ({rule[0]}, {rule[1]}), lambda saved, ct: ({rule[2]},))",
            f"{names} = {name}({near_one(d, s, kind)})"], after


def batch(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """A function of each row, or of each element."""
    around = {"batch": True, "effects": d.chance(0.2) and d.random and not d.variable}
    d.features.add("vmap of vmap" if s.batch else "vmap")
    way = d.rng.randrange(5)
    if way == 0:  # elements
        lines, name = function(d, s, "s", "s", **around)
        names, after = to(d, s, "v")
        return [*lines, f"{names} = W.vmap({name})({near_one(d, s, 'v')})"], after
    if way == 1:  # rows to numbers
        lines, name = function(d, s, "v", "s", **around)
        names, after = to(d, s, "s")
        return [*lines, f"{names} = np.mean(W.vmap({name})({near_one(d, s, 'm')}))"], after
    if way == 2:  # rows to rows
        lines, name = function(d, s, "v", "v", **around)
        names, after = to(d, s, "m")
        axes, turned = d.rng.choice((("", ""), (", out_axes=1", ".T")))
        return [*lines, f"{names} = W.vmap({name}{axes})({near_one(d, s, 'm')}){turned}"], after
    if way == 3:  # with what all share
        lines, name = function(d, s, "vv", "v", **around)
        names, after = to(d, s, "m")
        return [*lines, f"{names} = W.vmap({name}, in_axes=(0, None))"
                        f"({given(d, s, 'mv')})"], after
    lines, name = function(d, s, "ss", "ss", **around)  # several results
    names, after = to(d, s, "vv")
    return [*lines, f"{names} = W.vmap({name})({given(d, s, 'vv')})"], after


def derivative(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """grad, value_and_grad, vjp and jvp, and what is made of them."""
    way = d.rng.choice([_grad, _grad, _value, _pairs, _vjp, _jvp, _rows]
                       + [_hessian, _product] * (s.left > 1))
    lines, after = way(d, s)
    d.features.add(("gradient of a gradient " if s.order else "") + way.__name__[1:])
    d.most = max(d.most, s.order + (2 if way in (_hessian, _product) else 1))
    return lines, after


def _within(s: Scope, forward: bool = False, reverse: bool = True, by: int = 1) -> dict[str, int]:
    return {"order": s.order + by, "left": s.left - by, "forward": s.forward or forward,
            "reverse": s.reverse or reverse}


def _grad(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    kind = d.pick("s", "v", "v", "m", *(["z"] * 2 * d.complex))
    lines, name = function(d, s, kind, "s", **_within(s))
    names, after = to(d, s, kind)
    return [*lines, f"{names} = W.grad({name})({given(d, s, kind)})"], after


def _value(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    lines, name = function(d, s, "v", "s", **_within(s))
    names, after = to(d, s, "sv")
    return [*lines, f"{names} = W.value_and_grad({name})({given(d, s, 'v')})"], after


def _pairs(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    lines, name = function(d, s, "sv", "s", **_within(s))
    names, after = to(d, s, "sv")
    return [*lines, f"{names} = W.grad({name}, argnums=(0, 1))({given(d, s, 'sv')})"], after


def _vjp(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    lines, name = function(d, s, "v", "v", **_within(s))
    pull = d.name("pull")
    names, after = to(d, s, "v")
    back, after = to(d, after, "v")
    return [*lines, f"{names}, {pull} = W.vjp({name}, {given(d, s, 'v')})",
            f"({back},) = {pull}({given(d, s, 'v')})"], after


def _jvp(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    kind = d.pick("s", "v")
    lines, name = function(d, s, kind, kind, **_within(s, True, False))
    names, after = to(d, s, kind * 2)
    return [*lines, f"{names} = W.jvp({name}, ({given(d, s, kind)},), ({given(d, s, kind)},))"
            ], after


def _rows(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """The gradient of each example."""
    lines, name = function(d, s, "v", "s", **{**_within(s), "batch": True, "effects": False})
    names, after = to(d, s, "m")
    return [*lines, f"{names} = W.vmap(W.grad({name}))({given(d, s, 'm')})"], after


def _hessian(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    lines, name = function(d, s, "v", "s", **{**_within(s, True, by=2), "effects": False})
    names, after = to(d, s, "v")
    at = d.name("x")
    return [*lines, f"{at} = {given(d, s, 'v')}",
            f"{names} = {d.pick('np.sum', 'np.max')}(W.vmap(lambda t: W.jvp(W.grad({name}), ({at},)"
            f", (t,))[1])(np.eye(len(v), dtype=F)), axis=0)"], after


def _product(d: Drawer, s: Scope) -> tuple[Lines, Scope]:
    """A Hessian times a vector, in reverse twice or forward over reverse."""
    forward = s.forward or d.chance(0.5)
    lines, name = function(d, s, "v", "s", **_within(s, forward, by=2))
    names, after = to(d, s, "v")
    x, t = given(d, s, "v"), given(d, s, "v")
    if forward:
        return [*lines, f"{names} = W.jvp(W.grad({name}), ({x},), ({t},))[1]"], after
    return [*lines, f"{names} = W.grad(lambda x: W.grad({name})(x) @ ({t}))({x})"], after


def results(d: Drawer, s: Scope) -> tuple[str, Scope]:
    """All that was bound at the top and is there at the end."""
    names = sorted(name for name in s.own if s.names[name] in EXPRESSIONS)
    return ", ".join(f"{name} * 1.0" for name in names), s
