"""Small sparse streams with odd numbers, as matrices and as the reference's dicts."""

import numpy as np
from scipy import sparse


def draw(n, dim, seed, active=4, scale=1.0):
    rng = np.random.default_rng(seed)
    rows, columns, values = [], [], []
    for r in range(n):
        for j in rng.choice(dim, size=rng.integers(1, active + 1), replace=False):
            rows.append(r)
            columns.append(j)
            values.append(scale * rng.normal())
    X = sparse.csr_array((values, (rows, columns)), shape=(n, dim))
    y = (rng.random(n) < 0.5 + 0.3 * np.tanh(X @ rng.normal(size=dim))).astype(float)
    return X, y, rng


def dicts(X):
    X = sparse.csr_array(X)
    for r in range(X.shape[0]):
        part = slice(X.indptr[r], X.indptr[r + 1])
        yield {int(j): float(x) for j, x in zip(X.indices[part], X.data[part], strict=True)}
