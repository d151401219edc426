"""Is a belief a good stand-in for the posterior, and the model for the data? Asked of all the data again."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logsumexp

from gaussfold.metrics import predictive_check, second_pass
from gaussfold.metrics.divergence import log_joint
from gaussfold.metrics.predictive_check import Misfit
from gaussfold.metrics.psis import psis_log_weights
from gaussfold.observations import Observations, observe
from gaussfold.protocols import Distribution, Gaussian, Likelihood
from gaussfold.types import Array, ArrayLike, Moments

OFF = 0.47
"""Posterior standard deviations by which a weight's mean may be off."""
WRONG_SPREAD = 1.5
"""Factor by which a weight's standard deviation may be."""


@dataclass(frozen=True)
class Diagnosis:
    """What all the data say about a belief when they are looked at again; ``str()`` is the verdict."""

    khat: float
    """Shape of the importance weights' tail: below 0.5 good, above ``threshold`` they cannot correct the belief."""
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
    shift: float = math.nan
    """How far a second pass over all rows moves the mean of a weight, in its posterior standard deviations, at most."""
    worst: int = -1
    """The weight that moves so far."""
    narrowest: float = math.nan
    """The smallest ratio of a weight's standard deviation to that of the posterior: below 1 the belief is too sure."""
    widest: float = math.nan
    """The largest."""
    misfit: Misfit = field(default_factory=lambda: Misfit(math.nan, math.nan, math.nan))
    """Whether the data look like what the model predicts: z-scores. The belief may be right and the model wrong."""

    @property
    def reliable(self) -> bool:
        """Whether means and standard deviations of the weights can be believed, as those of this model's posterior."""
        if math.isnan(self.shift):
            return self.khat < self.threshold
        return self.shift < OFF and self.narrowest > 1.0 / WRONG_SPREAD and self.widest < WRONG_SPREAD

    @property
    def verdict(self) -> str:
        """One sentence for a human: how good, why, and what to do."""
        told = f"{self._belief_told()} (k-hat {self.khat:.2f}, threshold {self.threshold:.2f}; effective sample size "
        told += f"{self.effective_sample_size:.0f} of {self.n_samples})"
        return f"{told}; the model does not fit the data, {words}" if (words := self.misfit.words) else told

    def _belief_told(self) -> str:
        if math.isnan(self.shift):
            return self._weights_told()
        if not self.shift < OFF:
            return (
                f"poor, a second pass moves weight {self.worst} by {self.shift:.2g} posterior standard deviations: "
                "learn by fit(X, y), which goes on until it settles, or shuffle and scale the rows"
            )
        if not self.narrowest > 1.0 / WRONG_SPREAD:
            times = f"{1.0 / self.narrowest:.2g}"
            return f"poor, too sure: the posterior is up to {times} times as wide; use covariance='full', or refine"
        if not self.widest < WRONG_SPREAD:
            return f"poor, too unsure: error bars are up to {self.widest:.2g} times those of the posterior: refine"
        if self.effective_sample_size < 0.1 * self.n_samples:
            return "usable, each weight is right but all together they are not: refine before drawing them jointly"
        return "good, this Gaussian is close to the posterior"

    def _weights_told(self) -> str:
        """By the importance weights alone, for beliefs of which no second pass was made."""
        share = self.effective_sample_size / self.n_samples
        if not self.reliable and share > 0.5:
            return "unclear, nearly all weights are alike but a few stand out; raise n_samples"
        if not self.reliable:
            return "poor, the posterior is not close to this Gaussian; refine, or use covariance='full'"
        if self.khat < 0.5 and share > 0.1:
            return "good, this Gaussian is close to the posterior"
        return "usable, importance weights can correct this Gaussian"

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
    noise_std: float | None = None,
) -> Diagnosis:
    """Compare a belief with the posterior of all the data it was learned from, and the model with the data.

    Three questions, and a verdict that names the remedy:

    - Is the belief where it would be if all rows were looked at again? The posterior is found anew (up to 1000 weights:
      the mode, the variational Gaussian, then importance weights), and each weight's mean and standard deviation are
      compared with it. A belief that depends on the order of its rows shows here.
    - Are the weights right jointly? Draws from the belief are weighted by ``p̃(θ)/q(θ)``; the tail of the weights (PSIS
      k-hat) and their effective number say. In many dimensions small misfits add up, so this can be bad while
      every weight by itself is right.
    - Does the model fit the data? Dispersion, bend and tails of the residuals (``Diagnosis.misfit``). Right beliefs
      in a wrong model are still the wrong answer.

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
    noise_std
        What the likelihood's noise is measured in, where that was learned; only the third question asks. None: noise of
        standard deviation 1 may be in units of its own, and its size is not judged.

    Examples
    --------
    >>> import gaussfold as gf
    >>> prior = gf.DenseGaussian.isotropic(1, std=0.5)
    >>> posterior = gf.DenseGaussian([0.2], [[0.2]])
    >>> print(diagnose(posterior, prior, gf.likelihoods.Gaussian(1.0), [[1.0]], [1.0], rng=0))
    good, this Gaussian is close to the posterior (k-hat -inf, threshold 0.70; effective sample size 2000 of 2000)
    """
    if n_samples < 21:
        msg = f"n_samples: {n_samples}; at least 21 draws are needed to see a tail, and 1000 to see it well"
        raise ValueError(msg)
    source = np.random.default_rng(rng)
    data = observe(likelihood, X, y, prior.dim, sample_weight)
    theta = belief.sample(n_samples, source)
    joint = log_joint(theta, prior, likelihood, X, y, sample_weight=sample_weight)
    raw = joint - belief.log_prob(theta)
    log_weights, khat = psis_log_weights(raw)
    log_total = float(logsumexp(log_weights))
    weights = np.exp(log_weights - log_total)
    shift, worst, narrowest, widest = _looked_at_again(belief, prior, likelihood, data, source, n_samples)
    latent = Moments(*belief.marginal(data.X))
    return Diagnosis(
        khat=khat,
        threshold=min(1.0 - 1.0 / math.log10(n_samples), 0.7),
        effective_sample_size=float(1.0 / (weights @ weights)),
        n_samples=n_samples,
        log_evidence=log_total - math.log(n_samples),
        kl=log_total - math.log(n_samples) - float(raw.mean()),
        mean=weights @ theta,
        shift=shift,
        worst=worst,
        narrowest=narrowest,
        widest=widest,
        misfit=predictive_check.check(likelihood, data.y, latent, data.weight, belief.dim, noise_std),
    )


def _looked_at_again(
    belief: Distribution,
    prior: Distribution,
    likelihood: Likelihood,
    data: Observations,
    rng: np.random.Generator,
    draws: int,
) -> tuple[float, int, float, float]:
    """Shift, the weight that has it, and the smallest and the largest ratio of standard deviations; NaN if unknown."""
    unknown = math.nan, -1, math.nan, math.nan
    if belief.dim > second_pass.LARGEST or not isinstance(prior, Gaussian) or data.y.size == 0:
        return unknown
    found = second_pass.settle(belief.mean, prior.to_dense(), likelihood, data, rng, draws)
    if found is None or not (np.isfinite(found.mean).all() and (found.std > 0.0).all()):
        return unknown
    shifts = np.abs(belief.mean - found.mean) / found.std
    ratios = np.sqrt(belief.variance()) / found.std
    worst = int(np.argmax(shifts))
    return float(shifts[worst]), worst, float(ratios.min()), float(ratios.max())
