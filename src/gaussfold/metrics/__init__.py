"""How good a belief is, and how good its predictions are.

Against the posterior: `kl_to_posterior` (Monte Carlo), `kl_to_posterior_exact`, `elbo`. Against the
data: `nlpd`, `log_loss`, `calibration_curve`, `calibration_error`. Is a Gaussian good enough at all:
`diagnose`, by Pareto-smoothed importance sampling.
"""

from gaussfold.metrics.diagnosis import Diagnosis, diagnose
from gaussfold.metrics.divergence import elbo, kl_to_posterior, kl_to_posterior_exact, log_joint
from gaussfold.metrics.psis import pareto_fit, psis_khat, psis_log_weights
from gaussfold.metrics.scores import CalibrationCurve, calibration_curve, calibration_error, log_loss, nlpd

__all__ = [
    "CalibrationCurve",
    "Diagnosis",
    "calibration_curve",
    "calibration_error",
    "diagnose",
    "elbo",
    "kl_to_posterior",
    "kl_to_posterior_exact",
    "log_joint",
    "log_loss",
    "nlpd",
    "pareto_fit",
    "psis_khat",
    "psis_log_weights",
]
