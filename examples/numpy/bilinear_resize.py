"""A colour picture resized with bilinear interpolation by index arrays."""

import numpy as np

SIZES = {"small": (10, 12), "normal": (360, 480)}


def inputs(size="normal"):
    rng = np.random.default_rng(29)
    return (rng.integers(0, 256, (*SIZES[size], 3), dtype=np.uint8),)


def run(image, factor=1.5):
    h, w = image.shape[:2]
    new_h, new_w = int(h * factor), int(w * factor)
    y = np.linspace(0, h - 1, new_h)
    x = np.linspace(0, w - 1, new_w)
    y0 = np.floor(y).astype(int)
    x0 = np.floor(x).astype(int)
    y1 = np.minimum(y0 + 1, h - 1)
    x1 = np.minimum(x0 + 1, w - 1)
    wy = (y - y0)[:, None, None]
    wx = (x - x0)[None, :, None]
    top = image[y0][:, x0] * (1 - wx) + image[y0][:, x1] * wx
    bottom = image[y1[:, None], x0] * (1 - wx) + image[y1[:, None], x1] * wx
    resized = top * (1 - wy) + bottom * wy
    return np.clip(np.round(resized), 0, 255).astype(image.dtype)
