"""Viscous Burgers' equation on a circle by a spectral method: derivatives by FFT, Heun's steps."""

import numpy as np

SIZES = {"small": 32, "normal": 512}


def inputs(size="normal"):
    x = np.linspace(0, 2 * np.pi, SIZES[size], endpoint=False)
    return (np.sin(x) + 0.5 * np.sin(2 * x),)


def run(u, nu=0.05, dt=1e-3, steps=20):
    n = len(u)
    k = np.fft.fftfreq(n, d=1 / n)
    decay = np.exp(-nu * k**2 * dt)
    dealias = np.abs(k) < n / 3

    def nonlinear(u_hat):
        u = np.fft.ifft(u_hat).real
        return -0.5j * k * dealias * np.fft.fft(u * u)

    u_hat = np.fft.fft(u)
    for _ in range(steps):
        first = nonlinear(u_hat)
        second = nonlinear((u_hat + dt * first) * decay)
        u_hat = decay * (u_hat + 0.5 * dt * first) + 0.5 * dt * second
    return np.fft.ifft(u_hat).real, np.abs(u_hat) ** 2 / n**2
