"""Convolutions of one to three axes of space, and their transposes: an einsum of windows.

    y[n, o, h, w]  =  sum over c, i, j of  x[n, c, s*h + d*i, s*w + d*j] * w[o, c, i, j]

(the field's convolution, which does not turn the kernel around). Compiled, it is one kernel with
what follows it, and makes no array of the windows; so are its gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracing.context.active import composite
from .windows import channels_last, each, padded, pairs, reach, refused, windows

_SPACE, _KERNEL = "xyz", "ijk"


@composite
def conv1d(x: Any, w: Any, stride: Any = 1, padding: Any = "VALID", dilation: Any = 1,
           groups: int = 1, layout: str = "NCW", bias: Any = None) -> Any:
    """Convolution along one axis: x (N, C, W), w (O, C / groups, K) to (N, O, W'); see
    ``conv2d``."""
    return _conv("conv1d", 1, x, w, stride, padding, dilation, groups, layout, bias)


@composite
def conv2d(x: Any, w: Any, stride: Any = 1, padding: Any = "VALID", dilation: Any = 1,
           groups: int = 1, layout: str = "NCHW", bias: Any = None) -> Any:
    """Convolution of images: x (N, C, H, W), w (O, C / groups, KH, KW) to (N, O, H', W').

    ``stride`` and ``dilation`` are one integer or one for each axis. ``padding`` with zeros is
    "VALID" (none), "SAME" (H' = ceil(H / stride), the odd one after), an integer, or for each axis
    a pair (before, after). Channels are split into ``groups`` that do not mix. With
    ``layout="NHWC"`` x is (N, H, W, C) and so is the result; w stays. ``bias`` (O,) is added.
    Raises ShapeError (W102) where channels do not fit, UnsupportedError (W113) for other options.

    >>> x = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> conv2d(x, np.ones((1, 1, 2, 2)), stride=2)[0, 0]
    array([[10., 18.],
           [42., 50.]])
    """
    return _conv("conv2d", 2, x, w, stride, padding, dilation, groups, layout, bias)


@composite
def conv3d(x: Any, w: Any, stride: Any = 1, padding: Any = "VALID", dilation: Any = 1,
           groups: int = 1, layout: str = "NCDHW", bias: Any = None) -> Any:
    """Convolution of volumes: x (N, C, D, H, W), w (O, C / groups, KD, KH, KW); see ``conv2d``."""
    return _conv("conv3d", 3, x, w, stride, padding, dilation, groups, layout, bias)


@composite
def conv_transpose1d(
    x: Any, w: Any, stride: Any = 1, padding: Any = "VALID", dilation: Any = 1, groups: int = 1,
    layout: str = "NCW", bias: Any = None, output_padding: Any = 0,
) -> Any:
    """The transpose of ``conv1d``; see ``conv_transpose2d``."""
    return _transposed("conv_transpose1d", 1, x, w, stride, padding, dilation, groups, layout, bias,
                       output_padding)


@composite
def conv_transpose2d(
    x: Any, w: Any, stride: Any = 1, padding: Any = "VALID", dilation: Any = 1, groups: int = 1,
    layout: str = "NCHW", bias: Any = None, output_padding: Any = 0,
) -> Any:
    """The transpose of the linear map ``conv2d(., w)``: x (N, O, H, W), w (O, C / groups, KH, KW)
    to (N, C, H', W').

    "VALID" gives H' = (H - 1) * stride + (KH - 1) * dilation + 1, "SAME" H' = H * stride; padding
    takes that much away from the result of "VALID", and ``output_padding`` adds places at the end,
    which tells apart the sizes that a convolution with stride maps to one.

    >>> conv_transpose2d(np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2)), padding=((0, 0), (0, 1)))
    array([[[[1., 2.],
             [2., 4.],
             [1., 2.]]]])
    """
    return _transposed("conv_transpose2d", 2, x, w, stride, padding, dilation, groups, layout, bias,
                       output_padding)


@composite
def conv_transpose3d(
    x: Any, w: Any, stride: Any = 1, padding: Any = "VALID", dilation: Any = 1, groups: int = 1,
    layout: str = "NCDHW", bias: Any = None, output_padding: Any = 0,
) -> Any:
    """The transpose of ``conv3d``; see ``conv_transpose2d``."""
    return _transposed("conv_transpose3d", 3, x, w, stride, padding, dilation, groups, layout, bias,
                       output_padding)


def _conv(
    name: str, rank: int, x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int,
    layout: str, bias: Any,
) -> Any:
    last = channels_last(layout, rank)
    axes = _axes(name, x, w, rank, last)
    steps, rates = each(stride, rank, "stride"), each(dilation, rank, "dilation")
    amounts = pairs(padding, [x.shape[axis] for axis in axes], reach(w.shape[2:], rates), steps)
    _fit(name, x, w, w.shape[1] * groups, groups, last)
    y = _product(padded(x, axes, amounts, 0), w, "oc", axes, steps, rates, groups)
    return _biased(y, bias, rank, last)


def _transposed(
    name: str, rank: int, x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int,
    layout: str, bias: Any, output_padding: Any,
) -> Any:
    """A convolution, with the kernel turned around, of x with zeros between its elements."""
    last = channels_last(layout, rank)
    axes = _axes(name, x, w, rank, last)
    steps, rates = each(stride, rank, "stride"), each(dilation, rank, "dilation")
    more = each(output_padding, rank, "output_padding", 0)
    spans = reach(w.shape[2:], rates)
    _fit(name, x, w, w.shape[0], groups, last)
    if isinstance(padding, str) and padding == "SAME":
        lows = [max(span - step, 0) // 2 for span, step in zip(spans, steps, strict=True)]
        cuts = tuple((low, span - step - low)
                     for low, span, step in zip(lows, spans, steps, strict=True))
    else:
        cuts = pairs(padding, [], spans, steps)
    amounts = tuple((span - 1 - low, span - 1 - high + extra)
                    for span, (low, high), extra in zip(spans, cuts, more, strict=True))
    around = padded(_spread(x, axes, steps), axes, amounts, 0)
    turned = w[(slice(None), slice(None), *(slice(None, None, -1),) * rank)]
    y = _product(around, turned, "co", axes, (1,) * rank, rates, groups)
    return _biased(y, bias, rank, last)


def _product(
    x: Any, w: Any, letters: str, axes: Sequence[int], stride: Sequence[int],
    dilation: Sequence[int], groups: int,
) -> Any:
    """The einsum of the windows of x and w, whose first axes are ``letters``: o is a channel of
    the result, c one of x."""
    rank, channel = len(axes), 1 if axes[0] == 2 else x.ndim - 1
    space, kernel = _SPACE[:rank], _KERNEL[:rank]
    inner, outer, weights = "c", "o", letters
    sizes = w.shape[2:]
    if groups > 1:
        inner, outer, weights = "gc", "go", f"g{letters}"
        x = np.reshape(x, (*x.shape[:channel], groups, x.shape[channel] // groups,
                           *x.shape[channel + 1:]))
        w = np.reshape(w, (groups, w.shape[0] // groups, *w.shape[1:]))
        axes = [axis + (axis > channel) for axis in axes]
    first = channel == 1
    given = f"n{inner}{space}" if first else f"n{space}{inner}"
    made = f"n{outer}{space}" if first else f"n{space}{outer}"
    y = np.einsum(f"{given}{kernel},{weights}{kernel}->{made}",
                  windows(x, axes, sizes, stride, dilation), w)
    if groups == 1:
        return y
    return np.reshape(y, (*y.shape[:channel], y.shape[channel] * y.shape[channel + 1],
                          *y.shape[channel + 2:]))


def _spread(x: Any, axes: Sequence[int], stride: Sequence[int]) -> Any:
    """x with stride - 1 zeros between its elements."""
    if set(stride) == {1}:
        return x
    places = dict(zip(axes, stride, strict=True))
    steps = [places.get(axis, 1) for axis in range(x.ndim)]
    shape = tuple((size - 1) * step + 1 if step > 1 else size
                  for size, step in zip(x.shape, steps, strict=True))
    apart = np.full(shape, 0, x.dtype, like=x)
    apart[tuple(slice(None, None, step) for step in steps)] = x
    return apart


def _biased(y: Any, bias: Any, rank: int, last: bool) -> Any:
    if bias is None:
        return y
    return y + (bias if last else np.reshape(bias, (-1, *(1,) * rank)))


def _axes(name: str, x: Any, w: Any, rank: int, last: bool) -> tuple[int, ...]:
    """The axes of space of x, after a check of the numbers of dims."""
    if np.ndim(x) != rank + 2 or np.ndim(w) != rank + 2:
        raise refused("W102", f"{name} takes x and w of {rank + 2} dims, not {np.ndim(x)} and "
                              f"{np.ndim(w)}",
                      "x has axes of batch and channels, w those of channels made and taken")
    return tuple(range(1, rank + 1)) if last else tuple(range(2, rank + 2))


def _fit(name: str, x: Any, w: Any, channels: Any, groups: int, last: bool) -> None:
    found, made = x.shape[-1 if last else 1], w.shape[0]
    if found != channels:
        raise refused("W102", f"{name} of {found} channels with weights {tuple(w.shape)}, which "
                              f"take {channels}", "w is (channels made, channels taken / groups, "
                              "*kernel), and layout= says where x has its channels")
    if found % groups or made % groups:
        raise refused("W102", f"{name}: {groups} groups of {found} channels and weights "
                              f"{tuple(w.shape)}", "groups divides both numbers of channels")
