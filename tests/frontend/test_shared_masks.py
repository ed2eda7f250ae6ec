"""Arrays that are chosen by one mask stay side by side through branches and loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

POINTS = (np.linspace(-2, 2, 7)[:, None] + 1j * np.linspace(-1, 1, 5)).ravel()


def escaping(x0: Any, x1: Any, y0: Any, y1: Any, nx: int, ny: int, rounds: int,
             limit: float = 2.0) -> Any:
    """When the points of a grid leave a disk, if they do: those that have are taken out."""
    rows, columns = np.mgrid[:nx, :ny]
    c = np.linspace(x0, x1, nx)[rows] + 1j * np.linspace(y0, y1, ny)[columns]
    steps, last = np.zeros((nx, ny), int), np.zeros((nx, ny), complex)
    rows, columns, c = (each.reshape(nx * ny) for each in (rows, columns, c))
    z = np.zeros(nx * ny, complex)
    for step in range(rounds):
        if len(z) == 0:
            break
        np.multiply(z, z, z)
        np.add(z, c, z)
        gone = np.abs(z) > limit
        steps[rows[gone], columns[gone]] = step + 1
        last[rows[gone], columns[gone]] = z[gone]
        np.logical_not(gone, gone)
        z, rows, columns, c = z[gone], rows[gone], columns[gone], c[gone]
    return last.T, steps.T


@pytest.mark.parametrize(("nx", "ny", "rounds"), [
    pytest.param(7, 5, 6, marks=pytest.mark.long), (4, 4, 1), (3, 6, 12)])
def test_points_that_are_taken_out(nx: int, ny: int, rounds: int) -> None:
    bounds = (-2.25, 0.75, -1.25, 1.25)
    found = weft.compile(escaping)(*bounds, nx, ny, rounds)
    for got, want in zip(found, escaping(*bounds, nx, ny, rounds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def in_a_loop_with_an_end(z: Any, rows: Any) -> Any:
    c = z
    for _ in range(6):
        if not len(z):
            break
        z = z * z + c
        kept = abs(z) < 2
        z, rows, c = z[kept], rows[kept], c[kept]
    return len(z), z.sum(), rows.sum()


def in_a_while(z: Any, rows: Any) -> Any:
    c = z
    while len(z) > 9:
        z = z * z + c
        kept = abs(z) < 2
        z = z[kept]
        rows = rows[kept]
        c = c[kept]
    return z.sum(), (rows * z.real).sum()


def in_a_branch(z: Any, rows: Any) -> Any:
    kept = abs(z) < 2
    z, rows = z[kept], rows[kept]
    if rows.sum() > 3:
        kept = abs(z) < 1
        z, rows = z[kept], rows[kept]
    kept = abs(z) < 0.9
    return (z[kept] * rows[kept]).sum(), len(z)


def masks_that_part(z: Any, rows: Any) -> Any:
    """Before the loop the masks are one, and not after a round."""
    kept = abs(z) < 2
    z, rows = z[kept], rows[kept]
    count = 0
    while len(z) > 9:
        z = z[abs(z) < 1.6 - 0.3 * count]
        rows = rows[rows > count * 5]
        count += 1
    return z.sum(), rows.sum(), len(rows), count


@pytest.mark.parametrize("function", [
    in_a_loop_with_an_end, in_a_while, in_a_branch, masks_that_part])
def test_loops_and_branches(function: Callable[..., Any]) -> None:
    rows = np.arange(35)
    for points in (POINTS, POINTS * 0.2, POINTS * 40):
        if function is in_a_while and len(points[abs(points) < 0.5]) == 35:
            continue  # which would never end
        want, got = function(points, rows), weft.compile(function)(points, rows)
        np.testing.assert_allclose(np.array(got), np.array(want), rtol=1e-12)


def test_ways_of_which_one_chooses_and_the_other_does_not() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        if x.sum() > 0:
            y = y[y > 1]
        return y

    compiled = weft.compile(function)
    for x in (np.arange(3.0), -np.arange(3.0), np.array([4.0, -1, 2])):
        np.testing.assert_array_equal(compiled(x), function(x))
