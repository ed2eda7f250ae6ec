"""NumPy's functions that cannot be traced, with what to write instead."""

from __future__ import annotations

import numpy as np

from .registry import missing

_OUTSIDE = "it outside of the traced function, and pass its result in"
_SIZE = "np.where(condition, a, b): how many elements there are is not known before the call"

# Texts, files, dates, and questions about memory: not what is computed on.
missing(np.array2string, np.array_repr, np.array_str, np.save, np.savetxt, np.savez,
        np.savez_compressed, np.busday_count, np.busday_offset, np.is_busday,
        np.datetime_as_string, np.may_share_memory, np.shares_memory, np.einsum_path,
        np.common_type, np.min_scalar_type, np.can_cast, instead=_OUTSIDE)
# The size of the result depends on values.
missing(np.nonzero, np.argwhere, np.flatnonzero, np.unique, np.unique_all,
        np.unique_counts, np.unique_inverse, np.unique_values, np.union1d, np.intersect1d,
        np.setdiff1d, np.setxor1d, np.trim_zeros, instead=_SIZE)
missing(np.cumsum, instead="np.tril(np.ones((n, n))) @ x for short arrays")
missing(np.prod, instead="np.exp(np.sum(np.log(x))) for positive x, or multiply the parts")
missing(np.nanmean, instead="np.where(np.isnan(x), 0, x) and a count")
missing(np.nansum, instead="np.sum(np.where(np.isnan(x), 0, x))")
# Not written yet.
_LATER = """
    angle argpartition argsort array_equiv bincount convolve corrcoef correlate cov
    cross cumprod cumulative_prod cumulative_sum digitize ediff1d
    gradient histogram histogram2d histogram_bin_edges histogramdd i0 imag interp iscomplex isin
    isneginf isposinf isreal lexsort median nanargmax nanargmin nancumprod nancumsum nanmax
    nanmedian nanmin nanpercentile nanprod nanquantile nanstd nanvar packbits partition
    percentile poly polyadd polyder polydiv polyfit polyint polymul polysub polyval quantile
    real_if_close roots searchsorted sinc sort sort_complex trapezoid unpackbits unwrap"""
_LINALG = """
    cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm
    matrix_power matrix_rank matrix_transpose multi_dot outer pinv qr slogdet solve svd svdvals
    tensordot tensorinv tensorsolve trace vecdot vector_norm"""
_FFT = """
    fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2
    rfftn"""
for _module, _names in ((np, _LATER), (np.linalg, _LINALG), (np.fft, _FFT)):
    missing(*(getattr(_module, name) for name in _names.split()), instead=_OUTSIDE)
