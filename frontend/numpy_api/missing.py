"""NumPy's functions that cannot be traced, with what to write instead."""

from __future__ import annotations

import numpy as np

from .registry import missing

_OUTSIDE = "it outside of the traced function, and pass its result in"
_SIZE = "np.where(condition, a, b): how many elements there are is not known before the call"
_LOOP = "whole arrays, or a scan: weft.scan"

# Texts, files, dates, and questions about memory: not what is computed on.
missing(np.array2string, np.array_repr, np.array_str, np.save, np.savetxt, np.savez,
        np.savez_compressed, np.busday_count, np.busday_offset, np.is_busday,
        np.datetime_as_string, np.may_share_memory, np.shares_memory, np.einsum_path,
        np.common_type, np.min_scalar_type, np.can_cast, instead=_OUTSIDE)
# The size of the result depends on values.
missing(np.nonzero, np.argwhere, np.flatnonzero, np.extract, np.unique, np.unique_all,
        np.unique_counts, np.unique_inverse, np.unique_values, np.union1d, np.intersect1d,
        np.setdiff1d, np.setxor1d, np.trim_zeros, instead=_SIZE)
missing(np.apply_along_axis, np.apply_over_axes, np.piecewise, instead=_LOOP)
missing(np.cumsum, instead="np.tril(np.ones((n, n))) @ x for short arrays")
missing(np.prod, instead="np.exp(np.sum(np.log(x))) for positive x, or multiply the parts")
missing(np.column_stack, instead="np.stack(arrays, axis=1)")
missing(np.dstack, instead="np.stack(arrays, axis=2)")
missing(np.nanmean, instead="np.where(np.isnan(x), 0, x) and a count")
missing(np.nansum, instead="np.sum(np.where(np.isnan(x), 0, x))")
missing(np.diagonal, instead="x[np.arange(n), np.arange(n)]")
missing(np.diag, instead="x[np.arange(n), np.arange(n)], or np.eye(n) * x")
missing(np.linspace, instead="np.arange(n) * step + start")
# Not written yet.
missing(np.angle, np.append, np.argpartition, np.argsort, np.array_equiv, np.astype, np.bincount,
        np.block, np.choose, np.compress, np.convolve, np.corrcoef, np.correlate, np.cov,
        np.cross, np.cumprod, np.cumulative_prod, np.cumulative_sum, np.delete,
        np.diag_indices_from, np.diagflat, np.digitize, np.dsplit, np.ediff1d, np.fill_diagonal,
        np.geomspace, np.gradient, np.histogram, np.histogram2d, np.histogram_bin_edges,
        np.histogramdd, np.hsplit, np.i0, np.imag, np.insert, np.interp, np.iscomplex, np.isin,
        np.isneginf, np.isposinf, np.isreal, np.ix_, np.kron, np.lexsort, np.logspace, np.median,
        np.meshgrid, np.nanargmax, np.nanargmin, np.nancumprod, np.nancumsum, np.nanmax,
        np.nanmedian, np.nanmin, np.nanpercentile, np.nanprod, np.nanquantile, np.nanstd,
        np.nanvar, np.packbits, np.partition, np.percentile, np.place, np.poly, np.polyadd,
        np.polyder, np.polydiv, np.polyfit, np.polyint, np.polymul, np.polysub, np.polyval, np.put,
        np.put_along_axis, np.putmask, np.quantile, np.ravel_multi_index, np.real_if_close,
        np.resize, np.rollaxis, np.roots, np.rot90, np.searchsorted, np.sinc, np.sort,
        np.sort_complex, np.trapezoid, np.tril_indices_from, np.triu_indices_from, np.unpackbits,
        np.unravel_index, np.unstack, np.unwrap, np.vander, np.vsplit, instead=_OUTSIDE)
missing(np.linalg.cross, np.linalg.diagonal, np.linalg.matmul, np.linalg.matrix_norm,
        np.linalg.matrix_power, np.linalg.matrix_transpose, np.linalg.multi_dot, np.linalg.outer,
        np.linalg.tensordot, np.linalg.trace, np.linalg.vecdot, np.linalg.vector_norm,
        instead=_OUTSIDE)
missing(np.linalg.eig, np.linalg.eigvals,
        instead="np.linalg.eigh of symmetric matrices: eigenvalues of others are complex numbers")
missing(np.fft.fft, np.fft.fft2, np.fft.fftn, np.fft.fftshift, np.fft.hfft, np.fft.ifft,
        np.fft.ifft2, np.fft.ifftn, np.fft.ifftshift, np.fft.ihfft, np.fft.irfft, np.fft.irfft2,
        np.fft.irfftn, np.fft.rfft, np.fft.rfft2, np.fft.rfftn, instead=_OUTSIDE)
