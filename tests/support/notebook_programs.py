"""Programs as they stand in notebooks and textbooks, of plain NumPy: signals, prices, images,
graphs, tables, dynamic programming. Each with arguments; compiled, it gives what NumPy gives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
RNG = np.random.default_rng(7)
SIGNAL = np.sin(np.linspace(0, 20, 64)) + 0.1 * RNG.normal(size=64)
PRICES = 100 * np.exp(np.cumsum(RNG.normal(0, 0.01, size=48)))
IMAGE = RNG.integers(0, 256, size=(8, 10)).astype(np.uint8)
POINTS = np.vstack([RNG.normal(size=(10, 2)), RNG.normal(size=(10, 2)) + 2])
LABELS = np.repeat([0, 1], 10)


def program(*args: Any) -> Callable[..., Any]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append((function, args))
        return function

    return add


@program(SIGNAL)
def biquad_filter(x):
    b, a = [0.2, 0.3, 0.2], [1.0, -0.5, 0.25]
    y = np.zeros_like(x)
    x1 = x2 = y1 = y2 = 0.0
    for n in range(len(x)):
        y[n] = b[0] * x[n] + b[1] * x1 + b[2] * x2 - a[1] * y1 - a[2] * y2
        x2, x1 = x1, x[n]
        y2, y1 = y1, y[n]
    return y


@program(SIGNAL)
def peaks_above_their_neighbours(x):
    peaks = np.flatnonzero((x[1:-1] > x[:-2]) & (x[1:-1] > x[2:])) + 1
    crossings = np.where(np.diff(np.signbit(x)))[0]
    return peaks, x[peaks], np.diff(peaks), crossings, len(crossings)


@program(SIGNAL)
def envelope(x):
    n = len(x)
    h = np.zeros(n)
    h[0] = h[n // 2] = 1
    h[1:n // 2] = 2
    z = np.fft.ifft(np.fft.fft(x) * h)
    return np.abs(z), np.unwrap(np.angle(z))


@program(PRICES)
def drawdown(p):
    peak = np.maximum.accumulate(p)
    below = (p - peak) / peak
    end = np.argmin(below)
    start = np.argmax(p[:end]) if end > 0 else 0
    return below.min(), start, end, p[start:end + 1]


@program(np.array([-1000.0, 300, 420, 680]))
def rate_of_return(flows):
    rate = 0.1
    t = np.arange(len(flows))
    for _ in range(100):
        value = np.sum(flows / (1 + rate) ** t)
        slope = np.sum(-t * flows / (1 + rate) ** (t + 1))
        new = rate - value / slope
        if abs(new - rate) < 1e-10:
            break
        rate = new
    return rate


@program(IMAGE)
def otsu_threshold(image):
    p = np.bincount(image.ravel(), minlength=256) / image.size
    weight, mean = np.cumsum(p), np.cumsum(p * np.arange(256))
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (mean[-1] * weight - mean) ** 2 / (weight * (1 - weight))
    best = np.nanargmax(between)
    return best, (image > best).astype(np.uint8) * 255


@program(IMAGE > 100)
def bounding_box(mask):
    rows, columns = np.where(mask)
    return mask[rows.min():rows.max() + 1].sum(), np.argwhere(mask), np.unique(columns)


@program((IMAGE > 100).astype(int))
def connected_labels(b):
    labels = np.arange(1, b.size + 1).reshape(b.shape) * b
    while True:
        new = labels.copy()
        new[1:] = np.maximum(new[1:], labels[:-1])
        new[:-1] = np.maximum(new[:-1], labels[1:])
        new[:, 1:] = np.maximum(new[:, 1:], labels[:, :-1])
        new[:, :-1] = np.maximum(new[:, :-1], labels[:, 1:])
        new *= b
        if np.array_equal(new, labels):
            break
        labels = new
    return labels, np.unique(labels[labels > 0])


@program(RNG.integers(0, 5, size=20).astype(float), RNG.normal(size=20))
def rank_correlation(a, b):
    def ranks(x):
        order = x.argsort(kind="stable")
        found = np.empty(len(x))
        found[order] = np.arange(1, len(x) + 1)
        _, which = np.unique(x, return_inverse=True)
        sums = np.bincount(which, weights=found, minlength=len(x))
        return (sums / np.maximum(np.bincount(which, minlength=len(x)), 1))[which]

    return np.corrcoef(ranks(a), ranks(b))[0, 1]


@program(np.array([3, 1, 1, 2, 2, 2, 5, 5]))
def run_lengths(x):
    starts = np.flatnonzero(np.r_[True, x[1:] != x[:-1]])
    return x[starts], np.diff(np.append(starts, len(x)))


@program(np.array([1.0, np.nan, 3.0, np.nan, np.nan, 6.0, np.nan]))
def gaps_filled(a):
    gaps, t = np.isnan(a), np.arange(len(a))
    last = np.maximum.accumulate(np.where(gaps, 0, t))
    between = a.copy()
    between[gaps] = np.interp(t[gaps], t[~gaps], a[~gaps])
    return a[last], between, a[~gaps]


@program(np.array([0.2, 0.5, 0.9, 0.1]), np.array([1, 0, 2, 1]))
def groups(values, keys):
    order = np.lexsort((values, keys))
    return (values[order], [values[keys == k].mean() for k in range(3)],
            [values[keys == k] for k in range(3)], np.unique(keys, return_counts=True))


@program(np.array([[0, 1], [1, 1], [0, 1], [0, 0]]), np.array([1.0, 2, 4, 8]))
def table_of_keys(keys, values):
    rows, number, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    return rows, np.bincount(number, weights=values, minlength=4), counts


@program(POINTS, LABELS)
def decision_stump(points, labels):
    best, axis, at = np.inf, -1, 0.0
    for j in range(points.shape[1]):
        for t in points[::7, j]:
            left, right = labels[points[:, j] <= t], labels[points[:, j] > t]
            if len(left) == 0 or len(right) == 0:
                continue
            score = left.var() * len(left) + right.var() * len(right)
            if score < best:
                best, axis, at = score, j, t
    return best, axis, at


@program(POINTS, LABELS)
def perceptron(points, labels):
    w, b, errors = np.zeros(2), 0.0, []
    for _ in range(4):
        wrong = 0
        for x, y in zip(points, np.where(labels == 0, -1, 1), strict=True):
            change = 0.1 * (y - np.where(np.dot(x, w) + b >= 0.0, 1, -1))
            w += change * x
            b += change
            wrong += int(change != 0.0)
        errors.append(wrong)
    return w, b, errors


@program(np.array([[0, 7, np.inf, 5], [7, 0, 8, 9], [np.inf, 8, 0, 7], [5, 9, 7, 0]]))
def shortest_ways(graph):
    n = len(graph)
    far, done, before = np.full(n, np.inf), np.zeros(n, bool), np.full(n, -1)
    far[0] = 0
    for _ in range(n):
        u = np.argmin(np.where(done, np.inf, far))
        done[u] = True
        other = far[u] + graph[u]
        better = (other < far) & ~done
        far[better] = other[better]
        before[better] = u
    return far, before


@program(RNG.random((9, 9)) < 0.25)
def levels(adjacent):
    level = -np.ones(len(adjacent), dtype=int)
    front = np.zeros(len(adjacent), dtype=bool)
    front[0] = True
    level[front] = depth = 0
    while front.any():
        depth += 1
        front = adjacent[front].any(axis=0) & (level < 0)
        level[front] = depth
    return level, np.flatnonzero(level < 0)


@program(np.array([[0, 1], [1, 2], [3, 4], [4, 0], [5, 5]]))
def united(edges):
    parent = np.arange(6)

    def find(x):
        while parent[x] != x:
            x = parent[x]
        return x

    for a, b in edges:
        first, second = find(a), find(b)
        if first != second:
            parent[second] = first
    return np.array([find(i) for i in range(6)])


@program(RNG.integers(0, 4, size=7), RNG.integers(0, 4, size=6))
def edit_distance(a, b):
    before = np.arange(len(b) + 1)
    for i, ours in enumerate(a):
        row = np.empty_like(before)
        row[0] = i + 1
        for j, theirs in enumerate(b):
            row[j + 1] = min(before[j + 1] + 1, row[j] + 1, before[j] + (ours != theirs))
        before = row
    return before[-1]


@program(np.array([-2, 1, -3, 4, -1, 2, 1, -5, 4]))
def largest_sum(x):
    best = here = x[0]
    start = first = last = 0
    for i in range(1, len(x)):
        if here < 0:
            here = x[i]
            start = i
        else:
            here += x[i]
        if here > best:
            best, first, last = here, start, i
    return best, first, last, x[first:last + 1]


@program(RNG.integers(0, 100, size=9))
def sorted_by_insertion(a):
    a = a.copy()
    for i in range(1, len(a)):
        key, j = a[i], i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


@program(np.array([1071, 600, 17]), np.array([462, 1000, 5]))
def whole_numbers(a, b):
    def power(base, exponent, modulus):
        found = 1
        while exponent > 0:
            if exponent & 1:
                found = found * base % modulus
            base = base * base % modulus
            exponent >>= 1
        return found

    return ([math.gcd(x, y) for x, y in zip(a, b, strict=True)], power(a[2], b[1], 1000007),
            max(abs(x - y) for x, y in itertools.combinations(a, 2)), math.isqrt(b[1]))


@dataclass
class Body:
    """A body on a plane."""

    place: np.ndarray
    speed: np.ndarray


@program(np.array([0.0, 1.0]), np.array([1.0, 0.0]))
def orbit(place, speed):
    body = Body(place, speed)
    for _ in range(10):
        body = replace(body, speed=body.speed - 0.01 * body.place / np.linalg.norm(
            body.place) ** 3)
        body = replace(body, place=body.place + 0.01 * body.speed)
    return body


@program(RNG.random((6, 3)))
def swaps_under_masks(x):
    y = x.copy()
    low = y[:, 0] < 0.5
    rows = y[low]
    y[low] = 0
    y[~low] *= 2
    first = y[:, 1][~low]
    y[:, 1][low] = -1
    return y, rows, first, rows.sum(axis=0)
