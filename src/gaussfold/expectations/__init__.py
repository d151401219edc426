"""Expectations of functions of one latent ``f ~ N(m, v)``, in plain NumPy."""

from gaussfold.expectations.gauss_hermite import expect, log_expect_exp, nodes

__all__ = ["expect", "log_expect_exp", "nodes"]
