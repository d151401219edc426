"""Gaussian processes: the figures of bayes-newton, and applied ones on real data."""
