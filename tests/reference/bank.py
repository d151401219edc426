"""Fixed share as Herbster and Warmuth define it, several shares mixed by Bayes' rule; written from the definition."""

from __future__ import annotations

import numpy as np


def fixed_share(scores, weight, prior, shares):
    """Members' weights before each row (n, K), and after the last (K,); a row of weight 0 or without score is skipped.

    ``inner[s]`` are the members' weights under share s, ``outer[s]`` how much that share is believed.
    """
    prior = np.asarray(prior) / np.sum(prior)
    inner = {s: prior.copy() for s in shares}
    outer = {s: 1.0 / len(shares) for s in shares}
    among = min(shares)
    before = []
    for row, w in zip(scores, weight, strict=True):
        before.append(sum(outer[s] * inner[s] for s in shares))
        if w == 0.0 or not np.isfinite(np.max(row)):
            continue
        density = np.exp(w * (row - np.max(row)))
        evidence = {s: float(inner[s] @ density) for s in shares}
        total = sum(outer[s] * evidence[s] for s in shares)
        for s in shares:
            updated = (1.0 - s) * inner[s] * density / evidence[s] + s * prior
            kept, new = (1.0 - among) * outer[s] * evidence[s] / total, among / len(shares)
            inner[s] = (kept * updated + new * prior) / (kept + new)
            outer[s] = kept + new
    return np.array(before), sum(outer[s] * inner[s] for s in shares)
