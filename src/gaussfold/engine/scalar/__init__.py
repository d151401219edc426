"""One observation at a time, as functions of a few numbers: special functions, integrals, sites, the implicit solver.

``special``, ``exponential``: functions that the standard library lacks or computes with loss of digits. ``logistic``,
``quadrature``: integrals against a Gaussian. ``evaluate``: what each rule says. ``initial_guess``, ``search``,
``sites``: the implicit update, from a start near the root, by Newton's method, with a bracketing search behind it.
Reference twins: ``tests/reference/sites.py``, ``tests/reference/quadrature.py``.
"""
