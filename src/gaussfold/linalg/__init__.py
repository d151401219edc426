"""The only home of Cholesky factors, triangular solves and square roots.

``roots``: lower triangular L with L L' = A, everywhere that convention; ``small``: batches of matrices of a few rows;
``triangles``: solves that stay in one thread while small; ``information``: precisions; ``products``: BLAS where NumPy
would copy; ``jitter``: the one there is, documented there.
What must not be broken: nobody adds a jitter of their own. Tests against SciPy: ``tests/linalg``.
"""
