"""Loops of a full covariance: a square root updated row by row. Reference twin: ``tests/reference/dense.py``."""
