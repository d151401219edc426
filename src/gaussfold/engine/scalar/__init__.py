"""One observation at a time, as functions of a few numbers: special functions, integrals, sites, the implicit solver.

- ``special``, ``exponential``: functions that the standard library lacks or computes with loss of digits
- ``logistic``, ``quadrature``, ``expectations``: integrals against a Gaussian, closed or by panels
- ``initial_guess``, ``search``, ``sites``: the implicit update, from a start near the root, by Newton's method, with a
  bracketing search behind it; ``vectors``: the same few numbers as arrays

What must not be broken: a root for every |m0| ≤ 1e3 and 1e-8 ≤ v0 ≤ 1e6, and no loss of digits in the tails.
Reference twins: ``tests/reference/sites.py``, ``tests/reference/quadrature.py``.
"""
