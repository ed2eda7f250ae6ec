"""The functions of the array API standard, 2024.12, each called with all that it takes: by name
what has a name there. Arrays are written as in ``numpy_samples``."""

from __future__ import annotations

_CALLS = """
arange(1, stop=9, step=2, dtype=np.float32, device=None)
asarray(x[3,4], dtype=np.float32, device=None, copy=True)
empty((0, 2), dtype=np.float32, device=None)
empty_like(x[0,3], dtype=np.float32, device=None)
eye(3, 4, k=1, dtype=np.float32, device=None)
from_dlpack(x[3,4], device=None, copy=None)
full((2, 3), x[()], dtype=np.float32, device=None)
full_like(x[3,4], fill_value=2, dtype=np.float32, device=None)
linspace(1, 2, num=5, dtype=np.float32, device=None, endpoint=False)
meshgrid(x[3], x[2], indexing='ij')
ones((2, 3), dtype=np.float32, device=None)
ones_like(x[3,4], dtype=np.float32, device=None)
tril(x[3,4], k=1)
triu(x[3,4], k=-1)
zeros((2, 3), dtype=np.float32, device=None)
zeros_like(x[3,4], dtype=np.float32, device=None)
astype(x[3,4], np.float32, copy=False, device=None)
can_cast(x[3], np.float32)
isdtype(x[3].dtype, kind='real floating')
result_type(x[3], np.float32, 1)
clip(x[3,4], min=-1, max=x[4])
take(x[3,4], i[2], axis=1)
take_along_axis(x[3,4], i[3,2], axis=1)
matmul(x[3,4], x[4,2])
matrix_transpose(x[2,3,4])
tensordot(x[3,4], x[4,2], axes=1)
vecdot(x[2,4], x[3,2,4], axis=-1)
vecdot(x[3,4], x[3,4], axis=-2)
broadcast_arrays(x[3,4], x[4])
broadcast_to(x[4], shape=(3, 4))
concat([x[3,4], i[2,4]], axis=0)
expand_dims(x[3,4], axis=1)
flip(x[3,4], axis=1)
moveaxis(x[2,3,4], (0, 1), (1, 2))
permute_dims(x[2,3,4], axes=(1, 0, 2))
repeat(x[3,4], np.arange(4), axis=1)
reshape(x[3,4], shape=(2, 6), copy=None)
roll(x[3,4], shift=(1, 2), axis=(0, 1))
squeeze(x[3,1,4], axis=1)
stack([x[3,4], x[3,4]], axis=1)
tile(x[3,4], (2, 1, 2))
unstack(x[3,4], axis=1)
argmax(x[3,4], axis=1, keepdims=True)
argmin(x[3,4], axis=1, keepdims=True)
count_nonzero(i[3,4], axis=1, keepdims=True)
searchsorted(np.arange(5.) - 2, x[7], side='right', sorter=None)
where(m[3,4], x[3,4], i[4])
argsort(x[3,4], axis=0, descending=True, stable=True)
sort(x[3,4], axis=0, descending=True, stable=True)
cumulative_sum(x[3,4], axis=1, dtype=np.float64, include_initial=True)
cumulative_prod(x[3,4], axis=1, dtype=np.float64, include_initial=True)
max(x[3,4], axis=1, keepdims=True)
mean(x[3,4], axis=1, keepdims=True)
min(x[3,4], axis=1, keepdims=True)
prod(x[3,4], axis=1, dtype=np.float64, keepdims=True)
std(x[3,4], axis=1, correction=1, keepdims=True)
sum(x[3,4], axis=1, dtype=np.float64, keepdims=True)
var(x[3,4], axis=1, correction=1, keepdims=True)
all(m[3,4], axis=1, keepdims=True)
any(m[3,4], axis=1, keepdims=True)
nonzero(x[3,4])
unique_all(x[3])
unique_counts(x[3])
unique_inverse(x[3])
unique_values(x[3])
diff(x[3,4], axis=1, n=2, prepend=x[3,1], append=i[3,2])
fft.fftfreq(7, d=0.5, dtype=np.float32, device=None)
fft.rfftfreq(7, d=0.5, dtype=np.float32, device=None)
linalg.cholesky(np.eye(3) + np.ones((3, 3)) * p[()], upper=True)
linalg.cross(x[4,3], x[4,3], axis=-1)
linalg.det(x[2,3,3])
linalg.diagonal(x[2,3,4], offset=1)
linalg.eigh(np.eye(3) + np.ones((3, 3)) * p[()])
linalg.eigvalsh(np.eye(3) + np.ones((3, 3)) * p[()])
linalg.inv(x[2,3,3])
linalg.matmul(x[3,4], x[4,2])
linalg.matrix_norm(x[2,3,4], keepdims=True, ord='nuc')
linalg.matrix_power(x[2,3,3], 3)
linalg.matrix_rank(x[2,3,4], rtol=1e-6)
linalg.matrix_transpose(x[2,3,4])
linalg.outer(x[3], x[4])
linalg.pinv(x[2,3,4], rtol=1e-6)
linalg.qr(x[2,3,4], mode='complete')
linalg.slogdet(x[2,3,3])
linalg.solve(x[2,3,3], x[2,3,4])
linalg.svd(x[3,4], full_matrices=False)
linalg.svdvals(x[2,3,4])
linalg.tensordot(x[3,4], x[4,2], axes=1)
linalg.trace(x[2,3,4], offset=1, dtype=np.float64)
linalg.vecdot(x[3,4], x[3,4], axis=-1)
linalg.vector_norm(x[2,3,4], axis=(0, 2), keepdims=True, ord=2)
"""
_OF_ONE = ("abs atan asinh ceil cos exp expm1 floor imag isfinite isinf isnan logical_not negative "
           "positive real reciprocal round sign signbit sin sinh square tan tanh trunc conj")
