"""Expectations of functions of a Gaussian latent, in plain NumPy: for likelihoods that the engine does not know.

``gauss_hermite``: one latent, and what its order can integrate; ``tilted``: a density raised to a power, from its peak;
``cubature``: several latents; ``classes`` and ``largest``: probabilities of a softmax. The engine's own integrals are
in ``engine.scalar``. Tests: ``tests/expectations``.
"""

from gaussfold.expectations.gauss_hermite import expect, log_expect_exp, nodes

__all__ = ["expect", "log_expect_exp", "nodes"]
