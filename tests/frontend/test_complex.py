"""Complex numbers through the whole product: programs, arguments, memory, gradients, errors; values
and gradients of functions one by one are in test_numpy_rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.ir.diagnose import DTypeError, Error, UnsupportedError
from weft.ir.verify.verifier import verify_kernel

RNG = np.random.default_rng(11)


def numbers(*shape: int, dtype: Any = np.complex128) -> Any:
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


def same(found: Any, wanted: Any, rtol: float = 1e-12) -> None:
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            same(one, other, rtol)
        return
    assert np.shape(found) == np.shape(wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)


# -- programs -------------------------------------------------------------------------------------

def mandelbrot(c: Any) -> Any:
    z = np.zeros_like(c)
    count = np.zeros(c.shape, int)
    for _ in range(20):
        inside = np.abs(z) <= 2
        z = np.where(inside, z * z + c, z)
        count += inside
    return count


def heat(u: Any) -> Any:
    """The heat equation on a circle by its Fourier series."""
    k = np.fft.fftfreq(u.shape[0], 1 / u.shape[0])
    return np.fft.ifft(np.fft.fft(u) * np.exp(-0.01 * k**2)).real


def roots_of_unity(angles: Any) -> Any:
    z = np.exp(1j * angles)
    return z, np.sum(z), np.prod(z), np.abs(z**8 - 1)


def low_pass(x: Any) -> Any:
    spectrum = np.fft.rfft(x)
    spectrum[5:] = 0
    return np.fft.irfft(spectrum, len(x))


def filled(z: Any) -> Any:
    out = np.zeros((3, 4), complex)
    out[0] = z[1]
    out[1:] += 2 * z[1:]
    out[2, 2] = 1j
    out.real[0] = 5
    out.imag[1] *= 2
    return out


def rotated(x: Any) -> Any:
    w = x * 1j
    w.real = 3
    w.view(x.dtype)[:, 0] = 7
    return w.conj().T @ w, w.view(x.dtype)


PROGRAMS: list[tuple[Callable[..., Any], Any]] = [
    (mandelbrot, np.linspace(-2, 1, 9) + 1j * np.linspace(-1.2, 1.2, 7)[:, None]),
    (heat, RNG.normal(size=16)), (roots_of_unity, 2 * np.pi * np.arange(8) / 8),
    (low_pass, RNG.normal(size=33)), (filled, numbers(3, 4)), (rotated, RNG.normal(size=(4, 3))),
    (lambda z: (z @ z.conj().T, np.einsum("ij,kj->ik", z, z), np.vdot(z, z)), numbers(5, 7)),
    (lambda z: (z + 1, 2 * z, z / 2j, z**2, z**-1, z**0.5, z**1.5j, 3**z), numbers(4)),
    (lambda z: (z < z[::-1], z == z, np.maximum(z, 1), np.sort(z), np.argmax(z)), numbers(6)),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("function", "argument"), PROGRAMS)
def test_programs(function: Callable[..., Any], argument: Any, dtype: Any) -> None:
    argument = argument.astype(np.result_type(dtype, np.complex64)
                               if np.iscomplexobj(argument) else dtype)
    wanted = function(argument)
    kernel: Any = weft.compile(function, verify=True)
    same(kernel(argument), wanted, 2e-5 if dtype == np.float32 else 1e-11)


@pytest.mark.long
def test_levels_and_threads_have_the_same_bits() -> None:
    def function(z: Any) -> Any:
        return np.exp(z) / z, z @ z.T, np.sqrt(z).sum(), np.log(z).mean(0), np.cumsum(z, 1)

    z = numbers(33, 33, dtype=np.complex64)
    found = [[np.asarray(part).tobytes() for part in weft.compile(
                function, opt=opt, threads=threads, target=target)(z)]
             for opt, threads, target in ((0, 1, None), (1, 2, None), (2, 1, "x86-64-v3"),
                                          (2, 2, None))]
    assert all(each == found[0] for each in found)


def test_sizes_that_are_not_known() -> None:
    def function(z: Any) -> Any:
        return (np.abs(z) ** 2, z.sum(), z @ z.T, np.prod(z, axis=0), np.fft.fft(z, axis=1),
                np.fft.fftshift(z), np.concatenate([z, 1j * z]), np.cumprod(z, axis=0))

    kernel: Any = weft.compile(function, dynamic={"z": {0: "b"}})
    for size in (0, 1, 2, 7):
        z = numbers(size, 4)
        same(kernel(z), function(z), 1e-11)
    assert kernel.cache_info().specialisations == 1


def test_control_flow_carries_them() -> None:
    z = numbers(3)
    same(weft.compile(lambda z: weft.fori_loop(0, 5, lambda i, w: w * z + i, z))(z),
         ((((((z * z) * z + 1) * z + 2) * z + 3) * z) + 4))
    last, sums = weft.compile(lambda z: weft.scan(lambda h, x: (h * x, h + x), z[0], z[1:]))(z)
    same((last, sums), (z[0] * z[1] * z[2], np.array([z[0] + z[1], z[0] * z[1] + z[2]])))
    kernel = weft.compile(lambda z: weft.cond(z[0].real > 0, lambda z: 1j * z, lambda z: z.conj(),
                                              z))
    for each in (z, -z):
        same(kernel(each), 1j * each if each[0].real > 0 else each.conj())


def test_a_body_returns_what_the_host_makes() -> None:
    a, b = numbers(3, 4, 2), numbers(4, 2)
    found = weft.compile(weft.vmap(lambda a: np.linalg.lstsq(a, b)[0]))(a)
    same(found, np.stack([np.linalg.lstsq(x, b)[0] for x in a]), 1e-11)


# -- arguments, results and memory ----------------------------------------------------------------

def test_python_numbers_are_weak() -> None:
    kernel: Any = weft.compile(lambda z, s: (z * s, s * 2, abs(s)))
    z = numbers(3, dtype=np.complex64)
    found = kernel(z, 1 + 2j)
    same(found[0], z * np.complex64(1 + 2j), 1e-6)
    assert found[0].dtype == np.complex64
    assert found[1:] == ((1 + 2j) * 2, abs(1 + 2j))
    assert type(found[1]) is complex
    kernel(z, 3j)
    assert kernel.cache_info().specialisations == 1


@pytest.mark.parametrize("native", ["0", "1"])
def test_both_ways_to_call(native: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_NATIVE_CALL", native)
    kernel: Any = weft.compile(lambda z, s: z[::-1] * s)
    z = numbers(6)
    for argument in (z, z[::-1], np.repeat(z, 2)[::2], z.astype(">c16")):
        same(kernel(argument, 2j), argument.astype(complex)[::-1] * 2j)


def test_casts_follow_numpy() -> None:
    z, x = numbers(4), RNG.normal(size=4).astype(np.float32)
    same(weft.compile(lambda z, x: (z.astype(np.complex64), x.astype(complex), x + 1j, z + x,
                                    z.astype(bool), np.float64(2) * x.astype(np.complex64)))(z, x),
         (z.astype(np.complex64), x.astype(complex), x + 1j, z + x, z.astype(bool),
          np.float64(2) * x.astype(np.complex64)))


def test_a_lost_imaginary_part_is_a_warning() -> None:
    z = numbers(3)
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part") as caught:
        found = weft.compile(lambda z: z.astype(np.float32))(z)
    assert caught[0].filename == __file__
    same(found, z.real.astype(np.float32))


def test_variables_sessions_and_steps_of_the_host() -> None:
    state = weft.Variable(np.array([1j, 2]), name="state")

    @weft.compile
    def step(z: Any) -> Any:
        state.assign(state * z)
        return weft.host_call(np.conj, "c128[2]", state + 1) * 2

    z = numbers(2)
    same(step(z), np.conj(np.array([1j, 2]) * z + 1) * 2)
    same(state.numpy(), np.array([1j, 2]) * z)
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("c128", (None,), name="x")
        turned = x * 1j
        size = np.abs(turned)
    session = weft.Session(graph)
    same(session.run(size, {x: z}), np.abs(z))
    same(session.run("size:0", {turned: 2 * z}), np.abs(2 * z))


def test_artifacts(tmp_path: Path) -> None:
    weft.export(weft.compile(lambda z, w: (z * w + 1j, np.abs(z))), "c64[4]", "c64[4]",
                path=tmp_path / "m")
    z, w = numbers(4, dtype=np.complex64), numbers(4, dtype=np.complex64)
    same(weft.load(tmp_path / "m")(z, w), (z * w + 1j, np.abs(z)), 1e-6)
    assert "const float *z,  /* c64[4] */" in (tmp_path / "m" / "m.h").read_text()
    with pytest.raises(Error, match=r"np\.fft\.fft"):
        weft.export(weft.compile(np.fft.fft), "c64[4]", path=tmp_path / "n")


# -- special values -------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -2.5, 0.5, np.inf, -np.inf, np.nan, 700.0, -700.0]


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "abs", "sign", "conj", "negative",
                                  "reciprocal", "isnan", "isinf", "isfinite", "add", "multiply",
                                  "divide", "equal", "less", "less_equal", "maximum", "minimum"])
def test_infinities_zeros_and_nan_are_numpys(name: str) -> None:
    function = getattr(np, name)
    z = np.empty((len(SPECIAL),) * 2, complex)
    z.real, z.imag = np.array(SPECIAL)[:, None], SPECIAL
    given = [z.ravel()]
    if function.nin == 2:
        given = [np.repeat(z, z.size), np.tile(z.ravel(), z.size)]
    with np.errstate(all="ignore"):
        wanted = function(*given)
        found = weft.compile(lambda *z: function(*z))(*given)
    for got, want in ((np.real(found), np.real(wanted)), (np.imag(found), np.imag(wanted))):
        numbers = ~np.isnan(want)
        np.testing.assert_allclose(got, want, rtol=1e-14)
        np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


# -- gradients ------------------------------------------------------------------------------------

def test_the_convention_is_that_of_holomorphic_functions() -> None:
    """dL/dx - i dL/dy: of the real part of f it is f'."""
    z = numbers(5)
    same(weft.grad(lambda z: np.sum(np.sin(z)).real)(z), np.cos(z))
    same(weft.grad(lambda z: np.sum(np.abs(z) ** 2))(z), 2 * np.conj(z))
    same(weft.grad(lambda z: np.sum(z.imag))(z), np.full(5, -1j))


