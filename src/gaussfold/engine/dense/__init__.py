"""Loops of a full covariance: a square root updated row by row, or the precision where it is forgotten.

``absorb`` visits rows that see the belief as a small triangle (``beliefs.dense.passes`` makes it, by blocks), or one
row by itself; ``drifting`` those between which time passes. Every row is checked before anything
is written: a failing one is told by its number. Reference twin: ``tests/reference/dense.py``.
"""
