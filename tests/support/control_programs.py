"""Functions with Python's own control flow, as people write them, and arguments for each.

They are plain NumPy code: ``test_control_flow`` compiles them as they stand.
"""

# ruff: noqa: B007, B905, C419, E701, E702, E731, RET504, SIM108

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: list[tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]] = []


def prog(*calls: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function with the arguments of some calls."""
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append((function, calls))
        return function

    return add


@prog((3.0,),(-2.0,))
def absolute(x: Any) -> Any:
    if x > 0:
        y = x
    else:
        y = -x
    return y


@prog((3.0,),(-2.0,),(0.0,))
def early(x: Any) -> Any:
    if x > 0:
        return 1.0
    if x < 0:
        return -1.0
    return 0.0


@prog((np.array([1.,2,3]),10.0),(np.array([1.,2,3]),0.5))
def total(x: Any, most: Any) -> Any:
    s = 0.0
    while s < most:
        s += x.sum()
    return s


@prog((27,),(1,),(97,))
def collatz(n: Any) -> Any:
    k = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        k += 1
    return k


@prog((2.0,),(10.0,))
def newton(a: Any) -> Any:
    x = a
    for _ in range(50):
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-12:
            break
        x = new
    return x


@prog((np.arange(5.),3),(np.arange(5.),0))
def forn(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += x[i] * i
    return s


@prog((np.array([3.,-1,2,-5]),))
def positive(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        if x[i] < 0:
            continue
        s = s + x[i]
    return s


@prog((np.array([3.,1,2,5]),2.0),(np.array([3.,1,2,5]),7.0))
def find(x: Any, v: Any) -> Any:
    for i in range(len(x)):
        if x[i] == v:
            return i
    return -1


@prog((1.0,2.0),(2.0,1.0))
def ternary(a: Any, b: Any) -> Any:
    m = a if a > b else b
    n = max(a, b) + min(a, b, 3.0)
    return m, n


@prog((0.5,),(1.5,),(-1.0,))
def logic(x: Any) -> Any:
    if x > 0 and x < 1:
        return 1
    if not x > 0 or x > 5:
        return 2
    return 3


@prog((0.5,),(1.5,))
def chain(x: Any) -> Any:
    return 1.0 if 0 < x < 1 else 0.0


@prog((2.0,),(0.25,))
def mathf(x: Any) -> Any:
    if x > 1:
        return math.sqrt(x) + math.exp(x)
    return math.log(x) * math.pi


@prog((np.array([4.,1,3,2]),))
def bubble(x: Any) -> Any:
    x = x.copy()
    n = len(x)
    for i in range(n):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return x


@prog((np.array([4.,1,3,2,9,7]),))
def insertion(x: Any) -> Any:
    x = x.copy()
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


@prog((48,18),(17,5))
def gcd(a: Any, b: Any) -> Any:
    while b:
        a, b = b, a % b
    return a


@prog((np.array([1.,3,5,7,9]),7.0),(np.array([1.,3,5,7,9]),4.0))
def bisect(x: Any, v: Any) -> Any:
    lo, hi = 0, len(x)
    while lo < hi:
        mid = (lo + hi) // 2
        if x[mid] < v:
            lo = mid + 1
        else:
            hi = mid
    return lo


def helper(x: Any) -> Any:
    if x > 2:
        return x * 2
    return x


@prog((3.0,),(1.0,))
def calls(x: Any) -> Any:
    return helper(x) + sum([helper(x + i) for i in range(3)])


@prog((np.array([1.,-2,3]),))
def mapped(x: Any) -> Any:
    return np.array(list(map(helper, x)))


@prog((np.zeros(3),5.0),(np.zeros(3),-5.0))
def buffers(x: Any, v: Any) -> Any:
    o = np.zeros(3)
    w = o[1:]
    if v > 0:
        o[0] = v
        w[1] = 2 * v
    else:
        w += 1
    return o + x, w


@prog((np.ones(4),0.3),(np.ones(4),0.9))
def dicts(x: Any, v: Any) -> Any:
    state = {"h": x, "n": 0}
    out = []
    if v > 0.5:
        state["h"] = state["h"] * v
        state["n"] += 1
    out.append(state["h"])
    return state, out[0]


@prog((np.array([0.,1,2]),))
def argument(x: Any) -> Any:
    if x[0] == 0:
        x = x + 1
    return x


@prog((10,),(100,))
def fib(n: Any) -> Any:
    a, b = 0, 1
    while a < n:
        a, b = b, a + b
    return a


@prog((0.3,),(0.7,))
def nested(p: Any) -> Any:
    n = 0
    s = 0.0
    while s < 3:
        k = 0
        while k < 4:
            if s * p > k:
                s += 0.1
            else:
                s += p
                n += 1
            k += 1
        if n > 20:
            break
    return s, n


@prog((5,),(0,))
def while_else(n: Any) -> Any:
    r = 0
    i = 0
    while i < n:
        i += 1
        if i == 3:
            r = 100
            break
    else:
        r = -1
    return r, i


class Model:
    def __init__(self): self.w = np.array([1.0, 2.0])
    def act(self, x):
        if x.sum() > 0:
            return x @ self.w
        return 0.0


m = Model()


@prog((np.array([1.,2]),),(np.array([-1.,-2]),))
def method(x: Any) -> Any:
    return m.act(x)


@prog((np.array([1.,2]),),(np.array([-1.,-2]),))
def lam(x: Any) -> Any:
    f = lambda v: v if v > 0 else -v
    return f(x[0]) + f(x[1])


@prog((2.5,),(-2.5,))
def conv(x: Any) -> Any:
    n = int(x)
    if n > 0:
        return float(n) + round(x)
    return abs(x) + bool(x)


@prog((np.array([[1.,2],[3,4]]),1e-10),)
def power(A: Any, tol: Any) -> Any:
    v = np.ones(2)
    lam = 0.0
    for it in range(1000):
        w = A @ v
        new = np.linalg.norm(w)
        v = w / new
        if abs(new - lam) < tol:
            break
        lam = new
    return new, v, it


@prog((3,),(8,))
def inlist(n: Any) -> Any:
    if n in (1, 2, 3):
        return 10
    return n if n not in [8] else 0


@prog((np.array([1.,2,3]),2.0),(np.array([1.,2,3]),9.0))
def walrus(x: Any, v: Any) -> Any:
    s = 0.0
    while (s := s + x.sum()) < v:
        pass
    return s


@prog((3.0, np.array([1.,2.])),(-3.0, np.array([1.,2.])))
def nonev(x: Any, y: Any) -> Any:
    z = None
    if x > 0:
        z = y * x
    else:
        z = y
    return z


@prog((2.0,),(200.0,))
def logistic(r: Any) -> Any:
    x = 0.5
    n = 0
    while True:
        x = r * x * (1 - x) if r < 4 else x / 2
        n += 1
        if n >= 10 or x < 1e-3:
            break
    return x, n


@prog((np.linspace(0,1,7),))
def rowsum(x: Any) -> Any:
    c = 0
    for v in x:
        if v > 0.4:
            c += 1
    return c


@prog((1.0,),(4.0,))
def deep(x: Any) -> Any:
    with np.errstate(all="ignore"):
        if x > 2:
            y = np.sqrt(x)
            return y
    for k in range(3):
        x = x * 2
        if x > 3:
            return x + k
    return x


@prog((np.zeros((4,4)),3),(np.ones((4,4)),0))
def heat(u: Any, n: Any) -> Any:
    u = u.copy()
    u[0] = 1.0
    for t in range(n):
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        u = new
    return u


@prog((np.arange(6.),2),(np.arange(6.),5))
def filt(x: Any, n: Any) -> Any:
    out = np.zeros(6)
    acc = 0.0
    for i in range(n):
        acc = 0.5 * acc + x[i]
        out[i] = acc
    return out


@prog((np.arange(6.)-2,),)
def relu_loop(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] if x[i] > 0 else 0.0
    return y


@prog((5,),(1,))
def closure(n: Any) -> Any:
    acc = 0
    def add(k):
        nonlocal acc
        acc += k
    i = 0
    while i < n:
        add(i)
        i += 1
    return acc


@prog((np.array([5.,3,9,1]),))
def argmaxloop(x: Any) -> Any:
    best = -np.inf
    where = -1
    for i, v in enumerate(x):
        if v > best:
            best, where = v, i
    return best, where


@dataclasses.dataclass


class S:
    a: float
    b: float


@prog((1.0,),(-1.0,))
def objs(x: Any) -> Any:
    s = S(1.0, 2.0)
    if x > 0:
        s.a = x * 3
    else:
        s.b = x
    return s.a + s.b


@prog((1.0,),(-1.0,))
def lists(x: Any) -> Any:
    out = []
    if x > 0:
        out.append(x)
    else:
        out.append(x * 2)
    out.append(3.0)
    return out


@prog((np.ones(3),4),)
def listcomp(x: Any, n: Any) -> Any:
    ys = [v * 2 if v > 0 else v for v in x]
    return sum(ys), any([v > 0 for v in x]), all(v > 0 for v in x)


@prog((12,),(13,))
def isprime(n: Any) -> Any:
    if n < 2:
        return False
    i = 2
    while i * i <= n:
        if n % i == 0:
            return False
        i += 1
    return True


@prog((0.1,),(0.9,))
def rec(x: Any) -> Any:
    def f(x, n):
        if n == 0:
            return x
        return f(x * 2 if x < 1 else x, n - 1)
    return f(x, 5)


@prog((3.0,),(-3.0,))
def tryexc(x: Any) -> Any:
    try:
        if x > 0:
            y = x
        else:
            y = 0.0
    finally:
        z = 1.0
    return y + z


@prog((np.array([1.,2,3]),np.array([2.,2,2])),)
def zips(x: Any, y: Any) -> Any:
    c = 0
    for a, b in zip(x, y):
        if a == b:
            c += 1
        elif a > b:
            c += 10
    return c


@prog((10.0,),(1.0,))
def secant(a: Any) -> Any:
    lo, hi = 0.0, max(1.0, a)
    for _ in range(60):
        mid = (lo + hi) / 2
        if mid * mid > a: hi = mid
        else: lo = mid
    return lo


@prog((4,),(6,))
def pascal(n: Any) -> Any:
    row = np.zeros(8)
    row[0] = 1
    for i in range(n):
        for j in range(i + 1, 0, -1):
            row[j] += row[j - 1]
    return row


@prog((np.array([1.,5,2]),2.5),)
def where_list(x: Any, t: Any) -> Any:
    n = 0; s = 0.0
    for v in x:
        if not (v > t): continue
        n += 1; s += v
    return s / n if n else 0.0


def rk(f: Any, y: Any, t: Any, h: Any) -> Any:
    k1=f(t,y); k2=f(t+h/2,y+h/2*k1); return y+h*k2


@prog((1.0,),(0.5,))
def adaptive(y: Any) -> Any:
    t, h, steps = 0.0, 0.1, 0
    f = lambda t, y: -y
    while t < 1.0:
        a = rk(f, y, t, h)
        b = rk(f, rk(f, y, t, h/2), t + h/2, h/2)
        err = abs(a - b)
        if err > 1e-5:
            h /= 2
            continue
        t += h
        y = b
        if err < 1e-7:
            h = min(2 * h, 1.0 - t + 1e-12)
        steps += 1
        if steps > 1000:
            break
    return y, steps