def test_descent_goes_along_the_conjugate() -> None:
    target = numbers(8)

    @weft.compile
    def step(z: Any) -> Any:
        value, slope = weft.value_and_grad(lambda z: np.sum(np.abs(np.fft.fft(z) - target) ** 2))(z)
        return value, z - 0.05 * np.conj(slope)

    z = np.zeros(8, complex)
    for _ in range(200):
        value, z = step(z)
    assert value < 1e-12
    np.testing.assert_allclose(np.fft.fft(z), target, atol=1e-5)


def test_a_complex_result_has_no_gradient() -> None:
    with pytest.raises(DTypeError, match=r"W114: .* complex number(.|\n)*value\.real"):
        weft.compile(weft.grad(lambda z: np.sum(z * z)))(numbers(2))


# -- errors ---------------------------------------------------------------------------------------

@pytest.mark.parametrize(("function", "text"), [
    (np.real_if_close, "take x.real"), (np.floor, "astype"), (lambda z: z // 2, "astype"),
    (lambda z: np.max(z, initial=1), "np.where"), (lambda z: np.fft.rfft(z), "np.fft.fft"),
])
def test_refusals_name_a_way_out(function: Callable[..., Any], text: str) -> None:
    with pytest.raises((UnsupportedError, DTypeError)) as caught:
        weft.compile(function)(numbers(3))
    assert text in str(caught.value)


# -- random programs ------------------------------------------------------------------------------

_UNARY = [np.exp, np.sin, np.tanh, np.conj, np.negative, np.square, np.sqrt,
          lambda z: z.real + 1j, lambda z: abs(z) * (1 + 1j), lambda z: z[::-1],
          lambda z: np.where(z.real > 0, z, 1j * z), lambda z: z.cumsum() / 3,
          lambda z: z - z.mean(), np.fft.fft, np.fft.ifft, lambda z: z.imag]
_BINARY = [np.add, np.subtract, np.multiply, lambda x, y: x / (3 + abs(y)),
           lambda x, y: np.outer(x, y).sum(1) / 5]


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)),
                      min_size=1, max_size=8), seed=st.integers(0, 99), single=st.booleans())
