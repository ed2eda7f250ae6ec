"""Fused elementwise work, from a thousand to a million elements.

NumPy makes a pass over memory for each operation, a compiler one for all of them: the limit is to
read each argument and write each result once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compare import Bench, Workload
from .peers import Framework, Function
from .report import Table

TITLE = "fused elementwise"
MILLION = 1 << 20


def polynomial(_: Framework) -> Function:
    """Additions and multiplications only."""
    def run(x: Any, y: Any) -> Any:
        return (x * y + 0.5) * (x - y) + x * 2 + y * y

    return run


def transcendental(framework: Framework) -> Function:
    xp = framework.np

    def run(x: Any, y: Any) -> Any:
        return xp.tanh(x * y + 0.5) * xp.exp(-x * x) + xp.sqrt(y * y + 1)

    return run


def gelu(framework: Framework) -> Function:
    def run(x: Any, bias: Any) -> Any:
        return framework.gelu(x + bias)

    return run


def black_scholes(framework: Framework) -> Function:
    """Prices of European call and put options (Black and Scholes, 1973)."""
    xp, erf = framework.np, framework.erf

    def run(spot: Any, strike: Any, years: Any) -> Any:
        rate, volatility = 0.02, 0.3
        spread = volatility * xp.sqrt(years)
        d1 = (xp.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
        d2 = d1 - spread
        below1 = 0.5 + 0.5 * erf(d1 * 0.7071067811865476)
        below2 = 0.5 + 0.5 * erf(d2 * 0.7071067811865476)
        discounted = strike * xp.exp(-rate * years)
        call = spot * below1 - discounted * below2
        return call, call - spot + discounted

    return run


def masked(framework: Framework) -> Function:
    """Comparisons and choices, as in a clipped activation."""
    xp = framework.np

    def run(x: Any, y: Any) -> Any:
        return xp.where((x > y) & (x > 0), x * 2 - y, xp.abs(y) + 1)

    return run


def sizes(quick: bool) -> tuple[int, ...]:
    return (1 << 10, MILLION) if quick else (1 << 10, 1 << 15, MILLION)


def called(count: int) -> str:
    return f"{count >> 20} M" if count >= MILLION else f"{count >> 10} K"


def run(bench: Bench) -> list[Table]:
    rng = np.random.default_rng(0)
    works = []
    for count in sizes(bench.quick):
        x, y = (rng.standard_normal(count).astype(np.float32) for _ in range(2))
        must = 3.0 if count == MILLION else None
        works += [Workload(f"polynomial, {called(count)}", polynomial, (x, y), must=must),
                  Workload(f"tanh, exp, sqrt, {called(count)}", transcendental, (x, y), must=must),
                  Workload(f"where, {called(count)}", masked, (x, y))]
        prices = [rng.uniform(low, high, count).astype(np.float32)
                  for low, high in ((50, 150), (50, 150), (0.25, 2))]
        works.append(Workload(f"Black-Scholes, {called(count)}", black_scholes, tuple(prices),
                              must=must))
    rows = rng.standard_normal((1024, 1024)).astype(np.float32)
    bias = rng.standard_normal(1024).astype(np.float32)
    works.append(Workload("bias + gelu, 1024 x 1024", gelu, (rows, bias), must=3.0))
    wide = [rng.standard_normal(MILLION) for _ in range(2)]
    works.append(Workload("tanh, exp, sqrt, 1 M float64", transcendental, tuple(wide)))
    return [bench.compare(TITLE, works)]
