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
missing(np.prod, instead="np.exp(np.sum(np.log(x))) for positive x, or multiply the parts")
missing(np.column_stack, instead="np.stack(arrays, axis=1)")
missing(np.dstack, instead="np.stack(arrays, axis=2)")
missing(np.nanmean, instead="np.where(np.isnan(x), 0, x) and a count")
missing(np.nansum, instead="np.sum(np.where(np.isnan(x), 0, x))")
missing(np.diagonal, instead="x[np.arange(n), np.arange(n)]")
missing(np.diag, instead="x[np.arange(n), np.arange(n)], or np.eye(n) * x")
missing(np.linspace, instead="np.arange(n) * step + start")
# Not written yet.
missing(np.angle, np.append, np.array_equiv, np.astype, np.bincount,
        np.block, np.choose, np.compress, np.convolve, np.corrcoef, np.correlate, np.cov,
        np.cross, np.delete,
        np.diag_indices_from, np.diagflat, np.dsplit, np.ediff1d, np.fill_diagonal,
        np.geomspace, np.gradient, np.histogram, np.histogram2d, np.histogram_bin_edges,
        np.histogramdd, np.hsplit, np.i0, np.imag, np.insert, np.interp, np.iscomplex,
        np.isneginf, np.isposinf, np.isreal, np.ix_, np.kron, np.logspace,
        np.meshgrid, np.nanargmax, np.nanargmin, np.nanmax,
        np.nanmin, np.nanprod, np.nanstd,
        np.nanvar, np.packbits, np.place, np.poly, np.polyadd,
        np.polyder, np.polydiv, np.polyfit, np.polyint, np.polymul, np.polysub, np.polyval, np.put,
        np.put_along_axis, np.putmask, np.ravel_multi_index, np.real_if_close,
        np.resize, np.rollaxis, np.roots, np.rot90, np.sinc,
        np.sort_complex, np.trapezoid, np.tril_indices_from, np.triu_indices_from, np.unpackbits,
        np.unravel_index, np.unstack, np.unwrap, np.vander, np.vsplit, instead=_OUTSIDE)
missing(*(getattr(np.linalg, name) for name in (
    "cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm "
    "matrix_power matrix_rank matrix_transpose multi_dot outer pinv qr slogdet solve svd svdvals "
    "tensordot tensorinv tensorsolve trace vecdot vector_norm").split()), instead=_OUTSIDE)
missing(*(getattr(np.fft, name) for name in (
    "fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 "
    "rfftn").split()), instead=_OUTSIDE)