def test_random_programs(steps: list[tuple[int, int, int]], seed: int, single: bool) -> None:
    """NumPy, the interpreter (verify=True) and compiled code agree."""
    rng = np.random.default_rng(seed)
    z = (rng.normal(size=6) + 1j * rng.normal(size=6)).astype(np.complex64 if single else complex)

    def program(z: Any, x: Any) -> Any:
        values = [z, x]
        for kind, first, second in steps:
            left, right = values[first % len(values)], values[second % len(values)]
            made = (_UNARY[kind % len(_UNARY)](left) if kind % 3 else
                    _BINARY[kind % len(_BINARY)](left, right))
            values.append(np.tanh(made) if kind % 2 else made)
        return values[-1]

    x = rng.normal(size=6).astype(np.float32 if single else np.float64)
    with np.errstate(all="ignore"):
        wanted = program(z, x)
        if not np.all(np.isfinite(wanted)) or np.max(np.abs(wanted), initial=0) > 1e3:
            return
        found = weft.compile(program)(z, x)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=2e-2 if single else 1e-7,
                               atol=2e-3 if single else 1e-8)


def test_cumulative_products_without_elements() -> None:
    step: Any = weft.compile(lambda x: np.cumprod(x, axis=1), verify=True)
    assert step(np.zeros((0, 3), complex)).shape == (0, 3)
    for call in step.lower(np.zeros((0, 3), complex)).stages.plan.kernels.values():
        verify_kernel(call)


def test_ranges_of_complex_numbers() -> None:
    def program(x: Any) -> Any:
        return np.arange(5, dtype=complex), np.arange(2, x.shape[0], dtype=np.complex64) * 1j

    step: Any = weft.compile(program, dynamic={"x": {0: "n"}}, verify=True)
    for found, wanted in zip(step(np.ones(6)), program(np.ones(6)), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)


