"""Host steps that native code runs without Python, by NumPy's own inner loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import weft
from weft.runtime.host import _Site

RNG = np.random.default_rng(0)
MATRICES = RNG.normal(size=(5, 4, 4)) + 4 * np.eye(4)
WIDE = RNG.normal(size=(5, 3, 4))

FUNCTIONS: Mapping[str, tuple[Callable[[Any], Any], Any]] = {
    "inv": (np.linalg.inv, MATRICES),
    "solve": (lambda a: np.linalg.solve(a, a[0]), MATRICES),
    "solve several": (lambda a: np.linalg.solve(a, a[:, :3]), MATRICES),
    "cholesky": (lambda a: np.linalg.cholesky(a @ a.T), MATRICES),
    "det": (np.linalg.det, MATRICES),
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], MATRICES),
    "eigh": (lambda a: np.linalg.eigh(a + a.T)[1], MATRICES),
    "eigvalsh upper": (lambda a: np.linalg.eigvalsh(a, UPLO="U"), MATRICES),
    "svd": (lambda a: np.linalg.svd(a)[2], WIDE),
    "reduced svd": (lambda a: np.linalg.svd(a, full_matrices=False)[0], WIDE),
    "singular values": (lambda a: np.linalg.svd(a, compute_uv=False), WIDE),
    "complex inv": (np.linalg.inv, MATRICES * (1 + 0.5j)),
    "complex eigvalsh": (np.linalg.eigvalsh, MATRICES * (1 + 0.5j)),
}


def each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of each matrix, in a loop."""
    def rounds(matrices: Any) -> Any:
        found = []
        for at in range(len(matrices)):
            found.append(function(matrices[at]))
        return np.stack(found)

    return rounds


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the host steps that Python runs."""
    names: list[str] = []

    def run(site: _Site, address: int) -> None:
        names.append(site.name)
        original(site, address)

    original = _Site.run
    monkeypatch.setattr(_Site, "run", run)
    return names


@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_have_the_bits_of_numpy(name: str, called: list[str]) -> None:
    function, matrices = FUNCTIONS[name]
    found, wanted = weft.compile(each(function))(matrices), each(function)(matrices)
    if name == "complex eigvalsh":  # whose results are of another dtype
        np.testing.assert_allclose(found, wanted)
    else:
        np.testing.assert_array_equal(found, wanted)
        assert called == []


@pytest.mark.parametrize("native", [True, False])
def test_what_has_no_result_is_told_by_numpy(
    native: bool, monkeypatch: pytest.MonkeyPatch, called: list[str]
) -> None:
    if not native:
        monkeypatch.setenv("WEFT_NATIVE_CALL", "0")
    f = weft.compile(lambda a, b: np.linalg.inv(a @ b))
    np.testing.assert_array_equal(f(MATRICES[0], np.eye(4)), np.linalg.inv(MATRICES[0]))
    assert called == []
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        f(MATRICES[0], np.zeros((4, 4)))
    assert np.isnan(f(MATRICES[0], np.full((4, 4), np.nan))).all()
    assert called == ["np.linalg.inv"] * 2
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        weft.compile(np.linalg.cholesky)(-np.eye(3))


@pytest.mark.parametrize("x", [
    MATRICES[0].astype(np.float32), MATRICES, np.ones((0, 0))], ids=["f32", "stack", "empty"])
def test_other_matrices_are_for_python(x: Any, called: list[str]) -> None:
    np.testing.assert_array_equal(weft.compile(np.linalg.inv)(x), np.linalg.inv(x))
    assert called == ["np.linalg.inv"]


def test_named_sizes_are_for_python(called: list[str]) -> None:
    f = weft.compile(np.linalg.inv, dynamic={"a": {0: "n", 1: "n"}})
    np.testing.assert_array_equal(f(MATRICES[0]), np.linalg.inv(MATRICES[0]))
    assert called == ["np.linalg.inv"]


def test_a_ufunc_that_is_laid_out_in_another_way_is_for_python(
    monkeypatch: pytest.MonkeyPatch, called: list[str]
) -> None:
    monkeypatch.setattr("weft.runtime.inner._HEAD", object.__basicsize__ + 8)
    np.testing.assert_array_equal(weft.compile(np.linalg.det)(MATRICES[0]),
                                  np.linalg.det(MATRICES[0]))
    assert called == ["np.linalg.det"]


def test_steps_of_both_kinds_in_one_program(called: list[str]) -> None:
    def f(a: Any) -> Any:
        q, r = np.linalg.qr(a)
        return np.linalg.inv(a) @ q @ r

    np.testing.assert_allclose(weft.compile(f)(MATRICES[0]), np.eye(4), atol=1e-12)
    assert called == ["np.linalg.qr"]
