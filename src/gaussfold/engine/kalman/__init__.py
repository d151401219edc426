"""Filter and smoother of Markov priors and their derivatives, compiled when first imported.

Reference twin: ``tests/reference/kalman.py``.
"""
