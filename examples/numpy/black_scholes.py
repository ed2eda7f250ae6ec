"""Black-Scholes prices and greeks of many options, in a dict.

The normal distribution by the polynomial of Abramowitz and Stegun (26.2.17).
"""

import numpy as np

SIZES = {"small": 30, "normal": 200000}


def inputs(size="normal"):
    n = SIZES[size]
    rng = np.random.default_rng(12)
    return (rng.uniform(50, 150, n), rng.uniform(50, 150, n), rng.uniform(0.1, 2, n),
            rng.uniform(0.1, 0.5, n))


def norm_pdf(x):
    return np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def norm_cdf(x):
    k = 1 / (1 + 0.2316419 * np.abs(x))
    poly = 0.0
    for a in (1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.319381530):
        poly = k * (a + poly)
    cdf = 1 - norm_pdf(x) * poly
    negative = x < 0
    cdf[negative] = 1 - cdf[negative]
    return cdf


def run(S, K, T, sigma, r=0.03):
    root = sigma * np.sqrt(T)
    d1 = (np.log(S / K) + (r + 0.5 * sigma**2) * T) / root
    d2 = d1 - root
    discount = np.exp(-r * T)
    call = S * norm_cdf(d1) - K * discount * norm_cdf(d2)
    result = {"call": call, "put": call - S + K * discount}
    result["delta"] = norm_cdf(d1)
    result["gamma"] = norm_pdf(d1) / (S * root)
    result["vega"] = S * norm_pdf(d1) * np.sqrt(T)
    return result
