"""Rows visited once more after so many others, in plain Python: lists of means and variances, rows as dicts.

At most ``lag`` rows wait, and no more than a quarter of those learned.

What a row said of feature i is what it added to 1/vᵢ and to mᵢ/vᵢ. That is divided out, and the row is learned again.
"""

import math


def learn(means, variances, rows, labels, weights, lag, visit):
    """Fold rows in by ``visit(means, variances, row, y, w)``; the lists are updated in place.

    Returns mean and variance of x'θ of each row before it was learned for the first time.
    """
    waiting, met, learned = [], [], 0
    for row, y, w in zip(rows, labels, weights, strict=True):
        met.append(
            (
                math.fsum(x * means[i] for i, x in row.items()),
                math.fsum(x * x * variances[i] for i, x in row.items()),
            )
        )
        if math.isnan(y) or w == 0.0:
            continue
        before = {i: (1.0 / variances[i], means[i] / variances[i]) for i in row}
        visit(means, variances, row, y, w)
        said = {i: (1.0 / variances[i] - p, means[i] / variances[i] - h) for i, (p, h) in before.items()}
        waiting.append((row, y, w, said))
        learned += 1
        while len(waiting) > min(lag, learned // 4):
            row, y, w, said = waiting.pop(0)
            for i, (precision, shift) in said.items():
                rest = 1.0 / variances[i] - precision
                means[i], variances[i] = (means[i] / variances[i] - shift) / rest, 1.0 / rest
            visit(means, variances, row, y, w)
    return met
