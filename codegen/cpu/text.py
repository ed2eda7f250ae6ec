"""LLVM IR as text: fresh names, labels and counted loops, nothing more.

Text is as quick to parse as objects are to build, and what is written here is what
``weft dump --stage llvm`` shows. A ``FunctionText`` collects the lines of one function:

    f = FunctionText("void", "scale", [("ptr", "x"), ("i64", "n")])
    with f.loop("0", "%n", 1) as i:
        p = f(f"getelementptr float, ptr %x, i64 {i}")
        v = f(f"load float, ptr {p}")
        f.do(f"store float {f(f'fmul float {v}, 2.0')}, ptr {p}")
    f.ret()
    print(f)

What is known here is not left to LLVM, whose time is most of a compilation: arithmetic on constants
is done, loops of no or of one round and branches that are decided are no loops and no branches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from ...ir.record import field, record

# Lines of a loop's body, in all iterations, after which it asks if the run is over: some tens of
# microseconds.
POLLED = 1 << 16

# Attributes of a function that hardly ever runs: all that is to be saved on is its compilation.
COLD = "noinline optnone cold nounwind"
SERIAL = '"serial"'  # of functions with loops whose rounds are written one by one

SELDOM = "!100"  # the metadata of branches that are hardly ever taken
SINGLE = "!101"  # that of loops of which LLVM makes no vectors

_INTEGERS = re.compile(r"(add|sub|mul|and|icmp s..|call smin|call smax) i64 (\S+), (-?\d+)")
_LITERAL = re.compile(r"-?\d+")
_FOLDS: Mapping[str, Callable[[int, int], int | bool]] = MappingProxyType({
    "add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "and": int.__and__,
    "icmp sge": int.__ge__, "icmp sgt": int.__gt__, "icmp sle": int.__le__,
    "icmp slt": int.__lt__, "call smin": min, "call smax": max})
# What may be computed before a loop where nothing in it has a part in it: it is pure, and never
# fails. Divisors are literals, so none is 0.
_PURE = re.compile(
    r"(?:(?:add|sub|mul|and|xor|shl|lshr|ashr)(?: nsw)? i64 (\S+), (\S+)"
    r"|(?:sdiv|srem|udiv|urem) i64 (\S+), [1-9]\d*"
    r"|icmp \w+ i64 (\S+), (\S+)|sext i1 (\S+) to i64|zext i1 (\S+) to i64"
    r"|select i1 (\S+), i64 (\S+), i64 (\S+)"
    r"|call i64 @llvm\.s(?:min|max)\.i64\(i64 (\S+), i64 (\S+)\))")
_IDLE = frozenset({("add", "0"), ("sub", "0"), ("mul", "1")})


def _known(instruction: str) -> str | None:
    """The operand that an instruction on i64 comes to, if that is plain.

    >>> _known("sub i64 7, 3"), _known("icmp slt i64 4, 4"), _known("add i64 %a, 0")
    ('4', 'false', '%a')
    """
    match = _INTEGERS.fullmatch(instruction)
    if match is None:
        return None
    name, left, right = match.groups()
    if _LITERAL.fullmatch(left):
        found = _FOLDS[name](int(left), int(right))
        return str(found).lower() if -1 << 63 <= found < 1 << 63 else None
    return left if (name, right) in _IDLE else None


def _rounds(start: str, stop: str, step: int | str) -> int | None:
    """How often a loop runs, if that is known."""
    if not (isinstance(step, int) and _LITERAL.fullmatch(start) and _LITERAL.fullmatch(stop)):
        return None
    return len(range(int(start), int(stop), step))


@record
class _Loop:
    """A loop being written: the line before it, and what is computed there, by instruction."""

    line: int
    before: dict[str, str] = field(default_factory=dict)


@record
class Carried:
    """A counted loop being written: its index, its loop-carried values and their results."""

    index: str
    values: list[str]
    next: list[str] = field(default_factory=list)  # set by the body, one for each value
    results: list[str] = field(default_factory=list)  # valid after the loop


class FunctionText:
    """The text of one LLVM function; calling it emits an instruction and names its result."""

    def __init__(
        self,
        result: str,
        name: str,
        params: Sequence[tuple[str, str]],
        *,
        linkage: str = "",
        attributes: str = "",
    ) -> None:
        spelled = ", ".join(f"{type_} %{param}" for type_, param in params)
        words = ("define", linkage, result, f"@{name}({spelled})", attributes)
        self.header = " ".join(filter(None, words))
        self.name = name
        self.declarations: set[str] = set()
        self.helpers: list[FunctionText] = []  # functions that this one calls, for its module
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._phis: dict[str, int] = {}  # the lines that they are in
        self._loops: list[_Loop] = []  # around what is being written, the outermost first
        # How many of these a value is computed in; only of what may be computed before a loop.
        self._depths = {f"%{param}": 0 for type_, param in params if type_ == "i64"}
        self._fresh = 0
        self.block = "entry"
        self.poll = ""   # the call that says whether the run is over, where long loops ask
        self.polls = False  # whether any does
        self.ended = "void"  # what it returns where it ends early
        self.notes = False  # whether it tells that something was unusual
        self._inner = 0  # what the loops inside of the one being written cost beyond their lines

    def fresh(self, stem: str = "t") -> str:
        """A name not used before in this function, without its sigil."""
        self._fresh += 1
        return f"{stem}{self._fresh}"

    def __call__(self, instruction: str) -> str:
        """Emit ``instruction`` and return the name of its value; what is known is not emitted."""
        if instruction[-1].isdigit() and (known := _known(instruction)) is not None:
            return known
        depth = self._depth(instruction)
        if depth < len(self._loops):
            return self._before(self._loops[depth], instruction, depth)
        name = f"%{self.fresh()}"
        self._lines.append(f"  {name} = {instruction}")
        self._depths[name] = len(self._loops)
        return name

    def _depth(self, instruction: str) -> int:
        """The number of loops that all an instruction needs is computed in, if it is pure."""
        match = _PURE.fullmatch(instruction)
        if match is None:
            return len(self._loops)
        return max((self._depths.get(operand, len(self._loops)) for operand in match.groups()
                    if operand is not None and operand.startswith("%")), default=0)

    def _before(self, loop: _Loop, instruction: str, depth: int) -> str:
        """The value of an instruction that is computed before a loop, once."""
        if instruction not in loop.before:
            name = loop.before[instruction] = f"%{self.fresh()}"
            self._depths[name] = depth
            self._lines[loop.line] += f"  {name} = {instruction}\n"
        return loop.before[instruction]

    def do(self, instruction: str) -> None:
        """Emit an instruction without a value."""
        self._lines.append(f"  {instruction}")

    def declare(self, declaration: str) -> None:
        """Ask for ``declare ...`` (an intrinsic or an external function) in the module."""
        self.declarations.add(declaration)

    def call(self, result: str, name: str, *args: tuple[str, str]) -> str:
        """Call ``@name`` on (type, value) pairs, declaring it; return its value's name."""
        if name.startswith(("llvm.smin.i64", "llvm.smax.i64")):
            known = _known(f"call {name[5:9]} i64 {args[0][1]}, {args[1][1]}")
            if known is not None:
                return known
        types = ", ".join(type_ for type_, _ in args)
        self.declare(f"declare {result} @{name}({types})")
        spelled = ", ".join(f"{type_} {value}" for type_, value in args)
        if result == "void":
            self.do(f"call void @{name}({spelled})")
            return ""
        return self(f"call {result} @{name}({spelled})")

    def alloca(self, type_: str, count: int = 1, align: int = 64) -> str:
        """Reserve stack memory in the entry block, so that loops do not grow the stack."""
        name = f"%{self.fresh('slot')}"
        self._entry.append(f"  {name} = alloca [{count} x {type_}], align {align}")
        return name

    def counter(self) -> str:
        """Stack memory of an i64 that is 0 when the function is entered."""
        name = self.alloca("i64", align=8)
        self._entry.append(f"  store i64 0, ptr {name}, align 8")
        return name

    def place(self, label: str) -> None:
        """Begin the block ``label``; the block before it must have ended in a branch."""
        self._lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: str, then: str, other: str, *, seldom: bool = False) -> None:
        """Go on where the i1 ``condition`` says; ``seldom``: it hardly ever holds."""
        self.do(f"br i1 {condition}, label %{then}, label %{other}"
                + (f", !prof {SELDOM}" if seldom else ""))

    def ret(self, value: str = "void") -> None:
        """Return ``value``, spelled with its type (``"i32 0"``)."""
        self.do(f"ret {value}")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Run the body only if the i1 ``condition`` holds; the body yields no values."""
        if condition in ("true", "false"):
            with self._kept(condition == "true"):
                yield
            return
        then, done = self.fresh("then"), self.fresh("done")
        self.branch(condition, then, done)
        self.place(then)
        yield
        self.jump(done)
        self.place(done)

    @contextmanager
    def _kept(self, keep: bool) -> Iterator[None]:
        """What the body emits in the place where it stands, or nothing of it."""
        place, block = len(self._lines), self.block
        yield
        if not keep:
            del self._lines[place:]
            self.block = block

    def either(
        self, condition: str, types: Sequence[str], then: Callable[[], Sequence[str]],
        other: Callable[[], Sequence[str]],
    ) -> list[str]:
        """What one of two bodies gives, values of ``types``: that for the i1 ``condition``."""
        if condition in ("true", "false"):
            return list(then() if condition == "true" else other())
        one, two, done = self.fresh("then"), self.fresh("else"), self.fresh("done")
        self.branch(condition, one, two)
        found = []
        for label, body in ((one, then), (two, other)):
            self.place(label)
            values = body()
            found.append((values, self.block))
            self.jump(done)
        self.place(done)
        (left, here), (right, there) = found
        return [self(f"phi {type_} [ {a}, %{here} ], [ {b}, %{there} ]")
                for type_, a, b in zip(types, left, right, strict=True)]

    def call_poll(self, poll: str) -> str:
        """Whether the run is over. What a call would spill for it is spilled where it is made."""
        self.declare(f"declare i1 {poll.split('(')[0]}(ptr) cold nounwind")
        return self(f"call i1 {poll}")

    def asks(self, poll: str) -> None:
        """Have the loops of this function end it when the run is over, as
        the call ``poll`` (``"@weft_poll(ptr %control)"``) tells. Those ask that may take long."""
        self.poll = poll

    @contextmanager
    def unasked(self) -> Iterator[None]:
        """Loops in the body never ask: none takes long, though what bounds it is not written."""
        poll, self.poll = self.poll, ""
        yield
        self.poll = poll

    def ask(self) -> None:
        """Return from a function that ``asks`` if the run is over."""
        on = self.fresh("on")
        self._ask(on)
        self.place(on)

    def _ask(self, on: str) -> None:
        self.polls = True
        over = self.fresh("over")
        self.branch(self.call_poll(self.poll), over, on)
        self.place(over)
        self.ret(self.ended)

    @contextmanager
    def carried_loop(
        self, start: str, stop: str, step: int | str, carry: Sequence[tuple[str, str]],
        most: int | None = None, single: bool = False,
    ) -> Iterator[Carried]:
        """``for index in range(start, stop, step)`` (i64) with loop-carried (type, init) values.

        The body sets ``loop.next``; after the ``with`` block, ``loop.results`` holds the final
        values (the initial ones when the loop does not run). ``most`` is how many iterations there
        are at most, where that is known; of a ``single`` loop LLVM makes no vectors.
        """
        rounds = _rounds(start, stop, step)
        if rounds is not None and rounds <= 1:
            with self._kept(rounds == 1):
                yield (loop := Carried(start, [init for _, init in carry]))
            loop.results = list(loop.next if rounds else loop.values)
            return
        first, before, head = len(self._lines), self.block, self.fresh("loop")
        body, latch, done = self.fresh("body"), self.fresh("latch"), self.fresh("end")
        index, following = f"%{self.fresh('i')}", f"%{self.fresh('i')}"
        values = [f"%{self.fresh('c')}" for _ in carry]
        phis = [(index, "i64", start), *((name, type_, init) for name, (type_, init) in zip(
            values, carry, strict=True))]
        # What is computed before, and the head, once its body is known.
        self._lines += ["", "", "", *[""] * len(phis), "", ""]
        inside = f"%{self.fresh()}"
        self.place(body)
        outer, self._inner, begun = self._inner, 0, len(self._lines)
        loop = Carried(index, values)
        self._loops.append(_Loop(first))
        self._depths[index] = len(self._loops)
        yield loop
        self._loops.pop()
        if len(loop.next) != len(values):
            raise AssertionError(f"{self.name}: a loop carries {len(values)} values, "
                                 f"its body gave {len(loop.next)}")
        cost = max(1, len(self._lines) - begun + self._inner)
        self.jump(latch)
        self.place(latch)
        self.do(f"{following} = add nsw i64 {index}, {step}")
        self.do(f"br label %{head}" + (f", !llvm.loop {SINGLE}" if single else ""))
        known = most if rounds is None else rounds
        enter, limit, leave = f"  br label %{head}", stop, done
        long = known is None or known * cost > POLLED
        self._inner = outer + (POLLED // 16 if long else ((known or 1) - 1) * cost)
        if self.poll and long:
            enter, before, limit, leave, phis = self._in_stretches(
                before, head, done, max(1, POLLED // cost), (stop, step), phis)
        self._lines[first + 1:begun - 1] = [
            enter, f"{head}:",
            *(f"  {name} = phi {type_} [ {init}, %{before} ], [ {value}, %{latch} ]"
              for (name, type_, init), value in zip(phis, [following, *loop.next], strict=True)),
            f"  {inside} = icmp slt i64 {index}, {limit}",
            f"  br i1 {inside}, label %{body}, label %{leave}"]
        self.place(done)
        loop.results = values

    def _in_stretches(
        self, before: str, head: str, done: str, length: int, bounds: tuple[str, int | str],
        phis: Sequence[tuple[str, str, str]],
    ) -> tuple[str, str, str, str, list[tuple[str, str, str]]]:
        """Have a loop ask after ``length`` iterations each, so that nothing is added to them:

            stretch: i.0 = start or i;  limit = least(i.0 + length * step, stop)
            head:    i = i.0 or following;  the body below limit, else pause
            pause:   if i < stop: return if the run is over, else the next stretch

        What leads to the head, the block before it, its limit, what comes after, its phis.
        """
        stop, step = bounds
        stretch, pause, asked = self.fresh("stretch"), self.fresh("pause"), self.fresh("ask")
        far, near, limit = (f"%{self.fresh()}" for _ in range(3))
        starts = [f"%{self.fresh('s')}" for _ in phis]
        step = step * length if isinstance(step, int) else step  # whose loops ask each time
        lines = [f"  br label %{stretch}", f"{stretch}:"]
        lines += [f"  {start} = phi {type_} [ {init}, %{before} ], [ {name}, %{asked} ]"
                  for start, (name, type_, init) in zip(starts, phis, strict=True)]
        lines += [f"  {far} = add i64 {starts[0]}, {step}",
                  f"  {near} = icmp slt i64 {far}, {stop}",
                  f"  {limit} = select i1 {near}, i64 {far}, i64 {stop}",
                  f"  br label %{head}"]
        self.place(pause)
        self.branch(self(f"icmp slt i64 {phis[0][0]}, {stop}"), asked, done)
        self.place(asked)
        self._ask(stretch)
        later = [(name, type_, start) for start, (name, type_, _) in zip(
            starts, phis, strict=True)]
        return "\n".join(lines), stretch, limit, pause, later

    def phi(self, type_: str, value: str, before: str) -> str:
        """The value that is ``value`` from the block ``before``; ``arrive`` adds other blocks."""
        self._phis[name := f"%{self.fresh('c')}"] = len(self._lines)
        self.do(f"{name} = phi {type_} [ {value}, %{before} ]")
        return name

    def arrive(self, phi: str, value: str) -> None:
        """What a phi is from the block that is being written."""
        self._lines[self._phis[phi]] += f", [ {value}, %{self.block} ]"

    @contextmanager
    def loop(
        self, start: str, stop: str, step: int | str = 1, most: int | None = None
    ) -> Iterator[str]:
        """``for index in range(start, stop, step)`` over i64, without carried values."""
        with self.carried_loop(start, stop, step, (), most) as loop:
            yield loop.index

    def family(self) -> Iterator[FunctionText]:
        """The function after its helpers, and theirs."""
        for helper in self.helpers:
            yield from helper.family()
        yield self

    def __str__(self) -> str:
        return "\n".join([self.header + " {", "entry:", *self._entry, *self._lines, "}"])


def module_text(
    functions: Sequence[FunctionText], globals_: Sequence[str] = (), prelude: str = ""
) -> str:
    """One LLVM module: globals, functions, and each declaration once unless defined here.

    Helpers of one name are one function, which several others share.
    """
    parts = {part.name: part for function in functions for part in function.family()}
    functions = list(parts.values())
    defined = {function.name for function in functions}
    declarations = sorted(
        {
            text
            for function in functions
            for text in function.declarations
            if text.split("@", 1)[1].split("(", 1)[0] not in defined
        }
    )
    texts = [prelude, *globals_, *map(str, functions), *declarations]
    if any(SELDOM in text for text in texts):
        texts.append(f'{SELDOM} = !{{!"branch_weights", i32 1, i32 2000}}')
    if any(SINGLE in text for text in texts):
        texts.append(f'{SINGLE} = distinct !{{{SINGLE}, !{{!"llvm.loop.vectorize.enable", '
                     'i1 false}}')
    return "\n\n".join(text for text in texts if text) + "\n"


def heap_block(f: FunctionText, size: int) -> str:
    """Memory of so many bytes for ``free``, aligned to a cache line; null if there is none."""
    return f.call("ptr", "aligned_alloc", ("i64", "64"), ("i64", str(-(-size // 64) * 64)))
