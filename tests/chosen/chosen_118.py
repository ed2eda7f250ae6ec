import numpy as np


def f(x, y, m, k):
    x, y = x.copy(), y.copy()
    a0 = y[:k]
    for i in range(3): a0 += i
    x[...] = 3
    a1 = x[:-1]
    a2 = a0 > 1
    a3 = a0[1:]
    a4 = np.insert(a0, 0, 5)
    a5 = np.intersect1d(a3, a4)
    return x, y, a0, a1, a2, a3, a4, a5
