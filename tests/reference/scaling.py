"""Running scales from their definition: moments of everything seen so far, computed anew at every value."""

from __future__ import annotations

import numpy as np


def standardised(values, learn):
    """One column, in order: centred and scaled by what was learned so far, this row included if it is to be."""
    seen, out = [], []
    for x, learned in zip(values, learn, strict=True):
        seen += [x] if learned else []
        std = np.std(seen) if seen else 0.0
        out.append((x - np.mean(seen)) / std if std > 0 else 0.0)
    return np.array(out)


def divided(values, learn):
    """One feature, in order: by the root mean square of its values so far, ones not counted."""
    seen, out = [], []
    for x, learned in zip(values, learn, strict=True):
        if learned and x not in (0.0, 1.0):
            seen.append(x)
        if seen:
            out.append(x / np.sqrt(np.mean(np.square(seen))))
        else:
            out.append(x if x in (0.0, 1.0) else np.sign(x))
    return np.array(out)
