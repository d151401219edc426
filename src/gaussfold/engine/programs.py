"""What beliefs may ask of a program: the one place outside the loops that looks inside it.

A program is a likelihood, a rule and an at as the loops read them. Beliefs hand it on unread; where they have a choice
(a loop in lanes, a copy that need not be kept) they ask here.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import numpy as np

from gaussfold.engine.families import can_marginalise, has_soft_labels, is_log_concave, runs_in_lanes
from gaussfold.engine.rules import finds_mode
from gaussfold.engine.scalar.sites import EXTRAGRADIENT_PRINTED, POSTERIOR
from gaussfold.engine.sparse.logit_scores import logit_scores
from gaussfold.engine.sparse.mixing import any_scores, mix
from gaussfold.engine.sparse.stacking import averaging_of
from gaussfold.engine.sparse.visit_any import CURVATURE, MARGINAL, SOLVED
from gaussfold.types import Program

if TYPE_CHECKING:
    from gaussfold.likelihoods.bernoulli_logit import LogitRecord

SIDE_BY_SIDE = 1 << 14
"""So many scores are worth a thread of their own."""


def log_concave(program: Program) -> bool:
    """Whether no site of this program can have a negative precision."""
    return is_log_concave(program.family)


def can_be_marginalised(program: Program) -> bool:
    """Whether the likelihood can be integrated over a Gaussian added to its latent (``families.marginalised``)."""
    return can_marginalise(program.family)


def is_newton_at_posterior(program: Program) -> bool:
    """Whether sites are made at the posterior's mode: what sparse-online (17) and (18) are written for."""
    return finds_mode(program.family, program.rule) and program.at == POSTERIOR


def is_fast(program: Program, form: tuple[int, int, int]) -> bool:
    """Whether ``sparse.absorb.absorb_logit`` does what this program and form of coupling ask for."""
    return makes_logit_modes(program) and form == (MARGINAL, SOLVED, CURVATURE)


def makes_logit_modes(program: Program) -> bool:
    """Whether sites are what ``sparse.logit_series`` makes: of the logit, at the posterior's mode."""
    return runs_in_lanes(program.family) and is_newton_at_posterior(program)


def makes_a_trial(program: Program) -> bool:
    """Whether a site is made from a trial update (extragradient), so that the row is looked at twice."""
    return program.at > POSTERIOR


def forgets_its_trial(program: Program) -> bool:
    """Whether the trial's covariance is given up for that of the second look, lrvga (137)-(140)."""
    return program.at == EXTRAGRADIENT_PRINTED


def score_rows(
    program: Program, y: np.ndarray, means: np.ndarray, variances: np.ndarray, scores: np.ndarray
) -> None:  # fmt: skip
    """Log predictive probability of every row (n) under every component (n×K), into ``scores``.

    Many components go in two halves side by side: readers leave a core idle then.
    """
    if not runs_in_lanes(program.family):
        any_scores(program.family, y, means, variances, scores)
        return
    family = cast("LogitRecord", program.family)  # the one that runs in lanes
    many = scores.shape[1] > 1
    if scores.shape[1] not in (1, 8):  # one after the other: lanes do not tell whose they are
        y = np.repeat(y, scores.shape[1])
        means, variances, scores = means.reshape(-1, 1), variances.reshape(-1, 1), scores.reshape(-1, 1)
    if not many or scores.size < SIDE_BY_SIDE:
        logit_scores(family, y, means, variances, scores)
        return
    half = len(y) // 2
    second = (y[half:], means[half:], variances[half:], scores[half:])
    other = threading.Thread(target=logit_scores, args=(family, *second))
    other.start()
    logit_scores(family, y[:half], means[:half], variances[:half], scores[:half])
    other.join()


def mix_rows(
    program: Program,
    y: np.ndarray,
    weight: np.ndarray,
    log_weights: np.ndarray,
    means: np.ndarray,
    variances: np.ndarray,
    scores: np.ndarray,
) -> np.ndarray:
    """Mean, variance and score of the mixture before each row, shape (3, n); ``log_weights`` become those after."""
    mixed = np.empty((3, y.size))
    mix(program.family, y, weight, log_weights, means, variances, scores, mixed[0], mixed[1], mixed[2])
    return mixed


def averaging(program: Program) -> tuple[float, float]:
    """(c, s): the likelihood averaged over N(m, v) is that of the latent (m + s v)/√(1 + c v)."""
    c, s = averaging_of(program.family)
    return float(c), float(s)


def mixed_scores(
    program: Program,
    y: np.ndarray,
    log_weights: np.ndarray,
    means: np.ndarray,
    variances: np.ndarray,
    scores: np.ndarray,
) -> np.ndarray:
    """Log predictive probability of every row under a mixture, from its parts' (n×K) and their weights before it (n×K).

    Of a soft label it is the cross-entropy of the averaged probability, by averaging each side.
    """
    with np.errstate(invalid="ignore"):  # rows without a label have no score
        mixed = np.asarray(np.logaddexp.reduce(log_weights + scores, axis=1))
    soft = (y > 0.0) & (y < 1.0) if has_soft_labels(program.family) else np.zeros(y.size, bool)
    if soft.any():
        sides = []
        for side in (0.0, 1.0):
            found = np.empty((int(soft.sum()), scores.shape[1]))
            score_rows(program, np.full(len(found), side), means[soft], variances[soft], found)
            sides.append(np.logaddexp.reduce(log_weights[soft] + found, axis=1))
        mixed[soft] = (1.0 - y[soft]) * sides[0] + y[soft] * sides[1]
    return mixed
