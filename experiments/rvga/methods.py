"""The paper's four filters and our default, in the vocabulary of rule and at; and their KL along a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gaussfold as gf
from experiments.registry import Context
from experiments.rvga.settings import Problem, Setting, draw
from gaussfold import batch, metrics
from gaussfold.likelihoods import Bernoulli

LOGISTIC = Bernoulli("logit", expectation="quadrature")
"""What the data follow: every KL is measured against this, whatever a method assumes."""

_PAPER = Bernoulli("logit", expectation="probit")


Steps = NDArray[np.int_]
"""Numbers of observations, increasing."""


@dataclass(frozen=True)
class Method:
    """A cell of the table rule × at, and the expectation it uses."""

    rule: str
    at: str
    likelihood: Any


METHODS = {
    "ekf": Method("taylor", "prior", _PAPER),  # rvga (81)
    "qkf": Method("quadratic", "prior", _PAPER),  # rvga (90)
    "explicit": Method("vi", "prior", _PAPER),  # rvga (78)-(80)
    "implicit": Method("vi", "posterior", _PAPER),  # rvga (73)-(77)
    "exact": Method("vi", "posterior", LOGISTIC),  # the same scheme without the probit approximation
}
ORACLE_KEYS = {
    "ekf": "ekf",
    "qkf": "qkf",
    "explicit": "rvga_explicit",
    "implicit": "rvga_implicit_exactroot",
}


def history(method: Method, problem: Problem, steps: Steps) -> list[gf.DenseGaussian]:
    """Return the belief after each of the given numbers of observations (increasing, from 0)."""
    belief, seen, beliefs = problem.prior.copy(), 0, []
    for step in steps.tolist():
        if step > seen:
            rows = slice(seen, step)
            gf.fold(belief, method.likelihood, problem.X[rows], problem.y[rows], method.rule, method.at)
            seen = step
        beliefs.append(belief.copy())
    return beliefs


def unnormalised_kl(belief: gf.DenseGaussian, problem: Problem) -> float:
    """Return KL to the posterior given all the data, without the evidence: rvga (93) with Z = 1."""
    return float(metrics.kl_to_posterior_exact(belief, problem.prior, LOGISTIC, problem.X, problem.y))


def laplace(problem: Problem) -> gf.DenseGaussian:
    """Return the batch Laplace approximation."""
    return batch.laplace(problem.prior, LOGISTIC, problem.X, problem.y)


def batch_kls(problem: Problem) -> dict[str, list[float]]:
    """Return the KL of Laplace and of the best Gaussian there is, the batch variational optimum."""
    best = batch.variational(problem.prior, LOGISTIC, problem.X, problem.y)
    return {
        "laplace": [unnormalised_kl(laplace(problem), problem)],
        "variational": [unnormalised_kl(best, problem)],
    }


def final_kls(problem: Problem) -> dict[str, float]:
    """Return the KL of every method after the whole stream, Laplace's included."""
    end = np.array([len(problem.y)])
    kls = {key: unnormalised_kl(history(method, problem, end)[0], problem) for key, method in METHODS.items()}
    return kls | {"laplace": unnormalised_kl(laplace(problem), problem)}


def replicates(setting: Setting, context: Context, description: str) -> dict[str, Any]:
    """Count how often each ordering holds over other data sets of the same law, and the median KLs."""
    numbers = range(1, context.n_replicates + 1)
    runs = [final_kls(draw(setting, number)) for number in context.track(numbers, description)]
    kl = {key: np.array([run[key] for run in runs]) for key in runs[0]}
    wins = {
        f"{ours} < {key}": int(np.sum(kl[ours] < kl[key]))
        for ours in ("implicit", "exact")
        for key in kl
        if key != ours
    }
    return {
        "data_sets": len(runs),
        "wins": wins,
        "median_kl": {key: float(np.median(values)) for key, values in kl.items()},
    }


def against_reference(problem: Problem, steps: Steps, curves: dict[str, list[float]]) -> dict[str, float]:
    """Return the largest relative difference between our KL curves and the oracles', per method."""
    if problem.reference is None:
        return {}
    theirs, at = problem.reference, problem.reference["kl_exact_steps"]
    common, ours_at, theirs_at = np.intersect1d(steps, at, return_indices=True)
    if common.size == 0:
        return {}
    differences = {}
    for key, name in ORACLE_KEYS.items():
        expected = theirs[f"{name}_kl_exact"][theirs_at]
        differences[key] = float(np.max(np.abs(np.asarray(curves[key])[ours_at] / expected - 1.0)))
    laplace_kl = float(theirs["laplace_converged_kl_exact"])
    return differences | {"laplace": abs(curves["laplace"][-1] / laplace_kl - 1.0)}
