"""A picture of a fit on one input column: data, the predictive mean, bands of y, and the future behind a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gaussfold.types import Array, ArrayLike

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess

POINTS = 400
LEVELS = (0.5, 0.9)


def plot(model: GaussianProcess, X: ArrayLike | None, ax: Any) -> Any:
    """Draw on ``ax`` (None: a new figure) and return it."""
    if model.X_.shape[1] != 1:
        msg = f"plot: the model has {model.X_.shape[1]} input columns, and a line has one; plot predictions of a slice"
        raise ValueError(msg)
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        msg = "plot needs Matplotlib: pip install 'gaussfold[plot]'"
        raise ImportError(msg) from error
    axes = plt.subplots(figsize=(9.0, 4.0), layout="constrained")[1] if ax is None else ax
    low, high = float(model.X_.min()), float(model.X_.max())
    numbers = np.linspace(low, high, POINTS) if X is None else np.sort(model.inputs_as_numbers(X)[:, 0])
    mean, cov = model.latents_at(numbers[:, None])
    shown = _ticks(model, numbers)
    for level, alpha in zip(reversed(LEVELS), (0.15, 0.25), strict=True):
        band = model.quantiles_of(mean, cov, (0.5 - level / 2, 0.5 + level / 2))
        axes.fill_between(shown, band[:, 0], band[:, 1], color="tab:blue", alpha=alpha, lw=0, label=f"{level:.0%} of y")
    axes.plot(shown, model.quantiles_of(mean, cov, (0.5,))[:, 0], color="tab:blue", lw=1.5, label="median")
    axes.plot(_ticks(model, model.X_[:, 0]), model.Y_[:, 0], ".", color="black", ms=3, alpha=0.6, label="data")
    if numbers[-1] > high:
        axes.axvline(_ticks(model, np.array([high]))[0], color="grey", lw=1, ls=(0, (4, 2)))
    axes.legend(loc="best", frameon=False)
    axes.set_xlabel("time" if model.clock_ is not None else "x")
    axes.set_ylabel("y")
    return axes


def _ticks(model: GaussianProcess, numbers: Array) -> np.ndarray:
    """Dates where the model was fitted on such."""
    if model.clock_ is None:
        return numbers
    whole = np.floor(numbers)
    one = np.ones(1, f"timedelta64[{model.clock_.unit}]").astype("timedelta64[ns]").astype(np.float64)
    rest = ((numbers - whole) * one).astype(np.int64).astype("timedelta64[ns]")
    return np.asarray(whole.astype(np.int64).astype(f"datetime64[{model.clock_.unit}]").astype("datetime64[ns]") + rest)