Z = np.array([0.5, 0, 2 + 1j, np.inf, complex(np.nan, 1), complex(0, np.inf), complex(-0.0, 0),
              complex(-0.0, -0.0), complex(1, -0.0), complex(np.inf, 2), 1.5 - 2j])
EXPONENTS = (-1, 0, 1, 2, 3, 4, 5, 7, -2, -3, -1.0, 2.0, 0.5, -1 + 0j, 2 + 0j, np.float64(-1),
             np.float64(2))


@pytest.mark.parametrize("exponent", EXPONENTS, ids=repr)
def test_powers_of_complex_numbers(exponent: Any) -> None:
    with np.errstate(all="ignore"):
        for function in (lambda z: z**exponent, lambda z: np.power(z, exponent)):
            found, wanted = weft.compile(function)(Z), function(Z)
            if exponent == 0.5 and function(Z[:1]) == np.power(Z[:1], 0.5):
                found, wanted = found[[0, 2]], wanted[[0, 2]]  # the logarithm has other digits
                np.testing.assert_allclose(found, wanted, rtol=1e-15)
            else:
                assert list(map(repr, found)) == list(map(repr, wanted))


@pytest.mark.parametrize("exponent", [1, 2, 3, 5])
def test_gradients_of_complex_powers_at_0(exponent: int) -> None:
    found = weft.compile(weft.grad(lambda z: (z**exponent).real.sum()))(np.array([0j, 1 + 2j]))
    np.testing.assert_allclose(found, exponent * np.array([
        1.0 if exponent == 1 else 0.0, (1 + 2j)**(exponent - 1)]))


# -- gradients through views -----------------------------------------------------------------------

Z = np.array([1 + 2j, 3 - 1j, 0.5j, -2 + 0.25j])
X = np.array([1.0, 2.0, 3.0, -4.0, 0.5, 0.25, -1.0, 2.0])
W = np.arange(8.0)


def _doubled_in_place(z: Any) -> Any:
    y = z * 1
    seen = y.view(np.float64)
    seen[::2] *= 3
    seen[1] = 0
    return (np.abs(y) ** 2).sum()


def _parts(z: Any) -> Any:
    return np.stack([z.real, z.imag], -1).ravel()


@pytest.mark.parametrize(("function", "at", "gradient"), [
    (lambda z: (z.view(np.float64) * W).sum(), Z, W[::2] - 1j * W[1::2]),
    (lambda z: (z.view(np.float64) ** 2).sum(), Z, 2 * np.conj(Z)),
    (lambda z: (z.reshape(2, 2).view(np.float64)[:, 0] ** 2).sum(), Z,
     2 * Z.real * np.array([1, 0, 1, 0])),
    (lambda x: (np.abs(x.view(np.complex128)) ** 2).sum(), X, 2 * X),
    (lambda x: np.abs(x.view(np.complex128)).sum(), X, X / np.repeat(np.hypot(X[::2], X[1::2]), 2)),
    (lambda x: (x.view(np.complex128) ** 2).real.sum(), X, 2 * X * np.array([1, -1] * 4)),
    (lambda z: (np.abs((z.view(np.float64) * W).view(np.complex128)) ** 2).sum(), Z,
     2 * _parts(Z)[::2] * W[::2] ** 2 - 2j * _parts(Z)[1::2] * W[1::2] ** 2),
    (_doubled_in_place, Z, np.array([18 * Z[0].real, *(18 * Z[1:].real - 2j * Z[1:].imag)])),
])
def test_gradients_through_views_between_complex_and_real(
    function: Any, at: Any, gradient: Any
) -> None:
    found = weft.grad(function)(at)
    same(found, np.asarray(gradient, at.dtype))
    same(weft.compile(weft.grad(function))(at), np.asarray(gradient, at.dtype))
    along = RNG.normal(size=at.shape) * (1 if at is X else 1 + 1j)
    _, slope = weft.jvp(function, (at,), (along,))
    np.testing.assert_allclose(slope, np.sum(gradient * along).real, rtol=1e-12)


def test_second_derivatives_through_a_view() -> None:
    cubes = weft.grad(lambda z: (z.view(np.float64) ** 3).sum())
    same(weft.jvp(cubes, (Z,), (np.ones_like(Z),))[1], 6 * Z.real + 0j)


def test_values_viewed_keep_their_bits() -> None:
    odd = np.array([0x7FF4000000000001, 0x7FF8000000000123, 0x8000000000000000, 1], np.uint64)
    x = odd.view(np.float64)
    seen = weft.compile(lambda x: x.view(np.complex128))(x)
    assert np.array_equal(seen.view(np.uint64), odd)
    back = weft.compile(lambda z: z.view(np.float64))(x.view(np.complex128))
    assert np.array_equal(back.view(np.uint64), odd)
