"""Loops of diagonal beliefs over sparse rows.

``cells``: how a feature is kept. ``absorb``: the pass over rows. ``visit_any``: one row under any likelihood, rule, at
and coupling; ``visit_logit`` with ``logit_series``: the default in lanes. ``marginalised``: the likelihood without the
row's other features. ``mixing``, ``logit_scores``: scores and weights of several priors.
Reference twin: ``tests/reference/diagonal.py``.
"""
