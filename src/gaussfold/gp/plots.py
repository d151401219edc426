"""Pictures of a fit on one input column: data, median and bands of y, the future behind a line; and its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from gaussfold.gp.components import components
from gaussfold.likelihoods import as_vector
from gaussfold.types import Array, ArrayLike

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess

POINTS = 400
LEVELS = (0.5, 0.9)


def plot(model: GaussianProcess, X: ArrayLike | None, ax: Any) -> Any:
    """Draw on ``ax`` (None: a new figure) and return it; several outputs have axes each, one below the other."""
    outputs = as_vector(model.likelihood).outputs
    numbers = _inputs(model, X)
    axes = _axes(ax, outputs)
    mean, cov = model.latents_at(numbers[:, None])
    levels = [0.5 - 0.5 * level for level in LEVELS] + [0.5] + [0.5 + 0.5 * level for level in LEVELS]
    found = model.quantiles_of(mean, cov, levels).reshape(len(numbers), outputs, len(levels))
    for p, each in enumerate(axes):
        _curve(model, each, numbers, found[:, p])
        each.plot(_ticks(model, model.X_[:, 0]), model.Y_[:, p], ".", color="black", ms=3, alpha=0.6, label="data")
        each.legend(loc="best", frameon=False)
        each.set_ylabel("y" if outputs == 1 else f"y[{p}]")
    axes[-1].set_xlabel("time" if model.clock_ is not None else "x")
    return axes[0] if outputs == 1 else axes


def plot_components(model: GaussianProcess, X: ArrayLike | None, axes: Any) -> Any:
    """Every part of a sum of covariances with its band, one below the other; returns the axes."""
    numbers = _inputs(model, X)
    parts = components(model, numbers[:, None])
    drawn = _axes(axes, len(parts))
    for each, part in zip(drawn, parts, strict=True):
        ends = [stats.norm.ppf(0.5 + 0.5 * level) * part.std for level in LEVELS]
        both = [part.mean - e for e in ends] + [part.mean] + [part.mean + e for e in ends]
        _curve(model, each, numbers, np.stack(both, axis=1), of="the part")
        each.set_title(f"{part.name}: {type(part.covariance).__name__}", fontsize="medium")
    drawn[0].legend(loc="best", frameon=False)
    drawn[-1].set_xlabel("time" if model.clock_ is not None else "x")
    return drawn


def _axes(given: Any, count: int) -> list[Any]:
    """So many of Matplotlib's axes: those given, or a column of new ones."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        msg = "plot needs Matplotlib: pip install 'gaussfold[plot]'"
        raise ImportError(msg) from error
    if given is None:
        size = (9.0, 1.5 + 2.5 * count)
        return list(plt.subplots(count, figsize=size, layout="constrained", sharex=True, squeeze=False)[1][:, 0])
    axes = list(np.ravel(np.asarray(given, dtype=object)))
    if len(axes) != count:
        msg = f"ax: {len(axes)} of Matplotlib's axes for {count} panels; give one for each, or None for a new figure"
        raise ValueError(msg)
    return axes


def _inputs(model: GaussianProcess, X: ArrayLike | None) -> Array:
    """Where to draw: as given, in order, or all over the data."""
    if model.X_.shape[1] != 1:
        msg = f"plot: the model has {model.X_.shape[1]} input columns, and a line has one; plot predictions of a slice"
        raise ValueError(msg)
    if X is not None:
        return np.sort(model.inputs_as_numbers(X)[:, 0])
    return np.linspace(float(model.X_[:, 0].min()), float(model.X_[:, 0].max()), POINTS)


def _curve(model: GaussianProcess, ax: Any, numbers: Array, quantiles: Array, of: str = "y") -> None:
    """Bands and what is between them: lower ends, the middle and upper ends are columns, narrow bands first."""
    shown, high = _ticks(model, numbers), float(model.X_[:, 0].max())
    count = len(LEVELS)
    for i, alpha in reversed(list(enumerate((0.25, 0.15)))):
        low, up = quantiles[:, i], quantiles[:, count + 1 + i]
        ax.fill_between(shown, low, up, color="tab:blue", alpha=alpha, lw=0, label=f"{LEVELS[i]:.0%} of {of}")
    ax.plot(shown, quantiles[:, count], color="tab:blue", lw=1.5, label="median")
    if numbers[-1] > high:
        ax.axvline(_ticks(model, np.array([high]))[0], color="grey", lw=1, ls=(0, (4, 2)))


def _ticks(model: GaussianProcess, numbers: Array) -> np.ndarray:
    """Dates where the model was fitted on such."""
    if model.clock_ is None:
        return numbers
    whole = np.floor(numbers)
    one = np.ones(1, f"timedelta64[{model.clock_.unit}]").astype("timedelta64[ns]").astype(np.float64)
    rest = ((numbers - whole) * one).astype(np.int64).astype("timedelta64[ns]")
    return np.asarray(whole.astype(np.int64).astype(f"datetime64[{model.clock_.unit}]").astype("datetime64[ns]") + rest)
