"""The scalar functions run over arrays, for rules on many rows at once.

``over_arrays``: one loop per function, for every family. ``expectations_logit``, ``expectations_probit``: the two
integrals that are asked most often, in lanes where the arguments allow, by the loops of ``over_arrays`` elsewhere.
Reference twins: ``tests/reference/likelihoods.py`` (mpmath) and ``tests/reference/quadrature.py``.
"""