_OF_ONE_POSITIVE = "log log1p log2 log10 sqrt cosh"
_OF_TWO = ("add atan2 copysign divide equal floor_divide greater greater_equal hypot less "
           "less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply "
           "nextafter not_equal remainder subtract")
_BITS = "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor"

CALLS = (
    *_CALLS.split("\n")[1:-1],
    *(f"{name}(x[3,4])" for name in _OF_ONE.split()),
    *(f"{name}(p[3,4])" for name in _OF_ONE_POSITIVE.split()),
    *(f"{name}(np.sin(x[3,4]))" for name in ("asin", "acos", "atanh")), "acosh(1 + p[3,4])",
    *(f"{name}(x[3,4], x[4])" for name in _OF_TWO.split()), "pow(p[3,4], x[4])",
    *(f"{name}(i[3,4], i[4])" for name in _BITS.split()), "bitwise_invert(i[3,4])",
)
NAMES = (
    "finfo", "iinfo", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "float32", "float64", "complex64", "complex128", "e", "inf", "nan", "newaxis", "pi",
    *(f"fft.{name}" for name in ("fft", "ifft", "fftn", "ifftn", "rfft", "irfft", "rfftn", "irfftn",
                                 "hfft", "ihfft", "fftshift", "ifftshift")))
# Of an array.
ATTRIBUTES = """
    T mT device dtype ndim shape size to_device __array_namespace__ __dlpack_device__ __bool__
    __complex__ __float__ __int__ __index__ __getitem__ __setitem__
    __abs__ __add__ __and__ __eq__ __floordiv__ __ge__ __gt__ __invert__ __le__ __lshift__ __lt__
    __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __sub__ __truediv__
    __xor__ __radd__ __rand__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__
    __rpow__ __rrshift__ __rsub__ __rtruediv__ __rxor__ __iadd__ __iand__ __ifloordiv__
    __ilshift__ __imatmul__ __imod__ __imul__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__
    __ixor__
"""
