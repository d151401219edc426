"""Is a Gaussian belief a good stand-in for the posterior? Ask with importance weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from gaussfold.metrics.divergence import log_joint
from gaussfold.metrics.psis import psis_log_weights
from gaussfold.protocols import Distribution, Likelihood
from gaussfold.types import Array, ArrayLike


@dataclass(frozen=True)
class Diagnosis:
    """What importance sampling says about a belief; ``str()`` is the verdict."""

    khat: float
    """Shape of the weights' tail: below 0.5 good, above ``threshold`` the belief is a poor stand-in."""
    threshold: float
    """The largest k that this many draws can correct: ``min(1 - 1/log10(n), 0.7)``."""
    effective_sample_size: float
    """How many draws from the posterior the weighted draws are worth."""
    n_samples: int
    """Number of draws from the belief."""
    log_evidence: float
    """Importance-sampling estimate of ``log ∫ p(y|θ) p0(θ) dθ``; trust it as far as ``khat``."""
    kl: float
    """Estimate of KL(belief || posterior) in nats; trust it as far as ``khat``."""
    mean: Array
    """Importance-corrected posterior mean; trust it as far as ``khat``."""

    @property
    def reliable(self) -> bool:
        """Whether ``khat`` is below the threshold."""
        return self.khat < self.threshold

    @property
    def verdict(self) -> str:
        """One line for a human."""
        if not self.reliable and self.effective_sample_size > 0.5 * self.n_samples:
            word = "unclear, nearly all weights are alike but a few stand out; raise n_samples"
        elif not self.reliable:
            word = "poor, the posterior is not close to this Gaussian"
        elif self.khat < 0.5:
            word = "good, this Gaussian is close to the posterior"
        else:
            word = "usable, importance weights can correct this Gaussian"
        return (
            f"k-hat {self.khat:.2f} (threshold {self.threshold:.2f}), effective sample size "
            f"{self.effective_sample_size:.0f} of {self.n_samples}: {word}"
        )

    def __str__(self) -> str:
        return self.verdict


def diagnose(
    belief: Distribution,
    prior: Distribution,
    likelihood: Likelihood,
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_samples: int = 2000,
    rng: np.random.Generator | int | None = None,
    sample_weight: ArrayLike | None = None,
) -> Diagnosis:
    """Compare a belief with the posterior of all the data it was learned from, by PSIS.

    Draws from the belief are weighted by ``p̃(θ)/q(θ)``. The test is of the joint distribution: in many
    dimensions small misfits add up, so k-hat can be large while every marginal is still good. In few
    dimensions it can mislead: where q is so good that most weights crowd just below a plateau, the few
    beyond it look like a heavy tail until ``n_samples`` is large; the verdict then says "unclear".

    Parameters
    ----------
    belief, prior
        The approximation and the prior it started from.
    likelihood, X, y, sample_weight
        All the data that the belief has seen.
    n_samples
        Number of draws, at least 21.
    rng
        Generator or seed of the draws.

    Examples
    --------
    >>> import gaussfold as gf
    >>> prior = gf.DenseGaussian.isotropic(1, std=0.5)
    >>> posterior = gf.DenseGaussian([0.2], [[0.2]])
    >>> print(diagnose(posterior, prior, gf.likelihoods.Gaussian(1.0), [[1.0]], [1.0], rng=0))
    k-hat -inf (threshold 0.70), effective sample size 2000 of 2000:
    good, this Gaussian is close to the posterior
    """
    if n_samples < 21:
        msg = f"n_samples: {n_samples}; at least 21 draws are needed to see a tail, and 1000 to see it well"
        raise ValueError(msg)
    theta = belief.sample(n_samples, np.random.default_rng(rng))
    joint = log_joint(theta, prior, likelihood, X, y, sample_weight=sample_weight)
    raw = joint - belief.log_prob(theta)
    log_weights, khat = psis_log_weights(raw)
    log_total = float(logsumexp(log_weights))
    weights = np.exp(log_weights - log_total)
    return Diagnosis(
        khat=khat,
        threshold=min(1.0 - 1.0 / math.log10(n_samples), 0.7),
        effective_sample_size=float(1.0 / (weights @ weights)),
        n_samples=n_samples,
        log_evidence=log_total - math.log(n_samples),
        kl=log_total - math.log(n_samples) - float(raw.mean()),
        mean=weights @ theta,
    )
