"""A full covariance, kept as a square root F F' so that it cannot lose positive definiteness.

``belief``: the class. ``passes``: rows by blocks at the speed of matrix products, with the numbers of one row at a time
(docs/architecture.md, "Blocks"); by way of the covariance where that is safe, of its square root where it is not.
Reference twin: ``tests/reference/dense.py``.
"""
