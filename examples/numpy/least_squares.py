"""A polynomial by least squares, with R squared and the standard errors of the coefficients."""

import numpy as np

SIZES = {"small": 20, "normal": 5000}


def inputs(size="normal"):
    n = SIZES[size]
    rng = np.random.default_rng(9)
    x = rng.uniform(-2, 2, n)
    return x, 1.0 - 2.0 * x + 0.5 * x**3 + 0.2 * rng.normal(size=n)


def run(x, y, degree=3):
    A = np.vander(x, degree + 1, increasing=True)
    coef, residuals, rank, sv = np.linalg.lstsq(A, y, rcond=None)
    fitted = A @ coef
    ss_res = np.sum((y - fitted) ** 2)
    ss_tot = np.sum((y - y.mean()) ** 2)
    sigma2 = ss_res / (len(y) - degree - 1)
    stderr = np.sqrt(np.diag(sigma2 * np.linalg.inv(A.T @ A)))
    return {"coef": coef, "stderr": stderr, "r2": 1 - ss_res / ss_tot, "rank": rank}
