"""Random programs of nested control flow, as texts of a function ``f(a, b, n, x)``.

``parted`` cuts what is traced of them; ``fuzz.nested`` has those that are compared with Python.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import with_source


def program(seed: int, bounded: bool = False) -> str:
    """The text of one program; in ``bounded`` ones every loop has a bound that is known."""
    made = _Programs(seed, bounded)
    return "\n".join(["def f(a, b, n, x):", "    c = 0.25 * a", "    k = 0.0",
                      "    v = np.zeros(3)", *made.block("    ", False, 0),
                      *made.block("    ", False, 0),
                      "    return a * 1.0, b * 1.0, c * 1.0, v"]) + "\n"


class _Programs:
    def __init__(self, seed: int, bounded: bool) -> None:
        self.rng, self.bounded = random.Random(seed), bounded
        self.count, self.budget = 0, self.rng.randint(4, 16)

    def variable(self) -> str:
        return self.rng.choice("abc")

    def expression(self, depth: int = 0) -> str:
        kind, inner = self.rng.random(), depth + 1
        if depth > 2 or kind < 0.35:
            return self.rng.choice(["a", "b", "c", "a", "b", "c", "1.0", "0.5", "2.0", "k"])
        if kind < 0.75:
            sign = self.rng.choice("+-*")
            return f"({self.expression(inner)} {sign} {self.expression(inner)})"
        if kind < 0.82:
            return f"max({self.expression(inner)}, {self.expression(inner)})"
        if kind < 0.88:
            return f"abs({self.expression(inner)})"
        if kind < 0.94:
            return (f"({self.expression(inner)} if {self.test(inner)} else "
                    f"{self.expression(inner)})")
        return f"np.tanh({self.expression(inner)})"

    def test(self, depth: int = 0) -> str:
        kind, inner = self.rng.random(), depth + 1
        if depth > 2 or kind < 0.6:
            sign = self.rng.choice(["<", ">", "<=", "!="])
            return f"{self.expression(inner)} {sign} {self.expression(inner)}"
        if kind < 0.7:
            return f"not ({self.test(inner)})"
        if kind < 0.8:
            return f"-1.0 < {self.expression(inner)} < {self.expression(inner)}"
        return f"({self.test(inner)} {self.rng.choice(['and', 'or'])} {self.test(inner)})"

    def block(self, indent: str, loop: bool, depth: int) -> list[str]:
        made: list[str] = []
        for _ in range(self.rng.randint(1, 3)):
            self.budget -= 1
            if self.budget < 0:
                break
            made += self.statement(indent, loop, depth)
        return made or [f"{indent}{self.variable()} = np.tanh({self.expression()})"]

    def statement(self, indent: str, loop: bool, depth: int) -> list[str]:
        kind = self.rng.random()
        self.count += 1
        if depth > 3 or kind < 0.4:
            return [indent + self.assignment()]
        if kind < 0.62:
            return self.branch(indent, loop, depth)
        if kind < 0.82:
            return self.loop(indent, loop, depth, kind < 0.72)
        if kind < 0.9 and loop:
            return [f"{indent}if {self.test()}:",
                    f"{indent}    {self.rng.choice(['break', 'continue'])}"]
        if kind < 0.95:
            return [f"{indent}if {self.test()}:",
                    f"{indent}    return ({self.expression()}) * 1.0, b * 1.0, c * 1.0, v"]
        return [f"{indent}{self.variable()} = np.tanh({self.expression()})"]

    def assignment(self) -> str:
        if self.rng.random() < 0.2:
            sign = self.rng.choice(["=", "+="])
            return f"v[{self.rng.randrange(3)}] {sign} {self.expression()}"
        if self.rng.random() < 0.1:
            return f"v = v * np.tanh({self.expression()})"
        return f"{self.variable()} {self.rng.choice(['=', '=', '+='])} np.tanh({self.expression()})"

    def branch(self, indent: str, loop: bool, depth: int) -> list[str]:
        inner = indent + "    "
        made = [f"{indent}if {self.test()}:", *self.block(inner, loop, depth + 1)]
        if self.rng.random() < 0.3:
            made += [f"{indent}elif {self.test()}:", *self.block(inner, loop, depth + 1)]
        if self.rng.random() < 0.6:
            made += [f"{indent}else:", *self.block(inner, loop, depth + 1)]
        return made

    def loop(self, indent: str, loop: bool, depth: int, counted: bool) -> list[str]:
        inner = indent + "    "
        if self.bounded:
            return [f"{indent}for k in {self.rng.choice(['range(3)', 'range(1, 5)', 'x'])}:",
                    *([f"{inner}if {self.test()}:", f"{inner}    break"] if not counted else []),
                    *self.block(inner, True, depth + 1)]
        if not counted:
            name = f"w{self.count}"
            return [f"{indent}{name} = 0", f"{indent}while {name} < 4 and {self.test()}:",
                    f"{inner}{name} += 1", *self.block(inner, True, depth + 1)]
        items = self.rng.choice(["range(n)", "range(3)", "range(1, n + 2)", "x"])
        made = [f"{indent}for k in {items}:", *self.block(inner, True, depth + 1)]
        if self.rng.random() < 0.2:
            made += [f"{indent}else:", *self.block(inner, loop, depth + 1)]
        return made


def function_of(seed: int, bounded: bool = False) -> Any:
    """The function of one program, whose source is found by its lines."""
    return with_source.run(program(seed, bounded), {"np": np})["f"]
