"""Weights of members that predict the same rows, by what they predicted, so that a change of the best costs little.

Fixed share (Herbster and Warmuth, "Tracking the best expert"): after each row the weights are those of Bayes' rule, of
which a share s is taken away and handed out anew by the prior weights π. A member that was useless for long can so lead
again after log(1/(s π)) nats. Which s is right depends on how often the best member changes: several run side by side,
weighed by Bayes' rule themselves, with the smallest of them as the share that is handed out between them.
Reference twin: ``tests/reference/bank.py``.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled


@compiled
def _believe(table: np.ndarray, gain: np.ndarray) -> None:
    """Bayes' rule for all shares and members together."""
    evidence = 0.0
    for a in range(table.shape[0]):
        for k in range(gain.size):
            table[a, k] *= gain[k]
            evidence += table[a, k]
    for a in range(table.shape[0]):
        for k in range(gain.size):
            table[a, k] /= evidence


@compiled
def _hand_out(table: np.ndarray, prior: np.ndarray, shares: np.ndarray, among: float) -> None:
    """Each share among the members, by the prior weights; then the smallest among the shares, alike."""
    for a in range(shares.size):
        kept = 0.0
        for k in range(prior.size):
            kept += table[a, k]
        for k in range(prior.size):
            table[a, k] = (1.0 - shares[a]) * table[a, k] + shares[a] * kept * prior[k]
            table[a, k] = (1.0 - among) * table[a, k] + among * prior[k] / shares.size


@compiled
def follow_rows(
    table: np.ndarray, prior: np.ndarray, shares: np.ndarray, scores: np.ndarray, w: np.ndarray, before: np.ndarray
) -> None:
    """Go through the rows: member k's weight before row i to ``before[i, k]``, then the new weights into ``table``.

    ``table[a, k]`` is the weight of share a and member k, all of them adding up to 1. Rows of weight 0 or without a
    score change nothing, to the last bit; nor do rows that no member explains (a score of minus infinity).
    """
    gain = np.empty(prior.size)
    for i in range(w.size):
        top = -math.inf
        for k in range(prior.size):
            before[i, k] = 0.0
            for a in range(shares.size):
                before[i, k] += table[a, k]
            top = max(top, scores[i, k])
        if w[i] == 0.0 or not abs(top) < math.inf:
            continue
        for k in range(prior.size):
            gain[k] = math.exp(w[i] * (scores[i, k] - top))
        _believe(table, gain)
        _hand_out(table, prior, shares, shares.min())
