"""Histogram equalisation: a grey picture is stretched so that all its levels are used evenly."""

import numpy as np

SIZES = {"small": (16, 20), "normal": (720, 1280)}


def inputs(size="normal"):
    rng = np.random.default_rng(11)
    return (np.clip(rng.normal(110, 20, SIZES[size]), 0, 255).astype(np.uint8),)


def run(image):
    hist, bins = np.histogram(image.flatten(), bins=256, range=(0, 256))
    cdf = hist.cumsum()
    cdf_masked = np.where(cdf > 0, cdf, cdf.max())
    low = cdf_masked.min()
    table = np.round((cdf - low) / (image.size - low) * 255)
    table = np.clip(table, 0, 255).astype(np.uint8)
    equalised = table[image]
    after = np.bincount(equalised.ravel(), minlength=256)
    return equalised, hist, after
