"""A low-pass filter and a band's power by the real FFT."""

import numpy as np

SIZES = {"small": 64, "normal": 65536}


def inputs(size="normal"):
    n = SIZES[size]
    rng = np.random.default_rng(28)
    t = np.arange(n) / 100.0
    return (np.sin(2 * np.pi * 5 * t) + rng.normal(size=n),)


def run(signal, rate=100.0, cutoff=10.0):
    n = len(signal)
    window = np.hanning(n)
    spectrum = np.fft.rfft(signal)
    freqs = np.fft.rfftfreq(n, 1 / rate)
    power = np.abs(np.fft.rfft(signal * window)) ** 2
    peak = freqs[np.argmax(power)]
    spectrum[freqs > cutoff] = 0
    return np.fft.irfft(spectrum, n), power, peak
